"""Judges of two files of one format, by the library of the format: each yields (key, attribute or None,
what differs)."""

import base64
import json

import numpy as np

from tool_foreign import need

h5py, netCDF4, zarr = need("h5py", "netCDF4", "zarr")

OWN = {"DIMENSION_LIST", "REFERENCE_LIST", "DIMENSION_LABELS", "CLASS", "NAME", "_Netcdf4Dimid",
       "_Netcdf4Coordinates", "_nc3_strict", "_NCProperties"}  # of HDF5 and netCDF


def equal(a, b):
    a, b = np.asarray(a), np.asarray(b)
    if a.shape != b.shape:
        return False
    if a.dtype.names and b.dtype.names:
        return a.dtype.names == b.dtype.names and all(equal(a[n], b[n]) for n in a.dtype.names)
    if a.dtype.kind == "O" or b.dtype.kind == "O":
        return all(equal(x, y) if isinstance(x, np.ndarray) else x == y
                   for x, y in zip(a.ravel(), b.ravel()))
    return a.tobytes() == b.tobytes() if a.dtype == b.dtype else False


# ---- HDF5 --------------------------------------------------------------------------------------


def hdf5_type(dtype):
    """All that h5py knows of a type, which dtypes that compare equal may differ in."""
    if dtype is None:
        return None
    text, names = h5py.check_string_dtype(dtype), h5py.check_enum_dtype(dtype)
    if text:
        return "text", text.encoding, text.length
    if names:
        return dtype.str, tuple(sorted(names.items()))
    if dtype.subdtype:
        return hdf5_type(dtype.subdtype[0]), dtype.subdtype[1]
    if dtype.names:
        return dtype.itemsize, tuple((n, hdf5_type(t[0]), t[1]) for n, t in dtype.fields.items())
    return dtype.str, str(dtype.metadata or "")


def hdf5_objects(file):
    """Objects by all their names; a soft or external link by its own."""
    found = {"/": file}

    def walk(group, path, above):
        for name in group:
            key, link = f"{path}/{name}", group.get(name, getlink=True)
            found[key] = group[name] if isinstance(link, h5py.HardLink) else link
            if isinstance(found[key], h5py.Group):
                address = h5py.h5o.get_info(found[key].id).addr
                if address not in above: # a cycle of links
                    walk(found[key], key, above | {address})

    walk(file, "", {h5py.h5o.get_info(file.id).addr})
    return found


def hdf5(a, b):
    with h5py.File(a) as one, h5py.File(b) as two:
        first, second = hdf5_objects(one), hdf5_objects(two)
        for key in sorted(first.keys() ^ second.keys()):
            yield key, None, "only one file has it"
        for key in sorted(first.keys() & second.keys()):
            x, y = first[key], second[key]
            if type(x) is not type(y):
                yield key, None, "is something else"
            elif hasattr(x, "attrs"):
                yield from hdf5_attributes(key, x, y)
                if isinstance(x, h5py.Dataset):
                    yield from hdf5_dataset(key, x, y)


def hdf5_attributes(key, x, y):
    for name in sorted((set(x.attrs) ^ set(y.attrs)) - OWN):
        yield key, name, "only one file has it"
    for name in sorted((set(x.attrs) & set(y.attrs)) - OWN):
        ids = [h5py.h5a.open(t.id, name.encode()) for t in (x, y)]
        if hdf5_type(ids[0].dtype) != hdf5_type(ids[1].dtype):
            yield key, name, "type"
        elif ids[0].shape != ids[1].shape:
            yield key, name, "shape"
        elif not (isinstance(x.attrs[name], h5py.Empty) or equal(x.attrs[name], y.attrs[name])):
            yield key, name, "value"


def hdf5_dataset(key, x, y):
    if hdf5_type(x.dtype) != hdf5_type(y.dtype):
        yield key, None, "dtype"
    elif (x.shape, x.maxshape) != (y.shape, y.maxshape):
        yield key, None, "shape"
    elif x.shape is not None and not equal(x[()], y[()]):
        yield key, None, "items"
    else:
        defined = x.id.get_create_plist().fill_value_defined() == h5py.h5d.FILL_VALUE_USER_DEFINED
        if defined and not equal(x.fillvalue, y.fillvalue):
            yield key, None, "fill value"
    dims = [[(d.label, [s.name for s in d.values()]) for d in t.dims] if t.shape else None
            for t in (x, y)]
    if dims[0] != dims[1] or x.is_scale != y.is_scale:
        yield key, None, "dimensions"


# ---- NetCDF ------------------------------------------------------------------------------------


def netcdf(a, b):
    with netCDF4.Dataset(a) as one, netCDF4.Dataset(b) as two:
        yield from netcdf_groups("", one, two)


def netcdf_groups(path, one, two):
    for name in sorted(set(one.dimensions) | set(two.dimensions)):
        found = [(len(g.dimensions[name]), g.dimensions[name].isunlimited())
                 if name in g.dimensions else None for g in (one, two)]
        if found[0] != found[1]:
            yield path + "/" + name, None, "dimension"
    for name in sorted(set(one.variables) ^ set(two.variables)):
        yield path + "/" + name, None, "only one file has it"
    yield from netcdf_attributes(path or "/", one, two)
    for name in sorted(set(one.variables) & set(two.variables)):
        key, x, y = path + "/" + name, one[name], two[name]
        for variable in (x, y):
            variable.set_auto_maskandscale(False)
            variable.set_auto_chartostring(False)
        if str(x.datatype) != str(y.datatype) or x.dimensions != y.dimensions:
            yield key, None, "type or dimensions"
        elif not equal(x[...], y[...]):
            yield key, None, "items"
        yield from netcdf_attributes(key, x, y)
    for name in sorted(set(one.groups) | set(two.groups)):
        if name in one.groups and name in two.groups:
            yield from netcdf_groups(path + "/" + name, one[name], two[name])
        else:
            yield path + "/" + name, None, "only one file has it"


def netcdf_attributes(key, one, two):
    for name in sorted(set(one.ncattrs()) | set(two.ncattrs())):
        values = [t.getncattr(name) if name in t.ncattrs() else None for t in (one, two)]
        if type(values[0]) is not type(values[1]) or not equal(*values):
            yield key, name, "attribute"


# ---- Zarr --------------------------------------------------------------------------------------


def zarr_nodes(node, key=""):
    yield key or "/", node
    if isinstance(node, zarr.Group):
        for name, member in sorted(node.members()):
            yield from zarr_nodes(member, key + "/" + name)


def zarr_dims(node):
    """The names of an array's axes, None for one without; those of version 2 are an attribute."""
    old, ndim = node.attrs.get("_ARRAY_DIMENSIONS"), getattr(node, "ndim", -1)
    names = getattr(node.metadata, "dimension_names", None)
    if not names and isinstance(old, list) and len(old) == ndim and \
            all(name is None or isinstance(name, str) for name in old):
        names = old
    return tuple(names or [None] * max(ndim, 0))


def plain(value):
    """A JSON value in which NaN equals NaN, and 1 does not equal 1.0."""
    return json.dumps(value, sort_keys=True)


def native(values):
    values = np.asarray(values)
    return values.astype(values.dtype.newbyteorder("="))


def missing(value, dtype):
    """The item of xarray's _FillValue: floats are numbers, or the base64 of a float64; complex
    numbers are two of them."""
    if isinstance(value, list) and len(value) == 2 and np.dtype(dtype).kind == "c":
        return np.asarray(complex(*(missing(v, "f8") for v in value)), dtype)
    if isinstance(value, str) and len(value) == 12:
        value = np.frombuffer(base64.b64decode(value), "<f8")[0]
    return np.asarray(value, dtype)


def zarr_files(a, b):
    """The items of structs and raw bytes are not compared: zarr-python cannot read them from shards."""
    first, second = (dict(zarr_nodes(zarr.open(str(p), mode="r"))) for p in (a, b))
    for key in sorted(first.keys() ^ second.keys()):
        yield key, None, "only one file has it"
    for key in sorted(first.keys() & second.keys()):
        x, y = first[key], second[key]
        for name in sorted(set(x.attrs) | set(y.attrs)):
            if name == "_FillValue" and name not in x.attrs and "_ARRAY_DIMENSIONS" in x.attrs:
                continue # the fill value of version 2 is missing for xarray
            if name == "_ARRAY_DIMENSIONS" and x.attrs.get(name) == list(zarr_dims(y)):
                continue # names of version 2
            if name not in x.attrs or name not in y.attrs:
                yield key, name, "only one file has it"
            elif plain(x.attrs[name]) != plain(y.attrs[name]) and not (
                    name == "_FillValue" and isinstance(x, zarr.Array) and x.dtype.kind in "fc" and
                    equal(*(missing(t.attrs[name], x.dtype) for t in (x, y)))):
                yield key, name, "%s became %s" % (plain(x.attrs[name]), plain(y.attrs[name]))
        if type(x) is not type(y):
            yield key, None, "is something else"
        elif isinstance(x, zarr.Array):
            names = zarr_dims(x), zarr_dims(y)
            types = [t.dtype.newbyteorder("=") for t in (x, y)] # those of Zarr 3 have no byte order
            if types[0] != types[1] or x.shape != y.shape:
                yield key, None, "%s %s became %s %s" % (x.dtype.str, x.shape, y.dtype.str, y.shape)
            elif x.dtype.kind != "V" and not equal(native(x[...]), native(y[...])):
                yield key, None, "items"
            elif x.fill_value is not None and not equal(*(np.asarray(t.fill_value, types[0]) for t in (x, y))):
                yield key, None, "fill value %r became %r" % (x.fill_value, y.fill_value)
            elif names[0] != names[1]:
                yield key, None, "dimension names"


# ---- Sentences ---------------------------------------------------------------------------------


def is_named(difference, warnings):
    """Whether a sentence is about the difference: about the attribute, or about the object or one that
    it is in. HDF5 keeps dimensions in attributes."""
    key, attribute, what = difference
    above = ["/"] if key == "/" else [key[:i] for i in range(1, len(key) + 1)
                                       if i == len(key) or key[i] == "/"]
    for line in warnings.splitlines():
        if attribute and f": {key}: " in line and (attribute in line or "its attributes" in line or
                                                   f": {key}: a dataset " in line):
            return True
        if what == "dimensions" and f": {key}: its attributes, " in line:
            return True
        if any(f": {k}: " in line for k in above) and not attribute and "attribute" not in line:
            return True
    return False

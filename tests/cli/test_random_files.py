"""Random files of HDF5, NetCDF and Zarr, with all types, filters and layouts that their own libraries
write, to a tree and back: equal for the library, or every difference is named by a sentence, or the file
is refused."""

import collections
import shutil
import warnings

import numpy as np

from tool_cli import Case, main, run
from tool_foreign import items, need, need_plugin, random_of, rounds, sentences

need_plugin("hdf5")
need_plugin("netcdf")
h5py, netCDF4, zarr, hdf5plugin, numcodecs = need("h5py", "netCDF4", "zarr", "hdf5plugin", "numcodecs")
from tool_judges import hdf5, is_named, netcdf, zarr_files  # noqa: E402

warnings.simplefilter("ignore")
TEXTS = ["", "a", "hello", "été", "日本語", "x" * 40, "tab\tnl\n", " trailing ", "😀"]
NAMES = ["a", "temp", "x y", "été", "data.1", "q'", "日本", "n"]
ATTRIBUTES = ["units", "title", "valid_range", "missing_value", "scale_factor", "add_offset", "coordinates",
              "calendar", "ж", "a_name_with_more_than_31_bytes_in_it", "spacing"]
INTS = ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"]


def scalar(rng, kinds=(*INTS, "f2", "f4", "f8")):
    return np.dtype(rng.choice("<>") + rng.choice(kinds))


def values(rng, dtype, shape):
    """Random items that libraries do not refuse: booleans, texts and padding have valid bytes."""
    dtype = np.dtype(dtype)
    if dtype.subdtype:
        return values(rng, dtype.subdtype[0], (*shape, *dtype.subdtype[1]))
    out = np.zeros(shape, dtype)
    if dtype.names:
        for name in dtype.names:
            out[name] = values(rng, dtype[name], shape)
    elif dtype.kind in "bSU":
        pool = {"b": [False, True], "S": [b"", b"ab", b"x" * dtype.itemsize],
                "U": ["", "a", "été", "日本"]}[dtype.kind]
        for i in np.ndindex(shape):
            out[i] = rng.choice(pool)
    elif dtype.kind in "mM":
        out.view(dtype.str[0] + "i8")[...] = rng.randrange(10 ** 9)
    else:
        out = items(rng, shape, dtype)
        if dtype.kind in "fc":
            out = np.where(np.isfinite(out), out, dtype.type(rng.choice((0, np.nan, np.inf)))).astype(dtype)
    return out


def texts(rng, shape, pool=TEXTS):
    out = np.empty(shape, object)
    for i in np.ndindex(shape):
        out[i] = rng.choice(pool)
    return out


def new_name(rng, taken):
    name = rng.choice(NAMES)
    while name in taken:
        name += str(rng.randrange(10))
    return name


def attribute_name(rng, *special):
    """A name; one in 40 has a meaning of its own."""
    if rng.random() < 0.025:
        return rng.choice((*special, "attrs"))
    return rng.choice(ATTRIBUTES) + rng.choice(("", "", str(rng.randrange(99))))


def a_shape(rng, most=4):
    shape = tuple(rng.choice((1, 2, 3, 5, 7, 20)) for _ in range(rng.randrange(most + 1)))
    return (0,) + shape[1:] if shape and rng.random() < 0.06 else shape


# ---- HDF5 --------------------------------------------------------------------------------------


def hdf5_attributes(rng, thing, file):
    for _ in range(rng.choice((0, 1, 2, 5, 18))):
        name = attribute_name(rng, "_FillValue", "_Encoding", "dims", "_vlen", "_ARRAY_DIMENSIONS")
        dtype = scalar(rng)
        travels = (
            lambda: rng.choice(TEXTS), lambda: texts(rng, (rng.randrange(1, 4),)),
            lambda: np.bytes_(rng.choice((b"abc", b"\xff\xfe", b"x "))),
            lambda: np.array([b"ab", b"c"], "S3"), lambda: np.bool_(True), lambda: np.array([True, False]),
            lambda: values(rng, dtype, ()), lambda: values(rng, dtype, (rng.randrange(4),)),
            lambda: values(rng, dtype, (2, 3)), lambda: 1 + 2j, lambda: np.complex64(3j),
            lambda: h5py.Empty(rng.choice(("f4", "i8", "S5"))), lambda: np.void(b"\0\1opaque"))
        is_lost = (
            lambda: values(rng, [("x", "<i4"), ("y", ">f8")], (2,)), lambda: file.ref,
            lambda: (np.int8(1), h5py.enum_dtype({"RED": 0, "GREEN": 1}, "i1")),
            lambda: (np.array([[1, 2], [3, 4]], "i2"), np.dtype(("<i2", (2,)))))
        value = rng.choice(is_lost if rng.random() < 0.05 else travels)()
        if isinstance(value, tuple):
            shape = np.shape(value[0])[:1] if value[1].subdtype else None
            thing.attrs.create(name, value[0], shape=shape, dtype=value[1])
        else:
            thing.attrs[name] = value


def hdf5_filters(rng, dtype, shape):
    """Filters that accept these items; most need numbers."""
    any_type = [{}, {"compression": "gzip", "compression_opts": rng.randrange(10)}, {"compression": "lzf"},
                {"compression": "gzip", "shuffle": True, "fletcher32": True}, {"fletcher32": True}]
    blosc = ("blosclz", "lz4", "lz4hc", "zlib", "zstd")
    numbers = [{"shuffle": True}, {"compression": "szip"}, hdf5plugin.LZ4(), hdf5plugin.BZip2(),
               hdf5plugin.Bitshuffle(cname=rng.choice(("none", "lz4", "zstd"))), hdf5plugin.Zstd(),
               hdf5plugin.Blosc(cname=rng.choice(blosc), clevel=rng.randrange(10), shuffle=rng.randrange(3)),
               hdf5plugin.Blosc2(cname=rng.choice(blosc), filters=rng.randrange(4)),
               {"compression": hdf5plugin.Blosc2(), "fletcher32": True}]
    if dtype.kind not in "iuf":
        return rng.choice(any_type)
    if dtype.kind in "iu":
        numbers.append({"scaleoffset": 0})
    elif dtype.itemsize > 2:
        numbers.append({"scaleoffset": 3})
        if dtype.byteorder != ">" and 1 <= len(shape) <= 3:
            numbers += [hdf5plugin.Zfp(reversible=True), hdf5plugin.SZ3(absolute=0.01)]
    return dict(rng.choice(any_type + 2 * numbers))


def hdf5_types(rng):
    """A type of h5py, and a function that makes items of a shape."""
    fields = [("a", scalar(rng)), ("b", "S4"), ("c", scalar(rng), (2,)), ("e", "c8"), ("f", "?"),
              ("d", [("p", "i2"), ("q", ">f4")])]
    rng.shuffle(fields)
    dtype = np.dtype(rng.choice((
        scalar(rng), scalar(rng), scalar(rng), np.dtype("?"), np.dtype(rng.choice("<>") + rng.choice(("c8", "c16"))),
        np.dtype("S%d" % rng.choice((1, 5, 17))), np.dtype("V%d" % rng.choice((3, 8))),
        np.dtype((scalar(rng), rng.choice(((2,), (2, 3))))),
        np.dtype(fields[:rng.randrange(1, 6)], align=rng.random() < 0.3))))
    time = np.dtype(rng.choice(("<M8[ns]", "<M8[D]", "<m8[s]")))
    return rng.choice((
        *[(dtype, lambda shape: values(rng, dtype, shape))] * 6,
        (h5py.enum_dtype({"A": 0, "B": 1, "é": 5, "neg": -3}, rng.choice(("i1", "i4", ">i2"))),
         lambda shape: np.random.default_rng(rng.getrandbits(32)).choice([0, 1, 5, -3], shape)),
        (h5py.string_dtype(), lambda shape: texts(rng, shape)),
        (h5py.string_dtype("ascii"), lambda shape: texts(rng, shape, ["", "a", "bcd", "z" * 30])),
        (h5py.string_dtype("utf-8", 12),
         lambda shape: texts(rng, shape, [t.encode() for t in ("a", "été", "日本")])),
        (h5py.opaque_dtype(time), lambda shape: values(rng, time, shape).astype(h5py.opaque_dtype(time))),
        (h5py.vlen_dtype("i4"), None), (h5py.ref_dtype, None), (h5py.regionref_dtype, None),
        (np.dtype([("n", "i4"), ("s", h5py.string_dtype())]), None)))


def hdf5_unusual(rng, group, name):
    """Numbers that NumPy has no type for, and layouts that h5py makes by its low-level functions."""
    kind = rng.randrange(5)
    create = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    number = h5py.h5t.STD_I32LE.copy()
    if kind == 0:
        number.set_precision(rng.choice((9, 20, 24)))
    elif kind == 1: # bfloat16
        number = h5py.h5t.IEEE_F16LE.copy()
        number.set_fields(15, 7, 8, 0, 7)
        number.set_ebias(127)
    elif kind == 2:
        number = h5py.h5t.STD_B16LE.copy()
    elif kind == 3:
        create.set_layout(h5py.h5d.COMPACT)
    else:
        create.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
    made = h5py.h5d.create(group.id, name.encode(), number, h5py.h5s.create_simple((2, 3)), create)
    if kind < 4:
        memory = number if kind == 2 else h5py.h5t.NATIVE_INT32 if kind != 1 else h5py.h5t.NATIVE_FLOAT
        source = {1: "f4", 2: "u2"}.get(kind, "i4")
        made.write(h5py.h5s.ALL, h5py.h5s.ALL, np.arange(6, dtype=source).reshape(2, 3), mtype=memory)
    return h5py.Dataset(made)


def hdf5_set(rng, group, name, folder):
    dtype, make = hdf5_types(rng)
    shape, options = a_shape(rng), {}
    kind = rng.randrange(20)
    if kind == 0:
        return group.create_dataset(name, data=h5py.Empty(rng.choice(("f4", "i8", "S3"))))
    if kind == 1:
        return hdf5_unusual(rng, group, name)
    if kind == 2:
        (folder / "items.raw").write_bytes(bytes(48))
        return group.create_dataset(name, (3, 2), "f8", external=[(str(folder / "items.raw"), 0, 48)])
    if kind == 3:
        layout = h5py.VirtualLayout((3,), "i4")
        layout[0] = h5py.VirtualSource("other.h5", "d", (1,))[0]
        return group.create_virtual_dataset(name, layout, fillvalue=-1)
    if shape and rng.random() < 0.7:
        options["chunks"] = True if rng.random() < 0.2 and 0 not in shape else tuple(
            max(1, rng.choice((n, n // 2, min(3, n)))) for n in shape)
        if rng.random() < 0.3:
            options["maxshape"] = tuple(rng.choice((None, n + 5, max(n, 1))) for n in shape)
        if make:
            options.update(hdf5_filters(rng, dtype, shape))
    if dtype.kind in "iuf" and not h5py.check_enum_dtype(dtype) and rng.random() < 0.3:
        options["fillvalue"] = values(rng, dtype, ())
    made = group.create_dataset(name, shape, dtype, **options)
    if make and made.size and rng.random() < 0.85:
        half = shape[0] // 2 if shape and not dtype.subdtype and rng.random() < 0.2 else None
        if half:
            made[:half] = make(shape)[:half]
        else:
            made[...] = make(shape)
    return made


def hdf5_scales(rng, group, made):
    if not made.shape or made.is_virtual:
        return
    if made.ndim == 1 and rng.random() < 0.25:
        made.make_scale(rng.choice((made.name.rsplit("/", 1)[1], "scale é", "")))
    for d in range(made.ndim):
        if rng.random() < 0.15:
            made.dims[d].label = rng.choice(("x", "y", "lon é"))
        for other in group.values():
            if rng.random() < 0.3 and isinstance(other, h5py.Dataset) and other.is_scale and \
                    other != made and not made.is_scale and other.shape == made.shape[d:d + 1]:
                made.dims[d].attach_scale(other)


def make_hdf5(rng, path, log):
    libver = "latest" if rng.random() < 0.05 else \
        rng.choice((None, ("earliest", "v110"), ("v108", "v108"), ("v110", "v110")))
    block = rng.choice((None, None, None, 512))
    with h5py.File(path, "w", libver=libver, userblock_size=block, track_order=rng.random() < 0.3) as file:
        groups = [file]
        for _ in range(rng.choice((0, 0, 1, 2))):
            above = rng.choice(groups)
            groups.append(above.create_group(new_name(rng, above)))
        for _ in range(rng.choice((1, 1, 2, 3, 4))):
            group = rng.choice(groups)
            name = new_name(rng, group)
            try:
                made = hdf5_set(rng, group, name, path.parent)
                hdf5_attributes(rng, made, file)
                hdf5_scales(rng, group, made)
            except (ValueError, TypeError, RuntimeError, OSError, KeyError) as error:
                log[type(error).__name__ + ": " + str(error)[:70]] += 1
        for group in groups:
            hdf5_attributes(rng, group, file)
        links = {"soft": h5py.SoftLink("/a"), "external": h5py.ExternalLink("other.h5", "/x"),
                 "type": np.dtype("f8"), "hard": rng.choice(groups[1:] or [np.dtype("i2")])}
        for name in links:
            if rng.random() < 0.1:
                file[name] = links[name]


# ---- NetCDF ------------------------------------------------------------------------------------

FORMATS = ("NETCDF3_CLASSIC", "NETCDF3_64BIT_OFFSET", "NETCDF3_64BIT_DATA", "NETCDF4", "NETCDF4",
           "NETCDF4_CLASSIC")


def netcdf_attributes(rng, thing, kinds, is_full):
    for _ in range(rng.choice((0, 1, 2, 4, 18))):
        name = attribute_name(rng, "dims", "_vlen")
        kind = rng.randrange(6 if is_full else 4)
        if kind == 0:
            thing.setncattr(name, rng.choice(TEXTS))
        elif kind < 4:
            thing.setncattr(name, values(rng, rng.choice(kinds), ((), (1,), (3,))[kind - 1])[()])
        elif kind == 4:
            thing.setncattr_string(name, rng.choice(TEXTS))
        else:
            thing.setncattr(name, [rng.choice(TEXTS) for _ in range(3)])


def netcdf_options(rng, dtype, growing):
    """How a variable with axes is stored in NetCDF-4."""
    return rng.choice((
        {}, {"zlib": True, "complevel": rng.randrange(1, 10)}, {"zlib": True, "shuffle": False},
        {"fletcher32": True}, {"zlib": True, "fletcher32": True}, {"compression": "zstd"},
        {"compression": "bzip2"}, {"compression": "szip", "szip_pixels_per_block": 4},
        {"compression": rng.choice(("blosc_lz4", "blosc_zstd")), "blosc_shuffle": rng.randrange(3)},
        {"contiguous": True} if not growing else {}, {"endian": "big"},
        {"zlib": True, "significant_digits": 3} if dtype in ("f4", "f8") else {}))


def netcdf_variable(rng, group, name, dims, kinds, version):
    dtype, make, options = rng.choice((*kinds, "S1")), None, {}
    if version == "NETCDF4" and rng.random() < 0.3:
        number = rng.randrange(999)
        dtype, make = rng.choice((
            lambda: (str, lambda shape: texts(rng, shape)),
            lambda: (group.createEnumType("i1", "e%d" % number, {"zero": 0, "one": 1, "n%d" % number: -2}),
                     lambda shape: values(rng, "?", shape).astype("i1")),
            lambda: (group.createCompoundType(np.dtype([("a%d" % number, "i4"), ("b", "f8"), ("c", "i2", (3,))], align=True),
                                              "c%d" % number), None),
            lambda: (group.createVLType("i4", "v%d" % number), None)))()
    elif version.startswith("NETCDF4") and dims:
        options = netcdf_options(rng, dtype, any(d.isunlimited() for d in dims.values()))
        if rng.random() < 0.3 and "contiguous" not in options:
            options["chunksizes"] = [max(1, min(3, len(d))) for d in dims.values()]
    if isinstance(dtype, str) and rng.random() < 0.3:
        grows = any(d.isunlimited() for d in dims.values())
        options["fill_value"] = False if rng.random() < 0.2 and not grows else \
            b"x" if dtype == "S1" else values(rng, dtype, ())[()]
    made = group.createVariable(name, dtype, tuple(dims), **options)
    made.set_auto_maskandscale(False)
    made.set_auto_chartostring(False)
    shape = tuple(len(d) or rng.choice((0, 3, 5)) for d in dims.values())
    if isinstance(dtype, netCDF4.CompoundType):
        make = lambda shape: values(rng, dtype.dtype, shape)  # noqa: E731
    is_filled = options.get("fill_value", True) is not False # otherwise what was not written is random
    if (make or isinstance(dtype, str)) and 0 not in shape and (not is_filled or rng.random() < 0.85):
        got = make(shape) if make else values(rng, dtype, shape)
        made[...] = got if shape or dtype is not str else got[()]
    return made


def make_netcdf(rng, path, log):
    version = rng.choice(FORMATS)
    is_full = version == "NETCDF4"
    kinds = ["i1", "i2", "i4", "f4", "f8"]
    if version in ("NETCDF4", "NETCDF3_64BIT_DATA"):
        kinds += ["u1", "u2", "u4", "i8", "u8"]
    with netCDF4.Dataset(path, "w", format=version) as file:
        groups = [file]
        for i in range(rng.choice((0, 0, 1, 2)) if is_full else 0):
            groups.append(rng.choice(groups).createGroup(rng.choice(("g", "h é", "sub")) + str(i)))
        grows = False
        for group in groups:
            netcdf_attributes(rng, group, kinds, is_full)
            for name in rng.sample(("x", "y", "time", "lat", "z é"), rng.randrange(1, 4)):
                grow = rng.random() < 0.3 and (is_full or not grows)
                grows = grows or grow
                group.createDimension(name, None if grow else rng.choice((1, 2, 3, 7, 20)))
        for i in range(rng.choice((1, 2, 3, 5))):
            group, seen = rng.choice(groups), {}
            above = group
            while above is not None:
                seen = {**above.dimensions, **seen}
                above = above.parent
            dims = rng.sample(list(seen), min(len(seen), rng.choice((0, 1, 1, 2, 3))))
            if not is_full:
                dims.sort(key=lambda d: not seen[d].isunlimited())
            name = dims[0] if len(dims) == 1 and rng.random() < 0.5 else rng.choice(NAMES) + str(i)
            if name in group.variables:
                continue
            try:
                made = netcdf_variable(rng, group, name, {d: seen[d] for d in dims}, kinds, version)
                netcdf_attributes(rng, made, kinds, is_full)
            except (ValueError, TypeError, RuntimeError, OSError, AttributeError, IndexError) as error:
                log[type(error).__name__ + ": " + str(error)[:70]] += 1


# ---- Zarr --------------------------------------------------------------------------------------


def zarr_attributes(rng, thing):
    for _ in range(rng.choice((0, 1, 3, 18))):
        name = attribute_name(rng, "_FillValue", "_FillValue", "dims", "_ARRAY_DIMENSIONS", "_enum")
        thing.attrs[name] = rng.choice((
            1, 1.5, -2 ** 63, 2 ** 53 + 1, 2 ** 64 - 1, [2 ** 64 - 1, -1], True, None, rng.choice(TEXTS), [1, 2, 3], [1, 2.5],
            ["a", "é"], {"k": {"n": [1, None]}}, [[1, 2], [3, 4]], [], {}, 1e300, 0.1, "NaN"))


def zarr_compressor(rng, *known, unknown):
    return rng.choice(unknown if rng.random() < 0.1 else known)


def zarr_codecs(rng, version, dtype, ndim):
    cname = rng.choice(("lz4", "zstd", "zlib", "blosclz", "lz4hc"))
    if version == 2:
        made = {"order": rng.choice("CF"), "compressors": zarr_compressor(
            rng, None, "auto", numcodecs.Zlib(), numcodecs.GZip(), numcodecs.Zstd(),
            numcodecs.Blosc(cname, rng.randrange(10), rng.randrange(-1, 3)),
            numcodecs.Blosc(cname, blocksize=rng.choice((64, 1024))),
            unknown=(numcodecs.BZ2(), numcodecs.LZMA(), numcodecs.LZ4()))}
        if dtype.kind in "iuf" and ndim and rng.random() < 0.1:
            made["filters"] = [rng.choice((numcodecs.Delta(dtype.str), numcodecs.Shuffle(dtype.itemsize),
                                           numcodecs.CRC32(), numcodecs.Adler32()))]
        if rng.random() < 0.4:
            made["chunk_key_encoding"] = {"name": "v2", "separator": rng.choice("./")}
        return made
    codecs = zarr.codecs
    made = {"compressors": rng.choice((
        None, "auto", [codecs.GzipCodec(level=rng.randrange(10))], [codecs.Crc32cCodec()],
        [codecs.ZstdCodec(level=rng.randrange(1, 9), checksum=rng.random() < 0.5)],
        [codecs.BloscCodec(cname=cname, clevel=rng.randrange(10),
                           shuffle=rng.choice(("noshuffle", "shuffle", "bitshuffle")))],
        [codecs.GzipCodec(), codecs.Crc32cCodec()], [codecs.ZstdCodec(), codecs.BloscCodec()],
        [codecs.BloscCodec(blocksize=128)]))}
    if ndim > 1 and rng.random() < 0.2:
        made["filters"] = [codecs.TransposeCodec(order=tuple(rng.sample(range(ndim), ndim)))]
    if dtype.byteorder == ">":
        made["serializer"] = codecs.BytesCodec(endian="big")
    if rng.random() < 0.3:
        made["chunk_key_encoding"] = {"name": rng.choice(("v2", "default")), "separator": rng.choice("./")}
    if ndim and rng.random() < 0.4:
        made["dimension_names"] = [rng.choice(("x", "y", "t", None)) for _ in range(ndim)]
    return made


def zarr_array(rng, group, name, version):
    dtype = np.dtype(rng.choice((
        *[scalar(rng)] * 6, np.dtype("?"), np.dtype(rng.choice(("<c8", ">c16"))), np.dtype("S7"),
        np.dtype(rng.choice("<>") + "U5"), np.dtype(rng.choice(("<M8[ns]", "<M8[D]", ">m8[s]"))),
        np.dtype([("a", "<i4"), ("b", ">f8"), ("c", "S3")]), np.dtype("V4"), np.dtypes.StringDType())))
    shape = a_shape(rng)
    options = zarr_codecs(rng, version, dtype, len(shape))
    if shape:
        options["chunks"] = tuple(max(1, rng.choice((n, n // 2, 3, n + 2))) for n in shape)
    if version == 3 and shape and 0 not in shape and rng.random() < 0.25:
        options["shards"] = tuple(n * rng.choice((1, 2, 3)) for n in options["chunks"])
    if dtype.kind in "iufcb" and rng.random() < 0.6:
        options["fill_value"] = rng.choice((np.nan, np.inf, -np.inf)) \
            if dtype.kind == "f" and rng.random() < 0.4 else values(rng, dtype, ())[()]
    made = group.create_array(name, shape=shape, dtype=dtype if dtype.kind != "T" else "str", **options)
    if 0 not in shape and rng.random() < 0.9:
        got = texts(rng, shape) if dtype.kind == "T" else values(rng, dtype, shape)
        if shape and shape[0] > 1 and rng.random() < 0.25:
            made[:shape[0] // 2] = got[:shape[0] // 2]
        else:
            made[...] = got
    return made


def make_zarr(rng, path, log):
    shutil.rmtree(path, ignore_errors=True)
    version = rng.choice((2, 3))
    root = zarr.open_group(path, mode="w", zarr_format=version)
    groups = [root]
    for i in range(rng.choice((0, 0, 1, 2))):
        groups.append(rng.choice(groups).create_group(rng.choice(("g", "h é", "sub")) + str(i)))
    for i in range(rng.choice((1, 1, 2, 3))):
        try:
            made = zarr_array(rng, rng.choice(groups), rng.choice(NAMES) + str(i), version)
            zarr_attributes(rng, made)
            if version == 2 and rng.random() < 0.3:
                made.attrs["_ARRAY_DIMENSIONS"] = [rng.choice("xyzt") for _ in made.shape]
        except (ValueError, TypeError, RuntimeError, OverflowError, NotImplementedError) as error:
            log[type(error).__name__ + ": " + str(error)[:70]] += 1
    for group in groups:
        zarr_attributes(rng, group)
    if rng.random() < 0.2:
        zarr.consolidate_metadata(path)


class RandomFiles(Case):
    def one(self, path, back, judge):
        """Returns what became of a file, and the silent differences."""
        tree = self.path("tree.b2d")
        for made in (tree, back):
            shutil.rmtree(made, ignore_errors=True)
        told = ""
        for arguments in (("--verify", path, tree), ("-f", tree, back)):
            status, _, err = run("convert", *arguments, HDF5_PLUGIN_PATH=hdf5plugin.PLUGIN_PATH,
                                 ASAN_OPTIONS="detect_leaks=0")
            told += err
            if status:
                self.assertIn(status, (3, 4, 5), err)
                self.assertEqual(sentences(err), 1, err)
                self.assertFalse(arguments[-1].exists())
                return "refused", [], told
        found = list(judge(path, back))
        silent = [f for f in found if not is_named(f, told)]
        return ("silent" if silent else "named" if found else "identical"), silent, told

    def check(self, kind, end, make, judge):
        rng, failed = random_of(self), []
        counts, log, reasons = collections.Counter(), collections.Counter(), collections.Counter()
        for i in range(rounds(15)):
            seed, path = rng.getrandbits(32), self.path("in%d%s" % (i, end))
            try:
                make(type(rng)(seed), path, log)
            except RuntimeError as error: # of netCDF, at the close
                log["RuntimeError: " + str(error)] += 1
                continue
            what, silent, told = self.one(path, self.path("out" + end), judge)
            counts[what] += 1
            reasons.update({line.split(": ", 4)[-1][:60] for line in told.splitlines()})
            if silent:
                failed.append((seed, silent, told))
        print(kind, dict(counts), "not made:", sum(log.values()), flush=True)
        for reason, n in log.most_common(4) + reasons.most_common(12):
            print("   %d %s" % (n, reason))
        for seed, silent, told in failed[:20]:
            print("-- %d %s\n%s" % (seed, silent, told), flush=True)
        self.assertEqual(failed, [])

    def test_hdf5(self):
        self.check("hdf5", ".h5", make_hdf5, hdf5)

    def test_netcdf(self):
        self.check("netcdf", ".nc", make_netcdf, netcdf)

    def test_zarr(self):
        self.check("zarr", ".zarr", make_zarr, zarr_files)


if __name__ == "__main__":
    main()

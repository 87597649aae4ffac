"""The reader of HDF5 and NetCDF-4 by h5py. It describes a file as the plug-in does.

All groups are visited first. Then axes get their names, because a dimension scale may come
after the arrays that use it.
"""

from __future__ import annotations

import importlib
import itertools
import json
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from ._readers import RESERVED, Attrs, Contents, Items, Lazy, Variable, need, plain, texts

_HIDDEN = {"DIMENSION_LIST", "DIMENSION_LABELS", "_Netcdf4Dimid", "_Netcdf4Coordinates"}
_OF_ROOT = {"_NCProperties", "_nc3_strict"}
_OF_SCALES = {"CLASS", "NAME", "REFERENCE_LIST"}
_RESERVED = {
    "_enum", "_vlen", "_null", "_type", "_types", "_maxshape", "_labels", "_scale",
}  # fmt: skip
_OF_GROUPS = {"_unlimited_dims", "_dims"}
_NO_VARIABLE = b"This is a netCDF dimension but not a netCDF variable."
_NOT_COORDINATE = "_nc4_non_coord_"
_OBJECTS = "references or sequences of any length"
_MOST_LEVELS, _MOST_BYTES = 64, 250


def read_hdf5(stack: ExitStack, place: str) -> Contents:
    """Read HDF5 and NetCDF-4 by h5py."""
    h5py = need("h5py", "h5py", place)
    with suppress(ImportError):
        importlib.import_module("hdf5plugin")  # its filters
    reader = _Reader(h5py, stack.enter_context(h5py.File(place, "r")))
    reader.visit(reader.file, "")
    reader.name_types()
    reader.name_axes()
    reader.list_dimensions()
    return reader.found


@dataclass(eq=False)
class _Dimension:
    name: str
    group: str
    length: int
    number: int | None  # of netCDF-4
    grows: bool
    has_variable: bool
    is_used: bool = False
    is_used_here: bool = False  # by an array in its group
    has_rival: bool = False  # an array below looks like its coordinate


@dataclass(eq=False)
class _Set:
    """A dataset that becomes an array."""

    key: str
    group: str
    dataset: Any
    variable: Variable
    labels: list[str | None]
    dimensions: list[Any]  # of each axis: an address, and later a _Dimension; or None


def _is_in(group: str, above: str) -> bool:
    return not above or group == above or group.startswith(above + "/")


def _is_possible(name: str) -> bool:
    """Whether an array of a tree can have this name."""
    try:
        size = len(name.encode())
    except UnicodeEncodeError:
        return False
    controls = any(c < " " or c == "\x7f" for c in name)
    return not controls and size <= _MOST_BYTES and name not in (".", "..")


def _leaves(dtype: np.dtype[Any]) -> Iterator[np.dtype[Any]]:
    """Iterate over the dtypes of fields."""
    if dtype.subdtype is not None:
        yield from _leaves(dtype.base)
    elif dtype.names is not None:
        for name in dtype.names:
            yield from _leaves(dtype[name])
    else:
        yield dtype


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _split(x: Any) -> Any:
    """Let the axes of an array type follow those of the dataset."""
    ndim, inner = len(x.shape), x.dtype.shape

    def read(box: tuple[slice, ...]) -> Items:
        inside: tuple[Any, ...] = (..., *box[ndim:])
        return np.asarray(np.asarray(x[box[:ndim]])[inside])

    return Lazy(x.shape + inner, x.dtype.base, read)


def _extended(x: Any, shape: tuple[int, ...], fill: Any) -> Any:
    """Let an array end with its fill: it may be shorter than a growing dimension of NetCDF."""

    def read(box: tuple[slice, ...]) -> Items:
        out = np.zeros([s.stop - s.start for s in box], x.dtype)
        if fill is not None:
            out[...] = fill
        own = [slice(s.start, min(s.stop, n)) for s, n in zip(box, x.shape, strict=True)]
        if all(s.start < s.stop for s in own):
            part = np.asarray(x[tuple(own)])
            out[tuple(slice(0, n) for n in part.shape)] = part
        return out

    return Lazy(shape, x.dtype, read)


class _Reader:
    def __init__(self, h5py: Any, file: Any) -> None:
        self.h5py, self.file = h5py, file
        self.found = Contents()
        self.lose = self.found.lose
        self.seen: dict[int, str] = {hash(file["/"].id): ""}
        self.types: dict[str, Any] = {}
        self.scales: dict[int, _Dimension] = {}
        self.named: dict[str, list[_Dimension]] = defaultdict(list)
        self.sets: list[_Set] = []
        self.is_netcdf = bool(_OF_ROOT & set(file.attrs)) or any(
            "_Netcdf4Dimid" in file[name].attrs
            for name in itertools.islice(file, 100)
            if isinstance(file.get(name, getlink=True), h5py.HardLink)
        )

    # ---- Attributes

    def attributes(self, node: Any, key: str, items: Any = None) -> Attrs:
        """Read the attributes of a group or dataset; `items` is the type of a dataset."""
        out: Attrs = {}
        types: dict[str, str] = {}
        names: list[str] = []
        with self.found.leaving_out(key, "its attributes"):
            names.extend(sorted(node.attrs, key=_encoded))
        hidden = _HIDDEN | (set() if key else _OF_ROOT)
        if "CLASS" in names and items is not None and node.is_scale:
            hidden |= _OF_SCALES
        as_json = self.words_of(node, "_json")
        is_ours = as_json and set(as_json) <= set(names)
        reserved = _RESERVED | (RESERVED - {"dims"} | _OF_GROUPS if items is None else RESERVED)
        for name in names:
            if name in hidden or (name == "_json" and is_ours):
                continue
            if name == "_dtype" and items is not None:
                continue  # `variable` takes it
            if name in reserved or name in ("_json", "_dtype"):
                self.lose(key, f"the attribute {name}, whose name is reserved")
                continue
            with self.found.leaving_out(key, f"its attribute {name}"):
                value = self.attribute(node, key, name, items, types)
                if is_ours and name in as_json and isinstance(value, str):
                    if '"$' in value:
                        self.lose(key, f"the type of its attribute {name}, which is JSON here")
                    else:
                        value = json.loads(value)
                out[name] = value
        return out | ({"_types": types} if types else {})

    def words_of(self, node: Any, name: str) -> list[str]:
        """Return the texts of an attribute."""
        value = node.attrs.get(name) if name in node.attrs else None
        found = np.asarray([] if value is None else value, object).ravel().tolist()
        return found if all(isinstance(text, str) for text in found) else []

    def attribute(
        self, node: Any, key: str, name: str, items: Any, types: dict[str, str]
    ) -> Any:
        """Return the value of an attribute. ValueError says why an array cannot have it."""
        h5py = self.h5py
        stored = node.attrs.get_id(name)
        dtype, ndim = stored.dtype, len(stored.shape or ())
        is_null = stored.get_space().get_simple_extent_type() == h5py.h5s.NULL
        is_same = items is not None and stored.get_type() == items
        string = h5py.check_string_dtype(dtype)
        if dtype.names is not None:
            raise ValueError("a structure")
        if string is None and any(d.hasobject for d in _leaves(dtype)):
            raise ValueError(_OBJECTS)
        if any(h5py.check_enum_dtype(d) is not None for d in _leaves(dtype)) and not is_same:
            self.lose(key, f"the names of the values of its attribute {name}")
        if dtype.subdtype is not None:
            self.lose(key, f"the array type of its attribute {name}")
        value: Any = None if is_null else node.attrs[name]
        is_one = self.is_netcdf and np.shape(value) == (1,)
        if string is None:
            plain_null = is_null and dtype == np.float32 and dtype.isnative
            if is_null and not plain_null and not self.is_netcdf:
                types[name] = f"null {dtype.str}"
            value = value[0] if is_one else value
            if np.shape(value) == () and not dtype.isnative:
                value = np.asarray(value, dtype)
            if isinstance(value, np.void):
                return value.tobytes()
            typed = name == "_FillValue" and items is not None and dtype != node.dtype
            return np.asarray(value) if typed and np.ndim(value) == 0 else plain(value)
        text = string.encoding + ("" if string.length is None else f" {string.length}")
        is_default = text == "utf-8" and not is_null and ndim < 2
        is_fill = name == "_FillValue" and is_same and string.length == 1
        if not (is_default or self.is_netcdf or is_fill):
            types[name] = "null " * is_null + text
        if is_null:
            return "" if self.is_netcdf else None
        raw = np.asarray(value, object)
        flat = [t if isinstance(t, bytes) else _encoded(t) for t in raw.flat]
        try:
            words = [text.decode() for text in flat]
        except UnicodeDecodeError:
            return flat[0] if is_one or not ndim else np.array(flat, "S").reshape(raw.shape)
        if is_one or not ndim:
            return words[0]
        return words if ndim == 1 else np.array(flat, "S").reshape(raw.shape)

    # ---- Datasets

    def take(self, node: Any, key: str, group: str, name: str) -> None:
        """Describe a dataset, or the dimension that it is."""
        address = hash(node.id)
        is_scale = node.shape is not None and node.is_scale
        label = self.h5py.h5ds.get_scale_name(node.id) if is_scale else b""
        is_bare = label.startswith(_NO_VARIABLE)
        if is_scale:
            given = self.words_of(node, "_name") if is_bare else []
            number = int(node.attrs["_Netcdf4Dimid"]) if "_Netcdf4Dimid" in node.attrs else None
            is_first = node.ndim == 1 or (node.ndim > 1 and self.is_netcdf)  # its own axis
            grows = is_first and node.maxshape[0] is None
            self.scales[address] = _Dimension(
                given[0] if given else name, group, node.shape[0] if node.ndim else 1, number,
                grows, not is_bare,
            )  # fmt: skip
        if is_bare:
            return
        if node.is_virtual:
            self.lose(key, "a virtual dataset, whose items are in other datasets")
            return
        if node.external:
            self.lose(key, "a dataset whose items are in another file")
            return
        variable = self.variable(node, key)
        if variable is None:
            return
        if is_scale and not self.is_netcdf:
            text = label.decode("utf-8", "surrogateescape")
            if node.ndim != 1 or node.dtype.subdtype is not None or text != name:
                variable.attrs["_scale"] = text
        ndim = 0 if node.shape is None else node.ndim
        scales: list[Any] = [None] * ndim
        labels: list[str | None] = [None] * ndim
        with self.found.leaving_out(key, "its dimension scales"):
            for axis in range(ndim):
                labels[axis] = node.dims[axis].label or None
                count = len(node.dims[axis])
                scales[axis] = hash(node.dims[axis][0].id) if count else None
                if count > 1:
                    self.lose(key, "all but the first scale of an axis")
        numbers = node.attrs.get("_Netcdf4Coordinates") if is_scale and ndim > 1 else None
        if is_scale and ndim == 1:
            scales = [address]
        elif numbers is not None and np.shape(numbers) == (ndim,):
            scales = [("number", int(n)) for n in numbers]
        self.sets.append(_Set(key, group, node, variable, labels, scales))
        self.found.arrays[key] = variable

    def variable(self, node: Any, key: str) -> Variable | None:
        h5py = self.h5py
        dtype, chunks, items, fill = node.dtype, node.chunks, node, None
        string = h5py.check_string_dtype(dtype)
        is_text = string is not None and string.length is None
        is_wide = False  # as the attribute _dtype says
        if dtype.hasobject and not is_text:
            self.lose(key, f"a dataset of {_OBJECTS}")
            return None
        attrs = self.attributes(node, key, node.id.get_type())
        if node.shape is None:
            text = "U1" if is_text and string.encoding == "utf-8" else "S1"
            items = np.zeros(0, text if is_text else dtype)
            attrs["_null"] = True
        if is_text:
            kind = "text" if string.encoding == "utf-8" else "bytes"
            if node.shape is not None:
                items, kind = self.texts(node, key, kind)
            given = self.words_of(node, "_dtype") if kind == "text" else []
            wide = np.dtype(given[0]) if given and given[0].startswith(("<U", ">U")) else None
            if wide is not None and wide.itemsize >= items.dtype.itemsize:
                items, is_wide = Lazy(items.shape, wide, items.__getitem__), True
            else:
                attrs["_vlen"] = kind
        elif string is not None and string.encoding == "utf-8" and dtype.itemsize > 1:
            attrs.setdefault("_Encoding", "utf-8")
        if "_dtype" in node.attrs and not is_wide:
            self.lose(key, "the attribute _dtype, whose name is reserved")
        if (names := h5py.check_enum_dtype(dtype)) is not None:
            attrs["_enum"] = {k: int(v) for k, v in names.items()}
        elif any(h5py.check_enum_dtype(d) is not None for d in _leaves(dtype)):
            self.lose(key, "the names of the values of its fields")
        if dtype.subdtype is not None:
            self.lose(key, "the array type of its items, whose axes follow its own")
        if dtype.subdtype is not None and node.shape is not None:
            items, chunks = _split(node), chunks and chunks + dtype.shape
        elif not is_text and node.shape is not None:
            plist = node.id.get_create_plist()
            if plist.fill_value_defined() == h5py.h5d.FILL_VALUE_USER_DEFINED:
                fill = node.fillvalue
        return Variable(items, None, attrs, chunks, fill)

    def texts(self, node: Any, key: str, kind: str) -> tuple[Any, str]:
        chunks = node.chunks or node.shape
        if kind == "text":
            try:
                return texts(node.asstr(), node.shape, chunks).items, kind
            except UnicodeDecodeError:
                self.lose(key, "its texts are not UTF-8, and are read as bytes")
        return texts(node, node.shape, chunks, is_text=False).items, "bytes"

    # ---- The walk

    def visit(self, group: Any, key: str) -> None:
        self.found.groups[key] = self.attributes(group, key)
        below: dict[str, Any] = {}
        for name in sorted(group, key=_encoded):
            shown = self.netcdf_name(group, name)
            own = f"{key}/{shown}" if key else shown
            with self.found.leaving_out(own):
                node = self.member(group, name, shown, own, key)
                if node is not None:
                    below[own] = node
        for own, node in below.items():
            with self.found.leaving_out(own):
                self.visit(node, own)

    def netcdf_name(self, group: Any, name: str) -> str:
        """Return the name of a variable: netCDF gives those a prefix that have the name of a
        dimension which is not theirs."""
        rest = name.removeprefix(_NOT_COORDINATE)
        if rest in (name, ""):
            return name
        other = group.get(rest)
        is_free = other is None or bytes(other.attrs.get("NAME", b"")).startswith(_NO_VARIABLE)
        return rest if is_free else name

    def member(self, group: Any, name: str, shown: str, key: str, above: str) -> Any:
        """Describe a member; a group is returned, to be visited after the arrays beside it."""
        h5py = self.h5py
        link = group.get(name, getlink=True)
        problem = None
        if not _is_possible(name):
            problem = "a name that no array can have"
        elif key.count("/") >= _MOST_LEVELS:
            problem = f"more than {_MOST_LEVELS} levels of names"
        elif isinstance(link, h5py.ExternalLink):
            problem = f"a link to {link.path} in the file {link.filename}"
        elif isinstance(link, h5py.SoftLink):
            problem = f"a symbolic link to {link.path}"
        else:
            node = group[name]
            first = self.seen.setdefault(hash(node.id), key)
            problem = None if first == key else f"another link to /{first}"
        if problem is not None:
            self.lose(key, problem)
        elif isinstance(node, h5py.Group):
            return node
        elif isinstance(node, h5py.Dataset):
            self.take(node, key, above, shown)
        else:
            self.types[key] = node.id
        return None

    def name_types(self) -> None:
        """Let arrays name their type; a type that no array has is lost."""
        unused = dict(self.types)
        for s in self.sets:
            kinds = (self.h5py.h5t.ENUM, self.h5py.h5t.COMPOUND, self.h5py.h5t.OPAQUE)
            own = s.dataset.id.get_type()
            for key, named in self.types.items() if own.get_class() in kinds else ():
                if own == named:
                    s.variable.attrs["_type"] = f"/{key}"
                    unused.pop(key, None)
                    break
        for key in unused:
            self.lose(key, "a type that no array has")

    # ---- Dimensions

    def name_axes(self) -> None:
        numbered = {d.number: d for d in self.scales.values() if d.number is not None}
        for d in self.scales.values():
            self.named[d.name].append(d)
        for s in self.sets:
            s.dimensions = [
                numbered.get(d[1]) if isinstance(d, tuple) else self.scales.get(d)
                for d in s.dimensions
            ]
            name = s.key.rpartition("/")[2]
            for d, length in zip(s.dimensions, s.dataset.shape or (), strict=True):
                if d is not None:
                    d.is_used = True
                    d.is_used_here |= s.group == d.group
                    is_like = s.group != d.group and len(s.dimensions) == 1 and name == d.name
                    d.has_rival |= is_like
                    d.length = max(d.length, length) if d.grows else d.length
        taken: dict[tuple[str, str], _Dimension] = {}  # by group and name
        for s in self.sets:
            for d in s.dimensions:
                if d is not None:
                    taken.setdefault((s.group, d.name), d)
            self.name_axes_of(s, taken)

    def name_axes_of(self, s: _Set, taken: dict[tuple[str, str], _Dimension]) -> None:
        v, shape, most = s.variable, s.dataset.shape or (), s.dataset.maxshape or ()
        dims, labels = list(s.labels), list(s.labels)
        lengths = list(v.items.shape)
        for axis, d in enumerate(s.dimensions):
            if d is None:
                continue
            meant = d if d.group == s.group else self.meant(s.group, d.name)
            if meant is not d:
                there = f"{d.group and '/'}{d.group}/{d.name}"
                self.lose(s.key, f"the scale of axis {axis}, which is elsewhere: {there}")
            is_known = meant is d or (meant is None and taken[s.group, d.name] is d)
            dims[axis] = d.name if is_known else None
            if labels[axis] == dims[axis]:
                labels[axis] = None
            if d.grows:
                lengths[axis] = max(lengths[axis], d.length)
        if tuple(lengths) != tuple(v.items.shape):
            v.items = _extended(v.items, tuple(lengths), v.fill_value)
        v.dims = dims + [None] * (len(lengths) - len(dims)) if shape else None
        if any(labels):
            v.attrs["_labels"] = labels
        limits = zip(shape, s.dimensions, strict=True)
        if most != tuple(None if d is not None and d.grows else n for n, d in limits):
            v.attrs["_maxshape"] = list(most)

    def meant(self, group: str, name: str) -> _Dimension | None:
        """Return the dimension that a name means in a tree: that of the nearest group above."""
        above = [d for d in self.named[name] if _is_in(group, d.group)]
        return max(above, key=lambda d: len(d.group), default=None)

    def list_dimensions(self) -> None:
        """List growing dimensions, and those that only arrays in groups below have."""
        for d in self.scales.values():
            key = f"{d.group}/{d.name}" if d.group else d.name
            attrs = self.found.groups[d.group]
            above = (_is_in(d.group, o.group) for o in self.named[d.name] if o is not d)
            d.has_rival |= any(above)
            if not d.is_used and not d.has_variable:
                self.lose(key, "a dimension that no array has")
            elif d.grows:
                attrs.setdefault("_unlimited_dims", []).append(d.name)
            if d.is_used and not d.has_variable and (not d.is_used_here or d.has_rival):
                attrs.setdefault("_dims", []).append(d.name)
        for attrs in self.found.groups.values():
            for name in _OF_GROUPS & attrs.keys():
                attrs[name].sort(key=str.encode)

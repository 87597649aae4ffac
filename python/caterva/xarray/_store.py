"""A group of a tree as a store of xarray: variables, dimensions, attributes."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from xarray import Variable
from xarray.backends.common import WritableCFDataStore
from xarray.core import indexing
from xarray.core.utils import FrozenDict

from .. import _caterva, _msgpack
from .._array import Array
from .._group import Group
from .._info import _name
from .._shown import shown
from . import _foreign, _items
from ._array import CatervaArray, Live, Source

UNLIMITED = "_unlimited_dims"
FILTERS = "blosc2_filters"  # in an encoding, "filters" are those of zarr
DIMENSIONS = ("dims", "dimension_names", "_ARRAY_DIMENSIONS")


class CatervaStore(WritableCFDataStore):
    """A group of an open tree, for reading; `_write.Writing` is for writing."""

    __slots__ = ("_drop", "_foreign", "_source", "group")

    def __init__(
        self, group: Group, source: Source | None = None, drop: Iterable[str] = ()
    ) -> None:
        self.group = group
        self._source = source
        self._drop = frozenset(drop)
        self._foreign: dict[str, Any] | None = None

    # ---- Variables -----------------------------------------------------------------

    def _members(self) -> Iterator[str]:
        """Yield the names of the arrays directly in the group."""
        skip = len(self.group._key) + 1
        if not _is_there(self.group):
            return
        for key, kind, _, _, _, _, _ in self.group.tree._listed(self.group._key):
            name = key[skip:]
            if name == _foreign.INDEX and skip == 1:
                self._foreign = _foreign.read_index(self.group.tree.path)
            elif kind == 0 and "/" not in name:
                yield name

    def _array(self, name: str) -> Array:
        array: Array = self.group.tree._array(f"{self.group._key}/{name}")
        return array

    def open_variable(self, name: str) -> Variable:
        """Return a variable whose items are read on access."""
        key, array = f"{self.group._key}/{name}", self._array(name)
        if self._source is not None:
            self._source.keep(key, array)
        shape, chunks, blocks, pipeline, packed = array._describe_stored()
        attributes = {k: _value(v) for k, v in packed.items() if k != "dims"}
        dims = dims_of(array, name, attributes)
        mark = attributes.pop(_items.MARK, None)
        data = CatervaArray(self._source or Live(self.group.tree), key, array, mark)
        encoding = _pipeline(*pipeline) | {
            "source": shown(self.group.tree.path),
            "original_shape": shape,
        }
        if dims:
            encoding["chunks"] = chunks
            encoding["blocks"] = blocks
            encoding["preferred_chunks"] = dict(zip(dims, chunks, strict=True))
        if mark == "string":
            encoding["dtype"] = data.dtype  # else xarray converts to objects
        lazy = indexing.LazilyIndexedArray(data, _everything(len(dims)))
        variable = Variable(dims, lazy, attributes, encoding, fastpath=True)
        return variable

    def get_variables(self) -> Any:
        """Return the variables of the group."""
        members = [name for name in self._members() if name not in self._drop]
        if self._foreign is None:
            return FrozenDict((name, self.open_variable(name)) for name in members)
        return FrozenDict(map(self._foreign_variable, members))

    def _foreign_variable(self, member: str) -> tuple[str, Variable]:
        assert self._foreign is not None
        name, variable = _foreign.name_of(member), self.open_variable(member)
        variable.attrs = _foreign.attributes_of(self._foreign, name, variable.attrs)
        if _foreign.is_scalar(self._array(member)):
            variable = variable.isel({variable.dims[0]: 0})
        return name, variable

    # ---- The group ------------------------------------------------------------------

    def get_attrs(self) -> Any:
        """Return the attributes of the group."""
        attributes = {k: v for k, v in self.group.attrs.items() if k != UNLIMITED}
        if self._foreign is not None:
            attributes |= self._foreign.get("attrs", {})
            if names := _foreign.coordinates_of(self._foreign):
                attributes["coordinates"] = names
        return FrozenDict(attributes)

    def get_dimensions(self) -> Any:
        """Return the dimensions of the group's own arrays, with their lengths."""
        return FrozenDict(sizes_of(self.group))

    def get_parent_dimensions(self) -> Any:
        """Return the dimensions of the enclosing groups; the nearest group wins."""
        found: dict[str, int] = {}
        key = self.group._key
        while key:
            key = key.rpartition("/")[0]
            found = sizes_of(Group(self.group.tree, key)) | found
        return FrozenDict(found)

    def get_encoding(self) -> dict[str, Any]:
        """Return the unlimited dimensions."""
        return {"unlimited_dims": set(self.group.attrs.get(UNLIMITED, ()))}

    def close(self) -> None:
        """Release the arrays."""
        if self._source is not None:
            self._source.close()


@functools.cache
def _everything(ndim: int) -> indexing.BasicIndexer:
    """Return an index of a whole array; it is shared and must not be changed."""
    return indexing.BasicIndexer((slice(None),) * ndim)


_values: dict[bytes, Any] = {}  # decoded short values, which many variables share


def _value(packed: bytes) -> Any:
    found = _values.get(packed, _values)
    if found is not _values:
        return found
    value = _msgpack.unpack(packed)
    if len(packed) < 100 and isinstance(value, str | int | float | np.generic):
        if len(_values) > 1000:
            _values.clear()
        _values[packed] = value
    return value


# ---- Parts --------------------------------------------------------------------------


def dims_of(array: Array, name: str, attributes: dict[str, Any]) -> tuple[str, ...]:
    """Return the names of an array's dimensions, and remove them from its attributes. An axis
    without a name gets one that is unique in the data set."""
    named = array._dims_get()
    if named is None:
        if "dims" in array.attrs:  # not names of dimensions
            attributes["dims"] = array.attrs["dims"]
        return tuple(f"{name}_dim{i}" for i in range(array.ndim))
    for attribute in DIMENSIONS:
        attributes.pop(attribute, None)
    return tuple(f"{name}_dim{i}" if dim is None else dim for i, dim in enumerate(named))


@functools.lru_cache(1000)
def _pipeline(
    codec: int, codec_meta: int, level: int, filters: tuple[int, ...], metas: tuple[int, ...]
) -> dict[str, Any]:
    """Return compression as encoding options; the dict is shared and must not be changed."""
    return {
        "codec": _name(codec, _caterva.codec_name, codec_meta),
        "level": level,
        FILTERS: tuple(
            _name(number, _caterva.filter_name, meta)
            for number, meta in zip(filters, metas, strict=True)
            if number
        ),
    }


def sizes_of(group: Group) -> dict[str, int]:
    """Return the dimensions of a group's own arrays, with their lengths."""
    return group.dims if _is_there(group) else {}


def _is_there(group: Group) -> bool:
    """Whether the group exists; one that is about to be written may not yet."""
    return not group._key or group.tree._has_group(group._key)


def as_attribute(value: Any) -> Any:
    """Convert an attribute's value to one that can be stored."""
    if isinstance(value, np.ndarray) and value.dtype.kind in "OT":
        return value.tolist()
    return value

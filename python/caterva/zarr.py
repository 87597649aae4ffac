"""Arrays and trees as stores of zarr-python 3, as they are, for reading.

Needs zarr-python 3.1 or newer.

>>> import caterva, caterva.zarr, numpy as np, zarr
>>> caterva.save("cube.b2nd", np.arange(24).reshape(4, 6), overwrite=True)
>>> zarr.open_array(caterva.zarr.Store("cube.b2nd"))[1]
array([ 6,  7,  8,  9, 10, 11])
"""

from __future__ import annotations

import asyncio
import functools
import operator
import re
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn, Unpack

import numpy as np
import zarr.abc.store as stores
from zarr.core.buffer import Buffer, BufferPrototype, default_buffer_prototype

from . import _options
from ._array import Array
from ._errors import NotFoundError, UnsupportedError
from ._functions import open as open_any
from ._group import Group, says_group
from ._options import Path
from ._places import is_remote, place_to_open
from ._remote import Remote
from ._shown import shown

__all__ = ["Store"]

_METADATA = "zarr.json"
_CHUNK = re.compile(r"(?:(?P<node>.+)/)?c(?P<index>(?:/(?:0|[1-9][0-9]{0,18}))*)")
_CODECS = {"blosclz", "lz4", "lz4hc", "zlib", "zstd"}
_FILTERS = {"shuffle", "bitshuffle", "trunc-prec"}


def _join(*parts: str) -> str:
    return "/".join(part for part in parts if part)


def _cut(value: bytes, wanted: stores.ByteRequest | None) -> bytes:
    if wanted is None:
        return value
    if isinstance(wanted, stores.RangeByteRequest):
        return value[wanted.start : wanted.end]
    if isinstance(wanted, stores.OffsetByteRequest):
        return value[wanted.offset :]
    if isinstance(wanted, stores.SuffixByteRequest):
        return value[max(0, len(value) - wanted.suffix) :]
    raise TypeError(f"unexpected byte range: {wanted!r}")


@dataclass(frozen=True)
class _Node:
    """An open array, the shape of its grid of blocks, and whether most are not decoded."""

    array: Array
    grid: tuple[int, ...]
    is_passed_on: bool

    @classmethod
    def of(cls, array: Array) -> _Node:
        info = array.info
        filters = {f.partition(":")[0] for f in info.filters}
        fits = all(c % b == 0 for c, b in zip(array.chunks, array.blocks, strict=True))
        grid = tuple(-(-n // b) for n, b in zip(array.shape, array.blocks, strict=True))
        return cls(array, grid, fits and info.codec in _CODECS and filters <= _FILTERS)

    def chunk(self, index: Sequence[int]) -> bytes | None:
        if len(index) != len(self.grid) or any(map(operator.ge, index, self.grid)):
            return None
        return self.array._zarr_chunk(index)


class Store(stores.Store):
    """A read-only store for zarr-python 3: an array, or a tree of groups and arrays.

    Nothing is copied or converted. The chunks of a Zarr array are blocks of the array, with the
    codecs ``bytes`` and ``blosc``: stored blocks become Blosc 1 buffers by 20 bytes in front of
    them. Blocks that Blosc 1 cannot decode, such as those with other filters or codecs, and all
    blocks of an array whose chunk shape is no multiple of its block shape, are decoded and
    passed on uncompressed. Metadata, for groups with those of all members, are generated.

    The arrays are read as they were when the store opened them; a new store sees later commits.
    Copies (``pickle``) open the path again. Methods may be called from any thread.

    Parameters
    ----------
    path
        Path or URL of an array, a tree or a group in a tree, as in `open`.
    remote
        How URLs are read: a `Remote`, or a dict of its fields.
    **options
        For the arrays, as in `open_tree`: ``threads``, ``cache_bytes``, ``read_ahead``,
        ``unchecked``, ``keep_bytes``.

    Raises
    ------
    FileNotFoundError
        If nothing exists at `path`.
    NotImplementedError
        If it is no array or tree; later, for an array whose dtype has no name in Zarr.

    Examples
    --------
    >>> import caterva, caterva.zarr, xarray as xr
    >>> with caterva.open_tree("weather.b2d", "w") as t:
    ...     t["t2m"] = [271.5, 272.0, 274.5]
    ...     t["t2m"].dims = ["time"]
    >>> xr.open_zarr(caterva.zarr.Store("weather.b2d")).t2m.values
    array([271.5, 272. , 274.5])
    """

    supports_writes = False
    supports_deletes = False
    supports_listing = True

    def __init__(
        self,
        path: Path,
        *,
        remote: Remote | Mapping[str, Any] | None = None,
        **options: Unpack[_options.Members],
    ) -> None:
        super().__init__(read_only=True)
        self._place = place_to_open(path)
        self._remote = remote
        self._options = options
        self._root = open_any(self._place, remote=remote, **options)
        self._is_far = is_remote(self._place)
        self._node = functools.lru_cache(maxsize=64)(self._open_node)
        self._is_open = True

    def __reduce__(self) -> tuple[Any, ...]:
        return _reopened, (self._place, self._remote, self._options)

    def __eq__(self, value: object) -> bool:
        return isinstance(value, Store) and (self._place, self._options) == (
            value._place,
            value._options,
        )

    def __hash__(self) -> int:
        return hash(self._place)

    def __str__(self) -> str:
        return f"caterva:{shown(self._place)}"

    def __repr__(self) -> str:
        return f"Store({shown(self._place)!r})"

    def with_read_only(self, read_only: bool = False) -> Store:
        if not read_only:
            self._refuse()
        return self

    # ---- Arrays and groups --------------------------------------------------------------

    def _open_node(self, name: str) -> _Node | None:
        """Open the array with that name; None: it is a group, or does not exist."""
        if isinstance(self._root, Array):
            return _Node.of(self._root) if name == "" else None
        if name == "":
            return None
        key = f"{self._root._key}/{name}"
        words = _options.open_options(False, {**self._options})
        try:
            return _Node.of(self._root._owner._handle._open_array(Array, key, words, None))
        except NotFoundError:
            return None
        except UnsupportedError as error:
            if says_group(error) or self._kind_of(key) != "array":
                return None
            raise

    def _kind_of(self, key: str) -> str:
        assert isinstance(self._root, Group)
        name = key.rpartition("/")[0]
        kinds = {e[0]: e[1] for e in self._root._owner._handle._list(name or None)}
        return "array" if kinds.get(key) == 0 else "other"

    def _metadata(self, name: str) -> bytes | None:
        node = self._node(name)
        if node is not None:
            return node.array._zarr_metadata()
        if isinstance(self._root, Array):
            return None
        try:
            group = _join(self._root._key.strip("/"), name)
            text: bytes = self._root._owner._handle._zarr_metadata("/" + group)
        except NotFoundError:
            return None
        return text

    def _find(self, key: str) -> tuple[_Node | None, list[int]]:
        """Return the array and the index of a chunk."""
        found = _CHUNK.fullmatch(key)
        node = self._node(found["node"] or "") if found else None
        return node, [int(n) for n in found["index"].split("/")[1:]] if found else []

    def _read(self, key: str) -> bytes | None:
        if key == _METADATA or key.endswith("/" + _METADATA):
            return self._metadata(key[: -len(_METADATA)].rstrip("/"))
        node, index = self._find(key)
        return node.chunk(index) if node else None

    # ---- Reading ------------------------------------------------------------------------

    async def get(
        self,
        key: str,
        prototype: BufferPrototype | None = None,
        byte_range: stores.ByteRequest | None = None,
    ) -> Buffer | None:
        if self._is_far or key.endswith(_METADATA):
            value = await asyncio.to_thread(self._read, key)
        else:
            node, index = self._find(key)
            if node is None or node.is_passed_on:  # a thread would cost more than the read
                value = node.chunk(index) if node else None
            else:
                value = await asyncio.to_thread(node.chunk, index)
        return self._buffer(value, prototype, byte_range)

    def get_sync(
        self,
        key: str,
        *,
        prototype: BufferPrototype | None = None,
        byte_range: stores.ByteRequest | None = None,
    ) -> Buffer | None:
        return self._buffer(self._read(key), prototype, byte_range)

    @staticmethod
    def _buffer(
        value: bytes | None,
        prototype: BufferPrototype | None,
        byte_range: stores.ByteRequest | None,
    ) -> Buffer | None:
        if value is None:
            return None
        prototype = prototype or default_buffer_prototype()
        return prototype.buffer.from_bytes(_cut(value, byte_range))

    async def get_partial_values(
        self,
        prototype: BufferPrototype,
        key_ranges: Iterable[tuple[str, stores.ByteRequest | None]],
    ) -> list[Buffer | None]:
        return list(await asyncio.gather(*(self.get(k, prototype, r) for k, r in key_ranges)))

    async def exists(self, key: str) -> bool:
        return await self.get(key) is not None

    # ---- Listing ------------------------------------------------------------------------

    def _names(self) -> Iterator[tuple[str, bool]]:
        """Yield the names of all groups (False) and arrays (True)."""
        if isinstance(self._root, Array):
            yield "", True
            return
        yield "", False
        group = self._root._key
        for key, kind, *_ in self._root._owner._handle._list(group or None):
            name = key[len(group) + 1 :]
            if name and kind < 2:
                yield name, kind == 0

    def _keys(self, prefix: str) -> Iterator[str]:
        for name, is_array in self._names():
            below = f"{name}/" if name else ""
            node = self._presented(name) if is_array else None
            is_apart = not (below.startswith(prefix) or prefix.startswith(below))
            if is_apart or (is_array and node is None):
                continue
            if (below + _METADATA).startswith(prefix):
                yield below + _METADATA
            for index in np.ndindex(node.grid) if node else ():
                key = below + _join("c", *map(str, index))
                if key.startswith(prefix) and node and node.chunk(index) is not None:
                    yield key

    def _presented(self, name: str) -> _Node | None:
        """Open an array that has metadata in Zarr; None: its dtype has no name there."""
        try:
            self._metadata(name)
            return self._node(name)
        except UnsupportedError:
            return None

    def _children(self, name: str) -> set[str]:
        nodes = dict(self._names())
        below = f"{name}/" if name else ""
        if name not in nodes:
            return {key[len(below) :].split("/")[0] for key in self._keys(below)}
        if nodes[name]:
            return {_METADATA, "c"} if self._presented(name) else set()
        found = {_METADATA}
        for node, is_array in nodes.items():
            child = node[len(below) :]
            is_child = node.startswith(below) and child != "" and "/" not in child
            if is_child and (not is_array or self._presented(node)):
                found.add(child)
        return found

    async def list(self) -> AsyncIterator[str]:
        async for key in self.list_prefix(""):
            yield key

    async def list_prefix(self, prefix: str) -> AsyncIterator[str]:
        for key in self._keys(prefix):
            yield key

    async def list_dir(self, prefix: str) -> AsyncIterator[str]:
        for name in sorted(self._children(prefix.strip("/"))):
            yield name

    # ---- Writing ------------------------------------------------------------------------

    def _refuse(self) -> NoReturn:
        raise ValueError(
            "a store of caterva is read-only: caterva.open and open_tree write arrays"
        )

    async def set(self, key: str, value: Buffer) -> None:
        self._refuse()

    async def delete(self, key: str) -> None:
        self._refuse()


def _reopened(
    place: str, remote: Remote | Mapping[str, Any] | None, options: _options.Members
) -> Store:
    return Store(place, remote=remote, **options)

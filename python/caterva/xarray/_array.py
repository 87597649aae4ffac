"""Variables in a tree, read on access."""

from __future__ import annotations

import itertools
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import numpy as np
import xarray as xr
from xarray.backends.common import BackendArray
from xarray.core import indexing

from .. import _keys
from .._array import Array
from .._async import begin_plan
from .._errors import StaleError
from .._functions import open as open_array
from .._identity import check, state_of
from .._system import call_in_child, open_files_limit
from .._tree import Tree
from . import _items

_VECTORIZED = indexing.IndexingSupport.VECTORIZED


# ---- Open arrays ----------------------------------------------------------------------------

_open: OrderedDict[tuple[int, str], Array] = OrderedDict()  # least recently used first
_lock = threading.RLock()
_numbers = itertools.count()


_LEAST = 16  # this many arrays may always be open
_limit = _LEAST  # the last result of _most


def _most() -> int:
    """Return how many arrays may be open: each has a file, and descriptors are few."""
    limit = open_files_limit()
    return max(_LEAST, min(1024, limit // 4))


def _keep(place: tuple[int, str], array: Array) -> Array:
    global _limit
    with _lock:
        array = _open.setdefault(place, array)
        _open.move_to_end(place)
        if len(_open) > _limit or len(_open) % _LEAST == 0:
            _limit = _most()
        # Readers hold a reference to an evicted array until they have finished.
        gone = [_open.popitem(last=False)[1] for _ in range(len(_open) - _limit)]
    del gone
    return array


def _find(place: tuple[int, str]) -> Array | None:
    with _lock:
        array = _open.get(place)
        if array is not None:
            _open.move_to_end(place)
        return array


def _forget(number: int) -> None:
    with _lock:
        gone = [_open.pop(place) for place in [p for p in _open if p[0] == number]]
    del gone


def _renew_lock() -> None:
    """Replace the lock, which a thread of the parent may hold during a fork."""
    global _lock
    _lock = threading.RLock()


call_in_child(_renew_lock)


class Source:
    """The arrays of a tree by key, opened on access.

    It pickles as the tree's path. An array that is opened again must be at the state from which
    its variable was made.
    """

    def __init__(self, path: str, remote: Any = None) -> None:
        self.__setstate__((path, remote))

    def keep(self, key: str, array: Array) -> None:
        """Keep an array that is already open."""
        _keep((self._number, key), array)

    def array(self, key: str, state: bytes) -> Array:
        """Return the array of that key, at that state."""
        place = (self._number, key)
        array = _find(place)
        return _keep(place, self._open(key, state)) if array is None else array

    def _open(self, key: str, state: bytes) -> Array:
        place = f"{self.path}::{key}"
        return check(open_array(place, remote=self._remote), state, place, "opened")

    def close(self) -> None:
        """Release the arrays; they are opened again on access."""
        _forget(self._number)

    def __getstate__(self) -> tuple[str, Any]:
        return self.path, self._remote

    def __setstate__(self, state: tuple[str, Any]) -> None:
        self.path, self._remote = state
        self._number = next(_numbers)
        weakref.finalize(self, _forget, self._number)


class Live:
    """The arrays of a tree that stays open."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree

    def array(self, key: str, state: bytes) -> Array:
        """Return the array of that key, with pending changes."""
        return self._tree._array(key)


class Variable(xr.Variable):
    """A variable whose Dask array is named by its state.

    `xarray.open_dataset` names it by path and time of the file alone. These can be the same for
    two commits of a directory, for two groups, and for two versions at a URL, and Dask computes
    arrays of one name only once.
    """

    __slots__ = ()

    def chunk(self, *arguments: Any, **how: Any) -> xr.Variable:  # type: ignore[override]
        """Return the variable as a Dask array."""
        words = how.get("from_array_kwargs") or {}
        if isinstance(name := words.get("name"), str):
            from dask.base import tokenize

            how["from_array_kwargs"] = {**words, "name": f"{name}-{tokenize(self._data)}"}
        return _as(xr.Variable, self).chunk(*arguments, **how)


def with_state(variable: xr.Variable) -> xr.Variable:
    """Return the variable with a Dask array named by its state, unless it is in memory."""
    if type(variable) is not xr.Variable or variable._in_memory:
        return variable
    return _as(Variable, variable)


def _as(kind: type[xr.Variable], v: xr.Variable) -> xr.Variable:
    data: Any = v._data
    return kind(v.dims, data, v.attrs, v.encoding, fastpath=True)


class CatervaArray(BackendArray):
    """The array that xarray indexes. It supports every indexer, and needs no lock."""

    __slots__ = ("_key", "_source", "_state", "_stored", "dtype", "shape")

    def __init__(self, source: Any, key: str, array: Array, mark: Any = None) -> None:
        self._source = source
        self._key = key
        self._state = state_of(array)
        self._stored = array.dtype
        self.shape = array.shape
        self.dtype = _items.dtype_of(array.dtype, mark)

    def get_array(self) -> Array:
        """Return the array."""
        array: Array = self._source.array(self._key, self._state)
        if array.shape != self.shape:
            raise StaleError(
                f"{array.path} has shape {array.shape}, but had {self.shape} when it was "
                "opened: open it again"
            )
        return array

    def _read(self, key: indexing.ExplicitIndexer, method: Callable[..., Any]) -> Any:
        items = indexing.explicit_indexing_adapter(key, self.shape, _VECTORIZED, method)
        return _items.as_read(np.asarray(items), self.dtype)

    def __getitem__(self, key: indexing.ExplicitIndexer) -> Any:
        array = self.get_array()
        if isinstance(key, indexing.VectorizedIndexer):
            return self._read(key, array.vindex.__getitem__)
        if isinstance(key, indexing.OuterIndexer):
            return self._read(key, array.oindex.__getitem__)
        return self._read(key, array.__getitem__)

    async def async_getitem(self, key: indexing.ExplicitIndexer) -> Any:
        """Read an index in the background, on the library's threads."""
        array = self.get_array()
        make = _keys.make_plan
        if isinstance(key, indexing.VectorizedIndexer):
            make = _keys.vector_plan
        elif isinstance(key, indexing.OuterIndexer):
            make = _keys.outer_plan

        async def read(sel: Any) -> Any:
            return await begin_plan(array, make(sel, array.shape))

        items = await indexing.async_explicit_indexing_adapter(
            key, self.shape, _VECTORIZED, read
        )
        return _items.as_read(np.asarray(items), self.dtype)

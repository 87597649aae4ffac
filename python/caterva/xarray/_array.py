"""A variable that is in a tree, read as it is indexed."""

from __future__ import annotations

import itertools
import os
import resource
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
from .._tree import Tree
from . import _items

_VECTORIZED = indexing.IndexingSupport.VECTORIZED


# ---- Arrays that are open -------------------------------------------------------------------

_open: OrderedDict[tuple[int, str], Array] = OrderedDict()  # the last used at the end
_lock = threading.RLock()
_numbers = itertools.count()


_LEAST = 16  # so many may always be open
_limit = _LEAST  # when the system was asked last


def _most() -> int:
    """Each has a file: the process has few descriptors, and data sets of thousands of files."""
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return max(_LEAST, min(1024, limit // 4))


def _keep(place: tuple[int, str], array: Array) -> Array:
    global _limit
    with _lock:
        array = _open.setdefault(place, array)
        _open.move_to_end(place)
        if len(_open) > _limit or len(_open) % _LEAST == 0:
            _limit = _most()
        # Who reads from one that goes has it until then.
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
    """A thread of the parent's may hold it while a child is forked."""
    global _lock
    _lock = threading.RLock()


os.register_at_fork(after_in_child=_renew_lock)


class Source:
    """The arrays of a tree by their keys, opened when they are wanted.

    It is pickled by the tree's path. An array that is opened again has to be at the state that
    its variable was made of.
    """

    def __init__(self, path: str, remote: Any = None) -> None:
        self.__setstate__((path, remote))

    def keep(self, key: str, array: Array) -> None:
        """An array that is open already."""
        _keep((self._number, key), array)

    def array(self, key: str, state: bytes) -> Array:
        """The array of that key, at that state."""
        place = (self._number, key)
        array = _find(place)
        return _keep(place, self._open(key, state)) if array is None else array

    def _open(self, key: str, state: bytes) -> Array:
        place = f"{self.path}::{key}"
        return check(open_array(place, remote=self._remote), state, place, "opened")

    def close(self) -> None:
        """Let go of the arrays; they are opened again when they are wanted."""
        _forget(self._number)

    def __getstate__(self) -> tuple[str, Any]:
        return self.path, self._remote

    def __setstate__(self, state: tuple[str, Any]) -> None:
        self.path, self._remote = state
        self._number = next(_numbers)
        weakref.finalize(self, _forget, self._number)


class Live:
    """The same of a tree that is open."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree

    def array(self, key: str, state: bytes) -> Array:
        """The array of that key, with what is pending."""
        return self._tree._array(key)


class Variable(xr.Variable):
    """A variable whose Dask array is named by its state.

    `xarray.open_dataset` names it by path and time of the file alone. These are the same for
    two commits of a directory, for groups in a path, and for two versions behind a URL, and
    Dask computes two arrays of one name as one.
    """

    __slots__ = ()

    def chunk(self, *arguments: Any, **how: Any) -> xr.Variable:  # type: ignore[override]
        """The same, read by Dask."""
        words = how.get("from_array_kwargs") or {}
        if isinstance(name := words.get("name"), str):
            from dask.base import tokenize

            how["from_array_kwargs"] = {**words, "name": f"{name}-{tokenize(self._data)}"}
        return _as(xr.Variable, self).chunk(*arguments, **how)


def with_state(variable: xr.Variable) -> xr.Variable:
    """The variable as one whose Dask array is named by its state, unless it is in memory."""
    if type(variable) is not xr.Variable or variable._in_memory:
        return variable
    return _as(Variable, variable)


def _as(kind: type[xr.Variable], v: xr.Variable) -> xr.Variable:
    data: Any = v._data
    return kind(v.dims, data, v.attrs, v.encoding, fastpath=True)


class CatervaArray(BackendArray):
    """What xarray reads from: any index of its is read as it stands, without a lock."""

    __slots__ = ("_key", "_source", "_state", "_stored", "dtype", "shape")

    def __init__(self, source: Any, key: str, array: Array, mark: Any = None) -> None:
        self._source = source
        self._key = key
        self._state = state_of(array)
        self._stored = array.dtype
        self.shape = array.shape
        self.dtype = _items.dtype_of(array.dtype, mark)

    def get_array(self) -> Array:
        """The array itself."""
        array: Array = self._source.array(self._key, self._state)
        if array.shape != self.shape:
            raise StaleError(
                f"{array.path} has the shape {array.shape}, and had {self.shape} when it was "
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
        """The same, read by the library's threads while others do their work."""
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

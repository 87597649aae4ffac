"""The arrays that are open through a tree."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._view import View

if TYPE_CHECKING:
    from ._array import Array

_MOST_READ = 32  # arrays of a tree that is read: each has a file


class Opened:
    """Arrays by their keys, with those among them that were never committed.

    Whoever changes it has the tree's lock.
    """

    __slots__ = ("_arrays", "_new")

    def __init__(self) -> None:
        self._arrays: dict[str, Array] = {}
        self._new: set[str] = set()

    def get(self, key: str) -> Array | None:
        """The array of that key, if it is still open."""
        array = self._arrays.get(key)
        return None if array is None or array.closed else array

    def keep(self, key: str, array: Array, *, of_few: bool) -> None:
        """Remember the array; `of_few`: the eldest is forgotten where there are many."""
        if of_few and len(self._arrays) >= _MOST_READ:
            del self._arrays[next(iter(self._arrays))]
        self._arrays[key] = array

    def keep_new(self, key: str, array: Array) -> None:
        """Remember an array that was just made."""
        self._new.add(key)  # first: an interruption must not make it one that was committed
        self._arrays[key] = array

    def all(self) -> list[Array]:
        """Those that are still open."""
        return [array for array in self._arrays.values() if not array.closed]

    def by_key(self) -> dict[str, Array]:
        """Those that are still open, by their keys."""
        return {k: a for k, a in tuple(self._arrays.items()) if not a.closed}

    def written(self) -> tuple[Array, ...]:
        """Those that are open for writing."""
        return tuple(array for array in self.all() if array.writable)

    def is_new(self, key: str) -> bool:
        """Whether it is an array that was never committed, nor closed or discarded."""
        return key in self._new and self.get(key) is not None

    def new_below(self, key: str) -> list[str]:
        """The new arrays in the group and below it."""
        return [k for k in tuple(self._new) if k.startswith(key + "/") and self.is_new(k)]

    def committed(self) -> None:
        """None of them is new any more."""
        self._new.clear()

    def is_source(self, data: Any, key: str) -> bool:
        """Whether the data are those of the array that is open at the key."""
        old = self._arrays.get(key)
        below = data._arrays if isinstance(data, View) else (data,)
        return old is not None and any(array is old for array in below)

    def drop(self, key: str) -> None:
        """Drop what is pending in the arrays of a key, and below it."""
        if self.get(key) is not None:  # nothing is below an array
            below = [key]
        else:
            below = [k for k in self._arrays if k.startswith(key + "/")]
        for other in below:
            self._arrays[other].discard()  # first: one without a name would be committed
            self._new.discard(other)
            del self._arrays[other]

    def drop_new(self) -> None:
        """Drop the arrays that are new."""
        for key in tuple(self._new):
            self.drop(key)

    def close(self, commit: bool) -> None:
        """Close all of them."""
        for array in self.all():
            array._close(commit and array.writable)
        self.forget()

    def forget(self) -> None:
        """Those that somebody uses stay open."""
        self._arrays.clear()
        self._new.clear()

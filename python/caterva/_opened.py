"""The open arrays of a tree."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._view import View

if TYPE_CHECKING:
    from ._array import Array

_MOST_READ = 32  # arrays that a tree for reading keeps open: each has a file


class Opened:
    """Open arrays by key, and which of them were never committed.

    Methods that change it are called with the tree's lock.
    """

    __slots__ = ("_arrays", "_new")

    def __init__(self) -> None:
        self._arrays: dict[str, Array] = {}
        self._new: set[str] = set()

    def get(self, key: str) -> Array | None:
        """Return the array of that key if it is still open."""
        array = self._arrays.get(key)
        return None if array is None or array.closed else array

    def keep(self, key: str, array: Array, *, of_few: bool) -> None:
        """Keep the array. With `of_few`, forget the oldest one if there are many."""
        if of_few and len(self._arrays) >= _MOST_READ:
            del self._arrays[next(iter(self._arrays))]
        self._arrays[key] = array

    def keep_new(self, key: str, array: Array) -> None:
        """Keep an array that was just created."""
        self._new.add(key)  # first: after an interruption it must not count as committed
        self._arrays[key] = array

    def all(self) -> list[Array]:
        """Return the arrays that are still open."""
        return [array for array in self._arrays.values() if not array.closed]

    def by_key(self) -> dict[str, Array]:
        """Return the arrays that are still open, by key."""
        return {k: a for k, a in tuple(self._arrays.items()) if not a.closed}

    def written(self) -> tuple[Array, ...]:
        """Return the arrays that are open for writing."""
        return tuple(array for array in self.all() if array.writable)

    def is_new(self, key: str) -> bool:
        """Whether an open array was never committed."""
        return key in self._new and self.get(key) is not None

    def new_below(self, key: str) -> list[str]:
        """Return the keys of new arrays in the group and below it."""
        return [k for k in tuple(self._new) if k.startswith(key + "/") and self.is_new(k)]

    def committed(self) -> None:
        """Record that no array is new any more."""
        self._new.clear()

    def is_source(self, data: Any, key: str) -> bool:
        """Whether `data` is, or is a view of, the array that is open at the key."""
        old = self._arrays.get(key)
        below = data._arrays if isinstance(data, View) else (data,)
        return old is not None and any(array is old for array in below)

    def drop(self, key: str) -> None:
        """Drop pending changes of the array at a key, or of the arrays below it."""
        if self.get(key) is not None:  # nothing is below an array
            below = [key]
        else:
            below = [k for k in self._arrays if k.startswith(key + "/")]
        for other in below:
            self._arrays[other].discard()  # first: deleting the last reference would commit it
            self._new.discard(other)
            del self._arrays[other]

    def drop_new(self) -> None:
        """Drop the arrays that are new."""
        for key in tuple(self._new):
            self.drop(key)

    def close(self, commit: bool) -> None:
        """Close all arrays."""
        for array in self.all():
            array._close(commit and array.writable)
        self.forget()

    def forget(self) -> None:
        """Forget all arrays. Those that are still referenced stay open."""
        self._arrays.clear()
        self._new.clear()

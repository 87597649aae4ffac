"""Locks that work after a fork."""

from __future__ import annotations

import threading
import weakref

from ._system import call_in_child


class Lock:
    """A reentrant lock for ``with``. In a forked child it is free, unless the thread that
    forked held it."""

    __slots__ = ("__weakref__", "_lock")

    def __init__(self) -> None:
        self._lock = threading.RLock()
        _locks.add(self)

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *unused: object) -> None:
        self._lock.release()


_locks: weakref.WeakSet[Lock] = weakref.WeakSet()


def _renew() -> None:
    for lock in tuple(_locks):
        if lock._lock.acquire(blocking=False):
            lock._lock.release()
        else:
            lock._lock = threading.RLock()


call_in_child(_renew)

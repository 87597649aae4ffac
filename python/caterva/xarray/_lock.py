"""A lock for saving: one process saves to a path at a time, even if nothing exists there."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from collections.abc import Iterator

from .. import _system
from .._errors import Status, refusal


def _is_at(file: io.FileIO, path: str) -> bool:
    """Whether the path still refers to the open file."""
    try:
        return os.path.samestat(os.fstat(file.fileno()), os.lstat(path))
    except FileNotFoundError:
        return False


def _open(path: str, flags: int) -> int:
    return os.open(path, flags | _system.NO_LINK, 0o666)


def _take(path: str, place: str, taken: list[io.FileIO]) -> None:
    """Open and lock the lock's file, and append it to `taken`. Retry if its last owner has
    deleted it meanwhile. If an interruption drops the last reference to a file object, it
    is closed and so unlocked; a descriptor would stay open."""
    while True:
        file = io.FileIO(path, "a+", opener=_open)
        try:
            _system.lock(file)
        except BlockingIOError:
            file.close()
            message = f"{place} is being saved by another process or thread"
            raise refusal(Status.EBUSY, message, place) from None
        if _is_at(file, path):
            taken.append(file)
            return
        file.close()


@contextlib.contextmanager
def saving(place: str) -> Iterator[None]:
    """Lock the place for saving; `BusyError` if another process or thread is saving to it.

    The lock is on a hidden file beside the place, because the place may not exist yet and is
    replaced by a rename. A forked child does not release it.
    """
    folder, name = os.path.split(os.path.realpath(place))
    path = os.path.join(folder, f".{name}.lock")
    process = os.getpid()
    taken: list[io.FileIO] = []
    try:
        _take(path, place, taken)
        yield
    finally:
        for file in taken:
            if os.getpid() == process:
                with contextlib.suppress(OSError):
                    os.unlink(path)
                with contextlib.suppress(OSError):  # forked children share the open file
                    _system.unlock(file)
            file.close()
            if sys.platform == "win32":  # which deletes no open file
                with contextlib.suppress(OSError):
                    os.unlink(path)

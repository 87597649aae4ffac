"""One process saves to a path at a time, also where nothing is yet."""

from __future__ import annotations

import contextlib
import fcntl
import io
import os
from collections.abc import Iterator

from .._errors import Status, refusal


def _is_at(file: io.FileIO, path: str) -> bool:
    """Whether the path still names the open file."""
    try:
        return os.path.samestat(os.fstat(file.fileno()), os.lstat(path))
    except FileNotFoundError:
        return False


def _open(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW, 0o666)


def _take(path: str, place: str, taken: list[io.FileIO]) -> None:
    """Append the lock's file, open and locked, to `taken`: the last owner may have removed it
    meanwhile. A file object, unlike a number, is closed and so unlocked when an interruption
    loses it."""
    while True:
        file = io.FileIO(path, "a+", opener=_open)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
            message = f"{place} is being written elsewhere"
            raise refusal(Status.EBUSY, message, place) from None
        if _is_at(file, path):
            taken.append(file)
            return
        file.close()


@contextlib.contextmanager
def saving(place: str) -> Iterator[None]:
    """Hold the place against others who save to it; `BusyError` when another process or thread
    does.

    The lock is that of a hidden file beside the place: it outlasts the rename that publishes
    what was written, and it is there before the place is. A child of fork leaves it alone.
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
                with contextlib.suppress(OSError):  # children of fork share the opening
                    fcntl.flock(file, fcntl.LOCK_UN)
            file.close()

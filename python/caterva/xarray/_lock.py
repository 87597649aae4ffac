"""One process saves to a path at a time, also where nothing is yet."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator

from .._errors import Status, refusal


def _is_at(file: int, path: str) -> bool:
    """Whether the path still names the open file."""
    try:
        return os.path.samestat(os.fstat(file), os.lstat(path))
    except FileNotFoundError:
        return False


def _take(path: str, place: str) -> int:
    """The lock's file, open and locked: who had it before may have removed it meanwhile."""
    while True:
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_at(file, path):
                return file
        except BlockingIOError:
            os.close(file)
            message = f"{place} is being written elsewhere"
            raise refusal(Status.EBUSY, message, place) from None
        except BaseException:
            os.close(file)
            raise
        os.close(file)


@contextlib.contextmanager
def saving(place: str) -> Iterator[None]:
    """Hold the place against others who save to it; `BusyError` when somebody does.

    The lock is that of a hidden file beside the place: it outlasts the rename that publishes
    what was written, and it is there before the place is. A child of fork leaves it alone.
    """
    folder, name = os.path.split(os.path.realpath(place))
    path = os.path.join(folder, f".{name}.lock")
    process = os.getpid()
    file = _take(path, place)
    try:
        yield
    finally:
        if os.getpid() == process:
            with contextlib.suppress(OSError):
                os.unlink(path)
            with contextlib.suppress(OSError):  # children of fork share the opening
                fcntl.flock(file, fcntl.LOCK_UN)
        os.close(file)

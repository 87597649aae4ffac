"""What differs between systems: reads at a position, forks, locks and limits of files."""

from __future__ import annotations

import io
import os
import sys
import threading
from collections.abc import Callable

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl
    import resource

_reading = threading.Lock()

NO_LINK: int = getattr(os, "O_NOFOLLOW", 0)
"""The flag of os.open that refuses a symbolic link, where there is one."""


def read_at(descriptor: int, n: int, position: int) -> bytes:
    """Return at most `n` bytes from a position of the file, whose own position stays."""
    if sys.platform != "win32":
        return os.pread(descriptor, n, position)
    with _reading:
        before = os.lseek(descriptor, 0, os.SEEK_CUR)
        try:
            os.lseek(descriptor, position, os.SEEK_SET)
            return os.read(descriptor, n)
        finally:
            os.lseek(descriptor, before, os.SEEK_SET)


def call_in_child(function: Callable[[], None]) -> None:
    """Call the function in each forked child. Windows has no forks."""
    if sys.platform != "win32":
        os.register_at_fork(after_in_child=function)


def lock(file: io.FileIO) -> None:
    """Take the exclusive lock of the file; `BlockingIOError` if another one holds it."""
    if sys.platform == "win32":
        file.seek(0)
        try:
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        except OSError as error:  # PermissionError; in wine it has no errno
            raise BlockingIOError(*error.args) from None
    else:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def unlock(file: io.FileIO) -> None:
    """Release the lock of the file. Windows releases it when the file is closed."""
    if sys.platform != "win32":
        fcntl.flock(file, fcntl.LOCK_UN)


def open_files_limit() -> int:
    """Return how many files this process may have open, or the resource module's infinity."""
    if sys.platform == "win32":
        return 8192
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]

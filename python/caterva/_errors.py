"""Exceptions: what Python expects, with the library's code and position."""

from __future__ import annotations

import enum


class Status(enum.IntEnum):
    """What the library says of a call; the `code` of an `Error`."""

    OK = 0
    EINVAL = -1
    ENOMEM = -2
    EIO = -3
    ECORRUPT = -4
    EUNSUPPORTED = -5
    EBUSY = -6
    EEXIST = -7
    ENOTFOUND = -8
    ESTOPPED = -9
    ESHORT = -10
    EREADONLY = -11
    ERANGE = -12
    EDTYPE = -13
    ECAST = -14
    ESHAPE = -15
    EROLLBACK = -16
    ESTALE = -17
    EPIPELINE = -18


class Error(Exception):
    """Anything that the library refuses or fails at.

    Attributes
    ----------
    code : Status
        Which kind of failure.
    position : int or None
        The byte of the frame where it was noticed.
    """

    code: Status | int = Status.EINVAL
    position: int | None = None


class InvalidError(Error, ValueError):
    """An argument breaks a documented rule."""


class OutOfMemoryError(Error, MemoryError):
    """Memory ran out; nothing was changed."""


class StoreError(Error, OSError):
    """The system failed; ``errno`` says how."""


class CorruptError(Error, OSError):
    """The bytes are no valid array."""


class UnsupportedError(Error, NotImplementedError):
    """Valid, but more than this library does."""


class BusyError(Error, BlockingIOError):
    """Somebody else has it open."""


class ExistsError(Error, FileExistsError):
    """There is something already, and overwriting was not asked for."""


class NotFoundError(Error, FileNotFoundError):
    """No such file, attribute or metalayer."""


class StoppedError(Error):
    """A progress function said that it is enough."""


class ReadOnlyError(Error, ValueError):
    """The array was opened for reading only."""


class RangeError(Error, IndexError):
    """An index, box, axis or chunk number lies outside."""


class DTypeError(Error, TypeError):
    """The items' dtype is none that this call takes, or the cast is not allowed."""


class RollbackError(Error, RuntimeError):
    """A change failed half-way: roll back before the next one."""


class StaleError(Error, RuntimeError):
    """The array's shape changed since the view was made."""


_CLASSES: dict[int, type[Error]] = {
    Status.EINVAL: InvalidError,
    Status.ENOMEM: OutOfMemoryError,
    Status.EIO: StoreError,
    Status.ECORRUPT: CorruptError,
    Status.EUNSUPPORTED: UnsupportedError,
    Status.EBUSY: BusyError,
    Status.EEXIST: ExistsError,
    Status.ENOTFOUND: NotFoundError,
    Status.ESTOPPED: StoppedError,
    Status.ESHORT: InvalidError,
    Status.EREADONLY: ReadOnlyError,
    Status.ERANGE: RangeError,
    Status.EDTYPE: DTypeError,
    Status.ECAST: DTypeError,
    Status.ESHAPE: InvalidError,
    Status.EROLLBACK: RollbackError,
    Status.ESTALE: StaleError,
    Status.EPIPELINE: InvalidError,
}


def make(code: int, errno: int, position: int, message: str) -> Error:
    """The exception for a failed call."""
    error = _CLASSES.get(code, Error)(message)
    error.code = Status(code) if code in _CLASSES else code
    error.position = position if position >= 0 else None
    if isinstance(error, OSError) and errno:
        error.errno = errno
    return error

"""Exceptions: subclasses of Python's own, with the library's code and position."""

from __future__ import annotations

import enum
import errno
import functools
import os
from typing import Any

from ._shown import shown


class Status(enum.IntEnum):
    """Status codes of the library; the `code` of an `Error`."""

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
    """Base of all exceptions of this package.

    Subclasses of `OSError` also have ``errno``, ``strerror`` and ``filename``. `filename` is an
    absolute path, or a URL without user and query; None for an array in memory.

    Attributes
    ----------
    code : Status
        The kind of failure.
    position : int or None
        Position in the frame, in bytes, where the failure was detected.
    """

    code: Status | int = Status.EINVAL
    position: int | None = None

    def __str__(self) -> str:
        return str(self.args[0]) if len(self.args) == 1 else super().__str__()

    def __reduce__(self) -> Any:
        if not isinstance(self, OSError):
            return super().__reduce__()
        message, place = str(self), self.filename
        position = -1 if self.position is None else self.position
        return make, (int(self.code), self.errno or 0, position, message, place)


class InvalidError(Error, ValueError):
    """An argument breaks a documented rule."""


class OutOfMemoryError(Error, MemoryError):
    """An allocation failed; nothing was changed."""


class StoreError(Error, OSError):
    """The system or a server failed; ``errno`` has the reason, EIO if the system has no number
    for it. Where Python has a class for that number, such as `PermissionError`, the exception
    is an instance of that, too."""


class CorruptError(Error, OSError):
    """The bytes are not a valid array."""


class DamagedValueError(CorruptError, ValueError):
    """The bytes of an attribute are not a valid value."""


class UnsupportedError(Error, NotImplementedError):
    """The file or call is valid, but this library does not support it."""


class BusyError(Error, BlockingIOError):
    """The array or tree is in use by another handle, process or call."""


class ExistsError(Error, FileExistsError):
    """Something exists already and may not be replaced."""


class NotFoundError(Error, FileNotFoundError):
    """No such file, attribute or metalayer."""


class StoppedError(Error):
    """A progress function stopped the call, or a background read was cancelled."""


class ReadOnlyError(Error, ValueError):
    """The array was opened for reading only."""


class RangeError(Error, IndexError):
    """An index, box, axis or chunk number is out of range."""


class DTypeError(Error, TypeError):
    """This call does not accept the dtype, or the cast is not allowed."""


class RollbackError(Error, RuntimeError):
    """A change failed half-way: roll back before the next change."""


class StaleError(Error, RuntimeError):
    """The array has changed: its shape since a view was made, or chunks that a part wrote."""


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


# errno for errors that no system call reported, as other programs expect it.
_ERRNOS: dict[int, int] = {
    Status.EIO: errno.EIO,
    Status.ECORRUPT: errno.EBADMSG,
    Status.EBUSY: errno.EAGAIN,
    Status.EEXIST: errno.EEXIST,
    Status.ENOTFOUND: errno.ENOENT,
}


@functools.cache
def _store_class(number: int) -> type[Error]:
    """Return StoreError, or a subclass that also inherits Python's class for that errno."""
    theirs = type(OSError(number, ""))
    if theirs is OSError:
        return StoreError
    words = {"__doc__": StoreError.__doc__, "__module__": __name__}
    return type("StoreError", (StoreError, theirs), words)


def _placed(message: str, place: str | None) -> str:
    """Prefix a message about damage with the file's name, unless the message has it."""
    if place is None or place == "mem:":
        return message
    place = shown(place)
    name = os.path.basename(place.rstrip("/"))
    named = (name if "." in name else place) in message
    return message if named else f"{place}: {message}"


def make(
    code: int, number: int, position: int, message: str, place: str | None = None
) -> Error:
    """Make the exception for a failed call; `number` is the system's errno, or 0."""
    kind = _store_class(number) if code == Status.EIO else _CLASSES.get(code, Error)
    if code == Status.ECORRUPT:
        message = _placed(message, place)
    error = kind(message)
    error.code = Status(code) if code in _CLASSES else code
    error.position = position if position >= 0 else None
    if isinstance(error, OSError):
        number = number or _ERRNOS.get(code, 0)
        error.errno = number or None
        error.strerror = os.strerror(number) if number else None
        error.filename = None if place is None or place == "mem:" else shown(place)
    return error


def refusal(status: Status, message: str, place: str) -> Error:
    """Make the exception for a call that this package refuses itself."""
    return make(status, 0, -1, message, place)


def damaged_value(message: str, place: str | None) -> DamagedValueError:
    """Make the exception for an attribute that cannot be decoded."""
    error = DamagedValueError(message)
    error.code = Status.ECORRUPT
    error.errno = errno.EBADMSG
    error.strerror = os.strerror(errno.EBADMSG)
    error.filename = None if place is None else shown(place)
    return error

"""Sources of frames: open files, and files that fsspec reads."""

from __future__ import annotations

import importlib
import io
import os
import threading
import uuid
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeAlias

from ._errors import Status, make
from ._places import MAGIC_OF_TREES, is_remote
from ._shown import shown
from ._system import read_at

SPOKEN = ("http", "https", "s3")  # read by the library itself

_Range: TypeAlias = tuple[int, int]


class FileLike(Protocol):
    """An open binary file, or something that reads like one."""

    def read(self, n: int = ..., /) -> Any:
        """Return at most `n` bytes."""

    def seek(self, position: int, whence: int = ..., /) -> Any:
        """Go to a position."""


class Source(Protocol):
    """The interface from which the extension reads a frame."""

    @property
    def name(self) -> str:
        """Name for messages; also `Array.path`."""

    def size(self) -> int:
        """Return the number of bytes."""

    def read(self, position: int, n: int) -> bytes:
        """Return at most `n` bytes; none at the end."""

    def read_many(self, ranges: Sequence[_Range]) -> Sequence[bytes]:
        """Return the bytes of each (position, size)."""

    def renew(self) -> None:
        """In a forked child: replace locks that threads of the parent may hold."""

    def token(self) -> Any:
        """Return what identifies the source to Dask."""


class FileSource:
    """An open file. Its position is shared, so reads run one at a time."""

    def __init__(self, file: FileLike, token: str | None = None) -> None:
        self._file = file
        self._token = token or uuid.uuid4().hex
        self._lock = threading.Lock()
        if isinstance(file, io.TextIOBase):
            raise TypeError(f"{file!r} returns text: open it in binary mode")

    @property
    def name(self) -> str:
        """The file's name, if it has one."""
        name = getattr(self._file, "name", None)
        return name if isinstance(name, str) else f"<{type(self._file).__name__}>"

    def size(self) -> int:
        """Return the number of bytes."""
        with self._lock:
            self._file.seek(0, os.SEEK_END)
            return int(self._file.tell())  # type: ignore[attr-defined]

    def read(self, position: int, n: int) -> bytes:
        """Return at most `n` bytes; none at the end."""
        with self._lock:
            self._file.seek(position)
            found = self._file.read(n)
        if isinstance(found, str):
            raise TypeError(f"{self.name} returns text: open it in binary mode")
        if not isinstance(found, bytes | bytearray | memoryview):
            raise TypeError(f"{self.name} returns {type(found).__name__}, not bytes")
        return bytes(found)

    def read_many(self, ranges: Sequence[_Range]) -> list[bytes]:
        """Return the bytes of each (position, size)."""
        return [self.read(*each) for each in ranges]

    def renew(self) -> None:
        """Replace the lock, which a thread of the parent may hold."""
        self._lock = threading.Lock()

    def token(self) -> Any:
        """Return a token of this object and its pickles: the contents have no identity."""
        return self._token

    def __reduce__(self) -> tuple[Any, ...]:
        return FileSource, (self._file, self._token)


class DescriptorSource(FileSource):
    """A file descriptor, read at positions: several threads, and a forked child, which shares
    the file position, can read at the same time."""

    def size(self) -> int:
        """Return the number of bytes."""
        return os.fstat(self._file.fileno()).st_size  # type: ignore[attr-defined]

    def read(self, position: int, n: int) -> bytes:
        """Return at most `n` bytes; none at the end."""
        return read_at(self._file.fileno(), n, position)  # type: ignore[attr-defined]


class SystemSource:
    """A file of an fsspec file system. Asynchronous file systems are given many ranges in one
    call."""

    def __init__(self, system: Any, path: str) -> None:
        self._system = system
        self._path = path
        self._lock = threading.Lock()

    @property
    def name(self) -> str:
        """URL of the file."""
        return str(self._system.unstrip_protocol(self._path))

    def size(self) -> int:
        """Return the number of bytes."""
        size = self._system.size(self._path)
        if size is None:
            raise OSError(f"{self.name} does not report its length")
        return int(size)

    def read(self, position: int, n: int) -> bytes:
        """Return at most `n` bytes; none at the end."""
        if self._system.async_impl:
            found: bytes = self._system.cat_file(self._path, position, position + n)
            return found
        with self._lock:
            found = self._system.cat_file(self._path, position, position + n)
        return found

    def read_many(self, ranges: Sequence[_Range]) -> Sequence[bytes]:
        """Return the bytes of each (position, size)."""
        if not self._system.async_impl:
            return [self.read(*each) for each in ranges]
        starts = [position for position, _ in ranges]
        ends = [position + n for position, n in ranges]
        paths = [self._path] * len(ranges)
        found: list[bytes] = self._system.cat_ranges(paths, starts, ends, on_error="raise")
        return found

    def renew(self) -> None:
        """Replace the lock, which a thread of the parent may hold."""
        self._lock = threading.Lock()

    def token(self) -> Any:
        """Return the file system's token and the path."""
        return str(self._system._fs_token), self._path

    def __reduce__(self) -> tuple[Any, ...]:
        return SystemSource, (self._system, self._path)


# ---- Choosing a source --------------------------------------------------------------------


def scheme_of(place: str) -> str | None:
    """Return the scheme of a URL; None for a path."""
    return place.partition("://")[0].lower() if is_remote(place) else None


def is_file(x: Any) -> bool:
    """Whether `x` is a file object, not a path."""
    if isinstance(x, str | bytes):
        return False
    if isinstance(x, os.PathLike) and getattr(x, "compression", None) is None:
        return False
    return (hasattr(x, "read") and hasattr(x, "seek")) or _is_unopened(x)


def _is_unopened(x: Any) -> bool:
    """Whether `x` is the result of ``fsspec.open``."""
    return hasattr(x, "fs") and hasattr(x, "path") and hasattr(x, "open")


def source_of_file(file: Any) -> Source:
    """Make a source for an object that `is_file` accepts."""
    if _is_unopened(file) and not hasattr(file, "read"):
        if getattr(file, "compression", None) is None:
            return SystemSource(file.fs, file.path)
        file = file.open()
    if hasattr(file, "fs") and isinstance(getattr(file, "path", None), str):
        if getattr(file, "compression", None) is None:
            return SystemSource(file.fs, file.path)
    elif type(file) is io.BufferedReader and type(file.raw) is io.FileIO:
        return DescriptorSource(file)
    return FileSource(file)


def source_of_url(url: str, storage_options: Mapping[str, Any]) -> Source | None:
    """Make a source for a URL that the library does not read; None for others and paths."""
    scheme = scheme_of(url)
    if scheme is None or scheme in SPOKEN:
        if storage_options:
            raise TypeError(
                "storage_options are for URLs that fsspec opens: "
                f"{'a path has none' if scheme is None else f'{scheme}:// takes remote='}"
            )
        return None
    try:
        fsspec = importlib.import_module("fsspec.core")  # has no types
    except ImportError:
        raise make(
            Status.EUNSUPPORTED,
            0,
            -1,
            f"{scheme}:// needs fsspec, which is not installed: only {', '.join(SPOKEN)} are "
            "read without it",
            url,
        ) from None
    return SystemSource(*fsspec.url_to_fs(url, **storage_options))


def refuse_words(place: str | None, remote: object, storage_options: object = None) -> None:
    """Refuse options that are not for this kind of URL; `place` is None for a file object."""
    if place is None:
        if remote is not None or storage_options:
            word = "remote" if remote is not None else "storage_options"
            raise TypeError(f"{word} is for URLs: a file object takes no such option")
        return
    scheme = scheme_of(place)
    if remote is not None and scheme not in SPOKEN:
        of = "a path has none" if scheme is None else f"{scheme}:// takes storage_options="
        raise TypeError(f"remote is for URLs of {', '.join(SPOKEN)}: {of}")


def refuse_write(place: str, mode: str) -> None:
    """Refuse to open a URL for writing."""
    if mode != "r" and is_remote(place):
        message = f"{shown(place)}: a URL can only be read"
        raise make(Status.EREADONLY, 0, -1, message, place)


def refuse_tree(place: str) -> None:
    """Refuse a tree at a URL that only fsspec reads."""
    scheme = scheme_of(place)
    if scheme is not None and scheme not in SPOKEN:
        raise make(
            Status.EUNSUPPORTED,
            0,
            -1,
            f"trees cannot be opened at {scheme}://: download {shown(place)}, or serve it by "
            f"{', '.join(SPOKEN)}",
            place,
        )


def is_tree_inside(source: Source) -> bool:
    """Whether the contents of a source are an archive."""
    return bytes(source.read(0, 4)) in MAGIC_OF_TREES

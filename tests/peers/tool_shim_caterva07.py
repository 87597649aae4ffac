"""The tests of python-caterva 0.7.3: its functions, implemented by ours. Its items had no
dtype, but a number of bytes: here they are strings of that length (`|S8`). An array that it
created in a file was complete at once and never closed: here it is closed, and opened for
reading."""

from __future__ import annotations

import enum
import sys
import weakref
from types import ModuleType
from typing import Any

import numpy as np

import caterva


class Codec(enum.Enum):
    BLOSCLZ, LZ4, LZ4HC, ZLIB, ZSTD = 0, 1, 2, 4, 5


class Filter(enum.Enum):
    NOFILTER, SHUFFLE, BITSHUFFLE, DELTA, TRUNC_PREC = range(5)


def _words(options: dict[str, Any]) -> tuple[str | None, dict[str, Any]]:
    out: dict[str, Any] = {k: tuple(options[k]) for k in ("chunks", "blocks") if k in options}
    path = options.get("urlpath")
    if path is not None:
        out["layout"] = "contiguous" if options.get("contiguous") else "sparse"
    if "meta" in options:
        out["metalayers"] = options["meta"]
    codec = options.get("codec", options.get("cname"))
    if codec is not None or "filters" in options:
        out["codec"] = (codec or Codec.LZ4).value
        out["level"] = options.get("clevel", options.get("complevel", 5))
        out["dictionary"] = bool(options.get("use_dict", options.get("usedict", False)))
        out["filters"] = [f.value for f in options.get("filters", [Filter.SHUFFLE])]
    return path, out


class Meta:
    """Metalayers; a new value is written to the file at once."""

    def __init__(self, array: caterva.Array) -> None:
        self.array = array

    def __contains__(self, name: str) -> bool:
        return name in self.array.metalayers

    def __getitem__(self, name: str) -> bytes:
        return self.array.metalayers[name]

    def __setitem__(self, name: str, content: bytes) -> None:
        with caterva.open(self.array.path, "r+") as writer:
            writer.metalayers[name] = content
        self.array.refresh()


class NDArray(caterva.Array):
    __slots__ = ()

    def to_buffer(self) -> bytes:
        return self[...].tobytes()

    def copy(self, *arguments: Any, **options: Any) -> Any:
        path, words = _words(options)
        return _as(caterva.Array.copy(self, path, **words))

    @property
    def meta(self) -> Any:
        return Meta(self)

    @property
    def codec(self) -> Codec:
        return Codec[self.info.codec.upper()]

    @property
    def clevel(self) -> int:
        return self.info.level

    @property
    def filters(self) -> list[Filter]:
        return [Filter[name.split(":")[0].upper()] for name in self.info.filters]


opened: list[weakref.ref[caterva.Array]] = []


def remove(path: str) -> None:
    """Our library does not delete an open array: it is closed first."""
    for array in [a for ref in opened if (a := ref()) is not None]:
        array.close()
    opened.clear()
    caterva.delete(path)


def _as(array: caterva.Array) -> Any:
    if array.path is not None and array.writable:
        array.close()
        array = caterva.open(array.path)
    array.__class__ = NDArray
    opened.append(weakref.ref(array))
    return array


def from_buffer(buffer: bytes, shape: Any, itemsize: int, **options: Any) -> Any:
    path, words = _words(options)
    items = np.frombuffer(buffer, f"S{itemsize}").reshape(shape)
    return _as(caterva.asarray(items, path, **words))


def asarray(x: Any, **options: Any) -> Any:
    path, words = _words(options)
    return _as(caterva.asarray(np.asarray(x), path, **words))


def empty(shape: Any, itemsize: int, **options: Any) -> Any:
    path, words = _words(options)
    return _as(caterva.empty(shape, f"S{itemsize}", path, **words))


def zeros(shape: Any, itemsize: int, **options: Any) -> Any:
    path, words = _words(options)
    return _as(caterva.zeros(shape, f"S{itemsize}", path, **words))


def full(shape: Any, fill_value: bytes, **options: Any) -> Any:
    path, words = _words(options)
    return _as(caterva.full(shape, fill_value, f"S{len(fill_value)}", path, **words))


def open(path: str) -> Any:
    return _as(caterva.open(path))


def copy(array: Any, **options: Any) -> Any:
    return array.copy(**options)


old = ModuleType("caterva")
for name in ("Codec", "Filter", "NDArray", "from_buffer", "asarray", "empty", "zeros", "full",
             "open", "copy", "remove"):  # fmt: skip
    setattr(old, name, globals()[name])
old.__path__ = caterva.__path__  # our own modules are found as before
sys.modules["caterva"] = old

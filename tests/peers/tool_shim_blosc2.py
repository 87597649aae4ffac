"""python-blosc2's tests: the functions of `blosc2` that they call are implemented by ours.

Codec parameters are translated where both have them; what only python-blosc2 has (lazy
expressions, super-chunks) is missing, and its tests are in cases.toml."""

from __future__ import annotations

import enum
import os
import sys
import weakref
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import numpy as np

import caterva

opened: list[weakref.ref[NDArray]] = []

MAX_DIM, IS_WASM = caterva._caterva.MAX_WRITE_DIMS, False


class Codec(enum.Enum):
    BLOSCLZ, LZ4, LZ4HC, ZLIB, ZSTD = 0, 1, 2, 4, 5


class Filter(enum.Enum):
    NOFILTER, SHUFFLE, BITSHUFFLE, DELTA, TRUNC_PREC = range(5)


@dataclass
class CParams:
    codec: Codec = Codec.ZSTD
    clevel: int = 5
    use_dict: bool = False
    nthreads: int = 1
    filters: list[Filter] = field(default_factory=lambda: [Filter.SHUFFLE])
    filters_meta: list[int] = field(default_factory=lambda: [0])


@dataclass
class DParams:
    nthreads: int = 1


_dparams: weakref.WeakKeyDictionary[NDArray, DParams] = weakref.WeakKeyDictionary()


def _params(cls: Any, given: Any) -> Any:
    return cls(**given) if isinstance(given, dict) else given


def _words(options: dict[str, Any]) -> tuple[str | None, dict[str, Any]]:
    """Path and options for our functions."""
    options = dict(options)
    options |= options.pop("storage", None) or {}
    path = options.pop("urlpath", None)
    mode = options.pop("mode", "a")
    if mode == "r":
        raise ValueError("an array cannot be made in mode 'r'")
    cparams = _params(CParams, options.pop("cparams", None))
    options.pop("dparams", None)
    out = {
        k: v
        for k, v in options.items()
        if k in ("chunks", "blocks") and v is not None and 0 not in v
    }
    if not options.pop("contiguous", True) and path is not None:
        out["layout"] = "sparse"
    if cparams is not None:
        out["codec"] = cparams.codec.value
        out["level"] = cparams.clevel
        out["dictionary"] = bool(cparams.use_dict)
        out["filters"] = [f.value for f in cparams.filters]
    if path is not None:
        out["overwrite"] = mode == "w"
    return path, out


class NDArray(caterva.Array):
    """Our array, also with python-blosc2's names."""

    __slots__ = ()

    def slice(self, key: Any, **options: Any) -> NDArray:
        _, words = _words(options)
        chunks = words.get("chunks")
        if chunks is not None and len(chunks) != np.empty(self.shape, "V0")[key].ndim:
            words = {}
        return _as(self.copy(sel=key, **words))

    def copy(self, *arguments: Any, **options: Any) -> NDArray:
        if "cparams" in options or "urlpath" in options:
            path, options = _words(options)
            arguments = (path,)
        return _as(caterva.Array.copy(self, *arguments, **options))

    def __getitem__(self, key: Any) -> Any:
        return self.fields[key] if isinstance(key, str) else super().__getitem__(key)

    def take(self, indices: Any, axis: int | None = None) -> NDArray:
        """Through our indices, of which theirs are a special case."""
        places = np.asarray(indices)
        if not places.size:
            places = places.astype(int)
        if places.dtype.kind not in "iu":
            raise TypeError("indices are integer numbers")
        if axis is None:
            n = self.size
            if np.any((places < -n) | (places >= n)):
                raise IndexError("out of bounds")
            return asarray(self.vindex[np.unravel_index(places % max(n, 1), self.shape)])
        axis = np.lib.array_utils.normalize_axis_index(axis, self.ndim)
        return asarray(self[(slice(None),) * axis + (places,)])

    def tobytes(self) -> bytes:
        return self[...].tobytes()

    @property
    def vlmeta(self) -> Any:
        return self.attrs

    @property
    def cparams(self) -> CParams:
        info = self.info
        names = [f.split(":")[0].upper() for f in info.filters]
        return CParams(
            Codec[info.codec.split(":")[0].upper()],
            info.level,
            info.dictionary,
            1,
            [Filter[n] for n in names],
            [0] * len(names),
        )

    @property
    def schunk(self) -> Any:
        return self

    @property
    def dparams(self) -> DParams:
        return _dparams.get(self, DParams())


def _as(array: caterva.Array, keep: bool = False) -> NDArray:
    """The same array with python-blosc2's names. An array that it creates in a file is complete
    at once and never closed: here it is closed, and opened for reading."""
    if array.path is not None and array.writable and not keep:
        array.close()
        array = caterva.open(array.path)
    array.__class__ = NDArray
    opened.append(weakref.ref(array))
    return array  # type: ignore[return-value]


def asarray(x: Any, **options: Any) -> NDArray:
    path, words = _words(options)
    return _as(caterva.asarray(np.asarray(x), path, **words))


def frombuffer(buffer: bytes, shape: Any, dtype: Any = "|u1", **options: Any) -> NDArray:
    return asarray(np.frombuffer(buffer, dtype).reshape(shape), **options)


def empty(shape: Any, dtype: Any = "|u1", **options: Any) -> NDArray:
    path, words = _words(options)
    return _as(caterva.empty(shape, dtype, path, **words))


def zeros(shape: Any, dtype: Any = float, **options: Any) -> NDArray:
    path, words = _words(options)
    return _as(caterva.zeros(shape, dtype, path, **words))


def full(shape: Any, fill_value: Any, dtype: Any = None, **options: Any) -> NDArray:
    path, words = _words(options)
    array = _as(caterva.full(shape, fill_value, dtype, path, **words))
    _dparams[array] = _params(DParams, options.get("dparams")) or DParams()
    return array


def take(array: NDArray, indices: Any, axis: int | None = None) -> NDArray:
    return array.take(indices, axis)


def take_along_axis(array: NDArray, indices: Any, axis: int) -> NDArray:
    key = list(np.ogrid[tuple(slice(n) for n in indices.shape)])
    key[axis] = indices
    return asarray(array.vindex[tuple(key)])


class NDField:
    """A field; it is written by name."""

    def __new__(cls, array: NDArray, name: str) -> Any:
        return array.fields[name]


def expand_dims(array: Any, axis: Any) -> Any:
    """Through a view."""
    axes = np.atleast_1d(axis)
    total = array.ndim + len(axes)
    new = {a % total for a in axes}
    key = tuple(None if d in new else slice(None) for d in range(total))
    return array.view[key]


def ones(shape: Any, dtype: Any = float, **options: Any) -> NDArray:
    return full(shape, 1, dtype, **options)


def arange(*arguments: Any, shape: Any = None, dtype: Any = None, **options: Any) -> NDArray:
    items = np.arange(*arguments, dtype=dtype)
    return asarray(items if shape is None else items.reshape(shape), **options)


def linspace(*arguments: Any, shape: Any = None, dtype: Any = None, **options: Any) -> NDArray:
    items = np.linspace(*arguments, dtype=dtype)
    return asarray(items if shape is None else items.reshape(shape), **options)


def copy(array: NDArray, **options: Any) -> NDArray:
    return array.copy(**options)


def open(path: Any, mode: str = "a", **options: Any) -> NDArray:
    """Their mode w opens an existing array for writing."""
    return _as(caterva.open(path, "r" if mode == "r" else "r+"), keep=True)


def remove_urlpath(path: Any) -> None:
    """Our library does not delete an open array: it is closed first."""
    for array in [a for ref in opened if (a := ref()) is not None]:
        if array.path is not None:
            array.close()
    opened.clear()
    if path is not None and os.path.lexists(path):
        caterva.delete(path)


sys.modules["blosc2"] = sys.modules[__name__]


class _Inner(ModuleType):
    """Inner functions that test files import by name; the cases that call them are skipped."""

    __path__: list[str] = []

    def __getattr__(self, name: str) -> None:
        if name.startswith("__"):
            raise AttributeError(name)


for name in ("ndarray", "indexing", "utils", "core", "schunk", "lazyexpr"):
    sys.modules[f"blosc2.{name}"] = _Inner(f"blosc2.{name}")

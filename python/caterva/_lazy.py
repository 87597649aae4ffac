"""Reductions of fields and converted arrays, slab by slab along the first axis."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from . import _dtypes
from ._operators import Operators
from ._plans import AnyArray
from ._reduce import axes_of, put_into

_SLAB_BYTES = 1 << 24


class Reduced(Operators):
    """Reductions of `Field` and `Astype`. Results and dtypes are those of NumPy.

    Sums and means of floats narrower than 8 bytes are computed in float64 and rounded once.
    """

    __slots__ = ()

    if TYPE_CHECKING:

        @property
        def shape(self) -> tuple[int, ...]: ...

        dtype: np.dtype[Any]

        def __getitem__(self, key: Any) -> Any: ...

    def to_numpy(self) -> AnyArray:
        """Read all items into a new NumPy array."""
        return np.asarray(self[...])

    def tolist(self) -> Any:
        """Read all items as nested lists of Python scalars."""
        return self.to_numpy().tolist()

    def min(
        self,
        axis: int | Sequence[int] | None = None,
        out: AnyArray | None = None,
        *,
        keepdims: bool = False,
    ) -> Any:
        """Minimum over all items, or along axes."""
        return _finish(_combined(self, np.minimum, axis), self, axis, None, out, keepdims)

    def max(
        self,
        axis: int | Sequence[int] | None = None,
        out: AnyArray | None = None,
        *,
        keepdims: bool = False,
    ) -> Any:
        """Maximum over all items, or along axes."""
        return _finish(_combined(self, np.maximum, axis), self, axis, None, out, keepdims)

    def sum(
        self,
        axis: int | Sequence[int] | None = None,
        dtype: npt.DTypeLike | None = None,
        out: AnyArray | None = None,
        *,
        keepdims: bool = False,
    ) -> Any:
        """Sum over all items, or along axes."""
        result = _combined(self, np.add, axis, _wide(_base(self)))
        given = np.zeros(1, _base(self)).sum().dtype if dtype is None else dtype
        return _finish(result, self, axis, given, out, keepdims)

    def mean(
        self,
        axis: int | Sequence[int] | None = None,
        dtype: npt.DTypeLike | None = None,
        out: AnyArray | None = None,
        *,
        keepdims: bool = False,
    ) -> Any:
        """Mean over all items, or along axes."""
        given = np.zeros(1, _base(self)).mean().dtype if dtype is None else dtype
        return _finish(_mean(self, axis), self, axis, given, out, keepdims)

    def var(
        self,
        axis: int | Sequence[int] | None = None,
        dtype: npt.DTypeLike | None = None,
        out: AnyArray | None = None,
        *,
        ddof: float = 0,
        keepdims: bool = False,
    ) -> Any:
        """Variance over all items, or along axes, in two passes."""
        given = np.zeros(1, _base(self)).var().dtype if dtype is None else dtype
        return _finish(_variance(self, axis, ddof), self, axis, given, out, keepdims)

    def std(
        self,
        axis: int | Sequence[int] | None = None,
        dtype: npt.DTypeLike | None = None,
        out: AnyArray | None = None,
        *,
        ddof: float = 0,
        keepdims: bool = False,
    ) -> Any:
        """Standard deviation over all items, or along axes, in two passes."""
        given = np.zeros(1, _base(self)).std().dtype if dtype is None else dtype
        result = np.sqrt(_variance(self, axis, ddof))
        return _finish(result, self, axis, given, out, keepdims)


def _base(x: Reduced) -> np.dtype[Any]:
    return x.dtype.base.newbyteorder("=")


def _wide(dtype: np.dtype[Any], ints: bool = False) -> np.dtype[Any] | None:
    """Return the dtype to accumulate in; None is the one that NumPy chooses."""
    if dtype.kind == "f" or _dtypes.is_foreign(dtype):
        return np.dtype("f8") if dtype.itemsize < 8 else dtype
    if dtype.kind == "c":
        return np.dtype("c16") if dtype.itemsize < 16 else dtype
    return np.dtype("f8") if ints and dtype.kind in "biu" else None


def _slabs(x: Reduced) -> Iterator[tuple[slice, AnyArray]]:
    """Yield parts along the first axis with their slices; one part if there is no such axis."""
    if not x.shape or x.shape[0] == 0:
        yield slice(None), np.asarray(x[...])
        return
    row = math.prod(x.shape[1:]) * x.dtype.base.itemsize
    step = max(1, _SLAB_BYTES // max(1, row))
    for at in range(0, x.shape[0], step):
        where = slice(at, min(at + step, x.shape[0]))
        yield where, np.asarray(x[where])


def _joined(ufunc: Any, parts: Iterator[AnyArray], axes: tuple[int, ...]) -> AnyArray:
    """Join the results of slabs: combine them if axis 0 is reduced, else concatenate."""
    if 0 not in axes:
        found = list(parts)
        return found[0] if len(found) == 1 else np.concatenate(found)
    result = next(parts)
    for part in parts:
        result = ufunc(result, part)
    return result


def _combined(
    x: Reduced, ufunc: Any, axis: Any, dtype: np.dtype[Any] | None = None
) -> AnyArray:
    axes = axes_of(axis, len(x.shape))
    how: Any = {"axis": axes, "keepdims": True}
    if ufunc is np.add:
        how["dtype"] = dtype
    parts = (np.asarray(ufunc.reduce(slab, **how)) for _, slab in _slabs(x))
    return _joined(ufunc, parts, axes)


def _count(x: Reduced, axis: Any) -> int:
    return math.prod(x.shape[a] for a in axes_of(axis, len(x.shape)))


def _mean(x: Reduced, axis: Any) -> AnyArray:
    total = _combined(x, np.add, axis, _wide(_base(x), ints=True))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.true_divide(total, _count(x, axis)))


def _variance(x: Reduced, axis: Any, ddof: float) -> AnyArray:
    if _base(x).kind not in "biufc" and not _dtypes.is_foreign(_base(x)):
        raise TypeError(f"items of dtype {_base(x)} have no variance")
    axes, middle = axes_of(axis, len(x.shape)), _mean(x, axis)
    wide = _wide(_base(x), ints=True)

    def squares() -> Iterator[AnyArray]:
        for where, slab in _slabs(x):
            near = middle if 0 in axes or not x.shape else middle[where]
            distance = np.abs(slab.astype(wide) - near)
            yield np.add.reduce(distance * distance, axis=axes, keepdims=True)

    total = _joined(np.add, squares(), axes)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.divide(total, max(_count(x, axis) - ddof, 0)))


def _finish(
    result: AnyArray,
    x: Reduced,
    axis: Any,
    dtype: npt.DTypeLike | None,
    out: AnyArray | None,
    keepdims: bool,
) -> Any:
    """Convert the result, remove reduced axes, and copy it to `out` if given."""
    if dtype is not None:
        result = result.astype(dtype)
    if not keepdims:
        result = result.squeeze(axis=axes_of(axis, len(x.shape))) if result.ndim else result
    if out is not None:
        return put_into(out, result)
    return result if result.ndim else result[()]

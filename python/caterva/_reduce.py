"""Statistics and reductions, computed block by block: the array is never in memory as a whole.

Sums and means of float16 and float32 are computed in float64 and rounded once, so they are
more precise than NumPy's. Times have minimum and maximum only.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from . import _boxes, _keys, _options, _plans
from ._errors import Status, make
from ._plans import AnyArray

if TYPE_CHECKING:
    from ._readable import Readable
    from ._view import View

Axis: TypeAlias = int | Sequence[int] | None

_MIN, _MAX, _SUM, _MEAN = range(4)
_SLAB = 1 << 22  # items that var reads at a time


@dataclass(frozen=True)
class Statistics:
    """Statistics without NaN. If no item is left, minimum and the like are None or NaN."""

    n_items: int
    n_nan: int
    min: Any
    max: Any
    sum: Any
    mean: float
    std: float


class _Selected(NamedTuple):
    """``array[sel]`` in the form that the library takes."""

    what: Any  # an int, slice or list for each axis; or a mask of the whole array
    shape: tuple[int, ...]
    order: tuple[int, ...]  # axes of the result in the order of the array's axes


def _is_in_turn(plan: _plans.Plan) -> bool:
    return plan.arranged == tuple(plan.shape[a] for a in plan.order)


def _outer_like(plan: _plans.Plan, sel: Any, shape: tuple[int, ...]) -> _plans.Plan:
    """Return the outer plan of `sel` if it selects the same, else `plan`."""
    try:
        outer = _keys.outer_plan(sel, shape)
    except (IndexError, TypeError):
        return plan
    return outer if outer.shape == plan.shape else plan


def _selected(array: Readable, sel: Any) -> _Selected:
    plan = _keys.make_plan(sel, array.shape)
    if isinstance(plan, _plans.MaskPlan):
        return _Selected(plan.mask, plan.shape, (0,))
    if type(plan) is _plans.Plan:  # selects no item
        plan = _keys.outer_plan(sel, array.shape)
    if not _is_in_turn(plan):  # the plan has an int in place of a list of one item
        plan = _outer_like(plan, sel, array.shape)
    if not isinstance(plan, _plans.AxesPlan) or not _is_in_turn(plan):
        raise IndexError(
            "a reduction takes an int, a slice, a list or a mask for each axis, or a mask of "
            "the whole array: no new axes, and no lists that are paired"
        )
    return _Selected(plan.axes, plan.shape, plan.order)


def axes_of(axis: Axis, ndim: int) -> tuple[int, ...]:
    """Return the axes to reduce: valid, not negative, each once."""
    if axis is None:
        return tuple(range(ndim))
    given = tuple(axis) if isinstance(axis, tuple | list) else (axis,)
    axes = tuple(_boxes.axis_in(a, ndim) for a in given)
    if len(set(axes)) != len(axes):
        raise ValueError("duplicate value in 'axis'")
    return axes


def _result_dtype(what: int, dtype: np.dtype[Any]) -> tuple[np.dtype[Any], np.dtype[Any]]:
    """Return the dtypes that the library computes in and that NumPy returns."""
    if what in (_MIN, _MAX):
        return dtype, dtype.newbyteorder("=")
    floats = dtype.newbyteorder("=") if dtype.kind == "f" else np.dtype("f8")
    if what == _MEAN:
        return np.dtype("f8"), floats
    if dtype.kind == "f":
        return np.dtype("f8"), floats
    if dtype.kind == "b":
        return np.dtype("u8"), np.dtype("i8")
    return (np.dtype("i8"),) * 2 if dtype.kind == "i" else (np.dtype("u8"),) * 2


def _kept_shape(
    shape: tuple[int, ...], axes: tuple[int, ...], keepdims: bool
) -> tuple[int, ...]:
    if keepdims:
        return tuple(1 if a in axes else n for a, n in enumerate(shape))
    return tuple(n for a, n in enumerate(shape) if a not in axes)


def _reduce_into(
    array: Readable,
    what: int,
    sel: Any,
    axis: Axis,
    keepdims: bool,
    dtype: np.dtype[Any],
    skip_nan: bool,
    progress: _options.Listener,
) -> AnyArray:
    """Return the result in `dtype`, in which the library computes it."""
    selected = _selected(array, sel)
    axes = axes_of(axis, len(selected.shape))
    if not axes and isinstance(selected.what, np.ndarray):  # to the library a mask is one axis
        items = np.asarray(array[sel]).astype(dtype)
        return np.where(items != items, 0, items) if skip_nan and what == _SUM else items
    kept = [a for a in selected.order if a not in axes]
    gone = tuple(i for i, a in enumerate(selected.order) if a in axes)
    out = np.empty([selected.shape[a] for a in kept], dtype)
    report = _options.progress_of(progress)
    array._reduce(what, selected.what, gone if selected.shape else None, skip_nan, out, report)
    out = out.transpose([kept.index(a) for a in sorted(kept)])
    return out.reshape(_kept_shape(selected.shape, axes, keepdims))


def _reduce(
    array: Readable,
    what: int,
    axis: Axis,
    keepdims: bool,
    sel: Any,
    skip_nan: bool,
    progress: _options.Listener,
) -> Any:
    computed, wanted = _result_dtype(what, array.dtype)
    out = _reduce_into(array, what, sel, axis, keepdims, computed, skip_nan, progress)
    out = out.astype(wanted, copy=False)
    return out if out.ndim else out[()]


def _as_asked(result: Any, dtype: npt.DTypeLike | None, out: AnyArray | None) -> Any:
    """Convert the result of a reduction to `dtype`, or copy it to `out`."""
    if dtype is not None:
        if not np.can_cast(result.dtype, dtype, "same_kind"):
            raise TypeError(f"the result of dtype {result.dtype} cannot be cast to {dtype}")
        result = result.astype(dtype)
    return result if out is None else put_into(out, result)


def put_into(out: AnyArray, result: Any) -> AnyArray:
    """Copy a result to an array of the caller."""
    if not isinstance(out, np.ndarray):
        raise TypeError(f"out is a NumPy array, not {out!r}")
    if out.shape != result.shape:
        raise ValueError(f"out has shape {out.shape}, the result {result.shape}")
    np.copyto(out, result, casting="same_kind")
    return out


def _reduction(what: int, name: str, summary: str, example: str) -> Any:
    def reduce(
        self: Readable,
        axis: Axis = None,
        dtype: npt.DTypeLike | None = None,
        out: AnyArray | None = None,
        *,
        keepdims: bool = False,
        sel: Any = ...,
        skip_nan: bool = False,
        progress: _options.Listener = None,
    ) -> Any:
        result = _reduce(self, what, axis, keepdims, sel, skip_nan, progress)
        return _as_asked(result, dtype, out)

    reduce.__name__ = name
    reduce.__qualname__ = name
    reduce.__doc__ = f"""{summary} over all items, or along axes.

        Parameters
        ----------
        axis
            The axes to reduce; None is all of them.
        dtype, out
            dtype of the result, as far as casting rule ``"same_kind"`` allows it, and the
            array for the result. ``np.{name}(a)`` uses them.
        keepdims
            Keep reduced axes with length 1.
        sel
            The items to reduce, as in ``a[sel]``: an int, a slice, a list or a mask for each
            axis, or a mask of the whole array.
        skip_nan
            Ignore NaN. By default a NaN makes the result NaN.
        progress
            Function ``(done, total)``, called with decoded bytes, or ``"tqdm"``.

        Examples
        --------
        >>> import caterva, numpy as np
        >>> a = caterva.asarray(np.arange(6.0).reshape(2, 3))
        {example}
        """
    return reduce


minimum = _reduction(_MIN, "min", "Minimum", ">>> a.min(axis=1)\n        array([0., 3.])")
maximum = _reduction(_MAX, "max", "Maximum", ">>> a.max()\n        np.float64(5.0)")
total = _reduction(_SUM, "sum", "Sum", ">>> a.sum(axis=0)\n        array([3., 5., 7.])")
mean = _reduction(
    _MEAN,
    "mean",
    "Mean",
    ">>> a.mean(axis=1, keepdims=True)\n        array([[1.],\n               [4.]])",
)


def _variance(
    array: Readable, axis: Axis, ddof: float, keepdims: bool, sel: Any, progress: Any
) -> AnyArray:
    """Compute the variance in float64 in two passes, the second one in slabs."""
    if array.dtype.kind not in "biuf":
        raise TypeError(f"items of dtype {array.dtype} have no variance")
    view = array.view[sel]
    axes = axes_of(axis, view.ndim)
    double = np.dtype("f8")
    first, second = two_passes(progress)
    middle = _reduce_into(array, _MEAN, sel, axis, True, double, False, first)
    squares = np.zeros(middle.shape)
    count = math.prod(view.shape[a] for a in axes)
    for place, slab in _slabs(array, view, second):
        where = tuple(slice(None) if d in axes else s for d, s in enumerate(place))
        difference = slab.astype("f8") - middle[where]
        squares[where] += np.sum(difference * difference, axis=axes, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        result = np.divide(squares, max(count - ddof, 0))
    return result.reshape(_kept_shape(view.shape, axes, keepdims))


def _as_mean(result: AnyArray, array: Readable) -> Any:
    """Convert float64 results to the dtype of NumPy's means; a scalar if no axis is left."""
    result = result.astype(_result_dtype(_MEAN, array.dtype)[1])
    return result if result.ndim else result[()]


def two_passes(
    progress: _options.Listener,
) -> tuple[_options.Progress | None, _options.Progress | None]:
    """Split one progress function into two, for the first and second half of the work."""
    report = _options.progress_of(progress)
    if report is None:
        return None, None
    half = 1

    def first(done: int, total: int) -> object:
        nonlocal half
        half = total
        return report(done, 2 * total)

    def second(done: int, total: int) -> object:
        return report(half + done * half // max(1, total), 2 * half)

    return first, second


def _arrays_of(array: Readable) -> tuple[Any, ...]:
    arrays: tuple[Any, ...] = getattr(array, "_arrays", (array,))
    return arrays


def _slabs(array: Readable, view: View, report: _options.Progress | None) -> Any:
    """Yield a view in parts of about whole chunks, each with its position."""
    longest = max((n for each in _arrays_of(array) for n in each.chunks), default=1)
    chunk = [min(n, longest) or 1 for n in view.shape]
    step = _boxes.slab_shape(view.shape, chunk, _SLAB)
    done, total = 0, view.nbytes
    for place in _boxes.iter_boxes(..., view.shape, step):
        slab = view[place]
        yield place, slab
        done += slab.nbytes
        if report is not None and report(done, total):
            raise make(Status.ESTOPPED, 0, -1, "stopped by the progress function")


def var(
    self: Readable,
    axis: Axis = None,
    dtype: npt.DTypeLike | None = None,
    out: AnyArray | None = None,
    *,
    ddof: float = 0,
    keepdims: bool = False,
    sel: Any = ...,
    progress: _options.Listener = None,
) -> Any:
    """Variance over all items, or along axes. Reads the array twice.

    Parameters
    ----------
    axis
        The axes to reduce; None is all of them.
    ddof
        Subtracted from the number of items in the denominator.
    dtype, out, keepdims, progress
        As in `mean`.
    sel
        The items to reduce: ints and slices.

    Examples
    --------
    >>> import caterva, numpy as np
    >>> caterva.asarray(np.arange(6.0).reshape(2, 3)).var(axis=0)
    array([2.25, 2.25, 2.25])
    """
    result = _as_mean(_variance(self, axis, ddof, keepdims, sel, progress), self)
    return _as_asked(result, dtype, out)


def std(
    self: Readable,
    axis: Axis = None,
    dtype: npt.DTypeLike | None = None,
    out: AnyArray | None = None,
    *,
    ddof: float = 0,
    keepdims: bool = False,
    sel: Any = ...,
    progress: _options.Listener = None,
) -> Any:
    """Standard deviation over all items, or along axes. The parameters are those of `var`.

    Examples
    --------
    >>> import caterva, numpy as np
    >>> caterva.asarray(np.arange(6.0)).std()
    np.float64(1.707825127659933)
    """
    result = _as_mean(np.sqrt(_variance(self, axis, ddof, keepdims, sel, progress)), self)
    return _as_asked(result, dtype, out)


def statistics(
    self: Readable, sel: Any = ..., *, progress: _options.Listener = None
) -> Statistics:
    """Compute count, minimum, maximum, sum, mean and standard deviation in one pass.

    Examples
    --------
    >>> import caterva, numpy as np
    >>> s = caterva.asarray(np.array([1.0, np.nan, 3.0])).statistics()
    >>> s.n_nan, s.min, s.max, s.mean
    (1, 1.0, 3.0, 2.0)
    """
    selected = _selected(self, sel)
    return Statistics(*self._statistics(selected.what, _options.progress_of(progress)))


def _range_of(array: Readable, sel: Any, progress: _options.Listener) -> tuple[float, float]:
    found = statistics(array, sel, progress=progress)
    if found.n_nan:
        raise ValueError("autodetected range of [nan, nan] is not finite")
    if found.n_items == 0:
        return 0.0, 1.0
    low, high = float(found.min), float(found.max)
    if not (math.isfinite(low) and math.isfinite(high)):
        raise ValueError(f"autodetected range of [{low}, {high}] is not finite; give range=")
    return low, high


def histogram(
    self: Readable,
    bins: int = 10,
    range: tuple[float, float] | None = None,
    *,
    sel: Any = ...,
    progress: _options.Listener = None,
) -> tuple[AnyArray, AnyArray]:
    """Count items in bins of equal width, as `numpy.histogram` does.

    Edges are float64 for every dtype. NumPy's edges for float16 and float32 have that dtype, so
    an item next to an edge may be counted in the neighbouring bin there.

    Parameters
    ----------
    bins
        Number of bins, a million at most.
    range
        Lower and upper end. None: minimum and maximum, which takes a pass of its own.

    Returns
    -------
    counts, edges : numpy.ndarray

    Examples
    --------
    >>> import caterva, numpy as np
    >>> caterva.asarray(np.arange(10)).histogram(2)[0]
    array([5, 5])
    """
    try:
        bins = operator.index(bins)
    except TypeError:
        raise TypeError("bins is the number of equal bins; edges are not supported") from None
    if bins < 1:
        raise ValueError("`bins` must be positive, when an integer")
    report = _options.progress_of(progress)
    if range is None:
        first, report = two_passes(progress)
        range = _range_of(self, sel, first)
    low, high = map(float, range)
    if low > high:
        raise ValueError("max must be larger than min in range parameter")
    if low == high:
        low, high = low - 0.5, high + 0.5
    counts = np.zeros(bins, np.int64)
    selected = _selected(self, sel)
    self._histogram(selected.what, low, high, counts, report)
    return counts, np.linspace(low, high, bins + 1)

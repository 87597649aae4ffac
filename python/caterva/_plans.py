"""How the library's selections fill a result.

A `Plan` holds the shape of the result, and how its memory is sliced and transposed so that the
library's selections (axes, single points, a mask) fill it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

AXES, POINTS, MASK = 0, 1, 2

_BATCH = 1 << 20  # points that are listed at a time
_LISTED = 256  # a box of at most this many items is listed as points, not read as a box

Shape: TypeAlias = tuple[int, ...]
AnyArray: TypeAlias = npt.NDArray[Any]
Casting: TypeAlias = Literal["no", "equiv", "safe", "same_kind", "unsafe"]


class Source(Protocol):
    """An array or view, which reads selections."""

    @property
    def shape(self) -> Shape: ...

    @property
    def dtype(self) -> np.dtype[Any]: ...

    def _read(self, kind: int, what: Any, memory: AnyArray, /, *how: Any) -> None: ...

    def _write(self, kind: int, what: Any, memory: AnyArray, /, *how: Any) -> None: ...


_Move: TypeAlias = tuple[int, Any, AnyArray]
Step: TypeAlias = tuple[Any, ...]  # arguments of Source._read: a move, and how to read it

# ---- Plans --------------------------------------------------------------------------


class Plan:
    """A selection, and where its items are in the result.

    The result's axes are put into `order` and reshaped to `arranged`, the shape of the
    library's selections.
    """

    __slots__ = ("shape", "scalar", "fancy", "boolean", "order", "arranged")

    def __init__(self, shape: Shape, order: Sequence[int], arranged: Shape) -> None:
        self.shape = shape
        self.scalar = False
        self.fancy = True
        self.boolean = False  # True for one mask of the array's shape
        self.order = tuple(order)
        self.arranged = arranged

    def _arrange(self, memory: AnyArray) -> AnyArray:
        return memory.transpose(self.order).reshape(self.arranged)

    def _moves(self, memory: AnyArray, back: bool) -> Iterator[_Move]:
        """Yield selections with their memory. With `back`, copies are written back."""
        raise NotImplementedError

    def steps(self, out: AnyArray, *how: Any) -> Iterator[Step]:
        """Yield what to read to fill `out`, of the plan's shape and any strides.

        Do each step before requesting the next one.
        """
        if out.size == 0:
            return
        memory = self._arrange(out)
        for move in self._moves(memory, True):
            yield (*move, *how)
        if not np.may_share_memory(memory, out):
            turned = out.transpose(self.order)
            turned[...] = memory.reshape(turned.shape)

    def read(self, source: Source, out: AnyArray, *how: Any) -> None:
        """Read into `out`, of the plan's shape and any strides."""
        for step in self.steps(out, *how):
            source._read(*step)

    def write(self, source: Source, items: AnyArray) -> None:
        """Write `items`, of the plan's shape and any strides."""
        if items.size == 0:
            return
        for kind, what, part in self._moves(self._arrange(items), False):
            source._write(kind, what, part)


class AxesPlan(Plan):
    """Each axis of the array for itself: an int, a slice or a list."""

    __slots__ = ("axes",)

    def __init__(
        self, shape: Shape, order: Sequence[int], arranged: Shape, axes: Sequence[Any]
    ) -> None:
        super().__init__(shape, order, arranged)
        self.axes = tuple(axes)

    def _moves(self, memory: AnyArray, back: bool) -> Iterator[_Move]:
        yield AXES, self.axes, memory


class MaskPlan(Plan):
    """A mask of the whole array."""

    __slots__ = ("mask",)

    def __init__(self, mask: AnyArray) -> None:
        n = int(np.count_nonzero(mask))
        super().__init__((n,), (0,), (n,))
        self.mask = np.ascontiguousarray(mask)
        self.boolean = True

    def _moves(self, memory: AnyArray, back: bool) -> Iterator[_Move]:
        yield MASK, self.mask, memory


class PointsPlan(Plan):
    """Paired lists on some axes, and a box of the other axes for each of their entries."""

    __slots__ = ("lists", "slices", "ndim")

    def __init__(
        self,
        shape: Shape,
        order: Sequence[int],
        lists: dict[int, AnyArray],
        slices: dict[int, range],
    ) -> None:
        n = next(iter(lists.values())).size
        super().__init__(shape, order, (n, *(len(s) for s in slices.values())))
        self.lists = lists
        self.slices = slices
        self.ndim = len(lists) + len(slices)

    def _moves(self, memory: AnyArray, back: bool) -> Iterator[_Move]:
        box = math.prod(self.arranged[1:])
        if box > _LISTED:
            yield from self._boxes(memory)
            return
        step = max(1, _BATCH // box)
        for first in range(0, self.arranged[0], step):
            part = memory[first : first + step]
            flat = part.reshape(-1)
            yield POINTS, self._points(first, part.shape), flat
            if back and not np.may_share_memory(flat, part):
                part[...] = flat.reshape(part.shape)

    def _points(self, first: int, shape: Shape) -> AnyArray:
        """Return the points of some entries and their boxes, one after the other."""
        points = np.empty((*shape, self.ndim), np.int64)
        across = (1,) * (len(shape) - 1)
        for axis, entries in self.lists.items():
            points[..., axis] = entries[first : first + shape[0]].reshape(-1, *across)
        for at, (axis, places) in enumerate(self.slices.items(), 1):
            along = [1] * len(shape)
            along[at] = len(places)
            numbers = np.arange(places.start, places.stop, places.step, dtype=np.int64)
            points[..., axis] = numbers.reshape(along)
        return points.reshape(-1, self.ndim)

    def _boxes(self, memory: AnyArray) -> Iterator[_Move]:
        axes: list[Any] = [None] * self.ndim
        for axis, places in self.slices.items():
            axes[axis] = slice_of(places)
        for i in range(self.arranged[0]):
            for axis, entries in self.lists.items():
                axes[axis] = int(entries[i])
            yield AXES, tuple(axes), memory[i]


def slice_of(places: range) -> slice:
    """Return the slice that selects a range of an axis."""
    if len(places) == 0:
        return slice(0, 0, 1)
    stop = places[-1] + places.step
    return slice(places.start, None if stop < 0 else stop, places.step)

"""Boxes (start and stop for each axis), axes of views, and slabs."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterator, Sequence
from typing import Any, SupportsIndex

import numpy as np

from . import _keys
from ._plans import Shape, slice_of

# ---- Boxes ------------------------------------------------------------------------------


def box_around(sel: Any, shape: Shape) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return start and stop of the bounding box of a basic selection."""
    entries, _ = _keys.entries_of(sel, len(shape))
    start: list[int] = []
    stop: list[int] = []
    for kind, value in entries:
        axis = len(start)
        if kind == _keys.GAP:
            continue
        if kind == _keys.INT:
            first = _keys.checked_index(value, axis, shape[axis]) % shape[axis]
            places = range(first, first + 1)
        elif kind == _keys.SLICE:
            places = range(*value.indices(shape[axis]))
        else:
            raise IndexError("a box has ints and slices only")
        places = places[::-1] if places.step < 0 else places
        low, high = (places[0], places[-1] + 1) if places else (0, 0)
        start.append(low)
        stop.append(high)
    return tuple(start), tuple(stop)


def box_of(sel: Any, shape: Shape) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return start and stop of a selection that is a box: slices of step 1, and ints, whose
    axes stay."""
    entries, _ = _keys.entries_of(sel, len(shape))
    axis = 0
    for kind, value in entries:
        if kind == _keys.SLICE:
            places = range(*value.indices(shape[axis]))
            if len(places) > 1 and places.step != 1:
                raise IndexError(f"a box has steps of 1 only: axis {axis} has {places.step}")
        axis += kind != _keys.GAP
    return box_around(sel, shape)


def iter_boxes(sel: Any, shape: Shape, step: Sequence[int]) -> Iterator[tuple[slice, ...]]:
    """Yield the slices of a box, cut at multiples of `step`, in C order."""
    start, stop = box_of(sel, shape)
    edges = [range(a // n * n, b, n) for a, b, n in zip(start, stop, step, strict=True)]
    for corner in _corners(edges):
        yield tuple(
            slice(max(c, a), min(c + n, b))
            for c, n, a, b in zip(corner, step, start, stop, strict=True)
        )


def _corners(edges: list[range]) -> Iterator[tuple[int, ...]]:
    """Yield the product of ranges in C order, without listing the ranges."""
    counts = [len(edge) for edge in edges]
    for n in range(math.prod(counts)):
        corner = []
        for edge in reversed(edges):
            n, i = divmod(n, len(edge))
            corner.append(edge[i])
        yield tuple(reversed(corner))


# ---- Views ------------------------------------------------------------------------------


def axis_in(axis: SupportsIndex, ndim: int) -> int:
    """Return a valid axis; a negative one counts from the end."""
    axis = operator.index(axis)
    if not -ndim <= axis < ndim:
        raise np.exceptions.AxisError(axis, ndim)
    return axis % ndim


def view_axes(key: Any, shape: Shape) -> tuple[tuple[Any, ...], list[int]]:
    """Return what a view selects on each axis, and the positions of its new axes."""
    entries, _ = _keys.entries_of(key, len(shape))
    axes: list[Any] = []
    new: list[int] = []
    place = 0
    for kind, value in entries:
        axis = len(axes)
        if kind == _keys.GAP:
            continue
        if kind == _keys.NEW:
            new.append(place)
        elif kind == _keys.INT:
            axes.append(_keys.checked_index(value, axis, shape[axis]))
            continue
        elif kind == _keys.SLICE:
            axes.append(slice_of(range(*value.indices(shape[axis]))))
        elif kind == _keys.LIST and value.ndim == 1:
            axes.append(_keys.checked_list(value, axis, shape[axis]))
        else:
            raise TypeError("a view takes ints, slices, evenly spaced lists and new axes")
        place += 1
    return tuple(axes), new


# ---- Slabs ------------------------------------------------------------------------------


def slab_shape(shape: Shape, chunks: Sequence[int], budget: int) -> tuple[int, ...]:
    """Return the shape of whole chunks in a slab of at most `budget` items, last axes first."""
    slab = [min(n, c) if n else 1 for n, c in zip(shape, chunks, strict=True)]
    for axis in reversed(range(len(shape))):
        room = budget // max(1, math.prod(slab))
        if room < 2:
            break
        slab[axis] = max(1, min(shape[axis], slab[axis] * room))
        if slab[axis] < shape[axis]:
            slab[axis] = max(chunks[axis], slab[axis] // chunks[axis] * chunks[axis])
            break
    return tuple(slab)

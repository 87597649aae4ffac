"""Boxes, axes of views and slabs: what is asked for by start and stop."""

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
    """Start and stop of the smallest box around a basic selection."""
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
            raise IndexError("a box is wanted: ints and slices")
        places = places[::-1] if places.step < 0 else places
        low, high = (places[0], places[-1] + 1) if places else (0, 0)
        start.append(low)
        stop.append(high)
    return tuple(start), tuple(stop)


def box_of(sel: Any, shape: Shape) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Start and stop of a selection that is a box itself: slices without steps, and ints, whose
    axes stay."""
    entries, _ = _keys.entries_of(sel, len(shape))
    axis = 0
    for kind, value in entries:
        if kind == _keys.SLICE:
            places = range(*value.indices(shape[axis]))
            if len(places) > 1 and places.step != 1:
                raise IndexError(f"a box is wanted: axis {axis} has steps of {places.step}")
        axis += kind != _keys.GAP
    return box_around(sel, shape)


def iter_boxes(sel: Any, shape: Shape, step: Sequence[int]) -> Iterator[tuple[slice, ...]]:
    """The slices of a box, cut where multiples of `step` are; in C order."""
    start, stop = box_of(sel, shape)
    edges = [range(a // n * n, b, n) for a, b, n in zip(start, stop, step, strict=True)]
    for corner in _corners(edges):
        yield tuple(
            slice(max(c, a), min(c + n, b))
            for c, n, a, b in zip(corner, step, start, stop, strict=True)
        )


def _corners(edges: list[range]) -> Iterator[tuple[int, ...]]:
    """The product of ranges in C order; nothing is listed, however long they are."""
    counts = [len(edge) for edge in edges]
    for n in range(math.prod(counts)):
        corner = []
        for edge in reversed(edges):
            n, i = divmod(n, len(edge))
            corner.append(edge[i])
        yield tuple(reversed(corner))


# ---- Views ------------------------------------------------------------------------------


def axis_in(axis: SupportsIndex, ndim: int) -> int:
    """An axis, negative ones counted from the end."""
    axis = operator.index(axis)
    if not -ndim <= axis < ndim:
        raise np.exceptions.AxisError(axis, ndim)
    return axis % ndim


def view_axes(key: Any, shape: Shape) -> tuple[tuple[Any, ...], list[int]]:
    """What a view selects of each axis, and where it gets new ones."""
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
            raise TypeError("a view takes ints, slices, lists in even steps and new axes")
        place += 1
    return tuple(axes), new


# ---- Slabs ------------------------------------------------------------------------------


def slab_shape(shape: Shape, chunks: Sequence[int], budget: int) -> tuple[int, ...]:
    """Whole chunks, as many as `budget` items hold, the last axes first; at least one."""
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

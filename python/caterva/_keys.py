"""NumPy's indices as plans.

Wrong keys are passed to NumPy, which raises its own errors.
"""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from ._plans import AnyArray, AxesPlan, MaskPlan, Plan, PointsPlan, Shape, slice_of

# Kinds of entries of a key; an entry is (kind, value).
NEW, SLICE, INT, LIST, MASK, FLAG, GAP = range(7)

_Entry = tuple[int, Any]


def _array_entry(part: Any) -> _Entry:
    array = np.asarray(part)
    if array.size == 0 and not isinstance(part, np.ndarray):
        array = array.astype(np.intp)
    if array.dtype == np.bool_:
        return (MASK, array) if array.ndim else (FLAG, bool(array))
    if array.dtype.kind not in "iu":
        raise IndexError("arrays used as indices must be of integer (or boolean) type")
    return (LIST, array) if array.ndim else (INT, int(array))


def _entry(part: Any) -> _Entry:
    if part is None:
        return NEW, None
    if isinstance(part, slice):
        return SLICE, part
    if isinstance(part, bool | np.bool_):
        return FLAG, bool(part)
    if not isinstance(part, np.ndarray):
        try:
            return INT, operator.index(part)
        except TypeError:
            pass
    return _array_entry(part)


def entries_of(key: Any, ndim: int) -> tuple[list[_Entry], bool]:
    """Return the entries of a key, completed for all axes, and whether it has an ellipsis."""
    parts = tuple(key) if isinstance(key, tuple) else (key,)
    entries: list[_Entry] = []
    place = None
    for part in parts:
        if part is Ellipsis:
            if place is not None:
                raise IndexError("an index can only have a single ellipsis ('...')")
            place = len(entries)
        else:
            entries.append(_entry(part))
    named = sum(
        value.ndim if kind == MASK else kind in (SLICE, INT, LIST) for kind, value in entries
    )
    if named > ndim:
        raise IndexError(
            f"too many indices for array: array is {ndim}-dimensional, but {named} were indexed"
        )
    rest: list[_Entry] = [(SLICE, slice(None))] * (ndim - named)
    if place is not None and not rest:
        rest = [(GAP, None)]  # an ellipsis of no axes still separates lists
    at = len(entries) if place is None else place
    return entries[:at] + rest + entries[at:], place is not None


def checked_index(index: int, axis: int, length: int) -> int:
    if not -length <= index < length:
        raise IndexError(f"index {index} is out of bounds for axis {axis} with size {length}")
    return index


def checked_list(array: AnyArray, axis: int, length: int) -> AnyArray:
    """Return a list of indices as int64 after checking that they are in the axis."""
    if array.size:
        checked_index(int(array.min()), axis, length)
        checked_index(int(array.max()), axis, length)
    return array.astype(np.int64)


def _unmasked(mask: AnyArray, axis: int, shape: Shape) -> list[AnyArray]:
    """Convert a mask of some axes to a list of indices for each of them."""
    for i, n in enumerate(mask.shape):
        if n != shape[axis + i]:
            raise IndexError(
                f"boolean index did not match indexed array along axis {axis + i}; size of "
                f"axis is {shape[axis + i]} but size of corresponding boolean axis is {n}"
            )
    return list(mask.nonzero())


class _Axes:
    """A key, sorted by its effect on axes of the array and of the result."""

    def __init__(self, entries: list[_Entry], shape: Shape) -> None:
        self.fancy = any(kind in (LIST, MASK, FLAG) for kind, _ in entries)
        self.ints: dict[int, int] = {}
        self.slices: dict[int, range] = {}
        self.lists: dict[int, AnyArray] = {}
        self.flags: list[AnyArray] = []
        # Axes of the result: the axis of the array, None for a new one, -1 for the lists.
        self.result: list[int | None] = []
        self.together = True  # all lists are adjacent
        self._among = False
        axis = 0
        for kind, value in entries:
            axis = self._add(kind, value, axis, shape)

    def _add(self, kind: int, value: Any, axis: int, shape: Shape) -> int:
        if kind == GAP:
            self._among = False
            return axis
        if kind == NEW:
            self._place(None)
            return axis
        if kind == SLICE:
            self.slices[axis] = range(*value.indices(shape[axis]))
            self._place(axis)
            return axis + 1
        if self.fancy:
            self._place(-1)
        if kind == FLAG:
            self.flags.append(np.zeros(int(value), np.int64))
            return axis
        if kind == MASK:
            columns = _unmasked(value, axis, shape)
            self.lists.update(zip(range(axis, axis + len(columns)), columns, strict=True))
            return axis + len(columns)
        if kind == INT:
            self.ints[axis] = checked_index(value, axis, shape[axis])
        else:
            self.lists[axis] = checked_list(value, axis, shape[axis])
        return axis + 1

    def _place(self, axis: int | None) -> None:
        """Append an axis to the result; the axis of the lists is appended once."""
        if axis == -1:
            if -1 not in self.result:
                self.result.append(-1)
            elif not self._among:
                self.together = False
            self._among = True
            return
        self._among = False
        self.result.append(axis)


def _is_outer(lists: dict[int, AnyArray]) -> bool:
    """Whether each axis of the lists' common shape belongs to at most one list."""
    taken: set[int] = set()
    for array in lists.values():
        own = {d - array.ndim for d in range(array.ndim) if array.shape[d] != 1}
        if own & taken:
            return False
        taken |= own
    return True


def _lists_shape(axes: _Axes) -> Shape:
    shapes = {a.shape for a in (*axes.lists.values(), *axes.flags)}
    if len(shapes) == 1:
        return shapes.pop()
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        raise IndexError(
            f"shape mismatch: indexing arrays could not be broadcast together with "
            f"shapes {' '.join(map(str, shapes))}"
        ) from None


def _result(axes: _Axes, common: Shape) -> tuple[Shape, dict[int, int], int]:
    """Return the result's shape, the position of each axis of the array, and of the lists."""
    order = list(axes.result)
    if axes.fancy and not axes.together:
        order.remove(-1)
        order.insert(0, -1)
    shape: list[int] = []
    places: dict[int, int] = {}
    first = 0
    for axis in order:
        if axis is None:
            shape.append(1)
        elif axis == -1:
            first = len(shape)
            shape.extend(common)
        else:
            places[axis] = len(shape)
            shape.append(len(axes.slices[axis]))
    return tuple(shape), places, first


def _outer_plan(axes: _Axes, ndim: int) -> Plan:
    """Plan a key whose lists are not paired, or that has none."""
    common = _lists_shape(axes)
    shape, places, first = _result(axes, common)
    order: list[int] = []
    arranged: list[int] = []
    what: list[Any] = []
    for axis in range(ndim):
        if axis in axes.slices:
            what.append(slice_of(axes.slices[axis]))
            order.append(places[axis])
            arranged.append(len(axes.slices[axis]))
        elif axis in axes.ints:
            what.append(axes.ints[axis])
        elif axes.lists[axis].size == 1:
            what.append(int(axes.lists[axis].reshape(())))
        else:
            array = axes.lists[axis]
            own = [d for d in range(array.ndim) if array.shape[d] != 1]
            order.extend(first + len(common) - array.ndim + d for d in own)
            arranged.append(array.size)
            what.append(array.reshape(-1))
    order.extend(d for d in range(len(shape)) if d not in order)
    return AxesPlan(shape, order, tuple(arranged), what)


def _points_plan(axes: _Axes) -> Plan:
    common = _lists_shape(axes)
    shape, places, first = _result(axes, common)
    own = range(first, first + len(common))
    order = [*own, *(places[axis] for axis in axes.slices)]
    order.extend(d for d in range(len(shape)) if d not in order)
    lists = {
        axis: (a if a.shape == common else np.broadcast_to(a, common)).reshape(-1)
        for axis, a in axes.lists.items()
    }
    n = math.prod(common)
    lists.update((axis, np.full(n, i, np.int64)) for axis, i in axes.ints.items())
    return PointsPlan(shape, order, lists, axes.slices)


def _plan(key: Any, shape: Shape) -> Plan:
    entries, ellipsis = entries_of(key, len(shape))
    if len(entries) == 1 and entries[0][0] == MASK and entries[0][1].shape == shape:
        return MaskPlan(entries[0][1])
    axes = _Axes(entries, shape)
    flag = shape == () and [kind for kind, _ in entries] == [FLAG]
    if axes.fancy and 0 in _lists_shape(axes):
        nothing = _nothing(key, shape)
        nothing.boolean = flag
        return nothing
    plan = _outer_plan(axes, len(shape)) if _is_outer(axes.lists) else _points_plan(axes)
    plan.fancy = axes.fancy
    plan.boolean = flag
    plan.scalar = not (axes.fancy or ellipsis or axes.result)
    return plan


def _probe(shape: Shape) -> AnyArray:
    """Return an array of that shape that uses no memory."""
    return np.broadcast_to(np.empty((), np.uint8), shape)


def _nothing(key: Any, shape: Shape) -> Plan:
    """Plan a key that selects no item. NumPy computes the shape, and may refuse the key."""
    return Plan(_probe(shape)[key].shape, (), ())


def _refuse(key: Any, shape: Shape, error: Exception) -> Plan:
    """Raise what NumPy raises for such a key; NumPy accepts some that select nothing."""
    nothing = _probe(shape)[key]
    if nothing.size == 0:
        return Plan(nothing.shape, (), ())
    raise error


def make_plan(key: Any, shape: Shape) -> Plan:
    """Return the plan of ``array[key]``, with NumPy's meaning, for an array of that shape."""
    try:
        return _plan(key, shape)
    except (IndexError, ValueError, TypeError) as error:
        return _refuse(key, shape, error)


# ---- Other ways to select ---------------------------------------------------------------


def outer_plan(key: Any, shape: Shape) -> Plan:
    """Return the plan of ``array.oindex[key]``: each axis for itself."""
    entries, _ = entries_of(key, len(shape))
    axes: list[Any] = []
    result: list[int] = []
    for kind, value in entries:
        axis = len(axes)
        if kind == GAP:
            continue
        if kind in (NEW, FLAG) or (kind in (LIST, MASK) and value.ndim != 1):
            raise IndexError("oindex takes an int, a slice, a list or a mask for each axis")
        if kind == INT:
            axes.append(checked_index(value, axis, shape[axis]))
            continue
        if kind == SLICE:
            places = range(*value.indices(shape[axis]))
            axes.append(slice_of(places))
            result.append(len(places))
            continue
        if kind == MASK:
            (value,) = _unmasked(value, axis, shape)
        axes.append(checked_list(value, axis, shape[axis]))
        result.append(value.size)
    return AxesPlan(tuple(result), range(len(result)), tuple(result), axes)


def vector_plan(key: Any, shape: Shape) -> Plan:
    """Return the plan of ``array.vindex[key]``: lists are paired, their axes come first."""
    entries, _ = entries_of(key, len(shape))
    if any(kind in (NEW, FLAG) for kind, _ in entries):
        raise IndexError("vindex takes ints, slices, arrays of indices and masks")
    axes = _Axes(entries, shape)
    axes.together = False
    if axes.fancy and 0 in _lists_shape(axes):
        return Plan(_result(axes, _lists_shape(axes))[0], (), ())
    return _outer_plan(axes, len(shape)) if _is_outer(axes.lists) else _points_plan(axes)

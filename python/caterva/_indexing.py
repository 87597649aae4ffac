"""NumPy's indices as selections of the library.

A key becomes a `Plan`: the shape of the result, and how its memory is cut and turned so
that the library's selections (axes by themselves, single points, a mask) fill it. The
extension handles plain boxes itself and comes here for everything else, also for keys
that are wrong: those are put to NumPy, which says so in its own words.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Generator, Iterator, Sequence
from typing import Any, Literal, Protocol, SupportsIndex, TypeAlias

import numpy as np
import numpy.typing as npt

from . import _dtypes

AXES, POINTS, MASK = 0, 1, 2

_BATCH = 1 << 20  # points that are listed at once
_LISTED = 256  # items of a box that are rather listed than read box by box

Shape: TypeAlias = tuple[int, ...]
AnyArray: TypeAlias = npt.NDArray[Any]
Casting: TypeAlias = Literal["no", "equiv", "safe", "same_kind", "unsafe"]


class Source(Protocol):
    """What can be read by selections: an array or a view."""

    @property
    def shape(self) -> Shape: ...

    @property
    def dtype(self) -> np.dtype[Any]: ...

    def _read(self, kind: int, what: Any, memory: AnyArray, /, *how: Any) -> None: ...

    def _write(self, kind: int, what: Any, memory: AnyArray, /, *how: Any) -> None: ...


_Move: TypeAlias = tuple[int, Any, AnyArray]
Step: TypeAlias = tuple[Any, ...]  # of Source._read: a move, and how

# ---- Plans --------------------------------------------------------------------------


class Plan:
    """A selection, and where its items stand in the result.

    The result's axes are put into `order` and joined to `arranged`, which is the shape
    that the library's selections have.
    """

    __slots__ = ("shape", "scalar", "fancy", "boolean", "order", "arranged")

    def __init__(self, shape: Shape, order: Sequence[int], arranged: Shape) -> None:
        self.shape = shape
        self.scalar = False
        self.fancy = True
        self.boolean = False  # one mask, as large as the array
        self.order = tuple(order)
        self.arranged = arranged

    def _arrange(self, memory: AnyArray) -> AnyArray:
        return memory.transpose(self.order).reshape(self.arranged)

    def _moves(self, memory: AnyArray, back: bool) -> Iterator[_Move]:
        """The selections and their memory; with `back`, copies of parts are put back."""
        raise NotImplementedError

    def steps(self, out: AnyArray, *how: Any) -> Iterator[Step]:
        """What to read so that `out`, of the plan's shape and any strides, is filled.

        Each step is to be done before the next is asked for.
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
    """Each axis of the array by itself: an int, a slice or a list."""

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
    """Lists that go together on some axes, and for each of their entries a box."""

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
        """The points of so many entries and their boxes, one behind the other."""
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
    """The slice that selects these places of an axis."""
    if len(places) == 0:
        return slice(0, 0, 1)
    stop = places[-1] + places.step
    return slice(places.start, None if stop < 0 else stop, places.step)


# ---- Keys ---------------------------------------------------------------------------

# What an entry of a key is; entries are (kind, value).
_NEW, _SLICE, _INT, _LIST, _MASK, _FLAG, _GAP = range(7)

_Entry = tuple[int, Any]


def _array_entry(part: Any) -> _Entry:
    array = np.asarray(part)
    if array.size == 0 and not isinstance(part, np.ndarray):
        array = array.astype(np.intp)
    if array.dtype == np.bool_:
        return (_MASK, array) if array.ndim else (_FLAG, bool(array))
    if array.dtype.kind not in "iu":
        raise IndexError("arrays used as indices must be of integer (or boolean) type")
    return (_LIST, array) if array.ndim else (_INT, int(array))


def _entry(part: Any) -> _Entry:
    if part is None:
        return _NEW, None
    if isinstance(part, slice):
        return _SLICE, part
    if isinstance(part, bool | np.bool_):
        return _FLAG, bool(part)
    if not isinstance(part, np.ndarray):
        try:
            return _INT, operator.index(part)
        except TypeError:
            pass
    return _array_entry(part)


def _entries(key: Any, ndim: int) -> tuple[list[_Entry], bool]:
    """The entries of a key with all axes named, and whether it has an ellipsis."""
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
        value.ndim if kind == _MASK else kind in (_SLICE, _INT, _LIST)
        for kind, value in entries
    )
    if named > ndim:
        raise IndexError(
            f"too many indices for array: array is {ndim}-dimensional, but {named} were indexed"
        )
    rest: list[_Entry] = [(_SLICE, slice(None))] * (ndim - named)
    if place is not None and not rest:
        rest = [(_GAP, None)]  # an ellipsis of no axes stands between lists all the same
    at = len(entries) if place is None else place
    return entries[:at] + rest + entries[at:], place is not None


def _check(index: int, axis: int, length: int) -> int:
    if not -length <= index < length:
        raise IndexError(f"index {index} is out of bounds for axis {axis} with size {length}")
    return index


def _checked(array: AnyArray, axis: int, length: int) -> AnyArray:
    """A list of indices as int64, each of them in the axis."""
    if array.size:
        _check(int(array.min()), axis, length)
        _check(int(array.max()), axis, length)
    return array.astype(np.int64)


def _unmasked(mask: AnyArray, axis: int, shape: Shape) -> list[AnyArray]:
    """The lists that a mask of some axes stands for."""
    for i, n in enumerate(mask.shape):
        if n != shape[axis + i]:
            raise IndexError(
                f"boolean index did not match indexed array along axis {axis + i}; size of "
                f"axis is {shape[axis + i]} but size of corresponding boolean axis is {n}"
            )
    return list(mask.nonzero())


class _Axes:
    """A key sorted by what it does: to axes of the array, and to those of the result."""

    def __init__(self, entries: list[_Entry], shape: Shape) -> None:
        self.fancy = any(kind in (_LIST, _MASK, _FLAG) for kind, _ in entries)
        self.ints: dict[int, int] = {}
        self.slices: dict[int, range] = {}
        self.lists: dict[int, AnyArray] = {}
        self.flags: list[AnyArray] = []
        # Of the result: the axis of the array, None for a new one, -1 for the lists.
        self.result: list[int | None] = []
        self.together = True  # all lists stand side by side
        self._among = False
        axis = 0
        for kind, value in entries:
            axis = self._add(kind, value, axis, shape)

    def _add(self, kind: int, value: Any, axis: int, shape: Shape) -> int:
        if kind == _GAP:
            self._among = False
            return axis
        if kind == _NEW:
            self._place(None)
            return axis
        if kind == _SLICE:
            self.slices[axis] = range(*value.indices(shape[axis]))
            self._place(axis)
            return axis + 1
        if self.fancy:
            self._place(-1)
        if kind == _FLAG:
            self.flags.append(np.zeros(int(value), np.int64))
            return axis
        if kind == _MASK:
            columns = _unmasked(value, axis, shape)
            self.lists.update(zip(range(axis, axis + len(columns)), columns, strict=True))
            return axis + len(columns)
        if kind == _INT:
            self.ints[axis] = _check(value, axis, shape[axis])
        else:
            self.lists[axis] = _checked(value, axis, shape[axis])
        return axis + 1

    def _place(self, axis: int | None) -> None:
        """The next axis of the result; that of the lists stands there once."""
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
    """True when each axis of the lists' common shape is one list's affair, at most."""
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
    """The result's shape, where each axis of the array stands in it, and the lists."""
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
    """Lists that do not go together, or none at all."""
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
    entries, ellipsis = _entries(key, len(shape))
    if len(entries) == 1 and entries[0][0] == _MASK and entries[0][1].shape == shape:
        return MaskPlan(entries[0][1])
    axes = _Axes(entries, shape)
    flag = shape == () and [kind for kind, _ in entries] == [_FLAG]
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
    """An array of that shape which takes no memory."""
    return np.broadcast_to(np.empty((), np.uint8), shape)


def _nothing(key: Any, shape: Shape) -> Plan:
    """No item: NumPy knows the shape, and may find the key wrong all the same."""
    return Plan(_probe(shape)[key].shape, (), ())


def _refuse(key: Any, shape: Shape, error: Exception) -> Plan:
    """Raise what NumPy raises for such a key; it lets pass what selects nothing."""
    nothing = _probe(shape)[key]
    if nothing.size == 0:
        return Plan(nothing.shape, (), ())
    raise error


def make_plan(key: Any, shape: Shape) -> Plan:
    """The plan of ``array[key]`` for an array of that shape, as NumPy means it."""
    try:
        return _plan(key, shape)
    except (IndexError, ValueError, TypeError) as error:
        return _refuse(key, shape, error)


# ---- Other ways to select ---------------------------------------------------------------


def outer_plan(key: Any, shape: Shape) -> Plan:
    """The plan of ``array.oindex[key]``: each axis by itself."""
    entries, _ = _entries(key, len(shape))
    axes: list[Any] = []
    result: list[int] = []
    for kind, value in entries:
        axis = len(axes)
        if kind == _GAP:
            continue
        if kind in (_NEW, _FLAG) or (kind in (_LIST, _MASK) and value.ndim != 1):
            raise IndexError("oindex takes for each axis an int, a slice, a list or a mask")
        if kind == _INT:
            axes.append(_check(value, axis, shape[axis]))
            continue
        if kind == _SLICE:
            places = range(*value.indices(shape[axis]))
            axes.append(slice_of(places))
            result.append(len(places))
            continue
        if kind == _MASK:
            (value,) = _unmasked(value, axis, shape)
        axes.append(_checked(value, axis, shape[axis]))
        result.append(value.size)
    return AxesPlan(tuple(result), range(len(result)), tuple(result), axes)


def vector_plan(key: Any, shape: Shape) -> Plan:
    """The plan of ``array.vindex[key]``: lists go together, and come first."""
    entries, _ = _entries(key, len(shape))
    if any(kind in (_NEW, _FLAG) for kind, _ in entries):
        raise IndexError("vindex takes ints, slices, arrays of indices and masks")
    axes = _Axes(entries, shape)
    axes.together = False
    if axes.fancy and 0 in _lists_shape(axes):
        return Plan(_result(axes, _lists_shape(axes))[0], (), ())
    return _outer_plan(axes, len(shape)) if _is_outer(axes.lists) else _points_plan(axes)


# ---- Values ---------------------------------------------------------------------------


def _is_array(value: Any) -> bool:
    return isinstance(value, np.ndarray | np.generic) or hasattr(value, "__array__")


def convert_value(value: Any, dtype: np.dtype[Any]) -> AnyArray:
    """`value` as an array of that dtype, cast as NumPy does in an assignment."""
    if _is_array(value):
        return _dtypes.cast(np.asarray(value), dtype)
    items = np.array(value, dtype=dtype)
    if dtype.kind in "iu":
        _bound(items, np.asarray(value))
    return items


def _bound(items: AnyArray, given: AnyArray) -> None:
    """Integers made of `given`, one by one: NumPy's floats outside become the nearest."""
    if given.dtype.kind != "f":
        return
    limits = np.iinfo(items.dtype)
    outside = ~((given > limits.min - 1.0) & (given < limits.max + 1.0))
    items[outside] = _dtypes.cast(given[outside], items.dtype)


def item_of(value: Any, dtype: np.dtype[Any]) -> AnyArray:
    """`value` as one item of that dtype: an array without axes."""
    one: AnyArray = np.empty((), dtype)
    one[()] = value
    if dtype.kind in "iu" and isinstance(value, np.floating | np.ndarray):
        one[()] = _dtypes.cast(np.asarray(value), dtype)
    return one


def as_source(
    value: Any, dtype: np.dtype[Any], shape: Shape, item: bool, fancy: bool = False
) -> AnyArray:
    """`value` as it is assigned to items of that shape: an array of it, broadcast."""
    if item:
        return item_of(value, dtype)
    array = convert_value(value, dtype)
    if array.ndim > len(shape) and not fancy and not _is_array(value):
        np.empty((1,) * len(shape), dtype)[...] = value  # lists may not be deeper
    while array.ndim > len(shape) and array.shape[0] == 1:
        array = array.reshape(array.shape[1:])
    try:
        return np.broadcast_to(array, shape)
    except ValueError:
        raise ValueError(
            f"could not broadcast input array from shape {array.shape} into shape {shape}"
        ) from None


# ---- What the extension calls -----------------------------------------------------------


def _names(key: Any) -> bool:
    """True for the name of a field, or a list of such names."""
    if isinstance(key, str):
        return True
    return isinstance(key, list) and bool(key) and all(isinstance(k, str) for k in key)


def read_plan(source: Source, plan: Plan) -> Any:
    """What a plan selects: an array, or a scalar."""
    out = np.empty(plan.shape, source.dtype)
    plan.read(source, out)
    return out[()] if plan.scalar else out


def read_fancy(source: Any, key: Any) -> Any:
    """``source[key]`` for a key that is no plain box."""
    if _names(key):
        return source[...][key]
    return read_plan(source, make_plan(key, source.shape))


def write_fancy(source: Any, key: Any, value: Any) -> None:
    """``source[key] = value`` for a key that is no plain box."""
    if _names(key):
        items = source[...]
        items[key] = value
        source[...] = items
        return
    try:
        plan = make_plan(key, source.shape)
    except (IndexError, ValueError, TypeError):
        _refuse_write(source, key, value)
        raise
    if plan.boolean:
        _check_for_mask(value, source.dtype)
    items = as_source(value, source.dtype, plan.shape, plan.scalar, plan.fancy)
    plan.write(source, items)


def _check_for_mask(value: Any, dtype: np.dtype[Any]) -> None:
    """NumPy assigns to a mask what has one axis, or none; a tuple may be an item."""
    ndim = np.ndim(value)
    if ndim > 1 and dtype.names is not None and not _is_array(value):
        ndim = np.array(value, dtype).ndim
    if ndim > 1:
        raise TypeError(
            "NumPy boolean array indexing assignment requires a 0 or 1-dimensional input, "
            f"input has {ndim} dimensions"
        )


def _refuse_write(source: Any, key: Any, value: Any) -> None:
    """Raise what NumPy raises for a wrong key: of a wrong value too, it may tell that first."""
    item = np.empty((), source.dtype)
    strides = (0,) * len(source.shape)
    np.lib.stride_tricks.as_strided(item, source.shape, strides)[key] = value


# ---- Reading in other ways -------------------------------------------------------------


def field_dtype(dtype: np.dtype[Any], field: str | None) -> np.dtype[Any]:
    for name in field.split(".") if field else ():
        if dtype.names is None or name not in dtype.names:
            raise KeyError(f"no field of name {field}")
        dtype = dtype[name]
    return dtype


def steps_into(
    source: Source,
    plan: Plan,
    out: AnyArray | None,
    dtype: npt.DTypeLike | None,
    casting: Casting,
    field: str | None,
) -> Generator[Step, None, AnyArray]:
    """The steps that read a plan into `out` or a new array, which they return: of another
    dtype, or one field alone."""
    stored = field_dtype(source.dtype, field)
    given = dtype if dtype is not None else stored.base if out is None else out.dtype
    wanted = _dtypes.sized(given, stored.base)
    if not np.can_cast(stored.base, wanted, casting):
        raise TypeError(
            f"Cannot cast array data from {stored.base!r} to {wanted!r} according to the "
            f"rule {casting!r}"
        )
    shape = plan.shape + stored.shape
    if out is None and not _dtypes.is_sized(wanted, stored.base):
        items = yield from steps_into(source, plan, None, None, casting, field)
        return items.astype(wanted)
    if out is None:
        out = np.empty(shape, wanted)
    elif out.shape != shape:
        raise ValueError(f"out has shape {out.shape}, the selection {shape}")
    elif not out.flags.writeable:
        raise ValueError("out is read-only")
    how = None if stored.shape else _how_directly(out, wanted, stored, field)
    if how is not None:
        yield from plan.steps(out, *how)
        return out
    items = np.empty((*plan.shape, *stored.shape), stored.base)
    if items.size:  # in C order; a field that is an array itself is one item
        opaque = np.ndarray(plan.shape, f"V{stored.itemsize}", items)
        yield from plan.steps(opaque, None, field)
    np.copyto(out, _dtypes.cast(items, wanted), casting="unsafe")
    return out


def _how_directly(
    out: AnyArray, wanted: np.dtype[Any], stored: np.dtype[Any], field: str | None
) -> Step | None:
    """How to read into `out`, where its items are as stored or the library converts them."""
    if wanted != out.dtype:
        return None
    if wanted == stored:
        return None, field
    word = _dtypes.converts(wanted)
    if field is not None or word is None or _dtypes.converts(stored) != stored.str:
        return None
    return (word,)


def read_into(
    source: Source,
    plan: Plan,
    out: AnyArray | None,
    dtype: npt.DTypeLike | None,
    casting: Casting,
    field: str | None,
) -> AnyArray:
    """Do the steps of `steps_into`."""
    steps = steps_into(source, plan, out, dtype, casting, field)
    while True:
        try:
            source._read(*next(steps))
        except StopIteration as end:
            result: AnyArray = end.value
            return result


# ---- Boxes ------------------------------------------------------------------------------


def box_around(sel: Any, shape: Shape) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Start and stop of the smallest box around a basic selection."""
    entries, _ = _entries(sel, len(shape))
    start: list[int] = []
    stop: list[int] = []
    for kind, value in entries:
        axis = len(start)
        if kind == _GAP:
            continue
        if kind == _INT:
            first = _check(value, axis, shape[axis]) % shape[axis]
            places = range(first, first + 1)
        elif kind == _SLICE:
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
    entries, _ = _entries(sel, len(shape))
    axis = 0
    for kind, value in entries:
        if kind == _SLICE:
            places = range(*value.indices(shape[axis]))
            if len(places) > 1 and places.step != 1:
                raise IndexError(f"a box is wanted: axis {axis} has steps of {places.step}")
        axis += kind != _GAP
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
    entries, _ = _entries(key, len(shape))
    axes: list[Any] = []
    new: list[int] = []
    place = 0
    for kind, value in entries:
        axis = len(axes)
        if kind == _GAP:
            continue
        if kind == _NEW:
            new.append(place)
        elif kind == _INT:
            axes.append(_check(value, axis, shape[axis]))
            continue
        elif kind == _SLICE:
            axes.append(slice_of(range(*value.indices(shape[axis]))))
        elif kind == _LIST and value.ndim == 1:
            axes.append(_checked(value, axis, shape[axis]))
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

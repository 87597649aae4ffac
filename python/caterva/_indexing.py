"""Reading and writing with NumPy's indices.

The extension handles plain boxes itself and calls this module for all other keys. A key is
converted to a plan (`_keys`), whose steps fill memory (`_plans`).
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import numpy as np
import numpy.typing as npt

from . import _dtypes
from ._keys import make_plan
from ._plans import AnyArray, Casting, Plan, Shape, Source, Step

# ---- Values ---------------------------------------------------------------------------


def _is_array(value: Any) -> bool:
    return isinstance(value, np.ndarray | np.generic) or hasattr(value, "__array__")


def convert_value(value: Any, dtype: np.dtype[Any]) -> AnyArray:
    """Convert `value` to an array of that dtype, as NumPy does in an assignment."""
    if _is_array(value):
        return _dtypes.cast(np.asarray(value), dtype)
    items = np.array(value, dtype=dtype)
    if dtype.kind in "iu":
        _bound(items, np.asarray(value))
    return items


def _bound(items: AnyArray, given: AnyArray) -> None:
    """Replace integers converted from floats outside their range by the nearest integer."""
    if given.dtype.kind != "f":
        return
    limits = np.iinfo(items.dtype)
    outside = ~((given > limits.min - 1.0) & (given < limits.max + 1.0))
    items[outside] = _dtypes.cast(given[outside], items.dtype)


def item_of(value: Any, dtype: np.dtype[Any]) -> AnyArray:
    """Convert `value` to one item of that dtype, an array without axes."""
    one: AnyArray = np.empty((), dtype)
    one[()] = value
    if dtype.kind in "iu" and isinstance(value, np.floating | np.ndarray):
        one[()] = _dtypes.cast(np.asarray(value), dtype)
    return one


def as_source(
    value: Any, dtype: np.dtype[Any], shape: Shape, item: bool, fancy: bool = False
) -> AnyArray:
    """Convert `value` for assignment to items of that shape: an array, broadcast."""
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


# ---- Called by the extension ------------------------------------------------------------


def _names(key: Any) -> bool:
    """Whether the key is the name of a field, or a list of names."""
    if isinstance(key, str):
        return True
    return isinstance(key, list) and bool(key) and all(isinstance(k, str) for k in key)


def read_plan(source: Source, plan: Plan) -> Any:
    """Read what a plan selects: an array, or a scalar."""
    out = np.empty(plan.shape, source.dtype)
    plan.read(source, out)
    return out[()] if plan.scalar else out


def read_fancy(source: Any, key: Any) -> Any:
    """Read ``source[key]`` for a key that is not a plain box."""
    if _names(key):
        return source[...][key]
    return read_plan(source, make_plan(key, source.shape))


def write_fancy(source: Any, key: Any, value: Any) -> None:
    """Do ``source[key] = value`` for a key that is not a plain box."""
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
    """Raise TypeError as NumPy does: a value for a mask has at most one axis; a tuple may be an
    item."""
    ndim = np.ndim(value)
    if ndim > 1 and dtype.names is not None and not _is_array(value):
        ndim = np.array(value, dtype).ndim
    if ndim > 1:
        raise TypeError(
            "NumPy boolean array indexing assignment requires a 0 or 1-dimensional input, "
            f"input has {ndim} dimensions"
        )


def _refuse_write(source: Any, key: Any, value: Any) -> None:
    """Raise what NumPy raises for a wrong key, or for a wrong value if it checks that first."""
    item = np.empty((), source.dtype)
    strides = (0,) * len(source.shape)
    np.lib.stride_tricks.as_strided(item, source.shape, strides)[key] = value


# ---- Reading with options --------------------------------------------------------------


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
    """Yield the steps that read a plan into `out` or a new array, with conversion to `dtype` or
    of one field; return the array."""
    stored = field_dtype(source.dtype, field)
    if not (out is None or isinstance(out, np.ndarray)):
        raise TypeError(f"out is a NumPy array, not {type(out).__name__}")
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
    if items.size:  # in C order; a field that is a subarray is one item
        opaque = np.ndarray(plan.shape, f"V{stored.itemsize}", items)
        yield from plan.steps(opaque, None, field)
    np.copyto(out, _dtypes.cast(items, wanted), casting="unsafe")
    return out


def _how_directly(
    out: AnyArray, wanted: np.dtype[Any], stored: np.dtype[Any], field: str | None
) -> Step | None:
    """Return how to read into `out` without a copy, or None if the library cannot convert."""
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
    """Run the steps of `steps_into`."""
    steps = steps_into(source, plan, out, dtype, casting, field)
    while True:
        try:
            source._read(*next(steps))
        except StopIteration as end:
            result: AnyArray = end.value
            return result

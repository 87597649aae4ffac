# mypy: allow-untyped-calls
"""Whether items can be put into a variable that is there: what it cannot hold is refused."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
from xarray import Variable, conventions
from xarray.coding.strings import check_vlen_dtype
from xarray.namedarray.parallelcompat import get_chunked_array_type
from xarray.namedarray.pycompat import is_chunked_array

_KINDS = {"b": "truths", "i": "integers", "u": "integers", "f": "floats", "c": "complex",
          "M": "times", "m": "spans of time", "U": "texts", "T": "texts",
          "S": "bytes"}  # fmt: skip
_WIDER = {("integers", "floats"), ("integers", "complex"), ("floats", "complex")}


# ---- Kinds ---------------------------------------------------------------------------------


def _kind_of_objects(variable: Variable) -> str | None:
    vlen = check_vlen_dtype(variable.dtype)
    if vlen in (str, bytes):
        return "texts" if vlen is str else "bytes"
    if is_chunked_array(variable._data):
        return None
    items = np.asarray(variable.data).flat
    first = next((item for item in items if item is not None and item == item), None)
    if isinstance(first, str | bytes):
        return "texts" if isinstance(first, str) else "bytes"
    if hasattr(first, "isoformat"):
        return "times"
    return None if first is None else _KINDS.get(np.asarray(first).dtype.kind)


def _kind(variable: Variable) -> str | None:
    """What the items are; None: that is not known, or structures."""
    if variable.dtype.kind == "O":
        return _kind_of_objects(variable)
    return _KINDS.get(variable.dtype.kind)


def check_kind(name: Any, given: Variable, decoded: Variable) -> None:
    """Refuse items of another kind than those that are there."""
    new, old = _kind(given), _kind(decoded)
    if new is None or old is None:
        alike = "O" in given.dtype.kind + decoded.dtype.kind or given.dtype == decoded.dtype
    else:
        alike = new == old or (new, old) in _WIDER
    if not alike:
        raise ValueError(
            f"variable {name!r} holds {decoded.dtype} ({old}), which {given.dtype} ({new}) "
            "cannot be put into"
        )


def check_stored(name: Any, encoded: Variable, stored: Variable) -> None:
    """The same of items as they are stored."""
    new, old = _kind(encoded), _kind(stored)
    if new != old or (new is None and encoded.dtype != stored.dtype):
        raise ValueError(
            f"variable {name!r} is stored as {stored.dtype}, which {encoded.dtype} cannot be "
            "put into"
        )


# ---- Numbers -------------------------------------------------------------------------------


def _refuse(name: Any, dtype: Any, items: Any, fits: Any) -> None:
    value = items.reshape(-1)[int(np.argmin(np.reshape(fits, -1)))]
    raise ValueError(f"variable {name!r} is stored as {dtype}, which cannot hold {value!s}")


def _as_integers(items: Any, name: Any, dtype: np.dtype[Any], words: dict[str, Any]) -> Any:
    """The items, all of which fit into stored integers once they are packed."""
    limits = np.iinfo(dtype)
    packed = words.get("scale_factor") is not None or words.get("add_offset") is not None
    if items.dtype.kind in "iub" and not packed:
        wanted = np.iinfo(items.dtype) if items.dtype.kind != "b" else limits
        if wanted.min < limits.min or wanted.max > limits.max:
            low, high = max(limits.min, wanted.min), min(limits.max, wanted.max)
            fits = (items >= low) & (items <= high)
        else:
            return items
    else:
        scale = float(np.reshape(words.get("scale_factor", 1), -1)[0])
        offset = float(np.reshape(words.get("add_offset", 0), -1)[0])
        with np.errstate(all="ignore"):
            places = (items.astype("f8") - offset) / scale
        fits = (places > limits.min - 0.49) & (places < limits.max + 0.49)
        if words.get("_FillValue") is not None or words.get("missing_value") is not None:
            fits |= np.isnan(items)
    if not fits.all():
        _refuse(name, dtype, items, fits)
    return items


def _as_floats(items: Any, name: Any, dtype: np.dtype[Any]) -> Any:
    """The items, which are as near as these floats are: none becomes infinite, and integers
    stay what they are."""
    with np.errstate(all="ignore"):
        cast = items.astype(dtype)
        if items.dtype.kind in "iu":
            # Beyond what the integers reach, the way back is undefined.
            bits = 8 * items.dtype.itemsize - (items.dtype.kind == "i")
            inside = np.abs(cast.real.astype("f8")) < 2.0**bits
            fits = inside & (np.where(inside, cast.real, 0).astype(items.dtype) == items)
        else:
            fits = np.isfinite(cast) | ~np.isfinite(items)
    if not fits.all():
        _refuse(name, dtype, items, fits)
    return items


def _mapped(variable: Variable, check: Callable[[Any], Any]) -> Variable:
    """The variable once its items were checked; those that are computed later, then."""
    data = variable.data
    if is_chunked_array(data):
        data = get_chunked_array_type(data).map_blocks(check, data, dtype=data.dtype)
    else:
        data = check(np.asarray(data))
    return variable.copy(deep=False, data=data)


def checked(name: Any, given: Variable, encoding: dict[Any, Any]) -> Variable:
    """The variable of numbers, each of which can be stored as the encoding says."""
    stored = np.dtype(encoding.get("dtype", given.dtype))
    if given.dtype.kind not in "iufc" or stored.kind not in "iufc":
        return given
    if stored.kind in "fc":
        packed = "scale_factor" in encoding or "add_offset" in encoding
        large = given.dtype.kind in "iu" and given.dtype.itemsize == 8
        if packed or (np.can_cast(given.dtype, stored) and not large):
            return given
        return _mapped(given, partial(_as_floats, name=name, dtype=stored))
    unsigned = str(encoding.get("_Unsigned", "")).lower()
    kind = {"true": "u", "false": "i"}.get(unsigned, stored.kind)
    dtype = np.dtype(f"{kind}{stored.itemsize}")
    words = {k: encoding.get(k) for k in ("_FillValue", "missing_value")}
    words |= {k: encoding[k] for k in ("scale_factor", "add_offset") if k in encoding}
    return _mapped(given, partial(_as_integers, name=name, dtype=dtype, words=words))


# ---- Times ---------------------------------------------------------------------------------


@contextmanager
def quietly() -> Iterator[None]:
    """xarray warns of units that it changes, which `check_times` refuses by name."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Times can't be serialized", UserWarning)
        warnings.filterwarnings("ignore", "Timedeltas can't be serialized", UserWarning)
        yield


def check_times(name: Any, given: Variable, encoded: Variable, stored: Variable) -> None:
    """Refuse times that are others in the units of those that are there."""
    if given.dtype.kind not in "Mm" and _kind(given) != "times":
        return
    if stored.dtype.kind not in "iu" or is_chunked_array(encoded._data):
        return  # floats are as near as they are; dask's are refused as they are computed
    new, old = np.asarray(given.data), _decoded(name, given, encoded, stored)
    if old is not None and (new.dtype.kind == "O") != (old.dtype.kind == "O"):
        return
    same = np.zeros(new.shape, bool) if old is None else _same(new, old)
    if same.all():
        return
    value = new.reshape(-1)[int(np.argmin(same.reshape(-1)))]
    raise too_fine(name, stored, f"cannot hold {value!s}", encoded.attrs.get("units"))


def _same(new: Any, old: Any) -> Any:
    return (new == old) | ((new != new) & (old != old))


def _decoded(name: Any, given: Variable, encoded: Variable, stored: Variable) -> Any:
    """What would be read of the items that are to be stored; None where that is nothing."""
    items = Variable(stored.dims, np.asarray(encoded.data), dict(stored.attrs))
    try:
        again = conventions.decode_cf_variable(
            name, items, decode_timedelta=given.dtype.kind == "m"
        )
        return np.asarray(again.data)
    except (ValueError, OverflowError):
        return None


def too_fine(name: Any, stored: Variable, what: str, units: Any = None) -> ValueError:
    """What is said of times that units which are there cannot hold."""
    there = stored.attrs.get("units")
    fine = units if units not in (None, there) else "seconds since 2000-01-01"
    return ValueError(
        f"variable {name!r} is stored in {there!r}, as {stored.dtype}, which {what}: save the "
        f"data set anew with finer units, as encoding={{{name!r}: {{'units': {fine!r}}}}} says"
    )

# mypy: allow-untyped-calls
"""Encoding items like an existing variable; items that would not be read back are refused."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import numpy as np
from xarray import Variable, conventions
from xarray.backends.common import WritableCFDataStore
from xarray.coders import CFDatetimeCoder
from xarray.coding.strings import check_vlen_dtype
from xarray.namedarray.parallelcompat import get_chunked_array_type
from xarray.namedarray.pycompat import is_chunked_array

from .._system import call_in_child
from . import _items
from ._decode import is_plain, unmasked

_KINDS = {"b": "booleans", "i": "integers", "u": "integers", "f": "floats", "c": "complex",
          "M": "times", "m": "durations", "U": "texts", "T": "texts",
          "S": "bytes"}  # fmt: skip
_TIMES = ("times", "durations")
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
    """Return the kind of the items; None if it is unknown, and for structures."""
    if variable.dtype.kind == "O":
        return _kind_of_objects(variable)
    return _KINDS.get(variable.dtype.kind)


def check_kind(name: Any, given: Variable, old: str | None, there: np.dtype[Any]) -> None:
    """Refuse items of another kind than `old`, the kind of the existing items (`there`)."""
    new = _kind(given)
    if new is None or old is None:
        alike = "O" in given.dtype.kind + there.kind or given.dtype == there
    else:
        alike = new == old or (new, old) in _WIDER
    if not alike:
        raise ValueError(
            f"variable {name!r} has {there} ({old}) and cannot hold {given.dtype} ({new})"
        )


def check_stored(name: Any, encoded: Variable, stored: Variable) -> None:
    """Refuse items whose encoded form has another kind than the stored items."""
    new, old = _kind(encoded), _kind(stored)
    if new != old or (new is None and encoded.dtype != stored.dtype):
        raise ValueError(
            f"variable {name!r} is stored as {stored.dtype} and cannot hold {encoded.dtype}"
        )


# ---- Encoding ------------------------------------------------------------------------------


_filters = threading.Lock()  # warnings.catch_warnings changes the whole process


def _renew_lock() -> None:
    """Replace the lock, which another thread may hold during a fork."""
    global _filters
    _filters = threading.Lock()


call_in_child(_renew_lock)


@contextmanager
def _quietly() -> Iterator[None]:
    """Silence warnings about what `Fitting` refuses or repairs: changed units, missing fill
    values, dates outside of their type, texts of fewer characters."""
    with _filters, warnings.catch_warnings():
        for text in (
            "Times can't be",
            "Timedeltas can't be",
            "saving variable",
            "Unable to dec",
            "String dimension naming mismatch",
        ):
            warnings.filterwarnings("ignore", text)
        with np.errstate(all="ignore"):
            yield


class Fitting:
    """Encodes items as the variable `stored` is encoded; raises ValueError if they would not be
    read back as given.

    Called with a block of items, in any thread or process, it returns the items to store.

    Parameters
    ----------
    name
        Name of the variable, for messages.
    given
        The variable whose items are encoded.
    stored
        The existing variable, as stored.
    decoded
        The existing variable, decoded.
    """

    def __init__(self, name: Any, given: Variable, stored: Variable, decoded: Variable) -> None:
        self._name = name
        self._dims = given.dims
        self._attributes = dict(given.attrs)
        self._encoding = dict(decoded.encoding)
        self._stored = Variable(stored.dims, np.empty((0,) * stored.ndim, stored.dtype))
        self._stored.attrs = dict(stored.attrs)
        self._old = (_kind(decoded), decoded.dtype)
        self._mark = _items.kind_of(stored)
        is_characters = stored.dtype == "S1" and stored.ndim == given.ndim + 1
        self._n_characters = stored.shape[-1] if is_characters else 0
        self._is_plain = is_plain(unmasked(self._stored.copy()))

    def variable(self, given: Variable) -> Variable:
        """Return the variable to store; blocks of a Dask array are checked when computed."""
        check_kind(self._name, given, *self._old)
        dtype = self._lazy_dtype(given.dtype)
        if not is_chunked_array(given._data) or dtype is None:
            return self._encoded(given.to_numpy())
        manager = get_chunked_array_type(given._data)
        meta = np.empty((0,) * given.ndim, dtype)
        return Variable(
            given.dims, manager.map_blocks(self, given._data, dtype=dtype, meta=meta)
        )

    def __call__(self, items: Any) -> Any:
        return self._encoded(np.asarray(items)).data

    def _lazy_dtype(self, given: np.dtype[Any]) -> np.dtype[Any] | None:
        """Return the dtype of encoded items; None if it depends on the length of texts."""
        stored = self._stored
        dtype: np.dtype[Any] = stored.dtype
        if dtype.kind not in "USOT":
            return dtype
        as_they_are = len(self._dims) == stored.ndim and "_Encoding" not in stored.attrs
        return given if given.kind in "US" and as_they_are else None

    def _encoded(self, items: Any) -> Variable:
        name, stored = self._name, self._stored
        if self._is_plain and items.dtype == stored.dtype:
            return Variable(self._dims, items)
        given = Variable(self._dims, items, self._attributes)
        check_kind(name, given, *self._old)
        given.encoding = dict(self._encoding)
        try:
            with _quietly():
                encoded, _ = WritableCFDataStore().encode({name: _items.unbound(given)}, {})
                variable = self._widened(_items.encode(encoded[name], name))
        except (ValueError, TypeError, OverflowError) as error:
            raise self._refusal(f"cannot hold what is given: {error}") from error
        check_stored(name, variable, stored)
        if variable.dtype.kind not in "USO":
            variable = variable.astype(stored.dtype, copy=False)
        self._check(items, _kind(given), variable)
        return variable

    def _widened(self, variable: Variable) -> Variable:
        """Pad texts that are stored as characters to the stored length."""
        dims, n = self._stored.dims, self._n_characters
        if not n or variable.dtype != "S1" or variable.shape[-1] > n:
            return variable
        items = np.zeros((*variable.shape[:-1], n), "S1")
        items[..., : variable.shape[-1]] = variable.data
        return Variable((*variable.dims[:-1], dims[-1]), items, variable.attrs)

    def _refusal(self, what: str, units: Any = None) -> ValueError:
        """Make the error for items that the stored encoding cannot hold."""
        stored, name = self._stored, self._name
        there = stored.attrs.get("units")
        if self._old[0] not in _TIMES:
            unsigned = str(stored.attrs.get("_Unsigned", "")).lower()
            kind = {"true": "u", "false": "i"}.get(unsigned, stored.dtype.kind)
            dtype = np.dtype(f"{kind}{stored.dtype.itemsize}") if unsigned else stored.dtype
            return ValueError(f"variable {name!r} is stored as {dtype}, which {what}")
        fine = units if units not in (None, there) else "seconds since 2000-01-01"
        return ValueError(
            f"variable {name!r} is stored in {there!r}, as {stored.dtype}, which {what}: save "
            f"the data set anew with finer units, by encoding={{{name!r}: "
            f"{{'units': {fine!r}}}}}"
        )

    # ---- Reading back ------------------------------------------------------------------

    def _decoded(self, items: Any, new: Any) -> Any:
        """Decode items as they will be read; times get the type of `new`."""
        stored = self._stored
        unit: Any = _unit_of(new) if new.dtype.kind == "M" else "ns"
        times = CFDatetimeCoder(use_cftime=new.dtype.kind == "O", time_unit=unit)
        read = _items.as_read(items, _items.dtype_of(items.dtype, self._mark))
        with _quietly():
            again = conventions.decode_cf_variable(
                self._name,
                Variable(stored.dims, read, dict(stored.attrs)),
                decode_times=times,
                decode_timedelta=new.dtype.kind == "m",
            )
            return np.asarray(again.to_numpy())

    def _check(self, new: Any, kind: str | None, encoded: Variable) -> None:
        """Refuse items that are not read back as given."""
        units = encoded.attrs.get("units")
        try:
            old = self._decoded(encoded.to_numpy(), new)
        except (ValueError, TypeError, OverflowError) as error:
            raise self._refusal(f"cannot hold what is given: {error}", units) from error
        flat, back = new.reshape(-1), old.reshape(-1)
        missing = _missing(flat)
        # Texts have no missing value: xarray stores an empty text, in every format.
        fits = missing & (_missing(back) | (kind in ("texts", "bytes")))
        fits[~missing] = self._same(flat[~missing], back[~missing], kind)
        if kind in _TIMES and encoded.dtype.kind == "f" and not fits.all():
            fits |= _nearly(flat, back)
        if not fits.all():
            first = int(np.argmin(fits))
            if missing[first]:
                raise ValueError(
                    f"variable {self._name!r} is stored as {self._stored.dtype} without a "
                    f"_FillValue, and cannot hold {flat[first]!s}"
                )
            raise self._refusal(f"cannot hold {flat[first]!s}", units)

    def _same(self, new: Any, old: Any, kind: str | None) -> Any:
        """Return which items, none of them missing, are read back as given."""
        if kind == "complex":
            return _same_floats(new, old)
        if kind in ("integers", "floats"):
            return self._same_numbers(new if new.dtype != object else np.array([*new]), old)
        if kind in ("texts", "bytes"):
            return np.asarray(new.astype(object) == old.astype(object), bool)
        if kind is None:
            return True  # structures of the stored dtype
        try:
            return np.asarray(new == old, bool)
        except TypeError:  # dates of calendars that cannot be compared
            return False

    def _packing(self) -> tuple[float, float] | None:
        """Return the stored scale and offset, or None."""
        words = [self._stored.attrs.get(key) for key in ("scale_factor", "add_offset")]
        if words == [None, None]:
            return None
        scale, offset = (
            float(np.reshape(word if word is not None else default, -1)[0])
            for word, default in zip(words, (1, 0), strict=True)
        )
        return scale, offset

    def _same_numbers(self, new: Any, old: Any) -> Any:
        packing = self._packing()
        if packing is None and new.dtype.kind in "iu":
            return _same_integers(new, old)
        if packing is None and self._stored.dtype.kind in "fc":
            return _same_floats(new, old)
        # Packed items are rounded to a step, and packing computes with floats.
        scale, offset = packing or (0.0, 0.0)
        step = abs(scale) / 2 if self._stored.dtype.kind in "iu" else 0.0
        floats = [d for d in (new.dtype, old.dtype, self._stored.dtype) if d.kind == "f"]
        eps = max((float(np.finfo(d).eps) for d in floats), default=0.0)
        with np.errstate(all="ignore"):
            wide, back = new.astype("f8"), old.astype("f8")
            near = np.abs(wide - back) <= step + 4 * eps * (np.abs(wide) + abs(offset))
        return (wide == back) | (np.isfinite(wide) & near)


# ---- Comparing items -------------------------------------------------------------------------


def _missing(items: Any) -> Any:
    if items.dtype == object:
        return np.array([item is None or item != item for item in items], bool)
    return items != items if items.dtype.kind in "fcmM" else np.zeros(items.shape, bool)


def _unit_of(times: Any) -> Any:
    """Return the unit to decode times to: ``ns``, xarray's default when it opens a data set, if
    it can hold them, else their own unit."""
    first, last = np.datetime64("1678", "s"), np.datetime64("2262", "s")
    if (((times >= first) & (times < last)) | np.isnat(times)).all():
        return "ns"
    return np.datetime_data(times.dtype)[0]


def _nearly(new: Any, old: Any) -> Any:
    """Return which times differ by at most 1 us, to which decoding rounds floats."""
    least: Any = np.timedelta64(1, "us")
    if new.dtype == object:
        least = timedelta(microseconds=1)
    try:
        return np.asarray(np.abs(new - old) <= least, bool)
    except TypeError:  # dates of calendars that cannot be compared
        return False


def _same_floats(new: Any, old: Any) -> Any:
    """Return which floats are the nearest of their type and have not become infinite."""
    with np.errstate(all="ignore"):
        return (new.astype(old.dtype) == old) & (np.isfinite(old) | ~np.isfinite(new))


def _same_integers(new: Any, old: Any) -> Any:
    """Return which integers, which may have become floats, are the same numbers."""
    if old.dtype.kind in "iub":
        return new == old
    # Converting floats outside the range of the integer dtype is undefined.
    bits = 8 * new.dtype.itemsize - (new.dtype.kind == "i")
    least = -(2.0**bits) if new.dtype.kind == "i" else 0.0
    with np.errstate(all="ignore"):
        wide = old.real.astype("f8")
        inside = (wide >= least) & (wide < 2.0**bits)
        return inside & (np.where(inside, old.real, 0).astype(new.dtype) == new)

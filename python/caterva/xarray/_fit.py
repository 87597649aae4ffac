# mypy: allow-untyped-calls
"""Items encoded as a variable that is there: what is not read back as given is refused."""

from __future__ import annotations

import os
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

from . import _items
from ._decode import is_plain, unmasked

_KINDS = {"b": "truths", "i": "integers", "u": "integers", "f": "floats", "c": "complex",
          "M": "times", "m": "spans of time", "U": "texts", "T": "texts",
          "S": "bytes"}  # fmt: skip
_TIMES = ("times", "spans of time")
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


def check_kind(name: Any, given: Variable, old: str | None, there: np.dtype[Any]) -> None:
    """Refuse items of another kind than `old`, that of the items of dtype `there`."""
    new = _kind(given)
    if new is None or old is None:
        alike = "O" in given.dtype.kind + there.kind or given.dtype == there
    else:
        alike = new == old or (new, old) in _WIDER
    if not alike:
        raise ValueError(
            f"variable {name!r} holds {there} ({old}), which {given.dtype} ({new}) "
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


# ---- Encoding ------------------------------------------------------------------------------


_filters = threading.Lock()  # warnings.catch_warnings changes the process


def _renew_lock() -> None:
    """Another thread may hold the lock while this process is forked."""
    global _filters
    _filters = threading.Lock()


os.register_at_fork(after_in_child=_renew_lock)


@contextmanager
def _quietly() -> Iterator[None]:
    """Silences warnings about what `Fitting` refuses or mends: changed units, missing fill
    values, dates that do not fit their type, texts of fewer characters."""
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
    """Encodes items as the variable `stored` is encoded; ValueError if they would not be read
    back as they were given.

    Called with a block of items, in any thread or process, it returns the items to store.

    Parameters
    ----------
    name
        The variable's name, for messages.
    given
        The variable whose items are encoded.
    stored
        The variable that is there, as it is stored.
    decoded
        The same, decoded.
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
        """The variable to store; one that is computed later is checked block by block then."""
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
        """The dtype of encoded items; None if only the items tell how wide texts are."""
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
        """Texts that are stored as characters, with zeros up to the stored length."""
        dims, n = self._stored.dims, self._n_characters
        if not n or variable.dtype != "S1" or variable.shape[-1] > n:
            return variable
        items = np.zeros((*variable.shape[:-1], n), "S1")
        items[..., : variable.shape[-1]] = variable.data
        return Variable((*variable.dims[:-1], dims[-1]), items, variable.attrs)

    def _refusal(self, what: str, units: Any = None) -> ValueError:
        """The error for items that the stored encoding cannot hold."""
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
            f"the data set anew with finer units, as encoding={{{name!r}: "
            f"{{'units': {fine!r}}}}} says"
        )

    # ---- What is read back -------------------------------------------------------------

    def _decoded(self, items: Any, new: Any) -> Any:
        """What is read of the items once they are stored, as times of the type of `new`."""
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
        """Refuse items that are read back as others."""
        units = encoded.attrs.get("units")
        try:
            old = self._decoded(encoded.to_numpy(), new)
        except (ValueError, TypeError, OverflowError) as error:
            raise self._refusal(f"cannot hold what is given: {error}", units) from error
        flat, back = new.reshape(-1), old.reshape(-1)
        missing = _missing(flat)
        # Texts have no missing value: xarray stores an empty one, in files of any format.
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
        """Which items, none of them missing, are read back as they were given."""
        if kind == "complex":
            return _same_floats(new, old)
        if kind in ("integers", "floats"):
            return self._same_numbers(new if new.dtype != object else np.array([*new]), old)
        if kind in ("texts", "bytes"):
            return np.asarray(new.astype(object) == old.astype(object), bool)
        if kind is None:
            return True  # structures, whose dtype is the stored one
        try:
            return np.asarray(new == old, bool)
        except TypeError:  # dates of calendars that do not compare
            return False

    def _packing(self) -> tuple[float, float] | None:
        """The stored scale and offset."""
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
        # Packed items are rounded to a step, and what they are computed with are floats.
        scale, offset = packing or (0.0, 0.0)
        step = abs(scale) / 2 if self._stored.dtype.kind in "iu" else 0.0
        floats = [d for d in (new.dtype, old.dtype, self._stored.dtype) if d.kind == "f"]
        eps = max((float(np.finfo(d).eps) for d in floats), default=0.0)
        with np.errstate(all="ignore"):
            wide, back = new.astype("f8"), old.astype("f8")
            near = np.abs(wide - back) <= step + 4 * eps * (np.abs(wide) + abs(offset))
        return (wide == back) | (np.isfinite(wide) & near)


# ---- Items that are equal --------------------------------------------------------------------


def _missing(items: Any) -> Any:
    if items.dtype == object:
        return np.array([item is None or item != item for item in items], bool)
    return items != items if items.dtype.kind in "fcmM" else np.zeros(items.shape, bool)


def _unit_of(times: Any) -> Any:
    """The unit that the times are decoded to: ``ns``, as data sets are opened unless another
    one is asked for, if it holds them, and else their own."""
    first, last = np.datetime64("1678", "s"), np.datetime64("2262", "s")
    if (((times >= first) & (times < last)) | np.isnat(times)).all():
        return "ns"
    return np.datetime_data(times.dtype)[0]


def _nearly(new: Any, old: Any) -> Any:
    """Which times differ by a microsecond at most, which is what decoding floats rounds to."""
    least: Any = np.timedelta64(1, "us")
    if new.dtype == object:
        least = timedelta(microseconds=1)
    try:
        return np.asarray(np.abs(new - old) <= least, bool)
    except TypeError:  # dates of calendars that do not compare
        return False


def _same_floats(new: Any, old: Any) -> Any:
    """Whether floats are the nearest of their type, and none has become infinite."""
    with np.errstate(all="ignore"):
        return (new.astype(old.dtype) == old) & (np.isfinite(old) | ~np.isfinite(new))


def _same_integers(new: Any, old: Any) -> Any:
    """Whether integers, which may have become floats, are the same numbers."""
    if old.dtype.kind in "iub":
        return new == old
    # Beyond what the integers reach, the way back is undefined.
    bits = 8 * new.dtype.itemsize - (new.dtype.kind == "i")
    least = -(2.0**bits) if new.dtype.kind == "i" else 0.0
    with np.errstate(all="ignore"):
        wide = old.real.astype("f8")
        inside = (wide >= least) & (wide < 2.0**bits)
        return inside & (np.where(inside, old.real, 0).astype(new.dtype) == new)

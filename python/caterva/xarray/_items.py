# mypy: allow-untyped-calls
"""Items that arrays do not have as such: texts and bytes of any length.

They are stored as texts (``<U9``) or bytes (``|S9``) as long as the longest of them, with an
attribute ``_vlen`` that tells what they were: ``text`` and ``bytes`` are Python's objects,
``string`` is NumPy's StringDType.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from xarray import Variable
from xarray.coding.strings import (
    CharacterArrayCoder,
    EncodedStringCoder,
    check_vlen_dtype,
    create_vlen_dtype,
)
from xarray.namedarray.pycompat import is_chunked_array

from .._plans import AnyArray

MARK = "_vlen"
KINDS = ("text", "bytes", "string")


def dtype_of(stored: np.dtype[Any], mark: Any) -> np.dtype[Any]:
    """What items look like to xarray."""
    if mark in ("text", "bytes"):
        objects: np.dtype[Any] = create_vlen_dtype(str if mark == "text" else bytes)
        return objects
    if mark == "string" and hasattr(np.dtypes, "StringDType"):
        return np.dtypes.StringDType()
    return stored


def as_read(items: AnyArray, dtype: np.dtype[Any]) -> AnyArray:
    """Stored items as they look to xarray."""
    return items if items.dtype == dtype else items.astype(dtype)


def _check_ends(items: AnyArray, end: Any, name: Any) -> None:
    for item in items.flat:
        if item.endswith(end):
            raise ValueError(
                f"variable {name!r} has {item!r}, which ends with a zero: texts and bytes are "
                "stored with zeros behind them, and would lose it"
            )


def _stored(items: AnyArray, kind: str, name: Any) -> AnyArray:
    """Texts or bytes of any length as some of one length."""
    if kind == "bytes":
        _check_ends(items, b"\0", name)
        width = max((len(item) for item in items.flat), default=0)
        # One byte would be a character of a text to readers of NetCDF's conventions.
        return items.astype(f"S{max(2, width)}")
    _check_ends(items, "\0", name)
    width = max((len(item) for item in items.flat), default=0)
    return items.astype(f"U{max(1, width)}")


def kind_of(variable: Variable) -> str | None:
    """The mark of texts or bytes of any length."""
    if variable.dtype.kind == "T":
        return "string"
    return {str: "text", bytes: "bytes"}.get(check_vlen_dtype(variable.dtype))


def _as_objects(data: Any) -> AnyArray:
    """Texts in memory, nothing of nulls."""
    items = np.array(data, dtype=object)
    missing = [item is None or item != item for item in items.flat]
    if any(missing):
        items[np.reshape(missing, items.shape)] = ""
    return items


def unbound(variable: Variable) -> Variable:
    """The variable without the encoding's width of texts: they may be longer. Times that are
    computed later, of which the units alone are given, are stored as integers."""
    dtype = variable.encoding.get("dtype")
    is_later = variable.dtype.kind in "mM" and is_chunked_array(variable._data)
    if is_later and dtype is None and variable.encoding.get("units") is not None:
        variable = variable.copy(deep=False)
        variable.encoding = {**variable.encoding, "dtype": np.dtype("i8")}
        return variable
    if dtype is None or dtype is str or dtype == "S1" or np.dtype(dtype).kind not in "USOT":
        return variable
    variable = variable.copy(deep=False)
    variable.encoding = {k: v for k, v in variable.encoding.items() if k != "dtype"}
    return variable


def encode(variable: Variable, name: Any) -> Variable:
    """The variable with items that arrays have."""
    as_characters = variable.encoding.get("dtype") == "S1"
    kind = kind_of(variable)
    if as_characters and not (kind or variable.dtype.kind in "US"):
        as_characters = False
    if as_characters or variable.dtype == "S1":
        variable = EncodedStringCoder().encode(variable, name=name)
        variable = CharacterArrayCoder().encode(variable, name=name)
    elif kind is not None:
        items = _stored(_as_objects(variable.data), kind, name)
        variable = Variable(
            variable.dims, items, variable.attrs | {MARK: kind}, variable.encoding
        )
    variable.encoding.pop("dtype", None)
    if variable.dtype.itemsize == 0:  # texts of no length at all
        return variable.astype(f"{variable.dtype.kind}1")
    return variable

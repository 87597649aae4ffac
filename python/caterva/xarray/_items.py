# mypy: allow-untyped-calls
"""Items without a fixed width, which arrays cannot hold: str and bytes of any length.

They are stored as ``<U9`` or ``|S9``, as wide as the longest of them, with an attribute
``_vlen`` that records the original type: ``text`` and ``bytes`` are Python objects, ``string``
is NumPy's StringDType.
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


def dtype_of(stored: np.dtype[Any], mark: Any) -> np.dtype[Any]:
    """Return the dtype that xarray sees."""
    if mark in ("text", "bytes"):
        objects: np.dtype[Any] = create_vlen_dtype(str if mark == "text" else bytes)
        return objects
    if mark == "string" and hasattr(np.dtypes, "StringDType"):
        return np.dtypes.StringDType()
    return stored


def as_read(items: AnyArray, dtype: np.dtype[Any]) -> AnyArray:
    """Convert stored items to the dtype that xarray sees."""
    return items if items.dtype == dtype else items.astype(dtype)


def _check_ends(items: AnyArray, end: Any, name: Any) -> None:
    for item in items.flat:
        if item.endswith(end):
            raise ValueError(
                f"variable {name!r} has {item!r}, which ends with a NUL: stored texts and "
                "bytes are padded with NULs, so it would be lost"
            )


def _stored(items: AnyArray, kind: str, name: Any) -> AnyArray:
    """Convert texts or bytes of any length to a fixed width."""
    if kind == "bytes":
        _check_ends(items, b"\0", name)
        width = max((len(item) for item in items.flat), default=0)
        # By NetCDF's conventions, items of one byte are the characters of a text.
        return items.astype(f"S{max(2, width)}")
    _check_ends(items, "\0", name)
    width = max((len(item) for item in items.flat), default=0)
    return items.astype(f"U{max(1, width)}")


def kind_of(variable: Variable) -> str | None:
    """Return the mark of texts or bytes of any length; None for other items."""
    if variable.dtype.kind == "T":
        return "string"
    return {str: "text", bytes: "bytes"}.get(check_vlen_dtype(variable.dtype))


def _as_objects(data: Any) -> AnyArray:
    """Return texts as objects in memory, empty ones in place of missing ones."""
    items = np.array(data, dtype=object)
    missing = [item is None or item != item for item in items.flat]
    if any(missing):
        items[np.reshape(missing, items.shape)] = ""
    return items


def unbound(variable: Variable) -> Variable:
    """Return the variable without a text width in its encoding: its texts may be longer. Dask
    times for which only units are given get the dtype int64."""
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
    """Convert the variable's items to a dtype that arrays can hold."""
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
    if variable.dtype.itemsize == 0:  # all texts are empty
        return variable.astype(f"{variable.dtype.kind}1")
    return variable

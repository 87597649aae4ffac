"""NumPy's dtypes and their text in files."""

from __future__ import annotations

import ast
import functools
from typing import Any

import numpy as np
import numpy.typing as npt

from . import _caterva, _msgpack

ML_DTYPE = "ml_dtype"
"""Metalayer with the name of a dtype that NumPy has no letter for, as msgpack."""

UNSAFE = 2
"""The library's number for casting rule ``"unsafe"``."""


@functools.cache
def of_text(text: str, item_size: int, foreign: bytes | None = None) -> np.dtype[Any]:
    """Return the dtype of a text in a file; opaque bytes if NumPy has none of that size.

    `foreign` is the contents of the metalayer `ML_DTYPE`.
    """
    if foreign is not None:
        named = of_name(foreign)
        if named is not None and named.itemsize == item_size:
            return named
    try:
        plain = text.startswith(("[", "{", "("))
        dtype = np.dtype(ast.literal_eval(text) if plain else text)
    except (TypeError, ValueError, SyntaxError, KeyError):
        dtype = np.dtype(f"V{item_size}")
    if dtype.itemsize != item_size or dtype.subdtype is not None or dtype.hasobject:
        return np.dtype(f"V{item_size}")
    return dtype


def is_foreign(dtype: np.dtype[Any]) -> bool:
    """Whether another package has added the dtype to NumPy, as bfloat16."""
    return dtype.isbuiltin == 2


def text_of(dtype: np.dtype[Any]) -> str:
    """Return the text of a dtype for files, as python-blosc2 writes it."""
    if dtype.hasobject:
        raise TypeError(f"items of dtype {dtype} are Python objects, which cannot be stored")
    if dtype.itemsize == 0:
        raise TypeError(f"items of dtype {dtype!r} have no bytes")
    if is_foreign(dtype):
        return f"|V{dtype.itemsize}"
    return dtype.str if dtype.names is None else str(_plain(dtype))


def _plain(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Replace record dtypes in a structured dtype by plain structures."""
    if dtype.subdtype is not None:
        return np.dtype((_plain(dtype.base), dtype.shape))
    if is_foreign(dtype):
        raise TypeError(
            f"a field of dtype {dtype} cannot be stored: dtypes of other packages are "
            "supported only for whole items"
        )
    if dtype.names is None:
        return dtype
    fields: Any = dtype.fields
    parts = {name: _plain(fields[name][0]) for name in dtype.names}
    if dtype.type is np.void and all(fields[name][0] is parts[name] for name in parts):
        return dtype
    words: Any = {
        "names": list(parts),
        "formats": list(parts.values()),
        "offsets": [fields[name][1] for name in parts],
        "titles": [fields[name][2] if len(fields[name]) > 2 else None for name in parts],
        "itemsize": dtype.itemsize,
    }
    plain: np.dtype[Any] = np.dtype(words, align=dtype.isalignedstruct)
    return plain


def sized(dtype: npt.DTypeLike, stored: np.dtype[Any]) -> np.dtype[Any]:
    """Return `dtype` with the width that items of dtype `stored` need, if it has none (as
    ``str``), as in NumPy's astype. It still has none if NumPy finds the width in the items."""
    wanted = np.dtype(dtype)
    if wanted.itemsize > 0 and not _has_no_unit(wanted):
        return wanted
    return np.empty(0, stored).astype(wanted).dtype


def _has_no_unit(dtype: np.dtype[Any]) -> bool:
    return dtype.kind in "mM" and np.datetime_data(dtype)[0] == "generic"


def is_sized(dtype: np.dtype[Any], stored: np.dtype[Any]) -> bool:
    """Whether a dtype from `sized` has its width or unit; else NumPy finds it in the items."""
    if _has_no_unit(dtype):
        return stored.kind not in "SUT"
    return dtype.itemsize > 0


def of_name(packed: bytes) -> np.dtype[Any] | None:
    """Return the dtype of ml_dtypes with that name, if the package is installed."""
    try:
        import ml_dtypes

        found: np.dtype[Any] = np.dtype(getattr(ml_dtypes, str(_msgpack.unpack(packed))))
        return found
    except (ImportError, AttributeError, TypeError, ValueError):
        return None


def converts(dtype: np.dtype[Any]) -> str | None:
    """Return the library's name for a dtype that it can convert, or None."""
    if dtype.kind in "biuc" or (dtype.kind == "f" and dtype.itemsize in (2, 4, 8)):
        return None if dtype.kind == "c" and dtype.itemsize > 16 else dtype.str
    if is_foreign(dtype) and dtype.name == "bfloat16":
        return "bfloat16"
    return None


# ---- Casts ------------------------------------------------------------------------------


def cast(items: npt.NDArray[Any], dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    """Cast `items` as NumPy does in an assignment. Floats outside the range of an integer
    dtype, which NumPy leaves undefined, become the nearest integer, and NaN becomes 0."""
    floats = items.dtype.kind in "fc" or is_foreign(items.dtype)
    if dtype.kind not in "iu" or not floats or items.size == 0:
        return items.astype(dtype, copy=False)
    if is_foreign(items.dtype) and converts(items.dtype) is None:
        items = items.astype(np.complex64 if str(items.dtype.kind) == "W" else np.float32)
    if items.dtype.kind == "c":
        items = items.astype(items.real.dtype)  # with NumPy's warning
    source = converts(items.dtype)
    if source is None:  # long doubles
        limits = np.iinfo(dtype)
        bounded = np.clip(items, items.dtype.type(limits.min), items.dtype.type(limits.max))
        return np.where(np.isnan(items), 0, bounded).astype(dtype)
    items = np.asarray(items, order="C")
    out = np.empty(items.shape, dtype)
    _caterva.convert(items, source, out, dtype.str, UNSAFE)
    return out

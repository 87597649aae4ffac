"""NumPy's dtypes and the descriptions of them that files hold."""

from __future__ import annotations

import ast
import functools
from typing import Any

import numpy as np

from . import _msgpack

ML_DTYPE = "ml_dtype"
"""The metalayer with the name of a dtype that NumPy has no letter for, as msgpack."""


@functools.cache
def of_text(text: str, item_size: int, foreign: bytes | None = None) -> np.dtype[Any]:
    """The dtype of a description; opaque bytes where NumPy has none of that size.

    `foreign` is what the metalayer of a dtype of ml_dtypes holds.
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
    """True for bfloat16 and the like, which other packages add to NumPy."""
    return dtype.kind == "V" and dtype.names is None and dtype.type is not np.void


def text_of(dtype: np.dtype[Any]) -> str:
    """The description of a dtype, as python-blosc2 writes it, too."""
    if dtype.hasobject:
        raise TypeError(f"items of dtype {dtype} are Python objects, which cannot be stored")
    if dtype.itemsize == 0:
        raise TypeError(f"items of dtype {dtype!r} have no bytes")
    if is_foreign(dtype):
        return f"|V{dtype.itemsize}"
    return dtype.str if dtype.names is None else str(dtype)


def of_name(packed: bytes) -> np.dtype[Any] | None:
    """The dtype of ml_dtypes with that name, where the package is installed."""
    try:
        import ml_dtypes

        found: np.dtype[Any] = np.dtype(getattr(ml_dtypes, str(_msgpack.unpack(packed))))
        return found
    except (ImportError, AttributeError, TypeError, ValueError):
        return None


def converts(dtype: np.dtype[Any]) -> str | None:
    """The word for buffers of this dtype, where the library converts such numbers."""
    if dtype.kind in "biuc" or (dtype.kind == "f" and dtype.itemsize in (2, 4, 8)):
        return None if dtype.kind == "c" and dtype.itemsize > 16 else dtype.str
    if is_foreign(dtype) and dtype.name == "bfloat16":
        return "bfloat16"
    return None

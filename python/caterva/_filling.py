"""New arrays: the options that they are made with, and the items that they get."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from . import _boxes, _caterva, _options
from ._array import Array
from ._copies import named
from ._places import place_of

SLAB_BYTES = 1 << 26  # that are moved at once


def new_words(
    shape: Any, dtype: Any, fill_value: Any, options: dict[str, Any]
) -> tuple[dict[str, Any], _options.Progress | None, Any]:
    """What the extension makes an array with, who hears of it, and names of dimensions."""
    asked = dict(options)
    progress = _options.progress_of(asked.pop("progress", None))
    dims = asked.pop("dims", None)
    items = np.dtype(dtype)
    lengths = _options.shape_of(shape)
    if items.subdtype is not None:
        lengths, items = lengths + items.shape, items.base
    words = _options.storage_options(lengths, items, asked)
    return words | _options.fill_options(fill_value, items), progress, dims


def incomplete(
    shape: Any, dtype: Any, path: Any, fill_value: Any, options: Mapping[str, Any]
) -> Array:
    """A new array whose end drops it until `_complete` is called: it replaces nothing when
    making or filling it is interrupted."""
    words, progress, dims = new_words(shape, dtype, fill_value, dict(options))
    return named(_caterva.create(Array, place_of(path), words, progress), dims)


def as_stored(data: Array, options: dict[str, Any]) -> dict[str, Any]:
    """Options of an array that is made of another: its chunks, where nothing is said."""
    like = {"chunks": data.chunks, "blocks": data.blocks}
    return options if like.keys() & options.keys() else like | options


def is_array(x: Any) -> bool:
    """True for anybody's arrays, which are read by indexing."""
    return all(hasattr(x, name) for name in ("shape", "dtype", "__getitem__"))


def sized(x: Any, dtype: Any) -> Any:
    """Lists and iterators as an array."""
    if isinstance(x, Iterator):
        return np.asarray(list(x), dtype)
    return np.asarray(x, dtype)


def fill(array: Array, x: Any) -> None:
    """Write all of `x`, an array of anybody's, in slabs of whole chunks."""
    if isinstance(x, np.ndarray | np.generic) and not isinstance(x, np.memmap):
        array[...] = x
        return
    budget = SLAB_BYTES // max(1, array.itemsize)
    for place in _boxes.iter_boxes(
        ..., array.shape, _boxes.slab_shape(array.shape, array.chunks, budget)
    ):
        array[place] = np.asarray(x[place])

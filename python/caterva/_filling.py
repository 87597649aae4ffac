"""Creating arrays: their options and their first items."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from . import _boxes, _caterva, _options
from ._array import Array
from ._copies import named
from ._places import place_to_create

SLAB_BYTES = 1 << 26  # moved at a time


def new_words(
    shape: Any, dtype: Any, fill_value: Any, options: dict[str, Any]
) -> tuple[dict[str, Any], _options.Progress | None, Any]:
    """Return options for the extension, the progress function, and names of dimensions."""
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
    """Create an array that is dropped, not committed, if it is collected before `_complete`:
    an interruption while it is made or filled then replaces nothing."""
    words, progress, dims = new_words(shape, dtype, fill_value, dict(options))
    return named(_caterva.create(Array, place_to_create(path), words, progress), dims)


def as_stored(data: Array, options: dict[str, Any]) -> dict[str, Any]:
    """Add chunk and block shape of `data` to the options, unless they have either."""
    like = {"chunks": data.chunks, "blocks": data.blocks}
    return options if like.keys() & options.keys() else like | options


def is_array(x: Any) -> bool:
    """Whether `x` is an array of any package, which can be read by indexing."""
    return all(hasattr(x, name) for name in ("shape", "dtype", "__getitem__"))


def sized(x: Any, dtype: Any) -> Any:
    """Convert lists and iterators to a NumPy array."""
    if isinstance(x, Iterator):
        return np.asarray(list(x), dtype)
    return np.asarray(x, dtype)


def fill(array: Array, x: Any) -> None:
    """Write all of `x`, an array of any package, in slabs of whole chunks."""
    if isinstance(x, np.ndarray | np.generic) and not isinstance(x, np.memmap):
        array[...] = x
        return
    budget = SLAB_BYTES // max(1, array.itemsize)
    for place in _boxes.iter_boxes(
        ..., array.shape, _boxes.slab_shape(array.shape, array.chunks, budget)
    ):
        array[place] = np.asarray(x[place])

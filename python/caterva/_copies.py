"""Copies of arrays and views. Does not import their classes, whose `copy` uses this module."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from . import _boxes, _caterva, _dtypes, _options
from ._errors import DTypeError
from ._places import place_of, place_to_create

if TYPE_CHECKING:
    from ._array import Array
    from ._view import View


def named(array: Array, dims: Any) -> Array:
    """Set the names of the dimensions of a new array, if given, and return it."""
    if dims is None:
        return array
    try:
        array.dims = dims
    except BaseException:
        array.discard()
        raise
    return array


def _is_box(x: Array | View, sel: Any) -> bool:
    """Whether caterva_copy takes the selection: slices of step 1 that keep all axes."""
    axes, new = _boxes.view_axes(sel, x.shape)
    return not new and all(isinstance(a, slice) and a.step == 1 for a in axes)


def _conversion(stored: np.dtype[Any], wanted: np.dtype[Any]) -> str:
    """Return the library's text of the dtype that a copy converts to."""
    if all(_dtypes.converts(dtype) == dtype.str for dtype in (stored, wanted)):
        return wanted.str
    raise DTypeError(
        f"a copy does not convert items of dtype {stored} to {wanted}: only bool, integers, "
        "floats of 2, 4 and 8 bytes, and complex; caterva.asarray(a.astype(dtype), path) does"
    )


def _copy_words(x: Array | View, options: dict[str, Any]) -> tuple[dict[str, Any], ...]:
    """Split the options of `copy` into those of creating and of copying."""
    how: dict[str, Any] = {"memory": options.pop("memory", 0)}
    dtype = options.pop("dtype", None)
    casting = options.pop("casting", "same_kind")
    if dtype is not None and np.dtype(dtype) != x.dtype:
        how["convert_to"] = _conversion(x.dtype, np.dtype(dtype))
        how["casting"] = _options.number_of(casting, _options.CASTINGS, "casting")
    far = options.pop("for_remote", None)
    how["for_remote"] = None if far is None else bool(_options.flag_of(far, "for_remote"))
    words = _options.storage_options(x.shape, x.dtype, options)
    for name in ("shape", "dtype"):
        del words[name]
    if not words["metalayers"] or options.get("metalayers") is None:
        del words["metalayers"]
    return words, how


def copied(
    make: type[Array],
    x: Array | View,
    path: _options.Path | None,
    sel: Any,
    options: dict[str, Any],
) -> Array:
    """Copy a selection of `x` to a new array of class `make`."""
    zarr = bool(_options.flag_of(options.pop("zarr", False), "zarr"))
    if zarr and options.get("dims") is not None:  # the copy cannot be changed afterwards
        x, sel = copied(make, x, None, sel, {"dims": options.pop("dims")}), ...
    fill_value, dims = options.pop("fill_value", None), options.pop("dims", None)
    progress = _options.progress_of(options.pop("progress", None))
    source: Array | View = x
    if isinstance(x, _caterva.View):
        source = x.select(sel)
    elif not _is_box(x, sel):
        source = x.view[sel]
    words, how = _copy_words(source, options)
    items = np.dtype(options.get("dtype") or source.dtype)
    words |= _options.fill_options(fill_value, items)
    if "chunks" in words or "blocks" in words:
        words["shape"] = source.shape
    if source is x and isinstance(x, _caterva.Array):
        how["start"], how["stop"] = _boxes.box_around(sel, x.shape)
    how["zarr"] = zarr
    place = place_of(path) if zarr else place_to_create(path)
    return named(_caterva.copy(make, source, place, words, how, progress), dims)

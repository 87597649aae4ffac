"""Functions on files, partitions, and the cache that arrays share."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any, TypedDict, Unpack

import numpy as np
import numpy.typing as npt

from . import _caterva, _dtypes, _indexing, _options
from ._array import Array
from ._errors import Error
from ._info import Repair, repair_of
from ._options import Path
from ._places import place_of


def delete(path: Path, *, progress: _options.Listener = None) -> None:
    """Delete the array at `path`. Anything that is not an array is refused.

    Parameters
    ----------
    progress
        Function ``(done, total)``, called with bytes, or ``"tqdm"``; a file of a sparse array
        counts 4 KiB. Returning a true value stops the deletion, as do Ctrl-C and an exception
        of the function. If files have been deleted by then, the name is free, and the others
        are in ``.NAME.deleted-XXXXXX`` beside it, which the text or a note of the exception
        names: `delete` that.

    Examples
    --------
    >>> import caterva, os
    >>> caterva.save("gone.b2nd", [1, 2])
    >>> caterva.delete("gone.b2nd")
    >>> os.path.exists("gone.b2nd")
    False
    """
    _caterva.delete(place_of(path), 0, _options.progress_of(progress))


class Upkeep(TypedDict, total=False):
    """Options of `compact` and `seal`."""

    durability: _options.Durability
    progress: _options.Listener


def _upkeep(function: Any, path: Path, how: Upkeep) -> None:
    if unknown := how.keys() - Upkeep.__annotations__.keys():
        raise TypeError(f"there is no option {min(unknown)!r}")
    durability = how.get("durability", "full")
    level = _options.number_of(durability, _options.DURABILITIES, "durability")
    function(place_of(path), level, _options.progress_of(how.get("progress")))


def compact(path: Path, **how: Unpack[Upkeep]) -> None:
    """Rewrite the array at `path` without its dead space.

    Parameters
    ----------
    durability
        Default ``"full"``; see `open`.
    progress
        Function ``(done, total)``, called with decoded bytes, or ``"tqdm"``.

    Examples
    --------
    >>> import caterva
    >>> caterva.save("compacted.b2nd", range(9), overwrite=True)
    >>> caterva.compact("compacted.b2nd")
    """
    _upkeep(_caterva.compact, path, how)


def seal(path: Path, **how: Unpack[Upkeep]) -> None:
    """Store checksums for all chunks of the array at `path` that have none.

    The options are those of `compact`.

    Examples
    --------
    >>> import caterva
    >>> caterva.save("sealed.b2nd", range(9), overwrite=True)
    >>> caterva.seal("sealed.b2nd")
    """
    _upkeep(_caterva.seal, path, how)


def _fill_of(fill: Any, place: str) -> tuple[bytes | None, str | None]:
    """Return the bytes of one item and the text of its dtype, None if that is unknown."""
    if fill is None or isinstance(fill, bytes):
        return fill, None
    stored = None
    with contextlib.suppress(Error):
        words = _options.open_options(False, {"unchecked": True})
        array = _caterva.open(Array, place, words, None)
        stored = array.dtype
        array.discard()
    item = np.asarray(fill) if stored is None else _indexing.item_of(fill, stored)
    return item.tobytes(), _dtypes.text_of(item.dtype)


def repair(
    path: Path,
    output: Path | None = None,
    *,
    overwrite: bool = False,
    guess: bool = False,
    fill_value: Any = None,
    threads: int = 0,
    durability: _options.Durability = "full",
    progress: _options.Listener = None,
) -> Repair:
    """Repair the array at `path`, which is damaged or cannot be opened.

    Parameters
    ----------
    output
        Where to write what can be read. None restores a damaged header in place if that is
        all, and else writes to `path` with ``.repaired`` added.
    overwrite
        Replace what exists at the output.
    guess
        If there is no index at all, number chunks in file order.
    fill_value
        Items of lost chunks: a value, converted to the array's dtype (if the header cannot be
        read, it must have that dtype), or the bytes of one item.

    Returns
    -------
    Repair
        If ``written`` and ``in_place`` are both False, the array was sound.

    Examples
    --------
    >>> import caterva
    >>> caterva.save("sound.b2nd", range(9), overwrite=True)
    >>> caterva.repair("sound.b2nd").written
    False
    """
    level = _options.number_of(durability, _options.DURABILITIES, "durability")
    found = _caterva.repair(
        place_of(path),
        None if output is None else place_of(output),
        overwrite,
        guess,
        threads,
        level,
        *_fill_of(fill_value, place_of(path)),
        _options.progress_of(progress),
    )
    return repair_of(*found)


# ---- Partitions and the cache -------------------------------------------------------------


def choose_partition(
    shape: int | Sequence[int],
    dtype: npt.DTypeLike = float,
    *,
    chunks: Sequence[int] | None = None,
    blocks: Sequence[int] | None = None,
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the chunk and block shape that the library chooses. Given ones are kept.

    Examples
    --------
    >>> import caterva
    >>> caterva.choose_partition((1000, 1000, 1000), "f4")
    ((64, 128, 128), (16, 16, 32))
    """
    lengths = _options.shape_of(shape)
    return _caterva.choose_partition(lengths, np.dtype(dtype).itemsize, chunks, blocks)


def set_cache_limit(nbytes: int) -> None:
    """Set the size in bytes of the cache of decoded blocks that arrays share.

    The default is 64 MiB. 0 disables the cache.
    """
    if nbytes < 0:
        raise ValueError(f"the cache limit is a number of bytes, not {nbytes}")
    _caterva.cache_limit(nbytes or _options.NONE)


def cache() -> dict[str, int]:
    """Return counts of the cache that arrays share, among them its limit in bytes.

    Examples
    --------
    >>> import caterva
    >>> caterva.cache()["limit"]
    67108864
    """
    return _caterva.cache_counts()

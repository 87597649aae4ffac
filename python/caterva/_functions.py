"""Arrays made, opened, copied, and what is done to files."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator, Sequence
from typing import Any, Literal, TypeAlias, TypedDict, Unpack

import numpy as np
import numpy.typing as npt

from . import _caterva, _dtypes, _indexing, _options
from ._array import Array
from ._errors import StaleError
from ._info import FOUND, Repair, damages_of
from ._options import Opening, Path, Storage
from ._view import View, view_of

Mode: TypeAlias = Literal["r", "r+", "a", "w", "x"]

_SLAB_BYTES = 1 << 26  # that are moved at once


def _place(path: Path | None) -> str:
    """The place as handles keep it: whole, whatever the working directory is later."""
    url = _options.url_of(path)
    return url if url == _options.MEMORY or "://" in url else os.path.abspath(url)


# ---- Making ---------------------------------------------------------------------------


def create(
    shape: int | Sequence[int],
    dtype: npt.DTypeLike = float,
    path: Path | None = None,
    *,
    fill_value: Any = None,
    **options: Unpack[Storage],
) -> Array:
    """Make a new array, open for writing.

    Nothing appears at `path` before the first `Array.commit`, or `Array.close`, and then
    the whole array.

    Parameters
    ----------
    shape
        Length of each axis; an axis of length 0 is one that will grow.
    dtype
        Of the items: numbers, times, fixed strings, structures; also those of ml_dtypes.
    path
        A file, or with ``layout="sparse"`` a directory; None is memory.
    fill_value
        What items hold that were never written; None is zeros.
    chunks, blocks
        Shapes of what is stored and of what is compressed as one thing. Left out, the
        library chooses (see `choose_partition`).
    codec, level, filters, dictionary
        How blocks are compressed: ``"zstd"``, 5, ``["shuffle"]`` and False unless said.
        A meta value stands behind a colon: ``"zfp-accuracy:-3"``.
    layout
        ``"contiguous"`` (one file) or ``"sparse"`` (a file for each chunk).
    metalayers
        Named values that are fixed now: bytes, or what msgpack takes.
    dims
        Names of the dimensions, one or None for each axis; see `Array.dims`.
    overwrite
        Replace what is at `path`, at the first commit.
    threads, durability, dirty_budget, cache_bytes, read_ahead, compact_percent, progress
        Of the handle; see `open`.

    Returns
    -------
    Array

    Raises
    ------
    FileExistsError
        When something is at `path` and `overwrite` is False.

    Examples
    --------
    >>> import caterva
    >>> with caterva.create((3, 4), "i4", "new.b2nd", fill_value=-1) as a:
    ...     a[0] = range(4)
    >>> caterva.open("new.b2nd")[:2]
    array([[ 0,  1,  2,  3],
           [-1, -1, -1, -1]], dtype=int32)
    """
    asked = dict(options)
    progress = _options.progress_of(asked.pop("progress", None))  # type: ignore[arg-type]
    dims = asked.pop("dims", None)
    items = np.dtype(dtype)
    lengths = _options.shape_of(shape)
    if items.subdtype is not None:
        lengths, items = lengths + items.shape, items.base
    words = _options.storage_options(lengths, items, asked)
    words |= _options.fill_options(fill_value, items)
    return _named(_caterva.create(Array, _place(path), words, progress), dims)


def _named(array: Array, dims: Any) -> Array:
    """A new array with its dimensions named, where they are to be."""
    if dims is None:
        return array
    try:
        array.dims = dims
    except BaseException:
        array.discard()
        raise
    return array


def zeros(
    shape: int | Sequence[int],
    dtype: npt.DTypeLike = float,
    path: Path | None = None,
    **options: Unpack[Storage],
) -> Array:
    """Make a new array of zeros; the options are those of `create`.

    Examples
    --------
    >>> import caterva
    >>> caterva.zeros(3)[:]
    array([0., 0., 0.])
    """
    return create(shape, dtype, path, **options)


def full(
    shape: int | Sequence[int],
    fill_value: Any,
    dtype: npt.DTypeLike | None = None,
    path: Path | None = None,
    **options: Unpack[Storage],
) -> Array:
    """Make a new array whose items all are `fill_value`; the options are those of `create`.

    Examples
    --------
    >>> import caterva
    >>> caterva.full((2, 2), 7)[:]
    array([[7, 7],
           [7, 7]])
    """
    items = np.asarray(fill_value).dtype if dtype is None else np.dtype(dtype)
    return create(shape, items, path, fill_value=fill_value, **options)


def empty(
    shape: int | Sequence[int],
    dtype: npt.DTypeLike = float,
    path: Path | None = None,
    **options: Unpack[Storage],
) -> Array:
    """Make a new array that is to be written; until then it reads as zeros.

    Examples
    --------
    >>> import caterva
    >>> caterva.empty((2, 3), "i2").shape
    (2, 3)
    """
    return create(shape, dtype, path, **options)


def open(
    path: Path,
    mode: Mode = "r",
    *,
    shape: int | Sequence[int] | None = None,
    dtype: npt.DTypeLike | None = None,
    **options: Any,
) -> Array:
    """Open the array at `path`, or make it.

    Parameters
    ----------
    path
        A file, or the directory of a sparse array.
    mode
        ``"r"`` to read, ``"r+"`` to read and write what is there, ``"a"`` the same but
        made when there is nothing, ``"w"`` made anew in place of what is there, ``"x"``
        made where nothing may be.
    shape, dtype
        Of an array that is made; further options are those of `create`.
    offset
        The frame begins there in the file (reading only).
    threads
        At most so many for a request; 0 is all cores.
    durability
        What a commit survives: ``"full"`` a power cut, ``"ordered"`` all but a power cut
        that takes the last commit, ``"none"`` a killed process.
    dirty_budget
        Bytes of decoded blocks that a writer may hold back.
    cache_bytes
        A cache of the array's own of so many bytes; -1 is none, 0 the shared one.
    read_ahead
        Decode ahead of scans.
    unchecked
        Read without comparing checksums, to get at what is left of a damaged array.
    keep_bytes
        A file of at most so many bytes is kept in memory; -1 is never.
    compact_percent
        Compact at the close when so much of the file is dead.
    progress
        Function ``(done, total)`` that hears of long calls; a true answer stops them.

    Returns
    -------
    Array

    Raises
    ------
    FileNotFoundError
        When there is nothing.
    CorruptError
        When it is no array.
    BlockingIOError
        When somebody else has it open for writing, too.

    Examples
    --------
    >>> import caterva
    >>> caterva.open("opened.b2nd", "w", shape=3, dtype="i4").close()
    >>> with caterva.open("opened.b2nd", "r+") as a:
    ...     a[1] = 5
    >>> caterva.open("opened.b2nd")[:]
    array([0, 5, 0], dtype=int32)
    """
    if mode not in ("r", "r+", "a", "w", "x"):
        raise ValueError(f"mode is one of r, r+, a, w, x, not {mode!r}")
    if mode == "a":
        mode = "r+" if os.path.lexists(_place(path)) else "x"
        if mode == "r+":
            options = {
                k: v
                for k, v in options.items()
                if k not in Storage.__annotations__ or k in _options.Handle.__annotations__
            }
    if mode in ("w", "x"):
        if shape is None:
            raise TypeError(f"mode {mode!r} makes an array: say its shape and dtype")
        options["overwrite"] = mode == "w"
        return create(shape, float if dtype is None else dtype, path, **options)
    progress = _options.progress_of(options.pop("progress", None))
    words = _options.open_options(mode == "r+", options)
    return _caterva.open(Array, _place(path), words, progress)


def from_bytes(
    frame: bytes | bytearray | memoryview,
    *,
    writable: bool = False,
    **options: Unpack[Opening],
) -> Array:
    """Open a contiguous frame that stands in memory.

    Parameters
    ----------
    frame
        What `Array.to_bytes`, or a file, holds.
    writable
        Open a copy that may be changed; `Array.to_bytes` gives the new bytes.
    **options
        Those of `open`.

    Examples
    --------
    >>> import caterva
    >>> caterva.from_bytes(caterva.full(2, 1.5).to_bytes())[:]
    array([1.5, 1.5])
    """
    asked = dict(options)
    progress = _options.progress_of(asked.pop("progress", None))  # type: ignore[arg-type]
    words = _options.open_options(writable, asked)
    return _caterva.open_frame(Array, bytes(frame), writable, words, progress)


def from_pickled_frame(frame: bytes, writable: bool) -> Array:
    """What the pickle of an array in memory calls."""
    return from_bytes(frame, writable=writable)


def state_of_file(path: str) -> tuple[int, int, int]:
    """What every commit changes: inode, time and size of the file with the header."""
    inner = os.path.join(path, "chunks.b2frame")
    status = os.stat(inner if os.path.isdir(path) else path)
    return status.st_ino, status.st_mtime_ns, status.st_size


def from_pickled_path(path: str, offset: int, state: tuple[int, int, int]) -> Array:
    """What the pickle of an array that is read calls; a commit since then refuses it."""
    array = open(path, offset=offset)
    if state_of_file(path) == tuple(state):
        return array
    array.close()
    raise StaleError(f"{path} was changed since the array was pickled")


# ---- From other arrays ------------------------------------------------------------------


def _is_array(x: Any) -> bool:
    return all(hasattr(x, name) for name in ("shape", "dtype", "__getitem__"))


def _fill(array: Array, x: Any) -> None:
    """Write all of `x`, an array of anybody's, in slabs of whole chunks."""
    if isinstance(x, np.ndarray) and not isinstance(x, np.memmap):
        array[...] = x
        return
    budget = _SLAB_BYTES // max(1, array.itemsize)
    for place in _indexing.iter_boxes(
        ..., array.shape, _indexing.slab_shape(array.shape, array.chunks, budget)
    ):
        array[place] = np.asarray(x[place])


def _rows(first: Any, rest: Iterator[Any], n: int) -> Iterator[npt.NDArray[Any]]:
    """The items of an iterator, `n` at a time."""
    items = itertools.chain([first], rest)
    while batch := list(itertools.islice(items, n)):
        yield np.stack([np.asarray(row) for row in batch])


def _from_iterator(
    x: Iterator[Any], dtype: npt.DTypeLike | None, path: Path | None, options: dict[str, Any]
) -> Array:
    try:
        first = np.asarray(next(x))
    except StopIteration:
        raise ValueError("the iterator is empty: there is no shape to take") from None
    array = create((0, *first.shape), first.dtype if dtype is None else dtype, path, **options)
    n = max(1, min(array.chunks[0], _SLAB_BYTES // max(1, first.nbytes)))
    try:
        for rows in _rows(first, x, n):
            array.append(rows)
    except BaseException:
        array.discard()
        raise
    return array


def asarray(
    x: Any,
    path: Path | None = None,
    *,
    dtype: npt.DTypeLike | None = None,
    fill_value: Any = None,
    **options: Any,
) -> Array:
    """Make an array of anything that has items.

    Parameters
    ----------
    x
        An array: NumPy's, or any with ``shape``, ``dtype`` and indexing (of h5py, zarr,
        dask, a memory map), which is read chunk by chunk; nested lists; an iterator over
        the items of the first axis. An `Array` is given back, when nothing else is said.
    path, fill_value, **options
        As in `create`.
    dtype
        Of the items; None is that of `x`.

    Examples
    --------
    >>> import caterva
    >>> caterva.asarray([[1, 2], [3, 4]])[:, 1]
    array([2, 4])
    >>> caterva.asarray(n * n for n in range(5))[:]
    array([ 0,  1,  4,  9, 16])
    """
    if isinstance(x, Array) and path is None and dtype is None and not options:
        return x
    if isinstance(x, Array | View) and dtype is None and fill_value is None:
        return copy(x, path, **options)
    if isinstance(x, Iterator):
        return _from_iterator(x, dtype, path, options | {"fill_value": fill_value})
    if not _is_array(x):
        x = np.asarray(x, dtype)
    items = np.dtype(x.dtype) if dtype is None else np.dtype(dtype)
    array = create(x.shape, items, path, fill_value=fill_value, **options)
    try:
        _fill(array, x)
    except BaseException:
        array.discard()
        raise
    return array


def save(path: Path, x: Any, **options: Any) -> None:
    """Write anything that `asarray` takes to a file, and commit it.

    Examples
    --------
    >>> import caterva, numpy as np
    >>> caterva.save("saved.b2nd", np.arange(3), overwrite=True)
    >>> caterva.load("saved.b2nd")
    array([0, 1, 2])
    """
    asarray(x, path, **options).close()


def load(path: Path, **options: Any) -> npt.NDArray[Any]:
    """Read the whole array at `path` into memory; the options are those of `open`."""
    with open(path, **options) as array:
        return np.asarray(array[...])


# ---- Copies ---------------------------------------------------------------------------


def _is_box(x: Array | View, sel: Any) -> bool:
    """True for what caterva_copy takes: slices of step 1 that drop no axis."""
    axes, new = _indexing.view_axes(sel, x.shape)
    return not new and all(isinstance(a, slice) and a.step == 1 for a in axes)


def _copy_words(x: Array | View, options: dict[str, Any]) -> tuple[dict[str, Any], ...]:
    """Options of creating and of copying, from those of `copy`."""
    how: dict[str, Any] = {"memory": options.pop("memory", 0)}
    dtype = options.pop("dtype", None)
    casting = options.pop("casting", "same_kind")
    if dtype is not None and np.dtype(dtype) != x.dtype:
        how["convert_to"] = _dtypes.text_of(np.dtype(dtype))
        how["casting"] = _options.number_of(casting, _options.CASTINGS, "casting")
    if "layout" in options or "metalayer" in options:
        how["layout_set"] = True
    words = _options.storage_options(x.shape, x.dtype, options)
    for name in ("shape", "dtype"):
        del words[name]
    if not words["metalayers"] or options.get("metalayers") is None:
        del words["metalayers"]
    return words, how


def copy(x: Array | View, path: Path | None = None, sel: Any = ..., **options: Any) -> Array:
    """Copy an array or a view to a new place; see `Array.copy`."""
    options = dict(options)
    fill_value, dims = options.pop("fill_value", None), options.pop("dims", None)
    progress = _options.progress_of(options.pop("progress", None))
    source: Array | View = x
    if isinstance(x, View) or not _is_box(x, sel):
        source = view_of(x).select(sel)
    words, how = _copy_words(source, options)
    items = np.dtype(options.get("dtype") or source.dtype)
    words |= _options.fill_options(fill_value, items)
    if "chunks" in words or "blocks" in words:
        words["shape"] = source.shape
    if source is x and isinstance(x, Array):
        how["start"], how["stop"] = _indexing.box_around(sel, x.shape)
    return _named(_caterva.copy(Array, source, _place(path), words, how, progress), dims)


# ---- Files ------------------------------------------------------------------------------


def remove(path: Path) -> None:
    """Delete the array at `path`, and nothing that is none.

    Examples
    --------
    >>> import caterva, os
    >>> caterva.save("gone.b2nd", [1, 2])
    >>> caterva.remove("gone.b2nd")
    >>> os.path.exists("gone.b2nd")
    False
    """
    _caterva.unlink(_place(path))


class Upkeep(TypedDict, total=False):
    """How safely a file is kept up, and who hears of it."""

    durability: _options.Durability
    progress: _options.Progress | Literal["tqdm"] | None


def _upkeep(function: Any, path: Path, how: Upkeep) -> None:
    if unknown := how.keys() - Upkeep.__annotations__.keys():
        raise TypeError(f"there is no option {min(unknown)!r}")
    durability = how.get("durability", "full")
    level = _options.number_of(durability, _options.DURABILITIES, "durability")
    function(_place(path), level, _options.progress_of(how.get("progress")))


def compact(path: Path, **how: Unpack[Upkeep]) -> None:
    """Rewrite the array at `path` without its dead space.

    Parameters
    ----------
    durability
        ``"full"`` unless said; see `open`.
    progress
        Function ``(done, total)`` that hears of it, or ``"tqdm"``.

    Examples
    --------
    >>> import caterva
    >>> caterva.save("compacted.b2nd", range(9), overwrite=True)
    >>> caterva.compact("compacted.b2nd")
    """
    _upkeep(_caterva.compact, path, how)


def seal(path: Path, **how: Unpack[Upkeep]) -> None:
    """Give checksums to all chunks of the array at `path` that have none.

    The options are those of `compact`.

    Examples
    --------
    >>> import caterva
    >>> caterva.save("sealed.b2nd", range(9), overwrite=True)
    >>> caterva.seal("sealed.b2nd")
    """
    _upkeep(_caterva.seal, path, how)


def repair(
    path: Path,
    output: Path | None = None,
    *,
    overwrite: bool = False,
    guess: bool = False,
    fill_value: npt.NDArray[Any] | np.generic | bytes | None = None,
    threads: int = 0,
    durability: _options.Durability = "full",
    progress: _options.Progress | None = None,
) -> Repair:
    """Repair the array at `path`, which is damaged or cannot be opened.

    Parameters
    ----------
    output
        Where what can be read goes; None restores a header in place where that is all,
        and else adds ``.repaired`` to the path.
    overwrite
        Replace what is at the output.
    guess
        Number chunks as they lie when there is no index at all.
    fill_value
        One item for lost chunks, as bytes or as a scalar of the array's dtype.

    Returns
    -------
    Repair
        ``written`` and ``in_place`` both False: the array is sound.

    Examples
    --------
    >>> import caterva
    >>> caterva.save("sound.b2nd", range(9), overwrite=True)
    >>> caterva.repair("sound.b2nd").written
    False
    """
    fill = fill_value
    if fill is not None and not isinstance(fill, bytes):
        fill = np.asarray(fill).tobytes()
    level = _options.number_of(durability, _options.DURABILITIES, "durability")
    found, complete, n, lost, unverified, attributes, in_place, written, places = (
        _caterva.repair(
            _place(path),
            None if output is None else _place(output),
            overwrite,
            guess,
            threads,
            level,
            fill,
            _options.progress_of(progress),
        )
    )
    return Repair(
        FOUND[found],
        complete,
        n,
        lost,
        unverified,
        None if attributes < 0 else attributes,
        in_place,
        written,
        damages_of(places),
    )


# ---- Partitions and the cache -------------------------------------------------------------


def choose_partition(
    shape: int | Sequence[int],
    dtype: npt.DTypeLike = float,
    *,
    chunks: Sequence[int] | None = None,
    blocks: Sequence[int] | None = None,
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The chunk and block shape that the library would choose; what is given is kept.

    Examples
    --------
    >>> import caterva
    >>> caterva.choose_partition((1000, 1000, 1000), "f4")
    ((64, 128, 128), (16, 16, 32))
    """
    lengths = _options.shape_of(shape)
    return _caterva.choose_partition(lengths, np.dtype(dtype).itemsize, chunks, blocks)


def set_cache_limit(nbytes: int) -> None:
    """Set the size of the cache of decoded blocks that arrays share; 0 is none."""
    _caterva.cache_limit(nbytes)


def cache() -> dict[str, int]:
    """Counts of the cache that arrays share.

    Examples
    --------
    >>> import caterva
    >>> caterva.cache()["limit"]
    67108864
    """
    return _caterva.cache_counts()

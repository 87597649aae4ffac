"""Arrays made, opened, copied, and what is done to files."""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Unpack, cast, overload

import numpy as np
import numpy.typing as npt

from . import _caterva, _dtypes, _options
from ._array import Array
from ._copies import copied
from ._errors import (
    CorruptError,
    NotFoundError,
    Status,
    UnsupportedError,
    make,
)
from ._filling import SLAB_BYTES, fill, incomplete, is_array
from ._group import Group
from ._options import Copying, Either, Loading, Opening, Path, Saving, Storage
from ._places import (
    SUFFIXES,
    hint_of_key,
    is_remote,
    is_tree,
    place_to_open,
    split_url,
)
from ._remote import Remote, remote_of
from ._shown import shown
from ._sources import (
    FileLike,
    Source,
    is_file,
    is_tree_inside,
    refuse_words,
    refuse_write,
    source_of_file,
    source_of_url,
)
from ._trees import Mode, open_tree
from ._view import View

_FIRST_ITEMS = 1 << 20  # of an iterator, at most, that decide about the dtype


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
        How blocks are compressed; by default ``"zstd"``, ``["shuffle"]`` and False. The
        default level of zstd is 3 if items have one byte and 2 if they have more; that of
        other codecs is 5. A meta value stands behind a colon: ``"zfp-accuracy:-3"`` (of
        float32 and float64, to within 0.001), ``"zfp-rate:50"``, ``"ndlz:4"``,
        ``["trunc-prec:10"]``. The codecs of zfp and ndlz have no filters by default.
        ``dictionary`` is for ``"zstd"``.
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
    array = incomplete(shape, dtype, path, fill_value, options)
    array._complete()
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
    given = np.asarray(fill_value).dtype
    items = given if dtype is None else _dtypes.sized(dtype, given)
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


@overload
def open(
    path: Path | FileLike,
    mode: Mode = "r",
    *,
    shape: int | Sequence[int],
    dtype: npt.DTypeLike | None = None,
    remote: Remote | Mapping[str, Any] | None = None,
    storage_options: Mapping[str, Any] | None = None,
    **options: Unpack[Either],
) -> Array: ...


@overload
def open(
    path: Path | FileLike,
    mode: Mode = "r",
    *,
    shape: int | Sequence[int] | None = None,
    dtype: npt.DTypeLike | None = None,
    remote: Remote | Mapping[str, Any] | None = None,
    storage_options: Mapping[str, Any] | None = None,
    **options: Unpack[Either],
) -> Array | Any: ...


def open(
    path: Path | FileLike,
    mode: Mode = "r",
    *,
    shape: int | Sequence[int] | None = None,
    dtype: npt.DTypeLike | None = None,
    remote: Remote | Mapping[str, Any] | None = None,
    storage_options: Mapping[str, Any] | None = None,
    **options: Unpack[Either],
) -> Array | Any:
    """Open the array at `path`, or make it; also a tree of arrays, or a group of it.

    Parameters
    ----------
    path
        A file, or the directory of a sparse array; ``"tree.b2d::/group/name"`` is an array
        in a tree. Of a tree (``.b2d``, ``.b2z``) itself this gives a `Tree`, as `open_tree`
        does, and of ``"tree.b2d::/group"`` a `Group`. Behind ``http://``, ``https://`` and
        ``s3://`` the library reads by itself; other URLs are opened by fsspec. An open binary
        file, or what ``fsspec.open`` gives, is read as it is, from its byte 0 on.
    mode
        ``"r"`` to read, ``"r+"`` to read and write what is there, ``"a"`` the same but
        made when there is nothing, ``"w"`` made anew in place of what is there, ``"x"``
        made where nothing may be.
    shape, dtype
        Of an array that is made; further options are those of `create`. An array that mode
        ``"a"`` finds must have this shape and dtype as far as they are given. Options of
        `create` do not count for it, nor options of opening for a new array.
    remote
        Of ``http://``, ``https://`` and ``s3://``: a `Remote`, or a dict of its words.
    storage_options
        Of other URLs: what fsspec's file system takes.
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
        Function ``(done, total)`` that hears of long calls, in decoded bytes: about every
        50 ms, then also where nothing was done since, and once at the end. A true answer stops
        them, but at the end. ``"tqdm"`` draws a bar. Functions that have a ``progress`` of
        their own say what theirs counts.

    Returns
    -------
    Array
        Or a `Tree` or `Group`, see `path`, which type checkers do not tell apart.

    Raises
    ------
    FileNotFoundError
        When there is nothing.
    ValueError
        When mode ``"a"`` finds an array of another shape or dtype.
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
    given: dict[str, Any] = {**options}
    if mode not in ("r", "r+", "a", "w", "x"):
        raise ValueError(f"mode is one of r, r+, a, w, x, not {mode!r}")
    if is_file(path):
        refuse_words(None, remote, storage_options)
        return _open_source(source_of_file(path), mode, given)
    place = place_to_open(cast(Path, path))
    refuse_words(place, remote)
    refuse_write(place, mode)
    if shape is None and _leads_to_a_tree(place, mode):
        return open_tree(place, mode, remote=remote, **given)
    if (source := source_of_url(place, storage_options or {})) is not None:
        return _open_source(source, mode, given)
    native = remote_of(remote)
    asked = shape, dtype
    if mode == "a":
        mode = "r+" if _is_there(place) else "x"
        if mode == "x" and shape is None:
            raise TypeError(
                f"there is nothing at {shown(place)}: say shape and dtype of a new array"
            )
        meant, other = (Opening, Storage) if mode == "r+" else (Storage, Opening)
        given = {
            k: v
            for k, v in given.items()
            if k in meant.__annotations__
            or not (k in other.__annotations__ or (mode == "r+" and k == "fill_value"))
        }
    else:
        asked = None, None
    if mode in ("w", "x"):
        if shape is None:
            raise TypeError(f"mode {mode!r} makes an array: say its shape and dtype")
        given["overwrite"] = mode == "w"
        return create(shape, float if dtype is None else dtype, cast(Path, path), **given)
    progress = _options.progress_of(given.pop("progress", None))
    words = _options.open_options(mode == "r+", given)
    try:
        return _is_as_asked(_caterva.open(Array, place, words, progress, native), *asked)
    except NotFoundError:
        if hint := hint_of_key(place):
            message = f"{shown(place)} does not exist{hint}"
            raise make(Status.ENOTFOUND, errno.ENOENT, -1, message, place) from None
        raise
    except UnsupportedError:
        if (group := _group_of(place, mode, given | {"remote": remote})) is None:
            raise
        return group


def _is_as_asked(array: Array, shape: Any, dtype: Any) -> Array:
    """The array that mode "a" has found; ValueError when it is not the one that was meant."""
    lengths = None if shape is None else _options.shape_of(shape)
    items = None if dtype is None else np.dtype(dtype)
    if items is not None and items.subdtype is not None:
        items, inner = items.subdtype
        lengths = None if lengths is None else lengths + inner
    if lengths in (None, array.shape) and (items is None or items == array.dtype):
        return array
    there = f"shape {array.shape} and dtype {array.dtype}"
    what = [f"shape {lengths}"] * (lengths is not None) + [f"dtype {items}"] * (
        items is not None
    )
    place = shown(array.path or "")
    array.discard()
    raise ValueError(f"{place} has {there}, not {' and '.join(what)}")


def _leads_to_a_tree(place: str, mode: Mode) -> bool:
    if place == _options.MEMORY or split_url(place)[1] is not None:
        return False
    if is_remote(place) or os.path.lexists(place):
        return is_tree(place)
    return mode in ("a", "w", "x") and place.endswith(SUFFIXES)


def _open_source(source: Source, mode: Mode, options: dict[str, Any]) -> Array:
    if mode != "r":
        message = f'{source.name} can be read only: what is no path is opened with mode "r"'
        raise make(Status.EREADONLY, 0, -1, message, source.name)
    asked = dict(options)
    progress = _options.progress_of(asked.pop("progress", None))
    words = _options.open_options(False, asked)
    try:
        return _caterva.open_source(Array, source, source.name, words, progress)
    except CorruptError:
        if not is_tree_inside(source):
            raise
    message = f"{source.name} is an archive of a tree: open it by a path, or by a URL"
    raise make(Status.EUNSUPPORTED, 0, -1, message, source.name)


def _is_there(place: str) -> bool:
    """Whether there is something at a path, or at a key of a tree."""
    tree, key = split_url(place)
    if key is None or os.path.lexists(place):
        return os.path.lexists(place)
    if not os.path.lexists(tree):
        return False
    with open_tree(tree) as opened:
        return key in opened


def _group_of(place: str, mode: Mode, options: dict[str, Any]) -> Group | None:
    """The group that a URL names in a tree."""
    tree, key = split_url(place)
    if key is None or not is_tree(tree):
        return None
    opened = open_tree(tree, mode, **options)
    found = None
    with contextlib.suppress(KeyError, UnsupportedError):
        found = opened[key]
    if isinstance(found, Group):
        return found
    opened.close()
    return None


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


# ---- From other arrays ------------------------------------------------------------------


def _batch(x: Iterator[Any], n: int, dtype: npt.DTypeLike | None) -> npt.NDArray[Any]:
    """The next `n` items, or as many as there are, as NumPy makes an array of their list."""
    return np.asarray(list(itertools.islice(x, n)), dtype)


def _append_rest(array: Array, x: Iterator[Any], n: int, dtype: npt.DTypeLike | None) -> None:
    """Append the items of an iterator, `n` at a time, none of which may lose anything."""
    while len(rows := _batch(x, n, dtype)):
        if not np.can_cast(rows.dtype, array.dtype, "safe"):
            raise TypeError(
                f"items {len(array)} to {len(array) + len(rows) - 1} of the iterator are of "
                f"dtype {rows.dtype}, those before them, and the array, of {array.dtype}: say "
                "a dtype that holds all"
            )
        array.append(rows)


def _from_iterator(
    x: Iterator[Any],
    dtype: npt.DTypeLike | None,
    path: Path | None,
    fill_value: Any,
    options: dict[str, Any],
) -> Array:
    try:
        one = next(x)
    except StopIteration:
        raise ValueError("the iterator is empty: there is no shape to take") from None
    n = min(SLAB_BYTES // max(1, np.asarray(one).nbytes), _FIRST_ITEMS)
    first = _batch(itertools.chain([one], x), max(1, n), dtype)
    array = incomplete((0, *first.shape[1:]), first.dtype, path, fill_value, options)
    n = max(1, min(array.chunks[0], SLAB_BYTES // max(1, first.nbytes // len(first))))
    try:
        array.append(first)
        _append_rest(array, x, n, dtype)
    except BaseException:
        array.discard()
        raise
    array._complete()
    return array


def asarray(
    x: Any,
    path: Path | None = None,
    *,
    dtype: npt.DTypeLike | None = None,
    fill_value: Any = None,
    **options: Unpack[Storage],
) -> Array:
    """Make an array of anything that has items.

    Parameters
    ----------
    x
        An array: NumPy's, or any with ``shape``, ``dtype`` and indexing (of h5py, zarr,
        dask, a memory map), which is read chunk by chunk; nested lists; an iterator over
        the items of the first axis, of which 64 MiB, or a million items, are held at once.
        An `Array` is given back, when nothing else is said.
    path, fill_value, **options
        As in `create`.
    dtype
        Of the items; None is that of `x`. Of an iterator it is that of a list of the first
        million items or 64 MiB; a later item that would lose something in it is refused with
        TypeError, and nothing made.

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
        return _from_iterator(x, dtype, path, fill_value, {**options})
    if not is_array(x):
        x = np.asarray(x, dtype)
    stored = np.dtype(x.dtype)
    items = stored if dtype is None else _dtypes.sized(dtype, stored)
    if not _dtypes.is_sized(items, stored):
        x = np.asarray(x[...]).astype(items)
        items = x.dtype
    array = incomplete(x.shape, items, path, fill_value, options)
    try:
        fill(array, x)
    except BaseException:
        array.discard()
        raise
    array._complete()
    return array


def save(path: Path, x: Any, **options: Unpack[Saving]) -> None:
    """Write anything that `asarray` takes to a file, and commit it.

    When it fails or is interrupted, nothing is left, and a file that was to be replaced is as
    it was.

    Examples
    --------
    >>> import caterva, numpy as np
    >>> caterva.save("saved.b2nd", np.arange(3), overwrite=True)
    >>> caterva.load("saved.b2nd")
    array([0, 1, 2])
    """
    array = asarray(x, path, **options)
    try:
        array.close()
    finally:
        array.discard()


def load(path: Path, **options: Unpack[Loading]) -> npt.NDArray[Any]:
    """Read the whole array at `path` into memory; the options are those of `open`."""
    with open(path, **options) as array:
        return np.asarray(array[...])


# ---- Copies ---------------------------------------------------------------------------


def copy(
    x: Array | View, path: Path | None = None, sel: Any = ..., **options: Unpack[Copying]
) -> Array:
    """Copy an array or a view to a new place; see `Array.copy`."""
    return copied(Array, x, path, sel, {**options})

"""Functions that create, open, load, save and copy arrays."""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import tempfile
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
from ._files import choose_partition
from ._filling import SLAB_BYTES, fill, incomplete, is_array
from ._group import Group
from ._options import Copying, Either, Loading, Opening, Path, Saving, Storage
from ._places import (
    SUFFIXES,
    hint_of_format,
    hint_of_key,
    is_remote,
    is_tree,
    is_zarr,
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
from ._trees import MODES, Mode, open_tree
from ._view import View

_FIRST_ITEMS = 1 << 20  # items of an iterator that determine the dtype, at most


# ---- Creating -------------------------------------------------------------------------


def create(
    shape: int | Sequence[int],
    dtype: npt.DTypeLike = float,
    path: Path | None = None,
    *,
    fill_value: Any = None,
    **options: Unpack[Storage],
) -> Array:
    """Create an array, open for writing.

    Nothing appears at `path` before the first `Array.commit` or `Array.close`; then the whole
    array appears at once.

    Parameters
    ----------
    shape
        Length of each axis. An axis that will grow may have length 0.
    dtype
        dtype of the items: numbers, times, fixed-width strings, structures, and those of
        ml_dtypes.
    path
        A file, or a directory with ``layout="sparse"``; None creates the array in memory.
        InvalidError if the name has the suffix of another format, such as ``.npy`` or ``.b2z``.
    fill_value
        Value of items that are never written; None is zero.
    chunks, blocks
        Shapes of chunks, the unit of storage, and of blocks, the unit of compression and
        decoding. An int is a length for all axes. Left out, the library chooses; see
        `choose_partition`.
    codec, level, filters, dictionary
        How blocks are compressed. Defaults: ``"zstd"``, ``["shuffle"]`` (no filter for items of
        one byte) and False; the level of zstd is 3 for items of one byte and 2 for larger
        items, and 5 for other codecs. If level and filters are left out, a chunk of at least 64
        blocks gets level 4, ``"bitshuffle"`` or (floats) no filter instead, if that makes a
        block of it much smaller. A colon precedes a parameter: ``"zfp-accuracy:-3"`` (float32
        and float64 within 0.001), ``"zfp-rate:50"``, ``"ndlz:4"``, ``["trunc-prec:10"]``. zfp
        and ndlz have no filters by default. ``dictionary`` needs ``"zstd"``.
    layout
        ``"contiguous"`` (one file) or ``"sparse"`` (a directory with a file for each chunk).
    metalayers
        Named values whose number and sizes are fixed at creation: bytes, or values that
        msgpack can encode.
    metalayer
        ``"b2nd"``, or ``"caterva"`` for readers of the older format.
    dims
        Names of the dimensions, a str or None for each axis; see `Array.dims`.
    overwrite
        Replace what exists at `path`, at the first commit.
    threads, durability, dirty_budget, cache_bytes, read_ahead, compact_percent, progress
        Options of the open array; see `open`.

    Returns
    -------
    Array

    Raises
    ------
    FileExistsError
        If something exists at `path` and `overwrite` is False.

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
    """Create an array of zeros. The options are those of `create`.

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
    """Create an array whose items are all `fill_value`. The options are those of `create`.

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
    """Create an array to be written. Until then its items read as zeros.

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
    """Open or create the array at `path`. Also opens trees of arrays and their groups.

    Parameters
    ----------
    path
        A file, or the directory of a sparse array. ``"tree.b2d::/group/name"`` is an array in a
        tree. The path of a tree (``.b2d``, ``.b2z``) returns a `Tree`, as `open_tree` does, and
        ``"tree.b2d::/group"`` a `Group`. The library itself reads ``http://``, ``https://`` and
        ``s3://``; fsspec opens other URLs. An open binary file, or the result of
        ``fsspec.open``, is read from its byte 0 on.
    mode
        ``"r"``: read. ``"r+"``: read and write an existing array. ``"a"``: as ``"r+"``, but
        create the array if nothing exists. ``"w"``: create, replacing what exists. ``"x"``:
        create; fail if something exists.
    shape, dtype
        Of the array to create, with further options of `create`. If mode ``"a"`` finds an
        array, it must have this shape and dtype, as far as they are given; other options of
        `create` are then ignored. Options of opening alone are ignored for a new array.
    remote
        For ``http://``, ``https://`` and ``s3://``: a `Remote`, or a dict of its fields.
    storage_options
        For other URLs: options of fsspec's file system.
    offset
        Position of the frame in the file, in bytes (reading only).
    threads
        Maximum number of threads for each call; 0 is all cores.
    durability
        What a commit survives. ``"full"``: a power failure. ``"ordered"``: a power failure,
        which may undo the last commit. ``"none"``: the death of the process.
    dirty_budget
        Bytes of decoded blocks that a writer may buffer; 0 is 64 MiB.
    cache_bytes
        Size of a cache of decoded blocks for this array alone. 0: use the shared cache. -1: no
        cache.
    read_ahead
        Decode ahead of sequential reads.
    unchecked
        Ignore checksums, to recover what is left of a damaged array.
    end_zarr
        Open an array that is also a Zarr array for writing: Zarr readers refuse it afterwards.
    keep_bytes
        Maximum size of a file that reading keeps in memory, as stored; 0 is 16 MiB, -1 is
        never.
    compact_percent
        1 to 100: `Array.close` compacts a changed file if this percentage of it is dead space.
        0 is never.
    progress
        Function ``(done, total)``, called with decoded bytes during long calls: about every
        50 ms, even without progress, and once at the end. Returning a true value stops the
        call, except at its end. ``"tqdm"`` draws a bar. Functions with a ``progress`` argument
        of their own call that instead.

    Returns
    -------
    Array
        Or a `Tree` or `Group`; see `path`. Type checkers see `Array` if `shape` is given.

    Raises
    ------
    FileNotFoundError
        If nothing exists at `path`.
    ValueError
        If mode ``"a"`` finds an array of another shape or dtype.
    CorruptError
        If the bytes are not an array.
    BlockingIOError
        If another handle or process has it open for writing and `mode` is not ``"r"``.

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
    _options.number_of(mode, MODES, "mode")
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
        mode = "r+" if is_there(place) else "x"
        if mode == "x" and shape is None:
            raise TypeError(
                f"there is nothing at {shown(place)}: give shape and dtype of a new array"
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
            raise TypeError(f"mode {mode!r} creates an array: give its shape and dtype")
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
    except CorruptError as error:
        if not os.path.isdir(place) and (hint := hint_of_format(place)):
            message, code = str(error) + hint, error.errno or 0
            raise make(Status.ECORRUPT, code, error.position or 0, message, place) from None
        raise
    except UnsupportedError:
        if (group := _group_of(place, mode, given | {"remote": remote})) is None:
            raise
        return group


def _is_as_asked(array: Array, shape: Any, dtype: Any) -> Array:
    """Return the array that mode "a" found; ValueError if its shape or dtype differ."""
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
        message = f'{source.name} is read only: open what is not a path with mode "r"'
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


def is_there(place: str) -> bool:
    """Whether something exists at a path, or at a key of a tree."""
    tree, key = split_url(place)
    if key is None or os.path.lexists(place):
        return os.path.lexists(place)
    if not os.path.lexists(tree):
        return False
    with open_tree(tree) as opened:
        return key in opened


def _group_of(place: str, mode: Mode, options: dict[str, Any]) -> Group | None:
    """Return the group at a URL in a tree, or None."""
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
    """Open a contiguous frame that is in memory.

    Parameters
    ----------
    frame
        Bytes of the frame, as `Array.to_bytes` returns or a file has them.
    writable
        Open for writing. `frame` does not change; `Array.to_bytes` returns the new bytes.
    **options
        Options of `open`.

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
    """Take up to `n` items from `x` and convert their list to a NumPy array."""
    return np.asarray(list(itertools.islice(x, n)), dtype)


def _append_rest(array: Array, x: Iterator[Any], n: int, dtype: npt.DTypeLike | None) -> None:
    """Append the items of an iterator, `n` at a time; TypeError if the dtype would lose any."""
    while len(rows := _batch(x, n, dtype)):
        if not np.can_cast(rows.dtype, array.dtype, "safe"):
            raise TypeError(
                f"items {len(array)} to {len(array) + len(rows) - 1} of the iterator have "
                f"dtype {rows.dtype}, the array and earlier items {array.dtype}: give a "
                "dtype that holds all"
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
        raise ValueError("the iterator is empty: its items have no shape") from None
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
    """Create an array from any array-like object.

    Parameters
    ----------
    x
        A NumPy array or any array with ``shape``, ``dtype`` and indexing (of h5py, zarr, dask,
        a memory map), which is read chunk by chunk; nested lists; or an iterator over the items
        of the first axis, of which at most 64 MiB or a million items are in memory at a time.
        An `Array` is returned as it is if no other argument is given.
    path, fill_value, **options
        As in `create`.
    dtype
        dtype of the items; None is that of `x`. For an iterator it is the dtype of the list of
        its first million items or 64 MiB. A later item that this dtype would change raises
        TypeError, and no array is created.

    Examples
    --------
    >>> import caterva
    >>> caterva.asarray([[1, 2], [3, 4]])[:, 1]
    array([2, 4])
    >>> caterva.asarray(n * n for n in range(5))[:]
    array([ 0,  1,  4,  9, 16])
    """
    plain = dtype is None and fill_value is None
    if isinstance(x, Array) and path is None and plain and not options:
        return x
    if isinstance(x, Array | View) and plain:
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
    """Write anything that `asarray` accepts to a file, and commit it.

    If this fails or is interrupted, nothing is left, and a file to be replaced is unchanged.

    A path that ends with ``.zarr`` becomes an array that is also a Zarr array, as by
    ``copy(zarr=True)``. Unless `x` is an `Array` or `View`, the compressed array is in a
    temporary file beside it meanwhile, or in memory if `x` has at most 64 MiB.

    Examples
    --------
    >>> import caterva, numpy as np
    >>> caterva.save("saved.b2nd", np.arange(3), overwrite=True)
    >>> caterva.load("saved.b2nd")
    array([0, 1, 2])
    """
    array = _as_zarr(x, path, {**options}) if is_zarr(path) else asarray(x, path, **options)
    try:
        array.close()
    finally:
        array.discard()


def _as_zarr(x: Any, path: Path, options: dict[str, Any]) -> Array:
    if isinstance(x, Array | View):
        return copied(Array, x, path, ..., options | {"zarr": True})
    of_place = {"overwrite", "durability"} & options.keys()
    place: dict[str, Any] = {name: options.pop(name) for name in of_place} | {"zarr": True}
    if is_array(x):
        options = _whole_blocks(x, options)
    if not isinstance(x, Iterator) and getattr(x, "nbytes", 0) <= SLAB_BYTES:
        return copied(Array, asarray(x, **options), path, ..., place)
    parent = os.path.dirname(place_to_open(path).rstrip("/")) or "."
    with tempfile.TemporaryDirectory(prefix=".caterva-", dir=parent) as folder:
        frame = os.path.join(folder, "frame.b2nd")
        asarray(x, frame, durability="none", **options).close()
        with open(frame) as array:
            return copied(Array, array, path, ..., place)


def _whole_blocks(x: Any, options: dict[str, Any]) -> dict[str, Any]:
    """Make automatic chunks multiples of blocks, so that `copied` need not encode again."""
    items = np.dtype(options.get("dtype") or x.dtype)
    if options.get("chunks") or options.get("blocks") or items.itemsize == 0:
        return options
    chunks, blocks = choose_partition(x.shape, items)
    whole = tuple(-(-c // b) * b for c, b in zip(chunks, blocks, strict=True))
    return options | {"chunks": whole, "blocks": blocks}


def load(path: Path, **options: Unpack[Loading]) -> npt.NDArray[Any]:
    """Read the whole array at `path` into memory. The options are those of `open`."""
    with open(path, **options) as array:
        return np.asarray(array[...])


# ---- Copies ---------------------------------------------------------------------------


def copy(
    x: Array | View, path: Path | None = None, sel: Any = ..., **options: Unpack[Copying]
) -> Array:
    """Copy an array or a view to a new array; see `Array.copy`."""
    return copied(Array, x, path, sel, {**options})

"""The class Array: NumPy's indexing on a file of compressed chunks."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, Unpack

import numpy as np

from . import _boxes, _caterva, _indexing, _options
from ._attributes import Attributes, Metalayers
from ._copies import copied
from ._info import BlockInfo, ChunkInfo, Info, Report, Space, make_report
from ._plans import AnyArray, Casting
from ._readable import Readable
from ._remote import Transfers
from ._selectors import Views
from ._shown import shown

if TYPE_CHECKING:
    from ._jobs import Job, Merged, Overlap, Tokens
    from ._view import View


class Array(_caterva.Array, Readable):
    """An n-dimensional array in compressed chunks, in a file, a directory or memory.

    Created by `open`, `create`, `zeros`, `full`, `empty`, `asarray`, `from_bytes` and `copy`.
    ``a[key]`` and ``a[key] = value`` mean what they mean in NumPy, and reads return NumPy
    arrays. Writes are visible through this object at once, and to others after `commit` or
    `close`. A ``with`` block closes the array at its end, and discards it if the block raises.

    Any number of threads may use one array at the same time.

    Examples
    --------
    >>> import caterva, numpy as np
    >>> with caterva.create((4, 6), "i2", "first.b2nd") as a:
    ...     a[1:3, ::2] = np.arange(6).reshape(2, 3)
    >>> caterva.open("first.b2nd")[2]
    array([3, 0, 4, 0, 5, 0], dtype=int16)
    """

    __slots__ = ()

    # ---- Life ---------------------------------------------------------------------

    def close(self) -> None:
        """Commit pending changes and release the file. Closing twice is allowed.

        If the commit fails or is stopped, the array stays open with its pending changes:
        close it again, for example after freeing disk space, or `discard` it.

        Examples
        --------
        >>> import caterva
        >>> a = caterva.zeros(3)
        >>> a.close()
        >>> a.closed
        True
        """
        self._close(True)

    def discard(self) -> None:
        """Drop pending changes and release the file.

        Examples
        --------
        >>> import caterva, os
        >>> caterva.zeros(3, path="never.b2nd").discard()
        >>> os.path.exists("never.b2nd")
        False
        """
        self._close(False)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._close(kind is None and self.writable)

    def __reduce__(self) -> tuple[Any, ...]:
        from ._identity import pickle_of_array

        return pickle_of_array(self)

    def __dask_tokenize__(self) -> Any:
        from ._identity import token_of_array

        return token_of_array(self)

    def __copy__(self) -> Array:
        words = _options.open_options(True, {})
        return _caterva.open_frame(Array, self.to_bytes(), True, words, None)

    def __deepcopy__(self, memo: dict[int, Any]) -> Array:
        return self.__copy__()

    # ---- What it is -----------------------------------------------------------------

    @property
    def path(self) -> str | None:
        """Path or URL of the array, or the name of its file object; None in memory."""
        place = self._place
        return None if place is None or place == _options.MEMORY else place

    @property
    def fill_value(self) -> Any:
        """Value of items that were never written, a NumPy scalar."""
        return self.info.fill_value

    @property
    def info(self) -> Info:
        """Description of the array: shape, partition, codec, sizes and more, as attributes.

        Examples
        --------
        >>> import caterva
        >>> caterva.zeros((400, 300), "f4", chunks=(100, 300)).info.n_chunks
        4
        """
        parts = self._describe() | {"dims": self.dims}
        return Info(parts, self.dtype, self.path, self.writable, self._has_pending())

    @property
    def transfers(self) -> Transfers | None:
        """Counts of what reads have transferred so far from ``http://``, ``https://`` or
        ``s3://``; None elsewhere. Arrays of one tree share their counts."""
        parts = self._transfers()
        return None if parts is None else Transfers(*parts)

    def __repr__(self) -> str:
        place = "in memory" if self.path is None else repr(shown(self.path))
        if self.closed:
            return f"<caterva.Array {place}, closed>"
        mode = "r+" if self.writable else "r"
        return f"<caterva.Array {place} shape={self.shape} dtype={self.dtype} mode={mode!r}>"

    def _repr_html_(self) -> str:
        from ._html import html_of

        return html_of(self)

    # ---- Views ------------------------------------------------------------------------

    @property
    def view(self) -> Views:
        """Lazy selections: ``a.view[10:20, ::2]`` is a `View` and reads nothing yet.

        Examples
        --------
        >>> import caterva, numpy as np
        >>> v = caterva.asarray(np.arange(12).reshape(3, 4)).view[:, ::2].T
        >>> v.shape, v[1].tolist()
        ((2, 3), [2, 6, 10])
        """
        return Views(self)

    @property
    def T(self) -> View:
        """The array with its axes reversed, as a view."""
        return self.view[...].T

    def transpose(self, *axes: int | Sequence[int]) -> View:
        """The array with its axes in another order, as a view; reversed without arguments.

        Examples
        --------
        >>> import caterva
        >>> caterva.zeros((2, 3, 4)).transpose(2, 0, 1).shape
        (4, 2, 3)
        """
        return self.view[...].transpose(*axes)

    # ---- Many writers -----------------------------------------------------------------

    def job(self, shape: Sequence[int] | int | None = None) -> Job:
        """Begin a job, by which many workers write this array at the same time.

        Parameters
        ----------
        shape
            The array grows to this shape, as by `resize`; pending. None: its current shape.

        Returns
        -------
        Job
            Send it to workers (it pickles), and call `Job.merge` with their tokens.

        Examples
        --------
        >>> import caterva
        >>> with caterva.zeros(4, "i2", "grown.b2nd", overwrite=True) as a:
        ...     with a.job(shape=6) as job:
        ...         with job.part() as part:
        ...             part[4:] = 5
        ...         merged = job.merge([part.token])
        >>> caterva.open("grown.b2nd")[:]
        array([0, 0, 0, 0, 5, 5], dtype=int16)
        """
        from ._jobs import Job

        return Job._begin(self, None if shape is None else _options.shape_of(shape))

    def merge(
        self,
        tokens: Tokens,
        *,
        overlap: Overlap = "error",
        keep: bool = False,
        unchecked: bool = False,
        progress: _options.Listener = None,
    ) -> Merged:
        """Merge finished parts of one job. The result is pending until `commit`.

        Parameters
        ----------
        tokens
            Tokens that `Part.finish` returned, in any nesting of lists; None entries are
            skipped. Any process may have begun the job.
        overlap
            ``"error"``: if two parts wrote the same items, raise FileExistsError, which names
            both. ``"last"``: the part whose token comes last wins.
        keep
            Keep the job's folder at the commit, for other tokens of the job.
        unchecked
            Do not compare moved chunks with their checksums. The checksums are copied, so that
            reads still detect damage.
        progress
            Function ``(done, total)``, called with bytes, or ``"tqdm"``.

        Returns
        -------
        Merged

        Raises
        ------
        CorruptError
            If bytes are not a token, or a part does not match its token.
        FileNotFoundError
            If a part or the job's folder does not exist.
        InvalidError
            If shape, chunks or dtype differ from the job's; its `code` is `ESHAPE`.
        StaleError
            If a chunk that a part wrote has changed in the array since the job began.

        Examples
        --------
        >>> import caterva
        >>> with caterva.zeros(6, "i2", "merged.b2nd", overwrite=True) as a:
        ...     job = a.job()
        >>> with job.part() as part:
        ...     part[:2] = 3
        >>> with caterva.open("merged.b2nd", "r+") as a:
        ...     a.merge(part.token).parts
        1
        >>> caterva.open("merged.b2nd")[:]
        array([3, 3, 0, 0, 0, 0], dtype=int16)
        """
        from ._jobs import merge

        return merge(self, tokens, overlap, keep, unchecked, progress)

    # ---- Attributes -------------------------------------------------------------------------

    @property
    def attrs(self) -> Attributes:
        """User attributes: a mutable mapping from names to values.

        They are stored as python-blosc2 stores ``vlmeta``. Changes are pending until `commit`.

        Examples
        --------
        >>> import caterva
        >>> a = caterva.zeros(3)
        >>> a.attrs["unit"] = "K"
        >>> dict(a.attrs)
        {'unit': 'K'}
        """
        return Attributes(self)

    def _attribute_names(self) -> list[str]:
        names: list[str] = self._describe()["attributes"]
        return names

    @property
    def dims(self) -> tuple[str | None, ...]:
        """Names of the dimensions, None for an axis without a name. Changes are pending.

        Reads names that Caterva, python-blosc2 or Zarr stored. Set one name for each axis, or
        None to remove all names. Copies keep the names of the axes that they keep.

        Examples
        --------
        >>> import caterva
        >>> a = caterva.zeros((2, 3), dims=("time", "x"))
        >>> a.dims
        ('time', 'x')
        >>> a.dims = ["t", None]
        >>> a.attrs["dims"]
        ['t', None]
        """
        return self._dims_get() or (None,) * self.ndim

    @dims.setter
    def dims(self, names: Sequence[str | None] | None) -> None:
        self._dims_set(None if names is None else _options.names_of(names))

    @property
    def metalayers(self) -> Metalayers:
        """Metalayers as bytes: a mapping. Their number and sizes are fixed at creation."""
        return Metalayers(self)

    # ---- Shape ----------------------------------------------------------------------------

    def resize(self, *shape: int | Sequence[int]) -> None:
        """Grow or shrink axes at their ends. New items hold the fill value.

        Examples
        --------
        >>> import caterva
        >>> a = caterva.full((1, 2), 7)
        >>> a.resize(2, 3)
        >>> a[:]
        array([[7, 7, 7],
               [7, 7, 7]])
        """
        lengths = shape[0] if len(shape) == 1 else shape
        self._resize(_options.shape_of(lengths))

    def _items_for(self, items: Any, axis: int, casting: Casting) -> AnyArray:
        """Return `items` as an array that has this array's shape except along `axis`."""
        if isinstance(items, Readable):
            items = np.asarray(items)
        if casting != "unsafe":
            given = items.dtype if hasattr(items, "dtype") else np.asarray(items).dtype
            if not np.can_cast(given, self.dtype, casting):
                raise TypeError(
                    f"items of dtype {given} cannot be cast to {self.dtype} by the rule "
                    f"{casting!r}"
                )
        array = _indexing.convert_value(items, self.dtype)
        if array.ndim == self.ndim - 1:
            array = np.expand_dims(array, axis)
        fits = array.ndim == self.ndim and all(
            d == axis or n == m
            for d, (n, m) in enumerate(zip(array.shape, self.shape, strict=True))
        )
        if not fits:
            raise ValueError(
                f"items of shape {array.shape} do not fit an array of shape {self.shape} "
                f"along axis {axis}"
            )
        return array

    def append(self, items: Any, axis: int = 0, *, casting: Casting = "unsafe") -> None:
        """Append items at the end of an axis.

        Parameters
        ----------
        items
            An array that has this array's shape except along `axis`, or lacks that axis.
        axis
            The axis that grows.
        casting
            Conversions that are allowed. The default converts as ``a[...] = items`` does in
            NumPy: an integer array stores the integer part of floats. ``"same_kind"`` and
            ``"safe"`` raise TypeError where `numpy.can_cast` returns False.

        Examples
        --------
        >>> import caterva
        >>> a = caterva.zeros((0, 2), "i4")
        >>> a.append([[1, 2], [3, 4]])
        >>> a.append([5, 6])
        >>> a[:]
        array([[1, 2],
               [3, 4],
               [5, 6]], dtype=int32)
        """
        axis = _boxes.axis_in(axis, self.ndim)
        array = self._items_for(items, axis, casting)
        self._insert(axis, -1, array.shape[axis], array)

    def insert(
        self,
        at: int,
        items: Any = None,
        axis: int = 0,
        *,
        n: int | None = None,
        casting: Casting = "unsafe",
    ) -> None:
        """Insert items before position `at` of an axis. Later items move to higher positions.

        Parameters
        ----------
        at
            The position; a negative one counts from the end.
        items
            As in `append`; None inserts items that hold the fill value.
        axis
            The axis that grows.
        n
            Number of positions to insert if `items` is None; 1 by default.
        casting
            As in `append`.

        Examples
        --------
        >>> import caterva, numpy as np
        >>> a = caterva.asarray(np.arange(4))
        >>> a.insert(1, [8, 9])
        >>> a.insert(0, n=2)
        >>> a[:]
        array([0, 0, 0, 8, 9, 1, 2, 3])
        """
        axis = _boxes.axis_in(axis, self.ndim)
        length, at = self.shape[axis], operator.index(at)
        if items is not None and n is not None:
            raise TypeError("give items or n, not both: n is the length of items")
        if not -length <= at <= length:
            raise IndexError(
                f"position {at} is out of bounds for axis {axis} with size {length}"
            )
        at = at + length if at < 0 else at
        if items is None:
            self._insert(axis, at, 1 if n is None else operator.index(n), None)
            return
        array = self._items_for(items, axis, casting)
        self._insert(axis, at, array.shape[axis], array)

    def remove(self, start: int, stop: int | None = None, axis: int = 0) -> None:
        """Remove the positions [start, stop) of an axis. Later items move to lower positions.

        `start` and `stop` are clipped to the axis, as by ``del`` of a slice in Python. Without
        `stop`, remove position `start`; raise IndexError if it does not exist.

        Examples
        --------
        >>> import caterva, numpy as np
        >>> a = caterva.asarray(np.arange(6))
        >>> a.remove(1, 4)
        >>> a[:]
        array([0, 4, 5])
        """
        axis = _boxes.axis_in(axis, self.ndim)
        length = self.shape[axis]
        if stop is None:
            start = operator.index(start)
            if not -length <= start < length:
                raise IndexError(
                    f"index {start} is out of bounds for axis {axis} with size {length}"
                )
            start %= length
            stop = start + 1
        first, last, _ = slice(start, stop).indices(length)
        self._remove(axis, first, max(first, last))

    # ---- Copies ---------------------------------------------------------------------------

    def copy(
        self,
        path: _options.Path | None = None,
        sel: Any = ...,
        **options: Unpack[_options.Copying],
    ) -> Array:
        """Copy a selection to a new array, with another partition, codec or layout if asked.

        Parameters
        ----------
        path
            Where the new array goes; None is memory.
        sel
            The selection: ints, slices, new axes and an ellipsis.
        **options
            Those of `create`, and ``dtype`` and ``casting`` to convert numbers as `read` does,
            and ``memory``, the bytes that the copy may use. ``for_remote=True`` stores what
            readers of URLs need to know about all chunks in one place of the file; False does
            not. ``zarr=True`` makes a directory that is also a Zarr v3 array; it is open for
            reading. Omitted options are taken from this array. ``progress`` counts the bytes of
            the copy.

        Examples
        --------
        >>> import caterva, numpy as np
        >>> a = caterva.asarray(np.arange(12).reshape(3, 4))
        >>> a.copy("part.b2nd", np.s_[1:], dtype="f4", codec="lz4")[0]
        array([4., 5., 6., 7.], dtype=float32)
        """
        return copied(Array, self, path, sel, {**options})

    # ---- Chunks ---------------------------------------------------------------------------

    @property
    def chunks(self) -> tuple[int, ...]:
        """Shape of the chunks."""
        chunks: tuple[int, ...] = self._describe()["chunks"]
        return chunks

    @property
    def blocks(self) -> tuple[int, ...]:
        """Shape of the blocks; each chunk is divided into blocks."""
        blocks: tuple[int, ...] = self._describe()["blocks"]
        return blocks

    @property
    def n_chunks(self) -> int:
        """Number of chunks."""
        return int(self._describe()["n_chunks"])

    def iter_chunks(self, sel: Any = ...) -> Iterator[tuple[slice, ...]]:
        """Iterate over the chunks that a box overlaps; yields each overlap as slices.

        `sel` has slices of step 1 and ints; an int stands for a slice of one item.

        Examples
        --------
        >>> import caterva, numpy as np
        >>> a = caterva.zeros((4, 6), chunks=(2, 4))
        >>> [tuple(p.shape) for p in map(a.__getitem__, a.iter_chunks(np.s_[1:, :5]))]
        [(1, 4), (1, 1), (2, 4), (2, 1)]
        """
        return _boxes.iter_boxes(sel, self.shape, self.chunks)

    def chunk(self, number: int) -> ChunkInfo:
        """Describe chunk `number` (C order) as of the last commit: position, size, kind."""
        return ChunkInfo(number, *self._chunk_info(number))

    def block(self, chunk: int, block: int) -> BlockInfo:
        """Describe block `block` of chunk `chunk` as of the last commit."""
        return BlockInfo(chunk, block, *self._block_info(chunk, block))

    def chunk_infos(self) -> Iterator[ChunkInfo]:
        """Iterate over the descriptions of all chunks; see `chunk`."""
        return map(self.chunk, range(self.n_chunks))

    def read_chunk(self, number: int) -> bytes:
        """Return chunk `number` as stored: a Blosc2 chunk."""
        return self._chunk_read(number)

    def write_chunk(self, number: int, chunk: bytes) -> None:
        """Replace chunk `number` with a Blosc2 chunk, which is decoded once to check it.

        Examples
        --------
        >>> import caterva
        >>> a, b = caterva.full(9, 5), caterva.zeros(9, int)
        >>> b.write_chunk(0, a.read_chunk(0))
        >>> b[-1]
        np.int64(5)
        """
        self._chunk_write(number, chunk)

    def prefetch(self, sel: Any = ...) -> None:
        """Decode the bounding box of a selection into the cache, in the background."""
        self._prefetch(*_boxes.box_around(sel, self.shape))

    @property
    def cache(self) -> dict[str, int]:
        """Counts of the cache that this array uses; see `caterva.cache`."""
        return self._cache_counts()

    # ---- Upkeep ---------------------------------------------------------------------------

    def space(self) -> Space:
        """Count stored chunks, and live and dead bytes of the file. Reads each chunk's header.

        Examples
        --------
        >>> import caterva
        >>> a = caterva.zeros((4, 6), chunks=(2, 6))
        >>> a[0] = range(6)
        >>> a.commit()
        >>> s = a.space()
        >>> s.stored_chunks, s.special_chunks, s.dead_bytes
        (1, 1, 0)
        """
        return Space(*self._measure())

    def verify(self, *, quick: bool = False, progress: _options.Listener = None) -> Report:
        """Check structure and checksums, and decode every block.

        Parameters
        ----------
        quick
            Check the structure only.
        progress
            Function ``(done, total)``, called with decoded bytes, or ``"tqdm"``.

        Returns
        -------
        Report
            True if nothing is damaged.

        Examples
        --------
        >>> import caterva
        >>> a = caterva.zeros(3)
        >>> a.commit()
        >>> bool(a.verify())
        True
        """
        return make_report(*self._verify(quick, _options.progress_of(progress)))

    def read_around_damage(
        self, sel: Any = ..., *, fill_value: Any = None
    ) -> tuple[AnyArray, Report]:
        """Read a box of a damaged array. Items of damaged chunks get `fill_value`.

        `sel` has slices of step 1 and ints; the axis of an int stays, with length 1. None as
        `fill_value` is the array's. Returns the items and a report of the damage.

        A chunk is damaged if its bytes were read and are wrong, or if its file is missing from
        an existing directory. If a chunk cannot be read (permissions, a missing object, a
        broken connection), the error is raised, because the chunk may be sound.
        """
        start, stop = _boxes.box_of(sel, self.shape)
        out = np.empty([b - a for a, b in zip(start, stop, strict=True)], self.dtype)
        fill = None
        if fill_value is not None:
            fill = _indexing.as_source(fill_value, self.dtype, (), True).tobytes()
        damages = self._read_skipping(start, stop, out, fill)
        return out, make_report(0, len({d[0] for d in damages}), 0, damages)

    def compact(self, *, progress: _options.Listener = None) -> None:
        """Rewrite the file without its dead space. Closes and reopens the array."""
        self._upkeep(0, _options.progress_of(progress))

    def seal(self, *, progress: _options.Listener = None) -> None:
        """Store checksums for chunks that have none. Closes and reopens the array."""
        self._upkeep(1, _options.progress_of(progress))

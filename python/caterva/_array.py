"""The array: NumPy's words for a file of compressed chunks."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self, Unpack

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

    Made by `open`, `create`, `zeros`, `full`, `empty`, `asarray`, `from_bytes` and `copy`.
    ``a[key]`` and ``a[key] = value`` mean what they mean in NumPy, and give NumPy arrays.
    What is written is seen at once through this object, and by others after `commit` or
    `close`. As a context manager the array is closed at the end of the block, and at an
    exception in the block discarded.

    Any number of threads may use one array at once.

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
        """Commit what is pending and release the file; closing twice is fine.

        When the commit fails or is interrupted, the array stays open with all that is pending:
        close it again, for example after making room on the disk, or `discard` it.

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
        """Drop what is pending and release the file.

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
        """Where it is stored, or what a file object is called; None in memory."""
        place = self._place
        return None if place is None or place == _options.MEMORY else place

    @property
    def fill_value(self) -> Any:
        """What items hold that were never written, a scalar of NumPy's."""
        return self.info.fill_value

    @property
    def info(self) -> Info:
        """Everything about the array, for people and by name.

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
        """What reading it has cost so far, behind ``http://``, ``https://`` or ``s3://``;
        None elsewhere. Arrays of one tree are counted together."""
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
        """Parts of the array, seen lazily: ``a.view[10:20, ::2]`` reads nothing yet.

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
        """The array with its axes in another order, as a view.

        Examples
        --------
        >>> import caterva
        >>> caterva.zeros((2, 3, 4)).transpose(2, 0, 1).shape
        (4, 2, 3)
        """
        return self.view[...].transpose(*axes)

    # ---- Many writers -----------------------------------------------------------------

    def job(self, shape: Sequence[int] | int | None = None) -> Job:
        """Begin a job: leave for many workers to write this array at once.

        Parameters
        ----------
        shape
            What the array grows to with the job, pending like a `resize`.

        Returns
        -------
        Job
            To be pickled to workers, and for `Job.merge`.

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
        progress: _options.Progress | Literal["tqdm"] | None = None,
    ) -> Merged:
        """Merge finished parts of one job, whoever began it; pending until `commit`.

        Parameters
        ----------
        tokens
            What `Part.finish` gave, in any nesting of lists; None is no token.
        overlap
            ``"error"``: two parts that wrote the same items are a FileExistsError that names
            both. ``"last"``: the one whose token comes last counts.
        keep
            Leave the job's folder at the commit, for other tokens of the job.
        unchecked
            Do not compare what moves with its checksums.
        progress
            Function ``(done, total)`` that hears of it in chunks, or ``"tqdm"``.

        Returns
        -------
        Merged

        Raises
        ------
        CorruptError
            For what is no token, or a part that is not what its token says.
        FileNotFoundError
            When a part, or the job, is gone.
        InvalidError
            When shape, chunks or dtype are not those of the job; its `code` is `ESHAPE`.
        StaleError
            When the array has changed, since the job began, where a part wrote.

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
        """Named values of the user's: a mutable mapping.

        They are stored as python-blosc2 stores its ``vlmeta``.

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
        """Names of the dimensions, None for an axis without one; pending until the commit.

        They are read as Caterva, python-blosc2 and Zarr name them, and set as one name for
        each axis; None takes all names away. Copies keep those of the axes that they keep.

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
        """Metalayers, whose number and lengths are fixed when the array is made: bytes."""
        return Metalayers(self)

    # ---- Shape ----------------------------------------------------------------------------

    def resize(self, *shape: int | Sequence[int]) -> None:
        """Grow or shrink axes at their ends; new items hold the fill.

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
        """`items` as an array that fits the array but for its length along `axis`."""
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
        """Add items at the end of an axis.

        Parameters
        ----------
        items
            Shaped as the array but for its length along `axis`, or without that axis.
        axis
            Where they go.
        casting
            What may be lost. The default converts as an assignment ``a[...] = items`` does in
            NumPy: of floats an array of integers keeps the whole part. ``"same_kind"`` and
            ``"safe"`` raise TypeError for such items, as NumPy's `can_cast` has it.

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
        """Put items in front of position `at` of an axis; what is behind moves up.

        Parameters
        ----------
        at
            The position; negative counts from the end.
        items
            As for `append`; None is the fill.
        axis
            Where they go.
        n
            How many, where `items` is None.
        casting
            As for `append`.

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
            raise TypeError("items and n: the items are as many as they are")
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
        """Take items out of an axis; what is behind moves up.

        With `stop` this is Python's ``del`` of a slice, which clips bounds to the axis. Without
        `stop` it is the item at `start`; if there is no such item, IndexError.

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
        """A new array of a box of this one, repacked as the options say.

        Parameters
        ----------
        path
            Where it goes; None is memory.
        sel
            The box to copy; anything else that NumPy's basic indices select is copied
            through a view.
        **options
            Those of `create`; also ``dtype`` and ``casting``, to convert numbers as `read`
            does, and ``memory``, the bytes that the copy may hold. With ``for_remote=True`` one
            place of the file has what readers of URLs need to know of all chunks; False:
            without. What is left out is as here. ``progress`` hears of the copy, in chunks.

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
        """Shape of the blocks that chunks are made of."""
        blocks: tuple[int, ...] = self._describe()["blocks"]
        return blocks

    @property
    def n_chunks(self) -> int:
        """Number of chunks."""
        return int(self._describe()["n_chunks"])

    def iter_chunks(self, sel: Any = ...) -> Iterator[tuple[slice, ...]]:
        """Go over the chunks that a box touches: the slices of what each holds of it.

        The box is slices without steps, and ints, which stand for slices of one item.

        Examples
        --------
        >>> import caterva, numpy as np
        >>> a = caterva.zeros((4, 6), chunks=(2, 4))
        >>> [tuple(p.shape) for p in map(a.__getitem__, a.iter_chunks(np.s_[1:, :5]))]
        [(1, 4), (1, 1), (2, 4), (2, 1)]
        """
        return _boxes.iter_boxes(sel, self.shape, self.chunks)

    def chunk(self, number: int) -> ChunkInfo:
        """Where chunk `number` (in C order) is and how it is stored, as of the last commit."""
        return ChunkInfo(number, *self._chunk_info(number))

    def block(self, chunk: int, block: int) -> BlockInfo:
        """Where a block of a chunk is, as of the last commit."""
        return BlockInfo(chunk, block, *self._block_info(chunk, block))

    def chunk_infos(self) -> Iterator[ChunkInfo]:
        """All chunks, as `chunk` describes them."""
        return map(self.chunk, range(self.n_chunks))

    def read_chunk(self, number: int) -> bytes:
        """A chunk as it is stored: a Blosc2 chunk."""
        return self._chunk_read(number)

    def write_chunk(self, number: int, chunk: bytes) -> None:
        """Make a Blosc2 chunk chunk `number` of the array; it is decoded once before.

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
        """Have the smallest box around a selection decoded into the cache, in background."""
        self._prefetch(*_boxes.box_around(sel, self.shape))

    @property
    def cache(self) -> dict[str, int]:
        """Counts of the cache that this array uses."""
        return self._cache_counts()

    # ---- Upkeep ---------------------------------------------------------------------------

    def space(self) -> Space:
        """How chunks are stored, and how many bytes of the file are dead: looks at each chunk.

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
            Look at the structure only.
        progress
            Hears of chunks done.

        Returns
        -------
        Report
            True when nothing is damaged.

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
        """Read a box although chunks are damaged: these become the fill, and are reported.

        The box is slices without steps; an axis with an int stays, with one item.

        A chunk is damaged when its bytes were read and are wrong, or when its file is missing
        from a directory that is there. A chunk that cannot be read (no permission, an object
        that is gone, a connection that breaks) raises the error, because it may be sound.
        """
        start, stop = _boxes.box_of(sel, self.shape)
        out = np.empty([b - a for a, b in zip(start, stop, strict=True)], self.dtype)
        fill = None
        if fill_value is not None:
            fill = _indexing.as_source(fill_value, self.dtype, (), True).tobytes()
        damages = self._read_skipping(start, stop, out, fill)
        return out, make_report(0, len({d[0] for d in damages}), 0, damages)

    def compact(self, *, progress: _options.Listener = None) -> None:
        """Rewrite the file without its dead space. The array is reopened for it."""
        self._upkeep(0, _options.progress_of(progress))

    def seal(self, *, progress: _options.Listener = None) -> None:
        """Give checksums to chunks that have none. The array is reopened for it."""
        self._upkeep(1, _options.progress_of(progress))

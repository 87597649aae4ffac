"""The array: NumPy's words for a file of compressed chunks."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self, Unpack

from . import _options
from ._attributes import Attributes, Metalayers
from ._growing import Growing
from ._info import Info
from ._remote import Transfers
from ._selectors import Views
from ._shown import shown
from ._stored import Stored

if TYPE_CHECKING:
    from ._jobs import Job, Merged, Overlap, Tokens
    from ._view import View


class Array(Growing, Stored):
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
        from ._functions import from_bytes

        return from_bytes(self.to_bytes(), writable=True)

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
        from ._functions import copy

        return copy(self, path, sel, **options)

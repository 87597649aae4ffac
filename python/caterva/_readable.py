"""What arrays and views share: reading, statistics and reductions."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt

from . import _caterva, _dtypes, _indexing, _plans
from . import _reduce as _reductions
from ._image import view_image
from ._keys import make_plan
from ._operators import Operators
from ._plans import AnyArray
from ._selectors import Astype, Fields, Outer, Vector

if TYPE_CHECKING:
    from ._async import Reading


class Readable(Operators):
    """Base of `Array` and `View`: reading, statistics and reductions."""

    __slots__ = ()

    if TYPE_CHECKING:  # defined by the extension

        @property
        def shape(self) -> tuple[int, ...]: ...

        @property
        def dtype(self) -> np.dtype[Any]: ...

        @property
        def view(self) -> Any: ...

        def __getitem__(self, key: Any, /) -> Any: ...

        def _read(self, kind: int, what: Any, memory: AnyArray, /, *how: Any) -> None: ...

        def _write(self, kind: int, what: Any, memory: AnyArray, /, *how: Any) -> None: ...

        def _read_begin(self, on_done: Any, *step: Any) -> _caterva.Request: ...

        def _statistics(self, what: Any, progress: Any, /) -> tuple[Any, ...]: ...

        def _histogram(
            self, what: Any, low: float, high: float, counts: AnyArray, progress: Any, /
        ) -> None: ...

        def _reduce(self, reduction: int, what: Any, /, *how: Any) -> None: ...

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of items."""
        return math.prod(self.shape)

    @property
    def itemsize(self) -> int:
        """Bytes of one item."""
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of all items when decoded."""
        return self.size * self.itemsize

    def __array__(
        self, dtype: npt.DTypeLike | None = None, copy: bool | None = None
    ) -> AnyArray:
        if copy is False:
            raise ValueError("cannot make a NumPy array of compressed items without a copy")
        return self.read(dtype=dtype, casting="unsafe")

    def to_numpy(self) -> AnyArray:
        """Read all items into a new NumPy array.

        Examples
        --------
        >>> import caterva
        >>> caterva.zeros(2).to_numpy()
        array([0., 0.])
        """
        return self.read()

    def tolist(self) -> Any:
        """Read all items as nested lists of Python scalars, as ``numpy.ndarray.tolist`` does.

        Examples
        --------
        >>> import caterva
        >>> caterva.full((1, 2), 7).tolist()
        [[7, 7]]
        """
        return self.read().tolist()

    def __contains__(self, item: object) -> bool:
        step = max(1, _rows_at_once(self))
        ends = range(0, self.shape[0], step) if self.ndim else ()
        parts = (self[at : at + step] for at in ends) if self.ndim else (self[...],)
        return any(bool(np.any(part == item)) for part in parts)

    def __iter__(self) -> Iterator[Any]:
        if self.ndim == 0:
            raise TypeError("iteration over a 0-d array")
        step = 1 if _may_change(self) else max(1, _rows_at_once(self))
        at = 0
        while at < self.shape[0]:
            yield from self[at : at + step]
            at += step

    def __eq__(self, other: object) -> bool:
        if isinstance(other, int | float | complex | str | bytes):
            raise TypeError(
                f"'==' is not supported between {type(self).__name__} and {other!r}: compare "
                "np.asarray(a), or read the part to compare"
            )
        return NotImplemented

    __hash__ = object.__hash__

    def __bool__(self) -> bool:
        if self.size == 1:
            return bool(np.asarray(self).reshape(())[()])
        raise ValueError("the truth value of an array without exactly one item is ambiguous")

    def read(
        self,
        sel: Any = ...,
        *,
        out: AnyArray | None = None,
        dtype: npt.DTypeLike | None = None,
        casting: _plans.Casting = "same_kind",
        field: str | None = None,
    ) -> AnyArray:
        """Read a selection, optionally into an existing array or as another dtype.

        Parameters
        ----------
        sel
            The key of ``a[key]``: ints, slices, lists, masks, new axes and an ellipsis.
        out
            Array of the result's shape to read into, with any strides.
        dtype
            dtype of the result. None: that of `out`, or else the array's. A dtype without a
            width, such as ``str``, gets the width that ``numpy.ndarray.astype`` gives it.
        casting
            Conversions that are allowed, as in NumPy. Reads and writes convert a float outside
            the range of an integer dtype to the nearest integer of that range, and NaN to 0;
            NumPy leaves both undefined.
        field
            Name of one field of structured items to read; ``"a.b"`` for a nested field.

        Returns
        -------
        numpy.ndarray
            `out`, or a new array.

        Examples
        --------
        >>> import caterva, numpy as np
        >>> a = caterva.asarray(np.arange(6).reshape(2, 3))
        >>> a.read(np.s_[:, ::-1], dtype="f4")
        array([[2., 1., 0.],
               [5., 4., 3.]], dtype=float32)
        """
        plain = out is not None and dtype is None and field is None
        if plain and isinstance(self, _caterva.Array) and self._read_basic(sel, out):
            return cast(AnyArray, out)
        plan = make_plan(sel, self.shape)
        return _indexing.read_into(self, plan, out, dtype, casting, field)

    def read_async(
        self,
        sel: Any = ...,
        *,
        out: AnyArray | None = None,
        dtype: npt.DTypeLike | None = None,
        casting: _plans.Casting = "same_kind",
        field: str | None = None,
    ) -> Reading:
        """Start to read a selection in the background, on the library's threads.

        Parameters
        ----------
        sel, out, dtype, casting, field
            As in `read`. Do not use `out` until the read has ended.

        Returns
        -------
        Reading
            A future with the result of `read`: ``await`` it, or call its ``result()``.

        Notes
        -----
        Reads of one array start in the order of their calls. Each sees the array as it was when
        the call was made; if the array is open for writing, as it was at one moment after the
        call. `close` cancels reads that have not ended. A read of a view of several arrays
        reads from all of them at the same time.

        Examples
        --------
        >>> import asyncio, caterva, numpy as np
        >>> a = caterva.asarray(np.arange(12).reshape(3, 4))
        >>> async def rows():
        ...     return await asyncio.gather(*(a.read_async(i) for i in range(3)))
        >>> [row.sum() for row in asyncio.run(rows())]
        [np.int64(6), np.int64(22), np.int64(38)]
        >>> a.read_async(np.s_[:, 1], dtype="f4").result()
        array([1., 5., 9.], dtype=float32)
        """
        from ._async import begin

        return begin(self, sel, out, dtype, casting, field)

    def astype(self, dtype: npt.DTypeLike, *, casting: _plans.Casting = "unsafe") -> Astype:
        """Return a lazy wrapper that converts to another dtype when it is read.

        Examples
        --------
        >>> import caterva
        >>> caterva.full(3, 7).astype("f8")[1:]
        array([7., 7.])
        """
        return Astype(self, _dtypes.sized(dtype, self.dtype), casting)

    @property
    def oindex(self) -> Outer:
        """Outer indexing: lists for several axes select all their combinations.

        Examples
        --------
        >>> import caterva, numpy as np
        >>> a = caterva.asarray(np.arange(12).reshape(3, 4))
        >>> a.oindex[[0, 2], [1, 3]]
        array([[ 1,  3],
               [ 9, 11]])
        """
        return Outer(self)

    @property
    def vindex(self) -> Vector:
        """Pointwise indexing: lists are paired, and their axes come first in the result.

        Examples
        --------
        >>> import caterva, numpy as np
        >>> a = caterva.asarray(np.arange(12).reshape(3, 4))
        >>> a.vindex[[0, 2], [1, 3]]
        array([ 1, 11])
        """
        return Vector(self)

    @property
    def fields(self) -> Fields:
        """Fields of structured items by name. Each can be read and written alone.

        Examples
        --------
        >>> import caterva
        >>> a = caterva.zeros(3, dtype=[("x", "f4"), ("n", "i2")])
        >>> a.fields["n"][1:] = 5
        >>> a.fields["n"][:]
        array([0, 5, 5], dtype=int16)
        """
        return Fields(self)

    view_image = view_image

    # ---- Statistics and reductions ----------------------------------------------------------

    statistics = _reductions.statistics
    histogram = _reductions.histogram
    min = _reductions.minimum
    max = _reductions.maximum
    sum = _reductions.total
    mean = _reductions.mean
    var = _reductions.var
    std = _reductions.std


def _may_change(array: Any) -> bool:
    """Whether items that are read ahead may be overwritten before they are returned."""
    arrays = getattr(array, "_arrays", (array,))
    return any(each.writable for each in arrays)


def _rows_at_once(array: Readable, budget: int = 1 << 24) -> int:
    """Number of positions on the first axis whose items take about `budget` bytes."""
    row = max(1, math.prod(array.shape[1:]) * array.itemsize)
    return budget // row

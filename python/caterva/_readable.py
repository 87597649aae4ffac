"""What arrays and views have in common: reading, and what is computed of what is read."""

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
    """What arrays and views have in common: reading, and what is computed of what is read."""

    __slots__ = ()

    if TYPE_CHECKING:  # the extension has them

        @property
        def shape(self) -> tuple[int, ...]: ...

        @property
        def dtype(self) -> np.dtype[Any]: ...

        @property
        def view(self) -> Any: ...

        def __getitem__(self, key: Any, /) -> Any: ...

        def _read(self, kind: int, what: Any, memory: AnyArray, /, *how: Any) -> None: ...

        def _write(self, kind: int, what: Any, memory: AnyArray, /, *how: Any) -> None: ...

        def _read_begin(self, told: Any, *step: Any) -> _caterva.Request: ...

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
        """Bytes of all items, decoded."""
        return self.size * self.itemsize

    def __array__(
        self, dtype: npt.DTypeLike | None = None, copy: bool | None = None
    ) -> AnyArray:
        if copy is False:
            raise ValueError("a compressed array cannot be seen as NumPy's without a copy")
        return self.read(dtype=dtype, casting="unsafe")

    def to_numpy(self) -> AnyArray:
        """All items as a NumPy array.

        Examples
        --------
        >>> import caterva
        >>> caterva.zeros(2).to_numpy()
        array([0., 0.])
        """
        return self.read()

    def tolist(self) -> Any:
        """All items as nested lists of Python's own values, as NumPy's ``tolist`` gives them.

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
                f"'==' is not supported between a {type(self).__name__} and {other!r}: compare "
                "np.asarray(a), or the part of it that you want, which is read for it"
            )
        return NotImplemented

    __hash__ = object.__hash__

    def __bool__(self) -> bool:
        if self.size == 1:
            return bool(np.asarray(self).reshape(())[()])
        raise ValueError("the truth value of an array that has not one item is ambiguous")

    def read(
        self,
        sel: Any = ...,
        *,
        out: AnyArray | None = None,
        dtype: npt.DTypeLike | None = None,
        casting: _plans.Casting = "same_kind",
        field: str | None = None,
    ) -> AnyArray:
        """Read a selection, into memory of yours or as another dtype.

        Parameters
        ----------
        sel
            What would stand between the brackets of ``a[...]``.
        out
            An array of the result's shape to read into, of any strides.
        dtype
            The items' dtype in the result; None is that of `out`, or the array's. One without
            a width, as ``str``, gets the width that NumPy's ``astype`` gives it.
        casting
            Which casts are allowed, in NumPy's words. Floats that lie outside of an integer
            dtype become its nearest integer and NaN becomes 0, in writing, too; NumPy leaves
            that open.
        field
            The name of a field of structured items (``"a.b"`` of a nested one), which is
            read alone.

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
        """Begin to read a selection in the background, on threads that the library has anyway.

        Parameters
        ----------
        sel, out, dtype, casting, field
            As in `read`. `out` is the library's until the read is over.

        Returns
        -------
        Reading
            What `read` returns, once it is there: ``await`` it, or ask for its ``result()``.

        Notes
        -----
        Reads of one array are begun in the order of their calls, and see what was there when
        they were called; those through an array that is written see one moment from then on.
        `close` cancels what is outstanding. Of a view each array below reads its share, several
        at once.

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
        """The array as one of another dtype, converted as it is read.

        Examples
        --------
        >>> import caterva
        >>> caterva.full(3, 7).astype("f8")[1:]
        array([7., 7.])
        """
        return Astype(self, _dtypes.sized(dtype, self.dtype), casting)

    @property
    def oindex(self) -> Outer:
        """Index each axis by itself: of two lists every pair is taken.

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
        """Index by lists that go together, whose axes come first in the result.

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
        """The fields of structured items by name.

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
    """True where what is read ahead may be written before it is given."""
    arrays = getattr(array, "_arrays", (array,))
    return any(each.writable for each in arrays)


def _rows_at_once(array: Readable, budget: int = 1 << 24) -> int:
    """How many items of the first axis take about so many bytes."""
    row = max(1, math.prod(array.shape[1:]) * array.itemsize)
    return budget // row

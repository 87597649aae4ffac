"""What changes the shape of an array: items come in and go, at the ends of axes and between."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from . import _boxes, _caterva, _indexing, _options
from ._plans import AnyArray, Casting
from ._readable import Readable


class Growing(_caterva.Array, Readable):
    """What changes the shape of an array."""

    __slots__ = ()

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
        `stop` it is the item at `start`, and IndexError when there is none.

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

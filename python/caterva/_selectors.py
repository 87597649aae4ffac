"""Helper objects that are indexed: ``a.oindex[...]``, ``a.vindex[...]``, ``a.view[...]``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from . import _dtypes, _indexing, _keys, _plans
from ._lazy import Reduced
from ._plans import AnyArray, Casting

if TYPE_CHECKING:
    from ._array import Array
    from ._readable import Readable
    from ._view import View


class _Selector:
    __slots__ = ("_array",)

    def __init__(self, array: Any) -> None:
        self._array = array

    def __repr__(self) -> str:
        return f"{type(self).__name__} of {self._array!r}"

    def _plan(self, key: Any) -> _plans.Plan:
        raise NotImplementedError

    def __getitem__(self, key: Any) -> Any:
        return _indexing.read_plan(self._array, self._plan(key))

    def __setitem__(self, key: Any, value: Any) -> None:
        array = self._array
        plan = self._plan(key)
        plan.write(array, _indexing.as_source(value, array.dtype, plan.shape, plan.scalar))


class Outer(_Selector):
    """Outer indexing; see `Array.oindex`."""

    __slots__ = ()

    def _plan(self, key: Any) -> _plans.Plan:
        return _keys.outer_plan(key, self._array.shape)


class Vector(_Selector):
    """Pointwise indexing; see `Array.vindex`."""

    __slots__ = ()

    def _plan(self, key: Any) -> _plans.Plan:
        return _keys.vector_plan(key, self._array.shape)


class _Lazy(Reduced):
    """Base of lazy arrays, which read when they are indexed."""

    __slots__ = ("_array",)

    _array: Any

    def __getitem__(self, key: Any) -> Any:
        raise NotImplementedError

    def __dask_tokenize__(self) -> Any:
        from ._identity import token_of_lazy

        return token_of_lazy(self)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> AnyArray:
        if copy is False:
            raise ValueError("cannot make a NumPy array of compressed items without a copy")
        items: AnyArray = self[...]
        if dtype is None:
            return items
        return _dtypes.cast(items, _dtypes.sized(dtype, items.dtype))


class Astype(_Lazy):
    """An array that converts its items to another dtype when they are read."""

    __slots__ = ("dtype", "_casting")

    def __init__(self, array: Readable, dtype: np.dtype[Any], casting: Casting) -> None:
        if not _dtypes.is_sized(dtype, array.dtype):
            raise TypeError(f"dtype {dtype!r} has no width or unit: give one, as in 'M8[s]'")
        if not np.can_cast(array.dtype, dtype, casting):
            raise TypeError(
                f"Cannot cast array data from {array.dtype!r} to {dtype!r} according to "
                f"the rule {casting!r}"
            )
        self._array = array
        self.dtype = dtype
        self._casting: Casting = casting

    @property
    def shape(self) -> tuple[int, ...]:
        """Length of each axis."""
        shape: tuple[int, ...] = self._array.shape
        return shape

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    def __len__(self) -> int:
        return len(self._array)

    def __getitem__(self, key: Any) -> Any:
        plan = _keys.make_plan(key, self._array.shape)
        out = np.empty(plan.shape, self.dtype)
        _indexing.read_into(self._array, plan, out, None, self._casting, None)
        return out[()] if plan.scalar else out

    def __repr__(self) -> str:
        return f"{self._array!r} as {self.dtype}"


class Fields:
    """Fields of structured items; see `Array.fields`."""

    __slots__ = ("_array",)

    def __init__(self, array: Readable) -> None:
        self._array = array

    def __getitem__(self, name: str) -> Field:
        return Field(self._array, name)

    def __iter__(self) -> Any:
        return iter(self._array.dtype.names or ())

    def __len__(self) -> int:
        return len(self._array.dtype.names or ())


class Field(_Lazy):
    """One field of structured items, read and written alone."""

    __slots__ = ("name", "dtype")

    def __init__(self, array: Any, name: str) -> None:
        self._array = array
        self.name = name
        self.dtype = _indexing.field_dtype(array.dtype, name)

    @property
    def shape(self) -> tuple[int, ...]:
        """Length of each axis."""
        shape: tuple[int, ...] = self._array.shape + self.dtype.shape
        return shape

    def __getitem__(self, key: Any) -> Any:
        plan = _keys.make_plan(key, self._array.shape)
        items = _indexing.read_into(self._array, plan, None, None, "unsafe", self.name)
        return items[()] if plan.scalar and not self.dtype.shape else items

    def __setitem__(self, key: Any, value: Any) -> None:
        # The library writes whole items: read them, change the field, write them back.
        plan = _keys.make_plan(key, self._array.shape)
        items = np.empty(plan.shape, self._array.dtype)
        plan.read(self._array, items)
        part = items
        for name in self.name.split("."):
            part = part[name]
        part[...] = _indexing.convert_value(value, part.dtype)
        plan.write(self._array, items)

    def __repr__(self) -> str:
        return f"field {self.name!r} of {self._array!r}"


class Views:
    """Makes views; see `Array.view`."""

    __slots__ = ("_array",)

    def __init__(self, array: Array) -> None:
        self._array = array

    def __getitem__(self, key: Any) -> View:
        from ._view import view_of

        return view_of(self._array).select(key)

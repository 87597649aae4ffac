"""Views: lazy selections of an array, and several arrays joined as one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

from . import _boxes, _caterva, _indexing, _options
from ._array import Array
from ._copies import copied
from ._errors import DTypeError, Status, make
from ._readable import Readable


class View(_caterva.View, Readable):
    """A lazy selection of an array (slices, steps, transposition, new axes), or several arrays
    joined as one.

    Created by `Array.view`, `concat` and `stack`, without reading anything. ``v[key]`` and
    ``v[key] = value`` work as for an array, but a view of several arrays is read-only.
    """

    __slots__ = ("_recipe",)

    _recipe: tuple[Any, ...]
    """Arguments with which `remade` makes an equal view."""

    def _then(self, step: str, *argument: Any) -> View:
        """Apply a method of the extension and record it in the recipe."""
        view: View = getattr(_caterva.View, step)(self, *argument)
        view._recipe = (*self._recipe, (step, *argument))
        return view

    def _made_again(self) -> View:
        """Return an equal view. The extension calls this in a forked child that has opened the
        arrays again."""
        return remade(*self._recipe)

    def __reduce__(self) -> tuple[Any, ...]:
        from ._identity import pickle_of_view

        return pickle_of_view(self)

    def __dask_tokenize__(self) -> Any:
        from ._identity import token_of_view

        return token_of_view(self)

    def __getitem__(self, key: Any) -> Any:
        return _indexing.read_fancy(self, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        if not all(array.writable for array in self._arrays):
            message = 'assignment destination is read-only: open the array with mode "r+"'
            raise make(Status.EREADONLY, 0, -1, message)
        _indexing.write_fancy(self, key, value)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    def __repr__(self) -> str:
        n = len(self._arrays)
        of = f"{n} arrays" if n > 1 else repr(self._arrays[0])
        return f"<caterva.View shape={self.shape} dtype={self.dtype} of {of}>"

    def select(self, key: Any) -> View:
        """Select a part of the view, as a view: ints, slices, new axes, evenly spaced lists.

        Examples
        --------
        >>> import caterva
        >>> caterva.zeros((4, 5)).view[...].select((0, slice(None, None, 2))).shape
        (3,)
        """
        axes, new = _boxes.view_axes(key, self.shape)
        view: View = self._then("_select", axes)
        for place in new:
            view = view._then("_expand", place)
        return view

    @property
    def view(self) -> _Parts:
        """Lazy selections of the view; see `Array.view`."""
        return _Parts(self)

    @property
    def T(self) -> View:
        """The view with its axes reversed."""
        return self._then("_transpose", range(self.ndim)[::-1])

    def transpose(self, *axes: int | Sequence[int]) -> View:
        """The view with its axes in another order; reversed without arguments."""
        order: Any = axes[0] if len(axes) == 1 and isinstance(axes[0], Sequence) else axes
        if not order:
            return self.T
        normal = [_boxes.axis_in(a, self.ndim) for a in order]
        if sorted(normal) != list(range(self.ndim)):
            raise ValueError("axes don't match array")
        return self._then("_transpose", normal)

    def squeeze(self, axis: int | None = None) -> View:
        """The view without `axis`, whose length must be 1; None removes all such axes."""
        if axis is not None:
            place = _boxes.axis_in(axis, self.ndim)
            if self.shape[place] != 1:
                raise ValueError(
                    "cannot select an axis to squeeze out which has size not equal to one"
                )
            return self._then("_squeeze", place)
        view = self
        for place in reversed(range(self.ndim)):
            if self.shape[place] == 1:
                view = view._then("_squeeze", place)
        return view

    def copy(
        self, path: _options.Path | None = None, **options: Unpack[_options.Copying]
    ) -> Array:
        """Copy the view to a new array. The options are those of `Array.copy`."""
        return copied(Array, self, path, ..., {**options})


class _Parts:
    __slots__ = ("_view",)

    def __init__(self, view: View) -> None:
        self._view = view

    def __getitem__(self, key: Any) -> View:
        return self._view.select(key)


def view_of(array: Array | View) -> View:
    """Return a view of the whole array."""
    return array if isinstance(array, View) else remade(array)


def remade(base: Any, *steps: tuple[Any, ...]) -> View:
    """Make a view from its recipe: `base` is an array, or the arguments of a join (views, axis,
    whether the axis is new); `steps` are applied to it."""
    whole = isinstance(base, Array)
    view: View = View._of(base) if whole else _caterva.join(View, *base)
    view._recipe = (base,)
    for step in steps:
        view = view._then(*step)
    return view


def _views(arrays: Sequence[Any]) -> tuple[View, ...]:
    for array in arrays:
        if not isinstance(array, Array | View):
            raise TypeError(
                f"concat and stack take arrays or views, not {type(array).__name__}"
            )
    if not arrays:
        raise ValueError("need at least one array to join")
    for i, array in enumerate(arrays):
        if array.dtype != arrays[0].dtype:  # to the library, ml_dtypes are plain bytes
            raise DTypeError(
                f"array {i} has dtype {array.dtype}, the first one {arrays[0].dtype}"
            )
    return tuple(view_of(array) for array in arrays)


def concat(arrays: Sequence[Array | View], axis: int = 0) -> View:
    """Join arrays along an existing axis, as a view; `View.copy` stores it as a new array.

    Parameters
    ----------
    arrays
        Arrays and views of one dtype, whose shapes may differ along `axis` only.
    axis
        The axis along which they are joined.

    Examples
    --------
    >>> import caterva
    >>> caterva.concat([caterva.zeros(2, "i4"), caterva.full(1, 7, dtype="i4")])[:]
    array([0, 0, 7], dtype=int32)
    """
    views = _views(arrays)
    return remade((views, _boxes.axis_in(axis, views[0].ndim), False))


def stack(arrays: Sequence[Array | View], axis: int = 0) -> View:
    """Join arrays of one shape along a new axis, as a view.

    Examples
    --------
    >>> import caterva
    >>> caterva.stack([caterva.zeros(3), caterva.zeros(3)], axis=-1).shape
    (3, 2)
    """
    views = _views(arrays)
    return remade((views, _boxes.axis_in(axis, views[0].ndim + 1), True))

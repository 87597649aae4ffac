"""Unsupported operators: they raise TypeError with a message that names an alternative."""

from __future__ import annotations

from typing import Any


def _refused(sign: str) -> Any:
    """Make an operator that raises TypeError, unless the other operand implements NumPy's
    ufunc protocol and reads the array itself."""

    def refuse(self: Any, other: Any) -> Any:
        if not isinstance(other, Operators) and hasattr(other, "__array_ufunc__"):
            return NotImplemented
        names = f"{type(self).__name__} and {type(other).__name__}"
        raise TypeError(
            f"{sign!r} is not supported between {names}: read the array, or a part of it, with "
            "a[...], or compute in parts with dask.array.from_array(a)"
        )

    return refuse


class Operators:
    """Operators of arrays, views and fields, which raise TypeError."""

    __slots__ = ()

    __lt__ = _refused("<")
    __le__ = _refused("<=")
    __gt__ = _refused(">")
    __ge__ = _refused(">=")
    __add__ = __radd__ = _refused("+")
    __sub__ = __rsub__ = _refused("-")
    __mul__ = __rmul__ = _refused("*")
    __matmul__ = __rmatmul__ = _refused("@")
    __truediv__ = __rtruediv__ = _refused("/")
    __floordiv__ = __rfloordiv__ = _refused("//")
    __mod__ = __rmod__ = _refused("%")
    __pow__ = __rpow__ = _refused("**")
    __and__ = __rand__ = _refused("&")
    __or__ = __ror__ = _refused("|")
    __xor__ = __rxor__ = _refused("^")

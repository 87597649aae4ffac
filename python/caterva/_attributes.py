"""Attributes and metalayers as mappings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from typing import TYPE_CHECKING, Any, Protocol

from . import _msgpack
from ._errors import NotFoundError, damaged_value
from ._shown import names_shown

if TYPE_CHECKING:
    from ._array import Array


class Owner(Protocol):
    """An object with attributes: an array, or a group of a tree."""

    @property
    def path(self) -> str | None: ...
    def _attribute_get(self, name: str, /) -> bytes: ...
    def _attribute_set(self, name: str, value: bytes, /) -> None: ...
    def _attribute_remove(self, name: str, /) -> None: ...
    def _attribute_names(self) -> list[str]: ...


class Attributes(MutableMapping[str, Any]):
    """User attributes, stored as msgpack; changes are pending until the commit.

    If another program has stored a name that is not UTF-8, its str has lone surrogates, as
    `os.fsdecode` returns for file names; it reads the attribute. New names must be UTF-8.
    """

    __slots__ = ("_owner",)

    def __init__(self, owner: Owner) -> None:
        self._owner = owner

    def raw(self, name: str) -> bytes:
        """Return the stored bytes of the value."""
        try:
            return self._owner._attribute_get(name)
        except NotFoundError:
            raise KeyError(name) from None

    def __getitem__(self, name: str) -> Any:
        raw = self.raw(name)
        try:
            return _msgpack.unpack(raw)
        except (ValueError, TypeError, OverflowError, RecursionError) as error:
            raise damaged_value(f"attribute {name!r}: {error}", self._owner.path) from error

    def __setitem__(self, name: str, value: Any) -> None:
        self._owner._attribute_set(name, _msgpack.pack(value))

    def set_raw(self, name: str, value: bytes) -> None:
        """Store bytes as they are; python-blosc2 expects msgpack."""
        self._owner._attribute_set(name, value)

    def __delitem__(self, name: str) -> None:
        try:
            self._owner._attribute_remove(name)
        except NotFoundError:
            raise KeyError(name) from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._owner._attribute_names())

    def __len__(self) -> int:
        return len(self._owner._attribute_names())

    def __repr__(self) -> str:
        return f"attrs of {self._owner!r}: {names_shown(self) or 'none'}"


class Metalayers(Mapping[str, bytes]):
    """Metalayers by name. A value can be replaced by one of the same length."""

    __slots__ = ("_array",)

    def __init__(self, array: Array) -> None:
        self._array = array

    def __getitem__(self, name: str) -> bytes:
        content: bytes = self._array._describe()["metalayers"][name]
        return content

    def __setitem__(self, name: str, content: bytes) -> None:
        try:
            self._array._metalayer_update(name, content)
        except NotFoundError:
            raise KeyError(name) from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._array._describe()["metalayers"])

    def __len__(self) -> int:
        return len(self._array._describe()["metalayers"])

    def __repr__(self) -> str:
        return f"metalayers of {self._array!r}: {names_shown(self)}"

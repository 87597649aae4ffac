"""The class Group: the arrays and groups of a tree as a mapping."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Unpack

import numpy.typing as npt

from . import _options
from ._array import Array
from ._attributes import Attributes
from ._errors import BusyError, CorruptError, NotFoundError, UnsupportedError
from ._info import TreeReport, tree_report_of

if TYPE_CHECKING:
    from ._tree import Tree

_KINDS = ("array", "group", "other")


@dataclass(frozen=True)
class Entry:
    """What is at a key of a tree: an array, a group, or an object that is neither."""

    key: str
    kind: str
    """``array``, ``group`` or ``other``."""
    kind_name: str
    """``array``, ``group``, or the name in python-blosc2, such as ``schunk`` or ``ctable``."""
    read_only: bool
    """True if it can never be opened for writing where it is."""
    embedded: bool
    stored_bytes: int
    path: str | None
    """The file or member."""


def _entry(parts: tuple[Any, ...]) -> Entry:
    key, kind, *rest = parts
    return Entry(key, _KINDS[kind], *rest)


def _is_member(kind: int, kind_name: str) -> bool:
    """Whether it is a group or an array, also one that cannot be read."""
    return kind < 2 or kind_name in ("damaged", "unreadable")


def entries_of_new(keys: list[str], group: str) -> dict[str, tuple[Any, ...]]:
    """Return entries for new arrays in and below a group, as the extension lists them."""
    found: dict[str, tuple[Any, ...]] = {}
    for key in keys:
        found[key] = (key, 0, "array", False, False, 0, None)
        while (key := key.rpartition("/")[0]) and key != group:
            found[key] = (key, 1, "group", False, False, 0, None)
    return found


def _members_of(value: Mapping[Any, Any], name: str) -> list[tuple[str, Any]]:
    """Flatten nested mappings to (key, value) pairs; the value of an empty mapping is None."""
    found: list[tuple[str, Any]] = []
    for key, member in value.items():
        if not isinstance(key, str) or not key or "/" in key:
            raise TypeError(f"a name in a tree is a str without a slash, not {key!r}")
        if isinstance(member, Mapping):
            found += _members_of(member, f"{name}/{key}")
        elif member is None:
            raise TypeError(f"the value of {key!r} is None, which cannot become an array")
        else:
            found.append((f"{name}/{key}", member))
    return found or [(name, None)]


def says_group(error: UnsupportedError) -> bool:
    """Whether opening an array failed because its key is a group's. Listing the tree would find
    out too, but takes longer."""
    return str(error).endswith(" is a group, not an array")


class Group(MutableMapping[str, Any]):
    """A group of a tree: a mutable mapping from names to arrays and groups.

    ``g["name"]`` is an `Array` or a `Group`. A name may be a path: ``g["a/b"]`` is in the group
    ``a``, and ``g["/a"]`` starts at the root of the tree. ``g["name"] = x`` stores anything
    that `asarray` accepts as an array, replacing an array of that name. A mapping becomes a
    group with an array for each value, or a group for a value that is a mapping; other members
    of an existing group stay.

    Examples
    --------
    >>> import caterva
    >>> with caterva.open_tree("groups.b2d", "w") as t:
    ...     t["model/lat"] = [10.0, 20.0]
    ...     t["model/lon"] = [1, 2, 3]
    >>> model = caterva.open_tree("groups.b2d")["model"]
    >>> list(model), model["lon"][1:]
    (['lat', 'lon'], array([2, 3]))
    """

    __slots__ = ("_key", "_tree")

    def __init__(self, owner: Tree, key: str) -> None:
        self._tree = owner
        self._key = key  # "" for the root, "/g" for a group

    # ---- Names --------------------------------------------------------------------

    @property
    def name(self) -> str:
        """Key of the group from the root; ``/`` for the tree itself."""
        return self._key or "/"

    @property
    def tree(self) -> Tree:
        """The tree that contains the group."""
        return self._owner

    @property
    def _owner(self) -> Tree:
        return self._tree

    def _full(self, name: str) -> str:
        if not isinstance(name, str):
            raise TypeError(f"a name in a tree is a str, not {name!r}")
        if not name:
            raise ValueError('a name in a tree is not empty; "/" is the tree itself')
        if name == "/":
            return ""
        return name if name.startswith("/") else f"{self._key}/{name}"

    def _full_of_member(self, name: str) -> str:
        key = self._full(name)
        if not key:
            raise ValueError('"/" is the tree itself, not a member of it')
        return key

    def entries(self) -> list[Entry]:
        """List everything in and below the group, also what is not an array, sorted by key.

        Examples
        --------
        >>> import caterva
        >>> t = caterva.open_tree("entries.b2d", "w")
        >>> t["g/x"] = [1, 2]
        >>> t.commit()
        >>> [(e.key, e.kind) for e in t.entries()]
        [('/g', 'group'), ('/g/x', 'array')]
        """
        return list(map(_entry, self._owner._listed(self._key)))

    def arrays(self) -> Iterator[tuple[str, Array]]:
        """Iterate over the arrays in and below the group, with their keys. Arrays that another
        process deletes meanwhile are skipped. A damaged one raises `CorruptError`: `entries`
        lists it."""
        for key, kind, kind_name, *_ in self._owner._listed(self._key):
            if kind != 1 and _is_member(kind, kind_name):
                try:
                    array = self._owner._array(key)
                except NotFoundError:
                    continue
                yield key, array

    # ---- The mapping ---------------------------------------------------------------

    def __getitem__(self, name: str) -> Any:
        key = self._full(name)
        if key == "":
            return self._owner
        try:
            return self._owner._array(key)
        except NotFoundError:
            if not self._owner._has_new_below(key):
                raise KeyError(name) from None
        except UnsupportedError as error:
            if not says_group(error) and not self._owner._has_group(key):
                raise
        return Group(self._owner, key)

    def __setitem__(self, name: str, value: Any) -> None:
        if not isinstance(value, Mapping):
            self.create_array(name, data=value, overwrite=True)
            return
        members = _members_of(value, name)
        for key, member in members:
            if member is None:
                self.require_group(key)
            else:
                self.create_array(key, data=member, overwrite=True)

    def __delitem__(self, name: str) -> None:
        try:
            self._owner._drop(self._full_of_member(name))
        except NotFoundError:
            raise KeyError(name) from None

    def __contains__(self, name: object) -> bool:
        if not isinstance(name, str) or not name:
            return False
        try:
            self[name]
        except (KeyError, UnsupportedError):
            return False
        except CorruptError:
            pass
        return True

    def __iter__(self) -> Iterator[str]:
        skip = len(self._key) + 1
        for key, kind, kind_name, *_ in self._owner._listed(self._key):
            if _is_member(kind, kind_name) and "/" not in key[skip:]:
                yield key[skip:]

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __eq__(self, other: object) -> bool:
        same = isinstance(other, Group)
        return same and (other._owner is self._owner and other._key == self._key)  # type: ignore[attr-defined]

    def __hash__(self) -> int:
        return hash((id(self._owner), self._key))

    def __dask_tokenize__(self) -> Any:
        from ._identity import token_of_group

        return token_of_group(self)

    # ---- New members ---------------------------------------------------------------

    def create_array(
        self,
        name: str,
        shape: Any = None,
        dtype: npt.DTypeLike | None = None,
        *,
        data: Any = None,
        fill_value: Any = None,
        **options: Unpack[_options.Storage],
    ) -> Array:
        """Create an array in the group, and missing groups of its name.

        Parameters
        ----------
        shape, dtype, fill_value, **options
            As in `create`; a dtype of None is that of `data`.
        data
            Items of the array: anything that `asarray` accepts. The array that is overwritten,
            or a view of it, is allowed; it is then read into memory first.

        Returns
        -------
        Array
            Open for writing. Others see it after the tree's next commit.

        Raises
        ------
        FileExistsError
            If the name exists, also as a pending array, and `overwrite` is False; if it is a
            group; or if a part of the name is an array. No pending changes are dropped then,
            nor if another argument is invalid. If reading `data` fails midway, the array to be
            overwritten returns to its last committed state.
        ValueError
            If a part of the name begins with a dot; such names are hidden.

        Examples
        --------
        >>> import caterva
        >>> with caterva.open_tree("made.b2d", "w") as t:
        ...     a = t.create_array("g/x", (2, 3), "i2", dims=("y", "x"))
        ...     a[1] = 7
        >>> caterva.open("made.b2d::/g/x").dims
        ('y', 'x')
        """
        key = self._full_of_member(name)
        if data is None:
            if shape is None:
                raise TypeError("give the shape of the new array, or its data")
            items = float if dtype is None else dtype
            return self._owner._create(key, shape, items, fill_value, {**options})
        return self._owner._create_from(key, data, dtype, fill_value, {**options})

    def create_group(self, name: str) -> Group:
        """Create an empty group and missing parents. Takes effect immediately.

        Examples
        --------
        >>> import caterva
        >>> t = caterva.open_tree("grown.b2d", "w")
        >>> t.create_group("a/b")
        <caterva.Group '/a/b' empty>
        """
        key = self._full_of_member(name)
        self._owner._writing()._create_group(key)
        return Group(self._owner, key)

    def require_group(self, name: str) -> Group:
        """Return the group of that name; create it if it does not exist."""
        try:
            there: Any = self[name]
        except (KeyError, BusyError, CorruptError, UnsupportedError):
            there = None
        return there if isinstance(there, Group) else self.create_group(name)

    def move(self, name: str, to: str) -> None:
        """Rename an array or group. Commits pending changes, then takes effect immediately.

        Closes open arrays that it contains: get them from the tree again. Raises `BusyError`
        if an array has an open job.

        Examples
        --------
        >>> import caterva
        >>> t = caterva.open_tree("moved.b2d", "w")
        >>> t["a"] = [1, 2]
        >>> t.move("a", "g/b")
        >>> list(t["g"])
        ['b']
        """
        try:
            self._owner._rename(self._full_of_member(name), self._full_of_member(to))
        except NotFoundError:
            raise KeyError(name) from None

    # ---- Verification ------------------------------------------------------------------

    def verify(
        self, *, quick: bool = False, threads: int = 0, progress: _options.Listener = None
    ) -> TreeReport:
        """Check everything committed in and below the group, as `Array.verify` does.

        For a tree, this includes its own files; for an archive, the checksums of its members.

        Parameters
        ----------
        quick
            Check the structure only.
        threads
            Maximum number of threads for each array; 0 is all cores.
        progress
            Function ``(done, total)``, called with stored bytes, or ``"tqdm"``.

        Returns
        -------
        TreeReport
            True if nothing is damaged; ``members`` lists the damaged members. Compressed and
            encrypted members of an archive are not damage: ``n_skipped`` counts them.

        Examples
        --------
        >>> import caterva
        >>> with caterva.open_tree("checked.b2d", "w") as t:
        ...     t["g/x"] = [1, 2, 3]
        >>> report = caterva.open_tree("checked.b2d").verify()
        >>> bool(report), report.members
        (True, ())
        """
        report = _options.progress_of(progress)
        handle = self._owner._handle
        return tree_report_of(*handle._verify(self._key or None, quick, threads, report))

    # ---- Attributes and dimensions ----------------------------------------------------

    @property
    def path(self) -> str:
        """The tree's directory or file."""
        return self._owner._handle.path

    @property
    def attrs(self) -> Attributes:
        """User attributes of the group: a mutable mapping, as `Array.attrs`.

        Examples
        --------
        >>> import caterva
        >>> with caterva.open_tree("attributes.b2d", "w") as t:
        ...     t.create_group("model").attrs["source"] = "reanalysis"
        >>> dict(caterva.open("attributes.b2d::/model").attrs)
        {'source': 'reanalysis'}
        """
        return Attributes(self)

    def _attribute_get(self, name: str) -> bytes:
        return self._owner._handle._attribute_get(self.name, name)

    def _attribute_set(self, name: str, value: bytes) -> None:
        self._owner._writing()._attribute_set(self.name, name, value)

    def _attribute_remove(self, name: str) -> None:
        self._owner._writing()._attribute_remove(self.name, name)

    def _attribute_names(self) -> list[str]:
        return self._owner._names_of_attributes(self.name)

    @property
    def dims(self) -> dict[str, int]:
        """Names and lengths of the dimensions of the arrays directly in the group.

        Examples
        --------
        >>> import caterva
        >>> t = caterva.open_tree("named.b2d", "w")
        >>> _ = t.create_array("t2m", (2, 3), dims=("time", "lat"))
        >>> t.dims
        {'time': 2, 'lat': 3}
        """
        found: dict[str, int] = {}
        for name in self:
            member = self[name]
            if isinstance(member, Array):
                for dim, length in zip(member.dims, member.shape, strict=True):
                    if dim is not None:
                        found.setdefault(dim, length)
        return found

    def __repr__(self) -> str:
        return f"<caterva.{type(self).__name__} {self.name!r} {self._counts()}>"

    def _counts(self) -> str:
        members = [kind for _, kind, *_ in self._owner._listed(self._key)]
        counts = (("array", members.count(0)), ("group", members.count(1)))
        texts = [f"{n} {what}{'s' * (n > 1)}" for what, n in counts if n]
        return ", ".join(texts) or "empty"

    def _repr_html_(self) -> str:
        from ._html import html_of_group

        return html_of_group(self)

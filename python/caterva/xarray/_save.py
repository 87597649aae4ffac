# mypy: allow-untyped-calls
"""Saving data sets to trees, completely or not at all."""

from __future__ import annotations

import contextlib
import errno
import importlib
import os
from collections.abc import Hashable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import xarray as xr

from .._errors import Status, refusal
from .._group import Group
from .._options import Durability, Path, number_of
from .._places import place_of_tree, state_of_tree
from .._sources import refuse_write
from .._tree import Tree
from .._trees import open_tree
from ._lock import saving
from ._region import region_of, without_others
from ._replace import beside, holds, replaced, sync_folder, written
from ._store import sizes_of
from ._write import Pending, Writer, Writing

if TYPE_CHECKING:
    from dask.delayed import Delayed

try:
    _writers = importlib.import_module("xarray.backends.writers")
except ImportError:  # xarray of 2025
    _writers = importlib.import_module("xarray.backends.api")

Mode: TypeAlias = Literal["w", "w-", "x", "a", "a-", "r+"]
Encoding: TypeAlias = Mapping[Hashable, Mapping[str, Any]]
_MODES = ("w", "w-", "x", "a", "a-", "r+")


# ---- The target -------------------------------------------------------------------------


def _publish(inner: str, place: str, durability: Durability) -> None:
    """Rename a directory to its place; `ExistsError` if something has been created there."""
    taken = refusal(Status.EEXIST, f"{place} was created by another process meanwhile", place)
    if os.path.lexists(place):  # an empty directory would be replaced
        raise taken
    try:
        os.rename(inner, place)
    except OSError as error:
        if error.errno not in (errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR):
            raise
        raise taken from None
    sync_folder(os.path.dirname(place), durability)


@contextlib.contextmanager
def _new_directory(place: str, durability: Durability) -> Iterator[Tree]:
    with beside(place) as hidden:
        inner = os.path.join(hidden, "tree.b2d")
        with written(inner, "x", durability) as tree:
            yield tree
        _publish(inner, place, durability)


@contextlib.contextmanager
def _archive(
    place: str, there: bool, keep: bool, gone: str, durability: Durability
) -> Iterator[Tree]:
    """Open a directory for writing, with the contents of the archive except what is replaced,
    and pack it into the archive at the end. `BusyError` if the archive has been replaced since
    the beginning."""
    with beside(place) as hidden:
        inner = os.path.join(hidden, "tree.b2d")
        before = state_of_tree(place) if keep else None
        if keep:
            with open_tree(place) as old:
                old.unpack(inner)
        with written(inner, "a", "none") as tree:
            if keep and gone and holds(tree, gone):
                del tree[gone]
            yield tree
        if keep and state_of_tree(place) != before:
            message = f"{place} was replaced by another process meanwhile"
            raise refusal(Status.EBUSY, message, place)
        with open_tree(inner, durability=durability) as tree:
            tree.pack(place, overwrite=there)


def _refuse_to_replace(place: str, key: str) -> None:
    with contextlib.ExitStack() as opened:
        if not key or holds(opened.enter_context(open_tree(place)), key):
            whole = f"{place}{'::' * bool(key)}{key}"
            message = f"{whole} exists already: mode 'w' replaces it, 'a' adds to it"
            raise refusal(Status.EEXIST, message, whole)


def _check_target(place: str, mode: str, key: str) -> bool:
    """Check the target against the mode; return whether it exists."""
    there = os.path.lexists(place)
    if mode in ("w-", "x") and there:
        _refuse_to_replace(place, key)
    if mode == "r+" and not there:
        raise refusal(Status.ENOTFOUND, f"{place} does not exist", place)
    if not there and not place.endswith((".b2z", ".b2d")):
        raise ValueError(f"a data set goes to a .b2d or .b2z, not to {place}")
    return there


def _writable(
    place: str, there: bool, replaces: bool, key: str, durability: Durability
) -> contextlib.AbstractContextManager[Tree]:
    if place.endswith(".b2z"):
        keep = there and bool(key or not replaces)
        return _archive(place, there, keep, key if replaces else "", durability)
    if not there:
        return _new_directory(place, durability)
    if replaces:
        return replaced(place, key, durability)
    return written(place, "r+", durability)


@contextlib.contextmanager
def _target(path: Path, mode: str, key: str, durability: Durability) -> Iterator[Tree]:
    """Open the tree for writing. At the end of the block all changes are there, or none.

    Does not use ExitStack: its frame and the exception that leaves it refer to each other, and
    would keep objects of the block alive until the next garbage collection.
    """
    place = place_of_tree(path)
    refuse_write(place, mode)
    there = _check_target(place, mode, key)
    replaces = mode in ("w", "w-", "x")
    alone = place.endswith(".b2z") or not there or replaces
    with saving(place) if alone else contextlib.nullcontext():
        if alone:
            there = _check_target(place, mode, key)  # it may have changed before the lock
        with _writable(place, there, replaces, key, durability) as tree:
            yield tree


# ---- Writing ----------------------------------------------------------------------------


def _key_of(path: str | None) -> str:
    parts = [part for part in (path or "").split("/") if part]
    for part in parts:
        if part.startswith("."):
            raise ValueError(f"group {path!r} has a name that begins with a dot: it is hidden")
    return "".join(f"/{part}" for part in parts)


def _write(
    ds: xr.Dataset,
    group: Group,
    mode: str,
    writer: Writer,
    encoding: Encoding | None,
    unlimited_dims: Any,
    append_dim: Hashable | None,
    region: Any,
    place: str,
) -> None:
    _writers._validate_dataset_names(ds)
    for variable in ds.variables.values():
        if variable.size == 0:
            variable.load()
    unlimited = _writers._sanitize_unlimited_dims(ds, unlimited_dims)
    kind = {"w-": "w", "x": "w", "a-": "a"}.get(mode, mode)
    if region is not None:
        region = region_of(ds, region, Writing(group))
        ds = without_others(ds, region)
    store = Writing(group, kind, append_dim, region, place)
    there = set() if kind == "w" else set(store._members())
    if mode == "a-" and append_dim is not None:
        others = [k for k, v in ds.variables.items() if append_dim not in v.dims]
        ds = ds.drop_vars([name for name in others if name in there])
    given = dict(encoding or {})
    if append_dim is not None or region is not None:
        _refuse_encoding(there, given)
    _writers.dump_to_store(ds, store, writer, encoding=given, unlimited_dims=unlimited)


def _refuse_encoding(there: set[str], given: Mapping[Any, Any]) -> None:
    for name in there & set(given):
        raise ValueError(f"variable {name!r} exists already, but encoding was given")


def _check_others(tree: Tree, keys: list[str], append_dim: Hashable | None, place: str) -> None:
    """Refuse an append that makes a dimension longer in some groups than in groups above or
    below them, with which they form one ``DataTree``."""
    if append_dim is None:
        return
    dim = str(append_dim)
    with open_tree(tree.path) as before:
        groups = ["", *(e.key for e in before.entries() if e.kind == "group")]
        for key in set(groups) & set(keys):
            n = sizes_of(Group(before, key)).get(dim)
            grows = n is not None and sizes_of(Group(tree, key))[dim] != n
            for other in set(groups) - set(keys) if grows else ():
                related = key.startswith(f"{other}/") or other.startswith(f"{key}/")
                if related and sizes_of(Group(before, other)).get(dim) == n:
                    raise ValueError(
                        f"group {other or '/'!r} of {place} has the dimension {append_dim!r}, "
                        f"which would grow in {key or '/'!r} alone: append a DataTree with both"
                    )


def to_caterva(
    ds: xr.Dataset | xr.DataTree,
    path: Path,
    mode: Mode | None = None,
    *,
    group: str | None = None,
    encoding: Mapping[Any, Any] | None = None,
    unlimited_dims: Any = None,
    append_dim: Hashable | None = None,
    region: Mapping[Hashable, Any] | Literal["auto"] | None = None,
    durability: Durability = "full",
    compute: bool = True,
) -> Delayed | None:
    """Save a data set as a tree, completely or not at all.

    Parameters
    ----------
    ds
        A Dataset, or a DataTree, of which each node is saved to the group of its path.
    path
        A file (``.b2z``), which is written anew and replaced when it is complete, or a
        directory (``.b2d``), which changes in place and is better for data that grow.
    mode
        ``"w"`` replaces what exists: the whole tree, or the array or group at `group` with all
        its members. ``"w-"`` (or ``"x"``) refuses to replace anything. ``"a"`` adds variables,
        or replaces those of the same name. ``"a-"`` with `append_dim` also leaves variables
        without that dimension unchanged. ``"r+"`` writes to existing variables only. In
        ``"a"`` and ``"r+"`` dimensions keep their lengths, except `append_dim`. Default:
        ``"w"``; with `append_dim` ``"a"``; with `region` ``"r+"``.
    group
        Path of the group in the tree.
    encoding
        For a variable, a dict of xarray's encoding (``dtype``, ``_FillValue``, ``units``,
        ``scale_factor`` and so on) and of options of `caterva.create`: ``chunks``, ``blocks``,
        ``codec``, ``level``, ``filters``. For a DataTree, a dict of such dicts for each path.
    unlimited_dims
        Dimensions that will grow; chunks are chosen for their later lengths.
    append_dim
        The dimension along which existing variables grow. The new items are encoded as the
        existing ones. Raises ValueError, and changes nothing, if items would not be read back
        as given (times between whole numbers of their units, integers out of range, the stored
        fill value, items of another kind), or if a stored variable with that dimension, or a
        group above or below with the same length of it, is not part of the append. Items of
        Dask arrays are checked when they are computed.
    region
        A slice for each dimension, or ``"auto"`` to find it by the coordinate's values: the
        part of the variables to write. Index coordinates are not written.
    durability
        As in `caterva.open`.
    compute
        False: commit everything except the items of Dask arrays, which read as the fill value,
        and return a ``dask.delayed.Delayed`` that computes, writes and commits them. Texts of
        any length are computed and committed immediately.

    Examples
    --------
    >>> import numpy as np, xarray as xr, caterva.xarray
    >>> day = lambda n: xr.Dataset({"t": ("time", [n, n + 0.5])}, {"time": [2 * n, 2 * n + 1]})
    >>> day(0).to_caterva("days.b2d", unlimited_dims="time")
    >>> day(1).to_caterva("days.b2d", append_dim="time")
    >>> xr.open_dataset("days.b2d")["t"].sel(time=3).item()
    1.5
    """
    if mode is None:
        mode = "a" if append_dim is not None else "r+" if region is not None else "w"
    _check_order(mode, append_dim, region)
    nodes = _nodes(ds, group, encoding, unlimited_dims)
    keys = [_key_of(place) for _, place, _, _ in nodes]
    writer, place = Writer(), place_of_tree(path)
    with _target(place, mode, _key_of(group), durability) as tree:
        for key, (data, _, words, unlimited) in zip(keys, nodes, strict=True):
            target = Group(tree, key)
            _write(data, target, mode, writer, words, unlimited, append_dim, region, place)
        _check_others(tree, keys, append_dim, place)
        later = [] if compute else writer.take()
        writer.sync()
        for key in keys:  # only now: new groups without arrays take effect immediately
            tree.require_group(key or "/")
        tree.commit()
    return None if compute else _delayed(_Later(path, later, durability))


class _Later:
    """Computes and writes the items of Dask arrays to a tree that has their arrays.

    A class of its own, into which Dask does not look: the blocks are computed while they are
    written, not before.
    """

    def __init__(self, path: Path, pending: list[Pending], durability: Durability) -> None:
        self._path = os.path.abspath(place_of_tree(path))
        self._pending = pending
        self._durability = durability

    def __call__(self) -> None:
        if not self._pending:
            return
        writer = Writer()
        with _target(self._path, "r+", "", self._durability) as tree:
            for pending in self._pending:
                pending.add_to(writer, tree)
            writer.sync()
            tree.commit()


def _delayed(call: _Later) -> Delayed:
    from dask.delayed import delayed

    return delayed(call, pure=False)()  # type: ignore[no-any-return]


def _check_order(mode: str, append_dim: Any, region: Any) -> None:
    number_of(mode, _MODES, "mode")
    if append_dim is not None and mode not in ("a", "a-"):
        raise ValueError(f"append_dim goes with mode 'a' or 'a-', not {mode!r}")
    if region is not None and mode not in ("r+", "a"):
        raise ValueError(f"region goes with mode 'r+' or 'a', not {mode!r}")
    if region is not None and append_dim is not None:
        raise ValueError("append_dim and region cannot go together")


_Node: TypeAlias = tuple[xr.Dataset, str | None, Encoding | None, Any]


def _nodes(ds: Any, group: str | None, encoding: Any, unlimited: Any) -> list[_Node]:
    """Return the data sets and the groups to which they are saved."""
    if isinstance(ds, xr.Dataset):
        return [(ds, group, encoding, unlimited)]
    if not isinstance(ds, xr.DataTree):
        raise TypeError(f"ds is a Dataset or DataTree, not a {type(ds).__name__}")
    encoding, unlimited = encoding or {}, unlimited or {}
    if unknown := set(encoding) - set(ds.groups):
        raise ValueError(f"unexpected encoding group name(s) provided: {unknown}")
    return [
        (
            node.to_dataset(inherit=node is ds),
            f"{group or ''}/{path if path != '.' else ''}",
            encoding.get(node.path),
            unlimited.get(node.path),
        )
        for path, node in ds.subtree_with_keys
    ]

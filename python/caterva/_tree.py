"""Several arrays in one place: a tree that holds them."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Literal, NoReturn, Self, TypeAlias

import numpy as np

from . import _caterva, _dtypes, _options
from ._array import Array
from ._errors import BusyError, NotFoundError, ReadOnlyError, StaleError
from ._filling import fill, is_array, named, new_words, sized
from ._group import Group
from ._options import Path
from ._places import place_of_tree, state_of_tree
from ._remote import Remote, as_remote, remote_of
from ._sources import refuse_tree
from ._view import View

Mode: TypeAlias = Literal["r", "r+", "a", "w", "x"]

_MOST_KEPT = 32  # arrays of a tree that is read: each has a file


class Tree(Group):
    """Several arrays in groups, in a directory (``.b2d``) or one file (``.b2z``).

    Made by `open_tree`, and by `open` of such a path. A directory can be changed; an archive
    is read in place and never changes: `pack` makes one of a directory.

    What is written to arrays of the tree is pending until `commit` or `close`, and then all
    of it is there. As a context manager the tree is closed at the end of the block:
    committed, or, at an exception, with what was pending dropped. New groups, names that
    are moved and what is deleted take effect at once.

    Examples
    --------
    >>> import caterva
    >>> with caterva.open_tree("weather.b2d", "w") as t:
    ...     t["time"] = [0, 6, 12]
    ...     t["model/t2m"] = [271.5, 272.0, 274.5]
    >>> t = caterva.open_tree("weather.b2d")
    >>> t["model/t2m"][-1], "model" in t, len(t)
    (np.float64(274.5), True, 2)
    """

    __slots__ = (
        "_arrays",
        "_handle",
        "_lock",
        "_new",
        "_options",
        "_process",
        "_remote",
        "__weakref__",
    )

    def __init__(
        self,
        handle: _caterva.Tree,
        options: dict[str, Any],
        remote: Remote | None = None,
    ) -> None:
        super().__init__(self, "")
        self._handle = handle
        self._remote = remote
        self._options = options  # of the arrays that it opens
        self._arrays: dict[str, Array] = {}
        self._lock = threading.RLock()
        self._process = os.getpid()  # whose the tree is when it is written
        self._new: set[str] = set()  # arrays that were never committed

    # ---- Life ---------------------------------------------------------------------

    @property
    def path(self) -> str:
        """The directory or file."""
        return self._handle.path

    @property
    def closed(self) -> bool:
        """True once `close` was called."""
        return self._handle.closed

    @property
    def writable(self) -> bool:
        """True if it was opened for writing."""
        return self._handle.writable

    def commit(self) -> None:
        """Make all that is pending in the tree durable and visible to others, as one.

        That is what was written to its arrays and to attributes of its groups: whatever
        happens, all of it is there afterwards or nothing.

        Examples
        --------
        >>> import caterva
        >>> t = caterva.open_tree("kept.b2d", "w")
        >>> t["x"] = [1, 2, 3]
        >>> t.commit()
        >>> caterva.open("kept.b2d::/x")[:]
        array([1, 2, 3])
        """
        self._writing()
        with self._lock:
            self._handle._commit(self._written())
            self._new.clear()

    def rollback(self) -> None:
        """Drop what is pending in the tree; new arrays are gone.

        Examples
        --------
        >>> import caterva
        >>> t = caterva.open_tree("rolled.b2d", "w")
        >>> t["x"] = [1, 2, 3]
        >>> t.commit()
        >>> t["x"][:] = 0
        >>> t.rollback()
        >>> t["x"][:]
        array([1, 2, 3])
        """
        self._writing()
        with self._lock:
            for key in tuple(self._new):
                self._forget(key)
            self._handle._rollback(self._written())

    def close(self) -> None:
        """Commit what is pending and release the tree and, when it is written, its arrays.

        Arrays that are read stay open as long as they are used. Closing twice is fine. A child
        of fork commits nothing: what is pending is its parent's.
        """
        if self._is_parents():
            self._leave()
            return
        with self._lock:
            if not self.closed:
                self._close(commit=True)

    def discard(self) -> None:
        """Drop what is pending and release the tree, as `close` does."""
        if self._is_parents():
            self._leave()
            return
        with self._lock:
            if not self.closed:
                self._close(commit=False)

    def _is_parents(self) -> bool:
        """Whether this is a child of fork and the tree is open for writing in its parent."""
        return self._process != os.getpid() and self.writable

    def _leave(self) -> None:
        """Release what is the parent's, whose threads may have had the lock at the fork."""
        for array in self._open_arrays():
            array._close(False)
        self._arrays.clear()
        self._handle._close()

    def _close(self, commit: bool) -> None:
        try:
            if self.writable:
                if commit:
                    self.commit()
                else:
                    self.rollback()
                self._let_go(commit)
        finally:
            self._arrays.clear()
            self._handle._close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if kind is None:
            self.close()
        else:
            self.discard()

    def __reduce__(self) -> tuple[Any, ...]:
        if self.closed:
            raise ValueError("the tree is closed")
        if self.writable:
            raise TypeError(
                f"{self.path} is open for writing: only trees that are read can be pickled; "
                "close it, or pass its path"
            )
        state = state_of_tree(self.path)
        return from_pickle, (self.path, state, self._options, self._remote)

    def __repr__(self) -> str:
        if self.closed:
            return f"<caterva.Tree {self.path!r}, closed>"
        mode = "r+" if self.writable else "r"
        return f"<caterva.Tree {self.path!r} {self._counts()} mode={mode!r}>"

    # ---- The whole ------------------------------------------------------------------

    def pack(
        self,
        path: Path,
        *,
        overwrite: bool = False,
        progress: _options.Progress | Literal["tqdm"] | None = None,
    ) -> None:
        """Write the tree as one file, ``.b2z``, which appears whole.

        What is pending is committed before. Arrays that are open for writing are closed: get
        them from the tree again.

        Examples
        --------
        >>> import caterva
        >>> with caterva.open_tree("work.b2d", "w") as t:
        ...     t["x"] = [1, 2, 3]
        ...     t.pack("published.b2z", overwrite=True)
        >>> caterva.open("published.b2z::/x")[:]
        array([1, 2, 3])
        """
        self._settle()
        heard = _options.progress_of(progress)
        self._handle._pack(place_of_tree(path), int(overwrite), self._durability(), heard)

    def unpack(
        self, path: Path, *, progress: _options.Progress | Literal["tqdm"] | None = None
    ) -> None:
        """Write the tree as a directory, ``.b2d``, where nothing may be; as `pack` does."""
        self._settle()
        heard = _options.progress_of(progress)
        self._handle._unpack(place_of_tree(path), 0, self._durability(), heard)

    def _durability(self) -> int:
        durability: int = self._options["durability"]
        return durability

    def _settle(self) -> None:
        if self.writable:
            self._writing()
            with self._lock:
                self.commit()
                self._let_go(commit=True)

    # ---- What groups ask for -----------------------------------------------------------

    def _writing(self) -> _caterva.Tree:
        """The handle, which is to be changed."""
        if self._is_parents() and not self.closed:
            raise BusyError(
                f"{self.path} is open for writing in the process that forked this one"
            )
        if self.writable or self.closed:
            return self._handle
        self._refuse()

    def _refuse(self) -> NoReturn:
        if os.path.isdir(self.path):
            raise ReadOnlyError(f'{self.path} is open for reading: open it with mode "r+"')
        raise ReadOnlyError(
            f"{self.path} is an archive, which never changes: unpack it to a .b2d, change "
            "that, and pack it"
        )

    def _open_arrays(self) -> list[Array]:
        return [array for array in self._arrays.values() if not array.closed]

    def _written(self) -> tuple[Array, ...]:
        return tuple(array for array in self._open_arrays() if array.writable)

    def _let_go(self, commit: bool) -> None:
        """Close the arrays that are open for writing."""
        for array in self._open_arrays():
            array._close(commit and array.writable)
        self._arrays.clear()
        self._new.clear()

    def _is_new(self, key: str) -> bool:
        """Whether it is an array that was never committed, nor closed or discarded."""
        array = self._arrays.get(key)
        return key in self._new and array is not None and not array.closed

    def _new_below(self, key: str) -> list[str]:
        """The new arrays in the group and below it."""
        return [k for k in tuple(self._new) if k.startswith(key + "/") and self._is_new(k)]

    def _listed(self, key: str) -> list[tuple[Any, ...]]:
        """The entries of a group and below it, new arrays among them."""
        new = self._new_below(key)
        if not new:
            return list(self._handle._list(key or None))
        found: dict[str, tuple[Any, ...]] = {}
        for name in new:
            found[name] = (name, 0, "array", False, False, 0, None)
            while (name := name.rpartition("/")[0]) and name != key:
                found[name] = (name, 1, "group", False, False, 0, None)
        with contextlib.suppress(NotFoundError):
            found |= {entry[0]: entry for entry in self._handle._list(key or None)}
        return sorted(found.values(), key=lambda entry: entry[0].split("/"))

    def _has_group(self, key: str) -> bool:
        if self._new_below(key):
            return True
        try:
            self._handle._list(key)
        except NotFoundError:
            return False
        return True

    def _names_of_attributes(self, group: str) -> list[str]:
        try:
            return self._handle._attribute_list(group)
        except NotFoundError:  # of new arrays
            return []

    def _array(self, key: str) -> Array:
        """The array of that key: the same object when it is asked for again soon, and of
        trees that are written as long as it is open."""
        array = self._arrays.get(key)
        if array is not None and not array.closed:
            return array
        with self._lock:
            array = self._arrays.get(key)
            if array is None or array.closed:
                if not self.writable and len(self._arrays) >= _MOST_KEPT:
                    del self._arrays[next(iter(self._arrays))]
                array = self._arrays[key] = self._open(key)
            return array

    def _open(self, key: str) -> Array:
        words = dict(self._options)
        if self.writable and not self._is_parents():
            try:
                return self._handle._open_array(Array, key, words | {"mode": 1}, None)
            except ReadOnlyError:
                pass  # it lies where nothing can be written
        return self._handle._open_array(Array, key, words, None)

    def _create(
        self,
        key: str,
        shape: Any,
        dtype: Any,
        fill_value: Any,
        options: dict[str, Any],
        like: Any = None,
    ) -> Array:
        words, progress, dims = new_words(shape, dtype, fill_value, self._inherited(options))
        handle = self._writing()
        with self._lock:
            if words["overwrite"]:
                self._make_way(key, words, dims, like)
            array = named(handle._create_array(Array, key, words, progress), dims)
            self._arrays[key] = array
            self._new.add(key)
            return array

    def _make_way(self, key: str, words: dict[str, Any], dims: Any, like: Any) -> None:
        """Drop the array that is open for writing at the key, which keeps others out: when
        all that can be refused in the new one, and in the items `like`, was tried."""
        old = self._arrays.get(key)
        if old is None or old.closed or not old.writable:
            return
        if not self._is_new(key) and not os.path.lexists(f"{self.path}{key}.b2nd"):
            return  # it is refused: no other file is replaced
        trial = named(_caterva.create(Array, _options.MEMORY, words, None), dims)
        try:
            if like is not None and trial.size:
                first = (slice(0, 1),) * trial.ndim
                trial[first] = like[first]
        finally:
            trial.discard()
        self._forget(key)

    def _inherited(self, options: dict[str, Any]) -> dict[str, Any]:
        """Options of a new array: those of the tree's handle where nothing else is said."""
        own: dict[str, Any] = {
            name: self._options[name]
            for name in ("threads", "dirty_budget", "cache_bytes", "compact_percent")
            if name in self._options
        }
        own["durability"] = _options.DURABILITIES[self._durability()]
        return own | options

    def _create_from(
        self, key: str, data: Any, dtype: Any, fill_value: Any, options: dict[str, Any]
    ) -> Array:
        source = data if is_array(data) else sized(data, dtype)
        attributes: dict[str, bytes] = {}
        if isinstance(data, Array | View):
            options = _as_stored(data, options)
        if isinstance(data, Array):
            attributes = {name: data.attrs.raw(name) for name in data.attrs}
        items = source.dtype if dtype is None else _dtypes.sized(dtype, source.dtype)
        if self._reads(data, key):
            source = source[...]  # what it is made of goes before it is there
        like = source if isinstance(source, np.ndarray) else None
        array = self._create(key, source.shape, items, fill_value, options, like)
        try:
            fill(array, source)
            for name, value in attributes.items():
                array.attrs.set_raw(name, value)
        except BaseException:
            self._forget(key)
            raise
        return array

    def _reads(self, data: Any, key: str) -> bool:
        """Whether the data are those of the array that is open at the key."""
        old = self._arrays.get(key)
        below = data._arrays if isinstance(data, View) else (data,)
        return old is not None and any(array is old for array in below)

    def _forget(self, key: str) -> None:
        """Drop what is pending in the arrays of a key, and below it."""
        for other in [k for k in self._arrays if k == key or k.startswith(key + "/")]:
            self._arrays.pop(other).discard()
            self._new.discard(other)

    def _drop(self, key: str) -> None:
        handle = self._writing()
        with self._lock:
            new = self._is_new(key) or bool(self._new_below(key))
            self._forget(key)
            try:
                handle._remove(key)
            except NotFoundError:
                if not new:
                    raise

    def _rename(self, key: str, to: str) -> None:
        handle = self._writing()
        with self._lock:
            self._settle()
            handle._move(key, to)


def _as_stored(data: Array | View, options: dict[str, Any]) -> dict[str, Any]:
    """Options of an array that is made of another: its chunks and names of dimensions."""
    if isinstance(data, Array):
        like = {"chunks": data.chunks, "blocks": data.blocks}
        if not like.keys() & options.keys():
            options = like | options
    return options


# ---- Trees by their path -------------------------------------------------------------------


def from_pickle(
    path: str, state: Any, options: dict[str, Any], remote: Remote | None = None
) -> Tree:
    """What the pickle of a tree calls; another archive of that name is refused."""
    if state is not None and state_of_tree(path) != tuple(state):
        raise StaleError(f"{path} was changed since the tree was pickled")
    return _opened(path, False, options, remote)


def _opened(path: str, writing: bool, options: dict[str, Any], remote: Remote | None) -> Tree:
    native = remote_of(remote)
    handle = _caterva.tree_open(path, writing, options["durability"], native)
    return Tree(handle, options, remote)


def open_tree(
    path: Path,
    mode: Mode = "r",
    *,
    remote: Remote | Mapping[str, Any] | None = None,
    **options: Any,
) -> Tree:
    """Open the tree at `path`, or make it.

    Parameters
    ----------
    path
        A directory (``.b2d``), or to be read an archive (``.b2z``) or a file with all leaves
        inside it (``.b2e``); these also behind ``http://``, ``https://`` and ``s3://``.
    mode
        ``"r"`` to read, ``"r+"`` to read and write what is there, ``"a"`` the same but made
        when there is nothing, ``"w"`` emptied first, ``"x"`` made where nothing may be.
    remote
        How URLs are read: a `Remote`, or a dict of its words.
    **options
        Those of `open`, for the arrays that the tree opens: ``threads``, ``durability``,
        ``cache_bytes`` and so on.

    Returns
    -------
    Tree

    Raises
    ------
    FileNotFoundError
        When there is nothing.
    NotImplementedError
        When it is no tree.
    BlockingIOError
        When somebody else has it open for writing, too.

    Examples
    --------
    >>> import caterva
    >>> with caterva.open_tree("opened.b2d", "w") as t:
    ...     t["g/x"] = [1, 2, 3]
    >>> caterva.open_tree("opened.b2d")["g/x"][1:]
    array([2, 3])
    """
    if mode not in ("r", "r+", "a", "w", "x"):
        raise ValueError(f"mode is one of r, r+, a, w, x, not {mode!r}")
    place = place_of_tree(path)
    refuse_tree(place)
    words = _options.open_options(False, options)
    there = os.path.lexists(place)
    if mode == "x" or (mode in ("a", "w") and not there):
        _refuse_archive(place)
        return Tree(_caterva.tree_create(place, words["durability"]), words)
    tree = _opened(place, mode != "r", words, as_remote(remote))
    if mode == "w":
        with contextlib.ExitStack() as failing:
            failing.callback(tree.discard)
            _empty(tree)
            failing.pop_all()
    return tree


def _refuse_archive(place: str) -> None:
    if place.endswith(".b2z"):
        raise ReadOnlyError(
            f"{place} is to be an archive, which never changes: make a .b2d and pack it"
        )


def _empty(tree: Tree) -> None:
    for name in [e.key for e in tree.entries() if e.key.count("/") == 1]:
        del tree[name]

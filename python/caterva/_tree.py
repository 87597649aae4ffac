"""The class Tree: several arrays in groups, in one directory or file."""

from __future__ import annotations

import contextlib
import os
from types import TracebackType
from typing import Any, NoReturn, Self

import numpy as np

from . import _caterva, _dtypes, _options
from ._array import Array
from ._copies import named
from ._errors import BusyError, Error, NotFoundError, ReadOnlyError, Status, refusal
from ._filling import as_stored, fill, is_array, new_words, sized
from ._group import Group, entries_of_new
from ._info import TreeRepair, tree_repair_of
from ._locks import Lock
from ._opened import Opened
from ._options import Path
from ._places import place_of_tree
from ._remote import Remote
from ._shown import shown


class Tree(Group):
    """Arrays in groups, in a directory (``.b2d``) or one file (``.b2z``).

    Opened by `open_tree`, or by `open` with the path of a tree. A directory can be changed. An
    archive (``.b2z``) is read in place and never changes: `pack` makes one from a directory.

    Writes to arrays of the tree are pending until `commit` or `close`, which make all of them
    visible at once. New groups, moves and deletions take effect immediately. A ``with`` block
    closes the tree at its end, and discards it if the block raises.

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
        "_expected",
        "_handle",
        "_lock",
        "_opened",
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
        self._key = ""
        self._handle = handle
        self._remote = remote
        self._options = options  # for the arrays that it opens
        self._opened = Opened()
        self._expected: dict[str, bytes] = {}  # states of arrays when the tree was pickled
        self._lock = Lock()
        self._process = os.getpid()  # a tree that is open for writing belongs to this process

    @property
    def _owner(self) -> Tree:  # an attribute would keep a dropped tree, and its lock, alive
        return self

    # ---- Life ---------------------------------------------------------------------

    @property
    def path(self) -> str:
        """The tree's directory or file."""
        return self._handle.path

    @property
    def closed(self) -> bool:
        """True after `close` or `discard`."""
        return self._handle.closed

    @property
    def writable(self) -> bool:
        """True if the tree was opened for writing."""
        return self._handle.writable

    @property
    def progress(self) -> _options.Progress | None:
        """Function ``(done, total)``, called with bytes during long calls of the tree, or None.
        Returning a true value stops the call.

        A file that is listed, moved or deleted counts 4 KiB, as does each array and group of a
        commit; large attributes of groups count their size. A commit also counts the bytes of
        the items that it encodes. Other calls on arrays do not count: arrays have a
        ``progress`` of their own. `pack`, `unpack`, `verify` and `repair` call only their
        ``progress`` argument. A deletion that is stopped has deleted nothing, or the whole
        group; files that are left then are deleted by the next deletion or opening for writing.

        Examples
        --------
        >>> import caterva
        >>> t = caterva.open_tree("reported.b2d", "w")
        >>> t["g/x"] = [1, 2, 3]
        >>> t.progress = lambda done, total: None
        >>> del t["g"]
        >>> list(t)
        []
        """
        return self._handle.progress

    @progress.setter
    def progress(self, value: _options.Listener) -> None:
        self._handle.progress = _options.progress_of(value)

    def commit(self) -> None:
        """Make all pending changes of the tree durable and visible to others, in one commit.

        These are writes to its arrays and to attributes of its groups. The commit is atomic:
        after a crash all of them are there, or none.

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
            self._handle._commit(self._opened.written())
            self._opened.committed()

    def rollback(self) -> None:
        """Drop pending changes of the tree, including new arrays.

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
            self._opened.drop_new()
            self._handle._rollback(self._opened.written())

    def close(self) -> None:
        """Commit pending changes and release the tree. Closing twice is allowed.

        If the tree is open for writing, this also closes its arrays; arrays of a tree that is
        only read stay open. If the commit fails or is stopped, the tree stays open with its
        pending changes: close it again, or `discard` it. In a forked child nothing is
        committed: the pending changes belong to the parent.
        """
        if self._is_parents():
            self._leave()
            return
        with self._lock:
            if not self.closed:
                self._close()

    def discard(self) -> None:
        """Drop pending changes and release the tree; if it is writable, also its arrays."""
        if self._is_parents():
            self._leave()
            return
        with self._lock:
            if not self.closed:
                self._discard()

    def _is_parents(self) -> bool:
        """Whether this is a forked child and the tree is open for writing in the parent."""
        return self._process != os.getpid() and self.writable

    def _leave(self) -> None:
        """Release the parent's tree, without the lock, which its threads may have held."""
        self._opened.close(commit=False)
        self._handle._close()

    def _close(self) -> None:
        if self.writable:
            self.commit()
            self._opened.close(commit=True)
        self._opened.forget()
        self._handle._close()

    def _discard(self) -> None:
        if self.writable:
            with contextlib.suppress(Error):  # a commit is unfinished: nothing is pending
                self.rollback()
            self._opened.close(commit=False)
        self._opened.forget()
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
        from ._identity import pickle_of_tree

        return pickle_of_tree(self)

    def __repr__(self) -> str:
        if self.closed:
            return f"<caterva.Tree {shown(self.path)!r}, closed>"
        mode = "r+" if self.writable else "r"
        return f"<caterva.Tree {shown(self.path)!r} {self._counts()} mode={mode!r}>"

    # ---- The whole tree -------------------------------------------------------------

    def pack(
        self,
        path: Path,
        *,
        overwrite: bool = False,
        zarr: bool = False,
        progress: _options.Listener = None,
    ) -> None:
        """Write the tree as one file (``.b2z``), which appears when it is complete.

        Commits pending changes first. Closes arrays that are open for writing: get them from
        the tree again.

        With ``zarr=True`` it becomes a directory of Zarr v3 groups instead, which `open_tree`
        opens for reading, and whose arrays `open` opens at their paths, such as
        ``"t.zarr/group/name"``.

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
        report = _options.progress_of(progress)
        place = place_of_tree(path)
        self._handle._pack(place, int(overwrite), int(zarr), self._durability(), report)

    def unpack(self, path: Path, *, progress: _options.Listener = None) -> None:
        """Write the tree as a new directory (``.b2d``); otherwise as `pack`."""
        self._settle()
        report = _options.progress_of(progress)
        self._handle._unpack(place_of_tree(path), 0, 0, self._durability(), report)

    def _durability(self) -> int:
        durability: int = self._options["durability"]
        return durability

    def _settle(self) -> None:
        if self.writable:
            self._writing()
            with self._lock:
                self.commit()
                self._opened.close(commit=True)

    @staticmethod
    def repair(
        path: Path,
        output: Path | None = None,
        *,
        overwrite: bool = False,
        guess: bool = False,
        threads: int = 0,
        durability: _options.Durability = "full",
        progress: _options.Listener = None,
    ) -> TreeRepair:
        """Repair the tree at `path`, which is damaged or cannot be opened.

        First completes an unfinished commit. Then repairs each array as `caterva.repair` does;
        items of lost chunks get the array's fill value.

        Parameters
        ----------
        output
            Where to write a new tree, which appears when it is complete: an archive if the name
            ends in ``.b2z``, else a directory. None repairs a directory in place: an array that
            has lost something stays as it is, and what can be read is written beside it.
        overwrite
            Replace an archive at the output, and what earlier repairs have written beside
            arrays.
        guess
            If an array has no index at all, number its chunks in file order.

        Returns
        -------
        TreeRepair
            True if nothing is lost; ``members`` lists the members that were not sound.

        Raises
        ------
        NotImplementedError
            If it is not a tree.
        CorruptError
            If no member is found.
        ValueError
            If it is an archive and `output` is None.
        FileExistsError
            If something exists at the output, or an earlier repair has written beside an array.
        BlockingIOError
            If another handle or process has it open for writing.

        Examples
        --------
        >>> import caterva, os
        >>> with caterva.open_tree("broken.b2d", "w") as t:
        ...     t["g/x"] = [1, 2, 3]
        >>> os.remove("broken.b2d/embed.b2e")
        >>> report = caterva.Tree.repair("broken.b2d")
        >>> report.complete, [(m.key, m.outcome) for m in report.members]
        (True, [('/', 'whole')])
        """
        found = _caterva.tree_repair(
            place_of_tree(path),
            None if output is None else place_of_tree(output),
            overwrite,
            guess,
            threads,
            _options.number_of(durability, _options.DURABILITIES, "durability"),
            _options.progress_of(progress),
        )
        return tree_repair_of(*found)

    # ---- Used by groups ----------------------------------------------------------------

    def _writing(self) -> _caterva.Tree:
        """Return the handle, or raise if the tree cannot be changed."""
        if self._is_parents() and not self.closed:
            message = f"{self.path} is open for writing in the parent of this process"
            raise refusal(Status.EBUSY, message, self.path)
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

    def _listed(self, key: str) -> list[tuple[Any, ...]]:
        """Return the entries of a group and below it, including new arrays."""
        new = self._opened.new_below(key)
        if not new:
            return list(self._handle._list(key or None))
        found = entries_of_new(new, key)
        with contextlib.suppress(NotFoundError):
            found |= {entry[0]: entry for entry in self._handle._list(key or None)}
        return sorted(found.values(), key=lambda entry: entry[0].split("/"))

    def _has_new_below(self, key: str) -> bool:
        return bool(self._opened.new_below(key))

    def _has_group(self, key: str) -> bool:
        if self._has_new_below(key):
            return True
        try:
            self._handle._list(key)
        except NotFoundError:
            return False
        return True

    def _names_of_attributes(self, group: str) -> list[str]:
        try:
            return self._handle._attribute_list(group)
        except NotFoundError:  # a group that has only new arrays
            return []

    def _array(self, key: str) -> Array:
        """Return the array at a key. While it is open, a writable tree returns the same object;
        a tree for reading keeps a few."""
        array = self._opened.get(key)
        if array is not None:
            return array
        with self._lock:
            array = self._opened.get(key)
            if array is None:
                array = self._open(key)
                self._opened.keep(key, array, of_few=not self.writable)
            return array

    def _open(self, key: str) -> Array:
        if self.writable and not self._is_parents():
            try:
                return self._open_to_write(key)
            except ReadOnlyError:
                pass  # its file is read-only
        array = self._handle._open_array(Array, key, dict(self._options), None)
        if key in self._expected:
            from ._identity import check

            check(array, self._expected[key], f"{self.path}::{key}", "pickled")
            del self._expected[key]
        return array

    def _open_to_write(self, key: str) -> Array:
        return self._handle._open_array(Array, key, self._options | {"mode": 1}, None)

    def _create(
        self, key: str, shape: Any, dtype: Any, fill_value: Any, options: dict[str, Any]
    ) -> Array:
        array = self._incomplete(key, shape, dtype, fill_value, options)
        array._complete()
        return array

    def _incomplete(
        self,
        key: str,
        shape: Any,
        dtype: Any,
        fill_value: Any,
        options: dict[str, Any],
        like: Any = None,
    ) -> Array:
        """Create an array that is dropped, not committed, if it is collected before
        `_complete`: an interruption while it is made or filled then replaces nothing."""
        words, progress, dims = new_words(shape, dtype, fill_value, self._inherited(options))
        handle = self._writing()
        with self._lock:
            if words["overwrite"]:
                self._make_way(key, words, dims, like)
            array = named(handle._create_array(Array, key, words, progress), dims)
            self._opened.keep_new(key, array)
            return array

    def _make_way(self, key: str, words: dict[str, Any], dims: Any, like: Any) -> None:
        """Drop the array that is open for writing at the key, which blocks a new one. First
        check everything that could be refused: the options, and `like`, the items to store."""
        old = self._opened.get(key)
        if old is None or not old.writable:
            return
        if not self._opened.is_new(key) and not os.path.lexists(f"{self.path}{key}.b2nd"):
            return  # creating fails: only an array's file is replaced
        trial = named(_caterva.create(Array, _options.MEMORY, words, None), dims)
        try:
            if like is not None and trial.size:
                first = (slice(0, 1),) * trial.ndim
                trial[first] = like[first]
        finally:
            trial.discard()
        self._opened.drop(key)

    def _inherited(self, options: dict[str, Any]) -> dict[str, Any]:
        """Return options for a new array; those of the tree are the defaults."""
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
        if isinstance(data, Array):
            options = as_stored(data, options)
            attributes = {name: data.attrs.raw(name) for name in data.attrs}
        items = source.dtype if dtype is None else _dtypes.sized(dtype, source.dtype)
        if self._opened.is_source(data, key):
            source = source[...]  # read now: the array that it comes from is dropped below
        like = source if isinstance(source, np.ndarray) else None
        old = self._opened.get(key)
        try:
            array = self._incomplete(key, source.shape, items, fill_value, options, like)
            fill(array, source)
            for name, value in attributes.items():
                array.attrs.set_raw(name, value)
        except BaseException:
            if self._opened.get(key) is not old:
                self._opened.drop(key)
            raise
        array._complete()
        return array

    def _drop(self, key: str) -> None:
        handle = self._writing()
        with self._lock:
            new = self._opened.is_new(key) or bool(self._opened.new_below(key))
            try:
                handle._remove(key)
            except NotFoundError:
                if not new:
                    raise
            except BusyError:  # arrays are open for writing: by this tree, or by others
                self._refuse_others(key)
                self._opened.drop(key)
                with contextlib.suppress(*[NotFoundError] * new):  # it was only new arrays
                    handle._remove(key)
            self._opened.drop(key)

    def _refuse_others(self, key: str) -> None:
        """Raise BusyError if others write to an array at the key or below, or if it has an open
        job. Called before pending changes of this tree's arrays are dropped."""
        below = [entry[0] for entry in self._listed("") if entry[0].startswith(key + "/")]
        for other in (key, *below):
            self._refuse_job(other)
            array = self._opened.get(other)
            if array is not None and array.writable:
                continue
            try:
                self._open_to_write(other).discard()
            except BusyError:
                raise
            except (Error, NotImplementedError):
                pass  # it cannot be opened for writing, so there is no writer

    def _refuse_job(self, key: str) -> None:
        """Raise BusyError if the array at the key has a job that has not ended."""
        try:
            found = _caterva.jobs_list(f"{self.path}::{key}")
        except (Error, NotImplementedError, OSError):
            return  # not an array
        if any(not job[-1] for job in found):
            message = f"{key} has an open job: merge or delete the job first"
            raise refusal(Status.EBUSY, message, self.path)

    def _rename(self, key: str, to: str) -> None:
        handle = self._writing()
        with self._lock:
            self._settle()
            handle._move(key, to)

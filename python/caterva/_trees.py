"""Functions that open and create trees by path."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from typing import Any, Literal, TypeAlias, Unpack

from . import _caterva, _options
from ._errors import ReadOnlyError
from ._options import Path
from ._places import place_of_tree
from ._remote import Remote, as_remote, remote_of
from ._sources import refuse_tree, refuse_words, refuse_write
from ._tree import Tree

Mode: TypeAlias = Literal["r", "r+", "a", "w", "x"]

MODES: tuple[Mode, ...] = ("r", "r+", "a", "w", "x")


def _opened(
    path: str,
    writing: bool,
    options: dict[str, Any],
    remote: Remote | None,
    report: _options.Progress | None = None,
) -> Tree:
    native = remote_of(remote)
    handle = _caterva.tree_open(path, writing, options["durability"], native, report)
    return Tree(handle, options, remote)


def open_tree(
    path: Path,
    mode: Mode = "r",
    *,
    remote: Remote | Mapping[str, Any] | None = None,
    progress: _options.Listener = None,
    **options: Unpack[_options.Members],
) -> Tree:
    """Open or create the tree at `path`.

    Parameters
    ----------
    path
        A directory (``.b2d``). For reading also an archive (``.b2z``) or a file that embeds all
        its arrays (``.b2e``), both also at ``http://``, ``https://`` and ``s3://``.
    mode
        ``"r"``: read. ``"r+"``: read and write an existing tree. ``"a"``: as ``"r+"``, but
        create the tree if nothing exists. ``"w"``: create it, or delete all that is in it.
        ``"x"``: create; fail if something exists.
    remote
        How URLs are read: a `Remote`, or a dict of its fields.
    progress
        Function ``(done, total)`` for long calls of the tree itself, or ``"tqdm"``; see
        `Tree.progress`. Each array has a ``progress`` of its own, to be set when it is open.
    **options
        For the arrays that the tree opens, as in `open`: ``threads``, ``durability``,
        ``dirty_budget``, ``cache_bytes``, ``read_ahead``, ``unchecked``, ``keep_bytes`` and
        ``compact_percent``.

    Returns
    -------
    Tree

    Raises
    ------
    FileNotFoundError
        If nothing exists at `path`.
    NotImplementedError
        If it is not a tree.
    BlockingIOError
        If another handle or process has it open for writing and `mode` is not ``"r"``.

    Examples
    --------
    >>> import caterva
    >>> with caterva.open_tree("opened.b2d", "w") as t:
    ...     t["g/x"] = [1, 2, 3]
    >>> caterva.open_tree("opened.b2d")["g/x"][1:]
    array([2, 3])
    """
    _options.number_of(mode, MODES, "mode")
    place = place_of_tree(path)
    refuse_words(place, remote)
    refuse_write(place, mode)
    refuse_tree(place)
    words = _options.open_options(False, {**options})
    report = _options.progress_of(progress)
    there = os.path.lexists(place)
    if mode == "x" or (mode in ("a", "w") and not there):
        _refuse_archive(place)
        return Tree(_caterva.tree_create(place, words["durability"], report), words)
    tree = _opened(place, mode != "r", words, as_remote(remote), report)
    if mode == "w":
        with contextlib.ExitStack() as failing:
            failing.callback(tree.discard)
            _empty(tree)
            failing.pop_all()
    return tree


def _refuse_archive(place: str) -> None:
    if place.endswith(".b2z"):
        raise ReadOnlyError(
            f"{place} would be an archive, which never changes: create a .b2d and pack it"
        )


def _empty(tree: Tree) -> None:
    for name in [e.key for e in tree.entries() if e.key.count("/") == 1]:
        del tree[name]

"""Replacing a group of a tree, or a whole tree, by one that was written beside it."""

from __future__ import annotations

import contextlib
import ctypes
import os
import secrets
import shutil
import string
import sys
from collections.abc import Iterator
from typing import Literal

from .._errors import ExistsError, ReadOnlyError, Status, refusal
from .._options import Durability
from .._tree import Tree
from .._trees import open_tree

_INDEX = ("embed.b2e", "dataset.json")  # files of a whole tree
_ATTRIBUTES = "__vlmeta__.b2f"
_RENAMES_OPEN = sys.platform != "win32"  # folders in which files are open
_LINUX, _MAC = ("renameat2", 2), ("renameatx_np", 2)  # function, and the flag for an exchange


@contextlib.contextmanager
def written(
    path: str, mode: Literal["r+", "a", "x"], durability: Durability = "full"
) -> Iterator[Tree]:
    """Open a tree for writing. It is closed at the end of the block, also if an interruption
    breaks off `close`."""
    tree = open_tree(path, mode, durability=durability)
    try:
        with tree:
            yield tree
    finally:
        tree.discard()


def _hidden_name(place: str) -> str:
    """Return an unused name of the form of the library's temporary files."""
    folder, name = os.path.split(place)
    while True:
        letters = "".join(secrets.choice(string.ascii_lowercase) for _ in range(6))
        hidden = os.path.join(folder, f".{name[:200]}.tmp-{letters}")
        if not os.path.lexists(hidden):
            return hidden


def _remove_folder(path: str, process: int) -> None:
    if os.getpid() == process:
        shutil.rmtree(path, ignore_errors=True)


@contextlib.contextmanager
def beside(place: str) -> Iterator[str]:
    """Create a hidden folder beside the place, and delete it with its contents at the end. A
    forked child leaves it to the parent."""
    hidden = _hidden_name(place)
    process = os.getpid()
    try:
        try:
            os.mkdir(hidden, 0o700)
            yield hidden
        finally:
            _remove_folder(hidden, process)
    finally:  # again, in case an interruption broke off the first attempt
        _remove_folder(hidden, process)


def holds(tree: Tree, key: str) -> bool:
    """Whether the tree has an array or group of that key."""
    return any(e.key == key or e.key.startswith(key + "/") for e in tree.entries())


# ---- Exchanging names ----------------------------------------------------------------------


def _exchange(new: str, old: str) -> None:
    """Exchange two directories: atomically if the system can, else by three renames."""
    name, flag = _MAC if sys.platform == "darwin" else _LINUX
    here = -2 if sys.platform == "darwin" else -100
    call = getattr(ctypes.CDLL(None), name, None)
    if call is not None and call(here, os.fsencode(new), here, os.fsencode(old), flag) == 0:
        return
    aside = f"{new}.old"
    os.rename(old, aside)
    try:
        os.rename(new, old)
    except BaseException:
        os.rename(aside, old)
        raise


def sync_folder(path: str, durability: Durability) -> None:
    """Sync the names in a folder, as far as the durability requires."""
    if durability == "none" or sys.platform == "win32":  # which opens no folder
        return
    folder = os.open(path, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _put(inner: str, place: str, key: str, old: Tree) -> str:
    """Move what was written to the key; return the folder whose entry changed."""
    if not key:
        _exchange(inner, place)
        return os.path.dirname(place)
    parts = key[1:].split("/")
    for n in range(1, len(parts) + 1):
        group = "/".join(parts[:n])
        target = os.path.join(place, group)
        if not os.path.isdir(target):
            if holds(old, "/" + group):
                _remove_array(old, "/" + group, last=n == len(parts))
            os.rename(os.path.join(inner, group), target)
            return os.path.dirname(target)
    _exchange(os.path.join(inner, key[1:]), target)
    return os.path.dirname(target)


def _members(tree: Tree, key: str) -> dict[str, str]:
    """Return the kind of each array and group at and below the key, by key."""
    entries = (e for e in tree.entries() if e.kind in ("array", "group"))
    return {e.key: e.kind for e in entries if f"{e.key}/".startswith(f"{key}/")}


def _put_members(new: Tree, key: str, old: Tree) -> None:
    """Copy what was written to the key of the old tree, in one commit, and then delete what
    else was there."""
    there, made = _members(old, key), _members(new, key)
    for name in [name for name in there if made.get(name, there[name]) != there[name]]:
        with contextlib.suppress(KeyError):  # deleted with its group
            del old[name]
    there = _members(old, key)
    for name, kind in made.items():
        if kind == "array":
            old[name] = new[name]
    for name, kind in (there | made | {key: "group"}).items():
        if kind == "group":
            attributes = old.require_group(name or "/").attrs
            attributes.clear()
            attributes.update(new[name or "/"].attrs if name in made or name == key else {})
    old.commit()
    for name in sorted(there.keys() - made.keys(), key=lambda name: there[name]):
        with contextlib.suppress(KeyError, ExistsError):  # files of others keep their group
            del old[name]


def _remove_array(old: Tree, key: str, last: bool) -> None:
    if not last:
        message = f"{key} in {old.path} is an array: it cannot contain a group"
        raise refusal(Status.EEXIST, message, old.path)
    del old[key]


# ---- Files that stay ------------------------------------------------------------------------


def _is_ours(name: str) -> bool:
    left = name.startswith(".") and ".tmp-" in name  # left by a writer that was killed
    return left or name in (*_INDEX, _ATTRIBUTES, ".caterva-commit")


def _keep_others(old: Tree, inner: str, place: str, key: str) -> None:
    """Link or copy files that are not arrays into the new group."""
    arrays = set()
    for entry in old.entries():
        if key and entry.embedded and entry.key.startswith(key + "/"):
            raise ReadOnlyError(
                f"{entry.key} is inside embed.b2e of {old.path} and cannot be replaced"
            )
        if entry.kind == "array" and entry.path is not None:
            arrays.add(os.path.normpath(os.path.join(place, entry.path)))
    top = os.path.join(place, key[1:])
    for folder, folders, names in os.walk(top):
        folders[:] = [name for name in folders if not name.endswith(".b2nd.parts")]
        for name in names:
            path = os.path.join(folder, name)
            to = os.path.join(inner, os.path.relpath(path, place))
            if not (_is_ours(name) or path in arrays or os.path.lexists(to)):
                os.makedirs(os.path.dirname(to), exist_ok=True)
                _link(path, to)


def _link(path: str, to: str) -> None:
    try:
        os.link(path, to, follow_symlinks=False)
    except OSError:
        shutil.copy2(path, to, follow_symlinks=False)


@contextlib.contextmanager
def replaced(place: str, key: str, durability: Durability) -> Iterator[Tree]:
    """Open a new tree for writing. At the end its group replaces that of the old tree, which is
    locked until then."""
    place = os.path.realpath(place)
    with beside(place) as hidden, written(place, "r+", durability) as old:
        inner = os.path.join(hidden, "tree.b2d")
        with written(inner, "x", durability) as tree:
            yield tree
        if not _RENAMES_OPEN:
            with open_tree(inner) as tree:
                _put_members(tree, key, old)
            return
        _keep_others(old, inner, place, key)
        if not key:
            shutil.copymode(place, inner)
        sync_folder(_put(inner, place, key, old), durability)

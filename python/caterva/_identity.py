"""Which state a handle reads: the one definition for Dask's tokens, pickles and data sets.

The state of an array is the commit that its handle sees, even if the file has a later one; the
library identifies it (``state_id`` in caterva.h). Arrays in memory are identified by their
bytes, archives by their directory. A tree in a directory has no state of its own: each of its
arrays has one, fixed when the array is opened.

- A token for Dask holds place and state. A writable handle has a token of its own, and with
  pending changes a new one for each call.
- A pickle holds place and state. Unpickling opens the place, and raises `StaleError` if it has
  another state: older commits cannot be opened. Writable handles are not pickled.
"""

from __future__ import annotations

import hashlib
import uuid
from typing import Any

from ._array import Array
from ._errors import StaleError
from ._functions import _open_source, from_bytes
from ._functions import open as open_array
from ._group import Group
from ._remote import Remote
from ._shown import shown
from ._sources import Source
from ._tree import Tree
from ._trees import _opened
from ._view import View, remade

# ---- States ---------------------------------------------------------------------------------


def state_of(array: Array) -> bytes:
    """Return bytes that identify the commit that the array's handle sees."""
    parts = array._describe()
    if parts["in_memory"]:
        return hashlib.blake2b(array.to_bytes(), digest_size=16).digest()
    state: bytes = parts["state_id"]
    return state


def check(array: Any, state: bytes, place: str, done: str) -> Array:
    """Return the array if it is at that state; else close it and raise StaleError."""
    if isinstance(array, Array) and state_of(array) == state:
        return array
    array.close()
    raise StaleError(f"{shown(place)} is not in the state that was {done}: open it again")


def _refuse(handle: Array | Tree, kind: str) -> None:
    """Raise if the handle cannot be pickled."""
    if handle.closed:
        raise ValueError(f"the {kind} is closed")
    if handle.writable and handle.path is not None:
        raise TypeError(
            f"{handle.path} is open for writing: only {kind}s open for reading can be pickled; "
            "close it, or pass its path"
        )


# ---- Pickles --------------------------------------------------------------------------------


def pickle_of_array(array: Array) -> tuple[Any, ...]:
    """Implement `Array.__reduce__`."""
    _refuse(array, "array")
    if array._source is not None:
        return array_in, (array._source, state_of(array))
    if array.path is None:
        return frame, (array.to_bytes(), array.writable)
    return array_at, (array.path, array._offset, state_of(array), array._remote)


def frame(stored: bytes, writable: bool) -> Array:
    """Open the pickle of an array in memory."""
    return from_bytes(stored, writable=writable)


def array_at(path: str, offset: int, state: bytes, remote: Remote | None) -> Array:
    """Open the pickle of an array at a path or URL."""
    return check(open_array(path, offset=offset, remote=remote), state, path, "pickled")


def array_in(source: Source, state: bytes) -> Array:
    """Open the pickle of an array in a file object."""
    return check(_open_source(source, "r", {}), state, source.name, "pickled")


def pickle_of_view(view: View) -> tuple[Any, ...]:
    """Implement `View.__reduce__`: the arrays, and the steps that made the view from them."""
    return remade, view._recipe


def pickle_of_tree(tree: Tree) -> tuple[Any, ...]:
    """Implement `Tree.__reduce__`. The pickle of a directory has the state of each array that
    is open or whose state came with the pickle that made this tree. Others are unknown."""
    _refuse(tree, "tree")
    state = tree._handle._state_id()
    opened = {k: state_of(a) for k, a in tree._opened.by_key().items()}
    seen = {} if state else tree._expected | opened
    return tree_at, (tree.path, state, seen, tree._options, tree._remote)


def tree_at(
    path: str,
    state: bytes | None,
    seen: dict[str, bytes],
    options: dict[str, Any],
    remote: Remote | None,
) -> Tree:
    """Open the pickle of a tree."""
    tree = _opened(path, False, options, remote)
    if tree._handle._state_id() != state:
        tree.close()
        raise StaleError(f"{shown(path)} is not in the state that was pickled: open it again")
    tree._expected = seen
    return tree


# ---- Tokens ---------------------------------------------------------------------------------


def _token(kind: str, *parts: Any) -> Any:
    """Implement `__dask_tokenize__`. Dask uses the text of the result as it is, so arrays and
    other objects in it must be normalized here."""
    from dask.base import normalize_token

    return normalize_token((f"caterva.{kind}", *parts))


def token_of_array(array: Array) -> Any:
    """Return place and state; for a writable handle also the handle."""
    if array._source is not None:
        return _token("Array", array._source.token(), state_of(array))
    if array.path is None:
        return _token("Array", state_of(array))
    if array.writable and array._has_pending():
        return _token("Array", uuid.uuid4().hex)
    own = id(array) if array.writable else None
    return _token("Array", array.path, array._offset, state_of(array), own)


def token_of_view(view: View) -> Any:
    """Return the arrays, and the steps that made the view from them."""
    return _token("View", *view._recipe)


def token_of_lazy(lazy: Any) -> Any:
    """Return the parameters of a field or conversion, and the array or view below it."""
    parts = [getattr(lazy, name) for name in type(lazy).__slots__]
    return _token(type(lazy).__name__, lazy._array, *parts)


def token_of_group(group: Group) -> Any:
    """Return path and state of an archive. For a directory, return the states of all arrays in
    the group, which are opened for this, and the attributes."""
    tree = group.tree
    if tree.writable:
        return _token("Group", uuid.uuid4().hex)
    state: Any = tree._handle._state_id()
    if state is None:
        groups = [group, *(Group(tree, e.key) for e in group.entries() if e.kind == "group")]
        arrays = [(key, state_of(array)) for key, array in group.arrays()]
        state = arrays, [(g.name, dict(g.attrs)) for g in groups]
    return _token("Group", tree.path, group.name, state)

"""The backend by which xarray opens trees."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import xarray as xr
from xarray.backends.common import (
    AbstractDataStore,
    BackendEntrypoint,
    datatree_from_dict_with_io_cleanup,
)
from xarray.backends.store import StoreBackendEntrypoint
from xarray.core.utils import close_on_error

from .._places import SUFFIXES, is_remote, is_tree, place_of_tree, split_url
from .._remote import as_remote
from .._sources import SPOKEN, scheme_of
from .._tree import Tree
from .._trees import open_tree
from ._array import Source, with_state
from ._decode import decoded
from ._store import CatervaStore

T = TypeVar("T")
_TRIES = 8  # attempts to open a tree while others commit to it


def _place(filename_or_obj: Any, group: str | None) -> tuple[str, str]:
    """Return the tree, and the key of the group in it."""
    path, key = split_url(os.fspath(filename_or_obj))
    if os.path.lexists(os.fspath(filename_or_obj)):
        path, key = os.fspath(filename_or_obj), None
    parts = [part for part in (key or "", group or "") for part in part.split("/") if part]
    return place_of_tree(path), "".join(f"/{part}" for part in parts)


def _group(tree: Tree, key: str) -> Any:
    found = tree[key] if key else tree
    if not hasattr(found, "entries"):
        raise KeyError(f"{key} in {tree.path} is an array, not a group")
    return found


# ---- Concurrent writers ----------------------------------------------------------------------


def _state(path: str, key: str) -> Any:
    """Return what a commit changes in a tree that is a directory: its journal is created and
    deleted in it, and a replaced group is another folder."""
    try:
        places = [os.stat(path), os.stat(path + key)] if os.path.isdir(path) else []
    except OSError:
        places = []
    return [(place.st_dev, place.st_ino, place.st_mtime_ns) for place in places]


def _settled(path: str, key: str, run: Callable[[], T], close: Callable[[T], Any]) -> T:
    """Run `run` until no commit happens meanwhile: arrays opened before and after a commit
    would not belong together."""
    for n in range(_TRIES):
        state = _state(path, key)
        last = n == _TRIES - 1 or not state
        try:
            opened = run()
        except Exception as error:
            # File systems have coarse clocks: try again if the arrays do not fit each other.
            again = isinstance(error, ValueError) and n < 2
            if last or not (again or state != _state(path, key)):
                raise
        else:
            if last or state == _state(path, key):
                return opened
            close(opened)
        time.sleep(0.002 * 2**n)
    raise AssertionError


def _close_all(opened: dict[str, xr.Dataset]) -> None:
    for ds in opened.values():
        ds.close()


class CatervaBackendEntrypoint(BackendEntrypoint):
    """Opens trees of arrays: ``.b2d`` directories and ``.b2z`` files.

    Name a group by ``group="model"`` or ``"x.b2z::/model"``. Archives are also read from
    ``http://``, ``https://`` and ``s3://``; ``remote=`` has the options (see `caterva.Remote`).

    Examples
    --------
    >>> import xarray as xr, caterva.xarray
    >>> xr.Dataset({"x": ("t", [1, 2, 3])}).to_caterva("opened.b2d")
    >>> xr.open_dataset("opened.b2d", chunks={})["x"].sum().item()
    6
    """

    description = "Open trees of Blosc2 arrays (.b2d and .b2z) in Xarray"
    url = "https://github.com/caterva/caterva"
    supports_groups = True
    open_dataset_parameters = (
        "filename_or_obj",
        "mask_and_scale",
        "decode_times",
        "concat_characters",
        "decode_coords",
        "drop_variables",
        "use_cftime",
        "decode_timedelta",
        "group",
        "remote",
    )

    def guess_can_open(self, filename_or_obj: Any) -> bool:
        """Return True for the path of a tree, and for the URL of an archive, but not for Zarr
        groups: they have an engine of their own."""
        if not isinstance(filename_or_obj, str | os.PathLike):
            return False
        path, _ = split_url(os.fspath(filename_or_obj))
        if is_remote(path):
            return scheme_of(path) in SPOKEN and is_tree(path)
        is_zarr = os.path.exists(os.path.join(path, "zarr.json"))
        return path.endswith(SUFFIXES) or (
            os.path.isdir(path) and not is_zarr and is_tree(path)
        )

    def open_dataset(
        self,
        filename_or_obj: Any,
        *,
        mask_and_scale: Any = True,
        decode_times: Any = True,
        concat_characters: Any = True,
        decode_coords: Any = True,
        drop_variables: str | Iterable[str] | None = None,
        use_cftime: Any = None,
        decode_timedelta: Any = None,
        group: str | None = None,
        remote: Any = None,
    ) -> xr.Dataset:
        """Open a group of a tree as a Dataset."""
        words = {
            "mask_and_scale": mask_and_scale,
            "decode_times": decode_times,
            "concat_characters": concat_characters,
            "decode_coords": decode_coords,
            "drop_variables": drop_variables,
            "use_cftime": use_cftime,
            "decode_timedelta": decode_timedelta,
        }
        if isinstance(filename_or_obj, AbstractDataStore):
            return StoreBackendEntrypoint().open_dataset(filename_or_obj, **words)
        path, key = _place(filename_or_obj, group)
        remote = as_remote(remote)

        def run() -> xr.Dataset:
            source = Source(path, remote)
            with open_tree(path, remote=remote) as tree:
                return _open(_group(tree, key), source, words)

        return _settled(path, key, run, xr.Dataset.close)

    def open_groups_as_dict(
        self,
        filename_or_obj: Any,
        *,
        mask_and_scale: Any = True,
        decode_times: Any = True,
        concat_characters: Any = True,
        decode_coords: Any = True,
        drop_variables: str | Iterable[str] | None = None,
        use_cftime: Any = None,
        decode_timedelta: Any = None,
        group: str | None = None,
        remote: Any = None,
    ) -> dict[str, xr.Dataset]:
        """Open all groups of a tree, or a group and those below it."""
        words = {
            "mask_and_scale": mask_and_scale,
            "decode_times": decode_times,
            "concat_characters": concat_characters,
            "decode_coords": decode_coords,
            "drop_variables": drop_variables,
            "use_cftime": use_cftime,
            "decode_timedelta": decode_timedelta,
        }
        path, key = _place(filename_or_obj, group)
        remote = as_remote(remote)

        def run() -> dict[str, xr.Dataset]:
            with open_tree(path, remote=remote) as tree:
                top = _group(tree, key)
                keys = [key, *(e.key for e in top.entries() if e.kind == "group")]
                return {
                    k[len(key) :] or "/": _open(_group(tree, k), Source(path, remote), words)
                    for k in keys
                }

        return _settled(path, key, run, _close_all)

    def open_datatree(self, filename_or_obj: Any, **options: Any) -> xr.DataTree:
        """Open all groups of a tree, or a group and those below it, as a DataTree."""
        return datatree_from_dict_with_io_cleanup(
            self.open_groups_as_dict(filename_or_obj, **options)
        )


def _open(group: Any, source: Source, words: dict[str, Any]) -> xr.Dataset:
    drop = words["drop_variables"]
    dropped = () if drop is None else (drop,) if isinstance(drop, str) else tuple(drop)
    store = CatervaStore(group, source, dropped)
    with close_on_error(store):
        ds = decoded(store, words)
    ds = ds._replace({name: with_state(v) for name, v in ds.variables.items()})
    ds.set_close(source.close)
    return ds

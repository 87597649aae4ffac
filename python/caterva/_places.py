"""Paths and URLs of arrays, trees and members of trees."""

from __future__ import annotations

import os
import pathlib

from ._errors import Status, make
from ._options import MEMORY, Path, url_of
from ._shown import shown

SUFFIXES = (".b2d", ".b2z", ".b2e")
OTHERS = {
    ".npy": "numpy.save writes NumPy files",
    ".npz": "numpy.savez writes NumPy files",
    ".csv": "numpy.savetxt writes text",
    ".zarr": "save and copy(zarr=True) make arrays that are also Zarr arrays",
    ".b2d": "open_tree makes trees",
    ".b2z": "Tree.pack makes archives of trees",
    ".b2e": "python-blosc2 makes such trees",
}
MAGIC_OF_TREES = (b"PK\3\4", b"PK\5\6")


def split_url(url: str) -> tuple[str, str | None]:
    """Split ``tree.b2d::/key`` into tree and key; without ``::`` the key is None."""
    at = url.find("::")
    while at >= 0:
        key = url[at + 2 :].replace(os.sep, "/")  # pathlib has backslashes on Windows
        if key == "" or key.startswith("/"):
            return url[:at], key or "/"
        at = url.find("::", at + 1)
    return url, None


def is_remote(place: str) -> bool:
    """Whether a path is a URL."""
    return "://" in place


def whole(path: str) -> str:
    """Return the absolute path. Keeps ``..``: behind a symbolic link it is the parent of the
    link's target, which only the system can resolve."""
    return str(pathlib.Path(path).absolute())


def place_of(path: Path | None) -> str:
    """Return the absolute path or URL of an array, as handles keep it."""
    url = url_of(path)
    if url == MEMORY or is_remote(url):
        return url
    tree, key = split_url(url)
    return whole(url) if key is None else f"{whole(tree)}::{key}"


def is_zarr(path: Path | None) -> bool:
    """Whether the name of a new array says that it is a Zarr array, too."""
    return path is not None and place_of(path).rstrip("/").lower().endswith(".zarr")


def place_to_create(path: Path | None) -> str:
    """Return the absolute path or URL of an array to create; names of other formats are
    refused."""
    place = place_of(path)
    suffix = os.path.splitext(place)[1].lower()
    if suffix in OTHERS and "::" not in place:
        message = (
            f"{shown(place)} has the suffix of another format: an array is a Blosc2 frame, "
            f"name it .b2nd; {OTHERS[suffix]}"
        )
        raise make(Status.EINVAL, 0, -1, message, place)
    return place


def place_to_open(path: Path | None) -> str:
    """Return the absolute path or URL of something to open; memory is refused."""
    if path is None:
        raise TypeError("path is None: arrays in memory are made by create or from_bytes")
    place = place_of(path)
    if place == MEMORY:
        message = 'there is nothing to open at "mem:": from_bytes opens a frame in memory'
        raise make(Status.EINVAL, 0, -1, message, place)
    return place


def hint_of_key(place: str) -> str:
    """Return a hint for ``tree.b2d::key``, which lacks a slash; else an empty str."""
    tree, colons, key = place.partition("::")
    if not colons or key.startswith("/") or not os.path.lexists(tree) or not is_tree(tree):
        return ""
    return f": keys in a tree begin with a slash, {tree}::/{key}"


def hint_of_format(place: str) -> str:
    """Return a hint for a file of another format that `convert` reads; else an empty str."""
    from ._convert import format_of

    if is_remote(place):
        return ""
    if place.endswith((".npy", ".csv")):
        return f": 'caterva convert {shown(place)} OUT.b2nd' converts it"
    if format_of(place) is None:
        return ""
    return f": caterva.convert({shown(place)!r}, OUT) converts it to a .b2z or .b2nd"


def place_of_tree(path: Path) -> str:
    """Return the absolute path or URL of a tree."""
    if path is None:
        raise TypeError("path is None: a tree is in a directory or file")
    url = url_of(path)
    return url if is_remote(url) else whole(url)


def _is_zarr_group(place: str) -> bool:
    """Whether the metadata are those of a group, as `Tree.pack` writes them."""
    with open(os.path.join(place, "zarr.json"), "rb") as file:
        return b'"node_type":"group"' in b"".join(file.read(4096).split())


def is_tree(place: str) -> bool:
    """Whether a tree, not an array, is at a path; decided by the name for a URL."""
    if is_remote(place):
        return place.partition("?")[0].endswith(".b2z")
    if os.path.isdir(place):
        inside = set(os.listdir(place))
        if "zarr.json" in inside:
            return _is_zarr_group(place)
        return "chunks.b2frame" not in inside and (
            "embed.b2e" in inside or place.endswith(".b2d")
        )
    if place.endswith(".b2e") or not os.path.isfile(place):  # a FIFO would wait for a writer
        return os.path.isfile(place)
    try:
        with open(place, "rb") as file:
            return file.read(4) in MAGIC_OF_TREES
    except OSError:
        return False


def state_of_tree(path: str) -> tuple[int, int, int] | None:
    """Identify the archive at a path, to detect that another one replaces it; None for a
    directory or URL."""
    if is_remote(path):
        return None
    status = os.stat(path)
    if os.path.isdir(path):
        return None
    return status.st_ino, status.st_mtime_ns, status.st_size

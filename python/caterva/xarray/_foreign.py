"""Trees that xarray-blosc2 wrote: `dataset.json` stands beside the arrays, and coordinates
are called ``_coord_NAME``."""

from __future__ import annotations

import json
import os
import zipfile
from typing import Any

from .._array import Array

INDEX = "dataset.json"
_PREFIX = "_coord_"
_OWN = ("var", "nbytes", "cbytes", "cratio", "lineage", "is_coord", "coord_name", "dtype")
_NO_AXIS = "_scalar"  # of what has no axes


def read_index(path: str) -> dict[str, Any] | None:
    """What `dataset.json` of the tree says, where there is one."""
    try:
        if os.path.isdir(path):
            with open(os.path.join(path, INDEX), "rb") as file:
                text = file.read()
        else:
            with zipfile.ZipFile(path) as archive:
                text = archive.read(INDEX)
    except (KeyError, FileNotFoundError):
        return None
    index: dict[str, Any] = json.loads(text)
    return index


def name_of(member: str) -> str:
    """The variable that an array holds."""
    return member.removeprefix(_PREFIX)


def attributes_of(index: dict[str, Any], name: str, own: dict[str, Any]) -> dict[str, Any]:
    """The variable's attributes, without what tells of its storage."""
    given: dict[str, Any] = index.get("variable_attrs", {}).get(name, {})
    return {k: v for k, v in own.items() if k not in _OWN} | given


def is_scalar(array: Array) -> bool:
    """Whether the array's one item stands for a variable without axes."""
    return array.shape == (1,) and array.dims == (_NO_AXIS,)


def coordinates_of(index: dict[str, Any]) -> str:
    """The names of coordinates that no dimension has, as CF names them."""
    return " ".join(name for name in index.get("coords", ()) if name not in index["dims"])

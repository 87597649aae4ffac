"""Trees that xarray-blosc2 wrote: they have a `dataset.json`, and coordinates are named
``_coord_NAME``."""

from __future__ import annotations

import json
import os
import zipfile
from typing import Any

from .._array import Array

INDEX = "dataset.json"
_PREFIX = "_coord_"
_OWN = ("var", "nbytes", "cbytes", "cratio", "lineage", "is_coord", "coord_name", "dtype")
_NO_AXIS = "_scalar"  # dimension of the array of a variable without axes


def read_index(path: str) -> dict[str, Any] | None:
    """Return the contents of the tree's `dataset.json`, or None."""
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
    """Return the name of the variable that an array holds."""
    return member.removeprefix(_PREFIX)


def attributes_of(index: dict[str, Any], name: str, own: dict[str, Any]) -> dict[str, Any]:
    """Return the variable's attributes, without those that describe its storage."""
    given: dict[str, Any] = index.get("variable_attrs", {}).get(name, {})
    return {k: v for k, v in own.items() if k not in _OWN} | given


def is_scalar(array: Array) -> bool:
    """Whether the array holds the one item of a variable without axes."""
    return array.shape == (1,) and array.dims == (_NO_AXIS,)


def coordinates_of(index: dict[str, Any]) -> str:
    """Return the names of coordinates without a dimension, in CF's form."""
    return " ".join(name for name in index.get("coords", ()) if name not in index["dims"])

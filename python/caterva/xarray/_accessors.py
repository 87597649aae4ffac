# mypy: allow-untyped-calls
"""What data sets of xarray can do once this package is there."""

from __future__ import annotations

from typing import Any

import xarray as xr

from .._options import Path
from ._save import to_caterva


class _Saver:
    def __init__(self, data: Any) -> None:
        self._data = data

    def __call__(self, path: Path, *arguments: Any, **options: Any) -> None:
        to_caterva(self._data, path, *arguments, **options)


@xr.register_dataset_accessor("to_caterva")
class DatasetSaver(_Saver):
    """``ds.to_caterva(path, ...)``: save a data set as a tree; see `to_caterva`."""


@xr.register_datatree_accessor("to_caterva")
class DataTreeSaver(_Saver):
    """``dt.to_caterva(path, ...)``: save a tree of data sets; see `to_caterva`."""


@xr.register_dataset_accessor("caterva")
class DatasetAccessor:
    """``ds.caterva.save(path, ...)``: the same by another name."""

    def __init__(self, ds: xr.Dataset) -> None:
        self._ds = ds

    def save(self, path: Path, *arguments: Any, **options: Any) -> None:
        """Save the data set as a tree; the options are those of `to_caterva`."""
        to_caterva(self._ds, path, *arguments, **options)

    to_caterva = save

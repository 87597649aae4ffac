# mypy: allow-untyped-calls
"""Methods that xarray's data sets get when this package is imported."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import xarray as xr
from xarray.backends.api import DATAARRAY_NAME, DATAARRAY_VARIABLE

from .._options import Path
from ._save import to_caterva

if TYPE_CHECKING:
    from dask.delayed import Delayed


class _Saver:
    def __init__(self, data: Any) -> None:
        self._data = data

    def __call__(self, path: Path, *arguments: Any, **options: Any) -> Delayed | None:
        return to_caterva(self._data, path, *arguments, **options)


@xr.register_dataset_accessor("to_caterva")
class DatasetSaver(_Saver):
    """``ds.to_caterva(path, ...)`` saves a data set as a tree; see `to_caterva`."""


@xr.register_dataarray_accessor("to_caterva")
class DataArraySaver(_Saver):
    """``da.to_caterva(path, ...)`` saves a DataArray as a data set that ``xr.open_dataarray``
    opens; see `to_caterva`."""

    def __init__(self, data: xr.DataArray) -> None:
        takes_name = data.name is None or data.name in data.coords or data.name in data.dims
        ds = data.to_dataset(name=DATAARRAY_VARIABLE if takes_name else data.name)
        if takes_name and data.name is not None:
            ds.attrs[DATAARRAY_NAME] = data.name
        super().__init__(ds)


@xr.register_datatree_accessor("to_caterva")
class DataTreeSaver(_Saver):
    """``dt.to_caterva(path, ...)`` saves a DataTree; see `to_caterva`."""


@xr.register_dataset_accessor("caterva")
class DatasetAccessor:
    """``ds.caterva.save(path, ...)``: another name of ``ds.to_caterva``."""

    def __init__(self, ds: xr.Dataset) -> None:
        self._ds = ds

    def save(self, path: Path, *arguments: Any, **options: Any) -> Delayed | None:
        """Save the data set as a tree. The options are those of `to_caterva`."""
        return to_caterva(self._ds, path, *arguments, **options)

    to_caterva = save

"""xarray data sets in trees of arrays.

xarray finds the reader by itself: ``xr.open_dataset("x.b2z")`` opens a tree (``.b2d`` or
``.b2z``) that this package, python-blosc2 or xarray-blosc2 wrote. `to_caterva` writes data
sets. It is also a method, ``ds.to_caterva("x.b2z")``, once this module has been imported or
xarray has opened anything.

>>> import xarray as xr, caterva.xarray
>>> xr.Dataset({"t2m": ("time", [271.5, 272.0])}).to_caterva("module.b2z")
>>> xr.open_dataset("module.b2z")["t2m"].values
array([271.5, 272. ])
"""

from ._accessors import DataArraySaver, DatasetAccessor, DatasetSaver, DataTreeSaver
from ._backend import CatervaBackendEntrypoint
from ._save import to_caterva
from ._store import CatervaStore

__all__ = [
    "CatervaBackendEntrypoint",
    "CatervaStore",
    "DataArraySaver",
    "DataTreeSaver",
    "DatasetAccessor",
    "DatasetSaver",
    "to_caterva",
]

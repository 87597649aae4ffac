"""Finding the region of a stored data set that another one is written to."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np
import pandas as pd  # type: ignore[import-untyped,unused-ignore]
import xarray as xr
from xarray import conventions

from ._store import CatervaStore


def _found(dim: Hashable, ds: xr.Dataset, store: CatervaStore) -> slice:
    """Find the coordinate's values in the stored coordinate."""
    if dim not in ds.variables:
        return slice(0, ds.sizes[dim])
    name = str(dim)
    stored = conventions.decode_cf_variable(name, store.open_variable(name).compute())
    places = pd.Index(stored.data).get_indexer(ds[dim].data)
    if (places < 0).any():
        value = ds[dim].values[int(np.argmax(places < 0))]
        raise KeyError(f"coordinate {dim!r} has {value!r}, which the stored one does not have")
    if (np.diff(places) != 1).any():
        raise ValueError(
            f"the values of coordinate {dim!r} are not adjacent in the stored coordinate"
        )
    return slice(int(places[0]), int(places[-1]) + 1) if len(places) else slice(0, 0)


def region_of(
    ds: xr.Dataset, region: Mapping[Hashable, Any] | str, store: CatervaStore
) -> dict[Hashable, slice]:
    """Return the slices of the region; ``"auto"`` is looked up in the coordinates."""
    if region == "auto":
        region = dict.fromkeys(ds.dims, "auto")
    if not isinstance(region, Mapping):
        raise TypeError(f"region is a dict of slices or 'auto', not {region!r}")
    slices: dict[Hashable, slice] = {}
    for dim, place in region.items():
        if dim not in ds.dims:
            raise ValueError(f"region names {dim!r}, but the data set has {tuple(ds.dims)}")
        place = _found(dim, ds, store) if isinstance(place, str) and place == "auto" else place
        if not isinstance(place, slice):
            raise TypeError(f"region[{dim!r}] is a slice or 'auto', not {place!r}")
        if place.step not in (1, None):
            raise ValueError(f"region[{dim!r}] has step {place.step}: only 1 is allowed")
        slices[dim] = place
    return slices


def without_others(ds: xr.Dataset, region: dict[Hashable, slice]) -> xr.Dataset:
    """Return the data set without its indexes, which a write to a region keeps."""
    others = [k for k, v in ds.variables.items() if not set(region) & set(v.dims)]
    if region and others:
        raise ValueError(
            f"variables {others!r} have no dimension of the region {list(region)}: drop them "
            f"with .drop_vars({others!r})"
        )
    return ds.drop_vars(list(ds.indexes))

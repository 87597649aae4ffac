"""Where in a data set that is stored another one belongs."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np
import pandas as pd  # type: ignore[import-untyped,unused-ignore]
import xarray as xr
from xarray import conventions

from ._store import CatervaStore


def _found(dim: Hashable, ds: xr.Dataset, store: CatervaStore) -> slice:
    """Where the coordinate's values stand in that which is stored."""
    if dim not in ds.variables:
        return slice(0, ds.sizes[dim])
    name = str(dim)
    stored = conventions.decode_cf_variable(name, store.open_variable(name).compute())
    places = pd.Index(stored.data).get_indexer(ds[dim].data)
    if (places < 0).any():
        value = ds[dim].values[int(np.argmax(places < 0))]
        raise KeyError(f"coordinate {dim!r} has {value!r}, which the stored one has not")
    if (np.diff(places) != 1).any():
        raise ValueError(
            f"the values of coordinate {dim!r} do not stand one behind the other in that "
            "which is stored"
        )
    return slice(int(places[0]), int(places[-1]) + 1) if len(places) else slice(0, 0)


def region_of(
    ds: xr.Dataset, region: Mapping[Hashable, Any] | str, store: CatervaStore
) -> dict[Hashable, slice]:
    """The slices of the region, ``"auto"`` looked up in the coordinates."""
    if region == "auto":
        region = dict.fromkeys(ds.dims, "auto")
    if not isinstance(region, Mapping):
        raise TypeError(f"region is a dict of slices or 'auto', not {region!r}")
    slices: dict[Hashable, slice] = {}
    for dim, place in region.items():
        if dim not in ds.dims:
            raise ValueError(f"region names {dim!r}, the data set has {tuple(ds.dims)}")
        place = _found(dim, ds, store) if isinstance(place, str) and place == "auto" else place
        if not isinstance(place, slice):
            raise TypeError(f"region[{dim!r}] is a slice or 'auto', not {place!r}")
        if place.step not in (1, None):
            raise ValueError(f"region[{dim!r}] has the step {place.step}: it can only be 1")
        slices[dim] = place
    return slices


def without_others(ds: xr.Dataset, region: dict[Hashable, slice]) -> xr.Dataset:
    """The data set without its indices, which a region does not change."""
    others = [k for k, v in ds.variables.items() if not set(region) & set(v.dims)]
    if region and others:
        raise ValueError(
            f"variables {others!r} have no dimension of the region {list(region)}: drop them "
            f"with .drop_vars({others!r})"
        )
    return ds.drop_vars(list(ds.indexes))

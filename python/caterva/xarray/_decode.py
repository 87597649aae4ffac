"""Variables as CF means them. Plain ones, which it says nothing about, are passed on: most of
a large data set are such, and xarray's decoding would take most of the time of opening it."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from xarray import Coordinates, Variable, conventions
from xarray.backends.common import AbstractDataStore
from xarray.coding.times import TIME_UNITS

# Attributes that change what items mean.
_OF_ITEMS = (
    "_FillValue", "missing_value", "scale_factor", "add_offset", "_Unsigned", "dtype",
    "_Encoding", "calendar", "flag_values", "flag_meanings",
)  # fmt: skip
# Attributes that lead to other variables: where one is, all are xarray's affair.
_OF_OTHERS = (
    "coordinates", "bounds", "grid_mapping", "cell_measures", "formula_terms",
    "ancillary_variables", "climatology", "geometry", "node_coordinates", "node_count",
    "part_node_count", "interior_ring",
)  # fmt: skip


def is_plain(variable: Variable) -> bool:
    """Whether decoding would leave the variable's items as they are stored."""
    if variable.dtype.kind not in "iuf" or not variable.dtype.isnative:
        return False
    attributes = variable.attrs
    if any(name in attributes for name in _OF_ITEMS):
        return False
    units = attributes.get("units")
    return units is None or (
        isinstance(units, str) and "since" not in units and units not in TIME_UNITS
    )


def unmasked(variable: Variable) -> Variable:
    """A float whose fill is NaN holds NaN where it is masked already."""
    fill = variable.attrs.get("_FillValue")
    if variable.dtype.kind == "f" and isinstance(fill, np.floating) and fill != fill:
        variable.encoding["_FillValue"] = variable.attrs.pop("_FillValue")
    return variable


def _split(
    variables: dict[Any, Variable], attributes: Any, words: dict[str, Any]
) -> tuple[dict[Any, Variable], dict[Any, Variable]]:
    """The plain variables, and the others."""
    holders = [attributes, *(v.attrs for v in variables.values())]
    leads = any(name in holder for holder in holders for name in _OF_OTHERS)
    if leads or any(v.dtype == "S1" for v in variables.values()):  # those join axes
        return {}, variables
    if words["mask_and_scale"] is True:
        variables = {k: unmasked(v) for k, v in variables.items()}
    plain = {k: v for k, v in variables.items() if is_plain(v)}
    for variable in plain.values():
        variable.encoding.setdefault("dtype", variable.dtype)
    return plain, {k: v for k, v in variables.items() if k not in plain}


def decoded(store: AbstractDataStore, words: dict[str, Any]) -> xr.Dataset:
    """The data set that a store holds; `words` are those of xarray's decoding."""
    loaded: Any = store  # whose functions xarray gives no types
    variables, attributes = loaded.load()
    plain, others = _split(dict(variables), attributes, words)
    decodable, attributes, names = conventions.decode_cf_variables(others, attributes, **words)
    both = plain | dict(decodable)
    every = {k: both[k] for k in variables if k in both}
    coordinates = {k: v for k, v in every.items() if k in names or v.dims == (k,)}
    data = {k: v for k, v in every.items() if k not in coordinates}
    ds = xr.Dataset(data, Coordinates(coordinates, indexes={}), attributes)
    ds.encoding = loaded.get_encoding()
    return ds

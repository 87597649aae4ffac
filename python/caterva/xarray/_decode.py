"""Decoding variables by CF's conventions. Plain variables, which need no decoding, bypass it:
most variables of a large data set are plain, and decoding them takes most of the time."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from xarray import Coordinates, Variable, conventions
from xarray.backends.common import AbstractDataStore
from xarray.coding.times import TIME_UNITS

# Attributes that change the meaning of items.
_OF_ITEMS = (
    "_FillValue", "missing_value", "scale_factor", "add_offset", "_Unsigned", "dtype",
    "_Encoding", "calendar", "flag_values", "flag_meanings",
)  # fmt: skip
# Attributes that refer to other variables: with one of them, xarray decodes all variables.
_OF_OTHERS = (
    "coordinates", "bounds", "grid_mapping", "cell_measures", "formula_terms",
    "ancillary_variables", "climatology", "geometry", "node_coordinates", "node_count",
    "part_node_count", "interior_ring",
)  # fmt: skip


def is_plain(variable: Variable) -> bool:
    """Whether decoding would leave the variable's items as stored."""
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
    """Move a NaN fill value of floats to the encoding: such items are NaN already."""
    fill = variable.attrs.get("_FillValue")
    if variable.dtype.kind == "f" and isinstance(fill, np.floating) and fill != fill:
        variable.encoding["_FillValue"] = variable.attrs.pop("_FillValue")
    return variable


def _split(
    variables: dict[Any, Variable], attributes: Any, words: dict[str, Any]
) -> tuple[dict[Any, Variable], dict[Any, Variable]]:
    """Split the variables into plain and other ones."""
    holders = [attributes, *(v.attrs for v in variables.values())]
    leads = any(name in holder for holder in holders for name in _OF_OTHERS)
    if leads or any(v.dtype == "S1" for v in variables.values()):  # decoding joins an axis
        return {}, variables
    if words["mask_and_scale"] is True:
        variables = {k: unmasked(v) for k, v in variables.items()}
    plain = {k: v for k, v in variables.items() if is_plain(v)}
    for variable in plain.values():
        variable.encoding.setdefault("dtype", variable.dtype)
    return plain, {k: v for k, v in variables.items() if k not in plain}


def decoded(store: AbstractDataStore, words: dict[str, Any]) -> xr.Dataset:
    """Return the data set of a store; `words` are xarray's decoding options."""
    loaded: Any = store  # xarray's methods have no types
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

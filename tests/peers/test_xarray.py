"""xarray's own tests of a backend (`CFEncodedBase` of its test_backends.py, and those of its
trees of data sets), with our backend in place of NetCDF: a directory, and a file.

A data set that a test saves and opens is saved and opened a second time: the result must be
identical, with all of its encoding."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
from xarray.coding.times import _cleanup_netcdf_time_units
from xarray.tests import test_backends as theirs
from xarray.tests import test_backends_datatree as trees
from xarray.tests.conftest import (  # noqa: F401 (fixtures)
    create_test_datatree,
    simple_datatree,
    time_unit,
    use_dask,
)

import caterva
from caterva.xarray import to_caterva
from caterva.xarray._write import Writing

counts = {"saved twice": 0}


def _plain(encoding: dict[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in encoding.items() if k != "source"}


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, float | np.floating) and a != a:
        return bool(b != b)
    return type(a) is type(b) and bool(np.all(a == b))


def _without_what_xarray_changes(one: dict[str, Any], two: dict[str, Any]) -> None:
    """Sets a fill value for all floats that have none, and omits times in units of midnight."""
    given = two.get("_FillValue", 0)
    if "_FillValue" not in one and np.all(given != given):
        del two["_FillValue"]
    if " since " in one.get("units", ""):
        one["units"] = _cleanup_netcdf_time_units(one["units"])


def assert_same_encoding(first: xr.Dataset, second: xr.Dataset) -> None:
    for name in first.variables:
        one = _plain(first.variables[name].encoding)
        two = _plain(second.variables[name].encoding)
        _without_what_xarray_changes(one, two)
        keys = one.keys() | two.keys()
        others = {
            k: (one.get(k), two.get(k)) for k in keys if not _same(one.get(k), two.get(k))
        }
        assert not others, (name, others)
    assert first.encoding.get("unlimited_dims") == second.encoding.get("unlimited_dims")


class Caterva(theirs.CFEncodedBase):
    engine = "caterva"  # type: ignore[assignment]
    suffix = ""

    def _place(self, path: Any) -> str:
        return f"{path}{self.suffix}"

    def save(self, dataset: Any, path: Any, **options: Any) -> None:
        to_caterva(dataset, self._place(path), **options)

    @contextlib.contextmanager
    def open(self, path: Any, **options: Any) -> Iterator[xr.Dataset]:
        with xr.open_dataset(self._place(path), engine="caterva", **options) as ds:
            yield ds

    @contextlib.contextmanager
    def roundtrip(
        self, data: Any, save_kwargs: Any = None, open_kwargs: Any = None, **others: Any
    ) -> Iterator[xr.Dataset]:
        with super().roundtrip(data, save_kwargs, open_kwargs, **others) as ds:
            yield ds
        with (
            super().roundtrip(data, save_kwargs, open_kwargs) as first,
            super().roundtrip(first, {}, open_kwargs) as second,
        ):
            xr.testing.assert_identical(first.load(), second.load())
            assert_same_encoding(first, second)
            counts["saved twice"] += 1

    @contextlib.contextmanager
    def create_store(self) -> Iterator[Any]:
        with tempfile.TemporaryDirectory() as folder:
            with caterva.open_tree(f"{folder}/store.b2d", "w") as tree:
                yield Writing(tree)


class TestDirectory(Caterva):
    suffix = ".b2d"


class TestFile(Caterva):
    suffix = ".b2z"


class TestDataTree:
    """The tests of NetCDF's trees of data sets that apply; the others are about encodings of
    HDF5, files in memory, and deferred writes."""

    engine = "caterva"

    @pytest.fixture(autouse=True, params=[".b2d", ".b2z"])
    def ours(self, request: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        def to_netcdf(tree: xr.DataTree, path: Any, engine: str, **options: Any) -> None:
            to_caterva(tree, f"{path}{request.param}", **options)
            os.rename(f"{path}{request.param}", path)

        monkeypatch.setattr(xr.DataTree, "to_netcdf", to_netcdf)

    test_to_netcdf = trees.NetCDFIOBase.test_to_netcdf
    test_decode_cf = trees.NetCDFIOBase.test_decode_cf
    test_to_netcdf_inherited_coords = trees.NetCDFIOBase.test_to_netcdf_inherited_coords
    test_write_subgroup = trees.NetCDFIOBase.test_write_subgroup
    test_open_datatree_chunks = trees.NetCDFIOBase.test_open_datatree_chunks
    test_open_datatree_specific_group = trees.NetCDFIOBase.test_open_datatree_specific_group


def test_it_was_saved_twice() -> None:
    assert counts["saved twice"] > 100

"""Data sets converted from and to other formats, single arrays, and delayed saves."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest

if importlib.util.find_spec("xarray") is None:
    pytest.skip("xarray is not installed", allow_module_level=True)

import caterva
import caterva.xarray
import xarray as xr
from xarray.testing import assert_equal, assert_identical


def sample() -> xr.Dataset:
    """Compressible items along two dimensions."""
    items = np.arange(600, dtype="f4").reshape(20, 30)
    return xr.Dataset({"v": (("y", "x"), items)}, {"y": np.arange(20)})


STORED: Any = {"codec": "lz4", "level": 7, "filters": ["bitshuffle"], "chunks": (8, 16)}


# ---- Other formats -------------------------------------------------------------------------


@pytest.mark.parametrize("place", ["x.b2d", "x.b2z"])
def test_the_encoding_suits_other_writers_and_is_kept_by_ours(place: str) -> None:
    sample().to_caterva(place, encoding={"v": STORED})
    ds = xr.open_dataset(place)
    assert "filters" not in ds["v"].encoding  # zarr would take them for its own codecs
    ds.to_caterva("again.b2d")
    info = caterva.open("again.b2d::/v").info
    assert (info.codec, info.level, info.filters) == ("lz4", 7, ("bitshuffle",))
    assert caterva.open("again.b2d::/v").chunks == (8, 16)
    given = {"v": {"filters": ["shuffle"]}}
    ds.drop_encoding().to_caterva("given.b2d", encoding=given)
    assert caterva.open("given.b2d::/v").info.filters == ("shuffle",)


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_opened_data_sets_go_to_zarr(zarr_format: Any) -> None:
    pytest.importorskip("zarr")
    sample().to_caterva("x.b2z", encoding={"v": STORED})
    for n, ds in enumerate(
        (xr.open_dataset("x.b2z"), xr.open_dataset("x.b2z").chunk(y=8, x=16))
    ):
        ds.to_zarr(f"{n}.zarr", zarr_format=zarr_format, consolidated=False)
        assert_equal(xr.open_dataset(f"{n}.zarr", engine="zarr", consolidated=False), sample())


@pytest.mark.parametrize("engine", ["h5netcdf", "netcdf4"])
def test_chunks_of_netcdf_are_kept(engine: Any) -> None:
    pytest.importorskip({"h5netcdf": "h5netcdf", "netcdf4": "netCDF4"}[engine])
    sample().to_netcdf("x.nc", engine=engine, encoding={"v": {"chunksizes": (7, 10)}})
    ds = xr.open_dataset("x.nc", engine=engine)
    ds.to_caterva("x.b2d")
    assert caterva.open("x.b2d::/v").chunks == (7, 10)
    ds.isel(y=slice(5)).to_caterva("part.b2d")  # chunks like other parts'
    assert_equal(xr.open_dataset("part.b2d"), sample().isel(y=slice(5)))
    sample().to_caterva("given.b2d", encoding={"v": {"chunksizes": (3, 4)}})
    assert caterva.open("given.b2d::/v").chunks == (3, 4)
    xr.open_dataset("x.b2d").to_netcdf("back.nc", engine=engine)
    assert_equal(xr.open_dataset("back.nc", engine=engine), sample())


# ---- Single arrays -------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["v", None, "y"])
def test_an_array_is_saved_with_its_name(name: Any) -> None:
    array = sample()["v"].rename(name)
    array.to_caterva("x.b2d")
    assert_identical(xr.open_dataarray("x.b2d").load(), array)
    array.isel(y=[0]).assign_coords(y=[20]).to_caterva("x.b2d", append_dim="y")
    assert xr.open_dataarray("x.b2d").shape == (21, 30)


# ---- Delayed saves -------------------------------------------------------------------------


needs_dask = pytest.mark.skipif(
    importlib.util.find_spec("dask") is None, reason="dask is not installed"
)


@needs_dask
@pytest.mark.parametrize("place", ["x.b2d", "x.b2z"])
@pytest.mark.parametrize("scheduler", ["threads", "processes", "synchronous"])
def test_saved_later(place: str, scheduler: str) -> None:
    ds = sample().chunk(y=7, x=11)
    fill = {"v": {"_FillValue": -1.0, "chunks": (8, 16)}}
    later = ds.to_caterva(place, encoding=fill, compute=False)
    before = xr.open_dataset(place, mask_and_scale=False).load()
    assert (before["v"] == -1).all() and (before["y"] == ds["y"]).all()
    more = (ds + 1).assign_coords(y=np.arange(20, 40))
    appended = more.to_caterva(place, append_dim="y", compute=False)
    assert xr.open_dataset(place)["v"].isnull().all()
    for delayed in (appended, later):
        delayed.compute(scheduler=scheduler)
    assert_equal(xr.open_dataset(place), xr.concat([ds, more], "y"))
    region = (ds * 0).drop_vars("y").isel(y=slice(5))
    region.to_caterva(place, region={"y": slice(3, 8)}, compute=False).compute()
    assert int((xr.open_dataset(place)["v"][3:8] == 0).sum()) == 150


@needs_dask
def test_nothing_is_computed_before(tmp_path: Path) -> None:
    import dask.array as da

    def mark(items: Any) -> Any:
        (tmp_path / "computed").touch()
        return items

    items = da.ones((4, 4), chunks=2).map_blocks(mark, dtype="f8", meta=np.empty((0, 0)))
    later = xr.Dataset({"v": (("y", "x"), items)}).to_caterva("x.b2d", compute=False)
    assert not (tmp_path / "computed").exists()
    later.compute()
    assert (tmp_path / "computed").exists() and (xr.open_dataset("x.b2d")["v"] == 1).all()


@needs_dask
def test_later_is_too_late() -> None:
    ds = sample().chunk(y=7)
    later = ds.to_caterva("x.b2d", compute=False)
    sample().isel(y=slice(5)).to_caterva("x.b2d")
    with pytest.raises(caterva.StaleError, match="/v of"):
        later.compute()
    assert_equal(xr.open_dataset("x.b2d"), sample().isel(y=slice(5)))
    assert sample().to_caterva("memory.b2d", compute=False).compute() is None
    assert_equal(xr.open_dataset("memory.b2d"), sample())

"""What is put into variables that are there is what is read then, or it is refused and nothing
changes."""

from __future__ import annotations

import importlib.util
from typing import Any

import numpy as np
import pytest

if importlib.util.find_spec("xarray") is None:
    pytest.skip("xarray is not installed", allow_module_level=True)

import caterva
import caterva.xarray
import pandas as pd
import xarray as xr
from xarray.testing import assert_equal, assert_identical

has_dask = pytest.mark.skipif(
    importlib.util.find_spec("dask") is None, reason="dask is not installed"
)


def hour(k: int, minutes: int = 0) -> xr.Dataset:
    """One step of a series."""
    delay = pd.Timedelta(hours=k, minutes=minutes)
    time = pd.date_range("2020-01-01", periods=1, freq="h") + delay
    return xr.Dataset({"v": ("time", [float(k)])}, {"time": time})


def spans(*hours: float) -> xr.Dataset:
    """Steps along spans of time."""
    lead = pd.to_timedelta(np.array(hours), unit="h")
    return xr.Dataset({"v": ("lead", np.array(hours, "f8"))}, {"lead": lead})


def is_refused(ds: xr.Dataset, match: str, place: str = "s.b2d", **words: Any) -> None:
    """The data set is refused with such a sentence, and all is as it was."""
    before = xr.open_dataset(place, decode_timedelta=True).load()
    with pytest.raises(ValueError, match=match):
        ds.to_caterva(place, **words)
    assert_identical(xr.open_dataset(place, decode_timedelta=True).load(), before)


# ---- Times ---------------------------------------------------------------------------------


@pytest.mark.parametrize("place", ["s.b2d", "s.b2z"])
def test_times_finer_than_their_units_are_refused(place: str) -> None:
    hour(0).to_caterva(place, unlimited_dims="time")
    is_refused(hour(1), "days since 2020-01-01.*T01:00.*hours since", place, append_dim="time")
    hour(24).to_caterva(place, append_dim="time")
    fine = {"time": {"units": "hours since 2020-01-01"}}
    hour(0).to_caterva(place, unlimited_dims="time", encoding=fine)
    for k in range(1, 5):
        hour(k).to_caterva(place, append_dim="time")
    expected = xr.concat([hour(k) for k in range(5)], "time")
    assert_equal(xr.open_dataset(place), expected)
    is_refused(hour(5, 30), "hours since.*05:30.*minutes since", place, append_dim="time")


def test_times_behind_none_at_all() -> None:
    hour(0).isel(time=slice(0)).to_caterva("s.b2d", unlimited_dims="time")
    is_refused(hour(1), "is stored in", append_dim="time")
    whole = pd.Timestamp("2020-01-01")
    ds = hour(0).assign_coords(time=[whole])
    ds.to_caterva("s.b2d", append_dim="time")
    assert_equal(xr.open_dataset("s.b2d"), ds)


def test_times_in_regions() -> None:
    days = pd.date_range("2020-01-01", periods=4)
    ds = xr.Dataset({"when": ("x", days)})
    ds.to_caterva("s.b2d")
    part = ds.isel(x=[1, 2])
    is_refused(part + pd.Timedelta(hours=1), "when", region={"x": slice(1, 3)})
    (part + pd.Timedelta(days=9)).to_caterva("s.b2d", region={"x": slice(1, 3)})
    days = days[[0]].append([days[1:3] + pd.Timedelta(days=9), days[3:]])
    assert_equal(xr.open_dataset("s.b2d"), xr.Dataset({"when": ("x", days)}))


def test_spans_of_time() -> None:
    spans(24, 48).to_caterva("s.b2d", unlimited_dims="lead")
    is_refused(spans(49), "'days'.*'hours'", append_dim="lead")
    spans(72).to_caterva("s.b2d", append_dim="lead")
    assert_equal(xr.open_dataset("s.b2d", decode_timedelta=True), spans(24, 48, 72))


def test_times_in_few_bits_and_none_in_between() -> None:
    narrow = {"time": {"units": "seconds since 2020-01-01", "dtype": "i4"}}
    hour(0).to_caterva("s.b2d", encoding=narrow)
    is_refused(hour(24 * 365 * 100), "seconds since", append_dim="time")
    missing = hour(0).assign(when=("time", np.array(["NaT"], "M8[ns]")))
    missing.to_caterva("t.b2d")
    missing.assign_coords(time=hour(24)["time"].values).to_caterva("t.b2d", append_dim="time")
    assert np.isnat(xr.open_dataset("t.b2d")["when"].values).tolist() == [True, True]


@has_dask
def test_times_that_are_computed_later() -> None:
    xr.Dataset({"when": ("x", pd.date_range("2020-01-01", periods=4))}).to_caterva("s.b2d")
    later = xr.Dataset({"when": ("x", pd.date_range("2020-01-01", periods=4, freq="h"))})
    is_refused(later.chunk(x=2), "units", append_dim="x")


# ---- Items of other kinds ------------------------------------------------------------------


TEXT = np.array(["a", "b"], object)
DATES = pd.date_range("2020-01-01", periods=2)


@pytest.mark.parametrize(
    ("there", "new"),
    [
        (np.array([1, 2], "i1"), np.array([300, 1])),
        (np.array([1, 2], "u2"), np.array([1, -1])),
        (np.array([1, 2], "u8"), np.array([1, -1])),
        (np.array([1, 2], "i8"), np.array([1, 1 << 63], "u8")),
        (np.array([1, 2], "i4"), DATES),
        (np.array([1, 2], "i4"), np.array([1.5, 2])),
        (np.array([1, 2], "i4"), np.array([True, False])),
        (np.array([True, False]), np.array([1, 0])),
        (np.array([1, 2], "f4"), np.array([1, (1 << 24) + 1])),
        (np.array([1, 2], "f8"), np.array([1, (1 << 53) + 1])),
        (np.array([1, 2], "f4"), np.array([1, 1e300])),
        (np.array([1, 2], "f4"), np.array([1j, 1])),
        (np.array([1, 2], "f4"), TEXT),
        (DATES, np.array([1, 2])),
        (DATES, DATES - DATES[0]),
        (DATES - DATES[0], np.array([1, 2])),
        (DATES - DATES[0], DATES),
        (TEXT, np.array([1, 2])),
        (TEXT, np.array([b"a", b"b"], object)),
        (np.array(["a", "b"]), np.array([1.5, 2])),
        (np.array([b"a", b"b"], object), TEXT),
    ],
)
def test_what_variables_cannot_hold_is_refused(there: Any, new: Any) -> None:
    xr.Dataset({"v": ("x", there)}).to_caterva("s.b2d")
    ds = xr.Dataset({"v": ("x", new)})
    is_refused(ds, "'v'", append_dim="x")
    is_refused(ds, "'v'", region={"x": slice(0, 2)})
    if importlib.util.find_spec("dask") is not None and np.asarray(new).dtype != object:
        is_refused(ds.chunk(x=1), "'v'", append_dim="x")


@pytest.mark.parametrize(
    ("there", "new"),
    [
        (np.array([1, 2], "i1"), np.array([-128, 127])),
        (np.array([1, 2], "f4"), np.array([0.1, np.inf])),
        (np.array([1, 2], "f8"), np.array([1, 1 << 53])),
        (np.array([1, 2], "c8"), np.array([1, 7])),
        (np.array([1, 2], ">i4"), np.array([3, 4])),
        (TEXT, np.array(["longer", "text"])),
        (np.array(["a", "b"]), np.array(["longer", "text"], object)),
        (np.array([True, False]), np.array([False, True])),
    ],
)
def test_what_they_can_hold_is_put_there(there: Any, new: Any) -> None:
    xr.Dataset({"v": ("x", there)}).to_caterva("s.b2d")
    xr.Dataset({"v": ("x", new)}).to_caterva("s.b2d", append_dim="x")
    again = xr.open_dataset("s.b2d")["v"].values
    assert (again == np.concatenate([there, new.astype(again.dtype)])).all()


def test_packed_items() -> None:
    packed: dict[str, Any] = {"dtype": "i2", "scale_factor": 0.25, "add_offset": 10.0}
    ds = xr.Dataset({"v": ("x", [1.0, 2.0])})
    for fill in ({}, {"_FillValue": -9999}):
        ds.to_caterva("s.b2d", encoding={"v": packed | fill})
        for value in (1e9, 10 + 0.25 * 32768, 10 - 0.25 * 32769, np.inf):
            is_refused(ds * 0 + value, "'v' is stored as int16", append_dim="x")
        edge = ds * 0 + (10 + 0.25 * 32767)
        edge.to_caterva("s.b2d", append_dim="x")
        assert_equal(xr.open_dataset("s.b2d"), xr.concat([ds, edge], "x"))
    (ds * np.nan).to_caterva("s.b2d", append_dim="x")
    assert int(xr.open_dataset("s.b2d")["v"].isnull().sum()) == 2
    unsigned = {"dtype": "i1", "_Unsigned": "true", "_FillValue": -1}
    ds.to_caterva("u.b2d", encoding={"v": unsigned})
    is_refused(ds * 300, "'v' is stored as uint8", "u.b2d", append_dim="x")
    (ds * 100).to_caterva("u.b2d", append_dim="x")
    assert xr.open_dataset("u.b2d")["v"].values.tolist() == [1, 2, 100, 200]
    assert caterva.open("u.b2d::/v").dtype == np.int8


# ---- Beside an append ------------------------------------------------------------------------


@pytest.mark.parametrize("what", ["append", "replace", "group"])
def test_a_commit_while_a_data_set_is_opened(
    what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Variables are opened one after another, and a commit comes between them."""
    group = "n/m" if what == "group" else None
    first = hour(0).assign(other=("time", [0]))
    first.to_caterva("s.b2d", group=group)
    open_variable = caterva.xarray.CatervaStore.open_variable
    left = [3]

    def commit() -> None:
        left[0] -= 1
        if what == "append":
            (first * 2).assign_coords(time=hour(24)["time"].values).to_caterva(
                "s.b2d", append_dim="time"
            )
        else:
            new = hour(24 * left[0]).isel(time=[0] * (left[0] + 2))
            new.to_caterva("s.b2d", "w", group=group)

    def open_and_commit(store: Any, name: str) -> Any:
        variable = open_variable(store, name)
        if type(store) is caterva.xarray.CatervaStore and left[0] and name != "v":
            commit()
        return variable

    monkeypatch.setattr(caterva.xarray.CatervaStore, "open_variable", open_and_commit)
    seen = xr.open_dataset("s.b2d", group=group).load()
    assert left == [0]
    assert_identical(seen, xr.open_dataset("s.b2d", group=group).load())
    left[0] = 2
    groups = xr.open_groups("s.b2d")[f"/{group or ''}"].load()
    assert left == [0]
    assert_identical(groups, xr.open_dataset("s.b2d", group=group).load())

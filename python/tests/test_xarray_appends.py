"""Items written to existing variables are read back as given, or are refused without any
change."""

from __future__ import annotations

import importlib.util
import os
import warnings
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
    """Steps along durations."""
    lead = pd.to_timedelta(np.array(hours), unit="h")
    return xr.Dataset({"v": ("lead", np.array(hours, "f8"))}, {"lead": lead})


def is_refused(ds: xr.Dataset, match: str, place: str = "s.b2d", **words: Any) -> None:
    """Check that the data set is refused with such a message and that nothing has changed."""
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


@pytest.mark.parametrize("unit", ["ns", "us", "ms", "s"])
def test_times_in_floats_are_read_back_to_the_microsecond(unit: str) -> None:
    def at(text: str) -> xr.Dataset:
        return xr.Dataset({"when": ("x", np.array([text], f"M8[{unit}]"))})

    days = {"when": {"units": "days since 1900-01-01", "dtype": "f8"}}
    at("2000-01-01").to_caterva("s.b2d", encoding=days)
    for minute in range(1, 60, 7):
        later = at(f"2000-01-01T00:{minute:02}")
        later.to_caterva("s.b2d", append_dim="x")
        off = xr.open_dataset("s.b2d")["when"].values[-1] - later["when"].values[0]
        assert abs(off) <= np.timedelta64(1, "us")
    few_bits = {"when": {"units": "days since 1900-01-01", "dtype": "f4"}}
    at("2000-01-01").to_caterva("s.b2d", encoding=few_bits)
    is_refused(at("2000-01-01T00:01"), "finer units", append_dim="x")
    at("2000-01-02").to_caterva("s.b2d", append_dim="x")


@has_dask
@pytest.mark.parametrize("kind", ["times", "spans"])
def test_units_alone_of_times_that_are_computed_later(kind: str) -> None:
    times = pd.date_range("2020-01-01", periods=4, freq="h")
    items, units = times, "hours since 2020-01-01"
    if kind == "spans":
        items, units = times - times[0], "hours"
    ds = xr.Dataset({"when": ("x", items)})
    ds.chunk(x=2).to_caterva("s.b2d", encoding={"when": {"units": units}})
    assert caterva.open("s.b2d::/when").dtype == "i8"
    assert_equal(xr.open_dataset("s.b2d", decode_timedelta=True), ds)
    half = ds.assign(when=("x", items + pd.Timedelta(minutes=30)))
    with pytest.raises(ValueError, match="hours"):
        half.chunk(x=2).to_caterva("t.b2d", encoding={"when": {"units": units}})


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


@pytest.mark.parametrize("mark", ["_FillValue", "missing_value"])
def test_integers_beyond_the_stored_sign_are_refused(mark: str) -> None:
    """With a fill value they are read as floats, and casting these back to integers wraps."""
    for dtype, wide in (("i2", "u4"), ("i4", "u4"), ("i8", "u8")):
        ds = xr.Dataset({"v": ("x", np.array([1, 2], dtype))})
        ds.to_caterva("s.b2d", encoding={"v": {"dtype": dtype, mark: 5}})
        beyond = np.array([(1 << 8 * np.dtype(wide).itemsize) - 39, 6], wide)
        is_refused(xr.Dataset({"v": ("x", beyond)}), "'v'", append_dim="x")
        is_refused(xr.Dataset({"v": ("x", beyond)}), "'v'", region={"x": slice(0, 2)})
        least = np.array([np.iinfo(dtype).min, 3], dtype)
        xr.Dataset({"v": ("x", least)}).to_caterva("s.b2d", append_dim="x")
        assert xr.open_dataset("s.b2d")["v"].values.tolist() == [1, 2, *least]


def test_fewer_characters_than_are_stored() -> None:
    characters = {"v": {"dtype": "S1"}}
    xr.Dataset({"v": ("x", ["abc"])}).to_caterva("s.b2d", encoding=characters)
    for text in ("ab", "x", "äb"):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            xr.Dataset({"v": ("x", [text])}).to_caterva("s.b2d", append_dim="x")
    assert xr.open_dataset("s.b2d")["v"].values.tolist() == ["abc", "ab", "x", "äb"]
    is_refused(xr.Dataset({"v": ("x", ["abcd"])}), "'v'", append_dim="x")


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


# ---- Concurrent commits ----------------------------------------------------------------------


@pytest.mark.parametrize("what", ["append", "replace", "group"])
def test_a_commit_while_a_data_set_is_opened(
    what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Variables are opened one after another; a commit happens between them."""
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


# ---- Reading back ----------------------------------------------------------------------------


DAYS: Any = {"units": "days since 2000-01-01"}
BYTE: Any = {"dtype": "i1", "scale_factor": 0.5, "_FillValue": -1}
UNSIGNED: Any = {"dtype": "i1", "_Unsigned": "true", "_FillValue": -1}
CASES: list[tuple[Any, Any, Any, bool]] = [
    # existing items, their encoding, the appended items, whether they fit
    (np.array(["2000-01-01"], "M8[ns]"), DAYS, np.array(["2024-06-01T00:10"], "M8[ns]"), False),
    (np.array(["2000-01-01"], "M8[ns]"), DAYS, np.array(["2024-06-02"], "M8[s]"), True),
    (np.array(["2000-01-01"], "M8[ns]"), DAYS, np.array(["NaT"], "M8[ns]"), True),
    (
        np.array(["2000-01-01"], "M8[ns]"),
        {**DAYS, "dtype": "i4"},
        np.array(["NaT"], "M8[ns]"),
        False,
    ),
    (
        np.array(["2000-01-01"], "M8[ns]"),
        {**DAYS, "dtype": "i4", "_FillValue": -1},
        np.array(["NaT", "1999-12-30"], "M8[ns]"),
        True,
    ),
    (
        np.array(["2000-01-01"], "M8[ns]"),
        {**DAYS, "dtype": "i4", "_FillValue": -1},
        np.array(["1999-12-31"], "M8[ns]"),  # stored as -1
        False,
    ),
    (
        np.array(["2000-01-01"], "M8[ns]"),
        {**DAYS, "dtype": "f8"},
        DATES.values + np.timedelta64(6, "h"),
        True,
    ),
    (np.array([1, 2], "m8[D]").astype("m8[ns]"), {}, np.array([5], "m8[h]"), False),
    (np.array([1, 2], "m8[D]").astype("m8[ns]"), {}, np.array([5], "m8[D]"), True),
    (np.array([1.0]), BYTE, np.array([63.5, -64, np.nan, 0.1]), True),
    (np.array([1.0]), BYTE, np.array([-0.5]), False),  # stored as the fill value
    (np.array([1.0]), BYTE, np.array([64.0]), False),
    (np.array([1.0]), {"dtype": "i2", "_FillValue": 0}, np.array([7.0, np.nan]), True),
    (np.array([1.0]), {"dtype": "i2", "_FillValue": 0}, np.array([0.0]), False),
    (np.array([1.0]), {"dtype": "i2", "_FillValue": 0}, np.array([7.4]), False),
    (np.array([1.0]), {"_FillValue": -9.0}, np.array([-9.0]), False),
    (np.array([1.0]), {"_FillValue": -9.0}, np.array([np.nan, np.inf, 1e300]), True),
    (np.array([1.0]), {"missing_value": -9.0}, np.array([-9.0]), False),
    (np.array([1.0]), UNSIGNED, np.array([254, 128]), True),
    (np.array([1.0]), UNSIGNED, np.array([255]), False),  # stored as the fill value
    (np.array([1.0]), UNSIGNED, np.array([-2]), False),
    (np.array([True]), {}, np.array(["False"], object), False),
    (np.array([True]), {}, np.array([False, True]), True),
    (np.array([1.0]), {}, np.array(["1.5"], object), False),
    (np.array(["a"]), {}, np.array(["longer", ""]), True),
    (TEXT, {}, np.array(["longer\0"], object), False),
]


@pytest.mark.parametrize("later", ["now", pytest.param("later", marks=has_dask)])
@pytest.mark.parametrize("number", range(len(CASES)))
def test_what_is_appended_is_read_back_or_refused(number: int, later: str) -> None:
    there, encoding, new, fits = CASES[number]
    old = xr.Dataset({"v": ("x", there)})
    ds = xr.Dataset({"v": ("x", new)})
    if new.dtype.kind == "m":
        ds = ds.astype("m8[ns]")
    given = ds.chunk(x=1) if later == "later" else ds
    for place in ("s.b2d", "s.b2z"):
        old.to_caterva(place, encoding={"v": encoding})
        before = xr.open_dataset(place, decode_timedelta=True).load()
        if not fits:
            is_refused(given, "'v'", place, append_dim="x")
            is_refused(given.isel(x=[0]), "'v'", place, region={"x": slice(0, 1)})
            continue
        given.to_caterva(place, append_dim="x")
        again = xr.open_dataset(place, decode_timedelta=True).load()
        assert_identical(again.isel(x=slice(there.size)), before)
        added = again["v"].values[there.size :]
        if "scale_factor" in encoding:
            np.testing.assert_allclose(added, new, atol=encoding["scale_factor"] / 2)
        else:
            np.testing.assert_array_equal(added, ds["v"].values.astype(added.dtype))


@pytest.mark.parametrize("later", ["now", pytest.param("later", marks=has_dask)])
@pytest.mark.parametrize("calendar", ["standard", "noleap", "360_day"])
def test_dates_of_calendars(calendar: str, later: str) -> None:
    pytest.importorskip("cftime")

    def dates(start: str, freq: str) -> xr.Dataset:
        time = xr.date_range(start, periods=2, freq=freq, calendar=calendar, use_cftime=True)
        ds = xr.Dataset({"when": ("x", np.array(time))})
        return ds.chunk(x=1) if later == "later" else ds

    dates("2000-01-01", "D").compute().to_caterva("s.b2d")
    is_refused(dates("2001-01-01", "h").isel(x=[1]), "when", append_dim="x")
    is_refused(dates("2001-01-01", "h"), "when", append_dim="x")
    is_refused(dates("2001-01-01", "h"), "when", region={"x": slice(0, 2)})
    other = np.array(xr.date_range("2001-01-01", periods=2, calendar="julian", use_cftime=True))
    is_refused(xr.Dataset({"when": ("x", other)}), "when", append_dim="x")
    dates("2001-01-01", "D").to_caterva("s.b2d", append_dim="x")
    coder = xr.coders.CFDatetimeCoder(use_cftime=True)
    again = xr.open_dataset("s.b2d", decode_times=coder)
    expected = xr.concat([dates("2000-01-01", "D"), dates("2001-01-01", "D")], "x")
    assert_equal(again.compute(), expected.compute())


@has_dask
@pytest.mark.parametrize("scheduler", ["threads", "processes"])
def test_a_block_that_does_not_fit_leaves_the_last_state(scheduler: str) -> None:
    import dask

    times = pd.date_range("2000-01-01", periods=40)
    ds = xr.Dataset({"a": ("x", np.arange(40.0)), "when": ("x", times)})
    ds.to_caterva("s.b2d")
    later = ds.copy()
    later["when"] = ("x", [*times[:-1], times[-1] + pd.Timedelta(minutes=1)])
    with dask.config.set(scheduler=scheduler):
        is_refused(later.chunk(x=4), "when", append_dim="x")
        is_refused(later.chunk(x=4), "when", region={"x": slice(0, 40)})
        ds.chunk(x=4).to_caterva("s.b2d", append_dim="x")
    assert_equal(xr.open_dataset("s.b2d"), xr.concat([ds, ds], "x"))


@pytest.mark.parametrize("place", ["s.b2d", "s.b2z"])
@pytest.mark.parametrize("mode", ["a", "a-"])
def test_an_append_has_all_variables_of_the_dimension(place: str, mode: str) -> None:
    ds = hour(0).assign(rain=("time", [1.0]), sun=("time", [2.0]), height=3.0)
    ds.to_caterva(place)
    later = ds.assign_coords(time=hour(24)["time"].values)
    missing = r"variables \['rain', 'sun'\]"
    is_refused(later.drop_vars(["rain", "sun"]), missing, place, append_dim="time", mode=mode)
    is_refused(later.drop_vars("time"), r"\['time'\]", place, append_dim="time", mode=mode)
    part = ds[["rain"]].drop_vars(["time", "height"], errors="ignore") + 1
    part.to_caterva(place, region={"time": slice(0, 1)})  # regions need not have all variables
    later.drop_vars("height").to_caterva(place, append_dim="time", mode=mode)
    assert xr.open_dataset(place)["rain"].values.tolist() == [2.0, 1.0]


# ---- Lengths ---------------------------------------------------------------------------------


@pytest.mark.parametrize("place", ["s.b2d", "s.b2z"])
def test_variables_that_are_replaced_keep_the_lengths_of_dimensions(place: str) -> None:
    xr.Dataset({"a": ("t", np.arange(4.0)), "b": ("t", np.arange(4))}).to_caterva(place)
    for mode in ("r+", "a"):
        is_refused(xr.Dataset({"a": ("t", np.arange(5.0))}), "'t'", place, mode=mode)
    xr.Dataset({"a": ("t", np.ones(4))}).to_caterva(place, mode="r+")
    assert xr.open_dataset(place)["a"].values.tolist() == [1, 1, 1, 1]


@pytest.mark.parametrize("place", ["s.b2d", "s.b2z"])
def test_groups_of_one_data_tree_grow_together(place: str) -> None:
    def at(*steps: int) -> xr.DataTree:
        values = np.array(steps, "f8")
        top = xr.Dataset({"a": ("t", values)}, {"t": values})
        below = xr.Dataset({"w": ("t", -values)})
        other = xr.Dataset({"o": ("u", [1.0, 2.0])})
        return xr.DataTree.from_dict({"/": top, "/g": below, "/g/h": below, "/o": other})

    at(0, 1).to_caterva(place)
    alone = at(2)["/"].to_dataset()
    with pytest.raises(ValueError, match=r"'/g.*append a DataTree with both"):
        alone.to_caterva(place, append_dim="t")
    with pytest.raises(ValueError, match=r"group '/(g/h)?' of "):
        at(2)["g"].to_dataset(inherit=False).to_caterva(place, append_dim="t", group="g")
    assert xr.open_datatree(place)["g/h/w"].values.tolist() == [0, -1]
    at(2).filter(lambda node: "o" not in node.data_vars).to_caterva(place, append_dim="t")
    assert xr.open_datatree(place)["g/h/w"].values.tolist() == [0, -1, -2]
    xr.Dataset({"o": ("u", [3.0])}).to_caterva(place, append_dim="u", group="o")


# ---- Messages and attributes -----------------------------------------------------------------


def test_attributes_that_say_how_texts_are_stored_are_refused() -> None:
    for key in ("_vlen", "_Encoding"):
        ds = xr.Dataset({"v": ("x", [1, 2], {key: "text"})})
        with pytest.raises(ValueError, match=f"'v' has an attribute '{key}'"):
            ds.to_caterva("s.b2d")
    assert not os.path.exists("s.b2d")
    xr.Dataset({"v": ("x", [b"abc"], {"_Encoding": "utf-8"})}).to_caterva("s.b2d")
    assert xr.open_dataset("s.b2d")["v"].values.tolist() == ["abc"]


def test_messages_name_the_path_and_the_variable() -> None:
    ds = xr.Dataset({"v": ("x", [1])})
    ds.to_caterva("s.b2z")
    for words in ({"append_dim": "q"}, {"mode": "r+"}):
        new = ds if "append_dim" in words else ds.rename(v="w")
        with pytest.raises(ValueError, match=r"s\.b2z") as caught:
            new.to_caterva("s.b2z", **words)
        assert "tmp-" not in str(caught.value)
    with pytest.raises(ValueError, match="variable 's' has"):
        xr.Dataset({"s": ("x", np.array(["a\0"], object))}).to_caterva("t.b2d")

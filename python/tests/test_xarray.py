"""Data sets of xarray in trees: saved, opened and appended to, completely or not at all.

xarray's own tests of a backend run in tests/peers."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import pickle
import shutil
from pathlib import Path
from typing import Any

import blosc2
import caterva
import numpy as np
import pytest
from support import WINDOWS, needs_fork, run_program

if importlib.util.find_spec("xarray") is None:
    pytest.skip("xarray is not installed", allow_module_level=True)

import caterva.xarray
import pandas as pd
import xarray as xr
from caterva.xarray import to_caterva
from xarray.testing import assert_equal, assert_identical

PLACES = ("x.b2d", "x.b2z")
has_dask = pytest.mark.skipif(
    importlib.util.find_spec("dask") is None, reason="dask is not installed"
)


def days(start: int = 0, n: int = 4) -> xr.Dataset:
    """Steps of a series; other calls return the next ones."""
    time = pd.date_range("2000-01-01", periods=start + n)[start:]
    items = np.arange(start * 6, (start + n) * 6, dtype="f4").reshape(n, 2, 3) / 4
    return xr.Dataset(
        {
            "t2m": (("time", "lat", "lon"), items, {"units": "K"}),
            "total": ("time", items.sum((1, 2))),
            "name": ("time", np.array([f"day {i}" for i in range(start, start + n)], object)),
        },
        {"time": time, "lat": [10.0, 20.0], "lon": [1, 2, 3], "crs": 0},
        {"title": "days", "n": np.int16(3)},
    )


PACKED = {
    "t2m": {
        "dtype": "i2",
        "scale_factor": 0.25,
        "add_offset": 1.0,
        "_FillValue": np.int16(-999),
    }
}


# ---- Saving and opening ----------------------------------------------------------------


@pytest.mark.parametrize("place", PLACES)
def test_what_is_saved_is_opened(place: str) -> None:
    ds = days()
    ds.to_caterva(place, encoding=PACKED, unlimited_dims="time")
    with xr.open_dataset(place) as again:
        assert_identical(ds, again)
        assert again["t2m"].encoding["scale_factor"] == 0.25
        assert type(again["t2m"].encoding["_FillValue"]) is np.int16
        assert again.encoding["unlimited_dims"] == {"time"}
        assert type(again.attrs["n"]) is np.int16
        again.caterva.save(f"second-{place}")
    assert_identical(xr.open_dataset(f"second-{place}"), ds)
    stored = caterva.open(f"{place}::/t2m")
    assert stored.dtype == np.int16 and stored.dims == ("time", "lat", "lon")
    assert stored.attrs["scale_factor"] == 0.25 and stored.info.fill_value == -999
    assert xr.backends.list_engines()["caterva"].supports_groups


def test_every_kind_of_item() -> None:
    rng = np.random.default_rng(1)
    ds = xr.Dataset({"n": 5, "when": ("y", pd.to_datetime(["1999-12-31 23:59:59.5", "NaT"]))})
    for dtype in ("i1", "u1", ">i2", "u4", "i8", "u8", "f2", "f4", ">f8", "c8", "c16", "?"):
        ds[f"v_{np.dtype(dtype).name}"] = ("x", rng.integers(0, 2, 7).astype(dtype))
    ds["texts"] = ("y", np.array(["ä", ""], object))
    ds["fixed"] = ("y", np.array(["ab", "cde"]))
    ds["bytes"] = ("y", np.array([b"a", b"xyz"], object))
    ds["fixed_bytes"] = ("y", np.array([b"a", b"xyz"]))
    ds["letters"] = ("y", np.array([b"a", b"b"]))
    ds["spans"] = ("y", pd.to_timedelta(["1h", "2h"]))
    ds["nothing"] = (("none", "x"), np.zeros((0, 7), "f4"))
    ds["scalar_text"] = "text"
    ds.to_caterva("x.b2d")
    again = xr.open_dataset("x.b2d", decode_timedelta=True)
    assert_identical(ds, again)
    assert again["fixed"].dtype == "<U3" and again["texts"].dtype == object
    assert again["fixed_bytes"].dtype == "S3" and again["v_complex64"].dtype == np.complex64
    again.load().to_caterva("y.b2z")
    assert_identical(ds, xr.open_dataset("y.b2z", decode_timedelta=True))
    with pytest.raises(ValueError, match="ends with a NUL"):
        xr.Dataset({"t": ("y", np.array(["a\0"], object))}).to_caterva("z.b2d")
    assert not Path("z.b2d").exists()


def test_attributes_without_walls() -> None:
    attributes: dict[str, Any] = {f"a{i}": i for i in range(200)}
    attributes |= {
        "straight_vertical_longitude_from_pole": 1.5,
        "map": {"nested": [1, {"x": None}]},
        "array": np.arange(3, dtype="i2"),
        "texts": np.array(["a", "b"], object),
        "scalar": np.float32(2),
        "long": "x" * 100_000,
    }
    ds = xr.Dataset({"x": ("t", [1, 2], attributes)}, attrs=attributes)
    ds.to_caterva("x.b2z")
    again = xr.open_dataset("x.b2z")
    for there in (again.attrs, again["x"].attrs):
        assert set(there) == set(attributes) and there["map"] == attributes["map"]
        assert type(there["scalar"]) is np.float32 and there["array"].dtype == np.int16
        assert there["texts"] == ["a", "b"] and there["long"] == attributes["long"]
    for wrong, error in (({"o": object()}, TypeError), ({"dims": 3}, ValueError)):
        with pytest.raises(error, match=r"'x' has an attribute 'dims'|'o' of variable 'x'"):
            xr.Dataset({"x": ("t", [1], wrong)}).to_caterva("y.b2d")
    deep: Any = 1
    for _ in range(101):
        deep = [deep]
    with pytest.raises(ValueError, match="nested too deep") as caught:
        xr.Dataset({"x": ("t", [1], {"deep": deep})}).to_caterva("y.b2d")
    assert caught.value.__notes__ == ["attribute 'deep' of variable 'x'"]
    assert not Path("y.b2d").exists()


@has_dask
@pytest.mark.parametrize("place", PLACES)
def test_dask_reads_and_writes(place: str) -> None:
    items = np.arange(5000.0).reshape(50, 100)
    ds = xr.Dataset({"x": (("a", "b"), items)}).chunk(a=7, b=31)
    ds.to_caterva(place, encoding={"x": {"chunks": (16, 50), "blocks": (4, 25)}})
    again = xr.open_dataset(place, chunks={})
    assert again["x"].chunks == ((16, 16, 16, 2), (50, 50))
    assert again["x"].encoding["preferred_chunks"] == {"a": 16, "b": 50}
    assert_equal(again, ds)
    import dask

    with dask.config.set(scheduler="processes"):
        assert float(again["x"].sum()) == items.sum()
        (again + 1).to_caterva("processes.b2d")
    assert_equal(xr.open_dataset("processes.b2d"), ds + 1)


def test_several_at_once() -> None:
    paths = []
    for i in range(5):
        paths.append(f"part{i}.b2z")
        days(4 * i).drop_vars("crs").to_caterva(paths[-1])
    if importlib.util.find_spec("dask") is not None:
        with xr.open_mfdataset(paths, combine="by_coords") as ds:
            assert_equal(ds.compute(), days(0, 20).drop_vars("crs"))


def test_reading_without_waiting() -> None:
    days().to_caterva("x.b2z")

    async def load() -> list[Any]:
        ds = xr.open_dataset("x.b2z")
        loads = (
            ds["t2m"].load_async(),
            ds["t2m"].isel(lat=[1, 0], lon=[2, 0]).load_async(),
            ds["t2m"].isel(lat=xr.DataArray([1, 0], dims="p"), lon=2).load_async(),
            ds["name"].load_async(),
        )
        return list(await asyncio.gather(*loads))

    if not hasattr(xr.DataArray, "load_async"):
        pytest.skip(f"xarray {xr.__version__} loads nothing asynchronously")
    whole, outer, points, names = asyncio.run(load())
    t2m = days()["t2m"]
    assert_equal(whole, t2m)
    assert_equal(outer, t2m.isel(lat=[1, 0], lon=[2, 0]))
    assert_equal(points, t2m.isel(lat=xr.DataArray([1, 0], dims="p"), lon=2))
    assert names[1].item() == "day 1"


def test_selections_are_read_as_they_stand() -> None:
    rng = np.random.default_rng(3)
    ds = xr.Dataset({"x": (("a", "b", "c"), rng.random((9, 8, 7)))})
    ds.to_caterva("x.b2d")
    for n in range(150):
        lazy = xr.open_dataset("x.b2d", cache=False)["x"]
        kept = ds["x"]
        for _ in range(rng.integers(1, 3)):
            words: dict[Any, Any] = {}
            for dim in kept.dims:
                length = kept.sizes[dim]
                kind = rng.integers(0, 5)
                if kind == 0 and length:
                    words[dim] = int(rng.integers(-length, length))
                elif kind == 1:
                    step = int(rng.choice([-2, -1, 1, 3]))
                    words[dim] = slice(None, None, step)
                elif kind == 2:
                    words[dim] = rng.integers(0, max(length, 1), 3 if length else 0)
                elif kind == 3 and length and n % 2:
                    words[dim] = xr.DataArray(rng.integers(0, length, 4), dims="p")
            lazy, kept = lazy.isel(words), kept.isel(words)
            if n % 2:
                break
        assert_equal(lazy, kept), words


# ---- Adding -------------------------------------------------------------------------------


@pytest.mark.parametrize("place", PLACES)
def test_appended_along_a_dimension(place: str) -> None:
    days(0).to_caterva(place, encoding=PACKED, unlimited_dims="time")
    for start in (4, 8):
        days(start).to_caterva(place, append_dim="time")
    long = days(12)
    long["name"] = ("time", np.array(["a longer name than before"] * 4, object))
    to_caterva(long, place, "a-", append_dim="time")
    ds = xr.open_dataset(place)
    assert_equal(ds.isel(time=slice(12)), days(0, 12))
    assert_equal(ds.isel(time=slice(12, None)), long)
    assert caterva.open(f"{place}::/t2m").dtype == np.int16
    assert ds.attrs == days().attrs and ds.encoding["unlimited_dims"] == {"time"}


def test_what_does_not_fit_is_refused_and_nothing_changes() -> None:
    days().to_caterva("x.b2d")
    next_days = days(4)
    for ds, words, error in (
        (next_days, {"append_dim": "height"}, "append_dim"),
        (next_days.isel(lon=[0, 1]), {"append_dim": "time"}, "lon"),
        (next_days.assign(new=("time", [1, 2, 3, 4])), {"append_dim": "time"}, "new"),
        (next_days.assign(total=("time", [1j] * 4)), {"append_dim": "time"}, "total"),
        (next_days, {"append_dim": "time", "encoding": PACKED}, "encoding"),
        (next_days, {"append_dim": "time", "mode": "w"}, "append_dim"),
        (next_days, {"append_dim": "time", "mode": "r+"}, "append_dim"),
        (next_days.isel(lon=[0, 1]), {"mode": "a"}, "Unable to update size"),
        (days().assign(new=1), {"mode": "r+"}, "new"),
        (next_days, {"region": {"height": slice(2)}}, "height"),
        (next_days, {"region": {"time": slice(0, 4, 2)}}, "step"),
        (next_days, {"region": {"time": slice(0, 2)}}, "crs"),
        (next_days[["t2m"]].drop_vars("crs"), {"region": {"time": slice(0, 2)}}, "time"),
        (days(), {"region": "auto", "append_dim": "time", "mode": "a"}, "together"),
        (days(), {"mode": "w-"}, "exists already"),
        (days(), {"mode": "q"}, "mode is one of"),
    ):
        with pytest.raises((ValueError, FileExistsError), match=error):
            to_caterva(ds, "x.b2d", **words)
        assert_identical(xr.open_dataset("x.b2d"), days())
    with pytest.raises(KeyError, match="does not have"):
        days(2)[["t2m"]].drop_vars("crs").to_caterva("x.b2d", region="auto")
    for path in ("x.nc", "new"):
        with pytest.raises(ValueError, match=r"\.b2d or \.b2z"):
            days().to_caterva(path)
    with pytest.raises(FileNotFoundError):
        days().to_caterva("no.b2d", mode="r+")
    assert sorted(os.listdir()) == ["x.b2d"]


def test_a_failure_in_the_midst_leaves_all_as_it_was() -> None:
    """The last variable cannot be stored: no new data set and no part of one appears."""
    days().to_caterva("x.b2d")
    days().to_caterva("x.b2z")
    before = Path("x.b2z").read_bytes()
    bad = days(4)
    bad["name"] = ("time", np.array(["ends with\0"] * 4, object))
    for words in ({"append_dim": "time"}, {"mode": "a"}, {"mode": "w"}):
        for place in PLACES:
            with pytest.raises(ValueError, match="NUL"):
                bad.to_caterva(place, **words)
            assert_identical(xr.open_dataset(place), days())
    with pytest.raises(ValueError, match="NUL"):
        bad.to_caterva("new.b2d")
    assert Path("x.b2z").read_bytes() == before and sorted(os.listdir()) == ["x.b2d", "x.b2z"]


def test_regions() -> None:
    whole = days(0, 12).drop_vars(["crs", "name"])
    (whole * 0).to_caterva("x.b2d")
    for start in (8, 0, 4):
        part = days(start).drop_vars(["crs", "name"])
        part = part.drop_vars(["lat", "lon"])
        if start == 4:
            part.to_caterva("x.b2d", region={"time": "auto"})
        else:
            part.drop_vars("time").to_caterva("x.b2d", region={"time": slice(start, start + 4)})
    assert_equal(xr.open_dataset("x.b2d"), whole)
    part = whole[["t2m"]].isel(lat=[1], time=[3, 4]) * 0 - 1
    part.to_caterva("x.b2d", region="auto")
    changed = xr.open_dataset("x.b2d")["t2m"]
    assert (changed.isel(lat=1, time=[3, 4]) == -1).all() and int((changed == -1).sum()) == 6


def several(start: int, n: int) -> xr.Dataset:
    """Two Dask variables whose blocks are not the arrays' chunks."""
    items = np.arange(start * 30, (start + n) * 30).reshape(n, 30)
    ds = xr.Dataset(
        {"x": (("time", "y"), items * 1.5), "y2": (("y", "time"), items.T.astype("i2"))},
        {"time": np.arange(start, start + n)},
    )
    return ds.chunk(time=7, y=11)


@has_dask
@pytest.mark.parametrize("place", PLACES)
def test_processes_write_parts(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import dask

    merged = []
    merge = caterva.Array.merge
    monkeypatch.setattr(
        caterva.Array, "merge", lambda *a, **w: merged.append(merge(*a, **w)) or merged[-1]
    )
    shapes = {k: {"chunks": (16, 16), "blocks": (4, 8)} for k in ("x", "y2")}
    with dask.config.set(scheduler="processes"):
        several(0, 40).to_caterva(place, encoding=shapes)
        several(40, 25).to_caterva(place, append_dim="time")
        part = several(3, 20) * 0 - 1
        part.assign_coords(time=np.arange(3, 23)).to_caterva(place, region="auto")
        region = (several(50, 10) * 0).drop_vars("time")
        region.to_caterva(place, region={"time": slice(50, 60)})
    assert [m.parts > 1 for m in merged] == [True] * 8
    expected = several(0, 65).load()
    for name in ("x", "y2"):
        expected[name].loc[{"time": slice(3, 22)}] = -1
        expected[name].loc[{"time": slice(50, 59)}] = 0
    assert_equal(xr.open_dataset(place), expected)
    left = [str(p) for p in Path(place).rglob("*")] + os.listdir()
    assert not [name for name in left if "parts" in name or ".tmp" in name]


def fail_at(items: np.ndarray, n: int) -> np.ndarray:
    """A task that fails."""
    if (items == n).any():
        raise RuntimeError("this task fails")
    return items


@has_dask
def test_a_task_that_fails_leaves_all_as_it_was() -> None:
    import dask

    several(0, 40).to_caterva("x.b2d")
    bad = several(40, 20)
    bad["y2"] = bad["y2"].copy(data=bad["y2"].data.map_blocks(fail_at, 1795, dtype="i2"))
    for words in ({"append_dim": "time"}, {"region": {"time": slice(0, 20)}}):
        ds = bad if "append_dim" in words else bad.drop_vars("time")
        with (
            dask.config.set(scheduler="processes"),
            pytest.raises(RuntimeError, match="this task"),
        ):
            ds.to_caterva("x.b2d", **words)
        assert_equal(xr.open_dataset("x.b2d"), several(0, 40))
        assert not list(Path("x.b2d").rglob("*.parts"))


def test_parts_are_no_members() -> None:
    """While many write to an array of a tree, lists and archives do not show the parts."""
    several_items = np.arange(40.0)
    with caterva.open_tree("t.b2d", "w") as tree:
        tree["g/x"] = several_items
        tree.commit()
        with tree["g/x"].job() as job:
            with job.part() as part:
                part[:20] = -1
            assert Path("t.b2d/g/x.b2nd.parts").is_dir()
            assert [e.key for e in caterva.open_tree("t.b2d").entries()] == ["/g", "/g/x"]
            job.merge(part.token)
        assert not Path("t.b2d/g/x.b2nd.parts").exists()
    assert (
        caterva.open("t.b2d::/g/x")[:] == np.where(several_items < 20, -1, several_items)
    ).all()


@pytest.mark.parametrize("place", PLACES)
def test_variables_are_added_replaced_and_go(place: str) -> None:
    ds = days()
    ds.to_caterva(place)
    xr.Dataset({"extra": ("time", np.arange(4)), "total": ("time", list("abcd"))}).to_caterva(
        place, mode="a"
    )
    both = xr.open_dataset(place).load()
    assert both["total"].values.tolist() == list("abcd") and "extra" in both and "t2m" in both
    xr.Dataset({"only": 1}, attrs={"new": 1}).to_caterva(place)
    assert_identical(xr.open_dataset(place), xr.Dataset({"only": 1}, attrs={"new": 1}))


# ---- Groups ---------------------------------------------------------------------------------


@pytest.mark.parametrize("place", PLACES)
def test_trees_of_data_sets(place: str) -> None:
    tree = xr.DataTree.from_dict(
        {
            "/": xr.Dataset({"root": ("lat", [1, 2])}, {"lat": [10.0, 20.0]}, {"title": "t"}),
            "/model": days().drop_vars(["lat"]).assign_attrs(source="m"),
            "/model/deep": xr.Dataset({"d": ("lat", [5, 6])}),
            "/empty": xr.Dataset(attrs={"nothing": 1}),
        }
    )
    tree.to_caterva(place, encoding={"/model": PACKED})
    xr.testing.assert_identical(xr.open_datatree(place), tree)
    assert_identical(
        xr.open_dataset(place, group="model"), tree["model"].to_dataset(inherit=False)
    )
    assert_identical(
        xr.open_dataset(f"{place}::/model/deep")["d"], tree["model/deep/d"].drop_vars("lat")
    )
    part = xr.open_datatree(place, group="model")
    assert set(part.groups) == {"/", "/deep"}
    days().to_caterva(place, group="other/one", mode="a")
    assert_identical(xr.open_dataset(place, group="/other/one"), days())
    xr.testing.assert_identical(
        xr.open_datatree(place)["model"].to_dataset(), tree["model"].to_dataset()
    )
    xr.Dataset({"a": 1}).to_caterva(place, group="model")
    groups = xr.open_groups(place)
    assert set(groups["/model"].variables) == {"a"} and "/model/deep" not in groups
    assert "/other/one" in groups
    with pytest.raises(KeyError):
        xr.open_dataset(place, group="no")


# ---- Open data sets --------------------------------------------------------------------------


def test_pickles_and_closing() -> None:
    for place in PLACES:
        days().to_caterva(place)
        ds = xr.open_dataset(place)
        again = pickle.loads(pickle.dumps(ds))
        assert_identical(again, days())
        ds.close()
        assert_identical(ds, days())
    ds = xr.open_dataset("x.b2z")
    kept = xr.open_dataset("x.b2z")
    kept["t2m"][0].load()
    text = pickle.dumps(ds)
    days(4).to_caterva("x.b2z")
    assert_identical(kept, days())
    with pytest.raises(caterva.StaleError, match="open it again"):
        pickle.loads(text).load()


def test_more_files_than_descriptors() -> None:
    run_program("""
import resource, numpy as np, xarray as xr, caterva.xarray
for place in ("many.b2d", "many.b2z"):
    xr.Dataset({f"v{i}": ("x", np.arange(50000) * i) for i in range(150)}).to_caterva(place)
resource.setrlimit(resource.RLIMIT_NOFILE, (128, 128))
for place in ("many.b2d", "many.b2z"):
    sets = [xr.open_dataset(place) for _ in range(3)]
    for ds in sets:
        for i in range(150):
            assert ds[f"v{i}"][49999].item() == 49999 * i
""")


def test_children_of_fork_read_on() -> None:
    days().to_caterva("x.b2z")
    run_program("""
import os, xarray as xr
ds = xr.open_dataset("x.b2z")
float(ds["t2m"][0, 0, 0])
child = os.fork()
if child == 0:
    ok = float(ds["t2m"][3, 1, 2]) == 5.75 and ds["name"][2].item() == "day 2"
    os._exit(0 if ok else 1)
assert os.waitpid(child, 0)[1] == 0
""")


def test_what_python_blosc2_wrote() -> None:
    with blosc2.TreeStore("theirs.b2z", mode="w", threshold=0) as store:
        for name, items, dims in (
            ("/t2m", np.arange(6, dtype="i2").reshape(2, 3), ["time", "lat"]),
            ("/time", np.array([0.0, 1.0]), ["time"]),
            ("/lat", np.arange(3.0), ["lat"]),
            ("/plain", np.arange(4), None),
        ):
            array = blosc2.asarray(items)
            if dims:
                array.schunk.vlmeta["dims"] = dims
            store[name] = array
        array = store["/time"]
        array.schunk.vlmeta["units"] = "days since 2000-01-01"
        array = store["/t2m"]
        array.schunk.vlmeta["_FillValue"] = np.array([3], "i2")
    ds = xr.open_dataset("theirs.b2z")
    assert ds["t2m"].dims == ("time", "lat") and set(ds.coords) == {"time", "lat"}
    assert ds["plain"].dims == ("plain_dim0",)
    store = blosc2.TreeStore("theirs.b2z", mode="r")
    days().to_caterva("ours.b2z")
    theirs = blosc2.TreeStore("ours.b2z", mode="r")
    t2m = theirs["/t2m"]
    assert np.array_equal(t2m[:], days()["t2m"]) and t2m.schunk.vlmeta["units"] == "K"
    assert t2m.schunk.vlmeta["dims"] == ["time", "lat", "lon"]


# ---- Several savers ------------------------------------------------------------------------

SECOND = """
import sys, caterva, caterva.xarray, xarray as xr
try:
    xr.Dataset({"second": ("x", [1])}).to_caterva(sys.argv[1], mode="a")
except BlockingIOError as error:
    assert sys.argv[1] in str(error), error
    sys.exit(7)
"""


def save_in_the_midst(
    monkeypatch: pytest.MonkeyPatch, ds: xr.Dataset, path: str, work: Any
) -> None:
    """Save, and call a function after everything is written and before it is published."""
    commit = caterva.Tree.commit
    met: list[int] = []

    def midst(tree: caterva.Tree) -> None:
        commit(tree)
        if not met:
            met.append(1)
            work()

    with monkeypatch.context() as patched:
        patched.setattr(caterva.Tree, "commit", midst)
        ds.to_caterva(path, mode="a")
    assert met


@pytest.mark.parametrize("there", [False, True])
@pytest.mark.parametrize("place", PLACES)
def test_one_process_saves_at_a_time(
    place: str, there: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if there:
        xr.Dataset({"zeroth": ("x", [0])}).to_caterva(place)
    first = xr.Dataset({"first": ("x", [1])})

    def second() -> None:
        run_program(SECOND, ".", place, status=7)

    save_in_the_midst(monkeypatch, first, place, second)
    assert set(xr.open_dataset(place)) == {"first"} | ({"zeroth"} if there else set())
    run_program(SECOND, ".", place)
    assert {"first", "second"} <= set(xr.open_dataset(place))
    assert os.listdir() == [place]


@pytest.mark.parametrize("url", ["http://127.0.0.1:9/x.b2z", "s3://b/x.b2d", "memory://x.b2z"])
def test_nothing_is_saved_to_a_url(url: str) -> None:
    ds = xr.Dataset({"first": ("x", [1])})
    for mode in ("w", "x", "a", "r+"):
        with pytest.raises(caterva.ReadOnlyError, match="a URL can only be read"):
            ds.to_caterva(url, mode=mode)
    assert os.listdir() == []


def test_what_others_made_meanwhile_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    first = xr.Dataset({"first": ("x", [1])})

    def directory() -> None:
        with caterva.open_tree("x.b2d", "w") as t:
            t["theirs"] = [1]

    def archive() -> None:
        with caterva.open_tree("other.b2d", "w") as t:
            t["theirs"] = [1]
            t.pack("x.b2z", overwrite=True)
        shutil.rmtree("other.b2d")

    for place, make in zip(PLACES, (directory, archive), strict=True):
        with pytest.raises(FileExistsError):
            save_in_the_midst(monkeypatch, first, place, make)
    with pytest.raises(BlockingIOError, match="replaced"):
        save_in_the_midst(monkeypatch, first, "x.b2z", archive)
    with pytest.raises(FileExistsError):
        save_in_the_midst(monkeypatch, first, "y.b2d", lambda: os.mkdir("y.b2d"))
    for place in PLACES:
        assert list(caterva.open_tree(place)) == ["theirs"]
    assert sorted(os.listdir()) == ["x.b2d", "x.b2z", "y.b2d"]


@needs_fork
@pytest.mark.parametrize("place", PLACES)
def test_a_child_of_fork_leaves_a_save_alone(
    place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def end_a_child() -> None:
        child = os.fork()
        if child == 0:
            raise SystemExit
        assert os.waitpid(child, 0)[1] == 0
        run_program(SECOND, ".", place, status=7)

    process = os.getpid()
    try:
        save_in_the_midst(monkeypatch, days(), place, end_a_child)
    finally:
        if os.getpid() != process:
            os._exit(0)
    assert_identical(xr.open_dataset(place), days())


@pytest.mark.skipif(WINDOWS, reason="Windows syncs no folder")
@pytest.mark.parametrize("durability", ["full", "none"])
def test_a_new_name_is_on_the_medium(durability: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[bool] = []
    fsync = os.fsync

    def watched(file: int) -> None:
        here = os.path.samestat(os.fstat(file), os.stat("."))
        synced.append(here and os.path.exists("x.b2d"))
        fsync(file)

    monkeypatch.setattr(os, "fsync", watched)
    days().to_caterva("x.b2d", durability=durability)
    assert synced == [True] * (durability == "full")

"""Appends and regions that end inside chunks, which lose data in other stores. These are the
examples of their users; docs/compared.md names the threads."""

from __future__ import annotations

import contextlib
import importlib.util
import multiprocessing
import threading
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

if not all(importlib.util.find_spec(package) for package in ("xarray", "dask")):
    pytest.skip("xarray or dask is not installed", allow_module_level=True)

import caterva
import caterva.xarray
import dask
import pandas as pd
import xarray as xr
from xarray.testing import assert_equal

SCHEDULERS = ("threads", "processes", "workers with threads", "workers")
PATIENCE = 60  # seconds to start a worker on a busy machine


@pytest.fixture(params=SCHEDULERS)
def scheduler(request: pytest.FixtureRequest) -> Iterator[int]:
    """A Dask scheduler, and the number of trials with it."""
    if request.param == "threads":
        with dask.config.set(scheduler="threads", num_workers=4):
            yield 20
        return
    if request.param == "processes":
        spawn = multiprocessing.get_context("spawn")
        with (
            ProcessPoolExecutor(2, spawn) as pool,  # else each save starts one
            dask.config.set(scheduler="processes", pool=pool),
        ):
            yield 3
        return
    distributed = pytest.importorskip("distributed")
    with (
        dask.config.set({"distributed.comm.timeouts.connect": PATIENCE}),
        distributed.LocalCluster(
            n_workers=1 if request.param == "workers with threads" else 2,
            threads_per_worker=4,
            processes=request.param == "workers",
            dashboard_address=None,
        ) as cluster,
        distributed.Client(cluster, timeout=PATIENCE),
    ):
        yield 5


def test_appends_to_a_part_of_a_chunk_5511(scheduler: int) -> None:
    """308 days in chunks of 30, appended in pieces of any length."""
    days = pd.bdate_range("2017-09-05", periods=308)
    items = np.random.default_rng(0).random(len(days))
    index = xr.Dataset({"index": ("date", items)}, {"date": days})
    for n in range(min(scheduler, 3)):
        index.isel(date=slice(60)).chunk(date=30).to_caterva(
            "new.b2d", encoding={"index": {"chunks": (30,)}}
        )
        start, step = 60, 16 + n
        while start < len(days):
            piece = index.isel(date=slice(start, start + step)).chunk(date=5)
            piece.to_caterva("new.b2d", append_dim="date")
            start, step = start + step, step * 2 + 1
        assert_equal(xr.open_dataset("new.b2d"), index)


def test_tasks_that_share_a_chunk_8876(scheduler: int) -> None:
    """Two items in a chunk of three, then four more from tasks with other block borders."""
    first = xr.Dataset({"a": ("x", [1.0, 1.0])}, {"x": [1, 2]}).chunk(x=3)
    second = xr.Dataset({"a": ("x", [1.0] * 4)}, {"x": [3, 4, 5, 6]}).chunk(x=3)
    expected = xr.concat([first, second], "x").compute()
    for _ in range(scheduler):
        first.to_caterva("store.b2d", encoding={"a": {"chunks": (3,)}})
        second.to_caterva("store.b2d", append_dim="x")
        assert_equal(xr.open_dataset("store.b2d").compute(), expected)


def test_regions_inside_chunks_9072(scheduler: int) -> None:
    """Regions that begin and end inside chunks, one after another."""
    items = xr.Dataset({"v": (("a", "b"), np.arange(200.0).reshape(20, 10))})
    for _ in range(min(scheduler, 3)):
        (items * np.nan).to_caterva("test.b2d", encoding={"v": {"chunks": (4, 6)}})
        for start, stop in ((0, 1), (1, 7), (7, 18), (18, 20)):
            part = items.isel(a=slice(start, stop)).chunk(a=1, b=3)
            part.to_caterva("test.b2d", region={"a": slice(start, stop)})
        assert_equal(xr.open_dataset("test.b2d"), items)


def test_regions_at_the_same_time_9072() -> None:
    """Concurrent savers: each region is written, or its saver gets an error."""
    items = xr.Dataset({"v": ("a", np.arange(1.0, 101))})

    def write(start: int) -> int | None:
        region = {"a": slice(start, start + 10)}
        try:
            items.isel(region).chunk(a=3).to_caterva("test.b2d", region=region)
        except BlockingIOError:
            return None
        return start

    for _ in range(5):
        (items * 0).to_caterva("test.b2d", encoding={"v": {"chunks": (7,)}})
        with ThreadPoolExecutor(4) as pool:
            written = list(pool.map(write, range(0, 100, 10)))
        expected = items * 0
        for start in written:
            if start is not None:
                expected["v"][start : start + 10] = items["v"][start : start + 10]
        assert_equal(xr.open_dataset("test.b2d"), expected)
        for start in range(0, 100, 10):
            if start not in written:
                assert write(start) == start
        assert_equal(xr.open_dataset("test.b2d"), items)


@pytest.mark.parametrize("mode", ["a", "a-"])
def test_batches_of_files_10501(scheduler: int, mode: Any) -> None:
    """Variables along time, and along time and wavelength; batches of any size, each with its
    own chunks."""
    rng = np.random.default_rng(1)
    lengths = [17, 5, 23, 1, 40]

    def batch(start: int, n: int) -> xr.Dataset:
        return xr.Dataset(
            {
                "flux": (("TIME", "WAVELENGTH"), rng.random((n, 12))),
                "depth": ("TIME", rng.random(n).astype("f4")),
                "count": ("TIME", rng.integers(0, 9, n)),
            },
            {
                "TIME": pd.date_range("2020-01-01", periods=start + n, freq="h")[start:],
                "WAVELENGTH": np.arange(12.0),
            },
        )

    chunks = {"flux": {"chunks": (10, 5)}, "depth": {"chunks": (15,)}}
    fine = {"TIME": {"units": "hours since 2020-01-01"}}
    batches = [batch(sum(lengths[:n]), length) for n, length in enumerate(lengths)]
    batches[0].chunk(TIME=4).to_caterva(
        "all.b2d", encoding=chunks | fine, unlimited_dims="TIME"
    )
    for n, ds in enumerate(batches[1:]):
        ds.chunk(TIME=3 + n, WAVELENGTH=7).to_caterva("all.b2d", append_dim="TIME", mode=mode)
    assert_equal(xr.open_dataset("all.b2d"), xr.concat(batches, "TIME", data_vars="minimal"))


def test_without_its_lock_writes_would_be_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shows that the examples above can fail: a store that reads, changes and writes chunks
    loses items if tasks share a chunk."""
    first = xr.Dataset({"a": ("x", [1.0, 1.0])}).chunk(x=3)
    second = xr.Dataset({"a": ("x", [1.0] * 4)}).chunk(x=1)
    together = threading.Barrier(4, timeout=PATIENCE)

    def unlocked(self: caterva.Array, key: Any, items: Any) -> None:
        whole = self[...]
        with contextlib.suppress(threading.BrokenBarrierError):
            together.wait()
        start = key[0].start
        whole[start : start + len(items)] = items
        setitem(self, ..., whole)

    first.to_caterva("store.b2d", encoding={"a": {"chunks": (6,)}})
    setitem = caterva.Array.__setitem__
    with monkeypatch.context() as patch, dask.config.set(scheduler="threads", num_workers=4):
        patch.setattr(caterva.Array, "__setitem__", unlocked)
        second.to_caterva("store.b2d", append_dim="x")
    assert (xr.open_dataset("store.b2d")["a"] != 1).any()

"""dask reads our arrays without a lock: in threads, processes, and a cluster."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest

import caterva

ITEMS = np.random.default_rng(1).integers(0, 1000, (200, 300, 40), "i4")


@pytest.fixture
def array(tmp_path: Path) -> Iterator[caterva.Array]:
    path = tmp_path / "a.b2nd"
    caterva.save(path, ITEMS, chunks=(50, 300, 40))
    with caterva.open(path) as array:
        yield array


def lazy(array: caterva.Array) -> Any:
    return da.from_array(array, chunks=array.chunks, lock=False)


@pytest.mark.parametrize("scheduler", ["sync", "threads", "processes"])
def test_schedulers(array: caterva.Array, scheduler: str) -> None:
    x = lazy(array)
    assert x.numblocks == (4, 1, 1)
    with dask.config.set(scheduler=scheduler):
        assert np.array_equal(x[::3, 5].compute(), ITEMS[::3, 5])
        assert int(x.sum().compute()) == int(ITEMS.sum())


def test_tokens_are_of_the_commit(array: caterva.Array) -> None:
    before = lazy(array).name
    assert lazy(caterva.open(array.path)).name == before
    with caterva.open(array.path, "r+") as writer:
        writer[0, 0, 0] += 1
    assert lazy(caterva.open(array.path)).name != before


def test_a_cluster(array: caterva.Array) -> None:
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=2, dashboard_address=None) as c,
        distributed.Client(c),
    ):
        assert int(lazy(array).sum().compute()) == int(ITEMS.sum())

"""Dask arrays stored by threads, processes and the workers of distributed."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import caterva
import numpy as np
import pytest
from support import PATIENCE, times

dask = pytest.importorskip("dask", reason="dask is not installed")
da = pytest.importorskip("dask.array", reason="dask is not installed")
import caterva.dask  # noqa: E402

SHAPE, CHUNKS = (60, 50), (20, 16)
ENGINES = [{"scheduler": "sync"}, {"scheduler": "threads"}, {"scheduler": "processes"}]


def items_of(shape: tuple[int, ...] = SHAPE, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).integers(1, 10_000, shape, "i4")


def dask_array(items: np.ndarray, chunks: Any = (13, 17)) -> Any:
    return da.from_array(items, chunks=chunks)


def new(path: str = "a.b2nd", **options: Any) -> caterva.Array:
    return caterva.zeros(SHAPE, "i4", path, chunks=CHUNKS, blocks=(7, 5), **options)


# ---- In trees ----------------------------------------------------------------------------


@pytest.mark.parametrize("how", ENGINES, ids=str)
def test_arrays_of_trees(how: dict[str, str]) -> None:
    items, place = items_of(), "t.b2d::/g/x"
    x = dask_array(items)
    caterva.dask.store(x, place, compute_kwargs=how, chunks=CHUNKS)
    assert np.array_equal(caterva.load(place), items)
    caterva.dask.store(x[:9] * 2, place, append_dim=0, compute_kwargs=how)
    caterva.dask.store(x[:3] * 0, place, region=np.s_[5:8, :], compute_kwargs=how)
    items[5:8] = 0
    assert np.array_equal(caterva.load(place)[:60], items)
    assert caterva.open(place).shape == (69, 50)
    caterva.dask.store(x, place, region=np.s_[:60, :], compute=False).compute(**how)
    assert np.array_equal(caterva.load(place)[:60], items_of())
    stored = caterva.dask.store(x + 1, place, overwrite=True, return_stored=True)
    assert np.array_equal(stored.compute(**how), items_of() + 1)
    assert sorted(os.listdir("t.b2d/g")) == ["x.b2nd"]
    with pytest.raises(FileNotFoundError, match="no array at"):
        caterva.dask.store(x, "t.b2d::/y", append_dim=0)


# ---- On this machine ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("how", "chunks"),
    [
        ({"scheduler": "sync"}, (20, 16)),
        ({"scheduler": "threads"}, (1, 50)),
        ({"scheduler": "threads"}, (13, 17)),
        ({"scheduler": "processes"}, (13, 17)),
    ],
    ids=str,
)
def test_blocks_may_lie_as_they_like(how: dict[str, str], chunks: tuple[int, int]) -> None:
    items = items_of()
    x = dask_array(items, chunks)
    result = caterva.dask.store(
        x, "a.b2nd", compute_kwargs=how, chunks=CHUNKS, blocks=(7, 5), layout="sparse"
    )
    assert result is None
    with caterva.open("a.b2nd") as a:
        assert a.chunks == CHUNKS
        assert np.array_equal(a[...], items)
        assert a.verify()
    assert caterva.jobs("a.b2nd") == []


def test_a_path_that_is_there_keeps_its_partition() -> None:
    new().close()
    caterva.dask.store(dask_array(items_of()), "a.b2nd", threads=1)
    assert caterva.open("a.b2nd").chunks == CHUNKS
    caterva.dask.store(dask_array(items_of(seed=2)), "a.b2nd", overwrite=True, chunks=(30, 50))
    a = caterva.open("a.b2nd")
    assert a.chunks == (30, 50)
    assert np.array_equal(a[...], items_of(seed=2))


def test_regions() -> None:
    items = items_of((20, 30))
    with new() as a:
        a[...] = -1
        caterva.dask.store(dask_array(items), a, region=np.s_[31:51, -30:])
    expected = np.full(SHAPE, -1)
    expected[31:51, -30:] = items
    assert np.array_equal(caterva.load("a.b2nd"), expected)
    caterva.dask.store(dask_array(items[:, :7]), "a.b2nd", (slice(0, 20), slice(3, 10)))
    expected[:20, 3:10] = items[:, :7]
    assert np.array_equal(caterva.load("a.b2nd"), expected)


def test_an_array_grows_by_what_is_appended() -> None:
    items = items_of((47, 50))
    with new(dims=("time", "x")) as a:
        a[...] = items_of()
    caterva.dask.store(dask_array(items[:21]), "a.b2nd", append_dim="time")
    caterva.dask.store(dask_array(items[21:]), "a.b2nd", append_dim=0)
    assert np.array_equal(caterva.load("a.b2nd"), np.concatenate([items_of(), items]))
    with pytest.raises(ValueError, match="dimensions"):
        caterva.dask.store(dask_array(items), "a.b2nd", append_dim="y")
    with pytest.raises(ValueError, match="do not fit"):
        caterva.dask.store(dask_array(items), "a.b2nd", append_dim=1)


def test_what_was_stored_comes_back() -> None:
    items = items_of()
    x = dask_array(items)
    y = caterva.dask.store(x, "a.b2nd", return_stored=True)
    assert y.chunks == x.chunks
    assert np.array_equal((y + 1).compute(), items + 1)


def test_later() -> None:
    items = items_of()
    new().close()
    later = caterva.dask.store(dask_array(items), "a.b2nd", compute=False)
    assert caterva.open("a.b2nd").sum() == 0
    assert len(caterva.jobs("a.b2nd")) == 1
    merged = later.compute(scheduler="processes")
    assert merged.parts == 5 * 3
    assert np.array_equal(caterva.load("a.b2nd"), items)
    assert caterva.jobs("a.b2nd") == []
    y = caterva.dask.store(
        dask_array(items[:7]), "a.b2nd", append_dim=0, compute=False, return_stored=True
    )
    assert np.array_equal(y.compute(), items[:7])
    assert caterva.open("a.b2nd").shape == (67, 50)


def test_a_failure_leaves_the_array_as_it_was() -> None:
    def fail(block: np.ndarray, block_id: tuple[int, int]) -> np.ndarray:
        if block_id == (2, 1):
            raise ZeroDivisionError
        return block

    x = da.map_blocks(fail, dask_array(items_of()), dtype="i4")
    new().close()
    with pytest.raises(ZeroDivisionError):
        caterva.dask.store(x, "a.b2nd")
    assert caterva.open("a.b2nd").sum() == 0
    assert caterva.jobs("a.b2nd") == []
    with pytest.raises(ZeroDivisionError):
        caterva.dask.store(x, "new.b2nd")
    assert not os.path.exists("new.b2nd")


@pytest.mark.parametrize("step", ["compute", "merge", "commit"])
def test_a_failure_leaves_no_job(step: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*unused: Any, **words: Any) -> Any:
        raise KeyboardInterrupt

    x = dask_array(items_of())
    with new() as a:
        a[...] = 1
    with caterva.open("a.b2nd", "r+") as a:
        a[0, 0] = 7
        with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
            if step == "compute":
                x = da.map_blocks(fail, x, dtype="i4", meta=np.zeros((0, 0), "i4"))
            else:
                patched.setattr(caterva.Array, step, fail)
            caterva.dask.store(x, a, append_dim=0, compute_kwargs={"scheduler": "sync"})
        assert a.shape == SHAPE and (a[0, 0] == 7) == (step == "compute")
        assert caterva.jobs("a.b2nd") == []
        caterva.dask.store(dask_array(items_of()), a, append_dim=0)
    assert np.array_equal(caterva.open("a.b2nd")[60:], items_of())


def test_what_is_stored_later_is_stored_once() -> None:
    new().close()
    later = caterva.dask.store(dask_array(items_of()), "a.b2nd", compute=False)
    later.compute()
    with pytest.raises(FileNotFoundError, match="computed only once"):
        later.compute()


def test_what_is_refused() -> None:
    x = dask_array(items_of())
    with pytest.raises(ValueError, match="path"):
        caterva.dask.store(x, caterva.zeros(SHAPE, "i4"))
    with new() as a:
        with pytest.raises(ValueError, match="path"):
            caterva.dask.store(x, a, compute=False)
        with pytest.raises(TypeError, match="no option"):
            caterva.dask.store(x, a, chunks=(3, 3))
        for region in (np.s_[:3], np.s_[::2, :], (0, slice(None)), np.s_[1:, :]):
            with pytest.raises(ValueError):
                caterva.dask.store(x, a, region)
        with pytest.raises(ValueError, match="not both"):
            caterva.dask.store(x, a, np.s_[:, :], append_dim=0)
        with pytest.raises(ValueError, match="unknown shape"):
            caterva.dask.store(x[x[:, 0] > 5], a)
    with pytest.raises(FileNotFoundError):
        caterva.dask.store(x, "none.b2nd", append_dim=0)
    with pytest.raises(TypeError, match=r"chunks, codec can only be given.*overwrite=True"):
        caterva.dask.store(x, "a.b2nd", codec="lz4", chunks=(3, 3))
    with caterva.open_tree("t.b2d", "w") as t:
        t.create_group("g")
    for place in ("t.b2d", "t.b2d::/g"):
        with pytest.raises(TypeError, match=r"t.b2d is a tree.*t.b2d::/name"):
            caterva.dask.store(x, place)


def test_no_blocks_and_many() -> None:
    caterva.dask.store(da.zeros((0, 4), chunks=2), "none.b2nd")
    assert caterva.open("none.b2nd").shape == (0, 4)
    caterva.dask.store(da.full((), 7), "scalar.b2nd")
    assert caterva.open("scalar.b2nd")[()] == 7
    caterva.dask.store(da.arange(600, chunks=1), "many.b2nd", chunks=64, durability="none")
    assert np.array_equal(caterva.load("many.b2nd"), np.arange(600))


@pytest.mark.parametrize("how", ENGINES, ids=lambda how: how["scheduler"])
def test_the_target_of_dasks_own_store(how: dict[str, str]) -> None:
    items = items_of()
    with new() as a, a.job() as job:
        da.store(dask_array(items), job.target, lock=False, **how)
    assert np.array_equal(caterva.load("a.b2nd"), items)
    with caterva.open("a.b2nd", "r+") as a, a.job() as job:
        da.store(dask_array(items[:9]), job.target, regions=np.s_[1:10, :], lock=False, **how)
    assert np.array_equal(caterva.open("a.b2nd")[1:10], items[:9])


# ---- Reports by users of other stores -------------------------------------------------------


def test_an_unaligned_store_from_processes_loses_nothing() -> None:
    """As in dask#12583: processes write blocks that end in the middle of chunks."""
    items = items_of((90, 90))
    with caterva.zeros((90, 90), "i4", "a.b2nd", chunks=(40, 40)) as a:
        x = dask_array(items, (17, 31))
        caterva.dask.store(x, a, compute_kwargs={"scheduler": "processes"})
    assert np.array_equal(caterva.load("a.b2nd"), items)


def test_an_append_behind_half_a_chunk_loses_nothing() -> None:
    """As in xarray#8371: the append begins, and its blocks end, in the middle of chunks."""
    expected = items_of((3, 30))
    caterva.save("a.b2nd", expected, chunks=(4, 30))
    for n in (2, 5, 9, 1):
        items = items_of((n, 30), seed=n)
        how = {"scheduler": "processes" if n == 9 else "threads"}
        caterva.dask.store(
            dask_array(items, (2, 30)), "a.b2nd", append_dim=0, compute_kwargs=how
        )
        expected = np.concatenate([expected, items])
        assert np.array_equal(caterva.load("a.b2nd"), expected)


# ---- Very many tasks ------------------------------------------------------------------------


def test_ten_thousand_tasks_are_small_at_the_client(pytestconfig: pytest.Config) -> None:
    """The graph of 10,000 tasks, and their tokens."""
    n = 10_000
    x = da.zeros((4 * n, 6, 5), "i1", chunks=(4, 6, 5))
    a = caterva.zeros(x.shape, "i1", "a.b2nd", chunks=(64, 6, 5), durability="none")
    with a, a.job() as job:
        tracemalloc.start()
        graph, _ = caterva.dask.tokens_graph(x, job, (0, 0, 0))
        size = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
        tasks = sum(
            len(graph.layers[name]) for name in graph.layers if name not in x.dask.layers
        )
        assert n < tasks < 1.1 * n
        assert size < 10 << 20, f"{size} bytes of a graph"

    n = times(pytestconfig, 400, n)
    x = da.arange(24 * n, chunks=24)
    job = caterva.zeros(x.shape, "i8", "b.b2nd", chunks=100, durability="none").job()
    graph, last = caterva.dask.tokens_graph(x, job, (0,))
    tokens = dask.get(graph, last)
    assert len(tokens) == n
    size = sum(map(sys.getsizeof, tokens)) + sys.getsizeof(tokens)
    assert size < (10 << 20) * n / 10_000, f"{size} bytes of tokens"


# ---- distributed ----------------------------------------------------------------------------


@pytest.fixture
def path_of_workers(monkeypatch: pytest.MonkeyPatch) -> str:
    """Let workers find the modules that the tests send them."""
    here = str(Path(__file__).parent)
    monkeypatch.setenv("PYTHONPATH", here)
    monkeypatch.setenv("DASK_DISTRIBUTED__ADMIN__TICK__LIMIT", "1h")
    return here


@pytest.fixture
def cluster(path_of_workers: str, empty_folder: Path) -> Iterator[Any]:
    """Four worker processes."""
    distributed = pytest.importorskip("distributed", reason="distributed is not installed")
    with (
        distributed.LocalCluster(
            n_workers=4,
            threads_per_worker=1,
            processes=True,
            dashboard_address=None,
            local_directory=str(empty_folder / "workers"),
        ) as local,
        distributed.Client(local) as client,
    ):
        yield client


def test_a_worker_is_killed_while_it_writes(
    cluster: Any, monkeypatch: pytest.MonkeyPatch, empty_folder: Path
) -> None:
    import functools

    import dask_workers

    items = items_of()
    caterva.dask.store(dask_array(items), "a.b2nd", chunks=CHUNKS)
    assert np.array_equal(caterva.load("a.b2nd"), items)

    flag = empty_folder / "killed"
    dying = functools.partial(dask_workers.dying_part, flag=str(flag))
    monkeypatch.setattr(caterva.dask, "write_part", dying)
    items = items_of(seed=2)
    caterva.dask.store(dask_array(items), "a.b2nd")
    assert flag.exists(), "a worker died"
    with caterva.open("a.b2nd") as a:
        assert np.array_equal(a[...], items)
        assert a.verify()
    assert not (empty_folder / "a.b2nd.parts").exists()

    with caterva.open("a.b2nd", "r+") as a, a.job() as job:
        da.store(dask_array(items + 1), job.target, lock=False)
    assert np.array_equal(caterva.load("a.b2nd"), items + 1)


def start(arguments: list[str], log: Path) -> subprocess.Popen[bytes]:
    with log.open("wb") as out:
        return subprocess.Popen(
            [sys.executable, "-m", "dask", *arguments], stdout=out, stderr=subprocess.STDOUT
        )


def test_workers_that_were_started_by_hand(path_of_workers: str, empty_folder: Path) -> None:
    distributed = pytest.importorskip("distributed", reason="distributed is not installed")
    place = empty_folder / "scheduler.json"
    scheduler = ["scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard"]
    worker = [
        "worker",
        "--host",
        "127.0.0.1",
        "--nthreads",
        "1",
        "--no-nanny",
        "--no-dashboard",
    ]
    file = ["--scheduler-file", str(place)]
    running = [start([*scheduler, *file], empty_folder / "scheduler.log")]
    try:
        running += [start([*worker, *file], empty_folder / f"worker-{i}.log") for i in range(2)]
        end = time.monotonic() + PATIENCE
        while not place.exists() and time.monotonic() < end:
            time.sleep(0.05)
        with distributed.Client(scheduler_file=str(place), timeout=PATIENCE) as client:
            client.wait_for_workers(2, timeout=PATIENCE)
            items = items_of()
            caterva.dask.store(dask_array(items), "a.b2nd", chunks=CHUNKS)
            assert np.array_equal(caterva.load("a.b2nd"), items)
            later = caterva.dask.store(dask_array(items), "a.b2nd", append_dim=0, compute=False)
            assert client.compute(later).result(PATIENCE).parts == 15
            assert np.array_equal(caterva.load("a.b2nd"), np.concatenate([items, items]))
    finally:
        for process in reversed(running):
            process.kill()
            process.wait(PATIENCE)

"""Reports by users of other libraries, repeated here: docs/compared.md names each test."""

from __future__ import annotations

import importlib.util
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import caterva
import numpy as np
import pytest
from support import PATIENCE, in_child, needs_fork, status_of, times

has_dask = pytest.mark.skipif(
    importlib.util.find_spec("dask") is None, reason="dask is not installed"
)
has_xarray = importlib.util.find_spec("xarray") is not None

N = 32


def images() -> Any:
    """N small images of noise, as a data loader reads them."""
    return np.random.default_rng(3).integers(0, 1000, (N, 40, 40), "i4")


# ---- A data loader that forks its workers ---------------------------------------------------


def one_file() -> Any:
    caterva.save("a.b2nd", images(), chunks=(4, 40, 40), blocks=(1, 20, 40))
    return caterva.open("a.b2nd")


def directory() -> Any:
    caterva.save("d.b2nd", images(), chunks=(4, 40, 40), layout="sparse")
    return caterva.open("d.b2nd")


def archive() -> Any:
    with caterva.open_tree("t.b2d", "w") as t:
        t.create_array("g/x", data=images(), chunks=(4, 40, 40))
        t.pack("t.b2z")
    return caterva.open_tree("t.b2z")["g/x"]


def view() -> Any:
    return one_file().view[:, ::2].transpose(0, 2, 1)


def data_set() -> Any:
    if not has_xarray:
        pytest.skip("xarray is not installed")
    import xarray as xr

    xr.Dataset({"x": (("n", "y", "z"), images())}).to_caterva("x.b2z")
    return xr.open_dataset("x.b2z", cache=False)["x"]


def load(data: Any, tasks: Any, found: Any) -> None:
    """A worker: reads the images that the queue names until it gets None."""
    for i in iter(tasks.get, None):
        found.put((i, np.asarray(data[i])))


@needs_fork
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("source", [one_file, directory, archive, view, data_set])
def test_a_data_loader_forks_workers_after_a_read(
    source: Callable[[], Any], pytestconfig: pytest.Config
) -> None:
    """The parent has opened and decoded, and its threads read during the forks."""
    fork, data = multiprocessing.get_context("fork"), source()
    wanted = np.asarray(data)
    over = threading.Event()
    failed: list[Any] = []

    def read_on() -> None:
        i = 0
        while not over.is_set():
            i = (i + 5) % N
            if not np.array_equal(np.asarray(data[i]), wanted[i]):
                failed.append(i)

    readers = [threading.Thread(target=read_on) for _ in range(2)]
    for reader in readers:
        reader.start()
    try:
        for _ in range(times(pytestconfig, 4, 60)):  # epochs
            tasks, found = fork.Queue(), fork.Queue()
            workers = [fork.Process(target=load, args=(data, tasks, found)) for _ in range(3)]
            for worker in workers:
                worker.start()
            for i in [*range(N), *[None] * len(workers)]:
                tasks.put(i)
            seen = dict(found.get(timeout=PATIENCE) for _ in range(N))
            for worker in workers:
                worker.join(PATIENCE)
            assert [worker.exitcode for worker in workers] == [0] * len(workers)
            assert all(np.array_equal(seen[i], wanted[i]) for i in range(N))
    finally:
        over.set()
        for reader in readers:
            reader.join()
    assert not failed


# ---- Threads on one handle ------------------------------------------------------------------


@pytest.mark.parametrize("cache", [-1, 0])
def test_threads_read_through_one_handle(cache: int, pytestconfig: pytest.Config) -> None:
    one_file().close()
    a, wanted = caterva.open("a.b2nd", cache_bytes=cache), images()
    barrier = threading.Barrier(8)

    def read(seed: int) -> bool:
        random = np.random.default_rng(seed)
        barrier.wait(PATIENCE)
        for _ in range(times(pytestconfig, 200, 5000)):
            start, stop = sorted(random.integers(0, N, 2))
            step = int(random.integers(1, 4))
            key = (slice(start, stop + 1, step), slice(None, None, step))
            if not np.array_equal(a[key], wanted[key]):
                return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(read, range(8)))


# ---- Readers beside a writer ----------------------------------------------------------------


def write_rows(path: str, n: int, report: Callable[[int], None]) -> None:
    """Append rows that hold their number; commit and report each."""
    with caterva.open(path, "r+", durability="none") as w:
        for i in range(len(w), len(w) + n):
            w.append(np.full((1, 1000), i))
            w.attrs["rows"] = i + 1
            w.commit()
            report(i + 1)


def check_rows(a: caterva.Array) -> int:
    """Check that the rows are those of one commit; return their number."""
    n = len(a)
    assert a.attrs["rows"] == n
    assert np.array_equal(a[...], np.repeat(np.arange(n)[:, None], 1000, 1))
    return n


def new_rows(path: str) -> None:
    with caterva.create((0, 1000), "i8", path, chunks=(7, 300)) as a:
        a.attrs["rows"] = 0


@pytest.mark.parametrize("path", ["a.b2nd", "t.b2d::/g/a"])
def test_a_file_is_read_while_it_is_written(path: str, pytestconfig: pytest.Config) -> None:
    """No reader fails or sees half of a commit, and no reader blocks the writer."""
    n = times(pytestconfig, 60, 600)
    new_rows(path)
    kept = caterva.open(path)
    ours, theirs = os.pipe()

    def write() -> None:
        os.close(ours)
        write_rows(path, n, lambda i: os.write(theirs, b"."))

    writer = in_child(write)
    os.close(theirs)
    last = 0
    while os.read(ours, 1):  # until the writer ends
        opened = caterva.open(path)
        kept.refresh()
        for a in (opened, kept):
            found = check_rows(a)
            assert found >= last
            last = found
    os.close(ours)
    assert status_of(writer) == 0
    assert check_rows(caterva.open(path)) == n


# ---- A writer that is killed ----------------------------------------------------------------


def kills(path: str, pytestconfig: pytest.Config) -> Iterator[int]:
    """Kill writers after some commits; yield how many rows each has reported."""
    for k in range(times(pytestconfig, 8, 200)):
        ours, theirs = os.pipe()

        def write(ours: int = ours, theirs: int = theirs) -> None:
            os.close(ours)
            write_rows(path, 10_000, lambda i: os.write(theirs, i.to_bytes(4, "little")))

        writer = in_child(write)
        os.close(theirs)
        rows = 0
        for _ in range(1 + k % 5):
            rows = int.from_bytes(os.read(ours, 4), "little")
        os.kill(writer, signal.SIGKILL)
        assert status_of(writer) == -signal.SIGKILL
        while more := os.read(ours, 4):
            rows = int.from_bytes(more, "little")
        os.close(ours)
        yield rows


@pytest.mark.parametrize("path", ["a.b2nd", "t.b2d::/g/a"])
def test_a_killed_writer_leaves_what_it_committed(
    path: str, pytestconfig: pytest.Config
) -> None:
    """The file opens at once, for reading and for writing, without a repair."""
    new_rows(path)
    before = 0
    for rows in kills(path, pytestconfig):
        with caterva.open(path) as a:
            assert a.verify()
            before, found = rows, check_rows(a)
            assert found in (before, before + 1)  # the writer may have died before its report
        with caterva.open(path, "r+") as a:
            assert len(a) == found


# ---- Writers of one chunk -------------------------------------------------------------------


@has_dask
@pytest.mark.parametrize("lock", [False, True])
def test_blocks_smaller_than_chunks_lose_nothing(lock: bool) -> None:
    import caterva.dask
    import dask.array as da

    items = np.arange(100.0**3).reshape(100, 100, 100)
    x = da.from_array(items, chunks=25)
    a = caterva.create(items.shape, "f8", "a.b2nd", chunks=(50, 50, 50))
    da.store(x, a, lock=lock)
    assert np.array_equal(a[...], items)
    a.close()
    caterva.dask.store(x, "b.b2nd", chunks=(50, 50, 50))
    for path in ("a.b2nd", "b.b2nd"):
        assert np.array_equal(caterva.load(path), items)
        assert Path(path).stat().st_size > 0

"""16 threads at once open, read, write, commit, close and refresh.

Each write fills a whole plane of the array with one number, so a plane with two numbers was
read during a write."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable

import caterva
import numpy as np
import pytest
from support import PATIENCE, times

PLANES, SIDE = 24, 40
PATH = "planes.b2nd"


class Crowd:
    """Threads that each repeat one action until they are stopped."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.failures: list[BaseException] = []
        self.end = threading.Event()
        self.threads: list[threading.Thread] = []
        self.done: dict[str, int] = {}

    def add(self, name: str, work: Callable[[random.Random], None], n: int) -> None:
        self.done[name] = 0
        for _ in range(n):
            seed = f"{self.seed} {len(self.threads)}"
            thread = threading.Thread(target=self._run, args=(name, work, seed))
            self.threads.append(thread)

    def _run(self, name: str, work: Callable[[random.Random], None], seed: str) -> None:
        own = random.Random(seed)
        try:
            while not self.end.is_set():
                work(own)
                self.done[name] += 1
        except BaseException as error:
            self.failures.append(error)
            self.end.set()

    def run(self, seconds: float, enough: int) -> None:
        """Run until each action was done `enough` times, for at least `seconds`."""
        for thread in self.threads:
            thread.start()
        begin = time.monotonic()
        while not self.end.is_set() and time.monotonic() - begin < PATIENCE:
            time.sleep(0.01)
            few = [name for name, n in self.done.items() if n < enough]
            if time.monotonic() - begin > seconds and not few:
                break
        self.end.set()
        for thread in self.threads:
            thread.join(PATIENCE)
            assert not thread.is_alive(), "a thread hangs"
        if self.failures:
            raise AssertionError(f"seed {self.seed}") from self.failures[0]


def _whole(plane: np.ndarray) -> None:
    assert (plane == plane.flat[0]).all(), "a plane of two numbers"


@pytest.mark.parametrize("layout", ["contiguous", "sparse"])
def test_sixteen_threads(layout: str, pytestconfig: pytest.Config) -> None:
    seed = random.randrange(1 << 30)
    print("seed", seed)
    caterva.zeros(
        (PLANES, SIDE, SIDE), "i4", PATH, chunks=(1, SIDE, SIDE), blocks=(1, 8, SIDE),
        layout=layout,
    ).close()  # fmt: skip
    writer = caterva.open(PATH, "r+", durability="none")
    shared = caterva.open(PATH)
    handles = [shared]

    def write(own: random.Random) -> None:
        writer[own.randrange(PLANES)] = own.randrange(1 << 30)

    def commit(own: random.Random) -> None:
        time.sleep(0.002)
        if own.randrange(5):
            writer.commit()
        else:
            writer.attrs["n"] = own.randrange(100)

    def read_shared(own: random.Random) -> None:
        _whole(shared[own.randrange(PLANES)])
        shared.shape, shared.chunks, dict(shared.attrs)

    def refresh(own: random.Random) -> None:
        time.sleep(0.001)
        shared.refresh()
        handles[0].closed

    def open_and_close(own: random.Random) -> None:
        with caterva.open(PATH) as array:
            _whole(array[own.randrange(PLANES)])
            array.refresh()
            _whole(array[own.randrange(PLANES)])

    def read_writer(own: random.Random) -> None:
        writer[own.randrange(PLANES), 3, own.randrange(SIDE)]

    def close_under_others(own: random.Random) -> None:
        old = handles[0]
        handles[0] = caterva.open(PATH)
        if old is not shared:
            old.close()

    def read_until_closed(own: random.Random) -> None:
        array = handles[0]
        try:
            _whole(array[own.randrange(PLANES)])
        except ValueError as error:
            assert "closed" in str(error)

    crowd = Crowd(seed)
    for work, n in (
        (write, 3), (commit, 1), (read_shared, 3), (refresh, 1), (open_and_close, 3),
        (read_writer, 1), (close_under_others, 1), (read_until_closed, 3),
    ):  # fmt: skip
        crowd.add(work.__name__, work, n)
    assert len(crowd.threads) == 16
    crowd.run(times(pytestconfig, 1, 120), times(pytestconfig, 20, 500))
    writer.close()
    with caterva.open(PATH) as array:
        assert array.verify()
        for plane in array[...]:
            _whole(plane)


def test_two_threads_close_at_once() -> None:
    for _ in range(50):
        array = caterva.zeros(10, path="twice.b2nd", overwrite=True)
        threads = [threading.Thread(target=array.close) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE)
        assert array.closed


def test_progress_is_changed_beside_calls() -> None:
    """The old progress function lives as long as the calls that use it."""
    array = caterva.zeros((64, 64, 64), "i4", chunks=(8, 64, 64), blocks=(1, 64, 64))
    array[...] = np.random.default_rng(1).integers(0, 100, array.shape)
    end = threading.Event()
    failures: list[BaseException] = []

    def count(own: list[int]) -> Callable[[int, int], None]:
        return lambda done, total: own.append(done)

    def change() -> None:
        while not end.is_set():
            array.progress = count([])
            array.progress = None

    def use() -> None:
        try:
            for _ in range(100):
                array.statistics()
        except BaseException as error:
            failures.append(error)

    changing = threading.Thread(target=change)
    using = [threading.Thread(target=use) for _ in range(3)]
    for thread in (changing, *using):
        thread.start()
    for thread in using:
        thread.join(PATIENCE)
        assert not thread.is_alive()
    end.set()
    changing.join(PATIENCE)
    assert not changing.is_alive() and not failures

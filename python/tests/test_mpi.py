"""Arrays that all processes of an MPI program write."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
import threading
from pathlib import Path
from typing import Any

import caterva
import caterva.mpi
import pytest
from support import PATIENCE

SCRIPTS = Path(sysconfig.get_path("scripts"))
LAUNCHER = shutil.which("mpiexec", path=str(SCRIPTS)) or shutil.which("mpiexec")
needs_mpi = pytest.mark.skipif(
    LAUNCHER is None or importlib.util.find_spec("mpi4py") is None,
    reason="mpi4py or mpiexec is not installed",
)

PROGRAM = """
import sys
import caterva, caterva.mpi
import numpy as np
from mpi4py import MPI

comm = MPI.COMM_WORLD
items = np.arange(101 * 30, dtype="i4").reshape(101, 30)
first, last = 101 * comm.rank // comm.size, 101 * (comm.rank + 1) // comm.size
if comm.rank == 0:
    caterva.zeros((90, 30), "i4", "a.b2nd", chunks=(16, 30)).close()
with caterva.mpi.part("a.b2nd", comm, shape=(101, 30)) as part:
    part[first:last] = items[first:last]
assert np.array_equal(caterva.load("a.b2nd"), items), comm.rank
try:
    with caterva.mpi.part("a.b2nd", comm) as part:
        part[first:last] = 0
        if comm.rank == comm.size - 1:
            raise KeyError("mine")
except KeyError:
    assert comm.rank == comm.size - 1
except RuntimeError as error:
    assert "rank 3: KeyError: 'mine'; nothing was committed" in str(error), error
    assert comm.rank < comm.size - 1
else:
    sys.exit("no error")
assert np.array_equal(caterva.load("a.b2nd"), items), comm.rank
ranks = comm.gather(comm.rank)
if comm.rank == 0:
    print(ranks)
"""


def launch(n: int, *command: str, environment: dict[str, str] | None = None) -> str:
    """Run a program in `n` processes; return its output."""
    assert LAUNCHER
    done = subprocess.run(
        [LAUNCHER, "-n", str(n), *command],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        env=os.environ | (environment or {}),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@needs_mpi
def test_four_processes() -> None:
    printed = launch(4, sys.executable, "-c", PROGRAM)
    assert "[0, 1, 2, 3]" in printed.splitlines(), printed  # launchers print lines, too
    assert caterva.open("a.b2nd").verify()
    assert not os.path.exists("a.b2nd.parts")


# ---- Without MPI ---------------------------------------------------------------------------


class Threads:
    """A communicator between threads, with the methods that `caterva.mpi` uses."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.slots: list[Any] = [None] * size
        self.barrier = threading.Barrier(size, timeout=PATIENCE)

    def rank_of(self, rank: int) -> Rank:
        return Rank(self, rank)


class Rank:
    def __init__(self, threads: Threads, rank: int) -> None:
        self.all, self.rank, self.size = threads, rank, threads.size

    def gather(self, value: Any, root: int = 0) -> list[Any] | None:
        self.all.slots[self.rank] = value
        self.all.barrier.wait()
        result = list(self.all.slots) if self.rank == root else None
        self.all.barrier.wait()
        return result

    def bcast(self, value: Any, root: int = 0) -> Any:
        if self.rank == root:
            self.all.slots[root] = value
        self.all.barrier.wait()
        result = self.all.slots[root]
        self.all.barrier.wait()
        return result


def on_ranks(n: int, work: Any) -> list[Any]:
    """Run `work` on each rank; return the results or exceptions."""
    threads, results = Threads(n), [None] * n

    def run(rank: int) -> None:
        try:
            results[rank] = work(threads.rank_of(rank))
        except BaseException as error:
            results[rank] = error  # type: ignore[call-overload]

    running = [threading.Thread(target=run, args=(rank,)) for rank in range(n)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    return results


@pytest.mark.parametrize("root", [0, 2])
def test_an_open_array_stays_open(root: int) -> None:
    a = caterva.zeros(10, "i4", "a.b2nd", chunks=4)

    def work(comm: Rank) -> None:
        with caterva.mpi.part(a if comm.rank == root else None, comm, root=root) as part:
            part[comm.rank * 3 : comm.rank * 3 + 3] = comm.rank + 1

    assert on_ranks(3, work) == [None] * 3
    assert caterva.load("a.b2nd").tolist() == [1, 1, 1, 2, 2, 2, 3, 3, 3, 0]
    a[0] = 9
    a.close()
    assert caterva.open("a.b2nd")[0] == 9


def test_every_rank_hears_of_a_failure() -> None:
    caterva.zeros(10, "i4", "a.b2nd", chunks=4).close()

    def nowhere(comm: Rank) -> None:
        with caterva.mpi.part("none.b2nd", comm):
            raise AssertionError

    first, *others = on_ranks(3, nowhere)
    assert isinstance(first, FileNotFoundError)
    assert all("rank 0: NotFoundError" in str(other) for other in others)

    def overlapping(comm: Rank) -> None:
        with caterva.mpi.part("a.b2nd", comm) as part:
            part[:5] = comm.rank + 1

    first, *others = on_ranks(3, overlapping)
    assert isinstance(first, FileExistsError)
    assert all("rank 0: ExistsError" in str(other) for other in others)
    caterva.jobs("a.b2nd")[0].job.delete()

    def last(comm: Rank) -> None:
        with caterva.mpi.part("a.b2nd", comm, overlap="last") as part:
            part[:5] = comm.rank + 1

    assert on_ranks(3, last) == [None] * 3
    assert caterva.load("a.b2nd").tolist() == [3] * 5 + [0] * 5

    def failing(comm: Rank) -> None:
        with caterva.mpi.part("a.b2nd", comm) as part:
            part[:5] = 7
            if comm.rank == 0:
                raise ZeroDivisionError

    first, *others = on_ranks(3, failing)
    assert isinstance(first, ZeroDivisionError)
    assert all("rank 0: ZeroDivisionError" in str(other) for other in others)
    assert caterva.open("a.b2nd")[0] == 3
    assert caterva.jobs("a.b2nd") == []

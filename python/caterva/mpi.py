"""Writing one array by all processes of an MPI program::

    with caterva.mpi.part("big.b2nd", comm) as part:
        part[rows_of_this_process] = items

Needs mpi4py, or any communicator with its `rank`, `bcast` and `gather`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, Unpack

from ._array import Array
from ._errors import Error
from ._functions import open as open_array
from ._jobs import Job, Overlap, Part
from ._options import Handle, Path

__all__ = ["part"]


def _world() -> Any:
    from mpi4py import MPI

    return MPI.COMM_WORLD


def _failed(rank: int, error: BaseException) -> tuple[str, int, str]:
    return "failed", rank, f"{type(error).__name__}: {error}"


def _check(outcome: Any) -> Any:
    if isinstance(outcome, tuple) and outcome and outcome[0] == "failed":
        raise RuntimeError(f"rank {outcome[1]}: {outcome[2]}; nothing was committed")
    return outcome


class _Coordinator:
    """Opens, merges and commits on rank `root`, and broadcasts the outcome."""

    def __init__(self, comm: Any, root: int) -> None:
        self.comm, self.root = comm, root
        self.open = ExitStack()
        self.job: Job | None = None
        self.array: Array | None = None

    def begin(self, array: Array | Path, shape: Sequence[int] | None) -> Job:
        """Begin the job and return it on all ranks; if this fails, it fails on all of them."""
        result: Any = None
        if self.comm.rank == self.root:
            try:
                result = self._begin(array, shape)
            except BaseException as error:
                self.open.close()
                self.comm.bcast(_failed(self.root, error), root=self.root)
                raise
        job: Job = _check(self.comm.bcast(result, root=self.root))
        return job

    def _begin(self, array: Array | Path, shape: Sequence[int] | None) -> Job:
        own = not isinstance(array, Array)
        self.array = open_array(array, "r+") if not isinstance(array, Array) else array
        if own:
            self.open.callback(self.array.discard)
        self.job = self.array.job(shape)
        return self.job

    def end(self, outcome: Any, overlap: Overlap) -> None:
        """Merge the tokens of all ranks and commit; if any rank failed, commit nothing."""
        outcomes = self.comm.gather(outcome, root=self.root)
        if self.comm.rank != self.root:
            _check(self.comm.bcast(None, root=self.root))
            return
        with self.open:
            result: Any = None
            try:
                self._merge(outcomes, overlap)
            except BaseException as error:
                result = _failed(self.root, error)
                raise
            finally:
                self.comm.bcast(result, root=self.root)

    def _merge(self, outcomes: list[Any], overlap: Overlap) -> None:
        assert self.job is not None
        with self.job as job:
            for outcome in outcomes:
                _check(outcome)
            job.merge(outcomes, overlap=overlap)


@contextmanager
def part(
    array: Array | Path | None,
    comm: Any = None,
    *,
    shape: Sequence[int] | None = None,
    overlap: Overlap = "error",
    root: int = 0,
    **options: Unpack[Handle],
) -> Iterator[Part]:
    """Return a context manager with the part that this process writes.

    All processes of the communicator must call it. At the end of the block the parts are
    finished, rank `root` merges them, and one commit makes them visible. If any rank raises an
    exception, all ranks do, and nothing is committed.

    Parameters
    ----------
    array
        On rank `root`, an array that is open for writing, or its path. Not used elsewhere.
    comm
        The communicator; None is mpi4py's ``COMM_WORLD``.
    shape
        The array grows to this shape.
    overlap
        As in `Array.merge`. With ``"last"``, the highest rank that wrote an item wins.
    root
        The rank that opens, merges and commits.
    **options
        Options of the part; see `Job.part`.

    Yields
    ------
    Part
    """
    comm = _world() if comm is None else comm
    coordinator = _Coordinator(comm, root)
    job = coordinator.begin(array, shape)  # type: ignore[arg-type]
    outcome: Any
    try:
        with job.part(**options) as mine:
            yield mine
        outcome = mine.token
    except BaseException as error:
        outcome = _failed(comm.rank, error)
        try:
            coordinator.end(outcome, overlap)
        except (RuntimeError, Error) as other:
            raise error from other
        raise
    coordinator.end(outcome, overlap)

"""Random arrays written by random workers, threads and processes, some of which die and are
repeated. The result must be NumPy's, read by this library and by python-blosc2.

    python/tests/run test_many_writers.py --long              3,000 trials in one run
    python/tests/run test_many_writers.py --trials 1 --seed N   one of them again
"""

from __future__ import annotations

import itertools
import math
import os
import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import blosc2
import caterva
import numpy as np
import pytest
from support import in_child, status_of, times

MOST_ITEMS, MOST_CHUNKS, MOST_WORKERS = 6000, 1500, 4
RECORD = np.dtype([("a", "<i2"), ("b", "<f8")])
DTYPES = ["?", "i1", "<i2", ">i4", "<u8", "<f4", "<f8", "<c16", "S5", RECORD]
CODECS = ["blosclz", "lz4", "lz4hc", "zlib", "zstd"]
FILTERS = ["", "shuffle", "bitshuffle", "delta", "delta,shuffle", "shuffle,bytedelta:{n}"]
FATES = ["", "", "", "", "", "half", "unfinished", "untold"]  # where a worker dies


class Write(NamedTuple):
    """One assignment; `key` has slices, or is a mask of the array's shape."""

    key: Any
    values: np.ndarray


class Worker(NamedTuple):
    """The writes of one worker, and where it dies before it is repeated ("": nowhere)."""

    writes: list[Write]
    fate: str
    options: dict[str, Any]


# ---- Random arrays --------------------------------------------------------------------------


class Trial:
    """One array, the writes of its workers, and NumPy's result."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.random = np.random.default_rng(seed)
        self.draw_geometry()
        self.draw_storage()
        self.is_new = self.one_in(4)
        self.by_processes = self.one_in(2) and hasattr(os, "fork")
        self.overlaps = self.one_in(6)
        self.shared = False  # whether two workers write the same item
        self.draw_base()
        self.owners = np.zeros(self.grown, "u1")
        self.workers = [
            self.draw_worker(i + 1) for i in range(self.random.integers(1, MOST_WORKERS + 1))
        ]

    def one_in(self, n: int) -> bool:
        return int(self.random.integers(n)) == 0

    def pick(self, words: list[Any]) -> Any:
        return words[int(self.random.integers(len(words)))]

    def upto(self, n: int) -> int:
        return int(self.random.integers(1, n + 1))

    def draw_geometry(self) -> None:
        ndim = self.upto(5)
        most = max(3, int(MOST_ITEMS ** (1 / ndim)))
        self.shape = tuple(self.upto(most) for _ in range(ndim))
        self.grown = tuple(n + self.upto(6) if self.one_in(4) else n for n in self.shape)
        chunks = [self.upto(n) for n in self.shape]
        while (
            math.prod(-(-n // c) for n, c in zip(self.grown, chunks, strict=True)) > MOST_CHUNKS
        ):
            chunks = [2 * c for c in chunks]
        self.chunks = tuple(chunks)
        self.blocks = tuple(self.upto(n) for n in chunks)

    def draw_storage(self) -> None:
        self.dtype = np.dtype(self.pick(DTYPES))
        self.storage = {
            "chunks": self.chunks,
            "blocks": self.blocks,
            "codec": self.pick(CODECS),
            "level": int(self.random.integers(10)),
            "filters": self.pick(FILTERS).format(n=self.dtype.itemsize),
            "layout": self.pick(["contiguous", "sparse"]),
            "durability": "none" if not self.one_in(8) else "full",
            "threads": self.upto(2),
        }

    def items(self, shape: tuple[int, ...]) -> np.ndarray:
        """Zeros, one repeated item, few kinds of items, or noise."""
        n = math.prod(shape)
        kinds = n if self.one_in(3) else self.upto(3)
        noise = self.random.bytes(kinds * self.dtype.itemsize)
        if self.dtype == "?":
            noise = bytes(b & 1 for b in noise)
        few = (
            np.frombuffer(noise, self.dtype) if not self.one_in(6) else np.zeros(1, self.dtype)
        )
        return np.resize(few, n).reshape(shape)

    def draw_base(self) -> None:
        """Draw the initial contents: nothing, a fill value, a box, or everything."""
        self.fill = None if self.one_in(2) else self.items((1,))[0]
        if self.dtype.kind in "fc" and np.isnan(self.fill or 0):
            self.fill = self.dtype.type(1.5)  # as a fill value every NaN is the same
        first = np.zeros(self.shape, self.dtype)
        if self.fill is not None:
            first[...] = self.fill
        self.base_key = self.pick([None, np.s_[...], self.draw_box(self.shape, steps=False)])
        if self.base_key is not None:
            self.base = self.items(first[self.base_key].shape)
            first[self.base_key] = self.base
        self.before = np.zeros(self.grown, self.dtype)
        if self.fill is not None:
            self.before[...] = self.fill
        self.before[tuple(slice(0, n) for n in self.shape)] = first
        self.expected = self.before.copy()

    def draw_box(self, shape: tuple[int, ...], steps: bool) -> tuple[slice, ...]:
        box = []
        for n in shape:
            start, stop = sorted(self.random.choice(n + 1, 2, replace=False).tolist())
            box.append(slice(start, stop, self.upto(3) if steps else 1))
        return tuple(box)

    def draw_write(self, number: int) -> Write:
        """Draw a box, maybe with steps, without the items of other workers."""
        key: Any = self.draw_box(self.grown, steps=self.one_in(4))
        selected = np.zeros(self.grown, bool)
        selected[key] = True
        taken = selected & (self.owners > 0) & (self.owners != number)
        if taken.any() and not self.overlaps:
            selected &= ~taken
            key = selected
        self.shared = self.shared or bool(taken.any() and self.overlaps)
        values = self.items(self.expected[key].shape)
        self.expected[key] = values
        self.owners[selected] = number
        return Write(key, values)

    def draw_worker(self, number: int) -> Worker:
        writes = [self.draw_write(number) for _ in range(int(self.random.integers(6)))]
        options = {"threads": self.upto(2), "durability": self.storage["durability"]}
        if self.one_in(4):
            options["dirty_budget"] = 4096
        return Worker(writes, self.pick(FATES), options)


# ---- Workers --------------------------------------------------------------------------------


def write_part(job: caterva.Job, worker: Worker, n: int) -> caterva.Part:
    part = job.part(**worker.options)
    for write in worker.writes[:n]:
        part[write.key] = write.values
    return part


def in_thread(job: caterva.Job, worker: Worker) -> bytes:
    """Write a part, after one that is dropped or whose token is lost."""
    if worker.fate == "half":
        write_part(job, worker, len(worker.writes) // 2).discard()
    if worker.fate == "unfinished":
        write_part(job, worker, len(worker.writes)).close()
    if worker.fate == "untold":
        write_part(job, worker, len(worker.writes)).finish()
    return write_part(job, worker, len(worker.writes)).finish()


def in_process(job: caterva.Job, worker: Worker, fate: str, place: Path) -> None:
    """In a child: write a part and its token to a file, or be killed before."""
    n = len(worker.writes)
    part = write_part(job, worker, n // 2 if fate == "half" else n)
    if fate in ("half", "unfinished"):
        os.kill(os.getpid(), signal.SIGKILL)
    token = part.finish()
    if fate == "untold":
        os.kill(os.getpid(), signal.SIGKILL)
    place.write_bytes(token)


def run_threads(job: caterva.Job, workers: list[Worker]) -> list[bytes]:
    with ThreadPoolExecutor(len(workers)) as pool:
        return list(pool.map(in_thread, itertools.repeat(job), workers))


def run_processes(job: caterva.Job, workers: list[Worker]) -> list[bytes]:
    """Run all workers at once; repeat those that died."""
    places = [Path(f"token-{i}") for i in range(len(workers))]

    def start(i: int, fate: str) -> int:
        return in_child(lambda: in_process(job, workers[i], fate, places[i]))

    running = [start(i, worker.fate) for i, worker in enumerate(workers)]
    died = [status_of(process) for process in running]
    assert died == [-signal.SIGKILL if worker.fate else 0 for worker in workers]
    again = [start(i, "") for i, worker in enumerate(workers) if worker.fate]
    statuses = [status_of(process) for process in again]  # of all repeated ones
    assert not any(statuses)
    tokens = [place.read_bytes() for place in places]
    for place in places:
        place.unlink()
    return tokens


# ---- One trial ------------------------------------------------------------------------------


def same(got: Any, expected: np.ndarray) -> bool:
    items = np.asarray(got)
    return items.shape == expected.shape and items.tobytes() == expected.tobytes()


def items_of_theirs(b: Any) -> np.ndarray:
    """Read all items with python-blosc2. With the delta filter read whole chunks: it reads
    parts of a chunk incorrectly then."""
    if blosc2.Filter.DELTA not in b.schunk.cparams.filters:
        return np.asarray(b[...])
    counts = [-(-n // c) for n, c in zip(b.shape, b.chunks, strict=True)]
    blocks = [-(-c // n) for c, n in zip(b.chunks, b.blocks, strict=True)]
    whole = [n * m for n, m in zip(blocks, b.blocks, strict=True)]
    out = np.zeros([n * c for n, c in zip(counts, b.chunks, strict=True)], b.dtype)
    order = [axis for d in range(b.ndim) for axis in (d, d + b.ndim)]
    for number, place in enumerate(np.ndindex(*counts)):
        items = np.frombuffer(b.schunk.decompress_chunk(number), b.dtype)
        chunk = items.reshape(*blocks, *b.blocks).transpose(order).reshape(whole)
        box = tuple(slice(i * c, i * c + c) for i, c in zip(place, b.chunks, strict=True))
        out[box] = chunk[tuple(slice(0, c) for c in b.chunks)]
    return out[tuple(slice(0, n) for n in b.shape)]


def make(t: Trial, path: str) -> caterva.Array:
    fill = {} if t.fill is None else {"fill_value": t.fill}
    make = caterva.zeros if t.fill is None else caterva.full
    a = make(t.shape, dtype=t.dtype, path=path, **fill, **t.storage)
    if t.base_key is not None:
        a[t.base_key] = t.base
    if not t.is_new:
        a.close()
        a = reopen(t, path)
    return a


def reopen(t: Trial, path: str) -> caterva.Array:
    return caterva.open(
        path, "r+", durability=t.storage["durability"], threads=t.storage["threads"]
    )


def open_parts(job: caterva.Job, t: Trial) -> None:
    """Any reader can open parts as arrays."""
    for name in os.listdir(job.folder):
        if name.startswith(".") or name in ("job", "base.b2nd"):
            continue
        part = blosc2.open(os.path.join(job.folder, name), mode="r")
        assert part.chunks == t.chunks
        assert part.blocks == t.blocks
        assert part[...].shape == part.shape


def merge(t: Trial, a: caterva.Array, tokens: list[bytes], path: str) -> caterva.Array:
    """Merge without a commit, with coordinators that die, and again."""
    if not t.is_new and t.one_in(4):
        a.discard()
        a = reopen(t, path)
    if not t.shared:
        tokens = [tokens[i] for i in t.random.permutation(len(tokens))]
        tokens += tokens[: t.random.integers(2)]
        a.merge(tokens)
    else:
        with pytest.raises(FileExistsError):
            a.merge(tokens)
        assert same(a[...], t.before)
        a.merge(tokens, overlap="last")
    assert same(a[...], t.expected)
    if t.one_in(4):
        if not t.is_new and t.one_in(2):
            a.rollback()
        a.merge(tokens, overlap="last" if t.shared else "error")
        assert same(a[...], t.expected)
    return a


def check(t: Trial, path: str) -> None:
    """Compare with this library's reader and with python-blosc2."""
    with caterva.open(path) as a:
        assert same(a[...], t.expected)
        assert a.verify()
    b = blosc2.open(path, mode="r")
    assert (b.shape, b.chunks, b.blocks) == (t.grown, t.chunks, t.blocks)
    assert same(items_of_theirs(b), t.expected)
    assert not os.path.exists(path + ".parts")


def run_trial(t: Trial) -> None:
    path = f"trial-{t.seed}.b2nd"
    a = make(t, path)
    job = a.job(t.grown if t.grown != t.shape else None)
    tokens = (run_processes if t.by_processes else run_threads)(job, t.workers)
    if t.one_in(4):
        open_parts(job, t)
    a = merge(t, a, tokens, path)
    a.commit()
    a.close()
    check(t, path)
    caterva.delete(path)


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_random_workers(pytestconfig: pytest.Config) -> None:
    first = pytestconfig.getoption("--seed")
    if first is None:
        first = int.from_bytes(os.urandom(4), "little")
    n = pytestconfig.getoption("--trials") or times(pytestconfig, 25, 3000)
    print(f"seed {first}, {n} trials")
    blosc2.set_nthreads(1)
    for seed in range(first, first + n):
        try:
            run_trial(Trial(seed))
        except BaseException as error:
            error.add_note(f"--trials 1 --seed {seed}")
            raise

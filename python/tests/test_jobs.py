"""Many writers of one array: jobs, parts, tokens and merges."""

from __future__ import annotations

import math
import multiprocessing
import os
import pickle
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

import caterva
import numpy as np
import pytest
from support import in_child, status_of, times

BANDS = [slice(0, 7), slice(7, 23), slice(23, 40)]  # no edge on a chunk's


def write_band(job: caterva.Job, rows: slice, items: np.ndarray) -> bytes:
    with job.part() as part:
        part[rows] = items[rows]
    return part.token


def new(
    path: str = "a.b2nd", shape: tuple[int, ...] = (40, 30), **options: object
) -> caterva.Array:
    return caterva.zeros(shape, "i4", path, chunks=(10, 16), blocks=(5, 8), **options)


def items_of(shape: tuple[int, ...] = (40, 30)) -> np.ndarray:
    return np.random.default_rng(1).integers(1, 1000, shape, "i4")


# ---- The round --------------------------------------------------------------------------


@pytest.mark.parametrize("layout", ["contiguous", "sparse"])
def test_parts_of_threads_are_one_commit(layout: str) -> None:
    items = items_of()
    with new(layout=layout) as a:
        a.commit()
        with a.job() as job:
            with ThreadPoolExecutor(3) as pool:
                tokens = list(pool.map(write_band, [job] * 3, BANDS, [items] * 3))
            assert caterva.open("a.b2nd").sum() == 0
            merged = job.merge(tokens)
            assert merged.parts == 3
            assert 8 == merged.chunks >= merged.moved_chunks + merged.spliced_chunks > 0
            assert np.array_equal(a[...], items)
            assert caterva.open("a.b2nd").sum() == 0, "the merge is pending"
        assert np.array_equal(caterva.open("a.b2nd")[...], items), "the block's end commits"
        assert caterva.jobs("a.b2nd") == []
        assert not os.path.exists("a.b2nd.parts")
    assert caterva.open("a.b2nd").verify()


@pytest.mark.parametrize("method", ["spawn", "fork"])
def test_jobs_and_tokens_go_to_processes(method: str) -> None:
    items = items_of()
    context = multiprocessing.get_context(method)
    with new() as a, a.job() as job, ProcessPoolExecutor(2, mp_context=context) as pool:
        tokens = list(pool.map(write_band, [job] * 3, BANDS, [items] * 3))
        assert all(type(token) is bytes and len(token) < 1024 + 24 * 8 for token in tokens)
        job.merge([tokens[:1], None, [tokens[1:]]])
    assert np.array_equal(caterva.load("a.b2nd"), items)


def test_a_pickled_job_is_the_job(empty_folder: Path) -> None:
    with new() as a, a.job() as job:
        text = pickle.dumps(job)
        (empty_folder / "elsewhere").mkdir()
        os.chdir("elsewhere")
        other = pickle.loads(text)
        assert (other.path, bytes(other), other.folder) == (job.path, bytes(job), job.folder)
        token = write_band(other, slice(0, 3), items_of())
        with pytest.raises(ValueError, match=r"Array\.merge"):
            other.merge(token)
        assert job.merge(token).parts == 1


def test_another_coordinator_merges() -> None:
    with new() as a:
        job = a.job()
    token = write_band(job, slice(0, 13), items_of())
    (found,) = caterva.jobs("a.b2nd")
    assert (found.is_live, found.n_parts, found.process) == (False, 1, os.getpid())
    assert bytes(found.job) == bytes(job)
    with caterva.open("a.b2nd", "r+") as a:
        assert a.merge([token]).parts == 1
    assert caterva.jobs("a.b2nd") == []
    assert np.array_equal(caterva.open("a.b2nd")[:13], items_of()[:13])


def test_a_job_grows_the_array() -> None:
    with new() as a:
        a[...] = 1
        a.commit()
        with a.job(shape=(55, 30)) as job:
            assert a.shape == (55, 30)
            with job.part() as part:
                part[38:52] = 2
            job.merge(part.token)
    b = caterva.open("a.b2nd")
    assert b.shape == (55, 30)
    assert [int(b[i, 29]) for i in (37, 38, 51, 52)] == [1, 2, 2, 0]
    with caterva.open("a.b2nd", "r+") as a, pytest.raises(ValueError, match="grows"):
        a.job(shape=(3, 30))
    with caterva.open("a.b2nd", "r+") as a, pytest.raises(ValueError, match="axes"):
        a.job(shape=60)


# ---- What goes wrong ----------------------------------------------------------------------


def test_the_same_items_twice() -> None:
    items = items_of()
    with new() as a, a.job() as job:
        first = write_band(job, slice(0, 12), items)
        last = write_band(job, slice(11, 20), items + 1)
        with pytest.raises(FileExistsError):
            job.merge([first, last])
        with pytest.raises(ValueError, match="overlap is one of"):
            job.merge([first, last], overlap="first")  # type: ignore[arg-type]
        job.merge([first, last, first, last], overlap="last")
    b = caterva.open("a.b2nd")
    assert np.array_equal(b[:11], items[:11])
    assert np.array_equal(b[11:20], items[11:20] + 1)


def test_what_is_no_token() -> None:
    with new() as a, a.job() as job:
        token = write_band(job, slice(0, 12), items_of())
        changed = token[:-1] + bytes([token[-1] ^ 1])
        for bad in (b"", b"x", token[:-1], changed):
            with pytest.raises(caterva.CorruptError):
                job.merge([bad])
        for worse in ("text", 7, [7]):
            with pytest.raises(TypeError, match="a token is bytes"):
                job.merge(worse)  # type: ignore[arg-type]
        assert job.merge([]) == caterva.Merged()
        assert job.merge([bytearray(token), memoryview(token)]).parts == 1


def test_the_base_changed() -> None:
    with new() as a:
        job = a.job()
        token = write_band(job, slice(0, 12), items_of())
        a[3, 3] = 77
        with pytest.raises(caterva.StaleError):
            a.merge(token)
    job.discard()
    with pytest.raises(FileNotFoundError):
        job.discard()
    with pytest.raises(FileNotFoundError):
        job.part()


def test_an_exception_leaves_nothing() -> None:
    with new() as a:
        a.commit()
        with pytest.raises(ZeroDivisionError), a.job() as job:
            write_band(job, slice(0, 12), items_of())
            1 / 0
        assert caterva.jobs("a.b2nd") == []


def test_an_exception_behind_the_merge_keeps_the_parts() -> None:
    with new() as a:
        a.commit()
        with pytest.raises(ZeroDivisionError) as told, a.job() as job:
            token = write_band(job, slice(0, 12), items_of())
            job.merge(token)
            1 / 0
        assert "the parts stay in" in told.value.__notes__[0]
        assert a.sum() == 0
        assert a.merge(token).parts == 1
    assert np.array_equal(caterva.open("a.b2nd")[:12], items_of()[:12])


def test_no_merge_no_job() -> None:
    with new() as a:
        with a.job() as job:
            write_band(job, slice(0, 12), items_of())
        assert caterva.jobs("a.b2nd") == []
        assert a.sum() == 0


def test_arrays_without_a_place() -> None:
    with pytest.raises(NotImplementedError, match="in memory"):
        caterva.zeros(4).job()
    caterva.save("a.b2nd", [1])
    with pytest.raises(ValueError, match="for reading"):
        caterva.open("a.b2nd").job()


# ---- Parts ---------------------------------------------------------------------------------


def test_the_life_of_a_part() -> None:
    with new() as a, a.job() as job:
        part = job.part(threads=1)
        assert isinstance(part, caterva.Array) and part.writable
        with pytest.raises(ValueError, match="not finished"):
            part.token
        with pytest.raises(TypeError, match="pickle the job"):
            pickle.dumps(part)
        for change in (part.commit, lambda: part.resize(50, 30), part.job):
            with pytest.raises(NotImplementedError):
                change()
        part[0] = 1
        token = part.finish()
        assert part.closed and part.finish() is token and part.token is token
        with pytest.raises(ValueError, match="closed"):
            part[0] = 2
        dropped = job.part()
        dropped.close()
        with pytest.raises(ValueError, match="closed"):
            dropped.finish()
        with pytest.raises(KeyError), job.part() as failing:
            raise KeyError
        assert failing.closed
        assert caterva.jobs("a.b2nd")[0].n_parts == 1


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_part_is_not_its_childs() -> None:
    with new() as a, a.job() as job:
        part = job.part()
        part[0] = 1

        def work() -> None:
            with pytest.raises(ValueError, match="forked"):
                part.finish()

        assert status_of(in_child(work)) == 0
        job.merge(part.finish())
    assert caterva.open("a.b2nd")[0, 0] == 1


# ---- Targets --------------------------------------------------------------------------------


def test_a_target_takes_assignments() -> None:
    items = items_of()
    with new() as a, a.job() as job:
        target = pickle.loads(pickle.dumps(job.target))
        assert (target.shape, target.dtype, target.ndim) == (a.shape, a.dtype, 2)
        target[BANDS[0]] = 0  # done again: the last one counts
        for rows in BANDS:
            target[rows, :] = items[rows]
        for rows in BANDS:
            target[slice(np.int64(rows.start), rows.stop), slice(None)] = items[rows]
        target[BANDS[0]] = items[BANDS[0]]
        with pytest.raises(FileExistsError):
            job.merge()
        job.merge(overlap="last")
    assert np.array_equal(caterva.load("a.b2nd"), items)


# ---- Random trials --------------------------------------------------------------------------


def boxes(
    random: np.random.Generator, shape: tuple[int, ...], n: int
) -> list[tuple[slice, ...]]:
    """Disjoint boxes, by cutting what is there; some of them are left out."""
    found = [tuple(slice(0, m) for m in shape)]
    while len(found) < n:
        box = found.pop(int(random.integers(len(found))))
        d = int(random.integers(len(shape)))
        if box[d].stop - box[d].start < 2:
            found.append(box)
            n -= 1
            continue
        at = int(random.integers(box[d].start + 1, box[d].stop))
        found += [
            (*box[:d], slice(*ends), *box[d + 1 :])
            for ends in ((box[d].start, at), (at, box[d].stop))
        ]
    return [box for box in found if random.random() < 0.9]


def write_boxes(
    job: caterva.Job, pairs: list[tuple[tuple[slice, ...], np.ndarray]], die: bool
) -> bytes:
    part = job.part()
    for box, values in pairs:
        part[box] = values
    if die:
        part.discard()
        return write_boxes(job, pairs, False)
    return part.finish()


def one_trial(seed: int, pool: ProcessPoolExecutor | ThreadPoolExecutor) -> None:
    random = np.random.default_rng(seed)
    ndim = int(random.integers(1, 6))
    most = max(3, int(20_000 ** (1 / ndim)))
    shape = tuple(int(n) for n in random.integers(1, most, ndim))
    chunks = tuple(int(random.integers(1, n + 1)) for n in shape)
    blocks = tuple(int(random.integers(1, n + 1)) for n in chunks)
    while math.prod(-(-n // c) for n, c in zip(shape, chunks, strict=True)) > 3000:
        chunks = blocks = tuple(min(n, 2 * c) for n, c in zip(shape, chunks, strict=True))
    codec = str(random.choice(["zstd", "lz4", "blosclz"]))
    layout = str(random.choice(["contiguous", "sparse"]))
    base = random.integers(0, 9, shape, "i2")
    grown = tuple(n + int(random.integers(0, 4)) for n in shape)
    expected = np.full(grown, 7, "i2")
    expected[tuple(slice(0, n) for n in shape)] = base
    path = f"trial-{seed}.b2nd"
    with caterva.full(
        shape, 7, "i2", path, chunks=chunks, blocks=blocks, codec=codec, layout=layout
    ) as a:
        a[...] = base
        with a.job(shape=grown) as job:
            k = int(random.integers(1, 5))
            work: list[list[tuple[tuple[slice, ...], np.ndarray]]] = [[] for _ in range(k)]
            for i, box in enumerate(boxes(random, grown, int(random.integers(1, 12)))):
                values = random.integers(0, 5, expected[box].shape, "i2")
                expected[box] = values
                work[i % k].append((box, values))
            dies = [bool(random.random() < 0.2) for _ in range(k)]
            tokens = list(pool.map(write_boxes, [job] * k, work, dies))
            job.merge([tokens[i] for i in random.permutation(k)])
    with caterva.open(path) as a:
        assert np.array_equal(a[...], expected), f"seed {seed}"
        assert a.verify(), f"seed {seed}"
    assert not os.path.exists(path + ".parts"), f"seed {seed}"
    caterva.remove(path)


@pytest.mark.parametrize("kind", ["threads", "processes"])
def test_random_trials(kind: str, pytestconfig: pytest.Config) -> None:
    first = int.from_bytes(os.urandom(4), "little")
    print(f"seed {first}")
    context = multiprocessing.get_context("forkserver")
    made = ThreadPoolExecutor(3) if kind == "threads" else ProcessPoolExecutor(3, context)
    with made as pool:
        for seed in range(first, first + times(pytestconfig, 40, 1500)):
            one_trial(seed, pool)

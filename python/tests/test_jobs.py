"""Many writers of one array: jobs, parts, tokens and merges."""

from __future__ import annotations

import contextlib
import itertools
import multiprocessing
import os
import pickle
import shutil
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import caterva
import numpy as np
import pytest
from support import WINE, in_child, needs_fork, run_program, status_of, times

START_METHODS = [m for m in ("spawn", "fork") if m in multiprocessing.get_all_start_methods()]
BANDS = [slice(0, 7), slice(7, 23), slice(23, 40)]  # no border on a chunk border


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


# ---- Begin, write, merge ----------------------------------------------------------------


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


@pytest.mark.parametrize("method", START_METHODS)
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
    assert not found.has_ended
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
    with caterva.open("a.b2nd", "r+") as a, pytest.raises(ValueError, match="cannot shrink"):
        a.job(shape=(3, 30))
    with caterva.open("a.b2nd", "r+") as a, pytest.raises(ValueError, match="axes"):
        a.job(shape=60)


def test_another_coordinator_sees_how_it_grows() -> None:
    with new() as a:
        a.commit()
        job = a.job(shape=(55, 30))
        a.rollback()
    items = items_of((55, 30))
    tokens = [write_band(job, rows, items) for rows in (slice(0, 33), slice(32, 55))]
    with caterva.open("a.b2nd", "r+") as a:
        assert a.shape == (40, 30)
        with pytest.raises(FileExistsError):
            a.merge(tokens)
        assert a.shape == (55, 30), "which is pending"
        a.rollback()
        assert a.shape == (40, 30)
        a.merge(tokens, overlap="last")
        assert np.array_equal(a[...], items)
    assert np.array_equal(caterva.load("a.b2nd"), items)


@pytest.mark.parametrize("dropped", ["rollback", "discard"])
def test_a_merge_grows_again_what_was_dropped(dropped: str) -> None:
    """The growth that a job began with is pending. If it is dropped, the merge repeats it."""
    a = caterva.asarray(np.arange(6), "a.b2nd", chunks=(4,))
    a.commit()
    job = a.job(shape=9)
    with job.part() as part:
        part[4:9] = 77
    if dropped == "rollback":
        a.rollback()
    else:
        a.discard()
        a = caterva.open("a.b2nd", "r+")
    assert a.shape == (6,)
    a.merge(part.token)
    assert a.shape == (9,) and a[...].tolist() == [0, 1, 2, 3, 77, 77, 77, 77, 77]
    a.rollback()
    assert a.shape == (6,)
    a.merge(part.token)
    a.close()
    assert caterva.load("a.b2nd").tolist() == [0, 1, 2, 3, 77, 77, 77, 77, 77]


# ---- Errors -------------------------------------------------------------------------------


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


def test_a_part_that_was_changed_is_refused_or_right() -> None:
    """Flip every byte of a part, and cut it anywhere: a merge refuses it, or is right."""
    items = np.random.default_rng(3).integers(0, 50, 40).astype("i2")
    with caterva.zeros(80, "i2", "a.b2nd", chunks=20, blocks=10) as a:
        job = a.job()
    with job.part() as part:
        part[:40] = items
    token = part.token
    (path,) = [p for p in Path("a.b2nd.parts").rglob("*") if p.suffix == ".b2nd"]
    good = path.read_bytes()
    n_refused = 0
    damaged = [good[:i] + bytes([good[i] ^ 16]) + good[i + 1 :] for i in range(len(good))]
    damaged += [good[:n] for n in range(len(good))]
    damaged = damaged[:: 9 if WINE else 1]  # which opens files slowly
    for raw in damaged:
        path.write_bytes(raw)
        a = caterva.open("a.b2nd", "r+")
        try:
            a.merge(token)
            assert a[:40].tolist() == items.tolist() and not a[40:].any()
        except (caterva.Error, NotImplementedError):
            n_refused += 1
        a.discard()
    assert len(damaged) / 2 < n_refused < len(damaged)
    path.write_bytes(good)
    with caterva.open("a.b2nd", "r+") as a:
        a.merge(token)
    assert caterva.load("a.b2nd")[:40].tolist() == items.tolist()


def test_the_base_has_another_shape() -> None:
    """A ValueError, as in NumPy; the code is more specific."""
    with new() as a:
        job = a.job()
        token = write_band(job, slice(0, 12), items_of())
        a.resize(50, 30)
        with pytest.raises(caterva.InvalidError, match="shape has changed") as caught:
            a.merge(token)
        assert isinstance(caught.value, ValueError)
        assert caught.value.code == caterva.Status.ESHAPE
    job.delete()


def test_the_base_changed() -> None:
    with new() as a:
        job = a.job()
        token = write_band(job, slice(0, 12), items_of())
        a[3, 3] = 77
        with pytest.raises(caterva.StaleError):
            a.merge(token)
    job.delete()
    with pytest.raises(FileNotFoundError):
        job.delete()
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


def tree_handle() -> contextlib.AbstractContextManager[caterva.Array]:
    @contextlib.contextmanager
    def opened() -> Iterator[caterva.Array]:
        with caterva.open_tree("t.b2d", "r+") as tree:
            yield tree["g/x"]
            tree.commit()

    return opened()


@pytest.mark.parametrize(
    ("file", "opened"),
    [
        ("x.b2nd", tree_handle),
        ("x.b2nd", lambda: caterva.open("t.b2d::/g/x", "r+")),
        ("x.b2nd", lambda: caterva.open("t.b2d/g/x.b2nd", "r+")),
        ("x.b2f", lambda: caterva.open("t.b2d::/g/x", "r+")),
    ],
    ids=["handle", "url", "file", "another name"],
)
def test_arrays_of_trees(file: str, opened: Callable[[], Any]) -> None:
    """Workers, lists and other coordinators find jobs by the URL, or by the file."""
    with caterva.open_tree("t.b2d", "w") as tree:
        tree["g/x"] = np.zeros(10, "i4")
    os.rename("t.b2d/g/x.b2nd", f"t.b2d/g/{file}")
    with opened() as a:
        job = a.job()
        assert Path(job.folder).parent == Path(f"t.b2d/g/{file}.parts").absolute()
        with job.part() as part:
            part[2:4] = 1
        again = pickle.loads(pickle.dumps(job))
        with again.part() as other:
            other[5] = 2
        assert [e.key for e in caterva.open_tree("t.b2d").entries()] == ["/g", "/g/x"]
        for place in ("t.b2d::/g/x", f"t.b2d/g/{file}"):
            (info,) = caterva.jobs(place)
            assert (info.n_parts, info.folder) == (2, job.folder)
        assert a.merge([part.token, other.token]).parts == 2
        assert a[:].sum() == 4
    assert caterva.load("t.b2d::/g/x").tolist() == [0, 0, 1, 1, 0, 2, 0, 0, 0, 0]
    assert os.listdir("t.b2d/g") == [file]
    with caterva.open("t.b2d::/g/x", "r+") as a:
        a.job()
    caterva.jobs("t.b2d::/g/x")[0].job.delete()
    assert os.listdir("t.b2d/g") == [file]


def test_arrays_of_archives() -> None:
    with caterva.open_tree("t.b2d", "w") as tree:
        tree["x"] = np.zeros(10, "i4")
        tree.commit()
        tree.pack("t.b2z")
    before = sorted(os.listdir())
    with pytest.raises(caterva.ReadOnlyError), caterva.open("t.b2z::/x", "r+") as a:
        a.job()
    with pytest.raises(caterva.ReadOnlyError), caterva.open("t.b2z::/x") as a:
        a.job()
    assert caterva.jobs("t.b2z::/x") == []
    assert sorted(os.listdir()) == before


@needs_fork
@pytest.mark.skipif(
    hasattr(os, "getuid") and os.getuid() != 0, reason="only root can become another user"
)
def test_a_job_of_another_user() -> None:
    folder = Path(tempfile.mkdtemp(prefix="caterva-jobs-"))  # other users cannot reach pytest's
    folder.chmod(0o755)
    path = str(folder / "a.b2nd")
    try:
        with new(path) as a:
            a.commit()
            job = a.job()
            token = write_band(job, BANDS[0], items_of())

            def work() -> None:
                os.setuid(65534)
                assert caterva.jobs(path)[0].n_parts == 1
                for attempt in (job.part, job.delete, lambda: caterva.open(path, "r+")):
                    with pytest.raises(PermissionError, match="Permission denied"):
                        attempt()

            assert status_of(in_child(work)) == 0
            a.merge(token)
        assert np.array_equal(caterva.open(path)[BANDS[0]], items_of()[BANDS[0]])
    finally:
        shutil.rmtree(folder)


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
        for keep_up in (part.compact, part.seal):
            with pytest.raises(NotImplementedError, match="part of a job cannot"):
                keep_up()
        with pytest.raises(NotImplementedError):
            part.attrs["x"] = 1
        with pytest.raises(NotImplementedError):
            part.dims = ("y", "x")
        with pytest.raises(NotImplementedError):
            part.merge(b"")
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


@pytest.mark.parametrize("layout", ["contiguous", "sparse"])
def test_a_part_stays_a_part(layout: str) -> None:
    """Calls that rewrite the array at a path are refused: a part's path is the array's."""
    a = new(layout=layout)
    a.commit()
    job = a.job()
    a.close()
    part = job.part()
    part[3] = 1
    for keep_up in (part.compact, part.seal):
        with pytest.raises(caterva.UnsupportedError):
            keep_up()
    part[5] = 9
    with pytest.raises(caterva.UnsupportedError):
        part.commit()
    token = part.finish()
    assert caterva.load("a.b2nd").sum() == 0, "a part writes nothing of the array"
    with caterva.open("a.b2nd", "r+") as again:
        again.merge(token)
    assert caterva.load("a.b2nd")[:, 7].tolist() == [0, 0, 0, 1, 0, 9] + [0] * 34


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
        target[BANDS[0]] = 0  # a repeated task: the last one counts
        for rows in BANDS:
            target[rows, :] = items[rows]
        for rows in BANDS:
            target[slice(np.int64(rows.start), rows.stop), slice(None)] = items[rows]
        target[BANDS[0]] = items[BANDS[0]]
        with pytest.raises(FileExistsError):
            job.merge()
        job.merge(overlap="last")
    assert np.array_equal(caterva.load("a.b2nd"), items)


def test_what_a_target_wrote_is_merged_beside_tokens() -> None:
    """In one call, because they share a chunk; also before and after that call."""
    with caterva.zeros(10, "i4", "a.b2nd", chunks=(8,)) as a, a.job() as job:
        target = job.target
        target[0:3] = 1
        with job.part() as part:
            part[5:8] = 2
        assert job.merge(part.token).parts == 2
        target[8:9] = 3  # after the merge, in another chunk
    assert caterva.load("a.b2nd").tolist() == [1, 1, 1, 0, 0, 2, 2, 2, 3, 0]
    assert not os.path.exists("a.b2nd.parts")


def test_a_target_is_merged_once() -> None:
    with caterva.zeros(10, "i4", "a.b2nd", chunks=(4,)) as a, a.job() as job:
        job.target[0:3] = 1
        job.merge()
        a[0] = 9  # merged items can be changed
        with job.part() as part:
            part[5] = 2
        assert job.merge(part.token).parts == 1
    assert caterva.load("a.b2nd").tolist() == [9, 1, 1, 0, 0, 2, 0, 0, 0, 0]


def test_a_target_that_is_not_merged_says_so() -> None:
    """A chunk that was merged before cannot be the base of another part of the job."""
    with caterva.zeros(10, "i4", "a.b2nd") as a:
        a.commit()
        with pytest.raises(caterva.StaleError) as caught, a.job() as job:
            job.target[0:3] = 1
            job.merge()
            job.target[5:7] = 2
        assert "the parts stay" in caught.value.__notes__[0]
        assert a[:].sum() == 0, "nothing is committed"
        assert caterva.jobs("a.b2nd")[0].n_parts == 2
        with pytest.raises(ValueError, match="closed"), a.job() as job:
            job.target[1] = 1
            a.close()
    assert len(caterva.jobs("a.b2nd")) == 2


def test_a_merge_that_failed_is_tried_again() -> None:
    with caterva.zeros(10, "i4", "a.b2nd") as a:
        with pytest.raises(FileExistsError), a.job() as job:
            job.target[0:3] = 1
            job.target[2:5] = 2
            with contextlib.suppress(FileExistsError):
                job.merge()
        assert len(caterva.jobs("a.b2nd")) == 1, "the parts are not discarded"


# ---- Space and memory ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "edges", [(0, 128, 256), (0, 77, 201, 256)], ids=["whole chunks", "cut"]
)
def test_parts_leave_no_holes(edges: tuple[int, ...]) -> None:
    items = np.random.default_rng(3).integers(0, 1 << 20, (256, 512), "i4")
    options = {"chunks": (32, 128), "blocks": (8, 64)}
    caterva.save("alone.b2nd", items, **options)
    with caterva.zeros(items.shape, "i4", "together.b2nd", **options) as a, a.job() as job:
        rows = [slice(*pair) for pair in itertools.pairwise(edges)]
        job.merge([write_band(job, band, items) for band in rows])
    assert np.array_equal(caterva.load("together.b2nd"), items)
    alone, together = (Path(f"{name}.b2nd").stat().st_size for name in ("alone", "together"))
    assert together <= 1.05 * alone


MANY = """
import resource, sys
import caterva, numpy as np

n = int(sys.argv[1])
a = caterva.zeros(n * 64, "i4", "many.b2nd", chunks=256, durability="none")
with a, a.job() as job:
    tokens = []
    for i in range(n):
        with job.part(durability="none", threads=1) as part:
            part[64 * i : 64 * i + 64] = i + 1
        tokens.append(part.token)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert job.merge(tokens).parts == n
a = caterva.open("many.b2nd")
assert np.array_equal(a[...], np.arange(n * 64) // 64 + 1)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""


def test_very_many_parts_take_little_memory(pytestconfig: pytest.Config) -> None:
    done = run_program(MANY, ".", str(times(pytestconfig, 1000, 10_000)))
    if "CATERVA_SANITIZED" not in os.environ:  # sanitizers keep freed memory
        assert int(done.stdout) < 200, "MiB"

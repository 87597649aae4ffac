"""Opening, modes, commits and closing, at any moment and from any thread."""

from __future__ import annotations

import contextlib
import copy
import gc
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path
from typing import Any

import caterva
import numpy as np
import pytest
from support import NUMPY_2, WINDOWS, needs_fork, needs_proc, removes_open_files


def _sample(path: str = "a.b2nd", **options: Any) -> np.ndarray[Any, Any]:
    items = np.arange(60).reshape(6, 10)
    caterva.save(path, items, **options)
    return items


# ---- Modes ------------------------------------------------------------------------------


def test_modes() -> None:
    with pytest.raises(FileNotFoundError):
        caterva.open("a.b2nd")
    with pytest.raises(FileNotFoundError):
        caterva.open("a.b2nd", "r+")
    with caterva.open("a.b2nd", "x", shape=(2, 3), dtype="i4") as a:
        a[:] = 1
    with pytest.raises(FileExistsError):
        caterva.open("a.b2nd", "x", shape=3, dtype="i4")
    with caterva.open("a.b2nd", "a", shape=(2, 3), dtype="i4", chunks=1, fill_value=4) as a:
        assert a.chunks == (2, 3)
        a[0] = 2
    with caterva.open("a.b2nd", "r+") as a:
        a[1, 0] = 3
    with caterva.open("a.b2nd") as a:
        assert a[:].tolist() == [[2, 2, 2], [3, 1, 1]]
        with pytest.raises(ValueError, match="read-only"):
            a[0] = 1
    with caterva.open("a.b2nd", "w", shape=2, dtype="u1") as a:
        assert a[:].tolist() == [0, 0]
    with caterva.open("b.b2nd", "a", shape=2, dtype="u1") as a:
        a[1] = 1
    assert caterva.load("b.b2nd").tolist() == [0, 1]
    with pytest.raises(ValueError, match="mode"):
        caterva.open("a.b2nd", "rw")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="shape"):
        caterva.open("c.b2nd", "w")


def test_mode_a_finds_what_was_meant() -> None:
    """Like h5py's require_dataset."""
    opening: dict[str, Any] = {"keep_bytes": -1, "unchecked": False, "threads": 1}
    for shape in (3, (3,), [3]):
        caterva.open("a.b2nd", "a", shape=shape, dtype="i4", **opening).close()
    caterva.open("a.b2nd", "a", dtype="i4").close()
    caterva.open("a.b2nd", "a").close()
    there = r"a\.b2nd has shape \(3,\) and dtype int32, not "
    for words, wrong in (
        ({"shape": 4}, r"shape \(4,\)$"),
        ({"shape": (3, 1), "dtype": "i4"}, r"shape \(3, 1\) and dtype int32$"),
        ({"dtype": "f8"}, "dtype float64$"),
        ({"dtype": ">i4"}, "dtype >i4$"),
        ({"shape": 3, "dtype": ("i4", 2)}, r"shape \(3, 2\) and dtype int32$"),
    ):
        with pytest.raises(ValueError, match=there + wrong):
            caterva.open("a.b2nd", "a", **words)  # type: ignore[call-overload]
    caterva.open("a.b2nd", "r+").close()  # the failed attempts hold no lock
    caterva.open("b.b2nd", "a", shape=3, dtype=("i4", 2)).close()
    with caterva.open("b.b2nd", "a", shape=3, dtype=("i4", 2)) as b:
        assert b.shape == (3, 2)
    for path in ("a.b2nd", "new.b2nd"):
        with pytest.raises(TypeError, match="keep_byte"):
            caterva.open(path, "a", shape=3, dtype="i4", keep_byte=1)  # type: ignore[call-arg]


def test_second_writer_is_busy() -> None:
    _sample()
    with caterva.open("a.b2nd", "r+"):
        with pytest.raises(BlockingIOError) as caught:
            caterva.open("a.b2nd", "r+")
        assert isinstance(caught.value, caterva.BusyError)
        assert caught.value.code == caterva.Status.EBUSY


def test_the_block_commits_or_discards() -> None:
    items = _sample()
    with pytest.raises(ZeroDivisionError), caterva.open("a.b2nd", "r+") as a:
        a[:] = 0
        raise ZeroDivisionError
    assert np.array_equal(caterva.load("a.b2nd"), items)
    with pytest.raises(ZeroDivisionError), caterva.create(3, path="never.b2nd") as a:
        raise ZeroDivisionError
    assert not os.path.exists("never.b2nd")


def test_commit_rollback_refresh() -> None:
    items = _sample()
    reader = caterva.open("a.b2nd")
    writer = caterva.open("a.b2nd", "r+")
    writer[0] = 7
    writer.rollback()
    assert np.array_equal(writer[:], items)
    writer.append(np.arange(10))
    writer.commit()
    assert reader.shape == (6, 10)
    reader.refresh()
    assert reader.shape == (7, 10) and reader[6].tolist() == list(range(10))
    writer.resize(2, 10)
    writer.rollback()
    assert writer.shape == (7, 10)
    writer.close()


@pytest.mark.parametrize("other", ["f4", ">i8", "two axes"])
def test_refresh_to_another_array(other: str) -> None:
    """Dtype and number of axes are fixed for the life of an object."""
    caterva.save("a.b2nd", np.arange(4, dtype="i8"), overwrite=True)
    reader = caterva.open("a.b2nd")
    view, both = reader.view[1:3], caterva.concat([reader, reader])
    now = np.zeros((2, 2), "i8") if other == "two axes" else np.zeros(4, other)
    caterva.save("a.b2nd", now, overwrite=True)
    with pytest.raises(ValueError, match=r"another array now.*this one has been closed"):
        reader.refresh()
    assert reader.closed
    assert (reader.dtype, reader.ndim) == ("i8", 1)
    for use in (lambda: reader[...], lambda: view[...], lambda: both[...], view.max,
                reader.refresh):  # fmt: skip
        with pytest.raises(ValueError, match="closed"):
            use()
    assert np.array_equal(caterva.load("a.b2nd"), now)


@removes_open_files
def test_refresh_to_nothing() -> None:
    items = _sample()
    reader = caterva.open("a.b2nd")
    os.remove("a.b2nd")
    with pytest.raises(caterva.NotFoundError):
        reader.refresh()
    assert np.array_equal(reader[...], items)


def test_views_of_another_shape_are_stale() -> None:
    items = _sample()
    reader = caterva.open("a.b2nd")
    view = reader.view[1:3]
    caterva.save("a.b2nd", np.concatenate([items, items]), overwrite=True)
    reader.refresh()
    assert reader.shape == (12, 10)
    for use in (lambda: view[...], lambda: view[[0]], view.max):
        with pytest.raises(caterva.StaleError):
            use()
    assert np.array_equal(reader.view[7:9][...], items[1:3])


def test_closed_arrays_say_so() -> None:
    _sample()
    a = caterva.open("a.b2nd")
    a.close()
    a.close()
    for use in (lambda: a[0, 0], lambda: a[0], lambda: a.commit(), lambda: a.sum(),
                lambda: a.refresh(), lambda: a.attrs["x"], lambda: a[[1, 2]]):  # fmt: skip
        with pytest.raises(ValueError, match="closed"):
            use()
    assert "closed" in repr(a)


def test_paths_are_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _sample()
    a = caterva.open(Path("a.b2nd"))
    monkeypatch.chdir("/")
    a.refresh()
    assert a.path == str(tmp_path / "a.b2nd")


@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_an_array_that_is_dropped_is_committed() -> None:
    _sample()
    a = caterva.open("a.b2nd", "r+")
    a[0, 0] = 99
    del a
    gc.collect()
    assert caterva.open("a.b2nd")[0, 0] == 99


def test_dropping_what_is_pending_is_told() -> None:
    _sample()

    def dropped(change: bool, **options: Any) -> list[tuple[type, str]]:
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            a = caterva.open("a.b2nd", **options) if options else caterva.zeros(3)
            if change:
                a[0] = 5
            del a
            gc.collect()
        return [(w.category, str(w.message)) for w in told]  # the warning's source is the array

    ((category, text),) = dropped(True, mode="r+")
    assert category is ResourceWarning
    assert "a.b2nd" in text and "commit" in text
    assert caterva.open("a.b2nd")[0, 0] == 5, "it is committed all the same"
    assert not dropped(False, mode="r+")
    assert not dropped(False, mode="r")
    assert not dropped(True), "of what is in memory nothing would be kept"
    assert len(dropped(True, mode="w", shape=3)) == 1
    with caterva.open("a.b2nd", "r+") as a:
        a[0] = 6
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        del a
        gc.collect()


def test_exit_commits_what_is_open() -> None:
    _sample()
    code = (
        "import caterva; a = caterva.open('a.b2nd', 'r+'); a[0, 1] = 77; b = caterva.zeros(3)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    assert caterva.open("a.b2nd")[0, 1] == 77


def test_offset_and_frames() -> None:
    items = _sample()
    frame = caterva.open("a.b2nd").to_bytes()
    Path("two.bin").write_bytes(b"x" * 100 + frame)
    assert np.array_equal(caterva.open("two.bin", offset=100)[:], items)
    a = caterva.from_bytes(frame)
    with pytest.raises(ValueError, match="read-only"):
        a[0] = 1
    b = caterva.from_bytes(frame, writable=True)
    b[0] = 1
    assert np.array_equal(a[:], items)
    assert caterva.from_bytes(b.to_bytes())[0].tolist() == [1] * 10
    with pytest.raises(caterva.CorruptError):
        caterva.from_bytes(frame[:50])


def test_compact_and_seal() -> None:
    items = _sample(chunks=(2, 10))
    with caterva.open("a.b2nd", "r+") as a:
        for value in range(3):
            a[:] = np.random.default_rng(value).integers(0, 1 << 60, items.shape)
            a.commit()
        size = os.path.getsize("a.b2nd")
        a.compact()
        a.seal()
        assert os.path.getsize("a.b2nd") < size
        a[0] = 5
    assert caterva.open("a.b2nd")[0, 0] == 5
    caterva.compact("a.b2nd")
    caterva.seal("a.b2nd")
    with pytest.raises(ValueError, match="memory"):
        caterva.zeros(3).compact()
    caterva.delete("a.b2nd")
    assert not os.path.exists("a.b2nd")


def test_pickles_and_copies() -> None:
    items = _sample()
    a = caterva.open("a.b2nd")
    b = pickle.loads(pickle.dumps(a))
    assert b.path == a.path and np.array_equal(b[:], items) and not b.writable
    c = copy.deepcopy(a)
    c[0] = 1
    assert c.path is None and np.array_equal(a[:], items)
    d = pickle.loads(pickle.dumps(c))
    d[1] = 2
    assert d[0, 0] == 1 and c[1, 0] == items[1, 0]
    frame = a.to_bytes()
    Path("two.bin").write_bytes(b"x" * 10 + frame)
    assert pickle.loads(pickle.dumps(caterva.open("two.bin", offset=10)))[1, 1] == items[1, 1]
    with caterva.open("a.b2nd", "r+") as w, pytest.raises(TypeError, match="writing"):
        pickle.dumps(w)


# ---- Errors -----------------------------------------------------------------------------


def test_errors_are_what_python_expects() -> None:
    Path("text.b2nd").write_text("this is no array at all, not even remotely so")
    with pytest.raises(OSError) as caught:
        caterva.open("text.b2nd")
    assert isinstance(caught.value, caterva.CorruptError | caterva.UnsupportedError)
    assert isinstance(caught.value, caterva.Error)
    with pytest.raises(TypeError):
        caterva.create(3, object)
    with pytest.raises(TypeError):
        caterva.create(3, "i4", compression="zstd")  # type: ignore[call-arg]
    with pytest.raises(ValueError, match="-1"):
        caterva.create(-1)
    with pytest.raises(ValueError, match="negative"):
        caterva.create((3, -1))
    with pytest.raises(ValueError, match="codec"):
        caterva.create(3, codec="best")
    with pytest.raises(ValueError):
        caterva.create((2, 3), chunks=(1, 2, 3))
    with pytest.raises(ValueError):
        caterva.create([2] * 16)
    with pytest.raises(TypeError, match="cast"):
        caterva.zeros(3).read(dtype="i4")
    with pytest.raises(KeyError):
        caterva.zeros(3).attrs["none"]
    if NUMPY_2:
        with pytest.raises(ValueError, match="copy"):
            np.asarray(caterva.zeros(3), copy=False)
        with pytest.raises(OverflowError):
            caterva.zeros(3, "u1")[0] = 300


def test_errors_know_code_and_position() -> None:
    _sample()
    raw = bytearray(Path("a.b2nd").read_bytes())
    for at in range(20, len(raw), 7):
        raw[at] ^= 0x55
    Path("bad.b2nd").write_bytes(raw)
    with pytest.raises(caterva.CorruptError) as caught:
        caterva.open("bad.b2nd")
    assert caught.value.code is caterva.Status.ECORRUPT
    assert caught.value.position is None or caught.value.position >= 0
    again = pickle.loads(pickle.dumps(caught.value))
    assert type(again) is caterva.CorruptError and str(again) == str(caught.value)
    assert again.code == caught.value.code


def test_verify_and_repair_tell_of_damage() -> None:
    rng = np.random.default_rng(1)
    items = rng.integers(0, 1 << 60, (8, 1000))
    caterva.save("a.b2nd", items, chunks=(2, 1000), blocks=(1, 1000))
    chunk = caterva.open("a.b2nd").chunk(2)
    raw = bytearray(Path("a.b2nd").read_bytes())
    raw[chunk.position + chunk.stored_bytes // 2] ^= 1
    Path("a.b2nd").write_bytes(raw)
    with caterva.open("a.b2nd") as a:
        report = a.verify()
        assert not report and report.damaged_chunks == 1
        assert report.damages[0].chunk == 2 and report.damages[0].index == (2, 0)
        with pytest.raises(caterva.CorruptError, match="chunk"):
            a[:]
        part, report = a.read_around_damage(fill_value=-1)
        assert (part[4:6] == -1).all() and np.array_equal(part[:4], items[:4])
        assert not report
    result = caterva.repair("a.b2nd", "b.b2nd")
    assert result.written and result.lost_chunks == 1 and result.damages
    assert result.unverified_chunks == 0
    assert np.array_equal(caterva.load("b.b2nd")[6:], items[6:])


# ---- Stopping ---------------------------------------------------------------------------


def test_progress_hears_and_stops() -> None:
    a = caterva.asarray(np.random.default_rng(0).integers(0, 9, (400, 300, 40)))
    heard: list[tuple[int, int]] = []
    a.progress = lambda done, total: heard.append((done, total))
    a[:]
    assert heard and heard[-1][0] == heard[-1][1]
    a.progress = None
    steps: list[int] = []
    a.commit()
    a.verify(progress=lambda done, total: steps.append(done))
    assert steps[-1] >= a.nbytes

    def fail(done: int, total: int) -> None:
        raise ZeroDivisionError

    def use(done: int, total: int) -> None:
        a[0, 0, 0]

    with pytest.raises(ZeroDivisionError):
        a.statistics(progress=fail)
    with pytest.raises(RuntimeError, match="progress"):
        a.statistics(progress=use)
    assert a[0, 0, 0] >= 0


SLOW = """
import caterva, numpy as np, _thread, sys, threading
a = caterva.zeros((600, 600, 600), "f4", chunks=60, blocks=(10, 60, 60), cache_bytes=-1)
a[:60] = np.random.default_rng(0).random((60, 600, 600), "f4")
print("ready", flush=True)
if sys.platform == "win32":  # which sends no SIGINT to a process
    threading.Timer(0.5, _thread.interrupt_main).start()
try:
    while True:
        %s
except KeyboardInterrupt:
    print("stopped", flush=True)
"""


@pytest.mark.parametrize("call", ["a.copy(codec='zstd', level=9)", "a.sum(axis=0)", "a[:60]"])
def test_keyboard_interrupt_stops_long_calls(call: str) -> None:
    command = [sys.executable, "-c", SLOW % call]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout and process.stdout.readline() == "ready\n"
    if not WINDOWS:
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
    assert process.stdout.readline() == "stopped\n"
    assert process.wait() == 0


# ---- Threads ----------------------------------------------------------------------------


def test_close_and_refresh_at_any_moment() -> None:
    items = _sample(chunks=(2, 5), blocks=(1, 5))
    failures: list[BaseException] = []
    arrays = [caterva.open("a.b2nd")]
    stop = threading.Event()

    def read() -> None:
        rng = np.random.default_rng(threading.get_ident() % 1000)
        while not stop.is_set():
            try:
                i, j = (int(n) for n in rng.integers(0, (6, 10)))
                assert arrays[0][i, j] == items[i, j]
                assert np.array_equal(arrays[0][[i, 0], j:], items[[i, 0], j:])
            except ValueError as error:
                if "closed" not in str(error):
                    failures.append(error)
            except BaseException as error:
                failures.append(error)

    threads = [threading.Thread(target=read) for _ in range(6)]
    for thread in threads:
        thread.start()
    for n in range(300):
        if n % 3:
            arrays[0].refresh()
        else:
            arrays[0].close()
            arrays[0] = caterva.open("a.b2nd")
    stop.set()
    for thread in threads:
        thread.join()
    assert not failures, failures[0]


def test_a_writer_beside_readers_of_the_same_array() -> None:
    a = caterva.zeros((16, 64), "i8", path="w.b2nd", chunks=(4, 64), blocks=(1, 64))
    stop = threading.Event()
    failures: list[Any] = []

    def read() -> None:
        while not stop.is_set():
            row = a[5]
            if len(set(row.tolist())) != 1:
                failures.append(row)

    threads = [threading.Thread(target=read) for _ in range(3)]
    for thread in threads:
        thread.start()
    for value in range(200):
        a[5] = value
        if value % 20 == 0:
            a.commit()
        if value % 50 == 0:
            a.append(np.zeros((1, 64)))
    stop.set()
    for thread in threads:
        thread.join()
    a.close()
    assert not failures


@needs_fork
def test_children_of_fork_read_and_leave_the_parents_alone() -> None:
    items = _sample(chunks=(2, 5))
    a = caterva.open("a.b2nd", "r+")
    a[0, 0] = 55
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            assert np.array_equal(caterva.open("a.b2nd")[:], items)
            a.close()
            status = 0
        finally:
            os._exit(status)
    assert os.waitpid(pid, 0)[1] == 0
    assert caterva.open("a.b2nd")[0, 0] == 0
    a.close()
    assert caterva.open("a.b2nd")[0, 0] == 55


# ---- Memory -----------------------------------------------------------------------------


def _rss() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@needs_proc
def test_nothing_leaks(request: pytest.FixtureRequest) -> None:
    rounds = 20000 if request.config.getoption("--long") else 1500
    a = caterva.asarray(np.arange(400).reshape(20, 20), "leak.b2nd", chunks=(7, 7))
    a.commit()
    shape = (20, 20)
    mask = np.zeros(shape, bool)
    mask[3] = True

    def refuse(key: Any) -> None:
        with contextlib.suppress(IndexError):
            a[key]

    def once(n: int) -> None:
        a[3, 4]
        a[2:9, ::-2]
        a[[1, 2], :]
        a[mask]
        a[[0, 5], [3, 3]]
        refuse((50, 1))
        refuse(1.5)
        a[1, 1] = n
        a[2] = range(20)
        a[[4, 4], 1] = 3
        a.view[1:, ::2].T[0]
        a.info
        a.attrs["n"] = n
        a.attrs["n"]
        a.sum(axis=0)
        a.read(np.s_[:3], dtype="f8")
        if n % 50 == 0:
            a.rollback()
            caterva.open("leak.b2nd")[0]
            caterva.from_bytes(a.to_bytes())[0]
            a.copy()[1]

    for n in range(300):
        once(n)
    gc.collect()
    before, blocks = _rss(), sys.getallocatedblocks()
    for n in range(rounds):
        once(n)
    gc.collect()
    assert sys.getallocatedblocks() - blocks < 500
    if "CATERVA_SANITIZED" not in os.environ:  # sanitizers keep freed memory
        assert _rss() - before < (8 << 20)


def test_references_are_counted() -> None:
    a = caterva.zeros((3, 3))
    key, value = (1, slice(None)), np.ones(3)
    counts = sys.getrefcount(key), sys.getrefcount(value), sys.getrefcount(a.dtype)
    for _ in range(50):
        a[key] = value
        a[key]
        a[(1, 1)]
        a[[0, 1]] = value
    assert counts == (sys.getrefcount(key), sys.getrefcount(value), sys.getrefcount(a.dtype))

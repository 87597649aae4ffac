"""Pending changes at close, exit and interruption: the cells of the table in
docs/reliability.md, "What close, exit and interruption do"."""

from __future__ import annotations

import gc
import itertools
import os
import random
import signal
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import caterva
import numpy as np
import pytest
from support import WINDOWS, interrupted_at, needs_fork, replaces_open_files, run_program, times

N = 60_000
OLD = np.zeros(N, "i8")
NEW = np.random.default_rng(0).integers(0, 1 << 60, N)

KINDS = ("array", "tree")


def place(kind: str) -> str:
    """The path that a reader opens."""
    return "a.b2nd" if kind == "array" else "t.b2d::/g/x"


def opened(kind: str) -> Any:
    """A handle of an array or tree that is open for writing and has pending changes."""
    if kind == "array":
        caterva.save("a.b2nd", OLD, overwrite=True)
        handle = caterva.open("a.b2nd", "r+")
        handle[:] = NEW
        handle.attrs["n"] = 1
        return handle
    with caterva.open_tree("t.b2d", "w") as tree:
        tree["g/x"] = OLD
    handle = caterva.open_tree("t.b2d", "r+")
    handle["g/x"][:] = NEW
    handle["g/x"].attrs["n"] = 1
    handle["new"] = [1, 2]
    handle["g"].attrs["n"] = 1
    return handle


def stored(kind: str) -> np.ndarray[Any, Any]:
    """The items that a reader sees; they must be all OLD or all NEW."""
    with caterva.open(place(kind)) as array:
        items = np.asarray(array[:])
        assert ("n" in array.attrs) == np.array_equal(items, NEW)
    assert np.array_equal(items, OLD) or np.array_equal(items, NEW)
    if kind == "tree":
        with caterva.open_tree("t.b2d") as tree:
            assert ("new" in tree) == ("n" in tree["g"].attrs) == np.array_equal(items, NEW)
    return items


def is_new(kind: str) -> bool:
    return np.array_equal(stored(kind), NEW)


@contextmanager
def full_disk(kind: str) -> Iterator[None]:
    """Limit the size of files to 20 kB."""
    resource = pytest.importorskip("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@contextmanager
def file_moved(kind: str) -> Iterator[None]:
    """Rename the file that is being written for a while."""
    name = "a.b2nd" if kind == "array" else "t.b2d/g/x.b2nd"
    os.rename(name, "elsewhere")
    try:
        yield
    finally:
        os.rename("elsewhere", name)


FAILURES = {"full disk": full_disk, "file moved": file_moved}


@pytest.fixture(params=FAILURES)
def failing(request: pytest.FixtureRequest) -> Callable[[str], Any]:
    how: Callable[[str], Any] = FAILURES[request.param]
    return how


# ---- close, discard, with -----------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_close_and_the_end_of_a_block_commit(kind: str) -> None:
    handle = opened(kind)
    handle.close()
    assert handle.closed and is_new(kind)
    with opened(kind):
        pass
    assert is_new(kind)


@pytest.mark.parametrize("kind", KINDS)
def test_discard_and_an_exception_in_a_block_drop(kind: str) -> None:
    handle = opened(kind)
    handle.discard()
    assert handle.closed and not is_new(kind)
    for error in (ZeroDivisionError, KeyboardInterrupt, SystemExit):
        handle = opened(kind)
        with pytest.raises(error), handle:
            raise error
        assert handle.closed and not is_new(kind)


@pytest.mark.parametrize("end", ["close", "block"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_close_that_fails_is_repeated(
    kind: str, end: str, failing: Callable[[str], Any]
) -> None:
    handle = opened(kind)
    for _ in range(2):
        with failing(kind), pytest.raises(OSError):
            if end == "close":
                handle.close()
            else:
                with handle:
                    pass
        assert not handle.closed and not is_new(kind)
    array = handle if kind == "array" else handle["g/x"]
    assert np.array_equal(array[:], NEW) and array.attrs["n"] == 1
    handle.close()
    assert handle.closed and is_new(kind)


@pytest.mark.parametrize("after", ["discard", "rollback", "commit"])
@pytest.mark.parametrize("kind", KINDS)
def test_what_may_follow_a_close_that_failed(
    kind: str, after: str, failing: Callable[[str], Any]
) -> None:
    handle = opened(kind)
    with failing(kind), pytest.raises(OSError):
        handle.close()
    getattr(handle, after)()
    assert handle.closed == (after == "discard")
    handle.close()
    assert is_new(kind) == (after == "commit")
    caterva.open(place(kind), "r+").close()  # no lock is left


def test_compact_and_seal_keep_what_they_cannot_commit() -> None:
    for upkeep in ("compact", "seal"):
        handle = opened("array")
        with full_disk("array"), pytest.raises(OSError):
            getattr(handle, upkeep)()
        assert np.array_equal(handle[:], NEW)
        handle.close()
        assert is_new("array")


@replaces_open_files
@pytest.mark.parametrize("kind", KINDS)
def test_a_file_that_was_replaced_is_left_alone(kind: str) -> None:
    handle = opened(kind)
    name = "a.b2nd" if kind == "array" else "t.b2d/g/x.b2nd"
    caterva.save("other.b2nd", np.arange(3))
    os.replace("other.b2nd", name)
    with pytest.raises(OSError, match=r"replaced|moved|another"):
        handle.close()
    assert not handle.closed
    handle.discard()
    assert handle.closed and caterva.load(name).tolist() == [0, 1, 2]


# ---- Interruption ---------------------------------------------------------------------------


BIG = np.random.default_rng(1).integers(0, 1 << 30, 1 << 21)  # its commit reports progress


def opened_big(kind: str) -> Any:
    """A handle with so many pending changes that its commit calls the progress function."""
    options: dict[str, Any] = {"level": 9, "chunks": 1 << 18, "blocks": 1 << 14}
    if kind == "array":
        handle = caterva.zeros(BIG.size, "i8", "a.b2nd", overwrite=True, threads=1,
                               dirty_budget=1 << 28, **options)  # fmt: skip
        handle.commit()
        write_blocks(handle)
        return handle
    tree = caterva.open_tree("t.b2d", "w", threads=1, dirty_budget=1 << 28)
    array = tree.create_array("g/x", BIG.size, "i8", **options)
    tree.commit()
    write_blocks(array)
    return tree


def write_blocks(array: caterva.Array) -> None:
    """Write each block in two parts, so that the commit has to encode it."""
    array[::2] = BIG[::2]
    array[1::2] = BIG[1::2]


@pytest.mark.parametrize("how", ["SIGINT", "stop"])
@pytest.mark.parametrize("end", ["commit", "close", "block"])
@pytest.mark.parametrize("kind", KINDS)
def test_an_interrupted_close_is_repeated(kind: str, end: str, how: str) -> None:
    handle = opened_big(kind)
    heard = []

    def interrupt(done: int, total: int) -> bool:
        heard.append(done)
        if how == "SIGINT":
            signal.raise_signal(signal.SIGINT)
        return True

    handle.progress = interrupt
    with pytest.raises(KeyboardInterrupt if how == "SIGINT" else caterva.StoppedError):
        if end == "block":
            with handle:
                pass
        else:
            getattr(handle, end)()
    assert heard and not handle.closed
    handle.progress = None
    assert not caterva.open(place(kind))[:].any()
    handle.close()
    assert np.array_equal(caterva.load(place(kind)), BIG)


CHANGES: dict[str, Any] = {
    "resize": lambda a: a.resize(5, 30),
    "append": lambda a: a.append(np.zeros((1, 30), "i4")),
    "insert": lambda a: a.insert(3, np.zeros((2, 30), "i4")),
    "remove": lambda a: a.remove(3, 10),
    "rollback": lambda a: a.rollback(),
}


@pytest.mark.parametrize("change", CHANGES)
def test_an_interruption_at_the_end_of_a_change_leaves_the_new_shape(change: str) -> None:
    def interrupt(done: int, total: int) -> None:
        if done == total:
            raise KeyboardInterrupt

    caterva.save("a.b2nd", np.arange(600, dtype="i4").reshape(20, 30), chunks=(4, 8))
    a = caterva.open("a.b2nd", "r+")
    if change == "rollback":
        a.resize(7, 30)
    a.progress = interrupt
    with suppress(KeyboardInterrupt):
        CHANGES[change](a)
    a.progress = None
    assert a.shape == a.info.shape == a[...].shape and len(a) == a.info.shape[0]
    a.close()
    assert caterva.load("a.b2nd").shape == a.shape


def test_a_change_that_fails_half_way_is_not_read_before_the_rollback() -> None:
    """Items that have moved are not returned together with items that have not."""
    items = BIG.reshape(2, 1 << 20)
    options: dict[str, Any] = {"level": 9, "chunks": (1, 1 << 17), "blocks": (1, 1 << 13)}
    caterva.save("a.b2nd", items, **options)
    a = caterva.open("a.b2nd", "r+", threads=1, progress=lambda done, total: True)
    view = a.view[:, ::2]
    with pytest.raises(caterva.StoppedError):
        a.remove(5, 6, axis=1)  # all items after them move
    a.progress = None
    reads: list[Any] = [lambda: a[...], lambda: a[0, 7], lambda: a[:, [1, 3]], a.sum,
                        lambda: a.read_async().result(), lambda: view[...], a.to_bytes,
                        a.commit]  # fmt: skip
    for read in reads:
        with pytest.raises(caterva.RollbackError, match="roll back the pending changes first"):
            read()
    assert np.array_equal(caterva.load("a.b2nd"), items)
    a.rollback()
    assert a.shape == items.shape and np.array_equal(a[...], items)


@pytest.mark.parametrize("verb", ["compact", "seal"])
@pytest.mark.parametrize("when", ["commit", "function"])
def test_an_interrupted_compact_leaves_the_array_open(verb: str, when: str) -> None:
    def interrupt(done: int, total: int) -> None:
        if done == total:
            raise KeyboardInterrupt

    caterva.save("a.b2nd", OLD)
    a = caterva.open("a.b2nd", "r+")
    a[::2] = NEW[::2]
    a[1::2] = NEW[1::2]
    if when == "commit":  # which precedes the function, and has ended
        a.progress = interrupt
    with pytest.raises(KeyboardInterrupt):
        getattr(a, verb)(progress=interrupt)
    a.progress = None
    assert not a.closed and np.array_equal(a[:], NEW)
    a[0] = 1
    a.close()
    assert caterva.load("a.b2nd")[0] == 1


@pytest.mark.parametrize("end", ["close", "block", "discard"])
@pytest.mark.parametrize("kind", KINDS)
def test_an_interruption_at_any_line_of_python(kind: str, end: str) -> None:
    def block(handle: Any) -> None:
        with handle:
            pass

    for step in itertools.count():
        handle = opened(kind)
        call = (lambda h=handle: block(h)) if end == "block" else getattr(handle, end)
        hit = interrupted_at(step, call)
        assert hit or handle.closed
        handle.discard() if end == "discard" else handle.close()
        assert handle.closed and is_new(kind) == (end != "discard")
        if not hit:
            break
    assert step > 0


def test_an_interruption_of_a_block_leaves_the_old_tree_or_the_new_one(
    pytestconfig: pytest.Config,
) -> None:
    """Arrays that are being made during the interruption replace no committed ones, and the
    tree is not locked afterwards."""

    def make() -> None:
        with caterva.open_tree("t.b2d", "w") as tree:
            tree["x"], tree["g/y"], tree["g"].attrs["n"] = [1, 2], [3, 4], 1

    def change() -> None:
        with caterva.open_tree("t.b2d", "r+") as tree:
            tree["x"], tree["g"].attrs["n"] = [5, 6, 7], 2
            tree["g/y"][0] = 9
            tree["g/copy"] = tree["x"]
            tree.create_array("g/filled", 3, dims=["q"])[1] = 8

    def state() -> Any:
        with caterva.open_tree("t.b2d") as tree:
            items = [(key, array.dims, array[:].tolist()) for key, array in tree.arrays()]
            return items, dict(tree["g"].attrs)

    make()
    old = state()
    change()
    new = state()
    gc.disable()  # a reference cycle would keep the lock
    try:
        stride = times(pytestconfig, 5, 1)
        for step in itertools.count(random.randrange(stride), stride):
            make()
            hit = interrupted_at(step, change)
            assert state() in (old, new), step
            caterva.open_tree("t.b2d", "r+").close()
            if not hit:
                break
    finally:
        gc.enable()


# ---- Garbage collection ---------------------------------------------------------------------


def drop(handle: list[Any]) -> list[str]:
    """Drop the last reference; return the warnings."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        handle.clear()
        gc.collect()
    texts = [str(w.message) for w in told if w.category is ResourceWarning]
    told.clear()  # a warning holds its array
    return texts


@pytest.mark.parametrize("kind", KINDS)
def test_collection_commits(kind: str) -> None:
    handle = [opened(kind)]
    told = drop(handle)
    assert told and all("not committed" in text for text in told)
    assert caterva.load(place(kind))[0] == NEW[0]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("kind", KINDS)
def test_collection_drops_what_a_failed_commit_has_left(kind: str) -> None:
    for call in ("close", "commit"):
        handle = [opened(kind)]
        with full_disk(kind), suppress(OSError):
            getattr(handle[0], call)()
        told = drop(handle)
        assert told and all("last commit failed" in text for text in told)
        assert not is_new(kind)


def test_a_commit_or_rollback_makes_collection_commit_again() -> None:
    for call in ("commit", "rollback"):
        handle = [opened("array")]
        with full_disk("array"), suppress(OSError):
            handle[0].close()
        getattr(handle[0], call)()
        handle[0][:] = 7
        assert "not committed" in drop(handle)[0]
        assert caterva.load("a.b2nd")[0] == 7


def test_an_interruption_waits_for_collection() -> None:
    """In the collector the interruption, and the data with it, would be lost."""
    handle = [opened_big("array")]
    interrupts = []

    def heard(done: int, total: int) -> None:
        interrupts.append(done)

    handle[0].progress = heard
    assert "not committed" in drop(handle)[0]
    assert not interrupts
    assert np.array_equal(caterva.load("a.b2nd"), BIG)


# ---- Exit -----------------------------------------------------------------------------------

PENDING = {
    "array": """
import caterva, os, sys, warnings
warnings.simplefilter("ignore")
handle = caterva.open("a.b2nd", "r+")
handle[:] = caterva.load("new.b2nd")
handle.attrs["n"] = 1
""",
    "tree": """
import caterva, os, sys, warnings
warnings.simplefilter("ignore")
handle = caterva.open_tree("t.b2d", "r+")
handle["g/x"][:] = caterva.load("new.b2nd")
handle["g/x"].attrs["n"] = 1
handle["new"] = [1, 2]
handle["g"].attrs["n"] = 1
""",
}
FULL = """
import resource
soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, hard))
"""
ENDS = {
    "the last line": ("", 0, True),
    "a cycle": ("cycle = [handle]; cycle.append(cycle); del cycle", 0, True),
    "sys.exit": ("sys.exit(3)", 3, True),
    "an exception": ("1 / 0", 1, True),
    "atexit": ("import atexit; atexit.register(handle.close)", 0, True),
    "a failed close": (FULL + "handle.close()", 1, False),
    "a failed close, with room": (
        FULL + "try: handle.close()\nexcept OSError: pass\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))",
        0,
        False,
    ),
    "os._exit": ("os._exit(0)", 0, False),
    "SIGKILL": ("os.kill(os.getpid(), 9)", 9 if WINDOWS else -9, False),
    "SIGTERM": ("os.kill(os.getpid(), 15)", 15 if WINDOWS else -15, False),
    "sys.exit in a block": ("with handle: sys.exit(3)", 3, False),
}


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("kind", KINDS)
def test_the_end_of_the_process(kind: str, end: str) -> None:
    if WINDOWS and "resource" in ENDS[end][0]:
        pytest.skip("there is no module resource")
    opened(kind).discard()
    caterva.save("new.b2nd", NEW)
    text, status, commits = ENDS[end]
    done = subprocess.run([sys.executable, "-c", PENDING[kind] + text], capture_output=True)
    assert done.returncode == status, done.stderr
    assert b"SystemError" not in done.stderr, "what fails then is still told"
    assert is_new(kind) == commits


@pytest.mark.parametrize("kind", KINDS)
def test_what_a_daemon_thread_holds_is_lost_with_a_warning(kind: str) -> None:
    """It is not committed, because the thread may have been in the middle of its changes."""
    opened(kind).discard()
    caterva.save("new.b2nd", NEW)
    hold = """
import threading, time
threading.Thread(target=lambda x: time.sleep(100), args=(handle,), daemon=True).start()
"""
    text = PENDING[kind].replace('warnings.simplefilter("ignore")', "") + hold
    done = subprocess.run(
        [sys.executable, "-c", text],
        env={**os.environ, "PYTHONWARNINGS": "always"},
        capture_output=True,
    )
    assert done.returncode == 0 and b"if a daemon thread holds the array" in done.stderr
    assert not is_new(kind)


@needs_fork
def test_a_child_of_fork_commits_nothing() -> None:
    run_program(
        """
import caterva, os
a = caterva.zeros(4, "i4", "a.b2nd"); a.commit(); a[0] = 1
t = caterva.open_tree("t.b2d", "w"); t["x"] = [0]; t.commit(); t["x"][0] = 1
x = t["x"]
for use in (lambda: a.__setitem__(0, 2), a.commit, lambda: x.__setitem__(0, 2), t.commit):
    process = os.fork()
    if process == 0:
        try: use()
        except BlockingIOError as error: os._exit(7 if type(error) is caterva.BusyError else 8)
        os._exit(9)
    assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == 7
for use in (a.close, a.discard, t.close, t.discard):
    process = os.fork()
    if process == 0:
        use()
        os._exit(0)
    assert os.waitpid(process, 0)[1] == 0
assert caterva.load("a.b2nd")[0] == 0 and caterva.load("t.b2d::/x")[0] == 0
a.close(); t.close()
assert caterva.load("a.b2nd")[0] == 1 and caterva.load("t.b2d::/x")[0] == 1
"""
    )


# ---- Functions that close arrays themselves -------------------------------------------------


@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize("layout", ["contiguous", "sparse"])
def test_save_that_fails_leaves_nothing(overwrite: bool, layout: Any) -> None:
    if overwrite:
        caterva.save("a.b2nd", OLD, layout=layout)
    before = sorted(os.listdir())
    with full_disk("array"), pytest.raises(OSError) as caught:
        caterva.save("a.b2nd", NEW, layout=layout, overwrite=overwrite)
    assert sorted(os.listdir()) == before, "also while the exception lives"
    assert caught.value
    assert not overwrite or np.array_equal(caterva.load("a.b2nd"), OLD)
    caterva.save("a.b2nd", NEW, layout=layout, overwrite=overwrite)
    assert np.array_equal(caterva.load("a.b2nd"), NEW)


def test_save_that_is_interrupted_leaves_nothing(pytestconfig: pytest.Config) -> None:
    stride = times(pytestconfig, 4, 1)
    first = random.randrange(stride)
    print(f"from line {first}, one in {stride}")
    for step in itertools.count(first, stride):
        hit = interrupted_at(step, lambda: caterva.save("a.b2nd", [1, 2, 3]))
        gc.collect()
        left = os.listdir()
        assert left in ([], ["a.b2nd"]), "no temporary file"
        if left:
            assert caterva.load("a.b2nd").tolist() == [1, 2, 3]
            os.remove("a.b2nd")
        if not hit:
            break


def test_an_array_that_cannot_be_filled_is_not_made() -> None:
    with full_disk("array"), pytest.raises(OSError):
        caterva.asarray(NEW, "a.b2nd", dirty_budget=1, chunks=1000).close()
    gc.collect()
    assert os.listdir() == []

    class Failing:
        shape, dtype = (3,), np.dtype("i4")

        def __getitem__(self, key: Any) -> Any:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        caterva.asarray(Failing(), "a.b2nd")
    assert os.listdir() == []


# ---- Parts of jobs --------------------------------------------------------------------------


def test_a_part_ends_finished_or_is_gone() -> None:
    caterva.save("a.b2nd", OLD)
    with caterva.open("a.b2nd", "r+") as a:
        job = a.job()
        empty = sorted(os.listdir(job.folder))
        part = job.part()
        part[:] = NEW
        with full_disk("array"), pytest.raises(OSError):
            part.finish()
        assert part.closed
        with pytest.raises(ZeroDivisionError), job.part() as part:
            part[:] = NEW
            raise ZeroDivisionError
        assert part.closed
        part = job.part()
        part[:] = NEW
        part.close()
        assert sorted(os.listdir(job.folder)) == empty
        with job.part() as part:
            part[:] = NEW
        a.merge(part.token)
        with full_disk("array"), pytest.raises(OSError):
            a.commit()
        assert np.array_equal(a[:], NEW), "what was merged is pending"
    assert np.array_equal(caterva.load("a.b2nd"), NEW)


def test_a_commit_that_fails_in_the_last_collection() -> None:
    """The collection at exit drops a cycle with an array whose commit fails. The report has the
    usual exception class, and no freed memory is used."""
    pytest.importorskip("resource")
    program = f"""
import caterva, numpy as np, resource, signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
class Holder: pass
tree = caterva.open_tree("last.b2d", "w")
holder = Holder()
holder.tree, holder.itself = tree, holder
tree["new"] = np.random.default_rng(0).integers(0, 1 << 60, {N})
array = caterva.create(({N},), "i8", "last.b2nd")
array[:] = np.random.default_rng(0).integers(0, 1 << 60, {N})
other = Holder()
other.array, other.itself = array, other
del tree, array
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
"""
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-c", program],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("caterva._errors.StoreError: ") == 2, done.stderr
    assert "RuntimeError" not in done.stderr
    assert not [name for name in os.listdir() if "tmp-" in name]

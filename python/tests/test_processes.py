"""Handles through pickle, fork and spawn, garbage collection and exit, and many operations."""

from __future__ import annotations

import copy
import gc
import itertools
import multiprocessing
import os
import pickle
import sys
import threading
import weakref
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import caterva
import numpy as np
import pytest
from support import cube, in_child, needs_pickle, needs_proc, run_program, status_of, times

# ---- Pickle, copy, deepcopy -----------------------------------------------------------


@needs_pickle
@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_a_handle_for_reading_is_pickled_by_its_place(protocol: int) -> None:
    items = cube("cube.b2nd")
    array = caterva.open("cube.b2nd")
    text = pickle.dumps(array, protocol)
    assert len(text) < 1000, "the place and the commit, not the items"
    os.mkdir("elsewhere")
    os.chdir("elsewhere")  # the path is absolute
    other = pickle.loads(text)
    assert isinstance(other, caterva.Array)
    assert not other.writable
    assert (other.shape, other.dtype, other.chunks) == (array.shape, array.dtype, array.chunks)
    assert np.array_equal(other[...], items)


@needs_pickle
def test_a_pickle_keeps_the_offset() -> None:
    items = np.arange(12).reshape(3, 4)
    frame = caterva.asarray(items).to_bytes()
    Path("behind").write_bytes(b"x" * 100 + frame)
    array = caterva.open("behind", offset=100)
    assert np.array_equal(pickle.loads(pickle.dumps(array))[...], items)


@needs_pickle
def test_an_array_in_memory_is_pickled_by_its_frame() -> None:
    array = caterva.asarray(np.arange(12).reshape(3, 4), chunks=(2, 2))
    other = pickle.loads(pickle.dumps(array))
    assert np.array_equal(other[...], array[...])
    assert other.chunks == (2, 2)


def test_a_pickle_of_a_commit_that_is_gone_is_refused() -> None:
    caterva.save("a.b2nd", np.arange(5))
    with caterva.open("a.b2nd") as array:
        text = pickle.dumps(array)
    with caterva.open("a.b2nd", "r+") as array:
        array[0] = 7
    with pytest.raises((caterva.Error, ValueError, OSError)):
        pickle.loads(text)


def test_a_handle_for_writing_is_not_pickled() -> None:
    caterva.save("a.b2nd", np.arange(5))
    with caterva.open("a.b2nd", "r+") as array, pytest.raises((TypeError, ValueError)):
        pickle.dumps(array)


def test_a_closed_array_is_not_pickled() -> None:
    caterva.save("a.b2nd", np.arange(5))
    array = caterva.open("a.b2nd")
    array.close()
    with pytest.raises((TypeError, ValueError, pickle.PicklingError)):
        pickle.dumps(array)


@needs_pickle
@pytest.mark.parametrize("function", [copy.copy, copy.deepcopy])
def test_copies_have_the_same_items(function: object) -> None:
    items = cube("cube.b2nd", 20)
    array = caterva.open("cube.b2nd")
    other = function(array)  # type: ignore[operator]
    array.close()
    assert other is not array
    assert np.array_equal(other[...], items)


@needs_pickle
def test_a_deep_copy_in_memory_is_another_array() -> None:
    array = caterva.asarray(np.arange(6))
    other = copy.deepcopy(array)
    array[0] = 99
    assert other[0] == 0


# ---- Fork -------------------------------------------------------------------------------


class Readers:
    """Threads that read boxes of an array all the time."""

    def __init__(self, array: caterva.Array, n: int) -> None:
        self.array = array
        self.failures: list[BaseException] = []
        self.end = threading.Event()
        self.threads = [threading.Thread(target=self.run, args=(i,)) for i in range(n)]

    def run(self, seed: int) -> None:
        random = np.random.default_rng(seed)
        n = self.array.shape[0]
        try:
            while not self.end.is_set():
                at = random.integers(0, n - 8, 3)
                self.array[tuple(slice(a, a + 8) for a in at)]
        except BaseException as error:
            self.failures.append(error)

    def __enter__(self) -> Readers:
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *unused: object) -> None:
        self.end.set()
        for thread in self.threads:
            thread.join()
        assert not self.failures


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_forks_in_the_middle_of_reads(pytestconfig: pytest.Config) -> None:
    items = cube("cube.b2nd")
    array = caterva.open("cube.b2nd", cache_bytes=-1)

    def work() -> None:
        assert np.array_equal(array[3:40, 5], items[3:40, 5])
        assert array[1, 2, 3] == items[1, 2, 3]
        with caterva.open("cube.b2nd") as other:
            assert np.array_equal(other[:, :, 7], items[:, :, 7])
        array.close()

    with Readers(array, 3):
        for i in range(times(pytestconfig, 30, 1000)):
            assert status_of(in_child(work)) == 0, f"child {i}"
    assert np.array_equal(array[...], items)


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_what_is_pending_is_the_parents() -> None:
    caterva.save("a.b2nd", np.arange(1000), chunks=100)
    array = caterva.open("a.b2nd", "r+")
    array[:10] = -1

    def work() -> None:
        array.close()
        assert caterva.open("a.b2nd")[3] == 3

    assert status_of(in_child(work)) == 0
    assert caterva.open("a.b2nd")[3] == 3, "a child of fork commits nothing"
    array.close()
    assert caterva.open("a.b2nd")[3] == -1


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_what_others_were_using_at_a_fork_is_the_parents() -> None:
    array = caterva.asarray(cube(n=32), chunks=16, cache_bytes=-1)
    frame = caterva.from_bytes(array.to_bytes(), cache_bytes=-1)
    view = frame.view[3:]
    known = frame[1, 2, 3]
    inside, go_on = threading.Event(), threading.Event()

    def array_is_lost() -> None:
        with pytest.raises(caterva.BusyError, match="another thread"):
            array[0]

    def frame_is_opened_anew() -> None:
        assert frame[1, 2, 3] == known
        assert view[0, 2, 3] == frame[3, 2, 3]
        assert view.T[3, 2, 0] == frame[3, 2, 3]

    def hear(done: int, total: int) -> None:
        inside.set()
        go_on.wait()

    for used in (array, frame):
        inside.clear()
        go_on.clear()
        thread = threading.Thread(target=lambda: used.sum(progress=hear))
        thread.start()
        inside.wait()
        process = in_child(array_is_lost if used is array else frame_is_opened_anew)
        go_on.set()
        thread.join()
        assert status_of(process) == 0
    assert view[0, 0, 0] == array[3, 0, 0], "the parent's go on"


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_tree_that_threads_of_the_parent_look_into(pytestconfig: pytest.Config) -> None:
    with caterva.open_tree("t.b2d", "w") as tree:
        for i in range(60):
            tree[f"g/x{i}"] = np.arange(10)
    tree = caterva.open_tree("t.b2d")  # keeps fewer than 60 arrays open
    end = threading.Event()

    def look() -> None:
        i = 0
        while not end.is_set():
            tree[f"g/x{i % 59}"]
            i += 1

    def work() -> None:
        assert tree["g/x59"][1] == 1

    threads = [threading.Thread(target=look) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        for i in range(times(pytestconfig, 20, 300)):
            assert status_of(in_child(work)) == 0, f"child {i}"
    finally:
        end.set()
        for thread in threads:
            thread.join()


def test_two_threads_fork_at_once() -> None:
    text = """
import os, threading, time, warnings
warnings.simplefilter("ignore")
os.register_at_fork(before=lambda: time.sleep(0.001))  # comes after caterva's
import caterva
def fork():
    for _ in range(10):
        process = os.fork()
        if process == 0: os._exit(0)
        os.waitpid(process, 0)
threads = [threading.Thread(target=fork) for _ in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""
    run_program(text)


# ---- Other processes --------------------------------------------------------------------


def sum_of_plane(place: tuple[str, int]) -> int:
    with caterva.open(place[0]) as array:
        return int(array[place[1]].sum())


def sum_of_array(task: tuple[caterva.Array, int]) -> int:
    return int(task[0][task[1]].sum())


@pytest.mark.parametrize("method", multiprocessing.get_all_start_methods())
def test_pools_open_by_path(method: str) -> None:
    items = cube("cube.b2nd", 24)
    path = os.path.abspath("cube.b2nd")
    warm = caterva.open(path)[...]  # starts the thread pool before the children
    assert np.array_equal(warm, items)
    context = multiprocessing.get_context(method)
    with ProcessPoolExecutor(2, mp_context=context) as pool:
        sums = list(pool.map(sum_of_plane, [(path, i) for i in range(24)]))
    assert sums == [int(plane.sum()) for plane in items]


def test_another_process_opens_a_pickle() -> None:
    items = cube("cube.b2nd", 24)
    Path("pickled").write_bytes(pickle.dumps(caterva.open("cube.b2nd")))
    os.mkdir("elsewhere")
    text = """
import pickle, pathlib
print(int(pickle.loads(pathlib.Path("../pickled").read_bytes())[5].sum()))
"""
    assert int(run_program(text, "elsewhere").stdout) == items[5].sum()


@needs_pickle
@pytest.mark.parametrize("method", multiprocessing.get_all_start_methods())
def test_pools_are_given_arrays(method: str) -> None:
    items = cube("cube.b2nd", 24)
    array = caterva.open("cube.b2nd")
    context = multiprocessing.get_context(method)
    with ProcessPoolExecutor(2, mp_context=context) as pool:
        sums = list(pool.map(sum_of_array, [(array, i) for i in range(24)]))
    assert sums == [int(plane.sum()) for plane in items]


# ---- Garbage collection -----------------------------------------------------------------


def test_garbage_in_any_order() -> None:
    items = cube("cube.b2nd", 16)
    for order in itertools.permutations(range(5)):
        array = caterva.open("cube.b2nd")
        view = array.view[2:, ::2]
        joined = caterva.concat([view, view.view[1:]])
        family = [array, view, joined, iter(view), view.T]
        del array, view, joined
        for i in order:
            family[i] = None  # type: ignore[call-overload]
    assert np.array_equal(caterva.open("cube.b2nd").view[2:, ::2][...], items[2:, ::2])


def test_views_keep_their_arrays() -> None:
    view = caterva.asarray(np.arange(12).reshape(3, 4)).view[:, ::2].T
    gc.collect()
    assert view[...].tolist() == [[0, 4, 8], [2, 6, 10]]


def test_circles_are_collected() -> None:
    class Hears:
        def __call__(self, done: int, total: int) -> None: ...

    hears = Hears()
    array = caterva.zeros(3, progress=hears)
    hears.array = array  # type: ignore[attr-defined]
    gone = weakref.ref(array)
    del array, hears
    gc.collect()
    assert gone() is None


def test_views_know_when_their_array_was_opened_anew() -> None:
    cube("cube.b2nd", 16)
    array = caterva.open("cube.b2nd", "r+")
    view = array.view[2:]
    other = view.T
    array.compact()
    for old in (view, other):
        with pytest.raises(ValueError, match="opened again"):
            old[0]
    assert np.array_equal(array.view[2:][...], array[2:])


# ---- Exit --------------------------------------------------------------------------------

ENDS = {
    "open handles": "a = caterva.open('cube.b2nd'); v = a.view[1:]; i = iter(a); next(i)",
    "pending": "a = caterva.open('cube.b2nd', 'r+'); a[0] = 5",
    "a circle": "a = caterva.open('cube.b2nd', 'r+'); d = {'a': a}; d['d'] = d; a[0] = 5\n"
    "del a, d",
    "in builtins": "import builtins; builtins.a = caterva.open('cube.b2nd'); builtins.a[0]",
    "reading ahead": "a = caterva.open('cube.b2nd'); a.prefetch(); [a[i] for i in range(4)]",
    "daemons": "import threading\n"
    "a = caterva.open('cube.b2nd', cache_bytes=-1)\n"
    "def run():\n"
    "    while True: a[:, 3:5]\n"
    "for _ in range(4): threading.Thread(target=run, daemon=True).start()\n"
    "a[...]",
}


@pytest.mark.parametrize("how", ENDS)
def test_the_interpreter_ends_with(how: str, empty_folder: Path) -> None:
    cube("cube.b2nd", 32)
    for _ in range(4 if how == "daemons" else 1):
        done = run_program("import caterva\n" + ENDS[how])
        assert done.stderr == ""
    assert caterva.open("cube.b2nd").verify()


def test_subinterpreters_are_right_or_refused() -> None:
    text = """
import sys, caterva
try:
    from concurrent import interpreters
    run = lambda text: interpreters.create().exec(text)
except ImportError:
    try:
        import _xxsubinterpreters as interpreters
    except ImportError:
        import _interpreters as interpreters
    run = lambda text: interpreters.run_string(interpreters.create(), text)
text = "import caterva; a = caterva.full((3, 4), 7, chunks=(2, 2)); assert a[1:].sum() == 56"
for _ in range(3):
    try:
        run(text)
    except Exception as error:
        assert "import" in str(error).lower(), error
print(caterva.full(3, 2)[:].sum())
"""
    assert run_program(text).stdout == "6\n"


# ---- Many operations ----------------------------------------------------------------------


def resident() -> int:
    """The process's resident memory in bytes."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _operations(array: caterva.Array, i: int) -> None:
    """Run one of each cheap operation, including failures."""
    array[i % 40, 3, 5]
    array[i % 40, 2:5]
    array[i % 40, [1, 3, 5], ::-2]
    array.oindex[[1, 2], [3, 4]]
    array.view[2:5].T[1]
    array[1, 1, 1] = i
    array.attrs["n"] = i
    len(array.attrs), array.shape, array.chunks, repr(array)
    for wrong in (lambda: array[100], lambda: array["x"], lambda: array.attrs["no"]):
        try:
            wrong()
        except (IndexError, KeyError):
            continue
        raise AssertionError("nothing was raised")


@needs_proc
def test_memory_stays_flat(pytestconfig: pytest.Config) -> None:
    array = caterva.asarray(cube(n=48), chunks=(16, 16, 48), cache_bytes=1 << 20)
    n = times(pytestconfig, 600, 100_000)  # of ten operations each
    for i in range(n // 3):
        _operations(array, i)
    gc.collect()
    before, blocks = resident(), sys.getallocatedblocks()
    for i in range(n):
        _operations(array, i)
    gc.collect()
    assert sys.getallocatedblocks() - blocks < 200
    if "CATERVA_SANITIZED" not in os.environ:  # sanitizers keep freed memory
        assert resident() - before < 8 << 20


@needs_proc
def test_opening_keeps_nothing(pytestconfig: pytest.Config) -> None:
    cube("cube.b2nd", 16)
    n = times(pytestconfig, 200, 20_000)

    def once() -> None:
        with caterva.open("cube.b2nd") as array:
            array[1]
        with pytest.raises(FileNotFoundError):
            caterva.open("no.b2nd")
        caterva.from_bytes(caterva.full(2, 3).to_bytes())[0]

    for _ in range(50):
        once()
    gc.collect()
    blocks, files = sys.getallocatedblocks(), len(os.listdir("/proc/self/fd"))
    for _ in range(n):
        once()
    gc.collect()
    assert sys.getallocatedblocks() - blocks < 200
    assert len(os.listdir("/proc/self/fd")) <= files

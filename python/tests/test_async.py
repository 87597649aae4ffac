"""Background reads: awaited, as futures, cancelled, and concurrent with other calls."""

from __future__ import annotations

import asyncio
import concurrent.futures
import gc
import os
import random
import sys
import threading
import weakref
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

import caterva
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import (
    PATIENCE,
    cube,
    in_child,
    needs_fork,
    run_program,
    status_of,
    times,
    until_caught,
)
from test_indexing import _assert_same, _outcome, arrays, keys

Reading: TypeAlias = "concurrent.futures.Future[Any]"


def slow(path: str = "slow.b2nd", n: int = 160) -> np.ndarray[Any, Any]:
    """Write an array that takes a while to decode; return its items."""
    items = np.random.default_rng(5).integers(0, 1 << 20, (n, n, n), "i4")
    caterva.save(path, items, chunks=(n, n, n), blocks=(8, 8, n), level=1)
    return items


@given(st.data())
def test_what_is_awaited_is_what_read_gives(data: st.DataObject) -> None:
    items, array = data.draw(arrays())
    key = data.draw(keys(items.shape))
    theirs = _outcome(lambda: array.read(key))
    _assert_same(_outcome(lambda: array.read_async(key).result(PATIENCE)), theirs)
    if isinstance(theirs, Exception):
        return
    out = np.empty(theirs.shape, theirs.dtype, data.draw(st.sampled_from("CF")))

    async def read() -> Any:
        return await array.read_async(key, out=out)

    assert asyncio.run(read()) is out
    assert out.tobytes() == theirs.tobytes()


def test_dtypes_and_fields() -> None:
    items = np.zeros((6, 7), [("a", "i2"), ("b", "f8", (2,))])
    items["a"], items["b"] = np.arange(42).reshape(6, 7), 1.5
    array = caterva.asarray(items, chunks=(2, 3))
    numbers = caterva.asarray(items["a"].copy(), chunks=(2, 3))
    for options in ({"field": "a"}, {"field": "b"}):
        result = array.read_async(np.s_[1:, ::2], **options).result(PATIENCE)
        assert np.array_equal(result, items[options["field"]][1:, ::2])
    result = numbers.read_async([1, 5, 2], dtype="f4").result(PATIENCE)
    assert result.dtype == "f4" and np.array_equal(result, items["a"][[1, 5, 2]])
    with pytest.raises(TypeError, match="cast"):
        numbers.read_async(0, dtype="i1", casting="safe")
    with pytest.raises(IndexError):
        numbers.read_async(9)


def test_many_at_once_in_one_loop() -> None:
    items = cube("cube.b2nd")
    array = caterva.open("cube.b2nd", cache_bytes=-1)

    async def read() -> list[Any]:
        return await asyncio.gather(*(array.read_async(i % 48) for i in range(500)))

    for i, plane in enumerate(asyncio.run(read())):
        assert np.array_equal(plane, items[i % 48])


def test_the_loop_goes_on_meanwhile() -> None:
    items = slow()
    array = caterva.open("slow.b2nd", cache_bytes=-1)

    async def count() -> tuple[int, Any]:
        reading, n = array.read_async(), 0
        while not reading.done():
            n += 1
            await asyncio.sleep(0)
        return n, await reading

    def attempt() -> bool:
        n, result = asyncio.run(count())
        assert np.array_equal(result, items)
        return n > 10

    until_caught(attempt)


def test_as_futures_of_concurrent_futures() -> None:
    items = cube("cube.b2nd")
    array = caterva.open("cube.b2nd")
    readings = {array.read_async(np.s_[:, i]): i for i in range(48)}
    heard: list[Any] = []
    for reading in concurrent.futures.as_completed(readings, PATIENCE):
        assert np.array_equal(reading.result(), items[:, readings[reading]])
        reading.add_done_callback(heard.append)
    assert len(heard) == 48
    last = array.read_async(5)
    done, not_done = concurrent.futures.wait([last], PATIENCE)
    assert done == {last} and not not_done and not last.cancel() and not last.cancelled()


def test_cancelling_a_future() -> None:
    items = slow()
    array = caterva.open("slow.b2nd", cache_bytes=-1, threads=1)

    def attempt() -> bool:
        first, second = array.read_async(), array.read_async()
        cancelled = [reading for reading in (second, first) if reading.cancel()]
        for reading in cancelled:
            with pytest.raises(concurrent.futures.CancelledError):
                reading.result(PATIENCE)
            assert reading.cancelled() and reading.done() and reading.cancel()
        for reading in {first, second} - set(cancelled):  # they were complete already
            assert not reading.cancelled() and np.array_equal(reading.result(), items)
        done, _ = concurrent.futures.wait([first, second], PATIENCE)
        assert len(done) == 2
        return len(cancelled) == 2

    until_caught(attempt)
    assert array[0].shape == (160, 160)


def test_cancelling_an_await_cancels_the_read() -> None:
    items = slow()
    array = caterva.open("slow.b2nd", cache_bytes=-1, threads=1)
    out = np.zeros_like(items)

    async def cancelled() -> bool:
        reading = array.read_async(out=out)
        task = asyncio.ensure_future(reading)
        await asyncio.sleep(0)
        if not task.cancel() or (reading.done() and not reading.cancelled()):
            await asyncio.wait([task])
            return False  # it was complete already
        with pytest.raises(asyncio.CancelledError):
            await task
        assert reading.cancelled()
        out[...] = 7
        await asyncio.sleep(0.02)
        assert (out == 7).all(), "the library is done with the memory"
        return True

    until_caught(lambda: asyncio.run(cancelled()))

    async def timed_out() -> bool:
        reading = array.read_async()
        try:
            await asyncio.wait_for(reading, 0)
        except TimeoutError:
            return True
        return False  # it was complete already

    until_caught(lambda: asyncio.run(timed_out()))


def test_errors_arrive() -> None:
    cube("cube.b2nd", 32)
    with caterva.open("cube.b2nd") as array:
        chunk = array.chunk(1)
    with open("cube.b2nd", "r+b") as file:
        file.seek(chunk.position + chunk.stored_bytes // 2)
        file.write(bytes(range(256)))
    array = caterva.open("cube.b2nd")
    with pytest.raises(caterva.CorruptError):
        array.read_async().result(PATIENCE)

    async def read() -> None:
        await array.read_async()

    with pytest.raises(caterva.CorruptError):
        asyncio.run(read())


def test_closing_ends_what_is_outstanding() -> None:
    items = slow()

    def attempt() -> bool:
        array = caterva.open("slow.b2nd", cache_bytes=-1, threads=1)
        readings = [array.read_async() for _ in range(8)]
        array.close()
        assert all(reading.done() for reading in readings)
        with pytest.raises(ValueError, match="closed"):
            array.read_async(0)
        try:
            assert np.array_equal(readings[-1].result(), items)  # it was complete already
        except caterva.StoppedError:
            return True
        return False

    until_caught(attempt)


def test_callbacks_beside_close_and_refresh() -> None:
    """close and refresh wait for callbacks, so callbacks must not wait for them."""
    cube("cube.b2nd")
    for _ in range(20):
        array = caterva.open("cube.b2nd", cache_bytes=-1)
        heard: list[Any] = []

        def use(_: Any, array: Any = array, heard: Any = heard) -> None:
            try:
                heard.append(array[1, 2, 3])
                array.refresh()
            except (ValueError, RuntimeError) as error:
                heard.append(error)

        for i in range(20):
            array.read_async(i).add_done_callback(use)
        array.refresh()
        for i in range(20):
            array.read_async(i).add_done_callback(use)
        array.close()
        assert len(heard) >= 40


def test_a_reading_keeps_its_array() -> None:
    items = slow()
    reading = caterva.open("slow.b2nd", cache_bytes=-1).read_async()
    gc.collect()
    assert np.array_equal(reading.result(PATIENCE), items)
    array = caterva.open("slow.b2nd")
    gone = weakref.ref(array)
    array.read_async(0).result(PATIENCE)
    array.read_async(1)
    del array
    end = threading.Event()
    for _ in range(1000):
        gc.collect()
        if gone() is None:
            return
        end.wait(0.01)
    raise AssertionError("the array is kept")


def test_writes_between() -> None:
    array = caterva.zeros((40, 50), "i4", chunks=(10, 50))
    readings = []
    for value in range(1, 30):
        array[...] = value
        readings.append(array.read_async())
    for value, reading in enumerate(readings, 1):
        plane = reading.result(PATIENCE)
        assert (plane == plane[0, 0]).all() and plane[0, 0] >= value
    array.append(np.zeros((1, 50), "i4"))
    assert array.read_async().result(PATIENCE).shape == (41, 50)


def test_a_crowd_of_loops(pytestconfig: pytest.Config) -> None:
    items = cube("cube.b2nd")
    array = caterva.open("cube.b2nd", cache_bytes=1 << 18)
    seed = random.randrange(1 << 30)
    print("seed", seed)
    failures: list[BaseException] = []

    async def one(own: random.Random) -> None:
        i, kind = own.randrange(48), own.randrange(4)
        reading = array.read_async(np.s_[:, i, ::3])
        if kind == 0 and reading.cancel():
            return
        if kind == 1:
            try:
                await asyncio.wait_for(reading, own.random() / 1000)
            except TimeoutError:
                return
        assert np.array_equal(await reading, items[:, i, ::3])

    async def many(own: random.Random) -> None:
        for _ in range(times(pytestconfig, 5, 200)):
            await asyncio.gather(*(one(own) for _ in range(40)))

    def run(k: int) -> None:
        try:
            asyncio.run(many(random.Random(f"{seed} {k}")))
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=run, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
        assert not thread.is_alive()
    assert not failures


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_forks_beside_them() -> None:
    items = cube("cube.b2nd")
    array = caterva.open("cube.b2nd", cache_bytes=-1)

    def work() -> None:
        assert np.array_equal(array.read_async(7).result(PATIENCE), items[7])
        array.close()

    for _ in range(20):
        readings = [array.read_async(i) for i in range(48)]
        process = in_child(work)
        for i, reading in enumerate(readings):
            assert np.array_equal(reading.result(PATIENCE), items[i])
        assert status_of(process) == 0


ALL_WERE_DONE = 77  # exit status: no read was in progress at the fork


def _forked(work: Callable[[], bool]) -> bool:
    """Run `work` in a child and return its result; it checks reads in progress at the fork."""

    def look() -> None:
        if not work():
            os._exit(ALL_WERE_DONE)

    status = status_of(in_child(look))
    assert status in (0, ALL_WERE_DONE)
    return status == 0


def _stopped(readings: Iterable[Reading]) -> list[Reading]:
    """The readings that the fork has stopped; called in a child."""
    errors = {reading: reading.exception(0) for reading in readings}
    stopped = [reading for reading, error in errors.items() if error]
    for reading in stopped:
        error = errors[reading]
        assert isinstance(error, caterva.StoppedError) and error.code == caterva.Status.ESTOPPED
        assert "parent" in str(error)
    return stopped


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
@pytest.mark.parametrize("kind", ["array", "view", "join"])
def test_what_a_fork_meets_ends_in_the_child(kind: str) -> None:
    items = slow()
    array = caterva.open("slow.b2nd", cache_bytes=-1, threads=1)
    second = caterva.open("slow.b2nd", cache_bytes=-1, threads=1)
    join = caterva.concat([array, second])
    source = {"array": array, "view": array.view[:], "join": join}[kind]
    whole = np.concatenate([items, items]) if kind == "join" else items
    heard: list[int] = []
    readings: list[Reading] = []

    def work() -> bool:
        told, stopped = len(heard), _stopped(readings)
        if not stopped:
            return False
        last = stopped[-1]
        assert all(reading.done() for reading in readings)
        assert not last.cancel() and not last.cancelled() and not last.running()
        with pytest.raises(caterva.StoppedError):
            last.result()
        done, _ = concurrent.futures.wait(readings, PATIENCE)
        assert len(done) == len(set(concurrent.futures.as_completed(readings, PATIENCE)))

        async def read() -> None:
            await last

        with pytest.raises(caterva.StoppedError):
            asyncio.run(read())
        assert len(heard) == told, "functions are called in the parent"
        last.add_done_callback(lambda _: heard.append(1))
        assert len(heard) == told + 1
        assert np.array_equal(source.read_async(np.s_[5, 7]).result(PATIENCE), whole[5, 7])
        array.close()
        second.close()
        return True

    def attempt() -> bool:
        heard.clear()
        readings[:] = [source.read_async() for _ in range(6)]
        for reading in readings:
            reading.add_done_callback(lambda _: heard.append(1))
        met = _forked(work)
        for reading in readings:
            assert np.array_equal(reading.result(PATIENCE), whole)
        return met

    until_caught(attempt)


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_child_keeps_nothing_of_what_it_does_not_read() -> None:
    items = slow()

    def attempt() -> bool:
        arrays = [caterva.open("slow.b2nd", cache_bytes=-1, threads=1)]
        readings = [arrays[0].read_async() for _ in range(4)]
        gone = weakref.ref(arrays[0])

        def work() -> bool:
            if not _stopped(readings):
                return False
            readings.clear()
            arrays.clear()
            gc.collect()
            assert gone() is None
            assert np.array_equal(caterva.open("slow.b2nd")[3], items[3])
            return True

        met = _forked(work)
        for reading in readings:
            assert np.array_equal(reading.result(PATIENCE), items)
        return met

    until_caught(attempt)


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_what_was_cancelled_before_a_fork_is_so_in_the_child() -> None:
    slow()
    array = caterva.open("slow.b2nd", cache_bytes=-1, threads=1)

    def attempt() -> bool:
        readings = [array.read_async() for _ in range(4)]
        cancelled = [reading.cancel() for reading in readings]

        def work() -> bool:
            assert [reading.cancelled() for reading in readings] == cancelled
            for reading in readings:
                if reading.cancelled():
                    with pytest.raises(concurrent.futures.CancelledError):
                        reading.result(0)
            return any(cancelled)

        met = _forked(work)
        concurrent.futures.wait(readings, PATIENCE)
        return met

    until_caught(attempt)


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_who_waits_for_one_after_another_goes_on_in_the_child() -> None:
    slow()
    array = caterva.open("slow.b2nd", cache_bytes=-1, threads=1)

    def attempt() -> bool:
        readings = [array.read_async() for _ in range(6)]
        completed = concurrent.futures.as_completed(readings, PATIENCE)
        first = next(completed)

        def work() -> bool:
            rest = list(completed)
            assert {first, *rest} == set(readings) and len(rest) == 5
            return bool(_stopped(readings))

        met = _forked(work)
        assert len([reading.result() for reading in completed]) == 5
        return met

    until_caught(attempt)


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
@needs_fork
def test_a_coroutine_that_forks_goes_on_in_the_child() -> None:
    items = slow()
    array = caterva.open("slow.b2nd", cache_bytes=-1, threads=1)
    met: list[bool] = []

    async def read() -> None:
        tasks = [asyncio.ensure_future(array.read_async()) for _ in range(6)]
        await asyncio.sleep(0)
        process = os.fork()
        if process == 0:
            status = 1
            try:
                results = [await task for task in tasks[:-1]]
                assert all(np.array_equal(result, items) for result in results)
                await tasks[-1]
                status = ALL_WERE_DONE
            except caterva.StoppedError:
                status = 0
            finally:
                os._exit(status)
        for task in tasks:
            assert np.array_equal(await task, items)
        status = status_of(process)
        assert status in (0, ALL_WERE_DONE)
        met.append(status == 0)

    def attempt() -> bool:
        asyncio.run(read())
        return met[-1]

    until_caught(attempt)


@needs_fork
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_function_that_is_told_forks() -> None:
    items = slow(n=96)
    array = caterva.open("slow.b2nd", cache_bytes=-1, threads=1)
    children: list[int] = []
    readings: list[Reading] = []

    def fork(reading: Reading) -> None:
        def work() -> None:
            assert np.array_equal(reading.result(0), items)
            assert all(other.done() for other in readings)
            _stopped(readings)

        children.append(in_child(work))

    readings += [array.read_async() for _ in range(6)]
    for reading in readings:
        reading.add_done_callback(fork)
    for reading in readings:
        assert np.array_equal(reading.result(PATIENCE), items)
    array.close()  # until every callback has returned
    assert [status_of(child) for child in children] == [0] * 6


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_reading_that_is_over_and_looked_at_during_a_fork() -> None:
    items = cube("cube.b2nd")
    reading = caterva.open("cube.b2nd").read_async(5)
    reading.result(PATIENCE)
    looks, end = threading.Event(), threading.Event()

    def look() -> None:
        with reading._condition:  # as done() does for a moment
            looks.set()
            end.wait(PATIENCE)

    thread = threading.Thread(target=look)
    thread.start()
    assert looks.wait(PATIENCE)

    def see() -> None:
        assert reading.done() and not reading.cancel()
        np.testing.assert_array_equal(reading.result(0), items[5])

    try:
        assert status_of(in_child(see)) == 0
    finally:
        end.set()
        thread.join()


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_forks_beside_threads_that_look_at_readings(pytestconfig: pytest.Config) -> None:
    cube("cube.b2nd")
    array = caterva.open("cube.b2nd", cache_bytes=-1)
    readings: list[Reading] = []
    end = threading.Event()

    def look() -> None:
        while not end.is_set():
            for reading in readings:
                reading.done(), reading.running(), reading.cancelled()

    threads = [threading.Thread(target=look) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(times(pytestconfig, 30, 1000)):
            readings[:] = [array.read_async(i % 48) for i in range(100)]
            process = in_child(lambda: [reading.exception(0) for reading in readings] and None)
            assert status_of(process) == 0
            concurrent.futures.wait(readings, PATIENCE)
    finally:
        end.set()
        for thread in threads:
            thread.join()


@pytest.mark.parametrize(
    "end",
    ["", "sys.exit(0)", "del a, r", "a.close()", "os.fork() or time.sleep(0.1)", "daemon()"],
)
def test_the_interpreter_ends_meanwhile(end: str) -> None:
    slow(n=96)
    text = (
        "import caterva, os, sys, threading, time\n"
        "a = caterva.open('slow.b2nd', cache_bytes=-1)\n"
        "def run():\n"
        "    while True: a.read_async(3)\n"
        "def daemon():\n"
        "    threading.Thread(target=run, daemon=True).start()\n"
        "    time.sleep(0.05)\n"
        "r = [a.read_async() for _ in range(20)]\n"
    )
    for _ in range(3):
        done = run_program(text + end)
        assert "Fatal" not in done.stderr
        if end != "daemon()":
            assert done.stderr == "" or "DeprecationWarning" in done.stderr


ENDS_BEHIND_THREADS = """
import caterva, io, sys
file = io.BytesIO(open("slow.b2nd", "rb").read())
a = caterva.open(file if sys.argv[1] == "file" else "slow.b2nd", threads=3)
a.prefetch(slice(1, 9))
for reading in [a.read_async(k) for k in range(10)]:
    reading.result()
"""


@pytest.mark.parametrize("kind", ["path", "file"])
def test_the_interpreter_ends_right_behind_a_reading(
    kind: str, pytestconfig: pytest.Config
) -> None:
    """The thread that has reported the result is still inside the interpreter for a moment."""
    slow(n=48)
    for _ in range(times(pytestconfig, 12, 300)):
        run_program(ENDS_BEHIND_THREADS, ".", kind)


def test_memory_of_readings_stays_flat(pytestconfig: pytest.Config) -> None:
    array = caterva.asarray(np.arange(4000).reshape(40, 100), chunks=(10, 100))

    def some(n: int) -> None:
        for i in range(n):
            array.read_async(i % 40).result(PATIENCE)
            array.read_async([1, 2]).cancel()
        array.read_async().result(PATIENCE)

    some(200)
    gc.collect()
    blocks = sys.getallocatedblocks()
    some(times(pytestconfig, 1000, 50_000))
    gc.collect()
    assert sys.getallocatedblocks() - blocks < 300

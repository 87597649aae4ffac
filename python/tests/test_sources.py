"""Arrays in open files, and at URLs that fsspec opens."""

from __future__ import annotations

import concurrent.futures
import gc
import io
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
import weakref
from pathlib import Path
from typing import Any

import caterva
import numpy as np
import pytest
from support import run_program

SHAPE = (60, 50, 40)


def items() -> Any:
    return np.random.default_rng(5).integers(0, 1000, SHAPE).astype("i4")


def frame() -> bytes:
    return caterva.asarray(items(), chunks=(20, 50, 40), blocks=(5, 25, 40)).to_bytes()


@pytest.fixture
def memory() -> Any:
    fsspec = pytest.importorskip("fsspec")
    system = fsspec.filesystem("memory")
    system.pipe_file("/there/a.b2nd", frame())
    yield system
    system.rm("/there", recursive=True)


def check(a: caterva.Array) -> None:
    wanted = items()
    assert not a.writable and a.shape == SHAPE and a.transfers is None
    assert a[59, 3, 7] == wanted[59, 3, 7]
    assert np.array_equal(a[5, :, ::7], wanted[5, :, ::7])
    assert np.array_equal(a[...], wanted)
    assert a.sum() == wanted.sum() and bool(a.verify())
    assert np.array_equal(a.read_async(np.s_[:, 3]).result(), wanted[:, 3])
    assert np.array_equal(caterva.concat([a, a])[70], wanted[10])
    with pytest.raises(ValueError):
        a[0] = 1
    with pytest.raises(ValueError):
        a.compact()


class Slow(io.BytesIO):
    """A file that detects concurrent use by two threads."""

    busy = False
    seeks = 0

    def read(self, n: int | None = -1, /) -> bytes:
        assert not self.busy
        self.busy = True
        time.sleep(0.0002)
        found = super().read(n)
        self.busy = False
        return found


def test_an_open_file() -> None:
    check(caterva.open(io.BytesIO(frame())))
    Path("a.b2nd").write_bytes(frame())
    with open("a.b2nd", "rb") as file:
        file.seek(11)
        a = caterva.open(file)
        check(a)
        assert a.path == "a.b2nd" and file.tell() == 11
    with open("a.b2nd", "rb", buffering=0) as file:
        check(caterva.open(file))


def test_a_file_that_is_packed() -> None:
    import gzip

    Path("a.b2nd.gz").write_bytes(gzip.compress(frame()))
    with gzip.open("a.b2nd.gz") as file:
        check(caterva.open(file))


def test_threads_wait_for_each_other() -> None:
    a = caterva.open(Slow(frame()), cache_bytes=-1)
    wanted = items()
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        got = list(pool.map(lambda n: a[n % 60, n % 7 :], range(100)))
    assert all(np.array_equal(g, wanted[n % 60, n % 7 :]) for n, g in enumerate(got))


class Breaking(io.BytesIO):
    """A file whose reads raise from the n-th one on."""

    error: BaseException | None = None

    def read(self, n: int | None = -1, /) -> bytes:
        if self.error is not None:
            raise self.error
        return super().read(n)


class Mine(Exception):
    pass


@pytest.mark.parametrize("error", [Mine("why"), KeyboardInterrupt(), OSError(5, "disk")])
def test_an_exception_comes_back_as_itself(error: BaseException) -> None:
    file = Breaking(frame())
    a = caterva.open(file, cache_bytes=-1)
    file.error = error
    for read in (lambda: a[3, 4, 5], lambda: a[...], lambda: a.sum(), lambda: a.view[2][3]):
        with pytest.raises(type(error)) as caught:
            read()
        assert caught.value is error
    if isinstance(error, Exception):
        with pytest.raises(type(error)) as caught:
            a.read_async(np.s_[7]).result()
        assert caught.value is error
    with pytest.raises(type(error)):
        caterva.open(file)
    file.error = None
    assert np.array_equal(a[...], items())


def test_many_exceptions_are_not_kept() -> None:
    file = Breaking(frame())
    a = caterva.open(file, cache_bytes=-1)
    alive = []
    for _ in range(300):
        file.error = Mine()
        alive.append(weakref.ref(file.error))
        with pytest.raises(Mine):
            a[0, 0, 0]
    file.error = None
    gc.collect()
    assert sum(each() is not None for each in alive) <= 64


class Odd(io.BytesIO):
    answer: Any = None

    def read(self, n: int | None = -1, /) -> Any:
        found = super().read(n)
        return self.answer(found, n) if self.answer else found


def test_files_that_answer_wrongly() -> None:
    file = Odd(frame())
    a = caterva.open(file, cache_bytes=-1)
    file.answer = lambda found, n: found[: max(1, len(found) // 2)]  # a short read
    assert np.array_equal(a[...], items())
    file.answer = lambda found, n: memoryview(bytearray(found))
    assert np.array_equal(a[...], items())
    file.answer = lambda found, n: found + b"more"
    with pytest.raises(ValueError, match="were requested"):
        a[...]
    file.answer = lambda found, n: None
    with pytest.raises(TypeError):
        a[...]
    file.answer = lambda found, n: "text"
    with pytest.raises(TypeError):
        a[...]
    file.answer = lambda found, n: b""
    with pytest.raises(caterva.Error):
        a[...]
    file.answer = lambda found, n: bytes(len(found))
    with pytest.raises(caterva.CorruptError):
        a[...]


def test_what_cannot_be_opened() -> None:
    for file in (io.BytesIO(), io.BytesIO(b"no array at all")):
        with pytest.raises(caterva.CorruptError):
            caterva.open(file)
    with pytest.raises(TypeError, match="binary"):
        caterva.open(io.StringIO("text"))
    with pytest.raises(caterva.ReadOnlyError):
        caterva.open(io.BytesIO(frame()), "r+")
    with caterva.open_tree("t.b2d", "w") as t:
        t["x"] = [1, 2]
    caterva.open_tree("t.b2d").pack("t.b2z")
    with pytest.raises(NotImplementedError, match="archive of a tree"):
        caterva.open(io.BytesIO(Path("t.b2z").read_bytes()))


def test_the_file_lives_as_long_as_the_array() -> None:
    file = Slow(frame())
    alive = weakref.ref(file)
    a = caterva.open(file)
    v = a.view[3]
    del file, a
    gc.collect()
    assert alive() is not None and np.array_equal(v[...], items()[3])
    del v
    gc.collect()
    assert alive() is None


def test_a_closed_array_lets_go_of_its_file() -> None:
    file = Slow(frame())
    file.array = caterva.open(file)  # type: ignore[attr-defined]
    file.array.close()  # type: ignore[attr-defined]
    alive = weakref.ref(file)
    del file
    gc.collect()
    assert alive() is None


def test_arrays_that_are_dropped_while_the_library_reads() -> None:
    """The garbage collector may run on a library thread and drop other arrays."""

    class Collecting(io.BytesIO):
        def read(self, n: int | None = -1, /) -> bytes:
            one = caterva.open(io.BytesIO(frame()))
            dropped.append(weakref.ref(one))
            del one
            return super().read(n)

    dropped: list[Any] = []
    a = caterva.open(Collecting(frame()), cache_bytes=-1)
    for n in range(5):
        assert np.array_equal(a[n * 12], items()[n * 12])
    del a
    gc.collect()
    assert dropped and not any(each() for each in dropped)


def test_pickles() -> None:
    a = caterva.open(io.BytesIO(frame()))
    again = pickle.loads(pickle.dumps(a))
    assert np.array_equal(again[...], items())
    pytest.importorskip("dask")
    assert again.__dask_tokenize__() == a.__dask_tokenize__()
    assert caterva.open(io.BytesIO(frame())).__dask_tokenize__() != a.__dask_tokenize__()
    Path("a.b2nd").write_bytes(frame())
    with open("a.b2nd", "rb") as file, pytest.raises(TypeError):
        pickle.dumps(caterva.open(file))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_in_a_child_of_fork() -> None:
    Path("a.b2nd").write_bytes(frame())
    script = """
import caterva, io, os, sys, threading, numpy as np
kinds = [io.BytesIO(open("a.b2nd", "rb").read()), open("a.b2nd", "rb")]
for file in kinds:
    a = caterva.open(file, cache_bytes=-1)
    wanted = a[...]
    ends = threading.Event()
    def work():
        while not ends.is_set():
            a[...]
    threads = [threading.Thread(target=work) for _ in range(3)]
    for t in threads: t.start()
    for _ in range(10):
        pid = os.fork()
        if pid == 0:
            os._exit(0 if np.array_equal(a[...], wanted) else 1)
        assert os.waitpid(pid, 0)[1] == 0
    ends.set()
    for t in threads: t.join()
"""
    subprocess.run([sys.executable, "-c", script], check=True, timeout=120)


def test_an_interrupt_in_a_read() -> None:
    class Interrupted(io.BytesIO):
        on = False

        def read(self, n: int | None = -1, /) -> bytes:
            if self.on:
                self.on = False
                signal.raise_signal(signal.SIGINT)
            return super().read(n)

    file = Interrupted(frame())
    a = caterva.open(file, cache_bytes=-1)
    for read in (lambda: a[...], lambda: a[1, 2, 3]):
        file.on = True
        with pytest.raises(KeyboardInterrupt):
            read()
            for _ in range(1000):  # the interrupt may arrive just after the read
                pass
        assert np.array_equal(a[4], items()[4])


# ---- fsspec -----------------------------------------------------------------------------


def test_a_url_that_fsspec_opens(memory: Any) -> None:
    a = caterva.open("memory://there/a.b2nd")
    check(a)
    assert a.path == "memory:///there/a.b2nd" and "a.b2nd" in repr(a)
    again = pickle.loads(pickle.dumps(a))
    check(again)
    assert again.__dask_tokenize__() == a.__dask_tokenize__()
    with pytest.raises(FileNotFoundError):
        caterva.open("memory://there/none.b2nd")
    with pytest.raises(ValueError):
        caterva.open("memory://there/a.b2nd", "r+")
    with pytest.raises(ValueError):
        caterva.open("nobody://knows/a.b2nd")
    with pytest.raises(NotImplementedError):
        caterva.open("memory://there/a.b2z")
    for place in ("http://h/a.b2nd", "a.b2nd"):
        with pytest.raises(TypeError, match="storage_options"):
            caterva.open(place, storage_options={"anon": True})
    stored = pickle.dumps(a)
    memory.pipe_file("/there/a.b2nd", caterva.asarray(items()[:7]).to_bytes())
    with pytest.raises(caterva.StaleError):
        pickle.loads(stored)


def test_files_of_fsspec(memory: Any) -> None:
    import fsspec

    check(caterva.open(fsspec.open("memory://there/a.b2nd")))
    with memory.open("/there/a.b2nd") as file:
        check(caterva.open(file))
    Path("a.b2nd").write_bytes(frame())
    check(caterva.open(fsspec.open("a.b2nd")))
    check(caterva.open("file://" + os.path.abspath("a.b2nd")))
    import gzip

    memory.pipe_file("/there/a.gz", gzip.compress(frame()))
    check(caterva.open(fsspec.open("memory://there/a.gz", compression="gzip")))


def test_systems_that_work_in_the_background_are_asked_for_many_ranges(memory: Any) -> None:
    from fsspec.asyn import AsyncFileSystem

    class Far(AsyncFileSystem):
        protocol = "far"
        asked: list[int] = []
        cachable = False

        async def _info(self, path: str, **_: Any) -> dict[str, Any]:
            return {"name": path, "size": len(frame()), "type": "file"}

        async def _cat_file(
            self, path: str, start: int | None = None, end: int | None = None, **_: Any
        ) -> bytes:
            return frame()[start:end]

        async def _cat_ranges(self, paths: Any, starts: Any, ends: Any, **how: Any) -> Any:
            self.asked.append(len(paths))
            return await super()._cat_ranges(paths, starts, ends, **how)

    system = Far()
    fsspec_file = type("F", (), {"fs": system, "path": "x.b2nd", "open": None})()
    check(caterva.open(fsspec_file))
    assert max(Far.asked) > 8


def test_without_fsspec(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fsspec", None)
    monkeypatch.setitem(sys.modules, "fsspec.core", None)
    with pytest.raises(NotImplementedError, match=r"gs:// needs fsspec"):
        caterva.open("gs://bucket/a.b2nd")


def test_dask_over_it(memory: Any) -> None:
    da = pytest.importorskip("dask.array")
    for array in (
        caterva.open("memory://there/a.b2nd"),
        caterva.open(io.BytesIO(frame())),
    ):
        lazy = da.from_array(array, chunks=array.chunks)
        assert int(lazy.sum().compute(scheduler="threads")) == items().sum()
        assert np.array_equal(lazy[::7, 3].compute(), items()[::7, 3])


def test_many_threads_and_an_end(memory: Any) -> None:
    a = caterva.open("memory://there/a.b2nd", cache_bytes=-1)
    threads = [threading.Thread(target=lambda: a[...]) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    a.close()
    with pytest.raises(ValueError, match="closed"):
        a[0]


# ---- Refusals ---------------------------------------------------------------------------


@pytest.mark.parametrize("remote", [caterva.Remote(), {"retries": 1}, {}])
def test_options_of_urls_are_for_urls(remote: Any) -> None:
    caterva.asarray(items(), path="a.b2nd").close()
    with caterva.open_tree("t.b2d", "w") as t:
        t["x"] = [1]
        t.pack("t.b2z")
    for place in ("a.b2nd", Path("a.b2nd"), "t.b2d::/x", "t.b2z::/x", "t.b2d", "t.b2z"):
        with pytest.raises(TypeError, match="remote is for URLs of http, https, s3: a path"):
            caterva.open(place, remote=remote)
    with pytest.raises(caterva.InvalidError, match='nothing to open at "mem:"'):
        caterva.open("mem:", remote=remote)
    for mode in ("r", "a", "w"):
        with pytest.raises(TypeError, match="remote is for URLs"):
            caterva.open_tree("t.b2d", mode, remote=remote)
    with pytest.raises(TypeError, match=r"memory:// takes storage_options="):
        caterva.open("memory://there/a.b2nd", remote=remote)
    with pytest.raises(TypeError, match="remote is for URLs: a file object takes no"):
        caterva.open(io.BytesIO(frame()), remote=remote)
    with pytest.raises(TypeError, match="storage_options is for URLs: a file object"):
        caterva.open(io.BytesIO(frame()), storage_options={"anon": True})
    assert caterva.open_tree("t.b2d")["x"][0] == 1


class Giving(io.RawIOBase):
    """A file whose `read` does not return bytes."""

    def __init__(self, kind: Any) -> None:
        self.bytes, self.kind, self.position = frame(), kind, 0

    def seek(self, position: int, whence: int = os.SEEK_SET) -> int:
        self.position = position + (len(self.bytes) if whence == os.SEEK_END else 0)
        return self.position

    def tell(self) -> int:
        return self.position

    def read(self, n: int = -1) -> Any:
        return self.kind(self.bytes[self.position : self.position + n])


def test_readers_give_bytes() -> None:
    with pytest.raises(TypeError, match="<Giving> returns text: open it in binary mode"):
        caterva.open(Giving(lambda found: found.decode("latin-1")))
    with pytest.raises(TypeError, match="<Giving> returns list, not bytes"):
        caterva.open(Giving(list))
    with pytest.raises(TypeError, match="<Giving> returns NoneType, not bytes"):
        caterva.open(Giving(lambda found: None))
    for kind in (bytes, bytearray, memoryview):
        assert np.array_equal(caterva.open(Giving(kind))[...], items())


def test_what_is_cut_is_named_by_its_file() -> None:
    whole = caterva.asarray(items()).to_bytes()
    for n in (60, 5000, len(whole) - 3):
        Path("cut.b2nd").write_bytes(whole[:n])
        for opening in (caterva.open, caterva.open_tree):
            with pytest.raises(caterva.CorruptError, match=r"[/\\]cut\.b2nd: the file ends at"):
                opening("cut.b2nd")


def test_a_url_with_a_user_is_shown_once() -> None:
    with pytest.raises(ValueError, match="has a user") as caught:
        caterva.open("http://me:secret@127.0.0.1:9/a.b2nd")
    text = str(caught.value)
    assert text.count("127.0.0.1") == 1 and "http://127.0.0.1:9/a.b2nd" in text
    assert "secret" not in text and "me" not in text.split()


SLOW_FILES = """
import caterva, io, numpy as np, os, time, warnings
warnings.simplefilter("ignore")
items = np.random.default_rng(1).integers(0, 1 << 20, (48, 48, 48), "i4")
caterva.save("a.b2nd", items, chunks=(16, 16, 48), blocks=(8, 8, 48))
class File(io.BytesIO):
    def read(self, n=-1):
        time.sleep(0.001)
        return super().read(n)
"""


def test_forks_beside_reads_in_the_background() -> None:
    text = """
a = caterva.open(File(open("a.b2nd", "rb").read()), cache_bytes=-1)
for source in (a, a.view[:]):
    for i in range(4):
        readings = [source.read_async(k) for k in range(20)]
        time.sleep(0.003 * i)
        process = os.fork()
        if process == 0:
            os._exit(not np.array_equal(source[5], items[5]))
        assert os.waitpid(process, 0)[1] == 0
        for k, reading in enumerate(readings):
            assert np.array_equal(reading.result(), items[k])
"""
    run_program(SLOW_FILES + text)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_forks_beside_prefetches() -> None:
    text = """
for i in range(12):
    a = caterva.open(File(open("a.b2nd", "rb").read()), threads=3)
    for k in range(0, 48, 8):
        a.prefetch(np.s_[k : k + 8])
    time.sleep(0.002 * i)
    process = os.fork()
    if process == 0:
        os._exit(not np.array_equal(a[5], items[5]))
    assert os.waitpid(process, 0)[1] == 0
    assert np.array_equal(a[...], items)
"""
    run_program(SLOW_FILES + text)

"""Arrays and trees at URLs of the library's test server."""

from __future__ import annotations

import copy
import errno
import gc
import os
import pickle
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import caterva
import numpy as np
import pytest
from support import WINDOWS, interrupt_soon, run_program

sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "support"))
scripted = pytest.importorskip("scripted_server", reason="the library's tests are not here")


def _has_libcurl() -> bool:
    try:
        caterva.open("http://127.0.0.1:1/x", remote={"retries": 0})
    except caterva.UnsupportedError:
        return False
    except caterva.Error:
        pass
    return True


needs_libcurl = pytest.mark.skipif(not _has_libcurl(), reason="libcurl is not installed")


@pytest.fixture
def server() -> Iterator[Any]:
    items = np.random.default_rng(3).integers(0, 1000, (60, 50, 40)).astype("i4")
    caterva.save("a.b2nd", items, chunks=(20, 50, 40))
    with scripted.ScriptedServer() as server:
        server.items = items
        server.objects["/a.b2nd"] = Path("a.b2nd").read_bytes()
        try:
            caterva.open(server.url("/a.b2nd")).close()
        except caterva.UnsupportedError as error:
            pytest.skip(str(error))
        server.forget()
        yield server


def test_an_array_behind_a_url(server: Any) -> None:
    a = caterva.open(server.url("/a.b2nd"))
    assert len(server.requests) == 1 and a.path == server.url("/a.b2nd")
    assert not a.writable and a.shape == (60, 50, 40)
    assert np.array_equal(a[5, :, ::7], server.items[5, :, ::7])
    assert a.sum() == server.items.sum()
    assert np.array_equal(a.read_async(np.s_[:, 3]).result(), server.items[:, 3])
    again = pickle.loads(pickle.dumps(a))
    assert np.array_equal(again[::9], server.items[::9])
    assert again.__dask_tokenize__() == a.__dask_tokenize__()
    stored = pickle.dumps(a)
    caterva.save("b.b2nd", server.items[:7])
    server.objects["/a.b2nd"] = Path("b.b2nd").read_bytes()
    with pytest.raises(caterva.StaleError):
        pickle.loads(stored)


def test_what_is_not_there_or_cannot_be_written(server: Any) -> None:
    with pytest.raises(FileNotFoundError):
        caterva.open(server.url("/none.b2nd"))
    with pytest.raises(caterva.Error):
        caterva.open(server.url("/a.b2nd"), "r+")
    with pytest.raises(caterva.Error):
        caterva.save(server.url("/new.b2nd"), [1, 2])


def test_a_tree_behind_a_url(server: Any) -> None:
    with caterva.open_tree("t.b2d", "w") as t:
        t.create_array("g/x", shape=(3, 4), dtype="f4")[...] = 2
        t.attrs["title"] = "far"
    caterva.open_tree("t.b2d").pack("t.b2z")
    server.objects["/t.b2z"] = Path("t.b2z").read_bytes()
    url = server.url("/t.b2z")
    assert caterva.open(url + "::/g/x")[:].sum() == 24
    with caterva.open(url) as tree:
        assert list(tree["g"]) == ["x"] and tree.attrs["title"] == "far"
        assert tree["g/x"][1, 2] == 2


# ---- Options ---------------------------------------------------------------------------


def authorized(request: Any) -> Any:
    if request.headers.get("authorization") != "Bearer of news":
        return scripted.Reply(403)
    return None


HEADERS = {"Authorization": "Bearer of news"}


def test_headers_are_sent_and_never_shown(server: Any) -> None:
    server.script = authorized
    url = server.url("/a.b2nd")
    with pytest.raises(FileNotFoundError, match="forbidden or absent"):
        caterva.open(url)
    a = caterva.open(url, remote={"headers": HEADERS})
    assert a[5, 3, 7] == server.items[5, 3, 7]
    remote = caterva.Remote(headers=HEADERS, secret_key="sesame")
    assert "news" not in repr(remote) and "sesame" not in repr(remote)
    assert b"news" not in pickle.dumps(remote) and b"sesame" not in pickle.dumps(remote)


def test_headers_of_a_function_are_asked_for_each_time(server: Any) -> None:
    server.script = authorized
    asked = []

    def headers() -> dict[str, str]:
        asked.append(threading.current_thread() is threading.main_thread())
        return HEADERS

    a = caterva.open(server.url("/a.b2nd"), remote=caterva.Remote(headers=headers))
    assert np.array_equal(a[...], server.items)
    assert asked and len(asked) == a.transfers.requests == len(server.requests)
    assert not any(asked)


def test_a_function_for_headers_that_raises_is_told(server: Any) -> None:
    told = []
    hook, sys.unraisablehook = sys.unraisablehook, lambda what: told.append(what.exc_value)
    try:
        with pytest.raises(ValueError, match="header 0 is not"):
            caterva.open(server.url("/a.b2nd"), remote={"headers": lambda: {"A": 1}})
        assert not server.requests
        with pytest.raises(TypeError, match="not a str"):
            caterva.open(server.url("/a.b2nd"), remote={"headers": {"A": 1}})
    finally:
        sys.unraisablehook = hook
    assert told and all(isinstance(each, TypeError) for each in told)


BAD_HEADERS = [{"Range": "bytes=0-1"}, {"X A": "hush"}, {"X": "hush\nY: 1"}, {"": "hush"}]


@pytest.mark.parametrize("bad", BAD_HEADERS)
def test_bad_headers_of_a_function_are_refused_as_those_of_a_mapping(
    server: Any, bad: dict[str, str]
) -> None:
    url = server.url("/a.b2nd")
    told = []
    for headers in (bad, lambda: bad):
        with pytest.raises(caterva.InvalidError, match="header 0 is ") as caught:
            caterva.open(url, remote={"headers": headers})
        told.append(str(caught.value))
    assert told[0] == told[1] and "hush" not in told[0] and not server.requests
    given = HEADERS
    a = caterva.open(url, remote={"headers": lambda: given}, cache_bytes=-1)
    asked = len(server.requests)
    given = HEADERS | bad
    with pytest.raises(caterva.InvalidError, match="header 1 is "):
        a[...]
    assert len(server.requests) == asked
    given = HEADERS
    assert np.array_equal(a[...], server.items)


def test_what_hears_of_requests_cannot_use_arrays(server: Any) -> None:
    heard: list[Any] = []
    holder: list[Any] = []

    def hear(transfer: caterva.Transfer) -> None:
        heard.append(transfer)
        if holder:
            try:
                holder[0][0, 0, 0]
            except RuntimeError as error:
                heard.append(error)

    url = server.url("/a.b2nd")
    a = caterva.open(url + "?key=sesame", remote={"on_request": hear})
    assert heard[0][:4] == ("GET", url, None, 65536) and heard[0].status == 206
    holder.append(a)
    # Read all of it: one item may be in the bytes that opening has read.
    assert np.array_equal(a[...], server.items)
    assert len(heard) > 2 and isinstance(heard[-1], RuntimeError)
    assert not any("sesame" in str(each) for each in heard)


FORKS_BESIDE_FUNCTIONS = """
import caterva, numpy as np, os, sys, threading, time, warnings
warnings.simplefilter("ignore")
url, wanted, heard = sys.argv[1], np.load("items.npy"), []
def headers():
    time.sleep(0.001)
    return {"X-A": "1"}
remote = {"headers": headers, "on_request": heard.append, "over_read_percent": 0}
a = caterva.open(url, remote=remote, cache_bytes=-1)
ahead = caterva.open(url, remote=remote, cache_bytes=1 << 20, threads=3)
ends = threading.Event()
def read():
    while not ends.is_set():
        assert np.array_equal(a[:, 7], wanted[:, 7])
readers = [threading.Thread(target=read) for _ in range(3)]
for each in readers: each.start()
for i in range(30):
    reading = a.read_async(np.s_[i])
    ahead.prefetch(np.s_[i : i + 9, 2])
    time.sleep(0.001 * (i % 5))
    process = os.fork()
    if process == 0:
        os._exit(i % 10 == 0 and not np.array_equal(a[:, :, 3], wanted[:, :, 3]))
    assert os.waitpid(process, 0)[1] == 0
    assert np.array_equal(reading.result(), wanted[i])
ends.set()
for each in readers: each.join()
assert np.array_equal(ahead[...], wanted) and len(heard) > 100
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_forks_wait_for_no_function(server: Any) -> None:
    np.save("items.npy", server.items)
    run_program(FORKS_BESIDE_FUNCTIONS, ".", server.url("/a.b2nd"))


ENDS_BESIDE_READERS = """
import caterva, random, sys, threading, time
remote = {"on_request": lambda t: None, "headers": lambda: {"X-A": "b"}}
a = caterva.open(sys.argv[1], remote=remote, cache_bytes=-1)
def read():
    while True: a[random.randrange(60)]
for _ in range(3):
    threading.Thread(target=read, daemon=True).start()
time.sleep(0.05 * random.random())
"""


def test_the_interpreter_ends_beside_daemons_that_read(server: Any) -> None:
    for _ in range(8):
        assert run_program(ENDS_BESIDE_READERS, ".", server.url("/a.b2nd")).stderr == ""


ENDS_BEHIND_REQUESTS = """
import caterva, sys
heard = []
a = caterva.open(sys.argv[1], remote={"on_request": heard.append}, threads=3)
if sys.argv[2] == "prefetch": a.prefetch(slice(0, 40))
if sys.argv[2] == "async": [a.read_async(k) for k in range(20)][3].result()
if sys.argv[2] == "read": a[:, 3]
"""


@pytest.mark.parametrize("what", ["prefetch", "async", "read"])
def test_the_interpreter_ends_right_behind_requests(server: Any, what: str) -> None:
    for _ in range(5):
        run_program(ENDS_BEHIND_REQUESTS, ".", server.url("/a.b2nd"), what)


def test_transfers_are_counted(server: Any) -> None:
    # Port numbers are reused, and the cache may still have items of the same URL and version.
    server.objects["/transfers.b2nd"] = server.objects["/a.b2nd"]
    a = caterva.open(server.url("/transfers.b2nd"), remote={"over_read_percent": 0})
    assert a.transfers == (1, 65536, 1, 0, 0, 0)
    a[:]  # more bytes than opening has read, wherever the chunks are
    assert a.transfers.requests == len(server.requests) > 1
    assert a.transfers.bytes == server.sent
    assert caterva.open("a.b2nd").transfers is None
    assert caterva.zeros(3).transfers is None


def test_options_reach_the_library(server: Any) -> None:
    url = server.url("/a.b2nd")
    server.script = lambda request: scripted.Reply(503)
    for retries in (0, 2):
        server.forget()
        with pytest.raises(caterva.StoreError):
            caterva.open(url, remote={"retries": retries})
        assert len(server.requests) == retries + 1
    for words in ({"retries": -1}, {"retries": 21}, {"connections": 0}, {"connections": 257}):
        with pytest.raises(ValueError):
            caterva.open(url, remote=words)
    for words in ({"credentials": "mine"}, {"connect_timeout": 0}, {"stall_timeout": -1.0}):
        with pytest.raises(ValueError):
            caterva.open(url, remote=words)
    for words in ({"try": 1}, {"region": 3}, {"headers": 3}, {"region": "a\0b"}):
        with pytest.raises(TypeError):
            caterva.open(url, remote=words)
    with pytest.raises(TypeError):
        caterva.open(url, remote=3)


def test_s3_by_options(server: Any) -> None:
    server.objects["/bucket/key.b2nd"] = server.objects["/a.b2nd"]
    words = {
        "endpoint": server.url(""),
        "access_key": "AK",
        "secret_key": "sesame",
        "session_token": "token",
        "region": "mars-1",
        "credentials": "given",
    }
    a = caterva.open("s3://bucket/key.b2nd", remote=words)
    assert "Credential=AK/" in server.requests[0].headers["authorization"]
    assert "/mars-1/s3/" in server.requests[0].headers["authorization"]
    assert server.requests[0].headers["x-amz-security-token"] == "token"
    caterva.open("s3://bucket/key.b2nd", remote=words | {"credentials": "none"})
    assert "authorization" not in server.requests[-1].headers
    stored = pickle.dumps(a)
    assert b"sesame" not in stored and b"token" not in stored.replace(b"session_token", b"")
    os.environ |= {"AWS_ACCESS_KEY_ID": "ENV", "AWS_SECRET_ACCESS_KEY": "x"}
    try:
        again = pickle.loads(stored)
    finally:
        del os.environ["AWS_ACCESS_KEY_ID"], os.environ["AWS_SECRET_ACCESS_KEY"]
    assert "Credential=ENV/" in server.requests[-1].headers["authorization"]
    assert np.array_equal(again[::9], server.items[::9])
    with_secrets = caterva.open("s3://bucket/key.b2nd", remote=words | {"pickle_secrets": True})
    pickle.loads(pickle.dumps(with_secrets))
    assert "Credential=AK/" in server.requests[-1].headers["authorization"]


def test_trees_keep_their_options(server: Any) -> None:
    with caterva.open_tree("t.b2d", "w") as t:
        t["g/x"] = np.arange(20000)
    caterva.open_tree("t.b2d").pack("t.b2z", overwrite=True)
    server.objects["/t.b2z"] = Path("t.b2z").read_bytes()
    server.script = authorized
    remote = caterva.Remote(headers=HEADERS, pickle_secrets=True)
    url = server.url("/t.b2z")
    with pytest.raises(FileNotFoundError):
        caterva.open_tree(url)
    server.forget()
    tree = caterva.open_tree(url, remote=remote)
    x = tree["g/x"]
    tree.close()
    assert x[19999] == 19999 and x.transfers.requests == len(server.requests)
    assert pickle.loads(pickle.dumps(x))[5] == 5
    assert pickle.loads(pickle.dumps(caterva.open(url, remote=remote)))["g/x"][7] == 7
    assert list(caterva.open(url + "::/g", remote=remote)) == ["x"]


def test_what_was_given_lives_as_long_as_the_array(server: Any) -> None:
    class Ask:
        def __call__(self) -> dict[str, str]:
            return HEADERS

    ask = Ask()
    alive = weakref.ref(ask)
    server.script = authorized
    a = caterva.open(server.url("/a.b2nd"), remote={"headers": ask})
    del ask
    gc.collect()
    assert alive() is not None and a[7, 7, 7] == server.items[7, 7, 7]
    del a
    gc.collect()
    assert alive() is None


def test_the_folder_may_be_the_parent_of_a_link(server: Any) -> None:
    if WINDOWS:
        pytest.skip("Windows resolves .. by name")
    os.makedirs("there/inside")
    os.symlink("there/inside", "link")
    caterva.open(server.url("/a.b2nd"), remote={"cache": "link/../kept"})[...]
    assert os.listdir("there/kept") and not os.path.exists("kept")


def test_a_folder_keeps_what_was_read(server: Any) -> None:
    url = server.url("/a.b2nd")
    remote = caterva.Remote(cache="kept", cache_bytes=1 << 24)
    a = caterva.open(url, remote=remote, cache_bytes=-1)
    assert np.array_equal(a[...], server.items) and a.transfers.cached == 0
    fetched = a.transfers.bytes - 65536
    server.forget()
    stored = pickle.dumps(caterva.open(url, remote=remote, cache_bytes=-1))
    again = caterva.open(url, remote={"cache": Path("kept")}, cache_bytes=-1)
    assert np.array_equal(again[...], server.items)
    assert len(server.requests) == 2 and again.transfers.cached > fetched // 2 > 0
    assert np.array_equal(pickle.loads(stored)[...], server.items)
    assert len(server.requests) == 3
    for words in ({"cache_bytes": -1}, {"cache_bytes": "1 GiB"}):
        with pytest.raises((TypeError, ValueError)):
            caterva.open(url, remote=words)


# ---- Data sets ----------------------------------------------------------------------------


def test_a_data_set_behind_a_url(server: Any) -> None:
    xr = pytest.importorskip("xarray")
    import caterva.xarray

    times = np.arange(40, dtype="f8")
    for n in range(2):
        items = np.random.default_rng(n).normal(size=(40, 30))
        data = xr.Dataset(
            {"t2m": (("time", "x"), items)}, coords={"time": times + 40 * n}, attrs={"n": n}
        )
        data.to_caterva(f"d{n}.b2z")
        server.objects[f"/d{n}.b2z"] = Path(f"d{n}.b2z").read_bytes()
    urls = [server.url(f"/d{n}.b2z") for n in range(2)]
    with xr.open_dataset(urls[0]) as got, xr.open_dataset("d0.b2z") as wanted:
        assert got.identical(wanted)
        assert pickle.loads(pickle.dumps(got)).identical(wanted)
    with xr.open_dataset(urls[0] + "?signed=1", chunks={}) as got:
        assert got["t2m"].sum().compute() == xr.open_dataset("d0.b2z")["t2m"].sum()
    with xr.open_mfdataset(urls, combine="by_coords") as got:
        assert got.sizes["time"] == 80
        assert got["t2m"][79, 3] == xr.open_dataset("d1.b2z")["t2m"][39, 3]
    server.script = authorized
    with pytest.raises(FileNotFoundError):
        xr.open_dataset(urls[0])
    with xr.open_dataset(urls[0], remote={"headers": HEADERS}) as got:
        assert got["t2m"].shape == (40, 30) and float(got["time"][3]) == 3
    guess = caterva.xarray.CatervaBackendEntrypoint().guess_can_open
    assert guess("s3://b/x.b2z") and guess("https://h/x.b2z?q=1.nc")
    assert not guess("https://h/x.nc") and not guess("gs://b/x.b2z") and not guess("a://b")


# ---- Secrets, copies, refusals -----------------------------------------------------------


SECRETS = "?X-Amz-Signature=HUSH"


def test_secrets_of_urls_are_not_seen(server: Any) -> None:
    with caterva.open_tree("s.b2d", "w") as t:
        t["g/x"] = [1, 2]
        t.pack("s.b2z")
    server.objects["/s.b2z"] = Path("s.b2z").read_bytes()
    a = caterva.open(server.url("/a.b2nd") + SECRETS)
    tree = caterva.open_tree(server.url("/s.b2z") + SECRETS)
    x = caterva.open(server.url("/s.b2z") + SECRETS + "::/g/x")
    assert a.path is not None and a.path.endswith(SECRETS)  # the whole URL is available
    assert server.url("/s.b2z") + "::/g/x" in repr(x)
    for said in (
        repr(a),
        str(a.info),
        a._repr_html_(),
        repr(tree),
        tree._repr_html_(),
        repr(x),
    ):
        assert "HUSH" not in said and "127.0.0.1" in said
    with_user = server.url("/a.b2nd").replace("http://", "http://HUSH:HUSH@")
    for place in (server.url("/none.b2nd") + SECRETS, with_user, with_user + SECRETS):
        with pytest.raises(caterva.Error) as caught:
            caterva.open(place)
        told = f"{caught.value!r} {caught.value} {getattr(caught.value, 'filename', '')}"
        assert "HUSH" not in told
    assert "HUSH" not in repr(caterva.Remote(endpoint="http://HUSH:HUSH@host"))


def test_sources_of_data_sets_are_seen_without_secrets(server: Any) -> None:
    xr = pytest.importorskip("xarray")
    xr.Dataset({"t": ("i", np.arange(4))}).to_caterva("d.b2z")
    server.objects["/d.b2z"] = Path("d.b2z").read_bytes()
    with xr.open_dataset(server.url("/d.b2z") + SECRETS, engine="caterva") as ds:
        assert ds["t"].encoding["source"] == server.url("/d.b2z")


def test_a_pickled_tree_refuses_another_object(server: Any) -> None:
    for n in (10, 1000):
        with caterva.open_tree("p.b2d", "w") as t:
            t["a"] = np.arange(n)
            t.pack(f"p{n}.b2z", overwrite=True)
    server.objects["/p.b2z"] = Path("p10.b2z").read_bytes()
    stored = pickle.dumps(caterva.open_tree(server.url("/p.b2z")))
    assert pickle.loads(stored)["a"].shape == (10,)
    server.objects["/p.b2z"] = Path("p1000.b2z").read_bytes()
    with pytest.raises(caterva.StaleError):
        pickle.loads(stored)


def test_copies_keep_everything_and_hash_alike() -> None:
    words: dict[str, Any] = {
        "access_key": "A",
        "secret_key": "S",
        "headers": {"a": "b"},
        "on_request": print,
        "credentials": "given",
    }
    remote = caterva.Remote(**words)
    for again in (copy.copy(remote), copy.deepcopy({"r": remote})["r"]):
        assert {name: getattr(again, name) for name in words} == words
        assert again == remote and hash(again) == hash(remote)
    assert pickle.loads(pickle.dumps(remote)).secret_key is None
    assert len({remote, caterva.Remote(headers={"a": "c"}), caterva.Remote()}) == 3


def test_writing_to_a_url_is_refused_in_one_sentence(server: Any) -> None:
    url = server.url("/a.b2nd")
    for write in (
        lambda: caterva.open(url, "r+"),
        lambda: caterva.open(url, "w", shape=3, dtype="i4"),
        lambda: caterva.create((3,), "i4", url),
        lambda: caterva.save(url, [1, 2]),
        lambda: caterva.save(url, [1, 2], overwrite=True),
        lambda: caterva.copy(caterva.open("a.b2nd"), url),
        lambda: caterva.seal(url),
        lambda: caterva.compact(url),
        lambda: caterva.repair(url),
        lambda: caterva.delete(url),
    ):
        with pytest.raises(caterva.ReadOnlyError, match="a URL can only be read"):
            write()


def test_credentials_that_are_wanted_are_a_permission(server: Any) -> None:
    server.script = lambda request: scripted.Reply(401)
    with pytest.raises(PermissionError):
        caterva.open(server.url("/a.b2nd"))


def test_the_case_of_schemes_does_not_matter(server: Any) -> None:
    url = server.url("/a.b2nd").replace("http://", "HTTP://")
    assert np.array_equal(caterva.open(url)[3], server.items[3])


@needs_libcurl
def test_credentials_that_are_named_are_there(monkeypatch: Any, tmp_path: Path) -> None:
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    for words in ({"access_key": "A"}, {"secret_key": "HUSH"}):
        with pytest.raises(caterva.InvalidError, match="only the") as caught:
            caterva.open("s3://bucket/key", remote=words)
        assert "HUSH" not in str(caught.value)
    far = {"profile": "nobody's", "endpoint": "http://127.0.0.1:9", "retries": 0}
    with pytest.raises(caterva.InvalidError, match='no profile "nobody\'s"'):
        caterva.open("s3://bucket/key", remote=far)
    with pytest.raises(caterva.StoreError):
        caterva.open("s3://bucket/key", remote=far | {"access_key": "A", "secret_key": "S"})


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        ({"connect_timeout": "3"}, TypeError),
        ({"connect_timeout": 1e30}, ValueError),
        ({"stall_timeout": 1e10}, ValueError),
        ({"stall_timeout": float("nan")}, ValueError),
        ({"cache": ""}, ValueError),
    ],
)
def test_options_are_refused_by_name(words: dict[str, Any], kind: type[Exception]) -> None:
    with pytest.raises(kind, match=f"remote option {next(iter(words))}"):
        caterva.open("http://127.0.0.1:9/a", remote=words)


@needs_libcurl
def test_no_answer_at_all_is_an_oserror_with_all_of_it() -> None:
    with pytest.raises(caterva.StoreError) as caught:
        caterva.open("http://127.0.0.1:1/x?secret=1", remote={"retries": 0})
    error = caught.value
    assert (error.errno, error.strerror) == (errno.EIO, os.strerror(errno.EIO))
    assert error.filename == "http://127.0.0.1:1/x"


# ---- Stopping while a server delays its responses --------------------------------------------


def stalled(server: Any, **options: Any) -> Any:
    """An array whose reads all wait; a thread of the library may send the first request."""
    remote = {"connections": 4, "retries": 0}
    a = caterva.open(server.url("/a.b2nd"), cache_bytes=-1, threads=4, remote=remote, **options)
    a[0, 0, 0]
    server.script = lambda _: scripted.Reply(delay=6)
    return a


def test_progress_stops_what_waits(server: Any) -> None:
    class EnoughError(Exception):
        pass

    def stop(done: int, total: int) -> None:
        if server.script:
            raise EnoughError

    for _ in range(25):
        server.script = None
        a = stalled(server, progress=stop)
        began = time.monotonic()
        with pytest.raises(EnoughError):
            a[...]
        assert time.monotonic() - began < 4


def test_an_interrupt_stops_what_waits(server: Any) -> None:
    for _ in range(25):
        server.script = None
        a = stalled(server)
        began = time.monotonic()
        timer = interrupt_soon()
        with pytest.raises(KeyboardInterrupt):
            timer.start()
            a[...]
        timer.join()
        assert time.monotonic() - began < 4


OPENINGS: tuple[Callable[..., Any], ...] = (
    lambda url, **options: caterva.open(f"{url}/a.b2nd", **options),
    lambda url, **options: caterva.open_tree(f"{url}/t.b2z", **options),
    lambda url, **options: caterva.open(f"{url}/t.b2z::/x", **options),
)


@pytest.mark.parametrize("opening", OPENINGS, ids=["array", "tree", "array of a tree"])
def test_an_interrupt_stops_an_opening(server: Any, opening: Callable[..., Any]) -> None:
    server.script = lambda _: scripted.Reply(delay=6)
    began = time.monotonic()
    timer = interrupt_soon()
    with pytest.raises(KeyboardInterrupt):
        timer.start()
        opening(server.url(""), remote={"retries": 0})
    timer.join()
    assert time.monotonic() - began < 4


# ---- URLs that cannot be read or written -----------------------------------------------------


@pytest.fixture
def tree_server(server: Any) -> Any:
    with caterva.open_tree("t.b2d", "w") as tree:
        for i in range(6):
            tree[f"x{i}"] = np.random.default_rng(i).integers(0, 1 << 40, 9000)
        tree.pack("t.b2z")
    server.objects["/t.b2z"] = Path("t.b2z").read_bytes()
    return server


@pytest.mark.parametrize("status", [403, 404, 401, 503])
def test_a_tree_that_cannot_be_listed_is_not_empty(tree_server: Any, status: int) -> None:
    server = tree_server
    tree = caterva.open(server.url("/t.b2z"), remote={"retries": 0})
    server.script = lambda request: scripted.Reply(status)
    for use in (list, len, lambda t: t.entries(), lambda t: t["x3"], lambda t: "x3" in t):
        with pytest.raises(caterva.StoreError, match=str(status)):
            use(tree)
    with pytest.raises(caterva.StoreError, match=str(status)):
        tree.verify()
    server.script = None
    assert list(tree) == [f"x{i}" for i in range(6)] and tree.verify()


def test_a_data_set_that_is_published_again_in_between(tree_server: Any) -> None:
    xr = pytest.importorskip("xarray")
    server, whole = tree_server, tree_server.objects["/t.b2z"]
    seen = 0

    def again(request: Any) -> None:
        nonlocal seen
        seen += 1
        if seen == 2:
            server.objects["/t.b2z"] = whole + b"\0"

    server.script = again
    with pytest.raises(OSError, match="changed on the server"):
        xr.open_dataset(server.url("/t.b2z"), engine="caterva")
    server.script = None


@pytest.mark.parametrize("status", [403, 404, 410, 503])
def test_what_is_gone_is_no_damage(server: Any, status: int) -> None:
    a = caterva.open(server.url("/a.b2nd"), remote={"retries": 0})
    server.script = lambda request: scripted.Reply(status)
    with pytest.raises(caterva.StoreError, match=str(status)):
        a.read_around_damage()
    with pytest.raises(caterva.StoreError, match=str(status)):
        a.verify()


@pytest.mark.parametrize(
    "url", ["memory://z.b2nd", "gs://b/z.b2nd", "no-such://z.b2nd", "http://127.0.0.1:9/z.b2nd"]
)
def test_nothing_is_written_to_a_url(url: str) -> None:
    items = np.arange(3)
    for write in (
        lambda: caterva.save(url, items),
        lambda: caterva.create(3, "i4", url),
        lambda: caterva.asarray(items).copy(url),
        lambda: caterva.open(url, "r+"),
        lambda: caterva.open(url, "a"),
        lambda: caterva.open(url, "w", shape=3, dtype="i4"),
        lambda: caterva.open_tree(url, "w"),
        lambda: caterva.open_tree(url, "r+"),
        lambda: caterva.open_tree(url, "x"),
        lambda: caterva.repair(url),
    ):
        with pytest.raises(caterva.ReadOnlyError):
            write()

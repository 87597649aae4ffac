"""Identity of states: Dask tokens and pickles hold the commit that the handle sees."""

from __future__ import annotations

import copy
import importlib.util
import io
import multiprocessing
import os
import pickle
import random
import shutil
import threading
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import blosc2
import caterva
import numpy as np
import pytest
from support import in_child, needs_fork, status_of, times

if importlib.util.find_spec("dask") is None:
    pytest.skip("dask is not installed", allow_module_level=True)


import dask
import dask.array as da
from dask.base import tokenize

has_xarray = pytest.mark.skipif(
    importlib.util.find_spec("xarray") is None, reason="xarray is not installed"
)
SHAPE = (6, 5)


def made(path: str, value: int, **options: Any) -> caterva.Array:
    """Create and commit an array of one value; return it open for writing."""
    array = caterva.full(SHAPE, value, dtype="i4", path=path, overwrite=True, **options)
    array.commit()
    return array


def again(handle: Any) -> Any:
    """Pickle and unpickle the handle."""
    return pickle.loads(pickle.dumps(handle))


# ---- Arrays ---------------------------------------------------------------------------------

STORED: dict[str, dict[str, Any]] = {
    "one file": {},
    "directory": {"layout": "sparse"},
    "small chunks": {"chunks": (2, 2)},
}


@pytest.mark.parametrize("options", STORED.values(), ids=STORED)
def test_tokens_are_equal_if_and_only_if_the_commit_is(
    options: dict[str, Any], pytestconfig: pytest.Config
) -> None:
    seed = random.randrange(1 << 32)
    print("seed", seed)
    rng = random.Random(seed)
    w = made("a.b2nd", 0, **options)
    commit, items = 1, {1: w[...]}
    readers: list[tuple[caterva.Array, int]] = []
    for _ in range(times(pytestconfig, 60, 1000)):
        action = rng.choice(["commit", "open", "refresh", "pickle", "write", "commit", "attrs"])
        if action == "write":
            w[rng.randrange(6)] = rng.randrange(3)
        elif action in ("commit", "attrs"):
            if action == "attrs":
                w.attrs["n"] = rng.randrange(3)
            else:
                w[rng.randrange(6)] = rng.randrange(3)
            w.commit()  # without changes: no new commit
            commit = w.info.commit_number
            assert np.array_equal(items.setdefault(commit, w[...]), w[...])
        elif action == "open":
            if len(readers) > 5:
                readers.pop(rng.randrange(6))
            readers.append((caterva.open("a.b2nd"), commit))
        elif readers:
            i = rng.randrange(len(readers))
            array, at = readers[i]
            if action == "refresh":
                array.refresh()
                readers[i] = array, commit
            elif at == commit:
                assert np.array_equal(again(array)[...], items[at])
            else:
                with pytest.raises(caterva.StaleError, match="open it again"):
                    again(array)
        tokens = [tokenize(array) for array, _ in readers]
        views = [tokenize(array.view[1:, ::2]) for array, _ in readers]
        for i, (array, at) in enumerate(readers):
            assert np.array_equal(array[...], items[at])
            for j, (_, other) in enumerate(readers):
                assert (tokens[i] == tokens[j]) == (at == other)
                assert (views[i] == views[j]) == (at == other)
    w.discard()


def test_a_graph_reads_each_commit() -> None:
    w = made("a.b2nd", 5)
    old = caterva.open("a.b2nd")
    w[:] = 9
    w.commit()
    x, y = da.from_array(old, chunks=2), da.from_array(caterva.open("a.b2nd"), chunks=2)
    assert (y - x).compute().tolist() == np.full(SHAPE, 4).tolist()
    assert [part[0, 0] for part in dask.compute(x, y)] == [5, 9]


def test_threads_and_processes_give_one_sum_or_stale_error() -> None:
    w = made("a.b2nd", 5)
    old = caterva.open("a.b2nd")
    x = da.from_array(old, chunks=2).sum()
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(2, spawn) as pool:
        assert x.compute(scheduler="processes", pool=pool) == 150
        w[:] = 9
        w.commit()
        assert x.compute(scheduler="threads") == 150
        with pytest.raises(caterva.StaleError, match="open it again"):
            x.compute(scheduler="processes", pool=pool)
        y = da.from_array(caterva.open("a.b2nd"), chunks=2).sum()
        assert y.compute(scheduler="processes", pool=pool) == 270
        assert y.compute(scheduler="threads") == 270


@pytest.mark.skipif(
    importlib.util.find_spec("distributed") is None, reason="distributed is not installed"
)
def test_distributed_workers_give_one_sum_or_stale_error() -> None:
    distributed = importlib.import_module("distributed")
    w = made("a.b2nd", 5)
    old = caterva.open("a.b2nd")
    x = da.from_array(old, chunks=2).sum()
    words = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    with (
        distributed.LocalCluster(processes=True, **words) as cluster,
        distributed.Client(cluster) as client,
    ):
        assert client.compute(x).result() == 150
        w[:] = 9
        w.commit()
        y = da.from_array(caterva.open("a.b2nd"), chunks=2).sum()
        assert client.compute(y).result() == 270
        with pytest.raises((caterva.StaleError, RuntimeError)):
            client.compute(da.from_array(old, chunks=3).sum()).result()


def test_a_replaced_file_does_not_keep_its_token() -> None:
    made("a.b2nd", 5).close()
    old = caterva.open("a.b2nd")
    made("a.b2nd", 9).close()  # the same number of commits, and the same length
    new = caterva.open("a.b2nd")
    assert old.info.commit_number == new.info.commit_number
    assert old.info.frame_bytes == new.info.frame_bytes
    assert tokenize(old) != tokenize(new)
    assert (old[0, 0], again(new)[0, 0]) == (5, 9)
    with pytest.raises(caterva.StaleError):
        again(old)


def test_the_bytes_on_disk_are_what_counts() -> None:
    made("a.b2nd", 5).close()
    with caterva.open("a.b2nd") as a:
        token, text = tokenize(a), pickle.dumps(a)
    shutil.copy("a.b2nd", "b.b2nd")
    os.replace("b.b2nd", "a.b2nd")  # another file with the same bytes
    os.utime("a.b2nd", ns=(1, 1))
    assert tokenize(caterva.open("a.b2nd")) == token
    assert pickle.loads(text)[0, 0] == 5


@pytest.mark.parametrize("contiguous", [True, False])
def test_files_of_other_writers(contiguous: bool) -> None:
    b = blosc2.asarray(np.full(SHAPE, 5), urlpath="b.b2nd", mode="w", contiguous=contiguous)
    file = "b.b2nd" if contiguous else "b.b2nd/chunks.b2frame"
    os.utime(file, ns=(1000, 1000))
    old = caterva.open("b.b2nd")
    assert tokenize(old) == tokenize(caterva.open("b.b2nd"))
    assert again(old)[0, 0] == 5
    token, text = tokenize(old), pickle.dumps(old)
    b[:] = np.full(SHAPE, 9)  # the same size at the same position
    os.utime(file, ns=(2000, 2000))
    assert tokenize(old) == token
    new = caterva.open("b.b2nd")
    assert (tokenize(new) != token, new[0, 0]) == (True, 9)
    with pytest.raises(caterva.StaleError):
        pickle.loads(text)


def test_a_place_that_is_something_else_by_now() -> None:
    made("a.b2nd", 5).close()
    text = pickle.dumps(caterva.open("a.b2nd"))
    os.remove("a.b2nd")
    with pytest.raises(FileNotFoundError):
        pickle.loads(text)
    with caterva.open_tree("t.b2d", "w") as t:
        t["x"] = [1, 2]
        t.pack("a.b2nd")
    with pytest.raises(caterva.StaleError):
        pickle.loads(text)


def test_arrays_in_memory_and_in_file_objects() -> None:
    a, b = caterva.full(3, 5), caterva.full(3, 9)
    assert tokenize(a) == tokenize(copy.deepcopy(a)) != tokenize(b)
    assert again(a)[0] == 5
    frames = [made(f"{n}.b2nd", n).to_bytes() for n in (5, 9)]
    file = io.BytesIO(frames[0])
    x = caterva.open(file)
    assert tokenize(x) == tokenize(x)
    assert again(x)[0, 0] == 5
    file.seek(0)
    file.write(frames[1])
    with pytest.raises(caterva.StaleError):
        again(x)


# ---- Writers --------------------------------------------------------------------------------


def test_a_writer_has_a_token_of_its_own() -> None:
    w = made("a.b2nd", 5)
    r = caterva.open("a.b2nd")
    token = tokenize(w)
    assert token == tokenize(w) != tokenize(r)
    w[0] = 1
    assert len({token, tokenize(w), tokenize(w)}) == 3
    w.commit()
    assert tokenize(w) == tokenize(w) != token
    with pytest.raises(TypeError, match="open for writing"):
        pickle.dumps(w)
    with pytest.raises(TypeError, match="open for writing"):
        pickle.dumps(w.view[1:])


def test_dask_stores_into_an_array_that_was_never_committed() -> None:
    w = caterva.zeros((4, 4), "f8", "new.b2nd", chunks=(2, 2))
    assert tokenize(w) != tokenize(w)
    da.store(da.ones((4, 4), chunks=2), w, lock=False)
    assert da.from_array(w).sum().compute() == 16
    w.close()
    assert caterva.open("new.b2nd")[...].sum() == 16


# ---- Forked children ------------------------------------------------------------------------


@needs_fork
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("place", ["a.b2nd", "t.b2d::/x", "t.b2z::/x", "t.b2z"])
def test_a_child_does_not_turn_to_another_state(place: str) -> None:
    """A thread of the parent is inside at the fork, so the child has to reopen the file."""
    work = "a.b2nd" if place == "a.b2nd" else "t.b2d::/x"

    def write(value: int) -> None:
        with caterva.create(4, "i4", work, overwrite=True) as w:
            w[:] = value
        if "b2z" in place:
            with caterva.open_tree("t.b2d") as t:
                t.pack("t.b2z", overwrite=True)

    write(5)
    handle: Any = caterva.open(place)
    tree = isinstance(handle, caterva.Tree)
    view = handle["x"].view[1:] if tree else handle.view[1:]
    inside, go_on = threading.Event(), threading.Event()

    def hear(*_: Any) -> None:
        inside.set()
        go_on.wait()

    def use() -> None:
        if tree:
            handle.verify(progress=hear)
        else:
            handle.sum(progress=hear)

    def read() -> int:
        return int(handle._array("/x")[0] if tree else handle[0])

    def same() -> None:
        assert read() == 5
        assert tree or view[0] == 5

    def stale() -> None:
        if tree:
            with pytest.raises(caterva.StaleError, match="replaced after it was opened"):
                handle.entries()
        else:
            with pytest.raises(caterva.StaleError, match="changed after it was opened"):
                handle[0]

    thread = threading.Thread(target=use)
    thread.start()
    inside.wait()
    assert status_of(in_child(same)) == 0
    write(9)
    assert status_of(in_child(stale)) == 0
    go_on.set()
    thread.join()
    assert read() == 5


# ---- Views ----------------------------------------------------------------------------------

VIEWS: dict[str, Callable[[Any], Any]] = {
    "select": lambda a: a.view[1:4, ::-1],
    "int and new axis": lambda a: a.view[2, None, 1:],
    "lists": lambda a: a.view[[5, 3, 1]],
    "transpose": lambda a: a.view[1:].T.select(np.s_[:, 1:]),
    "squeeze": lambda a: a.view[:1].squeeze(),
    "concat": lambda a: caterva.concat([a.view[:2], a, a.view[1:2]]),
    "stack": lambda a: caterva.stack([a, a], axis=-1).select(1).view[:, 0],
    "astype": lambda a: a.astype("f8"),
    "astype of a view": lambda a: a.view[1:].astype("f8"),
}


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
def test_views_are_pickled_and_have_tokens(view: Callable[[Any], Any]) -> None:
    items = np.arange(30, dtype="i4").reshape(SHAPE)
    w = caterva.asarray(items, "a.b2nd")
    w.commit()
    r = caterva.open("a.b2nd")
    v = view(r)
    found = again(v)
    assert np.array_equal(found[...], v[...])
    assert found.shape == v.shape
    assert np.array_equal(again(found)[...], v[...])
    tokens = {tokenize(v), tokenize(found), tokenize(view(caterva.open("a.b2nd")))}
    assert len(tokens) == 1
    others = [tokenize(other(r)) for other in VIEWS.values()]
    assert others.count(tokenize(v)) == 1
    w[0] = 7
    w.commit()
    assert tokenize(v) in tokens
    assert tokenize(view(caterva.open("a.b2nd"))) not in tokens
    with pytest.raises(caterva.StaleError):
        again(v)
    memory = view(caterva.asarray(items))
    assert np.array_equal(again(memory)[...], memory[...])


def test_fields_are_pickled_and_have_tokens() -> None:
    items = np.array([(1, 2.5), (3, 4.5)], [("n", "i4"), ("x", "f8")])
    w = caterva.asarray(items, "a.b2nd")
    w.commit()
    r = caterva.open("a.b2nd")
    assert again(r.fields["x"])[...].tolist() == [2.5, 4.5]
    token = tokenize(r.fields["x"])
    assert token == tokenize(caterva.open("a.b2nd").fields["x"]) != tokenize(r.fields["n"])
    w[0] = (9, 9.5)
    w.commit()
    assert token == tokenize(r.fields["x"])
    assert token != tokenize(caterva.open("a.b2nd").fields["x"])
    with pytest.raises(caterva.StaleError):
        again(r.fields["x"])


def test_copies_of_a_view_read_the_same_array() -> None:
    w = caterva.asarray(np.arange(6), "a.b2nd")
    v = copy.copy(w.view[2:])
    w[3] = 30
    assert v[...].tolist() == [2, 30, 4, 5]
    assert copy.deepcopy(w.view[2:])[...].tolist() == [2, 30, 4, 5]


# ---- Trees ----------------------------------------------------------------------------------


def tree_of(place: str, value: int) -> None:
    """Make a tree of two arrays, one in a group; replace what exists."""
    shutil.rmtree("work.b2d", ignore_errors=True)
    with caterva.open_tree("work.b2d", "w") as t:
        t["x"] = np.full(4, value)
        t["g/y"] = np.full(4, value + 1)
        if place.endswith(".b2z"):
            t.pack(place, overwrite=True)
        else:
            t.unpack(place)


def test_an_archive_that_was_replaced() -> None:
    tree_of("t.b2z", 5)
    old = caterva.open_tree("t.b2z")
    kept = old["x"]
    token, text, member = tokenize(old), pickle.dumps(old), pickle.dumps(kept)
    assert token == tokenize(caterva.open_tree("t.b2z")) == tokenize(pickle.loads(text))
    assert tokenize(old["g"]) != token
    tree_of("t.b2z", 6)
    new = caterva.open_tree("t.b2z")
    assert tokenize(new) != token == tokenize(old)
    assert tokenize(new["g"]) != tokenize(old["g"])
    assert tokenize(new["x"]) != tokenize(kept)
    assert (old["x"][0], old["g/y"][0], new["x"][0]) == (5, 6, 6)
    for stale in (text, member, pickle.dumps(old), pickle.dumps(old["g"]), pickle.dumps(kept)):
        with pytest.raises(caterva.StaleError, match="open it again"):
            pickle.loads(stale)


def test_a_directory_is_pickled_with_the_states_that_were_seen() -> None:
    tree_of("t.b2d", 5)
    old = caterva.open_tree("t.b2d")
    token = tokenize(old)
    assert token == tokenize(caterva.open_tree("t.b2d"))
    seen, unseen = pickle.dumps(old), pickle.dumps(caterva.open_tree("t.b2d"))
    assert pickle.loads(seen)["x"][0] == 5
    with caterva.open_tree("t.b2d", "r+") as t:
        t["x"][:] = 9
    assert (old["x"][0], tokenize(old)) == (5, token)
    new = caterva.open_tree("t.b2d")
    assert tokenize(new) != token
    assert tokenize(new["g"]) == tokenize(old["g"])
    for stale in (seen, pickle.dumps(old)):
        opened = pickle.loads(stale)
        assert opened["g/y"][0] == 6
        for _ in range(2):
            with pytest.raises(caterva.StaleError, match="::/x is not in the state"):
                opened["x"]
    for kept in (again(pickle.loads(seen)), again(pickle.loads(pickle.dumps(old["g"]))).tree):
        with pytest.raises(caterva.StaleError, match="::/x is not in the state"):
            kept["x"]  # also after the pickle was passed on
    assert pickle.loads(unseen)["x"][0] == 9
    with caterva.open_tree("t.b2d", "r+") as t:
        t["g"].attrs["n"] = 1
        t["x"][0] = 3
        assert tokenize(t) != tokenize(t)
    assert tokenize(caterva.open_tree("t.b2d")) != tokenize(new)


# ---- Data sets ------------------------------------------------------------------------------


@has_xarray
@pytest.mark.parametrize("place", ["x.b2d", "x.b2z", "x.b2d::/g", "x.b2z::/g"])
def test_data_sets_of_two_states(place: str) -> None:
    xr = pytest.importorskip("xarray")
    importlib.import_module("caterva.xarray")
    path, _, group = place.partition("::")

    def save(value: float) -> None:
        ds = xr.Dataset({"v": ("x", np.full(100, value)), "w": ("x", np.arange(100.0))})
        where = group or None
        if os.path.isdir(path):
            with caterva.open_tree(path, "r+") as t:
                t[f"{group}/v"][:] = value
        else:
            ds.to_caterva(path, "w", group=where)

    save(5)
    old, lazy = xr.open_dataset(place, chunks={}), xr.open_dataset(place)
    text, lazy_text = pickle.dumps(old), pickle.dumps(lazy)
    assert pickle.loads(text)["v"].sum().compute().item() == 500
    assert old["v"].data.name == xr.open_dataset(place, chunks={})["v"].data.name
    save(9)
    new = xr.open_dataset(place, chunks={})
    assert [p.item() for p in dask.compute(old["v"].sum(), new["v"].sum())] == [500, 900]
    tokens = (
        tokenize(lazy.chunk()["v"].data),
        tokenize(xr.open_dataset(place).chunk()["v"].data),
    )
    assert tokens[0] != tokens[1]
    assert type(new["v"].variable) is xr.Variable
    assert lazy["v"].sum().compute().item() == 500
    for stale in (text, lazy_text, pickle.dumps(xr.open_dataset(place).isel(x=0)), b""):
        if stale in (text, lazy_text):
            with pytest.raises(caterva.StaleError, match="open it again"):
                pickle.loads(stale)["v"].sum().compute()
        elif stale:
            assert pickle.loads(stale)["v"].item() == 9
    lazy = xr.open_dataset(place)
    lazy.close()
    save(7)
    with pytest.raises(caterva.StaleError, match="open it again"):
        lazy["v"].load()


@has_xarray
def test_trees_of_data_sets_of_two_states() -> None:
    xr = pytest.importorskip("xarray")
    importlib.import_module("caterva.xarray")
    xr.Dataset({"v": ("x", np.full(100, 5.0))}).to_caterva("x.b2d", group="g")
    old = xr.open_datatree("x.b2d", engine="caterva", chunks={})
    with caterva.open_tree("x.b2d", "r+") as t:
        t["g/v"][:] = 9
    new = xr.open_datatree("x.b2d", engine="caterva", chunks={})
    found = dask.compute(old["g/v"].sum().data, new["g/v"].sum().data)
    assert [float(n) for n in found] == [500, 900]

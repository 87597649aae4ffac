"""Trees: groups as mappings, modes, commits, packing, repr, pickles and forks."""

from __future__ import annotations

import os
import pickle
import threading
from pathlib import Path
from typing import Any

import blosc2
import caterva
import numpy as np
import pytest
from support import run_program


def made(path: str = "t.b2d") -> str:
    with caterva.open_tree(path, "w") as t:
        t["x"] = np.arange(6, dtype="i2").reshape(2, 3)
        t["g/y"] = [1.5, 2.5]
        t["g/deep/z"] = np.arange(3)
        t.create_group("empty")
    return path


# ---- The mapping -------------------------------------------------------------------------


def test_a_tree_is_a_mapping() -> None:
    t = caterva.open_tree(made())
    assert list(t) == ["empty", "g", "x"] and len(t) == 3
    assert "g/y" in t and "/g/y" in t and "g" in t and "no" not in t and 3 not in t
    assert t["x"][1].tolist() == [3, 4, 5] and t["x"].dtype == np.int16
    g = t["g"]
    assert isinstance(g, caterva.Group) and list(g) == ["deep", "y"] and g.name == "/g"
    assert g["y"] is t["g/y"] and g["/x"] is t["x"] and g["/"] is t
    assert g == t["g"] and g != t["empty"] and hash(g) == hash(t["g"])
    assert dict(t["g/deep"]).keys() == {"z"} and len(t["empty"]) == 0
    assert [k for k, _ in t.arrays()] == ["/g/deep/z", "/g/y", "/x"]
    for wrong in ("no", "x/y", "g/no", "g//y", "../x", "g/../x"):
        with pytest.raises((KeyError, ValueError)):
            t[wrong]
    with pytest.raises(TypeError, match="is a str"):
        t[3]  # type: ignore[index]


def test_what_is_new_is_seen_at_once_and_by_others_after_the_commit() -> None:
    t = caterva.open_tree("t.b2d", "x")
    t["a/b/c"] = [1, 2]
    assert list(t) == ["a"] and list(t["a/b"]) == ["c"] and "a/b/c" in t
    assert [e.key for e in t.entries()] == ["/a", "/a/b", "/a/b/c"]
    with caterva.open_tree("t.b2d") as other:
        assert list(other) == []
    t.commit()
    assert caterva.open("t.b2d::/a/b/c")[:].tolist() == [1, 2]
    t["a/b/c"] = [3]
    t["d"] = [4]
    t.rollback()
    assert list(t) == ["a"] and t["a/b/c"][:].tolist() == [1, 2]
    t.close()
    assert t.closed and list(caterva.open_tree("t.b2d")) == ["a"]


def test_a_block_commits_or_drops() -> None:
    made()
    with pytest.raises(ZeroDivisionError), caterva.open_tree("t.b2d", "r+") as t:
        t["x"][:] = -1
        t["new"] = [1]
        t["g/y"] = [9.0]
        raise ZeroDivisionError
    t = caterva.open_tree("t.b2d")
    assert t["x"][0, 1] == 1 and "new" not in t and t["g/y"][0] == 1.5
    with caterva.open_tree("t.b2d", "r+") as t:
        t["x"][:] = -1
        t["g/y"] = [9.0]
    t = caterva.open_tree("t.b2d")
    assert t["x"][0, 1] == -1 and t["g/y"][:].tolist() == [9.0]


def test_members_go_and_move() -> None:
    with caterva.open_tree(made(), "r+") as t:
        x = t["x"]
        x[0, 0] = 77
        t.move("x", "g/moved")
        assert x.closed and t["g/moved"][0, 0] == 77 and "x" not in t
        del t["g/deep"]
        t["n"] = [1]
        del t["n"]
        for gone in ("no", "n", "g/deep"):
            with pytest.raises(KeyError):
                del t[gone]
        with pytest.raises(KeyError):
            t.move("no", "yes")
        with pytest.raises(FileExistsError):
            t.move("g/y", "g/moved")
        with pytest.raises(FileExistsError):
            t.create_array("g/y", 3)
        with pytest.raises(FileExistsError):
            t.create_group("g")
        assert t.require_group("g").name == "/g" and t.require_group("h/i").name == "/h/i"
        with pytest.raises(TypeError, match="shape"):
            t.create_array("q")
    assert [e.key for e in caterva.open_tree("t.b2d").entries()] == [
        "/empty", "/g", "/g/moved", "/g/y", "/h", "/h/i",
    ]  # fmt: skip


def test_arrays_are_made_of_anything() -> None:
    with caterva.open_tree("t.b2d", "w", threads=1, durability="none") as t:
        a = t.create_array("a", (4, 6), "f4", chunks=(2, 6), dims=("y", "x"), fill_value=7)
        a.attrs["unit"] = "K"
        t["b"] = a
        t["c"] = a.view[1:, ::2]
        t["d"] = (np.int8(i) for i in range(3))
        t["e"] = 5.5
        t.create_array("f", data=a, dtype="f8", level=1)
        assert a.info.durability == "none"
    t = caterva.open_tree("t.b2d")
    assert t["b"].chunks == (2, 6) and t["b"].attrs["unit"] == "K" and t["b"].dims == ("y", "x")
    assert t["c"].shape == (3, 3) and (t["c"][:] == 7).all()
    assert t["d"][:].tolist() == [0, 1, 2] and t["d"].dtype == np.int8
    assert t["e"].shape == () and t["e"][()] == 5.5
    assert t["f"].dtype == np.float64 and t["f"].info.level == 1
    assert t.dims == {"y": 4, "x": 6}


def test_python_blosc2_reads_it() -> None:
    made()
    store = blosc2.TreeStore("t.b2d", mode="r")
    assert np.array_equal(store["/g/y"][:], [1.5, 2.5])
    assert set(store.keys()) >= {"/x", "/g/y", "/g/deep/z"}


def test_groups_have_attributes() -> None:
    with caterva.open_tree(made(), "r+") as t:
        t.attrs["title"] = "a tree"
        t["g"].attrs.update(n=np.int16(3), long=list(range(500)))
        t["g"].attrs["straight_vertical_longitude_from_pole"] = 1.5
        t["n/new"] = [1]
        assert dict(t["n"].attrs) == {}
        t["n"].attrs["m"] = None
        assert dict(t["n"].attrs) == {"m": None}
    t = caterva.open_tree("t.b2d")
    assert dict(t.attrs) == {"title": "a tree"} and list(t["n"].attrs) == ["m"]
    g = t["g"].attrs
    assert g["n"] == 3 and type(g["n"]) is np.int16 and g["long"][-1] == 499
    assert g["straight_vertical_longitude_from_pole"] == 1.5 and len(g) == 3
    assert "none" in repr(t["empty"].attrs) and "no" not in g
    with pytest.raises(ValueError):
        g["x"] = 1
    with caterva.open_tree("t.b2d", "r+") as t:
        del t["g"].attrs["n"]
        with pytest.raises(KeyError):
            del t["g"].attrs["n"]
        t.attrs["title"] = "other"
        t.rollback()
        assert t.attrs["title"] == "a tree" and "n" in t["g"].attrs
    opened = blosc2.TreeStore("t.b2d", mode="r")
    assert opened.vlmeta["title"] == "a tree"


def test_a_commit_is_of_all_arrays_or_none() -> None:
    with caterva.open_tree("t.b2d", "w") as t:
        for name in "abc":
            t[name] = np.zeros(1000, "i4")
    program = """
import caterva, os, sys
t = caterva.open_tree("t.b2d", "r+")
for name in "abc": t[name][:] = int(sys.argv[1])
t.attrs["n"] = int(sys.argv[1])
t["new" + sys.argv[1]] = [1]
t.commit()
os._exit(0)
"""
    for n in (1, 2):
        run_program(program, ".", str(n))
        t = caterva.open_tree("t.b2d")
        assert {int(t[name][5]) for name in "abc"} == {n} and t.attrs["n"] == n
        assert f"new{n}" in t


def test_a_group_without_a_commit_is_gone() -> None:
    made()
    with pytest.raises(ZeroDivisionError), caterva.open_tree("t.b2d", "r+") as t:
        t["n/x"] = [1]
        t["n"].attrs["a"] = t.attrs["a"] = 1
        raise ZeroDivisionError
    t = caterva.open_tree("t.b2d")
    assert "n/x" not in t and "a" not in t.attrs


# ---- Modes -------------------------------------------------------------------------------


def test_modes() -> None:
    for mode in ("r", "r+"):
        with pytest.raises(FileNotFoundError):
            caterva.open_tree("t.b2d", mode)  # type: ignore[arg-type]
    caterva.open_tree("t.b2d", "a").close()
    with pytest.raises(FileExistsError):
        caterva.open_tree("t.b2d", "x")
    with caterva.open_tree("t.b2d", "a") as t:
        t["x"] = [1]
        with pytest.raises(BlockingIOError):
            caterva.open_tree("t.b2d", "r+")
    with caterva.open_tree("t.b2d", "r") as t, pytest.raises(ValueError, match=r"r\+"):
        t["y"] = [1]
    with caterva.open_tree("t.b2d", "w") as t:
        assert list(t) == []
    with pytest.raises(ValueError, match="rw"):
        caterva.open_tree("t.b2d", "rw")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="nonsense"):
        caterva.open_tree("t.b2d", nonsense=1)


def test_open_knows_trees_from_arrays() -> None:
    made()
    assert isinstance(caterva.open("t.b2d"), caterva.Tree)
    assert isinstance(caterva.open("t.b2d::/g"), caterva.Group)
    assert isinstance(caterva.open("t.b2d::/"), caterva.Tree)
    assert caterva.open("t.b2d::/g/y", "r+").writable
    with pytest.raises(FileNotFoundError):
        caterva.open("t.b2d::/no")
    caterva.open("t.b2d::/made", "a", shape=3).close()
    caterva.open("t.b2d::/made", "a", shape=3).close()
    with pytest.raises(ValueError, match=r"has shape \(3,\)"):
        caterva.open("t.b2d::/made", "a", shape=5)
    assert caterva.open("t.b2d::/made").shape == (3,)
    caterva.open("new.b2d", "w").close()
    assert len(caterva.open("new.b2d")) == 0
    caterva.save("other.b2d::/k", [1, 2])
    assert caterva.load("other.b2d::/k").tolist() == [1, 2]
    caterva.zeros(3, path="sparse", layout="sparse").close()
    os.rename("sparse", "sparse.b2d")
    assert isinstance(caterva.open("sparse.b2d"), caterva.Array)


def test_an_archive_never_changes() -> None:
    t = caterva.open_tree(made(), "r+")
    t["x"][0] = 5
    t.pack("t.b2z")
    with pytest.raises(FileExistsError):
        t.pack("t.b2z")
    t["x"][0] = 6
    t.pack("t.b2z", overwrite=True, progress=lambda done, total: None)
    t.close()
    z = caterva.open("t.b2z")
    assert isinstance(z, caterva.Tree) and z["x"][0].tolist() == [6, 6, 6]
    z.unpack("u.b2d")
    assert caterva.open("u.b2d::/g/y")[0] == 1.5
    for change in (
        lambda: z.create_group("n"), lambda: z.__setitem__("n", [1]), lambda: z.__delitem__("x")
    ):  # fmt: skip
        with pytest.raises(ValueError, match=r"archive.*unpack"):
            change()
    with pytest.raises(ValueError):
        z["x"][0] = 1
    for mode in ("r+", "a", "w"):
        with pytest.raises(ValueError):
            caterva.open_tree("t.b2z", mode)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"\.b2d and pack"):
        caterva.open_tree("no.b2z", "x")
    assert not os.path.exists("no.b2z")


def test_arrays_that_are_read_outlive_the_tree() -> None:
    with caterva.open_tree(made()) as t:
        x = t["x"]
    assert x[0, 1] == 1
    for closed in (lambda: t["x"], lambda: list(t), lambda: t.entries()):
        with pytest.raises(ValueError, match="closed"):
            closed()
    t.close()


# ---- Repr, pickles, forks ------------------------------------------------------------------


def test_looks() -> None:
    with caterva.open_tree(made(), "r+") as t:
        t["g/y"].dims = ("<time>",)
        assert repr(t).endswith("t.b2d' 3 arrays, 3 groups mode='r+'>")
        assert repr(t["g"]) == "<caterva.Group '/g' 2 arrays, 1 group>"
        assert repr(t["empty"]) == "<caterva.Group '/empty' empty>"
        shown = t._repr_html_()
        assert "&lt;time&gt;: 2" in shown and "float64" in shown and "<b>deep</b>" in shown
    assert repr(t).endswith("closed>") and "closed" in t._repr_html_()


def test_pickles() -> None:
    made()
    t = caterva.open_tree("t.b2d")
    again = pickle.loads(pickle.dumps(t))
    assert again["g/y"][1] == 2.5 and again.path == t.path
    before = pickle.dumps((t["g"], t["x"]))
    group, x = pickle.loads(before)
    assert list(group) == ["deep", "y"] and x[1, 2] == 5
    t.pack("t.b2z")
    z = pickle.dumps((caterva.open("t.b2z"), caterva.open("t.b2z::/x")))
    assert pickle.loads(z)[1][1, 2] == 5
    with caterva.open_tree("t.b2d", "r+") as w:
        with pytest.raises(TypeError, match="writing"):
            pickle.dumps(w)
        w["x"][:] = 0
        w.pack("t.b2z", overwrite=True)
    with pytest.raises(caterva.StaleError):
        pickle.loads(z)
    with pytest.raises(caterva.StaleError):
        pickle.loads(before)


@pytest.mark.skipif(
    "CATERVA_SANITIZED" in os.environ,
    reason="AddressSanitizer's allocator does not survive a fork beside threads",
)
def test_a_child_of_fork_goes_on() -> None:
    made()
    run_program("""
import caterva, os, threading
t = caterva.open_tree("t.b2d")
t["x"]
going = True
def use():
    while going:
        list(t); t["x"][0]
threads = [threading.Thread(target=use) for _ in range(3)]
for thread in threads: thread.start()
for _ in range(10):
    child = os.fork()
    if child == 0:
        try:
            assert list(t) == ["empty", "g", "x"] and t["g/y"][0] == 1.5
        except BaseException as error:
            print(error, flush=True)
            os._exit(1)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
going = False
for thread in threads: thread.join()
w = caterva.open_tree("t.b2d", "r+")
w["x"][0] = 9
child = os.fork()
if child == 0:
    del w
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
assert caterva.open("t.b2d::/x")[0, 1] == 1
w.close()
assert caterva.open("t.b2d::/x")[0, 1] == 9
""")


# ---- Pending arrays and their replacement ----------------------------------------------


def test_nothing_pending_is_lost_to_what_is_refused() -> None:
    made()
    with caterva.open_tree("t.b2d", "r+") as t:
        t["p/x"] = [1, 2, 3]
        for refused in (lambda: t.__setitem__("p", [9]), lambda: t.__setitem__("p/x/y", [9])):
            with pytest.raises(FileExistsError):
                refused()
        t["x"][0] = 7
        t["n"] = [1]
        for key in ("x", "n", "p/x"):
            before = t[key]
            for wrong in (
                lambda: t.create_array(key, (3,)),
                lambda: t.create_array(key, (3,), overwrite=True, codec="no"),
                lambda: t.create_array(key, (3,), overwrite=True, chunks=(-1,)),
                lambda: t.create_array(key, (3,), overwrite=True, dims=("a", "b")),
                lambda: t.create_array(key, data=["a"], dtype="f4", overwrite=True),
                lambda: t.create_array(key, data=[1], no=1, overwrite=True),
            ):
                with pytest.raises((FileExistsError, ValueError, TypeError)):
                    wrong()
            assert t[key] is before and not before.closed
        assert t["x"][0].tolist() == [7, 7, 7] and t["n"][:].tolist() == [1]
    t = caterva.open_tree("t.b2d")
    assert t["x"][0].tolist() == [7, 7, 7] and t["p/x"][:].tolist() == [1, 2, 3]
    assert list(t) == ["empty", "g", "n", "p", "x"]


def test_nothing_pending_is_lost_to_what_is_not_deleted() -> None:
    made()
    Path("t.b2d/g/notes.txt").write_text("mine")
    with caterva.open_tree("t.b2d", "r+") as t:
        t["x"][0] = 7
        t["g/n"] = [1]
        t["g"].attrs["late"] = 1
        before = t["g/y"]
        for key, error in (("g", FileExistsError), ("none", KeyError), ("/", ValueError)):
            with pytest.raises(error):
                del t[key]
        assert t["g/y"] is before and not before.closed
        assert t["x"][0].tolist() == [7, 7, 7] and t["g/n"][:].tolist() == [1]
        Path("t.b2d/g/notes.txt").unlink()
        t["h/a"] = [1]
        t.commit()
        t["h/a"].close()
        t["h/b"] = [2]
        del t["h"], t["g"]
        assert list(t) == ["empty", "x"]
    assert list(caterva.open_tree("t.b2d")) == ["empty", "x"]
    assert not [p for p in Path("t.b2d").rglob("*") if ".tmp" in p.name]


def test_an_array_is_put_in_its_own_place() -> None:
    made()
    with caterva.open_tree("t.b2d", "r+") as t:
        t["x"][0] = 7
        t["x"].attrs["units"] = "K"
        for _ in range(2):
            t["x"] = t["x"]
            assert t["x"][:].tolist() == [[7, 7, 7], [3, 4, 5]]
        t.create_array("x", data=t["x"], overwrite=True, chunks=(1, 3))
        assert t["x"].chunks == (1, 3) and t["x"].attrs["units"] == "K"
        t["x"] = t["x"].view[:, ::2]
        t["new"] = [1, 2]
        t["new"] = t["new"]
        t["x"] = t["x"][:] + 1
    t = caterva.open_tree("t.b2d")
    assert t["x"][:].tolist() == [[8, 8], [4, 6]] and t["new"][:].tolist() == [1, 2]


def test_a_key_is_one_thing() -> None:
    with caterva.open_tree("t.b2d", "w") as t:
        t["n"] = [1]
        t["h/x"] = [2]
        t.require_group("a").attrs["late"] = 1
        for key in ("n/b", "h", "a", "n/b/c"):
            with pytest.raises(FileExistsError):
                t[key] = [3]
        for key in ("n", "n/g"):
            with pytest.raises(FileExistsError):
                t.create_group(key)
        for key in (".x", "g/.x", ".g/x"):
            with pytest.raises(ValueError, match="dot"):
                t[key] = [1]
            with pytest.raises(ValueError, match="dot"):
                t.create_group(key)
    assert [e.key for e in caterva.open_tree("t.b2d").entries()] == ["/a", "/h", "/h/x", "/n"]


def test_what_was_discarded_is_nowhere() -> None:
    made()
    with caterva.open_tree("t.b2d", "r+") as t:
        for key in ("y", "new/y"):
            t.create_array(key, (3,)).discard()
            assert list(t) == ["empty", "g", "x"] and "y" not in t and "new" not in t
            with pytest.raises(KeyError):
                t[key]
            with pytest.raises(KeyError):
                del t[key]
        t.create_array("y", (3,)).close()
        assert list(t) == ["empty", "g", "x", "y"] and t["y"][:].tolist() == [0, 0, 0]
        t["y"].discard()
        assert "y" in t and "y" in list(t)


@pytest.mark.parametrize("end", ["w.close()", "w.discard()", "sys.exit(0)", "del w, y, g"])
def test_what_is_pending_is_the_parents(end: str) -> None:
    made()
    run_program(f"""
import caterva, os, sys
w = caterva.open_tree("t.b2d", "r+")
y, g = w["g/y"], w["g"]
y[0] = 9
w["new"] = [1]
g.attrs["late"] = 1
child = os.fork()
if child == 0:
    refused = 0
    for change in (w.commit, w.rollback, lambda: w.create_group("h"), lambda: w.move("x", "z"),
                   lambda: g.__delitem__("y"), lambda: g.attrs.update(no=1),
                   lambda: w.__setitem__("c", [1]), lambda: w.pack("no.b2z")):
        try:
            change()
        except BlockingIOError:
            refused += 1
    if refused != 8 or w["x"][0, 1] != 1: os._exit(refused + 1)
    {end}
    sys.exit(0)
assert (status := os.waitpid(child, 0)[1]) == 0, status
r = caterva.open_tree("t.b2d")
assert list(r) == ["empty", "g", "x"] and r["g/y"][0] == 1.5 and not r["g"].attrs
w.close()
r = caterva.open_tree("t.b2d")
assert list(r) == ["empty", "g", "new", "x"] and r["g/y"][0] == 9 and r["g"].attrs["late"] == 1
""")


def test_many_threads_use_a_tree() -> None:
    made()
    errors: list[Any] = []

    def use(n: int) -> None:
        try:
            for i in range(20):
                t[f"n{n}/a{i}"] = [n, i]
                assert t["x"][0, 1] == 1 and list(t[f"n{n}"])
        except BaseException as error:
            errors.append(error)

    with caterva.open_tree("t.b2d", "r+") as t:
        threads = [threading.Thread(target=use, args=(n,)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not errors
    t = caterva.open_tree("t.b2d")
    assert sum(1 for _ in t.arrays()) == 83 and t["n3/a19"][:].tolist() == [3, 19]


def test_what_python_blosc2_wrote() -> None:
    with blosc2.TreeStore("theirs.b2z", mode="w", threshold=0) as store:
        store["/model/temp"] = blosc2.asarray(np.arange(24, dtype="f4").reshape(2, 3, 4))
        temp = store["/model/temp"]
        temp.schunk.vlmeta["_ARRAY_DIMENSIONS"] = ["time", "lat", "lon"]
        store["/small"] = np.arange(3)
    t = caterva.open_tree("theirs.b2z")
    assert [key for key, _ in t.arrays()] == ["/model/temp", "/small"]
    assert t["model/temp"][1, 2, 3] == 23 and t["small"][:].tolist() == [0, 1, 2]


def test_nested_mappings_are_groups() -> None:
    with caterva.open_tree("t.b2d", "w") as t:
        t["old"] = [0]
        t["model"] = {"lat": [1.0, 2.0], "ocean": {"t": np.arange(3), "s": 5}, "empty": {}}
        t["model/lon"] = [7]
        t["model"] = {"lat": [3]}
    t = caterva.open_tree("t.b2d", "r+")
    assert sorted(t["model"]) == ["empty", "lat", "lon", "ocean"] and len(t["model/empty"]) == 0
    assert t["model/lat"].tolist() == [3] and t["model/ocean/s"].tolist() == 5
    t["copy"] = t["model"]  # a group is a mapping
    t["model/inside"] = t["model"]
    assert t["copy/ocean/t"].tolist() == t["model/inside/ocean/t"].tolist() == [0, 1, 2]
    assert "inside" not in t["model/inside"]
    for wrong in ({3: [1]}, {"a/b": [1]}, {"": [1]}, {"a": [1], "b": {"c": None}}):
        with pytest.raises(TypeError):
            t["wrong"] = wrong
        assert "wrong" not in t
    with pytest.raises(FileExistsError):
        t["old"] = {"a": [1]}
    t.discard()
    # Empty groups are created immediately.
    assert list(caterva.open_tree("t.b2d")) == ["copy", "model", "old"]


def test_the_empty_name_is_none() -> None:
    t = caterva.open_tree("t.b2d", "w")
    t["g/x"] = [1]
    for name, what in (("", "not empty"), ("/", "tree itself")):
        for act in (
            lambda name: t.__setitem__(name, [1]),
            t.__delitem__,
            t.create_group,
            lambda name: t.create_array(name, 3),
            lambda name: t.move("g", name),
        ):
            with pytest.raises(ValueError, match=what):
                act(name)
    with pytest.raises(ValueError, match="not empty"):
        t[""]
    assert "" not in t and t["/"] is t and t["g"]["/"] is t


def test_many_arrays_need_few_descriptors() -> None:
    resource = pytest.importorskip("resource")
    n, limits = 600, resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, limits[1]))
    try:
        with caterva.open_tree("t.b2d", "w", durability="none") as t:
            for i in range(n):
                t[f"g/x{i}"] = np.arange(4) + i
            t.commit()
            for i in range(n):
                t[f"g/x{i}"][0] = -i
            with pytest.raises(BlockingIOError):
                caterva.open("t.b2d/g/x0.b2nd", "r+")
        with caterva.open_tree("t.b2d") as t:
            assert len(t["g"]) == n
            assert all(t[f"g/x{i}"][:2].tolist() == [-i, i + 1] for i in range(n))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


def test_arrays_beside_a_process_that_removes_them() -> None:
    with caterva.open_tree("removed.b2d", "w") as t:
        for name in ("a", "b", "c"):
            t[name] = [1, 2]
    arrays = caterva.open_tree("removed.b2d").arrays()
    assert next(arrays)[0] == "/a"
    os.remove("removed.b2d/b.b2nd")
    assert [key for key, _ in arrays] == ["/c"]


def test_one_key_is_no_list(monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls about one key do not list the whole tree."""
    with caterva.open_tree("named.b2d", "w") as t:
        t["g/a"] = [1]
        t.commit()
        t["g"].attrs["n"] = 1

        def refuse(*_: object) -> None:
            raise AssertionError("listed")

        monkeypatch.setattr(caterva.Tree, "_listed", refuse)
        monkeypatch.setattr(caterva.Tree, "_has_group", refuse)
        assert "g" in t and "none" not in t and "g/none" not in t
        assert t["g"] == t.require_group("g")
        assert t.require_group("new") == t["new"]
        t.move("g/a", "g/b")
        del t["g/b"]
        assert "g/b" not in t


def test_del_of_new_arrays() -> None:
    with caterva.open_tree("t.b2d", "x") as t:
        t["x"] = np.arange(3)
        t["g/a"] = np.arange(3)
        del t["x"], t["g"]
        assert "x" not in t
        assert "g" not in t
        with pytest.raises(KeyError):
            del t["x"]

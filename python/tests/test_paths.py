"""Paths, in every form that Python's open takes, and the OSErrors that name them."""

from __future__ import annotations

import copy
import errno
import os
import pickle
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import caterva
import numpy as np
import pytest
from support import WINDOWS, in_child, needs_program, no_bytes, run_program, status_of

RAW_NAMES = ["\u00e9".encode()] if WINDOWS else ["\u00e9".encode(), b"\xff\xe9"]


class _Bytes:
    """An os.PathLike[bytes]."""

    def __init__(self, path: bytes) -> None:
        self.path = path

    def __fspath__(self) -> bytes:
        return self.path


def _takers() -> dict[str, Callable[[Any], Any]]:
    """Every public function that takes a path, called for a file with items 0, 1, 2."""
    return {
        "open": lambda p: caterva.open(p)[:],
        "open r+": lambda p: caterva.open(p, "r+").close(),
        "open a": lambda p: caterva.open(p, "a").close(),
        "open w": lambda p: caterva.open(p, "w", shape=3, dtype="i8").close(),
        "load": caterva.load,
        "create": lambda p: caterva.create(3, "i8", p, overwrite=True).close(),
        "zeros": lambda p: caterva.zeros(3, "i8", p, overwrite=True).close(),
        "full": lambda p: caterva.full(3, 1, path=p, overwrite=True).close(),
        "empty": lambda p: caterva.empty(3, "i8", p, overwrite=True).close(),
        "asarray": lambda p: caterva.asarray([0, 1, 2], p, overwrite=True).close(),
        "save": lambda p: caterva.save(p, [0, 1, 2], overwrite=True),
        "copy": lambda p: caterva.copy(caterva.zeros(3), p, overwrite=True).close(),
        "Array.copy": lambda p: caterva.zeros(3).copy(p, overwrite=True).close(),
        "View.copy": lambda p: caterva.zeros(3).view[:].copy(p, overwrite=True).close(),
        "compact": caterva.compact,
        "seal": caterva.seal,
        "repair": caterva.repair,
        "repair to": lambda p: caterva.repair("sound.b2nd", p, overwrite=True),
        "tune": lambda p: caterva.tune(p, [np.s_[0]], seconds=0.01),
        "image": lambda p: caterva.zeros((4, 4)).view_image().save(p),
        "remove": caterva.delete,
    }


_NAMES = [
    pytest.param(name, marks=needs_program) if name == "tune" else name for name in _takers()
]


@pytest.mark.parametrize("name", _NAMES)
def test_a_path_may_be_bytes_or_no_text(name: str) -> None:
    take = _takers()[name]
    caterva.save("sound.b2nd", [0, 1, 2])
    for raw in (b"plain.b2nd", *(name + b".b2nd" for name in RAW_NAMES)):
        for path in (raw, _Bytes(raw), os.fsdecode(raw), Path(os.fsdecode(raw))):
            caterva.save(raw, [0, 1, 2], overwrite=True)
            take(path)
            assert set(os.listdir(b".")) - {b"sound.b2nd"} <= {raw}
            if os.path.exists(raw):
                os.remove(raw)


@pytest.mark.parametrize("name", _NAMES)
def test_a_nul_in_a_path_is_refused(name: str) -> None:
    caterva.save("sound.b2nd", [0, 1, 2])
    caterva.save("precious", [1, 2, 3])
    before = Path("precious").read_bytes()
    for path in (
        "precious\0.new",
        b"precious\0.new",
        _Bytes(b"precious\0"),
        Path("precious\0"),
    ):
        with pytest.raises(ValueError, match=r"null (byte|character)"):
            _takers()[name](path)
    assert sorted(os.listdir()) == ["precious", "sound.b2nd"]
    assert Path("precious").read_bytes() == before


@pytest.mark.parametrize("name", [name for name in _NAMES if name != "image"])
def test_no_path_is_refused(name: str) -> None:
    with pytest.raises(TypeError, match=r"str, bytes or os\.PathLike object, not int"):
        _takers()[name](5)
    with pytest.raises(FileNotFoundError, match="empty") as caught:
        _takers()[name]("")
    assert caught.value.errno == errno.ENOENT


def test_paths_of_trees() -> None:
    for raw in RAW_NAMES:
        for form in (lambda p: p, _Bytes, os.fsdecode, lambda p: Path(os.fsdecode(p))):
            with caterva.open_tree(form(raw + b".b2d"), "w") as tree:
                tree["x"] = [1, 2]
            with caterva.open_tree(form(raw + b".b2d")) as tree:
                tree.pack(form(raw + b".b2z"), overwrite=True)
                tree.unpack(form(raw + b"2.b2d"))
            for name in (b".b2d", b".b2z", b"2.b2d"):
                assert caterva.open(form(raw + name + b"::/x"))[:].tolist() == [1, 2]
            for name in (b".b2d", b"2.b2d"):
                shutil.rmtree(raw + name)
            os.remove(raw + b".b2z")
    with caterva.open_tree("t.b2d", "w") as tree:
        tree["x"] = [1, 2]
        for act in (caterva.open_tree, tree.pack, tree.unpack):
            with pytest.raises(ValueError, match="null byte"):
                act("t.b2d\0.new")
        tree.commit()
        with pytest.raises(FileExistsError) as caught:
            tree.unpack("t.b2d")
        assert caught.value.filename == os.path.abspath("t.b2d")
    with pytest.raises(FileNotFoundError) as caught:
        caterva.open_tree("nowhere.b2d")
    assert caught.value.filename == os.path.abspath("nowhere.b2d")


@no_bytes
def test_an_array_at_a_path_that_is_no_text() -> None:
    raw = b"\xff.b2nd"
    caterva.save(raw, np.arange(6))
    (name,) = os.listdir()
    a = caterva.open(name)
    assert a.path == os.path.abspath(name) and os.fsencode(str(a.path)).endswith(raw)
    for text in (repr(a), repr(a.info), a._repr_html_()):
        text.encode()  # the displayed path can be printed
    assert "\\xff.b2nd" in repr(a.info)
    assert np.array_equal(pickle.loads(pickle.dumps(a))[:], np.arange(6))
    w = caterva.open(raw, "r+")
    w[0] = 7
    w.commit()
    w.compact()
    w.seal()
    w.close()
    a.refresh()
    assert a[0] == 7
    assert status_of(in_child(lambda: print(a[1]))) == 0
    with pytest.raises(FileExistsError, match=r"\\xff\.b2nd"):
        caterva.save(raw, [1])


def test_long_names_in_messages_are_text() -> None:
    for n in range(100, 127):
        with pytest.raises(FileNotFoundError) as caught:
            caterva.open("x" + "\u00e9" * n)
        str(caught.value).encode()


# ---- Attributes of OSErrors -------------------------------------------------------------


def _errors() -> list[tuple[Callable[[], Any], type[OSError], int, str | None]]:
    held = caterva.open("x", "r+")
    Path("junk").write_bytes(b"no array" * 100)
    return [
        (lambda: caterva.open("nowhere"), FileNotFoundError, errno.ENOENT, "nowhere"),
        (lambda: caterva.delete("nowhere"), FileNotFoundError, errno.ENOENT, "nowhere"),
        (lambda: caterva.compact("nowhere"), FileNotFoundError, errno.ENOENT, "nowhere"),
        (lambda: caterva.seal("nowhere"), FileNotFoundError, errno.ENOENT, "nowhere"),
        (lambda: caterva.repair("nowhere"), FileNotFoundError, errno.ENOENT, "nowhere"),
        (lambda: caterva.save("no/x", [1]), FileNotFoundError, errno.ENOENT, "no/x"),
        (lambda: caterva.save("x/y", [1]), NotADirectoryError, errno.ENOTDIR, "x/y"),
        (lambda: caterva.open("x", "x", shape=1), FileExistsError, errno.EEXIST, "x"),
        (lambda: caterva.open("x").copy("x"), FileExistsError, errno.EEXIST, "x"),
        (lambda: caterva.open("x").T.copy("x"), FileExistsError, errno.EEXIST, "x"),
        (lambda: caterva.open("x", "r+"), BlockingIOError, errno.EAGAIN, "x"),
        (
            lambda: held is not None and caterva.open("n" * 300),
            OSError,
            errno.ENAMETOOLONG,
            "n" * 300,
        ),
        (lambda: caterva.open("junk"), caterva.CorruptError, errno.EBADMSG, "junk"),
        (lambda: caterva.from_bytes(b"x" * 500), caterva.CorruptError, errno.EBADMSG, None),
    ]


@pytest.mark.parametrize("i", range(14))
def test_oserrors_carry_errno_and_filename(i: int) -> None:
    if WINDOWS and i == 11:
        pytest.skip("a name that is too long does not exist on Windows")
    caterva.save("x", [1])
    errors = _errors()  # with the array that is open for writing
    act, kind, number, name = errors[i]
    with pytest.raises(kind) as caught:
        act()
    error = caught.value
    assert isinstance(error, caterva.Error)
    message = str(error)
    assert error.errno == number and error.strerror == os.strerror(number)
    assert error.filename == (None if name is None else os.path.abspath(name))
    for again in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert type(again) is type(error) and str(again) == message
        assert (again.errno, again.filename, again.code) == (number, error.filename, error.code)


def _job_that_is_over() -> None:
    with caterva.zeros(3, path="j", overwrite=True) as a:
        job = a.job()
        job.delete()
        _ = caterva.Job(job.path, job._content).folder


def _save_again() -> None:
    data = pytest.importorskip("xarray").Dataset({"v": ("t", [1.0])})
    caterva_xarray = pytest.importorskip("caterva.xarray")
    for mode in ("w", "x"):
        caterva_xarray.to_caterva(data, "x.b2d", mode=mode)


def _save_into_nothing() -> None:
    data = pytest.importorskip("xarray").Dataset({"v": ("t", [1.0])})
    pytest.importorskip("caterva.xarray").to_caterva(data, "no.b2d", mode="r+")


def _store_into_nothing() -> None:
    x = pytest.importorskip("dask.array").zeros(3)
    pytest.importorskip("caterva.dask").store(x, "no", region=np.s_[:3])


@pytest.mark.parametrize(
    ("act", "kind", "name"),
    [
        (_job_that_is_over, FileNotFoundError, "j"),
        (_save_again, FileExistsError, "x.b2d"),
        (_save_into_nothing, FileNotFoundError, "no.b2d"),
        (_store_into_nothing, FileNotFoundError, "no"),
    ],
)
def test_what_the_package_refuses_itself_has_errno_and_filename(
    act: Callable[[], None], kind: type[OSError], name: str
) -> None:
    with pytest.raises(kind) as caught:
        act()
    error = caught.value
    assert isinstance(error, caterva.Error) and error.code != caterva.Status.EINVAL
    assert type(OSError(error.errno, "")) is kind and error.strerror
    assert error.filename == os.path.abspath(name)


def test_a_damaged_source_is_named_and_not_the_copy() -> None:
    random = np.random.default_rng(1).random(4000)
    caterva.save("bad", random, chunks=1000)
    raw = bytearray(Path("bad").read_bytes())
    raw[caterva.open("bad").chunk(2).position + 4000] ^= 255
    Path("bad").write_bytes(raw)
    for act in (
        lambda a: a.copy("new", codec="lz4"),
        lambda a: a.view[1:].copy("new"),
        lambda a: a[:],
        lambda a: a.read_async().result(),
    ):
        with pytest.raises(caterva.CorruptError) as caught:
            act(caterva.open("bad"))
        assert caught.value.filename == os.path.abspath("bad")


_DENIED = """
import os, sys, caterva
if os.getuid() == 0: os.setuid(65534)
for act in (
    lambda: caterva.open("f"),
    lambda: caterva.open("f", "r+"),
    lambda: caterva.open("f", "a"),
    lambda: caterva.save("g", [1]),
):
    try:
        act()
    except PermissionError as error:
        assert isinstance(error, caterva.StoreError) and error.errno == 13, error
        assert "mode" not in str(error) and error.filename, error
    else:
        sys.exit("nothing was denied")
"""


@pytest.mark.skipif(WINDOWS, reason="Windows has no modes of files")
def test_what_is_denied_is_a_permission_error() -> None:
    with tempfile.TemporaryDirectory() as folder:
        caterva.save(os.path.join(folder, "f"), [1, 2, 3])
        os.chmod(os.path.join(folder, "f"), 0)
        os.chmod(folder, 0o555)
        command = [sys.executable, "-c", _DENIED]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
        os.chmod(folder, 0o755)
    assert done.returncode == 0, done.stderr


# ---- Parents behind symbolic links -----------------------------------------------------------


@pytest.fixture
def linked(empty_folder: Path) -> str:
    """``link/..`` is the folder ``there``; here are other files of the same names."""
    if WINDOWS:
        pytest.skip("Windows resolves .. by name")
    os.makedirs("there/inside")
    os.symlink("there/inside", "link")
    caterva.save("a.b2nd", [9, 9])
    caterva.save("there/a.b2nd", [1, 2])
    for folder, items in ((".", [9]), ("there", [1])):
        with caterva.open_tree(f"{folder}/t.b2d", "w") as tree:
            tree["x"] = items
    return "link/.."


def test_the_parent_behind_a_link_is_that_of_its_target(linked: str) -> None:
    a = caterva.open(f"{linked}/a.b2nd")
    assert a.path == os.path.join(os.getcwd(), "link/../a.b2nd") and a[:].tolist() == [1, 2]
    caterva.save(f"{linked}/new.b2nd", [5])
    caterva.copy(a, Path(linked) / "copy.b2nd").close()
    caterva.compact(f"{linked}/new.b2nd")
    with caterva.open(f"{linked}/new.b2nd", "r+") as w:
        w[0] = 6
    assert caterva.load("there/new.b2nd").tolist() == [6]
    assert caterva.load("there/copy.b2nd").tolist() == [1, 2]
    caterva.save(f"{linked}/a.b2nd", [3], overwrite=True)
    assert caterva.load("there/a.b2nd").tolist() == [3]
    caterva.delete(f"{linked}/a.b2nd")
    assert not os.path.exists("there/a.b2nd") and caterva.load("a.b2nd").tolist() == [9, 9]


def test_trees_behind_a_link(linked: str) -> None:
    with caterva.open_tree(f"{linked}/t.b2d", "r+") as tree:
        assert tree["x"][:].tolist() == [1]
        tree["y"] = [2]
        tree.commit()
        tree.pack(f"{linked}/t.b2z")
    assert caterva.open(f"{linked}/t.b2d::/y")[:].tolist() == [2]
    assert caterva.open(f"{linked}/t.b2z::/y")[:].tolist() == [2]
    assert list(caterva.open_tree("t.b2d")) == ["x"] and not os.path.exists("t.b2z")


def test_jobs_behind_a_link(linked: str) -> None:
    with caterva.open(f"{linked}/a.b2nd", "r+") as a:
        job = pickle.loads(pickle.dumps(a.job()))
        with job.part() as part:
            part[:] = 7
        (found,) = caterva.jobs(f"{linked}/a.b2nd")
        assert found.job.folder == job.folder and os.listdir("there/a.b2nd.parts")
        assert caterva.jobs("a.b2nd") == []
        a.merge(part.token)
    assert caterva.load("there/a.b2nd").tolist() == [7, 7]


def test_pickles_of_what_is_behind_a_link(linked: str) -> None:
    tree = caterva.open_tree(f"{linked}/t.b2d")
    stored = pickle.dumps([caterva.open(f"{linked}/a.b2nd"), tree["x"], tree])
    os.makedirs("elsewhere")
    os.chdir("elsewhere")
    a, x, again = pickle.loads(stored)
    assert a[:].tolist() == [1, 2] and x[:].tolist() == again["x"][:].tolist() == [1]


FIFO = """
import caterva
for mode in ("r", "r+", "a"):
    try: caterva.open("pipe.b2nd", mode, **({"shape": 3} if mode == "a" else {}))
    except OSError as error: assert "is not a regular file" in str(error), error
    else: raise AssertionError(mode)
for make in (lambda: caterva.open("pipe.b2nd", "w", shape=3),
             lambda: caterva.save("pipe.b2nd", [1], overwrite=True),
             lambda: caterva.open_tree("pipe.b2nd"), lambda: caterva.open("pipe.b2nd::/x"),
             lambda: caterva.delete("pipe.b2nd"), lambda: caterva.repair("pipe.b2nd")):
    try: make()
    except OSError as error: assert "is not a regular file" in str(error), error
    else: raise AssertionError
caterva.jobs("pipe.b2nd")
"""


@pytest.mark.skipif(WINDOWS, reason="Windows has no named pipes in folders")
def test_a_pipe_is_refused_at_once() -> None:
    """Opening a FIFO would wait for a writer."""
    os.mkfifo("pipe.b2nd")
    run_program(FIFO)


@pytest.mark.parametrize("suffix", [".npy", ".NPZ", ".csv", ".b2d", ".b2z", ".b2e"])
def test_an_array_cannot_have_the_suffix_of_another_format(suffix: str) -> None:
    name = "other" + suffix
    for create in (
        lambda: caterva.save(name, [1, 2], overwrite=True),
        lambda: caterva.copy(caterva.zeros(3), name),
        lambda: caterva.open(name, "w", shape=3),
    ):
        with pytest.raises(caterva.InvalidError, match=r"suffix of another format.*\.b2nd"):
            create()
    assert not os.path.exists(name)
    caterva.save("other.h5", [1])
    os.remove("other.h5")


def test_a_numpy_file_names_the_command_that_converts_it() -> None:
    np.save("n.npy", np.arange(3))
    with pytest.raises(caterva.CorruptError, match=r"caterva convert .*n\.npy OUT\.b2nd") as e:
        caterva.open("n.npy")
    assert e.value.errno == errno.EBADMSG

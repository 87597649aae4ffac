"""Files of other formats: by the program, and by packages whose own reading is the judge."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import caterva
import numpy as np
import pytest
from caterva import _program
from support import PATIENCE, needs_plugins, needs_program

pytestmark = needs_program
RNG = np.random.default_rng(7)


def convert(source: Any, target: str, **options: Any) -> Any:
    """Convert with a check of every item, and open the result."""
    caterva.convert(source, target, overwrite=True, verify=True, **options)
    return caterva.open(target)


def left() -> list[str]:
    """Hidden files and unfinished targets in the folder."""
    return [n for n in os.listdir() if n.startswith(".") or ".partial" in n or ".tmp" in n]


# ---- By the program -------------------------------------------------------------------------


def test_arrays_trees_and_files_go_both_ways() -> None:
    np.savez("two.npz", t=np.arange(12.0).reshape(3, 4), n=np.arange(5))
    tree = convert("two.npz", "two.b2z")
    assert sorted(tree) == ["n", "t"] and tree["t"][1].tolist() == [4, 5, 6, 7]
    caterva.to_npz(tree, "back.npz")
    with np.load("back.npz") as back:
        assert back["n"].tolist() == [0, 1, 2, 3, 4]
    assert convert("two.npz::/n", "n.b2nd")[2:].tolist() == [2, 3, 4]
    caterva.convert("two.b2z::/t", "t.npy")
    assert np.load("t.npy").shape == (3, 4)


def test_sources_are_arrays_views_and_items_in_memory() -> None:
    items = RNG.random((6, 7))
    a = caterva.asarray(items)
    b = caterva.asarray(items, "b.b2nd")
    b[0] = 0
    for n, (source, want) in enumerate(
        ((a, items), (a.view[::2], items[::2]), (items, items), (b, b[:]))
    ):
        caterva.convert(source, f"{n}.npy")
        assert np.array_equal(np.load(f"{n}.npy"), want)
    b.discard()


def test_options_of_new_arrays_and_their_errors() -> None:
    np.save("x.npy", np.arange(1000, dtype="i4").reshape(20, 50))
    words: dict[str, Any] = {"chunks": (10, 50), "blocks": (5, 50), "codec": "lz4", "level": 3}
    a = convert("x.npy", "x.b2nd", filters=["bitshuffle"], dtype="f8", threads=1, **words)
    info = a.info
    assert (a.chunks, a.blocks, info.codec, info.filters) == (
        (10, 50),
        (5, 50),
        "lz4",
        ("bitshuffle",),
    )
    assert a.dtype == np.float64
    for wrong, kind in (
        ({"codec": "nothing"}, ValueError),
        ({"chunks": (1,)}, ValueError),
        ({"chunks": 5}, TypeError),
        ({"threads": -1}, ValueError),
        ({"level": 99}, ValueError),
        ({"nonsense": 1}, TypeError),
        ({"strict": "yes"}, TypeError),
        ({"engine": "magic"}, ValueError),
        ({"memory": 1.5}, TypeError),
    ):
        with pytest.raises(kind):
            caterva.convert("x.npy", "y.b2nd", **wrong)
    assert not os.path.exists("y.b2nd") and left() == []


def test_messages_name_what_python_has() -> None:
    x = np.arange(3.0)
    for call, message in (
        (lambda: caterva.convert(x, "x.foo"), r"from the name \S*x\.foo$"),
        (lambda: caterva.convert(x, "x.b2nd", dtype="i2"), r"^(?!.*casting unsafe)"),
        (lambda: caterva.convert(x, "x.b2nd", memory=-1), "memory is a number of bytes"),
        (lambda: caterva.to_nifti(x, "v.tif"), r"v\.tif has the name of a file of TIFF, not"),
        (lambda: caterva.to_npz(x, "v.b2nd"), r"v\.b2nd has the name of a file of Caterva"),
    ):
        with pytest.raises((ValueError, TypeError), match=message):
            call()
    np.savez("two.npz", a=x, b=x)
    with pytest.raises(ValueError, match=r"^dtype, chunks and blocks require an output"):
        caterva.convert("two.npz", "two.b2z", dtype="f4")
    with pytest.raises(OSError, match="nodir") as caught:
        caterva.convert("two.npz", "nodir/x.b2z")
    assert str(caught.value.filename).endswith(os.path.join("nodir", "x.b2z"))
    named = caterva.asarray(x, dims=["t"], path="named.b2nd")
    named.close()
    with pytest.raises(NotImplementedError, match=r"strict: .*: .*names of its axes"):
        caterva.convert("named.b2nd", "named.npz", strict=True)


def test_failures_are_pythons_exceptions() -> None:
    caterva.save("there.b2nd", [1])
    np.savez("two.npz", a=[1], b=[2])
    Path("text").write_text("hello there " * 50)
    Path("bad.nii").write_bytes(b"\0" * 344 + b"n+1\0" + b"\0" * 10)
    for source, target, kind in (
        ("none.h5", "o.b2z", FileNotFoundError),
        ("two.npz::/c", "o.b2nd", FileNotFoundError),
        ("two.npz", "there.b2nd", FileExistsError),
        ("two.npz", "o.b2nd", ValueError),
        ("text", "o.b2nd", ValueError),
        ("bad.nii", "o.b2nd", caterva.CorruptError),
        ("two.npz", "s3://bucket/o.b2z", NotImplementedError),
        ("two.npz", "none/o.b2z", FileNotFoundError),
        ("two.npz", "no_suffix", ValueError),
        ("two.npz::a", "o.b2nd", FileNotFoundError),
        ("two.npz", "two.npz", FileExistsError),
    ):
        with pytest.raises(kind) as caught:
            caterva.convert(source, target)
        assert isinstance(caught.value, caterva.Error)
    assert caterva.load("there.b2nd").tolist() == [1] and left() == []


@pytest.mark.skipif(os.geteuid() == 0 if hasattr(os, "geteuid") else True, reason="root may")
def test_a_folder_without_access_is_a_permission_error() -> None:
    os.mkdir("locked", 0o500)
    np.savez("two.npz", a=[1], b=[2])
    with pytest.raises(PermissionError):
        caterva.convert("two.npz", "locked/o.b2z")


no_progress = pytest.mark.skipif(
    sys.platform == "win32", reason="the program reports no progress to Python on Windows"
)


def test_from_and_to_check_the_format() -> None:
    np.savez("a.npz", x=[1, 2])
    with pytest.raises(ValueError, match="is a file of npz, not of TIFF"):
        caterva.from_tiff("a.npz", "o.b2nd")
    caterva.to_npz(np.arange(3), "named.anything")
    assert np.load("named.anything")["data"].tolist() == [0, 1, 2]


@no_progress
def test_progress_counts_bytes_and_stops() -> None:
    np.save("x.npy", RNG.random((4000, 1000)))
    slow: dict[str, Any] = {"level": 9, "threads": 1, "memory": 1 << 20}
    heard: list[tuple[int, int]] = []
    caterva.convert("x.npy", "x.b2nd", progress=lambda *n: heard.append(n))
    assert heard[-1] == (32_000_000, 32_000_000)
    assert heard == sorted(heard)
    with pytest.raises(caterva.StoppedError):
        caterva.convert("x.npy", "y.b2nd", progress=lambda done, total: True, **slow)

    def fail(done: int, total: int) -> None:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        caterva.convert("x.npy", "y.b2nd", progress=fail, **slow)
    assert not os.path.exists("y.b2nd") and left() == []
    np.savez("many.npz", **{f"x{n}": RNG.random((400, 1000)) for n in range(8)})
    heard.clear()
    caterva.convert("many.npz", "many.b2z", progress=lambda *n: heard.append(n))
    assert heard == sorted(heard) and heard[-1][0] == heard[-1][1] >= 8 * 3_200_000
    assert all(done < total for done, total in heard[:-1])


def test_opening_a_file_of_another_format_says_what_to_do() -> None:
    np.savez("a.npz", x=[1])
    caterva.to_nifti(np.zeros((2, 2), "i2"), "a.nii")
    with pytest.raises(caterva.CorruptError, match=r"caterva\.convert\('.*a\.nii', OUT\)"):
        caterva.open("a.nii")


def test_threads_convert_at_the_same_time() -> None:
    np.savez("x.npz", x=np.arange(1000.0))
    found: dict[int, Any] = {}

    def work(n: int) -> None:
        found[n] = caterva.from_npz("x.npz::/x", f"{n}.b2nd")[:].sum()

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert set(found.values()) == {499500.0} and len(found) == 4


SLOW = """
import sys, caterva
print("begin", flush=True)
caterva.convert("x.npy", "x.b2nd", codec="zstd", level=9, threads=1)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no process groups of POSIX")
@pytest.mark.parametrize("ending", ["SIGINT", "SIGKILL"])
def test_an_interrupted_or_killed_python_leaves_nothing(ending: str) -> None:
    np.save("x.npy", RNG.random((24000, 1000)))  # seconds of work
    python = subprocess.Popen(
        [sys.executable, "-c", SLOW], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert python.stdout is not None and python.stdout.readline() == "begin\n"
    deadline = time.monotonic() + PATIENCE
    while not left() and time.monotonic() < deadline:  # the program works on its output
        time.sleep(0.01)
    python.send_signal(getattr(signal, ending))
    _, err = python.communicate(timeout=PATIENCE)
    assert python.returncode != 0
    if ending == "SIGINT":
        assert "KeyboardInterrupt" in err
    while left() and time.monotonic() < deadline:  # a program without its parent stops itself
        time.sleep(0.05)
    assert left() == [] and not os.path.exists("x.b2nd")


@pytest.mark.skipif(sys.platform == "win32", reason="has no such signals")
@pytest.mark.parametrize("ending", ["SIGTERM", "SIGHUP"])
def test_a_signal_ends_the_command_that_a_package_reads_for(ending: str) -> None:
    fits = pytest.importorskip("astropy.io.fits")
    fits.PrimaryHDU(RNG.random((8000, 1000))).writeto("x.fits")
    command = [sys.executable, "-m", "caterva", "convert", "--codec", "zstd", "--level", "9"]
    process = subprocess.Popen([*command, "-T", "1", "x.fits", "x.b2z"])
    while not left():
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(getattr(signal, ending))
    assert process.wait(PATIENCE) == 128 + getattr(signal, ending)
    assert os.listdir() == ["x.fits"]


def test_a_missing_folder_of_the_target_is_reported_by_name() -> None:
    fits = pytest.importorskip("astropy.io.fits")
    fits.PrimaryHDU(RNG.random((8, 10))).writeto("x.fits")
    with pytest.raises(caterva.NotFoundError, match=r"no/x\.npz") as caught:
        caterva.convert("x.fits", "no/x.npz")
    assert (
        caught.value.filename == os.path.abspath("no/x.npz")
        and caught.value.errno == errno.ENOENT
    )


@pytest.mark.skipif(sys.platform == "win32", reason="Ctrl-C reaches the program itself")
def test_an_interruption_at_any_line_stops_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    np.save("x.npy", RNG.random((400, 1000)))
    words = ["convert", "--codec", "zstd", "--level", "9", "--threads", "1", "x.npy", "x.b2nd"]
    programs: list[subprocess.Popen[Any]] = []

    class Program(subprocess.Popen):  # type: ignore[type-arg]
        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **options)
            programs.append(self)

    monkeypatch.setattr(subprocess, "Popen", Program)
    n_stopped = 0

    def is_traced(code: Any) -> bool:
        files = _program.__file__, subprocess.__file__
        return code.co_filename in files and code.co_name != "__del__"

    def interrupted_at(line: int) -> bool:
        nonlocal n_stopped
        seen = followed = 0

        def trace(frame: Any, event: str, _: Any) -> Any:
            nonlocal seen, followed
            if event == "line" and frame.f_code.co_name == "_follow":  # once for each report
                followed += 1
                if followed > 8:
                    return trace
            seen += event == "line" and is_traced(frame.f_code)
            if seen == line and event == "line":
                raise KeyboardInterrupt
            return trace if is_traced(frame.f_code) else None

        programs.clear()
        Path("x.b2nd").unlink(missing_ok=True)
        previous = sys.gettrace()
        sys.settrace(trace)
        try:
            _program.run(words, "x.npy")
        except KeyboardInterrupt:
            return True
        finally:
            sys.settrace(previous)
            with pytest.raises(ChildProcessError):  # each child has ended and was waited for
                os.waitpid(-1, os.WNOHANG)
            for program in programs:
                status = program.returncode
                assert os.path.exists("x.b2nd") == (status == 0), line
                n_stopped += status != 0
            assert left() == []
        return False

    line = 1
    while interrupted_at(line):
        line += 1
    assert n_stopped > 2 and line > 30
    assert np.array_equal(caterva.load("x.b2nd"), np.load("x.npy"))


@no_progress
def test_resume_goes_on() -> None:
    np.save("x.npy", RNG.random((6000, 1000)))
    calls = 0

    def stop(done: int, total: int) -> bool:
        nonlocal calls
        calls += 1
        return calls > 1

    options: dict[str, Any] = {"level": 9, "threads": 1, "resume": True, "memory": 16 << 20}
    with pytest.raises(caterva.StoppedError):
        caterva.convert("x.npy", "x.b2nd", progress=stop, **options)
    assert left() == ["x.b2nd.partial.b2nd"] and not os.path.exists("x.b2nd")
    with pytest.raises(OSError, match="with other options"):
        caterva.convert("x.npy", "x.b2nd", **{**options, "level": 1})
    caterva.convert("x.npy", "x.b2nd", **options)
    assert left() == [] and np.array_equal(caterva.load("x.b2nd"), np.load("x.npy"))


# ---- HDF5 and NetCDF ------------------------------------------------------------------------


def write_hdf5(path: str) -> None:
    h5py = pytest.importorskip("h5py")
    with h5py.File(path, "w") as file:
        file.attrs["title"] = "grün"
        file.attrs["n"] = np.int16(3)
        file.attrs["list"] = np.arange(3.0)
        file.attrs["texts"] = ["a", "bc"]
        file["x"] = np.arange(4.0)
        file["x"].make_scale("x")
        t = file.create_dataset("g/t", (6, 4), "i2", chunks=(2, 4), maxshape=(None, 4),
                                fillvalue=-1, compression="gzip")  # fmt: skip
        t[:3] = RNG.integers(0, 9, (3, 4))
        t.dims[1].attach_scale(file["x"])
        t.attrs["units"] = "K"
        file["g/b"] = np.array([True, False])
        file["g/c"] = np.array([1 + 2j, 3], "c8")
        file["g/s"] = np.array([b"ab", b"c"], "S2")
        file["g/v"] = np.array(["kurz", "länger", ""], dtype=h5py.string_dtype())
        ascii = h5py.string_dtype("ascii")
        file["g/ascii"] = np.array([b"ab", b"cde"], dtype=ascii)
        file["g/r"] = np.array([(1, 2.5)], [("a", "i4"), ("b", "f8")])
        file["g/big"] = np.arange(3, dtype=">f4")
        file.create_dataset("g/e", data=[0, 1], dtype=h5py.enum_dtype({"A": 0, "B": 1}, "i1"))
        file["g/scalar"] = 7
        file["g/null"] = h5py.Empty("f8")
        file["again"] = h5py.SoftLink("/x")


@needs_plugins
def test_h5py_reads_what_the_plugin_reads() -> None:
    write_hdf5("in.h5")
    with pytest.warns(caterva.LossWarning, match="/again"):
        convert("in.h5", "plugin.b2z", engine="program")
    with pytest.warns(caterva.LossWarning, match="/again"):
        convert("in.h5", "h5py.b2z", engine="h5py")
    from caterva.__main__ import find_program

    done = subprocess.run(
        [find_program(), "diff", "plugin.b2z", "h5py.b2z"], capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (0, ""), done.stdout + done.stderr


def test_warnings_are_about_the_caller() -> None:
    write_hdf5("in.h5")
    with pytest.warns(caterva.LossWarning) as caught:
        caterva.convert("in.h5", "a.b2z", engine="h5py")
        caterva.from_hdf5("in.h5", "b.b2z", engine="h5py")
    assert {each.filename for each in caught} == {__file__}


def test_h5py_leaves_out_members_by_name() -> None:
    """Each thing that the tree cannot hold is a sentence, and the rest is converted."""
    h5py = pytest.importorskip("h5py")
    with h5py.File("in.h5", "w") as file:
        file["x"] = np.arange(3)
        file["x"].attrs["_caterva"] = "mine"
        file["x"].attrs["pair"] = np.array((1, 2.5), [("a", "i4"), ("b", "f8")])
        file["x"].attrs["colour"] = np.array(1, h5py.enum_dtype({"RED": 1}, "i1"))
        file["x"].attrs["here"] = file.ref
        file["x"].attrs["good"] = 1
        file["y"] = file["x"]
        file["tab\tname"] = 1
        file["ragged"] = np.array([np.arange(2), np.arange(3)], object).astype(
            h5py.vlen_dtype("i4")
        )
        file.create_dataset("fields", (2,), [("x", h5py.string_dtype()), ("y", "i4")])
        layout = h5py.VirtualLayout((3,), "i8")
        layout[:] = h5py.VirtualSource(file["x"])
        file.create_virtual_dataset("virtual", layout)
        file["pairs"] = np.zeros(4, np.dtype(("i2", (2,)))).reshape(2, 2, 2)
        file.create_dataset("inner", (2,), np.dtype(("i2", (3,))))
        file["cut"] = np.array([b"\xff", b"ok"], h5py.string_dtype())
        file.create_group("group").attrs["_dtype"] = 1.5
    with pytest.warns(caterva.LossWarning) as caught:
        tree = caterva.from_hdf5("in.h5", "out.b2z", engine="h5py", verify=True)
    assert sorted(tree) == ["cut", "group", "inner", "pairs", "x"]
    assert tree["inner"].shape == (2, 3) and tree["cut"][:].tolist() == [b"\xff", b"ok"]
    assert tree["x"].attrs.keys() == {"good", "colour"}
    lost = {str(each.message).split(": ")[0] for each in caught}
    assert lost == {"/x", "/y", r"/tab\x09name", "/ragged", "/fields", "/virtual", "/inner",
                    "/cut", "/group"}  # fmt: skip
    with pytest.raises(NotImplementedError, match=r"/ragged: .*; strict: 12 of such losses"):
        caterva.from_hdf5("in.h5", "strict.b2z", engine="h5py", strict=True)
    with pytest.raises(NotImplementedError, match="/ragged: a dataset of references or"):
        caterva.from_hdf5("in.h5::/ragged", "one.b2nd", engine="h5py")
    Path("cut.h5").write_bytes(Path("in.h5").read_bytes()[:3000])
    with pytest.raises(caterva.CorruptError, match=r"cut\.h5: .*truncated"):
        caterva.from_hdf5("cut.h5", "cut.b2z", engine="h5py")


@pytest.mark.parametrize("engine", ["h5py", pytest.param("program", marks=needs_plugins)])
def test_a_directory_is_replaced(engine: Any) -> None:
    h5py = pytest.importorskip("h5py")
    for n in range(2):
        with h5py.File("in.h5", "w") as file:
            file["x"] = n
            file[f"only{n}"] = n
        caterva.convert("in.h5", "out.b2d", overwrite=True, engine=engine)
        with caterva.open("out.b2d") as tree:
            assert sorted(tree) == [f"only{n}", "x"] and tree["x"][()] == n
    with pytest.raises(FileExistsError, match="overwrite=True"):
        caterva.convert("in.h5", "out.b2d", engine=engine)
    os.mkdir("mine.b2d")
    Path("mine.b2d/notes").write_text("kept")
    with pytest.raises(caterva.Error):
        caterva.convert("in.h5", "mine.b2d", overwrite=True, engine=engine)
    assert Path("mine.b2d/notes").read_text() == "kept" and not list(Path().glob(".*"))


@pytest.mark.parametrize("engine", ["h5py", pytest.param("program", marks=needs_plugins)])
def test_a_growing_dimension_of_a_coordinate_with_two_axes(engine: Any) -> None:
    h5py = pytest.importorskip("h5py")
    with h5py.File("in.nc", "w") as file:  # as libnetcdf writes it
        file.attrs["_NCProperties"] = "version=2,netcdf=4.9.0,hdf5=1.10.8"
        file.create_dataset("e", data=np.arange(6).reshape(2, 3), maxshape=(None, 3))
        file["e"].make_scale("e")
        file["e"].attrs["_Netcdf4Dimid"] = np.int32(0)
        file["e"].attrs["_Netcdf4Coordinates"] = np.array([0, 1], "i4")
        file["y"] = np.arange(3)
        file["y"].make_scale("y")
        file["y"].attrs["_Netcdf4Dimid"] = np.int32(1)
        file.create_dataset("v", data=[1.0, 2, 3], maxshape=(None,))
        file["v"].dims[0].attach_scale(file["e"])
    tree = caterva.from_netcdf("in.nc", "out.b2z", engine=engine)
    assert tree.attrs["_unlimited_dims"] == ["e"]
    assert tree["e"][:].tolist() == [[0, 1, 2], [3, 4, 5], [0, 0, 0]]
    assert tree["e"].dims == ("e", "y") and tree["v"].dims == ("e",)


def test_verify_of_arrays_without_axes() -> None:
    h5py = pytest.importorskip("h5py")
    with h5py.File("in.h5", "w") as file:
        for dtype in (">f4", ">i2", ">f8", "S4", "g"):
            file[dtype] = np.array(1, dtype)
    tree = caterva.from_hdf5("in.h5", "out.b2z", engine="h5py", verify=True)
    assert {name: array.dtype for name, array in tree.items()} == {
        name: np.dtype(name) for name in tree
    }
    assert tree[">f4"][()] == 1


@pytest.mark.parametrize("engine", ["h5py", pytest.param("program", marks=needs_plugins)])
def test_a_scale_elsewhere_never_means_another_one(engine: Any) -> None:
    h5py = pytest.importorskip("h5py")
    with h5py.File("in.h5", "w") as file:
        for group, length in (("coords", 3), ("data", 3), ("c", 4), ("e", 5)):
            file[f"{group}/t"] = np.arange(length) * 10.0
            file[f"{group}/t"].make_scale("t")
        for name, scale in (("data/near", "data"), ("data/far", "coords"), ("x/a", "coords"),
                            ("x/b", "c"), ("e/inner/v", "e")):  # fmt: skip
            file[name] = np.zeros(len(file[scale]["t"]))
            file[name].dims[0].attach_scale(file[scale]["t"])
            file[name].dims[0].label = "t" if name == "data/far" else ""
    with pytest.warns(caterva.LossWarning, match="elsewhere") as caught:
        tree = caterva.from_hdf5("in.h5", "out.b2z", engine=engine)
    lost = {str(each.message).split(" elsewhere: ")[1] for each in caught}
    assert len(caught) == 3 and lost == {"/coords/t", "/c/t"}
    dims = {n: tree[n].dims for n in ("data/near", "data/far", "x/a", "x/b", "e/inner/v")}
    assert list(dims.values()) == [("t",), (None,), ("t",), (None,), ("t",)]


def test_hdf5_without_the_plugin(monkeypatch: pytest.MonkeyPatch) -> None:
    write_hdf5("in.h5")
    os.mkdir("none")
    monkeypatch.setenv("CATERVA_PLUGINS", os.path.abspath("none"))
    tree = caterva.from_hdf5("in.h5::/g", "g.b2z", strict=True)
    assert tree["t"].dims == (None, "x") and tree["v"][1] == "länger"
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(NotImplementedError, match="pip install h5py"):
        caterva.from_hdf5("in.h5", "o.b2z")
    with pytest.raises(NotImplementedError, match="caterva-hdf5"):
        caterva.to_hdf5(np.arange(3), "o.h5")
    assert not os.path.exists("o.h5")


@needs_plugins
def test_netcdf_is_the_data_set_that_xarray_reads() -> None:
    xr = pytest.importorskip("xarray")
    pytest.importorskip("h5netcdf")
    ds = xr.Dataset(
        {"t": (("time", "x"), RNG.normal(280, 5, (5, 3)).round(2), {"units": "K"},
               {"dtype": "i2", "scale_factor": 0.01, "add_offset": 280.0, "_FillValue": -9})},
        {"time": np.datetime64("2020-01-01", "ns") + np.arange(5) * np.timedelta64(1, "h")},
        {"title": "run"},
    )  # fmt: skip
    ds.to_netcdf("in.nc", engine="h5netcdf", unlimited_dims=["time"])
    want = xr.open_dataset("in.nc", engine="h5netcdf").load()
    for engine in ("program", "h5py"):
        caterva.from_netcdf("in.nc", "out.b2z", overwrite=True, engine=engine)
        xr.testing.assert_identical(want, xr.open_dataset("out.b2z").load())
    caterva.to_netcdf("out.b2z", "back.nc")
    xr.testing.assert_identical(want, xr.open_dataset("back.nc", engine="h5netcdf").load())
    caterva.convert("in.nc", "out.zarr")
    xr.testing.assert_equal(want, xr.open_zarr("out.zarr").load())


# ---- Zarr -----------------------------------------------------------------------------------


def test_zarr_with_codecs_and_types_that_the_program_lacks() -> None:
    zarr = pytest.importorskip("zarr")
    root = zarr.open_group("z.zarr", mode="w")
    root.attrs["title"] = "all"
    a = root.create_array("g/a", shape=(10, 20), chunks=(4, 5), dtype="f4", fill_value=3,
                          dimension_names=["y", None])  # fmt: skip
    a[:5] = RNG.random((5, 20))
    root.create_array("words", shape=(3,), dtype=str)[...] = np.array(["a", "bcd", "é"], object)
    tree = convert("z.zarr", "z.b2z")
    assert dict(tree.attrs) == {"title": "all"}
    assert np.array_equal(tree["g/a"][:], a[...]) and tree["g/a"].dims == ("y", None)
    assert (
        tree["words"][:].tolist() == ["a", "bcd", "é"]
        and tree["words"].attrs["_vlen"] == "text"
    )
    old = zarr.create_array("d.zarr", shape=(100,), chunks=(30,), dtype="i4", zarr_format=2,
                            filters=[pytest.importorskip("numcodecs").Delta("i4")])  # fmt: skip
    old[...] = np.arange(100)
    assert convert("d.zarr", "d.b2nd")[:].tolist() == list(range(100))
    assert convert("d.zarr", "e.zarr")[3] == 3 and zarr.open_array("e.zarr")[99] == 99


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("names", [["y"], None, [], {"a": 1, "b": 2}, ["y", 1], "yx"])
def test_an_attribute_that_names_no_axes_of_zarr_is_a_loss(version: int, names: Any) -> None:
    zarr = pytest.importorskip("zarr")
    root = zarr.open_group("z.zarr", mode="w", zarr_format=version)
    root.create_array(
        "a", data=np.ones((2, 3)), attributes={"_ARRAY_DIMENSIONS": names, "b": 1}
    )
    with pytest.warns(caterva.LossWarning, match="/a: the attribute _ARRAY_DIMENSIONS"):
        tree = convert("z.zarr", "z.b2z")
    assert tree["a"].dims == (None, None) and tree["a"].attrs["b"] == 1
    assert np.array_equal(tree["a"][:], np.ones((2, 3)))


@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::UserWarning")
def test_items_that_zarr_cannot_read_are_left_out_by_name() -> None:
    zarr = pytest.importorskip("zarr")
    root = zarr.open_group("z.zarr", mode="w")
    root.create_array("words", shape=(1,), dtype=str)[...] = np.array(["é"], object)
    root.create_array("good", data=np.arange(3))
    void = root.create_array("void", shape=(4,), dtype="V7", chunks=(2,), shards=(4,))
    try:
        void[...]
        pytest.skip("zarr reads them")
    except TypeError:
        pass
    with pytest.warns(caterva.LossWarning, match="/void: its items: unhashable"):
        tree = caterva.from_zarr("z.zarr", "z.b2z")
    assert sorted(tree) == ["good", "words"]
    with pytest.raises(NotImplementedError, match="unhashable"):
        caterva.convert("z.zarr::/void", "v.b2nd", engine="zarr")


@pytest.mark.parametrize("version", [2, 3])
def test_stores_of_xarray_are_the_same_data_sets(version: int) -> None:
    xr = pytest.importorskip("xarray")
    pytest.importorskip("zarr")
    t = RNG.normal(280, 5, (5, 3)).round(2)
    t[0, 0] = np.nan
    coordinates = {
        "time": np.datetime64("2020-01-01", "ns") + np.arange(5) * np.timedelta64(1, "h")
    }
    packed = {"dtype": "i2", "scale_factor": 0.01, "add_offset": 280.0, "_FillValue": -9}
    ds = xr.Dataset(
        {
            "packed": (("time", "x"), t, {"units": "K"}, packed),
            "marked": (("time", "x"), t, {}, {"_FillValue": 1e20}),
            "single": (("time", "x"), t.astype("f4")),
            "n": ("x", np.arange(3)),
            "b": ("x", [True, False, True]),
        },
        coordinates,
        {"title": "run"},
    )
    ds.to_zarr("x.zarr", zarr_format=version)
    with xr.open_zarr("x.zarr") as opened:
        want = opened.load()
    for engine in ("program", "zarr"):
        caterva.convert("x.zarr", "x.b2z", overwrite=True, engine=engine)
        got = xr.open_dataset("x.b2z").load()
        xr.testing.assert_identical(want, got)
        for name in want.variables:
            a, b = (d[name].encoding.get("_FillValue") for d in (want, got))
            assert (a is None) == (b is None), name
            assert a is None or np.array_equal(a, b, equal_nan=True), name


def test_zarr_behind_a_url() -> None:
    zarr = pytest.importorskip("zarr")
    pytest.importorskip("fsspec")
    url = f"file://{os.path.abspath('u.zarr')}"
    zarr.create_array("u.zarr", shape=(5,), chunks=(2,), dtype="i2")[...] = np.arange(5)
    assert convert(url, "u.b2nd")[:].tolist() == [0, 1, 2, 3, 4]


# ---- Images and fields ----------------------------------------------------------------------


def test_ome_tiff_has_axes_sizes_and_levels() -> None:
    tifffile = pytest.importorskip("tifffile")
    pytest.importorskip("zarr")
    items = RNG.integers(0, 999, (3, 2, 64, 96), dtype="u2")
    sizes = {"PhysicalSizeX": 0.5, "PhysicalSizeY": 0.6, "PhysicalSizeZ": 2.0}
    tifffile.imwrite("a.ome.tif", items, tile=(32, 32), compression="zlib",
                     metadata={"axes": "ZCYX", **sizes})  # fmt: skip
    a = caterva.from_tiff("a.ome.tif", "a.b2nd", verify=True)
    assert np.array_equal(a[:], items) and a.dims == ("z", "c", "y", "x")
    np.testing.assert_array_equal(a.attrs["spacing"], [2, np.nan, 0.6, 0.5])
    assert a.attrs["axis_units"] == ["µm", "", "µm", "µm"] and "<OME" in a.attrs["description"]
    whole = Path("a.ome.tif").read_bytes()
    for size in (len(whole) // 2, len(whole) - 2000):
        Path("cut.ome.tif").write_bytes(whole[:size])
        with pytest.raises(caterva.CorruptError):
            caterva.from_tiff("cut.ome.tif", "cut.b2nd")
    for shape in ((1, 3, 8, 9), (2, 1, 8, 9)):
        tifffile.imwrite("one.tif", np.zeros(shape, "u2"), metadata={"axes": "TZYX"},
                         photometric="minisblack")  # fmt: skip
        one = caterva.from_tiff("one.tif", "one.b2nd", engine="tifffile", overwrite=True)
        assert one.shape == shape and one.dims == ("t", "z", "y", "x")
        one.close()
    tifffile.imwrite("b.ome.tif", items[:, 0], metadata={"axes": "ZYX"})
    whole = Path("b.ome.tif").read_bytes()
    Path("cut.ome.tif").write_bytes(whole[: len(whole) // 2])  # one page is left, and no OME
    with pytest.raises(caterva.CorruptError, match=r"cut\.ome\.tif ends early: "):
        caterva.from_tiff("cut.ome.tif", "cut.b2z")
    with tifffile.TiffWriter("p.ome.tif") as file:
        how: dict[str, Any] = {"tile": (32, 32), "photometric": "minisblack"}
        file.write(items[0], subifds=1, metadata={"axes": "CYX", **sizes}, **how)
        file.write(items[0, :, ::2, ::2], subfiletype=1, **how)
    tree = caterva.from_tiff("p.ome.tif", "p.b2z", verify=True)
    assert np.array_equal(tree["data_level1"][:], items[0, :, ::2, ::2])
    np.testing.assert_array_equal(tree["data_level1"].attrs["spacing"], [np.nan, 1.2, 1])


def test_fits_images_and_tables() -> None:
    fits = pytest.importorskip("astropy.io.fits")
    cube = fits.PrimaryHDU(RNG.integers(-9, 9, (2, 3, 4)).astype("i2"))
    cube.header.update({"CTYPE1": "RA---TAN", "CTYPE2": "DEC--TAN", "CTYPE3": "FREQ",
                        "CDELT1": -0.1, "CDELT2": 0.1, "CDELT3": 1e6, "CUNIT1": "deg",
                        "CUNIT2": "deg", "CUNIT3": "Hz", "BUNIT": "Jy"})  # fmt: skip
    cube.header["OBSERVER"] = "me", "who looked"
    cube.header["HISTORY"] = "made"
    scaled = fits.ImageHDU(RNG.random((5, 6)) * 100, name="SCALED")
    scaled.scale("int16", bscale=0.01, bzero=7)
    unsigned = fits.ImageHDU(np.arange(65530, 65536, dtype="u2"), name="U")
    signed = fits.ImageHDU(np.arange(-3, 3, dtype="i1"), name="I")
    tiles = fits.CompImageHDU(RNG.random((50, 60)).astype("f4"), name="T", quantize_level=0)
    columns = [
        fits.Column("a", "J", array=[1, 2, 3], unit="m"),
        fits.Column("name", "5A", array=["x", "yy", "z"]),
        fits.Column("u", "I", bzero=32768, array=np.array([1, 2, 65535], "u2")),
        fits.Column("v", "PJ()", array=np.array([[1], [1, 2], [3]], object)),
    ]
    table = fits.BinTableHDU.from_columns(columns, name="CAT")
    fits.HDUList([cube, scaled, unsigned, signed, tiles, table]).writeto("in.fits")
    with pytest.warns(caterva.LossWarning, match="/CAT/v: a column of any length"):
        tree = convert("in.fits", "in.b2z")
    with fits.open("in.fits") as hdus:
        for name in ("PRIMARY", "U", "I", "T"):
            assert np.array_equal(tree[name][:], hdus[name].data), name
            assert tree[name].dtype.newbyteorder("=") == hdus[name].data.dtype.newbyteorder("=")
        s = tree["SCALED"]
        assert s.dtype == ">i2"
        decoded = s[:] * s.attrs["scale_factor"] + s.attrs["add_offset"]
        np.testing.assert_allclose(decoded, hdus["SCALED"].data, rtol=1e-6)
        for name in ("a", "name", "u"):
            assert tree[f"CAT/{name}"][:].tolist() == hdus["CAT"].data[name].tolist()
    p = tree["PRIMARY"]
    assert p.dims == ("FREQ", "DEC", "RA") and p.attrs["units"] == "Jy"
    assert p.attrs["spacing"].tolist() == [1e6, 0.1, -0.1]
    assert p.attrs["axis_units"] == ["Hz", "deg", "deg"]
    assert p.attrs["fits"]["OBSERVER"] == "me" and p.attrs["fits"]["HISTORY"] == ["made"]
    assert p.attrs["fits_comments"]["OBSERVER"] == "who looked"
    with pytest.raises(NotImplementedError, match="strict"):
        caterva.convert("in.fits", "s.b2z", strict=True)
    Path("cut.fits").write_bytes(Path("in.fits").read_bytes()[:2900])
    with pytest.raises(caterva.CorruptError, match=r"cut\.fits"):
        caterva.convert("cut.fits", "s.b2z")
    assert not os.path.exists("s.b2z") and left() == []


def test_fits_empty_tables_names_and_cut_headers() -> None:
    fits = pytest.importorskip("astropy.io.fits")
    column = fits.Column("a", "I5", array=np.zeros(0))
    hdus = [fits.PrimaryHDU(), fits.ImageHDU(np.arange(9.0), name="SCI"),
            fits.ImageHDU(np.arange(4), name="MASK"),
            fits.TableHDU.from_columns([column], name="SCI")]  # fmt: skip
    fits.HDUList(hdus).writeto("in.fits")
    tree = caterva.from_fits("in.fits", "out.b2z")
    assert sorted(tree) == ["MASK", "SCI", "SCI_2"] and tree["SCI_2/a"].shape == (0,)
    whole = Path("in.fits").read_bytes()
    Path("cut.fits").write_bytes(whole[: whole.index(b"XTENSION") + 700])
    with pytest.raises(caterva.CorruptError, match="ends early, in the header of the HDU 1"):
        caterva.from_fits("cut.fits", "cut.b2z")
    Path("none.fits").write_bytes(b"none")
    with pytest.raises(caterva.CorruptError, match=r"none\.fits: "):
        caterva.from_fits("none.fits", "none.b2z")


def test_mrc_has_the_voxel_size() -> None:
    mrcfile = pytest.importorskip("mrcfile")
    for n, dtype in enumerate(("i1", "i2", "u2", "f4", "c8", "f2")):
        items = (RNG.random((5, 6, 7)) * 100).astype(dtype)
        with mrcfile.new(f"{n}.mrc") as file:
            file.set_data(items)
            file.voxel_size = (1.5, 2, 3)
            file.add_label("a label")
        a = caterva.from_mrc(f"{n}.mrc", f"{n}.b2nd", verify=True)
        assert np.array_equal(a[:], items) and a.dims == ("z", "y", "x")
        assert a.attrs["spacing"].tolist() == [3, 2, 1.5]
        assert a.attrs["axis_units"] == ["angstrom"] * 3
        assert "a label" in a.attrs["mrc"]["label"]


def write_series(folder: str, n: int = 5, step: float = 2.5) -> np.ndarray[Any, Any]:
    """Write slices in another order than their positions, and return them in that order."""
    pydicom = pytest.importorskip("pydicom")
    os.mkdir(folder)
    items = RNG.integers(-1000, 1000, (n, 6, 8)).astype("i2")
    uid = pydicom.uid.generate_uid()
    for k in RNG.permutation(n):
        meta = pydicom.dataset.FileMetaDataset()
        meta.TransferSyntaxUID = pydicom.uid.ExplicitVRLittleEndian
        meta.MediaStorageSOPClassUID = "1.2.840.10008.5.1.4.1.1.4"
        meta.MediaStorageSOPInstanceUID = pydicom.uid.generate_uid()
        ds = pydicom.Dataset()
        ds.file_meta = meta
        ds.SOPClassUID = meta.MediaStorageSOPClassUID
        ds.SOPInstanceUID = meta.MediaStorageSOPInstanceUID
        ds.SeriesInstanceUID, ds.PatientName, ds.Modality = uid, "Doe^J", "MR"
        ds.Rows, ds.Columns, ds.SamplesPerPixel = 6, 8, 1
        ds.PhotometricInterpretation, ds.PixelRepresentation = "MONOCHROME2", 1
        ds.BitsAllocated, ds.BitsStored, ds.HighBit = 16, 16, 15
        ds.PixelSpacing, ds.SliceThickness = [0.5, 0.75], 2
        ds.ImageOrientationPatient = [1, 0, 0, 0, 1, 0]
        ds.ImagePositionPatient = [10, 20, 30 + step * int(k)]
        ds.RescaleSlope, ds.RescaleIntercept = 2, -5
        ds.PixelData = items[k].tobytes()
        ds.save_as(f"{folder}/{RNG.integers(1 << 30)}.dcm", enforce_file_format=True)
    return items


def test_dicom_slices_are_sorted_and_placed() -> None:
    items = write_series("series")
    Path("series/README").write_text("about")
    with pytest.warns(caterva.LossWarning, match="README: not a DICOM file"):
        a = convert("series", "a.b2nd")
    assert np.array_equal(a[:], items) and a.dims == ("z", "y", "x")
    assert a.attrs["spacing"].tolist() == [2.5, 0.5, 0.75]
    # index (2, 3, 4) is at (10 + 4 * 0.75, 20 + 3 * 0.5, 30 + 2 * 2.5) of DICOM's space
    np.testing.assert_allclose(a.attrs["affine"] @ [2, 3, 4, 1], [-13, -21.5, 35, 1])
    assert (a.attrs["scale_factor"], a.attrs["add_offset"]) == (2, -5)
    assert a.attrs["dicom"]["PatientName"] == "Doe^J"
    assert len(a.attrs["dicom_slices"]["SOPInstanceUID"]) == 5


def test_pydicoms_own_files() -> None:
    pydicom = pytest.importorskip("pydicom")
    data = Path(pydicom.__file__).parent / "data/test_files"
    names = ("CT_small.dcm", "MR_small.dcm", "MR_small_RLE.dcm", "MR_small_bigendian.dcm",
             "image_dfl.dcm", "rtdose.dcm", "SC_rgb.dcm", "liver_1frame.dcm")  # fmt: skip
    tried = 0
    for name in names:
        if not (data / name).exists():
            continue
        want = pydicom.dcmread(data / name).pixel_array
        got = caterva.from_dicom(data / name, "d.b2nd", overwrite=True, verify=True)[:]
        assert np.array_equal(got.reshape(want.shape), want), name
        tried += 1
    assert tried > 4


def write_grib(path: str) -> None:
    eccodes = pytest.importorskip("eccodes")
    with open(path, "wb") as file:
        for kind, level, name in (("pl", 500, "t"), ("pl", 850, "t"), ("sfc", 0, "sp")):
            message = eccodes.codes_grib_new_from_samples(f"regular_ll_{kind}_grib2")
            eccodes.codes_set(message, "shortName", name)
            eccodes.codes_set(message, "level", level)
            n = eccodes.codes_get(message, "numberOfValues")
            eccodes.codes_set_values(message, np.arange(n) + float(level))
            eccodes.codes_write(message, file)


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_grib_is_what_cfgrib_reads() -> None:
    cfgrib = pytest.importorskip("cfgrib")
    xr = pytest.importorskip("xarray")
    write_grib("in.grib")
    tree = caterva.from_grib("in.grib", "in.b2z")
    for ds in cfgrib.open_datasets("in.grib", backend_kwargs={"indexpath": ""}):
        name = next(iter(ds.data_vars.values())).attrs["GRIB_typeOfLevel"]
        group = xr.open_dataset("in.b2z", group=name)
        xr.testing.assert_identical(group.load(), ds.load())
        assert name in tree
    assert [n for n in os.listdir() if n.endswith(".idx")] == [] and left() == []


def test_a_url_beside_eccodes_ends_well() -> None:
    """Eccodes loads libcurl and libldap of its own for the whole process."""
    pytest.importorskip("eccodes")
    code = (
        "import caterva, contextlib, eccodes\n"
        "with contextlib.suppress(OSError, NotImplementedError):\n"
        "    caterva.open('http://127.0.0.1:9/x.b2nd')\n"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


PACKAGES = {"astropy.io.fits": b"SIMPLE  =" + b" " * 600,
            "mrcfile": b" " * 208 + b"MAP " + b" " * 400,
            "pydicom": b" " * 128 + b"DICM" + b" " * 400,
            "cfgrib": b"GRIB" + b" " * 600}  # fmt: skip


@pytest.mark.parametrize("module", PACKAGES)
def test_a_missing_package_is_named(module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("in.x").write_bytes(PACKAGES[module])
    monkeypatch.setitem(sys.modules, module, None)
    package = module.split(".")[0]
    with pytest.raises(NotImplementedError, match=f"pip install {package}$"):
        caterva.convert("in.x", "out.b2z")
    assert left() == []


def test_big_sources_are_read_in_parts() -> None:
    """The memory of a conversion does not grow with the file."""
    fits = pytest.importorskip("astropy.io.fits")
    resource = pytest.importorskip("resource")
    fits.PrimaryHDU(np.zeros((1, 1), "f4")).writeto("big.fits")
    header = fits.getheader("big.fits")
    header["NAXIS1"], header["NAXIS2"] = 8192, 16384
    with open("big.fits", "wb") as file:  # 512 MiB, mostly a hole
        file.write(header.tostring().encode())
        file.truncate(file.tell() + 8192 * 16384 * 4 + 2880)
    code = (
        "import resource; resource.setrlimit(resource.RLIMIT_DATA, (400 << 20,) * 2);"
        "import caterva; caterva.convert('big.fits', 'big.b2nd', threads=2)"
    )
    one = os.environ | {"OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=one)
    assert done.returncode == 0, done.stderr
    assert resource is not None and caterva.open("big.b2nd").shape == (16384, 8192)


# ---- python -m caterva ----------------------------------------------------------------------


def module(*words: str) -> tuple[int, str, str]:
    done = subprocess.run(
        [sys.executable, "-m", "caterva", *words], capture_output=True, text=True
    )
    return done.returncode, done.stdout, done.stderr


def test_the_module_converts_what_only_packages_read() -> None:
    fits = pytest.importorskip("astropy.io.fits")
    fits.PrimaryHDU(np.arange(12, dtype="i2").reshape(3, 4)).writeto("in.fits")
    assert module("convert", "in.fits", "a.b2nd", "--verify", "--chunks", "2,4")[0] == 0
    assert caterva.open("a.b2nd").chunks == (2, 4)
    assert module("convert", "in.fits", "x", "--dry-run") == (0, "data  (3, 4) >i2\n", "")
    status, _, err = module("convert", "in.fits", "a.b2nd")
    assert status == 3 and "exists already" in err and err.startswith("caterva: ")
    assert module("convert", "a.b2nd", "a.npy")[0] == 0  # by the program
    assert module("convert", "none.fits", "b.b2nd")[0] == 3
    assert module("convert", "a.b2nd")[0] == 2
    assert "usage: caterva convert" in module("convert", "--help")[1]


def test_checksums_of_an_array_of_ours_behind_a_url() -> None:
    """zarr-python, which reads URLs of Zarr, does not know them."""
    pytest.importorskip("zarr")
    pytest.importorskip("aiohttp")
    sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "support"))
    scripted = pytest.importorskip("scripted_server", reason="the library's tests are not here")
    items = RNG.integers(0, 255, 40000).astype("u1")
    caterva.save("a.zarr", items)
    meta = Path("a.zarr/zarr.json").read_bytes()
    shard = bytearray(Path("a.zarr/c/0").read_bytes())
    with scripted.ScriptedServer() as server:
        server.objects |= {"/a.zarr/zarr.json": meta, "/a.zarr/c/0": bytes(shard)}
        try:
            caterva.open(server.url("/a.zarr")).close()
        except caterva.UnsupportedError as error:
            pytest.skip(str(error))
        caterva.convert(server.url("/a.zarr"), "b.b2nd", engine="zarr")
        assert np.array_equal(caterva.load("b.b2nd"), items)
        for at in (20000, 60000):  # an incompressible block is there twice
            shard[at] ^= 1
        server.objects["/a.zarr/c/0"] = bytes(shard)
        with pytest.raises(caterva.CorruptError):
            caterva.convert(server.url("/a.zarr"), "c.b2nd")
    assert not os.path.exists("c.b2nd")

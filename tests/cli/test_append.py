"""append and resize: the result of every kind of input, and that invalid input changes
nothing."""

import io
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import blosc2
import numpy as np

from tool_cli import CLI, Case, environment, main, run


def npy(values):
    stream = io.BytesIO()
    np.save(stream, values)
    return stream.getvalue()


class Growing(Case):
    def make(self, values, name="a.b2nd", **kwargs):
        path = self.path(name)
        blosc2.asarray(np.ascontiguousarray(values), urlpath=str(path), mode="w", **kwargs)
        return path

    def same(self, path, want):
        got = blosc2.open(str(path))
        self.assertEqual((got.shape, got.dtype), (want.shape, want.dtype))
        np.testing.assert_array_equal(got[...], want)
        self.assertIn(": ok, ", self.text("verify", path))


class Compact(Growing):
    """append and put compact the file when they leave dead space."""

    def size_after(self, *options):
        values = np.random.default_rng(5).integers(0, 2**63, 1 << 17)
        path = self.make(values, chunks=(1 << 13,), blocks=(1 << 11,))
        size = path.stat().st_size
        self.ok("put", path, ":100000", "--fill", "0", *options)
        values[:100000] = 0
        self.same(path, values)
        self.last = values
        return path.stat().st_size / size

    def test_put_compacts(self):
        self.assertLess(self.size_after(), 0.4)
        self.assertLess(self.size_after("--compact-at", "70"), 0.4)
        self.assertGreater(self.size_after("--compact-at", "90"), 0.9)
        self.assertGreater(self.size_after("--compact-at=0"), 0.9)

    def test_append_compacts(self):
        for options, most in (([], 0.4), (["--compact-at", "0"], 1.1)):
            self.assertGreater(self.size_after("--compact-at", "0"), 0.9)
            path, size = self.path("a.b2nd"), self.path("a.b2nd").stat().st_size
            self.path("more.npy").write_bytes(npy(np.arange(5)))
            self.ok("append", path, self.path("more.npy"), *options)
            self.assertLess(path.stat().st_size / size, most)
            self.assertGreater(path.stat().st_size / size, most - 0.3)
            self.same(path, np.concatenate([self.last, np.arange(5)]))

    def test_percent_is_checked(self):
        path = self.make(np.arange(5))
        for percent in ("-1", "101", "x"):
            self.fails(2, "put", path, ":", "--fill", "1", "--compact-at", percent)


class Append(Growing):
    def test_every_axis_and_every_input(self):
        rng = np.random.default_rng(11)
        for axis, option in ((0, []), (0, ["--axis", "0"]), (1, ["--axis", "1"]),
                             (2, ["--axis=2"]), (2, ["--axis", "-1"])):
            for n in (1, 4, 9):
                old = rng.integers(0, 99, (7, 8, 6)).astype("<i4")
                shape = list(old.shape)
                shape[axis] = n
                new = rng.integers(0, 99, shape).astype("<i4")
                want = np.concatenate([old, new], axis)
                inputs = {"in.npy": npy(new), "fortran.npy": npy(np.asfortranarray(new)),
                          "in.raw": new.tobytes()}
                for name, content in inputs.items():
                    path = self.make(old, chunks=(3, 4, 5), blocks=(2, 2, 2))
                    self.path(name).write_bytes(content)
                    self.assertEqual(self.ok("append", path, self.path(name), *option), b"")
                    self.same(path, want)
                self.make(old, chunks=(3, 4, 5), blocks=(2, 2, 2))
                self.make(new, "in.b2nd")
                self.ok("append", path, self.path("in.b2nd"), *option, "--memory", "4KiB")
                self.same(path, want)
                self.make(old, chunks=(3, 4, 5), blocks=(2, 2, 2))
                self.ok("append", path, "-", "--from", "npy", *option, stdin=npy(new))
                self.same(path, want)

    def test_one_item_without_the_axis(self):
        old = np.arange(24, dtype=">f8").reshape(2, 3, 4)
        for axis in range(3):
            path = self.make(old)
            new = old.take(1, axis)
            self.ok("append", path, "-", "--from", "npy", "--axis", axis, stdin=npy(new))
            want = np.concatenate([old, np.expand_dims(new, axis)], axis)
            self.same(path, want.astype(old.dtype))
        path = self.make(np.arange(3, dtype="u1"))
        self.ok("append", path, "-", "--from", "npy", stdin=npy(np.array(9, "u1")))
        self.same(path, np.array([0, 1, 2, 9], "u1"))

    def test_raw_pipes(self):
        rng = np.random.default_rng(12)
        for rows in (0, 1, 5, 57, 400):
            old = rng.integers(0, 99, (13, 33)).astype("<i8")
            new = rng.integers(0, 99, (rows, 33)).astype("<i8")
            for memory in ("4KiB", "20KiB", "1MiB"):
                path = self.make(old, chunks=(10, 20), blocks=(5, 5))
                self.ok("append", path, "-", "--from", "raw", "--memory", memory, "--offset",
                        3, stdin=b"xyz" + new.tobytes())
                self.same(path, np.concatenate([old, new]))
        path = self.make(np.zeros((1, 4), "u1"))
        self.ok("append", path, "-", "--from", "raw", "--axis", 1, stdin=b"\1\2")
        self.same(path, np.array([[0, 0, 0, 0, 1, 2]], "u1"))

    def test_raw_from_a_redirected_file(self):
        path, raw = self.make(np.zeros((2, 3), "<u2")), self.path("in.raw")
        raw.write_bytes(np.arange(1, 7, dtype="<u2").tobytes())
        with open(raw, "rb") as file:
            done = subprocess.run([CLI, "append", str(path), "-", "--from", "raw", "--axis",
                                   "1"], stdin=file, capture_output=True)
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        want = [[0, 0, 0, 1, 2, 3], [0, 0, 0, 4, 5, 6]]
        self.same(path, np.array(want, "<u2"))

    def test_itself_and_empty_arrays(self):
        values = np.random.default_rng(13).random((30, 20))
        path = self.make(values, chunks=(8, 20), blocks=(4, 10))
        self.ok("append", path, path)
        self.same(path, np.concatenate([values, values]))
        self.ok("create", self.path("e.b2nd"), "--shape", "0,5", "--dtype", "<f4", "--chunks",
                "4,5")
        new = np.arange(35, dtype="<f4").reshape(7, 5)
        self.ok("append", self.path("e.b2nd"), "-", "--from", "npy", stdin=npy(new[:0]))
        self.ok("append", self.path("e.b2nd"), "-", "--from", "npy", stdin=npy(new))
        self.same(self.path("e.b2nd"), new)

    def test_sparse_and_fill(self):
        path = self.path("s.b2nd")
        self.ok("create", path, "--shape", "5,6", "--dtype", "<i4", "--chunks", "4,4",
                "--sparse", "--fill", "7")
        new = np.arange(18, dtype="<i4").reshape(3, 6)
        self.ok("append", path, "-", "--from", "raw", stdin=new.tobytes())
        self.same(path, np.concatenate([np.full((5, 6), 7, "<i4"), new]))
        self.ok("resize", path, "10,7")
        want = np.full((10, 7), 7, "<i4")
        want[5:8, :6] = new
        self.same(path, want)

    def test_memory_is_bounded(self):
        values = np.arange(2000, dtype="<f8")
        path = self.make(np.tile(values, (10, 1)), chunks=(64, 2000), blocks=(8, 500))
        rows = 7000  # 112 MB
        with open(self.path("in.raw"), "wb") as file:  # in pieces: the peak memory of a child
            for _ in range(rows):  # begins at its parent's size
                file.write(values.tobytes())
        for source in ("-", self.path("in.raw")):
            child = subprocess.Popen([CLI, "append", str(path), str(source), "--from", "raw",
                                      "--memory", "16MiB"], stdin=subprocess.PIPE,
                                     env=environment())
            for _ in range(rows if source == "-" else 0):
                child.stdin.write(values.tobytes())
            child.stdin.close()
            _, status, usage = os.wait4(child.pid, 0)
            child.returncode = os.waitstatus_to_exitcode(status)
            self.assertEqual(status, 0)
            if b"__asan_init" not in Path(CLI).read_bytes():
                self.assertLess(usage.ru_maxrss // 1024, 100, source)
        got = blosc2.open(str(path))
        self.assertEqual(got.shape, (10 + 2 * rows, 2000))
        for row in (9, 10, 10 + rows, 9 + 2 * rows):
            np.testing.assert_array_equal(got[row], values)


class Resize(Growing):
    def test_grow_and_shrink(self):
        values = np.random.default_rng(14).integers(1, 99, (20, 30)).astype("<u2")
        path = self.make(values, chunks=(7, 8), blocks=(3, 4))
        self.ok("resize", path, "15,31")
        want = np.zeros((15, 31), "<u2")
        want[:, :30] = values[:15]
        self.same(path, want)
        self.ok("resize", path, "(15, 4)")
        self.ok("resize", path, "15x31")
        want[:, 4:] = 0
        self.same(path, want)
        self.ok("resize", path, "0,31")
        self.ok("resize", path, "2,3")
        self.same(path, np.zeros((2, 3), "<u2"))

    def test_the_fill(self):
        path = self.path("f.b2nd")
        for dtype, fill in (("<f4", "nan"), ("<f8", "1.5"), ("<i2", "-3")):
            self.ok("create", path, "--shape", "3", "--dtype", dtype, "--fill", fill, "-f",
                    "--chunks", "4", "--blocks", "2")
            self.ok("put", path, ":", "--fill", "1")
            self.ok("resize", path, "2")
            self.ok("resize", path, "9")
            self.assertEqual(self.text("get", path), " ".join(["1"] * 2 + [fill] * 7) + "\n")

    def test_refusals(self):
        path = self.make(np.ones((4, 5)))
        before = path.read_bytes()
        self.assertIn("has 3 axes", self.fails(2, "resize", path, "4,5,6"))
        self.assertIn("(4, 5)", self.fails(2, "resize", path, "4"))
        for shape in ("4,x", "-1,5", "4;5", "9999999999999999999,1"):
            self.assertIn(f"'{shape}'", self.fails(2, "resize", path, shape))
        self.fails(2, "resize", path, "9000000000000000000,9000000000000000000")
        self.fails(2, "resize", path)
        self.fails(3, "resize", self.path("none.b2nd"), "4,5")
        self.assertEqual(path.read_bytes(), before)


class Refusals(Growing):
    def setUp(self):
        super().setUp()
        self.array = self.make(np.zeros((4, 5, 2), "<f4"), "array.b2nd")
        self.before = self.array.read_bytes()

    def refuse(self, status, *arguments, values=None, raw=b""):
        stdin = raw if values is None else npy(values)
        options = ["--from", "raw" if values is None else "npy"]
        err = self.fails(status, "append", self.array, "-", *options, *arguments, stdin=stdin)
        self.assertEqual(self.array.read_bytes(), self.before)
        return err

    def test_shape(self):
        for shape in ((4, 5), (4, 6, 2), (1, 1, 4, 5), (5,), (), (2, 5)):
            err = self.refuse(2, values=np.zeros(shape, "<f4"))
            self.assertIn("(4, 5, 2)", err)
            self.assertIn("only axis 0 may differ", err)
        err = self.refuse(2, "--axis", "1", values=np.zeros((5, 2), "<f4"))
        self.assertIn("but the input has (5, 2); only axis 1 may differ", err)

    def test_dtype(self):
        for dtype in ("<f8", ">f4", "<i4", "|S4"):
            err = self.refuse(2, values=np.zeros((1, 5, 2), dtype))
            self.assertIn(f"array.b2nd contains <f4, but the input contains {dtype}", err)

    def test_axis(self):
        for axis in ("3", "-4", "15"):
            self.assertIn(f"--axis {axis} is out of range", self.refuse(2, "--axis", axis))
        self.assertIn("--axis is 16", self.refuse(2, "--axis", "16"))
        self.assertIn("a number", self.refuse(2, "--axis", "x"))
        scalar = self.path("scalar.b2nd")
        self.ok("create", scalar, "--shape", "()", "--dtype", "<f4")
        self.assertIn("no axis", self.fails(2, "append", scalar, scalar))

    def test_raw(self):
        raw = self.path("in.raw")
        raw.write_bytes(bytes(79))
        err = self.fails(4, "append", self.array, raw)
        self.assertIn("79 bytes of items, which is not a multiple of the 40 bytes", err)
        self.assertIn("ends inside an item of axis 0", self.refuse(4, raw=bytes(79)))
        self.assertIn("axis 1 needs a file", self.refuse(5, "--axis", "1", raw=bytes(80)))
        self.fails(3, "append", self.array, self.path("none.raw"))
        self.fails(3, "append", self.array, self.path("none.npy"))
        self.fails(3, "append", self.array, self.path("none.txt"))
        self.path("some.txt").write_bytes(b"1 2 3")
        self.fails(2, "append", self.array, self.path("some.txt"))
        self.fails(2, "append", self.array, "-", stdin=b"")
        big = self.path("big.b2nd")
        self.ok("create", big, "--shape", "1,9999", "--dtype", "u1")
        err = self.fails(2, "append", big, "-", "--from", "raw", "--memory", "4KiB",
                         stdin=b"x")
        self.assertIn("one item of axis 0 has 9.8 KiB, but half of --memory is 2 KiB", err)
        self.ok("create", big, "--shape", "3,0", "--dtype", "u1", "-f")
        self.assertIn("no bytes", self.fails(2, "append", big, "-", "--from", "raw",
                                             stdin=b"x"))
        self.assertEqual(self.array.read_bytes(), self.before)

    def test_half_an_npy_file(self):
        content = npy(np.ones((400, 5, 2), "<f4"))
        status, _, err = run("append", self.array, "-", "--from", "npy", "--memory", "4KiB",
                             stdin=content[:-1])
        self.assertEqual(status, 4)
        self.assertEqual(self.text("info", self.array).splitlines()[1].split("     ")[0],
                         "  shape    4 x 5 x 2")

    def test_read_only_file(self):
        self.array.chmod(0o444)
        self.folder.chmod(0o755)
        commands = (["append", self.array, self.array], ["resize", self.array, "1,1,1"],
                    ["attr", "set", self.array, "k", "1"], ["attr", "delete", self.array, "k"])
        root = os.geteuid() == 0  # which no file mode stops
        if root and not shutil.which("setpriv"):
            self.skipTest("setpriv is missing, which runs the program as another user")
        other = ["setpriv", "--reuid=65534", "--clear-groups"] if root else []
        try:
            subprocess.run([*other, CLI, "--version"], check=True, capture_output=True)
        except (OSError, subprocess.CalledProcessError):
            self.skipTest("another user cannot run the program where it is")
        for command in commands:
            done = subprocess.run([*other, CLI, *map(str, command)], capture_output=True)
            self.assertEqual(done.returncode, 3, command)
            self.assertRegex(done.stderr.decode(), r"\Acaterva: [^\n]+\n\Z")
            self.assertIn(b"Permission denied", done.stderr)
        self.assertEqual(self.array.read_bytes(), self.before)


class Held(Growing):
    """A pipe without data delays the writer, which keeps the file locked."""

    def hold(self, path):
        child = subprocess.Popen([CLI, "append", str(path), "-", "--from", "raw", "--memory",
                                  "1MiB"], stdin=subprocess.PIPE, stderr=subprocess.PIPE,
                                 env=environment())
        child.stdin.write(b"x" * 3_000_000)
        child.stdin.flush()
        time.sleep(0.3)
        self.assertIsNone(child.poll())
        return child

    def end(self, child, sent=None):
        if sent:
            child.send_signal(sent)
            err = child.stderr.read()
        child.stdin.close()
        if not sent:
            err = child.stderr.read()
        child.stderr.close()
        return child.wait(), err

    def test_interrupted(self):
        path = self.make(np.ones((500, 1000), "u1"), chunks=(100, 1000))
        before = path.read_bytes()
        for sent in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
            status, err = self.end(self.hold(path), sent)
            killed = sent == signal.SIGKILL
            self.assertEqual((status, err),
                             (-sent, b"" if killed else b"caterva: interrupted\n"))
            self.same(path, np.ones((500, 1000), "u1"))
            self.assertEqual(path.read_bytes()[:len(before)], before)
        self.assertEqual(self.names(), ["a.b2nd"])

    def test_locked_by_another_writer(self):
        path = self.make(np.ones((500, 1000), "u1"), chunks=(100, 1000))
        child = self.hold(path)
        for command in (["append", path, path], ["resize", path, "1,1"],
                        ["attr", "set", path, "k", "1"], ["attr", "delete", path, "k"],
                        ["put", path, "0", "--fill", "1"]):
            self.assertIn(str(path), self.fails(3, *command))
        self.assertEqual(self.text("get", path, "-1,0"), "1\n")
        self.assertEqual(self.end(child), (0, b""))
        self.assertEqual(blosc2.open(str(path)).shape, (3500, 1000))
        self.ok("attr", "set", path, "k", "1")


if __name__ == "__main__":
    main()

"""The format of an input is detected from its bytes, not its name or origin; outputs that would
overwrite the input, or have a wrong extension, are refused; exit statuses are consistent."""

import gzip
import io
import os
import subprocess

import blosc2
import numpy as np

from tool_cli import CLI, Case, environment, main, run


def npy(values):
    file = io.BytesIO()
    np.save(file, values)
    return file.getvalue()


VALUES = np.arange(12, dtype="<i4").reshape(3, 4)


class Marks(Case):
    def array(self, name, values=VALUES):
        path = self.path(name)
        blosc2.asarray(values, urlpath=str(path), mode="w")
        return path

    def same(self, path, values=VALUES):
        np.testing.assert_array_equal(blosc2.open(str(path))[...], values)

    def test_any_name(self):
        out = self.path("out.b2nd")
        for name in ("x", "x.b2nd.repaired", "x.npy", "x.raw", "x.txt", "x.h5", "x.b2nd"):
            self.array(name if name.endswith(".b2nd") else "tmp.b2nd")
            if not name.endswith(".b2nd"):
                self.path("tmp.b2nd").rename(self.path(name))
            self.ok("convert", self.path(name), out, "-f")
            self.same(out)
            self.assertEqual(self.text("get", self.path(name), "2"), "8 9 10 11\n")
            self.path(name).write_bytes(npy(VALUES))
            self.ok("convert", self.path(name), out, "-f")
            self.same(out)
            self.ok("diff", self.path(name), out)
            self.ok("put", out, "...", self.path(name))
            self.ok("append", out, self.path(name))
            self.same(out, np.concatenate([VALUES, VALUES]))

    def test_directories(self):
        self.ok("convert", self.array("a.b2nd"), self.path("sparse"), "--sparse")
        for name in ("plain", "dir.npy", "dir.raw"):
            self.path("sparse").rename(self.path(name))
            self.ok("convert", self.path(name), self.path("out.b2nd"), "-f")
            self.same(self.path("out.b2nd"))
            self.path(name).rename(self.path("sparse"))
        self.path("zarr").mkdir()
        self.path("zarr/.zarray").write_bytes(b"{}")
        for command in (["convert", self.path("zarr"), self.path("b.b2nd")],
                        ["get", self.path("zarr")]):
            self.assertIn(".zarray has no valid shape", self.fails(4, *command))

    def test_repairs_own_output(self):
        path = self.array("x.b2nd", np.random.default_rng(1).random(5000))
        self.ok("seal", path)
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 0xFF
        path.write_bytes(data)
        run("repair", path)
        self.assertIn("x.b2nd.repaired", self.names())
        self.ok("convert", self.path("x.b2nd.repaired"), self.path("y.npy"))
        self.assertEqual(np.load(self.path("y.npy")).shape, (5000,))

    def test_pipes(self):
        out = self.path("out.b2nd")
        for stdin in (npy(VALUES), npy(VALUES[:0]), npy(np.array(7))):
            self.ok("convert", "-", out, "-f", stdin=stdin)
            self.same(out, np.load(io.BytesIO(stdin)))
        self.ok("convert", "-", out, "-f", stdin=npy(VALUES))
        self.ok("append", out, "-", stdin=npy(VALUES))
        self.ok("put", out, "3:", "-", stdin=npy(VALUES + 1))
        self.same(out, np.concatenate([VALUES, VALUES + 1]))
        frame = self.array("a.b2nd").read_bytes()
        self.assertIn("standard input is a b2nd array",
                      self.fails(5, "convert", "-", out, "-f", stdin=frame))
        self.assertIn("standard input is a gzip file",
                      self.fails(5, "append", out, "-", stdin=gzip.compress(npy(VALUES))))
        self.assertIn("raw input needs --from raw", self.fails(2, "append", out, "-", stdin=b"1234"))
        with open(self.path("in.npy"), "wb") as file:
            file.write(npy(VALUES))
        with open(self.path("in.npy"), "rb") as file:
            done = subprocess.run([CLI, "convert", "-", str(out), "-f"], stdin=file,
                                  capture_output=True, env=environment())
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        self.same(out)

    def test_named_pipes(self):
        for name, content, extra in (("pipe", npy(VALUES), []),
                                     ("pipe.raw", VALUES.tobytes(), ["--shape", "3,4",
                                                                     "--dtype", "<i4"])):
            os.mkfifo(self.path(name))
            child = subprocess.Popen([CLI, "convert", str(self.path(name)),
                                      str(self.path("out.b2nd")), "-f", *extra],
                                     stderr=subprocess.PIPE, env=environment())
            self.path("content").write_bytes(content)
            writer = subprocess.Popen(["sh", "-c", 'cat "$0" >"$1"', self.path("content"),
                                       self.path(name)])
            err = child.communicate(timeout=60)[1]
            writer.kill()  # blocks forever if nothing reads
            writer.wait()
            self.assertEqual((err, child.returncode), (b"", 0))
            self.same(self.path("out.b2nd"))

    def test_an_array_is_not_read_from_a_pipe(self):
        """It would wait for a writer, and then could not seek."""
        pipe = self.path("pipe.b2nd")
        os.mkfifo(pipe)
        self.ok("create", self.path("there.b2nd"), "--shape", "3", "--dtype", "<i4")
        for words in (["info", pipe], ["convert", pipe, self.path("x.npy")],
                      ["diff", pipe, self.path("there.b2nd")],
                      ["diff", self.path("there.b2nd"), pipe],
                      ["convert", pipe, self.path("x.npy"), "--from", "b2nd"]):
            done = subprocess.run([CLI, *map(str, words)], capture_output=True, timeout=60,
                                  env=environment())
            self.assertEqual(done.returncode, 3)
            self.assertIn(b"is not a regular file", done.stderr)

    def test_from_helps_and_does_not_overrule(self):
        array, plain = self.array("a.b2nd"), self.path("a.npy")
        plain.write_bytes(npy(VALUES))
        out = self.path("out.b2nd")
        self.assertIn("is a b2nd array, but --from is npy",
                      self.fails(2, "convert", array, out, "--from", "npy"))
        self.assertIn("is a NumPy file, but --from is b2nd",
                      self.fails(2, "convert", plain, out, "--from", "b2nd"))
        self.ok("convert", plain, out, "--from", "npy")
        size = plain.stat().st_size
        self.ok("convert", plain, out, "-f", "--from", "raw", "--shape", size, "--dtype", "u1")
        self.same(out, np.frombuffer(plain.read_bytes(), "u1"))
        raw = self.path("what")
        raw.write_bytes(VALUES.tobytes())
        self.assertIn("raw input needs --from raw", self.fails(2, "convert", raw, out))
        self.ok("convert", raw, out, "-f", "--from", "raw", "--shape", "3,4", "--dtype", "<i4")
        self.same(out)

    def test_what_is_not_read_is_named(self):
        known = {"g.npy": (gzip.compress(npy(VALUES)), "a gzip file"),
                 "z.dat": (b"PK\3\4" + bytes(99), "zip archive, as .npz files are"),
                 "p.b2nd": (b"\x89PNG\r\n\x1a\n" + bytes(99), "a PNG picture")}
        for name, (content, word) in known.items():
            path = self.path(name)
            path.write_bytes(content)
            for command in (["info", path], ["get", path], ["verify", path], ["bench", path]):
                self.assertIn(word, self.fails(5, *command), name)

    def test_other_formats(self):
        """What is about files of ours only says so; nothing but a sentence is said of damage."""
        broken = {"h.h5": b"\x89HDF\r\n\x1a\n" + bytes(99), "c.nc": b"CDF\1" + b"\xff" * 9,
                  "n.nii": bytes(344) + b"n+1\0" + bytes(99), "t.tif": b"II*\0" + bytes(99),
                  "z.npz": b"PK\3\4" + bytes(99)}
        for name, content in broken.items():
            path = self.path(name)
            path.write_bytes(content)
            for command in (["convert", path, self.path("out.b2nd")], ["info", path], ["ls", path],
                            ["get", path], ["diff", path, path], ["stats", path]):
                status, out, err = run(*command)
                self.assertIn(status, (4, 5), (command, out, err))
                self.assertRegex(err, r"\Acaterva: [^\n]+\n\Z")
            for command in (["verify", path], ["bench", path], ["attr", "list", path]):
                self.assertIn("'caterva convert' converts it", self.fails(5, *command))

    def test_raw_items_of_other_formats(self):
        image = np.arange(24, dtype="<i2").reshape(2, 3, 4, order="F")
        self.path("n.nii").write_bytes(bytes(344) + b"n+1\0" + bytes(4) + image.tobytes("F"))
        self.ok("convert", self.path("n.nii"), self.path("n.b2nd"), "--from", "raw", "--offset", "352",
                "--shape", "4,3,2", "--dtype", "<i2")
        np.testing.assert_array_equal(blosc2.open(str(self.path("n.b2nd")))[...], image.T)
        raw = self.path("zip.raw")  # the name decides here: raw items may be any bytes
        raw.write_bytes(b"PK\3\4")
        self.ok("convert", raw, self.path("out.b2nd"), "--shape", "4", "--dtype", "u1")
        self.path("a.npy").write_bytes(npy(VALUES))
        for command in ("info", "verify", "bench"):
            self.assertIn("is a NumPy file, not a b2nd array; 'caterva convert' converts it",
                          self.fails(5, command, self.path("a.npy")))

    def test_empty_files(self):
        self.path("e.npy").write_bytes(b"")
        self.path("e.b2nd").write_bytes(b"")
        self.path("e").write_bytes(b"")
        for name, status in (("e.npy", 4), ("e.b2nd", 4), ("e", 2)):
            err = self.fails(status, "convert", self.path(name), self.path("out.b2nd"))
            self.assertIn(f"{self.path(name)} is empty" if status == 4 else "cannot determine the format of",
                          err)


class Outputs(Case):
    def setUp(self):
        super().setUp()
        self.array = self.path("a.b2nd")
        blosc2.asarray(VALUES, urlpath=str(self.array))
        self.before = self.array.read_bytes()

    def test_a_result_never_replaces_its_input(self):
        link, hard, npy_file = self.path("link.png"), self.path("hard.npy"), self.path("x.npy")
        link.symlink_to(self.array)
        os.link(self.array, hard)
        npy_file.write_bytes(npy(VALUES))
        os.chdir(self.folder)
        self.addCleanup(os.chdir, "/")
        for command in (["view", self.array, "--png", self.array],
                        ["view", self.array, "--png", link], ["view", self.array, "--png", hard],
                        ["view", hard, "--png", "a.b2nd"],
                        ["get", self.array, "-o", self.array],
                        ["get", self.array, "--to", "raw", "-o", link],
                        ["get", self.array, "--csv", "-o", "./hard.npy"],
                        ["convert", self.array, self.array],
                        ["convert", self.array, hard], ["convert", link, "a.b2nd"],
                        ["convert", npy_file, npy_file, "--select", "1"],
                        ["repack", self.array, self.array, "--select", "1:"],
                        ["repack", link, self.array, "--astype", "<f8"]):
            self.assertIn("is the input, which", self.fails(2, *command, "-f"))
            self.assertEqual(self.array.read_bytes(), self.before)
        self.assertEqual(npy_file.read_bytes(), npy(VALUES))
        with open(npy_file, "rb") as file:
            done = subprocess.run([CLI, "convert", "-", str(npy_file), "-f"], stdin=file,
                                  capture_output=True, env=environment())
        self.assertEqual(done.returncode, 2)
        self.assertIn(b"is the input, which", done.stderr)
        self.ok("repack", self.array, self.array, "-f", "--codec", "lz4")

    def test_a_directory_is_not_written_into(self):
        sparse = self.path("s.b2nd")
        self.ok("convert", self.array, sparse, "--sparse")
        inside = sorted(p.name for p in sparse.iterdir())
        for out in (sparse, sparse / "x.raw", sparse / "chunks.b2frame"):
            self.assertIn("is the input, which", self.fails(2, "get", sparse, "--to", "raw", "-o",
                                                         out, "-f"))
        self.assertEqual(sorted(p.name for p in sparse.iterdir()), inside)

    def test_dash_is_no_file(self):
        os.chdir(self.folder)
        self.addCleanup(os.chdir, "/")
        for command in (["create", "-", "--shape", "2", "--dtype", "u1"],
                        ["repack", self.array, "-"], ["convert", self.array, "-", "--to", "b2nd"],
                        ["get", self.array, "-o", "-", "--to", "b2nd"],
                        ["repair", self.array, "-o", "-"]):
            self.assertIn("standard output", self.fails(5, *command, "-f"))
        self.assertEqual(self.names(), ["a.b2nd"])

    def test_a_name_does_not_lie(self):
        for name, kind in (("x.npy", "a NumPy file"), ("x.raw", "raw items"), ("x.csv", "text"),
                           ("d.x/y.NPY", "a NumPy file")):
            for command in (["create", self.path(name), "--shape", "2", "--dtype", "u1"],
                            ["repack", self.array, self.path(name)],
                            ["repair", self.array, "-o", self.path(name)]):
                err = self.fails(2, *command)
                self.assertIn(f"with the name of {kind}; name it", err)
                self.assertIn(str(self.path(name))[:-4] + ".b2nd", err)
        self.assertEqual(self.names(), ["a.b2nd"])
        self.ok("convert", self.array, self.path("x.npy"), "--to", "b2nd")  # as requested
        self.assertEqual(self.text("get", self.path("x.npy"), "0"), "0 1 2 3\n")


class Statuses(Case):
    """2: wrong arguments. 3: input or output failed. 4: the bytes of an input are damaged. 5:
    they are valid, but not supported."""

    def test_truncated_input(self):
        path, out = self.path("a.npy"), self.path("out.b2nd")
        for cut in (1, 40, 90):
            path.write_bytes(npy(VALUES)[:-cut])
            self.fails(4, "convert", path, out)
            self.fails(4, "convert", "-", out, stdin=path.read_bytes())
        path.write_bytes(npy(VALUES) + b"more")
        self.fails(4, "convert", path, out)
        self.fails(4, "convert", "-", out, stdin=path.read_bytes())
        raw = ["--from", "raw", "--dtype", "u1", "--shape"]
        path.write_bytes(b"1234")
        self.fails(4, "convert", path, out, *raw, "5")
        self.fails(4, "convert", "-", out, *raw, "5", stdin=b"1234")
        self.fails(2, "convert", path, out, *raw, "3")
        self.fails(2, "convert", "-", out, *raw, "3", stdin=b"1234")
        self.ok("create", self.path("g.b2nd"), "--shape", "0,4", "--dtype", "<i4")
        for n in (1, 15, 17):
            self.path("in.raw").write_bytes(bytes(n))
            self.fails(4, "append", self.path("g.b2nd"), self.path("in.raw"))
            self.fails(4, "append", self.path("g.b2nd"), "-", "--from", "raw", stdin=bytes(n))
        self.assertEqual(self.names(), ["a.npy", "g.b2nd", "in.raw"])

    def header(self, descr, shape):
        text = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}".ljust(117)
        self.path("h.npy").write_bytes(b"\x93NUMPY\1\0" + bytes([118, 0]) + text.encode()
                                       + b"\n" + bytes(8))
        return self.path("h.npy")

    def test_headers_that_cannot_be(self):
        out = self.path("out.b2nd")
        for descr in ("'<q9'", "'what'", "'<f3'", "[('a', 'what')]"):
            err = self.fails(4, "convert", self.header(descr, "(1,)"), out)
            self.assertIn("is not a dtype: character", err)
            self.assertNotIn("dtype, character", err)
        self.fails(5, "convert", self.header("'|O'", "(1,)"), out)
        for axes in (16, 17, 18):
            path = self.header("'<f8'", str((1,) * axes))
            self.fails(5, "convert", path, out)
        self.ok("convert", self.header("'<f8'", str((1,) * 15)), out)
        self.fails(4, "convert", self.header("'<f8'", "(9999999999, 9999999999)"), out, "-f")

    def test_axes_of_an_argument(self):
        path = self.path("a.b2nd")
        for axes in (16, 17, 18):
            shape = ",".join("1" * axes)
            self.fails(2, "create", path, "--shape", shape, "--dtype", "u1")
            self.fails(2, "convert", "-", path, "--from", "raw", "--shape", shape, "--dtype",
                       "u1", stdin=b"1")
        self.ok("create", path, "--shape", ",".join("1" * 15), "--dtype", "u1")

    def test_arguments_that_are_none(self):
        path = self.path("a.b2nd")
        self.assertIn("--shape '-3': axis 0 is negative (-3)", self.fails(
            2, "create", path, "--shape", "-3", "--dtype", "u1"))
        self.assertIn("--shape '4,-1': axis 1 is negative (-1)", self.fails(
            2, "create", path, "--shape=4,-1", "--dtype", "u1"))
        for dtype in ("what", "", "u3"):
            err = self.fails(2, "create", path, "--shape", "3", "--dtype", dtype)
            self.assertIn(f"caterva: --dtype: '{dtype}' is not a dtype: character 0: ", err)
        self.assertEqual(self.names(), [])

    def test_convert_tells_what_it_can(self):
        page = self.text("convert", "--help")
        self.assertIn("format of the output: raw, npy, b2nd or zarr\n", page)
        self.path("a.npy").write_bytes(npy(VALUES))
        self.assertIn("--to must be raw, npy, b2nd or zarr", self.fails(
            2, "convert", self.path("a.npy"), self.path("a.csv"), "--to", "csv"))
        self.assertIn("csv", self.text("get", "--help"))


class Text(Case):
    """CSV and text in."""

    def convert(self, text, *options, name="t.csv"):
        self.path(name).write_text(text)
        self.ok("convert", self.path(name), self.path("out.b2nd"), "-f", *options)
        return blosc2.open(str(self.path("out.b2nd")))[...]

    def refuse(self, status, text, *options, name="t.csv"):
        self.path(name).write_text(text)
        return self.fails(status, "convert", self.path(name), self.path("no.b2nd"), *options)

    def test_numbers(self):
        for text, values in (("1,2\n3,4\n", [[1, 2], [3, 4]]), ("1\n2\n3", [1, 2, 3]),
                             ("1,2,3\n", [[1, 2, 3]]), ("-5\n", [-5]),
                             ("x,y\n1,2\n", [[1, 2]]), ("x\n1\n", [1]),
                             ("# a note\n\n 1 , 2\r\n\n3,4\r\n", [[1, 2], [3, 4]]),
                             ('"1","2"\n3,4\n', [[1, 2], [3, 4]]),
                             ('x,"y, z"\n1,2\n3,4\n', [[1, 2], [3, 4]])):
            got = self.convert(text)
            self.assertEqual((got.dtype, got.tolist()), (np.dtype("<i8"), values), text)
        got = self.convert("a,b\n1,\n2.5,nan\n1e3,inf\n")
        np.testing.assert_array_equal(got, [[1, np.nan], [2.5, np.nan], [1000, np.inf]])
        got = self.convert("1 2\t 3 \n4 5 6\n", name="t.txt")
        self.assertEqual(got.tolist(), [[1, 2, 3], [4, 5, 6]])

    def test_a_dtype(self):
        self.assertEqual(self.convert("1,2\n3,4", "--dtype", "u1").dtype, np.uint8)
        got = self.convert('ab,"c ""d"""\ne,\n', "--dtype", "|S8")
        self.assertEqual(got.tolist(), [[b"ab", b'c "d"'], [b"e", b""]])
        got = self.convert("2020-02-29,NaT\n1969-12-31,3\n", "--dtype", "M8[D]")
        self.assertEqual(got.astype(str).tolist(),
                         [["2020-02-29", "NaT"], ["1969-12-31", "1970-01-04"]])

    def test_what_get_prints_is_read(self):
        rng = np.random.default_rng(2)
        for values in (rng.normal(size=(30, 4)), rng.integers(-9, 9, 50), rng.random((3, 1, 5)),
                       np.array(["a,b", 'c"d', ""], "S5"), rng.random((2, 2)) < 0.5,
                       np.array(["2020-01-01T05", "NaT"], "M8[h]")):
            np.save(self.path("v.npy"), values)
            for name in ("v.csv", "v.txt") if values.dtype.kind != "S" else ("v.csv",):
                self.ok("get", self.path("v.npy"), "-o", self.path(name), "-f")
                self.ok("convert", self.path(name), self.path("w.b2nd"), "-f", "--dtype",
                        values.dtype.str)
                got = blosc2.open(str(self.path("w.b2nd")))[...]
                np.testing.assert_array_equal(got.ravel(), values.ravel())

    def test_into_arrays(self):
        np.save(self.path("v.npy"), np.zeros((2, 3), "f4"))
        self.ok("convert", self.path("v.npy"), self.path("a.b2nd"))
        self.ok("append", self.path("a.b2nd"), "-", "--from", "csv", stdin=b"1,2,3\n4,5,6\n")
        self.ok("put", self.path("a.b2nd"), "0,:2", "-", "--from", "text", stdin=b"7\n8\n")
        self.assertEqual(blosc2.open(str(self.path("a.b2nd")))[...].tolist(),
                         [[7, 8, 0], [0, 0, 0], [1, 2, 3], [4, 5, 6]])

    def test_a_row_has_two_axes(self):
        for name, text, more in (("k.csv", "x,y\n1,2\n", b"3,4\n"), ("k.txt", "1 2\n", b"3 4\n")):
            self.assertEqual(self.convert(text, name=name).tolist(), [[1, 2]])
            kind = name.replace("txt", "text")[2:]
            out = self.path("out.b2nd")
            self.ok("append", out, "-", "--from", kind, stdin=more)
            self.assertEqual(blosc2.open(str(out))[...].tolist(), [[1, 2], [3, 4]])
            self.ok("put", out, "0", "-", "--from", kind, stdin=b"5,6" if kind == "csv" else b"5 6")
            self.ok("put", out, "1:", "-", "--from", kind, stdin=more)
            self.ok("append", out, "-", "--from", kind, "--axis", "1", stdin=b"7\n8\n")
            self.ok("append", out, "-", "--from", kind, "--axis", "1", stdin=more)
            self.assertEqual(blosc2.open(str(out))[...].tolist(), [[5, 6, 7, 3], [3, 4, 8, 4]])
        self.assertEqual(self.convert("x,y\n").shape, (0, 2))
        self.path("empty.csv").write_text("x,y\n")
        self.ok("append", self.path("out.b2nd"), self.path("empty.csv"))
        self.assertEqual(self.convert("1\n2\n").tolist(), [1, 2])
        self.ok("append", self.path("out.b2nd"), "-", "--from", "csv", stdin=b"3,4,5\n")
        self.assertEqual(blosc2.open(str(self.path("out.b2nd")))[...].tolist(), [1, 2, 3, 4, 5])
        self.assertIn("the input has (1, 3)", self.append_row((0, 2), b"1,2,3\n"))
        self.assertIn("the input has (1, 3)", self.append_row((4, 2), b"1,2,3\n", "--axis", "1"))

    def append_row(self, shape, row, *options):
        path = self.path("row.b2nd")
        self.ok("create", path, "-f", "--shape", ",".join(map(str, shape)), "--dtype", "<i8")
        return self.fails(2, "append", path, "-", "--from", "csv", *options, stdin=row)

    def test_refused(self):
        self.assertIn("line 2 has 1 cells, but the first row has 2", self.refuse(4, "1,2\n3\n"))
        self.assertIn("line 3, column 2: 'x' is not a value of int32",
                      self.refuse(2, "a,b\n1,2\n3,x\n", "--dtype", "i4"))
        self.assertIn("line 2, column 1: '256' is not a value of uint8",
                      self.refuse(2, "1\n256\n", "--dtype", "u1"))
        self.assertIn("the quote is not closed", self.refuse(4, '1,"2\n3,4'))
        self.assertIn("is not text", self.refuse(4, "1,2\0,3"))

    def test_a_header_has_no_number(self):
        for text, dtype, values in (("x,y\n1,2\n3,4\n", "u1", [[1, 2], [3, 4]]),
                                    (",x\n0,1\n2,3\n", "i4", [[0, 1], [2, 3]]),
                                    ("nan,inf\n1,2\n", "f8", [[np.nan, np.inf], [1, 2]]),
                                    (",\n1,2\n", "f8", [[np.nan, np.nan], [1, 2]]),
                                    ("a,b\n2j,1\n3,4\n", "c8", [[2j, 1], [3, 4]]),
                                    ("true,NaN\n", "S4", [[b"true", b"NaN"]]),
                                    ("\ufeff1,2\n3,4\n", "u1", [[1, 2], [3, 4]]),
                                    ("\ufeffx,y\n1,2\n3,4\n", "u1", [[1, 2], [3, 4]])):
            got = self.convert(text, "--dtype", dtype)
            np.testing.assert_array_equal(got.reshape(-1, 2), values, text)
        self.assertEqual(self.convert("\ufeff1,2\n3,4\n").tolist(), [[1, 2], [3, 4]])
        self.assertEqual(self.convert("\ufeff1 2\n3 4\n", name="t.txt").tolist(),
                         [[1, 2], [3, 4]])

    def test_a_first_row_with_a_number_is_data(self):
        path = self.path("log.b2nd")
        for dtype, text, column, cell in (
                ("<i4", b"1.5,2\n3,4\n", 1, "1.5"), ("|u1", b"300,2\n3,4\n", 1, "300"),
                ("<f8", b"NA,1\n3,4\n", 1, "NA"), ("<f4", b"1, null \n", 2, "null"),
                ("<i4", b"1,nan\n", 2, "nan"), ("<i4", b"7,\n", 2, ""),
                ("<i4", b",\n1,2\n", 1, ""), ("<M8[D]", b"2020-02-30,2020-03-01\n", 1, "2020-02-30"),
                ("<i4", b"\xef\xbb\xbf1,x\n", 2, "x")):
            self.ok("create", path, "-f", "--shape", "0,2", "--dtype", dtype)
            err = self.fails(2, "append", path, "-", "--from", "csv", stdin=text)
            self.assertIn(f"line 1, column {column}: '{cell}' is not a value of", err, text)
            self.assertEqual(blosc2.open(str(path)).shape, (0, 2))
        self.assertIn("line 1, column 1: 'NA' is not a value of float64",
                      self.refuse(2, "NA,1\n2,3\n"))

    def test_fill_of_times(self):
        for dtype, fill, got in (("M8[D]", "2020-02-29", "2020-02-29"), ("M8[D]", "5", "1970-01-06"),
                                 ("M8[M]", "1969-11", "1969-11"), ("M8[Y]", "2020-01-01", "2020"),
                                 ("M8[ns]", "2020-01-01T12:30:01.5", "2020-01-01T12:30:01.500000000"),
                                 ("m8[s]", "-7", "-7s"), ("M8[s]", "nat", "NaT"), ("m8[h]", "NaT", "NaT")):
            path = self.path("f.b2nd")
            self.ok("create", path, "-f", "--shape", "1", "--dtype", dtype, "--fill", fill)
            self.assertEqual(self.text("get", path).strip(), got, (dtype, fill))
        for dtype, fill in (("M8[D]", "2020-02-30"), ("M8[h]", "2020-01-01T12:30"),
                            ("M8[2Y]", "2021-01-01"), ("m8[s]", "2020-01-01"), ("M8[D]", "soon")):
            self.fails(2, "create", self.path("g.b2nd"), "--shape", "1", "--dtype", dtype,
                       "--fill", fill)


class NumPyFiles(Case):
    """get, stats and view accept them as arrays."""

    def test_all(self):
        values = np.random.default_rng(1).integers(0, 250, (40, 30)).astype("<u1")
        for order in "CF":
            np.save(self.path("v.npy"), np.asarray(values, order=order))
            self.ok("convert", self.path("v.npy"), self.path("v.b2nd"), "-f")
            for arguments in (["get"], ["get", "3:5,::2"], ["get", "::-9,-1", "--csv"],
                              ["stats", "--json"], ["stats", "1:,::3", "--bins", "5"], ["view"],
                              ["view", "::4,:"]):
                got = [self.text(arguments[0], self.path(name), *arguments[1:])
                       .replace(name, "FILE") for name in ("v.npy", "v.b2nd")]
                self.assertEqual(got[0].replace("|u1", "u1"), got[1].replace("|u1", "u1"), arguments)
        self.assertIn("require b2nd", self.fails(2, "get", self.path("v.npy"), "--sel", "x=1"))


class Fields(Case):
    def test_get(self):
        dtype = np.dtype([("a", "<f4"), ("b", [("c", "<i2"), ("d", "<M8[s]")]), ("v", "<i4", (2,))])
        values = np.zeros((3, 4), dtype)
        values["a"] = np.arange(12).reshape(3, 4)
        values["b"]["c"] = -values["a"].astype("i2")
        np.save(self.path("v.npy"), values)
        path = self.path("v.b2nd")
        self.ok("convert", self.path("v.npy"), path)
        self.assertEqual(self.text("get", path, "1", "--field", "a"), "4 5 6 7\n")
        self.assertEqual(self.text("get", path, "::2,[0,3]", "--field", "b.c"), "0 -3\n-8 -11\n")
        self.ok("get", path, "--field", "b", "-o", self.path("b.npy"))
        np.testing.assert_array_equal(np.load(self.path("b.npy")), values["b"])
        self.ok("get", path, "--field", "a", "--astype", "f8", "-o", self.path("a.b2nd"))
        self.assertEqual(blosc2.open(str(self.path("a.b2nd")))[...].tolist(),
                         values["a"].tolist())
        self.assertIn("no field 'z'", self.fails(2, "get", path, "--field", "z"))
        self.fails(5, "get", path, "--field", "v")
        self.fails(2, "get", path, "--field", "a", "--skip-damaged")


class Hints(Case):
    def test_hints(self):
        path = self.array = self.path("a.b2nd")
        self.ok("create", path, "--shape", "3,3", "--dtype", "f4")
        self.assertIn("--png OUT", self.fails(2, "view", path, "-o", "x.png"))
        self.assertIn("view --png", self.fails(2, "get", path, "-o", "x.png"))
        tree = self.path("t.b2d")
        with blosc2.TreeStore(str(tree), mode="w") as store:
            store["/x"] = np.arange(3)
        self.ok("pack", tree, self.path("t.b2z"))
        for name in ("t.b2d", "t.b2z"):
            said = self.fails(3, "get", f"{self.path(name)}::x")
            self.assertIn(f"{name}::/x", said)
            said = self.fails(5, "convert", self.path(name), self.path("y.npy"))
            self.assertIn("is a tree of arrays", said)
        self.path("token").write_bytes(b"1,2,3\n")
        self.assertIn("are not a part's token", self.fails(4, "jobs", "merge", path, self.path("token")))
        self.assertNotIn("-1", self.fails(4, "jobs", "merge", path, self.path("token")))


if __name__ == "__main__":
    main()

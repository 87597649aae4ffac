"""raw, npy and b2nd, in both directions: bit for bit, in bounded memory, through pipes."""

import io
import json
import os
import subprocess
import zipfile

import blosc2
import numpy as np

from tool_cli import CLI, Case, environment, main, run

DTYPES = ["?", "<i1", ">i4", "<u8", "<f2", ">f8", "<c16", "|S5", "<U3", ">U2", "|V7",
          "<M8[ns]", ">m8[25s]", [("a", "<f4"), ("b", ">i8", (2,))]]


def sample(shape, dtype, seed=1):
    dtype = np.dtype(dtype)
    count = int(np.prod(shape))
    rng = np.random.default_rng(seed)
    if dtype.kind == "U":
        words = ["".join(chr(c) for c in rng.integers(65, 1000, 3)) for _ in range(count)]
        return np.array(words, dtype).reshape(shape)
    data = rng.integers(0, 2 if dtype.kind == "b" else 256, count * dtype.itemsize, "u1")
    return data.view(dtype).reshape(shape)


class Convert(Case):
    def same(self, path, values):
        read = blosc2.open(str(path))
        self.assertEqual((read.shape, read.dtype), (values.shape, values.dtype))
        self.assertEqual(np.asarray(read[...]).tobytes(), values.tobytes())

    def test_npy_there_and_back(self):
        npy, b2nd, again = (self.path(n) for n in ("a.npy", "a.b2nd", "b.npy"))
        for dtype in DTYPES:
            for shape in ((), (5,), (3, 4), (2, 0, 3), (4, 3, 2, 5)):
                values = sample(shape, dtype)
                np.save(npy, values)
                self.ok("convert", npy, b2nd, "-f")
                self.same(b2nd, values)
                self.ok("convert", b2nd, again, "-f")
                self.assertEqual(npy.read_bytes(), again.read_bytes(), (dtype, shape))

    def test_raw_there_and_back(self):
        values = sample((7, 11), ">f8")
        raw, b2nd = self.path("a.raw"), self.path("a.b2nd")
        raw.write_bytes(b"head" + values.tobytes())
        self.ok("convert", raw, b2nd, "--shape", "7,11", "--dtype", ">f8", "--offset", 4)
        self.same(b2nd, values)
        self.ok("convert", b2nd, self.path("b.bin"))
        self.assertEqual(self.path("b.bin").read_bytes(), values.tobytes())

    def test_one_array_as_a_tree(self):
        """The array has the name of the file. -f replaces a tree, but no other folder."""
        values = sample((7, 5), "<f4")
        np.save(self.path("a b.npy"), values)
        for name in ("t.b2d", "t.b2z"):
            self.ok("convert", self.path("a b.npy"), self.path(name), "--verify")
            self.assertIn("exists already", self.fails(3, "convert", self.path("a b.npy"),
                                                       self.path(name)))
            self.ok("convert", self.path("a b.npy"), self.path(name), "-f")
            read = self.text("get", "%s::/a b" % self.path(name), "--csv")
            np.testing.assert_array_equal(np.loadtxt(io.StringIO(read), delimiter=",",
                                                     dtype="<f4"), values)
        self.assertEqual(self.text("convert", self.path("a b.npy"), self.path("u.b2z"), "--dry-run"),
                         "%s::/a b  (7, 5) <f4\n" % self.path("u.b2z"))
        self.ok("convert", "-", self.path("u.b2d"), "--from", "text", stdin=b"1 2\n3 4\n")
        self.assertEqual(self.text("ls", self.path("u.b2d")), "data\n")
        self.path("other.b2d").mkdir()
        self.path("other.b2d/precious").write_bytes(b"x")
        self.fails(5, "convert", self.path("a b.npy"), self.path("other.b2d"), "-f")
        self.assertEqual(self.path("other.b2d/precious").read_bytes(), b"x")
        self.assertEqual(self.names(), ["a b.npy", "other.b2d", "t.b2d", "t.b2z", "u.b2d"])

    def test_damaged_members_are_not_left_out(self):
        np.save(self.path("a.npy"), np.arange(12))
        self.ok("convert", self.path("a.npy"), self.path("t.b2d"))
        array = self.path("t.b2d/a.b2nd")
        array.write_bytes(array.read_bytes()[:100])
        for name in ("o.b2d", "o.b2z", "o.npz"):
            err = self.fails(4, "convert", self.path("t.b2d"), self.path(name))
            self.assertIn("/a is damaged", err)
            self.assertFalse(self.path(name).exists())

    def test_resume_deletes_what_kills_left(self):
        np.save(self.path("a.npy"), sample((100, 100), "<f8"))
        with zipfile.ZipFile(self.path("a.npz"), "w") as archive:
            archive.write(self.path("a.npy"), "a.npy")
        self.path(".o.b2nd.partial.b2nd.tmp-abc123").write_bytes(b"left")
        self.path("..o.b2d.tmp-abc123.b2d.tmp-abc123").mkdir()
        self.path(".o.b2d.tmp-xyz123.b2d").mkdir()
        self.path(".o.b2d.tmp-xyz123.b2d/embed.b2e").write_bytes(b"left")
        self.path(".p.b2d.tmp-xyz123.b2d").mkdir() # of another tree
        self.ok("convert", self.path("a.npy"), self.path("o.b2nd"), "--resume")
        self.ok("convert", self.path("a.npz"), self.path("o.b2d"), "--resume")
        self.assertEqual(self.names(), [".p.b2d.tmp-xyz123.b2d", "a.npy", "a.npz", "o.b2d", "o.b2nd"])

    def test_fortran_order(self):
        npy, b2nd = self.path("a.npy"), self.path("a.b2nd")
        for shape in ((6, 1), (30, 20), (7, 8, 9), (3, 5, 2, 4)):
            values = sample(shape, "<i4")
            np.save(npy, np.asfortranarray(values))
            for extra in ([], ["--memory", "4096", "--chunks", ",".join("2" * len(shape))]):
                self.ok("convert", npy, b2nd, "-f", *extra)
                self.same(b2nd, values)
            out = self.ok("convert", npy, "-", "--to", "raw", "--memory", "4096")
            self.assertEqual(out, values.tobytes())

    def test_npy_versions(self):
        values = sample((3, 2), "<f4")
        for version in ((1, 0), (2, 0), (3, 0)):
            with open(self.path("v.npy"), "wb") as file:
                np.lib.format.write_array(file, values, version=version)
            self.ok("convert", self.path("v.npy"), self.path("v.b2nd"), "-f")
            self.same(self.path("v.b2nd"), values)
        named = np.zeros(2, [("\u00e9'", "<i4")])
        named["\u00e9'"] = [1, 2]
        path = self.path("n.b2nd")
        blosc2.asarray(named, urlpath=str(path))
        self.ok("convert", path, self.path("n.npy"))
        np.testing.assert_array_equal(np.load(self.path("n.npy")), named)

    def test_padded_structure(self):
        values = np.zeros(4, np.dtype([("a", "u1"), ("b", "<f8"), ("c", "u1")], align=True))
        values["b"] = np.arange(4)
        np.save(self.path("a.npy"), values)
        self.ok("convert", self.path("a.npy"), self.path("a.b2nd"))
        self.same(self.path("a.b2nd"), values)
        self.ok("convert", self.path("a.b2nd"), self.path("b.npy"))
        again = np.load(self.path("b.npy"))
        self.assertEqual(again.dtype.itemsize, values.dtype.itemsize)
        np.testing.assert_array_equal(again["b"], values["b"])

    def test_pipes(self):
        values = sample((50, 6, 7), "<u2")
        file = io.BytesIO()
        np.save(file, values)
        path = self.path("p.b2nd")
        self.ok("convert", "-", path, "--from", "npy", "--chunks", "8,4,4",
                "--memory", "4096", stdin=file.getvalue())
        self.same(path, values)
        self.ok("convert", "-", path, "--from", "raw", "--shape", "50,6,7", "--dtype", "<u2",
                "--offset", "3", "-f", stdin=b"xyz" + values.tobytes())
        self.same(path, values)
        self.assertEqual(self.ok("convert", path, "-", "--to", "npy"), file.getvalue())
        self.assertEqual(self.ok("convert", path, "-", "--to", "raw"), values.tobytes())

    def test_partition_codec_and_layout(self):
        values = sample((40, 30), "<i4") >> 20
        np.save(self.path("a.npy"), values)
        path = self.path("a.b2nd")
        self.ok("convert", self.path("a.npy"), path, "--chunks", "20,30", "--blocks", "5,6",
                "--codec", "lz4", "--level", "3", "--filters", "shuffle,bytedelta:4")
        read = blosc2.open(str(path))
        self.assertEqual((read.chunks, read.blocks), ((20, 30), (5, 6)))
        self.assertEqual(read.schunk.cparams.codec, blosc2.Codec.LZ4)
        self.assertEqual(read.schunk.cparams.clevel, 3)
        filters = [f for f in read.schunk.cparams.filters if f != blosc2.Filter.NOFILTER]
        self.assertEqual(filters, [blosc2.Filter.SHUFFLE, blosc2.Filter.BYTEDELTA])
        self.same(path, values)

        self.ok("convert", path, self.path("s.b2nd"), "--sparse", "--chunks", "7,7")
        self.assertTrue(self.path("s.b2nd").is_dir())
        self.same(self.path("s.b2nd"), values)
        kept = blosc2.open(str(self.path("s.b2nd"))).schunk.cparams.codec
        self.assertEqual(kept, blosc2.Codec.LZ4)
        self.ok("convert", path, self.path("c.b2nd"))
        copy = blosc2.open(str(self.path("c.b2nd")))
        self.assertEqual((copy.chunks, copy.blocks), ((20, 30), (5, 6)))

    def test_lossy_codec(self):
        values = np.sin(np.arange(64**3) / 999).reshape(64, 64, 64).astype("<f4")
        np.save(self.path("a.npy"), values)
        path = self.path("a.b2nd")
        self.ok("convert", self.path("a.npy"), path, "--codec", "zfp-accuracy:-3", "--chunks",
                "32,32,32", "--blocks", "16,16,16")
        self.assertIn("codec    zfp-accuracy 5:-3     fill 0     dead",
                      self.text("info", path))
        self.assertLess(np.abs(blosc2.open(str(path))[...] - values).max(), 1e-3)
        self.assertLess(path.stat().st_size, values.nbytes // 3)

    def test_caterva_metalayer_and_dtype(self):
        values = sample((9, 8), "<f4")
        np.save(self.path("a.npy"), values)
        self.ok("convert", self.path("a.npy"), self.path("a.cat"), "--metalayer", "caterva")
        self.assertIn("Caterva in a contiguous frame", self.text("info", self.path("a.cat")))
        self.ok("convert", self.path("a.cat"), self.path("b.b2nd"), "--view-dtype",
                "<f4")
        self.same(self.path("b.b2nd"), values)

    def test_attributes_metalayers_and_fill_come_along(self):
        values = {"note": "x", "map": {"a": [1, None, b"\0"]}, "big": list(range(5000))}
        self.ok("create", self.path("a.b2nd"), "--shape", "6,5", "--dtype", "<f4", "--fill",
                "2.5", "--chunks", "4,4")
        array = blosc2.open(str(self.path("a.b2nd")), mode="a")
        for key, value in values.items():
            array.schunk.vlmeta[key] = value
        for name, options in (("b.b2nd", []), ("s.b2nd", ["--sparse", "--codec", "lz4"]),
                              ("c.b2nd", ["--chunks", "3,3"]),
                              ("d.b2nd", ["--select", "1:,0"]),
                              ("e.b2nd", ["--view-dtype", "<i4"])):
            copy = self.path(name)
            self.ok("convert", self.path("a.b2nd"), copy, *options)
            array = blosc2.open(str(copy))
            self.assertEqual({key: array.schunk.vlmeta[key] for key in values}, values)
            facts = json.loads(self.text("info", copy, "--json"))
            self.assertEqual(list(facts["attributes"]), list(values))
            self.assertEqual(facts["fill"], 0x40200000 if "<i4" in options else 2.5)
            self.ok("resize", copy, ",".join(str(n + 3) for n in facts["shape"]))
            last = ",".join(["-1"] * len(facts["shape"]))
            self.assertEqual(float(self.text("get", copy, last)), facts["fill"])
        array = blosc2.asarray(np.arange(5), urlpath=str(self.path("m.b2nd")),
                               meta={"mine": b"fixed"})
        array.schunk.vlmeta["note"] = "x"
        self.ok("convert", self.path("m.b2nd"), self.path("n.b2nd"))
        copy = blosc2.open(str(self.path("n.b2nd")))
        self.assertEqual((copy.schunk.meta["mine"], copy.schunk.vlmeta["note"]),
                         (b"fixed", "x"))
        self.ok("convert", self.path("m.b2nd"), self.path("m.npy"))
        np.testing.assert_array_equal(np.load(self.path("m.npy")), np.arange(5))

    def test_select(self):
        values = sample((20, 10), "<i8")
        np.save(self.path("a.npy"), values)
        self.ok("convert", self.path("a.npy"), self.path("a.b2nd"), "--select", "::-3,4")
        self.same(self.path("a.b2nd"), values[::-3, 4])

    def test_memory_is_bounded(self):
        rows, columns = 700, 20000  # 112 MB
        path, b2nd = self.path("a.raw"), self.path("a.b2nd")
        line = np.arange(columns, dtype="<f8").tobytes()
        with open(path, "wb") as file:
            for _ in range(rows):
                file.write(line)
        shape = ["--shape", f"{rows},{columns}", "--dtype", "<f8"]
        for arguments in (["convert", path, b2nd, *shape, "--codec", "lz4"],
                          ["convert", b2nd, self.path("b.raw")],
                          ["convert", b2nd, self.path("c.b2nd"), "--chunks", "200,999"],
                          ["convert", path, self.path("d.b2nd"), *shape, "--chunks", "700,2000"]):
            child = subprocess.Popen([CLI, *map(str, arguments), "--memory", "16MiB"],
                                     env=environment())
            _, status, usage = os.wait4(child.pid, 0)
            self.assertEqual(status, 0)
            if b"__asan_init" not in open(CLI, "rb").read():
                self.assertLess(usage.ru_maxrss // 1024, 80, arguments)
        self.assertEqual(self.path("b.raw").read_bytes(), path.read_bytes())
        info = json.loads(self.text("info", "--json", self.path("d.b2nd")))
        self.assertEqual(info["dead_bytes"], 0)  # a chunk that is larger than the memory is written once
        self.ok("convert", self.path("c.b2nd"), self.path("c.raw"))
        self.assertEqual(self.path("c.raw").read_bytes(), path.read_bytes())


class Refusals(Case):
    def refuse(self, status, *arguments, **kwargs):
        err = self.fails(status, "convert", *arguments, **kwargs)
        self.assertFalse([n for n in self.names() if n.startswith((".", "out"))])
        return err

    def test_sizes(self):
        raw, out = self.path("a.raw"), self.path("out.b2nd")
        raw.write_bytes(bytes(99))
        err = self.refuse(4, raw, out, "--shape", "5,5", "--dtype", "<f4")
        self.assertIn("99 bytes", err)
        self.assertIn("needs 100", err)
        self.assertIn("--shape", self.refuse(2, raw, out))
        self.refuse(2, raw, out, "--shape", "99,99999999999,99999999999", "--dtype", "<f4")
        pipe = ["-", out, "--from", "raw", "--dtype", "u1", "--shape"]
        self.refuse(4, *pipe, "9", stdin=b"1234")
        self.refuse(2, *pipe, "2", stdin=b"1234")
        self.refuse(2, raw, out, "--shape", "11,x", "--dtype", "u1")
        self.refuse(2, raw, out, "--shape", "99", "--dtype", "u3")

    def test_npy(self):
        npy, out = self.path("a.npy"), self.path("out.b2nd")
        np.save(npy, np.array([None, 1], dtype=object), allow_pickle=True)
        self.assertIn("Python objects", self.refuse(5, npy, out))
        good = io.BytesIO()
        np.save(good, np.arange(9))
        npy.write_bytes(good.getvalue()[:-1])
        self.assertIn("71 bytes", self.refuse(4, npy, out))
        for bad in (b"", b"\x93NUMPY", b"hello world, this is no array",
                    good.getvalue()[:40], b"\x93NUMPY\x01\x00\xff\xff{'descr': "):
            npy.write_bytes(bad)
            self.refuse(4, npy, out)
        npy.write_bytes(b"\x93NUMPY\x09" + good.getvalue()[7:])
        self.assertIn("9.0", self.refuse(5, npy, out))
        npy.write_bytes(good.getvalue().replace(b"'shape': (9,)", b"'shapf': (9,)"))
        self.refuse(4, npy, out)
        fortran = io.BytesIO()
        np.save(fortran, np.asfortranarray(np.ones((3, 4))))
        self.refuse(5, "-", out, "--from", "npy", stdin=fortran.getvalue())

    def test_missing_plugins(self):
        source, folder = self.path("a.h5"), self.path("none")
        source.write_bytes(b"\x89HDF\r\n\x1a\n")
        folder.mkdir()
        blosc2.zeros((2,), urlpath=str(self.path("a.b2nd")))
        err = self.fails(5, "convert", source, self.path("o.b2nd"), CATERVA_PLUGINS=folder)
        self.assertIn("caterva-hdf5), or use Python: python -m caterva convert\n", err)
        err = self.fails(5, "convert", self.path("a.b2nd"), self.path("o.nc"),
                         CATERVA_PLUGINS=folder)
        self.assertIn("the plug-in netcdf.so is missing: install it (on Debian: caterva-netcdf)\n",
                      err)
        self.assertEqual(self.names(), ["a.b2nd", "a.h5", "none"])

    def test_formats(self):
        npy, out = self.path("a.npy"), self.path("out.b2nd")
        np.save(npy, np.arange(9))
        self.assertIn("--to", self.refuse(2, npy, self.path("out.what")))
        self.assertIn("'fits'", self.refuse(2, npy, out, "--from", "fits"))
        self.refuse(2, npy, "-")
        self.refuse(5, npy, "-", "--to", "b2nd")
        self.refuse(2, npy, self.path("out.txt"))
        self.refuse(2, npy, out, "--dtype", "<i4")
        self.refuse(2, npy, out, "--codec", "zip")
        self.refuse(2, npy, out, "--filters", "shuffle,shuffel")
        self.refuse(2, npy, out, "--chunks", "3,3")
        self.refuse(2, npy, out, "--chunks", "3", "--blocks", "4")
        self.refuse(2, npy, out, "--level", "10")
        self.refuse(2, npy, out, "--metalayer", "hdf5")
        self.refuse(3, self.path("missing.npy"), out)
        self.refuse(3, npy, self.path("no/such/folder/out.b2nd"))
        self.refuse(3, npy, self.path("no/such/folder/out.npy"), "--select", "1:")


if __name__ == "__main__":
    main()

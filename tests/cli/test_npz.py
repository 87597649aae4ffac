"""npz files there and back, compared with NumPy."""

import io
import struct
import unittest
import zipfile

import numpy as np

from tool_cli import LONG, main, run
from tool_foreign import ForeignCase, items, need, random_of, rounds

need("numpy")

DTYPES = ["?", "<i1", ">i4", "<u8", "<f2", ">f8", "<c16", "|S5", "<U3", ">U2", "|V7", "<M8[ns]",
          ">m8[25s]", [("a", "<f4"), ("b", ">i8", (2,))], [("n", [("x", "<u2"), ("y", "S3")])],
          [("\u00e9", "S3"), ("b\u00df", "<i2")], [("\u65e5", "<i2")]]


def member_names(rng, n):
    names = rng.sample(["a", "b", "arr_0", "a b", "\u00e4", "deep/er/x", "deep/y", "c.npy", "1"], n)
    return names


def sample(rng, dtype):
    shape = tuple(rng.randrange(5) for _ in range(rng.randrange(5)))
    dtype = np.dtype(dtype)
    if dtype.kind == "?":
        return items(rng, shape, "u1") % 2 == 1
    if dtype.kind == "U":
        return (items(rng, shape + (dtype.itemsize // 4,), "u1").astype(dtype.byteorder + "u4")
                + 1).view(dtype).reshape(shape)
    return items(rng, shape, dtype)


class Npz(ForeignCase):
    def compare(self, path, arrays):
        with np.load(path) as read:
            self.assertEqual(sorted(read.files), sorted(arrays))
            for name, values in arrays.items():
                self.assertEqual(read[name].dtype, values.dtype)
                self.assertEqual(read[name].shape, values.shape)
                self.assertEqual(read[name].tobytes(), values.tobytes(), name)

    def test_random_files(self):
        rng = random_of(self)
        for _ in range(rounds(30)):
            arrays = {}
            for name in member_names(rng, rng.randrange(1, 6)):
                values = sample(rng, rng.choice(DTYPES))
                arrays[name] = np.asfortranarray(values) if rng.random() < 0.3 else values
            path, tree, back = (self.path(n) for n in ("a.npz", "a.b2z", "b.npz"))
            rng.choice((np.savez, np.savez_compressed))(path, **arrays)
            self.ok("convert", path, tree, "-f", "--strict", "--verify")
            self.ok("convert", tree, back, "-f", "--strict", "--verify")
            self.compare(back, arrays)
            self.assertIsNone(zipfile.ZipFile(back).testzip())

    def test_one_array(self):
        values = np.arange(24, dtype=">i2").reshape(2, 3, 4)
        path = self.path("a.npz")
        np.savez(path, one=values, two=values + 1)
        self.ok("convert", str(path) + "::/two", self.path("a.b2nd"))
        self.same(self.path("a.b2nd"), values + 1)
        self.ok("convert", self.path("a.b2nd"), self.path("b.npz"), "--strict")
        with np.load(self.path("b.npz")) as read:
            np.testing.assert_array_equal(read[read.files[0]], values + 1)

    def test_random_access(self):
        rng = random_of(self)
        values = items(rng, (300, 70, 201), "<i4")
        values[100:200] = 7
        for save in (np.savez, np.savez_compressed):
            for order in (np.ascontiguousarray, np.asfortranarray):
                path = self.path("a.npz")
                save(path, a=order(values))
                self.ok("convert", str(path) + "::/a", self.path("a.b2nd"), "-f", "--memory", "1MiB")
                self.same(self.path("a.b2nd"), values)
                for _ in range(4):
                    a, b, c = (rng.randrange(n) for n in values.shape)
                    out = self.ok("get", str(path) + "::/a", "%d,%d:,%d" % (a, b, c), "--to", "raw")
                    self.assertEqual(out, values[a, b:, c].tobytes())

    def test_losses(self):
        path = self.path("a.npz")
        np.savez(path, good=np.arange(3), objects=np.array([1, "a"], object),
                 fields=np.zeros(2, [("O", "f4"), ("o", "O")]),
                 **{"v": np.zeros(2, "V0"), "s/t": np.zeros(2, "V0"), "good/a/b": np.zeros(2),
                    "axes": np.zeros((1,) * 16), "many": np.zeros((1,) * 17)})
        with zipfile.ZipFile(path, "a") as file:
            file.writestr("notes.txt", "hello")
            file.writestr("../up.npy", "x")
            file.writestr("good.npy", "x")
        status, _, err = run("convert", path, self.path("a.b2z"))
        self.assertEqual(status, 0, err)
        for words in ("/objects: Python objects", "/fields: Python objects", "/notes.txt: a member",
                      "/../up.npy: a member whose name", "/good.npy: a member whose name",
                      "/v: items of no bytes", "/s/t: items of no bytes",
                      "/good/a/b: a member below an array", "/axes: an array of 16 axes",
                      "/many: an array of 17 axes"):
            self.assertIn(words, err)
        status, _, err = run("convert", path, self.path("b.b2z"), "--strict")
        self.assertNotEqual(status, 0)
        self.assertFalse(self.path("b.b2z").exists())

    def test_damage(self):
        path, out = self.path("a.npz"), self.path("a.b2z")
        for save in (np.savez, np.savez_compressed):
            save(path, a=np.arange(1000), b=np.zeros(5))
            whole = path.read_bytes()
            at = whole.index(b"NUMPY") if save is np.savez else 60
            broken = bytearray(whole)
            broken[at + 300] ^= 1
            path.write_bytes(broken)
            self.refused("convert", path, out)
            for size in (0, 10, len(whole) // 2, len(whole) - 1):
                path.write_bytes(whole[:size])
                self.refused("convert", path, out)
        header = io.BytesIO()
        np.lib.format.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": False,
                                                      "shape": (5000, 5000, 5000)})
        with zipfile.ZipFile(path, "w") as file:
            file.writestr("a.npy", header.getvalue())
        self.assertIn("instead of 1000000000", self.refused("convert", path, out))
        whole = bytearray(path.read_bytes())
        for magic, position in ((b"PK\1\2", 24), (b"PK\3\4", 22)):  # the size before packing
            at = whole.index(magic)
            whole[at + position:at + position + 4] = struct.pack("<I", 0xFFFFFFF0)
        path.write_bytes(whole)
        self.refused("convert", path, out)
        self.assertEqual(self.names(), ["a.npz"])

    @unittest.skipUnless(LONG, "needs 10 GB of disk")
    def test_zip64(self):
        values = np.zeros(600_000_000, "f8")
        values[::1_000_003] = 1
        np.savez_compressed(self.path("a.npz"), a=values, b=np.arange(3))
        self.ok("convert", self.path("a.npz"), self.path("a.b2z"))
        self.ok("convert", self.path("a.b2z"), self.path("b.npz"))
        with np.load(self.path("b.npz")) as read:
            self.assertTrue((read["a"] == values).all())
            np.testing.assert_array_equal(read["b"], np.arange(3))

    def test_mutations(self):
        rng = random_of(self)
        for save in (np.savez, np.savez_compressed):
            save(self.path("a.npz"), a=np.arange(30).reshape(5, 6), b=np.float32(3))
            for data in self.mutated(rng, self.path("a.npz").read_bytes(), rounds(40)):
                self.path("m.npz").write_bytes(data)
                self.survives(rng, self.path("m.npz"))


if __name__ == "__main__":
    main()

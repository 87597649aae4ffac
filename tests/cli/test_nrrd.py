"""NRRD files there and back, compared with pynrrd."""

import gzip
import json

import numpy as np

from tool_cli import main, run
from tool_foreign import ForeignCase, items, need, random_of, rounds

nrrd, = need("nrrd")

DTYPES = ["i1", "u1", "<i2", ">i2", "<u2", "<i4", ">u4", "<i8", ">u8", "<f4", ">f4", "<f8"]
DERIVED = ("type", "endian", "dimension", "sizes", "encoding", "data file")
WORDS = ["space", "domain", "list", "vector", "time"]


def number(rng):
    return rng.choice((0, 1, -1.5, rng.uniform(-100, 100), rng.uniform(0, 1e-3)))


def random_header(rng, ndim):
    header = {}
    if rng.random() < 0.5:
        header["kinds"] = [rng.choice(WORDS) for _ in range(ndim)]
    if rng.random() < 0.5:
        header["labels"] = ["axis %d" % d for d in range(ndim)]
    if rng.random() < 0.5:
        header["units"] = [rng.choice(("mm", "s", "", "\\mu m")) for _ in range(ndim)]
    if rng.random() < 0.5:
        header["centerings"] = [rng.choice(("cell", "node", "none")) for _ in range(ndim)]
    if ndim >= 3 and rng.random() < 0.7:
        header["space"] = rng.choice(("left-posterior-superior", "RAS", "left-anterior-superior",
                                      "scanner-xyz"))
        rows = [[number(rng) for _ in range(3)] for _ in range(3)] + [[np.nan] * 3] * (ndim - 3)
        if rng.random() < 0.3:
            rng.shuffle(rows)
        header["space directions"] = np.array(rows)
        header["space origin"] = np.array([number(rng) for _ in range(3)])
        if rng.random() < 0.5:
            header["space units"] = ["mm"] * 3
        if rng.random() < 0.3:
            header["measurement frame"] = np.eye(3)
    elif rng.random() < 0.7:
        header["spacings"] = np.array([rng.choice((np.nan, rng.uniform(0.1, 9))) for _ in range(ndim)])
    if rng.random() < 0.3:
        header["content"] = "a head, of 3 mm"
    if rng.random() < 0.3:
        header["sample units"] = "Hounsfield"
    for n in range(rng.randrange(4)):
        header["key %d" % n] = rng.choice(("value", "1 2 3", "a:=b", "DWMRI_gradient_0"))
    return header


def equal(a, b):
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return np.array_equal(np.asarray(a, float), np.asarray(b, float), equal_nan=True)
    return a == b


class Nrrd(ForeignCase):
    def there_and_back(self, source, target):
        b2nd = self.path("a.b2nd")
        want, header = nrrd.read(str(source))
        self.ok("convert", source, b2nd, "-f", "--strict", "--verify")
        self.same(b2nd, want)
        self.ok("convert", b2nd, target, "-f", "--strict", "--verify")
        got, again = nrrd.read(str(target))
        self.assertEqual((got.dtype, got.shape), (want.dtype, want.shape))
        self.assertEqual(got.tobytes(), want.tobytes())
        for name in set(header) | set(again):
            if name not in DERIVED:
                self.assertTrue(equal(header.get(name), again.get(name)),
                                (name, header.get(name), again.get(name)))
        self.assertEqual((header["type"], header.get("endian")), (again["type"], again.get("endian")))
        return header, self.attributes(b2nd)

    def check_attributes(self, header, got, ndim):
        self.assertEqual(got.get("dims", [None] * ndim), header.get("labels", [None] * ndim))
        directions = header.get("space directions")
        if directions is not None:
            norms = np.sqrt((directions ** 2).sum(axis=1))
            np.testing.assert_allclose(got["spacing"], norms, rtol=1e-14)
        elif "spacings" in header:
            np.testing.assert_array_equal(got["spacing"], header["spacings"])
        signs = {"left-posterior-superior": (-1, -1, 1), "RAS": (1, 1, 1),
                 "left-anterior-superior": (-1, 1, 1)}.get(header.get("space"))
        if signs and not np.isnan(directions[:3]).any():
            affine = np.eye(4)
            affine[:3, :3] = directions[:3].T * np.array(signs)[:, None]
            affine[:3, 3] = header["space origin"] * signs
            np.testing.assert_array_equal(got["affine"], affine)
        else:
            self.assertNotIn("affine", got)
        self.assertEqual(got.get("units"), header.get("sample units"))
        for name in header:
            if name.startswith("key"):
                self.assertEqual(got[name], header[name])

    def test_random_files(self):
        rng = random_of(self)
        for _ in range(rounds(60)):
            ndim = rng.randrange(1, 6)
            values = items(rng, tuple(rng.randrange(1, 8) for _ in range(ndim)), rng.choice(DTYPES))
            header = random_header(rng, ndim)
            header["encoding"] = rng.choice(("raw", "gzip"))
            source = self.path("in." + rng.choice(("nrrd", "nhdr")))
            nrrd.write(str(source), values, header, index_order="F")
            read, got = self.there_and_back(source, self.path("back." + rng.choice(("nrrd", "nhdr"))))
            self.check_attributes(read, got, ndim)

    def test_headers_as_teem_writes_them(self):
        values = np.arange(24, dtype="<i2").reshape(4, 3, 2)
        head = ("NRRD0004\r\n# a comment\r\ntype: short\r\ndimension: 3\r\nsizes: 2 3 4\r\n"
                "labels: \"x\" \"y\" \"\"\r\nendian: little\r\nencoding: raw\r\n"
                "data file: a.dat\r\nline skip: 2\r\nbyte skip: 3\r\nkey:=one\\ntwo \\\\ three\r\n")
        self.path("a.nhdr").write_bytes(head.encode())
        self.path("a.dat").write_bytes(b"one\ntwo\nabc" + values.tobytes())
        self.ok("convert", self.path("a.nhdr"), self.path("a.b2nd"))
        self.same(self.path("a.b2nd"), values.T)
        got = self.attributes(self.path("a.b2nd"))
        self.assertEqual(got["dims"], ["x", "y", None])
        self.assertEqual(got["key"], "one\ntwo \\ three")
        self.ok("convert", self.path("a.b2nd"), self.path("b.nrrd"), "--strict")
        self.assertIn(b"key:=one\\ntwo \\\\ three\n", self.path("b.nrrd").read_bytes())
        self.path("a.nhdr").write_bytes(head.replace("byte skip: 3", "byte skip: -1").encode())
        self.ok("convert", self.path("a.nhdr"), self.path("a.b2nd"), "-f")
        self.same(self.path("a.b2nd"), values.T)
        self.path("a.nhdr").write_bytes(head.replace("raw", "gz").encode())
        self.path("a.dat").write_bytes(b"one\ntwo\n" + gzip.compress(b"abc" + values.tobytes()))
        self.ok("convert", self.path("a.nhdr"), self.path("a.b2nd"), "-f")
        self.same(self.path("a.b2nd"), values.T)

    def test_arrays_from_elsewhere(self):
        values = np.arange(24, dtype="<f4").reshape(2, 3, 4)
        np.save(self.path("a.npy"), values)
        self.ok("convert", self.path("a.npy"), self.path("a.b2nd"))
        for name, value in (("affine", "[[0,2,0,5],[3,0,0,6],[0,0,4,7],[0,0,0,1]]"),
                            ("axis_units", '["mm", "mm", "mm"]'), ("units", '"HU"'),
                            ("dims", '["x", "y", "z"]'), ("history", '"made\\nby hand"')):
            self.ok("attr", "set", self.path("a.b2nd"), name, value,
                    *(["--dtype", "float64"] if name == "affine" else []))
        for _ in range(2):
            self.ok("convert", self.path("a.b2nd"), self.path("a.nrrd"), "--strict", "-f")
            read, header = nrrd.read(str(self.path("a.nrrd")))
            np.testing.assert_array_equal(read, values)
            self.assertEqual(header["space"], "right-anterior-superior")
            np.testing.assert_array_equal(header["space directions"], [[0, 3, 0], [2, 0, 0], [0, 0, 4]])
            np.testing.assert_array_equal(header["space origin"], [5, 6, 7])
            self.assertEqual((header["units"], header["labels"]), (["mm"] * 3, ["x", "y", "z"]))
            self.assertEqual((header["sample units"], header["history"]), ("HU", "made\\nby hand"))
            self.ok("convert", self.path("a.nrrd"), self.path("a.b2nd"), "-f")
        self.ok("attr", "set", self.path("a.b2nd"), "affine", "[[1,0,0,0],[0,1,0,0],[0,0,1,0],[0,0,0,1]]",
                "--dtype", "float64")
        self.ok("convert", self.path("a.b2nd"), self.path("a.nrrd"), "-f")
        np.testing.assert_array_equal(nrrd.read_header(str(self.path("a.nrrd")))["space directions"],
                                      np.eye(3))
        self.assertEqual(self.names(), ["a.b2nd", "a.npy", "a.nrrd"])

    def test_losses_and_types(self):
        for dtype in ("f2", "c8", "S3", "?", "M8[s]"):
            np.save(self.path("b.npy"), np.zeros(3, dtype))
            self.assertIn("NRRD has no type", self.refused("convert", self.path("b.npy"),
                                                           self.path("b.nrrd")))
        np.save(self.path("b.npy"), np.frombuffer(b"abcdefghi", "V3"))
        self.ok("convert", self.path("b.npy"), self.path("b.nrrd"))
        self.ok("convert", self.path("b.nrrd"), self.path("b.b2nd"))
        self.same(self.path("b.b2nd"), np.frombuffer(b"abcdefghi", "V3"))
        self.ok("attr", "set", self.path("b.b2nd"), "number", "3")
        status, _, err = run("convert", self.path("b.b2nd"), self.path("b.nrrd"), "-f")
        self.assertEqual(status, 0)
        self.assertIn("the attribute number", err)
        for name, text in (("sizes", "9 9"), ("data file", "x"), ("c", " blank"), ("d", "a\rb")):
            self.ok("attr", "set", self.path("b.b2nd"), name, json.dumps(text))
            err = run("convert", self.path("b.b2nd"), self.path("b.nrrd"), "-f")[2]
            self.assertIn(f"the attribute {name}\n", err)
            self.ok("attr", "delete", self.path("b.b2nd"), name)
        self.ok("attr", "set", self.path("b.b2nd"), "e", '{"$bytes": "AAE="}')
        self.assertIn("the attribute e\n", run("convert", self.path("b.b2nd"), self.path("b.nrrd"), "-f")[2])

    def test_other_encodings(self):
        """They are valid, but not read."""
        for encoding in ("ascii", "bzip2"):
            nrrd.write(str(self.path("a.nrrd")), np.arange(6), {"encoding": encoding})
            self.assertIn(encoding, self.fails(5, "convert", self.path("a.nrrd"),
                                               self.path("a.b2nd")))

    def test_damage(self):
        path, out = self.path("a.nrrd"), self.path("a.b2nd")
        nrrd.write(str(path), np.arange(3000, dtype="<i2").reshape(10, 300))
        whole = path.read_bytes()
        for size in (0, 7, 100, len(whole) - 300, len(whole) - 1):
            path.write_bytes(whole[:size])
            self.refused("convert", path, out)
        head = "NRRD0004\ntype: %s\ndimension: %s\nsizes: %s\nendian: little\nencoding: %s\n%s\n"
        for fields, words in ((("double", 3, "5000 5000 5000", "raw", ""), "the items need 1000000000"),
                              (("double", 3, "5000 5000 5000", "gzip", ""), "the items need 1000000000"),
                              (("double", 3, "5000 5000", "raw", ""), "dimension and sizes"),
                              (("double", 1, "-1", "raw", ""), "the size -1"),
                              (("double", 1, "1e300", "raw", ""), "the size"),
                              (("quad", 1, "5", "raw", ""), "no valid type"),
                              (("short", 1, "5", "bzip2", ""), "encoded as bzip2"),
                              (("short", 1, "5", "raw", "data file: %d.raw 1 5 1\n"), "several files"),
                              (("short", 1, "5", "raw", "data file: no.raw\n"), "no.raw"),
                              (("short", 1, "5", "raw", "line skip: 1e12\n"), "lines to be skipped"),
                              (("short", 1, "5", "raw", "byte skip: 9e15\n"), "the items need"),
                              (("short", 1, "5", "raw", "nonsense\n"), "no line")):
            path.write_bytes((head % fields).encode() + bytes(500))
            self.assertIn(words, self.refused("convert", path, out))
        self.assertEqual(self.names(), ["a.nrrd"])

    def test_mutations(self):
        rng = random_of(self)
        for encoding in ("raw", "gzip"):
            header = random_header(rng, 3)
            header["encoding"] = encoding
            nrrd.write(str(self.path("a.nrrd")), np.arange(60, dtype="<i2").reshape(3, 4, 5), header)
            for data in self.mutated(rng, self.path("a.nrrd").read_bytes(), rounds(40)):
                self.path("m.nrrd").write_bytes(data)
                self.survives(rng, self.path("m.nrrd"), ".b2nd")


if __name__ == "__main__":
    main()

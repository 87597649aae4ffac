"""repair, and get of damaged arrays: what is kept, what is reported as lost, and the
statuses."""

import fcntl
import json
import shutil

import blosc2
import numpy as np

from tool_cli import Case, main, run

WHOLE = "repaired in place: the header was restored from its copy, nothing is lost"
ANEW = "repaired in place: the copy of the header was rewritten, nothing is lost"


class Made(Case):
    """A test with values to create arrays of, and functions that damage them."""

    def setUp(self):
        super().setUp()
        self.values = np.random.default_rng(5).integers(0, 50, (60, 40)).astype("<i4")
        np.save(self.path("a.npy"), self.values)

    def make(self, *options):
        """An array of 3 x 2 chunks in two commits, the second an attribute."""
        path = self.path("a.b2nd")
        self.ok("convert", self.path("a.npy"), path, "--chunks", "20,20", "--blocks", "10,10",
                *options)
        self.ok("attr", "set", path, "unit", '"K"')
        return path

    def make_blosc2(self, name="a.b2nd"):
        path = self.path(name)
        blosc2.asarray(self.values, chunks=(20, 20), blocks=(10, 10), urlpath=str(path))
        return path

    def change(self, path, at, new):
        data = bytearray(path.read_bytes())
        data[at:at + len(new)] = new
        path.write_bytes(data)

    def damage(self, path, chunk):
        """Damages a chunk's header; returns its position."""
        where = json.loads(self.text("info", path, "--json", "--chunks"))["chunks"][chunk]
        self.change(path, where["position"] + 12, b"\xff" * 4)
        return where["position"]

    def expected(self, fill, *chunks):
        """The values, with the fill in these chunks of the grid."""
        values = self.values.copy()
        for i, j in chunks:
            values[20 * i:20 * i + 20, 20 * j:20 * j + 20] = fill
        return values

    def holds(self, path, expected):
        np.testing.assert_array_equal(blosc2.open(str(path))[...], expected)
        self.assertIn(": ok, ", self.text("verify", path))


class Repair(Made):
    def test_sound(self):
        for path in (self.make(), self.make_blosc2("b.b2nd")):
            before = path.read_bytes()
            self.assertEqual(self.text("repair", path), f"{path}: undamaged, nothing to repair\n")
            self.ok("repair", path, "-o", self.path("o.b2nd"))
            self.assertFalse(self.path("o.b2nd").exists())
            self.assertEqual(path.read_bytes(), before)

    def test_header(self):
        path = self.make()
        good = path.read_bytes()
        for at, new in ((0, bytes(512)), (0, b"x"), (16, bytes(16)), (40, b"\xff" * 7)):
            self.change(path, at, new[:150])
            out = self.text("repair", path)
            self.assertEqual(out.splitlines()[-1], f"{path}: {WHOLE}")
            self.assertEqual(path.read_bytes(), good)
        self.change(path, 0, bytes(100))
        facts = json.loads(self.text("repair", path, "--json"))
        damage = facts["damages"].pop()
        self.assertEqual((damage["chunk"], damage["index"]), (-1, []))
        self.assertEqual(facts, {"schema": 1, "file": str(path), "damages": [],
                                 "complete": True, "found": "copy", "chunks": 6,
                                 "lost_chunks": 0, "lost_attributes": 0, "unverified_chunks": 0,
                                 "in_place": True,
                                 "output": None})
        self.assertEqual(self.names(), ["a.b2nd", "a.npy"])

    def test_copy_of_the_header(self):
        """Damage of the copy is found before the copy is needed, and repaired; the array can be
        opened all the time."""
        folder = self.path("a.d")
        path = self.make()
        self.ok("convert", path, folder, "--sparse")
        for file, whole in ((path, path), (folder / "chunks.b2frame", folder)):
            good = file.read_bytes()
            at = good.rindex(b"cv-head\1")
            size = 24 + int.from_bytes(good[at + 16:at + 20], "little")
            for i in range(at, at + size):
                self.change(file, i, bytes([good[i] ^ 1 << i % 8]))
                if i % 9 == 0 or i == at + size - 1:
                    code, out, _ = run("verify", whole)
                    self.assertEqual(code, 1, i)
                    self.assertIn(f"the copy of the header at byte {at} is damaged",
                                  out.decode())
                    self.assertEqual(run("verify", "--quick", whole)[0], 1)
                    self.ok("get", whole, ":1,:1")
                    bad = file.read_bytes()
                    out = self.path("o.b2nd")
                    self.ok("repair", "-f", whole, "-o", out)
                    self.ok("verify", out)
                    self.assertEqual(file.read_bytes(), bad)
                    shutil.rmtree(out) if out.is_dir() else out.unlink()
                    self.assertIn(ANEW, self.text("repair", whole))
                    self.assertEqual(file.read_bytes(), good)
                self.change(file, i, good[i:i + 1])
        self.ok("verify", path, folder)

    def test_header_into_another_file(self):
        path, out = self.make(), self.path("o.b2nd")
        self.change(path, 0, bytes(100))
        bad = path.read_bytes()
        self.assertIn(f"{path}: nothing is lost; the repaired array is {out}\n",
                      self.text("repair", path, "-o", out))
        self.assertEqual(path.read_bytes(), bad)
        self.holds(out, self.values)
        array = blosc2.open(str(out))
        self.assertEqual(array.schunk.vlmeta["unit"], "K")

    def test_lost_chunks(self):
        path = self.make()
        at = self.damage(path, 3)
        bad = path.read_bytes()
        status, out, err = run("repair", path, "--fill", "-7")
        lines = out.decode().splitlines()
        self.assertEqual((status, err), (1, ""))
        self.assertRegex(lines[0], rf"^{path}: chunk 3 \(1,1\) at byte {at} ")
        self.assertEqual(lines[1:], [f"{path}: 1 of 6 chunks lost; the rest is in "
                                     f"{path}.repaired"])
        self.assertEqual(path.read_bytes(), bad)
        repaired = self.path("a.b2nd.repaired")
        self.holds(repaired, self.expected(-7, (1, 1)))
        self.assertEqual(self.text("attr", "get", repaired, "unit"), '"K"\n')

        status, out, err = run("repair", path)
        self.assertEqual((status, err), (3, f"caterva: {repaired} exists already\n"))
        status, out, _ = run("repair", path, "-f", "--json")
        facts = json.loads(out)
        self.assertEqual((status, facts["complete"], facts["found"], facts["lost_chunks"]),
                         (1, False, "header", 1))
        self.assertEqual((facts["damages"][0]["chunk"], facts["damages"][0]["index"]), (3, [1, 1]))
        self.assertEqual(facts["output"], str(repaired))
        self.holds(repaired, self.expected(0, (1, 1)))

    def test_never_over_the_damaged_one(self):
        path = self.make()
        self.damage(path, 0)
        bad = path.read_bytes()
        self.path("link").symlink_to(path)
        for output in (path, self.path("link")):
            status, _, err = run("repair", path, "-f", "-o", output)
            self.assertEqual(status, 2)
            self.assertIn("is the damaged array itself", err)
        self.fails(3, "repair", path, "-o", self.path("a.npy"))
        self.fails(2, "repair", path, "--fill", "many")
        self.assertEqual(path.read_bytes(), bad)
        self.assertEqual(self.names(), ["a.b2nd", "a.npy", "link"])

    def test_cut_in_the_trailer(self):
        path = self.make()
        path.write_bytes(path.read_bytes()[:-3])
        status, out, _ = run("repair", path)
        self.assertEqual(status, 1)
        self.assertIn("0 of 6 chunks lost, all attributes lost; the rest is in", out.decode())
        self.holds(self.path("a.b2nd.repaired"), self.values)

    def test_cut_to_an_older_commit(self):
        path = self.make()
        older = self.path("older.b2nd")
        shutil.copy(path, older)
        size = path.stat().st_size
        self.ok("append", path, self.path("a.npy"))
        data = path.read_bytes()
        self.assertEqual(data[200:size], older.read_bytes()[200:size])
        path.write_bytes(data[:-250])  # trailer, seal and some of the index
        status, out, _ = run("repair", path)
        self.assertEqual(status, 1)
        self.assertIn("this is an older commit", out.decode())
        self.holds(self.path("a.b2nd.repaired"), self.values)

    def test_cut_without_any_index(self):
        path = self.make_blosc2()
        where = json.loads(self.text("info", path, "--json", "--chunks"))["chunks"][4]
        path.write_bytes(path.read_bytes()[:where["position"] + 50])
        self.assertIn("no other state was found, but a guess at the chunks' order would find one; "
                      "see --guess", self.fails(4, "repair", path))
        self.assertEqual(self.names(), ["a.b2nd", "a.npy"])
        status, out, _ = run("repair", path, "--guess")
        self.assertEqual(status, 1)
        self.assertIn("which is a guess", out.decode())
        self.assertIn("chunk 5 (2,1) has no known position", out.decode())
        self.holds(self.path("a.b2nd.repaired"), self.expected(0, (2, 0), (2, 1)))

    def test_cut_without_any_index_between_block_tables(self):
        path = self.make()
        where = json.loads(self.text("info", path, "--json", "--chunks"))["chunks"][4]
        path.write_bytes(path.read_bytes()[:where["position"] + 50])
        status, out, _ = run("repair", path, "--guess")
        self.assertEqual(status, 1)
        self.assertIn("chunk 5 (2,1) has no known position", out.decode())
        self.holds(self.path("a.b2nd.repaired"), self.expected(0, (2, 0), (2, 1)))

    def test_directory(self):
        path = self.make("--sparse")
        next(path.glob("00000002.chunk")).unlink()
        chunk = next(path.glob("00000005.chunk"))
        chunk.write_bytes(chunk.read_bytes()[:40])
        before = sorted(p.name for p in path.iterdir())
        status, out, _ = run("repair", f"{path}/", "--fill", "1")
        self.assertEqual(status, 1)
        self.assertIn(f"2 of 6 chunks lost; the rest is in {path}.repaired", out.decode())
        self.assertTrue(self.path("a.b2nd.repaired").is_dir())
        self.holds(self.path("a.b2nd.repaired"), self.expected(1, (1, 0), (2, 1)))
        self.assertEqual(set(before) - {p.name for p in path.iterdir()}, set())
        (path / "chunks.b2frame").unlink()
        self.assertIn("holds no array", self.fails(3, "repair", path))

    def test_hopeless(self):
        for bad in (b"", b"x" * 500):
            self.path("x").write_bytes(bad)
            self.assertNotIn("guess", self.fails(4, "repair", self.path("x")))
            self.fails(4, "repair", self.path("x"), "--json", "--guess")
        self.fails(3, "repair", self.path("none"))

    def test_beside_a_writer(self):
        path = self.make()
        self.change(path, 0, bytes(100))
        with open(path, "r+b") as other:  # as a writer of this library locks it
            fcntl.flock(other, fcntl.LOCK_EX)
            self.fails(3, "repair", path)
        self.assertIn(WHOLE, self.text("repair", path))


class SkipDamaged(Made):
    """get, on the same arrays."""

    def test_get(self):
        path, out = self.make(), self.path("o.npy")
        self.assertEqual(self.text("get", path, "0:2,:3", "--skip-damaged"),
                         self.text("get", path, "0:2,:3"))
        self.damage(path, 3)
        self.fails(4, "get", path, "-o", out)
        status, printed, err = run("get", path, "--skip-damaged", "--fill", "-1", "-o", out)
        self.assertEqual((status, printed), (1, b""))
        self.assertRegex(err, rf"\Acaterva: skipped: {path}: chunk 3 \(1,1\) at byte [^\n]*\n\Z")
        np.testing.assert_array_equal(np.load(out), self.expected(-1, (1, 1)))

        status, printed, err = run("get", path, "::-1,39", "--skip-damaged", "--memory", "4096")
        self.assertEqual((status, err.count("\n")), (1, 1))  # reported once
        np.testing.assert_array_equal(np.array(printed.split(), int),
                                      self.expected(0, (1, 1))[::-1, 39])
        expected = self.expected(0, (1, 1))
        for sel, part in (("[39,0,-1]", expected[[39, 0, -1]]),
                          ("[39,0,2],[5,38]", expected[np.ix_([39, 0, 2], [5, 38])]),
                          ("None,::-3,[39,0,38]", expected[None, ::-3, [39, 0, 38]]),
                          ("39,[39,0]", expected[39, [39, 0]])):
            status, printed, err = run("get", path, sel, "--skip-damaged", "-f", "-o", out)
            self.assertEqual((status, printed, err.count("\n")), (1, b"", 1), sel)
            np.testing.assert_array_equal(np.load(out), part)
        self.ok("get", path, "[0,19]", "--skip-damaged", "-f", "-o", out)
        self.ok("get", path, "0:20", "--skip-damaged")
        self.fails(2, "get", path, "--fill", "3")
        self.fails(2, "get", path, "--skip-damaged", "--fill", "many")


if __name__ == "__main__":
    main()

"""diff: equal and different arrays, in any format, in little memory."""

import json
import shutil
import signal
import subprocess
import time

import blosc2
import numpy as np

from tool_cli import CLI, Case, ended_by, environment, main, run


class Diff(Case):
    def store(self, name, values, **options):
        path = self.path(name)
        values = np.asarray(values)
        if name.endswith(".npy"):
            np.save(path, values)
        else:
            blosc2.asarray(values, urlpath=str(path), mode="w", **options)
        return path

    def differs(self, *arguments):
        status, out, err = run("diff", *arguments)
        self.assertEqual((status, err), (1, ""), arguments)
        return out.decode()

    def test_same(self):
        values = np.random.default_rng(1).normal(size=(40, 50, 7))
        values[3, 4, 5] = np.nan
        a = self.store("a.b2nd", values, chunks=(13, 50, 7), blocks=(5, 6, 7))
        b = self.store("b.b2nd", values, chunks=(40, 11, 3), blocks=(8, 8, 2))
        for other in (b, self.store("c.npy", values), self.store("f.npy", np.asfortranarray(values))):
            for options in ([], ["-q"], ["--memory", "4096"], ["-T", "1"]):
                self.assertEqual(self.text("diff", a, other, *options), "")
                self.assertEqual(self.text("diff", other, a, *options), "")
        for shape in ((), (0,), (3, 0)):
            for dtype in ("<i4", "|S3", "<M8[s]"):
                x = self.store("x.b2nd", np.zeros(shape, dtype))
                self.assertEqual(self.text("diff", x, self.store("x.npy", np.zeros(shape, dtype))), "")

    def test_golden(self):
        values = np.arange(12, dtype="<i4").reshape(3, 4)
        changed = values.copy()
        changed[0, 3], changed[2, 1] = -1, 90
        a, b = self.store("a.b2nd", values), self.store("b.b2nd", changed)
        last = f"{a} and {b}: 2 of 12 items differ, by 81 at most\n"
        self.assertEqual(self.differs(a, b), f"[0,3]  3  -1\n[2,1]  9  90\n{last}")
        self.assertEqual(self.differs(a, b, "--max", "1"), f"[0,3]  3  -1\n{last}")
        self.assertEqual(self.differs(a, b, "--max=0"), last)
        self.assertEqual(self.differs(a, b, "-q"), "")
        self.assertEqual(self.differs(a, b, "-q", "--json"), "")
        other = self.store("c.b2nd", values.reshape(4, 3))
        self.assertEqual(self.differs(a, other),
                         f"{a} and {other}: the shape differs: (3, 4) and (4, 3)\n")
        other = self.store("c.b2nd", values.astype(">i4"))
        self.assertEqual(self.differs(a, other),
                         f"{a} and {other}: the dtype differs: <i4 and >i4\n")
        other = self.store("c.b2nd", values.ravel())
        self.assertEqual(json.loads(self.differs(a, other, "--json")),
                         {"schema": 1, "a": str(a), "b": str(other), "reason": "shape",
                          "equal": False})

    def test_json(self):
        a = self.store("a.npy", [1.5, np.nan, np.inf])
        b = self.store("b.b2nd", [1.5, 2.0, np.inf])
        self.assertEqual(json.loads(self.differs(a, b, "--json")), {
            "schema": 1, "a": str(a), "b": str(b), "items": 3, "different": 1, "largest": 0,
            "differences": [{"index": [1], "a": "nan", "b": "2"}], "equal": False})
        same = json.loads(self.text("diff", a, a, "--json"))
        self.assertEqual((same["equal"], same["different"], same["differences"]), (True, 0, []))

    def pair(self):
        """Two equal arrays, which then get attributes."""
        values = np.arange(6, dtype="<i4").reshape(2, 3)
        return self.store("a.b2nd", values), self.store("b.b2nd", values)

    def test_attributes(self):
        a, b = self.pair()
        for path, names in ((a, "xyz"), (b, "zyx")):  # in any order
            for name in names:
                self.ok("attr", "set", path, name, '{"k": [1, "text"]}')
        self.assertEqual(self.text("diff", a, b), "")
        self.ok("attr", "set", a, "n", "7")
        self.ok("attr", "set", b, "n", "8")
        self.ok("attr", "set", a, "y", '"' + "long " * 30 + '"')
        self.ok("attr", "set", b, "only", "null")
        self.ok("attr", "delete", b, "x")
        lines = self.differs(a, b).splitlines()
        self.assertEqual(sorted(lines), sorted([
            f"{a} and {b}: the attribute 'n' differs: 7 and 8",
            f"{a} and {b}: the attribute 'y' differs: \"{('long ' * 30)[:59]}... and "
            '{"k": [1, "text"]}',
            f"{a} and {b}: only the first has the attribute 'x'",
            f"{a} and {b}: only the second has the attribute 'only'"]))
        facts = json.loads(self.differs(a, b, "--json"))
        self.assertEqual((facts["equal"], facts["different"], facts["differences"]),
                         (False, 0, []))
        self.assertEqual({d.pop("name"): d for d in facts["attributes"]}, {
            "n": {"a": 7, "b": 8}, "x": {"a": {"k": [1, "text"]}}, "only": {"b": None},
            "y": {"a": "long " * 30, "b": {"k": [1, "text"]}}})
        self.assertEqual(self.differs(a, b, "-q"), "")
        self.assertEqual(self.text("diff", "--no-attributes", a, b), "")
        np.save(self.path("c.npy"), np.arange(6, dtype="<i4").reshape(2, 3))
        self.assertEqual(self.text("diff", a, self.path("c.npy")), "")
        other = self.store("d.b2nd", [1])
        self.assertIn("only the first has the attribute 'n'\n", self.differs(a, other))

    def test_types_of_attributes(self):
        a, b = self.pair()
        self.ok("attr", "set", a, "_FillValue", "-1", "--dtype", "<i2")
        self.ok("attr", "set", b, "_FillValue", "-1", "--dtype", "<i4")
        self.assertIn("'_FillValue' differs", self.differs(a, b))

    def test_dims(self):
        a, b = self.pair()
        for path, name in ((a, "dims"), (b, "_ARRAY_DIMENSIONS")):
            self.ok("attr", "set", path, name, '["y", "x"]')
        self.assertEqual(self.text("diff", a, b), "")
        self.ok("attr", "set", b, "dims", '["y", null]')
        self.assertEqual(self.differs(a, b), f"{a} and {b}: the dims differ: (y, x) and (y, -)\n")
        facts = json.loads(self.differs(b, a, "--json"))
        self.assertEqual((facts["dims"], facts["equal"], "attributes" in facts),
                         ({"a": ["y", None], "b": ["y", "x"]}, False, False))
        self.ok("attr", "set", b, "dims", '["odd"]')
        self.ok("attr", "delete", b, "_ARRAY_DIMENSIONS")
        lines = self.differs(a, b).splitlines()
        self.assertEqual(lines, [f"{a} and {b}: the dims differ: (y, x) and ()"])

    def test_tolerance_as_numpy(self):
        rng = np.random.default_rng(3)
        for dtype in ("<f8", ">f4", "<f2", "<i2", ">i8", "|u1", "<u8", "<c16"):
            x = (rng.integers(0, 100, 400) + 20).astype(dtype)
            y = (x + rng.integers(0, 5, 400).astype(dtype)).astype(dtype)
            if np.dtype(dtype).kind == "f":
                for values in (x, y):
                    values[rng.integers(0, 400, 30)] = np.nan
                    values[rng.integers(0, 400, 30)] = np.inf
                    values[rng.integers(0, 400, 30)] = -np.inf
            a, b = self.store("a.b2nd", x), self.store("b.b2nd", y)
            for atol, rtol in ((0, 0), (1, 0), (0, 0.03125), (1.5, 0.015625), (1000, 1000)):
                exact = "f8" if np.dtype(dtype).kind != "c" else "c16"
                with np.errstate(all="ignore"):
                    want = int((~np.isclose(x.astype(exact), y.astype(exact), rtol=rtol,
                                            atol=atol, equal_nan=True)).sum())
                status, out, _ = run("diff", a, b, "--atol", atol, "--rtol", rtol, "--json")
                got = json.loads(out)
                self.assertEqual((got["different"], status), (want, int(want > 0)), dtype)

    def test_kinds_of_items(self):
        pair = np.dtype([("a", "<i2"), ("b", "<f8", (2,))])
        values = np.zeros(5, pair)
        changed = values.copy()
        changed["b"][3] = [0.25, np.nan]
        a, b = self.store("a.b2nd", values), self.store("b.b2nd", changed)
        self.assertTrue(self.differs(a, b).startswith("[3]  (0, [0, 0])  (0, [0.25, nan])\n"))
        self.assertEqual(self.text("diff", b, b), "")
        for x, y in ((np.array([b"a", b"b"]), np.array([b"a", b"c"])),
                     (np.array(["2020-01-01", "NaT"], "M8[D]"), np.array(["2020-01-01"] * 2, "M8[D]")),
                     (np.array([True, False]), np.array([True, True]))):
            a, b = self.store("a.b2nd", x), self.store("b.b2nd", y)
            self.assertIn("1 of 2 items differ\n", self.differs(a, b))
        zeros = self.store("a.b2nd", [0.0]), self.store("b.b2nd", [-0.0])
        self.assertEqual(self.text("diff", *zeros), "")
        huge = np.array([2 ** 63 - 1, -2 ** 63]), np.array([2 ** 63 - 2, 2 ** 63 - 1])
        a, b = (self.store(n, v) for n, v in zip(("a.b2nd", "b.b2nd"), huge))
        self.assertIn("2 of 2 items", self.differs(a, b))
        self.assertIn("1 of 2 items", self.differs(a, b, "--atol", "1"))

    def test_random_places(self):
        rng = np.random.default_rng(8)
        values = rng.integers(0, 1000, (37, 23, 11)).astype("<i4")
        a = self.store("a.b2nd", values, chunks=(10, 10, 10), blocks=(3, 4, 5))
        changed = values.copy()
        places = np.unravel_index(rng.choice(values.size, 40, replace=False), values.shape)
        changed[places] += 1
        b = self.store("b.b2nd", changed, chunks=(7, 23, 2), blocks=(7, 4, 2))
        for memory in ("4096", "64K", "256M"):
            got = json.loads(self.differs(a, b, "--json", "--max", "100", "--memory", memory))
            index = {tuple(d["index"]) for d in got["differences"]}
            self.assertEqual(index, {tuple(map(int, p)) for p in zip(*places)})
            for d in got["differences"]:
                at = tuple(d["index"])
                self.assertEqual((int(d["a"]), int(d["b"])), (values[at], changed[at]))

    def test_refusals(self):
        a = self.store("a.b2nd", [1, 2, 3])
        (self.path("x.raw")).write_bytes(b"123")
        self.fails(2, "diff", a)
        self.assertIn("is raw, without a shape", self.fails(2, "diff", a, self.path("x.raw")))
        self.path("y.what").write_bytes(b"what")
        self.fails(2, "diff", a, self.path("y.what"))
        self.fails(3, "diff", a, self.path("none.b2nd"))
        self.fails(3, "diff", self.path("none.npy"), a)
        for bad in ("-1", "x", "nan", "inf", ""):
            self.assertIn("--atol", self.fails(2, "diff", a, a, f"--atol={bad}"))
            self.assertIn("--rtol", self.fails(2, "diff", a, a, f"--rtol={bad}"))
        self.fails(2, "diff", a, a, "--max", "-1")
        noise = np.random.default_rng(0).bytes(4000)
        damaged = self.store("d.b2nd", np.frombuffer(noise, "u1"))
        data = bytearray(damaged.read_bytes())
        at = data.index(noise[:16])
        del data[at:at + 500]
        damaged.write_bytes(data)
        self.fails(4, "diff", damaged, damaged)

    def compared_meanwhile(self, change):
        """Status, lines after the first array's, and errors of a diff of two trees, which
        blocks on its output within the first array until the second tree has been changed."""
        a, b = self.path("a.b2d"), self.path("b.b2d")
        for tree, start in ((a, 0), (b, 1)):
            shutil.rmtree(tree, ignore_errors=True)
            items = self.path("items.npy")
            np.save(items, np.arange(start, start + 40000))
            self.ok("convert", items, f"{tree}::/g/x")
            for key in "yz":
                self.ok("create", f"{tree}::/g/{key}", "--shape", "4", "--dtype", "<i8")
        child = subprocess.Popen([CLI, "diff", "--max", "40000", a, b], stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, env=environment(), text=True)
        with child:
            self.assertEqual(child.stdout.readline(), "[0]  0  1\n")
            change(b)
            lines = child.stdout.read().splitlines()
            err = child.stderr.read()
        self.assertIn("40000 of 40000 items differ", lines[39999])
        return child.returncode, lines[40000:], err

    def test_a_tree_that_a_writer_changes_meanwhile(self):
        """Members that were listed are compared or reported missing; a removed tree is reported
        once."""
        a, b = self.path("a.b2d"), self.path("b.b2d")
        moved = self.path("moved.b2d")

        def replace(tree):
            tree.rename(moved)
            shutil.copytree(a, tree)

        none = [f"{a}::/g/{key}: does not exist in {b}" for key in "yz"]
        gone = f"caterva: {b} was deleted during the comparison\n"
        for change, expected in (
                (replace, (1, [], "")),
                (lambda tree: (tree / "g" / "y.b2nd").unlink(), (1, none[:1], "")),
                (lambda tree: shutil.rmtree(tree / "g"), (1, none, "")),
                (lambda tree: tree.rename(moved), (3, [], gone)),
                (lambda tree: [x.unlink() for x in tree.rglob("*.b2?*")], (3, [], gone)),
                (shutil.rmtree, (3, [], gone))):
            with self.subTest(expected=expected):
                self.assertEqual(self.compared_meanwhile(change), expected)
            shutil.rmtree(moved, ignore_errors=True)

    def test_interrupted(self):
        big = self.path("big.b2nd")
        blosc2.zeros((1 << 34,), dtype="u1", urlpath=str(big), chunks=(1 << 22,), blocks=(1 << 16,))
        for command in (["diff", big, big, "--memory", "1M"], ["stats", big, "--bins", "9"]):
            child = subprocess.Popen([CLI, *map(str, command)], stdout=subprocess.PIPE,
                                     stderr=subprocess.PIPE, env=environment())
            time.sleep(0.3)
            if child.poll() is not None:
                child.communicate()
                continue  # it ended before the signal
            child.send_signal(signal.SIGINT)
            out, err = child.communicate(timeout=60)
            self.assertEqual((child.returncode, out, err),
                             (ended_by(signal.SIGINT), b"", b"caterva: interrupted\n"), command)


if __name__ == "__main__":
    main()

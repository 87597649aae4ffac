"""stats: the exact text, JSON compared with NumPy, selections, histograms, refusals."""

import json

import blosc2
import numpy as np

from tool_cli import Case, main


class Stats(Case):
    def store(self, values, **options):
        path = self.path("a.b2nd")
        blosc2.asarray(np.asarray(values), urlpath=str(path), mode="w", **options)
        return path

    def json(self, *arguments):
        return json.loads(self.text("stats", *arguments, "--json"))

    def test_golden(self):
        path = self.store(np.array([[1, 2, 3], [4, 5, 9]], "<i2"))
        self.assertEqual(self.text("stats", path, "--bins", "4"), (
            f"{path}   (2, 3)   int16   6 items\n"
            "  min      1\n"
            "  max      9\n"
            "  sum      24\n"
            "  mean     4\n"
            "  std      2.581988897471611\n"
            "  nan      0\n"
            "  [1, 3)                                2  ########################################\n"
            "  [3, 5)                                2  ########################################\n"
            "  [5, 7)                                1  ####################\n"
            "  [7, 9]                                1  ####################\n"))
        path = self.store(np.array(["2020-05-01", "NaT", "1999-12-31"], "M8[D]"))
        self.assertEqual(self.text("stats", path), (
            f"{path}   (3,)   datetime64[D]   3 items\n"
            "  min      1999-12-31\n  max      2020-05-01\n  nat      1\n"))
        path = self.store(np.zeros((3, 0), "<f4"))
        self.assertEqual(self.text("stats", path, "--bins", "3"),
                         f"{path}   (3, 0)   float32   0 items\n  sum      0\n  nan      0\n")
        path = self.store(np.array([0.1, np.nan, -np.inf], "<f4"))
        self.assertEqual(self.text("stats", path), (
            f"{path}   (3,)   float32   3 items\n"
            "  min      -inf\n  max      0.1\n  sum      -inf\n  mean     -inf\n"
            "  std      nan\n  nan      1\n  -inf     1\n"))

    def test_json(self):
        path = self.store(np.array([True, False, True]))
        self.assertEqual(self.json(path), {
            "schema": 1, "file": str(path), "shape": [3], "dtype": "|b1", "items": 3, "nan": 0,
            "inf": 0, "negative_inf": 0, "min": False, "max": True, "sum": 2, "mean": 2 / 3,
            "std": float(np.std([1, 0, 1])), "histogram": None})
        path = self.store(np.array([2 ** 63, 2 ** 64 - 1], "<u8"))
        got = self.json(path)
        self.assertEqual((got["min"], got["max"]), (2 ** 63, 2 ** 64 - 1))
        self.assertEqual(got["sum"], float(2 ** 63 + 2 ** 64 - 1))
        path = self.store(np.array(["NaT", "2001-01-01"], "M8[s]"))
        got = self.json(path)
        self.assertEqual((got["min"], got["nan"], got["sum"], got["mean"]),
                         ("2001-01-01T00:00:00", 1, None, None))
        got = self.json(self.store(np.zeros((0,))), "--bins", "2")
        self.assertEqual((got["min"], got["max"], got["sum"], got["mean"], got["histogram"]),
                         (None, None, 0, None, None))

    def test_json_of_what_json_has_not(self):
        got = self.json(self.store(np.array([np.inf, 1, 2])))
        self.assertEqual((got["min"], got["max"], got["sum"], got["mean"], got["std"]),
                         (1.0, "Infinity", "Infinity", "Infinity", "NaN"))
        self.assertEqual(float(got["max"]), np.inf)
        got = self.json(self.store(np.array([-np.inf, np.inf, 2], "<f4")))
        self.assertEqual((got["min"], got["sum"], got["mean"]), ("-Infinity", "NaN", "NaN"))
        got = self.json(self.store(np.array([np.nan])))
        self.assertEqual((got["min"], got["nan"], got["mean"], got["std"]), (None, 1, None, None))

    def test_selections_as_numpy(self):
        values = np.random.default_rng(5).normal(size=(30, 41, 17))
        values[2, 3] = np.nan
        path = self.store(values, chunks=(11, 17, 9), blocks=(4, 5, 3))
        for sel in ("...", "3", "::2,-1,::5", "::-1,40:2:-7,3", "5:9,::-3", "1,2,3", "4:4", "2,3", "None,4,...,None"):
            part = np.asarray(values[eval(f"np.s_[{sel}]")])
            got = self.json(path, sel, "--bins", "6") if np.isfinite(part).any() else \
                self.json(path, sel)
            good = part[~np.isnan(part)]
            self.assertEqual((got["shape"], got["items"], got["nan"]),
                             (list(part.shape), part.size, part.size - good.size), sel)
            if not good.size:
                self.assertEqual((got["min"], got["mean"]), (None, None))
                continue
            self.assertEqual((got["min"], got["max"]), (good.min(), good.max()))
            np.testing.assert_allclose([got["sum"], got["mean"], got["std"]],
                                       [good.sum(), good.mean(), good.std()], rtol=1e-12, atol=1e-12)
            counts, edges = np.histogram(good, bins=6)
            self.assertEqual(got["histogram"]["counts"], counts.tolist(), sel)
            np.testing.assert_array_equal(got["histogram"]["edges"], edges)

    def test_lists_as_numpy(self):
        values = np.random.default_rng(6).integers(0, 1000, (30, 41, 17), "i4")
        path = self.store(values, chunks=(11, 17, 9), blocks=(4, 5, 3))
        lists = [3, 29, 3, -1], [0, 40, 7]
        for sel, part in (("[3,29,3,-1]", values[lists[0]]),
                          (":,[0,40,7],::-2", values[:, lists[1], ::-2]),
                          ("[3,29,3,-1],[0,40,7],5", values[np.ix_(*lists)][..., 5]),
                          ("None,[0,40,7],1", values[None, lists[1][::2], 1])):
            if sel.startswith("None"):
                sel = "None,[0,7],1"
            got = self.json(path, sel, "--bins", "7")
            self.assertEqual((got["shape"], got["items"], got["sum"], got["min"], got["max"]),
                             (list(part.shape), part.size, int(part.sum()), part.min(),
                              part.max()), sel)
            self.assertEqual(got["histogram"]["counts"], np.histogram(part, 7)[0].tolist())

    def test_masks_as_numpy(self):
        values = np.random.default_rng(7).integers(0, 1000, (30, 41), "i4")
        path = self.store(values, chunks=(11, 17), blocks=(4, 5))
        whole, rows = values % 3 == 1, values[:, 0] % 2 == 0
        np.save(self.path("whole.npy"), whole)
        np.save(self.path("rows.npy"), rows)
        for sel, part in ((f"@{self.path('whole.npy')}", values[whole]),
                          (f"@{self.path('rows.npy')},::-4", values[rows][:, ::-4])):
            got = self.json(path, sel, "--bins", "7", "-T", "3")
            self.assertEqual((got["shape"], got["items"], got["sum"], got["min"], got["max"]),
                             (list(part.shape), part.size, int(part.sum()), part.min(),
                              part.max()), sel)
            self.assertEqual(got["histogram"]["counts"], np.histogram(part, 7)[0].tolist())
        np.save(self.path("none.npy"), np.zeros(values.shape, bool))
        for sel, shape in ((f"@{self.path('none.npy')}", [0]), (":,[]", [30, 0])):
            got = self.json(path, sel, "--bins", "7")
            self.assertEqual((got["shape"], got["items"], got["sum"], got["histogram"]),
                             (shape, 0, 0, None), sel)

    def test_infinite_items(self):
        values = np.array([1, np.inf, 3, -np.inf, np.nan, np.inf, 9, 2])
        path = self.store(values)
        text = self.text("stats", path, "--bins", "2")
        self.assertIn("  nan      1\n  inf      2\n  -inf     1\n  [1, 5) ", text)
        got = self.json(path, "--bins", "4")
        counts, edges = np.histogram(values[np.isfinite(values)], 4)
        self.assertEqual((got["inf"], got["negative_inf"], got["nan"]), (2, 1, 1))
        self.assertEqual(got["histogram"], {"edges": edges.tolist(), "counts": counts.tolist()})
        got = self.json(path, "--bins", "3", "--range=-1,4")
        counts, edges = np.histogram(values[np.isfinite(values)], 3, (-1, 4))
        self.assertEqual(got["histogram"], {"edges": edges.tolist(), "counts": counts.tolist()})
        got = self.json(self.store(np.full(3000, np.inf)), "--bins", "4")
        self.assertEqual((got["inf"], got["histogram"]), (3000, None))

    def test_infinite_chunks(self):
        """Chunks of one value, and that the counts of several threads are added."""
        values = np.random.default_rng(8).normal(size=(40, 500))
        values[:10] = -np.inf
        values[10:20] = np.inf
        values[25, ::7] = np.inf
        path = self.store(values, chunks=(5, 100), blocks=(5, 50))
        got = self.json(path, "--bins", "5", "-T", "3")
        counts, edges = np.histogram(values[np.isfinite(values)], 5)
        self.assertEqual((got["inf"], got["negative_inf"]),
                         (np.isposinf(values).sum(), np.isneginf(values).sum()))
        self.assertEqual(got["histogram"]["counts"], counts.tolist())
        np.testing.assert_array_equal(got["histogram"]["edges"], edges)

    def test_refusals(self):
        path = self.store([1.0, np.inf])
        self.assertIn("--bins", self.fails(2, "stats", path, "--range", "0,1"))
        for bad in ("5", "5,1", "1,x", "nan,1", "0,inf"):
            self.assertIn("--range", self.fails(2, "stats", path, "--bins", "3",
                                                f"--range={bad}"))
        self.assertIn("too narrow", self.fails(2, "stats", self.store([1e300]), "--bins", "3"))
        for bad in ("0", "-1", "x", "1000001"):
            self.fails(2, "stats", path, f"--bins={bad}")
        self.fails(2, "stats", path, "7")
        self.fails(2, "stats", path, "[7]")
        self.fails(2, "stats")
        self.fails(3, "stats", self.path("none"))
        self.fails(4, "stats", __file__)
        for values in ([b"abc"], [1j], np.zeros(2, [("a", "<i4")])):
            self.assertIn("needs numbers", self.fails(5, "stats", self.store(values)))


if __name__ == "__main__":
    main()

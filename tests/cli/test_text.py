"""How get prints each kind of item, and how --fill parses it."""

import blosc2
import numpy as np

from tool_cli import DATA, Case, main

CASES = [
    ("?", [True, False], "True False"),
    ("<i1", [-128, 127], "-128 127"),
    (">i8", [-(2**63), 2**63 - 1], "-9223372036854775808 9223372036854775807"),
    ("<u8", [0, 2**64 - 1], "0 18446744073709551615"),
    ("<f2", [0.1, -65504, 6e-8, np.inf], "0.1 -6.55e+04 5.96e-08 inf"),
    ("<f4", [0.1, 1 / 3, -0.0, 16777216, np.nan], "0.1 0.33333334 -0 16777216 nan"),
    (">f8", [0.1, 1 / 3, 1e300, -np.inf, 2], "0.1 0.3333333333333333 1e+300 -inf 2"),
    ("<c8", [1.5 - 2j, complex(np.nan, np.inf)], "1.5-2j nan+infj"),
    (">c16", [0.1 + 0.2j], "0.1+0.2j"),
    ("|S5", [b"ab", b'q"\\', b"a,b", b"\xff\n", b""],
     r'"ab" "q\"\\" "a,b" "\ufffd\n" ""'),
    ("<U3", ["ab", "\u00e9\u20ac\U0001f600", ""], '"ab" "\u00e9\u20ac\U0001f600" ""'),
    (">U2", ["xy"], '"xy"'),
    ("<M8[D]", ["1969-12-31", "2024-02-29", "0001-01-01", "NaT"],
     "1969-12-31 2024-02-29 0001-01-01 NaT"),
    ("<M8[ns]", ["1969-12-31T23:59:59.999999999", "2262-04-11T23:47:16.854775807"],
     "1969-12-31T23:59:59.999999999 2262-04-11T23:47:16.854775807"),
    (">M8[M]", ["1969-11", "2000-01"], "1969-11 2000-01"),
    ("<M8[Y]", ["1900"], "1900"),
    ("<M8[W]", ["2024-02-29"], "2024-02-29"),
    ("<M8[h]", ["1969-12-31T05"], "1969-12-31T05"),
    ("<M8[m]", ["2001-02-03T04:05"], "2001-02-03T04:05"),
    ("<M8[25s]", ["1970-01-01T00:00:50"], "1970-01-01T00:00:50"),
    ("<m8[ms]", [5, -7, "NaT"], "5ms -7ms NaT"),
    ("<m8[25s]", [2], "50s"),
]


class Text(Case):
    def store(self, values, name="a.b2nd"):
        path = self.path(name)
        blosc2.asarray(values, urlpath=str(path), mode="w")
        return path

    def test_scalars(self):
        for dtype, items, want in CASES:
            values = np.array(items, dtype=dtype)
            got = self.text("get", self.store(values))
            self.assertEqual(got, want + "\n", dtype)

    def test_structures(self):
        dtype = [("a", "<i2"), ("b", ">f4", (2,)), ("c", [("d", "S2"), ("e", "?")])]
        values = np.zeros(2, dtype)
        values["a"] = [1, -2]
        values["b"] = [[1, 2], [0.5, 0.25]]
        values["c"]["d"] = b"xy"
        self.assertEqual(self.text("get", self.store(values)),
                         '(1, [1, 2], ("xy", False)) (-2, [0.5, 0.25], ("xy", False))\n')

    def test_aligned_structure(self):
        values = np.zeros(2, np.dtype([("a", "u1"), ("b", "<f8")], align=True))
        values["b"] = [1.5, 2.5]
        path = self.path("a.b2nd")
        np.save(self.path("in.npy"), values)
        self.ok("convert", self.path("in.npy"), path)
        self.assertEqual(self.text("get", path), "(0, 1.5) (0, 2.5)\n")
        self.ok("get", path, "-o", self.path("a.npy"))
        np.testing.assert_array_equal(np.load(self.path("a.npy"))["b"], values["b"])

    def test_precision_and_csv(self):
        path = self.store(np.array([[1 / 3, 2e10], [np.nan, -1]]))
        self.assertEqual(self.text("get", path, "--precision", 3, "--csv"),
                         "0.333,2e+10\nnan,-1\n")
        path = self.store(np.array(["a b", 'say "x"', "1,2"], dtype="S9"))
        self.assertEqual(self.text("get", path, "--csv"), 'a b,"say ""x""","1,2"\n')

    def test_shortest_floats_read_back(self):
        rng = np.random.default_rng(7)
        for kind, bits in (("<f2", "<u2"), ("<f4", "<u4"), ("<f8", "<u8")):
            size = np.dtype(bits).itemsize * 8
            values = rng.integers(0, 2**size, 3000, dtype=bits, endpoint=False).view(kind)
            values = values[np.isfinite(values)]
            words = self.text("get", self.store(values)).split()
            np.testing.assert_array_equal(np.array(words, dtype="f8").astype(kind), values)
            self.assertLessEqual(max(map(len, words)), {2: 11, 4: 15, 8: 24}[size // 8])

    def test_datetimes_as_numpy_prints_them(self):
        rng = np.random.default_rng(8)
        for unit in ("D", "h", "m", "s", "ms", "us", "ns", "ps", "fs", "as"):
            limit = 10**6 if unit == "D" else 10**10 if unit in "hms" else 2**62
            counts = rng.integers(-limit, limit, 200)
            values = counts.astype(f"M8[{unit}]")
            want = " ".join(np.datetime_as_string(values))
            if "-" in want.split("-")[0]:
                continue
            values = values[(values > np.datetime64("0001-01-01", "D").astype(f"M8[{unit}]"))
                            if unit in "Dhms" else slice(None)]
            self.assertEqual(self.text("get", self.store(values)),
                             " ".join(np.datetime_as_string(values)) + "\n")

    def test_fill_reads_what_get_prints(self):
        for dtype, value in (("<i2", "-7"), ("|u1", "255"), ("<f4", "0.1"), ("<f4", "nan"),
                             (">f8", "nan"), ("<f8", "-inf"), ("<f2", "0.1"), ("<f2", "nan"),
                             ("<c8", "1.5-2j"), ("|b1", "True"), ("|V2", "0x01ff")):
            path = self.path("f.b2nd")
            self.ok("create", path, "--shape", "3,2", "--dtype", dtype, "--fill", value, "-f")
            self.assertEqual(self.text("get", path, "2"), f"{value} {value}\n", dtype)
            read = blosc2.open(str(path))
            self.assertEqual((read.shape, read.dtype), ((3, 2), np.dtype(dtype)))
        for dtype, value, printed in (("<U4", "\u00e9x", '"\u00e9x"'), ("|S4", "ab", '"ab"'),
                                      ("<M8[D]", "1", "1970-01-02"), ("<c16", "2j", "0+2j"),
                                      ("<i4", "0", "0"), ("<f4", "uninit", "0")):
            self.ok("create", path, "--shape", "()", "--dtype", dtype, "--fill", value, "-f")
            self.assertEqual(self.text("get", path), printed + "\n")

    def test_dtypes_are_written_in_full(self):
        for given, stored in (("u1", "|u1"), ("float32", "<f4"), (">f8", ">f8"),
                              ("S3", "|S3"), ("U2", "<U2"), ("M8[ns]", "<M8[ns]"),
                              ("bool", "|b1"),
                              ("[('a', 'i4'), ('b', 'u1')]", "[('a', 'i4'), ('b', 'u1')]")):
            path = self.path("d.b2nd")
            self.ok("create", path, "--shape", "2", "--dtype", given, "-f")
            self.assertIn(f'"dtype_stored": "{stored}"', self.text("info", path, "--json"))
            self.assertEqual(blosc2.open(str(path)).dtype,
                             np.dtype(eval(given) if given[0] == "[" else given))

    def test_fill_out_of_range(self):
        for dtype, value in (("|u1", "256"), ("|u1", "-1"), ("|i1", "128"), ("<i4", "1.5"),
                             ("<f4", "x"), ("|S2", "abc"), ("|b1", "2"), ("<i8", "nan"),
                             ("<u8", "18446744073709551616"), ("|V2", "0x01")):
            err = self.fails(2, "create", self.path("x.b2nd"), "--shape", "2",
                             "--dtype", dtype, "--fill", value)
            self.assertIn(f"'{value}' is not a value of", err)
        self.assertEqual(self.names(), [])

    def test_others_files(self):
        if not DATA.is_dir():
            self.skipTest("the data folder is not there")
        self.assertEqual(self.text("get", DATA / "ds-sc-attr.b2nd"), '"foobar"\n')
        self.assertEqual(self.text("get", DATA / "ds-2d-fields.b2nd", "1,0:2"),
                         "(0.0100005, 1.0100005000250012) "
                         "(0.010050503, 1.0100505025251263)\n")
        self.assertEqual(self.text("get", DATA / "example_day_month_temp.b2nd", "0"),
                         self.text("get", DATA / "example_day_month_temp.b2nd", "0:1"))


if __name__ == "__main__":
    main()

"""attr set and rm: JSON in, the bytes of python-blosc2 in the file."""

import json

import blosc2
import msgpack
import numpy as np

from tool_cli import Case, main

SCALARS = [
    "null", "true", "false", '""', '"kelvin"', r'"q\"\\\/\b\f\n\r\t"',
    r'"\u20ac\ud83d\ude00"',
    '"\u00e9\u20ac\U0001f600"', r'"a\u0000b"', '"%s"' % ("x" * 31), '"%s"' % ("x" * 32),
    '"%s"' % ("x" * 255), '"%s"' % ("x" * 256), '"%s"' % ("x" * 65535),
    '"%s"' % ("x" * 65536), "0.1", "-0.0", "1.0", "1e3", "-2.5E-3", "1E+2", "5e-324",
    "1.7976931348623157e308",
] + [str(sign * 2**bits + delta) for bits in (0, 5, 7, 8, 15, 16, 31, 32, 63)
     for sign in (1, -1) for delta in (-1, 0, 1) if sign * 2**bits + delta >= -2**63] + [
    str(2**64 - 1), "-0",
]
CONTAINERS = [
    "[]", "{}", "[[]]", '{"a": {}}', " [ 1 , 2.5 ,\t\"x\" ,\r\n null ] ",
    '{"a": [1, {"b": [true, false, {}]}, []], "\u00e9": null, "": ""}', "[" * 64 + "]" * 64,
    json.dumps(list(range(15))), json.dumps(list(range(16))), json.dumps([0] * 65535),
    json.dumps([0] * 65536), json.dumps({str(i): i for i in range(15)}),
    json.dumps({str(i): [i] for i in range(16)}),
    json.dumps({str(i): i for i in range(66000)}),
]
WRONG = [
    ("", "a value at position 1"), ("  ", "a value at position 3"),
    ("kelvin", "a value at position 1"), ("[1,]", "a value at position 4"),
    ("[1 2]", "',' or ']' at position 4"), ('{"a" 1}', "':' at position 6"),
    ("{a: 1}", "a key in double quotes at position 2"),
    ('{"a": 1,}', "a key in double quotes"),
    ('{"a": 1]', "',' or '}' at position 8"), ("[1", "',' or ']' at position 3"),
    ('"abc', "'\"' at position 5"), (r'"\x"', "at position 3"), (r'"\u12g4"', "four hexadec"),
    (r'"\ud800"', "surrogate pair"), (r'"\ud800\u0041"', "surrogate pair"),
    (r'"\udc00"', "surrogate pair"), ('"a\tb"', "an escape"), ("1 2", "nothing more"),
    ("01", "nothing more at position 2"), ("1.", "a value"), (".5", "a value"),
    ("+1", "a value"),
    ("1e", "a value"), ("0x10", "nothing more"), ("NaN", "a value"), ("Infinity", "a value"),
    ("1e999", "the range of float64"), (str(2**64), "64 bits"), (str(-2**63 - 1), "64 bits"),
    ("True", "a value"), ("nul", "a value"), ("[" * 65 + "]" * 65, "less depth"),
    ("]", "a value"),
]


class Attributes(Case):
    def setUp(self):
        super().setUp()
        self.array = self.path("a.b2nd")
        blosc2.asarray(np.arange(6), urlpath=str(self.array))

    def stored(self, key):
        """The bytes in the file, and what python-blosc2 makes of them."""
        array = blosc2.open(str(self.array)) # its vlmeta does not keep it alive
        meta = array.schunk.vlmeta
        return super(type(meta), meta).get_vlmeta(key), meta[key]

    def test_values(self):
        for text in SCALARS + CONTAINERS:
            value = json.loads(text)
            short = len(text) < 60000
            self.assertEqual(self.ok("attr", "set", self.array, "k", text if short else "-",
                                     stdin=None if short else text.encode()), b"")
            raw, read = self.stored("k")
            self.assertEqual(raw, msgpack.packb(value), text[:60])
            self.assertEqual((read, type(read)), (value, type(value)), text[:60])
            printed = self.text("attr", "get", self.array, "k")
            self.assertEqual(json.loads(printed), value)
        np.testing.assert_array_equal(blosc2.open(str(self.array))[...], np.arange(6))

    def test_standard_input(self):
        for text, value in (('"x"\n', "x"), ("[1,\n 2]\n", [1, 2]),
                            ('"%s"' % ("y" * 200_000), "y" * 200_000)):
            self.ok("attr", "set", self.array, "k", "-", stdin=text.encode())
            self.assertEqual(self.stored("k")[1], value)
        err = self.fails(2, "attr", "set", self.array, "k", "-", stdin=b"what\n")
        self.assertEqual(err, "caterva: standard input is not JSON: expected a value at "
                              "position 1; text needs double quotes\n")
        for bad in (b'"\xff"', b'"a\0"', b'"a"\0', b"1\0002", b""):
            self.fails(2, "attr", "set", self.array, "k", "-", stdin=bad)
        self.assertEqual(self.stored("k")[1], "y" * 200_000)

    def test_replace_and_remove(self):
        for key, value in (("a", 1), ("b", 2), ("c", 3)):
            self.ok("attr", "set", self.array, key, value)
        self.ok("attr", "set", self.array, "b", "-5")
        self.assertEqual(self.text("attr", "list", self.array), '"a": 1\n"b": -5\n"c": 3\n')
        self.ok("attr", "rm", self.array, "a")
        self.ok("attr", "set", self.array, "--", "-key", '"v"')
        array = blosc2.open(str(self.array))
        self.assertEqual(array.schunk.vlmeta.getall(), {"b": -5, "c": 3, "-key": "v"})
        for key in ("b", "c"):
            self.ok("attr", "rm", self.array, key)
        self.ok("attr", "rm", self.array, "--", "-key")
        self.assertEqual(self.text("attr", "list", self.array), "")
        array = blosc2.open(str(self.array))
        self.assertEqual(len(array.schunk.vlmeta), 0)
        self.assertIn(": ok, ", self.text("verify", self.array))

    def test_python_changes_what_we_wrote(self):
        self.ok("attr", "set", self.array, "ours", '{"a": [1]}')
        array = blosc2.open(str(self.array), mode="a")
        array.schunk.vlmeta["theirs"] = {"b": b"\0\1"}
        array.schunk.vlmeta["ours"] = "changed"
        self.assertEqual(self.text("attr", "list", self.array),
                         '"ours": "changed"\n"theirs": {"b": {"$binary": "AAE="}}\n')
        self.ok("attr", "rm", self.array, "ours")
        array = blosc2.open(str(self.array))
        self.assertEqual(array.schunk.vlmeta.getall(), {"theirs": {"b": b"\0\1"}})

    def test_sparse(self):
        self.array = self.path("s.b2nd")
        self.ok("create", self.array, "--shape", "4", "--dtype", "u1", "--sparse")
        self.ok("attr", "set", self.array, "k", "[1, 2]")
        self.assertEqual(self.stored("k")[1], [1, 2])
        self.ok("attr", "rm", self.array, "k")
        self.fails(1, "attr", "get", self.array, "k")

    def test_no_json(self):
        before = self.array.read_bytes()
        for text, expected in WRONG:
            err = self.fails(2, "attr", "set", self.array, "k", "--", text)
            self.assertIn(expected, err, text)
        self.assertEqual(
            self.fails(2, "attr", "set", self.array, "unit", "kelvin"),
            "caterva: VALUE 'kelvin' is not JSON: expected a value at position 1; text needs "
            "double quotes, inside single ones for a shell: '\"kelvin\"'\n")
        self.assertIn("""'["text", 1, {"key": null}]'""",
                      self.fails(2, "attr", "set", self.array, "k", "[a, b]"))
        self.assertEqual(self.array.read_bytes(), before)

    def test_refusals(self):
        before = self.array.read_bytes()
        self.assertIn("no attribute 'what'", self.fails(1, "attr", "rm", self.array, "what"))
        for key in ("", "k" * 65536):
            self.assertIn("1 to 65535 bytes",
                          self.fails(2, "attr", "set", self.array, key, "1"))
        own = [self.array, "_caterva"]
        self.assertIn("library's own", self.fails(2, "attr", "set", *own, "1"))
        self.assertIn("library's own", self.fails(2, "attr", "rm", *own))
        self.assertIn("FILE KEY VALUE", self.fails(2, "attr", "set", self.array, "k"))
        self.assertIn("FILE KEY", self.fails(2, "attr", "rm", self.array))
        self.assertIn("FILE KEY", self.fails(2, "attr", "rm", self.array, "k", "1"))
        self.assertIn("list, get, set and rm", self.fails(2, "attr", "add", self.array))
        self.fails(3, "attr", "set", self.path("none.b2nd"), "k", "1")
        self.fails(3, "attr", "rm", self.path("none.b2nd"), "k")
        self.assertEqual(self.array.read_bytes(), before)
        self.assertIn("--dtype is for", self.fails(2, "attr", "get", self.array, "k", "--dtype",
                                                   "i2"))

    def test_without_limits(self):
        """200 attributes, a long name, a typed one, nested maps: reopened the same, and
        python-blosc2 sees what fits."""
        long = "straight_vertical_longitude_from_pole"
        deep = {"a": {"b": [1, {"c": None}]}}
        expected = {f"k{i}": i for i in range(200)} | {long: -45.0, "deep": deep}
        for key, value in expected.items():
            self.ok("attr", "set", self.array, key, "--", json.dumps(value))
        self.ok("attr", "set", self.array, "_FillValue", "--dtype", "<i2", "--", "-999")
        listed = json.loads(self.text("attr", "list", self.array, "--json"))["attributes"]
        fill = listed.pop("_FillValue")
        self.assertEqual(fill, {"$array": {"dtype": "<i2", "shape": [], "data": [-999]}})
        self.assertEqual(listed, expected)
        for key in ("k0", "k199", long):
            self.assertEqual(json.loads(self.text("attr", "get", self.array, key)),
                             expected[key])
        array = blosc2.open(str(self.array))
        seen = array.schunk.vlmeta.getall()
        self.assertEqual(len(seen), 16)
        self.assertEqual(seen.pop("_FillValue").dtype, np.dtype("<i2"))
        self.assertEqual(seen.pop("attrs") | seen, expected)
        np.testing.assert_array_equal(array[...], np.arange(6))
        self.assertIn(": ok, ", self.text("verify", self.array))
        copy = self.path("copy.b2nd")
        self.ok("repack", self.array, copy)
        self.assertEqual(self.text("attr", "list", copy), self.text("attr", "list", self.array))
        for i in range(20): # those behind move up
            self.ok("attr", "rm", self.array, f"k{i}")
        array = blosc2.open(str(self.array))
        seen = array.schunk.vlmeta.getall()
        self.assertEqual(set(seen), {f"k{i}" for i in range(20, 34)} | {"_FillValue", "attrs"})
        self.assertEqual(len(seen["attrs"]), 182 - 14)

    def test_maps_of_others(self):
        """Merged, also from JSON; what is no map is an attribute, and moves into one when
        there has to be one."""
        cases = [({"x": 1, "units": "other"}, '"units": "K"\n"x": 1\n'),
                 ('{"x": [1, 2]}', '"units": "K"\n"x": [1, 2]\n'),
                 ({}, '"units": "K"\n'), ("{broken", '"attrs": "{broken"\n"units": "K"\n'),
                 (5, '"attrs": 5\n"units": "K"\n'),
                 ({"": 1}, '"attrs": {"": 1}\n"units": "K"\n')]
        for value, expected in cases:
            array = blosc2.open(str(self.array), mode="a")
            array.schunk.vlmeta["attrs"] = value
            array.schunk.vlmeta["units"] = "K"
            self.assertEqual("".join(sorted(self.text("attr", "list", self.array)
                                            .splitlines(True))), expected)
        self.ok("attr", "set", self.array, "attrs", "5")
        self.assertEqual(self.stored("attrs")[1], {"attrs": 5})
        self.ok("attr", "set", self.array, "n" * 40, '"x"')
        self.assertEqual(self.stored("attrs")[1], {"attrs": 5, "n" * 40: "x"})
        self.assertEqual(self.text("attr", "get", self.array, "attrs"), "5\n")
        self.ok("attr", "rm", self.array, "attrs")
        self.ok("attr", "rm", self.array, "n" * 40)
        self.assertEqual(self.text("attr", "list", self.array), '"units": "K"\n')
        array = blosc2.open(str(self.array))
        self.assertEqual(array.schunk.vlmeta.getall(), {"units": "K"})


if __name__ == "__main__":
    main()

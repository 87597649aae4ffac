"""attr set and delete: from JSON to the bytes that python-blosc2 writes."""

import json
import os

import blosc2
import msgpack
import numpy as np

from tool_cli import LONG, SANITIZED, Case, main, some

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
    ("", "near end of file"), ("  ", "near end of file (line 1, column 2)"),
    ("kelvin", "invalid token near 'kelvin'"), ("[1,]", "near ']' (line 1, column 4)"),
    ("[1 2]", "']' expected near '2' (line 1, column 4)"), ('{"a" 1}', "':' expected near '1'"),
    ("{a: 1}", "string or '}' expected near 'a' (line 1, column 2)"),
    ('{"a": 1,}', "string or '}' expected"), ('{"a": 1]', "'}' expected near ']'"),
    ("[1", "']' expected near end of file"), ('"abc', "premature end of input"),
    (r'"\x"', "invalid escape"), (r'"\u12g4"', "invalid escape"),
    (r'"\ud800"', "invalid Unicode"), (r'"\ud800\u0041"', "invalid Unicode"),
    (r'"\udc00"', "invalid Unicode"), ('"a\tb"', "control character"), ("1 2", "end of file expected"),
    ("01", "invalid token"), ("1.", "invalid token"), (".5", "invalid token"),
    ("+1", "invalid token"), ("1e", "invalid token"), ("0x10", "end of file expected near 'x'"),
    ("NaN", "invalid token"), ("Infinity", "invalid token"), ("1e999", "is not JSON"),
    (str(2**64), "too big integer"), (str(-2**63 - 1), "too big negative integer"),
    (f'["uint64#0#", {2**64 - 1}, {2**64}]', "too big integer"),
    ("True", "invalid token"), ("nul", "invalid token"), ("[" * 65 + "]" * 65, "at most 64 nested lists and objects"),
    ("]", "unexpected token"),
    ('{"$binary": 1}', "base64 as text"), ('{"$binary": "a"}', "expected base64"),
    ('{"$binary": "AB==\"}', "expected base64"), ('{"$binary": "AA==AAAA"}', "expected base64"),
    ('{"$binary": "AA==", "x": 1}', 'no other key beside "$..."'),
    ('{"$ext": 128, "data": ""}', "-128 to 127"), ('{"$ext": 1}', '"$ext" and "data"'),
    ('{"$complex": [1]}', "[real, imaginary]"), ('{"$complex": [1, "x"]}', "a number"),
    ('{"$tuple": 1}', "'['"), ('{"$set": {}}', "'['"), ('{"$map": [1]}', "[key, value]"),
    ('{"$map": [[1, 2, 3]]}', "[key, value]"), ('{"$map": [[[], 2]]}', "a key that is neither a list nor a map"),
    ('{"$array": {"dtype": "O", "shape": [], "data": []}}', "dtype of a scalar"),
    ('{"$array": {"dtype": "S0", "shape": [9], "data": []}}', "dtype of a scalar"),
    ('{"$array": {"dtype": "i1", "shape": [2], "data": [1]}}', "as many items"),
    ('{"$array": {"dtype": "i1", "shape": [-1], "data": [1]}}', "an extent of 0 or more"),
    ('{"$array": {"dtype": "i1", "shape": [1], "data": [128]}}', "fits the dtype"),
    ('{"$array": {"dtype": "i1", "shape": [1], "data": [-129]}}', "fits the dtype"),
    ('{"$array": {"dtype": "u1", "shape": [1], "data": [-1]}}', "fits the dtype"),
    ('{"$array": {"dtype": "f4", "shape": [1], "data": [1e39]}}', "the range of the"),
    ('{"$array": {"dtype": "S1", "shape": [1], "data": ["ab"]}}', "fits the dtype"),
    ('{"$array": {"dtype": "f2", "shape": [1], "data": [1]}}', "$binary"),
]
NOT_OF_ONE_SHAPE = ["[1, [2]]", "[[1], 2]", "[[1], [2, 3]]", "[[], [1]]", "[[], [[]]]", "[1", "[1,]",
                    "", "[true]", '{"a": 1}', "1 2", "[1.5]", "[2147483648]"]
# Packed, as JSON; both ways.
BOTH_WAYS = [
    (b"\xcf" + b"\xff" * 8, str(2**64 - 1)), (b"\xc4\x02\x00\xff", '{"$binary": "AP8="}'),
    (b"\xc4\x00", '{"$binary": ""}'), (b"\x92\xa9__tuple__\x01", '{"$tuple": [1]}'),
    (b"\x91\xa9__tuple__", '{"$tuple": []}'), (b"\x91\x92\xa9__tuple__\x01", '[{"$tuple": [1]}]'),
    (b"\xc7\x03\x2d\x92\x01\x02", '{"$set": [1, 2]}'), (b"\xd4\x2d\x90", '{"$set": []}'),
    (b"\xd8\x2c\x3f\xf0" + bytes(6) + b"\xc0" + bytes(7), '{"$complex": [1.0, -2.0]}'),
    (b"\xd8\x2c\x3f\xf0" + bytes(6) + b"\x7f\xf8" + bytes(6), '{"$complex": [1.0, "NaN"]}'),
    (b"\xd4\x01\xff", '{"$ext": 1, "data": "/w=="}'), (b"\xd4\x80\xff", '{"$ext": -128, "data": "/w=="}'),
    (b"\xd6\x2aabcd", '{"$ext": 42, "data": "YWJjZA=="}'),
    (b"\x81\x01\x02", '{"$map": [[1, 2]]}'),
    (b"\x81\xc0\x91\x81\x02\x03", '{"$map": [[null, [{"$map": [[2, 3]]}]]]}'),
    (b"\x81\xa4$set\x90", '{"$map": [["$set", []]]}'),
    (b"\x82\xa1x\x01\xa4$set\x90", '{"x": 1, "$set": []}'), (b"\x81\xa7$schema\x01", '{"$schema": 1}'),
    (b"\x92\xa9uint64#0#\xcf" + b"\xff" * 8, f'["uint64#0#", {2**64 - 1}]'),
]
TO_JSON_ONLY = [
    (b"\xd9\x01x", '"x"'), (b"\xca\x3d\xcc\xcc\xcd", "0.10000000149011612"),
    (b"\xcb\x7f\xf0" + bytes(6), '"Infinity"'), (b"\xa2\xff\x1b", '"\\ufffd\\u001b"'),
    (b"\xd5\x2c\x01\x02", '{"$ext": 44, "data": "AQI="}'), (b"\xd4\x2e\x80", '{"$ext": 46, "data": "gA=="}'),
    (b"\x92\x01", '{"$binary": "kgE="}'), (b"\x01\x02", '{"$binary": "AQI="}'),
    (b"\xdd\xff\xff\xff\xff", '{"$binary": "3f////8="}'), (b"\xc1", '{"$binary": "wQ=="}'),
    (b"\x81\x90\x01", '{"$binary": "gZAB"}'), (b"\xd4\x2d\x01", '{"$binary": "1C0B"}'),
    (b"\xd5\x2d\x90\x00", '{"$binary": "1S2QAA=="}'), (b"\x91" * 65 + b"\x01", None),
]
# dtype, JSON, what is read back.
TYPED = [
    ("<i2", "-999", "<i2", [], [-999]), ("<i2", "[-999]", "<i2", [1], [-999]),
    (">u4", "[[1, 2], [3, 4294967295]]", ">u4", [2, 2], [1, 2, 3, 4294967295]),
    ("<u8", f"[{2**64 - 1}, 0, {2**63}]", "<u8", [3], [2**64 - 1, 0, 2**63]),
    ("<i8", f"{-2**63}", "<i8", [], [-2**63]),
    ("<f4", '[0.1, "NaN", "-Infinity"]', "<f4", [3], [0.1, "NaN", "-Infinity"]),
    ("?", "[true, false]", "|b1", [2], [True, False]),
    ("<U3", '["\u00e9t", ""]', "<U3", [2], ["\u00e9t", ""]), ("S3", '"\u00e9"', "|S3", [], ["\u00e9"]),
    ("<M8[ns]", "-1", "<M8[ns]", [], [-1]), ("<i8", "[]", "<i8", [0], []),
    ("<i8", "[[], []]", "<i8", [2, 0], []),
]


class Attributes(Case):
    def setUp(self):
        super().setUp()
        self.array = self.path("a.b2nd")
        blosc2.asarray(np.arange(6), urlpath=str(self.array))

    def stored(self, key):
        """The bytes in the file, and the value that python-blosc2 reads from them."""
        array = blosc2.open(str(self.array))  # its vlmeta does not hold a reference to it
        meta = array.schunk.vlmeta
        return super(type(meta), meta).get_vlmeta(key), meta[key]

    def test_values(self):
        for text in some(SCALARS + CONTAINERS, sanitized=3):
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
        self.assertEqual(err, "caterva: standard input is not JSON: invalid token near 'what' "
                              "(line 1, column 4); text needs double quotes\n")
        for bad in (b'"\xff"', b'"a\0"', b'"a"\0', b"1\0002", b""):
            self.fails(2, "attr", "set", self.array, "k", "-", stdin=bad)
        self.assertEqual(self.stored("k")[1], "y" * 200_000)

    def test_replace_and_remove(self):
        for key, value in (("a", 1), ("b", 2), ("c", 3)):
            self.ok("attr", "set", self.array, key, value)
        self.ok("attr", "set", self.array, "b", "-5")
        self.assertEqual(self.text("attr", "list", self.array), '"a": 1\n"b": -5\n"c": 3\n')
        self.ok("attr", "delete", self.array, "a")
        self.ok("attr", "set", self.array, "--", "-key", '"v"')
        array = blosc2.open(str(self.array))
        self.assertEqual(array.schunk.vlmeta.getall(), {"b": -5, "c": 3, "-key": "v"})
        for key in ("b", "c"):
            self.ok("attr", "delete", self.array, key)
        self.ok("attr", "delete", self.array, "--", "-key")
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
        self.ok("attr", "delete", self.array, "ours")
        array = blosc2.open(str(self.array))
        self.assertEqual(array.schunk.vlmeta.getall(), {"theirs": {"b": b"\0\1"}})

    def test_sparse(self):
        self.array = self.path("s.b2nd")
        self.ok("create", self.array, "--shape", "4", "--dtype", "u1", "--sparse")
        self.ok("attr", "set", self.array, "k", "[1, 2]")
        self.assertEqual(self.stored("k")[1], [1, 2])
        self.ok("attr", "delete", self.array, "k")
        self.fails(1, "attr", "get", self.array, "k")

    def test_no_json(self):
        before = self.array.read_bytes()
        for text, expected in WRONG:
            err = self.fails(2, "attr", "set", self.array, "k", "--", text)
            self.assertIn(expected, err, text)
        self.assertEqual(
            self.fails(2, "attr", "set", self.array, "unit", "kelvin"),
            "caterva: VALUE 'kelvin' is not JSON: invalid token near 'kelvin' (line 1, column 6); "
            "text needs double quotes, inside single ones for a shell: '\"kelvin\"'\n")
        self.assertIn("""'["text", 1, {"key": null}]'""",
                      self.fails(2, "attr", "set", self.array, "k", "[a, b]"))
        self.assertEqual(self.array.read_bytes(), before)

    def set_packed(self, key, packed):
        array = blosc2.open(str(self.array), mode="a")
        meta = array.schunk.vlmeta
        super(type(meta), meta).set_vlmeta(key, packed)

    def test_words(self):
        for packed, text in BOTH_WAYS:
            self.ok("attr", "set", self.array, "k", "--", text)
            self.assertEqual(self.stored_bytes("k"), packed, text)
            self.assertEqual(self.text("attr", "get", self.array, "k"), text + "\n")
        for packed, text in TO_JSON_ONLY:
            self.set_packed("k", packed)
            printed = self.text("attr", "get", self.array, "k")
            if text is None:
                self.assertIn("$binary", printed)
            else:
                self.assertEqual(printed, text + "\n", packed)

    def stored_bytes(self, key):
        array = blosc2.open(str(self.array))
        meta = array.schunk.vlmeta
        return super(type(meta), meta).get_vlmeta(key)

    def test_typed(self):
        for dtype, text, stored, shape, data in TYPED:
            self.ok("attr", "set", self.array, "k", "--dtype", dtype, "--", text)
            packed = self.stored_bytes("k")
            printed = self.text("attr", "get", self.array, "k")
            self.assertEqual(json.loads(printed),
                             {"$array": {"dtype": stored, "shape": shape, "data": data}}, text)
            self.ok("attr", "set", self.array, "k", "--", printed)
            self.assertEqual(self.stored_bytes("k"), packed)
        for text in NOT_OF_ONE_SHAPE:
            self.fails(2, "attr", "set", self.array, "k", "--dtype", "<i4", "--", text)
        self.assertIn("--dtype", self.fails(2, "attr", "set", self.array, "k", "--dtype", "what", "1"))

    def test_random_arrays(self):
        """Arrays of any bits come back from their JSON, as items or as base64."""
        seed = int.from_bytes(os.urandom(4))
        print("seed", seed)
        rng = np.random.default_rng(seed)
        for dtype in ("<i2", ">i4", "<u8", "|b1", "<f4", ">f8", "<c16", "|S5", "<U3", "<M8[D]", "|V3", "<f2"):
            shape = tuple(rng.integers(0, 5, rng.integers(0, 3)))
            size = int(np.prod(shape, dtype=int)) * np.dtype(dtype).itemsize
            items = rng.integers(0, 256, size, dtype="u1").tobytes()
            inner = msgpack.packb({"dtype": {"str": dtype}, "shape": [int(n) for n in shape], "data": items})
            packed = msgpack.packb(msgpack.ExtType(46, inner))
            self.set_packed("k", packed)
            printed = self.text("attr", "get", self.array, "k")
            self.ok("attr", "set", self.array, "k", "-", stdin=printed.encode())
            self.assertEqual(self.stored_bytes("k"), packed, printed)

    def test_refusals(self):
        before = self.array.read_bytes()
        self.assertIn("no attribute 'what'", self.fails(1, "attr", "delete", self.array, "what"))
        for key in ("", "k" * 65536):
            self.assertIn("1 to 65535 bytes",
                          self.fails(2, "attr", "set", self.array, key, "1"))
        own = [self.array, "_caterva"]
        self.assertIn("library's own", self.fails(2, "attr", "set", *own, "1"))
        self.assertIn("library's own", self.fails(2, "attr", "delete", *own))
        self.assertIn("FILE KEY VALUE", self.fails(2, "attr", "set", self.array, "k"))
        self.assertIn("FILE KEY", self.fails(2, "attr", "delete", self.array))
        self.assertIn("FILE KEY", self.fails(2, "attr", "delete", self.array, "k", "1"))
        self.assertIn("list, get, set and delete", self.fails(2, "attr", "add", self.array))
        self.fails(3, "attr", "set", self.path("none.b2nd"), "k", "1")
        self.fails(3, "attr", "delete", self.path("none.b2nd"), "k")
        self.assertEqual(self.array.read_bytes(), before)
        self.assertIn("--dtype requires attr set", self.fails(2, "attr", "get", self.array, "k", "--dtype",
                                                   "i2"))

    def test_without_limits(self):
        """Many attributes, a long name, a typed one, nested maps: all are read after reopening,
        and python-blosc2 sees those that fit."""
        long = "straight_vertical_longitude_from_pole"
        deep = {"a": {"b": [1, {"c": None}]}}
        n = 60 if SANITIZED and not LONG else 200
        expected = {f"k{i}": i for i in range(n)} | {long: -45.0, "deep": deep}
        for key, value in expected.items():
            self.ok("attr", "set", self.array, key, "--", json.dumps(value))
        self.ok("attr", "set", self.array, "_FillValue", "--dtype", "<i2", "--", "-999")
        listed = json.loads(self.text("attr", "list", self.array, "--json"))["attributes"]
        fill = listed.pop("_FillValue")
        self.assertEqual(fill, {"$array": {"dtype": "<i2", "shape": [], "data": [-999]}})
        self.assertEqual(listed, expected)
        for key in ("k0", f"k{n - 1}", long):
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
        for i in range(20):  # the following ones move up
            self.ok("attr", "delete", self.array, f"k{i}")
        array = blosc2.open(str(self.array))
        seen = array.schunk.vlmeta.getall()
        self.assertEqual(set(seen), {f"k{i}" for i in range(20, 34)} | {"_FillValue", "attrs"})
        self.assertEqual(len(seen["attrs"]), n - 18 - 14)

    def test_maps_of_others(self):
        """Maps are merged, also from JSON; anything else is an attribute, and is moved into a
        map when one is needed."""
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
        self.ok("attr", "delete", self.array, "attrs")
        self.ok("attr", "delete", self.array, "n" * 40)
        self.assertEqual(self.text("attr", "list", self.array), '"units": "K"\n')
        array = blosc2.open(str(self.array))
        self.assertEqual(array.schunk.vlmeta.getall(), {"units": "K"})


if __name__ == "__main__":
    main()

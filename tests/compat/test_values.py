"""Values of attributes, compared with python-blosc2: what it writes is printed as equivalent
JSON, and that JSON becomes the bytes that it would write.

usage: test_values.py [SEED]"""

import base64
import json
import os
import random
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

from tool_driver import skip

try:
    import blosc2
    import numpy as np
    from blosc2.msgpack_utils import msgpack_packb
except ImportError as missing:
    skip(f"{missing}; it runs in the virtual environment of scripts/bootstrap --test")

CATERVA = os.environ.get("CATERVA_CLI") or skip("CATERVA_CLI names no program")
SEED = int(sys.argv.pop(1)) if sys.argv[1:2] and sys.argv[1].isdigit() else int(time.time())
DTYPES = ["<i2", ">i4", "<u8", "|b1", "<f4", ">f8", "<c8", "|S4", "<U3", ">U2", "<M8[D]",
          "<m8[ns]", "<f2", "|V3"]


def random_array(r):
    shape = tuple(r.randrange(4) for _ in range(r.randrange(3)))
    dtype = np.dtype(r.choice(DTYPES))
    n = int(np.prod(shape, dtype=int))
    if dtype.kind in "SU":
        words = ["".join(r.choice("abé€") for _ in range(r.randrange(3))) for _ in range(n)]
        items = [w.encode()[:4].decode("utf-8", "ignore").encode() for w in words]
        return np.array(items if dtype.kind == "S" else words, dtype=dtype).reshape(shape)
    raw = bytes(r.randrange(2 if dtype.kind == "b" else 256) for _ in range(n * dtype.itemsize))
    return np.frombuffer(raw, dtype).reshape(shape)


def random_value(r, depth, hashable=False):
    scalars = [None, True, False, r.randrange(-2**63, 2**64), r.randrange(-40, 200),
               r.gauss(0, 1e6), "", "é" * r.randrange(40), "\x00\x1f\x7f\x85\"\\/",
               r.randbytes(r.randrange(300)), complex(r.gauss(0, 1), r.randrange(3))]
    kind = r.randrange(7)
    if depth == 0 or kind < 2 or hashable:
        return r.choice(scalars)
    some = range(r.randrange(5) if r.randrange(9) else 40)
    if kind == 2:
        return [random_value(r, depth - 1) for _ in some]
    if kind == 3:
        return tuple(random_value(r, depth - 1) for _ in some)
    if kind == 4:
        return {r.choice(["k", "$set", "$x", ""]) + str(i) * (i % 3): random_value(r, depth - 1)
                for i in some}
    if kind == 5:
        return {random_value(r, 0, True) for _ in some}
    return random_array(r)


def plain_array(a):
    """The `data` of an array: numbers, or bytes if JSON cannot express its items."""
    swapped = a.astype(a.dtype.newbyteorder("="))
    if a.dtype.kind in "Vf" and a.dtype.itemsize not in (4, 8) or a.dtype.kind == "V":
        return None
    if a.dtype.kind in "fc":
        # The payload of a NaN other than NumPy's would be lost.
        single = a.dtype.str[1:] in ("f4", "c8")
        parts = swapped.reshape(-1).view("f4" if single else "f8")
        bits = parts.view(f"u{parts.itemsize}")
        plain = np.array(np.nan, parts.dtype).view(bits.dtype)
        if np.any(np.isnan(parts) & (bits != plain)):
            return None
    if a.dtype.kind in "mM":
        return swapped.view("i8").reshape(-1).tolist()
    if a.dtype.kind == "S":
        return [item.decode() for item in a.reshape(-1).tolist()]
    if a.dtype.kind == "c":
        return [[number(z.real), number(z.imag)] for z in swapped.reshape(-1)]
    return [number(x) if a.dtype.kind == "f" else x for x in swapped.reshape(-1).tolist()]


def number(x):
    x = float(x)
    return x if np.isfinite(x) else {np.inf: "Infinity", -np.inf: "-Infinity"}.get(x, "NaN")


def told(value):
    """The expected JSON."""
    match value:
        case bytes():
            return {"$binary": base64.b64encode(value).decode()}
        case tuple():
            return {"$tuple": [told(v) for v in value]}
        case list():
            return [told(v) for v in value]
        case complex():
            return {"$complex": [value.real, value.imag]}
        case set():
            return {"$set": [told(v) for v in value]}
        case np.ndarray():
            data = plain_array(value)
            if data is None:
                data = {"$binary": base64.b64encode(value.tobytes()).decode()}
            return {"$array": {"dtype": value.dtype.str, "shape": list(value.shape),
                               "data": data}}
        case dict() if next(iter(value), "") in ("$set",):
            return {"$map": [[k, told(v)] for k, v in value.items()]}
        case dict():
            return {k: told(v) for k, v in value.items()}
    return value


def nearly(a, b):
    """Equal; float32 in the fewest digits that identify it."""
    if isinstance(a, float) and isinstance(b, float):
        return a == b or np.float32(a) == np.float32(b)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(nearly, a, b))
    if isinstance(a, dict) and isinstance(b, dict):
        return list(a) == list(b) and all(nearly(a[k], b[k]) for k in a)
    return type(a) is type(b) and a == b


class Values(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.path = Path(self.folder.name) / "a.b2nd"
        self.array = blosc2.asarray(np.arange(3), urlpath=str(self.path), mode="w")

    def run_it(self, *words, stdin=None):
        done = subprocess.run([CATERVA, "attr", *map(str, words)], input=stdin,
                              capture_output=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_random_values(self):
        print("seed", SEED)
        r = random.Random(SEED)
        for _ in range(25):
            values = [random_value(r, 4) for _ in range(40)]
            self.array.schunk.vlmeta["k"] = values
            text = self.run_it("get", self.path, "k")
            expected = json.loads(json.dumps(told(values)))
            if not nearly(json.loads(text), expected):
                for one, other in zip(json.loads(text), expected):
                    self.assertTrue(nearly(one, other), f"seed {SEED}: {one} {other}")
            self.run_it("set", self.path, "copy", "-", stdin=text)
            meta = blosc2.open(str(self.path), mode="r")
            stored = super(type(meta.schunk.vlmeta), meta.schunk.vlmeta).get_vlmeta("copy")
            self.assertEqual(stored, msgpack_packb(values), f"seed {SEED}")
            self.array = blosc2.open(str(self.path), mode="a")

    def test_typed(self):
        for text, dtype, expected in (
                ("-999", "<i2", np.array(-999, "<i2")), ("[-999]", "i2", np.array([-999], "<i2")),
                ("[[1.5], [2]]", "f4", np.array([[1.5], [2]], "f4")),
                ('["a", "\u00e9\u00e9"]', "U2", np.array(["a", "éé"])),
                ("12", "M8[D]", np.array("1970-01-13", "M8[D]"))):
            self.run_it("set", self.path, "_FillValue", text, "--dtype", dtype)
            opened = blosc2.open(str(self.path), mode="r")  # vlmeta holds no reference to it
            stored = opened.schunk.vlmeta["_FillValue"]
            self.assertEqual((stored.dtype, stored.shape), (expected.dtype, expected.shape))
            np.testing.assert_array_equal(stored, expected)
        for text, dtype in (("1.5", "i2"), ("70000", "i2"), ("1", "c8"), ("1", "[('a', 'i2')]"),
                            ("[1, [2]]", "i2")):
            done = subprocess.run([CATERVA, "attr", "set", self.path, "k", text, "--dtype", dtype],
                                  capture_output=True, check=False)
            self.assertEqual(done.returncode, 2, (text, dtype, done.stderr))

    def test_what_is_no_data(self):
        """A frame inside a value, and a pickle, are bytes: nothing is opened or run."""
        inner = blosc2.asarray(np.arange(4)).to_cframe()
        self.array.schunk.vlmeta["frame"] = blosc2.ndarray_from_cframe(inner)
        said = json.loads(self.run_it("get", self.path, "frame"))
        self.assertEqual(said["$ext"], 42)
        super(type(self.array.schunk.vlmeta), self.array.schunk.vlmeta).set_vlmeta(
            "raw", msgpack_packb([1, {2: 3}]))
        self.assertEqual(self.run_it("get", self.path, "raw"), b'[1, {"$map": [[2, 3]]}]\n')


if __name__ == "__main__":
    unittest.main()

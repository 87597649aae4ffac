"""Random trees of python-blosc2's TreeStore and DictStore: we list all that it lists, with the
same kinds, and read equal items; from archives, directories, and embed.b2e.

usage: test_trees.py [--seed N] [--trees N | --long]"""

import io
import json
import os
import random
import subprocess
import sys
import tempfile
import unittest
import warnings
import zipfile
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
import runs  # noqa: E402


def skip(why):
    print(why)
    sys.exit(77)


try:
    import blosc2
    import numpy as np
except ImportError as missing:
    skip(f"{missing}; it runs in the virtual environment of scripts/bootstrap --test")

CLI = os.environ.get("CATERVA_CLI") or skip("CATERVA_CLI names no program")
DTYPES = ["<i4", "<f8", ">i2", "|u1", "|b1", "<f4", "|S5", "<U3", "<M8[ns]", "<c16", "<u8"]
NAMES = ["a", "x", "temp", "lat lon", "été", "a.b", "x-1", "n" * 60, "_cols", "日本", "a:b"]


def word(option, default):
    return int(sys.argv[sys.argv.index(option) + 1]) if option in sys.argv else default


SEED = word("--seed", random.randrange(2**32))
LONG = "--long" in sys.argv
SHORT = runs.SANITIZED and not runs.LONG
TREES = word("--trees", 300 if "--long" in sys.argv else 10 if SHORT else 30)


def run(*arguments):
    done = subprocess.run([CLI, *map(str, arguments)], capture_output=True, timeout=300)
    return done.returncode, done.stdout, done.stderr.decode()


def ok(*arguments):
    status, out, err = run(*arguments)
    assert (status, err) == (0, ""), (arguments, status, err)
    return out


def listing(path):
    out = json.loads(ok("ls", "-r", "--json", path))
    return {entry["key"]: entry for entry in out["entries"]}


def items_of(path, key):
    return np.load(io.BytesIO(ok("get", f"{path}::{key}", "--to", "npy", "-o", "-")))


def equal(a, b):
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


# ---- Random trees ----------------------------------------------------------------


@dataclass
class Row:
    x: int = 0
    y: float = 0.0


def random_items(rng):
    dtype = np.dtype(rng.choice(DTYPES))
    shape = tuple(rng.choice([0, 1, 2, 7, 30]) for _ in range(rng.choice([0, 1, 1, 2, 2, 3])))
    numbers = np.random.default_rng(rng.randrange(2**32))
    kind = dtype.kind
    if kind in "SU":
        return numbers.integers(0, 999, shape).astype(dtype)
    if kind == "b":
        return numbers.integers(0, 2, shape).astype(dtype)
    return np.asarray(numbers.integers(0, 100, shape)).astype(dtype)


def random_value(rng):
    return rng.choice([rng.randrange(-2**40, 2**40), rng.random(), "text " * rng.randrange(90),
                       None, True, [1, "é", {"a": []}], {"k": {"of": 1.5}}, "日本"])


class Model:
    """The contents of a tree: {key: items} and {key: kind}."""

    def __init__(self, rng, path, store):
        self.rng, self.path, self.arrays, self.others, self.groups = rng, path, {}, {}, set()
        threshold = rng.choice([0, 0, 200, 10**9, None])
        with store(str(path), mode="w", threshold=threshold) as tree:
            self.fill(tree, store is blosc2.TreeStore)

    def new_key(self):
        parts = [self.rng.choice(NAMES) for _ in range(self.rng.choice([1, 1, 2, 2, 3]))]
        key = "/" + "/".join(parts)
        taken = {**self.arrays, **self.others}
        clash = key in self.groups or any(
            key == k or key.startswith(k + "/") or k.startswith(key + "/") for k in taken)
        # keys inside embed.b2e cannot contain a colon
        return None if clash or ":" in key else key

    def put_one(self, tree, is_tree):
        key, what = self.new_key(), self.rng.random()
        if key is None:
            return
        if is_tree and what < 0.08:
            table = blosc2.CTable(Row)
            for i in range(self.rng.randrange(1, 5)):
                table.append(Row(x=i, y=i / 2))
            tree[key] = table
            self.others[key] = "ctable"
        elif what < 0.14:
            chunk = blosc2.SChunk(chunksize=64, cparams={"typesize": 1})
            chunk.append_data(bytes(range(64)))
            tree[key] = chunk
            self.others[key] = "schunk"
        else:
            items = random_items(self.rng)
            array = blosc2.asarray(items)
            if self.rng.random() < 0.3:
                array.schunk.vlmeta["units"] = {"of": ["K", 1.5]}
            tree[key] = array
            self.arrays[key] = items

    def fill(self, tree, is_tree):
        for _ in range(self.rng.randrange(1, 12)):
            self.put_one(tree, is_tree)
        for key in list(self.arrays):
            if self.rng.random() < 0.15:
                self.arrays[key] = random_items(self.rng)
                tree[key] = self.arrays[key]
            elif self.rng.random() < 0.1:
                del tree[key]
                del self.arrays[key]
        if is_tree and self.rng.random() < 0.5:
            tree.attrs["title"] = "about all of it"
            for key in [k for k in self.arrays if k.count("/") > 1][:2]:
                tree[key.rsplit("/", 1)[0]].attrs["of"] = key


def expected_keys(path):
    """The keys that python-blosc2 lists."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with blosc2.open(str(path), mode="r") as tree:
            return set(tree.keys())


def check_tree(case, model, path):
    found = listing(path)
    tables = [key for key, kind in model.others.items() if kind == "ctable"]
    shown = {key for key in found if not any(key.startswith(t + "/") for t in tables)}
    groups = {key for key in shown if found[key]["kind"] == "group"}
    theirs = expected_keys(path)
    case.assertEqual(shown - groups, theirs - groups)
    case.assertLessEqual(theirs, shown)
    for key, items in model.arrays.items():
        case.assertEqual(found[key]["kind_name"], "array", key)
        case.assertTrue(equal(items_of(path, key), items), key)
    for key, kind in model.others.items():
        case.assertEqual(found[key]["kind_name"], kind, key)
    for table in tables:
        xs = items_of(path, f"{table}/_cols/x")
        case.assertEqual(list(xs[:3]), list(range(len(xs)))[:3])
    status, _, err = run("verify", "--short", path)
    case.assertEqual((status, err), (0, ""))


class Trees(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def test_random(self):
        for number in range(TREES):
            with self.subTest(number):
                rng = random.Random(SEED * 1000 + number)
                store = rng.choice([blosc2.TreeStore, blosc2.TreeStore, blosc2.DictStore])
                path = self.folder / f"t{number}{rng.choice(['.b2z', '.b2d'])}"
                check_tree(self, Model(rng, path, store), path)

    def test_ours(self):
        """Trees of ours: python-blosc2 reads, changes and packs them; then we do it again."""
        for number in range(TREES):
            with self.subTest(number):
                rng = random.Random(SEED * 1000 + 500 + number)
                self.make_and_change(rng, self.folder / f"o{number}.b2d")

    def make_and_change(self, rng, path):
        items, npy = {}, self.folder / "x.npy"
        for _ in range(rng.randrange(1, 8)):
            key = "/" + "/".join(rng.choice(NAMES[:4] + NAMES[6:8])
                                 for _ in range(rng.choice([1, 2, 3])))
            taken = any((key + "/").startswith(k + "/") or k.startswith(key + "/")
                        for k in items)
            if taken and key not in items:
                continue
            items[key] = random_items(rng)
            np.save(npy, items[key])
            ok("convert", "-f", npy, f"{path}::{key}", "--no-progress")
        packed = path.with_suffix(".b2z")
        ok("pack", path, packed)
        self.assertEqual(subprocess.run(["unzip", "-tqq", packed]).returncode, 0)
        with zipfile.ZipFile(packed) as archive:
            self.assertIsNone(archive.testzip())
            self.assertEqual(archive.namelist()[-1], "embed.b2e")
        for name in (path, packed):
            with blosc2.TreeStore(str(name), mode="r") as tree:
                for key, values in items.items():
                    self.assertTrue(equal(np.asarray(tree[key][...]), values), (name, key))
        new = random_items(rng)
        with blosc2.TreeStore(str(packed), mode="a") as tree:
            tree["/zz/new"] = new
            tree.attrs["changed"] = True
            gone = sorted(items)[0]
            del tree[gone]
        found = listing(packed)
        self.assertEqual({k for k, e in found.items() if e["kind"] == "array"},
                         {*items, "/zz/new"} - {gone})
        back = path.with_name(path.stem + "-back.b2d")
        ok("unpack", packed, back)
        for key, values in {**items, "/zz/new": new}.items():
            if key != gone:
                self.assertTrue(equal(items_of(back, key), values), key)

    def check_attributes(self, path, group, expected):
        out = json.loads(ok("attr", "list", "--json", f"{path}::{group}"))["attributes"]
        self.assertEqual(out, expected, (path, group))

    def test_their_attributes(self):
        """Attributes of groups set by python-blosc2, wherever it stores them."""
        for number in range(TREES):
            rng = random.Random(SEED * 1000 + 900 + number)
            path = self.folder / f"a{number}{rng.choice(['.b2z', '.b2d'])}"
            attributes = {group: {f"{rng.choice(NAMES)}{i}"[:31]: random_value(rng)
                                  for i in range(rng.randrange(14))}
                          for group in ("/", "/g", "/g/h")}
            threshold = rng.choice([0, 200, 10**9, None])
            with blosc2.TreeStore(str(path), mode="w", threshold=threshold) as tree:
                tree["/g/h/x"] = np.arange(5)
                for group, values in attributes.items():
                    place = tree if group == "/" else tree[group]
                    for name, value in values.items():
                        place.vlmeta[name] = value
            with self.subTest(number):
                for group, values in attributes.items():
                    self.check_attributes(path, group, values)

    def test_our_attributes(self):
        """Attributes set by us: python-blosc2 sees those that fit, changes one, and we see the
        change."""
        for number in range(max(2, TREES // 10)):
            with self.subTest(number):
                rng = random.Random(SEED * 1000 + 950 + number)
                self.set_and_change(rng, self.folder / f"b{number}.b2d")

    def set_and_change(self, rng, path):
        ok("create", f"{path}::/g/x", "--shape", "3", "--dtype", "<f4")
        group = f"{path}::{rng.choice(['/', '/g'])}"
        values = {f"{rng.choice(NAMES)}{i}": random_value(rng) for i in range(rng.randrange(1, 24))}
        values["straight_vertical_longitude_from_pole"] = -45.0
        for name, value in values.items():
            ok("attr", "set", group, name, json.dumps(value))
        self.check_attributes(path, group.split("::")[1], values)
        with blosc2.TreeStore(str(path), mode="a") as tree:
            place = tree["/g"] if group.endswith("/g") else tree
            theirs = dict(place.vlmeta[:])
            merged = {**theirs.pop("attrs", {}), **theirs}
            self.assertEqual(merged, values)
            name = sorted(theirs)[0] if theirs else None
            if name:
                place.vlmeta[name] = values[name] = "changed"
        self.check_attributes(path, group.split("::")[1], values)
        ok("attr", "set", group, "last", "1")
        values["last"] = 1
        packed = path.with_suffix(".b2z")
        ok("pack", path, packed)
        self.check_attributes(packed, group.split("::")[1], values)
        self.assertEqual(run("verify", "--short", packed)[0], 0)

    def test_repacked(self):
        """Archives that other tools created from a tree's files."""
        model = Model(random.Random(SEED), self.folder / "t.b2d", blosc2.DictStore)
        path = self.folder / "t.b2z"
        with zipfile.ZipFile(path, "w") as archive:
            for file in sorted((self.folder / "t.b2d").rglob("*"), reverse=True):
                archive.write(file, file.relative_to(self.folder / "t.b2d"))
        check_tree(self, model, path)

    def test_many_members(self):
        """More members than a zip archive without 64-bit fields can have."""
        source, path = self.folder / "one.b2z", self.folder / "many.b2z"
        with blosc2.TreeStore(str(source), mode="w") as tree:
            tree["/x"] = np.arange(5)
        with zipfile.ZipFile(source) as archive:
            frame, embed = archive.read("x.b2nd"), archive.read("embed.b2e")
        with zipfile.ZipFile(path, "w") as archive:
            for i in range(70000):
                archive.writestr(f"g{i % 100}/x{i}.b2nd", frame)
            archive.writestr("embed.b2e", embed)
        names = ok("ls", "-r", path).decode().split()
        self.assertEqual(len(names), 70100)
        self.assertEqual(list(items_of(path, "/g99/x69999")), [0, 1, 2, 3, 4])
        if LONG:
            ok("unpack", path, self.folder / "many.b2d", "--no-progress")
            ok("pack", self.folder / "many.b2d", self.folder / "again.b2z", "--no-progress")
            self.assertEqual(len(ok("ls", "-r", self.folder / "again.b2z").split()), 70100)
            self.assertEqual(list(items_of(self.folder / "again.b2z", "/g99/x69999")),
                             [0, 1, 2, 3, 4])

    @unittest.skipUnless("--long" in sys.argv, "with --long: it writes 4.5 GB")
    def test_large(self):
        """An archive whose members begin beyond 4 GiB, and one that is longer itself."""
        tree, path = self.folder / "large.b2d", self.folder / "large.b2z"
        np.save(self.folder / "x.npy", np.arange(7))
        for key in ("/a", "/z"):
            ok("convert", self.folder / "x.npy", f"{tree}::{key}")
        with open(tree / "m.bin", "wb") as file:
            file.truncate(4500 << 20)
        ok("pack", tree, path, "--no-progress")
        with zipfile.ZipFile(path) as archive:
            places = {member.filename: member.header_offset for member in archive.infolist()}
            self.assertGreater(places["z.b2nd"], 1 << 32)
            self.assertEqual(archive.getinfo("m.bin").file_size, 4500 << 20)
        self.assertEqual(subprocess.run(["unzip", "-tqq", path]).returncode, 0)
        for key in ("/a", "/z"):
            self.assertEqual(list(items_of(path, key)), list(range(7)))
        with blosc2.TreeStore(str(path), mode="r") as store:
            self.assertEqual(list(store["/z"][:]), list(range(7)))
        self.assertEqual(run("verify", "--short", path)[0], 0)

    def test_embedded_store(self):
        path = self.folder / "s.b2e"
        store = blosc2.EmbedStore(str(path), mode="w")
        items = {f"/g/x{i}": random_items(random.Random(SEED + i)) for i in range(10)}
        for key, values in items.items():
            store[key] = values
        del store
        self.assertEqual({k for k, e in listing(path).items() if e["kind"] == "array"},
                         set(items))
        for key, values in items.items():
            self.assertTrue(equal(items_of(path, key), values), key)


if __name__ == "__main__":
    print(f"seed {SEED}")
    unittest.main(argv=[sys.argv[0]])

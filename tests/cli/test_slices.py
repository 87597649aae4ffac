"""get and put compared with NumPy's indexing, over random shapes, partitions and selections.
The seed is printed; CATERVA_SEED repeats a run."""

import io
import os
import random

import blosc2
import numpy as np

from tool_cli import LONG, SANITIZED, Case, main

SEED = int(os.environ.get("CATERVA_SEED", random.randrange(2**32)))
print("seed", SEED)


def bound(rng, extent):
    return "" if rng.random() < 0.3 else str(rng.randint(-extent - 2, extent + 2))


def random_part(rng, extent):
    kind = rng.random()
    if kind < 0.25 and extent:
        return str(rng.randint(-extent, extent - 1))
    if kind < 0.4 and extent:
        indices = [rng.randint(-extent, extent - 1) for _ in range(rng.randint(0, 5))]
        return str(indices).replace(" ", "")
    text = bound(rng, extent) + ":" + bound(rng, extent)
    if kind < 0.7:
        text += ":" + rng.choice(["", "1", "2", "3", "-1", "-2", "-7", str(extent + 1)])
    return text


def random_selection(rng, shape):
    parts = [random_part(rng, extent) for extent in shape]
    if rng.random() < 0.3:
        at = rng.randint(0, len(parts))
        parts[at:at + rng.randint(0, 2)] = ["..."]
    if "..." not in parts:
        parts = parts[:rng.randint(1, len(parts))]
    if rng.random() < 0.2:
        parts.insert(rng.randint(0, len(parts)), rng.choice(["None", "newaxis"]))
    return ",".join(parts)


def select(values, text):
    """values[text], but several lists select every combination: one list at a time."""
    index = eval(f"np.s_[{text}]", {"np": np, "newaxis": None})
    index = list(index) if isinstance(index, tuple) else [index]
    if Ellipsis not in index:
        index.append(Ellipsis)
    taken = sum(part is not None and part is not Ellipsis for part in index)
    axis = 0
    for part in index:
        if part is Ellipsis:
            axis += values.ndim - axis - taken
            continue
        values = values[(slice(None),) * axis + (part,)]
        taken -= part is not None
        axis += not isinstance(part, int)
    return values


def random_array(rng, path):
    shape = tuple(rng.randint(1, 13) for _ in range(rng.randint(1, 4)))
    chunks = tuple(rng.randint(1, n) for n in shape)
    blocks = tuple(rng.randint(1, n) for n in chunks)
    dtype = rng.choice(["<i4", "|u1", ">f8", "<i2", "<c16"])
    values = np.arange(np.prod(shape)).reshape(shape).astype(dtype)
    blosc2.asarray(values, chunks=chunks, blocks=blocks, urlpath=str(path), mode="w")
    return values


class Slices(Case):
    def test_get(self):
        rng = random.Random(SEED)
        for n in range(12 if SANITIZED and not LONG else 40):
            path = self.path(f"{n}.b2nd")
            values = random_array(rng, path)
            for _ in range(4):
                sel = random_selection(rng, values.shape)
                memory = rng.choice(["4096", "256MiB"])
                got = np.load(io.BytesIO(
                    self.ok("get", path, sel, "--to", "npy", "--memory", memory)))
                want = np.asarray(select(values, sel), values.dtype)
                self.assertEqual(got.shape, want.shape, (values.shape, sel))
                self.assertEqual(got.dtype, want.dtype)
                np.testing.assert_array_equal(got, want, f"{values.shape} {sel}")

    def test_put(self):
        rng = random.Random(SEED + 1)
        for n in range(12 if SANITIZED and not LONG else 40):
            path, new = self.path(f"{n}.b2nd"), self.path("new.npy")
            values = random_array(rng, path)
            for _ in range(3):
                sel = random_selection(rng, values.shape)
                places = select(np.arange(values.size).reshape(values.shape), sel)
                patch = np.asarray(values.reshape(-1)[places] + 100).astype(values.dtype)
                np.save(new, patch)
                self.ok("put", path, sel, new, "--memory", rng.choice(["4096", "1MiB"]))
                values.reshape(-1)[places] = patch
                np.testing.assert_array_equal(blosc2.open(str(path))[...], values, sel)

    def test_text_of_a_selection(self):
        path = self.path("a.b2nd")
        values = np.arange(24).reshape(2, 3, 4)
        blosc2.asarray(values, urlpath=str(path))
        self.assertEqual(self.text("get", path, "1,0"), "12 13 14 15\n")
        self.assertEqual(self.text("get", path, "1,2,-1"), "23\n")
        self.assertEqual(self.text("get", path, "-1,::-1,0:2"), "20 21\n16 17\n12 13\n")
        self.assertEqual(self.text("get", path, "...,0", "--csv"), "0,4,8\n12,16,20\n")
        self.assertEqual(self.text("get", path, ":,:2,1:3"),
                         "# [0,:,:]\n1 2\n5 6\n\n# [1,:,:]\n13 14\n17 18\n")
        self.assertEqual(self.text("get", path, "0,0:0"), "")
        self.assertEqual(self.text("get", path, "1,[2,0,2],[-1,0]"), "23 20\n15 12\n23 20\n")
        self.assertEqual(self.text("get", path, "0,None,1,:2"), "4 5\n")
        self.assertEqual(self.text("get", path, "0,[],0"), "")

    def test_blanks_and_a_last_comma(self):
        path = self.path("a.b2nd")
        values = np.arange(24).reshape(2, 3, 4)
        blosc2.asarray(values, urlpath=str(path))
        for sel in ("1, 2", " 1 ,2", "1,", "1 , ", "1,2,3,", "... , 0,", ":, None , 1",
                    " : : 1 , [ 0, 2 ],", "[1,0,]", "[ ]", " - 1"[1:].replace("- ", "-"),
                    "1 : 2 , : : - 2".replace("- 2", "-2"), "newaxis , ..., "):
            got = np.load(io.BytesIO(self.ok("get", path, "--to", "npy", "--", sel)))
            np.testing.assert_array_equal(got, np.asarray(select(values, sel)), sel)
        self.assertEqual(self.text("get", path, " "), self.text("get", path))
        for sel, place in ((",", "position 1"), ("1,,", "position 3"), ("1 2", "position 3"),
                           ("- 1", "position 1"), ("[1 2]", "position 4"), ("1,2,3,,", "4 axes")):
            self.assertIn(place, self.fails(2, "get", path, "--", sel), sel)

    def test_convert(self):
        path, out = self.path("a.b2nd"), self.path("b.b2nd")
        values = np.arange(24).reshape(2, 3, 4)
        blosc2.asarray(values, urlpath=str(path))
        for sel in ["[1,0],:,2:", "None,...", "1:,None,0:2,::2", "1,None,0"]:
            self.ok("convert", path, out, "--select", sel, "-f")
            np.testing.assert_array_equal(blosc2.open(str(out))[...], select(values, sel), sel)
        for sel in ["[1,0]", "None,..."]:
            self.fails(2, "repack", path, out, "--select", sel, "-f")

    def test_masks_and_index_files(self):
        rng = np.random.default_rng(SEED)
        for n in range(12):
            path, file, new = self.path(f"{n}.b2nd"), self.path("m.npy"), self.path("new.npy")
            values = random_array(random.Random(SEED + n), path)
            length = values.shape[-1]
            mask = rng.random(length) < 0.5
            indices = rng.integers(-length, length, rng.integers(0, 6))
            whole = np.asfortranarray(rng.random(values.shape) < 0.3)
            words = str(mask.tolist())
            for sel, index, part in ((f"...,{words}", mask, ...), (f"..., @{file} ", mask, ...),
                                     (f"...,@{file},", indices.astype(">i2"), ...),
                                     (f"@{file}", whole, None)):
                np.save(file, index)
                key = (..., index) if part is ... else index
                want = values[key]
                for extra in ([], ["--memory", "4096"]):
                    got = np.load(io.BytesIO(self.ok("get", path, sel, "--to", "npy", *extra)))
                    np.testing.assert_array_equal(got, want, sel)
                if part is None:  # put, as NumPy does it
                    np.save(new, want[::-1].copy())
                    self.ok("put", path, sel, new, "--memory", "4096")
                    values[key] = want[::-1]
                    np.testing.assert_array_equal(blosc2.open(str(path))[...], values)

    def test_masks_elsewhere(self):
        path, file = self.path("a.b2nd"), self.path("m.npy")
        values = np.arange(60.).reshape(5, 4, 3)
        blosc2.asarray(values, urlpath=str(path))
        mask = values % 7 < 3
        np.save(file, mask)
        self.ok("convert", file, self.path("m.b2nd"))
        for source in (file, self.path("m.b2nd")):
            self.assertIn(f"({mask.sum()},)", self.text("stats", path, f"@{source}"))
            self.assertIn(f"  sum      {values[mask].sum():g}\n",
                          self.text("stats", path, f"@{source}"))
            out = self.path("o.b2nd")
            self.ok("convert", path, out, "-f", "--select", f"@{source}")
            np.testing.assert_array_equal(blosc2.open(str(out))[...], values[mask])
        self.ok("put", path, f"@{file}", "--fill", "-1")
        np.testing.assert_array_equal(blosc2.open(str(path))[...], np.where(mask, -1, values))
        self.ok("get", path, f"@{file}", "-o", self.path("o.npy"), "--astype", "<f4")
        got = np.load(self.path("o.npy"))
        self.assertEqual((got.shape, got.dtype, set(got.tolist())), ((mask.sum(),), "<f4", {-1.0}))

    def test_masks_that_do_not_fit(self):
        path, file, raw = self.path("a.b2nd"), self.path("m.npy"), self.path("v.npy")
        values = np.arange(60.).reshape(5, 4, 3)
        blosc2.asarray(values, urlpath=str(path))
        np.save(raw, values)
        full = np.ones((5, 4, 3), bool)
        for index, sel, words in (
                (full[:4], "@", "must be alone and have the array's shape"),
                (full[0], "@", "must be alone and have the array's shape"),
                (full, "@,", "must be alone and have the array's shape"),
                (full, "...,@", "must be alone and have the array's shape"),
                (full[0, 0], "@", "the mask has 3 items, but axis 0 has 5"),
                (np.array([1, 5]), "0,@", "index 5 is out of range for axis 1 with 4 items"),
                (np.array([[1]]), "@", "a file of indices must have one axis, not 2"),
                (np.array([1.0]), "@", "a mask must contain booleans, a list of indices integers")):
            np.save(file, index)
            for command in ("get", "put", "view"):
                extra = ["--fill", "1"] if command == "put" else []
                self.assertIn(words, self.fails(2, command, path, sel.replace("@", f"@{file}"),
                                                *extra))
        np.save(file, full)
        self.assertIn("requires an array", self.fails(5, "convert", raw, self.path("o.b2nd"),
                                                   "--select", f"@{file}"))
        self.fails(2, "repack", path, self.path("o.b2nd"), "--select", f"@{file}")
        self.assertIn("cannot skip damage", self.fails(5, "get", path, f"@{file}", "--skip-damaged"))
        self.fails(3, "get", path, f"@{self.path('none.npy')}")
        for sel, words in (("[True,False]", "the mask has 2 items, but axis 0 has 5"),
                           ("[True,1]", "True or False"), ("[1,True]", "a number"),
                           ("[True", "',' or ']'")):
            self.assertIn(words, self.fails(2, "get", path, sel))
        self.assertEqual(np.abs(blosc2.open(str(path))[...] - values).max(), 0)

    def test_wrong_selections(self):
        path, raw = self.path("a.b2nd"), self.path("a.npy")
        values = np.arange(24).reshape(2, 3, 4)
        blosc2.asarray(values, urlpath=str(path))
        np.save(raw, values)
        for sel, words in [("0,[1,3]", "index 3 is out of range for axis 1 with 3 items"),
                           ("0,[1", "expected ',' or ']'"), ("[1]2", "expected ',' or the end"),
                           ("0,[x]", "expected a number"), (",", "expected a number"), ("0,0,0,None,0", "has 4 axes"),
                           ("Nonesuch", "expected ',' or the end")]:
            self.assertIn(words, self.fails(2, "get", path, sel))
        self.assertIn("a list of indices requires an array",
                      self.fails(5, "convert", raw, self.path("b.b2nd"), "--select", "[0,1]"))
        self.assertIn("more than 16", self.fails(2, "get", path, "None," * 14 + "..."))


if __name__ == "__main__":
    main()

"""What a default array chooses for each chunk: the level and the filters, which python-blosc2
reads and changes like any others; what is asked for is what every chunk has."""

import os
import subprocess
import tempfile
import unittest
from pathlib import Path

import blosc2
import numpy as np

CLI = os.environ.get("CATERVA_CLI", "caterva")
SIDE = 64
PARTITION = ("--chunks", "64,64,64", "--blocks", "16,16,16")  # 64 blocks
NONE, SHUFFLE, BITSHUFFLE = (blosc2.Filter.NOFILTER, blosc2.Filter.SHUFFLE,
                             blosc2.Filter.BITSHUFFLE)
FILTERS_AT, MARK_AT = 16, 24  # in the header of a chunk


def chunks_of_every_kind():
    """float32, four chunks along the first axis, and the filter that each should have."""
    rng = np.random.default_rng(11)
    shape = (SIDE,) * 3
    i, j, k = np.ogrid[:SIDE, :SIDE, :SIDE]
    wave = np.sin(i / 20) * np.cos(j / 23) + k / 100
    cubes = ((i // 8 + j // 8 + k // 8) % 19).astype("f4")
    few_digits = np.round(wave * 1000 + rng.integers(0, 8, shape)).astype("f4") / 4
    sparse = rng.normal(size=shape) * (rng.random(shape) < 0.05)
    noise = wave + rng.normal(0, 1e-3, shape)
    kinds = [cubes, few_digits, sparse.astype("f4"), noise.astype("f4")]
    return np.concatenate(kinds), [SHUFFLE, BITSHUFFLE, NONE, SHUFFLE]


class Defaults(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.items, self.filters = chunks_of_every_kind()
        self.npy = self.folder / "x.npy"
        np.save(self.npy, self.items)

    def run_cli(self, *words):
        subprocess.run([CLI, *map(str, words)], check=True, stdout=subprocess.DEVNULL)

    def convert(self, name, *words, of=None, partition=PARTITION):
        path = self.folder / name
        self.run_cli("convert", of or self.npy, path, "--no-progress", *partition, *words)
        return path

    def stored(self, path):
        array = blosc2.open(str(path))
        return [array.schunk.get_chunk(i) for i in range(array.schunk.nchunks)]

    def filters_of(self, path):
        """Of each chunk its one filter."""
        return [blosc2.Filter(max(chunk[FILTERS_AT:FILTERS_AT + 6]))
                for chunk in self.stored(path)]

    def check_items(self, path, expected):
        """By python-blosc2, through boxes over the borders of chunks, and by us."""
        theirs = blosc2.open(str(path))
        for box in (np.s_[:], np.s_[60:70, 3:9], np.s_[120:200:3, 5, 60:], np.s_[191:193]):
            np.testing.assert_array_equal(theirs[box], expected[box])
        self.run_cli("verify", path)
        self.run_cli("get", path, "-o", self.folder / "got.npy", "-f")
        np.testing.assert_array_equal(np.load(self.folder / "got.npy"), expected)

    def test_each_chunk_has_its_own(self):
        path = self.convert("a.b2nd")
        self.assertEqual(self.filters_of(path), self.filters)
        self.check_items(path, self.items)
        default = self.stored(self.convert("b.b2nd", "--level", "2"))
        better = [len(c) / len(d) for c, d in zip(self.stored(path), default)]
        for ratio, most in zip(better, (0.5, 0.95, 0.95, 1)):
            self.assertLessEqual(ratio, most, better)

    def test_threads_and_copies_make_the_same_bytes(self):
        path = self.convert("a.b2nd", "--threads", "1")
        for threads in (2, 5):
            other = self.convert(f"{threads}.b2nd", "--threads", threads)
            self.assertEqual(self.stored(other), self.stored(path))
        copy = self.convert("copy.b2nd", "--threads", "1", of=path, partition=())
        self.assertEqual(self.stored(copy), self.stored(path))
        cut = self.convert("cut.b2nd", "--select", "1:", of=path, partition=())
        self.check_items(cut, self.items[1:])
        self.run_cli("repack", copy, copy, "-f", "--no-progress")
        self.assertEqual(self.stored(copy), self.stored(path))

    def test_what_is_asked_for_is_not_changed(self):
        for n, (words, filter_) in enumerate((
                (("--level", "2"), SHUFFLE), (("--filters", "shuffle"), SHUFFLE),
                (("--filters", "bitshuffle"), BITSHUFFLE), (("--codec", "lz4"), SHUFFLE))):
            path = self.convert(f"{n}.b2nd", *words)
            self.assertEqual(self.filters_of(path), [filter_] * 4, words)
            self.assertEqual(self.stored(path)[0][MARK_AT], 0, words)
            self.check_items(path, self.items)
        copy = self.convert("copy.b2nd", "--level", "2", of=self.convert("a.b2nd"))
        self.assertEqual(self.filters_of(copy), [SHUFFLE] * 4)

    def test_integers_bytes_and_opaque_items(self):
        i, j, k = np.ogrid[:SIDE, :SIDE, :SIDE]
        labels = np.sin(i / 5) + np.cos(j / 4) + np.sin(k / 3)
        mask = self.folder / "mask.npy"
        np.save(mask, labels > 0.4)
        self.assertEqual(self.filters_of(self.convert("m.b2nd", of=mask)), [BITSHUFFLE])
        ints = np.random.default_rng(1).poisson(30, labels.shape)
        for dtype, filter_ in (("u1", NONE), ("i4", SHUFFLE), ("i8", SHUFFLE)):
            np.save(mask, ints.astype(dtype))
            path = self.convert(f"{dtype}.b2nd", of=mask)
            self.assertEqual(self.filters_of(path), [filter_], dtype)
        np.save(mask, np.round(labels, 1).astype([("a", "f4"), ("b", "f4")]))
        self.assertEqual(self.filters_of(self.convert("v.b2nd", of=mask)), [SHUFFLE])

    def test_new_blocks_join_their_chunks(self):
        """Part of every chunk is written anew by us, then by python-blosc2, then again."""
        path, expected = self.convert("a.b2nd"), self.items.copy()
        rng = np.random.default_rng(3)
        for step, writer in enumerate((self.put, self.theirs, self.put, self.theirs)):
            box = np.s_[8 + step:250:7, 3:20, 30 + step]
            patch = rng.normal(size=expected[box].shape).astype("f4")
            writer(path, box, patch)
            expected[box] = patch
            if step == 0:
                self.assertEqual(self.filters_of(path), self.filters)
            self.check_items(path, expected)
        theirs = blosc2.open(str(path), mode="a")
        theirs.resize((SIDE * 5, SIDE, SIDE))
        theirs[SIDE * 4:] = expected[SIDE:2 * SIDE]
        del theirs
        expected = np.concatenate([expected, expected[SIDE:2 * SIDE]])
        self.check_items(path, expected)
        self.run_cli("append", path, self.npy, "--no-progress")
        self.check_items(path, np.concatenate([expected, self.items]))
        self.assertEqual(self.filters_of(path)[5:], self.filters)

    def put(self, path, box, patch):
        text = ",".join(f"{s.start}:{s.stop}:{s.step or 1}" if isinstance(s, slice) else str(s)
                        for s in box)
        np.save(self.folder / "patch.npy", patch)
        self.run_cli("put", path, text, self.folder / "patch.npy", "--no-progress")

    def theirs(self, path, box, patch):
        array = blosc2.open(str(path), mode="a")
        for n, i in enumerate(range(box[0].start, box[0].stop, box[0].step)):
            array[i, box[1], box[2]] = patch[n]


if __name__ == "__main__":
    unittest.main()

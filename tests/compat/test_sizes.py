"""Sizes with default options: arrays take about the space that python-blosc2's default, zstd at
level 5, would take, though ours writes faster, and a point decodes a bounded number of
bytes."""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import blosc2
import numpy as np

import tool_fields

CLI = os.environ.get("CATERVA_CLI", "caterva")
OURS_ALONE = 512  # bytes: the copy of the header and the checksums, which only our files have
AT_MOST, ON_AVERAGE = 1.5, 1.08  # of the size of theirs
SHAPES = ((30, 40), (100, 100), (200, 200), (40, 40, 40), (64, 64, 64), (10, 90, 180),
          (500, 700), (20000,), (100000,), (50000, 6), (8, 50000), (40, 8, 32, 32))


class Sizes(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def convert(self, values):
        """The size and the facts of the file that convert creates by default."""
        npy, ours = self.folder / "x.npy", self.folder / "x.b2nd"
        np.save(npy, values)
        subprocess.run([CLI, "convert", npy, ours, "-f", "--no-progress"], check=True)
        told = subprocess.run([CLI, "info", "--json", ours], check=True, capture_output=True)
        return ours.stat().st_size, json.loads(told.stdout)

    def check(self, shapes, dtypes):
        theirs, ratios = self.folder / "y.b2nd", []
        for kind, values in tool_fields.fields(shapes=shapes, dtypes=dtypes):
            size, facts = self.convert(values)
            with self.subTest(kind=kind, shape=values.shape, dtype=values.dtype.str):
                blosc2.asarray(values, urlpath=str(theirs), mode="w")
                ratios.append((size - OURS_ALONE) / theirs.stat().st_size)
                self.assertLessEqual(ratios[-1], AT_MOST)
                self.assertLessEqual(facts["block_bytes"], 256 << 10)
        self.assertLessEqual(statistics.fmean(ratios), ON_AVERAGE)

    def test_float_fields(self):
        self.check(SHAPES, ("f4", "f8"))

    def test_integers(self):
        self.check(((100, 100), (64, 64, 64), (100000,)), ("u1", "i2", "i8"))

    def test_a_global_field(self):
        self.check(((721, 1440),), ("f4",))

    def test_large_arrays_keep_small_blocks(self):
        for shape in ((9 << 20,), (3000, 3000), (210, 210, 210)):
            _, facts = self.convert(np.zeros(shape, "u1"))
            self.assertLessEqual(facts["block_bytes"], 32 << 10)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[1:]])

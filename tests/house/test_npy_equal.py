"""tools/npy_equal.py says equal exactly if NumPy does."""

import sys
import tempfile
import unittest
from pathlib import Path

import numpy

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))
import npy_equal  # noqa: E402

CUBE = numpy.arange(2 * 3 * 5, dtype="<i4").reshape(2, 3, 5)


class NpyEqual(unittest.TestCase):
    def difference(self, a, b):
        with tempfile.TemporaryDirectory() as folder:
            read = []
            for name, array in (("a", a), ("b", b)):
                path = Path(folder, name + ".npy")
                numpy.save(path, array)
                read.append(npy_equal.read_npy(path))
            return npy_equal.difference(*read)

    def test_equal(self):
        fields = numpy.zeros(4, dtype=[("a", "<f4"), ("b", "|S3", (2,))])
        for array in (CUBE, CUBE[0], numpy.float64(3.5), numpy.zeros((0, 3)), fields):
            self.assertIsNone(self.difference(array, array))

    def test_storage_order_does_not_count(self):
        self.assertIsNone(self.difference(CUBE, numpy.asfortranarray(CUBE)))
        plane = CUBE.reshape(5, 6).astype("<f8")
        self.assertIsNone(self.difference(numpy.asfortranarray(plane), plane))

    def test_different(self):
        changed = CUBE.copy()
        changed[1, 2, 4] += 256
        for other in (changed, numpy.asfortranarray(changed), CUBE.astype("<u4"),
                      CUBE.astype(">i4"), CUBE.reshape(3, 2, 5), CUBE[:1]):
            self.assertIsNotNone(self.difference(CUBE, other))


if __name__ == "__main__":
    unittest.main()

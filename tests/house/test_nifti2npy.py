"""tools/nifti2npy.py converts a NIfTI file to the same array in NumPy's format."""

import gzip
import struct
import sys
import tempfile
import unittest
from pathlib import Path

import numpy

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))
import nifti2npy  # noqa: E402


def nifti(array, code, order, offset=352):
    """`array` (C order, axes z, y, x) as the bytes of a NIfTI-1 file."""
    dim = [array.ndim, *reversed(array.shape)] + [1] * (7 - array.ndim)
    header = bytearray(offset)
    struct.pack_into(order + "i", header, 0, 348)
    struct.pack_into(order + "8h", header, 40, *dim)
    struct.pack_into(order + "h", header, 70, code)
    struct.pack_into(order + "f", header, 108, offset)
    header[344:348] = b"n+1\0"
    return bytes(header) + array.tobytes()


class Nifti(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.source = Path(self.folder.name, "in.nii")
        self.target = Path(self.folder.name, "out.npy")

    def tearDown(self):
        self.folder.cleanup()

    def convert(self, data):
        self.source.write_bytes(data)
        nifti2npy.convert(self.source, self.target)
        return numpy.load(self.target)

    def test_each_datatype_in_both_byte_orders(self):
        for code, kind in nifti2npy.DTYPES.items():
            if code in nifti2npy.CHANNELS:
                continue
            for order in "<>":
                with self.subTest(kind=kind, order=order):
                    wanted = numpy.arange(2 * 3 * 5).reshape(2, 3, 5).astype(order + kind)
                    got = self.convert(nifti(wanted, code, order))
                    self.assertEqual(got.dtype, wanted.dtype)
                    numpy.testing.assert_array_equal(got, wanted)

    def test_colours_are_the_last_axis(self):
        data = bytearray(nifti(numpy.zeros((2, 3), "u1"), 128, "<"))[:352]
        got = self.convert(bytes(data) + bytes(range(18)))
        numpy.testing.assert_array_equal(got, numpy.arange(18, dtype="u1").reshape(2, 3, 3))

    def test_gzip_and_items_further_behind(self):
        wanted = numpy.arange(24, dtype="<i2").reshape(4, 6)
        got = self.convert(gzip.compress(nifti(wanted, 4, "<", offset=416)))
        numpy.testing.assert_array_equal(got, wanted)

    def test_what_is_no_image_is_refused(self):
        good = nifti(numpy.zeros((4, 4), "f4"), 16, "<")
        for bad in (b"", good[:100], b"\0" * 400, good[:-1], good[:344] + b"ni1\0" + good[348:]):
            with self.subTest(size=len(bad)), self.assertRaises(ValueError):
                self.convert(bad)


if __name__ == "__main__":
    unittest.main()

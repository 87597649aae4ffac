"""NIfTI images there and back, compared with nibabel."""

import gzip
import json
import struct
from pathlib import Path

import numpy as np

from tool_cli import main, run
from tool_foreign import ForeignCase, items, need, random_of, rounds

nib, = need("nibabel")

DTYPES = ["u1", "i1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8", "c8", "c16",
          [("R", "u1"), ("G", "u1"), ("B", "u1")],
          [("R", "u1"), ("G", "u1"), ("B", "u1"), ("A", "u1")]]
AXES = "xyztuvw"
TEXTS = [b"", b"a study", b"FSL3.3\0 and more", "\u00b5m".encode(), b"\xff\xfe\0\x01"]


def header_of(path):
    """nibabel's header as it is in the file, and what follows it up to the items."""
    raw = Path(path).read_bytes()
    raw = gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw
    kind = nib.Nifti2Header if 540 in struct.unpack("<i", raw[:4]) + struct.unpack(">i", raw[:4]) \
        else nib.Nifti1Header
    size = kind.template_dtype.itemsize
    header = kind(raw[:size], check=False)
    return header, raw[size:], raw


def load(path):
    """The image; nibabel takes some images for those of CIFTI, without the first axes."""
    is_pair = ".nii" not in path.name
    if type(header_of(path)[0]) is nib.Nifti2Header:
        return (nib.Nifti2Pair if is_pair else nib.Nifti2Image).from_filename(path)
    return (nib.Nifti1Pair if is_pair else nib.Nifti1Image).from_filename(path)


def unscaled(path):
    return np.asanyarray(load(path).dataobj.get_unscaled())


def random_header(rng, kind, shape, dtype, order):
    header = kind(endianness=order)
    header.set_data_dtype(np.dtype(dtype).newbyteorder(order))
    header.set_data_shape(shape)
    number = lambda: rng.choice((0, 1, -2.5, rng.uniform(-1e3, 1e3), rng.uniform(0, 1)))
    for name in ("intent_p1", "intent_p2", "intent_p3", "cal_max", "cal_min", "slice_duration",
                 "toffset", "qoffset_x", "qoffset_y", "qoffset_z"):
        header[name] = number()
    header["pixdim"][1:] = [rng.uniform(0.1, 5) for _ in range(7)]
    header["pixdim"][0] = rng.choice((1, -1))
    header["xyzt_units"] = rng.choice((0, 1, 2, 3)) | rng.choice((0, 8, 16, 24, 32, 40, 48))
    header["intent_code"] = rng.choice((0, 2, 3, 1001, 1007, 2003))
    header["dim_info"] = rng.randrange(64)
    header["slice_code"] = rng.randrange(7)
    header["slice_end"] = rng.randrange(100)
    for name in ("descrip", "aux_file", "intent_name"):
        header[name] = rng.choice(TEXTS)
    header["scl_slope"], header["scl_inter"] = rng.choice(
        ((np.nan, np.nan), (0, 0), (1, 0), (0, 7), (2.5, -10), (0.1, 0)))
    affine = np.eye(4)
    affine[:3] = [[rng.uniform(-3, 3) for _ in range(4)] for _ in range(3)]
    header.set_sform(affine, rng.choice((0, 1, 2, 4)))
    header.set_qform(affine, rng.choice((0, 1, 2, 3)), strip_shears=True)
    return header


class Nifti(ForeignCase):
    def there_and_back(self, source, target=None):
        """Converts an image to b2nd and back; compares everything with nibabel."""
        b2nd, back = self.path("a.b2nd"), self.path(target or "back" + "".join(Path(source).suffixes))
        self.ok("convert", source, b2nd, "-f", "--strict", "--verify")
        want, header = unscaled(source), load(source).header
        self.same(b2nd, want)
        got = self.attributes(b2nd)
        self.assertEqual(got["dims"], list(AXES[:want.ndim]))
        np.testing.assert_allclose(got["affine"], header.get_best_affine(), rtol=2e-6, atol=1e-5)
        self.assertEqual("sform" in got, header["sform_code"] != 0)
        if "sform" in got:
            np.testing.assert_array_equal(got["sform"], header.get_sform())
        self.assertEqual("qform" in got, header["qform_code"] != 0)
        np.testing.assert_array_equal(got["spacing"], np.float64(header["pixdim"][1:want.ndim + 1]))
        header = header_of(source)[0]  # nibabel clears the scale of an image that it has read
        slope, inter = float(header["scl_slope"]), float(header["scl_inter"])
        if not np.isfinite(slope) or slope == 0 or (slope, inter) == (1, 0):
            self.assertNotIn("scale_factor", got)
        else:
            self.assertEqual((got["scale_factor"], got["add_offset"]), (slope, inter))
        self.ok("convert", b2nd, back, "-f", "--strict", "--verify")
        self.assertEqual((unscaled(back).dtype, unscaled(back).tobytes()), (want.dtype, want.tobytes()))
        return back

    def equal_headers(self, a, b, but=()):
        one, after, _ = header_of(a)
        two, later, _ = header_of(b)
        self.assertEqual(type(one), type(two))
        self.assertEqual(one.endianness, two.endianness)
        for name in one.template_dtype.names:
            if name not in but:
                self.assertEqual(one[name].tobytes(), two[name].tobytes(), name)

    def test_random_images(self):
        rng = random_of(self)
        for _ in range(rounds(60)):
            dtype, order = rng.choice(DTYPES), rng.choice("<>")
            shape = tuple(rng.randrange(1, 9) for _ in range(rng.randrange(1, 8)))
            kind, suffix = rng.choice((nib.Nifti1Header, nib.Nifti2Header)), rng.choice(("", ".gz"))
            header = random_header(rng, kind, shape, dtype, order)
            values = items(rng, shape, np.dtype(dtype).newbyteorder(order))
            single = rng.random() < 0.7
            extensions = b""
            for _ in range(rng.choice((0, 0, 1, 3))):
                size = 16 * rng.randrange(1, 9)
                extensions += struct.pack(order + "ii", size, rng.choice((4, 6, 44))) \
                    + rng.randbytes(size - 8)
            header["vox_offset"] = (header.template_dtype.itemsize + 4 + len(extensions) + 15) \
                // 16 * 16 if single else 0
            header["magic"] = (b"n+1" if single else b"ni1") if kind is nib.Nifti1Header \
                else (b"n+2" if single else b"ni2")
            head = header.structarr.tobytes() + bytes((bool(extensions), 0, 0, 0)) + extensions
            body = values.tobytes(order="F")
            pack = gzip.compress if suffix else bytes
            if single:
                source = self.path("in.nii" + suffix)
                source.write_bytes(pack(head.ljust(int(header["vox_offset"]), b"\0") + body))
            else:
                source = self.path("in.hdr" + suffix)
                source.write_bytes(pack(head if extensions else head[:-4]))
                self.path("in.img" + suffix).write_bytes(pack(body))
            back = self.there_and_back(source)
            self.equal_headers(source, back)
            self.assertEqual(header_of(source)[2], header_of(back)[2])
            if not single:
                self.ok("diff", self.path("in.img" + suffix), source)

    def test_files_that_nibabel_ships(self):
        folder = Path(nib.__file__).parent / "tests" / "data"
        found = sorted([*folder.glob("*.nii"), *folder.glob("*.nii.gz")])
        self.assertGreater(len(found), 5)
        for source in found:
            with self.subTest(source.name):
                back = self.there_and_back(source)
                self.equal_headers(source, back)
        for name in ("nifti1.hdr", "nifti2.hdr", "analyze.hdr"):  # without their items
            self.refused("convert", folder / name, self.path("x.b2nd"))

    def test_trees_and_other_commands(self):
        values = np.arange(24, dtype="<i2").reshape(2, 3, 4)
        nib.save(nib.Nifti1Image(values, np.diag([2, 3, 4, 1])), self.path("a.nii.gz"))
        self.ok("convert", self.path("a.nii.gz"), self.path("a.b2z"))
        self.ok("convert", self.path("a.b2z"), self.path("b.nii"), "--strict")
        np.testing.assert_array_equal(unscaled(self.path("b.nii")), values)
        np.testing.assert_array_equal(nib.load(self.path("b.nii")).affine, np.diag([2, 3, 4, 1]))
        info = json.loads(self.text("info", "--json", self.path("a.nii.gz")))
        self.assertEqual((info["key"], info["shape"], info["dims"]), ("/data", [2, 3, 4], ["x", "y", "z"]))
        self.assertIn("array in a NIfTI image\n  shape    2 x 3 x 4\n",
                      self.text("info", self.path("a.nii.gz")))
        self.ok("diff", self.path("a.nii.gz"), self.path("b.nii"))
        out = self.text("get", self.path("a.nii.gz"), "1,:,2")
        self.assertEqual(out.split(), [str(v) for v in values[1, :, 2]])

    def test_arrays_from_elsewhere(self):
        """A new header: the affine becomes the sform, and a changed one, too."""
        values = np.arange(60, dtype=">f4").reshape(3, 4, 5)
        npy, b2nd, nii = self.path("a.npy"), self.path("a.b2nd"), self.path("a.nii")
        np.save(npy, values)
        self.ok("convert", npy, b2nd)
        self.ok("convert", b2nd, nii)
        image = nib.load(nii)
        np.testing.assert_array_equal(np.asanyarray(image.dataobj), values)
        self.assertEqual(image.header.get_zooms(), (1, 1, 1))
        affine = [[0, 2, 0, 5], [3, 0, 0, 6], [0, 0, 4, 7], [0, 0, 0, 1]]
        self.ok("attr", "set", b2nd, "affine", str(affine), "--dtype", "float64")
        self.ok("attr", "set", b2nd, "axis_units", '["mm", "mm", "mm"]')
        self.ok("attr", "set", b2nd, "scale_factor", "0.5")
        for _ in range(2):
            self.ok("convert", b2nd, nii, "-f")
            image = nib.load(nii)
            np.testing.assert_array_equal(image.affine, affine)
            self.assertEqual(image.header.get_zooms(), (3, 2, 4))
            self.assertEqual(image.header.get_xyzt_units(), ("mm", "unknown"))
            np.testing.assert_array_equal(image.get_fdata(), values * 0.5)
            self.ok("convert", nii, b2nd, "-f")

    def test_long_axes_need_version_2(self):
        values = np.arange(40000, dtype="u2")
        np.save(self.path("a.npy"), values)
        self.ok("convert", self.path("a.npy"), self.path("a.nii.gz"))
        image = nib.load(self.path("a.nii.gz"))
        self.assertIsInstance(image, nib.Nifti2Image)
        np.testing.assert_array_equal(unscaled(self.path("a.nii.gz")), values)
        self.assertEqual(self.names(), ["a.nii.gz", "a.npy"])

    def test_losses(self):
        np.save(self.path("a.npy"), np.zeros((2, 3), "f4"))
        self.ok("convert", self.path("a.npy"), self.path("a.b2nd"))
        self.ok("attr", "set", self.path("a.b2nd"), "title", '"a"')
        self.ok("attr", "set", self.path("a.b2nd"), "dims", '["lat", "x"]')
        status, _, err = run("convert", self.path("a.b2nd"), self.path("a.nii"))
        self.assertEqual(status, 0)
        self.assertIn("the attribute title", err)
        self.assertIn("the name lat of axis 0", err)
        for dtype in ("f2", "S3", "?", "M8[s]"):
            np.save(self.path("b.npy"), np.zeros(3, dtype))
            self.assertIn("NIfTI has no type", self.refused("convert", self.path("b.npy"),
                                                            self.path("b.nii")))
            self.assertFalse(self.path("b.nii").exists())

    def test_random_access(self):
        """Boxes in any order from a packed file of several members with many access points."""
        rng = random_of(self)
        shape = (60, 200, 500) if rounds(10) > 2 else (60, 50, 500)
        values = items(rng, shape, "<u4")
        header = nib.Nifti1Header()
        header.set_data_dtype("<u4")
        header.set_data_shape(shape)
        header["vox_offset"] = 352
        header["magic"] = b"n+1"
        raw = header.structarr.tobytes() + b"\0" * 4 + values.tobytes(order="F")
        cuts = sorted(rng.randrange(len(raw)) for _ in range(rng.choice((0, 3, 300))))
        members = [raw[a:b] for a, b in zip([0, *cuts], [*cuts, len(raw)])]
        path = self.path("a.nii.gz")
        path.write_bytes(b"".join(gzip.compress(m, rng.choice((1, 6))) for m in members) + b"\0" * 7)
        self.ok("convert", path, self.path("a.b2nd"))
        self.same(self.path("a.b2nd"), values)
        self.ok("convert", path, self.path("a.b2nd"), "-f", "--memory", "1MiB", "--chunks", "7,50,90")
        self.same(self.path("a.b2nd"), values)
        for _ in range(20):
            a, b, c = (rng.randrange(n) for n in shape)
            out = self.ok("get", path, "%d:%d:-1,%d,%d:" % (a, a // 2, b, c), "--to", "raw")
            self.assertEqual(out, values[a:a // 2:-1, b, c:].tobytes())

    def test_damage(self):
        values = np.arange(3000, dtype="<i2").reshape(10, 300)
        path, out = self.path("a.nii.gz"), self.path("a.b2nd")
        nib.save(nib.Nifti1Image(values, None), path)
        whole = path.read_bytes()
        path.write_bytes(whole[:-8] + b"\0\0\0\0" + whole[-4:])
        self.assertIn("checksum", self.refused("convert", path, out))
        for size in (0, 5, 100, len(whole) // 2, len(whole) - 1):
            path.write_bytes(whole[:size])
            self.refused("convert", path, out)
        raw = gzip.decompress(whole)
        path = self.path("a.nii")
        for size in (0, 300, 348, 400, len(raw) - 1):
            path.write_bytes(raw[:size])
            self.refused("convert", path, out)
        for pack in (bytes, gzip.compress):  # 1 KB that claims 1 TB
            header = nib.Nifti1Header()
            header.set_data_dtype("f8")
            header.set_data_shape((5000, 5000, 5000))
            header["magic"], header["vox_offset"] = b"n+1", 352
            path.write_bytes(pack(header.structarr.tobytes() + bytes(700)))
            self.assertIn("the items need 1000000000352 bytes", self.refused("convert", path, out))
        self.assertEqual(self.names(), ["a.nii", "a.nii.gz"])

    def test_mutations(self):
        rng = random_of(self)
        values = np.arange(300, dtype="<i2").reshape(10, 30)
        nib.save(nib.Nifti1Image(values, np.eye(4)), self.path("a.nii"))
        raw = self.path("a.nii").read_bytes()
        for name, whole in (("m.nii", raw), ("m.nii.gz", gzip.compress(raw))):
            for data in self.mutated(rng, whole, rounds(40)):
                self.path(name).write_bytes(data)
                self.survives(rng, self.path(name), ".b2nd")


if __name__ == "__main__":
    main()

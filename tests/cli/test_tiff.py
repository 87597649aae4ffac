"""TIFF and BigTIFF there and back, compared with tifffile."""

import json
import struct
import subprocess
import sys
import unittest
from pathlib import Path

import numpy as np

from tool_cli import CLI, LONG, main, run
from tool_foreign import ForeignCase, items, need, random_of, rounds

tifffile, = need("tifffile")
if not (Path(CLI).resolve().parent.parent / "lib/caterva/tiff.so").exists():
    print("skipped: this build has no plug-in for TIFF (libtiff 4.5)")
    sys.exit(77)
try:
    import imagecodecs
except ImportError:
    imagecodecs = None  # tifffile packs by deflate only

DTYPES = ["u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "f2", "f4", "f8", "c8", "c16"]
PACKINGS = [None, "zlib"] + (["lzw", "zstd", "packbits", "lzma"] if imagecodecs else [])


def sample(rng, shape, dtype):
    if dtype[0] in "fc":
        return (items(rng, shape, "u1") * 0.37 - 9).astype(dtype)
    return items(rng, shape, dtype)


class Tiff(ForeignCase):
    def converted(self, source, *options):
        b2nd = self.path("a.b2nd")
        self.ok("convert", source, b2nd, "-f", "--strict", "--verify", *options)
        return b2nd

    def random_file(self, rng, path):
        """Writes a file with random options; its items as tifffile reads them."""
        dtype, packing = rng.choice(DTYPES), rng.choice(PACKINGS)
        size = (rng.randrange(1, 80), rng.randrange(1, 80))
        prefix = tuple(rng.randrange(1, 4) for _ in range(rng.choice((0, 0, 1, 1, 2, 3))))
        options = {"compression": packing, "bigtiff": rng.random() < 0.3,
                   "byteorder": rng.choice("<>"), "photometric": "minisblack"}
        shape = prefix + size
        kind = rng.randrange(4)
        if kind == 0 and dtype in ("u1", "u2"):
            options["photometric"] = "rgb"
            shape += (rng.choice((3, 4)),)
            if len(shape) == 4 and rng.random() < 0.5:
                options["planarconfig"] = "separate"
                shape = prefix + shape[-1:] + size
        if rng.random() < 0.5:
            options["tile"] = (16 * rng.randrange(1, 4), 16 * rng.randrange(1, 4))
        elif rng.random() < 0.5:
            options["rowsperstrip"] = rng.randrange(1, 90)
        if packing in ("zlib", "lzw", "zstd") and dtype in ("u1", "u2", "i2", "u4") and imagecodecs \
                and rng.random() < 0.5:
            options["predictor"] = 2
        if packing in ("zlib", "lzw", "zstd") and dtype in ("f4", "f8") and imagecodecs and rng.random() < 0.5:
            options["predictor"] = 3
        if rng.random() < 0.4:
            options.update(resolution=(rng.uniform(10, 500), rng.uniform(10, 500)),
                           resolutionunit=rng.choice(("inch", "centimeter", "none")))
        if rng.random() < 0.3:
            options["software"] = "a test"
        if rng.random() < 0.3:
            options["extratags"] = [(65000, 12, 3, (1.5, 2, 3), True), (65001, 2, 0, "text", True),
                                    (33550, 12, 3, (1, 2, 0), True)]
        values = sample(rng, shape, dtype)
        tifffile.imwrite(path, values, **options)
        return tifffile.imread(path), options

    def test_random_files(self):
        rng = random_of(self)
        for _ in range(rounds(60)):
            path, back = self.path("in.tif"), self.path("back.tif")
            values, options = self.random_file(rng, path)
            b2nd = self.converted(path)
            read = self.same(b2nd, values.astype(values.dtype.newbyteorder("=")).reshape(
                read_shape(b2nd)))
            self.assertEqual(read.size, values.size, options)
            self.assertEqual([n for n in read.shape if n > 1], [n for n in values.shape if n > 1])
            self.ok("convert", b2nd, back, "-f", "--strict", "--verify")
            again = tifffile.imread(back)
            self.assertEqual(again.dtype, values.dtype.newbyteorder("="))
            np.testing.assert_array_equal(again.reshape(values.shape), values, str(options))
            with tifffile.TiffFile(path) as a, tifffile.TiffFile(back) as b:
                self.compare_tags(a.pages[0], b.pages[0])

    def compare_tags(self, a, b):
        self.assertTrue(b.is_tiled)
        self.assertEqual(b.compression, 8)
        for name in ("Software", "XResolution", "YResolution", "ResolutionUnit", "SamplesPerPixel",
                     "PlanarConfiguration", "PhotometricInterpretation", "ExtraSamples", "65000",
                     "65001", "ModelPixelScaleTag", "ColorMap"):
            one, two = (p.tags[name].value if name in p.tags else None for p in (a, b))
            if name == "PlanarConfiguration":
                self.assertEqual(one or 1, two or 1)
            elif name.endswith("Resolution") and one:
                self.assertAlmostEqual(one[0] / one[1], two[0] / two[1], delta=1e-4 * one[0] / one[1])
            else:
                self.assertEqual(one, two, name)

    def test_axes(self):
        values = np.arange(2 * 3 * 4 * 5 * 6, dtype="u2").reshape(2, 3, 4, 5, 6)
        path = self.path("a.tif")
        for options, dims in (({"imagej": True}, ["t", "z", "c", "y", "x"]),
                              ({"ome": True, "metadata": {"axes": "TZCYX"}}, ["t", "z", "c", "y", "x"]),
                              ({"ome": True, "metadata": {"axes": "CTZYX"}}, ["c", "t", "z", "y", "x"]),
                              ({}, [None, None, None, "y", "x"]),
                              ({"metadata": {"axes": "TQCYX", "unit": "um"}}, ["t", None, "c", "y", "x"]),
                              ({"metadata": None}, ["page", "y", "x"])):
            tifffile.imwrite(path, values, photometric="minisblack", **options)
            b2nd = self.converted(path)
            want = values if len(dims) == 5 else values.reshape(-1, 5, 6)
            self.same(b2nd, want)
            got = self.attributes(b2nd)
            self.assertEqual(got["dims"], dims)
            with tifffile.TiffFile(path) as file:
                description = file.pages[0].description
            self.assertEqual(got.get("description", "").rstrip(), description)  # tifffile strips it
            self.ok("convert", b2nd, self.path("b.tif"), "-f", "--strict")
            np.testing.assert_array_equal(tifffile.imread(self.path("b.tif")), want)
            if description:
                with tifffile.TiffFile(self.path("b.tif")) as file:
                    self.assertEqual(file.pages[0].description, description)

    def test_descriptions_of_other_shapes(self):
        """What tifffile's description says beside the shape stays if the axes are the same."""
        values = np.arange(2 * 3 * 5 * 6, dtype="u2").reshape(2, 3, 5, 6)
        tifffile.imwrite(self.path("a.tif"), values, photometric="minisblack",
                         metadata={"axes": "TZYX", "unit": "um"})
        part, back = self.path("part.b2nd"), self.path("b.tif")
        self.ok("convert", self.path("a.tif"), part, "--select", ":,1:,:,:")
        self.ok("convert", part, back, "--strict")
        with tifffile.TiffFile(back) as file:
            self.assertEqual((file.series[0].axes, file.shaped_metadata[0]["unit"]), ("TZYX", "um"))
            self.assertEqual(file.series[0].shape, (2, 2, 5, 6))
        self.ok("convert", self.path("a.tif"), part, "-f", "--select", "1,:,:,:")
        status, _, err = run("convert", part, back, "-f")
        self.assertEqual((status, "names of axes" in err), (0, True), err)

    def test_names_of_axes(self):
        np.save(self.path("a.npy"), np.arange(120, dtype="u2").reshape(2, 3, 4, 5))
        self.ok("convert", self.path("a.npy"), self.path("a.b2nd"))
        for dims, axes in ((["t", "z", "y", "x"], "TZYX"), (["c", "z", "y", "x"], "CZYX"),
                           (["t", "level", "y", "x"], None), (["y", "x", "t", "c"], None)):
            self.ok("attr", "set", self.path("a.b2nd"), "dims", json.dumps(dims))
            status, _, err = run("convert", self.path("a.b2nd"), self.path("a.tif"), "-f")
            self.assertEqual((status, "names of axes" in err), (0, axes is None), err)
            if axes:
                with tifffile.TiffFile(self.path("a.tif")) as file:
                    self.assertEqual(file.series[0].axes, axes)
                self.assertEqual(self.attributes(self.converted(self.path("a.tif")))["dims"], dims)

    def test_several_arrays(self):
        path, tree = self.path("a.tif"), self.path("a.b2z")
        arrays = [np.arange(12, dtype="u1").reshape(3, 4), np.arange(20, dtype="f4").reshape(4, 5),
                  np.arange(12, dtype="u1").reshape(3, 4) + 1]
        with tifffile.TiffWriter(path) as file:
            for values in arrays:
                file.write(values, metadata=None, photometric="minisblack")
        self.ok("convert", path, tree, "--strict")
        self.ok("convert", str(path) + "::/page1", self.path("one.b2nd"))
        self.same(self.path("one.b2nd"), arrays[1])
        self.ok("convert", str(path) + "::/page0", self.path("two.b2nd"))
        self.same(self.path("two.b2nd"), np.stack(arrays[::2]))
        self.ok("convert", tree, self.path("b.tif"), "--strict")
        with tifffile.TiffFile(self.path("b.tif")) as file:
            read = [page.asarray() for page in file.pages]
        for got, want in zip(read, [arrays[0], arrays[2], arrays[1]]):
            np.testing.assert_array_equal(got, want)

    def test_palette_bits_and_samples(self):
        rng = random_of(self)
        path = self.path("a.tif")
        palette = np.frombuffer(rng.randbytes(3 * 256 * 2), "u2").reshape(3, 256)
        values = items(rng, (20, 30), "u1")
        tifffile.imwrite(path, values, photometric="palette", colormap=palette)
        b2nd = self.converted(path)
        self.same(b2nd, values)
        np.testing.assert_array_equal(self.attributes(b2nd)["palette"], palette)
        self.ok("convert", b2nd, self.path("b.tif"), "--strict")
        with tifffile.TiffFile(self.path("b.tif")) as file:
            np.testing.assert_array_equal(file.pages[0].colormap, palette)
            np.testing.assert_array_equal(file.pages[0].asarray(), values)
        for width in (8, 13):
            bits = items(rng, (20, width), "u1") % 2 == 1
            tifffile.imwrite(path, bits, photometric="minisblack")
            self.same(self.converted(path), bits.astype("u1"))
        for bits in (2, 4, 12, 10, 20) if imagecodecs else ():
            dtype = "u1" if bits < 8 else "u2" if bits < 16 else "u4"
            for shape in ((7, 9), (5, 6, 3)):
                values = (items(rng, shape, dtype) % (1 << bits)).astype(dtype)
                tifffile.imwrite(path, values, bitspersample=bits, metadata=None,
                                 photometric="rgb" if len(shape) == 3 else "minisblack")
                np.testing.assert_array_equal(tifffile.imread(path), values)
                self.same(self.converted(path), values)
        values = items(rng, (9, 8, 5), "u2")
        tifffile.imwrite(path, values, photometric="minisblack", planarconfig="contig",
                         extrasamples=[2, 0, 1, 0], metadata=None)
        self.same(self.converted(path), values)

    @unittest.skipUnless(imagecodecs, "tifffile needs imagecodecs for JPEG")
    def test_jpeg(self):
        y, x = np.mgrid[:100, :120]
        values = np.stack([y * 2, x * 2, y + x], -1).astype("u1")
        for options in ({"photometric": "ycbcr", "subsampling": (2, 2)},
                        {"photometric": "ycbcr", "subsampling": (1, 1)}, {"photometric": "rgb"}):
            tifffile.imwrite(self.path("a.tif"), values, compression="jpeg", tile=(48, 64), **options)
            read = np.asarray(self.same_shape(self.converted(self.path("a.tif")), values)[...])
            want = tifffile.imread(self.path("a.tif"))
            self.assertLessEqual(np.abs(read.astype(int) - want).max(), 4)

    def same_shape(self, path, values):
        import blosc2
        read = blosc2.open(str(path))
        self.assertEqual((read.shape, read.dtype), (values.shape, values.dtype))
        return read

    def test_arrays_from_elsewhere(self):
        for values in (np.arange(60, dtype=">u2").reshape(3, 4, 5),
                       np.arange(3 * 600 * 700, dtype=">f8").reshape(3, 600, 700),
                       np.arange(4 * 300 * 310 * 3, dtype="u1").reshape(4, 300, 310, 3)):
            np.save(self.path("a.npy"), values)
            for name in ("a.tif", "a.btf"):
                self.ok("convert", self.path("a.npy"), self.path(name), "-f", "--memory", "64KiB")
                np.testing.assert_array_equal(tifffile.imread(self.path(name)), values)
                with tifffile.TiffFile(self.path(name)) as file:
                    self.assertEqual(file.is_bigtiff, name == "a.btf")
        np.save(self.path("b.npy"), np.arange(12).reshape(3, 4) % 2 == 1)
        status, _, err = run("convert", self.path("b.npy"), self.path("a.tif"), "-f")
        self.assertEqual(status, 0)
        self.assertIn("the dtype bool", err)
        np.testing.assert_array_equal(tifffile.imread(self.path("a.tif")), np.arange(12).reshape(3, 4) % 2)
        for dtype in ("S3", "M8[s]", [("a", "u1")]):
            np.save(self.path("b.npy"), np.zeros((3, 3), dtype))
            self.assertIn("TIFF has no type", self.refused("convert", self.path("b.npy"), self.path("b.tif")))
        np.save(self.path("b.npy"), np.zeros(3))
        self.assertIn("at least 2 axes", self.refused("convert", self.path("b.npy"), self.path("b.tif")))
        self.assertFalse(self.path("b.tif").exists())

    def test_full_disk(self):
        data = np.random.default_rng(0).integers(0, 60000, (512, 1024)).astype("u2")
        np.save(self.path("a.npy"), data)
        limited = f'ulimit -f 100; exec "$0" convert "{self.path("a.npy")}" "{self.path("b.tif")}"'
        done = subprocess.run(["sh", "-c", limited, CLI], capture_output=True)
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertRegex(done.stderr.decode(), r"\Acaterva: [^\n]+: File too large\n\Z")
        self.assertEqual(self.names(), ["a.npy"])

    def test_losses(self):
        path = self.path("a.tif")
        with tifffile.TiffWriter(path) as file:
            file.write(np.zeros((64, 64), "u1"), subifds=1, description="one", metadata=None)
            file.write(np.zeros((32, 32), "u1"), subfiletype=1, metadata=None)
            file.write(np.zeros((64, 64), "u1"), description="two", metadata=None)
        status, _, err = run("convert", path, self.path("a.b2nd"))
        self.assertEqual(status, 0)
        self.assertIn("1 smaller pictures", err)
        self.assertIn("the descriptions of 1 pages", err)

    def test_damage(self):
        path, out = self.path("a.tif"), self.path("a.b2nd")
        tifffile.imwrite(path, np.arange(3000, dtype="u2").reshape(30, 100), compression="zlib")
        whole = path.read_bytes()
        for size in (0, 4, 7, 8, len(whole) - 400, len(whole) - 1):
            path.write_bytes(whole[:size])
            self.refused("convert", path, out, "--from", "tiff")
        entry = lambda tag, kind, count, value: struct.pack("<HHIHH", tag, kind, count, value, 0) \
            if kind == 3 else struct.pack("<HHII", tag, kind, count, value)
        tags = [entry(256, 4, 1, 1000000), entry(257, 4, 1, 1000000), entry(258, 3, 1, 8),
                entry(259, 3, 1, 8), entry(262, 3, 1, 1), entry(273, 4, 1, 200), entry(277, 3, 1, 1),
                entry(278, 4, 1, 1000000), entry(279, 4, 1, 500)]
        path.write_bytes(b"II*\0" + struct.pack("<IH", 8, len(tags)) + b"".join(tags) + bytes(1000))
        self.assertIn("1000000000000 bytes", self.refused("convert", path, out))
        for tag in (tags[3], tags[7]):  # not packed; an unknown method
            self.assertNotIn("Traceback", self.refused("convert", path, out))
        path.write_bytes(path.read_bytes().replace(entry(259, 3, 1, 8), entry(259, 3, 1, 34712)))
        self.assertIn("a method that libtiff lacks", self.refused("convert", path, out))
        loop = b"II*\0" + struct.pack("<IH", 8, 4) + b"".join(
            [entry(256, 4, 1, 1), entry(257, 4, 1, 1), entry(273, 4, 1, 8), entry(279, 4, 1, 1)]) \
            + struct.pack("<I", 8)
        path.write_bytes(loop)
        status, _, err = run("convert", path, out, "-f")
        self.assertIn(status, (0, 4))
        self.assertEqual([n for n in self.names() if n != "a.b2nd"], ["a.tif"])

    def test_mutations(self):
        rng = random_of(self)
        for options in ({}, {"compression": "zlib", "tile": (16, 16)}, {"bigtiff": True}):
            tifffile.imwrite(self.path("a.tif"), np.arange(2000, dtype="u2").reshape(2, 20, 50), **options)
            for data in self.mutated(rng, self.path("a.tif").read_bytes(), rounds(30)):
                self.path("m.tif").write_bytes(data)
                self.survives(rng, self.path("m.tif"), ".b2z", "--from", "tiff")


def read_shape(path):
    import blosc2
    return blosc2.open(str(path)).shape


if __name__ == "__main__":
    main()

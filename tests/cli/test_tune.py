"""bench and tune: the reads and candidates of the reports, and the numbers that can be computed
from the geometry. Times only have to be present."""

import json
import shlex
import unittest
from math import prod

import blosc2
import numpy as np

from tool_cli import LONG, SANITIZED, Case, main, run


def touched_on_axes(shape, chunks, blocks, lengths):
    """For each axis the layers of blocks touched, counted one by one for every position."""
    return [[len({(i // chunk, i % chunk // block) for i in range(p, p + length)})
             for p in range(n - length + 1)]
            for n, chunk, block, length in zip(shape, chunks, blocks, lengths)]


def blocks_touched(shape, chunks, blocks, lengths):
    """The mean over all positions."""
    return prod(sum(axis) / len(axis)
                for axis in touched_on_axes(shape, chunks, blocks, lengths))


class Measured(Case):
    SHAPE, CHUNKS, BLOCKS = (60, 50, 40), (20, 30, 40), (8, 10, 16)

    def make(self, dtype="<i4", **kwargs):
        path = self.path("a.b2nd")
        values = np.random.default_rng(1).integers(0, 50, self.SHAPE).astype(dtype)
        blosc2.asarray(values, chunks=self.CHUNKS, blocks=self.BLOCKS, urlpath=str(path),
                       **kwargs)
        return path


class Bench(Measured):
    def reads(self, *arguments):
        return json.loads(self.text("bench", *arguments, "--json"))["reads"]

    def test_reads(self):
        path = self.make()
        reads = self.reads(path)
        self.assertEqual({r["read"]: r["shape"] for r in reads}, {
            "all": [60, 50, 40], "box": [50, 50, 40],
            "plane 0": [1, 50, 40], "plane 1": [60, 1, 40], "plane 2": [60, 50, 1],
            "line 0": [60, 1, 1], "line 1": [1, 50, 1], "line 2": [1, 1, 40],
            "point": [1, 1, 1],
        })
        block_bytes = 4 * prod(self.BLOCKS)
        for r in reads:
            self.assertEqual(r["bytes"], 4 * prod(r["shape"]))
            self.assertGreater(r["seconds"], 0)
            self.assertGreater(r["again_seconds"], 0)
            self.assertGreaterEqual(r["count"], 3)
            self.assertIs(r["part"], False)
            self.assertAlmostEqual(r["amplification"], r["blocks"] * block_bytes / r["bytes"])
            self.assertAlmostEqual(r["bytes_per_second"] * r["seconds"], r["bytes"], 3)
            touched = touched_on_axes(self.SHAPE, self.CHUNKS, self.BLOCKS, r["shape"])
            self.assertGreaterEqual(r["blocks"], prod(map(min, touched)), r)
            self.assertLessEqual(r["blocks"], prod(map(max, touched)), r)
        by_name = {r["read"]: r["blocks"] for r in reads}
        self.assertEqual((by_name["all"], by_name["plane 0"], by_name["point"]),
                         (9 * 5 * 3, 5 * 3, 1))

    def test_text(self):
        path = self.make()
        lines = self.text("bench", path).splitlines()
        self.assertEqual(lines[0], f"{path}   (60, 50, 40) <i4, blocks of 5 KiB")
        self.assertEqual(lines[1].split(), ["read", "time", "again", "MB/s", "blocks",
                                            "decoded", "items"])
        self.assertEqual(len(lines), 2 + 9)
        self.assertRegex(lines[2], r"^  all +[\d.]+ [num]?s +[\d.]+ [num]?s +[\d.]+ +135 +1\.44x   "
                                   r"\(60, 50, 40\)$")

    def test_fewer_axes(self):
        np.save(self.path("m.npy"), np.arange(600).reshape(20, 30))
        self.ok("convert", self.path("m.npy"), self.path("m.b2nd"))
        self.assertEqual([r["read"] for r in self.reads(self.path("m.b2nd"))],
                         ["all", "box", "line 0", "line 1", "point"])
        np.save(self.path("s.npy"), np.float64(3))
        self.ok("convert", self.path("s.npy"), self.path("s.b2nd"))
        self.assertEqual([r["read"] for r in self.reads(self.path("s.b2nd"))],
                         ["all", "box", "point"])

    def test_memory(self):
        reads = self.reads(self.make(), "--memory", "16KiB")
        whole = reads[0]
        self.assertIs(whole["part"], True)
        self.assertLessEqual(whole["bytes"], 16 << 10)
        self.assertIs(reads[-1]["part"], False)

    def test_failures(self):
        self.ok("create", self.path("e.b2nd"), "--shape", "3,0", "--dtype", "<f8")
        self.assertIn("no items", self.fails(2, "bench", self.path("e.b2nd")))
        self.fails(3, "bench", self.path("none.b2nd"))
        self.fails(2, "bench", self.make(), "--read", "1")

    def test_damage_is_said(self):
        path = self.make()
        data = bytearray(path.read_bytes())
        where = json.loads(self.text("info", path, "--json", "--chunks"))["chunks"][3]
        at, size = where["position"], where["stored_bytes"]
        data[at + size // 3:at + size] = b"\xff" * (size - size // 3)
        path.write_bytes(data)
        status, _, err = run("bench", path)
        self.assertEqual(status, 4)
        self.assertIn("chunk 3", err)


class Tune(Measured):
    def tune(self, path, *arguments):
        """With enough time for all candidates on a busy machine."""
        return json.loads(self.text("tune", path, "--json", "--time", "60s", *arguments))

    def test_candidates(self):
        path = self.make(cparams={"codec": blosc2.Codec.LZ4HC, "clevel": 3,
                                  "filters": [blosc2.Filter.SHUFFLE]})
        report = self.tune(path, "--read", "3", "--read", "::2,7,5", "--prefer", "speed")
        self.assertEqual(report["reads"], [{"read": "3", "shape": [1, 50, 40]},
                                           {"read": "::2,7,5", "shape": [59, 1, 1]}])
        self.assertEqual(report["sample_shape"], [60, 50, 40])
        candidates = report["candidates"]
        current = [c for c in candidates if c["current"]]
        self.assertEqual(len(current), 1)
        self.assertEqual((current[0]["chunk_shape"], current[0]["block_shape"]),
                         (list(self.CHUNKS), list(self.BLOCKS)))
        self.assertEqual((current[0]["codec"], current[0]["level"], current[0]["filters"]),
                         ("lz4hc", 3, "shuffle"))
        self.assertTrue(any(c["automatic_partition"] for c in candidates))
        self.assertEqual(len(candidates), len({json.dumps(
            [c[k] for k in ("chunk_shape", "block_shape", "codec", "level", "filters")])
            for c in candidates}), "the same candidate twice")
        for c in candidates:
            self.assertGreater(c["ratio"], 1)
            for read, asked in zip(c["reads"], report["reads"]):
                self.assertGreater(read["seconds"], 0)
                touched = blocks_touched(self.SHAPE, c["chunk_shape"], c["block_shape"],
                                         asked["shape"])
                self.assertAlmostEqual(read["amplification"],
                                       touched * prod(c["block_shape"]) / prod(asked["shape"]))
        products = [prod(r["seconds"] for r in c["reads"]) for c in candidates]
        self.assertEqual(products, sorted(products))

    def test_blocks_follow_the_read(self):
        """For planes across an axis a candidate has blocks that are one item thick along it."""
        path = self.make()
        for axis in range(3):
            read = ["...", f":,{7},:", "...,5"][axis] if axis else "4"
            report = self.tune(path, "--read", read)
            self.assertEqual(report["reads"][0]["shape"][axis], 1)
            self.assertIn(1, [c["block_shape"][axis] for c in report["candidates"]])

    def test_the_advice_can_be_followed(self):
        path = self.make()
        text = self.text("tune", path, "--read", "3", "--time", "1s")
        lines = text.splitlines()
        self.assertTrue(lines[0].startswith(f"{path}   (60, 50, 40) <i4, timed on "))
        self.assertRegex(lines[1], r"^\d+ of \d+ candidates, best balance first; ")
        self.assertEqual(sum(line.startswith("* ") for line in lines), 1)
        words = shlex.split(lines[-1])
        self.assertEqual(words[:2], ["caterva", "convert"])
        new = self.path("new.b2nd")
        self.ok(*words[1:3], new, *words[4:])
        np.testing.assert_array_equal(blosc2.open(str(new))[:], blosc2.open(str(path))[:])
        facts = json.loads(self.text("info", new, "--json"))
        best = lines[4].lstrip("* ").split()
        self.assertEqual([",".join(map(str, facts["chunk_shape"])),
                          ",".join(map(str, facts["block_shape"])), facts["codec"]["name"]],
                         best[:3])

    def test_time(self):
        """Even in a very short time the current partition is measured."""
        report = self.tune(self.make(), "--read", "3", "--time", "1ms")
        self.assertLess(len(report["candidates"]), report["possible"])
        self.assertTrue(any(c["current"] for c in report["candidates"]))

    def test_odd_codecs(self):
        """Partitions that a codec does not support are left out without an error."""
        path = self.make("<f4", cparams={"codec": blosc2.Codec.ZFP_ACC, "codec_meta": 1,
                                         "filters": [blosc2.Filter.NOFILTER]})
        report = self.tune(path, "--read", "3")
        self.assertTrue(any(c["current"] for c in report["candidates"]))

    def convert_as(self, path, candidate):
        """The size of the file that convert creates with a candidate's options."""
        new = self.path("as.b2nd")
        extents = [",".join(map(str, candidate[k])) for k in ("chunk_shape", "block_shape")]
        chosen = [] if candidate["by_chunk"] else \
            ["--level", candidate["level"], "--filters", candidate["filters"]]
        self.ok("convert", path, new, "-f", "--chunks", extents[0], "--blocks", extents[1],
                "--codec", candidate["codec"], *chosen)
        return new.stat().st_size

    def check_sizes(self, values, *options, seconds="60s", delta=0.1):
        """The path of the array, and the report of tune."""
        np.save(self.path("v.npy"), values)
        path = self.path("v.b2nd")
        self.ok("convert", self.path("v.npy"), path, "-f", *options)
        read = ",".join(["0"] + [":"] * (values.ndim - 1))
        report = json.loads(self.text("tune", path, "--json", "--time", seconds, "--read", read))
        for c in report["candidates"][::3 if LONG else 6]:
            real = self.convert_as(path, c)
            self.assertAlmostEqual(c["bytes"] / real, 1, delta=delta, msg=c)
            self.assertAlmostEqual(c["ratio"], values.nbytes / c["bytes"], 1)
        return path, report

    @unittest.skipIf(SANITIZED and not LONG, "48 MB, encoded thirty times")
    def test_the_size_is_the_files(self):
        """Arrays whose middle differs from the rest."""
        rng = np.random.default_rng(3)
        grid = np.ogrid[:120, :160, :200] if LONG else np.ogrid[:60, :80, :100]
        field = sum(np.sin(axis / 9) for axis in grid).astype("<f4")
        field += rng.normal(0, 1e-3, field.shape).astype("<f4")
        self.check_sizes(field)
        field[len(field) // 4:len(field) * 3 // 4] = 0
        self.check_sizes(field)
        self.check_sizes(rng.poisson(2, (500, 700)).astype("<i2"))
        walk = rng.normal(0, 1, 6_000_000).cumsum()
        walk[2_500_000:] = np.round(walk[2_500_000:], 1)
        self.check_sizes(walk)
        self.check_sizes((field[:40, :30, :20] > 1).astype("u1"), "--chunks", "10,10,10")

    @unittest.skipIf(SANITIZED and not LONG, "96 MB, encoded for as long as there is time")
    def test_lumps(self):
        """A tenth of the array is noise, in pieces that random samples hit too often or too
        seldom; the size of the current file corrects for that."""
        rng = np.random.default_rng(3)
        values = (np.arange(12_000_000) // 1000).astype("<f8")
        for _ in range(12):
            at = rng.integers(0, len(values) * 99 // 100)
            values[at:at + len(values) // 120] = rng.normal(0, 1, len(values) // 120)
        self.check_sizes(values, delta=0.05, seconds="2s")

    def test_padding(self):
        """Chunks that do not divide the shape have blocks outside it, which take no space; the
        size of the current file is exact."""
        rng = np.random.default_rng(3)
        large = (((130, 130, 130), "128,128,128"), ((70, 300, 300), "64,128,128"),
                 ((33, 33, 33, 33), "32,32,32,32"))
        small = (((66, 66, 66), "64,64,64"), ((38, 150, 150), "32,64,64"),
                 ((17, 17, 17, 17), "16,16,16,16"))
        for shape, chunks in large if LONG else small:
            values = sum(np.sin(axis / 9) for axis in np.ogrid[tuple(slice(n) for n in shape)])
            values = (values + rng.normal(0, 1e-3, shape)).astype("<f4")
            path, report = self.check_sizes(values, "--chunks", chunks)
            current, = [c for c in report["candidates"] if c["current"]]
            self.assertEqual(current["bytes"], path.stat().st_size)

    def test_what_is_preferred(self):
        path = self.make()
        for prefer, weight in (("size", 0.9), ("balance", 0.5), ("speed", 0)):
            report = self.tune(path, "--read", "3", "--prefer", prefer)
            self.assertEqual(report["prefer"], prefer)
            scores = [weight * np.log(c["bytes"]) + (1 - weight) * np.log(c["reads"][0]["seconds"])
                      for c in report["candidates"]]
            np.testing.assert_allclose(scores, np.sort(scores), rtol=1e-5)
        self.assertEqual(self.tune(path, "--read", "3")["prefer"], "balance")
        self.assertIn("'small'", self.fails(2, "tune", path, "--read", "3", "--prefer", "small"))

    def test_failures(self):
        path = self.make()
        self.assertIn("--read", self.fails(2, "tune", path))
        self.assertIn("selects nothing", self.fails(2, "tune", path, "--read", "3:3"))
        self.fails(2, "tune", path, "--read", "60")
        self.fails(2, "tune", path, "--read", "1", "--time", "soon")
        self.fails(2, "tune", path, *["--read", "1"] * 17)
        self.fails(3, "tune", self.path("none.b2nd"), "--read", "1")
        self.ok("create", self.path("e.b2nd"), "--shape", "3,0", "--dtype", "<f8")
        self.assertIn("no items", self.fails(2, "tune", self.path("e.b2nd"), "--read", ":"))


if __name__ == "__main__":
    main()

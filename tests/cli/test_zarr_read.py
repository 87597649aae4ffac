"""Arrays and groups that zarr-python wrote are converted; damaged stores are refused."""

import json
import shutil

import numpy as np

from tool_cli import main, run
from tool_foreign import ForeignCase, items, need, random_of, rounds

zarr, numcodecs = need("zarr", "numcodecs")
from zarr.codecs import (BloscCodec, BytesCodec, Crc32cCodec, GzipCodec, TransposeCodec,  # noqa: E402
                         ZstdCodec)

DTYPES = ["?", "i1", "i2", "<u4", "i8", "f2", "<f4", "f8", "c8", "c16", ">i4", ">f8", "<M8[ns]",
          "<m8[s]", "<U5", "|S7"]
NAMES = ["lz4", "zstd", "blosclz", "zlib", "lz4hc"]
SHUFFLES = ["noshuffle", "shuffle", "bitshuffle"]
FILLS = {"f": [0, 1.5, float("nan"), float("-inf")], "i": [-7], "u": [9], "b": [True], "c": [1 + 2j],
         "U": ["ab\u00e4"]}


def storage_2(rng):
    return {"compressors": rng.choice([
        None, numcodecs.Blosc(rng.choice(NAMES), rng.randrange(1, 9), rng.choice([0, 1, 2])),
        numcodecs.Zlib(3), numcodecs.GZip(4), numcodecs.Zstd(3)]),
        "order": rng.choice("CF"),
        "chunk_key_encoding": {"name": "v2", "separator": rng.choice("./")}}


def storage_3(rng, dtype, chunks):
    ndim = len(chunks)
    codecs = rng.choice([[], [BloscCodec(cname=rng.choice(NAMES), clevel=rng.randrange(0, 10),
                                         shuffle=rng.choice(SHUFFLES), typesize=dtype.itemsize)],
                         [GzipCodec(level=3)], [ZstdCodec(level=2, checksum=rng.random() < 0.5)]])
    out = {"compressors": [*codecs, Crc32cCodec()] if rng.random() < 0.3 else codecs}
    if rng.random() < 0.3:
        out["filters"] = [TransposeCodec(order=tuple(rng.sample(range(ndim), ndim)))]
    if ndim and rng.random() < 0.4:
        out["shards"] = tuple(n * rng.randrange(1, 4) for n in chunks)
    if rng.random() < 0.3:
        out["dimension_names"] = ["d%d" % d for d in range(ndim)]
    if rng.random() < 0.3:
        out["chunk_key_encoding"] = {"name": "default", "separator": rng.choice("./")}
    if rng.random() < 0.2 and dtype.kind in "iuf" and dtype.itemsize > 1:
        out["serializer"] = BytesCodec(endian="big")
    return out


def values_of(rng, shape, dtype):
    if dtype.kind in "US":
        return items(rng, shape, "u1").astype(dtype)
    values = items(rng, shape, dtype) if dtype.kind != "b" else items(rng, shape, "u1") % 2 == 1
    return values


class Arrays(ForeignCase):
    def random_array(self, rng, path, shape, chunks):
        """Writes a random array, of which a part may not be written, and returns its items."""
        dtype = np.dtype(rng.choice(DTYPES))
        version = rng.choice((2, 3))
        how = storage_2(rng) if version == 2 else storage_3(rng, dtype, chunks)
        if dtype.kind in FILLS:
            how["fill_value"] = rng.choice(FILLS[dtype.kind])
        array = zarr.create_array(str(path), shape=shape, chunks=chunks, dtype=dtype,
                                  zarr_format=version, **how)
        values = values_of(rng, shape, dtype)
        part = tuple(slice(0, n if rng.random() < 0.8 else max(1, n // 2)) for n in shape)
        if values.size:
            array[part] = values[part]
        array.attrs["list"] = [1, 2.5, "text", None]
        return np.asarray(array[...]), how

    def equal(self, path, expected, how):
        import blosc2
        read = blosc2.open(str(path))
        self.assertEqual(read.shape, expected.shape, how)
        found = np.asarray(read[...] if read.ndim else read[()]).astype(expected.dtype)
        self.assertEqual(found.tobytes(), expected.tobytes(), how)
        self.assertEqual(read.schunk.vlmeta["list"], [1, 2.5, "text", None])

    def test_random_arrays(self):
        rng = random_of(self)
        for _ in range(rounds(60)):
            path, out = self.path("a.zarr"), self.path("a.b2nd")
            shutil.rmtree(path, ignore_errors=True)
            shape = tuple(rng.randrange(0 if rng.random() < 0.1 else 1, 30)
                          for _ in range(rng.randrange(5)))
            chunks = tuple(rng.randrange(1, n + 4) for n in shape)
            expected, how = self.random_array(rng, path, shape, chunks)
            self.ok("convert", path, out, "-f", "--verify", "--strict")
            self.equal(out, expected, how)

    def test_chunks_that_move(self):
        """Chunks of Blosc keep their blocks, and are equal."""
        rng, moved = random_of(self), 0
        for _ in range(rounds(40)):
            path, out = self.path("m.zarr"), self.path("m.b2nd")
            shutil.rmtree(path, ignore_errors=True)
            dtype = np.dtype(rng.choice(["u1", "i2", "<f4", "f8", "c16", "S17"]))
            ndim = rng.randrange(1, 4)
            chunks = tuple(2**rng.randrange(2, 10 - 2 * ndim) * rng.choice((1, 3)) for _ in range(ndim))
            shape = tuple(int(n * rng.choice((1, 1.5, 3.2))) for n in chunks)
            codec = BloscCodec(cname=rng.choice(NAMES), clevel=rng.randrange(10),
                               shuffle=rng.choice(SHUFFLES), typesize=dtype.itemsize,
                               blocksize=rng.choice((0, 4096, chunks[-1] * dtype.itemsize)))
            how = {"shards": tuple(2 * n for n in chunks)} if rng.random() < 0.3 else {}
            array = zarr.create_array(str(path), shape=shape, chunks=chunks, dtype=dtype,
                                      compressors=codec, **how)
            array[...] = values_of(rng, shape, dtype)
            self.ok("convert", path, out, "-f", "--verify")
            read = self.same(out, array[...])
            moved += read.chunks == chunks
        self.assertGreater(moved, 0)

    def test_shards_of_others(self):
        """An array of ours into which zarr-python wrote, which replaces the frame."""
        np.save(self.path("s.npy"), np.arange(6000).reshape(60, 100))
        self.ok("convert", self.path("s.npy"), self.path("a.zarr"))
        zarr.open(self.path("a.zarr"), mode="r+")[...] = 7
        self.assertIn("a Zarr store", self.text("info", self.path("a.zarr")))
        self.ok("convert", self.path("a.zarr"), self.path("b.npy"))
        np.testing.assert_array_equal(np.load(self.path("b.npy")), np.full((60, 100), 7))

    def test_a_damaged_frame_among_others(self):
        np.save(self.path("s.npy"), np.arange(6000).reshape(60, 100))
        group = zarr.open_group(self.path("g.zarr"), mode="w")
        group.create_array("other", shape=5, dtype="i4")
        self.ok("convert", self.path("s.npy"), self.path("own.zarr"))
        shutil.move(self.path("own.zarr"), self.path("g.zarr") / "own")
        self.ok("convert", self.path("g.zarr"), self.path("g.b2d"))
        shard = self.path("g.zarr") / "own" / "c" / "0" / "0"
        data = bytearray(shard.read_bytes())
        data[3] ^= 4
        shard.write_bytes(data)
        self.assertIn("own: not a Blosc2 frame", self.fails(4, "convert", self.path("g.zarr"), self.path("h.b2d")))

    def test_more_axes_than_can_be_written(self):
        for version in (2, 3):
            root = zarr.open_group(str(self.path("g.zarr")), mode="w", zarr_format=version)
            for n in (15, 16, 17):
                root.create_array("d%d" % n, shape=(1,) * n, dtype="i4")[...] = n
            status, _, err = run("convert", self.path("g.zarr"), self.path("g.b2z"), "-f")
            self.assertEqual(status, 0, err)
            for n in (16, 17):
                self.assertIn("/d%d: an array of %d axes is not read\n" % (n, n), err)
            self.assertEqual(self.ok("ls", self.path("g.b2z")), b"d15\n")

    def test_group(self):
        root = zarr.open_group(str(self.path("g.zarr")), mode="w")
        root.attrs["title"] = "all"
        a = root.create_array("x/a", shape=(4, 5), dtype="f4", dimension_names=["t", None])
        a[...] = np.arange(20).reshape(4, 5)
        root.create_array("b", shape=(3,), dtype="i2")[...] = [1, 2, 3]
        root.create_array("words", shape=(2,), dtype=str)[...] = ["a", "bc"]
        status, out, err = run("ls", "-r", self.path("g.zarr"))
        self.assertEqual((status, out), (0, b"b\nx/\nx/a\n"))
        self.assertIn("/words: the codec vlen-utf8 is not read", err)
        out = self.path("g.b2z")
        status, _, err = run("convert", self.path("g.zarr"), out, "--verify")
        self.assertEqual(status, 0, err)
        self.assertRegex(err, r"\Acaterva: warning: .*: /words: the codec vlen-utf8 is not read\n\Z")
        self.assertIn("--strict", run("convert", self.path("g.zarr"), self.path("h.b2z"),
                                      "--strict")[2])
        self.assertFalse(self.path("h.b2z").exists())
        self.ok("diff", "-q", self.path("g.zarr"), out)
        self.assertIn("dims     t, -", self.text("info", f"{out}::/x/a"))
        self.assertEqual(self.text("get", f"{self.path('g.zarr')}::/b"), "1 2 3\n")

    def test_reserved_attributes(self):
        """Lists that do not name the axes are left out by name."""
        for form in (2, 3):
            store = zarr.create_group(self.path("a%d.zarr" % form), zarr_format=form)
            for n, value in enumerate(("a", 3, ["x"], ["x", 1, None], {})):
                array = store.create_array("a%d" % n, shape=(2, 3), chunks=(2, 3), dtype="i4")
                array.attrs.update({"_ARRAY_DIMENSIONS": value, "dims": value})
            status, _, err = run("convert", self.path("a%d.zarr" % form), self.path("a.b2d"), "-f")
            self.assertEqual((status, err.count("\n")), (0, 10), err)
            for name in ("_ARRAY_DIMENSIONS", "dims"):
                self.assertIn("/a1: the attribute %s, whose name is reserved" % name, err)

    def test_large_fill_values(self):
        for version in (2, 3):
            path = self.path("u%d.zarr" % version)
            array = zarr.create_array(str(path), shape=(5,), chunks=(2,), dtype="u8",
                                      fill_value=2**64 - 1, zarr_format=version)
            array[0] = 3
            self.ok("convert", path, self.path("u.b2nd"), "-f", "--verify")
            self.same(self.path("u.b2nd"), array[...])

    def test_damage_of_several_chunks(self):
        """Threads decode; one of them reports."""
        for codec in (ZstdCodec(level=1), GzipCodec(), BloscCodec()):
            path = self.path("d.zarr")
            array = zarr.create_array(str(path), shape=(64, 64), chunks=(8, 8), dtype="i4",
                                      compressors=codec, overwrite=True)
            array[...] = np.arange(4096).reshape(64, 64)
            for chunk in (path / "c").rglob("*"):
                if chunk.is_file():
                    chunk.write_bytes(chunk.read_bytes()[:-5])
            self.refused("convert", path, self.path("d.b2nd"), "--chunks", "64,64")
            self.assertFalse(self.path("d.b2nd").exists())

    def test_refused(self):
        path, out = self.path("r.zarr"), self.path("r.b2nd")
        zarr.create_array(str(path), shape=(8,), chunks=(4,), dtype="i4")[...] = 1
        meta = json.loads((path / "zarr.json").read_text())
        for key, value, word in (("data_type", "int3", "the data type int3 is not read"),
                                 ("codecs", [{"name": "bytes"}, {"name": "pcodec"}], "pcodec"),
                                 ("chunk_grid", {"name": "rectilinear"}, "rectilinear"),
                                 ("shape", [-1], "no valid shape"),
                                 ("shape", [1 << 62, 1 << 62], "the chunk grid")):
            (path / "zarr.json").write_text(json.dumps(meta | {key: value}))
            self.assertIn(word, self.refused("convert", path, out))
        huge = meta | {"shape": [1 << 40], "chunk_grid": {
            "name": "regular", "configuration": {"chunk_shape": [1 << 40]}}}
        (path / "zarr.json").write_text(json.dumps(huge))
        self.assertIn("chunks of 2 GiB", self.refused("convert", path, out))
        self.assertFalse(out.exists())

    def test_integers_of_64_bits_and_more(self):
        for version, dtype, missing in ((2, "u1", 300), (3, "u1", 300), (3, "u8", -2 ** 63), (2, "u8", -1.0),
                                        (3, "i8", "NaT")): # no items of the type: attributes like others
            made = zarr.create_array(str(self.path("i.zarr")), shape=(3,), dtype=dtype, zarr_format=version,
                                     overwrite=True)
            given = {"a": 2 ** 64 - 1, "b": [-2 ** 63, 2 ** 64 - 1], "_FillValue": missing, "t": "1"}
            made.attrs.update({**given, "c": [10 ** 20, -10 ** 20]})
            status, _, err = run("convert", self.path("i.zarr"), self.path("i.b2nd"), "-f")
            self.assertEqual((status, err.count("\n")), (0, 1), err)
            self.assertIn("of more than 64 bits in the attribute c", err)
            self.ok("convert", self.path("i.b2nd"), self.path("j.zarr"), "-f")
            self.assertEqual(dict(zarr.open(str(self.path("j.zarr"))).attrs),
                             {**given, "c": [str(10 ** 20), str(-10 ** 20)]})

    def test_mutations(self):
        """Damaged metadata and chunks: an array, or one sentence."""
        rng = random_of(self)
        path = self.path("d.zarr")
        for shards in (None, (8, 8)):
            shutil.rmtree(path, ignore_errors=True)
            zarr.create_array(str(path), shape=(10, 7), chunks=(4, 4), shards=shards, dtype="f4",
                              compressors=rng.choice([BloscCodec(typesize=4), GzipCodec()]),
                              )[...] = items(rng, (10, 7), "f4")
            files = [p for p in path.rglob("*") if p.is_file()]
            for _ in range(rounds(30)):
                file = rng.choice(files)
                whole = file.read_bytes()
                file.write_bytes(next(iter(self.mutated(rng, whole, 1))))
                self.survives(rng, path, ".b2nd")
                file.write_bytes(whole)


if __name__ == "__main__":
    main()

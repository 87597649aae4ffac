"""Arrays that are also Zarr arrays: what `repack --zarr` writes, how such a directory opens, is
replaced, deleted and verified, and what is refused. Other programs that read them are in
tests/compat/test_zarr.py."""

import json
import os
import shutil
import signal
import struct
import subprocess
import time

import blosc2
import numpy as np

from tool_cli import CLI, Case, environment, main, run, some
from scripted_server import ScriptedServer

MISSING = 2 ** 64 - 1


def smooth(shape, dtype="<i4"):
    return (np.arange(np.prod(shape)) // 7 % 1000).astype(dtype).reshape(shape)


class Zarr(Case):
    def write(self, name, items, **options):
        options = {"chunks": tuple(-(-n // 2) for n in items.shape),
                   "blocks": tuple(-(-n // 4) for n in items.shape)} | options
        return blosc2.asarray(items, urlpath=str(self.path(name)), mode="w", **options)

    def make(self, name="a.zarr", items=None, **options):
        """Returns the items of a Zarr array, and its metadata."""
        items = smooth((40, 24)) if items is None else items
        self.write("source.b2nd", items, **options)
        self.ok("repack", self.path("source.b2nd"), self.path(name), "--zarr")
        return items, json.loads((self.path(name) / "zarr.json").read_text())

    def shard(self, name="a.zarr", ndim=2):
        return self.path(name).joinpath("c", *["0"] * ndim)

    def index(self, meta, name="a.zarr"):
        """The entries of the shard's index, and where it begins."""
        shard = meta["chunk_grid"]["configuration"]["chunk_shape"]
        block = meta["codecs"][0]["configuration"]["chunk_shape"]
        n = int(np.prod([s // b for s, b in zip(shard, block)]))
        data = self.shard(name, len(shard)).read_bytes()
        at = len(data) - 16 * n - 4
        return [struct.unpack_from("<QQ", data, at + 16 * i) for i in range(n)], at

    def items_of(self, name):
        self.ok("convert", self.path(name), self.path("items.npy"), "-f")
        return np.load(self.path("items.npy"))


class Written(Zarr):
    def test_metadata(self):
        items = smooth((40, 24), "<f4")
        array = self.write("s.b2nd", items, chunks=(20, 12), blocks=(10, 12),
                           cparams={"codec": blosc2.Codec.LZ4, "clevel": 3})
        array.schunk.vlmeta["unit"] = "m\u00b2 \"q\""
        array.schunk.vlmeta["list"] = [1, -2.5, None, True, {"a": []}]
        array.schunk.vlmeta["raw"] = b"\x00\xff"
        array.schunk.vlmeta["dims"] = ["y", None]
        array.schunk.vlmeta["nan"] = float("nan")
        self.ok("repack", self.path("s.b2nd"), self.path("a.zarr"), "--zarr")
        self.assertEqual(json.loads((self.path("a.zarr") / "zarr.json").read_text()), {
            "zarr_format": 3, "node_type": "array", "shape": [40, 24], "data_type": "float32",
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [40, 24]}},
            "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
            "fill_value": 0.0,
            "codecs": [{"name": "sharding_indexed", "configuration": {
                "chunk_shape": [10, 12],
                "codecs": [{"name": "bytes", "configuration": {"endian": "little"}},
                           {"name": "blosc", "configuration": {
                               "typesize": 4, "cname": "lz4", "clevel": 3, "shuffle": "shuffle",
                               "blocksize": 0}}],
                "index_codecs": [{"name": "bytes", "configuration": {"endian": "little"}},
                                 {"name": "crc32c"}],
                "index_location": "end"}}],
            "attributes": {"unit": "m\u00b2 \"q\"", "list": [1, -2.5, None, True, {"a": []}],
                           "raw": "AP8=", "nan": "NaN"},
            "dimension_names": ["y", None], "storage_transformers": []})

    def test_fill_values(self):
        for dtype, fill, expected in (
                ("<f8", "nan", "NaN"), (">f4", "inf", "Infinity"), ("<f4", "0.1", 0.1),
                ("<f2", "1.5", 1.5), ("<i8", "-5", -5), (">u2", "7", 7), ("|b1", "true", True),
                ("<c8", "1+2j", [1.0, 2.0]), ("<U3", "\u00e9", "\u00e9"), ("|S3", "ab", "YWIA"),
                ("<M8[s]", "1970-01-01T00:00:05", 5)):
            self.ok("create", self.path("f.b2nd"), "--shape", "4", "--dtype", dtype, "--fill",
                    fill, "-f")
            self.ok("repack", self.path("f.b2nd"), self.path("f.zarr"), "--zarr", "-f")
            meta = json.loads((self.path("f.zarr") / "zarr.json").read_text())
            self.assertEqual(meta["fill_value"], expected, dtype)
            self.assertEqual(self.index(meta, "f.zarr")[0], [(MISSING, MISSING)])

    def test_chunks_that_fit_are_moved(self):
        self.write("s.b2nd", smooth((4000, 50)), chunks=(1000, 50), blocks=(250, 50),
                   cparams={"codec": blosc2.Codec.ZSTD, "clevel": 9})
        self.ok("repack", self.path("s.b2nd"), self.path("a.zarr"), "--zarr")
        old, new = (json.loads(self.text("info", self.path(name), "--json", "--chunks"))
                    for name in ("s.b2nd", "a.zarr"))
        for before, after in zip(old["chunks"], new["chunks"]):
            added = after["stored_bytes"] - before["stored_bytes"]
            self.assertTrue(80 <= added <= 400, added)  # 20 for each of 4 blocks, and short runs

    def test_damaged_blocks_are_not_moved(self):
        """The checksums of a moved chunk are made anew: those of its source are compared before."""
        rng = np.random.default_rng(4)
        for name, items, options in (("noise", rng.integers(0, 256, 40000).astype("u1"), ()),
                                     ("steps", rng.integers(0, 50, (100, 200)).astype("<i2"),
                                      ("--codec", "lz4"))):
            np.save(self.path("x.npy"), items)
            source, dual = self.path(f"{name}.b2nd"), self.path(f"{name}.zarr")
            self.ok("convert", self.path("x.npy"), source, *options)
            self.ok("repack", source, dual, "--zarr")
            shard = self.shard(dual.name, items.ndim)
            for path in (source, shard):
                good = path.read_bytes()
                size = struct.unpack_from(">Q", good, 16)[0]  # of the frame
                for at in range(size // 5, size // 2, size // 20):
                    path.write_bytes(good[:at] + bytes([good[at] ^ 4]) + good[at + 1:])
                    opened = source if path == source else dual
                    status, _, err = run("repack", opened, self.path("out.zarr"), "--zarr")
                    self.assertEqual((status, "chunk" in err), (4, True), f"{opened} {at}: {err}")
                    self.assertFalse(self.path("out.zarr").exists())
                path.write_bytes(good)

    def test_what_does_not_fit_is_adapted(self):
        items = smooth((50, 40))
        for partition, cparams, sentence in (
                ({"chunks": (25, 20), "blocks": (10, 8)}, {}, "chunks of whole blocks"),
                ({}, {"filters": [blosc2.Filter.DELTA], "filters_meta": [0]}, "other filters"),
                ({"chunks": (25, 20), "blocks": (5, 5)},  # 25 items, and bitshuffle takes 8
                 {"filters": [blosc2.Filter.BITSHUFFLE], "filters_meta": [0]}, "other filters")):
            self.write("s.b2nd", items, cparams=cparams, **partition)
            status, out, err = run("repack", self.path("s.b2nd"), self.path("a.zarr"), "--zarr",
                                   "-f")
            self.assertEqual((status, out), (0, b""), err)
            self.assertIn(sentence, err)
            np.testing.assert_array_equal(self.items_of("a.zarr"), items)
            self.assertIn(": ok, ", self.text("verify", self.path("a.zarr")))

    def test_options_leave_the_rest_to_be_adapted(self):
        for cparams, options, expected in (
                ({"filters": [blosc2.Filter.DELTA], "filters_meta": [0]}, ["--codec", "zstd"],
                 ["zstd", "shuffle"]),
                ({"filters": [blosc2.Filter.DELTA], "filters_meta": [0]}, ["--level", "7"],
                 ["zstd 7", "shuffle"]),
                ({"codec": blosc2.Codec.NDLZ, "codec_meta": 4, "filters": [], "filters_meta": []},
                 ["--filters", "bitshuffle"], ["zstd", "bitshuffle"]),
                ({"filters": [blosc2.Filter.BITSHUFFLE], "filters_meta": [0]}, ["--codec", "lz4"],
                 ["lz4", "bitshuffle"]),
                ({"codec": blosc2.Codec.ZSTD, "use_dict": True}, ["--level", "3"], ["zstd 3"])):
            items = smooth((50, 40), "u1" if "codec_meta" in cparams else "<i4")
            self.write("s.b2nd", items, chunks=(40, 40), blocks=(8, 8), cparams=cparams)
            status, _, err = run("repack", self.path("s.b2nd"), self.path("a.zarr"), "--zarr", "-f",
                                 *options)
            self.assertEqual(status, 0, err)
            for word in expected:
                self.assertIn(word, self.text("info", self.path("a.zarr")))
            np.testing.assert_array_equal(self.items_of("a.zarr"), items)

    def test_what_is_asked_for_is_refused(self):
        self.write("s.b2nd", smooth((50, 40)))
        for options, sentence in (
                (["--chunks", "25,20", "--blocks", "10,8"], "on axis 0 25 is no multiple of 10"),
                (["--filters", "delta"], "one filter, shuffle or bitshuffle"),
                (["--codec", "lz4", "--filters", "shuffle,bytedelta"], "one filter"),
                (["--sparse"], "a directory of chunks was requested")):
            status, _, err = run("repack", self.path("s.b2nd"), self.path("a.zarr"), "--zarr",
                                 *options)
            self.assertEqual(status, 2, err)
            self.assertIn(sentence, err)
            self.assertEqual(self.names(), ["s.b2nd"])
        for dtype, what in (("<f16", "more than 8 bytes"), ("('<i4', (3,))", "inside of items"),
                            ("[('a', '>i4')]", "big-endian"),
                            ("{'names': ['a'], 'formats': ['<i4'], 'offsets': [4]}", "gaps")):
            self.ok("create", self.path("d.b2nd"), "--shape", "4", "--dtype", dtype, "-f")
            status, _, err = run("repack", self.path("d.b2nd"), self.path("d.zarr"), "--zarr")
            self.assertNotEqual(status, 0)
            self.assertIn(f"Zarr has no data type for", err)
            self.assertIn(what, err)
        self.assertEqual(self.names(), ["d.b2nd", "s.b2nd"])

    def test_boxes_and_conversions(self):
        items, _ = self.make()
        self.ok("repack", self.path("a.zarr"), self.path("b.zarr"), "--zarr", "--select", "3:30,5:",
                "--astype", "<f8")
        np.testing.assert_array_equal(self.items_of("b.zarr"), items[3:30, 5:].astype("<f8"))
        self.ok("repack", self.path("b.zarr"), self.path("c.b2nd"))  # and back
        np.testing.assert_array_equal(blosc2.open(str(self.path("c.b2nd")))[...],
                                      items[3:30, 5:].astype("<f8"))


class Opened(Zarr):
    def test_as_any_array(self):
        items, _ = self.make()
        info = json.loads(self.text("info", self.path("a.zarr"), "--json"))
        self.assertEqual((info["shape"], info["dtype"]), ([40, 24], "<i4"))
        np.testing.assert_array_equal(self.items_of("a.zarr"), items)
        self.ok("get", self.path("a.zarr"), "3:9,4", "-o", self.path("part.npy"))
        np.testing.assert_array_equal(np.load(self.path("part.npy")), items[3:9, 4])
        self.assertEqual(run("diff", self.path("a.zarr"), self.path("source.b2nd"))[0], 0)

    def test_other_zarr_arrays(self):
        self.make()
        self.shard().write_bytes(b"\x02\x01another shard, which is longer than a header of a frame")
        self.assertIn("is shorter than its index", self.fails(4, "info", self.path("a.zarr")))
        self.fails(4, "convert", self.path("a.zarr"), self.path("b.npy"))
        shutil.rmtree(self.path("a.zarr") / "c")
        self.assertIn("a Zarr store", self.text("info", self.path("a.zarr")))

    def test_ls_says_that_it_is_an_array(self):
        self.make()
        self.assertIn("a.zarr is an array, not a tree", self.fails(5, "ls", self.path("a.zarr")))

    def test_damaged_frames_are_not_read_as_zarr(self):
        """Without the seal, as any Zarr array is read, the damage would not be noticed."""
        self.make()
        whole = self.shard().read_bytes()
        end = struct.unpack_from(">Q", whole, 16)[0]
        damaged = [whole[:at] + bytes([whole[at] ^ 1 << at % 8]) + whole[at + 1:]
                   for at in (0, 3, 9, 11, 20, 25, end - 29, end - 5)]
        for data in [*damaged, bytes(64) + whole[64:], whole[:len(whole) // 2], b""]:
            self.shard().write_bytes(data)
            for words in (["info"], ["get"], ["stats"], ["verify"], ["diff", self.path("source.b2nd")],
                          ["convert", self.path("o.npy"), "-f"]):
                err = self.fails(4, words[0], self.path("a.zarr"), *words[1:])
                self.assertNotIn("Zarr store", err)

    def test_shards_of_others_behind_urls(self):
        """They are not damaged: their chunks are Blosc 1 buffers. A cut frame is."""
        self.make()
        frame = self.shard().read_bytes()
        with ScriptedServer() as server:
            server.objects["/a.zarr/zarr.json"] = (self.path("a.zarr") / "zarr.json").read_bytes()
            for body, status, word in ((b"\2\1\x13\4" * 2000, 5, "not one frame of Blosc2"),
                                       (b"\2" + frame[1:], 4, ""),
                                       (frame[:84] + b"\xff" + frame[85:], 4, ""),
                                       (frame[:len(frame) // 2], 4, "")):
                server.objects["/a.zarr/c/0/0"] = body
                self.assertIn(word, self.fails(status, "info", server.url("/a.zarr")))

    def test_writes_are_refused(self):
        self.make()
        before = self.shard().read_bytes()
        np.save(self.path("n.npy"), np.zeros((1, 24), "<i4"))
        for path in (self.path("a.zarr"), self.shard()):
            err = self.fails(2, "put", path, "0:1", self.path("n.npy"))
            self.assertIn("is a Zarr array, too", err)
        self.assertEqual(self.shard().read_bytes(), before)

    def test_replaced_and_deleted(self):
        items, _ = self.make()
        self.fails(3, "repack", self.path("source.b2nd"), self.path("a.zarr"), "--zarr")
        for source, target, options in (
                ("a.zarr", "a.zarr", ["--zarr"]), ("a.zarr", "source.b2nd", ["--zarr"]),
                ("source.b2nd", "source.b2nd", []), ("a.zarr", "source.b2nd", ["--zarr"]),
                ("source.b2nd", "source.b2nd", ["--sparse"]),
                ("source.b2nd", "a.zarr", ["--zarr"])):
            self.ok("repack", self.path(source), self.path(target), "-f", *options)
            np.testing.assert_array_equal(self.items_of(target), items)
        self.path("items.npy").unlink()
        self.assertEqual(self.names(), ["a.zarr", "source.b2nd"])
        (self.path("a.zarr") / "mine").write_text("x")
        err = self.fails(3, "repack", self.path("source.b2nd"), self.path("a.zarr"), "-f",
                         "--zarr")
        self.assertIn("not an array", err)
        self.assertTrue((self.path("a.zarr") / "mine").exists())


class Converted(Zarr):
    def test_from_any_source(self):
        items = smooth((60, 37), "<f4")
        np.save(self.path("s.npy"), items)
        np.savetxt(self.path("s.csv"), items, delimiter=",")
        items.tofile(self.path("s.raw"))
        self.ok("convert", self.path("s.npy"), self.path("s.b2nd"))
        shape = ["--shape", "60,37", "--dtype", "<f4"]
        for source, *options in (["s.npy"], ["s.b2nd"], ["s.csv", "--astype", "<f4"],
                                 ["s.raw", *shape], ["s.npy", "--codec", "lz4", "--level", "9"]):
            self.ok("convert", self.path(source), self.path("o.zarr"), *options)
            self.assertTrue((self.path("o.zarr") / "zarr.json").exists(), source)
            np.testing.assert_array_equal(self.items_of("o.zarr"), items)
            self.ok("verify", self.path("o.zarr"))
            shutil.rmtree(self.path("o.zarr"))
        self.ok("convert", self.path("s.npy"), self.path("any"), "--to", "zarr")
        self.ok("convert", self.path("any"), self.path("o.npy"))
        np.testing.assert_array_equal(np.load(self.path("o.npy")), items)
        self.ok("get", self.path("s.b2nd"), "5:20,::3", "-o", self.path("o.zarr"))
        np.testing.assert_array_equal(self.items_of("o.zarr"), items[5:20, ::3])

    def test_options_stay(self):
        np.save(self.path("s.npy"), smooth((60, 37)))
        for options, expected in ((["--codec", "lz4", "--level", "9"], "lz4 9, shuffle"),
                                  (["--filters", "bitshuffle", "--blocks", "30,8"], ", bitshuffle"),
                                  (["--codec", "zlib", "--filters", "none"], "zlib 5 "),
                                  (["--chunks", "20,10", "--blocks", "10,5"], "20 x 10")):
            self.ok("convert", self.path("s.npy"), self.path("o.zarr"), "-f", *options)
            self.assertIn(expected, self.text("info", self.path("o.zarr")))

    def test_chunks_are_whole_blocks(self):
        """A shape whose chunks, as other arrays get them, are not."""
        items = smooth((2747, 959), "<f4")
        np.save(self.path("s.npy"), items)
        self.ok("convert", self.path("s.npy"), self.path("o.b2nd"))
        self.ok("convert", self.path("s.npy"), self.path("o.zarr"))
        info = {n: json.loads(self.text("info", "--json", self.path(n)))
                for n in ("o.b2nd", "o.zarr")}
        fits = {n: all(c % b == 0 for c, b in zip(i["chunk_shape"], i["block_shape"]))
                for n, i in info.items()}
        self.assertEqual(fits, {"o.b2nd": False, "o.zarr": True})
        np.testing.assert_array_equal(self.items_of("o.zarr"), items)

    def test_refused(self):
        np.save(self.path("s.npy"), smooth((60, 37)))
        np.save(self.path("f.npy"), smooth((60, 37), "<f16"))
        self.ok("convert", self.path("s.npy"), self.path("s.b2nd"))
        (self.path("d.zarr")).mkdir()
        (self.path("d.zarr") / "mine").write_text("kept")
        before = self.names()
        for status, words in ((2, ["s.npy", "o.zarr", "--sparse"]), (5, ["s.npy", "-", "--to", "zarr"]),
                              (2, ["s.npy", "o.zarr", "--filters", "bytedelta"]),
                              (2, ["s.npy", "o.zarr", "--chunks", "20,20", "--blocks", "6,6"]),
                              (5, ["f.npy", "o.zarr"]), (3, ["s.npy", "d.zarr"]),
                              (3, ["s.npy", "d.zarr", "-f"])):
            self.fails(status, "convert", *(self.path(w) if "." in w else w for w in words))
            self.assertEqual(self.names(), before, words)
        self.fails(2, "repack", self.path("s.b2nd"), self.path("o.zarr"))
        self.fails(2, "create", self.path("o.zarr"), "--shape", "3", "--dtype", "<f4")
        self.assertEqual(self.names(), before)

    def test_force(self):
        np.save(self.path("s.npy"), smooth((60, 37)))
        np.save(self.path("t.npy"), smooth((5, 6, 7)))
        self.ok("convert", self.path("s.npy"), self.path("o.zarr"))
        err = self.fails(3, "convert", self.path("t.npy"), self.path("o.zarr"))
        self.assertIn("-f replaces it", err)
        before = self.names()
        self.ok("convert", self.path("t.npy"), self.path("o.zarr"), "-f")
        self.assertEqual(self.names(), before)
        np.testing.assert_array_equal(self.items_of("o.zarr"), smooth((5, 6, 7)))
        self.assertEqual(sorted(p.name for p in self.path("o.zarr").rglob("*")),
                         ["0", "0", "0", "c", "zarr.json"])


class Trees(Zarr):
    def setUp(self):
        super().setUp()
        self.tree = self.path("t.b2d")
        self.items = smooth((40, 24))
        np.save(self.path("n.npy"), self.items)
        for key in ("/x", "/g/y", "/g/h/z"):
            self.ok("convert", self.path("n.npy"), f"{self.tree}::{key}")
        self.ok("attr", "set", f"{self.tree}::/g", "title", '"a group"')
        self.ok("attr", "set", f"{self.tree}::/g/y", "unit", '"m"')

    def test_packed(self):
        self.ok("pack", self.tree, self.path("t.b2z"))
        for source in ("t.b2d", "t.b2z"):
            self.ok("pack", self.path(source), self.path("t.zarr"), "--zarr")
            root = json.loads((self.path("t.zarr") / "zarr.json").read_text())
            members = root["consolidated_metadata"]["metadata"]
            self.assertEqual(sorted(members), ["g", "g/h", "g/h/z", "g/y", "x"])
            for name, meta in members.items():
                text = (self.path("t.zarr") / name / "zarr.json").read_text()
                self.assertEqual(json.loads(text), meta)
            self.assertEqual(members["g"]["attributes"], {"title": "a group"})
            self.assertEqual(members["g/y"]["attributes"], {"unit": "m"})
            for name in ("x", "g/y", "g/h/z"):
                np.testing.assert_array_equal(self.items_of(f"t.zarr/{name}"), self.items)
                self.assertIn(": ok, ", self.text("verify", self.path("t.zarr") / name))
            self.fails(3, "pack", self.path(source), self.path("t.zarr"), "--zarr")
            shutil.rmtree(self.path("t.zarr"))

    def test_a_failure_leaves_nothing(self):
        before = self.names()
        self.ok("create", f"{self.tree}::/g/last", "--shape", "3", "--dtype", "<f16")
        err = self.fails(5, "pack", self.tree, self.path("t.zarr"), "--zarr")
        self.assertIn("/g/last: Zarr has no data type", err)
        self.assertEqual(self.names(), before)

    def test_opens_as_a_tree(self):
        self.ok("pack", self.tree, self.path("t.zarr"), "--zarr")
        self.assertEqual(self.text("ls", self.path("t.zarr")), self.text("ls", self.tree))
        self.assertEqual(self.text("ls", "-r", self.path("t.zarr")),
                         self.text("ls", "-r", self.tree))
        member = f"{self.path('t.zarr')}::/g/y"
        self.assertEqual(self.text("get", member), self.text("get", f"{self.tree}::/g/y"))
        self.assertEqual(self.text("attr", "get", f"{self.path('t.zarr')}::/g", "title"),
                         '"a group"\n')
        self.ok("pack", self.path("t.zarr"), self.path("again.zarr"), "--zarr")
        for one in sorted(p for p in self.path("t.zarr").rglob("*") if p.is_file()):
            other = self.path("again.zarr") / one.relative_to(self.path("t.zarr"))
            self.assertEqual(one.read_bytes(), other.read_bytes(), one)

    def test_members_behind_urls(self):
        """An array of a hierarchy opens by its URL, and so do its frame and other frames."""
        self.ok("pack", self.tree, self.path("t.zarr"), "--zarr")
        self.write("t.zarr/plain", self.items)
        with ScriptedServer() as server:
            for file in self.path("t.zarr").rglob("*"):
                if file.is_file():
                    server.objects[f"/{file.relative_to(self.folder)}"] = file.read_bytes()
            for name in ("x", "g/h/z", "g/h/z/", "g/h/z/c/0/0", "plain"):
                url = server.url(f"/t.zarr/{name}")
                self.ok("diff", self.path("t.zarr/x"), url)
            path = "/t.zarr/g/y/c/0/0"
            self.ok("verify", server.url("/t.zarr/g/y"))
            frame = server.objects[path]
            server.objects[path] = frame[:-1] + bytes([frame[-1] ^ 1])
            self.assertIn(b"index of the Zarr array", run("verify", server.url("/t.zarr/g/y"))[1])
            self.fails(3, "info", server.url("/t.zarr/g/none"))
            self.assertIn("no Zarr array", self.fails(5, "info", server.url("/t.zarr/g")))

    def test_is_only_read(self):
        self.ok("pack", self.tree, self.path("t.zarr"), "--zarr")
        for words in (["attr", "set", f"{self.path('t.zarr')}::/g", "a", "1"],
                      ["attr", "set", f"{self.path('t.zarr')}::/g/y", "a", "1"],
                      ["set", f"{self.path('t.zarr')}::/x", "0,0", "--value", "1"]):
            self.fails(2, *words)
        for words in (["pack", "t.zarr", "o.b2z"], ["unpack", "t.zarr", "o.b2d"],
                      ["repair", "t.zarr"], ["info", "t.zarr/missing"]):
            place = [self.path(w) if "." in w else w for w in words[1:]]
            before = self.names()
            self.assertNotEqual(run(words[0], *place)[0], 0, words)
            self.assertEqual(self.names(), before)

    def test_force(self):
        self.ok("pack", self.tree, self.path("t.zarr"), "--zarr")
        self.ok("repack", f"{self.tree}::/x", f"{self.tree}::/x", "-f", "--codec", "lz4")
        before = self.names()
        self.ok("pack", self.tree, self.path("t.zarr"), "--zarr", "-f")
        self.assertIn("lz4", self.text("info", self.path("t.zarr") / "x"))
        self.assertEqual(self.names(), before)
        mine = self.path("t.zarr") / "g" / "mine"
        mine.write_text("kept")
        err = self.fails(3, "pack", self.tree, self.path("t.zarr"), "--zarr", "-f")
        self.assertIn("not replaced", err)
        self.assertEqual(mine.read_text(), "kept")
        self.assertEqual(self.names(), before)
        mine.unlink()
        self.ok("repack", f"{self.tree}::/x", self.path("t.zarr"), "--zarr", "-f")
        np.testing.assert_array_equal(self.items_of("t.zarr"), self.items)
        self.assertFalse((self.path("t.zarr") / "g").exists())
        self.ok("pack", self.tree, self.path("t.zarr"), "--zarr", "-f")
        self.assertTrue((self.path("t.zarr") / "g").exists())
        self.ok("pack", self.path("t.zarr"), self.path("t.zarr"), "--zarr", "-f")
        self.ok("verify", self.path("t.zarr"))
        err = self.fails(2, "pack", self.path("t.zarr"), self.path("t.zarr") / "in", "--zarr")
        self.assertIn("lies inside the tree", err)

    def test_a_hierarchy_of_others(self):
        group = self.path("o.zarr")
        (group / "x" / "c").mkdir(parents=True)
        (group / "zarr.json").write_text('{"zarr_format": 3, "node_type": "group"}')
        (group / "x" / "zarr.json").write_text('{"zarr_format": 3, "node_type": "array"}')
        (group / "x" / "c" / "0").write_bytes(b"no frame")
        self.assertIn("x/zarr.json has no valid shape", self.fails(4, "ls", group))
        self.fails(3, "pack", self.tree, group, "--zarr", "-f")
        self.assertTrue((group / "x" / "c" / "0").exists())

    def test_damage_is_named(self):
        self.ok("pack", self.tree, self.path("t.zarr"), "--zarr")
        for name in ("g/zarr.json", "g/h/z/zarr.json", "g/y/c/0/0"):
            path = self.path("t.zarr") / name
            data = path.read_bytes()
            for at in {len(data) // 2, len(data) - 3}:
                path.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1:])
                self.assertEqual(run("verify", self.path("t.zarr"))[0], 1, (name, at))
            path.write_bytes(data)
        path = self.path("t.zarr") / "zarr.json"
        data = path.read_text()
        path.write_text(data.replace('"m"', '"n"'))
        status, out, _ = run("verify", self.path("t.zarr"))
        self.assertEqual(status, 1)
        self.assertIn(b"differ from those of the members", out)


class Damaged(Zarr):
    def damage(self, path, at, name="a.zarr"):
        """The report of verify after one bit of the file has changed."""
        data = bytearray(path.read_bytes())
        data[at] ^= 1 << at % 8
        path.write_bytes(data)
        status, out, err = run("verify", self.path(name))
        data[at] ^= 1 << at % 8
        path.write_bytes(data)
        self.assertNotEqual(status, 0, (path.name, at, out))
        return out.decode() + err

    def setUp(self):
        super().setUp()
        rng = np.random.default_rng(5)
        self.values = smooth((40, 24))
        self.values[:10, :6] = rng.integers(-2 ** 31, 2 ** 31, (10, 6))
        self.values[20:, 12:] = 7
        _, self.meta = self.make(items=self.values, chunks=(20, 12), blocks=(10, 6))
        self.entries, self.at = self.index(self.meta)
        info = json.loads(self.text("info", self.path("a.zarr"), "--json"))
        self.frame_end = info["frame_bytes"]
        self.assertIn(": ok, ", self.text("verify", self.path("a.zarr")))

    def test_metadata(self):
        path = self.path("a.zarr") / "zarr.json"
        for at in some(range(path.stat().st_size), plain=9, sanitized=60):
            self.assertIn(f"zarr.json differs at byte {at} ", self.damage(path, at))
        path.write_text(path.read_text() + " ")
        self.assertIn("zarr.json differs", run("verify", self.path("a.zarr"))[1].decode())
        path.unlink()
        self.assertNotEqual(run("verify", self.path("a.zarr"))[0], 0)

    def test_heads_of_blocks(self):
        heads = [pos for pos, size in self.entries if pos < self.frame_end]
        self.assertGreater(len(heads), 4)
        for pos in some(heads, plain=2, sanitized=4):
            for at in range(pos, pos + 20):
                self.assertIn("checksum", self.damage(self.shard(), at), at)

    def test_behind_the_frame(self):
        apart = [pos for pos, size in self.entries if self.frame_end <= pos < MISSING]
        self.assertTrue(apart)
        size = self.shard().stat().st_size
        for at in some(range(self.frame_end, size), plain=7, sanitized=50):
            self.assertIn(f"at byte {at}", self.damage(self.shard(), at), at)
        with self.shard().open("ab") as file:
            file.write(b"x")
        self.assertIn("behind", run("verify", self.path("a.zarr"))[1].decode())
        for end in (size - 1, (size + self.frame_end) // 2, self.frame_end + 1):
            os.truncate(self.shard(), end)
            self.assertNotEqual(run("verify", self.path("a.zarr"))[0], 0, end)
        with self.shard().open("ab") as file:  # as after end_zarr, and the kill of a writer
            file.truncate(self.frame_end)
            file.write(b"remains")
        self.assertIn(": ok, ", self.text("verify", self.path("a.zarr")))

    def test_killed(self):
        """The old array or the new one has the name, whenever the program is killed."""
        items = smooth((1200, 1000))
        self.write("s.b2nd", items, chunks=(100, 1000), blocks=(20, 1000))
        command = [CLI, "repack", str(self.path("s.b2nd")), str(self.path("a.zarr")), "--zarr",
                   "-f"]
        began = time.monotonic()
        subprocess.run(command, check=True, env=environment())
        takes = time.monotonic() - began
        killed = 0
        for i in some(range(24), plain=2, sanitized=6):
            old = self.values if i % 2 else items
            source = "source.b2nd" if i % 2 else "s.b2nd"
            self.ok("repack", self.path(source), self.path("a.zarr"), "--zarr", "-f")
            process = subprocess.Popen(command, env=environment())
            time.sleep(takes * i / 20)
            process.send_signal(signal.SIGKILL)
            killed += process.wait() != 0
            found = self.items_of("a.zarr")
            self.assertIn(found.shape, (old.shape, items.shape))
            np.testing.assert_array_equal(found, old if found.shape == old.shape else items)
            self.assertIn(": ok, ", self.text("verify", self.path("a.zarr")))
        self.assertGreater(killed, 0)


if __name__ == "__main__":
    main()

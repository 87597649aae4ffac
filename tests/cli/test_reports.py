"""info, verify and attr: the text of the reports, and the same facts as JSON."""

import base64
import json
import os
import re
import shutil

import blosc2
import numpy as np

from tool_cli import DATA, Case, main, run


class Info(Case):
    def test_text(self):
        path = self.path("head.b2nd")
        values = np.zeros((181, 217, 181), "u1")
        values[60:100] = np.random.default_rng(3).integers(0, 9, (40, 217, 181))
        np.save(self.path("head.npy"), values)
        self.ok("convert", self.path("head.npy"), path, "--chunks", "91,109,181", "--blocks",
                "16,32,64")
        facts = json.loads(self.text("info", path, "--json"))
        size = f"{round(facts['frame_bytes'] / 1024, 1):g} KiB"
        self.assertEqual(self.text("info", path).splitlines(), [
            f"{path}   B2ND in a contiguous frame, {size}, sealed",
            f"  shape    181 x 217 x 181     uint8     6.8 MiB     "
            f"ratio {facts['data_bytes'] / facts['frame_bytes']:.2f}",
            "  chunks    91 x 109 x 181     2 x 2 x 1 = 4 chunks  (4 stored, 0 special)",
            "  blocks    16 x  32 x  64     6 x 4 x 3 = 72 per chunk, 32 KiB each",
            "  codec    zstd 3     fill 0     dead 0 B",
        ])

    def test_json(self):
        path = self.path("a.b2nd")
        values = np.zeros((30, 20), ">i4")
        values[:10] = np.random.default_rng(1).integers(0, 2**31, (10, 20))
        array = blosc2.asarray(values, chunks=(10, 20), blocks=(5, 7), urlpath=str(path),
                               cparams={"codec": blosc2.Codec.LZ4, "clevel": 3,
                                        "filters": [blosc2.Filter.BITSHUFFLE]},
                               meta={"mine": {"a": 1}})
        array.schunk.vlmeta["k"] = [1, {"x": None}]
        facts = json.loads(self.text("info", path, "--json", "--chunks"))
        expected = {
            "schema": 1, "file": str(path), "format": "b2nd", "layout": "contiguous",
            "sealed": False, "shape": [30, 20], "chunk_shape": [10, 20],
            "block_shape": [5, 7],
            "chunk_counts": [3, 1], "block_counts": [2, 3], "dtype": ">i4",
            "dtype_stored": ">i4", "dtype_disagrees": False, "item_size": 4,
            "codec": {"name": "lz4", "level": 3, "meta": 0, "dictionary": False},
            "filters": [{"name": "bitshuffle", "meta": 0}], "fill": 0, "n_items": 600,
            "n_chunks": 3,
            "n_blocks": 6, "data_bytes": 2400, "chunk_bytes": 840, "block_bytes": 140,
            "frame_bytes": path.stat().st_size, "stored_chunks": 1, "special_chunks": 2,
            "attributes": {"k": [1, {"x": None}]}, "metalayers": ["b2nd", "mine"],
        }
        self.assertEqual({k: facts[k] for k in expected}, expected)
        self.assertEqual([c["kind"] for c in facts["chunks"]], ["stored", "zeros", "zeros"])
        self.assertEqual([c["index"] for c in facts["chunks"]], [[0, 0], [1, 0], [2, 0]])
        text = self.text("info", path, "--chunks")
        self.assertIn("int32, big-endian", text)
        self.assertIn('\n  metalayers "b2nd" "mine"\n', text)
        self.assertIn('\n  attributes\n    "k": [1, {"x": null}]\n', text)
        self.assertIn("\n  chunk 2 (2,0)  zeros\n", text)
        self.assertRegex(text, r"\n  chunk 0 \(0,0\)  stored  at \d+, \d+ bytes, ratio ")

    def test_fill(self):
        path = self.path("f.b2nd")
        for dtype, fill, text, value in (
                ("<i4", "-7", "-7", -7),
                ("<u8", "18446744073709551615", "18446744073709551615", 2**64 - 1),
                (">f8", "0.1", "0.1", 0.1),
                ("<f4", "nan", "nan", "nan"), ("<f8", "-inf", "-inf", "-inf"),
                ("<f8", "uninit", "0", 0.0), ("|b1", "True", "True", True),
                ("<f8", "3", "3", 3.0), ("<c8", "1-2j", "1-2j", "1-2j"),
                ("<U3", "ab", '"ab"', '"ab"'), ("<M8[D]", "1", "1970-01-02", "1970-01-02"),
                ("|V2", "0x01ff", "0x01ff", "0x01ff")):
            self.ok("create", path, "--shape", "5", "--dtype", dtype, "--fill", fill, "-f")
            self.assertRegex(self.text("info", path), rf"\d(, shuffle)?     fill {re.escape(text)} +dead ")
            got = json.loads(self.text("info", path, "--json"))["fill"]
            self.assertEqual((got, type(got)), (value, type(value)))
        blosc2.zeros((3,), dtype=[("a", "<i2"), ("b", "S2")], urlpath=str(path), mode="w")
        self.assertIn('     fill (0, "")     dead 0 B\n', self.text("info", path))
        blosc2.zeros((3,), dtype="V90", urlpath=str(path), mode="w")
        self.assertIn("     fill 0x" + "0" * 54 + " ...     dead", self.text("info", path))

    def test_shapes_without_items(self):
        for shape, line in (("()", "shape () float64 8 B"),
                            ("0", "shape 0 float64 0 B"),
                            ("7,0,2", "shape 7 x 0 x 2 float64 0 B")):
            path = self.path("e.b2nd")
            self.ok("create", path, "--shape", shape, "--dtype", "<f8", "-f")
            self.assertIn(line, " ".join(self.text("info", path).split()))
            json.loads(self.text("info", path, "--json"))

    def test_remarks(self):
        blosc2.zeros((5, 5), urlpath=str(self.path("m.b2nd")), meta={"big": b"x" * 900})
        self.assertIn("more than a 512-byte sector", self.text("info", self.path("m.b2nd")))
        if DATA.is_dir():
            text = self.text("info", DATA / "example_day_month_temp.b2nd")
            self.assertIn("the stored dtype |u1 does not match the item size of 4 bytes", text)
            self.assertIn("400 x 3     V4  ", text)


class Attributes(Case):
    VALUES = {
        "int": 2**64 - 1, "negative": -(2**63), "text": 'q"\\\n\u20ac\x01', "real": 0.1,
        "whole": 3.0, "list": [1, [2, []], {}], "map": {"a": {"b": [True, False, None]}},
        "none": None, "small": -1, "long": "x" * 300,
    }

    def make(self):
        path = self.path("a.b2nd")
        array = blosc2.zeros((2,), urlpath=str(path))
        for key, value in self.VALUES.items():
            array.schunk.vlmeta[key] = value
        array.schunk.vlmeta["bytes"] = b"\x00\xff\x10ab"
        return path

    def test_list_and_get(self):
        path = self.make()
        listed = json.loads(self.text("attr", "list", path, "--json"))
        self.assertEqual(listed["schema"], 1)
        attributes = listed["attributes"]
        for key, value in self.VALUES.items():
            self.assertEqual(attributes[key], value)
            self.assertEqual(type(attributes[key]), type(value), key)
            self.assertEqual(json.loads(self.text("attr", "get", path, key)), value)
            one = json.loads(self.text("attr", "get", path, key, "--json"))
            self.assertEqual((one["name"], one["value"]), (key, value))
        self.assertEqual(base64.b64decode(attributes["bytes"]["$binary"]), b"\x00\xff\x10ab")
        lines = self.text("attr", "list", path).splitlines()
        self.assertEqual(lines[3], '"real": 0.1')
        self.assertEqual(lines[4], '"whole": 3.0')

    def test_long_values_are_cut_in_info(self):
        lines = self.text("info", self.make()).splitlines()
        cut = [line for line in lines if line.startswith('    "long"')]
        self.assertEqual(len(cut[0]), 4 + 60)
        self.assertTrue(cut[0].endswith(" ..."))

    def test_missing(self):
        path = self.make()
        self.assertIn("no attribute 'what'", self.fails(1, "attr", "get", path, "what"))
        self.fails(2, "attr", "get", path)
        self.fails(2, "attr", "list", path, "key")
        self.fails(2, "attr", "set", path, "key")
        self.fails(3, "attr", "list", self.path("none.b2nd"))


class Verify(Case):
    def make(self):
        path = self.path("v.b2nd")
        values = np.random.default_rng(5).integers(0, 50, (60, 40)).astype("<i4")
        blosc2.asarray(values, chunks=(20, 20), blocks=(10, 10), urlpath=str(path),
                       cparams={"codec": blosc2.Codec.ZSTD})
        return path

    def test_good(self):
        path = self.make()
        self.assertEqual(self.text("verify", path),
                         f"{path}: ok, 6 chunks, 6 stored, every block decodes, unsealed\n")
        self.assertEqual(self.text("verify", path, "--quick"),
                         f"{path}: ok, 6 chunks, 6 stored, structure only, unsealed\n")
        facts = json.loads(self.text("verify", path, "--json"))
        self.assertEqual(facts, {"schema": 1, "file": str(path), "damages": [], "ok": True,
                                 "checked_chunks": 6, "damaged_chunks": 0, "sealed": False,
                                 "unverified_chunks": 6, "bytes_behind": 0})

    def test_bytes_behind_the_frame(self):
        path = self.make()
        size = path.stat().st_size
        with open(path, "ab") as file:
            file.write(b"x" * 1234)
        self.assertEqual(self.text("verify", path),
                         f"{path}: ok, 6 chunks, 6 stored, every block decodes, unsealed\n"
                         f"{path}: 1234 bytes after the frame, which are not part of the array\n")
        facts = json.loads(self.text("verify", path, "--json", "--quick"))
        self.assertEqual((facts["ok"], facts["bytes_behind"]), (True, 1234))
        os.truncate(path, size)
        self.assertNotIn("after", self.text("verify", path))

    def damage(self, path, chunk):
        """Overwrites the middle of a chunk's data with 0xff."""
        where = json.loads(self.text("info", path, "--json", "--chunks"))["chunks"][chunk]
        data = bytearray(path.read_bytes())
        at, size = where["position"], where["stored_bytes"]
        data[at + size // 3:at + size] = b"\xff" * (size - size // 3)
        path.write_bytes(data)

    def test_damaged(self):
        path = self.make()
        self.damage(path, 3)
        status, out, err = run("verify", path)
        self.assertEqual((status, err), (1, ""))
        lines = out.decode().splitlines()
        self.assertRegex(lines[0], rf"^{path}: chunk 3 \(1,1\) at byte \d+: "
                         r"block \d+ damaged: ")
        self.assertEqual(lines[-1], f"{path}: damaged, 1 of 6 chunks")
        status, out, err = run("verify", path, "--json")
        facts = json.loads(out)
        self.assertEqual((status, facts["ok"], facts["damaged_chunks"]), (1, False, 1))
        self.assertEqual(facts["damages"][0]["chunk"], 3)
        self.assertEqual(facts["damages"][0]["index"], [1, 1])
        self.assertEqual(facts["damages"][0]["status"], "CATERVA_ECORRUPT")
        self.fails(4, "get", path, "-o", self.path("out.npy"))
        self.assertEqual(self.names(), ["v.b2nd"])
        self.ok("get", path, "0:20,0:20")

    def test_sealed(self):
        path = self.make()
        self.assertEqual(self.text("seal", path), f"{path}: sealed, 6 stored\n")
        self.assertEqual(self.text("verify", path),
                         f"{path}: ok, 6 chunks, 6 stored, every block decodes, sealed\n")
        where = json.loads(self.text("info", path, "--json", "--chunks"))["chunks"][3]
        at = where["position"] + where["stored_bytes"] - 1
        data = bytearray(path.read_bytes())
        data[at] ^= 1
        path.write_bytes(data)
        status, out, err = run("verify", path)
        self.assertEqual((status, err), (1, ""))
        line = out.decode().splitlines()[0]
        match = re.fullmatch(rf"{path}: chunk 3 \(1,1\): block \d damaged: checksum differs "
                             r"at byte (\d+)", line)
        self.assertTrue(match and where["position"] < int(match[1]) <= at, line)
        self.fails(4, "get", path, "20:40,20:40")
        self.ok("get", path, "0:20,0:20")

    def test_sparse_with_a_chunk_missing(self):
        np.save(self.path("a.npy"), np.random.default_rng(1).random((40, 40)))
        path = self.path("s.b2nd")
        self.ok("convert", self.path("a.npy"), path, "--sparse", "--chunks", "20,40")
        self.assertIn("ok, 2 chunks", self.text("verify", path))
        next(path.glob("00000001.chunk")).unlink()
        status, out, _ = run("verify", path)
        self.assertEqual(status, 1)
        self.assertIn(": chunk 1 (1,0)", out.decode())

    def test_not_to_be_opened(self):
        path = self.make()
        good = path.read_bytes()
        for bad, status in ((b"", 4), (b"x" * 500, 4), (good[:len(good) // 2], 4),
                            (good[:60], 4), (good[:25] + b"\x18" + good[26:], 5)):
            path.write_bytes(bad)
            for command in ("verify", "info", "get"):
                self.assertIn(str(path), self.fails(status, command, path))
        self.fails(3, "verify", self.path("none.b2nd"))
        self.path("folder").mkdir()
        self.assertIn("holds no array", self.fails(3, "verify", self.path("folder")))
        if DATA.is_dir():
            varied = DATA / "varchunks-lz4-3.0.0.b2frame"
            self.assertIn("not an n-d array", self.fails(5, "verify", varied))
            self.ok("verify", DATA / "frame_simple-zstd.b2frame")

    def test_data_folder(self):
        if not DATA.is_dir():
            self.skipTest("the data folder is not there")
        for path in sorted(DATA.iterdir()):
            if path.suffix in (".b2nd", ".cat"):
                copy = self.path(path.name)
                (shutil.copytree if path.is_dir() else shutil.copy)(path, copy)
                self.assertIn(": ok, ", self.text("verify", copy))


if __name__ == "__main__":
    main()

"""--astype casts as NumPy does, --view-dtype reinterprets bytes, and neither is done without
the option; attributes and metalayers are copied."""

import io
import itertools
import json

import blosc2
import numpy as np

from tool_cli import Case, main, some


def npy(values):
    file = io.BytesIO()
    np.save(file, values)
    return file.getvalue()


VALUES = (np.arange(600).reshape(20, 30) - 300) / 8
NUMBERS = ["?", "<i1", ">i2", "<i4", "<i8", "<u1", "<u2", ">u4", "<u8", "<f2", ">f4", "<f8",
           "<c8", ">c16"]


class Casts(Case):
    def array(self, name, values, **kwargs):
        path = self.path(name)
        blosc2.asarray(np.ascontiguousarray(values), urlpath=str(path), mode="w", **kwargs)
        return path

    def same(self, path, want):
        got = np.load(path) if str(path).endswith(".npy") else blosc2.open(str(path))
        self.assertEqual((got.shape, got.dtype), (want.shape, want.dtype))
        self.assertEqual(np.asarray(got[...]).tobytes(), want.tobytes())

    def test_every_pair_by_every_way(self):
        """Each pair of number types is tested in two of eight ways, and each way by many
        pairs."""
        out, array, plain = self.path("o.b2nd"), self.path("i.b2nd"), self.path("i.npy")
        ways = [["convert", array, out], ["convert", plain, out],
                ["convert", plain, out, "--memory", "4096"],
                ["convert", array, self.path("o.npy")], ["convert", plain, self.path("o.npy")],
                ["get", array, "-o", out], ["repack", array, out],
                ["convert", array, out, "--chunks", "3,3"]]
        turn, pairs = 0, some(itertools.product(NUMBERS, NUMBERS), sanitized=4)
        for source in NUMBERS:
            values = np.arange(24).reshape(4, 6).astype(source)
            self.array("i.b2nd", values, chunks=(3, 4), blocks=(2, 3))
            np.save(plain, values)
            for target in (t for s, t in pairs if s == source):
                with np.errstate(all="ignore"):
                    want = values.astype(target) if source[1:2] != "c" or target[1:2] == "c" \
                        else values.real.astype(target)
                allowed = np.can_cast(source, target, "same_kind")
                self.assertEqual(np.can_cast(source, target, "safe"), not self.refused(
                    "get", array, "--to", "raw", "--astype", target, "--casting", "safe"))
                if not allowed:
                    err = self.fails(2, "convert", plain, out, "-f", "--astype", target)
                    self.assertIn("is not a same-kind cast; --casting unsafe allows it", err)
                    if "c" in source:
                        continue
                force = [] if allowed else ["--casting", "unsafe"]
                turn += 3
                for command in (ways[turn % 8], ways[(turn + 1) % 8]):
                    self.ok(*command, "-f", "--astype", target, *force)
                    self.same(command[3] if command[2] == "-o" else command[2], want)

    def refused(self, *arguments):
        from tool_cli import run
        status, _, err = run(*arguments)
        self.assertIn(status, (0, 2), err)
        return status == 2

    def test_pipes_and_selections(self):
        want = VALUES[::-2, 3].astype("<f4")
        self.array("a.b2nd", VALUES, chunks=(7, 9))
        out = self.path("o.npy")
        self.ok("convert", self.path("a.b2nd"), out, "--select", "::-2,3", "--astype", "float32")
        self.same(out, want)
        self.ok("convert", "-", out, "-f", "--astype", "<f4", "--memory", "4096",
                stdin=npy(VALUES))
        self.same(out, VALUES.astype("<f4"))
        self.ok("convert", "-", out, "-f", "--from", "raw", "--shape", "20,30", "--dtype",
                "<f8", "--astype", "<f4", stdin=VALUES.tobytes())
        self.same(out, VALUES.astype("<f4"))
        np.save(self.path("f.npy"), np.asfortranarray(VALUES))
        self.ok("convert", self.path("f.npy"), out, "-f", "--astype", "<c8", "--memory", "4096")
        self.same(out, VALUES.astype("<c8"))
        self.assertEqual(self.text("get", self.path("a.b2nd"), "0,:3", "--astype", "<i4",
                                   "--casting", "unsafe"), "-37 -37 -37\n")

    def test_put_and_append(self):
        path = self.array("a.b2nd", VALUES.astype("<f4"))
        more = (np.arange(90).reshape(3, 30)).astype(">f8")
        np.save(self.path("in.npy"), more)
        self.array("in.b2nd", more)
        before = path.read_bytes()
        for command in (["append", path], ["put", path, ":3"]):
            err = self.fails(2, *command, self.path("in.npy"))
            self.assertIn("a.b2nd contains <f4, but the input contains >f8; --casting same_kind converts it", err)
            self.fails(2, *command, self.path("in.npy"), "--casting", "safe")
            self.fails(2, *command, self.path("in.npy"), "--astype", "<i4", "--casting",
                       "unsafe")
            self.assertIn("raw input has", self.fails(2, *command, "-", "--from", "raw",
                                                      "--astype", "<f4", stdin=more.tobytes()))
        self.assertEqual(path.read_bytes(), before)
        self.ok("append", path, self.path("in.npy"), "--casting", "same_kind")
        self.ok("append", path, "-", "--astype", "<f4", stdin=npy(more))
        self.ok("put", path, ":3", self.path("in.b2nd"), "--casting", "same_kind")
        want = np.concatenate([more, VALUES[3:], more, more]).astype("<f4")
        self.same(path, want)
        self.ok("append", path, self.path("in.npy"), "--casting", "unsafe", "--memory", "4096")
        self.same(path, np.concatenate([want, more]).astype("<f4"))

    def test_nothing_is_reinterpreted_unasked(self):
        np.save(self.path("a.npy"), VALUES)
        array, out = self.array("a.b2nd", VALUES), self.path("o.b2nd")
        for source in (self.path("a.npy"), array):
            for dtype in ("<i8", "<f4", "<f8"):
                err = self.fails(2, "convert", source, out, "--dtype", dtype)
                self.assertIn("--dtype describes raw input", err)
                self.assertIn(f"--astype {dtype} converts", err)
                self.assertIn(f"--view-dtype {dtype} reinterprets", err)
            self.ok("convert", source, out, "--view-dtype", "<i8")
            self.same(out, VALUES.view("<i8"))
            out.unlink()
            self.ok("convert", source, out, "--view-dtype", "<i8", "--astype", "<f4")
            self.same(out, VALUES.view("<i8").astype("<f4"))
            out.unlink()
            self.assertIn("--astype converts them",
                          self.fails(2, "convert", source, out, "--view-dtype", "<i4"))
        self.assertEqual(self.names(), ["a.b2nd", "a.npy"])

    def test_refusals(self):
        path, out = self.array("a.b2nd", VALUES), self.path("o.b2nd")
        words = self.array("s.b2nd", np.array(["a", "b"]))
        for command in (["convert", path, out], ["get", path, "-o", out], ["repack", path, out]):
            self.assertIn("--casting must be safe, same_kind or unsafe, not 'no'",
                          self.fails(2, *command, "--astype", "<f4", "--casting", "no"))
            self.assertIn("--casting requires --astype", self.fails(2, *command, "--casting", "safe"))
            self.assertIn("--astype: 'what' is not a dtype", self.fails(2, *command, "--astype",
                                                                    "what"))
            command[1] = words
            self.assertIn("cannot be converted", self.fails(5, *command, "--astype", "<f4"))
            self.assertEqual(self.names(), ["a.b2nd", "s.b2nd"])

    def test_what_travels_along(self):
        path = self.path("a.b2nd")
        self.ok("create", path, "--shape", "8,6", "--dtype", "<f4", "--fill", "2.5", "--chunks",
                "4,4")
        meta = blosc2.asarray(np.arange(9.), urlpath=str(self.path("m.b2nd")),
                              meta={"mine": b"fixed"})
        meta.schunk.vlmeta["note"] = {"a": [1, None]}
        self.ok("attr", "set", path, "unit", '"kelvin"')
        for command in (["get", path, "-o"], ["get", path, ":3", "-o"], ["get", path, "[1,0],2", "-o"],
                        ["convert", path], ["repack", path]):
            for cast in ([], ["--astype", "<f8"], ["--astype", "<c16"]):
                out = self.path("o.b2nd")
                self.ok(*command, out, "-f", *cast)
                facts = json.loads(self.text("info", out, "--json"))
                self.assertEqual(facts["attributes"], {"unit": "kelvin"})
                self.assertEqual(facts["fill"], "2.5+0j" if "<c16" in cast else 2.5)
        for name in ("n.b2nd", "o.b2nd"):
            self.ok("get", self.path("m.b2nd"), "::2", "-o", self.path(name), "-f")
        copy = blosc2.open(str(self.path("n.b2nd")))
        self.assertEqual((copy.schunk.meta["mine"], copy.schunk.vlmeta["note"]),
                         (b"fixed", {"a": [1, None]}))
        np.testing.assert_array_equal(copy[...], np.arange(9.)[::2])


if __name__ == "__main__":
    main()

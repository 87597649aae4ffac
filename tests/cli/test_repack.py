"""repack and compact: rewriting an array, and removing its dead space in place."""

import fcntl
import json
import os
import pty
import re
import signal
import struct
import subprocess
import termios
import time
from pathlib import Path

import blosc2
import numpy as np

from tool_cli import CLI, Case, ended_by, environment, main, run


def noise(shape, dtype="<f4", seed=1):
    rng = np.random.default_rng(seed)
    return (rng.random(shape) * 1000).astype(dtype)


class Repack(Case):
    def setUp(self):
        super().setUp()
        self.values = noise((50, 40))
        self.values[20:30] = 0
        array = blosc2.asarray(self.values, chunks=(10, 16), blocks=(5, 8),
                               urlpath=str(self.path("a.b2nd")), meta={"mine": b"fixed"},
                               cparams={"codec": blosc2.Codec.LZ4, "clevel": 3})
        array.schunk.vlmeta["note"] = {"x": [1, None]}

    def repack(self, name, *options, box=np.s_[:]):
        """Runs repack, compares the items, and returns the facts of info."""
        path = self.path(name)
        self.ok("repack", self.path("a.b2nd"), path, *options)
        array = blosc2.open(str(path))
        np.testing.assert_array_equal(array[...], self.values[box])
        self.assertEqual(array.schunk.meta["mine"], b"fixed")
        self.assertEqual(array.schunk.vlmeta["note"], {"x": [1, None]})
        self.assertIn(": ok, ", self.text("verify", path))
        return json.loads(self.text("info", path, "--json", "--chunks"))

    def sizes(self, facts):
        return [(c["kind"], c["stored_bytes"]) for c in facts["chunks"]]

    def test_what_is_not_named_stays(self):
        before = json.loads(self.text("info", self.path("a.b2nd"), "--json", "--chunks"))
        for name, options in (("b.b2nd", []), ("c.b2nd", ["--sparse"])):
            facts = self.repack(name, *options)
            for key in ("shape", "chunk_shape", "block_shape", "dtype", "codec", "filters",
                        "metalayers", "attributes", "fill"):
                self.assertEqual(facts[key], before[key], key)
            self.assertEqual(self.sizes(facts), self.sizes(before))  # moved without decoding
        self.assertTrue(self.path("c.b2nd").is_dir())
        self.ok("repack", self.path("c.b2nd"), self.path("d.b2nd"))
        self.assertTrue(self.path("d.b2nd").is_dir())
        self.ok("repack", self.path("c.b2nd"), self.path("e.b2nd"), "--contiguous")
        facts = json.loads(self.text("info", self.path("e.b2nd"), "--json", "--chunks"))
        self.assertEqual((self.sizes(facts), facts["layout"]),
                         (self.sizes(before), "contiguous"))
        self.ok("repack", self.path("a.b2nd"), self.path("f.cat"), "--metalayer", "caterva")
        self.ok("repack", self.path("f.cat"), self.path("g.cat"))
        self.assertIn("Caterva in a contiguous frame", self.text("info", self.path("g.cat")))

    def test_partition_and_codec(self):
        facts = self.repack("b.b2nd", "--chunks", "7,40", "--blocks", "7,5")
        self.assertEqual((facts["chunk_shape"], facts["block_shape"]), ([7, 40], [7, 5]))
        self.assertEqual(facts["codec"]["name"], "lz4")
        self.assertEqual(facts["codec"]["level"], 3)
        facts = self.repack("c.b2nd", "--codec", "zstd", "--level", "9", "--filters",
                            "bitshuffle", "--memory", "4096", "-T", "1")
        self.assertEqual(facts["codec"], {"name": "zstd", "level": 9, "meta": 0,
                                          "dictionary": False})
        self.assertEqual(facts["filters"], [{"name": "bitshuffle", "meta": 0}])
        self.assertEqual(facts["chunk_shape"], [10, 16])
        facts = self.repack("d.b2nd", "--level", "9")
        self.assertEqual((facts["codec"]["name"], facts["codec"]["level"]), ("lz4", 9))

    def test_codecs_that_look_at_the_geometry(self):
        grid = np.add.outer(np.arange(50), np.arange(40)).astype("<f4")
        for codec, values in (("ndlz:4", noise((50, 40), "u1")), ("zfp-accuracy:-3", grid)):
            made, path, box = (self.path(n) for n in ("made.b2nd", "p.b2nd", "box.b2nd"))
            blosc2.asarray(values, urlpath=str(path), mode="w")
            self.ok("convert", path, made, "-f", "--codec", codec, "--chunks", "16,16",
                    "--blocks", "8,8")
            lossy = np.asarray(blosc2.open(str(made))[...])
            self.ok("repack", made, path, "-f")
            self.ok("repack", made, box, "-f", "--select", "16:45,16:")
            copied, part = (json.loads(self.text("info", p, "--json", "--chunks"))
                            for p in (path, box))
            before = json.loads(self.text("info", made, "--json", "--chunks"))
            self.assertEqual(self.sizes(copied), self.sizes(before))
            self.assertEqual(self.sizes(part)[0], self.sizes(before)[4])
            np.testing.assert_array_equal(blosc2.open(str(path))[...], lossy)
            np.testing.assert_allclose(blosc2.open(str(box))[...], lossy[16:45, 16:],
                                       atol=2e-3)
            self.ok("repack", made, path, "-f", "--chunks", "20,30", "--codec", "lz4")
            np.testing.assert_array_equal(blosc2.open(str(path))[...], lossy)

    def test_select(self):
        before = json.loads(self.text("info", self.path("a.b2nd"), "--json", "--chunks"))
        facts = self.repack("b.b2nd", "--select", "10:40", box=np.s_[10:40])
        self.assertEqual(self.sizes(facts), self.sizes(before)[3:12])
        self.assertEqual(facts["chunk_shape"], [10, 16])
        facts = self.repack("c.b2nd", "--select", "10:37,-24:35", box=np.s_[10:37, 16:35])
        self.assertEqual(self.sizes(facts)[0], self.sizes(before)[4])
        self.repack("d.b2nd", "--select", "3:4,5:", box=np.s_[3:4, 5:])
        self.repack("e.b2nd", "--select", "7:7", box=np.s_[7:7])

    def test_for_remote(self):
        before = json.loads(self.text("info", self.path("a.b2nd"), "--json", "--chunks"))
        facts = self.repack("b.b2nd", "--for-remote")
        self.assertEqual(self.sizes(facts), self.sizes(before))
        self.assertEqual(facts["dead_bytes"], 0)
        plain = self.repack("c.b2nd")
        stored = sum(size > 0 for _, size in self.sizes(facts))
        more = self.path("b.b2nd").stat().st_size - self.path("c.b2nd").stat().st_size
        pages = 8 + stored * (48 + 8 * 4) + 28
        # the list of chunks is compressed; its size depends on the order in which threads write
        self.assertAlmostEqual(more, pages, delta=24)
        self.repack("d.b2nd", "--for-remote", "--codec", "zstd", "--select", "3:47,5:",
                    box=np.s_[3:47, 5:])
        self.assertEqual(plain["dead_bytes"], 0)

    def test_refusals(self):
        path, out = self.path("a.b2nd"), self.path("out.b2nd")
        for status, place, *options in (
                (2, "0:10", "--select", "::2"), (2, "0:10", "--select", "4"),
                (2, "out of range", "--select", "0,99"), (2, "step 1", "--select", "::-1"),
                (2, "exclude each other", "--sparse", "--contiguous"),
                (2, "single file", "--sparse", "--for-remote"),
                (2, "3 axes", "--chunks", "1,2,3"),
                (2, "more than the chunk's 9", "--blocks", "99,99", "--chunks", "9,9"),
                (2, "no option '--shape'", "--shape", "9"), (2, "zip", "--codec", "zip"),
                (2, "no option '--dtype'", "--dtype", "<i4"),
                (2, "4096", "--memory", "1")):
            err = self.fails(status, "repack", path, out, *options)
            self.assertIn(place, err)
            self.assertEqual(self.names(), ["a.b2nd"])
        self.fails(3, "repack", self.path("b.b2nd"), out)
        self.fails(3, "repack", path, self.path("no/out.b2nd"))
        self.fails(3, "repack", path, "/dev/null", "-f")
        self.fails(2, "repack", path, "mem:")
        out.write_bytes(b"precious")
        self.assertIn("exists", self.fails(3, "repack", path, out))
        self.fails(4, "repack", out, self.path("b.b2nd"))
        self.assertEqual(out.read_bytes(), b"precious")
        self.ok("repack", path, out, "-f")
        self.ok("repack", path, path, "-f", "--chunks", "9,9")
        np.testing.assert_array_equal(blosc2.open(str(path))[...], self.values)
        self.assertEqual(self.names(), ["a.b2nd", "out.b2nd"])

    def test_damage_is_the_inputs(self):
        path, out = self.path("a.b2nd"), self.path("out.b2nd")
        chunk = json.loads(self.text("info", path, "--json", "--chunks"))["chunks"][4]
        bytes_ = bytearray(path.read_bytes())
        bytes_[chunk["position"] + 12] ^= 0xFF  # the chunk's size
        path.write_bytes(bytes_)
        for options in ([], ["--codec", "zstd"]):
            err = self.fails(4, "repack", path, out, *options)
            self.assertIn(f"caterva: {path}: chunk 4 ", err)
            self.assertEqual(self.names(), ["a.b2nd"])

    def test_full_disk(self):
        path, out = self.path("b.b2nd"), self.path("out.b2nd")
        blosc2.asarray(np.random.default_rng(0).random(100000), urlpath=str(path))
        limited = f'ulimit -f 100; trap "" XFSZ; exec "$0" repack "{path}" "{out}" $1'
        for options in ("", "--codec lz4", "--sparse --chunks 50000"):
            done = subprocess.run(["sh", "-c", limited, CLI, options], capture_output=True)
            self.assertEqual(done.returncode, 3, done.stderr)
            self.assertRegex(done.stderr.decode(), r"\Acaterva: [^\n]+\n\Z")
            self.assertEqual(self.names(), ["a.b2nd", "b.b2nd"])


class Large(Case):
    """Copies that take some time."""

    def make(self, shape):
        path = self.path("a.b2nd")
        values = np.arange(np.prod(shape), dtype="<f8").reshape(shape) ** 1.5
        blosc2.asarray(values, urlpath=str(path), chunks=(50, shape[1]), blocks=(5, 500),
                       cparams={"codec": blosc2.Codec.LZ4})
        return path

    def peak(self, *arguments):
        """The most MiB that a run uses; the value of wait4 includes this process."""
        child = subprocess.Popen([CLI, *map(str, arguments)], env=environment())
        peak = 0
        while child.poll() is None:
            found = re.search(r"VmHWM:\s+(\d+)", Path(f"/proc/{child.pid}/status").read_text())
            peak = max(peak, int(found[1]) if found else 0)
            time.sleep(0.002)
        self.assertEqual(child.returncode, 0)
        return peak / 1024

    def test_memory_is_bounded(self):
        path = self.make((700, 20000))  # 112 MB
        for options in (["--chunks", "700,100"], ["--codec", "blosclz"],
                        ["--select", "1:,3:", "--chunks", "100,1000"], ["--sparse"]):
            out = self.path("b.b2nd")
            peak = self.peak("repack", path, out, "-f", *options, "--memory", "40MiB")
            if b"__asan_init" not in Path(CLI).read_bytes():
                self.assertLess(peak, 40 + 12, options)
            first = [1, 3] if "--select" in options else [0, 0]
            copy, values = blosc2.open(str(out)), blosc2.open(str(path))
            for row in range(0, copy.shape[0], 50):
                np.testing.assert_array_equal(
                    copy[row:row + 50],
                    values[row + first[0]:min(row + 50 + first[0], 700), first[1]:])

    def test_interrupted(self):
        path = self.make((700, 20000))
        slow = ["--codec", "zlib", "--level", "9", "-T", "1", "--memory", "8MiB", "--chunks",
                "20,1000"]
        for sent, options in ((signal.SIGINT, []), (signal.SIGTERM, ["--sparse"])):
            child = subprocess.Popen([CLI, "repack", str(path), str(self.path("b")), *slow,
                                      *options], stderr=subprocess.PIPE, env=environment())
            time.sleep(0.5)
            self.assertIsNone(child.poll())
            child.send_signal(sent)
            err = child.stderr.read()
            child.stderr.close()
            self.assertEqual((child.wait(), err), (ended_by(sent), b"caterva: interrupted\n"))
            self.assertEqual(self.names(), ["a.b2nd"])

    def bar(self, *options, columns=0):
        """The progress bar of a run with a terminal as standard error."""
        path = self.path("a.b2nd")
        master, terminal = pty.openpty()
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("4H", 24, columns, 0, 0))
        child = subprocess.Popen([CLI, "repack", str(path), str(self.path("b")), "-f",
                                  "--codec", "zlib", "--level", "9", "--chunks", "20,1000",
                                  "-T", "1", *options], stderr=terminal, env=environment())
        os.close(terminal)
        drawn = b""
        try:
            while got := os.read(master, 1 << 16):
                drawn += got
        except OSError:  # the terminal's other end is closed
            pass
        os.close(master)
        self.assertEqual(child.wait(), 0)
        return drawn

    def test_progress(self):
        self.make((700, 8000))
        left = rb"(  \d+:\d\d left)?"
        line = rb"\r\[#*\.*\] +\d+%(  [\d.]+ [KM]?i?B of [\d.]+ MiB  [\d.]+ [KM]?i?B/s" + left + rb")? *"
        self.assertRegex(self.bar(), rb"\A(" + line + rb")+\r +\r\Z")
        self.assertEqual(self.bar("--no-progress"), b"")

    def test_progress_fits_the_terminal(self):
        self.make((700, 8000))
        for columns in (20, 40, 60):
            lines = self.bar(columns=columns).split(b"\r")
            self.assertTrue(any(b"%" in line for line in lines), columns)
            self.assertLess(max(map(len, lines)), columns)


class Compact(Case):
    def holed(self, *options):
        """An array with dead space, and its items."""
        path = self.path("a.b2nd")
        values = noise((60, 60), seed=2)
        np.save(self.path("new.npy"), values)
        self.ok("create", path, "--shape", "60,60", "--dtype", "<f4", "--chunks", "20,20",
                *options)
        for _ in range(2):  # a third chunk would fill the hole of the first
            self.ok("put", path, "...", self.path("new.npy"))
        os.remove(self.path("new.npy"))
        return path, values

    def size(self, path):
        if not path.is_dir():
            return path.stat().st_size
        return sum(p.stat().st_size for p in path.iterdir())

    def test_file(self):
        path, values = self.holed()
        before = self.size(path)
        text = self.text("compact", path)
        self.assertEqual(text, f"{path}: {before} -> {self.size(path)} bytes\n")
        self.assertLess(self.size(path), before * 0.7)
        self.assertEqual(json.loads(self.text("info", path, "--json"))["dead_bytes"], 0)
        np.testing.assert_array_equal(blosc2.open(str(path))[...], values)
        again = self.size(path)
        self.assertEqual(json.loads(self.text("compact", path, "--json")),
                         {"schema": 1, "file": str(path), "before_bytes": again,
                          "after_bytes": again})
        self.assertEqual(self.names(), ["a.b2nd"])

    def test_directory(self):
        path, values = self.holed("--sparse")
        before = self.size(path)
        self.assertEqual(self.text("compact", path),
                         f"{path}: {before} -> {self.size(path)} bytes\n")
        np.testing.assert_array_equal(blosc2.open(str(path))[...], values)
        self.assertEqual(self.names(), ["a.b2nd"])

    @staticmethod
    def start_writer(path):
        return subprocess.Popen([CLI, "put", str(path), "...", "-", "--from", "raw"],
                                stdin=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                env=environment())

    def test_refusals(self):
        path, _ = self.holed()
        self.fails(3, "compact", self.path("b.b2nd"))
        self.fails(2, "compact", path, "-f")
        self.path("c.b2nd").write_bytes(b"precious")
        self.fails(4, "compact", self.path("c.b2nd"))
        self.assertEqual(self.path("c.b2nd").read_bytes(), b"precious")
        self.ok("compact", path)
        before = path.read_bytes()
        writer = self.start_writer(path)
        until = time.monotonic() + 120
        while run("compact", path)[0] == 0:  # the writer has not started
            self.assertLess(time.monotonic(), until)
            if writer.poll() is not None:  # it started while compact ran
                writer.stdin.close()
                writer = self.start_writer(path)
            time.sleep(0.1)
        self.assertIn("writ", self.fails(3, "compact", path))
        writer.terminate()
        self.assertEqual(writer.wait(), -signal.SIGTERM)
        writer.stdin.close()
        self.assertEqual(path.read_bytes()[:len(before)], before)


if __name__ == "__main__":
    main()

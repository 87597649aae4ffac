"""Requests for arrays created for remote reading, and that layouts that are damaged, stale or
of another array change no item.

usage: test_remote_layouts.py [--seed S]"""

import argparse
import json
import os
import random
import subprocess
import sys
import unittest

import blosc2
import numpy as np

from tool_remote_case import CLI, Case as RemoteCase, convert, fnv

SEED = None


def repack(path):
    """With one thread, so that chunks are stored in the order of their numbers."""
    out = path.with_name("far-" + path.name)
    subprocess.run([CLI, "repack", "-f", path, out, "--for-remote", "-T", "1"], check=True)
    return out


def find_area(frame):
    """[begin, end) of the layouts, and the bytes of a record."""
    end = frame.rindex(b"cv-head\x01")
    footer = end - 28
    assert frame[footer:footer + 8] == b"cv-lays\x01", "there are no layouts"
    n = int.from_bytes(frame[footer + 8:footer + 16], "little")
    size = int.from_bytes(frame[footer + 16:footer + 20], "little")
    return footer - n * size - 8, end, size


class Case(RemoteCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.far = repack(cls.folder / "a.b2nd").read_bytes()

    def serve(self, **options):
        server = super().serve(**options)
        server.objects["/a.b2nd"] = self.far
        return server

    def transfers(self):
        return [int(word) for word in self.reader.say("transfers").split()]

    def point(self, *at):
        self.assertEqual(self.reader.say("point", *at), "ok " + self.items[at].tobytes().hex())


class Counts(Case):
    def test_points(self):
        """Two round trips for the first point, including the opening, and one for each
        other."""
        server = self.serve()
        self.opened(server, "nocache", "over=-1")
        self.assertEqual(len(server.requests), 1)
        for n, at in enumerate([(1, 1, 1), (5, 25, 30), (12, 50, 3), (1, 1, 1)]):
            self.point(*at)
            requests, size, trips, *_ = self.transfers()
            self.assertEqual((requests, trips), (n + 2, n + 2))
        self.assertLess(size, 65536 + 4 * 6000)

    def test_boxes(self):
        """Any box takes one wave of blocks if it is known how the server handles several
        ranges."""
        server = self.serve(name="nginx")
        for box in ("0 1 0 60 0 50", "0 40 0 60 0 1", "0 40 0 60 0 50", "3 22 10 30 20 45"):
            self.opened(server, "nocache")
            self.assertIn("ok", self.reader.say("box", box))
            self.assertEqual(self.transfers()[2], 2)
            self.reads_right()

    def test_at_an_offset(self):
        server = self.serve(etags=False)
        server.objects["/a.b2nd"] = bytes(100000) + self.far
        self.opened(server, "nocache", "over=-1", "offset=100000")
        self.point(22, 50, 3)
        before = self.transfers()[2]
        self.point(12, 50, 3)
        self.assertEqual(self.transfers()[2], before + 1)

    def test_more_than_comes_with_the_opening(self):
        """The layouts around the required one are read with it."""
        items = np.random.default_rng(3).integers(0, 1 << 20, (1500, 1600)).astype("i4")
        near = convert(self.folder, "many.b2nd", items, "--chunks", "50,32", "--blocks", "5,8",
                       "--codec", "blosclz", "--level", "0")
        server = self.serve()
        server.objects["/a.b2nd"] = frame = repack(near).read_bytes()
        begin, end, size = find_area(frame)
        self.assertGreater(end - begin, 3 * 65536)
        self.opened(server, "nocache", "over=-1")
        for at, trips in (((0, 0), 2), ((0, 40), 1), ((5, 100), 1), ((49, 500), 1),
                          ((700, 5), 2), ((703, 40), 1), ((1499, 1599), 1)):
            before = self.transfers()[2]
            self.assertEqual(self.reader.say("point", *at), "ok " + items[at].tobytes().hex())
            self.assertEqual(self.transfers()[2] - before, trips, at)
        self.assertLess(server.sent, 5 * 65536)
        self.assertEqual(self.reader.say("read"), "ok " + fnv(items.tobytes()))

    def test_chunks_are_listed_without_a_request(self):
        server = self.serve()
        listed = [subprocess.run([CLI, "info", "--chunks", "--json", place], capture_output=True,
                                 check=True, text=True).stdout
                  for place in (server.url("/a.b2nd"), self.folder / "far-a.b2nd")]
        self.assertEqual(len(server.requests), 1)
        self.assertEqual(*[json.loads(text)["chunks"] for text in listed])


class Others(Case):
    def test_blosc2_reads_and_changes_it(self):
        path = self.folder / "theirs.b2nd"
        path.write_bytes(self.far)
        array = blosc2.open(str(path), mode="a")
        np.testing.assert_array_equal(array[:], self.items)
        changed = self.items.copy()
        changed[3:17, 5:9] = 4
        array[3:17, 5:9] = np.full((14, 4, 50), 4, "i4")
        array.schunk.vlmeta["note"] = "changed"
        del array
        self.check_changed(path, changed)

    def check_changed(self, path, items):
        np.testing.assert_array_equal(blosc2.open(str(path))[:], items)
        server = self.serve()
        server.objects["/a.b2nd"] = path.read_bytes()
        self.opened(server, "nocache")
        self.assertEqual(self.reader.say("read"), "ok " + fnv(items.tobytes()))
        self.assertEqual(self.reader.say("point", 3, 5, 7),
                         "ok " + items[3, 5, 7].tobytes().hex())

    def test_commits_of_our_own(self):
        path = self.folder / "ours.b2nd"
        path.write_bytes(self.far)
        items = self.items.copy()
        for n in range(4):
            np.save(self.folder / "part.npy", np.full((2, 3, 4), n, "i4"))
            items[n:n + 2, 5:8, 7:11] = n
            subprocess.run([CLI, "put", path, "%d:%d,5:8,7:11" % (n, n + 2),
                            self.folder / "part.npy"], check=True)
            self.check_changed(path, items)
        path.write_bytes(self.far)
        subprocess.run([CLI, "attr", "set", path, "note", '"changed"'], check=True)
        self.check_changed(path, self.items)

    def test_the_same_partition_of_other_items(self):
        """Layouts of another array in place of the array's own."""
        begin, end, _ = find_area(self.far)
        path = self.folder / "other-items.b2nd"
        np.save(self.folder / "in2.npy", self.items + 1)
        subprocess.run([CLI, "convert", "-f", self.folder / "in2.npy", path, "--chunks", "10,20,50",
                        "--blocks", "5,10,25", "--codec", "blosclz", "--level", "0", "-T", "1"],
                       check=True)
        other = repack(path).read_bytes()
        self.assertEqual(find_area(other)[:2], (begin, end))
        server = self.serve()
        server.objects["/a.b2nd"] = other[:begin] + self.far[begin:end] + other[end:]
        self.opened(server, "nocache")
        self.assertEqual(self.reader.say("read"), "ok " + fnv((self.items + 1).tobytes()))
        # Even if the footer says that they are the array's own.
        lies = other[begin + 8:end - 28]
        self.assertEqual(len(lies), len(self.far[begin + 8:end - 28]))
        server.objects["/a.b2nd"] = other[:begin + 8] + self.far[begin + 8:end - 28] \
            + other[end - 28:]
        self.opened(server, "nocache")
        self.assertEqual(self.reader.say("read"), "ok " + fnv((self.items + 1).tobytes()))


class Damage(Case):
    def test_every_byte_flipped(self):
        """The items are right, whichever byte of the mark, a record and the footer is wrong."""
        begin, end, size = find_area(self.far)
        server = self.serve(etags=False)
        places = [*range(begin, begin + 8 + 2 * size), *range(end - 28, end)]
        more = 0
        for place in places:
            frame = bytearray(self.far)
            frame[place] ^= 1 << place % 8
            server.objects["/a.b2nd"] = bytes(frame)
            self.opened(server, "nocache", "over=-1")
            self.point(1, 1, 1)
            self.point(1, 33, 1)
            more += self.transfers()[2] > 3
        self.assertGreater(more, size)  # damage costs round trips

    def test_all_of_it_is_noise(self):
        begin, end, _ = find_area(self.far)
        dice = random.Random(5)
        server = self.serve(etags=False)
        for footer in (0, 28):
            frame = bytearray(self.far)
            frame[begin:end - footer] = dice.randbytes(end - footer - begin)
            server.objects["/a.b2nd"] = bytes(frame)
            self.opened(server, "nocache")
            self.reads_right()

    def test_repair_finds_no_chunk_there(self):
        """Without its index the array is recovered from what its chunks contain."""
        begin, end, _ = find_area(self.far)
        path, out = self.folder / "torn.b2nd", self.folder / "found.b2nd"
        index = end + 24 + int.from_bytes(self.far[end + 16:end + 20], "little")
        frame = bytearray(self.far)
        frame[index:index + 40] = bytes(40)
        path.write_bytes(frame)
        subprocess.run([CLI, "repair", path, "-o", out], stdout=subprocess.DEVNULL, check=False)
        np.testing.assert_array_equal(blosc2.open(str(out))[:], self.items)


class Any(Case):
    def test_arrays(self):
        """Random shapes, codecs and contents: the same items, point by point and all at
        once."""
        seed = SEED if SEED is not None else random.SystemRandom().randrange(1 << 32)
        print("seed", seed)
        rng = np.random.default_rng(seed)
        for _ in range(12):
            self.check(rng)

    def check(self, rng):
        ndim = int(rng.integers(1, 4))
        shape = [int(n) for n in rng.integers(1, [0, 20000, 160, 30][ndim], ndim)]
        chunks = [int(rng.integers(1, n + 1)) for n in shape]
        blocks = [int(rng.integers(1, n + 1)) for n in chunks]
        dtype = rng.choice(["u1", "<i2", "<f4", "<f8", "<c16"])
        items = (rng.random(shape) * 100).astype(dtype)
        for _ in range(3):
            box = tuple(slice(a, a + int(rng.integers(1, n + 1)))
                        for a, n in ((int(rng.integers(0, n)), n) for n in shape))
            items[box] = rng.integers(0, 3)
        codec = str(rng.choice(["lz4", "zstd", "blosclz", "zlib"]))
        options = ["--chunks", ",".join(map(str, chunks)), "--blocks", ",".join(map(str, blocks)),
                   "--codec", codec, "--level", str(rng.integers(0, 7))]
        if rng.random() < 0.3:
            options += ["--filters", "delta"]
        near = convert(self.folder, "any.b2nd", items, *options)
        far = repack(near)
        if "delta" not in options:  # which C-Blosc2 reads wrongly
            np.testing.assert_array_equal(blosc2.open(str(far))[:], items)
        server = self.serve()
        server.objects["/a.b2nd"] = far.read_bytes()
        self.opened(server, "nocache", "over=%d" % rng.choice([-1, 0]))
        for _ in range(5):
            at = tuple(int(rng.integers(0, n)) for n in shape)
            self.assertEqual(self.reader.say("point", *at), "ok " + items[at].tobytes().hex())
        self.assertEqual(self.reader.say("read"), "ok " + fnv(items.tobytes()))


def main():
    global SEED
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int)
    given, rest = parser.parse_known_args()
    SEED = given.seed
    os.environ["no_proxy"] = "127.0.0.1"
    unittest.main(argv=[sys.argv[0], *rest])


if __name__ == "__main__":
    main()

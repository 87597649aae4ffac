"""The folder that caches what was read of URLs: what it saves, that damage in it and changes of
the object are detected, and that its size stays within its bound.

usage: test_remote_cache.py [--seed S]"""

import argparse
import os
import random
import struct
import subprocess
import sys
import threading
import unittest
from pathlib import Path

import tool_remote_case
import runs
from scripted_server import Reply, etag_of
from tool_remote_case import Case, Reader

SEED = None
HEAD = 44  # of a pack, before its list of extents


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


class Cached(Case):
    def setUp(self):
        super().setUp()
        self.doCleanups()  # its reader is not the only one
        self.reader = Reader()
        self.addCleanup(lambda: self.reader.close())
        self.cache = self.folder / ("cache-%s" % self.id().rsplit(".", 1)[1])

    def again(self):
        """Continues with a new process."""
        self.reader.close()
        self.reader = Reader()

    def open(self, server, *words, path="/a.b2nd"):
        self.again()
        return self.reader.say("open", server.url(path), "nocache", "cache=%s" % self.cache,
                               *words)

    def packs(self):
        return sorted(self.cache.glob("*.pack"))

    def filled(self, server, *words):
        self.assertEqual(self.open(server, *words), "ok")
        self.reads_right()

    # ---- What it saves ----------------------------------------------------------------

    def test_a_second_process_asks_once(self):
        server = self.serve()
        self.filled(server)
        self.assertGreater(len(server.requests), 1)
        first = int(self.reader.say("transfers").split()[1])
        for _ in range(2):
            server.forget()
            self.filled(server)
            self.assertEqual(self.reader.say("point", 33, 5, 7),
                             "ok " + self.items[33, 5, 7].tobytes().hex())
            self.assertEqual([r.headers["range"] for r in server.requests], ["bytes=-65536"])
            self.assertEqual(server.sent, 65536)
            requests, received, *_, cached = map(int, self.reader.say("transfers").split())
            self.assertEqual((requests, received), (1, 65536))
            self.assertGreater(cached, first - 65536 - len(self.frame) // 4)

    def test_points_that_were_read_one_by_one(self):
        server = self.serve()
        points = [(1, 1, 1), (33, 5, 7), (39, 59, 49), (20, 30, 2)]
        for _ in range(2):
            server.forget()
            self.assertEqual(self.open(server), "ok")
            for point in points:
                self.assertEqual(self.reader.say("point", *point),
                                 "ok " + self.items[point].tobytes().hex())
        self.assertEqual(len(server.requests), 1)
        self.assertEqual(self.open(server), "ok")
        self.reads_right()  # some of it is cached

    def test_what_two_read_at_once_is_there_for_the_third(self):
        server = self.serve(delay=0.01)
        readers = [Reader(), Reader()]
        words = "nocache", "cache=%s" % self.cache
        for reader in readers:
            self.addCleanup(reader.close)
            self.assertEqual(reader.say("open", server.url("/a.b2nd"), *words), "ok")
        threads = [threading.Thread(target=reader.say, args=("read",)) for reader in readers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        server.forget()
        self.filled(server)
        self.assertEqual(len(server.requests), 1)

    def test_threads_of_one_handle(self):
        server = self.serve()
        self.assertEqual(self.open(server), "ok")
        self.assertEqual(self.reader.say("threads", 8), "ok 0")
        self.reads_right()

    def test_presigned_urls_are_one(self):
        server = self.serve()
        for n, query in enumerate(("?X-Amz-Date=1&X-Amz-Signature=a", "?X-Amz-Signature=b",
                                   "?version=2")):
            server.forget()
            self.assertEqual(self.open(server, path="/a.b2nd" + query), "ok")
            self.reads_right()
            self.assertEqual(len(server.requests) > 1, n != 1)

    def test_members_of_an_archive(self):
        tree = "%s/cached.b2d" % self.folder
        for key in ("/g/x", "/y"):
            subprocess.run([tool_remote_case.CLI, "convert", self.folder / "a.b2nd",
                            "%s::%s" % (tree, key)], check=True)
        subprocess.run([tool_remote_case.CLI, "pack", tree, self.folder / "cached.b2z"], check=True)
        server = self.serve()
        server.objects["/t.b2z"] = (self.folder / "cached.b2z").read_bytes()
        for expected in (None, 1):
            for key in ("/g/x", "/y"):
                server.forget()
                self.assertEqual(self.open(server, path="/t.b2z::" + key), "ok")
                self.reads_right()
                self.assertIn(expected, (None, len(server.requests)))

    # ---- When it is not used --------------------------------------------------------------

    def test_what_nothing_pins_is_not_kept(self):
        import blosc2
        path = self.folder / "unsealed-cached.b2nd"
        blosc2.asarray(self.items, urlpath=str(path), mode="w", chunks=(10, 20, 50),
                       blocks=(5, 10, 25))
        for etags, sealed in ((False, False), (True, False), (False, True)):
            server = self.serve(etags=etags)
            if not sealed:
                server.objects["/a.b2nd"] = path.read_bytes()
            self.filled(server)
            self.assertEqual(bool(self.packs()), etags or sealed)
            server.forget()
            self.filled(server)
            self.assertEqual(len(server.requests) <= 2, etags or sealed, (etags, sealed))
            for pack in self.packs():
                pack.unlink()

    def test_weak_etags_pin_nothing(self):
        import blosc2
        path = self.folder / "weak.b2nd"
        blosc2.asarray(self.items, urlpath=str(path), mode="w", chunks=(10, 20, 50),
                       blocks=(5, 10, 25))
        server = self.serve()
        server.objects["/a.b2nd"] = path.read_bytes()

        def weak(request):
            reply = server.good(request)
            reply.headers["ETag"] = 'W/"1"'
            return reply

        server.script = weak
        self.filled(server)
        self.assertEqual(self.packs(), [])

    def test_without_leave_nothing_is_written(self):
        server = self.serve()
        self.opened(server, "nocache")
        self.reads_right()
        self.assertFalse(self.cache.exists())

    def test_folders_that_cannot_be_used(self):
        server = self.serve()
        file = self.folder / "no-folder"
        file.write_text("a file")
        closed = self.folder / "closed"
        closed.mkdir(mode=0o555)
        self.addCleanup(closed.chmod, 0o755)
        for self.cache in (file, file / "inside", self.folder / "no" / "parent", Path("/proc"),
                           closed):
            self.filled(server)
            self.filled(server)
        self.fails(self.open(server, "bound=-1"), "cache_bytes is -1", "CATERVA_EINVAL")

    # ---- Damage ----------------------------------------------------------------------------

    def test_damaged_packs_are_fetched_anew(self):
        dice = random.Random(SEED)
        server = self.serve()
        self.filled(server)
        for n in runs.some(range(40), sanitized=3):
            pack = dice.choice(self.packs())
            data = bytearray(pack.read_bytes())
            at = dice.randrange(HEAD + 200 if n % 2 else len(data))
            if n % 10 == 9:
                del data[at:]
            else:
                data[at] ^= 1 << dice.randrange(8)
            pack.write_bytes(data)
            server.forget()
            self.filled(server)
            self.assertGreater(len(server.requests), 1, "pack %s byte %d" % (pack.name, at))
            self.assertFalse(pack.exists())
            self.filled(server)  # what had been cached of it was removed with it
            server.forget()
            self.filled(server)
            self.assertEqual(len(server.requests), 1, "pack %s byte %d" % (pack.name, at))

    def test_a_pack_of_wrong_bytes_with_right_sums(self):
        """The seal's checksums detect it, and the pack is not used again."""
        server = self.serve()
        self.assertEqual(self.open(server), "ok")
        self.assertTrue(self.reader.say("point", 33, 5, 7).startswith("ok"))
        for pack in self.packs():
            data = bytearray(pack.read_bytes())
            (n,) = struct.unpack_from("<I", data, HEAD - 4)
            at = HEAD + 16 * n + 4
            for i in range(n):
                (size,) = struct.unpack_from("<I", data, HEAD + 16 * i + 8)
                data[at + size // 2] ^= 8
                struct.pack_into("<I", data, HEAD + 16 * i + 12, crc32c(data[at:at + size]))
                at += size
            end = HEAD + 16 * n
            struct.pack_into("<I", data, end, crc32c(data[:end]))
            pack.write_bytes(data)
        for _ in range(2):
            server.forget()
            self.assertEqual(self.open(server), "ok")
            self.assertEqual(self.reader.say("point", 33, 5, 7),
                             "ok " + self.items[33, 5, 7].tobytes().hex())
        self.assertEqual(len(server.requests), 1)

    def flips_once(self, server, wanted, place):
        """The first response to a request for which `wanted` is true has one wrong byte, at
        `place`."""
        left = [1]

        def flip(request):
            if not left or not wanted(request):
                return None
            left.clear()
            reply = server.good(request)
            body = bytearray(reply.body)
            body[place % len(body)] ^= 0x40
            reply.body = bytes(body)
            return reply
        server.script = flip
        return left

    def test_an_answer_that_was_wrong_once(self):
        """A response with part of a chunk, also if a parser reads it before its checksum is
        known."""
        server = self.serve()
        for place in runs.some((*range(0, 36), 40, 60, 100, 1000), sanitized=3):
            for folder in self.packs():
                folder.unlink()
            left = self.flips_once(server,
                                   lambda r: not r.headers["range"].startswith("bytes=-"), place)
            for _ in range(2):
                with self.subTest(place=place):
                    self.assertEqual(self.open(server), "ok")
                    self.reads_right()
                    self.assertFalse(left)
                    server.script = None

    def test_an_answer_about_an_archive_that_was_wrong_once(self):
        """The archive's end, or a member's header."""
        tree = "%s/wrong.b2d" % self.folder
        for key in ("/g/x", "/y"):
            subprocess.run([tool_remote_case.CLI, "convert", self.folder / "a.b2nd",
                            "%s::%s" % (tree, key)], check=True)
        subprocess.run([tool_remote_case.CLI, "pack", tree, self.folder / "wrong.b2z"], check=True)
        server = self.serve()
        server.objects["/t.b2z"] = (self.folder / "wrong.b2z").read_bytes()
        places = [("bytes=-", -at) for at in (1, 5, 10, 15, 20, 22, 40, 70, 75, 90, 110)]
        places += [("bytes=", at) for at in (0, 1, 2, 3, 8, 18, 26, 28, 30, 100)]
        for begin, place in places:
            for pack in self.packs():
                pack.unlink()
            left = self.flips_once(
                server, lambda r: r.headers["range"].startswith(begin) and
                (begin == "bytes=-") == r.headers["range"].startswith("bytes=-"), place)
            for _ in range(2):
                with self.subTest(begin=begin, place=place):
                    self.assertEqual(self.open(server, path="/t.b2z::/g/x"), "ok")
                    self.reads_right()
                    self.assertFalse(left)
                    server.script = None

    def test_folders_too_small_for_anything(self):
        server = self.serve()
        for bound in (1, 17, 99, 100, 5000, 500000):
            self.assertEqual(self.open(server, "bound=%d" % bound), "ok")
            self.reads_right()
            self.assertEqual(self.packs(), [])
            self.assertTrue(self.cache.is_dir())

    def test_packs_of_others_are_not_read(self):
        """Packs that were renamed to another key."""
        server = self.serve()
        self.filled(server)
        mine = self.packs()
        server.objects["/a.b2nd"] = self.other
        self.assertEqual(self.open(server), "ok")
        self.assertEqual(self.reader.say("read"), "ok " + self.other_hash)
        for a, b in zip(mine, [p for p in self.packs() if p not in mine]):
            b.write_bytes(a.read_bytes())
        self.assertEqual(self.open(server), "ok")
        self.assertEqual(self.reader.say("read"), "ok " + self.other_hash)

    def test_packs_that_go_while_they_are_used(self):
        server = self.serve()
        self.filled(server)
        self.assertEqual(self.open(server), "ok")
        self.assertTrue(self.reader.say("point", 1, 1, 1).startswith("ok"))
        for pack in self.packs():
            pack.unlink()
        self.reads_right()
        self.assertTrue(self.packs())

    # ---- Objects that change ------------------------------------------------------------------

    def test_an_object_that_changed_is_read_anew(self):
        for options in ({}, {"etags": False}, {"etags": False, "suffixes": False}):
            server = self.serve(**options)
            hashes = {self.frame: self.hash, self.other: self.other_hash}
            for _ in range(3):
                for frame, known in hashes.items():
                    server.objects["/a.b2nd"] = frame
                    self.assertEqual(self.open(server), "ok")
                    self.assertEqual(self.reader.say("read"), "ok " + known)

    def test_one_without_a_seal_that_changed(self):
        import blosc2
        server = self.serve()
        frames = []
        for n, items in enumerate((self.items, self.items[::-1].copy())):
            path = self.folder / ("changing-%d.b2nd" % n)
            blosc2.asarray(items, urlpath=str(path), mode="w", chunks=(10, 20, 50),
                           blocks=(5, 10, 25), cparams={"clevel": 0})
            frames.append(path.read_bytes())
        self.assertEqual(len(frames[0]), len(frames[1]))
        for frame, known in zip(frames * 2, (self.hash, self.other_hash) * 2):
            server.objects["/a.b2nd"] = frame
            self.assertEqual(self.open(server), "ok")
            self.assertEqual(self.reader.say("read"), "ok " + known)

    def test_an_etag_of_two_contents(self):
        server = self.serve()

        def same(request):
            reply = server.good(request)
            if reply.status == 412:
                reply = Reply(206)
            reply.headers["ETag"] = '"always"'
            return reply

        server.etags = False
        server.script = same
        for frame, known in ((self.frame, self.hash), (self.other, self.other_hash)) * 2:
            server.objects["/a.b2nd"] = frame
            self.assertEqual(self.open(server), "ok")
            self.assertEqual(self.reader.say("read"), "ok " + known)

    def test_a_change_while_it_is_open(self):
        server = self.serve()
        self.filled(server)
        self.assertEqual(self.open(server), "ok")
        server.objects["/a.b2nd"] = self.other
        self.assertEqual(self.reader.say("read"), "ok " + self.hash)  # all of it was cached
        self.assertEqual(self.reader.say("refresh"), "ok")
        self.assertEqual(self.reader.say("read"), "ok " + self.other_hash)
        self.assertNotEqual(etag_of(self.frame), etag_of(self.other))

    # ---- The bound ------------------------------------------------------------------------------

    def test_the_bound_is_kept_by_two_processes(self):
        bound = 2 << 20
        server = self.serve()
        readers = [Reader(), Reader()]
        most = [0]
        for reader in readers:
            self.addCleanup(reader.close)

        def run(reader, first):
            for n in range(first, 60, 2):
                path = "/%d.b2nd" % n
                server.objects[path] = self.frame
                words = "nocache", "cache=%s" % self.cache, "bound=%d" % bound
                assert reader.say("open", server.url(path), *words) == "ok"
                assert reader.say("read") == "ok " + self.hash
                sizes = []
                for pack in list(self.cache.iterdir()):
                    try:
                        sizes.append(pack.stat().st_size)
                    except FileNotFoundError:
                        pass
                most[0] = max(most[0], sum(sizes))

        threads = [threading.Thread(target=run, args=each) for each in zip(readers, (0, 1))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertGreater(most[0], bound // 4)
        self.assertLessEqual(most[0], bound)

    def test_what_was_used_last_stays(self):
        bound = 4 << 20
        server = self.serve()
        server.objects["/b.b2nd"] = self.frame
        for n in range(30):
            path = "/%d.b2nd" % n
            server.objects[path] = self.frame
            self.assertEqual(self.open(server, "bound=%d" % bound, path=path), "ok")
            self.reads_right()
            server.forget()
            self.assertEqual(self.open(server, "bound=%d" % bound, path="/b.b2nd"), "ok")
            self.reads_right()
            if n > 0:
                self.assertEqual(len(server.requests), 1, "round %d" % n)
        server.forget()
        self.assertEqual(self.open(server, "bound=%d" % bound, path="/0.b2nd"), "ok")
        self.reads_right()
        self.assertGreater(len(server.requests), 1)  # it was evicted long ago

    def test_what_a_killed_process_left_goes(self):
        self.cache.mkdir()
        old = self.cache / (".%s-%s.pack.tmp-abcdef" % ("0" * 32, "1" * 16))
        old.write_bytes(b"half")
        mine = self.cache / "notes.txt"
        mine.write_text("not a pack")
        os.utime(mine, (1, 1))
        self.filled(self.serve())
        self.assertTrue(old.exists())
        os.utime(old, (1, 1))
        for pack in self.packs():
            pack.unlink()
        self.filled(self.serve())
        self.assertFalse(old.exists())
        self.assertTrue(mine.exists())


def main():
    global SEED
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    given, rest = parser.parse_known_args()
    SEED = given.seed
    print("seed %d" % SEED)
    os.environ["no_proxy"] = "127.0.0.1"
    unittest.main(argv=[sys.argv[0], *rest])


if __name__ == "__main__":
    main()

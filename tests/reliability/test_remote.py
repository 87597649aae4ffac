"""Arrays behind URLs: how many requests they take, with servers of all kinds.

A scripted server (support/scripted_server.py) responds as good servers do, and counts."""

import json
import os
import subprocess
import time
import unittest
import zipfile

import numpy as np

from tool_remote_case import CLI, NGINX, OPENING, Case, convert, far_chunks, fnv
import nginx_server
from scripted_server import Reply, etag_of, spans_of


class Counts(Case):
    def test_an_opening_is_one_request(self):
        server = self.serve()
        self.opened(server)
        self.assertEqual(len(server.requests), 1)
        self.assertLessEqual(server.sent, OPENING)
        self.assertEqual(server.requests[0].headers["range"], "bytes=-%d" % OPENING)

    def test_info_adds_none(self):
        server = self.serve()
        subprocess.run([CLI, "info", server.url("/a.b2nd")], check=True, stdout=subprocess.DEVNULL)
        self.assertEqual(len(server.requests), 1)

    def test_an_unsealed_frame_takes_three(self):
        import blosc2
        path = self.folder / "unsealed.b2nd"
        blosc2.asarray(self.items, urlpath=str(path), mode="w", chunks=(10, 20, 50),
                       blocks=(5, 10, 25))
        server = self.serve()
        server.objects["/a.b2nd"] = path.read_bytes()
        self.opened(server)
        self.assertLessEqual(len(server.requests), 3)
        self.reads_right()

    def test_a_point_takes_four_in_three_round_trips(self):
        server = self.serve()
        self.opened(server, "nocache")
        self.assertEqual(self.reader.say("point", 33, 5, 7),
                         "ok " + self.items[33, 5, 7].tobytes().hex())
        requests, _, trips, *_ = map(int, self.reader.say("transfers").split())
        self.assertEqual(requests, len(server.requests))
        self.assertLessEqual(requests, 4)
        self.assertLessEqual(trips, 3)
        self.reader.say("point", 33, 5, 7)
        self.assertLessEqual(len(server.requests), requests + 1)

    def test_all_is_read_in_few(self):
        server = self.serve()
        self.opened(server)
        self.reads_right()
        trips = int(self.reader.say("transfers").split()[2])
        self.assertLessEqual(trips, 3)
        self.assertLessEqual(server.sent, 2 * len(self.frame) + 65536)

    def test_requests_name_the_version(self):
        server = self.serve()
        self.opened(server)
        self.reads_right()
        for request in server.requests[1:]:
            self.assertEqual(request.headers["if-match"], etag_of(self.frame))
            self.assertEqual(request.headers["accept-encoding"], "identity")

    def test_ranges_far_apart_are_not_joined_without_leave(self):
        server = self.serve(delay=0.02)
        self.opened(server, "over=-1", "nocache")
        server.forget()
        self.assertTrue(self.reader.say("point", 1, 1, 1).startswith("ok"))
        self.assertLess(server.sent, 40000)

    def test_a_directory_is_read(self):
        path = convert(self.folder, "dir.b2nd", self.items, "--sparse", "--chunks", "10,20,50")
        server = self.serve()
        del server.objects["/a.b2nd"]
        for file in path.iterdir():
            server.objects["/a.b2nd/" + file.name] = file.read_bytes()
        for url in ("/a.b2nd", "/a.b2nd/"):
            self.assertEqual(self.reader.say("open", server.url(url)), "ok")
            self.reads_right()
        del server.objects["/a.b2nd/00000003.chunk"]
        self.opened(server, "nocache")
        self.fails(self.reader.say("read"), "chunk [0-9]+ is lost", "CATERVA_ECORRUPT")

    def serve_directory(self, items, *options):
        path = convert(self.folder, "waves.b2nd", items, "--sparse", *options)
        server = self.serve()
        del server.objects["/a.b2nd"]
        for file in path.iterdir():
            server.objects["/a.b2nd/" + file.name] = file.read_bytes()
        self.assertEqual(self.reader.say("open", server.url("/a.b2nd/"), "nocache"), "ok")
        return server, lambda: int(self.reader.say("transfers").split()[2])

    def test_a_directory_is_read_in_waves(self):
        """The beginnings of all chunks in one wave; small chunks are read completely by it."""
        server, trips = self.serve_directory(self.items, "--chunks", "10,20,50")
        before = trips()
        self.assertEqual(self.reader.say("point", 33, 5, 7),
                         "ok " + self.items[33, 5, 7].tobytes().hex())
        self.assertEqual(trips() - before, 1)
        self.reads_right()
        self.assertEqual(trips() - before, 2)
        self.assertEqual(len(server.requests), 1 + 12)

    def test_large_chunks_of_a_directory(self):
        """One wave for the beginnings, one for the tables, one for the blocks."""
        items = np.random.default_rng(4).integers(0, 1 << 30, (8, 512, 1024)).astype("i4")
        server, trips = self.serve_directory(
            items, "--chunks", "1,512,1024", "--blocks", "1,32,1024", "--codec", "blosclz",
            "--level", "0")
        before = trips()
        self.assertIn("ok", self.reader.say("box", "0 8 500 501 0 1024"))
        self.assertEqual(trips() - before, 3)
        self.assertLess(server.sent, 8 * (524288 + 2 * 140000))
        self.assertEqual(self.reader.say("read"), "ok " + fnv(items.tobytes()))
        self.assertLessEqual(trips() - before, 7)

    def test_a_frame_at_an_offset_is_read(self):
        for behind in (0, 5000, 100000):
            server = self.serve()
            server.objects["/a.b2nd"] = bytes(100000) + self.frame + bytes(behind)
            self.opened(server, "offset=100000")
            self.assertLessEqual(len(server.requests), 3)
            self.reads_right()

    def test_bytes_behind_the_frame(self):
        server = self.serve()
        server.objects["/a.b2nd"] = self.frame + bytes(70000)
        self.opened(server)
        self.assertLessEqual(len(server.requests), 3)
        self.reads_right()

    def test_who_hears_of_reads_does_so_after_a_refresh(self):
        """on_progress is called, also when bytes that cannot be right are fetched again."""
        server = self.serve(etags=False)
        self.opened(server, "nocache", "dawdle=1")
        self.reads_right()
        self.assertEqual(self.reader.say("refresh"), "ok")
        self.reads_right()
        frame = bytearray(self.frame)
        for i in range(len(frame) // 4, len(frame) // 3):
            frame[i] ^= 255
        server.objects["/a.b2nd"] = bytes(frame)
        for _ in range(3):
            self.assertRegex(self.reader.say("read"), r"\Aerror CATERVA_[A-Z]+ ")
            self.assertNotIn("STOPPED", self.reader.say("read"))
        server.objects["/a.b2nd"] = self.frame
        self.reads_right()

    def test_members_of_an_archive(self):
        np.save(self.folder / "in.npy", self.items)
        tree = "%s/t.b2d" % self.folder
        for key in ("/g/x", "/y"):
            subprocess.run([CLI, "convert", self.folder / "in.npy", "%s::%s" % (tree, key)],
                           check=True)
        subprocess.run([CLI, "pack", tree, self.folder / "t.b2z"], check=True)
        server = self.serve()
        server.objects["/t.b2z"] = (self.folder / "t.b2z").read_bytes()
        for key in ("/g/x", "/y"):
            server.forget()
            self.assertEqual(self.reader.say("open", server.url("/t.b2z::" + key)), "ok")
            self.assertLessEqual(len(server.requests), 3)
            self.reads_right()
            self.assertEqual(self.reader.say("refresh"), "ok")
            self.reads_right()
        listed = subprocess.run([CLI, "ls", "-r", server.url("/t.b2z")], capture_output=True,
                                text=True, check=True).stdout
        self.assertEqual(listed.split(), subprocess.run(
            [CLI, "ls", "-r", self.folder / "t.b2z"], capture_output=True, text=True,
            check=True).stdout.split())
        self.fails(self.reader.say("open", server.url("/t.b2z::/no")), "/no does not exist",
                   "CATERVA_ENOTFOUND")

    def packed(self, n):
        """An archive of n arrays, each somewhat larger than what is read ahead of it, and a
        member that is not a frame."""
        tree = self.folder / ("many-%d.b2d" % n)
        np.save(self.folder / "in.npy", np.random.default_rng(n).integers(0, 255, 9000).astype("u1"))
        subprocess.run([CLI, "convert", self.folder / "in.npy", "%s::/a000" % tree], check=True)
        for i in range(1, n):
            (tree / ("a%03d.b2nd" % i)).write_bytes((tree / "a000.b2nd").read_bytes())
        (tree / "damaged.b2nd").write_bytes(b"no frame")
        (tree / "notes.txt").write_bytes(b"of some length")
        archive = tree.with_suffix(".b2z")
        with zipfile.ZipFile(archive, "w") as packed:
            for file in sorted(tree.iterdir()):
                packed.write(file, file.name)
            packed.writestr("deflated.b2nd", b"0" * 9000, zipfile.ZIP_DEFLATED)
            odd = zipfile.ZipInfo("odd.b2nd")
            odd.extra = b"\x99\x99\x40\x1f" + bytes(8000)  # longer than any other header
            packed.writestr(odd, (tree / "a000.b2nd").read_bytes())
        return archive

    def listing(self, place, *words):
        done = subprocess.run([CLI, "ls", *words, place], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_members_of_an_archive_are_listed_in_a_wave(self):
        archive = self.packed(40)
        server = self.serve(delay=0.02)
        server.objects["/t.b2z"] = archive.read_bytes()
        self.assertEqual(self.listing(server.url("/t.b2z")), self.listing(archive))
        requests = [r for r in server.requests if r.path == "/t.b2z"]
        overlapping = sum(a.began < b.began < a.ended for a, b in zip(requests, requests[1:]))
        self.assertLess(len(requests), 40)  # adjacent members share some
        self.assertGreater(overlapping, len(requests) // 3)
        server.forget()
        self.assertEqual(self.listing(server.url("/t.b2z"), "-l"), self.listing(archive, "-l"))
        self.assertLessEqual(len(server.requests), len(requests) + 44)  # and one for each array

    def test_a_listing_whose_wave_fails(self):
        """What failed in the wave is requested again; what fails twice fails the listing."""
        archive = self.packed(20)
        server = self.serve()
        server.objects["/t.b2z"] = archive.read_bytes()
        with zipfile.ZipFile(archive) as packed:
            at = packed.getinfo("a003.b2nd").header_offset
        refused = []

        def fail(request):
            spans = spans_of(request)
            if any(a <= at + 100 < b for a, b in spans) and len(server.requests) > 1 and len(refused) < most:
                refused.append(request)
                return Reply(404)
            return None
        server.script = fail
        for most in (1, 1000):
            refused.clear()
            server.forget()
            done = subprocess.run([CLI, "ls", server.url("/t.b2z")], capture_output=True, text=True)
            self.assertGreaterEqual(len(refused), 1)
            if most == 1:
                self.assertEqual((done.returncode, done.stdout), (0, self.listing(archive)))
            else:
                self.assertEqual((done.returncode, done.stdout), (3, ""))
                self.assertRegex(done.stderr, "no longer on the server .status 404.")

    def test_leaves_are_read_as_their_tree_was_opened(self):
        np.save(self.folder / "in.npy", self.items)
        tree = "%s/u.b2d" % self.folder
        subprocess.run([CLI, "convert", self.folder / "in.npy", tree + "::/g/x"], check=True)
        subprocess.run([CLI, "pack", tree, self.folder / "u.b2z"], check=True)
        server = self.serve()
        server.objects["/u.b2z"] = (self.folder / "u.b2z").read_bytes()
        server.script = lambda r: None if r.headers.get("x-token") == "mine" else Reply(403)
        url = server.url("/u.b2z")
        self.fails(self.reader.say("leaf", "/g/x", url), "403|forbidden")
        self.assertEqual(self.reader.say("leaf", "/g/x", url, "token=mine"), "ok")
        self.reads_right()
        self.assertEqual(self.reader.say("refresh"), "ok")
        self.reads_right()
        self.assertEqual(self.reader.say("open", url + "::/g/x", "token=mine"), "ok")
        self.reads_right()
        self.assertEqual(self.reader.say("refresh"), "ok")
        self.reads_right()

    def test_a_small_chunk_is_read_whole(self):
        """A point takes one round trip; another point of the chunk reads only its block."""
        server = self.serve()
        self.opened(server, "nocache")
        chunks = far_chunks(self.folder / "a.b2nd")
        self.assertGreaterEqual(len(chunks), 3)
        for n, (first, inside) in enumerate(zip(chunks, [(1, 1, 1), (5, 5, 30), (2, 10, 3)])):
            at = tuple(np.add(first, inside))
            server.forget()
            self.assertEqual(self.reader.say("point", *at),
                             "ok " + self.items[at].tobytes().hex())
            self.assertEqual(len(server.requests), 1)
            self.assertEqual(int(self.reader.say("transfers").split()[2]), n + 2)
            self.assertLess(server.sent, 41000)
        server.forget()
        at = tuple(np.add(chunks[0], (1, 12, 26)))
        self.assertEqual(self.reader.say("point", *at),
                         "ok " + self.items[at].tobytes().hex())
        self.assertEqual(len(server.requests), 1)
        self.assertLess(server.sent, 6000)

    def test_many_chunks_are_not_read_whole(self):
        """The chunks of this line are larger than 1 MiB together."""
        items = np.random.default_rng(2).integers(0, 1 << 30, (64, 64, 128)).astype("i4")
        path = convert(self.folder, "line.b2nd", items, "--chunks", "4,64,128", "--blocks",
                       "1,16,128", "--codec", "blosclz", "--level", "0")
        server = self.serve()
        server.objects["/a.b2nd"] = path.read_bytes()
        self.opened(server, "nocache", "over=100")
        server.forget()
        self.assertIn("ok", self.reader.say("box", "0 64 0 1 0 1"))
        self.assertLess(server.sent, 2 * 64 * 9000)


class Servers(Case):
    """Servers that support less, and objects that are not arrays."""

    def test_without_etags_dates_or_suffixes(self):
        for options in ({"etags": False}, {"etags": False, "dates": True}, {"suffixes": False}):
            server = self.serve(**options)
            self.opened(server)
            self.reads_right()
            self.assertLessEqual(len(server.requests), 40)

    def test_a_server_without_ranges_is_refused_before_the_bytes(self):
        server = self.serve(ranges=False)
        server.objects["/a.b2nd"] = self.frame + bytes(4 << 20)
        answer = self.reader.say("open", server.url("/a.b2nd"))
        self.fails(answer, "does not support range requests", "CATERVA_EUNSUPPORTED")

    def test_a_small_object_may_come_whole(self):
        server = self.serve(ranges=False)
        self.opened(server)
        self.reads_right()
        self.assertEqual(len(server.requests), 1)

    def test_what_is_absent_empty_or_no_array(self):
        server = self.serve()
        self.fails(self.reader.say("open", server.url("/no.b2nd")), "does not exist",
                   "CATERVA_ENOTFOUND")
        server.objects["/a.b2nd"] = b""
        self.fails(self.reader.say("open", server.url("/a.b2nd")), "empty", "CATERVA_ECORRUPT")
        for junk in (b"x", b"<html>" * 5000, os.urandom(70000)):
            server.objects["/a.b2nd"] = junk
            self.fails(self.reader.say("open", server.url("/a.b2nd")), "", "CATERVA_ECORRUPT")

    def test_nobody_is_there(self):
        server = self.serve()
        server.close()
        time.sleep(0.05)
        began = time.monotonic()
        self.fails(self.reader.say("open", server.url("/a.b2nd")), "connect")
        self.assertLess(time.monotonic() - began, 60)

    def test_redirections(self):
        server, other = self.serve(), self.serve()

        def redirect(request):
            if request.path == "/a.b2nd":
                return Reply(302, {"Location": other.url("/a.b2nd?token=1")})
            return None
        server.script = redirect
        self.opened(server)
        self.reads_right()
        self.assertEqual(len(server.requests), 1)  # the target of the redirection is remembered
        for place, words in (("/a.b2nd", "redirects too often"), ("ftp://host/x", "none of the schemes"),
                             ("file:///etc/passwd", "none of the schemes")):
            server.script = lambda request: Reply(307, {"Location": place})  # noqa: B023
            self.fails(self.reader.say("open", server.url("/a.b2nd")), words)

    def test_a_place_that_is_over_is_asked_for_anew(self):
        server, other = self.serve(), self.serve()
        valid = set()

        def redirect(request):
            valid.add("/a.b2nd?token=%d" % request.number)
            return Reply(302, {"Location": other.url("/a.b2nd?token=%d" % request.number)})

        server.script = redirect
        other.script = lambda r: None if r.path in valid else Reply(403)
        self.opened(server)
        valid.clear()
        self.reads_right()


class Threads(Case):
    def test_many_read_at_once(self):
        server = self.serve()
        self.opened(server, "nocache", "connections=4")
        self.assertEqual(self.reader.say("threads", 8), "ok 0")


class Secrets(Case):
    def test_no_message_shows_the_query(self):
        server = self.serve()
        url = server.url("/a.b2nd?X-Amz-Signature=hidden&X-Amz-Credential=hidden")
        server.script = lambda r: Reply(403)
        for command in (("info", url), ("get", "--trace", url), ("info", "--json", url),
                        ("verify", url), ("convert", url, self.folder / "x.npy")):
            done = subprocess.run([CLI, *map(str, command)], capture_output=True, text=True)
            self.assertNotEqual(done.returncode, 0)
            self.assertNotIn("hidden", done.stdout + done.stderr)
        server.script = None
        done = subprocess.run([CLI, "info", "--trace", url], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn("hidden", done.stdout + done.stderr)


@unittest.skipUnless(NGINX, "nginx is not installed (scripts/bootstrap --test)")
class Nginx(Case):
    """A real server."""

    def setUp(self):
        super().setUp()
        self.www = self.folder / "www"
        self.www.mkdir(exist_ok=True)
        (self.www / "a.b2nd").write_bytes(self.frame)
        self.server = nginx_server.Nginx(NGINX, self.folder, self.www, "gzip on; gzip_types *;")
        self.addCleanup(self.server.close)

    def url(self, name):
        return self.server.url(name)

    def count(self):
        """Requests and bytes since the last call."""
        time.sleep(0.2)
        log = self.folder / "access.log"
        lines = log.read_text().split("\n")[:-1]
        log.write_text("")
        return len(lines), sum(int(line.split()[1]) for line in lines)

    def test_requests_and_bytes(self):
        self.count()
        self.assertEqual(self.reader.say("open", self.url("a.b2nd"), "nocache"), "ok")
        opening, size = self.count()
        self.assertEqual((opening, size), (1, 65536))
        self.reader.say("point", 33, 5, 7)
        self.assertLessEqual(self.count()[0], 3)
        self.assertEqual(self.reader.say("read"), "ok " + self.hash)

    def test_replaced(self):
        self.assertEqual(self.reader.say("open", self.url("a.b2nd"), "nocache"), "ok")
        (self.www / "new").write_bytes(self.other)
        os.utime(self.www / "new", (1, 1))
        os.replace(self.www / "new", self.www / "a.b2nd")
        Case.fails(self, self.reader.say("read"), "changed on the server")
        self.assertEqual(self.reader.say("refresh"), "ok")
        self.assertEqual(self.reader.say("read"), "ok " + self.other_hash)

    def test_a_directory(self):
        convert(self.www, "d.b2nd", self.items, "--sparse", "--chunks", "10,20,50")
        self.assertEqual(self.reader.say("open", self.url("d.b2nd")), "ok")
        self.assertEqual(self.reader.say("read"), "ok " + self.hash)


if __name__ == "__main__":
    unittest.main(verbosity=2)

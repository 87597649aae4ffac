"""Publishing: afterwards the URL holds the complete file, or what it held before.

A scripted server (support/scripted_server.py) takes PUT and multipart uploads as good servers
do, and misbehaves as a test demands. usage: test_publish.py [--runs N] [--seed S]: N runs with
random faults."""

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import zipfile
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
import nginx_server  # noqa: E402
import runs  # noqa: E402
from s3_signature import is_right  # noqa: E402
from scripted_server import Reply, ScriptedServer, etag_of  # noqa: E402

CLI = os.environ.get("CATERVA_CLI", "caterva")
HELPERS = Path(os.environ.get("CATERVA_HELPER_DIR", "."))
NGINX = nginx_server.find()
RUNS, SEED = 60, None
PART = 5 << 20
ACCESS, SECRET, TOKEN = "AKIDEXAMPLE", "hidden/secret+key=", "hidden-token"
LOST = Reply(raw=b"", closes=True)  # a response that never arrives


def make(folder, name, items, *options):
    np.save(folder / "in.npy", items)
    subprocess.run([CLI, "convert", "-f", folder / "in.npy", folder / name, *options], check=True,
                   stdout=subprocess.DEVNULL)
    return folder / name


def pack(folder, arrays):
    """An archive of files, by key."""
    path = folder / ("packed-%d.b2z" % len(list(folder.glob("packed-*"))))
    with zipfile.ZipFile(path, "w") as archive:
        for key, file in arrays.items():
            archive.writestr(zipfile.ZipInfo(key[1:] + ".b2nd"), file.read_bytes())
    return path


class Case(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory()
        cls.folder = Path(cls.scratch.name)
        rng = np.random.default_rng(7)
        plain = ["--codec", "blosclz", "--level", "0", "-T", "1"]
        items = rng.integers(0, 1 << 20, (40, 60, 50)).astype("i4")
        cls.small = make(cls.folder, "small.b2nd", items, *plain)
        cls.other = make(cls.folder, "other.b2nd", items[::-1].copy(), *plain)
        large = rng.integers(0, 1 << 62, (220, 100, 100))
        cls.large = make(cls.folder, "large.b2nd", large, *plain)
        cls.parts = -(-cls.large.stat().st_size // PART)
        assert cls.parts > 3
        cls.tiny = [make(cls.folder, "tiny-%d.b2nd" % i, np.arange(i, i + 9, dtype="i4"), *plain)
                    for i in range(2)]

    @classmethod
    def tearDownClass(cls):
        cls.scratch.cleanup()

    def serve(self, **options):
        server = ScriptedServer(**options)
        self.addCleanup(server.close)
        return server

    def environment(self, server, **variables):
        kept = {k: v for k, v in os.environ.items() if not k.startswith("AWS_")}
        return {**kept, "HOME": str(self.folder), "AWS_ENDPOINT_URL": server.url(""), **variables}

    def publish(self, server, path, url, *words, **variables):
        done = subprocess.run([CLI, "publish", str(path), url, *map(str, words)], text=True,
                              capture_output=True, env=self.environment(server, **variables))
        self.assertNotIn("hidden", done.stdout + done.stderr)
        return done

    def goes(self, *args, **variables):
        done = self.publish(*args, "--json", **variables)
        self.assertEqual(done.returncode, 0, done.stderr)
        result = json.loads(done.stdout)
        self.assertTrue(result["verified"])
        return result

    def refused(self, words, *args, **variables):
        done = self.publish(*args, **variables)
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertRegex(done.stderr, words)
        return done


class Plain(Case):
    """PUT to any server."""

    def test_three_requests(self):
        server = self.serve()
        result = self.goes(server, self.small, server.url("/a.b2nd?key=hidden"))
        self.assertEqual(server.objects["/a.b2nd"], self.small.read_bytes())
        self.assertEqual([r.method for r in server.requests], ["GET", "PUT", "GET"])
        self.assertEqual(result["requests"], 3)
        self.assertEqual(server.requests[1].headers["if-none-match"], "*")
        self.assertFalse([n for n in server.requests[1].headers if n.startswith("x-amz")])

    def test_a_large_one_in_one_request(self):
        server = self.serve()
        self.goes(server, self.large, server.url("/a.b2nd"))
        self.assertEqual(server.objects["/a.b2nd"], self.large.read_bytes())
        self.assertEqual(server.requests[1].headers["expect"], "100-continue")

    def test_what_is_there_stays(self):
        for options in ({}, {"etags": False}, {"suffixes": False}, {"ranges": False}):
            server = self.serve(**options)
            for there in (b"other", bytes(3 << 20)):
                server.objects["/a.b2nd"] = there
                self.refused("an object exists there already", server, self.small,
                             server.url("/a.b2nd"))
                self.assertEqual(server.objects["/a.b2nd"], there)
            self.assertEqual({r.method for r in server.requests}, {"GET"})

    def test_the_same_again(self):
        """The same file is there already, and nothing is sent; a different one is an error that
        names the difference."""
        archive = pack(self.folder, {"/x": self.small, "/y": self.other})
        for path in (self.small, self.large, archive):
            server = self.serve()
            first = self.goes(server, path, server.url("/a"))
            server.forget()
            again = self.goes(server, path, server.url("/a"))
            self.assertEqual((first["was_there"], again["was_there"]), (False, True))
            self.assertEqual([r.method for r in server.requests], ["GET", "GET"])
            self.assertIn("nothing sent", self.publish(server, path, server.url("/a")).stdout)
            self.goes(server, path, server.url("/a"), "--if-match", '"of-before"')
            server.forget()
            self.assertFalse(self.goes(server, path, server.url("/a"), "--force")["was_there"])
            self.assertIn("PUT", {r.method for r in server.requests})

    def test_another_of_the_same_size(self):
        server = self.serve()
        self.goes(server, self.other, server.url("/a.b2nd"))
        self.assertEqual(self.other.stat().st_size, self.small.stat().st_size)
        self.refused("an object exists there already, of the same size, but with other bytes",
                     server, self.small, server.url("/a.b2nd"))
        self.refused("an object exists there already, of [0-9]+ bytes instead of [0-9]+",
                     server, self.large, server.url("/a.b2nd"))
        server.script = lambda r: Reply(403) if r.headers["range"] != "bytes=-1" else None
        self.refused("an object exists there already, which cannot be compared: .*403",
                     server, self.small, server.url("/a.b2nd"))
        self.assertEqual(server.objects["/a.b2nd"], self.other.read_bytes())

    def test_an_archive_of_many_members(self):
        """The whole directory is compared: one of the first of many members differs."""
        arrays = {"/a-rather-long-name-of-a-group/%04d" % i: self.tiny[0] for i in range(900)}
        first = pack(self.folder, arrays)
        kept = first.read_bytes()
        arrays["/a-rather-long-name-of-a-group/0000"] = self.tiny[1]
        second = pack(self.folder, arrays)
        self.assertEqual(second.read_bytes()[-65536:], kept[-65536:])
        self.assertEqual(len(second.read_bytes()), len(kept))
        server = self.serve()
        server.objects["/a"] = kept
        self.refused("of the same size, but with other bytes", server, second, server.url("/a"))
        server.objects["/a"] = second.read_bytes()
        self.assertTrue(self.goes(server, second, server.url("/a"))["was_there"])

    def test_what_came_meanwhile_stays(self):
        server = self.serve()

        def meanwhile(request):
            if request.method == "PUT":
                server.objects["/a.b2nd"] = b"other"
        server.script = meanwhile
        self.refused("an object exists there already", server, self.small, server.url("/a.b2nd"))
        self.assertEqual(server.objects["/a.b2nd"], b"other")

    def test_replacing(self):
        server = self.serve()
        server.objects["/a.b2nd"] = self.other.read_bytes()
        etag = etag_of(self.other.read_bytes())
        self.refused("should be \"x\", but the URL has %s" % etag, server, self.small,
                     server.url("/a.b2nd"), "--if-match", '"x"')
        self.goes(server, self.small, server.url("/a.b2nd"), "--if-match", etag)
        self.assertEqual(server.requests[-2].headers["if-match"], etag)
        self.assertEqual(server.objects["/a.b2nd"], self.small.read_bytes())
        self.goes(server, self.other, server.url("/a.b2nd"), "--force")
        self.assertEqual(server.requests[-2].headers["if-match"],
                         etag_of(self.small.read_bytes()))
        server.script = lambda r: server.objects.update({"/a.b2nd": b"x"}) if r.method == "PUT" else None
        self.refused("another client has changed the object to replace", server, self.small,
                     server.url("/a.b2nd"), "-f")
        self.assertEqual(server.objects["/a.b2nd"], b"x")

    def test_a_lost_answer(self):
        for options in ({}, {"etags": False}):
            server = self.serve(**options)
            lost = []

            def lose(request):
                if request.method == "PUT" and not lost:  # noqa: B023
                    lost.append(server.good(request))     # noqa: B023
                    return LOST
                return None
            server.script = lose
            self.goes(server, self.small, server.url("/a.b2nd"))
            self.assertEqual(sum(r.method == "PUT" for r in server.requests), 2)
            self.assertEqual(server.objects["/a.b2nd"], self.small.read_bytes())

    def test_a_server_that_is_busy(self):
        server = self.serve()
        server.script = lambda r: Reply(503) if r.method == "PUT" and r.number < 4 else None
        self.assertEqual(self.goes(server, self.small, server.url("/a.b2nd"))["retried"], 3)
        server = self.serve()
        server.script = lambda r: Reply(503) if r.method == "PUT" else None
        self.refused("status 503.*6 times", server, self.small, server.url("/a.b2nd"))

    def test_a_connection_that_breaks(self):
        server = self.serve()
        server.before_body = lambda r: r.method != "PUT" or r.number > 2
        self.assertGreaterEqual(self.goes(server, self.large, server.url("/a"))["retried"], 1)
        self.assertEqual(server.objects["/a"], self.large.read_bytes())

    def test_refusals(self):
        server = self.serve()
        for status, words in ((401, "requires credentials"), (403, "do not allow writing"),
                              (404, "does not exist"), (307, "redirects"), (507, "out of space"),
                              (409, "folder"), (418, "status 418")):
            server.script = lambda r: Reply(status) if r.method == "PUT" else None  # noqa: B023
            self.refused(words, server, self.small, server.url("/a.b2nd"))
        server.script = lambda r: Reply(405) if r.method == "PUT" else None
        done = self.publish(server, self.small, server.url("/a.b2nd"))
        self.assertEqual(done.returncode, 5, done.stderr)

    def test_what_was_damaged_is_noticed(self):
        server = self.serve()

        def damage(request):
            if request.method != "PUT":
                return None
            reply = server.good(request)
            server.objects["/a.b2nd"] = bytes(1000) + request.body[:-1000]
            return reply
        server.script = damage
        self.refused("other bytes", server, self.small, server.url("/a.b2nd"))

        def cut(request):
            if request.method != "PUT":
                return None
            reply = server.good(request)
            server.objects["/b.b2nd"] = request.body[:1000]
            return reply
        server.script = cut
        self.refused("other bytes|read back", server, self.small, server.url("/b.b2nd"))

    def test_read_elsewhere(self):
        server = self.serve()
        server.script = lambda r: Reply(403) if r.method == "GET" and "put" in r.path else None
        self.refused("cannot be read back", server, self.small, server.url("/a?put=hidden"))
        del server.objects["/a"]
        self.goes(server, self.small, server.url("/a?put=hidden"), "--read-url",
                  server.url("/a?get=hidden"))


class Files(Case):
    """Which files can be published."""

    def refuses(self, words, path):
        server = self.serve()
        done = self.publish(server, path, server.url("/a"))
        self.assertNotEqual(done.returncode, 0)
        self.assertRegex(done.stderr, words)
        self.assertEqual(server.requests, [])

    def test_what_is_not_finished(self):
        import blosc2
        unsealed = self.folder / "unsealed.b2nd"
        blosc2.asarray(np.arange(1000), urlpath=str(unsealed), mode="w")
        self.refuses("not sealed: seal it first", unsealed)
        items = np.arange(1000)
        sparse = make(self.folder, "d.b2nd", items, "--sparse")
        self.refuses("copy it to one file first", sparse)
        make(self.folder, "t.b2d::/x", items)
        self.refuses("pack it into one file first", self.folder / "t.b2d")
        self.refuses("no.b2nd", self.folder / "no.b2nd")
        (self.folder / "junk").write_bytes(os.urandom(5000))
        self.refuses("junk", self.folder / "junk")
        server = self.serve()
        for path, url in ((server.url("/x"), server.url("/y")), (self.small, "somewhere")):
            done = self.publish(server, path, url)
            self.assertEqual(done.returncode, 2, done.stderr)

    def test_archives_and_members(self):
        server = self.serve()
        make(self.folder, "w.b2d::/g/x", np.arange(5000))
        subprocess.run([CLI, "pack", self.folder / "w.b2d", self.folder / "w.b2z"], check=True)
        self.goes(server, self.folder / "w.b2z", server.url("/w.b2z"))
        self.assertEqual(server.objects["/w.b2z"], (self.folder / "w.b2z").read_bytes())
        for n, tree in enumerate(("w.b2d", "w.b2z")):
            self.goes(server, "%s/%s::/g/x" % (self.folder, tree), server.url("/x%d" % n))
            subprocess.run([CLI, "verify", server.url("/x%d" % n)], check=True,
                           stdout=subprocess.DEVNULL)

    def test_bytes_behind_the_frame_stay(self):
        server = self.serve()
        long = self.folder / "long.b2nd"
        long.write_bytes(self.small.read_bytes() + b"behind" * 20000)
        done = self.publish(server, long, server.url("/a"))
        if done.returncode == 0:
            self.assertEqual(server.objects["/a"], self.small.read_bytes())

    def test_what_is_damaged_is_not_published(self):
        """Wherever the damaged byte is, nothing is sent."""
        server = self.serve()
        sound = self.small.read_bytes()
        make(self.folder, "dt.b2d::/g/x", np.arange(50000) * 7919 % 65521)
        subprocess.run([CLI, "pack", self.folder / "dt.b2d", self.folder / "dt.b2z"], check=True)
        archive = (self.folder / "dt.b2z").read_bytes()
        for name, data in (("damaged.b2nd", sound), ("damaged.b2z", archive)):
            path = self.folder / name
            for share in (0.1, 0.3, 0.5, 0.7):
                place = int(len(data) * share)
                changed = bytearray(data)
                changed[place] ^= 0x55
                path.write_bytes(changed)
                for url in (server.url("/a"), "s3://bucket/key"):
                    done = self.publish(server, path, url)
                    self.assertEqual(done.returncode, 4, (name, place, done.stderr))
                    self.assertIn("damaged", done.stderr)
        self.assertEqual(server.requests, [])

    def test_bytes_that_change_in_place_are_noticed(self):
        server = self.serve()
        path = self.folder / "bytes.b2nd"
        path.write_bytes(self.large.read_bytes())

        def change(request):
            if "partNumber=2" in request.path:
                with path.open("r+b") as file:  # without a commit and without our writer
                    file.seek(path.stat().st_size // 2)
                    file.write(b"other bytes")
        server.script = change
        done = self.publish(server, path, "s3://bucket/key", "--part-size", PART)
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn("changed while it was sent", done.stderr)
        self.assertEqual((server.objects, server.uploads), ({}, {}))

    def test_what_changes_meanwhile_is_noticed(self):
        server = self.serve()
        path = self.folder / "changing.b2nd"
        path.write_bytes(self.large.read_bytes())

        def change(request):
            if request.method == "PUT" and request.number < 3:
                subprocess.run([CLI, "attr", "set", path, "a", "1"], check=True)
        server.script = change
        self.refused("changed while it was sent", server, path, server.url("/a"))
        path.write_bytes(self.large.read_bytes())
        server.forget()
        done = self.publish(server, path, "s3://bucket/key", "--part-size", PART)
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertNotIn("/bucket/key", server.objects)
        self.assertEqual(server.uploads, {})


class S3(Case):
    KEYS = {"AWS_ACCESS_KEY_ID": ACCESS, "AWS_SECRET_ACCESS_KEY": SECRET}
    URL, PATH = "s3://bucket/dir/odd key=+&?#%~.b2nd", "/bucket/dir/odd%20key%3D%2B%26%3F%23%25~.b2nd"

    def serve_s3(self):
        server = self.serve()
        server.script = self.check
        return server

    def check(self, request):
        if "authorization" not in request.headers or not is_right(request, ACCESS, SECRET):
            return Reply(403, body=b"<Error><Code>SignatureDoesNotMatch</Code>"
                                   b"<StringToSign>hidden</StringToSign></Error>")
        return None

    def test_one_request(self):
        server = self.serve_s3()
        self.goes(server, self.small, self.URL, **self.KEYS)
        self.assertEqual(server.objects[self.PATH], self.small.read_bytes())
        self.assertEqual(len(server.requests), 3)
        self.assertRegex(server.requests[1].headers["x-amz-meta-caterva-write-id"],
                         r"\A[0-9a-f]{32}\Z")
        self.refused("an object exists there already", server, self.other, self.URL, **self.KEYS)
        self.goes(server, self.other, self.URL, "-f", **self.KEYS, AWS_SESSION_TOKEN=TOKEN)
        self.assertEqual(server.objects[self.PATH], self.other.read_bytes())

    def test_parts(self):
        server = self.serve_s3()
        result = self.goes(server, self.large, self.URL, "--part-size", PART, **self.KEYS)
        self.assertEqual(server.objects[self.PATH], self.large.read_bytes())
        self.assertEqual((result["parts"], result["requests"]), (self.parts, self.parts + 4))
        self.assertEqual(server.requests[-2].headers["if-none-match"], "*")
        self.assertEqual(server.uploads, {})
        self.goes(server, self.large, self.URL, "-f", **self.KEYS)

    def test_a_wrong_key(self):
        server = self.serve_s3()
        done = self.refused("SignatureDoesNotMatch", server, self.large, self.URL, "--trace",
                            **{**self.KEYS, "AWS_SECRET_ACCESS_KEY": "hidden-wrong"})
        self.assertIn("POST s3://bucket", done.stderr)
        self.assertEqual(len(server.requests), 2)

    def test_nobody(self):
        server = self.serve()
        self.goes(server, self.large, self.URL)
        self.assertFalse([r for r in server.requests if "authorization" in r.headers])

    def test_lost_answers(self):
        """The response to each request in turn is lost."""
        for which in range(1, self.parts + 3):
            server = self.serve()
            lost = []

            def lose(request):
                if request.number != which or lost:  # noqa: B023
                    return None
                lost.append(server.good(request))    # noqa: B023
                return LOST
            server.script = lose
            self.goes(server, self.large, self.URL, "--part-size", PART)
            self.assertIn(len(server.requests), (self.parts + 5, self.parts + 6))
            self.assertEqual(server.objects[self.PATH], self.large.read_bytes())

    def test_a_lost_answer_and_somebody_else(self):
        """The bytes are ours, the write id is another writer's."""
        server = self.serve()

        def lose(request):
            if request.method == "PUT" and request.number == 1:
                server.objects[self.PATH] = self.small.read_bytes()
                server.meta[self.PATH] = {"x-amz-meta-caterva-write-id": "0" * 32}
                return LOST
            return None
        server.script = lose
        self.refused("an object exists there already", server, self.small, self.URL)

    def test_an_error_in_an_answer_of_success(self):
        server = self.serve()
        server.script = lambda r: Reply(200, body=b"<Error><Code>InternalError</Code></Error>") \
            if r.number == self.parts + 2 else None
        self.assertEqual(self.goes(server, self.large, self.URL, "--part-size", PART)["retried"], 1)

    def test_a_failure_leaves_no_parts(self):
        server = self.serve()
        server.script = lambda r: Reply(403) if "partNumber=2" in r.path else None
        self.refused("do not allow writing", server, self.large, self.URL, "--part-size", PART)
        self.assertEqual((server.uploads, server.objects), ({}, {}))
        server.script = lambda r: Reply(412) if r.method == "POST" and "uploadId" in r.path else None
        self.refused("an object exists there", server, self.large, self.URL, "--part-size", PART)
        self.assertEqual((server.uploads, server.objects), ({}, {}))

    def test_an_answer_of_blanks(self):
        """A server that assembles many parts sends blanks while it works, which are no
        error."""
        server = self.serve()

        def slowly(request):
            if request.method != "POST" or "uploadId" not in request.path:
                return None
            reply = server.good(request)
            reply.body = b" " * 250 + reply.body
            reply.drip, reply.piece = 0.5, 15
            return reply
        server.script = slowly
        tool = HELPERS / "reliability" / "tool_remote"
        done = subprocess.run([tool], input="publish 3000 %s %s\n" % (self.large, self.URL),
                              text=True, capture_output=True, env=self.environment(server))
        self.assertEqual(done.stdout, "ok\n")
        self.assertEqual(server.objects[self.PATH], self.large.read_bytes())
        self.assertEqual(sum("uploadId" in r.path and r.method == "POST"
                             for r in server.requests), 1)

    def test_an_upload_that_somebody_aborts(self):
        server = self.serve()

        def abort(request):
            if request.method == "POST" and "uploadId" in request.path:
                server.uploads.clear()
        server.script = abort
        self.refused("the upload no longer exists", server, self.large, self.URL,
                     "--part-size", PART)
        self.assertEqual(server.objects, {})

    def test_replaced_by_somebody_who_was_quicker(self):
        server = self.serve()
        for there, words in ((b"other", "another client has changed"), (None, "no longer exists")):
            server.objects[self.PATH] = self.small.read_bytes()

            def meanwhile(request):
                if request.method != "POST" or "uploadId" not in request.path:
                    return None
                server.objects.pop(self.PATH)
                if there:
                    server.objects[self.PATH] = there
                return None if there else Reply(404, body=b"<Error><Code>NoSuchKey</Code></Error>")
            server.script = meanwhile
            self.refused(words, server, self.large, self.URL, "--part-size", PART, "-f")
            self.assertEqual(server.objects.get(self.PATH), there)


class Resumed(Case):
    URL, PATH = "s3://bucket/key", "/bucket/key"

    def setUp(self):
        self.state = self.folder / "state"
        self.state.unlink(missing_ok=True)
        self.words = ("--part-size", PART, "--resume", self.state)

    def break_off(self, server):
        server.script = lambda r: Reply(403) if "partNumber=4" in r.path else None
        self.refused("do not allow writing", server, self.large, self.URL, *self.words)
        server.drain()  # other parts were in flight
        server.script = None
        self.assertEqual(len(server.uploads), 1)
        self.assertTrue(self.state.exists())

    def test_goes_on(self):
        server = self.serve()
        self.break_off(server)
        kept = len(next(iter(server.uploads.values()))[2])
        server.forget()
        result = self.goes(server, self.large, self.URL, *self.words)
        self.assertEqual((result["parts"], result["parts_kept"]), (self.parts, kept))
        self.assertEqual(sum(r.method == "PUT" for r in server.requests), self.parts - kept)
        self.assertEqual(server.objects[self.PATH], self.large.read_bytes())
        self.assertFalse(self.state.exists())

    def test_again_when_it_is_done(self):
        server = self.serve()
        self.goes(server, self.large, self.URL, *self.words)
        server.forget()
        self.assertTrue(self.goes(server, self.large, self.URL, *self.words)["was_there"])
        self.assertEqual({r.method for r in server.requests}, {"GET"})

    def test_the_same_came_from_elsewhere_meanwhile(self):
        """The upload is aborted."""
        server = self.serve()
        self.break_off(server)
        server.objects[self.PATH] = self.large.read_bytes()
        self.assertTrue(self.goes(server, self.large, self.URL, *self.words)["was_there"])
        self.assertEqual(server.uploads, {})
        self.assertFalse(self.state.exists())

    def test_an_upload_that_is_gone_begins_anew(self):
        server = self.serve()
        self.break_off(server)
        server.uploads.clear()
        self.assertEqual(self.goes(server, self.large, self.URL, *self.words)["parts_kept"], 0)
        self.assertEqual(server.objects[self.PATH], self.large.read_bytes())

    def test_one_that_was_done_is_done(self):
        server = self.serve()

        def lose(request):
            if request.method == "POST" and "uploadId" in request.path:
                server.good(request)
                return Reply(403)
            return None
        server.script = lose
        self.refused("403", server, self.large, self.URL, *self.words)
        self.assertIn(self.PATH, server.objects)
        server.script = None
        server.forget()
        self.goes(server, self.large, self.URL, *self.words)
        self.assertEqual(len(server.requests), 2)
        self.assertFalse(self.state.exists())

    def test_of_something_else(self):
        server = self.serve()
        self.break_off(server)
        for path, url, size, what in (
                (self.small, self.URL, PART, "another file"),
                (self.large, "s3://bucket/k", PART, "another URL"),
                (self.large, self.URL, PART + 1, "parts of %d bytes, not of" % PART)):
            done = self.publish(server, path, url, "--part-size", size, "--resume", self.state)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(what, done.stderr)
            self.assertIn("abandon", done.stderr)
        self.state.write_text("caterva upload 1\nx y\nz\n")
        done = self.publish(server, self.large, self.URL, *self.words)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("is not the state file", done.stderr)

    def test_abandoned_whatever_became_of_the_file(self):
        """Deleted, changed, unsealed, or with other parts: only the state file counts."""
        server = self.serve()
        path = self.folder / "leaving.b2nd"
        for become in (path.unlink, lambda: path.write_bytes(b"junk"),
                       lambda: path.write_bytes(self.small.read_bytes())):
            path.write_bytes(self.large.read_bytes())
            server.script = lambda r: Reply(403) if "partNumber=4" in r.path else None
            self.refused("do not allow writing", server, path, self.URL, *self.words)
            server.settle()
            server.script = None
            become()
            done = self.publish(server, path, "s3://bucket/other", *self.words, "--abandon")
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn("another URL", done.stderr)
            self.assertEqual(len(server.uploads), 1)
            done = self.publish(server, path, self.URL, "--resume", self.state, "--abandon")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual((server.uploads, self.state.exists()), ({}, False))

    def test_of_s3_only(self):
        server = self.serve()
        for words in (("--resume", self.state), ("--resume", self.state, "--abandon")):
            done = self.publish(server, self.small, server.url("/a"), *words)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn("s3://", done.stderr)
        self.assertEqual(server.requests, [])

    def test_abandoned(self):
        server = self.serve()
        self.break_off(server)
        done = self.publish(server, self.large, self.URL, *self.words, "--abandon")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual((server.uploads, self.state.exists()), ({}, False))

    def test_a_killed_process(self):
        server = self.serve()
        server.script = lambda r: Reply(delay=30) if "partNumber=3" in r.path else None
        process = subprocess.Popen([CLI, "publish", self.large, self.URL, *map(str, self.words)],
                                   env=self.environment(server))
        while sum("partNumber" in r.path and r.ended > 0 for r in server.requests) < 3:
            self.assertIsNone(process.poll())
            time.sleep(0.01)
        process.kill()
        process.wait()
        server.script = None
        result = self.goes(server, self.large, self.URL, *self.words)
        self.assertGreaterEqual(result["parts_kept"], 1)
        self.assertEqual(server.objects[self.PATH], self.large.read_bytes())


class Stops(Case):
    def stopped(self, server, url, is_there, *words):
        """Interrupts the program; returns the ms that it took to end."""
        process = subprocess.Popen([CLI, "publish", self.large, url, *map(str, words)],
                                   env=self.environment(server), stderr=subprocess.PIPE)
        while not any(is_there(r) for r in server.requests):
            self.assertIsNone(process.poll())
            time.sleep(0.01)
        time.sleep(0.1)
        began = time.monotonic()
        process.send_signal(signal.SIGINT)
        process.wait()
        took = time.monotonic() - began
        with process.stderr as said:
            self.assertEqual(said.read(), b"caterva: interrupted\n")
        self.assertEqual(process.returncode, -signal.SIGINT)
        return 1000 * took

    def test_within_a_moment(self):
        server = self.serve()
        server.script = lambda r: Reply(delay=30) if r.method == "PUT" else None
        times = [self.stopped(server, server.url("/a"), lambda r: r.method == "PUT")]
        server.forget()
        server.script = lambda r: Reply(delay=30) if "partNumber=2" in r.path else None
        words = ("--part-size", PART)
        for _ in range(10):  # an abort that does not succeed within a moment is given up
            server.uploads.clear()
            times.append(self.stopped(server, "s3://bucket/k",
                                      lambda r: "partNumber=2" in r.path, *words))
            end = time.monotonic() + 1
            while server.uploads and time.monotonic() < end:
                time.sleep(0.01)
            if not server.uploads:
                break
            server.forget()
        self.assertEqual((server.uploads, server.objects), ({}, {}))
        server.forget()
        server.script = lambda r: Reply(delay=30) if "partNumber=2" in r.path or \
            r.method == "DELETE" else None
        times.append(self.stopped(server, "s3://bucket/k", lambda r: "partNumber=2" in r.path, *words))
        server.forget()
        server.script = None
        server.before_body = lambda r: time.sleep(20) if r.method == "PUT" else None
        times.append(self.stopped(server, server.url("/a"), lambda r: r.method == "PUT"))
        print("stopped after", times, "ms")
        self.assertLess(min(times), 5000)  # the server takes 20 s or more

    def test_while_an_upload_is_begun(self):
        """The upload that the server creates after that is removed, too."""
        server = self.serve()
        begins = []

        def answer_late(request):
            if request.method == "POST":
                begins.append(request)
                time.sleep(0.3)

        server.script = answer_late
        for _ in range(10):  # what does not succeed within a moment is given up
            begins.clear()
            server.uploads.clear()
            self.stopped(server, "s3://bucket/k", lambda r: r.method == "POST", "--part-size", PART)
            self.assertEqual(len(begins), 1)
            time.sleep(0.5)
            if not server.uploads:
                break
            server.forget()
        self.assertEqual(server.uploads, {})


@unittest.skipUnless(NGINX, "nginx is not installed (scripts/bootstrap --test)")
class Nginx(Case):
    """A real server: WebDAV, which ignores conditions."""

    def setUp(self):
        www = self.folder / "www"
        www.mkdir(exist_ok=True)
        inside = "client_max_body_size 0; dav_methods PUT; create_full_put_path on;"
        server = nginx_server.Nginx(NGINX, self.folder, www, inside)
        self.addCleanup(server.close)
        self.www, self.server = www, server

    def test_there_and_back(self):
        for path, name in ((self.small, "new/folder/a.b2nd"), (self.large, "large.b2nd")):
            url = self.server.url(name)
            self.assertEqual(self.goes(self.server, path, url)["requests"], 3)
            self.assertEqual((self.www / name).read_bytes(), path.read_bytes())
            subprocess.run([CLI, "verify", url], check=True, stdout=subprocess.DEVNULL)
            self.refused("an object exists there already", self.server, self.other, url)
            self.goes(self.server, self.other, url, "--force")
            self.assertEqual((self.www / name).read_bytes(), self.other.read_bytes())


class Faults(Case):
    """Runs with one request in four broken: the file arrives complete, or there is an error."""

    def test_random_faults(self):
        seed = SEED if SEED is not None else random.SystemRandom().randrange(1 << 32)
        print("seed", seed)
        dice = random.Random(seed)
        server, faults = self.serve(), [0]

        def fault(request):
            chance = dice.random()
            if chance > 0.25 or (request.method == "GET" and request.number == 0):
                return None
            faults[0] += 1
            if chance < 0.1:
                return Reply(dice.choice([500, 502, 503, 429]))
            if chance < 0.15:
                return LOST
            server.good(request)
            return LOST

        server.script = fault
        right = errors = 0
        for run in range(RUNS):
            path, url = (self.large, "s3://bucket/k") if run % 2 else (self.small, server.url("/bucket/k"))
            server.forget()
            server.objects.clear()
            done = self.publish(server, path, url, "--part-size", PART)
            there = server.objects.get("/bucket/k")
            self.assertIn(there, (None, path.read_bytes()), "run %d" % run)
            if done.returncode == 0:
                self.assertIsNotNone(there)
                right += 1
            else:
                self.assertEqual(done.returncode, 3, done.stderr)
                errors += 1
        print("%d runs, %d faults: %d right, %d errors" % (RUNS, faults[0], right, errors))
        self.assertGreater(right, 0.9 * RUNS)


if __name__ == "__main__":
    runs.main(sys.modules[__name__])

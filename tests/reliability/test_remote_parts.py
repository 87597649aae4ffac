"""Several ranges in one request, to servers that send several parts in one response, and to
those that do not, or do it wrong: items are right whatever is sent, and a server that cannot do
it is not asked twice.

usage: test_remote_parts.py [--runs N] [--seed S]: N runs with random misbehaviour."""

import itertools
import os
import random
import sys
import threading
import unittest

import numpy as np
from tool_remote_case import NGINX, Reader, Served, convert, fnv
import nginx_server
import runs
from scripted_server import BOUNDARY, Reply, etag_of, parts_of, spans_of

RUNS, SEED = 100, None
TYPE = "multipart/byteranges; boundary="


class Case(Served):
    """A plane of the last axis: one of many blocks in each row, far apart from each other."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.items = np.random.default_rng(5).integers(0, 1 << 30, (64, 64, 320)).astype("i4")
        partition = ["--chunks", "16,16,320", "--blocks", "4,8,10", "--codec", "blosclz", "--level", "0",
                     "-T", "1"]
        cls.frame = convert(cls.folder, "a.b2nd", cls.items, *partition).read_bytes()
        cls.other = convert(cls.folder, "b.b2nd", cls.items[::-1].copy(), *partition).read_bytes()
        assert len(cls.frame) == len(cls.other) > 5 << 20
        cls.plane = fnv(cls.items[:, :, 100:101].tobytes())

    def opened(self, server, *words):
        """Opens the array and reads its layouts: later requests are for blocks."""
        words = words or ("connections=4", "over=-1")
        self.assertEqual(self.reader.say("open", server.url("/a.b2nd"), "nocache", *words), "ok")
        server.settle()
        server.forget()

    def plane_of(self, k=100):
        return self.reader.say("hash", 0, 64, 0, 64, k, k + 1)

    def reads_right(self):
        self.assertEqual(self.plane_of(), "ok " + self.plane)

    def transfers(self):
        return [int(n) for n in self.reader.say("transfers").split()]


def several(server):
    return [r for r in server.requests if len(spans_of(r)) > 1]


class Good(Case):
    def test_requests_and_round_trips(self):
        server = self.serve()
        self.opened(server)
        before = self.transfers()
        self.reads_right()
        first = len(server.requests)
        self.assertLess(first, 4 * 4 + 16)  # layouts are 16 requests at most
        self.assertGreater(len(several(server)), 3)
        self.assertLessEqual(max(len(spans_of(r)) for r in server.requests), 100)
        self.assertLess(max(len(r.headers["range"]) for r in server.requests), 4096)
        told = [a - b for a, b in zip(self.transfers(), before)]
        self.assertEqual(told[:2], [first, server.sent])
        server.forget()
        self.assertRegex(self.plane_of(200), "ok")  # known layouts are not read again
        self.assertEqual(len(server.requests), 4)
        self.assertIn(sum(len(spans_of(r)) for r in server.requests), range(112, 129))  # but the end's

    def test_no_byte_comes_that_is_not_wanted(self):
        server = self.serve()
        self.opened(server)
        self.reads_right()
        server.forget()
        self.assertRegex(self.plane_of(200), "ok")
        spans = sorted(s for r in server.requests for s in spans_of(r))
        for a, b in zip(spans, spans[1:]):
            self.assertLess(a[1], b[0])
        self.assertLess(server.sent, 128 * (4 * 8 * 10 * 4 + 64 + 250))

    def test_what_one_round_takes_is_not_tried(self):
        server = self.serve()
        self.opened(server, "connections=200", "over=-1")
        self.reads_right()
        self.assertEqual(several(server), [])

    def test_objects_of_a_directory(self):
        folder = convert(self.folder, "d.b2nd", self.items, "--sparse", "--chunks", "32,64,320",
                         "--blocks", "4,8,10", "--codec", "blosclz", "--level", "0", "-T", "1")
        server = self.serve()
        for file in folder.iterdir():
            server.objects["/a.b2nd/" + file.name] = file.read_bytes()
        del server.objects["/a.b2nd"]
        self.opened(server)
        self.reads_right()
        self.assertGreater(len(several(server)), 1)

    def test_s3_is_not_asked(self):
        server = self.serve(name="nginx")
        server.objects["/bucket/a.b2nd"] = self.frame
        os.environ["AWS_ENDPOINT_URL"] = server.url("")
        self.addCleanup(os.environ.pop, "AWS_ENDPOINT_URL")
        self.reader = Reader()
        self.addCleanup(self.reader.close)
        self.assertEqual(self.reader.say("open", "s3://bucket/a.b2nd", "nocache", "over=-1",
                                         "connections=4"), "ok")
        self.reads_right()
        self.assertEqual(several(server), [])

    def test_of_a_version(self):
        server = self.serve()
        self.opened(server)
        self.reads_right()
        server.objects["/a.b2nd"] = self.other
        self.assertRegex(self.plane_of(200), "error CATERVA_EIO .*changed on the server")

    def test_from_threads(self):
        server = self.serve(delay=0.002)
        self.opened(server)
        self.assertEqual(self.reader.say("threads", 8), "ok 0")

    def test_stopped_while_it_is_found_out(self):
        times = []
        while len(times) < 8 and min(times, default=1000) >= 100:
            server = self.serve()
            server.script = lambda r: Reply(delay=20) if len(spans_of(r)) > 1 else None
            answer = self.reader.say("stop", 300, server.url("/a.b2nd"), "over=-1", "connections=2")
            self.assertRegex(answer, r"\Astopped ")
            times.append(float(answer.split()[1]))
        self.assertLess(min(times), 100)

    @unittest.skipUnless(NGINX, "nginx is not installed")
    def test_nginx(self):
        for lines, n_several in (("", 4), ("max_ranges 1;", 0), ("max_ranges 3;", 0)):
            www = self.folder / "www"
            www.mkdir(exist_ok=True)
            (www / "a.b2nd").write_bytes(self.frame)
            server = nginx_server.Nginx(NGINX, self.folder, www, lines)
            try:
                self.assertEqual(self.reader.say("open", server.url("a.b2nd"), "nocache", "over=-1",
                                                 "connections=4"), "ok")
                self.reads_right()
                before = self.transfers()[0]
                self.assertRegex(self.plane_of(200), "ok")
                n = self.transfers()[0] - before
                self.assertIn(n, [n_several] if n_several else range(112, 129), lines)
            finally:
                server.close()


class Bad(Case):
    """What is wrong is requested again, one range at a time."""

    NAME = None

    def of(self, request):
        """(first, bytes, size) of each range of the request."""
        return [(a, self.frame[a:b], len(self.frame)) for a, b in spans_of(request)]

    def parts(self, parts, boundary=BOUNDARY, named=None, headers=(), **how):
        return Reply(206, {"ETag": self.etag, "Content-Type": TYPE + (named or boundary), **dict(headers)},
                     parts_of(parts, boundary, **how))

    def check(self, make, refused=True, known=False):
        """`make` responds to requests for several ranges. `known`: the server has sent good
        responses before."""
        server = self.serve(name=self.NAME)
        self.etag = etag_of(self.frame)
        self.opened(server)
        if known:
            self.assertRegex(self.plane_of(200), "ok")
            server.forget()
        server.script = lambda r: make(r) if len(spans_of(r)) > 1 else None
        before = self.transfers()
        self.reads_right()
        n_asked = len(several(server))
        self.assertGreaterEqual(n_asked, 1)
        if refused:
            self.assertLessEqual(n_asked, 4 if known or self.NAME else 1)
            self.assertEqual(self.transfers()[4], before[4])  # no failure and no retry
            self.assertLess(len(server.requests), 16 + 4 + 132)
            server.forget()
            self.assertRegex(self.plane_of(50), "ok")
            self.assertEqual(several(server), [])
        return server

    def test_other_answers(self):
        def single(r):
            first, data, size = self.of(r)[0]
            return Reply(206, {"ETag": self.etag, "Content-Range": "bytes %d-%d/%d" % (
                first, first + len(data) - 1, size)}, data)
        whole = lambda r: Reply(200, {"ETag": self.etag}, self.frame)  # noqa: E731
        for known in (False, True):
            for make in (single, whole, *((lambda r, s=s: Reply(s, body=b"no")) for s in (400, 403, 404, 416, 501)),
                         lambda r: Reply(416, body=b"x" * 100000),
                         lambda r: Reply(302, {"Location": "ftp://elsewhere/a"})):
                with self.subTest(known=known):
                    self.check(make, known=known)

    def test_a_whole_is_not_heard_out(self):
        server = self.check(lambda r: Reply(200, {"ETag": self.etag}, self.frame * 4, drip=0.001, piece=20000))
        self.assertLess(self.transfers()[1], len(self.frame))
        self.assertIsNotNone(server)

    def uneven(self, request, n, at):
        """One part has `n` bytes less than it says."""
        bodies = [parts_of([part], last=False) for part in self.of(request)]
        bodies[at] = bodies[at][:-n] if n > 0 else bodies[at] + b"x" * -n
        reply = self.parts([])
        reply.body = b"".join(bodies) + reply.body
        return reply

    def test_parts_that_are_not_as_long_as_they_say(self):
        """The text after a part that is too short is not taken for the object's."""
        cases = itertools.product((False, True), (0, 1, -1), (1, 2, 3, 20, 60, 1000, -1, -2, -100))
        for known, at, n in runs.some(cases, sanitized=4):
            with self.subTest(n=n, at=at, known=known):
                self.check(lambda r, n=n, at=at: self.uneven(r, n, at), known=known)

    def test_bodies_that_are_none(self):
        size = len(self.frame)
        shifted = lambda r: [(a + 1, d, n) for a, d, n in self.of(r)]  # noqa: E731
        makes = {
            "another boundary": lambda r: self.parts(self.of(r), named="other"),
            "no boundary": lambda r: self.parts(self.of(r), headers={"Content-Type": "multipart/byteranges"}),
            "a long boundary": lambda r: self.parts(self.of(r), boundary="x" * 71),
            "one of several": lambda r: self.parts(self.of(r)[:1]),
            "all but one": lambda r: self.parts(self.of(r)[:-1]),
            "none": lambda r: self.parts([]),
            "no last boundary": lambda r: self.parts(self.of(r), last=False),
            "outside": lambda r: self.parts([(0, self.frame[:100], size)] + self.of(r)),
            "behind": lambda r: self.parts(self.of(r)[:1] + [(size - 10, self.frame[-10:], size)]),
            "shifted to the end": lambda r: self.parts(shifted(r)[-1:]),
            "another size": lambda r: self.parts([(a, d, n + 1) for a, d, n in self.of(r)]),
            "a smaller size": lambda r: self.parts([(a, d, a + len(d)) for a, d, _ in self.of(r)]),
            "compressed": lambda r: self.parts(self.of(r), headers={"Content-Encoding": "gzip"}),
            "a preamble": lambda r: Reply(206, {"ETag": self.etag, "Content-Type": TYPE + "x"}, b"y" * 300000),
            "a head": lambda r: Reply(206, {"ETag": self.etag, "Content-Type": TYPE + "x"},
                                      b"--x\r\nX: " + b"y" * (1 << 20)),
            "fields": lambda r: Reply(raw=b"HTTP/1.1 206 X\r\n" + b"X: %s\r\n" % (b"y" * 60000) * 17),
            "one field": lambda r: Reply(raw=b"HTTP/1.1 206 X\r\nX: %s\r\n\r\n" % (b"y" * (1 << 20))),
            "again and again": lambda r: self.parts(self.of(r)[:1] * 3000),
        }
        for known in (False, True):
            for name, make in makes.items():
                with self.subTest(name, known=known):
                    self.check(make, known=known)

    def test_bodies_that_are_odd_and_right(self):
        def coalesced(r):
            spans, out = spans_of(r), []
            for at in range(0, len(spans), 2):
                first, end = spans[at][0], spans[at:at + 2][-1][1]
                out.append((first, self.frame[first:end], len(self.frame)))
            return self.parts(out)

        def dripping(r):
            reply = self.parts(self.of(r))
            reply.drip, reply.piece = 0.0005, 997
            return reply
        makes = {
            "out of order": lambda r: self.parts(self.of(r)[::-1]),
            "doubled": lambda r: self.parts([p for p in self.of(r) for _ in range(2)]),
            "LF": lambda r: self.parts(self.of(r), line=b"\n"),
            "quoted": lambda r: self.parts(self.of(r), boundary="a b", named='"a b"'),
            "overlapping": lambda r: self.parts([p for a, d, n in self.of(r) for p in (
                (a, d[:len(d) // 2], n), (a + 10, d[10:], n))]),
            "in pieces": lambda r: self.parts([p for a, d, n in self.of(r) for p in (
                (a, d[:100], n), (a + 100, d[100:], n))]),
            "drips": dripping,
        }
        for name, make in makes.items():
            with self.subTest(name):
                server = self.check(make, refused=False)
                self.assertLess(len(server.requests), 60)
        server = self.check(coalesced, refused=False)
        self.assertGreater(len(several(server)), 0)

    def cut_once(self, where):
        left = [1]

        def make(request):
            if not left:
                return None
            left.clear()
            reply = self.parts(self.of(request))
            reply.cut, reply.resets = where(reply), True
            return reply
        return make

    def test_cut_bodies(self):
        inside = [lambda r, n=n: r.body.index(b"\r\n\r\n") + 4 + n for n in (-60, -10, -2, 0, 1, 300)]
        for where in [lambda r: 0, lambda r: len(r.body) // 2, lambda r: len(r.body) - 50, *inside]:
            for known in (False, True):
                server = self.check(self.cut_once(where), refused=False, known=known)
                self.assertGreater(len(several(server)), 1)  # which continues

    def test_what_is_cut_again_and_again_goes_one_by_one(self):
        def cut(request):
            reply = self.parts(self.of(request))
            reply.cut, reply.resets = 60, True
            return reply
        self.check(cut, refused=False)

    def test_failures(self):
        for status in (500, 502, 503, 429):
            n = [0]

            def busy(request):
                n[0] += 1
                return Reply(status) if n[0] == 1 else None  # noqa: B023
            server = self.check(busy, refused=False)
            self.assertGreater(len(several(server)), 2)
            self.check(lambda r, s=status: Reply(s), refused=False)
        self.check(lambda r: Reply(raw=b"", closes=True), refused=False)

    def test_without_retries(self):
        """A server that fails for several ranges is still asked for each of them."""
        server = self.serve()
        self.opened(server, "connections=4", "over=-1", "retries=-1")
        server.script = lambda r: Reply(500) if len(spans_of(r)) > 1 else None
        self.reads_right()

    def test_replaced_midway(self):
        for etags in (True, False):
            for when in range(0, 30, 3):
                server = self.serve(etags=etags)
                self.opened(server)

                def replace(request, server=server, when=when):  # also if it is late
                    if request.number == when:
                        server.objects["/a.b2nd"] = self.other
                    return None
                server.script = replace
                answer = self.plane_of()
                self.assertTrue(answer == "ok " + self.plane or
                                answer.startswith("error CATERVA_EIO"), (answer, etags, when))

    def test_wrong_bytes_once(self):
        server = self.serve()
        self.opened(server)
        left = [1]

        def flip(request):
            if not left or len(spans_of(request)) < 2:
                return None
            left.clear()
            reply = server.good(request)
            body = bytearray(reply.body)
            body[body.index(b"\r\n\r\n") + 40] ^= 1
            reply.body = bytes(body)
            return reply
        server.script = flip
        self.reads_right()


class BadNamed(Bad):
    """The same for servers whose name says that they send several parts: every connection is
    refused."""

    NAME = "nginx/1.22.1"


class Names(Case):
    """Servers that are known by name are asked for several ranges at once."""

    def asked(self, together=0, **options):
        """Returns the requests for more than one range, and the round trips of the read. With
        `together`, such requests are answered only when this many have arrived."""
        server = self.serve(**options)
        met = threading.Barrier(together) if together else None
        self.opened(server)
        server.script = lambda r: met and len(spans_of(r)) > 1 and met.wait(20) and None
        before = self.transfers()[2]
        self.reads_right()
        return several(server), self.transfers()[2] - before

    def test_no_round_is_lost(self):
        for name in ("nginx", "nginx/1.22.1", "Apache/2.4.57 (Debian)", "openresty/1.21", "Caddy"):
            asked, trips = self.asked(together=4, name=name)
            self.assertEqual((len(asked), trips), (8, 2), name)  # layouts, and all blocks
            self.assertGreater(min(len(spans_of(r)) for r in asked[4:]), 20)

    def test_others_are_asked_first(self):
        for name in (None, "AmazonS3", "cloudflare", "Varnish", "nginx-like/1", "MinIO", ""):
            asked, trips = self.asked(name=name)
            self.assertEqual((len(spans_of(asked[0])), trips), (4, 3), name)

    def test_what_is_passed_on(self):
        for field in ("Via", "Age", "X-Amz-Request-Id", "X-Cache"):
            server = self.serve(name="nginx")
            server.meta["/a.b2nd"] = {field: "1"}
            self.opened(server)
            self.reads_right()
            self.assertEqual(len(spans_of(several(server)[0])), 4, field)

    def test_no_more_parts_than_it_sends(self):
        asked, trips = self.asked(name="lighttpd/1.4.69")
        self.assertEqual(max(len(spans_of(r)) for r in asked), 10)
        self.assertLess(len(asked), 4 + 16)
        self.assertEqual(trips, 2)

    def test_a_name_that_is_wrong(self):
        """It costs one request per connection, and no additional round trip."""
        counts = []
        for name in (None, "nginx"):
            server = self.serve(name=name, parts=False, delay=0.02)
            self.opened(server, "connections=4", "over=1000")
            before = self.transfers()
            self.reads_right()
            told = [a - b for a, b in zip(self.transfers(), before)]
            refused = several(server)
            self.assertEqual(len(refused), 4 if name else 1)
            counts.append((len(server.requests), told[2]))
            self.assertLess(told[1], 2 * len(self.frame))
            self.assertEqual(told[4], 0)
            server.forget()
            self.assertRegex(self.plane_of(200), "ok")
            self.assertEqual(several(server), [])
        self.assertLessEqual(counts[1][0], counts[0][0] + 2 * 4)  # the rest is joined again
        self.assertEqual(counts[1][1], counts[0][1])


class Random(Case):
    def test_random_misbehaviour(self):
        seed = SEED if SEED is not None else random.SystemRandom().randrange(1 << 32)
        print("seed", seed)
        dice = random.Random(seed)
        server = self.serve()

        def fault(request):
            chance = dice.random()
            if chance > 0.3:
                return None
            reply = server.good(request)
            if reply.status != 206:
                return None
            if chance < 0.1:
                return Reply(dice.choice([500, 502, 503, 429]))
            if chance < 0.2:
                reply.cut = dice.randrange(len(reply.body) + 1)
                reply.resets = dice.random() < 0.5
            elif len(spans_of(request)) < 2 or "cache-control" in request.headers:
                return None  # bytes that are wrong twice are damaged
            elif chance < 0.22:
                return Reply(200, {"ETag": reply.headers["ETag"]}, self.frame)
            elif chance < 0.28:
                body = bytearray(reply.body)
                at = dice.choice([dice.randrange(len(body)), body.index(b"\r\n\r\n") - dice.randrange(100)])
                del body[max(at, 0):max(at, 0) + dice.randrange(50)]
                reply.body = bytes(body)
            else:
                reply.drip, reply.piece = 0.0005, max(1, len(reply.body) // 8)
            return reply

        right = wrong = errors = 0
        for run in range(RUNS):
            frames = [self.frame, self.other]
            server.objects["/a.b2nd"] = frames[0]
            server.script, server.name = None, dice.choice([None, "nginx", "lighttpd"])
            self.opened(server, "connections=%d" % dice.choice([1, 2, 4, 8]), "over=-1")
            change = dice.randrange(40) if dice.random() < 0.3 else -1

            def script(request):
                if request.number == change:  # noqa: B023
                    server.objects["/a.b2nd"] = frames[1]  # noqa: B023
                return fault(request)
            server.script = script
            answer = self.plane_of()
            if answer == "ok " + self.plane:
                right += 1
            elif answer.startswith("error CATERVA_EIO"):
                errors += 1
            else:
                wrong += 1
                print(answer)
        print("%d runs: %d right, %d errors, %d wrong" % (RUNS, right, errors, wrong))
        self.assertEqual(wrong, 0)
        self.assertGreater(right, 0.6 * RUNS)


if __name__ == "__main__":
    runs.main(sys.modules[__name__])

"""Large reads behind URLs: several waves are in flight at once, in bounded memory, and chunks
that are needed completely are read without their layouts.

The scripted server delays, cuts, refuses and changes responses while others are decoded."""

import functools
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
from runs import some  # noqa: E402
from scripted_server import Reply, spans_of  # noqa: E402
from tool_remote_case import CLI, OPENING, Reader, Served, convert  # noqa: E402

MIB = 1 << 20
# The most bytes that a read holds: with a cache folder, where half of them are copies that are
# written to it, and without. The least is more than one wave with the shortest round trips.
MOST = 64 * MIB
HELD = 32 * MIB
LEAST = 16 * MIB
SHAPE = (24, 1024, 1000)
# Chunks of 8 blocks and 1 MB; the last ones of the second axis are half outside.
PARTITION = ["--chunks", "1,400,700", "--blocks", "1,100,350", "--codec", "blosclz", "--level", "0",
             "-T", "1"]


@functools.cache
def array():
    """The items of the array of all tests, its frame, the position of a byte of an item, and what
    a read of all answers."""
    items = np.random.default_rng(3).integers(0, 1 << 30, SHAPE, "i4")
    with tempfile.TemporaryDirectory() as folder:
        path = convert(Path(folder), "a.b2nd", items, *PARTITION)
        frame = path.read_bytes()
        assert len(frame) > MOST + LEAST
        info = subprocess.run([CLI, "info", "--chunks", "--json", path], check=True,
                              stdout=subprocess.PIPE).stdout
        chunk = next(c for c in json.loads(info)["chunks"] if c["index"] == [12, 0, 0])
        reader = Reader()
        assert reader.say("open", path) == "ok"
        right = reader.say("read")
        reader.close()
    return items, frame, chunk["position"] + chunk["stored_bytes"] // 2, right


class Case(Served):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.items, cls.frame, cls.inside, cls.right = array()

    def opened(self, server, *words):
        self.assertEqual(self.reader.say("open", server.url("/a.b2nd"), "nocache", *words), "ok")
        server.forget()

    def transfers(self):
        return [int(n) for n in self.reader.say("transfers").split()]


def span(request):
    first, _, last = request.headers["range"].partition("=")[2].partition("-")
    return int(first), int(last) + 1


class Counts(Case):
    def test_no_byte_comes_twice_and_no_layout_first(self):
        server = self.serve()
        self.opened(server)
        self.assertEqual(self.reader.say("read"), self.right)
        spans = sorted(map(span, server.requests))
        for before, after in zip(spans, spans[1:]):
            self.assertLessEqual(before[1], after[0])
        self.assertLessEqual(server.sent, len(self.frame))
        self.assertGreater(min(b - a for a, b in spans[:-1]), 256 * 1024)
        self.assertLess(len(spans), 3 * len(self.frame) // MIB)

    def test_layouts_are_kept(self):
        server = self.serve()
        self.opened(server)
        self.assertEqual(self.reader.say("read"), self.right)
        before = self.transfers()
        self.assertEqual(self.reader.say("point", 3, 500, 11),
                         "ok " + self.items[3, 500, 11].tobytes().hex())
        self.assertEqual([a - b for a, b in zip(self.transfers(), before)][:3:2], [1, 1])

    def test_without_leave_layouts_come_first(self):
        server = self.serve()
        self.opened(server, "over=-1")
        self.assertEqual(self.reader.say("read"), self.right)
        self.assertGreater(sum(b - a < 9000 for r in server.requests for a, b in spans_of(r)), 8)

    def test_what_is_not_whole_is_read_in_blocks(self):
        """All of each chunk of the first column except a line: one block of each is left
        out."""
        # On a busy machine round trips take long, and then whole chunks may be cheaper.
        most, sent = 24 * (6 * 141000 + 20000), []
        while len(sent) < 8 and min(sent, default=most) >= most:
            server = self.serve()
            self.opened(server)
            self.assertIn("ok", self.reader.say("box", "0 24 0 300 0 700"))
            sent.append(server.sent)
        self.assertLess(min(sent), most, sent)


class Together(Case):
    def test_a_later_wave_does_not_wait_for_an_earlier_one(self):
        """The first response is delayed until more bytes have been requested than memory has
        room for before another wave is decoded."""
        server, later, held = self.serve(), threading.Event(), []
        asked, lock = [0], threading.Lock()

        def hold(request):
            with lock:
                asked[0] += sum(end - first for first, end in spans_of(request))
                if asked[0] > MOST:
                    later.set()
                is_first = not held
                held.append(request)
            if is_first:
                self.came = later.wait(25)  # less than its timeout
            return None
        self.opened(server)
        server.script = hold
        self.assertEqual(self.reader.say("read"), self.right)
        self.assertTrue(self.came)

    def most_asked(self, least, *words):
        """The bytes that a read requests while nothing is answered, with long round-trip
        times."""
        server, lock, asked = self.serve(delay=0.05), threading.Lock(), [0]
        enough, answers = threading.Event(), threading.Event()

        def hold(request):
            with lock:
                asked[0] += sum(end - first for first, end in spans_of(request))
                if asked[0] > least:
                    enough.set()
            answers.wait(25)  # less than its timeout
            return None

        def look():
            self.was_enough = enough.wait(20)
            time.sleep(1)  # for any further requests
            self.asked = asked[0]
            answers.set()
        self.opened(server, "connections=200", *words)
        server.script = hold
        looker = threading.Thread(target=look)
        looker.start()
        self.assertEqual(self.reader.say("read"), self.right)
        looker.join()
        self.assertTrue(self.was_enough)
        return self.asked

    def test_memory_bounds_what_is_asked_for_with_a_folder(self):
        with tempfile.TemporaryDirectory() as folder:
            self.assertLessEqual(self.most_asked(MOST // 4, "cache=" + folder), MOST // 2)

    def test_memory_bounds_what_is_held_with_a_folder(self):
        """The bytes that wait to be decoded, and the copies that are written to the folder,
        with long round-trip times and slow decoding."""
        cases = [(connections, dawdle) for connections in (1, 2, 16, 100) for dawdle in (0, 1500)]
        for connections, dawdle in some(cases, plain=3, sanitized=3):
            server = self.serve(delay=0.05)
            with self.subTest(connections=connections, dawdle=dawdle), \
                    tempfile.TemporaryDirectory() as folder:
                self.opened(server, "connections=%d" % connections, "dawdle=%d" % dawdle,
                            "cache=" + folder)
                self.reader.say("peak")
                self.assertEqual(self.reader.say("read"), self.right)
                peak = int(self.reader.say("peak"))
                self.assertLess(peak, MOST + 12 * MIB)
                self.assertGreater(peak, MOST // 2)
                server.forget()
                self.opened(server, "cache=" + folder)
                self.assertEqual(self.reader.say("read"), self.right)
                self.assertGreater(self.transfers()[5], len(self.frame) // 2)

    def test_all_is_asked_for_at_once(self):
        self.assertGreater(self.most_asked(MOST // 2), MOST + HELD)

    def test_memory_bounds_what_is_held(self):
        """However much arrives while nothing is decoded, and however many connections receive
        it."""
        for connections in some((1, 2, 16, 100), plain=1, sanitized=2):
            server = self.serve()
            self.reader.say("peak")
            self.assertEqual(
                self.reader.say("dawdle", 1500, server.url("/a.b2nd"), "nocache",
                                "connections=%d" % connections), self.right)
            peak = int(self.reader.say("peak"))
            self.assertLess(peak, HELD + 12 * MIB)
            self.assertGreater(peak, 4 * MIB)

    def large(self):
        """Chunks of 8 MB."""
        return convert(Path(self.scratch.name), "large.b2nd", self.items, "--chunks",
                       "2,1024,1000", "--blocks", "1,128,1000", "--codec", "blosclz", "--level",
                       "0", "-T", "1")

    def test_chunks_that_many_requests_bring(self):
        """More connections than there is memory for chunks, each of which is received in parts
        by several requests: a paused request never waits for one that waits for it."""
        path = self.large()
        server = self.serve(path.read_bytes())
        self.assertEqual(self.reader.say("open", path), "ok")
        right = self.reader.say("read")
        for connections in some((1, 16, 100), plain=1, sanitized=3):
            self.opened(server, "connections=%d" % connections)
            self.assertEqual(self.reader.say("read"), right)
            self.opened(server, "connections=%d" % connections, "retries=20")
            server.script = lambda r: Reply(503) if r.number % 3 == 0 else None
            self.assertEqual(self.reader.say("read"), right)
            server.script = None
            self.assertEqual(self.reader.say("threads", 4), "ok 0")

    def test_who_has_memory_waits_for_a_connection(self):
        """Several readers share connections. Each chunk takes two requests; the second one is
        refused for a second, during which all connections are used by requests that wait for
        memory, which is held by chunks that miss what was refused."""
        path = self.large()
        info = subprocess.run([CLI, "info", "--chunks", "--json", path], check=True,
                              stdout=subprocess.PIPE).stdout
        heads = {chunk["position"] for chunk in json.loads(info)["chunks"]}
        refused, lock = [], threading.Lock()

        def script(request):
            with lock:
                if spans_of(request)[0][0] in heads or len(refused) >= 6 * len(heads):
                    return None
                refused.append(request)
            return Reply(503, headers={"Retry-After": "1"})
        server = self.serve(path.read_bytes())
        self.opened(server, "connections=16", "retries=20")
        server.script = script
        self.assertEqual(self.reader.say("threads", 6), "ok 0")
        self.assertGreater(len(refused), len(heads))

    def test_who_dawdles_is_no_stalled_server(self):
        server = self.serve()
        self.assertEqual(
            self.reader.say("dawdle", 4000, server.url("/a.b2nd"), "nocache", "stall=1000"),
            self.right)
        self.assertEqual(self.transfers()[4], 0)

    def test_by_one_connection(self):
        server = self.serve()
        self.opened(server, "connections=1")
        self.assertEqual(self.reader.say("read"), self.right)


class Parts(Case):
    """Four of five blocks of each line of blocks: many such ranges arrive in one response, as
    parts, and when memory is used up the response pauses within one of them."""

    BOX = (0, SHAPE[0], 0, SHAPE[1], 0, 800)

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        path = convert(cls.folder, "b.b2nd", cls.items, "--chunks", "1,1024,1000", "--blocks",
                       "1,64,200", "--codec", "blosclz", "--level", "0", "-T", "1")
        cls.frame = path.read_bytes()
        reader = Reader()
        assert reader.say("open", path) == "ok"
        cls.part = reader.say("hash", *cls.BOX)
        reader.close()

    def reads(self, server, *words):
        """Returns the requests for several ranges; checks the peak of memory."""
        self.opened(server, "over=-1", *words)
        self.reader.say("peak")
        self.assertEqual(self.reader.say("hash", *self.BOX), self.part)
        self.assertLess(int(self.reader.say("peak")), HELD + 12 * MIB)
        return [r for r in server.requests if len(spans_of(r)) > 1]

    def test_memory_bounds_what_is_held(self):
        """Nothing is decoded for a while, and responses of 8 MB wait for memory in the middle
        of a part."""
        cases = [(connections, name) for connections in (2, 16, 100) for name in (None, "nginx")]
        for connections, name in some(cases, plain=1, sanitized=2):
            with self.subTest(connections=connections, name=name):
                asked = self.reads(self.serve(name=name), "dawdle=1000",
                                   "connections=%d" % connections)
                self.assertGreater(sum(len(spans_of(r)) for r in asked), 200)

    def test_bodies_that_are_cut(self):
        """Cut in parts that wait for memory, and elsewhere; the rest is requested in parts
        again, and if that is cut, too, one by one."""
        for connections in (2, 50):
            for often in (1, 3):
                server, cut, lock = self.serve(name="nginx"), {}, threading.Lock()

                def script(request):
                    spans = spans_of(request)
                    if len(spans) < 2:
                        return None
                    with lock:
                        n = cut[spans[-1]] = cut.get(spans[-1], 0) + 1  # noqa: B023
                    if n > often:  # noqa: B023
                        return None
                    reply = server.good(request)  # noqa: B023
                    reply.cut, reply.resets = len(reply.body) * (n + 1) // 5, bool(request.number % 2)
                    return reply
                server.script = script
                with self.subTest(connections=connections, often=often):
                    self.reads(server, "dawdle=700", "connections=%d" % connections)
                    self.assertGreater(self.transfers()[4], 1)

    def test_answers_that_are_refused_or_drip(self):
        server = self.serve(name="nginx")

        def script(request):
            if request.number % 4 == 1:
                return Reply(503)
            reply = server.good(request)
            if request.number % 4 == 2:
                reply.drip, reply.piece = 0.002, 100001
            return reply
        server.script = script
        for connections in (2, 16, 100):
            self.reads(server, "dawdle=300", "retries=20", "connections=%d" % connections)

    def test_from_threads(self):
        for connections in (3, 40):
            server = self.serve(name="nginx")
            self.opened(server, "over=-1", "connections=%d" % connections)
            self.assertEqual(self.reader.say("threads", 4), "ok 0")
            self.assertEqual(self.reader.say("hash", *self.BOX), self.part)


class Faults(Case):
    def test_bodies_that_are_cut_while_others_are_decoded(self):
        server, cut = self.serve(), set()

        def script(request):
            at = request.headers["range"]
            if request.number % 3 or at in cut:
                return None
            cut.add(at)
            reply = server.good(request)
            reply.cut, reply.resets = len(reply.body) // 2, bool(request.number % 2)
            return reply
        self.opened(server, "connections=60")
        server.script = script
        self.assertEqual(self.reader.say("read"), self.right)
        self.assertGreater(len(cut), 10)
        self.assertGreater(self.transfers()[4], 10)

    def test_an_answer_that_is_refused_while_others_are_decoded(self):
        server = self.serve()
        self.opened(server, "connections=60", "retries=-1")
        server.script = lambda r: None if r.number < 20 else Reply(500)
        self.assertRegex(self.reader.say("read"), r"\Aerror CATERVA_EIO chunk [0-9]+: .*500")
        server.script = None
        self.assertEqual(self.reader.say("read"), self.right)

    def flipped(self, server, n_times):
        """Flips one byte of a chunk in the middle."""
        seen = []

        def script(request):
            if len(spans_of(request)) > 1:
                return Reply(501)
            first, end = span(request)
            if not first <= self.inside < end or len(seen) >= n_times:
                return None
            seen.append(request.number)
            reply = server.good(request)
            body = bytearray(reply.body)
            body[self.inside - first] ^= 1
            reply.body = bytes(body)
            return reply
        server.script = script
        return seen

    def test_a_byte_that_was_wrong_once(self):
        server = self.serve()
        self.opened(server)
        seen = self.flipped(server, 1)
        self.assertEqual(self.reader.say("read"), self.right)
        self.assertEqual(len(seen), 1)

    def test_a_byte_that_is_wrong(self):
        server = self.serve()
        self.opened(server)
        self.flipped(server, 1000)
        self.assertRegex(self.reader.say("read"),
                         r"\Aerror CATERVA_ECORRUPT chunk [0-9]+: block [0-9]+ damaged")

    def test_replaced_while_waves_are_under_way(self):
        other = bytearray(self.frame)
        other[self.inside] ^= 1
        server = self.serve()

        def script(request):
            if request.number == 12:
                server.objects["/a.b2nd"] = bytes(other)
            return None
        self.opened(server)
        server.script = script
        self.assertRegex(self.reader.say("read"), "changed on the server")

    def test_stopping(self):
        """While some waves are decoded and others have not been answered."""
        # In milliseconds; an answer takes 30 s. ThreadSanitizer makes the program ten times slower.
        limit = 1000 if os.environ.get("CATERVA_SANITIZE") == "thread" else 100
        times = []
        while len(times) < 12 and min(times, default=limit) >= limit:  # the machine may be busy
            after = 9 + len(times) % 6  # of 16 requests
            server = self.serve()
            server.script = lambda r, n=after: None if r.number < n else Reply(delay=30)
            answer = self.reader.say("stop", 400, server.url("/a.b2nd"))
            self.assertRegex(answer, r"\Astopped ")
            times.append(float(answer.split()[1]))
        print("stopped after", times, "ms")
        self.assertLess(min(times), limit)


class Layouts(Case):
    def test_frames_of_other_writers(self):
        """Chunks without checksums, and with a dictionary, which are decoded together."""
        import blosc2
        items = self.items[:6]
        for cparams in ({"codec": blosc2.Codec.LZ4, "clevel": 1},
                        {"codec": blosc2.Codec.ZSTD, "clevel": 1, "use_dict": 1}):
            path = Path(self.scratch.name) / "other.b2nd"
            path.unlink(missing_ok=True)
            blosc2.asarray(items, urlpath=str(path), mode="w", chunks=(1, 400, 700),
                           blocks=(1, 100, 350), cparams=cparams)
            server = self.serve(path.read_bytes())
            self.assertEqual(self.reader.say("open", path), "ok")
            right = self.reader.say("read")
            self.opened(server)
            self.assertEqual(self.reader.say("read"), right)

    def test_chunks_that_hold_one_item(self):
        items = self.items.copy()
        items[::3] = 0
        items[1::3, :400, :700] = 5
        path = convert(Path(self.scratch.name), "some.b2nd", items, *PARTITION)
        server = self.serve(path.read_bytes())
        self.assertEqual(self.reader.say("open", path), "ok")
        right = self.reader.say("read")
        self.opened(server)
        self.assertEqual(self.reader.say("read"), right)

    def test_for_remote(self):
        source, path = self.folder / "a.b2nd", self.folder / "remote.b2nd"
        source.write_bytes(self.frame)
        subprocess.run([CLI, "repack", "-f", source, path, "--for-remote", "-T", "1"],
                       check=True, stdout=subprocess.DEVNULL)
        server = self.serve(path.read_bytes())
        self.opened(server)
        self.assertEqual(self.reader.say("read"), self.right)
        self.assertLessEqual(server.sent, path.stat().st_size + OPENING)

    def test_with_a_folder(self):
        with tempfile.TemporaryDirectory() as folder:
            server = self.serve()
            for _ in range(2):
                self.opened(server, "cache=" + folder)
                self.assertEqual(self.reader.say("read"), self.right)
            self.assertEqual(len(server.requests), 0)


if __name__ == "__main__":
    unittest.main()

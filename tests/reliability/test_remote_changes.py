"""Sealed objects that are replaced while they are read: a handle returns items of the version
that it opened, or an error that the object changed, and never items of both versions.

usage: test_remote_changes.py [--runs N] [--seed S]: N runs with random changes."""

import collections
import itertools
import random
import sys

from tool_remote_case import Case as RemoteCase
import runs
from test_remote_layouts import repack
from scripted_server import ScriptedServer

RUNS, SEED = 300, None
SERVERS = {"etags": {}, "no marks": {"etags": False}, "dates": {"etags": False, "dates": True},
           "an offset": {"etags": False}}
OFFSET = 70000  # of the frame in the object, so that opening takes more requests
READERS = ("", "over=-1", "over=0", "connections=1", "connections=2 over=-1")


class Change:
    """A script of a server: at request number `when` of a run the object is replaced. `way`:
    "stays"; "back", only for this request; or "cut", in the middle of a response, which is then
    cut off."""

    def __init__(self, server, frames, path, when, way):
        self.server, self.frames, self.path = server, frames, path
        self.when, self.way = when, way
        self.numbers, self.done = itertools.count(), False
        server.objects["/a.b2nd"] = frames[0]

    def __call__(self, request):
        if request.path != self.path:  # a late one of an earlier run
            return None
        number = next(self.numbers)
        if self.way == "back" and number > self.when:
            self.server.objects["/a.b2nd"] = self.frames[0]
        if number != self.when:
            return None
        reply = self.server.good(request) if self.way == "cut" else None
        self.server.objects["/a.b2nd"], self.done = self.frames[1], True
        if reply:
            reply.cut = len(reply.body) // 2
        return reply


class Case(RemoteCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        far = [repack(cls.folder / name).read_bytes() for name in ("a.b2nd", "b.b2nd")]
        cls.pairs = {"same size": [cls.frame, cls.other], "with layouts": far,
                     "gets layouts": [cls.frame, far[1]], "loses them": [far[0], cls.other]}

    def setUp(self):
        super().setUp()
        self.seed = SEED if SEED is not None else random.SystemRandom().randrange(1 << 32)
        print("seed", self.seed)
        self.dice = random.Random(self.seed)
        self.counts = collections.Counter()

    def version(self, answer, at):
        """The version of the items in `answer`, 0 or 1; None: the error says that the object
        changed."""
        if answer.startswith("error"):
            # An object that was replaced only for one request of the opening looks like damage
            # if the server sends no validators.
            self.assertRegex(answer, r"\Aerror CATERVA_EIO .*changed on the server" +
                             (r"|\Aerror CATERVA_ECORRUPT " if self.was_back else ""))
            return None
        items = (self.items, self.items[::-1])
        wanted = [("ok " + v[at].tobytes().hex()) for v in items] if at else \
            ["ok " + self.hash, "ok " + self.other_hash]
        self.assertIn(answer, wanted, "neither of the versions")
        return wanted.index(answer)

    def some_point(self):
        while True:
            at = tuple(self.dice.randrange(n) for n in self.items.shape)
            if self.items[at] != self.items[::-1][at]:
                return at

    def reads(self):
        """The versions that one handle returns, until it reports a change."""
        for at in [self.some_point() for _ in range(self.dice.randrange(6))] + [None]:
            answer = self.reader.say("point", *at) if at else self.reader.say("read")
            version = self.version(answer, at)
            self.counts["changed" if version is None else "right"] += 1
            if version is None:
                return
            yield version

    def run_once(self, server, run, offset):
        """One opening, reads and a refresh, with one change in between."""
        path = "/a.b2nd?run=%d" % run
        pair, way = self.dice.choice(list(self.pairs)), self.dice.choice(("stays", "back", "cut"))
        frames = [bytes(offset) + frame for frame in self.pairs[pair]]
        change = Change(server, frames, path, self.dice.randrange(6), way)
        self.was_back = offset > 0 and way == "back"
        server.script = change
        opened = self.reader.say("open", server.url(path), "nocache", "offset=%d" % offset,
                                 self.dice.choice(READERS))
        before = 1 if change.done else 0  # it was replaced while it was opened
        if opened != "ok":
            self.assertTrue(before, opened)
            self.assertIsNone(self.version(opened, None))
            self.counts["not opened"] += 1
            return
        versions = set(self.reads())
        self.assertLessEqual(len(versions), 1, "a handle followed a change")
        self.assertLessEqual(versions, {0, before}, "not the version that was opened")
        self.counts["replaced"] += change.done
        server.script, self.was_back = None, False
        now = server.objects["/a.b2nd"]
        self.assertEqual(self.reader.say("refresh"), "ok")
        self.assertEqual(self.version(self.reader.say("read"), None), frames.index(now))


class Changes(Case):
    def check(self, kind, offset=0):
        server = ScriptedServer(**SERVERS[kind])
        self.addCleanup(server.close)
        for run in range(RUNS // len(SERVERS)):
            self.run_once(server, run, offset)
            if run % 50 == 49:
                server.settle()
                server.forget()
        print("%s: %d runs, %s, 0 mixed" % (kind, RUNS // len(SERVERS), dict(self.counts)))

    def test_with_etags(self):
        self.check("etags")

    def test_without_any_mark(self):
        self.check("no marks")

    def test_with_dates(self):
        self.check("dates")

    def test_at_an_offset(self):
        self.check("an offset", OFFSET)


if __name__ == "__main__":
    runs.main(sys.modules[__name__])

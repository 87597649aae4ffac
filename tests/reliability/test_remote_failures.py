"""What a server fails to deliver is an I/O error, and never damage: lists of trees, reads
around damage and verify. Only bytes that arrived wrong twice are damaged, and the missing
object of one chunk.

usage: test_remote_failures.py [--runs N] [--seed S]: N runs with random faults."""

import random
import shutil
import subprocess
import sys

import numpy as np

from tool_remote_case import CLI, Case as RemoteCase, Served, convert, fnv
import runs
from scripted_server import Reply

RUNS, SEED = 200, None
ARRAYS = 24


def cli(*words):
    return subprocess.run([CLI, *map(str, words)], capture_output=True, text=True)


def make_tree(folder):
    """Arrays larger than what opening the archive reads of them, groups, attributes, arrays
    inside and outside embed.b2e, and a file."""
    items = np.random.default_rng(5).integers(0, 1 << 30, (64, 90)).astype("i4")
    tree = folder / "t.b2d"
    np.save(folder / "in.npy", items)
    cli("convert", folder / "in.npy", "%s::/g/x00" % tree, "--level", "0").check_returncode()
    for i in range(1, ARRAYS):
        shutil.copy(tree / "g" / "x00.b2nd", tree / "g" / ("x%02d.b2nd" % i))
    (tree / "notes.txt").write_text("notes\n" * 100)
    cli("attr", "set", tree, "title", '"T"').check_returncode()
    cli("pack", tree, folder / "t.b2z").check_returncode()
    return items, (folder / "t.b2z").read_bytes()


def flipped(data, at):
    return data[:at] + bytes([data[at] ^ 0x10]) + data[at + 1:]


class Trees(Served):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.items, cls.archive = make_tree(cls.folder)
        cls.hash = fnv(cls.items.tobytes())

    def serve(self, archive=None):
        server = super().serve(b"")
        server.objects = {"/t.b2z": archive or self.archive}
        return server

    def say(self, *words):
        return self.reader.say(*words)

    def opened(self, server, *words):
        self.assertEqual(self.say("tree", server.url("/t.b2z"), *words), "ok")

    def listed(self):
        server = self.serve()
        self.opened(server)
        answer = self.say("list")
        self.assertEqual(answer.count(":array:"), ARRAYS)
        self.assertIn(" /notes.txt:file:600", answer)
        return answer

    FAULTS = {"status 503": lambda r, good: Reply(503), "status 403": lambda r, good: Reply(403),
              "status 404": lambda r, good: Reply(404), "status 401": lambda r, good: Reply(401),
              "status 410": lambda r, good: Reply(410), "status 412": lambda r, good: Reply(412),
              "no answer": lambda r, good: Reply(raw=b""),
              "a cut body": lambda r, good: Reply(good.status, good.headers, good.body, cut=1),
              "no ranges": lambda r, good: Reply(200, {"ETag": good.headers["ETag"]},
                                                 b"x" * len(Trees.archive))}

    def test_a_list_is_whole_or_fails(self):
        """Every request fails in turn, in every way."""
        whole = self.listed()
        for name, fault in self.FAULTS.items():
            for which in range(3):
                server = self.serve()
                self.opened(server, "retries=-1")
                server.forget()
                server.script = lambda r: fault(r, server.good(r)) if r.number >= which else None
                answer = self.say("list")
                with self.subTest(fault=name, request=which):
                    if len(server.requests) > which or which == 0:
                        self.assertRegex(answer, r"\Aerror CATERVA_EIO ")
                    else:
                        self.assertEqual(answer, whole)

    def test_a_tree_that_is_published_again_in_between(self):
        whole = self.listed()
        for etags in (True, False):
            server = self.serve()
            server.etags, server.dates = etags, not etags
            self.opened(server)
            server.objects["/t.b2z"] = self.archive + b"\0"
            self.assertRegex(self.say("list"), r"\Aerror CATERVA_EIO .*changed on the server")
            self.assertRegex(self.say("check"), r"\Aerror CATERVA_EIO .*changed on the server")
            server.objects["/t.b2z"] = self.archive
            self.assertEqual(self.say("list"), whole)

    def test_one_that_is_gone_is_no_empty_tree(self):
        server = self.serve()
        self.opened(server, "retries=-1")
        server.objects.clear()
        for words in (["list"], ["in", "/g/x03"], ["check"]):
            self.assertRegex(self.say(*words), r"\Aerror CATERVA_EIO .*status 404", words)

    def test_a_flipped_bit_is_fetched_again(self):
        """Wrong in the first response that contains the bit; wrong in every one: the member is
        damaged."""
        whole = self.listed()
        frame = self.archive.index(b"b2frame", self.archive.index(b"g/x05.b2nd")) - 2
        name = self.archive.index(b"g/x07.b2nd")
        kind = self.archive.index(b"b2nd", frame)
        for at in (frame + 3, frame + 14, name, name - 30, kind):
            for often in (1, 1000):
                server, left = self.serve(), [often]
                self.opened(server)

                def flip(request):
                    reply = server.good(request)
                    for a, b in spans(request, len(self.archive)):
                        if a <= at < b and left[0] > 0 and len(reply.body) == b - a:
                            left[0] -= 1
                            reply.body = flipped(reply.body, at - a)
                    return reply
                server.script, server.parts = flip, False
                answer = self.say("list")
                with self.subTest(at=at - frame, often=often):
                    self.assertLess(left[0], often)
                    if often == 1:
                        self.assertEqual(answer, whole)
                    else:
                        changed = [(a, b) for a, b in zip(whole.split(), answer.split()) if a != b]
                        self.assertEqual(len(changed), 1, answer)
                        self.assertNotIn(":array:", changed[0][1])

    def test_flipped_bits_of_the_archives_directory(self):
        """A name that arrived wrong while opening does not become a damaged or another member
        of the list."""
        whole = self.listed()
        at = self.archive.rindex(b"g/x09.b2nd")
        record = at - 46
        for place in (at + 4, at + 7, record + 8, record + 10, at + 1):  # flags, method; group
            server, left = self.serve(), [1]

            def flip(request):
                reply = server.good(request)
                for a, b in spans(request, len(self.archive)):
                    if a <= place < b and left[0] > 0 and len(reply.body) == b - a:
                        left[0] -= 1
                        reply.body = flipped(reply.body, place - a)
                return reply
            server.script = flip
            opened = self.say("tree", server.url("/t.b2z"))
            answer = self.say("list") if opened == "ok" else opened
            with self.subTest(place=place - record):
                self.assertEqual(left[0], 0)
                if answer != whole:
                    self.assertRegex(answer, r"\Aerror CATERVA_EIO .*(damaged in transit|changed on the server)")

    def small(self, fill, more=0):
        """An archive of two arrays and a group's attributes, small enough to be read completely
        unless there is a third array of `more` random bytes."""
        tree, archive = self.folder / "s.b2d", self.folder / "s.b2z"
        shutil.rmtree(tree, ignore_errors=True)
        for name in ("g/a", "g/b"):
            cli("create", "%s::/%s" % (tree, name), "--shape", "50", "--dtype", "<i4", "--fill",
                fill).check_returncode()
        cli("attr", "set", "%s::/g" % tree, "n", fill).check_returncode()
        if more:
            np.save(self.folder / "z.npy", np.random.default_rng(1).integers(0, 256, more, "u1"))
            cli("convert", self.folder / "z.npy", "%s::/z" % tree).check_returncode()
        cli("pack", "-f", tree, archive).check_returncode()
        return archive.read_bytes()

    def test_each_byte_that_came_wrong_once(self):
        """Bits of the directory and of embed.b2e that arrive wrong while opening: no member is
        missing, damaged or another one, neither in lists nor when it is opened."""
        archive = self.small(5)
        begin = archive.rindex(b"PK\3\4", 0, archive.index(b"PK\1\2"))  # embed.b2e is last
        server = self.serve(archive)
        self.opened(server)
        asked = (["list"], ["in", "/g/a"], ["in", "/none"], ["check"])
        right = [self.say(*words).replace(server.url(""), "") for words in asked]
        for at in runs.some(range(begin, len(archive)), sanitized=4):
            server = self.serve(archive)

            def flip(request):
                reply = server.good(request)
                for a, b in spans(request, len(archive)):
                    if request.number == 0 and a <= at < b and len(reply.body) == b - a:
                        bits = 1 << at % 8
                        reply.body = (archive[a:at] + bytes([archive[at] ^ bits]) +
                                      archive[at + 1:b])
                return reply
            server.script = flip
            opened = self.say("tree", server.url("/t.b2z"))
            for words, expected in zip(asked, right):
                answer = self.say(*words) if opened == "ok" else opened
                answer = answer.replace(server.url(""), "")
                with self.subTest(at=at - begin, words=words):
                    if answer != expected:
                        self.assertRegex(answer, r"\Aerror CATERVA_EIO ")

    def test_verify_finds_what_it_finds_in_a_file(self):
        """Bits of the directory that are wrong in the archive itself."""
        archive = self.small(5)
        begin, file = archive.index(b"PK\1\2"), self.folder / "bad.b2z"
        for at in range(begin, len(archive), 7):
            bad = flipped(archive, at)
            file.write_bytes(bad)
            server = self.serve(bad)
            with self.subTest(at=at - begin):
                here = cli("verify", file).returncode
                self.assertEqual(cli("verify", server.url("/t.b2z")).returncode != 0, here != 0)

    def test_an_archive_of_equal_size_in_its_place(self):
        """Without ETag and date the headers before the members show it."""
        one, two = self.small(5, 200000), self.small(6, 200000)
        self.assertEqual(len(one), len(two))
        for words in (["list"], ["in", "/g/b"], ["check"]):
            server = self.serve(one)
            server.etags = server.dates = False
            self.opened(server)
            server.objects["/t.b2z"] = two
            self.assertRegex(self.say(*words), r"\Aerror CATERVA_EIO .*(changed|replaced)", words)

    def test_commands_end_with_the_error(self):
        """If only one request failed and was repeated, the output is complete. Otherwise lines
        before the error may be printed, and the status is that of the error."""
        server = self.serve()
        url = server.url("/t.b2z")
        for words in (["ls"], ["ls", "-l", "-r"], ["ls", "--json", "-r"], ["tree"], ["info"],
                      ["info", "--json"], ["verify"], ["verify", "--json"], ["diff", url]):
            server.script = None
            server.forget()
            whole = cli(*words, url)
            self.assertEqual(whole.returncode, 0, words)
            n = len(server.requests)
            for which in {1, n // 2, n - 1}:
                for stays in (False, True):
                    server.forget()
                    server.script = lambda r: Reply(403) if r.number == which or \
                        (stays and r.number > which) else None
                    done = cli(*words, url)
                    refused = len(server.requests) > which
                    with self.subTest(words=words[:3], request=which, of=n, stays=stays):
                        if done.returncode != 0 or (stays and refused):
                            self.assertEqual(done.returncode, 3, done.stdout + done.stderr)
                            self.assertIn("status 403", done.stderr)
                        else:
                            self.assertEqual(done.stdout, whole.stdout)

    def test_random_faults(self):
        """Lists, opens, reads and attributes return what they return without faults, or an
        error."""
        whole = self.listed()
        server = self.serve()
        self.opened(server)
        expected = {("list",): whole, ("read",): "ok " + self.hash, ("names",): "ok title",
                    ("around",): "ok %s 0" % self.hash, ("check",): self.say("check"),
                    ("verify",): "ok 0"}
        seed = SEED if SEED is not None else random.SystemRandom().randrange(1 << 32)
        print("seed", seed)
        good = failed = 0
        for run in range(RUNS):
            rng = random.Random("%d %d" % (seed, run))
            server = self.serve()
            server.parts, server.etags = rng.random() < 0.7, rng.random() < 0.8
            server.dates = not server.etags
            server.script = misbehaving(server, rng, rng.choice([0.05, 0.2, 0.5]))
            opened = self.say("tree", server.url("/t.b2z"), "retries=%d" % rng.choice([-1, 1]))
            if opened != "ok":
                self.assertRegex(opened, r"\Aerror CATERVA_(EIO|ENOTFOUND|EUNSUPPORTED) |status 416")
                continue
            for _ in range(5):
                word = rng.choice(["list", "list", "read", "around", "verify", "names", "check"])
                if word in ("read", "around", "verify"):
                    answer = self.say("in", "/g/x%02d" % rng.randrange(ARRAYS))
                    if answer != "ok":
                        self.assertRegex(answer, r"\Aerror CATERVA_EIO ", (seed, run))
                        continue
                answer = self.say(word)
                if answer == expected[(word,)]:
                    good += 1
                else:
                    failed += 1
                    self.assertRegex(answer, r"\Aerror CATERVA_EIO ", (seed, run, word))
        print(good, "right answers,", failed, "errors")
        self.assertGreater(good, RUNS // 4)
        self.assertGreater(failed, RUNS // 4)


def spans(request, size):
    """[first, end) of each range of a request."""
    text = request.headers.get("range", "bytes=0-").removeprefix("bytes=")
    for part in text.split(","):
        first, _, last = part.partition("-")
        if first:
            yield int(first), min(size, int(last) + 1) if last else size
        else:
            yield max(0, size - int(last)), size


def misbehaving(server, rng, often):
    """A script whose faults are those of a connection. A bit is flipped in the first response
    that contains it and in no later one: bytes that are wrong twice are damaged."""
    flips = [rng.random() < 0.3]

    def script(request):
        good = server.good(request)
        if rng.random() >= often or good.status >= 400:
            return good
        way = rng.randrange(9)
        if way < 4:
            return Reply(rng.choice([500, 503, 429, 401, 403, 404, 410, 412, 400, 416, 501, 507]))
        if way == 4:
            return Reply(raw=rng.choice([b"", b"HTTP/1.1 200 X\r\n", b"nonsense\r\n\r\n"]))
        if way == 5:
            return Reply(good.status, good.headers, good.body, cut=rng.randrange(len(good.body)),
                         resets=rng.random() < 0.5)
        if way == 6:
            return Reply(good.status, good.headers, good.body, closes=True)
        if way == 7 and flips[0] and len(good.body) > 0 and not request.headers.get("range", "").startswith("bytes=-"):
            flips[0] = False
            return Reply(good.status, good.headers, flipped(good.body, rng.randrange(len(good.body))))
        if way == 8:
            server.objects["/t.b2z"] = server.objects["/t.b2z"][::-1]
            return Reply(412)
        return good
    return script


class Around(RemoteCase):
    """Reads around damage, and verify, of one object."""

    def test_an_object_that_is_gone(self):
        for status in (404, 403, 410, 401, 503, 500):
            server = self.serve()
            self.opened(server, "retries=-1", "nocache")
            server.script = lambda r: Reply(status)
            for word in ("around", "verify", "read"):
                with self.subTest(status=status, word=word):
                    self.assertRegex(self.reader.say(word), r"\Aerror CATERVA_EIO .*%d" % status)
            server.script = None
            self.assertEqual(self.reader.say("around"), "ok %s 0" % self.hash)

    def test_half_of_it_is_refused(self):
        """A read fails if chunks could not be read."""
        server = self.serve()
        self.opened(server, "retries=-1", "nocache", "over=-1")
        server.script = lambda r: Reply(403) if r.number % 2 else None
        for word in ("around", "verify"):
            self.assertRegex(self.reader.say(word), r"\Aerror CATERVA_EIO .*403")

    def test_closed_connections(self):
        server = self.serve()
        self.opened(server, "retries=-1", "nocache")
        server.script = lambda r: Reply(raw=b"")
        for word in ("around", "verify"):
            self.assertRegex(self.reader.say(word), r"\Aerror CATERVA_EIO ")

    def test_the_command(self):
        server = self.serve()
        place = server.url("/a.b2nd")
        server.script = lambda r: Reply(404) if r.number > 0 else None
        done = cli("get", place, "--skip-damaged", "-o", self.folder / "o.npy", "-f")
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn("status 404", done.stderr)
        self.assertFalse((self.folder / "o.npy").exists())


class Directories(Served):
    """Sparse directories: the object of a single chunk may be missing."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        items = np.random.default_rng(9).integers(0, 1 << 30, (40, 60)).astype("i4")
        convert(cls.folder, "d.b2nd", items, "--chunks", "10,60", "--blocks", "5,60", "--sparse")
        cls.objects = {"/d.b2nd/" + f.name: f.read_bytes()
                       for f in (cls.folder / "d.b2nd").iterdir() if f.suffix == ".chunk"
                       or f.name == "chunks.b2frame"}
        cls.items = items
        cls.hash = fnv(items.tobytes())

    def serve(self):
        server = super().serve(b"")
        server.objects = dict(self.objects)
        return server

    def chunks(self):
        return sorted(path for path in self.objects if path.endswith(".chunk"))

    def opened(self, place):
        self.assertEqual(self.reader.say("open", place, "retries=-1", "nocache"), "ok")

    def lacking(self, n):
        """The items without those of the n-th chunk object."""
        items = self.items.copy()
        items[10 * n:10 * n + 10] = 0
        return fnv(items.tobytes())

    def test_one_chunk_is_missing(self):
        server = self.serve()
        self.opened(server.url("/d.b2nd"))
        del server.objects[self.chunks()[2]]
        answers = {"ok %s 1" % self.lacking(n) for n in range(4)}
        self.assertIn(self.reader.say("around"), answers)
        self.assertEqual(self.reader.say("verify"), "ok 1")

    def test_all_of_it_is_gone(self):
        server = self.serve()
        self.opened(server.url("/d.b2nd"))
        server.objects.clear()
        for word in ("around", "verify"):
            self.assertRegex(self.reader.say(word), r"\Aerror CATERVA_EIO .*/d.b2nd: .*404")

    def test_it_is_another_by_now(self):
        server = self.serve()
        self.opened(server.url("/d.b2nd"))
        del server.objects[self.chunks()[2]]
        server.objects["/d.b2nd/chunks.b2frame"] += b"\0"
        for word in ("around", "verify"):
            self.assertRegex(self.reader.say(word), r"\Aerror CATERVA_EIO .*changed on the server")

    def test_a_chunk_is_refused(self):
        for reply in (Reply(403), Reply(503), Reply(401), Reply(raw=b""), Reply(416),
                      Reply(416, {"Content-Range": "bytes */1056"})):
            server = self.serve()
            self.opened(server.url("/d.b2nd"))
            server.script = lambda r: reply if r.path == self.chunks()[1] else None
            for word in ("around", "verify"):
                with self.subTest(status=reply.status, word=word):
                    self.assertRegex(self.reader.say(word), r"\Aerror CATERVA_EIO ")

    def test_a_directory_of_this_machine(self):
        copy = self.folder / "copy.b2nd"
        for how in ("chunk", "all"):
            shutil.rmtree(copy, ignore_errors=True)
            shutil.copytree(self.folder / "d.b2nd", copy)
            self.opened(copy)
            if how == "chunk":
                next(copy.glob("*1.chunk")).unlink()
                self.assertRegex(self.reader.say("around"), r"\Aok \w+ 1\Z")
                self.assertEqual(self.reader.say("verify"), "ok 1")
            else:
                shutil.rmtree(copy)
                for word in ("around", "verify"):
                    self.assertRegex(self.reader.say(word),
                                     r"\Aerror CATERVA_ENOTFOUND .*has no chunks.b2frame")


if __name__ == "__main__":
    runs.main(sys.modules[__name__])

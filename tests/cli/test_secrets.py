"""No command prints users, passwords or queries of URLs.

Every command is run with such URLs, readable and not, and both of its output streams are
searched."""

import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
from runs import some  # noqa: E402
from scripted_server import ScriptedServer  # noqa: E402

CLI = os.environ.get("CATERVA_CLI", "caterva")
QUERY, FRAGMENT = "?X-Amz-Signature=HUSH-QUERY", "#HUSH-FRAGMENT"

# The arguments of each command, with URL for the URL and FILE and NEW for local paths.
COMMANDS = {
    "info": ["URL", "--short URL", "--json URL", "--chunks URL", "--trace URL"],
    "get": ["URL 0 --to text", "URL -o NEW", "URL --skip-damaged -o NEW", "URL 99", "FILE -o URL"],
    "put": ["URL 0 --fill 3", "FILE 0 URL"],
    "append": ["URL FILE", "FILE URL"],
    "create": ["URL --shape 3 --dtype <i4", "-f URL --shape 3 --dtype <i4"],
    "convert": ["URL NEW", "FILE URL", "-f FILE URL"],
    "repack": ["URL NEW", "FILE URL", "-f FILE URL", "FILE URL --for-remote"],
    "resize": ["URL 3,3,3"],
    "verify": ["URL", "--short URL", "--json URL", "--trace URL", "--quick URL"],
    "repair": ["URL", "URL -o NEW", "FILE -o URL", "--json URL"],
    "seal": ["URL", "--json URL"],
    "compact": ["URL", "--json URL"],
    "diff": ["URL FILE", "FILE URL", "--json URL FILE", "URL URL", "URL::/g TREE", "URL TREE"],
    "stats": ["URL", "--json URL", "--bins 4 URL"],
    "view": ["URL", "URL 0"],
    "attr": ["list URL", "list --json URL", "get URL no", "set URL a 1", "rm URL no"],
    "jobs": ["begin URL", "list URL", "list --json URL", "merge URL", "discard URL x"],
    "ls": ["URL", "-l URL", "--json URL", "-r URL", "URL FILE"],
    "tree": ["URL"],
    "pack": ["URL NEW.b2z", "TREE URL"],
    "unpack": ["URL NEW.b2d", "ARCHIVE URL"],
    "publish": ["FILE URL", "FILE URL --json", "URL URL", "FILE.none URL", "FILE URL --if-match bad",
                "FILE URL --read-url URL", "FILE URL --resume STATE", "FILE URL --resume STATE --abandon"],
    "bench": ["URL", "--json URL"],
    "tune": ["URL --time 10ms --read 0", "--json URL --time 10ms --read 0"],
    "serve": ["URL", "FILE URL"],
    "completion": [],
}


def run(*words, **options):
    kept = {k: v for k, v in os.environ.items() if not k.startswith("AWS_")}
    return subprocess.run([CLI, *map(str, words)], capture_output=True, text=True, errors="replace",
                          stdin=subprocess.DEVNULL, timeout=120, env=kept, **options)


class Secrets(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.scratch.cleanup)
        cls.folder = folder = Path(cls.scratch.name)
        np.save(folder / "in.npy", np.arange(600, dtype="i4").reshape(6, 10, 10))
        for words in (["convert", "in.npy", "local.b2nd"], ["convert", "in.npy", "tree.b2d::/g/a"],
                      ["pack", "tree.b2d", "tree.b2z"]):
            made = run(*words, cwd=folder)
            assert made.returncode == 0, made.stderr
        cls.server = ScriptedServer()
        cls.addClassCleanup(cls.server.close)
        cls.sound = (folder / "local.b2nd").read_bytes()
        for name in ("local.b2nd", "tree.b2z"):
            cls.server.objects["/" + name] = (folder / name).read_bytes()
        damaged = bytearray(cls.sound)
        damaged[len(damaged) // 3] ^= 0x55
        cls.server.objects["/damaged.b2nd"] = bytes(damaged)

    def places(self):
        bare = self.server.url("")
        with_user = bare.replace("http://", "http://HUSH-USER:HUSH@HUSH-WORD@")
        for name in ("/local.b2nd", "/damaged.b2nd", "/tree.b2z", "/none.b2nd"):
            yield bare + name + QUERY
            yield with_user + name + QUERY
        yield bare + "/tree.b2z" + QUERY + "::/g/a"
        yield bare + "/tree.b2z" + QUERY + "::/g/none"
        yield bare + "/local.b2nd" + QUERY + FRAGMENT
        yield with_user + "/local.b2nd"
        yield with_user.upper() + "/local.b2nd"
        yield bare.replace("http://", "http://HUSH-USER:HUSH/WORD?HUSH@") + "/local.b2nd"
        yield "http://" + QUERY

    def words_of(self, line, place, fresh):
        names = {"FILE": "local.b2nd", "TREE": "tree.b2d", "ARCHIVE": "tree.b2z", "STATE": "state",
                 "FILE.none": "none.b2nd"}
        for word in line.split():
            if word.startswith("NEW"):
                word = "new%d%s" % (fresh, word[3:] or ".b2nd")
            yield names.get(word) or word.replace("URL", place)

    def test_every_command_keeps_them(self):
        cases = [(place, command, line) for place in self.places()
                 for command, lines in COMMANDS.items() for line in lines]
        for fresh, (place, command, line) in enumerate(some(cases, sanitized=7)):
            words = list(self.words_of(line, place, fresh))
            self.server.objects["/local.b2nd"] = self.sound  # an earlier case may publish there
            done = run(command, *words, cwd=self.folder)
            self.assertNotIn("HUSH", done.stdout + done.stderr, (command, words))
            self.assertIn(done.returncode, range(6), (command, words, done.stderr))

    def test_all_commands_are_here(self):
        said = run("help").stdout.split("commands:\n")[1].split("\n\n")[0]
        there = {line.split()[0] for line in said.splitlines() if line.startswith("  ") and
                 not line.startswith("   ")}
        self.assertEqual(there, set(COMMANDS))

    def test_what_is_left_names_the_place(self):
        bare = self.server.url("")
        place = bare + "/local.b2nd"
        for words in (["info"], ["verify"], ["stats"], ["verify", "--short"], ["info", "--short"],
                      ["info", "--json"], ["seal"]):
            done = run(*words, place + QUERY)
            self.assertIn(place, done.stdout + done.stderr, words)
        done = run("verify", bare + "/tree.b2z" + QUERY)
        self.assertIn(bare + "/tree.b2z::/g/a", done.stdout)
        self.assertIn(bare + "/a@1.b2nd", run("info", bare + "/a@1.b2nd?x").stderr)

    def test_a_url_can_be_read_only(self):
        """A command that would write to a URL refuses it, always with the same message, and
        leaves no file."""
        before = sorted(self.folder.iterdir())
        for place in (self.server.url("/local.b2nd"), "s3://bucket/key", "HTTP://h/a"):
            for line in ("put URL 0 --fill 3", "append URL local.b2nd", "resize URL 3,3,3", "seal URL",
                         "create URL --shape 3 --dtype <i4", "convert in.npy URL", "repair URL",
                         "convert -f local.b2nd URL", "repack local.b2nd URL", "compact URL",
                         "attr set URL a 1", "pack tree.b2d URL", "unpack tree.b2z URL",
                         "repack local.b2nd URL --for-remote"):
                done = run(*(place if w == "URL" else w for w in line.split()), cwd=self.folder)
                self.assertIn("a URL can only be read", done.stderr, line)
                self.assertEqual(done.returncode, 2, (line, done.stderr))
        self.assertEqual(sorted(self.folder.iterdir()), before)

    def test_text_that_is_no_place_stays(self):
        name = "x?a=1#b"
        self.assertIn(name, run("info", self.folder / name).stderr)
        link = "http://example.org/a?id=3"
        run("attr", "set", "local.b2nd", "source", '"%s"' % link, cwd=self.folder)
        self.assertIn(link, run("attr", "get", "local.b2nd", "source", cwd=self.folder).stdout)


if __name__ == "__main__":
    unittest.main()

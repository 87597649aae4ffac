"""Every command that takes a URL takes the options of URLs: certificates, a trace."""

import shutil
import subprocess
import unittest

import numpy as np

from tool_remote_case import CLI
from test_remote_tls import Case as TlsCase


class Commands(TlsCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        tree = cls.folder / "t.b2d"
        np.save(cls.folder / "in.npy", np.arange(60, dtype="<i2"))
        for key in ("/g/x", "/y"):
            cls.run_good("convert", cls.folder / "in.npy", "%s::%s" % (tree, key))
        cls.run_good("attr", "set", tree, "title", '"T"')
        cls.run_good("pack", tree, cls.folder / "t.b2z")

    @staticmethod
    def run_good(*words):
        subprocess.run([CLI, *map(str, words)], check=True, stdout=subprocess.DEVNULL)

    def commands(self, array, tree):
        """All commands, with the files that they create and that are to be removed."""
        out = self.folder / "out"
        local = self.folder / "local.b2nd"
        shutil.copy(self.folder / "a.b2nd", local)
        yield "info", array
        yield "info", "--json", tree
        yield "info", tree + "::/g/x"
        yield "get", array, "3,4,5"
        yield "get", tree + "::/y", "3:5"
        yield "stats", array
        yield "view", array, "0,:,:", "--png", out / "a.png"
        yield "verify", array
        yield "verify", tree
        yield "diff", array, array
        yield "diff", tree, tree
        yield "convert", array, out / "a.npy"
        yield "repack", array, out / "a.b2nd"
        yield "append", local, array
        yield "put", local, "0:40,:,:", array
        yield "attr", "list", array
        yield "attr", "list", tree
        yield "attr", "get", tree, "title"
        yield "attr", "list", tree + "::/g"
        yield "ls", tree
        yield "ls", "-l", "-r", tree
        yield "ls", "--json", tree
        yield "tree", tree
        yield "tune", tree + "::/y", "--read", "3", "--time", "100ms"
        yield "bench", tree + "::/y"

    def test_all_take_them(self):
        server = self.serve(tls=self.pair)
        server.objects["/t.b2z"] = (self.folder / "t.b2z").read_bytes()
        for words in self.commands(server.url("/a.b2nd"), server.url("/t.b2z")):
            with self.subTest(words=words[:2]):
                server.forget()
                self.fresh_results()
                refused = subprocess.run([CLI, *map(str, words)], capture_output=True, text=True)
                self.assertEqual(refused.returncode, 3, refused.stderr)
                self.assertRegex(refused.stderr, "the certificate of localhost is refused")
                self.assertEqual(server.requests, [])
                self.fresh_results()
                done = subprocess.run([CLI, *map(str, words), "--trace", "--ca-file",
                                       self.authority.file], capture_output=True, text=True)
                self.assertEqual(done.returncode, 0, done.stderr)
                lines = [line for line in done.stderr.splitlines() if line.startswith("GET ")]
                self.assertEqual(len(lines), len(server.requests), done.stderr)

    def test_a_url_with_a_user_is_shown_once(self):
        for command in ("info", "ls", "verify", "stats"):
            done = subprocess.run([CLI, command, "http://me:secret@127.0.0.1:9/a.b2z"],
                                  capture_output=True, text=True)
            self.assertEqual(done.stderr, "caterva: the URL http://127.0.0.1:9/a.b2z has a user: "
                                          "give credentials as headers\n", command)

    def test_verify_asks_for_nothing_twice(self):
        """What the opening read is read once more, and only once."""
        server = self.serve()
        self.run_good("verify", server.url("/a.b2nd"))
        ranges = [r.headers["range"] for r in server.requests]
        self.assertGreater(len(ranges), 3)
        self.assertEqual(len(set(ranges)), len(ranges), ranges)

    def many(self, n):
        """An archive of n arrays in a group, each larger than what a listing reads of it."""
        tree = self.folder / "many.b2d"
        self.run_good("convert", self.folder / "a.b2nd", "%s::/g/a000" % tree)
        for i in range(1, n):
            shutil.copy(tree / "g" / "a000.b2nd", tree / "g" / ("a%03d.b2nd" % i))
        (tree / "g" / "damaged.b2nd").write_bytes((tree / "g" / "a000.b2nd").read_bytes()[:9000])
        self.run_good("pack", tree, self.folder / "many.b2z")
        return self.folder / "many.b2z"

    def test_details_of_a_tree_come_in_waves(self):
        n = 40
        archive = self.many(n)
        server = self.serve(delay=0.03)
        server.objects["/many.b2z"] = archive.read_bytes()
        url = server.url("/many.b2z")
        self.run_good("ls", url)
        listing = len(server.requests)
        for words in (["ls", "-l", "-r"], ["ls", "-l"], ["ls", "--json", "-r"], ["tree"]):
            def said(place):
                done = subprocess.run([CLI, *words, str(place)], check=True, capture_output=True,
                                      text=True)
                return done.stdout.replace(str(place), "PLACE")
            with self.subTest(words=words):
                server.forget()
                self.assertEqual(said(url), said(archive))
                if words == ["ls", "-l"]:
                    self.assertEqual(len(server.requests), listing)  # there is no array in "/"
                    continue
                opening = sorted(server.requests, key=lambda r: r.began)[-n:]
                overlapping = sum(b.began < a.ended for a, b in zip(opening, opening[1:]))
                self.assertGreater(overlapping, n // 2)

    def fresh_results(self):
        shutil.rmtree(self.folder / "out", ignore_errors=True)
        (self.folder / "out").mkdir()


if __name__ == "__main__":
    unittest.main()

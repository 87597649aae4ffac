"""Failures: the right status, one sentence, and no incomplete file."""

import fcntl
import os
import re
import signal
import subprocess
import time
from pathlib import Path

import blosc2
import numpy as np

from tool_cli import CLI, Case, environment, main, run

ROOT = Path(__file__).resolve().parents[2]


class Usage(Case):
    def test_commands(self):
        for arguments in (["what"], ["help", "what"], ["tune", "a"], ["append", "a"], ["get"],
                          ["seal", "a", "b"], ["info", "--what", "a"], ["info", "-x", "a"],
                          ["get", "a", "--precision"], ["get", "a", "--precision", "many"],
                          ["get", "a", "-T", "-1"], ["convert", "a", "b", "--memory", "1X"],
                          ["info", "--json=yes", "a"], ["create", "a.b2nd"]):
            self.fails(2, *arguments)
        status, out, err = run()
        self.assertEqual((status, out), (2, b""))
        self.assertIn("usage: caterva COMMAND", err)
        self.assertIn("see 'caterva info --help'", self.fails(2, "info", "--what", "a"))

    def test_help(self):
        overview = self.text("--help")
        self.assertGreater(len(self.commands()), 20)
        for name in self.commands():
            page = self.text(name, "--help")
            self.assertEqual(page, self.text("help", name))
            self.assertEqual(page, self.text(name, "a", "-h", "b"))
            self.assertTrue(page.startswith(f"usage: caterva {name} "))
            self.assertLessEqual(max(map(len, page.splitlines())), 94)
        self.assertNotIn("polish", overview)
        self.assertRegex(self.text("--version"),
                         r"\Acaterva \d+\.\d+\.\d+ \(C-Blosc2 .*\)\n\Z")

    def test_the_manual_knows_every_command_and_option(self):
        folder = ROOT / "man"
        manual = (folder / "caterva.1").read_text().replace("\\-", "-")
        self.assertEqual({p.stem for p in folder.iterdir()},
                         {"caterva", *(f"caterva-{name}" for name in self.commands())})
        for name in self.commands():
            page = (folder / f"caterva-{name}.1").read_text().replace("\\-", "-")
            self.assertRegex(manual, rf'\.BI? "{name} ')
            self.assertIn(f".BR caterva-{name} (1)", manual)
            known = set(re.findall(r"--[a-z-]+", self.text("help", name)))
            described = page.split(".SH OPTIONS")[1].split(".SH EXIT STATUS")[0]
            self.assertEqual(set(re.findall(r"--[a-z-]+", described)), known, name)
            for option in known:
                self.assertIn(option, manual, name)

    def test_the_manual_lists_every_command(self):
        table = re.search(r"^\| command \|.*\n\|[-|]+\n((?:\|.*\n)+)",
                          (ROOT / "docs/command-line.md").read_text(), re.M).group(1)
        rows = [row.split("|")[1].strip() for row in table.splitlines()]
        usages = [self.text("help", name).splitlines()[0] for name in self.commands()]
        self.assertEqual(sorted(rows), sorted(
            f"`{usage.removeprefix('usage: ').replace('[OPTION]... ', '')}`"
            for usage in usages))

    def test_options_stand_anywhere(self):
        path = self.path("-1.b2nd")
        blosc2.arange(0, 6, shape=(2, 3), dtype="<i4", urlpath=str(path))
        os.chdir(self.folder)
        self.addCleanup(os.chdir, "/")
        for arguments in (["get", "--csv", "./-1.b2nd", "-1"],
                          ["get", "./-1.b2nd", "-1", "--csv"],
                          ["get", "--to=csv", "--", "-1.b2nd", "-1"],
                          ["get", "-1.b2nd", "-T1", "--to", "csv", "-1"]):
            self.assertEqual(self.text(*arguments), "3,4,5\n")

    def test_selections(self):
        path = self.path("a.b2nd")
        blosc2.zeros((4, 5), urlpath=str(path))
        for sel, place in (("4", "out of range for axis 0 with 4"), ("0,-6", "axis 1"),
                           ("0,0,0", "3 axes, but the array has 2"), ("1:2:0", "step"),
                           ("a", "position 1"), ("0,1:b", "position 5"), ("0,,", "position 3"),
                           ("0,0,,", "3 axes"), ("...,...", "more than one"),
                           ("1:2:3:4", "1:2"),
                           ("0 0", "position 3"), ("::x", "a step at position 3"),
                           ("99999999999999999999", "position 1"), (".", "position 1")):
            for command in ("get", "view", "put"):
                extra = ["--fill", "0"] if command == "put" else []
                self.assertIn(place, self.fails(2, command, path, sel, *extra), sel)

    def test_put(self):
        path, new = self.path("a.b2nd"), self.path("new.npy")
        blosc2.zeros((4, 5), dtype="<f4", urlpath=str(path))
        before = path.read_bytes()
        for values in (np.zeros((4, 4), "<f4"), np.zeros((1, 5), "<f4"),
                       np.zeros((5,), "<f8"), np.zeros((5,), ">f4")):
            np.save(new, values)
            self.fails(2, "put", path, "0", new)
        self.fails(2, "put", path, "0")
        self.fails(2, "put", path, "0", new, "--fill", "1")
        self.fails(2, "put", path, "0", "-", "--from", "raw", stdin=b"x" * 21)
        self.fails(4, "put", path, "0", "-", "--from", "raw", stdin=b"x" * 19)
        self.assertEqual(path.read_bytes(), before)
        self.ok("put", path, "0", "-", "--from", "raw",
                stdin=np.arange(5, dtype="<f4").tobytes())
        self.ok("put", path, "::-2,1:3", "--fill", "-1.5")
        want = np.zeros((4, 5), "<f4")
        want[0] = np.arange(5)
        want[::-2, 1:3] = -1.5
        np.testing.assert_array_equal(blosc2.open(str(path))[...], want)


class Results(Case):
    def test_existing_results_need_force(self):
        array, other = self.path("a.b2nd"), self.path("b")
        blosc2.zeros((4, 5), urlpath=str(array))
        make = {"b.npy": ["convert", array], "b.b2nd": ["convert", array]}
        for name, command in make.items():
            out = self.path(name)
            out.write_bytes(b"precious")
            self.assertIn("exists", self.fails(3, *command, out))
            self.assertEqual(out.read_bytes(), b"precious")
            self.ok(*command, out, "-f")
            self.assertNotEqual(out.read_bytes(), b"precious")
        other.write_bytes(b"precious")
        self.fails(3, "get", array, "-o", other, "--to", "raw")
        self.fails(3, "view", array, "--png", other)
        self.fails(3, "create", other, "--shape", "2", "--dtype", "u1")
        self.assertEqual(other.read_bytes(), b"precious")
        self.ok("create", other, "--shape", "2", "--dtype", "u1", "-f", "--sparse")
        self.assertTrue(other.is_dir())

    def test_permissions_and_links_survive(self):
        array, out, link = self.path("a.b2nd"), self.path("o.raw"), self.path("l.raw")
        blosc2.zeros((4, 5), urlpath=str(array))
        out.write_bytes(b"old")
        out.chmod(0o640)
        link.symlink_to(out)
        self.ok("get", array, "-o", link, "-f")
        self.assertTrue(link.is_symlink())
        self.assertEqual((out.stat().st_mode & 0o777, out.stat().st_size), (0o640, 160))

    def test_access_is_kept_wherever_something_is_replaced(self):
        np.save(self.path("a.npy"), np.arange(1000, dtype="<i4") % 37)
        commands = {"file.b2nd": [("convert", "-f", "a.npy"), ("compact",), ("repack", "-f")],
                    "dir.b2nd": [("convert", "-f", "--sparse", "a.npy"), ("compact",)],
                    "out.npy": [("convert", "-f", "a.npy")]}
        for name, ways in commands.items():
            path = self.path(name)
            more = ["--sparse"] if name.startswith("dir") else []
            self.ok("convert", *more, "--chunks", "100", self.path("a.npy"), path)
            files = [path] + (list(path.iterdir()) if path.is_dir() else [])
            for f in files:
                if os.geteuid() == 0:
                    os.chown(f, 4321, 8765)
                os.chmod(f, 0o700 if f.is_dir() else 0o600)
            for verb, *rest in ways:
                given = [self.path(a) if a.endswith(".npy") else a for a in rest]
                source = [path] if verb == "repack" else []
                run(verb, *given, *source, path)
                for f in [path] + (list(path.iterdir()) if path.is_dir() else []):
                    st = f.stat()
                    self.assertEqual(st.st_mode & 0o777, 0o700 if f.is_dir() else 0o600, (verb, f))
                    if os.geteuid() == 0:
                        self.assertEqual((st.st_uid, st.st_gid), (4321, 8765), (verb, f))

    def test_what_is_written_elsewhere_is_not_replaced(self):
        np.save(self.path("a.npy"), np.arange(1000, dtype="<i4") % 37)
        self.ok("convert", "--chunks", "100", self.path("a.npy"), self.path("x.b2nd"))
        self.ok("convert", "--chunks", "100", self.path("a.npy"), self.path("y.b2nd"))
        before = self.path("x.b2nd").read_bytes()
        with open(self.path("x.b2nd")) as writer:
            fcntl.flock(writer, fcntl.LOCK_EX)
            for words in (("convert", "-f", self.path("a.npy")),
                          ("convert", "-f", "--sparse", self.path("a.npy")),
                          ("repack", "-f", self.path("y.b2nd")),
                          ("convert", "-f", "--to", "npy", self.path("y.b2nd"))):
                said = self.fails(3, *words, self.path("x.b2nd"))
                self.assertIn("open for writing elsewhere", said, words)
        self.assertEqual(self.path("x.b2nd").read_bytes(), before)
        self.assertEqual(self.names(), ["a.npy", "x.b2nd", "y.b2nd"])

    def test_devices_are_written_not_replaced(self):
        array = self.path("a.b2nd")
        blosc2.zeros((4, 5), urlpath=str(array))
        self.ok("convert", array, "/dev/null", "--to", "raw")
        self.fails(3, "convert", array, "/dev/null", "--to", "b2nd", "-f")
        self.assertTrue(os.path.exists("/dev/null") and not os.path.isfile("/dev/null"))

    def test_full_disk(self):
        array = self.path("a.b2nd")
        blosc2.zeros((40, 50), urlpath=str(array))
        for arguments in (["get", array], ["get", array, "--to", "raw"], ["info", array],
                          ["--help"], ["verify", array, "--json"], ["view", array]):
            with open("/dev/full", "wb") as full:
                done = subprocess.run([CLI, *map(str, arguments)], stdout=full,
                                      stderr=subprocess.PIPE)
            self.assertEqual(done.returncode, 3, arguments)
            self.assertRegex(done.stderr,
                             rb"\Acaterva: cannot write to standard output: .+\n\Z")
        self.fails(3, "get", array, "-o", "/dev/full", "--to", "raw")

    def test_closed_pipe(self):
        array = self.path("a.b2nd")
        blosc2.zeros((1000, 1000), urlpath=str(array))
        for extra in ([], ["--to", "raw"]):
            child = subprocess.Popen([CLI, "get", str(array), *extra], stdout=subprocess.PIPE,
                                     stderr=subprocess.PIPE)
            child.stdout.read(10)
            child.stdout.close()
            err = child.stderr.read()
            child.stderr.close()
            self.assertEqual((child.wait(), err), (-signal.SIGPIPE, b""))

    def test_closed_streams(self):
        """No file that the program opens gets the number of a closed stream."""
        array, wrong = self.path("a.b2nd"), self.path("wrong.raw")
        self.ok("create", array, "--shape", "200,300", "--dtype", "<i4", "--fill", "7")
        wrong.write_bytes(bytes(5))
        before = array.read_bytes()
        everything, needed = "<&- >&- 2>&-", {"in": "<&-", "out": ">&-", "no": "2>&-"}
        for command, stream, status in (
                (f"put {array} 0 {wrong}", "no", 4), (f"put {array} 999 --fill 1", "no", 2),
                (f"append {array} {wrong}", "no", 4), (f"resize {array} 3", "no", 2),
                (f"attr delete {array} nokey", "no", 1), (f"get {array} 0,0", "out", 3),
                (f"get {array} --to npy", "out", 3), (f"info {array}", "out", 3),
                ("convert - x.b2nd --from raw --shape 3 --dtype u1", "in", 3),
                (f"put {array} 0 - --from raw", "in", 3), (f"append {array} -", "in", 3)):
            for closed in (everything, needed[stream]):
                done = subprocess.run(["sh", "-c", f"'{CLI}' {command} {closed}"], timeout=60,
                                      cwd=self.folder, stdin=subprocess.DEVNULL,
                                      capture_output=True, env=environment())
                self.assertEqual(done.returncode, status, (command, closed, done.stderr))
                self.assertEqual(array.read_bytes(), before, (command, closed))

    def test_no_room_for_the_result(self):
        array = self.path("a.b2nd")
        blosc2.asarray(np.random.default_rng(0).random(100000), urlpath=str(array))
        limited = f'ulimit -f 100; trap "" XFSZ; exec "$0" convert "{array}" "$1"'
        for name in ("out.npy", "out.b2nd"):
            done = subprocess.run(["sh", "-c", limited, CLI, str(self.path(name))],
                                  capture_output=True)
            self.assertEqual(done.returncode, 3, done.stderr)
            self.assertRegex(done.stderr.decode(), r"\Acaterva: [^\n]+\n\Z")
        self.assertEqual(self.names(), ["a.b2nd"])


class Interrupted(Case):
    """A pipe that stops in the middle blocks the program until the signal arrives."""

    def interrupt(self, sent, *arguments):
        child = subprocess.Popen([CLI, *map(str, arguments)], stdin=subprocess.PIPE,
                                 stderr=subprocess.PIPE, env=environment())
        child.stdin.write(b"x" * 3_000_000)
        child.stdin.flush()
        time.sleep(0.3)
        self.assertIsNone(child.poll())
        child.send_signal(sent)
        err = child.stderr.read()
        child.stderr.close()
        child.stdin.close()
        self.assertEqual((child.wait(), err), (-sent, b"caterva: interrupted\n"))

    def test_results_vanish(self):
        raw = ["convert", "-", "--from", "raw", "--shape", "4000,1000", "--dtype", "u1"]
        tight = ["--memory", "1MiB", "--chunks", "100,1000"]
        for sent in (signal.SIGINT, signal.SIGTERM):
            self.interrupt(sent, *raw, self.path("out.b2nd"), *tight)
            self.interrupt(sent, *raw, self.path("dir.b2nd"), "--sparse", *tight)
            self.interrupt(sent, *raw, self.path("out.npy"), "--memory", "1MiB")
            self.assertEqual(self.names(), [])

    def test_put_changes_nothing(self):
        path = self.path("a.b2nd")
        blosc2.zeros((4000, 1000), dtype="u1", chunks=(100, 1000), urlpath=str(path))
        before = path.read_bytes()
        self.interrupt(signal.SIGINT, "put", path, "...", "-", "--from", "raw",
                       "--memory", "1MiB")
        self.assertEqual(self.text("get", path, "0:3,0"), "0 0 0\n")
        self.assertIn(": ok, ", self.text("verify", path))
        self.assertEqual(path.read_bytes()[:len(before)], before)
        self.assertEqual(self.names(), ["a.b2nd"])


if __name__ == "__main__":
    main()

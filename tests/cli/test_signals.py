"""Signals that stop the program: at once, at any time, and without leaving incomplete files.
The time limits are wide: they only distinguish a program that reacts to the signal from one
that completes its work first, which would take minutes."""

import fnmatch
import os
import pty
import random
import re
import select
import shutil
import signal
import subprocess
import time
import zipfile
from pathlib import Path

import blosc2
import numpy as np

from tool_cli import CLI, LONG, Case, ended_by, environment, main

SOON = 30  # seconds, on any machine, however loaded
INTERRUPTED = b"caterva: interrupted\n"


class Signals(Case):
    def start(self, *arguments, **kwargs):
        kwargs.setdefault("stderr", subprocess.PIPE)
        kwargs.setdefault("stdout", subprocess.DEVNULL)
        return subprocess.Popen([CLI, *map(str, arguments)], env=environment(), **kwargs)

    def slow_source(self):
        """64 MB that take zstd 9 a minute or more."""
        path = self.path("in.npy")
        np.save(path, np.random.default_rng(1).integers(0, 900, 1 << 24, dtype="<i4"))
        return path

    def slow(self, out, *options, block=1 << 16):
        """Encodes one chunk of 64 MB at level 9."""
        return ["convert", self.slow_source(), out, "--chunks", 1 << 24, "--blocks", block,
                "--codec", "zstd", "--level", "9", *options]

    def wait_for(self, what, child):
        until = time.monotonic() + SOON
        while not what():
            self.assertLess(time.monotonic(), until)
            self.assertIsNone(child.poll())
            time.sleep(0.02)

    def is_making(self):
        return [n for n in self.names() if n.startswith(".")]

    def end(self, child):
        _, err = child.communicate(timeout=SOON)
        return child.returncode, err

    def test_kills_of_resumed(self):
        """The command that was killed goes on, and in the end the output is right."""
        values = np.random.default_rng(1).integers(0, 1 << 31, (300, 200, 40), "<i4")
        np.savez(self.path("a.npz"), a=values, b=values[:100] + 1)
        names = ["a.npz"]
        for name, key in (("o.b2d", ""), ("o.b2z", ""), ("o.b2nd", "::/a")):
            command = [CLI, "convert", str(self.path("a.npz")) + key, str(self.path(name)), "--resume",
                       "--codec", "zlib", "--threads", "1", "--memory", "1MiB"]
            start, kills = time.monotonic(), 0
            subprocess.run(command[:4] + command[5:] + ["-f"], check=True)
            whole = time.monotonic() - start
            while kills < (40 if LONG else 2):
                self.delete(name)
                child = subprocess.Popen(command, stderr=subprocess.DEVNULL)
                try:
                    child.wait(random.random() * whole)
                except subprocess.TimeoutExpired:
                    child.kill()
                    child.wait()
                    kills += 1
                else:
                    self.assertEqual(child.returncode, 0)
                    self.check_resumed(name, values)
            self.delete(name)
            self.ok(*command[1:])
            self.check_resumed(name, values)
            self.assertEqual([n for n in self.names() if n not in names], [name])
            names.append(name)

    def delete(self, name):
        if self.path(name).is_dir():
            shutil.rmtree(self.path(name))
        else:
            self.path(name).unlink(missing_ok=True)

    def check_resumed(self, name, values):
        if name.endswith(".b2nd"):
            np.testing.assert_array_equal(blosc2.open(str(self.path(name)))[:], values)
            return
        for key, expected in (("a", values), ("b", values[:100] + 1)):
            self.ok("get", "%s::/%s" % (self.path(name), key), "-o", self.path("x.npy"), "-f")
            np.testing.assert_array_equal(np.load(self.path("x.npy")), expected)
        self.path("x.npy").unlink()

    def test_killed(self):
        """A killed process leaves a file that matches the documented pattern."""
        page = Path(os.environ["CATERVA_SOURCE_DIR"], "docs/reliability.md").read_text()
        pattern = re.search(r"find DIRECTORY -maxdepth 1 -name '(\S+)' -mtime", page)[1]
        for name, options in (("y.npy", []), ("y.raw", ["-f"]), ("y.b2nd", []),
                              ("y.b2nd", ["--sparse"])):
            out = self.path(name)
            if "-f" in options:
                out.write_bytes(b"old")
            child = self.start("convert", "-", out, "--from", "raw", "--shape", "1000,1000",
                               "--dtype", "<u2", *options, stdin=subprocess.PIPE)
            child.stdin.write(bytes(4000))
            child.stdin.flush()
            self.wait_for(self.is_making, child)
            child.kill()
            self.end(child)
            left = self.is_making()
            self.assertEqual(len(left), 1)
            self.assertTrue(fnmatch.fnmatchcase(left[0], pattern), left)
            self.assertTrue(left[0].startswith(f".{name}.tmp-"), left)
            subprocess.run(["rm", "-r", self.path(left[0])], check=True)

    def test_inside_one_chunk(self):
        for sent, options in ((signal.SIGINT, ["-T1"]), (signal.SIGTERM, []),
                              (signal.SIGHUP, ["--sparse"])):
            child = self.start(*self.slow(self.path("out.b2nd"), *options))
            self.wait_for(self.is_making, child)
            time.sleep(0.5)  # it is encoding by then
            child.send_signal(sent)
            self.assertEqual(self.end(child), (-sent, INTERRUPTED))
            self.assertEqual(self.names(), ["in.npy"])

    def test_what_stood_there_stays(self):
        out = self.path("out.b2nd")
        blosc2.arange(0, 100, urlpath=str(out))
        before = out.read_bytes()
        child = self.start(*self.slow(out, "-f"))
        self.wait_for(self.is_making, child)
        child.send_signal(signal.SIGINT)
        self.assertEqual(self.end(child), (-signal.SIGINT, INTERRUPTED))
        self.assertEqual(out.read_bytes(), before)
        self.assertEqual(self.names(), ["in.npy", "out.b2nd"])

    def test_the_second_does_not_wait(self):
        """The encoding of a single block cannot be stopped: only the second signal ends it."""
        for options in ([], ["--sparse"]):
            child = self.start(*self.slow(self.path("out.b2nd"), *options, block=1 << 24))
            self.wait_for(self.is_making, child)
            time.sleep(1)
            child.send_signal(signal.SIGINT)
            time.sleep(0.5)
            self.assertIsNone(child.poll())
            child.send_signal(signal.SIGINT)
            self.assertEqual(self.end(child), (-signal.SIGINT, b""))
            self.assertEqual(self.names(), ["in.npy"])

    def test_the_second_deletes_an_unfinished_tree(self):
        with zipfile.ZipFile(self.path("in.npz"), "w", zipfile.ZIP_DEFLATED) as archive:
            archive.write(self.slow_source(), "a.npy")
        child = self.start("convert", self.path("in.npz"), self.path("out.b2d"), "--codec", "zstd",
                           "--level", "9", "-T1")
        self.wait_for(self.is_making, child)
        child.send_signal(signal.SIGINT)
        child.send_signal(signal.SIGINT)
        time.sleep(0.2)
        child.send_signal(signal.SIGINT)
        self.end(child)
        self.assertEqual(child.returncode, -signal.SIGINT)
        self.assertEqual(self.names(), ["in.npy", "in.npz"])

    def test_nohup(self):
        command = f'trap "" HUP; exec "$0" {" ".join(map(str, self.slow(self.path("o.b2nd"))))}'
        child = subprocess.Popen(["sh", "-c", command, CLI], stderr=subprocess.PIPE,
                                 env=environment())
        self.wait_for(self.is_making, child)
        child.send_signal(signal.SIGHUP)
        time.sleep(0.5)
        self.assertIsNone(child.poll())
        child.send_signal(signal.SIGINT)
        self.assertEqual(self.end(child), (-signal.SIGINT, INTERRUPTED))

    def test_a_quiet_pipe(self):
        for command in (["convert", "-", self.path("o.b2nd"), "--from", "raw", "--shape", "9",
                         "--dtype", "u1"], ["attr", "set", self.path("a.b2nd"), "k", "-"]):
            blosc2.zeros((10,), urlpath=str(self.path("a.b2nd")), mode="w")
            child = self.start(*command, stdin=subprocess.PIPE)
            time.sleep(0.3)
            if child.poll() is None:
                child.send_signal(signal.SIGINT)
                time.sleep(0.1)
            child.stdin.close()
            child.stdin = None
            status, err = self.end(child)
            if "attr" not in command or status < 0:
                self.assertEqual((status, err), (-signal.SIGINT, INTERRUPTED))
        self.assertEqual(self.names(), ["a.b2nd"])

    def test_a_full_pipe(self):
        path = self.path("a.b2nd")
        blosc2.zeros((1 << 24,), dtype="u1", urlpath=str(path))
        for extra in ([], ["--to", "raw"]):
            child = self.start("get", path, *extra, stdout=subprocess.PIPE)
            child.stdout.read(10)
            time.sleep(0.3)
            child.send_signal(signal.SIGINT)
            err = child.stderr.read()  # which nothing reads meanwhile
            self.assertEqual((child.wait(SOON), err), (-signal.SIGINT, INTERRUPTED))
            child.stdout.close()
            child.stderr.close()

    def test_head(self):
        path = self.path("a.b2nd")
        blosc2.zeros((1 << 22,), dtype="u1", urlpath=str(path))
        for extra in ("", "--to raw"):
            script = f'"$0" get "$1" {extra} | head -c 10; exit ${{PIPESTATUS[0]}}'
            done = subprocess.run(["bash", "-c", script, CLI, str(path)], capture_output=True)
            self.assertEqual((done.returncode, done.stderr), (141, b""))

    def test_files_that_may_not_grow(self):
        path = self.slow_source()
        for name in ("o.raw", "o.npy", "o.b2nd", "dir.b2nd"):
            sparse = "--sparse" if name == "dir.b2nd" else ""
            script = f'ulimit -f 500; "$0" convert "$1" "$2" {sparse} --codec lz4 --level 1'
            done = subprocess.run(["sh", "-c", script, CLI, str(path), str(self.path(name))],
                                  capture_output=True)
            self.assertEqual(done.returncode, 3, name)
            self.assertRegex(done.stderr, rb"\Acaterva: [^\n]+: File too large\n\Z")
            self.assertEqual(self.names(), ["in.npy"])

    def test_a_shells_loop_stops(self):
        """Ctrl-C ends a shell's loop, since the program dies of the signal."""
        path = self.path("pid")
        command = " ".join(map(str, self.slow(self.path("o.b2nd"))))
        script = f'for i in 1 2 3; do echo $$ > "{path}"; "$0" {command}; done; exit 0'
        child = subprocess.Popen(["bash", "-c", script, CLI], stderr=subprocess.PIPE,
                                 start_new_session=True)
        self.wait_for(self.is_making, child)
        os.killpg(child.pid, signal.SIGINT)
        self.assertEqual(self.end(child), (-signal.SIGINT, INTERRUPTED))


class Progress(Case):
    def drawn(self, arguments, until, stdin=subprocess.DEVNULL):
        """The output of a run on a terminal until it matches the pattern; then Ctrl-C."""
        master, terminal = pty.openpty()
        child = subprocess.Popen([CLI, *map(str, arguments)], stdin=stdin, stderr=terminal,
                                 stdout=subprocess.DEVNULL, env=environment())
        os.close(terminal)
        drawn = b""
        give_up = time.monotonic() + SOON
        try:
            while not re.search(until, drawn) and time.monotonic() < give_up:
                if select.select([master], [], [], 1)[0]:
                    drawn += os.read(master, 1 << 16)
            child.send_signal(signal.SIGINT)
            while got := os.read(master, 1 << 16):
                drawn += got
        except OSError:  # the terminal's other end is closed
            pass
        os.close(master)
        if stdin is subprocess.PIPE:
            child.stdin.close()
        return drawn, child.wait(SOON)

    def test_inside_one_chunk(self):
        """Before the first chunk and the first slab are complete."""
        path = self.path("in.npy")
        np.save(path, np.random.default_rng(1).integers(0, 900, 1 << 24, dtype="<i4"))
        drawn, status = self.drawn(
            ["convert", path, self.path("o.b2nd"), "--chunks", 1 << 24, "--blocks", 1 << 15,
             "--codec", "zstd", "--level", "9", "-T1"], rb"(\d+:\d\d left.*){3}")
        self.assertEqual(status, ended_by(signal.SIGINT))
        self.assertRegex(drawn, rb"\r\[#*\.*\] +\d+%  [\d.]+ [KM]iB of 64 MiB  [\d.]+ [KM]iB/s  "
                                rb"(\d+:)?\d+:\d\d left")
        self.assertTrue(drawn.endswith(b"\r" + INTERRUPTED.replace(b"\n", b"\r\n")), drawn[-99:])

    def test_unknown_total(self):
        path = self.path("a.b2nd")
        blosc2.zeros((0,), dtype="u1", urlpath=str(path))
        source = subprocess.Popen(["sh", "-c", "while :; do head -c 100000 /dev/zero; done"],
                                  stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        drawn, status = self.drawn(["append", path, "-", "--from", "raw"],
                                   rb"\r[\d.]+ [KMGT]iB  [\d.]+ [KMG]iB/s", source.stdout)
        source.kill()
        source.stdout.close()
        source.wait()
        self.assertEqual(status, ended_by(signal.SIGINT))
        self.assertRegex(drawn, rb"\r[\d.]+ [KMGT]iB  [\d.]+ [KMG]iB/s")
        self.assertNotIn(b"%", drawn)


class EveryCommand(Case):
    """Each command with work that takes long, interrupted once. One that ends before the signal
    must have done its work."""

    def big(self):
        """8 GiB of decoded items in a few MB."""
        path = self.path("big.b2nd")
        side, chunk = 1 << 13, 1 << 20
        items = np.random.default_rng(2).integers(0, 3, chunk, dtype="<u8")
        array = blosc2.empty((side * 128, 1024), dtype="<u8", chunks=(chunk // 1024, 1024),
                             blocks=(64, 1024), urlpath=str(path), mode="w",
                             cparams={"codec": blosc2.Codec.LZ4, "clevel": 1})
        array[:chunk // 1024] = items.reshape(-1, 1024)
        stored = array.schunk.get_chunk(0)
        for i in range(1, array.schunk.nchunks):
            array.schunk.update_chunk(i, stored)
        return path

    @staticmethod
    def wait_until_caught(child, number):
        """Until then a signal ends the program without a message."""
        fields = Path("/proc/%d/status" % child.pid)
        until = time.monotonic() + SOON
        while fields.exists() and child.poll() is None and time.monotonic() < until:
            caught = re.search(r"^SigCgt:\s*(\w+)", fields.read_text(), re.MULTILINE)
            if caught and int(caught[1], 16) >> (number - 1) & 1:
                return
            time.sleep(0.005)

    def interrupt(self, *arguments, stdin=subprocess.DEVNULL, after=0.4):
        child = subprocess.Popen([CLI, *map(str, arguments)], stdin=stdin,
                                 stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                 env=environment())
        self.wait_until_caught(child, signal.SIGINT)
        time.sleep(after)
        child.send_signal(signal.SIGINT)
        err = child.stderr.read()
        child.stderr.close()
        if child.stdin:
            child.stdin.close()
        status = child.wait(SOON)
        if status != ended_by(signal.SIGINT):  # done before the signal came
            self.assertIn(status, (0, 1), (arguments, err))
        else:
            self.assertEqual(err, INTERRUPTED, arguments)

    def test_all(self):
        big = self.big()
        before = big.stat().st_size
        small = self.path("small.b2nd")
        blosc2.zeros((4000, 1000), dtype="u1", chunks=(100, 1000), urlpath=str(small))
        pipe = ["-", "--from", "raw"]
        names = self.names()
        slow = ["--codec", "zstd", "--level", "9", "--chunks", "16384,1024", "-T1"]
        for arguments in (["info", big, "--chunks"], ["get", big, "--to", "raw"],
                          ["get", big], ["get", big, "-o", self.path("o.npy")],
                          ["convert", big, self.path("o.raw")],
                          ["convert", big, self.path("o.b2nd"), *slow],
                          ["convert", big, self.path("o.b2nd"), *slow, "--sparse"],
                          ["repack", big, self.path("o.b2nd"), "--codec", "zstd", "--level", "9"],
                          ["verify", big], ["repair", big, "-o", self.path("r.b2nd")],
                          ["diff", big, big], ["stats", big], ["stats", big, "--bins", "7"],
                          ["view", big], ["view", big, "--png", self.path("o.png")],
                          ["bench", big], ["tune", big, "--time", "60s", "--read", "0"]):
            self.interrupt(*arguments)
            for made in ("o.npy", "o.raw", "o.b2nd", "r.b2nd", "o.png"):  # if it ended before
                if self.path(made).exists() and made not in names:
                    self.path(made).unlink()
            self.assertEqual(self.names(), names, arguments)
        for arguments in (["put", small, "...", *pipe], ["append", small, *pipe]):
            self.interrupt(*arguments, stdin=subprocess.PIPE)
        for arguments in (["resize", big, "2000000,1000"], ["seal", big], ["compact", big]):
            self.interrupt(*arguments, after=0.05)
            self.assertEqual(self.names(), names, arguments)
        self.assertGreaterEqual(big.stat().st_size, before // 2)
        self.assertIn(": ok, ", self.text("verify", big, "--quick"))


if __name__ == "__main__":
    main()

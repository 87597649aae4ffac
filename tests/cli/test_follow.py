"""append --every and --follow: many commits by one process, each seen by readers. And --wait,
for a file that another process writes."""

import io
import json
import signal
import subprocess
import time

import blosc2
import numpy as np

from tool_cli import CLI, Case, environment, main

SOON = 60  # seconds that a busy machine may take


class Appending(Case):
    WIDTH = 6

    def make(self, rows=0, **options):
        path = self.path("a.b2nd")
        self.ok("create", path, "--shape", f"{rows},{self.WIDTH}", "--dtype", "<i4", "--chunks",
                f"8,{self.WIDTH}", "-f")
        return path

    def rows(self, first, n):
        return np.arange(first * self.WIDTH, (first + n) * self.WIDTH, dtype="<i4").reshape(
            n, self.WIDTH)

    def length(self, path):
        return json.loads(self.text("info", path, "--json"))["shape"][0]

    def check(self, path, n):
        np.testing.assert_array_equal(blosc2.open(str(path))[:], self.rows(0, n))

    def follow(self, path, *options):
        child = subprocess.Popen([CLI, "append", str(path), "-", "--from", "raw", *options],
                                 stdin=subprocess.PIPE, stderr=subprocess.PIPE,
                                 env=environment(), bufsize=0)
        self.addCleanup(child.stderr.close)
        self.addCleanup(child.wait)
        self.addCleanup(child.kill)
        return child

    def until(self, what):
        deadline = time.monotonic() + SOON
        while not what():
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.02)

    def until_length(self, path, n):
        self.until(lambda: self.length(path) == n)

    def end(self, child):
        child.stdin.close()
        self.assertEqual((child.wait(), child.stderr.read()), (0, b""))


class Follow(Appending):
    def test_items(self):
        """Every ten rows are committed; the rest at the end of the stream."""
        path = self.make()
        child = self.follow(path, "--follow", "--every", "10")
        child.stdin.write(self.rows(0, 9).tobytes())
        time.sleep(0.3)
        self.assertEqual(self.length(path), 0)
        child.stdin.write(self.rows(9, 26).tobytes())
        self.until_length(path, 30)
        self.check(path, 30)
        self.end(child)
        self.check(path, 35)
        self.ok("verify", path)

    def test_time(self):
        """Rows are committed soon after they arrive, except an incomplete one."""
        path = self.make()
        for options in (["--follow"], ["--every", "50ms"]):
            child = self.follow(path, *options)
            first = self.length(path)
            data = self.rows(first, 5).tobytes()
            child.stdin.write(data[:-3])
            self.until_length(path, first + 4)
            child.stdin.write(data[-3:])
            self.until_length(path, first + 5)
            self.end(child)
        self.check(path, 10)

    def test_both(self):
        path = self.make()
        child = self.follow(path, "--follow", "--every", "4", "--every", "100ms")
        child.stdin.write(self.rows(0, 6).tobytes())
        self.until_length(path, 6)
        self.end(child)

    def test_killed(self):
        """Only what was not committed is lost."""
        for sent in (signal.SIGKILL, signal.SIGINT):
            path = self.make()
            child = self.follow(path, "--follow", "--every", "8")
            child.stdin.write(self.rows(0, 21).tobytes())
            self.until_length(path, 16)
            child.send_signal(sent)
            self.assertNotEqual(child.wait(), 0)
            self.check(path, 16)
            child = self.follow(path, "--follow")
            child.stdin.write(self.rows(16, 1).tobytes())
            self.end(child)
            self.check(path, 17)

    def test_a_part_at_the_end(self):
        """Complete rows are committed, even with a long interval between commits."""
        for options in (["--follow"], ["--follow", "--every", "2"], ["--every", "60m"],
                        ["--every", "7", "--memory", "4KiB"]):
            for n, words in ((1000, b"1000 whole items before it are"),
                             (1, b"1 whole item before it is"),
                             (0, b"0 whole items before it are")):
                path = self.make()
                child = self.follow(path, *options)
                child.stdin.write(self.rows(0, n).tobytes() + b"xyz")
                child.stdin.close()
                self.assertEqual(child.wait(), 4)
                said = child.stderr.read()
                self.assertIn(words + b" committed, 3 of its 24 bytes are left over", said)
                self.check(path, n)
                self.ok("verify", path)

    def test_a_stream_longer_than_the_memory(self):
        path = self.make()
        data = self.rows(0, 5000).tobytes()
        self.ok("append", path, "-", "--from", "raw", "--follow", "--memory", "4KiB", stdin=data)
        self.check(path, 5000)
        self.ok("append", path, "-", "--from", "raw", "--every", "999", "--memory", "4KiB",
                "--offset", "24", stdin=self.rows(4999, 3001).tobytes())
        self.check(path, 8000)


class Every(Appending):
    def npy(self, values):
        np.save(self.path("x.npy"), values)
        return self.path("x.npy")

    def test_inputs_that_say_their_length(self):
        path = self.make()
        self.ok("append", path, self.npy(self.rows(0, 25)), "--every", "10")
        self.ok("append", path, self.npy(self.rows(25, 1)[0]), "--every", "10")
        self.ok("append", path, self.npy(np.asfortranarray(self.rows(26, 9))), "--every", "4")
        self.path("x.raw").write_bytes(self.rows(35, 20).tobytes())
        self.ok("append", path, self.path("x.raw"), "--every", "7", "--memory", "4KiB")
        stream = io.BytesIO()
        np.save(stream, self.rows(55, 5))
        self.ok("append", path, "-", "--from", "npy", "--every", "2", stdin=stream.getvalue())
        self.check(path, 60)
        self.ok("verify", path)

    def test_commits_before_the_end(self):
        """Everything complete before an input breaks off is committed."""
        path = self.make()
        stream = io.BytesIO()
        np.save(stream, self.rows(0, 50))
        cut = stream.getvalue()[:-30]
        self.fails(4, "append", path, "-", "--from", "npy", "--every", "20", stdin=cut)
        self.check(path, 40)

    def test_other_axes(self):
        path = self.path("b.b2nd")
        values = np.arange(4 * 30 * 3, dtype="<u2").reshape(4, 30, 3)
        blosc2.asarray(values[:, :10], urlpath=str(path), chunks=(4, 7, 3))
        self.ok("append", path, self.npy(values[:, 10:]), "--axis", "1", "--every", "6")
        np.testing.assert_array_equal(blosc2.open(str(path))[:], values)
        stream = io.BytesIO()
        np.save(stream, values)
        self.assertIn("axis 1", self.fails(5, "append", path, "-", "--from", "npy", "--axis", "1",
                                           "--every", "6", stdin=stream.getvalue()))

    def test_refused(self):
        path = self.make()
        for pace in ("0", "soon", "-3", "0s", "5h"):
            self.assertIn("--every", self.fails(2, "append", path, self.npy(self.rows(0, 2)),
                                                "--every", pace))
        self.assertIn("raw", self.fails(2, "append", path, self.npy(self.rows(0, 2)), "--follow"))
        self.assertEqual(self.length(path), 0)


class Wait(Appending):
    def busy(self, path):
        length = self.length
        before = length(path)
        child = self.follow(path, "--follow", "--every", "1")
        child.stdin.write(self.rows(before, 1).tobytes())
        self.until(lambda: length(path) > before)
        return child

    def commands(self, path):
        self.path("one.raw").write_bytes(self.rows(0, 1).tobytes())
        return (["append", path, self.path("one.raw")], ["resize", path, f"9,{self.WIDTH}"],
                ["attr", "set", path, "k", "1"], ["attr", "delete", path, "k"], ["compact", path],
                ["put", path, "0", "--fill", "7"], ["seal", path])

    def test_over(self):
        path = self.make()
        child = self.busy(path)
        for command in self.commands(path):
            started = time.monotonic()
            self.assertIn(str(path), self.fails(3, *command, "--wait", "300ms"))
            self.assertGreaterEqual(time.monotonic() - started, 0.3, command)
        self.end(child)

    def test_in_time(self):
        path = self.make()
        for command in self.commands(path):
            child = self.busy(path)
            waiting = subprocess.Popen([CLI, *map(str, command), "--wait", "60s"],
                                       stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                       env=environment())
            time.sleep(0.1)
            self.assertIsNone(waiting.poll(), command)
            self.end(child)
            err = waiting.communicate(timeout=SOON)[1]
            self.assertEqual((waiting.returncode, err), (0, b""), command)

    def test_interrupted(self):
        path = self.make()
        child = self.busy(path)
        waiting = subprocess.Popen([CLI, "attr", "set", str(path), "k", "1", "--wait", "10m"],
                                   stderr=subprocess.PIPE, env=environment())
        time.sleep(0.3)
        waiting.send_signal(signal.SIGINT)
        waiting.communicate(timeout=SOON)
        self.assertNotEqual(waiting.returncode, 0)
        self.end(child)


if __name__ == "__main__":
    main()

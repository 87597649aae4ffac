"""What the command line tests share: running the built program, scratch folders."""

import os
import re
import signal
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

for beside in ("support", "windows"):
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent / beside))
from lacks import why  # noqa: E402
from runs import LONG, SANITIZED, some  # noqa: E402, F401

WINDOWS = bool(os.environ.get("CATERVA_WINDOWS"))  # the program is a Windows one, under wine
CLI = os.environ.get("CATERVA_CLI", "caterva")
signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in a shell's background jobs
DATA = Path(__file__).resolve().parents[3] / "shared" / "data"


def environment(**changes):
    """The caller's environment without variables that change the output."""
    kept = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "COLORTERM")}
    kept.update(changes)
    return kept


def ended_by(number):
    """The exit status of a program that ends by this signal."""
    return 128 + number if WINDOWS else -number


def run(*arguments, stdin=None, **changes):
    """Runs the program; returns (exit status, stdout, stderr) as bytes, bytes, text. Skips the
    test if the build left out what it needs."""
    done = subprocess.run([CLI, *map(str, arguments)], input=stdin, capture_output=True,
                          env=environment(**changes), timeout=300)
    if os.environ.get("CATERVA_LEFT_OUT") and b"was built with CATERVA_" in done.stderr:
        raise unittest.SkipTest(done.stderr.decode())
    err = done.stderr.decode()
    if WINDOWS:  # what wine says of itself when a program of several threads ends
        err = re.sub(r"^(wine client error:|0x[0-9a-f]+:\d+: ).*\n?", "", err, flags=re.M)
    return done.returncode, done.stdout, err


class Case(unittest.TestCase):
    """A test with a folder of its own, in which `self.path(name)` is."""

    def setUp(self):
        lacks = WINDOWS and why(f"{type(self).__name__}.{self._testMethodName}")
        if lacks:
            self.skipTest(lacks)
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def path(self, name):
        return self.folder / name

    def names(self):
        return sorted(p.name for p in self.folder.iterdir())

    def ok(self, *arguments, **kwargs):
        """stdout of a run that must succeed without a message."""
        status, out, err = run(*arguments, **kwargs)
        self.assertEqual((status, err), (0, ""), arguments)
        return out

    def text(self, *arguments, **kwargs):
        return self.ok(*arguments, **kwargs).decode()

    def commands(self):
        """The names of all commands, from the program's own list."""
        overview = self.text("--help").split("commands:\n")[1].split("\n\n")[0]
        names = re.findall(r"^  ([a-z]+) ", overview, re.M)
        self.assertEqual(len(names), len(overview.splitlines()))
        return names

    def fails(self, expected, *arguments, **kwargs):
        """stderr of a run that must fail with this status and one sentence."""
        status, out, err = run(*arguments, **kwargs)
        self.assertEqual((status, out), (expected, b""), (arguments, err))
        self.assertRegex(err, r"\Acaterva: [^\n]+\n\Z")
        return err


def main():
    unittest.main(argv=[sys.argv[0], *sys.argv[1:]])

"""Workers and coordinators of a job that are killed, at every operation on files and at random
moments, and whose operations fail: the array is the old state or the new one, a worker's task
can be run again, and merging the same tokens again succeeds, unless the job is over.

usage: test_jobs.py [--long] [SEED]      --long, or CATERVA_TEST_LONG=1: 500 random kills
"""

import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SKIPPED = 77
HELPERS = Path(os.environ.get("CATERVA_HELPER_DIR", "")) / "reliability"
SHIM = HELPERS / "wjournal.so"
TOOL = HELPERS / "tool_jobs"
IS_LONG = "--long" in sys.argv or bool(os.environ.get("CATERVA_TEST_LONG"))
numbers = [word for word in sys.argv[1:] if not word.startswith("--")]
SEED = int(numbers[0], 0) if numbers else time.time_ns() % 1_000_000
ENOSPC = 28


def run(*words, **shim):
    env = dict(os.environ, **{key: str(value) for key, value in shim.items()})
    if shim:
        env["LD_PRELOAD"] = str(SHIM)
    done = subprocess.run([TOOL, *map(str, words)], env=env, capture_output=True, text=True,
                          timeout=60)
    return done.returncode, done.stdout, done.stderr


def must(*words):
    status, out, err = run(*words)
    if status != 0:
        raise SystemExit(f"{words}: {status} {out} {err}")
    return out


class Job:
    """A fresh copy of an array with a job, for one attempt."""

    def __init__(self, folder, layout, finished):
        self.home = Path(folder) / "home"
        self.home.mkdir()
        self.path = self.home / "array"
        must("init", layout, self.path)
        if finished:
            must("work", self.path)
        self.saved = Path(folder) / "saved"
        shutil.copytree(self.home, self.saved)

    def reset(self):
        shutil.rmtree(self.home)
        shutil.copytree(self.saved, self.home)

    def count(self, step):
        path = self.home.parent / "count"
        must_be = run(step, self.path, WJ_DIR=self.home, WJ_COUNT=path)
        assert must_be[0] == 0, must_be
        self.reset()
        return int(path.read_text())

    def finish(self, step, acknowledged, what):
        """After an attempt that was cut short: all is well, and goes on."""
        state = must("check", self.path, int(acknowledged)).strip()
        if step == "work":
            assert state == "old", what
            must("work", self.path)
        status, _, err = run("merge", self.path)
        over = status == 4 and state == "new"  # its folder is gone, too
        assert status == 0 or over, (what, state, status, err)
        assert must("check", self.path, 1).strip() == "new"
        left = [p.name for p in self.home.iterdir() if p.name.startswith("array.parts")]
        assert not left or over, (what, left)


def sweep(folder, layout, step, **shim):
    """Each operation is the last one, or fails."""
    job = Job(folder, layout, finished=step == "merge")
    total = job.count(step)
    key = "WJ_KILL_AT" if not shim else "WJ_FAIL_AT"
    for n in range(1, total + 1):
        status, out, _ = run(step, job.path, WJ_DIR=job.home, **{key: n}, **shim)
        assert status != 0 or shim or n == total, (step, n)
        job.finish(step, "ACK 1" in out, (layout, step, shim, n))
        job.reset()
    shutil.rmtree(job.home)
    shutil.rmtree(job.saved)
    print(f"{layout:<10}{step:<6}{'killed' if not shim else 'failing'} at each of {total} operations")


def random_kills(folder, n):
    r = random.Random(SEED)
    counts = {"old": 0, "new": 0}
    for layout, step in (("file", "work"), ("file", "merge"), ("directory", "merge")):
        job = Job(folder, layout, finished=step == "merge")
        started = time.monotonic()
        assert run(step, job.path)[0] == 0
        length = time.monotonic() - started
        job.reset()
        for _ in range(n // 3):
            child = subprocess.Popen([TOOL, step, job.path], stdout=subprocess.PIPE,
                                     stderr=subprocess.DEVNULL, text=True)
            time.sleep(r.uniform(0, 1.2 * length))
            child.kill()
            out = child.communicate()[0]
            counts[must("check", job.path, int("ACK" in out)).strip()] += 1
            job.finish(step, "ACK" in out and step == "merge", (layout, step, "at random"))
            job.reset()
        shutil.rmtree(job.home)
        shutil.rmtree(job.saved)
    print(f"{n} random kills: {counts}")


def main():
    if not SHIM.exists() or not TOOL.exists():
        return SKIPPED
    print(f"seed {SEED}")
    with tempfile.TemporaryDirectory() as folder:
        for layout in ("file", "directory"):
            for step in ("work", "merge"):
                sweep(folder, layout, step)
                sweep(folder, layout, step, WJ_ERRNO=ENOSPC)
        random_kills(folder, 501 if IS_LONG else 30)
    return 0


if __name__ == "__main__":
    sys.exit(main())

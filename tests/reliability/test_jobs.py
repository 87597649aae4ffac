"""Workers and coordinators of a job that are killed, at every file operation and at random
moments, and whose operations fail: the array is in the old state or the new one, a worker's
task can be run again, and merging the same tokens again succeeds, unless the job is over. Also
what is on the disk after a crash or a power failure at any operation of several jobs: every job
can be continued from there.

usage: test_jobs.py [--long] [--kills N] [SEED]
       --long, or CATERVA_TEST_LONG=1: 500 random kills, every crash point of longer workloads"""

import argparse
import collections
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from test_crashes import Failed, run_tool
from test_tree_crashes import count, count_good

SKIPPED = 77
HELPERS = Path(os.environ.get("CATERVA_HELPER_DIR", "")) / "reliability"
SHIM = HELPERS / "wjournal.so"
TOOL, ROUNDS = HELPERS / "tool_jobs", HELPERS / "tool_rounds"
ENOSPC = 28
PATIENCE = 900  # seconds: the machine may be busy
OPERATIONS = "WTSRUFODL"  # also creating directories and links


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--long", action="store_true")
    parser.add_argument("--kills", type=int)
    parser.add_argument("seed", nargs="?", type=lambda text: int(text, 0))
    given = parser.parse_args()
    given.long = given.long or bool(os.environ.get("CATERVA_TEST_LONG"))
    given.kills = given.kills or (500 if given.long else 30)
    given.seed = time.time_ns() % 1_000_000 if given.seed is None else given.seed
    return given


given = parse_arguments()


# ---- One job, step by step ------------------------------------------------------------------


def run(*words, **shim):
    env = dict(os.environ, **{key: str(value) for key, value in shim.items()})
    if shim:
        env.update(LD_PRELOAD=str(SHIM), WJ_OPS=OPERATIONS)
    done = subprocess.run([TOOL, *map(str, words)], env=env, capture_output=True, text=True,
                          timeout=PATIENCE)
    return done.returncode, done.stdout, done.stderr


def must(*words):
    status, out, err = run(*words)
    if status != 0:
        raise SystemExit(f"{words}: {status} {out} {err}")
    return out


class Job:
    """A new copy of an array with a job, for one attempt."""

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
        """After an attempt that was interrupted: the state is valid, and the job can be
        continued."""
        state = must("check", self.path, int(acknowledged)).strip()
        if step == "work":
            assert state == "old", what
            must("work", self.path)
        status, _, err = run("merge", self.path)
        over = status == 4 and state == "new"  # its folder is removed, too
        assert status == 0 or over, (what, state, status, err)
        assert must("check", self.path, 1).strip() == "new"
        left = [p.name for p in self.home.iterdir() if p.name.startswith("array.parts")]
        assert not left or over, (what, left)


def sweep(folder, layout, step, **shim):
    """Kills the step after each operation, or makes each fail."""
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


# ---- Random kills ---------------------------------------------------------------------------


def kill_step(folder, layout, step, n, r):
    """Kills a worker, or a coordinator during its merge; returns how often each state was
    found."""
    counts = {"old": 0, "new": 0}
    job = Job(folder, layout, finished=step == "merge")
    started = time.monotonic()
    assert run(step, job.path)[0] == 0
    length = time.monotonic() - started
    job.reset()
    for _ in range(n):
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
    return counts


def children_of(process):
    try:
        text = Path(f"/proc/{process}/task/{process}/children").read_text()
    except OSError:
        return []
    return [int(word) for word in text.split()]


def call(command, path, word):
    done = subprocess.run([ROUNDS, command, path, word], capture_output=True, text=True, timeout=PATIENCE)
    return done.returncode, done.stderr


def kill_live(folder, layout, r):
    """Kills a coordinator or one of its workers while they run rounds; returns which it was,
    and the state."""
    path = os.path.join(folder, "array")
    assert call("init", layout, path)[0] == 0
    child = subprocess.Popen([ROUNDS, "live", path, "4"], stdout=subprocess.PIPE,
                             stderr=subprocess.DEVNULL, text=True)
    time.sleep(r.uniform(0, 0.08))
    victim = r.choice([child.pid, *children_of(child.pid), *children_of(child.pid)])
    try:
        os.kill(victim, 9)
    except ProcessLookupError:  # a worker that had ended
        victim = None
    out = child.communicate()[0]  # waits also for workers without a coordinator
    acks = re.findall("^ACK (.*)$", out, re.MULTILINE)
    ack = acks[-1] if acks else "0"
    if victim != child.pid:
        assert child.returncode in (0, -9) and (ack == "4" or child.returncode), (layout, out)
    for command in ("check", "b2nd", "goes-on"):
        verdict = call(command, path, ack)
        assert verdict[0] == 0, (layout, command, ack, verdict)
    shutil.rmtree(path, ignore_errors=True)
    for name in os.listdir(folder):
        os.unlink(os.path.join(folder, name))
    return "coordinator" if victim == child.pid else "worker", ack


def random_kills(folder, n):
    r = random.Random(given.seed)
    counts = {"old": 0, "new": 0}
    steps = [(layout, step) for layout in ("file", "directory") for step in ("work", "merge")]
    for layout, step in steps:
        for state, k in kill_step(folder, layout, step, n // 8, r).items():
            counts[state] += k
    live = {"coordinator": 0, "worker": 0}
    for i in range(n - 4 * (n // 8)):
        who, _ = kill_live(folder, ("file", "directory")[i % 2], r)
        live[who] += 1
    print(f"{sum(counts.values())} random kills of one step: {counts}; of processes side by side: "
          f"{live}")


# ---- Crashes of several jobs ----------------------------------------------------------------


def commands(layout, n):
    return ["--shim", str(SHIM), "--ext", ".b2nd", "--atomic", "512", "--gate",
            "--init", f"{ROUNDS} init {layout} {{file}}",
            "--work", f"{ROUNDS} work {{file}} {n}",
            "--check", f"{ROUNDS} check {{file}} {{ack}}",
            "--check", f"{ROUNDS} b2nd {{file}} {{ack}}",
            "--check", f"{ROUNDS} goes-on {{file}} {{ack}}"]


def replay():
    """Disk images after each operation of workers, merges and commits, also after a power
    failure."""
    total = collections.Counter()
    for layout in ("file", "directory"):
        images = [] if given.long else ["--images", "40"]
        out = run_tool("crashreplay.py", *commands(layout, 6 if given.long else 3), *images,
                       "--samples", "3", "--seed", str(given.seed), "--json")
        print(f"{layout:<10}{dict(count(out))}")
        total += count(out)
    print(f"{sum(total.values())} crash images of rounds of jobs, all good: {dict(total)}")
    if sum(total.values()) < (3000 if given.long else 200):
        raise Failed("too few images to prove anything")


def losses_are_seen():
    """Without syncs, finished parts whose tokens were returned are lost: that must be
    reported."""
    out = run_tool("crashreplay.py", *commands("file", 3), "--no-syncs", "--models", "power",
                   "--images", "200", fails=True)
    if not re.search("acked missing|cannot open", out):
        raise Failed(f"no losses without syncs?\n{out}")


def every_kill():
    """Killed before each operation of several rounds, or each operation fails."""
    runs = 0
    every = "1" if given.long else "3"
    for layout in ("file", "directory"):
        base = [*commands(layout, 3), "--ops", OPERATIONS, "--every", every]
        out = run_tool("faultsweep.py", *base, "--kill")
        out += run_tool("faultsweep.py", *base, "--errno", "ENOSPC,EIO" if given.long else "ENOSPC",
                        "--short", "0", "--may-succeed")
        runs += count_good(out)
    print(f"{runs} kills and faults in rounds of jobs, all good")


def main():
    if not SHIM.exists() or not TOOL.exists():
        return SKIPPED
    print(f"seed {given.seed}")
    with tempfile.TemporaryDirectory() as folder:
        for layout in ("file", "directory"):
            for step in ("work", "merge"):
                sweep(folder, layout, step)
                sweep(folder, layout, step, WJ_ERRNO=ENOSPC)
        random_kills(folder, given.kills)
    try:
        replay()
        losses_are_seen()
        every_kill()
    except Failed as failure:
        print(failure)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

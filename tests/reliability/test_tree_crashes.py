"""Crashes, kills and I/O errors while trees are committed to and packed, tested from outside
the process: for our readers and writers all arrays are in the state of the last acknowledged
commit, or all in that of the next one, and C-Blosc2 can read each array. An archive, a Zarr array
and a hierarchy of Zarr groups are the old one or the new one.

usage: test_tree_crashes.py [--long] [SEED]      --long, or CATERVA_TEST_LONG=1: every crash
point of longer workloads"""

import collections
import json
import re
import sys

import test_crashes as crashes
from test_crashes import Failed, run_tool

TOOL = crashes.WORKLOAD.replace("tool_workload", "tool_trees")
KINDS = ("overwrite", "grow", "shrink", "create", "attributes", "mixed", "ordered")
IS_LONG, SEED = crashes.IS_LONG, crashes.SEED


def commands(kind, work, n_commits):
    return ["--shim", crashes.SHIM, "--ext", ".b2d", "--atomic", "512", "--gate",
            "--init", f"{TOOL} init {kind} {{file}}",
            "--work", f"{TOOL} {work} {kind} {{file}} {n_commits}",
            "--check", f"{TOOL} check {kind} {{file}} {{ack}}",
            "--check", f"{TOOL} b2nd {kind} {{file}} {{ack}}",
            "--check", f"{TOOL} write {kind} {{file}} {{ack}}"]


def count(out):
    results = json.loads(out.splitlines()[-1])["results"]
    return collections.Counter({model: counts["ok"] for model, counts in results.items()})


def count_good(out):
    return sum(int(n) for n in re.findall(r"file ok: (\d+)", out))


def replay():
    """Every operation of commits over three arrays; `unsynced` ignores syncs."""
    total = collections.Counter()
    images = [] if IS_LONG else ["--images", "40"]
    for kind in KINDS + ("unsynced",):
        models = ["--models", "prefix,torn"] if kind == "unsynced" else []
        out = run_tool("crashreplay.py", *commands(kind, "sessions", 9 if IS_LONG else 4),
                       *images, *models, "--samples", "3", "--seed", str(SEED), "--json")
        total += count(out)
        print(f"{kind:<11}{dict(count(out))}")
    print(f"{sum(total.values())} crash images of commits, all good: {dict(total)}")
    if sum(total.values()) < (5000 if IS_LONG else 500):
        raise Failed("too few images to prove anything")


def every_kill():
    """Killed before each operation of commits over three arrays: all old or all new."""
    runs = 0
    for kind in KINDS if IS_LONG else ("mixed",):
        out = run_tool("faultsweep.py", *commands(kind, "work", 3), "--kill")
        runs += count_good(out)
    print(f"{runs} kills, all good")


def losses_are_seen():
    """A disk that ignores syncs mixes or loses commits: the replay must detect it."""
    out = run_tool("crashreplay.py", *commands("mixed", "work", 4), "--no-syncs",
                   "--models", "power", fails=True)
    if not re.search("acked missing|half visible|cannot open", out):
        raise Failed(f"no losses without syncs?\n{out}")


def sweep():
    """Each operation fails in turn: a failed commit must be reported, and states are never
    mixed."""
    every = [] if IS_LONG else ["--every", "3"]
    runs = 0
    for kind in ("mixed", "overwrite", "create", "attributes") if IS_LONG else ("mixed",):
        out = run_tool("faultsweep.py", *commands(kind, "work", 3), *every, "--ops", "WSRO",
                       "--short", "0", "--errno", "ENOSPC,EIO" if IS_LONG else "EIO")
        out += run_tool("faultsweep.py", *commands(kind, "sessions", 3), *every, "--errno",
                        "EIO", "--may-succeed")
        runs += count_good(out)
    print(f"{runs} runs with a failing operation, all good")


def packs(work, check):
    """An archive, or Zarr groups and arrays, created again and again, with a crash at every
    operation."""
    packed = ["--shim", crashes.SHIM, "--ext", ".b2d", "--atomic", "512", "--gate",
              "--init", f"{TOOL} init mixed {{file}}",
              "--work", f"{TOOL} {work} mixed {{file}} {6 if IS_LONG else 3}",
              "--check", f"{TOOL} {check} mixed {{file}} {{ack}}",
              "--check", f"{TOOL} check mixed {{file}} {{ack}}"]
    images = [] if IS_LONG else ["--images", "60"]
    out = run_tool("crashreplay.py", *packed, *images, "--samples", "3", "--seed", str(SEED),
                   "--json")
    print(f"{work}: {dict(count(out))}")
    out = run_tool("faultsweep.py", *packed, "--kill", *([] if IS_LONG else ["--every", "3"]))
    out += run_tool("faultsweep.py", *packed, "--ops", "WSRO", "--short", "0", "--every",
                    "1" if IS_LONG else "7", "--errno", "ENOSPC", "--may-succeed")
    print(f"{work}: {count_good(out)} kills and faults")


def main():
    if not crashes.os.path.exists(crashes.SHIM):
        print("skipped: no shim in this build (it is made on Linux, without sanitizers)")
        return crashes.SKIPPED
    print(f"seed {SEED}")
    try:
        replay()
        every_kill()
        losses_are_seen()
        sweep()
        packs("pack", "packed")
        packs("zarr", "zarred")
    except Failed as failure:
        print(failure)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

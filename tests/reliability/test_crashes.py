"""Crashes, kills and I/O errors, tested from outside the process: whatever happens to a
writer's file operations, the file holds the last acknowledged commit or the next one, for our
reader and for C-Blosc2's b2nd.

usage: test_crashes.py [--long] [SEED]      --long, or CATERVA_TEST_LONG=1: some
minutes and more than 5,000 crash images instead of some hundreds"""

import collections
import json
import os
import re
import subprocess
import sys
import time

SKIPPED = 77
KINDS = ("append", "aligned", "unaligned", "resize", "insert", "remove", "attributes",
         "compact", "mixed")
LAYOUTS = ("file", "directory")

SOURCE = os.environ.get("CATERVA_SOURCE_DIR") or os.path.join(os.path.dirname(__file__), "../..")
TOOLS = os.path.join(SOURCE, "tools", "reliability")
HELPERS = os.path.join(os.environ.get("CATERVA_HELPER_DIR", ""), "reliability")
SHIM = os.path.join(HELPERS, "wjournal.so")
WORKLOAD = os.path.join(HELPERS, "tool_workload")

IS_LONG = "--long" in sys.argv or bool(os.environ.get("CATERVA_TEST_LONG"))
numbers = [word for word in sys.argv[1:] if not word.startswith("--")]
SEED = int(numbers[0], 0) if numbers else time.time_ns() % 1_000_000


class Failed(Exception):
    pass


def commands(layout, kind, work, n_commits):
    return ["--shim", SHIM, "--ext", ".b2nd", "--atomic", "512", "--gate",
            "--init", f"{WORKLOAD} init {layout} {kind} {{file}}",
            "--work", f"{WORKLOAD} {work} {kind} {{file}} {n_commits}",
            "--check", f"{WORKLOAD} check {kind} {{file}} {{ack}}",
            "--check", f"{WORKLOAD} check-b2nd {kind} {{file}} {{ack}}"]


def run_tool(name, *arguments, fails=False):
    done = subprocess.run([sys.executable, os.path.join(TOOLS, name), *arguments],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if (done.returncode != 0) != fails:
        raise Failed(f"{name} {' '.join(arguments)}\n{done.stdout}")
    return done.stdout


def replay():
    """Crash images of every kind of change, of files and of directories."""
    total = collections.Counter()
    for layout in LAYOUTS:
        for kind in KINDS:
            out = run_tool("crashreplay.py", *commands(layout, kind, "sessions", 20 if IS_LONG else 6),
                           "--images", "160" if IS_LONG else "12", "--seed", str(SEED), "--json")
            results = json.loads(out.splitlines()[-1])["results"]
            for model, counts in results.items():
                total[model] += counts["ok"]
            print(f"{layout:<10}{kind:<11}" +
                  ", ".join(f"{model} {counts['ok']}" for model, counts in results.items()))
    print(f"{sum(total.values())} crash images, all good: {dict(total)}")
    if sum(total.values()) < (5000 if IS_LONG else 300):
        raise Failed("too few images to prove anything")


def losses_are_seen():
    """A disk that ignores syncs loses acknowledged data: the replay must detect it."""
    for layout in LAYOUTS:
        out = run_tool("crashreplay.py", *commands(layout, "aligned", "work", 4), "--no-syncs",
                       "--models", "power", fails=True)
        if "acked missing" not in out and "cannot open" not in out:
            raise Failed(f"no losses without syncs?\n{out}")


def sweep():
    """Each operation fails in turn. Every failure must be reported, except of removing a file
    that is no longer needed; a short write that is continued is no failure. Closing removes as
    much as it can."""
    every = [] if IS_LONG else ["--every", "3"]
    kinds = KINDS if IS_LONG else ("mixed", "compact")
    runs = 0
    for layout in LAYOUTS:
        for kind in kinds:
            n = 6 if IS_LONG else 3
            base = commands(layout, kind, "work", n) + every
            out = run_tool("faultsweep.py", *base, "--ops", "WSRO", "--short", "0",
                           "--errno", "ENOSPC,EIO" if IS_LONG else "ENOSPC")
            out += run_tool("faultsweep.py", *base, "--errno", "ENOSPC", "--short", "1",
                            "--may-succeed", "--sticky", "0,1" if IS_LONG else "1")
            base = commands(layout, kind, "sessions", n) + every
            out += run_tool("faultsweep.py", *base, "--errno", "EIO", "--short", "0",
                            "--sticky", "0,1" if IS_LONG else "0", "--may-succeed")
            out += run_tool("faultsweep.py", *base, "--kill")
            runs += sum(int(n) for n in re.findall(r"file ok: (\d+)", out))
    print(f"{runs} runs with a failing operation or a kill, all good")


def main():
    if not os.path.exists(SHIM):
        print("skipped: no shim in this build (it is made on Linux, without sanitizers)")
        return SKIPPED
    print(f"seed {SEED}")
    try:
        replay()
        losses_are_seen()
        sweep()
    except Failed as failure:
        print(failure)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""The installed library from outside: random sequences of operations on random arrays, through
ctypes and the installed header alone, each step compared with NumPy.

usage: test_outside.py PREFIX [LIBDIR] [--seed N] [--sequences N] [--only N] [--trace]
       test_outside.py --header FILE --library FILE ...    one that is not installed

Arrays have 0 to 6 axes, some without items, any dtype and pipeline of filters, in memory, a
file or a directory; two handles read them, and python-blosc2 reads and writes in between. 100
sequences of 40 steps; --long: 2,000. The seed repeats a run, and --only one sequence of it."""

import argparse
import collections
import shutil
import sys
import tempfile
import traceback
from pathlib import Path

try:
    import numpy as np
    import tool_header
    from tool_handle import Library
    from tool_steps import WEIGHTS, Steps
except ImportError as missing:
    print(f"skipped: {missing}; it runs in the environment of scripts/bootstrap --test")
    sys.exit(77)

STEPS = 40


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("prefix", nargs="?")
    parser.add_argument("libdir", nargs="?", default="lib")
    parser.add_argument("--header", type=Path)
    parser.add_argument("--library", type=Path)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--sequences", type=int, default=100)
    parser.add_argument("--long", action="store_true")
    parser.add_argument("--only", type=int)
    parser.add_argument("--trace", action="store_true")
    return parser.parse_args()


def run(library, seed, number, counts, trace):
    """Runs one sequence; returns None, or what went wrong."""
    rng = np.random.default_rng([seed, number])
    names = list(WEIGHTS)
    shares = np.array(list(WEIGHTS.values())) / sum(WEIGHTS.values())
    folder = tempfile.mkdtemp(prefix="caterva-outside-")
    life, step, done = None, "create", 0
    try:
        life = Steps(library, folder, rng)
        for done in range(1, STEPS + 1):
            step = str(rng.choice(names, p=shares))
            if trace:
                print(number, done, step, life.now.items.shape, flush=True)
            getattr(life, step)()
            counts[step] += 1
        step = "finish"
        life.finish()
    except Exception:
        about = life.described if life and hasattr(life, "described") else "no array"
        return f"sequence {number}, step {done} ({step}), {about}:\n{traceback.format_exc()}"
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return None


def main():
    given = arguments()
    api = tool_header.Api(given.header, given.library) if given.header else \
        tool_header.load(given.prefix, given.libdir)
    seed = given.seed if given.seed is not None else int(np.random.SeedSequence().entropy % 10**9)
    n = 2000 if given.long else given.sequences
    numbers = [given.only] if given.only is not None else range(n)
    print(f"seed {seed}, {len(numbers)} sequences of {STEPS} steps", flush=True)
    counts, failed = collections.Counter(), 0
    for number in numbers:
        wrong = run(Library(api), seed, number, counts, given.trace)
        if wrong:
            failed += 1
            print(wrong, flush=True)
    print(f"{sum(counts.values())} steps, {failed} sequences with a difference")
    missing = [step for step in WEIGHTS if counts[step] == 0]
    if len(numbers) >= 100 and missing:
        print("never taken:", *missing)
        return 1
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

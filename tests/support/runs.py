"""How much of a test runs: the number and seed of random runs, and the share of the cases."""

import argparse
import os
import random
import sys
import unittest

LONG = bool(os.environ.get("CATERVA_TEST_LONG"))        # scripts/soak: all cases
SANITIZED = bool(os.environ.get("CATERVA_SANITIZE"))    # the build's sanitizers


def some(cases, plain=1, sanitized=4):
    """Returns every `plain`-th of the cases, or every `sanitized`-th under a sanitizer. The first
    one is random and is printed. Returns all cases if CATERVA_TEST_LONG is set."""
    cases = list(cases)
    step = 1 if LONG else sanitized if SANITIZED else plain
    if step == 1:
        return cases
    first = int(os.environ.get("CATERVA_TEST_FIRST", random.randrange(step))) % step
    print("one in %d of %d cases, CATERVA_TEST_FIRST=%d" % (step, len(cases), first), flush=True)
    return cases[first::step]


def main(module):
    """Runs the tests of a module. --runs N and --seed N set its RUNS and SEED. Under a sanitizer
    RUNS is divided by 3."""
    n = module.RUNS if LONG or not SANITIZED else max(1, module.RUNS // 3)
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=n)
    parser.add_argument("--seed", type=int)
    given, rest = parser.parse_known_args()
    module.RUNS, module.SEED = given.runs, given.seed
    os.environ["no_proxy"] = "127.0.0.1"
    unittest.main(module, argv=[sys.argv[0], *rest])


def seeded(module):
    """Runs the tests of a module. --seed N sets its SEED, which is otherwise random, and is
    printed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(4), "little"))
    given, rest = parser.parse_known_args()
    module.SEED = given.seed
    print("seed %d" % given.seed, flush=True)
    unittest.main(module, argv=[sys.argv[0], *rest])

"""Tests with random runs: how many, and of which seed, are words of the command line."""

import argparse
import os
import sys
import unittest


def main(module):
    """The tests of a module, whose RUNS and SEED --runs N and --seed N set."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=module.RUNS)
    parser.add_argument("--seed", type=int)
    given, rest = parser.parse_known_args()
    module.RUNS, module.SEED = given.runs, given.seed
    os.environ["no_proxy"] = "127.0.0.1"
    unittest.main(module, argv=[sys.argv[0], *rest])


def seeded(module):
    """The tests of a module, whose SEED --seed N sets, or chance; it is printed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(4), "little"))
    given, rest = parser.parse_known_args()
    module.SEED = given.seed
    print("seed %d" % given.seed, flush=True)
    unittest.main(module, argv=[sys.argv[0], *rest])

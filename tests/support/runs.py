"""Tests with random runs, whose number and seed are options of the command line."""

import argparse
import os
import sys
import unittest


def main(module):
    """Runs the tests of a module; --runs N and --seed N set its RUNS and SEED."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=module.RUNS)
    parser.add_argument("--seed", type=int)
    given, rest = parser.parse_known_args()
    module.RUNS, module.SEED = given.runs, given.seed
    os.environ["no_proxy"] = "127.0.0.1"
    unittest.main(module, argv=[sys.argv[0], *rest])


def seeded(module):
    """Runs the tests of a module; --seed N sets its SEED, else it is random. Prints the seed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(4), "little"))
    given, rest = parser.parse_known_args()
    module.SEED = given.seed
    print("seed %d" % given.seed, flush=True)
    unittest.main(module, argv=[sys.argv[0], *rest])

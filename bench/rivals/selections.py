#!/usr/bin/env python3
"""Selections of the same file through Caterva and through python-blosc2's NDArray.

    selections.py --library libcaterva.so [--json OUT] [--quick] [--cpu] [--only REGEX]

Steps, lists of indices, points and masks, with NumPy's meaning. Both sides read the same
selection in turns, a new one in each turn; the shortest turn counts, and the results are compared
with what NumPy selects from the array. Exits with 1 if a row is slower than the rival's."""

import argparse
import json
import os
import re
import sys
import tempfile
from pathlib import Path
from time import perf_counter, process_time

import blosc2
import numpy as np

import caterva
from run import make_cube

CHUNK, N_POINTS = 128, 10_000


class Blosc2:
    """python-blosc2, used as its manual recommends: slices and fancy indices in brackets, lists
    that select every combination through `oindex`."""

    ordered = False

    def __init__(self, path, threads):
        self.array = blosc2.open(str(path), mode="r", dparams={"nthreads": threads})

    def read_slices(self, slices):
        return self.array[slices]

    def read_lists(self, lists):
        return self.array.oindex[tuple(  # it accepts only lists
            np.arange(n) if indices is None else indices
            for n, indices in zip(self.array.shape, lists))]

    def read_points(self, points):
        return self.array[tuple(points.T)]

    def read_mask(self, mask):
        return self.array[mask]


# ---- What is selected -----------------------------------------------------------
# Each yields the reader's name, its arguments, and what NumPy selects.

def slices(step):
    def make(values, chance):
        taken = tuple(slice(int(chance.integers(step)), None, step) for _ in values.shape)
        return "read_slices", taken, values[taken]
    return make


def lists(*counts):
    def make(values, chance):
        taken = [chance.integers(0, n, count) if count else None
                 for n, count in zip(values.shape, counts)]
        return "read_lists", taken, values[np.ix_(*[
            range(n) if indices is None else indices
            for n, indices in zip(values.shape, taken)])]
    return make


def points(values, chance):
    taken = chance.integers(0, values.shape, (N_POINTS, values.ndim))
    return "read_points", taken, values[tuple(taken.T)]


def mask(share):
    def make(values, chance):
        taken = chance.random(values.shape, "f4") < share
        return "read_mask", taken, values[taken]
    return make


ROWS = (("[::4, ::4, ::4]", slices(4)), ("[::50, ::50, ::50]", slices(50)),
        ("20 planes of axis 0", lists(20, 0, 0)), ("20 planes of axis 2", lists(0, 0, 20)),
        ("lists of 50 x 50 x 50", lists(50, 50, 50)), ("10,000 points", points),
        ("mask of 0.1 %", mask(0.001)), ("mask of 30 %", mask(0.3)))


# ---- Turns ----------------------------------------------------------------------

def time_read(clock, side, selection, who):
    reader, taken, expected = selection
    started = clock()
    out = getattr(side, reader)(taken)
    seconds = clock() - started
    bits = [items.view(f"<u{items.itemsize}") for items in (out, expected)]
    if not np.array_equal(*bits):
        # python-blosc2 returns the items of a dense mask in the order of its chunks.
        if side.ordered or not np.array_equal(*map(np.sort, bits)):
            sys.exit(f"{who} takes other items than NumPy")
    return seconds


def duel(ours, theirs, values, make, options):
    chance, best, spent, turns = np.random.default_rng(7), [float("inf")] * 2, 0, 0
    while spent < options.budget or turns < 4:
        selection = make(values, chance)
        sides = [(0, ours, "caterva"), (1, theirs, "python-blosc2")]
        for i, side, who in sides if turns % 2 else reversed(sides):
            seconds = time_read(options.clock, side, selection, who)
            best[i] = min(best[i], seconds)
            spent += seconds
        turns += 1
    return best


def compare(library, values, setting, path, options):
    rows = []
    for threads in (1,) if options.cpu else (1, 2):
        ours = library.open(path, values.shape, values.dtype, threads, caterva.CACHE_OFF)
        theirs = Blosc2(path, threads)
        for name, make in ROWS:
            if options.only and not re.search(options.only, name):
                continue
            our_time, their_time = duel(ours, theirs, values, make, options)
            rows.append({**setting, "threads": threads, "selection": name, "ours": our_time,
                         "theirs": their_time, "ratio": their_time / our_time})
            print(f"{setting['data']:12} blocks of {setting['block']}^3 {threads} T {name:22} "
                  f"{1e3 * our_time:10.3f} {1e3 * their_time:10.3f} "
                  f"{rows[-1]['ratio']:8.2f}x", file=sys.stderr, flush=True)
        ours.close()
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--library", required=True)
    parser.add_argument("--json")
    parser.add_argument("--only", help="selections whose name has this regular expression")
    parser.add_argument("--quick", action="store_true", help="a small cube, little time")
    parser.add_argument("--cpu", action="store_true",
                        help="the processor's time, of one thread: for busy machines")
    parser.set_defaults(side=384, budget=1.0)
    options = parser.parse_args()
    options.clock = process_time if options.cpu else perf_counter
    if options.quick:
        options.side, options.budget = 256, 0.2
    library = caterva.Library(os.path.abspath(options.library))
    rows = []
    with tempfile.TemporaryDirectory(prefix="caterva-selections-") as folder:
        path = Path(folder) / "a.b2nd"
        for noisy in (True, False):
            values = make_cube(noisy, options.side)
            for block in (32, 16):
                library.create(path, values, (CHUNK,) * 3, 2, (block,) * 3)
                setting = {"data": "noisy" if noisy else "compressible", "block": block}
                rows += compare(library, values, setting, path, options)
    if options.json:
        Path(options.json).write_text(json.dumps(
            {"schema": 1, "caterva": library.version,
             "rival": f"python-blosc2 {blosc2.__version__}", "side": options.side,
             "unit": "seconds", "rows": rows}, indent=1))
    slower = [row for row in rows if row["ratio"] < 1]
    print(f"{len(rows)} rows against python-blosc2 {blosc2.__version__}, "
          f"{len(slower)} of them slower")
    sys.exit(1 if slower else 0)


if __name__ == "__main__":
    main()

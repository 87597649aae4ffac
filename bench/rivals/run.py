#!/usr/bin/env python3
"""Caterva compared with other array stores, all of them through Python.

    run.py --library libcaterva.so [--json OUT] [--quick] [--creation] [--only REGEX]

Each store holds the same float32 cube in chunks of the same shape. Both sides then read the
same boxes, in turns; the shortest turn counts, and the results are compared with the array. Scans
end after a time limit. If this ends them before the last plane, their time per plane is marked
with ~. See README.md."""

import argparse
import importlib
import json
import os
import random
import re
import shutil
import sys
import tempfile
from pathlib import Path
from time import perf_counter

import numpy as np

import caterva
from table import print_table

MODULES = ("rival_blosc2", "rival_hdf5", "rival_zarr", "rival_tensorstore", "rival_tiledb")
MIB = 1 << 20
FITTING = 192  # side of a cube that fits twice into 64 MiB


def make_cube(noisy, side):
    """As in the C benchmarks: a smooth field with 16 random low bits, or small cubes."""
    i, j, k = np.ogrid[:side, :side, :side]
    if not noisy:
        return np.ascontiguousarray((i // 8 + j // 8 + k // 8) % 19).astype("<f4")
    values = (2 + np.sin(i / 40) * np.cos(j / 50) + k / 300).astype("<f4")
    noise = np.random.default_rng(42).integers(0, 1 << 16, values.shape, dtype="<u4")
    return (values.view("<u4") ^ noise).view("<f4")


# ---- What is read -------------------------------------------------------------

# Name, lengths of the box (0: whole axis), boxes in one turn.
READS = (("full", (0, 0, 0), 1), ("box 50^3", (50, 50, 50), 4), ("plane 0", (1, 0, 0), 2),
         ("plane 1", (0, 1, 0), 2), ("plane 2", (0, 0, 1), 2), ("line 0", (0, 1, 1), 4),
         ("line 2", (1, 1, 0), 4), ("point", (1, 1, 1), 20))


def random_boxes(lengths, side, n, chance):
    for _ in range(n):
        start = [chance.randrange(side - (length or side) + 1) for length in lengths]
        yield start, [a + (length or side) for a, length in zip(start, lengths)]


def time_reads(read, boxes):
    """Returns the seconds for one box, and the items of the last one."""
    started = perf_counter()
    for start, stop in boxes:
        out = read(start, stop)
    return (perf_counter() - started) / len(boxes), out


def need_same(out, values, box, who):
    expected = values[tuple(map(slice, *box))]
    if not np.array_equal(out.view("<u4"), expected.view("<u4")):
        sys.exit(f"{who} reads other items than were written, at {box}")


def duel(ours, theirs, values, lengths, n, budget):
    """Runs turns, each with new positions, and returns the shortest time of each side. With few
    turns and a large cache, the result would depend on which side has blocks of a turn cached."""
    chance, best, spent, turns = random.Random(7), [float("inf")] * 2, 0, 0
    least = 12 if getattr(theirs, "big_cache", False) else 3
    while spent < budget or turns < least:
        boxes = list(random_boxes(lengths, values.shape[0], n, chance))
        sides = [(0, "caterva", ours.read), (1, theirs.name, theirs.read)]
        for i, who, read in sides if turns % 2 else reversed(sides):
            seconds, out = time_reads(read, boxes)
            need_same(out, values, boxes[-1], who)
            best[i] = min(best[i], seconds)
            spent += seconds * n
        turns += 1
        if spent > 8 * budget:  # a store that takes seconds for one read
            break
    return best


def scan(read, values, axis, budget):
    """Reads all planes along an axis, within the time limit. Returns the seconds for one plane,
    and whether all planes were read."""
    side = values.shape[0]
    took = 0.0
    for i in range(side):
        start, stop = [0] * 3, [side] * 3
        start[axis], stop[axis] = i, i + 1
        started = perf_counter()
        out = read(start, stop)
        took += perf_counter() - started
        if i % 64 == 0:
            need_same(out, values, (start, stop), "scan")
        if took > budget:
            break
    return took / (i + 1), i + 1 == side


# ---- The rows -----------------------------------------------------------------

class Comparison:
    def __init__(self, library, folder, options):
        self.library, self.folder, self.options = library, folder, options
        self.rows = []

    def add(self, setting, rival, threads, name, ours, theirs, estimated=False):
        row = {**setting, "rival": rival.name, "threads": threads, "read": name,
               "ours": ours, "theirs": theirs, "ratio": theirs / ours,
               "estimated": estimated}
        self.rows.append(row)
        print(f"{setting['data']:12} {setting['chunk']:4}^3 {rival.name:28} {threads} T "
              f"{name:12} {1e3 * ours:10.3f} {1e3 * theirs:10.3f}{'~' if estimated else ' '} "
              f"{row['ratio']:8.2f}x", file=sys.stderr, flush=True)

    def create(self, setting, values, rival):
        """Both sides write the array in turns, each time to a new path; the shortest turn counts.
        Ours is timed again for each rival."""
        chunks = (setting["chunk"],) * 3
        sides = ((0, self.library.create, self.folder / "ours.b2nd"),
                 (1, rival.create, self.folder / "theirs"))
        for threads in rival.threads:
            best, spent, turns = [float("inf")] * 2, 0, 0
            while turns < 2 or (turns < 9 and spent < 15 * self.options.budget):
                for i, create, where in sides if turns % 2 else reversed(sides):
                    remove(where)
                    started = perf_counter()
                    create(where, values, chunks, threads)
                    seconds = perf_counter() - started
                    best[i] = min(best[i], seconds)
                    spent += seconds
                turns += 1
            self.add(setting, rival, threads, "create", *best)
        return sides[1][2]

    def read(self, setting, values, rival, path, threads):
        cache = 64 * MIB if rival.big_cache else caterva.CACHE_OFF
        budget = self.options.budget
        ours = self.library.open(self.folder / "ours.b2nd", values.shape, values.dtype,
                                 threads, cache)
        rival.open(path, threads)
        if setting.get("fits"):
            for side in (ours, rival):
                for start in (0, 1, 0):  # fills the cache: all items, most of them, all again
                    side.read([start] * 3, list(values.shape))
        for name, lengths, n in READS:
            self.add(setting, rival, threads, name,
                     *duel(ours, rival, values, lengths, n, budget))
        ours.close()
        for axis in range(0 if setting.get("fits") else 3):
            # With default options: 64 MiB for decoded blocks, empty here.
            ours = self.library.open(self.folder / "ours.b2nd", values.shape, values.dtype,
                                     threads, 64 * MIB)
            our_time, our_all = scan(ours.read, values, axis, 20 * budget)
            their_time, their_all = scan(rival.read, values, axis, 10 * budget)
            ours.close()
            self.add(setting, rival, threads, f"scan {axis}", our_time, their_time,
                     not (our_all and their_all))
        rival.close()

    def run_fitting(self, setting, values, rivals):
        """Both sides have a cache of 64 MiB, more than twice the array's size, and have read
        everything before. So nothing is decoded."""
        self.run({**setting, "fits": True}, values, [r for r in rivals if r.big_cache])

    def run(self, setting, values, rivals):
        family, path = None, None
        for rival in rivals:
            if self.options.only and not re.search(self.options.only, rival.name):
                continue
            if rival.family != family:
                if path:
                    remove(path)
                path = self.create(setting, values, rival)
                family = rival.family
            for threads in () if self.options.creation else rival.threads:
                self.read(setting, values, rival, path, threads)
        if path:
            remove(path)


def remove(path):
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def find_rivals():
    """Returns the modules that can be imported, and why the others are skipped."""
    found, versions, skipped = [], {}, {}
    for name in MODULES:
        try:
            module = importlib.import_module(name)
        except ImportError as error:
            skipped[name] = str(error)
            continue
        versions[name] = module.VERSION
        found.append(module)
    return found, versions, skipped


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--library", required=True)
    parser.add_argument("--json")
    parser.add_argument("--only", help="rivals whose name has this regular expression")
    parser.add_argument("--creation", action="store_true", help="creates, and reads nothing")
    parser.add_argument("--quick", action="store_true", help="a small cube, little time")
    parser.set_defaults(side=384, budget=0.15)
    options = parser.parse_args()
    if options.quick:
        options.side, options.budget = 128, 0.01
    return options


def main():
    options = parse_arguments()
    library = caterva.Library(os.path.abspath(options.library))
    modules, versions, skipped = find_rivals()
    with tempfile.TemporaryDirectory(prefix="caterva-rivals-") as folder:
        comparison = Comparison(library, Path(folder), options)
        for noisy in (True, False):
            values = make_cube(noisy, options.side)
            for chunk in (128, 32):
                setting = {"data": "noisy" if noisy else "compressible", "chunk": chunk}
                for module in modules:
                    comparison.run(setting, values, module.rivals())
        for noisy in (True, False):
            values = make_cube(noisy, min(FITTING, options.side))
            for chunk in (128, 32):
                setting = {"data": "noisy" if noisy else "compressible", "chunk": chunk}
                for module in modules:
                    comparison.run_fitting(setting, values, module.rivals())
    print(f"caterva {library.version}, block cache: {'yes' if library.has_cache else 'no'}; "
          + "; ".join(versions.values()))
    for name, why in skipped.items():
        print(f"skipped: {name}: {why}")
    print(f"{options.side}^3 float32; one read's time and, behind it, how many times as long "
          "the rival takes")
    print_table(comparison.rows)
    if options.json:
        Path(options.json).write_text(json.dumps(
            {"schema": 1, "caterva": library.version, "rivals": versions, "skipped": skipped,
             "side": options.side, "unit": "seconds", "rows": comparison.rows}, indent=1))


if __name__ == "__main__":
    main()

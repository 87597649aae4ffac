#!/usr/bin/env python3
"""Caterva compared with HDF5 reading files that are not in the page cache, through Python.

    cold.py --library libcaterva.so [--json OUT] [--quick]

The same noisy float32 cube in chunks of the same shape, with Blosc (LZ4 5 and shuffle) on both
sides. Before each read both files are removed from the system's page cache and both handles are
opened again. HDF5 uses its chunk cache, our cache is off. A row has the shortest time of each
side and, if the system counts them, the KiB that the medium delivered."""

import argparse
import json
import os
import sys
import tempfile
from pathlib import Path
from time import perf_counter

import caterva
import rival_hdf5
from run import make_cube, need_same

READS = (("plane 0", (1, 0, 0)), ("plane 1", (0, 1, 0)), ("plane 2", (0, 0, 1)),
         ("box 50^3", (50, 50, 50)), ("line 2", (1, 1, 0)), ("point", (1, 1, 1)))
TURNS = 5


def delivered():
    """Returns the bytes that the medium has delivered to this process; 0 if they are not
    counted."""
    try:
        lines = Path("/proc/self/io").read_text().split()
    except OSError:
        return 0
    return int(lines[lines.index("read_bytes:") + 1])


def cool(path):
    with open(path, "rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def read_cold(path, opened, close, read, box):
    """Returns the seconds and KiB of one read."""
    cool(path)
    array = opened()
    before = delivered()
    started = perf_counter()
    out = read(array)(*box)
    seconds = perf_counter() - started
    kib = (delivered() - before) / 1024
    close(array)
    return seconds, kib, out


def duel(library, rival, folder, values, chunk, threads):
    """Returns the rows of one chunk shape."""
    ours, theirs, side = folder / "ours.b2nd", folder / "theirs.h5", values.shape[0]
    library.create(ours, values, (chunk,) * 3, threads)
    rival.create(theirs, values, (chunk,) * 3, threads)
    sides = (
        (ours, lambda: library.open(ours, values.shape, values.dtype, threads,
                                    caterva.CACHE_OFF),
         lambda array: array.close(), lambda array: array.read),
        (theirs, lambda: rival.open(theirs, threads) or rival,
         lambda opened: opened.close(), lambda opened: opened.read))
    for name, lengths in READS:
        start = [0 if length == 0 else side // 2 + 5 for length in lengths]
        box = start, [a + (length or side) for a, length in zip(start, lengths)]
        best = [(float("inf"), 0)] * 2
        for turn in range(TURNS):
            for i in (0, 1) if turn % 2 else (1, 0):
                seconds, kib, out = read_cold(*sides[i], box)
                need_same(out, values, box, sides[i][0].name)
                best[i] = min(best[i], (seconds, kib))
        (our_time, our_kib), (their_time, their_kib) = best
        yield {"chunk": chunk, "threads": threads, "read": name, "ours": our_time,
               "theirs": their_time, "ratio": their_time / our_time, "our_kib": our_kib,
               "their_kib": their_kib}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--library", required=True)
    parser.add_argument("--json")
    parser.add_argument("--quick", action="store_true", help="a small cube")
    options = parser.parse_args()
    library = caterva.Library(os.path.abspath(options.library))
    rival = next((r for r in rival_hdf5.rivals() if r.name == "hdf5 blosc"), None)
    if rival is None or not hasattr(os, "posix_fadvise"):
        sys.exit("skipped: needs hdf5plugin, and a system that can forget a file")
    values, rows = make_cube(True, 128 if options.quick else 384), []
    print(f"caterva {library.version}; {rival_hdf5.VERSION}; files not in the page cache")
    for chunk in (128, 32):
        with tempfile.TemporaryDirectory(prefix="caterva-cold-") as folder:
            for row in duel(library, rival, Path(folder), values, chunk, 1):
                rows.append(row)
                print(f"{chunk:4}^3 {row['read']:10} {1e3 * row['ours']:9.2f} ms "
                      f"{1e3 * row['theirs']:9.2f} ms {row['ratio']:8.2f}x   "
                      f"{row['our_kib']:9.0f} KiB {row['their_kib']:9.0f} KiB", flush=True)
    if options.json:
        Path(options.json).write_text(json.dumps({"schema": 1, "rows": rows}, indent=1))


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Processes that write one array: their speed, and the items that are lost.

writers.py speed [--rows REGEX] 1 and 2 processes: Caterva, zarr and tensorstore, aligned regions;
                              Caterva's unaligned ones and those of a directory, and the share
                              of merge and commit
writers.py loss               zarr and Caterva: regions that share chunks, written by processes,
                              of a whole array and after one that grows
writers.py tokens [--parts N] bytes of the tokens of N tasks, and the time of their merge

Needs a quiet machine. Skips zarr and tensorstore if they are not installed."""

import argparse
import contextlib
import importlib.util
import os
import re
import resource
import shutil
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import caterva
import numpy as np

CHUNK = 128
LEVEL = 1
TURNS = 6  # the best of them counts


whole = None


def begin_worker(side):
    """Makes the items once per process: noise that compresses by a quarter."""
    global whole
    whole = np.random.default_rng(1).integers(0, 1 << 12, (side, side, side), "i2")


def bands(side, n, shift):
    """Returns the rows of each of `n` tasks. A `shift` moves their edges into chunks."""
    edges = [0, *(min(side, side * i // n + shift) for i in range(1, n)), side]
    return [(slice(a, b),) for a, b in zip(edges, edges[1:], strict=False)]


def write_caterva(job, box):
    begin = time.perf_counter()
    with job.part(threads=1, durability="none") as part:
        part[box] = whole[box]
    return part.token, time.perf_counter() - begin


def write_zarr(path, box):
    import zarr
    from numcodecs import blosc

    blosc.set_nthreads(1)
    zarr.config.set({"async.concurrency": 1, "threading.max_workers": 1})
    begin = time.perf_counter()
    zarr.open_array(path, mode="r+")[box] = whole[box]
    return None, time.perf_counter() - begin


def write_tensorstore(path, box):
    import tensorstore as ts

    limits = {"data_copy_concurrency": {"limit": 1}, "file_io_concurrency": {"limit": 1},
              "file_io_sync": False}
    begin = time.perf_counter()
    spec = {"driver": "zarr3", "kvstore": {"driver": "file", "path": path}, "context": limits}
    ts.open(spec, open=True).result()[box].write(whole[box]).result()
    return None, time.perf_counter() - begin


def make_zarr(path, side):
    import zarr
    from zarr.codecs import BloscCodec

    blosc = BloscCodec(cname="zstd", clevel=LEVEL, shuffle="shuffle", typesize=2)
    zarr.create_array(path, shape=(side,) * 3, chunks=(CHUNK // 2, CHUNK, CHUNK), dtype="i2",
                      compressors=[blosc], overwrite=True)


def store(name, pool, boxes, side):
    """Returns the seconds in total, of all tasks' writing, and of merge and commit."""
    n = len(boxes)
    what, _, how = name.partition(", ")
    if what != "caterva":
        write = write_zarr if what == "zarr" else write_tensorstore
        make_zarr("a.zarr", side)
        begin = time.perf_counter()
        done = list(pool.map(write, [os.path.abspath("a.zarr")] * n, boxes))
        return time.perf_counter() - begin, sum(t for _, t in done), 0.0
    with contextlib.suppress(FileNotFoundError):  # not timed, as for zarr
        caterva.delete("a.b2nd")
    a = caterva.zeros((side,) * 3, "i2", "a.b2nd", chunks=(CHUNK // 2, CHUNK, CHUNK),
                      codec="zstd", level=LEVEL, durability="none", overwrite=True,
                      layout="sparse" if how == "directory" else "contiguous")
    begin = time.perf_counter()
    with a, a.job() as job:
        done = list(pool.map(write_caterva, [job] * n, boxes))
        merging = time.perf_counter()
        job.merge([token for token, _ in done])
        a.commit()
        merging = time.perf_counter() - merging
    return time.perf_counter() - begin, sum(t for _, t in done), merging


def speed(side, only):
    rows = [("caterva", 0), ("caterva, unaligned", 17), ("caterva, directory", 0)]
    rows += [(name, 0) for name in ("zarr", "tensorstore") if importlib.util.find_spec(name)
             and importlib.util.find_spec("zarr")]
    rows = [row for row in rows if re.match(only, row[0])]
    size = side**3 * 2 / 1e6
    for name, shift in rows:
        walls = {}
        for n in (1, 2):
            with ProcessPoolExecutor(
                n, get_context("forkserver"), initializer=begin_worker, initargs=(side,)
            ) as pool:
                boxes = bands(side, 4, shift)
                store(name, pool, boxes, side)  # starts all processes
                runs = [store(name, pool, boxes, side) for _ in range(TURNS)]
            walls[n], writing, merging = min(runs)
        print(f"{name:20} 1 process {size / walls[1]:6.0f} MB/s, 2 processes "
              f"{size / walls[2]:6.0f} MB/s, {walls[1] / walls[2]:4.2f} times; merge and commit "
              f"{100 * merging / writing:4.1f} % of the writing", flush=True)


def lose(write_one, boxes, pool, args):
    return list(pool.map(write_one, [args] * len(boxes), boxes))


def put_zarr(path, box):
    import zarr

    zarr.open_array(path, mode="r+")[box[0]] = np.arange(box[0].start, box[0].stop) + 1


def put_caterva(job, box):
    with job.part() as part:
        part[box] = np.arange(box[0].start, box[0].stop) + 1
    return part.token


def loss():
    """Counts lost items: of blocks that together fill an array, as in dask#12583, and of rows
    appended after half a chunk, as in xarray#8371."""
    n = 20_000
    with ProcessPoolExecutor(4, get_context("forkserver")) as pool:
        for what, before in (("store", 0), ("append", 370)):
            boxes = [(slice(i, min(n, i + 137)),) for i in range(before, n, 137)]
            lost = lose_caterva(pool, boxes, n, before)
            print(f"{what:7} caterva: {lost} of {n - before} items lost")
            if importlib.util.find_spec("zarr"):
                lost = lose_zarr(pool, boxes, n, before)
                print(f"{what:7} zarr:    {lost} of {n - before} items lost")


def lose_caterva(pool, boxes, n, before):
    with caterva.zeros(before or n, "i8", "lost.b2nd", chunks=1000, overwrite=True) as a:
        a[:before] = np.arange(before) + 1
        with a.job(n) as job:
            job.merge(lose(put_caterva, boxes, pool, job))
        return int((a[...] != np.arange(n) + 1).sum())


def lose_zarr(pool, boxes, n, before):
    import zarr

    z = zarr.create_array("lost.zarr", shape=(before or n,), chunks=(1000,), dtype="i8",
                          overwrite=True)
    z[:before] = np.arange(before) + 1
    z.resize((n,))
    lose(put_zarr, boxes, pool, os.path.abspath("lost.zarr"))
    return int((zarr.open_array("lost.zarr")[...] != np.arange(n) + 1).sum())


def tokens(n):
    with caterva.zeros(n * 64, "i4", "many.b2nd", chunks=256, durability="none",
                       overwrite=True) as a, a.job() as job:
        begin = time.perf_counter()
        held = []
        for i in range(n):
            with job.part(durability="none", threads=1) as part:
                part[64 * i : 64 * i + 64] = i + 1
            held.append(part.token)
        written = time.perf_counter()
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        job.merge(held)
        a.commit()
        merged = time.perf_counter()
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        wrong = int((a[...] != np.arange(n * 64) // 64 + 1).sum())
    bytes_held = sum(sys.getsizeof(token) for token in held)
    print(f"{n} parts written in {written - begin:.1f} s; tokens {bytes_held / 2**20:.2f} MiB; "
          f"merge and commit {merged - written:.1f} s, peak {before / 1024:.0f} MiB before and "
          f"{peak / 1024:.0f} MiB after; {wrong} items wrong")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["speed", "loss", "tokens"])
    parser.add_argument("--side", type=int, default=512)
    parser.add_argument("--rows", default="", help="those that match, of speed")
    parser.add_argument("--parts", type=int, default=10_000)
    args = parser.parse_args()
    folder = tempfile.mkdtemp(prefix="caterva-writers-")
    os.chdir(folder)
    try:
        if args.what == "speed":
            speed(args.side, args.rows)
        elif args.what == "loss":
            loss()
        else:
            tokens(args.parts)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()

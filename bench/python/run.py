#!/usr/bin/env python3
"""Times the Python package and h5py, zarr, tensorstore and python-blosc2, all in one process,
on the same items in the same chunks. Results are compared before they are timed.

    run.py --c LIBRARY [--runs N] [--rows REGEX] [--json FILE] [--side N]

Each figure is a median; libraries take turns. Wall-clock times are meaningful only on a quiet
machine. "C" is the same call of the C library in a C loop (calls.c): it reads into memory
allocated for each call, as the package must, or, for `out=`, always into the same memory."""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import json
import math
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import timeit
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

Items = np.ndarray[Any, Any]
Rows = dict[str, dict[str, float]]


def items_of(side: int) -> Items:
    """Smooth data with noise, which compresses about as well as measured data."""
    random = np.random.default_rng(11)
    axis = np.linspace(0, 20, side)
    wave = np.sin(axis)[:, None, None] + np.cos(axis)[None, :, None] * np.sin(axis)[None, None]
    return (wave * 1000 + random.integers(0, 8, (side,) * 3)).astype("i4")


# ---- Libraries: each writes a file and opens it for reading and writing -----------------


class Caterva:
    name = "caterva"
    reading = "a[key]"

    def __init__(self, folder: Path, items: Items, chunks: tuple[int, ...]) -> None:
        import caterva

        self.path = folder / "a.b2nd"
        self.chunks, self.module = chunks, caterva
        with self.create(self.path, items.shape, items.dtype) as a:
            a[...] = items
        self.array = caterva.open(self.path)

    def create(self, path: Path, shape: tuple[int, ...], dtype: Any) -> Any:
        return self.module.create(
            shape, dtype, path, chunks=self.chunks, codec="lz4", level=5, overwrite=True,
            durability="none",
        )  # fmt: skip

    def write_slabs(self, folder: Path, items: Items, step: int) -> None:
        with self.create(folder / "w.b2nd", items.shape, items.dtype) as a:
            for i in range(0, len(items), step):
                a[i : i + step] = items[i : i + step]


class H5py:
    name = "h5py"
    reading = "a[key]"

    def __init__(self, folder: Path, items: Items, chunks: tuple[int, ...]) -> None:
        import h5py

        self.h5py, self.chunks = h5py, chunks
        with h5py.File(folder / "a.h5", "w") as f:
            self.create(f, items.shape, items.dtype)[...] = items
        self.file = h5py.File(folder / "a.h5", rdcc_nbytes=256 << 20)
        self.array = self.file["x"]

    def create(self, f: Any, shape: tuple[int, ...], dtype: Any) -> Any:
        return f.create_dataset("x", shape, dtype, chunks=self.chunks, compression="lzf",
                                shuffle=True)  # fmt: skip

    def write_slabs(self, folder: Path, items: Items, step: int) -> None:
        with self.h5py.File(folder / "w.h5", "w") as f:
            d = self.create(f, items.shape, items.dtype)
            for i in range(0, len(items), step):
                d[i : i + step] = items[i : i + step]


class Zarr:
    name = "zarr"
    reading = "a[key]"

    def __init__(self, folder: Path, items: Items, chunks: tuple[int, ...]) -> None:
        import zarr

        self.zarr, self.chunks = zarr, chunks
        self.array = self.create(folder / "a.zarr", items.shape, items.dtype)
        self.array[...] = items

    def create(self, path: Path, shape: tuple[int, ...], dtype: Any) -> Any:
        codec = self.zarr.codecs.BloscCodec(cname="lz4", clevel=5, shuffle="shuffle")
        return self.zarr.create_array(path, shape=shape, dtype=dtype, chunks=self.chunks,
                                      compressors=codec, overwrite=True)  # fmt: skip

    def write_slabs(self, folder: Path, items: Items, step: int) -> None:
        a = self.create(folder / "w.zarr", items.shape, items.dtype)
        for i in range(0, len(items), step):
            a[i : i + step] = items[i : i + step]


class Tensorstore:
    name = "tensorstore"
    reading = "a[key].read().result()"

    def __init__(self, folder: Path, items: Items, chunks: tuple[int, ...]) -> None:
        import tensorstore

        self.ts, self.chunks = tensorstore, chunks
        self.array = self.create(folder / "a.ts", items.shape, items.dtype)
        self.array[...] = items

    def create(self, path: Path, shape: tuple[int, ...], dtype: Any) -> Any:
        return self.ts.open(
            {
                "driver": "zarr",
                "kvstore": {"driver": "file", "path": str(path)},
                "metadata": {
                    "shape": list(shape),
                    "chunks": list(self.chunks),
                    "dtype": np.dtype(dtype).str,
                    "compressor": {"id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": 1},
                },
                "context": {"cache_pool": {"total_bytes_limit": 256 << 20}},
                "recheck_cached_data": False,
                "recheck_cached_metadata": False,
                "create": True,
                "delete_existing": True,
            }
        ).result()

    def write_slabs(self, folder: Path, items: Items, step: int) -> None:
        a = self.create(folder / "w.ts", items.shape, items.dtype)
        for i in range(0, len(items), step):
            a[i : i + step] = items[i : i + step]


class Blosc2:
    name = "blosc2"
    reading = "a[key]"

    def __init__(self, folder: Path, items: Items, chunks: tuple[int, ...]) -> None:
        import blosc2

        self.blosc2, self.chunks = blosc2, chunks
        self.create(folder / "a.b2", items.shape, items.dtype)[...] = items
        self.array = blosc2.open(str(folder / "a.b2"), mode="r")

    def create(self, path: Path, shape: tuple[int, ...], dtype: Any) -> Any:
        return self.blosc2.empty(
            shape, dtype, urlpath=str(path), mode="w", chunks=self.chunks,
            cparams={"codec": self.blosc2.Codec.LZ4, "clevel": 5},
        )  # fmt: skip

    def write_slabs(self, folder: Path, items: Items, step: int) -> None:
        a = self.create(folder / "w.b2", items.shape, items.dtype)
        for i in range(0, len(items), step):
            a[i : i + step] = items[i : i + step]


LIBRARIES = (Caterva, H5py, Zarr, Tensorstore, Blosc2)


class Calls:
    """Calls of the C library in C loops (calls.c), on our file."""

    name = "C"

    def __init__(self, library: str, path: Path, items: Items) -> None:
        self.lib = ctypes.CDLL(library)
        for name in ("read", "points", "write"):
            getattr(self.lib, f"calls_{name}").restype = ctypes.c_double
        self.lib.calls_open.restype = ctypes.c_void_p
        self.path, self.items = path, items
        self.bounds = ctypes.c_int64 * items.ndim
        self.handle = self.open(0, 0)

    def open(self, threads: int, cache_bytes: int) -> ctypes.c_void_p:
        path = str(self.path).encode()
        return ctypes.c_void_p(self.lib.calls_open(path, threads, ctypes.c_int64(cache_bytes)))

    def read(self, key: Any, out: Items | None) -> Loop:
        """Reads a box, into `out` or into memory allocated for each call."""
        shape = self.items.shape
        key = () if key is ... else key if isinstance(key, tuple) else (key,)
        key = (*key, *(slice(None),) * (len(shape) - len(key)))
        ranges = [
            range(*k.indices(n)) if isinstance(k, slice) else range(k, k + 1)
            for k, n in zip(key, shape, strict=True)
        ]
        start = self.bounds(*(r.start for r in ranges))
        stop = self.bounds(*(r.stop for r in ranges))
        size = math.prod(map(len, ranges)) * self.items.itemsize
        address = ctypes.c_void_p(None if out is None else out.ctypes.data)
        assert out is None or out.nbytes == size
        read, handle = self.lib.calls_read, self.handle
        return lambda n: n * read(handle, start, stop, address, ctypes.c_size_t(size), n)

    def points(self, handle: ctypes.c_void_p, threads: int, points: Items) -> float:
        address = ctypes.c_void_p(points.ctypes.data)
        return float(self.lib.calls_points(handle, threads, address, points.shape[1]))

    def write_slabs(self, folder: Path, items: Items, step: int) -> float:
        path = str(folder / "c.b2nd").encode()
        address = ctypes.c_void_p(items.ctypes.data)
        return float(self.lib.calls_write(path, ctypes.c_int64(len(items)), step, address))


# ---- Measuring ----------------------------------------------------------------------------

Loop = Callable[[int], float]  # the seconds of n calls


def loop_of(statement: str, **names: Any) -> Loop:
    """Returns a loop that repeats a statement without a function call."""
    return timeit.Timer(statement, globals=names).timeit


def once(call: Callable[[], Any]) -> Loop:
    """Returns a loop of a call that takes long enough to be timed alone."""
    return timeit.Timer(call).timeit


def seconds(loop: Loop, least: float) -> float:
    """Returns the seconds of one call, measured in a loop of at least `least` seconds."""
    n = 1
    while True:
        took = loop(n)
        if took >= least:
            return took / n
        n = max(n + 1, int(n * min(100, 1.2 * least / max(took, 1e-9))))


def in_turns(loops: dict[str, Loop], runs: int, least: float) -> dict[str, float]:
    """Returns the median of each loop. Every round runs each loop once."""
    found: dict[str, list[float]] = {name: [] for name in loops}
    for loop in loops.values():
        loop(1)
    for r in range(runs):
        names = list(loops)
        for name in names[r % len(names) :] + names[: r % len(names)]:
            found[name].append(seconds(loops[name], least))
    return {name: statistics.median(values) for name, values in found.items()}


def import_seconds(module: str) -> float:
    """Returns the seconds of an import, in a separate process that has imported NumPy."""
    text = (f"import numpy, time; b = time.perf_counter(); import {module}; "
            "print(time.perf_counter() - b)")  # fmt: skip
    out = subprocess.run(
        [sys.executable, "-c", text], capture_output=True, text=True, check=True
    )
    return float(out.stdout)


def read_points(array: Any, points: Items) -> float:
    """Returns the seconds of one point, read by one thread for each list of points."""

    def work(own: list[tuple[int, ...]]) -> None:
        for key in own:
            array[key]

    threads = [
        threading.Thread(target=work, args=([tuple(map(int, p)) for p in own],))
        for own in points
    ]
    begun = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return (time.perf_counter() - begun) / (points.shape[0] * points.shape[1])


@contextlib.contextmanager
def scratch() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="bench-python."))
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def make_libraries(folder: Path, items: Items, chunks: tuple[int, ...]) -> list[Any]:
    found = []
    for library in LIBRARIES:
        try:
            found.append(library(folder, items, chunks))
        except ImportError as error:
            print(f"without {library.name}: {error}", file=sys.stderr)
    return found


def read_rows(libraries: list[Any], calls: Calls, items: Items, options: Any) -> Rows:
    at = items.shape[0] // 3
    keys = {
        "point": (at, at + 1, at + 2),
        "box of 50^3": (slice(at, at + 50),) * 3,
        "plane": at,
        "whole array": ...,
    }
    rows = {}
    for row, key in keys.items():
        if not wanted(row, options):
            continue
        expected = np.asarray(items[key])
        out = np.empty_like(expected)
        for library in libraries:
            found = eval(library.reading, {"a": library.array, "key": key})
            assert np.array_equal(np.asarray(found), expected), library.name
        calls.read(key, out)(1)
        assert np.array_equal(out, expected), "C"
        loops = {x.name: loop_of(x.reading, a=x.array, key=key) for x in libraries}
        loops["C"] = calls.read(key, out if row == "point" else None)
        if row != "point":
            array = libraries[0].array
            loops["caterva, out="] = loop_of("a.read(key, out=out)", a=array, key=key, out=out)
            loops["C, the same memory"] = calls.read(key, out)
        rows[row] = in_turns(loops, options.runs, options.least)
    return rows


def write_rows(
    libraries: list[Any], calls: Calls, folder: Path, items: Items, options: Any
) -> Rows:
    if not wanted("slabs written", options):
        return {}
    step = libraries[0].chunks[0]
    loops = {x.name: once(lambda x=x: x.write_slabs(folder, items, step)) for x in libraries}
    loops["C"] = lambda n: sum(calls.write_slabs(folder, items, step) for _ in range(n))
    found = in_turns(loops, options.runs, 0)
    with libraries[0].module.open(folder / "c.b2nd") as a:
        assert np.array_equal(a[...], items) and a.info.codec == "lz4"
    return {"slabs written": found}


def import_rows(libraries: list[Any], options: Any) -> Rows:
    if not wanted("import", options):
        return {}
    found = {
        x.name: statistics.median(import_seconds(x.name) for _ in range(options.runs))
        for x in libraries
    }
    return {"import, beyond NumPy": found}


def thread_rows(libraries: list[Any], calls: Calls, options: Any) -> Rows:
    """Measures points read through one handle without a cache: each point decodes a block."""
    if not wanted("points by threads", options):
        return {}
    module, path = libraries[0].module, libraries[0].path
    rows: Rows = {}
    random = np.random.default_rng(3)
    with module.open(path, threads=1, cache_bytes=-1) as array:
        handle = calls.open(1, -1)
        points = random.integers(0, array.shape[0], (2, 20_000, 3))
        for threads in (1, 2):
            own = points[:threads]
            measured = {"caterva": [], "C": []}
            for _ in range(options.runs):
                measured["caterva"].append(read_points(array, own))
                measured["C"].append(calls.points(handle, threads, own))
            rows[f"points without a cache, {threads} T"] = {
                name: statistics.median(values) for name, values in measured.items()
            }
        calls.lib.calls_close(handle)
    return rows


def wanted(row: str, options: Any) -> bool:
    return re.search(options.rows, row) is not None


def text_of(value: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value * 1e9:.0f} ns"


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--c", required=True, metavar="LIBRARY", help="calls.c, built")
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--rows", default="", metavar="REGEX", help="only these")
    parser.add_argument("--side", type=int, default=240, help="items along each of 3 axes")
    parser.add_argument("--least", type=float, default=0.05, help="seconds of one measurement")
    parser.add_argument("--json", type=Path)
    return parser.parse_args()


def measure(options: argparse.Namespace) -> Rows:
    items = items_of(options.side)
    chunks = (max(1, options.side // 4),) * 3
    with scratch() as folder:
        libraries = make_libraries(folder, items, chunks)
        calls = Calls(options.c, libraries[0].path, items)
        return {
            **read_rows(libraries, calls, items, options),
            **write_rows(libraries, calls, folder, items, options),
            **import_rows(libraries, options),
            **thread_rows(libraries, calls, options),
        }


def main() -> int:
    options = parse()
    rows = measure(options)
    print(f"{options.side}^3 i4 in chunks of {options.side // 4}^3")
    for row, found in rows.items():
        own = next(iter(found.values()))
        print(row)
        for name, value in found.items():
            print(f"  {name:22}{text_of(value):>10}{value / own:10.3f}")
    if options.json:
        figures = {"side": options.side, "runs": options.runs, "rows": rows}
        options.json.write_text(json.dumps(figures, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())

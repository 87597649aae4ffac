#!/usr/bin/env python3
"""Times the Python package against h5py, zarr, tensorstore and python-blosc2, all in one
process, on the same items in the same chunks; results are compared before they are timed.

    run.py [--runs N] [--json FILE] [--side N]

Each figure is a median; libraries take turns. Wall-clock times count on a quiet machine
only. For the C library's own calls see bench_read and bench_threads; --c LIBRARY takes
libcaterva.so in by ctypes and times the same boxes through caterva_read alone, in a loop
whose cost without the call is taken off."""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

Items = np.ndarray[Any, Any]
Reader = Callable[[Any], Any]


def items_of(side: int) -> Items:
    """Smooth with noise: it compresses about as measured data do."""
    random = np.random.default_rng(11)
    axis = np.linspace(0, 20, side)
    wave = np.sin(axis)[:, None, None] + np.cos(axis)[None, :, None] * np.sin(axis)[None, None]
    return (wave * 1000 + random.integers(0, 8, (side,) * 3)).astype("i4")


# ---- Libraries: each writes a file and gives what reads and writes it -------------------


class Caterva:
    name = "caterva"

    def __init__(self, folder: Path, items: Items, chunks: tuple[int, ...]) -> None:
        import caterva

        self.path = folder / "a.b2nd"
        self.chunks, self.module = chunks, caterva
        with self.create(self.path, items.shape, items.dtype) as a:
            a[...] = items
        self.array = caterva.open(self.path)
        self.uncached = caterva.open(self.path, cache_bytes=-1)

    def create(self, path: Path, shape: tuple[int, ...], dtype: Any) -> Any:
        return self.module.create(
            shape, dtype, path, chunks=self.chunks, codec="lz4", level=5, overwrite=True,
            durability="none",
        )  # fmt: skip

    def read(self, key: Any) -> Any:
        return self.array[key]

    def read_uncached(self, key: Any) -> Any:
        return self.uncached[key]

    def write_slabs(self, folder: Path, items: Items, step: int) -> None:
        with self.create(folder / "w.b2nd", items.shape, items.dtype) as a:
            for i in range(0, len(items), step):
                a[i : i + step] = items[i : i + step]


class H5py:
    name = "h5py"

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

    def read(self, key: Any) -> Any:
        return self.array[key]

    def write_slabs(self, folder: Path, items: Items, step: int) -> None:
        with self.h5py.File(folder / "w.h5", "w") as f:
            d = self.create(f, items.shape, items.dtype)
            for i in range(0, len(items), step):
                d[i : i + step] = items[i : i + step]


class Zarr:
    name = "zarr"

    def __init__(self, folder: Path, items: Items, chunks: tuple[int, ...]) -> None:
        import zarr

        self.zarr, self.chunks = zarr, chunks
        self.array = self.create(folder / "a.zarr", items.shape, items.dtype)
        self.array[...] = items

    def create(self, path: Path, shape: tuple[int, ...], dtype: Any) -> Any:
        codec = self.zarr.codecs.BloscCodec(cname="lz4", clevel=5, shuffle="shuffle")
        return self.zarr.create_array(path, shape=shape, dtype=dtype, chunks=self.chunks,
                                      compressors=codec, overwrite=True)  # fmt: skip

    def read(self, key: Any) -> Any:
        return self.array[key]

    def write_slabs(self, folder: Path, items: Items, step: int) -> None:
        a = self.create(folder / "w.zarr", items.shape, items.dtype)
        for i in range(0, len(items), step):
            a[i : i + step] = items[i : i + step]


class Tensorstore:
    name = "tensorstore"

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

    def read(self, key: Any) -> Any:
        return self.array[key].read().result()

    def write_slabs(self, folder: Path, items: Items, step: int) -> None:
        a = self.create(folder / "w.ts", items.shape, items.dtype)
        for i in range(0, len(items), step):
            a[i : i + step] = items[i : i + step]


class Blosc2:
    name = "blosc2"

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

    def read(self, key: Any) -> Any:
        return self.array[key]

    def write_slabs(self, folder: Path, items: Items, step: int) -> None:
        a = self.create(folder / "w.b2", items.shape, items.dtype)
        for i in range(0, len(items), step):
            a[i : i + step] = items[i : i + step]


LIBRARIES = (Caterva, H5py, Zarr, Tensorstore, Blosc2)


class Calls:
    """caterva_read of the C library, into memory that is there."""

    name = "C"

    def __init__(self, library: str, path: Path, items: Items) -> None:
        self.lib = ctypes.CDLL(library)
        self.handle = ctypes.c_void_p()
        if self.lib.caterva_open(str(path).encode(), None, ctypes.byref(self.handle), None):
            raise OSError(f"the C library cannot open {path}")
        self.bounds, self.dtype = ctypes.c_int64 * items.ndim, items.dtype
        self.shape = items.shape

    def ready(self, key: Any) -> tuple[Callable[[], None], Callable[[], None], Items]:
        """A call, the same loop without the library, and where the items go."""
        key = key if isinstance(key, tuple) else (key,)
        key = (*key, *(slice(None),) * (len(self.shape) - len(key))) if Ellipsis not in key else (
            slice(None),) * len(self.shape)  # fmt: skip
        ranges = [
            range(*k.indices(n)) if isinstance(k, slice) else range(k, k + 1)
            for k, n in zip(key, self.shape, strict=True)
        ]
        start = self.bounds(*(r.start for r in ranges))
        stop = self.bounds(*(r.stop for r in ranges))
        out = np.empty([len(r) for r in ranges], self.dtype)
        read, handle = self.lib.caterva_read, self.handle
        address, size = ctypes.c_void_p(out.ctypes.data), ctypes.c_size_t(out.nbytes)
        nothing = self.lib.caterva_free  # of NULL
        null = ctypes.c_void_p()
        return (
            lambda: read(handle, start, stop, address, size, null),
            lambda: nothing(null, null, null, null, null, null),
            out,
        )


# ---- Measuring ----------------------------------------------------------------------------


def seconds(call: Callable[[], Any], least: float) -> float:
    """Of one call, in a loop that takes so long at least."""
    n = 1
    while True:
        begin = time.perf_counter()
        for _ in range(n):
            call()
        took = time.perf_counter() - begin
        if took >= least:
            return took / n
        n = max(n + 1, int(n * min(100, 1.2 * least / max(took, 1e-9))))


def in_turns(calls: dict[str, Callable[[], Any]], runs: int, least: float) -> dict[str, float]:
    """Medians; each round lets every one have its turn."""
    found: dict[str, list[float]] = {name: [] for name in calls}
    for call in calls.values():
        call()
    for r in range(runs):
        names = list(calls)
        for name in names[r % len(names) :] + names[: r % len(names)]:
            found[name].append(seconds(calls[name], least))
    return {name: statistics.median(values) for name, values in found.items()}


def import_seconds(module: str) -> float:
    """What an import adds to that of NumPy, in a process of its own."""
    text = (f"import numpy, time; b = time.perf_counter(); import {module}; "
            "print(time.perf_counter() - b)")  # fmt: skip
    out = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    return float(out.stdout)


def two_threads(read: Reader, shape: tuple[int, ...], planes: int) -> None:
    def work(k: int) -> None:
        for i in range(k, planes, 2):
            read(i)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


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


def read_rows(libraries: list[Any], items: Items, options: Any) -> dict[str, dict[str, float]]:
    n = items.shape[0]
    at = n // 3
    keys = {
        "point": (at, at + 1, at + 2),
        "box of 50^3": (slice(at, at + 50),) * 3,
        "plane": at,
        "whole array": ...,
    }
    rows = {}
    for row, key in keys.items():
        for library in libraries:
            assert np.array_equal(np.asarray(library.read(key)), items[key]), library.name
        calls = {x.name: (lambda x=x, key=key: x.read(key)) for x in libraries}
        rows[row] = in_turns(calls, options.runs, options.least)
    return rows


def c_rows(rows: dict[str, dict[str, float]], calls: Calls, items: Items, options: Any) -> None:
    """The C library's own time beside them."""
    at = items.shape[0] // 3
    for row, key in (("point", (at, at + 1, at + 2)), ("box of 50^3", (slice(at, at + 50),) * 3),
                     ("plane", at), ("whole array", ...)):  # fmt: skip
        call, nothing, out = calls.ready(key)
        call()
        assert np.array_equal(out.reshape(items[key].shape), items[key])
        found = in_turns({"C": call, "nothing": nothing}, options.runs, options.least)
        rows[row]["C"] = found["C"] - found["nothing"]


def other_rows(libraries: list[Any], folder: Path, items: Items, options: Any) -> Any:
    rows: dict[str, dict[str, float]] = {}
    step = libraries[0].chunks[0]
    calls = {x.name: (lambda x=x: x.write_slabs(folder, items, step)) for x in libraries}
    rows["slabs written"] = in_turns(calls, options.runs, 0)
    names = [x.name for x in libraries]
    rows["import"] = {
        name: statistics.median(import_seconds(name) for _ in range(options.runs))
        for name in names
    }
    read = libraries[0].read_uncached
    planes = items.shape[0]
    threads = in_turns(
        {
            "1": lambda: [read(i) for i in range(planes)],
            "2": lambda: two_threads(read, items.shape, planes),
        },
        options.runs,
        0,
    )
    rows["planes, no cache"] = {
        "caterva, one thread": threads["1"],
        "caterva, two threads": threads["2"],
    }
    return rows


def text_of(value: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value * 1e9:.0f} ns"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--side", type=int, default=240, help="items along each of 3 axes")
    parser.add_argument("--least", type=float, default=0.05, help="seconds of one measurement")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--c", metavar="LIBRARY", help="libcaterva.so, for the C calls")
    options = parser.parse_args()
    items = items_of(options.side)
    chunks = (max(1, options.side // 4),) * 3
    with scratch() as folder:
        libraries = make_libraries(folder, items, chunks)
        rows = read_rows(libraries, items, options)
        if options.c:
            c_rows(rows, Calls(options.c, libraries[0].path, items), items, options)
        rows |= other_rows(libraries, folder, items, options)
    for row, found in rows.items():
        own = next(iter(found.values()))
        print(f"{row} ({options.side}^3 i4, chunks {chunks[0]}^3)")
        for name, value in found.items():
            print(f"  {name:22}{text_of(value):>10}{value / own:10.2f}")
    if options.json:
        options.json.write_text(json.dumps({"side": options.side, "runs": options.runs,
                                            "rows": rows}, indent=1))  # fmt: skip
    return 0


if __name__ == "__main__":
    sys.exit(main())

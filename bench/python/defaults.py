#!/usr/bin/env python3
"""Measures array stores as installed: each with its defaults, from NumPy arrays to files and
back.

    defaults.py [--folder FOLDER] [--kinds REGEX] [--stores REGEX] [--runs N] [--head FILE.npy]
                [--check] [--json FILE]

Without --check, every installed store writes and reads two kinds of data. Measured are the time
of creation, the size, and the times of reading the whole array, a plane of each axis and a series
of points. --check writes all kinds of data with Caterva, python-blosc2 and zarr, also compares
Caterva's reads with those of its former default (zstd level 5), and exits with 1 if one of these
limits is exceeded:

- writing takes at most 1 / 0.95 times as long as the faster of python-blosc2 and zarr,
- the file is at most 3 % larger than python-blosc2's, 6 % if items have one byte,
- no read takes more than 1.1 times as long as with the former default.

Stores take turns, and the shortest of --runs turns counts. All read the same places, which
change from turn to turn, and open their file again in each turn. Wall-clock times are meaningful
only on a quiet machine."""

from __future__ import annotations

import argparse
import importlib
import json
import os
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

Items = np.ndarray[Any, Any]
AS_INSTALLED = r"smooth|packed"  # one kind of floats, one of integers
WRITE, SIZE, READ = 0.95, (1.06, 1.03), 1.1  # what --check allows


# ---- Kinds of data -----------------------------------------------------------------------


def _grid(*shape: int) -> list[Items]:
    return np.meshgrid(*(np.linspace(0, 6, n) for n in shape), indexing="ij", sparse=True)


def smooth(rng: np.random.Generator) -> Items:
    z, y, x = _grid(200, 300, 300)
    items = np.sin(x) * np.cos(y) + z
    return (items + rng.normal(0, 1e-3, items.shape)).astype("f4")


def random_walk(rng: np.random.Generator) -> Items:
    return np.cumsum(rng.normal(size=(120, 300, 300)), 0)


def counts(rng: np.random.Generator) -> Items:
    return rng.poisson(30, (200, 300, 300)).astype("i4")


def packed_temperature(rng: np.random.Generator) -> Items:
    _, y, x = _grid(200, 300, 300)
    return (2000 + 300 * np.sin(x) * np.cos(y) + rng.normal(0, 3, (200, 300, 300))).astype("i2")


def noisy_cube(rng: np.random.Generator) -> Items:
    """As in bench/rivals: a smooth field with 16 random low bits."""
    i, j, k = np.ogrid[:256, :256, :256]
    items = (2 + np.sin(i / 40) * np.cos(j / 50) + k / 300).astype("<f4")
    noise = rng.integers(0, 1 << 16, items.shape, dtype="<u4")
    return (items.view("<u4") ^ noise).view("<f4")


def compressible_cube(rng: np.random.Generator) -> Items:
    """As in bench/rivals: small cubes of one value each."""
    i, j, k = np.ogrid[:256, :256, :256]
    return np.ascontiguousarray((i // 8 + j // 8 + k // 8) % 19).astype("<f4")


def model_output(rng: np.random.Generator) -> Items:
    """As in bench/python/datasets.py: quarters of a unit, with noise of two units."""
    t, lat, lon = (np.linspace(0, 20, n, dtype="f4") for n in (64, 500, 540))
    wave = np.sin(t)[:, None, None] + np.cos(lat)[:, None] * np.sin(lon)
    return (np.round(wave * 1000 + rng.integers(0, 8, wave.shape)) / 4).astype("f4")


def camera(rng: np.random.Generator) -> Items:
    """Frames of a microscope: bright spots, an offset, shot noise, 16 bits."""
    y, x = np.ogrid[:512, :512]
    frame = np.full((512, 512), 100.0)
    for _ in range(60):
        cy, cx, r = rng.uniform(0, 512), rng.uniform(0, 512), rng.uniform(3, 12)
        frame += 900 * np.exp(-((y - cy) ** 2 + (x - cx) ** 2) / (2 * r * r))
    return rng.poisson(frame, (120, 512, 512)).astype("u2")


def land_cover(rng: np.random.Generator) -> Items:
    """Classes 0 to 12 on a map, in patches with ragged edges, at several times."""
    y, x = np.ogrid[:2000, :2000]
    field = sum(
        np.sin(y / rng.uniform(20, 200) + rng.uniform(0, 6))
        * np.cos(x / rng.uniform(20, 200) + rng.uniform(0, 6))
        for _ in range(8)
    )
    drift = np.linspace(0, 1, 12)[:, None, None]
    noise = rng.normal(0, 0.08, (12, 2000, 2000))
    return np.clip((field + drift + noise) * 2 + 6, 0, 12).astype("u1")


KINDS: dict[str, Callable[[np.random.Generator], Items]] = {
    "smooth f4 with noise": smooth,
    "random walk f8": random_walk,
    "counts i4": counts,
    "packed temperature i2": packed_temperature,
    "noisy cube f4": noisy_cube,
    "compressible cube f4": compressible_cube,
    "model output f4": model_output,
    "camera frames u2": camera,
    "land cover u1": land_cover,
}


def kinds(wanted: str, head: str | None) -> Iterator[tuple[str, Items]]:
    for name, make in KINDS.items():
        if re.search(wanted, name):
            yield name, np.ascontiguousarray(make(np.random.default_rng(1)))
    if head and re.search(wanted, "MRI head u1"):
        yield "MRI head u1", np.ascontiguousarray(np.load(head))


# ---- Stores ------------------------------------------------------------------------------


class Store:
    """A package with its defaults."""

    module = ""
    suffix = ""

    def __init__(self) -> None:
        self.package = importlib.import_module(self.module)

    def write(self, path: str, items: Items) -> None:
        raise NotImplementedError

    def open(self, path: str) -> tuple[Any, Callable[[], object]]:
        """Returns the object to index, and a function that closes it."""
        raise NotImplementedError


class Caterva(Store):
    module, suffix = "caterva", ".b2nd"
    options: dict[str, Any] = {}

    def write(self, path: str, items: Items) -> None:
        self.package.save(path, items, **self.options)

    def open(self, path: str) -> tuple[Any, Callable[[], object]]:
        array = self.package.open(path)
        return array, array.close


class Former(Caterva):
    options = {"codec": "zstd", "level": 5, "filters": ["shuffle"]}


class Blosc2(Store):
    module, suffix = "blosc2", ".b2nd"

    def write(self, path: str, items: Items) -> None:
        self.package.asarray(items, urlpath=path, mode="w")

    def open(self, path: str) -> tuple[Any, Callable[[], object]]:
        return self.package.open(path, mode="r"), lambda: None


class Zarr(Store):
    module, suffix = "zarr", ".zarr"

    def write(self, path: str, items: Items) -> None:
        self.package.save_array(path, items)

    def open(self, path: str) -> tuple[Any, Callable[[], object]]:
        return self.package.open_array(path, mode="r"), lambda: None


class Hdf5(Store):
    """Contiguous and without a filter: HDF5's default."""

    module, suffix = "h5py", ".h5"

    def write(self, path: str, items: Items) -> None:
        with self.package.File(path, "w") as file:
            file["x"] = items

    def open(self, path: str) -> tuple[Any, Callable[[], object]]:
        file = self.package.File(path)
        return file["x"], file.close


class TensorStore(Store):
    module, suffix = "tensorstore", ".ts"

    def _spec(self, path: str) -> dict[str, Any]:
        return {"driver": "zarr3", "kvstore": {"driver": "file", "path": path}}

    def write(self, path: str, items: Items) -> None:
        new = self.package.open(
            self._spec(path), create=True, dtype=items.dtype, shape=items.shape
        ).result()
        new.write(items).result()

    def open(self, path: str) -> tuple[Any, Callable[[], object]]:
        array = self.package.open(self._spec(path)).result()

        class Reader:
            def __getitem__(self, key: Any) -> Any:
                return array[key].read().result()

        return Reader(), lambda: None


class TileDB(Store):
    module, suffix = "tiledb", ".tdb"

    def write(self, path: str, items: Items) -> None:
        self.package.from_numpy(path, items).close()

    def open(self, path: str) -> tuple[Any, Callable[[], object]]:
        array = self.package.open(path)
        return array, array.close


STORES: dict[str, type[Store]] = {
    "caterva": Caterva,
    "python-blosc2": Blosc2,
    "zarr": Zarr,
    "h5py": Hdf5,
    "tensorstore": TensorStore,
    "tiledb": TileDB,
}
CHECKED = {
    "caterva": Caterva,
    "zstd 5": Former,
    "python-blosc2": Blosc2,
    "zarr": Zarr,
}


def installed(stores: dict[str, type[Store]], wanted: str) -> dict[str, Store]:
    found = {}
    for name, kind in stores.items():
        if re.search(wanted, name):
            try:
                found[name] = kind()
            except ImportError as error:
                print(f"skipped: {name}: {error}", file=sys.stderr)
    return found


# ---- Measuring ---------------------------------------------------------------------------


def remove(path: str) -> None:
    shutil.rmtree(path, ignore_errors=True)
    if os.path.lexists(path):
        os.remove(path)


def size_of(path: str) -> int:
    if os.path.isfile(path):
        return os.path.getsize(path)
    return sum(f.stat().st_size for f in Path(path).rglob("*") if f.is_file())


def places(shape: tuple[int, ...], turn: int) -> dict[str, list[tuple[Any, ...]]]:
    """Returns the boxes of each read, new ones in each turn."""
    rng = np.random.default_rng(turn)

    def boxes(n: int, lengths: list[int]) -> list[tuple[Any, ...]]:
        starts = [[int(rng.integers(s - l + 1)) for s, l in zip(shape, lengths)] for _ in range(n)]
        return [tuple(slice(a, a + l) for a, l in zip(start, lengths)) for start in starts]

    whole = list(shape)
    found = {"whole": [tuple(slice(0, n) for n in shape)]}
    for d in range(len(shape)):
        found[f"plane {d}"] = boxes(3, [*whole[:d], 1, *whole[d + 1 :]])
    for d in range(len(shape)):
        found[f"line {d}"] = boxes(8, [whole[e] if e == d else 1 for e in range(len(shape))])
    found["box"] = boxes(4, [min(n, 50) for n in shape])
    found["points"] = boxes(100, [1] * len(shape))
    return found


def timed(call: Callable[[], Any]) -> tuple[float, Any]:
    started = time.perf_counter()
    result = call()
    return time.perf_counter() - started, result


class Measured:
    """The shortest time of each store and step for one kind of data."""

    def __init__(self, items: Items, stores: dict[str, Store], folder: str) -> None:
        self.items, self.stores, self.folder = items, stores, folder
        self.seconds: dict[str, dict[str, float]] = {name: {} for name in stores}
        self.sizes: dict[str, int] = {}

    def path(self, name: str) -> str:
        return os.path.join(self.folder, name.replace(" ", "-") + self.stores[name].suffix)

    def keep(self, name: str, step: str, seconds: float) -> None:
        steps = self.seconds[name]
        steps[step] = min(seconds, steps.get(step, seconds))

    def write(self, turn: int) -> None:
        names = list(self.stores)
        for name in names if turn % 2 else reversed(names):
            path = self.path(name)
            remove(path)
            self.keep(name, "create", timed(lambda: self.stores[name].write(path, self.items))[0])
            self.sizes[name] = size_of(path)

    def read(self, turn: int) -> None:
        names = list(self.stores)
        for step, boxes in places(self.items.shape, turn).items():
            for name in names if turn % 2 else reversed(names):
                array, close = self.stores[name].open(self.path(name))
                seconds, last = timed(lambda: [array[box] for box in boxes][-1])
                close()
                if not np.array_equal(np.asarray(last), self.items[boxes[-1]], equal_nan=True):
                    sys.exit(f"{name} reads other items than were written, at {boxes[-1]}")
                self.keep(name, step, seconds / len(boxes))

    def run(self, runs: int) -> None:
        for turn in range(runs):
            self.write(turn)
        for turn in range(runs):
            self.read(turn)
        for name in self.stores:
            remove(self.path(name))

    def speed(self, name: str) -> float:
        return self.items.nbytes / 1e6 / self.seconds[name]["create"]

    def ratio(self, name: str) -> float:
        return self.items.nbytes / self.sizes[name]


# ---- Tables ------------------------------------------------------------------------------


def as_text(seconds: float) -> str:
    return f"{seconds * 1e3:.3g} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.3g} µs"


def as_installed(kind: str, m: Measured) -> None:
    steps = ["whole", *(s for s in m.seconds["caterva"] if s.startswith("plane")), "points"]
    print(f"\n{kind}, {'x'.join(map(str, m.items.shape))}, {m.items.nbytes / 1e6:.0f} MB\n")
    print("| store | create | ratio |", " | ".join(steps).replace("points", "point"), "|")
    print("|---|---|---|" + "---|" * len(steps))
    for name in m.stores:
        times = " | ".join(as_text(m.seconds[name][step]) for step in steps)
        print(f"| {name} | {m.speed(name):.0f} MB/s | {m.ratio(name):.2f} | {times} |", flush=True)


def failures(m: Measured) -> list[str]:
    fastest = max(m.speed(name) for name in ("python-blosc2", "zarr"))
    larger = m.sizes["caterva"] / m.sizes["python-blosc2"]
    found = []
    if m.speed("caterva") < WRITE * fastest:
        found.append(f"write {m.speed('caterva') / fastest:.2f}")
    if larger > SIZE[m.items.itemsize > 1]:
        found.append(f"size {larger:.3f}")
    for step, seconds in m.seconds["caterva"].items():
        slower = seconds / m.seconds["zstd 5"][step]
        if slower > READ:
            found.append(f"{step} {slower:.2f}")
    return found


def check(kind: str, m: Measured) -> bool:
    """Prints a row; returns whether all limits are kept."""
    if not hasattr(check, "begun"):
        check.begun = True  # type: ignore[attr-defined]
        heads = "".join(f" {name}: MB/s, ratio |" for name in m.stores)
        print(f"| data |{heads} reads, times of zstd 5's | behind |")
        print("|---|" + "---|" * (len(m.stores) + 2))
    cells = "".join(f" {m.speed(name):.0f}, {m.ratio(name):.2f} |" for name in m.stores)
    reads = [
        f"{step} {seconds / m.seconds['zstd 5'][step]:.2f}"
        for step, seconds in m.seconds["caterva"].items()
        if step != "create"
    ]
    failed = failures(m)
    print(f"| {kind} |{cells} {', '.join(reads)} | {', '.join(failed)} |", flush=True)
    return not failed


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--folder")
    parser.add_argument("--kinds", default=None)
    parser.add_argument("--stores", default="")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--head", help="an MRI head as .npy, as build/demo/head.npy")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--json")
    options = parser.parse_args()
    wanted = options.kinds or ("" if options.check else AS_INSTALLED)
    stores = installed(CHECKED if options.check else STORES, options.stores)
    rows, right = {}, True
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        for kind, items in kinds(wanted, options.head):
            m = Measured(items, stores, folder)
            m.run(options.runs)
            rows[kind] = {"bytes": items.nbytes, "sizes": m.sizes, "seconds": m.seconds}
            if options.check:
                right = check(kind, m) and right
            else:
                as_installed(kind, m)
    if options.json:
        Path(options.json).write_text(json.dumps({"schema": 1, "rows": rows}, indent=1))
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())

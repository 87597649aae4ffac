#!/usr/bin/env python3
"""Times xarray over trees, compared with zarr, h5netcdf and netCDF4: opens a data set of 50
variables, and reads maps and time series of one of 1 GB. All libraries have the same items in the
same chunks, in one process; results are compared before they count.

    datasets.py [--folder FOLDER] [--prepare] [--runs N] [--json FILE]

--prepare writes the files and measures nothing; a folder that has them is used as it is. Each
figure is the median over new places, in ms; libraries take turns. Wall-clock times are
meaningful only on a quiet machine."""

from __future__ import annotations

import argparse
import gc
import json
import shutil
import statistics
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

import caterva.xarray

SHAPE, CHUNKS = (1000, 500, 540), (40, 125, 180)  # 1.08 GB of float32
ENGINES = ("caterva .b2z", "caterva .b2d", "zarr", "h5netcdf", "netcdf4")
Rows = dict[str, dict[str, float]]


# ---- Data sets -------------------------------------------------------------------------


def many_variables() -> xr.Dataset:
    """50 variables with attributes and coordinates, as in the output of a weather model."""
    rng = np.random.default_rng(5)
    ds = xr.Dataset(
        coords={
            "time": np.arange("2000-01-01", "2000-01-05", 4, dtype="M8[h]").astype("M8[ns]"),
            "lat": np.linspace(-90, 90, 37),
            "lon": np.linspace(0, 355, 72),
        },
        attrs={"title": "50 variables", "Conventions": "CF-1.11"},
    )
    for i in range(50):
        items = rng.standard_normal((24, 37, 72)).astype("f4")
        attributes = {"units": "K", "long_name": f"variable number {i}", "level": i}
        ds[f"v{i:02}"] = (("time", "lat", "lon"), items, attributes)
    return ds


def large() -> xr.Dataset:
    """Smooth data with noise, which compresses about as well as measured data."""
    rng = np.random.default_rng(11)
    t, lat, lon = (np.linspace(0, 20, n, dtype="f4") for n in SHAPE)
    wave = np.cos(lat)[:, None] * np.sin(lon)[None]
    items = np.empty(SHAPE, "f4")
    for i, height in enumerate(np.sin(t)):
        items[i] = np.round((wave + height) * 1000 + rng.integers(0, 8, SHAPE[1:])) / 4
    return xr.Dataset({"t2m": (("time", "lat", "lon"), items)})


def zarr_codec() -> Any:
    from zarr.codecs import BloscCodec

    return BloscCodec(cname="zstd", clevel=5, shuffle="shuffle", typesize=4)


def save(ds: xr.Dataset, path: Path, engine: str, chunks: tuple[int, ...] | None) -> None:
    names = [name for name, v in ds.data_vars.items() if v.ndim == 3]
    words: dict[str, Any] = {}
    if engine.startswith("caterva"):
        words = {"chunks": chunks} if chunks else {}
        caterva.xarray.to_caterva(ds, path, encoding={n: dict(words) for n in names})
    elif engine == "zarr":
        words = {"compressors": (zarr_codec(),)} | ({"chunks": chunks} if chunks else {})
        ds.to_zarr(path, encoding={n: dict(words) for n in names}, consolidated=True)
    else:
        words = {"zlib": True, "complevel": 4, "shuffle": True}
        words |= {"chunksizes": chunks} if chunks else {}
        ds.to_netcdf(path, engine="h5netcdf", encoding={n: dict(words) for n in names})


def path_of(folder: Path, what: str, engine: str) -> Path:
    suffix = {"caterva .b2z": ".b2z", "caterva .b2d": ".b2d", "zarr": ".zarr"}.get(
        engine, ".nc"
    )
    return folder / f"{what}{suffix}"


def prepare(folder: Path) -> None:
    for what, make, chunks in (("many", many_variables, None), ("large", large, CHUNKS)):
        ds = None
        for engine in ENGINES:
            path = path_of(folder, what, engine)
            if path.exists():
                continue
            ds = make() if ds is None else ds
            begun = time.perf_counter()
            save(ds, path, engine, chunks)
            print(f"wrote {path.name} in {time.perf_counter() - begun:.1f} s", flush=True)


def bytes_of(path: Path) -> int:
    files = [path] if path.is_file() else [f for f in path.rglob("*") if f.is_file()]
    return sum(f.stat().st_size for f in files)


# ---- Measuring -----------------------------------------------------------------------------


def opened(folder: Path, what: str, engine: str) -> xr.Dataset:
    path = path_of(folder, what, engine)
    return xr.open_dataset(path, engine=engine.split()[0], cache=False)


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    begun = time.perf_counter()
    result = work()
    return (time.perf_counter() - begun) * 1e3, result


def opening(folder: Path, runs: int) -> dict[str, float]:
    times: dict[str, list[float]] = {engine: [] for engine in ENGINES}
    expected = None
    for run in range(runs + 1):
        for engine in ENGINES:
            ms, ds = timed(lambda engine=engine: opened(folder, "many", engine))
            if run:
                times[engine].append(ms)
            else:
                loaded = ds.load()
                expected = loaded if expected is None else expected
                xr.testing.assert_identical(loaded, expected)
            ds.close()
            del ds
            gc.collect()
    return {engine: statistics.median(ms) for engine, ms in times.items()}


def opening_again(folder: Path, runs: int) -> dict[str, float]:
    medians = {}
    for engine in ENGINES:
        times = []
        for _ in range(runs):
            ms, ds = timed(lambda engine=engine: opened(folder, "many", engine))
            times.append(ms)
            ds.close()
        medians[engine] = statistics.median(times)
    return medians


def reading(
    folder: Path, runs: int, place: Callable[[np.random.Generator], dict[str, Any]]
) -> dict[str, float]:
    sets = {engine: opened(folder, "large", engine) for engine in ENGINES}
    times: dict[str, list[float]] = {engine: [] for engine in ENGINES}
    rng = np.random.default_rng(3)
    for run in range(runs + 1):
        where = place(rng)
        expected = None
        for engine, ds in sets.items():
            ms, items = timed(lambda ds=ds: ds["t2m"].isel(where).values)
            expected = items if expected is None else expected
            if not np.array_equal(items, expected):
                raise SystemExit(f"{engine} reads something else at {where}")
            if run:
                times[engine].append(ms)
    for ds in sets.values():
        ds.close()
    return {engine: statistics.median(ms) for engine, ms in times.items()}


def measure(folder: Path, runs: int) -> Rows:
    def series(rng: np.random.Generator) -> dict[str, Any]:
        return {"lat": int(rng.integers(SHAPE[1])), "lon": int(rng.integers(SHAPE[2]))}

    def box(rng: np.random.Generator) -> dict[str, Any]:
        t, y, x = (int(rng.integers(n - 30)) for n in SHAPE)
        return {"time": slice(t, t + 30), "lat": slice(y, y + 20), "lon": slice(x, x + 20)}

    return {
        "open 50 variables": opening(folder, 3 * runs),
        "again and again": opening_again(folder, 3 * runs),
        "one time of 1 GB": reading(
            folder, runs, lambda g: {"time": int(g.integers(SHAPE[0]))}
        ),
        "one series of 1 GB": reading(folder, runs, series),
        "a box of 30 x 20 x 20": reading(folder, runs, box),
        "MB stored": {
            engine: bytes_of(path_of(folder, "large", engine)) / 1e6 for engine in ENGINES
        },
    }


def show(rows: Rows) -> None:
    print(f"{'ms':24}" + "".join(f"{engine:>14}" for engine in ENGINES) + f"{'zarr/ours':>11}")
    for name, row in rows.items():
        ratio = row["zarr"] / row["caterva .b2z"]
        print(f"{name:24}" + "".join(f"{row[e]:14.2f}" for e in ENGINES) + f"{ratio:11.1f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--prepare", action="store_true")
    parser.add_argument("--runs", type=int, default=9)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    folder = arguments.folder or Path(tempfile.mkdtemp(prefix="datasets."))
    folder.mkdir(exist_ok=True)
    try:
        prepare(folder)
        if arguments.prepare:
            return
        rows = measure(folder, arguments.runs)
        show(rows)
        if arguments.json:
            arguments.json.write_text(json.dumps(rows, indent=1))
    finally:
        if arguments.folder is None:
            shutil.rmtree(folder)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Runs test suites of other projects on our arrays; prints a table.

    run.py [--sdists FOLDER] [SUITE...]     dask reading h5py zarr xarray blosc2 caterva07

The suites of dask, h5py, zarr and xarray are part of their installed packages, those of
python-blosc2 and python-caterva 0.7.3 of their source distributions, which scripts/peers has
unpacked into FOLDER. This repository contains only names of their cases (cases.toml)."""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
BLOSC2 = ("getitem", "setitem", "slice", "resize", "copy", "full", "mode", "persistency")


def package(name: str) -> Path:
    spec = importlib.util.find_spec(name)
    if spec is None or spec.origin is None:
        raise FileNotFoundError(f"{name} is not installed")
    return Path(spec.origin).parent


def unpacked(folder: Path, name: str) -> Path:
    found = sorted(folder.glob(f"{name}-*/tests"))
    if not found:
        raise FileNotFoundError(f"{folder} holds no source distribution of {name}")
    return found[0]


def files(suite: str, sdists: Path, scratch: Path) -> list[str]:
    """The files that pytest is to run; single test files are copied, without their conftest."""
    if suite == "dask":
        return [str(package("dask") / "array/tests/test_array_core.py")]
    if suite == "h5py":
        tests = package("h5py") / "tests"
        return [str(tests / f"test_{name}.py") for name in ("dataset_getitem", "slicing")]
    if suite in ("zarr", "reading", "xarray"):
        return [str(HERE / f"test_{'dask_' * (suite == 'reading')}{suite}.py")]
    if suite == "blosc2":
        tests = unpacked(sdists, "blosc2") / "ndarray"
        names = [f"test_{name}.py" for name in BLOSC2]
    else:
        tests = unpacked(sdists, "caterva")
        names = [path.name for path in tests.glob("test_*.py")]
    for name in names:
        shutil.copy(tests / name, scratch)
    return [str(scratch / name) for name in sorted(names)]


def run(suite: str, sdists: Path, verbose: bool) -> tuple[dict[str, int], bool]:
    """The counts of a suite, and whether it passed."""
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        (scratch / "work").mkdir()
        (scratch / "pytest.ini").write_text("[pytest]\n")  # so that pytest uses none of theirs
        result = scratch / "result.json"
        environment = os.environ | {
            "PYTHONPATH": str(HERE),
            "PEERS_SUITE": suite,
            "PEERS_RESULT": str(result),
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        command = [
            sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "tool_peers",
            "-c", str(scratch / "pytest.ini"), "--rootdir", folder, "-W", "ignore", "--tb=short",
            *files(suite, sdists, scratch),
        ]  # fmt: skip
        done = subprocess.run(
            command, cwd=scratch / "work", env=environment, capture_output=True, text=True
        )
        good = done.returncode == 0
        if verbose or not good:
            print(done.stdout, done.stderr, sep="\n")
        return json.loads(result.read_text()) if result.exists() else {}, good


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--sdists", type=Path, default=ROOT / "build/peers")
    parser.add_argument("-v", "--verbose", action="store_true")
    parser.add_argument("suites", nargs="*")
    arguments = parser.parse_args()
    columns = ("passed", "differs", "skipped", "failed")
    rows, all_good = [], True
    for suite in arguments.suites or ["dask", "reading", "h5py", "zarr", "xarray", "blosc2", "caterva07"]:
        counts, good = run(suite, arguments.sdists, arguments.verbose)
        rows.append([suite, *(str(counts.get(c, 0)) for c in columns)])
        all_good &= good
    print(f"{'suite':12}" + "".join(f"{c:>9}" for c in columns))
    for suite, *numbers in rows:
        print(f"{suite:12}" + "".join(f"{n:>9}" for n in numbers))
    return 0 if all_good else 1


if __name__ == "__main__":
    sys.exit(main())

"""Runs every test in an empty folder of its own; prints seeds of random cases."""

from __future__ import annotations

import concurrent.futures
import importlib.util
import os
import signal
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from support import WINDOWS, WINE


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--long", action="store_true", help="many more random cases")
    parser.addoption("--trials", type=int, help="so many random trials of many writers")
    parser.addoption("--seed", type=int, help="the seed of the first of them")


def pytest_configure(config: pytest.Config) -> None:
    """Print how to repeat a random case that fails; restore SIGINT.

    A shell starts jobs in the background with SIGINT ignored, and children inherit that.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)
    examples = 20_000 if config.getoption("--long") else 150
    hypothesis.settings.register_profile(
        "caterva",
        max_examples=examples,
        deadline=None,
        database=None,
        print_blob=True,
        phases=[p for p in hypothesis.Phase if p.name not in ("explain", "reuse", "target")],
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    hypothesis.settings.load_profile("caterva")


@pytest.fixture(autouse=True)
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The test's working directory."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


if WINE:

    @pytest.fixture(autouse=True)
    def no_pools(monkeypatch: pytest.MonkeyPatch) -> None:
        """Skip tests that start a pool of processes."""

        def skip(*_: Any, **__: Any) -> None:
            pytest.skip("CPython's ProcessPoolExecutor never returns in wine, whatever it runs")

        monkeypatch.setattr(concurrent.futures.ProcessPoolExecutor, "__init__", skip)


if WINDOWS and importlib.util.find_spec("xarray") is not None:
    from xarray.core import utils

    _read_magic = utils.try_read_magic_number_from_path

    @pytest.fixture(autouse=True)
    def engine_of_directories(monkeypatch: pytest.MonkeyPatch) -> None:
        """Let xarray find the engine of a directory, as it does elsewhere. On Windows those of
        NetCDF, which it asks first, fail: `open` raises PermissionError for a directory."""

        def read(path: Any, count: int = 8) -> bytes | None:
            return None if os.path.isdir(path) else _read_magic(path, count)

        monkeypatch.setattr(utils, "try_read_magic_number_from_path", read)

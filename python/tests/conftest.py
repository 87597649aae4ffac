"""Runs every test in an empty folder of its own; prints seeds of random cases."""

from __future__ import annotations

import signal
from pathlib import Path

import hypothesis
import pytest


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

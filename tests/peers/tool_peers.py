"""A pytest plugin for a test suite of another project: it replaces the project's functions by
ours (tool_shim_<suite>.py) and skips the cases that do not apply (cases.toml).

PEERS_SUITE is the name of the suite, PEERS_RESULT the file for the counts."""

from __future__ import annotations

import importlib
import json
import os
import tomllib
from collections import Counter
from pathlib import Path

import pytest

SUITE = os.environ["PEERS_SUITE"]
TABLE = tomllib.loads(Path(__file__).with_name("cases.toml").read_text())[SUITE]
DIFFERS, SKIPPED = TABLE.get("differs", {}), TABLE.get("skipped", {})
ONLY = TABLE.get("only")  # parts of names; None: all cases

counts: Counter[str] = Counter()
used: set[str] = set()  # entries of the table that matched a case

if (Path(__file__).parent / f"tool_shim_{SUITE}.py").exists():
    shim = importlib.import_module(f"tool_shim_{SUITE}")
else:
    shim = None


def _name(item: pytest.Item) -> str:
    """test_file.py::Class::test[parameters]"""
    return f"{item.path.name}::{item.nodeid.partition('::')[2]}"


def _entry(item: pytest.Item, table: dict[str, str]) -> str | None:
    """The entry for a case: its file, class, function, or itself."""
    name = _name(item)
    for entry in table:
        if name == entry or name.startswith((entry + "::", entry + "[")):
            return entry
    return None


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if ONLY:
        wanted = [i for i in items if any(part in i.name for part in ONLY)]
        config.hook.pytest_deselected(items=[i for i in items if i not in wanted])
        items[:] = wanted
    for item in items:
        if entry := _entry(item, SKIPPED):
            used.add(entry)
            item.add_marker(pytest.mark.skip(reason=SKIPPED[entry]))
        elif entry := _entry(item, DIFFERS):
            item.user_properties.append(("entry", entry))
            item.add_marker(pytest.mark.xfail(reason=DIFFERS[entry], strict=False))
    if prepare := vars(shim or object).get("prepare"):
        for module in {item.module for item in items}:
            prepare(module)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.when == "call" or (report.when == "setup" and not report.passed):
        if hasattr(report, "wasxfail"):
            outcome = "differs" if report.skipped else "passed"
            if outcome == "differs":
                used.update(value for key, value in report.user_properties if key == "entry")
        else:
            outcome = report.outcome
        counts[outcome] += 1


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    stale = [e for e in (*DIFFERS, *SKIPPED) if e not in used]
    if stale:
        print("\nentries of cases.toml that no case needs:", *stale, sep="\n  ")
        session.exitstatus = 1
    if path := os.environ.get("PEERS_RESULT"):
        Path(path).write_text(json.dumps(counts))

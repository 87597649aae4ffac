"""The reference that is made from the docstrings has every public name, and its text."""

from __future__ import annotations

import html
import re
from pathlib import Path
from typing import Any

import caterva
import pytest
from support import run_python

TOOL = Path(__file__).resolve().parents[2] / "tools/python_reference.py"


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("reference")
    run_python([str(TOOL), str(folder)])
    return (folder / "caterva.html").read_text(encoding="utf-8")


def public(owner: Any) -> list[str]:
    return [name for name in dir(owner) if not name.startswith("_")]


def test_every_name_is_there(page: str) -> None:
    names = [name for name in caterva.__all__ if not name.startswith("_")]
    for owner in (caterva.Array, caterva.View):
        names += [f"{owner.__name__}.{name}" for name in public(owner)]
    missing = [name for name in names if f'id="{name}"' not in page]
    assert not missing
    text = html.unescape(re.sub("<[^>]*>", "", page))
    for words in (
        "Read a selection, into memory of yours",
        "Make everything written so far durable",
        "Parameters",
    ):
        assert words in text

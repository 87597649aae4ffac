"""The pages of the site that Sphinx builds: the reference has every public name."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import caterva
import pytest
from support import run_python

TOOL = Path(__file__).resolve().parents[2] / "tools/site_pages.py"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site") / "source"
    run_python([str(TOOL), str(folder)])
    return folder


def test_every_python_name_is_there(site: Path) -> None:
    text = "".join(page.read_text(encoding="utf-8") for page in site.glob("python/*.rst"))
    names = [name for name in caterva.__all__ if not name.startswith("_")]
    documented = {name: value for name in names if callable(value := getattr(caterva, name))}
    assert len(documented) > 40
    for name, value in documented.items():
        kind = "(?:class|exception)" if inspect.isclass(value) else "function"
        assert re.search(rf"^\.\. auto{kind}:: caterva\.{name}$", text, re.M), name


def test_every_page_is_there(site: Path) -> None:
    for page in ("index", "python", "examples/01-first-array", "reference/caterva_jobs",
                 "man/caterva-get", "notebook", "contributing"):  # fmt: skip
        assert (site / f"{page}.md").read_text(encoding="utf-8").startswith("# "), page

"""Runs the examples on the pages about Python and compares their output.

Blocks of ```python on a page run in order in one folder. Blocks with >>> are compared with
their output and share names; others are separate programs. Options after the language:
`needs=a,b` skips the block unless these packages are installed, `file=x.py` saves it as a
module for other processes, `sketch` does not run it. A block with the name of a file, not of an
option, is for the sessions of its page (tools/sessions.py)."""

from __future__ import annotations

import doctest
import importlib.util
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import run_python

ROOT = Path(__file__).resolve().parents[2]
PAGES = [
    ROOT / "README.md",
    ROOT / "docs/first-steps.md",
    ROOT / "docs/converting.md",
    ROOT / "docs/python.md",
    ROOT / "docs/python-recipes.md",
    ROOT / "docs/trees.md",
    ROOT / "docs/xarray.md",
    ROOT / "docs/conventions.md",
    ROOT / "docs/migrating.md",
    ROOT / "python/README.md",
]
FENCE = re.compile(r"^```python([^\n]*)\n(.*?)^```$", re.S | re.M)
OPTIONS = doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL | doctest.NORMALIZE_WHITESPACE


def blocks(page: Path) -> list[tuple[int, dict[str, str], str]]:
    """Line, options and text of each block."""
    text = page.read_text(encoding="utf-8")
    found = []
    for match in FENCE.finditer(text):
        if match[1].strip() and "=" not in match[1]:
            continue
        options = dict(word.split("=", 1) for word in match[1].split())
        found.append((text.count("\n", 0, match.start(2)), options, match[2]))
    return found


def missing(options: dict[str, str]) -> str | None:
    """A package that the block needs and that is not installed, or None."""
    for name in filter(None, options.get("needs", "").split(",")):
        if importlib.util.find_spec(name.partition(".")[0]) is None:
            return name
    return None


def check_session(page: Path, text: str, line: int, names: dict[str, Any]) -> None:
    test = doctest.DocTestParser().get_doctest(text, names, page.name, str(page), line)
    runner = doctest.DocTestRunner(optionflags=OPTIONS)
    said: list[str] = []
    runner.run(test, out=said.append, clear_globs=False)
    names.update(test.globs)
    assert not runner.failures, "".join(said)


def run_page(page: Path, folder: Path, most: int | None = None) -> tuple[int, list[str]]:
    """Run the blocks, at most the first `most`; return their number and missing packages."""
    names: dict[str, Any] = {}
    n, absent = 0, []
    for line, options, text in blocks(page)[:most]:
        if lacking := missing(options):
            absent.append(lacking)
            continue
        n += 1
        if text.startswith(">>>"):
            check_session(page, text, line, names)
            continue
        program = folder / options.get("file", f"block{line}.py")
        program.write_text(text, encoding="utf-8")
        run_python([program.name], folder)
    return n, absent


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_what_a_page_shows_is_so(page: Path, empty_folder: Path) -> None:
    if np.lib.NumpyVersion(np.__version__) < "2.0.0":
        pytest.skip("scalars print as NumPy 2 has them")
    n, absent = run_page(page, empty_folder)
    print(f"{n} blocks; without {', '.join(absent) or 'nothing'}")
    assert n


@pytest.mark.parametrize(
    ("page", "most"),
    [("README.md", None), ("python/README.md", None), ("docs/python.md", 2)],
)
def test_first_examples_run_again(page: str, most: int | None, empty_folder: Path) -> None:
    """The first examples are often tried twice in the same folder."""
    if np.lib.NumpyVersion(np.__version__) < "2.0.0":
        pytest.skip("scalars print as NumPy 2 has them")
    for _ in range(2):
        assert run_page(ROOT / page, empty_folder, most)[0]


def test_the_notebook_gives_what_it_shows(empty_folder: Path) -> None:
    if np.lib.NumpyVersion(np.__version__) < "2.0.0":
        pytest.skip("scalars print as NumPy 2 has them")
    tool, notebook = ROOT / "tools/notebook.py", ROOT / "docs/notebook.ipynb"
    print(run_python([str(tool), str(notebook)]).stdout)
    changed = empty_folder / "changed.ipynb"
    text = notebook.read_text(encoding="utf-8")
    changed.write_text(text.replace("a[40, 40, 40:48]", "a[40, 41, 40:48]"), encoding="utf-8")
    run_python([str(tool), str(changed)], status=1)


def test_the_runner_notices(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```python\n>>> 1 + 1\n3\n\n```\n")
    with pytest.raises(AssertionError, match="Expected"):
        run_page(page, tmp_path)
    page.write_text("```python\nassert False\n```\n")
    with pytest.raises(AssertionError):
        run_page(page, tmp_path)

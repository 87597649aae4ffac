"""Type checkers are told what is so: the stubs are those of the extension that is there, and
the package keeps to its own types."""

from __future__ import annotations

from pathlib import Path

import pytest
from support import run_python


@pytest.fixture(autouse=True)
def one_cache(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MYPY_CACHE_DIR", str(tmp_path_factory.getbasetemp() / "mypy"))


def test_stubs_are_the_extensions() -> None:
    done = run_python(["-m", "mypy.stubtest", "caterva._caterva"])
    assert done.stdout.startswith("Success"), done.stdout


def test_the_package_keeps_to_its_types() -> None:
    run_python(["-m", "mypy", "--strict", "-p", "caterva"])


def test_what_users_write_is_checked(empty_folder: Path) -> None:
    (empty_folder / "right.py").write_text(
        "import caterva\n"
        "with caterva.open('a.b2nd', 'r+', threads=2) as a:\n"
        "    n: int = a.n_chunks\n"
        "    a[0] = a.view[1:].T[2]\n"
    )
    run_python(["-m", "mypy", "--strict", "right.py"])
    (empty_folder / "wrong.py").write_text(
        "import caterva\ncaterva.open('a.b2nd', 'rw')\ncaterva.zeros(3, thread=1)\n"
    )
    done = run_python(["-m", "mypy", "--strict", "wrong.py"], status=1)
    assert done.stdout.count("error:") == 2

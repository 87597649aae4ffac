"""The stubs match the extension; mypy and ruff accept the package."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from support import run_python

pytest.importorskip("mypy")


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


@pytest.mark.parametrize("command", [["check"], ["format", "--check"]])
def test_ruff_finds_nothing(command: list[str]) -> None:
    pytest.importorskip("ruff")
    root = Path(__file__).parents[2]
    run_python(["-m", "ruff", *command, "--no-cache", "python"], root)


def test_what_users_write_is_checked(empty_folder: Path) -> None:
    (empty_folder / "right.py").write_text(
        "import caterva\n"
        "with caterva.open('a.b2nd', 'r+', threads=2) as a:\n"
        "    n: int = a.n_chunks\n"
        "    a[0] = a.view[1:].T[2]\n"
        "caterva.save('a.b2nd', [1], dtype='i4', level=3, overwrite=True)\n"
        "caterva.open('a.b2nd', 'a', shape=3, keep_bytes=5, codec='lz4').copy(casting='safe')\n"
        "x = caterva.open('a.b2d')['x'].mean()\n"
        "words: dict[str, str] = {'b': '5'}\n"
        "t = caterva.open_tree('a.b2d', 'r+', threads=3)\n"
        "t['x'] = words\n"
    )
    run_python(["-m", "mypy", "--strict", "right.py"])
    wrong = [
        "caterva.open('a.b2nd', 'rw')",
        "caterva.open('a.b2nd', thread=1)",
        "caterva.open('a.b2nd', shape=3).no_such_thing",
        "caterva.zeros(3, thread=1)",
        "caterva.save('a.b2nd', [1], levl=3)",
        "caterva.save('a.b2nd', [1], level='3')",
        "caterva.asarray([1], blokcs=3)",
        "caterva.load('a.b2nd', ofset=1)",
        "caterva.copy(caterva.zeros(3), castin='safe')",
        "caterva.zeros(3).copy(threds=3)",
        "caterva.zeros(3).view[:].copy(threds=3)",
        "caterva.open_tree('a.b2d', chunks=3)",
        "caterva.open_tree('a.b2d').create_array('x', 3, chunk=3)",
    ]
    (empty_folder / "wrong.py").write_text("\n".join(["import caterva", *wrong, ""]))
    done = run_python(["-m", "mypy", "--strict", "wrong.py"], status=1)
    lines = re.findall(r"^wrong.py:(\d+): error:", done.stdout, re.M)
    assert sorted(set(map(int, lines))) == list(range(2, 2 + len(wrong))), done.stdout

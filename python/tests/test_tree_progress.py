"""Progress of trees and jobs."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import caterva
import numpy as np
import pytest


def _add_files(n: int) -> None:
    """Add arrays to /big by copying a file."""
    with caterva.open_tree("t.b2d", "a") as t:
        if "x" not in t:
            t["x"] = [1, 2, 3]
    os.makedirs("t.b2d/big", exist_ok=True)
    for i in range(n):
        if not os.path.exists(f"t.b2d/big/x{i}.b2nd"):
            shutil.copy("t.b2d/x.b2nd", f"t.b2d/big/x{i}.b2nd")


def test_a_tree_hears_of_its_calls() -> None:
    _add_files(50)
    heard: list[tuple[int, int]] = []

    def hear(done: int, total: int) -> None:
        heard.append((done, total))

    def last() -> int:
        done, total = heard[-1]
        assert done == total and all(a <= b for a, b in heard)
        heard.clear()
        return total

    file = 4096  # what each counts
    t = caterva.open_tree("t.b2d", "r+", progress=hear)
    assert t.progress is hear
    assert len(t["big"]) == 50 and last() == 52 * file
    t.move("big", "large")
    assert last() >= 150 * file
    t["large"].attrs["v"] = np.zeros(1 << 21, np.uint8)
    assert last() >= 1 << 21
    t.commit()
    assert last() == 2 * file
    del t["large"]
    assert last() > 200 * file and list(t) == ["x"]
    heard.clear()
    t.progress = None
    assert list(t) == ["x"] and not heard and t.progress is None
    with pytest.raises(TypeError, match="progress"):
        t.progress = 1  # type: ignore[assignment]
    with pytest.raises(TypeError, match="progress"):
        caterva.open_tree("t.b2d", progress=1)  # type: ignore[arg-type]
    assert caterva.open("t.b2d", progress=hear).progress is hear


def test_trees_and_their_arrays_report_apart() -> None:
    """A tree reports an array's bytes while it commits them; an array no files of its tree."""
    heard: dict[str, list[tuple[int, int]]] = {"tree": [], "array": []}
    with caterva.open_tree("t.b2d", "w") as t:
        t.progress = lambda done, total: heard["tree"].append((done, total))
        x = t.create_array("x", (1000, 1000), "f8")
        x.progress = lambda done, total: heard["array"].append((done, total))
        x[...] = 1
        done, total = heard["array"][-1]
        assert not heard["tree"] and done == total >= x.nbytes
        heard["array"].clear()
        t.commit()  # which encodes what is left of the array
        done, total = heard["tree"][-1]
        assert done == total >= 4096
        assert all(array[1] < total for array in heard["array"])  # its items, no files
        heard["tree"].clear()
        assert t["x"][0, 0] == 1  # opened through the tree
        assert not heard["tree"]


def test_a_tree_cannot_be_used_by_what_hears_of_it() -> None:
    _add_files(1)
    t = caterva.open_tree("t.b2d", "r+")

    def use(done: int, total: int) -> None:
        list(t)

    t.progress = use
    with pytest.raises(RuntimeError, match="its own progress function"):
        list(t)
    t.progress = None
    assert "x" in t


class Enough(Exception):
    """Raised by a progress function."""


@pytest.mark.parametrize("raises", [False, True])
def test_a_deletion_that_is_stopped_leaves_all_or_nothing(raises: bool) -> None:
    def stop(done: int, total: int) -> bool:
        if done < total and raises:
            raise Enough
        return done < total

    n = 1000
    while True:
        _add_files(n)
        t = caterva.open_tree("t.b2d", "r+")
        t.progress = stop
        try:
            del t["big"]
        except (caterva.StoppedError, Enough) as error:
            assert isinstance(error, Enough) == raises
            break
        t.close()
        n *= 2
    t.progress = None
    assert "big" not in t or len(t["big"]) == n
    t.close()
    with caterva.open_tree("t.b2d", "r+") as t:
        assert not [name for name in os.listdir("t.b2d") if name.startswith(".group")]
        if "big" in t:
            del t["big"]
        assert list(t) == ["x"]


def test_jobs_tell_of_their_parts() -> None:
    heard: list[tuple[int, int]] = []

    def hear(*told: Any) -> None:
        heard.append(told)

    with caterva.zeros(6, path="a.b2nd") as a:
        job = a.job()
        for i in range(20):
            Path(job.folder, f"host-1-{i}").touch()
        (found,) = caterva.jobs("a.b2nd", progress=hear)
        assert found.n_parts == 20 and heard[-1][0] == heard[-1][1] >= 20 * 4096
        heard.clear()
        job.delete(progress=hear)
        assert heard[-1][0] == heard[-1][1] >= 20 * 4096
        assert caterva.jobs("a.b2nd", progress=hear) == []

"""A data set replaces another one, or anything else, in one step or not at all."""

from __future__ import annotations

import fnmatch
import importlib.util
import os
import random
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import WINDOWS, needs_fork, times

if importlib.util.find_spec("xarray") is None:
    pytest.skip("xarray is not installed", allow_module_level=True)


import caterva
import caterva.xarray
import xarray as xr
from caterva.xarray._replace import beside
from xarray.testing import assert_identical

PLACES = ("x.b2d", "x.b2z")
ONE = xr.Dataset({"a": ("x", [1, 2]), "both": ("x", [1.5, 2])}, attrs={"title": "one"})
TWO = xr.Dataset({"b": ("y", [1, 2, 3]), "both": ("y", [1, 2, 3])}, attrs={"n": 2})


def tree(**groups: xr.Dataset) -> xr.DataTree:
    """Data sets in groups."""
    return xr.DataTree.from_dict({f"/{name}": ds for name, ds in groups.items()})


# ---- All of it or nothing --------------------------------------------------------------------


def test_the_folder_beside_has_a_name_that_the_clean_up_finds(tmp_path: Path) -> None:
    with beside(str(tmp_path / "x.b2d")) as first, beside(str(tmp_path / "x.b2d")) as second:
        for hidden in (first, second):
            assert fnmatch.fnmatchcase(os.path.basename(hidden), ".x.b2d.tmp-??????")
            assert WINDOWS or os.stat(hidden).st_mode & 0o777 == 0o700
    assert not os.listdir(tmp_path)


def in_child(run: Callable[[], None], kill_at: int) -> None:
    """Run in a child, which is killed after `kill_at` function calls."""
    child = os.fork()
    if child == 0:
        calls = [0]

        def count(*_: Any) -> None:
            calls[0] += 1
            if calls[0] == kill_at:
                os.kill(os.getpid(), signal.SIGKILL)

        sys.setprofile(count)
        run()
        sys.setprofile(None)
        os._exit(0)
    os.waitpid(child, 0)


def calls_of(run: Callable[[], None]) -> int:
    """Return the number of function calls that it makes."""
    calls = [0]

    def count(*_: Any) -> None:
        calls[0] += 1

    sys.setprofile(count)
    try:
        run()
    finally:
        sys.setprofile(None)
    return calls[0]


@needs_fork
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("group", [None, "n/m"])
def test_a_kill_leaves_one_of_them(
    place: str, group: str | None, pytestconfig: pytest.Config
) -> None:
    seed = random.randrange(1 << 32)
    rng = random.Random(seed)
    print("seed", seed)
    other = xr.Dataset({"other": 1})
    other.to_caterva(place, group="other")

    def save(ds: xr.Dataset) -> None:
        ds.to_caterva(place, "w", group=group, durability="none")

    save(ONE)
    save(TWO)
    n = calls_of(lambda: save(ONE))
    places = [n - i for i in range(0, 400, 9)] + [
        rng.randint(1, n) for _ in range(times(pytestconfig, 20, 500))
    ]
    now, left = ONE, 0
    for kill_at in places:
        new = TWO if now is ONE else ONE
        in_child(lambda ds=new: save(ds), kill_at)
        found = xr.open_dataset(place, group=group).load()
        now = new if found.identical(new) else now
        left += now is new
        assert_identical(found, now)
        if group is not None:
            assert_identical(xr.open_dataset(place, group="other"), other)
    assert 0 < left < len(places)
    save(TWO)
    assert_identical(xr.open_dataset(place, group=group), TWO)


def test_without_a_system_that_exchanges_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(caterva.xarray._replace, "_LINUX", ("no_such_function", 2))
    monkeypatch.setattr(caterva.xarray._replace, "_MAC", ("no_such_function", 2))
    for ds in (ONE, TWO, ONE):
        ds.to_caterva("x.b2d")
        assert_identical(xr.open_dataset("x.b2d"), ds)
        ds.to_caterva("y.b2d", group="n/m")
        assert_identical(xr.open_dataset("y.b2d", group="n/m"), ds)
    assert sorted(os.listdir()) == ["x.b2d", "y.b2d"]


@pytest.fixture(params=["renames", "members"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both ways of replacing a group of a directory, where the system has both."""
    if request.param == "members":
        monkeypatch.setattr(caterva.xarray._replace, "_RENAMES_OPEN", False)
    elif WINDOWS:
        pytest.skip("Windows renames no folder in which files are open")


@pytest.mark.usefixtures("way")
def test_files_of_others_stay_and_open_data_sets_are_read_on() -> None:
    ONE.to_caterva("x.b2d")
    ONE.to_caterva("x.b2d", group="g")
    for name in ("x.b2d/read.me", "x.b2d/g/read.me"):
        Path(name).write_text(name)
    kept = xr.open_dataset("x.b2d")
    kept["a"][:1].load()
    TWO.to_caterva("x.b2d", group="g")
    xr.open_dataset("x.b2d").assign(more=1).to_caterva("x.b2d")  # made from itself
    assert set(xr.open_dataset("x.b2d").variables) == {"a", "both", "more"}
    for name in ("x.b2d/read.me", "x.b2d/g/read.me"):
        assert Path(name).read_text() == name
    assert kept["a"].values.tolist() == [1, 2] and os.listdir() == ["x.b2d"]


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("group", [None, "g", "n/m"])
def test_what_the_new_data_set_lacks_is_gone(group: str | None) -> None:
    for ds in (ONE, TWO, ONE.drop_vars("a"), TWO.drop_attrs()):
        ds.to_caterva("x.b2d", group=group)
        assert_identical(xr.open_dataset("x.b2d", group=group), ds)
        with caterva.open_tree("x.b2d") as stored:
            names = {e.key.rpartition("/")[2] for e in stored.entries() if e.kind == "array"}
            assert names == set(ds.variables)


def test_one_writer_at_a_time() -> None:
    ONE.to_caterva("x.b2d")
    with caterva.open_tree("x.b2d", "r+"), pytest.raises(BlockingIOError):
        TWO.to_caterva("x.b2d")
    assert_identical(xr.open_dataset("x.b2d"), ONE)


# ---- Replaced contents -----------------------------------------------------------------------


@pytest.mark.parametrize("place", PLACES)
def test_groups_that_are_there_are_not_destroyed(place: str) -> None:
    ONE.to_caterva(place, group="n/m")
    ONE.to_caterva(place, mode="a")
    for mode in ("w-", "x"):
        for group in ("n/m", "n", "a", "/n/m/both", None, "/"):
            with pytest.raises(FileExistsError, match="exists already"):
                TWO.to_caterva(place, mode, group=group)
        with pytest.raises(FileExistsError, match="exists already"):
            tree(deep=TWO).to_caterva(place, mode, group="n")
        assert_identical(xr.open_dataset(place, group="n/m"), ONE)
        assert_identical(xr.open_dataset(place), ONE)
        TWO.to_caterva(place, mode, group=f"n/{mode}")
        assert_identical(xr.open_dataset(place, group=f"n/{mode}"), TWO)
        assert_identical(xr.open_dataset(place, group="n/m"), ONE)


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("place", PLACES)
def test_other_kinds_are_replaced(place: str) -> None:
    tree(a=ONE).to_caterva(place)
    ONE.to_caterva(place)
    assert_identical(xr.open_dataset(place), ONE)
    tree(a=TWO).to_caterva(place)
    assert_identical(xr.open_dataset(place, group="a"), TWO)
    ONE.to_caterva(place)
    TWO.to_caterva(place, "w", group="a")
    assert_identical(xr.open_dataset(place, group="a"), TWO)
    assert_identical(xr.open_dataset(place), ONE.drop_vars("a"))
    with pytest.raises(FileExistsError, match="both"):
        TWO.to_caterva(place, "w", group="both/deep")
    assert_identical(xr.open_dataset(place), ONE.drop_vars("a"))


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("mode", ["w", "a", "x"])
def test_failures_leave_no_groups(place: str, mode: Any) -> None:
    ONE.to_caterva(place)
    for bad in (ONE.assign_attrs(no=object()), ONE.assign(no=("x", [0, 1], {"no": object()}))):
        with pytest.raises(TypeError, match="no"):
            bad.to_caterva(place, mode, group="n/m")
        with pytest.raises(TypeError, match="no"):
            tree(good=ONE, bad=bad).to_caterva(place, mode, group="n/m")
        assert caterva.open_tree(place).entries() == [
            e for e in caterva.open_tree(place).entries() if e.kind == "array"
        ]
    assert_identical(xr.open_dataset(place), ONE)
    groups = tree(good=ONE, empty=xr.Dataset(), titled=xr.Dataset(attrs={"title": "t"}))
    groups.to_caterva(place, mode, group="n/m")
    xr.testing.assert_identical(xr.open_datatree(place, group="n/m"), groups)


@pytest.mark.parametrize("place", PLACES)
def test_names_that_are_hidden_are_refused(place: str) -> None:
    hidden = xr.Dataset({".a": ("x", np.arange(2))})
    with pytest.raises(ValueError, match="begins with a dot"):
        hidden.to_caterva(place)
    for group in (".g", "n/.g/m"):
        with pytest.raises(ValueError, match="begins with a dot"):
            ONE.to_caterva(place, group=group)
    with pytest.raises(ValueError, match="begins with a dot"):
        xr.DataTree.from_dict({"/n": ONE, "/.g": ONE}).to_caterva(place)
    assert os.listdir() == []
    ONE.to_caterva(place)
    with pytest.raises(ValueError, match="begins with a dot"):
        hidden.to_caterva(place, mode="a")
    assert_identical(xr.open_dataset(place), ONE)

"""A process that saves or appends is killed or interrupted at any moment: all variables and the
group's attributes are those before, or all are those after."""

from __future__ import annotations

import gc
import itertools
import os
import random
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from support import WINDOWS, interrupted_at, times

xr = pytest.importorskip("xarray", reason="xarray is not installed")
import caterva  # noqa: E402
import caterva.xarray  # noqa: E402
from killed_saver import steps  # noqa: E402
from xarray.testing import assert_identical  # noqa: E402

SAVER = Path(__file__).with_name("killed_saver.py")


def killed(place: str, rng: random.Random) -> int:
    """Kill the process; return the number of appends that it had reported."""
    command = [sys.executable, str(SAVER), place]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        said = [process.stdout.readline() for _ in range(rng.randint(1, 3))]
        time.sleep(rng.uniform(0, 0.05))
        process.kill()
        said += process.stdout.readlines()
    assert process.returncode == (1 if WINDOWS else -9), said
    return max(int(line) for line in said if line.endswith("\n"))


@pytest.mark.parametrize("place", ["x.b2d", "x.b2z"])
def test_a_killed_append_is_there_or_is_not(place: str, pytestconfig: pytest.Config) -> None:
    seed = random.randrange(1 << 32)
    rng = random.Random(seed)
    print("seed", seed)
    done, between = 1, 0
    steps(0, 1).to_caterva(place, unlimited_dims="time")
    for _ in range(times(pytestconfig, 3, 60)):
        acknowledged = killed(place, rng)
        between += Path(place, ".caterva-commit").exists()
        with xr.open_dataset(place) as ds:
            n = ds.attrs["appends"]
            assert acknowledged <= n <= acknowledged + 1 and n >= done
            assert_identical(ds.load().drop_encoding(), steps(0, n))
        done = n
    print(f"{done} appends; {between} kills left a commit that stood")


SAVES = {"mode w": {"mode": "w"}, "mode a": {"mode": "a"}, "append": {"append_dim": "t"}}


@pytest.mark.parametrize("how", SAVES)
@pytest.mark.parametrize("place", ["x.b2d", "x.b2z"])
def test_an_interrupted_save_is_there_or_is_not(
    place: str, how: str, pytestconfig: pytest.Config
) -> None:
    """Interrupted at any line of the package, it leaves nothing locked and no files behind."""
    words = np.array(["v"] * 2, object)
    first = xr.Dataset({"a": ("t", np.ones(2), {"units": "K"}), "s": ("t", words)})
    second = first.assign(a=first.a + 1, s=("t", words + "wide")).assign_attrs(n=2)
    first.to_caterva(place)
    old = xr.load_dataset(place).to_dict()
    kept = Path(f"kept-{place}")
    shutil.move(place, kept)
    new = None
    gc.disable()  # a reference cycle would keep the lock
    try:
        stride = times(pytestconfig, 23, 1)
        start = random.randrange(stride)
        for step in itertools.chain([1 << 30], itertools.count(start, stride)):
            if kept.is_dir():
                shutil.copytree(kept, place)
            else:
                shutil.copy(kept, place)
            hit = interrupted_at(step, lambda: second.to_caterva(place, **SAVES[how]))
            found = xr.load_dataset(place).to_dict()
            new = new or found
            assert found in (old, new) and (hit or found == new), step
            left = {n for n in os.listdir() if not n.endswith(".lock")}  # locks are reused
            if WINDOWS:  # which deletes no file that the exception's frames have open
                left = {n for n in left if ".tmp-" not in n}
            assert left == {place, kept.name}, step
            if kept.is_dir():
                assert not [f for _, _, files in os.walk(place) for f in files if "tmp" in f]
                caterva.open_tree(place, "r+").close()
            shutil.rmtree(place) if kept.is_dir() else os.remove(place)
            if not hit and step < 1 << 30:
                break
    finally:
        gc.enable()
    assert old != new

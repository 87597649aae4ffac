"""A process that appends to a data set is killed at any moment: every variable and the group's
attributes are as before an append, or all of them as after it."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from support import times

xr = pytest.importorskip("xarray", reason="xarray is not installed")
from killed_saver import steps  # noqa: E402
from xarray.testing import assert_identical  # noqa: E402

SAVER = Path(__file__).with_name("killed_saver.py")


def killed(place: str, rng: random.Random) -> int:
    """How many appends were acknowledged when the process was killed."""
    command = [sys.executable, str(SAVER), place]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        said = [process.stdout.readline() for _ in range(rng.randint(1, 3))]
        time.sleep(rng.uniform(0, 0.05))
        process.send_signal(signal.SIGKILL)
        said += process.stdout.readlines()
    assert process.returncode == -signal.SIGKILL, said
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

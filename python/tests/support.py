"""Helpers that several test files share."""

from __future__ import annotations

import _thread
import ctypes
import itertools
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import caterva
import numpy as np
import pytest

PATIENCE = 120.0  # seconds; only a test that hangs waits that long

PICKLES = "__reduce__" in vars(caterva.Array) or "__reduce_ex__" in vars(caterva.Array)
needs_pickle = pytest.mark.xfail(
    not PICKLES, reason="arrays have no pickle yet", strict=True, raises=Exception
)


def _has_program() -> bool:
    from caterva.__main__ import find_program

    try:
        return find_program().exists()
    except FileNotFoundError:
        return False


needs_program = pytest.mark.skipif(
    not _has_program(),
    reason="the package was built without libpng, and so without the command line",
)


def _has_plugins() -> bool:
    folder = Path(caterva.__file__).parent / "plugins"
    return all((folder / f"{name}.so").exists() for name in ("hdf5", "netcdf", "tiff"))


needs_plugins = pytest.mark.skipif(
    not _has_plugins(), reason="the package was built without libhdf5, libnetcdf or libtiff"
)


def times(config: pytest.Config, short: int, long: int) -> int:
    """The number of repetitions: `short`, or `long` with --long."""
    return long if config.getoption("--long") else short


def run_program(
    text: str, folder: Path | str = ".", *arguments: str, status: int = 0
) -> subprocess.CompletedProcess[str]:
    """Run a Python program in a process of its own and check its exit status."""
    if sys.platform == "win32" and ("os.fork" in text or "resource" in text):
        pytest.skip("there is no fork, and no module resource")
    return run_python(["-c", text, *arguments], folder, status)


def run_python(
    arguments: list[str], folder: Path | str = ".", status: int = 0
) -> subprocess.CompletedProcess[str]:
    """Run Python with these arguments and check its exit status."""
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.returncode == status, f"status {done.returncode}\n{done.stdout}{done.stderr}"
    return done


WINDOWS = sys.platform == "win32"
WINE = WINDOWS and hasattr(ctypes.windll.ntdll, "wine_get_version")  # type: ignore[attr-defined]


def interrupt_soon(seconds: float = 0.1) -> threading.Timer:
    """Return a timer, not started, that interrupts the main thread as Ctrl-C does. On Windows
    `os.kill` would end the process."""
    if WINDOWS:
        return threading.Timer(seconds, _thread.interrupt_main)
    return threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGINT))


removes_open_files = pytest.mark.skipif(
    WINE, reason="wine keeps a removed file until all have closed it"
)
replaces_open_files = pytest.mark.skipif(
    WINDOWS, reason="os.replace replaces no open file on Windows"
)
NUMPY_2 = np.lib.NumpyVersion(np.__version__) >= "2.0.0"
no_bytes = pytest.mark.skipif(WINDOWS, reason="names of files are Unicode on Windows")
needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
needs_proc = pytest.mark.skipif(
    WINDOWS or not os.path.exists("/proc/self/statm"), reason="there is no /proc"
)


def in_child(work: Callable[[], None]) -> int:
    """Fork and call `work` in the child, which then exits; return its process id."""
    if not hasattr(os, "fork"):
        pytest.skip("there is no fork")
    process = os.fork()
    if process:
        return process
    status = 1
    try:
        work()
        status = 0
    except BaseException as error:
        os.write(2, f"child: {error!r}\n".encode())
    finally:
        os._exit(status)


def until_caught(attempt: Callable[[], bool]) -> None:
    """Repeat `attempt` until it catches a read in progress; on a loaded machine it may miss."""
    assert any(attempt() for _ in range(100)), "no read was met in its midst"


def status_of(process: int) -> int:
    """Wait for a child; return its exit status, or -9 if it hung and was killed."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        done, status = os.waitpid(process, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.002)
    os.kill(process, 9)
    os.waitpid(process, 0)
    return -9


def cube(path: str | None = None, n: int = 48, **options: object) -> np.ndarray:
    """Write an array of n x n x n noisy items to `path`; return the items."""
    random = np.random.default_rng(7)
    items = random.integers(0, 1000, (n, n, n), "i4")
    if path is not None:
        caterva.save(path, items, chunks=(16, 16, n), blocks=(8, 8, 16), **options)
    return items


OWN = os.path.dirname(caterva.__file__)


def interrupted_at(step: int, call: Callable[[], None]) -> bool:
    """Raise KeyboardInterrupt before line `step` of the package; False if there are fewer."""
    steps = itertools.count()
    hit = False

    def trace(frame: Any, event: str, argument: Any) -> Any:
        nonlocal hit
        if not frame.f_code.co_filename.startswith(OWN):
            return None
        if event == "line" and not hit and next(steps) == step:
            hit = True
            raise KeyboardInterrupt
        return trace

    sys.settrace(trace)
    try:
        with suppress(KeyboardInterrupt):
            call()
    finally:
        sys.settrace(None)
    return hit

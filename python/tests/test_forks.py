"""Forks during background reads that call Python, from such calls, and without the hooks of
`os`; and interpreters that exit during such reads."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import caterva
import numpy as np
import pytest
from support import run_program

sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "support"))

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")

BEGIN = """
import caterva, io, os, subprocess, sys, threading, time, warnings
warnings.simplefilter("ignore")
hook = lambda: time.sleep(0.001)
class File(io.FileIO):
    def readinto(self, memory):
        hook()
        return super().readinto(memory)
def fork():
    process = os.fork()
    if process == 0: os._exit(0)
    assert os.waitpid(process, 0)[1] == 0
a = caterva.open(File("a.b2nd"), cache_bytes=-1)
"""


@pytest.fixture(autouse=True)
def array() -> None:
    items = np.random.default_rng(1).integers(0, 1 << 20, (32, 96, 96), "i4")
    caterva.save("a.b2nd", items, chunks=(8, 48, 96), blocks=(1, 24, 48))


@pytest.mark.parametrize("how", ["user=os.getuid()", "group=os.getgid()", "close_fds=False"])
def test_processes_are_begun_without_hooks(how: str) -> None:
    """CPython forks with the GIL and calls no hooks if it cannot use vfork."""
    text = """
subprocess._USE_VFORK = False
for i in range(3):
    readings = [a.read_async(k) for k in range(32)]
    caterva.open(File("a.b2nd"), threads=3).prefetch()
    subprocess.run(["true"], check=True, HOW)
    for reading in readings: reading.result(60)
"""
    run_program(BEGIN + text.replace("HOW", how))


IN_FUNCTIONS = {
    "a read in the background": "hook = fork",
    "a prefetch": "hook = fork; caterva.open(File('a.b2nd'), threads=3).prefetch(slice(0, 3))",
    "a read beside": """
here = threading.get_ident()
hook = lambda: fork() if threading.get_ident() == here else time.sleep(0.001)
readings = [a.read_async(k) for k in range(32)]
a[5]
for each in readings: each.result(60)
""",
}


@pytest.mark.parametrize("where", IN_FUNCTIONS)
def test_what_is_called_forks(where: str) -> None:
    """Forks inside the called function end before the library's timeout of ten seconds."""
    end = "\nfor each in [a.read_async(k) for k in range(4)]: each.result(60)"
    run_program(BEGIN + IN_FUNCTIONS[where] + end)


@pytest.mark.parametrize("function", ["headers", "on_request"])
@pytest.mark.parametrize("how", ["fork()", "subprocess.run(['true'], user=os.getuid())"])
def test_functions_for_urls_fork(function: str, how: str) -> None:
    scripted: Any = pytest.importorskip("scripted_server", reason="no tests of the library's")
    text = f"""
def call(*told):
    {how}
    return {{}}
a = caterva.open(sys.argv[1], remote=dict({function}=call, over_read_percent=0), cache_bytes=-1)
for each in [a.read_async(k) for k in range(4)]: each.result(60)
"""
    with scripted.ScriptedServer() as server:
        server.objects["/a.b2nd"] = Path("a.b2nd").read_bytes()
        try:
            caterva.open(server.url("/a.b2nd")).close()
        except caterva.UnsupportedError as error:
            pytest.skip(str(error))
        run_program(BEGIN + text, ".", server.url("/a.b2nd"))


def test_a_subinterpreter_is_left() -> None:
    pytest.importorskip("_xxsubinterpreters", reason="this Python has them elsewhere")
    text = """
import _xxsubinterpreters as interpreters
inner = interpreters.create(isolated=False)  # NumPy loads in no other
interpreters.run_string(inner, "import caterva; caterva.open('a.b2nd')[3]")
"""
    command = [sys.executable, "-W", "ignore", "-c", text]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and done.stderr == ""

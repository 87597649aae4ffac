"""Running the command line program of this installation."""

from __future__ import annotations

import _thread
import contextlib
import errno
import importlib.util
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from typing import IO

from ._errors import Error, Status, make
from ._options import Progress

_STATUSES = {1: Status.EIO, 2: Status.EINVAL, 4: Status.ECORRUPT, 5: Status.EUNSUPPORTED}
_WARNING = "caterva: warning: "
_PREFIX = "caterva: "
_STOP = signal.SIGTERM if sys.platform == "win32" else signal.SIGINT


_HINTS = ("; use --to", "; --casting unsafe allows it")  # options that Python has not


def _failure(status: int, message: str, place: str, target: str | None) -> Error:
    """Make the exception for an exit status and the sentence that came with it. It is about
    the target if the sentence names that and not the source."""
    for hint in _HINTS:
        message = message.removesuffix(hint)
    if target is not None:
        source_name, name = (os.path.basename(p.rstrip("/")) for p in (place, target))
        place = target if name in message and source_name not in message else place
    if message.startswith("--select, --astype,"):
        message = "dtype, chunks and blocks require an output with one array"
    message = re.sub(r"--([a-z]+(-[a-z]+)?)", lambda m: m[1].replace("-", "_"), message)
    if status < 0:
        message = f"the program was ended by signal {-status}"
    if status != 3:
        return make(_STATUSES.get(status, Status.EIO), 0, -1, message, place)
    if "exists already" in message:
        return make(Status.EEXIST, errno.EEXIST, -1, message, place)
    known = (n for n in errno.errorcode if message.endswith(f": {os.strerror(n)}"))
    number = next(known, 0)
    is_missing = number == errno.ENOENT or " has no array or group " in message
    return make(Status.ENOTFOUND if is_missing else Status.EIO, number, -1, message, place)


def _follow(lines: IO[str], progress: Progress | None) -> bool:
    """Pass progress on until the program ends. Returns whether the function wants to stop."""
    done = total = base = 0
    for line in lines:
        now, size = map(int, line.split())
        if now == 0:  # the next array begins
            base = done
            continue
        done, total = max(done, base + min(now, size)), max(total, base + size)
        if progress is not None and done < total and progress(done, total):
            return True  # the end is reported once, below: more arrays may follow
    if progress is not None:
        progress(total, total)
    return False


def _environment() -> dict[str, str]:
    """Let libhdf5 find the filters of hdf5plugin, if that is installed."""
    found = importlib.util.find_spec("hdf5plugin")
    if "HDF5_PLUGIN_PATH" in os.environ or found is None or found.origin is None:
        return {}
    return {"HDF5_PLUGIN_PATH": os.path.join(os.path.dirname(found.origin), "plugins")}


def _start(words: Sequence[str], said: IO[str], writing: int) -> subprocess.Popen[bytes]:
    """Start the program. Its messages go to `said`, its progress to `writing`, which is closed
    here."""
    from .__main__ import find_program

    posix = sys.platform != "win32"
    try:
        return subprocess.Popen(
            [str(find_program()), *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=said,
            env=os.environ
            | _environment()
            | ({"CATERVA_PROGRESS_FD": str(writing)} if posix else {}),
            pass_fds=(writing,) if posix else (),
            restore_signals=False,  # SIGPIPE stays ignored: see cli/terminal/progress.c
            process_group=0
            if posix
            else None,  # Ctrl-C is for this process, which passes it on
        )
    finally:
        os.close(writing)


class _Event:
    """An event that an interruption at any line of `wait` leaves whole. It is set once."""

    def __init__(self) -> None:
        self.is_set = False
        self._lock = _thread.allocate_lock()
        self._lock.acquire()

    def set(self) -> None:
        self.is_set = True
        self._lock.release()

    def wait(self) -> None:
        while not self.is_set:
            self._lock.acquire()


class _Child:
    """The program, started and waited for by a thread that no interruption reaches. So `stop`
    finds the program or prevents its start, wherever the calling thread was interrupted."""

    def __init__(self) -> None:
        self._is_starting = self._is_over = self.has_stopped = False
        self._has_started, self._has_ended = _Event(), _Event()
        self._program: subprocess.Popen[bytes] | None = None
        self._error: BaseException | None = None

    def _work(self, words: Sequence[str], said: IO[str], writing: int) -> None:
        self._is_starting = True  # before _is_over is read; `stop` does the opposite
        try:
            if self._is_over:
                os.close(writing)
            else:
                self._program = _start(words, said, writing)
        except BaseException as error:
            self._error = error
        self._has_started.set()
        if self._program is not None:
            self._program.wait()
        self._has_ended.set()

    def start(self, words: Sequence[str], said: IO[str], writing: int) -> None:
        _thread.start_new_thread(self._work, (words, said, writing))

    def wait(self) -> int:
        """Wait for the end of the program, and return its exit status."""
        self._has_ended.wait()
        if self._error is not None:
            raise self._error
        assert self._program is not None
        return self._program.returncode

    def stop(self) -> None:
        """Ask the program to stop, which deletes what it has begun, and wait."""
        self._is_over = True
        if self._is_starting:
            self._has_started.wait()
            if self._program is not None and not self._has_ended.is_set:
                with contextlib.suppress(OSError):
                    os.kill(self._program.pid, _STOP)
            self._has_ended.wait()
        self.has_stopped = True


def run(
    words: Sequence[str],
    place: str,
    progress: Progress | None = None,
    target: str | None = None,
) -> list[str]:
    """Run the program, and return the sentences of its warnings.

    The exception for a failure is about `place`, or about the target. An exception or a true
    value of `progress` stops the program, as Ctrl-C does, and waits for its end; nothing
    half-made is left, but the target is there if it was complete already.
    """
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="backslashreplace") as said:
        reading, writing = os.pipe()
        child = _Child()
        with open(reading, encoding="ascii") as lines:
            try:
                child.start(words, said, writing)
                stopped = sys.platform != "win32" and _follow(lines, progress)
                status = 0 if stopped else child.wait()
            finally:
                interruption: BaseException | None = None
                while not child.has_stopped:  # a second interruption stops it at once
                    try:
                        child.stop()
                    except (KeyboardInterrupt, SystemExit) as error:
                        interruption = error
                if interruption is not None:
                    raise interruption
        said.seek(0)
        sentences = [line.rstrip("\n") for line in said]
    if stopped:
        raise make(
            Status.ESTOPPED, 0, -1, "the progress function stopped the conversion", place
        )
    losses = [s.removeprefix(_WARNING) for s in sentences if s.startswith(_WARNING)]
    if status != 0:
        last = next((s for s in reversed(sentences) if not s.startswith(_WARNING)), "")
        if "strict: " in last and losses:
            last += f": {'; '.join(losses[:8])}"
        raise _failure(status, last.removeprefix(_PREFIX), place, target)
    return losses

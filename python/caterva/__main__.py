"""``python -m caterva`` runs the command line program of the wheel.

It also converts what Python packages read, with the options of ``caterva convert`` that apply:
FITS, GRIB, MRC, DICOM, OME-TIFF, and Zarr behind URLs or with other codecs.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any, NoReturn


def find_program() -> Path:
    """Return the path of the program ``caterva`` of this installation."""
    for file in importlib.metadata.files("caterva") or ():
        if file.name == "caterva.exe" or (file.name == "caterva" and "bin" in file.parts):
            return Path(str(file.locate())).resolve()
    raise FileNotFoundError("this installation of caterva has no command line program")


# ---- Converting ----------------------------------------------------------------------------


class _Other(Exception):
    """The arguments are for the program."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise _Other(message)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(add_help=False, allow_abbrev=False)
    parser.add_argument("source")
    parser.add_argument("target")
    for name in ("strict", "verify", "resume", "keep-chunks", "dry-run", "no-progress"):
        parser.add_argument(f"--{name}", action="store_true")
    parser.add_argument("--force", "-f", dest="overwrite", action="store_true")
    for name in ("chunks", "blocks"):
        parser.add_argument(f"--{name}", type=lambda t: [int(n) for n in t.split(",")])
    for name in ("codec", "filters", "engine"):
        parser.add_argument(f"--{name}")
    parser.add_argument("--astype", dest="dtype")
    parser.add_argument("--level", type=int)
    parser.add_argument("--threads", "-T", type=int, default=0)
    return parser


class _Line:
    """A percentage on a terminal, which the end erases."""

    def __init__(self) -> None:
        self._last = time.monotonic()

    def __call__(self, done: int, total: int) -> None:
        now = time.monotonic()
        if now - self._last > 0.1:
            self._last = now
            print(f"\r{100 * done // max(1, total):3d} %", end="", file=sys.stderr, flush=True)

    def erase(self) -> None:
        print("\r     \r", end="", file=sys.stderr, flush=True)


def _status_of(error: BaseException) -> int:
    from ._errors import CorruptError, UnsupportedError

    if isinstance(error, CorruptError):
        return 4
    if isinstance(error, UnsupportedError):
        return 5
    return 2 if isinstance(error, ValueError | TypeError) else 3


def _convert(words: list[str]) -> int:
    """Convert what the program does not read; `_Other` if it does."""
    from . import _convert
    from ._places import place_of

    options: dict[str, Any] = vars(_parser().parse_args(words))
    source, target = options.pop("source"), options.pop("target")
    is_plan, is_quiet = options.pop("dry_run"), options.pop("no_progress")
    place = place_of(source)
    form = _convert.format_of(place)
    engine = options["engine"] or _convert.engine_of(place, form)
    if engine == "program" and (form != "zarr" or is_plan):
        raise _Other
    line = None if is_quiet or not sys.stderr.isatty() else _Line()
    with warnings.catch_warnings(record=True) as losses:
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", _convert.LossWarning)
        try:
            if is_plan:
                print("\n".join(_convert.plan(place, engine)))
            else:
                _convert.convert(source, target, progress=line, **options)
        finally:
            if line is not None:
                line.erase()
            for loss in losses:
                print(f"caterva: warning: {loss.message}", file=sys.stderr)
    return 0


def _unwind_at_signals() -> None:
    """Let SIGTERM and SIGHUP raise SystemExit, so that temporary files are deleted. Further
    ones are ignored meanwhile. What the caller ignores stays ignored."""
    numbers = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    numbers = [n for n in numbers if signal.getsignal(n) == signal.SIG_DFL]

    def end(number: int, _: object) -> NoReturn:
        for n in numbers:
            signal.signal(n, signal.SIG_IGN)
        sys.exit(128 + number)

    for n in numbers:
        signal.signal(n, end)


def main() -> None:
    """Become the program, with the same arguments; or convert what only Python reads."""
    if sys.argv[1:2] == ["convert"]:
        _unwind_at_signals()  # execv below restores the defaults
        try:
            sys.exit(_convert(sys.argv[2:]))
        except _Other:
            pass
        except KeyboardInterrupt:
            sys.exit(130)
        except (OSError, ValueError, TypeError, NotImplementedError) as error:
            print(f"caterva: {error}", file=sys.stderr)
            sys.exit(_status_of(error))
    program = find_program()
    if sys.platform == "win32":  # where execv starts another process and does not wait
        sys.exit(subprocess.call([program, *sys.argv[1:]]))
    os.execv(program, [str(program), *sys.argv[1:]])


if __name__ == "__main__":
    main()

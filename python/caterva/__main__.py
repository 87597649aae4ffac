"""``python -m caterva``: the command line that the wheel carries."""

from __future__ import annotations

import importlib.metadata
import os
import sys
from pathlib import Path


def find_program() -> Path:
    """The program ``caterva`` of this installation."""
    for file in importlib.metadata.files("caterva") or ():
        if file.name == "caterva" and "bin" in file.parts:
            return Path(str(file.locate())).resolve()
    raise FileNotFoundError("this installation of caterva comes without the command line")


def main() -> None:
    """Become the program, with the arguments of this process."""
    program = find_program()
    os.execv(program, [str(program), *sys.argv[1:]])


if __name__ == "__main__":
    main()

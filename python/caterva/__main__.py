"""``python -m caterva`` runs the command line program of the wheel."""

from __future__ import annotations

import importlib.metadata
import os
import sys
from pathlib import Path


def find_program() -> Path:
    """Return the path of the program ``caterva`` of this installation."""
    for file in importlib.metadata.files("caterva") or ():
        if file.name == "caterva" and "bin" in file.parts:
            return Path(str(file.locate())).resolve()
    raise FileNotFoundError("this installation of caterva has no command line program")


def main() -> None:
    """Replace this process with the program, with the same arguments."""
    program = find_program()
    os.execv(program, [str(program), *sys.argv[1:]])


if __name__ == "__main__":
    main()

"""``python -m caterva`` runs the command line program of the wheel."""

from __future__ import annotations

import importlib.metadata
import os
import subprocess
import sys
from pathlib import Path


def find_program() -> Path:
    """Return the path of the program ``caterva`` of this installation."""
    for file in importlib.metadata.files("caterva") or ():
        if file.name == "caterva.exe" or (file.name == "caterva" and "bin" in file.parts):
            return Path(str(file.locate())).resolve()
    raise FileNotFoundError("this installation of caterva has no command line program")


def main() -> None:
    """Become the program, with the same arguments."""
    program = find_program()
    if sys.platform == "win32":  # where execv starts another process and does not wait
        sys.exit(subprocess.call([program, *sys.argv[1:]]))
    os.execv(program, [str(program), *sys.argv[1:]])


if __name__ == "__main__":
    main()

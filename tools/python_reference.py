#!/usr/bin/env python3
"""Makes the reference of the Python package from its docstrings, as HTML, by pdoc.

python_reference.py FOLDER"""

import inspect
import sys
from pathlib import Path

import caterva
import pdoc
import pdoc.render


def lift(owner: type) -> None:
    """What a class inherits is documented as its own: the bases are nobody's affair."""
    for name in dir(owner):
        if name.startswith("_") or name in vars(owner):
            continue
        setattr(owner, name, inspect.getattr_static(owner, name))


def main() -> int:
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    for owner in (caterva.Array, caterva.View):
        lift(owner)
    pdoc.render.configure(docformat="numpy", show_source=False, footer_text=caterva.__version__)
    pdoc.pdoc("caterva", output_directory=Path(sys.argv[1]))
    return 0


if __name__ == "__main__":
    sys.exit(main())

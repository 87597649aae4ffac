#!/usr/bin/env python3
"""The pages of the Python reference, which Sphinx fills from docstrings of the built package.

    python_reference.py FOLDER    writes the pages into a folder"""

import inspect
import sys
from pathlib import Path

import caterva

CLASSES = ("Array", "View", "Tree", "Group")  # a page each
MODULES = {
    "caterva.xarray": "Data sets with xarray",
    "caterva.dask": "Dask",
    "caterva.mpi": "MPI",
}


def heading(title: str) -> str:
    return f"{title}\n{'=' * len(title)}\n\n"


def directive(kind: str, name: str, *options: str) -> str:
    return "\n".join([f".. auto{kind}:: {name}", *(f"   :{o}:" for o in options), "", ""])


def public() -> list[str]:
    return [name for name in caterva.__all__ if not name.startswith("_")]


def is_documented(name: str) -> bool:
    """Whether a name such as ``caterva.Tree.repair`` has an entry in the reference."""
    _, first, *rest = name.split(".")
    return first in public() and all(hasattr(getattr(caterva, first), word) for word in rest)


def pages() -> dict[str, str]:
    """The text of each page by its file name."""
    names = [name for name in public() if name not in CLASSES]
    functions = [name for name in names if inspect.isroutine(getattr(caterva, name))]
    kinds = [name for name in names if inspect.isclass(getattr(caterva, name))]
    errors = [name for name in kinds if issubclass(getattr(caterva, name), Exception)]
    rest = [name for name in kinds if name not in errors]
    found = {"functions": heading("Functions"), "errors": heading("Exceptions")}
    found["classes"] = heading("Other classes")
    for name in functions:
        found["functions"] += directive("function", f"caterva.{name}")
    for name in errors:
        found["errors"] += directive("exception", f"caterva.{name}", "show-inheritance")
    for name in rest:
        found["classes"] += directive("class", f"caterva.{name}", "members")
    for name in CLASSES:
        found[name] = heading(f"caterva.{name}") + directive(
            "class", f"caterva.{name}", "members", "inherited-members"
        )
    for module, title in MODULES.items():
        found[module] = heading(f"{module}: {title}") + directive("module", module, "members")
    order = ["functions", *CLASSES, "classes", "errors", *MODULES]
    return {
        "index": heading("Reference of the Python package")
        + directive("module", "caterva")
        + ".. toctree::\n\n"
        + "".join(f"   {name}\n" for name in order)
    } | found


def main() -> int:
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        print(__doc__, file=sys.stderr)
        return 2
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in pages().items():
        (folder / f"{name}.rst").write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Runs a notebook's cells as Jupyter would, in an empty folder, without Jupyter.

    notebook.py FILE            compares what the cells give with what the notebook shows
    notebook.py --write FILE    puts what they give into the notebook

Compared are text, the pixels of pictures and the drawings in HTML, in which the folder's name
is left out; how many bytes something took may differ by the versions of codecs. A cell that
raises ends the run."""

from __future__ import annotations

import argparse
import ast
import base64
import contextlib
import io
import json
import os
import re
import sys
import tempfile
import zlib
from pathlib import Path
from typing import Any

Output = dict[str, Any]


def lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def shown(value: Any) -> Output:
    """What a notebook keeps of the value of a cell's last line."""
    data: dict[str, Any] = {"text/plain": lines(repr(value))}
    if hasattr(value, "_repr_html_"):
        data["text/html"] = lines(value._repr_html_())
    if hasattr(value, "_repr_png_"):
        data["image/png"] = base64.b64encode(value._repr_png_()).decode() + "\n"
    return data


def run_cell(source: str, names: dict[str, Any]) -> list[Output]:
    """Run a cell; its outputs as nbformat has them."""
    tree = ast.parse(source)
    last = None
    if tree.body and isinstance(tree.body[-1], ast.Expr) and not source.rstrip().endswith(";"):
        last = ast.Expression(tree.body.pop().value)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, "<cell>", "exec"), names)
        value = eval(compile(last, "<cell>", "eval"), names) if last else None
    outputs: list[Output] = []
    if printed.getvalue():
        text = lines(printed.getvalue())
        outputs.append({"name": "stdout", "output_type": "stream", "text": text})
    if value is not None:
        outputs.append({"data": shown(value), "metadata": {}, "output_type": "execute_result"})
    return outputs


def without_folder(outputs: list[Output], folder: str) -> list[Output]:
    text = json.dumps(outputs).replace(json.dumps(folder + "/")[1:-1], "")
    found: list[Output] = json.loads(text)
    return found


def pixels(png: str) -> bytes:
    """What a PNG file of one IDAT holds, whatever zlib made of it."""
    content = base64.b64decode(png)
    at = content.index(b"IDAT")
    size = int.from_bytes(content[at - 4 : at], "big")
    return content[16:29] + zlib.decompress(content[at + 4 : at + 4 + size])


def compared(outputs: list[Output]) -> list[Any]:
    """What has to be the same in each run."""
    found: list[Any] = []
    for output in outputs:
        data = output.get("data", {})
        found.append("".join(output.get("text", data.get("text/plain", []))))
        found += re.findall("<svg.*</svg>", "".join(data.get("text/html", [])), re.S)
        if "image/png" in data:
            found.append(pixels(data["image/png"]))
    return found


def run(notebook: dict[str, Any], folder: str) -> list[list[Output]]:
    """The outputs of each cell of code, run in that folder."""
    names: dict[str, Any] = {"__name__": "__main__"}
    found = []
    os.chdir(folder)
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            found.append(without_folder(run_cell("".join(cell["source"]), names), folder))
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--write", action="store_true")
    parser.add_argument("file", type=Path)
    options = parser.parse_args()
    path = options.file.resolve()
    notebook = json.loads(path.read_text(encoding="utf-8"))
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    with tempfile.TemporaryDirectory() as folder:
        found = run(notebook, os.path.realpath(folder))
        os.chdir("/")
    different = 0
    for number, (cell, outputs) in enumerate(zip(cells, found, strict=True), 1):
        for output in outputs:
            if output["output_type"] == "execute_result":
                output["execution_count"] = number
        if compared(outputs) != compared(cell["outputs"]):
            different += 1
            print(f"cell {number}:\n{''.join(cell['source'])}\n", file=sys.stderr)
            if not options.write:
                shows, gives = compared(cell["outputs"]), compared(outputs)
                print(f"shows {shows}\ngives {gives}", file=sys.stderr)
        cell["outputs"], cell["execution_count"] = outputs, number
    if options.write:
        text = json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"
        path.write_text(text, encoding="utf-8")
    print(f"{path.name}: {len(cells)} cells, {different} changed")
    return int(different > 0 and not options.write)


if __name__ == "__main__":
    sys.exit(main())

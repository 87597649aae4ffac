"""caterva.wasm under Node: random frames of python-blosc2, with all codecs and filters of C-Blosc2,
read in memory and from a store of JavaScript. Whole arrays and random boxes are equal to NumPy's.

usage: test_wasm.py caterva.wasm [--runs N] [--seed N]

scripts/test-foreign wasm builds caterva.wasm and runs this."""

import argparse
import json
import random
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "support"), str(HERE.parent / "compat")]

import blosc2  # noqa: E402
import numpy as np  # noqa: E402
import tool_matrix as matrix  # noqa: E402
import tool_python as py  # noqa: E402

Codec, Filter = blosc2.Codec, blosc2.Filter
CODECS = {*matrix.CODECS, Codec.NDLZ, Codec.ZFP_ACC, Codec.ZFP_PREC, Codec.ZFP_RATE}
FILTERS = {Filter.SHUFFLE, Filter.BITSHUFFLE, Filter.DELTA, Filter.TRUNC_PREC, Filter.NDCELL,
           Filter.NDMEAN, Filter.BYTEDELTA, Filter.INT_TRUNC}
BOXES = 4


def choose(n, chance):
    """Chooses n cases: first some that have every codec and filter, then random ones."""
    all_of_them = [case for make in (matrix.partition_cases, matrix.dtype_cases, matrix.codec_cases,
                                     matrix.plugin_cases, matrix.fill_cases)
                   for case in make()
                   if case.layout == "contiguous" and case.fill != "uninit"]
    chance.shuffle(all_of_them)
    missing, first, rest = CODECS | FILTERS, [], []
    for case in all_of_them:
        has = missing & {case.codec, *case.filters}
        (first if has else rest).append(case)
        missing = missing - has
    assert not missing, missing
    return (first + rest)[:n] if n >= len(first) else first


def write(case, folder, number, chance):
    """Writes the frame, its items and those of boxes. Returns what Node has to know of them."""
    rng = np.random.default_rng(chance.randrange(1 << 32))
    path = str(folder / f"{number}.b2nd")
    first = None if case.fill else matrix.contents(case, case.shape, rng)
    array = py.new_array(case, path, first)
    if case.fill:
        py.set_boxes(array, case, rng, 2)
    if case.place == "memory":
        Path(path).write_bytes(array.to_cframe())
    items = py.whole(array)
    boxes = matrix.some_boxes(case.shape, rng, BOXES if case.shape else 0)
    wanted = [items.tobytes()] + [items[box].tobytes() for box in boxes]
    (folder / f"{number}.items").write_bytes(b"".join(wanted))
    return {"name": case.name, "frame": path, "items": str(folder / f"{number}.items"),
            "shape": list(case.shape), "itemSize": items.dtype.itemsize,
            "boxes": [[[s.start for s in box], [s.stop for s in box]] for box in boxes]}


def write_odd(folder):
    """Frames that a machine with addresses of 32 bits must read in part, or refuse."""
    huge = blosc2.full((1 << 30, 1 << 10), 7, dtype="<i4", chunks=(1 << 18, 1 << 10),
                       blocks=(16, 1 << 10))
    (folder / "huge.b2nd").write_bytes(huge.to_cframe())
    many = blosc2.zeros((1 << 27,), dtype="|u1", chunks=(1 << 27,), blocks=(1,))
    (folder / "many.b2nd").write_bytes(many.to_cframe())
    return {"huge": str(folder / "huge.b2nd"), "many": str(folder / "many.b2nd")}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("wasm")
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    given = parser.parse_args()
    if not shutil.which("node"):
        print("Node, which runs caterva.wasm, is not installed")
        return 77
    print(f"seed {given.seed}", flush=True)
    chance = random.Random(given.seed)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        cases = [write(case, folder, number, chance)
                 for number, case in enumerate(choose(given.runs, chance))]
        (folder / "cases.json").write_text(json.dumps({"cases": cases, **write_odd(folder)}))
        return subprocess.run(["node", str(HERE / "tool_read.mjs"), given.wasm,
                               str(folder / "cases.json")], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())

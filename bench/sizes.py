"""Measures the sizes of files with default options, and the bytes that reads of them decode,
compared with python-blosc2's defaults.

    CATERVA_CLI=build/release/bin/caterva build/venv/bin/python bench/sizes.py [--large] [--all]

For each kind of data and item type, prints the geometric mean and the largest ratio of our file's
bytes to theirs (all files, our seal included); and for a point, planes and a box of a tenth of
each axis the bytes decoded per byte read, ours and theirs. `--large` uses arrays of 8 to 80 MiB;
`--all` prints each array. Takes minutes. Measures no time, so the machine may be busy; but
python-blosc2 chooses blocks by the processor's caches."""

import argparse
import os
import subprocess
import sys
import tempfile
from math import exp, log, prod
from pathlib import Path

import blosc2
import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "compat"))
import tool_fields  # noqa: E402

CLI = os.environ.get("CATERVA_CLI", "caterva")
LARGE = ((10, 721, 1440), (200, 200, 200), (200, 8, 64, 64), (2000000, 6), (10000000,),
         (8, 1000000))


def mean(values):
    return exp(sum(map(log, values)) / len(values))


def touched(n, chunk, block, length):
    """Returns the mean, over positions, of the items of an axis in the blocks that a run of
    `length` items touches."""
    places = np.unique(np.linspace(0, n - length, 50).astype(int))
    def at(i):
        return i // chunk * -(-chunk // block) + i % chunk // block
    return np.mean([at(p + length - 1) - at(p) + 1 for p in places]) * block


def reads(shape):
    yield "point", (1,) * len(shape)
    for d in range(len(shape)):
        if len(shape) > 1:
            yield f"plane {d}", shape[:d] + (1,) + shape[d + 1:]
    yield "box", tuple(max(1, n // 10) for n in shape)


def amplification(shape, chunks, blocks, lengths):
    return prod(touched(*axis) for axis in zip(shape, chunks, blocks, lengths)) / prod(lengths)


class Measure:
    def __init__(self, folder):
        self.npy, self.ours, self.theirs = (str(folder / n) for n in ("x.npy", "x.b2nd", "y.b2nd"))

    def __call__(self, values):
        """Returns the ratio of sizes, and for each read (name, our amplification, theirs)."""
        np.save(self.npy, values)
        subprocess.run([CLI, "convert", self.npy, self.ours, "-f", "--no-progress"], check=True)
        theirs = blosc2.asarray(values, urlpath=self.theirs, mode="w")
        ours = blosc2.open(self.ours)
        decoded = [(name, *(amplification(values.shape, a.chunks, a.blocks, lengths)
                            for a in (ours, theirs))) for name, lengths in reads(values.shape)]
        return os.path.getsize(self.ours), os.path.getsize(self.theirs), decoded


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--all", action="store_true")
    options = parser.parse_args()
    shapes = LARGE if options.large else tool_fields.SMALL
    kinds = {"bench", "noisy", "walk", "climate"} if options.large else None
    rows, decoded = {}, {}
    with tempfile.TemporaryDirectory() as folder:
        measure = Measure(Path(folder))
        for name, values in tool_fields.fields(
                [k for k in tool_fields.KINDS if not kinds or k.__name__ in kinds], shapes,
                ("f4", "f8") if options.large else ("f4", "f8", "i2", "u1", "i8")):
            if (values.nbytes > tool_fields.SMALL_BYTES) != options.large:
                continue
            ours, theirs, amplified = measure(values)
            rows.setdefault((name, values.dtype.str), []).append(ours / theirs)
            for read, a, b in amplified:
                decoded.setdefault(read, []).append((a, b))
            if options.all:
                print(f"{name:8} {values.dtype.str} {'x'.join(map(str, values.shape)):12} "
                      f"{values.nbytes:9} {ours:9} {theirs:9} {ours / theirs:.3f}", flush=True)
    print(f"{'kind':8} {'items':6} {'n':>3} {'mean':>7} {'largest':>8}")
    for (name, dtype), ratios in rows.items():
        print(f"{name:8} {dtype:6} {len(ratios):3} {mean(ratios):7.3f} {max(ratios):8.3f}")
    print(f"\n{'read':8} {'ours':>8} {'theirs':>8}   bytes decoded for one wanted, means")
    for read, pairs in decoded.items():
        print(f"{read:8} {mean([a for a, _ in pairs]):8.1f} {mean([b for _, b in pairs]):8.1f}")


if __name__ == "__main__":
    main()

"""Changes of shape and items by the command line and by python-blosc2 in turn: after each
change both read the file and must agree with NumPy.

usage: test_changes.py [SEED]"""

import os
import subprocess
import sys
import tempfile
import time

from tool_driver import LONG, SANITIZED, skip

try:
    import blosc2
    import numpy as np
except ImportError as missing:
    skip(f"{missing}; it runs in the virtual environment of scripts/bootstrap --test")

ARRAYS, STEPS = 4 if SANITIZED and not LONG else 12, 5  # per layout
CLI = os.environ.get("CATERVA_CLI") or skip("CATERVA_CLI names no program")


def caterva(*words):
    subprocess.run([CLI, *map(str, words)], check=True)


def comma(numbers):
    return ",".join(map(str, numbers))


def resized(model, shape):
    """The items that remain, and zeros where the array grew."""
    result = np.zeros(shape, model.dtype)
    kept = tuple(slice(0, min(a, b)) for a, b in zip(shape, model.shape))
    result[kept] = model[kept]
    return result, kept


def we_append(path, model, rng, folder):
    axis = int(rng.integers(0, model.ndim))
    shape = list(model.shape)
    shape[axis] = int(rng.integers(1, 9))
    more = rng.integers(1, 1000, shape).astype(model.dtype)
    np.save(f"{folder}/more.npy", more)
    caterva("append", path, f"{folder}/more.npy", "--axis", axis)
    return np.concatenate([model, more], axis=axis)


def we_resize(path, model, rng, folder):
    shape = [int(max(1, n + rng.integers(-6, 7))) for n in model.shape]
    caterva("resize", path, comma(shape))
    return resized(model, shape)[0]


def we_clear(path, model, rng, folder):
    """Shrunk by us, then grown by python-blosc2: no old item may reappear."""
    small = [max(1, n - int(rng.integers(0, 4))) for n in model.shape]
    caterva("resize", path, comma(small))
    array = blosc2.open(path, mode="a")
    array.resize(model.shape)
    return resized(resized(model, small)[0], model.shape)[0]


def python_resizes(path, model, rng, folder):
    shape = [int(max(1, n + rng.integers(-5, 6))) for n in model.shape]
    array = blosc2.open(path, mode="a")
    array.resize(tuple(shape))
    result, kept = resized(model, shape)
    got = array[...]
    assert (got[kept] == result[kept]).all(), "python-blosc2 lost what it kept"
    return got  # it shows old padding after shrinking and growing


def python_overwrites(path, model, rng, folder):
    array = blosc2.open(path, mode="a")
    box = tuple(slice(0, max(1, n // 2)) for n in model.shape)
    values = rng.integers(1, 1000, model[box].shape).astype(model.dtype)
    array[box] = values
    model[box] = values
    return model


CHANGES = [we_append, we_resize, we_clear, python_resizes, python_overwrites]


def check(path, model, folder, what):
    array = blosc2.open(path)
    assert array.shape == model.shape, f"{what}: python sees {array.shape}, not {model.shape}"
    assert (array[...] == model).all(), f"{what}: python reads otherwise"
    caterva("convert", path, f"{folder}/back.npy", "-f")
    back = np.load(f"{folder}/back.npy")
    assert back.shape == model.shape and (back == model).all(), f"{what}: we read otherwise"
    assert subprocess.run([CLI, "verify", path], capture_output=True).returncode == 0, what


def one_array(rng, folder, number, sparse):
    shape = tuple(int(n) for n in rng.integers(3, 25, rng.integers(1, 4)))
    chunks = [int(rng.integers(2, n + 1)) for n in shape]
    blocks = [int(rng.integers(1, n + 1)) for n in chunks]
    model = rng.integers(1, 1000, shape).astype("<i4")
    path = f"{folder}/{'sparse' if sparse else 'file'}-{number}.b2nd"
    np.save(f"{folder}/first.npy", model)
    caterva("convert", f"{folder}/first.npy", path, "--chunks", comma(chunks), "--blocks",
            comma(blocks), *(["--sparse"] if sparse else []))
    done = f"shape {shape} chunks {chunks} blocks {blocks} sparse {sparse}:"
    for _ in range(STEPS):
        change = CHANGES[rng.integers(0, len(CHANGES))]
        done += f" {change.__name__}"
        model = change(path, model, rng, folder)
        check(path, model, folder, done)


def main():
    seed = int(sys.argv[1]) if len(sys.argv) > 1 else time.time_ns() % 2**32
    print("seed", seed, flush=True)
    rng = np.random.default_rng(seed)
    with tempfile.TemporaryDirectory(prefix="caterva-changes-") as folder:
        for sparse in (False, True):
            for number in range(ARRAYS):
                one_array(rng, folder, number, sparse)
    print(f"{2 * ARRAYS} arrays, {STEPS} changes each, both readers agree with NumPy")


if __name__ == "__main__":
    main()

"""Sealed files and python-blosc2: whatever it changes, the file can be opened and read, reports
that it is unsealed, and our next commit seals it again. A false alarm would be worse than
undetected damage.

usage: test_seal.py [SEED]"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

from tool_driver import skip

try:
    import blosc2
    import numpy as np
except ImportError as missing:
    skip(f"{missing}; it runs in the virtual environment of scripts/bootstrap --test")

CLI = os.environ.get("CATERVA_CLI") or skip("CATERVA_CLI names no program")
CODECS = ["lz4", "zlib", "zstd"]


def caterva(*words):
    run = subprocess.run([CLI, *map(str, words)], check=True, capture_output=True)
    return run.stdout.decode()


def facts(path):
    return json.loads(caterva("info", path, "--json"))


def appends(array, rng):
    n = array.shape[0]
    array.resize((n + 5, *array.shape[1:]))
    array[n:] = rng.integers(1, 1000, (5, *array.shape[1:]))


def overwrites_with_the_same(array, rng):
    box = tuple(slice(0, n) for n in array.chunks)
    array[box] = array[box]


def overwrites_with_another_size(array, rng):
    box = tuple(slice(0, n) for n in array.chunks)
    array[box] = rng.integers(1, 2**30, array[box].shape)


def clears(array, rng):
    array[tuple(slice(0, n) for n in array.chunks)] = 0


def grows(array, rng):
    array.resize(tuple(n + 4 for n in array.shape))


def shrinks(array, rng):
    array.resize(tuple(max(1, n - 3) for n in array.shape))


def sets_vlmeta(array, rng):
    array.schunk.vlmeta["units"] = ["m", {"s": 2}]


CHANGES = [appends, overwrites_with_the_same, overwrites_with_another_size, clears, grows,
           shrinks, sets_vlmeta]


def check(path, expected, folder, what, sealed):
    caterva("convert", path, f"{folder}/back.npy", "-f")
    back = np.load(f"{folder}/back.npy")
    assert back.shape == expected.shape and (back == expected).all(), f"{what}: we read otherwise"
    array = blosc2.open(path)
    assert (array[...] == expected).all(), f"{what}: python reads otherwise"
    known = facts(path)
    assert known["sealed"] == sealed, f"{what}: sealed {known['sealed']}"
    if sealed:
        assert known["unverified_chunks"] == 0, f"{what}: {known['unverified_chunks']} unverified"
    if sealed and not os.path.isdir(path):
        assert os.path.getsize(path) == known["frame_bytes"], f"{what}: bytes behind the frame"
        with open(path, "rb") as file:
            whole = blosc2.ndarray_from_cframe(file.read())
        assert (whole[...] == expected).all(), f"{what}: another frame in memory"
    report = subprocess.run([CLI, "verify", path], capture_output=True)
    assert report.returncode == 0, f"{what}: {report.stdout.decode()}"


def one_change(rng, folder, codec, ndim, sparse, change):
    path = f"{folder}/array.b2nd"
    shutil.rmtree(path, ignore_errors=True)
    shape = tuple(int(n) for n in rng.integers(6, 14, ndim))
    chunks = [int(rng.integers(3, n + 1)) for n in shape]
    blocks = [int(rng.integers(2, n + 1)) for n in chunks]
    model = rng.integers(0, 30, shape).astype("<i4")
    what = f"{codec} {shape} {chunks} {blocks} sparse {sparse} {change.__name__}"
    np.save(f"{folder}/first.npy", model)
    caterva("convert", f"{folder}/first.npy", path, "-f", "--codec", codec, "--chunks",
            ",".join(map(str, chunks)), "--blocks", ",".join(map(str, blocks)),
            *(["--sparse"] if sparse else []))
    check(path, model, folder, what, True)

    array = blosc2.open(path, mode="a")
    change(array, rng)
    expected = array[...]
    del array
    check(path, expected, folder, what, False)

    np.save(f"{folder}/item.npy", np.int32(77))
    corner = ",".join("0" for _ in shape)
    if rng.integers(0, 3) > 0 and not sparse:
        caterva("put", path, corner, f"{folder}/item.npy")
        expected[(0,) * ndim] = 77
    else:
        caterva("seal", path)
    check(path, expected, folder, f"{what}, sealed again", True)
    caterva("compact", path)
    check(path, expected, folder, f"{what}, compacted", True)


def foreign(rng, folder):
    """A file by another writer is sealed without moving its chunks."""
    path = f"{folder}/foreign.b2nd"
    model = rng.integers(0, 1000, (40, 30)).astype("<i4")
    for name in ("file", "directory"):
        for sealer in ("seal", "put"):
            shutil.rmtree(path, ignore_errors=True)
            if os.path.exists(path):
                os.remove(path)
            blosc2.asarray(model, chunks=(10, 10), blocks=(5, 5), urlpath=path, mode="w",
                           contiguous=name == "file")
            expected = model.copy()
            check(path, expected, folder, f"foreign {name}", False)
            if sealer == "seal":
                caterva("seal", path)
            else:
                caterva("put", path, "0:10,0:10", "--fill", 3)
                expected[:10, :10] = 3
            left = facts(path)["unverified_chunks"]
            assert left == (11 if (name, sealer) == ("directory", "put") else 0), left
            if left == 0:
                check(path, expected, folder, f"foreign {name}, {sealer}", True)
            caterva("resize", path, "10,30")  # fewer chunks than tables before
            caterva("resize", path, "20,30")
            caterva("seal", path)
            resized = np.zeros((20, 30), "<i4")
            resized[:10] = expected[:10]
            check(path, resized, folder, f"foreign {name}, {sealer}, resized", True)


def main():
    seed = int(sys.argv[1]) if len(sys.argv) > 1 else time.time_ns() % 2**32
    print("seed", seed, flush=True)
    rng = np.random.default_rng(seed)
    with tempfile.TemporaryDirectory(prefix="caterva-seal-") as folder:
        foreign(rng, folder)
        number = 0
        for sparse in (False, True):
            for change in CHANGES:
                number += 1
                one_change(rng, folder, CODECS[number % 3], 1 + number % 4, sparse, change)
    print(f"{2 * len(CHANGES)} changes: no false alarm, and sealed again")


if __name__ == "__main__":
    main()

"""Checks an installed package in a minute, with NumPy but without a test framework.

usage: smoke.py [PART...]     all parts, or some of arrays, threads, program and licences"""

from __future__ import annotations

import importlib.metadata
import json
import os
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import caterva
import numpy as np


def arrays() -> None:
    items = np.random.default_rng(1).integers(0, 1000, (40, 50, 60), "i4")
    caterva.save("a.b2nd", items, chunks=(16, 25, 60))
    with caterva.open("a.b2nd") as a:
        assert np.array_equal(a[...], items)
        assert a[3, 4, 5] == items[3, 4, 5]
        assert np.array_equal(a[::-2, [1, 5, 3], 7:], items[::-2, [1, 5, 3], 7:])
        assert np.array_equal(a[items > 500], items[items > 500])
        assert a.sum() == items.sum()
        assert a.verify()
    with caterva.open("a.b2nd", "r+") as a:
        a[5] = 7
        a.append(items[:3])
        a.attrs["unit"] = "mm"
    assert caterva.open("a.b2nd").shape == (43, 50, 60)
    assert caterva.open("a.b2nd").attrs["unit"] == "mm"


def threads() -> None:
    items = caterva.load("a.b2nd")
    a = caterva.open("a.b2nd", cache_bytes=-1)
    wrong: list[int] = []

    def work(k: int) -> None:
        for i in range(k, 43, 4):
            if not np.array_equal(a[i], items[i]):
                wrong.append(i)

    workers = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in workers:
        thread.start()
    for thread in workers:
        thread.join()
    assert not wrong


def program() -> None:
    out = subprocess.run(
        [sys.executable, "-m", "caterva", "info", "a.b2nd"], check=True, capture_output=True
    )
    assert b"43 x 50 x 60" in out.stdout


def converting() -> None:
    np.savez("two.npz", x=np.arange(6.0).reshape(2, 3), n=[1, 2])
    assert caterva.from_npz("two.npz", "two.b2z")["x"][1].tolist() == [3, 4, 5]
    caterva.to_nifti("two.b2z::/x", "x.nii.gz")
    Path("in.h5").write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(600))
    folder = Path(caterva.__file__).parent / "plugins"
    try:
        caterva.from_hdf5("in.h5", "out.b2z")
    except caterva.CorruptError:  # a package built from source has the plug-in
        assert (folder / "hdf5.so").exists() or "h5py" in sys.modules
    except NotImplementedError as error:
        assert "pip install h5py" in str(error) and not folder.exists()
    assert not Path("out.b2z").exists()
    meta = {"zarr_format": 3, "node_type": "array", "shape": [6], "data_type": "int16"}
    grid = {"name": "regular", "configuration": {"chunk_shape": [6]}}
    codecs = [{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "zstd"}]
    meta |= {"chunk_grid": grid, "chunk_key_encoding": {"name": "default"}, "fill_value": 0}
    Path("z.zarr/c").mkdir(parents=True)
    Path("z.zarr/zarr.json").write_text(json.dumps(meta | {"codecs": codecs}))
    chunk = "28b52ffd200c610000000001000200030004000500"  # zarr-python's, of 0 to 5
    Path("z.zarr/c/0").write_bytes(bytes.fromhex(chunk))
    assert caterva.from_zarr("z.zarr", "z.b2nd")[...].tolist() == [0, 1, 2, 3, 4, 5]


def licences() -> None:
    names = [f.name for f in importlib.metadata.files("caterva") or () if "licenses" in str(f)]
    assert any("LICENSE" in name for name in names), names


def main() -> None:
    here = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for part in (arrays, threads, program, converting, licences):
            if part.__name__ in sys.argv[1:] or not sys.argv[1:]:
                part()
        os.chdir(here)
    free = hasattr(sys, "_is_gil_enabled") and not sys._is_gil_enabled()
    print(
        f"ok: caterva {caterva.__version__}, Python {sys.version.split()[0]}"
        f"{' without the GIL' if free else ''}, NumPy {np.__version__}"
    )


if __name__ == "__main__":
    main()

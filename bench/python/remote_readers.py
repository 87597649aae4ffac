"""The stores that bench/python/remote.py reads at a URL. Each writes the array into a folder,
whose files the server then serves, and opens it there. At most 16 requests are in flight at once.

A reader has `write(folder, values)` and `open(url)`. The opened object has `shape`, `dtype`,
`describe()`, which returns the whole description, and `[box]`, which returns a NumPy array."""

from __future__ import annotations

import ctypes
import importlib
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

CHUNKS, BLOCKS = (128, 128, 64), (16, 32, 16)  # 64 chunks of 128 blocks, 4 MiB and 32 KiB
CONNECTIONS = 16


class Opened:
    def __init__(self, array: Any, describe: Any) -> None:
        self.array, self.describe = array, describe
        self.shape, self.dtype = tuple(array.shape), np.dtype(str(array.dtype))

    def __getitem__(self, box: Any) -> Any:
        return np.asarray(self.array[box])


class Caterva:
    needs, also = "caterva", ()
    libraries = ("libcurl.so.4",)  # the other packages bundle their libraries
    name = "caterva, sealed"
    options: dict[str, int] = {}

    def write(self, folder: Path, values: Any) -> None:
        import caterva

        # One thread, so that the chunks are stored in order, like those of the other stores.
        array = caterva.asarray(
            values,
            path=folder / "near.b2nd",
            chunks=CHUNKS,
            blocks=BLOCKS,
            codec="lz4",
            level=5,
            threads=1,
        )
        array.close()
        self.finish(folder / "near.b2nd", folder / "a.b2nd")

    def run(self, *words: Any) -> None:
        subprocess.run(
            [sys.executable, "-m", "caterva", *map(str, words)],
            check=True,
            stdout=subprocess.DEVNULL,
        )

    def finish(self, near: Path, path: Path) -> None:
        near.rename(path)
        self.run("seal", path)

    def open(self, url: str) -> Opened:
        import caterva

        array = caterva.open(
            url + "a.b2nd", remote={"connections": CONNECTIONS, **self.options}
        )
        return Opened(array, lambda: (repr(array.info), dict(array.attrs)))


class CatervaForRemote(Caterva):
    name = "caterva, for remote"

    def finish(self, near: Path, path: Path) -> None:
        self.run("repack", near, path, "--for-remote", "-T", 1)
        near.unlink()


class CatervaReadingOver(CatervaForRemote):
    """Reads as many bytes as the readers that fetch whole chunks."""

    name = "caterva, for remote, over_read_percent 300"
    options = {"over_read_percent": 300}


class Blosc2:
    """python-blosc2, which reads byte ranges through fsspec, from a file that it wrote."""

    needs, also = "blosc2", ("fsspec.implementations.http",)
    name = "python-blosc2"

    def write(self, folder: Path, values: Any) -> None:
        import blosc2

        blosc2.asarray(
            values,
            urlpath=str(folder / "a.b2nd"),
            mode="w",
            chunks=CHUNKS,
            blocks=BLOCKS,
            cparams={
                "codec": blosc2.Codec.LZ4,
                "clevel": 5,
                "filters": [blosc2.Filter.SHUFFLE],
            },
        )

    def open(self, url: str) -> Opened:
        import blosc2

        array = blosc2.open(url + "a.b2nd", lazy=True, max_concurrency=CONNECTIONS)
        return Opened(array, lambda: (repr(array.info), dict(array.vlmeta or {})))


def zarr3_codecs(sharded: bool) -> list[dict[str, Any]]:
    codecs: list[dict[str, Any]] = [
        {"name": "bytes", "configuration": {"endian": "little"}},
        {
            "name": "blosc",
            "configuration": {
                "cname": "lz4",
                "clevel": 5,
                "shuffle": "shuffle",
                "typesize": 4,
                "blocksize": 0,
            },
        },
    ]
    if not sharded:
        return codecs
    return [
        {
            "name": "sharding_indexed",
            "configuration": {
                "chunk_shape": list(BLOCKS),
                "codecs": codecs,
                "index_location": "end",
                "index_codecs": [
                    {"name": "bytes", "configuration": {"endian": "little"}},
                    {"name": "crc32c"},
                ],
            },
        }
    ]


class TensorStore:
    needs, also = "tensorstore", ()
    name = "tensorstore, zarr 3"
    sharded = False

    def metadata(self, values: Any) -> dict[str, Any]:
        return {
            "driver": "zarr3",
            "metadata": {
                "data_type": values.dtype.name,
                "shape": list(values.shape),
                "chunk_grid": {
                    "name": "regular",
                    "configuration": {"chunk_shape": list(CHUNKS)},
                },
                "codecs": zarr3_codecs(self.sharded),
            },
        }

    def write(self, folder: Path, values: Any) -> None:
        import tensorstore as ts

        spec = {
            **self.metadata(values),
            "create": True,
            "kvstore": {"driver": "file", "path": str(folder / "a.zarr") + "/"},
        }
        ts.open(spec).result().write(values).result()

    def open(self, url: str) -> Opened:
        import tensorstore as ts

        driver = self.metadata(np.zeros((1, 1, 1), "f4"))["driver"]
        array = ts.open(
            {"driver": driver, "kvstore": url + "a.zarr/"},
            read=True,
            context=ts.Context({"http_request_concurrency": {"limit": CONNECTIONS}}),
        ).result()
        opened = Opened.__new__(Opened)
        opened.array, opened.shape = array, tuple(array.shape)
        opened.dtype, opened.describe = array.dtype.numpy_dtype, lambda: array.spec().to_json()
        return opened


class TensorStoreSharded(TensorStore):
    name = "tensorstore, zarr 3 sharded"
    sharded = True


class TensorStoreZarr2(TensorStore):
    name = "tensorstore, zarr 2"

    def metadata(self, values: Any) -> dict[str, Any]:
        return {
            "driver": "zarr",
            "metadata": {
                "dtype": values.dtype.str,
                "shape": list(values.shape),
                "chunks": list(CHUNKS),
                "compressor": {
                    "id": "blosc",
                    "cname": "lz4",
                    "clevel": 5,
                    "shuffle": 1,
                    "blocksize": 0,
                },
            },
        }


class Zarr:
    needs, also = "zarr", ("fsspec.implementations.http",)
    name = "zarr with fsspec"
    sharded = False

    def write(self, folder: Path, values: Any) -> None:
        import zarr
        from zarr.codecs import BloscCodec

        codec = BloscCodec(cname="lz4", clevel=5, shuffle="shuffle", typesize=4)
        array = zarr.create_array(
            folder / "a.zarr",
            shape=values.shape,
            dtype=values.dtype,
            chunks=BLOCKS if self.sharded else CHUNKS,
            shards=CHUNKS if self.sharded else None,
            compressors=[codec],
        )
        array[...] = values

    def open(self, url: str) -> Opened:
        import zarr

        zarr.config.set({"async.concurrency": CONNECTIONS})
        array = zarr.open_array(url + "a.zarr", mode="r", zarr_format=3)
        return Opened(array, lambda: (repr(array.info), dict(array.attrs)))


class ZarrSharded(Zarr):
    name = "zarr with fsspec, sharded"
    sharded = True


class H5py:
    """h5py on a file of fsspec, with fsspec's default cache and read-ahead."""

    needs, also = "h5py", ("fsspec.implementations.http", "hdf5plugin")
    name = "h5py with fsspec"
    chunks = CHUNKS

    def write(self, folder: Path, values: Any) -> None:
        import h5py
        import hdf5plugin

        with h5py.File(folder / "a.h5", "w") as file:
            file.create_dataset(
                "a",
                data=values,
                chunks=self.chunks,
                **hdf5plugin.Blosc(cname="lz4", clevel=5, shuffle=1),
            )

    def open(self, url: str) -> Opened:
        import fsspec
        import h5py
        import hdf5plugin  # noqa: F401

        self.file = h5py.File(fsspec.open(url + "a.h5", "rb").open(), "r")
        array = self.file["a"]
        return Opened(array, lambda: (array.chunks, array.compression, dict(array.attrs)))


class H5pySmall(H5py):
    name = "h5py with fsspec, chunks of 32 KiB"
    chunks = BLOCKS


class Ros3:
    """HDF5's own reading of URLs, which is missing in the wheels of h5py."""

    needs, also = "h5py", ("hdf5plugin",)
    name = "h5py with ROS3"

    def write(self, folder: Path, values: Any) -> None:
        H5py().write(folder, values)

    def open(self, url: str) -> Opened:
        import h5py
        import hdf5plugin  # noqa: F401

        self.file = h5py.File(url + "a.h5", "r", driver="ros3")
        array = self.file["a"]
        return Opened(array, lambda: (array.chunks, array.compression, dict(array.attrs)))


READERS = [
    Caterva(),
    CatervaForRemote(),
    CatervaReadingOver(),
    Blosc2(),
    TensorStore(),
    TensorStoreSharded(),
    TensorStoreZarr2(),
    Zarr(),
    ZarrSharded(),
    H5py(),
    H5pySmall(),
    Ros3(),
]


def why_not(reader: Any) -> str | None:
    """Returns why the reader cannot be used, or None if it can."""
    try:
        module = importlib.import_module(reader.needs)
        for name in reader.also:
            importlib.import_module(name)
        for name in getattr(reader, "libraries", ()):
            ctypes.CDLL(name)
    except (ImportError, OSError) as error:
        return str(error)
    if isinstance(reader, Ros3) and not module.h5.get_config().ros3:
        return "h5py %s is built without ROS3" % module.__version__
    return None

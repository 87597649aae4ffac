"""Zarr 3 on a local directory: chunks without compression, and with Blosc (LZ4 5, shuffle). It
has no cache of chunks."""

import zarr
from zarr.codecs import BloscCodec

VERSION = f"zarr {zarr.__version__}"


class Zarr:
    threads = (1, 2)
    big_cache = False

    def __init__(self, name, compressors):
        self.name = self.family = f"zarr {name}"
        self.compressors = compressors

    def set_threads(self, threads):
        zarr.config.set({"threading.max_workers": threads, "async.concurrency": threads})

    def create(self, path, values, chunks, threads):
        self.set_threads(threads)
        array = zarr.create_array(path, shape=values.shape, chunks=chunks, dtype=values.dtype,
                                  compressors=self.compressors, overwrite=True)
        array[...] = values

    def open(self, path, threads):
        self.set_threads(threads)
        self.array = zarr.open_array(path, mode="r")

    def read(self, start, stop):
        return self.array[tuple(map(slice, start, stop))]

    def close(self):
        self.array = None


def rivals():
    yield Zarr("none", None)
    yield Zarr("blosc", BloscCodec(cname="lz4", clevel=5, shuffle="shuffle"))

"""TensorStore with its zarr3 driver on a local directory: Blosc (LZ4 5, shuffle), with
and without its cache of decoded chunks, and uncompressed."""

from importlib.metadata import version

import tensorstore as ts

VERSION = f"tensorstore {version('tensorstore')}"
MIB = 1 << 20
BLOSC = {"name": "blosc", "configuration": {"cname": "lz4", "clevel": 5, "shuffle": "shuffle"}}


class TensorStore:
    threads = (1, 2)

    def __init__(self, name, codecs, cache):
        self.name = f"tensorstore {name}" + (f", {cache} MiB cache" if cache else "")
        self.family = f"tensorstore {name}"
        self.codecs, self.cache = codecs, cache
        self.big_cache = cache > 0

    def context(self, threads):
        return ts.Context({"data_copy_concurrency": {"limit": threads},
                           "file_io_concurrency": {"limit": threads},
                           "cache_pool": {"total_bytes_limit": self.cache * MIB}})

    def create(self, path, values, chunks, threads):
        spec = {"driver": "zarr3", "kvstore": {"driver": "file", "path": str(path) + "/"},
                "metadata": {"data_type": values.dtype.name, "shape": list(values.shape),
                             "chunk_grid": {"name": "regular",
                                            "configuration": {"chunk_shape": list(chunks)}},
                             "codecs": [{"name": "bytes",
                                         "configuration": {"endian": "little"}}] + self.codecs}}
        store = ts.open(spec, create=True, delete_existing=True,
                        context=self.context(threads)).result()
        store.write(values).result()

    def open(self, path, threads):
        self.store = ts.open({"driver": "zarr3",
                              "kvstore": {"driver": "file", "path": str(path) + "/"}},
                             read=True, context=self.context(threads)).result()

    def read(self, start, stop):
        return self.store[tuple(map(slice, start, stop))].read().result()

    def close(self):
        self.store = None


def rivals():
    yield TensorStore("none", [], 0)
    yield TensorStore("blosc", [BLOSC], 0)
    yield TensorStore("blosc", [BLOSC], 64)

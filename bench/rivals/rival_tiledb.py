"""TileDB: dense arrays in tiles of the chunks' shape, uncompressed and with byte shuffle
and LZ4. It has no cache of decoded tiles."""

import shutil

import tiledb

VERSION = f"tiledb {tiledb.__version__}, library {'.'.join(map(str, tiledb.libtiledb.version()))}"


class TileDb:
    threads = (1, 2)
    big_cache = False

    def __init__(self, name, filters):
        self.name = self.family = f"tiledb {name}"
        self.filters = filters

    def context(self, threads):
        return tiledb.Ctx({"sm.compute_concurrency_level": threads,
                           "sm.io_concurrency_level": threads})

    def create(self, path, values, chunks, threads):
        shutil.rmtree(path, ignore_errors=True)
        context = self.context(threads)
        dimensions = [tiledb.Dim(name=f"d{i}", domain=(0, n - 1), tile=chunk, dtype="int64",
                                 ctx=context)
                      for i, (n, chunk) in enumerate(zip(values.shape, chunks))]
        attribute = tiledb.Attr(dtype=values.dtype, filters=tiledb.FilterList(self.filters),
                                ctx=context)
        schema = tiledb.ArraySchema(domain=tiledb.Domain(*dimensions, ctx=context),
                                    attrs=[attribute], sparse=False, ctx=context)
        tiledb.Array.create(str(path), schema, ctx=context)
        with tiledb.open(str(path), "w", ctx=context) as array:
            array[:] = values

    def open(self, path, threads):
        self.array = tiledb.open(str(path), "r", ctx=self.context(threads))

    def read(self, start, stop):
        return self.array[tuple(map(slice, start, stop))]

    def close(self):
        self.array.close()


def rivals():
    yield TileDb("none", [])
    yield TileDb("lz4", [tiledb.ByteShuffleFilter(), tiledb.LZ4Filter(level=5)])

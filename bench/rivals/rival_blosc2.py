"""python-blosc2's NDArray: the same format as ours, LZ4 5 with shuffle; it chooses the
blocks. It has no cache of blocks."""

import blosc2

VERSION = f"python-blosc2 {blosc2.__version__}"


class Blosc2:
    threads = (1, 2)
    big_cache = False
    name = family = "blosc2"

    def create(self, path, values, chunks, threads):
        blosc2.asarray(values, urlpath=str(path), mode="w", chunks=chunks,
                       cparams={"codec": blosc2.Codec.LZ4, "clevel": 5, "nthreads": threads})

    def open(self, path, threads):
        self.array = blosc2.open(str(path), mode="r", dparams={"nthreads": threads})

    def read(self, start, stop):
        return self.array[tuple(map(slice, start, stop))]

    def close(self):
        self.array = None


def rivals():
    yield Blosc2()

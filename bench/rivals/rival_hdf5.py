"""HDF5 through h5py: chunked; without a filter, with gzip 1 and shuffle, and with Blosc (LZ4 5
and shuffle) from hdf5plugin; each with HDF5's default chunk cache and with one of 64 MiB."""

import h5py

try:
    import hdf5plugin
except ImportError:  # the other filters are still worth comparing
    hdf5plugin = None

VERSION = f"h5py {h5py.__version__}, HDF5 {h5py.version.hdf5_version}"
MIB = 1 << 20


class Hdf5:
    threads = (1,)  # HDF5 has one lock for all its calls

    def __init__(self, name, filters, cache):
        self.name = f"hdf5 {name}" + (f", {cache} MiB cache" if cache else "")
        self.family = f"hdf5 {name}"  # stores of one family read the same file
        self.filters, self.cache = filters, cache
        self.big_cache = cache > 0

    def create(self, path, values, chunks, threads):
        with h5py.File(path, "w") as file:
            file.create_dataset("a", data=values, chunks=chunks, **self.filters)

    def open(self, path, threads):
        # Slots: a prime of about 100 times the chunks that fit, as HDF5's manual recommends.
        cache = {"rdcc_nbytes": self.cache * MIB, "rdcc_nslots": 100003} if self.cache else {}
        self.file = h5py.File(path, "r", **cache)
        self.dataset = self.file["a"]

    def read(self, start, stop):
        return self.dataset[tuple(map(slice, start, stop))]

    def close(self):
        self.file.close()


def rivals():
    kinds = [("none", {}), ("gzip", {"compression": "gzip", "compression_opts": 1,
                                     "shuffle": True})]
    if hdf5plugin:
        blosc = hdf5plugin.Blosc(cname="lz4", clevel=5, shuffle=hdf5plugin.Blosc.SHUFFLE)
        kinds.append(("blosc", dict(blosc)))
    for name, filters in kinds:
        for cache in (0, 64):
            yield Hdf5(name, filters, cache)

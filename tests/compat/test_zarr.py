"""Random arrays copied to Zarr, compared with what zarr-python, TensorStore, zarrs, zarrita.js (by
HTTP), python-blosc2, C-Blosc2 and this library read from the copy: whole and in random boxes. The
arrays are written by this library and by python-blosc2, with all codecs, filters, dtypes and
partitions, chunks of one item, incompressible ones, and fill values. Then the copies are damaged.

usage: test_zarr.py [ARRAYS [SEED]] [--tool PATH]"""

import collections
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import blosc2
import numpy as np

from tool_driver import LONG, SANITIZED, Helper, HelperError, format_boxes, helper_path, skip

import nginx_server  # tool_driver knows the folder

try:
    import tensorstore
    import zarr
    import zarrs  # noqa: F401
except ImportError as error:
    skip(f"{error}: scripts/bootstrap --test installs it if Python is new enough")

DTYPES = ["?", "|i1", "|u1", "<i2", "<u2", "<i4", "<i4", "<u4", "<i8", "<u8", ">i2", ">u4", ">i8",
          "<f2", "<f4", "<f4", "<f8", "<f8", ">f4", ">f8", "<c8", "<c16", ">c16", "|S1", "|S7",
          "|S300", "<U1", "<U6", ">U3", "<U100", "<M8[ns]", "<M8[D]", "<M8[25s]", "<m8[us]",
          ">M8[s]", "|V5", "|V260", [("a", "<f4"), ("b", "<f8")],
          [("p", [("q", "<i4"), ("r", "<u2")]), ("s", "|u1")]]
CODECS = [blosc2.Codec.BLOSCLZ, blosc2.Codec.LZ4, blosc2.Codec.LZ4HC, blosc2.Codec.ZLIB,
          blosc2.Codec.ZSTD]
NONE, SHUFFLE, BITSHUFFLE, DELTA, BYTEDELTA = 0, 1, 2, 3, 35
FILTERS = [[], [SHUFFLE], [SHUFFLE], [BITSHUFFLE], [BITSHUFFLE], [DELTA], [DELTA, SHUFFLE],
           [SHUFFLE, BYTEDELTA], [SHUFFLE, SHUFFLE]]
MUTATIONS = 5  # of each copy
MOST_ITEMS, MOST_CHUNKS, MOST_BLOCKS, MOST_BYTES = 60_000, 40, 40, 1 << 20


def pick(rng, things):
    return things[int(rng.integers(len(things)))]


def random_shape(rng, itemsize):
    ndim = int(rng.integers(0, 7))
    most = max(8, min(MOST_ITEMS, MOST_BYTES // itemsize) // int(rng.integers(1, 20)))
    shape = [1] * ndim
    for d in rng.permutation(ndim):
        room = most // math.prod(shape)
        shape[d] = int(rng.integers(1, max(2, min(room, int(room ** rng.random()) + 2))))
    if ndim and rng.random() < 0.04:
        shape[int(rng.integers(ndim))] = 0
    return tuple(shape)


def divided(rng, shape, most):
    """Lengths that divide the shape in at most `most` parts."""
    parts = [int(rng.integers(1, n + 2)) if n else 1 for n in shape]
    while math.prod(max(1, -(-n // p)) for n, p in zip(shape, parts)) > most:
        d = int(rng.integers(len(parts)))
        parts[d] = min(max(1, shape[d]), parts[d] * 2)
    return tuple(parts)


def some_items(rng, dtype, n):
    """Items as in practice: noise, little noise, a ramp."""
    if dtype.kind == "b":
        return rng.integers(0, 2, n).astype(dtype)
    if dtype.kind == "U":
        letters = rng.choice(np.array(list("aZ09 \u00e9\u4e2d\U0001f600")), (n, dtype.itemsize // 4))
        return np.array(["".join(word) for word in letters], dtype)
    how = rng.integers(4)
    if how == 0 and dtype.kind in "iufc":
        return (np.arange(n) * 3 % 120).astype(dtype)
    if how == 1 and dtype.kind in "iu":
        return rng.integers(0, 5, n).astype(dtype)
    data = np.frombuffer(rng.bytes(n * dtype.itemsize), "u1")
    if how == 2:
        data = data & 3
    return data.copy().view(dtype)


def contents(rng, dtype, shape, fill):
    """Boxes of noise, of a ramp, of one item and of the fill."""
    items = np.empty(shape, dtype)
    items[...] = fill if rng.random() < 0.5 else some_items(rng, dtype, items.size).reshape(shape)
    for _ in range(int(rng.integers(0, 4))):
        box = random_box(rng, shape)
        n = items[box].size
        one = fill if rng.random() < 0.3 else some_items(rng, dtype, 1)[0]
        if rng.random() < 0.5 and n:
            items[box] = some_items(rng, dtype, n).reshape(items[box].shape)
        elif n:
            items[box] = one
    return items


def random_box(rng, shape):
    box = []
    for n in shape:
        start, stop = sorted(int(i) for i in rng.integers(0, n + 1, 2))
        box.append(slice(start, min(n, max(stop, start + 1))))
    return tuple(box)


def random_fill(rng, dtype):
    if rng.random() < 0.5:
        return np.zeros((), dtype)
    if dtype.kind in "fc" and rng.random() < 0.6:
        return np.array(pick(rng, [np.nan, np.inf, -np.inf, 1.5, -0.0, 0.1]), dtype)
    if dtype.kind in "mM":  # NumPy 2.5 hashes no value that seconds of 64 bits cannot hold
        return np.array(int(rng.integers(-9999, 9999)), "<i8").astype(dtype)
    return some_items(rng, dtype, 1)[0]


def comma(numbers):
    return ",".join(map(str, numbers)) or None


class Source:
    """An array in a file, by one of the two writers."""

    def __init__(self, rng, helper, folder):
        dtype = pick(rng, DTYPES)
        self.dtype = np.dtype(dtype)
        self.shape = random_shape(rng, self.dtype.itemsize)
        self.chunks = divided(rng, self.shape, MOST_CHUNKS)
        self.blocks = tuple(map(min, divided(rng, self.chunks, MOST_BLOCKS), self.chunks))
        if rng.random() < 0.7:  # whole blocks in each chunk
            self.chunks = tuple(-(-c // b) * b for c, b in zip(self.chunks, self.blocks))
        self.codec, self.filters = pick(rng, CODECS), list(pick(rng, FILTERS))
        if self.dtype.itemsize > 127 and BYTEDELTA in self.filters:
            self.filters = [SHUFFLE]
        self.level = int(rng.integers(0, 10))
        self.by_blosc2 = bool(rng.random() < 0.4)
        self.is_chosen = self.by_blosc2 or bool(rng.random() < 0.8)  # its pipeline
        self.fill = np.zeros((), self.dtype) if self.by_blosc2 else random_fill(rng, self.dtype)
        self.fill = np.array(self.fill, self.dtype)  # scalars of NumPy are little-endian
        self.items = contents(rng, self.dtype, self.shape, self.fill)
        self.path = os.path.join(folder, "source.b2nd")
        if self.by_blosc2:
            self.write_blosc2(rng)
        else:
            self.write(rng, helper)

    def write_blosc2(self, rng):
        filters = [blosc2.Filter(f) for f in self.filters or [NONE]]
        cparams = blosc2.CParams(codec=self.codec, clevel=self.level, filters=filters,
                                 filters_meta=[0] * len(filters),
                                 splitmode=pick(rng, list(blosc2.SplitMode)),
                                 nthreads=int(rng.integers(1, 4)))
        blosc2.asarray(self.items, chunks=self.chunks, blocks=self.blocks, cparams=cparams,
                       urlpath=self.path, mode="w")

    def write(self, rng, helper):
        data = os.path.join(os.path.dirname(self.path), "items")
        with open(data, "wb") as file:
            file.write(self.items.tobytes())
        words = {"shape": comma(self.shape), "chunks": comma(self.chunks),
                 "blocks": comma(self.blocks), "dtype": self.text(),
                 "fill": 3, "fill_value": self.fill.tobytes().hex(), "file": data}
        if self.is_chosen:
            words |= {"codec": self.codec.value, "level": self.level,
                      "filters": comma(self.filters or [256])}
        if rng.random() < 0.15:
            words["layout"] = "sparse"
        helper.run("create", url=self.path, **words)

    def text(self):
        return str(self.dtype) if self.dtype.fields else self.dtype.str

    def __str__(self):
        return (f"{self.text()} shape {self.shape} chunks {self.chunks} blocks {self.blocks} "
                f"{self.codec.name} {self.level} filters {self.filters} fill {self.fill} "
                f"{'blosc2' if self.by_blosc2 else 'caterva'}")


def same(found, expected):
    """Equal as bytes, so that NaN and padding count."""
    found = np.array(found, order="C")
    if found.dtype != expected.dtype:
        found = found.astype(expected.dtype)
    return found.shape == expected.shape and found.tobytes() == expected.tobytes()


def read_zarr(path, box, pipeline):
    with zarr.config.set({"codec_pipeline.path": pipeline}):
        array = zarr.open_array(path, mode="r")
        return array[...], array[box]


def read_tensorstore(path, box):
    spec = {"driver": "zarr3", "kvstore": {"driver": "file", "path": path}}
    array = tensorstore.open(spec).result()
    return array.read().result(), array[box].read().result()


def read_blosc2(path, box, **options):
    array = blosc2.open(path, mode="r", **options)
    return array[...], array[box]


def read_file(path, source, box, dtype):
    """All items and those of the box, in a file one after the other."""
    items = np.fromfile(path, dtype)
    whole, part = items[:source.items.size], items[source.items.size:]
    return whole.reshape(source.shape), part.reshape(source.items[box].shape)[()]


def read_b2nd(path, source, box, out):
    numbers = [str(n) for s in box for n in (s.start, s.stop)]
    subprocess.run([helper_path("tool_b2nd"), path, out, *numbers], check=True)
    return read_file(out, source, box, source.dtype)


class Zarrita:
    """zarrita.js under Node, which reads from nginx."""

    def __init__(self, folder, served):
        packages = Path(__file__).resolve().parents[2] / "build" / "viewer" / "node_modules"
        node, nginx = shutil.which("node"), nginx_server.find()
        self.lacks = [name for name, found in (("Node", node), ("nginx", nginx),
                      (str(packages), (packages / "zarrita").exists())) if not found]
        if self.lacks:
            return
        self.nginx = nginx_server.Nginx(nginx, folder, served)
        self.out = folder / "zarrita"
        self.node = subprocess.Popen([node, Path(__file__).parent / "tool_zarrita.mjs", packages],
                                     stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def reads(self, source):
        """Numbers, but Node 20 lacks float16, and JSON in JavaScript large integers."""
        return (not self.lacks and source.dtype.kind in "biuf" and source.dtype.char != "e" and
                (source.dtype.kind == "f" or abs(int(source.fill)) <= 1 << 53))

    def read(self, name, source, box):
        request = {"url": self.nginx.url(name), "box": [[s.start, s.stop] for s in box],
                   "out": str(self.out)}
        print(json.dumps(request), file=self.node.stdin, flush=True)
        answer = self.node.stdout.readline().strip()
        if answer != "ok":
            sys.exit(f"zarrita: {answer}: {source}")
        return read_file(self.out, source, box, source.dtype.newbyteorder("<"))

    def close(self):
        if not self.lacks:
            self.node.communicate()
            self.nginx.close()


def check_numbers(source, found, box, seen):
    """JavaScript has one NaN."""
    for got, expected in zip(found, (source.items, source.items[box])):
        if not np.array_equal(got, expected, equal_nan=source.dtype.kind == "f"):
            sys.exit(f"zarrita reads other items: {source}")
    seen["zarrita"] += 1


def check(source, found, box, reader, seen):
    whole, part = found
    if not same(whole, source.items) or not same(part, source.items[box]):
        sys.exit(f"{reader} reads other items: {source}")
    seen[reader] += 1


def check_pipeline(source, copy):
    """A pipeline that Zarr has stays."""
    with open(os.path.join(copy, "zarr.json")) as file:
        codecs = json.load(file)["codecs"][0]["configuration"]["codecs"]
    found = codecs[1]["configuration"]
    if source.is_chosen and source.filters in ([], [SHUFFLE]):
        expected = (source.codec.name.lower(), source.level)
        if (found["cname"], found["clevel"]) != expected:
            sys.exit(f"{source} became {found}")


def check_all(rng, helper, zarrita, source, folder, seen):
    copy = os.path.join(folder, "copy.zarr")
    try:
        helper.run("copy", url=source.path, to=copy, zarr=1, overwrite=int(rng.integers(2)))
    except HelperError as error:
        sys.exit(f"not copied: {source}: {error}")
    check_pipeline(source, copy)
    shard = os.path.join(copy, "c", *["0"] * len(source.shape))
    frame = os.path.join(folder, "frame.b2nd")  # python-blosc2 looks at the name of the path
    os.link(shard, frame)
    box = random_box(rng, source.shape)
    zarr_python = "zarr.core.codec_pipeline.BatchedCodecPipeline"
    if source.dtype.kind != "V" or not zarr.__version__.startswith("3.1."):  # 3.1 cannot read its own
        check(source, read_zarr(copy, box, zarr_python), box, "zarr", seen)
    if source.dtype.kind in "biufc":
        check(source, read_tensorstore(copy, box), box, "tensorstore", seen)
    if source.dtype.kind in "biuf" or source.dtype.str.startswith("<c"):
        # zarrs 0.2.3 exchanges the parts of big-endian complex numbers
        check(source, read_zarr(copy, box, "zarrs.ZarrsCodecPipeline"), box, "zarrs", seen)
    if source.shape and 0 not in source.shape:  # it reads neither 0-d nor empty arrays of files
        check(source, read_blosc2(frame, box), box, "blosc2", seen)
        check(source, read_blosc2(frame, box, mmap_mode="r"), box, "blosc2 mmap", seen)
    out = os.path.join(folder, "read")
    check(source, read_b2nd(frame, source, box, out), box, "C-Blosc2", seen)
    if zarrita.reads(source):
        check_numbers(source, zarrita.read("array/copy.zarr", source, box), box, seen)
    boxes = format_boxes([box]) if source.shape else None
    answer = helper.run("read", url=copy, boxes=boxes, out=out)
    part = source.items[box].tobytes() if source.shape else b""
    with open(out, "rb") as file:
        if file.read() != source.items.tobytes() + part:
            sys.exit(f"the library reads other items: {source}")
    if answer["damages"]:
        sys.exit(f"the library finds damage in its copy: {source}")
    seen["caterva"] += 1
    for _ in range(MUTATIONS):
        mutate(rng, helper, source, copy, shard, seen)


def mutate(rng, helper, source, copy, shard, seen):
    """Changes a few bytes of the shard: the library reads the same items, or says that the
    array is damaged. What is behind the frame is compared by verify."""
    with open(shard, "rb") as file:
        good = file.read()
    bad = bytearray(good)
    low = int(rng.choice([0, 0, max(0, len(bad) - 300)]))
    for at in rng.integers(low, len(bad), int(rng.integers(1, 5))):
        bad[at] ^= 1 << int(rng.integers(8))
    with open(shard, "wb") as file:
        file.write(bad)
    out = os.path.join(os.path.dirname(copy), "read")
    try:
        answer = helper.run("read", url=copy, out=out)
        with open(out, "rb") as file:
            if file.read() != source.items.tobytes():
                sys.exit(f"the library reads damaged items: {source}")
        seen["mutations found by verify" if answer["damages"] else "harmless mutations"] += 1
    except HelperError as error:
        if error.status == "died":
            raise
        seen["mutations refused"] += 1
    with open(shard, "wb") as file:
        file.write(good)


def check_arrays(runs, seed, folder, seen):
    helper, zarrita = Helper(folder), Zarrita(Path(folder), folder)
    if zarrita.lacks:
        print("without zarrita.js:", ", ".join(zarrita.lacks), "missing", flush=True)
    try:
        for number in range(runs):
            rng = np.random.default_rng([seed, number])
            place = os.path.join(folder, "array")
            os.mkdir(place)
            source = None
            try:
                source = Source(rng, helper, place)
                check_all(rng, helper, zarrita, source, place, seen)
            except BaseException:
                print(f"array {number} of seed {seed}: {source}", flush=True)
                raise
            shutil.rmtree(place)
        helper.close()
    finally:
        zarrita.close()


def main():
    numbers = [int(word) for word in sys.argv[1:3] if word.isdecimal()]
    runs = numbers[0] if numbers else 2000 if LONG else 60 if SANITIZED else 250
    seed = numbers[1] if len(numbers) > 1 else int.from_bytes(os.urandom(4), "little")
    print(f"{runs} arrays, seed {seed}", flush=True)
    seen = collections.Counter()
    with tempfile.TemporaryDirectory() as folder:
        check_arrays(runs, seed, folder, seen)
    print(", ".join(f"{reader} {n}" for reader, n in seen.items()))


if __name__ == "__main__":
    main()

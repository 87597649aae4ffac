"""An independent writer of arrays that are both, from the text of docs/zarr.md alone ("The bytes"):
python-blosc2 encodes chunks and writes the frame, `struct` and NumPy do the rest. Zarr readers,
python-blosc2 and this library then read equal items, and verify finds no damage in the frame. Then
the reverse: what this library writes is what the text says, for arrays of many kinds.

usage: test_zarr_written.py [ARRAYS [SEED]] [--tool PATH]"""

import itertools
import json
import math
import os
import struct
import sys
import tempfile

import blosc2
import numpy as np

from tool_driver import LONG, Helper, skip

try:
    import google_crc32c
    import tensorstore
    import zarr
except ImportError as error:
    skip(f"{error}: scripts/bootstrap --test installs it if Python is new enough")

MISSING = 2**64 - 1
CODECS = {0: "blosclz", 1: "lz4", 3: "zlib", 4: "zstd"}


# ---- Chunks of Blosc2 ------------------------------------------------------------------------


class Chunk:
    """Header, block starts and streams. https://github.com/Blosc/c-blosc2, README_CHUNK_FORMAT."""

    def __init__(self, data):
        self.data = data
        self.flags, self.typesize = data[2], data[3]
        self.nbytes, self.blocksize, self.cbytes = struct.unpack_from("<3i", data, 4)
        self.n_blocks = self.nbytes // self.blocksize
        self.filters = [f for f in data[16:22] if f]
        self.is_special = bool(data[31] >> 4 & 7)
        self.is_stored = bool(self.flags & 2) and not self.is_special
        if not self.is_special and not self.is_stored:
            self.starts = struct.unpack_from(f"<{self.n_blocks}i", data, 32)
        self.n_streams = 1 if self.flags & 0x10 else self.typesize

    def streams(self, block):
        """The streams of a block, each as (bytes with the size in front, its byte if it is a run)."""
        at, found = self.starts[block], []
        for _ in range(self.n_streams):
            size, = struct.unpack_from("<i", self.data, at)
            end = at + 4 + (size if size > 0 else 1 if size < 0 else 0)
            found.append((self.data[at:end], None if size > 0 else -size & 0xff))
            at = end
        return found


def head_of(chunk, size):
    """Item 1 and 2."""
    flags = chunk.flags & 0xf0
    flags |= {1: 0x01, 2: 0x04}.get((chunk.filters or [0])[-1], 0)
    return struct.pack("<4B4i", 2, 1, flags, chunk.typesize, chunk.blocksize, chunk.blocksize,
                       size, 20)


def buffer_of(chunk, block):
    """The Blosc 1 buffer of a block; a run becomes a stored stream (item 3)."""
    length = chunk.blocksize // chunk.n_streams
    streams = b"".join(data if run is None else struct.pack("<i", length) + bytes([run]) * length
                       for data, run in chunk.streams(block))
    return head_of(chunk, 20 + len(streams)) + streams


# ---- The writer ---------------------------------------------------------------------------------


def rewritten(chunk):
    """Items 1 to 4: the chunk with 20 bytes before blocks that have room for them; their sizes."""
    out, starts, sizes = bytearray(32 + 4 * chunk.n_blocks), [0] * chunk.n_blocks, {}
    out[:32] = chunk.data[:32]
    most = chunk.blocksize + 4 * chunk.typesize
    for block in range(chunk.n_blocks):
        buffer = buffer_of(chunk, block)
        if len(buffer) <= most:
            starts[block], sizes[block] = len(out) + 20, len(buffer)
            out += buffer
    for block in sorted(set(range(chunk.n_blocks)) - sizes.keys()):
        starts[block] = len(out)
        out += b"".join(data for data, _ in chunk.streams(block))
    struct.pack_into(f"<{chunk.n_blocks}i", out, 32, *starts)
    struct.pack_into("<i", out, 12, len(out))
    return bytes(out), {block: (starts[block] - 20, size) for block, size in sizes.items()}


def metadata(items, blocks, shard, chunk, fill):
    """Item 7, for numbers."""
    endian = {"name": "bytes", "configuration": {"endian": "little"}}
    shuffle = {0: "noshuffle", 1: "shuffle", 2: "bitshuffle"}[(chunk.filters or [0])[-1]]
    blosc = {"name": "blosc", "configuration": {
        "cname": CODECS[chunk.flags >> 5], "clevel": 5, "shuffle": shuffle,
        "typesize": items.itemsize, "blocksize": 0}}
    return {"zarr_format": 3, "node_type": "array", "shape": items.shape,
            "data_type": str(items.dtype), "fill_value": fill, "attributes": {},
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": shard}},
            "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
            "codecs": [{"name": "sharding_indexed", "configuration": {
                "chunk_shape": blocks, "codecs": [endian, blosc], "index_location": "end",
                "index_codecs": [endian, {"name": "crc32c"}]}}]}


def write(folder, items, chunks, blocks, **how):
    """Writes folder/x.zarr."""
    frame = os.path.join(folder, "frame.b2nd")
    source = blosc2.asarray(items, chunks=chunks, blocks=blocks, cparams=blosc2.CParams(**how))
    target = blosc2.zeros(items.shape, items.dtype, chunks=chunks, blocks=blocks, urlpath=frame,
                          mode="w", cparams=blosc2.CParams(**how))
    grid = [-(-n // c) for n, c in zip(items.shape, chunks)]
    inner = [c // b for c, b in zip(chunks, blocks)]
    entries = np.full([g * n for g, n in zip(grid, inner)] + [2], MISSING, "<u8")
    made = []
    for number in range(math.prod(grid)):
        chunk = Chunk(source.schunk.get_chunk(number))
        assert not chunk.is_special and not chunk.is_stored, "choose other items"
        data, sizes = rewritten(chunk)
        target.schunk.update_chunk(number, data)
        made.append((chunk, data, sizes))
    del target
    with open(frame, "rb") as file:
        whole = file.read()
    tail = b""
    for number, (index, (chunk, data, sizes)) in enumerate(zip(np.ndindex(*grid), made)):
        pos = whole.index(data)
        for block, at in enumerate(np.ndindex(*inner)):
            entry = tuple(i * n + a for i, n, a in zip(index, inner, at))
            if block in sizes:
                entries[entry] = pos + sizes[block][0], sizes[block][1]
            elif any(run != 0 for _, run in chunk.streams(block)):  # item 5
                buffer = buffer_of(chunk, block)
                entries[entry] = len(whole) + len(tail), len(buffer)
                tail += buffer
    index = entries.tobytes()
    index += struct.pack("<I", google_crc32c.value(index))
    path = os.path.join(folder, "x.zarr")
    place = os.path.join(path, "c", *["0"] * items.ndim)
    os.makedirs(os.path.dirname(place))
    with open(place, "wb") as file:
        file.write(whole + tail + index)
    shard = [g * c for g, c in zip(grid, chunks)]
    with open(os.path.join(path, "zarr.json"), "w") as file:
        json.dump(metadata(items, blocks, shard, made[0][0], 0), file)
    return path, bool(tail)


def check_written(helper):
    """Files of this writer, in all readers."""
    rng = np.random.default_rng(7)
    ramp = np.add.outer(np.arange(40) * 7, np.arange(60))
    noise = rng.integers(0, 200, ramp.shape)
    few = np.where(ramp < 120, 0, noise + 70000)  # zeros, and blocks with runs
    hard = rng.integers(0, 2**32, ramp.shape)     # blocks without room
    hard[:8] = noise[:8]
    n = 0
    for items, codec, filters in itertools.product(
            [ramp + noise, few, hard, np.sin(ramp / 50)],
            [blosc2.Codec.LZ4, blosc2.Codec.ZSTD, blosc2.Codec.BLOSCLZ, blosc2.Codec.ZLIB],
            [[blosc2.Filter.SHUFFLE], [blosc2.Filter.BITSHUFFLE]]):
        items = items.astype("u4" if items.dtype.kind == "i" else items.dtype)
        with tempfile.TemporaryDirectory() as folder:
            path, has_tail = write(folder, items, (24, 32), (8, 16), codec=codec, filters=filters,
                                filters_meta=[0], clevel=5, nthreads=1)
            spec = {"driver": "zarr3", "kvstore": {"driver": "file", "path": path}}
            os.link(os.path.join(path, "c", "0", "0"), os.path.join(folder, "link.b2nd"))
            found = {"zarr-python": zarr.open_array(path, mode="r")[...],
                     "TensorStore": tensorstore.open(spec).result().read().result(),
                     "python-blosc2": blosc2.open(os.path.join(folder, "link.b2nd"))[...]}
            out = os.path.join(folder, "read")
            answer = helper.run("read", url=path, out=out)
            with open(out, "rb") as file:
                found["the library"] = np.frombuffer(file.read(), items.dtype).reshape(items.shape)
            for reader, read in found.items():
                if not np.array_equal(read, items):
                    sys.exit(f"{reader} reads other items: {codec} {filters}")
            # verify compares zarr.json and what is behind the frame with what it would write
            if answer["damages"] not in (1, 1 + has_tail):
                sys.exit(f"verify finds {answer['damages']} damages: {codec} {filters}")
            n += 1
    print(f"{n} arrays of the independent writer read")


# ---- What the library writes ----------------------------------------------------------------------


def check_file(path, shape):
    """The text about one of our files; returns how many blocks of each kind it has."""
    with open(os.path.join(path, "zarr.json")) as file:
        meta = json.load(file)
    with open(os.path.join(path, "c", *["0"] * len(shape)), "rb") as file:
        whole = file.read()
    frame_len, = struct.unpack_from(">q", whole, 16)
    codec = meta["codecs"][0]["configuration"]
    grid = [s // b for s, b in zip(meta["chunk_grid"]["configuration"]["chunk_shape"],
                                   codec["chunk_shape"])]
    n = math.prod(grid)
    index, crc = whole[-16 * n - 4:-4], struct.unpack("<I", whole[-4:])[0]
    assert google_crc32c.value(index) == crc, "the checksum of the index"
    entries = np.frombuffer(index, "<u8").reshape(n, 2)
    seen = {"in the chunk": 0, "behind the frame": 0, "missing": 0}
    for pos, size in entries.tolist():
        if (pos, size) == (MISSING, MISSING):
            seen["missing"] += 1
            continue
        buffer = whole[pos:pos + size]
        assert len(buffer) == size <= len(whole) - 16 * n - 4 - pos, "an entry"
        first, second, flags, typesize, nbytes, blocksize, cbytes, start = struct.unpack_from(
            "<4B4i", buffer)
        assert (first, second, start) == (2, 1, 20) and nbytes == blocksize, "a head"
        assert cbytes == size and flags >> 5 in CODECS and flags & 0x0a == 0, "a head"
        n_streams = 1 if flags & 0x10 else typesize
        at = 20
        for _ in range(n_streams):
            length, = struct.unpack_from("<i", buffer, at)
            assert 0 < length <= blocksize // n_streams, "a stream"
            at += 4 + length
        assert at == size, "streams"
        seen["in the chunk" if pos + size <= frame_len else "behind the frame"] += 1
        assert pos >= frame_len or pos + size <= frame_len, "a buffer in both"
    return seen


def check_own(helper, runs, seed):
    total = {}
    for number in range(runs):
        rng = np.random.default_rng([seed, number])
        shape = tuple(int(n) for n in rng.integers(1, 40, int(rng.integers(0, 4))))
        items = rng.integers(0, 1 << int(rng.integers(1, 33)), shape).astype(
            rng.choice(["u1", "i2", "u4", "f8"]))
        items[tuple(slice(n // 2) for n in shape)] = int(rng.integers(3))
        with tempfile.TemporaryDirectory() as folder:
            source, out = (os.path.join(folder, name) for name in ("a.b2nd", "a.zarr"))
            data = os.path.join(folder, "items")
            with open(data, "wb") as file:
                file.write(items.tobytes())
            chunks = [-(-n // 2 // 4) * 4 or 4 for n in shape]
            words = {"blocks": ",".join(["4"] * len(shape)), "chunks": ",".join(map(str, chunks)),
                     "shape": ",".join(map(str, shape))} if shape else {}
            helper.run("create", url=source, dtype=items.dtype.str, file=data, **words,
                       codec=int(rng.choice([1, 2, 5])), level=5, filters=int(rng.choice([1, 2, 256])))
            helper.run("copy", url=source, to=out, zarr=1)
            try:
                seen = check_file(out, shape)
            except AssertionError:
                print(f"array {number} of seed {seed}: {items.dtype} {shape}")
                raise
            total = {kind: total.get(kind, 0) + n for kind, n in seen.items()}
    print(f"{runs} arrays of the library, seed {seed}: {total}")
    assert all(total.values()), "not all kinds of blocks were met"


def main():
    numbers = [int(word) for word in sys.argv[1:3] if word.isdecimal()]
    runs = numbers[0] if numbers else 2000 if LONG else 100
    seed = numbers[1] if len(numbers) > 1 else int.from_bytes(os.urandom(4), "little")
    with tempfile.TemporaryDirectory() as folder:
        helper = Helper(folder)
        check_written(helper)
        check_own(helper, runs, seed)
        helper.close()


if __name__ == "__main__":
    main()

"""Blosc2 frames without the array's metalayer, written by python-blosc2's SChunk: a 1-d array
of their items, compared with what SChunk itself reads, for random item sizes, chunks, codecs,
filters and special chunks, in files, directories and memory. Other objects that python-blosc2
stores in frames are refused by name.

usage: test_plain_frames.py [FRAMES [SEED]] [--tool PATH]"""

import os
import subprocess
import sys
import tempfile
import time

import blosc2
import numpy as np

from tool_driver import Helper, HelperError

CODECS = [blosc2.Codec.BLOSCLZ, blosc2.Codec.LZ4, blosc2.Codec.LZ4HC, blosc2.Codec.ZLIB,
          blosc2.Codec.ZSTD]
FILTERS = [[], [blosc2.Filter.SHUFFLE], [blosc2.Filter.BITSHUFFLE], [blosc2.Filter.DELTA],
           [blosc2.Filter.DELTA, blosc2.Filter.SHUFFLE],
           [blosc2.Filter.SHUFFLE, blosc2.Filter.BYTEDELTA],
           [blosc2.Filter.SHUFFLE, blosc2.Filter.SHUFFLE]]
ITEM_SIZES = [1, 1, 2, 3, 4, 4, 7, 8, 8, 16, 100, 255, 256, 300, 1000]


def pick(rng, things):
    return things[int(rng.integers(len(things)))]


def some_bytes(rng, size, item_size):
    """Typical contents: noise, a ramp, one item, zeros, and a mixture."""
    how = rng.integers(5)
    if how == 0:
        return rng.bytes(size)
    if how == 1:
        return (rng.bytes(item_size) * (size // item_size + 1))[:size]
    if how == 2:
        return bytes(size)
    ramp = (np.arange(size) // item_size).astype("u1")
    if how == 3:
        ramp[np.arange(size) % item_size > 0] = 0
    else:
        ramp[:size // 2] = np.frombuffer(rng.bytes(size // 2), "u1")
    return ramp.tobytes()


def parameters(rng, item_size):
    filters = list(pick(rng, FILTERS))
    if item_size > 127 and blosc2.Filter.BYTEDELTA in filters:  # not supported
        filters = [blosc2.Filter.SHUFFLE]
    filters += [blosc2.Filter.NOFILTER] * (6 - len(filters))
    codec = pick(rng, CODECS)
    use_dict = bool(codec is blosc2.Codec.ZSTD and rng.integers(4) == 0)
    return blosc2.CParams(codec=codec, clevel=int(rng.integers(0, 10)), typesize=item_size,
                          use_dict=use_dict, filters=filters, filters_meta=[0] * 6,
                          splitmode=pick(rng, list(blosc2.SplitMode)),
                          nthreads=int(rng.integers(1, 3)),
                          blocksize=int(rng.integers(1, 9)) * item_size * 16
                          if rng.integers(2) else 0)


def fill_special(rng, schunk, item_size, chunk_items):
    """Chunks of one value, with ordinary chunks in place of some."""
    n = int(rng.integers(1, 6 * chunk_items))
    kinds = [blosc2.SpecialValue.ZERO, blosc2.SpecialValue.UNINIT]
    if item_size in (4, 8):
        kinds.append(blosc2.SpecialValue.NAN)
    schunk.fill_special(n, pick(rng, kinds))


def make(rng, folder, number):
    """A frame's path, the bytes that SChunk reads, and a description; None if SChunk cannot
    read what it wrote."""
    item_size = pick(rng, ITEM_SIZES)
    chunk_items = int(rng.integers(1, pick(rng, [4, 40, 400, 3000])))
    contiguous = bool(rng.integers(3))
    path = os.path.join(folder, f"{number}.b2{'frame' if contiguous else 'd'}")
    meta = {"mine": {"a": 1}} if rng.integers(3) == 0 else None
    schunk = blosc2.SChunk(chunksize=chunk_items * item_size, urlpath=path, mode="w",
                           contiguous=contiguous, meta=meta,
                           cparams=parameters(rng, item_size))
    special = rng.integers(4) == 0
    if special:
        fill_special(rng, schunk, item_size, chunk_items)
    else:
        for _ in range(int(rng.integers(0, 6))):
            schunk.append_data(some_bytes(rng, chunk_items * item_size, item_size))
        if rng.integers(3):
            n = int(rng.integers(1, chunk_items + 1))
            schunk.append_data(some_bytes(rng, n * item_size, item_size))
    for i in range(schunk.nchunks - 1):
        if rng.integers(5) == 0:
            schunk.update_data(i, some_bytes(rng, chunk_items * item_size, item_size), True)
    if rng.integers(3) == 0:
        schunk.vlmeta["of mine"] = [1, "two", number]
    about = (f"frame {number}: items of {item_size}, {chunk_items} in a chunk, "
             f"{schunk.nchunks} chunks, {schunk.cparams.codec} {schunk.cparams.filters} "
             f"{schunk.cparams.splitmode}, blocks of {schunk.blocksize}, special {special}")
    try:
        data = b"".join(schunk.decompress_chunk(i) for i in range(schunk.nchunks))
    except RuntimeError:  # a chunk whose header promises a dictionary that is missing
        assert schunk.cparams.use_dict, about
        return None
    if special:  # items that were never written are undefined, and zeros for us
        data = clear_uninit(schunk, data)
    assert len(data) == schunk.nbytes, about
    return path, schunk, data, about


def clear_uninit(schunk, data):
    data = bytearray(data)
    for info in schunk.iterchunks_info():
        if info.special is blosc2.SpecialValue.UNINIT:
            start = info.nchunk * schunk.chunksize
            data[start:start + schunk.chunksize] = bytes(len(data[start:start +
                                                                  schunk.chunksize]))
    return bytes(data)


def some_boxes(rng, n):
    boxes = []
    for _ in range(4):
        start = int(rng.integers(0, n + 1))
        boxes.append((slice(start, int(rng.integers(start, n + 1))),))
    return boxes


def check(helper, rng, path, schunk, data, about):
    size = schunk.typesize
    n = len(data) // size
    boxes = some_boxes(rng, n)
    places = [{}, {"frame": 1}, {"frame": 2}] if os.path.isfile(path) else [{}]
    for place in places:
        info, got = helper.read(path, boxes, **place)
        assert info["shape"] == [n], f"{about}: shape {info['shape']}"
        assert info["item_size"] == size and info["dtype"] == f"|V{size}", about
        if schunk.nchunks > 0:
            assert info["chunks"] == [schunk.chunksize // size], about
        assert info["damages"] == 0, f"{about}: verify finds {info['damages']} damages"
        assert got[0] == data, f"{about}, {place}: other items"
        for (box,), piece in zip(boxes, got[1:]):
            assert piece == data[box.start * size:box.stop * size], f"{about}: box {box}"


def caterva(*words, status=0):
    run = subprocess.run([os.environ["CATERVA_CLI"], *words], capture_output=True)
    assert run.returncode == status, f"{words}: {run.returncode} {run.stderr.decode()}"
    return run.stdout.decode() + run.stderr.decode()


def stored(path):
    """The bytes of a file, or of all files of a directory except the lock."""
    paths = [path]
    if os.path.isdir(path):
        paths = [os.path.join(path, name) for name in sorted(os.listdir(path))
                 if not name.startswith(".")]
    found = []
    for name in paths:
        with open(name, "rb") as file:
            found.append((name, file.read()))
    return found


def check_commands(folder, path, data, about):
    """repack to another partition, changed items, and a file that python-blosc2 opens as an
    array."""
    array = os.path.join(folder, "converted.b2nd")
    before = stored(path)
    caterva("info", path)
    assert "needs numbers" in caterva("stats", path, status=5), about
    caterva("verify", path)
    caterva("convert", path, array, "-f")
    if len(data) > 0:
        opened = blosc2.open(array)
        assert np.asarray(opened[...]).tobytes() == data, f"{about}: convert"
    for words in (("resize", path, "7"), ("seal", path), ("compact", path),
                  ("repair", path), ("attr", "set", path, "a", "1")):
        said = caterva(*words, status=5)
        assert "without the b2nd" in said, f"{about}: {words}: {said}"
    assert stored(path) == before, f"{about}: changed"


def check_refusals(helper, folder):
    """Each object that python-blosc2 stores in a frame, and one that only looks like it."""
    def refused(path, name):
        try:
            helper.read(path)
        except HelperError as error:
            assert error.status == "CATERVA_EUNSUPPORTED", f"{name}: {error}"
            assert name in error.message, f"{name}: {error}"
            return
        raise AssertionError(f"{name} was read as an array")

    number = 0
    for name in ("b2o", "LazyArray", "proxy-source"):
        path = os.path.join(folder, f"{name}.b2nd")
        meta = {name: {"kind": "lazyexpr", "version": 1}} if name == "b2o" else {name: 1}
        blosc2.zeros((10,), dtype="i8", urlpath=path, mode="w", meta=meta)
        refused(path, name)
        number += 1
    for name in ("b2tree", "b2dict", "b2embed", "b2remote_store", "vlarray", "batcharray",
                 "listarray", "__pack_tensor__", "b2o"):
        path = os.path.join(folder, f"{name}.b2frame")
        blosc2.SChunk(chunksize=80, data=bytes(80), urlpath=path, mode="w",
                      meta={name: {"version": 1}}, cparams={"typesize": 8})
        refused(path, name)
        number += 1
    path = os.path.join(folder, "tensor.b2frame")
    blosc2.save_tensor(np.arange(100.0), path, mode="w")
    refused(path, "__pack_tensor__")
    path = os.path.join(folder, "expression.b2nd")
    operand = blosc2.asarray(np.arange(10), urlpath=os.path.join(folder, "o.b2nd"), mode="w")
    (operand + 1).save(urlpath=path)
    refused(path, "lazyexpr")
    for leaf, name in (("a tree", "b2tree"), ("a dictionary", "b2dict")):
        store = blosc2.TreeStore if name == "b2tree" else blosc2.DictStore
        with store(os.path.join(folder, f"{name}.b2d"), mode="w") as made:
            made["/x"] = np.arange(10)
        refused(os.path.join(folder, f"{name}.b2d", "embed.b2e"), name)
    return number + 4


def main():
    numbers = [word for word in sys.argv[1:] if word[0].isdigit()]
    n_frames = int(numbers[0]) if numbers else 150
    seed = int(numbers[1], 0) if len(numbers) > 1 else int(time.time())
    print(f"{n_frames} frames, seed {seed}", flush=True)
    rng = np.random.default_rng(seed)
    with tempfile.TemporaryDirectory(prefix="caterva-plain-") as folder:
        helper = Helper(folder)
        n_read = 0
        for number in range(n_frames):
            made = make(rng, folder, number)
            if made is None:
                continue
            path, schunk, data, about = made
            n_read += 1
            check(helper, rng, path, schunk, data, about)
            if number % 25 == 0:
                check_commands(folder, path, data, about)
        n_refused = check_refusals(helper, folder)
        helper.close()
    assert n_read > n_frames // 2
    print(f"{n_read} frames read right, {n_refused} objects refused by name")


if __name__ == "__main__":
    main()

"""What the tests of selections and of views share: the helper program tool_select, and random
selections and buffers, as its words and as NumPy's."""

import os
import subprocess
import sys

from tool_driver import skip

try:
    import numpy as np
except ImportError as missing:
    skip(f"{missing}; it runs in the virtual environment of scripts/bootstrap --test")

MAX_ITEMS = 3000
LARGE_ITEMS = 300000  # now and then: enough for several threads
UNTOUCHED = 0xA5


class Refused(Exception):
    pass


class Tool:
    def __init__(self):
        folder = os.environ.get("CATERVA_HELPER_DIR")
        if folder is None:
            sys.exit("set CATERVA_HELPER_DIR to the tests folder of the build")
        self.process = subprocess.Popen([os.path.join(folder, "compat", "tool_select")],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.said = []  # to repeat a failure

    def ask(self, *words, data=b""):
        self.said.append(" ".join(map(str, words)))
        self.process.stdin.write(self.said[-1].encode() + b"\n" + data)
        self.process.stdin.flush()
        verdict, _, rest = self.process.stdout.readline().decode().strip().partition(" ")
        if verdict != "ok":
            raise Refused(rest)
        return self.process.stdout.read(int(rest))

    def close(self):
        self.process.stdin.close()
        assert self.process.wait() == 0, "the helper failed"


# ---- Random selections: the helper's words, and NumPy's index ---------------


def bits(mask):
    return "".join("1" if value else "0" for value in mask.ravel())


def random_slice(rng, length):
    def bound():
        return None if rng.random() < 0.3 else int(rng.integers(-length - 2, length + 3))

    step = int(rng.choice([1, 1, 2, 3, 5, 17, -1, -2, -3, -7]))
    piece = slice(bound(), bound(), step)
    shown = ["o" if b is None else b for b in (piece.start, piece.stop)]
    return ["s", *shown, step], np.arange(length)[piece]


def random_list(rng, length):
    n = 0 if length == 0 else int(rng.integers(0, 8)) if rng.random() < 0.9 else 70
    indices = rng.integers(-length, length, n) if n else np.zeros(0, np.int64)
    if rng.random() < 0.3:
        indices = np.sort(indices)
    return ["l", n, *indices], indices


def random_axis(rng, length):
    """The words, the indices of the selected items, and whether the axis is dropped."""
    kind = rng.integers(0, 6)
    if kind == 0 and length > 0:
        index = int(rng.integers(-length, length))
        return ["i", index], np.array([index]), True
    if kind == 1:
        mask = rng.random(length) < rng.choice([0.0, 0.1, 0.5, 1.0])
        return ["m", length, bits(mask)], np.flatnonzero(mask), False
    if kind == 2:
        return (*random_list(rng, length), False)
    if kind == 3:
        return ["a"], np.arange(length), False
    return (*random_slice(rng, length), False)


def pick_axes(a, taken, dropped):
    """NumPy's index for one list of items per axis, and the resulting shape with dropped axes
    removed."""
    index = np.ix_(*(np.asarray(t, np.int64) for t in taken)) if taken else ()
    return index, tuple(len(t) for t, d in zip(taken, dropped) if not d)


def select_axes(rng, a):
    n = a.ndim if rng.random() < 0.7 else int(rng.integers(0, a.ndim + 1))
    words, taken, dropped = ["axes", n], [], []
    for d in range(a.ndim):
        if d < n:
            w, t, gone = random_axis(rng, a.shape[d])
            words += w
        else:
            t, gone = np.arange(a.shape[d]), False
        taken.append(t)
        dropped.append(gone)
    return (words, *pick_axes(a, taken, dropped))


def select_box(rng, a):
    start = [int(rng.integers(0, n + 1)) for n in a.shape]
    stop = [int(rng.integers(s, n + 1)) for s, n in zip(start, a.shape)]
    taken = [np.arange(s, e) for s, e in zip(start, stop)]
    return (["box", a.ndim, *start, *stop], *pick_axes(a, taken, [False] * a.ndim))


def select_points(rng, a):
    n = 0 if a.size == 0 else int(rng.choice([0, 1, 5, 40, 300]))
    points = np.stack([rng.integers(-s, s, n) for s in a.shape], axis=1) if a.ndim and n else \
        np.zeros((n, a.ndim), np.int64)
    if n > 1 and rng.random() < 0.5:  # repeats, which matter for writes
        points[rng.integers(0, n, n // 2)] = points[0]
    words = ["points", n, a.ndim, *points.ravel()]
    if a.ndim == 0:
        return words, (np.zeros(n, np.int64),), (n,)
    return words, tuple(points[:, d] for d in range(a.ndim)), (n,)


def select_mask(rng, a):
    mask = rng.random(a.shape) < rng.choice([0.0, 0.02, 0.3, 0.9, 1.0])
    mask = np.asarray(mask)
    if a.ndim and a.size and rng.random() < 0.3:  # whole rows, and none
        mask[..., :] = mask[..., :1]
    return ["mask", a.size, bits(mask)], mask, (int(mask.sum()),)


def random_selection(rng, a):
    kind = rng.random()
    if kind < 0.05:
        return (["none"], *pick_axes(a, [np.arange(n) for n in a.shape], [False] * a.ndim))
    if kind < 0.15:
        return select_box(rng, a)
    if kind < 0.65:
        return select_axes(rng, a)
    return (select_points if kind < 0.82 else select_mask)(rng, a)


# ---- Random buffers ----------------------------------------------------------


class Buffer:
    """Memory that contains an array of `shape`: `view`."""

    def __init__(self, rng, shape, dtype):
        self.dtype = dtype
        size = dtype.itemsize * int(np.prod(shape, dtype=np.int64))
        self.words = [size, 0, "c"]
        self.memory = np.full(size, UNTOUCHED, np.uint8)
        self.view = self.memory.view(dtype).reshape(shape)
        if rng.random() < 0.5 and all(shape):
            self.scatter(rng, shape)

    def scatter(self, rng, shape):
        """Axes in any order, with gaps, forwards or backwards."""
        size = self.dtype.itemsize
        strides, stride = [0] * len(shape), size + int(rng.choice([0, 0, 3]))
        for d in rng.permutation(len(shape)):
            strides[d] = stride
            stride *= shape[d] + int(rng.choice([0, 0, 1]))
        signs = [int(rng.choice([1, 1, -1])) for _ in shape]
        reach = [s * (n - 1) for s, n in zip(strides, shape)]
        total = sum(reach) + size
        pos = sum(r for r, sign in zip(reach, signs) if sign < 0)
        strides = [s * sign for s, sign in zip(strides, signs)]
        self.words = [total, pos, len(shape), *shape, *strides]
        self.memory = np.full(total, UNTOUCHED, np.uint8)
        self.view = np.ndarray(shape, self.dtype, self.memory.data, pos, strides)


def random_source(rng, shape, dtype):
    """A buffer for writing, possibly one that NumPy broadcasts."""
    if rng.random() < 0.3:
        shape = tuple(1 if rng.random() < 0.5 else n for n in shape)
        shape = shape[int(rng.integers(0, len(shape) + 1)):]
        buffer = Buffer(rng, shape, dtype)
        if buffer.words[2] == "c":  # its shape is no longer the selection's
            strides = [int(s) for s in np.ndarray(shape, dtype).strides]
            buffer.words = [*buffer.words[:2], len(shape), *shape, *strides]
    else:
        buffer = Buffer(rng, shape, dtype)
    buffer.memory[:] = rng.integers(0, 256, buffer.memory.size, np.uint8)
    return buffer


# ---- Arrays ----------------------------------------------------------------------


def random_numbers(rng, shape, dtype):
    """Integers of the whole range; floats with fractions, some 0, some too large for small
    integers."""
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(dtype)
    if dtype.kind in "iu":
        most = np.iinfo(dtype)
        return rng.integers(most.min, most.max, shape, dtype.newbyteorder("="),
                            endpoint=True).astype(dtype)
    values = rng.normal(0, 20, shape) * np.where(rng.random(shape) < 0.1, 1e4, 1)
    if dtype.itemsize == 2 and dtype.kind == "f":
        values = np.clip(values, -65000, 65000)
    if dtype.kind == "c":
        values = values + 1j * rng.normal(0, 20, shape)
    return np.asarray(np.where(rng.random(shape) < 0.1, 0, values)).astype(dtype)


def random_array(rng, tool, dtype=None):
    large = rng.random() < 0.01
    ndim = int(rng.integers(1, 4) if large else rng.integers(0, 7))
    most = max(2, int((LARGE_ITEMS if large else MAX_ITEMS) ** (1 / max(ndim, 1))))
    shape = [int(rng.integers(most // 2 if large else 1, most + 1)) for _ in range(ndim)]
    if ndim and rng.random() < 0.05:
        shape[int(rng.integers(0, ndim))] = 0
    chunks = [int(rng.integers(1, n + 3)) for n in shape]
    blocks = [int(rng.integers(1, c + 1)) for c in chunks]
    if dtype is None:
        item_size = int(rng.choice([1, 2, 3, 4, 8, 16, 24]))
        data = rng.integers(0, 256, (*shape, item_size), np.uint8)
        a = data.view(np.dtype(f"V{item_size}")).reshape(shape)
    else:
        item_size = dtype.itemsize
        a = random_numbers(rng, shape, dtype)
    if rng.random() < 0.15 and a.size:
        a[...] = a.reshape(-1)[0]  # special chunks
    tool.ask("array", item_size, ndim, *shape, *chunks, *blocks, int(rng.integers(0, 3)),
             data=a.tobytes())
    return a, (shape, chunks, blocks, item_size)


def selected(a, index, shape):
    if isinstance(index, np.ndarray) and a.ndim == 0:  # a mask
        return a.reshape(1)[index.reshape(1)]
    if a.ndim == 0 and index != ():
        return a.reshape(1)[index]
    return np.asarray(a[index]).reshape(shape)


def assign(a, index, shape, values):
    """a[index] = values, item by item in C order, since NumPy leaves the order of repeats
    undefined."""
    values = np.broadcast_to(values, shape)
    if a.size > MAX_ITEMS and len(shape) == a.ndim:  # without a dropped axis: as NumPy does it
        a[index] = values
        return
    places = np.arange(a.size).reshape(a.shape)
    flat = a.reshape(-1)
    for place, value in zip(selected(places, index, shape).ravel(), values.ravel()):
        flat[place] = value

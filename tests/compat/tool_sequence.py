"""The NumPy side of the sequence tests: random arrays, their states, and how each change
affects a state.

Items are kept as raw bytes (dtype V<n>), so that the meaning of a dtype does not matter and
padding is compared. A state is immutable: a change returns a new one."""

import dataclasses
import math
from dataclasses import dataclass, field

import msgpack
import numpy as np

from tool_driver import box_shape, format_box

DTYPES = ["|u1", "<i2", ">i2", "<i4", "<f4", "<f8", "<i8", "<M8[ns]", "<c16", "|S3", "|S17",
          "|V17", "|S300", "[('a', '<f4'), ('b', '<f8')]",
          "[('x', '|u1'), ('y', '>i2', (3,)), ('z', '|S293')]"]
BLOSCLZ, LZ4, LZ4HC, ZLIB, ZSTD = 0, 1, 2, 4, 5
SHUFFLE, BITSHUFFLE, DELTA, BYTEDELTA = 1, 2, 3, 35
FILTERS = [[], [SHUFFLE], [SHUFFLE], [BITSHUFFLE], [SHUFFLE, BYTEDELTA], [DELTA],
           [DELTA, SHUFFLE]]
MOST_CHUNKS, MOST_BLOCKS = 60, 64
MOST_CHUNK_BYTES, MOST_BLOSCLZ_BLOCK = 1 << 20, 8 << 20
ATTRIBUTES = ["note", "unit", "a", "an attribute's name of 31 bytes", "long"]


@dataclass(frozen=True)
class Spec:
    """The properties of an array that never change."""
    dtype: np.dtype
    shape: tuple
    chunks: tuple
    blocks: tuple
    codec: int
    level: int
    use_dict: int
    filters: list
    fill: str            # zeros, nan, value
    fill_item: bytes
    layout: str          # contiguous, sparse
    kind: str            # b2nd, caterva
    meta: bytes  # of the user's metalayer; empty: none

    @property
    def most_items(self):
        return max(8, min(2500, 24000 // self.dtype.itemsize))

    @property
    def whole_chunks_only(self):
        """b2nd cannot read single blocks of a chunk with the delta filter or a dictionary, and
        so cannot change a part of a chunk either."""
        return DELTA in self.filters or self.use_dict == 1

    def words(self):
        def comma(numbers):
            return ",".join(map(str, numbers)) or None
        words = {"shape": comma(self.shape), "chunks": comma(self.chunks),
                 "blocks": comma(self.blocks), "codec": self.codec, "level": self.level,
                 "use_dict": self.use_dict, "filters": comma(self.filters),
                 "layout": self.layout, "kind": self.kind, "item_size": self.dtype.itemsize,
                 "fill": {"zeros": 0, "nan": 2, "value": 3}[self.fill]}
        if self.kind == "b2nd":
            words["dtype"] = str(self.dtype) if self.dtype.fields else self.dtype.str
        if self.fill == "value":
            words["fill_value"] = self.fill_item.hex()
        if self.meta:
            words["meta"] = f"user:{self.meta.hex()}"
        return words


@dataclass(frozen=True)
class State:
    """The contents of an array: items, attributes (packed) and the user's metalayer."""
    items: np.ndarray
    attributes: dict = field(default_factory=dict)
    meta: bytes = b""


@dataclass(frozen=True)
class Change:
    """A request to the helper, and the state after it."""
    op: str
    words: dict
    data: bytes
    after: State


def with_items(state, items):
    return dataclasses.replace(state, items=items)


# ---- Random arrays ---------------------------------------------------------------

def coarsened(shape, tile, rng, most):
    """`tile` enlarged until `shape` has at most `most` of them."""
    tile = list(tile)
    while math.prod(-(-n // t) for n, t in zip(shape, tile)) > most:
        widest = max(range(len(shape)), key=lambda i: -(-shape[i] // tile[i]))
        tile[widest] += 1 + int(rng.integers(0, tile[widest] + 1))
    return tuple(tile)


def random_shape(rng, most_items):
    ndim = int(rng.choice([0, 1, 2, 3, 4, 5, 8, 15],
                          p=[0.07, 0.25, 0.28, 0.2, 0.12, 0.04, 0.02, 0.02]))
    edge = max(2, round(most_items ** (1 / max(ndim, 1))))
    shape = [int(n) for n in rng.integers(1, edge + 1, ndim)]
    for d in reversed(range(ndim)):  # of 15 axes most have length 1 or 2
        if math.prod(shape) > most_items:
            shape[d] = 1
    if ndim and rng.random() < 0.1:
        shape[rng.integers(ndim)] = 0
    return tuple(shape)


def random_spec(rng):
    dtype = DTYPES[rng.integers(len(DTYPES))]
    dtype = np.dtype(eval(dtype) if dtype.startswith("[") else dtype)
    codec = int(rng.choice([BLOSCLZ, LZ4, LZ4, LZ4HC, ZLIB, ZSTD, ZSTD]))
    fill = str(rng.choice(["zeros", "value", "nan"] if dtype.kind == "f" else ["zeros", "value"]))
    fill_item = {"zeros": bytes(dtype.itemsize), "value": rng.bytes(dtype.itemsize),
                 "nan": np.full((), np.nan, dtype).tobytes() if dtype.kind == "f" else b""}[fill]
    spec = Spec(dtype, (), (), (), codec, int(rng.integers(0, 10)),
                int(codec == ZSTD and rng.random() < 0.2),
                FILTERS[rng.integers(len(FILTERS))], fill, fill_item,
                "sparse" if rng.random() < 0.3 else "contiguous",
                "caterva" if rng.random() < 0.12 else "b2nd",
                msgpack.packb(rng.bytes(int(rng.integers(1, 200)))) if rng.random() < 0.3 else b"")
    if dtype.itemsize > 127 and BYTEDELTA in spec.filters:  # not supported by python-blosc2
        spec = dataclasses.replace(spec, filters=[SHUFFLE])
    shape = random_shape(rng, spec.most_items)
    chunks = [int(rng.integers(1, n + 3)) for n in shape]
    chunks = coarsened(shape, chunks, rng, MOST_CHUNKS)
    blocks = [int(rng.integers(1, n + 1)) for n in chunks]
    blocks = tuple(map(min, coarsened(chunks, blocks, rng, MOST_BLOCKS), chunks))
    if math.prod(chunks) * spec.dtype.itemsize > MOST_CHUNK_BYTES:  # many axes, large items
        chunks = tuple(min(c, max(n, 1)) for c, n in zip(chunks, shape))
        blocks = tuple(map(min, blocks, chunks))
    if math.prod(blocks) * spec.dtype.itemsize > MOST_BLOSCLZ_BLOCK and codec == BLOSCLZ:
        spec = dataclasses.replace(spec, codec=LZ4)
    return dataclasses.replace(spec, shape=shape, chunks=chunks, blocks=blocks)


def filled(spec, shape):
    items = np.zeros(shape, f"V{spec.dtype.itemsize}")
    items[...] = np.void(spec.fill_item)
    return items


def first_state(spec):
    return State(filled(spec, spec.shape), {}, spec.meta)


def contents(spec, shape, rng):
    """Items as in practice: noise, little noise, a ramp, one item, the fill."""
    size, n = spec.dtype.itemsize, math.prod(shape)
    kind = rng.integers(5)
    if kind == 0:
        data = rng.bytes(n * size)
    elif kind == 1:
        data = rng.integers(0, 4, n * size, dtype=np.uint8).tobytes()
    elif kind == 2:
        data = (np.arange(n * size, dtype=np.uint32) // size).astype(np.uint8).tobytes()
    else:
        data = (rng.bytes(size) if kind == 3 else spec.fill_item) * n
    return np.frombuffer(data, f"V{size}").reshape(shape)


def random_box(shape, rng):
    """A box within the shape: occasionally a point, the whole array, or nothing."""
    kind = rng.random()
    box = []
    for n in shape:
        start, stop = sorted(int(i) for i in rng.integers(0, n + 1, 2))
        if kind < 0.15 and n > 0:
            start = int(rng.integers(0, n))
            stop = start + 1
        elif kind < 0.3:
            start, stop = 0, n
        elif start == stop and rng.random() < 0.9:  # most are not empty
            start, stop = max(0, start - 1), min(n, stop + 1)
        box.append(slice(start, stop))
    return tuple(box)


# ---- Changes: (spec, state, rng) -> Change, or None where there is nothing to do ----

def may_have_shape(spec, shape):
    chunks = math.prod(-(-n // c) for n, c in zip(shape, spec.chunks))
    return math.prod(shape) <= 2 * spec.most_items and chunks <= 4 * MOST_CHUNKS


def write(spec, state, rng):
    box = random_box(state.items.shape, rng)
    data = contents(spec, box_shape(box), rng)
    items = state.items.copy()
    items[box or ...] = data
    return Change("write", {"box": format_box(box)}, data.tobytes(), with_items(state, items))


def slab(spec, state, rng):
    """A random axis, how many items to add along it, and their shape."""
    axis = int(rng.integers(state.items.ndim))
    shape = list(state.items.shape)
    n = int(rng.integers(0, 2 * spec.chunks[axis] + 2))
    if rng.random() < 0.3:
        n = spec.chunks[axis] * int(rng.integers(1, 3))
    shape[axis] += n
    if not may_have_shape(spec, shape):
        n = 1
    shape[axis] = n
    return axis, n, tuple(shape)


def append(spec, state, rng):
    if state.items.ndim == 0:
        return None
    axis, n, shape = slab(spec, state, rng)
    data = contents(spec, shape, rng)
    items = np.concatenate([state.items, data], axis)
    return Change("append", {"axis": axis, "n": n}, data.tobytes(), with_items(state, items))


def insert(spec, state, rng):
    if state.items.ndim == 0:
        return None
    axis, n, shape = slab(spec, state, rng)
    at = int(rng.integers(0, state.items.shape[axis] + 1))
    if rng.random() < 0.4:
        at -= at % spec.chunks[axis]
    with_data = rng.random() < 0.6
    data = contents(spec, shape, rng) if with_data else filled(spec, shape)
    before, behind = np.split(state.items, [at], axis)
    items = np.concatenate([before, data, behind], axis)
    return Change("insert", {"axis": axis, "at": at, "n": n},
                  data.tobytes() if with_data else None, with_items(state, items))


def remove(spec, state, rng):
    if state.items.ndim == 0:
        return None
    axis = int(rng.integers(state.items.ndim))
    start, stop = sorted(int(i) for i in rng.integers(0, state.items.shape[axis] + 1, 2))
    if rng.random() < 0.4:
        start -= start % spec.chunks[axis]
        stop -= stop % spec.chunks[axis]
    items = np.delete(state.items, slice(start, stop), axis)
    return Change("remove", {"axis": axis, "start": start, "stop": stop}, None,
                  with_items(state, items))


def resized(spec, items, shape):
    result = filled(spec, shape)
    kept = tuple(slice(0, min(a, b)) for a, b in zip(shape, items.shape))
    result[kept or ...] = items[kept or ...]
    return result


def resize(spec, state, rng):
    shape = []
    for n, chunk in zip(state.items.shape, spec.chunks):
        change = rng.random()
        if change < 0.35:
            n = int(rng.integers(0, n + 1))  # often only one axis
        elif change < 0.7:
            n += int(rng.integers(0, 2 * chunk + 2))
        shape.append(n)
    if state.items.ndim == 0 or not may_have_shape(spec, shape):
        return None
    return Change("resize", {"shape": ",".join(map(str, shape))}, None,
                  with_items(state, resized(spec, state.items, shape)))


def attr_set(spec, state, rng):
    name = ATTRIBUTES[rng.integers(len(ATTRIBUTES))]
    value = msgpack.packb([int(rng.integers(1000)), "metre", None,
                           rng.bytes(int(rng.integers(8000 if name == "long" else 30)))])
    return Change("attr_set", {"name": name, "value": value.hex()}, None,
                  dataclasses.replace(state, attributes={**state.attributes, name: value}))


def attr_remove(spec, state, rng):
    if not state.attributes:
        return None
    name = sorted(state.attributes)[rng.integers(len(state.attributes))]
    left = {k: v for k, v in state.attributes.items() if k != name}
    return Change("attr_remove", {"name": name}, None,
                  dataclasses.replace(state, attributes=left))


def meta_update(spec, state, rng):
    if not spec.meta:
        return None
    value = msgpack.packb(rng.bytes(len(msgpack.unpackb(spec.meta))))
    return Change("meta_update", {"name": "user", "value": value.hex()}, None,
                  dataclasses.replace(state, meta=value))


CHANGES = [write] * 6 + [append] * 2 + [insert] * 2 + [remove] * 2 + [resize] * 2 + [
    attr_set, attr_remove, meta_update]


def random_change(spec, state, rng):
    while True:
        change = CHANGES[rng.integers(len(CHANGES))](spec, state, rng)
        if change is not None:
            return change

"""The matrix of arrays that both sides write and both sides read."""

import itertools
import math
from dataclasses import dataclass, field

import blosc2
import numpy as np

Codec, Filter, Split = blosc2.Codec, blosc2.Filter, blosc2.SplitMode

DTYPES = ["?", "|i1", "|u1", "<i2", "<u2", "<i4", "<u4", "<i8", "<u8", ">i2", ">u4", ">i8",
          "<f2", "<f4", "<f8", ">f4", ">f8", "<f16", "<c8", "<c16", ">c16", "|S1", "|S7", "|S300",
          "<U1", "<U6", ">U3", "<U100", "<M8[ns]", "<M8[D]", "<M8[25s]", "<m8[us]", ">M8[s]",
          "|V5", "|V260",
          [("a", "<f4"), ("b", "<f8")],
          [("x", "|u1"), ("y", ">i2", (3,)), ("z", "|S3")],
          [("p", [("q", "<i4"), ("r", "<U2")]), ("s", "<c8")]]

# shape, chunks, blocks: odd partitions, sizes that are not multiples, chunks
# larger than the shape, one item, one chunk, many chunks.
GEOMETRIES = {
    0: [((), (), ())],
    1: [((1,), (1,), (1,)), ((100,), (100,), (100,)), ((1000,), (170,), (33,)),
        ((7,), (20,), (6,)), ((5000,), (13,), (13,))],
    2: [((5, 5), (4, 3), (3, 2)), ((37, 53), (16, 20), (5, 7)), ((1, 900), (1, 100), (1, 100)),
        ((64, 64), (32, 32), (16, 16)), ((10, 3), (25, 9), (25, 2))],
    3: [((10, 11, 12), (4, 5, 6), (3, 2, 6)), ((40, 1, 17), (7, 1, 17), (7, 1, 4)),
        ((20, 20, 20), (20, 20, 20), (7, 7, 7)), ((2, 3, 50), (1, 1, 9), (1, 1, 2))],
    4: [((6, 11, 9, 14), (4, 5, 9, 7), (2, 5, 3, 7)), ((3, 3, 3, 3), (2, 2, 2, 2), (1, 2, 1, 2)),
        ((1, 1, 40, 20), (1, 1, 16, 8), (1, 1, 5, 8))],
    5: [((4, 5, 3, 6, 2), (3, 2, 3, 4, 2), (2, 2, 2, 3, 1)), ((2, 2, 2, 2, 40), (1, 2, 1, 2, 17),
                                                             (1, 1, 1, 2, 5))],
    6: [((3, 4, 2, 5, 3, 2), (2, 3, 2, 2, 3, 1), (1, 2, 2, 2, 2, 1)),
        ((2, 1, 2, 1, 2, 30), (2, 1, 1, 1, 2, 13), (1, 1, 1, 1, 2, 13))],
    7: [((2, 3, 2, 1, 2, 3, 4), (1, 2, 2, 1, 2, 2, 3), (1, 1, 2, 1, 1, 2, 2))],
    8: [((2, 2, 2, 3, 1, 2, 2, 3), (2, 1, 2, 2, 1, 2, 1, 2), (1, 1, 2, 1, 1, 2, 1, 1))],
    15: [((2,) * 11 + (1,) * 3 + (3,), (2, 1) * 7 + (2,), (1,) * 14 + (2,)),
         ((1,) * 12 + (3, 4, 5), (1,) * 12 + (2, 3, 5), (1,) * 12 + (2, 2, 2))],
}


@dataclass
class Case:
    name: str
    dtype: object = "<i4"
    geometry: tuple = ((37, 53), (16, 20), (5, 7))
    content: str = "mixed"      # mixed, noise, ramp, smooth, zeros, constant
    codec: object = Codec.ZSTD
    codec_meta: int = 0
    level: int = 5
    filters: list = field(default_factory=lambda: [Filter.SHUFFLE])
    filters_meta: list = field(default_factory=lambda: [0])
    use_dict: bool = False
    splitmode: object = Split.AUTO_SPLIT
    nthreads: int = 1
    layout: str = "contiguous"  # or sparse
    place: str = "disk"         # or memory: the frame's bytes only
    fill: str = ""              # "", zeros, full, nans, uninit: then a few boxes
    attributes: dict = field(default_factory=dict)
    meta: dict = field(default_factory=dict)
    lossy: bool = False
    edits: tuple = ()  # changes by python-blosc2 before we read
    offset: int = 0  # position of the frame in its file
    kind: str = "b2nd"          # or caterva
    we_write: bool = True

    @property
    def numpy_dtype(self):
        return np.dtype(self.dtype)

    @property
    def shape(self):
        return self.geometry[0]


def contents(case, shape, rng):
    """An array of the case's dtype with valid items."""
    dtype = case.numpy_dtype
    n = math.prod(shape)
    kind = case.content
    if kind == "mixed":
        kind = ["noise", "ramp", "smooth", "constant"][int(rng.integers(4))]
    if case.fill == "" and kind == "zeros":
        return np.zeros(shape, dtype)
    if dtype.kind == "f" and kind in ("ramp", "smooth"):
        wave = np.sin(np.arange(n) / 17.0) * 100 + np.arange(n) * 0.25
        return wave.astype(dtype).reshape(shape)
    if dtype.kind in "iu" and kind in ("ramp", "smooth"):
        limit = 1 << (8 * min(dtype.itemsize, 4) - 1)
        return (np.arange(n) * 3 % limit).astype(dtype).reshape(shape)
    if dtype.kind == "?" or dtype.kind == "b":
        return rng.integers(0, 2, n).astype(dtype).reshape(shape)
    if dtype.kind == "U":
        letters = np.array(list("aZ09 \u00e9\u4e2d\U0001f600"))
        words = rng.choice(letters, (n, dtype.itemsize // 4))
        return np.array(["".join(w) for w in words], dtype).reshape(shape)
    items = 1 if kind == "constant" else n
    data = np.frombuffer(rng.bytes(items * dtype.itemsize), np.uint8).copy()
    if has_text(dtype):
        data[:] = 0
        data[::4] = rng.integers(48, 90, len(data[::4]))
        return np.resize(data, n * dtype.itemsize).view(dtype).reshape(shape)
    return np.resize(data, n * dtype.itemsize).view(dtype).reshape(shape)


def has_text(dtype):
    """A unicode field inside a structure: random bytes may not be characters."""
    if dtype.subdtype is not None:
        return has_text(dtype.subdtype[0])
    if dtype.fields is None:
        return dtype.kind == "U"
    return any(has_text(value[0]) for value in dtype.fields.values())


def some_boxes(shape, rng, count):
    """Random boxes with at least one item, if the shape has any."""
    boxes = []
    for _ in range(count if 0 not in shape else 0):
        ends = [np.sort(rng.choice(n + 1, 2, replace=False)) for n in shape]
        boxes.append(tuple(slice(int(a), int(b)) for a, b in ends))
    return boxes


def partition_cases():
    dtypes = itertools.cycle(["<f4", "<i8", "|u1", "<i2", ">f8", "|S7", "<c16", "<U6", "|S300"])
    places = itertools.cycle([("disk", "contiguous"), ("memory", "contiguous"),
                              ("disk", "sparse")])
    for ndim, geometries in GEOMETRIES.items():
        for i, geometry in enumerate(geometries):
            for dtype in (next(dtypes), next(dtypes)):
                place, layout = next(places)
                yield Case(f"{ndim}-d partition {i} {dtype} {place} {layout}", dtype, geometry,
                           place=place, layout=layout)
    yield Case("16-d", "<i4", ((2,) * 10 + (1,) * 5 + (3,), (2, 1) * 8, (1,) * 15 + (1,)),
               we_write=False)


def dtype_cases():
    for i, dtype in enumerate(DTYPES):
        for j, geometry in enumerate([GEOMETRIES[1][2], GEOMETRIES[3][0]]):
            yield Case(f"dtype {dtype} {len(geometry[0])}-d", dtype, geometry,
                       place=["disk", "memory"][(i + j) % 2],
                       layout="sparse" if (i + j) % 6 == 0 else "contiguous")


PIPELINES = [([Filter.NOFILTER], [0]), ([Filter.SHUFFLE], [0]), ([Filter.BITSHUFFLE], [0]),
             ([Filter.DELTA], [0]), ([Filter.DELTA, Filter.SHUFFLE], [0, 0]),
             ([Filter.SHUFFLE, Filter.BYTEDELTA], [0, 4])]
CODECS = [Codec.BLOSCLZ, Codec.LZ4, Codec.LZ4HC, Codec.ZLIB, Codec.ZSTD]


def codec_cases():
    geometry = ((90, 70), (40, 32), (20, 16))
    contents_of = itertools.cycle(["smooth", "noise", "ramp"])
    for codec, level, (filters, meta) in itertools.product(CODECS, [0, 1, 5, 9], PIPELINES):
        if level == 0 and filters[0] not in (Filter.NOFILTER, Filter.SHUFFLE):
            continue
        yield Case(f"{codec.name} level {level} {'+'.join(f.name for f in filters)}", "<i4",
                   geometry, next(contents_of), codec, level=level, filters=filters,
                   filters_meta=meta)
    for codec, split in itertools.product(CODECS, Split):
        yield Case(f"{codec.name} {split.name}", "<f4", geometry, "smooth", codec,
                   splitmode=split)
    # LZ4 with a dictionary can only be read.
    large, small = ((30000,), (10000,), (1000,)), ((7000,), (2000,), (20,))
    for codec, content in itertools.product((Codec.LZ4, Codec.LZ4HC, Codec.ZSTD),
                                            ("smooth", "ramp")):
        yield Case(f"{codec.name} dictionary {content}", "<i4", large, content, codec,
                   use_dict=True, we_write=codec == Codec.ZSTD)
        yield Case(f"{codec.name} dictionary {content}, small blocks", "<i4", small, content,
                   codec, use_dict=True, we_write=codec == Codec.ZSTD)
    for codec, (filters, meta) in itertools.product(CODECS, PIPELINES[1:4]):
        yield Case(f"{codec.name} {filters[0].name} written by 8 threads", "<i4",
                   ((200, 300), (100, 150), (13, 17)), "smooth", codec, filters=filters,
                   filters_meta=meta, nthreads=8)


def plugin_cases():
    flat, cube = ((64, 50), (32, 30), (16, 16)), ((20, 21, 22), (12, 12, 12), (8, 8, 8))
    line, four = ((1000,), (300,), (100,)), ((8, 9, 10, 11), (6, 6, 6, 6), (4, 4, 4, 4))
    for meta in (4, 8):
        for content in ("noise", "ramp", "constant"):
            yield Case(f"ndlz {meta} {content}", "|u1", flat, content, Codec.NDLZ, meta,
                       filters=[Filter.NOFILTER])
    lossy = [(Codec.ZFP_ACC, 0), (Codec.ZFP_ACC, 256 - 3), (Codec.ZFP_PREC, 20),
             (Codec.ZFP_RATE, 50)]
    for (codec, meta), geometry, dtype in itertools.product(lossy, [line, flat, cube, four],
                                                            ["<f4", "<f8"]):
        if codec == Codec.ZFP_RATE and geometry is four:
            continue  # C-Blosc2 cannot read back what it writes there
        yield Case(f"{codec.name} {meta} {len(geometry[0])}-d {dtype}", dtype, geometry, "smooth",
                   codec, meta, filters=[Filter.NOFILTER], lossy=True)
    for geometry, dtype in itertools.product([flat, cube], ["<f4", "<i8"]):
        yield Case(f"ndcell {len(geometry[0])}-d {dtype}", dtype, geometry,
                   filters=[Filter.NDCELL], filters_meta=[4])
        yield Case(f"bytedelta 0 {len(geometry[0])}-d {dtype}", dtype, geometry, "smooth",
                   filters=[Filter.SHUFFLE, Filter.BYTEDELTA], filters_meta=[0, 0])
    for geometry, dtype in itertools.product([flat, cube], ["<f4", "<f8"]):
        yield Case(f"ndmean {len(geometry[0])}-d {dtype}", dtype, geometry, "smooth",
                   filters=[Filter.NDMEAN], filters_meta=[4], lossy=True)
    # python-blosc2 opens no file whose filter meta is negative: only in memory.
    for meta, dtype in itertools.product((10, -10), ["<f4", "<f8"]):
        yield Case(f"trunc_prec {meta} {dtype}", dtype, cube, "smooth",
                   filters=[Filter.TRUNC_PREC, Filter.SHUFFLE], filters_meta=[meta, 0], lossy=True,
                   place="memory" if meta < 0 else "disk")
    for meta, dtype in itertools.product((6, -3), ["|i1", "<u2", "<i4", "<u8"]):
        yield Case(f"int_trunc {meta} {dtype}", dtype, cube, "ramp",
                   filters=[Filter.INT_TRUNC, Filter.SHUFFLE], filters_meta=[meta, 0], lossy=True,
                   place="memory" if meta < 0 else "disk")


def fill_cases():
    storage = [("disk", "contiguous"), ("memory", "contiguous"), ("disk", "sparse")]
    fills = [("zeros", "<i4"), ("zeros", "|S7"), ("full", "<f8"), ("full", "<i2"), ("full", "|S5"),
             ("full", "?"), ("nans", "<f4"), ("nans", "<f8"), ("uninit", "<i4"), ("uninit", "<f8")]
    for (fill, dtype), (place, layout) in itertools.product(fills, storage):
        yield Case(f"fill {fill} {dtype} {place} {layout}", dtype, fill=fill, place=place,
                   layout=layout)
    for content, (place, layout) in itertools.product(["zeros", "constant"], storage):
        yield Case(f"all {content} {place} {layout}", "<f8", content=content, place=place,
                   layout=layout)
    for shape in [(0,), (0, 5), (3, 0, 4), (0, 0)]:
        chunks = tuple(max(1, n - 1) for n in shape)
        for place, layout in storage:
            yield Case(f"empty {shape} {place} {layout}", "<f4", (shape, chunks, (1,) * len(shape)),
                       place=place, layout=layout)


ATTRIBUTES = [{"one": 1}, {"text": "h\u00e9llo", "list": [1, 2.5, None, True, [b"raw", {}]]},
              {"nested": {"a": {"b": [1, 2, 3]}}, "big": "x" * 20000, "empty": ""},
              {f"a{i}": i * 1.5 for i in range(16)}]


def storage_cases():
    for i, attributes in enumerate(ATTRIBUTES):
        for place, layout in [("disk", "contiguous"), ("memory", "contiguous"),
                              ("disk", "sparse")]:
            yield Case(f"attributes {i} {place} {layout}", attributes=attributes, place=place,
                       layout=layout)
    for layout in ("contiguous", "sparse"):
        yield Case(f"user metalayer {layout}", meta={"user": {"unit": "mm", "n": [1, 2, 3]}},
                   layout=layout)
        yield Case(f"long user metalayer {layout}", meta={"user": "x" * 700}, layout=layout)
    for codec in CODECS:
        yield Case(f"sparse {codec.name}", codec=codec, layout="sparse")
    for offset, fill in itertools.product([1, 100, 4096, 70001], ["", "zeros"]):
        yield Case(f"at byte {offset} {fill}", offset=offset, fill=fill, attributes={"one": 1})
    for geometry in (GEOMETRIES[1][2], GEOMETRIES[2][1], GEOMETRIES[3][0], GEOMETRIES[4][0]):
        for layout in ("contiguous", "sparse"):
            yield Case(f"caterva metalayer {len(geometry[0])}-d {layout}", "|S4", geometry,
                       kind="caterva", layout=layout, attributes={"one": 1})


EDITS = [("grow", ("resize", (2, 1))), ("shrink", ("resize", (-9, -20))),
         ("grow and set", ("resize", (11, 30)), ("set", 3)), ("set", ("set", 5)),
         ("shrink, grow, set", ("resize", (-30, -3)), ("resize", (50, 41)), ("set", 3)),
         ("to nothing", ("resize", (-37, 0))),
         ("to nothing and back", ("resize", (-37, 0)), ("resize", (20, 3)), ("set", 2)),
         ("append rows", ("append", 5), ("append", 16)), ("attribute", ("attribute", 0)),
         ("zeros", ("zero", 0)), ("zeros and set", ("zero", 0), ("set", 2))]


def edit_cases():
    for (name, *edits), layout, fill in itertools.product(EDITS, ["contiguous", "sparse"],
                                                          ["", "full"]):
        yield Case(f"{name} {layout} {fill}", "<f4", layout=layout, fill=fill, edits=tuple(edits),
                   we_write=False)
    for extra in (1, 33, 169, 171, 400):
        yield Case(f"append {extra}", "<i4", GEOMETRIES[1][2], edits=(("append", extra),),
                   we_write=False)


def all_cases():
    return list(itertools.chain(partition_cases(), dtype_cases(), codec_cases(), plugin_cases(),
                                fill_cases(), storage_cases(), edit_cases()))

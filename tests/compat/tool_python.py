"""What python-blosc2 does in the matrix: writes, changes and reads arrays.

Operations that C-Blosc2 is known to do wrong are left out: an append of exactly one chunk to a
ragged array, writing at an offset, more than 16 attributes, growing an array of the old
metalayer, changing frames in memory of items above 255 bytes (it writes 1 as their size)."""

import dataclasses
import os
import struct

import blosc2
import numpy as np

from tool_matrix import contents, some_boxes

FILL_VALUES = {"?": True, "|S5": b"fills", "<i2": -7, "<f8": 2.5, "<f4": -1.25}


def fill_value(case):
    return np.array(FILL_VALUES[case.dtype], case.numpy_dtype)


def parameters(case):
    return blosc2.CParams(codec=case.codec, codec_meta=case.codec_meta, clevel=case.level,
                          use_dict=case.use_dict, nthreads=case.nthreads,
                          splitmode=case.splitmode, filters=list(case.filters),
                          filters_meta=list(case.filters_meta))


def new_array(case, path, first):
    _, chunks, blocks = case.geometry
    words = {"chunks": chunks, "blocks": blocks, "cparams": parameters(case),
             "contiguous": case.layout == "contiguous"}
    if case.meta:
        words["meta"] = case.meta
    if case.place == "disk":
        words.update(urlpath=path, mode="w")
    if not case.fill:
        return blosc2.asarray(first, **words)
    if case.fill == "full":
        return blosc2.full(case.shape, fill_value(case)[()], dtype=case.numpy_dtype, **words)
    return getattr(blosc2, case.fill)(case.shape, dtype=case.numpy_dtype, **words)


def whole(array):
    """All items. If b2nd decodes only some blocks of a chunk, it reads wrong items with the
    delta filter (all blocks refer to block 0), and wrong ones or none with a dictionary (which
    is only read with the whole chunk): such arrays are read chunk by chunk."""
    parameters = array.schunk.cparams
    entire = blosc2.Filter.DELTA in parameters.filters or parameters.use_dict
    if entire and array.size > 0 and array.ndim > 0:
        return whole_by_chunks(array)
    return np.asarray(array[...] if array.ndim else array[()])


def whole_by_chunks(array):
    grid = [-(-n // c) for n, c in zip(array.shape, array.chunks)]
    blocks = [-(-c // b) for c, b in zip(array.chunks, array.blocks)]
    ndim = array.ndim
    interleave = [i // 2 + ndim * (i % 2) for i in range(2 * ndim)]
    out = np.zeros([g * c for g, c in zip(grid, array.chunks)], array.dtype)
    for number, place in enumerate(np.ndindex(*grid)):
        items = np.frombuffer(array.schunk.decompress_chunk(number), array.dtype)
        chunk = items.reshape(*blocks, *array.blocks).transpose(interleave)
        chunk = chunk.reshape([n * b for n, b in zip(blocks, array.blocks)])
        inside = tuple(slice(0, c) for c in array.chunks)
        out[tuple(slice(i * c, i * c + c) for i, c in zip(place, array.chunks))] = chunk[inside]
    return out[tuple(slice(0, n) for n in array.shape)]


def set_boxes(array, case, rng, count):
    """Overwrites random boxes; returns them with their new items."""
    written = [(box, contents(case, tuple(s.stop - s.start for s in box), rng))
               for box in some_boxes(array.shape, rng, count)]
    for box, values in written:
        array[box or ()] = values
    return written


def append_rows(array, case, rng, count):
    if array.ndim == 1:
        array.append(contents(case, (count,), rng))
        return
    old = array.shape[0]
    array.resize((old + count, *array.shape[1:]))
    if 0 not in array.shape[1:]:
        array[old:] = contents(case, (count, *array.shape[1:]), rng)


def edit(array, case, rng, change, amount):
    if change == "resize":
        array.resize(tuple(max(0, n + d) for n, d in zip(array.shape, amount)))
    elif change == "append":
        append_rows(array, case, rng, amount)
    elif change == "set":
        set_boxes(array, case, rng, amount)
    elif change == "zero":
        array[...] = np.zeros(array.shape, case.numpy_dtype)
    elif change == "attribute":
        array.schunk.vlmeta["later"] = {"when": [1, 2]}


def write_case(case, path, rng):
    """Writes the case to `path` (place memory: its frame). Returns the boxes whose items are
    defined if the others are not, else None."""
    array = new_array(case, path, None if case.fill else contents(case, case.shape, rng))
    written = set_boxes(array, case, rng, 3) if case.fill else []
    for key, value in case.attributes.items():
        array.schunk.vlmeta[key] = value
    for change in case.edits:
        edit(array, case, rng, *change)
    if case.place == "memory":
        with open(path, "wb") as file:
            file.write(array.to_cframe())
    if case.kind == "caterva":
        del array
        rewrite_as_caterva(path)
    return [box for box, _ in written] if case.fill == "uninit" else None


def open_case(case, path, mode="r", offset=0):
    """Opens the array; in memory and without a file if python-blosc2 does not open the file as
    an array: blosc2.open supports only the b2nd metalayer."""
    if in_place(case):
        return blosc2.open(path, mode=mode, offset=offset)
    if case.layout == "sparse":
        frame = blosc2.open(path).to_cframe()
    else:
        with open(path, "rb") as file:
            frame = file.read()
    return blosc2.ndarray_from_cframe(frame, copy=True)


def may_change(case):
    """Whether python-blosc2 can change the array and save it."""
    if case.place == "memory":
        return case.numpy_dtype.itemsize <= 255
    return case.kind == "b2nd" or case.layout == "contiguous"


def in_place(case):
    return case.place == "disk" and case.kind == "b2nd"


def save_case(case, array, path):
    """Writes an array that open_case opened in memory back to its file."""
    if not in_place(case):
        with open(path, "wb") as file:
            file.write(array.to_cframe())


def read_case(case, path, offset=0):
    """The whole array and its attributes as a new handle of python-blosc2 reads them."""
    array = open_case(case, path, "r", offset)
    return whole(array), dict(array.schunk.vlmeta.getall())


def written_and_read(case, data):
    """What python-blosc2 reads after writing `data`, in memory."""
    return whole(new_array(dataclasses.replace(case, place="memory"), None, data))


def put_behind_junk(path, offset):
    """Moves the frame to byte `offset` of its file, with bytes after it too."""
    with open(path, "rb") as file:
        frame = file.read()
    with open(path, "wb") as file:
        file.write(b"\xA5" * offset + frame + b"\x5A" * 333)


# ---- The old metalayer -----------------------------------------------------------

def parse_metalayers(header):
    """[(name, content)] of a frame header's metalayer section."""
    (count,) = struct.unpack_from(">H", header, 87 + 5)
    at, layers = 87 + 7, []
    for _ in range(count):
        length = header[at] - 0xA0
        name = header[at + 1:at + 1 + length]
        (position,) = struct.unpack_from(">i", header, at + 2 + length)
        (size,) = struct.unpack_from(">I", header, position + 1)
        layers.append((name, header[position + 5:position + 5 + size]))
        at += 1 + length + 5
    return layers


def build_metalayers(layers):
    """The section's bytes, for a header whose fixed part has 87 bytes."""
    names_size = sum(1 + len(name) + 5 for name, _ in layers)
    position = 87 + 7 + names_size + 3
    names, bodies = b"", b""
    for name, content in layers:
        names += bytes([0xA0 + len(name)]) + name + b"\xd2" + struct.pack(">i",
                                                                         position + len(bodies))
        bodies += b"\xc6" + struct.pack(">I", len(content)) + content
    return (b"\x93\xcd" + struct.pack(">H", 7 + names_size) + b"\xde"
            + struct.pack(">H", len(layers)) + names + b"\xdc" + struct.pack(">H", len(layers))
            + bodies)


def without_dtype(content):
    """The b2nd metalayer's content reduced to what `caterva` had."""
    ndim = content[2]
    return b"\x95" + content[1:3 + (1 + 9 * ndim) + 2 * (1 + 5 * ndim)]


def rewrite_as_caterva(path):
    """Converts a file with the b2nd metalayer to the format of Caterva 0.x."""
    if os.path.isdir(path):
        path = os.path.join(path, "chunks.b2frame")
    with open(path, "rb") as file:
        frame = file.read()
    (header_len,) = struct.unpack_from(">i", frame, 11)
    (frame_len,) = struct.unpack_from(">Q", frame, 16)
    layers = [(b"caterva", without_dtype(content)) if name == b"b2nd" else (name, content)
              for name, content in parse_metalayers(frame[:header_len])]
    header = bytearray(frame[:87] + build_metalayers(layers))
    struct.pack_into(">i", header, 11, len(header))
    struct.pack_into(">Q", header, 16, frame_len - header_len + len(header))
    with open(path, "wb") as file:
        file.write(bytes(header) + frame[header_len:])

"""Compatibility in both directions: python-blosc2 writes a matrix of arrays and we read each
bit for bit; we write the same matrix, python-blosc2 reads each, changes it, and we read the
result.

usage: test_matrix.py [--tool PATH] [--seed N] [--only TEXT] [--python-only]

--python-only writes and reads with python-blosc2 alone: a check of the matrix. Under a
sanitizer a third of the matrix is run."""

import ast
import os
import shutil
import sys
import tempfile
import time
import traceback
import zlib

from tool_driver import Helper, format_box, skip, some

try:
    import blosc2
    import msgpack
    import numpy as np
except ImportError as missing:
    skip(f"{missing}; it runs in the virtual environment of scripts/bootstrap --test")

import tool_python as py
from tool_matrix import all_cases, contents, some_boxes


def word(name, otherwise=None):
    return sys.argv[sys.argv.index(name) + 1] if name in sys.argv else otherwise


class Different(Exception):
    pass


def need(condition, sentence):
    if not condition:
        raise Different(sentence)


def need_equal(got, want, what):
    need(got == want, f"{what}: {got!r}, not {want!r}")


def need_bytes(got, want, what):
    if got == want:
        return
    need_equal(len(got), len(want), f"{what}: bytes")
    first = next(i for i, (a, b) in enumerate(zip(got, want)) if a != b)
    count = sum(a != b for a, b in zip(got, want))
    raise Different(f"{what}: {count} of {len(want)} bytes differ, the first is byte {first}")


def numpy_dtype(text):
    return np.dtype(ast.literal_eval(text) if text.startswith("[") else text)


def number(item):
    """The number itself, or that of an enum's member."""
    return int(getattr(item, "value", item))


def numbers(items):
    return ",".join(str(number(i)) for i in items)


def used_filters(filters, filters_meta):
    """(filter, meta) of the filters in use, without byte delta's meta: python-blosc2 replaces
    the 0 that means the item size, and not always by the item size."""
    used = [(number(f), m & 255) for f, m in zip(filters, filters_meta) if number(f)]
    return [(f, None if f == blosc2.Filter.BYTEDELTA.value else m) for f, m in used]


# ---- We read ---------------------------------------------------------------------

def check_description(case, info, shape):
    need_equal(tuple(info["shape"]), tuple(shape), "shape")
    need_equal(tuple(info["chunks"]), case.geometry[1], "chunks")
    need_equal(tuple(info["blocks"]), case.geometry[2], "blocks")
    need_equal(info["item_size"], case.numpy_dtype.itemsize, "item size")
    need_equal(info["layout"], case.layout, "layout")
    need_equal(info["kind"], case.kind, "metalayer")
    need_equal(info["damages"], 0, "damages found by verify")
    need_equal((info["codec"], info["level"]), (number(case.codec), case.level), "codec and level")
    need_equal(used_filters(info["filters"], info["filters_meta"]),
               used_filters(case.filters, case.filters_meta), "filters")
    if case.kind == "caterva":
        need_equal(info["dtype_stored"], None, "stored dtype")
    elif case.numpy_dtype.kind == "V" and not case.numpy_dtype.fields:
        need_equal(numpy_dtype(info["dtype"]).itemsize, case.numpy_dtype.itemsize, "opaque")
    else: # python-blosc2 stores opaque items as a structure of one field
        need_equal(numpy_dtype(info["dtype"]), case.numpy_dtype, "dtype")


def check_attributes(info, expected):
    """The attributes set by the user: python-blosc2 does not list the library's own."""
    expected = {key: value for key, value in expected.items() if key != "_caterva"}
    got = {key: msgpack.unpackb(bytes.fromhex(value), strict_map_key=False)
           for key, value in info["attributes"].items()}
    need_equal(got, expected, "attributes")


def read_words(case, offset):
    words = {"offset": offset or None}
    if case.place == "memory":
        words["frame"] = 1 + zlib.crc32(case.name.encode()) % 2
    return words


def we_read(helper, case, path, rng, defined=None, offset=0):
    """We read the array at `path`: it must be what python-blosc2 reads."""
    expected, attributes = py.read_case(case, path, offset)
    boxes = defined if defined is not None else some_boxes(expected.shape, rng, 4)
    info, pieces = helper.read(path, boxes, **read_words(case, offset))
    check_description(case, info, expected.shape)
    check_attributes(info, attributes)
    if defined is None:
        need_bytes(pieces[0], expected.tobytes(), "the whole array")
    for box, piece in zip(boxes, pieces[1:]):
        need_bytes(piece, expected[box].tobytes(), f"box {format_box(box)}")
    for name, value in case.meta.items():
        need_equal(msgpack.unpackb(bytes.fromhex(info["metalayers"][name])), value, name)
    return expected


def check_we_read(helper, case, path, rng):
    """python-blosc2 writes, we read."""
    defined = py.write_case(case, path, rng)
    if case.offset:
        py.put_behind_junk(path, case.offset)
    if helper is None:
        py.read_case(case, path, case.offset)
    else:
        we_read(helper, case, path, rng, defined, case.offset)


# ---- We write --------------------------------------------------------------------

FILLS = {"": 0, "zeros": 0, "uninit": 1, "nans": 2, "full": 3}


def create_words(case, path):
    shape, chunks, blocks = case.geometry
    words = {"shape": numbers(shape), "chunks": numbers(chunks), "blocks": numbers(blocks),
             "codec": number(case.codec), "codec_meta": case.codec_meta, "level": case.level,
             "use_dict": int(case.use_dict), "filters": numbers(case.filters),
             "filters_meta": numbers(case.filters_meta), "fill": FILLS[case.fill],
             "layout": case.layout, "kind": case.kind}
    dtype = case.numpy_dtype
    words["item_size"] = dtype.itemsize
    if case.kind == "b2nd":
        words["dtype"] = dtype.str if dtype.kind != "V" else str(dtype)
    if case.fill == "full":
        words["fill_value"] = py.fill_value(case).tobytes().hex()
    for name, value in case.meta.items():
        words["meta"] = f"{name}:{msgpack.packb(value).hex()}"
    words["frame_out" if case.place == "memory" else "url"] = path
    return words


def start_model(case):
    model = np.zeros(case.shape, case.numpy_dtype)
    if case.fill == "full":
        model[...] = py.fill_value(case)
    if case.fill == "nans":
        model[...] = np.nan
    return model


def set_box(model, box, values):
    model[box or ...] = values


def we_create(helper, case, path, rng):
    """Creates the case's array; returns its NumPy model, and the boxes that were written if the
    rest is filled."""
    model = start_model(case)
    if case.fill:
        boxes = some_boxes(case.shape, rng, 3)
        pieces = [contents(case, tuple(s.stop - s.start for s in b), rng) for b in boxes]
        for box, piece in zip(boxes, pieces):
            set_box(model, box, piece)
    else:
        boxes, pieces = None, [contents(case, case.shape, rng)]
        model[...] = pieces[0]
    helper.write("create", [p.tobytes() for p in pieces], boxes, **create_words(case, path))
    return model, boxes


def we_update(helper, case, path, model, rng):
    """Overwrites several boxes, with a commit each, in the file and the model. In tiny sparse
    arrays each takes new chunk numbers, and C-Blosc2 allows no more of them than the bytes of
    all chunks less 32."""
    boxes = some_boxes(model.shape, rng, 5)
    pieces = [contents(case, tuple(s.stop - s.start for s in b), rng) for b in boxes]
    for box, piece in zip(boxes, pieces):
        set_box(model, box, piece)
    if boxes:
        helper.write("write", [p.tobytes() for p in pieces], boxes, url=path, commit_each=1)


def check_values(case, got, model, boxes, what):
    """All items; without a fill only those that were written."""
    need_equal(got.shape, model.shape, f"{what}: shape")
    if case.fill != "uninit":
        need_bytes(got.tobytes(), model.tobytes(), what)
        return
    for box in boxes:
        need_bytes(got[box].tobytes(), model[box].tobytes(), f"{what}: box {format_box(box)}")


def check_python_reads(case, path, model, boxes, offset=0):
    array = py.open_case(case, path, "r", offset)
    need_equal(array.shape, model.shape, "shape in python-blosc2")
    need_equal((array.chunks, array.blocks), case.geometry[1:], "partition in python-blosc2")
    if case.numpy_dtype.kind != "V" or case.numpy_dtype.fields:
        need_equal(array.dtype, case.numpy_dtype, "dtype in python-blosc2")
    parameters = array.schunk.cparams
    need_equal(number(parameters.codec), number(case.codec), "codec in python-blosc2")
    need_equal(used_filters(parameters.filters, parameters.filters_meta),
               used_filters(case.filters, case.filters_meta), "filters in python-blosc2")
    for name, value in case.meta.items():
        need_equal(array.schunk.meta[name], value, "metalayer in python-blosc2")
    check_values(case, py.whole(array), model, boxes, "python-blosc2 reads our file")


def python_overwrites(case, path, model, rng):
    """Overwrites boxes in the file and in the model; returns them."""
    array = py.open_case(case, path, "a")
    written = py.set_boxes(array, case, rng, 3)
    for box, values in written:
        set_box(model, box, values)
    array.schunk.vlmeta["note"] = {"set by": "python", "list": [1, None]}
    py.save_case(case, array, path)
    return [box for box, _ in written]


def python_resizes(case, path, rng):
    """Grows the outer axes, appends rows, and shrinks the last axis again. Growing
    all of many axes would make thousands of chunks, which takes C-Blosc2 hours."""
    array = py.open_case(case, path, "a")
    array.resize(tuple(n + (1 + i % 3) * (i < 3) for i, n in enumerate(array.shape)))
    py.append_rows(array, case, rng, 3)
    py.set_boxes(array, case, rng, 2)
    array.resize((*array.shape[:-1], max(1, array.shape[-1] - 2)))
    py.save_case(case, array, path)


def check_we_write(helper, case, path, rng):
    """We write, python-blosc2 reads and changes, we read again."""
    model, boxes = we_create(helper, case, path, rng)
    if case.lossy:  # a lossy filter loses the same, whoever writes
        model = py.written_and_read(case, model)
    if case.offset:
        py.put_behind_junk(path, case.offset)
    check_python_reads(case, path, model, boxes, case.offset)
    if case.offset or not py.may_change(case):
        return
    if case.lossy:
        check_lossy_changes(helper, case, path, model, rng)
    elif case.fill == "uninit":
        boxes += python_overwrites(case, path, model, rng)
        expected = we_read(helper, case, path, rng, boxes)
        check_values(case, expected, model, boxes, "after python's writes")
    else:
        check_changes(helper, case, path, model, rng)


def check_lossy_changes(helper, case, path, model, rng):
    """Blocks that are encoded again lose again: both sides must still read the same items."""
    if case.place == "disk":
        we_update(helper, case, path, model.copy(), rng)
    python_overwrites(case, path, model.copy(), rng)
    we_read(helper, case, path, rng)


def check_changes(helper, case, path, model, rng):
    """We, python-blosc2 and we again change the array; each reads the other's changes."""
    if case.place == "disk":
        we_update(helper, case, path, model, rng)
        check_python_reads(case, path, model, None)
    python_overwrites(case, path, model, rng)
    expected = we_read(helper, case, path, rng)
    check_values(case, expected, model, None, "after python's writes")
    if case.kind == "b2nd" and model.ndim > 0:
        python_resizes(case, path, rng)
        model = we_read(helper, case, path, rng).copy()
    if case.place == "disk":
        we_update(helper, case, path, model, rng)
        expected = we_read(helper, case, path, rng)
        check_values(case, expected, model, None, "our writes after python's")


# ---- All of it -------------------------------------------------------------------

def run(check, helper, case, folder, seed):
    """None, or what went wrong."""
    path = os.path.join(folder, "array.b2nd")
    rng = np.random.default_rng([seed, zlib.crc32(case.name.encode())])
    try:
        check(helper, case, path, rng)
        return None
    except Exception as error:
        if not isinstance(error, Different):
            error = f"{type(error).__name__}: {error}\n{traceback.format_exc(limit=-3)}"
        return f"{case.name}: {check.__doc__} {error}"
    finally:
        if os.path.isdir(path):
            shutil.rmtree(path)
        elif os.path.exists(path):
            os.remove(path)


def main():
    seed = int(word("--seed", "20240607"), 0)
    python_only = "--python-only" in sys.argv
    every = [c for c in all_cases() if word("--only", "") in c.name]
    cases = every if "--only" in sys.argv else some(every, sanitized=3)
    print(f"seed {seed}, python-blosc2 {blosc2.__version__}, C-Blosc2 {blosc2.blosclib_version}")
    started, failures, written = time.monotonic(), [], 0
    with tempfile.TemporaryDirectory(prefix="caterva-matrix-") as folder:
        helper = None if python_only else Helper(folder)
        for case in cases:
            failures.append(run(check_we_read, helper, case, folder, seed))
            if case.we_write and helper is not None:
                failures.append(run(check_we_write, helper, case, folder, seed))
                written += 1
        if helper is not None:
            helper.close()
    failures = [f for f in failures if f]
    for failure in failures:
        print("FAILED", failure)
    print(f"{len(cases)} arrays of python-blosc2 read, {written} arrays of ours read, changed and "
          f"read back, {len(failures)} failures, {time.monotonic() - started:.0f} s")
    if not word("--only") and (len(every) < 300 or
                               (not python_only and written < len(cases) * 2 // 3)):
        failures.append("the matrix is too small")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()

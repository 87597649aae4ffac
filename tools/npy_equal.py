#!/usr/bin/env python3
"""Do two .npy files hold the same array: type, shape and every byte?

The order in which a file stores its items and the padding of its header do not
count. Needs the standard library only.

usage: npy_equal.py A.npy B.npy      exit status 0: equal, 1: not
"""

import ast
import math
import struct
import sys


def read_npy(path):
    """(description, shape, the items' bytes in C order)"""
    with open(path, "rb") as file:
        data = file.read()
    if data[:6] != b"\x93NUMPY":
        raise ValueError("%s is not a .npy file" % path)
    wide = data[6] > 1  # from version 2 on the header's length has four bytes
    length, = struct.unpack_from("<I" if wide else "<H", data, 8)
    start = (12 if wide else 10) + length
    header = ast.literal_eval(data[start - length:start].decode("utf-8"))
    items, shape = data[start:], header["shape"]
    if header["fortran_order"] and len(shape) > 1:
        items = in_c_order(items, shape)
    return header["descr"], shape, items


def in_c_order(items, shape):
    """Fortran-ordered items in C order, one row along the last axis at a time."""
    size = len(items) // max(math.prod(shape), 1)
    step = math.prod(shape[:-1]) * size
    out = bytearray(len(items))
    row_size = shape[-1] * size
    for row in range(math.prod(shape[:-1])):
        source, rest = 0, row  # where the row begins: unravel `row`, ravel again
        for axis in range(len(shape) - 2, -1, -1):
            rest, at = divmod(rest, shape[axis])
            source += at * math.prod(shape[:axis])
        for byte in range(size):
            out[row * row_size + byte:(row + 1) * row_size:size] = \
                items[source * size + byte::step]
    return bytes(out)


def difference(a, b):
    """What differs first between two arrays, or None."""
    for what, one, other in zip(("type", "shape"), a, b):
        if one != other:
            return "%s %s and %s" % (what, one, other)
    if a[2] == b[2]:
        return None
    if len(a[2]) != len(b[2]):
        return "%d and %d bytes of items" % (len(a[2]), len(b[2]))
    return "byte %d of the items" % next(
        i for i, (one, other) in enumerate(zip(a[2], b[2])) if one != other)


def main():
    if len(sys.argv) != 3:
        sys.stderr.write("usage: npy_equal.py A.npy B.npy\n")
        return 2
    a, b = read_npy(sys.argv[1]), read_npy(sys.argv[2])
    differs = difference(a, b)
    print("different: " + differs if differs else "equal: %d bytes" % len(a[2]))
    return 1 if differs else 0


if __name__ == "__main__":
    sys.exit(main())

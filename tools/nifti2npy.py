#!/usr/bin/env python3
"""Turns a NIfTI-1 image (.nii, .nii.gz) into a NumPy .npy file.

The first axis of a NIfTI image runs fastest in the file (Fortran order): the
.npy has its axes reversed (z, y, x), in C order, and the same bytes, in the
file's byte order. Values are the stored ones; scl_slope and scl_inter are not
applied. Needs the standard library only.

usage: nifti2npy.py IN.nii[.gz] OUT.npy
"""

import gzip
import struct
import sys

# The header's datatype codes, as NumPy names them.
DTYPES = {
    2: "u1", 4: "i2", 8: "i4", 16: "f4", 32: "c8", 64: "f8", 256: "i1", 512: "u2",
    768: "u4", 1024: "i8", 1280: "u8", 1792: "c16", 128: "u1", 2304: "u1",
}
CHANNELS = {128: 3, 2304: 4}  # RGB24 and RGBA32: a last axis of colours
HEADER_SIZE = 348


def read_image(path):
    """All bytes of the file, unpacked when they are gzip's."""
    with open(path, "rb") as file:
        data = file.read()
    return gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data


def parse_header(data):
    """(dtype, C-order shape, position of the first item)"""
    if len(data) < HEADER_SIZE:
        raise ValueError("has %d bytes, a NIfTI-1 header has %d" % (len(data), HEADER_SIZE))
    for order in "<>":
        if struct.unpack_from(order + "i", data)[0] == HEADER_SIZE:
            break
    else:
        raise ValueError("does not begin with the size of a NIfTI-1 header")
    if data[344:348] != b"n+1\0":
        raise ValueError("is not a single-file NIfTI-1 image (magic %r)" % data[344:348])

    dim = struct.unpack_from(order + "8h", data, 40)
    code = struct.unpack_from(order + "h", data, 70)[0]
    vox_offset = struct.unpack_from(order + "f", data, 108)[0]
    if not 1 <= dim[0] <= 7 or min(dim[1:dim[0] + 1]) < 1:
        raise ValueError("has the dimensions %r" % (dim,))
    if code not in DTYPES:
        raise ValueError("has datatype %d, which NumPy has no name for" % code)
    if not HEADER_SIZE <= vox_offset <= len(data):
        raise ValueError("says its items begin at byte %g" % vox_offset)

    shape = tuple(reversed(dim[1:dim[0] + 1]))
    if code in CHANNELS:
        shape += (CHANNELS[code],)
    kind = DTYPES[code]
    return ("|" if kind[1:] == "1" else order) + kind, shape, int(vox_offset)


def npy_header(dtype, shape):
    """Magic, version and description, padded so that the items are aligned."""
    text = "{'descr': '%s', 'fortran_order': False, 'shape': %r, }" % (dtype, shape)
    padding = -(10 + len(text) + 1) % 64
    text += " " * padding + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode("latin-1")


def convert(source, target):
    """Writes `target`; (dtype, shape) of what was written."""
    data = read_image(source)
    dtype, shape, start = parse_header(data)
    size = int(dtype[2:])
    for extent in shape:
        size *= extent
    if len(data) - start < size:
        raise ValueError("ends after %d of %d bytes of items" % (len(data) - start, size))
    with open(target, "wb") as file:
        file.write(npy_header(dtype, shape))
        file.write(data[start:start + size])
    return dtype, shape


def main():
    if len(sys.argv) != 3:
        sys.stderr.write("usage: nifti2npy.py IN.nii[.gz] OUT.npy\n")
        return 2
    try:
        dtype, shape = convert(sys.argv[1], sys.argv[2])
    except (OSError, EOFError, ValueError) as error:
        sys.stderr.write("nifti2npy: %s: %s\n" % (sys.argv[1], error))
        return 1
    print("%s: %s %s" % (sys.argv[2], " x ".join(map(str, shape)), dtype))
    return 0


if __name__ == "__main__":
    sys.exit(main())

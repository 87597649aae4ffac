#!/usr/bin/env python3
"""The demo in Python: an array becomes a compressed file, a slice of it a picture.

usage: demo.py ARRAY.npy OUT.b2nd PICTURE.png SELECTION [--transpose]"""

import sys

import caterva
import numpy as np

source, path, picture, selection = sys.argv[1:5]

caterva.save(path, np.load(source, mmap_mode="r"), overwrite=True)
a = caterva.open(path)
print(f"{a.shape} {a.dtype}, mean {a.mean():.2f}, {a.nbytes} bytes in {a.info.frame_bytes}")

selected = eval(f"np.s_[{selection}]")
image = a.T.view_image(selected[::-1]) if sys.argv[5:] else a.view_image(selected)
image.save(picture)
original = np.load(source, mmap_mode="r")
for place in a.iter_chunks():
    if not np.array_equal(a[place], original[place], equal_nan=a.dtype.kind in "fc"):
        sys.exit(f"the items at {place} differ")
print("equal, chunk by chunk")

"""h5py's tests: datasets of a file are replaced by our arrays in memory."""

from __future__ import annotations

from typing import Any

import h5py
import numpy as np

import caterva


class _Reader:
    """The function that h5py's tests of its fast path call."""

    def __init__(self, array: caterva.Array) -> None:
        self.array = array

    def read(self, key: Any) -> Any:
        return self.array[key]


caterva.Array._fast_reader = property(_Reader)  # type: ignore[attr-defined]


def create_dataset(
    group: h5py.Group,
    name: str,
    shape: Any = None,
    dtype: Any = None,
    data: Any = None,
    *,
    maxshape: Any = None,
    fillvalue: Any = None,
    **options: Any,
) -> caterva.Array:
    if data is None:
        return caterva.create(shape, "f4" if dtype is None else dtype, fill_value=fillvalue)
    return caterva.asarray(np.asarray(data, dtype))


h5py.Group.create_dataset = create_dataset

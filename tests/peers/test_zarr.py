"""zarr's strategies for indices, on our arrays, compared with NumPy."""

from __future__ import annotations

import os
from typing import Any

import hypothesis.strategies as st
import numpy as np
from hypothesis import HealthCheck, given, settings
from zarr.testing.strategies import (
    basic_indices,
    chunk_shapes,
    numpy_arrays,
    orthogonal_indices,
)

import caterva

TIMES = settings(
    max_examples=int(os.environ.get("PEERS_EXAMPLES", "150")),
    deadline=None,
    database=None,
    print_blob=True,
    suppress_health_check=list(HealthCheck),
)


def _same(ours: Any, theirs: Any) -> None:
    np.testing.assert_array_equal(ours, theirs)
    assert np.asarray(ours).dtype == np.asarray(theirs).dtype
    assert np.shape(ours) == np.shape(theirs)


@st.composite
def arrays(draw: st.DrawFn) -> tuple[np.ndarray[Any, Any], caterva.Array]:
    items = draw(numpy_arrays())
    if items.dtype.kind == "O" or items.dtype.itemsize == 0:
        items = np.arange(items.size).reshape(items.shape)
    chunks = draw(chunk_shapes(shape=items.shape)) if 0 not in items.shape else None
    return items, caterva.asarray(items, chunks=chunks)


@TIMES
@given(st.data())
def test_basic_indexing(data: st.DataObject) -> None:
    items, array = data.draw(arrays())
    key = data.draw(basic_indices(shape=items.shape))
    _same(array[key], items[key])
    value = data.draw(numpy_arrays(shapes=st.just(items[key].shape), dtype=items.dtype))
    items[key] = value
    array[key] = value
    _same(array[...], items)


@TIMES
@given(st.data())
def test_orthogonal_indexing(data: st.DataObject) -> None:
    items, array = data.draw(arrays())
    if 0 in items.shape or not items.ndim:
        return
    outer, plain = data.draw(orthogonal_indices(shape=items.shape))
    _same(array.oindex[outer], items[plain])
    value = data.draw(numpy_arrays(shapes=st.just(items[plain].shape), dtype=items.dtype))
    items[plain] = value
    array.oindex[outer] = value
    _same(array[...], items)


@TIMES
@given(st.data())
def test_vector_indexing(data: st.DataObject) -> None:
    import hypothesis.extra.numpy as npst

    items, array = data.draw(arrays())
    if 0 in items.shape or not items.ndim:
        return
    key = data.draw(npst.integer_array_indices(shape=items.shape))
    _same(array.vindex[key], items[key])
    _same(array[key], items[key])

"""Reductions and lists of fields, converted arrays and views match NumPy."""

from __future__ import annotations

from typing import Any

import caterva
import numpy as np
import pytest
from caterva import _lazy

AXES = (None, 0, 1, -1, (0, 2), ())
DTYPES = ("?", "i1", "u8", ">i4", "f2", "f4", ">f8", "c8")


@pytest.fixture(autouse=True, params=(1 << 24, 100))
def slabs(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_lazy, "_SLAB_BYTES", request.param)


def _lazy_pair(dtype: str, kind: str) -> tuple[Any, Any]:
    items = np.random.default_rng(7).integers(0, 90, (5, 4, 3)).astype(dtype)
    if kind == "astype":
        return caterva.asarray(items.astype("c16")).astype(dtype), items
    record = np.zeros(items.shape, [("n", "i2"), ("x", dtype)])
    record["x"] = items
    return caterva.asarray(record).fields["x"], items


@pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning")
@pytest.mark.parametrize("kind", ("astype", "field"))
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("axis", AXES)
@pytest.mark.parametrize("name", ("min", "max", "sum", "mean", "var", "std"))
def test_reductions_are_numpys(name: str, axis: Any, dtype: str, kind: str) -> None:
    lazy, items = _lazy_pair(dtype, kind)
    tolerance = {"f2": 5e-3, "f4": 1e-5, "c8": 1e-5}.get(dtype, 1e-12)
    for keepdims in (False, True):
        found = getattr(lazy, name)(axis=axis, keepdims=keepdims)
        wanted = getattr(items, name)(axis=axis, keepdims=keepdims)
        assert found.dtype == wanted.dtype and found.shape == wanted.shape
        np.testing.assert_allclose(found, wanted, rtol=tolerance, atol=1e-12)


def test_functions_of_numpy_take_them() -> None:
    lazy, items = _lazy_pair("f4", "field")
    out = np.empty((4, 3), "f4")
    assert np.mean(lazy, axis=0, out=out) is out
    np.testing.assert_allclose(out, items.mean(axis=0), rtol=1e-5)
    with pytest.raises(TypeError, match="out is a NumPy array"):
        lazy.sum(out=[1])


def test_a_field_that_is_an_array_and_one_of_no_item() -> None:
    record = np.zeros(6, [("v", "f8", (3,))])
    record["v"] = np.arange(18).reshape(6, 3)
    field = caterva.asarray(record).fields["v"]
    np.testing.assert_array_equal(field.sum(axis=1), record["v"].sum(axis=1))
    np.testing.assert_array_equal(field.max(axis=0), record["v"].max(axis=0))
    empty = caterva.zeros((0, 2), "i4").astype("f4")
    assert empty.sum(axis=0).tolist() == [0, 0]
    with pytest.raises(ValueError, match="zero-size array"):
        empty.min()


def test_lists_and_arrays_and_members() -> None:
    items = np.arange(12).reshape(3, 4)
    a = caterva.asarray(items)
    for lazy, same in ((a, items), (a.view[:, ::2], items[:, ::2]), (a.astype("f4"), items)):
        assert lazy.tolist() == same.tolist()
        np.testing.assert_array_equal(lazy.to_numpy(), same)
    assert 11 in a and 12 not in a and 11 not in a.view[:, ::2]
    assert 7 in caterva.full((), 7)

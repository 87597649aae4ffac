"""Reading and writing by index match NumPy, including exceptions, on random cases."""

from __future__ import annotations

import warnings
from typing import Any

import caterva
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

DTYPES = [
    np.dtype(d)
    for d in (
        "i4", "f8", ">i2", "?", "c8", "S3", "U2", "M8[s]",
        [("a", "i2"), ("b", "f8", (2,))],
    )
]  # fmt: skip


@st.composite
def arrays(draw: st.DrawFn) -> tuple[np.ndarray[Any, Any], caterva.Array]:
    """A NumPy array, and an array of small chunks with the same items."""
    shape = tuple(draw(st.lists(st.integers(0, 7), min_size=0, max_size=4)))
    dtype = draw(st.sampled_from(DTYPES))
    numbers = np.arange(int(np.prod(shape)) * dtype.itemsize) % 120
    if dtype.kind in "SU":
        items = (numbers[: int(np.prod(shape))]).astype("i4").astype(dtype).reshape(shape)
    elif dtype.kind == "?":
        items = (numbers[: int(np.prod(shape))] % 3 == 0).reshape(shape)
    elif dtype.names is not None:
        items = np.zeros(shape, dtype)
        items["a"] = numbers[: items.size].reshape(shape)
        items["b"] = items["a"][..., None] + 0.5
    else:
        items = numbers[: int(np.prod(shape))].astype("i8").astype(dtype).reshape(shape)
    chunks = [draw(st.integers(1, max(1, n))) for n in shape]
    blocks = [draw(st.integers(1, c)) for c in chunks]
    array = caterva.create(shape, dtype, chunks=chunks, blocks=blocks)
    array[...] = items
    return items.copy(), array


def _integers(n: int) -> st.SearchStrategy[int]:
    return st.integers(-n - 1, n) if n else st.integers(-2, 2)


@st.composite
def slices(draw: st.DrawFn, n: int) -> slice:
    """A slice inside or partly outside an axis of `n` items."""
    bound = st.none() | st.integers(-n - 2, n + 2)
    step = st.none() | st.sampled_from([1, 2, 3, -1, -2, -3, 5, -7])
    return slice(draw(bound), draw(bound), draw(step))


@st.composite
def lists(draw: st.DrawFn, n: int, shape: tuple[int, ...]) -> Any:
    """An array of indices, mostly valid, whose shape broadcasts with `shape`, mostly."""
    own = [draw(st.sampled_from([m, m, m, 1])) for m in shape]
    own = own[draw(st.integers(0, len(own))) :]
    most = n if draw(st.integers(0, 19)) == 0 else max(n - 1, 0)
    count = int(np.prod(own))
    values = draw(st.lists(st.integers(-n, most), min_size=count, max_size=count))
    array = np.array(
        values,
        dtype=draw(st.sampled_from(["i8", "i4", "u1", "i8"]))
        if not values or min(values) >= 0
        else "i8",
    ).reshape(own)
    if array.ndim == 1 and draw(st.booleans()):
        return array.tolist()
    return array


@st.composite
def masks(draw: st.DrawFn, shape: tuple[int, ...]) -> Any:
    """A mask of that shape, sometimes of a wrong one."""
    shape = tuple(n + (draw(st.integers(0, 24)) == 0) for n in shape)
    bits = draw(
        st.lists(st.booleans(), min_size=int(np.prod(shape)), max_size=int(np.prod(shape)))
    )
    return np.array(bits, dtype=bool).reshape(shape)


@st.composite
def keys(draw: st.DrawFn, shape: tuple[int, ...]) -> Any:
    """Any key."""
    together = tuple(draw(st.lists(st.integers(0, 4), min_size=1, max_size=3)))
    kinds = ["int", "slice", "slice", "list", "mask", "new", "npint", "0d"]
    if draw(st.integers(0, 3)):  # mostly basic, or with one or two lists
        kinds = draw(
            st.sampled_from([["int", "slice", "new"], ["slice", "list", "int"], kinds])
        )
    parts: list[Any] = []
    axis = 0
    while axis < len(shape) and draw(st.integers(0, 5)):
        kind = draw(st.sampled_from(kinds))
        n = shape[axis]
        if kind == "new":
            if len(parts) > 6:
                break
            parts.append(None)
            continue
        if kind == "int":
            parts.append(draw(_integers(n)))
        elif kind == "npint":
            parts.append(np.int16(draw(_integers(n))))
        elif kind == "0d":
            parts.append(np.array(draw(_integers(n))))
        elif kind == "slice":
            parts.append(draw(slices(n)))
        elif kind == "list":
            parts.append(draw(lists(n, together)))
        else:
            width = draw(st.integers(1, min(2, len(shape) - axis)))
            parts.append(draw(masks(shape[axis : axis + width])))
            axis += width - 1
        axis += 1
    if draw(st.integers(0, 2)) == 0:
        parts.insert(draw(st.integers(0, len(parts))), Ellipsis)
    if draw(st.integers(0, 14)) == 0:
        odd = st.sampled_from([True, False, Ellipsis, 1.5, 0, slice(None), np.array([0.5])])
        parts.insert(draw(st.integers(0, len(parts))), draw(odd))
    if len(parts) == 1 and draw(st.booleans()):
        return parts[0]
    return tuple(parts)


def _outcome(function: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return function()
        except Exception as error:
            return error


def _assert_same(ours: Any, theirs: Any) -> None:
    if isinstance(theirs, Exception):
        assert isinstance(ours, Exception), f"NumPy raises {theirs!r}, we give {ours!r}"
        assert isinstance(ours, type(theirs)), f"NumPy raises {theirs!r}, we {ours!r}"
        return
    if isinstance(ours, Exception):
        raise AssertionError(f"we raise {ours!r}") from ours
    assert type(ours) is type(theirs)
    assert ours.dtype == theirs.dtype
    assert ours.shape == theirs.shape
    assert ours.tobytes() == theirs.tobytes()


@given(st.data())
def test_reads_are_numpys(data: st.DataObject) -> None:
    items, array = data.draw(arrays())
    for _ in range(3):
        key = data.draw(keys(items.shape))
        ours, theirs = _outcome(lambda: array[key]), _outcome(lambda: items[key])
        _assert_same(ours, theirs)
        if isinstance(theirs, np.ndarray):
            out = np.empty(theirs.shape, theirs.dtype, data.draw(st.sampled_from("CF")))
            assert array.read(key, out=out) is out
            assert out.tobytes() == theirs.tobytes()


@st.composite
def values(draw: st.DrawFn, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
    """A value to assign to items of that shape; sometimes it does not fit."""
    kind = draw(st.integers(0, 9))
    if kind == 0:
        return draw(st.sampled_from([3, -7, 2.5, True, 1 + 2j, b"xy", "z", None, 300, (1, 2)]))
    own = [n if draw(st.integers(0, 4)) else 1 for n in shape]
    own = own[draw(st.integers(0, len(own))) :] if draw(st.booleans()) else own
    if kind == 1:
        own = [1, *own]
    if kind == 2 and own:
        own[draw(st.integers(0, len(own) - 1))] += 1
    numbers = np.arange(int(np.prod(own))).reshape(own) + draw(st.integers(1, 50))
    if dtype.names is not None:
        result = np.zeros(own, dtype)
        result["a"] = numbers
        return result
    other = draw(st.sampled_from(["i8", "f4", "u1", ">i4"]))
    result = (
        numbers.astype(other) if dtype.kind in "iufcb" else numbers.astype("i4").astype(dtype)
    )
    if draw(st.integers(0, 4)) == 0:
        return result.tolist()
    if draw(st.integers(0, 3)) == 0 and result.ndim:
        return np.asfortranarray(result)
    return result


@given(st.data())
def test_writes_are_numpys(data: st.DataObject) -> None:
    items, array = data.draw(arrays())
    for _ in range(3):
        key = data.draw(keys(items.shape))
        selected = _outcome(lambda: items[key])
        shape = () if isinstance(selected, Exception) else selected.shape
        value = data.draw(values(shape, items.dtype))
        before = items.copy()

        def write(target: Any) -> Any:
            target[key] = value
            return target[...]

        theirs = _outcome(lambda: write(items))
        ours = _outcome(lambda: write(array))
        _assert_same(ours, theirs)
        if isinstance(theirs, Exception):
            items = before  # NumPy may have assigned a part
            assert array[...].tobytes() == items.tobytes(), "nothing is changed"


@given(st.data())
def test_views_are_numpys(data: st.DataObject) -> None:
    items, array = data.draw(arrays())
    view, part = array.view[...], items
    for _ in range(data.draw(st.integers(0, 3))):
        if part.ndim and data.draw(st.booleans()):
            order = data.draw(st.permutations(range(part.ndim)))
            view, part = view.transpose(*order), part.transpose(order)
        else:
            key = (*(data.draw(slices(n)) for n in part.shape), Ellipsis)
            view, part = view.select(key), part[key]
    assert view.shape == part.shape
    key = data.draw(keys(part.shape))
    _assert_same(_outcome(lambda: view[key]), _outcome(lambda: part[key]))


@given(st.data())
def test_oindex_and_vindex(data: st.DataObject) -> None:
    items, array = data.draw(arrays())
    if 0 in items.shape or items.ndim == 0:
        return
    lists = [
        data.draw(st.lists(st.integers(-n, n - 1), min_size=3, max_size=3)) for n in items.shape
    ]
    _assert_same(array.oindex[tuple(lists)], items[np.ix_(*lists)])
    _assert_same(array.vindex[tuple(lists)], items[tuple(np.array(v) for v in lists)])


@pytest.mark.parametrize("flag", [True, False])
def test_a_flag_alone_takes_no_axes(flag: bool) -> None:
    for target in (np.zeros((), int), caterva.zeros((), int)):
        target[flag] = 5
        with pytest.raises(TypeError, match="0 or 1-dimensional"):
            target[flag] = [[1]]
        assert target[...] == (5 if flag else 0)


def test_of_two_errors_numpys_comes_first() -> None:
    cases: list[tuple[Any, Any, str]] = [
        (([0, 9],), 1 + 2j, "i4"),  # a list out of bounds
        ((0, [0, 9]), 1 + 2j, "i4"),
        (([0, 1], [0, 1, 2]), 2.5, "M8[s]"),  # lists that cannot be broadcast together
        ((9,), 1 + 2j, "i4"),
        ((9, [0]), "x", "i4"),
        ((0, 0, 0, 0), "x", "f8"),
        ((1.5,), "x", "f8"),
    ]
    for key, value, dtype in cases:
        for shape in ((3, 3), (0, 0)):
            errors = []
            for target in (np.zeros(shape, dtype), caterva.zeros(shape, dtype)):
                with pytest.raises((TypeError, ValueError, IndexError)) as caught:
                    target[key] = value
                errors.append(type(caught.value))
            assert issubclass(errors[1], errors[0]), (key, value, errors)


def test_repeated_indices_leave_the_last() -> None:
    array = caterva.zeros(4, int, chunks=2)
    array[[1, 3, 1, 1]] = [5, 6, 7, 8]
    assert array[:].tolist() == [0, 8, 0, 6]
    array.oindex[[0, 0, 2]] = [1, 2, 3]
    assert array[:].tolist() == [2, 8, 3, 6]


def test_many_points_with_boxes_behind_them() -> None:
    items = np.arange(20 * 30 * 40).reshape(20, 30, 40)
    array = caterva.asarray(items, chunks=(8, 8, 16))
    i, j = np.random.default_rng(5).integers(0, 20, (2, 200))
    assert np.array_equal(array[i, j], items[i, j])
    assert np.array_equal(array[i, :, j], items[i, :, j])
    array[i, j % 30] = 7
    items[i, j % 30] = 7
    assert np.array_equal(array[...], items)


def test_names_select_fields() -> None:
    dtype = np.dtype([("a", "i2"), ("b", "f8", (2,)), ("c", [("d", "u1"), ("e", "S2")])])
    items = np.zeros((3, 4), dtype)
    items["a"] = np.arange(12).reshape(3, 4)
    items["b"] = 1.5
    items["c"]["e"] = b"hi"
    array = caterva.asarray(items, chunks=(2, 2))
    for name in "abc":
        assert np.array_equal(array[name], items[name])
        assert np.array_equal(array.fields[name][1:, ::2], items[name][1:, ::2])
    assert np.array_equal(array.fields["c.e"][:], items["c"]["e"])
    assert array[["a", "c"]].dtype.names == ("a", "c")
    array.fields["c.d"][1] = 9
    array["a"] = 5
    items["c"]["d"][1] = 9
    items["a"] = 5
    assert np.array_equal(array[:], items)
    with pytest.raises(KeyError):
        array.fields["z"]


def test_items_cannot_be_deleted() -> None:
    with pytest.raises(ValueError, match="delete"):
        del caterva.zeros(3)[0]


def test_a_mask_takes_a_list_of_structures() -> None:
    dtype = [("a", "i2"), ("b", "f4")]
    mask = np.array([True, False, True])
    for value in ([(1, 2), (3, 4)], [(5, 6)], (7, 8)):
        items = np.zeros(3, dtype)
        a = caterva.asarray(items)
        items[mask] = value
        a[mask] = value
        a.view[...][mask] = value
        assert np.array_equal(a[:], items)
    with pytest.raises(TypeError, match="2 dimensions"):
        a[mask] = [[(1, 2), (3, 4)]]

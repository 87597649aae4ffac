"""Dtypes wherever one is taken: without a width, records, of ml_dtypes; and casts."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import caterva
import ml_dtypes
import numpy as np
import pytest
from support import NUMPY_2

# ---- Without a width --------------------------------------------------------------------


@pytest.mark.parametrize("source", ["f8", "i2", "?", "c8", "S3", "U2", "M8[s]", "V5"], ids=str)
@pytest.mark.parametrize("target", [str, "U", "S", "V", bytes], ids=str)
def test_a_dtype_without_a_width_gets_numpys(source: str, target: Any) -> None:
    items = np.arange(20).reshape(4, 5).astype("S2" if source == "V5" else "i8").astype(source)
    a = caterva.asarray(items, chunks=(3, 2))
    try:
        wanted = items.astype(target)
    except (TypeError, ValueError) as error:
        with pytest.raises(type(error)):
            a.read(dtype=target, casting="unsafe")
        return
    part = np.s_[1:, [3, 0]]
    for got in (
        a.read(part, dtype=target, casting="unsafe"),
        a.read_async(part, dtype=target, casting="unsafe").result(),
        a.astype(target)[part],
        a.view[...].read(part, dtype=target, casting="unsafe"),
        a.view[...].astype(target)[part],
        np.asarray(a, dtype=target)[part],
        np.asarray(a.astype(target))[part],
        np.asarray(a.view[...], target)[part],
        caterva.asarray(items, dtype=target)[part],
        caterva.asarray(a, dtype=target)[part],
        caterva.asarray(iter(items.astype(target)), dtype=target)[part],
    ):
        assert got.tolist() == wanted[part].tolist()
    assert a.astype(target).dtype == wanted.dtype
    assert a.astype(target)[0, 1] == wanted[0, 1]


def test_lists_and_fills_of_a_dtype_without_a_width() -> None:
    assert caterva.asarray(["a", "bcd"], dtype=str)[:].tolist() == ["a", "bcd"]
    assert caterva.full(2, "abc", str)[:].tolist() == ["abc", "abc"]
    structured = caterva.zeros(2, [("x", "f8")])
    assert structured.read(dtype=str, casting="unsafe", field="x").tolist() == ["0.0", "0.0"]
    assert np.asarray(structured.fields["x"], str).tolist() == ["0.0", "0.0"]
    with pytest.raises(TypeError, match="no bytes"):
        caterva.zeros(2, "U")
    with pytest.raises(TypeError, match="does not convert"):
        structured.copy(dtype="U")


def test_times_without_a_unit() -> None:
    days = np.array(["2020-01-01", "2021-02-03"])
    a = caterva.asarray(days)
    assert np.array_equal(a.read(dtype="M8", casting="unsafe"), days.astype("M8"))
    assert np.asarray(a, "M8").dtype == "M8[D]"
    assert caterva.asarray(days, dtype="M8")[:].tolist() == days.astype("M8").tolist()
    with pytest.raises(TypeError, match="unit"):
        a.astype("M8")
    assert caterva.asarray(days.astype("M8[s]")).astype("M8").dtype == "M8[s]"


# ---- Iterators --------------------------------------------------------------------------

_ITEMS: list[list[Any]] = [
    ["a", "bcd", "efghi"],
    [1, 2.5, 3],
    [np.uint8(3), np.int16(-300)],
    [True, 0.5, 2],
    [1.5, 2j],
    [[1, 2], [2.5, 3]],
    [2**63, 1],
    [b"a", b"abc"],
]


@pytest.mark.parametrize("items", _ITEMS, ids=str)
def test_an_iterator_is_as_its_list(items: list[Any]) -> None:
    got, wanted = caterva.asarray(iter(items))[:], np.asarray(items)
    assert got.dtype == wanted.dtype and np.array_equal(got, wanted)


@pytest.mark.parametrize("items", _ITEMS, ids=str)
def test_an_iterator_loses_nothing_later(
    items: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    from caterva import _functions

    monkeypatch.setattr(_functions, "_FIRST_ITEMS", 1)
    with pytest.raises(TypeError, match=r"items 1 to \d of the iterator .* give a dtype"):
        caterva.asarray(iter(items), "no.b2nd")
    with pytest.raises(FileNotFoundError):
        caterva.open("no.b2nd")
    dtype = np.asarray(items).dtype
    assert np.array_equal(caterva.asarray(iter(items), dtype=dtype)[:], np.asarray(items))


def test_an_iterator_in_many_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    from caterva import _functions

    monkeypatch.setattr(_functions, "_FIRST_ITEMS", 7)
    items = np.arange(300).reshape(100, 3)
    a = caterva.asarray((row for row in items), chunks=(11, 3))
    assert a.dtype == items.dtype and np.array_equal(a[:], items)
    assert np.array_equal(caterva.asarray(map(float, range(50)))[:], np.arange(50.0))
    mixed = iter([1.5, *range(20)])  # all fit the dtype of the first items
    assert caterva.asarray(mixed).dtype == float


def test_an_iterator_of_tuples_is_of_structures() -> None:
    dtype = np.dtype([("a", "i2"), ("b", "f4")])
    rows = [(1, 2.5), (3, 4.5)]
    got = caterva.asarray(iter(rows), dtype=dtype)[:]
    assert got.dtype == dtype and got.tolist() == rows


def test_an_iterator_that_fails_leaves_nothing() -> None:
    def items() -> Iterator[int]:
        yield 1
        raise OSError("no more")

    with pytest.raises(OSError, match="no more"):
        caterva.asarray(items(), "no.b2nd")
    with pytest.raises(ValueError, match="inhomogeneous"):
        caterva.asarray(iter([[1, 2], [3]]), "no.b2nd")
    with pytest.raises(TypeError, match="Python objects"):
        caterva.asarray(iter([1, None]), "no.b2nd")
    with pytest.raises(FileNotFoundError):
        caterva.open("no.b2nd")


# ---- Records ----------------------------------------------------------------------------


def test_records_are_stored_as_structures() -> None:
    plain = [("a", "<i4"), ("b", "<f8", (2,))]
    record = np.dtype((np.record, plain))
    nested = np.dtype([("x", record), ("y", record, (3,)), ("z", "u1")])
    aligned = np.dtype((np.record, np.dtype([("a", "i1"), ("b", "f8")], align=True)))
    for dtype in (record, nested, aligned):
        items = np.zeros(4, dtype)
        items[dtype.names[-1]] = np.arange(4).reshape(
            4, *[1] * (items[dtype.names[-1]].ndim - 1)
        )
        caterva.save("r.b2nd", items.view(np.recarray), overwrite=True)
        a = caterva.open("r.b2nd")
        assert a.dtype == dtype and a[:].tobytes() == items.tobytes()
        assert caterva.zeros(3, dtype).dtype == dtype
        with caterva.open("r.b2nd", "r+") as w:
            w[1] = items[2]
            w.append(items.view(np.recarray)[:1])
        got = caterva.open("r.b2nd")[[1, 4]]
        if NUMPY_2 or dtype is not aligned:  # NumPy 1 leaves the padding of a copy undefined
            assert got.tobytes() == items[[2, 0]].tobytes()
        assert all(np.array_equal(got[n], items[[2, 0]][n]) for n in dtype.names)
    titled = np.dtype([(("title", "a"), record), ("b", "u1")])
    assert caterva.zeros(2, titled)[:].dtype["a"] == np.dtype(plain)


def test_fields_of_other_packages_are_refused() -> None:
    with pytest.raises(TypeError, match="bfloat16"):
        caterva.zeros(2, [("a", ml_dtypes.bfloat16)])


# ---- ml_dtypes --------------------------------------------------------------------------

_FOREIGN = [
    np.dtype(each)
    for each in vars(ml_dtypes).values()
    if isinstance(each, type) and issubclass(each, np.generic)
]


@pytest.mark.parametrize("dtype", _FOREIGN, ids=str)
def test_every_dtype_of_ml_dtypes_comes_back(dtype: np.dtype[Any]) -> None:
    items = np.array([0, 1, 1, 0]).astype("f4").astype(dtype)
    caterva.save("m.b2nd", items)
    a = caterva.open("m.b2nd")
    assert a.dtype == dtype and a[:].tobytes() == items.tobytes()
    assert caterva.full(2, items[1])[:].tobytes() == items[1:3].tobytes()


def test_copies_convert_or_refuse() -> None:
    items = np.array([0, 1, 1.5, -2, 3], "f4")
    long = "g" if np.dtype("g").itemsize > 8 else "S4"  # 8 bytes on Windows
    for source in (ml_dtypes.float8_e4m3fn, ml_dtypes.bfloat16, "S3", "M8[s]", long, "V1"):
        a = caterva.zeros(5, source)
        for target in (ml_dtypes.int4, ml_dtypes.float8_e5m2, "f4", "V1", "m8[s]", "U5"):
            if a.dtype == np.dtype(target):
                assert a.copy(dtype=target).dtype == a.dtype
                continue
            with pytest.raises(caterva.DTypeError, match="does not convert"):
                a.copy("no.b2nd", dtype=target, casting="unsafe")
    a = caterva.asarray(items.astype(ml_dtypes.float8_e4m3fn))
    wanted = items.astype(ml_dtypes.float8_e4m3fn).astype(ml_dtypes.int4)
    got = caterva.asarray(a.astype(ml_dtypes.int4))  # the message suggests this
    assert got.dtype == wanted.dtype and got[:].tobytes() == wanted.tobytes()


def test_arrays_of_two_dtypes_are_not_joined() -> None:
    a = caterva.zeros(2, ml_dtypes.float8_e3m4)
    for other in (ml_dtypes.float8_e4m3fn, "V1", "i1"):
        for join in (caterva.concat, caterva.stack):
            with pytest.raises(TypeError, match="dtype"):
                join([a, caterva.zeros(2, other)])
    assert caterva.concat([a, a]).dtype == a.dtype


# ---- Floats outside the range of integers -----------------------------------------------

_OUTSIDE = [-2.5, 300.0, -1.0, np.nan, np.inf, -np.inf, 1e30, -1e30, 127.9, 254.5, 2.0**63]
_INTEGERS = ["i1", "u1", "i2", ">u2", "i4", "u4", ">i8", "u8"]


def _nearest(value: float, dtype: np.dtype[Any]) -> int:
    limits = np.iinfo(dtype)
    if np.isnan(value):
        return 0
    return int(limits.min if value < limits.min else min(value, limits.max))


@pytest.mark.parametrize("target", _INTEGERS)
@pytest.mark.parametrize("source", ["f4", ">f8", "g", "c8", "bfloat16", "float8_e5m2"])
def test_floats_become_the_nearest_integer_wherever_they_go(source: str, target: str) -> None:
    kind = np.dtype(getattr(ml_dtypes, source, source))
    dtype = np.dtype(target)
    with warnings.catch_warnings(action="ignore"):
        items = np.array(_OUTSIDE).astype(kind)
        real = [float(np.real(v)) for v in items.astype("c16")]
        wanted = [_nearest(v, dtype) for v in real]
        a = caterva.asarray(items, chunks=(4,))
        n = len(items)
        into = [caterva.zeros(n, dtype) for _ in range(6)]
        into[0][...] = items
        into[1][::-1] = items[::-1]
        into[2][np.ones(n, bool)] = items
        into[3].oindex[list(range(n))] = items
        into[4].view[...][...] = items
        for i in range(n):
            into[5][i] = items[i : i + 1].reshape(())
        grown = caterva.zeros(0, dtype)
        grown.append(items)
        record = caterva.zeros(n, [("x", dtype), ("y", "f4")])
        record.fields["x"][...] = items
        inner = "f8" if kind.isbuiltin == 2 else kind
        field = caterva.zeros(n, [("y", "i1"), ("x", inner)])
        field.fields["x"][:] = items
        found = [
            a.read(dtype=dtype, casting="unsafe"),
            a.read_async(dtype=dtype, casting="unsafe").result(),
            a.astype(dtype)[:],
            a.view[...].astype(dtype)[:],
            np.asarray(a, dtype),
            caterva.asarray(items, dtype=dtype)[:],
            caterva.asarray(a.astype(dtype))[:],
            *(each[:] for each in into),
            grown[:],
            record.fields["x"][:],
            field.read(field="x", dtype=dtype, casting="unsafe"),
            np.asarray(field.fields["x"], dtype),
            [caterva.full(1, items[i : i + 1].reshape(()), dtype)[0] for i in range(n)],
        ]
        if kind.isbuiltin == 1 and kind.char != "g":
            found.append(a.copy(dtype=dtype, casting="unsafe")[:])
    for i, got in enumerate(found):
        assert list(got) == wanted, f"way {i}"


def test_lists_of_floats_are_numpys_or_the_nearest() -> None:
    a = caterva.zeros(3, "u1")
    if NUMPY_2:
        with pytest.raises(OverflowError):
            a[:] = [1.0, 300.0, 2.0]
    with pytest.raises(ValueError, match="NaN"):
        a[0] = float("nan")
    with warnings.catch_warnings(action="ignore"):
        a[:] = [np.float32(300), np.float64(-4), 7.9]
    assert a[:].tolist() == [255, 0, 7]
    big = caterva.zeros(2, "i8")
    big[:] = [2**62 + 1, 0.5]
    assert big[:].tolist() == [2**62 + 1, 0]

"""Creating, filling, copying, describing and reducing arrays of all kinds."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import blosc2
import caterva
import ml_dtypes
import numpy as np
import pytest

DTYPES = ["?", "i1", "u8", "f2", "f4", ">f8", "c16", "S5", "U3", "M8[ns]", "m8[3D]", "V7",
          [("a", "<i4"), ("b", ">f8", (3,))],
          np.dtype({"names": ["x", "y"], "formats": ["u1", "f4"], "offsets": [0, 4],
                    "itemsize": 12}),
          np.dtype([("a", "i1"), ("b", "f8")], align=True)]  # fmt: skip


def _items(dtype: np.dtype[Any], shape: tuple[int, ...] = (5, 7)) -> np.ndarray[Any, Any]:
    rng = np.random.default_rng(3)
    raw = np.zeros(shape, dtype)
    if dtype.names is None and dtype.kind not in "SUV":
        raw[...] = rng.integers(0, 100, shape).astype(dtype if dtype.kind not in "mM" else "i8")
    elif dtype.kind in "SU":
        raw[...] = rng.integers(0, 100, shape).astype(dtype)
    elif dtype.names is not None:
        for name in dtype.names:
            raw[name] = rng.integers(0, 100, raw[name].shape)
    else:
        raw[...] = b"abcdefg"
    return raw


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_every_dtype_comes_back(dtype: Any) -> None:
    items = _items(np.dtype(dtype))
    caterva.save("a.b2nd", items)
    a = caterva.open("a.b2nd")
    assert a.dtype == items.dtype and a.shape == items.shape
    assert a[:].tobytes() == items.tobytes()
    assert a[2, 3].tobytes() == items[2, 3].tobytes()
    assert type(a[2, 3]) is type(items[2, 3])
    ours = blosc2.open("a.b2nd", mode="r")
    assert ours.dtype == items.dtype and ours[:].tobytes() == items.tobytes()


@pytest.mark.parametrize(
    "dtype", ["i4", "f8", [("a", "<i4"), ("b", "<f8", (3,))], "S5"], ids=str
)
def test_arrays_of_blosc2_are_read(dtype: Any) -> None:
    items = _items(np.dtype(dtype))
    theirs = blosc2.asarray(items, urlpath="b.b2nd", mode="w")
    theirs.schunk.vlmeta["note"] = {"a": [1, (2, 3)], "b": 1.5}
    a = caterva.open("b.b2nd")
    assert a[:].tobytes() == items.tobytes()
    assert a.attrs["note"] == {"a": [1, (2, 3)], "b": 1.5}


@pytest.mark.parametrize("name", ["bfloat16", "float8_e4m3fn"])
def test_dtypes_of_ml_dtypes(name: str) -> None:
    dtype = np.dtype(getattr(ml_dtypes, name))
    items = np.arange(24, dtype="f4").reshape(4, 6).astype(dtype)
    caterva.save("a.b2nd", items, chunks=(2, 6))
    a = caterva.open("a.b2nd")
    assert a.dtype == dtype
    assert np.array_equal(a[1:, ::2], items[1:, ::2])
    assert np.array_equal(a.astype("f4")[:], items.astype("f4"))
    assert type(a[0, 0]) is dtype.type


def test_reading_as_bfloat16() -> None:
    items = np.linspace(0, 9, 60, dtype="f4").reshape(6, 10)
    a = caterva.asarray(items)
    assert (
        a.read(dtype=ml_dtypes.bfloat16, casting="unsafe").tobytes()
        == items.astype(ml_dtypes.bfloat16).tobytes()
    )


@pytest.mark.parametrize("source", ["?", "i2", "u8", "f4", ">f8", "c8"])
@pytest.mark.parametrize("target", ["?", "i8", "u1", "f2", ">f4", "c16"])
def test_casts_are_numpys(source: str, target: str) -> None:
    items = (np.arange(60).reshape(6, 10) % 100).astype(source)
    a = caterva.asarray(items, chunks=(3, 4))
    for casting in ("safe", "same_kind", "unsafe"):
        allowed = np.can_cast(items.dtype, np.dtype(target), casting)
        if not allowed:
            with pytest.raises(TypeError, match="cast"):
                a.read(dtype=target, casting=casting)
            continue
        with warnings.catch_warnings(action="ignore"):
            wanted = items[1:, [1, 5]].astype(target)
            got = a.read(np.s_[1:, [1, 5]], dtype=target, casting=casting)
        assert got.dtype == wanted.dtype and np.array_equal(got, wanted)


def test_reading_into_memory() -> None:
    items = np.arange(60).reshape(6, 10)
    a = caterva.asarray(items, chunks=(3, 4))
    out = np.zeros((10, 6), int)
    assert a.read(out=out.T) is not None
    assert np.array_equal(out, items.T)
    wide = np.zeros((6, 20), "f4")
    a.read(out=wide[:, ::2])
    assert np.array_equal(wide[:, ::2], items) and not wide[:, 1::2].any()
    with pytest.raises(ValueError, match="shape"):
        a.read(out=np.zeros(3, int))
    fixed = np.zeros((6, 10), int)
    fixed.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        a.read(out=fixed)
    with pytest.raises(TypeError, match="cast"):
        a.read(out=np.zeros((6, 10), "i2"), casting="safe")


# ---- From anything ------------------------------------------------------------------------


class _Foreign:
    """An array of another package: shape, dtype and slices; counts its reads."""

    def __init__(self, items: np.ndarray[Any, Any]) -> None:
        self.items = items
        self.shape, self.dtype = items.shape, items.dtype
        self.largest = 0

    def __getitem__(self, key: Any) -> np.ndarray[Any, Any]:
        part = self.items[key]
        self.largest = max(self.largest, part.nbytes)
        return part


def test_asarray_of_anything(monkeypatch: pytest.MonkeyPatch) -> None:
    from caterva import _filling

    items = np.arange(30 * 40 * 5).reshape(30, 40, 5)
    monkeypatch.setattr(_filling, "SLAB_BYTES", 8000)
    foreign = _Foreign(items)
    a = caterva.asarray(foreign, "f.b2nd", chunks=(7, 20, 5))
    assert np.array_equal(a[:], items) and foreign.largest <= 8000
    np.save("m.npy", items)
    assert np.array_equal(caterva.asarray(np.load("m.npy", mmap_mode="r"))[:], items)
    assert np.array_equal(caterva.asarray(np.asfortranarray(items))[:], items)
    assert np.array_equal(caterva.asarray(items.tolist())[:], items)
    assert np.array_equal(caterva.asarray(iter(items), chunks=(7, 20, 5))[:], items)
    assert caterva.asarray(a) is a and caterva.asarray(a, fill_value=7).fill_value == 7
    assert np.array_equal(caterva.asarray(a, codec="lz4")[:], items)
    assert np.array_equal(caterva.asarray(a.view[::2].T)[:], items[::2].T)
    assert caterva.asarray(5).shape == ()
    assert caterva.asarray(a, dtype="f4").dtype == np.float32
    with pytest.raises(TypeError, match="objects"):
        caterva.asarray([{}, None])
    with pytest.raises(ValueError, match="empty"):
        caterva.asarray(iter(()))


def test_a_failing_source_leaves_nothing() -> None:
    def rows() -> Iterator[Any]:
        yield [1, 2]
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        caterva.asarray(rows(), "g.b2nd")
    assert list(Path().iterdir()) == []


def test_storage_options() -> None:
    a = caterva.create(
        (100, 200), "f4", "o.b2nd", chunks=50, blocks=(10, 50), codec="lz4hc", level=7,
        filters="bitshuffle", metalayers={"mine": b"12345", "other": {"a": 1}}, threads=1,
        durability="none", cache_bytes=-1, fill_value=np.nan,
    )  # fmt: skip
    a.metalayers["mine"] = b"54321"
    a.close()
    a = caterva.open("o.b2nd")
    info = a.info
    assert (a.chunks, a.blocks) == ((50, 50), (10, 50))
    assert (info.codec, info.level, info.filters) == ("lz4hc", 7, ("bitshuffle",))
    assert a.metalayers["mine"] == b"54321" and list(a.metalayers) == ["b2nd", "mine", "other"]
    assert np.isnan(a.fill_value) and np.isnan(a[3, 3]) and "lz4hc" in repr(info)
    assert a.chunk(0).kind == "nan" and a.n_chunks == 8
    b = caterva.create(10, "i4", "s.b2nd", layout="sparse", chunks=2, fill_value=7)
    b.close()
    assert Path("s.b2nd").is_dir() and caterva.open("s.b2nd")[:].tolist() == [7] * 10


def test_copies() -> None:
    items = np.arange(600).reshape(20, 30)
    a = caterva.asarray(items, "a.b2nd", chunks=(5, 10))
    a.attrs["k"] = "v"
    a.commit()
    b = a.copy("b.b2nd", np.s_[5:, 10:20], codec="lz4", chunks=(3, 10), blocks=(3, 10))
    assert np.array_equal(b[:], items[5:, 10:20]) and b.attrs["k"] == "v"
    assert b.info.codec == "lz4" and b.chunks == (3, 10)
    c = a.copy(None, np.s_[::-1, None, 3])
    assert np.array_equal(c[:], items[::-1, None, 3])
    assert np.array_equal(a.copy(dtype="f4")[:], items.astype("f4"))
    assert a.copy("d.b2nd", layout="sparse").info.layout == "sparse"
    with pytest.raises(FileExistsError):
        a.copy("b.b2nd")
    with pytest.raises(TypeError, match="option"):
        a.copy(colour="red")
    joined = caterva.concat([a, a.view[:3]]).copy("e.b2nd")
    assert np.array_equal(joined[:], np.concatenate([items, items[:3]]))
    assert np.array_equal(caterva.stack([a, a], 1)[:, 1, 2:5], items[:, 2:5])
    with pytest.raises(ValueError, match="several arrays"):
        caterva.concat([a, a])[0] = 1


def test_changes_of_shape() -> None:
    items = np.arange(24).reshape(4, 6)
    a = caterva.asarray(items, chunks=(2, 3), fill_value=-1)
    a.append(items[:, :2], axis=1)
    items = np.append(items, items[:, :2], axis=1)
    a.insert(1, n=2)
    items = np.insert(items, [1, 1], -1, axis=0)
    a.insert(-1, np.arange(6), axis=-1)
    items = np.insert(items, 7, np.arange(6), axis=1)
    assert np.array_equal(a[:], items)
    a.remove(-1)
    a.remove(1, 3, axis=1)
    items = np.delete(items[:-1], [1, 2], axis=1)
    assert np.array_equal(a[:], items)
    a.resize(3, 10)
    assert a.shape == (3, 10) and (a[:, 7:] == -1).all()
    for wrong in (np.zeros((2, 3)), 5, np.zeros((1, 1, 1, 1))):
        with pytest.raises(ValueError, match="shape"):
            a.append(wrong)
    with pytest.raises(IndexError):
        a.insert(99, np.zeros(10))
    with pytest.raises(np.exceptions.AxisError):
        a.append(np.zeros(3), axis=5)
    assert a.shape == (3, 10)


def test_chunks_and_blocks() -> None:
    items = np.arange(70).reshape(7, 10)
    a = caterva.asarray(items, "c.b2nd", chunks=(3, 4), blocks=(2, 4))
    a.commit()
    seen = np.zeros_like(items)
    for place in a.iter_chunks():
        seen[place] += a[place]
    assert np.array_equal(seen, items)
    assert [c.index for c in a.chunk_infos()][4] == (1, 1)
    block = a.block(4, 1)
    assert (block.start, block.stop) == ((5, 4), (6, 8))
    b = caterva.create((7, 10), a.dtype, chunks=(3, 4), blocks=(2, 4))
    for number in range(a.n_chunks):
        b.write_chunk(number, a.read_chunk(number))
    assert np.array_equal(b[:], items)
    with pytest.raises(IndexError):
        a.chunk(99)
    a.prefetch(np.s_[1:3])
    assert set(a.cache) == set(caterva.cache())


# ---- Attributes ---------------------------------------------------------------------------


VALUES: list[Any] = [
    None, True, 0, -1, 127, 128, -32, -33, 1 << 40, -(1 << 62), (1 << 64) - 1, 1.5, "",
    "ü" * 40,
    b"", b"x" * 300, [], [1, [2, "3"]], list(range(20)), (1, (2, 3)), {}, {"a": {"b": [None]}},
    1 + 2j, {1, 2, 3}, "s" * 70000, {str(i): i for i in range(20)},
]  # fmt: skip


def test_attributes_are_blosc2s() -> None:
    a = caterva.zeros(3, path="a.b2nd")
    for n, value in enumerate(VALUES):
        a.attrs["v"] = value
        assert a.attrs["v"] == value and type(a.attrs["v"]) is type(value), n
    a.attrs["v"] = {"all": VALUES[:20]}
    a.attrs["array"] = np.arange(6, dtype="<i2").reshape(2, 3)
    a.attrs["fields"] = np.array([(1, 2.0)], [("x", "i4"), ("y", "f8")])
    a.attrs["scalar"] = np.float32(1.5)
    assert a.attrs["array"].dtype == np.dtype("<i2") and a.attrs["array"].shape == (2, 3)
    assert len(a.attrs) == 4 and "scalar" in a.attrs
    del a.attrs["scalar"]
    with pytest.raises(KeyError):
        del a.attrs["scalar"]
    with pytest.raises(TypeError, match="object"):
        a.attrs["o"] = object()
    a.close()
    opened = blosc2.open("a.b2nd", mode="r")
    theirs = opened.schunk.vlmeta
    assert theirs["v"] == {"all": VALUES[:20]}
    assert np.array_equal(theirs["array"], np.arange(6).reshape(2, 3))
    assert theirs["fields"]["y"][0] == 2.0


SCALARS: list[Any] = [
    np.int8(-1), np.uint8(255), np.int16(-32767), np.uint64(1 << 63), np.float32(1.5),
    np.float64(-0.0), np.float16(2), np.complex64(1 + 2j), np.bool_(True),
    np.datetime64("2020-01-02T03", "h"), np.timedelta64(5, "D"), np.dtype(">i4").type(7),
]  # fmt: skip


def test_scalars_keep_their_type() -> None:
    a = caterva.zeros(3, path="scalars.b2nd")
    for n, value in enumerate(SCALARS):
        a.attrs[f"v{n}"] = value
    a.attrs["list"] = [np.int16(3), {"x": np.float32(4)}]
    a.attrs["text"], a.attrs["bytes"] = np.str_("ä"), np.bytes_(b"b")
    a.close()
    a = caterva.open("scalars.b2nd")
    for n, value in enumerate(SCALARS):
        there = a.attrs[f"v{n}"]
        assert type(there) is type(value) and there.dtype == value.dtype
        assert there.tobytes() == value.tobytes()
    assert [type(v) for v in a.attrs["list"]] == [np.int16, dict]
    assert type(a.attrs["list"][1]["x"]) is np.float32
    assert (a.attrs["text"], a.attrs["bytes"]) == ("ä", b"b")
    opened = blosc2.open("scalars.b2nd", mode="r")
    theirs = opened.schunk.vlmeta
    assert theirs["v2"].dtype == np.int16 and theirs["v2"] == -32767


def test_dimensions_have_names() -> None:
    a = caterva.create((2, 3), "i2", "dims.b2nd", dims=("time", None))
    assert a.dims == ("time", None) and a.attrs["dims"] == ["time", None]
    for names in (("ti\0me", None), ("time", "\0")):
        with pytest.raises(ValueError, match="zero character"):
            a.dims = names
        with pytest.raises(ValueError, match="zero character"):
            caterva.create((2, 3), "i2", dims=names)
    assert a.dims == ("time", None)
    a.dims = ["t", "x"]
    assert a.info.dims == ("t", "x") and "t, x" in repr(a.info) and "t, x" in a._repr_html_()
    a.close()
    with caterva.open("dims.b2nd", "r+") as b:
        assert b.dims == ("t", "x")
        assert b.copy(sel=np.s_[1:]).dims == b.dims
        assert b.T.copy().dims == ("x", "t") and b.view[0].copy().dims == ("x",)
        assert b.copy(dims=("u", "v")).dims == ("u", "v")
        b.dims = None
        assert b.dims == (None, None) and "dims" not in b.attrs
        with pytest.raises(ValueError, match="1 names"):
            b.dims = ["x"]
        with pytest.raises(TypeError, match="str"):
            b.dims = "xy"
        with pytest.raises(TypeError, match="3"):
            b.dims = ["x", 3]  # type: ignore[list-item]
        b.attrs["_ARRAY_DIMENSIONS"] = ["p", "q"]
        assert b.dims == ("p", "q")
    with pytest.raises(ValueError):
        caterva.zeros(3, path="never.b2nd", dims=("a", "b"))
    assert not Path("never.b2nd").exists()
    with pytest.raises(caterva.Error):
        caterva.open("dims.b2nd").dims = ["x", "y"]


def nested(n: int, kind: type) -> Any:
    value: Any = 1
    for _ in range(n):
        value = {"k": value} if kind is dict else kind([value])
    return value


@pytest.mark.parametrize("kind", [list, tuple, dict])
def test_attributes_as_deep_as_they_can_be_read(kind: type) -> None:
    a = caterva.zeros(3, path="deep.b2nd")
    a.attrs["x"] = nested(100, kind)
    for n in (101, 300, 100_000):
        with pytest.raises(ValueError, match="attribute cannot hold"):
            a.attrs["x"] = nested(n, kind)
    a.close()
    assert caterva.open("deep.b2nd").attrs["x"] == nested(100, kind)


def test_attributes_that_could_not_be_read() -> None:
    """They are refused when they are set, and nothing changes."""
    a = caterva.zeros(3)
    a.attrs["x"] = 1
    circle: list[Any] = []
    circle.append(circle)
    fields: Any = "i4"
    for _ in range(60):
        fields = [("f", fields)]
    for value in (
        {frozenset({1}): 2},
        [{(1, (frozenset(),)): 2}],
        {frozenset({1})},
        {(1, frozenset({2}))},
        circle,
        np.zeros(2, fields),
    ):
        with pytest.raises((TypeError, ValueError), match="attribute cannot hold"):
            a.attrs["x"] = value
        with pytest.raises((TypeError, ValueError), match="attribute cannot hold"):
            caterva.zeros(3, path="never.b2nd", metalayers={"m": value})
    assert dict(a.attrs) == {"x": 1} and not Path("never.b2nd").exists()
    a.attrs["x"] = {(1, 2): {3, (4, "five")}, None: frozenset({6})}
    assert a.attrs["x"] == {(1, 2): {3, (4, "five")}, None: {6}}


def test_attributes_that_are_no_msgpack() -> None:
    a = caterva.zeros(3)
    for raw in (
        b"",
        b"\xc1",
        b"\x92\x01",
        b"\xdd\xff\xff\xff\xff",
        b"\x91" * 5000,
        b"\x01\x01",
        b"\x81\x90\x01",  # a list as a key
    ):
        a.attrs.set_raw("x", raw or b"\xc1")
        with pytest.raises(ValueError, match="msgpack"):
            a.attrs["x"]


# ---- Numbers ------------------------------------------------------------------------------

NARROW_SUMS = np.dtype(int).itemsize == 4  # NumPy 1 on Windows adds small integers in 32 bits


@pytest.mark.parametrize("dtype", ["?", "i1", "u2", "i8", "f4", ">f8", "f2"])
def test_reductions_are_numpys(dtype: str) -> None:
    items = np.random.default_rng(2).integers(0, 50, (6, 7, 8)).astype(dtype)
    a = caterva.asarray(items, chunks=(4, 3, 8), blocks=(2, 3, 4))
    wide = items.astype("f8") if items.dtype.kind == "f" else items
    for axis in (None, 0, -1, (0, 2), (), (2, 1, 0)):
        for keep in (False, True):
            for name in ("min", "max", "sum", "mean", "var", "std"):
                theirs = getattr(wide, name)(axis=axis, keepdims=keep)
                ours = getattr(a, name)(axis, keepdims=keep)
                with warnings.catch_warnings(action="ignore"):  # float16 overflows
                    kind = getattr(items, name)(axis=axis, keepdims=keep)
                assert ours.dtype == kind.dtype or (name == "sum" and NARROW_SUMS), (name, axis)
                assert ours.shape == kind.shape, (name, axis)
                np.testing.assert_allclose(ours, theirs.astype(kind.dtype), rtol=1e-6)
    part = np.s_[1:5, ::2, 3]
    np.testing.assert_allclose(
        a.mean(0, sel=part), wide[part].mean(axis=0).astype(a.mean().dtype)
    )
    back = np.s_[::-1, 1:, ::-2]
    np.testing.assert_allclose(a.std(1, sel=back), wide[back].std(axis=1), rtol=1e-3)
    np.testing.assert_array_equal(a.max((), sel=back), wide[back])
    np.testing.assert_array_equal(
        a.min(1, sel=back, keepdims=True), wide[back].min(1, keepdims=True)
    )
    assert a.statistics(part).n_items == wide[part].size


LISTS = [
    np.s_[[0, 3, 5, 3]],
    np.s_[::-1, [6, 0]],
    np.s_[2, :, [1, 1, 7]],  # the axis of the list comes first
    np.s_[[5, 0], 1::2, 3],
    np.s_[:, np.arange(7) % 2 == 0],
    np.s_[[]],
    np.s_[:, np.zeros(7, bool)],
    np.s_[:, [4]],
    np.s_[1:, ::-1, np.arange(8) == 3],
    np.arange(6 * 7 * 8).reshape(6, 7, 8) % 5 == 1,
    np.zeros((6, 7, 8), bool),
]


@pytest.mark.parametrize("sel", LISTS, ids=range(len(LISTS)))
def test_reductions_of_lists_and_masks(sel: Any) -> None:
    items = np.random.default_rng(3).integers(-50, 50, (6, 7, 8))
    a = caterva.asarray(items, chunks=(4, 3, 8), blocks=(2, 3, 4))
    part = items[sel]
    axes = [None, (), *range(part.ndim)] if part.ndim < 2 else [None, (), 0, -1, (0, 1)]
    for axis in axes:
        for keep in (False, True):
            for name in ("sum", "max") if part.size else ("sum",):
                ours = getattr(a, name)(axis, sel=sel, keepdims=keep)
                theirs = getattr(part, name)(axis=axis, keepdims=keep)
                assert ours.shape == theirs.shape, (name, axis)
                np.testing.assert_array_equal(ours, theirs)
    found = a.statistics(sel)
    assert (found.n_items, found.sum) == (part.size, part.sum())
    counts, _ = a.histogram(7, (-50, 50), sel=sel)
    np.testing.assert_array_equal(counts, np.histogram(part, 7, (-50, 50))[0])


def test_reductions_take_no_lists_that_go_together() -> None:
    a = caterva.asarray(np.arange(12).reshape(3, 4))
    for sel in (np.s_[[0, 1], [2, 3]], np.s_[None, 1], np.s_[[[0, 1], [2, 0]]]):
        with pytest.raises(IndexError, match="a reduction takes"):
            a.sum(sel=sel)


def test_numbers_that_are_none() -> None:
    items = np.array([[1.0, np.nan], [3.0, 4.0]])
    a = caterva.asarray(items)
    assert np.isnan(a.max()) and a.max(skip_nan=True) == 4
    assert np.isnan(a.sum(axis=0)[1]) and a.sum(axis=0, skip_nan=True).tolist() == [4, 4]
    assert np.isnan(a.std())
    counts, edges = a.histogram(4, (0, 8))
    theirs = np.histogram(items[~np.isnan(items)], 4, (0, 8))
    assert np.array_equal(counts, theirs[0]) and np.array_equal(edges, theirs[1])
    with pytest.raises(ValueError, match="finite"):
        a.histogram()
    with pytest.raises(ValueError, match="not finite; give range="):
        caterva.asarray(np.array([1.0, np.inf])).histogram()
    with pytest.raises(TypeError, match="edges are not supported"):
        a.histogram([0, 3, 6])  # type: ignore[arg-type]
    with pytest.raises(ValueError):
        caterva.zeros((0, 3)).min()
    with pytest.raises(np.exceptions.AxisError):
        a.sum(axis=2)
    with pytest.raises(ValueError, match="duplicate"):
        a.sum(axis=(0, -2))
    with pytest.raises((TypeError, NotImplementedError)):
        caterva.zeros(3, "S3").sum()


def test_repr_and_iteration() -> None:
    items = np.arange(12, dtype="i8").reshape(3, 4)
    a = caterva.asarray(items, "r.b2nd")
    assert "shape=(3, 4)" in repr(a) and "int64" in repr(a) and "r.b2nd" in repr(a)
    assert [row.tolist() for row in a] == items.tolist()
    assert len(a) == 3 and a.size == 12 and a.nbytes == 96 and a.ndim == 2
    with pytest.raises(TypeError):
        len(caterva.zeros(()))
    with pytest.raises(ValueError, match="ambiguous"):
        bool(a)
    assert caterva.full((), 2)
    assert np.add(a, 1).sum() == 78


@pytest.mark.parametrize("dtype", ["?", "i1", "u8", "f2", ">f4", "f8", ">i2"])
@pytest.mark.parametrize("name", ["sum", "mean", "min", "max", "var", "std"])
def test_reductions_over_no_axis_are_numpys(dtype: str, name: str) -> None:
    items = np.random.default_rng(9).integers(0, 90, (5, 6, 7)).astype(dtype)
    if items.dtype.kind == "f":
        items[2, 3, :2] = np.nan
    a = caterva.asarray(items, chunks=(3, 4, 5))
    for sel in (np.s_[...], np.s_[::-1, 1:3, ::2], np.s_[0]):
        got = getattr(a, name)(axis=(), sel=sel)
        wanted = getattr(items[sel], name)(axis=())
        assert got.dtype == wanted.dtype.newbyteorder("=") or (name == "sum" and NARROW_SUMS)
        assert np.array_equal(got, wanted, equal_nan=items.dtype.kind == "f")
        if items.dtype.kind == "f" and name not in ("var", "std"):
            with warnings.catch_warnings(action="ignore"):
                wanted = getattr(np, f"nan{name}")(items[sel], axis=())
            got = getattr(a, name)(axis=(), sel=sel, skip_nan=True)
            assert np.array_equal(got, wanted, equal_nan=True)


@pytest.mark.parametrize("dtype", ["U3", "S2", "c8", "V4", "bfloat16", "float8_e5m2"])
def test_what_cannot_be_reduced_is_refused(dtype: str) -> None:
    a = caterva.zeros(3, getattr(ml_dtypes, dtype, dtype))
    for name in ("sum", "mean", "min", "max", "var", "std"):
        for axis in (None, 0, ()):
            with pytest.raises(TypeError):
                getattr(a, name)(axis=axis)
    for name in ("sum", "mean"):
        with pytest.raises(TypeError):
            getattr(caterva.zeros(3, "m8[s]"), name)(axis=())


# ---- What growing and shrinking accept ----------------------------------------------------


@pytest.mark.parametrize("fill", (0, math.nan))
def test_runs_of_special_chunks(fill: float) -> None:
    """Reductions handle chunks that are not stored together, in boxes of any form."""
    rng = np.random.default_rng(7)
    for turn in range(40):
        shape = tuple(map(int, rng.integers(1, (500, 40, 14, 8)[turn % 4], turn % 4 + 1)))
        chunks = tuple(int(rng.integers(1, max(2, n // 3 + 1))) for n in shape)
        path = f"{turn}.b2nd"
        with caterva.full(shape, fill, "f4", path, chunks=chunks, blocks=chunks) as a:
            for _ in range(rng.integers(0, 4)):
                ends = [sorted(rng.integers(0, n + 1, 2).tolist()) for n in shape]
                a[tuple(slice(*pair) for pair in ends)] = int(rng.integers(-9, 9))
        a = caterva.open(path, threads=int(rng.integers(1, 4)))
        ends = [sorted(rng.integers(0, n + 1, 2).tolist()) for n in shape]
        for sel in (..., tuple(slice(*pair) for pair in ends), np.s_[shape[0] // 2 :]):
            items, view = a[sel], a.view[sel]
            numbers = items[~np.isnan(items)]
            found = view.statistics()
            assert (found.n_items, found.n_nan) == (items.size, items.size - numbers.size)
            if numbers.size:
                assert (found.min, found.max) == (numbers.min(), numbers.max())
                assert found.sum == numbers.sum(dtype="f8")
                assert math.isclose(found.std, numbers.std(dtype="f8"), abs_tol=1e-9)
            counted = view.histogram(5, range=(-9, 9))[0]
            assert (counted == np.histogram(numbers, 5, (-9, 9))[0]).all()
            for axis in range(items.ndim):
                sums = view.sum(axis=axis)
                np.testing.assert_array_equal(sums, items.sum(axis=axis, dtype="f8"))


def test_many_special_chunks_cost_little() -> None:
    n = 2**28 - 5
    caterva.zeros(n, "i4", "many.b2nd", chunks=1, blocks=1).close()
    a = caterva.open("many.b2nd")
    began = time.process_time()
    assert a.statistics().n_items == n and a.sum() == 0 and a.max() == 0
    assert a.histogram(3, range=(0, 3))[0].tolist() == [n, 0, 0]
    assert a.verify() and a.space().special_chunks == n
    a.copy("copy.b2nd").close()
    assert time.process_time() - began < 10  # chunk by chunk it would take minutes


def test_remove_is_del_of_a_slice() -> None:
    for start, stop in ((0, 100), (3, 100), (-2, 100), (-100, 2), (4, 2), (5, 9), (100, 200)):
        a, items = caterva.asarray(np.arange(5)), list(range(5))
        a.remove(start, stop)
        del items[start:stop]
        assert a[:].tolist() == items
    for start in (5, -6):
        with pytest.raises(IndexError):
            caterva.asarray(np.arange(5)).remove(start)


def test_casting_of_what_is_appended() -> None:
    a = caterva.zeros(1, "i4")
    a.append([0.7, 1.9])
    a.insert(0, np.array([2.5]))
    assert a[:].tolist() == [2, 0, 0, 1]  # as an assignment does
    for items in ([0.7, 1.9], np.array([0.7]), caterva.asarray([0.7])):
        for casting in ("no", "equiv", "safe", "same_kind"):
            with pytest.raises(TypeError, match=f"float64 cannot be cast to int32.*{casting}"):
                a.append(items, casting=casting)
            with pytest.raises(TypeError, match="cannot be cast"):
                a.insert(0, items, casting=casting)
    a.append([3], casting="same_kind")
    a.append(np.array([4], "i2"), casting="safe")
    with pytest.raises(TypeError, match="int64"):
        a.append(np.array([5], "i8"), casting="safe")
    assert a[:].tolist() == [2, 0, 0, 1, 3, 4]

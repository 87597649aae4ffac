"""Views of one or several arrays, read in the background and reduced, compared with NumPy."""

from __future__ import annotations

import asyncio
import gc
import warnings
import weakref
from typing import Any

import caterva
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import PATIENCE, cube, in_child, status_of, until_caught
from test_indexing import _assert_same, _outcome, keys

Pair = tuple[np.ndarray[Any, Any], Any]


@st.composite
def views(draw: st.DrawFn, dtypes: tuple[str, ...] = ("i4", ">f8", "u1", "?", "f4")) -> Pair:
    """A NumPy array, and a view of arrays with the same items."""
    shape = tuple(draw(st.lists(st.integers(1, 6), min_size=2, max_size=3)))
    dtype = np.dtype(draw(st.sampled_from(dtypes)))
    pairs: list[Pair] = []
    for number in range(draw(st.integers(1, 3))):
        items = (np.arange(np.prod(shape)) * 7 % 50 + number).astype(dtype).reshape(shape)
        if dtype.kind == "f" and draw(st.booleans()):
            items[draw(st.integers(0, shape[0] - 1))] = np.nan
        chunks = [draw(st.integers(1, n)) for n in shape]
        pairs.append((items, caterva.asarray(items, chunks=chunks).view[...]))
    theirs, ours = pairs[0]
    if len(pairs) > 1:
        join = draw(st.sampled_from(["stack", "concat"]))
        axis = draw(st.integers(0, len(shape) - (join == "concat")))
        together = np.stack if join == "stack" else np.concatenate
        theirs = together([pair[0] for pair in pairs], axis).astype(dtype)
        ours = getattr(caterva, join)([pair[1] for pair in pairs], axis)
    if draw(st.booleans()):
        theirs, ours = theirs.T, ours.T
    if draw(st.booleans()):
        step = draw(st.sampled_from([-1, 2]))
        theirs, ours = theirs[..., ::step], ours.view[..., ::step]
    if draw(st.booleans()):
        theirs, ours = theirs[:, None], ours.view[:, None]
    return theirs, ours


# ---- In the background -----------------------------------------------------------------


@given(st.data())
def test_what_is_awaited_is_what_read_gives(data: st.DataObject) -> None:
    items, view = data.draw(views())
    key = data.draw(keys(items.shape))
    theirs = _outcome(lambda: items[key])
    if not isinstance(theirs, np.ndarray):
        return

    async def read() -> Any:
        return await view.read_async(key)

    result = asyncio.run(read())
    assert np.array_equal(result, theirs, equal_nan=theirs.dtype.kind == "f")
    _assert_same(view.read_async(key, dtype="f8").result(PATIENCE), view.read(key, dtype="f8"))
    out = np.empty(theirs.shape, theirs.dtype, data.draw(st.sampled_from("CF")))
    assert view.read_async(key, out=out).result(PATIENCE) is out
    assert out.tobytes() == result.tobytes()


def test_many_at_once_in_one_loop() -> None:
    items = cube("cube.b2nd")
    arrays = [caterva.open("cube.b2nd", cache_bytes=-1) for _ in range(3)]
    view, theirs = caterva.concat(arrays, 1), np.concatenate([items] * 3, 1)

    async def read() -> list[Any]:
        return await asyncio.gather(*(view.read_async(np.s_[:, i % 144]) for i in range(300)))

    for i, plane in enumerate(asyncio.run(read())):
        assert np.array_equal(plane, theirs[:, i % 144])


def _slow() -> tuple[np.ndarray[Any, Any], list[caterva.Array]]:
    """Make arrays that take a while to decode; also return the items of one."""
    items = np.random.default_rng(5).integers(0, 1 << 20, (120, 120, 120), "i4")
    caterva.save("slow.b2nd", items, chunks=(120, 120, 120), blocks=(8, 8, 120), level=1)
    return items, [caterva.open("slow.b2nd", cache_bytes=-1, threads=1) for _ in range(2)]


def test_cancelling_stops_all_arrays() -> None:
    items, arrays = _slow()
    view = caterva.stack(arrays)

    async def attempt() -> bool:
        task = asyncio.ensure_future(view.read_async()._over())
        await asyncio.sleep(0.001)
        task.cancel()
        try:
            assert np.array_equal((await task)[1], items)  # it was complete already
        except asyncio.CancelledError:
            return True
        return False

    until_caught(lambda: asyncio.run(attempt()))


def test_closing_one_array_ends_it() -> None:
    _, arrays = _slow()

    def attempt() -> bool:
        arrays[1] = caterva.open("slow.b2nd", cache_bytes=-1, threads=1)
        view = caterva.stack(arrays)
        readings = [view.read_async() for _ in range(4)]
        arrays[1].close()
        with pytest.raises(ValueError, match="closed"):
            view.read_async(0)
        try:
            readings[-1].result(PATIENCE)  # it was complete already
        except caterva.StoppedError:
            return True
        return False

    until_caught(attempt)
    assert arrays[0].read_async(0).result(PATIENCE).shape == (120, 120)


def test_errors_arrive() -> None:
    items = cube("cube.b2nd", 32)
    with caterva.open("cube.b2nd") as array:
        chunk = array.chunk(1)
    with open("cube.b2nd", "r+b") as file:
        file.seek(chunk.position + chunk.stored_bytes // 2)
        file.write(bytes(range(256)))
    view = caterva.stack([caterva.asarray(items), caterva.open("cube.b2nd")])
    with pytest.raises(caterva.CorruptError):
        view.read_async().result(PATIENCE)
    assert np.array_equal(view.read_async(0).result(PATIENCE), items)
    with pytest.raises(IndexError):
        view.read_async(2)


def test_a_reading_keeps_its_view() -> None:
    items, arrays = _slow()
    gone = weakref.ref(arrays[0])
    reading = caterva.stack(arrays).read_async()
    del arrays
    gc.collect()
    assert np.array_equal(reading.result(PATIENCE)[1], items)
    del reading
    until_caught(lambda: gc.collect() >= 0 and gone() is None)


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_forks_beside_them() -> None:
    items = cube("cube.b2nd")
    view = caterva.stack([caterva.open("cube.b2nd", cache_bytes=-1) for _ in range(2)])

    def work() -> None:
        assert np.array_equal(view.read_async((1, 7)).result(PATIENCE), items[7])

    for _ in range(10):
        readings = [view.read_async(np.s_[:, i]) for i in range(48)]
        process = in_child(work)
        for i, reading in enumerate(readings):
            assert np.array_equal(reading.result(PATIENCE)[1], items[i])
        assert status_of(process) == 0


# ---- Reductions --------------------------------------------------------------------------


def _part(data: st.DataObject, shape: tuple[int, ...]) -> Any:
    """An int, a slice or a mask for each axis, at most one of them a mask."""
    parts: list[Any] = []
    for n in shape:
        kinds = ["all", "step", "back", "int"] + ["mask"] * all(map(_is_basic, parts))
        kind, at = data.draw(st.sampled_from(kinds)), data.draw(st.integers(0, n - 1))
        mask = np.arange(n) != at
        parts.append(
            {
                "all": slice(None),
                "step": slice(at, None, 2),
                "back": slice(at, None, -1),
                "int": at if all(map(_is_basic, parts)) else slice(at, at + 1),
                "mask": mask if not any(isinstance(part, int) for part in parts) else at,
            }[kind]
        )
    return tuple(parts)


def _is_basic(part: Any) -> bool:
    return not isinstance(part, np.ndarray)


@given(st.data())
def test_reductions_are_numpys(data: st.DataObject) -> None:
    items, view = data.draw(views())
    sel = _part(data, items.shape) if data.draw(st.booleans()) else ...
    part = items[sel]
    axes = [a for a in range(part.ndim) if data.draw(st.booleans())]
    axis = data.draw(st.sampled_from([None, tuple(axes)]))
    keepdims = data.draw(st.booleans())
    skip_nan = data.draw(st.booleans())
    names = ["min", "max"] * (part.size > 0) + ["sum", "mean", "var", "std"]
    for name in names if isinstance(sel, type(...)) or all(map(_is_basic, sel)) else names[:-2]:
        words: dict[str, Any] = {"axis": axis, "keepdims": keepdims}
        ours = {"skip_nan": skip_nan} if name not in ("var", "std") else {}
        function = getattr(np, ("nan" if ours.get("skip_nan") else "") + name)
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            theirs = function(part.astype("f8") if name != "sum" else part, **words)
        got = getattr(view, name)(sel=sel, **words, **ours)
        assert np.shape(got) == np.shape(theirs)
        np.testing.assert_allclose(got, np.asarray(theirs), 1e-5)


@given(st.data())
def test_counts_are_numpys(data: st.DataObject) -> None:
    items, view = data.draw(views())
    found, numbers = view.statistics(), items[items == items].astype("f8")
    assert found.n_items == items.size and found.n_nan == items.size - numbers.size
    if numbers.size:
        assert (found.min, found.max) == (numbers.min(), numbers.max())
        np.testing.assert_allclose([found.mean, found.std], [numbers.mean(), numbers.std()])
    counts, edges = view.histogram(5, (0, 50))
    want = np.histogram(numbers, 5, (0, 50))
    assert np.array_equal(counts, want[0]) and np.array_equal(edges, want[1])


def test_numpys_functions_take_views_without_reading_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    items = np.arange(60.0).reshape(5, 12)
    view = caterva.stack([caterva.asarray(items), caterva.asarray(-items)])
    theirs = np.stack([items, -items])
    assert np.allclose(np.var(view, axis=1), theirs.var(axis=1))

    def refuse(*_: object) -> None:
        raise AssertionError("it is read")

    monkeypatch.setattr(caterva.View, "_read", refuse)
    for name in ("sum", "mean", "max", "min"):
        function = getattr(np, name)
        for words in ({}, {"axis": 0}, {"axis": (1, 2), "keepdims": True}):
            assert np.allclose(function(view, **words), function(theirs, **words))
    assert view.statistics(np.s_[1, 2:]).sum == theirs[1, 2:].sum()


def test_a_reduction_of_a_view_tells_and_stops() -> None:
    items = np.random.default_rng(5).random((200, 300))
    view = caterva.stack([caterva.asarray(items, chunks=(10, 300)) for _ in range(3)])
    heard: list[tuple[int, int]] = []
    for act in (view.statistics, view.mean, view.var, lambda **w: view.histogram(4, **w)):
        heard.clear()
        act(progress=lambda done, total: heard.append((done, total)))
        assert heard == sorted(heard) and heard[-1][0] == heard[-1][1]
        assert heard[-1][1] in (view.nbytes, 2 * view.nbytes)
    with pytest.raises(caterva.StoppedError):  # between the two passes
        view.var(progress=lambda done, total: done >= total // 2)


def test_what_has_no_reduction_says_so() -> None:
    view = caterva.stack([caterva.asarray(np.array([b"a", b"b"]))] * 2)
    with pytest.raises(TypeError):
        view.sum()
    with pytest.raises(TypeError):
        view.statistics()
    with pytest.raises(ValueError):
        caterva.zeros((0, 2)).view[...].max()
    array = caterva.zeros(4)
    view = array.view[1:]
    array.close()
    with pytest.raises(ValueError, match="closed"):
        view.sum()

"""Arguments in users' words and results: ints, flags, codecs, progress."""

from __future__ import annotations

import itertools
import operator
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import caterva
import numpy as np
import pytest
from caterva import _caterva

# ---- Ints and flags -----------------------------------------------------------------------


def _ints() -> dict[str, Callable[[Any], Any]]:
    """Every argument that takes an int, here 1."""
    a = caterva.zeros((3, 4))
    return {
        "zeros": caterva.zeros,
        "zeros of two": lambda n: caterva.zeros((2, n)),
        "full": lambda n: caterva.full((n,), 5),
        "chunks": lambda n: caterva.zeros((3, 4), chunks=n),
        "chunks of two": lambda n: caterva.zeros((3, 4), chunks=(2, n)),
        "blocks": lambda n: caterva.zeros((3, 4), blocks=(n, 2)),
        "level": lambda n: caterva.zeros(3, level=n),
        "codec": lambda n: caterva.zeros(3, codec=n),
        "filter": lambda n: caterva.zeros(3, filters=[n]),
        "filter's meta": lambda n: caterva.zeros(3, filters=[("shuffle", n)]),
        "threads": lambda n: caterva.zeros(3, threads=n),
        "dirty_budget": lambda n: caterva.zeros(3, dirty_budget=n),
        "cache_bytes": lambda n: caterva.zeros(3, cache_bytes=n),
        "compact_percent": lambda n: caterva.zeros(3, compact_percent=n),
        "offset": lambda n: caterva.open("x", offset=n - 1),
        "keep_bytes": lambda n: caterva.open("x", keep_bytes=n),
        "memory": lambda n: a.copy(memory=n),
        "axis of sum": lambda n: a.sum(axis=n),
        "axes of mean": lambda n: a.mean(axis=(0, n)),
        "axis of var": lambda n: a.var(axis=n),
        "axis of concat": lambda n: caterva.concat([a, a], axis=n),
        "axis of stack": lambda n: caterva.stack([a, a], axis=n),
        "axes of transpose": lambda n: a.transpose(n, 0),
        "axis of squeeze": lambda n: a.view[:, :1].squeeze(n),
        "bins": lambda n: a.histogram(n),
        "resize": lambda n: caterva.zeros((3, 4)).resize(3, n),
        "resize to a tuple": lambda n: caterva.zeros((3, 4)).resize((3, n)),
        "axis of append": lambda n: caterva.zeros((3, 4)).append(np.zeros((3, 1)), n),
        "place of insert": lambda n: caterva.zeros((3, 4)).insert(n, np.zeros((1, 4))),
        "n of insert": lambda n: caterva.zeros((3, 4)).insert(0, n=n),
        "axis of insert": lambda n: caterva.zeros((3, 4)).insert(0, axis=n),
        "start of remove": lambda n: caterva.zeros((3, 4)).remove(n),
        "stop of remove": lambda n: caterva.zeros((3, 4)).remove(0, n),
        "axis of remove": lambda n: caterva.zeros((3, 4)).remove(0, axis=n),
        "chunk": lambda n: caterva.zeros(3, chunks=1).chunk(n),
        "read_chunk": lambda n: caterva.asarray([1, 2, 3], chunks=1).read_chunk(n),
        "cache limit": lambda n: caterva.set_cache_limit(
            n if isinstance(n, float | str | bytes) else 1 << 26
        ),
        "partition": lambda n: caterva.choose_partition((5, n)),
    }


@pytest.mark.parametrize("name", _ints())
def test_ints_are_ints_and_nothing_else(name: str) -> None:
    caterva.save("x", [1, 2])
    take = _ints()[name]
    take(1)
    take(np.int64(1))
    for wrong in (1.0, np.float64(1), "1", b"1"):
        if name in ("codec", "filter") and isinstance(wrong, str):
            continue
        with pytest.raises(TypeError):
            take(wrong)
    assert caterva.load("x").tolist() == [1, 2]


@pytest.mark.parametrize(
    "name", ["overwrite", "dictionary", "read_ahead", "unchecked", "end_zarr"]
)
def test_flags_are_true_or_false(name: str) -> None:
    caterva.save("x", [1, 2])

    def take(value: Any) -> None:
        if name == "unchecked":
            caterva.open("x", unchecked=value)
        elif name == "end_zarr":
            caterva.open("x", "r+", end_zarr=value).close()
        else:
            caterva.zeros(
                3, path="y" if name != "overwrite" else None, **{name: value}
            ).discard()

    for value in (True, False, np.True_, 0, 1):
        take(value)
    for wrong in ("no", "True", 2, 1.0):
        with pytest.raises(TypeError, match="True or False"):
            take(wrong)


def test_insert_takes_items_or_their_number() -> None:
    a = caterva.zeros((2, 3))
    with pytest.raises(TypeError, match="items or n"):
        a.insert(0, [[1, 2, 3]], n=5)
    assert a.shape == (2, 3)


def test_shapes_are_not_negative() -> None:
    for shape in (-1, (-1,), (2, -3)):
        with pytest.raises(ValueError, match="negative"):
            caterva.zeros(shape)


# ---- Codecs and filters -------------------------------------------------------------------


@pytest.mark.parametrize("number", range(1, 257))
def test_every_codec_of_the_library_can_be_asked_for(number: int) -> None:
    name = _caterva.codec_name(number)
    if name is None:
        return
    words = {"ndlz": "ndlz:4", "zfp-accuracy": "zfp-accuracy:-3"}.get(name, name)
    words = {"zfp-precision": "zfp-precision:20", "zfp-rate": "zfp-rate:50"}.get(words, words)
    dtype = "u1" if name == "ndlz" else "f4"
    items = np.random.default_rng(3).integers(0, 99, (64, 64)).astype(dtype)
    a = caterva.asarray(items, codec=words)
    assert a.info.codec == words
    assert a.info.filters == (() if name.startswith(("zfp", "ndlz")) else ("shuffle",))
    assert np.allclose(a[:], items, atol=0.001 if name == "zfp-accuracy" else 5)
    again = a.copy(codec=a.info.codec, filters=list(a.info.filters))
    assert again.info.codec == words and again.info.filters == a.info.filters


@pytest.mark.parametrize("words", ["trunc-prec:10", "trunc-prec:-10", "shuffle", "bitshuffle"])
def test_filters_are_told_as_they_were_asked_for(words: str) -> None:
    a = caterva.zeros((64, 64), "f4", filters=[words])
    assert a.info.filters == (words,)
    assert a.copy(filters=list(a.info.filters)).info.filters == (words,)


def test_what_a_codec_cannot_hold_is_refused() -> None:
    for words in ("zfp-accuracy:-129", "zstd:256", "zfp-accuracy:x", "nothing"):
        with pytest.raises(ValueError):
            caterva.zeros((64, 64), "f4", codec=words)


# ---- Progress -----------------------------------------------------------------------------


class _Heard(list[tuple[int, int]]):
    """A progress function."""

    def __call__(self, done: int, total: int) -> None:
        self.append((done, total))

    def check(self) -> None:
        assert self and all(0 <= done <= total for done, total in self)
        assert all(a[0] <= b[0] for a, b in itertools.pairwise(self))
        assert self[-1][0] == self[-1][1]


@pytest.mark.parametrize(
    "name", ["sum", "mean", "min", "max", "var", "std", "statistics", "histogram"]
)
def test_reductions_tell_bytes_of_all_passes(name: str) -> None:
    a = caterva.asarray(np.random.default_rng(5).random((400, 300)), chunks=(10, 300))
    heard = _Heard()
    getattr(a, name)(progress=heard)
    heard.check()
    total = heard[-1][1]
    assert total >= a.nbytes
    if name in ("var", "std"):  # two passes are reported as one
        assert {t for _, t in heard} == {total} and any(0 < d <= total // 2 for d, _ in heard)
        with pytest.raises(caterva.StoppedError):
            getattr(a, name)(progress=lambda done, total: done > total // 2)


def test_copies_and_upkeep_tell_what_they_say() -> None:
    items = np.random.default_rng(5).random((400, 300))
    written = _Heard()
    a = caterva.asarray(items, "p.b2nd", chunks=(10, 300), progress=written)
    written.check()
    assert written[-1][1] >= a.nbytes  # decoded bytes, of whole blocks
    a.close()
    for act in (
        lambda heard: caterva.open("p.b2nd").copy("q.b2nd", overwrite=True, progress=heard),
        lambda heard: caterva.open("p.b2nd").verify(progress=heard),
    ):
        heard = _Heard()
        act(heard)
        heard.check()
        assert heard[-1][1] >= a.nbytes


# ---- Boxes --------------------------------------------------------------------------------


def test_boxes_cost_no_work_for_each_item() -> None:
    a = caterva.zeros((2**46,), "u1", chunks=(2**30,))
    began = time.process_time()
    assert next(a.iter_chunks()) == (slice(0, 2**30),)
    assert next(a.iter_chunks(np.s_[2**45 :])) == (slice(2**45, 2**45 + 2**30),)
    assert a.read_around_damage(np.s_[5:9])[0].tolist() == [0] * 4
    b = caterva.zeros((0, 2**46), "u1", chunks=(1, 2**30))
    assert list(b.iter_chunks()) == [] and b.read_around_damage()[0].shape == (0, 2**46)
    assert time.process_time() - began < 30  # item by item it would take days


def test_steps_are_no_boxes() -> None:
    items = np.arange(60).reshape(6, 10)
    a = caterva.asarray(items, chunks=(3, 5))
    a.commit()
    for sel in (np.s_[::2], np.s_[::-1], np.s_[1, ::3]):
        with pytest.raises(IndexError, match="steps"):
            a.read_around_damage(sel)
        with pytest.raises(IndexError, match="steps"):
            next(a.iter_chunks(sel))
    got, report = a.read_around_damage(np.s_[1, -4:])
    assert report and got.tolist() == items[1:2, -4:].tolist()
    assert sum(a[part].size for part in a.iter_chunks(np.s_[2:5, 3])) == 3
    assert a.read_around_damage(np.s_[4:5:7])[0].tolist() == items[4:5].tolist()
    assert [len(list(a.iter_chunks(sel))) for sel in (..., np.s_[:3], np.s_[2:4, 4:6])] == [
        4,
        2,
        4,
    ]


# ---- Modes, iteration, NumPy's functions -----------------------------------------------------


def test_mode_a_takes_the_options_of_create_again_and_again() -> None:
    for run in range(2):
        with caterva.open(
            "a.b2nd",
            "a",
            shape=(4,),
            dtype="i4",
            fill_value=5,
            chunks=2,
            dims=("x",),
            threads=1,
        ) as a:
            assert a[:].tolist() == ([5] * 4 if run == 0 else [5, 7, 5, 5])
            a[1] = 7
    with pytest.raises(TypeError, match=r"nothing at .*none\.b2nd: give shape"):
        caterva.open("none.b2nd", "a")


def test_iteration_sees_what_is_written_meanwhile() -> None:
    def sums(rows: Any) -> list[int]:
        out = []
        for i, row in enumerate(rows):
            out.append(int(row[0]))
            if i + 1 < len(rows):
                rows[i + 1] = rows[i + 1] + row
        return out

    items = np.ones((6, 2), int)
    wanted = sums(items.copy())
    assert sums(caterva.asarray(items)) == wanted
    assert sums(caterva.asarray(items).view[:]) == wanted
    a = caterva.asarray(items)
    rows = iter(a)
    next(rows)
    a.resize(2, 2)
    assert len(list(rows)) == 1
    caterva.save("i.b2nd", items)
    assert [row.tolist() for row in caterva.open("i.b2nd")] == items.tolist()


def test_numpys_reductions_take_arrays() -> None:
    items = np.arange(12.0).reshape(3, 4)
    a = caterva.asarray(items)
    for name in ("sum", "mean", "max", "min", "std", "var"):
        function = getattr(np, name)
        for words in ({}, {"axis": 0}, {"axis": 1, "keepdims": True}):
            assert np.allclose(function(a, **words), function(items, **words))
        out = np.zeros(4)
        assert function(a, axis=0, out=out) is out
        assert np.allclose(out, function(items, axis=0))
        with pytest.raises(ValueError, match="shape"):
            function(a, axis=0, out=np.zeros(3))
    assert np.sum(a, dtype="f4").dtype == np.float32
    with pytest.raises(TypeError):
        np.mean(a, dtype="i4")


def test_arrays_are_not_compared_with_numbers_by_mistake() -> None:
    a = caterva.asarray(np.arange(5.0))
    for other in (3, 3.0, True, "x"):
        for compare in (lambda x, y: x == y, lambda x, y: x != y, lambda x, y: y == x):
            with pytest.raises(TypeError, match=r"np\.asarray"):
                compare(a, other)
            with pytest.raises(TypeError, match=r"np\.asarray"):
                compare(a.view[:], other)
    assert a == a and a != caterva.zeros(5) and a in [None, a] and a != None  # noqa: E711
    assert (np.arange(5.0) == a).all() and (a == np.arange(5.0)).all()
    assert len({a, a.view[:], caterva.zeros(1)}) == 3


OPERATORS = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "@": operator.matmul,
    "/": operator.truediv,
    "//": operator.floordiv,
    "%": operator.mod,
    "**": operator.pow,
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


@pytest.mark.parametrize("sign", OPERATORS)
def test_operators_say_what_to_write_instead(sign: str) -> None:
    compute = OPERATORS[sign]
    items = np.arange(1, 5)
    a = caterva.asarray(items)
    for x in (a, a.view[:], a.astype("i8")):
        for left, right in ((x, 2), (2, x), (x, x), (x, [1, 2, 3, 4])):
            with pytest.raises(TypeError, match=r"read the array, or a part of it"):
                compute(left, right)
        assert np.array_equal(compute(x, items), compute(items, items))
        assert np.array_equal(compute(items, x), compute(items, items))


def test_refusals_name_what_was_meant() -> None:
    a = caterva.asarray(np.arange(6))
    for read in (a.read, a.view[:].read, a.read_async):
        with pytest.raises(TypeError, match="out is a NumPy array, not list"):
            read(out=[1])
    for opening in (caterva.open, caterva.load, caterva.open_tree):
        with pytest.raises(TypeError, match="path is None"):
            opening(None)  # type: ignore[operator]
    with pytest.raises(caterva.InvalidError, match="from_bytes opens a frame in memory"):
        caterva.open("mem:")
    with pytest.raises(ValueError, match="reads is empty"):
        caterva.tune(a, [])
    with caterva.open_tree("t.b2d", "w") as t:
        t["x"] = [1, 2, 3]
        t.pack("t.b2z")
    with pytest.raises(ValueError, match=r"t\.b2d is a tree: name one of its arrays"):
        caterva.tune("t.b2d", [0])
    for tree in ("t.b2d", "t.b2z"):
        with pytest.raises(FileNotFoundError, match=rf"{tree}::x does not exist: .*{tree}::/x"):
            caterva.open(f"{tree}::x")


# ---- Other results ---------------------------------------------------------------------------


def test_tokens_of_arrays_that_are_written_are_never_the_same() -> None:
    w = caterva.zeros((4, 4), path="t.b2nd")
    w.commit()
    still = w.__dask_tokenize__()
    assert w.__dask_tokenize__() == still
    w[...] = 1
    pending = w.__dask_tokenize__()
    assert pending != still
    w[...] = 2
    assert w.__dask_tokenize__() != pending
    w.commit()
    assert w.__dask_tokenize__() not in (still, pending)
    reader = caterva.open("t.b2nd")
    assert reader.__dask_tokenize__() == caterva.open("t.b2nd").__dask_tokenize__()


@pytest.mark.parametrize("readable", [True, False])
def test_the_fill_of_a_repair_is_an_item(readable: bool) -> None:
    items = np.random.default_rng(1).random((50, 60))
    caterva.save("f", items, chunks=(10, 60))
    raw = bytearray(Path("f").read_bytes())
    chunk = caterva.open("f").chunk(2)
    raw[chunk.position + chunk.stored_bytes // 2] ^= 255
    if not readable:
        raw[8:24] = bytes(16)
    Path("f").write_bytes(raw)
    for fill in (np.float64(5), np.array(5.0), np.float64(5).tobytes()):
        caterva.repair("f", "out", fill_value=fill, overwrite=True)
        found = caterva.load("out")
        assert set(found[found != items]) == {5.0}
    for fill in (5, np.int64(5), np.float32(5)):
        if readable:
            caterva.repair("f", "out", fill_value=fill, overwrite=True)
            found = caterva.load("out")
            assert set(found[found != items]) == {5.0}
        else:
            with pytest.raises(ValueError, match="not an item"):
                caterva.repair("f", "new", fill_value=fill)
            assert not Path("new").exists()


def test_attributes_that_are_damaged_say_so() -> None:
    a = caterva.zeros(3, path="d.b2nd")
    for raw in (b"", b"\xc1", b"\xa3\xff\xfe\xfd", b"\xdb\x00", b"\x92\x01"):
        a.attrs.set_raw("x", raw)
        with pytest.raises(caterva.CorruptError, match="attribute 'x'") as caught:
            a.attrs["x"]
        assert caught.value.filename == a.path


def test_writing_to_what_is_read_only_is_a_read_only_error() -> None:
    caterva.save("r.b2nd", [1, 2, 3])
    a = caterva.open("r.b2nd")
    for act in (
        lambda: a.__setitem__(0, 1),
        lambda: a.__setitem__([0], 1),
        lambda: a.view[:].__setitem__(0, 1),
        lambda: a.append([1]),
    ):
        with pytest.raises(caterva.ReadOnlyError) as caught:
            act()
        assert isinstance(caught.value, ValueError)
        assert caught.value.code == caterva.Status.EREADONLY


def _stopped_removal(progress: Any, kind: type[BaseException]) -> BaseException:
    """Stop a removal that takes long enough to report progress before its end."""
    n = 2000
    while True:
        caterva.save("rm.d", np.zeros(n, "u1") + 1, layout="sparse", chunks=1)
        try:
            caterva.delete("rm.d", progress=progress)
        except kind as error:
            return error
        n *= 2


def test_who_stops_a_removal_is_told_what_is_left() -> None:
    def interrupt(done: int, total: int) -> None:
        if 0 < done < total:
            raise KeyboardInterrupt

    def stop(done: int, total: int) -> bool:
        return 0 < done < total

    for progress, kind in ((interrupt, KeyboardInterrupt), (stop, caterva.StoppedError)):
        error = _stopped_removal(progress, kind)
        (left,) = os.listdir()
        told = [str(error), *getattr(error, "__notes__", [])]
        assert len([text for text in told if left in text]) == 1, told
        caterva.delete(left)
        assert os.listdir() == []

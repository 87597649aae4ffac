"""`caterva.zarr.Store`: arrays and trees as they are, read by zarr-python and xarray."""

from __future__ import annotations

import asyncio
import doctest
import json
import pickle
import random
import sys
from pathlib import Path
from typing import Any

import caterva
import numpy as np
import pytest
import xarray as xr

zarr = pytest.importorskip("zarr", minversion="3.1", reason="zarr-python 3.1 is not here")

import caterva.zarr  # noqa: E402
from caterva.zarr import Store  # noqa: E402
from zarr.abc.store import (  # noqa: E402
    OffsetByteRequest,
    RangeByteRequest,
    SuffixByteRequest,
)

UNNAMED = np.dtype("i1,f8", align=True)  # Zarr has no fields with gaps
ITEMS = np.arange(60 * 40, dtype="f4").reshape(60, 40)
DTYPES = ["?", "i1", "<u2", ">i4", "<f4", ">f8", "<c8", "<M8[ns]", "<U3", "|S5"]
HEAD = 20  # bytes of a Blosc 1 header and one block start

pytestmark = pytest.mark.filterwarnings("ignore::zarr.errors.ZarrUserWarning")


def get(store: Any, key: str, wanted: Any = None) -> bytes | None:
    found = asyncio.run(store.get(key, byte_range=wanted))
    return None if found is None else found.to_bytes()


def keys(found: Any) -> list[str]:
    async def collect() -> list[str]:
        return sorted([key async for key in found])

    return asyncio.run(collect())


# ---- Arrays -------------------------------------------------------------------------------


def random_array(rng: np.random.Generator) -> tuple[np.ndarray, dict[str, Any]]:
    shape = tuple(
        int(n) for n in rng.integers(0 if rng.random() < 0.1 else 1, 40, rng.integers(5))
    )
    dtype = np.dtype(str(rng.choice(DTYPES)))
    numbers = rng.integers(0, 2 if rng.random() < 0.3 else 1 << 20, shape)
    if rng.random() < 0.3 and shape:
        numbers[shape[0] // 3 :] = 7
    options: dict[str, Any] = {
        "codec": str(rng.choice(["zstd", "lz4", "lz4hc", "zlib", "blosclz"])),
        "filters": str(rng.choice(["none", "shuffle", "bitshuffle", "delta", "bytedelta"])),
        "level": int(rng.integers(1, 9)),
    }
    if shape and rng.random() < 0.8:
        blocks = rng.integers(1, 12, len(shape))
        chunks = blocks * rng.integers(1, 4, len(shape))
        if rng.random() < 0.3:
            chunks += rng.integers(0, 3, len(shape))
        options |= {"blocks": tuple(map(int, blocks)), "chunks": tuple(map(int, chunks))}
    if dtype.kind in "US":
        numbers = numbers % 100
    return np.asarray(numbers).astype(dtype), options


def test_random_arrays(request: pytest.FixtureRequest) -> None:
    given = request.config.getoption("--seed")
    seed = random.randrange(1 << 30) if given is None else given
    print("seed", seed)
    rng = np.random.default_rng(seed)
    for _ in range(1000 if request.config.getoption("--long") else 40):
        items, options = random_array(rng)
        try:
            caterva.save("a.b2nd", items, overwrite=True, **options)
        except caterva.InvalidError:
            continue  # a filter that does not fit the items
        found = zarr.open_array(Store("a.b2nd"))
        assert found.shape == items.shape
        assert found.dtype.newbyteorder("=") == items.dtype.newbyteorder("=")
        np.testing.assert_array_equal(found[...], items)
        if items.size:
            box = tuple(slice(int(rng.integers(n)), None, 2) for n in items.shape)
            np.testing.assert_array_equal(found[box or ...], items[box or ...])


def test_stored_blocks_are_not_decoded() -> None:
    for n, codec in enumerate(["zstd", "zlib"]):
        items = np.random.default_rng(n).integers(0, 1 << 30, (200, 200)).astype("i4")
        items &= 0x0F0F0F0F
        caterva.save("a.b2nd", items, chunks=100, blocks=50, codec=codec, overwrite=True)
        stored = Path("a.b2nd").read_bytes()
        store = Store("a.b2nd")
        for i, j in np.ndindex(4, 4):
            block = get(store, f"c/{i}/{j}")
            assert block is not None and len(block) < 8000
            assert block[HEAD:] in stored


def test_blocks_of_the_fill_are_missing() -> None:
    with caterva.create((30, 30), "f8", "a.b2nd", fill_value=np.nan, chunks=10, blocks=5) as a:
        a[10:20, 10:20] = 1
        a[20:22] = 2
    store = Store("a.b2nd")
    assert get(store, "c/0/0") is None
    assert get(store, "c/2/2") is not None and get(store, "c/4/5") is not None
    listed = [key for key in keys(store.list()) if key != "zarr.json"]
    written = {f"c/{i}/{j}" for i in (2, 3) for j in (2, 3)} | {f"c/4/{j}" for j in range(6)}
    assert written <= set(listed) <= written | {f"c/5/{j}" for j in range(6)}
    np.testing.assert_array_equal(zarr.open_array(store)[:], caterva.load("a.b2nd"))


def test_metadata() -> None:
    with caterva.asarray(ITEMS, "a.b2nd", chunks=20, blocks=10, dims=("y", "x")) as a:
        a.attrs["unit"] = "m"
    found = zarr.open_array(Store("a.b2nd"))
    assert found.chunks == (10, 10) and found.attrs.asdict() == {"unit": "m"}
    assert found.metadata.dimension_names == ("y", "x")
    assert json.loads(get(Store("a.b2nd"), "zarr.json") or b"")["node_type"] == "array"


def test_byte_ranges() -> None:
    caterva.save("a.b2nd", ITEMS, chunks=20, blocks=10)
    store = Store("a.b2nd")
    whole = get(store, "c/1/2")
    assert whole is not None
    assert get(store, "c/1/2", RangeByteRequest(3, 30)) == whole[3:30]
    assert get(store, "c/1/2", OffsetByteRequest(50)) == whole[50:]
    assert get(store, "c/1/2", SuffixByteRequest(10)) == whole[-10:]
    parts = asyncio.run(
        store.get_partial_values(None, [("c/1/2", RangeByteRequest(0, 4)), ("c/9/9", None)])
    )
    assert parts[0].to_bytes() == whole[:4] and parts[1] is None


def test_keys_that_do_not_exist() -> None:
    caterva.save("a.b2nd", ITEMS, chunks=20, blocks=10)
    store = Store("a.b2nd")
    for key in ("c", "c/0", "c/0/0/0", "c/6/0", "c/00/0", "c/-1/0", "x/c/0/0", "x/zarr.json",
                ".zarray", "c/0/0x", "c/99999999999999999999/0", "", "/zarr.json", "zarr.json/",
                "/c/0/0", "./zarr.json", "//zarr.json"):  # fmt: skip
        assert get(store, key) is None, key
    assert keys(store.list_dir("")) == ["c", "zarr.json"]
    assert keys(store.list_dir("c/1")) == ["0", "1", "2", "3"]


def test_no_axes_and_dual_files() -> None:
    caterva.save("a.b2nd", np.float32(7))
    assert zarr.open_array(Store("a.b2nd"))[()] == 7
    caterva.save("b.zarr", ITEMS, chunks=20, blocks=10)
    np.testing.assert_array_equal(zarr.open_array(Store("b.zarr"))[:], ITEMS)


def test_copies_of_the_store() -> None:
    caterva.save("a.b2nd", ITEMS)
    store = Store("a.b2nd", threads=1)
    again = pickle.loads(pickle.dumps(store))
    assert again == store and hash(again) == hash(store) and again != Store("a.b2nd")
    np.testing.assert_array_equal(zarr.open_array(again)[:], ITEMS)
    found = pickle.loads(pickle.dumps(zarr.open_array(store)))
    np.testing.assert_array_equal(found[:], ITEMS)
    assert "a.b2nd" in repr(store)


def test_what_is_refused() -> None:
    caterva.save("a.b2nd", ITEMS)
    store = Store("a.b2nd")
    with pytest.raises(ValueError, match="read-only"):
        zarr.open_array(store)[0] = 1
    with pytest.raises(ValueError, match="read-only"):
        asyncio.run(store.delete("zarr.json"))
    with pytest.raises(ValueError, match="read-only"):
        store.with_read_only(False)
    with pytest.raises(FileNotFoundError):
        Store("none.b2nd")
    caterva.save("b.b2nd", np.zeros(3, UNNAMED))
    with pytest.raises(NotImplementedError, match="Zarr"):
        zarr.open_array(Store("b.b2nd"))
    zarr.create_array("z.zarr", shape=3, dtype="i4")
    for opener in (Store, caterva.open):
        with pytest.raises(NotImplementedError, match=r"not one frame .*caterva convert"):
            opener("z.zarr")


def test_damage_is_an_error() -> None:
    caterva.save(
        "a.b2nd", np.random.default_rng(1).integers(0, 9, (40, 40)), chunks=20, blocks=10
    )
    with caterva.open("a.b2nd") as a:
        where = a.chunk(0).position + a.chunk(0).stored_bytes - 5
    damaged = bytearray(Path("a.b2nd").read_bytes())
    damaged[where] ^= 1
    Path("a.b2nd").write_bytes(damaged)
    with pytest.raises(caterva.CorruptError):
        zarr.open_array(Store("a.b2nd"))[:]


# ---- Trees --------------------------------------------------------------------------------


@pytest.fixture
def tree() -> str:
    with caterva.open_tree("t.b2d", "w") as t:
        t.attrs["title"] = "a tree"
        t["x"] = np.arange(40)
        t["x"].dims = ("x",)
        t["t2m"] = ITEMS
        t["t2m"].dims = ("y", "x")
        t["t2m"].attrs["units"] = "K"
        t["g/c/0"] = np.arange(5)  # a name that looks like the key of a chunk
        t["g/wide"] = np.zeros(3, UNNAMED)
        t["g"].attrs["level"] = 3
        t.pack("t.b2z")
    return "t.b2d"


def test_trees(tree: str) -> None:
    for path in (tree, "t.b2z"):
        root = zarr.open_group(Store(path), mode="r")
        assert root.attrs.asdict() == {"title": "a tree"}
        assert sorted(name for name, _ in root.members(max_depth=None)) == [
            "g", "g/c", "g/c/0", "t2m", "x",
        ]  # fmt: skip
        np.testing.assert_array_equal(root["t2m"][5:9, ::3], ITEMS[5:9, ::3])
        np.testing.assert_array_equal(root["g/c/0"][:], np.arange(5))
        assert root["g"].attrs.asdict() == {"level": 3}
        plain = zarr.open_group(Store(path), mode="r", use_consolidated=False)
        assert sorted(plain.array_keys()) == ["t2m", "x"]
        with pytest.raises(NotImplementedError, match="Zarr"):
            zarr.open_array(Store(path), path="g/wide")
        with pytest.raises(FileNotFoundError):
            zarr.open_array(Store(path), path="g/none")
    for key in ("/zarr.json", "g//zarr.json", "g/./zarr.json", "../t.b2d/zarr.json",
                "/g/zarr.json", "none/zarr.json", "none/c/0", "//c/0",
                "g/../t2m/c/0/0"):  # fmt: skip
        assert get(Store(tree), key) is None, key
    assert keys(Store(tree).list_dir("g")) == ["c", "zarr.json"]
    np.testing.assert_array_equal(
        zarr.open_group(Store(tree + "::/g"), mode="r")["c/0"][:], np.arange(5)
    )
    np.testing.assert_array_equal(zarr.open_array(Store(tree + "::/t2m"))[:], ITEMS)


def test_xarray_and_dask(tree: str) -> None:
    direct = xr.open_dataset(tree, engine="caterva")
    read = xr.open_zarr(Store(tree), chunks=None)
    xr.testing.assert_identical(read.load(), direct.load())
    lazy = xr.open_zarr(Store("t.b2z"), chunks={"y": 20})
    np.testing.assert_array_equal(lazy.t2m.sum("y").compute(), ITEMS.sum(0))


def test_hierarchies_of_zarr_groups() -> None:
    with caterva.open_tree("t.b2d", "w") as t:
        t["g/x"] = ITEMS
        t.pack("t.zarr", zarr=True)
    root = zarr.open_group(Store("t.zarr"), mode="r")
    np.testing.assert_array_equal(root["g/x"][:], ITEMS)


def test_urls() -> None:
    sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "support"))
    scripted = pytest.importorskip("scripted_server", reason="the library's tests are not here")
    caterva.save("a.b2nd", ITEMS, chunks=20, blocks=10)
    with scripted.ScriptedServer() as server:
        server.objects["/a.b2nd"] = Path("a.b2nd").read_bytes()
        try:
            store = Store(server.url("/a.b2nd"), remote={"retries": 1})
        except caterva.UnsupportedError as error:
            pytest.skip(str(error))
        found = zarr.open_array(pickle.loads(pickle.dumps(store)))
        np.testing.assert_array_equal(found[:], ITEMS)


def test_a_member_of_a_hierarchy_behind_a_url() -> None:
    sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "support"))
    scripted = pytest.importorskip("scripted_server", reason="the library's tests are not here")
    with caterva.open_tree("t.b2d", "w") as t:
        t["g/x"] = ITEMS
        t.pack("t.zarr", zarr=True)
    with scripted.ScriptedServer() as server:
        for file in Path("t.zarr").rglob("*"):
            if file.is_file():
                server.objects[f"/{file}"] = file.read_bytes()
        try:
            store = Store(server.url("/t.zarr/g/x"), remote={"retries": 1})
        except caterva.UnsupportedError as error:
            pytest.skip(str(error))
        np.testing.assert_array_equal(zarr.open_array(store)[:], ITEMS)


def test_texts_of_any_length() -> None:
    words = xr.Dataset({"word": ("x", np.array(["a", "bcd"], dtype=object))})
    words.to_caterva("w.b2d")
    assert "_vlen" in caterva.open("w.b2d::/word").attrs
    assert xr.open_zarr(Store("w.b2d")).identical(words)


def test_examples_run() -> None:
    result = doctest.testmod(caterva.zarr)
    assert result.failed == 0 and result.attempted >= 6

"""Arrays that are also Zarr arrays. zarr-python reads them in tests/compat/test_zarr.py."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import caterva
import caterva.xarray  # the method to_caterva
import numpy as np
import pytest
import xarray as xr
import zarr

ITEMS = np.arange(60 * 40, dtype="f4").reshape(60, 40)


def metadata(path: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((Path(path) / "zarr.json").read_text())
    return found


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_copy() -> None:
    a = caterva.asarray(ITEMS, "a.b2nd", chunks=(20, 20), blocks=(10, 10), fill_value=np.nan)
    a.attrs["unit"] = "m"
    a.commit()
    with caterva.copy(a, "a.zarr", zarr=True) as b:
        np.testing.assert_array_equal(b[:], ITEMS)
        assert not b.writable
        assert b.attrs["unit"] == "m"
        with pytest.raises(caterva.ReadOnlyError):
            b[0] = 1
    meta = metadata("a.zarr")
    assert meta["shape"] == [60, 40]
    assert meta["attributes"] == {"unit": "m"}
    assert meta["fill_value"] == "NaN"
    assert caterva.open("a.zarr").chunks == (20, 20)
    box = np.s_[5:9, ::2]
    with caterva.copy(a, "b.zarr", box, zarr=True, dims=("y", "x"), dtype="f8") as c:
        np.testing.assert_array_equal(c[:], ITEMS[box])
        assert c.dims == ("y", "x")
    assert metadata("b.zarr")["dimension_names"] == ["y", "x"]
    assert metadata("b.zarr")["data_type"] == "float64"
    a.close()


def test_copy_of_a_view() -> None:
    a = caterva.asarray(ITEMS)
    caterva.copy(a.view[...].T, "t.zarr", zarr=True).close()
    np.testing.assert_array_equal(caterva.load("t.zarr"), ITEMS.T)


def test_save() -> None:
    caterva.save("a.zarr", ITEMS, dims=("y", "x"), codec="lz4")
    assert sorted(os.listdir(".")) == ["a.zarr"]
    assert metadata("a.zarr")["dimension_names"] == ["y", "x"]
    np.testing.assert_array_equal(caterva.load("a.zarr"), ITEMS)
    with pytest.raises(FileExistsError):
        caterva.save("a.zarr", ITEMS)
    caterva.save("a.zarr", (n * n for n in range(5)), overwrite=True, durability="none")
    np.testing.assert_array_equal(caterva.load("a.zarr"), [0, 1, 4, 9, 16])
    caterva.save("b.zarr", caterva.open("a.zarr"))
    np.testing.assert_array_equal(caterva.load("b.zarr"), [0, 1, 4, 9, 16])
    caterva.delete("a.zarr")
    caterva.delete("b.zarr")
    assert os.listdir(".") == []


@pytest.mark.parametrize("shape", [(7, 11), (3921, 106), ()])
def test_save_through_a_file(shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.random.default_rng(1).integers(0, 99, shape).astype("f4")
    caterva.save("small.zarr", x)
    monkeypatch.setattr("caterva._functions.SLAB_BYTES", -1)
    os.mkdir("d")
    caterva.save("d/x.zarr", x, dims=list("abc")[: x.ndim], codec="lz4", overwrite=True)
    assert os.listdir("d") == ["x.zarr"]
    with caterva.open("d/x.zarr") as a, caterva.open("small.zarr") as b:
        np.testing.assert_array_equal(a[...], x)
        assert (a.chunks, a.blocks) == (b.chunks, b.blocks)
        assert (a.info.codec, a.dims) == ("lz4", tuple("abc")[: x.ndim])
        assert all(c % b == 0 for c, b in zip(a.chunks, a.blocks, strict=True))
    with pytest.raises(FileExistsError):
        caterva.save("d/x.zarr", x)
    with pytest.raises(FileNotFoundError):
        caterva.save("none/x.zarr", x)
    with pytest.raises(caterva.UnsupportedError):
        caterva.save("d/y.zarr", np.zeros(3, [("x", ">i4")]))
    assert os.listdir("d") == ["x.zarr"]


def test_what_is_refused() -> None:
    a = caterva.asarray(ITEMS)
    with pytest.raises(ValueError, match="is a directory of its own"):
        caterva.copy(a, zarr=True)
    with pytest.raises(ValueError, match="one filter"):
        caterva.copy(a, "a.zarr", zarr=True, filters="delta")
    with pytest.raises(ValueError, match=r"copy\(zarr=True\)"):
        caterva.asarray(ITEMS, "a.zarr")
    with pytest.raises(NotImplementedError, match="big-endian"):
        caterva.save("a.zarr", np.zeros(3, [("x", ">i4")]))
    assert os.listdir(".") == []


def test_a_damaged_frame_is_damage() -> None:
    caterva.save("a.zarr", ITEMS)
    shard = Path("a.zarr/c/0/0")
    data = bytearray(shard.read_bytes())
    data[3] ^= 4
    shard.write_bytes(data)
    with pytest.raises(caterva.CorruptError, match="magic: byte 3") as caught:
        caterva.open("a.zarr")
    assert "convert" not in str(caught.value)


@pytest.mark.parametrize("bits", [0x7FF8000000000000, 0x7FF8000000000001, 0xFFF8000000000000])
def test_bits_of_nan(bits: int) -> None:
    fill = np.array(bits, "u8").view("f8")[()]
    a = caterva.full(5, fill)
    caterva.copy(a, "a.zarr", zarr=True).close()
    text = "NaN" if bits == 0x7FF8000000000000 else f"0x{bits:016x}"
    assert metadata("a.zarr")["fill_value"] == text
    assert (np.asarray(caterva.open("a.zarr")[:]).view("u8") == bits).all()
    assert (np.asarray(zarr.open_array("a.zarr", mode="r")[:]).view("u8") == bits).all()


def test_writing_ends_it() -> None:
    caterva.save("a.zarr", ITEMS)
    with pytest.raises(caterva.ReadOnlyError, match="is a Zarr array, too"):
        caterva.open("a.zarr", "r+")
    shard = Path("a.zarr/c/0/0")
    before = shard.stat().st_size
    with caterva.open("a.zarr", "r+", end_zarr=True) as a:
        assert shard.stat().st_size < before
        assert a.verify().ok
        a[0, 0] = 7
    with caterva.open("a.zarr", "r+") as a:
        assert a[0, 0] == 7
        a.append(ITEMS)
    with caterva.open("a.zarr") as a:
        assert a.verify().ok and not a.verify().damages
    with shard.open("ab") as file:
        file.write(b"remains of a killed writer")
    with caterva.open("a.zarr") as a:
        assert a.verify().ok and not a.verify().damages
    with pytest.raises(ValueError, match="checksum"):
        zarr.open_array("a.zarr", mode="r")[...]


def test_writing_does_not_end_one_without_items() -> None:
    """Zarr readers would go on to read it as empty: it has no index that can become wrong."""
    caterva.save("a.zarr", ITEMS[:0])
    with pytest.raises(caterva.ReadOnlyError, match="has no items"):
        caterva.open("a.zarr", "r+", end_zarr=True)


# ---- Trees ------------------------------------------------------------------------------


def test_trees() -> None:
    with caterva.open_tree("t.b2d", "w") as tree:
        tree["x"] = ITEMS
        tree["g/y"] = ITEMS[0]
        tree["g"].attrs["title"] = "a group"
        tree.pack("t.zarr", zarr=True)
        with pytest.raises(FileExistsError):
            tree.pack("t.zarr", zarr=True)
        tree.pack("t.zarr", zarr=True, overwrite=True)
    np.testing.assert_array_equal(caterva.load("t.zarr/x"), ITEMS)
    root = metadata("t.zarr")
    assert root["node_type"] == "group"
    members = root["consolidated_metadata"]["metadata"]
    assert sorted(members) == ["g", "g/y", "x"]
    assert members["g"] == metadata("t.zarr/g")
    assert members["g"]["attributes"] == {"title": "a group"}
    for opened in (caterva.open("t.zarr"), caterva.open("t.zarr::/g")):
        assert isinstance(opened, caterva.Group)
        opened.tree.close() if not isinstance(opened, caterva.Tree) else opened.close()
    with caterva.open_tree("t.zarr") as tree:
        assert sorted(tree) == ["g", "x"]
        assert dict(tree["g"].attrs) == {"title": "a group"}
        np.testing.assert_array_equal(tree["g/y"][:], ITEMS[0])
        with pytest.raises(caterva.UnsupportedError):
            tree.pack("t.b2z")
    with pytest.raises(caterva.ReadOnlyError):
        caterva.open_tree("t.zarr", "r+")


def random_dataset(rng: np.random.Generator, names: str = "abc") -> xr.Dataset:
    """A data set of up to five variables of several types, with coordinates and attributes."""
    sizes = {name: int(rng.integers(1, 9)) for name in names}
    kinds = ["<f4", "<f8", "<i2", ">i4", "u1", "?", "<U3", "<M8[ns]", "<c16"]

    def variable() -> xr.Variable:
        dims = tuple(rng.permutation(list(sizes))[: int(rng.integers(0, 4))])
        kind = np.dtype(kinds[int(rng.integers(len(kinds)))])
        items = rng.integers(0, 100, tuple(sizes[d] for d in dims)).astype(kind)
        v = xr.Variable(
            dims, items, {"unit": "m", "range": [1, 2.5], "n": int(rng.integers(9))}
        )
        if kind.kind == "f" and rng.random() < 0.5:
            v.encoding["_FillValue"] = kind.type(rng.choice([-9.5, np.nan]))
            v.values[rng.random(v.shape) < 0.2] = np.nan
        return v

    ds = xr.Dataset({f"v{i}": variable() for i in range(int(rng.integers(1, 6)))})
    ds = ds.assign_attrs(title="t\u00e9st", version=int(rng.integers(9)))
    for name in ds.dims:
        if rng.random() < 0.6:
            ds = ds.assign_coords({name: np.sort(rng.random(ds.sizes[name]))})
    if ds.sizes and rng.random() < 0.4:
        name = next(iter(ds.dims))
        ds = ds.assign_coords(other=(name, rng.random(ds.sizes[name]), {"of": "x"}))
    return ds


def random_tree(rng: np.random.Generator) -> xr.DataTree:
    """Up to four groups, each with dimensions of its own."""
    groups = ["/", "/g", "/g/h", "/i"][: int(rng.integers(1, 5))]
    dims = ["abc", "def", "ghi", "jkl"]
    sets = [random_dataset(rng, names).drop_vars("other", errors="ignore") for names in dims]
    return xr.DataTree.from_dict(dict(zip(groups, sets, strict=False)))


def test_trees_are_the_same_in_zarr(pytestconfig: pytest.Config) -> None:
    pytest.importorskip("zarr")
    seed = int.from_bytes(os.urandom(4), "little")
    print("seed", seed)
    for number in range(200 if pytestconfig.getoption("--long") else 10):
        dt = random_tree(np.random.default_rng([seed, number]))
        dt.to_caterva("t.b2d", mode="w")
        with caterva.open_tree("t.b2d") as tree:
            tree.pack("t.zarr", zarr=True, overwrite=True)
        given = xr.open_datatree("t.b2d", engine="caterva").load()
        ours = xr.open_datatree("t.zarr", engine="caterva").load()
        theirs = xr.open_datatree("t.zarr", engine="zarr", chunks=None).load()
        xr.testing.assert_identical(given, ours)
        xr.testing.assert_identical(ours, theirs)
        for group in ours.groups:
            one = xr.open_zarr("t.zarr", group=group, chunks=None).load()
            xr.testing.assert_identical(
                one, xr.open_dataset("t.zarr", engine="caterva", group=group).load()
            )


def test_data_sets_are_the_same_in_zarr(pytestconfig: pytest.Config) -> None:
    pytest.importorskip("zarr")
    seed = int.from_bytes(os.urandom(4), "little")
    print("seed", seed)
    for number in range(200 if pytestconfig.getoption("--long") else 20):
        ds = random_dataset(np.random.default_rng([seed, number]))
        ds.to_caterva("t.b2d", mode="w")
        with caterva.open_tree("t.b2d") as tree:
            tree.pack("t.zarr", zarr=True, overwrite=True)
        given = xr.open_dataset("t.b2d", engine="caterva").load()
        ours = xr.open_dataset("t.zarr", engine="caterva").load()
        xr.testing.assert_identical(given, ours)
        for consolidated in (True, False):
            theirs = xr.open_zarr("t.zarr", consolidated=consolidated, chunks=None).load()
            xr.testing.assert_identical(ours, theirs)

"""Trees that are damaged: repaired in place, and into another."""

from pathlib import Path

import caterva
import numpy as np
import pytest


def made(path: str = "t.b2d") -> str:
    with caterva.open_tree(path, "w") as t:
        t["x"] = np.arange(6, dtype="i2").reshape(2, 3)
        t["g/deep/z"] = np.arange(3)
    return path


def _damage(path: str, chunk: int) -> None:
    place = caterva.open(path).chunk(chunk)
    raw = bytearray(Path(path).read_bytes())
    raw[place.position + place.stored_bytes // 2] ^= 1
    Path(path).write_bytes(raw)


def _damaged() -> np.ndarray:
    items = np.random.default_rng(1).integers(0, 1 << 60, (8, 1000))
    with caterva.open_tree("t.b2d", "w") as t:
        for key in ("g/x", "g/y"):
            t.create_array(key, data=items, chunks=(2, 1000), blocks=(1, 1000))
        t["g"].attrs["title"] = "a run"
    _damage("t.b2d/g/x.b2nd", 2)
    return items


def test_a_sound_tree_needs_no_repair() -> None:
    made()
    report = caterva.Tree.repair("t.b2d")
    assert report and report.complete and not report.settled and report.members == ()
    assert report.n_members == 3


def test_a_tree_is_repaired_in_place() -> None:
    items = _damaged()
    Path("t.b2d/embed.b2e").unlink()
    heard: list[int] = []
    report = caterva.Tree.repair("t.b2d", progress=lambda done, total: heard.append(done))
    assert not report and [(m.key, m.outcome) for m in report.members] == [
        ("/", "whole"),
        ("/g/x", "partly"),
    ]
    tree, x = report.members
    assert (
        tree.array is None and tree.kind_name == "tree" and "embed.b2e" in (tree.reason or "")
    )
    assert x.kind_name == "array" and x.beside == "g/x.b2nd.repaired" and x.array is not None
    assert (x.array.found, x.array.n_chunks, x.array.lost_chunks) == ("standing", 4, 1)
    assert [(d.chunk, d.index) for d in x.array.damages] == [(2, (2, 0))]
    assert heard and np.array_equal(caterva.load("t.b2d/g/x.b2nd.repaired")[6:], items[6:])
    with pytest.raises(FileExistsError):
        caterva.Tree.repair("t.b2d")
    assert not caterva.Tree.repair("t.b2d", overwrite=True)


@pytest.mark.parametrize("output", ["out.b2z", "out.b2d"])
def test_a_tree_is_repaired_into_another(output: str) -> None:
    items = _damaged()
    before = Path("t.b2d/g/x.b2nd").read_bytes()
    report = caterva.Tree.repair("t.b2d", output)
    assert [m.key for m in report.members] == ["/g/x"] and Path("t.b2d/embed.b2e").exists()
    assert Path("t.b2d/g/x.b2nd").read_bytes() == before
    t = caterva.open_tree(output)
    assert np.array_equal(t["g/y"][:], items) and t["g"].attrs["title"] == "a run"
    assert (t["g/x"][4:6] == 0).all() and np.array_equal(t["g/x"][:4], items[:4])


def test_an_archive_without_its_end_is_repaired() -> None:
    with caterva.open_tree(made()) as t:
        t.pack("t.b2z")
    Path("t.b2z").write_bytes(Path("t.b2z").read_bytes()[:-22])
    with pytest.raises(caterva.CorruptError):
        caterva.open_tree("t.b2z")
    with pytest.raises(ValueError, match="output"):
        caterva.Tree.repair("t.b2z")
    caterva.Tree.repair("t.b2z", "out.b2z")
    assert caterva.open_tree("out.b2z")["g/deep/z"][:].tolist() == [0, 1, 2]


def test_repairs_that_cannot_be() -> None:
    made()
    with caterva.open_tree("t.b2d", "r+"), pytest.raises(BlockingIOError):
        caterva.Tree.repair("t.b2d")
    with pytest.raises(FileNotFoundError):
        caterva.Tree.repair("none.b2d")
    Path("f.b2z").write_bytes(b"no zip")
    with pytest.raises(caterva.CorruptError) as damaged:
        caterva.Tree.repair("f.b2z", "out.b2d")
    assert damaged.value.filename.endswith("/f.b2z") and not Path("out.b2d").exists()
    with pytest.raises(FileExistsError) as caught:
        caterva.Tree.repair("t.b2d", "t.b2d")
    assert caught.value.filename.endswith("/t.b2d")


def test_a_repair_that_fails_can_be_done_again() -> None:
    items = _damaged()

    def fail(done: int, total: int) -> None:
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        caterva.Tree.repair("t.b2d", "out.b2z", progress=fail)
    caterva.Tree.repair("t.b2d", "out.b2z", overwrite=True)
    assert np.array_equal(caterva.open("out.b2z::/g/y")[:], items)

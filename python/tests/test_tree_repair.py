"""Damaged trees: verified, repaired in place, and repaired into another tree."""

import zipfile
from pathlib import Path
from typing import Any

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
    assert Path(damaged.value.filename).name == "f.b2z" and not Path("out.b2d").exists()
    with pytest.raises(caterva.InvalidError, match="is the damaged tree itself"):
        caterva.Tree.repair("t.b2d", "t.b2d")


def test_a_repair_that_fails_can_be_done_again() -> None:
    items = _damaged()

    def fail(done: int, total: int) -> None:
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        caterva.Tree.repair("t.b2d", "out.b2z", progress=fail)
    caterva.Tree.repair("t.b2d", "out.b2z", overwrite=True)
    assert np.array_equal(caterva.open("out.b2z::/g/y")[:], items)


# ---- Verify ---------------------------------------------------------------------------


@pytest.mark.parametrize("packed", [False, True])
def test_a_sound_tree_is_verified(packed: bool) -> None:
    made()
    t = caterva.open_tree("t.b2d", "r+")
    t.attrs["title"] = "whole"
    t.commit()
    if packed:
        t.pack("t.b2z")
        t = caterva.open_tree("t.b2z")
    heard: list[tuple[int, int]] = []
    report = t.verify(progress=lambda done, total: heard.append((done, total)))
    assert report and report.ok and report.members == () and report.n_members > 3
    assert heard and heard[-1][0] == heard[-1][1] and str(report).startswith("ok")
    assert t["g"].verify().n_members == 1 and t.verify(quick=True, threads=1)


def test_verify_counts_what_it_does_not_look_at() -> None:
    made()
    caterva.open_tree("t.b2d").pack("t.b2z")
    t = caterva.open_tree("t.b2z")
    assert t.verify().n_skipped == 0 and "not checked" not in str(t.verify())
    with zipfile.ZipFile("t.b2z", "a", zipfile.ZIP_DEFLATED) as archive:
        for key in ("y", "g/y"):
            archive.write("t.b2d/x.b2nd", f"{key}.b2nd")
    t = caterva.open_tree("t.b2z")
    report = t.verify()
    assert report and report.n_skipped == 2 and report.members == ()
    assert str(report) == f"ok, {report.n_members} members, 2 not checked"
    assert t["g"].verify().n_skipped == 1


def test_verify_lists_keys_that_differ_only_in_case() -> None:
    made()
    with zipfile.ZipFile("case.b2z", "w") as archive:
        for key in ("T", "t", "g/x", "G/x", "other"):
            archive.write("t.b2d/x.b2nd", f"{key}.b2nd")
    report = caterva.open_tree("case.b2z").verify()
    assert report and report.case_collisions == (("/T", "/t"), ("/G", "/g"))
    assert caterva.open_tree("t.b2d").verify().case_collisions == ()


def test_a_member_with_a_damaged_header_is_not_passed_over() -> None:
    made()
    with open("t.b2d/x.b2nd", "r+b") as file:
        file.seek(8)
        file.write(b"?")
    t = caterva.open_tree("t.b2d")
    assert "x" in list(t) and "x" in t
    with pytest.raises(caterva.CorruptError):
        t["x"]
    with pytest.raises(caterva.CorruptError):
        dict(t.arrays())
    assert {e.key: e.kind_name for e in t.entries()}["/x"] == "damaged"


@pytest.mark.parametrize("packed", [False, True])
def test_verify_names_the_damaged_members_of_a_tree(packed: bool) -> None:
    _damaged()
    path = "t.b2d"
    if packed:
        caterva.open_tree(path).pack("t.b2z")
        path = "t.b2z"
    t = caterva.open_tree(path)
    report = t.verify()
    assert not report and not report.ok and report.n_unsealed < report.n_members
    x = next(m for m in report.members if m.key == "/g/x")
    assert x.kind_name == "array" and x.sealed
    assert (x.report.checked_chunks, x.report.damaged_chunks) == (4, 1)
    assert [(d.chunk, d.index) for d in x.report.damages if d.chunk is not None] == [
        (2, (2, 0))
    ]
    assert "/g/x: " in str(report) and "/g/y" not in str(report)
    assert not t["g"].verify()
    assert t.verify(quick=True) or packed


def _stopped_verify(progress: Any, kind: type[BaseException]) -> None:
    """Stop a verify that takes long enough to report progress before its end."""
    n = 1 << 20
    while True:
        with caterva.open_tree("big.b2d", "a") as t:
            t[f"x{n}"] = np.random.default_rng(2).integers(0, 1 << 60, n)
        t = caterva.open_tree("big.b2d")
        try:
            t.verify(progress=progress)
        except kind:
            assert t.verify(quick=True)
            return
        n *= 2


def test_verify_of_a_tree_can_be_stopped() -> None:
    def stop(done: int, total: int) -> bool:
        return done < total

    def interrupt(done: int, total: int) -> None:
        if done < total:
            raise KeyboardInterrupt

    _stopped_verify(stop, caterva.StoppedError)
    _stopped_verify(interrupt, KeyboardInterrupt)
    t = caterva.open_tree("big.b2d")
    t.close()
    with pytest.raises(ValueError, match="closed"):
        t.verify()


def test_an_array_that_cannot_be_opened_is_damage() -> None:
    made()
    raw = bytearray(Path("t.b2d/x.b2nd").read_bytes())
    raw[20:24] = b"\xff\xff\xff\xff"
    Path("t.b2d/x.b2nd").write_bytes(raw)
    report = caterva.open_tree("t.b2d").verify()
    (x,) = report.members
    assert x.key == "/x" and [d.chunk for d in x.report.damages] == [None]

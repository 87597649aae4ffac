"""Trees while others write to one of their files: pending changes are kept."""

from __future__ import annotations

import caterva
import numpy as np
import pytest


def made() -> caterva.Tree:
    with caterva.open_tree("t.b2d", "w") as t:
        t["g/x"] = np.zeros(4, "i4")
        t["g/y"] = np.zeros(4, "i4")
        t["g"].attrs["n"] = 1
    return caterva.open_tree("t.b2d", "r+")


def elsewhere(key: str) -> caterva.Array:
    """Open the array as another program would: locks belong to open files."""
    return caterva.open(f"t.b2d/{key}.b2nd", "r+")


def stored(key: str) -> list[int]:
    items: list[int] = caterva.open(f"t.b2d::/{key}")[:].tolist()
    return items


@pytest.mark.parametrize("key", ["g", "g/y"])
def test_what_cannot_be_deleted_keeps_what_is_pending(key: str) -> None:
    t = made()
    t["g/x"][:] = 9
    t["g/new"] = [1, 2]
    t["g"].attrs["n"] = 2
    other = elsewhere("g/y")
    for _ in range(2):
        with pytest.raises(BlockingIOError, match=r"y\.b2nd is open for writing"):
            del t[key]
    assert t["g/x"][:].tolist() == [9] * 4 and t["g/new"][:].tolist() == [1, 2]
    other.close()
    t.close()
    assert stored("g/x") == [9] * 4 and stored("g/new") == [1, 2]
    assert caterva.open_tree("t.b2d")["g"].attrs["n"] == 2


def test_ours_are_deleted_with_what_is_pending() -> None:
    t = made()
    t["g/x"][:] = 9
    t["g/new"] = [1, 2]
    t["h"] = [3]
    del t["g"]
    t.close()
    assert list(caterva.open_tree("t.b2d")) == ["h"]


@pytest.mark.parametrize("block", [False, True])
def test_a_close_that_cannot_commit_is_repeated(block: bool) -> None:
    t = made()
    t.create_array("g/y", data=np.arange(3), overwrite=True)
    t["g/x"][:] = 5
    t["z"] = [1]
    t["g"].attrs["n"] = 3
    other = elsewhere("g/y")
    other[:] = 7
    with pytest.raises(BlockingIOError, match=r"y\.b2nd is open for writing"):
        if block:
            with t:
                pass
        else:
            t.close()
    assert not t.closed and t["g/x"][:].tolist() == [5] * 4 and t["g"].attrs["n"] == 3
    assert stored("g/x") == [0] * 4
    other.close()
    assert stored("g/y") == [7] * 4
    t.close()
    assert t.closed and stored("g/y") == [0, 1, 2] and stored("g/x") == [5] * 4
    assert stored("z") == [1]
    assert caterva.open_tree("t.b2d")["g"].attrs["n"] == 3


def test_a_commit_that_cannot_be_is_rolled_back() -> None:
    t = made()
    t.create_array("g/y", data=np.arange(3), overwrite=True)
    t["g/x"][:] = 5
    other = elsewhere("g/y")
    with pytest.raises(BlockingIOError):
        t.commit()
    with pytest.raises(BlockingIOError):
        t.close()
    t.discard()
    assert t.closed
    other.close()
    assert stored("g/y") == [0] * 4 and stored("g/x") == [0] * 4
    caterva.open_tree("t.b2d", "r+").close()


def test_an_array_with_an_open_job_is_not_deleted() -> None:
    with caterva.open_tree("job.b2d", "w") as t:
        t.create_array("g/x", data=np.arange(8), chunks=(4,))
    with caterva.open("job.b2d/g/x.b2nd", "r+") as x:
        job = x.job()
    with caterva.open_tree("job.b2d", "r+") as t:
        x = t["g/x"]
        x[0] = 77
        for name in ("g/x", "g"):
            with pytest.raises(caterva.BusyError, match="open job"):
                del t[name]
        assert t["g/x"] is x and x[0] == 77  # pending changes stay
        job.delete()
        t.commit()
        del t["g/x"]
        assert "g/x" not in t

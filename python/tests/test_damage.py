"""Messages about damage name the position and the file."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable
from typing import Any

import caterva
import numpy as np
import pytest


def damaged(path: str, *chunks: int) -> str:
    """Make an array of eight chunks, and flip a bit in some of them."""
    items = np.random.default_rng(1).normal(size=(64, 64))
    caterva.asarray(items, path=path, chunks=(8, 64), blocks=(4, 32)).close()
    with caterva.open(path) as a:
        places = [info for info in a.chunk_infos() if info.number in chunks]
    with open(path, "r+b") as file:
        for info in places:
            file.seek(info.position + info.stored_bytes // 2)
            byte = file.read(1)[0]
            file.seek(-1, os.SEEK_CUR)
            file.write(bytes([byte ^ 8]))
    return path


JOBS: dict[str, Callable[[caterva.Array], Any]] = {
    "read": lambda a: a[:],
    "rows": lambda a: a[np.arange(63, -1, -1)],
    "sum": lambda a: a.sum(),
    "min of rows": lambda a: a.min(axis=1),
    "statistics": lambda a: a.statistics(),
    "histogram": lambda a: a.histogram(4, (-1.0, 1.0)),
    "copy": lambda a: a.copy("copy.b2nd", chunks=(16, 16)),
    "view": lambda a: a.T.copy("view.b2nd"),
}


@pytest.mark.parametrize("name", JOBS)
def test_it_is_the_first_chunk_of_the_file(name: str) -> None:
    a = caterva.open(damaged("a.b2nd", 3, 4, 7), threads=3)
    for _ in range(5):
        with pytest.raises(caterva.CorruptError) as caught:
            JOBS[name](a)
        assert str(caught.value).startswith(f"{os.path.abspath('a.b2nd')}: chunk 3: block ")
        again = pickle.loads(pickle.dumps(caught.value))
        assert str(again) == str(caught.value) and again.filename == caught.value.filename
    assert not os.path.exists("copy.b2nd") and not os.path.exists("view.b2nd")


def test_the_array_of_a_tree_is_named() -> None:
    with caterva.open_tree("t.b2d", "w") as t:
        t["g/x"] = [1]
    damaged("t.b2d/g/x.b2nd.new", 2)
    os.replace("t.b2d/g/x.b2nd.new", "t.b2d/g/x.b2nd")
    with caterva.open_tree("t.b2d") as t:
        with pytest.raises(caterva.CorruptError, match=r"t\.b2d::/g/x: chunk 2: block "):
            t["g/x"][:]
        t.pack("t.b2z")
    with pytest.raises(caterva.CorruptError, match=r"t\.b2z::/g/x: chunk 2: block "):
        caterva.open("t.b2z::/g/x")[:]


def test_in_memory_there_is_no_file() -> None:
    with open(damaged("a.b2nd", 5), "rb") as file:
        a = caterva.from_bytes(file.read())
    with pytest.raises(caterva.CorruptError, match=r"^chunk 5: block ") as caught:
        a[:]
    assert caught.value.filename is None


def test_of_several_arrays_none_is_named() -> None:
    whole = caterva.asarray(np.zeros((64, 64)), path="whole.b2nd")
    a = caterva.open(damaged("a.b2nd", 5))
    both = caterva.concat([whole, a])
    with pytest.raises(caterva.CorruptError, match=r"^chunk 5: block ") as caught:
        both[:]
    assert caught.value.filename is None

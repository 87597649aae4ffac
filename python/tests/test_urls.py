"""Arrays and trees behind URLs, on the server of the library's own tests."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import caterva
import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "support"))
scripted = pytest.importorskip("scripted_server", reason="the library's tests are not here")


@pytest.fixture
def server() -> Iterator[Any]:
    items = np.random.default_rng(3).integers(0, 1000, (60, 50, 40)).astype("i4")
    caterva.save("a.b2nd", items, chunks=(20, 50, 40))
    with scripted.ScriptedServer() as server:
        server.items = items
        server.objects["/a.b2nd"] = Path("a.b2nd").read_bytes()
        try:
            caterva.open(server.url("/a.b2nd")).close()
        except caterva.UnsupportedError as error:
            pytest.skip(str(error))
        server.forget()
        yield server


def test_an_array_behind_a_url(server: Any) -> None:
    a = caterva.open(server.url("/a.b2nd"))
    assert len(server.requests) == 1 and a.path == server.url("/a.b2nd")
    assert not a.writable and a.shape == (60, 50, 40)
    assert np.array_equal(a[5, :, ::7], server.items[5, :, ::7])
    assert a.sum() == server.items.sum()
    assert np.array_equal(a.read_async(np.s_[:, 3]).result(), server.items[:, 3])
    again = pickle.loads(pickle.dumps(a))
    assert np.array_equal(again[::9], server.items[::9])
    assert again.__dask_tokenize__() == a.__dask_tokenize__()
    stored = pickle.dumps(a)
    caterva.save("b.b2nd", server.items[:7])
    server.objects["/a.b2nd"] = Path("b.b2nd").read_bytes()
    with pytest.raises(caterva.StaleError):
        pickle.loads(stored)


def test_what_is_not_there_or_cannot_be_written(server: Any) -> None:
    with pytest.raises(FileNotFoundError):
        caterva.open(server.url("/none.b2nd"))
    with pytest.raises(caterva.Error):
        caterva.open(server.url("/a.b2nd"), "r+")
    with pytest.raises(caterva.Error):
        caterva.save(server.url("/new.b2nd"), [1, 2])


def test_a_tree_behind_a_url(server: Any) -> None:
    with caterva.open_tree("t.b2d", "w") as t:
        t.create_array("g/x", shape=(3, 4), dtype="f4")[...] = 2
        t.attrs["title"] = "far"
    caterva.open_tree("t.b2d").pack("t.b2z")
    server.objects["/t.b2z"] = Path("t.b2z").read_bytes()
    url = server.url("/t.b2z")
    assert caterva.open(url + "::/g/x")[:].sum() == 24
    with caterva.open(url) as tree:
        assert list(tree["g"]) == ["x"] and tree.attrs["title"] == "far"
        assert tree["g/x"][1, 2] == 2

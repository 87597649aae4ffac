"""Publishing arrays and trees to the library's test server."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import caterva
import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "support"))
scripted = pytest.importorskip("scripted_server", reason="the library's tests are not here")

PART = 5 << 20


@pytest.fixture
def server() -> Iterator[Any]:
    with scripted.ScriptedServer() as server:
        caterva.save("a.b2nd", np.arange(9000).reshape(90, 100), chunks=(30, 100))
        server.frame = Path("a.b2nd").read_bytes()
        try:
            caterva.open(server.url("/none.b2nd"))
        except caterva.UnsupportedError as error:
            pytest.skip(str(error))
        except FileNotFoundError:
            server.forget()
        yield server


def noise() -> Any:
    return np.random.default_rng(1).integers(0, 1 << 62, 2_000_000)


def s3_of(server: Any, **more: Any) -> dict[str, Any]:
    return {
        "endpoint": server.url(""),
        "credentials": "given",
        "access_key": "AK",
        "secret_key": "sesame",
    } | more


def test_a_small_file_is_one_request(server: Any) -> None:
    url = server.url("/new.b2nd")
    done = caterva.publish("a.b2nd", url)
    assert done == caterva.Published(len(server.frame), 0, 0, 3, 0, True)
    assert len(server.requests) == 3
    assert server.objects["/new.b2nd"] == server.frame
    assert caterva.open(url)[5, 7] == 507
    put = next(r for r in server.requests if r.method == "PUT")
    assert put.headers["if-none-match"] == "*"


def test_a_tree_is_published(server: Any) -> None:
    with caterva.open_tree("t.b2d", "w") as tree:
        tree["x"] = np.arange(5)
        tree.pack("t.b2z")
    caterva.publish(Path("t.b2z"), server.url("/t.b2z"))
    assert caterva.open(server.url("/t.b2z"))["x"][:].tolist() == [0, 1, 2, 3, 4]


def test_a_copy_for_zarr_is_published(server: Any) -> None:
    with caterva.open_tree("t.b2d", "w") as tree:
        tree["x"] = np.arange(5)
    before = sorted(Path().iterdir())
    caterva.publish("t.b2d", server.url("/t.zarr"), zarr=True)
    caterva.publish("a.b2nd", server.url("/a.zarr"), zarr=True)
    assert sorted(Path().iterdir()) == before
    expected = {
        "/t.zarr/zarr.json",
        "/t.zarr/x/zarr.json",
        "/t.zarr/x/c/0",
        "/a.zarr/zarr.json",
    }
    assert expected < set(server.objects)
    assert caterva.open(server.url("/t.zarr/x/c/0"))[:].tolist() == [0, 1, 2, 3, 4]
    with caterva.open("a.b2nd") as a:
        np.testing.assert_array_equal(caterva.load(server.url("/a.zarr")), a[:])
    with pytest.raises(ValueError, match="for one object"):
        caterva.publish("a.b2nd", server.url("/b.zarr"), zarr=True, if_match='"x"')


def test_the_same_again_sends_nothing(server: Any) -> None:
    url = server.url("/new.b2nd")
    assert not caterva.publish("a.b2nd", url).was_there
    again = caterva.publish("a.b2nd", url)
    assert again.was_there and again.verified
    assert sum(request.method == "PUT" for request in server.requests) == 1


def test_nothing_is_replaced_unasked(server: Any) -> None:
    url = server.url("/new.b2nd?secret=sesame")
    server.objects["/new.b2nd"] = b"something else"
    with pytest.raises(FileExistsError) as failure:
        caterva.publish("a.b2nd", url)
    assert isinstance(failure.value, caterva.ExistsError)
    assert "sesame" not in str(failure.value) and failure.value.filename == server.url(
        "/new.b2nd"
    )
    with pytest.raises(caterva.Error):
        caterva.publish("a.b2nd", url, if_match='"another"')
    assert server.objects["/new.b2nd"] == b"something else"
    caterva.publish("a.b2nd", url, if_match=scripted.etag_of(b"something else"))
    assert server.objects["/new.b2nd"] == server.frame
    caterva.save("b.b2nd", np.arange(7))
    caterva.publish("b.b2nd", url, replace=True)
    assert server.objects["/new.b2nd"] == Path("b.b2nd").read_bytes()


def test_what_is_not_finished_is_refused(server: Any) -> None:
    url = server.url("/new.b2nd")
    caterva.save("d.b2nd", range(9), layout="sparse")
    with pytest.raises(caterva.InvalidError, match="is a directory"):
        caterva.publish("d.b2nd", url)
    with pytest.raises(FileNotFoundError) as failure:
        caterva.publish("none.b2nd", url)
    assert failure.value.filename == os.path.abspath("none.b2nd")
    for other in ("b.b2nd", "gs://bucket/key"):
        with pytest.raises(caterva.InvalidError):
            caterva.publish("a.b2nd", other)
    assert not server.requests


def test_options_are_checked(server: Any) -> None:
    url = server.url("/new.b2nd")
    wrong: list[tuple[dict[str, Any], type[Exception]]] = [
        ({"part_bytes": 9}, ValueError),
        ({"part_bytes": "9"}, TypeError),
        ({"if_match": "no quotes"}, ValueError),
        ({"if_match": 3}, TypeError),
        ({"read_url": "ftp://x"}, ValueError),
        ({"abandon": True}, ValueError),
        ({"replace": "yes"}, TypeError),
        ({"remote": {"try": 3}}, TypeError),
        ({"remote": {"retries": -1}}, ValueError),
        ({"progress": 3}, TypeError),
    ]
    for words, kind in wrong:
        with pytest.raises(kind):
            caterva.publish("a.b2nd", url, **words)
    with pytest.raises(TypeError):
        caterva.publish("a.b2nd", Path("x"))  # type: ignore[arg-type]
    assert not server.requests


def test_signed_in_parts_and_heard_of(server: Any) -> None:
    caterva.save("large.b2nd", noise(), level=0)
    size = Path("large.b2nd").stat().st_size
    heard: list[tuple[int, int]] = []
    requests: list[caterva.Transfer] = []
    done = caterva.publish(
        "large.b2nd",
        "s3://bucket/large.b2nd",
        part_bytes=PART,
        remote=s3_of(server, on_request=requests.append),
        progress=lambda n, total: heard.append((n, total)),
    )
    assert done.parts == -(-size // PART) > 1 and done.bytes == size and done.verified
    assert done.requests == len(server.requests) == len(requests)
    assert heard[-1] == (size, size)
    assert server.objects["/bucket/large.b2nd"] == Path("large.b2nd").read_bytes()
    assert all("Credential=AK/" in r.headers["authorization"] for r in server.requests)


def test_the_bucket_in_the_hosts_name(server: Any) -> None:
    words = s3_of(server, endpoint=f"http://localhost:{server.port}", path_style=False)
    caterva.publish("a.b2nd", "s3://bucket/a.b2nd", remote=words)
    assert {r.headers["host"] for r in server.requests} == {f"bucket.localhost:{server.port}"}
    assert server.objects["/a.b2nd"] == server.frame
    assert caterva.open("s3://bucket/a.b2nd", remote=words)[5, 7] == 507


def test_progress_stops_it_and_resume_goes_on(server: Any) -> None:
    caterva.save("large.b2nd", noise(), level=0)
    words = {"part_bytes": PART, "remote": s3_of(server, connections=1), "resume": "state"}

    class Enough(Exception):
        pass

    def stop(done: int, total: int) -> None:
        if len(server.requests) > 2:
            raise Enough

    server.hears = lambda request: time.sleep(0.2)
    with pytest.raises(Enough):
        caterva.publish("large.b2nd", "s3://bucket/l.b2nd", progress=stop, **words)
    assert "/bucket/l.b2nd" not in server.objects and os.path.exists("state")
    server.hears = None
    done = caterva.publish("large.b2nd", "s3://bucket/l.b2nd", **words)
    assert done.verified and not os.path.exists("state")
    assert server.objects["/bucket/l.b2nd"] == Path("large.b2nd").read_bytes()


def test_a_copy_for_remote_reading(server: Any) -> None:
    items = np.random.default_rng(2).integers(0, 1 << 30, (400, 300, 20)).astype("i4")
    a = caterva.asarray(items, chunks=(100, 300, 20), blocks=(10, 30, 20), level=0)
    a.copy("plain.b2nd").close()
    a.copy("far.b2nd", for_remote=True).close()
    caterva.open("far.b2nd").copy("kept.b2nd").close()
    caterva.open("far.b2nd").copy("none.b2nd", for_remote=False).close()
    sizes = {n: Path(n + ".b2nd").stat().st_size for n in ("plain", "far", "kept", "none")}
    assert sizes["far"] - sizes["plain"] > 4 * (48 + 8 * 100) - 200
    assert abs(sizes["kept"] - sizes["far"]) < 100 and abs(sizes["none"] - sizes["plain"]) < 100
    trips = {}
    for name in ("plain", "kept"):
        caterva.publish(f"{name}.b2nd", server.url(f"/{name}.b2nd"))
        b = caterva.open(server.url(f"/{name}.b2nd"), remote={"over_read_percent": 0})
        assert b[5, 6, 7] == items[5, 6, 7]
        trips[name] = b.transfers.round_trips
    assert trips["kept"] < trips["plain"]
    with pytest.raises(caterva.InvalidError, match="single file"):
        a.copy("d.b2nd", for_remote=True, layout="sparse")
    with pytest.raises(TypeError):
        a.copy("e.b2nd", for_remote="yes")


def test_certificates(server: Any) -> None:
    certificates = pytest.importorskip("certificates")
    if not certificates.OPENSSL:
        pytest.skip("openssl is not installed")
    authority = certificates.Authority(Path.cwd())
    with scripted.ScriptedServer(tls=authority.certify("s", "DNS:localhost")) as secure:
        url = secure.url("/new.b2nd")
        with pytest.raises(caterva.StoreError, match="certificate of localhost is refused"):
            caterva.publish("a.b2nd", url)
        caterva.publish("a.b2nd", url, remote={"ca_file": authority.file})
        with pytest.raises(caterva.StoreError, match="certificate of localhost is refused"):
            caterva.open(url)
        a = caterva.open(url, remote=caterva.Remote(ca_file=str(authority.file)))
        assert a[5, 7] == 507
        with pytest.raises(caterva.StoreError, match=r"none\.pem"):
            caterva.open(url, remote={"ca_file": "none.pem"})

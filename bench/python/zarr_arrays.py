#!/usr/bin/env python3
"""What an array that is also a Zarr array costs and gains, in four tables:

    making   bytes, and seconds to make one of a frame that fits, beside a plain copy and beside
             python-blosc2's b2nd-to-zarr
    remote   a plane and a box behind a URL, read by zarr-python and TensorStore, from our file
             and from sharded arrays that zarr-python wrote with the same inner chunks
    store    caterva.zarr.Store on a frame, beside zarr-python on its own local sharded array
    browser  requests and bytes of zarrita.js under Node

    zarr_arrays.py [TABLE ...] [--side N] [--turns N] [--delay MS ...] [--json FILE]

Each table takes turns between its columns in one process and compares all items before they count.
Seconds are minima, ratios the medians over turns. --side 128 takes an eighth of the time; requests
and bytes do not need a quiet machine."""

from __future__ import annotations

import argparse
import json
import math
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "compat"))
import remote  # noqa: E402
import tool_fields as fields  # noqa: E402

TABLES = ("making", "remote", "store", "browser")
DATA = [
    (fields.bench, "f4", "lz4"),
    (fields.noisy, "f4", "lz4"),
    (fields.climate, "f4", "zstd"),
    (fields.walk, "i4", "lz4"),
    (fields.walk, "i4", "zstd"),
    (fields.counts, "i4", "zstd"),
]
BLOCKS = {16: (16, 16, 16), 32: (16, 16, 32), 64: (16, 32, 32)}  # KiB of 4-byte items
CHUNKS = (64, 64, 128)
Items = np.ndarray[Any, Any]
Rows = dict[str, dict[str, Any]]


def make_frame(path: Path, items: Items, blocks: tuple[int, ...], codec: str) -> Path:
    import caterva

    caterva.asarray(
        items,
        path=path,
        chunks=CHUNKS,
        blocks=blocks,
        codec=codec,
        level=5,
        filters=["shuffle"],
        overwrite=True,
    ).close()
    return path


def make_dual(frame: Path, path: Path) -> None:
    import caterva

    with caterva.open(frame) as a:
        a.copy(path, zarr=True, overwrite=True, durability="none").close()


def make_sharded(
    path: Path, items: Items, blocks: tuple[int, ...], codec: str, shards: tuple[int, ...]
) -> None:
    import zarr
    from zarr.codecs import BloscCodec

    compressor = BloscCodec(cname=codec, clevel=5, shuffle="shuffle", typesize=items.itemsize)
    array = zarr.create_array(
        path,
        shape=items.shape,
        dtype=items.dtype,
        chunks=blocks,
        shards=shards,
        compressors=[compressor],
        overwrite=True,
    )
    array[...] = items


def bytes_of(path: Path) -> int:
    files = [path] if path.is_file() else [f for f in path.rglob("*") if f.is_file()]
    return sum(f.stat().st_size for f in files)


def in_turn(sides: dict[str, Callable[[], Any]], turns: int) -> dict[str, list[float]]:
    """Returns the seconds of each turn; the side that begins alternates."""
    seconds: dict[str, list[float]] = {name: [] for name in sides}
    for turn in range(turns):
        for name in list(sides)[:: -1 if turn % 2 else 1]:
            begun = time.perf_counter()
            sides[name]()
            seconds[name].append(time.perf_counter() - begun)
    return seconds


def ratio(seconds: dict[str, list[float]], a: str, b: str) -> float:
    """Returns the median of `a` / `b` over the turns that both had."""
    pairs = zip(seconds[a], seconds[b], strict=False)
    return statistics.median(x / y for x, y in pairs)


# ---- Making ----------------------------------------------------------------------------


def making(folder: Path, side: int, turns: int) -> Rows:
    from blosc2.cli import b2nd_to_zarr

    import caterva

    rows: Rows = {}
    plain, dual, theirs = folder / "plain.b2nd", folder / "dual.zarr", folder / "b2.zarr"
    for kind, dtype, codec in DATA:
        items = kind((side, side, side), dtype, np.random.default_rng(1))
        for kib, blocks in BLOCKS.items():
            frame = make_frame(folder / "source.b2nd", items, blocks, codec)
            with caterva.open(frame) as a:
                words = {"overwrite": True, "durability": "none"}
                t = in_turn(
                    {
                        "plain": lambda a=a, w=words: a.copy(plain, **w).close(),
                        "dual": lambda a=a, w=words: a.copy(dual, zarr=True, **w).close(),
                    },
                    3 * turns,
                )
            t |= in_turn(
                {
                    "rival": lambda f=frame: b2nd_to_zarr(
                        f, theirs, sharded=True, overwrite=True, quiet=True
                    )
                },
                1,
            )
            if not np.array_equal(caterva.open(dual)[...], items):
                raise SystemExit(f"the copy of {kind.__name__} has other items")
            name = f"{kind.__name__} {dtype} {codec}, {kib} KiB"
            rows[name] = {
                "ratio": items.nbytes / bytes_of(plain),
                "more bytes, %": 100 * (bytes_of(dual) / bytes_of(plain) - 1),
                "plain, ms": 1e3 * min(t["plain"]),
                "dual, ms": 1e3 * min(t["dual"]),
                "dual / plain": ratio(t, "dual", "plain"),
                "b2nd-to-zarr / dual": min(t["rival"]) / min(t["dual"]),
            }
    return rows


# ---- Reads -----------------------------------------------------------------------------


def reads(side: int, turn: int) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """Whole planes and boxes at new places."""
    rng = np.random.default_rng(turn)
    i, j, k = (int(rng.integers(side)) for _ in range(3))
    yield "plane, first axis", (i, slice(None), slice(None))
    yield "plane, last axis", (slice(None), slice(None), k)
    corner = [min(n, side - 64) for n in (i, j, k)]
    yield "box of 64^3", tuple(slice(n, n + 64) for n in corner)


def columns(folder: Path, items: Items, blocks: tuple[int, ...], codec: str) -> dict[str, Path]:
    """Makes the arrays that are compared."""
    frame = make_frame(folder / "source.b2nd", items, blocks, codec)
    paths = {
        name: folder / f"{name.replace(' ', '-')}.zarr"
        for name in ("ours", "one shard", "many shards")
    }
    make_dual(frame, paths["ours"])
    make_sharded(paths["one shard"], items, blocks, codec, items.shape)
    make_sharded(paths["many shards"], items, blocks, codec, CHUNKS)
    return paths


# ---- The process that reads a URL --------------------------------------------------------


def open_at(library: str, url: str) -> Callable[[Any], Items]:
    """Nothing is cached: each read opens the array again."""
    if library == "zarr-python":
        import zarr

        return lambda box: zarr.open_array(url, mode="r", zarr_format=3)[box]
    import tensorstore

    def read(box: Any) -> Items:
        spec = {"driver": "zarr3", "kvstore": url + "/"}
        return (
            tensorstore.open(spec, context=tensorstore.Context()).result()[box].read().result()
        )

    return read


def read_for(library: str) -> None:
    """Reads the box of each line of the input."""
    open_at(library, "")
    print("ready", flush=True)
    for line in sys.stdin:
        url, expected, box = json.loads(line)
        key = tuple(slice(*n) if isinstance(n, list) else n for n in box)
        begun = time.perf_counter()
        items = open_at(library, url)(key)
        seconds = time.perf_counter() - begun
        is_right = np.array_equal(items, np.load(expected, mmap_mode="r")[key])
        print(json.dumps([seconds, is_right]), flush=True)


class Reader:
    """A process, Python or Node, that answers each line by one."""

    def __init__(self, *words: object) -> None:
        self.process = subprocess.Popen(
            [str(w) for w in words], text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self.line()

    def line(self) -> Any:
        assert self.process.stdout
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit("a reader ended")
        return None if line == "ready\n" else json.loads(line)

    def ask(self, *words: Any) -> Any:
        assert self.process.stdin
        print(json.dumps(words), file=self.process.stdin, flush=True)
        return self.line()

    def close(self) -> None:
        assert self.process.stdin
        self.process.stdin.close()
        self.process.wait()


def plain(box: tuple[Any, ...]) -> list[Any]:
    return [[s.start, s.stop] if isinstance(s, slice) else s for s in box]


def ask(
    server: remote.Server, reader: Reader, url: str, file: Path, what: str, box: tuple[Any, ...]
) -> dict[str, Any]:
    server.settle()
    server.forget()
    seconds, is_right = reader.ask(url, str(file), plain(box))
    if not is_right:
        raise SystemExit(f"{what}: other items of {url}")
    server.settle()
    done = list(server.requests)
    return {"requests": len(done), "bytes": sum(r.sent for r in done), "seconds": seconds}


def best(old: dict[str, Any] | None, new: dict[str, Any]) -> dict[str, Any]:
    """Counts are means over turns, seconds minima."""
    if not old:
        return new | {"n": 1}
    n = old["n"] + 1
    return {"n": n, "seconds": min(old["seconds"], new["seconds"])} | {
        k: old[k] + (new[k] - old[k]) / n for k in ("requests", "bytes")
    }


def over_http(folder: Path, side: int, turns: int, delays: list[float]) -> Rows:
    items = fields.bench((side, side, side), "f4", np.random.default_rng(1))
    file = folder / "values.npy"
    np.save(file, items)
    paths = columns(folder, items, BLOCKS[32], "lz4")
    cells: dict[tuple[str, str], dict[str, Any]] = {}
    for library in ("zarr-python", "tensorstore"):
        reader = Reader(sys.executable, __file__, "--read", library)
        for delay in delays:
            with remote.Server(delay / 1e3) as server:
                remote.serve(server, folder)
                for turn in range(turns + 1):  # the first one loads libraries
                    for what, box in reads(side, turn):
                        row = f"{library}, {what}, {delay:g} ms"
                        for name, path in list(paths.items())[:: -1 if turn % 2 else 1]:
                            new = ask(
                                server, reader, server.url("/" + path.name), file, row, box
                            )
                            if turn:
                                cells[row, name] = best(cells.get((row, name)), new)
        reader.close()
    rows: Rows = {}
    for (row, name), cell in cells.items():
        rows.setdefault(row, {}).update(
            {
                f"{name}: requests": cell["requests"],
                f"{name}: MB": cell["bytes"] / 1e6,
                f"{name}: ms": 1e3 * cell["seconds"],
            }
        )
    return rows


# ---- The store ---------------------------------------------------------------------------


def from_store(folder: Path, side: int, turns: int) -> Rows:
    import zarr

    import caterva.zarr

    rows: Rows = {}
    for codec in ("lz4", "zstd"):
        items = fields.bench((side, side, side), "f4", np.random.default_rng(1))
        paths = columns(folder, items, BLOCKS[32], codec)
        frame = folder / "source.b2nd"
        arrays = {"Store": zarr.open_array(caterva.zarr.Store(frame), mode="r")}
        arrays |= {name: zarr.open_array(path, mode="r") for name, path in paths.items()}
        wanted: dict[str, list[Any]] = {"whole": [...] * (turns + 1)}
        for turn in range(turns + 1):
            for what, box in reads(side, turn):
                wanted.setdefault(what, []).append(box)
            rng = np.random.default_rng(turn)
            wanted.setdefault("100 points", []).append(
                rng.integers(side, size=(100, 3)).tolist()
            )
        for what, boxes in wanted.items():
            t: dict[str, list[float]] = {name: [] for name in arrays}
            for turn, box in enumerate(boxes):
                for name, array in list(arrays.items())[:: -1 if turn % 2 else 1]:
                    begun = time.perf_counter()
                    found = read_box(array, box)
                    if turn:
                        t[name].append(time.perf_counter() - begun)
                    if not np.array_equal(found, read_box(items, box)):
                        raise SystemExit(f"{name} reads other items: {what}")
            rows[f"{codec}, {what}"] = {f"{n}, ms": 1e3 * min(s) for n, s in t.items()} | {
                "many shards / Store": 1 / ratio(t, "Store", "many shards")
            }
    return rows


def read_box(array: Any, box: Any) -> Any:
    if isinstance(box, list):
        return np.array([array[tuple(point)] for point in box])
    return array[box]


# ---- A browser ---------------------------------------------------------------------------


def in_node(folder: Path, side: int, turns: int) -> Rows:
    packages = ROOT / "build" / "viewer" / "node_modules"
    if not shutil.which("node") or not packages.exists():
        print("browser: skipped, Node or build/viewer is missing (scripts/bootstrap)")
        return {}
    rows: Rows = {}
    items = fields.bench((side, side, side), "f4", np.random.default_rng(1))
    reader = Reader("node", Path(__file__).with_suffix(".mjs"), packages)
    for kib, blocks in BLOCKS.items():
        frame = make_frame(folder / "source.b2nd", items, blocks, "lz4")
        make_dual(frame, folder / "ours.zarr")
        for delay in (0.0, 10.0):
            with remote.Server(delay / 1e3) as server:
                remote.serve(server, folder)
                for turn in range(turns + 1):
                    for what, box in reads(side, turn):
                        server.settle()
                        server.forget()
                        answer = reader.ask(server.url("/ours.zarr"), plain(box))
                        server.settle()
                        if answer[1:] != [
                            math.prod(items[box].shape),
                            float(items[box].flat[-1]),
                        ]:
                            raise SystemExit(f"zarrita.js: {answer} at {box}")
                        if not turn:
                            continue
                        cell = rows.setdefault(f"{what}, {kib} KiB", {"n": 0})
                        done = list(server.requests)
                        if delay == 0:
                            new = {
                                "requests": len(done),
                                "bytes": sum(r.sent for r in done),
                                "seconds": answer[0],
                            }
                            cell |= best(cell if cell["n"] else None, new)
                        else:
                            cell["delayed"] = min(cell.get("delayed", 1e9), answer[0])
    reader.close()
    return {
        name: {
            "requests": c["requests"],
            "MB": c["bytes"] / 1e6,
            "ms": 1e3 * c["seconds"],
            "ms with 10 ms": 1e3 * c["delayed"],
        }
        for name, c in rows.items()
    }


# ---- Tables ------------------------------------------------------------------------------


def show(name: str, rows: Rows) -> None:
    if not rows:
        return
    heads = list(next(iter(rows.values())))
    print("\n| %s | %s |\n|---|%s" % (name, " | ".join(heads), "--:|" * len(heads)))
    for row, cells in rows.items():
        print("| %s | %s |" % (row, " | ".join("%.4g" % cells[h] for h in heads)))
    sys.stdout.flush()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("tables", nargs="*", metavar="TABLE", help=", ".join(TABLES))
    parser.add_argument(
        "--side", type=int, default=256, help="items of an axis, a multiple of 64"
    )
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument(
        "--delay", type=float, nargs="*", default=[0.0, 10.0], help="milliseconds"
    )
    parser.add_argument("--json", type=Path)
    parser.add_argument("--read", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.read:
        read_for(given.read)
        return
    measures: dict[str, Callable[[Path], Rows]] = {
        "making": lambda f: making(f, given.side, given.turns),
        "remote": lambda f: over_http(f, given.side, given.turns, given.delay),
        "store": lambda f: from_store(f, given.side, given.turns),
        "browser": lambda f: in_node(f, given.side, given.turns),
    }
    tables = {}
    for name in given.tables or TABLES:
        with tempfile.TemporaryDirectory(prefix="zarr.") as folder:
            tables[name] = measures[name](Path(folder))
        show(name, tables[name])
    if given.json:
        given.json.write_text(json.dumps({"side": given.side, "tables": tables}, indent=1))


if __name__ == "__main__":
    main()

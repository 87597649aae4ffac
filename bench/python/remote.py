#!/usr/bin/env python3
"""Reads the same array behind a URL through Caterva and other stores: requests, round trips,
bytes and seconds, from a server of our own that delays each response.

    remote.py [--delay MS] [--data noisy|smooth] [--folder FOLDER] [--readers REGEX]
              [--turns N] [--prepare] [--json FILE] [--server-field NAME]

--prepare writes the files and measures nothing; a folder that has them is used as it is. Each
read runs in a process of its own, except that the four reads "open, info, point, next point"
share one. Results are compared before they count. The number of round trips is the length of the
longest chain of requests in which each begins after the response to the previous one: with 16
connections, 64 files take four round trips.

The server sends several parts in one response, as nginx does, but without a Server field.
--server-field nginx adds one, for readers that treat nginx in a special way."""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "support"))
import remote_readers
from scripted_server import Reply, ScriptedServer, etag_of

SHAPE = (512, 512, 256)  # 268 MB of float32
# Names of the reads, one line per process; None reads the array's own description.
RUNS: list[dict[str, Any]] = [
    {"info": None, "point": (300, 300, 100), "next point": (77, 401, 201)},
    {"plane, first axis": (200, slice(None), slice(None))},
    {"plane, last axis": (slice(None), slice(None), 100)},
    {"box of 32^3": (slice(250, 282), slice(120, 152), slice(50, 82))},
    {"all": (slice(None),) * 3},
]


def make(data: str) -> Any:
    """A smooth field; noisy: its 16 low bits are random."""
    i, j, k = np.ogrid[: SHAPE[0], : SHAPE[1], : SHAPE[2]]
    values = (2 + np.sin(i / 40) * np.cos(j / 50) + k / 300).astype("f4")
    if data == "smooth":
        return (np.round(values * 256) / 256).astype("f4")
    noise = np.random.default_rng(42).integers(0, 1 << 16, SHAPE, dtype="u4")
    return (values.view("u4") ^ noise).view("f4")


class Server(ScriptedServer):
    """Also answers HEAD requests, with which some readers get the size. Computes an ETag once,
    and not for each response."""

    def fill(self, objects: dict[str, bytes]) -> None:
        self.objects, self.etags = objects, False
        self.meta = {path: {"ETag": etag_of(body)} for path, body in objects.items()}

    def good(self, request: Any) -> Any:
        if request.method != "HEAD":
            return super().good(request)
        body = self.objects.get(request.path)
        if body is None:
            return Reply(404)
        return Reply(200, {"Content-Length": str(len(body)), "Accept-Ranges": "bytes"})


def trips(requests: list[Any], delay: float) -> int:
    """Returns the length of the longest chain of requests: after each response, the next request
    of the chain is the one that ends first among those that began later. They may begin slightly
    earlier, because a client can send a request before the server has read its clock."""
    count, free = 0, 0.0
    for request in sorted(requests, key=lambda r: r.ended):
        if request.began >= free - delay / 4:
            count, free = count + 1, request.ended
    return count


# ---- The process that reads ------------------------------------------------------------------


def read_for(name: str, url: str) -> None:
    """Opens the array, then makes the read that each line of the input names. The libraries are
    imported before the clock starts."""
    reader = next(r for r in remote_readers.READERS if r.name == name)
    remote_readers.why_not(reader)
    values = None
    print("loaded", flush=True)
    array = None
    for line in sys.stdin:
        run, what, file = json.loads(line)
        begun = time.perf_counter()
        if what == "open":
            array = reader.open(url)
            items = (array.shape, array.dtype.str)
        elif what == "info":
            items = array.describe()
        else:
            items = array[RUNS[run][what]]
        seconds = time.perf_counter() - begun
        if values is None:
            values = np.load(file, mmap_mode="r")
        if what == "open":
            right = items == (values.shape, values.dtype.str)
        else:
            right = what == "info" or np.array_equal(items, values[RUNS[run][what]])
        print(json.dumps([seconds, bool(right)]), flush=True)
    sys.stdout.flush()


class Process:
    def __init__(self, name: str, url: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, __file__, "--read", name, url],
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self.process.stdout.readline()

    def say(self, *words: Any) -> Any:
        self.process.stdin.write(json.dumps(words) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline() or "null")

    def close(self) -> None:
        self.process.stdin.close()
        self.process.wait()


# ---- Measuring -------------------------------------------------------------------------------


def measure(reader: Any, server: Server, file: Path, turns: int) -> dict[str, dict[str, Any]]:
    """The fastest turn of each read."""
    rows: dict[str, dict[str, Any]] = {}
    for run, reads in [*enumerate(RUNS)] * turns:
        process = Process(reader.name, server.url("/"))
        for what in ["open", *reads]:
            server.settle()
            server.forget()
            answer = process.say(run, what, str(file))
            if answer is None:
                raise SystemExit("%s ends while it reads: %s" % (reader.name, what))
            if not answer[1]:
                raise SystemExit("%s reads other items: %s" % (reader.name, what))
            server.settle()
            done = list(server.requests)
            row = {
                "requests": len(done),
                "trips": trips(done, server.delay),
                "bytes": sum(r.sent for r in done),
                "seconds": answer[0],
            }
            if what not in rows or row["seconds"] < rows[what]["seconds"]:
                rows[what] = row
        process.close()
    return rows


def serve(server: Server, folder: Path) -> int:
    files = [p for p in folder.rglob("*") if p.is_file()]
    server.fill({"/" + str(p.relative_to(folder)): p.read_bytes() for p in files})
    return sum(map(len, server.objects.values()))


def prepare(folder: Path, data: str, readers: list[Any]) -> Path:
    file = folder / data / "values.npy"
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        np.save(file, make(data))
    for reader in readers:
        place = folder / data / re.sub("[^a-z0-9]+", "-", reader.name.lower())
        if not place.exists():
            place.mkdir()
            reader.write(place, np.load(file))
    return file


def show(result: dict[str, dict[str, dict[str, Any]]]) -> None:
    names = list(next(iter(result.values())))
    for title, cell in (
        ("round trips / requests", lambda r: "%d / %d" % (r["trips"], r["requests"])),
        ("MB", lambda r: "%.2f" % (r["bytes"] / 1e6)),
        ("seconds", lambda r: "%.3f" % r["seconds"]),
    ):
        print("\n| %s | %s |\n|---|%s" % (title, " | ".join(names), "--:|" * len(names)))
        for reader, rows in result.items():
            print("| %s | %s |" % (reader, " | ".join(cell(rows[n]) for n in names)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--delay", type=float, default=50, help="milliseconds")
    parser.add_argument("--data", choices=("noisy", "smooth"), default="noisy")
    parser.add_argument("--turns", type=int, default=1)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--readers", default="", help="those whose names have this in them")
    parser.add_argument("--prepare", action="store_true")
    parser.add_argument("--server-field", help="what the server calls itself")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--read", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.read:
        read_for(*given.read)
        return
    readers = []
    for reader in remote_readers.READERS:
        reason = remote_readers.why_not(reader)
        if reason:
            print("skipped: %s: %s" % (reader.name, reason))
        elif re.search(given.readers, reader.name):
            readers.append(reader)
    with tempfile.TemporaryDirectory(prefix="remote.") as scratch:
        folder = given.folder or Path(scratch)
        file = prepare(folder, given.data, readers)
        result = {}
        for reader in () if given.prepare else readers:
            with Server(given.delay / 1e3, name=given.server_field) as server:
                size = serve(
                    server, folder / given.data / re.sub("[^a-z0-9]+", "-", reader.name.lower())
                )
                result[reader.name] = measure(reader, server, file, given.turns)
                print("%s: %d bytes stored" % (reader.name, size), flush=True)
    if result:
        print("%s, %g ms before each answer" % (given.data, given.delay))
        show(result)
    if given.json:
        given.json.write_text(
            json.dumps({"data": given.data, "delay_ms": given.delay, "rows": result}, indent=1)
        )


if __name__ == "__main__":
    main()

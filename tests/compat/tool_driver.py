"""Runs a helper program (`tool_array`, `tool_session`) from Python, with one line per request.

The helper is found in $CATERVA_HELPER_DIR/compat (the test suite sets it) or given by --tool.
If a helper dies, its request fails with what it wrote to stderr, and the next request starts a
new helper."""

import itertools
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
from runs import LONG, SANITIZED, some  # noqa: E402, F401

SKIPPED = 77  # exit status of a test that cannot run here


def skip(sentence):
    print("skipped:", sentence)
    sys.exit(SKIPPED)


def helper_path(program):
    if "--tool" in sys.argv:
        return sys.argv[sys.argv.index("--tool") + 1]
    folder = os.environ.get("CATERVA_HELPER_DIR")
    if folder is None:
        sys.exit("set CATERVA_HELPER_DIR to the tests folder of the build, or give --tool PATH")
    return os.path.join(folder, "compat", program)


def format_box(box):
    """A box (a tuple of slices) in the helper's words."""
    return ",".join(f"{s.start}:{s.stop}" for s in box) or "."


def format_boxes(boxes):
    return ";".join(format_box(box) for box in boxes)


def box_shape(box):
    return tuple(s.stop - s.start for s in box)


class HelperError(Exception):
    """The helper answered with a status other than OK, or died."""

    def __init__(self, status, message):
        super().__init__(f"{status}: {message}")
        self.status = status
        self.message = message


class Helper:
    def __init__(self, folder, program="tool_array"):
        self.folder = folder
        self.program = program
        self.process = None
        self.numbers = itertools.count()
        self.stderr = tempfile.TemporaryFile()

    def close(self):
        if self.process is not None:
            self.process.stdin.close()
            status = self.process.wait()
            if status != 0:
                raise HelperError("ended", f"with status {status}: {self.last_words()}")

    def fresh_path(self, ending):
        return os.path.join(self.folder, f"{next(self.numbers)}.{ending}")

    def last_words(self):
        self.stderr.seek(0)
        return self.stderr.read().decode(errors="replace")[-6000:]

    def start(self):
        self.stderr.truncate(0)
        self.process = subprocess.Popen([helper_path(self.program)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=self.stderr)

    def send(self, op, data=None, **words):
        """Sends one request with the bytes that follow its line, without waiting for the
        response."""
        if self.process is None:
            self.start()
        words["size"] = None if data is None else len(data)
        line = "\t".join([f"op={op}"] + [f"{k}={v}" for k, v in words.items() if v is not None])
        self.process.stdin.write(line.encode() + b"\n" + (data or b""))
        self.process.stdin.flush()

    def receive(self):
        """The next response as a dict, with "data" if bytes follow it; None if the helper has
        ended."""
        answer = self.process.stdout.readline()
        if not answer.endswith(b"\n"):
            return None
        result = json.loads(answer)
        if "size" in result:
            result["data"] = self.process.stdout.read(result["size"])
            if len(result["data"]) < result["size"]:
                return None
        return result

    def run(self, op, data=None, **words):
        """Sends one request; returns its response as a dict or raises HelperError."""
        try:
            self.send(op, data, **words)
            result = self.receive()
        except BrokenPipeError:
            result = None
        if result is None:
            status = self.process.wait()
            self.process = None
            raise HelperError("died", f"with status {status} at {op} {words}: {self.last_words()}")
        if result["status"] != "CATERVA_OK":
            raise HelperError(result["status"], result["message"])
        return result

    def read(self, url, boxes=(), **words):
        """The array's description and its bytes: all items, then each box."""
        out = self.fresh_path("raw")
        info = self.run("read", url=url, out=out, boxes=format_boxes(boxes) or None, **words)
        with open(out, "rb") as file:
            data = file.read()
        os.remove(out)
        sizes = [info["item_size"]] + [info["item_size"]] * len(boxes)
        for length in info["shape"]:
            sizes[0] *= length
        for i, box in enumerate(boxes):
            for length in box_shape(box):
                sizes[i + 1] *= length
        ends = list(itertools.accumulate(sizes))
        assert len(data) == ends[-1], f"the helper wrote {len(data)} bytes, not {ends[-1]}"
        return info, [data[end - size:end] for end, size in zip(ends, sizes)]

    def write(self, op, pieces, boxes=None, **words):
        """Creates (op "create") or changes (op "write") an array with `pieces` of bytes."""
        path = self.fresh_path("raw")
        with open(path, "wb") as file:
            file.write(b"".join(pieces))
        try:
            return self.run(op, file=path, boxes=format_boxes(boxes) if boxes else None, **words)
        finally:
            os.remove(path)

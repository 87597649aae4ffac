"""What tests of URLs share: a frame on a scripted server, and a program that reads it."""


import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
import nginx_server  # noqa: E402
from scripted_server import ScriptedServer  # noqa: E402

CLI = os.environ.get("CATERVA_CLI", "caterva")
HELPERS = Path(os.environ.get("CATERVA_HELPER_DIR", "."))
NGINX = nginx_server.find()
OPENING = 65536  # bytes of the end that opening reads


def convert(folder, name, items, *options):
    np.save(folder / "in.npy", items)
    subprocess.run([CLI, "convert", "-f", folder / "in.npy", folder / name, *options], check=True,
                   stdout=subprocess.DEVNULL)
    return folder / name


def fnv(data):
    value = 14695981039346656037
    for byte in data:
        value = (value ^ byte) * 1099511628211 & (1 << 64) - 1
    return "%016x" % value


class Reader:
    """The program tool_remote, connected by pipes."""

    def __init__(self):
        self.process = subprocess.Popen([HELPERS / "reliability" / "tool_remote"],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def say(self, *words):
        self.process.stdin.write(" ".join(map(str, words)) + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().rstrip("\n")

    def close(self):
        self.process.stdin.close()
        status = self.process.wait()
        self.process.stdout.close()
        if status:
            raise AssertionError("tool_remote ends with status %d" % status)


def frames(folder):
    """A sealed frame larger than what opening reads, and one of the same size with other
    items."""
    rng = np.random.default_rng(7)
    items = rng.integers(0, 1 << 20, (40, 60, 50)).astype("i4")
    partition = ["--chunks", "10,20,50", "--blocks", "5,10,25", "--codec", "blosclz", "--level", "0", "-T", "1"]
    first = convert(folder, "a.b2nd", items, *partition).read_bytes()
    second = convert(folder, "b.b2nd", items[::-1].copy(), *partition).read_bytes()
    assert len(first) == len(second) > 200000
    return items, first, second


def far_chunks(path):
    """The first items of the chunks that are not read by opening. They differ between files:
    chunks are stored in the order in which they were written."""
    info = json.loads(subprocess.run([CLI, "info", "--chunks", "--json", path], check=True,
                                     stdout=subprocess.PIPE).stdout)
    end = path.stat().st_size - OPENING
    return [tuple(i * n for i, n in zip(chunk["index"], info["chunk_shape"]))
            for chunk in info["chunks"]
            if chunk["position"] + chunk["stored_bytes"] <= end]


class Served(unittest.TestCase):
    """A reader for each test, and servers of `frame`, which is created in `folder`."""

    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory()
        cls.folder = Path(cls.scratch.name)

    @classmethod
    def tearDownClass(cls):
        cls.scratch.cleanup()

    def setUp(self):
        self.reader = Reader()
        self.addCleanup(self.reader.close)

    def serve(self, frame=None, **options):
        server = ScriptedServer(**options)
        self.addCleanup(server.close)
        server.objects["/a.b2nd"] = self.frame if frame is None else frame
        return server


class Case(Served):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.items, cls.frame, cls.other = frames(cls.folder)
        cls.hash, cls.other_hash = fnv(cls.items.tobytes()), fnv(cls.items[::-1].tobytes())

    def opened(self, server, *words):
        self.assertEqual(self.reader.say("open", server.url("/a.b2nd"), *words), "ok")

    def reads_right(self):
        self.assertEqual(self.reader.say("read"), "ok " + self.hash)

    def fails(self, answer, words, code="CATERVA_EIO"):
        self.assertRegex(answer, r"\Aerror %s .*%s" % (code, words))

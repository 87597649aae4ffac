#!/usr/bin/env python3
"""Measures reads at a URL: requests, bytes and seconds of some reads, from a server of our own
that delays each response. Each row is a separate process, so nothing is cached.

usage: bench/remote.py [--delay MS] [--file FILE]
       with the program in CATERVA_CLI"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "support"))
from scripted_server import ScriptedServer  # noqa: E402

CLI = os.environ.get("CATERVA_CLI", "build/release/bin/caterva")
ROWS = [("open", None), ("point", "100,100,100"), ("plane, first axis", "100"),
        ("plane, last axis", ":,:,100"), ("a corner", "0:32,0:32,0:32"), ("all", "...")]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--delay", type=float, default=50, help="milliseconds")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, ScriptedServer(given.delay / 1e3) as server:
        file = Path(folder) / "a.b2nd"
        np.save(Path(folder) / "a.npy", np.random.default_rng(1).random((256, 256, 416)))
        subprocess.run([CLI, "convert", "--no-progress", Path(folder) / "a.npy", file, "--chunks",
                        "64,64,104", "--blocks", "8,16,26", "--codec", "lz4"], check=True)
        server.objects["/a.b2nd"] = file.read_bytes()
        print("%d bytes, %g ms before each answer" % (file.stat().st_size, given.delay))
        print("%-20s %8s %12s %8s" % ("", "requests", "bytes", "seconds"))
        for name, selection in ROWS:
            server.forget()
            out = Path(folder) / "out.npy"
            words = ["get", "-f", "--no-progress", server.url("/a.b2nd"), selection, "-o", out] \
                if selection else ["info", server.url("/a.b2nd")]
            subprocess.run([CLI, *map(str, words)], check=True, stdout=subprocess.DEVNULL)
            time.sleep(0.1)
            done = server.requests
            print("%-20s %8d %12d %8.3f" % (name, len(done), server.sent,
                                            max(r.ended for r in done) - done[0].began))


main()

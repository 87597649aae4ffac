#!/usr/bin/env python3
"""A 32-bit build is configured without URLs, trees and jobs, and says so."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(os.environ.get("CATERVA_SOURCE_DIR", Path(__file__).parents[2]))
PROGRAM = "int main(void) { return sizeof(void *) == 4 ? 0 : 1; }\n"


def builds_for_32_bits(folder):
    """True if the compiler supports -m32; it need not be able to link."""
    source = Path(folder, "probe.c")
    source.write_text(PROGRAM)
    done = subprocess.run(["cc", "-m32", "-c", source, "-o", Path(folder, "probe.o")],
                          capture_output=True)
    return done.returncode == 0


def main():
    with tempfile.TemporaryDirectory() as folder:
        if not builds_for_32_bits(folder):
            print("cc does not know -m32")
            return 77
        done = subprocess.run(
            ["cmake", "-S", ROOT, "-B", Path(folder, "build"), "-DCMAKE_C_COMPILER=cc",
             "-DCMAKE_C_FLAGS=-m32", "-DCMAKE_TRY_COMPILE_TARGET_TYPE=STATIC_LIBRARY",
             "-DCATERVA_CLI=OFF", "-DCATERVA_TESTS=OFF"],
            capture_output=True, text=True)
        cache = Path(folder, "build", "CMakeCache.txt").read_text()
    wanted = "-- Addresses have 32 bits: "
    left_out = ["CATERVA_%s:BOOL=OFF" % wing for wing in ("REMOTE", "TREES", "JOBS")]
    if done.returncode or wanted not in done.stdout or not all(w in cache for w in left_out):
        print("configured for 32 bits with status %d: %s" % (done.returncode, done.stderr))
        return 1
    print(wanted)
    return 0


if __name__ == "__main__":
    sys.exit(main())

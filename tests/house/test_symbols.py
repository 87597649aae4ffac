"""What the library exports, what caterva.h declares, and what the Debian package
promises (debian/libcaterva0.symbols) are the same names; and the header compiles
alone, in every dialect that may include it."""

import os
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HEADER = ROOT / "include" / "caterva.h"
SYMBOLS = ROOT / "debian" / "libcaterva0.symbols"
BUILD = Path(os.environ.get("CATERVA_HELPER_DIR", ROOT / "build/release/tests")).parent
WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wconversion", "-Werror",
            "-fsyntax-only"]


def declared():
    text = re.sub(r"/\*.*?\*/|^#[^\n]*", "", HEADER.read_text(), flags=re.S | re.M)
    return re.findall(r"CATERVA_API\s[^;]*?\b(caterva_\w+)\(", text)


def exported():
    library = BUILD / "lib" / "libcaterva.so"
    out = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True,
                         text=True, check=True).stdout
    return {line.split()[2] for line in out.splitlines()}


class Symbols(unittest.TestCase):
    def test_header_and_library_agree(self):
        names = declared()
        self.assertGreater(len(names), 40)
        self.assertEqual(len(names), len(set(names)))
        foreign = {name for name in exported() if not name.startswith("caterva_")}
        sanitizers = {name for name in foreign if "asan" in name or "ubsan" in name}
        self.assertEqual(foreign, sanitizers)
        self.assertEqual(exported() - foreign, set(names))

    def test_the_package_promises_them(self):
        first, *lines = SYMBOLS.read_text().splitlines()
        self.assertEqual(first, "libcaterva.so.0 libcaterva0 #MINVER#")
        promised = [re.fullmatch(r" (caterva_\w+)@Base [0-9.]+", line).group(1)
                    for line in lines]
        self.assertEqual(promised, sorted(promised))
        self.assertEqual(promised, sorted(declared()),
                         "debian/libcaterva0.symbols and include/caterva.h disagree")


class Header(unittest.TestCase):
    def compiles(self, compiler, dialect, text):
        if not shutil.which(compiler):
            self.skipTest(f"there is no {compiler}")
        language = "c++" if "++" in dialect else "c"
        with tempfile.NamedTemporaryFile("w", suffix="." + language) as file:
            file.write(text)
            file.flush()
            done = subprocess.run([compiler, f"-std={dialect}", "-x", language, *WARNINGS,
                                   f"-I{HEADER.parent}", file.name],
                                  capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (0, ""), (compiler, dialect))

    def test_alone_and_twice(self):
        text = "#include <caterva.h>\n#include <caterva.h>\nint caterva_user(void);\n"
        for dialect in ("c99", "c11", "c17"):
            self.compiles("cc", dialect, text)
        for dialect in ("c++11", "c++17", "c++20"):
            self.compiles("c++", dialect, text)

    def test_initialisers(self):
        inits = re.findall(r"#define (CATERVA_(\w+)_INIT)\b", HEADER.read_text())
        self.assertGreater(len(inits), 3)
        types = set(re.findall(r"^} (caterva_\w+);", HEADER.read_text(), re.M))
        kinds = [next(t for t in (f"caterva_{name.lower()}", f"caterva_{name.lower()}_options")
                      if t in types) for _, name in inits]
        body = "".join(f"extern {kind} made_{n};\n{kind} made_{n} = {macro};\n"
                       for n, ((macro, _), kind) in enumerate(zip(inits, kinds)))
        for dialect in ("c99", "c11", "c17"):
            self.compiles("cc", dialect, f"#include <caterva.h>\n{body}")


if __name__ == "__main__":
    unittest.main()

"""What the library exports, what caterva.h declares, and what the Debian package
promises (debian/libcaterva1.symbols) are the same names; and the header compiles
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
SYMBOLS = ROOT / "debian" / "libcaterva1.symbols"
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


def imported(library):
    out = subprocess.run(["nm", "-D", "--undefined-only", library], capture_output=True,
                         text=True, check=True).stdout
    return {line.split()[-1] for line in out.splitlines()}


def initialisers():
    """Each _INIT macro of the header with the struct it is for."""
    text = HEADER.read_text()
    return re.findall(r"^#define (CATERVA_\w+_INIT) CATERVA_INIT_\((\w+)\)$", text, re.M)


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
        self.assertEqual(first, "libcaterva.so.1 libcaterva1 #MINVER#")
        promised = [re.fullmatch(r" (caterva_\w+)@Base [0-9.]+", line).group(1)
                    for line in lines]
        self.assertEqual(promised, sorted(promised))
        self.assertEqual(promised, sorted(declared()),
                         "debian/libcaterva1.symbols and include/caterva.h disagree")


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
        body = "".join(f"extern {kind} made_{n};\n{kind} made_{n} = {macro};\n"
                       for n, (macro, kind) in enumerate(initialisers()))
        text = f"#include <caterva.h>\n{body}"
        for dialect in ("c99", "c11", "c17"):
            self.compiles("cc", dialect, text)
            self.compiles("clang", dialect, text)
        for dialect in ("c++11", "c++17", "c++20"):
            self.compiles("g++", dialect, text)
            self.compiles("clang++", dialect, text)

    def test_each_struct_says_its_size(self):
        """What callers allocate can grow: it begins with its size, and a macro named
        after it sets that. Those that cannot grow are these."""
        fixed = {"caterva_error", "caterva_axis", "caterva_metalayer", "caterva_number",
                 "caterva_store_range"}
        lent = {"caterva_dtype", "caterva_field", "caterva_damage", "caterva_transfer"}
        # These the library makes.
        made = {"caterva_info", "caterva_tree_entry", "caterva_tree_list",
                "caterva_tree_member", "caterva_tree_repaired", "caterva_job_entry",
                "caterva_job_list"}
        first = dict(re.findall(r"struct (caterva_\w+) \{\s*(?:/\*.*?\*/\s*)?([^;]*);",
                                HEADER.read_text(), re.S))
        sized = {name for name, member in first.items() if member == "size_t struct_size"}
        self.assertEqual(set(first) - sized, fixed | lent)
        self.assertEqual({kind for _, kind in initialisers()}, sized - made)


CPLUSPLUS = """
#include <caterva.h>
#include <cstdio>
#include <cstring>

template <typename T> static bool is_fresh(const T &made)
{
    T zeros;
    std::memset(&zeros, 0, sizeof zeros);
    zeros.struct_size = sizeof(T);
    return std::memcmp(&made, &zeros, sizeof zeros) == 0;
}

int main()
{
%s
    static const int64_t shape[] = {4, 5};
    caterva_create_options options = CATERVA_CREATE_INIT;
    options.ndim = 2;
    options.shape = shape;
    options.dtype = "<i4";
    caterva_error err;
    caterva_array *array = nullptr;
    if (caterva_create("mem:", &options, &array, &err) != CATERVA_OK) {
        std::puts(err.message);
        return 2;
    }
    caterva_stats stats = CATERVA_STATS_INIT;
    caterva_status status = caterva_statistics(array, nullptr, &stats, &err);
    caterva_discard(array);
    return status == CATERVA_OK && stats.n_items == 20 ? 0 : 3;
}
"""


class CPlusPlus(unittest.TestCase):
    """A C++ program that uses every initialiser, built without a warning, and run."""

    def test_program(self):
        lines = "\n".join(f"    const {kind} made_{n} = {macro};\n"
                          f"    if (!is_fresh(made_{n})) return 1;"
                          for n, (macro, kind) in enumerate(initialisers()))
        library = BUILD / "lib"
        sanitized = (library / "libcaterva.so").exists() and any(
            "san" in name for name in imported(library / "libcaterva.so"))
        if sanitized:
            self.skipTest("a sanitizer must come first in a program")
        for compiler in ("g++", "clang++"):
            if not shutil.which(compiler):
                continue
            with self.subTest(compiler), tempfile.TemporaryDirectory() as folder:
                source, program = Path(folder, "use.cpp"), Path(folder, "use")
                source.write_text(CPLUSPLUS % lines)
                done = subprocess.run(
                    [compiler, "-std=c++11", "-pedantic", "-Wall", "-Wextra", "-Werror",
                     f"-I{HEADER.parent}", source, "-o", program, f"-L{library}", "-lcaterva",
                     f"-Wl,-rpath,{library}"], capture_output=True, text=True)
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                self.assertEqual(subprocess.run([program]).returncode, 0)


if __name__ == "__main__":
    unittest.main()

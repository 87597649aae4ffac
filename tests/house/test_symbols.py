"""The exports of the library, the declarations of the public headers, and the Debian package's
list (debian/libcaterva1.symbols) have the same names; and each header compiles alone, in every
dialect that may include it."""

import os
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HEADERS = sorted((ROOT / "include").glob("*.h"))
TEXT = "\n".join(header.read_text() for header in HEADERS)
INCLUDES = "".join(f"#include <{header.name}>\n" for header in HEADERS)
SYMBOLS = ROOT / "debian" / "libcaterva1.symbols"
BUILD = Path(os.environ.get("CATERVA_HELPER_DIR", ROOT / "build/release/tests")).parent
WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wconversion", "-Werror",
            "-fsyntax-only"]


def declared():
    text = re.sub(r"/\*.*?\*/|^#[^\n]*", "", TEXT, flags=re.S | re.M)
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
    """Each _INIT macro of the headers with the struct it is for."""
    return re.findall(r"^#define (CATERVA_\w+_INIT) CATERVA_INIT_\((\w+)\)$", TEXT, re.M)


class Symbols(unittest.TestCase):
    def test_header_and_library_agree(self):
        names = declared()
        self.assertGreater(len(names), 40)
        self.assertEqual(len(names), len(set(names)))
        foreign = {name for name in exported() if not name.startswith("caterva_")}
        sanitizers = {name for name in foreign if "asan" in name or "ubsan" in name}
        self.assertEqual(foreign, sanitizers)
        self.assertEqual(exported() - foreign, set(names))

    def test_the_soname(self):
        """0.8 is the first version with this number, and 1.0 keeps it."""
        out = subprocess.run(["readelf", "-d", BUILD / "lib" / "libcaterva.so"],
                             capture_output=True, text=True, check=True).stdout
        self.assertEqual(re.findall(r"\(SONAME\).*\[(.*)\]", out), ["libcaterva.so.1"])

    def test_the_package_promises_them(self):
        first, *lines = SYMBOLS.read_text().splitlines()
        self.assertEqual(first, "libcaterva.so.1 libcaterva1 #MINVER#")
        promised = [re.fullmatch(r" (caterva_\w+)@Base [0-9.]+", line).group(1)
                    for line in lines]
        self.assertEqual(promised, sorted(promised))
        self.assertEqual(promised, sorted(declared()),
                         "debian/libcaterva1.symbols and include/ disagree")


def arguments(name):
    """Types and names of a function's arguments after the object."""
    text = re.sub(r"/\*.*?\*/", "", TEXT, flags=re.S)
    found = re.search(rf"\b{name}\(([^;]*)\);", text)
    return [" ".join(argument.split()) for argument in found.group(1).split(",")][1:]


class Pairs(unittest.TestCase):
    """Functions on the items of an array have a counterpart for views, with the same
    arguments."""

    # A selection of a view is what a selection of an array is, so the short names suffice.
    ARRAY_NAMES = {"caterva_view_read": "caterva_read_selection",
                   "caterva_view_write": "caterva_write_selection"}

    def test_the_arguments_after_the_object_agree(self):
        names = set(declared())
        twins = {name: self.ARRAY_NAMES.get(name, name.replace("_view", "")) for name in names
                 if name.startswith("caterva_view_") and name != "caterva_view_free"}
        twins = {view: array for view, array in twins.items() if array in names}
        self.assertEqual(len(twins), 7, sorted(twins))
        for view, array in twins.items():
            with self.subTest(view):
                self.assertEqual(arguments(view), arguments(array))


class Header(unittest.TestCase):
    def compiles(self, compiler, dialect, text):
        if not shutil.which(compiler):
            self.skipTest(f"there is no {compiler}")
        language = "c++" if "++" in dialect else "c"
        with tempfile.NamedTemporaryFile("w", suffix="." + language) as file:
            file.write(text)
            file.flush()
            done = subprocess.run([compiler, f"-std={dialect}", "-x", language, *WARNINGS,
                                   f"-I{ROOT / 'include'}", file.name],
                                  capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (0, ""), (compiler, dialect))

    def test_alone_and_twice(self):
        self.assertEqual(len(HEADERS), 7)
        for header in HEADERS:
            text = f"#include <{header.name}>\n" * 2 + "int caterva_user(void);\n"
            for compilers, dialects in ((("gcc", "clang"), ("c11", "c17")),
                                        (("g++", "clang++"), ("c++11", "c++20"))):
                for compiler in filter(shutil.which, compilers):
                    for dialect in dialects:
                        with self.subTest(header.name, compiler=compiler, dialect=dialect):
                            self.compiles(compiler, dialect, text)

    def test_initialisers(self):
        body = "".join(f"extern {kind} made_{n};\n{kind} made_{n} = {macro};\n"
                       for n, (macro, kind) in enumerate(initialisers()))
        text = INCLUDES + body
        for dialect in ("c11", "c17"):
            self.compiles("cc", dialect, text)
            self.compiles("clang", dialect, text)
        for dialect in ("c++11", "c++17", "c++20"):
            self.compiles("g++", dialect, text)
            self.compiles("clang++", dialect, text)

    def test_each_struct_says_its_size(self):
        """Structs that callers allocate can grow: their first member is their size, and a macro
        with their name sets it. Structs that are elements of arrays, or need no initialisation,
        have reserved members instead."""
        fixed = {"caterva_error", "caterva_axis", "caterva_metalayer", "caterva_number",
                 "caterva_store_range", "caterva_field", "caterva_progress"}
        lent = {"caterva_dtype", "caterva_damage", "caterva_transfer"}  # never in arrays
        # Created by the library.
        made = {"caterva_info", "caterva_tree_entry", "caterva_tree_list",
                "caterva_tree_member", "caterva_tree_repaired", "caterva_job_entry",
                "caterva_job_list"}
        first = dict(re.findall(r"struct (caterva_\w+) \{\s*(?:/\*.*?\*/\s*)?([^;]*);",
                                TEXT, re.S))
        sized = {name for name, member in first.items() if member == "size_t struct_size"}
        self.assertEqual(set(first) - sized, fixed | lent)
        for name in fixed:
            body = re.search(r"struct %s \{(.*?)^\}" % name, TEXT, re.S | re.M).group(1)
            self.assertRegex(body, r"\b(int64_t|char) reserved\b", name)
        self.assertEqual({kind for _, kind in initialisers()}, sized - made)


CPLUSPLUS = INCLUDES + """
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
                     f"-I{ROOT / 'include'}", source, "-o", program, f"-L{library}", "-lcaterva",
                     f"-Wl,-rpath,{library}"], capture_output=True, text=True)
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                self.assertEqual(subprocess.run([program]).returncode, 0)


if __name__ == "__main__":
    unittest.main()

"""The library without its optional wings: it builds without a warning, needs no other library
than C-Blosc2, and functions of a wing report what was left out."""

import ctypes
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CACHE = Path.cwd().parent / "CMakeCache.txt"  # of the build that runs this test
CALLS = {  # one function of each wing, with arguments that are valid if it is built
    "CATERVA_TREES": ("caterva_tree_open", (b"none.b2d", None, ctypes.byref(ctypes.c_void_p()))),
    "CATERVA_JOBS": ("caterva_jobs_list", (b"none.b2nd", None, ctypes.byref(ctypes.c_void_p()))),
    "CATERVA_REMOTE": ("caterva_open", (b"http://localhost:9/none.b2nd", None, ctypes.byref(ctypes.c_void_p()))),
}


def cached(name):
    found = re.search(rf"^{name}:\w+=(.*)$", CACHE.read_text(), re.M) if CACHE.exists() else None
    return found.group(1) if found else ""


class WithoutWings(unittest.TestCase):
    def test_all_left_out(self):
        header = (ROOT / "include/caterva.h").read_text()
        unsupported = int(re.search(r"CATERVA_EUNSUPPORTED = (-\d+)", header).group(1))
        with tempfile.TemporaryDirectory() as folder:
            off = [f"-D{name}=OFF" for name in (*CALLS, "CATERVA_TESTS", "CATERVA_CLI", "CATERVA_BENCH", "CATERVA_LTO")]
            subprocess.run(["cmake", "-S", ROOT, "-B", folder, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Debug",
                            "-DCATERVA_WERROR=ON", f"-DCMAKE_PREFIX_PATH={ROOT}/build/deps/blosc2", *off],
                           check=True, capture_output=True)
            subprocess.run(["cmake", "--build", folder, "--target", "caterva_shared"], check=True, capture_output=True)
            path = next(Path(folder).glob("lib/libcaterva.so*"))
            needed = subprocess.run(["readelf", "-d", path], check=True, capture_output=True, text=True).stdout
            names = re.findall(r"NEEDED.*\[(\w+)", needed)
            self.assertLessEqual(set(names), {"libblosc2", "libc", "libm", "libdl", "libpthread", "ld"}, names)
            library = ctypes.CDLL(str(path))
            for option, (name, arguments) in CALLS.items():
                error = ctypes.create_string_buffer(4096)
                status = getattr(library, name)(*arguments, error)
                self.assertEqual(status, unsupported, name)
                self.assertIn(option.encode(), error.raw, name)


if __name__ == "__main__":
    if cached("CATERVA_SANITIZE"):
        print("This is about the plain build.")
        sys.exit(77)
    unittest.main()

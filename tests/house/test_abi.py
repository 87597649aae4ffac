"""scripts/abi accepts what an old program does not notice, and nothing else: shown with a small
library, whose interface changes in one way at a time."""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HEADER = """typedef enum caterva_kind { CATERVA_A = 0 } caterva_kind;
typedef struct caterva_options { unsigned long struct_size; int level; } caterva_options;
caterva_kind caterva_open(const caterva_options *options);
int caterva_close(void);
"""
SOURCE = """#include "caterva.h"
caterva_kind caterva_open(const caterva_options *options)
{ return options->level ? CATERVA_A : CATERVA_A; }
int caterva_close(void) { return 0; }
"""
SUPPRESSED = "[suppress_type]\n  name = caterva_options\n"


class Abi(unittest.TestCase):
    def describe(self, folder, header, source):
        folder.mkdir()
        (folder / "caterva.h").write_text(header)
        (folder / "a.c").write_text(source)
        library = folder / "liba.so"
        subprocess.run(["cc", "-g", "-shared", "-fPIC", "-Wl,-soname,liba.so.1", "-o", library,
                        folder / "a.c"], check=True)
        out = subprocess.run([ROOT / "scripts/abi", "--describe", library], check=True,
                             text=True, capture_output=True,
                             env=dict(os.environ, CATERVA_ABI_HEADERS=str(folder)))
        (folder / "abi.xml").write_text(out.stdout)
        return folder / "abi.xml"

    def test_changes(self):
        grown = HEADER.replace("int level;", "int level; long limit;")
        cases = [
            ("the same", HEADER, SOURCE, "", True),
            ("a new function", HEADER + "int caterva_new(void);\n",
             SOURCE + "int caterva_new(void) { return 1; }\n", "", True),
            ("a new value", HEADER.replace("A = 0", "A = 0, CATERVA_B = 1"), SOURCE, "", True),
            ("a struct has grown", grown, SOURCE, "", False),
            ("a struct has grown, which is listed", grown, SOURCE, SUPPRESSED, True),
            ("a member in between", HEADER.replace("int level;", "long limit; int level;"), SOURCE,
             "", False),
            ("another type", HEADER.replace("int level;", "long level;"), SOURCE, "", False),
            ("another argument", HEADER.replace("close(void)", "close(int how)"),
             SOURCE.replace("close(void)", "close(int how)"), "", False),
            ("a function is gone", HEADER.replace("int caterva_close(void);\n", ""),
             SOURCE.replace("int caterva_close(void) { return 0; }\n", ""), "", False),
        ]
        with tempfile.TemporaryDirectory() as scratch:
            old = self.describe(Path(scratch, "old"), HEADER, SOURCE)
            for n, (name, header, source, suppressed, expected) in enumerate(cases):
                with self.subTest(name):
                    new = self.describe(Path(scratch, str(n)), header, source)
                    file = new.with_name("suppressed")
                    file.write_text(suppressed)
                    done = subprocess.run([ROOT / "scripts/abi", old, new, file], text=True,
                                          capture_output=True)
                    self.assertEqual(done.returncode == 0, expected, done.stdout + done.stderr)


if __name__ == "__main__":
    if not shutil.which("abidiff"):
        print("There is no abidiff (abigail-tools).")
        sys.exit(77)
    unittest.main()

"""The house's law is enforced: each kind of breach is caught with its place."""

import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))
import check_house  # noqa: E402

CLEAN = {
    "src/base/status.h": "#include <caterva.h>\n#include <stdint.h>\n",
    "src/format/header.h": '#include "base/status.h"\n',
    "src/store/file.c": '#include "base/status.h"\n/* never stderr */\n',
    "src/codec/codec.h": '#include "base/status.h"\n',
    "src/codec/decode.c": '#include "base/status.h"\n#include <blosc2.h>\n',
    "src/frame/open.c": '#include "format/header.h"\nsnprintf(a, 9, "no printf here");\n',
    "src/frame/repair/rescue.h": '#include "frame/open.h"\n',
    "src/engine/plan/plan.h": '#include "frame/repair/rescue.h"\n',
    "src/engine/read/read.h": '#include "engine/plan/plan.h"\n',
    "src/array/array.h": '#include "frame/open.h"\n#include "engine/read/read.h"\n',
    "src/frame/open.h": "\n",
    "src/array/array.c": '#include "base/status.h"\n',
    "cli/cli.h": "#include <caterva.h>\n",
    "cli/main.c": '#include "cli.h"\n#include <png.h>\nprintf("data");\n',
    "examples/01/main.c": "#include <caterva.h>\n",
}

BREACHES = [
    ("src/format/x.c", '\n#include "codec/codec.h"\n', 2),
    ("src/store/x.c", '#include "format/header.h"\n', 1),
    ("src/base/x.c", '/* two\nlines */\n#include "frame/open.h"\n', 3),
    ("src/frame/x.c", "#include <blosc2.h>\n", 1),
    ("src/engine/plan/x.c", '#include "array/array.h"\n', 1),
    ("src/engine/plan/x.c", "#include <b2nd.h>\n", 1),
    ("src/engine/plan/x.c", '#include "engine/read/read.h"\n', 1),
    ("src/frame/x.c", '#include "frame/repair/rescue.h"\n', 1),
    ("src/engine/x.c", "\n", 1),
    ("src/array/x.c", '#include "blosc2/codecs-registry.h"\n', 1),
    ("src/format/x.c", '#include "header.h"\n', 1),
    ("src/format/x.c", '#include "../base/status.h"\n', 1),
    ("src/codec/x.c", 'fprintf(stderr, "no");\n', 1),
    ("src/store/x.c", "\n\nconst char *home = getenv(name);\n", 3),
    ("src/odd/x.c", "\n", 1),
    ("src/x.c", "\n", 1),
    ("cli/x.c", '#include "base/status.h"\n', 1),
    ("cli/x.c", "#include <blosc2.h>\n", 1),
    ("examples/01/x.c", '#include "../../src/base/status.h"\n', 1),
]


def check(files):
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for name, text in files.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
        return check_house.check(root)


class House(unittest.TestCase):
    def test_a_clean_tree_passes(self):
        self.assertEqual(check(CLEAN), ([], len(CLEAN)))

    def test_each_breach_is_caught_at_its_line(self):
        for name, text, line in BREACHES:
            with self.subTest(name=name, text=text):
                found, _ = check({**CLEAN, name: text})
                self.assertEqual([f.split(": ")[0] for f in found],
                                 ["%s:%d" % (name, line)])


if __name__ == "__main__":
    unittest.main()

"""What the pages and the examples show is what the installed library and program
print.

    test_sessions.py PREFIX LIBDIR"""

import os
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import sessions  # noqa: E402


def use(prefix, libdir):
    """The environment that the pages ask for, with this test's Python in front."""
    library = Path(prefix, libdir)
    for name, paths in (("PATH", (Path(prefix, "bin"), Path(sys.executable).parent)),
                        ("PKG_CONFIG_PATH", (library / "pkgconfig",)),
                        ("LD_LIBRARY_PATH", (library,))):
        old = [os.environ[name]] if os.environ.get(name) else []
        os.environ[name] = os.pathsep.join([*map(str, paths), *old])


class Pages(unittest.TestCase):
    def check(self, pages, least):
        total = 0
        for page in pages:
            with self.subTest(page=page.relative_to(ROOT)):
                _, differences, count = sessions.replay_in_scratch(page)
                self.assertEqual(differences, [], "\n".join(differences))
                total += count
        self.assertGreaterEqual(total, least, "commands found")

    def test_the_manual(self):
        self.check(sorted((ROOT / "docs").glob("*.md")), 40)

    def test_the_examples(self):
        self.check(sorted((ROOT / "examples").glob("*/README.md")), 15)


class Runner(unittest.TestCase):
    """A comparison that lets everything pass would prove nothing."""

    def replay(self, text):
        with tempfile.TemporaryDirectory() as folder:
            page = Path(folder, "page.md")
            page.write_text(text)
            return sessions.replay_in_scratch(page)

    def test_good_and_bad_pages(self):
        cases = [("$ echo a\na\n", 0), ("$ echo a\nb\n", 1), ("$ echo a\n", 1),
                 ("$ true\na\n", 1), ("$ echo a; echo b\n...\nb\n", 0),
                 ("$ echo a; echo b\n...\nc\n", 1), ("$ echo 10 20\n10 21\n", 1),
                 ("$ echo size 100 KiB\nsize 109 KiB\n", 0),
                 ("$ echo size 100 KiB\nsize 125 KiB\n", 1),
                 ("$ echo 5 in 100 B\n6 in 100 B\n", 1),
                 ("$ printf '%s\\n' a \\\n> b\na\nb\n", 0),
                 ("$ echo no >&2; exit 3\nno\n", 0), ("$ cat f.txt\nx\n", 0)]
        for session, expected in cases:
            with self.subTest(session=session):
                page = "```text f.txt\nx\n```\n\n```console\n%s```\n" % session
                text, differences, _ = self.replay(page)
                self.assertEqual(len(differences), expected)
                self.assertEqual(text == page, expected == 0)
                self.assertEqual(self.replay(text)[1], [], "what was written is good")


if __name__ == "__main__":
    use(*sys.argv[1:3])
    unittest.main(argv=sys.argv[:1])

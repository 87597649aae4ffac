"""Plain technical English: turns of phrase that a reader has to decode are counted, in the sources
and in the manual. Each count has a limit, which only ever becomes smaller."""

import re
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CODE = ("include", "src", "cli", "python/src", "python/caterva")
MANUAL = ("docs", "man", "examples", "bench/README.md", "bench/rivals/README.md", "README.md",
          "CONTRIBUTING.md", "MAINTAINING.md", "packaging", "SECURITY.md", "CHANGELOG.md", "python/README.md")
CODE_LIMIT = 15
MANUAL_LIMIT = 1

PHRASES = re.compile(r'(?:^|[.:;!?|-] |"""|/\*)\s*Of (?=[a-z])'
                     r"|\b(?:[Nn]obody|[Ss]omebody|hears|heard out|so many)\b"
                     r"|\b(?:is|are) (?:told|none)\b|\b[Ww]ho (?:waits|has|is)\b", re.M)
MARGIN = re.compile(r"\n[ \t]*(?:\*(?!/)|//|#)?[ \t]*(?=\S)")


def found(text):
    """The phrases of a text with the words around them, also where a line ends within one."""
    text = MARGIN.sub(" ", text)
    return [text[max(0, match.start() - 30):match.end() + 30] for match in PHRASES.finditer(text)]


def files(places):
    for place in places:
        path = ROOT / place
        for file in [path] if path.is_file() else sorted(path.rglob("*")):
            if file.suffix in (".c", ".h", ".py", ".pyi", ".md", ".1"):
                yield file


class Voice(unittest.TestCase):
    def check(self, places, limit):
        all_found = ["%s: %s" % (file.relative_to(ROOT), words) for file in files(places)
                     for words in found(file.read_text(encoding="utf-8"))]
        self.assertLessEqual(len(all_found), limit, "\n".join(["", *all_found]))

    def test_the_code(self):
        self.check(CODE, CODE_LIMIT)

    def test_the_manual(self):
        self.check(MANUAL, MANUAL_LIMIT)

    def test_phrases_are_found(self):
        for text, count in (("/* Of two blocks\n * the first */", 1), ("One. Of\n * all blocks", 1),
                            ("what nobody\n   waits for, and who\n * has it", 2), ("of it", 0),
                            ("which is\n# told later", 1), ("the block that is read", 0)):
            self.assertEqual(len(found(text)), count, text)


if __name__ == "__main__":
    unittest.main()

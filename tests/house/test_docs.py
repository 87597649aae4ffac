"""The manual is consistent with this tree: links have targets, the index has every page, and
the tables that map functions are complete. The examples of pages are tested in
tests/install."""

import os
import re
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import reference  # noqa: E402

HEADER = "\n\n".join(header.read_text(encoding="utf-8") for header in reference.HEADERS)
PAGES = [page for pattern in ("*.md", "docs/*.md", "examples/*/*.md", "bench/**/*.md", "python/*.md")
         for page in ROOT.glob(pattern)]
CODE = re.compile(r"^```.*?^```$", re.S | re.M)


def functions(text):
    """Names of the functions that a header exports."""
    text = re.sub(r"/\*.*?\*/|^ *//.*?$|^ *#(?:[^\n]*\\\n)*[^\n]*$", "", text, flags=re.S | re.M)
    return re.findall(r"\b(?:CATERVA_API|BLOSC_EXPORT)\s[^;(]*?(\w+)\(", text)


def anchors(page):
    headings = re.findall(r"^#+ (.*)$", CODE.sub("", page.read_text(encoding="utf-8")), re.M)
    return {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in headings}


def rows(title):
    """The rows of the first table of a section of the page on migrating."""
    text = (ROOT / "docs/migrating.md").read_text(encoding="utf-8")
    section = text[text.index("\n## %s\n" % title):]
    table = re.search(r"^\|---\|---\|\n((?:\|.*\n)+)", section, re.M).group(1)
    found = [re.fullmatch(r"\| `(\w+)` \| (.*) \|", line) for line in table.splitlines()]
    return [match.groups() for match in found]


class Docs(unittest.TestCase):
    def test_the_reference_has_every_function(self):
        page = "".join(reference.pages().values())
        names = functions(HEADER)
        self.assertGreater(len(names), 40)
        for name in names:
            self.assertRegex(page, r"(?m)^### .*`%s`" % name)

    def test_every_function_names_its_thread_class(self):
        classes = re.findall(r"^ \*   (\w+) +(?:call it|no other)", HEADER, re.M)
        self.assertEqual(classes, ["any", "shared", "turns", "alone"])
        for paragraph in re.split(r"\n\n+", HEADER):
            names = functions(paragraph)
            if not names:
                continue
            comment = re.match(r"/\*.*?\*/", paragraph, re.S)
            self.assertIsNotNone(comment, "%s has no comment" % names[0])
            self.assertRegex(comment.group(), r"\n \* Thread: (%s)\b" % "|".join(classes),
                             "the comment of %s" % names[0])

    def test_every_link_leads_somewhere(self):
        count = 0
        for page in PAGES:
            text = CODE.sub("", page.read_text(encoding="utf-8"))
            for link in re.findall(r"\]\(([^)\s]+)\)", text):
                if "://" in link:
                    continue
                count += 1
                path, _, anchor = link.partition("#")
                target = page.parent / path if path else page
                self.assertTrue(os.path.exists(target), "%s: %s" % (page, link))
                if anchor:
                    self.assertIn(anchor, anchors(target), "%s: %s" % (page, link))
        self.assertGreater(count, 30)

    def test_every_page_is_in_the_index(self):
        for index, pattern in (("index.md", "docs/*.*"), ("examples.md", "examples/*")):
            text = (ROOT / "docs" / index).read_text(encoding="utf-8")
            for page in ROOT.glob(pattern):
                if page.suffix in ("", ".md", ".ipynb") and page.name != "index.md":
                    self.assertIn("(%s)" % os.path.relpath(page, ROOT / "docs"), text)
        site = (ROOT / "tools/site_pages.py").read_text(encoding="utf-8")
        for page in ROOT.glob("docs/*.md"):
            if page.name != "index.md":
                self.assertIn('"%s"' % page.stem, site)


class Contributing(unittest.TestCase):
    """CONTRIBUTING names files and functions: they exist."""

    PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    SPANS = re.findall(r"`([^`\n]+)`", CODE.sub("", PAGE))

    def find(self, name):
        """The file or folder of that name, in the root, the library or the command line."""
        for folder in (ROOT, ROOT / "src", ROOT / "cli"):
            if (folder / name).exists():
                return folder / name
        return None

    def test_every_file_is_there(self):
        paths = [s.strip('"<>') for s in self.SPANS if re.fullmatch(r'["<]?[\w.-]+/[\w./-]*[">]?', s)
                 or re.fullmatch(r"\w+\.(?:md|py)", s)]
        self.assertGreater(len(paths), 60)
        for path in paths:
            if "<" not in path and "*" not in path:
                self.assertIsNotNone(self.find(path), path)

    def test_every_name_is_there(self):
        files = [*ROOT.glob("src/**/*.[ch]"), *ROOT.glob("cli/**/*.[ch]"), *reference.HEADERS,
                 ROOT / "tools/check_house.py", ROOT / "tests/compat/test_reduce.py",
                 ROOT / "tests/outside/tool_steps.py", ROOT / "tests/unit/made.h",
                 ROOT / "tests/property/test_reduce_joined.c", ROOT / "tests/fault/crash.h"]
        words = {word for file in files for word in re.findall(r"\w+", file.read_text(encoding="utf-8"))}
        drawn = re.findall(r"\b(?:cv|caterva)_\w+", "".join(CODE.findall(self.PAGE)))
        names = [s for s in self.SPANS if re.fullmatch(r"[a-z]+_\w+|fold|[A-Z_]{4,}", s)] + drawn
        self.assertGreater(len(names), 60)
        for name in names:
            self.assertTrue(name in words, "there is no %s" % name)

    def test_the_functions_of_a_walk_stand_in_their_files(self):
        rows = re.findall(r"^\| `([\w/]+\.[ch])` \| `(\w+)` \|", self.PAGE, re.M)
        self.assertGreater(len(rows), 35)
        for path, name in rows:
            text = (ROOT / "src" / path).read_text(encoding="utf-8")
            self.assertRegex(text, r"(?m)^[a-z][^;=\n]*\b%s\([^;]*?\)\s*\{" % name, path)

    def test_the_rooms_are_drawn(self):
        drawing = CODE.findall(self.PAGE[self.PAGE.index("## The house"):])[0]
        drawn, above = set(), ""
        for indent, name in re.findall(r"^( *)([\w/]+/) ", drawing, re.M):
            above = above if indent else name
            drawn.add(above + name if indent else name)
        rooms = {p.parent.relative_to(ROOT).as_posix() + "/" for folder in ("src", "cli")
                 for p in ROOT.glob(folder + "/**/*.c")} | {"src/engine/"}
        rooms |= {"wasm/", "python/", "python/tests/"} | {
            p.parent.relative_to(ROOT).as_posix() + "/" for pattern in ("python/src/**/*.c", "python/caterva/**/*.py")
            for p in ROOT.glob(pattern)}
        self.assertEqual(drawn, rooms)


class Migrating(unittest.TestCase):
    def check_names(self, table):
        ours = set(functions(HEADER))
        for old, here in table:
            for part in re.split(r"; |, with|\. ", here):
                for name in re.findall(r"`(caterva_\w+)`", part):
                    if "} %s;" % name in HEADER:  # a struct
                        continue
                    if "planned" in part:
                        self.assertNotIn(name, ours, "%s is there: say so for %s" % (name, old))
                    else:
                        self.assertIn(name, ours, old)

    def test_b2nd(self):
        table = rows("b2nd.h")
        self.check_names(table)
        folder = os.environ.get("CATERVA_BLOSC2_INCLUDE", "")
        header = Path(folder, "b2nd.h")
        if not folder or not header.exists():
            self.skipTest("CATERVA_BLOSC2_INCLUDE names no folder with b2nd.h")
        wanted = functions(header.read_text(encoding="utf-8"))
        self.assertGreaterEqual(len(wanted), 38)
        self.assertEqual([name for name in wanted if name not in dict(table)], [])

        # In the other table each name is one of C-Blosc2's.
        text = (ROOT / "docs/migrating.md").read_text(encoding="utf-8")
        blosc2 = header.with_name("blosc2.h").read_text(encoding="utf-8")
        for name in set(re.findall(r"`(blosc2_\w+)`", text)):
            self.assertRegex(blosc2, r"\b%s\b" % name)

    def test_caterva_0_5(self):
        table = rows("Caterva 0.5")
        self.assertEqual(len({old for old, _ in table}), 37)
        self.check_names(table)


if __name__ == "__main__":
    unittest.main()

"""The README is short, and its examples are those of the manual."""

import os
import re
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


class Readme(unittest.TestCase):
    def test_it_is_short(self):
        self.assertLessEqual(len(README.splitlines()), 150)

    def test_its_program_is_the_one_that_the_manual_runs(self):
        page = (ROOT / "docs/c.md").read_text(encoding="utf-8")
        program, = re.findall(r"```c\n(.*?)```", README, re.S)
        self.assertIn("```c plane.c\n%s```" % program, page)
        program, = re.findall(r"```c\n(.*?)```", page, re.S)
        self.assertEqual(program, (ROOT / "examples/01-first-array/main.c").read_text())

    def test_every_link_leads_somewhere(self):
        links = [link for link in re.findall(r"\]\(([^)]+)\)", README) if "://" not in link]
        self.assertGreater(len(links), 3)
        for link in links:
            self.assertTrue(os.path.exists(ROOT / link), link)

    def test_the_version_is_the_changelog_s(self):
        header = (ROOT / "include/caterva.h").read_text()
        version, = re.findall(r'VERSION_STRING "(.*)"', header)
        numbers = re.findall(r"_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)", header)
        self.assertEqual(version, ".".join(numbers))
        newest = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.M).group(1)
        self.assertEqual(version, newest)


if __name__ == "__main__":
    unittest.main()

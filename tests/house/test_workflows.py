"""The workflows are thin: each step is a script of this tree that can be run here, or an action
that is pinned by its hash. actionlint and zizmor look at the rest, where they are installed."""

import re
import shutil
import subprocess
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
TEXT = {path.name: path.read_text() for path in WORKFLOWS}


class Workflows(unittest.TestCase):
    def test_every_step_is_a_script(self):
        count = 0
        for name, text in TEXT.items():
            for command in re.findall(r"^ *(?:- )?run: *(.*)$", text, re.M):
                count += 1
                script = re.fullmatch(
                    r'(?:sudo )?(scripts/[\w-]+)((?: (?:[\w-]+|"\$[A-Z]+"))*)', command)
                self.assertIsNotNone(script, "%s: %s" % (name, command))
                path = ROOT / script.group(1)
                self.assertTrue(path.exists(), "%s: there is no %s" % (name, script.group(1)))
                self.assertTrue(path.stat().st_mode & 0o100, "%s cannot be executed" % path)
                # Options are those that the script names in its first comment.
                head = path.read_text().split("\nset -", 1)[0]
                for option in re.findall(r"--\w+", script.group(2)):
                    self.assertIn(option, head, name)
        self.assertGreater(count, 10)

    def test_words_of_a_matrix_are_words_of_the_script(self):
        foreign = (ROOT / "scripts/test-foreign").read_text()
        words, = re.findall(r"system: \[(.*)\]", TEXT["ci.yml"])
        for word in words.split(", "):
            self.assertRegex(foreign, r"(?m)^ *%s\) " % word)

    def test_actions_are_pinned(self):
        pinned = {}
        for name, text in TEXT.items():
            for action, comment in re.findall(r"uses: *(\S+)(.*)$", text, re.M):
                if action.startswith("./"):
                    self.assertTrue((ROOT / action).exists(), action)
                    continue
                self.assertRegex(action + comment, r"^[\w/-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$", name)
                where, _, number = action.partition("@")
                self.assertEqual(pinned.setdefault(where, number), number, "two hashes of " + where)
        self.assertGreater(len(pinned), 3)

    def test_linters(self):
        commands = [command for command in (["actionlint"], ["zizmor", "--offline", ".github"])
                    if shutil.which(command[0])]
        if not commands:
            self.skipTest("there is no actionlint and no zizmor")
        for command in commands:
            done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main()

"""completion: the scripts parse, and bash offers what the help names, no more."""

import re
import shutil
import subprocess

from tool_cli import Case, main


class Completion(Case):
    def offered(self, *words):
        """What bash would offer for the last of the words."""
        script = self.path("caterva.bash")
        script.write_bytes(self.ok("completion", "bash"))
        quoted = " ".join(f"'{w}'" for w in words)
        asked = (f"source {script}; COMP_WORDS=(caterva {quoted}); COMP_CWORD={len(words)}; "
                 "_caterva; printf '%s\\n' \"${COMPREPLY[@]}\"")
        done = subprocess.run(["bash", "-c", asked], capture_output=True, text=True, check=True)
        self.assertEqual(done.stderr, "")
        return done.stdout.split()

    def commands(self):
        overview = self.text("--help").split("commands:\n")[1].split("\n\n")[0]
        return re.findall(r"^  (\w+)", overview, re.M)

    def test_scripts_parse(self):
        for shell in ("bash", "zsh", "fish"):
            script = self.ok("completion", shell)
            self.assertGreater(len(script), 1000)
            if shutil.which(shell):
                option = "--no-execute" if shell == "fish" else "-n"
                subprocess.run([shell, option], input=script, check=True)
        self.assertIn("'tcsh'", self.fails(2, "completion", "tcsh"))
        self.fails(2, "completion")
        self.fails(2, "completion", "bash", "zsh")

    def test_commands(self):
        self.assertEqual(set(self.offered("")),
                         {*self.commands(), "help", "--help", "--version"})
        self.assertEqual(set(self.offered("co")), {"convert", "compact", "completion"})
        self.assertEqual(self.offered("help", "ver"), ["verify"])
        self.assertEqual(self.offered("completion", ""), ["bash", "zsh", "fish"])

    def test_options(self):
        for name in self.commands():
            page = self.text("help", name).split("options:\n")[1]
            named = set(re.findall(r"^  +(?:(-\w), )?(--[a-z-]+)", page, re.M))
            want = {word for pair in named for word in pair if word}
            self.assertEqual(set(self.offered(name, "-")), want, name)
            for shell in ("zsh", "fish"):
                script = self.text("completion", shell)
                for option in want:
                    self.assertIn(option.lstrip("-"), script)
        self.assertEqual(set(self.offered("view", "a.b2nd", "--r")), {"--range", "--rgb"})

    def test_files_are_left_to_bash(self):
        self.assertEqual(self.offered("info", ""), [])
        self.assertEqual(self.offered("what", "-"), [])
        self.assertRegex(self.text("completion", "bash"), "complete -o default -F _caterva caterva")


if __name__ == "__main__":
    main()

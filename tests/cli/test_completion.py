"""completion: the scripts are valid, and bash offers exactly what the help names."""

import os
import re
import shutil
import subprocess

from tool_cli import Case, main, run


class Completion(Case):
    def offered(self, *words):
        """What bash would offer for the last word."""
        script = self.path("caterva.bash")
        script.write_bytes(self.ok("completion", "bash"))
        quoted = " ".join(f"'{w}'" for w in words)
        asked = (f"source {script}; COMP_WORDS=(caterva {quoted}); COMP_CWORD={len(words)}; "
                 "_caterva; printf '%s\\n' \"${COMPREPLY[@]}\"")
        done = subprocess.run(["bash", "-c", asked], capture_output=True, text=True, check=True)
        self.assertEqual(done.stderr, "")
        return done.stdout.split()

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

    VALUES = {"codec": {"blosclz", "lz4", "zstd", "ndlz", "zfp-rate"},
              "filters": {"none", "shuffle", "bitshuffle", "bytedelta", "trunc-prec"},
              "cmap": {"gray", "viridis", "turbo"}, "prefer": {"size", "speed", "balance"},
              "metalayer": {"b2nd", "caterva"}, "to": {"raw", "npy", "b2nd"},
              "from": {"raw", "npy", "b2nd", "text", "csv"}}
    TAKES = {"codec": "convert", "filters": "create", "cmap": "view", "prefer": "tune",
             "metalayer": "repack", "to": "get", "from": "put"}

    def test_values(self):
        for option, some in self.VALUES.items():
            offered = set(self.offered(self.TAKES[option], "a", f"--{option}", ""))
            self.assertLessEqual(some, offered, option)
            self.assertEqual(set(self.offered(self.TAKES[option], f"--{option}", "=")), offered)
        self.assertNotIn("bytedelta-old", self.offered("create", "--filters", ""))
        self.assertEqual(self.offered("convert", "a", "--codec", "zs"), ["zstd"])
        self.assertEqual(self.offered("convert", "--codec", "=", "zs"), ["zstd"])
        self.assertEqual(self.offered("create", "--filters", "shuffle,bytede"),
                         ["shuffle,bytedelta"])
        self.assertEqual(self.offered("attr", ""), ["list", "get", "set", "delete"])
        self.assertEqual(self.offered("info", "a.b2nd", ""), [])
        self.assertEqual(self.offered("get", "--output", ""), [])

    def test_what_is_offered_is_taken(self):
        """None of the words is refused as unknown."""
        for option in ("codec", "filters", "cmap", "prefer", "metalayer"):
            command = self.TAKES[option]
            for word in self.offered(command, f"--{option}", ""):
                _, _, err = run(command, self.path("none"), *(["--read", "0"] * (command == "tune")),
                                *(["--shape", "2,2", "--dtype", "<f4"] * (command == "create")),
                                *([self.path("b")] * (command in ("convert", "repack"))),
                                f"--{option}", word)
                self.assertNotIn("unknown", err, word)
                self.assertNotIn(f"not '{word}'", err)

    def test_fish(self):
        if not shutil.which("fish"):
            self.skipTest("fish is not there")
        script = self.path("caterva.fish")
        script.write_bytes(self.ok("completion", "fish"))

        def offered(line):
            done = subprocess.run(["fish", "--no-config", "-c",
                                   f"source {script}; complete -C '{line}'"],
                                  capture_output=True, text=True, check=True,
                                  env={**os.environ, "HOME": str(self.folder)})
            return {word.split("\t")[0] for word in done.stdout.splitlines()}
        for option, some in self.VALUES.items():
            self.assertLessEqual(some, offered(f"caterva {self.TAKES[option]} a --{option} "))
        self.assertEqual(offered("caterva convert a --codec zs"), {"zstd"})
        self.assertLessEqual({"list", "get", "set", "delete"}, offered("caterva attr "))
        self.assertEqual(offered("caterva tu"), {"tune"})

    def test_zsh(self):
        """What the function passes to zsh's own functions."""
        if not shutil.which("zsh"):
            self.skipTest("zsh is not there")
        script = self.path("_caterva")
        script.write_bytes(self.ok("completion", "zsh"))

        def handed(*words):
            quoted = " ".join(f"'{w}'" for w in words)
            asked = ("compdef() { :; }; _describe() { print -rl -- $commands; }; "
                     "_arguments() { print -rl -- \"$@\"; }; "
                     f"source {script}; words=(caterva {quoted}); CURRENT={len(words) + 1}; _caterva")
            return subprocess.run(["zsh", "-f", "-c", asked], capture_output=True, text=True,
                                  check=True).stdout
        for option, some in self.VALUES.items():
            spec = next(line for line in handed(self.TAKES[option], "a", "").splitlines()
                        if line.startswith(f"--{option}["))
            offered = re.search(r":(?:\(|_values -s , name )([^)]*)\)?$", spec)
            self.assertLessEqual(some, set(offered[1].split()), spec)
        self.assertIn("1:word:(list get set delete)", handed("attr", ""))
        self.assertIn("tune:compare partitions", handed(""))

    def test_did_you_mean(self):
        path = self.path("a.b2nd")
        self.ok("create", path, "--shape", "2,2", "--dtype", "<f4")
        for meant, command in (
                ("convert", ["covert", "a"]), ("info", ["inof", "a"]), ("completion", ["compl"]),
                ("--json", ["info", "--jsn", path]), ("--threads", ["verify", "--therads=2", path]),
                ("--no-progress", ["put", "--noprogress", path, "0"]), ("zstd", ["create", path, "-f",
                 "--shape", "2", "--dtype", "<f4", "--codec", "zst:3"]),
                ("bytedelta", ["create", path, "-f", "--shape", "2", "--dtype", "<f4", "--filters",
                 "shuffle,bytdelta"]),
                ("viridis", ["view", path, "--cmap", "virids"]), ("fish", ["completion", "fihs"]),
                ("npy", ["get", path, "--to", "npu"]), ("set", ["attr", "ste", path, "k"]),
                ("size", ["tune", path, "--read", "0", "--prefer", "siez"])):
            err = self.fails(2, *command)
            self.assertIn(f"did you mean '{meant}'?", err)
        for command in (["qqqq"], ["info", "--qqqq", path], ["view", path, "--cmap", "qqqq"],
                        ["completion", "tcsh"], ["x" * 4000], ["info", "--" + "x" * 4000, path],
                        ["info", "-x", path], [""]):
            self.assertNotIn("did you mean", self.fails(2, *command))

    def test_files_are_left_to_bash(self):
        self.assertEqual(self.offered("info", ""), [])
        self.assertEqual(self.offered("what", "-"), [])
        self.assertRegex(self.text("completion", "bash"), "complete -o default -F _caterva caterva")


if __name__ == "__main__":
    main()

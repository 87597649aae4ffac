#!/usr/bin/env python3
"""Runs what a page of documentation shows and compares what it prints.

    sessions.py PAGE.md...           names each difference; exit status 1 if any
    sessions.py --write PAGE.md...   puts what was printed into the pages

In a page,

    ```console          is a session: lines with `$ ` are commands, lines with
    $ command           `> ` continue them, what follows is the output of both
    output              streams; a line of `...` stands for any lines
    ```

    ```c name.c         is a file (of any language) that the commands find

All sessions of a page run in one scratch folder, in order, with what PATH and
PKG_CONFIG_PATH give. A page in a folder of its own (README.md of an example)
runs in a copy of that folder.

Compressed sizes differ a little between versions of the codecs: in lines that
show them, numbers with a unit of bytes, ratios and byte positions may differ
by a tenth. All else is compared as it is.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

FENCE = re.compile(r"^```(\S*)[ \t]*(\S*)\n(.*?)^```$", re.S | re.M)
SIZE = re.compile(r"(?<![\w.])(?:(?P<n>\d+(?:\.\d+)?) ?(?P<unit>bytes|B|KiB|MiB|GiB)\b"
                  r"|(?P<word>ratio|at|byte|to|file of) (?P<m>\d+(?:\.\d+)?)"
                  r"|(?P<p>\d+)(?= -> \d+ bytes))")
TIMEOUT = 120


def commands(session):
    """[(command, its lines as shown, output)] of a session's text."""
    found = []
    for line in session.splitlines(keepends=True):
        if line.startswith("$ "):
            found.append([line[2:], line, ""])
        elif line.startswith("> ") and found and not found[-1][2]:
            found[-1][0] += line[2:]
            found[-1][1] += line
        elif not found:
            raise ValueError("a session begins with %r, not with a command" % line)
        else:
            found[-1][2] += line
    return found


def sizes(line):
    return [float(m["n"] or m["m"] or m["p"]) for m in SIZE.finditer(line)]


def without_sizes(line):
    text = SIZE.sub(lambda m: "%s # %s" % (m["word"] or "", m["unit"] or ""), line)
    return " ".join(text.split())


def same_line(shown, printed):
    if shown.rstrip() == printed.rstrip():
        return True
    a, b = sizes(shown), sizes(printed)
    return (len(a) > 0 and without_sizes(shown) == without_sizes(printed)
            and all(abs(x - y) <= max(x, y) / 10 for x, y in zip(a, b)))


def same(shown, printed):
    """Whether output is as shown; `...` lines of `shown` match any lines."""
    if not shown:
        return not printed
    if shown[0].strip() == "...":
        return any(same(shown[1:], printed[i:]) for i in range(len(printed) + 1))
    return bool(printed) and same_line(shown[0], printed[0]) and same(shown[1:], printed[1:])


def run(command, folder):
    # Without what a make around it hands on: its flags make another make print its folders.
    outside = {name: value for name, value in os.environ.items()
               if name not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")}
    done = subprocess.run(["bash", "-c", command], cwd=folder, timeout=TIMEOUT,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT,
                          env=dict(outside, NO_COLOR="1", LC_ALL="C.UTF-8"))
    lines = done.stdout.decode().splitlines()
    return "".join(line.rstrip() + "\n" for line in lines)


def replay(page, folder):
    """Runs the page; returns (its text with what was printed, [differences], number
    of commands)."""
    text, differences, count = page.read_text(encoding="utf-8"), [], 0
    out, end = [], 0
    for block in FENCE.finditer(text):
        language, name, content = block.groups()
        if name:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(content, encoding="utf-8")
        if language != "console":
            continue
        out.append(text[end:block.start(3)])
        end = block.end(3)
        for command, shown_command, shown in commands(content):
            count += 1
            printed = run(command, folder)
            good = same(shown.splitlines(), printed.splitlines())
            out.append(shown_command + (shown if good else printed))
            if not good:
                differences.append("%s: $ %s--- shown\n%s--- printed\n%s"
                                   % (page, command, shown, printed))
    out.append(text[end:])
    return "".join(out), differences, count


def replay_in_scratch(page):
    page = Path(page)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch, "session")
        if page.name == "README.md":
            shutil.copytree(page.parent, folder)
        else:
            folder.mkdir()
        return replay(page, folder)


def main(arguments):
    write = "--write" in arguments
    bad = 0
    for page in [a for a in arguments if a != "--write"]:
        text, differences, count = replay_in_scratch(page)
        if write:
            Path(page).write_text(text, encoding="utf-8")
        else:
            bad += len(differences)
            print("\n".join(differences), end="")
        print("%s: %d commands, %d differ" % (page, count, len(differences)))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

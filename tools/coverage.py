#!/usr/bin/env python3
"""Prints which lines of the library the tests of a build have run.

usage: tools/coverage.py BUILD [PREFIX...]

BUILD was compiled by gcc with --coverage, and its tests have run. For each room of
src/ the lines that were run; then each line that was not, of the files that begin
with a PREFIX ("src/format"). Status 1 when there is one.
"""
import collections
import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def gcov(notes, build):
    out = subprocess.run(["gcov", "--json-format", "--stdout", str(notes)], cwd=build,
                         capture_output=True, text=True, check=True).stdout
    for line in out.splitlines():
        report = json.loads(line)
        for file in report["files"]:
            path = (pathlib.Path(report["current_working_directory"]) / file["file"]).resolve()
            if path.is_relative_to(ROOT / "src"):
                yield str(path.relative_to(ROOT)), file["lines"]


def count_lines(build):
    """{file: {line: times run}}; a line of a header is run when any file ran it."""
    lines = collections.defaultdict(collections.Counter)
    objects = build / "CMakeFiles" / "caterva_objects.dir"
    for notes in sorted(objects.rglob("*.gcno")):
        for name, found in gcov(notes, build):
            for line in found:
                lines[name][line["line_number"]] += line["count"]
    return lines


def main():
    build, prefixes = pathlib.Path(sys.argv[1]).resolve(), tuple(sys.argv[2:])
    lines = count_lines(build)
    rooms = collections.defaultdict(list)
    for name, counts in lines.items():
        rooms[name.split("/")[1]] += counts.values()
    for room, counts in sorted(rooms.items()):
        n_run = sum(count > 0 for count in counts)
        print(f"{room:8} {n_run:5} of {len(counts):5} lines  {100 * n_run / len(counts):6.2f} %")
    missed = [(name, line) for name in sorted(lines) if prefixes and name.startswith(prefixes)
              for line in sorted(lines[name]) if lines[name][line] == 0]
    for name, line in missed:
        print(f"{name}:{line}: {(ROOT / name).read_text().splitlines()[line - 1].strip()}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())

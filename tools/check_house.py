#!/usr/bin/env python3
"""Who may know whom: checks the includes of the whole tree.

    base <- {format, store, codec} <- frame <- engine <- array <- {cli, examples}
    in engine: items <- plan <- cache <- run <- pending <- read <- write <- jobs

Rooms beside each other (format, store, codec) never include each other; the rooms
within engine stand one above the other; nothing in frame knows frame/repair. Only
codec includes C-Blosc2, tests and benchmarks beside it as oracle and rival;
the command line and the examples include <caterva.h> only. The library neither
prints nor reads the environment.

usage: check_house.py [ROOT]      exit status 1 and file:line for each breach
"""

import re
import sys
from pathlib import Path

LIBRARY = ["base", ("format", "store", "codec"), "frame", "frame/repair",
           "engine/items", "engine/plan", "engine/cache", "engine/run", "engine/pending",
           "engine/read", "engine/write", "engine/jobs", "array"]  # from the ground up


def rooms_below():
    """For each room of the library those that it may know besides itself."""
    below, lower = {}, set()
    for floor in LIBRARY:
        rooms = floor if isinstance(floor, tuple) else (floor,)
        for room in rooms:
            below[room] = set(lower)
        lower |= set(rooms)
    return below


BELOW = rooms_below()
CODEC_LIBRARY = re.compile(r"^(blosc2|b2nd)\.h$|^blosc2/")
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
SPEAKS = re.compile(r"\b(stderr|stdout|(?:v?printf|puts|putchar|perror|getenv|secure_getenv)(?=\())")


def code_lines(path):
    """The file's lines without comments and without what stands in strings."""
    text = path.read_text(encoding="utf-8")
    blank = lambda match: "\n" * match.group().count("\n")
    text = re.sub(r"/\*.*?\*/", blank, text, flags=re.S)
    return [re.sub(r"//.*", "", line) for line in text.split("\n")]


def breach_of_include(room, quoted, name, path, root):
    """What is wrong with one include in a file of `room`, or None."""
    if CODEC_LIBRARY.search(name):
        return None if room == "codec" else "only src/codec may include C-Blosc2"
    if room in ("cli", "examples"):
        own = (path.parent / name).resolve()
        if not quoted or (own.is_file() and (root / room).resolve() in own.parents):
            return None
        return "%s may include <caterva.h> and its own headers only" % room
    if not quoted:
        return None
    src = root / "src"
    other = name.rpartition("/")[0]
    if "/" not in name or not (src / name).is_file():
        return 'write it from src/, as "%s/..."' % room
    if other != room and other not in BELOW[room]:
        return "%s may not know %s" % (room, other)
    return None


def breaches_of_file(path, room, root):
    in_library = room in BELOW
    for number, line in enumerate(code_lines(path), 1):
        include = INCLUDE.match(line)
        if include:
            quoted, name = include.group(1) == '"', include.group(2)
            wrong = breach_of_include(room, quoted, name, path, root)
            if wrong:
                yield number, "includes %s: %s" % (name, wrong)
        elif in_library:
            speaks = SPEAKS.search(re.sub(r'"(\\.|[^"\\])*"', '""', line))
            if speaks:
                yield number, "%s: the library prints nothing and reads no environment" \
                    % speaks.group()


def files_by_room(root):
    for path in sorted(root.glob("src/**/*.[ch]")):
        parts = path.relative_to(root / "src").parts
        yield path, "/".join(parts[:-1]) or None
    for room in ("cli", "examples"):
        for path in sorted(root.glob(room + "/**/*.[ch]")):
            yield path, room


def check(root):
    """All breaches below `root` as "file:line: sentence"; and the files seen."""
    found, seen = [], 0
    for path, room in files_by_room(root):
        seen += 1
        where = path.relative_to(root)
        if room is not None and (room in BELOW or room in ("cli", "examples")):
            for number, sentence in breaches_of_file(path, room, root):
                found.append("%s:%d: %s" % (where, number, sentence))
        else:
            found.append("%s:1: stands in no room of the house" % where)
    return found, seen


def main():
    root = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent.parent)
    found, seen = check(root)
    for breach in found:
        print(breach)
    if seen == 0:
        print("%s: no source files" % root)
    else:
        print("%d files, %d breaches of the house's law" % (seen, len(found)))
    return 0 if seen and not found else 1


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""The house in numbers: how long functions are, what each room holds, how far one reads.

    rooms       files and lines, comments included
    functions   how many, and their lines: median, 90 % are not longer, longest
    circles     of files that need each other (check_house.py)
    systems     files outside src/base that include a header of POSIX, or call it

A walk is what somebody does who wants to know all that a function does: reads its body
from the top and, at each name of a function of src that was not read yet, goes there,
reads that in the same way, and comes back. So each function is read once; what is called
through a pointer is read where its name stands; and base is vocabulary (status,
arithmetic, buffers, locks), which is known and not entered.

    functions   that are read
    files       that they stand in
    stays       how often the file changes, and one
    climbs      how often the reader comes back from another file into a function that
                still names something unread: what has to be kept in mind meanwhile

usage: house_figures.py [--walk FUNCTION]... [ROOT]      caterva_read and caterva_commit
"""

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import check_house  # noqa: E402
import house_code  # noqa: E402

VOCABULARY = "base"


class Calls:
    """Which function a name means, seen from a file."""

    def __init__(self, files):
        self.own = {(file.name, f.name): (file, f) for file in files for f in file.functions}
        self.shared = {f.name: (file, f) for file in files for f in file.functions
                       if not f.static or file.is_header}

    def find(self, file, name):
        return self.own.get((file.name, name)) or self.shared.get(name)

    def of(self, file, function):
        """The functions that the body names, in its order."""
        for word in function.names():
            found = self.find(file, word)
            if found and found[1] is not function and found[0].room != VOCABULARY:
                yield found


def walk(calls, name):
    """The figures of the walk from `name`, and its files in the order of reading."""
    start = calls.shared[name]
    read, files, stays, climbs, here = {start[1]}, [start[0].name], 1, 0, start[0]
    stack = [(*start, calls.of(*start))]
    while stack:
        file, function, names = stack[-1]
        found = next((f for f in names if f[1] not in read), None)
        if found is None:
            stack.pop()
            continue
        if file is not here:  # back from elsewhere, with something left to read
            climbs, stays, here = climbs + 1, stays + 1, file
        read.add(found[1])
        if found[0] is not here:
            stays, here = stays + 1, found[0]
        if found[0].name not in files:
            files.append(found[0].name)
        stack.append((*found, calls.of(*found)))
    return {"functions": len(read), "files": len(files), "stays": stays, "climbs": climbs}, files


def of_functions(files):
    lines = sorted(f.n_lines for file in files for f in file.functions)
    if not lines:
        return "no functions"
    return "%d functions, median %d lines, 90 %% up to %d, longest %d" % (
        len(lines), lines[len(lines) // 2], lines[len(lines) * 9 // 10], lines[-1])


def of_rooms(files):
    rooms = {}
    for file in files:
        n_files, n_lines = rooms.get(file.room, (0, 0))
        rooms[file.room] = n_files + 1, n_lines + file.n_lines
    return rooms


def of_systems(root):
    """The files of src that break the law of the seam, among what they break."""
    return [path.relative_to(root).as_posix() for path, room in check_house.files_by_room(root)
            if room in check_house.BELOW and any(
                "only src/base" in sentence
                for _, sentence in check_house.breaches_of_file(path, room, root))]


def report(root, names):
    library = house_code.read_tree(root, "src/**/*.[ch]")
    tool = house_code.read_tree(root, "cli/**/*.[ch]")
    for title, files in (("src", library), ("cli", tool)):
        print("%s: %d files, %d lines; %s" % (title, len(files), sum(f.n_lines for f in files),
                                             of_functions(files)))
        for room, (n_files, n_lines) in of_rooms(files).items():
            print("    %-16s %3d files %6d lines" % (room, n_files, n_lines))
    circles = check_house.circles(check_house.edges_of(check_house.Tree(root)))
    print("circles of files: %d" % len(circles))
    for circle in circles:
        print("    " + ", ".join(circle))
    outside = of_systems(root)
    print("files outside src/base that know the system: %d" % len(outside))
    for name in outside:
        print("    " + name)
    calls = Calls(library)
    for name in names:
        figures, files = walk(calls, name)
        print("walk from %s: %s" % (name, ", ".join("%d %s" % (n, what)
                                                    for what, n in figures.items())))


def main():
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("--walk", action="append", metavar="FUNCTION")
    options.add_argument("root", nargs="?", default=Path(__file__).resolve().parent.parent)
    given = options.parse_args()
    report(Path(given.root), given.walk or ["caterva_read", "caterva_commit"])


if __name__ == "__main__":
    main()

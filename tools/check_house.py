#!/usr/bin/env python3
"""The law of the house, checked on the whole tree.

Rooms, from the ground up:

    core    base <- {format, store, codec} <- frame <- engine <- array
            in engine: items <- plan <- cache <- run <- pending <- read <- write
    wings   value, upkeep, jobs, remote, tree: above the core, beside each other
    top     wings.c fills the table by which the core reaches the wings
    users   cli and examples

A room includes what is below it and itself. format, store and codec never include each
other. The core includes no header of a wing. A wing has one face, a header named like its
room: the faces of value and upkeep are for the other wings, the faces of jobs, remote and
tree for the top only, because a build may leave these three out. All else in a wing is
private. Only codec includes C-Blosc2; the command line and the examples include
<caterva.h> and the headers beside it. The library does not print and does not read the
environment (but base/os_process.c, for credentials). Only base knows the system: no
other room includes a header other than the language's, calls a function of POSIX, or
allocates memory other than by base/heap.h.

And within src, where x.h and x.c are two parts of one module:

    no circles    by includes and by calls, of public functions, too
    few levels    inside one room a chain of includes has at most LEVELS files
    one header    what x.c has for others is declared in x.h or in the face of its wing, or is
                  public; but for KINDS
    one name      no type is defined twice; private ones of a .c may be, if no header's.
                  What a header declares is a type or a function, not both in two places
    no leftovers  what a header declares another file uses; but for FOR_TESTS

The other implementations (*_windows*.c, cli/windows/, os_none.c) are not checked: each of
their functions would be there twice.

KNOWN lists the breaches that are not mended yet. Whoever mends one deletes its line.

usage: check_house.py [ROOT]      exit status 1 and file:line for each breach
"""

import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import house_code  # noqa: E402

CORE = ["base", ("format", "store", "codec"), "frame", "engine/items", "engine/plan",
        "engine/cache", "engine/run", "engine/pending", "engine/read", "engine/write",
        "array"]  # from the ground up

WINGS = ("value", "upkeep", "jobs", "remote", "tree")
LEFT_OUT = {"jobs", "remote", "tree"}  # by a build that does not want them
TOP = ("src/wings.c",)

CLI = ["formats", "terminal", "foreign", "sources", "pictures", "server", "commands"]

# Headers that stand before several files: a layer of a room, or the kinds of one thing.
KINDS = {
    "src/base/os_dir.h": {"src/base/os_names.c"},
    "src/remote/http.h": {"src/remote/%s.c" % name
                          for name in ("url", "reply", "multipart", "ranges")},
    "src/remote/server.h": {"src/remote/%s.c" % name
                            for name in ("wire", "auth", "session", "object")},
    "src/remote/transfer.h": {"src/remote/%s.c" % name
                              for name in ("fetch", "wave", "range_cache", "contents", "upload")},
}

# Declared for tests, benchmarks and fuzz targets, which reach kinds of kernels and states
# that a caller cannot choose. A header named here is for them as a whole.
FOR_TESTS = {
    "cv_cpu_allow", "cv_crc32c_kinds", "cv_unshuffle_kinds",
    "cv_transpose_kinds", "cv_profile_value",
    "cv_dir_rename_new_portable", "cv_os_l2_cache", "cv_os_l3_cache",
    "cv_extents_add", "cv_extents_take", "cv_space_put", "cv_space_replaced", "cv_space_take",
    "cv_space_is_clear", "cv_space_occupy", "cv_space_committed", "cv_space_rolled_back",
    "cv_space_destroy", "cv_second_trailer_is_apart", "cv_layout_of_record",
    "cv_file_copy_init", "cv_file_copy_free", "cv_file_copy_view", "cv_file_copy_count",
    "cv_file_copy_stop", "cv_pieces_add", "cv_pieces_n_parts", "cv_pieces_write_part", "cv_scan_add", "cv_scan_next",
    "cv_sweep_init", "cv_journal_write", "cv_journal_parse",
    "cv_float16_to_doubles", "cv_doubles_to_float16",
    "cv_job_queue_init", "cv_job_queue_destroy", "cv_job_queue_next", "cv_job_queue_fail",
    "cv_job_queue_result",
    "cv_rooms_init", "cv_rooms_destroy", "cv_rooms_lend", "cv_rooms_give",
}

# Files of one room, one including the next, in the longest chain that is allowed.
LEVELS = 7

# Breaches not yet mended, without their lines.
KNOWN = set()


def rooms_below():
    """For each room of the library those that it may know besides itself."""
    below, lower = {}, set()
    for floor in [*CORE, WINGS]:
        rooms = floor if isinstance(floor, tuple) else (floor,)
        for room in rooms:
            below[room] = set(lower)
        lower |= set(rooms)
    return below


def face(wing):
    return "%s/%s.h" % (wing, wing)


BELOW = rooms_below()
ROOMS = {*BELOW, "top", "cli", *("cli/" + room for room in CLI), "examples"}
CURL = {"src/remote/wire.c"}                 # may include libcurl's header
ENVIRONMENT = {"src/base/os_process.c"}      # may read the environment
ZARR = {"cli/foreign/zarr_chunks.c"}         # may decode buffers of Blosc 1
CODEC_LIBRARY = re.compile(r"^(blosc2|b2nd)\.h$|^blosc2/")
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
SPEAKS = re.compile(r"\b(stderr|stdout|(?:v?printf|puts|putchar|perror|getenv|secure_getenv)(?=\())")

# Outside base: the language, the processor, and one library of sums.
LANGUAGE = {"assert.h", "ctype.h", "float.h", "inttypes.h", "limits.h", "math.h", "stdalign.h",
            "stdarg.h", "stdatomic.h", "stdbool.h", "stddef.h", "stdint.h", "stdio.h",
            "stdlib.h", "string.h", "immintrin.h", "arm_neon.h", "xxhash.h"}
PUBLIC = re.compile(r"^caterva(_\w+)?\.h$")

# What base has under names of its own, by header. As a function: "read(", not "->read(".
SYSTEM_CALLS = {
    "base/heap.h": "malloc calloc realloc reallocarray free strdup strndup asprintf vasprintf "
                   "aligned_alloc posix_memalign memalign valloc",
    "base/os_file.h": "close read write pread pwrite readv writev preadv pwritev lseek fstat "
                      "ftruncate truncate fsync fdatasync mmap munmap msync madvise "
                      "posix_fadvise fcntl ioctl dup dup2 fopen fdopen fclose fread fwrite "
                      "fseek ftell fflush fputs fgets flock lockf fork",
    "base/os_dir.h": "open openat creat stat lstat fstatat access faccessat realpath getcwd "
                     "chdir opendir fdopendir readdir closedir dirfd unlink unlinkat remove "
                     "rmdir mkdir mkdirat readlink statfs statvfs rename renameat renameat2 "
                     "link linkat symlink tmpfile mkstemp mkdtemp getpid chmod fchmod chown "
                     "fchown umask getxattr fgetxattr fsetxattr flistxattr fremovexattr",
    "base/os_process.h": "dlopen dlsym dlclose",
    "base/os.h": "sysconf nanosleep usleep sleep clock_gettime gettimeofday time clock "
                 "sched_yield sched_getaffinity poll select signal sigaction syscall",
    "base/status.h": "strerror strerror_r",
}
SYSTEM_CALL = re.compile(r"(?<![\w.>])(?:(%s)(?=\()|errno\b|pthread_\w+)"
                         % "|".join(" ".join(SYSTEM_CALLS.values()).split()))


# ---- Rooms ---------------------------------------------------------------------


def code_lines(path):
    """The file's lines without comments and without what stands in strings."""
    text = path.read_text(encoding="utf-8")
    blank = lambda match: "\n" * match.group().count("\n")
    text = re.sub(r"/\*.*?\*/", blank, text, flags=re.S)
    return [re.sub(r"//.*", "", line) for line in text.split("\n")]


def breach_of_cli(room, name, root):
    """The same for a quoted include in the command line."""
    if ".." in name or not (root / "cli" / name).is_file():
        return 'cli may include the public headers and its own, as "room/..." only'
    mine, other = room.rpartition("cli/")[2], name.rpartition("/")[0]
    if mine in CLI and other in CLI and CLI.index(other) > CLI.index(mine):
        return "%s may not know cli/%s" % (room, other)
    return None


def breach_of_include(room, quoted, name, path, root):
    """What is wrong with one include in a file of `room`, or None."""
    if CODEC_LIBRARY.search(name):
        knows = room == "codec" or path.relative_to(root).as_posix() in ZARR
        return None if knows else "only src/codec may include C-Blosc2"
    if room == "examples":
        own = (path.parent / name).resolve()
        if not quoted or (own.is_file() and (root / room).resolve() in own.parents):
            return None
        return "examples may include the public headers and their own only"
    if room.split("/")[0] == "cli":
        return breach_of_cli(room, name, root) if quoted else None
    if name == "curl/curl.h":
        return None if path.relative_to(root).as_posix() in CURL \
            else "only %s may include libcurl's header" % ", ".join(sorted(CURL))
    if not quoted:
        foreign = room != "base" and name not in LANGUAGE and not PUBLIC.search(name)
        return "only src/base knows the system" if foreign else None
    src = root / "src"
    other = name.rpartition("/")[0]
    if "/" not in name or not (src / name).is_file():
        return 'write it from src/, as "%s/..."' % room
    if other in WINGS and other != room:
        return breach_of_wing(room, other, name)
    if other != room and room != "top" and other not in BELOW[room]:
        return "%s may not know %s" % (room, other)
    return None


def breach_of_wing(room, wing, name):
    """The same for a header of another room's wing."""
    if room not in WINGS and room != "top":
        return "the core reaches %s by array/wings.h only" % wing
    if name != face(wing):
        return "the face of %s is %s, all else is private" % (wing, face(wing))
    if room != "top" and wing in LEFT_OUT:
        return "a build may leave %s out: reach it by array/wings.h" % wing
    return None


def hint_at(call):
    """Where base has it."""
    at = [header for header, calls in SYSTEM_CALLS.items() if call in calls.split()]
    return ", see %s" % at[0] if at else ""


def breaches_of_file(path, room, root):
    in_library = room in BELOW or room == "top"
    for number, line in enumerate(code_lines(path), 1):
        include = INCLUDE.match(line)
        if include:
            quoted, name = include.group(1) == '"', include.group(2)
            wrong = breach_of_include(room, quoted, name, path, root)
            if wrong:
                yield number, "includes %s: %s" % (name, wrong)
        elif in_library:
            code = re.sub(r'"(\\.|[^"\\])*"', '""', line)
            speaks = SPEAKS.search(code)
            if speaks and path.relative_to(root).as_posix() not in ENVIRONMENT:
                yield number, "%s: the library prints nothing and reads no environment" \
                    % speaks.group()
            asks = SYSTEM_CALL.search(code) if room != "base" else None
            if asks:
                yield number, "%s: only src/base asks the system%s" \
                    % (asks.group(), hint_at(asks.group(1)))


def files_by_room(root):
    for path in sorted(root.glob("src/**/*.[ch]")):
        if house_code.is_port(path):
            continue
        parts = path.relative_to(root / "src").parts
        is_top = path.relative_to(root).as_posix() in TOP
        yield path, "top" if is_top else "/".join(parts[:-1]) or None
    for path in sorted(root.glob("cli/**/*.[ch]")):
        if house_code.is_port(path):
            continue
        yield path, path.parent.relative_to(root).as_posix()
    for path in sorted(root.glob("examples/**/*.[ch]")):
        yield path, "examples"


# ---- Files ---------------------------------------------------------------------


class Tree:
    """What the laws of files are checked on: src, and who else calls it."""

    def __init__(self, root):
        self.files = house_code.read_tree(root, "src/**/*.[ch]")
        self.by_name = {file.name: file for file in self.files}
        self.headers = [file for file in self.files if file.is_header]
        outside = house_code.read_tree(root, "tests/**/*.[ch]", "fuzz/*.[ch]", "bench/*.[ch]")
        self.outside_words = set().union(*(file.words for file in outside))
        self.declared_in = {name: (header, line) for header in self.headers
                            for name, line in header.declared}
        self.made_in = {function.name: file for file in self.files if not file.is_header
                        for function in file.functions if not function.static}


FACES = {"src/" + face(wing): "face of " + wing for wing in WINGS}


def edges_of(tree):
    """For each node those that it needs: {node: {other: (file, line)}}. A face is a node of its
    own, because it declares what several files of its room implement."""
    edges = {}
    for file in tree.files:
        needs = edges.setdefault(FACES.get(file.name, file.node), {})
        for line, quoted, name in file.includes:
            if quoted and "src/" + name in tree.by_name:
                needs.setdefault(FACES.get("src/" + name, name[:-2]), (file.name, line))
        for word in file.words & tree.made_in.keys() if not file.is_header else ():
            needs.setdefault(tree.made_in[word].node, (file.name, 1))
        needs.pop(file.node, None)
    return edges


def circles(edges):
    """The sets of nodes that need each other, each sorted (Tarjan, without recursion)."""
    number, low, stack, found = {}, {}, [], []
    for root in sorted(edges):
        work = [(root, iter(sorted(edges[root])))] if root not in number else []
        while work:
            node, others = work[-1]
            if node not in number:
                number[node] = low[node] = len(number)
                stack.append(node)
            for other in others:
                if other not in number:
                    work.append((other, iter(sorted(edges.get(other, ())))))
                    break
                if other in stack:
                    low[node] = min(low[node], low[other])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == number[node]:
                    at = stack.index(node)
                    if len(stack) - at > 1:
                        found.append(sorted(stack[at:]))
                    del stack[at:]
    return sorted(found)


def breaches_of_circles(tree):
    edges = edges_of(tree)
    for circle in circles(edges):
        where = min(place for other, place in edges[circle[0]].items() if other in circle)
        yield *where, "needs and is needed in a circle: %s" % ", ".join(circle)


def longest_chain(tree, file, known):
    """The longest chain of files of one room that begins with `file`, each including the next."""
    if file.name not in known:
        known[file.name] = [file.name]  # also what a circle comes back to
        inside = [tree.by_name["src/" + name] for _, quoted, name in file.includes
                  if quoted and "src/" + name in tree.by_name
                  and tree.by_name["src/" + name].room == file.room]
        chains = [longest_chain(tree, other, known) for other in inside]
        known[file.name] += max(chains, key=len, default=[])
    return known[file.name]


def breaches_of_levels(tree):
    """One for each room: its longest chain, where that is too long."""
    known, longest = {}, {}
    for file in tree.files:
        chain = longest_chain(tree, file, known)
        if len(chain) > len(longest.get(file.room, [])):
            longest[file.room] = chain
    for chain in longest.values():
        if len(chain) > LEVELS:
            yield chain[0], 1, "begins a chain of %d includes in its room: %s" % (
                len(chain), " ".join(chain[1:]))


def breaches_of_headers(tree):
    """What a .c has for others stands in its own header."""
    seen = set()
    for name, maker in sorted(tree.made_in.items()):
        if name.startswith("caterva_") or name == "main":
            continue
        if name not in tree.declared_in:
            line = next(f.line for f in maker.functions if f.name == name)
            yield maker.name, line, "%s is neither static nor declared in a header" % name
            continue
        header, line = tree.declared_in[name]
        if header.node == maker.node or maker.name in KINDS.get(header.name, ()):
            continue
        if header.name in FACES and header.room == maker.room:
            continue
        if (header.name, maker.name) not in seen:
            seen.add((header.name, maker.name))
            yield header.name, line, "declares what %s implements" % maker.name


def breaches_of_types(tree):
    places = {}
    for file in tree.files:
        for name, line in file.types:
            places.setdefault(name, []).append((file, line))
    for name, found in sorted(places.items()):
        shared = name.startswith("cv_") or any(file.is_header for file, _ in found)
        if shared and len(found) > 1:
            for file, line in found:
                others = sorted({f.name for f, _ in found} - {file.name}) or [file.name]
                yield file.name, line, "defines %s, as does %s" % (name, ", ".join(others))
        if name in tree.declared_in and shared:
            header, line = tree.declared_in[name]
            yield header.name, line, "names a function %s, a type of %s" % (name, found[0][0].name)


def is_used(tree, header, name):
    """True when src uses the function somewhere but where it is made."""
    maker = tree.made_in.get(name)
    if len(re.findall(r"\b%s\b" % name, header.code)) > 1:
        return True
    return any(name in file.words or name.startswith(file.pasted) for file in tree.files
               if file not in (header, maker))


def breaches_of_use(tree):
    for header in tree.headers:
        inline = [(f.name, f.line) for f in header.functions]
        for name, line in header.declared + inline:
            for_tests = name in FOR_TESTS or header.name in FOR_TESTS
            used, tested = is_used(tree, header, name), name in tree.outside_words
            if for_tests and used and header.name not in FOR_TESTS:
                yield header.name, line, "%s is said to be for tests, and is not" % name
            elif for_tests and not used and not tested:
                yield header.name, line, "no test uses %s" % name
            elif not for_tests and not used:
                yield header.name, line, "no other file uses %s" % name


LAWS_OF_FILES = (breaches_of_circles, breaches_of_levels, breaches_of_headers,
                 breaches_of_types, breaches_of_use)

# ---- All of it -----------------------------------------------------------------


def check(root, known=()):
    """All breaches below `root` that are not `known` as "file:line: sentence", and the
    known ones that are none; and the number of files seen."""
    found, seen, open_breaches = [], 0, set(known)
    breaches = []
    for path, room in files_by_room(root):
        seen += 1
        where = path.relative_to(root).as_posix()
        if room in ROOMS:
            breaches += [(where, *breach) for breach in breaches_of_file(path, room, root)]
        else:
            breaches.append((where, 1, "stands in no room of the house"))
    tree = Tree(root)
    for law in LAWS_OF_FILES:
        breaches += law(tree)
    for where, line, sentence in breaches:
        if "%s: %s" % (where, sentence) in known:
            open_breaches.discard("%s: %s" % (where, sentence))
        else:
            found.append("%s:%d: %s" % (where, line, sentence))
    found += ["%s: is a breach no more: take it out of KNOWN" % b for b in sorted(open_breaches)]
    return found, seen


def main():
    root = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).resolve().parent.parent)
    found, seen = check(root, KNOWN)
    for breach in found:
        print(breach)
    if seen == 0:
        print("%s: no source files" % root)
    else:
        print("%d files, %d breaches of the house's law, %d known"
              % (seen, len(found), len(KNOWN)))
    return 0 if seen and not found else 1


if __name__ == "__main__":
    sys.exit(main())

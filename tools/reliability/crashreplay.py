#!/usr/bin/env python3
"""Crash replay: journal a workload's writes with wjournal.so, rebuild what is on
the disk after a crash at every point, and run check commands on each image.

  crashreplay.py --shim wjournal.so --ext .b2nd --atomic 512 --gate \\
      --init "TOOL init {file}" --work "TOOL work append {file} 10" \\
      --check "TOOL check append {file} {ack}" [--check ...]

The workload prints "ACK <token>" lines on fd 1 with write(2) after each operation
it promises is done; {ack} is the last token before the crash point (--ack0 before
the first). Exit codes of a check: 0 good; 1 cannot open; 2 acknowledged data
missing; 3 silently wrong; 4 read error; 5 half of an unacknowledged operation
visible; a signal: crash. An image is as bad as the first check that is not 0.

Models, each with what came before the point acknowledged:
  prefix   all operations before the point are on the disk, in order (the process
           was killed, or the file system keeps the order)
  torn     the same, and of the next write only a first part
  power    what a sync made durable is there. Of later bytes of a file each
           512-byte piece of each write is there or not, each truncation as well,
           at random; of later changes of names (create, rename, exchange, link, unlink)
           the first few are, a random number of them. A sync of a file covers its
           bytes, a sync of a directory the names. --samples images for each point
--atomic N: a write that lies inside one N-byte block is never torn (512: the
usual assumption about sectors). --images N: at most about N for each model, spread
evenly. Prints a table, with --json also one line of JSON. --gate: exit 1 when an
image is not in --allow. --keep DIR keeps bad ones. Standard library only.
"""

import argparse
import collections
import concurrent.futures
import json
import os
import random
import shlex
import shutil
import struct
import subprocess
import sys
import tempfile
import threading

import patience

VERDICTS = {0: "ok", 1: "cannot open", 2: "acked missing", 3: "silent wrong",
            4: "read error", 5: "half visible"}
NAMES_OPS, BYTES_OPS = "ORXUDL", "WTF"
DIRECTORY = -1  # the inode of every one

Event = collections.namedtuple("Event", "op path pos data flag")


def read_journal(path):
    with open(path, "rb") as file:
        raw = file.read()
    at, events = 0, []
    while at + 20 <= len(raw):
        op, flag, path_size, pos, size = struct.unpack_from("<BBHQQ", raw, at)
        at += 20
        name = raw[at:at + path_size].decode(errors="surrogateescape")
        at += path_size
        events.append(Event(chr(op), name, pos, raw[at:at + size], flag))
        at += size
    return events


# ---- Bytes and names ---------------------------------------------------------


def put(content, pos, data):
    if len(content) < pos:
        content.extend(bytes(pos - len(content)))
    content[pos:pos + len(data)] = data


def change_bytes(content, event, part=None):
    if event.op == "W":
        put(content, event.pos, event.data if part is None else event.data[:part])
    elif event.op == "T" and len(content) > event.pos:
        del content[event.pos:]
    elif event.op == "T":
        content.extend(bytes(event.pos - len(content)))
    elif event.op == "F":
        size, mode = struct.unpack("<QQ", event.data)
        end = event.pos + size
        if mode == 0 and len(content) < end:
            content.extend(bytes(end - len(content)))
        if mode & 2:
            end = min(end, len(content))
            content[event.pos:end] = bytes(max(0, end - event.pos))


def moved(name, old, new):
    """The name after old became new, for files and what lies below directories."""
    if name == old:
        return new
    return new + name[len(old):] if name.startswith(old + "/") else name


def change_names(names, event, inode):
    """names: path -> inode. `inode` is that of a created or linked file, or of a directory."""
    if event.op in "OD":
        names[event.path] = inode
        return names
    if event.op == "U":
        names.pop(event.path, None)
        return names
    old, new = event.path, event.data.decode(errors="surrogateescape")
    if event.op == "L":
        names[new] = inode
        return names
    if event.op == "X":
        return {moved(n, old, new) if moved(n, old, new) != n else moved(n, new, old): i
                for n, i in names.items()}
    if old in names:  # a file replaces what was there
        names.pop(new, None)
    return {moved(n, old, new): i for n, i in names.items()}


class Disk:
    """Names and contents, and which of the last changes no sync covers."""

    def __init__(self, files):
        self.names = {path: i for i, path in enumerate(files)}
        self.contents = {i: bytearray(c) for i, c in enumerate(files.values())}
        self.durable_names = dict(self.names)
        self.durable_contents = {i: bytearray(c) for i, c in self.contents.items()}
        self.pending_names = []   # (event, inode), in order
        self.pending_bytes = collections.defaultdict(list)

    def inode(self, path):
        if path not in self.names:
            self.create(Event("O", path, 0, b"", 1))
        return self.names[path]

    def create(self, event):
        inode = len(self.contents)
        self.contents[inode] = bytearray()
        self.durable_contents[inode] = bytearray()
        self.names = change_names(self.names, event, inode)
        self.pending_names.append((event, inode))

    def apply(self, event):
        if event.op == "O" and event.path in self.names:  # emptied
            event = Event("T", event.path, 0, b"", 1)
        if event.op == "O":
            self.create(event)
        elif event.op in NAMES_OPS:
            inode = DIRECTORY if event.op == "D" else None
            inode = self.names[event.path] if event.op == "L" else inode
            self.names = change_names(self.names, event, inode)
            self.pending_names.append((event, inode))
        elif event.op in BYTES_OPS:
            inode = self.inode(event.path)
            change_bytes(self.contents[inode], event)
            self.pending_bytes[inode].append(event)
            if event.flag == 2:  # written through: durable by itself
                self.sync_bytes(inode)
        elif event.op == "S" and self.names.get(event.path, DIRECTORY) != DIRECTORY:
            self.sync_bytes(self.names[event.path])
        elif event.op == "S":
            for pending, inode in self.pending_names:
                self.durable_names = change_names(self.durable_names, pending, inode)
            self.pending_names = []

    def sync_bytes(self, inode):
        self.durable_contents[inode] = bytearray(self.contents[inode])
        self.pending_bytes.pop(inode, None)

    def image(self):
        """The inode of each name, and the content of each inode; None of a directory."""
        contents = {i: bytes(self.contents[i]) for i in self.names.values() if i != DIRECTORY}
        return dict(self.names), {DIRECTORY: None, **contents}

    def torn(self, event, part):
        names, contents = self.image()
        inode = names.setdefault(event.path, len(self.contents))
        content = bytearray(contents.get(inode, b""))
        change_bytes(content, event, part)
        return names, {**contents, inode: bytes(content)}

    def after_power_cut(self, rng, sector, atomic):
        names = dict(self.durable_names)
        for event, inode in self.pending_names[:rng.randint(0, len(self.pending_names))]:
            names = change_names(names, event, inode)
        contents = {DIRECTORY: None}
        for inode in sorted(set(names.values()) - {DIRECTORY}):
            content = bytearray(self.durable_contents[inode])
            for event in self.pending_bytes.get(inode, ()):
                keep_some(content, event, rng, sector, atomic)
            contents[inode] = bytes(content)
        return names, contents


def inside_one(event, atomic):
    last = event.pos + len(event.data) - 1
    return bool(atomic) and bool(event.data) and event.pos // atomic == last // atomic


def keep_some(content, event, rng, sector, atomic):
    """Applies the event, or of a write those sectors that the coin says."""
    if event.op != "W" or inside_one(event, atomic):
        if rng.random() < .5:
            change_bytes(content, event)
        return
    at = 0
    while at < len(event.data):
        end = min(len(event.data), at + sector - (event.pos + at) % sector)
        if rng.random() < .5:
            put(content, event.pos + at, event.data[at:end])
        at = end


def cuts(event, sector, atomic):
    """How much of a torn write is there."""
    size, unit = len(event.data), atomic or 1
    first = sector - event.pos % sector
    wanted = {1, first, size // 2, size - 1}
    if atomic:
        wanted = {(event.pos + cut) // unit * unit - event.pos for cut in wanted | {first}}
    return sorted(cut for cut in wanted if 0 < cut < size)


# ---- Images ------------------------------------------------------------------


def images(events, files, options):
    """(model, point, label, image function's result, token) one after the other."""
    rng = random.Random(options.seed)
    disk, ack = Disk(files), options.ack0
    for point in range(len(events) + 1):
        before = events[point - 1].op if point else "-"
        if "prefix" in options.models and before in "-" + NAMES_OPS + BYTES_OPS + "A":
            yield "prefix", point, "", disk.image, ack
        if point == len(events):
            break
        event = events[point]
        if "torn" in options.models and event.op == "W" and not inside_one(event, options.atomic):
            for cut in cuts(event, options.sector, options.atomic):
                yield "torn", point, f".{cut}", (lambda: disk.torn(event, cut)), ack
        if event.op == "A":
            ack = event.data.decode()
        if not (event.op == "S" and options.no_syncs):
            disk.apply(event)
        if "power" in options.models and event.op in NAMES_OPS + BYTES_OPS + "A":
            for sample in range(options.samples):
                yield ("power", point + 1, f"s{sample}",
                       lambda: disk.after_power_cut(rng, options.sector, options.atomic), ack)


def chosen(events, files, options):
    """At most about options.images of each model, spread evenly."""
    if not options.images:
        yield from images(events, files, options)
        return
    counts = collections.Counter(model for model, *_ in images(events, files, options))
    seen = collections.Counter()
    for one in images(events, files, options):
        n, limit = counts[one[0]], options.images
        k = seen[one[0]]
        seen[one[0]] += 1
        if n <= limit or k * limit // n != (k + 1) * limit // n:
            yield one


def lay_out(folder, names, contents):
    """Names of one inode are names of one file."""
    made = {}
    for path, inode in names.items():
        target = os.path.join(folder, path)
        is_directory = inode == DIRECTORY
        os.makedirs(target if is_directory else os.path.dirname(target), exist_ok=True)
        if is_directory:
            continue
        if inode in made:
            os.link(made[inode], target)
            continue
        with open(target, "wb") as file:
            file.write(contents[inode])
        made[inode] = target


def fill(template, path, ack=""):
    return [word.replace("{file}", path).replace("{dir}", os.path.dirname(path))
            .replace("{ack}", ack) for word in shlex.split(template)]


class Judge:
    """Runs the checks on images, each thread in a directory of its own."""

    def __init__(self, options, top, name):
        self.options, self.top, self.name = options, top, name
        self.results = collections.defaultdict(collections.Counter)
        self.kept = collections.Counter()
        self.lock = threading.Lock()

    def run(self, template, path, ack):
        done = patience.run(fill(template, path, ack), self.options.timeout,
                            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return done.returncode if done else "hang"

    def verdict(self, path, ack):
        if self.options.recover:
            self.run(self.options.recover, path, ack)
        for check in self.options.check:
            code = self.run(check, path, ack)
            if code != 0:
                crashed = isinstance(code, int) and code < 0
                return "crash" if crashed else VERDICTS.get(code, str(code))
        return "ok"

    def judge(self, model, point, label, image, ack):
        folder = os.path.join(self.top, f"img{threading.get_ident()}")
        shutil.rmtree(folder, ignore_errors=True)
        os.mkdir(folder)
        lay_out(folder, *image)
        verdict = self.verdict(os.path.join(folder, self.name), ack)
        with self.lock:
            self.results[model][verdict] += 1
            self.kept[verdict] += 1
            if verdict != "ok" and self.options.keep and self.kept[verdict] <= 10:
                label = f"{model}-{point}{label}-ack{ack}-{verdict.replace(' ', '_')}"
                shutil.copytree(folder, os.path.join(self.options.keep, label),
                                dirs_exist_ok=True)


def files_below(folder):
    found = {}
    for where, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(where, name)
            with open(path, "rb") as file:
                found[os.path.relpath(path, folder)] = bytearray(file.read())
    return found


def journal_of(options, live, path):
    """Runs the workload; the files before it and its events."""
    if options.init:
        subprocess.run(fill(options.init, path), check=True, stdout=subprocess.DEVNULL)
    files = files_below(live)
    log = live + ".journal"
    env = dict(os.environ, WJ_DIR=live, WJ_LOG=log, LD_PRELOAD=os.path.abspath(options.shim))
    done = subprocess.run(fill(options.work, path), env=env, stdout=subprocess.DEVNULL)
    if done.returncode:
        sys.exit(f"the workload itself fails: {done.returncode}")
    return files, read_journal(log)


def check_replay(events, files, live):
    """The journal is whole: replayed, it gives what the workload left."""
    disk = Disk(files)
    for event in events:
        disk.apply(event)
    left = {path: bytes(content) for path, content in files_below(live).items()}
    names, contents = disk.image()
    image = {path: contents[i] for path, i in names.items() if i != DIRECTORY}
    odd = [p for p in set(left) | set(image)
           if left.get(p, b"") != image.get(p, b"")]
    if odd:
        sys.exit(f"the journal does not explain {', '.join(sorted(odd))}")


def common_arguments(description):
    """A parser of what faultsweep.py takes, too."""
    parser = argparse.ArgumentParser(description=description,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shim", required=True)
    parser.add_argument("--init")
    parser.add_argument("--work", required=True)
    parser.add_argument("--check", required=True, action="append")
    parser.add_argument("--ext", default=".dat")
    parser.add_argument("--ack0", default="0")
    parser.add_argument("--atomic", type=int, default=0)
    parser.add_argument("--keep")
    parser.add_argument("--gate", action="store_true")
    return parser


def parse_arguments():
    parser = common_arguments(__doc__)
    parser.add_argument("--recover", help="run on each image before the checks")
    parser.add_argument("--models", default="prefix,torn,power",
                        type=lambda text: text.split(","))
    parser.add_argument("--samples", type=int, default=4)
    parser.add_argument("--images", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--timeout", type=float, default=20,
                        help="seconds of processor time that a check may take")
    parser.add_argument("--sector", type=int, default=512)
    parser.add_argument("--no-syncs", action="store_true",
                        help="as if syncs did nothing: shows that losses are seen")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--allow", default="0")
    return parser.parse_args()


def report(events, results, options):
    kinds = collections.Counter(event.op for event in events)
    print(f"operations: {dict(kinds)}")
    if kinds["M"]:
        print("warning: writable shared mappings were made; stores through them are not replayed")
    for model, counts in results.items():
        n = sum(counts.values())
        shares = ", ".join(f"{v} {k} ({100 * k / n:.1f}%)" for v, k in counts.most_common())
        print(f"{model:<7} {n:5} crash images: {shares}")
    if options.json:
        print(json.dumps({"events": dict(kinds),
                          "results": {m: dict(c) for m, c in results.items()}}))


def main():
    options = parse_arguments()
    memory = "/dev/shm" if os.path.isdir("/dev/shm") else None
    top = tempfile.mkdtemp(prefix="crash-", dir=memory)
    try:
        live = os.path.join(top, "live")
        os.mkdir(live)
        name = "t" + options.ext
        files, events = journal_of(options, live, os.path.join(live, name))
        check_replay(events, files, live)
        judge = Judge(options, top, name)
        workers = os.cpu_count() or 1
        with concurrent.futures.ThreadPoolExecutor(workers) as pool:
            waiting = collections.deque()
            for model, point, label, make, ack in chosen(events, files, options):
                waiting.append(pool.submit(judge.judge, model, point, label, make(), ack))
                while len(waiting) > 4 * workers:
                    waiting.popleft().result()
            for one in waiting:
                one.result()
        report(events, judge.results, options)
    finally:
        shutil.rmtree(top, ignore_errors=True)
    allowed = {VERDICTS[int(code)] for code in options.allow.split(",")}
    bad = any(v not in allowed for counts in judge.results.values() for v in counts)
    sys.exit(1 if options.gate and bad else 0)


if __name__ == "__main__":
    main()

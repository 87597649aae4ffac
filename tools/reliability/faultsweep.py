#!/usr/bin/env python3
"""Disk-fault sweep: run a workload once for every file operation it makes, with
that operation failing, or with the process killed there.

  faultsweep.py --shim wjournal.so --ext .b2nd --gate --init "TOOL init {file}" \\
      --work "TOOL work append {file} 6" --check "TOOL check append {file} {ack}" \\
      [--check ...] [--errno ENOSPC,EIO] [--sticky 0,1] [--short 0,1] [--kill]

For each operation n = 1..N (write, truncate, sync, rename, unlink, creating open)
the n-th fails once (sticky 0) or it and all later ones fail (sticky 1, a full
disk). Recorded: what the program said (error: exit 1..125; success: exit 0
although an operation failed; crash; hang) and what the checks say of the file
afterwards (codes as in crashreplay.py). {ack} is the last "ACK <token>" printed.
--ops WTSRUFO: only operations of these kinds count (W write, T truncate, S sync,
R rename, U unlink, F fallocate, O creating open). --every K: only each K-th n.
--atomic 512: a write inside one sector is never short, but fails whole.
--kill ends the process by SIGKILL before each operation instead. --gate: exit 1
unless the file is good every time and an error was returned every time (with
--may-succeed: or not: for operations whose failure costs nothing but space).
Standard library only.
"""

import collections
import concurrent.futures
import errno
import itertools
import os
import shutil
import subprocess
import sys
import tempfile

import patience
from crashreplay import VERDICTS, common_arguments, fill


class Sweep:
    def __init__(self, options, top):
        self.options, self.top = options, top
        self.name = "t" + options.ext
        self.start = os.path.join(top, "start")
        os.mkdir(self.start)
        if options.init:
            subprocess.run(fill(options.init, os.path.join(self.start, self.name)),
                           check=True, stdout=subprocess.DEVNULL)

    def run(self, folder, settings):
        """The workload with the shim set so; what it said and acknowledged last."""
        env = dict(os.environ, WJ_DIR=folder, WJ_OPS=self.options.ops,
                   WJ_ATOMIC=str(self.options.atomic),
                   LD_PRELOAD=os.path.abspath(self.options.shim),
                   **{key: str(value) for key, value in settings.items()})
        done = patience.run(fill(self.options.work, os.path.join(folder, self.name)),
                            self.options.timeout, env=env, stdout=subprocess.PIPE,
                            stderr=subprocess.DEVNULL)
        if not done:
            return "hang", self.options.ack0
        acks = [line[4:] for line in done.stdout.decode(errors="replace").splitlines()
                if line.startswith("ACK ")]
        killed = done.returncode < 0 and "WJ_KILL_AT" in settings
        said = ("success" if done.returncode == 0 else "killed" if killed
                else "crash" if done.returncode < 0 else "error")
        return said, acks[-1] if acks else self.options.ack0

    def verdict(self, path, ack):
        for check in self.options.check:
            done = patience.run(fill(check, path, ack), self.options.timeout,
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            if not done:
                return "hang"
            code = done.returncode
            if code != 0:
                return "crash" if code < 0 else VERDICTS.get(code, str(code))
        return "ok"

    def count(self):
        folder = os.path.join(self.top, "count")
        shutil.copytree(self.start, folder)
        path = os.path.join(self.top, "operations")
        said, _ = self.run(folder, {"WJ_COUNT": path})
        if said != "success":
            sys.exit("the workload fails without faults")
        with open(path, encoding="ascii") as file:
            return int(file.read())

    def once(self, label, n, settings):
        """(what the program said, what the file is) with operation n failing."""
        folder = os.path.join(self.top, f"{label}-{n}".replace(" ", "-"))
        shutil.copytree(self.start, folder)
        said, ack = self.run(folder, settings)
        file = self.verdict(os.path.join(folder, self.name), ack)
        if not self.is_good(said, file) and self.options.keep:
            target = os.path.join(self.options.keep,
                                  f"{os.path.basename(folder)}-{said}-{file}")
            shutil.rmtree(target, ignore_errors=True)
            shutil.copytree(folder, target)
        shutil.rmtree(folder)
        return said, file

    def is_good(self, said, file):
        allowed = {"error", "killed"} | ({"success"} if self.options.may_succeed else set())
        return file == "ok" and said in allowed


def cases(options):
    """(label, the shim's settings for the n-th operation)"""
    if options.kill:
        yield "kill", lambda n: {"WJ_KILL_AT": n}
        return
    for name, sticky, short in itertools.product(
            options.errno.split(","), options.sticky.split(","), options.short.split(",")):
        label = f"{name} {'for good' if sticky == '1' else 'once'}{' short' * int(short)}"
        yield label, lambda n, e=name, s=sticky, h=short: {
            "WJ_FAIL_AT": n, "WJ_ERRNO": getattr(errno, e), "WJ_FAIL_STICKY": s,
            "WJ_FAIL_SHORT": h}


def parse_arguments():
    parser = common_arguments(__doc__)
    parser.add_argument("--errno", default="ENOSPC,EIO")
    parser.add_argument("--sticky", default="0,1")
    parser.add_argument("--short", default="0,1")
    parser.add_argument("--ops", default="WTSRUFO")
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--kill", action="store_true")
    parser.add_argument("--may-succeed", action="store_true")
    parser.add_argument("--timeout", type=float, default=30,
                        help="seconds of processor time that each program may take")
    return parser.parse_args()


def main():
    options = parse_arguments()
    memory = "/dev/shm" if os.path.isdir("/dev/shm") else None
    top = tempfile.mkdtemp(prefix="fault-", dir=memory)
    bad = False
    try:
        sweep = Sweep(options, top)
        n_operations = sweep.count()
        print(f"operations in the workload: {n_operations}")
        numbers = range(1, n_operations + 1, options.every)
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 1) as pool:
            for label, settings in cases(options):
                runs = pool.map(lambda n: sweep.once(label, n, settings(n)), numbers)
                counts = collections.Counter(runs)
                bad = bad or not all(sweep.is_good(*outcome) for outcome in counts)
                print(f"{label:<22}" + "; ".join(
                    f"program {said}, file {file}: {k}"
                    for (said, file), k in counts.most_common()))
    finally:
        shutil.rmtree(top, ignore_errors=True)
    sys.exit(1 if options.gate and bad else 0)


if __name__ == "__main__":
    main()

"""Random sequences of operations (write, append, insert, remove, resize, attributes, commit,
roll back, discard, reopen, kill, compact) on random arrays, each compared with a NumPy model:
after every operation the handle reads what the model has, after every commit other handles do,
and after a kill the file holds the last commit, or the one in flight. Then python-blosc2 reads
the file, appends, overwrites, resizes, and we continue.

usage: test_sequences.py [--tool PATH] [--seed N] [--sequences N | --long]
                         [--only SEQUENCE] [--trace]"""

import collections
import faulthandler
import os
import shutil
import sys
import tempfile
import threading
import time
import traceback

from tool_driver import LONG, SANITIZED, Helper, HelperError, format_box, skip

try:
    import blosc2
    import msgpack
    import numpy as np
except ImportError as missing:
    skip(f"{missing}; it runs in the virtual environment of scripts/bootstrap --test")

import tool_sequence as model
from tool_guest import Guest

SEQUENCES, MANY = 400 if LONG else 100 if SANITIZED else 250, 3000
WINDOWS = bool(os.environ.get("CATERVA_WINDOWS"))  # under wine
OPERATIONS = {"change": 14, "commit": 4, "state": 1, "rollback": 1, "reopen": 1, "discard": 1,
              "kill": 0.8, "compact": 0.6, "watch": 3, "python_reads": 0.6, "busy": 0.3}
EXPECTED = [change.__name__ for change in model.CHANGES] + [
    "create", "open", "commit", "rollback", "close", "discard", "compact", "refresh", "kill",
    "killed in a request", "python_overwrites", "python_grows", "python_appends",
    "python_sets_attribute", "python_shrinks"]  # in every run of some length
counts = collections.Counter()


def need(condition, sentence):
    if not condition:
        raise AssertionError(sentence)


def word(name, otherwise=None):
    return sys.argv[sys.argv.index(name) + 1] if name in sys.argv else otherwise


def difference(answer, state):
    """The difference between a response of the helper and a state, or None."""
    if tuple(answer["shape"]) != state.items.shape:
        return f"shape {tuple(answer['shape'])}, not {state.items.shape}"
    if answer["data"] != state.items.tobytes():
        got = np.frombuffer(answer["data"], state.items.dtype).reshape(state.items.shape)
        places = np.argwhere(got != state.items)
        return f"{len(places)} of {got.size} items differ, the first at {places[0]}"
    wanted = {name: value.hex() for name, value in state.attributes.items()}
    if answer["attributes"] != wanted:
        return f"attributes {answer['attributes']}, not {wanted}"
    if answer["metalayers"].get("user", "") != state.meta.hex():
        return f"metalayer {answer['metalayers'].get('user')}, not {state.meta.hex()}"
    if answer.get("damages", 0) > 0:
        return f"{answer['damages']} damages"
    return None


class Sequence:
    """The life of one array: `now` is the state of the writing handle, `committed` that of the
    file (None: there is none yet), `watched` that of a reading handle."""

    def __init__(self, helper, folder, seed, number):
        self.helper = helper
        self.rng = np.random.default_rng([seed, number])
        self.folder = os.path.join(folder, "life")
        os.mkdir(self.folder)
        self.path = os.path.join(self.folder, "array.b2nd")
        self.spec = model.random_spec(self.rng)
        self.watched = self.committed = None
        self.log = [str(self.spec)]
        self.pace = 0.0003  # seconds per request

    # ---- Requests --------------------------------------------------------------

    def note(self, text):
        self.log.append(text)
        if "--trace" in sys.argv:
            print(text, flush=True)

    def run(self, op, data=None, **words):
        self.note(f"{op} {words}" + (f" and {len(data)} bytes" if data is not None else ""))
        counts[op] += 1
        began = time.monotonic()
        answer = self.helper.run(op, data, **words)
        self.pace += 0.1 * (time.monotonic() - began - self.pace)
        return answer

    def refused(self, status, op, **words):
        try:
            self.run(op, **words)
        except HelperError as error:
            need(error.status == status, f"{op} says {error}, not {status}")
            return
        raise AssertionError(f"{op} works and should say {status}")

    def settings(self):
        return {"threads": int(self.rng.integers(1, 4)),
                "durability": int(self.rng.choice([0, 1, 2, 2, 2])),
                "dirty_budget": int(self.rng.choice([0, 0, 1, 3000, 20000]))}

    def start(self):
        """Opens the array for writing, or creates it if there is none."""
        if self.committed is None:
            self.now = model.first_state(self.spec)
            self.run("create", url=self.path, **self.spec.words(), **self.settings())
        else:
            self.now = self.committed
            self.run("open", url=self.path, **self.settings())

    def apply(self, change):
        self.run(change.op, change.data, **change.words)
        self.now = change.after

    # ---- Checks ----------------------------------------------------------------

    def check_box(self):
        box = model.random_box(self.now.items.shape, self.rng)
        answer = self.run("read", box=format_box(box))
        need(answer["data"] == self.now.items[box or ...].tobytes(),
             f"box {format_box(box)} reads otherwise")

    def check(self, op, state, **words):
        different = difference(self.run(op, **words), state)
        need(different is None, f"{op}: {different}")

    def check_file(self):
        if self.committed is None:
            self.refused("CATERVA_ENOTFOUND", "look", url=self.path)
        else:
            self.check("look", self.committed, url=self.path)

    # ---- Operations ------------------------------------------------------------

    def change(self):
        self.apply(model.random_change(self.spec, self.now, self.rng))
        self.check_box()

    def state(self):
        self.check("state", self.now)

    def commit(self):
        self.run("commit")
        self.committed = self.now
        self.check_file()

    def rollback(self):
        self.run("rollback")
        self.now = model.first_state(self.spec) if self.committed is None else self.committed
        self.check("state", self.now)

    def close(self):
        self.run("close")
        self.committed = self.now
        self.check_file()

    def reopen(self):
        self.close()
        self.start()

    def discard(self):
        self.run("discard")
        self.check_file()
        self.start()

    def compact(self):
        self.close()
        if self.watched is not None and self.spec.layout == "sparse":
            if self.watched.items.size > 0:  # otherwise the reader does not read the file
                self.refused("CATERVA_EBUSY", "compact", url=self.path)
            self.unwatch()
        self.run("compact", url=self.path, durability=int(self.rng.integers(3)))
        self.check_file()
        self.start()

    def busy(self):
        if self.committed is None:
            return
        self.refused("CATERVA_EBUSY", "compact", url=self.path)
        self.refused("CATERVA_ENOTFOUND", "attr_remove", name="never set")

    def watch(self):
        """A reading handle sees one committed state until it is refreshed."""
        if self.watched is None:
            if self.committed is None:
                return
            self.run("watch", url=self.path)
            self.watched = self.committed
        elif self.rng.random() < 0.5:
            self.run("refresh")
            self.watched = self.committed
        elif self.rng.random() < 0.2:
            self.unwatch()
            return
        self.check("watched", self.watched)

    def unwatch(self):
        if self.watched is not None:
            self.run("unwatch")
            self.watched = None

    def python_looks(self):
        self.note("python-blosc2 reads")
        Guest(self.spec, self.path).check(self.committed)

    def python_reads(self):
        """python-blosc2 is sure to open an array without items only if no handle saw another
        state and the writer has closed it."""
        if self.committed is None:
            return
        if self.committed.items.size > 0:
            self.python_looks()
            return
        self.unwatch()
        self.close()
        self.python_looks()
        self.start()

    # ---- Kill ------------------------------------------------------------------

    def burst(self):
        """Requests that are sent without waiting, each with the state committed after it."""
        requests, now, committed = [], self.now, self.committed
        for _ in range(int(self.rng.integers(1, 7))):
            if self.rng.random() < 0.5:
                requests.append((model.Change("commit", {}, None, now), now))
                committed = now
            else:
                change = model.random_change(self.spec, now, self.rng)
                now = change.after
                requests.append((change, committed))
        return requests

    def kill(self):
        """Kills the helper between two operations, or in the middle of several; not in wine in a commit
        of a directory, whose frame wine does not replace in one step."""
        is_amid = self.rng.random() < 0.8 and not (WINDOWS and self.spec.layout == "sparse")
        requests = self.burst() if is_amid else []
        self.note("kill during " + "; ".join(f"{c.op} {c.words}" for c, _ in requests))
        delay = float(self.rng.uniform(0, 1.2)) * self.pace * len(requests)
        answered = self.send_and_kill(requests, delay)
        self.note(f"killed, {answered} of {len(requests)} answered")
        possible = [self.committed if answered == 0 else requests[answered - 1][1]]
        counts["kill"] += 1
        if answered < len(requests):
            counts["killed in a request"] += 1
            possible.append(requests[answered][1])
        self.watched = None
        self.find_committed(possible)
        self.start()

    def send_and_kill(self, requests, delay):
        """Returns how many requests were acknowledged before the kill."""
        process, answered = self.helper.process, 0
        timer = threading.Timer(delay, process.kill)
        timer.start()
        try:
            for change, _ in requests:
                self.helper.send(change.op, change.data, **change.words)
        except BrokenPipeError:
            pass
        timer.join()
        while (answer := self.helper.receive()) is not None:
            need(answer["status"] == "CATERVA_OK", f"{answer['status']}: {answer['message']}")
            answered += 1
        need(process.wait() == -9, f"helper: {process.returncode}, {self.helper.last_words()}")
        self.helper.process = None
        return answered

    def find_committed(self, possible):
        """Which of the possible states the file holds; later checks are exact."""
        try:
            answer = self.run("look", url=self.path)
        except HelperError as error:
            need(error.status == "CATERVA_ENOTFOUND" and None in possible, f"after a kill: {error}")
            self.committed = None
            return
        different = [state and difference(answer, state) for state in possible]
        need(None in [d for s, d in zip(possible, different) if s is not None],
             f"after a kill: {different}")
        found = next(i for i, s in enumerate(possible) if s is not None and different[i] is None)
        if possible[0] is not possible[-1]:
            counts["killed in a commit: " + ("new state" if found else "old state")] += 1
        self.committed = possible[found]

    # ---- The whole life --------------------------------------------------------

    def live(self, operations):
        names = list(OPERATIONS)
        weights = np.array(list(OPERATIONS.values()))
        for name in self.rng.choice(names, operations, p=weights / weights.sum()):
            getattr(self, str(name))()

    def host(self):
        """python-blosc2 reads the file, and changes it if it can."""
        self.unwatch()
        self.close()
        guest = Guest(self.spec, self.path)
        self.python_looks()
        for change in guest.changes(self.committed, self.rng):
            self.note(f"python-blosc2: {change.__name__}")
            counts[change.__name__] += 1
            self.committed = change(self.committed, self.rng)
            self.check_file()
        self.start()

    def run_all(self):
        self.start()
        self.live(int(self.rng.integers(5, 26)))
        self.host()
        self.live(3)
        self.unwatch()
        self.close()
        self.python_looks()


def repeat_command(seed, number):
    tool = word("--tool")
    return (f"{'' if tool else 'CATERVA_HELPER_DIR=' + os.environ['CATERVA_HELPER_DIR'] + ' '}"
            f"{sys.executable} {os.path.abspath(__file__)}{' --tool ' + tool if tool else ''} "
            f"--seed {seed} --only {number} --trace")


def run_one(helper, folder, seed, number):
    """Returns whether it succeeded. The moment of a kill is random: repeating a failure may
    take several attempts."""
    sequence = None
    try:
        sequence = Sequence(helper, folder, seed, number)
        sequence.run_all()
        return True
    except Exception:
        print(f"FAILED sequence {number} of seed {seed}")
        print("  " + "\n  ".join(sequence.log if sequence else []))
        traceback.print_exc(limit=-4, file=sys.stdout)
        print("repeat it with:", repeat_command(seed, number), flush=True)
        return False
    finally:
        shutil.rmtree(os.path.join(folder, "life"))


# Sequences that failed before, as (seed, number): they are always run.
FAILED_ONCE = [(1555468758, 46)]


def main():
    if "--long" not in sys.argv:
        faulthandler.dump_traceback_later(500, exit=True)  # before the timeout of 600
    seed = int(word("--seed", str(time.time_ns() % 2**32)), 0)
    numbers = range(int(word("--sequences", MANY if "--long" in sys.argv else SEQUENCES)))
    runs = FAILED_ONCE + [(seed, number) for number in numbers]
    if "--only" in sys.argv:
        runs = [(seed, int(word("--only")))]
    print(f"seed {seed}, python-blosc2 {blosc2.__version__}, C-Blosc2 {blosc2.blosclib_version}",
          flush=True)
    started, failed = time.monotonic(), []
    with tempfile.TemporaryDirectory(prefix="caterva-sequences-") as folder:
        helper = Helper(folder, "tool_session")
        for run in runs:
            if not run_one(helper, folder, *run):
                failed.append(run)
                helper = Helper(folder, "tool_session")  # without old handles
            if len(failed) == 5:
                break
        helper.close()
    missing = [name for name in EXPECTED if not counts[name]] if len(runs) >= 250 else []
    print(", ".join(f"{name} {count}" for name, count in sorted(counts.items())))
    print(f"{len(runs)} sequences, {sum(counts.values())} operations, {len(failed)} failures "
          f"{failed}, {time.monotonic() - started:.0f} s")
    if missing:
        print("never done:", ", ".join(missing))
    sys.exit(1 if failed or missing else 0)


if __name__ == "__main__":
    main()

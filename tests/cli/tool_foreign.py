"""What tests of other formats share: skipping without a package, random arrays, a seed."""

import importlib
import os
import random
import re
import subprocess
import sys
import threading
import time
from pathlib import Path

import blosc2
import numpy as np

from tool_cli import CLI, LONG, SANITIZED, Case, environment, run


def need(*names):
    """The modules of these names. Ends the test with status 77 if one is not installed."""
    try:
        return [importlib.import_module(name) for name in names]
    except ImportError as error:
        print("skipped: %s (scripts/bootstrap --test installs it)" % error)
        sys.exit(77)


def need_plugin(name):
    """Ends the test with status 77 if the build has no plug-in of this name."""
    if not (Path(CLI).parent.parent / "lib/caterva" / (name + ".so")).exists():
        print("skipped: the plug-in %s was not built" % name)
        sys.exit(77)


def hostile_environment(folder):
    """Variables of a run that may meet faults of libhdf5 or libnetcdf: their leaks do not count."""
    known = Path(folder) / ".known"
    known.write_text("leak:libhdf5\nleak:libnetcdf\n")
    return {"LSAN_OPTIONS": "suppressions=%s:print_suppressions=0" % known,
            "ASAN_OPTIONS": "allocator_may_return_null=1:max_allocation_size_mb=4096"}


def library_crashes(status, err):
    """Whether a run ended by a fault inside libhdf5 or libnetcdf: the program says so, or, under
    ASan, the first frame that is not ASan's is of the library."""
    if status == 4 and re.search("lib[a-z0-9]+ crashed on it: the file is damaged", err):
        return True
    frames = re.findall(r"^ +#\d+ 0x[0-9a-f]+ (?:in )?(.*)$", err, re.M)
    others = [f for f in frames if "sanitizer" not in f and "libc" not in f]
    return "AddressSanitizer" in err and bool(others) and \
        re.search(r"/lib(hdf5|netcdf)", others[0]) is not None


READ_LENGTHS = """
import sys, h5py
def read(_, node):
    for each in [node] if isinstance(node, h5py.Dataset) else []:
        try:
            if each.dtype.kind == "O" and each.size < 10**6: each[()]
        except Exception: pass
with h5py.File(sys.argv[1]) as file: file.visititems(read)
"""


def hdf5_takes(path):
    """Returns the memory in KiB that h5py needs to read the texts and sequences of a file. libhdf5
    allocates the length that a damaged file claims."""
    child = subprocess.Popen([sys.executable, "-c", READ_LENGTHS, path], stderr=subprocess.DEVNULL)
    clock = threading.Timer(100, child.kill)
    clock.start()
    status, used = os.wait4(child.pid, 0)[1:]
    clock.cancel()
    child.returncode = os.waitstatus_to_exitcode(status)
    return used.ru_maxrss


def sentences(err):
    """How many lines a run printed, without warnings."""
    return sum(1 for line in err.splitlines() if "warning: " not in line and "WARNING: " not in line)


def rounds(count):
    """How many random cases to try: fewer under a sanitizer, more in a long run."""
    return count * 20 if LONG else max(count // 5, 1) if SANITIZED else count


SEED = int(os.environ.get("CATERVA_SEED", time.time_ns() % 2**32))


def random_of(test):
    """A random.Random of the printed seed."""
    print("%s: CATERVA_SEED=%d" % (test.id(), SEED), flush=True)
    return random.Random(SEED)


def items(rng, shape, dtype):
    """Random items: few values, so that they can be packed."""
    dtype = np.dtype(dtype)
    some = np.random.default_rng(rng.getrandbits(32))
    count = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    return some.integers(0, rng.choice((2, 20, 256)), count, "u1").view(dtype).reshape(shape)


class ForeignCase(Case):
    def same(self, path, values):
        """The array file holds exactly these items."""
        read = blosc2.open(str(path))
        self.assertEqual((read.shape, read.dtype), (values.shape, values.dtype))
        self.assertEqual(np.asarray(read[...]).tobytes(), np.ascontiguousarray(values).tobytes())
        return read

    def attributes(self, path):
        """The attributes of an array file, also those that only `attrs` has."""
        array = blosc2.open(str(path))
        meta = dict(array.schunk.vlmeta[:])
        meta.update(meta.pop("attrs", {}))
        return meta

    def refused(self, *arguments, **kwargs):
        """stderr of a run that fails with one sentence and a status that says why."""
        status, out, err = run(*arguments, **kwargs)
        self.assertIn(status, (3, 4, 5), (arguments, out, err))
        self.assertRegex(err, r"\Acaterva: [^\n]+\n\Z")
        return err

    def survives(self, rng, path, extension=".b2z", *options):
        """Converts a damaged file: an output, or one sentence and nothing left; within 100 s of
        processor time, and 1 GiB (under a sanitizer 3 GiB). Returns whether the library of the format failed instead."""
        out, before = self.path("m" + extension), set(self.names())
        more = [o for o in (["--verify"], ["--memory", "16MiB"]) if rng.random() < 0.5]
        arguments = [str(a) for a in ("convert", path, out, "-f", *options, *sum(more, []))]
        env = environment(**hostile_environment(self.folder))
        with open(self.path(".errors"), "w+") as errors:
            child = subprocess.Popen([CLI, *arguments], stdout=subprocess.DEVNULL, stderr=errors, env=env)
            clock = threading.Timer(1000, child.kill)
            clock.start()
            status, used = os.wait4(child.pid, 0)[1:]
            clock.cancel()
            child.returncode = status = os.waitstatus_to_exitcode(status)
            errors.seek(0)
            err = errors.read()
        failed = library_crashes(status, err)
        if not failed:
            self.assertIn(status, (0, 3, 4, 5), (arguments, err))
            self.assertEqual(sentences(err), status != 0, (arguments, err))
        self.assertLess(used.ru_utime + used.ru_stime, 100, (arguments, err))
        if "bad global heap" in err: # libhdf5 allocates what the heap claims
            return True
        limit = (3 if SANITIZED else 1) << 20
        if used.ru_maxrss >= limit and path.suffix in (".h5", ".nc") and hdf5_takes(path) >= 1 << 20:
            return True
        self.assertLess(used.ru_maxrss, limit, (arguments, err))
        self.assertEqual(set(self.names()) - before - {".known", ".errors"},
                         {out.name} - before if status == 0 else set(), (arguments, err))
        return failed

    def mutated(self, rng, whole, n):
        """n copies of the bytes with a few changes each."""
        for _ in range(n):
            data = bytearray(whole)
            for _ in range(rng.choice((1, 1, 2, 5))):
                at = rng.randrange(len(data))
                kind = rng.randrange(4)
                if kind == 0:
                    data[at] = rng.randrange(256)
                elif kind == 1:
                    data[at] ^= 1 << rng.randrange(8)
                elif kind == 2 and len(data) > 64:
                    del data[at:at + rng.choice((1, 2, 4, len(data)))]
                else:
                    data[at:at + 4] = rng.choice((b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff", b"\0" * 4))
                if not data:
                    data = bytearray(b"\0")
            yield bytes(data)

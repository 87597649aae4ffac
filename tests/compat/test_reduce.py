"""Statistics, histograms and reductions against NumPy: random dtypes in both byte
orders, shapes, partitions, pipelines and fills, boxes with steps, NaN, infinities,
times, pending changes, numbers of threads; and arrays that python-blosc2 wrote.

usage: test_reduce.py [ARRAYS [SEED]] [--tool PATH]
"""

import itertools
import os
import sys
import tempfile
import time
import typing
import warnings

import blosc2
import numpy as np

from tool_driver import Helper, HelperError

DTYPES = ["|b1", "|i1", "|u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8",
          "M8[ns]", "m8[s]"]


class Reduction(typing.NamedTuple):
    """A reduction by NumPy, for one number of caterva_reduction."""
    name: str
    all: typing.Callable  # NaN if any number is NaN
    numbers: typing.Callable  # ignores NaN
    times: typing.Callable  # ignores NaT; None: not for times
    gives_item: bool  # of the array's dtype; undefined without items
    wraps: bool  # int64 or uint64 for integers; otherwise double
    per_number: bool  # errors are also divided by the count


REDUCTIONS = [
    Reduction("min", np.min, np.nanmin, np.fmin.reduce, True, False, False),
    Reduction("max", np.max, np.nanmax, np.fmax.reduce, True, False, False),
    Reduction("sum", np.sum, np.nansum, None, False, True, False),
    Reduction("mean", np.mean, np.nanmean, None, False, False, True),
]


def real(text):
    return float.fromhex(text)


def random_values(rng, dtype, shape):
    kind, size = dtype.kind, dtype.itemsize
    n = int(np.prod(shape))
    how = rng.integers(4)
    if kind in "iuMm" and how == 0:  # any bits: extremes of the type, NaT
        values = np.frombuffer(rng.bytes(n * size), dtype=dtype)
    elif kind in "iuMm":
        base = int(rng.integers(0, 1 << (8 * size - 2)))
        low = -1 if kind != "u" and how == 1 else 0
        values = (base + rng.integers(low * min(base, 50), min(100, (1 << (8 * size - 2)) - 1),
                                      n)).astype(dtype)
    elif kind == "b":
        values = rng.integers(0, 2, n).astype(dtype)
    else:
        values = (rng.normal(size=n) * (1 if how else 100) + (1e3 if how == 2 else 0))
        values = values.astype(dtype)
        if how == 3 and n:
            odd = [np.nan] * 3 + [np.inf] * int(rng.integers(2)) + [-np.inf] * int(rng.integers(2))
            for at in rng.integers(0, n, 5):
                values[at] = odd[rng.integers(len(odd))]
    return values.reshape(shape)


def random_array(rng):
    name = DTYPES[rng.integers(len(DTYPES))]
    dtype = np.dtype(name if name[0] == "|" else "<>"[rng.integers(2)] + name)
    shape = tuple(int(n) for n in rng.integers(1, [60, 60, 20, 9][rng.integers(4)],
                                               rng.integers(0, 5)))
    while np.prod(shape) > 20000:
        shape = tuple(n // 2 + 1 for n in shape)
    if shape and rng.integers(12) == 0:
        shape = shape[:-1] + (0,)
    return random_values(rng, dtype, shape)


def random_words(rng, values):
    chunks = [int(rng.integers(1, max(n, 1) + 1)) for n in values.shape]
    if rng.integers(3) == 0:
        chunks = [max(n, 1) for n in values.shape]
    blocks = [int(rng.integers(1, n + 1)) for n in chunks]
    words = {"shape": ",".join(map(str, values.shape)), "chunks": ",".join(map(str, chunks)),
             "blocks": ",".join(map(str, blocks)), "dtype": values.dtype.str}
    if not values.shape:
        words = {"dtype": values.dtype.str}
    words["codec"] = int(rng.choice([1, 5]))
    words["level"] = int(rng.integers(0, 6))
    words["use_dict"] = int(words["codec"] == 5 and rng.integers(6) == 0)
    words["filters"] = ["0", "1", "3", "2"][rng.integers(4)]
    return words


def random_box(rng, shape):
    """A tuple of slices with positive steps, occasionally empty."""
    box = []
    for n in shape:
        start, stop = sorted(int(x) for x in rng.integers(0, n + 1, 2))
        if rng.integers(3) == 0:
            start, stop = 0, n
        if start == stop and n and rng.integers(10):
            start, stop = 0, n
        box.append(slice(start, stop, int(rng.choice([1, 1, 2, 3, 50]))))
    return tuple(box)


def box_words(box, rng):
    words = {}
    if any(s.step != 1 for s in box):
        words["step"] = ",".join(str(s.step) for s in box)
    if box:
        words["start"] = ",".join(str(s.start) for s in box)
        words["stop"] = ",".join(str(s.stop) for s in box)
    words["threads"] = int(rng.integers(1, 4))
    return words


class Test:
    def __init__(self, folder):
        self.folder = folder
        self.helper = Helper(folder, "tool_reduce")
        self.checks = 0

    def same(self, got, want, what, scale=0.0):
        """Equal, or within 1e-12 of `scale`, the sum of magnitudes."""
        self.checks += 1
        good = got == want or (got != got and want != want) or \
            abs(got - want) <= 1e-12 * max(abs(float(want)), scale)
        assert good, f"{what}: {got!r}, NumPy says {want!r}"

    # ---- Making ----------------------------------------------------------------

    def create(self, rng, values):
        """Creates the array in a file, possibly with parts that were never written; returns its
        items, and the words that make it a writer with pending changes."""
        url = os.path.join(self.folder, "a.b2nd")
        words = random_words(rng, values)
        for old in (url,):
            if os.path.exists(old):
                os.remove(old)
        held = values
        if rng.integers(3) == 0 and values.size:
            fill = values.reshape(-1)[rng.integers(values.size)]
            fill = np.array(fill, dtype=values.dtype)
            nan = values.dtype.kind == "f" and fill != fill
            if not nan:
                words.update(fill=3, fill_value=fill.tobytes().hex())
                held = np.full_like(values, fill)
                box = tuple(slice(0, int(rng.integers(0, n + 1))) for n in values.shape)
                held[box] = values[box]
                words["box"] = ",".join(f"{s.start}:{s.stop}" for s in box) or "."
                values = held[box] if box else held
        words["file"] = self.save("w.raw", values)
        self.helper.run("create", url=url, **words)
        return url, held

    def save(self, name, values):
        path = os.path.join(self.folder, name)
        with open(path, "wb") as file:
            file.write(values.tobytes())
        return path

    def change(self, rng, values):
        """The words that write a random box before the reduction, and the resulting items."""
        if rng.integers(3) or not values.size:
            return values, {}
        box = tuple(slice(*sorted(int(x) for x in rng.integers(0, n + 1, 2)))
                    for n in values.shape)
        part = random_values(rng, values.dtype, values[box].shape)
        values = values.copy()
        values[box] = part
        words = {"box": ",".join(f"{s.start}:{s.stop}" for s in box) or ".",
                 "file": self.save("p.raw", part)}
        return values, words

    # ---- Checking --------------------------------------------------------------

    def check_stats(self, url, part, words):
        got = self.helper.run("stats", url=url, **words)
        assert got["n_items"] == part.size, (got["n_items"], part.size)
        is_time = part.dtype.kind in "Mm"
        nan = np.isnat(part) if is_time else part != part
        assert got["n_nan"] == int(nan.sum()), got
        good = part[~nan]
        if good.size == 0:
            assert got["min"] is None and got["max"] is None and real(got["mean"]) != 0
        else:
            for name in ("min", "max"):
                kind, text, near = got[name]
                want = getattr(good, name)()
                want = want.astype("i8") if is_time else want
                value = real(text) if kind == "f" else int(text)
                self.same(value, float(want) if kind == "f" else int(want), name)
                self.same(real(near), float(want), name)
        if is_time:
            assert got["sum"] is None
            return
        wide = good.astype("f8")
        self.check_sum(got["sum"], good, wide)
        if good.size:
            scale = float(np.abs(wide).sum()) / good.size
            with np.errstate(all="ignore"):
                exact = good.dtype.kind == "f" or np.abs(wide).max() < 2 ** 52
                self.same(real(got["mean"]), float(wide.mean()), "mean", scale)
                if exact:
                    self.same(real(got["std"]), float(wide.std()), "std", scale)

    def check_sum(self, got, good, wide):
        kind, text, near = got
        if good.dtype.kind == "f":
            with np.errstate(all="ignore"):
                self.same(real(text), float(wide.sum()), "sum", float(np.abs(wide).sum()))
            return
        want = sum(int(x) for x in good.reshape(-1))
        signed = good.dtype.kind == "i"
        fits = -2 ** 63 <= want < 2 ** 63 if signed else want < 2 ** 64
        assert kind == (("i" if signed else "u") if fits else "f"), got
        if fits:
            assert int(text) == want, (got, want)
        self.same(real(near), float(want), "sum as a double")

    def check_histogram(self, rng, url, part, words):
        if part.dtype.kind in "Mm" or not part.size:
            return
        wide = part.astype("f8")
        finite = wide[np.isfinite(wide)]
        if not finite.size:
            return
        lo, hi = float(finite.min()), float(finite.max())
        if rng.integers(2):
            lo, hi = sorted((float(rng.choice(finite)), float(rng.choice(finite))))
        bins = int(rng.choice([1, 2, 7, 64, 1000]))
        call = lambda: self.helper.run("histogram", url=url, lo=lo.hex(), hi=hi.hex(),
                                       bins=bins, **words)
        try:
            want, _ = np.histogram(wide, bins=bins, range=(lo, hi))
        except ValueError:  # edges closer than doubles can distinguish
            self.refused(call, "CATERVA_EINVAL")
            return
        got = np.frombuffer(call()["data"], dtype="i8")
        self.checks += 1
        assert (got == want).all(), (got, want, lo, hi)

    def check_reduce(self, rng, url, part, words):
        axes = tuple(a for a in range(part.ndim) if rng.integers(2))
        whole = rng.integers(3) == 0
        what = int(rng.integers(len(REDUCTIONS)))
        reduction = REDUCTIONS[what]
        skip = int(rng.integers(2))
        if whole:
            axes = tuple(range(part.ndim))
        else:
            words = dict(words, axes=",".join(map(str, axes)) or ".")
        kept = [n for a, n in enumerate(part.shape) if a not in axes]
        cells = int(np.prod(kept))
        size = part.dtype.itemsize if reduction.gives_item else 8
        call = lambda: self.helper.run("reduce", url=url, what=what, skip_nan=skip,
                                       bytes=cells * size, **words)
        no_time = part.dtype.kind in "Mm" and not reduction.times
        if no_time or (reduction.gives_item and part.size == 0 and cells):
            self.refused(call, "CATERVA_EDTYPE" if no_time else "CATERVA_EINVAL")
            return
        got = call()["data"]
        self.compare(got, part, axes, reduction, skip, cells)

    def refused(self, call, status):
        self.checks += 1
        try:
            call()
        except HelperError as error:
            assert error.status == status, error
            return
        raise AssertionError("was not refused")

    def compare(self, got, part, axes, reduction, skip, cells):
        if not cells:
            assert got == b""
            return
        if reduction.gives_item:
            self.compare_items(got, part, axes, reduction, skip)
        elif reduction.wraps and part.dtype.kind in "iub":
            wide = part.astype("i8" if part.dtype.kind == "i" else "u8")
            want = reduction.all(wide, axis=axes)
            got = np.frombuffer(got, dtype=wide.dtype).reshape(np.shape(want))
            self.checks += 1
            assert (got == want).all(), (got, want)
        else:
            self.compare_doubles(got, part, axes, reduction, skip, cells)

    def compare_doubles(self, got, part, axes, reduction, skip, cells):
        wide = part.astype("f8")
        function = reduction.numbers if skip else reduction.all
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            want = np.asarray(function(wide, axis=axes))
            scale = np.asarray(np.nansum(np.abs(wide), axis=axes))
            if reduction.per_number:
                scale = scale / max(1, part.size // cells)
        got = np.frombuffer(got, dtype="f8").reshape(want.shape)
        for g, w, s in zip(got.reshape(-1), want.reshape(-1), scale.reshape(-1)):
            self.same(float(g), float(w), reduction.name, float(s) if np.isfinite(s) else 0.0)

    def compare_items(self, got, part, axes, reduction, skip):
        got = np.frombuffer(got, dtype=part.dtype)
        is_time = part.dtype.kind in "Mm"
        function = reduction.all if not skip else reduction.times if is_time \
            else reduction.numbers
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            want = np.asarray(function(part, axis=axes))
        got = got.reshape(want.shape)
        nan = np.isnat if is_time else (lambda x: x != x)
        self.checks += 1
        assert ((got == want) | (nan(got) & nan(want))).all(), (got, want)

    # ---- Runs ------------------------------------------------------------------

    def random(self, seed):
        rng = np.random.default_rng(seed)
        values = random_array(rng)
        url, values = self.create(rng, values)
        for _ in range(3):
            changed, pending = self.change(rng, values)
            box = random_box(rng, values.shape)
            words = dict(box_words(box, rng), **pending)
            part = changed[box] if box else changed  # which keeps the byte order
            self.check_stats(url, part, words)
            self.check_histogram(rng, url, part, words)
            self.check_reduce(rng, url, part, words)

    def foreign(self):
        """Special chunks written by python-blosc2, sparse and contiguous."""
        url = os.path.join(self.folder, "foreign.b2nd")
        nan = np.full((50, 60), np.nan)
        for made, want in ((blosc2.zeros, np.zeros((50, 60))), (blosc2.nans, nan)):
            for contiguous in (True, False):
                blosc2.remove_urlpath(url)
                made((50, 60), dtype="f8", urlpath=url, chunks=(20, 33), blocks=(7, 9),
                     contiguous=contiguous)
                self.check_stats(url, want, {})
                for axes, (what, reduction) in itertools.product(("0", "1", "."),
                                                                 enumerate(REDUCTIONS)):
                    kept = 60 if axes == "0" else 50 if axes == "1" else 3000
                    for skip in (0, 1):
                        got = self.helper.run("reduce", url=url, axes=axes, what=what,
                                              skip_nan=skip, bytes=kept * 8)["data"]
                        self.compare(got, want, () if axes == "." else (int(axes),),
                                     reduction, skip, kept)
        blosc2.remove_urlpath(url)
        blosc2.full((50, 60), 7, dtype="<i4", urlpath=url, chunks=(20, 33), blocks=(7, 9))
        self.check_stats(url, np.full((50, 60), 7, "<i4"), {})

    def refusals(self):
        url = os.path.join(self.folder, "a.b2nd")
        values = np.arange(12, dtype="<i4").reshape(3, 4)
        blosc2.remove_urlpath(url)
        blosc2.asarray(values, urlpath=url, mode="w")
        run = self.helper.run
        for words, status in (({"axes": "2"}, "ERANGE"), ({"axes": "-1"}, "ERANGE"),
                              ({"axes": "0,0"}, "EINVAL"), ({"start": "0,5"}, "ERANGE"),
                              ({"what": len(REDUCTIONS)}, "EINVAL"),
                              ({"what": -1}, "EINVAL"),
                              ({"axes": "0", "bytes": 15}, "ESHORT")):
            self.refused(lambda: run("reduce", url=url, **{"bytes": 96, **words}),
                         "CATERVA_" + status)
        for lo, hi, bins in ((1, 0, 4), ("nan", 1, 4), (0, "inf", 4), (0, 1, 0),
                             (-1.7e308, 1.7e308, 4), (0, 1, 1000001)):
            self.refused(lambda: run("histogram", url=url, lo=lo, hi=hi, bins=bins),
                         "CATERVA_EINVAL")
        for dtype in ("S3", "U2", "c8", [("a", "<i4"), ("b", "<f4")]):
            blosc2.asarray(np.zeros(3, dtype), urlpath=url, mode="w")
            self.refused(lambda: run("stats", url=url), "CATERVA_EDTYPE")


def main():
    numbers = [int(a) for a in sys.argv[1:] if a.isdigit()]
    arrays = numbers[0] if numbers else 1200
    seed = numbers[1] if len(numbers) > 1 else int(time.time())
    print(f"{arrays} arrays from seed {seed}")
    with tempfile.TemporaryDirectory(prefix="caterva-reduce-") as folder:
        test = Test(folder)
        test.refusals()
        test.foreign()
        for i in range(arrays):
            try:
                test.random(seed + i)
            except Exception:
                print(f"failed: repeat with {sys.argv[0]} 1 {seed + i}")
                raise
        test.helper.close()
        print(f"{test.checks} results agree with NumPy {np.__version__}")


if __name__ == "__main__":
    main()

"""Random arrays, items, selections and memory for a sequence. All use one generator, so that a
seed repeats a run."""

import numpy as np

DTYPES = ["|b1", "|u1", "|i1", "<u2", "<i2", "<u4", "<i4", "<u8", "<i8", "<f2", "<f4", "<f8",
          "<c8", "<c16", ">u2", ">i4", ">i8", ">f4", ">f8", "|S1", "|S7", "<U3", "<M8[ns]",
          "<m8[s]", "|V3", "|V300",
          [("a", "<f4"), ("b", "<i8")], [("x", "|u1"), ("y", ">f8"), ("z", "<i2", (3,))]]
EXACT_FILTERS = ["SHUFFLE", "BITSHUFFLE", "DELTA", "BYTEDELTA"]
MOST_ITEMS, MOST_CHUNK = 4000, 6000


def below(rng, n):
    return int(rng.integers(n))


def chance(rng, p):
    return rng.random() < p


def pick(rng, values):
    return values[below(rng, len(values))]


# ---- arrays ------------------------------------------------------------------------


def dtype(rng):
    return np.dtype(pick(rng, DTYPES))


def shape(rng, ndim=None):
    """0 to 6 axes; some arrays without items, some with one."""
    if ndim is None:
        ndim = pick(rng, [0, 1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 5, 6])
    longest = {0: 1, 1: 2000, 2: 60, 3: 15, 4: 7, 5: 5, 6: 4}[ndim]
    lengths = [below(rng, longest) + 1 for _ in range(ndim)]
    if ndim and chance(rng, 0.08):
        lengths[below(rng, ndim)] = 0
    return tuple(lengths)


def partition(rng, lengths):
    """Chunks and blocks, or None for the library's choice."""
    if chance(rng, 0.15):
        return None, None
    chunks = [below(rng, max(n, 1) + 2) + 1 for n in lengths]
    while np.prod(chunks, dtype=np.int64) > MOST_CHUNK:
        i = int(np.argmax(chunks))
        chunks[i] = max(chunks[i] // 2, 1)
    if chance(rng, 0.2):
        return chunks, None
    return chunks, [below(rng, n) + 1 for n in chunks]


def pipeline(rng, api):
    """Up to six lossless filters in any order, with the parameter of each."""
    n = pick(rng, [0, 1, 1, 1, 2, 2, 3, 4, 5, 6])
    return [(getattr(api, "FILTER_" + pick(rng, EXACT_FILTERS)), 0) for _ in range(n)]


def lossy(rng, api, kind):
    """A lossy filter for items of this dtype: number, meta, and a function of the items that
    gives the largest error; or None."""
    if kind.names or kind.byteorder == ">":
        return None
    if kind.kind == "f" and kind.itemsize in (4, 8):
        bits = below(rng, 12) + 6
        return api.FILTER_TRUNC_PREC, bits, lambda x: np.abs(x) * 2.0 ** -bits
    if kind.kind == "i":
        cleared = below(rng, kind.itemsize * 4) + 1
        return (api.FILTER_INT_TRUNC, -cleared,
                lambda x: np.full(x.shape, 2.0 ** cleared))
    return None


# ---- items --------------------------------------------------------------------------


def plain_items(rng, n, kind, finite):
    if kind.kind == "b":
        return rng.integers(0, 2, n).astype(bool)
    if kind.kind == "U":
        letters = kind.itemsize // 4
        return rng.integers(33, 1000, (n, letters)).astype("<u4").view(kind).reshape(n)
    style = "small" if finite else pick(rng, ["noise", "small", "small", "same", "ramp"])
    if style == "noise" or kind.kind in "SV":
        return np.frombuffer(rng.bytes(n * kind.itemsize), kind)
    if style == "same":
        return np.broadcast_to(plain_items(rng, 1, kind, True), (n,))
    numbers = rng.integers(-50, 100, n) if style == "small" else np.arange(n) % 251
    if kind.kind in "Mm":
        return numbers.astype("<i8").view(kind)
    return (numbers / 8 if kind.kind in "fc" else numbers).astype(kind)


def items(rng, lengths, kind, finite=False):
    """`finite`: no NaN, no infinity, and no number too large for a lossy filter."""
    n = int(np.prod(lengths, dtype=np.int64))
    made = np.zeros(n, kind)
    if chance(rng, 0.1):
        return made.reshape(lengths)
    if kind.names:
        for name in kind.names:
            part = kind[name]
            count = int(np.prod(part.shape, dtype=np.int64))
            made[name] = plain_items(rng, n * count, part.base, finite).reshape(
                (n,) + part.shape)
    else:
        made[...] = plain_items(rng, n, kind, finite)
    return made.reshape(lengths)


# ---- selections ----------------------------------------------------------------------


def box(rng, lengths):
    start = [below(rng, n + 1) for n in lengths]
    stop = [a + below(rng, n - a + 1) for a, n in zip(start, lengths)]
    return start, stop


def bound(rng, n):
    return None if chance(rng, 0.3) else below(rng, 2 * n + 6) - n - 3


def axis_word(rng, n, views_only):
    """A whole axis, slice, index, list or mask; lists for views have a constant step."""
    kind = pick(rng, ["all", "slice", "slice", "index", "list", "mask"])
    if kind == "index" and n > 0:
        return below(rng, 2 * n) - n
    if kind == "list" and not views_only and n > 0:
        return np.array([below(rng, 2 * n) - n for _ in range(below(rng, n + 3))], np.int64)
    if kind == "mask" and not views_only:
        return rng.random(n) < 0.4
    if kind == "all":
        return slice(None)
    step = pick(rng, [None, 1, 1, 2, 3, -1, -2, 7])
    return slice(bound(rng, n), bound(rng, n), step)


def numbers_of(word, n):
    """The indices that a word selects on an axis of n items."""
    if isinstance(word, slice):
        return np.arange(n)[word]
    if isinstance(word, int):
        return np.array([word % n])
    return np.flatnonzero(word) if word.dtype == bool else word % max(n, 1)


class Selected:
    """A selection for the library, and what NumPy selects with it."""

    def __init__(self, kind, what, taken, result):
        self.kind, self.what = kind, what
        self.taken, self.shape = taken, result # a NumPy index, and the result's shape

    def of(self, array):
        return array[self.taken].reshape(self.shape)

    def assign(self, array, values):
        wide = np.broadcast_to(values, self.shape)
        array[self.taken] = wide.reshape(array[self.taken].shape)


def axes_selection(rng, lengths, views_only=False):
    given = lengths[:below(rng, len(lengths)) + 1] if chance(rng, 0.2) else lengths
    words = [axis_word(rng, n, views_only) for n in given]
    every = words + [slice(None)] * (len(lengths) - len(words))
    numbers = [numbers_of(w, n) for w, n in zip(every, lengths)]
    result = tuple(len(k) for k, w in zip(numbers, every) if not isinstance(w, int))
    return Selected("axes", words, np.ix_(*numbers) if numbers else (), result)


def selection(rng, lengths):
    kind = pick(rng, ["box", "axes", "axes", "axes", "points", "mask"])
    if kind == "box" or not lengths:
        start, stop = box(rng, lengths)
        return Selected("box", (start, stop), tuple(map(slice, start, stop)),
                        tuple(b - a for a, b in zip(start, stop)))
    if kind == "axes":
        return axes_selection(rng, lengths)
    if kind == "points":
        count = below(rng, 40) if min(lengths) > 0 else 0
        points = np.array([[below(rng, 2 * n) - n for n in lengths] for _ in range(count)],
                          np.int64).reshape(count, len(lengths))
        return Selected("points", points, tuple(points.T), (count,))
    mask = rng.random(lengths) < pick(rng, [0.02, 0.3, 0.9])
    return Selected("mask", mask, mask, (int(mask.sum()),))


# ---- memory ---------------------------------------------------------------------------


def memory(rng, lengths, kind):
    """An array of this shape within a larger one: axes in any order, with gaps, backwards.
    Returns both; the larger one is filled with noise."""
    order = rng.permutation(len(lengths))
    gaps = [pick(rng, [1, 1, 1, 2, 3]) for _ in lengths]
    base = np.frombuffer(bytearray(rng.bytes(
        int(np.prod([lengths[i] * gaps[i] for i in order], dtype=np.int64)) * kind.itemsize)),
        np.dtype(("V", kind.itemsize)))
    base = base.reshape([lengths[i] * gaps[i] for i in order])
    part = base[(*(slice(None, None, gaps[i]) for i in order), ...)]
    part = part.transpose(np.argsort(order)) if lengths else part
    part = part[(*(slice(None, None, pick(rng, [1, 1, -1])) for _ in lengths), ...)]
    return base, part


def numeric(kind):
    return kind.names is None and kind.kind in "buifc"


def other_dtype(rng, kind, into):
    """A dtype to which (`into`) or from which `kind` may be cast within its kind; or None."""
    if not numeric(kind) or chance(rng, 0.6):
        return None
    others = [np.dtype(d) for d in DTYPES if isinstance(d, str)]
    fit = [d for d in others if numeric(d) and
           np.can_cast(*((kind, d) if into else (d, kind)), casting="same_kind")]
    return pick(rng, fit)

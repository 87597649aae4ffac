"""More operations on an array: commits and rollbacks, other handles, python-blosc2 in between,
copies, chunks, numbers, and calls that must be refused."""

import ctypes as c
import os
import shutil
import typing

import blosc2
import numpy as np

import tool_random as draw
from tool_handle import Failure, View, dtype_text, int64s
from tool_life import ATTRIBUTES, Life, need

PREFIX = "REDUCTION_"


class Oracle(typing.NamedTuple):
    """A reduction by NumPy."""
    function: typing.Callable  # of items and axes to reduce, with the result's dtype
    dtype: typing.Callable  # of the result, as a function of the items' dtype
    of_items: bool = False  # returns one of the items; undefined without items
    of_nothing: bool = True  # NumPy reduces no items without a warning


def double(_):
    return np.dtype("f8")


def wide(dtype):
    return np.dtype({"i": "i8", "f": "f8"}.get(dtype.kind, "u8"))


ORACLES = {
    "MIN": Oracle(lambda items, axes, kind: items.min(axis=axes).astype(kind),
                  lambda dtype: dtype, of_items=True),
    "MAX": Oracle(lambda items, axes, kind: items.max(axis=axes).astype(kind),
                  lambda dtype: dtype, of_items=True),
    "SUM": Oracle(lambda items, axes, kind: items.sum(axis=axes, dtype=kind), wide),
    "MEAN": Oracle(lambda items, axes, kind: items.mean(axis=axes, dtype=kind), double,
                   of_nothing=False),
}


class Steps(Life):

    # ---- states ---------------------------------------------------------------------

    def commit(self):
        self.writer.commit()
        self.kept = self.snapshot()

    def rollback(self):
        self.writer.rollback()
        if self.kept is None:
            self.now.items, self.now.attributes = self.fresh.items.copy(), {}
            self.now.metalayer = self.fresh.metalayer
        else:
            self.now = self.copied(self.kept)

    @staticmethod
    def copied(state):
        made = type(state)(state.items.copy(), state.metalayer)
        made.attributes = dict(state.attributes)
        return made

    def look(self):
        """The second handle opens the file, refreshes, or stays as it is."""
        if self.place == "memory" or self.kept is None:
            return
        if self.reader is None:
            words = {"cache_bytes": draw.pick(self.rng, [0, -1, 30000]),
                     "unchecked": int(draw.chance(self.rng, 0.2)),
                     "keep_bytes": draw.pick(self.rng, [0, -1])}
            self.reader, self.seen = self.library.open(self.path, **words), self.kept
        elif draw.chance(self.rng, 0.6):
            self.reader.refresh()
            self.seen = self.kept
        self.compare(self.reader, self.seen, "the reader")

    def leave(self):
        if self.reader is not None and draw.chance(self.rng, 0.5):
            self.reader.close()
            self.reader = None

    def busy(self):
        """No other handle may write, replace or delete the file."""
        if self.place == "memory" or self.kept is None:
            return
        api, where = self.api, self.path.encode()
        for attempt in (lambda: self.library.open(self.path, mode=api.MODE_WRITE),
                        lambda: self.library.call("delete", where, None)):
            self.refused(attempt, api.EBUSY, "beside a writer")

    def reopen_writer(self):
        self.writer = self.library.open(
            self.path, mode=self.api.MODE_WRITE, durability=self.api.DURABILITY_NONE,
            dirty_budget=draw.pick(self.rng, [0, 1, 5000]),
            threads=draw.pick(self.rng, [0, 1]))

    def reopen(self):
        """Closes, which commits, and opens; an array in memory through its frame."""
        if self.place == "memory":
            frame = self.writer.to_frame()
            borrowed = self.library.open_frame(frame, write=False)
            self.compare(borrowed, self.now, "a borrowed frame")
            borrowed.close()
            self.writer.discard()
            self.writer = self.library.open_frame(frame, write=True)
            self.kept = self.snapshot()
            return
        self.writer.close()
        self.kept = self.snapshot()
        self.reopen_writer()

    def discard(self):
        if self.kept is None or self.place == "memory":
            return
        self.writer.discard()
        self.now = self.copied(self.kept)
        self.reopen_writer()

    def guest(self):
        """python-blosc2 reads the file, and sometimes writes to it."""
        if self.place == "memory" or self.kept is None or self.not_for_guests():
            return
        if self.reader:  # C-Blosc2 moves bytes that a reader may use
            self.reader.close()
            self.reader = None
        filters = list(self.writer.info.filters)
        self.writer.close()
        self.kept = self.snapshot()
        guest = blosc2.open(self.path, mode="a")
        items = self.now.items
        need(guest.shape == items.shape, f"python-blosc2: shape {guest.shape}")
        if items.size:
            self.same(np.asarray(guest[...] if items.ndim else guest[()]).astype(self.dtype),
                      items, "python-blosc2 reads")
            few = sum(f != 0 for f in filters) <= 2  # otherwise it damages its own items
            if few and self.off is None and items.ndim > 0 and draw.chance(self.rng, 0.5):
                self.guest_writes(guest)
        del guest
        self.reopen_writer()
        self.compare(self.writer, self.now, "after python-blosc2")

    def guest_writes(self, guest):
        start, stop = draw.box(self.rng, self.now.items.shape)
        place = tuple(map(slice, start, stop))
        values = self.new_items([b - a for a, b in zip(start, stop)])
        if values.size:
            guest[place] = np.ascontiguousarray(values)
            self.now.items[place] = values
            self.kept = self.snapshot()

    def not_for_guests(self):
        """python-blosc2 reads single blocks wrongly after the delta filter and in chunks with a
        dictionary; it does not support items above 255 bytes, negative parameters of filters,
        and fields."""
        info = self.writer.info
        return bool(info.use_dict) or self.api.FILTER_DELTA in list(info.filters) or \
            info.item_size > 255 or self.dtype.names or \
            max(info.filters_meta) > 127 or min(info.filters_meta) < 0

    def compact(self):
        if self.place == "memory" or self.kept is None:
            return
        if self.place == "directory" and self.reader:
            return
        self.writer.close()
        self.kept = self.snapshot()
        self.upkeep(draw.pick(self.rng, ["compact", "seal"]))
        self.reopen_writer()

    def upkeep(self, what):
        """Runs compact or seal with the URL and checks its error."""
        kind = getattr(self.api, what).argtypes[1]
        if kind is c.c_int:
            return self.library.call(what, self.path.encode(), self.api.DURABILITY_NONE)
        name = kind._type_.__name__.removeprefix("caterva_")
        options = self.api.new(name, durability=self.api.DURABILITY_NONE)
        return self.library.call(what, self.path.encode(), c.byref(options))

    # ---- copies -----------------------------------------------------------------------

    def copied_options(self, ndim):
        api = self.api
        made = api.new("copy_options", memory=draw.pick(self.rng, [0, 1, 100000]))
        if draw.chance(self.rng, 0.6):
            made.kept_create = self.options([1] * ndim, exact=True)
            made.kept_create.dtype = None
            if draw.chance(self.rng, 0.5):
                made.kept_create.chunk_shape = made.kept_create.block_shape = None
            made.create = c.pointer(made.kept_create)
        return made

    def other_place(self, options):
        """The destination of a copy: memory, a file or a directory."""
        path = draw.pick(self.rng, ["mem:", os.path.join(self.folder, "copy.b2nd")])
        if path != "mem:":
            if not options.create:
                options.kept_create = self.api.new("create_options")
                options.create = c.pointer(options.kept_create)
            options.kept_create.layout = draw.pick(self.rng, [self.api.LAYOUT_CONTIGUOUS,
                                                              self.api.LAYOUT_SPARSE])
        return path

    def copy(self):
        """Copies a box, or a view; sometimes to another dtype."""
        handle, state = self.handle()
        items, ndim = state.items, state.items.ndim
        options = self.copied_options(ndim)
        place = self.other_place(options)
        off = self.off
        if draw.chance(self.rng, 0.4):
            view = View.of(handle)
            view, want, _ = self.next_view(view, items, False)
            if want.ndim != ndim and options.create:
                options.kept_create.chunk_shape = options.kept_create.block_shape = None
        else:
            start, stop = draw.box(self.rng, items.shape)
            options.start, options.stop = int64s(start), int64s(stop)
            view, want = None, items[tuple(map(slice, start, stop))]
        other = None if off else draw.other_dtype(self.rng, self.dtype, into=True)
        if other is not None:
            options.convert_to = dtype_text(other).encode()
            with np.errstate(all="ignore"):
                want = want.astype(other)
        try:
            made = (view or handle).copy(place, options)
        except Failure as failure:
            need(options.create and options.kept_create.codec and any(
                w in failure.message for w in ("filter", "delta", "codec", "block", "dict")),
                 f"copy was refused: {failure}")
        else:
            self.same(made.whole(other or self.dtype), want, f"a copy {place}")
            need(made.verify().damages == 0, "verify of a copy")
            if view is None and other is None:
                names = {k: v for k, v in made.attributes().items() if k in ATTRIBUTES}
                need(names == state.attributes, "a copy's attributes")
            made.close()
        if view:
            view.free()
        if place != "mem:" and os.path.exists(place):
            shutil.rmtree(place) if os.path.isdir(place) else os.unlink(place)

    # ---- chunks -----------------------------------------------------------------------

    def chunks(self):
        """The iterator covers the array once; a decoded chunk holds its items."""
        self.commit()
        items = self.now.items
        count = np.zeros(items.shape, np.int32)
        listed = list(self.writer.chunks())
        for _, _, start, stop in listed:
            count[tuple(map(slice, start, stop))] += 1
        need(bool((count == 1).all()), "chunks that cover the array once")
        need(len(listed) == self.writer.info.n_chunks, "the number of chunks")
        if listed:
            chunk, _, start, stop = draw.pick(self.rng, listed)
            self.same(self.writer.read(start, stop, self.dtype),
                      self.now.items[tuple(map(slice, start, stop))], f"chunk {chunk}")

    def move_chunk(self):
        """Replaces a chunk by another one as it is stored."""
        self.commit()
        listed = list(self.writer.chunks())
        if not listed:
            return
        source, target = draw.pick(self.rng, listed), draw.pick(self.rng, listed)
        stored = self.writer.chunk_read_stored(source[0])
        lengths = [b - a for a, b in zip(*target[2:])]
        if any(b - a < n for a, b, n in zip(*source[2:], lengths)):
            return  # the target would show the source's padding as items
        self.writer.chunk_write_stored(target[0], stored)
        inside = tuple(slice(a, a + n) for a, n in zip(source[2], lengths))
        self.now.items[tuple(map(slice, *target[2:]))] = self.now.items[inside].copy()

    # ---- numbers ------------------------------------------------------------------------

    def numbers(self):
        handle, state = self.handle()
        if self.dtype.names or self.dtype.kind not in "buif" or self.off is not None:
            return
        start, stop = draw.box(self.rng, state.items.shape)
        step = [draw.pick(self.rng, [1, 1, 2, 3]) for _ in start]
        slices = list(map(slice, start, stop, step))
        options = self.api.new("reduce_options")
        options.kept = self.library.selection("axes", slices)
        options.selection = c.pointer(options.kept)
        items = state.items[tuple(slices)]
        self.statistics(handle.statistics(options), items)
        if items.ndim > 0:
            self.reduction(handle, options, items)
        self.histogram(handle, options, items)

    @staticmethod
    def close_to(got, want, scale):
        return (np.isnan(got) & np.isnan(want)) | (got == want) | \
            (np.abs(got - want) <= 1e-9 * scale + 1e-300)

    def statistics(self, got, items):
        exact = self.dtype.kind in "bui"
        flat = items.reshape(-1)
        bad = np.isnan(flat) if not exact else np.zeros(flat.shape, bool)
        flat = flat[~bad].astype(self.dtype.newbyteorder("="))
        need(got.n_items == items.size and got.n_nan == int(bad.sum()), "counts of statistics")
        if flat.size == 0:
            return need(got.min.kind == b"\0", "the minimum of nothing")
        member = {"b": "u", "u": "u", "i": "i", "f": "f"}[self.dtype.kind]
        need(getattr(got.min, member) == flat.min() and getattr(got.max, member) == flat.max(),
             f"minimum {getattr(got.min, member)}, maximum {getattr(got.max, member)}")
        if exact:
            need(getattr(got.sum, got.sum.kind.decode()) == sum(int(x) for x in flat) or
                 got.sum.kind == b"f", "an exact sum")
        wide = flat.astype("f8")
        if np.isfinite(wide).all() and np.abs(wide).max() < 1e100:
            need(bool(self.close_to(got.mean, wide.mean(), np.abs(wide).mean())), "the mean")
            need(bool(self.close_to(got.std, wide.std(), np.abs(wide).max())), "the deviation")

    def reduction(self, handle, options, items):
        what = draw.pick(self.rng, self.reductions())
        oracle = ORACLES[what]
        axes = [i for i in range(items.ndim) if draw.chance(self.rng, 0.5)]
        options.axes = (c.c_int * len(axes))(*axes) if axes else None
        options.n_axes = len(axes)
        gone = tuple(axes) if axes else tuple(range(items.ndim))
        lengths = [n for i, n in enumerate(items.shape) if i not in gone]
        kind = oracle.dtype(self.dtype)
        nothing = any(items.shape[i] == 0 for i in gone)
        if (oracle.of_items and nothing) or (items.size == 0 and not oracle.of_nothing):
            return
        got = np.empty(lengths, kind)
        handle.reduce(getattr(self.api, PREFIX + what), options, got)
        native = items.astype(self.dtype.newbyteorder("="))
        with np.errstate(all="ignore"):
            want = oracle.function(native, gone, kind)
            scale = np.sum(np.abs(native.astype("f8")), axis=gone)
        if kind.kind == "f" and not oracle.of_items:
            fit = np.isfinite(scale) & (scale < 1e100)
            good = self.close_to(got, want, scale) | ~fit
            return need(bool(good.all()), f"{what} over {gone}")
        if kind.kind == "f":  # the sign of a zero, and which NaN, are undefined
            return need(bool(((got == want) | (np.isnan(got) & np.isnan(want))).all()),
                        f"{what} over {gone}")
        return need(bool((got == want).all()), f"{what} over {gone}: {got}, not {want}")

    def reductions(self):
        """All reductions of the header, each of which must have an oracle."""
        names = [n.removeprefix(PREFIX) for n in vars(self.api) if n.startswith(PREFIX)]
        need(sorted(names) == sorted(ORACLES), f"oracles of the reductions {names}")
        return list(ORACLES)

    def histogram(self, handle, options, items):
        low, bins = draw.below(self.rng, 40) - 30, draw.below(self.rng, 12) + 1
        high = low + draw.below(self.rng, 50) + 1
        options.axes, options.n_axes = None, 0
        got = handle.histogram(options, low, high, bins)
        native = items.astype(self.dtype.newbyteorder("=")).reshape(-1)
        if self.dtype.itemsize == 8 and self.dtype.kind in "ui":
            return  # beyond 2^53 NumPy computes with doubles
        finite = native[~np.isnan(native)] if self.dtype.kind == "f" else native
        want, _ = np.histogram(finite.astype("f8"), bins, (low, high))
        need(bool((got == want).all()), f"histogram {low} {high} {bins}: {got}, not {want}")

    # ---- the rest -------------------------------------------------------------------------

    def describe(self):
        info, items = self.writer.info, self.now.items
        need(info.n_items == items.size and info.item_size == self.dtype.itemsize, "info")
        need(info.data_bytes == items.nbytes, "data_bytes")
        ours = [k for k in self.now.attributes]
        need(info.n_attributes in (len(ours), len(ours) + 1), "n_attributes")

    def verify(self):
        handle, _ = self.handle()
        result = handle.verify()
        need(result.damages == 0, f"verify reports {result.damages} damages")
        space = handle.measure()
        need(space.dead_bytes >= 0 and space.live_bytes >= 0, "measure")

    def prefetch(self):
        handle, state = self.handle()
        handle.prefetch(*draw.box(self.rng, state.items.shape))

    def refused(self, attempt, code, when):
        try:
            attempt()
        except Failure as failure:
            return need(failure.code == code, f"{when}: {failure}, not {code}")
        return need(False, f"{when}: was not refused")

    def wrong(self):
        """A call that breaks a rule is refused with its status, and changes nothing."""
        api, shape, w = self.api, self.now.items.shape, self.writer
        ndim = len(shape)
        zero, beyond = [0] * ndim, [n + 1 for n in shape]
        one = np.zeros((), self.dtype)
        tries = [(api.ERANGE, lambda: w.insert(ndim, 0, 1, None)),
                 (api.ERANGE, lambda: w.remove(-1, 0, 0)),
                 (api.EINVAL, lambda: w.set_attribute("", b"x")),
                 (api.EINVAL, lambda: w.set_attribute("x" * 65536, b"x")),
                 (api.EINVAL, lambda: w.update_metalayer("user", self.now.metalayer + b"x"))]
        if ndim:
            into = np.empty(beyond, self.dtype)
            memory = c.cast(into.ctypes.data, c.c_void_p), into.nbytes
            outside = np.array([[n for n in shape]])
            tries += [(api.ERANGE, lambda: w.call("read", int64s(zero), int64s(beyond), *memory)),
                      (api.ERANGE, lambda: w.call("write", int64s(beyond), int64s(zero), *memory)),
                      (api.ERANGE, lambda: w.write_selection("axes", [int(shape[0])], one)),
                      (api.ERANGE, lambda: w.read_selection("points", outside,
                                                            np.empty(1, self.dtype))),
                      (api.EINVAL, lambda: w.resize([-1] * ndim))]
        code, attempt = draw.pick(self.rng, tries)
        self.refused(attempt, code, "a broken rule")
        self.compare(w, self.now, "after what was refused")


WEIGHTS = {"write": 6, "write_selection": 6, "resize": 3, "append": 3, "insert": 2, "remove": 2,
           "attribute": 2, "metalayer": 1, "read": 4, "read_selection": 8, "views": 4,
           "commit": 4, "rollback": 1, "look": 3, "leave": 1, "busy": 0.5, "reopen": 1.5,
           "discard": 0.7, "guest": 1, "compact": 0.7, "copy": 2, "chunks": 1,
           "move_chunk": 1, "numbers": 2, "describe": 1, "verify": 1, "prefetch": 0.5,
           "wrong": 1}

"""The life of one array: operations on it, each compared with NumPy. `now` is the state of the
writing handle, `kept` that of the last commit, `seen` that of the reading handle."""

import copy
import ctypes as c
import os

import numpy as np

import tool_random as draw
from tool_handle import Failure, View, dtype_text, int32s, int64s

ATTRIBUTES = ["a", "units", "\N{GREEK SMALL LETTER MU}", "n" * 31]


class State:
    """Items, attributes and the user's metalayer."""

    def __init__(self, items, metalayer):
        self.items, self.attributes, self.metalayer = items, {}, metalayer


class Difference(AssertionError):
    pass


def need(condition, sentence):
    if not condition:
        raise Difference(sentence)


class Life:
    def __init__(self, library, folder, rng):
        self.library, self.api, self.rng = library, library.api, rng
        self.folder, self.steps = folder, 0
        self.dtype = draw.dtype(rng)
        self.off = None  # of a lossy array: the largest error of its items
        self.place = draw.pick(rng, ["file", "file", "directory", "memory"])
        self.path = "mem:" if self.place == "memory" else os.path.join(folder, "x.b2nd")
        self.reader = self.kept = self.seen = None
        self.create()

    # ---- beginning ----------------------------------------------------------------

    def new_items(self, lengths):
        return draw.items(self.rng, lengths, self.dtype, finite=self.off is not None)

    def fill(self, options):
        """Sets a random fill; returns the value of new items."""
        rng, api, zero = self.rng, self.api, np.zeros((), self.dtype)
        if draw.chance(rng, 0.6):
            return zero
        if self.dtype.kind == "f" and self.dtype.itemsize in (4, 8) and \
                self.dtype.isnative and self.off is None and draw.chance(rng, 0.5):
            options.fill = api.FILL_NAN
            return np.full((), np.nan, self.dtype)
        value = self.new_items((1,)).copy()
        options.fill = api.FILL_VALUE
        options.kept_value = value
        options.fill_value = value.ctypes.data
        return value.reshape(())

    def encoding(self, options, exact):
        rng, api = self.rng, self.api
        options.codec = getattr(api, "CODEC_" + draw.pick(
            rng, ["BLOSCLZ", "LZ4", "LZ4HC", "ZLIB", "ZSTD"]))
        options.level = draw.below(rng, 10) or api.NONE
        options.use_dict = int(options.codec in (api.CODEC_LZ4, api.CODEC_ZSTD) and
                               draw.chance(rng, 0.1))
        filters = draw.pipeline(rng, api) or [(api.FILTER_NONE, 0)]
        chosen = None if exact or draw.chance(rng, 0.85) else \
            draw.lossy(rng, api, self.dtype)
        if chosen:
            filters, self.off = [chosen[:2], (api.FILTER_SHUFFLE, 0)], chosen[2]
        for i, (number, meta) in enumerate(filters):
            options.filters[i], options.filters_meta[i] = number, meta

    def options(self, lengths, exact=False):
        """Random options, and the shapes that they refer to."""
        rng, api = self.rng, self.api
        made = api.new("create_options", ndim=len(lengths), shape=int64s(lengths),
                       dtype=dtype_text(self.dtype).encode(), threads=draw.pick(rng, [0, 1, 3]),
                       durability=api.DURABILITY_NONE)
        chunks, blocks = draw.partition(rng, lengths)
        made.chunk_shape = int32s(chunks) if chunks is not None else None
        made.block_shape = int32s(blocks) if blocks is not None else None
        if draw.chance(rng, 0.75):
            self.encoding(made, exact)
        return made

    def create(self):
        """Tries pipelines until one is accepted; a refusal must name a filter, the codec or the
        block."""
        rng, api = self.rng, self.api
        lengths = draw.shape(rng)
        for _ in range(50):
            self.off = None
            options = self.options(lengths)
            fill = self.fill(options)
            is_sparse = self.place == "directory"
            options.layout = api.LAYOUT_SPARSE if is_sparse else api.LAYOUT_CONTIGUOUS
            options.dirty_budget = draw.pick(rng, [0, 1, 5000])
            options.cache_bytes = draw.pick(rng, [0, -1, 20000])
            layer = rng.bytes(draw.below(rng, 30) + 1)
            options.kept_layer = api.new("metalayer", name=b"user", size=len(layer))
            options.kept_bytes = c.create_string_buffer(layer, len(layer))
            options.kept_layer.content = c.cast(options.kept_bytes, c.c_void_p)
            options.metalayers, options.n_metalayers = c.pointer(options.kept_layer), 1
            first = self.new_items(lengths).copy() if draw.chance(rng, 0.4) else None
            try:
                self.writer = self.library.create(self.path, options, first)
                break
            except Failure as failure:
                need(failure.code in (api.EINVAL, api.EPIPELINE) and any(
                    w in failure.message for w in ("filter", "delta", "codec", "block",
                                                   "dict")),
                     f"create was refused: {failure}")
        else:
            raise Difference("no array of 50 was taken")
        self.fill_item = fill
        items = np.full(lengths, fill, self.dtype) if first is None else first
        self.now = State(items, layer)
        self.fresh = State(np.full(lengths, fill, self.dtype), layer)
        self.described = (f"{self.place} {self.dtype} {tuple(lengths)} chunks "
                          f"{list(self.writer.info.chunk_shape[:len(lengths)])} blocks "
                          f"{list(self.writer.info.block_shape[:len(lengths)])} encoding "
                          f"{self.encoding_words(options) if options.codec else 'default'}")

    @staticmethod
    def encoding_words(options):
        return (f"codec {options.codec} level {options.level} dict {options.use_dict} filters "
                f"{list(options.filters)} {list(options.filters_meta)}")

    # ---- comparing ------------------------------------------------------------------

    def same(self, got, want, where):
        """Equal bit for bit, except NaN, whose bits a cast does not define."""
        need(got.shape == want.shape, f"{where}: shape {got.shape}, not {want.shape}")
        want = np.asarray(want).astype(got.dtype, copy=False)  # joins have native order
        if got.dtype != self.dtype and got.dtype.kind in "fc":
            got, want = [np.where(np.isnan(x), x.dtype.type(np.nan), x) for x in (got, want)]
        if self.off is None or got.dtype != self.dtype:
            raw = np.dtype(("V", want.dtype.itemsize))
            bad = np.flatnonzero(np.ascontiguousarray(got).reshape(-1).view(raw) !=
                                 np.ascontiguousarray(want).reshape(-1).view(raw))
            need(self.off is not None or len(bad) == 0,
                 f"{where}: {len(bad)} of {got.size} items differ, the first is number "
                 f"{bad[:1]}: {got.reshape(-1)[bad[:1]]}, not {want.reshape(-1)[bad[:1]]}")
            return
        far = np.abs(got.astype("f8") - want.astype("f8")) > self.off(want.astype("f8"))
        need(not far.any(), f"{where}: {far.sum()} items are further off than the filter says")

    def compare(self, handle, state, where):
        need(handle.shape == state.items.shape,
             f"{where}: shape {handle.shape}, not {state.items.shape}")
        self.same(handle.whole(self.dtype), state.items, where)
        ours = {k: v for k, v in handle.attributes().items() if k in ATTRIBUTES}
        need(ours == state.attributes, f"{where}: attributes {ours}, not {state.attributes}")
        need(handle.metalayer("user") == state.metalayer, f"{where}: metalayer")

    def finish(self):
        self.compare(self.writer, self.now, "at the end")
        if self.reader:
            self.compare(self.reader, self.seen, "the reader at the end")
            self.reader.close()
        if self.place == "memory":
            return self.writer.close()
        self.writer.close()
        with_all = self.library.open(self.path)
        self.compare(with_all, self.now, "reopened at the end")
        need(with_all.verify().damages == 0, "verify reports damage")
        with_all.close()

    # ---- writing --------------------------------------------------------------------

    def write(self):
        start, stop = draw.box(self.rng, self.now.items.shape)
        values = self.new_items([b - a for a, b in zip(start, stop)])
        self.writer.write(start, stop, values)
        self.now.items[tuple(map(slice, start, stop))] = values

    def some_memory(self, lengths, source_dtype):
        """Items of this dtype in memory of any strides; without NaN if they will be cast."""
        _, part = draw.memory(self.rng, lengths, source_dtype)
        items = self.typed(part, source_dtype)
        finite = self.off is not None or source_dtype != self.dtype
        items[...] = draw.items(self.rng, lengths, source_dtype, finite)
        return items

    @staticmethod
    def typed(part, dtype):
        """The same memory with items of this dtype."""
        made = np.lib.stride_tricks.as_strided(part, part.shape, part.strides)
        made.dtype = dtype
        return made

    def broadcastable(self, lengths):
        """A shape that NumPy would broadcast to this one."""
        if draw.chance(self.rng, 0.7):
            return lengths
        cut = draw.below(self.rng, len(lengths) + 1)
        return tuple(1 if draw.chance(self.rng, 0.4) else n for n in lengths[cut:])

    def write_selection(self):
        chosen = draw.selection(self.rng, self.now.items.shape)
        other = None if self.off else draw.other_dtype(self.rng, self.dtype, into=False)
        source = self.some_memory(self.broadcastable(chosen.shape), other or self.dtype)
        with np.errstate(all="ignore"):
            values = source.astype(self.dtype) if other else source
        self.writer.write_selection(chosen.kind, chosen.what, source, other)
        chosen.assign(self.now.items, values)

    def resize(self):
        old = self.now.items
        if old.ndim == 0:
            return
        shape = [max(0, n + draw.below(self.rng, 9) - 4) if draw.chance(self.rng, 0.6) else n
                 for n in old.shape]
        if np.prod(shape, dtype=np.int64) > 2 * draw.MOST_ITEMS:
            return
        self.writer.resize(shape)
        common = tuple(slice(0, min(a, b)) for a, b in zip(old.shape, shape))
        self.now.items = np.full(shape, self.fill_item, self.dtype)
        self.now.items[common] = old[common]

    def an_axis(self):
        """A random axis that can still grow, or None."""
        shape = self.now.items.shape
        if not shape or np.prod(shape, dtype=np.int64) > draw.MOST_ITEMS:
            return None
        return draw.below(self.rng, len(shape))

    def more(self, axis):
        lengths = list(self.now.items.shape)
        lengths[axis] = draw.below(self.rng, 6)
        return np.ascontiguousarray(self.new_items(lengths))

    def append(self):
        axis = self.an_axis()
        if axis is not None:
            items = self.more(axis)
            self.writer.append(axis, items)
            self.now.items = np.concatenate([self.now.items, items], axis)

    def insert(self):
        axis = self.an_axis()
        if axis is None:
            return
        at, items = draw.below(self.rng, self.now.items.shape[axis] + 1), self.more(axis)
        given = None if draw.chance(self.rng, 0.2) else items
        if given is None:
            items = np.full(items.shape, self.fill_item, self.dtype)
        self.writer.insert(axis, at, items.shape[axis], given)
        before, behind = np.split(self.now.items, [at], axis)
        self.now.items = np.concatenate([before, items, behind], axis)

    def remove(self):
        if self.now.items.ndim == 0:
            return
        axis = draw.below(self.rng, self.now.items.ndim)
        (start,), (stop,) = draw.box(self.rng, self.now.items.shape[axis:axis + 1])
        self.writer.remove(axis, start, stop)
        self.now.items = np.delete(self.now.items, slice(start, stop), axis)

    def attribute(self):
        name = draw.pick(self.rng, ATTRIBUTES)
        if name in self.now.attributes and draw.chance(self.rng, 0.4):
            self.writer.remove_attribute(name)
            del self.now.attributes[name]
        else:  # as python-blosc2 unpacks it: a msgpack bin
            value = self.rng.bytes(draw.below(self.rng, 200))
            packed = bytes([0xc4, len(value)]) + value
            self.writer.set_attribute(name, packed)
            self.now.attributes[name] = packed

    def metalayer(self):
        content = self.rng.bytes(len(self.now.metalayer))
        self.writer.update_metalayer("user", content)
        self.now.metalayer = content

    # ---- reading ----------------------------------------------------------------------

    def handle(self):
        """One of the handles, with its state."""
        if self.reader and draw.chance(self.rng, 0.4):
            return self.reader, self.seen
        return self.writer, self.now

    def read(self):
        handle, state = self.handle()
        start, stop = draw.box(self.rng, state.items.shape)
        want = state.items[tuple(map(slice, start, stop))]
        self.same(handle.read(start, stop, self.dtype), want, f"read {start} {stop}")

    def read_selection(self):
        handle, state = self.handle()
        chosen = draw.selection(self.rng, state.items.shape)
        need(handle.selection_shape(chosen.kind, chosen.what) == chosen.shape,
             f"the shape of selection {chosen.what}")
        other = draw.other_dtype(self.rng, self.dtype, into=True)
        field = draw.pick(self.rng, self.dtype.names) if self.dtype.names and \
            draw.chance(self.rng, 0.5) else None
        if field and self.dtype[field].shape:
            field = None
        kind = self.dtype[field] if field else other or self.dtype
        base, part = draw.memory(self.rng, chosen.shape, kind)
        expected = base.copy()
        got = self.typed(part, kind)
        handle.read_selection(chosen.kind, chosen.what, got, kind if other else None, field)
        want = chosen.of(state.items)
        with np.errstate(all="ignore"):
            want = want[field] if field else want.astype(kind)
        self.same(got, want, f"read {chosen.kind} {chosen.what}")
        blank = self.typed(part, np.dtype(("V", kind.itemsize)))
        blank[...] = np.zeros((), blank.dtype)
        self.blank_alike(expected, base, part)
        need(base.tobytes() == expected.tobytes(), "bytes between the items changed")

    @staticmethod
    def blank_alike(expected, base, part):
        """Zeroes in `expected` the items of `base` that `part` contains."""
        if part.size == 0:
            return
        offset = part.ctypes.data - base.ctypes.data
        twin = np.ndarray(part.shape, part.dtype, expected.data, offset, part.strides)
        twin[...] = np.zeros((), part.dtype)

    def views(self):
        """A chain of views, possibly joined with itself: read, and written if it can be."""
        handle, state = self.handle()
        view, seen, made = View.of(handle), state.items, []
        joined = False
        for _ in range(draw.below(self.rng, 4)):
            made.append(view)
            view, seen, joined = self.next_view(view, seen, joined)
        need(view.shape == seen.shape, f"a view's shape {view.shape}, not {seen.shape}")
        chosen = draw.selection(self.rng, seen.shape)
        got = np.empty(chosen.shape, self.dtype)
        view.read(chosen.kind, chosen.what, got)
        self.same(got, chosen.of(seen), "through a view")
        if handle is self.writer and not joined and np.may_share_memory(seen, state.items):
            values = self.new_items(chosen.shape)
            view.write(chosen.kind, chosen.what, values)
            chosen.assign(seen, values)
        for one in [view, *made]:
            one.free()

    def next_view(self, view, seen, joined):
        how = draw.pick(self.rng, ["select", "select", "transpose", "expand", "squeeze",
                                   "concat", "stack"])
        if how == "select":
            words = [draw.axis_word(self.rng, n, True) for n in seen.shape]
            return view.select(words), seen[(*words, ...)], joined
        if how == "transpose":
            order = [int(i) for i in self.rng.permutation(seen.ndim)]
            return view.transpose(order), seen.transpose(order), joined
        if how == "expand" and seen.ndim < 8:
            axis = draw.below(self.rng, seen.ndim + 1)
            return view.made("expand", axis), np.expand_dims(seen, axis), joined
        ones = [i for i, n in enumerate(seen.shape) if n == 1]
        if how == "squeeze" and ones:
            axis = draw.pick(self.rng, ones)
            return view.made("squeeze", axis), seen.squeeze(axis), joined
        if how == "concat" and seen.ndim > 0 and seen.size < draw.MOST_ITEMS:
            axis = draw.below(self.rng, seen.ndim)
            return (View.joined("concat", [view, view], axis),
                    np.concatenate([seen, seen], axis), True)
        if how == "stack" and seen.ndim < 8 and seen.size < draw.MOST_ITEMS:
            axis = draw.below(self.rng, seen.ndim + 1)
            return View.joined("stack", [view, view, view], axis), np.stack([seen] * 3, axis), True
        return view.select([]), seen, joined

    def snapshot(self):
        return copy.deepcopy(self.now)

"""An open array through the C API, for Python: NumPy arrays in and out, failures as exceptions.
Memory that a call uses is kept alive for this call, and no longer."""

import ctypes as c

import numpy as np


class Failure(Exception):
    """A status other than CATERVA_OK, and its message."""

    def __init__(self, code, message):
        super().__init__(f"{code}: {message}")
        self.code, self.message = code, message


def int64s(values):
    return (c.c_int64 * max(len(values), 1))(*[int(v) for v in values])


def int32s(values):
    return (c.c_int32 * max(len(values), 1))(*[int(v) for v in values])


def address(array):
    return c.cast(array.ctypes.data, c.c_void_p)


def dtype_text(dtype):
    """The description of a NumPy dtype as Blosc2 files contain it."""
    return str(dtype.descr) if dtype.names else dtype.str


def reach(array):
    """The bytes from the lowest item of an array to the end of the highest."""
    if array.size == 0:
        return 0
    spans = [(n - 1) * s for n, s in zip(array.shape, array.strides)]
    return sum(abs(s) for s in spans) + array.itemsize


class Library:
    """The functions of the header, each raising a Failure. A call that succeeds must leave the
    error unchanged."""

    MARK = (77, 7777, 777, b"mine")

    def __init__(self, api):
        self.api = api
        self.called = set()

    def call(self, name, *arguments):
        code, sys_errno, position, message = self.MARK
        err = self.api.new("error", code=code, sys_errno=sys_errno, position=position,
                           message=message)
        status = getattr(self.api, name)(*arguments, c.byref(err))
        self.called.add(name)
        if status == self.api.OK:
            left = (err.code, err.sys_errno, err.position, err.message)
            if left != self.MARK:
                raise AssertionError(f"{name} succeeds and changes the error: {left}")
        else:
            message = err.message.decode(errors="replace")
            if err.code != status or not message:
                raise AssertionError(f"{name}: status {status}, error {err.code} '{message}'")
            raise Failure(status, message)

    def out(self, name, kind, *arguments):
        """Calls a function whose last argument before the error is a `**out` of this kind."""
        made = c.POINTER(self.api.structs["caterva_" + kind])()
        self.call(name, *arguments, c.byref(made))
        return made

    # ---- what a call borrows --------------------------------------------------

    def buffer(self, array, dtype=None, described=True):
        made = self.api.new("buffer", data=address(array), size=reach(array))
        made.kept = array
        if described:
            made.ndim = array.ndim
            made.shape, made.strides = int64s(array.shape), int64s(array.strides)
        if dtype is not None:
            made.dtype = dtype_text(dtype).encode()
        return made

    def axis(self, word):
        """A slice, an index, a list of indices or a mask, as struct caterva_axis."""
        api, omit = self.api, self.api.AXIS_OMIT
        if isinstance(word, slice):
            if word == slice(None):
                return api.new("axis")
            return api.new("axis", kind=api.AXIS_SLICE,
                           start=omit if word.start is None else word.start,
                           stop=omit if word.stop is None else word.stop,
                           step=1 if word.step is None else word.step)
        if isinstance(word, (int, np.integer)):
            return api.new("axis", kind=api.AXIS_INDEX, start=int(word))
        if word.dtype == bool:
            made = api.new("axis", kind=api.AXIS_MASK, n=len(word))
            made.kept = (c.c_uint8 * max(len(word), 1))(*word.tolist())
            made.mask = c.cast(made.kept, c.POINTER(c.c_uint8))
            return made
        made = api.new("axis", kind=api.AXIS_LIST, n=len(word))
        made.kept = int64s(word)
        made.indices = c.cast(made.kept, c.POINTER(c.c_int64))
        return made

    def axes(self, words):
        made = [self.axis(w) for w in words]
        array = (self.api.structs["caterva_axis"] * max(len(made), 1))(*made)
        array.kept = made
        return array

    def selection(self, kind, what):
        api = self.api
        if kind == "box":
            start, stop = int64s(what[0]), int64s(what[1])
            return api.new("selection", start=start, stop=stop)
        if kind == "axes":
            made = api.new("selection", kind=api.SELECTION_AXES, n_axes=len(what))
            made.kept = self.axes(what)
            made.axes = made.kept
            return made
        if kind == "points":
            made = api.new("selection", kind=api.SELECTION_POINTS, n_points=len(what))
            made.points = int64s(what.ravel())
            return made
        made = api.new("selection", kind=api.SELECTION_MASK, mask_size=what.size)
        made.kept = np.ascontiguousarray(what, np.uint8)
        made.mask = c.cast(made.kept.ctypes.data, c.POINTER(c.c_uint8))
        return made

    # ---- how arrays begin -------------------------------------------------------

    def create(self, url, options, items=None):
        where = str(url).encode()
        if items is None:
            return Array(self, self.out("create", "array", where, c.byref(options)))
        return Array(self, self.out("create_from_memory", "array", where, c.byref(options),
                                    address(items), items.nbytes))

    def open(self, url, **words):
        options = self.api.new("open_options", **words)
        return Array(self, self.out("open", "array", str(url).encode(), c.byref(options)))

    def open_frame(self, frame, write):
        options = self.api.new("open_options",
                               mode=self.api.MODE_WRITE if write else self.api.MODE_READ)
        kept = c.create_string_buffer(frame, len(frame))
        made = Array(self, self.out("frame_open", "array", kept, len(frame), int(write),
                                    c.byref(options)))
        made.kept = kept
        return made


class Array:
    """A handle. Methods have the names of the functions."""

    def __init__(self, library, pointer):
        self.library, self.api, self.pointer = library, library.api, pointer
        self.held = []

    def call(self, name, *arguments):
        self.library.call(name, self.pointer, *arguments)

    def release(self):
        while self.held:
            self.api.info_release(self.held.pop())

    def __getattr__(self, name):
        """Functions that take only the handle: commit, rollback, refresh."""
        if name not in ("commit", "rollback", "refresh"):
            raise AttributeError(name)
        return lambda: self.call(name)

    def close(self):
        pointer, self.pointer = self.pointer, None
        self.release()
        self.library.call("close", pointer)

    def discard(self):
        pointer, self.pointer = self.pointer, None
        self.release()
        self.api.discard(pointer)

    @property
    def info(self):
        """The array's current description; it keeps no reference to it."""
        self.held.append(self.library.out("info_get", "info", self.pointer))
        return self.held[-1].contents

    @property
    def shape(self):
        info = self.info
        return tuple(info.shape[:info.ndim])

    @property
    def dtype_text(self):
        return self.info.dtype.decode()

    # ---- items --------------------------------------------------------------------

    def read(self, start, stop, dtype):
        got = np.empty([int(b) - int(a) for a, b in zip(start, stop)], dtype)
        self.call("read", int64s(start), int64s(stop), address(got), got.nbytes)
        return got

    def whole(self, dtype):
        shape = self.shape
        return self.read([0] * len(shape), shape, dtype)

    def write(self, start, stop, items):
        items = np.ascontiguousarray(items).reshape(items.shape)
        self.call("write", int64s(start), int64s(stop), address(items), items.nbytes)

    def read_selection(self, kind, what, into, dtype=None, field=None):
        """Reads into an array of any strides; `dtype` if it is not the array's."""
        buffer = self.library.buffer(into, dtype)
        if field is not None:
            buffer.field = field.encode()
        self.call("read_selection", c.byref(self.library.selection(kind, what)),
                  c.byref(buffer))

    def write_selection(self, kind, what, items, dtype=None):
        self.call("write_selection", c.byref(self.library.selection(kind, what)),
                  c.byref(self.library.buffer(items, dtype)))

    def selection_shape(self, kind, what):
        shape, ndim = int64s([0] * self.api.MAX_DIMS), c.c_int()
        self.call("selection_shape", c.byref(self.library.selection(kind, what)),
                  c.byref(ndim), shape)
        return tuple(shape[:ndim.value])

    # ---- shape ----------------------------------------------------------------------

    def resize(self, shape):
        self.call("resize", int64s(shape))

    def append(self, axis, items):
        self.call("append", axis, items.shape[axis], c.byref(self.library.buffer(items)))

    def insert(self, axis, at, n, items):
        src = None if items is None else c.byref(self.library.buffer(items))
        self.call("insert", axis, at, n, src)

    def remove(self, axis, start, stop):
        self.call("remove", axis, start, stop)

    # ---- chunks -----------------------------------------------------------------------

    def chunks(self):
        """Each chunk's number, kind, first and last index."""
        it, ndim = self.api.new("chunk_iter"), self.info.ndim
        while True:
            self.call("chunk_next", c.byref(it))
            if it.done:
                return
            yield it.chunk.chunk, it.chunk.kind, it.chunk.start[:ndim], it.chunk.stop[:ndim]

    def chunk_read_stored(self, chunk):
        size = c.c_size_t()
        self.call("chunk_read_stored", chunk, None, 0, c.byref(size))
        got = c.create_string_buffer(size.value)
        self.call("chunk_read_stored", chunk, got, size.value, c.byref(size))
        return got.raw[:size.value]

    def chunk_write_stored(self, chunk, stored):
        self.call("chunk_write_stored", chunk, stored, len(stored))

    # ---- attributes and metalayers ------------------------------------------------------

    def attributes(self):
        found = {}
        info = self.info
        for i in range(info.n_attributes):
            name = info.attribute_names[i].decode()
            found[name] = self.attribute(name)
        return found

    def attribute(self, name):
        value, size = c.c_void_p(), c.c_size_t()
        self.call("attr_get", name.encode(), c.byref(value), c.byref(size))
        content = c.string_at(value, size.value)
        self.api.free(value)
        return content

    def set_attribute(self, name, value):
        self.call("attr_set", name.encode(), value, len(value))

    def remove_attribute(self, name):
        self.call("attr_delete", name.encode())

    def metalayer(self, name):
        layer = self.api.info_metalayer(c.byref(self.info), name.encode()).contents
        return c.string_at(layer.content, layer.size)

    def update_metalayer(self, name, content):
        self.call("metalayer_update", name.encode(), content, len(content))

    # ---- the rest -------------------------------------------------------------------------

    def verify(self):
        result = self.api.new("verify_result")
        self.call("verify", None, c.byref(result))
        return result

    def measure(self):
        result = self.api.new("space")
        self.call("measure", c.byref(result))
        return result

    def to_frame(self):
        frame, size = c.c_void_p(), c.c_size_t()
        self.call("frame_copy", c.byref(frame), c.byref(size))
        content = c.string_at(frame, size.value)
        self.api.free(frame)
        return content

    def prefetch(self, start, stop):
        self.call("prefetch", int64s(start), int64s(stop))

    def copy(self, url, options):
        return Array(self.library, self.library.out("copy", "array", self.pointer,
                                                    str(url).encode(), c.byref(options)))

    def statistics(self, options):
        result = self.api.new("stats")
        self.call("statistics", c.byref(options), c.byref(result))
        return result

    def reduce(self, what, options, into):
        self.call("reduce", what, c.byref(options), address(into), into.nbytes)

    def histogram(self, options, low, high, bins):
        counts = np.zeros(bins, np.int64)
        self.call("histogram", (c.c_double * 2)(low, high), bins, c.byref(options),
                  c.cast(counts.ctypes.data, c.POINTER(c.c_int64)))
        return counts


class View:
    """A view; `free` releases it."""

    def __init__(self, library, pointer):
        self.library, self.api, self.pointer = library, library.api, pointer

    @classmethod
    def of(cls, array):
        return cls(array.library, array.library.out("view_of", "view", array.pointer))

    @classmethod
    def joined(cls, how, views, axis):
        library = views[0].library
        several = (type(views[0].pointer) * len(views))(*[v.pointer for v in views])
        return cls(library, library.out("view_" + how, "view", several, len(views), axis))

    def made(self, how, *arguments):
        return View(self.library, self.library.out("view_" + how, "view", self.pointer,
                                                   *arguments))

    def select(self, words):
        return self.made("select", self.library.axes(words), len(words))

    def transpose(self, order):
        return self.made("transpose", (c.c_int * max(len(order), 1))(*order))

    @property
    def shape(self):
        ndim = self.api.view_ndim(self.pointer)
        return tuple(self.api.view_shape(self.pointer)[i] for i in range(ndim))

    def read(self, kind, what, into):
        self.library.call("view_read", self.pointer,
                          c.byref(self.library.selection(kind, what)),
                          c.byref(self.library.buffer(into)))

    def write(self, kind, what, items):
        self.library.call("view_write", self.pointer,
                          c.byref(self.library.selection(kind, what)),
                          c.byref(self.library.buffer(items)))

    def copy(self, url, options):
        return Array(self.library, self.library.out("view_copy", "array", self.pointer,
                                                    str(url).encode(), c.byref(options)))

    def free(self):
        pointer, self.pointer = self.pointer, None
        self.api.view_free(pointer)

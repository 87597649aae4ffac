"""Caterva through ctypes: the part of <caterva.h> that the comparison needs.

Like the calls of the rivals, each call includes the overhead of calling C from Python, and reads
into a NumPy array created for the call."""

import ctypes
from ctypes import POINTER, byref, c_char, c_char_p, c_int, c_int32, c_int64, c_size_t, c_void_p

import numpy as np

LZ4, SHUFFLE, DURABLE_NONE = 1, 1, 2
CACHE_OFF, CACHE_SHARED = -1, 0
AXIS_ALL, AXIS_SLICE, AXIS_LIST = 0, 2, 3
SELECT_AXES, SELECT_POINTS, SELECT_MASK = 1, 2, 3
OMIT = -1 << 63


class Error(ctypes.Structure):
    _fields_ = [("code", c_int), ("sys_errno", c_int), ("position", c_int64),
                ("message", c_char * 240)]


class CreateOptions(ctypes.Structure):
    _fields_ = [("struct_size", c_size_t), ("ndim", c_int), ("shape", POINTER(c_int64)),
                ("chunk_shape", POINTER(c_int32)), ("block_shape", POINTER(c_int32)),
                ("dtype", c_char_p), ("item_size", c_int32), ("layout", c_int),
                ("metalayer", c_int), ("fill", c_int), ("fill_value", c_void_p),
                ("codec", c_int), ("codec_meta", c_int),
                ("level", c_int), ("use_dict", c_int), ("filters", c_int * 6),
                ("filters_meta", c_int * 6), ("metalayers", c_void_p),
                ("n_metalayers", c_int), ("overwrite", c_int), ("threads", c_int),
                ("durability", c_int), ("dirty_budget", c_int64)]


class OpenOptions(ctypes.Structure):
    _fields_ = [("struct_size", c_size_t), ("mode", c_int), ("offset", ctypes.c_uint64),
                ("threads", c_int), ("durability", c_int), ("dirty_budget", c_int64)]


class OpenOptionsWithCache(ctypes.Structure):
    _fields_ = OpenOptions._fields_ + [("cache_bytes", c_int64)]


class Axis(ctypes.Structure):
    _fields_ = [("kind", c_int), ("start", c_int64), ("stop", c_int64), ("step", c_int64),
                ("indices", c_void_p), ("mask", c_void_p), ("n", c_int64)]


class Selection(ctypes.Structure):
    _fields_ = [("struct_size", c_size_t), ("kind", c_int), ("start", c_void_p),
                ("stop", c_void_p), ("axes", c_void_p), ("n_axes", c_int),
                ("points", c_void_p), ("n_points", c_int64), ("mask", c_void_p),
                ("mask_size", c_size_t)]


class Buffer(ctypes.Structure):
    _fields_ = [("struct_size", c_size_t), ("data", c_void_p), ("size", c_size_t),
                ("ndim", c_int), ("shape", c_void_p), ("strides", c_void_p),
                ("dtype", c_char_p), ("casting", c_int)]


class Library:
    """The shared library at `path`."""

    def __init__(self, path):
        self.lib = ctypes.CDLL(path)
        self.lib.caterva_version.restype = c_char_p
        self.version = self.lib.caterva_version().decode()
        self.has_cache = hasattr(self.lib, "caterva_cache_set_limit")
        shape, buffer, handle = POINTER(c_int64), c_void_p, c_void_p
        for name, arguments in (
                ("create", [c_char_p, POINTER(CreateOptions), POINTER(handle)]),
                ("open", [c_char_p, c_void_p, POINTER(handle)]),
                ("close", [handle]),
                ("read", [handle, shape, shape, buffer, c_size_t]),
                ("read_selection", [handle, POINTER(Selection), POINTER(Buffer)]),
                ("write", [handle, shape, shape, buffer, c_size_t])):
            function = getattr(self.lib, "caterva_" + name)
            function.argtypes = arguments + [POINTER(Error)]
            function.restype = c_int
        self.lib.caterva_discard.argtypes = [c_void_p]

    def check(self, status, error):
        if status:
            raise OSError(f"caterva: {error.message.decode()}")

    def create(self, path, values, chunks, threads, blocks=None):
        """Writes `values` with LZ4 level 5 and shuffle. The library chooses the blocks if `blocks`
        is None."""
        error, handle = Error(), c_void_p()
        ndim = values.ndim
        options = CreateOptions(ndim=ndim, shape=(c_int64 * ndim)(*values.shape),
                                chunk_shape=(c_int32 * ndim)(*chunks),
                                dtype=values.dtype.str.encode(), codec=LZ4,
                                level=5, overwrite=1, threads=threads,
                                durability=DURABLE_NONE)
        if blocks:
            options.block_shape = (c_int32 * ndim)(*blocks)
        options.struct_size = ctypes.sizeof(options)
        options.filters[0] = SHUFFLE
        self.check(self.lib.caterva_create(str(path).encode(), byref(options), byref(handle),
                                           byref(error)), error)
        self.check(self.lib.caterva_write(handle, (c_int64 * ndim)(), options.shape,
                                          values.ctypes.data, values.nbytes, byref(error)),
                   error)
        self.check(self.lib.caterva_close(handle, byref(error)), error)

    def open(self, path, shape, dtype, threads, cache_bytes):
        error, handle = Error(), c_void_p()
        options = (OpenOptionsWithCache(cache_bytes=cache_bytes) if self.has_cache
                   else OpenOptions())
        options.struct_size = ctypes.sizeof(options)
        options.threads = threads
        self.check(self.lib.caterva_open(str(path).encode(), byref(options), byref(handle),
                                         byref(error)), error)
        return Array(self, handle, shape, dtype)


class Array:
    ordered = True  # a mask's items are in C order

    def __init__(self, library, handle, shape, dtype):
        self.library, self.handle = library, handle
        self.dtype, self.bounds = np.dtype(dtype), c_int64 * len(shape)
        self.shape = tuple(shape)
        self.read_box = library.lib.caterva_read
        self.error = Error()
        self.error_pointer = ctypes.pointer(self.error)

    def read(self, start, stop):
        """Returns the box [start, stop) as a new NumPy array."""
        out = np.empty([b - a for a, b in zip(start, stop)], self.dtype)
        status = self.read_box(self.handle, self.bounds(*start), self.bounds(*stop),
                               out.__array_interface__["data"][0], out.nbytes,
                               self.error_pointer)
        if status:
            self.library.check(status, self.error)
        return out

    def read_selection(self, selection, shape):
        """Reads the selection as a new NumPy array of its shape."""
        out = np.empty(shape, self.dtype)
        selection.struct_size = ctypes.sizeof(selection)
        buffer = Buffer(ctypes.sizeof(Buffer), out.__array_interface__["data"][0], out.nbytes)
        status = self.library.lib.caterva_read_selection(
            self.handle, byref(selection), byref(buffer), self.error_pointer)
        if status:
            self.library.check(status, self.error)
        return out

    def read_slices(self, slices):
        """Returns a[slices]: for each axis one slice with start and step, without stop."""
        axes = (Axis * len(slices))(*[Axis(kind=AXIS_SLICE, start=s.start, stop=OMIT,
                                           step=s.step) for s in slices])
        shape = [len(range(s.start, n, s.step)) for s, n in zip(slices, self.shape)]
        return self.read_selection(Selection(kind=SELECT_AXES, axes=ctypes.addressof(axes),
                                             n_axes=len(axes)), shape)

    def read_lists(self, lists):
        """Returns a[np.ix_(*lists)]. The lists are int64 arrays; None selects a whole axis."""
        axes = (Axis * len(lists))()
        shape = list(self.shape)
        for i, indices in enumerate(lists):
            if indices is not None:
                axes[i] = Axis(kind=AXIS_LIST, indices=indices.ctypes.data, n=len(indices))
                shape[i] = len(indices)
        return self.read_selection(Selection(kind=SELECT_AXES, axes=ctypes.addressof(axes),
                                             n_axes=len(axes)), shape)

    def read_points(self, points):
        """Returns a[points[:, 0], points[:, 1], ...]. The points are int64 in C order."""
        return self.read_selection(Selection(kind=SELECT_POINTS, points=points.ctypes.data,
                                             n_points=len(points)), [len(points)])

    def read_mask(self, mask):
        """Returns a[mask]. Counting the selected items is part of the work."""
        return self.read_selection(Selection(kind=SELECT_MASK, mask=mask.ctypes.data,
                                             mask_size=mask.nbytes), [np.count_nonzero(mask)])

    def close(self):
        self.library.lib.caterva_discard(self.handle)

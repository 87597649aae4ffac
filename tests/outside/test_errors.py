"""A call that succeeds leaves the caller's error unchanged. Every function of the installed
header that takes a `caterva_error` is called until it succeeds, with an error that holds a
mark; a function that this program does not call fails the test.

usage: test_errors.py PREFIX [LIBDIR]
       test_errors.py --header FILE --library FILE    one that is not installed"""

import argparse
import ctypes as c
import os
import sys
import tempfile
import unittest
from pathlib import Path

try:
    import numpy as np
    import tool_header
    from tool_handle import Library
except ImportError as missing:
    print(f"skipped: {missing}; it runs in the environment of scripts/bootstrap --test")
    sys.exit(77)

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
from scripted_server import ScriptedServer  # noqa: E402

SHAPE = (10, 6)
api = library = None


def int64s(*values):
    return (c.c_int64 * len(values))(*values)


def call(name, *arguments):
    return library.call(name, *arguments)


def out(name, kind, *arguments):
    return library.out(name, kind, *arguments)


def bytes_of(name, *arguments, kind=c.c_void_p):
    """The result of a function that returns allocated memory and its size."""
    memory, size = kind(), c.c_size_t()
    call(name, *arguments, c.byref(memory), c.byref(size))
    taken = c.string_at(c.cast(memory, c.c_void_p), size.value)
    api.free(memory)
    return taken


def set_allocator():
    """Must be the first call of a process, so it runs in a child, whose exit status counts."""
    libc = c.CDLL(None)
    libc.aligned_alloc.restype, libc.free.argtypes = c.c_void_p, [c.c_void_p]
    child = os.fork()
    if child == 0:
        fields = dict(api.structs["caterva_allocator"]._fields_)
        options = api.new("allocator")
        options.allocate = fields["allocate"](
            lambda context, size, unit: libc.aligned_alloc(c.c_size_t(unit), c.c_size_t(
                -(-size // unit) * unit)))
        options.release = fields["release"](lambda context, memory: libc.free(memory))
        try:
            call("set_allocator", c.byref(options))
        except BaseException as wrong:  # assertions of a child are not reported
            print(f"set_allocator: {wrong}", flush=True)
            os._exit(1)
        os._exit(0)
    library.called.add("set_allocator")
    return os.waitpid(child, 0)[1] == 0


class Errors(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = Path(scratch.name)
        self.items = np.arange(60, dtype="<f4").reshape(SHAPE)
        self.arrays = []

    def tearDown(self):
        for array in self.arrays:
            api.discard(array)

    # ---- arrays --------------------------------------------------------------------------

    def path(self, name):
        return str(self.folder / name).encode()

    def options(self, shape=SHAPE, dtype=b"<f4", **values):
        made = api.new("create_options", ndim=len(shape), dtype=dtype, **values)
        made.shape = int64s(*shape) if shape else None
        made.chunk_shape = (c.c_int32 * max(len(shape), 1))(*[4] * len(shape))
        made.block_shape = (c.c_int32 * max(len(shape), 1))(*[2] * len(shape))
        return made

    def kept(self, array):
        self.arrays.append(array)
        return array

    def closed(self, array):
        self.arrays = [a for a in self.arrays if a is not array]
        call("close", array)

    def create(self, name="mem:", writes=True, **values):
        where = name.encode() if name == "mem:" else self.path(name)
        array = self.kept(out("create", "array", where, c.byref(self.options(**values))))
        if writes:
            self.write(array)
        return array

    def open(self, name, write=False):
        options = api.new("open_options", mode=int(write))
        where = name if isinstance(name, bytes) else self.path(name)
        return self.kept(out("open", "array", where, c.byref(options)))

    def write(self, array):
        call("write", array, int64s(0, 0), int64s(*SHAPE), self.items.ctypes.data,
             self.items.nbytes)

    def memory(self, dtype=None, n=None):
        room = np.zeros(SHAPE if n is None else n, "<f8" if dtype else "<f4")
        buffer = api.new("buffer", data=room.ctypes.data, size=room.nbytes)
        buffer.room = room
        if dtype:
            buffer.dtype, buffer.casting = dtype, api.CASTING_UNSAFE
        return buffer

    # ---- the groups of functions ------------------------------------------------------------

    def test_opening(self):
        for layout, name in ((0, "a.b2nd"), (1, "a.directory")):
            for fill in range(3):
                array = self.create(name, layout=layout, fill=fill, overwrite=1)
                call("commit", array)
                self.write(array)
                call("rollback", array)
                self.closed(array)
            array = self.open(name, write=True)
            self.write(array)
            self.closed(array)
            reader = self.open(name)
            writer = self.open(name, write=True)
            self.write(writer)
            self.closed(writer)
            call("refresh", reader)
            call("refresh", reader)
            self.closed(reader)
            call("compact", self.path(name), None)
            call("seal", self.path(name), None)
            call("delete", self.path(name), None)
        self.kept(out("create_from_memory", "array", b"mem:", c.byref(self.options()),
                      self.items.ctypes.data, self.items.nbytes))
        call("close", None)
        for dtype in (b"<i4", b"[('a', '<f8'), ('b', 'S3')]"):
            api.dtype_free(out("dtype_parse", "dtype", dtype))
        chunk, block = (c.c_int32 * 2)(), (c.c_int32 * 2)()
        call("partition_choose", 2, int64s(1000, 1000), 8, None, None, chunk, block)

    def test_frames(self):
        array = self.create()
        frame = bytes_of("frame_copy", array)
        for copy in (0, 1):
            opened = out("frame_open", "array", frame, len(frame), copy, None)
            self.kept(opened)
        take = api.frame_pieces.argtypes[1](lambda context, piece, size, total: 0)
        call("frame_pieces", array, take, None)
        offset = c.c_uint64()
        for _ in range(2):
            call("frame_append", array, self.path("frames"), api.DURABILITY_NONE,
                 c.byref(offset))

    def test_own_stores(self):
        held = bytearray()
        fields = dict(api.structs["caterva_store"]._fields_)
        store = api.new("store", identity=b"errors")

        def size(context, to, err):
            to[0] = len(held)
            return api.OK

        def read(context, pos, to, n, done, err):
            taken = bytes(held[pos:pos + n])
            c.memmove(to, taken, len(taken))
            done[0] = len(taken)
            return api.OK

        def write(context, pos, source, n, err):
            held.extend(bytes(max(0, pos + n - len(held))))
            held[pos:pos + n] = c.string_at(source, n)
            return api.OK

        def truncate(context, n, err):
            del held[n:]
            held.extend(bytes(n - len(held)))
            return api.OK

        for name, function in (("size", size), ("read", read), ("write", write),
                               ("truncate", truncate), ("sync", lambda context, err: api.OK)):
            setattr(store, name, fields[name](function))
        array = self.kept(out("store_create", "array", c.byref(store), c.byref(self.options())))
        self.write(array)
        self.closed(array)
        array = self.kept(out("store_open", "array", c.byref(store), None))
        call("read_selection", array, None, c.byref(self.memory()))

    def test_descriptions(self):
        for name in ("mem:", "a.b2nd"):
            array = self.create(name)
            call("commit", array)
            api.info_release(out("info_get", "info", array))
            call("chunk_describe", array, 0, c.byref(api.new("chunk_info")))
            call("block_describe", array, 0, 0, c.byref(api.new("block_info")))
            at = api.new("chunk_iter")
            while not at.done:
                call("chunk_next", array, c.byref(at))
            call("measure", array, c.byref(api.new("space")))
            call("cache_describe", array, c.byref(api.new("cache_info")))
        call("cache_describe", None, c.byref(api.new("cache_info")))
        call("cache_set_limit", 64 << 20)

    def test_items(self):
        array = self.create()
        start, stop = int64s(1, 1), int64s(7, 5)
        room = self.memory().room
        for committed in (False, True):
            if committed:
                call("commit", array)
            call("read", array, start, stop, room.ctypes.data, room.nbytes)
            call("read_selection", array, None, c.byref(self.memory()))
            call("read_selection", array, None, c.byref(self.memory(b"<f8")))
            call("prefetch", array, start, stop)
        stored, size = (c.c_uint8 * 4096)(), c.c_size_t()
        call("chunk_read_stored", array, 0, stored, 4096, c.byref(size))
        call("chunk_write_stored", array, 0, stored, size.value)
        call("chunk_write_undecoded", array, 0, stored, size.value)
        call("write_selection", array, None, c.byref(self.memory()))
        call("write_selection", array, None, c.byref(self.memory(b"<f8")))
        selection = api.new("selection", start=start, stop=stop)
        shape, ndim = (c.c_int64 * 16)(), c.c_int()
        call("selection_shape", array, c.byref(selection), c.byref(ndim), shape)
        call("buffer_convert", c.byref(self.memory(b"<f8", 4)), 4, c.byref(self.memory(b"<i8", 4)),
             None)
        request = out("read_async", "request", array, None, c.byref(self.memory()), None)
        call("request_wait", request)
        api.request_release(request)
        skip = api.new("skip_options")
        skip.on_damage = dict(skip._fields_)["on_damage"](lambda context, damage: None)
        call("read_skipping", array, None, c.byref(self.memory()), c.byref(skip))

    def test_numbers(self):
        array = self.create()
        view = out("view_of", "view", array)
        for of, prefix in ((array, ""), (view, "view_")):
            call(prefix + "statistics", of, None, c.byref(api.new("stats")))
            call(prefix + "histogram", of, (c.c_double * 2)(0, 60), 3, None, int64s(0, 0, 0))
            for what in range(4):
                call(prefix + "reduce", of, what, None, (c.c_double * 1)(), 8)
                options = api.new("reduce_options", axes=(c.c_int * 1)(0), n_axes=1)
                call(prefix + "reduce", of, what, c.byref(options), (c.c_double * 6)(), 48)
        api.view_free(view)

    def test_sizes(self):
        for name in ("mem:", "a.b2nd"):
            array = self.create(name)
            rows = self.memory(n=(4, 6))
            for buffer in (None, c.byref(rows)):
                call("insert", array, 0, 4, 4, buffer)
                call("insert", array, 0, 1, 4, buffer)
            call("append", array, 0, 4, c.byref(rows))
            call("remove", array, 0, 4, 8)
            call("remove", array, 0, 1, 3)
            call("resize", array, int64s(33, 5))
            call("commit", array)

    # ---- copies and views -------------------------------------------------------------------

    def test_copies(self):
        for dims in (None, (b"y", b"x")):
            source = self.create()
            if dims:
                call("dims_set", source, (c.c_char_p * 2)(*dims))
            call("commit", source)
            for codec in (0, api.CODEC_BLOSCLZ):
                made = api.new("create_options", overwrite=1, codec=codec)
                options = api.new("copy_options", create=c.pointer(made))
                for name in ("mem:", "copy.b2nd"):
                    where = name.encode() if name == "mem:" else self.path(name)
                    self.closed(out("copy", "array", source, where, c.byref(options)))
            for view in self.views(source):
                for name in ("mem:", "view.b2nd"):
                    made = api.new("create_options", overwrite=1)
                    options = api.new("copy_options", create=c.pointer(made))
                    where = name.encode() if name == "mem:" else self.path(name)
                    self.closed(out("view_copy", "array", view, where, c.byref(options)))

    def test_zarr(self):
        self.closed(self.create("z.b2nd"))
        array = self.open("z.b2nd")
        bytes_of("zarr_metadata", array, kind=c.POINTER(c.c_char))
        bytes_of("zarr_chunk", array, int64s(0, 0))

    def views(self, array):
        whole = out("view_of", "view", array)
        axes = (api.structs["caterva_axis"] * 2)()
        for axis, (start, stop, step) in zip(axes, ((0, 8, 2), (1, 6, 1))):
            axis.kind, axis.start, axis.stop, axis.step = api.AXIS_SLICE, start, stop, step
        several = (type(whole) * 2)(whole, whole)
        views = [
            whole,
            out("view_select", "view", whole, axes, 2),
            out("view_transpose", "view", whole, None),
            out("view_expand", "view", whole, 0),
            out("view_concat", "view", several, 2, 0),
            out("view_stack", "view", several, 2, 0),
        ]
        views.append(out("view_squeeze", "view", views[3], 0))
        self.joined = views[4:6]
        for view in views:
            self.addCleanup(api.view_free, view)
        return views

    def test_views(self):
        array = self.create()
        for view in self.views(array):
            room = self.memory(n=2 * 60)
            call("view_read", view, None, c.byref(room))
            request = out("view_read_async", "request", view, None, c.byref(room), None)
            call("request_wait", request)
            api.request_release(request)
            if not any(view is joined for joined in self.joined):
                call("view_write", view, None, c.byref(room))

    # ---- what stands beside items -----------------------------------------------------------

    def test_attributes(self):
        for name in ("mem:", "a.b2nd"):
            array = self.create(name)
            if name == "mem:":
                content = c.create_string_buffer(b"content")
                layer = api.structs["caterva_metalayer"](name=b"mine", size=7)
                layer.content = c.cast(content, c.c_void_p)
                array = self.create(name, metalayers=c.pointer(layer), n_metalayers=1)
                call("metalayer_update", array, b"mine", b"CONTENT", 7)
            for value in (b"\x01", b"\x01" * 5000, b""):
                call("attr_set", array, b"name", value, len(value))
                self.assertEqual(bytes_of("attr_get", array, b"name"), value)
            size = c.c_int64()
            call("attr_read", array, b"name", 0, None, 0, c.byref(size))
            call("attr_delete", array, b"name")
            names = c.POINTER(c.c_char_p)()
            for given in (None, (c.c_char_p * 2)(b"y", None)):
                call("dims_set", array, given)
            call("dims_get", array, c.byref(names))
            api.free(names)
            call("commit", array)

    def test_values(self):
        for packed in (b"\xc0", b"\x93\x01\xcb\x40\x04\0\0\0\0\0\0\xa1x", b"\x81\xa1a\x91\xc3"):
            at = c.c_size_t(0)
            call("value_next", packed, len(packed), c.byref(at), c.byref(api.new("value")))
        value = api.new("value", kind=api.VALUE_REAL, real=2.5)
        bytes_of("value_pack", c.byref(value), 1)

    def test_repairs(self):
        self.closed(self.create("a.b2nd"))
        array = self.open("a.b2nd")
        for quick in (0, 1):
            call("verify", array, c.byref(api.new("verify_options", quick=quick)),
                 c.byref(api.new("verify_result")))
        self.closed(array)
        call("repair", self.path("a.b2nd"), None, c.byref(api.new("repair_result")))
        damaged = bytearray((self.folder / "a.b2nd").read_bytes())
        damaged[4:8] = b"\xff" * 4
        (self.folder / "a.b2nd").write_bytes(damaged)
        call("repair", self.path("a.b2nd"), None, c.byref(api.new("repair_result")))

    def test_other_writers(self):
        """A commit adds missing checksums to chunks, and skips a damaged chunk."""
        array = self.create("a.b2nd")
        call("commit", array)
        chunk = api.new("chunk_info")
        call("chunk_describe", array, 0, c.byref(chunk))
        self.closed(array)
        frame = bytearray((self.folder / "a.b2nd").read_bytes())
        frame[-17:] = bytes(17) # the seal's fingerprint
        frame[chunk.position:chunk.position + 4] = b"\xff" * 4
        (self.folder / "a.b2nd").write_bytes(frame)
        array = self.open("a.b2nd", write=True)
        call("attr_set", array, b"name", b"\x01", 1)
        call("commit", array)
        self.closed(array)
        call("seal", self.path("a.b2nd"), None)

    # ---- many arrays, many writers, far away ----------------------------------------------------

    def test_jobs(self):
        for fill in (0, 1):
            array = self.create("a.b2nd", writes=False, fill=fill, overwrite=1)
            job = bytes_of("job_begin", array, None)
            call("commit", array)
            jobs = out("jobs_list", "job_list", self.path("a.b2nd"), None)
            api.job_list_release(jobs)
            part = out("part_open", "array", self.path("a.b2nd"), job, len(job), None)
            self.write(part)
            token = bytes_of("part_finish", part)
            tokens = (c.c_void_p * 1)(c.cast(c.c_char_p(token), c.c_void_p))
            call("merge", array, tokens, (c.c_size_t * 1)(len(token)), 1, None,
                 c.byref(api.new("merge_result")))
            job = bytes_of("job_begin", array, None)
            call("job_delete", self.path("a.b2nd"), job, len(job), None)
            self.closed(array)

    def test_trees(self):
        tree = out("tree_create", "tree", self.path("a.b2d"), None)
        for key in (b"/x", b"/g/y", b"/g/z"):
            self.closed(out("tree_create_array", "array", tree, key, c.byref(self.options())))
        call("tree_create_group", tree, b"/h")
        for group in (b"/", b"/g", b"/h", b"/new"):
            call("tree_attr_set", tree, group, b"name", b"\x01", 1)
            self.assertEqual(bytes_of("tree_attr_get", tree, group, b"name"), b"\x01")
            call("tree_attr_set", tree, group, b"other", b"\x02", 1)
            names, n = c.POINTER(c.c_char_p)(), c.c_size_t()
            call("tree_attr_list", tree, group, c.byref(names), c.byref(n))
            api.free(names)
            call("tree_attr_delete", tree, group, b"name")
        call("tree_move", tree, b"/g/y", b"/h/y")
        call("tree_delete", tree, b"/g/z")
        call("tree_commit", tree)
        call("tree_state_id", tree, (c.c_uint8 * 16)())
        call("tree_delete", tree, b"/x")
        call("tree_rollback", tree)
        call("tree_pack", tree, self.path("a.b2z"), None)
        call("tree_close", tree)
        for name in ("a.b2d", "a.b2z"):
            tree = out("tree_open", "tree", self.path(name), None)
            for group in (None, b"/h"):
                api.tree_list_release(out("tree_get_list", "tree_list", tree, group))
            names, n = c.POINTER(c.c_char_p)(), c.c_size_t()
            for group in (b"/", b"/g"):
                call("tree_attr_list", tree, group, c.byref(names), c.byref(n))
                api.free(names)
            self.closed(out("tree_open_array", "array", tree, b"/h/y", None))
            bytes_of("tree_zarr_metadata", tree, b"/h", kind=c.POINTER(c.c_char))
            call("tree_verify", tree, None, None, c.byref(api.new("tree_verify_result")))
            if name == "a.b2z":
                call("tree_unpack", tree, self.path("b.b2d"), None)
            call("tree_close", tree)
            options = api.new("tree_repair_options", output=self.path("repaired-" + name))
            call("tree_repair", self.path(name), c.byref(options),
                 c.byref(api.new("tree_repair_result")))

    def test_publishing(self):
        self.closed(self.create("a.b2nd"))
        server = ScriptedServer()
        self.addCleanup(server.close)
        url = server.url("/a.b2nd").encode()
        call("publish", self.path("a.b2nd"), url, None, c.byref(api.new("publish_result")))
        options = api.new("publish_options", replace=1)
        call("publish", self.path("a.b2nd"), url, c.byref(options), None)
        array = self.open(url)
        call("read_selection", array, None, c.byref(self.memory()))
        call("refresh", array)
        call("transfers_get", array, c.byref(api.new("transfers")))


def takes_error(name):
    kinds = getattr(api, name.removeprefix("caterva_")).argtypes
    return bool(kinds) and kinds[-1] is c.POINTER(api.structs["caterva_error"])


def main():
    global api, library
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("prefix", nargs="?")
    parser.add_argument("libdir", nargs="?", default="lib")
    parser.add_argument("--header", type=Path)
    parser.add_argument("--library", type=Path)
    given = parser.parse_args()
    api = tool_header.Api(given.header, given.library) if given.header else \
        tool_header.load(given.prefix, given.libdir)
    library = Library(api)
    good = set_allocator()
    good = unittest.main(argv=sys.argv[:1], exit=False).result.wasSuccessful() and good
    names = {name.removeprefix("caterva_") for name in api.functions if takes_error(name)}
    left_out = sorted(names - library.called)
    print(f"{len(names)} functions take an error; not called: {', '.join(left_out) or 'none'}")
    sys.exit(not good or len(names) < 99 or bool(left_out))


if __name__ == "__main__":
    main()

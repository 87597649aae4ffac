/* Verifies arrays, reads damaged ones, makes and appends frames, returns cache counts. */
#include "array.h"
#include "damages.h"
#include "functions.h"
#include "options.h"
#include "transfer.h"

#include <caterva_store.h>
#include <caterva_upkeep.h>
#include <stdlib.h>

typedef struct verifying {
    damages found;
} verifying;

static void on_damage(void *context, const caterva_damage *damage)
{
    damages_add(&((verifying *)context)->found, damage);
}

/* (quick, progress) to (checked, damaged, unverified, [damages]) */
static PyObject *verify(PyObject *object, PyObject *args)
{
    array_object *self = (array_object *)object;
    int quick;
    PyObject *progress;
    caterva_verify_options options = CATERVA_VERIFY_INIT;
    caterva_verify_result r = CATERVA_VERIFY_RESULT_INIT;
    call c;
    if (!PyArg_ParseTuple(args, "pO", &quick, &progress) || array_enter(self) < 0)
        return NULL;
    options.quick = quick;
    verifying v = {0};
    options.on_damage = on_damage;
    options.context = &v;
    options.progress = call_progress(&c);
    call_begin(&c, self, progress);
    c.reporter = &c;
    caterva_status status = caterva_verify(self->handle, &options, &r, &c.err);
    int result = call_end(self->state, &c, status);
    array_leave(self);
    PyObject *list = damages_take(&v.found, self->ndim);
    if (result == 0 && list)
        return Py_BuildValue("LLLN", (long long)r.checked_chunks, (long long)r.damaged_chunks,
                             (long long)r.unverified_chunks, list);
    Py_XDECREF(list);
    return NULL;
}

/* ---- Reading damaged arrays ------------------------------------------------------------ */

/* (start, stop, array, fill bytes or None) to [damages] */
static PyObject *read_skipping(PyObject *object, PyObject *args)
{
    array_object *self = (array_object *)object;
    PyObject *from, *to, *array, *fill;
    int64_t start[CATERVA_MAX_DIMS], stop[CATERVA_MAX_DIMS];
    if (!PyArg_ParseTuple(args, "OOO!O", &from, &to, &PyArray_Type, &array, &fill))
        return NULL;
    int n = parse_int64s(from, "start", start),
        m = n < 0 ? -1 : parse_int64s(to, "stop", stop);
    PyArrayObject *out = (PyArrayObject *)array;
    if (m < 0) return NULL;
    if (n != self->ndim || m != self->ndim || !PyArray_ISWRITEABLE(out) ||
        PyArray_NDIM(out) != n || PyArray_ITEMSIZE(out) != self->item_size) {
        PyErr_SetString(PyExc_TypeError, "expected a box of the array and memory for its items");
        return NULL;
    }
    damages found = {.list = NULL};
    caterva_skip_options options = CATERVA_SKIP_INIT;
    transfer t;
    call c;
    if (fill != Py_None && !(options.fill = PyBytes_AsString(fill))) return NULL;
    if (fill != Py_None && PyBytes_Size(fill) != self->item_size)
        return PyErr_Format(PyExc_ValueError, "the fill must be one item of %d bytes",
                            (int)self->item_size);
    options.on_damage = damages_add;
    options.context = &found;
    buffer_of(out, &t);
    t.selection = (caterva_selection)CATERVA_SELECTION_INIT;
    t.selection.start = start;
    t.selection.stop = stop;
    if (array_enter(self) < 0) return NULL;
    call_begin(&c, self, self->progress);
    caterva_status status =
        caterva_read_skipping(self->handle, &t.selection, &t.buffer, &options, &c.err);
    int result = call_end(self->state, &c, status);
    array_leave(self);
    PyObject *list = damages_take(&found, self->ndim);
    if (result < 0) Py_CLEAR(list);
    return list;
}

/* ---- Frames --------------------------------------------------------------------------- */

static PyObject *to_frame(PyObject *object, PyObject *unused)
{
    (void)unused;
    array_object *self = (array_object *)object;
    void *frame;
    size_t size;
    call c;
    if (array_enter(self) < 0) return NULL;
    call_begin(&c, self, self->progress);
    caterva_status status = caterva_frame_copy(self->handle, &frame, &size, &c.err);
    int result = call_end(self->state, &c, status);
    array_leave(self);
    if (result < 0 && status == CATERVA_OK) caterva_free(frame);
    if (result < 0) return NULL;
    PyObject *bytes = PyBytes_FromStringAndSize(frame, (Py_ssize_t)size);
    caterva_free(frame);
    return bytes;
}

/* (path, durability) to the offset of the frame there */
static PyObject *save_append(PyObject *object, PyObject *args)
{
    array_object *self = (array_object *)object;
    PyObject *place, *path;
    int durability;
    uint64_t offset;
    call c;
    if (!PyArg_ParseTuple(args, "Ui", &place, &durability) || !(path = place_encoded(place)))
        return NULL;
    int result = array_enter(self);
    if (result == 0) {
        call_begin(&c, self, self->progress);
        c.place = place;
        caterva_status status =
            caterva_frame_append(self->handle, PyBytes_AsString(path),
                                 (caterva_durability)durability, &offset, &c.err);
        result = call_end(self->state, &c, status);
        array_leave(self);
    }
    Py_DECREF(path);
    return result < 0 ? NULL : PyLong_FromUnsignedLongLong(offset);
}

static PyObject *cache_counts(PyObject *object, PyObject *unused)
{
    (void)unused;
    array_object *self = (array_object *)object;
    caterva_cache_info n = CATERVA_CACHE_INFO_INIT;
    call c;
    if (array_enter(self) < 0) return NULL;
    call_begin(&c, self, NULL);
    caterva_status status = caterva_cache_describe(self->handle, &n, &c.err);
    int result = call_end(self->state, &c, status);
    array_leave(self);
    if (result < 0) return NULL;
    return cache_counts_dict(&n);
}

PyMethodDef array_upkeep_methods[] = {
    {"_verify", verify, METH_VARARGS, NULL},
    {"_read_skipping", read_skipping, METH_VARARGS, NULL},
    {"to_bytes", to_frame, METH_NOARGS,
     "to_bytes($self)\n--\n\n"
     "Return the array as one contiguous frame, including pending changes.\n\n"
     "Examples\n--------\n"
     ">>> import caterva\n"
     ">>> frame = caterva.full(5, 3).to_bytes()\n"
     ">>> caterva.from_bytes(frame)[:]\n"
     "array([3, 3, 3, 3, 3])\n"},
    {"_save_append", save_append, METH_VARARGS, NULL},
    {"_cache_counts", cache_counts, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

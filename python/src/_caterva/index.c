/* a[key] and a[key] = value. This file handles single items, and boxes with steps, new axes and
 * an ellipsis. Lists, masks and wrong keys go to _indexing.py, which implements all of NumPy's
 * rules and raises NumPy's errors. */
#include "transfer.h"

#include <string.h>

enum { MAX_KEY = 64, ITEM_ROOM = 512, NOT_BASIC = 0, BASIC = 1 };

/* The selection of a basic key. */
typedef struct box {
    int64_t start[CATERVA_MAX_DIMS], count[CATERVA_MAX_DIMS], step[CATERVA_MAX_DIMS];
    bool dropped[CATERVA_MAX_DIMS];
    bool stepped; /* some axis has a step other than 1 */
    bool item;    /* the result is a scalar: an index for every axis */
    int ndim;     /* of the result */
    npy_intp shape[2 * CATERVA_MAX_DIMS + MAX_KEY];
} box;

/* ---- Keys ----------------------------------------------------------------------- */

/* Converts a Python int in [-n, n) to an index in [0, n). Returns -1 for any other int. */
static int64_t index_in(PyObject *number, int64_t n)
{
    int overflow;
    long long i = PyLong_AsLongLongAndOverflow(number, &overflow);
    if (overflow) return -1;
    if (i < 0) i += n;
    return i < n ? i : -1;
}

/* Parses a tuple of an int for each axis (or one int): the most frequent key. Returns false if
 * the key is anything else, or out of bounds. */
static bool parse_item(array_object *self, PyObject *key, int64_t *start)
{
    int ndim = self->ndim;
    if (!PyTuple_CheckExact(key)) {
        if (ndim != 1 || !PyLong_CheckExact(key)) return false;
        start[0] = index_in(key, atomic_load_explicit(&self->shape[0], memory_order_relaxed));
        return start[0] >= 0;
    }
    if (PyTuple_Size(key) != ndim) return false;
    for (int d = 0; d < ndim; d++) {
        PyObject *number = PyTuple_GetItem(key, d);
        if (!PyLong_CheckExact(number)) return false;
        start[d] =
            index_in(number, atomic_load_explicit(&self->shape[d], memory_order_relaxed));
        if (start[d] < 0) return false;
    }
    return true;
}

static bool is_integer(PyObject *object)
{
    return PyLong_CheckExact(object) || PyArray_IsScalar(object, Integer);
}

static int add_index(box *b, int axis, PyObject *object, int64_t length)
{
    PyObject *number = PyNumber_Index(object);
    if (!number) return -1;
    b->start[axis] = index_in(number, length);
    Py_DECREF(number);
    b->count[axis] = b->step[axis] = 1;
    b->dropped[axis] = true;
    return b->start[axis] < 0 ? NOT_BASIC : BASIC;
}

static int add_slice(box *b, int axis, PyObject *slice, int64_t length)
{
    Py_ssize_t start, stop, step;
    if (PySlice_Unpack(slice, &start, &stop, &step) < 0) return -1;
    b->count[axis] = PySlice_AdjustIndices((Py_ssize_t)length, &start, &stop, step);
    b->start[axis] = start;
    b->step[axis] = b->count[axis] > 1 ? step : 1;
    if (b->count[axis] == 0) b->start[axis] = 0;
    b->stepped |= b->step[axis] != 1;
    b->dropped[axis] = false;
    b->shape[b->ndim++] = (npy_intp)b->count[axis];
    return BASIC;
}

static void add_whole(box *b, int axis, int64_t length)
{
    b->start[axis] = 0;
    b->count[axis] = length;
    b->step[axis] = 1;
    b->dropped[axis] = false;
    b->shape[b->ndim++] = (npy_intp)length;
}

/* Returns the number of axes that the key names, or -1 if a part of the key is not basic. */
static int count_axes(PyObject *const *parts, int n, bool *ellipsis)
{
    int axes = 0;
    *ellipsis = false;
    for (int i = 0; i < n; i++) {
        if (parts[i] == Py_Ellipsis) {
            if (*ellipsis) return -1;
            *ellipsis = true;
        } else if (is_integer(parts[i]) || PySlice_Check(parts[i])) {
            axes++;
        } else if (parts[i] != Py_None) {
            return -1;
        }
    }
    return axes;
}

static int parse_parts(array_object *self, PyObject *const *parts, int n, box *b)
{
    bool ellipsis;
    int named = count_axes(parts, n, &ellipsis), axis = 0;
    int whole = self->ndim - named;
    if (named < 0 || whole < 0) return NOT_BASIC;
    for (int i = 0; i < n; i++) {
        int64_t length = axis < self->ndim ? self->shape[axis] : 0;
        int kind = BASIC;
        if (parts[i] == Py_None)
            b->shape[b->ndim++] = 1;
        else if (parts[i] == Py_Ellipsis)
            for (; whole > 0; whole--, axis++) add_whole(b, axis, self->shape[axis]);
        else if (PySlice_Check(parts[i]))
            kind = add_slice(b, axis++, parts[i], length);
        else
            kind = add_index(b, axis++, parts[i], length);
        if (kind != BASIC) return kind;
    }
    for (; axis < self->ndim; axis++) add_whole(b, axis, self->shape[axis]);
    b->item = !ellipsis && b->ndim == 0;
    return b->ndim <= 32 ? BASIC : NOT_BASIC;
}

/* Returns BASIC, NOT_BASIC (also for wrong keys), or -1 with an exception. */
static int parse_box(array_object *self, PyObject *key, box *b)
{
    PyObject *parts[MAX_KEY];
    b->ndim = 0;
    b->stepped = false;
    if (!PyTuple_Check(key)) return parse_parts(self, &key, 1, b);
    Py_ssize_t n = PyTuple_Size(key);
    if (n > MAX_KEY) return NOT_BASIC;
    for (Py_ssize_t i = 0; i < n; i++) parts[i] = PyTuple_GetItem(key, i);
    return parse_parts(self, parts, (int)n, b);
}

/* ---- Boxes ----------------------------------------------------------------------- */

static void stop_of(const array_object *self, const box *b, int64_t *stop)
{
    /* NOLINTNEXTLINE(clang-analyzer-core.UndefinedBinaryOperatorResult): ndim never changes */
    for (int d = 0; d < self->ndim; d++) stop[d] = b->start[d] + b->count[d];
}

/* Makes the selection for a box with steps. It drops no axis: where the key drops one, the buffer
 * has an axis of length 1. */
static void select_box(const array_object *self, const box *b, transfer *t)
{
    for (int d = 0; d < self->ndim; d++) {
        int64_t stop = b->start[d] + b->count[d] * b->step[d];
        t->axes[d] = (caterva_axis){.kind = CATERVA_AXIS_SLICE,
                                    .start = b->start[d],
                                    .stop = stop < 0 ? CATERVA_AXIS_OMIT : stop,
                                    .step = b->step[d]};
    }
    t->selection = (caterva_selection)CATERVA_SELECTION_INIT;
    t->selection.kind = CATERVA_SELECTION_AXES;
    t->selection.axes = t->axes;
    t->selection.n_axes = self->ndim;
}

/* Reads the box into `data`, C order. Call inside the gate. */
static int read_box(array_object *self, const box *b, void *data, size_t size)
{
    call c;
    caterva_status status;
    if (b->stepped) {
        transfer t;
        select_box(self, b, &t);
        t.buffer = (caterva_buffer)CATERVA_BUFFER_INIT;
        t.buffer.data = data;
        t.buffer.size = size;
        call_begin(&c, self, self->progress);
        status = caterva_read_selection(self->handle, &t.selection, &t.buffer, &c.err);
    } else {
        int64_t stop[CATERVA_MAX_DIMS];
        stop_of(self, b, stop);
        call_begin(&c, self, self->progress);
        status = caterva_read(self->handle, b->start, stop, data, size, &c.err);
    }
    return call_end(self->state, &c, status);
}

/* ---- Reading --------------------------------------------------------------------- */

/* Reads one item as a NumPy scalar. Call inside the gate. */
static PyObject *read_item(array_object *self, const int64_t *start)
{
    _Alignas(16) char room[ITEM_ROOM];
    size_t size = (size_t)self->item_size;
    char *item = size <= sizeof room ? room : PyMem_Malloc(size);
    if (!item) return PyErr_NoMemory();
    int64_t stop[CATERVA_MAX_DIMS];
    /* NOLINTNEXTLINE(clang-analyzer-core.UndefinedBinaryOperatorResult): ndim never changes */
    for (int d = 0; d < self->ndim; d++) stop[d] = start[d] + 1;
    call c;
    call_begin(&c, self, self->progress);
    caterva_status status = caterva_read(self->handle, start, stop, item, size, &c.err);
    PyObject *scalar = NULL;
    if (call_end(self->state, &c, status) == 0)
        scalar = PyArray_Scalar(item, self->descr, NULL);
    if (item != room) PyMem_Free(item);
    return scalar;
}

static PyObject *new_array(array_object *self, int ndim, const npy_intp *shape)
{
    Py_INCREF((PyObject *)self->descr);
    return PyArray_NewFromDescr(&PyArray_Type, self->descr, ndim, shape, NULL, NULL, 0, NULL);
}

static PyObject *read_array(array_object *self, const box *b)
{
    PyArrayObject *array = (PyArrayObject *)new_array(self, b->ndim, b->shape);
    if (!array) return NULL;
    size_t size = (size_t)PyArray_NBYTES(array);
    if (size > 0 && read_box(self, b, PyArray_DATA(array), size) < 0) {
        Py_DECREF(array);
        return NULL;
    }
    return (PyObject *)array;
}

PyObject *array_subscript(PyObject *object, PyObject *key)
{
    array_object *self = (array_object *)object;
    int64_t start[CATERVA_MAX_DIMS];
    PyObject *result = NULL;
    box b;
    if (parse_item(self, key, start)) {
        if (array_enter(self) < 0) return NULL;
        result = read_item(self, start);
        array_leave(self);
        return result;
    }
    int kind = parse_box(self, key, &b);
    if (kind == NOT_BASIC)
        return PyObject_CallFunctionObjArgs(self->state->read_fancy, object, key, NULL);
    if (kind < 0 || array_enter(self) < 0) return NULL;
    result = b.item ? read_item(self, b.start) : read_array(self, &b);
    array_leave(self);
    return result;
}

/* True if `value` has the shape and dtype of a box. */
static bool fits(const array_object *self, const box *b, PyObject *value)
{
    PyArrayObject *array = (PyArrayObject *)value;
    if (!PyArray_Check(value) || PyArray_NDIM(array) != b->ndim) return false;
    for (int d = 0; d < b->ndim; d++)
        if (PyArray_DIM(array, d) != b->shape[d]) return false;
    return PyArray_DESCR(array) == self->descr ||
           PyArray_EquivTypes(PyArray_DESCR(array), self->descr);
}

/* (key, out) to bool: reads the items into `out` if `key` is basic and `out` has the result's shape
 * and dtype. Otherwise returns False; the caller then handles the key or raises. */
static PyObject *read_basic(PyObject *object, PyObject *args)
{
    array_object *self = (array_object *)object;
    PyObject *key, *out;
    box b;
    if (!PyArg_ParseTuple(args, "OO", &key, &out)) return NULL;
    int kind = parse_box(self, key, &b);
    if (kind < 0) return NULL;
    if (kind == NOT_BASIC || !fits(self, &b, out) || !PyArray_ISCARRAY((PyArrayObject *)out))
        Py_RETURN_FALSE;
    if (array_enter(self) < 0) return NULL;
    size_t size = (size_t)PyArray_NBYTES((PyArrayObject *)out);
    int result = size > 0 ? read_box(self, &b, PyArray_DATA((PyArrayObject *)out), size) : 0;
    array_leave(self);
    if (result < 0) return NULL;
    Py_RETURN_TRUE;
}

PyMethodDef array_index_methods[] = {
    {"_read_basic", read_basic, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

/* ---- Writing --------------------------------------------------------------------- */

/* Returns the value as an array from which the box can be written: a new reference. */
static PyArrayObject *source_of(array_object *self, const box *b, PyObject *value)
{
    if (fits(self, b, value)) {
        Py_INCREF(value);
        return (PyArrayObject *)value;
    }
    PyObject *shape = PyTuple_New(b->ndim);
    for (int d = 0; shape && d < b->ndim; d++) {
        PyObject *n = PyLong_FromSsize_t(b->shape[d]);
        if (!n || PyTuple_SetItem(shape, d, n) < 0) Py_CLEAR(shape);
    }
    if (!shape) return NULL;
    PyObject *source =
        PyObject_CallFunctionObjArgs(self->state->as_source, value, (PyObject *)self->descr,
                                     shape, b->item ? Py_True : Py_False, NULL);
    Py_DECREF(shape);
    return (PyArrayObject *)source;
}

/* Changes the buffer's axes from those of the result to those of the array: adds dropped axes and
 * removes new ones, all of length 1. */
static void align_buffer(const array_object *self, const box *b, transfer *t)
{
    int64_t shape[CATERVA_MAX_DIMS], strides[CATERVA_MAX_DIMS];
    int from = b->ndim - 1;
    for (int d = self->ndim - 1; d >= 0; d--) {
        shape[d] = b->count[d];
        strides[d] = 0;
        if (b->dropped[d]) continue;
        while (from >= 0 && b->shape[from] == 1 && b->count[d] != 1) from--;
        if (from >= 0 && b->count[d] != 1) strides[d] = t->strides[from--];
    }
    memcpy(t->shape, shape, (size_t)self->ndim * sizeof shape[0]);
    memcpy(t->strides, strides, (size_t)self->ndim * sizeof strides[0]);
    t->buffer.ndim = self->ndim;
}

/* Writes a box that is not empty. Call inside the gate. */
static int write_box(array_object *self, const box *b, PyArrayObject *source)
{
    call c;
    caterva_status status;
    if (!b->stepped && PyArray_IS_C_CONTIGUOUS(source)) {
        int64_t stop[CATERVA_MAX_DIMS];
        stop_of(self, b, stop);
        size_t size = (size_t)PyArray_NBYTES(source);
        call_begin(&c, self, self->progress);
        status =
            caterva_write(self->handle, b->start, stop, PyArray_DATA(source), size, &c.err);
    } else {
        transfer t;
        buffer_of(source, &t);
        align_buffer(self, b, &t);
        select_box(self, b, &t);
        call_begin(&c, self, self->progress);
        status = caterva_write_selection(self->handle, &t.selection, &t.buffer, &c.err);
    }
    return call_end(self->state, &c, status);
}

static int check_writable(const array_object *self)
{
    static const caterva_error error = {
        .code = CATERVA_EREADONLY,
        .position = -1,
        .message = "assignment destination is read-only: open the array with mode \"r+\"",
    };
    return self->writable ? 0 : raise_error(self->state, &error, self->place);
}

static int write_otherwise(array_object *self, PyObject *key, PyObject *value)
{
    PyObject *done = PyObject_CallFunctionObjArgs(self->state->write_fancy, (PyObject *)self,
                                                  key, value, NULL);
    Py_XDECREF(done);
    return done ? 0 : -1;
}

int array_assign(PyObject *object, PyObject *key, PyObject *value)
{
    array_object *self = (array_object *)object;
    box b;
    if (!value) {
        PyErr_SetString(PyExc_ValueError, "cannot delete array elements");
        return -1;
    }
    if (check_writable(self) < 0) return -1;
    int kind = parse_box(self, key, &b), result = -1;
    if (kind < 0) return -1;
    if (kind == NOT_BASIC || b.ndim > CATERVA_MAX_DIMS)
        return write_otherwise(self, key, value);
    PyArrayObject *source = source_of(self, &b, value);
    if (!source) return -1;
    if (array_enter(self) == 0) {
        result = PyArray_SIZE(source) > 0 ? write_box(self, &b, source) : 0;
        array_leave(self);
    }
    Py_DECREF(source);
    return result;
}

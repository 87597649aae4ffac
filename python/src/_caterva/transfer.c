/* Moves items between an array and NumPy arrays. The Python side has checked the user's arguments;
 * this file checks what memory safety requires. */
#include "transfer.h"

#include "options.h"

#include <string.h>

/* ---- Selections -------------------------------------------------------------- */

static int list_parse(PyArrayObject *list, caterva_axis *out)
{
    int type = PyArray_TYPE(list);
    bool mask = type == NPY_BOOL;
    if (PyArray_NDIM(list) != 1 || !PyArray_ISCARRAY_RO(list) ||
        (!mask && (!PyTypeNum_ISSIGNED(type) || PyArray_ITEMSIZE(list) != 8))) {
        PyErr_SetString(PyExc_TypeError, "a list of indices must be contiguous int64 or bool");
        return -1;
    }
    out->kind = mask ? CATERVA_AXIS_MASK : CATERVA_AXIS_LIST;
    out->n = (int64_t)PyArray_SIZE(list);
    if (mask)
        out->mask = PyArray_DATA(list);
    else
        out->indices = PyArray_DATA(list);
    return 0;
}

static int slice_parse(PyObject *slice, caterva_axis *out)
{
    Py_ssize_t start, stop, step;
    if (PySlice_Unpack(slice, &start, &stop, &step) < 0) return -1;
    bool from_end = step < 0 && start == PY_SSIZE_T_MAX;
    bool to_begin = step < 0 && stop == PY_SSIZE_T_MIN;
    out->kind = CATERVA_AXIS_SLICE;
    out->start = from_end ? CATERVA_AXIS_OMIT : start;
    out->stop = to_begin ? CATERVA_AXIS_OMIT : stop;
    out->step = step;
    return 0;
}

int axis_parse(PyObject *object, caterva_axis *out)
{
    *out = (caterva_axis){.kind = CATERVA_AXIS_INDEX};
    if (PySlice_Check(object)) return slice_parse(object, out);
    if (PyArray_Check(object)) return list_parse((PyArrayObject *)object, out);
    out->start = PyLong_AsLongLong(object);
    return out->start == -1 && PyErr_Occurred() ? -1 : 0;
}

int axes_parse(PyObject *tuple, transfer *out)
{
    out->selection = (caterva_selection)CATERVA_SELECTION_INIT;
    Py_ssize_t n = PyTuple_Size(tuple);
    if (n < 0) return -1;
    if (n > CATERVA_MAX_DIMS) {
        PyErr_Format(PyExc_IndexError, "%zd axes", n);
        return -1;
    }
    for (Py_ssize_t i = 0; i < n; i++)
        if (axis_parse(PyTuple_GetItem(tuple, i), &out->axes[i]) < 0) return -1;
    out->selection.kind = CATERVA_SELECTION_AXES;
    out->selection.axes = out->axes;
    out->selection.n_axes = (int)n;
    return 0;
}

static int parse_points(PyObject *object, transfer *out)
{
    PyArrayObject *points = (PyArrayObject *)object;
    if (!PyArray_Check(object) || PyArray_NDIM(points) != 2 || !PyArray_ISCARRAY_RO(points) ||
        !PyTypeNum_ISSIGNED(PyArray_TYPE(points)) || PyArray_ITEMSIZE(points) != 8) {
        PyErr_SetString(PyExc_TypeError, "points must be rows of int64");
        return -1;
    }
    out->selection.kind = CATERVA_SELECTION_POINTS;
    out->selection.points = PyArray_DATA(points);
    out->selection.n_points = (int64_t)PyArray_DIM(points, 0);
    return 0;
}

int mask_parse(PyObject *object, transfer *out)
{
    out->selection = (caterva_selection)CATERVA_SELECTION_INIT;
    PyArrayObject *mask = (PyArrayObject *)object;
    if (!PyArray_Check(object) || !PyArray_ISCARRAY_RO(mask) || PyArray_TYPE(mask) != NPY_BOOL) {
        PyErr_SetString(PyExc_TypeError, "a mask must be a contiguous array of bool");
        return -1;
    }
    out->selection.kind = CATERVA_SELECTION_MASK;
    out->selection.mask = PyArray_DATA(mask);
    out->selection.mask_size = (size_t)PyArray_SIZE(mask);
    return 0;
}

/* ---- Buffers ------------------------------------------------------------------- */

/* Returns the bytes from the beginning of the first item in memory to the end of the last. */
static size_t extent_of(PyArrayObject *array)
{
    size_t extent = (size_t)PyArray_ITEMSIZE(array);
    if (PyArray_SIZE(array) == 0) return 0;
    for (int d = 0; d < PyArray_NDIM(array); d++) {
        npy_intp stride = PyArray_STRIDE(array, d);
        extent += (size_t)(PyArray_DIM(array, d) - 1) * (size_t)(stride < 0 ? -stride : stride);
    }
    return extent;
}

void buffer_of(PyArrayObject *array, transfer *out)
{
    int ndim = PyArray_NDIM(array);
    for (int d = 0; d < ndim; d++) {
        out->shape[d] = PyArray_DIM(array, d);
        out->strides[d] = PyArray_STRIDE(array, d);
    }
    out->buffer = (caterva_buffer)CATERVA_BUFFER_INIT;
    out->buffer.data = PyArray_DATA(array);
    out->buffer.size = extent_of(array);
    out->buffer.ndim = ndim;
    out->buffer.shape = out->shape;
    out->buffer.strides = out->strides;
}

int transfer_parse(PyObject *args, int64_t item_size, transfer *out)
{
    int kind, casting = CATERVA_CASTING_UNSAFE;
    PyObject *what, *array;
    const char *dtype = NULL, *field = NULL;
    if (!PyArg_ParseTuple(args, "iOO|zzi", &kind, &what, &array, &dtype, &field, &casting))
        return -1;
    if (!PyArray_Check(array) || PyArray_NDIM((PyArrayObject *)array) > CATERVA_MAX_DIMS ||
        (!dtype && !field && PyArray_ITEMSIZE((PyArrayObject *)array) != item_size)) {
        PyErr_SetString(PyExc_TypeError, "the memory does not have the array's items");
        return -1;
    }
    buffer_of((PyArrayObject *)array, out);
    out->buffer.dtype = dtype;
    out->buffer.field = field;
    out->buffer.casting = (caterva_casting)casting;
    out->selection = (caterva_selection)CATERVA_SELECTION_INIT;
    return kind == BY_AXES     ? axes_parse(what, out)
           : kind == BY_POINTS ? parse_points(what, out)
                               : mask_parse(what, out);
}

/* ---- Methods ------------------------------------------------------------------- */

static int destination_ok(PyObject *args)
{
    PyObject *array = PyTuple_GetItem(args, 2);
    if (PyArray_FailUnlessWriteable((PyArrayObject *)array, "the destination") < 0) return -1;
    return 0;
}

static PyObject *read_items(PyObject *object, PyObject *args)
{
    array_object *self = (array_object *)object;
    transfer t;
    call c;
    if (array_enter(self) < 0) return NULL;
    int result = transfer_parse(args, self->item_size, &t);
    if (result == 0) result = destination_ok(args);
    if (result == 0) {
        call_begin(&c, self, self->progress);
        caterva_status status =
            caterva_read_selection(self->handle, &t.selection, &t.buffer, &c.err);
        result = call_end(self->state, &c, status);
    }
    array_leave(self);
    if (result < 0) return NULL;
    Py_RETURN_NONE;
}

static PyObject *write_items(PyObject *object, PyObject *args)
{
    array_object *self = (array_object *)object;
    transfer t;
    call c;
    if (array_enter(self) < 0) return NULL;
    int result = transfer_parse(args, self->item_size, &t);
    if (result == 0) {
        call_begin(&c, self, self->progress);
        caterva_status status =
            caterva_write_selection(self->handle, &t.selection, &t.buffer, &c.err);
        result = call_end(self->state, &c, status);
    }
    array_leave(self);
    if (result < 0) return NULL;
    Py_RETURN_NONE;
}

/* (start, stop): decodes the box into the cache in the background. */
static PyObject *prefetch(PyObject *object, PyObject *args)
{
    array_object *self = (array_object *)object;
    PyObject *from, *to;
    int64_t start[CATERVA_MAX_DIMS], stop[CATERVA_MAX_DIMS];
    if (!PyArg_ParseTuple(args, "OO", &from, &to)) return NULL;
    int n = parse_int64s(from, "start", start), m = n < 0 ? -1 : parse_int64s(to, "stop", stop);
    if (m < 0) return NULL;
    if (array_enter(self) < 0) return NULL;
    int result = -1;
    if (n != self->ndim || m != self->ndim) {
        PyErr_Format(PyExc_IndexError, "the box has %d axes, the array %d", n, self->ndim);
    } else {
        call c;
        call_begin(&c, self, NULL);
        caterva_status status = caterva_prefetch(self->handle, start, stop, &c.err);
        result = call_end(self->state, &c, status);
    }
    array_leave(self);
    if (result < 0) return NULL;
    Py_RETURN_NONE;
}

PyMethodDef array_transfer_methods[] = {
    {"_read", read_items, METH_VARARGS, NULL},
    {"_write", write_items, METH_VARARGS, NULL},
    {"_prefetch", prefetch, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

/* Changes of shape. */
#include "array.h"
#include "options.h"
#include "transfer.h"

/* Ends a call that has changed the shape, and updates the object's shape. Call inside the gate. */
static int end_change(array_object *self, call *c, caterva_status status)
{
    return array_look(self, call_end(self->state, c, status));
}

static PyObject *resize(PyObject *object, PyObject *args)
{
    array_object *self = (array_object *)object;
    PyObject *sequence;
    int64_t shape[CATERVA_MAX_DIMS];
    call c;
    if (!PyArg_ParseTuple(args, "O", &sequence)) return NULL;
    int n = parse_int64s(sequence, "shape", shape);
    if (n < 0) return NULL;
    if (n != self->ndim)
        return PyErr_Format(PyExc_ValueError, "the shape has %d axes, the array %d", n,
                            self->ndim);
    if (array_enter(self) < 0) return NULL;
    call_begin(&c, self, self->progress);
    int result = end_change(self, &c, caterva_resize(self->handle, shape, &c.err));
    array_leave(self);
    if (result < 0) return NULL;
    Py_RETURN_NONE;
}

/* (axis, at, n, items or None). `at` -1 is the end. The items are an array with the same number
 * of axes and the array's dtype, with any strides. */
static PyObject *insert(PyObject *object, PyObject *args)
{
    array_object *self = (array_object *)object;
    int axis;
    long long at, n;
    PyObject *items;
    call c;
    if (!PyArg_ParseTuple(args, "iLLO", &axis, &at, &n, &items)) return NULL;
    transfer t;
    const caterva_buffer *src = NULL;
    if (items != Py_None) {
        PyArrayObject *array = (PyArrayObject *)items;
        if (!PyArray_Check(items) || PyArray_NDIM(array) != self->ndim ||
            PyArray_ITEMSIZE(array) != self->item_size) {
            PyErr_SetString(PyExc_TypeError, "the memory does not have the array's axes and items");
            return NULL;
        }
        buffer_of(array, &t);
        src = &t.buffer;
    }
    if (array_enter(self) < 0) return NULL;
    call_begin(&c, self, self->progress);
    caterva_status status =
        at < 0 ? caterva_append(self->handle, axis, n, src, &c.err)
               : caterva_insert(self->handle, axis, at, n, src, &c.err);
    int result = end_change(self, &c, status);
    array_leave(self);
    if (result < 0) return NULL;
    Py_RETURN_NONE;
}

static PyObject *remove_items(PyObject *object, PyObject *args)
{
    array_object *self = (array_object *)object;
    int axis;
    long long start, stop;
    call c;
    if (!PyArg_ParseTuple(args, "iLL", &axis, &start, &stop)) return NULL;
    if (array_enter(self) < 0) return NULL;
    call_begin(&c, self, self->progress);
    int result =
        end_change(self, &c, caterva_remove(self->handle, axis, start, stop, &c.err));
    array_leave(self);
    if (result < 0) return NULL;
    Py_RETURN_NONE;
}

PyMethodDef array_shape_methods[] = {
    {"_resize", resize, METH_VARARGS, NULL},
    {"_insert", insert, METH_VARARGS, NULL},
    {"_remove", remove_items, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

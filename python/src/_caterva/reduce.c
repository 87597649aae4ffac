/* Statistics, histograms and reductions along axes. */
#include "array.h"
#include "options.h"
#include "transfer.h"

typedef struct reduction {
    caterva_reduce_options options;
    transfer what; /* its selection; the buffer is not used */
    int axes[CATERVA_MAX_DIMS];
} reduction;

/* A tuple of what is taken of each axis, or a mask. -1 with an exception. */
static int parse_selection(PyObject *what, reduction *out)
{
    out->options = (caterva_reduce_options)CATERVA_REDUCE_INIT;
    int result = PyTuple_Check(what) ? axes_parse(what, &out->what)
                                     : mask_parse(what, &out->what);
    if (result < 0) return -1;
    out->options.selection = &out->what.selection;
    return 0;
}

static void listen(reduction *r, call *c)
{
    r->options.on_progress = call_hook;
    r->options.context = c;
    c->own = true;
}

static PyObject *number_of(const caterva_number *n)
{
    switch (n->kind) {
    case 'i': return PyLong_FromLongLong(n->i);
    case 'u': return PyLong_FromUnsignedLongLong(n->u);
    case 'f': return PyFloat_FromDouble(n->f);
    default: Py_RETURN_NONE;
    }
}

/* (selection, progress) to (items, NaN, minimum, maximum, sum, mean, std) */
static PyObject *statistics(PyObject *object, PyObject *args)
{
    array_object *self = (array_object *)object;
    PyObject *box, *progress;
    reduction r;
    caterva_stats s = CATERVA_STATS_INIT;
    call c;
    if (!PyArg_ParseTuple(args, "OO", &box, &progress) || parse_selection(box, &r) < 0 ||
        array_enter(self) < 0)
        return NULL;
    call_begin(&c, self, progress);
    listen(&r, &c);
    caterva_status status = caterva_statistics(self->handle, &r.options, &s, &c.err);
    int result = call_end(self->state, &c, status);
    array_leave(self);
    if (result < 0) return NULL;
    return Py_BuildValue("LLNNNdd", (long long)s.n_items, (long long)s.n_nan,
                         number_of(&s.min), number_of(&s.max), number_of(&s.sum), s.mean,
                         s.std);
}

/* (selection, low, high, counts: int64 array, progress) */
static PyObject *histogram(PyObject *object, PyObject *args)
{
    array_object *self = (array_object *)object;
    PyObject *box, *counts, *progress;
    double range[2];
    reduction r;
    call c;
    if (!PyArg_ParseTuple(args, "OddO!O", &box, &range[0], &range[1], &PyArray_Type, &counts,
                          &progress) ||
        parse_selection(box, &r) < 0)
        return NULL;
    PyArrayObject *array = (PyArrayObject *)counts;
    if (!PyArray_ISCARRAY(array) || PyArray_ITEMSIZE(array) != 8) {
        PyErr_SetString(PyExc_TypeError, "the counts are contiguous int64");
        return NULL;
    }
    if (array_enter(self) < 0) return NULL;
    call_begin(&c, self, progress);
    listen(&r, &c);
    caterva_status status =
        caterva_histogram(self->handle, &r.options, range, (int64_t)PyArray_SIZE(array),
                          PyArray_DATA(array), &c.err);
    int result = call_end(self->state, &c, status);
    array_leave(self);
    if (result < 0) return NULL;
    Py_RETURN_NONE;
}

/* (what, selection, those that go or None, skip_nan, destination, progress) */
static PyObject *reduce(PyObject *object, PyObject *args)
{
    array_object *self = (array_object *)object;
    PyObject *box, *axes, *destination, *progress;
    int what, skip_nan;
    reduction r;
    call c;
    if (!PyArg_ParseTuple(args, "iOOpO!O", &what, &box, &axes, &skip_nan, &PyArray_Type,
                          &destination, &progress) ||
        parse_selection(box, &r) < 0)
        return NULL;
    if (axes != Py_None) {
        int n = parse_int32s(axes, "axis", r.axes);
        if (n < 0) return NULL;
        r.options.axes = r.axes;
        r.options.n_axes = n;
    }
    PyArrayObject *array = (PyArrayObject *)destination;
    if (!PyArray_IS_C_CONTIGUOUS(array)) {
        PyErr_SetString(PyExc_TypeError, "the destination is contiguous");
        return NULL;
    }
    r.options.skip_nan = skip_nan;
    if (array_enter(self) < 0) return NULL;
    call_begin(&c, self, progress);
    listen(&r, &c);
    caterva_status status =
        caterva_reduce(self->handle, (caterva_reduction)what, &r.options, PyArray_DATA(array),
                       (size_t)PyArray_NBYTES(array), &c.err);
    int result = call_end(self->state, &c, status);
    array_leave(self);
    if (result < 0) return NULL;
    Py_RETURN_NONE;
}

PyMethodDef array_reduce_methods[] = {
    {"_statistics", statistics, METH_VARARGS, NULL},
    {"_histogram", histogram, METH_VARARGS, NULL},
    {"_reduce", reduce, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

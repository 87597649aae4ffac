/* Statistics, histograms and reductions of arrays and views. */
#include "options.h"
#include "transfer.h"
#include "view.h"
#include <caterva_upkeep.h>

typedef struct reduction {
    caterva_reduce_options options;
    transfer what; /* only its selection is used */
    int axes[CATERVA_MAX_DIMS];
} reduction;

/* Parses a tuple with a selection for each axis, or a mask. Returns -1 with an exception. */
static int parse_selection(PyObject *what, reduction *out)
{
    out->options = (caterva_reduce_options)CATERVA_REDUCE_INIT;
    int result =
        PyTuple_Check(what) ? axes_parse(what, &out->what) : mask_parse(what, &out->what);
    if (result < 0) return -1;
    out->options.selection = &out->what.selection;
    return 0;
}

static void listen(reduction *r, call *c)
{
    r->options.progress = call_progress(c);
    c->reporter = c;
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
static PyObject *statistics(const origin *from, PyObject *args)
{
    PyObject *box, *progress;
    reduction r;
    caterva_stats s = CATERVA_STATS_INIT;
    call c;
    if (!PyArg_ParseTuple(args, "OO", &box, &progress) || parse_selection(box, &r) < 0 ||
        origin_enter(from) < 0)
        return NULL;
    call_begin(&c, from->first, progress);
    listen(&r, &c);
    caterva_status status =
        from->view ? caterva_view_statistics(from->view->view, &r.options, &s, &c.err)
                   : caterva_statistics(from->first->handle, &r.options, &s, &c.err);
    int result = call_end(from->first->state, &c, status);
    origin_leave(from);
    if (result < 0) return NULL;
    return Py_BuildValue("LLNNNdd", (long long)s.n_items, (long long)s.n_nan,
                         number_of(&s.min), number_of(&s.max), number_of(&s.sum), s.mean,
                         s.std);
}

/* (selection, low, high, counts: int64 array, progress) */
static PyObject *histogram(const origin *from, PyObject *args)
{
    PyObject *box, *object, *progress;
    double range[2];
    reduction r;
    call c;
    if (!PyArg_ParseTuple(args, "OddO!O", &box, &range[0], &range[1], &PyArray_Type, &object,
                          &progress) ||
        parse_selection(box, &r) < 0)
        return NULL;
    PyArrayObject *array = (PyArrayObject *)object;
    if (!PyArray_ISCARRAY(array) || PyArray_ITEMSIZE(array) != 8) {
        PyErr_SetString(PyExc_TypeError, "the counts must be contiguous int64");
        return NULL;
    }
    int64_t n = (int64_t)PyArray_SIZE(array), *counts = PyArray_DATA(array);
    if (origin_enter(from) < 0) return NULL;
    call_begin(&c, from->first, progress);
    listen(&r, &c);
    caterva_status status =
        from->view
            ? caterva_view_histogram(from->view->view, range, n, &r.options, counts, &c.err)
            : caterva_histogram(from->first->handle, range, n, &r.options, counts, &c.err);
    int result = call_end(from->first->state, &c, status);
    origin_leave(from);
    if (result < 0) return NULL;
    Py_RETURN_NONE;
}

/* Parses (reduction, selection, axes to reduce or None, skip_nan, destination, progress). -1 with
 * an exception. */
static int parse_reduction(PyObject *args, int *what, reduction *r, PyArrayObject **out,
                           PyObject **progress)
{
    PyObject *box, *axes, *destination;
    int skip_nan;
    if (!PyArg_ParseTuple(args, "iOOpO!O", what, &box, &axes, &skip_nan, &PyArray_Type,
                          &destination, progress) ||
        parse_selection(box, r) < 0)
        return -1;
    if (axes != Py_None) {
        int n = parse_int32s(axes, "axis", r->axes);
        if (n < 0) return -1;
        r->options.axes = r->axes;
        r->options.n_axes = n;
    }
    r->options.skip_nan = skip_nan;
    *out = (PyArrayObject *)destination;
    if (PyArray_IS_C_CONTIGUOUS(*out)) return 0;
    PyErr_SetString(PyExc_TypeError, "the destination must be contiguous");
    return -1;
}

static PyObject *reduce(const origin *from, PyObject *args)
{
    PyArrayObject *out;
    PyObject *progress;
    int what;
    reduction r;
    call c;
    if (parse_reduction(args, &what, &r, &out, &progress) < 0 || origin_enter(from) < 0)
        return NULL;
    void *dst = PyArray_DATA(out);
    size_t size = (size_t)PyArray_NBYTES(out);
    call_begin(&c, from->first, progress);
    listen(&r, &c);
    caterva_status status =
        from->view ? caterva_view_reduce(from->view->view, (caterva_reduction)what,
                                         &r.options, dst, size, &c.err)
                   : caterva_reduce(from->first->handle, (caterva_reduction)what, &r.options,
                                    dst, size, &c.err);
    int result = call_end(from->first->state, &c, status);
    origin_leave(from);
    if (result < 0) return NULL;
    Py_RETURN_NONE;
}

/* ---- Methods of arrays and of views ------------------------------------------------ */

typedef PyObject *origin_function(const origin *from, PyObject *args);

static PyObject *of_array(PyObject *self, PyObject *args, origin_function *function)
{
    origin from = origin_array(self);
    return function(&from, args);
}

static PyObject *of_view(PyObject *self, PyObject *args, origin_function *function)
{
    origin from = origin_view(self);
    return function(&from, args);
}

static PyObject *array_statistics(PyObject *self, PyObject *args)
{
    return of_array(self, args, statistics);
}

static PyObject *array_histogram(PyObject *self, PyObject *args)
{
    return of_array(self, args, histogram);
}

static PyObject *array_reduce(PyObject *self, PyObject *args)
{
    return of_array(self, args, reduce);
}

PyObject *view_statistics(PyObject *self, PyObject *args)
{
    return of_view(self, args, statistics);
}

PyObject *view_histogram(PyObject *self, PyObject *args)
{
    return of_view(self, args, histogram);
}

PyObject *view_reduce(PyObject *self, PyObject *args) { return of_view(self, args, reduce); }

PyMethodDef array_reduce_methods[] = {
    {"_statistics", array_statistics, METH_VARARGS, NULL},
    {"_histogram", array_histogram, METH_VARARGS, NULL},
    {"_reduce", array_reduce, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

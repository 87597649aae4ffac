/* The type Request: a read on the library's threads. While the read is in progress, the request
 * keeps itself, the array or view and the memory alive. At the end it calls a Python function,
 * on the thread on which the read ended. */
#include "foreign.h"
#include "functions.h"
#include "transfer.h"
#include "view.h"

typedef struct request_object {
    PyObject_HEAD module_state *state;
    caterva_request *request;
    PyObject *owner, *memory, *callback; /* owner: array or view; all NULL after the read */
    PyObject *place;                     /* of the array, or of the first one of the view */
    bool keeps_itself;
} request_object;

/* Returns the exception for `error`, or None. */
static PyObject *exception_of(request_object *self, const caterva_error *error)
{
    PyObject *kind, *value, *traceback;
    if (!error) Py_RETURN_NONE;
    raise_error(self->state, error, self->place);
    PyErr_Fetch(&kind, &value, &traceback);
    PyErr_NormalizeException(&kind, &value, &traceback);
    Py_XDECREF(kind);
    Py_XDECREF(traceback);
    return value;
}

static void let_go(request_object *self)
{
    Py_CLEAR(self->callback);
    Py_CLEAR(self->memory);
    Py_CLEAR(self->owner);
    Py_CLEAR(self->place);
}

static void on_done(void *context, caterva_status status, const caterva_error *error)
{
    request_object *self = context;
    (void)status;
    foreign gil = foreign_enter();
    if (!gil.is_in) return; /* the interpreter is shutting down: leak the references */
    bool before = handle_reports;
    handle_reports = true;
    self->keeps_itself = false; /* this thread owns the reference now, also if it forks */
    PyObject *exception = exception_of(self, error);
    PyObject *result =
        exception ? PyObject_CallFunctionObjArgs(self->callback, exception, NULL) : NULL;
    if (!result) PyErr_WriteUnraisable(self->callback);
    Py_XDECREF(result);
    Py_XDECREF(exception);
    let_go(self);
    Py_DECREF(self);
    handle_reports = before;
    foreign_leave(gil);
}

static caterva_status read_async(const origin *from, const transfer *t,
                                 const caterva_async_options *options, caterva_request **out,
                                 caterva_error *err)
{
    if (from->view)
        return caterva_view_read_async(from->view->view, &t->selection, &t->buffer, options,
                                       out, err);
    return caterva_read_async(from->first->handle, &t->selection, &t->buffer, options, out,
                              err);
}

/* Begins the read. The request holds a reference to itself until on_done is called. */
static int begin(request_object *self, const origin *from, const transfer *t)
{
    caterva_async_options options = CATERVA_ASYNC_INIT;
    options.on_done = on_done;
    options.context = self;
    Py_INCREF((PyObject *)self);
    self->keeps_itself = true;
    call c;
    call_begin(&c, from->first, NULL);
    caterva_status status = read_async(from, t, &options, &self->request, &c.err);
    if (call_end(self->state, &c, status) == 0) return 0;
    if (status == CATERVA_OK) return -1;
    self->keeps_itself = false;
    Py_DECREF(self);
    return -1;
}

static request_object *new_request(const origin *from, PyObject *callback, PyObject *memory)
{
    PyTypeObject *type = from->first->state->request_type;
    request_object *self = ((request_object * (*)(PyTypeObject *, Py_ssize_t))
                                PyType_GetSlot(type, Py_tp_alloc))(type, 0);
    if (!self) return NULL;
    self->state = from->first->state;
    self->owner = from->view ? (PyObject *)from->view : (PyObject *)from->first;
    Py_INCREF(self->owner);
    Py_XINCREF(self->place = from->first->place);
    Py_INCREF(self->callback = callback);
    Py_INCREF(self->memory = memory);
    return self;
}

/* (callback, kind, what, memory, dtype=None, field=None, casting=unsafe) to a request.
 * callback(exception or None) is called once, from any thread, possibly before this returns. The
 * library uses `memory` until then. */
PyObject *request_begin(const origin *from, PyObject *args)
{
    Py_ssize_t n = PyTuple_Size(args);
    if (interpreter_check("read in the background") < 0) return NULL;
    if (n < 4) return PyErr_Format(PyExc_TypeError, "expected callback, kind, what and memory");
    PyObject *rest = PyTuple_GetSlice(args, 1, n), *memory = PyTuple_GetItem(args, 3);
    request_object *self = rest ? new_request(from, PyTuple_GetItem(args, 0), memory) : NULL;
    transfer t;
    int result = self ? transfer_parse(rest, from->first->item_size, &t) : -1;
    if (result == 0)
        result = PyArray_FailUnlessWriteable((PyArrayObject *)memory, "the destination");
    if (result == 0) result = begin(self, from, &t);
    Py_XDECREF(rest);
    if (result < 0) Py_CLEAR(self);
    return (PyObject *)self;
}

static PyObject *read_begin(PyObject *self, PyObject *args)
{
    origin from = origin_array(self);
    if (origin_enter(&from) < 0) return NULL;
    PyObject *request = request_begin(&from, args);
    origin_leave(&from);
    return request;
}

PyMethodDef array_request_methods[] = {
    {"_read_begin", read_begin, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

/* ---- The type ------------------------------------------------------------------- */

static PyObject *cancel(PyObject *object, PyObject *unused)
{
    (void)unused;
    PyThreadState *thread = PyEval_SaveThread();
    caterva_request_cancel(((request_object *)object)->request);
    PyEval_RestoreThread(thread);
    Py_RETURN_NONE;
}

/* Waits until the read has ended and `callback` has returned. */
static PyObject *wait_for(PyObject *object, PyObject *unused)
{
    (void)unused;
    caterva_error err;
    PyThreadState *thread = PyEval_SaveThread();
    (void)caterva_request_wait(((request_object *)object)->request, &err);
    PyEval_RestoreThread(thread);
    Py_RETURN_NONE;
}

/* For a forked child, where on_done will not be called: releases the references. */
static PyObject *forget(PyObject *object, PyObject *unused)
{
    (void)unused;
    request_object *self = (request_object *)object;
    if (!self->keeps_itself) Py_RETURN_NONE;
    self->keeps_itself = false;
    let_go(self);
    Py_DECREF(self);
    Py_RETURN_NONE;
}

static int traverse(PyObject *object, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(object)); /* the self-reference of a read is not visited */
    (void)arg;
    return 0;
}

static void dealloc(PyObject *object)
{
    request_object *self = (request_object *)object;
    PyTypeObject *type = Py_TYPE(object);
    PyObject_GC_UnTrack(object);
    caterva_request_release(self->request);
    let_go(self);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(object);
    Py_DECREF(type);
}

static PyMethodDef methods[] = {
    {"cancel", cancel, METH_NOARGS, "cancel($self)\n--\n\nStop the read soon."},
    {"wait", wait_for, METH_NOARGS,
     "wait($self)\n--\n\nWait until the read has ended and was reported."},
    {"forget", forget, METH_NOARGS,
     "forget($self)\n--\n\nIn a forked child: release the parent's read."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_dealloc, dealloc},
    {Py_tp_traverse, traverse},
    {Py_tp_methods, methods},
    {Py_tp_doc, "A background read."},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "caterva._caterva.Request",
    .basicsize = sizeof(request_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = slots,
};

int request_add_type(PyObject *module, module_state *state)
{
    PyObject *type = PyType_FromModuleAndSpec(module, &spec, NULL);
    state->request_type = (PyTypeObject *)type;
    return type ? PyModule_AddObjectRef(module, "Request", type) : -1;
}

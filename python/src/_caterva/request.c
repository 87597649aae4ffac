/* The type Request: a read under way on the library's threads. While it is, it keeps
 * itself, the array and the memory alive; at the end it calls a function of Python's, on
 * whatever thread the library is done on. */
#include "transfer.h"

#include "foreign.h"
#include "functions.h"

typedef struct request_object {
    PyObject_HEAD module_state *state;
    caterva_request *request;
    PyObject *array, *memory, *told; /* NULL when it is over */
} request_object;

/* The exception that `error` stands for, or None. */
static PyObject *exception_of(request_object *self, const caterva_error *error)
{
    PyObject *kind, *value, *traceback;
    if (!error) Py_RETURN_NONE;
    raise_error(self->state, error, ((array_object *)self->array)->place);
    PyErr_Fetch(&kind, &value, &traceback);
    PyErr_NormalizeException(&kind, &value, &traceback);
    Py_XDECREF(kind);
    Py_XDECREF(traceback);
    return value;
}

static void let_go(request_object *self)
{
    Py_CLEAR(self->told);
    Py_CLEAR(self->memory);
    Py_CLEAR(self->array);
}

static void on_done(void *context, caterva_status status, const caterva_error *error)
{
    request_object *self = context;
    (void)status;
    foreign gil = foreign_enter();
    bool told_before = handle_tells;
    handle_tells = true;
    PyObject *exception = exception_of(self, error);
    PyObject *result =
        exception ? PyObject_CallFunctionObjArgs(self->told, exception, NULL) : NULL;
    if (!result) PyErr_WriteUnraisable(self->told);
    Py_XDECREF(result);
    Py_XDECREF(exception);
    let_go(self);
    Py_DECREF(self);
    handle_tells = told_before;
    foreign_leave(gil);
}

/* Begins the read, inside the gate; the request keeps itself until on_done. */
static int begin(request_object *self, array_object *array, const transfer *t)
{
    caterva_async_options options = CATERVA_ASYNC_INIT;
    options.on_done = on_done;
    options.context = self;
    Py_INCREF(self);
    call c;
    call_begin(&c, array, NULL);
    caterva_status status = caterva_read_async(array->handle, &t->selection, &t->buffer,
                                               &options, &self->request, &c.err);
    if (call_end(array->state, &c, status) == 0) return 0;
    if (status != CATERVA_OK) Py_DECREF(self);
    return -1;
}

static request_object *new_request(array_object *array, PyObject *told, PyObject *memory)
{
    PyTypeObject *type = array->state->request_type;
    request_object *self = ((request_object * (*)(PyTypeObject *, Py_ssize_t))
                                PyType_GetSlot(type, Py_tp_alloc))(type, 0);
    if (!self) return NULL;
    self->state = array->state;
    Py_INCREF(self->array = (PyObject *)array);
    Py_INCREF(self->told = told);
    Py_INCREF(self->memory = memory);
    return self;
}

/* (told, kind, what, memory, dtype=None, field=None, casting=unsafe) to a request.
 * told(exception or None) is called once, from any thread, maybe before this returns;
 * `memory` is the library's until then. */
static PyObject *read_begin(PyObject *object, PyObject *args)
{
    array_object *array = (array_object *)object;
    Py_ssize_t n = PyTuple_Size(args);
    if (interpreter_check("read in the background") < 0) return NULL;
    if (n < 4) return PyErr_Format(PyExc_TypeError, "told, kind, what and memory are wanted");
    PyObject *rest = PyTuple_GetSlice(args, 1, n), *memory = PyTuple_GetItem(args, 3);
    request_object *self = rest ? new_request(array, PyTuple_GetItem(args, 0), memory) : NULL;
    transfer t;
    int result = -1;
    if (self && array_enter(array) == 0) {
        result = transfer_parse(rest, array->item_size, &t);
        if (result == 0)
            result = PyArray_FailUnlessWriteable((PyArrayObject *)memory, "the destination");
        if (result == 0) result = begin(self, array, &t);
        array_leave(array);
    }
    Py_XDECREF(rest);
    if (result < 0) Py_CLEAR(self);
    return (PyObject *)self;
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

/* Until `told` has returned. */
static PyObject *wait_for(PyObject *object, PyObject *unused)
{
    (void)unused;
    caterva_error err;
    PyThreadState *thread = PyEval_SaveThread();
    (void)caterva_request_wait(((request_object *)object)->request, &err);
    PyEval_RestoreThread(thread);
    Py_RETURN_NONE;
}

static int traverse(PyObject *object, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(object)); /* what is being read has a reference that nobody sees */
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
    {"cancel", cancel, METH_NOARGS, "cancel($self)\n--\n\nHas the read end soon."},
    {"wait", wait_for, METH_NOARGS, "wait($self)\n--\n\nUntil it is over and told."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_dealloc, dealloc},
    {Py_tp_traverse, traverse},
    {Py_tp_methods, methods},
    {Py_tp_doc, "A read that is under way, or over."},
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

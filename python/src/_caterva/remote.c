/* The type Remote: options for URLs, and the texts and functions that they point to. Also the
 * transfer counts of arrays. The type has no tp_clear, because the library may call the functions
 * until the handle is closed. */
#include "remote.h"

#include "array.h"
#include "foreign.h"
#include "functions.h"
#include "options.h"
#include <caterva_remote.h>

typedef struct remote_object {
    PyObject_HEAD caterva_remote_options options; /* points into `words` and `lines` */
    PyObject *given, *words, *lines;
    PyObject *on_headers, *on_request; /* or NULL */
    const char **headers;
} remote_object;

static _Thread_local bool in_callback;

int remote_check_thread(void)
{
    if (!in_callback) return 0;
    PyErr_SetString(PyExc_RuntimeError,
                    "functions for headers and requests of a URL cannot use arrays");
    return -1;
}

/* ---- Calling Python ------------------------------------------------------------ */

static void add_lines(PyObject *lines, void (*add)(void *token, const char *header),
                      void *token)
{
    Py_ssize_t n = lines ? PyTuple_Size(lines) : -1;
    for (Py_ssize_t i = 0; i < n; i++) {
        const char *line = PyUnicode_AsUTF8AndSize(PyTuple_GetItem(lines, i), NULL);
        if (!line) return;
        add(token, line);
    }
}

static void get_headers(void *context, void (*add)(void *token, const char *header),
                        void *token)
{
    remote_object *self = context;
    foreign gil = foreign_enter();
    if (!gil.is_in) {
        add(token, ""); /* an invalid header, so that no request is sent */
        return;
    }
    in_callback = true;
    handle_calls_back++;
    PyObject *lines = PyObject_CallObject(self->on_headers, NULL);
    add_lines(lines, add, token);
    if (PyErr_Occurred()) {
        PyErr_WriteUnraisable(self->on_headers);
        add(token, "");
    }
    Py_XDECREF(lines);
    handle_calls_back--;
    in_callback = false;
    foreign_leave(gil);
}

static PyObject *transfer_of(const caterva_transfer *t)
{
    PyObject *first = Py_None;
    Py_INCREF(first);
    if (t->first != UINT64_MAX) {
        Py_DECREF(first);
        first = PyLong_FromUnsignedLongLong(t->first);
    }
    return Py_BuildValue("((ssNKKdiiiz))", t->method, t->url, first,
                         (unsigned long long)t->size, (unsigned long long)t->received,
                         1e-9 * (double)t->nanoseconds, t->status, t->attempt, t->ranges,
                         t->error);
}

static void report_request(void *context, const caterva_transfer *transfer)
{
    remote_object *self = context;
    foreign gil = foreign_enter();
    if (!gil.is_in) return;
    in_callback = true;
    handle_calls_back++;
    PyObject *args = transfer_of(transfer);
    PyObject *result = args ? PyObject_CallObject(self->on_request, args) : NULL;
    if (!result) PyErr_WriteUnraisable(self->on_request);
    Py_XDECREF(result);
    Py_XDECREF(args);
    handle_calls_back--;
    in_callback = false;
    foreign_leave(gil);
}

/* ---- Creation and release --------------------------------------------------------- */

/* Returns a new reference to the function, or NULL for None. */
static PyObject *function_or_null(PyObject *object)
{
    if (object == Py_None) return NULL;
    Py_INCREF(object);
    return object;
}

static int take_lines(remote_object *self)
{
    Py_ssize_t n = PyTuple_Size(self->lines);
    self->headers = PyMem_Calloc((size_t)n + 1, sizeof *self->headers);
    if (!self->headers) {
        PyErr_NoMemory();
        return -1;
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        self->headers[i] = PyUnicode_AsUTF8AndSize(PyTuple_GetItem(self->lines, i), NULL);
        if (!self->headers[i]) return -1;
    }
    self->options.headers = self->headers;
    self->options.n_headers = (int)n;
    return 0;
}

static void set_functions(remote_object *self)
{
    self->options.context = self;
    if (self->on_headers) self->options.on_headers = get_headers;
    if (self->on_request) self->options.on_request = report_request;
}

/* (caterva.Remote, options, lines of headers, function or None, function or None) */
PyObject *function_remote(PyObject *module, PyObject *args)
{
    module_state *state = module_state_of(module);
    PyObject *given, *words, *lines, *on_headers, *on_request;
    if (!PyArg_ParseTuple(args, "OO!O!OO", &given, &PyDict_Type, &words, &PyTuple_Type,
                          &lines, &on_headers, &on_request))
        return NULL;
    bool calls = on_headers != Py_None || on_request != Py_None;
    if (calls && interpreter_check("have functions for headers and requests") < 0) return NULL;
    allocfunc allocate = (allocfunc)PyType_GetSlot(state->remote_type, Py_tp_alloc);
    remote_object *self = (remote_object *)allocate(state->remote_type, 0);
    if (!self) return NULL;
    Py_INCREF(self->given = given);
    Py_INCREF(self->words = words);
    Py_INCREF(self->lines = lines);
    self->on_headers = function_or_null(on_headers);
    self->on_request = function_or_null(on_request);
    if (remote_options_parse(words, &self->options) == 0 && take_lines(self) == 0) {
        set_functions(self);
        return (PyObject *)self;
    }
    Py_DECREF(self);
    return NULL;
}

static void dealloc(PyObject *object)
{
    remote_object *self = (remote_object *)object;
    PyTypeObject *type = Py_TYPE(object);
    PyObject_GC_UnTrack(object);
    PyMem_Free(self->headers);
    Py_CLEAR(self->given);
    Py_CLEAR(self->words);
    Py_CLEAR(self->lines);
    Py_CLEAR(self->on_headers);
    Py_CLEAR(self->on_request);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(object);
    Py_DECREF(type);
}

static int traverse(PyObject *object, visitproc visit, void *arg)
{
    remote_object *self = (remote_object *)object;
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(self->given);
    Py_VISIT(self->words);
    Py_VISIT(self->lines);
    Py_VISIT(self->on_headers);
    Py_VISIT(self->on_request);
    return 0;
}

int remote_parse(module_state *state, PyObject *object, PyObject **out)
{
    *out = object == Py_None ? NULL : object;
    if (!*out || PyObject_TypeCheck(object, state->remote_type)) return 0;
    PyErr_SetString(PyExc_TypeError, "expected options for URLs, a caterva.Remote");
    return -1;
}

const caterva_remote_options *remote_options_of(PyObject *remote)
{
    return remote ? &((remote_object *)remote)->options : NULL;
}

PyObject *remote_given(PyObject *remote)
{
    PyObject *given = remote ? ((remote_object *)remote)->given : Py_None;
    Py_INCREF(given);
    return given;
}

static PyType_Slot slots[] = {
    {Py_tp_dealloc, dealloc},
    {Py_tp_traverse, traverse},
    {Py_tp_doc, "Options for URLs in the library's form."},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "caterva._caterva.Remote",
    .basicsize = sizeof(remote_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = slots,
};

int remote_add_type(PyObject *module, module_state *state)
{
    PyObject *type = PyType_FromModuleAndSpec(module, &spec, NULL);
    state->remote_type = (PyTypeObject *)type;
    return type ? PyModule_AddObjectRef(module, "Remote", type) : -1;
}

/* ---- Transfer counts ---------------------------------------------------------------- */

/* () to (requests, bytes, round trips, joined, retried, cached), or to None if the array has no
 * URL */
static PyObject *transfers(PyObject *object, PyObject *unused)
{
    (void)unused;
    array_object *self = (array_object *)object;
    caterva_transfers t = CATERVA_TRANSFERS_INIT;
    call c;
    if (array_enter(self) < 0) return NULL;
    call_begin(&c, self, NULL);
    caterva_status status = caterva_transfers_get(self->handle, &t, &c.err);
    bool is_no_url = status == CATERVA_EINVAL;
    int result = call_end(self->state, &c, is_no_url ? CATERVA_OK : status);
    array_leave(self);
    if (result < 0) return NULL;
    if (is_no_url) Py_RETURN_NONE;
    return Py_BuildValue("LLLLLL", (long long)t.requests, (long long)t.bytes,
                         (long long)t.round_trips, (long long)t.joined, (long long)t.retried,
                         (long long)t.cached);
}

PyMethodDef array_remote_methods[] = {
    {"_transfers", transfers, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

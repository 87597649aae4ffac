/* The type Array: an object around a handle, its attributes, and its release. */
#include "array.h"

#include "options.h"
#include "remote.h"

#include <stddef.h>
#include <structmember.h>
#include <unistd.h>

/* ---- Creation and release -------------------------------------------------- */

array_object *array_of(module_state *state, PyObject *object)
{
    if (PyObject_TypeCheck(object, state->array_type)) return (array_object *)object;
    PyErr_Format(PyExc_TypeError, "expected a caterva.Array, not %R", Py_TYPE(object));
    return NULL;
}

PyObject *array_wrap(module_state *state, PyTypeObject *type, const array_birth *birth)
{
    caterva_array *handle = birth->handle;
    allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    array_object *self = (array_object *)allocate(type, 0);
    if (!self) {
        caterva_discard(handle);
        return NULL;
    }
    gate_init(&self->gate);
    self->state = state;
    Py_INCREF(state->module);
    self->handle = handle;
    self->writable = birth->again.mode == CATERVA_MODE_WRITE;
    self->again = birth->again;
    self->is_part = birth->is_part;
    atomic_init(&self->drops, birth->drops);
    self->process = getpid();
    Py_XINCREF(self->place = birth->place);
    Py_XINCREF(self->frame = birth->frame);
    Py_XINCREF(self->remote = birth->remote);
    Py_XINCREF(self->source = birth->source);
    if (birth->progress != Py_None) Py_XINCREF(self->progress = birth->progress);
    if (handle_look_first(self) == 0) return (PyObject *)self;
    self->writable = false; /* so that nothing is committed */
    Py_DECREF(self);
    return NULL;
}

/* Warns of pending changes, as Python does of unclosed files. dealloc commits or drops them. */
static void finalize(PyObject *object)
{
    array_object *self = (array_object *)object;
    if (!self->handle || handle_in_memory(self) || handle_is_a_parents(self)) return;
    if (!caterva_has_pending(self->handle)) return;
    PyObject *kind, *value, *traceback;
    PyErr_Fetch(&kind, &value, &traceback);
    int result =
        PyErr_ResourceWarning(object, 1,
                              atomic_load(&self->drops)
                                  ? "<caterva.Array %A> loses its changes: its last commit "
                                    "failed, or its creation was interrupted"
                                  : "<caterva.Array %A> has changes that were not committed "
                                    "when it was dropped: close it, or use it in a with "
                                    "block",
                              self->place); /* not repr(array), which may need an import */
    if (result < 0) PyErr_WriteUnraisable((PyObject *)Py_TYPE(object));
    PyErr_Restore(kind, value, traceback);
}

static void dealloc(PyObject *object)
{
    array_object *self = (array_object *)object;
    PyTypeObject *type = Py_TYPE(object);
    PyObject_GC_UnTrack(object);
    if (self->weak) PyObject_ClearWeakRefs(object);
    PyObject *kind, *value, *traceback;
    PyErr_Fetch(&kind, &value, &traceback);
    if (handle_drop(self) < 0) call_report((PyObject *)type);
    PyErr_Restore(kind, value, traceback);
    gate_destroy(&self->gate);
    Py_CLEAR(self->descr);
    Py_CLEAR(self->progress);
    Py_CLEAR(self->frame);
    Py_CLEAR(self->remote);
    Py_CLEAR(self->source);
    Py_CLEAR(self->place);
    PyObject *module = self->state->module;
    freefunc release_memory = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release_memory(object);
    Py_DECREF(type);
    Py_DECREF(module);
}

static int traverse(PyObject *object, visitproc visit, void *arg)
{
    array_object *self = (array_object *)object;
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(self->progress);
    Py_VISIT(self->frame);
    Py_VISIT(self->remote);
    Py_VISIT(self->source);
    Py_VISIT((PyObject *)self->descr);
    return 0;
}

static int clear(PyObject *object)
{
    Py_CLEAR(((array_object *)object)->progress);
    return 0;
}

/* ---- Attributes of the object --------------------------------------------- */

static PyObject *get_shape(PyObject *object, void *unused)
{
    (void)unused;
    array_object *self = (array_object *)object;
    PyObject *shape = PyTuple_New(self->ndim);
    for (int d = 0; shape && d < self->ndim; d++) {
        PyObject *n = PyLong_FromLongLong(self->shape[d]);
        if (!n || PyTuple_SetItem(shape, d, n) < 0) Py_CLEAR(shape);
    }
    return shape;
}

static PyObject *get_dtype(PyObject *object, void *unused)
{
    (void)unused;
    PyObject *descr = (PyObject *)((array_object *)object)->descr;
    Py_INCREF(descr);
    return descr;
}

static PyObject *get_ndim(PyObject *object, void *unused)
{
    (void)unused;
    return PyLong_FromLong(((array_object *)object)->ndim);
}

static PyObject *get_closed(PyObject *object, void *unused)
{
    (void)unused;
    return PyBool_FromLong(((array_object *)object)->handle == NULL);
}

static PyObject *get_writable(PyObject *object, void *unused)
{
    (void)unused;
    return PyBool_FromLong(((array_object *)object)->writable);
}

static PyObject *get_place(PyObject *object, void *unused)
{
    (void)unused;
    PyObject *place = ((array_object *)object)->place;
    if (!place) place = Py_None;
    Py_INCREF(place);
    return place;
}

static PyObject *get_offset(PyObject *object, void *unused)
{
    (void)unused;
    return PyLong_FromUnsignedLongLong(((array_object *)object)->again.offset);
}

static PyObject *get_remote(PyObject *object, void *unused)
{
    (void)unused;
    return remote_given(((array_object *)object)->remote);
}

static PyObject *get_source(PyObject *object, void *unused)
{
    (void)unused;
    PyObject *source = ((array_object *)object)->source;
    if (!source) source = Py_None;
    Py_INCREF(source);
    return source;
}

static int set_progress(PyObject *object, PyObject *value, void *unused)
{
    (void)unused;
    array_object *self = (array_object *)object;
    if (call_check_progress(value) < 0 || handle_shut_gate(self) < 0) return -1;
    PyObject *before = call_swap_progress(object, value);
    gate_open(&self->gate);
    Py_XDECREF(before);
    return 0;
}

static PyGetSetDef properties[] = {
    {"shape", get_shape, NULL, "Length of each axis (tuple of int).", NULL},
    {"ndim", get_ndim, NULL, "Number of axes.", NULL},
    {"dtype", get_dtype, NULL, "numpy.dtype of the items.", NULL},
    {"closed", get_closed, NULL, "True after `close` or `discard`.", NULL},
    {"writable", get_writable, NULL, "True if the array was opened for writing.", NULL},
    {"_place", get_place, NULL, "Path or URL with which it was opened.", NULL},
    {"_offset", get_offset, NULL, "Position of the frame in its file.", NULL},
    {"_remote", get_remote, NULL, "Options with which its URL was opened, or None.", NULL},
    {"_source", get_source, NULL, "Source from which it is read, or None.", NULL},
    {"progress", call_get_progress, set_progress,
     "Function ``(done, total)``, called with decoded bytes during long calls, or None.\n"
     "Returning a true value stops the call.",
     NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static Py_ssize_t length(PyObject *object)
{
    array_object *self = (array_object *)object;
    if (self->ndim > 0) return (Py_ssize_t)self->shape[0];
    PyErr_SetString(PyExc_TypeError, "len() of unsized object");
    return -1;
}

/* ---- The type -------------------------------------------------------------- */

static PyMemberDef members[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(array_object, weak), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

enum { MAX_METHODS = 80 };

/* The methods of all files in one table; the type refers to it. */
static PyMethodDef methods[MAX_METHODS + 1];

static void gather(void)
{
    static PyMethodDef *const lists[] = {
        array_life_methods,   array_index_methods,     array_transfer_methods,
        array_chunk_methods,  array_attribute_methods, array_reduce_methods,
        array_upkeep_methods, array_shape_methods,     array_request_methods,
        array_dims_methods,   array_job_methods,       array_remote_methods,
    };
    gather_methods(lists, sizeof lists / sizeof lists[0], methods, MAX_METHODS);
}

static PyType_Slot slots[] = {
    {Py_tp_finalize, finalize},
    {Py_tp_dealloc, dealloc},
    {Py_tp_traverse, traverse},
    {Py_tp_clear, clear},
    {Py_tp_methods, methods},
    {Py_tp_getset, properties},
    {Py_tp_members, members},
    {Py_mp_length, length},
    {Py_mp_subscript, array_subscript},
    {Py_mp_ass_subscript, array_assign},
    {Py_tp_doc, "An open handle; base of caterva.Array."},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "caterva._caterva.Array",
    .basicsize = sizeof(array_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC |
             Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = slots,
};

int array_add_type(PyObject *module, module_state *state)
{
    gather();
    PyObject *type = PyType_FromModuleAndSpec(module, &spec, NULL);
    state->array_type = (PyTypeObject *)type;
    return type ? PyModule_AddObjectRef(module, "Array", type) : -1;
}

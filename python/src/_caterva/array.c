/* The type Array: an open handle, and its life from opening to closing. */
#include "array.h"

#include "options.h"

#include <stddef.h>
#include <string.h>
#include <structmember.h>
#include <unistd.h>

/* ---- What it is ---------------------------------------------------------- */

static int recover(array_object *self);

int array_enter(array_object *self)
{
    if (call_is_under_way(self)) {
        PyErr_SetString(PyExc_RuntimeError,
                        "an array cannot be used by what hears of its progress");
        return -1;
    }
    if (gate_lost_threads(&self->gate) && recover(self) < 0) return -1;
    gate_enter(&self->gate);
    if (self->handle) return 0;
    gate_leave(&self->gate);
    PyErr_SetString(PyExc_ValueError, "the array is closed");
    return -1;
}

array_object *array_of(module_state *state, PyObject *object)
{
    if (PyObject_TypeCheck(object, state->array_type)) return (array_object *)object;
    PyErr_Format(PyExc_TypeError, "a caterva.Array is wanted, not %R", Py_TYPE(object));
    return NULL;
}

static int get_info(array_object *self, const caterva_info **info)
{
    call c;
    call_begin(&c, self, NULL);
    caterva_status status = caterva_info_get(self->handle, info, &c.err);
    return call_end(self->state, &c, status);
}

/* The dtype, of which a metalayer of ours may know more than NumPy's words say. */
static PyObject *descr_of(array_object *self, const caterva_info *info)
{
    const char *name = NULL;
    Py_ssize_t size = 0;
    for (int i = 0; i < info->n_metalayers; i++) {
        if (strcmp(info->metalayers[i].name, "ml_dtype") != 0) continue;
        name = info->metalayers[i].content;
        size = (Py_ssize_t)info->metalayers[i].size;
    }
    return PyObject_CallFunction(self->state->dtype_of_text, "siy#", info->dtype,
                                 (int)info->item_size, name, size);
}

static int set_type(array_object *self, const caterva_info *info)
{
    PyObject *descr = descr_of(self, info);
    if (!descr) return -1;
    self->descr = (PyArray_Descr *)descr;
    self->ndim = info->ndim;
    self->item_size = info->item_size;
    return 0;
}

static void set_shape(array_object *self, const caterva_info *info)
{
    for (int d = 0; d < info->ndim; d++)
        atomic_store_explicit(&self->shape[d], info->shape[d], memory_order_relaxed);
}

int array_look(array_object *self)
{
    const caterva_info *info;
    if (get_info(self, &info) < 0) return -1;
    set_shape(self, info);
    caterva_info_release(info);
    return 0;
}

static int look_first(array_object *self)
{
    const caterva_info *info;
    if (get_info(self, &info) < 0) return -1;
    set_shape(self, info);
    int result = set_type(self, info);
    caterva_info_release(info);
    return result;
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
    self->handle = handle;
    self->writable = birth->again.mode == CATERVA_MODE_WRITE;
    self->again = birth->again;
    self->process = getpid();
    Py_XINCREF(self->place = birth->place);
    Py_XINCREF(self->frame = birth->frame);
    if (birth->progress != Py_None) Py_XINCREF(self->progress = birth->progress);
    if (look_first(self) == 0) return (PyObject *)self;
    self->writable = false; /* nothing to commit */
    Py_DECREF(self);
    return NULL;
}

/* ---- Closing ------------------------------------------------------------- */

/* Releases the handle: a child of fork has nothing to commit of its parent's. */
static int release(array_object *self, bool commit)
{
    caterva_array *handle = self->handle;
    self->handle = NULL;
    if (!handle || gate_lost_threads(&self->gate)) return 0; /* lost: locks may be held */
    call c;
    caterva_status status = CATERVA_OK;
    bool discard = !commit || self->process != getpid();
    call_begin(&c, self, self->progress);
    if (discard)
        caterva_discard(handle);
    else
        status = caterva_close(handle, &c.err);
    return call_end(self->state, &c, status);
}

/* Releases the handle of one that cannot go on; keeps the exception. */
static void abandon(array_object *self)
{
    PyObject *kind, *value, *traceback;
    PyErr_Fetch(&kind, &value, &traceback);
    (void)release(self, false);
    PyErr_Restore(kind, value, traceback);
}

static int shut_gate(array_object *self)
{
    if (!call_is_under_way(self)) {
        if (gate_lost_threads(&self->gate) && recover(self) < 0) return -1;
        gate_shut(&self->gate);
        return 0;
    }
    PyErr_SetString(PyExc_RuntimeError,
                    "an array cannot be closed by what hears of its progress");
    return -1;
}

static PyObject *close_array(PyObject *object, PyObject *args)
{
    array_object *self = (array_object *)object;
    int commit = 1;
    if (!PyArg_ParseTuple(args, "|p", &commit)) return NULL;
    if (shut_gate(self) < 0) return NULL;
    int result = release(self, commit != 0);
    gate_open(&self->gate);
    if (result < 0) return NULL;
    Py_RETURN_NONE;
}

static void dealloc(PyObject *object)
{
    array_object *self = (array_object *)object;
    PyTypeObject *type = Py_TYPE(object);
    PyObject_GC_UnTrack(object);
    if (self->weak) PyObject_ClearWeakRefs(object);
    PyObject *kind, *value, *traceback;
    PyErr_Fetch(&kind, &value, &traceback);
    if (release(self, self->writable) < 0) PyErr_WriteUnraisable((PyObject *)type);
    PyErr_Restore(kind, value, traceback);
    gate_destroy(&self->gate);
    Py_CLEAR(self->descr);
    Py_CLEAR(self->progress);
    Py_CLEAR(self->frame);
    Py_CLEAR(self->place);
    freefunc release_memory = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release_memory(object);
    Py_DECREF(type);
}

static int traverse(PyObject *object, visitproc visit, void *arg)
{
    array_object *self = (array_object *)object;
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(self->progress);
    Py_VISIT(self->frame);
    Py_VISIT((PyObject *)self->descr);
    return 0;
}

static int clear(PyObject *object)
{
    Py_CLEAR(((array_object *)object)->progress);
    return 0;
}

/* ---- Committing ---------------------------------------------------------- */

static PyObject *commit(PyObject *object, PyObject *unused)
{
    (void)unused;
    array_object *self = (array_object *)object;
    call c;
    if (array_enter(self) < 0) return NULL;
    call_begin(&c, self, self->progress);
    caterva_status status = caterva_commit(self->handle, &c.err);
    int result = call_end(self->state, &c, status);
    array_leave(self);
    if (result < 0) return NULL;
    Py_RETURN_NONE;
}

typedef caterva_status turn_function(caterva_array *array, caterva_error *err);

/* Whether the state that the handle turned to has items and axes as before; what depends
 * on them is fixed for the life of an object. */
static int look_again(array_object *self)
{
    const caterva_info *info;
    if (get_info(self, &info) < 0) return -1;
    PyObject *descr = descr_of(self, info);
    bool same = descr && info->ndim == self->ndim &&
                PyArray_EquivTypes((PyArray_Descr *)descr, self->descr);
    if (same) set_shape(self, info);
    if (descr && !same)
        PyErr_Format(PyExc_ValueError,
                     "%S is another array now, with %d axes of %R: open it anew",
                     self->place ? self->place : Py_None, info->ndim, descr);
    Py_XDECREF(descr);
    caterva_info_release(info);
    return same ? 0 : -1;
}

/* In a child of fork whose parent was using the handle in other threads: the locks that
 * they held are held for good. So the handle is left as it is, and the file opened anew;
 * what the parent was changing, and what is in memory only, are lost to the child. */
static int reopen(array_object *self)
{
    if (!self->handle) return 0;
    self->handle = NULL;
    self->n_opened++;
    bool is_file = self->place && PyUnicode_CompareWithASCIIString(self->place, "mem:") != 0;
    if (self->writable || !(is_file || self->frame)) {
        PyErr_SetString(PyExc_ValueError, "the array is the parent's, which was using it in "
                                          "another thread when this process was forked");
        return -1;
    }
    const char *url = is_file ? PyUnicode_AsUTF8AndSize(self->place, NULL) : NULL;
    if (is_file && !url) return -1;
    call c;
    call_begin(&c, self, NULL);
    caterva_status status = is_file ? caterva_open(url, &self->again, &self->handle, &c.err)
                                    : caterva_frame_open(PyBytes_AsString(self->frame),
                                                         (size_t)PyBytes_Size(self->frame), 0,
                                                         &self->again, &self->handle, &c.err);
    if (call_end(self->state, &c, status) < 0) return -1;
    if (look_again(self) == 0) return 0;
    abandon(self);
    return -1;
}

static int recover(array_object *self)
{
    int result = reopen(self);
    gate_open(&self->gate);
    return result;
}

/* To another state, of another shape perhaps. */
static PyObject *turn(array_object *self, turn_function *function)
{
    if (shut_gate(self) < 0) return NULL;
    int result = -1;
    if (!self->handle) {
        PyErr_SetString(PyExc_ValueError, "the array is closed");
    } else {
        call c;
        call_begin(&c, self, self->progress);
        caterva_status status = function(self->handle, &c.err);
        result = call_end(self->state, &c, status);
        if (result == 0 && look_again(self) < 0) {
            result = -1;
            abandon(self);
        }
    }
    gate_open(&self->gate);
    if (result < 0) return NULL;
    Py_RETURN_NONE;
}

static PyObject *rollback(PyObject *self, PyObject *unused)
{
    (void)unused;
    return turn((array_object *)self, caterva_rollback);
}

static PyObject *refresh(PyObject *self, PyObject *unused)
{
    (void)unused;
    return turn((array_object *)self, caterva_refresh);
}

/* ---- Upkeep ---------------------------------------------------------------- */

typedef caterva_status upkeep_function(const char *url, const caterva_upkeep_options *options,
                                       caterva_error *err);

/* Closed, kept up, and opened anew: inside the shut gate. An array that cannot be opened
 * again stays closed. */
static int keep_up(array_object *self, upkeep_function *function, PyObject *progress)
{
    const char *url = PyUnicode_AsUTF8AndSize(self->place, NULL);
    if (!url || release(self, true) < 0) return -1;
    caterva_upkeep_options options = CATERVA_UPKEEP_INIT;
    options.durability = self->again.durability;
    options.on_progress = call_hook;
    caterva_error failed;
    call c;
    call_begin(&c, self, progress);
    caterva_status status = function(url, &options, &c.err), opened = CATERVA_OK;
    if (status != CATERVA_OK) failed = c.err;
    opened = caterva_open(url, &self->again, &self->handle, &c.err);
    self->n_opened++;
    if (opened != CATERVA_OK) self->handle = NULL;
    if (status != CATERVA_OK) c.err = failed;
    return call_end(self->state, &c, status != CATERVA_OK ? status : opened);
}

/* (0: compact, 1: seal; progress) */
static PyObject *upkeep(PyObject *object, PyObject *args)
{
    array_object *self = (array_object *)object;
    int which;
    PyObject *progress;
    if (!PyArg_ParseTuple(args, "iO", &which, &progress)) return NULL;
    if (!self->place || PyUnicode_CompareWithASCIIString(self->place, "mem:") == 0)
        return PyErr_Format(PyExc_ValueError, "an array in memory has no file to keep up");
    if (shut_gate(self) < 0) return NULL;
    int result = -1;
    if (!self->handle)
        PyErr_SetString(PyExc_ValueError, "the array is closed");
    else
        result = keep_up(self, which == 0 ? caterva_compact : caterva_seal, progress);
    gate_open(&self->gate);
    if (result < 0) return NULL;
    Py_RETURN_NONE;
}

PyMethodDef array_life_methods[] = {
    {"_upkeep", upkeep, METH_VARARGS, NULL},
    {"_close", close_array, METH_VARARGS,
     "_close($self, commit=True, /)\n--\n\nReleases the handle, once."},
    {"commit", commit, METH_NOARGS,
     "commit($self)\n--\n\n"
     "Make everything written so far durable and visible to others, all or nothing.\n\n"
     "Examples\n--------\n"
     ">>> import caterva\n"
     ">>> a = caterva.zeros(4, dtype=\"i4\", path=\"commit.b2nd\")\n"
     ">>> a[1:3] = 7\n"
     ">>> a.commit()\n"
     ">>> caterva.open(\"commit.b2nd\")[:]\n"
     "array([0, 7, 7, 0], dtype=int32)\n"},
    {"rollback", rollback, METH_NOARGS,
     "rollback($self)\n--\n\n"
     "Drop everything since the last commit.\n\n"
     "Examples\n--------\n"
     ">>> import caterva\n"
     ">>> a = caterva.zeros(3, dtype=\"i4\")\n"
     ">>> a.commit()\n"
     ">>> a[:] = 5\n"
     ">>> a.rollback()\n"
     ">>> a[:]\n"
     "array([0, 0, 0], dtype=int32)\n"},
    {"refresh", refresh, METH_NOARGS,
     "refresh($self)\n--\n\n"
     "Turn a handle for reading to the last committed state.\n\n"
     "Examples\n--------\n"
     ">>> import caterva\n"
     ">>> w = caterva.zeros(3, dtype=\"i4\", path=\"refresh.b2nd\")\n"
     ">>> w.commit()\n"
     ">>> r = caterva.open(\"refresh.b2nd\")\n"
     ">>> w[:] = 5\n"
     ">>> w.commit()\n"
     ">>> r[0], r.refresh(), r[0]\n"
     "(np.int32(0), None, np.int32(5))\n"},
    {NULL, NULL, 0, NULL},
};

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

static PyObject *get_progress(PyObject *object, void *unused)
{
    (void)unused;
    PyObject *progress = ((array_object *)object)->progress;
    if (!progress) progress = Py_None;
    Py_INCREF(progress);
    return progress;
}

static int set_progress(PyObject *object, PyObject *value, void *unused)
{
    (void)unused;
    array_object *self = (array_object *)object;
    if (value && value != Py_None && !PyCallable_Check(value)) {
        PyErr_SetString(PyExc_TypeError, "progress is a function (done, total), or None");
        return -1;
    }
    PyObject *before = self->progress;
    self->progress = value == Py_None ? NULL : value;
    Py_XINCREF(self->progress);
    Py_XDECREF(before);
    return 0;
}

static PyGetSetDef properties[] = {
    {"shape", get_shape, NULL, "Length of each axis (tuple of int).", NULL},
    {"ndim", get_ndim, NULL, "Number of axes.", NULL},
    {"dtype", get_dtype, NULL, "numpy.dtype of the items.", NULL},
    {"closed", get_closed, NULL, "True once `close` was called.", NULL},
    {"writable", get_writable, NULL, "True if the array was opened for writing.", NULL},
    {"_place", get_place, NULL, "What it was opened with.", NULL},
    {"_offset", get_offset, NULL, "Where the frame begins in its file.", NULL},
    {"progress", get_progress, set_progress,
     "Function ``(done, total)`` that hears of long calls, in decoded bytes, and stops\n"
     "them by returning a true value; or None.",
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

/* One list of those of all files; the type keeps pointing at it. */
static PyMethodDef methods[MAX_METHODS + 1];

static void gather_methods(void)
{
    static PyMethodDef *const lists[] = {
        array_life_methods,      array_transfer_methods, array_chunk_methods,
        array_attribute_methods, array_reduce_methods,   array_upkeep_methods,
        array_shape_methods,
    };
    int n = 0;
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++)
        for (PyMethodDef *m = lists[i]; m->ml_name && n < MAX_METHODS; m++) methods[n++] = *m;
}

static PyType_Slot slots[] = {
    {Py_tp_dealloc, dealloc},
    {Py_tp_traverse, traverse},
    {Py_tp_clear, clear},
    {Py_tp_methods, methods},
    {Py_tp_getset, properties},
    {Py_tp_members, members},
    {Py_mp_length, length},
    {Py_mp_subscript, array_subscript},
    {Py_mp_ass_subscript, array_assign},
    {Py_tp_doc, "An open handle; caterva.Array is what Python sees."},
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
    gather_methods();
    PyObject *type = PyType_FromModuleAndSpec(module, &spec, NULL);
    state->array_type = (PyTypeObject *)type;
    return type ? PyModule_AddObjectRef(module, "Array", type) : -1;
}

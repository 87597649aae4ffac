/* The type Tree: an object around the handle of a tree, and its release. */
#include "tree.h"

#include "functions.h"
#include "remote.h"

#include <caterva_tree.h>
#include <stddef.h>
#include <string.h>
#include <structmember.h>
#include <unistd.h>

/* ---- Creation and release -------------------------------------------------- */

/* Makes the object for a handle. Takes ownership of the handle, also on failure. */
static PyObject *wrap(module_state *state, caterva_tree *handle,
                      const caterva_tree_options *again, PyObject *place, PyObject *remote,
                      PyObject *progress)
{
    PyTypeObject *type = state->tree_type;
    allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    tree_object *self = (tree_object *)allocate(type, 0);
    if (!self) {
        caterva_tree_close(handle, NULL);
        return NULL;
    }
    gate_init(&self->gate);
    self->state = state;
    Py_INCREF(state->module);
    self->handle = handle;
    self->again = *again;
    self->process = getpid();
    Py_INCREF(self->place = place);
    Py_XINCREF(self->remote = remote);
    if (progress != Py_None) Py_XINCREF(self->progress = progress);
    return (PyObject *)self;
}

/* Releases the handle. Call while the gate is shut, or when no references are left. */
static int release(tree_object *self, bool interruptible)
{
    caterva_tree *handle = self->handle;
    self->handle = NULL;
    if (!handle || gate_lost_threads(&self->gate)) return 0; /* a lock may be held forever */
    call c;
    call_begin(&c, self, interruptible ? self->progress : NULL);
    c.defers_signals = !interruptible;
    caterva_status status = caterva_tree_close(handle, &c.err);
    if (status == CATERVA_EBUSY && self->process != getpid())
        status = CATERVA_OK; /* the pending changes are the parent's, as for arrays */
    return call_end(self->state, &c, status);
}

static void dealloc(PyObject *object)
{
    tree_object *self = (tree_object *)object;
    PyTypeObject *type = Py_TYPE(object);
    PyObject *kind, *value, *traceback;
    PyObject_GC_UnTrack(object);
    if (self->weak) PyObject_ClearWeakRefs(object);
    PyErr_Fetch(&kind, &value, &traceback);
    if (release(self, false) < 0) call_report((PyObject *)type);
    PyErr_Restore(kind, value, traceback);
    gate_destroy(&self->gate);
    Py_CLEAR(self->place);
    Py_CLEAR(self->remote);
    Py_CLEAR(self->progress);
    PyObject *module = self->state->module;
    freefunc release_memory = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release_memory(object);
    Py_DECREF(type);
    Py_DECREF(module);
}

static int traverse(PyObject *object, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(((tree_object *)object)->remote);
    Py_VISIT(((tree_object *)object)->progress);
    return 0;
}

static int clear(PyObject *object)
{
    Py_CLEAR(((tree_object *)object)->progress);
    return 0;
}

/* ---- Entering ---------------------------------------------------------------- */

/* Opens an archive again. An archive never changes, but another one may be at its path now. */
static caterva_status open_same(tree_object *self, const char *path, caterva_tree *old,
                                caterva_error *err)
{
    uint8_t before[CATERVA_STATE_ID], now[CATERVA_STATE_ID];
    caterva_status status = caterva_tree_state_id(old, before, err);
    if (status == CATERVA_OK)
        status = caterva_tree_open(path, &self->again, &self->handle, err);
    if (status != CATERVA_OK) return status;
    status = caterva_tree_state_id(self->handle, now, err);
    if (status == CATERVA_OK && memcmp(before, now, sizeof now) == 0) return CATERVA_OK;
    caterva_tree_close(self->handle, NULL);
    self->handle = NULL;
    if (status != CATERVA_OK) return status;
    static const caterva_error stale = {.code = CATERVA_ESTALE,
                                        .position = -1,
                                        .message =
                                            "the archive was replaced after it was opened "
                                            "and before this process, a forked child, "
                                            "had to open it again"};
    *err = stale;
    return CATERVA_ESTALE;
}

/* Opens the tree again in a forked child whose parent was using the handle in other threads; see
 * reopen in handle.c. */
static int reopen(tree_object *self)
{
    caterva_tree *old = self->handle;
    self->handle = NULL;
    if (self->again.mode == CATERVA_MODE_WRITE) {
        static const caterva_error refused = {.code = CATERVA_EBUSY,
                                              .position = -1,
                                              .message =
                                                  "the tree belongs to the parent process, "
                                                  "which was using it in another thread when "
                                                  "this process was forked"};
        return raise_error(self->state, &refused, self->place);
    }
    PyObject *path = place_encoded(self->place);
    if (!path) return -1;
    const char *text = PyBytes_AsString(path);
    call c;
    call_begin(&c, self, NULL);
    caterva_status status = open_same(self, text, old, &c.err);
    int result = call_end(self->state, &c, status);
    Py_DECREF(path);
    return result;
}

static int recover(tree_object *self)
{
    int result = self->handle ? reopen(self) : 0;
    gate_open(&self->gate);
    return result;
}

/* Checks that this thread may enter or shut the gate. `done` is the verb for messages. */
static int check_gate(tree_object *self, const char *done)
{
    if (!call_is_under_way(self)) return gate_lost_threads(&self->gate) ? recover(self) : 0;
    PyErr_Format(PyExc_RuntimeError, "a tree cannot be %s by its own progress function",
                 done);
    return -1;
}

/* Shuts the gate; open it with gate_open. */
static int shut(tree_object *self, const char *done)
{
    if (check_gate(self, done) < 0) return -1;
    gate_shut(&self->gate);
    return 0;
}

int tree_enter(tree_object *self)
{
    if (check_gate(self, "used") < 0) return -1;
    gate_enter(&self->gate);
    if (self->handle) return 0;
    gate_leave(&self->gate);
    PyErr_SetString(PyExc_ValueError, "the tree is closed");
    return -1;
}

static PyObject *close_tree(PyObject *object, PyObject *unused)
{
    (void)unused;
    tree_object *self = (tree_object *)object;
    if (shut(self, "closed") < 0) return NULL;
    int result = release(self, true);
    gate_open(&self->gate);
    if (result < 0) return NULL;
    Py_RETURN_NONE;
}

/* ---- Attributes of the object --------------------------------------------- */

static PyObject *get_closed(PyObject *object, void *unused)
{
    (void)unused;
    return PyBool_FromLong(((tree_object *)object)->handle == NULL);
}

static PyObject *get_writable(PyObject *object, void *unused)
{
    (void)unused;
    return PyBool_FromLong(((tree_object *)object)->again.mode == CATERVA_MODE_WRITE);
}

static PyObject *get_path(PyObject *object, void *unused)
{
    (void)unused;
    PyObject *place = ((tree_object *)object)->place;
    Py_INCREF(place);
    return place;
}

static int set_progress(PyObject *object, PyObject *value, void *unused)
{
    (void)unused;
    tree_object *self = (tree_object *)object;
    if (call_check_progress(value) < 0 || shut(self, "changed") < 0) return -1;
    PyObject *before = call_swap_progress(object, value);
    gate_open(&self->gate);
    Py_XDECREF(before);
    return 0;
}

static PyGetSetDef properties[] = {
    {"closed", get_closed, NULL, "True after `close`.", NULL},
    {"writable", get_writable, NULL, "True if the tree was opened for writing.", NULL},
    {"path", get_path, NULL, "The tree's directory or file.", NULL},
    {"progress", call_get_progress, set_progress, "Function ``(done, total)``, or None.",
     NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

/* ---- The type -------------------------------------------------------------- */

static PyMemberDef members[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(tree_object, weak), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

enum { MAX_METHODS = 40 };
static PyMethodDef own_methods[] = {
    {"_close", close_tree, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};
static PyMethodDef methods[MAX_METHODS + 1];

static void gather(void)
{
    static PyMethodDef *const lists[] = {own_methods, tree_member_methods,
                                         tree_commit_methods, tree_verify_methods};
    gather_methods(lists, sizeof lists / sizeof lists[0], methods, MAX_METHODS);
}

static PyType_Slot slots[] = {
    {Py_tp_dealloc, dealloc},
    {Py_tp_traverse, traverse},
    {Py_tp_clear, clear},
    {Py_tp_methods, methods},
    {Py_tp_getset, properties},
    {Py_tp_members, members},
    {Py_tp_doc, "An open handle of a tree; part of caterva.Tree."},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "caterva._caterva.Tree",
    .basicsize = sizeof(tree_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = slots,
};

int tree_add_type(PyObject *module, module_state *state)
{
    gather();
    PyObject *type = PyType_FromModuleAndSpec(module, &spec, NULL);
    state->tree_type = (PyTypeObject *)type;
    return type ? PyModule_AddObjectRef(module, "Tree", type) : -1;
}

/* ---- Opening and creating ----------------------------------------------------- */

typedef caterva_status tree_function(const char *path, const caterva_tree_options *options,
                                     caterva_tree **out, caterva_error *err);

/* Opens or creates the tree at the place by calling `function`. */
static PyObject *tree_at(module_state *state, PyObject *place, tree_function *function,
                         caterva_tree_options *options, PyObject *remote, PyObject *progress)
{
    caterva_tree *handle;
    PyObject *path = place_encoded(place);
    call c;
    if (!path) return NULL;
    const char *text = PyBytes_AsString(path);
    options->progress = call_progress(CALL_TREE);
    call_begin(&c, NULL, progress);
    c.reporter = CALL_TREE;
    c.place = place;
    caterva_status status = function(text, options, &handle, &c.err);
    int result = call_end(state, &c, status);
    Py_DECREF(path);
    if (result == 0) return wrap(state, handle, options, place, remote, progress);
    if (status == CATERVA_OK) caterva_tree_close(handle, NULL);
    return NULL;
}

/* (path, writing, durability, remote=None, progress=None) */
PyObject *function_tree_open(PyObject *module, PyObject *args)
{
    caterva_tree_options options = CATERVA_TREE_INIT;
    module_state *state = module_state_of(module);
    PyObject *place, *remote = Py_None, *progress = Py_None;
    int writing, durability;
    if (!PyArg_ParseTuple(args, "Upi|OO", &place, &writing, &durability, &remote,
                          &progress) ||
        remote_parse(state, remote, &remote) < 0 || remote_check_thread() < 0)
        return NULL;
    options.remote = remote_options_of(remote);
    options.mode = writing ? CATERVA_MODE_WRITE : CATERVA_MODE_READ;
    options.durability = (caterva_durability)durability;
    return tree_at(state, place, caterva_tree_open, &options, remote, progress);
}

/* (path, durability, progress=None) */
PyObject *function_tree_create(PyObject *module, PyObject *args)
{
    caterva_tree_options options = CATERVA_TREE_INIT;
    PyObject *place, *progress = Py_None;
    int durability;
    if (!PyArg_ParseTuple(args, "Ui|O", &place, &durability, &progress)) return NULL;
    options.mode = CATERVA_MODE_WRITE;
    options.durability = (caterva_durability)durability;
    return tree_at(module_state_of(module), place, caterva_tree_create, &options, NULL,
                   progress);
}

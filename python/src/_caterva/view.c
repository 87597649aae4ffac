/* The type View: a lazy selection of an array, or of several arrays joined. A call through a view
 * is inside the gates of all its arrays, so that none of them is closed during the call. If one was
 * closed before, the call raises ValueError. */
#include "view.h"

#include "functions.h"
#include "options.h"
#include "transfer.h"

#include <caterva_upkeep.h>
#include <stddef.h>
#include <structmember.h>

/* ---- The arrays of a view ---------------------------------------------------------- */

static array_object *array_at(const view_object *self, Py_ssize_t i)
{
    return (array_object *)PyTuple_GetItem(self->arrays, i);
}

static void leave_first(view_object *self, Py_ssize_t n)
{
    for (Py_ssize_t i = 0; i < n; i++) array_leave(array_at(self, i));
}

static void leave(view_object *self) { leave_first(self, PyTuple_Size(self->arrays)); }

static unsigned n_opened(const view_object *self)
{
    unsigned n = 0;
    for (Py_ssize_t i = 0; i < PyTuple_Size(self->arrays); i++)
        n += array_at(self, i)->n_opened;
    return n;
}

/* Enters the gates of all arrays. Returns 0; or -1 with an exception, outside of all gates. */
static int enter_all(view_object *self)
{
    Py_ssize_t n = PyTuple_Size(self->arrays);
    for (Py_ssize_t i = 0; i < n; i++) {
        if (array_enter(array_at(self, i)) == 0) continue;
        leave_first(self, i);
        return -1;
    }
    return 0;
}

/* In a forked child whose arrays were opened again, in their old states: makes the view again from
 * the new handles. Returns 1 if this was necessary, 0 in any other process, or -1 with an
 * exception. Call it outside the gates, because making the view enters them. */
static int renew(view_object *self)
{
    if (self->forks == atomic_load(&gate_forks)) return 0;
    PyObject *again = PyObject_CallMethod((PyObject *)self, "_made_again", NULL);
    if (!again) return -1;
    if (n_opened(self) != self->n_opened) { /* if equal, another thread has done it */
        view_object *other = (view_object *)again;
        caterva_view *old = self->view;
        self->view = other->view;
        self->n_opened = other->n_opened;
        self->forks = other->forks;
        other->view = old;
    }
    Py_DECREF(again);
    return 1;
}

/* Enters all gates. If an array was opened again since the view was made, the view belongs to an
 * old handle: makes it again in a forked child, and fails otherwise. */
static int enter(view_object *self)
{
    int renewed;
    do {
        if (enter_all(self) < 0) return -1;
        if (n_opened(self) == self->n_opened) return 0;
        leave(self);
        renewed = renew(self);
    } while (renewed > 0);
    if (renewed == 0)
        PyErr_SetString(
            PyExc_ValueError,
            "the array was opened again after the view was made: make another one");
    return -1;
}

/* ---- Arrays and views as origins of items ------------------------------------------- */

origin origin_array(PyObject *array) { return (origin){(array_object *)array, NULL}; }

origin origin_view(PyObject *view)
{
    return (origin){array_at((view_object *)view, 0), (view_object *)view};
}

int origin_enter(const origin *from)
{
    return from->view ? enter(from->view) : array_enter(from->first);
}

void origin_leave(const origin *from)
{
    if (from->view)
        leave(from->view);
    else
        array_leave(from->first);
}

/* ---- Objects ----------------------------------------------------------------------- */

/* Makes the object. Takes ownership of the view and of a reference to `arrays`, also on failure. */
static PyObject *wrap(module_state *state, PyTypeObject *type, caterva_view *view,
                      PyObject *arrays)
{
    allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    view_object *self = (view_object *)allocate(type, 0);
    if (!self) {
        caterva_view_free(view);
        Py_DECREF(arrays);
        return NULL;
    }
    self->state = state;
    self->view = view;
    self->arrays = arrays;
    self->n_opened = n_opened(self);
    self->forks = atomic_load(&gate_forks);
    self->descr = array_at(self, 0)->descr;
    Py_INCREF((PyObject *)self->descr);
    self->shape = tuple_of_int64s(caterva_view_shape(view), caterva_view_ndim(view));
    if (self->shape) return (PyObject *)self;
    Py_DECREF(self);
    return NULL;
}

static void dealloc(PyObject *object)
{
    view_object *self = (view_object *)object;
    PyTypeObject *type = Py_TYPE(object);
    PyObject_GC_UnTrack(object);
    if (self->weak) PyObject_ClearWeakRefs(object);
    caterva_view_free(self->view);
    Py_CLEAR(self->arrays);
    Py_CLEAR(self->descr);
    Py_CLEAR(self->shape);
    freefunc release_memory = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release_memory(object);
    Py_DECREF(type);
}

static int traverse(PyObject *object, visitproc visit, void *arg)
{
    view_object *self = (view_object *)object;
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(self->arrays);
    Py_VISIT((PyObject *)self->descr);
    return 0;
}

/* Makes the object for a view that the library has derived from `self`. */
static PyObject *derived(view_object *self, caterva_view *view)
{
    Py_INCREF(self->arrays);
    PyObject *made = wrap(self->state, Py_TYPE((PyObject *)self), view, self->arrays);
    if (made) ((view_object *)made)->n_opened = self->n_opened;
    return made;
}

/* ---- Views of views ------------------------------------------------------------------ */

static PyObject *select_axes(PyObject *object, PyObject *args)
{
    view_object *self = (view_object *)object;
    PyObject *tuple;
    caterva_axis axes[CATERVA_MAX_DIMS];
    caterva_view *view;
    call c;
    if (!PyArg_ParseTuple(args, "O!", &PyTuple_Type, &tuple)) return NULL;
    Py_ssize_t n = PyTuple_Size(tuple);
    if (n > CATERVA_MAX_DIMS) return PyErr_Format(PyExc_IndexError, "%zd axes", n);
    for (Py_ssize_t i = 0; i < n; i++)
        if (axis_parse(PyTuple_GetItem(tuple, i), &axes[i]) < 0) return NULL;
    if (enter(self) < 0) return NULL;
    call_begin(&c, NULL, NULL);
    caterva_status status = caterva_view_select(self->view, axes, (int)n, &view, &c.err);
    int result = call_end(self->state, &c, status);
    leave(self);
    return result < 0 ? NULL : derived(self, view);
}

static PyObject *transpose(PyObject *object, PyObject *args)
{
    view_object *self = (view_object *)object;
    PyObject *order;
    int32_t axes[CATERVA_MAX_DIMS];
    caterva_view *view;
    call c;
    if (!PyArg_ParseTuple(args, "O", &order)) return NULL;
    int n = parse_int32s(order, "order", axes);
    if (n < 0) return NULL;
    if (n != caterva_view_ndim(self->view)) {
        PyErr_SetString(PyExc_ValueError, "axes don't match array");
        return NULL;
    }
    if (enter(self) < 0) return NULL;
    call_begin(&c, NULL, NULL);
    caterva_status status = caterva_view_transpose(self->view, axes, &view, &c.err);
    int result = call_end(self->state, &c, status);
    leave(self);
    return result < 0 ? NULL : derived(self, view);
}

typedef caterva_status axis_function(const caterva_view *view, int axis, caterva_view **out,
                                     caterva_error *err);

static PyObject *with_axis(view_object *self, PyObject *args, axis_function *function)
{
    int axis;
    caterva_view *view;
    call c;
    if (!PyArg_ParseTuple(args, "i", &axis) || enter(self) < 0) return NULL;
    call_begin(&c, NULL, NULL);
    caterva_status status = function(self->view, axis, &view, &c.err);
    int result = call_end(self->state, &c, status);
    leave(self);
    return result < 0 ? NULL : derived(self, view);
}

static PyObject *expand(PyObject *self, PyObject *args)
{
    return with_axis((view_object *)self, args, caterva_view_expand);
}

static PyObject *squeeze(PyObject *self, PyObject *args)
{
    return with_axis((view_object *)self, args, caterva_view_squeeze);
}

/* ---- Joins ---------------------------------------------------------------------------- */

/* Makes a view of a whole array. The Python side has checked the argument's type. */
static PyObject *view_of(PyObject *type, PyObject *object)
{
    caterva_view *view;
    call c;
    array_object *array = (array_object *)object;
    if (array_enter(array) < 0) return NULL;
    call_begin(&c, array, NULL);
    caterva_status status = caterva_view_of(array->handle, &view, &c.err);
    int result = call_end(array->state, &c, status);
    array_leave(array);
    if (result < 0) return NULL;
    PyObject *arrays = PyTuple_Pack(1, object);
    if (arrays) return wrap(array->state, (PyTypeObject *)type, view, arrays);
    caterva_view_free(view);
    return NULL;
}

/* Returns the arrays of all views as one tuple. */
static PyObject *gather_arrays(module_state *state, PyObject *views)
{
    PyObject *all = PyTuple_New(0);
    for (Py_ssize_t i = 0; all && i < PyTuple_Size(views); i++) {
        PyObject *view = PyTuple_GetItem(views, i);
        PyObject *more = NULL;
        if (PyObject_TypeCheck(view, state->view_type))
            more = PySequence_Concat(all, ((view_object *)view)->arrays);
        else
            PyErr_SetString(PyExc_TypeError, "expected views");
        Py_DECREF(all);
        all = more;
    }
    return all;
}

static PyObject *join(module_state *state, PyTypeObject *type, PyObject *views, int axis,
                      bool stacked)
{
    Py_ssize_t n = PyTuple_Size(views);
    PyObject *arrays = gather_arrays(state, views);
    if (!arrays) return NULL;
    const caterva_view **parts = PyMem_Calloc((size_t)n + 1, sizeof *parts);
    if (!parts) {
        Py_DECREF(arrays);
        return PyErr_NoMemory();
    }
    for (Py_ssize_t i = 0; i < n; i++)
        parts[i] = ((view_object *)PyTuple_GetItem(views, i))->view;
    caterva_view *view;
    call c;
    call_begin(&c, NULL, NULL);
    caterva_status status = stacked ? caterva_view_stack(parts, (int)n, axis, &view, &c.err)
                                    : caterva_view_concat(parts, (int)n, axis, &view, &c.err);
    int result = call_end(state, &c, status);
    PyMem_Free(parts);
    if (result == 0) return wrap(state, type, view, arrays);
    Py_DECREF(arrays);
    return NULL;
}

PyObject *function_join(PyObject *module, PyObject *args)
{
    PyObject *type, *views;
    int axis, stacked;
    if (!PyArg_ParseTuple(args, "OO!ip", &type, &PyTuple_Type, &views, &axis, &stacked))
        return NULL;
    return join(module_state_of(module), (PyTypeObject *)type, views, axis, stacked != 0);
}

/* ---- Reading and writing ----------------------------------------------------------------- */

typedef caterva_status transfer_function(const caterva_view *view,
                                         const caterva_selection *selection,
                                         const caterva_buffer *buffer, caterva_error *err);

/* Begins a call. With several arrays, exceptions name no file: which one failed is not known. */
static void begin(call *c, const view_object *self, PyObject *progress)
{
    Py_ssize_t n = PyTuple_Size(self->arrays);
    call_begin(c, array_at(self, 0), progress);
    if (n > 1) c->place = NULL;
}

static PyObject *move_items(view_object *self, PyObject *args, transfer_function *function)
{
    transfer t;
    call c;
    array_object *first = array_at(self, 0);
    if (transfer_parse(args, first->item_size, &t) < 0 || enter(self) < 0) return NULL;
    begin(&c, self, first->progress);
    caterva_status status = function(self->view, &t.selection, &t.buffer, &c.err);
    int result = call_end(self->state, &c, status);
    leave(self);
    if (result < 0) return NULL;
    Py_RETURN_NONE;
}

static PyObject *read_items(PyObject *self, PyObject *args)
{
    return move_items((view_object *)self, args, caterva_view_read);
}

static PyObject *write_items(PyObject *self, PyObject *args)
{
    return move_items((view_object *)self, args, caterva_view_write);
}

static PyObject *read_begin(PyObject *self, PyObject *args)
{
    origin from = origin_view(self);
    if (origin_enter(&from) < 0) return NULL;
    PyObject *request = request_begin(&from, args);
    origin_leave(&from);
    return request;
}

int view_copy(view_object *self, const char *url, PyObject *place,
              caterva_copy_options *options, PyObject *progress, caterva_array **out)
{
    call c;
    if (enter(self) < 0) return -1;
    options->progress = call_progress(&c);
    begin(&c, self, progress);
    c.reporter = &c;
    caterva_status status = caterva_view_copy(self->view, url, options, out, &c.err);
    if (status != CATERVA_ECORRUPT) c.place = place;
    int result = call_end(self->state, &c, status);
    leave(self);
    if (result < 0 && status == CATERVA_OK) caterva_discard(*out);
    return result;
}

/* ---- The type ---------------------------------------------------------------------------- */

static PyMethodDef methods[] = {
    {"_of", view_of, METH_O | METH_CLASS, NULL},
    {"_select", select_axes, METH_VARARGS, NULL},
    {"_transpose", transpose, METH_VARARGS, NULL},
    {"_expand", expand, METH_VARARGS, NULL},
    {"_squeeze", squeeze, METH_VARARGS, NULL},
    {"_read_begin", read_begin, METH_VARARGS, NULL},
    {"_statistics", view_statistics, METH_VARARGS, NULL},
    {"_histogram", view_histogram, METH_VARARGS, NULL},
    {"_reduce", view_reduce, METH_VARARGS, NULL},
    {"_read", read_items, METH_VARARGS, NULL},
    {"_write", write_items, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef members[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(view_object, weak), READONLY, NULL},
    {"shape", T_OBJECT_EX, offsetof(view_object, shape), READONLY, "Length of each axis."},
    {"dtype", T_OBJECT_EX, offsetof(view_object, descr), READONLY,
     "numpy.dtype of the items."},
    {"_arrays", T_OBJECT_EX, offsetof(view_object, arrays), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_dealloc, dealloc},
    {Py_tp_traverse, traverse},
    {Py_tp_methods, methods},
    {Py_tp_members, members},
    {Py_tp_doc, "A view of arrays; base of caterva.View."},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "caterva._caterva.View",
    .basicsize = sizeof(view_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC |
             Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = slots,
};

int view_add_type(PyObject *module, module_state *state)
{
    PyObject *type = PyType_FromModuleAndSpec(module, &spec, NULL);
    state->view_type = (PyTypeObject *)type;
    return type ? PyModule_AddObjectRef(module, "View", type) : -1;
}

/* Methods of an Array that change its whole state: commit, rollback, refresh, upkeep, close. */
#include "array.h"
#include <caterva_upkeep.h>

static PyObject *close_array(PyObject *object, PyObject *args)
{
    array_object *self = (array_object *)object;
    int commit = 1;
    if (!PyArg_ParseTuple(args, "|p", &commit)) return NULL;
    if (handle_shut_gate(self) < 0) return NULL;
    int result = commit ? handle_close(self) : handle_discard(self);
    gate_open(&self->gate);
    if (result < 0) return NULL;
    Py_RETURN_NONE;
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
    atomic_store(&self->drops, status != CATERVA_OK);
    int result = call_end(self->state, &c, status);
    array_leave(self);
    if (result < 0) return NULL;
    Py_RETURN_NONE;
}

typedef caterva_status turn_function(caterva_array *array, caterva_error *err);

/* Calls rollback or refresh, which change the handle's state, perhaps with another shape. */
static PyObject *turn(array_object *self, turn_function *function)
{
    if (handle_shut_gate(self) < 0) return NULL;
    int result = -1;
    if (!self->handle) {
        PyErr_SetString(PyExc_ValueError, "the array is closed");
    } else {
        call c;
        call_begin(&c, self, self->progress);
        caterva_status status = function(self->handle, &c.err);
        result = call_end(self->state, &c, status);
        PyObject *kind, *value, *traceback;
        PyErr_Fetch(&kind, &value, &traceback); /* an interruption when the call had ended */
        if (status == CATERVA_OK && handle_look_again(self) < 0) {
            result = -1;
            handle_abandon(self);
        }
        if (kind) PyErr_Restore(kind, value, traceback);
    }
    gate_open(&self->gate);
    if (result < 0) return NULL;
    Py_RETURN_NONE;
}

static PyObject *rollback(PyObject *object, PyObject *unused)
{
    (void)unused;
    array_object *self = (array_object *)object;
    PyObject *result = turn(self, caterva_rollback);
    if (result) atomic_store(&self->drops, false);
    return result;
}

static PyObject *refresh(PyObject *self, PyObject *unused)
{
    (void)unused;
    return turn((array_object *)self, caterva_refresh);
}

/* ---- Upkeep ---------------------------------------------------------------- */

typedef caterva_status upkeep_function(const char *url, const caterva_upkeep_options *options,
                                       caterva_error *err);

/* Rejects arrays in memory, which have no file, and parts of a job, whose place is that of the
 * whole array. */
static int check_keeps_up(array_object *self)
{
    if (handle_in_memory(self)) {
        PyErr_SetString(PyExc_ValueError,
                        "an array in memory has no file to compact or seal");
        return -1;
    }
    if (!self->is_part) return 0;
    static const caterva_error refused = {
        .code = CATERVA_EUNSUPPORTED,
        .position = -1,
        .message =
            "a part of a job cannot be compacted or sealed: write items, then finish it"};
    return raise_error(self->state, &refused, self->place);
}

/* Closes the array, runs `function` on its file, and opens it again, also after an interruption.
 * Call while the gate is shut. If the array cannot be opened again it stays closed. */
static int keep_up(array_object *self, upkeep_function *function, PyObject *progress)
{
    PyObject *place = place_encoded(self->place);
    if (!place || (handle_close(self) < 0 && self->handle)) {
        Py_XDECREF(place);
        return -1;
    }
    PyObject *kind, *value, *traceback;
    PyErr_Fetch(&kind, &value, &traceback); /* an interruption when the handle was closed */
    const char *url = PyBytes_AsString(place);
    caterva_upkeep_options options = CATERVA_UPKEEP_INIT;
    options.durability = self->again.durability;
    options.progress = call_progress(NULL);
    caterva_error failed;
    call c;
    call_begin(&c, self, progress);
    caterva_status status = kind ? CATERVA_OK : function(url, &options, &c.err);
    if (status != CATERVA_OK) failed = c.err;
    c.defers_signals = true;
    caterva_status opened = caterva_open(url, &self->again, &self->handle, &c.err);
    self->n_opened++;
    if (opened != CATERVA_OK) self->handle = NULL;
    if (status != CATERVA_OK) c.err = failed;
    int result = call_end(self->state, &c, status != CATERVA_OK ? status : opened);
    Py_DECREF(place);
    if (!kind) return result;
    PyErr_Restore(kind, value, traceback);
    return -1;
}

/* (0: compact, 1: seal; progress) */
static PyObject *upkeep(PyObject *object, PyObject *args)
{
    array_object *self = (array_object *)object;
    int which;
    PyObject *progress;
    if (!PyArg_ParseTuple(args, "iO", &which, &progress)) return NULL;
    if (check_keeps_up(self) < 0) return NULL;
    if (handle_shut_gate(self) < 0) return NULL;
    int result = -1;
    if (!self->handle)
        PyErr_SetString(PyExc_ValueError, "the array is closed");
    else
        result = keep_up(self, which == 0 ? caterva_compact : caterva_seal, progress);
    gate_open(&self->gate);
    if (result < 0) return NULL;
    Py_RETURN_NONE;
}

static PyObject *complete(PyObject *self, PyObject *unused)
{
    (void)unused;
    atomic_store(&((array_object *)self)->drops, false);
    Py_RETURN_NONE;
}

PyMethodDef array_life_methods[] = {
    {"_complete", complete, METH_NOARGS,
     "_complete($self)\n--\n\nThe new array is complete: its release commits it from now "
     "on."},
    {"_upkeep", upkeep, METH_VARARGS, NULL},
    {"_close", close_array, METH_VARARGS,
     "_close($self, commit=True, /)\n--\n\n"
     "Commit or drop pending changes and release the handle; it stays open if the commit\n"
     "fails."},
    {"commit", commit, METH_NOARGS,
     "commit($self)\n--\n\n"
     "Make all pending changes durable and visible to others, all of them or none.\n\n"
     "If this fails or is stopped, the committed state is untouched and all changes "
     "stay\n"
     "pending: commit again, for example after freeing disk space, or `rollback`. Ctrl-C "
     "that "
     "comes\n"
     "too late to stop it, as during a sync, is raised when the commit has succeeded.\n\n"
     "Examples\n--------\n"
     ">>> import caterva\n"
     ">>> a = caterva.zeros(4, dtype=\"i4\", path=\"commit.b2nd\")\n"
     ">>> a[1:3] = 7\n"
     ">>> a.commit()\n"
     ">>> caterva.open(\"commit.b2nd\")[:]\n"
     "array([0, 7, 7, 0], dtype=int32)\n"},
    {"rollback", rollback, METH_NOARGS,
     "rollback($self)\n--\n\n"
     "Drop all changes since the last commit.\n\n"
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
     "Change an array that is open for reading to the last committed state.\n\n"
     "The shape may change. Dtype and number of axes are fixed for the life of an `Array`: "
     "if\n"
     "an array with others has replaced it, this one is closed.\n\n"
     "Raises\n------\n"
     "NotFoundError\n"
     "    If nothing exists any more; the array keeps its state.\n"
     "ValueError\n"
     "    If an array of another dtype or number of axes is there now. This one is closed\n"
     "    then, and its views cannot be read: open it again.\n\n"
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

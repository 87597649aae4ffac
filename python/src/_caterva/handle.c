/* The handle of an Array: its description, its release, and its reopening in a forked child. */
#include "handle.h"

#include "remote.h"
#include "source.h"

#include <caterva_store.h>
#include <string.h>
#include <unistd.h>

/* ---- Description ------------------------------------------------------------- */

PyObject *place_encoded(PyObject *place)
{
    PyObject *bytes;
    return PyUnicode_FSConverter(place, &bytes) ? bytes : NULL;
}

bool handle_in_memory(const array_object *self)
{
    if (self->source) return true;
    return !self->place || PyUnicode_CompareWithASCIIString(self->place, "mem:") == 0;
}

bool handle_is_a_parents(const array_object *self) { return self->process != getpid(); }

static int get_info(array_object *self, const caterva_info **info)
{
    call c;
    call_begin(&c, self, NULL);
    caterva_status status = caterva_info_get(self->handle, info, &c.err);
    return call_end(self->state, &c, status);
}

/* Returns the dtype. If the array has this package's metalayer "ml_dtype", the metalayer names a
 * dtype of the package ml_dtypes. */
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
    if (!self->writable) memcpy(self->state_id, info->state_id, sizeof self->state_id);
    for (int d = 0; d < info->ndim; d++)
        atomic_store_explicit(&self->shape[d], info->shape[d], memory_order_relaxed);
}

static int look(array_object *self)
{
    const caterva_info *info;
    if (get_info(self, &info) < 0) return -1;
    set_shape(self, info);
    caterva_info_release(info);
    return 0;
}

int array_look(array_object *self, int result)
{
    PyObject *kind, *value, *traceback;
    if (result == 0) return look(self);
    PyErr_Fetch(&kind, &value, &traceback);
    if (look(self) < 0) PyErr_Clear();
    PyErr_Restore(kind, value, traceback);
    return -1;
}

int handle_look_first(array_object *self)
{
    const caterva_info *info;
    if (get_info(self, &info) < 0) return -1;
    set_shape(self, info);
    int result = set_type(self, info);
    caterva_info_release(info);
    return result;
}

/* ---- Release ----------------------------------------------------------------- */

_Thread_local int handle_calls_back;

/* A handle to be closed by the main thread. `remote` is kept alive because closing the handle may
 * call its functions. */
typedef struct leftover {
    caterva_array *handle;
    PyObject *remote;
    struct leftover *next;
} leftover;

static _Atomic(leftover *) leftovers;

static int close_leftovers(void *unused)
{
    (void)unused;
    for (leftover *l = atomic_exchange(&leftovers, NULL), *next; l; l = next) {
        next = l->next;
        PyThreadState *thread = PyEval_SaveThread();
        caterva_discard(l->handle);
        PyEval_RestoreThread(thread);
        Py_XDECREF(l->remote);
        PyMem_Free(l);
    }
    return 0;
}

/* Queues the handle for the main thread to close. Returns false if an allocation fails. */
static bool leave_for_later(array_object *self, caterva_array *handle)
{
    leftover *l = PyMem_Calloc(1, sizeof *l);
    if (!l) return false;
    l->handle = handle;
    Py_XINCREF(l->remote = self->remote);
    l->next = atomic_load(&leftovers);
    while (!atomic_compare_exchange_weak(&leftovers, &l->next, l)) continue;
    (void)Py_AddPendingCall(close_leftovers, NULL); /* queue full: a later call closes l */
    return true;
}

int handle_discard(array_object *self)
{
    caterva_array *handle = self->handle;
    self->handle = NULL;
    if (!handle || gate_lost_threads(&self->gate)) return 0; /* a lock may be held forever */
    if (handle_calls_back > 0 && !self->writable && leave_for_later(self, handle)) return 0;
    call c;
    call_begin(&c, self, self->progress);
    caterva_discard(handle);
    return call_end(self->state, &c, CATERVA_OK);
}

static bool may_commit(array_object *self)
{
    return self->handle && self->writable && !self->is_part && !handle_in_memory(self) &&
           !handle_is_a_parents(self) && !gate_lost_threads(&self->gate);
}

/* Commits and closes. If the commit fails, the handle stays open with its pending changes. */
static int commit_and_close(array_object *self, bool interruptible)
{
    caterva_array *handle = self->handle;
    self->handle = NULL;
    call c;
    call_begin(&c, self, interruptible ? self->progress : NULL);
    c.defers_signals = !interruptible;
    caterva_status status = caterva_commit(handle, &c.err);
    bool closes = status == CATERVA_OK;
    c.defers_signals = false;
    if (closes) status = caterva_close(handle, &c.err); /* nothing is pending any more */
    atomic_store(&self->drops, !closes);
    int result = call_end(self->state, &c, status);
    if (!closes) self->handle = handle;
    return result;
}

int handle_close(array_object *self)
{
    return may_commit(self) ? commit_and_close(self, true) : handle_discard(self);
}

int handle_drop(array_object *self)
{
    int result = 0;
    if (!atomic_load(&self->drops) && may_commit(self))
        result = commit_and_close(self, false);
    if (self->handle) handle_abandon(self);
    return result;
}

void handle_abandon(array_object *self)
{
    PyObject *kind, *value, *traceback;
    PyErr_Fetch(&kind, &value, &traceback);
    (void)handle_discard(self);
    PyErr_Restore(kind, value, traceback);
}

/* ---- Other states and handles ---------------------------------------------------- */

int handle_look_again(array_object *self)
{
    const caterva_info *info;
    if (get_info(self, &info) < 0) return -1;
    PyObject *descr = descr_of(self, info);
    bool same = descr && info->ndim == self->ndim &&
                PyArray_EquivTypes((PyArray_Descr *)descr, self->descr);
    if (same) set_shape(self, info);
    if (descr && !same)
        PyErr_Format(PyExc_ValueError,
                     "%S is another array now, with %d axes of %R: this one has been closed, "
                     "open it again",
                     self->place ? self->place : Py_None, info->ndim, descr);
    Py_XDECREF(descr);
    caterva_info_release(info);
    return same ? 0 : -1;
}

/* Checks, after reopening in a forked child, that the file still has the parent's commit. */
static int check_state(array_object *self)
{
    const caterva_info *info;
    if (get_info(self, &info) < 0) return -1;
    bool same = memcmp(info->state_id, self->state_id, sizeof self->state_id) == 0;
    caterva_info_release(info);
    if (same) return 0;
    static const caterva_error stale = {.code = CATERVA_ESTALE,
                                        .position = -1,
                                        .message =
                                            "the array was changed after it was opened and "
                                            "before this process, a forked child, "
                                            "had to open it again"};
    return raise_error(self->state, &stale, self->place);
}

static int look_or_abandon(array_object *self)
{
    if (check_state(self) == 0 && handle_look_again(self) == 0) return 0;
    handle_abandon(self);
    return -1;
}

/* Reopens an array that reads a Python object. A lock of that object may be held forever too, so
 * its method `renew` runs first. */
static int reopen_source(array_object *self)
{
    PyObject *renewed = PyObject_CallMethod(self->source, "renew", NULL);
    PyObject *name =
        renewed ? PyUnicode_AsEncodedString(self->place, "utf-8", "backslashreplace") : NULL;
    Py_XDECREF(renewed);
    if (!name) return -1;
    const char *text = PyBytes_AsString(name);
    call c;
    call_begin(&c, self, NULL);
    caterva_status status =
        source_open(self->state, self->source, text, &self->again, &self->handle, &c.err);
    int result = call_end(self->state, &c, status);
    Py_DECREF(name);
    return result < 0 ? -1 : look_or_abandon(self);
}

/* Reopens the file in a forked child whose parent was using the handle in other threads. The locks
 * that those threads held are held forever here, so the old handle is abandoned. Pending changes of
 * the parent, and arrays that are only in memory, are lost to the child. */
static int reopen(array_object *self)
{
    if (!self->handle) return 0;
    self->handle = NULL;
    self->n_opened++;
    if (self->source) return reopen_source(self);
    bool is_file = !handle_in_memory(self);
    if (self->writable || !(is_file || self->frame)) {
        static const caterva_error refused = {.code = CATERVA_EBUSY,
                                              .position = -1,
                                              .message =
                                                  "the array belongs to the parent process, "
                                                  "which was using it in another thread when "
                                                  "this process was forked"};
        return raise_error(self->state, &refused, self->place);
    }
    PyObject *bytes = is_file ? place_encoded(self->place) : self->frame;
    if (!bytes) return -1;
    const char *start = PyBytes_AsString(bytes);
    size_t size = (size_t)PyBytes_Size(bytes);
    call c;
    call_begin(&c, self, NULL);
    caterva_status status =
        is_file ? caterva_open(start, &self->again, &self->handle, &c.err)
                : caterva_frame_open(start, size, 0, &self->again, &self->handle, &c.err);
    int result = call_end(self->state, &c, status);
    if (is_file) Py_DECREF(bytes);
    return result < 0 ? -1 : look_or_abandon(self);
}

static int recover(array_object *self)
{
    int result = reopen(self);
    gate_open(&self->gate);
    return result;
}

/* ---- Entering ----------------------------------------------------------------- */

_Thread_local bool handle_reports;

static int fail_shut(void)
{
    PyErr_SetString(
        PyExc_ValueError,
        "the array is being closed, refreshed, compacted or sealed by another thread, which "
        "waits for this callback");
    return -1;
}

int array_enter(array_object *self)
{
    if (remote_check_thread() < 0) return -1;
    if (call_is_under_way(self)) {
        PyErr_SetString(PyExc_RuntimeError,
                        "an array cannot be used by its own progress function");
        return -1;
    }
    if (gate_lost_threads(&self->gate) && recover(self) < 0) return -1;
    if (!handle_reports)
        gate_enter(&self->gate);
    else if (!gate_enter_at_once(&self->gate))
        return fail_shut();
    if (self->handle) return 0;
    gate_leave(&self->gate);
    PyErr_SetString(PyExc_ValueError, "the array is closed");
    return -1;
}

int handle_shut_gate(array_object *self)
{
    if (!call_is_under_way(self)) {
        if (gate_lost_threads(&self->gate) && recover(self) < 0) return -1;
        if (handle_reports && gate_is_shut(&self->gate)) return fail_shut();
        gate_shut(&self->gate);
        return 0;
    }
    PyErr_SetString(PyExc_RuntimeError,
                    "an array cannot be closed by its own progress function");
    return -1;
}

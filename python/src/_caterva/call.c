/* Calls of the library: signals, progress and exceptions. On a thread that is in a call, the
 * thread-local variable `current` points to the call. On the library's threads it is NULL, and
 * Python is not called: signals are handled on the calling thread only. */
#include "call.h"

#include "foreign.h"
#include "source.h"

#include <string.h>
#include <time.h>

enum { PATIENCE_NS = 50 * 1000 * 1000 }; /* between two calls of Python */

static _Thread_local call *current;

static int64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

bool call_is_under_way(const void *owner)
{
    for (const call *c = current; c; c = c->outer)
        if (c->owner == owner) return true;
    return false;
}

void call_begin(call *c, const void *owner, PyObject *progress)
{
    c->owner = owner;
    c->place = owner ? ((const call_owner *)owner)->place : NULL;
    c->outer = current;
    c->progress = progress == Py_None ? NULL : progress;
    c->reporter = NULL;
    if (owner &&
        PyObject_TypeCheck((PyObject *)owner, ((const call_owner *)owner)->state->tree_type))
        c->reporter = CALL_TREE;
    c->reported = c->defers_signals = false;
    c->next = c->done = c->total = 0;
    current = c;
    c->thread = PyEval_SaveThread();
}

/* Calls the progress function; the caller has the GIL. A result other than 0 stops the call. */
static int report_numbers(call *c)
{
    if (!c->progress || c->total == 0) return 0; /* total 0: no numbers yet */
    c->reported = true;
    PyObject *answer =
        PyObject_CallFunction(c->progress, "LL", (long long)c->done, (long long)c->total);
    if (!answer) return -1;
    int stop = PyObject_IsTrue(answer);
    Py_DECREF(answer);
    return stop;
}

static int call_python(call *c)
{
    PyEval_RestoreThread(c->thread);
    int stop = PyErr_Occurred() ? 1 : PyErr_CheckSignals();
    if (!stop) stop = report_numbers(c);
    c->thread = PyEval_SaveThread();
    return stop;
}

static void note(call *c, int64_t done, int64_t total)
{
    c->reported = c->reported && done == c->done && total == c->total;
    c->done = done;
    c->total = total;
}

const char call_tree;

/* The caterva_progress.report of all handles and calls; runs without the GIL on any thread. Keeps
 * the numbers of the reporter, and calls Python only on the calling thread. */
static int hook(void *context, int64_t done, int64_t total)
{
    call *c = current;
    bool is_handle = !context || context == CALL_TREE;
    if (!c && !is_handle) note(context, done, total); /* call_end reports the last numbers */
    if (!c || (!is_handle && context != c)) return 0;
    if (c->reporter == context) note(c, done, total);
    int64_t time = now();
    if (c->next == 0) c->next = time + PATIENCE_NS;
    if (time < c->next || c->defers_signals) return 0;
    c->next = time + PATIENCE_NS;
    return call_python(c);
}

caterva_progress call_progress(void *context)
{
    return (caterva_progress){hook, context, CATERVA_NONE, {0}};
}

PyObject *text_of(const char *text)
{
    return PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "backslashreplace");
}

PyObject *name_decoded(const char *name)
{
    return PyUnicode_DecodeUTF8(name, (Py_ssize_t)strlen(name), "surrogateescape");
}

PyObject *name_encoded(PyObject *name)
{
    PyObject *bytes = PyUnicode_AsEncodedString(name, "utf-8", "surrogateescape");
    if (!bytes || strlen(PyBytes_AsString(bytes)) == (size_t)PyBytes_Size(bytes))
        return bytes;
    PyErr_SetString(PyExc_ValueError, "embedded null character");
    Py_DECREF(bytes);
    return NULL;
}

int raise_error(module_state *state, const caterva_error *err, PyObject *place)
{
    bool is_source;
    PyObject *exception = source_failure(state, err->sys_errno, &is_source);
    if (!exception)
        exception = PyObject_CallFunction(
            state->raise, "iiLNO", (int)err->code, is_source ? 0 : err->sys_errno,
            (long long)err->position, text_of(err->message), place ? place : Py_None);
    if (exception) PyErr_SetObject((PyObject *)Py_TYPE(exception), exception);
    Py_XDECREF(exception);
    return -1;
}

/* Adds the library's message to the current exception as a note: it names what was not finished. */
static void add_note(const caterva_error *err)
{
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    PyObject *done = PyObject_CallMethod(value, "add_note", "N", text_of(err->message));
    if (!done) PyErr_Clear();
    Py_XDECREF(done);
    PyErr_Restore(type, value, trace);
}

int call_end(module_state *state, call *c, caterva_status status)
{
    PyEval_RestoreThread(c->thread);
    int result = PyErr_Occurred() ? -1 : 0;
    bool all_reported = c->reported && c->done == c->total; /* false if a pool thread was last */
    if (result == 0 && status == CATERVA_OK && c->progress && !all_reported && c->total > 0) {
        c->done = c->total;
        if (report_numbers(c) < 0) result = -1;
    }
    current = c->outer;
    bool has_detail =
        status == CATERVA_ESTOPPED && strncmp(c->err.message, "stopped: ", 9) == 0;
    if (result < 0 && has_detail) add_note(&c->err);
    if (result < 0 || status == CATERVA_OK) return result;
    c->err.code = status;
    if (!foreign_was_refused()) return raise_error(state, &c->err, c->place);
    PyErr_SetNone(PyExc_SystemExit); /* ends a daemon thread without a traceback */
    return -1;
}

void call_report(PyObject *type)
{
    if (!PyErr_ExceptionMatches(PyExc_KeyboardInterrupt)) {
        PyErr_WriteUnraisable(type);
        return;
    }
    PyErr_Clear();
    PyErr_SetInterrupt();
}

/* ---- The property ------------------------------------------------------------ */

PyObject *call_get_progress(PyObject *owner, void *unused)
{
    (void)unused;
    PyObject *progress;
    Py_BEGIN_CRITICAL_SECTION(owner);
    progress = ((call_owner *)owner)->progress;
    if (!progress) progress = Py_None;
    Py_INCREF(progress);
    Py_END_CRITICAL_SECTION();
    return progress;
}

int call_check_progress(PyObject *value)
{
    if (!value || value == Py_None || PyCallable_Check(value)) return 0;
    PyErr_SetString(PyExc_TypeError, "progress must be a function (done, total) or None");
    return -1;
}

PyObject *call_swap_progress(PyObject *owner, PyObject *value)
{
    PyObject *before;
    call_owner *self = (call_owner *)owner;
    Py_BEGIN_CRITICAL_SECTION(owner);
    before = self->progress;
    self->progress = value == Py_None ? NULL : value;
    Py_XINCREF(self->progress);
    Py_END_CRITICAL_SECTION();
    return before;
}

/* A store that reads a Python object. The library may call its functions on any thread; they take
 * the GIL while Python's methods run. If a method raises an exception, a dict keeps it under a
 * number, which the library passes on as errno; the end of the call raises the exception again. */
#include "source.h"

#include "array.h"
#include "foreign.h"
#include "functions.h"
#include "options.h"

#include <caterva_store.h>
#include <stdio.h>
#include <string.h>

typedef struct source {
    PyObject *object;
    module_state *state; /* the module outlives its arrays */
} source;

/* Takes the GIL, unless the interpreter is shutting down. */
static foreign enter(void)
{
    handle_calls_back++;
    return foreign_enter();
}

static void leave(foreign gil)
{
    foreign_leave(gil);
    handle_calls_back--;
}

/* ---- Exceptions ---------------------------------------------------------------- */

enum { FIRST_NUMBER = 1 << 30, MOST_KEPT = 64 };

/* A KeyboardInterrupt that ended read_many. The library then reads the missing ranges one by one,
 * and the first of these reads on this thread raises it again. */
static _Thread_local PyObject *interrupt;

static PyObject *take_exception(void)
{
    PyObject *kind, *value, *traceback;
    PyErr_Fetch(&kind, &value, &traceback);
    PyErr_NormalizeException(&kind, &value, &traceback);
    if (value && traceback) PyException_SetTraceback(value, traceback);
    Py_XDECREF(kind);
    Py_XDECREF(traceback);
    return value;
}

/* Keeps the exception (steals the reference) and returns its number. */
static int keep_exception(module_state *state, PyObject *exception)
{
    static atomic_uint n;
    unsigned number = atomic_fetch_add(&n, 1) % (1u << 29);
    PyObject *key = PyLong_FromUnsignedLong(number), *old = NULL;
    if (number >= MOST_KEPT) old = PyLong_FromUnsignedLong(number - MOST_KEPT);
    if (key) (void)PyDict_SetItem(state->failures, key, exception);
    if (old && PyDict_Contains(state->failures, old) > 0)
        (void)PyDict_DelItem(state->failures, old);
    Py_XDECREF(key);
    Py_XDECREF(old);
    Py_DECREF(exception);
    PyErr_Clear();
    return FIRST_NUMBER + (int)number;
}

static void describe(PyObject *exception, caterva_error *err)
{
    PyObject *text = PyUnicode_FromFormat("%S: %S", Py_TYPE(exception), exception);
    const char *utf8 = text ? PyUnicode_AsUTF8AndSize(text, NULL) : NULL;
    (void)snprintf(err->message, sizeof err->message, "%s", utf8 ? utf8 : "an exception");
    Py_XDECREF(text);
    PyErr_Clear();
}

/* Fills *err from the current exception, and returns CATERVA_EIO. */
static caterva_status fail(const source *s, caterva_error *err)
{
    PyObject *exception = take_exception();
    if (!exception) return CATERVA_EIO;
    describe(exception, err);
    err->sys_errno = keep_exception(s->state, exception);
    return CATERVA_EIO;
}

static caterva_status fail_ending(caterva_error *err)
{
    (void)snprintf(err->message, sizeof err->message, "the interpreter is shutting down");
    return CATERVA_EIO;
}

PyObject *source_failure(module_state *state, int sys_errno, bool *is_ours)
{
    *is_ours = sys_errno >= FIRST_NUMBER;
    if (!*is_ours) return NULL;
    PyObject *key = PyLong_FromLong(sys_errno - FIRST_NUMBER);
    PyObject *found = key ? PyDict_GetItemWithError(state->failures, key) : NULL;
    Py_XINCREF(found);
    if (found) (void)PyDict_DelItem(state->failures, key);
    Py_XDECREF(key);
    PyErr_Clear();
    return found;
}

/* ---- Called by the library --------------------------------------------------------- */

static caterva_status get_size(void *context, uint64_t *size, caterva_error *err)
{
    source *s = context;
    foreign gil = enter();
    if (!gil.is_in) {
        leave(gil);
        return fail_ending(err);
    }
    PyObject *n = PyObject_CallMethod(s->object, "size", NULL);
    *size = n ? PyLong_AsUnsignedLongLong(n) : 0;
    Py_XDECREF(n);
    caterva_status status = PyErr_Occurred() ? fail(s, err) : CATERVA_OK;
    leave(gil);
    return status;
}

/* Copies the bytes that a method returned and sets *done to their number. Returns -1 with an
 * exception if there are more than `size`. */
static int copy_bytes(PyObject *bytes, uint64_t pos, void *dst, size_t size, size_t *done)
{
    Py_buffer view;
    if (PyObject_GetBuffer(bytes, &view, PyBUF_SIMPLE) < 0) return -1;
    *done = (size_t)view.len;
    if (*done <= size) memcpy(dst, view.buf, *done);
    PyBuffer_Release(&view);
    if (*done <= size) return 0;
    PyErr_Format(PyExc_ValueError, "%zu bytes at %llu were requested, but %zu returned", size,
                 (unsigned long long)pos, *done);
    return -1;
}

static caterva_status read_some(void *context, uint64_t pos, void *dst, size_t size,
                                size_t *done, caterva_error *err)
{
    source *s = context;
    foreign gil = enter();
    if (!gil.is_in) {
        leave(gil);
        return fail_ending(err);
    }
    PyObject *bytes = NULL;
    if (interrupt) {
        PyErr_SetObject((PyObject *)Py_TYPE(interrupt), interrupt);
        Py_CLEAR(interrupt);
    } else {
        bytes = PyObject_CallMethod(s->object, "read", "Kn", (unsigned long long)pos,
                                    (Py_ssize_t)size);
    }
    bool is_read = bytes && copy_bytes(bytes, pos, dst, size, done) == 0;
    Py_XDECREF(bytes);
    caterva_status status = is_read ? CATERVA_OK : fail(s, err);
    leave(gil);
    return status;
}

static PyObject *list_of(const caterva_store_range *ranges, size_t n)
{
    PyObject *list = PyList_New((Py_ssize_t)n);
    for (size_t i = 0; list && i < n; i++) {
        PyObject *pair = Py_BuildValue("Kn", (unsigned long long)ranges[i].pos,
                                       (Py_ssize_t)ranges[i].size);
        if (!pair || PyList_SetItem(list, (Py_ssize_t)i, pair) < 0) Py_CLEAR(list);
    }
    return list;
}

/* Copies the ranges and reports complete ones. The library reads the others one by one. */
static int hand_on(PyObject *each, const caterva_store_range *ranges, size_t n,
                   int (*arrived)(void *token, size_t range), void *token)
{
    size_t done;
    int stop = 0;
    for (size_t i = 0; !stop && i < n; i++) {
        PyObject *bytes = PySequence_GetItem(each, (Py_ssize_t)i);
        int copied =
            bytes ? copy_bytes(bytes, ranges[i].pos, ranges[i].dst, ranges[i].size, &done)
                  : -1;
        Py_XDECREF(bytes);
        if (copied < 0) return -1;
        if (done < ranges[i].size) continue;
        PyThreadState *thread = PyEval_SaveThread();
        stop = arrived(token, i);
        PyEval_RestoreThread(thread);
    }
    return stop;
}

/* Discards an exception of read_many, because reading each range alone will raise it again. An
 * interrupt is kept for the next of these reads. */
static void give_up_wave(void)
{
    if (!PyErr_Occurred()) return;
    if (PyErr_ExceptionMatches(PyExc_Exception)) {
        PyErr_Clear();
        return;
    }
    Py_XDECREF(interrupt);
    interrupt = take_exception();
}

static caterva_status read_many(void *context, const caterva_store_range *ranges, size_t n,
                                int (*arrived)(void *token, size_t range), void *token,
                                caterva_error *err)
{
    source *s = context;
    foreign gil = enter();
    if (!gil.is_in) {
        leave(gil);
        return fail_ending(err);
    }
    PyObject *list = list_of(ranges, n);
    PyObject *each = list ? PyObject_CallMethod(s->object, "read_many", "O", list) : NULL;
    int stopped = each ? hand_on(each, ranges, n, arrived, token) : -1;
    Py_XDECREF(each);
    Py_XDECREF(list);
    give_up_wave();
    leave(gil);
    return stopped > 0 ? CATERVA_ESTOPPED : stopped < 0 ? CATERVA_EIO : CATERVA_OK;
}

static void close_source(void *context)
{
    source *s = context;
    foreign gil = enter();
    if (gil.is_in) Py_CLEAR(s->object);
    if (gil.is_in) PyMem_Free(s);
    leave(gil);
}

/* ---- Opening ------------------------------------------------------------------------- */

static source *new_source(module_state *state, PyObject *object)
{
    foreign gil = enter();
    source *s = PyMem_Calloc(1, sizeof *s);
    if (s) {
        s->state = state;
        Py_INCREF(s->object = object);
    }
    leave(gil);
    return s;
}

caterva_status source_open(module_state *state, PyObject *object, const char *name,
                           const caterva_open_options *options, caterva_array **out,
                           caterva_error *err)
{
    caterva_store store = CATERVA_STORE_INIT;
    source *s = new_source(state, object);
    if (!s) {
        *err = (caterva_error){.code = CATERVA_ENOMEM, .position = -1};
        (void)snprintf(err->message, sizeof err->message, "out of memory");
        return CATERVA_ENOMEM;
    }
    store.context = s;
    store.name = name;
    store.size = get_size;
    store.read = read_some;
    store.read_many = read_many;
    store.close = close_source;
    caterva_status status = caterva_store_open(&store, options, out, err);
    if (status != CATERVA_OK) close_source(s);
    return status;
}

/* (type, source, name, options, progress) */
PyObject *function_open_source(PyObject *module, PyObject *args)
{
    module_state *state = module_state_of(module);
    PyObject *type, *object, *place, *dict, *progress;
    array_birth birth = {0};
    call c;
    if (!PyArg_ParseTuple(args, "OOUO!O", &type, &object, &place, &PyDict_Type, &dict,
                          &progress) ||
        array_type_check(state, type) < 0 || open_options_parse(dict, &birth.again) < 0 ||
        interpreter_check("read a Python object") < 0)
        return NULL;
    PyObject *name = PyUnicode_AsEncodedString(place, "utf-8", "backslashreplace");
    if (!name) return NULL;
    const char *text = PyBytes_AsString(name);
    call_begin(&c, NULL, progress);
    c.place = place;
    caterva_status status =
        source_open(state, object, text, &birth.again, &birth.handle, &c.err);
    int result = call_end(state, &c, status);
    Py_DECREF(name);
    if (result < 0) {
        if (status == CATERVA_OK) caterva_discard(birth.handle);
        return NULL;
    }
    birth.place = place;
    birth.source = object;
    birth.progress = progress;
    return array_wrap(state, (PyTypeObject *)type, &birth);
}

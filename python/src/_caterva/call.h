/* A call of the library: runs without the GIL, checks for signals, calls a progress function in
 * Python, and turns the status into an exception.
 *
 *     call c;
 *     call_begin(&c, array, progress);
 *     status = caterva_...(..., &c.err);
 *     if (call_end(state, &c, status) < 0) return NULL;
 *
 * The library may report from any thread; Python is called on the calling thread only,
 * which takes part in all work. */
#ifndef CALL_H
#define CALL_H

#include "extension.h"

/* The first members of every object that has calls. */
typedef struct call_owner {
    PyObject_HEAD module_state *state; /* the owner keeps the module alive */
    PyObject *place;                   /* str: path or URL; or NULL         */
    PyObject *progress;                /* callable, or NULL                 */
} call_owner;

typedef struct call {
    caterva_error err;
    struct call *outer; /* the call of this thread whose progress function or signal handler
                           made this call; or NULL                             */
    const void *owner;  /* the array or tree that is in use, or NULL          */
    PyThreadState *thread;
    PyObject *progress;   /* borrowed; or NULL                                  */
    PyObject *place;      /* str that names the file in exceptions, borrowed; or NULL */
    const void *reporter; /* Python gets the numbers of reports with this context */
    bool reported;        /* `done` and `total` were reported to Python       */
    bool defers_signals;  /* signals wait until the call has ended            */
    int64_t next;         /* time of the next call of Python, in ns; 0: not set */
    int64_t done, total;
} call;

/* Begins a call and releases the GIL. `progress` is a callable, None or NULL; `owner` begins with
 * the members of call_owner, or is NULL. */
void call_begin(call *c, const void *owner, PyObject *progress);

/* Ends the call and takes the GIL back. Returns 0, or -1 with the exception of the status, of a
 * signal handler or of the progress function; at the interpreter's end that may be SystemExit. */
int call_end(module_state *state, call *c, caterva_status status);

/* Returns the caterva_progress for options. `context` is NULL for array handles, CALL_TREE for
 * trees, or the call for options of a single call; in this case set its `reporter` to the call. The
 * library must report every step: reports on other threads never call Python, and hook() limits the
 * rate of calls. */
#define CALL_TREE ((void *)&call_tree)
extern const char call_tree;
caterva_progress call_progress(void *context);

/* True if this thread is in a call with this owner, which means: in the call's progress function,
 * or in a signal handler that ran during the call. */
bool call_is_under_way(const void *owner);

/* Reports the exception of a destructor, which has no caller to receive it. KeyboardInterrupt is
 * raised again in the main thread. */
void call_report(PyObject *type);

/* Functions of the property `progress`. To set it: check the value; shut the gate, because calls in
 * progress borrow the old value; swap; open the gate; then release the old value that the swap
 * returned (a reference, or NULL). */
PyObject *call_get_progress(PyObject *owner, void *unused);
int call_check_progress(PyObject *value); /* -1 with an exception */
PyObject *call_swap_progress(PyObject *owner, PyObject *value);

/* Raises the exception for `err` about the file `place` (a str, or NULL). Returns -1. */
int raise_error(module_state *state, const caterva_error *err, PyObject *place);

/* Converts text from the library; bytes that are not UTF-8 appear as \xNN. */
PyObject *text_of(const char *text);

/* Converts a stored name to a str. Bytes that are not UTF-8 become lone surrogates, which
 * name_encoded converts back, as Python does for file names. */
PyObject *name_decoded(const char *name);

/* Returns the bytes of a name: a new reference, or NULL with an exception. */
PyObject *name_encoded(PyObject *name);

#endif

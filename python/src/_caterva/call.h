/* A call of the library: without the GIL, with an ear for signals and for a progress
 * function in Python, and with its status turned into an exception.
 *
 *     call c;
 *     call_begin(&c, array, progress);
 *     status = caterva_...(..., &c.err);
 *     if (call_end(state, &c, status) < 0) return NULL;
 *
 * The library may tell call_hook from any thread; Python is asked on the calling thread
 * only, which takes part in all work. */
#ifndef CALL_H
#define CALL_H

#include "extension.h"

/* What every object begins with that calls are of. */
typedef struct call_owner {
    PyObject_HEAD module_state *state; /* of the module, which the owner keeps alive */
    PyObject *place;                   /* str: where it is; or NULL                  */
    PyObject *progress;                /* callable, or NULL                          */
} call_owner;

typedef struct call {
    caterva_error err;
    struct call *outer; /* of the same thread: a progress function called us */
    const void *owner;  /* the array that must not be used meanwhile, or NULL */
    PyThreadState *thread;
    PyObject *progress; /* borrowed; or NULL                                  */
    PyObject *place;    /* the str that names the file in exceptions, borrowed; or NULL */
    bool own;           /* the options of the call tell, and not the handle's */
    bool told;          /* of done and total below                            */
    bool deaf;          /* signals wait until the call is done                */
    int64_t next;       /* when Python is asked again, in ns; 0: nobody asked */
    int64_t done, total;
} call;

/* `progress` is a callable, None or NULL; `owner` begins with a call_owner, or is NULL. */
void call_begin(call *c, const void *owner, PyObject *progress);

/* 0, or -1 with an exception: of the status, of a signal, of the progress function. */
int call_end(module_state *state, call *c, caterva_status status);

/* on_progress of handles (context NULL) and of options (context the call). */
int call_hook(void *context, int64_t done, int64_t total);

/* True on a thread with a call of the owner's under way: in a progress function or the
 * handler of a signal. */
bool call_is_under_way(const void *owner);

/* Reports the exception of an object's end, which has no caller to raise it in. An
 * interruption is raised again when the program goes on. */
void call_report(PyObject *type);

/* The property `progress` of an owner. Setting it checks the value before the gate is shut, as
 * calls under way borrow what is there, swaps behind it, and releases what it gets then, NULL or
 * a reference, when the gate is open again. */
PyObject *call_get_progress(PyObject *owner, void *unused);
int call_check_progress(PyObject *value); /* -1 with an exception */
PyObject *call_swap_progress(PyObject *owner, PyObject *value);

/* Raises what `err` says, of what is at `place` (a str, or NULL); always -1. */
int raise_error(module_state *state, const caterva_error *err, PyObject *place);

/* Text of the library's: bytes that are no UTF-8 show as \xNN. */
PyObject *text_of(const char *text);

/* A name that is stored, as a str. Bytes that are no UTF-8 become lone surrogates, from which
 * name_encoded makes the bytes again, as Python does with names of files. */
PyObject *name_decoded(const char *name);

/* The bytes of a name, which is a str: a new reference, or NULL with an exception. */
PyObject *name_encoded(PyObject *name);

#endif

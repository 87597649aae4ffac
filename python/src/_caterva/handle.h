/* The Python object around a handle. All calls through the handle enter the object's gate, so that
 * it can be closed and refreshed at any time, whatever other threads are doing. */
#ifndef HANDLE_H
#define HANDLE_H

#include "call.h"
#include "extension.h"
#include "gate.h"

typedef struct array_object {
    PyObject_HEAD module_state *state; /* as in call_owner               */
    PyObject *place;                   /* path or URL                    */
    PyObject *progress;                /* callable or NULL               */
    caterva_array *handle;             /* NULL: closed; changes only while the gate is shut */
    gate gate;
    PyArray_Descr *descr; /* dtype of the items                            */
    int ndim;
    int32_t item_size;
    atomic_int_least64_t shape[CATERVA_MAX_DIMS];
    uint8_t state_id[CATERVA_STATE_ID]; /* readers: identifies the commit that they see */
    bool writable;
    bool is_part;               /* a part of a job: it has no path of its own */
    atomic_bool drops; /* its release drops pending changes: the last commit failed, or the
                          array is still being created */
    caterva_open_options again; /* to reopen it                                             */
    unsigned n_opened;          /* times it was reopened: a view belongs to one handle      */
    pid_t process;              /* opened it; no other process commits                      */
    PyObject *frame;            /* bytes that a frame in memory borrows, or NULL            */
    PyObject *remote; /* the Remote that `again` points into, or NULL                       */
    PyObject *source; /* Python object from which it is read, or NULL                      */
    PyObject *weak;
} array_object;

/* True on a thread that is reporting the end of a background read. Such a thread must not wait
 * at a gate: the thread that has shut it may be waiting for this report. */
extern _Thread_local bool handle_reports;

/* Greater than 0 on a thread on which the library is calling Python and waits for the result. If
 * the garbage collector destroys an array there, the main thread closes its handle later. */
extern _Thread_local int handle_calls_back;

/* Encodes a path as Python's open does: a new reference, or NULL with an exception. */
PyObject *place_encoded(PyObject *place);

/* Enters the gate: 0, or -1 with ValueError if the array is closed. */
int array_enter(array_object *self);
static inline void array_leave(array_object *self) { gate_leave(&self->gate); }

/* Updates the shape after a call that returned `result`, and returns it, or -1 with an exception. A
 * call that failed, or ended when an interruption came, may have changed the shape. Call inside the
 * gate. */
int array_look(array_object *self, int result);

/* True if the array is in memory, or read from a Python object. */
bool handle_in_memory(const array_object *self);

/* True in a forked child of the process that opened the array. */
bool handle_is_a_parents(const array_object *self);

/* Sets shape and dtype from a new handle. Returns 0, or -1 with an exception. */
int handle_look_first(array_object *self);

/* Updates the shape after the handle has changed to another state. Returns -1 with an exception if
 * dtype or number of axes differ: they cannot change during the life of an object. */
int handle_look_again(array_object *self);

/* Shuts the gate; open it with gate_open. Returns -1 with an exception if called by a progress
 * function, because the call of this function is inside the gate. */
int handle_shut_gate(array_object *self);

/* Call the functions below while the gate is shut, or when the object has no references left. They
 * implement a section of docs/reliability.md: "What close, exit and interruption do". */

/* Commits pending changes and releases the handle. If the commit fails or is interrupted: -1 with
 * an exception, and the handle stays open with its pending changes. Commits nothing if the handle
 * is for reading, in memory, a part of a job, or the parent's in a forked child. */
int handle_close(array_object *self);

/* Releases the handle, if there is one, and drops pending changes. */
int handle_discard(array_object *self);

/* Called when the object is destroyed: commits pending changes, unless the last commit failed, and
 * always releases the handle. Signals wait for the commit. Returns 0, or -1 with an exception. */
int handle_drop(array_object *self);

/* Like handle_discard, for a handle that cannot be used any more. Keeps the current exception. */
void handle_abandon(array_object *self);

#endif

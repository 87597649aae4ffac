/* The Python object around a handle. Its calls go through the gate, so that closing and
 * refreshing are safe at any moment, whatever other threads are doing. */
#ifndef HANDLE_H
#define HANDLE_H

#include "call.h"
#include "extension.h"
#include "gate.h"

typedef struct array_object {
    PyObject_HEAD module_state *state; /* as in call_owner               */
    PyObject *place;                   /* url as given                   */
    PyObject *progress;                /* callable or NULL               */
    caterva_array *handle;             /* NULL: closed; changes with the gate shut only */
    gate gate;
    PyArray_Descr *descr; /* of the items                                  */
    int ndim;
    int32_t item_size;
    atomic_int_least64_t shape[CATERVA_MAX_DIMS];
    uint8_t state_id[CATERVA_STATE_ID]; /* of the commit that a handle for reading sees */
    bool writable;
    bool is_part;               /* of a job: it has no path of its own */
    atomic_bool drops; /* its end drops what is pending: the last commit failed, or the array
                          is being made */
    caterva_open_options again; /* to open it anew with */
    unsigned n_opened;          /* how often it was: views are of one handle                */
    pid_t process;              /* that opened it: another one leaves what is pending alone */
    PyObject *frame;            /* the bytes that a frame in memory borrows, or NULL        */
    PyObject *remote; /* options that `again` points into, or NULL                         */
    PyObject *source; /* the object of Python's that it is read from, or NULL              */
    PyObject *weak;
} array_object;

/* True on a thread that tells of a read in the background: who has shut a gate may be waiting
 * for it, so it waits at none. */
extern _Thread_local bool handle_tells;

/* More than 0 on a thread that the library has called a function of Python's from, and waits
 * for: what the collector happens to drop there is closed later, by the main thread. */
extern _Thread_local int handle_calls_back;

/* The bytes that the system knows a place by, as Python's own open has them: a new reference,
 * or NULL with an exception. */
PyObject *place_encoded(PyObject *place);

/* Enters the gate: 0, or -1 and ValueError when the array is closed. */
int array_enter(array_object *self);
static inline void array_leave(array_object *self) { gate_leave(&self->gate); }

/* Takes the shape anew from the handle, inside the gate. -1 with an exception. */
int array_look(array_object *self);

/* True while the array is kept in no file of the library's. */
bool handle_in_memory(const array_object *self);

/* True in a child of the process that opened it. */
bool handle_is_a_parents(const array_object *self);

/* Takes shape and items from a new handle. -1 with an exception. */
int handle_look_first(array_object *self);

/* Takes the shape of the state that the handle turned to; -1 with an exception where its
 * items or axes are others, which are fixed for the life of an object. */
int handle_look_again(array_object *self);

/* Shuts the gate, to be opened with gate_open; -1 with an exception where a progress
 * function asks for it, which is inside. */
int handle_shut_gate(array_object *self);

/* The following are called behind the shut gate, or when the object has no reference left.
 * The rule that they implement is a section of docs/reliability.md: "What close, exit and
 * interruption do". */

/* Commits what is pending and releases the handle. When the commit fails or is interrupted:
 * -1 with an exception, and the handle stays open with all that is pending. Only releases a
 * handle that has nothing to commit: for reading, in memory, a part of a job, or a parent's
 * in a child of fork. */
int handle_close(array_object *self);

/* Releases the handle, if there is one, and drops what is pending. */
int handle_discard(array_object *self);

/* For the end of the object: commits what is pending, unless the last commit failed, and
 * releases the handle in any case. Signals wait until the commit is done. -1 with an
 * exception. */
int handle_drop(array_object *self);

/* handle_discard for a handle that cannot go on; keeps the exception. */
void handle_abandon(array_object *self);

#endif

/* The Python object around a handle. Its calls go through the gate, so that closing and
 * refreshing are safe at any moment, whatever other threads are doing. */
#ifndef ARRAY_H
#define ARRAY_H

#include "call.h"
#include "extension.h"
#include "gate.h"

typedef struct array_object {
    PyObject_HEAD module_state *state; /* of the module that its type keeps alive */
    caterva_array *handle;             /* NULL: closed; changes with the gate shut only */
    gate gate;
    PyArray_Descr *descr; /* of the items                                  */
    int ndim;
    int32_t item_size;
    atomic_int_least64_t shape[CATERVA_MAX_DIMS];
    bool writable;
    caterva_open_options again; /* to open it anew with */
    unsigned n_opened;          /* how often it was: views are of one handle                */
    pid_t process;              /* that opened it: another one leaves what is pending alone */
    PyObject *progress;         /* callable or NULL                                         */
    PyObject *frame;            /* the bytes that a frame in memory borrows, or NULL        */
    PyObject *place;            /* str: url as given                                        */
    PyObject *weak;
} array_object;

/* Enters the gate: 0, or -1 and ValueError when the array is closed. */
int array_enter(array_object *self);
static inline void array_leave(array_object *self) { gate_leave(&self->gate); }

/* Takes the shape anew from the handle, inside the gate. -1 with an exception. */
int array_look(array_object *self);

/* What a new object is made of; all but the handle may be NULL. */
typedef struct array_birth {
    caterva_array *handle;
    caterva_open_options again; /* to open it anew with */
    PyObject *place, *frame, *progress;
} array_birth;

/* A new object of `type` for a handle that it takes over, also when this fails. */
PyObject *array_wrap(module_state *state, PyTypeObject *type, const array_birth *birth);

/* The array that `object` must be, or NULL with TypeError. */
array_object *array_of(module_state *state, PyObject *object);

/* mp_subscript and mp_ass_subscript. */
PyObject *array_subscript(PyObject *self, PyObject *key);
int array_assign(PyObject *self, PyObject *key, PyObject *value);

/* Of the files that have methods of the type. */
extern PyMethodDef array_life_methods[], array_transfer_methods[], array_chunk_methods[],
    array_attribute_methods[], array_reduce_methods[], array_upkeep_methods[],
    array_shape_methods[];

#endif

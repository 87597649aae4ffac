/* The type Array. Its methods are in several files. */
#ifndef ARRAY_H
#define ARRAY_H

#include "handle.h"

/* What array_wrap needs. All members except the handle may be NULL. */
typedef struct array_birth {
    caterva_array *handle;
    caterva_open_options again; /* to reopen the array after a fork or upkeep */
    PyObject *place, *frame, *progress;
    PyObject *remote; /* the Remote of a URL; `again` points into it */
    PyObject *source; /* the Python source, see source.h             */
    bool is_part;     /* a part of a job                             */
    bool drops;       /* as in array_object                          */
} array_birth;

/* Makes an object of `type` for a handle. Takes ownership of the handle, also on failure. */
PyObject *array_wrap(module_state *state, PyTypeObject *type, const array_birth *birth);

/* Returns `object` as an array (borrowed), or NULL with TypeError. */
array_object *array_of(module_state *state, PyObject *object);

/* Returns 0 if `type` is a subtype of Array, or -1 with TypeError. */
int array_type_check(module_state *state, PyObject *type);

/* Implement mp_subscript and mp_ass_subscript. */
PyObject *array_subscript(PyObject *object, PyObject *key);
int array_assign(PyObject *object, PyObject *key, PyObject *value);

/* Methods of the type, one table for each file. */
extern PyMethodDef array_life_methods[], array_index_methods[], array_transfer_methods[],
    array_chunk_methods[], array_attribute_methods[], array_reduce_methods[],
    array_upkeep_methods[], array_shape_methods[], array_request_methods[],
    array_dims_methods[], array_job_methods[], array_remote_methods[];

#endif

/* The type Array, whose methods stand in several files. */
#ifndef ARRAY_H
#define ARRAY_H

#include "handle.h"

/* What a new object is made of; all but the handle may be NULL. */
typedef struct array_birth {
    caterva_array *handle;
    caterva_open_options again; /* to open it anew with */
    PyObject *place, *frame, *progress;
    PyObject *remote; /* of a URL, which `again` points into */
    PyObject *source; /* that it is read from; see source.h  */
    bool is_part;     /* of a job                            */
    bool drops;       /* as in array_object                  */
} array_birth;

/* A new object of `type` for a handle that it takes over, also when this fails. */
PyObject *array_wrap(module_state *state, PyTypeObject *type, const array_birth *birth);

/* The array that `object` must be, or NULL with TypeError. */
array_object *array_of(module_state *state, PyObject *object);

/* 0 where `type` is a type of arrays, or -1 with TypeError. */
int array_type_check(module_state *state, PyObject *type);

/* mp_subscript and mp_ass_subscript. */
PyObject *array_subscript(PyObject *object, PyObject *key);
int array_assign(PyObject *object, PyObject *key, PyObject *value);

/* Of the files that have methods of the type. */
extern PyMethodDef array_life_methods[], array_index_methods[], array_transfer_methods[],
    array_chunk_methods[], array_attribute_methods[], array_reduce_methods[],
    array_upkeep_methods[], array_shape_methods[], array_request_methods[],
    array_dims_methods[], array_job_methods[], array_remote_methods[];

#endif

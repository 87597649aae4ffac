/* Frames in objects of Python's, which are read by its methods: size() -> int,
 * read(position, size) -> bytes and read_many([(position, size)]) -> bytes of each. */
#ifndef SOURCE_H
#define SOURCE_H

#include "extension.h"

/* Opens the frame in `object`; the handle keeps it. As caterva_store_open, called without
 * the GIL. */
caterva_status source_open(module_state *state, PyObject *object, const char *name,
                           const caterva_open_options *options, caterva_array **out,
                           caterva_error *err);

/* The exception that a method of a source's raised, if that is why a call failed with this
 * number: a new reference, or NULL. *is_ours: no number of the system's in any case. */
PyObject *source_failure(module_state *state, int sys_errno, bool *is_ours);

#endif

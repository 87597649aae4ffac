/* Frames that are read from a Python object with the methods size() -> int,
 * read(position, size) -> bytes and read_many([(position, size)]) -> list of bytes. */
#ifndef SOURCE_H
#define SOURCE_H

#include "extension.h"

/* Opens the frame in `object`, of which the handle keeps a reference. Like caterva_store_open;
 * called without the GIL. */
caterva_status source_open(module_state *state, PyObject *object, const char *name,
                           const caterva_open_options *options, caterva_array **out,
                           caterva_error *err);

/* Returns the exception of a source's method that belongs to the sys_errno of a failed call: a new
 * reference, or NULL. Sets *is_ours if the number was assigned by source.c, not by the system. */
PyObject *source_failure(module_state *state, int sys_errno, bool *is_ours);

#endif

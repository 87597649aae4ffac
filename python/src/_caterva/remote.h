/* Options for URLs as an object. Handles of arrays and trees keep it: the library may call its
 * functions while they are open. */
#ifndef REMOTE_H
#define REMOTE_H

#include "extension.h"
#include <caterva_remote.h>

/* Checks the type of an argument; *out is NULL for None. -1 with TypeError. */
int remote_parse(module_state *state, PyObject *object, PyObject **out);

/* Returns the options for a caterva_open_options or caterva_tree_options; NULL for NULL. */
const caterva_remote_options *remote_options_of(PyObject *remote);

/* Returns the caterva.Remote from which it was made: a new reference, None for NULL. */
PyObject *remote_given(PyObject *remote);

/* Returns 0, or -1 with RuntimeError on a thread that is in a function for headers or requests:
 * other threads may be waiting for it. */
int remote_check_thread(void);

#endif

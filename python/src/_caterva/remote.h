/* Options for URLs as a Python object. Arrays and trees keep it alive, because the library may call
 * its functions while they are open. */
#ifndef REMOTE_H
#define REMOTE_H

#include "extension.h"
#include <caterva_remote.h>

/* Sets *out to a Remote, or to NULL for None. Returns -1 with TypeError for other objects. */
int remote_parse(module_state *state, PyObject *object, PyObject **out);

/* Returns the options for a caterva_open_options or caterva_tree_options; NULL if `remote` is
 * NULL. */
const caterva_remote_options *remote_options_of(PyObject *remote);

/* Returns the caterva.Remote from which `remote` was made: a new reference; None if `remote` is
 * NULL. */
PyObject *remote_given(PyObject *remote);

/* Returns 0; or -1 with RuntimeError on a thread that is running a function for headers or
 * requests, because other threads may be waiting for this function. */
int remote_check_thread(void);

#endif

/* Options for URLs as an object, which handles of arrays and trees keep: the library calls its
 * functions as long as they are open. */
#ifndef REMOTE_H
#define REMOTE_H

#include "extension.h"
#include <caterva_remote.h>

/* Type check of an argument: NULL for None. -1 with TypeError. */
int remote_parse(module_state *state, PyObject *object, PyObject **out);

/* What a caterva_open_options or caterva_tree_options points at; NULL of NULL. */
const caterva_remote_options *remote_options_of(PyObject *remote);

/* The caterva.Remote that it was made of: a new reference, None of NULL. */
PyObject *remote_given(PyObject *remote);

/* 0, or -1 with RuntimeError on a thread that asks for headers or tells of a request: others
 * may be waiting for it. */
int remote_check_thread(void);

#endif

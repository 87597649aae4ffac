/* Option structs of the library, filled from dicts. The Python side has converted its words to
 * numbers, bytes and text. */
#ifndef OPTIONS_H
#define OPTIONS_H

#include "extension.h"
#include <caterva_remote.h>

/* Memory that the options' pointers refer to. */
typedef struct create_parts {
    int64_t shape[CATERVA_MAX_DIMS];
    int32_t chunks[CATERVA_MAX_DIMS], blocks[CATERVA_MAX_DIMS];
    caterva_metalayer *metalayers; /* release with PyMem_Free */
} create_parts;

/* Fill *out from `dict`; missing names keep their defaults. -1 with an exception, also for an
 * unknown name. Pointers refer to memory of `dict`, which must live as long. */
int create_options_parse(PyObject *dict, create_parts *parts, caterva_create_options *out);
int open_options_parse(PyObject *dict, caterva_open_options *out);
int remote_options_parse(PyObject *dict, caterva_remote_options *out);
int publish_options_parse(PyObject *dict, caterva_publish_options *out);

/* Returns the options with which an array created with `o` is reopened for writing. */
caterva_open_options open_options_like(const caterva_create_options *o);

/* Parse at most CATERVA_MAX_DIMS numbers. Return their number, or -1 with an exception. */
int parse_int64s(PyObject *sequence, const char *what, int64_t *out);
int parse_int32s(PyObject *sequence, const char *what, int32_t *out);

/* Return tuples of ints. */
PyObject *tuple_of_int64s(const int64_t *numbers, int n);
PyObject *tuple_of_int32s(const int32_t *numbers, int n);

#endif

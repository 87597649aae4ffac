/* The Python object around a view of arrays, which it keeps alive. */
#ifndef VIEW_H
#define VIEW_H

#include "array.h"

typedef struct view_object {
    PyObject_HEAD module_state *state;
    caterva_view *view;
    PyObject *arrays;  /* tuple of those below, each once          */
    unsigned n_opened; /* of them all, when the view was made of them */
    PyArray_Descr *descr;
    PyObject *shape; /* tuple */
    PyObject *weak;
} view_object;

/* caterva_view_copy; -1 with an exception. */
int view_copy(view_object *self, const char *url, PyObject *place,
              caterva_copy_options *options, PyObject *progress, caterva_array **out);

#endif

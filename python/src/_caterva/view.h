/* The Python object around a view of arrays, which it keeps alive. */
#ifndef VIEW_H
#define VIEW_H

#include "array.h"
#include <caterva_upkeep.h>

typedef struct view_object {
    PyObject_HEAD module_state *state;
    caterva_view *view;
    PyObject *arrays;  /* tuple of its arrays                               */
    unsigned n_opened; /* sum of the arrays' n_opened when the view was made */
    unsigned forks;    /* gate_forks when the view was made                */
    PyArray_Descr *descr;
    PyObject *shape; /* tuple */
    PyObject *weak;
} view_object;

/* An array or a view, from which items are read. */
typedef struct origin {
    array_object *first; /* the array, or the first one of the view */
    view_object *view;   /* or NULL */
} origin;

origin origin_array(PyObject *array);
origin origin_view(PyObject *view);

/* Enters the gates of all arrays: 0, or -1 with ValueError. */
int origin_enter(const origin *from);
void origin_leave(const origin *from);

/* request.c: begins a read, inside the gates; `args` are described there. */
PyObject *request_begin(const origin *from, PyObject *args);

/* reduce.c: methods of View. */
PyObject *view_statistics(PyObject *self, PyObject *args);
PyObject *view_histogram(PyObject *self, PyObject *args);
PyObject *view_reduce(PyObject *self, PyObject *args);

/* Calls caterva_view_copy; -1 with an exception. */
int view_copy(view_object *self, const char *url, PyObject *place,
              caterva_copy_options *options, PyObject *progress, caterva_array **out);

#endif

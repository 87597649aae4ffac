/* The Python object around a view of arrays, which it keeps alive. */
#ifndef VIEW_H
#define VIEW_H

#include "array.h"
#include <caterva_upkeep.h>

typedef struct view_object {
    PyObject_HEAD module_state *state;
    caterva_view *view;
    PyObject *arrays;  /* tuple of those below, each once          */
    unsigned n_opened; /* of them all, when the view was made of them */
    unsigned forks;    /* that the process had behind it then         */
    PyArray_Descr *descr;
    PyObject *shape; /* tuple */
    PyObject *weak;
} view_object;

/* What items are taken from: an array, or a view of some. */
typedef struct origin {
    array_object *first; /* the array, or the first one below the view */
    view_object *view;   /* or NULL */
} origin;

origin origin_array(PyObject *array);
origin origin_view(PyObject *view);

/* Enters the gates of all its arrays: 0, or -1 and ValueError. */
int origin_enter(const origin *from);
void origin_leave(const origin *from);

/* request.c: begins a read, inside the gates; see there for `args`. */
PyObject *request_begin(const origin *from, PyObject *args);

/* reduce.c: methods of the type, as the array's. */
PyObject *view_statistics(PyObject *self, PyObject *args);
PyObject *view_histogram(PyObject *self, PyObject *args);
PyObject *view_reduce(PyObject *self, PyObject *args);

/* caterva_view_copy; -1 with an exception. */
int view_copy(view_object *self, const char *url, PyObject *place,
              caterva_copy_options *options, PyObject *progress, caterva_array **out);

#endif

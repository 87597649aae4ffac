/* What all files of the extension share: Python and NumPy within the limits of their
 * stable interfaces, and the state of the module. Nothing is kept outside of it but what
 * NumPy itself keeps (its table of functions). */
#ifndef EXTENSION_H
#define EXTENSION_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#define NPY_NO_DEPRECATED_API NPY_1_22_API_VERSION
#define PY_ARRAY_UNIQUE_SYMBOL caterva_numpy_api
#ifndef IMPORTS_NUMPY /* module.c does */
#define NO_IMPORT_ARRAY
#endif
#include <numpy/arrayobject.h>

#include <caterva.h>

#include <stdbool.h>
#include <stdint.h>

#ifndef Py_BEGIN_CRITICAL_SECTION /* of Pythons without the GIL */
#define Py_BEGIN_CRITICAL_SECTION(object) {
#define Py_END_CRITICAL_SECTION() }
#endif

/* Arrays and trees hold a reference to the module that the garbage collector does not see: their
 * end may commit, and a commit that fails calls `raise`. Without it a collection of the module
 * and its objects together, as at the end of the interpreter, frees the state first. */
typedef struct module_state {
    PyObject *module; /* that has this state */
    PyTypeObject *array_type, *view_type, *request_type, *tree_type, *remote_type;
    PyObject *raise;          /* caterva._errors.make: the exception for a status      */
    PyObject *read_fancy;     /* caterva._indexing: reading what is no basic index     */
    PyObject *write_fancy;    /* the same for writing                                  */
    PyObject *as_source;      /* caterva._indexing: a value for so many items          */
    PyObject *dtype_of_text;  /* caterva._dtypes: numpy.dtype of a description         */
    PyObject *empty_tuple;
    PyObject *failures; /* number: an exception that a source raised in a call of the library */
} module_state;


/* One list of methods from those of several files, each with an empty one at its end; `out` has
 * room for `room` and that. */
void gather_methods(PyMethodDef *const *lists, size_t n, PyMethodDef *out, int room);

/* Adds what each file defines; -1 with an exception. */
int array_add_type(PyObject *module, module_state *state);
int view_add_type(PyObject *module, module_state *state);
int request_add_type(PyObject *module, module_state *state);
int tree_add_type(PyObject *module, module_state *state);
int remote_add_type(PyObject *module, module_state *state);

#endif

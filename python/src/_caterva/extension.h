/* Included by all files of the extension: Python and NumPy, limited to their stable interfaces,
 * and the state of the module. Other state is outside of it: NumPy's table of functions, and
 * variables of the process or thread in call.c, foreign.c, gate.c, handle.c, remote.c, source.c.
 *
 * Before a function that Python calls, a comment such as "(path, overwrite) to (found, [lost])"
 * lists its arguments and, after "to", the contents of its result. */
#ifndef EXTENSION_H
#define EXTENSION_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#define NPY_NO_DEPRECATED_API NPY_1_22_API_VERSION
#define PY_ARRAY_UNIQUE_SYMBOL caterva_numpy_api
#ifndef IMPORTS_NUMPY /* defined by module.c */
#define NO_IMPORT_ARRAY
#endif
#include <numpy/arrayobject.h>

#include <caterva.h>

#include <stdbool.h>
#include <stdint.h>

#ifndef Py_BEGIN_CRITICAL_SECTION /* exists in Pythons without the GIL */
#define Py_BEGIN_CRITICAL_SECTION(object) {
#define Py_END_CRITICAL_SECTION() }
#endif

/* Arrays and trees hold a reference to the module that the garbage collector does not see. Their
 * destructors may commit, and a failed commit calls `raise`. If the collector saw the reference, it
 * could collect the module together with its arrays, as at exit, and free the state before the
 * destructors run. */
typedef struct module_state {
    PyObject *module; /* the module with this state, borrowed */
    PyTypeObject *array_type, *view_type, *request_type, *tree_type, *remote_type;
    PyObject *raise;          /* caterva._errors.make: makes the exception for a status */
    PyObject *read_fancy;     /* caterva._indexing: reads keys that are not basic       */
    PyObject *write_fancy;    /* caterva._indexing: writes them                         */
    PyObject *as_source;      /* caterva._indexing: converts a value to be assigned     */
    PyObject *dtype_of_text;  /* caterva._dtypes: numpy.dtype of a text                 */
    PyObject *empty_tuple;
    PyObject *failures; /* dict from numbers to exceptions of sources; see source.c */
} module_state;

/* Joins tables of methods, each with an empty entry at its end, into `out`, which has room for
 * `room` methods and an empty entry. */
void gather_methods(PyMethodDef *const *lists, size_t n, PyMethodDef *out, int room);

/* Add the types of each file to the module. Return 0, or -1 with an exception. */
int array_add_type(PyObject *module, module_state *state);
int view_add_type(PyObject *module, module_state *state);
int request_add_type(PyObject *module, module_state *state);
int tree_add_type(PyObject *module, module_state *state);
int remote_add_type(PyObject *module, module_state *state);

#endif

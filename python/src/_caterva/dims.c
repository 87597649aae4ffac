/* Names of dimensions. */
#include "array.h"

#include <string.h>

/* () to a tuple with a name or None for each axis, or to None if the array has no names */
static PyObject *dims_get(PyObject *object, PyObject *unused)
{
    (void)unused;
    array_object *self = (array_object *)object;
    const char **names = NULL;
    call c;
    if (array_enter(self) < 0) return NULL;
    call_begin(&c, self, NULL);
    caterva_status status = caterva_dims_get(self->handle, &names, &c.err);
    bool none = status == CATERVA_ENOTFOUND;
    int result = call_end(self->state, &c, none ? CATERVA_OK : status);
    array_leave(self);
    if (result < 0 || none) {
        caterva_free(names);
        if (result < 0) return NULL;
        Py_RETURN_NONE;
    }
    PyObject *tuple = PyTuple_New(self->ndim);
    for (int d = 0; tuple && d < self->ndim; d++) {
        PyObject *name = Py_BuildValue("z", names[d]);
        if (!name || PyTuple_SetItem(tuple, d, name) < 0) Py_CLEAR(tuple);
    }
    caterva_free(names);
    return tuple;
}

/* Sets names[d] to the text of item d of the tuple, borrowed, or to NULL for None. */
static int parse_names(const array_object *self, PyObject *tuple, const char **names)
{
    if (PyTuple_Size(tuple) != self->ndim) {
        PyErr_Format(PyExc_ValueError, "%zd names of dimensions for an array with %d axes",
                     PyTuple_Size(tuple), self->ndim);
        return -1;
    }
    for (int d = 0; d < self->ndim; d++) {
        PyObject *name = PyTuple_GetItem(tuple, d);
        Py_ssize_t size = 0;
        names[d] = name == Py_None ? NULL : PyUnicode_AsUTF8AndSize(name, &size);
        if (name != Py_None && !names[d]) return -1;
        if (names[d] && strlen(names[d]) != (size_t)size) {
            PyErr_Format(PyExc_ValueError,
                         "the name %R of a dimension contains a zero character", name);
            return -1;
        }
    }
    return 0;
}

static int set_names(array_object *self, const char *const *names)
{
    call c;
    if (!self->handle) {
        PyErr_SetString(PyExc_ValueError, "the array is closed");
        return -1;
    }
    call_begin(&c, self, NULL);
    caterva_status status = caterva_dims_set(self->handle, names, &c.err);
    return call_end(self->state, &c, status);
}

/* (a tuple with a name or None for each axis; or None, which removes all names) */
static PyObject *dims_set(PyObject *object, PyObject *value)
{
    array_object *self = (array_object *)object;
    const char *names[CATERVA_MAX_DIMS] = {NULL};
    if (value != Py_None && !PyTuple_Check(value)) {
        PyErr_SetString(PyExc_TypeError, "the names of dimensions must be a tuple");
        return NULL;
    }
    if (value != Py_None && parse_names(self, value, names) < 0) return NULL;
    if (handle_shut_gate(self) < 0) return NULL;
    int result = set_names(self, value == Py_None ? NULL : names);
    gate_open(&self->gate);
    if (result < 0) return NULL;
    Py_RETURN_NONE;
}

PyMethodDef array_dims_methods[] = {
    {"_dims_get", dims_get, METH_NOARGS, NULL},
    {"_dims_set", dims_set, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};

/* Commits of all arrays of a tree, and attributes of its groups. */
#include "tree.h"
#include <caterva_tree.h>

/* ---- Commits ------------------------------------------------------------------- */

/* Shuts the gates of all arrays. After -1 with an exception, no gate is shut. */
static int shut_all(module_state *state, PyObject *arrays)
{
    Py_ssize_t n = PyTuple_Size(arrays), i = 0;
    for (; i < n; i++) {
        array_object *array = array_of(state, PyTuple_GetItem(arrays, i));
        if (!array || handle_shut_gate(array) < 0) break;
    }
    if (i == n) return 0;
    while (i-- > 0) gate_open(&((array_object *)PyTuple_GetItem(arrays, i))->gate);
    return -1;
}

static int open_all(PyObject *arrays, bool good)
{
    int result = 0;
    for (Py_ssize_t i = 0; i < PyTuple_Size(arrays); i++) {
        array_object *array = (array_object *)PyTuple_GetItem(arrays, i);
        atomic_store(&array->drops, !good);
        if (good && array->handle && handle_look_again(array) < 0) result = -1;
        gate_open(&array->gate);
    }
    return result;
}

typedef caterva_status whole_function(caterva_tree *tree, caterva_error *err);

/* (a tuple of all arrays that are open for writing) */
static PyObject *with_all(PyObject *object, PyObject *args, whole_function *function)
{
    tree_object *self = (tree_object *)object;
    PyObject *arrays;
    call c;
    if (!PyArg_ParseTuple(args, "O!", &PyTuple_Type, &arrays) || tree_enter(self) < 0)
        return NULL;
    int result = shut_all(self->state, arrays);
    if (result == 0) {
        call_begin(&c, self, self->progress);
        caterva_status status = function(self->handle, &c.err);
        result = call_end(self->state, &c, status);
        if (open_all(arrays, status == CATERVA_OK) < 0) result = -1;
    }
    tree_leave(self);
    if (result < 0) return NULL;
    Py_RETURN_NONE;
}

static PyObject *commit(PyObject *object, PyObject *args)
{
    return with_all(object, args, caterva_tree_commit);
}

static PyObject *rollback(PyObject *object, PyObject *args)
{
    return with_all(object, args, caterva_tree_rollback);
}

/* ---- Attributes of groups --------------------------------------------------------- */

/* Like the function in attributes.c, with a group before the name. */
static bool parse_and_enter(tree_object *self, PyObject *args, const char *format,
                            const char **group, PyObject **name, const char **value,
                            Py_ssize_t *size)
{
    PyObject *text;
    if (!PyArg_ParseTuple(args, format, group, &text, value, size) ||
        !(*name = name_encoded(text)))
        return false;
    if (tree_enter(self) == 0) return true;
    Py_DECREF(*name);
    return false;
}

static int end(tree_object *self, call *c, PyObject *name, caterva_status status)
{
    int result = call_end(self->state, c, status);
    tree_leave(self);
    Py_DECREF(name);
    return result;
}

/* (group) to the names */
static PyObject *attribute_list(PyObject *object, PyObject *args)
{
    tree_object *self = (tree_object *)object;
    const char *group, **names = NULL;
    size_t n = 0;
    call c;
    if (!PyArg_ParseTuple(args, "s", &group) || tree_enter(self) < 0) return NULL;
    call_begin(&c, self, self->progress);
    caterva_status status = caterva_tree_attr_list(self->handle, group, &names, &n, &c.err);
    int result = call_end(self->state, &c, status);
    tree_leave(self);
    PyObject *list = result < 0 ? NULL : PyList_New((Py_ssize_t)n);
    for (size_t i = 0; list && i < n; i++) {
        PyObject *name = name_decoded(names[i]);
        if (!name || PyList_SetItem(list, (Py_ssize_t)i, name) < 0) Py_CLEAR(list);
    }
    if (status == CATERVA_OK) caterva_free(names);
    return list;
}

/* (group, name) to the value's bytes */
static PyObject *attribute_get(PyObject *object, PyObject *args)
{
    tree_object *self = (tree_object *)object;
    const char *group;
    PyObject *name;
    void *value;
    size_t size;
    call c;
    if (!parse_and_enter(self, args, "sU", &group, &name, NULL, NULL)) return NULL;
    call_begin(&c, self, self->progress);
    caterva_status status = caterva_tree_attr_get(
        self->handle, group, PyBytes_AsString(name), &value, &size, &c.err);
    int result = end(self, &c, name, status);
    PyObject *bytes = result < 0 ? NULL : PyBytes_FromStringAndSize(value, (Py_ssize_t)size);
    if (status == CATERVA_OK) caterva_free(value);
    return bytes;
}

/* (group, name, bytes) */
static PyObject *attribute_set(PyObject *object, PyObject *args)
{
    tree_object *self = (tree_object *)object;
    const char *group, *value;
    PyObject *name;
    Py_ssize_t size;
    call c;
    if (!parse_and_enter(self, args, "sUy#", &group, &name, &value, &size)) return NULL;
    call_begin(&c, self, self->progress);
    caterva_status status = caterva_tree_attr_set(self->handle, group, PyBytes_AsString(name),
                                                  value, (size_t)size, &c.err);
    if (end(self, &c, name, status) < 0) return NULL;
    Py_RETURN_NONE;
}

/* (group, name) */
static PyObject *attribute_remove(PyObject *object, PyObject *args)
{
    tree_object *self = (tree_object *)object;
    const char *group;
    PyObject *name;
    call c;
    if (!parse_and_enter(self, args, "sU", &group, &name, NULL, NULL)) return NULL;
    call_begin(&c, self, self->progress);
    caterva_status status =
        caterva_tree_attr_delete(self->handle, group, PyBytes_AsString(name), &c.err);
    if (end(self, &c, name, status) < 0) return NULL;
    Py_RETURN_NONE;
}

PyMethodDef tree_commit_methods[] = {
    {"_commit", commit, METH_VARARGS, NULL},
    {"_rollback", rollback, METH_VARARGS, NULL},
    {"_attribute_list", attribute_list, METH_VARARGS, NULL},
    {"_attribute_get", attribute_get, METH_VARARGS, NULL},
    {"_attribute_set", attribute_set, METH_VARARGS, NULL},
    {"_attribute_remove", attribute_remove, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

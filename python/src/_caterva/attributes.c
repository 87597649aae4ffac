/* Attributes and metalayers, as the bytes that are stored. */
#include "array.h"

static PyObject *attribute_get(PyObject *object, PyObject *args)
{
    array_object *self = (array_object *)object;
    const char *name;
    void *value;
    size_t size;
    call c;
    if (!PyArg_ParseTuple(args, "s", &name) || array_enter(self) < 0) return NULL;
    call_begin(&c, self, NULL);
    caterva_status status = caterva_attr_get(self->handle, name, &value, &size, &c.err);
    int result = call_end(self->state, &c, status);
    array_leave(self);
    if (result < 0) return NULL;
    PyObject *bytes = PyBytes_FromStringAndSize(value, (Py_ssize_t)size);
    caterva_free(value);
    return bytes;
}

static PyObject *attribute_set(PyObject *object, PyObject *args)
{
    array_object *self = (array_object *)object;
    const char *name, *value;
    Py_ssize_t size;
    call c;
    if (!PyArg_ParseTuple(args, "sy#", &name, &value, &size) || array_enter(self) < 0)
        return NULL;
    call_begin(&c, self, NULL);
    caterva_status status = caterva_attr_set(self->handle, name, value, (size_t)size, &c.err);
    int result = call_end(self->state, &c, status);
    array_leave(self);
    if (result < 0) return NULL;
    Py_RETURN_NONE;
}

static PyObject *attribute_remove(PyObject *object, PyObject *args)
{
    array_object *self = (array_object *)object;
    const char *name;
    call c;
    if (!PyArg_ParseTuple(args, "s", &name) || array_enter(self) < 0) return NULL;
    call_begin(&c, self, NULL);
    caterva_status status = caterva_attr_remove(self->handle, name, &c.err);
    int result = call_end(self->state, &c, status);
    array_leave(self);
    if (result < 0) return NULL;
    Py_RETURN_NONE;
}

static PyObject *metalayer_update(PyObject *object, PyObject *args)
{
    array_object *self = (array_object *)object;
    const char *name, *content;
    Py_ssize_t size;
    call c;
    if (!PyArg_ParseTuple(args, "sy#", &name, &content, &size) || array_enter(self) < 0)
        return NULL;
    call_begin(&c, self, NULL);
    caterva_status status =
        caterva_metalayer_update(self->handle, name, content, (size_t)size, &c.err);
    int result = call_end(self->state, &c, status);
    array_leave(self);
    if (result < 0) return NULL;
    Py_RETURN_NONE;
}

PyMethodDef array_attribute_methods[] = {
    {"_attribute_get", attribute_get, METH_VARARGS, NULL},
    {"_attribute_set", attribute_set, METH_VARARGS, NULL},
    {"_attribute_remove", attribute_remove, METH_VARARGS, NULL},
    {"_metalayer_update", metalayer_update, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

/* Attributes and metalayers, as stored bytes. */
#include "array.h"

/* Parses a name, and also a value if the format is "Uy#"; then enters the gate. *name gets the
 * name's bytes, a new reference. Returns false with an exception. */
static bool parse_and_enter(array_object *self, PyObject *args, const char *format,
                            PyObject **name, const char **value, Py_ssize_t *size)
{
    PyObject *text;
    if (!PyArg_ParseTuple(args, format, &text, value, size) || !(*name = name_encoded(text)))
        return false;
    if (array_enter(self) == 0) return true;
    Py_DECREF(*name);
    return false;
}

static int end(array_object *self, call *c, PyObject *name, caterva_status status)
{
    int result = call_end(self->state, c, status);
    array_leave(self);
    Py_DECREF(name);
    return result;
}

static PyObject *attribute_get(PyObject *object, PyObject *args)
{
    array_object *self = (array_object *)object;
    PyObject *name;
    void *value;
    size_t size;
    call c;
    if (!parse_and_enter(self, args, "U", &name, NULL, NULL)) return NULL;
    call_begin(&c, self, NULL);
    caterva_status status =
        caterva_attr_get(self->handle, PyBytes_AsString(name), &value, &size, &c.err);
    int result = end(self, &c, name, status);
    if (result < 0) return NULL;
    PyObject *bytes = PyBytes_FromStringAndSize(value, (Py_ssize_t)size);
    caterva_free(value);
    return bytes;
}

static PyObject *attribute_set(PyObject *object, PyObject *args)
{
    array_object *self = (array_object *)object;
    PyObject *name;
    const char *value;
    Py_ssize_t size;
    call c;
    if (!parse_and_enter(self, args, "Uy#", &name, &value, &size)) return NULL;
    call_begin(&c, self, NULL);
    caterva_status status = caterva_attr_set(self->handle, PyBytes_AsString(name), value,
                                             (size_t)size, &c.err);
    if (end(self, &c, name, status) < 0) return NULL;
    Py_RETURN_NONE;
}

static PyObject *attribute_remove(PyObject *object, PyObject *args)
{
    array_object *self = (array_object *)object;
    PyObject *name;
    call c;
    if (!parse_and_enter(self, args, "U", &name, NULL, NULL)) return NULL;
    call_begin(&c, self, NULL);
    caterva_status status =
        caterva_attr_delete(self->handle, PyBytes_AsString(name), &c.err);
    if (end(self, &c, name, status) < 0) return NULL;
    Py_RETURN_NONE;
}

static PyObject *metalayer_update(PyObject *object, PyObject *args)
{
    array_object *self = (array_object *)object;
    PyObject *name;
    const char *content;
    Py_ssize_t size;
    call c;
    if (!parse_and_enter(self, args, "Uy#", &name, &content, &size)) return NULL;
    call_begin(&c, self, NULL);
    caterva_status status = caterva_metalayer_update(self->handle, PyBytes_AsString(name),
                                                     content, (size_t)size, &c.err);
    if (end(self, &c, name, status) < 0) return NULL;
    Py_RETURN_NONE;
}

PyMethodDef array_attribute_methods[] = {
    {"_attribute_get", attribute_get, METH_VARARGS, NULL},
    {"_attribute_set", attribute_set, METH_VARARGS, NULL},
    {"_attribute_remove", attribute_remove, METH_VARARGS, NULL},
    {"_metalayer_update", metalayer_update, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

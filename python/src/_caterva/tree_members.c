/* Members of a tree: list, open, create, delete, move; pack and unpack. */
#include "options.h"
#include "tree.h"

#include <caterva_tree.h>
#include <string.h>

/* ---- Listing ------------------------------------------------------------------ */

static PyObject *tuple_of_entry(const caterva_tree_entry *e)
{
    return Py_BuildValue("(sisOOLz)", e->key, (int)e->kind, e->kind_name,
                         e->read_only ? Py_True : Py_False, e->embedded ? Py_True : Py_False,
                         (long long)e->stored_bytes, e->path);
}

/* (group or None) to [(key, kind, kind's name, read only, embedded, stored bytes, path)] */
static PyObject *list_members(PyObject *object, PyObject *args)
{
    tree_object *self = (tree_object *)object;
    const caterva_tree_list *list;
    const char *group;
    call c;
    if (!PyArg_ParseTuple(args, "z", &group) || tree_enter(self) < 0) return NULL;
    call_begin(&c, self, self->progress);
    caterva_status status = caterva_tree_get_list(self->handle, group, &list, &c.err);
    int result = call_end(self->state, &c, status);
    tree_leave(self);
    if (result < 0) {
        if (status == CATERVA_OK) caterva_tree_list_release(list);
        return NULL;
    }
    PyObject *entries = PyList_New((Py_ssize_t)list->n);
    for (size_t i = 0; entries && i < list->n; i++) {
        PyObject *entry = tuple_of_entry(list->entries[i]);
        if (!entry || PyList_SetItem(entries, (Py_ssize_t)i, entry) < 0) Py_CLEAR(entries);
    }
    caterva_tree_list_release(list);
    return entries;
}

/* () to bytes that identify the contents of an archive, or to None for a directory */
static PyObject *state_id(PyObject *object, PyObject *unused)
{
    static const uint8_t none[CATERVA_STATE_ID];
    (void)unused;
    tree_object *self = (tree_object *)object;
    uint8_t id[CATERVA_STATE_ID];
    call c;
    if (tree_enter(self) < 0) return NULL;
    call_begin(&c, self, self->progress);
    caterva_status status = caterva_tree_state_id(self->handle, id, &c.err);
    int result = call_end(self->state, &c, status);
    tree_leave(self);
    if (result < 0) return NULL;
    if (memcmp(id, none, sizeof id) == 0) Py_RETURN_NONE;
    return PyBytes_FromStringAndSize((const char *)id, sizeof id);
}

/* (group) to the bytes of its zarr.json */
static PyObject *zarr_metadata(PyObject *object, PyObject *args)
{
    tree_object *self = (tree_object *)object;
    const char *group;
    char *text = NULL;
    size_t size = 0;
    call c;
    if (!PyArg_ParseTuple(args, "s", &group) || tree_enter(self) < 0) return NULL;
    call_begin(&c, self, self->progress);
    caterva_status status =
        caterva_tree_zarr_metadata(self->handle, group, &text, &size, &c.err);
    int result = call_end(self->state, &c, status);
    tree_leave(self);
    PyObject *out = result == 0 ? PyBytes_FromStringAndSize(text, (Py_ssize_t)size) : NULL;
    caterva_free(text);
    return out;
}

/* ---- Arrays --------------------------------------------------------------------- */

typedef struct array_request {
    PyObject *type, *dict, *progress;
    const char *key;
} array_request;

static int parse_request(tree_object *self, PyObject *args, array_request *r)
{
    if (!PyArg_ParseTuple(args, "OsO!O", &r->type, &r->key, &PyDict_Type, &r->dict,
                          &r->progress))
        return -1;
    return array_type_check(self->state, r->type);
}

/* Makes the object for an array of this tree; its place is the array's URL in the tree. */
static PyObject *wrap_array(tree_object *self, const array_request *r, array_birth *birth)
{
    birth->place = PyUnicode_FromFormat("%U::%s", self->place, r->key);
    birth->progress = r->progress;
    if (!birth->place) {
        caterva_discard(birth->handle);
        return NULL;
    }
    PyObject *array = array_wrap(self->state, (PyTypeObject *)r->type, birth);
    Py_DECREF(birth->place);
    return array;
}

/* (type, key, options, progress) */
static PyObject *open_array(PyObject *object, PyObject *args)
{
    tree_object *self = (tree_object *)object;
    array_birth birth = {0};
    array_request r;
    call c;
    if (parse_request(self, args, &r) < 0 || open_options_parse(r.dict, &birth.again) < 0 ||
        tree_enter(self) < 0)
        return NULL;
    birth.remote = self->remote; /* kept alive: the array's store uses these options */
    birth.again.remote = self->again.remote;
    call_begin(&c, self, self->progress);
    caterva_status status =
        caterva_tree_open_array(self->handle, r.key, &birth.again, &birth.handle, &c.err);
    int result = call_end(self->state, &c, status);
    tree_leave(self);
    if (result == 0) return wrap_array(self, &r, &birth);
    if (status == CATERVA_OK) caterva_discard(birth.handle);
    return NULL;
}

/* (type, key, options, progress) */
static PyObject *create_array(PyObject *object, PyObject *args)
{
    tree_object *self = (tree_object *)object;
    create_parts parts = {.metalayers = NULL};
    caterva_create_options options;
    array_birth birth = {0};
    array_request r;
    call c;
    if (parse_request(self, args, &r) < 0) return NULL;
    if (create_options_parse(r.dict, &parts, &options) < 0 || tree_enter(self) < 0) {
        PyMem_Free(parts.metalayers);
        return NULL;
    }
    call_begin(&c, self, self->progress);
    caterva_status status =
        caterva_tree_create_array(self->handle, r.key, &options, &birth.handle, &c.err);
    int result = call_end(self->state, &c, status);
    tree_leave(self);
    PyMem_Free(parts.metalayers);
    birth.again = open_options_like(&options);
    birth.drops = true; /* until _complete: an interruption must not replace the old array */
    if (result == 0) return wrap_array(self, &r, &birth);
    if (status == CATERVA_OK) caterva_discard(birth.handle);
    return NULL;
}

/* ---- Groups and names ----------------------------------------------------------- */

typedef caterva_status key_function(caterva_tree *tree, const char *key, caterva_error *err);

static PyObject *with_key(PyObject *object, PyObject *args, key_function *function)
{
    tree_object *self = (tree_object *)object;
    const char *key;
    call c;
    if (!PyArg_ParseTuple(args, "s", &key) || tree_enter(self) < 0) return NULL;
    call_begin(&c, self, self->progress);
    caterva_status status = function(self->handle, key, &c.err);
    int result = call_end(self->state, &c, status);
    tree_leave(self);
    if (result < 0) return NULL;
    Py_RETURN_NONE;
}

static PyObject *create_group(PyObject *object, PyObject *args)
{
    return with_key(object, args, caterva_tree_create_group);
}

static PyObject *remove_member(PyObject *object, PyObject *args)
{
    return with_key(object, args, caterva_tree_delete);
}

static PyObject *move_member(PyObject *object, PyObject *args)
{
    tree_object *self = (tree_object *)object;
    const char *from, *to;
    call c;
    if (!PyArg_ParseTuple(args, "ss", &from, &to) || tree_enter(self) < 0) return NULL;
    call_begin(&c, self, self->progress);
    caterva_status status = caterva_tree_move(self->handle, from, to, &c.err);
    int result = call_end(self->state, &c, status);
    tree_leave(self);
    if (result < 0) return NULL;
    Py_RETURN_NONE;
}

/* ---- The whole tree ---------------------------------------------------------------- */

typedef caterva_status pack_function(caterva_tree *tree, const char *path,
                                     const caterva_tree_pack_options *options,
                                     caterva_error *err);

/* (path, overwrite, zarr, durability, progress) */
static PyObject *write_whole(PyObject *object, PyObject *args, pack_function *function)
{
    tree_object *self = (tree_object *)object;
    caterva_tree_pack_options options = CATERVA_TREE_PACK_INIT;
    int durability;
    PyObject *place, *path, *progress;
    call c;
    if (!PyArg_ParseTuple(args, "UppiO", &place, &options.overwrite, &options.zarr,
                          &durability, &progress) ||
        !(path = place_encoded(place)))
        return NULL;
    if (tree_enter(self) < 0) {
        Py_DECREF(path);
        return NULL;
    }
    const char *text = PyBytes_AsString(path);
    options.durability = (caterva_durability)durability;
    options.progress = call_progress(&c);
    call_begin(&c, self, progress);
    c.reporter = &c;
    caterva_status status = function(self->handle, text, &options, &c.err);
    if (status != CATERVA_ECORRUPT) c.place = place;
    int result = call_end(self->state, &c, status);
    tree_leave(self);
    Py_DECREF(path);
    if (result < 0) return NULL;
    Py_RETURN_NONE;
}

static PyObject *pack(PyObject *object, PyObject *args)
{
    return write_whole(object, args, caterva_tree_pack);
}

static PyObject *unpack(PyObject *object, PyObject *args)
{
    return write_whole(object, args, caterva_tree_unpack);
}

PyMethodDef tree_member_methods[] = {
    {"_list", list_members, METH_VARARGS, NULL},
    {"_zarr_metadata", zarr_metadata, METH_VARARGS, NULL},
    {"_state_id", state_id, METH_NOARGS, NULL},
    {"_open_array", open_array, METH_VARARGS, NULL},
    {"_create_array", create_array, METH_VARARGS, NULL},
    {"_create_group", create_group, METH_VARARGS, NULL},
    {"_remove", remove_member, METH_VARARGS, NULL},
    {"_move", move_member, METH_VARARGS, NULL},
    {"_pack", pack, METH_VARARGS, NULL},
    {"_unpack", unpack, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

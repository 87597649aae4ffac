/* Infos of an array and its chunks, and reading and writing chunks as stored. */
#include "array.h"
#include "options.h"

#include <caterva_upkeep.h>
#include <stdlib.h>

/* ---- The array ------------------------------------------------------------------- */

static PyObject *names_of(const caterva_info *info)
{
    PyObject *names = PyList_New(0);
    for (int i = 0; names && i < info->n_attributes; i++) {
        PyObject *name = name_decoded(info->attribute_names[i]);
        if (!name || PyList_Append(names, name) < 0) Py_CLEAR(names);
        Py_XDECREF(name);
    }
    return names;
}

/* Sets dict[name], where `name` is a stored name. Steals the reference to `value`, which may be
 * NULL with an exception. */
static int set_item(PyObject *dict, const char *name, PyObject *value)
{
    PyObject *key = value ? name_decoded(name) : NULL;
    int result = key ? PyDict_SetItem(dict, key, value) : -1;
    Py_XDECREF(key);
    Py_XDECREF(value);
    return result;
}

static PyObject *metalayers_of(const caterva_info *info)
{
    PyObject *dict = PyDict_New();
    for (int i = 0; dict && i < info->n_metalayers; i++) {
        const caterva_metalayer *m = &info->metalayers[i];
        PyObject *bytes = PyBytes_FromStringAndSize(m->content, (Py_ssize_t)m->size);
        if (set_item(dict, m->name, bytes) < 0) Py_CLEAR(dict);
    }
    return dict;
}

/* Returns the level as frames and the Python side number it: 0 is no compression. In the same way,
 * filter 0 is no filter. */
static int level_of(const caterva_info *info)
{
    return info->level == CATERVA_NONE ? 0 : info->level;
}

static PyObject *filters_of(const int *numbers)
{
    PyObject *tuple = PyTuple_New(CATERVA_MAX_FILTERS);
    for (int i = 0; tuple && i < CATERVA_MAX_FILTERS; i++) {
        PyObject *number = PyLong_FromLong(numbers[i] == CATERVA_FILTER_NONE ? 0 : numbers[i]);
        if (!number || PyTuple_SetItem(tuple, i, number) < 0) Py_CLEAR(tuple);
    }
    return tuple;
}

static PyObject *fill_of(const caterva_info *info)
{
    if (!info->fill_value) Py_RETURN_NONE;
    return PyBytes_FromStringAndSize(info->fill_value, info->item_size);
}

/* Returns the info as a dict; NULL with an exception if one of its values is NULL. */
static PyObject *dict_of(const caterva_info *i)
{
    return Py_BuildValue(
        "{sN sN sN sN sN ss sz sN sO si si sO sO si si si sN sN sO sL sL sL sL sL sL sL sL sN sN "
        "sK si sL sy#}",
        "shape", tuple_of_int64s(i->shape, i->ndim),
        "chunks", tuple_of_int32s(i->chunk_shape, i->ndim),
        "blocks", tuple_of_int32s(i->block_shape, i->ndim),
        "chunk_counts", tuple_of_int64s(i->chunk_counts, i->ndim),
        "block_counts", tuple_of_int64s(i->block_counts, i->ndim),
        "dtype", i->dtype, "dtype_stored", i->dtype_stored, "fill_value", fill_of(i),
        "dtype_disagrees", i->dtype_disagrees ? Py_True : Py_False,
        "layout", (int)i->layout, "metalayer", (int)i->metalayer,
        "in_memory", i->in_memory ? Py_True : Py_False,
        "sealed", i->sealed ? Py_True : Py_False,
        "codec", i->codec, "codec_meta", i->codec_meta, "level", level_of(i),
        "filters", filters_of(i->filters), "filters_meta", filters_of(i->filters_meta),
        "use_dict", i->use_dict ? Py_True : Py_False,
        "n_items", (long long)i->n_items, "n_chunks", (long long)i->n_chunks,
        "n_blocks", (long long)i->n_blocks, "chunk_bytes", (long long)i->chunk_bytes,
        "block_bytes", (long long)i->block_bytes, "data_bytes", (long long)i->data_bytes,
        "frame_bytes", (long long)i->frame_bytes, "header_bytes", (long long)i->header_bytes,
        "attributes", names_of(i), "metalayers", metalayers_of(i),
        "offset", (unsigned long long)i->offset, "durability", (int)i->durability,
        "commit_number", (long long)i->commit_number, "state_id", i->state_id,
        (Py_ssize_t)sizeof i->state_id);
}

static PyObject *describe(PyObject *object, PyObject *unused)
{
    (void)unused;
    array_object *self = (array_object *)object;
    const caterva_info *info;
    call c;
    if (array_enter(self) < 0) return NULL;
    call_begin(&c, self, NULL);
    caterva_status status = caterva_info_get(self->handle, &info, &c.err);
    int result = call_end(self->state, &c, status);
    array_leave(self);
    if (result < 0) return NULL;
    PyObject *dict = dict_of(info);
    caterva_info_release(info);
    return dict;
}

/* ---- All that a data set needs to know about a variable ------------------------------ */

typedef struct stored {
    const caterva_info *info;
    void **values; /* values of its attributes, n_attributes each */
    size_t *sizes;
} stored;

/* Loads the info and all attributes. Called without the GIL. */
static caterva_status load_stored(caterva_array *array, stored *s, caterva_error *err)
{
    caterva_status status = caterva_info_get(array, &s->info, err);
    if (status != CATERVA_OK) return status;
    size_t n = (size_t)s->info->n_attributes;
    s->values = calloc(n + 1, sizeof *s->values);
    s->sizes = calloc(n + 1, sizeof *s->sizes);
    if (!s->values || !s->sizes) return CATERVA_ENOMEM;
    for (size_t i = 0; i < n && status == CATERVA_OK; i++)
        status = caterva_attr_get(array, s->info->attribute_names[i], &s->values[i],
                                  &s->sizes[i], err);
    return status;
}

static void release_stored(stored *s)
{
    for (int i = 0; s->values && i < s->info->n_attributes; i++) caterva_free(s->values[i]);
    free(s->values);
    free(s->sizes);
    if (s->info) caterva_info_release(s->info);
}

static PyObject *values_of(const stored *s)
{
    PyObject *dict = PyDict_New();
    for (int i = 0; dict && i < s->info->n_attributes; i++) {
        PyObject *value = PyBytes_FromStringAndSize(s->values[i], (Py_ssize_t)s->sizes[i]);
        if (set_item(dict, s->info->attribute_names[i], value) < 0) Py_CLEAR(dict);
    }
    return dict;
}

/* () to (shape, chunks, blocks, (codec, codec_meta, level, filters, filters_meta), {attribute:
 * bytes}) */
static PyObject *describe_stored(PyObject *object, PyObject *unused)
{
    (void)unused;
    array_object *self = (array_object *)object;
    stored s = {.info = NULL};
    PyObject *result = NULL;
    call c;
    if (array_enter(self) < 0) return NULL;
    call_begin(&c, self, NULL);
    c.err.message[0] = '\0';
    caterva_status status = load_stored(self->handle, &s, &c.err);
    int ended = call_end(self->state, &c, status);
    array_leave(self);
    const caterva_info *i = s.info;
    if (ended == 0)
        result = Py_BuildValue(
            "NNN(iiiNN)N", tuple_of_int64s(i->shape, i->ndim),
            tuple_of_int32s(i->chunk_shape, i->ndim), tuple_of_int32s(i->block_shape, i->ndim),
            i->codec, i->codec_meta, level_of(i), filters_of(i->filters),
            filters_of(i->filters_meta), values_of(&s));
    release_stored(&s);
    return result;
}

static PyObject *has_pending(PyObject *object, PyObject *unused)
{
    (void)unused;
    array_object *self = (array_object *)object;
    if (array_enter(self) < 0) return NULL;
    int pending = caterva_has_pending(self->handle);
    array_leave(self);
    return PyBool_FromLong(pending);
}

/* () to (stored, special, live bytes, dead bytes, unverified) */
static PyObject *measure(PyObject *object, PyObject *unused)
{
    (void)unused;
    array_object *self = (array_object *)object;
    caterva_space s = CATERVA_SPACE_INIT;
    call c;
    if (array_enter(self) < 0) return NULL;
    call_begin(&c, self, self->progress);
    caterva_status status = caterva_measure(self->handle, &s, &c.err);
    int result = call_end(self->state, &c, status);
    array_leave(self);
    if (result < 0) return NULL;
    return Py_BuildValue("LLLLL", (long long)s.stored_chunks, (long long)s.special_chunks,
                         (long long)s.live_bytes, (long long)s.dead_bytes,
                         (long long)s.unverified_chunks);
}

/* ---- Chunks ------------------------------------------------------------------------ */

/* (chunk) to (index, start, stop, kind, position, stored bytes, memcpyed) */
static PyObject *chunk_info(PyObject *object, PyObject *args)
{
    array_object *self = (array_object *)object;
    long long chunk;
    caterva_chunk_info i = CATERVA_CHUNK_INFO_INIT;
    call c;
    if (!PyArg_ParseTuple(args, "L", &chunk) || array_enter(self) < 0) return NULL;
    call_begin(&c, self, NULL);
    caterva_status status = caterva_chunk_describe(self->handle, chunk, &i, &c.err);
    int result = call_end(self->state, &c, status);
    array_leave(self);
    if (result < 0) return NULL;
    return Py_BuildValue("NNNiLLO", tuple_of_int64s(i.index, self->ndim),
                         tuple_of_int64s(i.start, self->ndim),
                         tuple_of_int64s(i.stop, self->ndim), (int)i.kind,
                         (long long)i.position, (long long)i.stored_bytes,
                         i.memcpyed ? Py_True : Py_False);
}

/* (chunk, block) to (index, start, stop, stored bytes) */
static PyObject *block_info(PyObject *object, PyObject *args)
{
    array_object *self = (array_object *)object;
    long long chunk, block;
    caterva_block_info i = CATERVA_BLOCK_INFO_INIT;
    call c;
    if (!PyArg_ParseTuple(args, "LL", &chunk, &block) || array_enter(self) < 0) return NULL;
    call_begin(&c, self, NULL);
    caterva_status status = caterva_block_describe(self->handle, chunk, block, &i, &c.err);
    int result = call_end(self->state, &c, status);
    array_leave(self);
    if (result < 0) return NULL;
    return Py_BuildValue("NNNL", tuple_of_int64s(i.index, self->ndim),
                         tuple_of_int64s(i.start, self->ndim),
                         tuple_of_int64s(i.stop, self->ndim), (long long)i.stored_bytes);
}

/* Reads the bytes of a stored chunk: asks for the size, then for the bytes. Repeats this if a
 * writer has changed the chunk in between. */
static int read_stored(array_object *self, long long chunk, char **bytes, size_t *size)
{
    call c;
    call_begin(&c, self, NULL);
    caterva_status status =
        caterva_chunk_read_stored(self->handle, chunk, NULL, 0, size, &c.err);
    for (*bytes = NULL; status == CATERVA_OK;) {
        size_t room = *size;
        free(*bytes);
        if (!(*bytes = malloc(room + 1))) break;
        status = caterva_chunk_read_stored(self->handle, chunk, *bytes, room, size, &c.err);
        if (status == CATERVA_OK || *size <= room) break;
        status = CATERVA_OK;
    }
    int result = call_end(self->state, &c, status);
    if (result == 0 && !*bytes) PyErr_NoMemory();
    return result == 0 && *bytes ? 0 : -1;
}

static PyObject *chunk_read(PyObject *object, PyObject *args)
{
    array_object *self = (array_object *)object;
    long long chunk;
    char *bytes = NULL;
    size_t size;
    if (!PyArg_ParseTuple(args, "L", &chunk) || array_enter(self) < 0) return NULL;
    int result = read_stored(self, chunk, &bytes, &size);
    array_leave(self);
    PyObject *out = result == 0 ? PyBytes_FromStringAndSize(bytes, (Py_ssize_t)size) : NULL;
    free(bytes);
    return out;
}

static PyObject *chunk_write(PyObject *object, PyObject *args)
{
    array_object *self = (array_object *)object;
    long long chunk;
    Py_buffer bytes;
    call c;
    if (!PyArg_ParseTuple(args, "Ly*", &chunk, &bytes)) return NULL;
    int result = array_enter(self);
    if (result == 0) {
        call_begin(&c, self, NULL);
        caterva_status status = caterva_chunk_write_stored(self->handle, chunk, bytes.buf,
                                                           (size_t)bytes.len, &c.err);
        result = call_end(self->state, &c, status);
        array_leave(self);
    }
    PyBuffer_Release(&bytes);
    if (result < 0) return NULL;
    Py_RETURN_NONE;
}

/* ---- For readers of Zarr ------------------------------------------------------------ */

/* () to the bytes of zarr.json */
static PyObject *zarr_metadata(PyObject *object, PyObject *unused)
{
    (void)unused;
    array_object *self = (array_object *)object;
    char *text = NULL;
    size_t size = 0;
    call c;
    if (array_enter(self) < 0) return NULL;
    call_begin(&c, self, NULL);
    caterva_status status = caterva_zarr_metadata(self->handle, &text, &size, &c.err);
    int result = call_end(self->state, &c, status);
    array_leave(self);
    PyObject *out = result == 0 ? PyBytes_FromStringAndSize(text, (Py_ssize_t)size) : NULL;
    caterva_free(text);
    return out;
}

/* (index of a block) to a Blosc 1 buffer, or to None if all items are the fill */
static PyObject *zarr_chunk(PyObject *object, PyObject *args)
{
    array_object *self = (array_object *)object;
    int64_t index[CATERVA_MAX_DIMS];
    PyObject *sequence, *out = NULL;
    void *bytes = NULL;
    size_t size = 0;
    call c;
    if (!PyArg_ParseTuple(args, "O", &sequence)) return NULL;
    int n = parse_int64s(sequence, "index", index);
    if (n < 0 || array_enter(self) < 0) return NULL;
    int result = -1;
    if (n == self->ndim) {
        call_begin(&c, self, NULL);
        caterva_status status =
            caterva_zarr_chunk(self->handle, index, &bytes, &size, &c.err);
        result = call_end(self->state, &c, status);
    } else {
        PyErr_Format(PyExc_IndexError, "%d indices of an array with %d axes", n, self->ndim);
    }
    array_leave(self);
    if (result == 0)
        out = bytes ? PyBytes_FromStringAndSize(bytes, (Py_ssize_t)size)
                    : Py_NewRef(Py_None);
    caterva_free(bytes);
    return out;
}

PyMethodDef array_chunk_methods[] = {
    {"_describe", describe, METH_NOARGS, NULL},
    {"_describe_stored", describe_stored, METH_NOARGS, NULL},
    {"_has_pending", has_pending, METH_NOARGS, NULL},
    {"_measure", measure, METH_NOARGS, NULL},
    {"_chunk_info", chunk_info, METH_VARARGS, NULL},
    {"_block_info", block_info, METH_VARARGS, NULL},
    {"_chunk_read", chunk_read, METH_VARARGS, NULL},
    {"_chunk_write", chunk_write, METH_VARARGS, NULL},
    {"_zarr_metadata", zarr_metadata, METH_NOARGS, NULL},
    {"_zarr_chunk", zarr_chunk, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

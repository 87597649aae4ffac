/* Converts dicts to option structs, driven by tables of names and offsets. */
#include "options.h"

#include "call.h"

#include <caterva_remote.h>
#include <limits.h>
#include <stddef.h>
#include <string.h>

typedef enum kind { INT, INT32, INT64, UINT64, TEXT, BYTES } kind;

typedef struct entry {
    const char *name;
    kind kind;
    size_t offset;
} entry;

#define AT(name, kind, member)                                                               \
    {                                                                                        \
        name, kind, offsetof(STRUCT, member)                                                 \
    }

/* Entries for the options that created and opened arrays share. */
#define AT_HANDLES                                                                           \
    AT("threads", INT, threads), AT("durability", INT, durability),                          \
        AT("dirty_budget", INT64, dirty_budget), AT("cache_bytes", INT64, cache_bytes),      \
        AT("no_read_ahead", INT, no_read_ahead), AT("compact_percent", INT, compact_percent)

#define STRUCT caterva_create_options
static const entry create_entries[] = {
    AT("dtype", TEXT, dtype),
    AT("item_size", INT32, item_size),
    AT("layout", INT, layout),
    AT("metalayer", INT, metalayer),
    AT("fill", INT, fill),
    AT("fill_value", BYTES, fill_value),
    AT("codec", INT, codec),
    AT("codec_meta", INT, codec_meta),
    AT("level", INT, level),
    AT("use_dict", INT, use_dict),
    AT("overwrite", INT, overwrite),
    AT_HANDLES,
    {NULL, INT, 0},
};
#undef STRUCT

#define STRUCT caterva_open_options
static const entry open_entries[] = {
    AT("mode", INT, mode),
    AT("offset", UINT64, offset),
    AT("unchecked", INT, unchecked),
    AT("keep_bytes", INT64, keep_bytes),
    AT("end_zarr", INT, end_zarr),
    AT_HANDLES,
    {NULL, INT, 0},
};
#undef STRUCT

#define STRUCT caterva_remote_options
static const entry remote_entries[] = {
    AT("connections", INT, connections),
    AT("connect_timeout_ms", INT, connect_timeout_ms),
    AT("stall_timeout_ms", INT, stall_timeout_ms),
    AT("retries", INT, retries),
    AT("over_read_percent", INT, over_read_percent),
    AT("credentials", INT, credentials),
    AT("access_key", TEXT, access_key),
    AT("secret_key", TEXT, secret_key),
    AT("session_token", TEXT, session_token),
    AT("profile", TEXT, profile),
    AT("region", TEXT, region),
    AT("endpoint", TEXT, endpoint),
    AT("addressing", INT, addressing),
    AT("cache_folder", BYTES, cache_folder),
    AT("cache_bytes", INT64, cache_bytes),
    AT("ca_file", BYTES, ca_file),
    {NULL, INT, 0},
};
#undef STRUCT

#define STRUCT caterva_publish_options
static const entry publish_entries[] = {
    AT("replace", INT, replace),
    AT("if_match", TEXT, if_match),
    AT("part_bytes", INT64, part_bytes),
    AT("resume", BYTES, resume),
    AT("abandon", INT, abandon),
    AT("read_url", TEXT, read_url),
    AT("zarr", INT, zarr),
    {NULL, INT, 0},
};
#undef STRUCT

/* ---- Numbers --------------------------------------------------------------- */

static int store_int(PyObject *value, const entry *e, void *place)
{
    long long n = PyLong_AsLongLong(value);
    if (n == -1 && PyErr_Occurred()) return -1;
    if (e->kind == INT64) {
        memcpy(place, &(int64_t){n}, sizeof(int64_t));
        return 0;
    }
    if (n < INT_MIN || n > INT_MAX) {
        PyErr_Format(PyExc_OverflowError, "%s=%lld does not fit 32 bits", e->name, n);
        return -1;
    }
    memcpy(place, &(int32_t){(int32_t)n}, sizeof(int32_t));
    return 0;
}

static int store(PyObject *value, const entry *e, void *place)
{
    if (e->kind == TEXT) {
        const char *text = PyUnicode_AsUTF8AndSize(value, NULL);
        memcpy(place, &text, sizeof text);
        return text ? 0 : -1;
    }
    if (e->kind == BYTES) {
        const void *bytes = PyBytes_AsString(value);
        memcpy(place, &bytes, sizeof bytes);
        return bytes ? 0 : -1;
    }
    if (e->kind == UINT64) {
        uint64_t n = PyLong_AsUnsignedLongLong(value);
        memcpy(place, &n, sizeof n);
        return n == UINT64_MAX && PyErr_Occurred() ? -1 : 0;
    }
    return store_int(value, e, place);
}

/* Stores a named value. Returns 1, 0 if the table lacks the name, or -1 with an exception. */
static int store_named(const entry *table, const char *name, PyObject *value, void *out)
{
    for (const entry *e = table; e->name; e++)
        if (strcmp(e->name, name) == 0)
            return store(value, e, (char *)out + e->offset) < 0 ? -1 : 1;
    return 0;
}

int parse_int64s(PyObject *sequence, const char *what, int64_t *out)
{
    Py_ssize_t n = PySequence_Size(sequence);
    if (n < 0) return -1;
    if (n > CATERVA_MAX_DIMS) {
        PyErr_Format(PyExc_ValueError, "%s has %zd axes; the limit is %d", what, n,
                     CATERVA_MAX_DIMS);
        return -1;
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *item = PySequence_GetItem(sequence, i);
        PyObject *number = item ? PyNumber_Index(item) : NULL;
        out[i] = number ? PyLong_AsLongLong(number) : -1;
        Py_XDECREF(number);
        Py_XDECREF(item);
        if (PyErr_Occurred()) return -1;
    }
    return (int)n;
}

int parse_int32s(PyObject *sequence, const char *what, int32_t *out)
{
    int64_t wide[CATERVA_MAX_DIMS];
    int n = parse_int64s(sequence, what, wide);
    for (int i = 0; i < n; i++) {
        if (wide[i] < INT32_MIN || wide[i] > INT32_MAX) {
            PyErr_Format(PyExc_ValueError, "%s has %lld items on axis %d; the limit is %d",
                         what, (long long)wide[i], i, INT32_MAX);
            return -1;
        }
        out[i] = (int32_t)wide[i];
    }
    return n;
}

PyObject *tuple_of_int64s(const int64_t *numbers, int n)
{
    PyObject *tuple = PyTuple_New(n);
    for (int i = 0; tuple && i < n; i++) {
        PyObject *number = PyLong_FromLongLong(numbers[i]);
        if (!number || PyTuple_SetItem(tuple, i, number) < 0) Py_CLEAR(tuple);
    }
    return tuple;
}

PyObject *tuple_of_int32s(const int32_t *numbers, int n)
{
    int64_t wide[CATERVA_MAX_DIMS];
    for (int i = 0; i < n; i++) wide[i] = numbers[i];
    return tuple_of_int64s(wide, n);
}

/* ---- Creating ---------------------------------------------------------------- */

static int parse_filters(PyObject *sequence, const char *what, int *out)
{
    int64_t numbers[CATERVA_MAX_DIMS] = {0};
    int n = parse_int64s(sequence, what, numbers);
    if (n > CATERVA_MAX_FILTERS) {
        PyErr_Format(PyExc_ValueError, "%d filters; the limit is %d", n, CATERVA_MAX_FILTERS);
        return -1;
    }
    for (int i = 0; i < n; i++) out[i] = (int)numbers[i];
    return n;
}

/* Parses a list of (name, bytes). */
static int parse_metalayers(PyObject *list, create_parts *parts, caterva_create_options *out)
{
    Py_ssize_t n = PyList_Size(list);
    if (n < 0) return -1;
    parts->metalayers = PyMem_Calloc((size_t)n + 1, sizeof *parts->metalayers);
    if (!parts->metalayers) {
        PyErr_NoMemory();
        return -1;
    }
    out->metalayers = parts->metalayers;
    out->n_metalayers = (int)n;
    for (Py_ssize_t i = 0; i < n; i++) {
        Py_ssize_t size;
        if (!PyArg_ParseTuple(PyList_GetItem(list, i), "sy#", &parts->metalayers[i].name,
                              &parts->metalayers[i].content, &size))
            return -1;
        parts->metalayers[i].size = (size_t)size;
    }
    return 0;
}

/* Stores an option that is not a single number. Returns 1, 0 for an unknown name, or -1 with an
 * exception. */
static int store_compound(const char *name, PyObject *value, create_parts *parts,
                          caterva_create_options *out)
{
    if (strcmp(name, "shape") == 0) {
        out->shape = parts->shape;
        out->ndim = parse_int64s(value, name, parts->shape);
        return out->ndim < 0 ? -1 : 1;
    }
    if (strcmp(name, "chunks") == 0) {
        out->chunk_shape = parts->chunks;
        return parse_int32s(value, name, parts->chunks) < 0 ? -1 : 1;
    }
    if (strcmp(name, "blocks") == 0) {
        out->block_shape = parts->blocks;
        return parse_int32s(value, name, parts->blocks) < 0 ? -1 : 1;
    }
    if (strcmp(name, "filters") == 0)
        return parse_filters(value, name, out->filters) < 0 ? -1 : 1;
    if (strcmp(name, "filters_meta") == 0)
        return parse_filters(value, name, out->filters_meta) < 0 ? -1 : 1;
    if (strcmp(name, "metalayers") == 0)
        return parse_metalayers(value, parts, out) < 0 ? -1 : 1;
    return 0;
}

static int fail_unknown(const char *name)
{
    PyErr_Format(PyExc_TypeError, "there is no option %s", name);
    return -1;
}

int create_options_parse(PyObject *dict, create_parts *parts, caterva_create_options *out)
{
    PyObject *key, *value;
    Py_ssize_t at = 0;
    *out = (caterva_create_options)CATERVA_CREATE_INIT;
    parts->metalayers = NULL;
    while (PyDict_Next(dict, &at, &key, &value)) {
        const char *name = PyUnicode_AsUTF8AndSize(key, NULL);
        if (!name) return -1;
        int stored = store_named(create_entries, name, value, out);
        if (stored == 0) stored = store_compound(name, value, parts, out);
        if (stored == 0) return fail_unknown(name);
        if (stored < 0) return -1;
    }
    out->progress = call_progress(NULL);
    return 0;
}

static int parse_simple(PyObject *dict, const entry *table, void *out)
{
    PyObject *key, *value;
    Py_ssize_t at = 0;
    while (PyDict_Next(dict, &at, &key, &value)) {
        const char *name = PyUnicode_AsUTF8AndSize(key, NULL);
        if (!name) return -1;
        int stored = store_named(table, name, value, out);
        if (stored == 0) return fail_unknown(name);
        if (stored < 0) return -1;
    }
    return 0;
}

int open_options_parse(PyObject *dict, caterva_open_options *out)
{
    *out = (caterva_open_options)CATERVA_OPEN_INIT;
    out->progress = call_progress(NULL);
    return parse_simple(dict, open_entries, out);
}

int remote_options_parse(PyObject *dict, caterva_remote_options *out)
{
    *out = (caterva_remote_options)CATERVA_REMOTE_INIT;
    return parse_simple(dict, remote_entries, out);
}

int publish_options_parse(PyObject *dict, caterva_publish_options *out)
{
    *out = (caterva_publish_options)CATERVA_PUBLISH_INIT;
    return parse_simple(dict, publish_entries, out);
}

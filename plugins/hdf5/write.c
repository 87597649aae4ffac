/* Plug-in hdf5. Writing: groups and attributes at once, a dataset at its first write, because only
 * then it is known whether its chunks are moved or encoded. Dimension scales are made and attached
 * at the end, as netCDF-4 has them. */
#include "hdf5.h"

#include "foreign/values.h"
#include "formats/value.h"
#include "terminal/output.h"

#include <caterva_upkeep.h>
#include <caterva_value.h>
#include <hdf5_hl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEFLATE_LEVEL = 4, PLAIN_BYTES = 4096, CHUNK_BYTES = 1 << 20 };
#define CACHE_BYTES (INT64_C(64) << 20)
#define CHUNK_LIMIT (INT64_C(0xffffffff))

typedef struct group {
    char *path;
    char **growing, **below; /* names of dimensions; below: that only groups below have */
    size_t n_growing, n_below;
} group;

/* A dataset, as far as it is needed after its node is gone. */
typedef struct array {
    char *path;
    size_t depth; /* of its group */
    int ndim;
    int64_t shape[CATERVA_MAX_DIMS];
    char *dims[CATERVA_MAX_DIMS];   /* NULL: no name */
    char *labels[CATERVA_MAX_DIMS]; /* NULL: no label */
    char *scale;                    /* its name as a dimension scale, or NULL */
    bool grows[CATERVA_MAX_DIMS];   /* with its dimension */
    bool exists, is_coordinate, is_moved;
} array;

/* A dimension without a variable. */
typedef struct bare {
    char *path, *place; /* place: of its dataset */
    int64_t length;
} bare;

typedef struct writer {
    foreign_writer *base;
    output out;
    hid_t file, link, attribute; /* link and attribute: properties, names in UTF-8 */
    group *groups;
    array *arrays;
    bare *bares;
    size_t n_groups, n_arrays, n_bares;
    /* The dataset that is written. */
    const foreign_node *node;
    hid_t dataset, type;
    bool is_deflated;
    h5_pipeline pipeline;
    caterva_dtype *texts; /* of items that are written as texts of any length, or NULL */
} writer;

static cli_exit fail(const writer *w, const char *key)
{
    return h5_fail(CLI_IO, w->base->path, key);
}

static void *grow(void *entries, size_t n, size_t size)
{
    if (n & (n - 1)) return entries;
    void *larger = realloc(entries, (n ? 2 * n : 1) * size);
    if (!larger) cli_fail(CLI_IO, "out of memory");
    return larger;
}

/* Returns the size of the path of the group that contains `path`; 0 for the root. */
static size_t group_size(const char *path) { return (size_t)(strrchr(path, '/') - path); }

static const char *name_of(const char *path) { return strrchr(path, '/') + 1; }

/* Returns "<group>/<name>", to be freed. */
static char *join(const char *above, size_t size, const char *name)
{
    size_t room = size + strlen(name) + 2;
    char *path = cli_alloc(room);
    if (path) snprintf(path, room, "%.*s/%s", (int)size, above, name);
    return path;
}

/* ---- Attributes -------------------------------------------------------------------------- */

static bool first_value(const foreign_attribute *a, size_t *at, caterva_value *out)
{
    *out = (caterva_value)CATERVA_VALUE_INIT;
    return caterva_value_next(a->value, a->size, at, out, NULL) == CATERVA_OK;
}

/* Whether an attribute is a text; sets *out to it. */
static bool text_of(const foreign_node *node, const char *name, caterva_value *out)
{
    size_t at = 0;
    const foreign_attribute *a = foreign_attribute_of(node, name);
    return a && first_value(a, &at, out) && out->kind == CATERVA_VALUE_TEXT;
}

static bool is_text(const foreign_node *node, const char *name, const char *text)
{
    caterva_value value;
    return text_of(node, name, &value) && value.size == strlen(text) &&
           memcmp(value.bytes, text, value.size) == 0;
}

/* Makes an attribute; `items` NULL: nothing is written. */
static bool put(const writer *w, hid_t object, const char *name, hid_t type, hid_t memory,
                hid_t space, const void *items)
{
    hid_t id = H5Acreate2(object, name, type, space, w->attribute, H5P_DEFAULT);
    bool ok = id >= 0 && (!items || H5Awrite(id, memory, items) >= 0);
    h5_close(id);
    return ok;
}

static hid_t space_of(int ndim, const int64_t *shape)
{
    hsize_t dims[CATERVA_MAX_DIMS];
    for (int d = 0; d < ndim; d++) dims[d] = (hsize_t)shape[d];
    return ndim > 0 ? H5Screate_simple(ndim, dims, NULL) : H5Screate(H5S_SCALAR);
}

static bool put_items(const writer *w, hid_t object, const char *name, hid_t type, int ndim,
                      const int64_t *shape, const void *items)
{
    hid_t space = space_of(ndim, shape);
    bool ok = type >= 0 && put(w, object, name, type, type, space, items);
    h5_close(space);
    h5_close(type);
    return ok;
}

static bool put_texts(const writer *w, hid_t object, const char *name, int ndim,
                      const int64_t *shape, const char *const *texts)
{
    return put_items(w, object, name, h5_type_string(true, H5T_VARIABLE), ndim, shape, texts);
}

/* A text of one width if it has a zero byte. */
static bool put_text(const writer *w, hid_t object, const char *name, const char *text,
                     size_t size)
{
    if (memchr(text, '\0', size))
        return put_items(w, object, name, h5_type_string(true, size), 0, NULL, text);
    char *copy = strndup(text, size);
    const char *texts[] = {copy};
    bool ok = copy && put_texts(w, object, name, 0, NULL, texts);
    free(copy);
    return ok;
}

/* Bytes are opaque; no bytes are a null dataspace. */
static bool put_bytes(const writer *w, hid_t object, const char *name, const void *bytes,
                      size_t size)
{
    hid_t type = H5Tcreate(H5T_OPAQUE, size ? size : 1);
    hid_t space = H5Screate(size ? H5S_SCALAR : H5S_NULL);
    H5Tset_tag(type, "");
    bool ok = put(w, object, name, type, type, space, size ? bytes : NULL);
    h5_close(space);
    h5_close(type);
    return ok;
}

static bool put_nil(const writer *w, hid_t object, const char *name)
{
    hid_t space = H5Screate(H5S_NULL);
    bool ok = put(w, object, name, H5T_NATIVE_FLOAT, H5T_NATIVE_FLOAT, space, NULL);
    h5_close(space);
    return ok;
}

/* Encodes a character; returns the number of bytes, 0 if UTF-8 has none for it. */
static size_t encode_utf8(uint32_t code, char *out)
{
    if (code < 0x80) {
        out[0] = (char)code;
        return 1;
    }
    size_t n = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    static const uint8_t heads[] = {0, 0, 0xc0, 0xe0, 0xf0};
    if (code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) return 0;
    for (size_t i = n; i-- > 1; code >>= 6) out[i] = (char)(0x80 | (code & 0x3f));
    out[0] = (char)(heads[n] | code);
    return n;
}

/* Makes UTF-8 of one item, with a zero at the end; false if that is impossible. `out` has room for
 * item_size + 1 bytes. */
static bool text_of_item(const caterva_dtype *dtype, const uint8_t *item, char *out)
{
    size_t size = (size_t)dtype->item_size, used = 0;
    bool ended = false;
    if (dtype->kind == 'S') {
        memcpy(out, item, size);
        out[size] = '\0';
        for (used = strlen(out); used < size; used++)
            if (item[used]) return false;
        return true;
    }
    for (size_t at = 0; at + 4 <= size; at += 4) {
        uint32_t code = 0;
        for (size_t b = 0; b < 4; b++)
            code |= (uint32_t)item[at + b] << 8 * (dtype->byte_order == '>' ? 3 - b : b);
        if (code && ended) return false;
        ended = code == 0;
        size_t n = code ? encode_utf8(code, out + used) : 0;
        if (code && n == 0) return false;
        used += n;
    }
    out[used] = '\0';
    return true;
}

/* Makes the texts of `n` items: pointers, and behind them the bytes; NULL with *valid false if an
 * item has no text. Release with free. */
static char **make_texts(const caterva_dtype *dtype, const uint8_t *items, size_t n,
                         bool *valid)
{
    size_t room = (size_t)dtype->item_size + 1;
    *valid = true;
    char **texts = n <= SIZE_MAX / (room + sizeof *texts) ? cli_alloc(n * (room + sizeof *texts))
                                                          : NULL;
    if (!texts) return NULL;
    char *bytes = (char *)(texts + n);
    for (size_t i = 0; i < n; i++) {
        texts[i] = bytes + i * room;
        if (text_of_item(dtype, items + i * (room - 1), texts[i])) continue;
        free(texts);
        *valid = false;
        return NULL;
    }
    return texts;
}

/* An array of items, or one item that keeps its type. */
static bool put_array(const writer *w, hid_t object, const char *name, const caterva_value *v)
{
    caterva_dtype *dtype;
    if (caterva_dtype_parse(v->dtype, &dtype, NULL) != CATERVA_OK) return false;
    bool ok, valid;
    size_t n = dtype->item_size ? v->size / (size_t)dtype->item_size : 0;
    if (dtype->kind == 'U' && dtype->item_size > 0) {
        char **texts = make_texts(dtype, v->bytes, n, &valid);
        ok = texts && put_texts(w, object, name, v->ndim, v->shape,
                                (const char *const *)texts);
        free(texts);
    } else {
        ok = put_items(w, object, name, h5_type_for(dtype), v->ndim, v->shape,
                       n ? v->bytes : NULL);
    }
    caterva_dtype_free(dtype);
    return ok;
}

/* Puts a list of texts, integers, floats or booleans of one kind; false for other lists. */
static bool put_list(const writer *w, hid_t object, const char *name,
                     const foreign_attribute *a, size_t at, size_t n)
{
    caterva_value v;
    const int64_t shape[] = {(int64_t)n};
    caterva_value_kind kind = CATERVA_VALUE_TEXT;
    if (n > a->size) return false;
    char **texts = calloc(n + 1, sizeof *texts);
    double *reals = calloc(n + 1, sizeof *reals);
    int64_t *integers = calloc(n + 1, sizeof *integers);
    uint8_t *bools = calloc(n + 1, 1);
    bool same = texts && reals && integers && bools;
    for (size_t i = 0; i < n && same; i++) {
        same = first_value(a, &at, &v);
        if (i == 0) kind = v.kind;
        if (!same || v.kind != kind) same = false;
        if (!same) break;
        reals[i] = v.real;
        integers[i] = v.integer;
        bools[i] = v.integer != 0;
        if (kind != CATERVA_VALUE_TEXT) continue;
        same = !memchr(v.bytes, '\0', v.size);
        if (same) texts[i] = strndup(v.bytes, v.size);
        same = same && texts[i];
    }
    if (same && kind == CATERVA_VALUE_TEXT)
        same = put_texts(w, object, name, 1, shape, (const char *const *)texts);
    else if (same && kind == CATERVA_VALUE_INT)
        same = put_items(w, object, name, H5Tcopy(H5T_NATIVE_INT64), 1, shape, integers);
    else if (same && kind == CATERVA_VALUE_REAL)
        same = put_items(w, object, name, H5Tcopy(H5T_NATIVE_DOUBLE), 1, shape, reals);
    else if (same && kind == CATERVA_VALUE_BOOL)
        same = put_items(w, object, name, h5_type_bool(), 1, shape, bools);
    else
        same = false;
    for (size_t i = 0; texts && i < n; i++) free(texts[i]);
    free(texts);
    free(reals);
    free(integers);
    free(bools);
    return same;
}

/* Puts a value as HDF5 has it; false if HDF5 has none like it. */
static bool put_value(const writer *w, hid_t object, const foreign_attribute *a)
{
    size_t at = 0;
    caterva_value v;
    if (!first_value(a, &at, &v)) return put_bytes(w, object, a->name, a->value, a->size);
    const double parts[] = {v.real, v.imaginary};
    const uint8_t truth = v.integer != 0;
    caterva_dtype complex = {.kind = 'c', .byte_order = '<', .item_size = 16};
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    complex.byte_order = '>';
#endif
    switch (v.kind) {
    case CATERVA_VALUE_NIL: return put_nil(w, object, a->name);
    case CATERVA_VALUE_TEXT: return put_text(w, object, a->name, v.bytes, v.size);
    case CATERVA_VALUE_BYTES: return put_bytes(w, object, a->name, v.bytes, v.size);
    case CATERVA_VALUE_ARRAY: return put_array(w, object, a->name, &v);
    case CATERVA_VALUE_LIST: return put_list(w, object, a->name, a, at, (size_t)v.count);
    case CATERVA_VALUE_BOOL: return put_items(w, object, a->name, h5_type_bool(), 0, NULL, &truth);
    case CATERVA_VALUE_INT:
        return put_items(w, object, a->name, H5Tcopy(H5T_NATIVE_INT64), 0, NULL, &v.integer);
    case CATERVA_VALUE_UINT:
        return put_items(w, object, a->name, H5Tcopy(H5T_NATIVE_UINT64), 0, NULL, &v.integer);
    case CATERVA_VALUE_REAL:
        return put_items(w, object, a->name, H5Tcopy(H5T_NATIVE_DOUBLE), 0, NULL, &v.real);
    case CATERVA_VALUE_COMPLEX:
        return put_items(w, object, a->name, h5_type_for(&complex), 0, NULL, parts);
    default: return false;
    }
}

/* Texts that an attribute holds: borrowed. */
typedef struct text_list {
    const char **text;
    size_t *size, n;
    int ndim;
    int64_t shape[CATERVA_MAX_DIMS];
} text_list;

static void free_texts(text_list *t)
{
    free(t->text);
    free(t->size);
}

/* Takes a text, bytes, a list of texts, or an array of bytes of one width; false for others. */
static bool take_texts(const foreign_attribute *a, text_list *out)
{
    size_t at = 0;
    caterva_value v;
    *out = (text_list){.n = 1};
    if (!first_value(a, &at, &v)) return false;
    const caterva_value whole = v;
    bool is_list = v.kind == CATERVA_VALUE_LIST && v.count >= 0 && (size_t)v.count <= a->size;
    bool is_array = v.kind == CATERVA_VALUE_ARRAY && v.dtype[1] == 'S' && v.ndim > 0;
    size_t width = is_array ? strtoul(v.dtype + 2, NULL, 10) : 0;
    if (is_array) {
        out->ndim = v.ndim;
        memcpy(out->shape, v.shape, sizeof v.shape);
        out->n = width > 0 ? v.size / width : 0;
    } else if (is_list) {
        out->ndim = 1;
        out->shape[0] = v.count;
        out->n = (size_t)v.count;
    }
    out->text = calloc(out->n + 1, sizeof *out->text);
    out->size = calloc(out->n + 1, sizeof *out->size);
    bool ok = out->text && out->size;
    for (size_t i = 0; i < out->n && ok; i++) {
        if (is_list) ok = first_value(a, &at, &v);
        ok = ok && (is_array || v.kind == CATERVA_VALUE_TEXT ||
                    (!is_list && v.kind == CATERVA_VALUE_BYTES));
        if (!ok) break;
        out->text[i] = is_array ? (const char *)whole.bytes + i * width : v.bytes;
        out->size[i] = is_array ? width : v.size;
        while (is_array && out->size[i] > 0 && !out->text[i][out->size[i] - 1]) out->size[i]--;
    }
    if (!ok) free_texts(out);
    return ok;
}

static bool put_fixed(const writer *w, hid_t object, const char *name, const text_list *t,
                      bool is_utf8, size_t width)
{
    char *items = t->n <= SIZE_MAX / width - 1 ? calloc(t->n + 1, width) : NULL;
    bool ok = items;
    for (size_t i = 0; i < t->n && ok; i++) {
        ok = t->size[i] <= width;
        if (ok) memcpy(items + i * width, t->text[i], t->size[i]);
    }
    ok = ok && put_items(w, object, name, h5_type_string(is_utf8, width), t->ndim, t->shape,
                         t->n ? items : NULL);
    free(items);
    return ok;
}

static bool put_any_length(const writer *w, hid_t object, const char *name, const text_list *t,
                           bool is_utf8)
{
    char **copies = calloc(t->n + 1, sizeof *copies);
    bool ok = copies;
    for (size_t i = 0; i < t->n && ok; i++) {
        copies[i] = strndup(t->text[i], t->size[i]);
        ok = copies[i] && strlen(copies[i]) == t->size[i];
    }
    ok = ok && put_items(w, object, name, h5_type_string(is_utf8, H5T_VARIABLE), t->ndim, t->shape,
                         t->n ? copies : NULL);
    for (size_t i = 0; copies && i < t->n; i++) free(copies[i]);
    free(copies);
    return ok;
}

/* Puts a value with the type that the attribute `_types` names: "ascii 5", "utf-8" (of any length),
 * "null <i8". Returns false if `_types` has no entry for it, or if the value does not fit. */
static bool put_typed(const writer *w, hid_t object, const foreign_node *node,
                      const foreign_attribute *a)
{
    char type[64];
    size_t size, at = 0, width = 0;
    caterva_value v;
    text_list t;
    const char *given = values_text(values_find(values_of(node, H5_TYPES), a->name), &size);
    if (!given || size >= sizeof type) return false;
    snprintf(type, sizeof type, "%.*s", (int)size, given);
    bool null = strncmp(type, "null ", 5) == 0;
    const char *rest = null ? type + 5 : type, *blank = strchr(rest, ' ');
    bool is_utf8 = strncmp(rest, "utf-8", 5) == 0;
    bool is_text = is_utf8 || strncmp(rest, "ascii", 5) == 0;
    if (blank) width = strtoul(blank, NULL, 10);
    if (null) {
        caterva_dtype *dtype;
        if (!first_value(a, &at, &v) || v.kind != CATERVA_VALUE_NIL) return false;
        hid_t id = -1, space = H5Screate(H5S_NULL);
        if (is_text) {
            id = h5_type_string(is_utf8, width ? width : H5T_VARIABLE);
        } else if (caterva_dtype_parse(rest, &dtype, NULL) == CATERVA_OK) {
            id = h5_type_for(dtype);
            caterva_dtype_free(dtype);
        }
        bool ok = id >= 0 && put(w, object, a->name, id, id, space, NULL);
        h5_close(space);
        h5_close(id);
        return ok;
    }
    if (!is_text || !take_texts(a, &t)) return false;
    bool ok = width ? put_fixed(w, object, a->name, &t, is_utf8, width)
                    : put_any_length(w, object, a->name, &t, is_utf8);
    free_texts(&t);
    return ok;
}

/* The fill of a dataset has the type of its items, unless it has one of its own. */
static bool put_fill(const writer *w, hid_t object, const foreign_attribute *a, hid_t type)
{
    size_t at = 0;
    caterva_value v;
    H5T_class_t class = type >= 0 ? H5Tget_class(type) : H5T_NO_CLASS;
    if (!first_value(a, &at, &v)) return false;
    if (class == H5T_ENUM && v.kind == CATERVA_VALUE_ARRAY && v.ndim == 0 &&
        v.size == H5Tget_size(type))
        return put_items(w, object, a->name, H5Tcopy(type), 0, NULL, v.bytes);
    if (class == H5T_STRING && v.kind == CATERVA_VALUE_TEXT && v.size == 1 &&
        H5Tget_size(type) == 1 && H5Tis_variable_str(type) <= 0)
        return put_items(w, object, a->name, H5Tcopy(type), 0, NULL, v.bytes);
    if (class != H5T_INTEGER && class != H5T_FLOAT) return false;
    hid_t memory = v.kind == CATERVA_VALUE_REAL  ? H5Tcopy(H5T_NATIVE_DOUBLE)
                   : v.kind == CATERVA_VALUE_INT ? H5Tcopy(H5T_NATIVE_INT64)
                                                 : -1;
    const void *item = v.kind == CATERVA_VALUE_REAL ? (const void *)&v.real : &v.integer;
    hid_t space = H5Screate(H5S_SCALAR);
    bool ok = memory >= 0 && put(w, object, a->name, type, memory, space, item);
    h5_close(space);
    h5_close(memory);
    return ok;
}

/* Attributes that HDF5 expresses otherwise. */
static bool is_consumed(const writer *w, const foreign_node *node, const char *name)
{
    static const char *const of_arrays[] = {"dims",  "_caterva", H5_ENUM,     H5_VLEN,   H5_NULL,
                                            H5_TYPE, H5_TYPES,   H5_MAXSHAPE, H5_LABELS, H5_SCALE};
    if (node->is_group)
        return strcmp(name, H5_UNLIMITED) == 0 || strcmp(name, H5_DIMS) == 0 ||
               strcmp(name, H5_TYPES) == 0;
    for (size_t i = 0; i < sizeof of_arrays / sizeof of_arrays[0]; i++) {
        if (strcmp(name, of_arrays[i]) != 0) continue;
        bool is_enum = strcmp(name, H5_ENUM) == 0;
        return !is_enum || H5Tget_class(w->type) == H5T_ENUM;
    }
    return strcmp(name, "_Encoding") == 0 && H5Tget_class(w->type) == H5T_STRING &&
           H5Tget_cset(w->type) == H5T_CSET_UTF8 && !w->texts;
}

/* Writes a value as JSON if nothing else holds it. Sets *as_json. */
static cli_exit put_attribute(const writer *w, hid_t object, const foreign_node *node,
                              const foreign_attribute *a, bool *as_json)
{
    *as_json = false;
    if (!node->is_group && strcmp(a->name, "_FillValue") == 0 &&
        put_fill(w, object, a, w->type))
        return CLI_OK;
    H5Adelete(object, a->name);
    if (put_typed(w, object, node, a)) return CLI_OK;
    H5Adelete(object, a->name);
    if (put_value(w, object, a)) return CLI_OK;
    H5Adelete(object, a->name);
    char *text = value_text(a->value, a->size);
    if (!text) return CLI_IO;
    *as_json = put_text(w, object, a->name, text, strlen(text));
    free(text);
    if (*as_json) return CLI_OK;
    return foreign_lose_writing(w->base, "%s: libhdf5 refuses the attribute %s", node->key,
                                a->name);
}

static cli_exit put_attributes(const writer *w, hid_t object, const foreign_node *node)
{
    const char **encoded = cli_alloc((node->n_attributes + 1) * sizeof *encoded);
    int64_t n = 0;
    cli_exit code = encoded ? CLI_OK : CLI_IO;
    for (size_t i = 0; i < node->n_attributes && code == CLI_OK; i++) {
        bool as_json;
        const foreign_attribute *a = &node->attributes[i];
        if (is_consumed(w, node, a->name)) continue;
        code = put_attribute(w, object, node, a, &as_json);
        if (as_json) encoded[n++] = a->name;
    }
    if (code == CLI_OK && n > 0 && !put_texts(w, object, H5_JSON, 1, &n, encoded))
        code = fail(w, node->key);
    free(encoded);
    return code;
}

/* ---- Types ------------------------------------------------------------------------------- */

/* Returns the enumeration of the attribute `_enum`, or -1. */
static hid_t enum_type(const foreign_node *node, const caterva_dtype *dtype)
{
    size_t at = 0;
    caterva_value map, key, value;
    const foreign_attribute *a = foreign_attribute_of(node, H5_ENUM);
    if (!a || !first_value(a, &at, &map) || map.kind != CATERVA_VALUE_MAP || map.count < 1 ||
        (dtype->kind != 'i' && dtype->kind != 'u'))
        return -1;
    hid_t base = h5_type_for(dtype), type = H5Tenum_create(base);
    bool is_unsigned = dtype->kind == 'u', ok = type >= 0;
    for (int64_t i = 0; ok && i < map.count; i++) {
        uint8_t member[8];
        ok = first_value(a, &at, &key) && first_value(a, &at, &value) &&
             key.kind == CATERVA_VALUE_TEXT && !memchr(key.bytes, '\0', key.size) &&
             (value.kind == CATERVA_VALUE_INT ||
              (value.kind == CATERVA_VALUE_UINT && is_unsigned));
        if (!ok) break;
        char *name = strndup(key.bytes, key.size);
        memcpy(member, &value.integer, 8);
        ok = name &&
             H5Tconvert(is_unsigned ? H5T_NATIVE_UINT64 : H5T_NATIVE_INT64, base, 1, member,
                        NULL, H5P_DEFAULT) >= 0 &&
             H5Tenum_insert(type, name, member) >= 0;
        free(name);
    }
    h5_close(base);
    if (ok) return type;
    h5_close(type);
    return -1;
}

/* Sets w->type, and w->texts if items are written as texts of any length. */
static cli_exit choose_type(writer *w, const foreign_node *node)
{
    caterva_dtype *dtype;
    caterva_error err;
    if (caterva_dtype_parse(node->dtype, &dtype, &err) != CATERVA_OK)
        return cli_fail(CLI_UNSUPPORTED, "%s: %s: %s", w->base->path, node->key, err.message);
    caterva_value value;
    bool is_vlen = dtype->kind == 'S' && text_of(node, H5_VLEN, &value);
    w->type = enum_type(node, dtype);
    if (w->type < 0 && dtype->ndim == 0 && (dtype->kind == 'U' || is_vlen)) {
        w->type = h5_type_string(dtype->kind == 'U', H5T_VARIABLE);
        w->texts = dtype;
        return CLI_OK;
    }
    if (w->type < 0) w->type = h5_type_for(dtype);
    if (dtype->kind == 'S' && dtype->item_size > 1 && is_text(node, "_Encoding", "utf-8"))
        H5Tset_cset(w->type, H5T_CSET_UTF8);
    caterva_dtype_free(dtype);
    if (w->type >= 0) return CLI_OK;
    return cli_fail(CLI_UNSUPPORTED, "%s: HDF5 has no type for the items of %s, %s",
                    w->base->path, node->key, node->dtype);
}

/* Replaces w->type by the named type that the attribute `_type` has the key of. netCDF reads
 * enumerations and structures only if their types have names. */
static cli_exit name_type(writer *w, const foreign_node *node)
{
    caterva_value value;
    H5T_class_t class = H5Tget_class(w->type);
    if (!text_of(node, H5_TYPE, &value) || value.size < 2 || *(const char *)value.bytes != '/' ||
        (class != H5T_ENUM && class != H5T_COMPOUND && class != H5T_OPAQUE))
        return CLI_OK;
    char *path = strndup(value.bytes, value.size);
    if (!path) return cli_fail(CLI_IO, "out of memory");
    bool exists = H5Lexists(w->file, path, H5P_DEFAULT) > 0;
    hid_t type = exists ? H5Topen2(w->file, path, H5P_DEFAULT) : H5Tcopy(w->type);
    bool ok = type >= 0 && H5Tequal(type, w->type) > 0 &&
              (exists || H5Tcommit2(w->file, path, type, w->link, H5P_DEFAULT, H5P_DEFAULT) >= 0);
    cli_exit code = ok ? CLI_OK
                       : foreign_lose_writing(w->base, "%s: the name of its type, %s", node->key,
                                              path);
    h5_close(ok ? w->type : type);
    if (ok) w->type = type;
    free(path);
    return code;
}

/* ---- Datasets ---------------------------------------------------------------------------- */

/* Whether the name of an axis is a label only. */
static bool is_label(const array *a, int d)
{
    return a->labels[d] && a->dims[d] && strcmp(a->labels[d], a->dims[d]) == 0;
}

static array *array_of(const writer *w, const foreign_node *node)
{
    return &w->arrays[(uintptr_t)node->own - 1];
}

static void close_set(writer *w)
{
    h5_close(w->dataset);
    h5_close(w->type);
    caterva_dtype_free(w->texts);
    w->dataset = w->type = -1;
    w->texts = NULL;
    w->node = NULL;
}

/* Returns the size of the path of the group that a new dimension of an array belongs to: the array's
 * group, or the nearest one that lists the dimension. *listed is whether there is one. */
static size_t home_of(const writer *w, const char *key, const char *dim, bool *listed)
{
    size_t home = 0;
    *listed = false;
    for (size_t g = 0; g < w->n_groups; g++) {
        size_t size = strlen(w->groups[g].path);
        if (strncmp(key, w->groups[g].path, size) != 0 || key[size] != '/' || size < home) continue;
        for (size_t i = 0; i < w->groups[g].n_below; i++) {
            if (strcmp(w->groups[g].below[i], dim) != 0) continue;
            home = size;
            *listed = true;
        }
    }
    return *listed ? home : group_size(key);
}

/* Whether the dimension of an axis is meant to grow, by its group or one above. */
static bool is_growing(const writer *w, const foreign_node *node, int d)
{
    bool listed;
    if (!node->dims || !node->dims[d]) return false;
    const size_t home = home_of(w, node->key, node->dims[d], &listed);
    for (size_t g = 0; g < w->n_groups; g++) {
        size_t size = strlen(w->groups[g].path);
        if (listed && size != home) continue;
        if (strncmp(node->key, w->groups[g].path, size) != 0 || node->key[size] != '/') continue;
        for (size_t i = 0; i < w->groups[g].n_growing; i++)
            if (strcmp(w->groups[g].growing[i], node->dims[d]) == 0) return true;
    }
    return false;
}

/* Returns the maximum length of an axis: from `_maxshape`, or else from its dimension. */
static hsize_t most_of(const writer *w, const foreign_node *node, int d)
{
    packed_value key, limit;
    size_t at = 0, pos = 0;
    caterva_value v = CATERVA_VALUE_INIT;
    const hsize_t length = (hsize_t)node->shape[d];
    for (int i = 0; i <= d; i++)
        if (!values_next(values_of(node, H5_MAXSHAPE), &at, &key, &limit))
            return is_growing(w, node, d) ? H5S_UNLIMITED : length;
    if (caterva_value_next(limit.bytes, limit.size, &pos, &v, NULL) != CATERVA_OK) return length;
    if (v.kind == CATERVA_VALUE_NIL) return H5S_UNLIMITED;
    return v.kind == CATERVA_VALUE_INT && v.integer > node->shape[d] ? (hsize_t)v.integer : length;
}

static bool may_grow(const writer *w, const foreign_node *node, int d)
{
    return most_of(w, node, d) != (hsize_t)node->shape[d];
}

static int64_t chunk_bytes(const foreign_node *node)
{
    int64_t bytes = node->item_size;
    for (int d = 0; d < node->ndim; d++) {
        if (node->chunk_shape[d] == 0) return 0;
        if (bytes > CHUNK_LIMIT / node->chunk_shape[d]) return CHUNK_LIMIT;
        bytes *= node->chunk_shape[d];
    }
    return bytes;
}

/* Chooses chunks of about a mebibyte: long on the last axes. */
static void choose_chunks(foreign_node *node)
{
    int64_t room = CHUNK_BYTES / node->item_size;
    for (int d = node->ndim - 1; d >= 0; d--) {
        int64_t length = node->shape[d] < room ? node->shape[d] : room;
        node->chunk_shape[d] = length > 0 ? length : 1;
        room /= node->chunk_shape[d];
    }
}

/* Sets node->chunk_shape to what HDF5 can have: all 0 for a small dataset of a fixed shape. */
static void adapt_chunks(const writer *w, foreign_node *node)
{
    bool grows = false, same = true;
    int64_t n = 1;
    for (int d = 0; d < node->ndim; d++) {
        grows = grows || may_grow(w, node, d);
        n = node->shape[d] > INT64_MAX / 64 / n ? INT64_MAX / 64 : n * node->shape[d];
        if (n == 0) n = 1;
    }
    if (!grows && n <= PLAIN_BYTES / node->item_size) {
        memset(node->chunk_shape, 0, sizeof node->chunk_shape);
        memset(node->block_shape, 0, sizeof node->block_shape);
        return;
    }
    int64_t bytes = chunk_bytes(node);
    if (bytes == 0 || bytes >= CHUNK_LIMIT) {
        choose_chunks(node);
        same = false;
    }
    for (int d = 0; d < node->ndim; d++) {
        if ((hsize_t)node->chunk_shape[d] <= most_of(w, node, d)) continue;
        node->chunk_shape[d] = node->shape[d] > 0 ? node->shape[d] : 1;
        same = false;
    }
    if (!same) memset(node->block_shape, 0, sizeof node->block_shape);
}

/* Filter 32026; filters.c has the meaning of the values. */
static void set_blosc2(hid_t properties, const foreign_node *node)
{
    unsigned values[8 + CATERVA_MAX_DIMS] = {1, 0, 0, 0, 5, 1, 5};
    size_t block = (size_t)node->item_size;
    for (int d = 0; d < node->ndim; d++) {
        block *= (size_t)node->block_shape[d];
        values[8 + d] = (unsigned)node->chunk_shape[d];
    }
    values[1] = (unsigned)block;
    values[2] = (unsigned)node->item_size;
    values[3] = (unsigned)chunk_bytes(node);
    values[7] = (unsigned)node->ndim;
    H5Pset_filter(properties, H5_FILTER_BLOSC2, H5Z_FLAG_MANDATORY, 8 + (size_t)node->ndim,
                  values);
}

static hid_t creation_of(const writer *w, const foreign_node *node, bool move)
{
    hid_t properties = H5Pcreate(H5P_DATASET_CREATE);
    hsize_t chunk[CATERVA_MAX_DIMS];
    H5Pset_attr_creation_order(properties, H5P_CRT_ORDER_TRACKED);
    H5Pset_obj_track_times(properties, false); /* equal arrays become equal files */
    for (int d = 0; d < node->ndim; d++) chunk[d] = (hsize_t)node->chunk_shape[d];
    if (node->fill && !w->texts) H5Pset_fill_value(properties, w->type, node->fill);
    if (node->ndim == 0 || chunk[0] == 0) return properties;
    H5Pset_chunk(properties, node->ndim, chunk);
    if (move) {
        set_blosc2(properties, node);
    } else if (!w->texts) {
        if (node->item_size > 1) H5Pset_shuffle(properties);
        H5Pset_deflate(properties, DEFLATE_LEVEL);
    }
    return properties;
}

/* Creates the dataset, which stays open. */
static cli_exit create_set(writer *w, const foreign_node *node, bool move)
{
    array *a = array_of(w, node);
    hsize_t dims[CATERVA_MAX_DIMS], most[CATERVA_MAX_DIMS];
    close_set(w);
    CLI_TRY(choose_type(w, node));
    for (int d = 0; d < node->ndim; d++) {
        dims[d] = (hsize_t)node->shape[d];
        most[d] = most_of(w, node, d);
    }
    CLI_TRY(name_type(w, node));
    bool is_null = node->ndim == 1 && node->shape[0] == 0 && foreign_attribute_of(node, H5_NULL);
    hid_t space = is_null          ? H5Screate(H5S_NULL)
                  : node->ndim > 0 ? H5Screate_simple(node->ndim, dims, most)
                                   : H5Screate(H5S_SCALAR);
    hid_t properties = creation_of(w, node, move), access = H5Pcreate(H5P_DATASET_ACCESS);
    int64_t bytes = chunk_bytes(node); /* boxes are whole chunks: one is enough */
    H5Pset_chunk_cache(access, 521, bytes <= CACHE_BYTES ? (size_t)bytes : 0, 1.0);
    w->dataset = H5Dcreate2(w->file, node->key, w->type, space, w->link, properties, access);
    h5_close(access);
    h5_close(properties);
    h5_close(space);
    if (w->dataset < 0) return fail(w, node->key);
    properties = H5Dget_create_plist(w->dataset); /* now shuffle has the size of an element */
    w->is_deflated = h5_pipeline_of(properties, &w->pipeline);
    h5_close(properties);
    w->node = node;
    a->exists = true;
    a->is_moved = move;
    CLI_TRY(put_attributes(w, w->dataset, node));
    caterva_value vlen;
    const char *dtype[] = {node->dtype};
    if (w->texts && w->texts->kind == 'U' && !text_of(node, H5_VLEN, &vlen) &&
        !put_texts(w, w->dataset, H5_DTYPE, 0, NULL, dtype))
        return fail(w, node->key);
    return CLI_OK;
}

static cli_exit select_set(writer *w, const foreign_node *node, bool move)
{
    array *a = array_of(w, node);
    if (!a->exists) return create_set(w, node, move);
    if (w->node == node) return CLI_OK;
    close_set(w);
    CLI_TRY(choose_type(w, node));
    w->dataset = H5Dopen2(w->file, node->key, H5P_DEFAULT);
    w->node = node;
    w->is_deflated = false;
    return w->dataset < 0 ? fail(w, node->key) : CLI_OK;
}

/* ---- The functions of a writer ----------------------------------------------------------- */

static cli_exit take_names(const foreign_node *node, const char *name, char ***names,
                           size_t *n_names)
{
    size_t at = 0;
    caterva_value v;
    const foreign_attribute *a = foreign_attribute_of(node, name);
    if (!a || !first_value(a, &at, &v) || v.kind != CATERVA_VALUE_LIST ||
        (size_t)v.count > a->size)
        return CLI_OK;
    int64_t n = v.count;
    *names = calloc((size_t)n + 1, sizeof **names);
    if (!*names) return cli_fail(CLI_IO, "out of memory");
    for (int64_t i = 0; i < n && first_value(a, &at, &v); i++)
        if (v.kind == CATERVA_VALUE_TEXT)
            (*names)[(*n_names)++] = strndup(v.bytes, v.size);
    return CLI_OK;
}

static cli_exit add_group(writer *w, const foreign_node *node)
{
    bool is_root = strcmp(node->key, "/") == 0;
    group *larger = grow(w->groups, w->n_groups, sizeof *larger);
    if (!larger) return CLI_IO;
    w->groups = larger;
    group *g = &w->groups[w->n_groups++];
    *g = (group){.path = cli_copy_text(is_root ? "" : node->key)};
    if (!g->path) return CLI_IO;
    CLI_TRY(take_names(node, H5_UNLIMITED, &g->growing, &g->n_growing));
    CLI_TRY(take_names(node, H5_DIMS, &g->below, &g->n_below));
    hid_t properties = H5Pcreate(H5P_GROUP_CREATE);
    H5Pset_link_creation_order(properties, H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED);
    H5Pset_attr_creation_order(properties, H5P_CRT_ORDER_TRACKED);
    H5Pset_obj_track_times(properties, false);
    hid_t id = is_root ? H5Gopen2(w->file, "/", H5P_DEFAULT)
                       : H5Gcreate2(w->file, node->key, w->link, properties, H5P_DEFAULT);
    h5_close(properties);
    cli_exit code = id >= 0 ? put_attributes(w, id, node) : fail(w, node->key);
    h5_close(id);
    return code;
}

/* Takes what the dimension scales of an array are made of. */
static cli_exit take_axes(writer *w, const foreign_node *node, array *a)
{
    packed_value key, label;
    const char *text;
    size_t at = 0, size;
    bool listed;
    for (int d = 0; d < node->ndim; d++) {
        const char *name = node->dims ? node->dims[d] : NULL;
        bool has_label = values_next(values_of(node, H5_LABELS), &at, &key, &label);
        a->grows[d] = is_growing(w, node, d);
        if (name && *name && !strchr(name, '/') && !(a->dims[d] = cli_copy_text(name)))
            return CLI_IO;
        if (has_label && (text = values_text(label, &size)) &&
            !(a->labels[d] = strndup(text, size)))
            return cli_fail(CLI_IO, "out of memory");
    }
    text = values_text(values_of(node, H5_SCALE), &size);
    if (text && !(a->scale = strndup(text, size))) return cli_fail(CLI_IO, "out of memory");
    a->is_coordinate = node->ndim == 1 && a->dims[0] &&
                       strcmp(a->dims[0], name_of(node->key)) == 0 && !is_label(a, 0) &&
                       home_of(w, node->key, a->dims[0], &listed) == group_size(node->key);
    return CLI_OK;
}

static cli_exit add_array(writer *w, foreign_node *node)
{
    array *larger = grow(w->arrays, w->n_arrays, sizeof *larger);
    if (!larger) return CLI_IO;
    w->arrays = larger;
    array *a = &w->arrays[w->n_arrays++];
    *a = (array){.path = cli_copy_text(node->key), .ndim = node->ndim};
    if (!a->path) return CLI_IO;
    for (const char *c = node->key + 1; *c; c++) a->depth += *c == '/';
    memcpy(a->shape, node->shape, sizeof a->shape);
    bool is_empty = false;
    for (int d = 0; d < node->ndim; d++) is_empty = is_empty || node->shape[d] == 0;
    CLI_TRY(take_axes(w, node, a));
    node->own = (void *)(uintptr_t)w->n_arrays;
    close_set(w);
    CLI_TRY(choose_type(w, node)); /* an error before anything is written */
    adapt_chunks(w, node);
    if (w->texts) memset(node->block_shape, 0, sizeof node->block_shape); /* items do not move */
    return is_empty ? create_set(w, node, false) : CLI_OK;
}

static cli_exit add(foreign_writer *self, foreign_node *node)
{
    h5_begin();
    return node->is_group ? add_group(self->own, node) : add_array(self->own, node);
}

static cli_exit write_texts(writer *w, const foreign_node *node, hid_t memory, hid_t space,
                            const uint8_t *items)
{
    bool valid;
    size_t n = (size_t)H5Sget_simple_extent_npoints(memory);
    char **texts = make_texts(w->texts, items, n, &valid);
    if (!valid)
        return cli_fail(CLI_UNSUPPORTED,
                        "%s: %s has a text with a zero inside, or one that UTF-8 lacks",
                        w->base->path, node->key);
    if (!texts) return CLI_IO;
    herr_t done = H5Dwrite(w->dataset, w->type, memory, space, H5P_DEFAULT, texts);
    free(texts);
    return done < 0 ? fail(w, node->key) : CLI_OK;
}

static cli_exit write_items(foreign_writer *self, const foreign_node *node,
                            const int64_t *start, const int64_t *stop, const void *src)
{
    writer *w = self->own;
    hsize_t from[CATERVA_MAX_DIMS], count[CATERVA_MAX_DIMS];
    h5_begin();
    CLI_TRY(select_set(w, node, false));
    for (int d = 0; d < node->ndim; d++) {
        from[d] = (hsize_t)start[d];
        count[d] = (hsize_t)(stop[d] - start[d]);
    }
    cli_exit code = CLI_OK;
    const h5_chunk_box chunks = {
        w->base->path, w->dataset, node, &w->pipeline, start, stop, (uint8_t *)(uintptr_t)src};
    if (w->is_deflated && h5_write_chunks(&chunks, w->base->threads, &code)) return code;
    hid_t space = H5Dget_space(w->dataset);
    hid_t memory =
        node->ndim > 0 ? H5Screate_simple(node->ndim, count, NULL) : H5Screate(H5S_SCALAR);
    if (node->ndim > 0 &&
        H5Sselect_hyperslab(space, H5S_SELECT_SET, from, NULL, count, NULL) < 0)
        code = fail(w, node->key);
    else if (w->texts)
        code = write_texts(w, node, memory, space, src);
    else if (H5Dwrite(w->dataset, w->type, memory, space, H5P_DEFAULT, src) < 0)
        code = fail(w, node->key);
    h5_close(memory);
    h5_close(space);
    return code;
}

/* Writes the part of a decoded chunk that is in the array. */
static cli_exit write_decoded(foreign_writer *self, const foreign_node *node,
                              const int64_t *start, const void *frame, size_t size)
{
    caterva_array *chunk;
    caterva_error err;
    int64_t zeros[CATERVA_MAX_DIMS] = {0}, count[CATERVA_MAX_DIMS], stop[CATERVA_MAX_DIMS];
    size_t bytes = (size_t)node->item_size;
    for (int d = 0; d < node->ndim; d++) {
        int64_t rest = node->shape[d] - start[d];
        count[d] = rest < node->chunk_shape[d] ? rest : node->chunk_shape[d];
        stop[d] = start[d] + count[d];
        bytes *= (size_t)count[d];
    }
    void *items = cli_alloc(bytes);
    if (!items) return CLI_IO;
    cli_exit code = CLI_OK;
    if (h5_frame_open(frame, size, &chunk, &err) != CATERVA_OK) {
        code = cli_fail_array(node->key, &err);
    } else {
        if (caterva_read(chunk, zeros, count, items, bytes, &err) != CATERVA_OK)
            code = cli_fail_array(node->key, &err);
        caterva_discard(chunk);
    }
    if (code == CLI_OK) code = write_items(self, node, start, stop, items);
    free(items);
    return code;
}

static cli_exit write_stored(foreign_writer *self, const foreign_node *node, int64_t index,
                             const void *chunk, size_t size)
{
    writer *w = self->own;
    int64_t start[CATERVA_MAX_DIMS];
    hsize_t offset[CATERVA_MAX_DIMS];
    caterva_error err;
    void *frame;
    size_t frame_size;
    h5_begin();
    if (node->block_shape[0] == 0 || node->chunk_shape[0] == 0)
        return cli_fail(CLI_UNSUPPORTED, "%s: chunks of %s cannot be moved", self->path,
                        node->key);
    CLI_TRY(select_set(w, node, true));
    for (int d = node->ndim - 1; d >= 0; d--) {
        int64_t n = (node->shape[d] + node->chunk_shape[d] - 1) / node->chunk_shape[d];
        start[d] = index % n * node->chunk_shape[d];
        offset[d] = (hsize_t)start[d];
        index /= n;
    }
    if (h5_frame_make(node, chunk, size, &frame, &frame_size, &err) != CATERVA_OK)
        return cli_fail_array(node->key, &err);
    cli_exit code = CLI_OK;
    if (!array_of(w, node)->is_moved)
        code = write_decoded(self, node, start, frame, frame_size);
    else if (H5Dwrite_chunk(w->dataset, H5P_DEFAULT, 0, offset, frame_size, frame) < 0)
        code = fail(w, node->key);
    caterva_free(frame);
    return code;
}

/* ---- Dimension scales -------------------------------------------------------------------- */

static int by_depth(const void *a, const void *b)
{
    const array *x = a, *y = b;
    if (x->depth != y->depth) return x->depth < y->depth ? -1 : 1;
    if (x->is_coordinate != y->is_coordinate) return x->is_coordinate ? -1 : 1;
    return strcmp(x->path, y->path);
}

/* Returns a coordinate of this path and length; those of one depth are sorted by their path. */
static bool has_coordinate(const writer *w, const char *path, int64_t length)
{
    array sought = {.path = (char *)(uintptr_t)path, .is_coordinate = true};
    for (const char *c = path + 1; *c; c++) sought.depth += *c == '/';
    const array *found = bsearch(&sought, w->arrays, w->n_arrays, sizeof sought, by_depth);
    return found && found->exists && found->shape[0] == length;
}

static const bare *find_bare(const writer *w, const char *path, int64_t length)
{
    for (size_t i = 0; i < w->n_bares; i++)
        if (strcmp(w->bares[i].path, path) == 0 && w->bares[i].length == length)
            return &w->bares[i];
    return NULL;
}

/* Returns a free path "<path>_<length>", to be freed: an array or another dimension has `path`. */
static char *other_path(const writer *w, const char *path, int64_t length)
{
    size_t room = strlen(path) + 40;
    char *other = cli_alloc(room);
    if (other) snprintf(other, room, "%s_%lld", path, (long long)length);
    for (int i = 0; other && i < 9 && H5Lexists(w->file, other, H5P_DEFAULT) > 0; i++)
        strcat(other, "_");
    return other;
}

/* Makes a dimension without a variable. Takes the path. */
static cli_exit make_bare(writer *w, char *path, int64_t length, bool grows)
{
    bare *larger = grow(w->bares, w->n_bares, sizeof *larger);
    if (!larger) return CLI_IO;
    w->bares = larger;
    bool is_taken = H5Lexists(w->file, path, H5P_DEFAULT) > 0;
    char *place = is_taken ? other_path(w, path, length) : cli_copy_text(path);
    w->bares[w->n_bares++] = (bare){path, place, length};
    if (!place) return CLI_IO;
    const char *shown[] = {name_of(path)};
    hsize_t dims[] = {(hsize_t)length}, most[] = {grows ? H5S_UNLIMITED : (hsize_t)length};
    const hsize_t chunk[] = {1024};
    char name[sizeof H5_NO_VARIABLE + 16];
    snprintf(name, sizeof name, "%s%10lld", H5_NO_VARIABLE, (long long)length);
    hid_t space = H5Screate_simple(1, dims, most), properties = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_obj_track_times(properties, false);
    if (grows) H5Pset_chunk(properties, 1, chunk);
    hid_t set = H5Dcreate2(w->file, place, H5T_IEEE_F32BE, space, w->link, properties,
                           H5P_DEFAULT);
    bool ok = set >= 0 && H5DSset_scale(set, name) >= 0 &&
              (!is_taken || put_texts(w, set, H5_NAME, 0, NULL, shown));
    h5_close(set);
    h5_close(properties);
    h5_close(space);
    return ok ? CLI_OK : fail(w, place);
}

/* Sets *out to the path of an axis' scale, to be freed: a coordinate in the nearest group, or a
 * dimension without a variable, which is made if it is missing. NULL if its name is only a label. */
static cli_exit find_scale(writer *w, const array *a, int d, char **out)
{
    bool listed;
    const bare *found = NULL;
    const size_t home = home_of(w, a->path, a->dims[d], &listed), last = listed ? home : 0;
    *out = NULL;
    for (size_t size = group_size(a->path);; size--) {
        if (size > 0 && a->path[size] != '/') continue;
        char *path = join(a->path, size, a->dims[d]);
        if (!path) return CLI_IO;
        if (has_coordinate(w, path, a->shape[d])) {
            *out = path;
            return CLI_OK;
        }
        free(path);
        if (size == last) break;
    }
    if (is_label(a, d)) return CLI_OK;
    for (size_t size = group_size(a->path); !found; size--) {
        if (size > 0 && a->path[size] != '/') continue;
        char *path = join(a->path, size, a->dims[d]);
        if (!path) return CLI_IO;
        found = find_bare(w, path, a->shape[d]);
        free(path);
        if (size == last) break;
    }
    if (!found) {
        char *path = join(a->path, home, a->dims[d]);
        if (!path) return CLI_IO;
        CLI_TRY(make_bare(w, path, a->shape[d], a->grows[d]));
        found = &w->bares[w->n_bares - 1];
    }
    *out = cli_copy_text(found->place);
    return *out ? CLI_OK : CLI_IO;
}

/* Attaches the scales of an array, and sets its labels. A scale has no scales itself. */
static cli_exit attach(writer *w, size_t i)
{
    const array *a = &w->arrays[i];
    hid_t set = -1;
    cli_exit code = CLI_OK;
    bool is_scale = a->is_coordinate || a->scale;
    for (int d = 0; d < a->ndim && code == CLI_OK; d++) {
        char *path = NULL;
        if (a->dims[d] && !is_scale) code = find_scale(w, a, d, &path);
        const char *label = a->labels[d] ? a->labels[d] : path || is_scale ? NULL : a->dims[d];
        if (set < 0 && (path || label)) set = H5Dopen2(w->file, a->path, H5P_DEFAULT);
        hid_t scale = path ? H5Dopen2(w->file, path, H5P_DEFAULT) : -1;
        if (path && H5DSattach_scale(set, scale, (unsigned)d) < 0) code = fail(w, path);
        if (label) H5DSset_label(set, (unsigned)d, label);
        h5_close(scale);
        free(path);
    }
    h5_close(set);
    return code;
}

static cli_exit make_scales(writer *w)
{
    if (w->n_arrays) qsort(w->arrays, w->n_arrays, sizeof *w->arrays, by_depth);
    for (size_t i = 0; i < w->n_arrays; i++) {
        const array *a = &w->arrays[i];
        if (!a->exists || (!a->is_coordinate && !a->scale)) continue;
        hid_t set = H5Dopen2(w->file, a->path, H5P_DEFAULT);
        herr_t done =
            set >= 0 ? H5DSset_scale(set, a->scale ? a->scale : name_of(a->path)) : -1;
        h5_close(set);
        if (done < 0) return fail(w, a->path);
    }
    for (size_t i = 0; i < w->n_arrays; i++)
        if (w->arrays[i].exists) CLI_TRY(attach(w, i));
    return CLI_OK;
}

/* ---- Files ------------------------------------------------------------------------------- */

static void free_names(char **names, size_t n)
{
    for (size_t i = 0; i < n; i++) free(names[i]);
    free(names);
}

static void release(writer *w)
{
    close_set(w);
    h5_close(w->link);
    h5_close(w->attribute);
    h5_close(w->file);
    for (size_t i = 0; i < w->n_groups; i++) {
        free_names(w->groups[i].growing, w->groups[i].n_growing);
        free_names(w->groups[i].below, w->groups[i].n_below);
        free(w->groups[i].path);
    }
    for (size_t i = 0; i < w->n_arrays; i++) {
        for (int d = 0; d < w->arrays[i].ndim; d++) {
            free(w->arrays[i].dims[d]);
            free(w->arrays[i].labels[d]);
        }
        free(w->arrays[i].scale);
        free(w->arrays[i].path);
    }
    for (size_t i = 0; i < w->n_bares; i++) {
        free(w->bares[i].path);
        free(w->bares[i].place);
    }
    free(w->groups);
    free(w->arrays);
    free(w->bares);
    free(w);
}

static void abandon(foreign_writer *self)
{
    writer *w = self->own;
    h5_begin();
    output out = w->out;
    release(w);
    output_abandon(&out);
}

static cli_exit finish(foreign_writer *self)
{
    writer *w = self->own;
    h5_begin();
    close_set(w);
    cli_exit code = make_scales(w);
    hid_t file = w->file;
    w->file = -1;
    if (code == CLI_OK && H5Fflush(file, H5F_SCOPE_LOCAL) < 0) code = fail(w, NULL);
    if (H5Fclose(file) < 0 && code == CLI_OK) code = fail(w, NULL);
    output out = w->out;
    release(w);
    if (code == CLI_OK) return output_finish(&out);
    output_abandon(&out);
    return code;
}

/* Files that netCDF can extend: creation order is kept, and nothing needs HDF5 1.10. */
static hid_t create_file(const char *path)
{
    hid_t access = H5Pcreate(H5P_FILE_ACCESS), creation = H5Pcreate(H5P_FILE_CREATE);
    H5Pset_fclose_degree(access, H5F_CLOSE_STRONG);
    H5Pset_libver_bounds(access, H5F_LIBVER_V18, H5F_LIBVER_LATEST);
    H5Pset_link_creation_order(creation, H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED);
    H5Pset_attr_creation_order(creation, H5P_CRT_ORDER_TRACKED);
    H5Pset_obj_track_times(creation, false);
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, creation, access);
    h5_close(creation);
    h5_close(access);
    return file;
}

cli_exit h5_create(foreign_writer *self, bool force)
{
    h5_begin();
    writer *w = cli_alloc(sizeof *w);
    if (!w) return CLI_IO;
    *w = (writer){.base = self, .file = -1, .dataset = -1, .type = -1};
    cli_exit code = output_open(&w->out, self->path, force);
    if (code != CLI_OK) {
        free(w);
        return code;
    }
    w->link = H5Pcreate(H5P_LINK_CREATE);
    w->attribute = H5Pcreate(H5P_ATTRIBUTE_CREATE);
    H5Pset_char_encoding(w->link, H5T_CSET_UTF8);
    H5Pset_char_encoding(w->attribute, H5T_CSET_UTF8);
    if (!w->out.temporary)
        code = cli_fail(CLI_UNSUPPORTED, "%s: HDF5 files cannot be written to pipes", self->path);
    else if ((w->file = create_file(w->out.temporary)) < 0)
        code = fail(w, NULL);
    self->own = w;
    if (code != CLI_OK) {
        abandon(self);
        return code;
    }
    self->add = add;
    self->write = write_items;
    self->write_stored = write_stored;
    self->finish = finish;
    self->abandon = abandon;
    return CLI_OK;
}

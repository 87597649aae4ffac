/* Plug-in netcdf. Writing of NetCDF-4. Dimensions are defined with the first variable that has
 * them, in its group; a group below shares those of the same length.
 *
 * What NetCDF lacks is written as CF has it: booleans are int8 with dtype = "bool", times are int64
 * with units, and bytes of one width have an axis of characters. */
#include "netcdf.h"

#include "formats/value.h"
#include "terminal/output.h"

#include <caterva_value.h>
#include <dlfcn.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEFLATE_LEVEL = 4, PLAIN_BYTES = 4096, CHUNK_BYTES = 1 << 20 };
#define CHUNK_LIMIT (INT64_C(0xffffffff))
#define CACHE_BYTES ((size_t)64 << 20)

typedef struct group {
    char *path; /* "" for the root */
    int id;
    char **growing, **below; /* names of dimensions; below: that only groups below have */
    size_t n_growing, n_below;
} group;

/* How the items of a variable are written. */
typedef enum form {
    AS_THEY_ARE,
    CONVERTED,  /* to another type of numbers, or byte order */
    CHARACTERS, /* with one more axis */
    STRINGS
} form;

typedef struct variable {
    int group, id;
    form form;
    const char *dtype; /* of the numbers that are written; static */
    size_t chunk_bytes;
} variable;

typedef struct dimension {
    int group, id; /* group: of libnetcdf */
    char *name;
    size_t length;
    bool grows;
} dimension;

typedef struct writer {
    foreign_writer *base;
    output out;
    int id;
    group *groups;
    variable *variables;
    dimension *dimensions;
    size_t n_groups, n_variables, n_dimensions, current; /* current: variable + 1 */
    int complex_type;
    bool has_failed; /* libnetcdf, at anything */
} writer;

static cli_exit fail(writer *w, const char *key, int status)
{
    const int cause = errno; /* libhdf5 leaves that of its last call of the system */
    w->has_failed = true;
    if (status == NC_EHDFERR && (cause == ENOSPC || cause == EFBIG || cause == EDQUOT))
        return cli_fail(CLI_IO, "cannot write %s: %s", w->base->path, strerror(cause));
    if (status == NC_EDIMSCALE)
        return cli_fail(CLI_UNSUPPORTED,
                        "%s: %s: libnetcdf cannot write these dimensions; a file whose name ends "
                        "with .h5 can have them, and netCDF reads it as well",
                        w->base->path, key);
    return nc_fail(CLI_IO, w->base->path, key, status);
}

static void *grow(void *entries, size_t n, size_t size)
{
    if (n & (n - 1)) return entries;
    void *larger = realloc(entries, (n ? 2 * n : 1) * size);
    if (!larger) cli_fail(CLI_IO, "out of memory");
    return larger;
}

static size_t group_size(const char *key) { return (size_t)(strrchr(key, '/') - key); }

static const group *find_group(writer *w, const char *path, size_t size)
{
    for (size_t i = 0; i < w->n_groups; i++)
        if (strlen(w->groups[i].path) == size && memcmp(w->groups[i].path, path, size) == 0)
            return &w->groups[i];
    return NULL;
}

/* ---- Values ------------------------------------------------------------------------------ */

static bool next_value(const foreign_attribute *a, size_t *at, caterva_value *out)
{
    *out = (caterva_value)CATERVA_VALUE_INIT;
    return caterva_value_next(a->value, a->size, at, out, NULL) == CATERVA_OK;
}

static bool text_of(const foreign_node *node, const char *name, caterva_value *out)
{
    size_t at = 0;
    const foreign_attribute *a = foreign_attribute_of(node, name);
    return a && next_value(a, &at, out) && out->kind == CATERVA_VALUE_TEXT;
}

typedef struct number {
    char kind;
    int64_t size;
    nc_type type;
    const char *dtype; /* in this machine's byte order */
} number;

/* Returns the type for numbers of a dtype, or NULL. Half floats become single ones. */
static const number *number_of(const caterva_dtype *dtype)
{
    static const number numbers[] = {
        {'b', 1, NC_BYTE, "|i1"},
        {'i', 1, NC_BYTE, "|i1"},
        {'u', 1, NC_UBYTE, "|u1"},
        {'i', 2, NC_SHORT, NC_NATIVE "i2"},
        {'u', 2, NC_USHORT, NC_NATIVE "u2"},
        {'i', 4, NC_INT, NC_NATIVE "i4"},
        {'u', 4, NC_UINT, NC_NATIVE "u4"},
        {'i', 8, NC_INT64, NC_NATIVE "i8"},
        {'u', 8, NC_UINT64, NC_NATIVE "u8"},
        {'f', 2, NC_FLOAT, NC_NATIVE "f4"},
        {'f', 4, NC_FLOAT, NC_NATIVE "f4"},
        {'f', 8, NC_DOUBLE, NC_NATIVE "f8"},
    };
    if (dtype->ndim > 0 || dtype->n_fields > 0) return NULL;
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        if (numbers[i].kind == dtype->kind && numbers[i].size == dtype->item_size)
            return &numbers[i];
    return NULL;
}

/* Converts `n` numbers; NULL after a reported failure. Release with free. */
static void *convert(const char *from, const char *to, const void *items, size_t size, size_t n,
                     size_t wide)
{
    caterva_error err;
    void *out = n <= SIZE_MAX / wide ? cli_alloc(n * wide) : NULL;
    caterva_buffer src = CATERVA_BUFFER_INIT, dst = CATERVA_BUFFER_INIT;
    src.data = (void *)(uintptr_t)items;
    src.dtype = from;
    src.size = size;
    dst.data = out;
    dst.dtype = to;
    dst.size = n * wide;
    dst.casting = CATERVA_CASTING_UNSAFE;
    if (!out || caterva_buffer_convert(&src, (int64_t)n, &dst, NULL, &err) == CATERVA_OK)
        return out;
    cli_fail(CLI_UNSUPPORTED, "%s", err.message);
    free(out);
    return NULL;
}

/* ---- Attributes -------------------------------------------------------------------------- */

static int put_text(int id, int var, const char *name, const void *text, size_t size)
{
    return nc_put_att_text(id, var, name, size, text);
}

/* An array of numbers, or one number of a type. */
static int put_numbers(writer *w, int id, int var, const foreign_node *node,
                       const char *name, const caterva_value *v, bool *done)
{
    caterva_dtype *dtype;
    *done = false;
    if (caterva_dtype_parse(v->dtype, &dtype, NULL) != CATERVA_OK) return NC_NOERR;
    const number *to = number_of(dtype);
    size_t n = dtype->item_size ? v->size / (size_t)dtype->item_size : 0, wide = 0;
    char kind = dtype->kind;
    bool widened = kind == 'b' || (kind == 'f' && dtype->item_size == 2);
    caterva_dtype_free(dtype);
    if (!to || nc_inq_type(w->id, to->type, NULL, &wide) != NC_NOERR) return NC_NOERR;
    if (v->ndim > 1)
        foreign_lose_writing(w->base, "%s: the shape of its attribute %s", node->key, name);
    if (widened)
        foreign_lose_writing(w->base, "%s: its attribute %s has the type %s", node->key, name,
                             to->dtype);
    void *items = convert(v->dtype, to->dtype, v->bytes, v->size, n, wide);
    if (!items) return NC_ENOMEM;
    *done = true;
    int status = nc_put_att(id, var, name, to->type, n, items);
    free(items);
    return status;
}

/* A list of texts, or of numbers of one kind. */
static int put_list(int id, int var, const foreign_attribute *a, size_t at, size_t n, bool *done)
{
    caterva_value v;
    *done = false;
    if (n == 0 || n > a->size) return NC_NOERR;
    char **texts = calloc(n, sizeof *texts);
    double *reals = calloc(n, sizeof *reals);
    long long *integers = calloc(n, sizeof *integers);
    bool same = texts && reals && integers;
    caterva_value_kind kind = CATERVA_VALUE_NIL;
    for (size_t i = 0; i < n && same; i++) {
        same = next_value(a, &at, &v) && (i == 0 || v.kind == kind);
        kind = v.kind;
        reals[i] = v.real;
        integers[i] = v.integer;
        if (same && kind == CATERVA_VALUE_TEXT) texts[i] = strndup(v.bytes, v.size);
    }
    int status = NC_NOERR;
    *done = same && (kind == CATERVA_VALUE_TEXT || kind == CATERVA_VALUE_INT ||
                     kind == CATERVA_VALUE_REAL);
    if (*done && kind == CATERVA_VALUE_TEXT)
        status = nc_put_att_string(id, var, a->name, n, (const char **)(void *)texts);
    else if (*done && kind == CATERVA_VALUE_INT)
        status = nc_put_att_longlong(id, var, a->name, NC_INT64, n, integers);
    else if (*done)
        status = nc_put_att_double(id, var, a->name, NC_DOUBLE, n, reals);
    for (size_t i = 0; texts && i < n; i++) free(texts[i]);
    free(texts);
    free(reals);
    free(integers);
    return status;
}

/* Writes a value that NetCDF lacks as JSON. */
static int put_json(writer *w, int id, int var, const foreign_node *node,
                    const foreign_attribute *a)
{
    char *text = value_text(a->value, a->size);
    if (!text) return NC_ENOMEM;
    foreign_lose_writing(w->base, "%s: its attribute %s is written as JSON", node->key, a->name);
    int status = put_text(id, var, a->name, text, strlen(text));
    free(text);
    return status;
}

static int put_value(writer *w, int id, int var, const foreign_node *node,
                     const foreign_attribute *a)
{
    size_t at = 0;
    caterva_value v;
    bool done = true;
    int status = NC_NOERR;
    if (!next_value(a, &at, &v)) return put_json(w, id, var, node, a);
    const long long integer = v.integer;
    const unsigned long long natural = (unsigned long long)v.integer;
    switch (v.kind) {
    case CATERVA_VALUE_TEXT: status = put_text(id, var, a->name, v.bytes, v.size); break;
    case CATERVA_VALUE_INT:
        status = nc_put_att_longlong(id, var, a->name, NC_INT64, 1, &integer);
        break;
    case CATERVA_VALUE_UINT:
        status = nc_put_att_ulonglong(id, var, a->name, NC_UINT64, 1, &natural);
        break;
    case CATERVA_VALUE_REAL:
        status = nc_put_att_double(id, var, a->name, NC_DOUBLE, 1, &v.real);
        break;
    case CATERVA_VALUE_ARRAY: status = put_numbers(w, id, var, node, a->name, &v, &done); break;
    case CATERVA_VALUE_LIST:
        status = put_list(id, var, a, at, (size_t)v.count, &done);
        break;
    default: done = false;
    }
    return done ? status : put_json(w, id, var, node, a);
}

static bool is_consumed(const foreign_node *node, const char *name)
{
    static const char *const of_arrays[] = {"dims",  "_caterva", "_vlen",     "_FillValue", "_null",
                                            "_type", "_types",   "_maxshape", "_labels",    "_scale"};
    if (node->is_group)
        return strcmp(name, "_unlimited_dims") == 0 || strcmp(name, "_dims") == 0 ||
               strcmp(name, "_types") == 0;
    for (size_t i = 0; i < sizeof of_arrays / sizeof of_arrays[0]; i++)
        if (strcmp(name, of_arrays[i]) == 0) return true;
    return false;
}

static cli_exit put_attributes(writer *w, int id, int var, const foreign_node *node,
                               bool has_enum)
{
    for (size_t i = 0; i < node->n_attributes; i++) {
        const foreign_attribute *a = &node->attributes[i];
        if (is_consumed(node, a->name) || (has_enum && strcmp(a->name, "_enum") == 0)) continue;
        int status = put_value(w, id, var, node, a);
        if (status != NC_NOERR)
            CLI_TRY(foreign_lose_writing(w->base, "%s: its attribute %s: libnetcdf: %s",
                                         node->key, a->name, nc_strerror(status)));
    }
    return CLI_OK;
}

/* ---- Dimensions -------------------------------------------------------------------------- */

/* Whether the dimension grows, according to the group at `home` or, unless `listed`, one above. */
static bool is_growing(writer *w, const foreign_node *node, const char *name, size_t home, bool listed)
{
    for (size_t size = home;; size--) {
        const group *g =
            size == 0 || node->key[size] == '/' ? find_group(w, node->key, size) : NULL;
        for (size_t i = 0; g && i < g->n_growing; i++)
            if (strcmp(g->growing[i], name) == 0) return true;
        if (size == 0 || listed) return false;
    }
}

static const dimension *find_dimension(writer *w, int id, const char *name)
{
    for (size_t i = 0; i < w->n_dimensions; i++)
        if (w->dimensions[i].group == id && strcmp(w->dimensions[i].name, name) == 0)
            return &w->dimensions[i];
    return NULL;
}

static bool serves(const dimension *found, size_t length)
{
    return found && (found->grows || found->length == length);
}

static cli_exit define(writer *w, int id, const char *key, const char *name, size_t length,
                       bool grows, int *out)
{
    dimension *larger = grow(w->dimensions, w->n_dimensions, sizeof *larger);
    if (!larger) return CLI_IO;
    w->dimensions = larger;
    int status = nc_def_dim(id, name, grows ? NC_UNLIMITED : length, out);
    if (status != NC_NOERR) return fail(w, key, status);
    w->dimensions[w->n_dimensions++] =
        (dimension){id, *out, cli_copy_text(name), length, grows || length == 0};
    return w->dimensions[w->n_dimensions - 1].name ? CLI_OK : CLI_IO;
}

/* Returns the size of the path of the group that a new dimension belongs to: the array's group, or
 * the nearest one that lists the dimension. *listed is whether there is one. */
static size_t home_of(const writer *w, const foreign_node *node, const char *name, bool *listed)
{
    size_t home = 0;
    *listed = false;
    for (size_t g = 0; g < w->n_groups; g++) {
        size_t size = strlen(w->groups[g].path);
        if (strncmp(node->key, w->groups[g].path, size) != 0 || node->key[size] != '/' ||
            size < home)
            continue;
        for (size_t i = 0; i < w->groups[g].n_below; i++) {
            if (strcmp(w->groups[g].below[i], name) != 0) continue;
            home = size;
            *listed = true;
        }
    }
    return *listed ? home : group_size(node->key);
}

/* Finds or defines the dimension of an axis. */
static cli_exit reach_dimension(writer *w, const foreign_node *node, const char *name,
                                size_t length, int *out)
{
    char other[NC_MAX_NAME + 1];
    bool listed;
    const size_t home = home_of(w, node, name, &listed);
    const int id = find_group(w, node->key, home)->id;
    int var;
    /* A coordinate has its dimension in its group. */
    bool is_own = node->ndim == 1 && home == group_size(node->key) &&
                  strcmp(strrchr(node->key, '/') + 1, name) == 0;
    for (size_t size = group_size(node->key);; size--) {
        const group *g =
            size == 0 || node->key[size] == '/' ? find_group(w, node->key, size) : NULL;
        const dimension *found = g ? find_dimension(w, g->id, name) : NULL;
        if (serves(found, length)) {
            *out = found->id;
            return CLI_OK;
        }
        if (size == (listed || is_own ? home : 0)) break;
    }
    bool is_taken = find_dimension(w, id, name) || nc_inq_varid(id, name, &var) == NC_NOERR;
    if (!is_taken)
        return define(w, id, node->key, name, length, is_growing(w, node, name, home, listed),
                      out);
    snprintf(other, sizeof other, "%.200s_%zu", name, length);
    CLI_TRY(foreign_lose_writing(w->base,
                                 "%s: its dimension is named %s, because %s has another length "
                                 "or is an array without it",
                                 node->key, other, name));
    const dimension *found = find_dimension(w, id, other);
    if (!serves(found, length)) return define(w, id, node->key, other, length, false, out);
    *out = found->id;
    return CLI_OK;
}

/* An axis without a name gets one by its length; no two of an array get the same. */
static cli_exit reach_dimensions(writer *w, const foreign_node *node, int *out)
{
    for (int d = 0; d < node->ndim; d++) {
        char name[NC_MAX_NAME + 1];
        int n_before = 0;
        for (int e = 0; e < d; e++)
            n_before += node->shape[e] == node->shape[d] && !(node->dims && node->dims[e]);
        if (node->dims && node->dims[d] && *node->dims[d])
            snprintf(name, sizeof name, "%s", node->dims[d]);
        else if (n_before == 0)
            snprintf(name, sizeof name, "dim_%" PRId64, node->shape[d]);
        else
            snprintf(name, sizeof name, "dim_%" PRId64 "_%d", node->shape[d], n_before);
        CLI_TRY(reach_dimension(w, node, name, (size_t)node->shape[d], &out[d]));
    }
    return CLI_OK;
}

/* ---- Types ------------------------------------------------------------------------------- */

/* What is chosen for a variable. */
typedef struct choice {
    nc_type type;
    form form;
    const char *dtype;
    char units[64], kind[32]; /* of times: attributes */
    int n_extra;              /* axes of characters */
    bool has_enum, is_big;
} choice;

static bool choose_time(const caterva_dtype *dtype, choice *c)
{
    static const char *const names[][2] = {
        {"ns", "nanoseconds"}, {"us", "microseconds"}, {"ms", "milliseconds"},
        {"s", "seconds"},      {"m", "minutes"},       {"h", "hours"},
        {"D", "days"},
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(dtype->unit, names[i][0]) != 0) continue;
        snprintf(c->units, sizeof c->units, "%s%s", names[i][1],
                 dtype->kind == 'M' ? " since 1970-01-01" : "");
        if (dtype->kind == 'm') snprintf(c->kind, sizeof c->kind, "timedelta64[%s]", dtype->unit);
        c->type = NC_INT64;
        c->dtype = NC_NATIVE "i8";
        c->form = CONVERTED;
        return true;
    }
    return false;
}

/* Complex numbers have the type that netCDF4-python, h5netcdf and nc-complex make. */
static int reach_complex(writer *w)
{
    nc_type type;
    if (w->complex_type) return w->complex_type;
    if (nc_def_compound(w->id, 16, "_PFNC_DOUBLE_COMPLEX_TYPE", &type) != NC_NOERR ||
        nc_insert_compound(w->id, type, "r", 0, NC_DOUBLE) != NC_NOERR ||
        nc_insert_compound(w->id, type, "i", 8, NC_DOUBLE) != NC_NOERR)
        return 0;
    return w->complex_type = type;
}

/* Chooses a name for the type of a variable: that of `_type`, or one by the variable. */
static void name_type(int id, const foreign_node *node, char name[NC_MAX_NAME + 1])
{
    caterva_value value;
    nc_type taken;
    *name = '\0';
    if (text_of(node, "_type", &value) && value.size < NC_MAX_NAME)
        snprintf(name, NC_MAX_NAME + 1, "%.*s", (int)value.size, (const char *)value.bytes);
    char *slash = strrchr(name, '/');
    if (slash) memmove(name, slash + 1, strlen(slash));
    if (!*name || nc_inq_typeid(id, name, &taken) == NC_NOERR)
        snprintf(name, NC_MAX_NAME + 1, "%.200s_t", strrchr(node->key, '/') + 1);
}

/* Defines the enumeration of `_enum`; 0 if there is none. */
static nc_type define_enum(int id, const foreign_node *node, const number *base)
{
    size_t at = 0;
    caterva_value map, key, value;
    char name[NC_MAX_NAME + 1];
    nc_type type;
    const foreign_attribute *a = foreign_attribute_of(node, "_enum");
    if (!a || !next_value(a, &at, &map) || map.kind != CATERVA_VALUE_MAP || map.count < 1)
        return 0;
    name_type(id, node, name);
    int status = nc_def_enum(id, base->type, name, &type);
    for (int64_t i = 0; i < map.count && status == NC_NOERR; i++) {
        int64_t member;
        if (!next_value(a, &at, &key) || !next_value(a, &at, &value) ||
            key.kind != CATERVA_VALUE_TEXT || key.size > 255 ||
            (value.kind != CATERVA_VALUE_INT && value.kind != CATERVA_VALUE_UINT))
            return 0;
        void *narrow = convert(value.kind == CATERVA_VALUE_UINT ? NC_NATIVE "u8" : NC_NATIVE "i8",
                               base->dtype, &value.integer, 8, 1, sizeof member);
        char *member_name = strndup(key.bytes, key.size);
        status = narrow && member_name ? nc_insert_enum(id, type, member_name, narrow) : NC_ENOMEM;
        free(member_name);
        free(narrow);
    }
    return status == NC_NOERR ? type : 0;
}

static nc_type define_type(writer *w, int id, const caterva_dtype *dtype, const char *name,
                           int depth);

/* Inserts a field, with the axes of a sub-array and, of texts, that of characters. */
static bool insert_field(writer *w, int id, nc_type whole, const caterva_field *f,
                         const char *name, int depth)
{
    char field_name[NC_MAX_NAME + 1];
    int dims[CATERVA_MAX_DIMS + 1], ndim = f->dtype->ndim;
    caterva_dtype element = *f->dtype;
    for (int d = 0; d < ndim; d++) {
        dims[d] = (int)element.shape[d];
        if (dims[d] == 0) return false;
        element.item_size /= dims[d];
    }
    element.ndim = 0;
    if (element.kind == 'S' && element.item_size > 1) dims[ndim++] = (int)element.item_size;
    snprintf(field_name, sizeof field_name, "%.100s_%.100s", name, f->name);
    nc_type type = define_type(w, id, &element, field_name, depth + 1);
    int status = type == 0   ? NC_EBADTYPE
                 : ndim == 0 ? nc_insert_compound(id, whole, f->name, (size_t)f->offset, type)
                             : nc_insert_array_compound(id, whole, f->name, (size_t)f->offset,
                                                        type, ndim, dims);
    return status == NC_NOERR;
}

/* Defines a type with the layout of items in memory; 0 if NetCDF has none. */
static nc_type define_type(writer *w, int id, const caterva_dtype *dtype, const char *name,
                           int depth)
{
    nc_type type;
    const number *n = number_of(dtype);
    bool swapped = dtype->byte_order != '|' && dtype->byte_order != NC_NATIVE[0];
    if (swapped || depth > 8) return 0;
    if (n) return dtype->kind == 'f' && dtype->item_size == 2 ? 0 : n->type;
    if (dtype->kind == 'S') return NC_CHAR;
    if (dtype->kind == 'c') return dtype->item_size == 16 ? reach_complex(w) : 0;
    if (dtype->kind != 'V' || dtype->item_size < 1) return 0;
    if (dtype->n_fields == 0)
        return nc_def_opaque(id, (size_t)dtype->item_size, name, &type) == NC_NOERR ? type : 0;
    if (nc_def_compound(id, (size_t)dtype->item_size, name, &type) != NC_NOERR) return 0;
    for (int i = 0; i < dtype->n_fields; i++)
        if (*dtype->fields[i].name && !insert_field(w, id, type, &dtype->fields[i], name, depth))
            return 0;
    return type;
}

static bool choose_number(writer *w, const foreign_node *node, const caterva_dtype *dtype,
                          int id, choice *c)
{
    const number *n = number_of(dtype);
    if (!n) return false;
    bool is_half = dtype->kind == 'f' && dtype->item_size == 2;
    c->type = n->type;
    c->dtype = n->dtype;
    c->is_big = dtype->byte_order == '>';
    bool swapped = dtype->byte_order != '|' && dtype->byte_order != NC_NATIVE[0];
    if (swapped || is_half) c->form = CONVERTED;
    if (is_half) foreign_lose_writing(w->base, "%s: its items are written as float32", node->key);
    if (dtype->kind == 'b') snprintf(c->kind, sizeof c->kind, "bool");
    if (dtype->kind == 'i' || dtype->kind == 'u') {
        nc_type type = define_enum(id, node, n);
        if (type) c->type = type;
        c->has_enum = type != 0;
    }
    return true;
}

static bool choose(writer *w, const foreign_node *node, const caterva_dtype *dtype, int id,
                   choice *c)
{
    caterva_value vlen;
    *c = (choice){.form = AS_THEY_ARE};
    if (dtype->ndim > 0) return false;
    if (dtype->kind == 'V') {
        char name[NC_MAX_NAME + 1];
        name_type(id, node, name);
        c->type = define_type(w, id, dtype, name, 0);
        return c->type != 0;
    }
    if (choose_number(w, node, dtype, id, c)) return true;
    switch (dtype->kind) {
    case 'M':
    case 'm': return choose_time(dtype, c);
    case 'c':
        c->dtype = NC_NATIVE "c16";
        c->form = CONVERTED;
        c->type = reach_complex(w);
        return c->type != 0 && dtype->item_size <= 16;
    case 'U': c->type = NC_STRING; break;
    case 'S': c->type = text_of(node, "_vlen", &vlen) ? NC_STRING : NC_CHAR; break;
    default: return false;
    }
    c->form = c->type == NC_STRING ? STRINGS : CHARACTERS;
    c->n_extra = c->form == CHARACTERS && dtype->item_size > 1;
    return true;
}

/* ---- Variables --------------------------------------------------------------------------- */

/* Sets node->chunk_shape to what NetCDF can have: all 0 for a small variable of a fixed shape. */
static void adapt_chunks(foreign_node *node, bool grows)
{
    int64_t n = 1, bytes = node->item_size;
    memset(node->block_shape, 0, sizeof node->block_shape);
    for (int d = 0; d < node->ndim; d++) {
        int64_t length = node->shape[d] > 0 ? node->shape[d] : 1;
        n = length > INT64_MAX / 64 / n ? INT64_MAX / 64 : n * length;
        if (node->chunk_shape[d] > length) node->chunk_shape[d] = length;
        bool fits = node->chunk_shape[d] > 0 && bytes <= CHUNK_LIMIT / node->chunk_shape[d];
        bytes = fits && bytes > 0 ? bytes * node->chunk_shape[d] : 0;
    }
    if (!grows && n <= PLAIN_BYTES / node->item_size)
        memset(node->chunk_shape, 0, sizeof node->chunk_shape);
    else if (bytes == 0) {
        int64_t room = node->item_size < CHUNK_BYTES ? CHUNK_BYTES / node->item_size : 1;
        for (int d = node->ndim - 1; d >= 0; d--) {
            int64_t length = node->shape[d] < room ? node->shape[d] : room;
            node->chunk_shape[d] = length > 0 ? length : 1;
            room /= node->chunk_shape[d];
        }
    }
}

/* Chunks, compression and byte order. */
static int set_layout(int id, int var, const foreign_node *node, const choice *c,
                      size_t *chunk_bytes)
{
    size_t chunk[CATERVA_MAX_DIMS + 1];
    int status = NC_NOERR;
    *chunk_bytes = (size_t)node->item_size;
    for (int d = 0; d < node->ndim; d++) {
        chunk[d] = (size_t)node->chunk_shape[d];
        *chunk_bytes *= chunk[d];
    }
    chunk[node->ndim] = (size_t)node->item_size; /* of characters */
    if (c->is_big) status = nc_def_var_endian(id, var, NC_ENDIAN_BIG);
    if (status != NC_NOERR || node->ndim == 0 || chunk[0] == 0) return status;
    status = nc_def_var_chunking(id, var, NC_CHUNKED, chunk);
    if (status == NC_NOERR && c->form != STRINGS)
        status = nc_def_var_deflate(id, var, node->item_size > 1, 1, DEFLATE_LEVEL);
    return status;
}

/* The fill has the type of the items. */
static cli_exit set_fill(writer *w, int id, int var, const foreign_node *node,
                         const choice *c)
{
    size_t at = 0;
    caterva_value v;
    char from[32] = "";
    const void *item = NULL;
    size_t size = 8;
    const foreign_attribute *a = foreign_attribute_of(node, "_FillValue");
    if (!a || !next_value(a, &at, &v)) return CLI_OK;
    if (v.kind == CATERVA_VALUE_TEXT || v.kind == CATERVA_VALUE_BYTES) item = v.bytes;
    if (v.kind == CATERVA_VALUE_ARRAY && v.size > 0) {
        snprintf(from, sizeof from, "%s", v.dtype);
        item = v.bytes;
        size = v.size;
    } else if (v.kind == CATERVA_VALUE_INT || v.kind == CATERVA_VALUE_REAL) {
        snprintf(from, sizeof from, "%s",
                 v.kind == CATERVA_VALUE_INT ? NC_NATIVE "i8" : NC_NATIVE "f8");
        item = v.kind == CATERVA_VALUE_INT ? (const void *)&v.integer : &v.real;
    }
    int status = NC_EBADTYPE;
    if (c->form == STRINGS && v.kind == CATERVA_VALUE_TEXT) {
        char *text = strndup(v.bytes, v.size);
        const char *texts[] = {text};
        status = text ? nc_def_var_fill(id, var, 0, texts) : NC_ENOMEM;
        free(text);
    } else if (c->form == CHARACTERS && v.size == 1 &&
               (v.kind == CATERVA_VALUE_ARRAY || v.kind == CATERVA_VALUE_TEXT ||
                v.kind == CATERVA_VALUE_BYTES))
        status = nc_def_var_fill(id, var, 0, item);
    else if (c->dtype && item && *from && strchr("iuf", from[1])) {
        void *fill = convert(from, c->dtype, item, size, 1, 16);
        if (!fill) return CLI_UNSUPPORTED;
        status = nc_def_var_fill(id, var, 0, fill);
        free(fill);
    }
    if (status == NC_NOERR) return CLI_OK;
    return foreign_lose_writing(w->base, "%s: its attribute _FillValue: libnetcdf: %s", node->key,
                                nc_strerror(status));
}

/* Whether libnetcdf 4.9.0 would give a wrong number to the dimension that has the variable's name: one
 * that grows, is not the first of the file, and is not the variable's first. */
static bool is_misnumbered(writer *w, int id, const foreign_node *node, const int *dims)
{
    const dimension *same = find_dimension(w, id, strrchr(node->key, '/') + 1);
    return same && same->grows && same->id != 0 && (node->ndim == 0 || dims[0] != same->id);
}

static cli_exit define_variable(writer *w, foreign_node *node, const choice *c)
{
    int dims[CATERVA_MAX_DIMS + 1], extra, id = find_group(w, node->key, group_size(node->key))->id;
    bool grows = false;
    CLI_TRY(reach_dimensions(w, node, dims));
    if (is_misnumbered(w, id, node, dims)) return fail(w, node->key, NC_EDIMSCALE);
    for (int d = 0; d < node->ndim; d++)
        for (size_t i = 0; i < w->n_dimensions; i++)
            grows = grows || (w->dimensions[i].id == dims[d] && w->dimensions[i].grows);
    if (c->n_extra > 0) {
        char name[40];
        snprintf(name, sizeof name, "string%" PRId64, node->item_size);
        CLI_TRY(reach_dimension(w, node, name, (size_t)node->item_size, &extra));
        dims[node->ndim] = extra;
    }
    adapt_chunks(node, grows);
    variable *v = &w->variables[w->n_variables];
    *v = (variable){.group = id, .form = c->form, .dtype = c->dtype};
    int status = nc_def_var(id, strrchr(node->key, '/') + 1, c->type, node->ndim + c->n_extra,
                            dims, &v->id);
    if (status == NC_NOERR) status = set_layout(id, v->id, node, c, &v->chunk_bytes);
    if (status != NC_NOERR) return fail(w, node->key, status);
    node->own = (void *)(uintptr_t)++w->n_variables;
    CLI_TRY(set_fill(w, id, v->id, node, c));
    CLI_TRY(put_attributes(w, id, v->id, node, c->has_enum));
    if (*c->units) put_text(id, v->id, "units", c->units, strlen(c->units));
    if (*c->units && !*c->kind) put_text(id, v->id, "calendar", "proleptic_gregorian", 19);
    if (*c->kind) put_text(id, v->id, "dtype", c->kind, strlen(c->kind));
    return CLI_OK;
}

static cli_exit add_array(writer *w, foreign_node *node)
{
    caterva_dtype *dtype;
    caterva_error err;
    choice c;
    variable *larger = grow(w->variables, w->n_variables, sizeof *larger);
    if (!larger) return CLI_IO;
    w->variables = larger;
    if (caterva_dtype_parse(node->dtype, &dtype, &err) != CATERVA_OK)
        return cli_fail(CLI_UNSUPPORTED, "%s: %s: %s", w->base->path, node->key, err.message);
    int id = find_group(w, node->key, group_size(node->key))->id;
    bool possible = choose(w, node, dtype, id, &c);
    caterva_dtype_free(dtype);
    if (possible) return define_variable(w, node, &c);
    return cli_fail(CLI_UNSUPPORTED, "%s: NetCDF has no type for the items of %s, %s",
                    w->base->path, node->key, node->dtype);
}

/* ---- Groups ------------------------------------------------------------------------------ */

static cli_exit take_names(const foreign_node *node, const char *name, char ***names,
                           size_t *n_names)
{
    size_t at = 0;
    caterva_value v;
    const foreign_attribute *a = foreign_attribute_of(node, name);
    if (!a || !next_value(a, &at, &v) || v.kind != CATERVA_VALUE_LIST ||
        (size_t)v.count > a->size)
        return CLI_OK;
    int64_t n = v.count;
    *names = calloc((size_t)n + 1, sizeof **names);
    if (!*names) return cli_fail(CLI_IO, "out of memory");
    for (int64_t i = 0; i < n && next_value(a, &at, &v); i++)
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
    int id = w->id;
    if (!is_root) {
        const group *above = find_group(w, node->key, group_size(node->key));
        int status = nc_def_grp(above->id, strrchr(node->key, '/') + 1, &id);
        if (status != NC_NOERR) return fail(w, node->key, status);
    }
    group *g = &w->groups[w->n_groups++];
    *g = (group){.path = cli_copy_text(is_root ? "" : node->key), .id = id};
    if (!g->path) return CLI_IO;
    CLI_TRY(take_names(node, "_unlimited_dims", &g->growing, &g->n_growing));
    CLI_TRY(take_names(node, "_dims", &g->below, &g->n_below));
    return put_attributes(w, id, NC_GLOBAL, node, false);
}

static cli_exit add(foreign_writer *self, foreign_node *node)
{
    return node->is_group ? add_group(self->own, node) : add_array(self->own, node);
}

/* ---- Items ------------------------------------------------------------------------------- */

static size_t encode_utf8(uint32_t code, char *out)
{
    if (code < 0x80) {
        out[0] = (char)code;
        return 1;
    }
    static const uint8_t heads[] = {0, 0, 0xc0, 0xe0, 0xf0};
    size_t n = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    if (code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) return 0;
    for (size_t i = n; i-- > 1; code >>= 6) out[i] = (char)(0x80 | (code & 0x3f));
    out[0] = (char)(heads[n] | code);
    return n;
}

static bool text_of_item(const caterva_dtype *dtype, const uint8_t *item, char *out)
{
    size_t size = (size_t)dtype->item_size, used = 0;
    if (dtype->kind == 'S') {
        memcpy(out, item, size);
        out[size] = '\0';
        return true;
    }
    for (size_t at = 0; at + 4 <= size; at += 4) {
        uint32_t code = 0;
        for (size_t b = 0; b < 4; b++)
            code |= (uint32_t)item[at + b] << 8 * (dtype->byte_order == '>' ? 3 - b : b);
        if (code == 0) break;
        size_t n = encode_utf8(code, out + used);
        if (n == 0) return false;
        used += n;
    }
    out[used] = '\0';
    return true;
}

static cli_exit put_strings(writer *w, const foreign_node *node, const variable *v,
                            const size_t *from, const size_t *count, size_t n,
                            const uint8_t *items)
{
    caterva_dtype *dtype;
    size_t room = (size_t)node->item_size + 1;
    if (caterva_dtype_parse(node->dtype, &dtype, NULL) != CATERVA_OK)
        return cli_fail(CLI_IO, "out of memory");
    const char **texts = cli_alloc(n * sizeof *texts);
    char *bytes = n <= SIZE_MAX / room ? cli_alloc(n * room) : NULL;
    cli_exit code = texts && bytes ? CLI_OK : CLI_IO;
    for (size_t i = 0; code == CLI_OK && i < n; i++) {
        texts[i] = bytes + i * room;
        if (!text_of_item(dtype, items + i * (room - 1), bytes + i * room))
            code = cli_fail(CLI_UNSUPPORTED, "%s: %s has a text that UTF-8 lacks",
                            w->base->path, node->key);
    }
    if (code == CLI_OK) {
        int status = nc_put_vara_string(v->group, v->id, from, count, texts);
        if (status != NC_NOERR) code = fail(w, node->key, status);
    }
    free(bytes);
    free(texts);
    caterva_dtype_free(dtype);
    return code;
}

/* Only the variable that is written has a cache of chunks: libnetcdf keeps all open. */
static void select_variable(writer *w, const foreign_node *node)
{
    size_t index = (uintptr_t)node->own;
    if (w->current == index) return;
    for (int i = 0; i < 2; i++) {
        const variable *v = w->current ? &w->variables[w->current - 1] : NULL;
        size_t bytes = i == 0 ? 0 : v->chunk_bytes < CACHE_BYTES ? v->chunk_bytes : CACHE_BYTES;
        if (v && v->chunk_bytes > 0)
            nc_set_var_chunk_cache(v->group, v->id, bytes, 11, 1.0f);
        w->current = index;
    }
}

static cli_exit write_items(foreign_writer *self, const foreign_node *node, const int64_t *start,
                            const int64_t *stop, const void *src)
{
    writer *w = self->own;
    size_t from[CATERVA_MAX_DIMS + 1] = {0}, count[CATERVA_MAX_DIMS + 1], n = 1;
    const variable *v = &w->variables[(uintptr_t)node->own - 1];
    for (int d = 0; d < node->ndim; d++) {
        from[d] = (size_t)start[d];
        count[d] = (size_t)(stop[d] - start[d]);
        n *= count[d];
    }
    count[node->ndim] = (size_t)node->item_size; /* of characters */
    select_variable(w, node);
    if (v->form == STRINGS) return put_strings(w, node, v, from, count, n, src);
    void *items = NULL;
    if (v->form == CONVERTED) {
        caterva_dtype *dtype;
        char plain[32];
        if (caterva_dtype_parse(node->dtype, &dtype, NULL) != CATERVA_OK)
            return cli_fail(CLI_IO, "out of memory");
        snprintf(plain, sizeof plain, "%ci8", dtype->byte_order);
        bool is_time = dtype->kind == 'M' || dtype->kind == 'm';
        caterva_dtype_free(dtype);
        items = convert(is_time ? plain : node->dtype, v->dtype, src,
                        n * (size_t)node->item_size, n, v->dtype[1] == 'c' ? 16 : 8);
        if (!items) return CLI_UNSUPPORTED;
    }
    int status = nc_put_vara(v->group, v->id, from, count, items ? items : src);
    free(items);
    return status == NC_NOERR ? CLI_OK : fail(w, node->key, status);
}

/* ---- Files ------------------------------------------------------------------------------- */

static void free_names(char **names, size_t n)
{
    for (size_t i = 0; i < n; i++) free(names[i]);
    free(names);
}

static void release(writer *w)
{
    for (size_t i = 0; i < w->n_groups; i++) {
        free_names(w->groups[i].growing, w->groups[i].n_growing);
        free_names(w->groups[i].below, w->groups[i].n_below);
        free(w->groups[i].path);
    }
    for (size_t i = 0; i < w->n_dimensions; i++) free(w->dimensions[i].name);
    free(w->groups);
    free(w->variables);
    free(w->dimensions);
    free(w);
}

/* After an error libnetcdf may crash when it closes the file, which then stays open. */
static void abandon(foreign_writer *self)
{
    writer *w = self->own;
    output out = w->out;
    output_abandon(&out);
    if (w->id >= 0 && !w->has_failed) nc_close(w->id);
    release(w);
}

static cli_exit finish(foreign_writer *self)
{
    writer *w = self->own;
    output out = w->out;
    int status = nc_close(w->id);
    cli_exit code = status == NC_NOERR ? CLI_OK : fail(w, "/", status);
    release(w);
    if (code == CLI_OK) return output_finish(&out);
    output_abandon(&out);
    return code;
}

/* At the exit libhdf5 1.10 crashes on files that a full disk kept it from closing. The plug-in is linked
 * with libnetcdf alone, which has loaded it. */
static void keep_from_exit(void)
{
    int (*dont_atexit)(void);
    *(void **)&dont_atexit = dlsym(RTLD_DEFAULT, "H5dont_atexit");
    if (dont_atexit) dont_atexit();
}

cli_exit nc_create_file(foreign_writer *self, bool force)
{
    keep_from_exit();
    writer *w = cli_alloc(sizeof *w);
    if (!w) return CLI_IO;
    *w = (writer){.base = self, .id = -1};
    cli_exit code = output_open(&w->out, self->path, force);
    if (code != CLI_OK) {
        free(w);
        return code;
    }
    self->own = w;
    char *path = w->out.temporary ? realpath(w->out.temporary, NULL) : NULL;
    if (!path) {
        code = cli_fail(CLI_UNSUPPORTED, "%s: NetCDF files cannot be written to pipes",
                        self->path);
    } else {
        int status = nc_create(path, NC_NETCDF4 | NC_CLOBBER, &w->id);
        if (status != NC_NOERR) w->id = -1;
        if (status != NC_NOERR) code = fail(w, "/", status);
    }
    free(path);
    if (code != CLI_OK) {
        abandon(self);
        return code;
    }
    self->coordinates_first = true;
    self->add = add;
    self->write = write_items;
    self->finish = finish;
    self->abandon = abandon;
    return CLI_OK;
}

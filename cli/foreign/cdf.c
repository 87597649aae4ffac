/* Room: cli/foreign. Classic NetCDF files: CDF-1, CDF-2 and CDF-5, read without libnetcdf. Format:
 * https://docs.unidata.ucar.edu/netcdf-c/current/file_format_specifications.html
 *
 * The header has big-endian numbers of 4 bytes, or 8 where CDF-5 has counts. Its lists are those of
 * dimensions, attributes and variables. A variable whose first dimension grows has one piece in each
 * record; the records follow each other at the end of the file. Items get this machine's byte order:
 * NetCDF gives types no other. */
#include "foreign/formats.h"
#include "foreign/items.h"
#include "foreign/values.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_NAME 256 /* bytes, as libnetcdf has it */
enum { TAG_DIMENSIONS = 10, TAG_VARIABLES = 11, TAG_ATTRIBUTES = 12, TYPE_CHAR = 2 };

typedef struct dimension {
    char *name; /* NULL: impossible as a name */
    int64_t length;
    bool used;
} dimension;

/* What a node owns: where the items of a variable are. */
typedef struct place {
    int64_t begin;
    int64_t record; /* bytes between its pieces; 0: a variable without records */
} place;

typedef struct reader {
    foreign_file *file;
    packed *bytes;
    int64_t size; /* of the file */
    /* The header as it is read: */
    int64_t at;
    uint8_t buffer[4096];
    int64_t buffered; /* position of the buffer; -1: empty */
    size_t filled;
    int version;
    int64_t n_records; /* -1: as many as the file has */
    dimension *dims;
    int64_t n_dims;
} reader;

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define NATIVE "<"
enum { SWAPS = 1 };
#else
#define NATIVE ">"
enum { SWAPS = 0 };
#endif

static const struct {
    const char *dtype;
    int64_t size;
} types[] = {{NULL, 0},        {"|i1", 1},       {"|S1", 1},       {NATIVE "i2", 2},
             {NATIVE "i4", 4}, {NATIVE "f4", 4}, {NATIVE "f8", 8}, {"|u1", 1},
             {NATIVE "u2", 2}, {NATIVE "u4", 4}, {NATIVE "i8", 8}, {NATIVE "u8", 8}};
#define N_TYPES (sizeof types / sizeof types[0])

/* Converts `n` items from the byte order of the file. */
static void to_native(void *items, int64_t n, int64_t size)
{
    uint8_t *at = items;
    for (int64_t i = 0; SWAPS && size > 1 && i < n; i++, at += size)
        for (int64_t k = 0; k < size / 2; k++) {
            uint8_t byte = at[k];
            at[k] = at[size - 1 - k];
            at[size - 1 - k] = byte;
        }
}

/* ---- The header ------------------------------------------------------------------------- */

static cli_exit damaged(const reader *r)
{
    return cli_fail(CLI_CORRUPT, "%s: its header is damaged", r->file->path);
}

/* Reads bytes of the header. */
static cli_exit take_bytes(reader *r, void *dst, int64_t size)
{
    uint8_t *to = dst;
    if (size < 0 || size > r->size - r->at) return damaged(r);
    while (size > 0) {
        int64_t skip = r->at - r->buffered;
        if (r->buffered < 0 || skip < 0 || skip >= (int64_t)r->filled) {
            r->buffered = r->at;
            CLI_TRY(packed_read_some(r->bytes, r->buffer, sizeof r->buffer, r->at, &r->filled));
            if (r->filled == 0) return damaged(r);
            skip = 0;
        }
        int64_t n = (int64_t)r->filled - skip < size ? (int64_t)r->filled - skip : size;
        memcpy(to, r->buffer + skip, (size_t)n);
        to += n;
        r->at += n;
        size -= n;
    }
    return CLI_OK;
}

/* Reads a number of 4 or 8 bytes, which is not negative. */
static cli_exit take_number(reader *r, int bytes, int64_t *out)
{
    uint8_t raw[8];
    uint64_t value = 0;
    CLI_TRY(take_bytes(r, raw, bytes));
    for (int i = 0; i < bytes; i++) value = value << 8 | raw[i];
    *out = value > INT64_MAX ? -1 : (int64_t)value;
    return *out < 0 ? damaged(r) : CLI_OK;
}

static cli_exit take_count(reader *r, int64_t *out)
{
    return take_number(r, r->version == 5 ? 8 : 4, out);
}

/* Moves to the next multiple of 4. */
static void align(reader *r) { r->at += -r->at & 3; }

/* Reads the head of a list: an entry takes at least `least` bytes. */
static cli_exit take_list(reader *r, int tag, int64_t least, int64_t *n)
{
    int64_t found;
    CLI_TRY(take_number(r, 4, &found));
    CLI_TRY(take_count(r, n));
    if ((found != tag && (found != 0 || *n != 0)) || *n > r->size / least) return damaged(r);
    return CLI_OK;
}

/* Reads a name; empty if it is impossible as one. */
static cli_exit take_name(reader *r, char name[MAX_NAME + 1])
{
    int64_t size;
    CLI_TRY(take_count(r, &size));
    name[0] = '\0';
    if (size > r->size - r->at) return damaged(r);
    if (size > MAX_NAME) {
        r->at += size;
    } else {
        CLI_TRY(take_bytes(r, name, size));
        name[size] = '\0';
    }
    align(r);
    bool valid = size <= MAX_NAME && values_is_utf8(name, (size_t)size) && !strchr(name, '/') &&
                 strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
    if (!valid) name[0] = '\0';
    return CLI_OK;
}

static cli_exit take_type(reader *r, int64_t *type)
{
    CLI_TRY(take_number(r, 4, type));
    return *type < 1 || *type >= (int64_t)N_TYPES ? damaged(r) : CLI_OK;
}

/* ---- Attributes ------------------------------------------------------------------------- */

/* Sets an attribute. Zeros at the end of a text are padding. */
static cli_exit set_attribute(foreign_node *node, const char *name, int64_t type, int64_t n,
                              const char *values)
{
    const int64_t shape[] = {n};
    size_t size = (size_t)n;
    if (type != TYPE_CHAR)
        return foreign_set_numbers(node, name, types[type].dtype, n != 1, shape, values);
    while (size > 0 && values[size - 1] == '\0') size--;
    return values_set_text(node, name, values, size);
}

static cli_exit take_attribute(reader *r, foreign_node *node)
{
    char name[MAX_NAME + 1];
    int64_t type, n;
    CLI_TRY(take_name(r, name));
    CLI_TRY(take_type(r, &type));
    CLI_TRY(take_count(r, &n));
    int64_t size = n <= r->size ? n * types[type].size : INT64_MAX;
    if (size > r->size - r->at) return damaged(r);
    char *values = cli_alloc((size_t)size + 1);
    if (!values) return CLI_IO;
    cli_exit code = take_bytes(r, values, size);
    if (code == CLI_OK) to_native(values, n, types[type].size);
    align(r);
    if (code == CLI_OK && !*name)
        code = foreign_lose(r->file, "%s: an attribute with an impossible name", node->key);
    else if (code == CLI_OK)
        code = foreign_restores(node, name)
                   ? foreign_lose(r->file, "%s: the attribute %s, whose name is reserved", node->key, name)
                   : set_attribute(node, name, type, n, values);
    if (code == CLI_OK && strcmp(name, "_FillValue") == 0 && node->dtype && n == 1 &&
        strcmp(types[type].dtype, node->dtype) == 0 && !node->fill) {
        node->fill = (uint8_t *)values;
        return CLI_OK;
    }
    free(values);
    return code;
}

static cli_exit take_attributes(reader *r, foreign_node *node)
{
    int64_t n;
    CLI_TRY(take_list(r, TAG_ATTRIBUTES, 12, &n));
    for (int64_t i = 0; i < n; i++) CLI_TRY(take_attribute(r, node));
    return CLI_OK;
}

/* ---- Variables -------------------------------------------------------------------------- */

static cli_exit take_dimensions(reader *r)
{
    char name[MAX_NAME + 1];
    int64_t n;
    CLI_TRY(take_list(r, TAG_DIMENSIONS, 8, &n));
    r->dims = cli_alloc((size_t)(n + 1) * sizeof *r->dims);
    if (!r->dims) return CLI_IO;
    for (; r->n_dims < n; r->n_dims++) {
        dimension *d = &r->dims[r->n_dims];
        *d = (dimension){.name = NULL};
        CLI_TRY(take_name(r, name));
        CLI_TRY(take_count(r, &d->length));
        if (*name && !(d->name = cli_copy_text(name))) return CLI_IO;
    }
    return CLI_OK;
}

/* A variable as the header describes it, before its attributes. */
typedef struct variable {
    char name[MAX_NAME + 1];
    int64_t ndim, dims[CATERVA_MAX_DIMS];
    bool has_records;
} variable;

/* Reads the dimensions. A variable of too many axes has its dimensions skipped. */
static cli_exit take_axes(reader *r, variable *v)
{
    int64_t id;
    CLI_TRY(take_name(r, v->name));
    CLI_TRY(take_count(r, &v->ndim));
    if (v->ndim > r->size / 4) return damaged(r);
    for (int64_t d = 0; d < v->ndim; d++) {
        CLI_TRY(take_count(r, &id));
        if (id >= r->n_dims) return damaged(r);
        r->dims[id].used = true;
        if (d < CATERVA_MAX_DIMS) v->dims[d] = id;
    }
    v->has_records = v->ndim > 0 && r->dims[v->dims[0]].length == 0;
    return CLI_OK;
}

/* Sets the dimensions' names once the shape is known. */
static cli_exit describe(reader *r, foreign_node *node, const variable *v, int64_t type)
{
    int64_t shape[CATERVA_MAX_DIMS];
    for (int d = 0; d < v->ndim; d++) shape[d] = r->dims[v->dims[d]].length;
    CLI_TRY(foreign_set_shape(r->file, node, types[type].dtype, (int)v->ndim, shape));
    for (int d = 0; d < v->ndim; d++)
        if (r->dims[v->dims[d]].name)
            CLI_TRY(foreign_set_dim(node, d, r->dims[v->dims[d]].name));
    place *p = cli_alloc(sizeof *p);
    if (!p) return CLI_IO;
    *p = (place){.record = v->has_records ? -1 : 0}; /* its size is not yet known */
    node->own = p;
    return CLI_OK;
}

/* The dtype of a variable follows its attributes, so the header is read twice. */
static cli_exit take_variable(reader *r)
{
    variable v;
    char key[MAX_NAME + 2];
    int64_t type, size, begin;
    foreign_node ignored = {.key = "/", .is_group = true};
    CLI_TRY(take_axes(r, &v));
    int64_t attributes = r->at;
    size_t losses = r->file->n_losses;
    cli_exit code = take_attributes(r, &ignored);
    foreign_node_clear(&ignored);
    if (code != CLI_OK) return code;
    CLI_TRY(take_type(r, &type));
    CLI_TRY(take_count(r, &size));
    CLI_TRY(take_number(r, r->version == 1 ? 4 : 8, &begin));
    snprintf(key, sizeof key, "/%s", v.name);
    if (!v.name[0]) return foreign_lose(r->file, "/: a variable with an impossible name");
    if (v.ndim > CATERVA_MAX_WRITE_DIMS)
        return foreign_lose(r->file, "%s: a variable of %lld axes", key, (long long)v.ndim);
    for (; r->file->n_losses > losses; r->file->n_losses--) /* they are found again */
        free(r->file->losses[r->file->n_losses - 1]);
    int64_t end = r->at;
    foreign_node *node = foreign_add(r->file, key, false);
    if (!node) return CLI_IO;
    CLI_TRY(describe(r, node, &v, type));
    ((place *)node->own)->begin = begin;
    r->at = attributes;
    CLI_TRY(take_attributes(r, node));
    r->at = end;
    return CLI_OK;
}

/* ---- Records ---------------------------------------------------------------------------- */

/* Returns the bytes of all items, of one record if it has records; -1 if they are too many. */
static int64_t bytes_of(const foreign_node *node)
{
    const place *p = node->own;
    int64_t bytes = node->item_size;
    for (int d = p->record ? 1 : 0; d < node->ndim; d++)
        if (__builtin_mul_overflow(bytes, node->shape[d], &bytes)) return -1;
    return bytes < INT64_MAX / 2 ? bytes : -1;
}

/* Finds the size of a record. Pieces are padded to 4 bytes, unless there is only one. */
static cli_exit find_records(const reader *r, int64_t *record, int64_t *first)
{
    int64_t n = 0, single = 0;
    *record = 0;
    *first = INT64_MAX;
    for (size_t i = 1; i < r->file->n; i++) {
        const foreign_node *node = &r->file->nodes[i];
        const place *p = node->own;
        int64_t bytes = bytes_of(node);
        if (bytes < 0) return damaged(r);
        if (!p->record) continue;
        n++;
        single = bytes;
        if (p->begin < *first) *first = p->begin;
        if (__builtin_add_overflow(*record, (bytes + 3) & ~INT64_C(3), record))
            return damaged(r);
    }
    if (n == 1) *record = single;
    return CLI_OK;
}

/* Sets the length of the growing axes, and checks that the file has all items. */
static cli_exit place_all(reader *r)
{
    int64_t record, first;
    CLI_TRY(find_records(r, &record, &first));
    if (r->n_records < 0)
        r->n_records = record > 0 && first < r->size ? (r->size - first) / record : 0;
    for (size_t i = 1; i < r->file->n; i++) {
        foreign_node *node = &r->file->nodes[i];
        place *p = node->own;
        int64_t bytes = bytes_of(node), end;
        bool empty = bytes == 0 || (p->record && r->n_records == 0);
        if (p->record) {
            node->shape[0] = r->n_records;
            p->record = record;
            if (!empty && (r->n_records - 1) > (INT64_MAX / 2 - bytes) / (record ? record : 1))
                return damaged(r);
            if (!empty) bytes += (r->n_records - 1) * record;
        }
        if (!empty && (__builtin_add_overflow(p->begin, bytes, &end) || end > r->size))
            return cli_fail(CLI_CORRUPT, "%s ends before the items of %s", r->file->path,
                            node->key);
    }
    return CLI_OK;
}

/* ---- Files ------------------------------------------------------------------------------ */

static cli_exit read_raw(const reader *r, const foreign_node *array, const int64_t *start,
                         const int64_t *stop, uint8_t *dst)
{
    const place *p = array->own;
    if (!p->record) return items_read(r->bytes, p->begin, array, start, stop, dst);
    foreign_node piece = {.ndim = array->ndim - 1, .item_size = array->item_size};
    int64_t size = array->item_size;
    for (int d = 0; d < piece.ndim; d++) {
        piece.shape[d] = array->shape[d + 1];
        size *= stop[d + 1] - start[d + 1];
    }
    for (int64_t i = start[0]; i < stop[0]; i++, dst += size) {
        int64_t begin = p->begin + i * p->record;
        if (cli_interrupted()) return CLI_INTERRUPTED;
        CLI_TRY(items_read(r->bytes, begin, &piece, start + 1, stop + 1, dst));
    }
    return CLI_OK;
}

static cli_exit read_items(foreign_file *file, const foreign_node *array, const int64_t *start,
                           const int64_t *stop, void *dst)
{
    int64_t n = 1;
    for (int d = 0; d < array->ndim; d++) n *= stop[d] - start[d];
    CLI_TRY(read_raw(file->own, array, start, stop, dst));
    to_native(dst, n, array->item_size);
    return CLI_OK;
}

static void close_file(foreign_file *file)
{
    reader *r = file->own;
    if (!r) return;
    for (size_t i = 0; i < file->n; i++) free(file->nodes[i].own);
    for (int64_t i = 0; i < r->n_dims; i++) free(r->dims[i].name);
    free(r->dims);
    packed_close(r->bytes);
    free(r);
}

static cli_exit list_dimensions(const reader *r)
{
    for (int64_t i = 0; i < r->n_dims; i++) {
        const char *const names[] = {r->dims[i].name};
        if (!names[0]) continue;
        if (!r->dims[i].used)
            CLI_TRY(foreign_lose(r->file, "/%s: a dimension that no array has", names[0]));
        else if (r->dims[i].length == 0)
            CLI_TRY(foreign_set_texts(&r->file->nodes[0], "_unlimited_dims", names, 1));
    }
    return CLI_OK;
}

static cli_exit take_header(reader *r)
{
    uint8_t magic[4];
    int64_t n;
    CLI_TRY(take_bytes(r, magic, sizeof magic));
    r->version = magic[3];
    if (memcmp(magic, "CDF", 3) != 0 || (magic[3] != 1 && magic[3] != 2 && magic[3] != 5))
        return cli_fail(CLI_UNSUPPORTED, "%s is not a classic NetCDF file", r->file->path);
    uint8_t records[8];
    CLI_TRY(take_bytes(r, records, r->version == 5 ? 8 : 4));
    bool streaming = memcmp(records, "\xff\xff\xff\xff\xff\xff\xff\xff",
                            r->version == 5 ? 8 : 4) == 0;
    r->at = 4;
    if (streaming)
        r->at += r->version == 5 ? 8 : 4;
    else
        CLI_TRY(take_count(r, &r->n_records));
    CLI_TRY(take_dimensions(r));
    CLI_TRY(take_attributes(r, &r->file->nodes[0]));
    CLI_TRY(take_list(r, TAG_VARIABLES, 20, &n));
    for (int64_t i = 0; i < n; i++) CLI_TRY(take_variable(r));
    CLI_TRY(place_all(r));
    return list_dimensions(r);
}

static cli_exit open_cdf(foreign_file *file)
{
    reader *r = cli_alloc(sizeof *r);
    if (!r) return CLI_IO;
    *r = (reader){.file = file, .buffered = -1, .n_records = -1};
    file->own = r;
    file->close = close_file;
    file->read = read_items;
    if (!foreign_add(file, "/", true)) return CLI_IO;
    CLI_TRY(packed_open(file->path, PACKING_NONE, 0, -1, &r->bytes));
    r->size = packed_stored(r->bytes);
    return take_header(r);
}

const foreign_format foreign_cdf = {
    .interface = FOREIGN_INTERFACE, .name = "netcdf", .open = open_cdf};

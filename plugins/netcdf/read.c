/* Plug-in netcdf. Reading of classic files: one group, whose variables have the dimensions of the
 * file. libnetcdf converts items to this machine's byte order. */
#include "netcdf.h"

#include "formats/json.h"

#include <caterva_value.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

typedef struct reader {
    foreign_file *file;
    int id;
    bool *used; /* of each dimension */
    int n_dims, n_vars;
    size_t file_size;
    char *name; /* libnetcdf writes names of any length that the file has, not NC_MAX_NAME */
} reader;

#define NAME_LIMIT ((size_t)1 << 30)

static cli_exit fail(const reader *r, const char *key, int status)
{
    return nc_fail(CLI_CORRUPT, r->file->path, key, status);
}

/* Returns the dtype of a type of classic files, or NULL. */
static const char *dtype_of(nc_type type)
{
    switch (type) {
    case NC_BYTE: return "|i1";
    case NC_UBYTE: return "|u1";
    case NC_CHAR: return "|S1";
    case NC_SHORT: return NC_NATIVE "i2";
    case NC_USHORT: return NC_NATIVE "u2";
    case NC_INT: return NC_NATIVE "i4";
    case NC_UINT: return NC_NATIVE "u4";
    case NC_INT64: return NC_NATIVE "i8";
    case NC_UINT64: return NC_NATIVE "u8";
    case NC_FLOAT: return NC_NATIVE "f4";
    case NC_DOUBLE: return NC_NATIVE "f8";
    default: return NULL;
    }
}

static bool is_name(const char *name)
{
    size_t size = strlen(name);
    if (size > NC_MAX_NAME) return false;
    for (size_t at = 0, length; at < size; at += length)
        if ((length = json_utf8_length(name + at, size - at)) == 0) return false;
    return size > 0 && !strchr(name, '/') && strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
}

/* ---- Attributes -------------------------------------------------------------------------- */

static cli_exit set_bytes(foreign_node *node, const char *name, const char *bytes, size_t size)
{
    caterva_value value = CATERVA_VALUE_INIT;
    caterva_error err;
    void *packed;
    size_t packed_size;
    value.kind = CATERVA_VALUE_BYTES;
    value.bytes = bytes;
    value.size = size;
    if (caterva_value_pack(&value, 1, &packed, &packed_size, &err) != CATERVA_OK)
        return cli_fail(CLI_UNSUPPORTED, "the attribute %s: %s", name, err.message);
    return foreign_set_packed(node, name, packed, packed_size);
}

/* Zeros at the end are padding. */
static cli_exit set_text(foreign_node *node, const char *name, const char *text, size_t size)
{
    bool valid = true;
    while (size > 0 && text[size - 1] == '\0') size--;
    for (size_t at = 0, length; at < size && valid; at += length) {
        length = json_utf8_length(text + at, size - at);
        valid = length > 0;
    }
    return valid ? foreign_set_text(node, name, text, size)
                 : set_bytes(node, name, text, size);
}

static cli_exit add_attribute(const reader *r, foreign_node *node, int var, const char *name)
{
    nc_type type;
    size_t n, size;
    int status = nc_inq_att(r->id, var, name, &type, &n);
    if (status == NC_NOERR) status = nc_inq_type(r->id, type, NULL, &size);
    if (status != NC_NOERR) return fail(r, node->key, status);
    if (n > r->file_size / size)
        return cli_fail(CLI_CORRUPT, "%s: %s: its attribute %s claims %zu values",
                        r->file->path, node->key, name, n);
    const char *dtype = dtype_of(type);
    const int64_t shape[] = {(int64_t)n};
    void *items = cli_alloc(n * size);
    if (!items) return CLI_IO;
    status = nc_get_att(r->id, var, name, items);
    cli_exit code = status == NC_NOERR ? CLI_OK : fail(r, node->key, status);
    if (code == CLI_OK && type == NC_CHAR)
        code = set_text(node, name, items, n);
    else if (code == CLI_OK && dtype)
        code = foreign_set_numbers(node, name, dtype, n != 1, shape, items);
    bool is_fill = var != NC_GLOBAL && strcmp(name, "_FillValue") == 0 && dtype && n == 1 &&
                   size == (size_t)node->item_size && strcmp(dtype, node->dtype) == 0;
    if (code == CLI_OK && is_fill) {
        node->fill = items;
        items = NULL;
    }
    free(items);
    return code;
}

static cli_exit add_attributes(const reader *r, foreign_node *node, int var)
{
    int n;
    int status = nc_inq_varnatts(r->id, var, &n);
    for (int i = 0; i < n && status == NC_NOERR; i++) {
        status = nc_inq_attname(r->id, var, i, r->name);
        if (status != NC_NOERR) break;
        if (is_name(r->name))
            CLI_TRY(add_attribute(r, node, var, r->name));
        else
            CLI_TRY(foreign_lose(r->file, "%s: an attribute with an impossible name",
                                 node->key));
    }
    return status == NC_NOERR ? CLI_OK : fail(r, node->key, status);
}

/* ---- Variables --------------------------------------------------------------------------- */

static cli_exit describe(reader *r, int var, const char *key, const char *dtype, int ndim,
                         const int *dims)
{
    int64_t shape[CATERVA_MAX_DIMS];
    size_t length;
    foreign_node *node = foreign_add(r->file, key, false);
    if (!node) return CLI_IO;
    for (int d = 0; d < ndim; d++) {
        int status = nc_inq_dimlen(r->id, dims[d], &length);
        if (status != NC_NOERR) return fail(r, key, status);
        shape[d] = (int64_t)length;
    }
    CLI_TRY(foreign_set_shape(r->file, node, dtype, ndim, shape));
    for (int d = 0; d < ndim; d++) {
        int status = nc_inq_dimname(r->id, dims[d], r->name);
        if (status != NC_NOERR) return fail(r, key, status);
        r->used[dims[d]] = true;
        if (is_name(r->name)) CLI_TRY(foreign_set_dim(node, d, r->name));
    }
    node->own = (void *)(uintptr_t)(var + 1);
    return add_attributes(r, node, var);
}

static cli_exit add_variable(reader *r, int var)
{
    char key[NC_MAX_NAME + 2];
    nc_type type;
    int ndim, dims[CATERVA_MAX_DIMS];
    int status = nc_inq_var(r->id, var, r->name, &type, &ndim, NULL, NULL);
    if (status != NC_NOERR) return fail(r, "/", status);
    if (!is_name(r->name)) return foreign_lose(r->file, "/: a variable with an impossible name");
    snprintf(key, sizeof key, "/%s", r->name);
    const char *dtype = dtype_of(type);
    if (!dtype) return foreign_lose(r->file, "%s: a variable of an unknown type", key);
    if (ndim >= CATERVA_MAX_DIMS)
        return foreign_lose(r->file, "%s: a variable of %d axes", key, ndim);
    status = nc_inq_vardimid(r->id, var, dims);
    if (status != NC_NOERR) return fail(r, key, status);
    return describe(r, var, key, dtype, ndim, dims);
}

/* ---- The end of the data ----------------------------------------------------------------- */

/* libnetcdf reads zeros behind the end of a file that is too short, and does not tell where the data
 * of a variable are. So the header is parsed here: lists of dimensions, attributes and variables,
 * of big-endian numbers with 4 bytes, or 8 bytes in CDF-5. */
typedef struct header {
    FILE *stream;
    int version;
    bool is_damaged;
} header;

static uint64_t take(header *h, int bytes)
{
    uint64_t value = 0;
    for (int i = 0; i < bytes; i++) {
        int c = getc(h->stream);
        if (c == EOF) h->is_damaged = true;
        value = value << 8 | (uint64_t)(c & 0xff);
    }
    return value;
}

static uint64_t take_count(header *h) { return take(h, h->version == 5 ? 8 : 4); }

/* Skips bytes, and the padding to a multiple of 4. */
static void skip(header *h, uint64_t bytes)
{
    if (bytes > INT64_MAX / 2 || fseeko(h->stream, (off_t)((bytes + 3) & ~UINT64_C(3)), SEEK_CUR))
        h->is_damaged = true;
}

static uint64_t take_list(header *h)
{
    take(h, 4); /* what the list has */
    return take_count(h);
}

static void skip_attributes(header *h)
{
    static const uint8_t sizes[] = {0, 1, 1, 2, 4, 4, 8, 1, 2, 4, 8, 8};
    for (uint64_t n = take_list(h); n > 0 && !h->is_damaged; n--) {
        skip(h, take_count(h));
        uint64_t type = take(h, 4), count = take_count(h);
        if (type >= sizeof sizes || count > INT64_MAX / 16) h->is_damaged = true;
        if (!h->is_damaged) skip(h, count * sizes[type]);
    }
}

/* Where data end. Variables with records follow each other in each record, padded unless there is
 * only one. */
typedef struct extent {
    double end;            /* of all variables without records */
    double first_records;  /* the end of the first record */
    double padded, single; /* bytes of one record */
    double n_records;
    int n_growing;
} extent;

static bool add_extent(const reader *r, int var, double begin, extent *x)
{
    int ndim, dims[CATERVA_MAX_DIMS], growing = -1;
    nc_type type;
    size_t size, length;
    if (nc_inq_varndims(r->id, var, &ndim) != NC_NOERR || ndim >= CATERVA_MAX_DIMS ||
        nc_inq_vardimid(r->id, var, dims) != NC_NOERR ||
        nc_inq_vartype(r->id, var, &type) != NC_NOERR ||
        nc_inq_type(r->id, type, NULL, &size) != NC_NOERR ||
        nc_inq_unlimdim(r->id, &growing) != NC_NOERR)
        return false;
    bool grows = ndim > 0 && growing >= 0 && dims[0] == growing;
    double bytes = (double)size;
    for (int d = 0; d < ndim; d++) {
        if (nc_inq_dimlen(r->id, dims[d], &length) != NC_NOERR) return false;
        if (d > 0 || !grows) bytes *= (double)length;
        if (d == 0 && grows) x->n_records = (double)length;
    }
    if (bytes > 1e18) return false;
    double *end = grows ? &x->first_records : &x->end;
    if (bytes > 0 && begin + bytes > *end) *end = begin + bytes;
    x->single = bytes;
    if (grows) x->padded += (double)(((uint64_t)bytes + 3) & ~UINT64_C(3));
    x->n_growing += grows;
    return true;
}

static double find_end(const reader *r, header *h)
{
    extent x = {0};
    double single = 0;
    take(h, 3);
    h->version = (int)take(h, 1);
    take_count(h); /* of records: libnetcdf knows it */
    for (uint64_t n = take_list(h); n > 0 && !h->is_damaged; n--) {
        skip(h, take_count(h));
        take_count(h);
    }
    skip_attributes(h);
    take_list(h);
    for (int var = 0; var < r->n_vars && !h->is_damaged; var++) {
        int n_growing = x.n_growing;
        skip(h, take_count(h));
        for (uint64_t ndim = take_count(h); ndim > 0 && !h->is_damaged; ndim--) take_count(h);
        skip_attributes(h);
        take(h, 4);
        take_count(h);
        double begin = (double)take(h, h->version == 1 ? 4 : 8);
        if (!h->is_damaged && !add_extent(r, var, begin, &x)) h->is_damaged = true;
        if (x.n_growing > n_growing) single = x.single;
    }
    if (x.n_records < 1) return x.end;
    double record = x.n_growing == 1 ? single : x.padded;
    double end = x.first_records + (x.n_records - 1) * record;
    return end > x.end ? end : x.end;
}

static cli_exit check_size(const reader *r)
{
    header h = {.stream = fopen(r->file->path, "rb")};
    if (!h.stream) return cli_fail_sys("cannot open %s", r->file->path);
    double end = find_end(r, &h);
    fclose(h.stream);
    if (h.is_damaged) return cli_fail(CLI_CORRUPT, "%s: its header is damaged", r->file->path);
    if (end <= (double)r->file_size) return CLI_OK;
    return cli_fail(CLI_CORRUPT, "%s: its variables end at byte %.0f, but the file has %zu bytes",
                    r->file->path, end, r->file_size);
}

static cli_exit list_dimensions(const reader *r)
{
    const char *names[] = {r->name};
    int growing = -1;
    nc_inq_unlimdim(r->id, &growing);
    for (int i = 0; i < r->n_dims; i++) {
        int status = nc_inq_dimname(r->id, i, r->name);
        if (status != NC_NOERR) return fail(r, "/", status);
        if (!is_name(r->name)) continue;
        if (!r->used[i])
            CLI_TRY(foreign_lose(r->file, "/%s: a dimension that no array has", r->name));
        else if (i == growing)
            CLI_TRY(foreign_set_texts(&r->file->nodes[0], "_unlimited_dims", names, 1));
    }
    return CLI_OK;
}

static cli_exit describe_all(reader *r)
{
    int format, n_attributes, growing;
    int status = nc_inq_format(r->id, &format);
    if (status == NC_NOERR)
        status = nc_inq(r->id, &r->n_dims, &r->n_vars, &n_attributes, &growing);
    if (status != NC_NOERR) return fail(r, "/", status);
    if (format == NC_FORMAT_NETCDF4 || format == NC_FORMAT_NETCDF4_CLASSIC)
        return cli_fail(CLI_UNSUPPORTED, "%s is an HDF5 file, which the plug-in hdf5 reads",
                        r->file->path);
    struct stat st;
    if (stat(r->file->path, &st) != 0) return cli_fail_sys("cannot open %s", r->file->path);
    r->file_size = (size_t)st.st_size;
    size_t longest = r->file_size < NAME_LIMIT ? r->file_size : NAME_LIMIT;
    r->used = calloc((size_t)r->n_dims + 1, sizeof *r->used);
    r->name = malloc(longest + NC_MAX_NAME + 1);
    if (!r->used || !r->name) return cli_fail(CLI_IO, "out of memory");
    foreign_node *root = foreign_add(r->file, "/", true);
    if (!root) return CLI_IO;
    CLI_TRY(add_attributes(r, root, NC_GLOBAL));
    for (int i = 0; i < r->n_vars; i++) CLI_TRY(add_variable(r, i));
    CLI_TRY(list_dimensions(r));
    return check_size(r);
}

/* ---- Files ------------------------------------------------------------------------------- */

static cli_exit read_items(foreign_file *file, const foreign_node *array, const int64_t *start,
                           const int64_t *stop, void *dst)
{
    reader *r = file->own;
    size_t from[CATERVA_MAX_DIMS] = {0}, count[CATERVA_MAX_DIMS] = {0};
    for (int d = 0; d < array->ndim; d++) {
        from[d] = (size_t)start[d];
        count[d] = (size_t)(stop[d] - start[d]);
    }
    cli_guard(file->path, "libnetcdf");
    int status = nc_get_vara(r->id, (int)((uintptr_t)array->own - 1), from, count, dst);
    cli_unguard();
    return status == NC_NOERR ? CLI_OK : fail(r, array->key, status);
}

static void close_file(foreign_file *file)
{
    reader *r = file->own;
    if (!r) return;
    cli_guard(file->path, "libnetcdf");
    if (r->id >= 0) nc_close(r->id);
    cli_unguard();
    free(r->used);
    free(r->name);
    free(r);
}

cli_exit nc_open_file(foreign_file *file)
{
    reader *r = cli_alloc(sizeof *r);
    if (!r) return CLI_IO;
    *r = (reader){.file = file, .id = -1};
    file->own = r;
    file->close = close_file;
    file->read = read_items;
    char *path = realpath(file->path, NULL); /* no URL, which libnetcdf would follow */
    if (!path) return cli_fail_sys("cannot open %s", file->path);
    cli_guard(file->path, "libnetcdf");
    int status = nc_open(path, NC_NOWRITE, &r->id);
    free(path);
    if (status != NC_NOERR) r->id = -1;
    cli_exit code = status == NC_NOERR ? describe_all(r) : fail(r, "/", status);
    cli_unguard();
    return code;
}

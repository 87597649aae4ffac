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
} reader;

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
    char name[NC_MAX_NAME + 1];
    int n;
    int status = nc_inq_varnatts(r->id, var, &n);
    for (int i = 0; i < n && status == NC_NOERR; i++) {
        status = nc_inq_attname(r->id, var, i, name);
        if (status != NC_NOERR) break;
        if (is_name(name))
            CLI_TRY(add_attribute(r, node, var, name));
        else
            CLI_TRY(foreign_lose(r->file, "%s: an attribute whose name is not UTF-8",
                                 node->key));
    }
    return status == NC_NOERR ? CLI_OK : fail(r, node->key, status);
}

/* ---- Variables --------------------------------------------------------------------------- */

static cli_exit describe(reader *r, int var, const char *key, const char *dtype, int ndim,
                         const int *dims)
{
    int64_t shape[CATERVA_MAX_DIMS];
    char name[NC_MAX_NAME + 1];
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
        int status = nc_inq_dimname(r->id, dims[d], name);
        if (status != NC_NOERR) return fail(r, key, status);
        r->used[dims[d]] = true;
        if (is_name(name)) CLI_TRY(foreign_set_dim(node, d, name));
    }
    node->own = (void *)(uintptr_t)(var + 1);
    return add_attributes(r, node, var);
}

static cli_exit add_variable(reader *r, int var)
{
    char name[NC_MAX_NAME + 1], key[NC_MAX_NAME + 2];
    nc_type type;
    int ndim, dims[NC_MAX_VAR_DIMS];
    int status = nc_inq_var(r->id, var, name, &type, &ndim, dims, NULL);
    if (status != NC_NOERR) return fail(r, "/", status);
    if (!is_name(name))
        return foreign_lose(r->file, "/: a variable whose name no array can have");
    snprintf(key, sizeof key, "/%s", name);
    const char *dtype = dtype_of(type);
    if (!dtype) return foreign_lose(r->file, "%s: a variable of an unknown type", key);
    if (ndim >= CATERVA_MAX_DIMS)
        return foreign_lose(r->file, "%s: a variable of %d axes", key, ndim);
    return describe(r, var, key, dtype, ndim, dims);
}

/* libnetcdf reads zeros behind the end of a file: a file that is too short is an error here. */
static cli_exit check_size(const reader *r)
{
    struct stat st;
    double claimed = 0;
    for (size_t i = 1; i < r->file->n; i++) {
        const foreign_node *node = &r->file->nodes[i];
        double bytes = (double)node->item_size;
        for (int d = 0; d < node->ndim; d++) bytes *= (double)node->shape[d];
        claimed += bytes;
    }
    if (stat(r->file->path, &st) != 0) return cli_fail_sys("cannot open %s", r->file->path);
    if (claimed <= (double)st.st_size) return CLI_OK;
    return cli_fail(CLI_CORRUPT, "%s: its variables claim %.0f bytes, but the file has %lld",
                    r->file->path, claimed, (long long)st.st_size);
}

static cli_exit list_dimensions(const reader *r)
{
    char name[NC_MAX_NAME + 1];
    const char *names[1] = {name};
    int growing = -1;
    nc_inq_unlimdim(r->id, &growing);
    for (int i = 0; i < r->n_dims; i++) {
        int status = nc_inq_dimname(r->id, i, name);
        if (status != NC_NOERR) return fail(r, "/", status);
        if (!is_name(name)) continue;
        if (!r->used[i])
            CLI_TRY(foreign_lose(r->file, "/%s: a dimension that no array has", name));
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
    r->used = calloc((size_t)r->n_dims + 1, sizeof *r->used);
    if (!r->used) return cli_fail(CLI_IO, "out of memory");
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
    if (r->id >= 0) nc_close(r->id);
    free(r->used);
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

/* Room: cli/foreign. Files of other formats: the table of formats, plug-ins, and the descriptions
 * that readers build. A plug-in is found next to the program, or in the folder that the
 * environment variable CATERVA_PLUGINS names. */
#include "foreign/foreign.h"

#include "foreign/formats.h"

#include <caterva_value.h>
#include <dlfcn.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

/* ---- Formats ---------------------------------------------------------------------------- */

static const foreign_info infos[] = {
    {"hdf5", "an HDF5 file", ".h5 .hdf5 .he5", "caterva-hdf5", NULL, true},
    {"netcdf", "a NetCDF file", ".nc .nc4 .cdf", "caterva-netcdf", &foreign_cdf, true},
    {"zarr", "a Zarr store", ".zarr", NULL, &foreign_zarr, true},
    {"tiff", "a TIFF picture", ".tif .tiff .btf .tf8", "caterva-tiff", NULL, false},
    {"nifti", "a NIfTI image", ".nii .nii.gz .hdr .hdr.gz .img .img.gz", NULL, &foreign_nifti, false},
    {"npz", "an npz file", ".npz", NULL, &foreign_npz, false},
    {"nrrd", "an NRRD file", ".nrrd .nhdr", NULL, &foreign_nrrd, false},
};
#define N_INFOS (sizeof infos / sizeof infos[0])

typedef struct magic {
    size_t position, size;
    const char *bytes;
    const char *name;
} magic;

static const magic magics[] = {
    {0, 8, "\x89HDF\r\n\x1a\n", "hdf5"}, {0, 4, "CDF\1", "netcdf"}, {0, 4, "CDF\2", "netcdf"},
    {0, 4, "CDF\5", "netcdf"},           {0, 4, "II*\0", "tiff"},   {0, 4, "MM\0*", "tiff"},
    {0, 4, "II+\0", "tiff"},             {0, 4, "MM\0+", "tiff"},
    {344, 4, "n+1\0", "nifti"},          {344, 4, "ni1\0", "nifti"},
    {4, 8, "n+2\0\r\n\x1a\n", "nifti"},  {4, 8, "ni2\0\r\n\x1a\n", "nifti"},
    {0, 7, "NRRD000", "nrrd"},           {512, 8, "\x89HDF\r\n\x1a\n", "hdf5"}, /* MATLAB's */
};

const foreign_info *foreign_by_name(const char *name)
{
    for (size_t i = 0; i < N_INFOS; i++)
        if (strcasecmp(infos[i].name, name) == 0) return &infos[i];
    return NULL;
}

const char *foreign_name(size_t i) { return i < N_INFOS ? infos[i].name : NULL; }

/* Whether the path ends with one of the extensions, which blanks separate. */
static bool has_extension(const char *path, const char *extensions)
{
    size_t size = strlen(path);
    while (*extensions) {
        size_t n = strcspn(extensions, " ");
        if (size > n && strncasecmp(path + size - n, extensions, n) == 0) return true;
        extensions += n + strspn(extensions + n, " ");
    }
    return false;
}

const foreign_info *foreign_by_path(const char *path)
{
    for (size_t i = 0; i < N_INFOS; i++)
        if (has_extension(path, infos[i].extensions)) return &infos[i];
    return NULL;
}

const foreign_info *foreign_recognize(const uint8_t *head, size_t size)
{
    for (size_t i = 0; i < sizeof magics / sizeof magics[0]; i++) {
        const magic *m = &magics[i];
        if (m->position + m->size <= size &&
            memcmp(head + m->position, m->bytes, m->size) == 0)
            return foreign_by_name(m->name);
    }
    return NULL;
}

/* ---- Plug-ins --------------------------------------------------------------------------- */

/* Sets `path` to the file of a plug-in. Plug-ins are in the folder CATERVA_PLUGINS; otherwise in
 * ../lib/caterva of the folder of the program, or where it was installed. */
static bool find_plugin(const char *name, char path[PATH_MAX])
{
    const char *folder = getenv("CATERVA_PLUGINS");
    if (folder) {
        int size = snprintf(path, PATH_MAX, "%s/%s.so", folder, name);
        return size < PATH_MAX && access(path, R_OK) == 0;
    }
    char program[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    while (length > 0 && program[length - 1] != '/') length--;
    program[length > 0 ? length : 0] = '\0';
    const char *const below[] = {CATERVA_PLUGINS_BESIDE};
    for (size_t i = 0; *program && i < sizeof below / sizeof below[0]; i++) {
        int size = snprintf(path, PATH_MAX, "%s%s/%s.so", program, below[i], name);
        if (size < PATH_MAX && access(path, R_OK) == 0) return true;
    }
    return false;
}

/* Loads a plug-in, which stays loaded until the program ends. The Python package reads the formats
 * of all plug-ins by other packages. */
static cli_exit load_plugin(const foreign_info *info, const char *path, bool to_write,
                            const foreign_format **out)
{
    char plugin[PATH_MAX];
    if (!find_plugin(info->name, plugin))
        return cli_fail(CLI_UNSUPPORTED,
                        "%s is %s, and the plug-in %s.so is missing: install it (on Debian: %s)%s",
                        path, info->title, info->name, info->package,
                        to_write ? "" : ", or use Python: python -m caterva convert");
    void *library = dlopen(plugin, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return cli_fail(CLI_UNSUPPORTED, "cannot load the plug-in %s: %s", plugin, dlerror());
    *out = dlsym(library, "caterva_format");
    if (*out && (*out)->interface == FOREIGN_INTERFACE) return CLI_OK;
    return cli_fail(CLI_UNSUPPORTED, "the plug-in %s is not of this version of caterva", plugin);
}

/* The program may read a format that a plug-in writes. */
static cli_exit format_of(const foreign_info *info, const char *path, bool to_write,
                          const foreign_format **out)
{
    *out = info->format;
    bool plugin = !*out || (to_write && !(*out)->create && info->package);
    return plugin ? load_plugin(info, path, to_write, out) : CLI_OK;
}

/* ---- Files ------------------------------------------------------------------------------ */

bool foreign_is_reserved(const foreign_node *node, const char *name)
{
    static const char *const names[] = {"_caterva",        "_caterva_convert", "dims", "attrs",
                                        "dimension_names", "_ARRAY_DIMENSIONS"};
    for (size_t k = 0; k < sizeof names / sizeof names[0]; k++)
        if (strcmp(names[k], name) == 0) return !node->is_group || strcmp(name, "dims") != 0;
    return false;
}

bool foreign_restores(const foreign_node *node, const char *name)
{
    static const char *const names[] = {"_enum",  "_vlen",     "_null",   "_type",
                                        "_types", "_maxshape", "_labels", "_scale"};
    for (size_t k = 0; k < sizeof names / sizeof names[0]; k++)
        if (strcmp(names[k], name) == 0) return true;
    return node->is_group && (strcmp(name, "_unlimited_dims") == 0 || strcmp(name, "_dims") == 0);
}

/* Removes attributes that have a name of ours with another meaning: they are losses. */
static cli_exit drop_reserved(foreign_file *file, foreign_node *node)
{
    for (size_t i = 0; i < node->n_attributes;) {
        foreign_attribute *a = &node->attributes[i];
        if (!foreign_is_reserved(node, a->name)) {
            i++;
            continue;
        }
        CLI_TRY(foreign_lose(file, "%s: the attribute %s, whose name is reserved", node->key,
                             a->name));
        free(a->name);
        free(a->value);
        memmove(a, a + 1, (--node->n_attributes - i) * sizeof *a);
    }
    return CLI_OK;
}

cli_exit foreign_open(const foreign_info *info, const char *path, foreign_file **out)
{
    const foreign_format *format;
    CLI_TRY(format_of(info, path, false, &format));
    foreign_file *file = cli_alloc(sizeof *file);
    if (!file) return CLI_IO;
    *file = (foreign_file){.path = path};
    cli_exit code = format->open(file);
    for (size_t i = 0; code == CLI_OK && i < file->n; i++)
        code = drop_reserved(file, &file->nodes[i]);
    if (code == CLI_OK)
        *out = file;
    else
        foreign_close(file);
    return code;
}

static void free_texts(char **texts, size_t n)
{
    for (size_t i = 0; i < n; i++) free(texts[i]);
    free(texts);
}

static void free_members(foreign_node *node)
{
    for (size_t i = 0; i < node->n_attributes; i++) {
        free(node->attributes[i].name);
        free(node->attributes[i].value);
    }
    free(node->attributes);
    if (node->dims) free_texts(node->dims, (size_t)node->ndim);
    free(node->key);
    free(node->dtype);
    free(node->fill);
}

void foreign_close(foreign_file *file)
{
    if (!file) return;
    if (file->close) file->close(file);
    for (size_t i = 0; i < file->n; i++) free_members(&file->nodes[i]);
    free(file->nodes);
    free(file->index);
    free_texts(file->losses, file->n_losses);
    free(file);
}

/* A hash table of the first `n` nodes, with more than twice as many places. */
typedef struct foreign_index {
    size_t n, room;
    size_t places[]; /* number of the node + 1; 0: free */
} foreign_index;

/* Returns the place of a key, or the free one where it would be. */
static size_t *place_of(const foreign_file *file, const char *key)
{
    foreign_index *index = file->index;
    uint64_t hash = UINT64_C(0xcbf29ce484222325); /* FNV-1a */
    for (const char *c = key; *c; c++) hash = (hash ^ (uint8_t)*c) * UINT64_C(0x100000001b3);
    size_t at = (size_t)(hash ^ hash >> 32) & (index->room - 1);
    while (index->places[at] && strcmp(file->nodes[index->places[at] - 1].key, key) != 0)
        at = (at + 1) & (index->room - 1);
    return &index->places[at];
}

const foreign_node *foreign_find(foreign_file *file, const char *key)
{
    size_t room = file->index ? file->index->room : 64;
    while (room <= 2 * file->n) room *= 2;
    if (!file->index || room > file->index->room) {
        free(file->index);
        file->index = calloc(1, sizeof *file->index + room * sizeof *file->index->places);
        if (file->index) file->index->room = room;
    }
    if (!file->index) return NULL;
    for (size_t i = file->index->n; i < file->n; i++) {
        size_t *place = place_of(file, file->nodes[i].key);
        if (!*place) *place = i + 1;
    }
    file->index->n = file->n;
    const size_t place = *place_of(file, key);
    return place ? &file->nodes[place - 1] : NULL;
}

cli_exit foreign_create(const foreign_info *info, const char *path, bool force,
                        foreign_writer **out)
{
    const foreign_format *format;
    CLI_TRY(format_of(info, path, true, &format));
    if (!format->create)
        return cli_fail(CLI_UNSUPPORTED, "%s would be %s, which caterva reads but does not write",
                        path, info->title);
    foreign_writer *writer = cli_alloc(sizeof *writer);
    if (!writer) return CLI_IO;
    *writer = (foreign_writer){.path = path};
    cli_exit code = format->create(writer, force);
    if (code == CLI_OK)
        *out = writer;
    else
        free(writer);
    return code;
}

static void free_writer(foreign_writer *writer)
{
    free_texts(writer->losses, writer->n_losses);
    free(writer);
}

cli_exit foreign_finish(foreign_writer *writer)
{
    cli_exit code = writer->finish(writer);
    free_writer(writer);
    return code;
}

void foreign_abandon(foreign_writer *writer)
{
    if (!writer) return;
    writer->abandon(writer);
    free_writer(writer);
}

/* ---- Nodes ------------------------------------------------------------------------------ */

/* Makes room for one more entry in an array of `n` entries, whose capacity is a power of two. */
static void *grow(void *entries, size_t n, size_t size)
{
    if (n & (n - 1)) return entries;
    void *larger = realloc(entries, (n ? 2 * n : 1) * size);
    if (!larger) cli_fail(CLI_IO, "out of memory");
    return larger;
}

foreign_node *foreign_add(foreign_file *file, const char *key, bool is_group)
{
    void *nodes = grow(file->nodes, file->n, sizeof *file->nodes);
    if (!nodes) return NULL;
    file->nodes = nodes;
    char *copy = cli_copy_text(key);
    if (!copy) return NULL;
    foreign_node *node = &file->nodes[file->n++];
    *node = (foreign_node){.key = copy, .is_group = is_group};
    return node;
}

void foreign_drop(foreign_file *file)
{
    free_members(&file->nodes[--file->n]);
    free(file->index);
    file->index = NULL;
}

void foreign_node_clear(foreign_node *node)
{
    node->key = NULL;
    free_members(node);
}

foreign_node *foreign_node_make(const char *key, bool is_group)
{
    foreign_node *node = cli_alloc(sizeof *node);
    char *copy = node ? cli_copy_text(key) : NULL;
    if (!copy) {
        free(node);
        return NULL;
    }
    *node = (foreign_node){.key = copy, .is_group = is_group};
    return node;
}

void foreign_node_free(foreign_node *node)
{
    if (!node) return;
    free_members(node);
    free(node);
}

cli_exit foreign_set_shape(foreign_file *file, foreign_node *node, const char *dtype, int ndim,
                           const int64_t *shape)
{
    caterva_error err;
    caterva_dtype *parsed;
    if (ndim > CATERVA_MAX_DIMS)
        return cli_fail(CLI_UNSUPPORTED, "%s: %s has %d axes, but an array has at most %d",
                        file->path, node->key, ndim, CATERVA_MAX_DIMS);
    if (caterva_dtype_parse(dtype, &parsed, &err) != CATERVA_OK)
        return cli_fail(CLI_UNSUPPORTED, "%s: %s: %s", file->path, node->key, err.message);
    node->item_size = parsed->item_size;
    caterva_dtype_free(parsed);
    if (node->item_size < 1)
        return cli_fail(CLI_UNSUPPORTED, "%s: the items of %s have no bytes", file->path,
                        node->key);
    node->dtype = cli_copy_text(dtype);
    if (!node->dtype) return CLI_IO;
    node->ndim = ndim;
    memcpy(node->shape, shape, (size_t)ndim * sizeof *shape);
    return CLI_OK;
}

cli_exit foreign_set_dim(foreign_node *node, int axis, const char *name)
{
    if (!node->dims) {
        node->dims = cli_alloc((size_t)node->ndim * sizeof *node->dims);
        if (!node->dims) return CLI_IO;
        for (int d = 0; d < node->ndim; d++) node->dims[d] = NULL;
    }
    free(node->dims[axis]);
    node->dims[axis] = cli_copy_text(name);
    return node->dims[axis] ? CLI_OK : CLI_IO;
}

/* ---- Attributes ------------------------------------------------------------------------- */

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define NATIVE_ORDER '<'
#else
#define NATIVE_ORDER '>'
#endif

const foreign_attribute *foreign_attribute_of(const foreign_node *node, const char *name)
{
    for (size_t i = 0; i < node->n_attributes; i++)
        if (strcmp(node->attributes[i].name, name) == 0) return &node->attributes[i];
    return NULL;
}

cli_exit foreign_copy_packed(foreign_node *node, const char *name, const void *value,
                             size_t size)
{
    void *attributes = grow(node->attributes, node->n_attributes, sizeof *node->attributes);
    if (!attributes) return CLI_IO;
    node->attributes = attributes;
    foreign_attribute *a = &node->attributes[node->n_attributes];
    *a = (foreign_attribute){cli_copy_text(name), cli_alloc(size), size};
    if (!a->name || !a->value) {
        free(a->name);
        free(a->value);
        return CLI_IO;
    }
    memcpy(a->value, value, size);
    node->n_attributes++;
    return CLI_OK;
}

cli_exit foreign_set_packed(foreign_node *node, const char *name, void *value, size_t size)
{
    cli_exit code = foreign_copy_packed(node, name, value, size);
    caterva_free(value);
    return code;
}

static cli_exit set_values(foreign_node *node, const char *name, const caterva_value *values,
                           size_t n)
{
    caterva_error err;
    void *packed;
    size_t size;
    if (caterva_value_pack(values, n, &packed, &size, &err) != CATERVA_OK)
        return cli_fail(CLI_UNSUPPORTED, "the attribute %s of %s: %s", name, node->key,
                        err.message);
    return foreign_set_packed(node, name, packed, size);
}

static caterva_value text_value(const char *text, size_t size)
{
    caterva_value value = CATERVA_VALUE_INIT;
    value.kind = CATERVA_VALUE_TEXT;
    value.bytes = text;
    value.size = size;
    return value;
}

cli_exit foreign_set_text(foreign_node *node, const char *name, const char *text, size_t size)
{
    const caterva_value value = text_value(text, size);
    return set_values(node, name, &value, 1);
}

cli_exit foreign_set_texts(foreign_node *node, const char *name, const char *const *texts,
                           size_t n)
{
    caterva_value *values = cli_alloc((n + 1) * sizeof *values);
    if (!values) return CLI_IO;
    values[0] = (caterva_value)CATERVA_VALUE_INIT;
    values[0].kind = CATERVA_VALUE_LIST;
    values[0].count = (int64_t)n;
    for (size_t i = 0; i < n; i++) values[i + 1] = text_value(texts[i], strlen(texts[i]));
    cli_exit code = set_values(node, name, values, n + 1);
    free(values);
    return code;
}

/* Whether a single item of the dtype is a value of its own in MessagePack, in the byte order of
 * this machine. */
static bool is_plain(const char *dtype, const void *item, caterva_value *out)
{
    static const char native_real[] = {NATIVE_ORDER, 'f', '8', '\0'};
    if (strcmp(dtype, "float64") == 0) dtype = native_real;
    if (strcmp(dtype, "|b1") == 0) {
        out->kind = CATERVA_VALUE_BOOL;
        out->integer = *(const uint8_t *)item != 0;
        return true;
    }
    if (dtype[0] != NATIVE_ORDER || dtype[2] != '8' || dtype[3]) return false;
    if (dtype[1] == 'i') {
        out->kind = CATERVA_VALUE_INT;
        memcpy(&out->integer, item, 8);
    }
    if (dtype[1] == 'f') {
        out->kind = CATERVA_VALUE_REAL;
        memcpy(&out->real, item, 8);
    }
    return dtype[1] == 'i' || dtype[1] == 'f';
}

cli_exit foreign_set_numbers(foreign_node *node, const char *name, const char *dtype, int ndim,
                             const int64_t *shape, const void *items)
{
    caterva_error err;
    caterva_dtype *parsed;
    caterva_value value = CATERVA_VALUE_INIT;
    if (ndim == 0 && is_plain(dtype, items, &value)) return set_values(node, name, &value, 1);
    if (caterva_dtype_parse(dtype, &parsed, &err) != CATERVA_OK)
        return cli_fail(CLI_UNSUPPORTED, "the attribute %s of %s: %s", name, node->key,
                        err.message);
    value.kind = CATERVA_VALUE_ARRAY;
    value.size = (size_t)parsed->item_size;
    caterva_dtype_free(parsed);
    snprintf(value.dtype, sizeof value.dtype, "%s", dtype);
    value.ndim = ndim;
    for (int d = 0; d < ndim; d++) {
        value.shape[d] = shape[d];
        value.size *= (size_t)shape[d];
    }
    value.bytes = items;
    return set_values(node, name, &value, 1);
}

/* ---- Losses ----------------------------------------------------------------------------- */

static cli_exit lose(char ***losses, size_t *n, const char *fmt, va_list arguments)
{
    char sentence[1024];
    void *larger = grow(*losses, *n, sizeof **losses);
    if (!larger) return CLI_IO;
    *losses = larger;
    vsnprintf(sentence, sizeof sentence, fmt, arguments);
    (*losses)[*n] = cli_copy_text(sentence);
    if (!(*losses)[*n]) return CLI_IO;
    ++*n;
    return CLI_OK;
}

cli_exit foreign_lose(foreign_file *file, const char *fmt, ...)
{
    va_list arguments;
    va_start(arguments, fmt);
    cli_exit code = lose(&file->losses, &file->n_losses, fmt, arguments);
    va_end(arguments);
    return code;
}

cli_exit foreign_lose_writing(foreign_writer *writer, const char *fmt, ...)
{
    va_list arguments;
    va_start(arguments, fmt);
    cli_exit code = lose(&writer->losses, &writer->n_losses, fmt, arguments);
    va_end(arguments);
    return code;
}

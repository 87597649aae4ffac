/* Plug-in hdf5. Reads attributes: each becomes a MessagePack value, or a sentence about what it holds. */
#include "read.h"

#include "foreign/values.h"
#include "formats/value.h"

#include <caterva_value.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ATTRIBUTE_BYTES ((size_t)1 << 28) /* of one attribute */
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define NATIVE_COMPLEX "<c16"
#else
#define NATIVE_COMPLEX ">c16"
#endif

static const char *const hidden_at_root[] = {"_NCProperties", "_nc3_strict", NULL};
static const char *const hidden_of_scales[] = {"CLASS", "NAME", "REFERENCE_LIST", NULL};
static const char *const hidden[] = {"DIMENSION_LIST", "DIMENSION_LABELS", "_Netcdf4Dimid",
                                     "_Netcdf4Coordinates", NULL};
static const char *const in_hdf5_only[] = {H5_JSON, H5_DTYPE, NULL};

static bool is_among(const char *name, const char *const *names)
{
    for (; *names; names++)
        if (strcmp(*names, name) == 0) return true;
    return false;
}

typedef struct attribute {
    hid_t id, type, space;
    h5_type items;
    int ndim;
    int64_t shape[CATERVA_MAX_DIMS];
    size_t n;   /* items, with the axes of an array type */
    void *data; /* of H5Aread */
} attribute;

static void close_attribute(attribute *a)
{
    if (a->data && a->items.text == H5_ANY_LENGTH)
        H5Dvlen_reclaim(a->items.memory, a->space, H5P_DEFAULT, a->data);
    free(a->data);
    h5_type_free(&a->items);
    h5_close(a->space);
    h5_close(a->type);
    h5_close(a->id);
}

/* Opens an attribute and reads its items. *problem is as in h5_type_of. */
static cli_exit open_attribute(const reader *r, hid_t object, const char *key,
                               const char *name, attribute *a, const char **problem)
{
    hsize_t dims[H5S_MAX_RANK];
    *a = (attribute){.id = H5Aopen(object, name, H5P_DEFAULT), .type = -1, .space = -1};
    a->items.memory = -1;
    *problem = NULL;
    if (a->id >= 0) a->type = H5Aget_type(a->id);
    if (a->type >= 0) a->space = H5Aget_space(a->id);
    if (a->space < 0) return h5_refuse(r, key, problem);
    *problem = h5_type_of(a->type, &a->items);
    if (*problem) return CLI_OK;
    int ndim = H5Sget_simple_extent_ndims(a->space);
    if (ndim < 0) return h5_read_fail(r, key);
    if (ndim + a->items.n_axes >= CATERVA_MAX_DIMS) {
        *problem = "items with too many axes";
        return CLI_OK;
    }
    H5Sget_simple_extent_dims(a->space, dims, NULL);
    a->n = H5Sget_simple_extent_type(a->space) == H5S_NULL ? 0 : 1;
    size_t item = a->items.text == H5_ANY_LENGTH ? sizeof(char *) : a->items.item_size;
    for (int d = 0; d < ndim + a->items.n_axes; d++) {
        hsize_t length = d < ndim ? dims[d] : a->items.axes[d - ndim];
        a->shape[a->ndim++] = (int64_t)length;
        if (length > ATTRIBUTE_BYTES || a->n * length > ATTRIBUTE_BYTES / item)
            *problem = "too many bytes";
        if (*problem) return CLI_OK;
        a->n *= length;
    }
    if (a->n == 0) return CLI_OK;
    if (a->items.item_size > ATTRIBUTE_BYTES) *problem = "too many bytes";
    if (*problem) return CLI_OK;
    a->data = calloc(a->n, item);
    if (!a->data) return cli_fail(CLI_IO, "out of memory");
    return H5Aread(a->id, a->items.memory, a->data) < 0 ? h5_refuse(r, key, problem) : CLI_OK;
}

/* Whether the dataspace is a null one. */
static bool is_null(const attribute *a) { return a->n == 0 && a->ndim == 0; }

/* Returns the i-th text and sets its size. */
static const char *text_of(const attribute *a, size_t i, size_t *size)
{
    const char *text = a->items.text == H5_ANY_LENGTH
                           ? ((char **)a->data)[i]
                           : (char *)a->data + i * a->items.item_size;
    if (!text) text = "";
    *size = a->items.text == H5_ANY_LENGTH ? strlen(text) : a->items.item_size;
    while (a->items.text == H5_FIXED_TEXT && *size > 0 && text[*size - 1] == '\0') --*size;
    return text;
}

static cli_exit set_value(foreign_node *node, const char *name, const caterva_value *value)
{
    caterva_error err;
    void *packed;
    size_t size;
    if (caterva_value_pack(value, 1, &packed, &size, &err) != CATERVA_OK)
        return cli_fail(CLI_UNSUPPORTED, "the attribute %s of %s: %s", name, node->key,
                        err.message);
    return foreign_set_packed(node, name, packed, size);
}

static cli_exit set_bytes(foreign_node *node, const char *name, const void *bytes, size_t size)
{
    caterva_value value = CATERVA_VALUE_INIT;
    value.kind = CATERVA_VALUE_BYTES;
    value.bytes = bytes;
    value.size = size;
    return set_value(node, name, &value);
}

/* Sets texts as an array of bytes of one width. */
static cli_exit set_wide_texts(foreign_node *node, const char *name, const attribute *a)
{
    size_t width = 1, size;
    char dtype[32];
    for (size_t i = 0; i < a->n; i++) {
        text_of(a, i, &size);
        if (size > width) width = size;
    }
    char *items = a->n <= ATTRIBUTE_BYTES / width ? calloc(a->n, width) : NULL;
    if (!items) return cli_fail(CLI_IO, "out of memory");
    for (size_t i = 0; i < a->n; i++) {
        const char *text = text_of(a, i, &size);
        memcpy(items + i * width, text, size);
    }
    snprintf(dtype, sizeof dtype, "|S%zu", width);
    cli_exit code = foreign_set_numbers(node, name, dtype, a->ndim, a->shape, items);
    free(items);
    return code;
}

static cli_exit set_list(foreign_node *node, const char *name, const attribute *a)
{
    const char **texts = cli_alloc(a->n * sizeof *texts);
    char **copies = calloc(a->n, sizeof *copies);
    cli_exit code = texts && copies ? CLI_OK : CLI_IO;
    for (size_t i = 0; code == CLI_OK && i < a->n; i++) {
        size_t size;
        const char *text = text_of(a, i, &size);
        copies[i] = strndup(text, size);
        texts[i] = copies[i];
        if (!copies[i]) code = cli_fail(CLI_IO, "out of memory");
    }
    if (code == CLI_OK) code = foreign_set_texts(node, name, texts, a->n);
    for (size_t i = 0; copies && i < a->n; i++) free(copies[i]);
    free(copies);
    free(texts);
    return code;
}

static cli_exit set_texts(const reader *r, foreign_node *node, const char *name,
                          const attribute *a)
{
    size_t size;
    const char *text = a->n > 0 ? text_of(a, 0, &size) : "";
    if (is_null(a) && !r->is_netcdf)
        return set_value(node, name, &(caterva_value)CATERVA_VALUE_INIT);
    if (is_null(a)) return foreign_set_text(node, name, "", 0);
    if (a->n == 0 && a->ndim == 1) return foreign_set_texts(node, name, NULL, 0);
    bool valid = true;
    for (size_t i = 0; i < a->n && valid; i++) {
        size_t length;
        const char *one = text_of(a, i, &length);
        valid = h5_is_utf8(one, length);
    }
    if (a->ndim == 0 || (a->ndim == 1 && a->n == 1 && r->is_netcdf))
        return valid ? foreign_set_text(node, name, text, size)
                     : set_bytes(node, name, text, size);
    return valid && a->ndim == 1 ? set_list(node, name, a) : set_wide_texts(node, name, a);
}

/* Sets an attribute that is JSON because HDF5 lacks such values. */
static cli_exit set_json(const reader *r, foreign_node *node, const char *name,
                         const attribute *a)
{
    void *value;
    size_t packed;
    value_input in = {.what = name, .hint = ""};
    in.text = text_of(a, 0, &in.size);
    if (value_parse(&in, &value, &packed) != CLI_OK)
        return cli_fail(CLI_CORRUPT, "%s: %s: a value in '%s' is not JSON", r->file->path,
                        node->key, H5_JSON);
    return foreign_set_packed(node, name, value, packed);
}

static cli_exit set_items(const reader *r, foreign_node *node, const char *name,
                          const attribute *a)
{
    if (a->items.is_bytes && (a->ndim == 0 || (a->n == 1 && r->is_netcdf)))
        return set_bytes(node, name, a->data, a->n ? a->items.item_size : 0);
    caterva_value value = CATERVA_VALUE_INIT;
    if (is_null(a)) return set_value(node, name, &value);
    bool single = a->n == 1 && a->ndim == 1 && r->is_netcdf;
    if (strcmp(name, "_FillValue") == 0 && a->n == 1 && (a->ndim == 0 || single) &&
        node->dtype && strcmp(node->dtype, a->items.dtype) != 0) {
        value.kind = CATERVA_VALUE_ARRAY; /* its type is not that of the items */
        value.bytes = a->data;
        value.size = a->items.item_size;
        snprintf(value.dtype, sizeof value.dtype, "%s", a->items.dtype);
        return set_value(node, name, &value);
    }
    if (a->ndim == 0 && strcmp(a->items.dtype, NATIVE_COMPLEX) == 0) {
        value.kind = CATERVA_VALUE_COMPLEX;
        memcpy(&value.real, a->data, sizeof value.real);
        memcpy(&value.imaginary, (double *)a->data + 1, sizeof value.imaginary);
        return set_value(node, name, &value);
    }
    return foreign_set_numbers(node, name, a->items.dtype, single ? 0 : a->ndim, a->shape,
                               a->data);
}

char **h5_read_names(const reader *r, hid_t object, const char *name, size_t *n)
{
    attribute a;
    const char *problem;
    char **names = NULL;
    *n = 0;
    if (H5Aexists(object, name) <= 0) return NULL;
    if (open_attribute(r, object, NULL, name, &a, &problem) == CLI_OK && !problem &&
        a.items.text != H5_NO_TEXT && a.n > 0)
        names = calloc(a.n + 1, sizeof *names);
    for (size_t i = 0; names && i < a.n; i++) {
        size_t size;
        const char *text = text_of(&a, i, &size);
        names[(*n)++] = strndup(text, size);
    }
    close_attribute(&a);
    return names;
}

void h5_free_names(char **names, size_t n)
{
    for (size_t i = 0; i < n; i++) free(names[i]);
    free(names);
}

/* A type of an attribute that its value does not show. */
typedef struct shown_type {
    char *name, text[64];
} shown_type;

typedef struct attributes {
    reader *r;
    foreign_node *node;
    hid_t type; /* of the dataset, or -1 */
    bool is_scale;
    char **json;
    shown_type *types;
    size_t n_types;
    cli_exit code;
} attributes;

/* Records the type of texts that are not UTF-8 of any length, and of a null dataspace. netCDF has no
 * such types: its texts are all of one width, and those of no length have a null dataspace. */
static cli_exit add_type(attributes *all, const char *name, const attribute *a)
{
    const h5_type *t = &a->items;
    bool is_fill = strcmp(name, "_FillValue") == 0 && H5Tequal(a->type, all->type) > 0 &&
                   (!t->text || t->item_size == 1); /* as put_fill restores it */
    size_t size = 0;
    const char *text = t->text && !is_null(a) && a->ndim == 0 ? text_of(a, 0, &size) : NULL;
    bool has_zero = text && memchr(text, '\0', size);
    bool is_default = is_null(a) ? !t->text && H5Tequal(a->type, H5T_NATIVE_FLOAT) > 0
                      : t->text == H5_ANY_LENGTH
                          ? t->is_utf8 && a->ndim < 2
                          : !t->text || (t->is_utf8 && has_zero && size == t->item_size);
    if (all->r->is_netcdf || is_fill || is_default) return CLI_OK;
    shown_type *larger = h5_grow(all->types, all->n_types, sizeof *larger);
    if (!larger) return CLI_IO;
    all->types = larger;
    shown_type *s = &all->types[all->n_types];
    const char *null = is_null(a) ? "null " : "";
    if (!t->text)
        snprintf(s->text, sizeof s->text, "%s%s", null, t->dtype);
    else if (t->text == H5_ANY_LENGTH)
        snprintf(s->text, sizeof s->text, "%s%s", null, t->is_utf8 ? "utf-8" : "ascii");
    else
        snprintf(s->text, sizeof s->text, "%s%s %zu", null, t->is_utf8 ? "utf-8" : "ascii",
                 t->item_size);
    s->name = cli_copy_text(name);
    if (!s->name) return CLI_IO;
    all->n_types++;
    return CLI_OK;
}

static cli_exit set_types(const attributes *all)
{
    value_list list = {0};
    if (all->n_types == 0) return CLI_OK;
    size_t head = values_begin(&list, CATERVA_VALUE_MAP);
    for (size_t i = 0; i < all->n_types; i++) {
        values_add_text(&list, all->types[i].name, strlen(all->types[i].name));
        values_add_text(&list, all->types[i].text, strlen(all->types[i].text));
    }
    values_end(&list, head, (int64_t)all->n_types);
    return values_set(&list, all->node, H5_TYPES);
}

/* Whether items are texts of one width: then `_Encoding` says that they are UTF-8. */
static bool is_fixed_text(hid_t type)
{
    return type >= 0 && H5Tget_class(type) == H5T_STRING && !H5Tis_variable_str(type) &&
           H5Tget_size(type) > 1;
}

static cli_exit add_attribute(attributes *all, hid_t object, const char *name)
{
    reader *r = all->r;
    attribute a;
    const char *problem = NULL, *key = all->node->key;
    cli_exit code = CLI_OK;
    if (!h5_is_utf8(name, strlen(name)) || !*name)
        return foreign_lose(r->file, "%s: an attribute whose name is not UTF-8", key);
    if (foreign_restores(all->node, name) || foreign_is_reserved(all->node, name) ||
        is_among(name, in_hdf5_only) ||
        (strcmp(name, "_Encoding") == 0 && is_fixed_text(all->type)))
        return foreign_lose(r->file, "%s: the attribute %s, whose name is reserved", key, name);
    code = open_attribute(r, object, key, name, &a, &problem);
    if (code != CLI_OK || problem) {
        close_attribute(&a);
        if (code != CLI_OK || !*problem) return code != CLI_OK ? code : CLI_IO;
        return foreign_lose(r->file, "%s: its attribute %s holds %s", key, name, problem);
    }
    if (a.items.is_structure)
        code = foreign_lose(r->file, "%s: its attribute %s holds a structure", key, name);
    else if (all->json && a.n == 1 && a.items.text &&
             is_among(name, (const char *const *)all->json))
        code = set_json(r, all->node, name, &a);
    else if (a.items.text)
        code = set_texts(r, all->node, name, &a);
    else
        code = set_items(r, all->node, name, &a);
    if (code == CLI_OK && !a.items.is_structure) code = add_type(all, name, &a);
    if (code == CLI_OK && a.items.n_axes > 0)
        code = foreign_lose(r->file, "%s: the array type of its attribute %s", key, name);
    if (code == CLI_OK && a.items.is_enum && H5Tequal(a.type, all->type) <= 0)
        code = foreign_lose(r->file, "%s: the names of the values of its attribute %s", key,
                            name);
    close_attribute(&a);
    return code;
}

/* Whether this program wrote the attribute: in HDF5, it names others or the dtype. */
static bool is_ours(const attributes *all, hid_t object, const char *name)
{
    bool is_dtype = strcmp(name, H5_DTYPE) == 0, fits;
    if (!is_dtype && strcmp(name, H5_JSON) != 0) return false;
    size_t n;
    char **texts = h5_read_names(all->r, object, name, &n);
    fits = texts && (!is_dtype || (n == 1 && all->node->dtype));
    for (size_t i = 0; fits && i < n; i++)
        fits = texts[i] && (is_dtype ? strcmp(texts[i], all->node->dtype) == 0
                                     : H5Aexists(object, texts[i]) > 0);
    h5_free_names(texts, n);
    return fits;
}

static herr_t each_attribute(hid_t object, const char *name, const H5A_info_t *info, void *own)
{
    attributes *all = own;
    (void)info;
    if (is_among(name, hidden) || (all->is_scale && is_among(name, hidden_of_scales)) ||
        (strcmp(all->node->key, "/") == 0 && is_among(name, hidden_at_root)) ||
        is_ours(all, object, name))
        return 0;
    all->code = add_attribute(all, object, name);
    return all->code == CLI_OK ? 0 : -1;
}

cli_exit h5_add_attributes(reader *r, foreign_node *node, hid_t object, hid_t type,
                           bool is_scale)
{
    attributes all = {.r = r, .node = node, .type = type, .is_scale = is_scale};
    hsize_t at = 0;
    size_t n;
    all.json = h5_read_names(r, object, H5_JSON, &n);
    herr_t done =
        H5Aiterate2(object, H5_INDEX_NAME, H5_ITER_INC, &at, each_attribute, &all);
    if (all.code == CLI_OK && done < 0)
        all.code = h5_is_newer()
                       ? foreign_lose(r->file, "%s: its attributes, one of which holds %s", node->key, NEWER)
                       : h5_read_fail(r, node->key);
    if (all.code == CLI_OK) all.code = set_types(&all);
    h5_free_names(all.json, n);
    for (size_t i = 0; i < all.n_types; i++) free(all.types[i].name);
    free(all.types);
    return all.code;
}

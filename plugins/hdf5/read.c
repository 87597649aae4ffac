/* Plug-in hdf5. Reading: a walk over all links describes groups and datasets; items are read one
 * dataset at a time, with a bounded cache of chunks.
 *
 * Objects are known by their address in the file, so that a second link to one, and with it every
 * cycle, is recognised. Dimension scales get their names after the walk. */
#include "hdf5.h"

#include "foreign/values.h"
#include "formats/json.h"
#include "formats/value.h"

#include <caterva_upkeep.h>
#include <caterva_value.h>
#include <hdf5_hl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define NEWER "a type or layout that HDF5 " H5_VERSION " does not know"
#define CACHE_BYTES ((size_t)64 << 20)   /* at most, of one dataset */
#define MOVED_BYTES ((size_t)64 << 20)   /* larger chunks are decoded */
#define ATTRIBUTE_BYTES ((size_t)1 << 28) /* of one attribute */
#define WIDE_BYTES ((size_t)4 << 20)     /* of a chunk of texts that is read whole */
#define KEY_SIZE 4000
#define NAME_SIZE 250 /* a file system has 255 bytes, with an extension */
enum { MAX_LEVELS = 64 };
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define NATIVE_COMPLEX "<c16"
#else
#define NATIVE_COMPLEX ">c16"
#endif
#define PIECE 65536 /* texts that are read together */

/* What a node of a dataset owns. */
typedef struct dataset {
    haddr_t address;
    char *path;                        /* in the file; the key may lack a prefix of netCDF */
    int ndim;                          /* in the file; the axes of an array type follow */
    hsize_t extent[CATERVA_MAX_DIMS];  /* in the file; a growing axis of the node may be longer */
    hsize_t most[CATERVA_MAX_DIMS];    /* to which an axis can grow */
    char *labels[CATERVA_MAX_DIMS];    /* of axes, or NULL */
    haddr_t scales[CATERVA_MAX_DIMS];  /* of each axis; HADDR_UNDEF: none */
    int32_t ids[CATERVA_MAX_DIMS];     /* of the dimensions of a scale of several axes, or -1 */
    size_t group;                      /* node that it is in */
    bool may_be_named;                 /* its type */
} dataset;

/* A named type. */
typedef struct named {
    char *key;
    hid_t type;
    bool used;
} named;

/* A dimension. */
typedef struct scale {
    haddr_t address;
    char *name;
    size_t group;
    hsize_t length;
    int32_t id; /* of netCDF-4, or -1 */
    bool grows, has_variable, used;
    bool used_here; /* by an array in its group */
    bool has_rival; /* an array below that looks like its coordinate */
} scale;

typedef struct link {
    char *name;
    H5L_type_t type;
} link;

typedef struct pending {
    char *key;
    haddr_t address;
} pending;

/* An entry of the table of visited objects. */
typedef struct visit {
    haddr_t address;
    char *key; /* NULL: the entry is free */
} visit;

typedef struct reader {
    foreign_file *file;
    hid_t id;
    int64_t file_size;
    bool is_netcdf; /* an attribute of one item is a scalar */
    visit *visits;  /* hash table of a power of two entries */
    size_t n_visits, room;
    pending *stack;
    size_t n_stack;
    scale *scales;
    size_t n_scales;
    named *types;
    size_t n_types;
    /* The dataset that was read last. */
    const foreign_node *node;
    hid_t dataset, space;
    h5_type type;
    bool is_deflated; /* and its items are not converted */
    h5_pipeline pipeline;
} reader;

static cli_exit fail(const reader *r, const char *key)
{
    return h5_fail(CLI_CORRUPT, r->file->path, key);
}

static void *grow(void *entries, size_t n, size_t size)
{
    if (n & (n - 1)) return entries;
    void *larger = realloc(entries, (n ? 2 * n : 1) * size);
    if (!larger) cli_fail(CLI_IO, "out of memory");
    return larger;
}

static bool is_utf8(const char *text, size_t size)
{
    for (size_t at = 0, length; at < size; at += length) {
        length = json_utf8_length(text + at, size - at);
        if (length == 0) return false;
    }
    return true;
}

/* ---- Visited objects --------------------------------------------------------------------- */

static visit *find_visit(const reader *r, haddr_t address)
{
    uint64_t hash = (uint64_t)address * UINT64_C(0x9e3779b97f4a7c15);
    size_t at = (size_t)(hash >> 32) & (r->room - 1);
    while (r->visits[at].key && r->visits[at].address != address) at = (at + 1) & (r->room - 1);
    return &r->visits[at];
}

static cli_exit enlarge_visits(reader *r)
{
    visit *old = r->visits;
    size_t n = r->room;
    r->room = n ? 2 * n : 64;
    r->visits = calloc(r->room, sizeof *r->visits);
    if (!r->visits) {
        r->visits = old;
        r->room = n;
        return cli_fail(CLI_IO, "out of memory");
    }
    for (size_t i = 0; i < n; i++)
        if (old[i].key) *find_visit(r, old[i].address) = old[i];
    free(old);
    return CLI_OK;
}

/* Sets *first to the key of an object that was visited before; otherwise to NULL, and records the
 * object. */
static cli_exit visit_object(reader *r, haddr_t address, const char *key, const char **first)
{
    if (2 * r->n_visits >= r->room) CLI_TRY(enlarge_visits(r));
    visit *entry = find_visit(r, address);
    *first = entry->key;
    if (entry->key) return CLI_OK;
    entry->address = address;
    entry->key = cli_copy_text(key);
    r->n_visits++;
    return entry->key ? CLI_OK : CLI_IO;
}

/* ---- Attributes -------------------------------------------------------------------------- */

static const char *const hidden_at_root[] = {"_NCProperties", "_nc3_strict", H5_JSON, NULL};
static const char *const hidden_of_scales[] = {"CLASS", "NAME", "REFERENCE_LIST", NULL};
static const char *const hidden[] = {"DIMENSION_LIST", "DIMENSION_LABELS", "_Netcdf4Dimid",
                                     "_Netcdf4Coordinates", H5_JSON, H5_DTYPE, NULL};

/* The names of attributes that this reader sets. */
static const char *const reserved[] = {H5_ENUM,     H5_VLEN,   H5_NULL,  H5_TYPE, H5_TYPES,
                                       H5_MAXSHAPE, H5_LABELS, H5_SCALE, NULL};

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

/* What only a later libhdf5 reads is a loss; all else that it refuses is damage. */
static cli_exit refuse(const reader *r, const char *key, const char **problem)
{
    if (!h5_is_newer()) return fail(r, key);
    *problem = NEWER;
    return CLI_OK;
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
    if (a->space < 0) return refuse(r, key, problem);
    *problem = h5_type_of(a->type, &a->items);
    if (*problem) return CLI_OK;
    int ndim = H5Sget_simple_extent_ndims(a->space);
    if (ndim < 0) return fail(r, key);
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
    return H5Aread(a->id, a->items.memory, a->data) < 0 ? refuse(r, key, problem) : CLI_OK;
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
        valid = is_utf8(one, length);
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

/* Reads the texts of an attribute that names others. Release with free_names. */
static char **read_names(const reader *r, hid_t object, const char *name, size_t *n)
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

static void free_names(char **names, size_t n)
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
    bool is_fill = strcmp(name, "_FillValue") == 0 && H5Tequal(a->type, all->type) > 0;
    size_t size = 0;
    const char *text = t->text && !is_null(a) && a->ndim == 0 ? text_of(a, 0, &size) : NULL;
    bool has_zero = text && memchr(text, '\0', size);
    bool is_default = is_null(a) ? !t->text && H5Tequal(a->type, H5T_NATIVE_FLOAT) > 0
                      : t->text == H5_ANY_LENGTH
                          ? t->is_utf8 && a->ndim < 2
                          : !t->text || (t->is_utf8 && has_zero && size == t->item_size);
    if (all->r->is_netcdf || is_fill || is_default) return CLI_OK;
    shown_type *larger = grow(all->types, all->n_types, sizeof *larger);
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

static cli_exit add_attribute(attributes *all, hid_t object, const char *name)
{
    reader *r = all->r;
    attribute a;
    const char *problem = NULL, *key = all->node->key;
    cli_exit code = CLI_OK;
    if (!is_utf8(name, strlen(name)) || !*name)
        return foreign_lose(r->file, "%s: an attribute whose name is not UTF-8", key);
    if (is_among(name, reserved) || foreign_is_reserved(all->node, name) ||
        (all->node->is_group && (strcmp(name, H5_UNLIMITED) == 0 || strcmp(name, H5_DIMS) == 0)))
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

static herr_t each_attribute(hid_t object, const char *name, const H5A_info_t *info, void *own)
{
    attributes *all = own;
    (void)info;
    if (is_among(name, hidden) || (all->is_scale && is_among(name, hidden_of_scales)) ||
        (strcmp(all->node->key, "/") == 0 && is_among(name, hidden_at_root)))
        return 0;
    all->code = add_attribute(all, object, name);
    return all->code == CLI_OK ? 0 : -1;
}

static cli_exit add_attributes(reader *r, foreign_node *node, hid_t object, hid_t type,
                               bool is_scale)
{
    attributes all = {.r = r, .node = node, .type = type, .is_scale = is_scale};
    hsize_t at = 0;
    size_t n;
    all.json = read_names(r, object, H5_JSON, &n);
    herr_t done =
        H5Aiterate2(object, H5_INDEX_NAME, H5_ITER_INC, &at, each_attribute, &all);
    if (all.code == CLI_OK && done < 0)
        all.code = h5_is_newer()
                       ? foreign_lose(r->file, "%s: its attributes, one of which holds %s", node->key, NEWER)
                       : fail(r, node->key);
    if (all.code == CLI_OK) all.code = set_types(&all);
    free_names(all.json, n);
    for (size_t i = 0; i < all.n_types; i++) free(all.types[i].name);
    free(all.types);
    return all.code;
}

/* ---- Dimensions -------------------------------------------------------------------------- */

static bool is_scale(hid_t set, bool *bare)
{
    char name[sizeof H5_NO_VARIABLE + 32] = "";
    if (H5DSis_scale(set) <= 0) return false;
    H5DSget_scale_name(set, name, sizeof name);
    *bare = strncmp(name, H5_NO_VARIABLE, sizeof H5_NO_VARIABLE - 1) == 0;
    return true;
}

/* Reads integers of a hidden attribute; returns how many. */
static int read_integers(hid_t set, const char *name, int32_t *out, int room)
{
    if (H5Aexists(set, name) <= 0) return 0;
    hid_t id = H5Aopen(set, name, H5P_DEFAULT);
    hid_t space = id >= 0 ? H5Aget_space(id) : -1;
    hssize_t n = space >= 0 ? H5Sget_simple_extent_npoints(space) : 0;
    if (n > room || n < 1 || H5Aread(id, H5T_NATIVE_INT32, out) < 0) n = 0;
    h5_close(space);
    h5_close(id);
    return (int)n;
}

static cli_exit add_scale(reader *r, hid_t set, const dataset *own, const char *name,
                          bool grows, bool bare)
{
    scale *larger = grow(r->scales, r->n_scales, sizeof *larger);
    if (!larger) return CLI_IO;
    r->scales = larger;
    scale *s = &r->scales[r->n_scales];
    *s = (scale){.address = own->address,
                 .name = cli_copy_text(name),
                 .group = own->group,
                 .length = own->ndim > 0 ? own->extent[0] : 1,
                 .id = -1,
                 .grows = grows,
                 .has_variable = !bare};
    if (!s->name) return CLI_IO;
    r->n_scales++;
    read_integers(set, "_Netcdf4Dimid", &s->id, 1);
    return CLI_OK;
}

/* Sets own->scales to the first scale of each axis, from the attribute DIMENSION_LIST. Returns
 * whether an axis has more. */
static bool read_dimension_list(hid_t set, dataset *own)
{
    bool more = false;
    if (H5Aexists(set, "DIMENSION_LIST") <= 0) return false;
    hid_t id = H5Aopen(set, "DIMENSION_LIST", H5P_DEFAULT);
    hid_t space = id >= 0 ? H5Aget_space(id) : -1, base = H5Tcopy(H5T_STD_REF_OBJ);
    hid_t type = H5Tvlen_create(base), stored = id >= 0 ? H5Aget_type(id) : -1;
    hvl_t lists[H5S_MAX_RANK] = {{0, NULL}};
    bool fits = space >= 0 && H5Sget_simple_extent_npoints(space) == own->ndim &&
                H5Tequal(stored, type) > 0;
    if (fits && H5Aread(id, type, lists) >= 0) {
        for (int d = 0; d < own->ndim; d++) {
            if (lists[d].len > 0) own->scales[d] = *(hobj_ref_t *)lists[d].p;
            more = more || lists[d].len > 1;
        }
        H5Dvlen_reclaim(type, space, H5P_DEFAULT, lists);
    }
    h5_close(stored);
    h5_close(type);
    h5_close(base);
    h5_close(space);
    h5_close(id);
    return more;
}

/* Axes without a scale are named by their labels. */
static cli_exit read_labels(const reader *r, hid_t set, foreign_node *node, dataset *own)
{
    size_t n;
    cli_exit code = CLI_OK;
    char **labels = read_names(r, set, "DIMENSION_LABELS", &n);
    for (size_t d = 0; d < n && (int)d < own->ndim && code == CLI_OK; d++) {
        if (!labels[d] || !*labels[d] || !is_utf8(labels[d], strlen(labels[d]))) continue;
        own->labels[d] = cli_copy_text(labels[d]);
        code = own->labels[d] ? foreign_set_dim(node, (int)d, labels[d]) : CLI_IO;
    }
    free_names(labels, n);
    return code;
}

static int by_address(const void *a, const void *b)
{
    haddr_t x = ((const scale *)a)->address, y = ((const scale *)b)->address;
    return x < y ? -1 : x > y;
}

static scale *find_scale(const reader *r, haddr_t address)
{
    const scale sought = {.address = address};
    return r->n_scales ? bsearch(&sought, r->scales, r->n_scales, sizeof sought, by_address)
                       : NULL;
}

static scale *scale_of_id(const reader *r, int32_t id)
{
    for (size_t i = 0; id >= 0 && i < r->n_scales; i++)
        if (r->scales[i].id == id) return &r->scales[i];
    return NULL;
}

/* Returns the dimension of an axis, or NULL. */
static scale *scale_of(const reader *r, const dataset *own, int d)
{
    if (own->ids[0] >= 0) return scale_of_id(r, own->ids[d]);
    return own->scales[d] == HADDR_UNDEF ? NULL : find_scale(r, own->scales[d]);
}

/* A variable may be shorter than its dimension if that grows: netCDF shows the fill there. */
static void measure_scales(reader *r)
{
    for (size_t i = 0; i < r->file->n; i++) {
        const foreign_node *node = &r->file->nodes[i];
        const dataset *own = node->own;
        for (int d = 0; own && d < own->ndim; d++) {
            scale *s = scale_of(r, own, d);
            if (!s) continue;
            s->used = true;
            s->used_here = s->used_here || own->group == s->group;
            s->has_rival = s->has_rival || (own->group != s->group && own->ndim == 1 &&
                                            strcmp(strrchr(node->key, '/') + 1, s->name) == 0);
            if (s->grows && own->extent[d] > s->length) s->length = own->extent[d];
        }
    }
}

/* Sets the attribute of labels that are not the name of the axis' scale. */
static cli_exit set_labels(const reader *r, foreign_node *node)
{
    value_list list = {0};
    const dataset *own = node->own;
    bool any = false;
    size_t head = values_begin(&list, CATERVA_VALUE_LIST);
    for (int d = 0; d < own->ndim; d++) {
        const char *label = own->labels[d];
        if (label && scale_of(r, own, d) && strcmp(label, node->dims[d]) == 0) label = NULL;
        any = any || label;
        if (label)
            values_add_text(&list, label, strlen(label));
        else
            values_add_nil(&list);
    }
    values_end(&list, head, own->ndim);
    if (any) return values_set(&list, node, H5_LABELS);
    values_free(&list);
    return CLI_OK;
}

/* Sets the attribute of the limits of axes, if the growing dimensions are not all. */
static cli_exit set_maxshape(const reader *r, foreign_node *node)
{
    value_list list = {0};
    const dataset *own = node->own;
    bool any = false;
    size_t head = values_begin(&list, CATERVA_VALUE_LIST);
    for (int d = 0; d < own->ndim; d++) {
        const scale *s = scale_of(r, own, d);
        bool is_unlimited = own->most[d] == H5S_UNLIMITED;
        any = any || (own->most[d] != own->extent[d] && !(is_unlimited && s && s->grows));
        if (is_unlimited)
            values_add_nil(&list);
        else
            values_add_int(&list, (int64_t)own->most[d]);
    }
    values_end(&list, head, own->ndim);
    if (any) return values_set(&list, node, H5_MAXSHAPE);
    values_free(&list);
    return CLI_OK;
}

static cli_exit name_axes(reader *r)
{
    if (r->n_scales) qsort(r->scales, r->n_scales, sizeof *r->scales, by_address);
    measure_scales(r);
    for (size_t i = 0; i < r->file->n; i++) {
        foreign_node *node = &r->file->nodes[i];
        const dataset *own = node->own;
        for (int d = 0; own && d < own->ndim; d++) {
            const scale *s = scale_of(r, own, d);
            if (!s) continue;
            CLI_TRY(foreign_set_dim(node, d, s->name));
            if (s->grows && (int64_t)s->length > node->shape[d])
                node->shape[d] = (int64_t)s->length;
        }
        if (own) CLI_TRY(set_labels(r, node));
        if (own) CLI_TRY(set_maxshape(r, node));
    }
    return CLI_OK;
}

static int by_group(const void *a, const void *b)
{
    const scale *x = a, *y = b;
    if (x->group != y->group) return x->group < y->group ? -1 : 1;
    return strcmp(x->name, y->name);
}

/* Sets the attributes of groups that list growing dimensions, and those of groups below, and reports
 * dimensions that no array has. */
static cli_exit list_dimensions(reader *r)
{
    const char **names = cli_alloc((2 * r->n_scales + 1) * sizeof *names);
    const char **below = names + r->n_scales;
    size_t n_below = 0;
    cli_exit code = names ? CLI_OK : CLI_IO;
    if (r->n_scales) qsort(r->scales, r->n_scales, sizeof *r->scales, by_group);
    for (size_t i = 0, n = 0; code == CLI_OK && i < r->n_scales; i++) {
        const scale *s = &r->scales[i];
        foreign_node *group = &r->file->nodes[s->group];
        const char *slash = group->key[1] ? "/" : "";
        if (!s->used && !s->has_variable)
            code = foreign_lose(r->file, "%s%s%s: a dimension that no array has", group->key,
                                slash, s->name);
        else if (s->grows)
            names[n++] = s->name;
        if (s->used && !s->has_variable && (!s->used_here || s->has_rival)) below[n_below++] = s->name;
        bool last = i + 1 == r->n_scales || r->scales[i + 1].group != s->group;
        if (last && n > 0 && code == CLI_OK)
            code = foreign_set_texts(group, H5_UNLIMITED, names, n);
        if (last && n_below > 0 && code == CLI_OK)
            code = foreign_set_texts(group, H5_DIMS, below, n_below);
        if (last) n = n_below = 0;
    }
    free(names);
    return code;
}

/* ---- Texts of any length ----------------------------------------------------------------- */

static bool decode_utf8(const uint8_t *text, size_t size, size_t *at, uint32_t *code)
{
    size_t length = json_utf8_length((const char *)text + *at, size - *at);
    if (length == 0) return false;
    static const uint8_t masks[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
    *code = text[*at] & masks[length];
    for (size_t i = 1; i < length; i++) *code = *code << 6 | (text[*at + i] & 0x3fu);
    *at += length;
    return true;
}

/* Widths of the texts that a scan has met. */
typedef struct widths {
    size_t bytes, characters;
    bool is_utf8;
} widths;

static void measure(const char *text, widths *w)
{
    size_t size = text ? strlen(text) : 0, characters = 0;
    uint32_t code;
    for (size_t at = 0; w->is_utf8 && at < size; characters++)
        w->is_utf8 = decode_utf8((const uint8_t *)text, size, &at, &code);
    if (size > w->bytes) w->bytes = size;
    if (characters > w->characters) w->characters = characters;
}

/* Boxes of a dataset, in C order: chunks, or rows of about PIECE items. */
typedef struct boxes {
    int ndim;
    const hsize_t *extent;
    hsize_t box[CATERVA_MAX_DIMS];
    hsize_t start[CATERVA_MAX_DIMS], count[CATERVA_MAX_DIMS];
} boxes;

static void choose_boxes(boxes *b, const hsize_t *chunk)
{
    hsize_t n = 1;
    for (int d = b->ndim - 1; d >= 0; d--) {
        hsize_t most = PIECE / n ? PIECE / n : 1;
        b->box[d] = b->extent[d] < most ? b->extent[d] : most;
        if (chunk) b->box[d] = chunk[d];
        if (b->box[d] == 0) b->box[d] = 1;
        n *= b->box[d];
        b->start[d] = 0;
    }
}

/* Sets `count` of the box at `start`; false after the last. */
static bool clip_box(boxes *b)
{
    for (int d = 0; d < b->ndim; d++) {
        if (b->start[d] >= b->extent[d]) return false;
        hsize_t rest = b->extent[d] - b->start[d];
        b->count[d] = rest < b->box[d] ? rest : b->box[d];
    }
    return true;
}

static bool next_box(boxes *b)
{
    for (int d = b->ndim - 1; d >= 0; d--) {
        b->start[d] += b->box[d];
        if (b->start[d] < b->extent[d]) return true;
        b->start[d] = 0;
    }
    return false;
}

static cli_exit scan_box(const reader *r, hid_t set, const h5_type *type, const char *key,
                         const boxes *b, widths *out)
{
    hid_t from = H5Dget_space(set);
    hid_t to = b->ndim > 0 ? H5Screate_simple(b->ndim, b->count, NULL) : H5Screate(H5S_SCALAR);
    hsize_t n = (hsize_t)H5Sget_simple_extent_npoints(to);
    for (int d = 0; d < type->n_axes; d++) n *= type->axes[d];
    if (b->ndim > 0)
        H5Sselect_hyperslab(from, H5S_SELECT_SET, b->start, NULL, b->count, NULL);
    char **texts = n > 0 ? calloc(n, sizeof *texts) : NULL;
    cli_exit code = CLI_OK;
    if (!texts && n > 0)
        code = cli_fail(CLI_IO, "out of memory");
    else if (n > 0 && H5Dread(set, type->memory, to, from, H5P_DEFAULT, texts) < 0)
        code = fail(r, key);
    for (size_t i = 0; i < n && code == CLI_OK; i++) measure(texts[i], out);
    if (code == CLI_OK && n > 0) H5Dvlen_reclaim(type->memory, to, H5P_DEFAULT, texts);
    free(texts);
    h5_close(to);
    h5_close(from);
    return code;
}

/* Finds the widest text of a dataset. Chunks that are not stored are skipped: a small file may claim
 * any number of items. */
static cli_exit scan_texts(const reader *r, hid_t set, const h5_type *type, const dataset *own,
                           const hsize_t *chunk, const char *key, widths *out)
{
    boxes b = {.ndim = own->ndim, .extent = own->extent};
    *out = (widths){.is_utf8 = true};
    choose_boxes(&b, chunk);
    if (H5Dget_storage_size(set) == 0 || !clip_box(&b)) return CLI_OK;
    do {
        hsize_t stored = 1;
        if (cli_interrupted()) return CLI_INTERRUPTED;
        if (chunk && H5Dget_chunk_storage_size(set, b.start, &stored) < 0) stored = 0;
        clip_box(&b);
        cli_guard(r->file->path, "libhdf5", 0);
        if (stored > 0) CLI_TRY(scan_box(r, set, type, key, &b, out));
    } while (next_box(&b));
    return CLI_OK;
}

/* ---- Chunks that move -------------------------------------------------------------------- */

/* Opens the frame of a chunk if it has the chunk shape of the array, and no padding that the array
 * lacks. Sets *info too. */
static bool open_chunk(const foreign_node *node, const void *frame, size_t size,
                       caterva_array **array, const caterva_info **info)
{
    if (h5_frame_open(frame, size, array, NULL) != CATERVA_OK) return false;
    if (caterva_info_get(*array, info, NULL) == CATERVA_OK) {
        const caterva_info *i = *info;
        bool fits = i->ndim == node->ndim && i->item_size == node->item_size &&
                    i->n_chunks == 1 && (i->codec < 32 || i->codec == CATERVA_CODEC_BLOSCLZ);
        for (int d = 0; fits && d < i->ndim; d++)
            fits = i->shape[d] == node->chunk_shape[d] && i->chunk_shape[d] == i->shape[d];
        if (fits && i->metalayer == CATERVA_METALAYER_NONE)
            fits = i->chunk_shape[0] % i->block_shape[0] == 0;
        if (fits) return true;
        caterva_info_release(i);
    }
    caterva_discard(*array);
    return false;
}

/* Sets node->block_shape if the chunks of the dataset are Blosc2 chunks: according to the first one
 * that is stored. */
static cli_exit find_blocks(const reader *r, hid_t set, hid_t space, hid_t properties,
                            foreign_node *node)
{
    hsize_t n = 0, size = 0, start[H5S_MAX_RANK];
    size_t n_values = 0;
    unsigned mask, flags;
    haddr_t address;
    if (H5Pget_nfilters(properties) != 1 ||
        H5Pget_filter2(properties, 0, &flags, &n_values, NULL, 0, NULL, NULL) !=
            H5_FILTER_BLOSC2 ||
        H5Dget_num_chunks(set, space, &n) < 0 || n == 0 ||
        H5Dget_chunk_info(set, space, 0, start, &mask, &address, &size) < 0 || mask != 0 ||
        size > MOVED_BYTES || (int64_t)size > r->file_size)
        return CLI_OK;
    void *frame = cli_alloc(size);
    if (!frame) return CLI_IO;
    uint32_t filters;
    caterva_array *array;
    const caterva_info *info;
    if (H5Dread_chunk(set, H5P_DEFAULT, start, &filters, frame) >= 0 &&
        open_chunk(node, frame, size, &array, &info)) {
        memcpy(node->block_shape, info->block_shape, sizeof node->block_shape);
        caterva_info_release(info);
        caterva_discard(array);
    }
    free(frame);
    return CLI_OK;
}

/* ---- Datasets ---------------------------------------------------------------------------- */

/* What the walk learns of a dataset before it becomes a node. */
typedef struct found {
    hid_t set, file_type, space, properties;
    h5_type type;
    dataset *own;
    bool is_null, is_scale, is_bare, grows, is_chunked;
    hsize_t chunk[H5S_MAX_RANK];
    char dtype[64]; /* of texts of any length */
    const char *vlen;
    const char *problem; /* why it is left out */
} found;

static void free_dataset(dataset *own)
{
    for (int d = 0; own && d < CATERVA_MAX_DIMS; d++) free(own->labels[d]);
    if (own) free(own->path);
    free(own);
}

static void close_found(found *f)
{
    h5_type_free(&f->type);
    h5_close(f->properties);
    h5_close(f->space);
    h5_close(f->file_type);
    h5_close(f->set);
    free_dataset(f->own);
}

static cli_exit open_set(const reader *r, hid_t group, const char *name, const char *key,
                         found *f)
{
    hsize_t dims[H5S_MAX_RANK], most[H5S_MAX_RANK];
    f->own = cli_alloc(sizeof *f->own);
    if (!f->own) return CLI_IO;
    *f->own = (dataset){.address = HADDR_UNDEF};
    f->set = H5Dopen2(group, name, H5P_DEFAULT);
    if (f->set >= 0) f->file_type = H5Dget_type(f->set);
    if (f->file_type >= 0) f->space = H5Dget_space(f->set);
    if (f->space >= 0) f->properties = H5Dget_create_plist(f->set);
    if (f->properties < 0) return refuse(r, key, &f->problem);
    f->is_null = H5Sget_simple_extent_type(f->space) == H5S_NULL;
    int ndim = H5Sget_simple_extent_dims(f->space, dims, most);
    if (ndim < 0) return fail(r, key);
    f->own->ndim = ndim < CATERVA_MAX_DIMS ? ndim : CATERVA_MAX_DIMS;
    for (int d = 0; d < CATERVA_MAX_DIMS; d++) {
        f->own->scales[d] = HADDR_UNDEF;
        f->own->ids[d] = -1;
        if (d < f->own->ndim) f->own->extent[d] = dims[d];
        if (d < f->own->ndim) f->own->most[d] = most[d];
    }
    H5T_class_t class = H5Tget_class(f->file_type);
    f->own->may_be_named = class == H5T_ENUM || class == H5T_COMPOUND || class == H5T_OPAQUE;
    f->grows = ndim > 0 && most[0] == H5S_UNLIMITED;
    f->is_scale = is_scale(f->set, &f->is_bare);
    f->is_chunked = H5Pget_layout(f->properties) == H5D_CHUNKED &&
                    H5Pget_chunk(f->properties, H5S_MAX_RANK, f->chunk) == ndim;
    return CLI_OK;
}

/* Returns why a dataset is left out, or NULL. */
static const char *problem_of(found *f)
{
    H5D_layout_t layout = H5Pget_layout(f->properties);
    if (layout == H5D_VIRTUAL) return "a virtual dataset, whose items are in other datasets";
    if (H5Pget_external_count(f->properties) > 0)
        return "a dataset whose items are in another file";
    return NULL;
}

/* Chooses the dtype of texts of any length. */
static cli_exit choose_texts(const reader *r, const char *key, found *f, const char **problem)
{
    widths w;
    CLI_TRY(scan_texts(r, f->set, &f->type, f->own, f->is_chunked ? f->chunk : NULL, key, &w));
    bool as_text = f->type.is_utf8 && w.is_utf8;
    size_t width = as_text ? w.characters : w.bytes;
    if (width == 0) width = 1;
    if (width > H5_TEXT_LIMIT) *problem = "texts that are too long";
    if (f->type.is_utf8 && !w.is_utf8)
        CLI_TRY(foreign_lose(r->file, "%s: its texts are not UTF-8, and are read as bytes",
                             key));
    snprintf(f->dtype, sizeof f->dtype, as_text ? "<U%zu" : "|S%zu", width);
    f->vlen = as_text ? "text" : "bytes";
    size_t n;
    char **given = read_names(r, f->set, H5_DTYPE, &n);
    caterva_dtype *parsed;
    if (n == 1 && given[0] && strlen(given[0]) < sizeof f->dtype && as_text &&
        caterva_dtype_parse(given[0], &parsed, NULL) == CATERVA_OK) {
        if (parsed->kind == 'U' && parsed->item_size >= (int64_t)(4 * width)) {
            snprintf(f->dtype, sizeof f->dtype, "%s", given[0]);
            f->vlen = NULL;
        }
        caterva_dtype_free(parsed);
    }
    free_names(given, n);
    return CLI_OK;
}

static cli_exit set_enum(foreign_node *node, hid_t type)
{
    int n = H5Tget_nmembers(type);
    hid_t base = H5Tget_super(type);
    bool is_unsigned = H5Tget_sign(base) == H5T_SGN_NONE;
    h5_close(base);
    caterva_value *values = n > 0 ? cli_alloc(((size_t)n * 2 + 1) * sizeof *values) : NULL;
    char **names = n > 0 ? calloc((size_t)n, sizeof *names) : NULL;
    cli_exit code = values && names ? CLI_OK : CLI_IO;
    for (int i = 0; code == CLI_OK && i <= 2 * n; i++)
        values[i] = (caterva_value)CATERVA_VALUE_INIT;
    for (int i = 0; code == CLI_OK && i < n; i++) {
        uint8_t member[16] = {0};
        caterva_value *name = &values[1 + 2 * i], *number = name + 1;
        hid_t from = H5Tget_super(type);
        names[i] = H5Tget_member_name(type, (unsigned)i);
        if (!names[i] || H5Tget_member_value(type, (unsigned)i, member) < 0 ||
            H5Tconvert(from, is_unsigned ? H5T_NATIVE_UINT64 : H5T_NATIVE_INT64, 1, member,
                       NULL, H5P_DEFAULT) < 0)
            code = cli_fail(CLI_CORRUPT, "%s: its enumeration is damaged", node->key);
        h5_close(from);
        if (code != CLI_OK) break;
        name->kind = CATERVA_VALUE_TEXT;
        name->bytes = names[i];
        name->size = strlen(names[i]);
        memcpy(&number->integer, member, 8);
        number->kind =
            is_unsigned && number->integer < 0 ? CATERVA_VALUE_UINT : CATERVA_VALUE_INT;
    }
    caterva_error err;
    void *packed;
    size_t size;
    if (code == CLI_OK) {
        values[0].kind = CATERVA_VALUE_MAP;
        values[0].count = n;
        code = caterva_value_pack(values, (size_t)n * 2 + 1, &packed, &size, &err) ==
                       CATERVA_OK
                   ? foreign_set_packed(node, H5_ENUM, packed, size)
                   : cli_fail(CLI_UNSUPPORTED, "%s: %s", node->key, err.message);
    }
    for (int i = 0; names && i < n; i++) H5free_memory(names[i]);
    free(names);
    free(values);
    return code;
}

static cli_exit set_fill(const found *f, foreign_node *node)
{
    H5D_fill_value_t defined;
    if (f->type.n_axes > 0 || f->vlen || f->type.text == H5_ANY_LENGTH ||
        H5Pfill_value_defined(f->properties, &defined) < 0 ||
        defined != H5D_FILL_VALUE_USER_DEFINED)
        return CLI_OK;
    size_t size = (size_t)node->item_size;
    uint8_t *fill = calloc(1, size);
    if (!fill) return cli_fail(CLI_IO, "out of memory");
    bool zero = H5Pget_fill_value(f->properties, f->type.memory, fill) < 0;
    for (size_t i = 0; !zero && i <= size; i++) {
        zero = i == size;
        if (!zero && fill[i]) break;
    }
    if (zero)
        free(fill);
    else
        node->fill = fill;
    return CLI_OK;
}

/* Sets attributes that restore the type. */
static cli_exit set_kind(const reader *r, const found *f, foreign_node *node)
{
    const h5_type *t = &f->type;
    if (f->is_null) {
        const uint8_t yes = 1;
        CLI_TRY(foreign_set_numbers(node, H5_NULL, "|b1", 0, NULL, &yes));
    }
    if (f->vlen) CLI_TRY(foreign_set_text(node, H5_VLEN, f->vlen, strlen(f->vlen)));
    char name[256] = "";
    if (f->is_scale && !r->is_netcdf && H5DSget_scale_name(f->set, name, sizeof name) >= 0 &&
        (f->own->ndim != 1 || strcmp(name, strrchr(node->key, '/') + 1) != 0))
        CLI_TRY(values_set_text(node, H5_SCALE, name, strlen(name)));
    if (t->is_enum) CLI_TRY(set_enum(node, f->file_type));
    if (t->text == H5_FIXED_TEXT && t->is_utf8 && t->item_size > 1 &&
        !foreign_attribute_of(node, "_Encoding"))
        CLI_TRY(foreign_set_text(node, "_Encoding", "utf-8", 5));
    if (t->has_enum_fields)
        CLI_TRY(foreign_lose(r->file, "%s: the names of the values of its fields", node->key));
    if (t->n_axes > 0)
        CLI_TRY(foreign_lose(r->file, "%s: the array type of its items, whose axes follow its own",
                             node->key));
    if (*t->tag)
        CLI_TRY(foreign_lose(r->file, "%s: the tag '%s' of its items", node->key, t->tag));
    return CLI_OK;
}

static size_t chunk_items(const found *f)
{
    size_t n = 1;
    for (int d = 0; f->is_chunked && d < f->own->ndim; d++)
        n = f->chunk[d] > SIZE_MAX / n ? SIZE_MAX : n * (size_t)f->chunk[d];
    return n;
}

static cli_exit describe_set(reader *r, const char *key, found *f)
{
    int64_t shape[CATERVA_MAX_DIMS];
    int ndim = f->is_null ? 1 : f->own->ndim;
    if (f->is_null) shape[0] = 0;
    for (int d = 0; d < f->own->ndim; d++) shape[d] = (int64_t)f->own->extent[d];
    for (int d = 0; d < f->type.n_axes; d++) shape[ndim++] = (int64_t)f->type.axes[d];

    foreign_node *node = foreign_add(r->file, key, false);
    if (!node) return CLI_IO;
    node->own = f->own;
    CLI_TRY(foreign_set_shape(r->file, node, f->type.dtype ? f->type.dtype : f->dtype, ndim,
                              shape));
    /* Texts are much wider in an array: a box of whole chunks could be larger than the memory. */
    bool is_wide = f->vlen && chunk_items(f) > WIDE_BYTES / (size_t)node->item_size;
    for (int d = 0; f->is_chunked && !is_wide && d < ndim; d++)
        node->chunk_shape[d] = d < f->own->ndim ? (int64_t)f->chunk[d] : shape[d];
    CLI_TRY(add_attributes(r, node, f->set, f->file_type, f->is_scale));
    CLI_TRY(set_kind(r, f, node));
    CLI_TRY(set_fill(f, node));
    CLI_TRY(read_labels(r, f->set, node, f->own));
    if (f->is_chunked && f->type.n_axes == 0 && f->type.text != H5_ANY_LENGTH)
        CLI_TRY(find_blocks(r, f->set, f->space, f->properties, node));
    return CLI_OK;
}

/* The bytes of a dataset that is not in chunks are in the file, all of them. */
static cli_exit check_size(const reader *r, const char *key, const found *f)
{
    hsize_t stored = H5Dget_storage_size(f->set);
    if (f->is_chunked || (int64_t)stored <= r->file_size) return CLI_OK;
    return cli_fail(CLI_CORRUPT, "%s: %s claims %llu bytes, but the file has %lld",
                    r->file->path, key, (unsigned long long)stored, (long long)r->file_size);
}

/* Adds the dataset of a link, or the dimension that it is. `name` is that in netCDF. */
static cli_exit take_set(reader *r, const char *name, const char *key, found *f)
{
    if (f->is_scale) {
        size_t n;
        char **names = f->is_bare ? read_names(r, f->set, H5_NAME, &n) : NULL;
        const char *shown = names && names[0] && is_utf8(names[0], strlen(names[0])) ? names[0] : name;
        cli_exit code =
            add_scale(r, f->set, f->own, shown, f->grows && f->own->ndim == 1, f->is_bare);
        if (names) free_names(names, n);
        if (code != CLI_OK) return code;
    }
    if (f->is_scale && f->is_bare) return CLI_OK;
    const char *problem = problem_of(f);
    if (problem) return foreign_lose(r->file, "%s: %s", key, problem);
    problem = h5_type_of(f->file_type, &f->type);
    if (!problem && f->own->ndim + f->type.n_axes >= CATERVA_MAX_DIMS)
        problem = "items with too many axes";
    if (!problem) CLI_TRY(check_size(r, key, f));
    if (!problem && f->type.text == H5_ANY_LENGTH) CLI_TRY(choose_texts(r, key, f, &problem));
    if (problem && !*problem) return CLI_IO;
    if (problem) return foreign_lose(r->file, "%s: a dataset of %s", key, problem);
    if (f->is_scale && f->own->ndim == 1) f->own->scales[0] = f->own->address;
    if (read_dimension_list(f->set, f->own))
        CLI_TRY(foreign_lose(r->file, "%s: all but the first scale of an axis", key));
    if (f->is_scale && f->own->ndim > 1 &&
        read_integers(f->set, "_Netcdf4Coordinates", f->own->ids, CATERVA_MAX_DIMS) !=
            f->own->ndim)
        f->own->ids[0] = -1;
    return describe_set(r, key, f);
}

static char *path_of(const reader *r, size_t group, const char *name)
{
    const char *above = r->file->nodes[group].key;
    size_t size = strlen(above) + strlen(name) + 2;
    char *path = cli_alloc(size);
    if (path) snprintf(path, size, "%s/%s", above[1] ? above : "", name);
    return path;
}

static cli_exit add_set(reader *r, size_t parent, hid_t group, const char *name,
                        const char *shown, const char *key, haddr_t address)
{
    found f = {.set = -1, .file_type = -1, .space = -1, .properties = -1};
    f.type.memory = -1;
    cli_exit code = open_set(r, group, name, key, &f);
    if (code == CLI_OK && f.problem)
        code = foreign_lose(r->file, "%s: a dataset of %s", key, f.problem);
    else if (code == CLI_OK) {
        size_t before = r->file->n;
        f.own->address = address;
        f.own->group = parent;
        f.own->path = path_of(r, parent, name);
        code = f.own->path ? take_set(r, shown, key, &f) : CLI_IO;
        if (r->file->n > before) f.own = NULL; /* of the node */
    }
    close_found(&f);
    return code;
}

/* ---- The walk ---------------------------------------------------------------------------- */

typedef struct links {
    link *all;
    size_t n;
    bool failed;
} links;

static herr_t each_link(hid_t group, const char *name, const H5L_info_t *info, void *own)
{
    links *list = own;
    (void)group;
    link *larger = grow(list->all, list->n, sizeof *larger);
    if (larger) list->all = larger;
    char *copy = larger ? cli_copy_text(name) : NULL;
    list->failed = !copy;
    if (!copy) return -1;
    list->all[list->n++] = (link){copy, info->type};
    return 0;
}

static void free_links(links *list)
{
    for (size_t i = 0; i < list->n; i++) free(list->all[i].name);
    free(list->all);
}

static cli_exit lose_link(reader *r, hid_t group, const link *l, const char *key)
{
    char target[512] = "";
    const char *file = "", *path = "";
    if (l->type == H5L_TYPE_SOFT) {
        H5Lget_val(group, l->name, target, sizeof target - 1, H5P_DEFAULT);
        return foreign_lose(r->file, "%s: a symbolic link to %s", key, target);
    }
    H5L_info_t info;
    if (l->type == H5L_TYPE_EXTERNAL &&
        H5Lget_info(group, l->name, &info, H5P_DEFAULT) >= 0 &&
        info.u.val_size < sizeof target &&
        H5Lget_val(group, l->name, target, sizeof target - 1, H5P_DEFAULT) >= 0)
        H5Lunpack_elink_val(target, info.u.val_size, NULL, &file, &path);
    return foreign_lose(r->file, "%s: a link to %s in the file %s", key, path, file);
}

static cli_exit push(reader *r, const char *key, haddr_t address)
{
    pending *larger = grow(r->stack, r->n_stack, sizeof *larger);
    if (!larger) return CLI_IO;
    r->stack = larger;
    char *copy = cli_copy_text(key);
    if (!copy) return CLI_IO;
    r->stack[r->n_stack++] = (pending){copy, address};
    return CLI_OK;
}

/* Returns the name of a variable: netCDF gives those a prefix that have the name of a dimension
 * which is not theirs. */
static const char *netcdf_name(hid_t group, const char *name)
{
    const size_t size = sizeof H5_NOT_COORDINATE - 1;
    const char *rest = name + size;
    bool bare = false;
    if (strncmp(name, H5_NOT_COORDINATE, size) != 0 || !*rest) return name;
    if (H5Lexists(group, rest, H5P_DEFAULT) <= 0) return rest;
    hid_t other = H5Dopen2(group, rest, H5P_DEFAULT);
    bool free_name = other >= 0 && is_scale(other, &bare) && bare;
    h5_close(other);
    return free_name ? rest : name;
}

static cli_exit add_named(reader *r, hid_t group, const char *name, const char *key)
{
    named *larger = grow(r->types, r->n_types, sizeof *larger);
    if (!larger) return CLI_IO;
    r->types = larger;
    hid_t type = H5Topen2(group, name, H5P_DEFAULT);
    if (type < 0) return fail(r, key);
    char *copy = cli_copy_text(key);
    r->types[r->n_types++] = (named){copy, type, false};
    return copy ? CLI_OK : CLI_IO;
}

/* Returns the named type that is the type of a dataset, or NULL. Datasets of netCDF have a copy of
 * it. */
static named *find_named(const reader *r, const dataset *own)
{
    named *match = NULL;
    hid_t set = H5Dopen2(r->id, own->path, H5P_DEFAULT);
    hid_t type = set >= 0 ? H5Dget_type(set) : -1;
    for (size_t i = 0; type >= 0 && i < r->n_types && !match; i++)
        if (H5Tequal(type, r->types[i].type) > 0) match = &r->types[i];
    h5_close(type);
    h5_close(set);
    return match;
}

/* Arrays name their type; a type that no array has is lost. */
static cli_exit name_types(reader *r)
{
    for (size_t i = 0; r->n_types > 0 && i < r->file->n; i++) {
        foreign_node *node = &r->file->nodes[i];
        const dataset *own = node->own;
        named *type = own && own->may_be_named ? find_named(r, own) : NULL;
        if (!type) continue;
        type->used = true;
        CLI_TRY(foreign_set_text(node, H5_TYPE, type->key, strlen(type->key)));
    }
    for (size_t i = 0; i < r->n_types; i++)
        if (!r->types[i].used)
            CLI_TRY(foreign_lose(r->file, "%s: a type that no array has", r->types[i].key));
    return CLI_OK;
}

static cli_exit follow_hard(reader *r, size_t parent, hid_t group, const char *name,
                            const char *shown, const char *key)
{
    H5O_info_t info;
    const char *first;
    if (H5Oget_info_by_name2(group, name, &info, H5O_INFO_BASIC, H5P_DEFAULT) < 0)
        return fail(r, key);
    if (info.type != H5O_TYPE_GROUP && info.type != H5O_TYPE_DATASET &&
        info.type != H5O_TYPE_NAMED_DATATYPE)
        return foreign_lose(r->file, "%s: an object of an unknown kind", key);
    CLI_TRY(visit_object(r, info.addr, key, &first));
    if (first) return foreign_lose(r->file, "%s: another link to %s", key, first);
    if (info.type == H5O_TYPE_NAMED_DATATYPE) return add_named(r, group, name, key);
    if (info.type == H5O_TYPE_GROUP) return push(r, key, info.addr);
    return add_set(r, parent, group, name, shown, key, info.addr);
}

/* Whether an array of a tree can have this name. */
static bool is_possible(const char *name)
{
    size_t size = strlen(name);
    for (const char *c = name; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7f) return false;
    return is_utf8(name, size) && size <= NAME_SIZE && strcmp(name, ".") != 0 &&
           strcmp(name, "..") != 0;
}

static cli_exit follow(reader *r, size_t parent, hid_t group, const link *l, const char *above)
{
    char key[KEY_SIZE];
    const char *shown = netcdf_name(group, l->name);
    if (cli_interrupted()) return CLI_INTERRUPTED;
    cli_guard(r->file->path, "libhdf5", 0);
    int size = snprintf(key, sizeof key, "%s/%s", above[1] ? above : "", shown);
    int levels = 0;
    for (const char *c = above; *c; c++) levels += *c == '/';
    if (size >= KEY_SIZE || levels >= MAX_LEVELS)
        return foreign_lose(r->file, "%.80s...: more than %d bytes or %d levels of names", above,
                            KEY_SIZE - 1, MAX_LEVELS);
    if (!is_possible(l->name))
        return foreign_lose(r->file, "%s: a name that no array can have", key);
    if (l->type != H5L_TYPE_HARD) return lose_link(r, group, l, key);
    return follow_hard(r, parent, group, l->name, shown, key);
}

static cli_exit read_group(reader *r, const char *key, haddr_t address)
{
    hid_t group = H5Oopen_by_addr(r->id, address);
    if (group < 0) return fail(r, key);
    size_t index = r->file->n, first = r->n_stack;
    foreign_node *node = foreign_add(r->file, key, true);
    cli_exit code = node ? add_attributes(r, node, group, -1, false) : CLI_IO;
    links list = {0};
    hsize_t at = 0;
    if (code == CLI_OK &&
        H5Literate(group, H5_INDEX_NAME, H5_ITER_INC, &at, each_link, &list) < 0)
        code = list.failed ? CLI_IO : fail(r, key);
    for (size_t i = 0; i < list.n && code == CLI_OK; i++)
        code = follow(r, index, group, &list.all[i], key);
    for (size_t a = first, b = r->n_stack; a + 1 < b; a++) { /* the first name is next */
        pending last = r->stack[--b];
        r->stack[b] = r->stack[a];
        r->stack[a] = last;
    }
    free_links(&list);
    h5_close(group);
    return code;
}

/* Older files of netCDF do not name their writer; their scales have numbers. */
static herr_t is_of_netcdf(hid_t group, const char *name, const H5L_info_t *info, void *own)
{
    enum { MOST = 100 };
    int *n = own;
    if (info->type != H5L_TYPE_HARD) return 0;
    hid_t set = H5Oopen(group, name, H5P_DEFAULT);
    bool yes = set >= 0 && H5Aexists(set, "_Netcdf4Dimid") > 0;
    h5_close(set);
    if (yes) return 1;
    return ++*n < MOST ? 0 : -1;
}

static cli_exit walk(reader *r)
{
    H5O_info_t info;
    const char *first;
    int n = 0;
    hsize_t at = 0;
    hid_t root = H5Gopen2(r->id, "/", H5P_DEFAULT);
    if (root < 0 || H5Oget_info2(root, &info, H5O_INFO_BASIC) < 0) return fail(r, NULL);
    r->is_netcdf =
        H5Aexists(root, "_NCProperties") > 0 || H5Aexists(root, "_nc3_strict") > 0 ||
        H5Literate(root, H5_INDEX_NAME, H5_ITER_NATIVE, &at, is_of_netcdf, &n) > 0;
    h5_close(root);
    CLI_TRY(visit_object(r, info.addr, "/", &first));
    CLI_TRY(push(r, "/", info.addr));
    cli_exit code = CLI_OK;
    while (r->n_stack > 0 && code == CLI_OK) {
        pending next = r->stack[--r->n_stack];
        code = read_group(r, next.key, next.address);
        free(next.key);
    }
    return code;
}

/* ---- Items ------------------------------------------------------------------------------- */

static void close_set(reader *r)
{
    h5_close(r->space);
    h5_close(r->dataset);
    h5_type_free(&r->type);
    r->node = NULL;
    r->space = r->dataset = -1;
}

static cli_exit check_filters(const reader *r, const foreign_node *node, hid_t properties)
{
    int n = H5Pget_nfilters(properties);
    for (int i = 0; i < n; i++) {
        unsigned flags;
        size_t n_values = 0;
        char name[64] = "";
        H5Z_filter_t filter = H5Pget_filter2(properties, (unsigned)i, &flags, &n_values, NULL,
                                             sizeof name, name, NULL);
        if (filter < 0) return fail(r, node->key);
        if (H5Zfilter_avail(filter) > 0) continue;
        return cli_fail(CLI_UNSUPPORTED,
                        "%s: %s is compressed by %s (HDF5 filter %d), whose plug-in is not in "
                        "HDF5_PLUGIN_PATH; hdf5plugin (pip) and hdf5-filter-plugin (Debian) "
                        "have many of them",
                        r->file->path, node->key, h5_filter_name(filter), (int)filter);
    }
    return CLI_OK;
}

/* The cache holds a few chunks; libhdf5 reads a chunk that exceeds it at each access. */
static hid_t access_of(const foreign_node *node)
{
    size_t chunk = (size_t)node->item_size;
    for (int d = 0; d < node->ndim; d++) {
        size_t length = (size_t)node->chunk_shape[d];
        chunk = length && chunk > CACHE_BYTES / length ? CACHE_BYTES : chunk * length;
    }
    size_t bytes = chunk < CACHE_BYTES / 8 ? 8 * chunk : CACHE_BYTES;
    hid_t properties = H5Pcreate(H5P_DATASET_ACCESS);
    H5Pset_chunk_cache(properties, 521, bytes < 1 << 20 ? 1 << 20 : bytes, 1.0);
    return properties;
}

static cli_exit select_set(reader *r, const foreign_node *node)
{
    if (r->node == node) return CLI_OK;
    close_set(r);
    hid_t access = access_of(node);
    r->dataset = H5Dopen2(r->id, ((const dataset *)node->own)->path, access);
    h5_close(access);
    hid_t properties = r->dataset >= 0 ? H5Dget_create_plist(r->dataset) : -1;
    if (properties < 0) return fail(r, node->key);
    cli_exit code = check_filters(r, node, properties);
    r->is_deflated = h5_pipeline_of(properties, &r->pipeline);
    h5_close(properties);
    if (code != CLI_OK) return code;
    hid_t type = H5Dget_type(r->dataset);
    r->space = H5Dget_space(r->dataset);
    const char *problem = type >= 0 && r->space >= 0 ? h5_type_of(type, &r->type) : "";
    if (!problem) r->is_deflated = r->is_deflated && H5Tequal(type, r->type.memory) > 0;
    h5_close(type);
    if (problem) return fail(r, node->key);
    r->node = node;
    return CLI_OK;
}

/* A read: what of the box is in the file, and the size of an element there. */
typedef struct request {
    hsize_t from[CATERVA_MAX_DIMS], count[CATERVA_MAX_DIMS]; /* in the file */
    hsize_t box[CATERVA_MAX_DIMS];
    bool is_clipped, is_empty, is_cropped;
    size_t n_outer, n_inner; /* items of the file in the box; elements of each, by an array type */
    size_t n;                /* elements of the box */
    size_t element;          /* bytes */
} request;

static bool plan_request(const reader *r, const foreign_node *node, const int64_t *start,
                         const int64_t *stop, request *q)
{
    const dataset *own = node->own;
    *q = (request){.n_outer = 1, .n_inner = 1, .n = 1};
    q->element = r->type.text == H5_ANY_LENGTH ? sizeof(char *) : (size_t)node->item_size;
    for (int d = 0; d < node->ndim; d++) {
        hsize_t from = (hsize_t)start[d], to = (hsize_t)stop[d];
        q->n *= to - from;
        if (d >= own->ndim) {
            q->n_inner *= (size_t)node->shape[d];
            q->is_cropped |= (int64_t)(to - from) < node->shape[d];
            continue;
        }
        q->from[d] = from;
        q->box[d] = to - from;
        q->n_outer *= to - from;
        if (to > own->extent[d]) {
            q->is_clipped = true;
            to = own->extent[d];
        }
        if (to <= from) q->is_empty = true;
        q->count[d] = to > from ? to - from : 0;
    }
    return q->n_outer <= SIZE_MAX / q->n_inner / q->element;
}

/* Reads the part of the box that is in the file to `dst`, which has room for all elements. */
static cli_exit read_part(const reader *r, const foreign_node *node, const request *q,
                          hid_t memory, void *dst)
{
    static const hsize_t zeros[CATERVA_MAX_DIMS];
    if (q->is_empty) return CLI_OK;
    if (((const dataset *)node->own)->ndim > 0 &&
        (H5Sselect_hyperslab(r->space, H5S_SELECT_SET, q->from, NULL, q->count, NULL) < 0 ||
         H5Sselect_hyperslab(memory, H5S_SELECT_SET, zeros, NULL, q->count, NULL) < 0))
        return fail(r, node->key);
    if (H5Dread(r->dataset, r->type.memory, memory, r->space, H5P_DEFAULT, dst) < 0)
        return fail(r, node->key);
    return CLI_OK;
}

static void fill_all(const foreign_node *node, const request *q, uint8_t *dst)
{
    size_t n = q->n_outer * q->n_inner;
    if (!node->fill || q->element != (size_t)node->item_size) {
        memset(dst, 0, n * q->element);
        return;
    }
    for (size_t i = 0; i < n; i++) memcpy(dst + i * q->element, node->fill, q->element);
}

/* Returns the place of element `i` of the box among all that were read: those of an array type are
 * read whole. */
static size_t place_of(const foreign_node *node, const int64_t *start, const int64_t *stop,
                       size_t i)
{
    size_t place = 0, step = 1;
    int ndim = ((const dataset *)node->own)->ndim;
    for (int d = node->ndim - 1; d >= ndim; d--) {
        size_t length = (size_t)(stop[d] - start[d]);
        place += ((size_t)start[d] + i % length) * step;
        i /= length;
        step *= (size_t)node->shape[d];
    }
    return place + i * step;
}

/* Writes a text as an item; false if it does not fit. */
static bool put_text(const caterva_dtype *dtype, const char *text, uint8_t *dst)
{
    size_t room = (size_t)dtype->item_size, size = text ? strlen(text) : 0, used = 0;
    memset(dst, 0, room);
    if (dtype->kind == 'S') {
        if (size > room) return false;
        if (size) memcpy(dst, text, size);
        return true;
    }
    for (size_t at = 0; at < size; used += 4) {
        uint32_t code;
        if (used + 4 > room || !decode_utf8((const uint8_t *)text, size, &at, &code))
            return false;
        for (size_t b = 0; b < 4; b++)
            dst[used + b] = (uint8_t)(code >> 8 * (dtype->byte_order == '>' ? 3 - b : b));
    }
    return true;
}

static cli_exit put_texts(const reader *r, const foreign_node *node, const int64_t *start,
                          const int64_t *stop, char *const *texts, size_t n, uint8_t *dst)
{
    caterva_dtype *dtype;
    if (caterva_dtype_parse(node->dtype, &dtype, NULL) != CATERVA_OK)
        return cli_fail(CLI_IO, "out of memory");
    bool fits = true;
    for (size_t i = 0; i < n && fits; i++)
        fits = put_text(dtype, texts[place_of(node, start, stop, i)],
                        dst + i * (size_t)node->item_size);
    caterva_dtype_free(dtype);
    if (fits) return CLI_OK;
    return cli_fail(CLI_CORRUPT, "%s: %s: a text is longer than when the file was opened",
                    r->file->path, node->key);
}

/* Reads through a buffer: texts of any length, and parts of array types. */
static cli_exit read_apart(const reader *r, const foreign_node *node, const int64_t *start,
                           const int64_t *stop, const request *q, hid_t memory, uint8_t *dst)
{
    uint8_t *all = calloc(q->n_outer * q->n_inner, q->element);
    if (!all) return cli_fail(CLI_IO, "out of memory");
    if (q->is_clipped) fill_all(node, q, all);
    cli_exit code = read_part(r, node, q, memory, all);
    bool is_text = r->type.text == H5_ANY_LENGTH;
    if (code == CLI_OK && is_text)
        code = put_texts(r, node, start, stop, (char *const *)(void *)all, q->n, dst);
    for (size_t i = 0; code == CLI_OK && !is_text && i < q->n; i++)
        memcpy(dst + i * q->element, all + place_of(node, start, stop, i) * q->element,
               q->element);
    if (is_text) {
        H5Sselect_all(memory);
        H5Dvlen_reclaim(r->type.memory, memory, H5P_DEFAULT, all);
    }
    free(all);
    return code;
}

static cli_exit read_box(reader *r, const foreign_node *node, const int64_t *start,
                         const int64_t *stop, void *dst)
{
    const dataset *own = node->own;
    request q;
    CLI_TRY(select_set(r, node));
    if (!plan_request(r, node, start, stop, &q)) return cli_fail(CLI_IO, "out of memory");
    cli_exit code;
    const h5_chunk_box chunks = {r->file->path, r->dataset, node, &r->pipeline, start, stop, dst};
    if (r->is_deflated && r->type.text != H5_ANY_LENGTH && !q.is_cropped && !q.is_clipped &&
        own->ndim > 0 && node->chunk_shape[0] > 0 &&
        h5_read_chunks(&chunks, r->file->threads, &code))
        return code;
    hid_t memory =
        own->ndim > 0 ? H5Screate_simple(own->ndim, q.box, NULL) : H5Screate(H5S_SCALAR);
    if (memory < 0) return fail(r, node->key);
    if (q.is_cropped || r->type.text == H5_ANY_LENGTH) {
        code = read_apart(r, node, start, stop, &q, memory, dst);
    } else {
        if (q.is_clipped)
            fill_all(node, &q, dst);
        else if (r->type.is_structure) /* libhdf5 does not write between fields */
            memset(dst, 0, q.n * q.element);
        /* libhdf5 leaves the memory as it is where no items were written, if the file asks for it. */
        if (!q.is_clipped) memset(dst, 0, q.n * q.element);
        code = read_part(r, node, &q, memory, dst);
    }
    h5_close(memory);
    return code;
}

static cli_exit read_items(foreign_file *file, const foreign_node *node, const int64_t *start,
                           const int64_t *stop, void *dst)
{
    h5_begin();
    int64_t size = node->item_size;
    for (int d = 0; d < node->ndim; d++) size *= stop[d] - start[d];
    cli_guard(file->path, "libhdf5", size);
    cli_exit code = read_box(file->own, node, start, stop, dst);
    cli_unguard();
    return code;
}

/* Sets `start` to the first item of a chunk; false if it is not in the file. */
static bool place_chunk(const foreign_node *node, int64_t index, hsize_t *start)
{
    const dataset *own = node->own;
    bool inside = true;
    for (int d = node->ndim - 1; d >= 0; d--) {
        int64_t n = (node->shape[d] + node->chunk_shape[d] - 1) / node->chunk_shape[d];
        start[d] = (hsize_t)(index % n) * (hsize_t)node->chunk_shape[d];
        index /= n;
        inside = inside && start[d] < own->extent[d];
    }
    return inside;
}

/* Whether no chunk of the box is in the file. False before the first read, which opens the dataset. */
static bool is_fill(foreign_file *file, const foreign_node *node, const int64_t *start,
                    const int64_t *stop)
{
    reader *r = file->own;
    const dataset *own = node->own;
    hsize_t at[CATERVA_MAX_DIMS];
    if (node->ndim == 0 || node->ndim != own->ndim || node->chunk_shape[0] == 0 ||
        r->node != node || r->type.text == H5_ANY_LENGTH)
        return false;
    for (int d = 0; d < node->ndim; d++)
        at[d] = (hsize_t)(start[d] - start[d] % node->chunk_shape[d]);
    for (int d = 0; d >= 0;) {
        unsigned mask;
        haddr_t address;
        hsize_t size;
        if (H5Dget_chunk_info_by_coord(r->dataset, at, &mask, &address, &size) < 0 ||
            address != HADDR_UNDEF)
            return false;
        for (d = node->ndim - 1; d >= 0; d--) {
            at[d] += (hsize_t)node->chunk_shape[d];
            if (at[d] < (hsize_t)stop[d] && at[d] < own->extent[d]) break;
            at[d] = (hsize_t)(start[d] - start[d] % node->chunk_shape[d]);
        }
    }
    return true;
}

/* Takes the Blosc2 chunk out of the frame in *chunk. */
static cli_exit unwrap(const foreign_node *node, void **chunk, size_t *size)
{
    caterva_array *array;
    const caterva_info *info;
    void *inner = NULL;
    size_t inner_size = 0;
    if (open_chunk(node, *chunk, *size, &array, &info)) {
        bool same = memcmp(info->block_shape, node->block_shape,
                           (size_t)node->ndim * sizeof *info->block_shape) == 0;
        inner_size = (size_t)info->chunk_bytes + 32;
        inner = same ? cli_alloc(inner_size) : NULL;
        if (inner && caterva_chunk_read_stored(array, 0, inner, inner_size, &inner_size,
                                               NULL) != CATERVA_OK) {
            free(inner);
            inner = NULL;
        }
        caterva_info_release(info);
        caterva_discard(array);
    }
    free(*chunk);
    *chunk = inner;
    *size = inner ? inner_size : 0;
    return CLI_OK;
}

static cli_exit read_frame(reader *r, const foreign_node *node, int64_t index, void **chunk,
                           size_t *size)
{
    hsize_t start[CATERVA_MAX_DIMS], stored;
    uint32_t mask;
    *chunk = NULL;
    *size = 0;
    if (node->block_shape[0] == 0 || !place_chunk(node, index, start)) return CLI_OK;
    CLI_TRY(select_set(r, node));
    if (H5Dget_chunk_storage_size(r->dataset, start, &stored) < 0 || stored == 0 ||
        stored > MOVED_BYTES || (int64_t)stored > r->file_size)
        return CLI_OK;
    *chunk = cli_alloc(stored);
    if (!*chunk) return CLI_IO;
    *size = stored;
    if (H5Dread_chunk(r->dataset, H5P_DEFAULT, start, &mask, *chunk) >= 0 && mask == 0)
        return CLI_OK;
    free(*chunk);
    *chunk = NULL;
    *size = 0;
    return CLI_OK;
}

static cli_exit read_stored(foreign_file *file, const foreign_node *node, int64_t index,
                            void **chunk, size_t *size)
{
    h5_begin();
    cli_guard(file->path, "libhdf5", 0);
    cli_exit code = read_frame(file->own, node, index, chunk, size);
    cli_unguard();
    return code == CLI_OK && *size > 0 ? unwrap(node, chunk, size) : code;
}

/* ---- Files ------------------------------------------------------------------------------- */

static void free_walk(reader *r)
{
    for (size_t i = 0; i < r->room; i++) free(r->visits[i].key);
    for (size_t i = 0; i < r->n_stack; i++) free(r->stack[i].key);
    for (size_t i = 0; i < r->n_scales; i++) free(r->scales[i].name);
    for (size_t i = 0; i < r->n_types; i++) {
        free(r->types[i].key);
        h5_close(r->types[i].type);
    }
    free(r->types);
    free(r->visits);
    free(r->stack);
    free(r->scales);
    r->visits = NULL;
    r->stack = NULL;
    r->scales = NULL;
    r->types = NULL;
    r->n_types = r->room = r->n_stack = r->n_scales = 0;
}

static void close_file(foreign_file *file)
{
    reader *r = file->own;
    if (!r) return;
    h5_begin();
    cli_guard(file->path, "libhdf5", 0);
    for (size_t i = 0; i < file->n; i++) free_dataset(file->nodes[i].own);
    free_walk(r);
    close_set(r);
    h5_close(r->id);
    cli_unguard();
    free(r);
}

static cli_exit read_all(reader *r)
{
    hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    H5Pset_fclose_degree(access, H5F_CLOSE_STRONG);
    r->id = H5Fopen(r->file->path, H5F_ACC_RDONLY, access);
    h5_close(access);
    if (r->id < 0) return fail(r, NULL);
    CLI_TRY(walk(r));
    CLI_TRY(name_types(r));
    CLI_TRY(name_axes(r));
    return list_dimensions(r);
}

cli_exit h5_open(foreign_file *file)
{
    struct stat st;
    h5_begin();
    if (stat(file->path, &st) != 0) return cli_fail_sys("cannot open %s", file->path);
    reader *r = cli_alloc(sizeof *r);
    if (!r) return CLI_IO;
    *r = (reader){.file = file, .id = -1, .dataset = -1, .space = -1};
    r->type.memory = -1;
    r->file_size = st.st_size;
    file->own = r;
    file->close = close_file;
    file->read = read_items;
    cli_guard(file->path, "libhdf5", 0);
    cli_exit code = read_all(r);
    cli_unguard();
    if (code != CLI_OK) return code;
    free_walk(r);
    for (size_t i = 0; i < file->n; i++)
        if (file->nodes[i].block_shape[0] > 0) file->read_stored = read_stored;
    file->is_fill = is_fill;
    return CLI_OK;
}

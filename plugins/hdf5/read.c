/* Plug-in hdf5. Reading: a walk over all links describes groups and datasets.
 *
 * Objects are known by their address in the file, so that a second link to one, and with it every
 * cycle, is recognised. Dimension scales get their names after the walk. */
#include "read.h"

#include "foreign/values.h"
#include "formats/json.h"

#include <caterva_value.h>
#include <hdf5_hl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define WIDE_BYTES ((size_t)4 << 20)     /* of a chunk of texts that is read whole */
#define KEY_SIZE 4000
#define NAME_SIZE 250 /* a file system has 255 bytes, with an extension */
enum { MAX_LEVELS = 64 };

cli_exit h5_read_fail(const reader *r, const char *key)
{
    return h5_fail(CLI_CORRUPT, r->file->path, key);
}

void *h5_grow(void *entries, size_t n, size_t size)
{
    if (n & (n - 1)) return entries;
    void *larger = realloc(entries, (n ? 2 * n : 1) * size);
    if (!larger) cli_fail(CLI_IO, "out of memory");
    return larger;
}

bool h5_is_utf8(const char *text, size_t size)
{
    for (size_t at = 0, length; at < size; at += length) {
        length = json_utf8_length(text + at, size - at);
        if (length == 0) return false;
    }
    return true;
}

cli_exit h5_refuse(const reader *r, const char *key, const char **problem)
{
    if (!h5_is_newer()) return h5_read_fail(r, key);
    *problem = NEWER;
    return CLI_OK;
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
    scale *larger = h5_grow(r->scales, r->n_scales, sizeof *larger);
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
    char **labels = h5_read_names(r, set, "DIMENSION_LABELS", &n);
    for (size_t d = 0; d < n && (int)d < own->ndim && code == CLI_OK; d++) {
        if (!labels[d] || !*labels[d] || !h5_is_utf8(labels[d], strlen(labels[d]))) continue;
        own->labels[d] = cli_copy_text(labels[d]);
        code = own->labels[d] ? foreign_set_dim(node, (int)d, labels[d]) : CLI_IO;
    }
    h5_free_names(labels, n);
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
        if (label && scale_of(r, own, d) && node->dims[d] && strcmp(label, node->dims[d]) == 0)
            label = NULL;
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

/* Sets `_maxshape` if the limit of an axis differs from that of its dimension. */
static cli_exit set_maxshape(const reader *r, foreign_node *node)
{
    value_list list = {0};
    const dataset *own = node->own;
    bool any = false;
    size_t head = values_begin(&list, CATERVA_VALUE_LIST);
    for (int d = 0; d < own->ndim; d++) {
        const scale *s = scale_of(r, own, d);
        any = any || own->most[d] != (s && s->grows ? H5S_UNLIMITED : own->extent[d]);
        if (own->most[d] == H5S_UNLIMITED)
            values_add_nil(&list);
        else
            values_add_int(&list, (int64_t)own->most[d]);
    }
    values_end(&list, head, own->ndim);
    if (any) return values_set(&list, node, H5_MAXSHAPE);
    values_free(&list);
    return CLI_OK;
}

/* Whether a group is `above`, or in it. */
static bool is_in(const char *group, const char *above)
{
    size_t size = above[1] ? strlen(above) : 0;
    return strncmp(group, above, size) == 0 && (group[size] == '/' || !group[size]);
}

/* Returns the dimension that a name means in a tree: that of the group, or of the nearest group above
 * it. NULL: none. */
static const scale *find_meant(const reader *r, size_t group, const char *name)
{
    const scale *found = NULL;
    const foreign_node *nodes = r->file->nodes;
    for (const scale *s = r->scales; s < r->scales + r->n_scales; s++)
        if (strcmp(s->name, name) == 0 && is_in(nodes[group].key, nodes[s->group].key) &&
            (!found || is_in(nodes[s->group].key, nodes[found->group].key)))
            found = s;
    return found;
}

/* Whether another dimension of this name is that of an axis of a node before `end`, in the group. */
static bool is_name_taken(const reader *r, size_t end, const scale *wanted, size_t group)
{
    for (size_t i = 0; i < end; i++) {
        const dataset *own = r->file->nodes[i].own;
        for (int d = 0; own && own->group == group && d < own->ndim; d++) {
            const scale *s = scale_of(r, own, d);
            if (s && s != wanted && strcmp(s->name, wanted->name) == 0) return true;
        }
    }
    return false;
}

/* Names axis `d` of node `i`. A tree knows dimensions by name: a scale that is in neither the group nor one
 * above it is a loss, and its name too if that means another one. */
static cli_exit name_axis(reader *r, size_t i, int d, const scale *s)
{
    foreign_node *node = &r->file->nodes[i];
    size_t group = ((const dataset *)node->own)->group;
    const scale *meant = s->group == group ? s : find_meant(r, group, s->name);
    const char *above = r->file->nodes[s->group].key;
    if (meant != s)
        CLI_TRY(foreign_lose(r->file, "%s: the scale of axis %d, which is elsewhere: %s/%s",
                             node->key, d, above[1] ? above : "", s->name));
    if (meant ? meant == s : !is_name_taken(r, i + 1, s, group))
        return foreign_set_dim(node, d, s->name);
    if (node->dims) {
        free(node->dims[d]); /* its label */
        node->dims[d] = NULL;
    }
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
            CLI_TRY(name_axis(r, i, d, s));
            if (s->grows && (int64_t)s->length > node->shape[d])
                node->shape[d] = (int64_t)s->length;
        }
        if (own) CLI_TRY(set_labels(r, node));
        if (own) CLI_TRY(set_maxshape(r, node));
    }
    return CLI_OK;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const scale *)a)->name, ((const scale *)b)->name);
}

/* Marks the dimensions that have the name of one in a group above. */
static void find_rivals(reader *r)
{
    if (r->n_scales) qsort(r->scales, r->n_scales, sizeof *r->scales, by_name);
    for (size_t first = 0, end; first < r->n_scales; first = end) {
        for (end = first + 1; end < r->n_scales; end++)
            if (by_name(&r->scales[first], &r->scales[end]) != 0) break;
        for (size_t i = first; i < end; i++)
            for (size_t k = first; k < end; k++) {
                const char *above = r->file->nodes[r->scales[k].group].key;
                const char *key = r->file->nodes[r->scales[i].group].key;
                if (i != k && is_in(key, above)) r->scales[i].has_rival = true;
            }
    }
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
    find_rivals(r);
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
        if (s->used && (s->has_rival || (!s->has_variable && !s->used_here))) below[n_below++] = s->name;
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
    if (f->properties < 0) return h5_refuse(r, key, &f->problem);
    f->is_null = H5Sget_simple_extent_type(f->space) == H5S_NULL;
    int ndim = H5Sget_simple_extent_dims(f->space, dims, most);
    if (ndim < 0) return h5_read_fail(r, key);
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
    CLI_TRY(h5_scan_texts(r, f->set, &f->type, f->own, f->is_chunked ? f->chunk : NULL, key, &w));
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
    char **given = h5_read_names(r, f->set, H5_DTYPE, &n);
    caterva_dtype *parsed;
    if (n == 1 && given[0] && strlen(given[0]) < sizeof f->dtype && as_text &&
        caterva_dtype_parse(given[0], &parsed, NULL) == CATERVA_OK) {
        if (parsed->kind == 'U' && parsed->item_size >= (int64_t)(4 * width)) {
            snprintf(f->dtype, sizeof f->dtype, "%s", given[0]);
            f->vlen = NULL;
        }
        caterva_dtype_free(parsed);
    }
    h5_free_names(given, n);
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
        (f->own->ndim != 1 || t->n_axes > 0 || strcmp(name, strrchr(node->key, '/') + 1) != 0))
        CLI_TRY(values_set_text(node, H5_SCALE, name, strlen(name)));
    if (t->is_enum) CLI_TRY(set_enum(node, f->file_type));
    if (t->text == H5_FIXED_TEXT && t->is_utf8 && t->item_size > 1)
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
    CLI_TRY(h5_add_attributes(r, node, f->set, f->file_type, f->is_scale));
    CLI_TRY(set_kind(r, f, node));
    CLI_TRY(set_fill(f, node));
    CLI_TRY(read_labels(r, f->set, node, f->own));
    if (f->is_chunked && f->type.n_axes == 0 && f->type.text != H5_ANY_LENGTH)
        CLI_TRY(h5_find_blocks(r, f->set, f->space, f->properties, node));
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
        char **names = f->is_bare ? h5_read_names(r, f->set, H5_NAME, &n) : NULL;
        const char *shown = names && names[0] && h5_is_utf8(names[0], strlen(names[0])) ? names[0] : name;
        /* In netCDF the first axis of a coordinate of several axes is its own dimension. */
        bool grows = f->grows && (f->own->ndim == 1 || r->is_netcdf);
        cli_exit code = add_scale(r, f->set, f->own, shown, grows, f->is_bare);
        if (names) h5_free_names(names, n);
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
        if (r->file->n > before)
            f.own = NULL; /* of the node */
        else if (f.is_scale && r->n_scales > 0) /* only the dimension is left of it */
            r->scales[r->n_scales - 1].has_variable = false;
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
    link *larger = h5_grow(list->all, list->n, sizeof *larger);
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
    pending *larger = h5_grow(r->stack, r->n_stack, sizeof *larger);
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
    named *larger = h5_grow(r->types, r->n_types, sizeof *larger);
    if (!larger) return CLI_IO;
    r->types = larger;
    hid_t type = H5Topen2(group, name, H5P_DEFAULT);
    if (type < 0) return h5_read_fail(r, key);
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
        return h5_read_fail(r, key);
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
    return h5_is_utf8(name, size) && size <= NAME_SIZE && strcmp(name, ".") != 0 &&
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
    if (group < 0) return h5_read_fail(r, key);
    size_t index = r->file->n, first = r->n_stack;
    foreign_node *node = foreign_add(r->file, key, true);
    cli_exit code = node ? h5_add_attributes(r, node, group, -1, false) : CLI_IO;
    links list = {0};
    hsize_t at = 0;
    if (code == CLI_OK &&
        H5Literate(group, H5_INDEX_NAME, H5_ITER_INC, &at, each_link, &list) < 0)
        code = list.failed ? CLI_IO : h5_read_fail(r, key);
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
    if (root < 0 || H5Oget_info2(root, &info, H5O_INFO_BASIC) < 0) return h5_read_fail(r, NULL);
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
    h5_close_set(r);
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
    if (r->id < 0) return h5_read_fail(r, NULL);
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
    file->read = h5_read_items;
    cli_guard(file->path, "libhdf5", 0);
    cli_exit code = read_all(r);
    cli_unguard();
    if (code != CLI_OK) return code;
    free_walk(r);
    for (size_t i = 0; i < file->n; i++)
        if (file->nodes[i].block_shape[0] > 0) file->read_stored = h5_read_stored;
    file->is_fill = h5_is_fill;
    return CLI_OK;
}

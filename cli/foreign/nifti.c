/* Room: cli/foreign. NIfTI images: .nii, or a pair of .hdr and .img, packed by gzip or not. The
 * array is /data, with the axes in nibabel's order: x, y, z, t. Attributes:
 *
 *   affine                     4 by 4 float64: from voxels to space, as nibabel chooses it
 *   sform, qform               the same by each method whose code is not 0
 *   spacing, axis_units        for each axis
 *   scale_factor, add_offset   unless the header has none
 *   nifti                      the fields of the header that are not zero, by their names
 *   nifti_extensions           a list of [code, bytes]
 *
 * A writer takes the header from `nifti`; shape, dtype, scale and a changed affine from the array. */
#include "foreign/formats.h"
#include "foreign/items.h"
#include "foreign/nifti_header.h"
#include "foreign/packer.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#define MAX_EXTENSIONS ((int64_t)16 << 20)
#define GAP_KEPT 65536 /* bytes before the items that the map may ask for */

static const char *const axis_names[] = {"x", "y", "z", "t", "u", "v", "w"};

/* Types that NumPy has. `size` is the one of an item with the byte order of the file. */
static const struct type {
    int code;
    const char *dtype; /* without a byte order, unless it begins with | or [ */
    int bits;
} types[] = {
    {2, "|u1", 8},
    {4, "i2", 16},
    {8, "i4", 32},
    {16, "f4", 32},
    {32, "c8", 64},
    {64, "f8", 64},
    {256, "|i1", 8},
    {512, "u2", 16},
    {768, "u4", 32},
    {1024, "i8", 64},
    {1280, "u8", 64},
    {1792, "c16", 128},
    {128, "[('R', '|u1'), ('G', '|u1'), ('B', '|u1')]", 24},
    {2304, "[('R', '|u1'), ('G', '|u1'), ('B', '|u1'), ('A', '|u1')]", 32},
    /* IEEE's 128 bits, which few machines compute with. */
    {1536, "|V16", 128},
    {2048, "|V32", 256},
};
#define N_TYPES (sizeof types / sizeof types[0])

/* Units of the first three axes and of the fourth one, by the parts of xyzt_units. */
static const struct unit {
    int code;
    const char *name;
} units[] = {{1, "m"},   {2, "mm"},  {3, "um"},   {8, "s"},     {16, "ms"},
             {24, "us"}, {32, "Hz"}, {40, "ppm"}, {48, "rad/s"}};
#define N_UNITS (sizeof units / sizeof units[0])

static const char *unit_name(int code)
{
    for (size_t i = 0; i < N_UNITS; i++)
        if (units[i].code == code) return units[i].name;
    return "";
}

/* ---- Names of files --------------------------------------------------------------------- */

/* Sets *out to the path with the extension `from`, which may be followed by .gz, replaced. Returns
 * false if the path ends otherwise. Release *out with free. */
static bool replace_extension(const char *path, const char *from, const char *to, char **out)
{
    size_t size = strlen(path), n = strlen(from), tail = 0;
    if (size > 3 && strcasecmp(path + size - 3, ".gz") == 0) tail = 3;
    *out = NULL;
    if (size < n + tail || strncasecmp(path + size - n - tail, from, n) != 0) return false;
    *out = cli_copy_text(path);
    if (*out) memcpy(*out + size - n - tail, to, n);
    return true;
}

/* Opens a file, packed or not. A missing file of the pair may be packed or unpacked. */
static cli_exit open_bytes(const char *path, packed **out)
{
    bool is_gzip;
    CLI_TRY(packed_is_gzip(path, &is_gzip));
    return packed_open(path, is_gzip ? PACKING_GZIP : PACKING_NONE, 0, -1, out);
}

/* ---- Reading ---------------------------------------------------------------------------- */

typedef struct nifti_file {
    packed *head, *items; /* the same for a single file */
    char *head_path, *items_path;
    int64_t position; /* of the first item */
} nifti_file;

static void close_file(foreign_file *self)
{
    nifti_file *own = self->own;
    if (own->items != own->head) packed_close(own->items);
    packed_close(own->head);
    free(own->head_path);
    free(own->items_path);
    free(own);
}

static cli_exit read_box(foreign_file *self, const foreign_node *array, const int64_t *start,
                         const int64_t *stop, void *dst)
{
    const nifti_file *own = self->own;
    return items_read(own->items, own->position, array, start, stop, dst);
}

static cli_exit set_shape(foreign_file *file, foreign_node *node, const nifti_header *h)
{
    int ndim;
    int64_t shape[7];
    char dtype[80];
    int code = (int)nifti_get(h, "datatype", 0);
    const struct type *type = NULL;
    for (size_t i = 0; i < N_TYPES && !type; i++)
        if (types[i].code == code) type = &types[i];
    if (!type)
        return cli_fail(CLI_UNSUPPORTED,
                        "%s has items of NIfTI's datatype %d, which is not known", file->path,
                        code);
    if (!nifti_shape(h, &ndim, shape))
        return cli_fail(CLI_CORRUPT, "%s: the header has no valid shape", file->path);
    bool ordered = !strchr("|[", *type->dtype);
    snprintf(dtype, sizeof dtype, "%s%s", ordered ? h->big_endian ? ">" : "<" : "",
             type->dtype);
    CLI_TRY(foreign_set_shape(file, node, dtype, ndim, shape));
    node->first_axis_fastest = true;
    for (int d = 0; d < ndim; d++) CLI_TRY(foreign_set_dim(node, d, axis_names[d]));
    return CLI_OK;
}

static cli_exit set_matrix(foreign_node *node, const char *name, const nifti_header *h,
                           void (*get)(const nifti_header *, nifti_matrix))
{
    static const int64_t shape[] = {4, 4};
    nifti_matrix matrix;
    get(h, matrix);
    return foreign_set_numbers(node, name, "float64", 2, shape, matrix);
}

static cli_exit set_axes(foreign_node *node, const nifti_header *h)
{
    double spacing[7];
    const char *names[7];
    int64_t n = node->ndim;
    int code = (int)nifti_get(h, "xyzt_units", 0);
    for (int d = 0; d < node->ndim; d++) {
        spacing[d] = nifti_get(h, "pixdim", d + 1);
        names[d] = unit_name(d < 3 ? code & 7 : d == 3 ? code & 56 : 0);
    }
    CLI_TRY(foreign_set_numbers(node, "spacing", "float64", 1, &n, spacing));
    return code & 63 ? foreign_set_texts(node, "axis_units", names, (size_t)n) : CLI_OK;
}

/* Without a scale, the slope is 0 or not finite; 1 and 0 do not change the items. */
static cli_exit set_scale(foreign_node *node, const nifti_header *h)
{
    double slope = nifti_get(h, "scl_slope", 0), inter = nifti_get(h, "scl_inter", 0);
    if (slope == 0 || !isfinite(slope) || !isfinite(inter)) return CLI_OK;
    if (slope == 1 && inter == 0) return CLI_OK;
    CLI_TRY(foreign_set_numbers(node, "scale_factor", "float64", 0, NULL, &slope));
    return foreign_set_numbers(node, "add_offset", "float64", 0, NULL, &inter);
}

static cli_exit set_attributes(foreign_node *node, const nifti_header *h)
{
    CLI_TRY(set_matrix(node, "affine", h, nifti_best_affine));
    if (nifti_get(h, "sform_code", 0) != 0)
        CLI_TRY(set_matrix(node, "sform", h, nifti_sform));
    if (nifti_get(h, "qform_code", 0) != 0)
        CLI_TRY(set_matrix(node, "qform", h, nifti_qform));
    CLI_TRY(set_axes(node, h));
    CLI_TRY(set_scale(node, h));
    return nifti_fields_to_map(h, node, "nifti");
}

static int32_t load_int32(const uint8_t *b, bool big_endian)
{
    uint32_t value =
        big_endian ? (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3]
                   : (uint32_t)b[3] << 24 | (uint32_t)b[2] << 16 | (uint32_t)b[1] << 8 | b[0];
    return (int32_t)value;
}

static cli_exit lose_extensions(foreign_file *file)
{
    return foreign_lose(file, "/data: the extensions of the header, which are not valid");
}

/* Reads the extensions, which fill the bytes from `at` to `stop`. Each begins with its size, these
 * eight bytes included, and a code. */
static cli_exit read_extensions(foreign_file *file, const nifti_header *h, int64_t at,
                                int64_t stop)
{
    const nifti_file *own = file->own;
    value_list list = {0};
    size_t size;
    int64_t n = 0;
    if (stop - at > MAX_EXTENSIONS) return lose_extensions(file);
    uint8_t *bytes = cli_alloc((size_t)(stop - at));
    if (!bytes) return CLI_IO;
    cli_exit code = packed_read_some(own->head, bytes, (size_t)(stop - at), at, &size);
    size_t head = values_begin(&list, CATERVA_VALUE_LIST), used = 0;
    bool valid = true;
    while (code == CLI_OK && size - used >= 16 && valid) {
        int32_t extension = load_int32(bytes + used, h->big_endian);
        valid = extension >= 8 && (size_t)extension <= size - used;
        if (!valid) break;
        size_t pair = values_begin(&list, CATERVA_VALUE_LIST);
        values_add_int(&list, load_int32(bytes + used + 4, h->big_endian));
        values_add_bytes(&list, bytes + used + 8, (size_t)extension - 8);
        values_end(&list, pair, 2);
        used += (size_t)extension;
        n++;
    }
    values_end(&list, head, n);
    if (code == CLI_OK && n > 0)
        code = values_set(&list, &file->nodes[1], "nifti_extensions");
    if (code == CLI_OK && !valid) code = lose_extensions(file);
    values_free(&list);
    free(bytes);
    return code;
}

/* Four bytes after the header state whether there are extensions. */
static cli_exit find_extensions(foreign_file *file, const nifti_header *h, bool single)
{
    const nifti_file *own = file->own;
    uint8_t flag[4] = {0};
    size_t got;
    int64_t at = (int64_t)nifti_header_size(h->version);
    CLI_TRY(packed_read_some(own->head, flag, 4, at, &got));
    if (got < 4 || !flag[0]) return CLI_OK;
    return read_extensions(file, h, at + 4, single ? own->position : at + 4 + MAX_EXTENSIONS);
}

/* Opens the file with the header, and the one with the items. */
static cli_exit open_pair(foreign_file *file, nifti_header *h, bool *single)
{
    nifti_file *own = file->own;
    size_t got;
    if (!replace_extension(file->path, ".img", ".hdr", &own->head_path))
        own->head_path = cli_copy_text(file->path);
    if (!own->head_path) return CLI_IO;
    CLI_TRY(open_bytes(own->head_path, &own->head));
    CLI_TRY(packed_read_some(own->head, h->bytes, sizeof h->bytes, 0, &got));
    CLI_TRY(nifti_recognize(own->head_path, got, h, single));
    own->items = own->head;
    if (*single) return CLI_OK;
    if (!replace_extension(own->head_path, ".hdr", ".img", &own->items_path))
        return cli_fail(CLI_UNSUPPORTED,
                        "%s is the header of an image, but its name does not "
                        "end with .hdr",
                        own->head_path);
    own->items = NULL;
    return own->items_path ? open_bytes(own->items_path, &own->items) : CLI_IO;
}

static cli_exit open_nifti(foreign_file *file)
{
    nifti_header h = {.version = 1};
    bool single;
    int64_t size;
    nifti_file *own = cli_alloc(sizeof *own);
    if (!own) return CLI_IO;
    *own = (nifti_file){0};
    file->own = own;
    file->close = close_file;
    file->read = read_box;
    CLI_TRY(open_pair(file, &h, &single));
    double offset = nifti_get(&h, "vox_offset", 0);
    int64_t least = single ? (int64_t)nifti_header_size(h.version) + 4 : 0;
    own->position = offset >= (double)least && offset < 9e18 ? (int64_t)offset : least;
    if (!foreign_add(file, "/", true)) return CLI_IO;
    foreign_node *node = foreign_add(file, "/data", false);
    if (!node) return CLI_IO;
    CLI_TRY(set_shape(file, node, &h));
    CLI_TRY(items_size(file->path, node, &size));
    if (size > INT64_MAX - own->position)
        return cli_fail(CLI_CORRUPT, "%s: the items begin at byte %lld", file->path,
                        (long long)own->position);
    CLI_TRY(packed_expect(own->items, own->position + size));
    CLI_TRY(set_attributes(node, &h));
    return find_extensions(file, &h, single);
}

/* ---- Writing ---------------------------------------------------------------------------- */

typedef struct nifti_writer {
    output head, items; /* of a pair; `items` alone is a single file */
    bool single, is_packed, begun, has_spool;
    spool spool;
    nifti_header h;
    uint8_t *extensions;
    size_t extensions_size;
    int64_t position, size; /* of the items */
} nifti_writer;

static void release(nifti_writer *w)
{
    output_abandon(&w->head);
    output_abandon(&w->items);
    spool_close(&w->spool);
    free(w->extensions);
    free(w);
}

static void abandon(foreign_writer *self) { release(self->own); }

static cli_exit put(void *own, const void *bytes, size_t size, int64_t position)
{
    nifti_writer *w = own;
    if (w->has_spool) return spool_put(&w->spool, bytes, size, position);
    return output_write_at(&w->items, bytes, size, position);
}

static cli_exit write_box(foreign_writer *self, const foreign_node *array,
                          const int64_t *start, const int64_t *stop, const void *src)
{
    nifti_writer *w = self->own;
    return items_write(put, w, w->has_spool ? 0 : w->position, array, start, stop, src);
}

/* Returns NIfTI's type of a dtype, and its byte order; NULL if there is none. */
static const struct type *type_of(const char *dtype, bool *big_endian)
{
    bool ordered = *dtype == '<' || *dtype == '>';
    if (ordered) *big_endian = *dtype == '>';
    for (size_t i = 0; i < N_TYPES; i++)
        if (strcmp(types[i].dtype, ordered ? dtype + 1 : dtype) == 0) return &types[i];
    return NULL;
}

static bool fits_version_1(const foreign_node *node)
{
    for (int d = 0; d < node->ndim; d++)
        if (node->shape[d] > SHRT_MAX) return false;
    return true;
}

/* Sets the lengths, unless the header's fields already describe the shape in a way of their own. */
static void put_shape(nifti_header *h, const foreign_node *node)
{
    int ndim;
    int64_t shape[7];
    bool same = nifti_shape(h, &ndim, shape) && ndim == node->ndim;
    for (int d = 0; d < node->ndim && same; d++) same = shape[d] == node->shape[d];
    if (same) return;
    nifti_set(h, "dim", 0, node->ndim);
    for (int d = 0; d < 7; d++)
        nifti_set(h, "dim", d + 1, d < node->ndim ? (double)node->shape[d] : 1);
}

/* Sets voxel sizes and units of an array that is not from NIfTI. */
static void put_axes(nifti_header *h, const foreign_node *node)
{
    double spacing[CATERVA_MAX_DIMS], affine[16];
    size_t n = values_numbers(values_of(node, "spacing"), spacing, CATERVA_MAX_DIMS);
    bool has_affine = values_numbers(values_of(node, "affine"), affine, 16) == 16;
    packed_value list = values_of(node, "axis_units"), key, unit;
    int code = 0;
    nifti_set(h, "pixdim", 0, 1);
    for (int d = 0; d < 7; d++) {
        double size = 1;
        if (n == (size_t)node->ndim && d < node->ndim && spacing[d] > 0)
            size = spacing[d];
        else if (has_affine && d < 3)
            size = sqrt(affine[d] * affine[d] + affine[4 + d] * affine[4 + d] +
                        affine[8 + d] * affine[8 + d]);
        nifti_set(h, "pixdim", d + 1, size);
    }
    size_t at = 0;
    for (int d = 0; d < 4 && values_next(list, &at, &key, &unit); d++)
        for (size_t i = 0; i < N_UNITS && (d == 0 || d == 3); i++)
            if (values_is(unit, units[i].name) && (units[i].code > 3) == (d == 3))
                code |= units[i].code;
    nifti_set(h, "xyzt_units", 0, code);
}

/* Sets the sform if the array's affine is another one than the header's, as nibabel does. */
static void put_affine(nifti_header *h, const foreign_node *node)
{
    static const char *const rows[] = {"srow_x", "srow_y", "srow_z"};
    double affine[16];
    nifti_matrix best;
    if (values_numbers(values_of(node, "affine"), affine, 16) != 16) return;
    nifti_best_affine(h, best);
    bool same = true;
    for (int i = 0; i < 12; i++) {
        double limit = 1e-6 * (1 + fabs(best[i / 4][i % 4]));
        same &= fabs(affine[i] - best[i / 4][i % 4]) <= limit || isnan(best[i / 4][i % 4]);
    }
    if (same) return;
    for (int i = 0; i < 12; i++) nifti_set(h, rows[i / 4], i % 4, affine[i]);
    nifti_set(h, "sform_code", 0, 2); /* aligned to something */
    nifti_set(h, "qform_code", 0, 0);
}

/* Sets the scale. That of the header is kept if it means the same. */
static void put_scale(nifti_header *h, const foreign_node *node)
{
    double slope = 1, inter = 0, was = nifti_get(h, "scl_slope", 0);
    bool has_slope = values_numbers(values_of(node, "scale_factor"), &slope, 1) == 1;
    bool has_inter = values_numbers(values_of(node, "add_offset"), &inter, 1) == 1;
    bool none = was == 0 || !isfinite(was) || (was == 1 && nifti_get(h, "scl_inter", 0) == 0);
    if (none && !has_slope && !has_inter) return;
    nifti_set(h, "scl_slope", 0, slope);
    nifti_set(h, "scl_inter", 0, inter);
}

/* Packs the extensions as the file has them. */
static cli_exit put_extensions(nifti_writer *w, const foreign_node *node)
{
    packed_value list = values_of(node, "nifti_extensions"), key, pair, code, value;
    size_t size;
    for (size_t at = 0; values_next(list, &at, &key, &pair);) {
        size_t in = 0;
        double number;
        if (!values_next(pair, &in, &key, &code) || !values_next(pair, &in, &key, &value))
            continue;
        const char *bytes = values_text(value, &size);
        if (!bytes || size > MAX_EXTENSIONS || values_numbers(code, &number, 1) != 1)
            continue;
        size_t padded = (size + 8 + 15) / 16 * 16;
        uint8_t *larger = realloc(w->extensions, w->extensions_size + padded);
        if (!larger) return cli_fail(CLI_IO, "out of memory");
        w->extensions = larger;
        larger += w->extensions_size;
        memset(larger, 0, padded);
        for (int i = 0; i < 4; i++) {
            int shift = 8 * (w->h.big_endian ? 3 - i : i);
            larger[i] = (uint8_t)(padded >> shift);
            larger[4 + i] = (uint8_t)((uint32_t)(int32_t)number >> shift);
        }
        memcpy(larger + 8, bytes, size);
        w->extensions_size += padded;
    }
    return CLI_OK;
}

/* Sets where the items begin: after the extensions, or later if the header says so. */
static void put_position(nifti_writer *w)
{
    double was = nifti_get(&w->h, "vox_offset", 0);
    int64_t least = 0;
    if (w->single) {
        least = (int64_t)(nifti_header_size(w->h.version) + 4 + w->extensions_size);
        least = (least + 15) / 16 * 16;
    }
    bool keep = was >= (double)least && was <= (double)least + GAP_KEPT;
    w->position = keep ? (int64_t)was : least;
    nifti_set(&w->h, "vox_offset", 0, (double)w->position);
}

/* Makes the header, from the map of one that was read, or with defaults. */
static void make_header(nifti_writer *w, const foreign_node *node, const struct type *type,
                        bool big_endian)
{
    packed_value map = values_of(node, "nifti");
    double size = 0;
    values_numbers(values_find(map, "sizeof_hdr"), &size, 1);
    int version = (int)size == (int)nifti_header_size(2) || !fits_version_1(node) ? 2 : 1;
    nifti_begin(&w->h, version, big_endian, w->single);
    nifti_fields_from_map(&w->h, map);
    if ((int)nifti_get(&w->h, "datatype", 0) != type->code) {
        nifti_set(&w->h, "datatype", 0, type->code);
        nifti_set(&w->h, "bitpix", 0, type->bits);
    }
    if (!map.bytes) put_axes(&w->h, node);
    put_shape(&w->h, node);
    put_affine(&w->h, node);
    put_scale(&w->h, node);
}

/* Reports what the format cannot hold. */
static cli_exit lose(foreign_writer *self, const foreign_node *node)
{
    static const char *const known[] = {"affine",     "sform",      "qform",
                                        "spacing",    "axis_units", "scale_factor",
                                        "add_offset", "nifti",      "nifti_extensions"};
    for (size_t i = 0; i < node->n_attributes; i++) {
        bool is_known = false;
        for (size_t j = 0; j < sizeof known / sizeof known[0] && !node->is_group; j++)
            is_known |= strcmp(known[j], node->attributes[i].name) == 0;
        if (!is_known)
            CLI_TRY(foreign_lose_writing(self, "%s: the attribute %s", node->key,
                                         node->attributes[i].name));
    }
    for (int d = 0; node->dims && d < node->ndim; d++)
        if (node->dims[d] && (d > 6 || strcmp(node->dims[d], axis_names[d]) != 0))
            CLI_TRY(foreign_lose_writing(self, "%s: the name %s of axis %d", node->key,
                                         node->dims[d], d));
    return CLI_OK;
}

static cli_exit add(foreign_writer *self, foreign_node *node)
{
    nifti_writer *w = self->own;
    if (node->is_group) return lose(self, node);
    if (w->begun)
        return cli_fail(CLI_UNSUPPORTED, "%s: a NIfTI image is one array; %s is another one",
                        self->path, node->key);
    size_t size;
    const char *order =
        values_text(values_find(values_of(node, "nifti"), "byte_order"), &size);
    bool big_endian = order && size == 1 && *order == '>';
    const struct type *type = type_of(node->dtype, &big_endian);
    if (!type)
        return cli_fail(CLI_UNSUPPORTED, "%s: NIfTI has no type for items of the dtype %s",
                        self->path, node->dtype);
    if (node->ndim < 1 || node->ndim > 7)
        return cli_fail(CLI_UNSUPPORTED, "%s: a NIfTI image has 1 to 7 axes, but %s has %d",
                        self->path, node->key, node->ndim);
    CLI_TRY(lose(self, node));
    make_header(w, node, type, big_endian);
    CLI_TRY(put_extensions(w, node));
    put_position(w);
    CLI_TRY(items_size(self->path, node, &w->size));
    node->first_axis_fastest = true;
    memset(node->chunk_shape, 0, sizeof node->chunk_shape);
    w->begun = true;
    w->has_spool = w->is_packed || !w->items.seekable;
    return w->has_spool ? spool_open(&w->spool, self->path) : CLI_OK;
}

/* Writes the header, the extensions, and zeros up to the items of a single file. */
static cli_exit write_head(nifti_writer *w, packer *p)
{
    static const uint8_t zeros[4096];
    const uint8_t flag[4] = {w->extensions_size > 0};
    size_t size = nifti_header_size(w->h.version);
    CLI_TRY(packer_write(p, w->h.bytes, size));
    if (w->single || w->extensions_size > 0) CLI_TRY(packer_write(p, flag, 4));
    CLI_TRY(packer_write(p, w->extensions, w->extensions_size));
    int64_t left = w->single ? w->position - (int64_t)(size + 4 + w->extensions_size) : 0;
    for (int64_t n; left > 0; left -= n) {
        n = left < (int64_t)sizeof zeros ? left : (int64_t)sizeof zeros;
        CLI_TRY(packer_write(p, zeros, (size_t)n));
    }
    return CLI_OK;
}

static cli_exit write_pair_head(nifti_writer *w)
{
    packer p;
    cli_exit code = packer_begin(&p, &w->head, w->is_packed ? PACKING_GZIP : PACKING_NONE);
    if (code == CLI_OK) code = write_head(w, &p);
    return packer_end(&p, code);
}

static cli_exit write_items(nifti_writer *w)
{
    packer p;
    cli_exit code = packer_begin(&p, &w->items, w->is_packed ? PACKING_GZIP : PACKING_NONE);
    if (code == CLI_OK && w->single) code = write_head(w, &p);
    if (code == CLI_OK && w->has_spool) code = packer_write_spool(&p, &w->spool, 0, w->size);
    code = packer_end(&p, code);
    bool is_whole =
        w->has_spool || code != CLI_OK || ftruncate(w->items.fd, w->position + w->size) == 0;
    return is_whole ? code : cli_fail_sys("cannot write %s", w->items.path);
}

static cli_exit finish(foreign_writer *self)
{
    nifti_writer *w = self->own;
    cli_exit code = CLI_OK;
    if (!w->begun)
        code = cli_fail(CLI_UNSUPPORTED, "%s: a NIfTI image needs one array", self->path);
    if (code == CLI_OK && !w->single) code = write_pair_head(w);
    if (code == CLI_OK) code = write_items(w);
    if (code == CLI_OK) code = output_finish(&w->items);
    if (code == CLI_OK && !w->single) code = output_finish(&w->head);
    release(w);
    return code;
}

static cli_exit create_nifti(foreign_writer *writer, bool force)
{
    char *head = NULL, *items = NULL;
    nifti_writer *w = cli_alloc(sizeof *w);
    if (!w) return CLI_IO;
    *w = (nifti_writer){.head.fd = -1, .items.fd = -1, .spool.fd = -1, .single = true};
    size_t size = strlen(writer->path);
    w->is_packed = size > 3 && strcasecmp(writer->path + size - 3, ".gz") == 0;
    if (replace_extension(writer->path, ".hdr", ".img", &items)) {
        w->single = false;
        head = items ? cli_copy_text(writer->path) : NULL;
    } else if (replace_extension(writer->path, ".img", ".hdr", &head)) {
        w->single = false;
        items = head ? cli_copy_text(writer->path) : NULL;
    }
    bool has_names = w->single || (head && items);
    cli_exit code = has_names ? CLI_OK : CLI_IO;
    if (code == CLI_OK) code = output_open(&w->items, items ? items : writer->path, force);
    if (code == CLI_OK && !w->single) code = output_open(&w->head, head, force);
    free(head);
    free(items);
    if (code != CLI_OK) {
        release(w);
        return code;
    }
    writer->own = w;
    writer->add = add;
    writer->write = write_box;
    writer->finish = finish;
    writer->abandon = abandon;
    return CLI_OK;
}

const foreign_format foreign_nifti = {FOREIGN_INTERFACE, "nifti", open_nifti, create_nifti};

/* Plug-in hdf5. Reads items of one dataset at a time, with a bounded cache of chunks, and Blosc2 chunks
 * as they are stored. */
#include "read.h"

#include "formats/json.h"

#include <caterva_upkeep.h>
#include <stdlib.h>
#include <string.h>

#define CACHE_BYTES ((size_t)64 << 20)   /* at most, of one dataset */
#define MOVED_BYTES ((size_t)64 << 20)   /* larger chunks are decoded */
#define PIECE 65536 /* texts that are read together */

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
        code = h5_read_fail(r, key);
    for (size_t i = 0; i < n && code == CLI_OK; i++) measure(texts[i], out);
    if (code == CLI_OK && n > 0) H5Dvlen_reclaim(type->memory, to, H5P_DEFAULT, texts);
    free(texts);
    h5_close(to);
    h5_close(from);
    return code;
}

cli_exit h5_scan_texts(const reader *r, hid_t set, const h5_type *type, const dataset *own,
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

cli_exit h5_find_blocks(const reader *r, hid_t set, hid_t space, hid_t properties,
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

/* ---- Items ------------------------------------------------------------------------------- */

void h5_close_set(reader *r)
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
        if (filter < 0) return h5_read_fail(r, node->key);
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
    h5_close_set(r);
    hid_t access = access_of(node);
    r->dataset = H5Dopen2(r->id, ((const dataset *)node->own)->path, access);
    h5_close(access);
    hid_t properties = r->dataset >= 0 ? H5Dget_create_plist(r->dataset) : -1;
    if (properties < 0) return h5_read_fail(r, node->key);
    cli_exit code = check_filters(r, node, properties);
    r->is_deflated = h5_pipeline_of(properties, &r->pipeline);
    h5_close(properties);
    if (code != CLI_OK) return code;
    hid_t type = H5Dget_type(r->dataset);
    r->space = H5Dget_space(r->dataset);
    const char *problem = type >= 0 && r->space >= 0 ? h5_type_of(type, &r->type) : "";
    if (!problem) r->is_deflated = r->is_deflated && H5Tequal(type, r->type.memory) > 0;
    h5_close(type);
    if (problem) return h5_read_fail(r, node->key);
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
        return h5_read_fail(r, node->key);
    if (H5Dread(r->dataset, r->type.memory, memory, r->space, H5P_DEFAULT, dst) < 0)
        return h5_read_fail(r, node->key);
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
    if (memory < 0) return h5_read_fail(r, node->key);
    if (q.is_cropped || r->type.text == H5_ANY_LENGTH) {
        code = read_apart(r, node, start, stop, &q, memory, dst);
    } else {
        /* libhdf5 leaves the memory as it is between fields and, if the file asks for it, where no items
         * were written. */
        if (q.is_clipped)
            fill_all(node, &q, dst);
        else
            memset(dst, 0, q.n * q.element);
        code = read_part(r, node, &q, memory, dst);
    }
    h5_close(memory);
    return code;
}

cli_exit h5_read_items(foreign_file *file, const foreign_node *node, const int64_t *start,
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

/* Whether nothing of a dataset is stored. Parts of a virtual one are in other files. */
static bool is_never_written(const reader *r, const dataset *own)
{
    h5_begin();
    hid_t set = H5Dopen2(r->id, own->path, H5P_DEFAULT);
    hid_t properties = set >= 0 ? H5Dget_create_plist(set) : -1;
    H5D_layout_t layout = properties >= 0 ? H5Pget_layout(properties) : H5D_VIRTUAL;
    bool is_stored = layout == H5D_VIRTUAL || H5Dget_storage_size(set) > 0;
    h5_close(properties);
    h5_close(set);
    return !is_stored;
}

bool h5_is_fill(foreign_file *file, const foreign_node *node, const int64_t *start,
                const int64_t *stop)
{
    reader *r = file->own;
    const dataset *own = node->own;
    hsize_t at[CATERVA_MAX_DIMS];
    if (node->ndim == 0 || node->ndim != own->ndim) return false;
    if (r->node != node) return is_never_written(r, own);
    if (node->chunk_shape[0] == 0 || r->type.text == H5_ANY_LENGTH) return false;
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

cli_exit h5_read_stored(foreign_file *file, const foreign_node *node, int64_t index,
                        void **chunk, size_t *size)
{
    h5_begin();
    cli_guard(file->path, "libhdf5", 0);
    cli_exit code = read_frame(file->own, node, index, chunk, size);
    cli_unguard();
    return code == CLI_OK && *size > 0 ? unwrap(node, chunk, size) : code;
}

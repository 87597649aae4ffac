/* Room: upkeep. Any array as a Zarr v3 array whose chunks are its blocks, one by one. What a block
 * becomes is decided by the bytes of its chunk (format/dual.h), so that one codec, `blosc`, fits all
 * arrays. */
#include "array/array.h"
#include "base/arith.h"
#include "engine/items/copy.h"
#include "format/dual.h"
#include "frame/fetch.h"
#include "frame/layout.h"
#include "upkeep/zarr.h"

#include <caterva_upkeep.h>
#include <string.h>

/* A block on its way. */
typedef struct taking {
    caterva_array *array;
    const cv_grid *grid;
    int64_t chunk, block; /* valid if chunks are whole blocks */
    int64_t start[CV_MAX_DIMS], stop[CV_MAX_DIMS];
    cv_buffer *out;
} taking;

static cv_status check_handle(caterva_array *array, cv_error *err)
{
    CV_TRY(cv_array_check(array, err));
    if (!array->pending) return CV_OK;
    return cv_fail(err, CATERVA_EINVAL, -1,
                   "an array that is open for writing cannot be presented as a Zarr array");
}

/* Passes the bytes to the caller. */
static cv_status give(cv_buffer *buffer, cv_status status, void **bytes, size_t *size)
{
    if (status != CV_OK || buffer->size == 0) {
        cv_buffer_free(buffer);
        return status;
    }
    *bytes = buffer->data;
    *size = buffer->size;
    return CV_OK;
}

/* ---- Blocks as stored ------------------------------------------------------------- */

/* Appends nothing for the fill. */
static cv_status put_item(const taking *t, const uint8_t *item, cv_error *err)
{
    enum { LZ4 = 1 }; /* as in the header of a chunk; every build of Blosc 1 has it */
    const uint8_t *fill = t->array->fill;
    int64_t size = t->grid->item_size, at = 0;
    while (at < size && item[at] == (fill ? fill[at] : 0)) at++;
    if (at == size) return CV_OK;
    return cv_dual_write_item(LZ4, item, size, t->grid->block_bytes, t->out, err);
}

/* A chunk of one item. */
static cv_status put_special(const taking *t, cv_special special, const uint8_t *item,
                             cv_error *err)
{
    if (item) return put_item(t, item, err); /* CV_SPECIAL_VALUE */
    if (special == CV_SPECIAL_NAN) return put_item(t, cv_nan_item(t->grid->item_size), err);
    uint8_t *zeros = cv_calloc(1, (size_t)t->grid->item_size);
    if (!zeros) return cv_fail_memory(err, (size_t)t->grid->item_size, "an item");
    cv_status status = put_item(t, zeros, err);
    cv_free(zeros);
    return status;
}

/* Sets *done to false if the streams are none that Blosc 1 can decode. */
static cv_status put_streams(const taking *t, const cv_layout *layout,
                             const cv_packed_block *packed, bool *done, cv_error *err)
{
    const cv_block_range range = {0, packed->streams_size};
    uint8_t item[UINT8_MAX];
    bool is_long = t->grid->item_size > UINT8_MAX;
    cv_dual_block found = cv_dual_look(packed->streams, &layout->header, &range,
                                       is_long ? 1 : t->grid->item_size, item);
    *done = found.kind != CV_DUAL_NEITHER;
    if (!*done) return CV_OK;
    if (found.kind == CV_DUAL_ITEM && !is_long) return put_item(t, item, err);
    return cv_dual_write_block(packed->streams, &layout->header, &range, 0, t->out, err);
}

static cv_status put_stored(const taking *t, const cv_chunk_ref *ref, const cv_layout *layout,
                            bool *done, cv_error *err)
{
    enum { BUDGET = 1 << 20 };
    int64_t n = 1;
    cv_wanted wanted = {.block = t->block};
    cv_buffer buffer = {0};
    *done = layout->access == CV_ACCESS_BLOCK && cv_dual_fits(&layout->header);
    if (!*done) return CV_OK;
    cv_status status =
        cv_fetch_blocks(t->array->frame, layout, &wanted, &n, false, BUDGET, &buffer, err);
    if (status == CV_OK)
        status = cv_layout_check_block(layout, ref, t->block, wanted.packed.streams, err);
    if (status == CV_OK) status = put_streams(t, layout, &wanted.packed, done, err);
    cv_buffer_free(&buffer);
    return status;
}

/* Sets *done to false, and appends nothing, for a block that must be decoded. */
static cv_status put_undecoded(const taking *t, bool *done, cv_error *err)
{
    cv_chunk_ref ref;
    cv_layout *layout;
    cv_frame *frame = t->array->frame;
    cv_snapshot *snapshot = t->array->snapshot;
    *done = true;
    CV_TRY(cv_snapshot_find(snapshot, frame->store, t->chunk, &ref, err));
    if (ref.kind != CV_REF_STORED)
        return put_special(t, ref.kind == CV_REF_NAN ? CV_SPECIAL_NAN : CV_SPECIAL_ZEROS,
                           NULL, err);
    CV_TRY(cv_layout_get(frame->layouts, snapshot, &ref, &layout, err));
    cv_special special = layout->header.special;
    cv_status status = special == CV_SPECIAL_NONE
                           ? put_stored(t, &ref, layout, done, err)
                           : put_special(t, special, layout->item, err);
    cv_layout_release(layout);
    return status;
}

/* ---- Decoded blocks ----------------------------------------------------------------- */

/* The items go where an uncompressed chunk of one block has them. */
static cv_status put_decoded(const taking *t, cv_error *err)
{
    const cv_grid *grid = t->grid;
    size_t size = (size_t)grid->block_bytes;
    int64_t strides[CV_MAX_DIMS], stride = grid->item_size;
    const cv_chunk_header header = {
        .memcpyed = true,
        .type_size = (uint8_t)(grid->item_size > UINT8_MAX ? 1 : grid->item_size),
        .block_size = (int32_t)size};
    cv_buffer chunk = {0};
    for (int d = grid->ndim - 1; d >= 0; stride *= grid->block_shape[d--])
        strides[d] = stride;
    caterva_selection box = CATERVA_SELECTION_INIT;
    caterva_buffer items = CATERVA_BUFFER_INIT;
    box.start = t->start;
    box.stop = t->stop;
    items.strides = strides;
    items.ndim = grid->ndim;
    items.size = size;
    cv_status status = cv_buffer_resize(&chunk, CV_CHUNK_HEADER_SIZE + size, err);
    if (status == CV_OK) {
        items.data = chunk.data + CV_CHUNK_HEADER_SIZE;
        memset(items.data, 0, size);
        status = caterva_read_selection(t->array, &box, &items, err);
    }
    if (status == CV_OK)
        status = cv_dual_write_block(chunk.data, &header, NULL, 0, t->out, err);
    cv_buffer_free(&chunk);
    return status;
}

/* ---- The whole -------------------------------------------------------------------------- */

/* Finds the items, and chunk and block if chunks are whole blocks (*is_block). */
static cv_status find(taking *t, const int64_t *index, bool *is_block, cv_error *err)
{
    const cv_grid *grid = t->grid;
    *is_block = true;
    for (int d = 0; d < grid->ndim; d++) {
        int64_t length = grid->block_shape[d], n = cv_ceil_div(grid->shape[d], length);
        if (index[d] < 0 || index[d] >= n)
            return cv_fail(err, CATERVA_ERANGE, -1,
                           "block %lld on axis %d is not in [0, %lld)", (long long)index[d],
                           d, (long long)n);
        t->start[d] = index[d] * length;
        t->stop[d] = cv_min_i64(grid->shape[d], t->start[d] + length);
        *is_block = *is_block && grid->chunk_shape[d] % length == 0;
        t->chunk = t->chunk * grid->chunk_counts[d] + t->start[d] / grid->chunk_shape[d];
        t->block =
            t->block * grid->block_counts[d] + t->start[d] % grid->chunk_shape[d] / length;
    }
    return CV_OK;
}

static cv_status make_chunk(caterva_array *array, const int64_t *index, cv_buffer *out,
                            cv_error *err)
{
    bool done;
    taking t = {.array = array, .grid = &array->snapshot->grid, .out = out};
    if (!index && t.grid->ndim > 0) return cv_fail(err, CATERVA_EINVAL, -1, "index is NULL");
    CV_TRY(find(&t, index, &done, err));
    if (done) CV_TRY(put_undecoded(&t, &done, err));
    return done ? CV_OK : put_decoded(&t, err);
}

caterva_status caterva_zarr_chunk(caterva_array *array, const int64_t *index, void **bytes,
                                  size_t *size, caterva_error *err)
{
    cv_buffer out = {0};
    CV_TRY(check_handle(array, err));
    if (!bytes || !size) return cv_fail(err, CATERVA_EINVAL, -1, "bytes or size is NULL");
    *bytes = NULL;
    *size = 0;
    return give(&out, make_chunk(array, index, &out, err), bytes, size);
}

caterva_status caterva_zarr_metadata(caterva_array *array, char **text, size_t *size,
                                     caterva_error *err)
{
    cv_buffer out = {0};
    void *bytes = NULL;
    CV_TRY(check_handle(array, err));
    if (!text || !size) return cv_fail(err, CATERVA_EINVAL, -1, "text or size is NULL");
    *text = NULL;
    *size = 0;
    cv_status status = cv_zarr_describe(array, array->snapshot, false, &out, err);
    if (status == CV_OK) status = cv_buffer_append(&out, "", 1, err);
    CV_TRY(give(&out, status, &bytes, size));
    *text = bytes;
    --*size;
    return CV_OK;
}

/* Room: engine/read. Single chunks, for those who go over an array chunk by chunk or
 * move chunks without decoding them. Bytes that come in are anyone's: they go
 * through the same checks as a file's, and are decoded once, before they become
 * part of the array. */
#include "engine/read/chunks.h"

#include "base/arith.h"
#include "base/heap.h"
#include "engine/read/walk.h"
#include "frame/layout.h"
#include "frame/lookup.h"
#include "frame/txn.h"

#include <caterva_upkeep.h>
#include <string.h>

/* ---- Blocks ------------------------------------------------------------- */

static void place_block(const cv_grid *grid, int64_t chunk, caterva_block_info *out)
{
    int64_t index[CV_MAX_DIMS];
    cv_grid_chunk_index(grid, chunk, index);
    cv_grid_block_index(grid, out->block, out->index);
    for (int d = 0; d < grid->ndim; d++) {
        int64_t origin = index[d] * grid->chunk_shape[d];
        int64_t end = cv_min_i64(grid->shape[d], origin + grid->chunk_shape[d]);
        int64_t start = origin + out->index[d] * grid->block_shape[d];
        out->start[d] = cv_min_i64(start, end);
        out->stop[d] = cv_min_i64(start + grid->block_shape[d], end);
    }
}

cv_status cv_describe_block(cv_frame *frame, cv_snapshot *snapshot, int64_t chunk,
                            int64_t block, caterva_block_info *out, cv_error *err)
{
    cv_chunk_ref ref;
    CV_TRY(cv_snapshot_find(snapshot, frame->store, chunk, &ref, err));
    *out = (caterva_block_info){.block = block};
    place_block(&snapshot->grid, chunk, out);
    if (ref.kind != CV_REF_STORED) return CV_OK;

    cv_layout *layout;
    CV_TRY(cv_layout_get(frame->layouts, snapshot, &ref, &layout, err));
    if (layout->header.special == CV_SPECIAL_NONE)
        out->stored_bytes = layout->n_blocks > 0
                                ? layout->blocks[block].end - layout->blocks[block].start
                                : snapshot->grid.block_bytes;
    cv_layout_release(layout);
    return CV_OK;
}

/* ---- Out, decoded ------------------------------------------------------- */

/* The one chunk of a stage. */
typedef struct one_chunk {
    cv_walk walk;
    int64_t chunk;
} one_chunk;

static cv_status list_chunk(void *context, int64_t unit, cv_worker *worker,
                            cv_stage_list *list, cv_error *err)
{
    one_chunk *one = context;
    (void)unit;
    return cv_walk_list_missing(&one->walk, one->chunk, worker, list, err);
}

static cv_status decode_chunk(const cv_source *source, int64_t chunk, uint8_t *dst,
                              cv_worker *worker, cv_error *err)
{
    one_chunk one = {.chunk = chunk};
    const cv_stage_plan plan = {.n_units = 1,
                                .bytes = source->snapshot->grid.chunk_bytes,
                                .threads = 1,
                                .list = list_chunk,
                                .context = &one};
    cv_stage stage;
    cv_walk_init(&one.walk, source, (cv_request){NULL, NULL}, &cv_to_places, NULL);
    CV_TRY(cv_stage_init(&stage, source, &plan, err));
    cv_status status = cv_stage_enter(&stage, 0, worker, err);
    if (status == CV_OK) {
        status = cv_chunk_fill(source, chunk, dst, worker, err);
        cv_stage_leave(&stage, 0, worker);
    }
    cv_stage_destroy(&stage);
    return status;
}

cv_status cv_chunk_decode(const cv_source *source, int64_t chunk, uint8_t *dst, cv_error *err)
{
    cv_worker *worker;
    CV_TRY(cv_worker_take(source->workers, &worker, err));
    cv_status status = decode_chunk(source, chunk, dst, worker, err);
    cv_worker_give(source->workers, worker);
    return status;
}

/* ---- Out, as stored ------------------------------------------------------ */

static cv_status encode_special(const cv_source *source, const cv_chunk_ref *ref,
                                cv_buffer *out, cv_error *err)
{
    const cv_codec_spec *spec = &source->workers->spec;
    switch (ref->kind) {
    case CV_REF_ITEM: return cv_encode_repeated(spec, ref->item, out, err);
    case CV_REF_NAN: return cv_encode_empty(spec, CV_EMPTY_NAN, out, err);
    case CV_REF_UNINIT: return cv_encode_empty(spec, CV_EMPTY_UNINIT, out, err);
    default: return cv_encode_empty(spec, CV_EMPTY_ZEROS, out, err);
    }
}

cv_status cv_chunk_stored(const cv_source *source, int64_t chunk, cv_buffer *buffer,
                          const uint8_t **bytes, size_t *size, cv_error *err)
{
    cv_chunk_ref ref;
    CV_TRY(cv_source_find(source, chunk, &ref, err));
    if (ref.kind != CV_REF_STORED) {
        CV_TRY(encode_special(source, &ref, buffer, err));
        *bytes = buffer->data;
        *size = buffer->size;
        return CV_OK;
    }
    cv_layout *layout;
    CV_TRY(cv_layout_get(source->frame->layouts, source->snapshot, &ref, &layout, err));
    cv_status status = cv_fetch_chunk(source->frame, layout, buffer, bytes, err);
    if (status == CV_OK) status = cv_layout_check_chunk(layout, &ref, *bytes, err);
    *size = (size_t)layout->header.cbytes;
    if (status == CV_OK && *bytes == layout->chunk) { /* which goes with the layout */
        status = cv_buffer_resize(buffer, *size, err);
        if (status == CV_OK) *bytes = memcpy(buffer->data, layout->chunk, *size);
    }
    cv_layout_release(layout);
    return status;
}

/* ---- In ------------------------------------------------------------------ */

/* What opening a file checks of a chunk, on bytes at hand. */
static cv_status check_structure(const cv_pending *pending, int64_t chunk,
                                 const uint8_t *bytes, size_t size, cv_chunk_header *header,
                                 cv_error *err)
{
    const cv_grid *grid = &cv_txn_snapshot(pending->txn)->grid;
    cv_chunk_expect expect = {
        .chunk = chunk,
        .nbytes = grid->chunk_bytes,
        .block_size = grid->block_bytes,
        .item_size = grid->item_size,
        .max_cbytes = size > INT32_MAX ? INT32_MAX : (int64_t)size,
    };
    if (size < CV_CHUNK_HEADER_SIZE)
        return cv_fail(err, CATERVA_ECORRUPT, 0, "a chunk of %zu bytes, its header takes %d",
                       size, CV_CHUNK_HEADER_SIZE);
    CV_TRY(cv_chunk_header_parse(bytes, &expect, header, err));
    if ((size_t)header->cbytes != size)
        return cv_fail(err, CATERVA_ECORRUPT, 0, "chunk %lld takes %d bytes, %zu were given",
                       (long long)chunk, header->cbytes, size);
    return cv_codec_check_chunk(&pending->workers->spec, bytes, err);
}

/* A chunk that came, its header checked. */
typedef struct new_chunk {
    const cv_grid *grid;
    int64_t chunk;
    const uint8_t *bytes;
    cv_chunk_header header;
    cv_block_range *ranges;
} new_chunk;

/* Alone and as a part of its chunk: readers take the way that is shorter for them, and
 * what is no good may pass by one and not by the other. */
static cv_status check_block(const new_chunk *c, int32_t block, cv_worker *worker,
                             cv_error *err)
{
    cv_packed_block packed = {
        .chunk_header = c->bytes,
        .streams = (uint8_t *)c->bytes + c->ranges[block].start,
        .streams_size = c->ranges[block].end - c->ranges[block].start,
        .block = block,
        .n_blocks = (int32_t)c->grid->n_blocks,
    };
    int32_t size = (int32_t)c->grid->block_bytes;
    CV_TRY(cv_buffer_resize(&worker->block, (size_t)size, err));
    CV_TRY(cv_decode_block(worker->decoder, &packed, worker->block.data, size, err));
    return cv_decode_range(worker->decoder, c->bytes, c->header.cbytes, block * size, size,
                           worker->block.data, err);
}

static cv_status check_blocks(const new_chunk *c, cv_worker *worker, cv_error *err)
{
    cv_chunk_expect expect = {.chunk = c->chunk};
    CV_TRY(cv_block_starts_parse(&c->header, c->bytes + CV_CHUNK_HEADER_SIZE,
                                 c->grid->n_blocks, &expect, c->ranges, err));
    if (cv_codec_access(c->bytes) == CV_ACCESS_BLOCK) {
        for (int32_t b = 0; b < c->grid->n_blocks; b++)
            CV_TRY(check_block(c, b, worker, err));
        return CV_OK;
    }
    int32_t chunk_bytes = (int32_t)c->grid->chunk_bytes;
    CV_TRY(cv_buffer_resize(&worker->chunk, (size_t)chunk_bytes, err));
    return cv_decode_chunk(worker->decoder, c->bytes, c->header.cbytes, worker->chunk.data,
                           chunk_bytes, err);
}

static cv_status check_decodes(cv_pending *pending, new_chunk *c, cv_error *err)
{
    size_t size = (size_t)c->grid->n_blocks * sizeof c->ranges[0];
    cv_worker *worker;
    CV_TRY(cv_worker_take(pending->workers, &worker, err));
    c->ranges = cv_malloc(size);
    cv_status status = c->ranges ? check_blocks(c, worker, err)
                                 : cv_fail_memory(err, size, "a list of blocks");
    cv_free(c->ranges);
    cv_worker_give(pending->workers, worker);
    return status;
}

/* Stores bytes that are the caller's, with a block table of ours. */
static cv_status put_stored(cv_pending *pending, int64_t chunk, const uint8_t *bytes,
                            size_t size, cv_error *err)
{
    cv_buffer table = {0};
    cv_stored_chunk stored = {.bytes = bytes, .size = size, .table = &table};
    const cv_grid *grid = &cv_txn_snapshot(pending->txn)->grid;
    cv_status status = cv_table_make(grid, bytes, size, &table, &stored.name, err);
    if (status == CV_OK) status = cv_txn_put_stored(pending->txn, chunk, &stored, err);
    cv_buffer_free(&table);
    return status;
}

static cv_status put_checked(cv_pending *pending, int64_t chunk, const uint8_t *bytes,
                             const cv_chunk_header *header, cv_error *err)
{
    cv_ref_kind kind;
    switch (header->special) {
    case CV_SPECIAL_ZEROS: kind = CV_REF_ZEROS; break;
    case CV_SPECIAL_NAN: kind = CV_REF_NAN; break;
    case CV_SPECIAL_UNINIT: /* which means the fill, as long as that is due */
        kind = pending->fill_is_due ? CV_REF_ZEROS : CV_REF_UNINIT;
        break;
    default: return put_stored(pending, chunk, bytes, (size_t)header->cbytes, err);
    }
    return cv_txn_put_special(pending->txn, chunk, kind, err);
}

cv_status cv_chunk_put(cv_pending *pending, int64_t chunk, const uint8_t *bytes, size_t size,
                       cv_error *err)
{
    new_chunk c = {
        .grid = &cv_txn_snapshot(pending->txn)->grid, .chunk = chunk, .bytes = bytes};
    CV_TRY(check_structure(pending, chunk, bytes, size, &c.header, err));
    if (c.header.special == CV_SPECIAL_NONE && !c.header.memcpyed)
        CV_TRY(check_decodes(pending, &c, err));
    CV_TRY(put_checked(pending, chunk, bytes, &c.header, err));
    cv_pending_drop(pending, chunk);
    return CV_OK;
}

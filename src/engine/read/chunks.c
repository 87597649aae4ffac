/* Room: engine/read. Single chunks and blocks: description, space, and stored bytes in and out.
 * Bytes from the caller are checked like those of a file, and decoded once, before use. */
#include "engine/read/chunks.h"

#include "base/arith.h"
#include "base/heap.h"
#include "engine/read/walk.h"
#include "format/dual.h"
#include "frame/layout.h"
#include "frame/lookup.h"
#include "frame/txn.h"

#include <caterva_upkeep.h>
#include <string.h>

/* ---- Description ------------------------------------------------------------- */

static caterva_chunk_kind kind_of_special(cv_special special)
{
    switch (special) {
    case CV_SPECIAL_ZEROS: return CATERVA_CHUNK_ZEROS;
    case CV_SPECIAL_NAN: return CATERVA_CHUNK_NAN;
    case CV_SPECIAL_VALUE: return CATERVA_CHUNK_VALUE;
    case CV_SPECIAL_UNINIT: return CATERVA_CHUNK_UNINIT;
    default: return CATERVA_CHUNK_STORED;
    }
}

static caterva_chunk_kind kind_of_ref(cv_ref_kind kind)
{
    switch (kind) {
    case CV_REF_ZEROS: return CATERVA_CHUNK_ZEROS;
    case CV_REF_NAN: return CATERVA_CHUNK_NAN;
    case CV_REF_UNINIT: return CATERVA_CHUNK_UNINIT;
    default: return CATERVA_CHUNK_STORED;
    }
}

/* Sets *table_size to the bytes of the chunk's block table, or to 0 if it has no table. */
static cv_status describe(cv_frame *frame, cv_snapshot *snapshot, int64_t chunk,
                          caterva_chunk_info *out, int64_t *table_size, cv_error *err)
{
    const cv_index *index;
    CV_TRY(cv_snapshot_index(snapshot, frame->store, &index, err));
    cv_chunk_ref ref;
    CV_TRY(cv_chunk_ref_find(snapshot, index, chunk, &ref, err));

    *out =
        (caterva_chunk_info){.chunk = chunk, .position = -1, .kind = kind_of_ref(ref.kind)};
    *table_size = 0;
    cv_grid_chunk_index(&snapshot->grid, chunk, out->index);
    if (ref.kind != CV_REF_STORED) return CV_OK;

    cv_layout *layout;
    CV_TRY(cv_layout_get(frame->layouts, snapshot, &ref, &layout, err));
    out->kind = kind_of_special(layout->header.special);
    out->position = ref.object == CV_FRAME_OBJECT ? (int64_t)ref.pos : ref.object;
    out->stored_bytes = layout->header.cbytes;
    out->memcpyed = layout->header.memcpyed;
    if (ref.name != 0) *table_size = (int64_t)layout->table_size;
    cv_layout_release(layout);
    return CV_OK;
}

cv_status cv_describe_chunk(cv_frame *frame, cv_snapshot *snapshot, int64_t chunk,
                            caterva_chunk_info *out, cv_error *err)
{
    int64_t table_size;
    return describe(frame, snapshot, chunk, out, &table_size, err);
}

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

/* ---- Space ------------------------------------------------------------------- */

/* Counts the copy of the header, which repair uses, as live. A sealed state has such a copy. */
static cv_status add_header_copy(cv_frame *frame, const cv_snapshot *snapshot,
                                 int64_t *live_bytes, cv_error *err)
{
    cv_buffer bytes = {0};
    if (snapshot->seal == CV_SEAL_WHOLE) {
        *live_bytes += (int64_t)cv_tail_copy_size(snapshot);
        return CV_OK;
    }
    cv_header_copy copy;
    bool found;
    cv_status status = cv_tail_read_copy(snapshot, frame->store, &bytes, &copy, &found, err);
    if (status == CV_OK && found) *live_bytes += (int64_t)copy.size;
    cv_buffer_free(&bytes);
    return status;
}

/* Counts the layout area, which far readers use, as live. */
static cv_status add_layouts(cv_frame *frame, cv_snapshot *snapshot, int64_t *live_bytes,
                             cv_error *err)
{
    cv_layout_area area;
    CV_TRY(cv_layout_area_find(snapshot, frame->store, &area, err));
    *live_bytes += (int64_t)area.size;
    return CV_OK;
}

cv_status cv_measure(cv_frame *frame, cv_snapshot *snapshot, cv_watch *watch,
                     caterva_space *out, cv_error *err)
{
    const cv_frame_header *h = &snapshot->header;
    *out = (caterva_space){.live_bytes =
                               (int64_t)(h->header_size + snapshot->index_size +
                                         snapshot->footer.size + snapshot->trailer.size)};
    const cv_grid *grid = &snapshot->grid;
    const cv_index *index;
    int64_t same = 0; /* a special entry that was found valid; 0: none yet */
    cv_watch_expect(watch, grid->n_chunks * grid->chunk_bytes);
    CV_TRY(cv_snapshot_index(snapshot, frame->store, &index, err));
    CV_TRY(cv_snapshot_check_room(snapshot, frame->store, cv_index_count_stored(index), err));
    for (int64_t i = 0; i < grid->n_chunks; i++) {
        caterva_chunk_info chunk;
        int64_t table_size, next = cv_index_next(index, i, same);
        out->special_chunks += next - i;
        CV_TRY(cv_watch_tick(watch, (next - i + (i > 0)) * grid->chunk_bytes, err));
        i = next;
        if (i == grid->n_chunks) break;
        CV_TRY(describe(frame, snapshot, i, &chunk, &table_size, err));
        if (cv_offset_is_special(cv_index_get(index, i))) same = cv_index_get(index, i);
        bool stored = chunk.kind == CATERVA_CHUNK_STORED;
        out->stored_chunks += stored;
        out->special_chunks += !stored;
        out->unverified_chunks += chunk.stored_bytes > 0 && table_size == 0;
        out->live_bytes += chunk.stored_bytes + table_size;
    }
    CV_TRY(add_header_copy(frame, snapshot, &out->live_bytes, err));
    CV_TRY(add_layouts(frame, snapshot, &out->live_bytes, err));
    int64_t total = (int64_t)h->frame_size + (h->sparse ? h->cbytes : 0);
    out->dead_bytes = total > out->live_bytes ? total - out->live_bytes : 0;
    return CV_OK;
}

/* ---- Reading stored chunks ------------------------------------------------ */

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
    if (status == CV_OK && *bytes == layout->chunk) { /* the layout owns these bytes */
        status = cv_buffer_resize(buffer, *size, err);
        if (status == CV_OK) *bytes = memcpy(buffer->data, layout->chunk, *size);
    }
    cv_layout_release(layout);
    return status;
}

/* ---- Storing chunks ------------------------------------------------------- */

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
        return cv_fail(err, CATERVA_ECORRUPT, 0,
                       "a chunk of %zu bytes is smaller than its header of %d bytes", size,
                       CV_CHUNK_HEADER_SIZE);
    CV_TRY(cv_chunk_header_parse(bytes, &expect, header, err));
    if ((size_t)header->cbytes != size)
        return cv_fail(err, CATERVA_ECORRUPT, 0,
                       "the header of chunk %lld says %d bytes, but %zu were given",
                       (long long)chunk, header->cbytes, size);
    return cv_codec_check_chunk(&pending->workers->spec, bytes, err);
}

typedef struct new_chunk {
    const cv_grid *grid;
    int64_t chunk;
    const uint8_t *bytes;
    bool decode;
    cv_chunk_header header;
    cv_block_range *ranges;
} new_chunk;

static cv_status check_sizes(const new_chunk *c, int32_t block, cv_error *err)
{
    if (cv_dual_has_streams(c->bytes, &c->header, &c->ranges[block])) return CV_OK;
    return cv_fail(err, CATERVA_ECORRUPT, c->ranges[block].start,
                   "the streams of block %d of chunk %lld do not fit it", block,
                   (long long)c->chunk);
}

/* Decodes the block alone and within its chunk: corrupt bytes may pass only one of these tests. */
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
            CV_TRY(c->decode ? check_block(c, b, worker, err) : check_sizes(c, b, err));
        return CV_OK;
    }
    int32_t chunk_bytes = (int32_t)c->grid->chunk_bytes;
    CV_TRY(cv_buffer_resize(&worker->chunk, (size_t)chunk_bytes, err));
    return cv_decode_chunk(worker->decoder, c->bytes, c->header.cbytes, worker->chunk.data,
                           chunk_bytes, err);
}

static cv_status check_streams(cv_pending *pending, new_chunk *c, cv_error *err)
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
    case CV_SPECIAL_UNINIT: /* while the fill is due, UNINIT would mean the fill */
        kind = pending->fill_is_due ? CV_REF_ZEROS : CV_REF_UNINIT;
        break;
    default: return put_stored(pending, chunk, bytes, (size_t)header->cbytes, err);
    }
    return cv_txn_put_special(pending->txn, chunk, kind, err);
}

cv_status cv_chunk_put(cv_pending *pending, int64_t chunk, const uint8_t *bytes, size_t size,
                       bool decode, cv_error *err)
{
    new_chunk c = {.grid = &cv_txn_snapshot(pending->txn)->grid,
                   .chunk = chunk,
                   .bytes = bytes,
                   .decode = decode};
    CV_TRY(check_structure(pending, chunk, bytes, size, &c.header, err));
    if (c.header.special == CV_SPECIAL_NONE && !c.header.memcpyed)
        CV_TRY(check_streams(pending, &c, err));
    CV_TRY(put_checked(pending, chunk, bytes, &c.header, err));
    cv_pending_drop(pending, chunk);
    return CV_OK;
}

/* Room: engine/write. Encodes decoded blocks to stored chunks: from pieces, spliced with
 * stored streams, whole, or from dirty blocks. */
#include "engine/write/flush.h"

#include "base/arith.h"
#include "base/crc.h"
#include "base/heap.h"
#include "engine/items/copy.h"
#include "engine/read/walk.h"
#include "engine/run/thresholds.h"
#include "format/chunk_header.h"
#include "frame/layout.h"
#include "frame/txn.h"

#include <stdlib.h>
#include <string.h>

/* ---- Pieces ----
 *
 * A chunk is written from pieces, part by part:
 *
 *     pieces   | head | stored run ........ | new | stored run .... |
 *     parts    |       0       |       1        |       2       | 3 |
 *
 * A part is read, assembled and written while it is in the processor cache; a buffer for the
 * whole chunk would send each byte to memory and back. If the store can copy, long stored
 * runs do not pass through memory at all. */

enum { PART_BYTES = 256 * 1024, PAGE_BYTES = 4096 };

/* Used if the store can copy: larger parts are faster, and shorter runs pass through memory. */
enum { LARGE_PART_BYTES = 8192 * 1024, LEAST_COPY = 32 * 1024 };

static bool continues(const cv_piece *last, const cv_piece *next)
{
    if (last->bytes) return next->bytes == last->bytes + last->size;
    return !next->bytes && next->store == last->store && next->object == last->object &&
           next->pos == last->pos + last->size;
}

cv_status cv_pieces_add(cv_buffer *list, cv_piece piece, cv_error *err)
{
    if (piece.size == 0) return CV_OK;
    if (list->size > 0) {
        cv_piece *last = (cv_piece *)(void *)(list->data + list->size) - 1;
        if (continues(last, &piece)) {
            last->size += piece.size;
            return CV_OK;
        }
    }
    return cv_buffer_append(list, &piece, sizeof piece, err);
}

static bool store_copies(const cv_pieces_job *job)
{
    return job->store->ops->copy && job->object == CV_FRAME_OBJECT;
}

static uint64_t part_bytes(const cv_pieces_job *job)
{
    return store_copies(job) ? LARGE_PART_BYTES : PART_BYTES;
}

/* Parts end at pages of the store, so that no page is written twice; the first part is shorter. */
static uint64_t part_start(const cv_pieces_job *job, int64_t part)
{
    uint64_t start = (uint64_t)part * part_bytes(job);
    uint64_t before = job->pos % PAGE_BYTES;
    return start < before ? 0 : start - before;
}

int64_t cv_pieces_n_parts(const cv_pieces_job *job)
{
    uint64_t bytes = part_bytes(job);
    return (int64_t)((job->pos % PAGE_BYTES + job->size + bytes - 1) / bytes);
}

static cv_status take(const cv_pieces_job *job, const cv_piece *piece, uint64_t skip,
                      uint8_t *dst, size_t size, cv_error *err)
{
    cv_store *store = piece->store ? piece->store : job->store;
    if (!piece->bytes)
        return cv_store_read(store, piece->object, piece->pos + skip, dst, size, err);
    memcpy(dst, piece->bytes + skip, size);
    return CV_OK;
}

static cv_status write_stage(const cv_pieces_job *job, cv_buffer *stage, uint64_t pos,
                             cv_error *err)
{
    size_t size = stage->size;
    stage->size = 0;
    if (size == 0) return CV_OK;
    return cv_store_write(job->store, job->object, pos - size, stage->data, size, err);
}

/* Writes bytes [skip, skip + size) of a piece at `pos`, directly or through the stage. */
static cv_status add(const cv_pieces_job *job, const cv_piece *piece, uint64_t skip,
                     size_t size, uint64_t pos, cv_buffer *stage, cv_error *err)
{
    if (!piece->bytes && !piece->store && store_copies(job) && size >= LEAST_COPY) {
        CV_TRY(write_stage(job, stage, pos, err));
        return job->store->ops->copy(job->store, piece->pos + skip, pos, size, err);
    }
    for (size_t done = 0; done < size;) {
        size_t step = size - done < PART_BYTES ? size - done : PART_BYTES;
        if (stage->size + step > PART_BYTES) CV_TRY(write_stage(job, stage, pos + done, err));
        CV_TRY(cv_buffer_reserve(stage, stage->size + step, err));
        CV_TRY(take(job, piece, skip + done, stage->data + stage->size, step, err));
        stage->size += step;
        done += step;
    }
    return CV_OK;
}

cv_status cv_pieces_write_part(const cv_pieces_job *job, int64_t part, cv_buffer *stage,
                               cv_error *err)
{
    uint64_t at = part_start(job, part), end = part_start(job, part + 1), piece_start = 0;
    if (end > job->size) end = job->size;
    stage->size = 0;
    const cv_piece *piece = (const cv_piece *)(const void *)job->list->data;
    for (; at < end; piece++) {
        uint64_t piece_end = piece_start + piece->size;
        if (piece_end > at) {
            size_t size = (size_t)((piece_end < end ? piece_end : end) - at);
            CV_TRY(add(job, piece, at - piece_start, size, job->pos + at, stage, err));
            at += size;
        }
        piece_start = piece_end;
    }
    return write_stage(job, stage, job->pos + end, err);
}

/* ---- Splice ----
 *
 * Makes a new chunk from an old one: header, block starts, and for each block either its old
 * streams, byte for byte, or new ones.
 *
 *     old  | header | starts | b0 | b1 | b2 | b3 |
 *                              :    x    :    :        b1 is dirty
 *     new  | header | starts | b0 | b1'  | b2 | b3 | table |
 *
 * The dirty blocks are encoded first, by several threads if some are idle. Then the chunk is
 * written as a list of pieces. Old streams are not decoded and are never in memory together, so
 * the cost is that of encoding the dirty blocks and of copying the rest within the file. Old
 * streams are not verified either: their checksums are copied, so later reads still find damage. */

/* Blocks [first, end). One thread encodes the dirty blocks among them. */
typedef struct share {
    int64_t first, end;
    cv_buffer streams;                    /* of these blocks, one after the other */
    uint8_t header[CV_CHUNK_HEADER_SIZE]; /* of a chunk with these streams */
    bool have_header;
    bool possible;
    bool is_larger; /* the streams are larger than the decoded chunk */
} share;

typedef struct splice {
    const cv_splice_job *job;
    cv_pipeline pipeline; /* for dirty blocks: the clean blocks' pipeline, or the job's */
    const cv_grid *grid;
    cv_layout *layout; /* layout of the stored chunk with the clean blocks; or NULL */
    share clean;       /* for a special chunk: the streams that each clean block gets */
    share *shares;
    bool is_larger; /* the new chunk is larger than an uncompressed one */
    int64_t n_shares;
    uint8_t *sizes; /* sizes of new streams; block starts replace them later */
    uint32_t *sums; /* checksums of all blocks */
} splice;

/* ---- Encoding ----------------------------------------------------------- */

/* Returns whether the block was encoded like those before: all blocks of a chunk must agree. */
static bool same_encoding(share *s, const uint8_t *header)
{
    if (!s->have_header) memcpy(s->header, header, sizeof s->header);
    s->have_header = true;
    return cv_codec_same_encoding(s->header, header);
}

static cv_status encode_block(const splice *s, cv_worker *worker, const uint8_t *block,
                              share *to, cv_error *err)
{
    uint8_t header[CV_CHUNK_HEADER_SIZE];
    size_t before = to->streams.size;
    cv_encoder *encoder;
    CV_TRY(cv_worker_encoder(s->job->pending->workers, worker, s->pipeline, &encoder, err));
    CV_TRY(cv_encode_block(encoder, block, (int32_t)s->grid->block_bytes, &to->streams,
                           header, err));
    to->possible = to->streams.size > before && same_encoding(to, header);
    return CV_OK;
}

static cv_status encode_share(void *context, int64_t number, cv_worker *worker, cv_error *err)
{
    const splice *s = context;
    share *mine = &s->shares[number];
    size_t most = (size_t)s->grid->chunk_bytes;
    worker->watch = s->job->pending->watch;
    mine->possible = true;
    for (int64_t b = mine->first; b < mine->end && mine->possible && !mine->is_larger; b++) {
        size_t before = mine->streams.size;
        if (!s->job->blocks[b]) continue;
        CV_TRY(cv_watch_tick(worker->watch, 0, err));
        CV_TRY(encode_block(s, worker, s->job->blocks[b], mine, err));
        cv_watch_add(worker->watch, s->grid->block_bytes);
        size_t size = mine->streams.size - before;
        cv_store_le32(s->sizes + b * (int64_t)sizeof(int32_t), (uint32_t)size);
        if (size > 0) s->sums[b] = cv_crc32c(0, mine->streams.data + before, size);
        mine->is_larger = mine->streams.size > most;
    }
    return CV_OK;
}

static void cut_shares(splice *s)
{
    int64_t block = 0, n = 0;
    for (int64_t i = 0; i < s->n_shares; i++) {
        int64_t until = s->job->n_dirty * (i + 1) / s->n_shares;
        s->shares[i].first = block;
        for (; n < until; block++) n += s->job->blocks[block] != NULL;
        s->shares[i].end = block;
    }
}

/* The first share's streams use the worker's memory, which is kept for reuse. */
static cv_status encode_dirty(splice *s, bool *possible, cv_error *err)
{
    cv_worker *worker = s->job->worker;
    int helpers = cv_pending_helpers(s->job->idle, s->job->n_dirty,
                                     s->job->n_dirty * s->grid->block_bytes);
    s->n_shares = 1 + helpers;
    s->shares = cv_calloc((size_t)s->n_shares, sizeof s->shares[0]);
    if (!s->shares) return cv_fail_memory(err, sizeof s->shares[0], "an update");
    s->shares[0].streams = worker->encoded;
    s->shares[0].streams.size = 0;
    worker->encoded = (cv_buffer){0};
    cut_shares(s);
    const cv_crew crew = {s->job->pending->workers, helpers, s->job->pending->watch};
    if (s->n_shares == 1)
        CV_TRY(encode_share(s, 0, worker, err));
    else
        CV_TRY(cv_workers_run(&crew, s->n_shares, encode_share, s, err));
    for (int64_t i = 0; i < s->n_shares; i++) {
        *possible =
            *possible && s->shares[i].possible &&
            (!s->shares[i].have_header || same_encoding(&s->clean, s->shares[i].header));
        s->is_larger = s->is_larger || s->shares[i].is_larger;
    }
    return CV_OK;
}

/* ---- Clean blocks ------------------------------------------------------- */

/* For a special chunk: encodes a block of its item. All clean blocks get these streams. */
static cv_status encode_repeated(splice *s, const uint8_t *item, bool *possible,
                                 cv_error *err)
{
    cv_worker *worker = s->job->worker;
    int64_t n_items = s->grid->block_bytes / s->grid->item_size;
    int64_t stride = s->grid->item_size;
    CV_TRY(cv_buffer_resize(&worker->block, (size_t)s->grid->block_bytes, err));
    cv_strided dst = {worker->block.data, &stride};
    cv_fill_box(1, &n_items, s->grid->item_size, item, dst);
    CV_TRY(encode_block(s, worker, worker->block.data, &s->clean, err));
    *possible = s->clean.possible;
    return CV_OK;
}

static cv_status open_stored(splice *s, const cv_chunk_ref *ref, bool *possible,
                             cv_error *err)
{
    cv_pending *pending = s->job->pending;
    cv_layout *layout;
    CV_TRY(cv_layout_get(pending->frame->layouts, cv_txn_snapshot(pending->txn), ref, &layout,
                         err));
    s->layout = layout; /* cv_splice_chunk releases it */
    switch (layout->header.special) {
    case CV_SPECIAL_NONE: break;
    case CV_SPECIAL_VALUE: return encode_repeated(s, layout->item, possible, err);
    case CV_SPECIAL_ZEROS:
    case CV_SPECIAL_UNINIT: return encode_repeated(s, NULL, possible, err);
    default: return CV_OK; /* NaN chunks are rare and are encoded whole */
    }
    *possible =
        layout->access == CV_ACCESS_BLOCK && same_encoding(&s->clean, layout->header_bytes);
    return CV_OK;
}

static cv_status open_clean(splice *s, bool *possible, cv_error *err)
{
    cv_chunk_ref ref;
    CV_TRY(cv_pending_where(s->job->pending, s->job->chunk, &ref, err));
    if (ref.kind == CV_REF_STORED) return open_stored(s, &ref, possible, err);
    if (ref.kind == CV_REF_NAN) return CV_OK;
    return encode_repeated(s, ref.item, possible, err);
}

bool cv_can_splice(const cv_layout *layout)
{
    return layout->header.special == CV_SPECIAL_NONE && layout->access == CV_ACCESS_BLOCK;
}

static const cv_splice_source *other(const splice *s, int64_t block)
{
    return s->job->others ? s->job->others[block] : NULL;
}

static bool others_fit(splice *s)
{
    bool fit = true;
    for (int64_t b = 0; s->job->others && b < s->grid->n_blocks && fit; b++)
        fit = !other(s, b) || (cv_can_splice(other(s, b)->layout) &&
                               same_encoding(&s->clean, other(s, b)->layout->header_bytes));
    return fit;
}

/* Returns the layout of the stored chunk that has the block; NULL if `clean` has its streams. */
static const cv_layout *layout_of(const splice *s, int64_t block)
{
    if (other(s, block)) return other(s, block)->layout;
    return s->clean.streams.size > 0 ? NULL : s->layout;
}

static cv_piece clean_piece(const splice *s, int64_t block)
{
    const cv_layout *layout = layout_of(s, block);
    if (!layout)
        return (cv_piece){.bytes = s->clean.streams.data, .size = s->clean.streams.size};
    cv_block_range range = layout->blocks[block];
    return (cv_piece){.store = other(s, block) ? other(s, block)->store : NULL,
                      .object = layout->object,
                      .pos = layout->pos + (uint64_t)range.start,
                      .size = (size_t)(range.end - range.start)};
}

static cv_status read_piece(const splice *s, const cv_piece *piece, const uint8_t **bytes,
                            cv_error *err)
{
    cv_buffer *packed = &s->job->worker->packed;
    cv_store *store = piece->store ? piece->store : s->job->pending->frame->store;
    *bytes = piece->bytes;
    if (piece->bytes) return CV_OK;
    CV_TRY(cv_buffer_resize(packed, piece->size, err));
    *bytes = packed->data;
    return cv_store_read(store, piece->object, piece->pos, packed->data, piece->size, err);
}

/* Copies the block's stored checksum, or computes the checksum if none is stored. */
static cv_status sum_clean(const splice *s, int64_t block, cv_error *err)
{
    const cv_layout *layout = layout_of(s, block);
    bool checks = other(s, block) && other(s, block)->checks;
    if (layout && layout->sums) s->sums[block] = layout->sums[block];
    if (layout && layout->sums && !checks) return CV_OK;
    cv_piece piece = clean_piece(s, block);
    cv_chunk_ref ref = {.chunk = s->job->chunk};
    const uint8_t *bytes;
    CV_TRY(read_piece(s, &piece, &bytes, err));
    if (checks) CV_TRY(cv_layout_check_block(layout, &ref, block, bytes, err));
    s->sums[block] = cv_crc32c(0, bytes, piece.size);
    return CV_OK;
}

/* ---- The new chunk ------------------------------------------------------- */

/* Returns whether the stream is undamaged. A damaged stream must be kept, not become zeros. */
static bool is_sound(const splice *s, int64_t block, const uint8_t *bytes)
{
    cv_chunk_ref ref = {.chunk = s->job->chunk};
    const cv_layout *layout = layout_of(s, block);
    return !layout || cv_layout_check_block(layout, &ref, block, bytes, NULL) == CV_OK;
}

/* Streams of zero blocks are zero bytes, at most four for each byte of an item. */
static cv_status clean_is_zero(splice *s, bool *zero, cv_error *err)
{
    size_t most = sizeof(int32_t) * (size_t)s->grid->item_size;
    *zero = true;
    for (int64_t b = 0; b < s->grid->n_blocks && *zero; b++) {
        const uint8_t *bytes;
        if (s->job->blocks[b]) continue;
        cv_piece piece = clean_piece(s, b);
        *zero = false;
        if (piece.size > most) break;
        CV_TRY(read_piece(s, &piece, &bytes, err));
        *zero = cv_all_zero(bytes, piece.size) && is_sound(s, b, bytes);
    }
    return CV_OK;
}

/* Returns in *zero whether all blocks are zero. Such a chunk becomes a special chunk. */
static cv_status is_zero(splice *s, bool *zero, cv_error *err)
{
    *zero = true;
    for (int64_t i = 0; i < s->n_shares && *zero; i++)
        *zero = cv_all_zero(s->shares[i].streams.data, s->shares[i].streams.size);
    return *zero ? clean_is_zero(s, zero, err) : CV_OK;
}

/* Lists the pieces after the head, and turns sizes into block starts. */
static cv_status list_streams(splice *s, cv_buffer *pieces, int64_t *end, cv_error *err)
{
    const share *from = s->shares;
    size_t taken = 0; /* bytes of from->streams that are listed */
    for (int64_t b = 0; b < s->grid->n_blocks; b++) {
        uint8_t *start = s->sizes + b * (int64_t)sizeof(int32_t);
        cv_piece piece;
        if (s->job->blocks[b]) {
            for (; b >= from->end; taken = 0) from++;
            piece =
                (cv_piece){.bytes = from->streams.data + taken, .size = cv_load_le32(start)};
            taken += piece.size;
        } else {
            piece = clean_piece(s, b);
            CV_TRY(sum_clean(s, b, err));
        }
        cv_store_le32(start, (uint32_t)*end);
        *end += (int64_t)piece.size;
        if (*end > s->grid->chunk_bytes) return CV_OK; /* an uncompressed chunk is smaller */
        CV_TRY(cv_pieces_add(pieces, piece, err));
    }
    return CV_OK;
}

static cv_status write_part(void *context, int64_t part, cv_worker *worker, cv_error *err)
{
    return cv_pieces_write_part(context, part, &worker->packed, err);
}

/* One thread writes a chunk object, because its parts must be written in order. */
static cv_status write_pieces(const splice *s, cv_pieces_job *job, cv_error *err)
{
    cv_pending *pending = s->job->pending;
    int64_t n = cv_pieces_n_parts(job);
    int64_t worth = (int64_t)(job->size / CV_COPY_PER_HELPER) - 1;
    int64_t helpers = cv_min_i64(s->job->idle, worth);
    const cv_crew crew = {pending->workers, (int)helpers, pending->watch};
    if (helpers > 0 && job->object == CV_FRAME_OBJECT)
        return cv_workers_run(&crew, n, write_part, job, err);
    for (int64_t i = 0; i < n; i++) CV_TRY(write_part(job, i, s->job->worker, err));
    return CV_OK;
}

static cv_status add_table(const splice *s, cv_buffer *pieces, uint32_t *name, cv_error *err)
{
    cv_worker *worker = s->job->worker;
    cv_block_table table = {
        .head = cv_crc32c(0, worker->head.data, worker->head.size),
        .n = s->grid->n_blocks,
        .blocks = s->sums,
    };
    worker->table.size = 0;
    CV_TRY(cv_table_append(&table, &worker->table, name, err));
    cv_piece piece = {.bytes = worker->table.data, .size = worker->table.size};
    return cv_pieces_add(pieces, piece, err);
}

static cv_status put_pieces(const splice *s, cv_buffer *pieces, int64_t size, cv_error *err)
{
    cv_pending *pending = s->job->pending;
    uint32_t name;
    cv_put put;
    CV_TRY(add_table(s, pieces, &name, err));
    size += (int64_t)s->job->worker->table.size;
    CV_TRY(cv_txn_put_begin(pending->txn, s->job->chunk, (size_t)size, &put, err));
    put.name = name;
    cv_pieces_job job = {.store = pending->frame->store,
                         .list = pieces,
                         .size = (uint64_t)size,
                         .object = put.object,
                         .pos = put.pos};
    return cv_txn_put_end(pending->txn, &put, write_pieces(s, &job, err), err);
}

static cv_status put_chunk(splice *s, cv_error *err)
{
    cv_buffer *head = &s->job->worker->head;
    cv_buffer *pieces = &s->job->worker->pieces;
    int64_t size = (int64_t)head->size;
    pieces->size = 0;
    CV_TRY(cv_pieces_add(pieces, (cv_piece){.bytes = head->data, .size = head->size}, err));
    memcpy(head->data, s->clean.header, sizeof s->clean.header);
    if (!s->is_larger) CV_TRY(list_streams(s, pieces, &size, err));
    s->is_larger = s->is_larger || size > s->grid->chunk_bytes;
    if (s->is_larger) return CV_OK;

    bool zero;
    CV_TRY(is_zero(s, &zero, err));
    if (zero)
        return cv_txn_put_special(s->job->pending->txn, s->job->chunk, CV_REF_ZEROS, err);
    cv_codec_set_sizes(head->data, (int32_t)s->grid->chunk_bytes, (int32_t)size);
    return put_pieces(s, pieces, size, err);
}

static cv_status splice_chunk(splice *s, cv_spliced *out, cv_error *err)
{
    cv_buffer *head = &s->job->worker->head;
    size_t starts = (size_t)s->grid->n_blocks * sizeof(int32_t);
    bool none_stays = s->job->n_dirty + s->job->n_others == s->grid->n_blocks;
    bool possible = none_stays;
    CV_TRY(cv_buffer_resize(head, CV_CHUNK_HEADER_SIZE + starts, err));
    s->sizes = head->data + CV_CHUNK_HEADER_SIZE;
    cv_buffer *sums = &s->job->worker->sums;
    CV_TRY(cv_buffer_resize(sums, (size_t)s->grid->n_blocks * sizeof(uint32_t), err));
    s->sums = (uint32_t *)(void *)sums->data;
    if (!none_stays) CV_TRY(open_clean(s, &possible, err));
    possible = possible && others_fit(s);
    if (s->clean.have_header)
        s->pipeline = cv_codec_pipeline_of(&s->job->pending->workers->spec, s->clean.header);
    if (possible) CV_TRY(encode_dirty(s, &possible, err));
    if (!possible) return CV_OK;
    CV_TRY(put_chunk(s, err));
    *out = s->is_larger ? CV_SPLICE_LARGER : CV_SPLICE_DONE;
    return CV_OK;
}

cv_status cv_splice_chunk(const cv_splice_job *job, cv_spliced *out, cv_error *err)
{
    splice s = {.job = job,
                .pipeline = job->pipeline,
                .grid = &cv_txn_snapshot(job->pending->txn)->grid};
    *out = CV_SPLICE_NOT;
    if (!cv_codec_blocks_independent(&job->pending->workers->spec)) return CV_OK;
    if (job->pending->txn->is_dual) return CV_OK; /* its blocks are rewritten together */
    cv_status status = splice_chunk(&s, out, err);
    for (int64_t i = 0; i < s.n_shares && s.shares; i++) {
        if (i == 0) job->worker->encoded = s.shares[0].streams;
        if (i > 0) cv_buffer_free(&s.shares[i].streams);
    }
    cv_free(s.shares);
    cv_layout_release(s.layout);
    cv_buffer_free(&s.clean.streams);
    return status;
}

/* ---- The pipeline of a whole chunk ------------------------------------------ */

static cv_status try_pipeline(cv_pending *pending, cv_worker *worker, cv_pipeline pipeline,
                              const uint8_t *block, size_t *size, cv_error *err)
{
    uint8_t header[CV_CHUNK_HEADER_SIZE];
    cv_encoder *encoder;
    worker->encoded.size = 0;
    CV_TRY(cv_worker_encoder(pending->workers, worker, pipeline, &encoder, err));
    CV_TRY(cv_encode_block(encoder, block, pending->workers->spec.block_bytes,
                           &worker->encoded, header, err));
    *size = worker->encoded.size;
    return CV_OK;
}

/* Returns the last pipeline to try for items of this kind. */
static cv_pipeline last_pipeline(char kind)
{
    if (kind == 'f' || kind == 'c') return CV_PIPELINE_PLAIN;
    return kind && strchr("biumM", kind) ? CV_PIPELINE_BITSHUFFLE : CV_PIPELINE_LONG_MATCHES;
}

/* Chooses the pipeline that encodes a sample smallest, if trying costs at most a sixteenth of the
 * encoding. Two blocks are encoded: the first, which is never padding, and one inside the chunk.
 * The sample is the larger result. The choice depends on the items alone.
 *
 * - Level 4 is tried if the default level shrinks the sample 16 times: then the default level finds
 *   only short matches, which also decode slowly. Level 4 must halve the size.
 * - Other filters must save a twentieth of floats: those with few digits or many zeros repeat as a
 *   whole, which a shuffle hides. They must save a quarter of integers, because a bitshuffle makes
 *   integers slower to decode. */
static cv_status choose_pipeline(cv_pending *pending, cv_worker *worker,
                                 const cv_block_source *source, cv_pipeline *out,
                                 cv_error *err)
{
    enum { LEAST_BLOCKS = 64, LONG = 16, NOTHING = 256 };
    const cv_codec_spec *spec = &pending->workers->spec;
    size_t block_bytes = (size_t)spec->block_bytes, own, size;
    int32_t n_blocks = spec->chunk_bytes / spec->block_bytes;
    *out = CV_PIPELINE_OWN;
    if (!spec->automatic || n_blocks < LEAST_BLOCKS) return CV_OK;
    CV_TRY(cv_buffer_resize(&worker->sample, 2 * block_bytes, err));
    uint8_t *first = worker->sample.data, *sample = first + block_bytes;
    source->fill(source->context, 0, first);
    source->fill(source->context, n_blocks / 3, sample);
    CV_TRY(try_pipeline(pending, worker, CV_PIPELINE_OWN, first, &size, err));
    CV_TRY(try_pipeline(pending, worker, CV_PIPELINE_OWN, sample, &own, err));
    if (size > own) sample = first;
    if (size > own) own = size;
    if (own * NOTHING < block_bytes) return CV_OK; /* nearly all items are equal */

    cv_pipeline last = last_pipeline(spec->item_kind);
    size_t least = own, enough = own - own / (last == CV_PIPELINE_PLAIN ? 20 : 4);
    for (int p = CV_PIPELINE_LONG_MATCHES; p <= (int)last; p++) {
        bool is_long = p == CV_PIPELINE_LONG_MATCHES;
        if (is_long && own * LONG >= block_bytes) continue;
        CV_TRY(try_pipeline(pending, worker, (cv_pipeline)p, sample, &size, err));
        if (size >= least || size > (is_long ? own / 2 : enough)) continue;
        least = size;
        *out = (cv_pipeline)p;
        if (is_long) break;
    }
    return CV_OK;
}

/* ---- Whole chunks ---------------------------------------------------------- */

/* Encodes all blocks separately, so that threads can help and the watch can stop the write. */
static cv_status put_by_blocks(cv_splice_job *job, const uint8_t *decoded, cv_spliced *out,
                               cv_error *err)
{
    const cv_codec_spec *spec = &job->pending->workers->spec;
    size_t n_blocks = (size_t)spec->chunk_bytes / (size_t)spec->block_bytes;
    const uint8_t **blocks = cv_malloc(n_blocks * sizeof blocks[0]);
    if (!blocks) return cv_fail_memory(err, n_blocks * sizeof blocks[0], "a list of blocks");
    for (size_t b = 0; b < n_blocks; b++) blocks[b] = decoded + b * (size_t)spec->block_bytes;
    job->blocks = blocks;
    job->n_dirty = (int64_t)n_blocks;
    cv_status status = cv_splice_chunk(job, out, err);
    cv_free(blocks);
    return status;
}

/* Stores the chunk uncompressed, because a splice has found that it would be larger. */
static cv_status put_plainly(cv_pending *pending, cv_worker *worker, int64_t chunk,
                             const uint8_t *decoded, cv_error *err)
{
    const cv_codec_spec *spec = &pending->workers->spec;
    cv_buffer *encoded = &worker->encoded;
    size_t size = (size_t)spec->chunk_bytes;
    size_t table = cv_block_table_size(spec->chunk_bytes / spec->block_bytes);
    CV_TRY(cv_buffer_reserve(encoded, CV_CHUNK_HEADER_SIZE + size + table, err));
    CV_TRY(cv_buffer_resize(encoded, CV_CHUNK_HEADER_SIZE + size, err));
    memcpy(encoded->data, worker->head.data, CV_CHUNK_HEADER_SIZE);
    cv_codec_set_plain(encoded->data, spec->chunk_bytes);
    memcpy(encoded->data + CV_CHUNK_HEADER_SIZE, decoded, size);
    return cv_txn_put(pending->txn, chunk, encoded, err);
}

/* Returns whether to encode by blocks: threads are idle, or the codec is slow and a watch polls. */
static bool by_blocks(const cv_pending *pending, int idle, bool *slow)
{
    const cv_codec_spec *spec = &pending->workers->spec;
    int64_t n_blocks = spec->chunk_bytes / spec->block_bytes;
    *slow = pending->watch && n_blocks > 1 && cv_codec_is_slow(spec);
    return *slow || cv_pending_helpers(idle, n_blocks, spec->chunk_bytes) > 0;
}

static cv_status prepare_to_encode(cv_pending *pending, cv_worker *worker,
                                   cv_pipeline pipeline, cv_encoder **encoder, cv_error *err)
{
    const cv_codec_spec *spec = &pending->workers->spec;
    size_t room = CV_CHUNK_HEADER_SIZE + (size_t)spec->chunk_bytes +
                  cv_block_table_size(spec->chunk_bytes / spec->block_bytes);
    CV_TRY(cv_worker_encoder(pending->workers, worker, pipeline, encoder, err));
    return cv_buffer_reserve(&worker->encoded, room, err);
}

static cv_status put_encoded(cv_pending *pending, cv_worker *worker, int64_t chunk,
                             cv_error *err)
{
    cv_watch_add(pending->watch, pending->workers->spec.chunk_bytes);
    if (cv_codec_is_zeros(&worker->encoded))
        return cv_txn_put_special(pending->txn, chunk, CV_REF_ZEROS, err);
    return cv_behind_put(&pending->behind, chunk, &worker->encoded, err);
}

/* The blocks of a chunk, at separate addresses or in one buffer. */
typedef struct block_list {
    const uint8_t *const *blocks; /* NULL: the blocks are in `decoded`, one after the other */
    const uint8_t *decoded;
    size_t block_bytes;
} block_list;

static void give_block(const void *context, int64_t block, uint8_t *out)
{
    const block_list *list = context;
    memcpy(out,
           list->blocks ? list->blocks[block]
                        : list->decoded + (size_t)block * list->block_bytes,
           list->block_bytes);
}

/* Bytes of an item that a chunk of one repeated item stores as they are; larger ones are packed. */
enum { MOST_REPEATED = 4096 };

cv_status cv_pending_put_chunk(cv_pending *pending, cv_worker *worker, int64_t chunk,
                               const uint8_t *decoded, int idle, cv_error *err)
{
    const cv_codec_spec *spec = &pending->workers->spec;
    size_t size = (size_t)spec->chunk_bytes;
    size_t item_size = (size_t)spec->item_size;
    CV_TRY(cv_watch_tick(pending->watch, 0, err));
    if (cv_all_zero(decoded, size)) {
        cv_watch_add(pending->watch, spec->chunk_bytes);
        return cv_txn_put_special(pending->txn, chunk, CV_REF_ZEROS, err);
    }
    if (size > item_size && item_size <= MOST_REPEATED && cv_all_same(decoded, size, item_size)) {
        cv_watch_add(pending->watch, spec->chunk_bytes);
        CV_TRY(cv_encode_repeated(spec, decoded, &worker->encoded, err));
        return cv_txn_put(pending->txn, chunk, &worker->encoded, err);
    }
    cv_spliced spliced = CV_SPLICE_NOT;
    cv_splice_job job = {.pending = pending, .worker = worker, .chunk = chunk, .idle = idle};
    bool slow;
    const block_list flat = {.decoded = decoded, .block_bytes = (size_t)spec->block_bytes};
    CV_TRY(choose_pipeline(pending, worker, &(cv_block_source){give_block, &flat},
                           &job.pipeline, err));
    if (by_blocks(pending, idle, &slow)) CV_TRY(put_by_blocks(&job, decoded, &spliced, err));
    if (spliced == CV_SPLICE_DONE) return CV_OK;
    if (spliced == CV_SPLICE_LARGER && slow)
        return put_plainly(pending, worker, chunk, decoded, err);

    cv_encoder *encoder;
    CV_TRY(prepare_to_encode(pending, worker, job.pipeline, &encoder, err));
    CV_TRY(cv_encode_chunk(encoder, decoded, &worker->encoded, err));
    return put_encoded(pending, worker, chunk, err);
}

bool cv_pending_gathers(const cv_pending *pending, int idle)
{
    bool slow;
    const cv_codec_spec *spec = &pending->workers->spec;
    return spec->chunk_bytes >= pending->least_gathered && cv_codec_gathers(spec) &&
           !by_blocks(pending, idle, &slow);
}

cv_status cv_pending_put_gathered(cv_pending *pending, cv_worker *worker, int64_t chunk,
                                  const cv_block_source *source, cv_error *err)
{
    cv_encoder *encoder;
    cv_pipeline pipeline;
    CV_TRY(cv_watch_tick(pending->watch, 0, err));
    CV_TRY(choose_pipeline(pending, worker, source, &pipeline, err));
    CV_TRY(prepare_to_encode(pending, worker, pipeline, &encoder, err));
    CV_TRY(cv_encode_gathered(encoder, source, &worker->encoded, err));
    return put_encoded(pending, worker, chunk, err);
}

/* ---- Rebuilding --------------------------------------------------------- */

/* Returns whether to gather the dirty blocks: never if the chunk may be one repeated item. */
static bool is_gathered(const cv_pending *pending, const cv_dirty_chunk *dirty,
                        const cv_grid *grid, int idle)
{
    return dirty->n_dirty == grid->n_blocks && cv_pending_gathers(pending, idle) &&
           !cv_all_same(dirty->blocks[0], (size_t)grid->block_bytes, (size_t)grid->item_size);
}

/* Rebuilds a chunk in its own buffer: the decoder of dependent blocks uses worker->chunk. */
static cv_status rebuild_chunk(cv_pending *pending, cv_worker *worker,
                               const cv_dirty_chunk *dirty, int idle, cv_error *err)
{
    const cv_grid *grid = &cv_txn_snapshot(pending->txn)->grid;
    if (grid->n_blocks == 1)
        return cv_pending_put_chunk(pending, worker, dirty->chunk, dirty->blocks[0], idle,
                                    err);
    if (is_gathered(pending, dirty, grid, idle)) {
        block_list blocks = {(void *)dirty->blocks, NULL, (size_t)grid->block_bytes};
        cv_block_source source = {give_block, &blocks};
        return cv_pending_put_gathered(pending, worker, dirty->chunk, &source, err);
    }
    cv_buffer chunk = {0};
    CV_TRY(cv_buffer_resize(&chunk, (size_t)grid->chunk_bytes, err));
    cv_source source = cv_source_of_pending(pending);
    cv_status status = cv_chunk_fill(&source, dirty->chunk, chunk.data, worker, err);
    if (status == CV_OK)
        status = cv_pending_put_chunk(pending, worker, dirty->chunk, chunk.data, idle, err);
    cv_buffer_free(&chunk);
    return status;
}

static cv_status flush_dirty(cv_pending *pending, cv_worker *worker,
                             const cv_dirty_chunk *dirty, int64_t n_chunks, cv_error *err)
{
    int64_t n_blocks = cv_txn_snapshot(pending->txn)->grid.n_blocks;
    int idle = cv_pending_idle(pending, n_chunks);
    cv_spliced spliced = CV_SPLICE_NOT;
    if (dirty->n_dirty < n_blocks) {
        cv_splice_job job = {.pending = pending,
                             .worker = worker,
                             .chunk = dirty->chunk,
                             .blocks = (void *)dirty->blocks,
                             .n_dirty = dirty->n_dirty,
                             .idle = idle};
        CV_TRY(cv_splice_chunk(&job, &spliced, err));
        if (spliced == CV_SPLICE_DONE) /* counts the clean blocks as done */
            cv_watch_add(pending->watch,
                         (n_blocks - dirty->n_dirty) * pending->workers->spec.block_bytes);
    }
    return spliced == CV_SPLICE_DONE ? CV_OK
                                     : rebuild_chunk(pending, worker, dirty, idle, err);
}

cv_status cv_pending_flush_chunk(cv_pending *pending, cv_worker *worker, int64_t chunk,
                                 int64_t n_chunks, cv_error *err)
{
    const cv_dirty_chunk *dirty = cv_pending_find(pending, chunk);
    if (!dirty) return CV_OK;
    if (dirty->n_dirty > 0) CV_TRY(flush_dirty(pending, worker, dirty, n_chunks, err));
    cv_pending_drop(pending, chunk);
    return CV_OK;
}

/* ---- All dirty chunks ---------------------------------------------------- */

typedef struct flush_task {
    cv_pending *pending;
    const int64_t *chunks;
    int64_t n_chunks;
} flush_task;

static cv_status flush_job(void *context, int64_t job, cv_worker *worker, cv_error *err)
{
    const flush_task *task = context;
    worker->watch = task->pending->watch;
    return cv_pending_flush_chunk(task->pending, worker, task->chunks[job], task->n_chunks,
                                  err);
}

static int by_number(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Flushes the `n` dirty chunks or, if whole_only, the `n` that are wholly dirty. */
static cv_status flush_chunks(cv_pending *pending, bool whole_only, size_t n, cv_error *err)
{
    if (n == 0) return CV_OK;
    int64_t *chunks = cv_malloc(n * sizeof chunks[0]);
    if (!chunks) return cv_fail_memory(err, n * sizeof chunks[0], "dirty chunks");
    size_t found = 0;
    int64_t n_blocks = cv_txn_snapshot(pending->txn)->grid.n_blocks;
    for (size_t i = 0; i < pending->n_buckets; i++)
        for (cv_dirty_chunk *d = pending->buckets[i]; d; d = d->next)
            if (!whole_only || d->n_dirty == n_blocks) chunks[found++] = d->chunk;
    qsort(chunks, n, sizeof chunks[0], by_number);

    flush_task task = {.pending = pending, .chunks = chunks, .n_chunks = (int64_t)n};
    int helpers = (int64_t)n < pending->threads ? (int)n - 1 : pending->threads - 1;
    cv_watch_expect(pending->watch,
                    (int64_t)n * cv_txn_snapshot(pending->txn)->grid.chunk_bytes);
    cv_pending_put_behind(pending, (int64_t)n, helpers);
    const cv_crew crew = {pending->workers, helpers, pending->watch};
    cv_status status = cv_workers_run(&crew, (int64_t)n, flush_job, &task, err);
    status = cv_behind_end(&pending->behind, status, err);
    cv_free(chunks);
    return status;
}

cv_status cv_pending_flush(cv_pending *pending, cv_error *err)
{
    return flush_chunks(pending, false, pending->n_chunks, err);
}

cv_status cv_pending_flush_queue(cv_pending *pending, cv_error *err)
{
    if (!cv_pending_queue_is_full(pending)) return CV_OK;
    return flush_chunks(pending, true, pending->n_whole, err);
}

/* ---- The commit --------------------------------------------------------- */

/* If the fill is due, stores the fill in each chunk that was never written. */
static cv_status settle(cv_pending *pending, cv_error *err)
{
    if (!pending->fill_is_due) return CV_OK;
    int64_t n_chunks = cv_txn_snapshot(pending->txn)->grid.n_chunks;
    cv_buffer fill = {0};
    cv_status status = cv_encode_repeated(&pending->workers->spec, pending->fill, &fill, err);
    for (int64_t i = 0; i < n_chunks && status == CV_OK; i++) {
        cv_chunk_ref ref;
        status = cv_pending_where(pending, i, &ref, err);
        if (status == CV_OK && ref.kind == CV_REF_ITEM)
            status = cv_txn_put(pending->txn, i, &fill, err);
        if (status == CV_OK) status = cv_watch_tick(pending->watch, 0, err);
    }
    cv_buffer_free(&fill);
    if (status == CV_OK) pending->fill_is_due = false;
    return status;
}

/* Puts all pending changes into the transaction. */
static cv_status finish(cv_pending *pending, cv_error *err)
{
    CV_TRY(cv_pending_check(pending, err));
    CV_TRY(cv_pending_flush(pending, err));
    return settle(pending, err);
}

cv_status cv_pending_commit(cv_pending *pending, cv_error *err)
{
    CV_TRY(finish(pending, err));
    cv_txn_set_watch(pending->txn, pending->watch);
    cv_status status = cv_txn_commit(pending->txn, err);
    cv_txn_set_watch(pending->txn, NULL);
    return status;
}

cv_status cv_pending_prepare(cv_pending *pending, bool durable, cv_commit **out,
                             cv_error *err)
{
    *out = NULL;
    CV_TRY(finish(pending, err));
    return cv_commit_prepare(pending->txn, durable, out, err);
}

/* Room: engine. A new chunk from an old one: header, block starts, and for each
 * block either its old streams, byte for byte, or new ones.
 *
 *     old  | header | starts | b0 | b1 | b2 | b3 |
 *                              :    x    :    :        b1 is dirty
 *     new  | header | starts | b0 | b1'  | b2 | b3 |
 *
 * The old streams are not decoded, so the cost is that of the dirty blocks and
 * of copying the rest. */
#include "engine/splice.h"

#include "base/arith.h"
#include "engine/copy.h"

#include <string.h>

/* Where the clean blocks come from. */
typedef struct clean_source {
    cv_layout *layout;    /* of a stored chunk with blocks, else NULL */
    const uint8_t *chunk; /* its bytes */
    cv_buffer repeated;   /* else: the streams every clean block has */
} clean_source;

typedef struct splice {
    cv_pending *pending;
    cv_worker *worker;
    const cv_dirty_chunk *dirty;
    const cv_grid *grid;
    cv_encoder *encoder;
    clean_source clean;
    uint8_t header[CV_CHUNK_HEADER_SIZE]; /* of the new chunk */
    bool have_header;
} splice;

/* All blocks of one chunk must agree on how they are encoded. */
static bool same_encoding(splice *s, const uint8_t *header)
{
    if (!s->have_header) memcpy(s->header, header, sizeof s->header);
    s->have_header = true;
    return cv_codec_same_encoding(s->header, header);
}

static cv_status encode_block(splice *s, const uint8_t *block, cv_buffer *out, bool *possible,
                              cv_error *err)
{
    uint8_t header[CV_CHUNK_HEADER_SIZE];
    CV_TRY(cv_encode_block(s->encoder, block, out, header, possible, err));
    *possible = *possible && same_encoding(s, header);
    return CV_OK;
}

/* ---- Clean blocks ------------------------------------------------------- */

/* A special chunk has no streams: one block of its item is encoded, and stands
 * for every clean one. */
static cv_status encode_repeated(splice *s, const uint8_t *item, bool *possible,
                                 cv_error *err)
{
    cv_worker *worker = s->worker;
    int64_t n_items = s->grid->block_bytes / s->grid->item_size;
    int64_t stride = s->grid->item_size;
    CV_TRY(cv_buffer_resize(&worker->block, (size_t)s->grid->block_bytes, err));
    cv_strided dst = {worker->block.data, &stride};
    cv_fill_box(1, &n_items, s->grid->item_size, item, dst);
    return encode_block(s, worker->block.data, &s->clean.repeated, possible, err);
}

static cv_status open_stored(splice *s, const cv_chunk_ref *ref, bool *possible,
                             cv_error *err)
{
    const cv_snapshot *snapshot = cv_txn_snapshot(s->pending->txn);
    CV_TRY(cv_layout_get(s->pending->frame, snapshot, ref, &s->clean.layout, err));
    const cv_layout *layout = s->clean.layout;
    switch (layout->header.special) {
    case CV_SPECIAL_NONE: break;
    case CV_SPECIAL_VALUE: return encode_repeated(s, layout->item, possible, err);
    case CV_SPECIAL_ZEROS:
    case CV_SPECIAL_UNINIT: return encode_repeated(s, NULL, possible, err);
    default: return CV_OK; /* NaN chunks: rare, encoded whole */
    }
    if (layout->access != CV_ACCESS_BLOCK) return CV_OK;
    *possible = same_encoding(s, layout->header_bytes);
    return cv_fetch_chunk(s->pending->frame, layout, &s->worker->packed, &s->clean.chunk,
                          err);
}

static cv_status open_clean(splice *s, bool *possible, cv_error *err)
{
    *possible = false;
    cv_chunk_ref ref;
    CV_TRY(cv_txn_find(s->pending->txn, s->dirty->chunk, &ref, err));
    if (ref.kind == CV_REF_STORED) return open_stored(s, &ref, possible, err);
    if (ref.kind == CV_REF_NAN) return CV_OK;
    return encode_repeated(s, NULL, possible, err);
}

static cv_status append_clean(const splice *s, int64_t block, cv_buffer *out, cv_error *err)
{
    const clean_source *c = &s->clean;
    if (!c->chunk) return cv_buffer_append(out, c->repeated.data, c->repeated.size, err);
    cv_block_range range = c->layout->blocks[block];
    return cv_buffer_append(out, c->chunk + range.start, (size_t)(range.end - range.start),
                            err);
}

/* ---- The new chunk ------------------------------------------------------ */

static cv_status append_block(splice *s, int64_t block, cv_buffer *out, bool *possible,
                              cv_error *err)
{
    cv_store_le32(out->data + CV_CHUNK_HEADER_SIZE + (size_t)block * sizeof(int32_t),
                  (uint32_t)out->size);
    if (!s->dirty->blocks[block]) return append_clean(s, block, out, err);
    return encode_block(s, s->dirty->blocks[block], out, possible, err);
}

static cv_status assemble(splice *s, bool *possible, cv_error *err)
{
    cv_buffer *out = &s->worker->encoded;
    size_t starts = (size_t)s->grid->n_blocks * sizeof(int32_t);
    size_t most = (size_t)s->grid->chunk_bytes; /* beyond it, storing plainly is smaller */
    CV_TRY(cv_buffer_resize(out, CV_CHUNK_HEADER_SIZE + starts, err));
    for (int64_t b = 0; b < s->grid->n_blocks && *possible; b++) {
        CV_TRY(append_block(s, b, out, possible, err));
        *possible = *possible && out->size <= most;
    }
    if (!*possible) return CV_OK;
    memcpy(out->data, s->header, sizeof s->header);
    cv_codec_set_sizes(out->data, (int32_t)s->grid->chunk_bytes, (int32_t)out->size);
    return CV_OK;
}

cv_status cv_splice_chunk(cv_pending *pending, cv_worker *worker, const cv_dirty_chunk *dirty,
                          bool *spliced, cv_error *err)
{
    const cv_grid *grid = &cv_txn_snapshot(pending->txn)->grid;
    *spliced = false;
    if (dirty->n_dirty == grid->n_blocks ||
        !cv_codec_blocks_independent(&pending->workers->spec))
        return CV_OK;
    splice s = {.pending = pending, .worker = worker, .dirty = dirty, .grid = grid};
    CV_TRY(cv_worker_encoder(pending->workers, worker, &s.encoder, err));
    cv_status status = open_clean(&s, spliced, err);
    if (status == CV_OK && *spliced) status = assemble(&s, spliced, err);
    cv_layout_release(s.clean.layout);
    cv_buffer_free(&s.clean.repeated);
    return status;
}

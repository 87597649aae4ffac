/* Room: engine/read. What a read and a write stand on. */
#include "engine/read/source.h"

#include "base/arith.h"
#include "format/frame_header.h"
#include "frame/sealed.h"

cv_source cv_source_of_pending(cv_pending *pending)
{
    return (cv_source){.frame = pending->frame,
                       .snapshot = cv_txn_snapshot(pending->txn),
                       .pending = pending,
                       .workers = pending->workers,
                       .threads = pending->threads,
                       .scan = true,
                       .watch = pending->watch};
}

/* What is pending has none of its own: what counts is the state that it is a change of. */
cv_status cv_source_has_layouts(const cv_source *source, bool *out, cv_error *err)
{
    cv_layout_area area = {.size = 0};
    cv_error error = {0};
    cv_frame *frame = source->frame;
    cv_snapshot *base = source->pending ? cv_frame_snapshot(frame) : NULL;
    cv_status status =
        cv_layout_area_find(base ? base : source->snapshot, frame->store, &area, &error);
    cv_snapshot_release(base);
    *out = status == CV_OK && area.size > 0;
    if (status == CATERVA_ECORRUPT) return CV_OK;
    if (status != CV_OK && err) *err = error;
    return status;
}

static uint64_t most_bytes(const cv_grid *grid)
{
    return CV_CHUNK_HEADER_SIZE + (uint64_t)grid->chunk_bytes + 8 * (uint64_t)grid->n_blocks +
           64;
}

/* Chunks mostly stand in their order, or nearly: threads that wrote them were done one before
 * the other. */
uint64_t cv_source_guess_end(const cv_source *s, const cv_chunk_ref *ref)
{
    enum { NEAR = 8, MANY = 2048 };
    int64_t n_chunks = s->snapshot->grid.n_chunks;
    int64_t near = s->frame->store->is_far && n_chunks <= MANY ? n_chunks : NEAR;
    uint64_t copy =
        cv_header_copy_size(s->snapshot->header.header_size); /* behind the last */
    uint64_t end = ref->pos + (ref->limit > copy ? ref->limit - copy : 0);
    if (ref->object != CV_FRAME_OBJECT) return 0;
    for (int64_t i = cv_max_i64(ref->chunk - near, 0);
         i < cv_min_i64(ref->chunk + near + 1, n_chunks); i++) {
        cv_chunk_ref other;
        if (cv_source_find(s, i, &other, NULL) != CV_OK) return 0;
        if (other.kind == CV_REF_STORED && other.pos > ref->pos && other.pos < end)
            end = other.pos;
    }
    return end - ref->pos <= most_bytes(&s->snapshot->grid) ? end : 0;
}

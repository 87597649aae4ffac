/* Room: engine/jobs. Bytes of a frame on their way out, lent by the store where it can. The
 * header comes from the snapshot: in the store a later commit may have replaced it, and
 * nothing else that the state stands on. */
#include "engine/jobs/hand_over.h"

enum { PIECE = 1 << 20 };

typedef struct giving {
    cv_store *store;
    uint64_t total;
    cv_take_fn take;
    void *context;
    cv_buffer scratch; /* for what is not lent */
} giving;

static cv_status give(giving *g, const void *piece, size_t size, cv_error *err)
{
    if (size == 0 || g->take(g->context, piece, size, g->total) == 0) return CV_OK;
    return cv_fail(err, CATERVA_ESTOPPED, -1, "stopped");
}

static cv_status give_stored(giving *g, uint64_t pos, size_t size, cv_error *err)
{
    const uint8_t *lent = cv_store_view(g->store, CV_FRAME_OBJECT, pos, size);
    if (lent) return give(g, lent, size, err);
    CV_TRY(cv_buffer_reserve(&g->scratch, size, err));
    CV_TRY(cv_store_read(g->store, CV_FRAME_OBJECT, pos, g->scratch.data, size, err));
    return give(g, g->scratch.data, size, err);
}

cv_status cv_hand_over(cv_frame *frame, const cv_snapshot *snapshot, cv_take_fn take,
                       void *context, cv_error *err)
{
    giving g = {frame->store, snapshot->header.frame_size, take, context, {0}};
    uint64_t pos = snapshot->header_bytes.size;
    cv_status status = give(&g, snapshot->header_bytes.data, (size_t)pos, err);
    while (status == CV_OK && pos < g.total) {
        size_t size = g.total - pos < PIECE ? (size_t)(g.total - pos) : PIECE;
        status = give_stored(&g, pos, size, err);
        pos += size;
    }
    cv_buffer_free(&g.scratch);
    return status;
}

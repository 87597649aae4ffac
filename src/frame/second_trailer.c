/* Room: frame. The second trailer of frames without chunks, see second_trailer.h. It is
 * written for C-Blosc2 alone; nothing here reads it. */
#include "frame/second_trailer.h"

bool cv_second_trailer_is_needed(const cv_snapshot *state)
{
    return !state->header.sparse && state->grid.n_chunks == 0;
}

bool cv_second_trailer_is_apart(const cv_snapshot *state)
{
    return cv_second_trailer_is_needed(state) &&
           state->header.frame_size != state->header.header_size + state->trailer_bytes.size;
}

uint64_t cv_second_trailer_keep_off(const cv_txn *txn, uint64_t pos, uint64_t size)
{
    uint64_t front = txn->state->header.header_size;
    bool is_front = pos == front && !txn->frame->store->published;
    if (!cv_second_trailer_is_needed(txn->state) || is_front || pos >= front + size)
        return pos;
    return front + size;
}

/* What the old header needs lies there: the new one must be on the disk first. */
static cv_status settle_header(const cv_txn *txn)
{
    cv_frame *frame = txn->frame;
    if (!frame->store->published || frame->durability != CATERVA_DURABILITY_ORDERED)
        return CV_OK;
    return cv_store_sync(frame->store, CV_FRAME_OBJECT, NULL);
}

void cv_second_trailer_write(cv_txn *txn, const cv_snapshot *state)
{
    cv_store *store = txn->frame->store;
    const cv_buffer *trailer = &state->trailer_bytes;
    uint64_t front = state->header.header_size;
    txn->owes_second = cv_second_trailer_is_apart(state);
    if (!txn->owes_second || txn->frame->poisoned) return;
    bool is_read = store->published && cv_snapshot_has_older_readers(state, store);
    if (is_read || settle_header(txn) != CV_OK) return;
    if (cv_store_write(store, CV_FRAME_OBJECT, front, trailer->data, trailer->size, NULL) !=
        CV_OK)
        return;
    txn->owes_second = false;
    if (store->published && txn->frame->durability == CATERVA_DURABILITY_FULL)
        (void)cv_store_sync(store, CV_FRAME_OBJECT, NULL);
}

void cv_second_trailer_account(cv_txn *txn, const cv_snapshot *next)
{
    if (cv_second_trailer_is_needed(next))
        cv_space_occupy(&txn->space, next->header.header_size, next->trailer_bytes.size);
}

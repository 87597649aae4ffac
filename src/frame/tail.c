/* Room: frame. The header copy before the index: read when a writer opens, put
 * into each new tail. What it looks like is format's matter. */
#include "frame/tail.h"

#include "base/os.h"
#include "frame/txn_internal.h"

#include <string.h>

uint64_t cv_tail_copy_size(const cv_snapshot *state)
{
    if (state->header.sparse || state->grid.n_chunks == 0) return 0;
    return cv_header_copy_size(state->header.header_size);
}

cv_status cv_tail_read_copy(const cv_snapshot *state, cv_store *store, cv_buffer *bytes,
                            cv_header_copy *copy, bool *found, cv_error *err)
{
    uint64_t size = cv_tail_copy_size(state);
    *found = false;
    if (size == 0 || (uint64_t)state->header.cbytes < size) return CV_OK;
    uint64_t pos = state->index_pos - size;
    CV_TRY(cv_buffer_resize(bytes, (size_t)size, err));
    CV_TRY(cv_store_read(store, CV_FRAME_OBJECT, pos, bytes->data, bytes->size, err));
    *found = cv_header_copy_parse(bytes->data, bytes->size, pos, copy, NULL) == CV_OK &&
             copy->header_size == state->header_bytes.size &&
             memcmp(copy->header, state->header_bytes.data, copy->header_size) == 0;
    return CV_OK;
}

cv_status cv_tail_find(cv_txn *txn, cv_error *err)
{
    const cv_snapshot *base = txn->frame->current;
    const cv_frame_header *h = &base->header;
    cv_buffer bytes = {0};
    cv_header_copy copy;
    bool found;
    cv_status status = cv_tail_read_copy(base, txn->frame->store, &bytes, &copy, &found, err);
    if (status == CV_OK) {
        uint64_t index_pos = h->frame_size - base->trailer.size - base->index_size;
        uint64_t now = cv_os_time_ns();
        txn->base_tail_pos = found ? copy.pos : index_pos;
        txn->base_chunks_end = found ? copy.pos : h->header_size + (uint64_t)h->cbytes;
        txn->n_commits = found && copy.commit > now ? copy.commit : now;
    }
    cv_buffer_free(&bytes);
    return status;
}

/* A commit that fails has used up its number: its copy may lie about. */
void cv_tail_write_copy(cv_txn *txn, const cv_buffer *header, cv_buffer *tail)
{
    txn->n_commits++;
    cv_header_copy_write(txn->n_commits, header->data, (uint32_t)header->size, tail->data);
}

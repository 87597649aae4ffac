/* Room: frame. Builds the tails that commits write; finds the header copy of one
 * when a writer opens. What copy and seal look like is format's matter. */
#include "frame/tail.h"

#include "base/os.h"
#include "frame/index_encode.h"

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

/* *reaches: the frame goes so far. Its size is not asked for: of a directory that turns to the
 * frame of a later commit. */
static cv_status read_if_there(cv_store *store, uint64_t pos, void *to, size_t size,
                               bool *reaches, cv_error *err)
{
    cv_error why;
    cv_status status = cv_store_read(store, CV_FRAME_OBJECT, pos, to, size, &why);
    *reaches = status == CV_OK;
    if (status == CV_OK || status == CATERVA_ECORRUPT) return CV_OK;
    if (err) *err = why;
    return status;
}

cv_status cv_tail_own_copy(const cv_snapshot *state, cv_store *store, uint64_t *pos,
                           uint64_t *size, cv_error *err)
{
    const cv_frame_header *h = &state->header;
    *pos = *size = 0;
    if (state->seal != CV_SEAL_WHOLE) return CV_OK;
    if (h->sparse) { /* behind all; an older version has written none */
        uint8_t first;
        bool is_there;
        CV_TRY(read_if_there(store, h->frame_size, &first, 1, &is_there, err));
        if (is_there) *size = cv_header_copy_size(h->header_size);
        *pos = h->frame_size;
        return CV_OK;
    }
    *size = cv_tail_copy_size(state);
    if ((uint64_t)h->cbytes < *size) *size = 0;
    *pos = state->index_pos - *size;
    return CV_OK;
}

static bool is_copy_of(const cv_snapshot *state, const cv_buffer *bytes, uint64_t pos)
{
    cv_header_copy copy;
    return cv_header_copy_parse(bytes->data, bytes->size, pos, &copy, NULL) == CV_OK &&
           copy.header_size == state->header_bytes.size &&
           memcmp(copy.header, state->header_bytes.data, copy.header_size) == 0;
}

cv_status cv_tail_check_copy(const cv_snapshot *state, cv_store *store, cv_error *err)
{
    uint64_t pos, size;
    cv_buffer bytes = {0};
    CV_TRY(cv_tail_own_copy(state, store, &pos, &size, err));
    if (size == 0) return CV_OK;
    bool is_good = false;
    cv_status status = cv_buffer_resize(&bytes, (size_t)size, err);
    if (status == CV_OK)
        status = read_if_there(store, pos, bytes.data, bytes.size, &is_good, err);
    if (is_good) is_good = is_copy_of(state, &bytes, pos);
    cv_buffer_free(&bytes);
    if (status != CV_OK || is_good) return status;
    return cv_fail(err, CATERVA_ECORRUPT, (int64_t)pos,
                   "the copy of the header at byte %llu is damaged", (unsigned long long)pos);
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
        uint64_t index_pos =
            h->frame_size - base->trailer.size - base->footer.size - base->index_size;
        uint64_t now = cv_os_time_ns();
        txn->base_tail_pos = found ? copy.pos : index_pos;
        txn->base_chunks_end = found ? copy.pos : h->header_size + (uint64_t)h->cbytes;
        txn->n_commits = found && copy.commit > now ? copy.commit : now;
    }
    cv_buffer_free(&bytes);
    return status;
}

/* ---- Building ----------------------------------------------------------- */

/* A frame without chunks has no index, and nothing between header and trailer. */
static cv_status append_index(cv_txn *txn, cv_tail *tail, cv_error *err)
{
    cv_buffer *out = &tail->bytes;
    size_t origin = out->size;
    if (txn->state->grid.n_chunks == 0) return CV_OK;
    CV_TRY(cv_txn_own_index(txn, err));
    if (txn->index.strays && txn->index.strays->n > txn->index.n)
        CV_TRY(cv_index_prune_strays(&txn->index, err));
    CV_TRY(cv_index_encode(&txn->index, &txn->encoder, out, err));
    tail->index_size = out->size - origin;
    tail->footer.commit = txn->n_commits + 1;
    CV_TRY(cv_sealed_append(&txn->index, origin, out, &tail->footer, err));
    tail->root = out->size - CV_SEAL_FOOTER;
    return CV_OK;
}

cv_status cv_tail_build(cv_txn *txn, cv_tail *tail, cv_error *err)
{
    const cv_buffer *trailer = &txn->state->trailer_bytes;
    *tail = (cv_tail){.bytes = tail->bytes, .copy_size = cv_tail_copy_size(txn->state)};
    CV_TRY(cv_buffer_resize(&tail->bytes, (size_t)tail->copy_size, err));
    CV_TRY(append_index(txn, tail, err));
    return cv_buffer_append(&tail->bytes, trailer->data, trailer->size, err);
}

/* A commit that fails has used up its number: its copy may lie about. */
void cv_tail_seal(cv_txn *txn, const cv_buffer *header, cv_tail *tail)
{
    cv_buffer *bytes = &tail->bytes;
    txn->n_commits++;
    if (tail->copy_size > 0)
        cv_header_copy_write(txn->n_commits, header->data, (uint32_t)header->size,
                             bytes->data);
    cv_seal_root_write(bytes->data + tail->root, bytes->size - tail->root, header->data,
                       header->size);
}

/* Room: frame. Begins and ends transactions, and says what their state is. What happens
 * between is in put.c and reshape.c, committing in commit.c. */
#include "frame/txn.h"

#include "base/heap.h"
#include "frame/files.h"
#include "frame/holes.h"
#include "frame/layout_cache.h"
#include "frame/second_trailer.h"
#include "frame/tail.h"
#include "frame/txn_state.h"

/* Stands the (empty) transaction on the frame's current snapshot. */
void cv_txn_reset(cv_txn *txn)
{
    cv_snapshot_release(txn->base);
    cv_snapshot_release(txn->state);
    txn->base = cv_frame_snapshot(txn->frame);
    txn->state = txn->base;
    cv_snapshot_retain(txn->state);
    cv_index_free(&txn->index);
    txn->has_index = false;
    txn->changed = false;
    txn->adds_layouts = false;
    txn->n_new_files = 0;
    txn->end = txn->base_end;
    txn->chunks_end = txn->base_chunks_end;
    txn->may_reuse = false;
}

/* What is used of a contiguous frame when it is opened. Behind its end may lie
 * what an older header needs, should a power cut bring it back. C-Blosc2 leaves
 * frames that it emptied with the chunk area of before, beyond their end. */
static cv_status find_ends(cv_txn *txn, cv_error *err)
{
    const cv_frame_header *h = &txn->frame->current->header;
    txn->base_chunks_end = h->header_size;
    txn->base_end = h->header_size;
    if (h->sparse || !txn->frame->store->published) return CV_OK;
    uint64_t stored;
    CV_TRY(cv_store_size(txn->frame->store, CV_FRAME_OBJECT, &stored, err));
    CV_TRY(cv_tail_find(txn, err));
    txn->base_end = stored > h->frame_size ? stored : h->frame_size;
    if (txn->base_end < txn->base_chunks_end) txn->base_end = txn->base_chunks_end;
    return cv_holes_begin(txn, stored, err);
}

/* After a failed sync or header write the disk may hold the new state: what
 * seems free space may be its. */
cv_status cv_txn_check(const cv_txn *txn, cv_error *err)
{
    if (!txn->frame->poisoned) return CV_OK;
    return cv_fail(
        err, CATERVA_EIO, -1,
        "a sync or a write of the header failed: what is on disk is unknown, reopen "
        "the array");
}

cv_status cv_txn_begin(cv_frame *frame, cv_txn **out, cv_error *err)
{
    cv_txn *txn = cv_calloc(1, sizeof *txn);
    if (!txn) return cv_fail_memory(err, sizeof *txn, "a transaction");
    txn->frame = frame;
    cv_mutex_init(&txn->lock);
    cv_status status = find_ends(txn, err);
    cv_txn_reset(txn);
    txn->owes_second = cv_second_trailer_is_apart(txn->base);
    txn->adopted = !frame->store->published;
    if (!frame->store->published) txn->survey.whole = true; /* there is nothing to find */
    if (txn->n_commits < txn->base->footer.commit) txn->n_commits = txn->base->footer.commit;
    if (status == CV_OK) status = cv_files_begin(txn, err);
    if (status != CV_OK) {
        cv_txn_free(txn);
        return status;
    }
    *out = txn;
    return CV_OK;
}

/* Chunk files that no committed state refers to. Best effort: readers ignore
 * files that the index does not name. */
static void remove_new_files(cv_txn *txn)
{
    if (txn->frame->poisoned) return; /* the disk may name them */
    for (size_t i = 0; i < txn->n_new_files; i++)
        cv_store_remove(txn->frame->store, txn->new_files[i], NULL);
    txn->n_new_files = 0;
}

void cv_txn_free(cv_txn *txn)
{
    if (!txn) return;
    if (txn->frame->store->published && txn->base) {
        remove_new_files(txn);
        cv_holes_cut_back(txn);
        if (txn->owes_second) cv_second_trailer_write(txn, txn->base);
    }
    cv_space_destroy(&txn->space);
    cv_survey_free(&txn->survey);
    cv_snapshot_release(txn->base);
    cv_snapshot_release(txn->state);
    cv_index_free(&txn->index);
    cv_encoder_free(txn->encoder);
    cv_buffer_free(&txn->tail);
    cv_free(txn->new_files);
    cv_free(txn->old_files);
    cv_mutex_destroy(&txn->lock);
    cv_free(txn);
}

/* ---- The state as it is now ----------------------------------------------- */

bool cv_txn_pending(const cv_txn *txn)
{
    return txn->changed || !txn->frame->store->published;
}

cv_snapshot *cv_txn_snapshot(const cv_txn *txn) { return txn->state; }

/* A chunk put since the commit, behind its chunks. Slack behind it, and chunks
 * that others are about to write, are not stored yet. */
static cv_status find_put(cv_txn *txn, int64_t chunk, int64_t offset, cv_chunk_ref *out,
                          cv_error *err)
{
    uint64_t stored;
    CV_TRY(cv_store_size(txn->frame->store, CV_FRAME_OBJECT, &stored, err));
    *out = (cv_chunk_ref){
        .chunk = chunk,
        .kind = CV_REF_STORED,
        .object = CV_FRAME_OBJECT,
        .pos = txn->base->header.header_size + (uint64_t)offset,
        .name = cv_index_name(&txn->index, chunk),
    };
    out->limit = stored > out->pos ? stored - out->pos : 0;
    return CV_OK;
}

/* Called with the lock. */
static cv_status find(cv_txn *txn, int64_t chunk, cv_chunk_ref *out, cv_error *err)
{
    const cv_frame_header *h = &txn->base->header;
    const cv_index *index;
    CV_TRY(cv_txn_index(txn, &index, err));
    int64_t offset = cv_index_get(index, chunk);
    if (h->sparse || cv_offset_is_special(offset) || offset < h->cbytes)
        return cv_chunk_ref_find(txn->base, index, chunk, out, err);
    return find_put(txn, chunk, offset, out, err);
}

cv_status cv_txn_find(cv_txn *txn, int64_t chunk, cv_chunk_ref *out, cv_error *err)
{
    cv_mutex_lock(&txn->lock);
    cv_status status = find(txn, chunk, out, err);
    cv_mutex_unlock(&txn->lock);
    return status;
}

/* ---- Changes that are no chunks ------------------------------------------- */

cv_status cv_txn_change(cv_txn *txn, const cv_change *change, cv_error *err)
{
    CV_TRY(cv_txn_check(txn, err));
    cv_snapshot *next;
    CV_TRY(cv_snapshot_derive(txn->state, change, &next, err));
    cv_snapshot_release(txn->state);
    txn->state = next;
    txn->changed = true;
    return CV_OK;
}

void cv_txn_add_layouts(cv_txn *txn) { txn->adds_layouts = true; }

void cv_txn_rollback(cv_txn *txn)
{
    remove_new_files(txn);
    cv_holes_cut_back(txn);
    cv_layout_cache_clear(txn->frame->layouts);
    cv_txn_reset(txn);
    txn->adopt_next = 0;
    txn->adopted = !txn->frame->store->published;
    cv_space_rolled_back(&txn->space, txn->end);
}

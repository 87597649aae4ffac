/* Room: frame. Decides which dead bytes may be used again now. */
#include "frame/holes.h"

#include "frame/second_trailer.h"

#include <string.h>

/* What makes one more sync worth it: a share of the frame, or room for several. */
enum { WORTH_PART = 8, WORTH_TIMES = 16 };

/* ---- Beginning ------------------------------------------------------------ */

/* An array that was appended to this file (caterva_frame_append) is no garbage. */
static cv_status find_follower(cv_txn *txn, uint64_t pos, uint64_t size, cv_error *err)
{
    const cv_buffer *header = &txn->frame->current->header_bytes;
    uint8_t bytes[CV_FRAME_MAGIC_SIZE];
    if (size < sizeof bytes) return CV_OK;
    CV_TRY(cv_store_read(txn->frame->store, CV_FRAME_OBJECT, pos, bytes, sizeof bytes, err));
    txn->has_follower = memcmp(bytes, header->data, sizeof bytes) == 0;
    return CV_OK;
}

cv_status cv_holes_begin(cv_txn *txn, uint64_t stored, cv_error *err)
{
    uint64_t end = txn->frame->current->header.frame_size;
    txn->unsettled = txn->frame->durability != CATERVA_DURABILITY_NONE;
    txn->unsurveyed = true;
    txn->found_end = end;
    if (stored <= end) return CV_OK;
    CV_TRY(find_follower(txn, end, stored - end, err));
    if (!txn->has_follower)
        cv_extents_add(&txn->space.aging, (cv_extent){end, txn->base_end - end}, true);
    return CV_OK;
}

bool cv_txn_may_reuse(cv_txn *txn)
{
    if (!txn->may_reuse)
        txn->may_reuse = !cv_snapshot_has_older_readers(txn->base, txn->frame->store);
    return txn->may_reuse;
}

/* ---- After a sync --------------------------------------------------------- */

/* The committed header is on the disk then, and no older one. A sync that fails may
 * have lost what was put. */
static cv_status settle(cv_txn *txn, cv_error *err)
{
    cv_frame *frame = txn->frame;
    if (txn->unsettled) {
        cv_status status = cv_store_sync(frame->store, CV_FRAME_OBJECT, err);
        if (status != CV_OK) frame->poisoned = true;
        CV_TRY(status);
    }
    txn->unsettled = false;
    cv_space_settled(&txn->space);
    return CV_OK;
}

/* What lies behind the frame when nothing was put yet is nobody's. */
static cv_status cut_left_behind(cv_txn *txn, cv_error *err)
{
    uint64_t end = txn->base->header.frame_size;
    bool is_left = txn->base_end > end && txn->base_chunks_end <= end &&
                   txn->end == txn->base_end && !txn->has_follower;
    if (!is_left || txn->frame->store->in_memory || !cv_txn_may_reuse(txn)) return CV_OK;
    CV_TRY(settle(txn, err));
    if (cv_store_truncate(txn->frame->store, CV_FRAME_OBJECT, end, NULL) != CV_OK)
        return CV_OK;
    cv_space_occupy(&txn->space, end, txn->base_end - end);
    txn->base_end = txn->end = end;
    return CV_OK;
}

/* ---- Finding -------------------------------------------------------------- */

static cv_extents *found_in(cv_txn *txn)
{
    return txn->unsettled ? &txn->space.aging : &txn->space.free;
}

static cv_status look_around(cv_txn *txn, cv_error *err)
{
    cv_frame *frame = txn->frame;
    if (!txn->unsurveyed) return CV_OK;
    CV_TRY(cut_left_behind(txn, err));
    txn->unsurveyed = false; /* once: what is put from now on is no finding */
    CV_TRY(cv_survey_make(&txn->survey, frame, txn->base, txn->base_tail_pos, found_in(txn),
                          err));
    if (cv_second_trailer_is_needed(txn->base)) {
        uint64_t front = txn->base->header.header_size, size = txn->base->trailer_bytes.size;
        cv_space_occupy(&txn->space, front, size);
        cv_extents_cut(&txn->space.aging, front, size);
    }
    return CV_OK;
}

static bool is_worth_a_sync(const cv_txn *txn, uint64_t size)
{
    uint64_t total = cv_extents_total(&txn->space.aging);
    if (!txn->unsettled || !cv_extents_fit(&txn->space.aging, size)) return false;
    return total >= txn->base->header.frame_size / WORTH_PART || total / WORTH_TIMES >= size;
}

cv_status cv_holes_take(cv_txn *txn, uint64_t size, cv_extent *out, bool *found,
                        cv_error *err)
{
    CV_TRY(look_around(txn, err));
    *found = cv_txn_may_reuse(txn) && cv_space_take(&txn->space, size, out);
    if (*found || !txn->may_reuse) return CV_OK;
    if (!is_worth_a_sync(txn, size)) {
        uint64_t enough = txn->unsettled ? txn->base->header.frame_size / WORTH_PART : size;
        CV_TRY(cv_survey_find(&txn->survey, txn->frame, size, enough, found_in(txn), err));
    }
    if (is_worth_a_sync(txn, size)) CV_TRY(settle(txn, err));
    *found = cv_space_take(&txn->space, size, out);
    return CV_OK;
}

void cv_holes_replaced(cv_txn *txn, uint64_t pos)
{
    cv_extent chunk;
    if (txn->unsurveyed) (void)look_around(txn, NULL);
    if (cv_space_replaced(&txn->space, pos)) return;
    if (cv_survey_replaced(&txn->survey, pos, &chunk)) cv_space_died(&txn->space, chunk);
}

/* ---- The tail ------------------------------------------------------------- */

cv_status cv_holes_before_tail(cv_txn *txn, uint64_t size, cv_error *err)
{
    uint64_t end, found;
    bool known = cv_space_ours_end(&txn->space, &end);
    if (!txn->frame->store->published) return CV_OK;
    CV_TRY(look_around(txn, err));
    if (!known || !txn->survey.whole || !cv_txn_may_reuse(txn)) return CV_OK;
    CV_TRY(cv_survey_end(&txn->survey, txn->frame, found_in(txn), &found, err));
    if (end < found) end = found;
    if (end < txn->base->header.header_size) end = txn->base->header.header_size;
    if (end < txn->chunks_end) txn->chunks_end = end;
    if (!txn->unsettled || end >= txn->base_tail_pos) return CV_OK;
    uint64_t gain = txn->base_tail_pos - end;
    bool is_worth = gain >= size && gain >= txn->base->header.frame_size / WORTH_PART;
    return is_worth ? settle(txn, err) : CV_OK;
}

/* ---- Counting ------------------------------------------------------------- */

bool cv_holes_dead(cv_txn *txn, uint64_t *dead)
{
    cv_space *space = &txn->space;
    uint64_t end = txn->base->header.frame_size;
    if (txn->unsurveyed || !txn->survey.whole) return false;
    if (cv_survey_rest(&txn->survey, txn->frame, found_in(txn), NULL) != CV_OK) return false;
    *dead = cv_extents_below(&space->free, end) + cv_extents_below(&space->aging, end) +
            cv_extents_below(&space->dead, end);
    return true;
}

/* ---- Giving back ---------------------------------------------------------- */

void cv_holes_cut_back(cv_txn *txn)
{
    cv_store *store = txn->frame->store;
    uint64_t stored;
    if (txn->base->header.sparse || store->in_memory || !store->published) return;
    if (txn->frame->poisoned || !txn->changed) return; /* poisoned: the disk may use it */
    if (cv_store_size(store, CV_FRAME_OBJECT, &stored, NULL) != CV_OK) return;
    if (stored > txn->base_end)
        (void)cv_store_truncate(store, CV_FRAME_OBJECT, txn->base_end, NULL);
}

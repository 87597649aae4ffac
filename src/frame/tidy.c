/* Room: frame. What a writer gives back before it closes.
 *
 *   | chunks | dead | tail | beyond the frame |    the tail moves down over what
 *   | chunks | tail |                              is dead, the file is cut
 *
 * The move is a commit like any other, so a crash leaves the old or the new
 * state; the tail moves only where it does not touch the committed one. Cutting
 * comes last, when no header that may be on the disk, and no reader, needs what
 * lies behind the frame. */
#include "frame/tidy.h"

#include "base/arith.h"
#include "format/chunk_header.h"
#include "frame/commit.h"
#include "frame/files.h"
#include "frame/holes.h"
#include "frame/index_read.h"
#include "frame/layout_area.h"
#include "frame/layout_cache.h"
#include "frame/second_trailer.h"
#include "frame/tail.h"
#include "frame/txn_state.h"

/* What makes moving the tail worth two syncs. */
enum { MIN_GAIN = 64 * 1024, MIN_PART = 16 };

/* ---- Where the live chunks end -------------------------------------------- */

/* The end of what this handle put is known; of other chunks the headers say.
 * Only those near the last one can reach beyond it, and as no chunk takes more
 * than its items and some overhead, the rest is not looked at. */
static uint64_t reach_of(const cv_grid *grid)
{
    return 2 * (uint64_t)grid->chunk_bytes + 64 * 1024;
}

typedef struct survey {
    cv_txn *txn;
    const cv_index *index;
    uint64_t end; /* behind all that was looked at */
} survey;

/* Where chunk `i` begins; false when it takes no space. */
static bool chunk_pos(const survey *s, int64_t i, uint64_t *pos)
{
    int64_t offset = cv_index_get(s->index, i);
    *pos = s->txn->base->header.header_size + (uint64_t)offset;
    return !cv_offset_is_special(offset);
}

static void find_last(survey *s)
{
    for (int64_t i = 0; i < s->txn->base->grid.n_chunks; i++) {
        uint64_t pos, size = 0;
        if (!chunk_pos(s, i, &pos)) continue;
        (void)cv_extents_has(&s->txn->space.ours, pos, &size);
        if (pos + size > s->end) s->end = pos + size;
    }
    const cv_strays *strays = s->index->strays; /* tables of other writers' chunks */
    uint64_t table = cv_block_table_size(s->txn->base->grid.n_blocks);
    for (int64_t i = 0; strays && i < strays->n; i++) {
        uint64_t end = strays->items[i].pos + table;
        if (end > s->end) s->end = end;
    }
}

static cv_status measure_chunk(survey *s, int64_t i, cv_error *err)
{
    cv_txn *txn = s->txn;
    cv_chunk_ref ref;
    cv_layout *layout;
    CV_TRY(cv_chunk_ref_find(txn->base, s->index, i, &ref, err));
    CV_TRY(cv_layout_get(txn->frame->layouts, txn->base, &ref, &layout, err));
    uint64_t end = ref.pos + cv_layout_stored_size(layout, &ref);
    if (ref.name == 0) end += layout->table_size; /* may stand there, to be adopted */
    if (end > s->end) s->end = end;
    cv_layout_release(layout);
    return CV_OK;
}

static cv_status find_chunks_end(cv_txn *txn, uint64_t *end, cv_error *err)
{
    const cv_snapshot *base = txn->base;
    survey s = {.txn = txn, .end = base->header.header_size};
    if (base->grid.n_chunks > 0) {
        CV_TRY(cv_snapshot_index(txn->base, txn->frame->store, &s.index, err));
        find_last(&s);
    }
    uint64_t reach = reach_of(&base->grid);
    for (int64_t i = 0; i < base->grid.n_chunks; i++) {
        uint64_t pos, size;
        if (!chunk_pos(&s, i, &pos) || pos + reach <= s.end) continue;
        if (!cv_extents_has(&txn->space.ours, pos, &size)) CV_TRY(measure_chunk(&s, i, err));
    }
    *end = s.end;
    return CV_OK;
}

/* ---- Moving the tail ------------------------------------------------------ */

static cv_status measure_tail(cv_txn *txn, uint64_t *size, cv_error *err)
{
    cv_tail tail = {.bytes = {0}};
    cv_status status = cv_tail_build(txn, &tail, err);
    *size = tail.bytes.size;
    cv_buffer_free(&tail.bytes);
    return status;
}

/* Where the tail would go, behind the last live chunk; size 0: it stays, there is
 * too little to win. A handle that never looked at the index changed nothing,
 * and moves nothing. */
static cv_status find_place(cv_txn *txn, uint64_t stored, cv_extent *place, cv_error *err)
{
    uint64_t end, size;
    cv_layout_area layouts;
    place->size = 0;
    if (!atomic_load(&txn->base->index_ready)) return CV_OK;
    CV_TRY(find_chunks_end(txn, &end, err));
    CV_TRY(cv_layout_area_find(txn->base, txn->frame->store, &layouts, err));
    if (layouts.size > 0) end = layouts.pos + layouts.size;
    if (end >= txn->base_tail_pos) return CV_OK;
    uint64_t gain = txn->base_tail_pos - end + stored - txn->base->header.frame_size;
    if (gain < MIN_GAIN && gain < stored / MIN_PART) return CV_OK;
    CV_TRY(measure_tail(txn, &size, err));
    end = cv_second_trailer_keep_off(txn, end, size);
    if (end + size <= txn->base_tail_pos) *place = (cv_extent){end, size};
    return CV_OK;
}

static cv_status move_tail(cv_txn *txn, cv_extent place, cv_error *err)
{
    if (!cv_space_is_clear(&txn->space, place.pos, place.size)) return CV_OK;
    txn->chunks_end = place.pos;
    txn->may_reuse = true;
    txn->changed = true;
    CV_TRY(cv_txn_commit(txn, err));
    if (txn->frame->durability != CATERVA_DURABILITY_ORDERED) return CV_OK;
    return cv_store_sync(txn->frame->store, CV_FRAME_OBJECT, err);
}

/* A reader may have come meanwhile, with the state before the move. */
static cv_status cut(cv_txn *txn, cv_error *err)
{
    cv_store *store = txn->frame->store;
    uint64_t stored;
    CV_TRY(cv_store_size(store, CV_FRAME_OBJECT, &stored, err));
    uint64_t size = txn->base->header.frame_size;
    if (stored <= size) return CV_OK;
    if (cv_snapshot_has_older_readers(txn->base, store)) return CV_OK;
    return cv_store_truncate(store, CV_FRAME_OBJECT, size, err);
}

static cv_status tidy_file(cv_txn *txn, cv_error *err)
{
    cv_store *store = txn->frame->store;
    uint64_t stored;
    cv_extent place;
    CV_TRY(cv_store_size(store, CV_FRAME_OBJECT, &stored, err));
    place.size = 0; /* readers of this state would need its tail */
    if (!cv_store_has_readers(store)) CV_TRY(find_place(txn, stored, &place, err));
    if (place.size == 0 && stored <= txn->base->header.frame_size) return CV_OK;

    /* After this the disk holds the committed header and no older one. */
    if (txn->frame->durability != CATERVA_DURABILITY_NONE)
        CV_TRY(cv_store_sync(store, CV_FRAME_OBJECT, err));
    cv_space_settled(&txn->space);
    if (place.size > 0) CV_TRY(move_tail(txn, place, err));
    return cut(txn, err);
}

void cv_txn_tidy(cv_txn *txn)
{
    cv_store *store = txn->frame->store;
    if (cv_txn_pending(txn) || txn->frame->poisoned) return;
    if (cv_snapshot_has_older_readers(txn->base, store)) return;
    if (txn->base->header.sparse)
        cv_files_remove_old(txn, txn->base);
    else if (!txn->has_follower)
        (void)tidy_file(txn, NULL);
}

bool cv_txn_dead(cv_txn *txn, uint64_t *dead, uint64_t *size)
{
    *size = txn->base->header.frame_size;
    if (txn->base->header.sparse || txn->changed || txn->frame->poisoned) return false;
    return cv_txn_may_reuse(txn) && cv_holes_dead(txn, dead);
}

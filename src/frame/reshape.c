/* Room: frame. What a change of shape does to the index: chunks keep their
 * bytes and get other numbers, or are dropped. No chunk is decoded. */
#include "frame/reshape.h"

#include "frame/holes.h"

int64_t cv_reshape_source(const cv_reshape *reshape, const cv_grid *from, const cv_grid *to,
                          int64_t chunk)
{
    int64_t index[CV_MAX_DIMS];
    int64_t number = 0;
    cv_grid_chunk_index(to, chunk, index);
    for (int d = 0; d < to->ndim; d++) {
        int64_t i = index[d];
        if (d == reshape->axis && i >= reshape->at) {
            i -= reshape->shift;
            if (i < reshape->at && reshape->shift > 0) return -1; /* in the gap */
        }
        if (i >= from->chunk_counts[d]) return -1;
        number += i * from->chunk_strides[d];
    }
    return number;
}

int64_t cv_reshape_target(const cv_reshape *reshape, const cv_grid *from, const cv_grid *to,
                          int64_t chunk)
{
    int64_t index[CV_MAX_DIMS];
    int64_t number = 0;
    cv_grid_chunk_index(from, chunk, index);
    for (int d = 0; d < from->ndim; d++) {
        int64_t i = index[d];
        if (d == reshape->axis && i >= reshape->at) {
            i += reshape->shift;
            if (i < reshape->at) return -1; /* among the dropped */
        }
        if (i >= to->chunk_counts[d]) return -1;
        number += i * to->chunk_strides[d];
    }
    return number;
}

bool cv_reshape_keeps_numbers(const cv_reshape *reshape, const cv_grid *from,
                              const cv_grid *to)
{
    if (reshape->shift != 0) return false;
    for (int d = 1; d < to->ndim; d++)
        if (from->chunk_counts[d] != to->chunk_counts[d]) return false;
    return true;
}

enum { MOST_DROPPED = 4096 };

/* The old chunks that the new grid has no place for are dead. Where there are very many,
 * the next writer finds the others. */
static void drop_chunks(cv_txn *txn, const cv_index *old, const cv_reshape *reshape,
                        const cv_grid *to)
{
    const cv_grid *from = &txn->state->grid;
    bool keeps = cv_reshape_keeps_numbers(reshape, from, to);
    int64_t first = keeps ? to->n_chunks : 0;
    int left = MOST_DROPPED;
    for (int64_t i = first; i < old->n && left > 0; i++) {
        int64_t offset = cv_index_get(old, i);
        if (cv_offset_is_special(offset)) continue;
        if (!keeps && cv_reshape_target(reshape, from, to, i) >= 0) continue;
        cv_holes_replaced(txn, txn->base->header.header_size + (uint64_t)offset);
        left--;
    }
}

/* The index as it is, for drop_chunks; empty where nothing can be dropped. */
static cv_status keep_old(const cv_txn *txn, const cv_reshape *reshape, const cv_grid *to,
                          cv_index *out, cv_error *err)
{
    bool grows = to->n_chunks >= txn->index.n &&
                 cv_reshape_keeps_numbers(reshape, &txn->state->grid, to);
    *out = (cv_index){0};
    if (grows || !txn->index.pages || txn->base->header.sparse) return CV_OK;
    return cv_index_share(&txn->index, out, err);
}

static cv_status renumber(cv_index *index, const cv_reshape *reshape, const cv_grid *from,
                          const cv_grid *to, int64_t fill, cv_error *err)
{
    if (cv_reshape_keeps_numbers(reshape, from, to))
        return cv_index_resize(index, to->n_chunks, fill, err);
    cv_index moved;
    CV_TRY(cv_index_create(to->n_chunks, &moved, err));
    for (int64_t i = 0; i < to->n_chunks; i++) {
        int64_t source = cv_reshape_source(reshape, from, to, i);
        cv_index_page *page = moved.pages[i / CV_INDEX_PAGE];
        page->entries[i % CV_INDEX_PAGE] = source < 0 ? fill : cv_index_get(index, source);
        cv_page_set_name(page, i % CV_INDEX_PAGE,
                         source < 0 ? 0 : cv_index_name(index, source));
    }
    moved.strays = index->strays; /* go by entry: they keep their places */
    index->strays = NULL;
    cv_index_free(index);
    *index = moved;
    return CV_OK;
}

/* The shape changes in place, in a state that no reader has. */
static cv_status own_state(cv_txn *txn, cv_error *err)
{
    if (txn->state != txn->base) return CV_OK;
    cv_change nothing = {.set_attributes = false};
    cv_snapshot *state;
    CV_TRY(cv_snapshot_derive(txn->base, &nothing, &state, err));
    cv_snapshot_release(txn->state);
    txn->state = state;
    return CV_OK;
}

cv_status cv_txn_reshape(cv_txn *txn, const cv_reshape *reshape, cv_ref_kind fill,
                         cv_error *err)
{
    CV_TRY(cv_txn_check(txn, err));
    CV_TRY(cv_txn_own_index(txn, err));
    CV_TRY(own_state(txn, err));
    cv_new_shape change;
    cv_index old;
    CV_TRY(cv_new_shape_make(txn->state, reshape->shape, &change, err));
    cv_status status = keep_old(txn, reshape, &change.grid, &old, err);
    if (status == CV_OK)
        status = renumber(&txn->index, reshape, &txn->state->grid, &change.grid,
                          cv_offset_of_kind(fill), err);
    if (status == CV_OK) {
        drop_chunks(txn, &old, reshape, &change.grid);
        cv_new_shape_apply(&change, txn->state);
        txn->changed = true;
        txn->adopt_next = 0; /* chunks have other numbers */
    }
    cv_index_free(&old);
    cv_buffer_free(&change.meta);
    return status;
}

static cv_status take_box(const cv_index *from, const cv_grid *grid, const int64_t *first,
                          const cv_grid *to, cv_index *out, cv_error *err)
{
    int64_t at[CV_MAX_DIMS];
    CV_TRY(cv_index_create(to->n_chunks, out, err));
    for (int64_t i = 0; i < to->n_chunks; i++) {
        int64_t source = 0;
        cv_grid_chunk_index(to, i, at);
        for (int d = 0; d < to->ndim; d++)
            source += (first[d] + at[d]) * grid->chunk_strides[d];
        cv_index_page *page = out->pages[i / CV_INDEX_PAGE];
        page->entries[i % CV_INDEX_PAGE] = cv_index_get(from, source);
        cv_page_set_name(page, i % CV_INDEX_PAGE, cv_index_name(from, source));
    }
    return CV_OK;
}

cv_status cv_txn_crop(cv_txn *txn, const int64_t *first, const int64_t *shape, cv_error *err)
{
    cv_new_shape change;
    cv_index box;
    CV_TRY(cv_txn_check(txn, err));
    CV_TRY(cv_txn_own_index(txn, err));
    CV_TRY(own_state(txn, err));
    CV_TRY(cv_new_shape_make(txn->state, shape, &change, err));
    cv_status status =
        take_box(&txn->index, &txn->state->grid, first, &change.grid, &box, err);
    if (status == CV_OK) {
        cv_index_free(&txn->index);
        txn->index = box;
        cv_new_shape_apply(&change, txn->state);
        txn->changed = true;
    }
    cv_buffer_free(&change.meta);
    return status;
}

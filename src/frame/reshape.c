/* Room: frame. What a change of shape does to the index: chunks keep their
 * bytes and get other numbers. Pure index arithmetic; no chunk is read. */
#include "frame/txn_internal.h"

#include <stdlib.h>
#include <string.h>

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

/* Numbers stay as they are while only the first axis grows or shrinks: the way
 * of every append to a series. */
static bool keeps_numbers(const cv_reshape *reshape, const cv_grid *from, const cv_grid *to)
{
    if (reshape->shift != 0) return false;
    for (int d = 1; d < to->ndim; d++)
        if (from->chunk_counts[d] != to->chunk_counts[d]) return false;
    return true;
}

static void renumber(const cv_reshape *reshape, const cv_grid *from, const cv_grid *to,
                     const int64_t *old, int64_t *offsets, int64_t fill)
{
    if (keeps_numbers(reshape, from, to)) {
        int64_t kept = from->n_chunks < to->n_chunks ? from->n_chunks : to->n_chunks;
        memcpy(offsets, old, (size_t)kept * sizeof old[0]);
        for (int64_t i = kept; i < to->n_chunks; i++) offsets[i] = fill;
        return;
    }
    for (int64_t i = 0; i < to->n_chunks; i++) {
        int64_t source = cv_reshape_source(reshape, from, to, i);
        offsets[i] = source < 0 ? fill : old[source];
    }
}

cv_status cv_txn_reshape(cv_txn *txn, const cv_reshape *reshape, cv_ref_kind fill,
                         cv_error *err)
{
    CV_TRY(cv_txn_check(txn, err));
    CV_TRY(cv_txn_own_offsets(txn, err));
    cv_change change = {.shape = reshape->shape};
    cv_snapshot *next;
    CV_TRY(cv_snapshot_derive(txn->state, &change, &next, err));

    size_t size = ((size_t)next->grid.n_chunks + 1) * sizeof(int64_t);
    int64_t *offsets = malloc(size);
    if (!offsets) {
        cv_snapshot_release(next);
        return cv_fail_memory(err, size, "the chunk index");
    }
    renumber(reshape, &txn->state->grid, &next->grid, txn->offsets, offsets,
             cv_offset_of_kind(fill));
    free(txn->offsets);
    txn->offsets = offsets;
    cv_snapshot_release(txn->state);
    txn->state = next;
    txn->changed = true;
    return CV_OK;
}

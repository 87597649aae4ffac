/* Room: frame. What a change of shape does to the index: chunks keep their
 * bytes and get other numbers. Pure index arithmetic; no chunk is read. */
#include "frame/txn_internal.h"

#include <stdlib.h>

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

/* The index grown or cut in place; twice the room it needs, so that a series of
 * appends copies it rarely. */
static cv_status extend(cv_txn *txn, int64_t n, int64_t fill, cv_error *err)
{
    if (n > txn->max_offsets) {
        size_t size = 2 * (size_t)n * sizeof(int64_t);
        int64_t *grown = realloc(txn->offsets, size);
        if (!grown) return cv_fail_memory(err, size, "the chunk index");
        txn->offsets = grown;
        txn->max_offsets = 2 * n;
    }
    for (int64_t i = txn->state->grid.n_chunks; i < n; i++) txn->offsets[i] = fill;
    return CV_OK;
}

static cv_status renumber(cv_txn *txn, const cv_reshape *reshape, const cv_grid *to,
                          int64_t fill, cv_error *err)
{
    const cv_grid *from = &txn->state->grid;
    if (keeps_numbers(reshape, from, to)) return extend(txn, to->n_chunks, fill, err);
    size_t size = ((size_t)to->n_chunks + 1) * sizeof(int64_t);
    int64_t *offsets = malloc(size);
    if (!offsets) return cv_fail_memory(err, size, "the chunk index");
    for (int64_t i = 0; i < to->n_chunks; i++) {
        int64_t source = cv_reshape_source(reshape, from, to, i);
        offsets[i] = source < 0 ? fill : txn->offsets[source];
    }
    free(txn->offsets);
    txn->offsets = offsets;
    txn->max_offsets = to->n_chunks;
    return CV_OK;
}

cv_status cv_txn_reshape(cv_txn *txn, const cv_reshape *reshape, cv_ref_kind fill,
                         cv_error *err)
{
    CV_TRY(cv_txn_check(txn, err));
    CV_TRY(cv_txn_own_offsets(txn, err));
    cv_change change = {.shape = reshape->shape};
    cv_snapshot *next;
    CV_TRY(cv_snapshot_derive(txn->state, &change, &next, err));

    cv_status status = renumber(txn, reshape, &next->grid, cv_offset_of_kind(fill), err);
    if (status != CV_OK) {
        cv_snapshot_release(next);
        return status;
    }
    cv_snapshot_release(txn->state);
    txn->state = next;
    txn->changed = true;
    return CV_OK;
}

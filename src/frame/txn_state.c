/* Room: frame. What every part of a transaction that changes the index asks of it. */
#include "frame/txn_state.h"

#include "frame/index_read.h"

cv_status cv_txn_index(cv_txn *txn, const cv_index **out, cv_error *err)
{
    *out = &txn->index;
    if (txn->has_index) return CV_OK;
    return cv_snapshot_index(txn->base, txn->frame->store, out, err);
}

cv_status cv_txn_own_index(cv_txn *txn, cv_error *err)
{
    if (txn->has_index) return CV_OK;
    const cv_index *index;
    CV_TRY(cv_snapshot_index(txn->base, txn->frame->store, &index, err));
    CV_TRY(cv_index_share(index, &txn->index, err));
    txn->has_index = true;
    return CV_OK;
}

/* Room: frame. The two things that every part of a transaction asks of it. */
#include "frame/txn_state.h"

#include "frame/index_read.h"

/* After a failed sync or header write the disk may hold the new state: what
 * seems free space may be its. */
cv_status cv_txn_check(const cv_txn *txn, cv_error *err)
{
    if (!txn->frame->poisoned) return CV_OK;
    return cv_fail(err, CATERVA_EIO, -1,
                   "a sync or a write of the header failed: what is on disk is unknown, reopen "
                   "the array");
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

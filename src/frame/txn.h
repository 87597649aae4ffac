/* A transaction: everything a writer changes between two commits. New chunks
 * go into space that the committed state does not use, so that until the commit
 * nothing of it is seen, and dropping it costs nothing: put.h, reshape.h, commit.h,
 * tidy.h. */
#ifndef CV_FRAME_TXN_H
#define CV_FRAME_TXN_H

#include "frame/chunk_ref.h"
#include "frame/derive.h"
#include "frame/frame.h"

typedef struct cv_txn cv_txn;

/* Begins on the frame's current snapshot. One per frame. */
cv_status cv_txn_begin(cv_frame *frame, cv_txn **out, cv_error *err);

/* Releases it; what was put and not committed is dropped. */
void cv_txn_free(cv_txn *txn);

/* CATERVA_EIO when the frame is poisoned: it takes no further change. */
cv_status cv_txn_check(const cv_txn *txn, cv_error *err);

/* True when something was put since the last commit, or nothing of the frame
 * was ever committed. */
bool cv_txn_pending(const cv_txn *txn);

/* The state as the transaction would leave it: shape, attributes, metalayers. Borrowed
 * until the next change. */
cv_snapshot *cv_txn_snapshot(const cv_txn *txn);

/* Where chunk `chunk` is, as the transaction sees it. Any thread. */
cv_status cv_txn_find(cv_txn *txn, int64_t chunk, cv_chunk_ref *out, cv_error *err);

/* Changes attributes or a metalayer. */
cv_status cv_txn_change(cv_txn *txn, const cv_change *change, cv_error *err);

/* The commit to come, the first one of a new array, puts the layouts of all chunks into one
 * place, see put_layouts.h. */
void cv_txn_add_layouts(cv_txn *txn);

/* Drops what was put since the last commit. */
void cv_txn_rollback(cv_txn *txn);

/* For the commit: empties the transaction and stands it on the frame's current snapshot. */
void cv_txn_reset(cv_txn *txn);

#endif

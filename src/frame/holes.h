/* Where a writer finds space in a contiguous frame that is there already: dead bytes
 * of its own commits (space.h), those it found (survey.h), and what a writer that
 * failed or was killed left behind the frame.
 *
 * Two others may need bytes that the committed state does not use. Readers of an older
 * state: they say so by their locks, and nothing is used beside them. And a power cut,
 * which may bring back the header before the one on the file, as long as that was never
 * synced: which is not known when a file is opened. So what is found is used after a
 * sync, or after the first commit, which has one. */
#ifndef CV_FRAME_HOLES_H
#define CV_FRAME_HOLES_H

#include "frame/txn_state.h"

/* When the transaction begins: behind the frame are bytes up to `stored`. */
cv_status cv_holes_begin(cv_txn *txn, uint64_t stored, cv_error *err);

/* True when nobody reads a state older than the committed one; that stays so until the
 * next commit. */
bool cv_txn_may_reuse(cv_txn *txn);

/* A hole for `size` bytes, if there is one. A sync that fails poisons the frame. Called
 * with the lock. */
cv_status cv_holes_take(cv_txn *txn, uint64_t size, cv_extent *out, bool *found,
                        cv_error *err);

/* The chunk at `pos` is replaced or dropped. Called with the lock. */
void cv_holes_replaced(cv_txn *txn, uint64_t pos);

/* Before a tail of `size` bytes is placed: lowers chunks_end to where the chunks of the
 * state to be committed end, and makes sure that the space before the committed tail
 * may be used where there is much of it. */
cv_status cv_holes_before_tail(cv_txn *txn, uint64_t size, cv_error *err);

/* Bytes below the frame's end that nobody uses. False when they cannot be told. */
bool cv_holes_dead(cv_txn *txn, uint64_t *dead);

/* Cuts the file back to what committed states may need. Best effort. */
void cv_holes_cut_back(cv_txn *txn);

#endif

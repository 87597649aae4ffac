/* The commit: the one way committed state changes. */
#ifndef CV_FRAME_COMMIT_H
#define CV_FRAME_COMMIT_H

#include "base/watch.h"
#include "frame/txn.h"

/* The commit protocol. On failure before the header write the committed state
 * is untouched and the transaction kept; a failed sync poisons the frame. */
cv_status cv_txn_commit(cv_txn *txn, cv_error *err);

/* Gives every chunk checksums that has none, see adopt.h, and commits, unless
 * nothing is pending and all is sealed already. */
cv_status cv_txn_seal(cv_txn *txn, cv_watch *watch, cv_error *err);

#endif

/* The chunk files of a directory: which of them a state names, and the removal
 * of those that none does. A replaced file stays for the readers of older
 * states until no reader holds one; what is left at the end, or by a crash, goes
 * when the next writer opens the directory. */
#ifndef CV_FRAME_FILES_H
#define CV_FRAME_FILES_H

#include "frame/txn_state.h"

/* The chunk files that an index of `n` entries names, in ascending order. Free
 * with cv_free, also on failure. */
cv_status cv_files_named(const cv_index *index, int64_t n, int64_t **files, size_t *n_files,
                         cv_error *err);

/* Before a commit: the files that the committed index names or the transaction has put, and that
 * its own index does not name. Sets nothing when the transaction has no index. Free *files with
 * cv_free, also on failure. */
cv_status cv_files_unnamed(cv_txn *txn, int64_t **files, size_t *n_files, cv_error *err);

/* When a writer opens: removes the files that the committed index does not
 * name, unless somebody reads an older state, and finds the first number above all files that
 * are there. */
cv_status cv_files_begin(cv_txn *txn, cv_error *err);

/* After a commit: nobody who opens from now on needs these files. They go with
 * the next cv_files_remove_old that meets no reader of a state older than `state`, the
 * committed one. */
void cv_files_replaced(cv_txn *txn, const int64_t *files, size_t n_files);
void cv_files_remove_old(cv_txn *txn, const cv_snapshot *state);

#endif

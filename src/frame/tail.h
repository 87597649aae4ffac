/* The tail of a contiguous frame: what stands behind its chunks.
 *
 *   | chunks and dead space | header copy | index | trailer |
 *
 * The copy counts as dead space (cbytes ends with it). It is there for repair,
 * should the header be torn, and promises nothing to readers. */
#ifndef CV_FRAME_TAIL_H
#define CV_FRAME_TAIL_H

#include "format/header_copy.h"
#include "frame/txn.h"

/* Bytes of the header copy that a tail of `state` begins with, or 0. */
uint64_t cv_tail_copy_size(const cv_snapshot *state);

/* The copy right before the index of a stored state, when it is one of its own
 * header: not after another writer changed the frame. `bytes` keeps it. */
cv_status cv_tail_read_copy(const cv_snapshot *state, cv_store *store, cv_buffer *bytes,
                            cv_header_copy *copy, bool *found, cv_error *err);

/* Looks where the committed tail begins and the chunks end: at the copy, where
 * there is one, else at the index. Sets the transaction's base_tail_pos,
 * base_chunks_end and n_commits. */
cv_status cv_tail_find(cv_txn *txn, cv_error *err);

/* Writes the copy of `header` for the next commit to the beginning of `tail`,
 * which has room for it. */
void cv_tail_write_copy(cv_txn *txn, const cv_buffer *header, cv_buffer *tail);

#endif

/* The tail of a contiguous frame: what stands behind its chunks.
 *
 *   | chunks and dead space | header copy | index | seal | trailer |
 *
 * The copy counts as dead space (cbytes ends with it). It is there for repair,
 * should the header be torn, and promises nothing to readers. The seal vouches
 * for all else (sealed.h). In a directory's chunks.b2frame the copy stands behind all,
 * where the frame has ended. */
#ifndef CV_FRAME_TAIL_H
#define CV_FRAME_TAIL_H

#include "format/frame_header.h"
#include "frame/sealed.h"
#include "frame/txn_state.h"

/* Bytes of the header copy that a tail of `state` begins with, or 0: of a directory, too. */
uint64_t cv_tail_copy_size(const cv_snapshot *state);

/* The copy right before the index of a stored state, when it is one of its own
 * header: not after another writer changed the frame. `bytes` keeps it. */
cv_status cv_tail_read_copy(const cv_snapshot *state, cv_store *store, cv_buffer *bytes,
                            cv_header_copy *copy, bool *found, cv_error *err);

/* Where the copy of a sealed state's header stands, and its size; 0: it has none, or who wrote
 * the state is not known. */
cv_status cv_tail_own_copy(const cv_snapshot *state, cv_store *store, uint64_t *pos,
                           uint64_t *size, cv_error *err);

/* CATERVA_ECORRUPT: that copy is not what the commit has written. */
cv_status cv_tail_check_copy(const cv_snapshot *state, cv_store *store, cv_error *err);

/* Looks where the committed tail begins and the chunks end: at the copy, where
 * there is one, else at the index. Sets the transaction's base_tail_pos,
 * base_chunks_end and n_commits. */
cv_status cv_tail_find(cv_txn *txn, cv_error *err);

/* The tail of the state that a commit would write now, but for what depends on
 * its place: header copy and root. */
typedef struct cv_tail {
    cv_buffer bytes;
    uint64_t copy_size, index_size;
    size_t root; /* where what the root vouches for begins: footer or trailer */
    cv_seal_footer footer;
} cv_tail;

/* Builds it in tail->bytes, whose memory is used again. */
cv_status cv_tail_build(cv_txn *txn, cv_tail *tail, cv_error *err);

/* Completes it with the header of its state, which says where it stands. */
void cv_tail_seal(cv_txn *txn, const cv_buffer *header, cv_tail *tail);

#endif

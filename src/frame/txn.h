/* A transaction: everything a writer changes between two commits. New chunks
 * go into space that the committed state does not use, so that until the commit
 * nothing of it is seen, and dropping it costs nothing. */
#ifndef CV_FRAME_TXN_H
#define CV_FRAME_TXN_H

#include "base/watch.h"
#include "frame/frame.h"

typedef struct cv_txn cv_txn;

/* Begins on the frame's current snapshot. One per frame. */
cv_status cv_txn_begin(cv_frame *frame, cv_txn **out, cv_error *err);

/* Releases it; what was put and not committed is dropped. */
void cv_txn_free(cv_txn *txn);

/* True when something was put since the last commit, or nothing of the frame
 * was ever committed. */
bool cv_txn_pending(const cv_txn *txn);

/* The state as the transaction would leave it: shape, attributes, metalayers
 * (chunks are found by cv_txn_find). Borrowed until the next change. */
cv_snapshot *cv_txn_snapshot(const cv_txn *txn);

/* Changes attributes or a metalayer. */
cv_status cv_txn_change(cv_txn *txn, const cv_change *change, cv_error *err);

/* How chunks move when the shape changes: along `axis`, those from index
 * `at` on go `shift` chunks further (negative: back, over dropped ones); then
 * the new shape cuts off what lies outside. shift 0: nothing moves. */
typedef struct cv_reshape {
    const int64_t *shape;
    int axis;
    int64_t at;
    int64_t shift;
} cv_reshape;

/* Gives the array the new shape: chunks move as told, new ones are special of
 * kind `fill`. */
cv_status cv_txn_reshape(cv_txn *txn, const cv_reshape *reshape, cv_ref_kind fill,
                         cv_error *err);

/* The old number of a chunk of the new grid, or -1: it is new. And the new
 * number of an old one, or -1: it is dropped. */
int64_t cv_reshape_source(const cv_reshape *reshape, const cv_grid *from, const cv_grid *to,
                          int64_t chunk);
int64_t cv_reshape_target(const cv_reshape *reshape, const cv_grid *from, const cv_grid *to,
                          int64_t chunk);

/* True when every chunk that is kept keeps its number: only the first axis grows
 * or shrinks, the way of every append to a series. */
bool cv_reshape_keeps_numbers(const cv_reshape *reshape, const cv_grid *from,
                              const cv_grid *to);

/* Where chunk `chunk` is, as the transaction sees it. Any thread. */
cv_status cv_txn_find(cv_txn *txn, int64_t chunk, cv_chunk_ref *out, cv_error *err);

/* Stores an encoded chunk, its block table behind it (and for a moment in
 * `encoded`, which may be moved); or makes a chunk special, which takes no space.
 * Any thread, one chunk at a time by one thread. */
cv_status cv_txn_put(cv_txn *txn, int64_t chunk, cv_buffer *encoded, cv_error *err);
cv_status cv_txn_put_special(cv_txn *txn, int64_t chunk, cv_ref_kind kind, cv_error *err);

/* Stores a chunk that has a block table already. */
typedef struct cv_stored_chunk {
    const uint8_t *bytes; /* borrowed */
    size_t size;
    const cv_buffer *table;
    uint32_t name;
} cv_stored_chunk;

cv_status cv_txn_put_stored(cv_txn *txn, int64_t chunk, const cv_stored_chunk *stored,
                            cv_error *err);

/* The same in steps, for a chunk that is not at hand in one buffer: begin takes
 * space, in which the caller writes `size` bytes, chunk and block table (of the
 * chunk's own object from its first byte on), whose name it sets; end makes it the chunk, unless `written` says that this
 * failed: then, as after a failure of its own, the space is given back. Returns
 * `written`, or that failure. */
typedef struct cv_put {
    int64_t chunk;
    cv_object object;
    uint64_t pos;
    int64_t offset; /* what the index will say */
    uint32_t name;  /* of the table, 0: there is none behind the chunk */
} cv_put;

cv_status cv_txn_put_begin(cv_txn *txn, int64_t chunk, size_t size, cv_put *out,
                           cv_error *err);
cv_status cv_txn_put_end(cv_txn *txn, const cv_put *put, cv_status written, cv_error *err);

/* The commit protocol. On failure before the header write the committed state
 * is untouched and the transaction kept; a failed sync poisons the frame. */
cv_status cv_txn_commit(cv_txn *txn, cv_error *err);

/* Gives every chunk checksums that has none, see adopt.h, and commits, unless
 * nothing is pending and all is sealed already. */
cv_status cv_txn_seal(cv_txn *txn, cv_watch *watch, cv_error *err);

/* Before the store is closed: gives back what costs little to give back. The tail
 * of a contiguous frame moves down over dead space, by a commit, where that wins
 * at least 64 KiB or a 16th of the file, and the file is cut to the frame's size;
 * a directory's old chunk files go. Best effort: nothing is done with changes
 * pending or beside readers, and what fails leaves the committed state as it is. */
void cv_txn_tidy(cv_txn *txn);

/* After that: how many bytes of the contiguous frame's `size` are dead. False when this
 * transaction changed nothing, readers of an older state are there, or the dead cannot be
 * told. Reads the headers of chunks that were not measured, of very many a part: the
 * others count as live. */
bool cv_txn_dead(cv_txn *txn, uint64_t *dead, uint64_t *size);

/* Drops what was put since the last commit. */
void cv_txn_rollback(cv_txn *txn);

#endif

/* Putting chunks: into space that the committed state does not use, and into the pending
 * index. */
#ifndef CV_FRAME_PUT_H
#define CV_FRAME_PUT_H

#include "frame/txn.h"

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
    cv_store *from; /* where both are, with nothing else, the object `object`, which may be
                     * shared; or where the chunk is at `pos` of the frame object, which no
                     * writer changes, and may be cloned; NULL: nowhere */
    cv_object object;
    uint64_t pos;
} cv_stored_chunk;

cv_status cv_txn_put_stored(cv_txn *txn, int64_t chunk, const cv_stored_chunk *stored,
                            cv_error *err);

/* The same in steps, for a chunk that is not at hand in one buffer: begin takes
 * space, in which the caller writes `size` bytes, chunk and block table (of the
 * chunk's own object from its first byte on), whose name it sets; end makes it the
 * chunk, unless `written` says that this failed: then, as after a failure of its own,
 * the space is given back. Returns `written`, or that failure. */
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

/* About so many bytes are going to be put: room for those that go behind the end is taken at
 * once, as one large write is quicker than many. To be ended, where nobody puts any more: room
 * that was not needed goes back. */
void cv_txn_expect(cv_txn *txn, uint64_t size);
void cv_txn_expect_end(cv_txn *txn);

/* Takes `size` bytes of a contiguous frame for something that is no chunk, and is
 * never given back. Called with the lock, or by the only thread. */
cv_status cv_txn_take_range(cv_txn *txn, size_t size, uint64_t *pos, cv_error *err);

#endif

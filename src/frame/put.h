/* Putting chunks: into space that the committed state does not use, and into the pending
 * index. */
#ifndef CV_FRAME_PUT_H
#define CV_FRAME_PUT_H

#include "base/grid.h"
#include "base/heap.h"
#include "format/chunk_header.h"
#include "frame/txn.h"
#include "store/store.h"

/* Appends the table of the stored chunk `chunk`, `size` bytes, of an array of
 * `grid` to `out`, which may be the buffer that the chunk is in; *name is the
 * table's. CATERVA_ECORRUPT, CATERVA_EUNSUPPORTED: it is no such chunk. */
cv_status cv_table_make(const cv_grid *grid, const uint8_t *chunk, size_t size,
                        cv_buffer *out, uint32_t *name, cv_error *err);

/* The same from checksums at hand. */
cv_status cv_table_append(const cv_block_table *table, cv_buffer *out, uint32_t *name,
                          cv_error *err);

/* ---- pieces ----
 * A chunk that is made of pieces: bytes at hand, and bytes of other chunks that
 * are copied as they are. */

typedef struct cv_piece {
    const uint8_t *bytes; /* NULL: stored bytes, at `pos` of `object` */
    cv_store *store;      /* of another frame; NULL: of the one that is written */
    cv_object object;
    uint64_t pos;
    size_t size;
} cv_piece;

/* Adds a piece to `list` (an array of cv_piece); one that goes on where the last
 * one ends is joined with it. Pieces of no bytes are left out. */
cv_status cv_pieces_add(cv_buffer *list, cv_piece piece, cv_error *err);

/* Pieces, and where they go, one behind the other. */
typedef struct cv_pieces_job {
    cv_store *store;
    const cv_buffer *list;
    uint64_t size; /* of all pieces */
    cv_object object;
    uint64_t pos;
} cv_pieces_job;

/* They are written in parts, small enough to stay in a core's second-level cache
 * between reading and writing. How many: */
int64_t cv_pieces_n_parts(const cv_pieces_job *job);

/* Writes part `part`, put together in `stage`. A chunk object takes its parts in
 * order; in the frame object several threads may write parts of one job, each
 * with its own stage. */
cv_status cv_pieces_write_part(const cv_pieces_job *job, int64_t part, cv_buffer *stage,
                               cv_error *err);

/* ---- put ----
 * Putting chunks: into space that the committed state does not use, and into the pending
 * index. */

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

/* ---- reshape ----
 * What a change of shape does to the chunks. */

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

/* Cuts the array down to the box of chunks that begins at chunk index `first`, with items
 * `shape`: chunks outside are forgotten, and must not be stored. Costs as much as the box has
 * chunks. */
cv_status cv_txn_crop(cv_txn *txn, const int64_t *first, const int64_t *shape, cv_error *err);

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

#endif

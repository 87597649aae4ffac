/* A transaction: all that a writer changes between two commits. New chunks go into unused
 * space, so nothing is visible before the commit (commit.h), and a rollback is free. */
#ifndef CV_FRAME_TXN_H
#define CV_FRAME_TXN_H

#include "base/grid.h"
#include "base/heap.h"
#include "base/watch.h"
#include "codec/encode.h"
#include "format/chunk_header.h"
#include "frame/frame.h"
#include "frame/lookup.h"
#include "frame/space.h"
#include "store/store.h"

/* Chunk files of a directory. Removal is optional: when no reader needs one and the newer
 * state is durable; the next writer removes the rest. */
typedef struct cv_txn_files {
    int64_t next;   /* first number that was never used */
    cv_object *put; /* since the commit */
    size_t n_put, max_put;
    cv_object *old; /* those that no state names since some commit */
    size_t n_old;
} cv_txn_files;

/* What commits keep from one to the next. commit.c's. */
typedef struct cv_commit_notes {
    uint64_t n_commits;  /* the number in the last header copy */
    cv_encoder *encoder; /* of the index; NULL until the first commit */
    cv_buffer tail;      /* memory that one commit leaves to the next */
    cv_watch *watch;     /* called before each chunk file is synced, may stop that; or NULL */
    int64_t adopted;     /* chunks before it have checksums, or cannot have them; -1: all */
    bool adds_layouts;   /* the next commit puts all layouts into one place, too */
} cv_commit_notes;

/* Whether chunks of other frames may be cloned into this one. */
typedef enum cv_cloning { CV_CLONING_UNKNOWN, CV_CLONING_YES, CV_CLONING_NO } cv_cloning;

typedef struct cv_txn {
    cv_frame *frame;
    cv_snapshot *base;  /* the committed state this stands on */
    cv_snapshot *state; /* base, or one of our own with changes of shape, attributes */
    cv_mutex lock;      /* guards all below */
    bool changed;
    bool has_index; /* else the index is as base's */
    cv_index index; /* state's whole index; what did not change it shares */
    cv_cloning cloning;
    cv_txn_files files;     /* of a directory */
    cv_allocator allocator; /* of a contiguous frame */
    cv_commit_notes notes;
} cv_txn;

/* Begins on the frame's current snapshot. One per frame. */
cv_status cv_txn_begin(cv_frame *frame, cv_txn **out, cv_error *err);

/* Releases it; what was put and not committed is dropped. */
void cv_txn_free(cv_txn *txn);

/* CATERVA_EIO if the frame is poisoned: it takes no further change. */
cv_status cv_txn_check(const cv_txn *txn, cv_error *err);

/* Whether something was put since the last commit, or no commit was ever made. */
bool cv_txn_pending(const cv_txn *txn);

/* The state with the transaction's shape, attributes, metalayers. Valid until the next
 * change. */
cv_snapshot *cv_txn_snapshot(const cv_txn *txn);

/* Where chunk `chunk` is, as the transaction sees it. Any thread. */
cv_status cv_txn_find(cv_txn *txn, int64_t chunk, cv_chunk_ref *out, cv_error *err);

/* Changes attributes or a metalayer. */
cv_status cv_txn_change(cv_txn *txn, const cv_change *change, cv_error *err);

/* Drops what was put since the last commit. */
void cv_txn_rollback(cv_txn *txn);

/* ---- Putting chunks ---- */

/* Appends the block table of the stored chunk to `out`, which may hold the chunk; *name:
 * the table's. CATERVA_ECORRUPT, CATERVA_EUNSUPPORTED: not such a chunk. */
cv_status cv_table_make(const cv_grid *grid, const uint8_t *chunk, size_t size,
                        cv_buffer *out, uint32_t *name, cv_error *err);

/* The same from checksums at hand. */
cv_status cv_table_append(const cv_block_table *table, cv_buffer *out, uint32_t *name,
                          cv_error *err);

/* Stores an encoded chunk with its block table (briefly in `encoded`, which may move), or
 * makes it special. Any thread, one chunk per thread. */
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

/* The same in steps: begin takes space, where the caller writes `size` bytes, chunk and
 * table (into a chunk's own object from the first byte on), and sets the name; end makes it
 * the chunk. If `written` is a failure, or it fails itself, it frees the space and returns
 * that. */
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

/* About `size` bytes are going to be put, see cv_allocator_expect. */
void cv_txn_expect(cv_txn *txn, uint64_t size);
void cv_txn_expect_end(cv_txn *txn);

/* ---- Changing the shape ---- */

/* Chunk moves of a new shape: along `axis`, those from `at` on by `shift` (negative: over
 * dropped ones); then the shape cuts. shift 0: none move. */
typedef struct cv_reshape {
    const int64_t *shape;
    int axis;
    int64_t at;
    int64_t shift;
} cv_reshape;

/* Gives the new shape: moves chunks; new ones are special of kind `fill`. */
cv_status cv_txn_reshape(cv_txn *txn, const cv_reshape *reshape, cv_ref_kind fill,
                         cv_error *err);

/* Crops to the box of chunks at chunk index `first`, with items `shape`; dropped chunks
 * must not be stored. Costs the box's chunks. */
cv_status cv_txn_crop(cv_txn *txn, const int64_t *first, const int64_t *shape, cv_error *err);

/* A new chunk's old number, or -1: it is new; an old one's new number, or -1: it is
 * dropped. */
int64_t cv_reshape_source(const cv_reshape *reshape, const cv_grid *from, const cv_grid *to,
                          int64_t chunk);
int64_t cv_reshape_target(const cv_reshape *reshape, const cv_grid *from, const cv_grid *to,
                          int64_t chunk);

/* Whether kept chunks keep their numbers: only the first axis changes, as in every append. */
bool cv_reshape_keeps_numbers(const cv_reshape *reshape, const cv_grid *from,
                              const cv_grid *to);

/* ---- For the commit ---- */

/* The index to be committed, owned and made at first need. With the lock, or by the only
 * thread; valid until the next change. */
cv_status cv_txn_own_index(cv_txn *txn, cv_index **out, cv_error *err);

/* The chunk files in an index of `n` entries, ascending. cv_free *files, also on failure. */
cv_status cv_files_named(const cv_index *index, int64_t n, int64_t **files, size_t *n_files,
                         cv_error *err);

/* Before a commit: files of the committed index or put since that the own index does not
 * name; none without an index. cv_free *files, also on failure. */
cv_status cv_files_unnamed(cv_txn *txn, int64_t **files, size_t *n_files, cv_error *err);

/* Removes replaced files, and from now on `files`, unless older readers exist; else later. */
void cv_files_remove_old(cv_txn *txn, const cv_snapshot *state, const int64_t *files,
                         size_t n_files);

/* Empties the transaction and stands it on the frame's current snapshot. */
void cv_txn_reset(cv_txn *txn);

#endif

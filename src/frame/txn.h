/* A transaction: the changes of a writer between two commits. New chunks go into unused space, so
 * nothing is visible before the commit (commit.h), and a rollback discards them. */
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

/* The chunk files of a directory. A file is deleted when the newer state is durable and no reader
 * needs it; if that does not happen, the next writer deletes it. */
typedef struct cv_txn_files {
    int64_t next;   /* first number that was never used */
    cv_object *put; /* created since the commit */
    size_t n_put, max_put;
    cv_object *old; /* no state names these any more */
    size_t n_old;
} cv_txn_files;

/* Kept from one commit to the next. Belongs to commit.c. */
typedef struct cv_commit_notes {
    uint64_t n_commits;  /* the number in the last header copy */
    cv_encoder *encoder; /* for the index; NULL until the first commit */
    cv_buffer tail;      /* memory reused by the next commit */
    cv_watch *watch;     /* may stop the commit before a chunk file is synced; or NULL */
    int64_t adopted;     /* chunks before it have or cannot get checksums; -1: all chunks */
    bool adds_layouts;   /* the next commit also writes all layouts in one place */
} cv_commit_notes;

/* Whether chunks of other frames can be cloned into this one. */
typedef enum cv_cloning { CV_CLONING_UNKNOWN, CV_CLONING_YES, CV_CLONING_NO } cv_cloning;

typedef struct cv_txn {
    cv_frame *frame;
    cv_snapshot *base;  /* the committed state */
    cv_snapshot *state; /* base, or a private state with changes of shape and attributes */
    cv_mutex lock;      /* guards the members below */
    bool changed;
    bool has_index; /* false: the index is that of base */
    cv_index index; /* index of `state`; shares unchanged pages */
    cv_cloning cloning;
    bool is_dual;           /* chunks get the form of format/dual.h */
    cv_txn_files files;     /* of a directory */
    cv_allocator allocator; /* of a contiguous frame */
    cv_commit_notes notes;
} cv_txn;

/* Begins a transaction on the frame's current snapshot. One for each frame. */
cv_status cv_txn_begin(cv_frame *frame, cv_txn **out, cv_error *err);

/* Discards uncommitted changes and frees the transaction. */
void cv_txn_free(cv_txn *txn);

/* CATERVA_EIO if the frame is poisoned: no further change is allowed. */
cv_status cv_txn_check(const cv_txn *txn, cv_error *err);

/* Whether anything changed since the last commit, or no commit was ever made. */
bool cv_txn_pending(const cv_txn *txn);

/* The state with the pending shape, attributes and metalayers. Valid until the next change. */
cv_snapshot *cv_txn_snapshot(const cv_txn *txn);

/* Finds chunk `chunk`, with pending changes. Any thread. */
cv_status cv_txn_find(cv_txn *txn, int64_t chunk, cv_chunk_ref *out, cv_error *err);

/* Changes attributes or a metalayer. */
cv_status cv_txn_change(cv_txn *txn, const cv_change *change, cv_error *err);

/* Discards all changes since the last commit. */
void cv_txn_rollback(cv_txn *txn);

/* ---- Putting chunks ---- */

/* Appends the block table of a stored chunk to `out`, which may contain the chunk. Sets *name to
 * the table's name. CATERVA_ECORRUPT or CATERVA_EUNSUPPORTED if it is not a chunk of this grid. */
cv_status cv_table_make(const cv_grid *grid, const uint8_t *chunk, size_t size,
                        cv_buffer *out, uint32_t *name, cv_error *err);

/* The same, from known checksums. */
cv_status cv_table_append(const cv_block_table *table, cv_buffer *out, uint32_t *name,
                          cv_error *err);

/* put stores an encoded chunk with its block table, which it appends to `encoded` meanwhile, so
 * that `encoded` may move. put_special makes a chunk special. Any thread, one chunk for each
 * thread. */
cv_status cv_txn_put(cv_txn *txn, int64_t chunk, cv_buffer *encoded, cv_error *err);
cv_status cv_txn_put_special(cv_txn *txn, int64_t chunk, cv_ref_kind kind, cv_error *err);

/* From now on chunks are stored in the form of format/dual.h, for which cv_dual_fits must be true.
 * Call before the first is put. */
void cv_txn_set_dual(cv_txn *txn);
bool cv_txn_is_dual(const cv_txn *txn);

/* A chunk that has a block table already. */
typedef struct cv_stored_chunk {
    const uint8_t *bytes; /* borrowed */
    size_t size;
    const cv_buffer *table;
    uint32_t name;
    cv_store *from;   /* store that contains chunk and table; NULL: they are only copied */
    cv_object object; /* a chunk object with only these may be shared */
    uint64_t pos;     /* in the frame object, where unchanging bytes may be cloned */
    cv_buffer *scratch; /* memory for a chunk that is rewritten, or NULL */
} cv_stored_chunk;

cv_status cv_txn_put_stored(cv_txn *txn, int64_t chunk, const cv_stored_chunk *stored,
                            cv_error *err);

/* The same in steps. begin reserves space; the caller writes `size` bytes there, chunk and table
 * (into a chunk object from its first byte), and sets the name; end makes it the chunk. If
 * `written` is a failure, or if end fails, end releases the space and returns the failure. */
typedef struct cv_put {
    int64_t chunk;
    cv_object object;
    uint64_t pos;
    int64_t offset; /* the index entry */
    uint32_t name;  /* of the table; 0: no table is behind the chunk */
} cv_put;

cv_status cv_txn_put_begin(cv_txn *txn, int64_t chunk, size_t size, cv_put *out,
                           cv_error *err);
cv_status cv_txn_put_end(cv_txn *txn, const cv_put *put, cv_status written, cv_error *err);

/* Announces that about `size` bytes will be put, see cv_allocator_expect. */
void cv_txn_expect(cv_txn *txn, uint64_t size);
void cv_txn_expect_end(cv_txn *txn);

/* ---- Changing the shape ---- */

/* A new shape. First, chunks whose index along `axis` is >= `at` move by `shift`; those that would
 * move below `at` are dropped. Then chunks outside `shape` are dropped. shift 0: no chunk moves. */
typedef struct cv_reshape {
    const int64_t *shape;
    int axis;
    int64_t at;
    int64_t shift;
} cv_reshape;

/* Sets the new shape and moves chunks. New chunks are special, of kind `fill`. */
cv_status cv_txn_reshape(cv_txn *txn, const cv_reshape *reshape, cv_ref_kind fill,
                         cv_error *err);

/* Crops to the box of chunks that begins at chunk index `first`, with the items `shape`. Dropped
 * chunks must not be stored. Takes time in proportion to the box. */
cv_status cv_txn_crop(cv_txn *txn, const int64_t *first, const int64_t *shape, cv_error *err);

/* cv_reshape_source returns the old number of a chunk of the new grid, or -1 if the chunk is new.
 * cv_reshape_target returns the new number of an old chunk, or -1 if the chunk is dropped. */
int64_t cv_reshape_source(const cv_reshape *reshape, const cv_grid *from, const cv_grid *to,
                          int64_t chunk);
int64_t cv_reshape_target(const cv_reshape *reshape, const cv_grid *from, const cv_grid *to,
                          int64_t chunk);

/* Whether all kept chunks keep their numbers: only the first axis changes, as in an append. */
bool cv_reshape_keeps_numbers(const cv_reshape *reshape, const cv_grid *from,
                              const cv_grid *to);

/* ---- For the commit ---- */

/* The index to be committed, created at first need. Call with the lock, or from the only thread.
 * Valid until the next change. */
cv_status cv_txn_own_index(cv_txn *txn, cv_index **out, cv_error *err);

/* Lists the chunk files in an index of `n` entries, in ascending order. Free *files with cv_free,
 * even on failure. */
cv_status cv_files_named(const cv_index *index, int64_t n, int64_t **files, size_t *n_files,
                         cv_error *err);

/* Lists, before a commit, the chunk files of the committed index, and those put since, that the
 * new index does not name. Empty if the index is unchanged. Free *files with cv_free, even on
 * failure. */
cv_status cv_files_unnamed(cv_txn *txn, int64_t **files, size_t *n_files, cv_error *err);

/* Deletes replaced files, now including `files`, unless there are older readers; then a later call
 * deletes them. */
void cv_files_remove_old(cv_txn *txn, const cv_snapshot *state, const int64_t *files,
                         size_t n_files);

/* Discards all changes and continues from the frame's current snapshot. */
void cv_txn_reset(cv_txn *txn);

#endif

/* Reads the compressed bytes of blocks: of one chunk, with neighbouring blocks joined into one read
 * or borrowed from the store; or of many chunks ahead of their use. */
#ifndef CV_FRAME_FETCH_H
#define CV_FRAME_FETCH_H

#include "frame/frame.h"
#include "frame/layout.h"

/* A block to fetch, and its bytes after the fetch. */
typedef struct cv_wanted {
    int64_t block; /* number in the chunk */
    int64_t tag;   /* for the caller; kept when the list is sorted */
    cv_packed_block packed;
} cv_wanted;

/* Fetches blocks wanted[0..*n), *n >= 1, of a CV_ACCESS_BLOCK chunk: at least one, and as many as
 * fit `budget` and one wave. Sets *n to their number. Sorts the list by position unless
 * `in_order`. The bytes stay in `buffer` (or the store) until the next fetch. */
cv_status cv_fetch_blocks(cv_frame *frame, const cv_layout *layout, cv_wanted *wanted,
                          int64_t *n, bool in_order, size_t budget, cv_buffer *buffer,
                          cv_error *err);

/* A run: bytes [start, start + size) of the chunk, in one read. CV_BLOCK_PREFIX bytes before them
 * are reserved. */
typedef struct cv_fetch_run {
    int64_t first, last; /* range in the list */
    int64_t start;
    size_t size;
} cv_fetch_run;

/* The same in steps, for reading runs of many chunks together (any access but CV_ACCESS_CHUNK).
 * sort sorts the list. next_run finds the run that begins at wanted[run->first], of at most `most`
 * bytes unless its first block has more. place describes its blocks, after the run was read to
 * `bytes`. */
void cv_fetch_sort(const cv_layout *layout, cv_wanted *wanted, int64_t n);
void cv_fetch_next_run(const cv_frame *frame, const cv_layout *layout,
                       const cv_wanted *wanted, int64_t n, size_t most, cv_fetch_run *run);
void cv_fetch_place(const cv_layout *layout, cv_wanted *wanted, const cv_fetch_run *run,
                    uint8_t *bytes);

/* Returns the position of one block in such a chunk. */
cv_block_range cv_fetch_range(const cv_layout *layout, int64_t block);

/* Returns the whole stored chunk if it is in memory, else NULL. Valid while the layout is held. */
const uint8_t *cv_chunk_view(cv_frame *frame, const cv_layout *layout);

/* Gets the whole stored chunk: read into `buffer`, or borrowed from the store. */
cv_status cv_fetch_chunk(cv_frame *frame, const cv_layout *layout, cv_buffer *buffer,
                         const uint8_t **bytes, cv_error *err);

/* Reads `size` bytes at `pos` behind the chunk's header into `dst` (uncompressed chunks). */
cv_status cv_fetch_raw(cv_frame *frame, const cv_layout *layout, int64_t pos, void *dst,
                       size_t size, cv_error *err);

/* ---- Bytes of many chunks ----
 *
 * Reads ahead in waves: layouts first, then blocks and whole chunks. Chunks that were not read
 * ahead are read when needed. */

typedef struct cv_staged cv_staged;

/* Creates an empty stage. `frame` and `snapshot` must outlive it. Free with cv_staged_free. */
cv_status cv_staged_new(cv_frame *frame, const cv_snapshot *snapshot, cv_staged **out,
                        cv_error *err);
void cv_staged_free(cv_staged *staged); /* NULL is fine */

/* Add a stored chunk, in ascending order; then blocks of this chunk, or all its bytes. `end` as in
 * cv_layout_request. */
cv_status cv_staged_add(cv_staged *staged, const cv_chunk_ref *ref, uint64_t end,
                        cv_error *err);
cv_status cv_staged_add_block(cv_staged *staged, int64_t block, cv_error *err);
void cv_staged_add_all(cv_staged *staged);

/* Reads the layouts, then up to `most` bytes. Leaves out chunks that are damaged or cannot be read:
 * a later read returns the error. Fails with CATERVA_ENOMEM or CATERVA_ESTOPPED only. */
cv_status cv_staged_fetch(cv_staged *staged, size_t most, cv_watch *watch, cv_error *err);

/* Return the layout, or all bytes, of a chunk if they were read; else NULL. Borrowed. `staged` may
 * be NULL. Any thread. */
const cv_layout *cv_staged_layout(const cv_staged *staged, const cv_chunk_ref *ref);
const uint8_t *cv_staged_chunk(const cv_staged *staged, const cv_chunk_ref *ref);

/* A chunk that was read ahead. */
typedef struct cv_staged_found {
    const cv_layout *layout;
    bool is_placed;       /* the blocks are described; never for CV_ACCESS_CHUNK */
    const uint8_t *chunk; /* all bytes of the chunk, for CV_ACCESS_CHUNK only */
} cv_staged_found;

/* Finds the layout and the bytes needed to decode wanted[0..n). False if something is missing. */
bool cv_staged_find(const cv_staged *staged, const cv_chunk_ref *ref, cv_wanted *wanted,
                    int64_t n, cv_staged_found *out);

/* Does the same as cv_layout_get, but prefers a layout that was read ahead. */
cv_status cv_staged_get_layout(const cv_staged *staged, cv_frame *frame,
                               const cv_snapshot *snapshot, const cv_chunk_ref *ref,
                               cv_layout **out, cv_error *err);

#endif

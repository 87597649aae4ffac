/* Compressed bytes of wanted blocks: of one chunk, neighbours joined into one read or
 * borrowed from the store; or of many chunks ahead of time. */
#ifndef CV_FRAME_FETCH_H
#define CV_FRAME_FETCH_H

#include "frame/frame.h"
#include "frame/layout.h"

/* One wanted block, and after the fetch its bytes. */
typedef struct cv_wanted {
    int64_t block; /* number in the chunk */
    int64_t tag;   /* the caller's; kept when the list is reordered */
    cv_packed_block packed;
} cv_wanted;

/* Fetches of wanted[0..n), n >= 1, of a CV_ACCESS_BLOCK chunk, as many as fit `budget` and
 * one wave, at least one; *fetched: how many. Sorts the list by position unless `in_order`.
 * The bytes stay in `buffer` (or the store) until the next fetch. */
cv_status cv_fetch_blocks(cv_frame *frame, const cv_layout *layout, cv_wanted *wanted,
                          int64_t n, bool in_order, size_t budget, cv_buffer *buffer,
                          int64_t *fetched, cv_error *err);

/* A run read at once: bytes [start, start + size) of the chunk, behind CV_BLOCK_PREFIX of
 * room. */
typedef struct cv_fetch_run {
    int64_t first, last; /* of the list */
    int64_t start;
    size_t size;
} cv_fetch_run;

/* The same in steps, to read runs of many chunks at once (any access but CV_ACCESS_CHUNK):
 * sort the list; find the run at wanted[first], at most `most` bytes unless its first block
 * has more; describe its blocks once its bytes are at `bytes`. */
void cv_fetch_sort(const cv_layout *layout, cv_wanted *wanted, int64_t n);
void cv_fetch_next_run(const cv_frame *frame, const cv_layout *layout,
                       const cv_wanted *wanted, int64_t n, size_t most, cv_fetch_run *run);
void cv_fetch_place(const cv_layout *layout, cv_wanted *wanted, const cv_fetch_run *run,
                    uint8_t *bytes);

/* The bytes of one block in such a chunk. */
cv_block_range cv_fetch_range(const cv_layout *layout, int64_t block);

/* The whole stored chunk if it is in memory, else NULL; valid while the layout is held. */
const uint8_t *cv_chunk_view(cv_frame *frame, const cv_layout *layout);

/* The whole stored chunk: in `buffer`, or borrowed from the store. */
cv_status cv_fetch_chunk(cv_frame *frame, const cv_layout *layout, cv_buffer *buffer,
                         const uint8_t **bytes, cv_error *err);

/* `size` bytes at `pos` behind the chunk's header (raw chunks), into `dst`. */
cv_status cv_fetch_raw(cv_frame *frame, const cv_layout *layout, int64_t pos, void *dst,
                       size_t size, cv_error *err);

/* ---- Bytes of many chunks ----
 *
 * Read ahead in waves: layouts first, then blocks and whole chunks. The rest is read as
 * usual. */

typedef struct cv_staged cv_staged;

/* Nothing yet. `frame` and `snapshot` outlive it. Free with cv_staged_free. */
cv_status cv_staged_new(cv_frame *frame, const cv_snapshot *snapshot, cv_staged **out,
                        cv_error *err);
void cv_staged_free(cv_staged *staged); /* NULL is fine */

/* Adds a stored chunk, in ascending order, then its wanted blocks or all its bytes. `end`
 * as in cv_layout_wish. */
cv_status cv_staged_add(cv_staged *staged, const cv_chunk_ref *ref, uint64_t end,
                        cv_error *err);
cv_status cv_staged_add_block(cv_staged *staged, int64_t block, cv_error *err);
void cv_staged_add_all(cv_staged *staged);

/* Reads layouts, then up to `most` bytes. Chunks that are damaged or cannot be read are
 * left out: their reader gets the error. CATERVA_ENOMEM, CATERVA_ESTOPPED. */
cv_status cv_staged_fetch(cv_staged *staged, size_t most, cv_watch *watch, cv_error *err);

/* What there is of a chunk, borrowed, or NULL; of no stage nothing. Any thread. */
const cv_layout *cv_staged_layout(const cv_staged *staged, const cv_chunk_ref *ref);
const uint8_t *cv_staged_chunk(const cv_staged *staged, const cv_chunk_ref *ref);

/* A chunk that was read ahead. */
typedef struct cv_staged_found {
    const cv_layout *layout;
    bool is_placed;       /* the wanted blocks are described; or, if CV_ACCESS_CHUNK, */
    const uint8_t *chunk; /* all bytes of the chunk */
} cv_staged_found;

/* Finds the layout, and what decoding wanted[0..n) needs. False: not all of it is there. */
bool cv_staged_find(const cv_staged *staged, const cv_chunk_ref *ref, cv_wanted *wanted,
                    int64_t n, cv_staged_found *out);

/* As cv_layout_get, of a chunk that is there without reading. */
cv_status cv_staged_get_layout(const cv_staged *staged, cv_frame *frame,
                               const cv_snapshot *snapshot, const cv_chunk_ref *ref,
                               cv_layout **out, cv_error *err);

#endif

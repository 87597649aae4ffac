/* Getting the compressed bytes of the wanted blocks of one chunk: neighbours
 * joined into one read, borrowed where the store can lend them. */
#ifndef CV_FRAME_FETCH_H
#define CV_FRAME_FETCH_H

#include "frame/frame.h"
#include "frame/layout.h"

enum { CV_LAYOUT_MEMO = 32 };

typedef struct cv_layout_note {
    cv_layout *layout; /* or NULL; a reference is held */
    uint64_t frame;    /* its id */
    uint32_t generation;
} cv_layout_note;

/* All zeros to begin with. Of one thread at a time. */
typedef struct cv_layout_memo {
    cv_layout_note notes[CV_LAYOUT_MEMO];
    cv_layout *last;    /* one that is too large for a note; a reference is held */
    cv_small_room room; /* the small chunk at hand: cv_layout_read_small */
} cv_layout_memo;

void cv_layout_memo_free(cv_layout_memo *memo);

/* As cv_layout_get, or cv_layout_read_small where the chunk is that. Good until the
 * next call with this memo, which has the reference. */
cv_status cv_layout_borrow(cv_frame *frame, const cv_snapshot *snapshot,
                           const cv_chunk_ref *ref, cv_layout_memo *memo,
                           const cv_layout **out, cv_error *err);

/* ---- fetch ----
 * Getting the compressed bytes of the wanted blocks of one chunk: neighbours
 * joined into one read, borrowed where the store can lend them. */

/* One wanted block, and after the fetch its bytes. */
typedef struct cv_wanted {
    int64_t block; /* number in the chunk */
    int64_t tag;   /* the caller's; kept when the list is reordered */
    cv_packed_block packed;
} cv_wanted;

/* Fetches blocks wanted[0..n), n at least 1, of a CV_ACCESS_BLOCK chunk; reorders the list by
 * stored position. As many as fit `budget` bytes, and one wave of reads (at least one), are
 * fetched; *fetched says how many. The bytes stand in `buffer` (or in the store) until the
 * next fetch. */
cv_status cv_fetch_blocks(cv_frame *frame, const cv_layout *layout, cv_wanted *wanted,
                          int64_t n, size_t budget, cv_buffer *buffer, int64_t *fetched,
                          cv_error *err);

/* The same in the order of the list: with more reads, where it is not that of the file. */
cv_status cv_fetch_in_order(cv_frame *frame, const cv_layout *layout, cv_wanted *wanted,
                            int64_t n, size_t budget, cv_buffer *buffer, int64_t *fetched,
                            cv_error *err);

/* A run of blocks of the list that is read at once: bytes [start, start + size) of the chunk,
 * behind CV_BLOCK_PREFIX bytes of room. */
typedef struct cv_fetch_run {
    int64_t first, last; /* of the list */
    int64_t start;
    size_t size;
} cv_fetch_run;

/* The same in steps, for who reads runs of many chunks at once, of any access but
 * CV_ACCESS_CHUNK: the list in stored order; the run that begins with wanted[first], of at
 * most `most` bytes unless its first block has more; and its blocks, when its bytes are at
 * `bytes`. */
void cv_fetch_sort(const cv_layout *layout, cv_wanted *wanted, int64_t n);
void cv_fetch_next_run(const cv_frame *frame, const cv_layout *layout,
                       const cv_wanted *wanted, int64_t n, size_t most, cv_fetch_run *run);
void cv_fetch_place(const cv_layout *layout, cv_wanted *wanted, const cv_fetch_run *run,
                    uint8_t *bytes);

/* The bytes of one block in such a chunk. */
cv_block_range cv_fetch_range(const cv_layout *layout, int64_t block);

/* The whole stored chunk where it is at hand without reading, else NULL. It stays
 * as long as the layout is held. */
const uint8_t *cv_chunk_view(cv_frame *frame, const cv_layout *layout);

/* The whole stored chunk: in `buffer`, or borrowed from the store. */
cv_status cv_fetch_chunk(cv_frame *frame, const cv_layout *layout, cv_buffer *buffer,
                         const uint8_t **bytes, cv_error *err);

/* `size` bytes at `pos` behind the chunk's header (raw chunks), into `dst`. */
cv_status cv_fetch_raw(cv_frame *frame, const cv_layout *layout, int64_t pos, void *dst,
                       size_t size, cv_error *err);

/* ---- layout_wave ----
 * Layouts of many chunks, which are read together. */

/* A stored chunk whose layout is wanted. */
typedef struct cv_layout_wish {
    cv_chunk_ref ref;
    uint64_t end;      /* where it and its table are said to end: a guess; 0: none */
    cv_layout *layout; /* what comes of it: a reference */
    /* The wave's own: what of the chunk is read. */
    cv_chunk_head head;
    uint64_t table_pos;
    const uint8_t *table; /* NULL: not at hand */
} cv_layout_wish;

/* Gets n layouts, from the cache or in two waves at most: the first bytes of all chunks,
 * with the tables that stand where they are guessed; then the other tables. Layouts are
 * checked and kept as by cv_layout_get; those of small chunks have the chunk and are not
 * kept. Without success there are none. */
cv_status cv_layout_wave(cv_frame *frame, const cv_snapshot *snapshot, cv_layout_wish *wishes,
                         size_t n, cv_watch *watch, cv_error *err);

/* The layout of a chunk of which `size` bytes from its beginning have come, probably all;
 * checked and kept as the others are. What they do not reach, which is rare, is read. Without
 * success there is none. */
cv_status cv_layout_of_bytes(cv_frame *frame, const cv_snapshot *snapshot,
                             cv_layout_wish *wish, const uint8_t *bytes, size_t size,
                             cv_error *err);

/* Bytes that a wave reads of each chunk, about. */
size_t cv_layout_wave_bytes(const cv_grid *grid);

void cv_layout_wave_release(cv_layout_wish *wishes, size_t n);

/* Puts the chunk before what was said of a range of it that could not be read. */
void cv_name_chunk(int64_t chunk, cv_error *err);

/* ---- staged ----
 * Stored bytes of many chunks, read together before anybody needs them: layouts in one wave
 * or two, then blocks and whole chunks in another. Who needs them finds here what there is,
 * and reads the rest as ever. */

typedef struct cv_staged cv_staged;

/* Nothing yet. `frame` and `snapshot` outlive it. Free with cv_staged_free. */
cv_status cv_staged_new(cv_frame *frame, const cv_snapshot *snapshot, cv_staged **out,
                        cv_error *err);
void cv_staged_free(cv_staged *staged); /* NULL is fine */

/* Adds a stored chunk behind those with lower numbers, then blocks of the one added last,
 * or that all its bytes are wanted. `end` as in cv_layout_wish. */
cv_status cv_staged_add(cv_staged *staged, const cv_chunk_ref *ref, uint64_t end,
                        cv_error *err);
cv_status cv_staged_add_block(cv_staged *staged, int64_t block, cv_error *err);
void cv_staged_add_all(cv_staged *staged);

/* Reads layouts, then up to `most` bytes. A chunk that is damaged or cannot be read is not
 * there afterwards: who needs it hears why. CATERVA_ENOMEM, CATERVA_ESTOPPED. */
cv_status cv_staged_fetch(cv_staged *staged, size_t most, cv_watch *watch, cv_error *err);

/* What there is of a chunk, borrowed, or NULL; of no stage nothing. Any thread. */
const cv_layout *cv_staged_layout(const cv_staged *staged, const cv_chunk_ref *ref);
const uint8_t *cv_staged_chunk(const cv_staged *staged, const cv_chunk_ref *ref);

/* Describes wanted[0..n), if all of them are there. */
bool cv_staged_place(const cv_staged *staged, const cv_chunk_ref *ref, cv_wanted *wanted,
                     int64_t n);

/* As cv_layout_get, of a chunk that is there without reading. */
cv_status cv_staged_get_layout(const cv_staged *staged, cv_frame *frame,
                               const cv_snapshot *snapshot, const cv_chunk_ref *ref,
                               cv_layout **out, cv_error *err);

#endif

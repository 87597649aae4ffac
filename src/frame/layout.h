/* The layout of a chunk: checked header, block ranges and, if sealed, checksums. Read singly or in
 * waves, and cached. */
#ifndef CV_FRAME_LAYOUT_H
#define CV_FRAME_LAYOUT_H

#include "codec/decode.h"
#include "format/chunk_header.h"
#include "frame/lookup.h"

typedef struct cv_layout_cache cv_layout_cache;

typedef struct cv_layout {
    atomic_int references;
    char apart[64 - sizeof(atomic_int)]; /* a cache line apart from what all readers write */
    cv_object object;
    uint64_t pos;
    uint32_t name; /* of the block table that it was checked with; 0: unchecked */
    cv_chunk_header header;
    uint8_t header_bytes[CV_CHUNK_HEADER_SIZE];
    cv_block_access access; /* if header.special is NONE */
    int64_t n_blocks;       /* entries of `blocks`; 0 for uncompressed and special chunks */
    int32_t block_bytes;    /* of the grid: the size of an uncompressed block */
    size_t table_size;      /* bytes of its block table, if any */
    cv_block_range *blocks;
    uint32_t head_sum; /* CRC32C of the bytes before the first block; valid with `sums` */
    int64_t n_sums;
    uint32_t *sums; /* CRC32C of each block's bytes; NULL: not to be checked */
    uint8_t *item;  /* the repeated item of CV_SPECIAL_VALUE, else NULL */
    uint8_t *chunk; /* all bytes of a small chunk, else NULL */
    bool in_room;   /* in the room of a memo: not cached; `chunk` was read just now */
} cv_layout;

/* Memory for the layouts of small chunks, used one after the other; and the last parsed header with
 * its expectations. Starts as zeros. */
typedef struct cv_small_room {
    cv_buffer buffer;
    uint8_t header_bytes[CV_CHUNK_HEADER_SIZE];
    cv_chunk_header header;
    cv_chunk_expect expect;
} cv_small_room;

void cv_layout_release(cv_layout *layout); /* NULL is fine */

/* Whether chunks are so small that layout and chunk are one read and are not cached: a lookup would
 * cost as much as reading. */
bool cv_layout_is_small(const cv_grid *grid);
/* Gets the position of the chunk's block table, which has table_size bytes. */
void cv_layout_find_table(const cv_layout *layout, const cv_chunk_ref *ref, cv_object *object,
                          uint64_t *pos);
/* Returns the number of bytes of the chunk before its first block. */
size_t cv_layout_head_size(const cv_layout *layout);

/* Prefetches the bytes of a small chunk if they are in memory. Does nothing for others. */
void cv_layout_warm(cv_store *store, const cv_snapshot *snapshot, const cv_chunk_ref *ref);

/* Check the stored bytes of block `block`, or of all blocks, against the block table, if any.
 * CATERVA_ECORRUPT names chunk (ref->chunk), block and byte. */
cv_status cv_layout_check_block(const cv_layout *layout, const cv_chunk_ref *ref,
                                int64_t block, const uint8_t *bytes, cv_error *err);
cv_status cv_layout_check_chunk(const cv_layout *layout, const cv_chunk_ref *ref,
                                const uint8_t *bytes, cv_error *err);

/* Bytes of the chunk, and of the block table if it is right behind it. */
uint64_t cv_layout_stored_size(const cv_layout *layout, const cv_chunk_ref *ref);

/* ---- The cache ----
 *
 * Cached layouts stay valid because bytes in use never change; reuse of a position must be reported
 * to the cache. */

/* Makes a cache for chunks of `store`, which must outlive it: sets of four, at most 4 MiB or eight
 * layouts if these are larger, not counting the workers' notes. `id` is the frame's. */
cv_layout_cache *cv_layout_cache_new(cv_store *store, uint64_t id,
                                     int64_t n_blocks); /* or NULL */
void cv_layout_cache_free(cv_layout_cache *cache);

/* Gets the layout of a stored chunk, cached or read. It is checked if the reference names a block
 * table and the snapshot is not unchecked. Any thread. Release with cv_layout_release. */
cv_status cv_layout_get(cv_layout_cache *cache, const cv_snapshot *snapshot,
                        const cv_chunk_ref *ref, cv_layout **out, cv_error *err);

/* Returns the layout if it is cached, or if its record is in memory; else NULL. */
cv_layout *cv_layout_find(cv_layout_cache *cache, const cv_snapshot *snapshot,
                          const cv_chunk_ref *ref);

/* Forget all layouts, or the one at `pos`. Required before other chunks take the positions, with no
 * read in progress. Also allowed at any time, to force a new read. */
void cv_layout_cache_clear(cv_layout_cache *cache);
void cv_layout_cache_forget(cv_layout_cache *cache, cv_object object, uint64_t pos);

/* Returns a number that changes whenever the position is forgotten, and sometimes when another one
 * is. It distinguishes the chunks that a position has held. */
uint32_t cv_layout_generation(const cv_layout_cache *cache, cv_object object, uint64_t pos);

/* Makes a checked layout from a record (format/seal.h), with one reference. NULL if the record does
 * not match the seal, or if out of memory. */
cv_layout *cv_layout_of_record(cv_store *store, const cv_snapshot *snapshot,
                               size_t record_size, const cv_chunk_ref *ref,
                               const uint8_t *bytes);

/* ---- A worker's notes ---- */

enum { CV_LAYOUT_MEMO = 32 };

typedef struct cv_layout_note {
    cv_layout *layout; /* or NULL; holds a reference */
    uint64_t frame;    /* the frame's id */
    uint32_t generation;
} cv_layout_note;

/* Starts as zeros. For one thread at a time. */
typedef struct cv_layout_memo {
    cv_layout_note notes[CV_LAYOUT_MEMO];
    cv_layout *last;    /* a layout too large for a note; holds a reference */
    cv_small_room room; /* for the current small chunk */
} cv_layout_memo;

void cv_layout_memo_free(cv_layout_memo *memo);

/* As cv_layout_get, but the memo holds the reference: valid until its next call. A small chunk is
 * read into the memo, too. */
cv_status cv_layout_borrow(cv_layout_cache *cache, const cv_snapshot *snapshot,
                           const cv_chunk_ref *ref, cv_layout_memo *memo,
                           const cv_layout **out, cv_error *err);

/* ---- Layouts of many chunks, read together ---- */

/* The first bytes of a chunk. */
typedef struct cv_chunk_head {
    const uint8_t *bytes;
    size_t size;
    uint64_t limit;
    bool keeps_chunk; /* the layout gets all bytes of the chunk, if present */
} cv_chunk_head;

/* A request for the layout of a stored chunk. */
typedef struct cv_layout_request {
    cv_chunk_ref ref;
    uint64_t end;      /* guessed end of the chunk and its table; 0: no guess */
    cv_layout *layout; /* the result: a reference */
    /* Used by the wave. */
    cv_chunk_head head;
    uint64_t table_pos;
    const uint8_t *table; /* NULL: not in memory */
} cv_layout_request;

/* Gets n layouts, from the cache or by up to two waves: first the heads, with tables whose position
 * can be guessed, then the other tables. Checked and cached as by cv_layout_get; layouts of small
 * chunks contain the chunk and are not cached. On failure no layout is set. */
cv_status cv_layout_wave(cv_layout_cache *cache, const cv_snapshot *snapshot,
                         cv_layout_request *requests, size_t n, cv_watch *watch,
                         cv_error *err);

/* As cv_layout_wave, but a damaged or unreadable chunk only gets no layout. Fails with
 * CATERVA_ENOMEM or CATERVA_ESTOPPED only; then no layout is set. */
cv_status cv_layout_wave_of_good(cv_layout_cache *cache, const cv_snapshot *snapshot,
                                 cv_layout_request *requests, size_t n, cv_watch *watch,
                                 cv_error *err);

/* Makes the layout of a chunk from its first `size` bytes, usually all of them, and reads the rest.
 * Checked and cached as others. On failure request->layout is not set. */
cv_status cv_layout_of_bytes(cv_layout_cache *cache, const cv_snapshot *snapshot,
                             cv_layout_request *request, const uint8_t *bytes, size_t size,
                             cv_error *err);

/* Approximate number of bytes that a wave reads of each chunk. */
size_t cv_layout_wave_bytes(const cv_grid *grid);

void cv_layout_wave_release(cv_layout_request *requests, size_t n);

/* Adds the chunk's number to an error about a range that could not be read. */
void cv_name_chunk(int64_t chunk, cv_error *err);

#endif

/* A chunk's layout: checked header, block ranges and, if sealed, checksums. Read singly or
 * in waves, and cached. */
#ifndef CV_FRAME_LAYOUT_H
#define CV_FRAME_LAYOUT_H

#include "codec/decode.h"
#include "format/chunk_header.h"
#include "frame/lookup.h"

typedef struct cv_layout_cache cv_layout_cache;

typedef struct cv_layout {
    atomic_int references;
    char apart[64 - sizeof(atomic_int)]; /* what all readers read from what they write */
    cv_object object;
    uint64_t pos;
    uint32_t name; /* of the block table it was checked with, 0: not checked */
    cv_chunk_header header;
    uint8_t header_bytes[CV_CHUNK_HEADER_SIZE];
    cv_block_access access; /* when header.special is NONE */
    int64_t n_blocks;       /* entries of `blocks`; 0 when raw or special */
    int32_t block_bytes;    /* of the grid: so are blocks cut where there are no streams */
    size_t table_size;      /* bytes of its block table, if it has one */
    cv_block_range *blocks;
    uint32_t head_sum; /* where there are `sums`: CRC32C of what is before blocks */
    int64_t n_sums;
    uint32_t *sums; /* CRC32C of each block's bytes, or NULL: not to be checked */
    uint8_t *item;  /* the repeated item of CV_SPECIAL_VALUE, else NULL */
    uint8_t *chunk; /* all its bytes, where they are few; else NULL */
    bool in_room;   /* of cv_layout_read_small: not kept, `chunk` was read just now */
} cv_layout;

/* Memory for consecutive layouts of small chunks, and the last parsed header with what was
 * expected of it. Starts as zeros. */
typedef struct cv_small_room {
    cv_buffer buffer;
    uint8_t header_bytes[CV_CHUNK_HEADER_SIZE];
    cv_chunk_header header;
    cv_chunk_expect expect;
} cv_small_room;

void cv_layout_release(cv_layout *layout); /* NULL is fine */

/* Whether chunks are so small that layout and chunk are one read, and kept nowhere: to find
 * it costs as much as to read it. */
bool cv_layout_is_small(const cv_grid *grid);
/* Where its block table is, table_size bytes, if it has one. */
void cv_layout_find_table(const cv_layout *layout, const cv_chunk_ref *ref, cv_object *object,
                          uint64_t *pos);
/* Bytes of the chunk before its first block. */
size_t cv_layout_head_size(const cv_layout *layout);

/* Asks memory for the bytes of such a chunk, where they are at hand; of others nothing. */
void cv_layout_warm(cv_store *store, const cv_snapshot *snapshot, const cv_chunk_ref *ref);

/* Checks the stored bytes of block `block`, or of all, against the block table, if any.
 * CATERVA_ECORRUPT names chunk (ref->chunk), block and byte. */
cv_status cv_layout_check_block(const cv_layout *layout, const cv_chunk_ref *ref,
                                int64_t block, const uint8_t *bytes, cv_error *err);
cv_status cv_layout_check_chunk(const cv_layout *layout, const cv_chunk_ref *ref,
                                const uint8_t *bytes, cv_error *err);

/* Bytes of the chunk, and of the block table where one stands behind it. */
uint64_t cv_layout_stored_size(const cv_layout *layout, const cv_chunk_ref *ref);

/* ---- The cache ----
 *
 * Cached layouts stay valid because bytes in use never change and reuse of a position is
 * announced here. */

/* Makes a cache for chunks of `store`, which outlives it: sets of four, at most 4 MiB
 * unless eight layouts are more, besides workers' notes. `id` is the frame's. */
cv_layout_cache *cv_layout_cache_new(cv_store *store, uint64_t id,
                                     int64_t n_blocks); /* or NULL */
void cv_layout_cache_free(cv_layout_cache *cache);

/* The layout of a stored chunk, cached or read; checked if the reference names a block
 * table and the snapshot is not unchecked. Any thread. Release with cv_layout_release. */
cv_status cv_layout_get(cv_layout_cache *cache, const cv_snapshot *snapshot,
                        const cv_chunk_ref *ref, cv_layout **out, cv_error *err);

/* The same if it is kept already, or a record of it is at hand, else NULL. */
cv_layout *cv_layout_find(cv_layout_cache *cache, const cv_snapshot *snapshot,
                          const cv_chunk_ref *ref);

/* Forgets all layouts, or that at `pos`. Needed when positions get other chunks, with no
 * read under way; otherwise allowed at any time, to reread. */
void cv_layout_cache_clear(cv_layout_cache *cache);
void cv_layout_cache_forget(cv_layout_cache *cache, cv_object object, uint64_t pos);

/* Changes whenever the position is forgotten as above (or sometimes another one is): tells
 * apart the chunks that one position held. */
uint32_t cv_layout_generation(const cv_layout_cache *cache, cv_object object, uint64_t pos);

/* A checked layout from a record (format/seal.h), one reference; NULL: it does not match
 * the seal, or no memory. */
cv_layout *cv_layout_of_record(cv_store *store, const cv_snapshot *snapshot,
                               size_t record_size, const cv_chunk_ref *ref,
                               const uint8_t *bytes);

/* ---- A worker's notes ---- */

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
    cv_small_room room; /* the small chunk at hand */
} cv_layout_memo;

void cv_layout_memo_free(cv_layout_memo *memo);

/* As cv_layout_get; a small chunk is read into the memo, too. Valid until the memo's next
 * call, which holds the reference. */
cv_status cv_layout_borrow(cv_layout_cache *cache, const cv_snapshot *snapshot,
                           const cv_chunk_ref *ref, cv_layout_memo *memo,
                           const cv_layout **out, cv_error *err);

/* ---- Layouts of many chunks, read together ---- */

/* The first bytes of a chunk that were read. */
typedef struct cv_chunk_head {
    const uint8_t *bytes;
    size_t size;
    uint64_t limit;
    bool keeps_chunk; /* the layout gets all bytes of the chunk, if they are here */
} cv_chunk_head;

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

/* Gets n layouts, from the cache or by up to two waves: first bytes with tables where they
 * are guessed, then other tables. Checked and kept as by cv_layout_get; small chunks' have
 * the chunk and are not kept. All or none. */
cv_status cv_layout_wave(cv_layout_cache *cache, const cv_snapshot *snapshot,
                         cv_layout_wish *wishes, size_t n, cv_watch *watch, cv_error *err);

/* The same, but bad or unreadable chunks just have no layout. CATERVA_ENOMEM,
 * CATERVA_ESTOPPED: none have. */
cv_status cv_layout_wave_of_good(cv_layout_cache *cache, const cv_snapshot *snapshot,
                                 cv_layout_wish *wishes, size_t n, cv_watch *watch,
                                 cv_error *err);

/* The layout of a chunk whose first `size` bytes are at hand, mostly all; checked and kept
 * as others. Reads the rest. Without success there is none. */
cv_status cv_layout_of_bytes(cv_layout_cache *cache, const cv_snapshot *snapshot,
                             cv_layout_wish *wish, const uint8_t *bytes, size_t size,
                             cv_error *err);

/* Bytes that a wave reads of each chunk, about. */
size_t cv_layout_wave_bytes(const cv_grid *grid);

void cv_layout_wave_release(cv_layout_wish *wishes, size_t n);

/* Puts the chunk before what was said of a range of it that could not be read. */
void cv_name_chunk(int64_t chunk, cv_error *err);

#endif

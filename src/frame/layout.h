/* A chunk's layout: its checked header, where each block's bytes are, and of a
 * sealed chunk their checksums. Read here; who keeps it is layout_cache.h. */
#ifndef CV_FRAME_LAYOUT_H
#define CV_FRAME_LAYOUT_H

#include "codec/decode.h"
#include "format/chunk_header.h"
#include "frame/lookup.h"
#include "frame/sealed.h"

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

/* Where layouts of small chunks are made, one after another, and the header that was
 * parsed last, with what was expected of it. All zeros to begin with: no header is. */
typedef struct cv_small_room {
    cv_buffer buffer;
    uint8_t header_bytes[CV_CHUNK_HEADER_SIZE];
    cv_chunk_header header;
    cv_chunk_expect expect;
} cv_small_room;

void cv_layout_release(cv_layout *layout); /* NULL is fine */

/* The layout of a chunk so small that it is read in one go: made in `room`, with the
 * chunk, and kept nowhere. To find it again would cost as much as to read it, and
 * throw out what is worth keeping. Nothing is to be released. */
bool cv_layout_is_small(const cv_grid *grid);
cv_status cv_layout_read_small(cv_store *store, const cv_snapshot *snapshot,
                               const cv_chunk_ref *ref, cv_small_room *room,
                               const cv_layout **out, cv_error *err);

/* Any layout: in `room`, or NULL: new, with one reference. Checked against the block table
 * where the reference names one and the snapshot is not unchecked. */
cv_status cv_layout_read(cv_store *store, const cv_snapshot *snapshot,
                         const cv_chunk_ref *ref, cv_small_room *room, cv_layout **out,
                         cv_error *err);

/* The same in steps, for who reads many at once (layout_wave.h). First the chunk's limit, as
 * its reference has it or the store, and how many of its bytes are read at first. */
cv_status cv_layout_begin(cv_store *store, const cv_snapshot *snapshot,
                          const cv_chunk_ref *ref, uint64_t *limit, size_t *size,
                          cv_error *err);

/* Then a layout of those bytes, not checked yet; of a small chunk with its bytes, and of one
 * that is to be kept. What they do not reach, which is rare, is read. */
typedef struct cv_chunk_head {
    const uint8_t *bytes;
    size_t size;
    uint64_t limit;
    bool keeps_chunk; /* of any chunk, when they are all of it */
} cv_chunk_head;
cv_status cv_layout_parse(cv_store *store, const cv_snapshot *snapshot,
                          const cv_chunk_ref *ref, const cv_chunk_head *given,
                          cv_layout **out, cv_error *err);

/* Then where its block table is, table_size bytes, when the layout is to be checked. */
bool cv_layout_is_checked(const cv_snapshot *snapshot, const cv_chunk_ref *ref);
void cv_layout_find_table(const cv_layout *layout, const cv_chunk_ref *ref, cv_object *object,
                          uint64_t *pos);
cv_status cv_layout_check(cv_store *store, cv_layout *layout, const cv_chunk_ref *ref,
                          const cv_chunk_head *given, const uint8_t *table, cv_error *err);

/* Bytes of the chunk before its first block. */
size_t cv_layout_head_size(const cv_layout *layout);

/* Asks memory for the bytes of such a chunk, where they are at hand; of others nothing. */
void cv_layout_warm(cv_store *store, const cv_snapshot *snapshot, const cv_chunk_ref *ref);

/* Bytes of memory; and the name that the layout of this chunk has. */
size_t cv_layout_bytes(const cv_layout *layout);
uint32_t cv_layout_checked_name(const cv_snapshot *snapshot, const cv_chunk_ref *ref);

/* Checks the stored bytes of block `block`, or all of the chunk's, against its
 * table; of a chunk without one nothing is known to be wrong. CATERVA_ECORRUPT names
 * chunk (ref->chunk), block and byte. */
cv_status cv_layout_check_block(const cv_layout *layout, const cv_chunk_ref *ref,
                                int64_t block, const uint8_t *bytes, cv_error *err);
cv_status cv_layout_check_chunk(const cv_layout *layout, const cv_chunk_ref *ref,
                                const uint8_t *bytes, cv_error *err);

/* Bytes of the chunk, and of the block table where one stands behind it. */
uint64_t cv_layout_stored_size(const cv_layout *layout, const cv_chunk_ref *ref);

/* ---- layout_records ----
 * The layouts of all chunks of a state as they stand in its frame: which record is whose, and
 * a layout made of one. */

typedef struct cv_layout_records {
    cv_layout_area area;
    const cv_snapshot *snapshot; /* whose they are */
    const cv_index *index;       /* the snapshot's, decoded */
    int64_t before[];            /* of each page of the index: records before it */
} cv_layout_records;

/* The record of a chunk; false: it has none. */
bool cv_layout_records_find(const cv_layout_records *records, int64_t chunk, int64_t *record);

/* Where a record is in the frame. */
static inline uint64_t cv_layout_record_pos(const cv_layout_records *records, int64_t record)
{
    return records->area.first + (uint64_t)record * records->area.record_size;
}

/* The layout that a record's bytes make, checked, with one reference; NULL: they are not what
 * the seal knows of the chunk, or there is no memory. */
cv_layout *cv_layout_of_record(const cv_layout_records *records, cv_store *store,
                               const cv_chunk_ref *ref, const uint8_t *bytes);

/* ---- layout_cache ----
 * Layouts that were read, kept, bounded: written bytes never change while anybody needs
 * them, and who gives a position to another chunk says so here. */

typedef struct cv_layout_cache cv_layout_cache;

/* The cache: sets of four, at most 4 MiB unless eight layouts are more; what workers
 * have notes of (layout_memo.h) may stay longer. For chunks of `store`, which outlives it. */
cv_layout_cache *cv_layout_cache_new(cv_store *store, int64_t n_blocks); /* or NULL */
void cv_layout_cache_free(cv_layout_cache *cache);

/* The layout of a stored chunk, from the cache or the store; checked against the
 * block table where the reference names one and the snapshot is not unchecked. Any
 * thread. Release with cv_layout_release. */
cv_status cv_layout_get(cv_layout_cache *cache, const cv_snapshot *snapshot,
                        const cv_chunk_ref *ref, cv_layout **out, cv_error *err);

/* The same where it is kept already, or a record of it is at hand, else NULL; and what was
 * read elsewhere is kept, too. */
cv_layout *cv_layout_find(cv_layout_cache *cache, const cv_snapshot *snapshot,
                          const cv_chunk_ref *ref);
void cv_layout_keep(cv_layout_cache *cache, const cv_chunk_ref *ref, cv_layout *layout);

/* The records of this state's layouts, where the store is so far that they are worth looking
 * for; NULL: there are none. Borrowed from the cache. */
const cv_layout_records *cv_layout_cache_records(cv_layout_cache *cache,
                                                 const cv_snapshot *snapshot);

/* Forgets all layouts, or that of the chunk at `pos`. When a rollback, or the use of
 * dead space, gives positions to other chunks, with no read under way; to have them
 * read anew, at any time. */
void cv_layout_cache_clear(cv_layout_cache *cache);
void cv_layout_cache_forget(cv_layout_cache *cache, cv_object object, uint64_t pos);

/* A number that tells the chunks which one position held one after another
 * apart: it changes whenever the position is forgotten as above (and sometimes
 * when another one is). For who keeps more of a chunk than its layout. */
uint32_t cv_layout_generation(const cv_layout_cache *cache, cv_object object, uint64_t pos);

#endif

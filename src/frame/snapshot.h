/* A snapshot: one committed state of a frame, immutable and shared. Readers
 * hold a reference and need no lock; a commit publishes a new one. */
#ifndef CV_FRAME_SNAPSHOT_H
#define CV_FRAME_SNAPSHOT_H

#include "base/grid.h"
#include "codec/codec.h"
#include "format/array_meta.h"
#include "format/frame_header.h"
#include "format/trailer.h"
#include "frame/index.h"
#include "store/store.h"

#include <pthread.h>
#include <stdatomic.h>

typedef struct cv_snapshot {
    atomic_int references;
    cv_frame_header header; /* metalayers borrow from header_bytes */
    cv_buffer header_bytes;
    cv_array_meta meta; /* dtype borrows from header_bytes */
    cv_grid grid;
    cv_trailer trailer; /* attributes borrow from trailer_bytes */
    cv_buffer trailer_bytes;
    uint64_t index_pos;  /* bytes from the frame's start */
    uint64_t index_size; /* 0 without chunks; the seal behind it is not counted */

    /* What vouches for the state, see sealed.h. */
    cv_seal_state seal;
    cv_seal_footer footer; /* of a sealed state with chunks */
    bool unchecked;        /* nothing is checked against the seal */
    bool refound;          /* repair's: the index is not the stored one, see refind.h */
    pthread_mutex_t head_lock;
    atomic_bool head_ready;
    cv_seal_head head;

    /* The index, decoded at first need and then shared by all readers. */
    pthread_mutex_t index_lock;
    atomic_bool index_ready;
    atomic_int index_lookups; /* made without it */
    cv_index index;
} cv_snapshot;

/* An empty snapshot with one reference, or NULL without memory. */
cv_snapshot *cv_snapshot_new(void);
void cv_snapshot_retain(cv_snapshot *snapshot);
void cv_snapshot_release(cv_snapshot *snapshot); /* NULL is fine */

/* Reads and checks the state that `store` holds: header, metalayer, grid,
 * trailer, and, unless `unchecked`, that the seal vouches for them. The index is
 * left for first need. */
cv_status cv_snapshot_load(cv_store *store, bool unchecked, cv_snapshot **out, cv_error *err);

/* The same in parts, for who repairs: the state of the header that `store` begins
 * with, or of one that was found elsewhere, and then its trailer and the place of
 * its index. find_index does without the trailer: the state has no attributes. */
cv_status cv_snapshot_load_header(cv_store *store, cv_snapshot **out, cv_error *err);
cv_status cv_snapshot_from_header(const uint8_t *header, size_t size, cv_snapshot **out,
                                  cv_error *err);
cv_status cv_snapshot_load_tail(cv_snapshot *snapshot, cv_store *store, cv_error *err);
cv_status cv_snapshot_find_index(cv_snapshot *snapshot, cv_store *store, cv_error *err);

/* Might another opening read an older state than this committed one, and so bytes that
 * it does not use? A state has a number to be known by when its seal holds. */
bool cv_snapshot_has_older_readers(const cv_snapshot *snapshot, cv_store *store);

/* Fills in what follows from header_bytes: header, meta, grid; each checked
 * against the others. */
cv_status cv_snapshot_parse(cv_snapshot *snapshot, cv_error *err);

/* Bytes that a chunk decodes to: those of the grid, but for the last chunk of a frame of
 * plain items. */
int64_t cv_snapshot_chunk_bytes(const cv_snapshot *snapshot, int64_t chunk);

/* What a new state changes of an old one. */
typedef struct cv_change {
    bool set_attributes;            /* then the list below replaces the old one */
    const cv_metalayer *attributes; /* encoded values */
    int n_attributes;
    const cv_metalayer *metalayer; /* replaces the one of this name, same size; or NULL */
} cv_change;

/* A state that is not committed: `from` with a change. Header and trailer are
 * encoded and parsed like those of a file; it has no index of its own. */
cv_status cv_snapshot_derive(const cv_snapshot *from, const cv_change *change,
                             cv_snapshot **out, cv_error *err);

/* A new shape for a state of one owner, checked and encoded: applying it cannot
 * fail. Free `meta` when done. */
typedef struct cv_new_shape {
    cv_grid grid;
    int64_t nbytes;
    cv_buffer meta; /* the array's own metalayer */
} cv_new_shape;

cv_status cv_new_shape_make(const cv_snapshot *state, const int64_t *shape, cv_new_shape *out,
                            cv_error *err);
void cv_new_shape_apply(const cv_new_shape *change, cv_snapshot *state);

/* The decoded index; reads and decodes it the first time. Any thread. */
cv_status cv_snapshot_index(cv_snapshot *snapshot, cv_store *store, const cv_index **out,
                            cv_error *err);

/* ---- Chunk references --------------------------------------------------- */

typedef enum cv_ref_kind {
    CV_REF_STORED,
    CV_REF_ZEROS,
    CV_REF_NAN,
    CV_REF_UNINIT, /* reads as zeros */
    CV_REF_ITEM    /* one item everywhere; only pending, never in an index */
} cv_ref_kind;

/* Where a chunk is. */
typedef struct cv_chunk_ref {
    int64_t chunk;
    cv_ref_kind kind;
    cv_object object;    /* of a stored chunk: the frame, or a chunk file */
    uint64_t pos;        /* of its first byte in the object */
    uint64_t limit;      /* bytes the object can hold of it (0: ask the store) */
    const uint8_t *item; /* of CV_REF_ITEM; borrowed */
    uint32_t name;       /* of its block table, 0: none is known, it is unverified */
    uint64_t table_pos;  /* where that stands in the frame, 0: right behind the chunk */
} cv_chunk_ref;

/* Index entries: offset from the header's end, chunk file number, or one of
 * the special values. */
bool cv_offset_is_special(int64_t offset);
int64_t cv_offset_of_kind(cv_ref_kind kind);

/* Turns an index entry into a reference, checked against the chunk area; without
 * the name of a table. */
cv_status cv_chunk_ref_make(const cv_snapshot *snapshot, int64_t chunk, int64_t offset,
                            cv_chunk_ref *out, cv_error *err);

/* The reference to a chunk of an index of the snapshot's. */
cv_status cv_chunk_ref_find(const cv_snapshot *snapshot, const cv_index *index, int64_t chunk,
                            cv_chunk_ref *out, cv_error *err);

/* CATERVA_ECORRUPT when so many stored chunks cannot be there: each takes a header of its
 * own, or is a file. For who is about to look at all of them. */
cv_status cv_snapshot_check_room(const cv_snapshot *snapshot, cv_store *store,
                                 int64_t n_stored, cv_error *err);

/* Entries that name a stored chunk. */
int64_t cv_index_count_stored(const cv_index *index);

/* The first chunk from `chunk` on that is stored, or whose entry is not `same`, which is
 * special; index->n: none. */
int64_t cv_index_next(const cv_index *index, int64_t chunk, int64_t same);

/* Where a chunk of the committed state is. The first few of a large index are
 * looked up in their block alone; who asks more often has it decoded whole. Any
 * thread. */
cv_status cv_snapshot_find(cv_snapshot *snapshot, cv_store *store, int64_t chunk,
                           cv_chunk_ref *out, cv_error *err);

#endif

/* One committed state of a frame, immutable, reference-counted, read without a lock; a
 * commit publishes a new one. */
#ifndef CV_FRAME_SNAPSHOT_H
#define CV_FRAME_SNAPSHOT_H

#include "base/grid.h"
#include "base/heap.h"
#include "base/thread.h"
#include "format/array_meta.h"
#include "format/frame_header.h"
#include "format/seal.h"
#include "frame/attributes.h"
#include "frame/index.h"
#include "store/store.h"

#include <stdatomic.h>

/* python-blosc2's name for the object: "array", "schunk" for plain items, "lazyexpr",
 * "batcharray", ... ignoring attributes. *readable: it can be read as an array, by its
 * header. */
enum { CV_KIND_NAME = 32 };
void cv_kind_name(const cv_frame_header *header, char name[CV_KIND_NAME], bool *readable);

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

    /* What vouches for the state, see format/seal.h. */
    cv_seal_state seal;
    cv_seal_footer footer; /* of a sealed state with chunks */
    cv_stamp stamp;        /* of the store when the state was loaded, unless sealed whole */
    bool unchecked;        /* nothing is checked against the seal */
    bool any_kind;         /* a frame of bytes and attributes, whatever it is kept for */
    bool refound;          /* repair's: the index is not the stored one, see upkeep/rescue.h */
    cv_mutex head_lock;
    atomic_bool head_ready;
    cv_seal_head head;

    /* The index, decoded at first need and then shared by all readers. */
    cv_mutex index_lock;
    atomic_bool index_ready;
    atomic_int index_lookups; /* made without it */
    cv_index index;

    /* The attributes of both places, merged at first need. */
    _Atomic(cv_attributes *) attributes;
} cv_snapshot;

/* An empty snapshot with one reference, or NULL without memory. */
cv_snapshot *cv_snapshot_new(void);
void cv_snapshot_retain(cv_snapshot *snapshot);
void cv_snapshot_release(cv_snapshot *snapshot); /* NULL is fine */

/* Whether another opening may read an older state. States with a valid seal have a
 * number. */
bool cv_snapshot_has_older_readers(const cv_snapshot *snapshot, cv_store *store);

/* Its attributes, borrowed as long as the snapshot is. Any thread. */
cv_status cv_snapshot_attributes(const cv_snapshot *snapshot, const cv_attributes **out,
                                 cv_error *err);

/* Whether a header whose checksum does not fit is another writer's (without metalayers, as
 * groups' attributes, whose writers rewrite the trailer). CATERVA_ECORRUPT: it is
 * damaged. */
cv_status cv_snapshot_check_header(const cv_snapshot *snapshot, cv_error *err);

/* The values of the attributes that its trailer has, each checked. */
cv_status cv_snapshot_check_attributes(const cv_snapshot *snapshot, cv_error *err);

/* A number that tells states of one frame apart: what its header and trailer hold. */
uint32_t cv_snapshot_name(const cv_snapshot *snapshot);

/* Identifies the state: equal for all openings of a commit, different for other commits and
 * contents. Sealed: from its checksums; else from the store's stamp, too. */
void cv_snapshot_identify(const cv_snapshot *snapshot, uint8_t out[CV_STATE_ID]);

/* Derives header, meta and grid from header_bytes, and checks them against each other. */
cv_status cv_snapshot_parse(cv_snapshot *snapshot, cv_error *err);

/* Decoded bytes of a chunk: the grid's, but for a plain frame's last one. */
int64_t cv_snapshot_chunk_bytes(const cv_snapshot *snapshot, int64_t chunk);

/* ---- Loading ---- */

/* Loads and checks `store`'s state: header, metalayer, grid, trailer, and, unless
 * `unchecked`, the seal. The index is read at first need. */
cv_status cv_snapshot_load(cv_store *store, bool unchecked, cv_snapshot **out, cv_error *err);

/* The same, also for frames that are no arrays: as plain items. */
cv_status cv_snapshot_load_any(cv_store *store, cv_snapshot **out, cv_error *err);

/* What the header says that the frame holds, as cv_kind_name. */
cv_status cv_snapshot_load_kind(cv_store *store, char name[CV_KIND_NAME], cv_error *err);

/* Loading in parts, for repair: from the header at the store's beginning or one found
 * elsewhere; then trailer and index place. find_index needs no trailer: no attributes
 * then. */
cv_status cv_snapshot_load_header(cv_store *store, cv_snapshot **out, cv_error *err);
cv_status cv_snapshot_from_header(const uint8_t *header, size_t size, cv_snapshot **out,
                                  cv_error *err);
cv_status cv_snapshot_load_tail(cv_snapshot *snapshot, cv_store *store, cv_error *err);
cv_status cv_snapshot_find_index(cv_snapshot *snapshot, cv_store *store, cv_error *err);

/* ---- From one state to the next ---- */

/* What a new state changes of an old one. */
typedef struct cv_change {
    bool set_attributes;            /* then the list below replaces the old one */
    const cv_metalayer *attributes; /* encoded values */
    int n_attributes;
    const cv_metalayer *metalayer; /* replaces the one of this name, same size; or NULL */
} cv_change;

/* A pending state: `from` with a change, encoded and parsed like a file's; has no index. */
cv_status cv_snapshot_derive(const cv_snapshot *from, const cv_change *change,
                             cv_snapshot **out, cv_error *err);

/* A new shape for a state of one owner, encoded, so that applying cannot fail. Free
 * `meta`. */
typedef struct cv_new_shape {
    cv_grid grid;
    int64_t nbytes;
    cv_buffer meta; /* the array's own metalayer */
} cv_new_shape;

cv_status cv_new_shape_make(const cv_snapshot *state, const int64_t *shape, cv_new_shape *out,
                            cv_error *err);
void cv_new_shape_apply(const cv_new_shape *change, cv_snapshot *state);

/* ---- The copy of the header ----
 *
 * Right before a contiguous frame's index, or behind a directory's chunks.b2frame; for
 * repair. */

/* Bytes of the header copy that a tail of `state` begins with, or 0: of a directory, too. */
uint64_t cv_tail_copy_size(const cv_snapshot *state);

/* The copy before a stored state's index, if it is of its own header. `bytes` keeps it. */
cv_status cv_tail_read_copy(const cv_snapshot *state, cv_store *store, cv_buffer *bytes,
                            cv_header_copy *copy, bool *found, cv_error *err);

/* Place and size of a sealed state's header copy; size 0: none, or the writer is unknown. */
cv_status cv_tail_own_copy(const cv_snapshot *state, cv_store *store, uint64_t *pos,
                           uint64_t *size, cv_error *err);

/* CATERVA_ECORRUPT: that copy is not what the commit has written. */
cv_status cv_tail_check_copy(const cv_snapshot *state, cv_store *store, cv_error *err);

#endif

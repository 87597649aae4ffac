/* One committed state of a frame: immutable, reference-counted, read without a lock. A commit makes
 * a new snapshot current. */
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

/* Gets the object's name in python-blosc2 from the header: "array", "schunk" for plain items,
 * "lazyexpr", "batcharray", ... *readable: whether it can be read as an array. */
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
    uint64_t index_size; /* 0 without chunks; does not include the seal behind the index */

    /* The seal, see format/seal.h. */
    cv_seal_state seal;
    cv_seal_footer footer; /* of a sealed state with chunks */
    cv_stamp stamp;        /* of the store at loading; zeros with CV_SEAL_WHOLE */
    bool unchecked;        /* reads are not checked against the seal */
    bool any_kind;         /* loaded as a frame of bytes and attributes, whatever its kind */
    bool refound;          /* repair has rebuilt the index: upkeep/rescue.h */
    cv_mutex head_lock;
    atomic_bool head_ready;
    cv_seal_head head;

    /* The index, decoded at first need and shared by all readers. */
    cv_mutex index_lock;
    atomic_bool index_ready;
    atomic_int index_lookups; /* lookups made before it was decoded */
    cv_index index;

    /* All attributes, merged at first need. */
    _Atomic(cv_attributes *) attributes;
} cv_snapshot;

/* Makes an empty snapshot with one reference. NULL if out of memory. */
cv_snapshot *cv_snapshot_new(void);
void cv_snapshot_retain(cv_snapshot *snapshot);
void cv_snapshot_release(cv_snapshot *snapshot); /* NULL is fine */

/* Whether another opening may be reading an older state. States with a valid seal have a number. */
bool cv_snapshot_has_older_readers(const cv_snapshot *snapshot, cv_store *store);

/* The attributes, borrowed from the snapshot. Any thread. */
cv_status cv_snapshot_attributes(const cv_snapshot *snapshot, const cv_attributes **out,
                                 cv_error *err);

/* CATERVA_ECORRUPT if the header's checksum differs and another program cannot be the reason. It
 * can be in arrays, whose header other programs rewrite alone; but in a frame without metalayers,
 * such as the attributes of a group, they rewrite the trailer, too. */
cv_status cv_snapshot_check_header(const cv_snapshot *snapshot, cv_error *err);

/* Checks the values of all attributes in the trailer. */
cv_status cv_snapshot_check_attributes(const cv_snapshot *snapshot, cv_error *err);

/* A number that distinguishes states of one frame, from the contents of header and trailer. */
uint32_t cv_snapshot_name(const cv_snapshot *snapshot);

/* Identifies the state: equal for all openings of one commit, different for other commits and
 * contents. Made of header, trailer and, unless the seal covers everything, the store's stamp. */
void cv_snapshot_identify(const cv_snapshot *snapshot, uint8_t out[CV_STATE_ID]);

/* Derives header, meta and grid from header_bytes, and checks that they are consistent. */
cv_status cv_snapshot_parse(cv_snapshot *snapshot, cv_error *err);

/* Decoded bytes of a chunk: those of the grid, except for the last chunk of a plain frame. */
int64_t cv_snapshot_chunk_bytes(const cv_snapshot *snapshot, int64_t chunk);

/* ---- Loading ---- */

/* Loads and checks the state of `store`: header, metalayer, grid, trailer, and the seal unless
 * `unchecked`. The index is read at first need. */
cv_status cv_snapshot_load(cv_store *store, bool unchecked, cv_snapshot **out, cv_error *err);

/* As cv_snapshot_load, but also loads frames that are not arrays, as plain items. */
cv_status cv_snapshot_load_any(cv_store *store, cv_snapshot **out, cv_error *err);

/* Gets the kind of object from the header, as cv_kind_name does. */
cv_status cv_snapshot_load_kind(cv_store *store, char name[CV_KIND_NAME], cv_error *err);

/* Loading in steps, for repair: the header, from the beginning of the store or from `header`; then
 * trailer and index. find_index does not need a trailer: the state then has no attributes. */
cv_status cv_snapshot_load_header(cv_store *store, cv_snapshot **out, cv_error *err);
cv_status cv_snapshot_from_header(const uint8_t *header, size_t size, cv_snapshot **out,
                                  cv_error *err);
cv_status cv_snapshot_load_tail(cv_snapshot *snapshot, cv_store *store, cv_error *err);
cv_status cv_snapshot_find_index(cv_snapshot *snapshot, cv_store *store, cv_error *err);

/* ---- Deriving a state ---- */

/* The difference between an old and a new state. */
typedef struct cv_change {
    bool set_attributes;            /* the list below replaces the old one */
    const cv_metalayer *attributes; /* encoded values */
    int n_attributes;
    const cv_metalayer *metalayer; /* replaces the one of the same name and size; or NULL */
} cv_change;

/* Makes a pending state: `from` with a change, encoded and parsed as if read from a file. It has no
 * index. */
cv_status cv_snapshot_derive(const cv_snapshot *from, const cv_change *change,
                             cv_snapshot **out, cv_error *err);

/* A new shape for a state with one owner, encoded in advance so that applying it cannot fail. Free
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
 * For repair. It is right before the index of a contiguous frame, or behind the frame in a
 * directory's chunks.b2frame. */

/* Bytes of the header copy in the tail of `state`; 0 in a directory, too. */
uint64_t cv_tail_copy_size(const cv_snapshot *state);

/* Reads the copy before the stored index into `bytes`, if it is a copy of this header. */
cv_status cv_tail_read_copy(const cv_snapshot *state, cv_store *store, cv_buffer *bytes,
                            cv_header_copy *copy, bool *found, cv_error *err);

/* Position and size of a sealed state's header copy. Size 0: no copy, or another program wrote the
 * state. */
cv_status cv_tail_own_copy(const cv_snapshot *state, cv_store *store, uint64_t *pos,
                           uint64_t *size, cv_error *err);

/* CATERVA_ECORRUPT if the state's header copy differs from what the commit has written. */
cv_status cv_tail_check_copy(const cv_snapshot *state, cv_store *store, cv_error *err);

#endif

/* A frame joins format, store and codec. It is validated once, when opened; readers read
 * its current snapshot, and only transactions change its bytes. */
#ifndef CV_FRAME_FRAME_H
#define CV_FRAME_FRAME_H

#include "codec/spec.h"
#include "frame/snapshot.h"

typedef struct cv_layout_cache cv_layout_cache;

typedef struct cv_frame {
    uint64_t id;          /* no other frame of this process has or had it */
    cv_store *store;      /* owned */
    cv_mutex lock;        /* guards `current` against a commit */
    cv_snapshot *current; /* one reference is the frame's */
    cv_layout_cache *layouts;
    caterva_durability durability;
    bool poisoned; /* a sync or header write failed: what is on disk is unknown */
} cv_frame;

/* Opens and owns `store`, also on failure. `unchecked`: reads are not checked against the
 * seal. */
cv_status cv_frame_open(cv_store *store, caterva_durability durability, bool unchecked,
                        cv_frame **out, cv_error *err);

/* The same of a frame that need be no array, see cv_snapshot_load_any: to be read only. */
cv_status cv_frame_open_any(cv_store *store, cv_frame **out, cv_error *err);

/* Opens `store` read-only at a state other than its header's, for repair. Owns both, also
 * on failure. */
cv_status cv_frame_open_state(cv_store *store, cv_snapshot *state,
                              caterva_durability durability, cv_frame **out, cv_error *err);

/* What a new frame begins with. */
typedef struct cv_frame_seed {
    cv_frame_header header;         /* metalayers included; sizes are filled in */
    const cv_metalayer *attributes; /* encoded values */
    int n_attributes;
    int64_t initial_offset; /* every chunk's index entry: one of the special kinds */
} cv_frame_seed;

/* A frame that the first commit writes and publishes. Copies the seed; owns the store, also
 * on failure. */
cv_status cv_frame_create(cv_store *store, const cv_frame_seed *seed,
                          caterva_durability durability, cv_frame **out, cv_error *err);

void cv_frame_close(cv_frame *frame); /* NULL is fine */

/* The current snapshot with a reference added; release it. */
cv_snapshot *cv_frame_snapshot(cv_frame *frame);

/* The codec spec of the frame's chunks; borrows from the snapshot and `geometry`, which is
 * filled. Free `geometry` when done. */
cv_status cv_frame_codec_spec(const cv_snapshot *snapshot, cv_buffer *geometry,
                              cv_codec_spec *out, cv_error *err);

#endif

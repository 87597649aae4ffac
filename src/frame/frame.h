/* A frame joins format, store and codec. It is validated once, when opened. Readers read its
 * current snapshot; only transactions change its bytes. */
#ifndef CV_FRAME_FRAME_H
#define CV_FRAME_FRAME_H

#include "codec/spec.h"
#include "frame/snapshot.h"

typedef struct cv_layout_cache cv_layout_cache;

typedef struct cv_frame {
    uint64_t id;          /* unique in this process, never reused */
    cv_store *store;      /* owned */
    cv_mutex lock;        /* guards `current` */
    cv_snapshot *current; /* the frame holds one reference */
    cv_layout_cache *layouts;
    caterva_durability durability;
    bool poisoned; /* a sync or header write failed: the state on disk is unknown */
} cv_frame;

/* Opens the frame in `store`, and owns the store even on failure. `unchecked`: reads are not
 * checked against the seal. */
cv_status cv_frame_open(cv_store *store, caterva_durability durability, bool unchecked,
                        cv_frame **out, cv_error *err);

/* As cv_frame_open, for reading only. The frame need not be an array: see cv_snapshot_load_any. */
cv_status cv_frame_open_any(cv_store *store, cv_frame **out, cv_error *err);

/* Opens `store` read-only at `state`, which is not the state of its header, for repair. Owns both,
 * even on failure. */
cv_status cv_frame_open_state(cv_store *store, cv_snapshot *state,
                              caterva_durability durability, cv_frame **out, cv_error *err);

/* The contents of a new frame. */
typedef struct cv_frame_seed {
    cv_frame_header header;         /* with metalayers; the sizes are filled in */
    const cv_metalayer *attributes; /* encoded values */
    int n_attributes;
    int64_t initial_offset; /* index entry of every chunk: a special kind */
} cv_frame_seed;

/* Creates a frame that the first commit writes and publishes. Copies the seed. Owns the store, even
 * on failure. */
cv_status cv_frame_create(cv_store *store, const cv_frame_seed *seed,
                          caterva_durability durability, cv_frame **out, cv_error *err);

void cv_frame_close(cv_frame *frame); /* NULL is fine */

/* Returns the current snapshot with a new reference: call cv_snapshot_release. */
cv_snapshot *cv_frame_snapshot(cv_frame *frame);

/* Fills `out` with the codec spec of the frame's chunks. `out` borrows from the snapshot and from
 * `geometry`, which is filled, too; free `geometry` after use. */
cv_status cv_frame_codec_spec(const cv_snapshot *snapshot, cv_buffer *geometry,
                              cv_codec_spec *out, cv_error *err);

#endif

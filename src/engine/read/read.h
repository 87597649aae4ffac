/* Reading a box. */
#ifndef CV_ENGINE_READ_H
#define CV_ENGINE_READ_H

#include "engine/pending/pending.h"
#include "engine/plan/plan.h"
#include "engine/read/damage.h"

/* What a read stands on: one committed state, and for the handle that writes,
 * what it has pending. */
typedef struct cv_source {
    cv_frame *frame;
    cv_snapshot *snapshot;
    cv_pending *pending; /* NULL: none */
    cv_workers *workers;
    int threads;     /* at most so many, the caller's included */
    bool scan;       /* each block is read once: none of them is put into the cache */
    cv_watch *watch; /* who hears of what is decoded; or NULL */
} cv_source;

/* Where a chunk is, pending changes included. */
cv_status cv_source_find(const cv_source *source, int64_t chunk, cv_chunk_ref *out,
                         cv_error *err);

/* Copies the planned box into `dst`, C order. Any thread. */
cv_status cv_read_box(const cv_source *source, const cv_plan *plan, void *dst, cv_error *err);

/* What a read puts in the place of damaged chunks, and whom it tells; calls never
 * overlap, any thread. */
typedef struct cv_skip {
    const uint8_t *fill; /* one item; NULL: zeros */
    cv_damage_sink sink;
} cv_skip;

/* The same; a chunk that cannot be read does not end it. */
cv_status cv_read_box_skipping(const cv_source *source, const cv_plan *plan, void *dst,
                               const cv_skip *skip, cv_error *err);

#endif

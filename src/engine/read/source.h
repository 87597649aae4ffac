/* What a read stands on. */
#ifndef CV_ENGINE_SOURCE_H
#define CV_ENGINE_SOURCE_H

#include "engine/pending/pending.h"
#include "frame/lookup.h"

/* One committed state, and for the handle that writes, what it has pending. */
typedef struct cv_source {
    cv_frame *frame;
    cv_snapshot *snapshot;
    cv_pending *pending; /* NULL: none */
    cv_workers *workers;
    int threads; /* at most so many, the caller's included */
    bool checks; /* chunks that are moved are compared with their checksums before */
    bool gives; /* it goes with what its chunks are moved to: its chunk files may be shared */
    bool
        is_durable; /* what it holds is on the medium, or is to be: its bytes may be cloned */
    bool scan;      /* each block is read once: none of them is put into the cache */
    cv_watch *watch; /* who hears of what is decoded; or NULL */
} cv_source;

/* What a write reads: the state with all that is pending. It is read once: what is
 * decoded for a write is dirty or encoded anew from then on. */
cv_source cv_source_of_pending(cv_pending *pending);

/* Where a chunk is, pending changes included. */
static inline cv_status cv_source_find(const cv_source *source, int64_t chunk,
                                       cv_chunk_ref *out, cv_error *err)
{
    if (source->pending) return cv_pending_where(source->pending, chunk, out, err);
    return cv_snapshot_find(source->snapshot, source->frame->store, chunk, out, err);
}

/* Whether the committed state has the layouts of its chunks in one place, for readers that are
 * far away. Damage there is as if there were none. */
cv_status cv_source_has_layouts(const cv_source *source, bool *out, cv_error *err);

/* Where a stored chunk of the frame and its table probably end: where the next one begins, or
 * all do; 0: nobody knows. */
uint64_t cv_source_guess_end(const cv_source *source, const cv_chunk_ref *ref);

#endif

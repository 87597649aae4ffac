/* Rebuilding a chunk at the cost of its dirty blocks. */
#ifndef CV_ENGINE_SPLICE_H
#define CV_ENGINE_SPLICE_H

#include "engine/pending/pending.h"

/* A stored chunk of another frame, of the same geometry. */
typedef struct cv_splice_source {
    cv_store *store;
    const cv_layout *layout; /* whose blocks have streams of their own, see cv_can_splice */
    bool checks;             /* they are compared with their checksums */
} cv_splice_source;

typedef struct cv_splice_job {
    cv_pending *pending;
    cv_worker *worker;
    int64_t chunk;
    const uint8_t *const *blocks; /* decoded, n_blocks of the grid; NULL: clean */
    int64_t n_dirty;              /* those that are not NULL */
    int idle;                     /* threads that may help */
    /* Of clean blocks those that come from elsewhere, n_blocks of the grid, NULL: from the
     * stored chunk; or NULL: none does. With n_dirty they are at least one. */
    const cv_splice_source *const *others;
    int64_t n_others;
} cv_splice_job;

/* Can blocks of the chunk be taken one by one, as they are stored? */
bool cv_can_splice(const cv_layout *layout);

typedef enum cv_spliced {
    CV_SPLICE_NOT, /* nothing was put: the chunk must be encoded whole */
    CV_SPLICE_DONE,
    CV_SPLICE_LARGER /* nothing was put: without compression it takes less. The worker's
                        `head` begins with the header that it has with streams       */
} cv_spliced;

/* Encodes the dirty blocks, copies the compressed bytes of all others as they
 * are, and puts the new chunk; unless the stored chunk is memcpyed, has a
 * dictionary or delta, was encoded another way, or the result would be larger
 * than the data. The one place that decides. */
cv_status cv_splice_chunk(const cv_splice_job *job, cv_spliced *out, cv_error *err);

#endif

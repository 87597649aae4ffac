/* One chunk put together of what several parts wrote of it, or one wrote in part, and of what
 * the array has. */
#ifndef CV_ENGINE_COMPOSE_H
#define CV_ENGINE_COMPOSE_H

#include "engine/merge/part_file.h"
#include "engine/pending/pending.h"

typedef struct cv_composition {
    cv_pending *target;
    int64_t chunk;              /* its number in the array */
    cv_part_file *const *files; /* the later lie over the earlier */
    int64_t n;
    int64_t n_side;    /* chunks that are worked on side by side */
    int64_t n_decoded; /* out: blocks decoded to be put together */
    bool spliced;      /* out: the others kept their bytes */
} cv_composition;

/* Puts the chunk into the target's transaction. Any thread, with a worker of the target. */
cv_status cv_compose_chunk(cv_composition *c, cv_worker *worker, cv_error *err);

/* Whether the array holds all that the parts wrote of the chunk; nothing is put. */
cv_status cv_compose_is_done(const cv_composition *c, cv_worker *worker, bool *done,
                             cv_error *err);

/* Two of the files that wrote the same item of a chunk, and the block; false: there are none. */
bool cv_compose_meet(const cv_composition *c, int64_t *a, int64_t *b, int64_t *block);

#endif

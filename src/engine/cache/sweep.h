/* How the parts that reads take of a block in the cache follow each other. A scan goes
 * through a block once, from one end to the other: that it was found 31 times on the
 * way does not make it a block worth keeping, and behind its end nobody will ask for
 * it. Who reads the same again, or here and there, is of another kind. */
#ifndef CV_ENGINE_SWEEP_H
#define CV_ENGINE_SWEEP_H

#include "engine/plan/plan.h"

#include <stdatomic.h>

/* Any thread may note; of two at once one may be lost. */
typedef struct cv_sweep {
    atomic_int_least64_t last; /* byte of the first item of the last part; -1: none yet */
    atomic_int way;            /* of its last step: 1 to the end, -1 back; 0: none yet */
} cv_sweep;

typedef enum cv_step {
    CV_STEP_ON,   /* the first part, or on behind the last one, the same way */
    CV_STEP_LAST, /* the same, and there is nothing behind it that way */
    CV_STEP_BACK  /* to what was read before, or another way */
} cv_step;

static inline void cv_sweep_init(cv_sweep *sweep)
{
    atomic_init(&sweep->last, -1);
    atomic_init(&sweep->way, 0);
}

cv_step cv_sweep_note(cv_sweep *sweep, const cv_grid *grid, const cv_block_job *part);

#endif

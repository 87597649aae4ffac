/* A caterva_progress reported at every step, so that tests can count reports or stop at one. */
#ifndef SUPPORT_EVERY_STEP_H
#define SUPPORT_EVERY_STEP_H

#include <caterva.h>

static inline caterva_progress every_step(int (*report)(void *, int64_t, int64_t),
                                          void *context)
{
    return (caterva_progress){report, context, CATERVA_NONE, {0}};
}

#endif

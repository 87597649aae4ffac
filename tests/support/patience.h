/* A progress callback that checks the numbers it gets, and stops the call after some reports. */
#ifndef SUPPORT_PATIENCE_H
#define SUPPORT_PATIENCE_H

#include "check.h"
#include "every_step.h"

#include <stdint.h>

typedef struct patience {
    int left; /* reports until it stops the call; -1: never */
    int calls;
    int64_t done, total;
} patience;

/* A caterva_progress.report. */
static inline int patience_on_progress(void *context, int64_t done, int64_t total)
{
    patience *p = context;
    CHECK(done >= p->done && total >= p->total && done <= total, "%lld of %lld after %lld",
          (long long)done, (long long)total, (long long)p->done);
    p->done = done;
    p->total = total;
    p->calls++;
    return p->left >= 0 && p->left-- == 0;
}

#endif

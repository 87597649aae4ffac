/* A box of one array into a new one that may have another partition, codec or
 * layout. Where nothing of that differs, chunks move as they are stored;
 * otherwise slabs of items are read and written (engine/slabs.h). */
#ifndef CV_ENGINE_REPACK_H
#define CV_ENGINE_REPACK_H

#include "engine/read/read.h"

typedef struct cv_repack {
    const cv_source *source;
    const int64_t *start; /* of the box, in items of the source */
    cv_pending *target;   /* new; its shape is the box's */
    int64_t memory;       /* bytes that the copy may hold, the target's own memory
                             aside; the least is what one chunk needs */
    cv_watch *watch;      /* whose steps are chunks of the target; or NULL */
} cv_repack;

/* Copies, and leaves the commit to the caller. Nothing may change the source
 * meanwhile. CATERVA_ESTOPPED when the watch says so. */
cv_status cv_repack_run(const cv_repack *repack, cv_error *err);

#endif

/* Where the layouts of a committed state stand together, see format/layout_area.h. */
#ifndef CV_FRAME_LAYOUT_AREA_H
#define CV_FRAME_LAYOUT_AREA_H

#include "frame/snapshot.h"

typedef struct cv_layout_area {
    uint64_t pos, size; /* all of it; size 0: there is none */
    uint64_t first;     /* where its first record is */
    int64_t n;          /* records */
    size_t record_size;
} cv_layout_area;

/* Where it ends, if there is one: behind this byte is the header's copy, or the index. */
uint64_t cv_layout_area_end(const cv_snapshot *snapshot);

/* Looks for that of a state's own chunks; there is none in what is not sealed, or opened
 * unchecked. */
cv_status cv_layout_area_find(cv_snapshot *snapshot, cv_store *store, cv_layout_area *out,
                              cv_error *err);

#endif

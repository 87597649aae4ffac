/* The header of a frame whose beginning is far, from its end. */
#ifndef CV_FRAME_FAR_HEADER_H
#define CV_FRAME_FAR_HEADER_H

#include "base/heap.h"
#include "store/store.h"

/* Takes the header from the copy before the index (format/header_copy.h), when the store has
 * the end of its `stored` bytes at hand, the frame ends there, and the trailer vouches for
 * that header. *found false: it is to be read where it stands. */
cv_status cv_far_header(cv_store *store, uint64_t stored, cv_buffer *out, bool *found,
                        cv_error *err);

#endif

/* A frame given away as it is stored, piece after piece. */
#ifndef CV_ENGINE_HAND_OVER_H
#define CV_ENGINE_HAND_OVER_H

#include "frame/frame.h"

/* Takes one piece of a frame of `total` bytes; non-zero: no more. */
typedef int (*cv_take_fn)(void *context, const void *piece, size_t size, uint64_t total);

/* Gives all bytes of the committed state of a contiguous frame, in order: dead space
 * included, nothing checked. CATERVA_ESTOPPED when `take` has enough. */
cv_status cv_hand_over(cv_frame *frame, const cv_snapshot *snapshot, cv_take_fn take,
                       void *context, cv_error *err);

#endif

/* Marks as bytes, as a finished part carries them:
 *
 *     "cvmk" 1         magic and version
 *     n                chunks that are not written whole
 *     of each          the step from the one before it, and runs of blocks of one kind:
 *                      length * 4 + kind; of BOX and ITEMS then each block's box or bits
 *
 * Numbers are varints. */
#ifndef CV_ENGINE_MARKS_BYTES_H
#define CV_ENGINE_MARKS_BYTES_H

#include "engine/plan/marks.h"

/* Appends them; after cv_marks_sort. */
cv_status cv_marks_write(const cv_marks *marks, cv_buffer *out, cv_error *err);

/* Adds to empty marks what the bytes say, and checks that it can be; other chunks than those
 * may have been written whole. */
cv_status cv_marks_read(cv_marks *marks, const uint8_t *bytes, size_t size, cv_error *err);

#endif

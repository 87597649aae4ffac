/* Finds the newest header copy in a range of bytes, as repair does. */
#ifndef TEST_NEWEST_COPY_H
#define TEST_NEWEST_COPY_H

#include "format/frame_header.h"

/* `bytes` begin at frame position `pos`. Returns false if they contain no header copy. */
static inline bool newest_copy(const uint8_t *bytes, size_t size, uint64_t pos,
                               cv_header_copy *out)
{
    bool found = false;
    cv_header_copy copy;
    for (size_t at = size; cv_header_copy_before(bytes, size, pos, &at, &copy);) {
        if (!found || copy.commit > out->commit) *out = copy;
        found = true;
    }
    return found;
}

#endif

/* Our own attribute, `_caterva`: what the frame has no field for. A msgpack map,
 * so that python-blosc2, which unpacks every attribute, can read it too.
 *
 *   version  1
 *   fill     one item (bin): what cells hold that nobody has written
 *   job      of a part: the id of its job (bin)
 *   origin   of a part: where it begins in the array, a big-endian int64 for each axis (bin)
 *   marks    of a part: which items of chunks were written (bin, engine/plan/marks_bytes.h)
 *
 * Keys that this version does not know are passed over. */
#ifndef CV_FORMAT_OWN_ATTRIBUTE_H
#define CV_FORMAT_OWN_ATTRIBUTE_H

#include "base/heap.h"

#define CV_OWN_ATTRIBUTE "_caterva"

typedef struct cv_own {
    const uint8_t *fill; /* borrowed; NULL: zeros */
    uint32_t fill_size;
    const uint8_t *job; /* borrowed, as the others are; NULL: it is no part */
    uint32_t job_size;
    const uint8_t *origin;
    uint32_t origin_size;
    const uint8_t *marks;
    uint32_t marks_size;
} cv_own;

/* Parses the attribute's (decoded) value. CATERVA_EUNSUPPORTED for a newer
 * version. */
cv_status cv_own_parse(const uint8_t *bytes, size_t size, cv_own *out, cv_error *err);

cv_status cv_own_write(const cv_own *own, cv_buffer *out, cv_error *err);

#endif

/* Values of attributes, decompressed whole or in part. */
#ifndef CV_FRAME_ATTRIBUTE_H
#define CV_FRAME_ATTRIBUTE_H

#include "base/heap.h"
#include "base/watch.h"
#include "format/frame_header.h"

/* The value of an attribute, decompressed into `out`; `watch`, or NULL, hears of its bytes. */
cv_status cv_frame_attribute(const cv_metalayer *attribute, cv_buffer *out, cv_watch *watch,
                             cv_error *err);

/* How long it is, as its header says; part of it, which must lie inside; and whether all
 * of it decodes. They take the memory of a block, or refuse (CATERVA_EUNSUPPORTED) where
 * that is large. */
cv_status cv_frame_attribute_size(const cv_metalayer *attribute, int64_t *size,
                                  cv_error *err);
cv_status cv_frame_attribute_read(const cv_metalayer *attribute, int64_t start, void *dst,
                                  int64_t size, cv_error *err);
cv_status cv_frame_attribute_check(const cv_metalayer *attribute, cv_error *err);

#endif

/* One JSON text (RFC 8259) as a MessagePack value. Objects of one of json_write.h's words
 * are what they stand for; no other object is special. */
#ifndef CV_VALUE_JSON_READ_H
#define CV_VALUE_JSON_READ_H

#include "base/heap.h"
#include "base/watch.h"

/* Appends the value. CATERVA_EINVAL says what was expected, and at which byte. `watch`, or
 * NULL, counts steps: it hears of the text's bytes, and may stop. */
cv_status cv_json_read(const char *text, size_t size, cv_watch *watch, cv_buffer *out,
                       cv_error *err);

/* The same for a number, true, false or text, or lists of them in lists, as an array of
 * NumPy of this dtype (extension 46). A lone item is an array without axes. */
cv_status cv_json_read_typed(const char *text, size_t size, const char *dtype,
                             cv_watch *watch, cv_buffer *out, cv_error *err);

#endif

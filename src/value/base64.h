/* Base64 (RFC 4648, with padding). */
#ifndef CV_VALUE_BASE64_H
#define CV_VALUE_BASE64_H

#include "base/heap.h"

/* Appends the digits of `bytes`. */
cv_status cv_base64_encode(const void *bytes, size_t size, cv_buffer *out, cv_error *err);

/* Appends the bytes of `text`; CATERVA_EINVAL when it is no base64. */
cv_status cv_base64_decode(const void *text, size_t size, cv_buffer *out, cv_error *err);

#endif

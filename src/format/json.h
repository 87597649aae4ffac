/* JSON text (RFC 8259) to MessagePack, for attribute maps that other programs store as text. */
#ifndef CV_FORMAT_JSON_H
#define CV_FORMAT_JSON_H

#include "base/heap.h"

/* Appends the JSON value `text` to `out` as MessagePack. Returns CATERVA_EINVAL if the text is
 * not exactly one JSON value, nests deeper than CV_VALUE_DEPTH, or holds a number that fits
 * neither 64 bits nor float64; `out` is then unchanged. */
cv_status cv_json_to_msgpack(const char *text, size_t size, cv_buffer *out, cv_error *err);

#endif

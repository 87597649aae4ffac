/* NumPy type descriptions inside the library. caterva_dtype_parse and caterva_dtype_free are in
 * caterva.h. */
#ifndef CV_FORMAT_DTYPE_H
#define CV_FORMAT_DTYPE_H

#include "base/status.h"

/* Parses a scalar ("<f4", "float32", "<M8[25s]"): sets kind, byte_order, item_size and unit. `at`
 * is the position of `text` in the whole description, for messages. */
cv_status cv_dtype_parse_scalar(const char *text, size_t size, size_t at, caterva_dtype *out,
                                cv_error *err);

/* ---- Whole items ---- */

/* Parses `size` bytes as str(numpy.dtype) prints them. On CATERVA_EINVAL, the message names the
 * fault and its position. Release *out with caterva_dtype_free. */
cv_status cv_dtype_parse(const char *text, size_t size, caterva_dtype **out, cv_error *err);

/* Sets *out to the item size of the description, in bytes. */
cv_status cv_dtype_item_size(const char *text, size_t size, int64_t *out, cv_error *err);

#endif

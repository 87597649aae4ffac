/* NumPy type descriptions inside the library; the public half
 * (caterva_dtype_parse, caterva_dtype_free) is in caterva.h. */
#ifndef CV_FORMAT_DTYPE_H
#define CV_FORMAT_DTYPE_H

#include "base/status.h"

/* Parses a scalar ("<f4", "float32", "<M8[25s]"): kind, byte_order, item_size, unit. `at`:
 * its place in the whole description, for messages. */
cv_status cv_dtype_parse_scalar(const char *text, size_t size, size_t at, caterva_dtype *out,
                                cv_error *err);

/* ---- Types of NumPy ---- */

/* Parses `size` bytes as str(numpy.dtype) prints them. CATERVA_EINVAL names the fault and
 * character. Release *out with caterva_dtype_free. */
cv_status cv_dtype_parse(const char *text, size_t size, caterva_dtype **out, cv_error *err);

/* The item size in bytes that the description asks for. */
cv_status cv_dtype_item_size(const char *text, size_t size, int64_t *out, cv_error *err);

#endif

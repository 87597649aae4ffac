/* NumPy type descriptions inside the library; the public half
 * (caterva_dtype_parse, caterva_dtype_free) is in caterva.h. */
#ifndef CV_FORMAT_DTYPE_H
#define CV_FORMAT_DTYPE_H

#include "base/status.h"

/* Parses the description of a scalar ("<f4", "float32", "<M8[25s]"): fills
 * kind, byte_order, item_size and unit. `at`: its first character's place in
 * the whole description, for messages. */
cv_status cv_dtype_parse_scalar(const char *text, size_t size, size_t at, caterva_dtype *out,
                                cv_error *err);

/* ---- Types of NumPy ----
 *
 * NumPy type descriptions inside the library; the public half
 * (caterva_dtype_parse, caterva_dtype_free) is in caterva.h. */

/* Parses `size` bytes, which need no terminator: what str(numpy.dtype) prints.
 * CATERVA_EINVAL says what is wrong and at which character. Release *out with
 * caterva_dtype_free. */
cv_status cv_dtype_parse(const char *text, size_t size, caterva_dtype **out, cv_error *err);

/* The item size in bytes that the description asks for. */
cv_status cv_dtype_item_size(const char *text, size_t size, int64_t *out, cv_error *err);

#endif

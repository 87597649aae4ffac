/* NumPy's scalar types, one description of a dtype or of a field in it. */
#ifndef CV_FORMAT_DTYPE_SCALAR_H
#define CV_FORMAT_DTYPE_SCALAR_H

#include "base/status.h"

/* Parses the description of a scalar ("<f4", "float32", "<M8[25s]"): fills
 * kind, byte_order, item_size and unit. `at`: its first character's place in
 * the whole description, for messages. */
cv_status cv_dtype_parse_scalar(const char *text, size_t size, size_t at, caterva_dtype *out,
                                cv_error *err);

#endif

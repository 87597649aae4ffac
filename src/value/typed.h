/* NumPy arrays as values: extension 46, whose payload is the MessagePack map
 *
 *     {"dtype": {"str": "<i2"}, "shape": [1], "data": bytes}
 *
 * Arrays of fields ({"descr": ...}) and of Python objects ("values") are values, too, but
 * none that is understood here. */
#ifndef CV_VALUE_TYPED_H
#define CV_VALUE_TYPED_H

#include "value/pack.h"

typedef struct cv_typed {
    caterva_dtype type; /* a scalar's: kind, byte order, item size, unit */
    const char *dtype;  /* its description, `dtype_size` bytes; borrowed */
    size_t dtype_size;
    int ndim;
    int64_t shape[CATERVA_MAX_DIMS];
    int64_t n_items;
    const uint8_t *items; /* C order; borrowed */
} cv_typed;

/* Reads the payload; false when it is none of these, or does not fit itself. */
bool cv_typed_parse(const uint8_t *payload, size_t size, cv_typed *out);

/* Fills in the type from a description, which is borrowed. CATERVA_EDTYPE when it is not
 * that of a scalar. */
cv_status cv_typed_set_dtype(cv_typed *typed, const char *dtype, size_t size, cv_error *err);

/* Fills in n_items, and `size`, their bytes; false when the shape has no such number. */
bool cv_typed_count(cv_typed *typed, int64_t *size);

/* Packs it as the extension, the description as NumPy's dtype.str has it. */
void cv_typed_pack(const cv_typed *typed, cv_packer *p);

#endif

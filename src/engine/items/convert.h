/* Casts numbers as NumPy does: bool, integers, floats of 2, 4 and 8 bytes, complex, in
 * either byte order; and "bfloat16", little-endian, with the casts of ml_dtypes. */
#ifndef CV_ENGINE_ITEMS_CONVERT_H
#define CV_ENGINE_ITEMS_CONVERT_H

#include "base/status.h"

#include <stdint.h>

/* What tells them apart. */
typedef struct cv_half_format {
    int fraction_bits;
    int bias;
} cv_half_format;

#define CV_FLOAT16 ((cv_half_format){10, 15})

/* Exact; a NaN keeps its payload. */
double cv_half_to_double(uint16_t half, cv_half_format format);

/* Rounds once, to nearest even; too large becomes infinite. A NaN keeps the upper bits of
 * its payload and is quiet. */
uint16_t cv_double_to_half(double value, cv_half_format format);

/* Converts `n` native float16, one every `step` bytes, with F16C where available. */
void cv_float16_to_doubles(const uint8_t *src, int64_t step, int64_t n, double *dst);
void cv_doubles_to_float16(const double *src, int64_t n, uint8_t *dst, int64_t step);

typedef enum cv_number {
    CV_BOOL,
    CV_I8,
    CV_I16,
    CV_I32,
    CV_I64,
    CV_U8,
    CV_U16,
    CV_U32,
    CV_U64,
    CV_F16,
    CV_BF16,
    CV_F32,
    CV_F64,
    CV_C64, /* two F32 */
    CV_C128
} cv_number;

/* A number as it is stored. */
typedef struct cv_stored_number {
    cv_number number;
    bool swapped; /* not in this machine's byte order */
    int size;     /* bytes */
} cv_stored_number;

/* How items are changed on their way; all zero: not at all. */
typedef struct cv_conversion {
    bool needed;
    cv_stored_number from, to; /* only `size` counts where a field is taken as it is */
    bool as_it_is;
    int64_t item_size; /* of structured items, of which one field is taken; else 0 */
    int64_t offset;    /* of the field in its item */
} cv_conversion;

/* Converts `n` contiguous items, any alignment; the sides do not overlap. */
void cv_convert(const cv_conversion *conversion, const uint8_t *src, uint8_t *dst, int64_t n);

/* From one NumPy description to another. Equal types need no conversion, whatever
 * they are. CATERVA_ECAST when the casting does not allow it, CATERVA_EINVAL when a
 * description is none; CATERVA_EDTYPE for types that are no numbers. */
cv_status cv_conversion_init(cv_conversion *conversion, const char *from, const char *to,
                             caterva_casting casting, cv_error *err);

/* From a field of structured items, "a" or "a.b". `to` NULL: any field as it is; else a
 * number. CATERVA_ENOTFOUND when `from` has no such field. */
cv_status cv_conversion_init_field(cv_conversion *conversion, const char *from,
                                   const char *field, const char *to, caterva_casting casting,
                                   cv_error *err);

#endif

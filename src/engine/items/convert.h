/* Casts numbers as NumPy does: bool, integers, floats of 2, 4 and 8 bytes, and complex, in either
 * byte order. Casts little-endian "bfloat16" as ml_dtypes does. */
#ifndef CV_ENGINE_ITEMS_CONVERT_H
#define CV_ENGINE_ITEMS_CONVERT_H

#include "base/status.h"

#include <stdint.h>

/* A 16-bit float format. */
typedef struct cv_half_format {
    int fraction_bits;
    int bias;
} cv_half_format;

#define CV_FLOAT16 ((cv_half_format){10, 15})

/* The result is exact; a NaN keeps its payload. */
double cv_half_to_double(uint16_t half, cv_half_format format);

/* Rounds once, to nearest even; overflow gives infinity. A NaN keeps the upper bits of its
 * payload and becomes quiet. */
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

/* A number type in memory. */
typedef struct cv_stored_number {
    cv_number number;
    bool swapped; /* not in native byte order */
    int size;     /* bytes */
} cv_stored_number;

/* A conversion of items. If all members are zero, items are not converted. */
typedef struct cv_conversion {
    bool needed;
    cv_stored_number from, to; /* if as_it_is, only `size` is set */
    bool as_it_is;             /* a field that is copied unchanged */
    int64_t item_size; /* of structured items, from which one field is taken; else 0 */
    int64_t offset;    /* of the field in its item */
} cv_conversion;

/* Converts `n` contiguous items of any alignment. src and dst must not overlap. */
void cv_convert(const cv_conversion *conversion, const uint8_t *src, uint8_t *dst, int64_t n);

/* Prepares a conversion between two NumPy type descriptions. Equal descriptions need no
 * conversion, whatever the type. CATERVA_ECAST: the casting does not allow it;
 * CATERVA_EINVAL: not a description; CATERVA_EDTYPE: not a number type. */
cv_status cv_conversion_init(cv_conversion *conversion, const char *from, const char *to,
                             caterva_casting casting, cv_error *err);

/* Prepares taking one field, "a" or "a.b", of structured items. If `to` is NULL, any field is
 * copied unchanged; else the field must be a number. CATERVA_ENOTFOUND: no such field. */
cv_status cv_conversion_init_field(cv_conversion *conversion, const char *from,
                                   const char *field, const char *to, caterva_casting casting,
                                   cv_error *err);

#endif

/* Numbers of one type into another, as NumPy casts them: bool, integers, floats of 2, 4
 * and 8 bytes, complex; either byte order. And bfloat16, which NumPy has no letter for:
 * its description is "bfloat16", its order little-endian, its casts those of ml_dtypes. */
#ifndef CV_ENGINE_CONVERT_H
#define CV_ENGINE_CONVERT_H

#include "base/status.h"

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

/* Converts `n` items, one behind the other on both sides, any alignment; the sides do
 * not overlap. */
void cv_convert(const cv_conversion *conversion, const uint8_t *src, uint8_t *dst, int64_t n);

#endif

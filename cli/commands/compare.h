/* Compares two items of one dtype, exactly or within a tolerance. */
#ifndef CLI_COMPARE_H
#define CLI_COMPARE_H

#include "cli.h"

typedef struct tolerance {
    double absolute, relative; /* |a - b| <= absolute + relative * |b|, as numpy.isclose */
} tolerance;

/* True if both dtypes describe the same items: kinds, sizes, byte order, fields. */
bool compare_dtypes(const caterva_dtype *a, const caterva_dtype *b);

/* True if the items at `a` and `b` are equal, field by field. NaN equals NaN, and NaT equals NaT;
 * numbers may differ within the tolerance. Bytes between fields are not compared. */
bool compare_items(const caterva_dtype *dtype, const uint8_t *a, const uint8_t *b,
                   const tolerance *close);

#endif

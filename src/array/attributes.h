/* Names of dimensions, for copies that keep axes of an array. */
#ifndef CV_ARRAY_ATTRIBUTES_H
#define CV_ARRAY_ATTRIBUTES_H

#include "array/array.h"

/* Gives axis d of `to` the name of axis axes[d] of `from` (-1: no name). Does nothing if `from` has
 * no names, or if `to` has the same axes in the same order. */
cv_status cv_dims_carry(const cv_snapshot *from, const int *axes, caterva_array *to,
                        cv_error *err);

#endif

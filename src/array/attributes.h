/* Names of dimensions, for copies that keep axes of an array. */
#ifndef CV_ARRAY_ATTRIBUTES_H
#define CV_ARRAY_ATTRIBUTES_H

#include "array/array.h"

/* Gives axis d of `to` the name of axis axes[d] (-1: no name). Does nothing if there are no names,
 * or if the axes are the same. */
cv_status cv_dims_carry(const cv_snapshot *from, const int *axes, caterva_array *to,
                        cv_error *err);

#endif

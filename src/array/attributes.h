/* Names of dimensions, for copies that keep an array's axes. */
#ifndef CV_ARRAY_ATTRIBUTES_H
#define CV_ARRAY_ATTRIBUTES_H

#include "array/array.h"

/* Axis d of `to` takes the name of axis axes[d], -1: none. Does nothing if there are no
 * names, or if the axes are its own. */
cv_status cv_dims_carry(const cv_snapshot *from, const int *axes, caterva_array *to,
                        cv_error *err);

#endif

/* What follows a commit. */
#ifndef CV_ARRAY_COMMIT_H
#define CV_ARRAY_COMMIT_H

#include "array/array.h"

/* CATERVA_EINVAL for what is no share of a file. */
cv_status cv_array_check_compact(int percent, cv_error *err);

/* ---- commit ----
 * What follows a commit. */

/* Reads stand on the frame's current state from now on. Called with the lock. */
void cv_array_renew(caterva_array *array);

#endif

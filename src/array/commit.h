/* What a commit changes of the handle, and compact copies. */
#ifndef CV_ARRAY_COMMIT_H
#define CV_ARRAY_COMMIT_H

#include "array/array.h"

/* CATERVA_EINVAL unless it is 0 to 100. */
cv_status cv_array_check_compact(int percent, cv_error *err);

/* Puts a compact copy in the place of the array's file or directory. The handle keeps other
 * writers out until then; it is of no use afterwards, except to be released. Called with the
 * lock alone. CATERVA_EBUSY for a directory that is open for reading elsewhere. */
cv_status cv_array_compact(caterva_array *array, cv_error *err);

/* Reads stand on the frame's current state from now on. Called with the lock. */
void cv_array_renew(caterva_array *array);

#endif

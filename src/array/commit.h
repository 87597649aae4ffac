/* What follows a commit. */
#ifndef CV_ARRAY_COMMIT_H
#define CV_ARRAY_COMMIT_H

#include "array/array.h"

/* Reads stand on the frame's current state from now on. Called with the lock. */
void cv_array_renew(caterva_array *array);

#endif

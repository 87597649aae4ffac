/* Giving dead space back. */
#ifndef CV_ARRAY_COMPACT_H
#define CV_ARRAY_COMPACT_H

#include "array/array.h"

/* Puts a compact copy in the place of the array, which is open for writing, with nothing
 * pending, and locked alone; the handle is good for nothing but release then. */
cv_status cv_array_compact(caterva_array *array, cv_error *err);

/* CATERVA_EINVAL for what is no share of a file. */
cv_status cv_array_check_compact(int percent, cv_error *err);

/* Compacts a file with nothing pending where so much of it is dead that its options ask
 * for it, before the handle is released. Best effort. */
void cv_array_compact_at_close(caterva_array *array);

#endif

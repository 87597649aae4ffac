/* What an array is. */
#ifndef CV_ARRAY_DESCRIBE_H
#define CV_ARRAY_DESCRIBE_H

#include "array/array.h"

/* The array as the handle sees it; release *out. Any thread; not with the lock. */
cv_status cv_array_describe(caterva_array *array, const cv_description **out, cv_error *err);

/* The handle sees another state than it did: the next description is of that one.
 * Called with the lock alone, or by who has the handle alone. */
void cv_array_changed(caterva_array *array);

/* CATERVA_LAYOUT and so on of the committed state. */
caterva_layout cv_array_layout(const caterva_array *array);
caterva_metalayer_kind cv_array_metalayer(const caterva_array *array);

#endif

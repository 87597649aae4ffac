/* The block cache of a handle. */
#ifndef CV_ARRAY_LIBRARY_H
#define CV_ARRAY_LIBRARY_H

#include "array/array.h"

/* Selects the block cache of the handle; `cache_bytes` is as in caterva_open_options. */
cv_status cv_array_set_cache(caterva_array *array, int64_t cache_bytes, cv_error *err);
cv_status cv_array_check_cache(int64_t cache_bytes, cv_error *err);

#endif

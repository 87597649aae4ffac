/* Room: array. The public side of the block cache. */
#include "array/cache.h"

cv_status cv_array_check_cache(int64_t cache_bytes, cv_error *err)
{
    if (cache_bytes >= -1) return CV_OK;
    return cv_fail(err, CATERVA_EINVAL, -1, "a block cache of %lld bytes",
                   (long long)cache_bytes);
}

cv_status cv_array_set_cache(caterva_array *array, int64_t cache_bytes, cv_error *err)
{
    if (cache_bytes > 0) CV_TRY(cv_cache_create(cache_bytes, &array->own_cache, err));
    if (cache_bytes == 0)
        array->workers.cache = cv_cache_shared();
    else
        array->workers.cache = array->own_cache;
    return CV_OK;
}

caterva_status caterva_cache_set_limit(int64_t bytes, caterva_error *err)
{
    if (bytes < 0)
        return cv_fail(err, CATERVA_EINVAL, -1, "a block cache of %lld bytes",
                       (long long)bytes);
    cv_cache_set_limit(cv_cache_shared(), bytes);
    return CV_OK;
}

caterva_status caterva_cache_describe(const caterva_array *array, caterva_cache_info *out,
                                      caterva_error *err)
{
    CV_TRY(cv_output_check(out, sizeof *out, "cache info", err));
    cv_cache *cache = array ? array->workers.cache : cv_cache_shared();
    caterva_cache_info full = {.limit = 0};
    if (cache) cv_cache_measure(cache, &full);
    cv_output_fill(out, &full, sizeof full);
    return CV_OK;
}

/* Room: array. The one place that knows how structs of other ages are read and filled. */
#include "array/sized.h"

#include <string.h>

static size_t size_of(const void *sized)
{
    size_t given;
    memcpy(&given, sized, sizeof given);
    return given;
}

cv_status cv_output_check(const void *out, size_t size, const char *what, cv_error *err)
{
    enum { MOST = 64 * 1024 };
    if (!out) return cv_fail(err, CATERVA_EINVAL, -1, "the %s is NULL", what);
    size_t given = size_of(out);
    if (given < sizeof given || given > MOST)
        return cv_fail(err, CATERVA_EINVAL, -1,
                       "%s.struct_size is %zu: begin with its _INIT macro", what, given);
    for (size_t i = size; i < given; i++)
        if (((const uint8_t *)out)[i] != 0)
            return cv_fail(err, CATERVA_EINVAL, -1,
                           "byte %zu of the %s is set, which this library does not know: it "
                           "knows %zu bytes",
                           i, what, size);
    return CV_OK;
}

cv_status cv_options_copy(void *out, size_t size, const void *options, const char *what,
                          cv_error *err)
{
    CV_TRY(cv_output_check(options, size, what, err));
    size_t given = size_of(options);
    memset(out, 0, size);
    memcpy(out, options, given < size ? given : size);
    return CV_OK;
}

void cv_output_fill(void *out, const void *full, size_t size)
{
    size_t given = size_of(out), used = given < size ? given : size;
    memcpy((uint8_t *)out + sizeof given, (const uint8_t *)full + sizeof given,
           used - sizeof given);
}

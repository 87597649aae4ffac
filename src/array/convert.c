/* Room: array. Casts between two buffers, with no array behind either. */
#include "array/array.h"
#include "base/arith.h"
#include "engine/items/convert_type.h"
#include "format/dtype.h"

#include <string.h>

static cv_status take_side(const caterva_buffer *given, const char *side, caterva_buffer *out,
                           cv_error *err)
{
    if (!given) return cv_fail(err, CATERVA_EINVAL, -1, "the %s is NULL", side);
    CV_TRY(cv_options_copy(out, sizeof *out, given, "buffer", err));
    if (!out->dtype) return cv_fail(err, CATERVA_EINVAL, -1, "the %s has no dtype", side);
    if (out->shape || out->strides || out->field)
        return cv_fail(err, CATERVA_EINVAL, -1,
                       "the %s has a shape, strides or a field: its items lie one behind the "
                       "other",
                       side);
    return CV_OK;
}

static cv_status check_size(const caterva_buffer *b, const char *side, int64_t n,
                            int64_t item_size, cv_error *err)
{
    int64_t size;
    if (!cv_mul_i64(n, item_size, &size) || (uint64_t)size > b->size)
        return cv_fail(err, CATERVA_ESHORT, -1,
                       "%lld items of %lld bytes do not fit the %zu bytes of the %s",
                       (long long)n, (long long)item_size, b->size, side);
    if (size > 0 && !b->data) return cv_fail(err, CATERVA_EINVAL, -1, "the %s is NULL", side);
    return CV_OK;
}

caterva_status caterva_buffer_convert(const caterva_buffer *src, int64_t n,
                                      const caterva_buffer *dst, caterva_error *err)
{
    caterva_buffer from, to;
    cv_conversion conversion;
    int64_t item_size = 2; /* of bfloat16, which is no description of NumPy's */
    CV_TRY(take_side(src, "source", &from, err));
    CV_TRY(take_side(dst, "destination", &to, err));
    if (n < 0) return cv_fail(err, CATERVA_EINVAL, -1, "%lld items", (long long)n);
    CV_TRY(cv_conversion_init(&conversion, from.dtype, to.dtype, to.casting, err));
    if (!conversion.needed && strcmp(from.dtype, "bfloat16") != 0)
        CV_TRY(cv_dtype_item_size(from.dtype, strlen(from.dtype), &item_size, err));
    int64_t from_size = conversion.needed ? conversion.from.size : item_size;
    int64_t to_size = conversion.needed ? conversion.to.size : item_size;
    CV_TRY(check_size(&from, "source", n, from_size, err));
    CV_TRY(check_size(&to, "destination", n, to_size, err));
    if (conversion.needed)
        cv_convert(&conversion, from.data, to.data, n);
    else if (n > 0)
        memcpy(to.data, from.data, (size_t)(n * item_size));
    return CV_OK;
}

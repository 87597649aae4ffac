/* Room: array. A caller's buffer -> its first item and one stride for each axis of
 * the result, every item inside what the caller says is theirs. */
#include "array/memory.h"

#include "array/array.h"
#include "base/arith.h"

/* The buffer's own axes, before they are laid beside the result's. */
typedef struct axes {
    int ndim;
    int64_t shape[CV_MAX_DIMS];
    int64_t strides[CV_MAX_DIMS];
} axes;

static cv_status read_shape(const caterva_buffer *b, const cv_result *result, axes *out,
                            cv_error *err)
{
    out->ndim = b->shape || b->strides ? b->ndim : result->ndim;
    if (out->ndim < 0 || out->ndim > CV_MAX_DIMS)
        return cv_fail(err, CATERVA_EINVAL, -1, "a buffer of %d dimensions", out->ndim);
    if (!b->shape && out->ndim != result->ndim)
        return cv_fail(err, CATERVA_EINVAL, -1,
                       "the buffer has %d strides, the selection %d dimensions", out->ndim,
                       result->ndim);
    for (int d = 0; d < out->ndim; d++) {
        out->shape[d] = b->shape ? b->shape[d] : result->shape[d];
        if (out->shape[d] < 0)
            return cv_fail(err, CATERVA_EINVAL, -1, "axis %d of the buffer has %lld items", d,
                           (long long)out->shape[d]);
    }
    return CV_OK;
}

/* The given strides, or those of C order; an axis of one item is never stepped. */
static cv_status read_strides(const caterva_buffer *b, int64_t item_size, axes *a,
                              cv_error *err)
{
    int64_t stride = item_size;
    for (int d = a->ndim - 1; d >= 0; d--) {
        a->strides[d] = b->strides ? b->strides[d] : stride;
        if (!cv_mul_i64(stride, cv_max_i64(a->shape[d], 1), &stride))
            return cv_fail(err, CATERVA_EINVAL, -1, "the buffer's size does not fit 64 bits");
    }
    return CV_OK;
}

/* From the lowest item to the end of the highest. */
static cv_status check_size(const caterva_buffer *b, int64_t item_size, const axes *a,
                            cv_error *err)
{
    int64_t span = item_size;
    for (int d = 0; d < a->ndim; d++) {
        if (a->shape[d] == 0) return CV_OK;
        int64_t stride = a->strides[d], reach;
        if (stride == INT64_MIN ||
            !cv_mul_i64(stride < 0 ? -stride : stride, a->shape[d] - 1, &reach) ||
            !cv_add_i64(span, reach, &span))
            return cv_fail(err, CATERVA_EINVAL, -1,
                           "the buffer's stride %lld on axis %d does not fit 64 bits",
                           (long long)stride, d);
    }
    if (!b->data) return cv_fail(err, CATERVA_EINVAL, -1, "the buffer is NULL");
    if ((uint64_t)span > b->size)
        return cv_fail(err, CATERVA_EINVAL, -1,
                       "the items span %lld bytes, the buffer has %zu", (long long)span,
                       b->size);
    return CV_OK;
}

static cv_status read_axes(const caterva_buffer *buffer, const cv_result *result, axes *out,
                           cv_error *err)
{
    if (!buffer) return cv_fail(err, CATERVA_EINVAL, -1, "the buffer is NULL");
    caterva_buffer b;
    CV_TRY(cv_options_copy(&b, sizeof b, buffer, "buffer", err));
    CV_TRY(read_shape(&b, result, out, err));
    CV_TRY(read_strides(&b, result->item_size, out, err));
    return check_size(&b, result->item_size, out, err);
}

cv_status cv_memory_of_destination(const caterva_buffer *buffer, const cv_result *result,
                                   cv_memory *out, cv_error *err)
{
    axes a;
    CV_TRY(read_axes(buffer, result, &a, err));
    if (a.ndim != result->ndim)
        return cv_fail(err, CATERVA_EINVAL, -1,
                       "the buffer has %d dimensions, the selection %d", a.ndim,
                       result->ndim);
    out->data = buffer->data;
    for (int d = 0; d < a.ndim; d++) {
        if (a.shape[d] != result->shape[d])
            return cv_fail(err, CATERVA_EINVAL, -1,
                           "axis %d of the buffer has %lld items, of the selection %lld", d,
                           (long long)a.shape[d], (long long)result->shape[d]);
        if (a.strides[d] == 0 && a.shape[d] > 1)
            return cv_fail(err, CATERVA_EINVAL, -1,
                           "the %lld items of axis %d of the destination lie in one place",
                           (long long)a.shape[d], d);
        out->strides[d] = a.strides[d];
    }
    return CV_OK;
}

cv_status cv_memory_of_source(const caterva_buffer *buffer, const cv_result *result,
                              cv_memory *out, cv_error *err)
{
    axes a;
    CV_TRY(read_axes(buffer, result, &a, err));
    if (a.ndim > result->ndim)
        return cv_fail(err, CATERVA_EINVAL, -1,
                       "the buffer has %d dimensions, the selection %d", a.ndim,
                       result->ndim);
    out->data = buffer->data;
    int missing = result->ndim - a.ndim; /* axes that the buffer does not have */
    for (int d = 0; d < result->ndim; d++) {
        int64_t length = d < missing ? 1 : a.shape[d - missing];
        if (length != 1 && length != result->shape[d])
            return cv_fail(err, CATERVA_EINVAL, -1,
                           "axis %d of the buffer has %lld items, axis %d of the selection "
                           "%lld",
                           d - missing, (long long)length, d, (long long)result->shape[d]);
        out->strides[d] = length == 1 ? 0 : a.strides[d - missing];
    }
    return CV_OK;
}

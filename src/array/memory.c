/* Room: array. A caller's buffer -> its first item and one stride for each axis of
 * the result, every item inside what the caller says is theirs. */
#include "array/memory.h"

#include "array/array.h"
#include "base/arith.h"
#include "base/heap.h"
#include "engine/items/convert.h"
#include "engine/items/copy.h"

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
        return cv_fail(err, CATERVA_ESHAPE, -1,
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
        return cv_fail(err, CATERVA_ESHORT, -1,
                       "the items span %lld bytes, the buffer has %zu", (long long)span,
                       b->size);
    return CV_OK;
}

/* `conversion` is from the array to the buffer, or `to_array` the other way. */
static cv_status init_conversion(const caterva_buffer *b, const cv_result *result,
                                 bool to_array, cv_conversion *out, cv_error *err)
{
    *out = (cv_conversion){.needed = false};
    if (b->field && to_array)
        return cv_fail(err, CATERVA_EINVAL, -1, "a field is read alone, not written");
    if (b->field)
        return cv_conversion_init_field(out, result->dtype, b->field, b->dtype, b->casting,
                                        err);
    if (!b->dtype) return CV_OK;
    if (to_array) return cv_conversion_init(out, b->dtype, result->dtype, b->casting, err);
    return cv_conversion_init(out, result->dtype, b->dtype, b->casting, err);
}

static cv_status take_buffer(const caterva_buffer *buffer, caterva_buffer *out, cv_error *err)
{
    if (!buffer) return cv_fail(err, CATERVA_EINVAL, -1, "the buffer is NULL");
    return cv_options_copy(out, sizeof *out, buffer, "buffer", err);
}

/* No item has a place: strides may be anything (NumPy's are often 0), and nothing is
 * looked at. */
static bool is_empty(axes *a)
{
    bool empty = false;
    for (int d = 0; d < a->ndim; d++) empty = empty || a->shape[d] == 0;
    for (int d = 0; empty && d < a->ndim; d++) a->strides[d] = 1;
    return empty;
}

static cv_status read_axes(const caterva_buffer *b, const cv_result *result,
                           int64_t item_size, axes *out, cv_error *err)
{
    CV_TRY(read_shape(b, result, out, err));
    if (is_empty(out)) return CV_OK;
    CV_TRY(read_strides(b, item_size, out, err));
    return check_size(b, item_size, out, err);
}

cv_status cv_memory_of_destination(const caterva_buffer *buffer, const cv_result *result,
                                   cv_memory *out, cv_error *err)
{
    axes a;
    caterva_buffer b;
    CV_TRY(take_buffer(buffer, &b, err));
    CV_TRY(init_conversion(&b, result, false, &out->conversion, err));
    out->item_size = out->conversion.needed ? out->conversion.to.size : result->item_size;
    CV_TRY(read_axes(&b, result, out->item_size, &a, err));
    if (a.ndim != result->ndim)
        return cv_fail(err, CATERVA_ESHAPE, -1,
                       "the buffer has %d dimensions, the selection %d", a.ndim,
                       result->ndim);
    out->data = b.data;
    for (int d = 0; d < a.ndim; d++) {
        if (a.shape[d] != result->shape[d])
            return cv_fail(err, CATERVA_ESHAPE, -1,
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

/* Lays the buffer's axes beside the result's, the last ones beside each other. */
static cv_status broadcast(const axes *a, const cv_result *result, int64_t *strides,
                           cv_error *err)
{
    if (a->ndim > result->ndim)
        return cv_fail(err, CATERVA_ESHAPE, -1,
                       "the buffer has %d dimensions, the selection %d", a->ndim,
                       result->ndim);
    int missing = result->ndim - a->ndim; /* axes that the buffer does not have */
    for (int d = 0; d < result->ndim; d++) {
        int64_t length = d < missing ? 1 : a->shape[d - missing];
        if (length != 1 && length != result->shape[d])
            return cv_fail(err, CATERVA_ESHAPE, -1,
                           "axis %d of the buffer has %lld items, axis %d of the selection "
                           "%lld",
                           d - missing, (long long)length, d, (long long)result->shape[d]);
        strides[d] = length == 1 ? 0 : a->strides[d - missing];
    }
    return CV_OK;
}

/* Brings what the buffer holds, each item once, into C order and then into the array's
 * dtype. */
static cv_status convert_source(const cv_conversion *c, const cv_result *result, cv_memory *m,
                                void **converted, cv_error *err)
{
    int64_t shape[CV_MAX_DIMS], packed[CV_MAX_DIMS], n = 1;
    for (int d = result->ndim - 1; d >= 0; d--) {
        shape[d] = m->strides[d] == 0 ? 1 : result->shape[d];
        packed[d] = n * c->from.size;
        n *= shape[d]; /* fits: the items are in memory */
    }
    int64_t size, copy_size;
    if (!cv_mul_i64(n, c->from.size, &copy_size) || !cv_mul_i64(n, c->to.size, &size))
        return cv_fail(err, CATERVA_EINVAL, -1, "the buffer's size does not fit 64 bits");
    uint8_t *copy = cv_malloc((size_t)copy_size);
    *converted = cv_malloc((size_t)size);
    if (!copy || !*converted) {
        cv_free(copy);
        return cv_fail_memory(err, (size_t)size, "converting a buffer");
    }
    cv_copy_box(result->ndim, shape, c->from.size, (cv_strided){m->data, m->strides},
                (cv_strided){copy, packed});
    cv_convert(c, copy, *converted, n);
    cv_free(copy);
    m->data = *converted;
    for (int d = 0; d < result->ndim; d++)
        m->strides[d] = shape[d] == 1 ? 0 : packed[d] / c->from.size * c->to.size;
    return CV_OK;
}

cv_status cv_memory_of_source(const caterva_buffer *buffer, const cv_result *result,
                              cv_memory *out, void **converted, cv_error *err)
{
    axes a;
    caterva_buffer b;
    cv_conversion c;
    *converted = NULL;
    CV_TRY(take_buffer(buffer, &b, err));
    CV_TRY(init_conversion(&b, result, true, &c, err));
    CV_TRY(read_axes(&b, result, c.needed ? c.from.size : result->item_size, &a, err));
    *out = (cv_memory){.data = b.data, .item_size = result->item_size};
    CV_TRY(broadcast(&a, result, out->strides, err));
    for (int d = 0; d < result->ndim; d++)
        if (result->shape[d] == 0) return CV_OK;
    return c.needed ? convert_source(&c, result, out, converted, err) : CV_OK;
}

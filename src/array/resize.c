/* Room: array. Changes of shape: arguments checked, the lock taken, the engine
 * called. */
#include "engine/write/resize.h"
#include "array/array.h"
#include "array/describe.h"
#include "base/arith.h"

#include <string.h>

static cv_status check_axis(const cv_grid *grid, int axis, cv_error *err)
{
    if (axis >= 0 && axis < grid->ndim) return CV_OK;
    return cv_fail(err, CATERVA_EINVAL, -1, "axis %d is not in [0, %d)", axis, grid->ndim);
}

static cv_status check_shape(const cv_grid *grid, const int64_t *shape, cv_error *err)
{
    if (grid->ndim > 0 && !shape) return cv_fail(err, CATERVA_EINVAL, -1, "shape is NULL");
    for (int d = 0; d < grid->ndim; d++)
        if (shape[d] < 0)
            return cv_fail(err, CATERVA_EINVAL, -1, "shape[%d] is %lld, less than 0", d,
                           (long long)shape[d]);
    return CV_OK;
}

/* The new data of an insert: `n` items along `axis`, all of the others. */
static cv_status check_slab(const cv_grid *grid, int axis, int64_t n, const void *src,
                            size_t src_size, cv_error *err)
{
    if (n < 0) return cv_fail(err, CATERVA_EINVAL, -1, "%lld items", (long long)n);
    int64_t needed = grid->item_size;
    bool fits = true;
    for (int d = 0; d < grid->ndim; d++)
        fits = cv_mul_i64(needed, d == axis ? n : grid->shape[d], &needed) && fits;
    if (!fits) return cv_fail(err, CATERVA_EINVAL, -1, "the size does not fit 64 bits");
    if (src && (uint64_t)needed > src_size)
        return cv_fail(err, CATERVA_EINVAL, -1,
                       "%lld items of axis %d have %lld bytes, src %zu", (long long)n, axis,
                       (long long)needed, src_size);
    return CV_OK;
}

/* A change that failed after its first step leaves something that nobody asked
 * for; checks come before it. */
static cv_status finish(caterva_array *array, cv_status status)
{
    if (status != CV_OK) array->pending->broken = true;
    cv_array_changed(array);
    return status;
}

static cv_status resize(caterva_array *array, const int64_t *shape, cv_error *err)
{
    const cv_snapshot *state = cv_array_state(array);
    CV_TRY(cv_pending_check(array->pending, err));
    CV_TRY(check_shape(&state->grid, shape, err));
    cv_grid grid;
    CV_TRY(cv_grid_init(&grid, state->meta.ndim, shape, state->meta.chunk_shape,
                        state->meta.block_shape, state->grid.item_size, err));
    return finish(array, cv_resize(array->pending, shape, err));
}

caterva_status caterva_resize(caterva_array *array, const int64_t *shape, caterva_error *err)
{
    CV_TRY(cv_array_check_encodes(array, err));
    cv_array_lock_alone(array);
    cv_status status = resize(array, shape, err);
    return cv_array_finish(array, status);
}

static cv_status insert(caterva_array *array, int axis, int64_t at, int64_t n,
                        const void *src, size_t src_size, cv_error *err)
{
    const cv_grid *grid = &cv_array_state(array)->grid;
    CV_TRY(cv_pending_check(array->pending, err));
    CV_TRY(check_axis(grid, axis, err));
    if (at < 0 || at > grid->shape[axis])
        return cv_fail(err, CATERVA_EINVAL, -1,
                       "position %lld on axis %d is not in [0, %lld]", (long long)at, axis,
                       (long long)grid->shape[axis]);
    CV_TRY(check_slab(grid, axis, n, src, src_size, err));
    return finish(array, cv_insert(array->pending, axis, at, n, src, err));
}

caterva_status caterva_insert(caterva_array *array, int axis, int64_t at, int64_t n,
                              const void *src, size_t src_size, caterva_error *err)
{
    CV_TRY(cv_array_check_encodes(array, err));
    cv_array_lock_alone(array);
    cv_status status = insert(array, axis, at, n, src, src_size, err);
    return cv_array_finish(array, status);
}

caterva_status caterva_append(caterva_array *array, int axis, int64_t n, const void *src,
                              size_t src_size, caterva_error *err)
{
    CV_TRY(cv_array_check_encodes(array, err));
    if (!src && n != 0) return cv_fail(err, CATERVA_EINVAL, -1, "src is NULL");
    cv_array_lock_alone(array);
    const cv_grid *grid = &cv_array_state(array)->grid;
    cv_status status = check_axis(grid, axis, err);
    if (status == CV_OK)
        status = insert(array, axis, grid->shape[axis], n, src, src_size, err);
    return cv_array_finish(array, status);
}

static cv_status remove_items(caterva_array *array, int axis, int64_t start, int64_t stop,
                              cv_error *err)
{
    const cv_grid *grid = &cv_array_state(array)->grid;
    CV_TRY(cv_pending_check(array->pending, err));
    CV_TRY(check_axis(grid, axis, err));
    if (start < 0 || stop > grid->shape[axis] || start > stop)
        return cv_fail(err, CATERVA_EINVAL, -1,
                       "items [%lld, %lld) of axis %d do not lie in [0, %lld)",
                       (long long)start, (long long)stop, axis, (long long)grid->shape[axis]);
    return finish(array, cv_remove(array->pending, axis, start, stop, err));
}

caterva_status caterva_remove(caterva_array *array, int axis, int64_t start, int64_t stop,
                              caterva_error *err)
{
    CV_TRY(cv_array_check_encodes(array, err));
    cv_array_lock_alone(array);
    cv_status status = remove_items(array, axis, start, stop, err);
    return cv_array_finish(array, status);
}

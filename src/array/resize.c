/* Room: array. Changes of shape: checks arguments, takes the lock, calls the engine. */
#include "engine/write/resize.h"
#include "array/array.h"
#include "array/read_write.h"
#include "base/arith.h"
#include "base/heap.h"

static cv_status check_axis(const cv_grid *grid, int axis, cv_error *err)
{
    if (axis >= 0 && axis < grid->ndim) return CV_OK;
    return cv_fail(err, CATERVA_ERANGE, -1, "axis %d is not in [0, %d)", axis, grid->ndim);
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

/* What an insertion adds: `n` indices of `axis`, from `at` on, and all items of the other axes. */
typedef struct slab {
    cv_grid grid; /* only ndim, shape and item_size are used */
    int axis;
    int64_t at;
    int64_t n;
} slab;

static cv_status check_slab(slab *s, cv_error *err)
{
    if (s->n < 0)
        return cv_fail(err, CATERVA_EINVAL, -1, "n is %lld, less than 0", (long long)s->n);
    s->grid.shape[s->axis] = s->n;
    int64_t needed = s->grid.item_size;
    bool fits = true;
    for (int d = 0; d < s->grid.ndim; d++)
        fits = cv_mul_i64(needed, s->grid.shape[d], &needed) && fits;
    return fits ? CV_OK
                : cv_fail(err, CATERVA_EINVAL, -1,
                          "the size of the inserted items does not fit 64 bits");
}

/* Ends a change of shape. A change that fails half-way leaves an undefined state, which must be
 * rolled back. So callers make all checks before the change begins. */
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
    CV_TRY(cv_array_refuse(array, "a change of shape", err));
    cv_array_lock_alone(array);
    cv_status status = resize(array, shape, err);
    return cv_array_finish(array, status);
}

static cv_status insert_from(caterva_array *array, const slab *s, const caterva_buffer *src,
                             cv_error *err)
{
    cv_result result = {s->grid.ndim, s->grid.shape, s->grid.item_size, array->type.dtype};
    cv_memory memory;
    void *converted;
    cv_status status = cv_memory_of_source(src, &result, &memory, &converted, err);
    const cv_strided from = {memory.data, memory.strides};
    if (status == CV_OK)
        status = finish(array, cv_insert(array->pending, s->axis, s->at, s->n, &from, err));
    cv_free(converted);
    return status;
}

static cv_status insert(caterva_array *array, slab *s, const caterva_buffer *src,
                        cv_error *err)
{
    s->grid = cv_array_state(array)->grid;
    CV_TRY(cv_pending_check(array->pending, err));
    CV_TRY(check_axis(&s->grid, s->axis, err));
    int64_t length = s->grid.shape[s->axis];
    if (s->at < 0 || s->at > length)
        return cv_fail(err, CATERVA_ERANGE, -1,
                       "position %lld on axis %d is not in [0, %lld]", (long long)s->at,
                       s->axis, (long long)length);
    CV_TRY(check_slab(s, err));
    if (src) return insert_from(array, s, src, err);
    return finish(array, cv_insert(array->pending, s->axis, s->at, s->n, NULL, err));
}

caterva_status caterva_insert(caterva_array *array, int axis, int64_t at, int64_t n,
                              const caterva_buffer *src, caterva_error *err)
{
    CV_TRY(cv_array_check_encodes(array, err));
    CV_TRY(cv_array_refuse(array, "a change of shape", err));
    slab s = {.axis = axis, .at = at, .n = n};
    cv_array_lock_alone(array);
    cv_status status = insert(array, &s, src, err);
    return cv_array_finish(array, status);
}

caterva_status caterva_append(caterva_array *array, int axis, int64_t n,
                              const caterva_buffer *src, caterva_error *err)
{
    CV_TRY(cv_array_check_encodes(array, err));
    CV_TRY(cv_array_refuse(array, "a change of shape", err));
    if (!src) return cv_fail(err, CATERVA_EINVAL, -1, "src is NULL");
    slab s = {.axis = axis, .n = n};
    cv_array_lock_alone(array);
    const cv_grid *grid = &cv_array_state(array)->grid;
    cv_status status = check_axis(grid, axis, err);
    if (status == CV_OK) {
        s.at = grid->shape[axis];
        status = insert(array, &s, src, err);
    }
    return cv_array_finish(array, status);
}

static cv_status remove_items(caterva_array *array, int axis, int64_t start, int64_t stop,
                              cv_error *err)
{
    const cv_grid *grid = &cv_array_state(array)->grid;
    CV_TRY(cv_pending_check(array->pending, err));
    CV_TRY(check_axis(grid, axis, err));
    if (start < 0 || stop > grid->shape[axis] || start > stop)
        return cv_fail(err, CATERVA_ERANGE, -1,
                       "items [%lld, %lld) of axis %d do not lie in [0, %lld)",
                       (long long)start, (long long)stop, axis, (long long)grid->shape[axis]);
    return finish(array, cv_remove(array->pending, axis, start, stop, err));
}

caterva_status caterva_remove(caterva_array *array, int axis, int64_t start, int64_t stop,
                              caterva_error *err)
{
    CV_TRY(cv_array_check_encodes(array, err));
    CV_TRY(cv_array_refuse(array, "a change of shape", err));
    cv_array_lock_alone(array);
    cv_status status = remove_items(array, axis, start, stop, err);
    return cv_array_finish(array, status);
}

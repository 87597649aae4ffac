/* Room: array. Selections in and out: arguments checked, locks taken, the engine
 * called. What is a box in the end goes the way of boxes. */
#include "array/selection.h"

#include "base/heap.h"
#include "engine/plan/select_plan.h"
#include "engine/read/read.h"
#include "engine/write/write.h"

#include <string.h>

cv_status cv_array_selection(const cv_grid *grid, const caterva_selection *words,
                             cv_selection *out, cv_error *err)
{
    if (!words) return cv_selection_init(out, grid, NULL, err);
    caterva_selection copy;
    CV_TRY(cv_options_copy(&copy, sizeof copy, words, "selection", err));
    return cv_selection_init(out, grid, &copy, err);
}

cv_result cv_result_of(const cv_selection *selection, const char *dtype)
{
    return (cv_result){selection->ndim, selection->shape, selection->grid->item_size, dtype};
}

/* The plan of [start, stop) for a buffer that is not in C order. */
static cv_status plan_box(const cv_select_plan *plan, const int64_t *start,
                          const int64_t *stop, cv_plan *out, cv_error *err)
{
    CV_TRY(cv_plan_box(plan->grid, start, stop, out, err));
    memcpy(out->buffer_strides, plan->strides, sizeof out->buffer_strides);
    return CV_OK;
}

caterva_status caterva_selection_shape(caterva_array *array,
                                       const caterva_selection *selection, int64_t *shape,
                                       int *ndim, caterva_error *err)
{
    CV_TRY(cv_array_check(array, err));
    if (!shape || !ndim) return cv_fail(err, CATERVA_EINVAL, -1, "shape or ndim is NULL");
    cv_array_lock_shared(array);
    cv_selection s;
    cv_status status = cv_array_selection(&cv_array_state(array)->grid, selection, &s, err);
    cv_array_unlock(array);
    if (status != CV_OK) return status;
    *ndim = s.ndim;
    memcpy(shape, s.shape, (size_t)s.ndim * sizeof shape[0]);
    return CV_OK;
}

static cv_status read_planned(caterva_array *array, const cv_source *source,
                              const cv_select_plan *plan, uint8_t *data, cv_error *err)
{
    int64_t start[CV_MAX_DIMS], stop[CV_MAX_DIMS];
    if (!cv_select_plan_is_box(plan, start, stop))
        return cv_select_read(source, plan, NULL, data, err);
    cv_plan box;
    CV_TRY(plan_box(plan, start, stop, &box, err));
    CV_TRY(cv_read_box(source, &box, data + plan->buffer_pos, err));
    cv_read_ahead_note(&array->ahead, &array->prefetch, source, &box);
    return CV_OK;
}

cv_selection cv_array_converted(const cv_selection *selection, int64_t item_size,
                                cv_grid *grid)
{
    int64_t from = selection->grid->item_size;
    cv_selection converted = *selection;
    *grid = *selection->grid;
    grid->item_size = (int32_t)item_size;
    for (int d = 0; d < grid->ndim; d++)
        grid->item_strides[d] = grid->item_strides[d] / from * item_size;
    grid->block_bytes = grid->block_bytes / from * item_size;
    converted.grid = grid;
    return converted;
}

static cv_status read_converted(const cv_source *source, const cv_selection *selection,
                                const cv_memory *dst, cv_error *err)
{
    cv_grid grid;
    cv_selection converted = cv_array_converted(selection, dst->item_size, &grid);
    cv_select_plan plan;
    cv_status status =
        cv_select_plan_init(&plan, &converted, dst->strides, source->watch, err);
    if (status == CV_OK)
        status = cv_select_read(source, &plan, &dst->conversion, dst->data, err);
    cv_select_plan_free(&plan);
    return status;
}

cv_status cv_array_read_selected(caterva_array *array, const cv_source *source,
                                 const cv_selection *selection, const cv_memory *dst,
                                 cv_error *err)
{
    if (selection->n_items == 0) return CV_OK;
    if (dst->conversion.needed) return read_converted(source, selection, dst, err);
    cv_select_plan plan;
    cv_status status =
        cv_select_plan_init(&plan, selection, dst->strides, source->watch, err);
    if (status == CV_OK) status = read_planned(array, source, &plan, dst->data, err);
    cv_select_plan_free(&plan);
    return status;
}

static cv_status read_selection(caterva_array *array, const caterva_selection *words,
                                const caterva_buffer *dst, cv_error *err)
{
    cv_source source = cv_array_source(array);
    cv_selection selection;
    cv_memory memory;
    CV_TRY(cv_array_selection(&source.snapshot->grid, words, &selection, err));
    cv_result result = cv_result_of(&selection, array->type.dtype);
    CV_TRY(cv_memory_of_destination(dst, &result, &memory, err));
    return cv_array_read_selected(array, &source, &selection, &memory, err);
}

caterva_status caterva_read_selection(caterva_array *array,
                                      const caterva_selection *selection,
                                      const caterva_buffer *dst, caterva_error *err)
{
    CV_TRY(cv_array_check(array, err));
    cv_array_lock_shared(array);
    cv_status status = read_selection(array, selection, dst, err);
    return cv_array_finish(array, status);
}

static cv_status write_planned(cv_pending *pending, const cv_select_plan *plan,
                               const uint8_t *data, cv_error *err)
{
    int64_t start[CV_MAX_DIMS], stop[CV_MAX_DIMS];
    if (!cv_select_plan_is_box(plan, start, stop))
        return cv_select_write(pending, plan, data, err);
    cv_plan box;
    CV_TRY(plan_box(plan, start, stop, &box, err));
    return cv_write_box(pending, &box, data + plan->buffer_pos, err);
}

cv_status cv_array_write_selected(cv_pending *pending, const cv_selection *selection,
                                  const cv_memory *src, cv_error *err)
{
    if (selection->n_items == 0) return CV_OK;
    cv_select_plan plan;
    cv_status status =
        cv_select_plan_init(&plan, selection, src->strides, pending->watch, err);
    if (status == CV_OK) status = write_planned(pending, &plan, src->data, err);
    cv_select_plan_free(&plan);
    return status;
}

static cv_status write_selection(caterva_array *array, const caterva_selection *words,
                                 const caterva_buffer *src, cv_error *err)
{
    cv_selection selection;
    cv_memory memory;
    void *converted;
    CV_TRY(cv_pending_check(array->pending, err));
    CV_TRY(cv_array_selection(&cv_array_state(array)->grid, words, &selection, err));
    cv_result result = cv_result_of(&selection, array->type.dtype);
    cv_status status = cv_memory_of_source(src, &result, &memory, &converted, err);
    if (status == CV_OK) status = cv_part_mark_selection(array->part, &selection, err);
    if (status == CV_OK)
        status = cv_array_write_selected(array->pending, &selection, &memory, err);
    cv_free(converted);
    return status;
}

caterva_status caterva_write_selection(caterva_array *array,
                                       const caterva_selection *selection,
                                       const caterva_buffer *src, caterva_error *err)
{
    CV_TRY(cv_array_check_encodes(array, err));
    cv_array_lock_alone(array);
    cv_status status = write_selection(array, selection, src, err);
    return cv_array_finish(array, status);
}

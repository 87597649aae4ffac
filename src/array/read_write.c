/* Room: array. Boxes in and out: arguments checked, locks taken, the engine
 * called. */
#include "array/array.h"
#include "array/describe.h"
#include "engine/jobs/transfer.h"
#include "engine/write/flush.h"
#include "engine/write/write.h"

static cv_status plan_box(const cv_grid *grid, const int64_t *start, const int64_t *stop,
                          cv_plan *plan, cv_error *err)
{
    if (grid->ndim > 0 && (!start || !stop))
        return cv_fail(err, CATERVA_EINVAL, -1, "start or stop is NULL");
    return cv_plan_box(grid, start, stop, plan, err);
}

static cv_status plan_transfer(const cv_grid *grid, const int64_t *start, const int64_t *stop,
                               const void *buffer, size_t buffer_size, cv_plan *plan,
                               cv_error *err)
{
    CV_TRY(plan_box(grid, start, stop, plan, err));
    uint64_t needed = (uint64_t)(plan->n_items * grid->item_size);
    if (needed > 0 && !buffer) return cv_fail(err, CATERVA_EINVAL, -1, "the buffer is NULL");
    if (needed > buffer_size)
        return cv_fail(err, CATERVA_ESHORT, -1, "the box has %llu bytes, the buffer %zu",
                       (unsigned long long)needed, buffer_size);
    return CV_OK;
}

caterva_status caterva_read(caterva_array *array, const int64_t *start, const int64_t *stop,
                            void *dst, size_t dst_size, caterva_error *err)
{
    CV_TRY(cv_array_check(array, err));
    cv_array_lock_shared(array);
    cv_source source = cv_array_source(array);
    cv_plan plan;
    cv_status status =
        plan_transfer(&source.snapshot->grid, start, stop, dst, dst_size, &plan, err);
    if (status == CV_OK) status = cv_read_box(&source, &plan, dst, err);
    if (status == CV_OK) cv_read_ahead_note(&array->ahead, &array->prefetch, &source, &plan);
    return cv_array_finish(array, status);
}

caterva_status caterva_prefetch(caterva_array *array, const int64_t *start,
                                const int64_t *stop, caterva_error *err)
{
    CV_TRY(cv_array_check(array, err));
    cv_array_lock_shared(array);
    cv_source source = cv_array_source(array);
    cv_plan plan;
    cv_status status = plan_box(&source.snapshot->grid, start, stop, &plan, err);
    if (status == CV_OK) cv_prefetch_add(&array->prefetch, &source, &plan, false);
    return cv_array_finish(array, status);
}

caterva_status caterva_write(caterva_array *array, const int64_t *start, const int64_t *stop,
                             const void *src, size_t src_size, caterva_error *err)
{
    CV_TRY(cv_array_check_encodes(array, err));
    cv_array_lock_alone(array);
    cv_plan plan;
    cv_status status = cv_pending_check(array->pending, err);
    if (status == CV_OK)
        status = plan_transfer(&cv_array_state(array)->grid, start, stop, src, src_size,
                               &plan, err);
    if (status == CV_OK) status = cv_part_mark_box(array->part, &plan, err);
    if (status == CV_OK) status = cv_write_box(array->pending, &plan, src, err);
    return cv_array_finish(array, status);
}

caterva_status caterva_create_from_memory(const char *url,
                                          const caterva_create_options *options,
                                          const void *src, size_t src_size,
                                          caterva_array **out, caterva_error *err)
{
    static const int64_t origin[CATERVA_MAX_DIMS] = {0};
    CV_TRY(caterva_create(url, options, out, err));
    cv_status status =
        caterva_write(*out, origin, cv_array_state(*out)->grid.shape, src, src_size, err);
    if (status != CV_OK) {
        cv_array_free(*out);
        *out = NULL;
    }
    return status;
}

/* A frame of plain items becomes an array. */
static cv_status plain_to_frame(caterva_array *array, void **frame, size_t *size,
                                cv_error *err)
{
    caterva_array *copy;
    CV_TRY(caterva_copy(array, "mem:", NULL, &copy, err));
    cv_status status = caterva_frame_copy(copy, frame, size, err);
    cv_array_free(copy);
    return status;
}

caterva_status caterva_frame_copy(caterva_array *array, void **frame, size_t *size,
                                  caterva_error *err)
{
    CV_TRY(cv_array_check(array, err));
    if (!frame || !size) return cv_fail(err, CATERVA_EINVAL, -1, "frame or size is NULL");
    if (cv_array_metalayer(array) == CATERVA_METALAYER_NONE)
        return plain_to_frame(array, frame, size, err);
    cv_array_lock_alone(array); /* dirty blocks are put into the transaction */
    cv_status status = array->pending ? cv_pending_flush(array->pending, err) : CV_OK;
    cv_source source = cv_array_source(array);
    if (status == CV_OK) status = cv_transfer_to_memory(&source, frame, size, err);
    return cv_array_finish(array, status);
}

static cv_status plain_to_pieces(caterva_array *array, cv_take_fn take, void *context,
                                 cv_error *err)
{
    caterva_array *copy;
    CV_TRY(caterva_copy(array, "mem:", NULL, &copy, err));
    cv_status status = cv_hand_over(copy->frame, copy->snapshot, take, context, err);
    cv_array_free(copy);
    return status;
}

caterva_status caterva_frame_pieces(caterva_array *array,
                                    int (*take)(void *context, const void *piece, size_t size,
                                                uint64_t total),
                                    void *context, caterva_error *err)
{
    CV_TRY(cv_array_check(array, err));
    if (!take) return cv_fail(err, CATERVA_EINVAL, -1, "take is NULL");
    if (cv_array_metalayer(array) == CATERVA_METALAYER_NONE)
        return plain_to_pieces(array, take, context, err);
    cv_array_lock_alone(array);
    cv_status status = array->pending ? cv_pending_flush(array->pending, err) : CV_OK;
    cv_source source = cv_array_source(array);
    bool as_it_lies = !source.pending && !array->snapshot->header.sparse;
    if (status == CV_OK)
        status = as_it_lies ? cv_hand_over(array->frame, array->snapshot, take, context, err)
                            : cv_transfer_pieces(&source, take, context, err);
    return cv_array_finish(array, status);
}

/* Room: array. Reads that go on after damage: arguments checked, the lock taken, the
 * engine called. Boxes only: what a damaged chunk takes along is then a box, too. */
#include "array/selection.h"
#include "base/heap.h"
#include "engine/items/copy.h"
#include "engine/plan/select_axes.h"
#include "engine/plan/select_plan.h"
#include "engine/read/read.h"

#include <string.h>

typedef struct skipping {
    caterva_array *array;
    cv_source source;
    cv_selection selection;
    cv_memory memory;
    cv_skip skip;
} skipping;

static cv_status read_into(skipping *s, const int64_t *strides, uint8_t *dst, cv_error *err)
{
    int64_t start[CV_MAX_DIMS], stop[CV_MAX_DIMS];
    cv_select_plan plan;
    cv_plan box;
    CV_TRY(cv_select_plan_init(&plan, &s->selection, strides, err));
    cv_status status;
    if (cv_select_plan_is_box(&plan, start, stop))
        status = cv_plan_box(plan.grid, start, stop, &box, err);
    else
        status = cv_fail(err, CATERVA_EUNSUPPORTED, -1,
                         "only boxes are read around damage: no steps, lists, points, masks");
    if (status == CV_OK) {
        memcpy(box.buffer_strides, plan.strides, sizeof box.buffer_strides);
        status = cv_read_box_skipping(&s->source, &box, dst + plan.buffer_pos, &s->skip, err);
    }
    if (status == CV_OK)
        cv_read_ahead_note(&s->array->ahead, &s->array->prefetch, &s->source, &box);
    cv_select_plan_free(&plan);
    return status;
}

static void pack(const cv_selection *selection, int64_t item_size, int64_t *strides)
{
    for (int d = selection->ndim - 1; d >= 0; d--) {
        strides[d] = item_size;
        item_size *= selection->shape[d];
    }
}

/* Items of the array beside items of the destination, and then to their places. */
static cv_status read_converted(skipping *s, cv_error *err)
{
    const cv_selection *selection = &s->selection;
    const cv_conversion *conversion = &s->memory.conversion;
    int64_t strides[CV_MAX_DIMS], item_size = selection->grid->item_size;
    size_t size = (size_t)(selection->n_items * item_size);
    size_t converted_size = (size_t)(selection->n_items * s->memory.item_size);
    uint8_t *items = cv_malloc(size), *converted = cv_malloc(converted_size);
    cv_status status = CV_OK;
    if (!items || !converted)
        status = cv_fail_memory(err, size + converted_size, "items to convert");
    pack(selection, item_size, strides);
    if (status == CV_OK) status = read_into(s, strides, items, err);
    if (status == CV_OK) {
        cv_convert(conversion, items, converted, selection->n_items);
        pack(selection, s->memory.item_size, strides);
        cv_copy_box(selection->ndim, selection->shape, s->memory.item_size,
                    (cv_strided){converted, strides},
                    (cv_strided){s->memory.data, s->memory.strides});
    }
    cv_free(items);
    cv_free(converted);
    return status;
}

static cv_status read_skipping(skipping *s, const caterva_selection *words,
                               const caterva_buffer *dst, cv_error *err)
{
    s->source = cv_array_source(s->array);
    CV_TRY(cv_array_selection(&s->source.snapshot->grid, words, &s->selection, err));
    cv_result result = cv_result_of(&s->selection, s->array->type.dtype);
    CV_TRY(cv_memory_of_destination(dst, &result, &s->memory, err));
    if (s->selection.n_items == 0) return CV_OK;
    if (s->memory.conversion.needed) return read_converted(s, err);
    return read_into(s, s->memory.strides, s->memory.data, err);
}

caterva_status caterva_read_skipping(caterva_array *array, const caterva_selection *selection,
                                     const caterva_buffer *dst,
                                     const caterva_skip_options *options, caterva_error *err)
{
    CV_TRY(cv_array_check(array, err));
    caterva_skip_options o;
    CV_TRY(cv_options_copy(&o, sizeof o, options, "skip options", err));
    if (!o.on_damage)
        return cv_fail(err, CATERVA_EINVAL, -1, "on_damage is NULL: who would notice?");
    skipping s = {.array = array};
    s.skip = (cv_skip){o.fill ? o.fill : array->fill, {o.on_damage, o.context}};
    cv_array_lock_shared(array);
    cv_status status = read_skipping(&s, selection, dst, err);
    return cv_array_finish(array, status);
}

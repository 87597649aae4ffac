/* Room: array. Reads that go on after damage: arguments checked, the lock taken, the
 * engine called. */
#include "array/selection.h"
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

static cv_status read_planned(skipping *s, const cv_select_plan *plan, cv_error *err)
{
    const cv_conversion *conversion =
        s->memory.conversion.needed ? &s->memory.conversion : NULL;
    int64_t start[CV_MAX_DIMS], stop[CV_MAX_DIMS];
    cv_plan box;
    if (conversion || !cv_select_plan_is_box(plan, start, stop))
        return cv_select_read_skipping(&s->source, plan, conversion, s->memory.data, &s->skip,
                                       err);
    CV_TRY(cv_plan_box(plan->grid, start, stop, &box, err));
    memcpy(box.buffer_strides, plan->strides, sizeof box.buffer_strides);
    CV_TRY(cv_read_box_skipping(&s->source, &box, s->memory.data + plan->buffer_pos, &s->skip,
                                err));
    cv_read_ahead_note(&s->array->ahead, &s->array->prefetch, &s->source, &box);
    return CV_OK;
}

static cv_status read_selected(skipping *s, cv_error *err)
{
    cv_grid grid;
    cv_select_plan plan;
    cv_selection selection = s->selection;
    if (s->memory.conversion.needed)
        selection = cv_array_converted(&s->selection, s->memory.item_size, &grid);
    cv_status status =
        cv_select_plan_init(&plan, &selection, s->memory.strides, s->source.watch, err);
    if (status == CV_OK) status = read_planned(s, &plan, err);
    cv_select_plan_free(&plan);
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
    return read_selected(s, err);
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

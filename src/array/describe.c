/* Room: array. What an array is, as callers ask for it: the whole, names and contents,
 * the space it takes. */
#include "array/describe.h"
#include "array/array.h"
#include "engine/jobs/measure.h"
#include "engine/jobs/verify.h"

#include <string.h>

/* ---- Descriptions ------------------------------------------------------- */

static cv_status create(caterva_array *array, cv_description **out, cv_error *err)
{
    cv_described from = {
        .state = cv_array_state(array),
        .committed = array->snapshot,
        .type = &array->type,
        .fill = array->fill,
        .in_memory = array->frame->store->in_memory,
    };
    return cv_description_create(&from, out, err);
}

/* Made at once, so that nobody who asks has to wait for a long write; without memory
 * when somebody asks. */
void cv_array_changed(caterva_array *array)
{
    cv_description *fresh = NULL;
    (void)create(array, &fresh, NULL);
    cv_descriptions_turn(&array->descriptions, fresh);
}

static cv_status offer(caterva_array *array, cv_error *err)
{
    cv_description *fresh;
    cv_array_lock_shared(array);
    cv_status status = create(array, &fresh, err);
    if (status == CV_OK) cv_descriptions_offer(&array->descriptions, fresh);
    cv_array_unlock(array);
    return status;
}

static cv_status find(caterva_array *array, bool lend, const cv_description **out,
                      cv_error *err)
{
    *out = cv_descriptions_latest(&array->descriptions, lend);
    while (!*out) {
        CV_TRY(offer(array, err));
        *out = cv_descriptions_latest(&array->descriptions, lend);
    }
    return CV_OK;
}

cv_status cv_array_describe(caterva_array *array, const cv_description **out, cv_error *err)
{
    return find(array, false, out, err);
}

/* What stays with the handle needs no reference. */
static cv_status borrow(const caterva_array *array, const caterva_info **out, cv_error *err)
{
    const cv_description *d;
    caterva_array *own = (caterva_array *)(uintptr_t)array; /* only what is kept changes */
    CV_TRY(find(own, true, &d, err));
    *out = &d->info;
    cv_description_release(d);
    return CV_OK;
}

caterva_layout cv_array_layout(const caterva_array *array)
{
    return array->snapshot->header.sparse ? CATERVA_LAYOUT_SPARSE : CATERVA_LAYOUT_CONTIGUOUS;
}

caterva_metalayer_kind cv_array_metalayer(const caterva_array *array)
{
    return cv_metalayer_kind(&array->snapshot->meta);
}

const caterva_info *caterva_describe(const caterva_array *array)
{
    const caterva_info *info;
    return array && borrow(array, &info, NULL) == CV_OK ? info : NULL;
}

caterva_status caterva_info_get(caterva_array *array, const caterva_info **out,
                                caterva_error *err)
{
    CV_TRY(cv_array_check(array, err));
    if (!out) return cv_fail(err, CATERVA_EINVAL, -1, "out is NULL");
    const cv_description *d;
    CV_TRY(cv_array_describe(array, &d, err));
    *out = &d->info;
    return CV_OK;
}

void caterva_info_release(const caterva_info *info)
{
    cv_description_release((const cv_description *)(const void *)info); /* its first member */
}

const char *caterva_attr_name(const caterva_array *array, int i)
{
    const caterva_info *info = caterva_describe(array);
    return info && i >= 0 && i < info->n_attributes ? info->attribute_names[i] : NULL;
}

const char *caterva_metalayer_name(const caterva_array *array, int i)
{
    const caterva_info *info = caterva_describe(array);
    return info && i >= 0 && i < info->n_metalayers ? info->metalayers[i].name : NULL;
}

caterva_status caterva_metalayer_get(const caterva_array *array, const char *name,
                                     const void **content, size_t *size, caterva_error *err)
{
    const caterva_info *info;
    CV_TRY(cv_array_check(array, err));
    if (!name || !content || !size)
        return cv_fail(err, CATERVA_EINVAL, -1, "name, content or size is NULL");
    CV_TRY(borrow(array, &info, err));
    for (int i = 0; i < info->n_metalayers; i++) {
        if (strcmp(info->metalayers[i].name, name) != 0) continue;
        *content = info->metalayers[i].content;
        *size = info->metalayers[i].size;
        return CV_OK;
    }
    return cv_fail(err, CATERVA_ENOTFOUND, -1, "no metalayer \"%.100s\"", name);
}

/* ---- Space --------------------------------------------------------------- */

caterva_status caterva_measure(caterva_array *array, caterva_space *out, caterva_error *err)
{
    CV_TRY(cv_array_check(array, err));
    CV_TRY(cv_output_check(out, sizeof *out, "space", err));
    caterva_space full;
    cv_array_lock_shared(array);
    cv_status status = cv_measure(array->frame, array->snapshot, array->watch, &full, err);
    if (status == CV_OK) cv_output_fill(out, &full, sizeof full);
    return cv_array_finish(array, status);
}

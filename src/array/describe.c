/* Room: array. What an array is, as callers ask for it: the whole, names and contents,
 * the space it takes. */
#include "array/describe.h"

#include "engine/read/measure.h"
#include "store/file.h"

#include <caterva_upkeep.h>
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
        .path = array->path,
        .offset = cv_store_file_offset(array->frame->store),
        .mode = array->pending ? CATERVA_MODE_WRITE : CATERVA_MODE_READ,
        .durability = array->frame->durability,
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

cv_status cv_array_describe(caterva_array *array, const cv_description **out, cv_error *err)
{
    *out = cv_descriptions_latest(&array->descriptions);
    while (!*out) {
        CV_TRY(offer(array, err));
        *out = cv_descriptions_latest(&array->descriptions);
    }
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

int caterva_has_pending(caterva_array *array)
{
    if (!array || !array->pending) return 0;
    cv_array_lock_shared(array);
    bool any = cv_pending_any(array->pending);
    cv_array_unlock(array);
    return any;
}

const caterva_metalayer *caterva_info_metalayer(const caterva_info *info, const char *name)
{
    for (int i = 0; info && name && i < info->n_metalayers; i++)
        if (strcmp(info->metalayers[i].name, name) == 0) return &info->metalayers[i];
    return NULL;
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

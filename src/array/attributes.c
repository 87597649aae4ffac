/* Room: array. Attributes and fixed metalayers, by name. The attribute that this
 * library keeps for itself is not shown and cannot be set. */
#include "array/array.h"
#include "array/describe.h"
#include "base/heap.h"
#include "format/array_meta.h"
#include "frame/attributes.h"

#include <stdio.h>
#include <string.h>

static cv_status find(const cv_snapshot *snapshot, const char *name, const cv_attribute **out,
                      cv_error *err)
{
    const cv_attributes *all;
    CV_TRY(cv_snapshot_attributes(snapshot, &all, err));
    return cv_attributes_find(all, name, out, err);
}

static cv_status get_attribute(const caterva_array *array, const char *name, cv_buffer *value,
                               cv_error *err)
{
    const cv_attribute *attribute;
    CV_TRY(find(cv_array_state(array), name, &attribute, err));
    return cv_attribute_value(attribute, value, array->watch, err);
}

caterva_status caterva_attr_get(caterva_array *array, const char *name, void **value,
                                size_t *size, caterva_error *err)
{
    CV_TRY(cv_array_check(array, err));
    if (!name || !value || !size)
        return cv_fail(err, CATERVA_EINVAL, -1, "name, value or size is NULL");
    cv_buffer buffer = {0};
    cv_array_lock_shared(array);
    cv_status status = cv_array_finish(array, get_attribute(array, name, &buffer, err));
    if (status == CV_OK) status = cv_buffer_reserve(&buffer, 1, err); /* never NULL */
    if (status != CV_OK) {
        cv_buffer_free(&buffer);
        return status;
    }
    *value = buffer.data;
    *size = buffer.size;
    return CV_OK;
}

static cv_status read_part(const cv_snapshot *snapshot, const char *name, int64_t start,
                           void *dst, size_t dst_size, int64_t *size, cv_error *err)
{
    const cv_attribute *attribute;
    CV_TRY(find(snapshot, name, &attribute, err));
    CV_TRY(cv_attribute_size(attribute, size, err));
    if (start < 0 || start > *size)
        return cv_fail(err, CATERVA_ERANGE, -1, "byte %lld is not in [0, %lld]",
                       (long long)start, (long long)*size);
    int64_t left = *size - start;
    int64_t wanted = dst_size < (size_t)left ? (int64_t)dst_size : left;
    return dst ? cv_attribute_read(attribute, start, dst, wanted, err) : CV_OK;
}

caterva_status caterva_attr_read(caterva_array *array, const char *name, int64_t start,
                                 void *dst, size_t dst_size, int64_t *size,
                                 caterva_error *err)
{
    CV_TRY(cv_array_check(array, err));
    if (!name || !size) return cv_fail(err, CATERVA_EINVAL, -1, "name or size is NULL");
    cv_array_lock_shared(array);
    cv_status status =
        read_part(cv_array_state(array), name, start, dst, dst_size, size, err);
    cv_array_unlock(array);
    return status;
}

/* ---- Changing attributes ------------------------------------------------ */

/* The library's own attribute, and where it stands in the trailer; or NULL. */
static const cv_metalayer *find_own(const cv_trailer *t, int *at)
{
    const cv_metalayer *own =
        cv_metalayers_find(t->attributes, t->n_attributes, CV_OWN_ATTRIBUTE);
    *at = own ? (int)(own - t->attributes) : 0;
    return own;
}

static cv_status change(caterva_array *array, const cv_attribute *list, int n, cv_error *err)
{
    int own_at;
    const cv_metalayer *own = find_own(&cv_array_state(array)->trailer, &own_at);
    cv_placed placed = {.watch = array->watch};
    CV_TRY(cv_attributes_place(list, n, own, own_at, &placed, err));
    cv_change change = {
        .set_attributes = true, .attributes = placed.layers, .n_attributes = placed.n};
    cv_status status = cv_txn_change(array->pending->txn, &change, err);
    cv_placed_free(&placed);
    if (status == CV_OK) cv_array_changed(array);
    return status;
}

static cv_status replace_attribute(caterva_array *array, const char *name,
                                   const cv_attribute *added, cv_error *err)
{
    const cv_attributes *all;
    cv_attribute *list;
    int n;
    CV_TRY(cv_pending_check(array->pending, err));
    CV_TRY(cv_snapshot_attributes(cv_array_state(array), &all, err));
    CV_TRY(cv_attributes_replace(all, name, added, &list, &n, err));
    cv_status status = change(array, list, n, err);
    cv_free(list);
    return status;
}

caterva_status caterva_attr_set(caterva_array *array, const char *name, const void *value,
                                size_t size, caterva_error *err)
{
    CV_TRY(cv_array_check_writable(array, err));
    CV_TRY(cv_part_refuse(array->part, "a change of attributes", err));
    CV_TRY(cv_attributes_check_name(name, err));
    if (!value && size > 0) return cv_fail(err, CATERVA_EINVAL, -1, "value is NULL");
    cv_attribute added = {
        .name = name, .form = CV_ATTRIBUTE_RAW, .data = value, .size = size};
    cv_array_lock_alone(array);
    return cv_array_finish(array, replace_attribute(array, name, &added, err));
}

caterva_status caterva_attr_remove(caterva_array *array, const char *name, caterva_error *err)
{
    CV_TRY(cv_array_check_writable(array, err));
    CV_TRY(cv_part_refuse(array->part, "a change of attributes", err));
    CV_TRY(cv_attributes_check_name(name, err));
    cv_array_lock_alone(array);
    return cv_array_finish(array, replace_attribute(array, name, NULL, err));
}

/* ---- Fixed metalayers --------------------------------------------------- */

caterva_status caterva_metalayer_update(caterva_array *array, const char *name,
                                        const void *content, size_t size, caterva_error *err)
{
    CV_TRY(cv_array_check_writable(array, err));
    CV_TRY(cv_part_refuse(array->part, "a change of attributes", err));
    if (!name || (!content && size > 0))
        return cv_fail(err, CATERVA_EINVAL, -1, "name or content is NULL");
    if (strlen(name) > CV_MAX_NAME || size > UINT32_MAX)
        return cv_fail(err, CATERVA_ENOTFOUND, -1, "no such metalayer");
    if (strcmp(name, "b2nd") == 0 || strcmp(name, "caterva") == 0)
        return cv_fail(err, CATERVA_EINVAL, -1, "metalayer \"%s\" is the array's own", name);
    cv_metalayer layer = {.data = content, .size = (uint32_t)size};
    snprintf(layer.name, sizeof layer.name, "%s", name);
    cv_change change = {.metalayer = &layer};
    cv_array_lock_alone(array);
    cv_status status = cv_txn_change(array->pending->txn, &change, err);
    if (status == CV_OK) cv_array_changed(array);
    cv_array_unlock(array);
    return status;
}

/* Room: array. Attributes and fixed metalayers, by name. The attribute that this
 * library keeps for itself is not shown and cannot be set. */
#include "array/array.h"
#include "array/describe.h"
#include "base/heap.h"
#include "base/text.h"
#include "format/own_attribute.h"
#include "frame/attribute.h"

#include <stdio.h>
#include <string.h>

static cv_status get_attribute(const cv_snapshot *snapshot, const char *name,
                               cv_buffer *value, cv_error *err)
{
    const cv_trailer *trailer = &snapshot->trailer;
    const cv_metalayer *attribute =
        cv_metalayers_find(trailer->attributes, trailer->n_attributes, name);
    if (!attribute)
        return cv_fail(err, CATERVA_ENOTFOUND, -1, "no attribute \"%.100s\"", name);
    return cv_frame_attribute(attribute, value, err);
}

caterva_status caterva_attr_get(caterva_array *array, const char *name, void **value,
                                size_t *size, caterva_error *err)
{
    CV_TRY(cv_array_check(array, err));
    if (!name || !value || !size)
        return cv_fail(err, CATERVA_EINVAL, -1, "name, value or size is NULL");
    cv_buffer buffer = {0};
    cv_array_lock_shared(array);
    cv_status status = get_attribute(cv_array_state(array), name, &buffer, err);
    cv_array_unlock(array);
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
    const cv_trailer *trailer = &snapshot->trailer;
    const cv_metalayer *attribute =
        cv_metalayers_find(trailer->attributes, trailer->n_attributes, name);
    if (!attribute)
        return cv_fail(err, CATERVA_ENOTFOUND, -1, "no attribute \"%.100s\"", name);
    CV_TRY(cv_frame_attribute_size(attribute, size, err));
    if (start < 0 || start > *size)
        return cv_fail(err, CATERVA_ERANGE, -1, "byte %lld is not in [0, %lld]",
                       (long long)start, (long long)*size);
    int64_t left = *size - start;
    int64_t wanted = dst_size < (size_t)left ? (int64_t)dst_size : left;
    return dst ? cv_frame_attribute_read(attribute, start, dst, wanted, err) : CV_OK;
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

static cv_status check_name(const char *name, cv_error *err)
{
    if (!name || !name[0] || strlen(name) > CV_MAX_NAME)
        return cv_fail(err, CATERVA_EINVAL, -1, "an attribute's name has 1 to %d bytes",
                       CV_MAX_NAME);
    /* python-blosc2 decodes all names at once: one that is none hides every other. */
    if (!cv_is_utf8(name))
        return cv_fail(err, CATERVA_EINVAL, -1, "an attribute's name is UTF-8, \"%s\" is not",
                       name);
    if (strcmp(name, CV_OWN_ATTRIBUTE) == 0)
        return cv_fail(err, CATERVA_EINVAL, -1, "attribute \"%s\" is the library's own",
                       name);
    return CV_OK;
}

/* The attributes without `name`, and with `added` where it is not NULL. */
static cv_status replace_attribute(caterva_array *array, const char *name,
                                   const cv_metalayer *added, bool *found, cv_error *err)
{
    const cv_trailer *old = &cv_array_state(array)->trailer;
    size_t size = ((size_t)old->n_attributes + 1) * sizeof(cv_metalayer);
    cv_metalayer *list = cv_malloc(size);
    if (!list) return cv_fail_memory(err, size, "the attributes");
    int n = 0;
    *found = false;
    for (int i = 0; i < old->n_attributes; i++) {
        bool same = strcmp(old->attributes[i].name, name) == 0;
        *found = *found || same;
        if (!same)
            list[n++] = old->attributes[i];
        else if (added) /* in its old place */
            list[n++] = *added;
    }
    if (added && !*found) list[n++] = *added;
    cv_status status = CV_OK;
    if (added && !*found && n > CV_MAX_METALAYERS)
        status =
            cv_fail(err, CATERVA_EINVAL, -1,
                    "%d attributes: with more than %d C-Blosc2 could not change the file", n,
                    CV_MAX_METALAYERS);
    cv_change change = {.set_attributes = true, .attributes = list, .n_attributes = n};
    if (status == CV_OK && (added || *found))
        status = cv_txn_change(array->pending->txn, &change, err);
    cv_free(list);
    return status;
}

caterva_status caterva_attr_set(caterva_array *array, const char *name, const void *value,
                                size_t size, caterva_error *err)
{
    CV_TRY(cv_array_check_writable(array, err));
    CV_TRY(check_name(name, err));
    if (!value && size > 0) return cv_fail(err, CATERVA_EINVAL, -1, "value is NULL");
    cv_metalayer added = {.size = 0};
    cv_buffer encoded = {0};
    CV_TRY(cv_encode_plain(value, size, &encoded, err));
    snprintf(added.name, sizeof added.name, "%s", name);
    added.data = encoded.data;
    added.size = (uint32_t)encoded.size;

    bool found = false;
    cv_array_lock_alone(array);
    cv_status status = cv_pending_check(array->pending, err);
    if (status == CV_OK) status = replace_attribute(array, name, &added, &found, err);
    if (status == CV_OK) cv_array_changed(array);
    cv_array_unlock(array);
    cv_buffer_free(&encoded);
    return status;
}

caterva_status caterva_attr_remove(caterva_array *array, const char *name, caterva_error *err)
{
    CV_TRY(cv_array_check_writable(array, err));
    CV_TRY(check_name(name, err));
    bool found = false;
    cv_array_lock_alone(array);
    cv_status status = cv_pending_check(array->pending, err);
    if (status == CV_OK) status = replace_attribute(array, name, NULL, &found, err);
    if (status == CV_OK && !found)
        status = cv_fail(err, CATERVA_ENOTFOUND, -1, "no attribute \"%s\"", name);
    if (status == CV_OK) cv_array_changed(array);
    cv_array_unlock(array);
    return status;
}

/* ---- Fixed metalayers --------------------------------------------------- */

caterva_status caterva_metalayer_update(caterva_array *array, const char *name,
                                        const void *content, size_t size, caterva_error *err)
{
    CV_TRY(cv_array_check_writable(array, err));
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

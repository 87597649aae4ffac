/* Room: array. Attributes and fixed metalayers, by name. */
#include "array/array.h"

#include <stdlib.h>
#include <string.h>

const char *caterva_attr_name(const caterva_array *array, int i)
{
    if (!array || i < 0 || i >= array->snapshot->trailer.n_attributes) return NULL;
    return array->snapshot->trailer.attributes[i].name;
}

static cv_status get_attribute(const cv_snapshot *snapshot, const char *name, cv_buffer *value,
                               cv_error *err)
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
    cv_status status = get_attribute(array->snapshot, name, &buffer, err);
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

const char *caterva_meta_name(const caterva_array *array, int i)
{
    if (!array || i < 0 || i >= array->snapshot->header.n_metalayers) return NULL;
    return array->snapshot->header.metalayers[i].name;
}

caterva_status caterva_meta_get(const caterva_array *array, const char *name,
                                const void **content, size_t *size, caterva_error *err)
{
    CV_TRY(cv_array_check(array, err));
    if (!name || !content || !size)
        return cv_fail(err, CATERVA_EINVAL, -1, "name, content or size is NULL");
    const cv_frame_header *h = &array->snapshot->header;
    const cv_metalayer *layer = cv_metalayers_find(h->metalayers, h->n_metalayers, name);
    if (!layer) return cv_fail(err, CATERVA_ENOTFOUND, -1, "no metalayer \"%.100s\"", name);
    *content = layer->data;
    *size = layer->size;
    return CV_OK;
}

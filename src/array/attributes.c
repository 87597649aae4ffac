/* Room: array. Attributes and fixed metalayers, by name, except the library's own attribute. */
#include "array/attributes.h"

#include "array/array.h"
#include "base/heap.h"
#include "base/status.h"
#include "format/array_meta.h"
#include "format/values.h"

#include <stdio.h>
#include <string.h>

/* ---- Values -------------------------------------------------------------------------- */

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
    CV_TRY(cv_array_check_settled(array, err));
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
    if (status == CV_OK)
        status = cv_buffer_reserve(&buffer, 1, err); /* *value is never NULL */
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
    cv_status status = cv_array_check_settled(array, err);
    if (status == CV_OK)
        status = read_part(cv_array_state(array), name, start, dst, dst_size, size, err);
    cv_array_unlock(array);
    return status;
}

/* ---- Changing attributes ------------------------------------------------ */

/* Ends a call, and makes one new description, which includes all changes of the call. */
static cv_status finish(caterva_array *array, cv_status status)
{
    cv_array_changed(array);
    return cv_array_finish(array, status);
}

caterva_status caterva_attr_set(caterva_array *array, const char *name, const void *value,
                                size_t size, caterva_error *err)
{
    CV_TRY(cv_array_check_writable(array, err));
    CV_TRY(cv_array_refuse(array, "a change of attributes", err));
    CV_TRY(cv_attributes_check_name(name, err));
    if (!value && size > 0) return cv_fail(err, CATERVA_EINVAL, -1, "value is NULL");
    cv_attribute added = {
        .name = name, .form = CV_ATTRIBUTE_RAW, .data = value, .size = size};
    return cv_array_set_attribute(array, &added, err);
}

caterva_status caterva_attr_delete(caterva_array *array, const char *name, caterva_error *err)
{
    CV_TRY(cv_array_check_writable(array, err));
    CV_TRY(cv_array_refuse(array, "a change of attributes", err));
    CV_TRY(cv_attributes_check_name(name, err));
    cv_array_lock_alone(array);
    return finish(array, cv_array_replace_attributes(array, name, NULL, 0, err));
}

/* ---- Fixed metalayers --------------------------------------------------- */

caterva_status caterva_metalayer_update(caterva_array *array, const char *name,
                                        const void *content, size_t size, caterva_error *err)
{
    CV_TRY(cv_array_check_writable(array, err));
    CV_TRY(cv_array_refuse(array, "a change of attributes", err));
    if (!name || (!content && size > 0))
        return cv_fail(err, CATERVA_EINVAL, -1, "name or content is NULL");
    if (strlen(name) > CV_MAX_NAME || size > UINT32_MAX)
        return cv_fail(err, CATERVA_ENOTFOUND, -1, "no such metalayer");
    if (strcmp(name, "b2nd") == 0 || strcmp(name, "caterva") == 0)
        return cv_fail(err, CATERVA_EINVAL, -1, "metalayer \"%s\" is reserved for the array",
                       name);
    cv_metalayer layer = {.data = content, .size = (uint32_t)size};
    snprintf(layer.name, sizeof layer.name, "%s", name);
    cv_change change = {.metalayer = &layer};
    cv_array_lock_alone(array);
    cv_status status = cv_txn_change(array->pending->txn, &change, err);
    if (status == CV_OK) cv_array_changed(array);
    cv_array_unlock(array);
    return status;
}

/* ---- Names of dimensions ----------------------------------------------------------------
 *
 * The names are the value of one attribute: a list with a text for each axis, or nil for an axis
 * without a name. Three conventions exist for the name of this attribute. If another program stored
 * something else under such a name, the attribute is ignored. */

static const char *const conventions[] = {"dims", "dimension_names", "_ARRAY_DIMENSIONS"};
enum { N_CONVENTIONS = 3, LONGEST = 1 << 20 };

/* Adds up the sizes of `ndim` names with their NULs. `t` begins with the first name. Returns false
 * if an entry is not a name. */
static bool measure(cv_tokens t, int ndim, size_t *size)
{
    *size = 0;
    for (int d = 0; d < ndim; d++) {
        cv_token name = cv_token_next(&t);
        bool is_text = name.kind == CV_TOKEN_TEXT;
        if (t.bad || (!is_text && name.kind != CV_TOKEN_NIL)) return false;
        if (is_text && memchr(name.bytes, 0, (size_t)name.number)) return false;
        if (is_text) *size += (size_t)name.number + 1;
    }
    return t.at == t.end;
}

/* Allocates one block of memory with the pointers, followed by the names. */
static cv_status keep_names(cv_tokens t, int ndim, size_t size, const char ***out,
                            cv_error *err)
{
    size_t pointers = (size_t)(ndim > 0 ? ndim : 1) * sizeof(char *);
    const char **names = cv_malloc(pointers + size);
    if (!names) return cv_fail_memory(err, pointers + size, "names of dimensions");
    char *at = (char *)names + pointers;
    for (int d = 0; d < ndim; d++) {
        cv_token name = cv_token_next(&t);
        names[d] = name.kind == CV_TOKEN_TEXT ? at : NULL;
        if (!names[d]) continue;
        memcpy(at, name.bytes, (size_t)name.number);
        at[name.number] = '\0';
        at += name.number + 1;
    }
    *out = names;
    return CV_OK;
}

static cv_status parse(const cv_buffer *value, int ndim, const char ***out, cv_error *err)
{
    cv_tokens t = cv_tokens_of(value->data, value->size);
    cv_token list = cv_token_next(&t);
    cv_tokens ahead = t;
    cv_token first = cv_token_next(&ahead);
    bool is_tuple = list.number > 0 && cv_token_is_text(&first, CV_TUPLE_MARK);
    if (is_tuple) t = ahead;
    size_t size;
    uint64_t n = (uint64_t)ndim + is_tuple;
    if (list.kind != CV_TOKEN_LIST || list.number != n || !measure(t, ndim, &size))
        return CV_OK;
    return keep_names(t, ndim, size, out, err);
}

static cv_status read_one(const cv_snapshot *s, const cv_attribute *a, const char ***out,
                          cv_error *err)
{
    int64_t size;
    cv_buffer value = {0};
    CV_TRY(cv_attribute_size(a, &size, err));
    if (size > LONGEST) return CV_OK;
    cv_status status = cv_attribute_value(a, &value, NULL, err);
    if (status == CV_OK) status = parse(&value, s->grid.ndim, out, err);
    cv_buffer_free(&value);
    return status;
}

/* Reads the first attribute that is a list of names. If no such attribute exists, *out is NULL, and
 * *passed is the name of an attribute that exists but is not such a list, or NULL. */
static cv_status read_dims(const cv_snapshot *s, const char ***out, const char **passed,
                           cv_error *err)
{
    const cv_attributes *all;
    *out = NULL;
    *passed = NULL;
    CV_TRY(cv_snapshot_attributes(s, &all, err));
    for (int i = 0; i < N_CONVENTIONS && !*out; i++) {
        const cv_attribute *a;
        cv_error why = {0};
        cv_status status = cv_attributes_find(all, conventions[i], &a, &why);
        if (status == CATERVA_ENOTFOUND) continue;
        if (status != CV_OK && err) *err = why;
        if (status == CV_OK) status = read_one(s, a, out, err);
        if (status != CV_OK) return status;
        if (!*out && !*passed) *passed = conventions[i];
    }
    return CV_OK;
}

caterva_status caterva_dims_get(caterva_array *array, const char ***names, caterva_error *err)
{
    CV_TRY(cv_array_check(array, err));
    if (!names) return cv_fail(err, CATERVA_EINVAL, -1, "names is NULL");
    const char *passed;
    cv_array_lock_shared(array);
    const cv_snapshot *s = cv_array_state(array);
    int ndim = s->grid.ndim;
    cv_status status = read_dims(s, names, &passed, err);
    cv_array_unlock(array);
    if (status != CV_OK || *names) return status;
    if (passed)
        return cv_fail(
            err, CATERVA_ENOTFOUND, -1,
            "the dimensions have no names: attribute \"%s\" is not a list of %d names",
            passed, ndim);
    return cv_fail(err, CATERVA_ENOTFOUND, -1, "the dimensions have no names");
}

static cv_status check_names(const char *const *names, int ndim, cv_error *err)
{
    for (int d = 0; d < ndim; d++) {
        if (!names[d]) continue;
        if (!names[d][0] || strlen(names[d]) > CV_MAX_ATTRIBUTE_NAME || !cv_is_utf8(names[d]))
            return cv_fail(err, CATERVA_EINVAL, -1,
                           "the name of axis %d is not 1 to %d bytes of UTF-8", d,
                           CV_MAX_ATTRIBUTE_NAME);
    }
    return CV_OK;
}

static cv_status delete_if_there(caterva_array *array, const char *name, cv_error *err)
{
    cv_error why;
    cv_status status = cv_array_replace_attributes(array, name, NULL, 0, &why);
    if (status == CV_OK || status == CATERVA_ENOTFOUND) return CV_OK;
    if (err) *err = why;
    return status;
}

static cv_status set_names(caterva_array *array, const char *const *names, int ndim,
                           cv_error *err)
{
    cv_packer p = {.status = CV_OK};
    cv_buffer value = {0};
    cv_pack_begin(&p, CV_PACK_LIST);
    for (int d = 0; d < ndim; d++) {
        if (names[d])
            cv_pack_text(&p, names[d], strlen(names[d]));
        else
            cv_pack_nil(&p);
    }
    cv_pack_end(&p);
    cv_status status = cv_pack_finish(&p, &value, err);
    cv_attribute added = {.name = conventions[0], .form = CV_ATTRIBUTE_RAW};
    added.data = value.data;
    added.size = value.size;
    if (status == CV_OK)
        status = cv_array_replace_attributes(array, conventions[0], &added, 1, err);
    cv_buffer_free(&value);
    return status;
}

/* Sets `dims` first: if a later step fails, readers find the new names, as they prefer `dims`. */
static cv_status set_dims(caterva_array *array, const char *const *names, cv_error *err)
{
    int ndim = cv_array_state(array)->grid.ndim;
    if (names) CV_TRY(check_names(names, ndim, err));
    CV_TRY(names ? set_names(array, names, ndim, err)
                 : delete_if_there(array, conventions[0], err));
    for (int i = 1; i < N_CONVENTIONS; i++)
        CV_TRY(delete_if_there(array, conventions[i], err));
    return CV_OK;
}

caterva_status caterva_dims_set(caterva_array *array, const char *const *names,
                                caterva_error *err)
{
    CV_TRY(cv_array_check_writable(array, err));
    CV_TRY(cv_array_refuse(array, "a change of attributes", err));
    cv_array_lock_alone(array);
    return finish(array, set_dims(array, names, err));
}

cv_status cv_dims_carry(const cv_snapshot *from, const int *axes, caterva_array *to,
                        cv_error *err)
{
    const char **names, *passed, *kept[CV_MAX_DIMS] = {NULL};
    int ndim = cv_array_state(to)->grid.ndim;
    bool same = ndim == from->grid.ndim;
    for (int d = 0; d < ndim; d++) same = same && axes[d] == d;
    if (same) return CV_OK;
    CV_TRY(read_dims(from, &names, &passed, err));
    if (!names) return CV_OK;
    for (int d = 0; d < ndim; d++) kept[d] = axes[d] < 0 ? NULL : names[axes[d]];
    cv_status status = caterva_dims_set(to, kept, err);
    cv_free(names);
    return status;
}

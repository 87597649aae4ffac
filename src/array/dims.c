/* Room: array. Names of dimensions: one attribute of three conventions, a list of text and
 * nil. What another program wrote under these names may be anything: it counts when it is
 * such a list, of one entry for each axis. */
#include "array/dims.h"

#include "base/heap.h"
#include "base/status.h"
#include "value/pack.h"

#include <string.h>

static const char *const conventions[] = {"dims", "dimension_names", "_ARRAY_DIMENSIONS"};
enum { N_CONVENTIONS = 3, LONGEST = 1 << 20 };

/* ---- Reading ------------------------------------------------------------ */

/* The names behind a list's head: how many bytes they take with their NULs; false when
 * they are none. */
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

/* One block: the pointers, and the names behind them. */
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

/* *out stays NULL when the value is none. */
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

/* *out is NULL where there are none; *passed is the attribute that is there, and is none. */
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
        return cv_fail(err, CATERVA_ENOTFOUND, -1,
                       "the dimensions have no names: attribute \"%s\" is no list of %d",
                       passed, ndim);
    return cv_fail(err, CATERVA_ENOTFOUND, -1, "the dimensions have no names");
}

/* ---- Writing ------------------------------------------------------------ */

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

static cv_status remove_if_there(caterva_array *array, const char *name, cv_error *err)
{
    cv_error ignored;
    cv_status status = caterva_attr_remove(array, name, &ignored);
    if (status == CV_OK || status == CATERVA_ENOTFOUND) return CV_OK;
    if (err) *err = ignored;
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
    if (status == CV_OK)
        status = caterva_attr_set(array, conventions[0], value.data, value.size, err);
    cv_buffer_free(&value);
    return status;
}

/* `dims` comes first: after a failure in between it is what counts. */
caterva_status caterva_dims_set(caterva_array *array, const char *const *names,
                                caterva_error *err)
{
    CV_TRY(cv_array_check_writable(array, err));
    cv_array_lock_shared(array);
    int ndim = cv_array_state(array)->grid.ndim;
    cv_array_unlock(array);
    if (names) CV_TRY(check_names(names, ndim, err));
    CV_TRY(names ? set_names(array, names, ndim, err)
                 : remove_if_there(array, conventions[0], err));
    for (int i = 1; i < N_CONVENTIONS; i++)
        CV_TRY(remove_if_there(array, conventions[i], err));
    return CV_OK;
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

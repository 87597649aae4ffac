/* Room: store. What several stores say in the same words. Knows neither
 * descriptors nor memory. */
#include "store/refusals.h"

#include "base/heap.h"
#include "base/os_file.h"
#include "store/http_url.h"

#include <stdio.h>
#include <string.h>

_Static_assert(sizeof(cv_shown_path) >= CV_URL_SHOWN, "a URL fits");

/* Of any scheme: queries and passwords are for nobody's eyes. */
static bool is_url(const char *text)
{
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-.";
    size_t scheme = strspn(text, letters);
    return scheme > 1 && strncmp(text + scheme, "://", 3) == 0;
}

cv_shown_path cv_show_path(const char *path)
{
    cv_shown_path shown = {""};
    size_t length = strlen(path);
    size_t room = sizeof shown.text - 1;
    if (is_url(path))
        cv_url_show(path, shown.text);
    else if (length <= room)
        (void)snprintf(shown.text, sizeof shown.text, "%s", path);
    else
        (void)snprintf(shown.text, sizeof shown.text, "...%s", path + length - (room - 3));
    return shown;
}

cv_status cv_strip_slashes(const char *path, char **out, cv_error *err)
{
    size_t length = strlen(path);
    while (length > 1 && path[length - 1] == '/') length--;
    *out = cv_malloc(length + 1);
    if (!*out) return cv_fail_memory(err, length + 1, "a path");
    memcpy(*out, path, length);
    (*out)[length] = '\0';
    return CV_OK;
}

cv_status cv_fail_open(cv_error *err, int sys_errno, const char *path)
{
    cv_shown_path shown = cv_show_path(path);
    bool is_missing = sys_errno == ENOENT || sys_errno == ENOTDIR;
    if (is_missing && is_url(path))
        return cv_fail(err, CATERVA_EUNSUPPORTED, -1,
                       "%s: URLs that are read begin with http://, https:// or s3://",
                       shown.text);
    if (is_missing)
        return cv_fail(err, CATERVA_ENOTFOUND, -1, "%s does not exist", shown.text);
    return cv_fail_sys(err, sys_errno, "cannot open %s", shown.text);
}

cv_status cv_fail_lock(cv_error *err, int sys_errno, const char *path)
{
    cv_shown_path shown = cv_show_path(path);
    if (sys_errno == EWOULDBLOCK || sys_errno == EAGAIN)
        return cv_fail(err, CATERVA_EBUSY, -1, "%s is open for writing elsewhere",
                       shown.text);
    return cv_fail_sys(err, sys_errno, "cannot lock %s", shown.text);
}

cv_status cv_refuse_url(const char *path, cv_error *err)
{
    if (!is_url(path)) return CV_OK;
    return cv_fail(err, CATERVA_EREADONLY, -1, "%s: a URL can be read only",
                   cv_show_path(path).text);
}

cv_status cv_fail_past_end(cv_error *err, const char *what, uint64_t pos, size_t size,
                           uint64_t end)
{
    return cv_fail(err, CATERVA_ECORRUPT, (int64_t)end,
                   "%s ends at byte %llu: cannot read %zu bytes at %llu", what,
                   (unsigned long long)end, size, (unsigned long long)pos);
}

bool cv_store_is_parents(const cv_store *store)
{
    return !store->in_memory && cv_os_is_other_process(store->opened);
}

cv_status cv_store_check_writable(const cv_store *store, cv_error *err)
{
    if (store->writable && !cv_store_is_parents(store)) return CV_OK;
    if (store->writable)
        return cv_fail(err, CATERVA_EBUSY, -1,
                       "this %s is open for writing in the process that forked this one",
                       store->ops->name);
    return cv_fail(err, CATERVA_EREADONLY, -1, "this %s was opened for reading only",
                   store->ops->name);
}

cv_status cv_store_check_frame(const cv_store *store, cv_object object, cv_error *err)
{
    if (object == CV_FRAME_OBJECT) return CV_OK;
    return cv_fail(err, CATERVA_ENOTFOUND, -1, "a %s has no chunk object %lld",
                   store->ops->name, (long long)object);
}

cv_status cv_store_no_replace(cv_store *store, const void *bytes, size_t size, bool durable,
                              cv_error *err)
{
    (void)bytes, (void)size, (void)durable;
    return cv_fail(err, CATERVA_EINVAL, -1, "a %s is not replaced whole", store->ops->name);
}

cv_status cv_store_no_remove(cv_store *store, cv_object object, cv_error *err)
{
    if (object != CV_FRAME_OBJECT) return CV_OK;
    return cv_fail(err, CATERVA_EINVAL, -1, "the frame of a %s is not removed",
                   store->ops->name);
}

cv_status cv_store_no_write(cv_store *store, cv_object object, uint64_t pos, const void *src,
                            size_t size, cv_error *err)
{
    (void)object, (void)pos, (void)src, (void)size;
    return cv_store_check_writable(store, err);
}

cv_status cv_store_no_truncate(cv_store *store, cv_object object, uint64_t size,
                               cv_error *err)
{
    (void)object, (void)size;
    return cv_store_check_writable(store, err);
}

cv_status cv_store_no_sync(cv_store *store, cv_object object, cv_error *err)
{
    (void)object;
    return cv_store_check_writable(store, err);
}

cv_status cv_store_no_publish(cv_store *store, bool durable, cv_error *err)
{
    (void)store, (void)durable, (void)err;
    return CV_OK;
}

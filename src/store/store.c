/* Room: store. Errors and refusals that all kinds of stores share. Knows no kind of store. */
#include "store/store.h"

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

cv_status cv_store_fail_far(const cv_store *store, cv_error *err)
{
    return cv_fail(
        err, CATERVA_EUNSUPPORTED, -1,
        "this %s would have more than 2 GiB: with addresses of 32 bits it may be read only",
        store->ops->name);
}

cv_status cv_store_check_frame(const cv_store *store, cv_object object, cv_error *err)
{
    if (object == CV_FRAME_OBJECT) return CV_OK;
    return cv_fail(err, CATERVA_ENOTFOUND, -1, "a %s has no chunk object %lld",
                   store->ops->name, (long long)object);
}

cv_status cv_store_replace(cv_store *store, const void *bytes, size_t size, bool durable,
                           cv_error *err)
{
    if (store->ops->replace) return store->ops->replace(store, bytes, size, durable, err);
    return cv_fail(err, CATERVA_EINVAL, -1, "a %s cannot be replaced as a whole",
                   store->ops->name);
}

cv_status cv_store_remove(cv_store *store, cv_object object, cv_error *err)
{
    if (store->ops->remove) return store->ops->remove(store, object, err);
    if (object != CV_FRAME_OBJECT) return CV_OK;
    return cv_fail(err, CATERVA_EINVAL, -1, "the frame of a %s cannot be removed",
                   store->ops->name);
}

/* What the stores share: how paths are shown, and refusals in one wording. */
#ifndef CV_STORE_REFUSALS_H
#define CV_STORE_REFUSALS_H

#include "store/store.h"

/* A path as sentences show it: a long one keeps its end, so that the reason
 * behind it still fits the message. */
typedef struct cv_shown_path {
    char text[136];
} cv_shown_path;

cv_shown_path cv_show_path(const char *path);

/* The path without trailing slashes, which a file's may not have. Owned. */
cv_status cv_strip_slashes(const char *path, char **out, cv_error *err);

/* A path that could not be opened: CATERVA_ENOTFOUND when there is nothing
 * (CATERVA_EUNSUPPORTED for a URL of a scheme that is not read),
 * else CATERVA_EIO with the system's reason. */
cv_status cv_fail_open(cv_error *err, int sys_errno, const char *path);

/* CATERVA_EBUSY when the lock is held elsewhere, CATERVA_EIO when it failed. */
cv_status cv_fail_lock(cv_error *err, int sys_errno, const char *path);

/* CATERVA_ECORRUPT: bytes [pos, pos + size) of `what`, which has `end` bytes. */
/* CATERVA_EREADONLY for a URL of any scheme, where something was to be made or changed; CV_OK for
 * a path. */
cv_status cv_refuse_url(const char *path, cv_error *err);

cv_status cv_fail_past_end(cv_error *err, const char *what, uint64_t pos, size_t size,
                           uint64_t end);

/* True in a child of fork for a store that was opened before: whatever of it is not in this
 * process's memory is the parent's. */
bool cv_store_is_parents(const cv_store *store);

/* CATERVA_EREADONLY unless the store may be written; CATERVA_EBUSY when it is a parent's. */
cv_status cv_store_check_writable(const cv_store *store, cv_error *err);

/* CATERVA_ENOTFOUND unless `object` is the frame: for stores without others. */
cv_status cv_store_check_frame(const cv_store *store, cv_object object, cv_error *err);

/* The answers of a store that is one run of bytes: it holds no chunk object
 * that could be removed, and is never replaced whole. */
cv_status cv_store_no_replace(cv_store *store, const void *bytes, size_t size, bool durable,
                              cv_error *err);
cv_status cv_store_no_remove(cv_store *store, cv_object object, cv_error *err);

/* The answers of a store that is only read, as cv_store_check_writable has them; there is
 * nothing to publish. */
cv_status cv_store_no_write(cv_store *store, cv_object object, uint64_t pos, const void *src,
                            size_t size, cv_error *err);
cv_status cv_store_no_truncate(cv_store *store, cv_object object, uint64_t size,
                               cv_error *err);
cv_status cv_store_no_sync(cv_store *store, cv_object object, cv_error *err);
cv_status cv_store_no_publish(cv_store *store, bool durable, cv_error *err);

#endif

/* What several stores refuse, in one wording, and the answers of stores that lack a call. */
#ifndef CV_STORE_REFUSALS_H
#define CV_STORE_REFUSALS_H

#include "store/store.h"

/* CATERVA_ECORRUPT: bytes [pos, pos + size) of `what`, which has `end` bytes. */
cv_status cv_fail_past_end(cv_error *err, const char *what, uint64_t pos, size_t size,
                           uint64_t end);

/* True in a forked child for stores opened before: all but this process's memory is the
 * parent's. */
bool cv_store_is_parents(const cv_store *store);

/* CATERVA_EREADONLY unless the store may be written; CATERVA_EBUSY when it is a parent's. */
cv_status cv_store_check_writable(const cv_store *store, cv_error *err);

/* CATERVA_ENOTFOUND unless `object` is the frame: for stores without others. */
cv_status cv_store_check_frame(const cv_store *store, cv_object object, cv_error *err);

/* For single-run stores: no chunk objects to remove, never replaced whole. */
cv_status cv_store_no_replace(cv_store *store, const void *bytes, size_t size, bool durable,
                              cv_error *err);
cv_status cv_store_no_remove(cv_store *store, cv_object object, cv_error *err);

/* For read-only stores, as cv_store_check_writable; nothing to publish. */
cv_status cv_store_no_write(cv_store *store, cv_object object, uint64_t pos, const void *src,
                            size_t size, cv_error *err);
cv_status cv_store_no_truncate(cv_store *store, cv_object object, uint64_t size,
                               cv_error *err);
cv_status cv_store_no_sync(cv_store *store, cv_object object, cv_error *err);
cv_status cv_store_no_publish(cv_store *store, bool durable, cv_error *err);

#endif

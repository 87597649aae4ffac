/* Errors that several stores report in the same words, and operations for stores that lack
 * them. */
#ifndef CV_STORE_REFUSALS_H
#define CV_STORE_REFUSALS_H

#include "store/store.h"

/* CATERVA_ECORRUPT: `what`, which has `end` bytes, does not contain [pos, pos + size). */
cv_status cv_fail_past_end(cv_error *err, const char *what, uint64_t pos, size_t size,
                           uint64_t end);

/* True in a forked child, for stores that the parent opened. False for memory. */
bool cv_store_is_parents(const cv_store *store);

/* CATERVA_EREADONLY if the store is not open for writing, CATERVA_EBUSY if the parent opened
 * it. */
cv_status cv_store_check_writable(const cv_store *store, cv_error *err);

/* CATERVA_ENOTFOUND if `object` is not the frame: for stores without chunk objects. */
cv_status cv_store_check_frame(const cv_store *store, cv_object object, cv_error *err);

/* For stores without chunk objects: nothing to remove, and the frame is not replaced whole. */
cv_status cv_store_no_replace(cv_store *store, const void *bytes, size_t size, bool durable,
                              cv_error *err);
cv_status cv_store_no_remove(cv_store *store, cv_object object, cv_error *err);

/* For read-only stores: fail as cv_store_check_writable does. publish does nothing. */
cv_status cv_store_no_write(cv_store *store, cv_object object, uint64_t pos, const void *src,
                            size_t size, cv_error *err);
cv_status cv_store_no_truncate(cv_store *store, cv_object object, uint64_t size,
                               cv_error *err);
cv_status cv_store_no_sync(cv_store *store, cv_object object, cv_error *err);
cv_status cv_store_no_publish(cv_store *store, bool durable, cv_error *err);

#endif

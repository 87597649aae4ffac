/* Stores in memory. */
#ifndef CV_STORE_MEMORY_H
#define CV_STORE_MEMORY_H

#include "store/store.h"

/* Creates a store that grows in doubling segments, which never move, so that views stay valid. */
cv_status cv_store_memory_create(cv_store **out, cv_error *err);

/* Makes a read-only store of the caller's memory. */
cv_status cv_store_memory_borrow(const void *bytes, size_t size, cv_store **out,
                                 cv_error *err);

#endif

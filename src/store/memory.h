/* Stores in memory. */
#ifndef CV_STORE_MEMORY_H
#define CV_STORE_MEMORY_H

#include "store/store.h"

/* Memory that grows without moving a byte (doubling segments), so that views stay valid. */
cv_status cv_store_memory_create(cv_store **out, cv_error *err);

/* Memory borrowed from the caller; read-only. */
cv_status cv_store_memory_borrow(const void *bytes, size_t size, cv_store **out,
                                 cv_error *err);

#endif

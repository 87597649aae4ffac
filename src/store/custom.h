/* A store of the program's own functions: caterva_store as a cv_store. */
#ifndef CV_STORE_CUSTOM_H
#define CV_STORE_CUSTOM_H

#include "store/store.h"
#include <caterva_store.h>

/* Opens the program's store; copies `given`, whose size was checked. CATERVA_EINVAL if a
 * function is missing, CATERVA_EBUSY if this process writes the same identity already. */
cv_status cv_store_custom_open(const caterva_store *given, bool writable, cv_store **out,
                               cv_error *err);

/* A new, unpublished one: closing cuts its bytes off. CATERVA_EEXIST if it holds any,
 * unless `overwrite`: then they are cut off now. */
cv_status cv_store_custom_create(const caterva_store *given, bool overwrite, cv_store **out,
                                 cv_error *err);

/* From now on the program's store is closed with the last cv_store that uses it. */
void cv_store_custom_own(cv_store *store);

/* The same bytes once more, to be read; NULL in *out: `store` is not a custom one. */
cv_status cv_store_custom_again(cv_store *store, cv_store **out, cv_error *err);

#endif

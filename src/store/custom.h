/* A store of the program's own functions: caterva_store as a cv_store. */
#ifndef CV_STORE_CUSTOM_H
#define CV_STORE_CUSTOM_H

#include "store/store.h"
#include <caterva_store.h>

/* What the store holds. `given` is complete and checked for its size; it is copied.
 * CATERVA_EINVAL where a function is missing, CATERVA_EBUSY when another store of this
 * process with the same identity is open for writing. */
cv_status cv_store_custom_open(const caterva_store *given, bool writable, cv_store **out,
                               cv_error *err);

/* A new one, unpublished: closing it cuts the bytes off again. CATERVA_EEXIST when it holds
 * any, unless `overwrite`: then they are cut off now. */
cv_status cv_store_custom_create(const caterva_store *given, bool overwrite, cv_store **out,
                                 cv_error *err);

/* Until here the program's store is the program's, whatever happens to this one; from now
 * on it is closed with the last cv_store that uses it. */
void cv_store_custom_own(cv_store *store);

/* The same bytes once more, to be read; NULL in *out: `store` is not a custom one. */
cv_status cv_store_custom_again(cv_store *store, cv_store **out, cv_error *err);

#endif

/* Makes a cv_store of a caterva_store, whose functions the program provides. */
#ifndef CV_STORE_CUSTOM_H
#define CV_STORE_CUSTOM_H

#include "store/store.h"
#include <caterva_store.h>

/* Opens the program's store. Copies `given`, whose struct_size was checked. CATERVA_EINVAL if a
 * function is missing, CATERVA_EBUSY if this process has the same identity open for writing. */
cv_status cv_store_custom_open(const caterva_store *given, bool writable, cv_store **out,
                               cv_error *err);

/* Opens as cv_store_custom_open does for writing, but unpublished: closing truncates it to 0 bytes.
 * If the program's store holds bytes, truncates it now if `overwrite`, else CATERVA_EEXIST. */
cv_status cv_store_custom_create(const caterva_store *given, bool overwrite, cv_store **out,
                                 cv_error *err);

/* Makes the last cv_store that uses the program's store close that store. */
void cv_store_custom_own(cv_store *store);

/* Opens the bytes of `store` once more, for reading. *out is NULL if it is not a custom store. */
cv_status cv_store_custom_again(cv_store *store, cv_store **out, cv_error *err);

#endif

/* Stores by path, whatever stands there. */
#ifndef CV_STORE_OPEN_H
#define CV_STORE_OPEN_H

#include "store/store.h"

/* What stands at `path`: a directory, else a file. */
cv_status cv_store_open(const char *path, uint64_t offset, bool writable, cv_store **out,
                        cv_error *err);

/* A new one at `path`: a directory when the layout says sparse, else a file; memory when the
 * path is "mem:", which cannot be a directory. Unpublished, as store.h says. */
cv_status cv_store_create(const char *path, caterva_layout layout, bool overwrite,
                          cv_store **out, cv_error *err);

/* The operations of these names; CATERVA_EINVAL from a store that does not have them,
 * CATERVA_EREADONLY from one that is not open for writing. */
cv_status cv_store_create_over(cv_store *old, cv_store **out, cv_error *err);
cv_status cv_store_delete(cv_store *store, cv_watch *watch, cv_error *err);

#endif

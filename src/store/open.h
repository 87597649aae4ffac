/* Stores by path, whatever stands there. */
#ifndef CV_STORE_OPEN_H
#define CV_STORE_OPEN_H

#include "store/store.h"

/* What stands at `path`: a directory, else a file. */
cv_status cv_store_open(const char *path, uint64_t offset, bool writable, cv_store **out,
                        cv_error *err);

/* These two know files and directories, and take any other store for a file.
 *
 * A new store of the same kind that publish puts in the place of `old`, a file or
 * directory that is open for writing and stays so until then: its lock keeps others out.
 * CATERVA_EBUSY then for a directory that is read elsewhere. */
cv_status cv_store_create_over(cv_store *old, cv_store **out, cv_error *err);

/* Deletes the array that is open for writing: a regular file, or a directory with nothing
 * but an array's files, which is renamed first and so never found half deleted.
 * CATERVA_EBUSY for a directory that is read elsewhere. */
cv_status cv_store_delete(cv_store *store, cv_error *err);

#endif

/* The store of a directory. */
#ifndef CV_STORE_DIRECTORY_H
#define CV_STORE_DIRECTORY_H

#include "base/thread.h"
#include "store/descriptors.h"
#include "store/place.h"
#include "store/sframe.h"
#include "store/store.h"

/* Opens a directory with chunks.b2frame and one file for each chunk. A writer locks a file that
 * commits do not replace. Readers lock the directory itself, because they may lack the right to
 * write into it. */
cv_status cv_store_directory_open(const char *path, bool writable, cv_store **out,
                                  cv_error *err);
cv_status cv_store_directory_create(const char *path, bool overwrite, cv_store **out,
                                    cv_error *err);

#endif

/* The store of a directory, shared by its two files. */
#ifndef CV_STORE_DIRECTORY_H
#define CV_STORE_DIRECTORY_H

#include "base/thread.h"
#include "store/descriptors.h"
#include "store/place.h"
#include "store/sframe.h"
#include "store/store.h"

/* A directory with chunks.b2frame and chunk files. The writer locks a file that survives
 * commits; readers lock the directory itself, since they may not be able to write there. */
cv_status cv_store_directory_open(const char *path, bool writable, cv_store **out,
                                  cv_error *err);
cv_status cv_store_directory_create(const char *path, bool overwrite, cv_store **out,
                                    cv_error *err);

#endif

/* Stores that are a directory: opened, created, deleted. */
#ifndef CV_STORE_DIRECTORY_OPEN_H
#define CV_STORE_DIRECTORY_OPEN_H

#include "store/store.h"

/* A directory that holds chunks.b2frame and chunk files. The writer's lock is
 * taken on a file that survives the replacing of chunks.b2frame, a reader's on
 * the directory itself: it need not be able to write there. */
cv_status cv_store_directory_open(const char *path, bool writable, cv_store **out,
                                  cv_error *err);
cv_status cv_store_directory_create(const char *path, bool overwrite, cv_store **out,
                                    cv_error *err);

#endif

/* The store of a directory, shared by its two files. */
#ifndef CV_STORE_DIRECTORY_H
#define CV_STORE_DIRECTORY_H

#include "base/thread.h"
#include "store/descriptors.h"
#include "store/place.h"
#include "store/sframe.h"
#include "store/store.h"

/* A directory that holds chunks.b2frame and chunk files. The writer's lock is
 * taken on a file that survives the replacing of chunks.b2frame, a reader's on
 * the directory itself: it need not be able to write there. */
cv_status cv_store_directory_open(const char *path, bool writable, cv_store **out,
                                  cv_error *err);
cv_status cv_store_directory_create(const char *path, bool overwrite, cv_store **out,
                                    cv_error *err);

#endif

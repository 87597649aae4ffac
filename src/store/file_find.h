/* The way from a path to an open file that may hold a frame. */
#ifndef CV_STORE_FILE_FIND_H
#define CV_STORE_FILE_FIND_H

#include "store/home.h"

/* Opens the regular file at `path`, in which a frame may begin at byte `offset`. Who is going
 * to write gets the writer's lock and `home`, the file's name; a reader's `home` stays as it
 * is. Both are the caller's to close; after a failure there is nothing to close. */
cv_status cv_file_find(const char *path, uint64_t offset, bool writable, cv_file *file,
                       cv_home *home, cv_error *err);

#endif

/* Bytes behind the end of a file that is no store of ours. */
#ifndef CV_STORE_APPEND_H
#define CV_STORE_APPEND_H

#include "base/watch.h"

typedef struct cv_append {
    const char *path;
    const void *bytes;
    size_t size;
    bool durable;
    cv_watch *watch; /* hears of bytes, and may stop; or NULL */
} cv_append;

/* Writes the bytes behind the end of the regular file at the path, which is made when
 * there is none; *pos is where they begin. Takes the writer's lock. On failure the
 * file's length is as before. */
cv_status cv_store_file_append(const cv_append *append, uint64_t *pos, cv_error *err);

#endif

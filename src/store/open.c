/* Room: store. Which kind of store a path names. */
#include "store/store.h"

#include <sys/stat.h>

cv_status cv_store_open(const char *path, uint64_t offset, bool writable, cv_store **out,
                        cv_error *err)
{
    struct stat info;
    if (stat(path, &info) != 0 || !S_ISDIR(info.st_mode))
        return cv_store_file_open(path, offset, writable, out, err);
    if (offset != 0)
        return cv_fail(err, CATERVA_EINVAL, -1, "%.150s is a directory, which has no offsets",
                       path);
    return cv_store_directory_open(path, writable, out, err);
}

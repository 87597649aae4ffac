/* Room: store. Which kind of store a path names, or another store is. */
#include "store/open.h"

#include "store/directory_open.h"
#include "store/file.h"

#include "base/os_dir.h"

cv_status cv_store_open(const char *path, uint64_t offset, bool writable, cv_store **out,
                        cv_error *err)
{
    cv_file_info info;
    if (cv_dir_get_info(cv_dir_here, path, &info) != 0 || info.kind != CV_KIND_DIRECTORY)
        return cv_store_file_open(path, offset, writable, out, err);
    if (offset != 0)
        return cv_fail(err, CATERVA_EINVAL, -1, "%.150s is a directory, which has no offsets",
                       path);
    return cv_store_directory_open(path, writable, out, err);
}

cv_status cv_store_create_over(cv_store *old, cv_store **out, cv_error *err)
{
    return old->has_chunk_objects ? cv_store_directory_create_over(old, out, err)
                                  : cv_store_file_create_over(old, out, err);
}

cv_status cv_store_delete(cv_store *store, cv_error *err)
{
    return store->has_chunk_objects ? cv_store_directory_delete(store, err)
                                    : cv_store_file_delete(store, err);
}

/* Room: store. Which kind of store a path names, and what only some kinds can do. */
#include "store/open.h"

#include "base/os_dir.h"
#include "store/directory_open.h"
#include "store/file.h"
#include "store/memory.h"
#include "store/refusals.h"

#include <string.h>

cv_status cv_store_open(const char *path, uint64_t offset, bool writable, cv_store **out,
                        cv_error *err)
{
    cv_file_info info;
    if (writable) CV_TRY(cv_refuse_url(path, err));
    if (cv_dir_get_info(cv_dir_here, path, &info) != 0 || info.kind != CV_KIND_DIRECTORY)
        return cv_store_file_open(path, offset, writable, out, err);
    if (offset != 0)
        return cv_fail(err, CATERVA_EINVAL, -1, "%.150s is a directory, which has no offsets",
                       path);
    return cv_store_directory_open(path, writable, out, err);
}

cv_status cv_store_create(const char *path, caterva_layout layout, bool overwrite,
                          cv_store **out, cv_error *err)
{
    bool is_directory = layout == CATERVA_LAYOUT_SPARSE;
    bool is_memory = strcmp(path, "mem:") == 0;
    if (is_memory && is_directory)
        return cv_fail(err, CATERVA_EINVAL, -1, "an array in memory cannot be a directory");
    CV_TRY(cv_refuse_url(path, err));
    if (is_memory) return cv_store_memory_create(out, err);
    return is_directory ? cv_store_directory_create(path, overwrite, out, err)
                        : cv_store_file_create(path, overwrite, out, err);
}

cv_status cv_store_create_over(cv_store *old, cv_store **out, cv_error *err)
{
    if (!old->ops->create_over)
        return cv_fail(err, CATERVA_EINVAL, -1, "nothing can take the place of a %s",
                       old->ops->name);
    CV_TRY(cv_store_check_writable(old, err));
    return old->ops->create_over(old, out, err);
}

cv_status cv_store_delete(cv_store *store, cv_watch *watch, cv_error *err)
{
    if (!store->ops->unlink)
        return cv_fail(err, CATERVA_EINVAL, -1, "a %s cannot be deleted", store->ops->name);
    CV_TRY(cv_store_check_writable(store, err));
    return store->ops->unlink(store, watch, err);
}

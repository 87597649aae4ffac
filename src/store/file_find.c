/* Room: store. Finds the file of a path: opened, locked or shared, and of the kind that can
 * hold a frame. What is in it is not looked at. */
#include "store/file_find.h"

#include "base/heap.h"
#include "base/os_file.h"
#include "store/descriptors.h"
#include "store/keeper.h"
#include "store/refusals.h"

static cv_status check_regular(cv_file file, const char *path, uint64_t offset,
                               cv_file_info *info, cv_error *err)
{
    cv_shown_path shown = cv_show_path(path);
    int error = cv_file_get_info(file, info);
    if (error) return cv_fail_sys(err, error, "cannot look at %s", shown.text);
    if (info->kind == CV_KIND_DIRECTORY) return cv_fail_open(err, EISDIR, path);
    if (info->kind != CV_KIND_FILE)
        return cv_fail(err, CATERVA_EIO, -1, "%s is not a regular file", shown.text);
    if (offset > info->size)
        return cv_fail(err, CATERVA_ECORRUPT, 0,
                       "%s has %llu bytes, no frame can begin at byte %llu", shown.text,
                       (unsigned long long)info->size, (unsigned long long)offset);
    return CV_OK;
}

/* A read at byte 0 makes the system read ahead, and go on doing so with whatever is read near
 * it: a point in the file's first chunk had the disk deliver 68 KiB, in blocks of 128 KiB
 * 308. A page that is asked for beforehand comes alone. */
static void fetch_beginning(cv_file file, uint64_t offset, const cv_file_info *info)
{
    enum { LARGE = 256 * 1024, PAGE = 4096 };
    if (offset == 0 && info->size >= LARGE) cv_file_fetch(file, 0, PAGE);
}

/* Between opening and locking another process may publish over the path: a
 * lock on a file without its name would exclude nobody. */
static cv_status open_locked(const char *path, cv_file *file, cv_home *home, cv_error *err)
{
    for (;;) {
        int error = cv_open_file(cv_dir_here, path, CV_OPEN_BOTH, 0, file);
        if (error) return cv_fail_open(err, error, path);
        error = cv_file_lock(*file);
        cv_status status = error ? cv_fail_lock(err, error, path)
                                 : cv_home_find(path, *file, false, home, err);
        bool is_there = status == CV_OK && cv_home_leads_to(home, *file);
        if (is_there && cv_keeper_has(home->dir, *file))
            status = cv_fail_lock(err, EWOULDBLOCK, path);
        if (is_there && status == CV_OK) return CV_OK;
        cv_home_close(home);
        cv_file_close(file);
        CV_TRY(status);
    }
}

/* The lock comes before the first byte is read: a writer that does not see it
 * has not yet reused what this reader will see as live. Where it cannot be had,
 * a writer cannot ask for it either, and reuses nothing. */
static cv_status open_for_reading(const char *path, cv_file *file, cv_error *err)
{
    int error = cv_open_file(cv_dir_here, path, CV_OPEN_READ, 0, file);
    if (error) return cv_fail_open(err, error, path);
    (void)cv_file_share(*file);
    return CV_OK;
}

static cv_status open_it(const char *path, bool writable, cv_file *file, cv_home *home,
                         cv_error *err)
{
    char *stripped;
    CV_TRY(cv_strip_slashes(path, &stripped, err));
    cv_status status = writable ? open_locked(stripped, file, home, err)
                                : open_for_reading(stripped, file, err);
    cv_free(stripped);
    return status;
}

cv_status cv_file_find(const char *path, uint64_t offset, bool writable, cv_file *file,
                       cv_home *home, cv_error *err)
{
    cv_file_info info;
    CV_TRY(open_it(path, writable, file, home, err));
    cv_status status = check_regular(*file, path, offset, &info, err);
    if (status == CV_OK) {
        fetch_beginning(*file, offset, &info);
        return CV_OK;
    }
    if (writable) cv_home_close(home);
    cv_file_close(file);
    return status;
}

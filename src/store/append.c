/* Room: store. Bytes behind the end of a file. */
#include "store/append.h"

#include "base/heap.h"
#include "base/os_file.h"
#include "store/descriptors.h"
#include "store/refusals.h"

#include <string.h>

static int sync_parent(const char *path)
{
    char *parent = cv_strdup(path);
    if (!parent) return ENOMEM;
    char *slash = strrchr(parent, '/');
    if (slash) slash[slash == parent] = '\0';
    cv_dir dir;
    int error = cv_open_dir(cv_dir_here, slash ? parent : ".", 0, &dir);
    cv_free(parent);
    if (error) return error;
    error = cv_dir_sync(dir);
    cv_dir_close(&dir);
    return error;
}

/* Between opening and locking another process may put another file there. */
static cv_status open_locked(const char *path, cv_file *file, cv_error *err)
{
    for (;;) {
        unsigned how = CV_OPEN_BOTH | CV_OPEN_CREATE;
        int error = cv_open_file(cv_dir_here, path, how, 0666, file);
        if (error) return cv_fail_open(err, error, path);
        error = cv_file_lock(*file);
        if (!error && cv_dir_names(cv_dir_here, path, *file)) return CV_OK;
        cv_file_close(file);
        if (error) return cv_fail_lock(err, error, path);
    }
}

/* Locked before its length is looked at. */
static cv_status open_end(const char *path, cv_file *file, uint64_t *end, cv_error *err)
{
    cv_file_info info;
    cv_status status = CV_OK;
    CV_TRY(open_locked(path, file, err));
    int error = cv_file_get_info(*file, &info);
    if (error)
        status = cv_fail_open(err, error, path);
    else if (info.kind != CV_KIND_FILE)
        status = cv_fail(err, CATERVA_EIO, -1, "%s is not a regular file",
                         cv_show_path(path).text);
    if (status != CV_OK) {
        cv_file_close(file);
        return status;
    }
    *end = info.size;
    return CV_OK;
}

/* A number of the system's, or what the watch said. */
static int write_pieces(const cv_append *a, cv_file file, uint64_t pos, cv_status *stopped,
                        cv_error *err)
{
    enum { PIECE = 8 << 20 };
    const uint8_t *bytes = a->bytes;
    cv_watch_expect(a->watch, (int64_t)a->size);
    for (size_t done = 0; done < a->size;) {
        size_t size = a->size - done < PIECE ? a->size - done : PIECE;
        *stopped = cv_watch_tick(a->watch, 0, err);
        if (*stopped != CV_OK) return 0;
        int error = cv_file_write(file, bytes + done, size, pos + done);
        if (error) return error;
        cv_watch_add(a->watch, (int64_t)size);
        done += size;
    }
    return 0;
}

static int sync_end(const cv_append *a, cv_file file, uint64_t pos)
{
    int error = a->durable ? cv_file_sync(file) : 0;
    return !error && a->durable && pos == 0 ? sync_parent(a->path) : error;
}

cv_status cv_store_file_append(const cv_append *a, uint64_t *pos, cv_error *err)
{
    cv_file file;
    cv_status status = CV_OK;
    CV_TRY(cv_refuse_url(a->path, err));
    CV_TRY(open_end(a->path, &file, pos, err));
    int error = write_pieces(a, file, *pos, &status, err);
    if (!error && status == CV_OK) error = sync_end(a, file, *pos);
    bool is_cut = !error && status == CV_OK;
    if (!is_cut) is_cut = cv_file_truncate(file, *pos) == 0;
    if (!error && status == CV_OK && !cv_dir_names(cv_dir_here, a->path, file))
        status = cv_fail(err, CATERVA_EIO, -1,
                         "%s was moved, deleted or replaced by others meanwhile",
                         cv_show_path(a->path).text);
    if (error)
        status = cv_fail_sys(err, error, "cannot append to %s%s", cv_show_path(a->path).text,
                             is_cut ? "" : ", whose end is not as it was");
    cv_file_unlock(file);
    cv_file_close(&file);
    return status;
}

/* Room: jobs. Creates, lists, counts and deletes folders of jobs beside an array. Does not
 * know the contents of records and parts. */
#include "jobs/folder.h"

#include "array/open.h"
#include "base/os_file.h"
#include "base/thread.h"
#include "store/descriptors.h"
#include "store/path.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

/* ---- Directories of parts ---------------------------------------------------------- */

#define CV_JOB_RECORD "job"

static int64_t parts_bytes(cv_dir parent, const char *name)
{
    cv_listing listing;
    int error;
    int64_t n = 0;
    if (cv_listing_open_at(parent, name, &listing)) return 0;
    while (cv_listing_next(&listing, &error)) n += CV_FILE_BYTES;
    cv_listing_close(&listing);
    return n;
}

static int parts_tell(cv_watch *watch, int64_t bytes)
{
    return cv_watch_tick(watch, bytes, NULL) == CV_OK ? 0 : ECANCELED;
}

static int remove_files(cv_dir parent, const char *name, cv_watch *watch)
{
    cv_listing listing;
    int error = cv_listing_open_at(parent, name, &listing);
    if (error) return error;
    const char *entry;
    while (!error && (entry = cv_listing_next(&listing, &error))) {
        error = cv_dir_remove(listing.dir, entry);
        if (error == ENOENT) error = 0;
        cv_watch_expect(watch, CV_FILE_BYTES);
        if (!error) error = parts_tell(watch, CV_FILE_BYTES);
    }
    cv_listing_close(&listing);
    return error;
}

/* Deletes a part: a file, or a directory, whose files the watch counts. */
static int part_remove(cv_dir dir, const char *name, cv_watch *watch)
{
    int error = cv_dir_remove(dir, name);
    if (error != EISDIR && error != EPERM) return error == ENOENT ? 0 : error;
    error = remove_files(dir, name, watch);
    if (!error) error = cv_dir_remove_directory(dir, name);
    return error == ENOENT ? 0 : error;
}

/* Deletes all parts in a folder that it can delete (others may belong to other users), but not the
 * record. Returns the first error. */
static int remove_parts(cv_dir parent, const char *name, cv_watch *watch)
{
    cv_listing listing;
    int error = cv_listing_open_at(parent, name, &listing);
    if (error) return error;
    const char *entry;
    int failed = 0;
    while (failed != ECANCELED && (entry = cv_listing_next(&listing, &error))) {
        int one =
            strcmp(entry, CV_JOB_RECORD) != 0 ? part_remove(listing.dir, entry, watch) : 0;
        if (one && !failed) failed = one;
        if (one != ECANCELED) one = parts_tell(watch, CV_FILE_BYTES);
        if (one == ECANCELED) failed = one;
    }
    cv_listing_close(&listing);
    return failed ? failed : error;
}

/* Deletes a folder with its contents, which the watch counts. The record is deleted last, because a
 * folder without it is not listed; from then on the watch cannot stop the call. */
static int parts_remove(cv_dir all, const char *name, cv_watch *watch)
{
    int error = ENOTEMPTY; /* twice: a worker may add a file meanwhile */
    for (int i = 0; i < 2 && (error == ENOTEMPTY || error == EEXIST); i++) {
        error = remove_parts(all, name, watch);
        if (!error) error = remove_files(all, name, NULL);
        if (!error) error = cv_dir_remove_directory(all, name);
    }
    return error;
}

/* Deletes all folders with this prefix, which are those of unfinished or ended jobs. Adds their
 * parts to the watch's total. Ignores errors; the watch may stop it. */
static int parts_sweep(cv_dir all, const char *prefix, cv_watch *watch)
{
    cv_dir again;
    cv_listing listing;
    int error, stopped = 0;
    if (cv_open_dir(all, ".", 0, &again) || cv_listing_open(again, &listing)) return 0;
    const char *name;
    while (!stopped && (name = cv_listing_next(&listing, &error))) {
        if (strncmp(name, prefix, strlen(prefix)) != 0) continue;
        cv_watch_expect(watch, watch ? parts_bytes(all, name) : 0);
        if (parts_remove(all, name, watch) == ECANCELED) stopped = ECANCELED;
    }
    cv_listing_close(&listing);
    return stopped;
}

/* ---- Names and paths --------------------------------------------------------------- */

/* The folder of a job is named by its id: with the prefix TEMP until it is complete, and with GONE
 * after the job has ended. REPLACED is a file in it, see cv_job_folders_replaced. */
#define TEMP ".tmp-"
#define GONE ".gone-"
#define REPLACED ".replaced"

enum { ID_DIGITS = 32, MOST_RECORD = 1 << 20 };

/* Resolves a symbolic link, as opening the array does, unless it is dangling. Free with cv_free. */
static cv_status array_path(const char *path, char **out, cv_error *err)
{
    cv_file_info info;
    CV_TRY(cv_strip_slashes(path, out, err));
    if (cv_dir_get_link_info(cv_dir_here, *out, &info) || info.kind != CV_KIND_LINK)
        return CV_OK;
    char *real = cv_os_real_path(*out);
    if (!real) return CV_OK;
    cv_free(*out);
    *out = real;
    return CV_OK;
}

cv_status cv_job_place(const char *url, char **path, cv_error *err)
{
    if (cv_array_is_leaf_url(url)) {
        CV_TRY(cv_check_built(cv_wings.tree, "CATERVA_TREES", err));
        return cv_wings.tree->parts_place(url, path, err);
    }
    *path = cv_strdup(url);
    return *path ? CV_OK : cv_fail_memory(err, strlen(url), "a path");
}

cv_status cv_job_path(const char *path, const char *id, const char *name, char **out,
                      cv_error *err)
{
    char *bare;
    CV_TRY(array_path(path, &bare, err));
    size_t size = strlen(bare) + sizeof CV_JOB_FOLDERS + (id ? strlen(id) + 1 : 0) +
                  (name ? strlen(name) + 1 : 0);
    *out = cv_malloc(size);
    if (*out)
        (void)snprintf(*out, size, "%s" CV_JOB_FOLDERS "%s%s%s%s", bare, id ? "/" : "",
                       id ? id : "", name ? "/" : "", name ? name : "");
    cv_free(bare);
    return *out ? CV_OK : cv_fail_memory(err, size, "a path");
}

static bool is_id(const char *name)
{
    return strlen(name) == ID_DIGITS && strspn(name, "0123456789abcdef") == ID_DIGITS;
}

static cv_status fail(cv_error *err, int error, const char *what, const char *path)
{
    if (error == ENOENT)
        return cv_fail(err, CATERVA_ENOTFOUND, -1, "there is no %s at %s", what,
                       cv_show_path(path).text);
    if (error == ECANCELED)
        return cv_fail(err, CATERVA_ESTOPPED, -1, "stopped while processing the %s at %s",
                       what, cv_show_path(path).text);
    return cv_fail_sys(err, error, "the %s at %s", what, cv_show_path(path).text);
}

/* Renames the job's folder to `gone`. This ends the job in one step, even if the call fails while
 * it deletes parts. Succeeds if the job has ended before and its folder still exists. */
static int take_name(cv_dir all, const char *id, const char *gone)
{
    char temp[ID_DIGITS + sizeof TEMP];
    (void)snprintf(temp, sizeof temp, TEMP "%s", id);
    int error = cv_dir_rename(all, id, gone);
    if (error == ENOENT) error = cv_dir_rename(all, temp, gone);
    cv_file_info info;
    if (error == ENOENT) error = cv_dir_get_link_info(all, gone, &info);
    return error;
}

struct cv_job_removal {
    char *parts; /* the directory of all jobs */
    cv_dir all;
    char gone[ID_DIGITS + sizeof GONE]; /* present name of the folder */
    cv_mutex lock;                      /* of the listing */
    cv_listing listing;                 /* of the folder; not open if that failed */
    cv_watch *watch;
    atomic_bool stopped;
};

/* Adds the folder's contents to the watch's total. The last chance to stop before the job ends. */
static int announce(const cv_job_removal *r, const char *id)
{
    if (!r->watch) return 0;
    int64_t n = parts_bytes(r->all, id);
    cv_watch_expect(r->watch, n > 0 ? n : parts_bytes(r->all, r->gone));
    return parts_tell(r->watch, 0);
}

static int begin_removal(cv_job_removal *r, const char *id)
{
    cv_dir dir;
    (void)snprintf(r->gone, sizeof r->gone, GONE "%s", id);
    int error = cv_open_dir(cv_dir_here, r->parts, 0, &r->all);
    if (!error) error = announce(r, id);
    if (!error) error = take_name(r->all, id, r->gone);
    if (!error && (cv_open_dir(r->all, r->gone, CV_OPEN_NO_LINK, &dir) ||
                   cv_listing_open(dir, &r->listing)))
        r->listing = (cv_listing){.system = NULL};
    return error;
}

static void free_removal(cv_job_removal *r)
{
    if (r->listing.system) cv_listing_close(&r->listing);
    cv_dir_close(&r->all);
    cv_mutex_destroy(&r->lock);
    cv_free(r->parts);
    cv_free(r);
}

cv_status cv_job_removal_begin(const char *path, const char *id, cv_watch *watch,
                               cv_job_removal **out, cv_error *err)
{
    cv_job_removal *r = cv_calloc(1, sizeof *r);
    if (!r) return cv_fail_memory(err, sizeof *r, "a list of parts");
    cv_mutex_init(&r->lock);
    atomic_init(&r->stopped, false);
    r->watch = watch;
    cv_status status = cv_job_path(path, NULL, NULL, &r->parts, err);
    if (status == CV_OK) {
        int error = begin_removal(r, id);
        if (error) status = fail(err, error, "job", r->parts);
    }
    if (status == CV_OK)
        *out = r;
    else
        free_removal(r);
    return status;
}

static bool next_part(cv_job_removal *r, char *name, size_t size)
{
    const char *entry = NULL;
    int error = 0;
    cv_mutex_lock(&r->lock);
    if (r->listing.system) do
            entry = cv_listing_next(&r->listing, &error);
        while (entry && (strcmp(entry, CV_JOB_RECORD) == 0 || strlen(entry) >= size));
    if (entry) memcpy(name, entry, strlen(entry) + 1);
    cv_mutex_unlock(&r->lock);
    return entry != NULL;
}

bool cv_job_removal_step(cv_job_removal *r)
{
    char name[CV_OS_TEMP_NAME];
    if (atomic_load(&r->stopped) || !next_part(r, name, sizeof name)) return false;
    int error =
        part_remove(r->listing.dir, name, r->watch); /* cv_job_removal_end tries again */
    if (error != ECANCELED) error = parts_tell(r->watch, CV_FILE_BYTES);
    if (error == ECANCELED) atomic_store(&r->stopped, true);
    return error != ECANCELED;
}

static int finish_removal(cv_job_removal *r)
{
    if (atomic_load(&r->stopped)) return ECANCELED;
    int error = parts_remove(r->all, r->gone, r->watch);
    if (error != ECANCELED) (void)parts_sweep(r->all, GONE, r->watch);
    return error;
}

cv_status cv_job_removal_end(cv_job_removal *r, cv_error *err)
{
    int error = finish_removal(r);
    if (!error) (void)cv_dir_remove_directory(cv_dir_here, r->parts);
    cv_status status = error ? fail(err, error, "job", r->parts) : CV_OK;
    free_removal(r);
    return status;
}

cv_status cv_job_folder_remove(const char *path, const char *id, cv_watch *watch,
                               cv_error *err)
{
    cv_job_removal *removal;
    CV_TRY(cv_job_removal_begin(path, id, watch, &removal, err));
    return cv_job_removal_end(removal, err);
}

/* ---- Creation ---------------------------------------------------------------------- */

static int make_folder(const char *parts, const char *temp, cv_watch *watch)
{
    cv_dir all;
    int error = cv_dir_make(cv_dir_here, parts, 0777);
    if (error && error != EEXIST) return error;
    error = cv_open_dir(cv_dir_here, parts, 0, &all);
    if (error) return error;
    error = parts_sweep(all, TEMP, watch);
    if (!error) error = parts_sweep(all, GONE, watch);
    cv_dir_close(&all);
    return error ? error : cv_dir_make(cv_dir_here, temp, 0777);
}

static cv_status temp_path(const char *path, const char *id, char **out, cv_error *err)
{
    char name[ID_DIGITS + sizeof TEMP];
    (void)snprintf(name, sizeof name, TEMP "%s", id);
    return cv_job_path(path, name, NULL, out, err);
}

cv_status cv_job_folder_make(const char *path, const char *id, cv_watch *watch, char **temp,
                             cv_error *err)
{
    char *parts;
    CV_TRY(cv_job_path(path, NULL, NULL, &parts, err));
    cv_status status = temp_path(path, id, temp, err);
    if (status == CV_OK) {
        int error = make_folder(parts, *temp, watch);
        if (error) {
            status = error == ECANCELED
                         ? fail(err, error, "job", *temp)
                         : cv_fail_sys(err, error, "making %s", cv_show_path(*temp).text);
            cv_free(*temp);
            *temp = NULL;
        }
    }
    cv_free(parts);
    return status;
}

static int write_record(cv_dir dir, const cv_buffer *record, bool durable, cv_file *lock)
{
    unsigned how = CV_OPEN_BOTH | CV_OPEN_CREATE | CV_OPEN_NEW;
    int error = cv_open_file(dir, CV_JOB_RECORD, how, 0666, lock);
    if (error) return error;
    error = cv_file_write(*lock, record->data, record->size, 0);
    if (!error && durable) error = cv_file_sync(*lock);
    if (!error && durable) error = cv_dir_sync(dir);
    if (!error) (void)cv_file_lock(*lock); /* shows other processes that the job is owned */
    return error;
}

cv_status cv_job_folder_name(const char *path, const char *id, const cv_buffer *record,
                             bool durable, cv_file *lock, cv_error *err)
{
    char *from = NULL, *to = NULL, *parts = NULL;
    cv_dir dir = {0}, all = {0};
    *lock = (cv_file){0};
    cv_status status = temp_path(path, id, &from, err);
    if (status == CV_OK) status = cv_job_path(path, id, NULL, &to, err);
    if (status == CV_OK) status = cv_job_path(path, NULL, NULL, &parts, err);
    if (status == CV_OK) {
        int error = cv_open_dir(cv_dir_here, from, 0, &dir);
        if (!error) error = write_record(dir, record, durable, lock);
        if (!error) error = cv_dir_rename(cv_dir_here, from, to);
        if (!error && durable) error = cv_open_dir(cv_dir_here, parts, 0, &all);
        if (!error && durable) error = cv_dir_sync(all);
        if (error) status = cv_fail_sys(err, error, "making %s", cv_show_path(to).text);
    }
    if (status != CV_OK) cv_file_close(lock);
    cv_dir_close(&dir);
    cv_dir_close(&all);
    cv_free(from);
    cv_free(to);
    cv_free(parts);
    return status;
}

/* ---- Inspection -------------------------------------------------------------------- */

cv_status cv_job_folder_read(const char *path, const char *id, cv_buffer *record,
                             cv_error *err)
{
    char *name;
    cv_file file;
    uint64_t size = 0;
    size_t done = 0;
    CV_TRY(cv_job_path(path, id, CV_JOB_RECORD, &name, err));
    int error = cv_open_file(cv_dir_here, name, CV_OPEN_READ, 0, &file);
    cv_status status = error ? fail(err, error, "job", name) : CV_OK;
    if (!error) {
        error = cv_file_size(file, &size);
        if (!error && size > MOST_RECORD) error = EFBIG;
        if (!error) status = cv_buffer_resize(record, (size_t)size, err);
        if (!error && status == CV_OK)
            error = cv_file_read(file, record->data, (size_t)size, 0, &done);
        record->size = done;
        if (error) status = fail(err, error, "job", name);
        cv_file_close(&file);
    }
    cv_free(name);
    return status;
}

static int add_part(cv_dir dir, const char *name, cv_watch *watch, int64_t *bytes)
{
    cv_file_info info;
    cv_dir inner;
    cv_listing listing;
    int error, stopped = 0;
    if (cv_dir_get_link_info(dir, name, &info)) return 0;
    if (info.kind != CV_KIND_DIRECTORY) {
        *bytes += (int64_t)info.size;
        return 0;
    }
    if (cv_open_dir(dir, name, CV_OPEN_NO_LINK, &inner) || cv_listing_open(inner, &listing))
        return 0;
    const char *file;
    while (!stopped && (file = cv_listing_next(&listing, &error))) {
        if (!cv_dir_get_link_info(listing.dir, file, &info)) *bytes += (int64_t)info.size;
        stopped = parts_tell(watch, 0);
    }
    cv_listing_close(&listing);
    return stopped;
}

static bool is_locked(cv_dir dir)
{
    cv_file file;
    if (cv_open_file(dir, CV_JOB_RECORD, CV_OPEN_READ, 0, &file)) return false;
    bool locked = cv_file_ask_lock(file) == EWOULDBLOCK;
    cv_file_close(&file);
    return locked;
}

static bool is_part(const char *name)
{
    return name[0] != '.' && strcmp(name, CV_JOB_RECORD) != 0 &&
           strcmp(name, CV_JOB_BASE) != 0;
}

static int look(cv_dir dir, cv_watch *watch, cv_job_look *out)
{
    cv_listing listing;
    const char *name;
    out->is_live = is_locked(dir);
    cv_watch_expect(watch, watch ? parts_bytes(dir, ".") : 0);
    int error = cv_listing_open(dir, &listing);
    if (error) return error;
    int stopped = 0;
    while (!stopped && (name = cv_listing_next(&listing, &error))) {
        out->n_parts += is_part(name);
        if (is_part(name)) stopped = add_part(listing.dir, name, watch, &out->part_bytes);
        if (!stopped) stopped = parts_tell(watch, CV_FILE_BYTES);
    }
    cv_listing_close(&listing);
    return stopped ? stopped : error;
}

cv_status cv_job_folder_look(const char *path, const char *id, cv_watch *watch,
                             cv_job_look *out, cv_error *err)
{
    char *folder;
    cv_dir dir;
    *out = (cv_job_look){false, 0, 0};
    CV_TRY(cv_job_path(path, id, NULL, &folder, err));
    int error = cv_open_dir(cv_dir_here, folder, 0, &dir);
    if (!error) error = look(dir, watch, out);
    cv_status status = error ? fail(err, error, "job", folder) : CV_OK;
    cv_free(folder);
    return status;
}

const char *cv_job_folder_id(const char *name)
{
    size_t size = strlen(GONE);
    return strncmp(name, GONE, size) == 0 ? name + size : name;
}

cv_status cv_job_folders(const char *path, cv_job_visit_fn visit, void *context,
                         cv_error *err)
{
    char *parts;
    cv_dir all;
    cv_listing listing;
    CV_TRY(cv_job_path(path, NULL, NULL, &parts, err));
    int error = cv_open_dir(cv_dir_here, parts, 0, &all);
    if (!error) error = cv_listing_open(all, &listing);
    cv_status status = CV_OK;
    if (!error) {
        const char *name;
        while (status == CV_OK && (name = cv_listing_next(&listing, &error)))
            if (is_id(cv_job_folder_id(name))) status = visit(context, name, err);
        cv_listing_close(&listing);
    }
    if (error && error != ENOENT) status = fail(err, error, "directory of jobs", parts);
    cv_free(parts);
    return status;
}

/* ---- Replaced arrays --------------------------------------------------------------- */

typedef struct replaced {
    const char *path;
    cv_job_is_own_fn is_own;
    const void *context;
} replaced;

static cv_status note_replaced(void *context, const char *name, cv_error *err)
{
    const replaced *r = context;
    char *note;
    cv_file file;
    if (r->is_own(r->context, cv_job_folder_id(name))) return CV_OK;
    CV_TRY(cv_job_path(r->path, name, REPLACED, &note, err));
    if (!cv_open_file(cv_dir_here, note, CV_OPEN_BOTH | CV_OPEN_CREATE, 0666, &file))
        cv_file_close(&file);
    cv_free(note);
    return CV_OK;
}

void cv_job_folders_replaced(const char *path, cv_job_is_own_fn is_own, const void *context)
{
    replaced r = {.path = path, .is_own = is_own, .context = context};
    (void)cv_job_folders(path, note_replaced, &r, NULL);
}

cv_status cv_job_folder_check(const char *path, const char *id, cv_error *err)
{
    char *note;
    cv_file_info info;
    CV_TRY(cv_job_path(path, id, REPLACED, &note, err));
    bool is_replaced = cv_dir_get_link_info(cv_dir_here, note, &info) == 0;
    cv_free(note);
    if (!is_replaced) return CV_OK;
    return cv_fail(err, CATERVA_ESTALE, -1,
                   "job %s was begun for an array that has been replaced at %s", id,
                   cv_show_path(path).text);
}

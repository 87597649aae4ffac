/* Folders of jobs. A watch, or NULL, counts parts and may stop calls: those that return int
 * return 0 or an errno number, ECANCELED if stopped. */
#ifndef CV_JOBS_FOLDER_H
#define CV_JOBS_FOLDER_H

#include "array/wings.h"
#include "base/heap.h"
#include "base/os_dir.h"
#include "base/watch.h"

#define CV_JOB_BASE "base.b2nd"

/* The path that parts of the array at `url` lie beside; a URL that is no path stays as it is,
 * and has no parts. Owned: cv_free. */
cv_status cv_job_place(const char *url, char **path, cv_error *err);

/* The job folder `id` of the array at `path`, and `name` in it (NULL: the folder). `id` NULL:
 * the directory of all jobs. Owned: cv_free. */
cv_status cv_job_path(const char *path, const char *id, const char *name, char **out,
                      cv_error *err);

/* First makes the folder under a temporary name, *temp, and sweeps those of others: only the
 * caller may begin jobs. Then, when it is filled, adds the record, locks it and renames the
 * folder. *lock is open while the job is owned; none if the file system has no locks. The
 * watch may stop the first call. */
cv_status cv_job_folder_make(const char *path, const char *id, cv_watch *watch, char **temp,
                             cv_error *err);
cv_status cv_job_folder_name(const char *path, const char *id, const cv_buffer *record,
                             bool durable, cv_file *lock, cv_error *err);

/* Removes the folder of a job, named, not yet or not any more, and all that is in it;
 * CATERVA_ENOTFOUND without one. After CATERVA_EIO what could be removed is. The watch, or
 * NULL, counts what is in the folder; stopped before anything has happened the job is what it
 * was, and later it has ended and the rest is still there.
 * The directory of all jobs goes with the last of them. */
cv_status cv_job_folder_remove(const char *path, const char *id, cv_watch *watch,
                               cv_error *err);

/* The same in steps that many threads may take, each deleting a part, until one returns
 * false; after the last, the end deletes the rest and frees. Freeing the page cache of a
 * large file takes 0.07 ms for each MB. */
typedef struct cv_job_removal cv_job_removal;
cv_status cv_job_removal_begin(const char *path, const char *id, cv_watch *watch,
                               cv_job_removal **out, cv_error *err);
bool cv_job_removal_step(cv_job_removal *removal);
cv_status cv_job_removal_end(cv_job_removal *removal, cv_error *err);

/* The record in a folder, appended. CATERVA_ENOTFOUND: there is no such job. */
cv_status cv_job_folder_read(const char *path, const char *id, cv_buffer *record,
                             cv_error *err);

/* Notes in all jobs' folders but those `is_own` accepts that another array replaced theirs.
 * Best effort. */
typedef bool (*cv_job_is_own_fn)(const void *context, const char *id);
void cv_job_folders_replaced(const char *path, cv_job_is_own_fn is_own, const void *context);

/* CATERVA_ESTALE: it has been noted of this job. */
cv_status cv_job_folder_check(const char *path, const char *id, cv_error *err);

/* The id in a folder's name; the name itself: the job has not ended. Borrowed. */
const char *cv_job_folder_id(const char *name);

/* What is known of a folder by looking. The watch, or NULL, counts parts. */
typedef struct cv_job_look {
    bool is_live; /* the record is locked */
    int64_t n_parts;
    int64_t part_bytes;
} cv_job_look;
cv_status cv_job_folder_look(const char *path, const char *id, cv_watch *watch,
                             cv_job_look *out, cv_error *err);

/* Calls `visit` for each folder, in any order, with a job's id, or the name of what is left
 * of an ended one; both do for cv_job_folder_read and _look. No job: CV_OK. */
typedef cv_status (*cv_job_visit_fn)(void *context, const char *name, cv_error *err);
cv_status cv_job_folders(const char *path, cv_job_visit_fn visit, void *context,
                         cv_error *err);

#endif

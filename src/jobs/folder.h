/* Folders of jobs. A watch (or NULL) counts parts and can stop calls. Functions that return
 * int return 0 or an errno number; ECANCELED if stopped. */
#ifndef CV_JOBS_FOLDER_H
#define CV_JOBS_FOLDER_H

#include "array/wings.h"
#include "base/heap.h"
#include "base/os_dir.h"
#include "base/watch.h"

#define CV_JOB_BASE "base.b2nd"

/* Returns the path that the parts of the array at `url` are beside. A URL that is not a path
 * stays unchanged and has no parts. Free with cv_free. */
cv_status cv_job_place(const char *url, char **path, cv_error *err);

/* Returns the path of job folder `id` of the array at `path`, or of `name` in it (unless
 * NULL). `id` NULL: the directory of all jobs. Free with cv_free. */
cv_status cv_job_path(const char *path, const char *id, const char *name, char **out,
                      cv_error *err);

/* Creating a job folder takes two steps; only the caller may begin jobs meanwhile. _make
 * creates it under a temporary name, *temp, and deletes leftover folders of unfinished or
 * ended jobs; the watch may stop it. After the caller has filled the folder, _name adds the
 * record, locks it and renames the folder. *lock is open as long as the job is owned; it is
 * not open if the file system has no locks. */
cv_status cv_job_folder_make(const char *path, const char *id, cv_watch *watch, char **temp,
                             cv_error *err);
cv_status cv_job_folder_name(const char *path, const char *id, const cv_buffer *record,
                             bool durable, cv_file *lock, cv_error *err);

/* Deletes the folder of a job and everything in it, whether it has its name, a temporary
 * name, or one of an ended job. CATERVA_ENOTFOUND if there is none. After CATERVA_EIO,
 * everything that could be deleted is deleted. The watch (or NULL) counts what is in the
 * folder. If it stops the call at the beginning, the job is unchanged; if later, the job has
 * ended and the rest still exists. The directory of all jobs is deleted with the last job. */
cv_status cv_job_folder_remove(const char *path, const char *id, cv_watch *watch,
                               cv_error *err);

/* The same in steps. Many threads may call _step, each deleting a part, until it returns
 * false. After the last, _end deletes the rest and frees the removal. (Freeing the page cache
 * of a large file takes 0.07 ms per MB.) */
typedef struct cv_job_removal cv_job_removal;
cv_status cv_job_removal_begin(const char *path, const char *id, cv_watch *watch,
                               cv_job_removal **out, cv_error *err);
bool cv_job_removal_step(cv_job_removal *removal);
cv_status cv_job_removal_end(cv_job_removal *removal, cv_error *err);

/* Appends the record of a job to `record`. CATERVA_ENOTFOUND: there is no such job. */
cv_status cv_job_folder_read(const char *path, const char *id, cv_buffer *record,
                             cv_error *err);

/* Notes in the folders of all jobs, except those that `is_own` accepts, that another array
 * has replaced theirs. Best effort. */
typedef bool (*cv_job_is_own_fn)(const void *context, const char *id);
void cv_job_folders_replaced(const char *path, cv_job_is_own_fn is_own, const void *context);

/* CATERVA_ESTALE if such a note exists for this job. */
cv_status cv_job_folder_check(const char *path, const char *id, cv_error *err);

/* Returns the id in a folder's name; `name` itself if the job has not ended. Borrowed. */
const char *cv_job_folder_id(const char *name);

/* What a folder shows. The watch (or NULL) counts parts. */
typedef struct cv_job_look {
    bool is_live; /* a process holds the lock of the record */
    int64_t n_parts;
    int64_t part_bytes;
} cv_job_look;
cv_status cv_job_folder_look(const char *path, const char *id, cv_watch *watch,
                             cv_job_look *out, cv_error *err);

/* Calls `visit` for each folder, in any order, with the id of a job, or the name of the folder that
 * an ended job has left; cv_job_folder_read and _look accept both. CV_OK if there are no jobs. */
typedef cv_status (*cv_job_visit_fn)(void *context, const char *name, cv_error *err);
cv_status cv_job_folders(const char *path, cv_job_visit_fn visit, void *context,
                         cv_error *err);

#endif

/* Folders of jobs, which contain parts. A watch (or NULL) counts parts and can stop a call.
 * Functions that return int return 0 or an errno number; ECANCELED if the watch stopped them. */
#ifndef CV_JOBS_FOLDER_H
#define CV_JOBS_FOLDER_H

#include "array/wings.h"
#include "base/heap.h"
#include "base/os_dir.h"
#include "base/watch.h"

#define CV_JOB_BASE "base.b2nd"

/* Returns the path of the array's file, beside which its parts are. A URL that is neither a path
 * nor names an array in a tree is returned unchanged; it has no parts. Free with cv_free. */
cv_status cv_job_place(const char *url, char **path, cv_error *err);

/* Returns the path of job folder `id` of the array at `path` or, if `name` is not NULL, of `name`
 * in this folder. If `id` is NULL: of the directory of all jobs. Free with cv_free. */
cv_status cv_job_path(const char *path, const char *id, const char *name, char **out,
                      cv_error *err);

/* Create a job folder in two steps; meanwhile no other caller may begin a job of the array.
 * cv_job_folder_make deletes leftover folders of unfinished or ended jobs, and creates the folder
 * under a temporary name, *temp; the watch may stop it. The caller then fills the folder.
 * cv_job_folder_name adds the record, locks it and renames the folder. *lock stays open as long as
 * the process owns the job; it is not locked if the file system has no locks. */
cv_status cv_job_folder_make(const char *path, const char *id, cv_watch *watch, char **temp,
                             cv_error *err);
cv_status cv_job_folder_name(const char *path, const char *id, const cv_buffer *record,
                             bool durable, cv_file *lock, cv_error *err);

/* Deletes the folder of a job with its contents, whether it has its own name, a temporary name, or
 * that of an ended job. CATERVA_ENOTFOUND if there is no such folder. After CATERVA_EIO, everything
 * that could be deleted is deleted. The watch (or NULL) counts the folder's contents. If it stops
 * the call at the beginning, the job is unchanged. If it stops the call later, the job has ended,
 * and some of the contents still exist. The directory of all jobs is deleted with the last job. */
cv_status cv_job_folder_remove(const char *path, const char *id, cv_watch *watch,
                               cv_error *err);

/* The same in steps, because freeing the page cache of a large file takes 0.07 ms per MB. Many
 * threads may call cv_job_removal_step, which deletes one part, until it returns false. After the
 * last call, cv_job_removal_end deletes the rest and frees the removal. */
typedef struct cv_job_removal cv_job_removal;
cv_status cv_job_removal_begin(const char *path, const char *id, cv_watch *watch,
                               cv_job_removal **out, cv_error *err);
bool cv_job_removal_step(cv_job_removal *removal);
cv_status cv_job_removal_end(cv_job_removal *removal, cv_error *err);

/* Appends the record of a job to `record`. CATERVA_ENOTFOUND: there is no such job. */
cv_status cv_job_folder_read(const char *path, const char *id, cv_buffer *record,
                             cv_error *err);

/* Notes in the folders of all jobs that another array has replaced theirs, except in those of the
 * jobs that `is_own` accepts. Ignores errors. */
typedef bool (*cv_job_is_own_fn)(const void *context, const char *id);
void cv_job_folders_replaced(const char *path, cv_job_is_own_fn is_own, const void *context);

/* CATERVA_ESTALE if the job's folder has the note of cv_job_folders_replaced. */
cv_status cv_job_folder_check(const char *path, const char *id, cv_error *err);

/* Returns the id in a folder's name; `name` itself if the job has not ended. Borrowed. */
const char *cv_job_folder_id(const char *name);

/* What the folder of a job shows without its record. */
typedef struct cv_job_look {
    bool is_live; /* a process holds the lock of the record: the job is owned */
    int64_t n_parts;
    int64_t part_bytes;
} cv_job_look;
cv_status cv_job_folder_look(const char *path, const char *id, cv_watch *watch,
                             cv_job_look *out, cv_error *err);

/* Calls `visit` with the name of each job's folder, in any order: the job's id, or a prefix and the
 * id if the job has ended. cv_job_folder_read and _look accept both. CV_OK if there are no jobs. */
typedef cv_status (*cv_job_visit_fn)(void *context, const char *name, cv_error *err);
cv_status cv_job_folders(const char *path, cv_job_visit_fn visit, void *context,
                         cv_error *err);

#endif

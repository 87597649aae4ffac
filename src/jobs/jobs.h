/* The face of jobs for other wings: what commits and renames do about jobs. The public
 * functions are in caterva_jobs.h. */
#ifndef CV_JOBS_JOBS_H
#define CV_JOBS_JOBS_H

#include "array/array.h"

/* Called after a commit, with the lock: deletes the folders of merged jobs. After the first
 * commit of a new array, jobs of an earlier array at its path, except the handle's own,
 * accept no more parts and cannot be merged. Best effort: remaining folders are listed. */
void cv_jobs_committed(caterva_array *array, bool is_first);

/* CATERVA_EBUSY if the array at `path` has an open job; `name` is used in the message. */
cv_status cv_jobs_check_none(const char *path, const char *name, cv_error *err);

/* Returns in *out whether `path` has a folder of jobs, open or ended. */
cv_status cv_jobs_has_folder(const char *path, bool *out, cv_error *err);

#endif

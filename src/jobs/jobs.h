/* The face of jobs, called through array/wings.h: what commits and renames do about jobs. The
 * public functions are in caterva_jobs.h. */
#ifndef CV_JOBS_JOBS_H
#define CV_JOBS_JOBS_H

#include "array/array.h"

/* Called after a commit, with the lock held. Deletes the folders of merged jobs. `is_first`: this
 * was the first commit of a new array. Then jobs of an earlier array at its path accept no more
 * parts and cannot be merged; jobs that the handle has begun remain open. Ignores errors: folders
 * that remain are listed. */
void cv_jobs_committed(caterva_array *array, bool is_first);

/* CATERVA_EBUSY if the array at `path` has an open job. The message calls the array `name`. */
cv_status cv_jobs_check_none(const char *path, const char *name, cv_error *err);

/* Returns in *out whether `path` has a folder of jobs, open or ended. */
cv_status cv_jobs_has_folder(const char *path, bool *out, cv_error *err);

#endif

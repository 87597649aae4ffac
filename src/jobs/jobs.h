/* The face of this room: what a commit and a change of names do about jobs. The public functions
 * of caterva_jobs.h are beside it. */
#ifndef CV_JOBS_JOBS_H
#define CV_JOBS_JOBS_H

#include "array/array.h"

/* After a commit, with the lock: deletes the folders of merged jobs. After a new array's
 * first commit, jobs of an earlier array at its path, except the handle's, accept no more
 * parts and cannot be merged. Best effort: folders that stay are listed. */
void cv_jobs_committed(caterva_array *array, bool is_first);

/* CATERVA_EBUSY if the array at `path` has an open job; `name` names the array in sentences. */
cv_status cv_jobs_check_none(const char *path, const char *name, cv_error *err);

/* Whether there is a folder of jobs, open or ended, beside `path`. */
cv_status cv_jobs_has_folder(const char *path, bool *out, cv_error *err);

#endif

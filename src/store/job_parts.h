/* What is in the folders of jobs, told to a watch (or NULL), which may stop it: functions that
 * return int return 0 or an errno number, ECANCELED once it has said so. */
#ifndef CV_STORE_JOB_PARTS_H
#define CV_STORE_JOB_PARTS_H

#include "base/os_dir.h"
#include "base/watch.h"

#define CV_JOB_RECORD "job"

/* How much is in a directory; 0: it cannot be listed. */
int64_t cv_parts_count(cv_dir parent, const char *name);

/* So much is done. */
int cv_parts_tell(cv_watch *watch, int64_t n);

/* Removes a part, which is a file, or a directory of files. It is not counted. */
int cv_part_remove(cv_dir dir, const char *name, cv_watch *watch);

/* Removes a folder and the parts in it, the record last; counts what is in it. */
int cv_parts_remove(cv_dir all, const char *name, cv_watch *watch);

/* The same of all folders whose names begin so, of jobs whose beginning or end was cut short.
 * Announces what is in them. Best effort, until it is stopped. */
int cv_parts_sweep(cv_dir all, const char *prefix, cv_watch *watch);

#endif

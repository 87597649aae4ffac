/* The jobs that a handle has begun or merged. */
#ifndef CV_ARRAY_HELD_JOBS_H
#define CV_ARRAY_HELD_JOBS_H

#include "base/os_file.h"
#include "base/watch.h"
#include "jobs/record.h"

typedef struct cv_held_job {
    char id[CV_JOB_NAME];
    bool begun;            /* by this handle */
    cv_file lock;          /* of its record: says that somebody is there; begun or none */
    bool merged;           /* the next commit ends it */
    uint64_t merged_bytes; /* of the parts */
    struct cv_held_job *next;
} cv_held_job;

/* The handle's entry for a job, made when missing. */
cv_status cv_held_jobs_get(cv_held_job **jobs, const char *id, cv_held_job **out,
                           cv_error *err);

/* After a commit: the folders of merged jobs go, by so many threads at most. Best effort: what
 * stays, or the watch (or NULL) has stopped, is listed. */
void cv_held_jobs_committed(cv_held_job **jobs, const char *path, int threads,
                            cv_watch *watch);

/* After the first commit of a new array: jobs of one that was at its path before, which are not
 * the handle's, take no more parts, and none of theirs comes into this one. Best effort. */
void cv_held_jobs_published(const cv_held_job *jobs, const char *path);

void cv_held_jobs_rolled_back(cv_held_job *jobs);
void cv_held_jobs_free(cv_held_job *jobs); /* gives up the locks */

#endif

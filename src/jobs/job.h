/* The jobs that a handle has begun or merged, which are attached to it. */
#ifndef CV_JOBS_JOB_H
#define CV_JOBS_JOB_H

#include "array/array.h"
#include "base/os_file.h"
#include "jobs/record.h"

typedef struct cv_held_job {
    char id[CV_JOB_NAME];
    bool begun;            /* by this handle */
    cv_file lock;          /* of the record, if begun: shows that a process owns the job */
    bool merged;           /* the next commit of the handle ends the job */
    uint64_t merged_bytes; /* bytes of the merged parts */
    struct cv_held_job *next;
} cv_held_job;

/* Returns the handle's entry for a job, which is created if it is missing. */
cv_status cv_held_job_get(caterva_array *array, const char *id, cv_held_job **out,
                          cv_error *err);

#endif

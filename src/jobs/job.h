/* What the chunks of an array were when a job began, kept in the job's folder as a 1-d array
 * of numbers (cv_chunk_state): by it a merge tells which chunks have changed since. */
#ifndef CV_JOBS_JOB_H
#define CV_JOBS_JOB_H

#include "array/array.h"

/* Reads it, some at a time. All zeros to begin with. */
typedef struct cv_job_base {
    caterva_array *array;
    uint64_t *states; /* of chunks [first, first + n) */
    int64_t first, n;
    int64_t n_chunks;
} cv_job_base;

/* CATERVA_ECORRUPT unless it has `n_chunks` entries. */
cv_status cv_job_base_open(const char *path, int64_t n_chunks, cv_job_base *out,
                           cv_error *err);
void cv_job_base_close(cv_job_base *base);

/* Quick for ascending chunks. Not for several threads. */
cv_status cv_job_base_state(void *base, int64_t chunk, uint64_t *out, cv_error *err);

#endif

/* The state of each chunk when a job began. From it a merge recognises chunks that have changed. */
#ifndef CV_JOBS_BASE_H
#define CV_JOBS_BASE_H

#include "array/array.h"

/* Returns a number that changes when the chunk changes. */
cv_status cv_chunk_state(cv_pending *pending, int64_t chunk, uint64_t *out, cv_error *err);

/* Writes the states of all chunks to a new file. Call with the lock held and no dirty blocks. */
cv_status cv_job_base_write(caterva_array *array, const char *path, cv_error *err);

/* Reads the states, those of many chunks at a time. */
typedef struct cv_job_base {
    caterva_array *array;
    uint64_t *states; /* of chunks [first, first + n) */
    int64_t first, n;
    int64_t n_chunks;
} cv_job_base;

/* CATERVA_ECORRUPT unless the file has `n_chunks` entries. */
cv_status cv_job_base_open(const char *path, int64_t n_chunks, cv_job_base *out,
                           cv_error *err);
void cv_job_base_close(cv_job_base *base);

/* Returns the state of a chunk. Fast for ascending chunks. One thread at a time. `base` is the
 * cv_job_base, because a merge calls this as a callback. */
cv_status cv_job_base_state(void *base, int64_t chunk, uint64_t *out, cv_error *err);

#endif

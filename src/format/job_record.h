/* What makes a job: the bytes that caterva_job_begin hands out and that lie in the job's
 * folder. They come from anywhere, and are checked like those of a file.
 *
 *     "cvjob" 0 1 \n     magic and version
 *     id                 16 random bytes
 *     commit, time       of the state that it stands on; when it began
 *     process, host
 *     ndim, shape        of that state
 *     header             of a frame of the job's shape: geometry, dtype and codec of its parts
 *     crc                CRC32C of all before it
 */
#ifndef CV_FORMAT_JOB_RECORD_H
#define CV_FORMAT_JOB_RECORD_H

#include "base/grid.h"
#include "base/heap.h"

enum { CV_JOB_ID = 16, CV_JOB_NAME = 2 * CV_JOB_ID + 1, CV_JOB_HOST = 32 };

typedef struct cv_job_record {
    uint8_t id[CV_JOB_ID];
    uint64_t commit;
    uint64_t began_ns;
    uint32_t process;
    char host[CV_JOB_HOST]; /* NUL-terminated, the first 31 bytes of it */
    int ndim;
    int64_t shape[CV_MAX_DIMS]; /* of the array when the job began */
    const uint8_t *header;      /* borrowed */
    uint32_t header_size;
} cv_job_record;

/* The id in hexadecimal digits. */
void cv_job_name(const uint8_t id[CV_JOB_ID], char out[CV_JOB_NAME]);

cv_status cv_job_record_write(const cv_job_record *record, cv_buffer *out, cv_error *err);

/* CATERVA_ECORRUPT says what is wrong. `header` borrows from `bytes`, and is not looked at. */
cv_status cv_job_record_parse(const void *bytes, size_t size, cv_job_record *out,
                              cv_error *err);

#endif

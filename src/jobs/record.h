/* Records of jobs: the bytes that caterva_job_begin returns, which are also in the job's folder.
 * They are untrusted, and checked like those of a file.
 *
 *     "cvjob" 0 1 \n     magic and version
 *     id                 16 random bytes
 *     commit, time       the number of the array's commit, and the time, when the job began
 *     process, host      that began the job
 *     ndim, shape        of the array when the job began
 *     header             of a frame of the job's shape: geometry, dtype and codec of its parts
 *     crc                CRC32C of all bytes before it */
#ifndef CV_JOBS_RECORD_H
#define CV_JOBS_RECORD_H

#include "base/grid.h"
#include "base/heap.h"

enum { CV_JOB_ID = 16, CV_JOB_NAME = 2 * CV_JOB_ID + 1, CV_JOB_HOST = 32 };

typedef struct cv_job_record {
    uint8_t id[CV_JOB_ID];
    uint64_t commit;
    uint64_t began_ns;
    uint32_t process;
    char host[CV_JOB_HOST]; /* NUL-terminated, at most 31 bytes of it */
    int ndim;
    int64_t shape[CV_MAX_DIMS]; /* of the array when the job began */
    const uint8_t *header;      /* borrowed */
    uint32_t header_size;
} cv_job_record;

/* Returns the id in hexadecimal digits. */
void cv_job_name(const uint8_t id[CV_JOB_ID], char out[CV_JOB_NAME]);

cv_status cv_job_record_write(const cv_job_record *record, cv_buffer *out, cv_error *err);

/* CATERVA_ECORRUPT names the defect. `header` borrows from `bytes` and is not checked. */
cv_status cv_job_record_parse(const void *bytes, size_t size, cv_job_record *out,
                              cv_error *err);

/* ---- Tokens of parts ----
 *
 * The token of a finished part identifies its file, with a checksum, and lists its chunks. Tokens
 * are untrusted and checked like the bytes of a file.
 *
 *     "cvtok" 0 1 \n     magic and version
 *     id                 of the job
 *     name               of the part in the job's folder; empty: nothing was written
 *     size, root         of the part's frame; root is the trailer's fingerprint
 *     ndim, first, n     the box of chunks that the part covers
 *     chunks             their numbers in the array, each as the distance from the one before
 *                        it; the lowest bit is set if the chunk was not written whole
 *     crc                CRC32C of all bytes before it
 *
 * The part itself contains the marks of chunks that were not written whole (format/array_meta.h);
 * its root covers these marks, too. */

enum { CV_PART_NAME = 96, CV_PART_ROOT = 16 };

/* A chunk that a part contains. */
typedef struct cv_part_chunk {
    int64_t chunk; /* its number in the array */
    bool in_part;  /* not all of its items were written */
} cv_part_chunk;

typedef struct cv_part_token {
    uint8_t job[CV_JOB_ID];
    char name[CV_PART_NAME]; /* letters, digits, '-', '_' and '.'; no '.' at the beginning */
    uint64_t frame_size;
    uint8_t root[CV_PART_ROOT];
    int ndim;
    int64_t first[CV_MAX_DIMS]; /* first chunk along each axis */
    int64_t n[CV_MAX_DIMS];     /* number of chunks along each axis */
    cv_part_chunk *chunks;      /* owned, ascending */
    int64_t n_chunks;
} cv_part_token;

cv_status cv_part_token_write(const cv_part_token *token, cv_buffer *out, cv_error *err);

/* CATERVA_ECORRUPT names the defect. Release with cv_part_token_free. */
cv_status cv_part_token_parse(const void *bytes, size_t size, cv_part_token *out,
                              cv_error *err);
void cv_part_token_free(cv_part_token *token);

#endif

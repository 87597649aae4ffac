/* The token of a finished part: which file it is, what vouches for it, and what chunks it
 * holds. It comes from anywhere, and is checked like the bytes of a file.
 *
 *     "cvtok" 0 1 \n     magic and version
 *     id                 of the job
 *     name               of the part in the job's folder; empty: nothing was written
 *     size, root         of the part's frame: what the trailer's fingerprint vouches for
 *     ndim, first, n     the box of chunks that the part covers
 *     chunks             their numbers in the array, each as the step from the one before it,
 *                        and in the lowest bit whether it was written in part
 *     crc                CRC32C of all before it
 *
 * Which items of a chunk were written in part says the part itself (format/own_attribute.h):
 * its root vouches for that, too. */
#ifndef CV_FORMAT_PART_TOKEN_H
#define CV_FORMAT_PART_TOKEN_H

#include "format/job_record.h"

enum { CV_PART_NAME = 96, CV_PART_ROOT = 16 };

/* A chunk that a part holds. */
typedef struct cv_part_chunk {
    int64_t chunk; /* its number in the array */
    bool in_part;  /* not all of its items were written */
} cv_part_chunk;

typedef struct cv_part_token {
    uint8_t job[CV_JOB_ID];
    char name[CV_PART_NAME]; /* letters, digits, '-', '_' and '.', not at the beginning */
    uint64_t frame_size;
    uint8_t root[CV_PART_ROOT];
    int ndim;
    int64_t first[CV_MAX_DIMS]; /* chunk along each axis */
    int64_t n[CV_MAX_DIMS];     /* chunks along each axis */
    cv_part_chunk *chunks;      /* owned, ascending */
    int64_t n_chunks;
} cv_part_token;

cv_status cv_part_token_write(const cv_part_token *token, cv_buffer *out, cv_error *err);

/* CATERVA_ECORRUPT says what is wrong. Release with cv_part_token_free. */
cv_status cv_part_token_parse(const void *bytes, size_t size, cv_part_token *out,
                              cv_error *err);
void cv_part_token_free(cv_part_token *token);

#endif

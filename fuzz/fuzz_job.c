/* Any bytes as a job record, a token, and the marks of a part. What is accepted is written
 * back as it was read. Since checksums would reject nearly all inputs, the last one is
 * corrected first. */
#include "fuzz.h"

#include "base/arith.h"
#include "base/crc.h"
#include "frame/snapshot.h"
#include "jobs/marks.h"
#include "jobs/record.h"

enum { CRC_BYTES = 4 };

static void put_checksum(cv_buffer *bytes)
{
    if (bytes->size < CRC_BYTES + 1) return;
    uint8_t *end = bytes->data + bytes->size;
    cv_store_be32(end - CRC_BYTES, cv_crc32c(0, bytes->data, bytes->size - CRC_BYTES - 1));
}

static void need_same(const cv_buffer *bytes, cv_buffer *again, const char *what)
{
    FUZZ_NEED(again->size == bytes->size &&
                  memcmp(again->data, bytes->data, again->size) == 0,
              "the %s is written otherwise", what);
    cv_buffer_free(again);
}

static void try_token(const cv_buffer *bytes)
{
    cv_part_token token;
    cv_buffer again = {0};
    if (cv_part_token_parse(bytes->data, bytes->size, &token, NULL) != CV_OK) return;
    FUZZ_NEED(cv_part_token_write(&token, &again, NULL) == CV_OK, "no token");
    /* numbers may be longer than necessary */
    FUZZ_NEED(again.size <= bytes->size, "the token has grown");
    cv_part_token_free(&token);
    cv_buffer_free(&again);
}

static void try_job(const cv_buffer *bytes)
{
    cv_job_record job;
    cv_snapshot *state;
    cv_buffer again = {0};
    if (cv_job_record_parse(bytes->data, bytes->size, &job, NULL) != CV_OK) return;
    FUZZ_NEED(cv_job_record_write(&job, &again, NULL) == CV_OK, "no job");
    if (again.size == bytes->size) /* otherwise the host's name contained a NUL */
        need_same(bytes, &again, "job");
    cv_buffer_free(&again);
    if (cv_snapshot_from_header(job.header, job.header_size, &state, NULL) == CV_OK)
        cv_snapshot_release(state);
}

static void try_marks(const uint8_t *bytes, size_t size)
{
    static const int64_t shape[2] = {20, 11};
    static const int32_t chunks[2] = {7, 4}, blocks[2] = {3, 4};
    cv_grid grid;
    cv_marks marks;
    cv_buffer again = {0}, twice = {0};
    FUZZ_NEED(cv_grid_init(&grid, 2, shape, chunks, blocks, 2, NULL) == CV_OK, "no grid");
    cv_marks_init(&marks, &grid);
    if (cv_marks_read(&marks, bytes, size, NULL) == CV_OK) {
        FUZZ_NEED(cv_marks_write(&marks, &again, NULL) == CV_OK, "no marks");
        cv_marks_clear(&marks);
        cv_marks_init(&marks, &grid);
        FUZZ_NEED(cv_marks_read(&marks, again.data, again.size, NULL) == CV_OK,
                  "own marks are refused");
        FUZZ_NEED(cv_marks_write(&marks, &twice, NULL) == CV_OK, "no marks");
        need_same(&again, &twice, "list of marks");
    }
    cv_marks_clear(&marks);
    cv_buffer_free(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    if (size > 1 << 16) return 0;
    cv_buffer copy = {0};
    FUZZ_NEED(cv_buffer_append(&copy, bytes, size, NULL) == CV_OK, "no memory");
    put_checksum(&copy);
    try_token(&copy);
    try_job(&copy);
    cv_buffer_free(&copy);
    try_marks(bytes, size);
    return 0;
}

/* Parts brought into the array: what they hold is checked against each other and against what
 * the array was when their job began, and then put into the transaction, chunk by chunk.
 *
 *     one part wrote all of the chunk     it moves as it is stored
 *     else, for each block
 *         nobody wrote it                 the array's, as it is stored
 *         one part wrote all of it        the part's, as it is stored
 *         else                            decoded, and the parts' items laid over it
 *
 * Nothing changes before everything is checked. */
#ifndef CV_ENGINE_MERGE_H
#define CV_ENGINE_MERGE_H

#include "engine/merge/part_file.h"
#include "engine/pending/pending.h"

/* What a chunk was: a number that changes when the chunk does. */
cv_status cv_chunk_state(cv_pending *pending, int64_t chunk, uint64_t *out, cv_error *err);

typedef struct cv_merge {
    cv_pending *target;          /* nothing in it is dirty */
    const char *path;            /* of the array */
    const cv_part_token *tokens; /* of one job, in the caller's order, none twice or empty */
    int64_t n;
    caterva_overlap overlap;
    bool unchecked;
    bool keep; /* parts stay after the commit: they share no files with the array */
    /* What cv_chunk_state said of the chunk when the job began. */
    cv_status (*base_state)(void *context, int64_t chunk, uint64_t *out, cv_error *err);
    void *context;
    cv_watch *watch; /* whose steps are chunks; or NULL */
    caterva_merge_result result;
    bool changed; /* out: something was put, also before a failure */
} cv_merge;

cv_status cv_merge_run(cv_merge *merge, cv_error *err);

#endif

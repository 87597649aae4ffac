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
#ifndef CV_JOBS_MERGE_H
#define CV_JOBS_MERGE_H

#include "engine/pending/pending.h"
#include "jobs/compose.h"

/* What a chunk was: a number that changes when the chunk does. */
cv_status cv_chunk_state(cv_pending *pending, int64_t chunk, uint64_t *out, cv_error *err);

#endif

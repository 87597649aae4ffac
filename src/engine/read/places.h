/* The delivery that puts blocks whole into places of their own: a chunk in stored order,
 * or the memory of dirty blocks. Requests are by number. */
#ifndef CV_ENGINE_PLACES_H
#define CV_ENGINE_PLACES_H

#include "engine/read/walk.h"

/* Where blocks go, block_bytes each. */
typedef struct cv_places {
    uint8_t *chunk;         /* one behind the other; or, where it is NULL, */
    uint8_t *const *blocks; /* by the block's number */
} cv_places;

extern const cv_delivery cv_to_places; /* its context is a cv_places */

/* Decodes chunk `chunk` into `dst`, chunk_bytes of the grid, in stored order; pending
 * changes included. Any thread, with a worker. */
cv_status cv_chunk_fill(const cv_source *source, int64_t chunk, uint8_t *dst,
                        cv_worker *worker, cv_error *err);

#endif

/* Choosing chunk and block shapes. */
#ifndef CV_ENGINE_PARTITION_H
#define CV_ENGINE_PARTITION_H

#include "base/status.h"

/* Fills chunk_shape and block_shape (ndim entries). `given_*` (may be NULL) are
 * kept as they are. CATERVA_EINVAL for shapes and sizes that cannot be. */
cv_status cv_partition_choose(int ndim, const int64_t *shape, int64_t item_size,
                              const int32_t *given_chunk_shape,
                              const int32_t *given_block_shape, int32_t *chunk_shape,
                              int32_t *block_shape, cv_error *err);

#endif

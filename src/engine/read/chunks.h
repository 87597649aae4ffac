/* Single chunks and blocks: description, space, and bytes in and out. */
#ifndef CV_ENGINE_CHUNKS_H
#define CV_ENGINE_CHUNKS_H

#include "engine/read/source.h"
#include <caterva_upkeep.h>

/* Counts stored and special chunks, live and dead bytes. */
cv_status cv_measure(cv_frame *frame, cv_snapshot *snapshot, cv_watch *watch,
                     caterva_space *out, cv_error *err);

/* Describes the kind and position of a chunk. */
cv_status cv_describe_chunk(cv_frame *frame, cv_snapshot *snapshot, int64_t chunk,
                            caterva_chunk_info *out, cv_error *err);

/* Describes the position and stored size of a block. The caller has checked both numbers. */
cv_status cv_describe_block(cv_frame *frame, cv_snapshot *snapshot, int64_t chunk,
                            int64_t block, caterva_block_info *out, cv_error *err);

/* Returns the stored bytes of a chunk, which are in `buffer` or lent by the store. Encodes special
 * chunks. Ignores dirty blocks. */
cv_status cv_chunk_stored(const cv_source *source, int64_t chunk, cv_buffer *buffer,
                          const uint8_t **bytes, size_t *size, cv_error *err);

/* Stores `size` untrusted bytes as a chunk, after checking the header and either decoding each block
 * or checking only that the sizes of its streams fit. */
cv_status cv_chunk_put(cv_pending *pending, int64_t chunk, const uint8_t *bytes, size_t size,
                       bool decode, cv_error *err);

#endif

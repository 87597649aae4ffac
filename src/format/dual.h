/* Chunks of which every block is also a Blosc 1 buffer, as the codec `blosc` of Zarr reads it. A
 * block of a Blosc2 chunk has the streams of a Blosc 1 buffer, so 20 bytes before it suffice:
 *
 *     | chunk header | block starts | 20 | streams of a block | 20 | streams of another | ...
 *
 *      0  u8 x 4  2, 1, flags, type size
 *      4  i32     bytes of the decoded block
 *      8  i32     the same
 *     12  i32     bytes of the buffer: 20 and the streams
 *     16  i32     20: where the streams begin
 *
 * Readers of Blosc2 find the streams by the block starts, and take the 20 bytes for the end of the
 * block before. These blocks have no 20 bytes and are behind the others:
 *
 * - Blocks of one repeated item: their streams stand for one byte each, which Blosc 1 lacks. In
 *   other blocks real streams replace these.
 * - Blocks that are hardly compressible: C-Blosc2 has no room for 20 bytes behind them. An
 *   uncompressed chunk of items of less than 6 bytes stays as it is.
 *
 * The others are in the order of a Gray code. Block 0 is the first, and the next one is a step along
 * one axis, along axis 0 twice as often as along axis 1. Readers that join neighbours find runs of
 * blocks in planes across any axis, and find longer ones than in the Morton order of zarr-python.
 *
 * Zarr readers find their buffers apart from the chunk: engine/write/shard.h. */
#ifndef CV_FORMAT_DUAL_H
#define CV_FORMAT_DUAL_H

#include "base/grid.h"
#include "base/heap.h"
#include "format/chunk_header.h"

enum { CV_DUAL_HEAD = 20 };

/* Whether Blosc 1 can decode the blocks of such a chunk: codec and filters exist there, blocks do
 * not depend on each other, and bitshuffle means the same. True for chunks without streams. */
bool cv_dual_fits(const cv_chunk_header *header);

/* Whether Blosc 1 expects several streams in a block that is marked as split. */
bool cv_dual_splits(int64_t type_size, int64_t block_size);

/* Whether the block consists of streams whose sizes fit. The chunk is neither uncompressed nor
 * special; its codec and filters do not matter. Decodes nothing. */
bool cv_dual_has_streams(const uint8_t *chunk, const cv_chunk_header *header,
                         const cv_block_range *range);

/* Appends the chunk of `grid` in this form to `out`; `ranges` are those of its blocks, NULL if it is
 * uncompressed. A chunk that has this form already becomes the same bytes; a special one is
 * copied. cv_dual_fits must be true. CATERVA_ECORRUPT if streams do not fit their block,
 * CATERVA_EUNSUPPORTED if the chunk becomes too large. */
cv_status cv_dual_write(const uint8_t *chunk, const cv_chunk_header *header,
                        const cv_block_range *ranges, const cv_grid *grid, cv_buffer *out,
                        cv_error *err);

/* Appends the Blosc 1 buffer of block `block`. `range` is NULL if the chunk is uncompressed. */
cv_status cv_dual_write_block(const uint8_t *chunk, const cv_chunk_header *header,
                              const cv_block_range *range, int64_t block, cv_buffer *out,
                              cv_error *err);

/* What a Zarr reader needs of a block. */
typedef enum cv_dual_kind {
    CV_DUAL_BUFFER, /* its buffer begins CV_DUAL_HEAD bytes before the streams */
    CV_DUAL_APART,  /* it has none in the chunk: cv_dual_write_block */
    CV_DUAL_ITEM,   /* the same, but all items are equal: cv_dual_write_item */
    CV_DUAL_NEITHER /* Blosc 1 cannot decode it, or it is damaged */
} cv_dual_kind;

typedef struct cv_dual_block {
    cv_dual_kind kind;
    uint32_t size; /* of the buffer */
} cv_dual_block;

/* Examines a block of a chunk. Sets `item` (item_size bytes) if the kind is CV_DUAL_ITEM. */
cv_dual_block cv_dual_look(const uint8_t *chunk, const cv_chunk_header *header,
                           const cv_block_range *range, int64_t item_size, uint8_t *item);

/* Whether the CV_DUAL_HEAD bytes before the streams of a block, which take at most `most` bytes, are
 * those that cv_dual_write puts before them. Sets *size to that of the buffer. For chunks that were
 * just written: does not look at the streams. */
bool cv_dual_is_head(const uint8_t *bytes, const cv_chunk_header *header, int64_t most,
                     uint32_t *size);

/* Appends a Blosc 1 buffer that decodes to a block of equal items. `codec` is that of a chunk
 * header. */
cv_status cv_dual_write_item(int codec, const uint8_t *item, int64_t item_size,
                             int64_t block_bytes, cv_buffer *out, cv_error *err);

#endif

/* The end of a file that is also a shard of a Zarr array (docs/zarr.md):
 *
 *     | frame | buffers of blocks that have none in their chunk | index |
 *
 * The index has 16 bytes for each block in the grid of all blocks, in C order: position and size of
 * its Blosc 1 buffer in the file (format/dual.h), or 2^64 - 1 twice if all items are the array's
 * fill; then their CRC32C. Blocks of the same repeated item share a buffer. All of this follows from
 * the chunks. */
#ifndef CV_ENGINE_WRITE_SHARD_H
#define CV_ENGINE_WRITE_SHARD_H

#include "base/watch.h"
#include "frame/frame.h"

typedef struct cv_shard {
    cv_frame *frame;
    cv_snapshot *snapshot;
    const uint8_t *fill; /* one item, NULL for zeros */
    cv_watch *watch;     /* may stop it; or NULL */
    bool is_new;         /* just written by cv_txn_set_dual: streams are not examined */
    /* Takes all bytes behind the frame, piece by piece. */
    cv_status (*take)(void *context, const uint8_t *bytes, size_t size, cv_error *err);
    void *context;
} cv_shard;

/* Passes what belongs behind the frame of this state to `take`. CATERVA_EUNSUPPORTED if Blosc 1
 * cannot decode some block, CATERVA_ECORRUPT names a damaged one. Takes 16 bytes of memory for each
 * block. */
cv_status cv_shard_make(const cv_shard *shard, cv_error *err);

/* Whether the file ends with an index for the blocks of this state. */
cv_status cv_shard_find(const cv_frame *frame, const cv_snapshot *snapshot, bool *found,
                        cv_error *err);

/* CATERVA_ECORRUPT, with the position, unless the file ends with what cv_shard_make passes to
 * `take`, which is not called. If `ended` is not NULL, the file may also end with other bytes, which a
 * writer left after caterva_open_options.end_zarr: then *ended is true. */
cv_status cv_shard_check(const cv_shard *shard, bool *ended, cv_error *err);

#endif

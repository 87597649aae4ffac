/* Room: engine/write. Blocks that will be written in part are decoded straight into
 * their dirty memory, by writes of boxes and of selections alike. */
#include "engine/write/patch.h"

#include "engine/items/copy.h"
#include "engine/read/blocks.h"

#include <string.h>

typedef struct patching {
    const cv_grid *grid;
    const cv_dirty_chunk *dirty;
} patching;

static uint8_t *place_block(void *context, int64_t tag)
{
    return ((const patching *)context)->dirty->blocks[tag];
}

static void take_block(void *context, int64_t tag, const uint8_t *decoded)
{
    const patching *p = context;
    memcpy(p->dirty->blocks[tag], decoded, (size_t)p->grid->block_bytes);
}

static void fill_block(void *context, int64_t tag, const uint8_t *item)
{
    const patching *p = context;
    int64_t stride = p->grid->item_size, n_items = p->grid->block_bytes / stride;
    cv_strided dst = {p->dirty->blocks[tag], &stride};
    cv_fill_box(1, &n_items, stride, item, dst);
}

cv_status cv_patch_decode(const cv_pending *pending, const cv_dirty_chunk *dirty,
                          const cv_chunk_ref *ref, cv_worker *worker, int64_t n,
                          cv_error *err)
{
    if (n == 0) return CV_OK;
    const cv_snapshot *snapshot = cv_txn_snapshot(pending->txn);
    patching p = {&snapshot->grid, dirty};
    cv_block_sink sink = {
        .place = place_block, .take = take_block, .fill = fill_block, .context = &p};
    return cv_decode_blocks(pending->frame, snapshot, ref, worker, n, &sink, err);
}

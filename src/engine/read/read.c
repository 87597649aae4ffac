/* Room: engine/read. A box copied out: the delivery of the commonest walk. Blocks that
 * are wanted whole and lie in the caller's memory as they lie in themselves are decoded
 * there; of others that need not stay the shuffle is undone for the items wanted only. */
#include "engine/read/read.h"

#include "engine/items/copy.h"
#include "engine/read/walk_run.h"

static cv_strided place_of(const cv_walk_chunk *c, const cv_block_job *block)
{
    const cv_plan *plan = c->walk->request.box;
    return (cv_strided){(uint8_t *)c->context + block->buffer_pos, plan->buffer_strides};
}

static uint8_t *place_block(void *chunk, int64_t tag)
{
    cv_walk_chunk *c = chunk;
    const cv_block_job *block = cv_walk_block(c, tag);
    return block->whole ? (uint8_t *)c->context + block->buffer_pos : NULL;
}

static void take_items(const cv_walk_chunk *c, const cv_block_job *block, cv_strided items)
{
    const cv_grid *grid = c->walk->request.box->grid;
    cv_copy_box(grid->ndim, block->shape, grid->item_size, items, place_of(c, block));
}

static void take_block(void *chunk, int64_t tag, const uint8_t *decoded)
{
    cv_walk_chunk *c = chunk;
    const cv_block_job *block = cv_walk_block(c, tag);
    const cv_grid *grid = c->walk->request.box->grid;
    cv_strided src = {(uint8_t *)decoded + block->block_pos, grid->item_strides};
    take_items(c, block, src);
}

static void fill_block(void *chunk, int64_t tag, const uint8_t *item)
{
    cv_walk_chunk *c = chunk;
    const cv_block_job *block = cv_walk_block(c, tag);
    const cv_grid *grid = c->walk->request.box->grid;
    cv_fill_box(grid->ndim, block->shape, grid->item_size, item, place_of(c, block));
}

static void fill_chunk(const cv_walk_chunk *c, const uint8_t *item)
{
    const cv_plan *plan = c->walk->request.box;
    const cv_chunk_job *job = &c->at.box;
    int64_t shape[CV_MAX_DIMS];
    for (int i = 0; i < plan->grid->ndim; i++) shape[i] = job->hi[i] - job->lo[i];
    cv_strided dst = {(uint8_t *)c->context + job->buffer_pos, plan->buffer_strides};
    cv_fill_box(plan->grid->ndim, shape, plan->grid->item_size, item, dst);
}

static bool unshuffles(void *chunk, int64_t tag)
{
    cv_walk_chunk *c = chunk;
    const cv_block_job *block = cv_walk_block(c, tag);
    const cv_grid *grid = c->walk->request.box->grid;
    return cv_unshuffling_is_cheaper(grid->ndim, block->shape, grid->item_size,
                                     grid->block_bytes);
}

static void take_shuffled(void *chunk, int64_t tag, const uint8_t *shuffled)
{
    cv_walk_chunk *c = chunk;
    const cv_block_job *block = cv_walk_block(c, tag);
    const cv_grid *grid = c->walk->request.box->grid;
    cv_shuffled src = {shuffled, block->block_pos, grid->block_bytes, grid->item_strides};
    cv_unshuffle_box(grid->ndim, block->shape, grid->item_size, src, place_of(c, block));
}

#define COPY_OUT                                                                             \
    .take = take_block, .fill = fill_block, .take_items = take_items,                        \
    .fill_chunk = fill_chunk, .unshuffles = unshuffles, .take_shuffled = take_shuffled

static const cv_delivery copy_out = {COPY_OUT};
static const cv_delivery copy_straight = {COPY_OUT, .place = place_block};

static void init_walk(cv_walk *walk, const cv_source *source, const cv_plan *plan, void *dst)
{
    bool straight = cv_plan_block_contiguous(plan);
    cv_walk_init(walk, source, (cv_request){.box = plan},
                 straight ? &copy_straight : &copy_out, dst);
}

cv_status cv_read_box(const cv_source *source, const cv_plan *plan, void *dst, cv_error *err)
{
    cv_walk walk;
    if (plan->n_items == 0) return CV_OK;
    init_walk(&walk, source, plan, dst);
    return cv_walk_run(&walk, err);
}

cv_status cv_read_box_skipping(const cv_source *source, const cv_plan *plan, void *dst,
                               const cv_skip *skip, cv_error *err)
{
    cv_walk walk;
    if (plan->n_items == 0) return CV_OK;
    init_walk(&walk, source, plan, dst);
    return cv_walk_run_skipping(&walk, skip, err);
}

/* Room: engine/read. A selection copied out: the delivery whose blocks are copied part by
 * part, converted on the way where that is asked for. */
#include "engine/read/select_read.h"

#include <string.h>

typedef struct copying {
    const cv_conversion *conversion; /* NULL: none */
    uint8_t *dst;
} copying;

/* Whose parts are being copied. */
typedef struct block_copy {
    const uint8_t *block; /* or the item that it is all over */
    uint8_t *dst;
} block_copy;

static void copy_out(void *context, const cv_part *part)
{
    const block_copy *b = context;
    cv_part_copy(part, CV_IN_BLOCK, b->block, b->dst);
}

static void fill_out(void *context, const cv_part *part)
{
    const block_copy *b = context;
    cv_part_fill(part, b->block, b->dst);
}

static void visit_parts(cv_walk_chunk *c, int64_t tag, const uint8_t *block, cv_part_fn visit)
{
    const cv_select_plan *plan = c->walk->request.selection;
    const copying *copy = c->context;
    block_copy b = {block, copy->dst};
    plan->ops->parts(plan, &c->at.selection, tag, visit, &b);
}

/* Memory of the worker's for what is converted; NULL: none is left. */
static uint8_t *make_room(cv_walk_chunk *c, int64_t size)
{
    cv_buffer *room = &c->worker->converted;
    if (cv_buffer_reserve(room, (size_t)size, NULL) == CV_OK) return room->data;
    c->failed = true;
    return NULL;
}

static void take_block(void *chunk, int64_t tag, const uint8_t *decoded)
{
    cv_walk_chunk *c = chunk;
    const copying *copy = c->context;
    if (copy->conversion) {
        const cv_grid *grid = c->walk->request.selection->grid;
        uint8_t *converted = make_room(c, grid->block_bytes);
        if (!converted) return;
        cv_convert(copy->conversion, decoded, converted, grid->block_bytes / grid->item_size);
        decoded = converted;
    }
    visit_parts(c, tag, decoded, copy_out);
}

/* A block of one item; NULL: zero bytes. However large, it is not made. */
static void fill_block(void *chunk, int64_t tag, const uint8_t *item)
{
    cv_walk_chunk *c = chunk;
    const copying *copy = c->context;
    if (!item || copy->conversion) {
        int64_t size = c->walk->request.selection->grid->item_size;
        uint8_t *converted = make_room(c, size);
        if (!converted) return;
        if (item)
            cv_convert(copy->conversion, item, converted, 1);
        else /* a zero is one in every type */
            memset(converted, 0, (size_t)size);
        item = converted;
    }
    visit_parts(c, tag, item, fill_out);
}

static const cv_delivery copy_parts = {.take = take_block, .fill = fill_block};
static const cv_delivery convert_parts = {
    .take = take_block, .fill = fill_block, .needs_worker = true};

cv_status cv_select_read(const cv_source *source, const cv_select_plan *plan,
                         const cv_conversion *conversion, uint8_t *dst, cv_error *err)
{
    copying copy = {conversion, dst};
    cv_walk walk;
    cv_walk_init(&walk, source, (cv_request){.selection = plan},
                 conversion ? &convert_parts : &copy_parts, &copy);
    return cv_walk_run(&walk, err);
}

cv_status cv_select_read_skipping(const cv_source *source, const cv_select_plan *plan,
                                  const cv_conversion *conversion, uint8_t *dst,
                                  const cv_skip *skip, cv_error *err)
{
    copying copy = {conversion, dst};
    cv_walk walk;
    cv_walk_init(&walk, source, (cv_request){.selection = plan}, &copy_parts, &copy);
    return cv_walk_run_skipping(&walk, skip, err);
}

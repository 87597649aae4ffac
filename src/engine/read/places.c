/* Room: engine/read. Whole blocks, decoded where they are to stand. */
#include "engine/read/places.h"

#include <string.h>

static const cv_grid *grid_of(const cv_walk_chunk *c)
{
    return &c->walk->source->snapshot->grid;
}

static uint8_t *place_block(void *chunk, int64_t tag)
{
    const cv_walk_chunk *c = chunk;
    const cv_places *p = c->context;
    return p->chunk ? p->chunk + tag * grid_of(c)->block_bytes : p->blocks[tag];
}

static void take_block(void *chunk, int64_t tag, const uint8_t *block)
{
    memcpy(place_block(chunk, tag), block, (size_t)grid_of(chunk)->block_bytes);
}

static void fill_block(void *chunk, int64_t tag, const uint8_t *item)
{
    int64_t size = grid_of(chunk)->item_size;
    int64_t n_items = grid_of(chunk)->block_bytes / size;
    cv_fill_box(1, &n_items, size, item, (cv_strided){place_block(chunk, tag), &size});
}

const cv_delivery cv_to_places = {
    .place = place_block, .take = take_block, .fill = fill_block};

cv_status cv_chunk_fill(const cv_source *source, int64_t chunk, uint8_t *dst,
                        cv_worker *worker, cv_error *err)
{
    cv_places places = {.chunk = dst};
    cv_share all = {.chunk = chunk, .n_shares = 1};
    cv_walk walk;
    cv_walk_init(&walk, source, (cv_request){NULL, NULL}, &cv_to_places, &places);
    return cv_walk_share(&walk, &all, &places, worker, err);
}

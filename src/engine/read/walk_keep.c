/* Room: engine/read. What becomes of a block that a walk decodes: where it is decoded to,
 * whether the cache keeps it, and how it lies there. Which blocks are decoded, and what was
 * found, is not known here. */
#include "engine/read/walk_keep.h"

#include "engine/cache/rotated.h"

bool cv_walk_array_fits(const cv_walk *w)
{
    const cv_grid *grid = &w->source->snapshot->grid;
    return grid->n_all_blocks <= cv_cache_capacity(w->cache, (size_t)grid->block_bytes);
}

static bool is_kept(const cv_walk_chunk *c, const cv_block_job *block)
{
    const cv_walk *w = c->walk;
    if (w->delivery->only_missing) return true;
    if (block->covers && !w->keep_covered && !c->stays) return false;
    return c->fits || cv_cache_admits(w->cache, &c->key, w->bytes);
}

static cv_cached *reserve(cv_walk_chunk *c, const cv_block_job *block)
{
    const cv_walk *w = c->walk;
    const cv_grid *grid = &w->source->snapshot->grid;
    bool ahead = w->delivery->only_missing;
    c->key.block = (int32_t)block->block;
    if (!is_kept(c, block)) return NULL;
    cv_cached *room = cv_cache_reserve(w->cache, &c->key, (size_t)grid->block_bytes);
    c->is_full = !room;
    if (room && ahead)
        cv_cached_mark_ahead(room);
    else if (room && w->request.box)
        (void)cv_sweep_note(cv_cached_sweep(room), grid, block);
    return room;
}

/* Where the next read is likely to want the neighbour. Then the block is decoded to
 * scratch first. */
static bool is_kept_rotated(const cv_walk_chunk *c, const cv_block_job *block)
{
    return c->walk->request.box &&
           cv_rotated_is_better(&c->walk->source->snapshot->grid, block);
}

static uint8_t *find_room(void *context, int64_t tag)
{
    cv_walk_chunk *c = context;
    const cv_block_job *block = cv_walk_block(c, tag);
    if (is_kept_rotated(c, block)) return NULL;
    c->room = reserve(c, block);
    if (!c->room) return NULL;
    uint8_t *room = cv_cached_room(c->room);
    cv_warm_to_write(room, (size_t)c->walk->source->snapshot->grid.block_bytes);
    return room;
}

static void settle_room(void *context, bool good)
{
    cv_walk_chunk *c = context;
    cv_cache_settle(c->walk->cache, c->room, good);
}

/* A block that was decoded just now. */
static void take_fresh(void *context, int64_t tag, const uint8_t *decoded)
{
    cv_walk_chunk *c = context;
    if (c->walk->delivery->take) c->walk->delivery->take(c, tag, decoded);
    const cv_block_job *block = cv_walk_block(c, tag);
    if (!is_kept_rotated(c, block)) return;
    cv_cached *room = reserve(c, block);
    if (!room) return;
    cv_rotate(&c->walk->source->snapshot->grid, decoded, cv_cached_room(room));
    cv_cached_mark_rotated(room);
    cv_cache_settle(c->walk->cache, room, true);
}

/* What is kept rotated is wanted whole first. */
static bool unshuffles(void *context, int64_t tag)
{
    cv_walk_chunk *c = context;
    return !is_kept_rotated(c, cv_walk_block(c, tag)) &&
           c->walk->delivery->unshuffles(c, tag);
}

static void fill_nothing(void *context, int64_t tag, const uint8_t *item)
{
    (void)context;
    (void)tag;
    (void)item;
}

/* Of a walk that keeps nothing the delivery's functions are called straight away. */
void cv_walk_connect(cv_walk_chunk *c)
{
    const cv_walk *w = c->walk;
    const cv_delivery *d = w->delivery;
    bool keeps = w->cache && !w->source->scan;
    c->fits = keeps && (w->request.box || w->request.selection) && cv_walk_array_fits(w);
    c->stays = c->fits && !d->once && (w->again || !cv_walk_wants_all(w));
    c->sink = (cv_block_sink){.place = c->stays ? NULL : d->place,
                              .take = keeps || !d->take ? take_fresh : d->take,
                              .fill = d->fill ? d->fill : fill_nothing,
                              .context = c,
                              .room = keeps ? find_room : NULL,
                              .settle = settle_room,
                              .unshuffles = d->unshuffles ? unshuffles : NULL,
                              .take_shuffled = d->take_shuffled,
                              .in_order = d->in_order};
}

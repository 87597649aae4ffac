/* Room: engine/read. Runs walks on pool threads, with three deliveries for reads: a box
 * copied out, a selection copied out, and a fold over decoded parts. */
#include "engine/read/read.h"

#include "base/arith.h"
#include "engine/items/copy.h"
#include "engine/plan/select_plan.h"
#include "engine/read/wave.h"
#include "engine/run/thresholds.h"
#include "frame/layout.h"
#include "frame/lookup.h"
#include "store/reading.h"

#include <string.h>

/* ---- Reads that skip damaged chunks ------------------------------------------- */

typedef struct run {
    const cv_walk *walk;
    const cv_skip *skip;
    cv_mutex lock; /* serialises calls of the sink */
} run;

static int count_helpers(const cv_walk *w, int64_t n_blocks)
{
    int64_t most = cv_min_i64(w->source->threads - 1, n_blocks - 1);
    if (most <= 0) return 0;
    int64_t bytes = n_blocks * w->source->snapshot->grid.block_bytes;
    return (int)cv_min_i64(most, bytes / CV_DECODE_PER_HELPER);
}

static void fill_wanted(cv_walk_chunk *c, const uint8_t *item)
{
    const cv_delivery *d = c->walk->delivery;
    if (d->fill_chunk)
        d->fill_chunk(c, item);
    else
        for (int64_t tag = 0; tag < c->n_blocks; tag++) d->fill(c, tag, item);
}

typedef struct one_chunk {
    const run *run;
    int64_t number;
    cv_worker *worker;
    bool is_staged;
    cv_walk_chunk chunk;
} one_chunk;

static cv_status read_chunk(void *context, cv_error *err)
{
    one_chunk *o = context;
    const cv_walk *w = o->run->walk;
    cv_stage *stage = o->is_staged ? w->stage : NULL;
    o->is_staged = false; /* a second attempt reads without the stage */
    CV_TRY(cv_stage_enter(stage, o->number, o->worker, err));
    cv_status status = cv_walk_enter(&o->chunk, w, o->number, o->worker, err);
    if (status == CV_OK) status = cv_walk_blocks(&o->chunk, 0, o->chunk.n_blocks, err);
    cv_stage_leave(stage, o->number, o->worker);
    return status;
}

/* Reads a chunk. If it is damaged, sets all its wanted items to the fill, even delivered items. */
static cv_status run_or_skip(void *context, int64_t job, cv_worker *worker, cv_error *err)
{
    run *r = context;
    cv_error error = {0};
    one_chunk one = {.run = r, .number = job, .worker = worker, .is_staged = true};
    const cv_doubted twice = {
        .store = r->walk->source->frame->store, .read = read_chunk, .context = &one};
    cv_status status = cv_store_doubting(&twice, &error);
    if (status == CV_OK) return CV_OK;
    if (!cv_is_damage(status)) {
        if (err) *err = error;
        return status;
    }
    fill_wanted(&one.chunk, r->skip->fill);
    if (one.chunk.failed)
        return cv_fail_memory(err, (size_t)one.chunk.n_blocks, "a converted item");
    cv_mutex_lock(&r->lock);
    cv_damage_report(&r->skip->sink, &r->walk->source->snapshot->grid, one.chunk.chunk,
                     &error);
    cv_mutex_unlock(&r->lock);
    return CV_OK;
}

/* Runs the walk. A damaged index is an error: without the index, no chunk can be read. */
static cv_status run_skipping(cv_walk *w, cv_error *err)
{
    run r = {.walk = w, .skip = w->source->skip};
    const cv_index *index;
    const cv_source *s = w->source;
    if (w->n_chunks == 0) return CV_OK;
    if (!s->pending) CV_TRY(cv_snapshot_index(s->snapshot, s->frame->store, &index, err));
    if (s->watch) cv_watch_expect(s->watch, w->bytes);
    /* A chunk is not divided: one thread reads or skips it. */
    int helpers = (int)cv_min_i64(count_helpers(w, w->n_blocks), w->n_chunks - 1);
    cv_stage stage;
    CV_TRY(cv_walk_set_stage(w, helpers + 1, 0, &stage, err));
    cv_mutex_init(&r.lock);
    const cv_crew crew = {s->workers, helpers, s->watch};
    cv_status status = cv_workers_run(&crew, w->n_chunks, run_or_skip, &r, err);
    cv_mutex_destroy(&r.lock);
    cv_stage_destroy(&stage);
    return status;
}

/* ---- Walks on threads ---------------------------------------------------------- */

/* Divides the `n_chunks` chunks that are left into parts. Returns how many helpers are useful. */
static int cut_parts(cv_walk *w, int64_t n_chunks)
{
    int64_t block_bytes = w->source->snapshot->grid.block_bytes, n_blocks = w->n_blocks;
    if (w->first_chunk > 0) /* estimates the blocks of the chunks left */
        n_blocks = cv_ceil_div(n_blocks, w->n_chunks) * n_chunks;
    int helpers = count_helpers(w, n_blocks);
    if (helpers > 0 && cv_codec_blocks_independent(&w->source->workers->spec)) {
        int64_t parts = cv_ceil_div((helpers + 1) * (int64_t)CV_PARTS_PER_THREAD, n_chunks);
        int64_t least = cv_ceil_div(CV_BYTES_PER_PART, block_bytes); /* blocks */
        w->n_shares = cv_min_i64(parts, cv_ceil_div(n_blocks, n_chunks * least));
    }
    return helpers;
}

/* Returns whether this thread should look first for leading chunks that are already decoded. */
static bool looks_alone(const cv_walk *w)
{
    const cv_request *r = &w->request;
    if (!w->cache || cv_cache_is_empty(w->cache)) return false;
    if (w->delivery->take_items)
        return w->source->threads == 1 ||
               r->box->n_items < 2 * CV_COPY_PER_HELPER / r->box->grid->item_size;
    if (w->delivery->needs_worker || !r->selection) return false;
    return w->source->threads == 1 || r->selection->n_items <= CV_MOST_ITEMS_ALONE;
}

/* Returns whether an earlier request wanted the whole array and had to decode. */
static bool comes_again(const cv_walk *w)
{
    atomic_int *n_whole = &w->source->workers->n_whole;
    if (!w->cache || w->n_blocks < w->source->snapshot->grid.n_all_blocks) return false;
    if (atomic_load_explicit(n_whole, memory_order_relaxed) >= 2) return true;
    return atomic_fetch_add_explicit(n_whole, 1, memory_order_relaxed) > 0;
}

static cv_status run_walk(cv_walk *w, cv_error *err)
{
    const cv_source *s = w->source;
    if (w->n_chunks == 0) return CV_OK;
    if (s->watch) cv_watch_expect(s->watch, w->bytes);
    if (looks_alone(w)) CV_TRY(cv_walk_decoded(w, err));
    int64_t n_chunks = w->n_chunks - w->first_chunk;
    if (n_chunks == 0) return CV_OK;
    w->again = comes_again(w);
    int helpers = cut_parts(w, n_chunks);
    if (cv_wave_is_worth(w)) return cv_wave_run(w, helpers, err);
    const cv_crew crew = {s->workers, helpers, s->watch};
    return cv_workers_run(&crew, n_chunks * w->n_shares, cv_walk_part, w, err);
}

/* ---- Copying boxes -----------------------------------------------------------
 *
 * Blocks that are wanted whole and have the same strides in the caller's buffer are decoded there.
 * In other blocks that the cache does not keep, only the wanted items are unshuffled. */

static const cv_block_job *block_of(cv_walk_chunk *c, int64_t tag)
{
    if (c->tag != tag) cv_plan_block(c->walk->request.box, &c->at.box, tag, &c->block);
    c->tag = tag;
    return &c->block;
}

static cv_strided place_of(const cv_walk_chunk *c, const cv_block_job *block)
{
    const cv_plan *plan = c->walk->request.box;
    return (cv_strided){(uint8_t *)c->context + block->buffer_pos, plan->buffer_strides};
}

static uint8_t *place_block(void *chunk, int64_t tag)
{
    cv_walk_chunk *c = chunk;
    const cv_block_job *block = block_of(c, tag);
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
    const cv_block_job *block = block_of(c, tag);
    const cv_grid *grid = c->walk->request.box->grid;
    cv_strided src = {(uint8_t *)decoded + block->block_pos, grid->item_strides};
    take_items(c, block, src);
}

static void fill_block(void *chunk, int64_t tag, const uint8_t *item)
{
    cv_walk_chunk *c = chunk;
    const cv_block_job *block = block_of(c, tag);
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
    const cv_block_job *block = block_of(c, tag);
    const cv_grid *grid = c->walk->request.box->grid;
    return cv_unshuffling_is_cheaper(grid->ndim, block->shape, grid->item_size,
                                     grid->block_bytes);
}

static void take_shuffled(void *chunk, int64_t tag, const uint8_t *shuffled)
{
    cv_walk_chunk *c = chunk;
    const cv_block_job *block = block_of(c, tag);
    const cv_grid *grid = c->walk->request.box->grid;
    cv_shuffled src = {shuffled, block->block_pos, grid->block_bytes, grid->item_strides};
    cv_unshuffle_box(grid->ndim, block->shape, grid->item_size, src, place_of(c, block));
}

#define COPY_OUT                                                                             \
    .take = take_block, .fill = fill_block, .take_items = take_items,                        \
    .fill_chunk = fill_chunk, .unshuffles = unshuffles, .take_shuffled = take_shuffled

static const cv_delivery copy_out = {COPY_OUT};
static const cv_delivery copy_straight = {COPY_OUT, .place = place_block};

static void init_box(cv_walk *walk, const cv_source *source, const cv_plan *plan, void *dst)
{
    cv_walk_init(walk, source, (cv_request){.box = plan},
                 cv_plan_block_contiguous(plan) ? &copy_straight : &copy_out, dst);
}

cv_status cv_read_box(const cv_source *source, const cv_plan *plan, void *dst, cv_error *err)
{
    cv_walk walk;
    if (plan->n_items == 0) return CV_OK;
    init_box(&walk, source, plan, dst);
    return run_walk(&walk, err);
}

cv_status cv_read_box_skipping(const cv_source *source, const cv_plan *plan, void *dst,
                               cv_error *err)
{
    cv_walk walk;
    if (plan->n_items == 0) return CV_OK;
    init_box(&walk, source, plan, dst);
    return run_skipping(&walk, err);
}

/* Blocks are copied part by part. If items are converted, the whole block is converted first. */

typedef struct copying {
    const cv_conversion *conversion; /* NULL: not converted */
    uint8_t *dst;
} copying;

typedef struct block_copy {
    const uint8_t *block; /* a block, or the item that the block repeats */
    uint8_t *dst;
} block_copy;

static void copy_selected(void *context, const cv_part *part)
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

/* Returns the worker's memory for converted items; NULL if memory runs out. */
static uint8_t *make_room(cv_walk_chunk *c, int64_t size)
{
    cv_buffer *room = &c->worker->converted;
    if (cv_buffer_reserve(room, (size_t)size, NULL) == CV_OK) return room->data;
    c->failed = true;
    return NULL;
}

static void take_selected(void *chunk, int64_t tag, const uint8_t *decoded)
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
    visit_parts(c, tag, decoded, copy_selected);
}

/* Fills the block's parts with one item (NULL: zero bytes), without building the block. */
static void fill_selected(void *chunk, int64_t tag, const uint8_t *item)
{
    cv_walk_chunk *c = chunk;
    const copying *copy = c->context;
    if (!item || copy->conversion) {
        int64_t size = c->walk->request.selection->grid->item_size;
        uint8_t *converted = make_room(c, size);
        if (!converted) return;
        if (item)
            cv_convert(copy->conversion, item, converted, 1);
        else /* zero bytes are 0 in every type */
            memset(converted, 0, (size_t)size);
        item = converted;
    }
    visit_parts(c, tag, item, fill_out);
}

static const cv_delivery copy_parts = {.take = take_selected, .fill = fill_selected};
static const cv_delivery convert_parts = {
    .take = take_selected, .fill = fill_selected, .needs_worker = true};

static void init_selection(cv_walk *walk, const cv_source *source, const cv_select_plan *plan,
                           copying *copy)
{
    cv_walk_init(walk, source, (cv_request){.selection = plan},
                 copy->conversion ? &convert_parts : &copy_parts, copy);
}

cv_status cv_select_read(const cv_source *source, const cv_select_plan *plan,
                         const cv_conversion *conversion, uint8_t *dst, cv_error *err)
{
    copying copy = {conversion, dst};
    cv_walk walk;
    init_selection(&walk, source, plan, &copy);
    return run_walk(&walk, err);
}

cv_status cv_select_read_skipping(const cv_source *source, const cv_select_plan *plan,
                                  const cv_conversion *conversion, uint8_t *dst,
                                  cv_error *err)
{
    copying copy = {conversion, dst};
    cv_walk walk;
    init_selection(&walk, source, plan, &copy);
    return run_skipping(&walk, err);
}

/* ---- Folds: parts of blocks are passed to a function ------------------------------- */

static const uint8_t zeros[16]; /* has the size of the longest number */

/* The fold of one share: the function that gets its parts, and the present block. */
typedef struct folding {
    const cv_fold *fold;
    void *context;
    const uint8_t *block; /* block of the parts; NULL: all items of the block are `item` */
    const uint8_t *item;
    int64_t n_chunks; /* for a box: number of chunks that hold `item`, from here on */
} folding;

static void see_even(const folding *f, const cv_part *part)
{
    cv_fold_part seen = {.part = *part, .n_items = 1, .item = f->item ? f->item : zeros};
    for (int d = 0; d < part->ndim; d++) seen.n_items *= part->n[d];
    if (f->block) seen.data = f->block + part->pos[CV_IN_BLOCK];
    f->fold->fn(f->context, &seen);
}

/* ---- Parts with uneven steps ------------------------------------------------ */

/* Moves `even` along axis `d` from pick `from` (-1: the part's position) to pick `to`. */
static void move_pick(cv_part *even, const cv_part *part, int d, int64_t from, int64_t to)
{
    for (int side = 0; side < 2; side++) {
        int64_t before = from < 0 ? 0 : part->picks[d][from].at[side];
        even->pos[side] += (part->picks[d][to].at[side] - before) * part->strides[side][d];
    }
}

/* Visits the items of each combination of picks together; axes without picks stay whole. */
static void see_picks(const folding *f, const cv_part *part)
{
    cv_part even = *part;
    int64_t index[CV_MAX_DIMS] = {0};
    for (int d = 0; d < part->ndim; d++) {
        if (!part->picks[d]) continue;
        even.picks[d] = NULL;
        even.n[d] = 1;
        move_pick(&even, part, d, -1, 0);
    }
    for (int d = 0; d >= 0;) {
        see_even(f, &even);
        for (d = part->ndim - 1; d >= 0; d--) {
            if (!part->picks[d]) continue;
            int64_t before = index[d]++;
            if (index[d] == part->n[d]) index[d] = 0;
            move_pick(&even, part, d, before, index[d]);
            if (index[d] > 0) break;
        }
    }
}

/* Visits each run of selected items separately. */
static void see_masked(const folding *f, const cv_part *part)
{
    cv_part piece = *part;
    piece.mask = NULL;
    int64_t at = 0;
    for (int64_t n_seen = 0; n_seen < part->n[0]; n_seen += piece.n[0]) {
        while (!part->mask[at]) at++;
        int64_t first = at;
        int64_t most = first + part->n[0] - n_seen;
        while (at < most && part->mask[at]) at++;
        piece.n[0] = at - first;
        piece.pos[CV_IN_BLOCK] =
            part->pos[CV_IN_BLOCK] + first * part->strides[CV_IN_BLOCK][0];
        piece.pos[CV_IN_BUFFER] =
            part->pos[CV_IN_BUFFER] + n_seen * part->strides[CV_IN_BUFFER][0];
        see_even(f, &piece);
    }
}

static void see_part(void *context, const cv_part *part)
{
    const folding *f = context;
    bool is_even = true;
    for (int d = 0; d < part->ndim; d++) is_even = is_even && !part->picks[d];
    if (part->mask)
        see_masked(f, part);
    else if (!is_even)
        see_picks(f, part);
    else
        see_even(f, part);
}

/* Visits the part of a box in one block. If the chunk is one item, visits the part in the chunk. */
static void see_box(const folding *f, const int64_t *shape, int64_t block_pos, int64_t cell)
{
    const cv_plan *plan = &f->fold->box;
    const cv_grid *grid = plan->grid;
    cv_part part = {.ndim = grid->ndim, .item_size = grid->item_size};
    size_t size = (size_t)grid->ndim * sizeof shape[0];
    memcpy(part.n, shape, size);
    memcpy(part.strides[CV_IN_BLOCK], grid->item_strides, size);
    memcpy(part.strides[CV_IN_BUFFER], plan->buffer_strides, size);
    part.pos[CV_IN_BLOCK] = block_pos;
    part.pos[CV_IN_BUFFER] = cell;
    see_even(f, &part);
}

static void see_block(cv_walk_chunk *c, int64_t tag, const uint8_t *block,
                      const uint8_t *item)
{
    folding f = *(const folding *)c->context;
    f.block = block;
    f.item = item;
    if (c->walk->request.box) {
        const cv_block_job *job = block_of(c, tag);
        see_box(&f, job->shape, job->block_pos, job->buffer_pos);
        return;
    }
    const cv_select_plan *plan = &f.fold->selection;
    plan->ops->parts(plan, &c->at.selection, tag, see_part, &f);
}

static void fold_block(void *chunk, int64_t tag, const uint8_t *block)
{
    see_block(chunk, tag, block, NULL);
}

static void fold_fill(void *chunk, int64_t tag, const uint8_t *item)
{
    see_block(chunk, tag, NULL, item);
}

/* Extends `shape` from the box in one chunk to the box in f->n_chunks chunks. */
static void lengthen(const folding *f, const cv_chunk_job *job, int64_t *shape)
{
    const cv_plan *plan = &f->fold->box;
    const cv_grid *grid = plan->grid;
    int64_t unit = 1;
    int d = grid->ndim - 1;
    for (; d > 0 && unit * plan->chunk_counts[d] <= f->n_chunks; d--) {
        unit *= plan->chunk_counts[d];
        shape[d] = plan->stop[d] - plan->start[d];
    }
    int64_t length = grid->chunk_shape[d];
    int64_t origin = job->chunk / grid->chunk_strides[d] % grid->chunk_counts[d] * length;
    int64_t end = cv_min_i64(plan->stop[d], origin + f->n_chunks / unit * length);
    shape[d] = end - (origin + job->lo[d]);
}

static void fold_fill_chunk(const cv_walk_chunk *c, const uint8_t *item)
{
    folding f = *(const folding *)c->context;
    f.item = item;
    if (c->walk->request.box) {
        int64_t shape[CV_MAX_DIMS];
        const cv_chunk_job *job = &c->at.box;
        for (int d = 0; d < f.fold->box.grid->ndim; d++) shape[d] = job->hi[d] - job->lo[d];
        if (f.n_chunks > 1) lengthen(&f, job, shape);
        see_box(&f, shape, 0, job->buffer_pos);
        return;
    }
    cv_part part;
    cv_select_axes_chunk_part(&f.fold->selection, &c->at.selection, &part);
    see_even(&f, &part);
}

static const cv_delivery fold_even = {.counts = true,
                                      .once = true,
                                      .take = fold_block,
                                      .fill = fold_fill,
                                      .fill_chunk = fold_fill_chunk,
                                      .asks_first = true,
                                      .in_order = true};

/* Has no fill_chunk, because the wanted items of a chunk are not one even part. */
static const cv_delivery fold_uneven = {
    .counts = true, .once = true, .take = fold_block, .fill = fold_fill, .in_order = true};

/* ---- Planning ------------------------------------------------------------ */

static bool is_even(const cv_selection *s)
{
    bool even = s->kind == CATERVA_SELECTION_AXES;
    for (int d = 0; even && d < s->grid->ndim; d++)
        even = !s->axes[d].list && !s->axes[d].mask;
    return even;
}

static bool is_box(const cv_selection *s, int64_t *start, int64_t *stop)
{
    bool box = is_even(s);
    for (int d = 0; box && d < s->grid->ndim; d++) {
        box = s->axes[d].step == 1;
        start[d] = s->axes[d].start;
        stop[d] = s->axes[d].start + s->axes[d].n;
    }
    return box;
}

cv_status cv_fold_init(cv_fold *fold, const cv_source *source, const cv_selection *selection,
                       const int64_t *cells, cv_fold_fn fn, cv_error *err)
{
    const cv_grid *grid = &source->snapshot->grid;
    int64_t start[CV_MAX_DIMS], stop[CV_MAX_DIMS];
    fold->fn = fn;
    fold->selection = (cv_select_plan){.grid = grid};
    cv_request request = {.box = &fold->box};
    if (is_box(selection, start, stop)) {
        CV_TRY(cv_plan_box(grid, start, stop, &fold->box, err));
        memcpy(fold->box.buffer_strides, cells, (size_t)grid->ndim * sizeof cells[0]);
    } else {
        CV_TRY(cv_select_plan_init(&fold->selection, selection, cells, source->watch, err));
        request = (cv_request){.selection = &fold->selection};
    }
    cv_walk_init(&fold->walk, source, request, is_even(selection) ? &fold_even : &fold_uneven,
                 NULL);
    return CV_OK;
}

void cv_fold_free(cv_fold *fold) { cv_select_plan_free(&fold->selection); }

static cv_status fold_share(const cv_fold *fold, const cv_share *share, folding *f,
                            cv_worker *worker, cv_error *err)
{
    cv_walk walk = fold->walk;
    walk.context = f;
    walk.n_shares = share->n_shares;
    return cv_walk_part(&walk, share->chunk * share->n_shares + share->share, worker, err);
}

cv_status cv_fold_share(const cv_fold *fold, const cv_share *share, void *context,
                        cv_worker *worker, cv_error *err)
{
    folding f = {.fold = fold, .context = context};
    return fold_share(fold, share, &f, worker, err);
}

/* Returns whether the touched chunks, and so their index entries, have consecutive numbers. */
static bool is_contiguous(const cv_plan *plan)
{
    bool all = plan->grid->ndim > 0;
    for (int d = 1; d < plan->grid->ndim; d++)
        all = all && plan->chunk_counts[d] == plan->grid->chunk_counts[d];
    return all;
}

/* Returns how many of the touched chunks [first, first + n) form a box from `first` on: whole rows,
 * planes and so on, or a part of one. */
static int64_t box_of_run(const cv_plan *plan, int64_t first, int64_t n)
{
    int64_t unit = 1;
    for (int d = plan->grid->ndim - 1;; d--) {
        int64_t row = plan->chunk_counts[d], pos = first / unit % row;
        if (d == 0 || pos > 0 || n < unit * row)
            return unit * cv_min_i64(row - pos, n / unit);
        unit *= row;
    }
}

/* Counts the special and equal chunks that form a box from `first` on; 1 if there is no such run.
 * Also 1 for writers, whose chunks may be dirty, and for small folds: the index costs too much. */
static cv_status find_run(const cv_fold *fold, int64_t first, int64_t last, int64_t *n,
                          cv_error *err)
{
    enum { WORTH_AN_INDEX = 64 };
    const cv_walk *walk = &fold->walk;
    const cv_source *source = walk->source;
    const cv_plan *plan = &fold->box;
    *n = 1;
    if (!walk->request.box || walk->n_chunks < WORTH_AN_INDEX || source->pending ||
        (walk->stage && walk->stage->windows) || !is_contiguous(plan))
        return CV_OK;
    const cv_index *index;
    cv_chunk_job job;
    CV_TRY(cv_snapshot_index(source->snapshot, source->frame->store, &index, err));
    cv_plan_chunk(plan, first, &job);
    int64_t entry = cv_index_get(index, job.chunk), same = 1;
    if (!cv_offset_is_special(entry)) return CV_OK;
    if (!index->pages) same = last - first;
    while (same < last - first && cv_index_get(index, job.chunk + same) == entry) same++;
    *n = box_of_run(plan, first, same);
    return CV_OK;
}

cv_status cv_fold_run(const cv_fold *fold, int64_t first, int64_t last, void *context,
                      cv_worker *worker, int64_t *n, cv_error *err)
{
    const cv_share whole = {.chunk = first, .n_shares = 1};
    folding f = {.fold = fold, .context = context};
    CV_TRY(find_run(fold, first, last, n, err));
    f.n_chunks = *n;
    return fold_share(fold, &whole, &f, worker, err);
}

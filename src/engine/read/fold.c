/* Room: engine/read. The delivery that hands parts of blocks to whoever computes. */
#include "engine/read/fold.h"

#include "engine/plan/select_axes.h"
#include "engine/plan/select_plan.h"

#include <string.h>

static const uint8_t zeros[16]; /* numbers are no longer */

/* What a share of a fold hands on. */
typedef struct folding {
    const cv_fold *fold;
    void *context;
    const uint8_t *block; /* whose parts are seen; NULL: all of it is `item` */
    const uint8_t *item;
} folding;

static void see_even(const folding *f, const cv_part *part)
{
    cv_fold_part seen = {.part = *part, .n_items = 1, .item = f->item ? f->item : zeros};
    for (int d = 0; d < part->ndim; d++) seen.n_items *= part->n[d];
    if (f->block) seen.data = f->block + part->pos[CV_IN_BLOCK];
    f->fold->fn(f->context, &seen);
}

/* ---- Parts in uneven steps ------------------------------------------------- */

/* From pick `from` of axis `d` to pick `to`; -1: none yet. */
static void move_pick(cv_part *even, const cv_part *part, int d, int64_t from, int64_t to)
{
    for (int side = 0; side < 2; side++) {
        int64_t before = from < 0 ? 0 : part->picks[d][from].at[side];
        even->pos[side] += (part->picks[d][to].at[side] - before) * part->strides[side][d];
    }
}

/* For each pick of each axis that has some, all of the others. */
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

/* Each run of selected items by itself. */
static void see_masked(const folding *f, const cv_part *part)
{
    cv_part run = *part;
    run.mask = NULL;
    int64_t at = 0;
    for (int64_t n_seen = 0; n_seen < part->n[0]; n_seen += run.n[0]) {
        while (!part->mask[at]) at++;
        int64_t first = at;
        int64_t most = first + part->n[0] - n_seen;
        while (at < most && part->mask[at]) at++;
        run.n[0] = at - first;
        run.pos[CV_IN_BLOCK] = part->pos[CV_IN_BLOCK] + first * part->strides[CV_IN_BLOCK][0];
        run.pos[CV_IN_BUFFER] =
            part->pos[CV_IN_BUFFER] + n_seen * part->strides[CV_IN_BUFFER][0];
        see_even(f, &run);
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

/* The one part of a box that lies in a block, or, of what is one item, in a chunk. */
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
        const cv_block_job *job = cv_walk_block(c, tag);
        see_box(&f, job->shape, job->block_pos, job->buffer_pos);
        return;
    }
    const cv_select_plan *plan = &f.fold->selection;
    plan->ops->parts(plan, &c->at.selection, tag, see_part, &f);
}

static void take_block(void *chunk, int64_t tag, const uint8_t *block)
{
    see_block(chunk, tag, block, NULL);
}

static void fill_block(void *chunk, int64_t tag, const uint8_t *item)
{
    see_block(chunk, tag, NULL, item);
}

static void fill_chunk(const cv_walk_chunk *c, const uint8_t *item)
{
    folding f = *(const folding *)c->context;
    f.item = item;
    if (c->walk->request.box) {
        int64_t shape[CV_MAX_DIMS];
        const cv_chunk_job *job = &c->at.box;
        for (int d = 0; d < f.fold->box.grid->ndim; d++) shape[d] = job->hi[d] - job->lo[d];
        see_box(&f, shape, 0, job->buffer_pos);
        return;
    }
    cv_part part;
    cv_select_axes_chunk_part(&f.fold->selection, &c->at.selection, &part);
    see_even(&f, &part);
}

static const cv_delivery fold_even = {.counts = true,
                                      .once = true,
                                      .take = take_block,
                                      .fill = fill_block,
                                      .fill_chunk = fill_chunk,
                                      .asks_first = true,
                                      .in_order = true};

/* What a chunk has of it is no single part. */
static const cv_delivery fold_uneven = {
    .counts = true, .once = true, .take = take_block, .fill = fill_block, .in_order = true};

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

cv_status cv_fold_share(const cv_fold *fold, const cv_share *share, void *context,
                        cv_worker *worker, cv_error *err)
{
    folding f = {.fold = fold, .context = context};
    return cv_walk_share(&fold->walk, share, &f, worker, err);
}

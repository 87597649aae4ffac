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

static void see_part(void *context, const cv_part *part)
{
    const folding *f = context;
    cv_fold_part seen = {.part = *part, .n_items = 1, .item = f->item ? f->item : zeros};
    for (int d = 0; d < part->ndim; d++) seen.n_items *= part->n[d];
    if (f->block) seen.data = f->block + part->pos[CV_IN_BLOCK];
    f->fold->fn(f->context, &seen);
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
    see_part((void *)f, &part);
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
    see_part(&f, &part);
}

static const cv_delivery fold_parts = {.take = take_block,
                                       .fill = fill_block,
                                       .fill_chunk = fill_chunk,
                                       .asks_first = true,
                                       .in_order = true};

/* ---- Planning ------------------------------------------------------------ */

static cv_status plan_steps(cv_fold *fold, const cv_grid *grid, const cv_stepped *box,
                            const int64_t *cells, cv_error *err)
{
    cv_selection s = {
        .grid = grid, .kind = CATERVA_SELECTION_AXES, .ndim = grid->ndim, .n_items = 1};
    for (int d = 0; d < grid->ndim; d++) {
        int64_t first, n = cv_stepped_count(box, d, 0, grid->shape[d], &first);
        s.axes[d] = (cv_axis){.n = n, .start = box->start[d], .step = box->step[d]};
        s.shape[d] = n;
        s.n_items *= n;
    }
    return cv_select_plan_init(&fold->selection, &s, cells, err);
}

cv_status cv_fold_init(cv_fold *fold, const cv_source *source, const cv_stepped *box,
                       const int64_t *cells, cv_fold_fn fn, cv_error *err)
{
    const cv_grid *grid = &source->snapshot->grid;
    bool is_box = true;
    for (int d = 0; d < grid->ndim; d++) {
        is_box = is_box && box->step[d] == 1;
        if (box->step[d] < 1)
            return cv_fail(err, CATERVA_EINVAL, -1, "step %lld on axis %d is not positive",
                           (long long)box->step[d], d);
    }
    fold->fn = fn;
    cv_request request = {.box = &fold->box};
    CV_TRY(cv_plan_box(grid, box->start, box->stop, &fold->box, err));
    memcpy(fold->box.buffer_strides, cells, (size_t)grid->ndim * sizeof cells[0]);
    if (!is_box && fold->box.n_items > 0) {
        CV_TRY(plan_steps(fold, grid, box, cells, err));
        request = (cv_request){.selection = &fold->selection};
    }
    cv_walk_init(&fold->walk, source, request, &fold_parts, NULL);
    return CV_OK;
}

cv_status cv_fold_share(const cv_fold *fold, const cv_share *share, void *context,
                        cv_worker *worker, cv_error *err)
{
    folding f = {.fold = fold, .context = context};
    return cv_walk_share(&fold->walk, share, &f, worker, err);
}

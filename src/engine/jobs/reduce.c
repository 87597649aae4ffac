/* Room: engine/jobs. Reductions along some of the axes. The result is cut into tiles, at the
 * edges of chunks or blocks of the axes that stay; a job goes over everything behind
 * one tile, alone, so that no cell is shared and the order is always the same.
 *
 *      axis 0 goes      +---------+---------+
 *                       | chunk 0 | chunk 1 |   job 0: chunks 0, 2    job 1: 1, 3
 *                       +---------+---------+
 *                       | chunk 2 | chunk 3 |
 *                       +---------+---------+
 *      the result       |  tile 0 |  tile 1 |
 */
#include "engine/jobs/reduce.h"

#include "base/arith.h"
#include "base/heap.h"
#include "engine/items/numbers.h"
#include "engine/plan/part.h"
#include "engine/plan/selection.h"
#include "engine/run/thresholds.h"

#include <string.h>

typedef struct axes_task {
    const cv_reduction *reduction;
    const cv_axes_request *request;
    const cv_grid *grid;
    bool by_block;                    /* tiles are cut at blocks, else at chunks */
    int64_t n_tiles[CV_MAX_DIMS];     /* along each axis; 1 where it goes */
    int64_t first_tile[CV_MAX_DIMS];  /* number of the first one on its axis */
    int64_t dst_strides[CV_MAX_DIMS]; /* cells of the result; 0 where the axis goes */
    int64_t per_cell;                 /* items behind each cell */
    bool by_tile;                     /* tiles are read ahead together, else their chunks */
    int64_t memory;                   /* for what is read ahead of one tile */
    cv_stage stage;                   /* of tiles */
} axes_task;

/* One job: a selection of its own, whose cells stand in C order. */
typedef struct tile {
    const axes_task *task;
    cv_selection selection;
    int64_t strides[CV_MAX_DIMS]; /* of the tile's cells; 0 where the axis goes */
    int64_t counts[CV_MAX_DIMS];  /* cells; 1 where the axis goes */
    int64_t first[CV_MAX_DIMS];   /* the first cell's place in the result */
    int64_t n_cells;
    cv_cell *cells;
} tile;

/* ---- Folding --------------------------------------------------------------- */

/* One value all over the part: each cell behind it counts it so many times. */
static void fold_repeated(const tile *t, const cv_fold_part *part)
{
    const cv_number_type *type = t->task->reduction->type;
    caterva_reduction what = t->task->request->what;
    cv_part cells = part->part; /* its projection onto the result */
    cv_wide value;
    int64_t times = 1;
    type->load(part->item, type->item_size, 1, &value);
    cv_wide copy = value;
    if (cv_numbers_drop_nan(type, &copy, 1) == 0) return;
    for (int d = 0; d < cells.ndim; d++) {
        if (!t->task->request->reduced[d]) continue;
        times *= cells.n[d];
        cells.n[d] = 1;
    }
    cv_cell *first = t->cells + cells.pos[CV_IN_BUFFER];
    cv_rows rows;
    for (cv_rows_begin(&rows, &cells); !rows.done; cv_rows_next(&rows))
        for (int64_t i = 0; i < rows.length; i++)
            cv_cell_repeat(first + rows.pos[CV_IN_BUFFER] + i * rows.step[CV_IN_BUFFER], type,
                           what, value, times);
}

static void fold_part(void *context, const cv_fold_part *part)
{
    const tile *t = context;
    const cv_number_type *type = t->task->reduction->type;
    caterva_reduction what = t->task->request->what;
    int ndim = t->task->grid->ndim;
    if (!part->data) {
        fold_repeated(t, part);
        return;
    }
    bool row_is_cell = ndim == 0 || t->task->request->reduced[ndim - 1];
    cv_cell *first = t->cells + part->part.pos[CV_IN_BUFFER];
    cv_wide values[CV_RUN];
    cv_rows rows;
    for (cv_rows_begin(&rows, &part->part); !rows.done; cv_rows_next(&rows)) {
        cv_cell *at = first + rows.pos[CV_IN_BUFFER];
        const uint8_t *row = part->data + rows.pos[CV_IN_BLOCK];
        int64_t step = rows.step[CV_IN_BLOCK];
        for (int64_t i = 0; i < rows.length; i += CV_RUN) {
            int64_t n = cv_min_i64(rows.length - i, CV_RUN);
            type->load(row + i * step, step, n, values);
            if (row_is_cell)
                cv_cell_run(at, type, what, values, n);
            else
                cv_cells_each(at + i, type, what, values, n);
        }
    }
}

/* ---- Results --------------------------------------------------------------- */

/* The tile's cells, and where they lie in the result, whose cells take `size` bytes. */
static cv_part place_tile(const tile *t, int64_t size, int64_t *first)
{
    const axes_task *task = t->task;
    cv_part cells = {.ndim = task->grid->ndim, .item_size = size};
    memcpy(cells.n, t->counts, sizeof cells.n);
    *first = 0;
    for (int d = 0; d < cells.ndim; d++) {
        cells.strides[CV_IN_BUFFER][d] = task->dst_strides[d] * size;
        *first += t->first[d] * cells.strides[CV_IN_BUFFER][d];
    }
    return cells;
}

static void store_tile(const tile *t)
{
    const cv_axes_request *request = t->task->request;
    const cv_number_type *type = t->task->reduction->type;
    int64_t first;
    cv_part cells = place_tile(t, cv_reduce_cell_size(type, request->what), &first);
    const cv_cell *c = t->cells;
    cv_rows rows;
    for (cv_rows_begin(&rows, &cells); !rows.done; cv_rows_next(&rows)) {
        uint8_t *row = request->dst + first + rows.pos[CV_IN_BUFFER];
        for (int64_t i = 0; i < rows.length; i++) {
            cv_wide value = cv_cell_result(c++, type, request->what, t->task->per_cell,
                                           request->skip_nan);
            cv_reduce_store(type, request->what, value, row + i * rows.step[CV_IN_BUFFER]);
        }
    }
}

/* Into cells that others have counted in. */
static void add_tile(const tile *t)
{
    const cv_axes_request *request = t->task->request;
    const cv_number_type *type = t->task->reduction->type;
    int64_t first;
    cv_part cells = place_tile(t, 1, &first);
    const cv_cell *c = t->cells;
    cv_rows rows;
    for (cv_rows_begin(&rows, &cells); !rows.done; cv_rows_next(&rows))
        for (int64_t i = 0; i < rows.length; i++)
            cv_cell_add(request->cells + first + rows.pos[CV_IN_BUFFER] +
                            i * rows.step[CV_IN_BUFFER],
                        type, request->what, c++);
}

/* ---- Tiles ----------------------------------------------------------------- */

/* Items [lo, hi) of the array on axis `d`, between the edges of chunks or blocks. */
static void tile_bounds(const axes_task *task, int d, int64_t number, int64_t *lo,
                        int64_t *hi)
{
    const cv_grid *g = task->grid;
    int64_t per_chunk = task->by_block ? g->block_counts[d] : 1;
    int64_t length = task->by_block ? g->block_shape[d] : g->chunk_shape[d];
    int64_t origin = number / per_chunk * g->chunk_shape[d];
    *lo = origin + number % per_chunk * length;
    *hi = cv_min_i64(*lo + length, origin + g->chunk_shape[d]);
}

/* Places of a list that one tile has. */
static int64_t list_tile(const axes_task *task, int d)
{
    return task->by_block ? task->grid->block_shape[d] : task->grid->chunk_shape[d];
}

static int64_t tile_at(const axes_task *task, int d, int64_t item)
{
    const cv_grid *g = task->grid;
    if (!task->by_block) return item / g->chunk_shape[d];
    return item / g->chunk_shape[d] * g->block_counts[d] +
           item % g->chunk_shape[d] / g->block_shape[d];
}

/* Of an axis that stays what tile `number` has; a list is cut by its places. False: no
 * item is selected. */
static bool cut_axis(tile *t, int d, int64_t number)
{
    const axes_task *task = t->task;
    const cv_axis *all = &task->reduction->selection->axes[d];
    cv_axis *axis = &t->selection.axes[d];
    if (all->list) {
        int64_t length = list_tile(task, d);
        t->first[d] = number * length;
        axis->n = cv_min_i64(length, all->n - t->first[d]);
        axis->list = all->list + t->first[d];
    } else {
        int64_t lo, hi;
        tile_bounds(task, d, task->first_tile[d] + number, &lo, &hi);
        axis->n = cv_stepped_count(all, lo, hi, &t->first[d]);
        axis->start = all->start + t->first[d] * all->step;
    }
    t->counts[d] = axis->n;
    t->selection.shape[d] = axis->n;
    return axis->n > 0;
}

/* The tile of job `job`; false: no item of it is selected. */
static bool find_tile(const axes_task *task, int64_t job, tile *t)
{
    *t = (tile){.task = task, .selection = *task->reduction->selection, .n_cells = 1};
    t->selection.n_items = task->per_cell;
    for (int d = task->grid->ndim - 1; d >= 0; d--) {
        t->counts[d] = 1;
        if (task->request->reduced[d]) continue;
        if (!cut_axis(t, d, job % task->n_tiles[d])) return false;
        job /= task->n_tiles[d];
        t->strides[d] = t->n_cells;
        t->n_cells *= t->counts[d];
    }
    t->selection.n_items *= t->n_cells;
    return true;
}

static cv_status fold_chunks(tile *t, cv_fold *fold, cv_worker *worker, cv_error *err)
{
    cv_stage stage = {.windows = NULL};
    cv_status status = CV_OK;
    if (!t->task->by_tile)
        CV_TRY(cv_walk_set_stage(&fold->walk, 1, t->task->memory, &stage, err));
    for (int64_t k = 0; status == CV_OK && k < fold->walk.n_chunks; k++) {
        cv_share whole = {.chunk = k, .n_shares = 1};
        status = cv_fold_share(fold, &whole, t, worker, err);
    }
    cv_stage_destroy(&stage);
    return status;
}

static cv_status init_fold(tile *t, cv_fold *fold, cv_error *err)
{
    return cv_fold_init(fold, t->task->reduction->source, &t->selection, t->strides,
                        fold_part, err);
}

static cv_status fold_tile(tile *t, cv_worker *worker, cv_error *err)
{
    cv_fold fold;
    cv_status status = init_fold(t, &fold, err);
    if (status == CV_OK) status = fold_chunks(t, &fold, worker, err);
    cv_fold_free(&fold);
    if (status != CV_OK) return status;
    if (t->task->request->cells)
        add_tile(t);
    else
        store_tile(t);
    return CV_OK;
}

static cv_status reduce_tile(tile *t, cv_worker *worker, cv_error *err)
{
    t->cells = cv_calloc((size_t)t->n_cells, sizeof t->cells[0]);
    if (!t->cells)
        return cv_fail_memory(err, (size_t)t->n_cells * sizeof t->cells[0], "a result");
    cv_status status = fold_tile(t, worker, err);
    cv_free(t->cells);
    return status;
}

static cv_status tile_job(void *context, int64_t job, cv_worker *worker, cv_error *err)
{
    axes_task *task = context;
    tile t;
    if (find_tile(task, job, &t)) {
        CV_TRY(cv_stage_enter(&task->stage, job, worker, err));
        cv_status status = reduce_tile(&t, worker, err);
        cv_stage_leave(&task->stage, job, worker);
        CV_TRY(status);
    }
    return cv_watch_step(task->reduction->watch, 1, err);
}

/* ---- What is read ahead ------------------------------------------------------ */

static cv_status list_tile_needs(void *context, int64_t job, cv_worker *worker,
                                 cv_stage_list *list, cv_error *err)
{
    cv_fold fold;
    tile t;
    if (!find_tile(context, job, &t)) return CV_OK;
    cv_status status = init_fold(&t, &fold, err);
    for (int64_t k = 0; status == CV_OK && k < fold.walk.n_chunks; k++)
        status = cv_walk_list_missing(&fold.walk, k, worker, list, err);
    cv_fold_free(&fold);
    return status;
}

/* Tiles that are small are read ahead together, of a large one its chunks are. */
static cv_status init_stage(axes_task *task, int64_t n_jobs, int threads, cv_error *err)
{
    const cv_selection *selected = task->reduction->selection;
    const cv_stage_plan plan = {.n_units = n_jobs,
                                .bytes = selected->n_items * task->grid->item_size,
                                .threads = threads,
                                .list = list_tile_needs,
                                .context = task};
    task->memory = CV_STAGE_BYTES / threads;
    task->by_tile = plan.bytes / n_jobs < CV_STAGE_BYTES / (threads + 1);
    task->stage = (cv_stage){.windows = NULL};
    if (!task->by_tile) return CV_OK;
    return cv_stage_init(&task->stage, task->reduction->source, &plan, err);
}

static int64_t cut_tiles(axes_task *task, bool by_block)
{
    int64_t total = 1;
    task->by_block = by_block;
    for (int d = 0; d < task->grid->ndim; d++) {
        const cv_axis *axis = &task->reduction->selection->axes[d];
        task->n_tiles[d] = 1;
        if (task->request->reduced[d]) continue;
        if (axis->list) {
            task->n_tiles[d] = cv_ceil_div(axis->n, list_tile(task, d));
        } else {
            int64_t last = axis->start + (axis->n - 1) * axis->step;
            task->first_tile[d] = tile_at(task, d, axis->start);
            task->n_tiles[d] = tile_at(task, d, last) - task->first_tile[d] + 1;
        }
        total *= task->n_tiles[d];
    }
    return total;
}

/* Cuts at chunks, unless these are few, or wide: then at blocks, where a chunk's blocks
 * can be decoded apart. */
static int64_t choose_tiles(axes_task *task)
{
    const cv_source *source = task->reduction->source;
    int64_t cells = 1, n = cut_tiles(task, false);
    for (int d = 0; d < task->grid->ndim; d++)
        if (!task->request->reduced[d]) cells *= task->grid->chunk_shape[d];
    bool few = source->threads > 1 && n < (int64_t)source->threads * CV_TILES_PER_THREAD;
    if ((few || cells > CV_CELLS_PER_TILE) &&
        cv_codec_blocks_independent(&source->workers->spec))
        n = cut_tiles(task, true);
    return n;
}

cv_status cv_reduce_axes(const cv_reduction *r, const cv_axes_request *request, cv_error *err)
{
    const cv_source *source = r->source;
    axes_task task = {
        .reduction = r, .request = request, .grid = &source->snapshot->grid, .per_cell = 1};
    for (int d = 0; d < task.grid->ndim; d++) {
        if (request->reduced[d])
            task.per_cell *= r->selection->axes[d].n;
        else
            task.dst_strides[d] = request->strides[d];
    }
    int64_t n_jobs = choose_tiles(&task);
    cv_watch_set_steps(r->watch, n_jobs);
    int helpers = (int)cv_min_i64(source->threads, n_jobs) - 1;
    CV_TRY(init_stage(&task, n_jobs, helpers + 1, err));
    const cv_crew crew = {source->workers, helpers, r->watch};
    cv_status status = cv_workers_run(&crew, n_jobs, tile_job, &task, err);
    cv_stage_destroy(&task.stage);
    return status;
}

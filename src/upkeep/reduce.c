/* Room: upkeep. Reductions along some of the axes, statistics, and histograms. The result of a
 * reduction along axes is divided into tiles, at chunk or block edges of the axes that are kept. A
 * job folds all items of one tile, so cells are not shared between jobs, and the order of
 * operations is always the same.
 *
 *   axis 0 is reduced   +---------+---------+
 *                       | chunk 0 | chunk 1 |   job 0: chunks 0, 2    job 1: 1, 3
 *                       +---------+---------+
 *                       | chunk 2 | chunk 3 |
 *                       +---------+---------+
 *      the result       |  tile 0 |  tile 1 | */
#include "upkeep/reduce.h"

#include "base/arith.h"
#include "base/heap.h"
#include "engine/plan/part.h"
#include "engine/plan/selection.h"
#include "engine/run/thresholds.h"

#include <caterva_upkeep.h>
#include <math.h>
#include <string.h>

/* ---- Rows and slices -----------------------------------------------------------
 *
 * Iterates over the rows of a part with constant steps: a row is along the last axis, and an
 * odometer counts the others. With 0 dimensions there is one row of one item. */

typedef struct row_walk {
    const cv_part *part;
    int64_t index[CV_MAX_DIMS]; /* of the row's first item in the part */
    int64_t pos[2];             /* by cv_side: first item of the row, in the part */
    int64_t length;             /* items */
    int64_t step[2];            /* by cv_side: between items of the row */
    bool done;
} row_walk;

static void begin_rows(row_walk *r, const cv_part *part)
{
    *r = (row_walk){.part = part, .length = 1};
    if (part->ndim == 0) return;
    int last = part->ndim - 1;
    r->length = part->n[last];
    r->step[CV_IN_BLOCK] = part->strides[CV_IN_BLOCK][last];
    r->step[CV_IN_BUFFER] = part->strides[CV_IN_BUFFER][last];
}

static void move_row(row_walk *r, int d, int64_t steps)
{
    r->pos[CV_IN_BLOCK] += steps * r->part->strides[CV_IN_BLOCK][d];
    r->pos[CV_IN_BUFFER] += steps * r->part->strides[CV_IN_BUFFER][d];
}

static void next_row(row_walk *r)
{
    const cv_part *part = r->part;
    for (int d = part->ndim - 2; d >= 0; d--) {
        move_row(r, d, 1);
        if (++r->index[d] < part->n[d]) return;
        move_row(r, d, -part->n[d]);
        r->index[d] = 0;
    }
    r->done = true;
}

/* Counts the items of a forward, nonempty slice that are in [lo, hi). *first is the number of the
 * first of them in the slice. */
static int64_t count_in(const cv_axis *axis, int64_t lo, int64_t hi, int64_t *first)
{
    int64_t last = axis->start + (axis->n - 1) * axis->step;
    lo = cv_max_i64(lo, axis->start);
    hi = cv_min_i64(hi, last + 1);
    *first = cv_ceil_div(lo - axis->start, axis->step);
    if (hi <= lo) return 0;
    return (hi - 1 - axis->start) / axis->step + 1 - *first;
}

/* ---- Cells ------------------------------------------------------------------------- */

static bool adds_doubles(const cv_number_type *type, caterva_reduction what)
{
    switch (what) {
    case CATERVA_REDUCTION_MIN:
    case CATERVA_REDUCTION_MAX: break;
    case CATERVA_REDUCTION_SUM: return type->number_class == CV_REAL;
    case CATERVA_REDUCTION_MEAN: return true;
    }
    return false;
}

static void add_real(cv_cell *c, double value)
{
    cv_real_sum sum = {c->value.f, c->rest};
    cv_real_sum_add(&sum, value);
    c->value.f = sum.sum;
    c->rest = sum.rest;
}

/* Folds a value into an extreme, or adds it n times to a sum. */
static void fold(cv_cell *c, const cv_number_type *type, caterva_reduction what,
                 cv_wide value, int64_t n)
{
    switch (what) {
    case CATERVA_REDUCTION_MIN:
        if (c->n == 0 || cv_number_less(type->number_class, value, c->value))
            c->value = value;
        break;
    case CATERVA_REDUCTION_MAX:
        if (c->n == 0 || cv_number_less(type->number_class, c->value, value))
            c->value = value;
        break;
    case CATERVA_REDUCTION_SUM:
        if (type->number_class == CV_REAL)
            add_real(c, value.f * (double)n);
        else
            c->value.u += value.u * (uint64_t)n; /* wraps, as in NumPy */
        break;
    case CATERVA_REDUCTION_MEAN:
        cv_numbers_to_real(type->number_class, &value, 1);
        add_real(c, value.f * (double)n);
        break;
    }
    c->n += n;
}

/* cell_run folds n values into one cell; cells_each folds each of n values into a cell of its own.
 * Both overwrite the values. */
static void cell_run(cv_cell *cell, const cv_number_type *type, caterva_reduction what,
                     cv_wide *values, int64_t n)
{
    n = cv_numbers_drop_nan(type, values, n);
    if (adds_doubles(type, what)) {
        cv_numbers_to_real(type->number_class, values, n);
        if (n > 0) add_real(cell, cv_numbers_sum(values, n));
        cell->n += n;
        return;
    }
    for (int64_t i = 0; i < n; i++) fold(cell, type, what, values[i], 1);
}

static void cells_each(cv_cell *cells, const cv_number_type *type, caterva_reduction what,
                       cv_wide *values, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (cv_numbers_drop_nan(type, &values[i], 1) == 1)
            fold(&cells[i], type, what, values[i], 1);
}

/* Adds the numbers of `from` to `cell`. */
static void cell_add(cv_cell *cell, const cv_number_type *type, caterva_reduction what,
                     const cv_cell *from)
{
    if (from->n == 0) return;
    if (adds_doubles(type, what)) {
        add_real(cell, from->value.f);
        cell->rest += from->rest;
    } else {
        fold(cell, type, what, from->value, 1);
        cell->n--;
    }
    cell->n += from->n;
}

static cv_cell cell_of(const cv_tally *tally, const cv_number_type *type,
                       caterva_reduction what)
{
    cv_cell cell = {.n = tally->n};
    bool real = type->number_class == CV_REAL;
    switch (what) {
    case CATERVA_REDUCTION_MIN: cell.value = tally->min; break;
    case CATERVA_REDUCTION_MAX: cell.value = tally->max; break;
    case CATERVA_REDUCTION_SUM:
        if (!real) cell.value.u = tally->exact.low;
        break;
    case CATERVA_REDUCTION_MEAN:
        if (!real) cell.value.f = cv_tally_mean(tally, type) * (double)tally->n;
        break;
    }
    if (real && !cv_reduce_gives_item(what)) {
        cell.value.f = tally->real.sum;
        cell.rest = tally->real.rest;
    }
    return cell;
}

void cv_cell_add_tally(cv_cell *cell, const cv_number_type *type, caterva_reduction what,
                       const cv_tally *from)
{
    if (from->n == 0) return;
    const cv_cell counted = cell_of(from, type, what);
    cell_add(cell, type, what, &counted);
}

bool cv_reduce_gives_item(caterva_reduction what)
{
    switch (what) {
    case CATERVA_REDUCTION_MIN:
    case CATERVA_REDUCTION_MAX: return true;
    case CATERVA_REDUCTION_SUM:
    case CATERVA_REDUCTION_MEAN: break;
    }
    return false;
}

int64_t cv_reduce_cell_size(const cv_number_type *type, caterva_reduction what)
{
    return cv_reduce_gives_item(what) ? type->item_size : 8;
}

void cv_reduce_store(const cv_number_type *type, caterva_reduction what, cv_wide value,
                     uint8_t *dst)
{
    if (cv_reduce_gives_item(what))
        cv_number_store(type, value, dst);
    else
        memcpy(dst, &value, sizeof value);
}

/* Returns the result if there is a NaN or NaT that is not skipped. */
static cv_wide nan_of(const cv_number_type *type)
{
    return type->is_time ? (cv_wide){.i = INT64_MIN} : (cv_wide){.f = (double)NAN};
}

cv_wide cv_reduce_nothing(const cv_number_type *type, caterva_reduction what)
{
    switch (what) {
    case CATERVA_REDUCTION_MIN:
    case CATERVA_REDUCTION_MAX:
    case CATERVA_REDUCTION_MEAN: break;
    case CATERVA_REDUCTION_SUM: return (cv_wide){.u = 0};
    }
    return nan_of(type);
}

static double real_sum_of(const cv_cell *c)
{
    cv_real_sum sum = {c->value.f, c->rest};
    return cv_real_sum_value(&sum);
}

cv_wide cv_cell_result(const cv_cell *cell, const cv_number_type *type,
                       caterva_reduction what, int64_t n_items, bool skip_nan)
{
    bool saw_nan = cell->n < n_items;
    if (saw_nan && !skip_nan) return nan_of(type);
    if (cell->n == 0) return cv_reduce_nothing(type, what);
    switch (what) {
    case CATERVA_REDUCTION_MIN:
    case CATERVA_REDUCTION_MAX: return cell->value;
    case CATERVA_REDUCTION_SUM:
        return adds_doubles(type, what) ? (cv_wide){.f = real_sum_of(cell)} : cell->value;
    case CATERVA_REDUCTION_MEAN: return (cv_wide){.f = real_sum_of(cell) / (double)cell->n};
    }
    return nan_of(type);
}

cv_wide cv_reduce_tally(const cv_tally *tally, const cv_number_type *type,
                        caterva_reduction what, bool skip_nan)
{
    if (tally->n_nan > 0 && !skip_nan) return nan_of(type);
    if (tally->n == 0) return cv_reduce_nothing(type, what);
    switch (what) {
    case CATERVA_REDUCTION_MIN: return tally->min;
    case CATERVA_REDUCTION_MAX: return tally->max;
    case CATERVA_REDUCTION_SUM:
        if (type->number_class != CV_REAL) return (cv_wide){.u = tally->exact.low};
        return (cv_wide){.f = cv_real_sum_value(&tally->real)};
    case CATERVA_REDUCTION_MEAN: return (cv_wide){.f = cv_tally_mean(tally, type)};
    }
    return nan_of(type);
}

/* ---- Along axes -------------------------------------------------------------------- */

typedef struct axes_task {
    const cv_reduction *reduction;
    const cv_axes_request *request;
    const cv_grid *grid;
    bool by_block;                    /* tiles end at block edges, else at chunk edges */
    int64_t n_tiles[CV_MAX_DIMS];     /* along each axis; 1 if the axis is reduced */
    int64_t first_tile[CV_MAX_DIMS];  /* number of the first tile on its axis */
    int64_t dst_strides[CV_MAX_DIMS]; /* in cells of the result; 0 if the axis is reduced */
    int64_t per_cell;                 /* items folded into each cell */
    bool by_tile;                     /* whole tiles are read ahead, else chunks */
    int64_t memory;                   /* bytes for reading ahead within one tile */
    cv_stage stage;                   /* whose units are tiles */
} axes_task;

/* One job: a part of the selection, and its cells in C order. */
typedef struct tile {
    const axes_task *task;
    cv_selection selection;
    int64_t strides[CV_MAX_DIMS]; /* between the tile's cells; 0 if the axis is reduced */
    int64_t counts[CV_MAX_DIMS];  /* cells; 1 if the axis is reduced */
    int64_t first[CV_MAX_DIMS];   /* position of the first cell in the result */
    int64_t n_cells;
    cv_cell *cells;
} tile;

/* Folds a value that is repeated in the part into each cell, as often as it occurs. */
static void fold_repeated(const tile *t, const cv_fold_part *part)
{
    const cv_number_type *type = t->task->reduction->type;
    caterva_reduction what = t->task->request->what;
    cv_part cells = part->part; /* projected onto the result */
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
    row_walk rows;
    for (begin_rows(&rows, &cells); !rows.done; next_row(&rows))
        for (int64_t i = 0; i < rows.length; i++)
            fold(first + rows.pos[CV_IN_BUFFER] + i * rows.step[CV_IN_BUFFER], type, what,
                 value, times);
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
    row_walk rows;
    for (begin_rows(&rows, &part->part); !rows.done; next_row(&rows)) {
        cv_cell *at = first + rows.pos[CV_IN_BUFFER];
        const uint8_t *row = part->data + rows.pos[CV_IN_BLOCK];
        int64_t step = rows.step[CV_IN_BLOCK];
        for (int64_t i = 0; i < rows.length; i += CV_RUN) {
            int64_t n = cv_min_i64(rows.length - i, CV_RUN);
            type->load(row + i * step, step, n, values);
            if (row_is_cell)
                cell_run(at, type, what, values, n);
            else
                cells_each(at + i, type, what, values, n);
        }
    }
}

/* Returns the tile's cells as a part of the result, in which a cell takes `size` bytes. *first is
 * the position of the part's first cell. */
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
    row_walk rows;
    for (begin_rows(&rows, &cells); !rows.done; next_row(&rows)) {
        uint8_t *row = request->dst + first + rows.pos[CV_IN_BUFFER];
        for (int64_t i = 0; i < rows.length; i++) {
            cv_wide value = cv_cell_result(c++, type, request->what, t->task->per_cell,
                                           request->skip_nan);
            cv_reduce_store(type, request->what, value, row + i * rows.step[CV_IN_BUFFER]);
        }
    }
}

/* Adds the tile's cells to those of the request, which hold the results of other arrays. */
static void add_tile(const tile *t)
{
    const cv_axes_request *request = t->task->request;
    const cv_number_type *type = t->task->reduction->type;
    int64_t first;
    cv_part cells = place_tile(t, 1, &first);
    const cv_cell *c = t->cells;
    row_walk rows;
    for (begin_rows(&rows, &cells); !rows.done; next_row(&rows))
        for (int64_t i = 0; i < rows.length; i++)
            cell_add(request->cells + first + rows.pos[CV_IN_BUFFER] +
                         i * rows.step[CV_IN_BUFFER],
                     type, request->what, c++);
}

/* Sets the items [lo, hi) of tile `number` along axis `d`. */
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

/* Returns the length of a tile along an axis with a list, which is cut by index. */
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

/* Cuts a kept axis to tile `number`. Returns false if no item of the tile is selected. */
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
        axis->n = count_in(all, lo, hi, &t->first[d]);
        axis->start = all->start + t->first[d] * all->step;
    }
    t->counts[d] = axis->n;
    t->selection.shape[d] = axis->n;
    return axis->n > 0;
}

/* Finds the tile of a job. Returns false if no item of the tile is selected. */
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
    int64_t n = 1;
    for (int64_t k = 0; status == CV_OK && k < fold->walk.n_chunks; k += n)
        status = cv_fold_run(fold, k, fold->walk.n_chunks, t, worker, &n, err);
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
    t->cells = cv_calloc(cv_size(t->n_cells), sizeof t->cells[0]);
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
    return cv_watch_tick(task->reduction->source->watch, 0, err);
}

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

/* Prepares reading ahead: small tiles as a whole, large tiles chunk by chunk. */
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

/* Cuts tiles at chunk edges, or at block edges if there are few or wide chunks and blocks decode
 * separately. Returns the number of tiles. */
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
    int helpers = (int)cv_min_i64(source->threads, n_jobs) - 1;
    CV_TRY(init_stage(&task, n_jobs, helpers + 1, err));
    const cv_crew crew = {source->workers, helpers, source->watch};
    cv_status status = cv_workers_run(&crew, n_jobs, tile_job, &task, err);
    cv_stage_destroy(&task.stage);
    return status;
}

/* ---- Over all items ---------------------------------------------------------------------
 *
 * The items are divided into jobs, whose number does not depend on the number of threads. Each job
 * counts separately, and the jobs' counts are added in the order of the jobs. So the same array
 * gives the same result, to the last bit. */

/* Steps between cells: all items have the same cell. */
static const int64_t nowhere[CV_MAX_DIMS];

/* Units are the touched chunks or, if there are few, shares of them. A job is a run of units. */
typedef struct job_list {
    int64_t n_shares;
    int64_t n_units;
    int64_t n_jobs;
    int helpers;
} job_list;

static job_list cut_jobs(const cv_source *source, const cv_walk *walk)
{
    const cv_grid *grid = &source->snapshot->grid;
    job_list list = {.n_shares = 1};
    if (walk->n_chunks < CV_LEAST_TALLIES &&
        cv_codec_blocks_independent(&source->workers->spec))
        list.n_shares = cv_min_i64(
            cv_ceil_div(CV_LEAST_TALLIES, cv_max_i64(walk->n_chunks, 1)), grid->n_blocks);
    list.n_units = walk->n_chunks * list.n_shares;
    list.n_jobs = cv_min_i64(list.n_units, CV_MOST_TALLIES);
    double bytes = (double)walk->n_chunks * (double)grid->chunk_bytes;
    double worth = bytes / (double)CV_DECODE_PER_HELPER;
    int64_t most = cv_min_i64(source->threads, list.n_jobs) - 1;
    list.helpers = worth < (double)most ? (int)worth : (int)most;
    return list;
}

typedef struct run_task {
    const cv_reduction *reduction;
    const cv_fold *fold;
    const job_list *list;
} run_task;

static cv_status fold_job(const run_task *task, int64_t job, void *context, cv_worker *worker,
                          cv_error *err)
{
    const job_list *list = task->list;
    int64_t first = list->n_units / list->n_jobs * job +
                    list->n_units % list->n_jobs * job / list->n_jobs;
    int64_t last = list->n_units / list->n_jobs * (job + 1) +
                   list->n_units % list->n_jobs * (job + 1) / list->n_jobs;
    for (int64_t unit = first, n = 1; unit < last; unit += n) {
        cv_share share = {unit / list->n_shares, unit % list->n_shares, list->n_shares};
        if (list->n_shares > 1)
            CV_TRY(cv_fold_share(task->fold, &share, context, worker, err));
        else
            CV_TRY(cv_fold_run(task->fold, unit, last, context, worker, &n, err));
    }
    return cv_watch_tick(task->reduction->source->watch, 0, err);
}

/* The tally of a job, and numbers that are waiting for a full run of CV_RUN. */
typedef struct counter {
    const cv_number_type *type;
    cv_tally *tally;
    int64_t n;
    cv_wide waiting[CV_RUN];
} counter;

static void count_waiting(counter *c)
{
    if (c->n > 0) cv_tally_run(c->tally, c->type, c->waiting, c->n);
    c->n = 0;
}

static void count_part(void *context, const cv_fold_part *part)
{
    counter *c = context;
    if (!part->data) {
        cv_wide value;
        c->type->load(part->item, c->type->item_size, 1, &value);
        cv_tally_repeat(c->tally, c->type, value, part->n_items);
        return;
    }
    row_walk rows;
    for (begin_rows(&rows, &part->part); !rows.done; next_row(&rows)) {
        const uint8_t *row = part->data + rows.pos[CV_IN_BLOCK];
        int64_t step = rows.step[CV_IN_BLOCK];
        for (int64_t i = 0; i < rows.length;) {
            int64_t n = cv_min_i64(rows.length - i, CV_RUN - c->n);
            c->type->load(row + i * step, step, n, c->waiting + c->n);
            c->n += n;
            i += n;
            if (c->n == CV_RUN) count_waiting(c);
        }
    }
}

typedef struct statistics_task {
    run_task run;
    cv_tally *tallies; /* one per job */
} statistics_task;

static cv_status statistics_job(void *context, int64_t job, cv_worker *worker, cv_error *err)
{
    const statistics_task *task = context;
    counter c = {.type = task->run.reduction->type, .tally = &task->tallies[job]};
    CV_TRY(fold_job(&task->run, job, &c, worker, err));
    count_waiting(&c);
    return CV_OK;
}

/* Runs the jobs, and reads their bytes ahead from a far store. */
static cv_status run_jobs(cv_fold *fold, const job_list *list, cv_job_fn job, void *task,
                          cv_error *err)
{
    const cv_source *source = fold->walk.source;
    const cv_crew crew = {source->workers, list->helpers, source->watch};
    cv_stage stage;
    CV_TRY(cv_walk_set_stage(&fold->walk, list->helpers + 1, 0, &stage, err));
    cv_status status = cv_workers_run(&crew, list->n_jobs, job, task, err);
    cv_stage_destroy(&stage);
    return status;
}

static cv_status tally_all(const cv_reduction *r, cv_fold *fold, cv_tally *out, cv_error *err)
{
    job_list list = cut_jobs(r->source, &fold->walk);
    statistics_task task = {.run = {r, fold, &list}};
    task.tallies = cv_calloc(cv_size(list.n_jobs), sizeof task.tallies[0]);
    if (!task.tallies)
        return cv_fail_memory(err, (size_t)list.n_jobs * sizeof task.tallies[0], "tallies");
    cv_status status = run_jobs(fold, &list, statistics_job, &task, err);
    for (int64_t i = 0; i < list.n_jobs; i++) cv_tally_add(out, r->type, &task.tallies[i]);
    cv_free(task.tallies);
    return status;
}

cv_status cv_statistics(const cv_reduction *r, cv_tally *out, cv_error *err)
{
    cv_fold fold;
    *out = (cv_tally){0};
    if (r->selection->n_items == 0) return CV_OK;
    cv_status status = cv_fold_init(&fold, r->source, r->selection, nowhere, count_part, err);
    if (status == CV_OK) status = tally_all(r, &fold, out, err);
    cv_fold_free(&fold);
    return status;
}

typedef struct histogram_task {
    run_task run;
    const cv_bins *bins;
    const double *edges; /* n_bins + 1, rising, computed like numpy.linspace */
    cv_mutex lock;
} histogram_task;

typedef struct bin_counter {
    const histogram_task *task;
    const cv_number_type *type;
    int64_t *counts;
} bin_counter;

static void count_in_bin(const bin_counter *c, double value, int64_t n)
{
    const cv_bins *bins = c->task->bins;
    const double *edges = c->task->edges;
    if (!(value >= bins->lo && value <= bins->hi)) return; /* NaN is in no bin */
    int64_t bin =
        (int64_t)((value - bins->lo) / (bins->hi - bins->lo) * (double)bins->n_bins);
    if (bin >= bins->n_bins) bin = bins->n_bins - 1;
    if (value < edges[bin]) bin--;
    if (bin + 1 < bins->n_bins && value >= edges[bin + 1]) bin++;
    c->counts[bin] += n;
}

static void count_run(const bin_counter *c, cv_wide *values, int64_t n, int64_t times)
{
    n = cv_numbers_drop_nan(c->type, values, n);
    cv_numbers_to_real(c->type->number_class, values, n);
    for (int64_t i = 0; i < n; i++) count_in_bin(c, values[i].f, times);
}

static void count_part_in_bins(void *context, const cv_fold_part *part)
{
    const bin_counter *c = context;
    cv_wide values[CV_RUN];
    if (!part->data) {
        c->type->load(part->item, c->type->item_size, 1, values);
        count_run(c, values, 1, part->n_items);
        return;
    }
    row_walk rows;
    for (begin_rows(&rows, &part->part); !rows.done; next_row(&rows)) {
        const uint8_t *row = part->data + rows.pos[CV_IN_BLOCK];
        int64_t step = rows.step[CV_IN_BLOCK];
        for (int64_t i = 0; i < rows.length; i += CV_RUN) {
            int64_t n = cv_min_i64(rows.length - i, CV_RUN);
            c->type->load(row + i * step, step, n, values);
            count_run(c, values, n, 1);
        }
    }
}

static cv_status histogram_job(void *context, int64_t job, cv_worker *worker, cv_error *err)
{
    histogram_task *task = context;
    size_t n = cv_size(task->bins->n_bins);
    bin_counter c = {.task = task, .type = task->run.reduction->type};
    c.counts = cv_calloc(n, sizeof c.counts[0]);
    if (!c.counts) return cv_fail_memory(err, n * sizeof c.counts[0], "a histogram");
    cv_status status = fold_job(&task->run, job, &c, worker, err);
    cv_mutex_lock(&task->lock);
    for (size_t i = 0; i < n; i++) task->bins->counts[i] += c.counts[i];
    cv_mutex_unlock(&task->lock);
    cv_free(c.counts);
    return status;
}

static cv_status make_edges(const cv_bins *bins, double **out, cv_error *err)
{
    size_t n = cv_size(bins->n_bins);
    double *edges = cv_calloc(n + 1, sizeof edges[0]);
    if (!edges) return cv_fail_memory(err, (n + 1) * sizeof edges[0], "a histogram's edges");
    double width = (bins->hi - bins->lo) / (double)n;
    for (size_t i = 0; i < n; i++) edges[i] = (double)i * width + bins->lo;
    edges[n] = bins->hi;
    for (size_t i = 0; i < n; i++) {
        if (edges[i] < edges[i + 1]) continue;
        cv_free(edges);
        return cv_fail(err, CATERVA_EINVAL, -1,
                       "the range [%.17g, %.17g] is too narrow for %zu bins", bins->lo,
                       bins->hi, n);
    }
    *out = edges;
    return CV_OK;
}

static cv_status bin_all(const cv_reduction *r, cv_fold *fold, const cv_bins *bins,
                         double *edges, cv_error *err)
{
    job_list list = cut_jobs(r->source, &fold->walk);
    histogram_task task = {.run = {r, fold, &list}, .bins = bins, .edges = edges};
    cv_mutex_init(&task.lock);
    cv_status status = run_jobs(fold, &list, histogram_job, &task, err);
    cv_mutex_destroy(&task.lock);
    return status;
}

cv_status cv_histogram(const cv_reduction *r, const cv_bins *bins, cv_error *err)
{
    cv_fold fold;
    double *edges = NULL;
    CV_TRY(make_edges(bins, &edges, err));
    if (r->selection->n_items == 0) {
        cv_free(edges);
        return CV_OK;
    }
    cv_status status =
        cv_fold_init(&fold, r->source, r->selection, nowhere, count_part_in_bins, err);
    if (status == CV_OK) status = bin_all(r, &fold, bins, edges, err);
    cv_fold_free(&fold);
    cv_free(edges);
    return status;
}

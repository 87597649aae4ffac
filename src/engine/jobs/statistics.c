/* Room: engine/jobs. One result over all selected items. The items are cut into jobs that
 * do not depend on the number of threads, each job counts apart, and the counts are
 * added in the jobs' order: the same array gives the same last digit every time. */
#include "engine/jobs/statistics.h"

#include "base/arith.h"
#include "base/heap.h"
#include "engine/plan/part.h"
#include "engine/run/thresholds.h"

#include <math.h>

/* One result has one cell. */
static const int64_t nowhere[CV_MAX_DIMS];

/* ---- Jobs ------------------------------------------------------------------ */

/* Units are the touched chunks, or shares of them where there are few; a job is a
 * run of units. */
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
    double worth = bytes / CV_DECODE_PER_HELPER;
    int64_t most = cv_min_i64(source->threads, list.n_jobs) - 1;
    list.helpers = worth < (double)most ? (int)worth : (int)most;
    return list;
}

typedef struct run_task {
    const cv_reduction *reduction;
    const cv_fold *fold;
    const job_list *list;
} run_task;

/* Folds the job's units one after the other. */
static cv_status fold_job(const run_task *task, int64_t job, void *context, cv_worker *worker,
                          cv_error *err)
{
    const job_list *list = task->list;
    int64_t first = list->n_units / list->n_jobs * job +
                    list->n_units % list->n_jobs * job / list->n_jobs;
    int64_t last = list->n_units / list->n_jobs * (job + 1) +
                   list->n_units % list->n_jobs * (job + 1) / list->n_jobs;
    for (int64_t unit = first; unit < last; unit++) {
        cv_share share = {unit / list->n_shares, unit % list->n_shares, list->n_shares};
        CV_TRY(cv_fold_share(task->fold, &share, context, worker, err));
    }
    return cv_watch_step(task->reduction->watch, 1, err);
}

/* ---- Statistics ------------------------------------------------------------ */

/* What a job has counted, and numbers that wait until there is a run of them. */
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
    cv_rows rows;
    for (cv_rows_begin(&rows, &part->part); !rows.done; cv_rows_next(&rows)) {
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
    cv_tally *tallies; /* one for each job */
} statistics_task;

static cv_status statistics_job(void *context, int64_t job, cv_worker *worker, cv_error *err)
{
    const statistics_task *task = context;
    counter c = {.type = task->run.reduction->type, .tally = &task->tallies[job]};
    CV_TRY(fold_job(&task->run, job, &c, worker, err));
    count_waiting(&c);
    return CV_OK;
}

/* Runs the jobs, with what they need of a far store read ahead. */
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
    cv_watch_set_steps(r->watch, list.n_jobs);
    statistics_task task = {.run = {r, fold, &list}};
    task.tallies = cv_calloc((size_t)list.n_jobs, sizeof task.tallies[0]);
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

/* ---- Histogram ------------------------------------------------------------- */

typedef struct histogram_task {
    run_task run;
    const cv_bins *bins;
    const double *edges; /* n_bins + 1, rising, as numpy.linspace makes them */
    cv_mutex lock;
} histogram_task;

/* One job's counts. */
typedef struct bin_counter {
    const histogram_task *task;
    const cv_number_type *type;
    int64_t *counts;
} bin_counter;

static void count_in_bin(const bin_counter *c, double value, int64_t n)
{
    const cv_bins *bins = c->task->bins;
    const double *edges = c->task->edges;
    if (!(value >= bins->lo && value <= bins->hi)) return; /* NaN is nowhere */
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
    cv_rows rows;
    for (cv_rows_begin(&rows, &part->part); !rows.done; cv_rows_next(&rows)) {
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
    size_t n = (size_t)task->bins->n_bins;
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
    size_t n = (size_t)bins->n_bins;
    double *edges = cv_malloc((n + 1) * sizeof edges[0]);
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
    cv_watch_set_steps(r->watch, list.n_jobs);
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

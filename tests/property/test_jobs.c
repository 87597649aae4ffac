/* Property test: one array written by many workers. Random arrays, in files and directories,
 * new and existing, that grow or not; random workers, threads or processes, that write
 * disjoint boxes and single items, die, and are run again. The merged array equals the naive
 * oracle, before the commit and after it. If workers overlap, the merge reports it, or takes
 * the last one.
 *
 * usage: test_jobs [TRIALS [SEED]] */
#include "job_trial.h"

#include "support/buffer.h"
#include "support/info.h"
#include "support/sanitized.h"

#include <caterva_jobs.h>
#include <caterva_upkeep.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const trial *current;

static void say_where(void)
{
    char text[512];
    if (current)
        fprintf(stderr, "trial %lld, %s, %s, codec %d level %d filters %d %d\n",
                (long long)current->number,
                geometry_text(&current->geometry, text, sizeof text),
                current->in_directory ? "directory" : "file", current->pipeline.codec,
                current->pipeline.level, current->pipeline.filters[0],
                current->pipeline.filters[1]);
}

/* ---- The array -------------------------------------------------------------------------- */

static caterva_array *open_for_writing(const trial *t)
{
    caterva_error err;
    caterva_array *array;
    caterva_open_options o = CATERVA_OPEN_INIT;
    o.mode = CATERVA_MODE_WRITE;
    o.durability = CATERVA_DURABILITY_NONE;
    CHECK_OK(caterva_open(t->path, &o, &array, &err), err);
    return array;
}

static void write_all(const trial *t, caterva_array *array, const oracle *o)
{
    caterva_error err;
    box all = whole_box(&t->base);
    CHECK_OK(caterva_write(array, all.start, all.stop, o->bytes, o->size, &err), err);
}

/* The old array's items where it was, else the fill. */
static void grow_oracle(trial *t, const oracle *old)
{
    box all = whole_box(&t->base);
    t->before = oracle_new(&t->geometry);
    t->after = oracle_new(&t->geometry);
    if (t->has_fill) oracle_fill(&t->before, t->fill);
    oracle_write(&t->before, &all, old->bytes);
    oracle_copy(&t->after, &t->before);
}

static void make_array(trial *t)
{
    caterva_error err;
    rng *r = t->random;
    oracle old = oracle_new(&t->base);
    caterva_create_options o = options_for(&t->base, &t->pipeline);
    o.overwrite = 1;
    o.layout = t->in_directory ? CATERVA_LAYOUT_SPARSE : CATERVA_LAYOUT_CONTIGUOUS;
    o.durability = CATERVA_DURABILITY_NONE;
    if (t->has_fill) {
        o.fill = CATERVA_FILL_VALUE;
        o.fill_value = t->fill;
        oracle_fill(&old, t->fill);
    }
    CHECK_OK(caterva_create(t->path, &o, &t->array, &err), err);
    if (!rng_one_in(r, 3)) {
        random_data(r, old.bytes, old.size, t->base.item_size);
        write_all(t, t->array, &old);
    }
    if (!t->is_new) {
        CHECK_OK(caterva_close(t->array, &err), err);
        t->array = open_for_writing(t);
    }
    grow_oracle(t, &old);
    oracle_free(&old);
}

static void draw(trial *t)
{
    rng *r = t->random;
    t->base = random_geometry(r, 5, MAX_ITEMS);
    t->pipeline = random_pipeline(r, t->base.item_size);
    t->in_directory = rng_one_in(r, 3);
    t->is_new = rng_one_in(r, 4);
    t->in_processes = !SANITIZED && rng_one_in(r, 3);
    t->overlaps = rng_one_in(r, 5);
    t->has_fill = rng_one_in(r, 4) && t->base.item_size <= (int)sizeof t->fill;
    rng_fill(r, t->fill, sizeof t->fill);
    t->geometry = t->base;
    for (int d = 0; d < t->base.ndim; d++)
        if (rng_one_in(r, 5)) t->geometry.shape[d] += rng_between(r, 1, 6);
    make_array(t);
}

/* ---- Workers ------------------------------------------------------------------------------ */

static void run_write(caterva_array *part, const write_step *s, const geometry *g)
{
    caterva_error err;
    if (!s->by_points) {
        CHECK_OK(caterva_write(part, s->where.start, s->where.stop, s->bytes, s->size, &err),
                 err);
        return;
    }
    caterva_selection selection = CATERVA_SELECTION_INIT;
    selection.kind = CATERVA_SELECTION_POINTS;
    selection.points = s->points;
    selection.n_points = s->n_points;
    (void)g;
    CHECK_OK(caterva_write_selection(part, &selection, PLAIN(s->bytes, s->size), &err), err);
}

static caterva_array *write_part(const worker *w)
{
    caterva_error err;
    caterva_array *part;
    caterva_open_options o = CATERVA_OPEN_INIT;
    o.durability = CATERVA_DURABILITY_NONE;
    o.threads = 1 + w->number % 2;
    CHECK_OK(
        caterva_part_open(w->trial->path, w->trial->job, w->trial->job_size, &o, &part, &err),
        err);
    for (int i = 0; i < w->n_writes; i++) run_write(part, &w->writes[i], &w->trial->geometry);
    return part;
}

static void finish_part(worker *w)
{
    caterva_error err;
    caterva_array *part = write_part(w);
    CHECK_OK(caterva_part_finish(part, &w->token, &w->token_size, &err), err);
}

static void *run_worker(void *context)
{
    worker *w = context;
    if (w->doubles) {
        finish_part(w);
        caterva_free(w->token);
    }
    if (w->dies) caterva_discard(write_part(w));
    finish_part(w);
    return NULL;
}

static void run_threads(trial *t)
{
    pthread_t threads[MAX_WORKERS];
    for (int i = 0; i < t->n_workers; i++)
        CHECK(!pthread_create(&threads[i], NULL, run_worker, &t->workers[i]), "a thread");
    for (int i = 0; i < t->n_workers; i++) pthread_join(threads[i], NULL);
}

static void token_path(const trial *t, int number, char path[SCRATCH_PATH + 32])
{
    snprintf(path, SCRATCH_PATH + 32, "%s.token%d", t->path, number);
}

/* A dying worker exits without a report, at any point. */
static void run_in_child(worker *w)
{
    char path[SCRATCH_PATH + 32];
    if (w->dies) {
        write_part(w);
        _exit(0);
    }
    run_worker(w);
    token_path(w->trial, w->number, path);
    scratch_save(path, w->token, w->token_size);
    _exit(0);
}

static void wait_for(pid_t child)
{
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0, "a worker ends with %d",
          status);
}

static pid_t fork_worker(worker *w)
{
    fflush(NULL);
    pid_t child = fork();
    CHECK(child >= 0, "fork");
    if (child == 0) run_in_child(w);
    return child;
}

static void run_processes(trial *t)
{
    char path[SCRATCH_PATH + 32];
    pid_t children[MAX_WORKERS];
    for (int i = 0; i < t->n_workers; i++) children[i] = fork_worker(&t->workers[i]);
    for (int i = 0; i < t->n_workers; i++) {
        worker *w = &t->workers[i];
        wait_for(children[i]);
        if (w->dies) {
            w->dies = false;
            wait_for(fork_worker(w));
        }
        token_path(t, i, path);
        w->token = scratch_load(path, &w->token_size);
        CHECK(w->token, "no token at %s", path);
        scratch_remove(path);
    }
}

/* ---- The coordinator ------------------------------------------------------------------------ */

static void check_bytes(const trial *t, caterva_array *array, const oracle *o)
{
    caterva_error err;
    box all = whole_box(&o->geometry);
    uint8_t *bytes = check_alloc(o->size + 1);
    CHECK_OK(caterva_read(array, all.start, all.stop, bytes, o->size, &err), err);
    for (size_t i = 0; i < o->size; i++)
        CHECK(bytes[i] == o->bytes[i], "byte %zu is %d, not %d; trial %lld", i, bytes[i],
              o->bytes[i], (long long)t->number);
    free(bytes);
}

static caterva_status merge(trial *t, caterva_overlap overlap, caterva_merge_result *result,
                            caterva_error *err)
{
    const void *tokens[2 * MAX_WORKERS];
    size_t sizes[2 * MAX_WORKERS], n = 0;
    caterva_merge_options o = CATERVA_MERGE_INIT;
    o.overlap = overlap;
    for (int i = 0; i < t->n_workers; i++, n++) {
        tokens[n] = t->workers[i].token;
        sizes[n] = t->workers[i].token_size;
    }
    if (rng_one_in(t->random, 3)) { /* one token twice */
        tokens[n] = tokens[n - 1];
        sizes[n] = sizes[n - 1];
        n++;
    }
    return caterva_merge(t->array, tokens, sizes, n, &o, result, err);
}

/* Returns whether two workers actually share an item. */
static bool do_overlap(const trial *t)
{
    const geometry *g = &t->geometry;
    box all = whole_box(g);
    int64_t n = box_items(&all, g->ndim), at[CATERVA_MAX_DIMS];
    uint8_t *seen = check_alloc((size_t)n + 1);
    bool found = false;
    memset(seen, 0, (size_t)n + 1);
    for (int i = 0; i < t->n_workers; i++)
        for (int k = 0; k < t->workers[i].n_writes; k++) {
            const write_step *s = &t->workers[i].writes[k];
            for (int64_t p = 0; p < s->n_points; p++) {
                memcpy(at, s->points + p * g->ndim, (size_t)g->ndim * sizeof at[0]);
                uint8_t *by = &seen[place_of(g, at)];
                found = found || (*by && *by != i + 1);
                *by = (uint8_t)(i + 1);
            }
        }
    free(seen);
    return found;
}

/* The coordinator dies and another replaces it; not for a new array. */
static void change_coordinator(trial *t)
{
    caterva_discard(t->array);
    t->array = open_for_writing(t);
}

/* Commits the base of the job, with its growth, before anything is merged. */
static void commit_base(trial *t)
{
    caterva_error err;
    if (rng_one_in(t->random, 2)) {
        CHECK_OK(caterva_commit(t->array, &err), err);
    } else {
        CHECK_OK(caterva_close(t->array, &err), err);
        t->array = open_for_writing(t);
    }
    t->is_new = false;
}

static void merge_all(trial *t)
{
    caterva_error err;
    caterva_merge_result result = CATERVA_MERGE_RESULT_INIT;
    caterva_overlap overlap = CATERVA_OVERLAP_ERROR;
    if (rng_one_in(t->random, 3)) commit_base(t);
    if (!t->is_new && rng_one_in(t->random, 4)) change_coordinator(t);
    if (do_overlap(t)) {
        caterva_status status = merge(t, overlap, NULL, &err);
        CHECK(status == CATERVA_EEXIST, "%s: %s", caterva_status_name(status), err.message);
        overlap = CATERVA_OVERLAP_LAST;
        if (!t->is_new && rng_one_in(t->random, 2))
            CHECK_OK(caterva_rollback(t->array, &err), err);
        if (memcmp(&info_of(t->array)->shape, t->geometry.shape,
                   (size_t)t->geometry.ndim * 8) == 0)
            check_bytes(t, t->array, &t->before);
    }
    CHECK_OK(merge(t, overlap, &result, &err), err);
    check_bytes(t, t->array, &t->after);
    if (rng_one_in(t->random, 4)) { /* once more, as it is or from the beginning */
        if (!t->is_new && rng_one_in(t->random, 2))
            CHECK_OK(caterva_rollback(t->array, &err), err);
        CHECK_OK(merge(t, overlap, NULL, &err), err);
        check_bytes(t, t->array, &t->after);
    }
    CHECK_OK(caterva_commit(t->array, &err), err);
    check_bytes(t, t->array, &t->after);
}

static void check_clean(trial *t)
{
    struct stat st;
    char parts[SCRATCH_PATH + 8];
    caterva_error err;
    caterva_array *array;
    caterva_verify_result verified = CATERVA_VERIFY_RESULT_INIT;
    CHECK_OK(caterva_close(t->array, &err), err);
    snprintf(parts, sizeof parts, "%s.parts", t->path);
    CHECK(stat(parts, &st) != 0, "%s is still there", parts);
    CHECK_OK(caterva_open(t->path, NULL, &array, &err), err);
    check_bytes(t, array, &t->after);
    CHECK_OK(caterva_verify(array, NULL, &verified, &err), err);
    CHECK(verified.damages == 0, "%lld damages", (long long)verified.damages);
    CHECK_OK(caterva_close(array, &err), err);
}

static void free_trial(trial *t)
{
    for (int i = 0; i < t->n_workers; i++) {
        worker *w = &t->workers[i];
        for (int k = 0; k < w->n_writes; k++) {
            free(w->writes[k].points);
            free(w->writes[k].bytes);
        }
        if (t->in_processes)
            free(w->token);
        else
            caterva_free(w->token);
    }
    caterva_free(t->job);
    free(t->owners);
    oracle_free(&t->before);
    oracle_free(&t->after);
    scratch_remove(t->path);
}

static void run_trial(trial *t)
{
    caterva_error err;
    caterva_job_options o = CATERVA_JOB_INIT;
    draw(t);
    o.shape = t->geometry.shape;
    CHECK_OK(caterva_job_begin(t->array, &o, &t->job, &t->job_size, &err), err);
    draw_workers(t);
    if (t->in_processes && !getenv("CATERVA_EMULATED")) /* qemu-user 7.2 aborts some children */
        run_processes(t);
    else
        run_threads(t);
    merge_all(t);
    check_clean(t);
    free_trial(t);
}

int main(int argc, char **argv)
{
    int64_t trials = (int64_t)number_argument(argc, argv, 1, SANITIZED ? 150 : 300);
    rng r = rng_from_seed(seed_argument(argc, argv, 2));
    atexit(say_where);
    for (int64_t i = 0; i < trials; i++) {
        static trial t; /* large */
        t = (trial){.random = &r, .number = i};
        current = &t;
        scratch_path(t.path, "array");
        run_trial(&t);
    }
    current = NULL;
    printf("%lld trials\n", (long long)trials);
    return 0;
}

/* A job without memory: each allocation of its coordinator and workers fails once. A failing
 * call returns CATERVA_ENOMEM, leaks nothing, and leaves the array as before or as after;
 * then the job is started again. */
#include "buffer.h"
#include "check.h"
#include "failing_heap.h"
#include "info.h"
#include "scratch.h"

#include <caterva_jobs.h>
#include <caterva_upkeep.h>
#include <stdio.h>
#include <string.h>

enum { ROWS = 20, COLUMNS = 12, MORE = 5, WORKERS = 2, N = (ROWS + MORE) * COLUMNS };

static caterva_error err;
static char path[SCRATCH_PATH];
static const int64_t origin[2] = {0, 0}, old_shape[2] = {ROWS, COLUMNS};
static const int64_t new_shape[2] = {ROWS + MORE, COLUMNS};
static int32_t before[N], after[N];

/* They share one block; the first one ends with single items. */
static const int64_t starts[WORKERS][2] = {{1, 0}, {9, 2}};
static const int64_t stops[WORKERS][2] = {{9, 11}, {ROWS + MORE, COLUMNS}};
static int64_t points[] = {0, 1, 0, 4, 0, 7};

/* Open objects; closed after any failure. */
typedef struct work {
    caterva_array *array, *part;
    void *job, *tokens[WORKERS];
    size_t job_size, sizes[WORKERS];
} work;

#define TRY(call)                                                                            \
    do {                                                                                     \
        caterva_status try_status_ = (call);                                                 \
        if (try_status_ != CATERVA_OK) return try_status_;                                   \
    } while (0)

static void make_states(void)
{
    for (int i = 0; i < ROWS * COLUMNS; i++) before[i] = after[i] = 1000 + i;
    for (int w = 0; w < WORKERS; w++)
        for (int64_t r = starts[w][0]; r < stops[w][0]; r++)
            for (int64_t c = starts[w][1]; c < stops[w][1]; c++)
                after[r * COLUMNS + c] = (int32_t)(-1 - r * COLUMNS - c);
    for (int i = 0; i < 3; i++) after[points[2 * i + 1]] = -7;
}

static void make_array(caterva_layout layout)
{
    caterva_array *array;
    caterva_create_options o = CATERVA_CREATE_INIT;
    scratch_remove(path);
    o.ndim = 2;
    o.shape = old_shape;
    o.chunk_shape = (const int32_t[]){8, 8};
    o.block_shape = (const int32_t[]){4, 8};
    o.dtype = "<i4";
    o.threads = 1;
    o.layout = layout;
    o.durability = CATERVA_DURABILITY_NONE;
    CHECK_OK(caterva_create_from_memory(path, &o, before, ROWS * COLUMNS * 4, &array, &err),
             err);
    CHECK_OK(caterva_close(array, &err), err);
}

/* ---- The job ---------------------------------------------------------------------------- */

static caterva_open_options handle(void)
{
    caterva_open_options o = CATERVA_OPEN_INIT;
    o.mode = CATERVA_MODE_WRITE;
    o.threads = 1;
    o.cache_bytes = -1;
    o.durability = CATERVA_DURABILITY_NONE;
    return o;
}

static caterva_status write_points(caterva_array *part)
{
    static int32_t items[] = {-7, -7, -7};
    caterva_selection s = CATERVA_SELECTION_INIT;
    s.kind = CATERVA_SELECTION_POINTS;
    s.points = points;
    s.n_points = 3;
    return caterva_write_selection(part, &s, PLAIN(items, sizeof items), &err);
}

static caterva_status write_part(work *w, int number)
{
    int32_t items[N];
    size_t n = 0;
    caterva_open_options o = handle();
    for (int64_t r = starts[number][0]; r < stops[number][0]; r++)
        for (int64_t c = starts[number][1]; c < stops[number][1]; c++)
            items[n++] = after[r * COLUMNS + c];
    TRY(caterva_part_open(path, w->job, w->job_size, &o, &w->part, &err));
    TRY(caterva_write(w->part, starts[number], stops[number], items, n * sizeof items[0],
                      &err));
    if (number == 0) TRY(write_points(w->part));
    caterva_array *part = w->part;
    w->part = NULL; /* released in any case */
    return caterva_part_finish(part, &w->tokens[number], &w->sizes[number], &err);
}

static caterva_status run(work *w)
{
    const caterva_job_list *list;
    caterva_open_options o = handle();
    caterva_job_options grown = CATERVA_JOB_INIT;
    grown.shape = new_shape;
    TRY(caterva_open(path, &o, &w->array, &err));
    TRY(caterva_job_begin(w->array, &grown, &w->job, &w->job_size, &err));
    for (int i = 0; i < WORKERS; i++) TRY(write_part(w, i));
    TRY(caterva_jobs_list(path, NULL, &list, &err));
    caterva_job_list_release(list);
    TRY(caterva_merge(w->array, (const void *const *)w->tokens, w->sizes, WORKERS, NULL, NULL,
                      &err));
    return caterva_commit(w->array, &err);
}

static void leave(work *w)
{
    caterva_discard(w->part);
    caterva_discard(w->array);
    caterva_free(w->job);
    for (int i = 0; i < WORKERS; i++) caterva_free(w->tokens[i]);
    *w = (work){.array = NULL};
}

/* ---- What is there ------------------------------------------------------------------------ */

static bool is_new(void)
{
    int32_t items[N];
    caterva_array *array;
    caterva_verify_result verified = CATERVA_VERIFY_RESULT_INIT;
    CHECK_OK(caterva_open(path, NULL, &array, &err), err);
    caterva_info info = *info_of(array);
    size_t size = (size_t)info.shape[0] * COLUMNS * sizeof items[0];
    CHECK_OK(caterva_read(array, origin, info.shape, items, size, &err), err);
    CHECK_OK(caterva_verify(array, NULL, &verified, &err), err);
    CHECK(verified.damages == 0, "%lld damages", (long long)verified.damages);
    CHECK_OK(caterva_close(array, &err), err);
    bool grown = info.shape[0] == ROWS + MORE;
    const int32_t *expected = grown ? after : before;
    CHECK(memcmp(items, expected, size) == 0, "neither old nor new: %lld rows",
          (long long)info.shape[0]);
    return grown;
}

/* Deletes remaining jobs. */
static void discard_jobs(void)
{
    const caterva_job_list *list;
    CHECK_OK(caterva_jobs_list(path, NULL, &list, &err), err);
    for (size_t i = 0; i < list->n; i++)
        CHECK_OK(caterva_job_delete(path, list->entries[i]->job, list->entries[i]->job_size,
                                     NULL, &err),
                 err);
    caterva_job_list_release(list);
}

static void run_again(void)
{
    work w = {.array = NULL};
    CHECK_OK(run(&w), err);
    leave(&w);
    CHECK(is_new(), "the second attempt did nothing");
}

static void sweep(caterva_layout layout)
{
    int old = 0, new = 0;
    bool failed = true;
    for (long n = 0; failed; n++) {
        work w = {.array = NULL};
        make_array(layout);
        heap_arm(n);
        caterva_status status = run(&w);
        leave(&w);
        failed = heap_disarm();
        CHECK(heap_live() == 0, "allocation %ld fails: %d are not released", n, heap_live());
        CHECK(status == CATERVA_OK || status == CATERVA_ENOMEM,
              "allocation %ld fails: %s: %s", n, caterva_status_name(status), err.message);
        bool stands = is_new();
        CHECK(status != CATERVA_OK || stands, "allocation %ld fails: not committed", n);
        old += !stands;
        new += stands;
        discard_jobs();
        if (!stands && n % 4 == 0) run_again();
    }
    printf("%d jobs without memory changed nothing, %d stand\n", old, new);
    CHECK(old > 50 && new > 0, "nothing was tried");
}

int main(void)
{
    heap_install();
    scratch_path(path, "array");
    make_states();
    sweep(CATERVA_LAYOUT_CONTIGUOUS);
    sweep(CATERVA_LAYOUT_SPARSE);
    return 0;
}

/* Every function that reports progress counts bytes and ends with done == total; at the default
 * rate few reports are made, and a stop is honoured by the next of them. */
#include "caterva_upkeep.h"
#include "caterva_value.h"

#include "support/check.h"
#include "support/every_step.h"
#include "support/patience.h"
#include "support/scratch.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SIDE = 1000, CHUNK = 100, ITEM = 4, CHUNKS = 100, BYTES = SIDE * SIDE * ITEM };

static const int64_t shape[] = {SIDE, SIDE}, origin[] = {0, 0};
static const int32_t chunk_shape[] = {CHUNK, CHUNK}, block_shape[] = {CHUNK, CHUNK};
static caterva_error err;
static patience heard; /* by the function of the call at work */
static int32_t items[SIDE * SIDE];

static caterva_progress every(void)
{
    heard = (patience){.left = -1};
    return every_step(patience_on_progress, &heard);
}

/* The last call reported all of it, which is at least so much; 0: it may have had nothing to
 * do. */
static void check_told(const char *what, int64_t least)
{
    CHECK(heard.done == heard.total && heard.total >= least && (!least || heard.calls > 1),
          "%s: %lld of %lld bytes in %d calls, at least %lld", what, (long long)heard.done,
          (long long)heard.total, heard.calls, (long long)least);
    heard = (patience){.left = -1};
}

static caterva_create_options options(void)
{
    caterva_create_options o = CATERVA_CREATE_INIT;
    o.ndim = 2;
    o.shape = shape;
    o.chunk_shape = chunk_shape;
    o.block_shape = block_shape;
    o.dtype = "<i4";
    o.overwrite = 1;
    o.durability = CATERVA_DURABILITY_NONE;
    return o;
}

static void of_a_handle(const char *path, caterva_layout layout)
{
    caterva_array *array;
    caterva_create_options o = options();
    o.layout = layout;
    o.progress = every();
    CHECK_OK(caterva_create(path, &o, &array, &err), err);
    CHECK_OK(caterva_write(array, origin, shape, items, sizeof items, &err), err);
    check_told("a write", BYTES);
    CHECK_OK(caterva_commit(array, &err), err);
    check_told("a commit", 0);
    CHECK_OK(caterva_read(array, origin, shape, items, sizeof items, &err), err);
    check_told("a read", BYTES);
    CHECK_OK(caterva_close(array, &err), err);
}

static void of_calls(const char *path, const char *copied, const char *repaired)
{
    caterva_array *array, *copy;
    caterva_stats stats = CATERVA_STATS_INIT;
    caterva_verify_options verify = CATERVA_VERIFY_INIT;
    caterva_verify_result result = CATERVA_VERIFY_RESULT_INIT;
    caterva_copy_options to = CATERVA_COPY_INIT;
    caterva_create_options create = CATERVA_CREATE_INIT;
    caterva_reduce_options reduce = CATERVA_REDUCE_INIT;
    caterva_repair_options repair = CATERVA_REPAIR_INIT;
    caterva_repair_result found = CATERVA_REPAIR_RESULT_INIT;
    caterva_upkeep_options upkeep = CATERVA_UPKEEP_INIT;
    static const double range[] = {0, 1};
    double sums[SIDE];
    int64_t counts[3];
    int axes[] = {0};
    CHECK_OK(caterva_open(path, NULL, &array, &err), err);
    verify.progress = every();
    CHECK_OK(caterva_verify(array, &verify, &result, &err), err);
    check_told("verify", BYTES);
    verify.quick = 1;
    CHECK_OK(caterva_verify(array, &verify, &result, &err), err);
    check_told("a quick verify", BYTES);
    reduce.progress = every();
    CHECK_OK(caterva_statistics(array, &reduce, &stats, &err), err);
    check_told("statistics", BYTES);
    CHECK_OK(caterva_histogram(array, range, 3, &reduce, counts, &err), err);
    check_told("a histogram", BYTES);
    reduce.axes = axes;
    reduce.n_axes = 1;
    CHECK_OK(caterva_reduce(array, CATERVA_REDUCTION_MEAN, &reduce, sums, sizeof sums, &err),
             err);
    check_told("a reduction", BYTES);
    create.overwrite = 1;
    create.layout = CATERVA_LAYOUT_SPARSE;
    create.durability = CATERVA_DURABILITY_NONE;
    to.create = &create;
    to.progress = every();
    CHECK_OK(caterva_copy(array, copied, &to, &copy, &err), err);
    check_told("a copy of chunks", BYTES);
    CHECK_OK(caterva_close(copy, &err), err);
    create.chunk_shape = (int32_t[]){70, 130};
    CHECK_OK(caterva_copy(array, copied, &to, &copy, &err), err);
    check_told("a copy of items", BYTES);
    CHECK_OK(caterva_close(copy, &err), err);
    caterva_discard(array);
    upkeep.progress = every();
    CHECK_OK(caterva_seal(path, &upkeep, &err), err);
    check_told("seal", 0);
    CHECK_OK(caterva_delete(copied, &upkeep, &err), err);
    check_told("a deletion", CHUNKS);
    repair.output = repaired;
    repair.overwrite = 1;
    repair.progress = every();
    CHECK_OK(caterva_repair(path, &repair, &found, &err), err);
    check_told("a repair", BYTES);
}

/* The handle's numbers never go back between the parts of a join, and slabs of a copy. */
static void of_an_array_joined_to_itself(const char *path)
{
    caterva_array *array, *copy;
    caterva_view *view, *join;
    caterva_open_options o = CATERVA_OPEN_INIT;
    caterva_stats stats = CATERVA_STATS_INIT;
    caterva_buffer dst = CATERVA_BUFFER_INIT;
    caterva_copy_options to = CATERVA_COPY_INIT;
    caterva_create_options create = CATERVA_CREATE_INIT;
    dst.size = (size_t)2 * BYTES;
    dst.data = check_alloc(dst.size);
    o.progress = every();
    CHECK_OK(caterva_open(path, &o, &array, &err), err);
    CHECK_OK(caterva_view_of(array, &view, &err), err);
    CHECK_OK(caterva_view_concat((const caterva_view *[]){view, view}, 2, 0, &join, &err),
             err);
    heard = (patience){.left = -1};
    CHECK_OK(caterva_view_read(join, NULL, &dst, &err), err);
    check_told("a read of a join", 2 * BYTES);
    CHECK_OK(caterva_view_statistics(join, NULL, &stats, &err), err);
    check_told("statistics of a join", 2 * BYTES);
    create.chunk_shape = (int32_t[]){70, 130};
    to.create = &create;
    to.memory = BYTES / 2;
    CHECK_OK(caterva_view_copy(view, "mem:", &to, &copy, &err), err);
    check_told("a copy of a view", BYTES);
    caterva_discard(copy);
    caterva_view_free(join);
    caterva_view_free(view);
    caterva_discard(array);
    free(dst.data);
}

static void of_a_deletion(const char *path)
{
    caterva_upkeep_options o = CATERVA_UPKEEP_INIT;
    o.progress = every();
    CHECK_OK(caterva_delete(path, &o, &err), err);
    check_told("a deletion of a file", 4096);
}

static void of_a_conversion(void)
{
    caterva_buffer from = CATERVA_BUFFER_INIT, to = CATERVA_BUFFER_INIT;
    caterva_convert_options o = CATERVA_CONVERT_INIT;
    double *doubles = check_alloc((size_t)BYTES * 2);
    from.data = items;
    from.size = sizeof items;
    from.dtype = "<i4";
    to.data = doubles;
    to.size = (size_t)BYTES * 2;
    to.dtype = "<f8";
    o.progress = every();
    CHECK_OK(caterva_buffer_convert(&from, (int64_t)SIDE * SIDE, &to, &o, &err), err);
    check_told("a conversion", (int64_t)BYTES * 2);
    free(doubles);
}

/* ---- The rate ---------------------------------------------------------------------- */

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* However slow the machine is: a first report, a last one, and so many for each second. */
static void is_kept(const char *path, int per_second)
{
    caterva_array *array;
    caterva_verify_options verify = CATERVA_VERIFY_INIT;
    caterva_verify_result result = CATERVA_VERIFY_RESULT_INIT;
    CHECK_OK(caterva_open(path, NULL, &array, &err), err);
    verify.progress = every();
    verify.progress.per_second = per_second;
    double begun = now(), most;
    for (int i = 0; i < 5; i++) {
        CHECK_OK(caterva_verify(array, &verify, &result, &err), err);
        most = 2 + (now() - begun) * (per_second ? per_second : 50);
        CHECK(heard.calls <= most + 1, "%d calls, %.1f are due", heard.calls, most);
        check_told("verify", BYTES);
        begun = now();
    }
    caterva_discard(array);
}

/* The first report stops, and no second one is made. */
static void a_stop_is_honoured(const char *path)
{
    caterva_array *array;
    caterva_open_options o = CATERVA_OPEN_INIT;
    o.threads = 1;
    o.cache_bytes = CATERVA_NONE;
    o.progress.report = patience_on_progress;
    o.progress.context = &heard;
    CHECK_OK(caterva_open(path, &o, &array, &err), err);
    heard = (patience){.left = 0};
    caterva_status status = caterva_read(array, origin, shape, items, sizeof items, &err);
    CHECK(status == CATERVA_ESTOPPED && heard.calls == 1, "%s after %d calls",
          caterva_status_name(status), heard.calls);
    CHECK(heard.done < heard.total, "%lld bytes", (long long)heard.done);
    heard = (patience){.left = -1};
    CHECK_OK(caterva_read(array, origin, shape, items, sizeof items, &err), err);
    check_told("a read", BYTES);
    caterva_discard(array);
}

static void unknown_values_are_refused(const char *path)
{
    caterva_array *array;
    caterva_open_options o = CATERVA_OPEN_INIT;
    o.progress.per_second = -2;
    CHECK(caterva_open(path, &o, &array, &err) == CATERVA_EINVAL, "%s", err.message);
    o.progress = (caterva_progress){.reserved = {1}};
    CHECK(caterva_open(path, &o, &array, &err) == CATERVA_EINVAL, "%s", err.message);
}

int main(void)
{
    char path[SCRATCH_PATH], copied[SCRATCH_PATH], repaired[SCRATCH_PATH];
    for (int i = 0; i < SIDE * SIDE; i++) items[i] = i * 7 % 1000;
    scratch_path(path, "a.b2nd");
    scratch_path(copied, "copy.b2nd");
    scratch_path(repaired, "repaired.b2nd");
    of_a_handle("mem:", CATERVA_LAYOUT_CONTIGUOUS);
    of_a_handle(copied, CATERVA_LAYOUT_SPARSE);
    of_a_handle(path, CATERVA_LAYOUT_CONTIGUOUS);
    of_calls(path, copied, repaired);
    of_an_array_joined_to_itself(path);
    of_a_conversion();
    is_kept(path, 0);
    is_kept(path, 1);
    a_stop_is_honoured(path);
    unknown_values_are_refused(path);
    of_a_deletion(path);
    return 0;
}

/* Sorting very many points, or a long list, reports progress and can be stopped, before a
 * block is read and before one is written. */
#include "caterva.h"

#include "support/check.h"
#include "support/every_step.h"
#include "support/random.h"

#include <stdlib.h>
#include <string.h>

enum { SIDE = 1000, POINTS = 1200000 };

static int64_t n_reports, last_done, last_total;
static int stop_at; /* the call that stops it; 0: none */

static int on_progress(void *context, int64_t done, int64_t total)
{
    (void)context;
    CHECK(total > 0 && done >= last_done && done <= total, "%lld of %lld after %lld",
          (long long)done, (long long)total, (long long)last_done);
    last_done = done;
    last_total = total;
    return ++n_reports == stop_at;
}

static void begin(int stop)
{
    n_reports = last_done = last_total = 0;
    stop_at = stop;
}

static caterva_array *make(int32_t *items)
{
    static const int64_t shape[2] = {SIDE, SIDE};
    caterva_error err;
    caterva_array *array;
    caterva_create_options o = CATERVA_CREATE_INIT;
    o.ndim = 2;
    o.shape = shape;
    o.dtype = "<i4";
    o.progress = every_step(on_progress, NULL);
    o.threads = 1;
    begin(0);
    for (int32_t i = 0; i < SIDE * SIDE; i++) items[i] = i;
    CHECK_OK(caterva_create_from_memory("mem:", &o, items, SIDE * SIDE * sizeof items[0],
                                        &array, &err),
             err);
    CHECK_OK(caterva_commit(array, &err), err);
    return array;
}

/* Sorted by digits: at least 4 calls for each of 2 digits. */
static void check_read(caterva_array *array, const caterva_selection *s,
                       const caterva_buffer *dst)
{
    caterva_error err;
    begin(0);
    CHECK_OK(caterva_read_selection(array, s, dst, &err), err);
    CHECK(n_reports >= 8 && last_done == last_total, "%lld reports", (long long)n_reports);
    for (int stop = 1; stop <= 8; stop += 7) {
        begin(stop);
        memset(dst->data, 0x55, dst->size);
        CHECK(caterva_read_selection(array, s, dst, &err) == CATERVA_ESTOPPED, "a read");
        CHECK(n_reports == stop, "%lld reports until the stop", (long long)n_reports);
        for (size_t i = 0; i < dst->size; i++)
            CHECK(((uint8_t *)dst->data)[i] == 0x55, "byte %zu was read", i);
    }
    begin(0);
    CHECK_OK(caterva_read_selection(array, s, dst, &err), err);
}

static void points(caterva_array *array, const int32_t *items, rng *r)
{
    caterva_error err;
    int64_t *all = check_alloc(2 * POINTS * sizeof all[0]);
    int32_t *got = check_alloc(POINTS * sizeof got[0]);
    caterva_selection s = CATERVA_SELECTION_INIT;
    caterva_buffer dst = CATERVA_BUFFER_INIT;
    for (int i = 0; i < 2 * POINTS; i++) all[i] = rng_int(r, -SIDE, SIDE - 1);
    s.kind = CATERVA_SELECTION_POINTS;
    s.points = all;
    s.n_points = POINTS;
    dst.data = got;
    dst.size = POINTS * sizeof got[0];
    check_read(array, &s, &dst);
    for (int i = 0; i < POINTS; i++) {
        int64_t row = (all[2 * i] + SIDE) % SIDE, column = (all[2 * i + 1] + SIDE) % SIDE;
        CHECK(got[i] == items[row * SIDE + column], "item %d", i);
    }
    begin(1);
    CHECK(caterva_write_selection(array, &s, &dst, &err) == CATERVA_ESTOPPED, "a write");
    begin(0);
    CHECK(!caterva_has_pending(array), "something was written");
    free(all);
    free(got);
}

static void lists(caterva_array *array, const int32_t *items, rng *r)
{
    int64_t *list = check_alloc(POINTS * sizeof list[0]);
    int32_t *got = check_alloc(POINTS * sizeof got[0]);
    caterva_axis axes[2] = {{.kind = CATERVA_AXIS_LIST, .indices = list, .n = POINTS},
                            {.kind = CATERVA_AXIS_INDEX, .start = 7}};
    caterva_selection s = CATERVA_SELECTION_INIT;
    caterva_buffer dst = CATERVA_BUFFER_INIT;
    for (int i = 0; i < POINTS; i++) list[i] = rng_int(r, 0, SIDE - 1);
    s.kind = CATERVA_SELECTION_AXES;
    s.axes = axes;
    s.n_axes = 2;
    dst.data = got;
    dst.size = POINTS * sizeof got[0];
    caterva_error err;
    begin(0);
    CHECK_OK(caterva_read_selection(array, &s, &dst, &err), err);
    for (int i = 0; i < POINTS; i++)
        CHECK(got[i] == items[list[i] * SIDE + 7], "item %d of the list", i);
    begin(1);
    CHECK(caterva_read_selection(array, &s, &dst, &err) == CATERVA_ESTOPPED, "a list");
    begin(0);
    free(list);
    free(got);
}

int main(int argc, char **argv)
{
    rng r = rng_from_seed(seed_argument(argc, argv, 1));
    int32_t *items = check_alloc(SIDE * SIDE * sizeof items[0]);
    caterva_array *array = make(items);
    points(array, items, &r);
    lists(array, items, &r);
    caterva_discard(array);
    free(items);
    return 0;
}

/* Views of a handle that a refresh has turned to another array: of other items, other axes or
 * another shape. All functions of the view report CATERVA_ESTALE, and no byte is written. */
#include "caterva.h"
#include "caterva_upkeep.h"

#include "support/check.h"
#include "support/scratch.h"

#include <string.h>

enum { SIDE = 4, BYTES = SIDE * SIDE * 4, GUARDED = 4 * BYTES };

static void put(const char *path, const char *dtype, int ndim)
{
    static const int64_t shape[3] = {SIDE, SIDE, SIDE};
    caterva_error err;
    caterva_array *array;
    caterva_create_options o = CATERVA_CREATE_INIT;
    o.ndim = ndim;
    o.shape = shape;
    o.dtype = dtype;
    o.overwrite = 1;
    CHECK_OK(caterva_create(path, &o, &array, &err), err);
    CHECK_OK(caterva_close(array, &err), err);
}

static caterva_status read_in_background(const caterva_view *view, const caterva_buffer *dst,
                                         caterva_error *err)
{
    caterva_request *request;
    caterva_status status = caterva_view_read_async(view, NULL, dst, NULL, &request, err);
    if (status == CATERVA_OK) status = caterva_request_wait(request, err);
    caterva_request_release(request);
    return status;
}

static void must_refuse_reads(const caterva_view *view)
{
    static const int64_t none = 0;
    caterva_error err;
    uint8_t got[GUARDED];
    caterva_buffer dst = CATERVA_BUFFER_INIT;
    caterva_selection nothing = CATERVA_SELECTION_INIT;
    memset(got, 0x55, sizeof got);
    dst.data = got;
    dst.size = 2 * BYTES;
    CHECK(caterva_view_read(view, NULL, &dst, &err) == CATERVA_ESTALE, "a read");
    CHECK(strstr(err.message, "when the view was made"), "%s", err.message);
    CHECK(read_in_background(view, &dst, &err) == CATERVA_ESTALE, "in the background");
    CHECK(caterva_view_write(view, NULL, &dst, &err) == CATERVA_ESTALE, "a write");
    dst.size = 1;
    CHECK(caterva_view_read(view, NULL, &dst, &err) == CATERVA_ESTALE, "a short buffer");
    CHECK(caterva_view_write(view, NULL, &dst, &err) == CATERVA_ESTALE, "the same");
    nothing.kind = CATERVA_SELECTION_POINTS;
    nothing.points = &none;
    CHECK(caterva_view_read(view, &nothing, &dst, &err) == CATERVA_ESTALE, "no item");
    CHECK(caterva_view_write(view, &nothing, &dst, &err) == CATERVA_ESTALE, "no item");
    for (int i = 0; i < GUARDED; i++) CHECK(got[i] == 0x55, "byte %d was written", i);
}

/* Also for reductions over nothing. */
static void must_refuse_computing(const caterva_view *view)
{
    static const double range[2] = {0, 1};
    static const int no_axis = 7;
    caterva_error err;
    int64_t counts[2];
    double sum[1];
    caterva_stats stats = CATERVA_STATS_INIT;
    caterva_reduce_options along = CATERVA_REDUCE_INIT;
    along.axes = &no_axis;
    along.n_axes = 1;
    CHECK(caterva_view_statistics(view, NULL, &stats, &err) == CATERVA_ESTALE, "statistics");
    CHECK(strstr(err.message, "when the view was made"), "%s", err.message);
    CHECK(caterva_view_histogram(view, range, 2, NULL, counts, &err) == CATERVA_ESTALE,
          "a histogram");
    CHECK(caterva_view_histogram(view, range, 0, NULL, counts, &err) == CATERVA_ESTALE,
          "no bins");
    const caterva_reduction sum_of = CATERVA_REDUCTION_SUM;
    CHECK(caterva_view_reduce(view, sum_of, NULL, sum, 8, &err) == CATERVA_ESTALE, "a sum");
    CHECK(caterva_view_reduce(view, sum_of, &along, sum, 8, &err) == CATERVA_ESTALE,
          "along no axis");
    CHECK(caterva_view_copy(view, "mem:", NULL, NULL, &err) == CATERVA_ESTALE, "a copy");
    CHECK(caterva_view_copy(view, NULL, NULL, NULL, &err) == CATERVA_ESTALE, "to nowhere");
}

static void must_be_stale(const caterva_view *view)
{
    must_refuse_reads(view);
    must_refuse_computing(view);
}

static void turned(const char *before, const char *dtype, int ndim)
{
    char path[SCRATCH_PATH];
    caterva_error err;
    caterva_array *array;
    caterva_view *view, *join;
    put(scratch_path(path, "stale"), before, 2);
    CHECK_OK(caterva_open(path, NULL, &array, &err), err);
    CHECK_OK(caterva_view_of(array, &view, &err), err);
    const caterva_view *twice[] = {view, view};
    CHECK_OK(caterva_view_concat(twice, 2, 0, &join, &err), err);
    put(path, dtype, ndim);
    CHECK_OK(caterva_refresh(array, &err), err);
    must_be_stale(view);
    must_be_stale(join);
    caterva_view_free(join);
    caterva_view_free(view);
    caterva_discard(array);
    scratch_remove(path);
}

int main(void)
{
    turned("<i4", "<f8", 2);
    turned("<i4", "<f4", 2);
    turned("<i4", ">i4", 2);
    turned("<i4", "|S4", 2); /* of which there are no statistics */
    turned("|S4", "<i4", 2);
    turned("<i4", "<M8[s]", 2);
    turned("<i4", "<i4", 1);
    turned("<i4", "<i4", 3);
    return 0;
}

/* Views of a handle that a refresh has turned to another array: of other items, other axes or
 * another shape. Whatever goes through the view is stale, and no byte is written. */
#include "caterva.h"

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

static void must_be_stale(const caterva_view *view)
{
    caterva_error err;
    uint8_t got[GUARDED];
    caterva_stats stats = CATERVA_STATS_INIT;
    caterva_buffer dst = CATERVA_BUFFER_INIT;
    memset(got, 0x55, sizeof got);
    dst.data = got;
    dst.size = BYTES;
    CHECK(caterva_view_read(view, NULL, &dst, &err) == CATERVA_ESTALE, "a read");
    CHECK(strstr(err.message, "when the view was made"), "%s", err.message);
    for (int i = 0; i < GUARDED; i++) CHECK(got[i] == 0x55, "byte %d was written", i);
    CHECK(caterva_view_statistics(view, NULL, &stats, &err) == CATERVA_ESTALE, "statistics");
    CHECK(caterva_view_reduce(view, CATERVA_REDUCTION_SUM, NULL, got, 8, &err) ==
              CATERVA_ESTALE,
          "a sum");
    CHECK(caterva_view_copy(view, "mem:", NULL, NULL, &err) == CATERVA_ESTALE, "a copy");
}

static void turned_to(const char *dtype, int ndim)
{
    char path[SCRATCH_PATH];
    caterva_error err;
    caterva_array *array;
    caterva_view *view;
    put(scratch_path(path, "stale"), "<i4", 2);
    CHECK_OK(caterva_open(path, NULL, &array, &err), err);
    CHECK_OK(caterva_view_of(array, &view, &err), err);
    put(path, dtype, ndim);
    CHECK_OK(caterva_refresh(array, &err), err);
    must_be_stale(view);
    caterva_view_free(view);
    caterva_discard(array);
    scratch_remove(path);
}

int main(void)
{
    turned_to("<f8", 2);
    turned_to("<f4", 2);
    turned_to("<i4", 1);
    turned_to("<i4", 3);
    return 0;
}

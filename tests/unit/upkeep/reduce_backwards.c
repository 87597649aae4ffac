/* Reductions of backward selections: for reduced axes the direction makes no difference; a
 * kept axis has its results in the order of the selection. */
#include "caterva.h"
#include "caterva_upkeep.h"

#include "support/check.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

enum { ROWS = 4, COLUMNS = 3 };

static caterva_array *make(void)
{
    static const int64_t shape[] = {ROWS, COLUMNS}, origin[] = {0, 0};
    caterva_create_options o = CATERVA_CREATE_INIT;
    caterva_array *array;
    caterva_error err;
    int64_t items[ROWS * COLUMNS];
    for (int i = 0; i < ROWS * COLUMNS; i++) items[i] = i * i;
    o.ndim = 2;
    o.shape = shape;
    o.dtype = "=i8";
    CHECK_OK(caterva_create("mem:", &o, &array, &err), err);
    CHECK_OK(caterva_write(array, origin, shape, items, sizeof items, &err), err);
    return array;
}

/* Sums along axis `axis` of a[::-1, :]. */
static caterva_status sum(caterva_array *array, int axis, int64_t *out, caterva_error *err)
{
    static const caterva_axis backwards = {
        .kind = CATERVA_AXIS_SLICE,
        .start = CATERVA_AXIS_OMIT,
        .stop = CATERVA_AXIS_OMIT,
        .step = -1};
    caterva_selection turned = CATERVA_SELECTION_INIT;
    turned.kind = CATERVA_SELECTION_AXES;
    turned.axes = &backwards;
    turned.n_axes = 1;
    caterva_reduce_options o = CATERVA_REDUCE_INIT;
    o.selection = &turned;
    o.axes = &axis;
    o.n_axes = 1;
    return caterva_reduce(array, CATERVA_REDUCTION_SUM, &o, out, ROWS * sizeof out[0], err);
}

static void along_the_axis(void **state)
{
    (void)state;
    caterva_array *array = make();
    caterva_error err;
    int64_t got[ROWS] = {0};
    CHECK_OK(sum(array, 0, got, &err), err);
    for (int c = 0; c < COLUMNS; c++) {
        int64_t want = 0;
        for (int r = 0; r < ROWS; r++) want += (r * COLUMNS + c) * (r * COLUMNS + c);
        assert_int_equal(got[c], want);
    }
    caterva_discard(array);
}

static void across_the_axis(void **state)
{
    (void)state;
    caterva_array *array = make();
    caterva_error err;
    int64_t got[ROWS] = {7, 7, 7, 7};
    CHECK_OK(sum(array, 1, got, &err), err);
    for (int r = 0; r < ROWS; r++) {
        int64_t want = 0;
        for (int c = 0; c < COLUMNS; c++) want += (r * COLUMNS + c) * (r * COLUMNS + c);
        assert_int_equal(got[ROWS - 1 - r], want);
    }
    caterva_discard(array);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(along_the_axis),
        cmocka_unit_test(across_the_axis),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Read-ahead: which reads are scans, and which items they touch next, compared with an
 * item-by-item computation. */
#include "engine/read/prefetch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const int64_t shape[] = {100, 90};

static cv_grid make_grid(void)
{
    cv_grid grid;
    const int32_t chunks[] = {40, 33}, blocks[] = {16, 10}; /* neither divides evenly */
    assert_int_equal(cv_grid_init(&grid, 2, shape, chunks, blocks, 4, NULL), CV_OK);
    return grid;
}

static bool add(cv_scan *scan, const cv_grid *grid, int64_t row, int64_t rows, int64_t column,
                int64_t columns)
{
    cv_plan plan;
    int64_t start[] = {row, column}, stop[] = {row + rows, column + columns};
    assert_int_equal(cv_plan_box(grid, start, stop, &plan, NULL), CV_OK);
    return cv_scan_add(scan, &plan);
}

static cv_scan new_scan(void) { return (cv_scan){.axis = -1, .next = -1}; }

static void three_boxes_in_equal_steps_are_a_scan(void **state)
{
    (void)state;
    cv_grid grid = make_grid();
    cv_scan scan = new_scan();
    assert_false(add(&scan, &grid, 5, 1, 0, 90));
    assert_false(add(&scan, &grid, 6, 1, 0, 90));
    assert_true(add(&scan, &grid, 7, 1, 0, 90));
    assert_true(add(&scan, &grid, 8, 1, 0, 90));
    assert_int_equal(scan.axis, 0);
    assert_int_equal(scan.step, 1);
}

static void other_reads_are_none(void **state)
{
    (void)state;
    cv_grid grid = make_grid();
    cv_scan scan = new_scan();
    for (int i = 0; i < 5; i++) assert_false(add(&scan, &grid, 7, 2, 3, 4)); /* the same */
    for (int i = 0; i < 5; i++) assert_false(add(&scan, &grid, i, 1, i, 5)); /* two axes */
    for (int i = 0; i < 5; i++) assert_false(add(&scan, &grid, i * i, 1, 0, 90));
    for (int i = 0; i < 5; i++) assert_false(add(&scan, &grid, i, 1 + i, 0, 90)); /* grows */
    for (int i = 0; i < 8; i++) assert_false(add(&scan, &grid, i / 2, 1, i % 2, 80));
}

static void another_step_begins_anew(void **state)
{
    (void)state;
    cv_grid grid = make_grid();
    cv_scan scan = new_scan();
    for (int i = 0; i < 3; i++) add(&scan, &grid, i, 1, 0, 90);
    assert_false(add(&scan, &grid, 4, 1, 0, 90)); /* by two */
    assert_true(add(&scan, &grid, 6, 1, 0, 90));
    assert_false(add(&scan, &grid, 6, 1, 0, 89));
}

/* ---- What comes next --------------------------------------------------------------- */

static int64_t layer_number(const cv_grid *grid, int axis, int64_t item)
{
    int64_t per_chunk = (grid->chunk_shape[axis] - 1) / grid->block_shape[axis] + 1;
    return item / grid->chunk_shape[axis] * per_chunk +
           item % grid->chunk_shape[axis] / grid->block_shape[axis];
}

/* Continues box by box until an item is in a layer beyond those of the first box. */
static bool walk(const cv_grid *grid, int axis, int64_t at, int64_t length, int64_t step,
                 int64_t *first, int64_t *last)
{
    int64_t edge = layer_number(grid, axis, step > 0 ? at + length - 1 : at);
    *first = *last = -1;
    for (int64_t box = at + step; *first < 0 && box < grid->shape[axis] && box > -length;
         box += step) {
        for (int64_t i = box; i < box + length; i++) {
            if (i < 0 || i >= grid->shape[axis]) continue;
            int64_t layer = layer_number(grid, axis, i);
            if (step > 0 ? layer <= edge : layer >= edge) continue;
            if (*first < 0) *first = i;
            *last = i + 1;
        }
    }
    return *first >= 0;
}

static void the_next_items_are_those_of_a_walk(void **state)
{
    (void)state;
    cv_grid grid = make_grid();
    int n = 0;
    for (int axis = 0; axis < 2; axis++)
        for (int64_t step = -45; step <= 45; step++)
            for (int64_t length = 1; length <= 50; length += 7)
                for (int64_t at = 0; at + length <= shape[axis]; at += 3) {
                    if (step == 0) continue;
                    cv_scan scan = {.axis = axis, .step = step};
                    int64_t first, last, expected_first, expected_last;
                    scan.start[axis] = at;
                    scan.stop[axis] = at + length;
                    bool found = cv_scan_next(&scan, &grid, &first, &last);
                    bool expected =
                        walk(&grid, axis, at, length, step, &expected_first, &expected_last);
                    assert_int_equal(found, expected);
                    if (!found) continue;
                    assert_int_equal(first, expected_first);
                    assert_int_equal(last, expected_last);
                    n++;
                }
    assert_true(n > 5000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(three_boxes_in_equal_steps_are_a_scan),
        cmocka_unit_test(other_reads_are_none),
        cmocka_unit_test(another_step_begins_anew),
        cmocka_unit_test(the_next_items_are_those_of_a_walk),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Sweeps: which reads of a block continue a scan, which end it, and which return to items
 * read before, compared item by item. */
#include "engine/cache/cache.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

enum { EDGE = 8 };

/* One chunk; its last blocks are cut by the end of the array, to 5 of 8 items. */
static cv_grid make_grid(void)
{
    cv_grid grid;
    const int64_t shape[] = {13, 13, 13};
    const int32_t chunks[] = {16, 16, 16}, blocks[] = {EDGE, EDGE, EDGE};
    assert_int_equal(cv_grid_init(&grid, 3, shape, chunks, blocks, 4, NULL), CV_OK);
    return grid;
}

/* The read of a box that lies in one block. */
static cv_step note(cv_sweep *sweep, const cv_grid *grid, const int64_t *start,
                    const int64_t *stop)
{
    cv_plan plan;
    cv_chunk_job chunk;
    cv_block_job block;
    assert_int_equal(cv_plan_box(grid, start, stop, &plan, NULL), CV_OK);
    cv_plan_chunk(&plan, 0, &chunk);
    assert_int_equal(chunk.n_blocks, 1);
    cv_plan_block(&plan, &chunk, 0, &block);
    return cv_sweep_note(sweep, grid, &block);
}

/* Items [at, at + thick) along an axis, of the block that begins at item `origin`. */
static cv_step note_slice(cv_sweep *sweep, const cv_grid *grid, int64_t origin, int axis,
                          int64_t at, int64_t thick)
{
    int64_t end = origin == 0 ? EDGE : 13;
    int64_t start[] = {origin, origin, origin}, stop[] = {end, end, end};
    start[axis] = origin + at;
    stop[axis] = origin + at + thick;
    return note(sweep, grid, start, stop);
}

static void slices_are_a_sweep(void **state)
{
    (void)state;
    cv_grid grid = make_grid();
    for (int axis = 0; axis < 3; axis++)
        for (int64_t origin = 0; origin <= EDGE; origin += EDGE)
            for (int64_t step = 1; step <= 3; step++) {
                int64_t n = origin == 0 ? EDGE : 5, at = 0;
                cv_sweep sweep;
                cv_sweep_init(&sweep);
                for (; at + step < n; at += step)
                    assert_int_equal(note_slice(&sweep, &grid, origin, axis, at, step),
                                     CV_STEP_ON);
                assert_int_equal(note_slice(&sweep, &grid, origin, axis, at, n - at),
                                 CV_STEP_LAST);
                assert_int_equal(note_slice(&sweep, &grid, origin, axis, 0, 1), CV_STEP_BACK);
            }
}

static void backwards_too(void **state)
{
    (void)state;
    cv_grid grid = make_grid();
    for (int axis = 0; axis < 3; axis++) {
        cv_sweep sweep;
        cv_sweep_init(&sweep);
        for (int64_t at = EDGE - 1; at > 0; at--)
            assert_int_equal(note_slice(&sweep, &grid, 0, axis, at, 1), CV_STEP_ON);
        assert_int_equal(note_slice(&sweep, &grid, 0, axis, 0, 1), CV_STEP_LAST);
        assert_int_equal(note_slice(&sweep, &grid, 0, axis, 1, 1), CV_STEP_BACK);
    }
}

/* A window that moves by less than its thickness reads items again. */
static void windows_come_back(void **state)
{
    (void)state;
    cv_grid grid = make_grid();
    for (int axis = 0; axis < 3; axis++) {
        cv_sweep sweep;
        cv_sweep_init(&sweep);
        assert_int_equal(note_slice(&sweep, &grid, 0, axis, 0, 3), CV_STEP_ON);
        for (int64_t at = 1; at + 3 <= EDGE; at++)
            assert_int_equal(note_slice(&sweep, &grid, 0, axis, at, 3), CV_STEP_BACK);
    }
}

static void the_same_again_comes_back(void **state)
{
    (void)state;
    cv_grid grid = make_grid();
    cv_sweep sweep;
    cv_sweep_init(&sweep);
    assert_int_equal(note_slice(&sweep, &grid, 0, 1, 4, 1), CV_STEP_ON);
    for (int i = 0; i < 3; i++)
        assert_int_equal(note_slice(&sweep, &grid, 0, 1, 4, 1), CV_STEP_BACK);
    assert_int_equal(note_slice(&sweep, &grid, 0, 1, 5, 1), CV_STEP_ON);
}

static void whole_blocks_are_read_in_one_step(void **state)
{
    (void)state;
    cv_grid grid = make_grid();
    for (int64_t origin = 0; origin <= EDGE; origin += EDGE) {
        cv_sweep sweep;
        cv_sweep_init(&sweep);
        int64_t n = origin == 0 ? EDGE : 5;
        assert_int_equal(note_slice(&sweep, &grid, origin, 0, 0, n), CV_STEP_LAST);
        assert_int_equal(note_slice(&sweep, &grid, origin, 0, 0, n), CV_STEP_BACK);
    }
}

/* Scattered points change direction more often than not. */
static void points_come_back(void **state)
{
    (void)state;
    cv_grid grid = make_grid();
    cv_sweep sweep;
    cv_sweep_init(&sweep);
    uint32_t random = 1;
    int n_back = 0;
    for (int i = 0; i < 300; i++) {
        int64_t start[3], stop[3];
        for (int d = 0; d < 3; d++) {
            random = random * 1664525 + 1013904223;
            start[d] = random >> 29;
            stop[d] = start[d] + 1;
        }
        n_back += note(&sweep, &grid, start, stop) == CV_STEP_BACK;
    }
    assert_in_range(n_back, 150, 299);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slices_are_a_sweep),
        cmocka_unit_test(backwards_too),
        cmocka_unit_test(windows_come_back),
        cmocka_unit_test(the_same_again_comes_back),
        cmocka_unit_test(whole_blocks_are_read_in_one_step),
        cmocka_unit_test(points_come_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Transposing: every kind that the processor has against the definition, for all small
 * tables and for larger ones, and not a byte beside the items.
 *
 * usage: test_transpose [SEED] */
#include "base/cpu.h"
#include "engine/items/copy.h"
#include "engine/items/transpose.h"
#include "support/check.h"
#include "support/random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static uint64_t seed;

enum { EDGE = 64, MOST_SIZE = 8, ROOM = 1 << 20 };

static uint8_t source[ROOM], got[ROOM], expected[ROOM];

static cv_transpose_function *function_of(const cv_transpose_kind *kind, int item_size)
{
    switch (item_size) {
    case 1: return kind->of_1;
    case 2: return kind->of_2;
    case 4: return kind->of_4;
    default: return kind->of_8;
    }
}

static void transpose_plainly(const cv_transposition *t, int item_size, const uint8_t *src,
                              uint8_t *dst)
{
    for (int64_t i = 0; i < t->n_rows; i++)
        for (int64_t j = 0; j < t->n_columns; j++)
            memcpy(dst + j * t->dst_step + i * item_size,
                   src + i * t->src_step + j * item_size, (size_t)item_size);
}

/* Rows `gap` bytes apart on both sides; `shift` moves both. */
static void check_table(cv_transpose_function *run, int item_size, int64_t n_rows,
                        int64_t n_columns, int64_t gap, int64_t shift)
{
    cv_transposition t = {n_rows, n_columns, n_columns * item_size + gap,
                          n_rows * item_size + gap};
    size_t size = (size_t)(n_columns * t.dst_step + shift) + 2 * EDGE;
    assert_true(size <= ROOM && (size_t)(n_rows * t.src_step + shift) <= ROOM);
    memset(got, 0xa5, size);
    memset(expected, 0xa5, size);
    transpose_plainly(&t, item_size, source + shift, expected + EDGE + shift);
    run(&t, source + shift, got + EDGE + shift);
    assert_memory_equal(got, expected, size);
}

static void check_kind(const cv_transpose_kind *kind, rng *r)
{
    enum { ALL_TO = 70, ROUNDS = 200, MOST = 300 };
    for (int item_size = 1; item_size <= MOST_SIZE; item_size *= 2) {
        cv_transpose_function *run = function_of(kind, item_size);
        for (int64_t n = 0; n <= ALL_TO; n++)
            for (int64_t m = 0; m <= ALL_TO; m += 1 + m / 24)
                check_table(run, item_size, n, m, n % 3, m % 5);
        for (int round = 0; round < ROUNDS; round++)
            check_table(run, item_size, rng_between(r, 1, MOST), rng_between(r, 1, MOST),
                        rng_between(r, 0, 70), rng_between(r, 0, EDGE - 1));
    }
}

static void every_kind_as_defined(void **state)
{
    (void)state;
    rng r = rng_from_seed(seed);
    int n;
    const cv_transpose_kind *kinds = cv_transpose_kinds(&n);
    rng_fill(&r, source, sizeof source);
    assert_int_equal(kinds[n - 1].needs, 0);
    for (int i = 0; i < n; i++) {
        bool can = cv_cpu_can(kinds[i].needs);
        if (can) check_kind(&kinds[i], &r);
        print_message("%s: %s\n", kinds[i].name, can ? "tested" : "not on this machine");
    }
}

/* Tables that end where their memory ends: a sanitizer detects reads after it. */
static void nothing_behind_is_touched(void **state)
{
    (void)state;
    int n_kinds;
    const cv_transpose_kind *kinds = cv_transpose_kinds(&n_kinds);
    for (int k = 0; k < n_kinds; k++) {
        if (!cv_cpu_can(kinds[k].needs)) continue;
        for (int item_size = 1; item_size <= MOST_SIZE; item_size *= 2)
            for (int64_t n = 1; n < 80; n += 3)
                for (int64_t m = 1; m < 40; m += 2) {
                    size_t size = (size_t)(n * m * item_size);
                    cv_transposition t = {n, m, m * item_size, n * item_size};
                    uint8_t *src = check_alloc(size), *dst = check_alloc(size);
                    memset(src, 7, size);
                    function_of(&kinds[k], item_size)(&t, src, dst);
                    assert_memory_equal(src, dst, size);
                    free(src);
                    free(dst);
                }
    }
}

/* Rows backwards: steps may be anything. */
static void steps_may_be_negative(void **state)
{
    (void)state;
    enum { ROWS = 37, COLUMNS = 29 };
    int n_kinds;
    const cv_transpose_kind *kinds = cv_transpose_kinds(&n_kinds);
    for (int k = 0; k < n_kinds; k++) {
        if (!cv_cpu_can(kinds[k].needs)) continue;
        for (int item_size = 1; item_size <= MOST_SIZE; item_size *= 2) {
            int64_t in = COLUMNS * item_size, out = ROWS * item_size;
            cv_transposition t = {ROWS, COLUMNS, -in, -out};
            const uint8_t *from = source + (ROWS - 1) * in;
            transpose_plainly(&t, item_size, from, expected + (COLUMNS - 1) * out);
            function_of(&kinds[k], item_size)(&t, from, got + (COLUMNS - 1) * out);
            assert_memory_equal(got, expected, (size_t)(COLUMNS * out));
        }
    }
}

/* Boxes with permuted axes, of all item sizes, through the kernels of each kind. */
static void boxes_are_the_same_by_every_kind(void **state)
{
    (void)state;
    enum { ROUNDS = 2000, NDIM = 3 };
    rng r = rng_from_seed(seed + 1);
    int n_kinds;
    const cv_transpose_kind *kinds = cv_transpose_kinds(&n_kinds);
    for (int round = 0; round < ROUNDS; round++) {
        static const int sizes[] = {1, 2, 3, 4, 8, 16};
        int64_t size = sizes[rng_between(&r, 0, 5)], shape[NDIM], from[NDIM], to[NDIM];
        int64_t bytes = size;
        for (int d = NDIM - 1; d >= 0; d--) {
            shape[d] = rng_between(&r, 1, 30);
            from[d] = bytes;
            bytes *= shape[d];
        }
        int64_t step = size;
        for (int d = 0; d < NDIM; d++) { /* the first axis is the innermost */
            to[d] = step;
            step *= shape[d];
        }
        cv_strided src = {source, from};
        for (int64_t i = 0; i < shape[0]; i++)
            for (int64_t j = 0; j < shape[1]; j++)
                for (int64_t k = 0; k < shape[2]; k++)
                    memcpy(expected + i * to[0] + j * to[1] + k * to[2],
                           source + i * from[0] + j * from[1] + k * from[2], (size_t)size);
        for (int i = 0; i < n_kinds; i++) {
            cv_cpu_allow(kinds[i].needs);
            memset(got, 0, (size_t)bytes);
            cv_copy_box(NDIM, shape, size, src, (cv_strided){got, to});
            assert_memory_equal(got, expected, (size_t)bytes);
        }
        cv_cpu_allow(~0U);
    }
}

int main(int argc, char **argv)
{
    seed = seed_argument(argc, argv, 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_as_defined),
        cmocka_unit_test(nothing_behind_is_touched),
        cmocka_unit_test(steps_may_be_negative),
        cmocka_unit_test(boxes_are_the_same_by_every_kind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Copy and fill kernels against a loop over items: any strides, merged axes or not, every
 * item size with a specialised loop and some without. */
#include "engine/items/copy.h"

#include "check.h"
#include "random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static uint64_t seed;

enum { ROOM = 1 << 16, MAX_LENGTH = 6 };

static const int64_t item_sizes[] = {1, 2, 3, 4, 5, 8, 12, 16, 17, 300};

typedef struct copy_case {
    int ndim;
    int64_t shape[CV_MAX_DIMS];
    int64_t item_size;
} copy_case;

static copy_case random_case(rng *r)
{
    copy_case c = {.ndim = rng_int(r, 0, 5), .item_size = item_sizes[rng_int(r, 0, 9)]};
    int64_t room = ROOM / 8 / c.item_size;
    for (int d = 0; d < c.ndim; d++) {
        int64_t most = room < MAX_LENGTH ? room : MAX_LENGTH;
        c.shape[d] = rng_one_in(r, 40) ? 0 : rng_between(r, 1, most);
        if (c.shape[d] > 0) room /= c.shape[d];
        if (room < 1) room = 1;
    }
    return c;
}

/* C order, sometimes with gaps, so that some axes merge and others do not. */
static void random_strides(rng *r, const copy_case *c, int64_t *strides)
{
    int64_t stride = c->item_size;
    for (int d = c->ndim - 1; d >= 0; d--) {
        if (rng_one_in(r, 4)) stride += c->item_size * rng_int(r, 1, 1 + (stride < 2000));
        strides[d] = stride;
        stride *= c->shape[d] > 0 ? c->shape[d] : 1;
    }
    int last = c->ndim - 1;
    if (last > 0 && rng_one_in(r, 4) && c->shape[0] == c->shape[last]) { /* transposed */
        int64_t first = strides[0];
        strides[0] = strides[last];
        strides[last] = first;
    }
}

static int64_t n_items(const copy_case *c)
{
    int64_t n = 1;
    for (int d = 0; d < c->ndim; d++) n *= c->shape[d];
    return n;
}

static int64_t position(const copy_case *c, const int64_t *strides, int64_t item)
{
    int64_t pos = 0;
    for (int d = c->ndim - 1; d >= 0; d--) {
        pos += item % c->shape[d] * strides[d];
        item /= c->shape[d];
    }
    return pos;
}

static void boxes_are_copied_item_by_item(void **state)
{
    (void)state;
    rng r = rng_from_seed(seed);
    uint8_t *src = check_alloc(ROOM * 8), *dst = check_alloc(ROOM * 8),
            *expected = check_alloc(ROOM * 8);
    rng_fill(&r, src, ROOM * 8);
    for (int i = 0; i < 4000; i++) {
        copy_case c = random_case(&r);
        int64_t from[CV_MAX_DIMS], to[CV_MAX_DIMS];
        random_strides(&r, &c, from);
        random_strides(&r, &c, to);
        memset(dst, 0xee, ROOM);
        memset(expected, 0xee, ROOM);
        bool fits = true;
        for (int64_t k = 0; k < n_items(&c); k++) {
            int64_t pos = position(&c, to, k);
            fits = fits && pos + c.item_size <= ROOM && position(&c, from, k) < ROOM * 4;
            if (fits)
                memcpy(expected + pos, src + position(&c, from, k), (size_t)c.item_size);
        }
        if (!fits) continue;
        cv_copy_box(c.ndim, c.shape, c.item_size, (cv_strided){src, from},
                    (cv_strided){dst, to});
        assert_memory_equal(dst, expected, ROOM);
    }
    free(src);
    free(dst);
    free(expected);
}

/* Copies one box out of a block in which byte k of all items comes before byte k + 1. */
static void unshuffle_one(rng *r, const uint8_t *src, uint8_t *dst, uint8_t *expected)
{
    copy_case c = random_case(r);
    int64_t from[CV_MAX_DIMS], to[CV_MAX_DIMS];
    if (c.ndim > 0 && rng_one_in(r, 2)) { /* rows long enough for vectors */
        for (int d = 0; d < c.ndim; d++) c.shape[d] = rng_between(r, 1, 3);
        c.shape[c.ndim - 1] = rng_between(r, 1, 70);
        if (c.item_size > 16) c.item_size = 4;
    }
    random_strides(r, &c, from);
    random_strides(r, &c, to);
    int64_t n = n_items(&c), first = rng_between(r, 0, 9), length = first + 1;
    if (n > 0) length += position(&c, from, n - 1) / c.item_size;
    length += rng_between(r, 0, 9);
    if (length * c.item_size > ROOM * 8) return;
    if (n > 0 && position(&c, to, n - 1) + c.item_size > ROOM) return;
    memset(dst, 0xee, ROOM);
    memset(expected, 0xee, ROOM);
    for (int64_t i = 0; i < n; i++)
        for (int64_t k = 0; k < c.item_size; k++)
            expected[position(&c, to, i) + k] =
                src[k * length + first + position(&c, from, i) / c.item_size];
    cv_shuffled block = {src, first * c.item_size, length * c.item_size, from};
    cv_unshuffle_box(c.ndim, c.shape, c.item_size, block, (cv_strided){dst, to});
    assert_memory_equal(dst, expected, ROOM);
}

static void shuffled_boxes_are_copied_byte_by_byte(void **state)
{
    (void)state;
    rng r = rng_from_seed(seed);
    uint8_t *src = check_alloc(ROOM * 8), *dst = check_alloc(ROOM),
            *expected = check_alloc(ROOM);
    rng_fill(&r, src, ROOM * 8);
    for (int i = 0; i < 4000; i++) unshuffle_one(&r, src, dst, expected);
    free(src);
    free(dst);
    free(expected);
}

static void boxes_are_filled_item_by_item(void **state)
{
    (void)state;
    rng r = rng_from_seed(seed);
    uint8_t *dst = check_alloc(ROOM), *expected = check_alloc(ROOM), item[300],
            zeros[300] = {0};
    for (int i = 0; i < 4000; i++) {
        copy_case c = random_case(&r);
        int64_t to[CV_MAX_DIMS];
        random_strides(&r, &c, to);
        rng_fill(&r, item, sizeof item);
        bool zero = rng_one_in(&r, 3), fits = true;
        memset(dst, 0xee, ROOM);
        memset(expected, 0xee, ROOM);
        for (int64_t k = 0; k < n_items(&c); k++) {
            int64_t pos = position(&c, to, k);
            fits = fits && pos + c.item_size <= ROOM;
            if (fits) memcpy(expected + pos, zero ? zeros : item, (size_t)c.item_size);
        }
        if (!fits) continue;
        cv_fill_box(c.ndim, c.shape, c.item_size, zero ? NULL : item, (cv_strided){dst, to});
        assert_memory_equal(dst, expected, ROOM);
    }
    free(dst);
    free(expected);
}

static void strides_may_be_zero_or_negative(void **state)
{
    (void)state;
    const int32_t src[] = {1, 2, 3, 4, 5, 6};
    int32_t dst[6];
    const int64_t shape[] = {2, 3}, c_order[] = {12, 4}, back[] = {-12, -4}, same[] = {0, 0};
    cv_copy_box(2, shape, 4, (cv_strided){(uint8_t *)(src + 5), back},
                (cv_strided){(uint8_t *)dst, c_order});
    for (int i = 0; i < 6; i++) assert_int_equal(dst[i], 6 - i);
    cv_copy_box(2, shape, 4, (cv_strided){(uint8_t *)(src + 2), same},
                (cv_strided){(uint8_t *)dst, c_order});
    for (int i = 0; i < 6; i++) assert_int_equal(dst[i], 3);
    cv_copy_box(2, shape, 4, (cv_strided){(uint8_t *)src, c_order},
                (cv_strided){(uint8_t *)(dst + 5), back});
    for (int i = 0; i < 6; i++) assert_int_equal(dst[i], 6 - i);
    cv_fill_box(2, shape, 4, (const uint8_t *)(src + 1),
                (cv_strided){(uint8_t *)(dst + 5), back});
    for (int i = 0; i < 6; i++) assert_int_equal(dst[i], 2);
}

/* One long axis in 16 dimensions; no axis at all. */
static void all_numbers_of_axes(void **state)
{
    (void)state;
    for (int ndim = 0; ndim <= CV_MAX_DIMS; ndim++) {
        uint8_t src[256], dst[256] = {0};
        int64_t shape[CV_MAX_DIMS], strides[CV_MAX_DIMS], gaps[CV_MAX_DIMS];
        for (int d = 0; d < ndim; d++) {
            shape[d] = d % 2 && d < 12 ? 2 : 1;
            strides[d] = gaps[d] = 1;
        }
        int64_t n = 1, gap = 2;
        for (int d = ndim - 1; d >= 0; d--) {
            strides[d] = n;
            gaps[d] = gap;
            n *= shape[d];
            gap *= shape[d];
        }
        for (int i = 0; i < 256; i++) src[i] = (uint8_t)(i + 1);
        cv_copy_box(ndim, shape, 1, (cv_strided){src, strides}, (cv_strided){dst, gaps});
        for (int64_t i = 0; i < n; i++) {
            assert_int_equal(dst[2 * i], i + 1);
            assert_int_equal(dst[2 * i + 1], 0);
        }
    }
}

/* Each length has its own kernel; bytes beside a run do not change. */
static void runs_of_all_lengths(void **state)
{
    enum {
        LONGEST = 150,
        ROWS = 6,
        LAYERS = 3,
        ROW = LONGEST + 7,
        ALL = ROWS * LAYERS * ROW
    };
    (void)state;
    uint8_t src[ALL], dst[ALL];
    rng r = rng_from_seed(seed);
    rng_fill(&r, src, ALL);
    const int64_t strides[3] = {ROWS * ROW, ROW, 1};
    for (int64_t length = 1; length <= LONGEST; length++) {
        memset(dst, 0xee, ALL);
        for (int64_t rows = 1; rows <= ROWS; rows += 5) {
            int64_t shape[3] = {LAYERS, rows, length};
            cv_copy_box(3, shape, 1, (cv_strided){src, strides}, (cv_strided){dst, strides});
            for (int64_t at = 0; at < ALL; at++) {
                bool inside = at % ROW < length && at / ROW % ROWS < rows;
                assert_int_equal(dst[at], inside ? src[at] : 0xee);
            }
        }
    }
}

static void sameness_is_seen(void **state)
{
    (void)state;
    uint8_t bytes[600] = {0};
    for (size_t size = 0; size < sizeof bytes; size += 7) {
        assert_true(cv_all_zero(bytes, size));
        for (size_t at = 0; at < size; at += size / 5 + 1) {
            bytes[at] = 1;
            assert_false(cv_all_zero(bytes, size));
            bytes[at] = 0;
        }
    }
    for (size_t item = 1; item < 60; item++) {
        for (size_t i = 0; i < 600; i++) bytes[i] = (uint8_t)(i % item);
        assert_true(cv_all_same(bytes, item * 10, item));
        assert_true(cv_all_same(bytes, item, item));
        bytes[item * 10 - 1] ^= 0x80;
        assert_false(cv_all_same(bytes, item * 10, item));
        bytes[item * 10 - 1] ^= 0x80;
    }
}

int main(int argc, char **argv)
{
    seed = seed_argument(argc, argv, 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(boxes_are_copied_item_by_item),
        cmocka_unit_test(shuffled_boxes_are_copied_byte_by_byte),
        cmocka_unit_test(boxes_are_filled_item_by_item),
        cmocka_unit_test(strides_may_be_zero_or_negative),
        cmocka_unit_test(all_numbers_of_axes),
        cmocka_unit_test(runs_of_all_lengths),
        cmocka_unit_test(sameness_is_seen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

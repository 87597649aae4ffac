/* Random attribute values: what the packer writes is one value, its tokens end where it ends,
 * and no prefix of it is a value.
 *
 * usage: test_value_random [SEED] */
#include "format/values.h"

#include <caterva_value.h>

#include "random.h"

#include <stdio.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static uint64_t seed;

static int64_t below(rng *r, int64_t n) { return rng_between(r, 0, n - 1); }

static void pack_random(rng *r, cv_packer *p, int depth);

static void pack_some(rng *r, cv_packer *p, int depth, cv_pack_kind kind)
{
    int64_t n = below(r, below(r, 8) == 0 ? 70 : 5);
    cv_pack_begin(p, kind);
    for (int64_t i = 0; i < n; i++) {
        char key[16];
        int size = snprintf(key, sizeof key, "%s%d", i % 3 ? "k" : "$set", (int)i);
        if (kind == CV_PACK_MAP && below(r, 5) == 0)
            cv_pack_int(p, (int64_t)rng_next(r) >> below(r, 64));
        else if (kind == CV_PACK_MAP)
            cv_pack_text(p, key, below(r, 9) == 0 ? 4 : (size_t)size);
        pack_random(r, p, depth - 1);
    }
    cv_pack_end(p);
}

static void pack_scalar(rng *r, cv_packer *p)
{
    uint8_t bytes[300];
    size_t size = (size_t)below(r, below(r, 6) == 0 ? 300 : 20);
    for (size_t i = 0; i < size; i++) bytes[i] = (uint8_t)rng_next(r);
    switch (below(r, 8)) {
    case 0: cv_pack_nil(p); break;
    case 1: cv_pack_bool(p, below(r, 2)); break;
    case 2: cv_pack_int(p, (int64_t)rng_next(r) >> below(r, 64)); break;
    case 3: cv_pack_uint(p, rng_next(r)); break;
    case 4: cv_pack_real(p, (double)(int64_t)rng_next(r) / 1e9); break;
    case 5: cv_pack_binary(p, bytes, size); break;
    case 6: cv_pack_ext(p, (int)below(r, 40), bytes, size); break;
    default:
        for (size_t i = 0; i < size; i++) bytes[i] &= 0x7f;
        cv_pack_text(p, bytes, size);
        break;
    }
}

static void pack_typed(rng *r, cv_packer *p)
{
    static const char *const dtypes[] = {"<i2",  ">i4", "<u8", "|b1",    "<f4", ">f8",
                                         "<c16", "|S5", "<U3", "<M8[D]", "|V3", "<f2"};
    uint8_t items[24 * 16];
    for (size_t i = 0; i < sizeof items; i++) items[i] = (uint8_t)rng_next(r);
    const char *dtype = dtypes[below(r, sizeof dtypes / sizeof dtypes[0])];
    cv_typed typed = {.ndim = (int)below(r, 3), .items = items};
    assert_int_equal(cv_typed_set_dtype(&typed, dtype, strlen(dtype), NULL), CV_OK);
    for (int d = 0; d < typed.ndim; d++) typed.shape[d] = below(r, 5);
    int64_t size;
    assert_true(cv_typed_count(&typed, &size));
    assert_in_range(size, 0, sizeof items);
    cv_typed_pack(&typed, p);
}

static void pack_random(rng *r, cv_packer *p, int depth)
{
    int64_t kind = depth > 0 ? below(r, 9) : 5 + below(r, 4);
    if (kind < 3) {
        pack_some(r, p, depth, (cv_pack_kind)kind);
    } else if (kind == 3) {
        cv_pack_begin(p, CV_PACK_LIST);
        cv_pack_text(p, CV_TUPLE_MARK, strlen(CV_TUPLE_MARK));
        pack_random(r, p, depth - 1);
        cv_pack_end(p);
    } else if (kind == 8) {
        pack_typed(r, p);
    } else {
        pack_scalar(r, p);
    }
}

/* Reads token after token; returns how many there are. */
static int count_tokens(const cv_buffer *value)
{
    int n = 0;
    caterva_error err;
    for (size_t at = 0; at < value->size; n++) {
        caterva_value v = CATERVA_VALUE_INIT;
        size_t before = at;
        assert_int_equal(caterva_value_next(value->data, value->size, &at, &v, &err), CV_OK);
        assert_in_range(at, before + 1, value->size);
    }
    return n;
}

static void random_values_are_values(void **state)
{
    (void)state;
    rng r = rng_from_seed(seed);
    for (int round = 0; round < 2000; round++) {
        cv_packer p = {.status = CV_OK};
        cv_buffer value = {0};
        pack_random(&r, &p, 6);
        assert_int_equal(cv_pack_finish(&p, &value, NULL), CV_OK);
        assert_true(cv_is_value(value.data, value.size));
        assert_true(count_tokens(&value) > 0);
        assert_false(cv_is_value(value.data, (size_t)below(&r, (int64_t)value.size)));
        cv_buffer_free(&value);
    }
}

int main(int argc, char **argv)
{
    seed = seed_argument(argc, argv, 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_values_are_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

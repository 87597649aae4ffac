/* Option structs of any age: a shorter one from an older program counts as if
 * the rest were zero, a longer one from a newer program as far as it is known,
 * garbage is refused. */
#include "array/array.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const int64_t shape[] = {10};
static const int32_t chunk_shape[] = {4};

static caterva_create_options good_options(void)
{
    caterva_create_options o = CATERVA_CREATE_INIT;
    o.ndim = 1;
    o.shape = shape;
    o.chunk_shape = chunk_shape;
    o.dtype = "<i4";
    return o;
}

/* A copy of exactly `size` bytes, so that a sanitizer sees any read behind it. */
static void *exact_copy(const void *options, size_t size)
{
    void *copy = malloc(size);
    assert_non_null(copy);
    memcpy(copy, options, size);
    memcpy(copy, &size, sizeof size);
    return copy;
}

static void copies_are_padded_with_zeros(void **state)
{
    (void)state;
    caterva_open_options given = CATERVA_OPEN_INIT, out;
    given.mode = CATERVA_WRITE;
    given.offset = 77;
    given.threads = 5;
    size_t size = offsetof(caterva_open_options, threads);
    void *old = exact_copy(&given, size);
    memset(&out, 0xff, sizeof out);
    assert_int_equal(cv_options_copy(&out, sizeof out, old, "open options", NULL), CV_OK);
    assert_int_equal(out.mode, CATERVA_WRITE);
    assert_int_equal(out.offset, 77);
    assert_int_equal(out.threads, 0);
    assert_int_equal(out.durability, CATERVA_DURABLE_FULL);
    free(old);
}

static void longer_structs_are_cut(void **state)
{
    (void)state;
    struct {
        caterva_open_options known;
        uint64_t from_the_future[4];
    } given = {.known = CATERVA_OPEN_INIT}, *newer;
    caterva_open_options out[2];
    given.known.threads = 5;
    memset(given.from_the_future, 0xee, sizeof given.from_the_future);
    newer = exact_copy(&given, sizeof given);
    memset(out, 0x55, sizeof out);
    assert_int_equal(cv_options_copy(&out[0], sizeof out[0], newer, "x", NULL), CV_OK);
    assert_int_equal(out[0].threads, 5);
    for (size_t i = 0; i < sizeof out[1]; i++)
        assert_int_equal(((const uint8_t *)&out[1])[i], 0x55);
    free(newer);
}

static void garbage_sizes_are_refused(void **state)
{
    (void)state;
    static const size_t bad[] = {0, 1, 7, 64 * 1024 + 1, 1u << 31, SIZE_MAX, SIZE_MAX / 2};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        cv_error err = {.code = CV_OK};
        caterva_array *array = (caterva_array *)&err;
        caterva_create_options create = good_options();
        caterva_open_options open = {.struct_size = bad[i]};
        create.struct_size = bad[i];
        assert_int_equal(caterva_create("mem:", &create, &array, &err), CATERVA_EINVAL);
        assert_non_null(strstr(err.message, "struct_size"));
        assert_null(array);
        assert_int_equal(caterva_open_frame("x", 1, 0, &open, &array, &err), CATERVA_EINVAL);
        assert_non_null(strstr(err.message, "struct_size"));
        assert_null(array);
    }
}

/* Every length an older header may have had. */
static void older_create_options_create(void **state)
{
    (void)state;
    caterva_create_options now = good_options();
    size_t first = offsetof(caterva_create_options, item_size);
    for (size_t size = first; size <= sizeof now; size += sizeof(int)) {
        void *old = exact_copy(&now, size);
        caterva_array *array = NULL;
        cv_error err = {.code = CV_OK};
        assert_int_equal(caterva_create("mem:", old, &array, &err), CV_OK);
        assert_int_equal(caterva_describe(array)->chunk_shape[0], 4);
        assert_int_equal(caterva_describe(array)->codec, CATERVA_CODEC_ZSTD);
        caterva_discard(array);
        free(old);
    }
}

/* Cut before the dtype's end there is none, and nothing else says how long an
 * item is. */
static void options_cut_too_short_are_incomplete(void **state)
{
    (void)state;
    caterva_create_options now = good_options();
    for (size_t size = sizeof(size_t); size <= offsetof(caterva_create_options, dtype);
         size += sizeof(int)) {
        void *old = exact_copy(&now, size);
        caterva_array *array = NULL;
        assert_int_equal(caterva_create("mem:", old, &array, NULL), CATERVA_EINVAL);
        assert_null(array);
        free(old);
    }
}

static int stop_at_once(void *context, int64_t done, int64_t total)
{
    (void)done, (void)total;
    ++*(int *)context;
    return 1;
}

static void older_verify_options_have_no_context(void **state)
{
    (void)state;
    caterva_create_options o = good_options();
    caterva_array *array = NULL;
    caterva_verify_result result;
    int calls = 0;
    assert_int_equal(caterva_create("mem:", &o, &array, NULL), CV_OK);
    caterva_verify_options v = CATERVA_VERIFY_INIT;
    v.on_progress = stop_at_once;
    v.context = &calls;
    assert_int_equal(caterva_verify(array, &v, &result, NULL), CATERVA_EINVAL);
    assert_int_equal(calls, 1);

    void *old = exact_copy(&v, offsetof(caterva_verify_options, on_progress));
    assert_int_equal(caterva_verify(array, old, &result, NULL), CV_OK);
    assert_int_equal(calls, 1);
    assert_int_equal(result.damages, 0);
    free(old);
    v.struct_size = 3;
    assert_int_equal(caterva_verify(array, &v, &result, NULL), CATERVA_EINVAL);
    caterva_discard(array);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(copies_are_padded_with_zeros),
        cmocka_unit_test(longer_structs_are_cut),
        cmocka_unit_test(garbage_sizes_are_refused),
        cmocka_unit_test(older_create_options_create),
        cmocka_unit_test(options_cut_too_short_are_incomplete),
        cmocka_unit_test(older_verify_options_have_no_context),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Option structs of any version: a shorter one from an older program counts as if the rest
 * were zero; a longer one from a newer program is accepted if the unknown members are zero;
 * garbage is refused. */
#include "array/array.h"
#include "support/buffer.h"
#include "support/every_step.h"
#include "support/info.h"

#include <caterva_store.h>
#include <caterva_upkeep.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
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

/* A copy of exactly `size` bytes, so that a sanitizer detects any read after it. */
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
    given.mode = CATERVA_MODE_WRITE;
    given.offset = 77;
    given.threads = 5;
    size_t size = offsetof(caterva_open_options, threads);
    void *old = exact_copy(&given, size);
    memset(&out, 0xff, sizeof out);
    assert_int_equal(cv_options_copy(&out, sizeof out, old, "open options", NULL), CV_OK);
    assert_int_equal(out.mode, CATERVA_MODE_WRITE);
    assert_int_equal(out.offset, 77);
    assert_int_equal(out.threads, 0);
    assert_int_equal(out.durability, CATERVA_DURABILITY_FULL);
    free(old);
}

/* Zero members of a newer program request nothing new. */
static void longer_structs_are_cut(void **state)
{
    (void)state;
    struct {
        caterva_open_options known;
        uint64_t from_the_future[4];
    } given = {.known = CATERVA_OPEN_INIT}, *newer;
    caterva_open_options out[2];
    given.known.threads = 5;
    newer = exact_copy(&given, sizeof given);
    memset(out, 0x55, sizeof out);
    assert_int_equal(cv_options_copy(&out[0], sizeof out[0], newer, "x", NULL), CV_OK);
    assert_int_equal(out[0].threads, 5);
    for (size_t i = 0; i < sizeof out[1]; i++)
        assert_int_equal(((const uint8_t *)&out[1])[i], 0x55);
    free(newer);
}

/* ---- Wishes that this library does not know ----------------------------- */

static caterva_array *small_array(void)
{
    caterva_create_options o = good_options();
    caterva_array *array = NULL;
    assert_int_equal(caterva_create("mem:", &o, &array, NULL), CV_OK);
    return array;
}

static caterva_status pass_create(caterva_array *array, const void *o, cv_error *err)
{
    caterva_array *made = NULL;
    (void)array;
    caterva_status status = caterva_create("mem:", o, &made, err);
    caterva_discard(made);
    return status;
}

static caterva_status pass_open(caterva_array *array, const void *o, cv_error *err)
{
    void *frame;
    size_t size;
    caterva_array *opened = NULL;
    assert_int_equal(caterva_frame_copy(array, &frame, &size, NULL), CV_OK);
    caterva_status status = caterva_frame_open(frame, size, 1, o, &opened, err);
    caterva_discard(opened);
    caterva_free(frame);
    return status;
}

static caterva_status pass_copy(caterva_array *array, const void *o, cv_error *err)
{
    return caterva_copy(array, "mem:", o, NULL, err);
}

static caterva_status pass_copy_create(caterva_array *array, const void *o, cv_error *err)
{
    caterva_copy_options copy = CATERVA_COPY_INIT;
    copy.create = o;
    return caterva_copy(array, "mem:", &copy, NULL, err);
}

static caterva_status pass_copy_view(caterva_array *array, const void *o, cv_error *err)
{
    caterva_view *view;
    assert_int_equal(caterva_view_of(array, &view, NULL), CV_OK);
    caterva_status status = caterva_view_copy(view, "mem:", o, NULL, err);
    caterva_view_free(view);
    return status;
}

static caterva_status pass_verify(caterva_array *array, const void *o, cv_error *err)
{
    caterva_verify_result result = CATERVA_VERIFY_RESULT_INIT;
    return caterva_verify(array, o, &result, err);
}

static caterva_status pass_statistics(caterva_array *array, const void *o, cv_error *err)
{
    caterva_stats stats = CATERVA_STATS_INIT;
    return caterva_statistics(array, o, &stats, err);
}

static caterva_status pass_histogram(caterva_array *array, const void *o, cv_error *err)
{
    int64_t counts[2];
    const double range[2] = {0, 1};
    return caterva_histogram(array, range, 2, o, counts, err);
}

static caterva_status pass_reduce(caterva_array *array, const void *o, cv_error *err)
{
    int64_t sum;
    return caterva_reduce(array, CATERVA_REDUCTION_SUM, o, &sum, sizeof sum, err);
}

static void ignore_damage(void *context, const caterva_damage *damage)
{
    (void)context, (void)damage;
}

static caterva_status pass_skip(caterva_array *array, const void *o, cv_error *err)
{
    int32_t items[10];
    const int64_t origin[1] = {0};
    return caterva_read_skipping(array, BOX(origin, shape), PLAIN(items, sizeof items), o,
                                 err);
}

static caterva_status pass_repair(caterva_array *array, const void *o, cv_error *err)
{
    caterva_repair_result result = CATERVA_REPAIR_RESULT_INIT;
    (void)array;
    caterva_status status = caterva_repair("there is no such file", o, &result, err);
    return status == CATERVA_ENOTFOUND ? CATERVA_OK : status;
}

static caterva_status pass_async(caterva_array *array, const void *o, cv_error *err)
{
    int32_t items[10];
    caterva_request *request;
    caterva_status status =
        caterva_read_async(array, NULL, PLAIN(items, sizeof items), o, &request, err);
    if (status == CATERVA_OK) status = caterva_request_wait(request, err);
    caterva_request_release(request);
    return status;
}

static caterva_status pass_selection(caterva_array *array, const void *o, cv_error *err)
{
    int64_t lengths[CATERVA_MAX_DIMS];
    int ndim;
    return caterva_selection_shape(array, o, &ndim, lengths, err);
}

static caterva_status pass_buffer(caterva_array *array, const void *o, cv_error *err)
{
    return caterva_read_selection(array, NULL, o, err);
}

static caterva_status pass_view_buffer(caterva_array *array, const void *o, cv_error *err)
{
    caterva_view *view;
    assert_int_equal(caterva_view_of(array, &view, NULL), CV_OK);
    caterva_status status = caterva_view_write(view, NULL, o, err);
    caterva_view_free(view);
    return status;
}

static caterva_status pass_compact(caterva_array *array, const void *o, cv_error *err)
{
    (void)array;
    caterva_status status = caterva_compact("there is no such file", o, err);
    return status == CATERVA_ENOTFOUND ? CATERVA_OK : status;
}

static caterva_status pass_seal(caterva_array *array, const void *o, cv_error *err)
{
    (void)array;
    caterva_status status = caterva_seal("there is no such file", o, err);
    return status == CATERVA_ENOTFOUND ? CATERVA_OK : status;
}

static void unknown_wishes_are_refused(void **state)
{
    (void)state;
    static int32_t items[10];
    caterva_create_options create = good_options(), like = CATERVA_CREATE_INIT;
    caterva_open_options open = CATERVA_OPEN_INIT;
    caterva_copy_options copy = CATERVA_COPY_INIT;
    caterva_verify_options verify = CATERVA_VERIFY_INIT;
    caterva_reduce_options reduce = CATERVA_REDUCE_INIT;
    caterva_skip_options skip = CATERVA_SKIP_INIT;
    caterva_repair_options repair = CATERVA_REPAIR_INIT;
    caterva_upkeep_options upkeep = CATERVA_UPKEEP_INIT;
    caterva_async_options async = CATERVA_ASYNC_INIT;
    caterva_selection selection = CATERVA_SELECTION_INIT;
    caterva_buffer buffer = CATERVA_BUFFER_INIT;
    skip.on_damage = ignore_damage;
    buffer.data = items;
    buffer.size = sizeof items;
    const struct {
        const void *options;
        size_t size;
        caterva_status (*pass)(caterva_array *array, const void *options, cv_error *err);
    } cases[] = {
        {&create, sizeof create, pass_create},
        {&like, sizeof like, pass_copy_create},
        {&open, sizeof open, pass_open},
        {&copy, sizeof copy, pass_copy},
        {&copy, sizeof copy, pass_copy_view},
        {&verify, sizeof verify, pass_verify},
        {&reduce, sizeof reduce, pass_statistics},
        {&reduce, sizeof reduce, pass_histogram},
        {&reduce, sizeof reduce, pass_reduce},
        {&skip, sizeof skip, pass_skip},
        {&repair, sizeof repair, pass_repair},
        {&upkeep, sizeof upkeep, pass_compact},
        {&upkeep, sizeof upkeep, pass_seal},
        {&async, sizeof async, pass_async},
        {&selection, sizeof selection, pass_selection},
        {&buffer, sizeof buffer, pass_buffer},
        {&buffer, sizeof buffer, pass_view_buffer},
    };
    enum { TAIL = 40 };
    caterva_array *array = small_array();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        size_t size = cases[i].size + TAIL;
        uint8_t *newer = calloc(1, size);
        assert_non_null(newer);
        memcpy(newer, cases[i].options, cases[i].size);
        memcpy(newer, &size, sizeof size);
        assert_int_equal(cases[i].pass(array, newer, NULL), CV_OK);
        for (size_t byte = cases[i].size; byte < size; byte++) {
            cv_error err = {.code = CV_OK};
            char name[48];
            newer[byte] = 1;
            assert_int_equal(cases[i].pass(array, newer, &err), CATERVA_EINVAL);
            snprintf(name, sizeof name, "byte %zu of the", byte);
            assert_non_null(strstr(err.message, name));
            newer[byte] = 0;
        }
        free(newer);
    }
    caterva_discard(array);
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
        assert_int_equal(caterva_frame_open("x", 1, 0, &open, &array, &err), CATERVA_EINVAL);
        assert_non_null(strstr(err.message, "struct_size"));
        assert_null(array);
    }
}

/* Every length that an older header may have had. */
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
        assert_int_equal(info_of(array)->chunk_shape[0], 4);
        assert_int_equal(info_of(array)->codec, CATERVA_CODEC_ZSTD);
        caterva_discard(array);
        free(old);
    }
}

/* If the struct ends before the dtype, there is none, and the item size is unknown. */
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
    caterva_verify_result result = CATERVA_VERIFY_RESULT_INIT;
    int calls = 0;
    assert_int_equal(caterva_create("mem:", &o, &array, NULL), CV_OK);
    caterva_verify_options v = CATERVA_VERIFY_INIT;
    v.progress = every_step(stop_at_once, &calls);
    assert_int_equal(caterva_verify(array, &v, &result, NULL), CATERVA_ESTOPPED);
    assert_int_equal(calls, 1);

    void *old = exact_copy(&v, offsetof(caterva_verify_options, progress));
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
        cmocka_unit_test(unknown_wishes_are_refused),
        cmocka_unit_test(garbage_sizes_are_refused),
        cmocka_unit_test(older_create_options_create),
        cmocka_unit_test(options_cut_too_short_are_incomplete),
        cmocka_unit_test(older_verify_options_have_no_context),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

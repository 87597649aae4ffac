/* How often requests check whether their bytes are in memory. */
#include "array/array.h"
#include "engine/run/thresholds.h"
#include "frame/frame.h"
#include "store/store.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

enum { N = 2 * CV_LEAST_WAVE };

static cv_store_ops ops;
static int n_asked;
static cv_at_once answer;

static cv_at_once count_asked(cv_store *store, const cv_store_range *range)
{
    (void)store, (void)range;
    n_asked++;
    return answer;
}

static int asked_by(caterva_array *array, int n_requests)
{
    static uint8_t items[N];
    const int64_t start[] = {0}, stop[] = {N};
    n_asked = 0;
    for (int i = 0; i < n_requests; i++)
        assert_int_equal(caterva_read(array, start, stop, items, N, NULL), CV_OK);
    return n_asked;
}

static void one_request_of_four_asks(void **state)
{
    (void)state;
    static uint8_t items[N];
    const int64_t start[] = {0}, shape[] = {N};
    const int32_t chunk[] = {N}, block[] = {4096};
    caterva_create_options o = CATERVA_CREATE_INIT;
    caterva_array *array;
    o.ndim = 1;
    o.shape = shape;
    o.chunk_shape = chunk;
    o.block_shape = block;
    o.dtype = "|u1";
    o.cache_bytes = -1;
    o.threads = 1;
    for (int i = 0; i < N; i++) items[i] = (uint8_t)(i % 251);
    cv_error err = {0};
    if (caterva_create("mem:", &o, &array, &err) != CV_OK ||
        caterva_write(array, start, shape, items, N, &err) != CV_OK)
        fail_msg("%s", err.message);
    assert_int_equal(caterva_commit(array, NULL), CV_OK);
    cv_store *store = array->frame->store;
    ops = *store->ops;
    ops.read_at_once = count_asked;
    store->ops = &ops;

    answer = CV_AT_ONCE_READ;
    assert_int_equal(asked_by(array, CV_NEAR_IN_A_ROW), CV_NEAR_IN_A_ROW);
    assert_int_equal(asked_by(array, 4 * CV_NEAR_IN_A_ROW), 4);
    answer = CV_AT_ONCE_NO; /* after a negative answer, requests check until it is positive */
    assert_true(asked_by(array, CV_NEAR_IN_A_ROW) >= 1);
    assert_true(asked_by(array, CV_NEAR_IN_A_ROW) >= CV_NEAR_IN_A_ROW);
    answer = CV_AT_ONCE_READ;
    asked_by(array, CV_NEAR_IN_A_ROW);
    assert_int_equal(asked_by(array, 4 * CV_NEAR_IN_A_ROW), 4);
    caterva_discard(array);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(one_request_of_four_asks)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

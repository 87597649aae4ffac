/* Several ranges in one request: how many share one, how they are named, and that each byte
 * goes to the range that requested it, once, in any order of body parts. */
#include "remote/http.h"
#include "support/random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static rng dice;

static uint64_t below(int64_t n) { return (uint64_t)rng_between(&dice, 0, n - 1); }

enum { MOST = 2000 };

/* In order; sometimes two ranges touch or are nested. */
static size_t some_spans(cv_byte_range *spans, size_t n, int64_t size, bool overlap)
{
    uint64_t at = 0;
    for (size_t i = 0; i < n; i++) {
        at += rng_one_in(&dice, 10) ? 0 : 1 + below(500);
        at -= overlap && at > 0 && rng_one_in(&dice, 10);
        spans[i].received = at;
        at = spans[i].end = at + 1 + below(size);
    }
    return n;
}

static void shares_are_for_all_connections(void **state)
{
    static cv_byte_range spans[MOST];
    (void)state;
    for (int run = 0; run < 300; run++) {
        size_t n = some_spans(spans, 1 + below(MOST - 1), 1 << rng_int(&dice, 1, 21), true);
        size_t connections = 1 + below(40), n_requests = 0, n_bounded = 0, share;
        uint64_t each = cv_ranges_cost(spans, n) / connections + 1;
        for (size_t at = 0; at < n; at += share, n_requests++) {
            size_t n_left;
            share = cv_ranges_share(spans + at, n - at, each);
            assert_in_range(share, 1, n - at < CV_RANGES_MOST ? n - at : CV_RANGES_MOST);
            if (share > 1)
                assert_true(cv_ranges_incomplete(spans + at, share, &n_left) <= CV_JOIN_MOST);
            for (size_t i = at + 1; i < at + share; i++)
                assert_true(spans[i - 1].end <= spans[i].received);
            uint64_t with = cv_ranges_cost(spans + at, share + (at + share < n));
            bool is_before =
                at + share < n && spans[at + share].received < spans[at + share - 1].end;
            n_bounded += is_before || share == CV_RANGES_MOST || with > CV_JOIN_MOST;
        }
        assert_true(n_requests <= connections + n_bounded);
    }
}

static void fields(void **state)
{
    const cv_byte_range spans[] = {
        {0, 10, 0}, {12, 12, 12}, {20, 21, 20}, {1ull << 40, (1ull << 40) + 5, 1ull << 40}};
    cv_buffer field = {0};
    cv_error err;
    size_t n_left;
    (void)state;
    assert_int_equal(cv_ranges_add_field(spans, 4, &field, &err), CATERVA_OK);
    assert_string_equal((const char *)field.data,
                        "Range: bytes=0-9,20-20,1099511627776-1099511627780");
    assert_int_equal(field.size, strlen((char *)field.data) + 1);
    assert_int_equal(cv_ranges_incomplete(spans, 4, &n_left), 16);
    assert_int_equal(n_left, 3);
    cv_buffer_free(&field);
}

/* Body parts that contain some of them, or none, in any order, twice, or from the middle
 * on. */
static void each_byte_once(void **state)
{
    enum { N = 20, SIZE = 20000 };
    static uint8_t taken[SIZE];
    (void)state;
    for (int run = 0; run < 500; run++) {
        cv_byte_range spans[N], was[N];
        size_t n = some_spans(spans, 1 + below(N - 1), 300, false), n_left;
        memcpy(was, spans, sizeof was);
        memset(taken, 0, sizeof taken);
        while (cv_ranges_incomplete(spans, n, &n_left) > 0) {
            size_t which = below((int64_t)n);
            uint64_t pos = spans[which].received, first, last;
            pos -= pos < 30 ? 0 : below(30) * below(2);
            pos += below(5) * below(2);
            uint64_t end = pos + 1 + below(600);
            for (size_t i = 0; i < n; i++) {
                i = cv_ranges_take(spans, n, i, pos, end, &first, &last);
                if (i == n) break;
                assert_true(first >= pos && last <= end && first < last);
                assert_true(first >= was[i].received && last <= was[i].end);
                for (uint64_t byte = first; byte < last; byte++) {
                    assert_int_equal(taken[byte], 0);
                    assert_true(byte == was[i].received || taken[byte - 1] == 1);
                    taken[byte] = 1;
                }
            }
        }
        uint64_t wanted = cv_ranges_incomplete(was, n, &n_left);
        for (size_t i = 0; i < SIZE; i++) wanted -= taken[i];
        assert_int_equal(wanted, 0);
    }
}

int main(int argc, char **argv)
{
    dice = rng_from_seed(seed_argument(argc, argv, 1));
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shares_are_for_all_connections),
        cmocka_unit_test(fields),
        cmocka_unit_test(each_byte_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Which ranges share a request: laws that hold for random ones, and some examples. */
#include "remote/http.h"
#include "support/random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void near_ones_are_joined(void **state)
{
    cv_segment s[] = {
        {.pos = 1000, .end = 1100}, {.pos = 0, .end = 100}, {.pos = 150, .end = 250}};
    cv_join_rule rule = {.gap = 60, .over_percent = 100, .most = 1 << 20};
    (void)state;
    assert_int_equal(cv_join(s, 3, &rule), 2);
    assert_int_equal(s[1].pos, 150);
    assert_true(s[0].begins && !s[1].begins && s[2].begins);
    rule.over_percent = 10; /* of 300: 30 bytes, and the gap has 50 */
    assert_int_equal(cv_join(s, 3, &rule), 3);
    cv_segment even[4];
    for (int i = 0; i < 4; i++)
        even[i] = (cv_segment){.pos = 200 * (uint64_t)i, .end = 200 * (uint64_t)i + 100};
    rule.gap = 1000;
    rule.over_percent = 50; /* two of three equally wide gaps */
    assert_int_equal(cv_join(even, 4, &rule), 2);
    rule.over_percent = 1000;
    rule.gap = 10000;
    assert_int_equal(cv_join(s, 3, &rule), 1);
    rule.most = 400;
    assert_int_equal(cv_join(s, 3, &rule), 2);
    assert_int_equal(cv_join(s, 0, &rule), 0);
}

/* At most as many requests are extended over gaps as there are connections. */
static void joined_ones_are_one_for_each_connection(void **state)
{
    enum { N = 64 };
    cv_segment s[N];
    cv_join_rule rule = {
        .gap = 1 << 20, .over_percent = 300, .most = 1 << 20, .connections = 16};
    (void)state;
    for (uint64_t i = 0; i < N; i++)
        s[i] = (cv_segment){.pos = i << 20, .end = (i << 20) + (1 << 18)};
    assert_in_range(cv_join(s, N, &rule), 16, 17);
    for (uint64_t i = 0; i < N; i++)
        s[i] = (cv_segment){.pos = i * 300000, .end = i * 300000 + 299999};
    assert_in_range(cv_join(s, N, &rule), 13, 16); /* the last one is not alone */
    for (uint64_t i = 0; i < N; i++)
        s[i] = (cv_segment){.pos = i << 20, .end = (i << 20) + (1 << 18)};
    rule.connections = 0; /* a second one does not fit into 1 MiB */
    assert_int_equal(cv_join(s, N, &rule), N);
    rule.connections = 4; /* of 16 MiB each: over-reading must not cost much */
    assert_in_range(cv_join(s, N, &rule), 8, 9);
}

static rng dice;

static uint64_t below(int64_t n) { return (uint64_t)rng_between(&dice, 0, n - 1); }

/* Random ranges: all are covered, no request is too large, and not too much is read. */
static void the_laws_hold(void **state)
{
    enum { N = 200 };
    (void)state;
    for (int run = 0; run < 500; run++) {
        cv_segment s[N];
        cv_join_rule rule = {.gap = below(5000),
                             .over_percent = (int)below(300),
                             .most = 1000 + below(100000),
                             .connections = (int)below(20)};
        size_t n = 1 + below(N - 1);
        for (size_t i = 0; i < n; i++) {
            uint64_t pos = below(200000);
            s[i] = (cv_segment){.pos = pos, .end = pos + 1 + below(999), .range = i};
        }
        size_t n_requests = cv_join(s, n, &rule), begun = 0;
        uint64_t needed = 0, fetched = 0, covered = 0, first = 0, end = 0, longest = 0;
        for (size_t i = 0; i < n; i++) {
            if (i > 0) assert_true(s[i - 1].pos <= s[i].pos);
            uint64_t from = s[i].pos > covered ? s[i].pos : covered;
            if (s[i].end > from) needed += s[i].end - from;
            if (s[i].end > covered) covered = s[i].end;
            if (s[i].begins) {
                begun++;
                fetched += end - first;
                first = s[i].pos;
                end = s[i].end;
            }
            if (s[i].end > end) end = s[i].end;
            if (end - first > longest) longest = end - first;
        }
        uint64_t each =
            rule.connections ? (covered - s[0].pos) / (uint64_t)rule.connections : 0;
        each += each / 4;
        assert_true(longest <= (each > rule.most ? each : rule.most));
        fetched += end - first;
        assert_true(s[0].begins);
        assert_int_equal(begun, n_requests);
        /* Nested ranges may be read twice at the end of a request. */
        assert_true(fetched <= needed + needed * (uint64_t)rule.over_percent / 100 +
                                   1000 * (uint64_t)n_requests);
    }
}

int main(int argc, char **argv)
{
    dice = rng_from_seed(seed_argument(argc, argv, 1));
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(near_ones_are_joined),
        cmocka_unit_test(joined_ones_are_one_for_each_connection),
        cmocka_unit_test(the_laws_hold),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

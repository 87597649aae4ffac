/* What follows from what was measured of the way to a server. */
#include "store/http_session.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define MIB ((size_t)1 << 20)

static cv_session *open_session(int connections)
{
    caterva_remote_options options = CATERVA_REMOTE_INIT;
    cv_session *s;
    cv_error err;
    options.connections = connections;
    assert_int_equal(cv_session_new(&options, false, &s, &err), CV_OK);
    return s;
}

/* Waves are as large as keeps the way full for four fifths of their time, and memory bounds
 * them. */
static void waves_grow_with_the_way(void **state)
{
    cv_session *s = open_session(16);
    (void)state;
    assert_int_equal(cv_session_wave(s), 0);
    cv_session_note_trip(s, 50000000);
    assert_int_equal(cv_session_wave(s), 0);
    cv_session_note_speed(s, 100, 1); /* of few bytes nothing is learned */
    assert_int_equal(cv_session_wave(s), 0);
    cv_session_note_speed(s, 10000000, 150000000); /* 100 MB/s */
    assert_in_range(cv_session_wave(s), 19999000, 20001000);
    for (int i = 0; i < 50; i++) cv_session_note_speed(s, 100000000, 100000000); /* 2 GB/s */
    assert_int_equal(cv_session_wave(s), 64 * MIB);
    for (int i = 0; i < 50; i++) cv_session_note_trip(s, 100000);
    assert_in_range(cv_session_wave(s), 700 * 1000, 900 * 1000);
    cv_session_release(s);
}

static void gaps_are_what_a_connection_waits_for(void **state)
{
    cv_session *s = open_session(4);
    (void)state;
    assert_int_equal(cv_session_gap(s), 4096);
    cv_session_note_trip(s, 40000000);
    assert_in_range(cv_session_gap(s), 999000, 1001000); /* at 100 MB/s, nothing else known */
    cv_session_note_speed(s, 2000000, 80000000);         /* 50 MB/s */
    assert_in_range(cv_session_gap(s), 499000, 501000);
    cv_session_release(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(waves_grow_with_the_way),
        cmocka_unit_test(gaps_are_what_a_connection_waits_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The decisions that follow from measurements of a connection to a server. */
#include "remote/server.h"

#include <caterva_remote.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define MIB ((size_t)1 << 20)

static cv_session *open_session(int connections)
{
    caterva_remote_options options = CATERVA_REMOTE_INIT;
    cv_session *s;
    cv_error err;
    options.connections = connections;
    assert_int_equal(cv_session_begin("http://host/x", &options, &s, &err), CV_OK);
    return s;
}

/* A wave that begins where the last one ended, and another during it. */
static void note(cv_session *s, int64_t bytes, uint64_t ns)
{
    cv_session_mark began = {s->measured.ns + 1, s->measured.bytes};
    cv_session_mark ended = {began.ns + ns, began.bytes + bytes};
    cv_session_note_speed(s, &began, &ended);
}

static void note_along(cv_session *s, int64_t bytes, uint64_t ns)
{
    cv_session_mark began = {s->measured.ns - 1, s->measured.bytes - bytes};
    cv_session_mark ended = {s->measured.ns + ns, s->measured.bytes + bytes};
    cv_session_note_speed(s, &began, &ended);
}

/* Waves grow until the connection is full, bounded by memory. */
static void waves_grow_with_the_way(void **state)
{
    cv_session *s = open_session(16);
    (void)state;
    assert_int_equal(cv_session_wave(s), 0);
    cv_session_note_trip(s, 20000000);
    assert_in_range(cv_session_wave(s), 31999000, 32001000); /* fast, as far as is known */
    note(s, 100, 1);                                         /* a few bytes say nothing */
    assert_in_range(cv_session_wave(s), 31999000, 32001000);
    note(s, 10000000, 120000000); /* 100 MB/s */
    assert_in_range(cv_session_wave(s), 7999000, 8001000);
    note_along(s, 10000000, 100000000); /* the same: no wait for the first byte */
    assert_in_range(cv_session_wave(s), 7999000, 8001000);
    for (int i = 0; i < 50; i++) note(s, 100000000, 70000000); /* 2 GB/s */
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
    assert_in_range(cv_session_gap(s), 999000, 1001000); /* at 100 MB/s by default */
    note(s, 2000000, 80000000);                          /* 50 MB/s */
    assert_in_range(cv_session_gap(s), 499000, 501000);
    cv_session_release(s);
}

static void is_refused(const caterva_remote_options *options, const char *url,
                       const char *words)
{
    cv_session *s;
    cv_error err = {0};
    assert_int_equal(cv_session_begin(url, options, &s, &err), CATERVA_EINVAL);
    if (!strstr(err.message, words)) fail_msg("%s: no %s", err.message, words);
    assert_null(strstr(err.message, "hush"));
}

static void headers_that_the_library_sets_are_refused_by_name(void **state)
{
    static const char *const headers[][2] = {
        {"Range: bytes=0-hush", "Range"},        {"range:hush", "Range"},
        {"If-Match: \"hush\"", "If-Match"},      {"HOST: hush", "Host"},
        {"Content-Length: 1", "Content-Length"}, {"Na me: hush", "has blanks"},
        {"User-Agent: hush", "User-Agent"},      {" Name: hush", "has blanks"},
        {"Name : hush", "has blanks"},           {": hush", "\"Name: value\""},
        {"Name: hush\r\nX: y", "in one line"}};
    (void)state;
    for (size_t i = 0; i < sizeof headers / sizeof headers[0]; i++) {
        caterva_remote_options options = CATERVA_REMOTE_INIT;
        options.headers = headers[i];
        options.n_headers = 1;
        is_refused(&options, "http://host/x", headers[i][1]);
    }
    static const char *const good[] = {"Authorization: Bearer x", "X-Rangefinder: 1\t2"};
    caterva_remote_options options = CATERVA_REMOTE_INIT;
    cv_session *s;
    options.headers = good;
    options.n_headers = 2;
    assert_int_equal(cv_session_begin("http://host/x", &options, &s, NULL), CV_OK);
    cv_session_release(s);
}

static void control_characters_are_refused_by_name(void **state)
{
    (void)state;
    for (int i = 0; i < 6; i++) {
        static const char *const names[] = {"access key", "secret key", "session token",
                                            "region",     "endpoint",   "profile"};
        caterva_remote_options o = CATERVA_REMOTE_INIT;
        const char **texts[] = {&o.access_key, &o.secret_key, &o.session_token,
                                &o.region,     &o.endpoint,   &o.profile};
        for (int k = 0; k < 4; k++) *texts[k] = "x";
        *texts[i] = i == 4 ? "https://hush\n" : "hush\r";
        is_refused(&o, "s3://bucket/key", names[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(headers_that_the_library_sets_are_refused_by_name),
        cmocka_unit_test(control_characters_are_refused_by_name),
        cmocka_unit_test(waves_grow_with_the_way),
        cmocka_unit_test(gaps_are_what_a_connection_waits_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Replies of servers, valid and invalid. */
#include "remote/http.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>

static const cv_version unknown = {.size = UINT64_MAX};

/* Judges a reply to "bytes first to end - 1" of the object. */
static cv_verdict judge(const char *text, const cv_range_request *ask, cv_content_range *grant, cv_error *err)
{
    cv_reply reply;
    *err = (cv_error){0};
    if (cv_reply_parse(text, strlen(text), &reply, err) != CATERVA_OK) return CV_REPLY_FAILED;
    return cv_reply_judge(&reply, ask, "URL", grant, err);
}

#define PART "HTTP/1.1 206 Partial Content\r\n"
#define WHOLE "HTTP/2 200\r\n"

static void what_was_asked_for_is_taken(void **state)
{
    static const struct {
        const char *text;
        bool is_suffix;
        uint64_t first, end;
        cv_content_range grant;
    } good[] = {
        {PART "Content-Range: bytes 0-9/100\r\nContent-Length: 10\r\n\r\n",
         false,
         0,
         10,
         {0, 10, 100}},
        {PART "content-range:bytes 90-99/100\r\n", true, 0, 10, {90, 10, 100}},
        {PART "Content-Range: bytes 90-99/100\r\n", false, 90, 500, {90, 10, 100}},
        {PART "Content-Range: bytes 0-99/100\r\n", true, 0, 500, {0, 100, 100}},
        {WHOLE "content-length: 100\r\n", true, 0, 10, {0, 100, 100}},
        {WHOLE "content-length: 100\r\ncontent-encoding: identity\r\n",
         false,
         5,
         10,
         {0, 100, 100}},
        {WHOLE "content-range: bytes 5-9/3000000\r\n", false, 5, 10, {5, 5, 3000000}},
        {WHOLE "content-length: 3000000\r\n", false, 5, 3000000, {0, 3000000, 3000000}},
    };
    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        const cv_range_request ask = {good[i].is_suffix, good[i].first, good[i].end, &unknown};
        cv_content_range grant;
        cv_error err;
        if (judge(good[i].text, &ask, &grant, &err) != CV_REPLY_ACCEPT)
            fail_msg("%s: %s", good[i].text, err.message);
        assert_memory_equal(&grant, &good[i].grant, sizeof grant);
    }
}

static void what_was_not_is_not(void **state)
{
    static const char *const bad[] = {
        PART "\r\n",
        PART "Content-Range: bytes 0-8/100\r\n",
        PART "Content-Range: bytes 1-10/100\r\n",
        PART "Content-Range: bytes 0-9/*\r\n",
        PART "Content-Range: bytes 0-9/9\r\n",
        PART "Content-Range: bytes 9-0/100\r\n",
        PART "Content-Range: bytes */100\r\n",
        PART "Content-Range: items 0-9/100\r\n",
        PART "Content-Range: bytes 0-9/100\r\nContent-Range: bytes 5-9/100\r\n",
        PART "Content-Range: bytes 0-9/99999999999999999999\r\n",
        PART "Content-Range: bytes 0-9/100\r\nContent-Length: 11\r\n",
        PART "Content-Range: bytes 0-9/100\r\nContent-Length: 10, 10\r\n",
        PART "Content-Range: bytes 0-9/100\r\nContent-Length: 10\r\nContent-Length: 9\r\n",
        PART "Content-Range: bytes 0-9/100\r\nContent-Encoding: gzip\r\n",
        PART "Content-Range: bytes 0-9/100\r\nContent-Type: multipart/byteranges; x\r\n",
        WHOLE "content-length: 0\r\n",
        WHOLE "\r\n",
        WHOLE "content-length: 5\r\n", /* of bytes 0 to 9: it may be; see below */
        "HTTP/1.1 2x6 Partial\r\n",
        "HTTP/1.1 20 Partial\r\n",
        "ICY 200 OK\r\n",
        "",
    };
    const cv_range_request ask = {false, 0, 10, &unknown};
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        cv_content_range grant;
        cv_error err;
        if (strstr(bad[i], "content-length: 5")) continue; /* a small object, whole */
        cv_verdict verdict = judge(bad[i], &ask, &grant, &err);
        if (verdict == CV_REPLY_ACCEPT || verdict == CV_REPLY_RETRY)
            fail_msg("taken: %s", bad[i]);
        assert_true(err.code != CATERVA_OK && err.message[0]);
    }
}

static void another_version_is_noticed(void **state)
{
    const cv_version known = {.size = 100, .etag = "\"a\""},
                      dated = {.size = 100, .modified = "Mon"};
    static const char *const others[] = {
        PART "Content-Range: bytes 0-9/101\r\nETag: \"a\"\r\n",
        PART "Content-Range: bytes 0-9/100\r\nETag: \"b\"\r\n",
        PART "Content-Range: bytes 0-9/100\r\nETag: W/\"a\"\r\n",
        PART "Content-Range: bytes 0-9/100\r\n",
        WHOLE "content-length: 100\r\netag: \"b\"\r\n",
        "HTTP/1.1 412 Precondition Failed\r\n",
        "HTTP/1.1 416 Range Not Satisfiable\r\n",
    };
    const cv_range_request ask = {false, 0, 10, &known}, by_date = {false, 0, 10, &dated};
    cv_content_range grant;
    cv_error err;
    (void)state;
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        assert_int_equal(judge(others[i], &ask, &grant, &err), CV_REPLY_FAILED);
        assert_int_equal(err.code, CATERVA_EIO);
        assert_non_null(strstr(err.message, "changed on the server"));
    }
    assert_int_equal(
        judge(PART "Content-Range: bytes 0-9/100\r\nETag: \"a\"\r\n", &ask, &grant, &err),
        CV_REPLY_ACCEPT);
    assert_int_equal(judge(PART "Content-Range: bytes 0-9/100\r\nLast-Modified: Tue\r\n",
                           &by_date, &grant, &err),
                     CV_REPLY_FAILED);
    assert_int_equal(judge(PART "Content-Range: bytes 0-9/100\r\nLast-Modified: Mon\r\n",
                           &by_date, &grant, &err),
                     CV_REPLY_ACCEPT);
}

static void statuses_mean_what_they_mean(void **state)
{
    static const struct {
        int status;
        cv_verdict verdict;
        cv_status code;
    } rows[] = {
        {503, CV_REPLY_RETRY, CATERVA_EIO},
        {500, CV_REPLY_RETRY, CATERVA_EIO},
        {429, CV_REPLY_RETRY, CATERVA_EIO},
        {408, CV_REPLY_RETRY, CATERVA_EIO},
        {501, CV_REPLY_FAILED, CATERVA_EIO},
        {404, CV_REPLY_FAILED, CATERVA_ENOTFOUND},
        {403, CV_REPLY_FAILED, CATERVA_ENOTFOUND},
        {401, CV_REPLY_FAILED, CATERVA_EIO},
        {400, CV_REPLY_FAILED, CATERVA_EIO},
        {307, CV_REPLY_REDIRECT, CATERVA_EIO},
        {301, CV_REPLY_REDIRECT, CATERVA_EIO},
        {304, CV_REPLY_FAILED, CATERVA_EIO},
        {204, CV_REPLY_FAILED, CATERVA_EIO},
        {416, CV_REPLY_NO_RANGES, CATERVA_EIO},
    };
    const cv_range_request ask = {false, 0, 10, &unknown};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char text[64];
        cv_content_range grant;
        cv_error err;
        snprintf(text, sizeof text, "HTTP/1.1 %d X\r\nRetry-After: 7\r\n\r\n",
                 rows[i].status);
        cv_verdict verdict = judge(text, &ask, &grant, &err);
        if (verdict != rows[i].verdict || err.code != rows[i].code)
            fail_msg("%d: %d, %s", rows[i].status, (int)verdict, err.message);
    }
}

/* Status 416 has no bytes: it is damage if the object ends before the requested ones. */
static void what_cannot_be_had_is_damage_if_it_is_not_there(void **state)
{
    static const struct {
        const char *range;
        bool is_suffix;
        cv_status code;
    } rows[] = {
        {"Content-Range: bytes */0\r\n", false, CATERVA_ECORRUPT},
        {"Content-Range: bytes */0\r\n", true, CATERVA_ECORRUPT},
        {"Content-Range: bytes */20\r\n", false, CATERVA_ECORRUPT},
        {"Content-Range: bytes */20\r\n", true, CATERVA_EIO},
        {"Content-Range: bytes */21\r\n", false, CATERVA_EIO},
        {"Content-Range: bytes */*\r\n", false, CATERVA_EIO},
        {"Content-Range: bytes *\r\n", false, CATERVA_EIO},
        {"", true, CATERVA_EIO},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char text[100];
        cv_content_range content;
        cv_error err;
        const cv_range_request request = {rows[i].is_suffix, 20, 30, &unknown};
        snprintf(text, sizeof text, "HTTP/1.1 416 X\r\n%s\r\n", rows[i].range);
        assert_int_equal(judge(text, &request, &content, &err), CV_REPLY_NO_RANGES);
        if (err.code != rows[i].code) fail_msg("row %zu: %s", i, err.message);
    }
}

/* If the object existed before, its absence is an error of the read, not a missing object. */
static void a_known_object_is_never_absent(void **state)
{
    static const int statuses[] = {403, 404, 410};
    const cv_version known = {.size = 100, .etag = "\"a\""};
    const cv_range_request ask = {false, 0, 10, &known};
    (void)state;
    for (size_t i = 0; i < sizeof statuses / sizeof statuses[0]; i++) {
        char text[64];
        cv_content_range grant;
        cv_error err;
        snprintf(text, sizeof text, "HTTP/1.1 %d X\r\n\r\n", statuses[i]);
        assert_int_equal(judge(text, &ask, &grant, &err), CV_REPLY_FAILED);
        assert_int_equal(err.code, CATERVA_EIO);
        assert_int_equal(err.sys_errno, statuses[i] == 403 ? EACCES : 0);
    }
    const cv_version large = {.size = 2000000, .etag = "\"a\""};
    const cv_range_request end = {true, 0, 65536, &large};
    cv_content_range grant;
    cv_error err;
    assert_int_equal(
        judge(WHOLE "Content-Length: 2000000\r\nETag: \"a\"\r\n", &end, &grant, &err),
        CV_REPLY_NO_RANGES);
    assert_int_equal(err.code, CATERVA_EIO);
}

/* The dates are those of RFC 9110, section 5.6.7. */
static void waits_are_seconds_or_dates(void **state)
{
    enum { THEN = 784111777 };
    static const struct {
        const char *fields;
        int64_t now;
        uint32_t wait;
    } rows[] = {
        {"", THEN, 0},
        {"Retry-After: 120\r\n", THEN, 120},
        {"Retry-After: 604800\r\n", THEN, 604800},
        {"Retry-After: 99999999999\r\n", THEN, UINT32_MAX},
        {"Retry-After: -1\r\n", THEN, 0},
        {"Retry-After: soon\r\n", THEN, 0},
        {"Retry-After: Sun, 06 Nov 1994 08:49:37 GMT\r\n", THEN - 90, 90},
        {"Retry-After: Sunday, 06-Nov-94 08:49:37 GMT\r\n", THEN - 90, 90},
        {"Retry-After: Sun Nov  6 08:49:37 1994\r\n", THEN - 90, 90},
        {"Retry-After: Sun, 06 Nov 1994 08:49:37 GMT\r\n", THEN + 1, 0},
        {"Retry-After: Thu, 29 Feb 2024 00:00:00 GMT\r\n", 1709164800 - 7, 7},
        {"Retry-After: Fri, 01 Mar 2024 00:00:00 GMT\r\n", 1709251200 - 7, 7},
        /* by the server's clock, if it sends the time */
        {"Date: Sun, 06 Nov 1994 08:49:07 GMT\r\n"
         "Retry-After: Sun, 06 Nov 1994 08:49:37 GMT\r\n",
         0, 30},
        {"Retry-After: Sun, 06 Nov 1994 08:49:37\r\n", THEN - 90, 0},
        {"Retry-After: Sun, 06 Foo 1994 08:49:37 GMT\r\n", THEN - 90, 0},
        {"Retry-After: Sun, 06 Nov 1994 24:49:37 GMT\r\n", THEN - 90, 0},
        {"Retry-After: Sun, 06 Nov\r\n", THEN - 90, 0},
        {"Retry-After: Thu, 06 Nov 1069 08:49:37 GMT\r\n", THEN - 90, 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char text[256];
        cv_reply reply;
        snprintf(text, sizeof text, "HTTP/1.1 503 X\r\n%s\r\n", rows[i].fields);
        assert_int_equal(cv_reply_parse(text, strlen(text), &reply, NULL), CATERVA_OK);
        uint32_t wait = cv_reply_wait(&reply, rows[i].now);
        if (wait != rows[i].wait)
            fail_msg("%s: %u s, not %u", rows[i].fields, wait, rows[i].wait);
    }
}

static void a_large_whole_is_refused(void **state)
{
    const cv_range_request ask = {true, 0, 65536, &unknown};
    cv_content_range grant;
    cv_error err;
    (void)state;
    assert_int_equal(judge(WHOLE "content-length: 2000000\r\n", &ask, &grant, &err),
                     CV_REPLY_NO_RANGES);
    assert_int_equal(err.code, CATERVA_EUNSUPPORTED);
}

static void some_names_say_that_several_parts_come(void **state)
{
    static const struct {
        const char *fields;
        int most;
    } rows[] = {
        {"", 0},
        {"Server: nginx\r\n", 200},
        {"server:nginx/1.22.1\r\n", 200},
        {"Server: NGINX/1.22.1 (Ubuntu)\r\n", 200},
        {"Server: Apache/2.4.57 (Debian) OpenSSL/3.0\r\n", 200},
        {"Server: Apache\r\n", 200},
        {"Server: Caddy\r\n", 200},
        {"Server: openresty\r\n", 200},
        {"Server: lighttpd/1.4.69\r\n", 10},
        {"Server: \r\n", 0},
        {"Server: /nginx\r\n", 0},
        {"Server: ngin\r\n", 0},
        {"Server: nginx-extras\r\n", 0},
        {"Server: (nginx)\r\n", 0},
        {"Server: Apache-Coyote/1.1\r\n", 0},
        {"Server: Microsoft-IIS/10.0\r\n", 0},
        {"Server: AmazonS3\r\n", 0},
        {"Server: cloudflare\r\n", 0},
        {"Server: Varnish\r\n", 0},
        {"X-Server: nginx\r\n", 0},
        {"Server: nginx\r\nServer: AmazonS3\r\n", 0},
        {"Server: AmazonS3\r\nServer: nginx\r\n", 0},
        {"Server: nginx\r\nVia: 1.1 varnish\r\n", 0},
        {"x-amz-request-id: 1\r\nServer: nginx\r\n", 0},
        {"Server: nginx\r\nAge: 5\r\n", 0},
        {"Server: nginx\r\nX-Am: 5\r\n", 200},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char text[256];
        cv_reply reply;
        snprintf(text, sizeof text, PART "%s\r\n", rows[i].fields);
        assert_int_equal(cv_reply_parse(text, strlen(text), &reply, NULL), CATERVA_OK);
        if (reply.most_ranges != rows[i].most)
            fail_msg("%s: %d", rows[i].fields, reply.most_ranges);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_asked_for_is_taken),
        cmocka_unit_test(what_was_not_is_not),
        cmocka_unit_test(another_version_is_noticed),
        cmocka_unit_test(statuses_mean_what_they_mean),
        cmocka_unit_test(what_cannot_be_had_is_damage_if_it_is_not_there),
        cmocka_unit_test(a_known_object_is_never_absent),
        cmocka_unit_test(waits_are_seconds_or_dates),
        cmocka_unit_test(a_large_whole_is_refused),
        cmocka_unit_test(some_names_say_that_several_parts_come),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* multipart/byteranges bodies, valid and invalid, received in pieces of any size. */
#include "remote/http.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define HEAD(range) "Content-Type: x/y\r\nContent-Range: bytes " range "\r\n\r\n"
#define BEGIN "\r\n--b\r\n"
#define LAST "\r\n--b--\r\n"

/* What was received: "pos:bytes;" per body part, and "!" if the body is invalid. */
static char received[8192];

static void say(const char *text, size_t size)
{
    size_t at = strlen(received);
    assert_true(at + size < sizeof received);
    memcpy(received + at, text, size);
    received[at + size] = '\0';
}

static void say_part(const cv_multipart *body)
{
    char text[64];
    snprintf(text, sizeof text, "%s%llu-%llu/%llu:", *received ? ";" : "",
             (unsigned long long)body->pos, (unsigned long long)body->end,
             (unsigned long long)body->total);
    say(text, strlen(text));
}

/* Receives pieces of `piece` bytes; takes at most `most` bytes of a body part at a time, and
 * presents the rest again. */
static const char *receive(const char *text, size_t size, size_t piece, size_t most)
{
    cv_multipart body;
    received[0] = '\0';
    cv_multipart_begin(&body, "b");
    for (size_t at = 0, n; at < size; at += n) {
        size_t given = size - at < piece ? size - at : piece;
        cv_part_event event = cv_multipart_next(&body, (const uint8_t *)text + at, given, &n);
        if (event == CV_PART_BAD) {
            say("!", 1);
            break;
        }
        if (event == CV_PART_BEGINS) say_part(&body);
        if (event == CV_PART_ENDS) say(".", 1);
        if (event != CV_PART_BYTES) continue;
        n = n < most ? n : most;
        say(text + at, n);
        cv_multipart_take(&body, n);
    }
    if (cv_multipart_end(&body)) say(".", 1);
    return received;
}

static void parts_are_distinguished(void **state)
{
    static const struct {
        const char *text, *received;
    } bodies[] = {
        {BEGIN HEAD("0-3/9") "abcd" BEGIN HEAD("6-8/9") "xyz" LAST, "0-4/9:abcd.;6-9/9:xyz."},
        {"--b\r\n" HEAD("0-3/9") "abcd" LAST, "0-4/9:abcd."},
        {"a preamble\r\n" BEGIN HEAD("0-3/9") "abcd" LAST "an epilogue", "0-4/9:abcd."},
        {"--b\nContent-Range: bytes 0-1/9\n\nab\n--b--\n", "0-2/9:ab."}, /* LF */
        {"--b  \r\n" HEAD("5-6/9") "ab\r\n--b-- \t\r\n", "5-7/9:ab."},   /* blanks */
        {BEGIN HEAD("6-7/9") "xy" BEGIN HEAD("0-0/9") "a" LAST, "6-8/9:xy.;0-1/9:a."},
        {BEGIN HEAD("0-3/9") "abcd" BEGIN, "0-4/9:abcd."},    /* no end */
        {BEGIN HEAD("0-3/9") "abcd\r\n--b--", "0-4/9:abcd."}, /* nor of the line */
        {BEGIN HEAD("0-3/9") "abcd", "0-4/9:abcd"},
        {BEGIN HEAD("0-3/9") "ab", "0-4/9:ab"},                         /* cut */
        {BEGIN HEAD("0-7/9") "\r\n--b--\n" LAST, "0-8/9:\r\n--b--\n."}, /* in a part */
        {BEGIN HEAD("0-3/9") "abcd--b\r\n" HEAD("5-6/9") "xy", "0-4/9:abcd!"},
        {BEGIN HEAD("0-3/9") "abcd\n--b\r\n", "0-4/9:abcd!"},
        {BEGIN HEAD("0-3/9") "abc" LAST, "0-4/9:abc\r!"}, /* one byte too few */
        {BEGIN HEAD("0-3/9") "ab" LAST, "0-4/9:ab\r\n!"},
        {BEGIN HEAD("0-7/9") "a" LAST, "0-8/9:a\r\n--b--"},
        {"--b\nContent-Range: bytes 0-1/9\n\na\n--b--\n", "0-2/9:a\n!"},
        {BEGIN "Content-Length: 2\r\n" HEAD("5-6/9") "xy", "5-7/9:xy"},
        {BEGIN HEAD("0-3/9") "abcdX" LAST, "0-4/9:abcd!"},
        {BEGIN HEAD("0-3/9") "abcd\r\n\r\n--b\r\n", "0-4/9:abcd!"},
        {BEGIN HEAD("0-3/9") "abcd\r\n--c\r\n", "0-4/9:abcd!"},
        {BEGIN HEAD("0-3/9") "abcd\r\n--bc\r\n", "0-4/9:abcd!"},
        {BEGIN "\r\nabcd", "!"}, /* no range */
        {BEGIN HEAD("0-3/*") "abcd", "!"},
        {BEGIN HEAD("3-0/9") "abcd", "!"},
        {BEGIN HEAD("0-9/9") "abcd", "!"},
        {BEGIN HEAD("*/9") "abcd", "!"},
        {BEGIN "Content-Encoding: gzip\r\n" HEAD("0-3/9") "abcd", "!"},
        {BEGIN "Content-Length: 3\r\n" HEAD("0-3/9") "abcd", "!"},
        {BEGIN "Content-Range: bytes 5-6/9\r\n" HEAD("0-3/9") "abcd", "!"},
        {BEGIN "Content-Type: multipart/byteranges\r\nContent-Range: bytes 0-3/9\r\n\r\nabcd",
         "!"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof bodies / sizeof bodies[0]; i++)
        for (size_t piece = 1; piece < 100; piece++)
            for (size_t most = 1; most < 10; most += 4) {
                const char *text = bodies[i].text;
                assert_string_equal(receive(text, strlen(text), piece, most),
                                    bodies[i].received);
            }
}

/* A long text is not a multipart body, and is not buffered. */
static void nothing_is_without_bound(void **state)
{
    static const char *const befores[] = {"", BEGIN "X: ", BEGIN HEAD("0-0/1") "a\r\n",
                                          BEGIN HEAD("0-0/1") "a" LAST};
    static const char *const fillers[] = {"x", "x\r\n", "\n"};
    static char text[CV_PART_HEADER_SIZE + 1000];
    (void)state;
    for (size_t i = 0; i < 4; i++)
        for (size_t f = 0; f < 3; f++) {
            size_t size = (size_t)snprintf(text, sizeof text, "%s", befores[i]);
            size_t step = strlen(fillers[f]);
            for (; size + step < sizeof text; size += step)
                memcpy(text + size, fillers[f], step);
            if (i == 1 && f == 2) continue; /* an empty line ends a header */
            for (size_t piece = 1; piece < 5000; piece = 3 * piece + 1) {
                const char *come = receive(text, size, piece, SIZE_MAX);
                if (come[strlen(come) - 1] != '!') fail_msg("%zu %zu: %s", i, f, come);
            }
        }
}

/* Boundaries of replies, as given in Content-Type. */
static void boundaries(void **state)
{
    static const char *const types[][2] = {
        {"multipart/byteranges; boundary=abc", "abc"},
        {"multipart/byteranges;boundary=\"a b/c\"", "a b/c"},
        {"Multipart/ByteRanges; charset=x; BOUNDARY=00000000000000000012",
         "00000000000000000012"},
        {"multipart/byteranges; boundary=abc; x=y", "abc"},
        {"multipart/byteranges", ""},
        {"multipart/byteranges; boundary=", ""},
        {"multipart/byteranges; boundary=\"\"", ""},
        {"multipart/mixed; boundary=abc", ""},
        {"multipart/byteranges; boundary=\x01", ""},
        {"multipart/byteranges; boundary="
         "123456789012345678901234567890123456789012345678901234567890123456789012",
         ""},
        {"multipart/byteranges; boundary="
         "1234567890123456789012345678901234567890123456789012345678901234567890",
         "1234567890123456789012345678901234567890123456789012345678901234567890"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        char text[256];
        cv_reply reply;
        cv_error err = {0};
        const cv_version known = {.size = 9};
        int size = snprintf(text, sizeof text, "HTTP/1.1 206 X\r\nContent-Type: %s\r\n\r\n",
                            types[i][0]);
        assert_int_equal(cv_reply_parse(text, (size_t)size, &reply, &err), CATERVA_OK);
        assert_string_equal(reply.boundary, types[i][1]);
        cv_verdict verdict = cv_reply_judge_multirange(&reply, &known, "URL", &err);
        assert_int_equal(verdict, *types[i][1] ? CV_REPLY_ACCEPT : CV_REPLY_NO_MULTIRANGE);
    }
}

static void replies_to_several(void **state)
{
#define PARTS "HTTP/1.1 206 X\r\nContent-Type: multipart/byteranges; boundary=b\r\n"
    static const struct {
        const char *text;
        cv_verdict verdict;
    } replies[] = {
        {PARTS "ETag: \"a\"\r\n", CV_REPLY_ACCEPT},
        {PARTS "ETag: \"b\"\r\n", CV_REPLY_FAILED}, /* another version */
        {PARTS, CV_REPLY_FAILED},
        {"HTTP/1.1 412 X\r\n", CV_REPLY_FAILED},
        {PARTS "ETag: \"a\"\r\nContent-Encoding: gzip\r\n", CV_REPLY_NO_MULTIRANGE},
        {PARTS "ETag: \"a\"\r\nContent-Range: bytes 0-3/9\r\n", CV_REPLY_NO_MULTIRANGE},
        {PARTS "ETag: \"a\"\r\nContent-Type: multipart/byteranges; boundary=c\r\n",
         CV_REPLY_NO_MULTIRANGE},
        {"HTTP/1.1 206 X\r\nContent-Range: bytes 0-3/9\r\n", CV_REPLY_NO_MULTIRANGE},
        {"HTTP/1.1 200 X\r\nContent-Length: 9\r\n", CV_REPLY_NO_MULTIRANGE},
        {"HTTP/1.1 400 X\r\n", CV_REPLY_NO_MULTIRANGE},
        {"HTTP/1.1 403 X\r\n", CV_REPLY_NO_MULTIRANGE},
        {"HTTP/1.1 416 X\r\n", CV_REPLY_NO_MULTIRANGE},
        {"HTTP/1.1 501 X\r\n", CV_REPLY_NO_MULTIRANGE},
        {"HTTP/1.1 503 X\r\n", CV_REPLY_RETRY},
        {"HTTP/1.1 302 X\r\n", CV_REPLY_REDIRECT},
    };
    const cv_version known = {.size = 9, .etag = "\"a\""};
    (void)state;
    for (size_t i = 0; i < sizeof replies / sizeof replies[0]; i++) {
        cv_reply reply;
        cv_error err = {0};
        const char *text = replies[i].text;
        assert_int_equal(cv_reply_parse(text, strlen(text), &reply, &err), CATERVA_OK);
        cv_verdict verdict = cv_reply_judge_multirange(&reply, &known, "URL", &err);
        if (verdict != replies[i].verdict) fail_msg("%d of %s", (int)verdict, text);
        assert_true(verdict == CV_REPLY_ACCEPT || *err.message);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_are_distinguished),
        cmocka_unit_test(nothing_is_without_bound),
        cmocka_unit_test(boundaries),
        cmocka_unit_test(replies_to_several),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

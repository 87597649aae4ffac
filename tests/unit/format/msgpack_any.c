/* Every form of every value, and what is cut or counts too many. */
#include "format/msgpack.h"

#include "check.h"

#include <string.h>

typedef struct form {
    const char *bytes;
    size_t size;
    cv_any_kind kind;
    int64_t number; /* or size */
} form;

#define FORM(text, kind, number)                                                             \
    {                                                                                        \
        text, sizeof text - 1, kind, number                                                  \
    }

static const form forms[] = {
    FORM("\xc0", CV_ANY_NIL, 0),
    FORM("\xc2", CV_ANY_BOOL, 0),
    FORM("\xc3", CV_ANY_BOOL, 1),
    FORM("\x7f", CV_ANY_INT, 127),
    FORM("\xe0", CV_ANY_INT, -32),
    FORM("\xcc\xff", CV_ANY_INT, 255),
    FORM("\xcd\x01\x02", CV_ANY_INT, 258),
    FORM("\xce\xff\xff\xff\xff", CV_ANY_INT, UINT32_MAX),
    FORM("\xcf\x7f\xff\xff\xff\xff\xff\xff\xff", CV_ANY_INT, INT64_MAX),
    FORM("\xcf\x80\0\0\0\0\0\0\0", CV_ANY_OTHER, 0),
    FORM("\xd0\x80", CV_ANY_INT, -128),
    FORM("\xd1\x80\0", CV_ANY_INT, -32768),
    FORM("\xd2\xff\xff\xff\xfe", CV_ANY_INT, -2),
    FORM("\xd3\x80\0\0\0\0\0\0\0", CV_ANY_INT, INT64_MIN),
    FORM("\xca\0\0\0\0", CV_ANY_REAL, 4),
    FORM("\xcb\0\0\0\0\0\0\0\0", CV_ANY_REAL, 8),
    FORM("\xa3"
         "abc",
         CV_ANY_TEXT, 3),
    FORM("\xd9\x02"
         "ab",
         CV_ANY_TEXT, 2),
    FORM("\xda\0\x02"
         "ab",
         CV_ANY_TEXT, 2),
    FORM("\xdb\0\0\0\x02"
         "ab",
         CV_ANY_TEXT, 2),
    FORM("\xc4\x02"
         "ab",
         CV_ANY_BYTES, 2),
    FORM("\xc5\0\x02"
         "ab",
         CV_ANY_BYTES, 2),
    FORM("\xc6\0\0\0\x02"
         "ab",
         CV_ANY_BYTES, 2),
    FORM("\xc7\x02\x2e"
         "ab",
         CV_ANY_OTHER, 3),
    FORM("\xc8\0\x02\x2e"
         "ab",
         CV_ANY_OTHER, 3),
    FORM("\xc9\0\0\0\x02\x2e"
         "ab",
         CV_ANY_OTHER, 3),
    FORM("\xd4\x2e"
         "a",
         CV_ANY_OTHER, 2),
    FORM("\xd5\x2e"
         "ab",
         CV_ANY_OTHER, 3),
    FORM("\xd6\x2e"
         "abcd",
         CV_ANY_OTHER, 5),
    FORM("\xd7\x2e"
         "abcdefgh",
         CV_ANY_OTHER, 9),
    FORM("\xd8\x2e"
         "abcdefghabcdefgh",
         CV_ANY_OTHER, 17),
    FORM("\x92\x01\x02", CV_ANY_ARRAY, 2),
    FORM("\xdc\0\x02\x01\x02", CV_ANY_ARRAY, 2),
    FORM("\xdd\0\0\0\x02\x01\x02", CV_ANY_ARRAY, 2),
    FORM("\x81\xa1"
         "a\x01",
         CV_ANY_MAP, 1),
    FORM("\xde\0\x01\xa1"
         "a\x01",
         CV_ANY_MAP, 1),
    FORM("\xdf\0\0\0\x01\xa1"
         "a\x92\x01\xc0",
         CV_ANY_MAP, 1),
};

static void check_form(const form *f)
{
    const uint8_t *bytes = (const uint8_t *)f->bytes;
    cv_reader r = cv_reader_open(bytes, f->size, 0, "a test");
    cv_any any = cv_read_any(&r, "value");
    int64_t number =
        any.kind == CV_ANY_INT || any.kind == CV_ANY_BOOL ? any.number : any.size;
    CHECK(any.kind == f->kind && number == f->number, "0x%02x: kind %d, number %lld",
          bytes[0], (int)any.kind, (long long)number);
    r = cv_reader_open(bytes, f->size, 0, "a test");
    cv_skip_any(&r, "value");
    CHECK(cv_reader_finish(&r, NULL) == CV_OK, "0x%02x: skipped to %zu", bytes[0], r.at);
    for (size_t size = 0; size < f->size; size++) {
        r = cv_reader_open(bytes, size, 0, "a test");
        cv_skip_any(&r, "value");
        CHECK(cv_reader_finish(&r, NULL) != CV_OK, "0x%02x cut to %zu", bytes[0], size);
    }
}

/* Deep and wide claims: refused at once, without recursion. */
static void check_hostile(void)
{
    static uint8_t deep[1 << 20];
    memset(deep, 0x91, sizeof deep);
    cv_reader r = cv_reader_open(deep, sizeof deep, 0, "a test");
    cv_skip_any(&r, "value");
    CHECK(r.status == CATERVA_ECORRUPT, "a million arrays in each other");
    const uint8_t wide[] = {0xdf, 0xff, 0xff, 0xff, 0xff, 0x01, 0x02};
    r = cv_reader_open(wide, sizeof wide, 0, "a test");
    cv_any any = cv_read_any(&r, "value");
    CHECK(r.status == CATERVA_ECORRUPT && any.kind == CV_ANY_NIL, "2^32 entries");
    const uint8_t none[] = {0xc1};
    r = cv_reader_open(none, sizeof none, 0, "a test");
    cv_skip_any(&r, "value");
    CHECK(r.status == CATERVA_ECORRUPT, "0xc1");
}

int main(void)
{
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) check_form(&forms[i]);
    check_hostile();
    cv_any any = {.kind = CV_ANY_TEXT, .bytes = (const uint8_t *)"kind", .size = 4};
    CHECK(cv_any_is(&any, "kind") && !cv_any_is(&any, "kin") && !cv_any_is(&any, "kinds"),
          "texts");
    return 0;
}

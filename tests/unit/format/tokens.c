/* Every form of every value, and values that are cut or have wrong counts. */
#include "format/values.h"

#include "check.h"

#include <string.h>

typedef struct form {
    const char *bytes;
    size_t size;
    cv_token_kind kind;
    int64_t number; /* or size, or count */
} form;

#define FORM(text, kind, number)                                                             \
    {                                                                                        \
        text, sizeof text - 1, kind, number                                                  \
    }

static const form forms[] = {
    FORM("\xc0", CV_TOKEN_NIL, 0),
    FORM("\xc2", CV_TOKEN_BOOL, 0),
    FORM("\xc3", CV_TOKEN_BOOL, 1),
    FORM("\x7f", CV_TOKEN_UINT, 127),
    FORM("\xe0", CV_TOKEN_INT, -32),
    FORM("\xcc\xff", CV_TOKEN_UINT, 255),
    FORM("\xcd\x01\x02", CV_TOKEN_UINT, 258),
    FORM("\xce\xff\xff\xff\xff", CV_TOKEN_UINT, UINT32_MAX),
    FORM("\xcf\x7f\xff\xff\xff\xff\xff\xff\xff", CV_TOKEN_UINT, INT64_MAX),
    FORM("\xcf\x80\0\0\0\0\0\0\0", CV_TOKEN_UINT, INT64_MIN),
    FORM("\xd0\x80", CV_TOKEN_INT, -128),
    FORM("\xd1\x80\0", CV_TOKEN_INT, -32768),
    FORM("\xd2\xff\xff\xff\xfe", CV_TOKEN_INT, -2),
    FORM("\xd3\x80\0\0\0\0\0\0\0", CV_TOKEN_INT, INT64_MIN),
    FORM("\xca\0\0\0\0", CV_TOKEN_REAL, 0),
    FORM("\xcb\0\0\0\0\0\0\0\0", CV_TOKEN_REAL, 0),
    FORM("\xa3"
         "abc",
         CV_TOKEN_TEXT, 3),
    FORM("\xd9\x02"
         "ab",
         CV_TOKEN_TEXT, 2),
    FORM("\xda\0\x02"
         "ab",
         CV_TOKEN_TEXT, 2),
    FORM("\xdb\0\0\0\x02"
         "ab",
         CV_TOKEN_TEXT, 2),
    FORM("\xc4\x02"
         "ab",
         CV_TOKEN_BINARY, 2),
    FORM("\xc5\0\x02"
         "ab",
         CV_TOKEN_BINARY, 2),
    FORM("\xc6\0\0\0\x02"
         "ab",
         CV_TOKEN_BINARY, 2),
    FORM("\xc7\x02\x2e"
         "ab",
         CV_TOKEN_EXT, 2),
    FORM("\xc8\0\x02\x2e"
         "ab",
         CV_TOKEN_EXT, 2),
    FORM("\xc9\0\0\0\x02\x2e"
         "ab",
         CV_TOKEN_EXT, 2),
    FORM("\xd4\x2e"
         "a",
         CV_TOKEN_EXT, 1),
    FORM("\xd5\x2e"
         "ab",
         CV_TOKEN_EXT, 2),
    FORM("\xd6\x2e"
         "abcd",
         CV_TOKEN_EXT, 4),
    FORM("\xd7\x2e"
         "abcdefgh",
         CV_TOKEN_EXT, 8),
    FORM("\xd8\x2e"
         "abcdefghabcdefgh",
         CV_TOKEN_EXT, 16),
    FORM("\x92\x01\x02", CV_TOKEN_LIST, 2),
    FORM("\xdc\0\x02\x01\x02", CV_TOKEN_LIST, 2),
    FORM("\xdd\0\0\0\x02\x01\x02", CV_TOKEN_LIST, 2),
    FORM("\x81\xa1"
         "a\x01",
         CV_TOKEN_MAP, 1),
    FORM("\xde\0\x01\xa1"
         "a\x01",
         CV_TOKEN_MAP, 1),
    FORM("\xdf\0\0\0\x01\xa1"
         "a\x92\x01\xc0",
         CV_TOKEN_MAP, 1),
};

static bool is_whole(const uint8_t *bytes, size_t size)
{
    cv_tokens tokens = cv_tokens_of(bytes, size);
    cv_tokens_skip(&tokens);
    return !tokens.bad && tokens.at == tokens.end;
}

static void check_form(const form *f)
{
    const uint8_t *bytes = (const uint8_t *)f->bytes;
    cv_tokens tokens = cv_tokens_of(bytes, f->size);
    cv_token token = cv_token_next(&tokens);
    bool is_right = token.kind == CV_TOKEN_REAL || (int64_t)token.number == f->number;
    CHECK(token.kind == f->kind && is_right, "0x%02x: kind %d, number %lld", bytes[0],
          (int)token.kind, (long long)token.number);
    CHECK(is_whole(bytes, f->size), "0x%02x is not skipped", bytes[0]);
    for (size_t size = 0; size < f->size; size++)
        CHECK(!is_whole(bytes, size), "0x%02x cut to %zu", bytes[0], size);
}

/* Deep and wide claims: refused at once, without recursion. */
static void check_hostile(void)
{
    static uint8_t deep[1 << 20];
    memset(deep, 0x91, sizeof deep);
    CHECK(!is_whole(deep, sizeof deep), "a million lists in each other");
    const uint8_t wide[] = {0xdf, 0xff, 0xff, 0xff, 0xff, 0x01, 0x02};
    cv_tokens tokens = cv_tokens_of(wide, sizeof wide);
    cv_token token = cv_token_next(&tokens);
    CHECK(tokens.bad && token.kind == CV_TOKEN_NIL, "2^32 entries");
    const uint8_t none[] = {0xc1};
    CHECK(!is_whole(none, sizeof none), "0xc1");
}

int main(void)
{
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) check_form(&forms[i]);
    check_hostile();
    cv_token token = {.kind = CV_TOKEN_TEXT, .bytes = (const uint8_t *)"kind", .number = 4};
    CHECK(cv_token_is_text(&token, "kind") && !cv_token_is_text(&token, "kin") &&
              !cv_token_is_text(&token, "kinds"),
          "texts");
    return 0;
}

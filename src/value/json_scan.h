/* JSON, word by word. Sticky: the first thing that was expected and is not there is kept,
 * and the caller asks once. */
#ifndef CV_VALUE_JSON_SCAN_H
#define CV_VALUE_JSON_SCAN_H

#include "base/heap.h"
#include "base/watch.h"

/* A watch hears each time that so many bytes have been passed. */
enum { CV_JSON_PIECE = 1 << 16 };

typedef struct cv_json_scan {
    const char *start, *at, *end;
    const char *wrong; /* what was expected at `at`; NULL: nothing failed */
    cv_status status;  /* of memory, or of a stop */
    cv_error error;
    cv_buffer text;   /* the last text that was taken */
    cv_watch *watch;  /* of the call, counts steps: bytes; or NULL */
    const char *told; /* up to here */
} cv_json_scan;

cv_json_scan cv_json_scan_of(const char *text, size_t size, cv_watch *watch);
bool cv_json_failed(const cv_json_scan *s);
void cv_json_fail(cv_json_scan *s, const char *expected);

/* The first failure, or that something stands behind the value; frees the scanner. */
cv_status cv_json_scan_finish(cv_json_scan *s, cv_error *err);

/* Between values: tells how far it is, now and then, and fails when that says stop. */
void cv_json_tell_now(cv_json_scan *s);
static inline void cv_json_tell(cv_json_scan *s)
{
    if (s->watch && s->at - s->told >= CV_JSON_PIECE) cv_json_tell_now(s);
}

/* Passes over blanks, and over the character or word if it stands there. */
bool cv_json_accept(cv_json_scan *s, char c);
bool cv_json_accept_word(cv_json_scan *s, const char *word);

/* The character must stand there; `expected` says it in words. */
void cv_json_expect(cv_json_scan *s, char c, const char *expected);

/* A text, into s->text; a text that must be this one, with the colon behind it. */
void cv_json_take_text(cv_json_scan *s, const char *expected);
void cv_json_expect_key(cv_json_scan *s, const char *key, const char *expected);

/* A text of base64; its bytes are appended to `out`. */
void cv_json_take_base64(cv_json_scan *s, cv_buffer *out);

/* Bytes of the number that stands there, 0: none; it is not passed. */
size_t cv_json_number(cv_json_scan *s, bool *whole);

#endif

/* JSON, word by word. Sticky: the first thing that was expected and is not there is kept,
 * and the caller asks once. */
#ifndef CV_VALUE_JSON_SCAN_H
#define CV_VALUE_JSON_SCAN_H

#include "base/buffer.h"

typedef struct cv_json_scan {
    const char *start, *at, *end;
    const char *wrong; /* what was expected at `at`; NULL: nothing failed */
    cv_status status;  /* of memory */
    cv_error error;
    cv_buffer text; /* the last text that was taken */
} cv_json_scan;

cv_json_scan cv_json_scan_of(const char *text, size_t size);
bool cv_json_failed(const cv_json_scan *s);
void cv_json_fail(cv_json_scan *s, const char *expected);

/* The first failure, or that something stands behind the value; frees the scanner. */
cv_status cv_json_scan_finish(cv_json_scan *s, cv_error *err);

/* Passes over blanks, and over the character or word if it stands there. */
bool cv_json_accept(cv_json_scan *s, char c);
bool cv_json_accept_word(cv_json_scan *s, const char *word);

/* The character must stand there; `expected` says it in words. */
void cv_json_expect(cv_json_scan *s, char c, const char *expected);

/* A text, into s->text; a text that must be this one, with the colon behind it. */
void cv_json_take_text(cv_json_scan *s, const char *expected);
void cv_json_expect_key(cv_json_scan *s, const char *key, const char *expected);

/* Bytes of the number that stands there, 0: none; it is not passed. */
size_t cv_json_number(cv_json_scan *s, bool *whole);

#endif

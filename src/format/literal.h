/* The text of a Python literal, as str(numpy.dtype) prints them, read token by
 * token. Spaces before a token are skipped. */
#ifndef CV_FORMAT_LITERAL_H
#define CV_FORMAT_LITERAL_H

#include "base/status.h"

typedef struct cv_literal {
    const char *text; /* borrowed; needs no terminator */
    size_t size;
    size_t at;     /* next character */
    cv_error *err; /* the caller's */
} cv_literal;

/* CATERVA_EINVAL with the place and a sentence. */
cv_status cv_literal_fail(const cv_literal *p, const char *fmt, ...) CV_PRINTF(2, 3);

/* The first character of the next token; 0 at the end. */
char cv_literal_peek(cv_literal *p);

/* Steps over the mark or word if it is next. */
bool cv_literal_accept(cv_literal *p, char mark);
bool cv_literal_accept_word(cv_literal *p, const char *word);

/* Fails unless the mark is next. */
cv_status cv_literal_expect(cv_literal *p, char mark);

/* A number in [0, INT32_MAX]. */
cv_status cv_literal_number(cv_literal *p, int64_t *out);

/* A quoted string, escapes resolved, NUL-terminated, without a NUL inside. It
 * replaces *out, which is the caller's to free, also after a failure. */
cv_status cv_literal_string(cv_literal *p, char **out);

/* Steps over the string whose quote is at p->at, to the end of the text when
 * it is not closed. */
void cv_literal_skip_string(cv_literal *p);

#endif

/* URLs, taken apart: pure functions. Only http, https and s3 are known. A URL comes from the
 * program, or from a server that redirects: nothing in it may end up as anything else than
 * the host, the path and the query of one request. */
#ifndef CV_REMOTE_URL_H
#define CV_REMOTE_URL_H

#include "base/status.h"
#include "store/path.h"

/* Pieces of the text, borrowed. */
typedef struct cv_url {
    cv_scheme scheme;
    const char *host; /* a name, an address, or [an address of IPv6]; s3: the bucket */
    size_t host_size;
    int port;         /* 0: the scheme's own */
    const char *path; /* from its slash on, or empty; s3: the key, as it is */
    size_t path_size;
    const char *query; /* behind the question mark; NULL: none */
    size_t query_size;
} cv_url;

/* CATERVA_EINVAL, in words without the query, for what is no such URL: one with a user or a
 * fragment, with blanks or controls, without a host or, of s3, without a bucket and key. */
cv_status cv_url_parse(const char *text, cv_url *out, cv_error *err);

/* Whether both lead to the same scheme, host and port. */
bool cv_url_same_origin(const cv_url *a, const cv_url *b);

/* CATERVA_EINVAL of what is not "Name: value" in one line, with a name as HTTP has them, and
 * of headers that say what is asked for, or how. In words without its value, which may be a
 * secret; `i` is its number. */
cv_status cv_header_check(const char *header, int i, cv_error *err);

/* Appends bytes, those apart from letters, digits and "-._~" as %XX; slashes stay where
 * `keeps_slashes`. The room's end is `end`; NULL when it is too small. No NUL. */
char *cv_url_encode(const char *bytes, size_t size, bool keeps_slashes, char *to,
                    const char *end);

/* The URL without slashes at the end of its path: owned. *has_slash: there were some. */
cv_status cv_url_strip(const char *url, char **out, bool *has_slash, cv_error *err);

#endif

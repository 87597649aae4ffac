/* Room: remote. Parses, checks and encodes URLs and the caller's headers. A URL comes from the
 * caller or from a redirecting server: its bytes may become the host, path or query of one request,
 * but nothing else. Pure functions. */
#include "remote/http.h"

#include <string.h>

char cv_lower(char c)
{
    if (c >= 'A' && c <= 'Z') return (char)(c - 'A' + 'a');
    return c;
}

static bool is_alnum(char c)
{
    c = cv_lower(c);
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

static cv_status refuse(const char *text, const char *why, cv_error *err)
{
    return cv_fail(err, CATERVA_EINVAL, -1, "the URL %s %s", cv_show_url(text).text, why);
}

/* ---- Parsing --------------------------------------------------------------------------- */

static bool is_host_char(char c) { return is_alnum(c) || c == '.' || c == '-' || c == '_'; }

/* Sets out->host and returns the text after it; NULL: no valid host. */
static const char *take_host(const char *at, cv_url *out)
{
    out->host = at;
    if (*at == '[') {
        do at++;
        while (is_alnum(*at) || *at == ':' || *at == '.'); /* the system checks the address */
        if (*at != ']') return NULL;
        at++;
    } else {
        while (is_host_char(*at)) at++;
    }
    out->host_size = (size_t)(at - out->host);
    return out->host_size > 0 && out->host_size < 256 ? at : NULL;
}

static const char *take_port(const char *at, cv_url *out)
{
    if (*at != ':') return at;
    int port = 0;
    for (at++; *at >= '0' && *at <= '9' && port <= 65535; at++)
        port = 10 * port + (*at - '0');
    out->port = port;
    return port >= 1 && port <= 65535 ? at : NULL;
}

static bool has_blanks(const char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text <= 0x20 || *text == 0x7f) return true;
    return false;
}

static cv_status parse_http(const char *text, const char *rest, cv_url *out, cv_error *err)
{
    size_t authority = strcspn(rest, "/?#");
    if (has_blanks(text))
        return refuse(text, "has a blank or a control character: write %20 for a blank", err);
    if (memchr(rest, '@', authority))
        return refuse(text, "has a user: give credentials as headers", err);
    if (strchr(rest, '#')) return refuse(text, "has a fragment (#): write %23 for #", err);
    if (strchr(rest, '\\')) return refuse(text, "has a backslash", err);
    const char *at = take_host(rest, out);
    if (!at) return refuse(text, "has no valid host", err);
    at = take_port(at, out);
    if (!at) return refuse(text, "has no valid port", err);
    if (*at && *at != '/' && *at != '?') return refuse(text, "has no valid host", err);
    out->path = at;
    out->path_size = strcspn(at, "?");
    at += out->path_size;
    out->query = *at == '?' ? at + 1 : NULL;
    out->query_size = out->query ? strlen(out->query) : 0;
    return CV_OK;
}

static cv_status parse_s3(const char *text, const char *rest, cv_url *out, cv_error *err)
{
    enum { MOST_KEY = 1024 };
    const char *at = take_host(rest, out);
    if (!at || *rest == '[' || *at != '/' || out->host_size < 3 || out->host_size > 63)
        return refuse(text, "has no bucket of 3 to 63 bytes (s3://BUCKET/KEY)", err);
    out->path = at + 1;
    out->path_size = strlen(at + 1);
    if (out->path_size >= 1 && out->path_size <= MOST_KEY) return CV_OK;
    return refuse(text, "has no key of 1 to 1024 bytes (s3://BUCKET/KEY)", err);
}

cv_status cv_url_parse(const char *text, cv_url *out, cv_error *err)
{
    *out = (cv_url){.scheme = cv_url_scheme(text)};
    if (out->scheme == CV_SCHEME_NONE)
        return refuse(text, "has none of the schemes http, https and s3", err);
    const char *rest = strstr(text, "://") + 3;
    return out->scheme == CV_SCHEME_S3 ? parse_s3(text, rest, out, err)
                                       : parse_http(text, rest, out, err);
}

static int port_of(const cv_url *url)
{
    return url->port ? url->port : url->scheme == CV_SCHEME_HTTP ? 80 : 443;
}

bool cv_url_same_origin(const cv_url *a, const cv_url *b)
{
    if (a->scheme != b->scheme || a->host_size != b->host_size) return false;
    for (size_t i = 0; i < a->host_size; i++)
        if (cv_lower(a->host[i]) != cv_lower(b->host[i])) return false;
    return port_of(a) == port_of(b);
}

/* ---- Caller headers ---------------------------------------------------------------------- */

/* Whether the header is "Name: value" in one line, and Name is a token (RFC 9110 section 5.6.2). */
static bool is_header(const char *header)
{
    const char *at = header ? header : "";
    while (is_alnum(*at) || (*at && strchr("!#$%&'*+-.^_`|~", *at))) at++;
    if (at == header || *at != ':') return false;
    for (at++; (unsigned char)*at >= 0x20 || *at == '\t'; at++)
        if (*at == 0x7f) return false;
    return *at == '\0';
}

static const char *reserved_name(const char *header)
{
    static const char *const reserved[] = {"Accept-Encoding",
                                           "Connection",
                                           "Content-Length",
                                           "Expect",
                                           "Host",
                                           "If-Match",
                                           "If-Modified-Since",
                                           "If-None-Match",
                                           "If-Range",
                                           "If-Unmodified-Since",
                                           "Range",
                                           "TE",
                                           "Transfer-Encoding",
                                           "Upgrade",
                                           "User-Agent"};
    for (size_t i = 0; i < sizeof reserved / sizeof reserved[0]; i++) {
        size_t size = strlen(reserved[i]), n = 0;
        while (n < size && cv_lower(header[n]) == cv_lower(reserved[i][n])) n++;
        if (n == size && header[n] == ':') return reserved[i];
    }
    return NULL;
}

cv_status cv_header_check(const char *header, int i, cv_error *err)
{
    if (!is_header(header))
        return cv_fail(err, CATERVA_EINVAL, -1,
                       "header %d is not \"Name: value\" in one line, or its name has blanks",
                       i);
    const char *reserved = reserved_name(header);
    if (!reserved) return CV_OK;
    return cv_fail(err, CATERVA_EINVAL, -1, "header %d is %s, which the library sets itself",
                   i, reserved);
}

/* ---- Making URLs ------------------------------------------------------------------------- */

char *cv_url_encode(const char *bytes, size_t size, bool keeps_slashes, char *to,
                    const char *end)
{
    static const char digits[] = "0123456789ABCDEF";
    for (size_t i = 0; i < size; i++) {
        unsigned char c = (unsigned char)bytes[i];
        bool is_plain =
            is_alnum((char)c) || (c && strchr("-._~", c)) || (c == '/' && keeps_slashes);
        if (end - to < (is_plain ? 1 : 3)) return NULL;
        if (!is_plain) {
            *to++ = '%';
            *to++ = digits[c >> 4];
            c = (unsigned char)digits[c & 15];
        }
        *to++ = (char)c;
    }
    return to;
}

cv_status cv_url_strip(const char *url, char **out, bool *has_slash, cv_error *err)
{
    cv_url parsed;
    CV_TRY(cv_url_parse(url, &parsed, err));
    size_t size = parsed.path_size;
    while (size > 1 && parsed.path[size - 1] == '/') size--;
    *has_slash = size < parsed.path_size;
    *out = cv_strdup(url);
    if (!*out) return cv_fail_memory(err, strlen(url), "a URL");
    size_t at = (size_t)(parsed.path - url);
    memmove(*out + at + size, url + at + parsed.path_size,
            strlen(url + at + parsed.path_size) + 1);
    return CV_OK;
}

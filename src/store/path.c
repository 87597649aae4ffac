/* Room: store. Paths and URLs as text. Messages contain no passwords and no queries. */
#include "store/path.h"

#include "base/heap.h"
#include "base/os_dir.h"
#include "base/os_file.h"

#include <stdio.h>
#include <string.h>

/* ---- URLs ---------------------------------------------------------------------------- */

static const struct {
    const char *prefix;
    cv_scheme scheme;
} schemes[] = {
    {"http://", CV_SCHEME_HTTP}, {"https://", CV_SCHEME_HTTPS}, {"s3://", CV_SCHEME_S3}};

static bool begins(const char *text, const char *prefix)
{
    for (; *prefix; prefix++, text++)
        if ((*text >= 'A' && *text <= 'Z' ? *text - 'A' + 'a' : *text) != *prefix)
            return false;
    return true;
}

cv_scheme cv_url_scheme(const char *text)
{
    for (size_t i = 0; i < sizeof schemes / sizeof schemes[0]; i++)
        if (begins(text, schemes[i].prefix)) return schemes[i].scheme;
    return CV_SCHEME_NONE;
}

bool cv_is_url(const char *text) { return cv_url_scheme(text) != CV_SCHEME_NONE; }

static const char *last_at(const char *text, size_t size)
{
    while (size > 0 && text[size - 1] != '@') size--;
    return size > 0 ? text + size - 1 : NULL;
}

/* Returns the text behind user and password, or the whole text if it has no user. A password may
 * contain characters that should have been written as %XX. So if no host and port precede the first
 * slash, the password extends to the last @ of the text. */
static const char *skip_user(const char *text)
{
    const char *colon = strstr(text, "://"), *host = colon ? colon + 3 : text;
    size_t authority = strcspn(host, "/?#");
    const char *at = last_at(host, authority);
    const char *port = at || *host == '[' ? NULL : memchr(host, ':', authority);
    if (port && port + 1 + strspn(port + 1, "0123456789") != host + authority)
        at = last_at(host, strlen(host));
    return at ? at + 1 : text;
}

/* Returns the number of bytes from `from` (behind the user) up to the query or fragment. In an S3
 * URL a question mark belongs to the key unless the URL has a user, or unless the question mark
 * begins the parameters of a presigned URL. */
static size_t size_without_query(const char *text, const char *from)
{
    const char *presigned = strstr(from, "?X-Amz-");
    if (cv_url_scheme(text) != CV_SCHEME_S3 || from > text) return strcspn(from, "?#");
    return presigned ? (size_t)(presigned - from) : strlen(from);
}

cv_shown_path cv_show_url(const char *text)
{
    cv_shown_path shown = {""};
    const char *from = skip_user(text), *colon = from > text ? strstr(text, "://") : NULL;
    size_t size = size_without_query(text, from), room = sizeof shown.text - 1;
    size_t scheme = colon && colon < from ? (size_t)(colon - text) + 3 : 0;
    char *to = shown.text;
    if (scheme > 0 && scheme + size <= room) {
        memcpy(to, text, scheme);
        to += scheme;
    } else if (size > room) { /* the end identifies the object better than the scheme */
        memcpy(to, "...", 3);
        to += 3;
        from += size - (room - 3);
        size = room - 3;
    }
    for (size_t i = 0; i < size; i++, to++) {
        *to = from[i];
        if ((unsigned char)*to < 0x20 || *to == 0x7f) *to = '?';
    }
    *to = '\0';
    return shown;
}

/* Whether the text has a scheme, known or not. If so, messages must not contain the text's query
 * and password. */
static bool has_scheme(const char *text)
{
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-.";
    size_t scheme = strspn(text, letters);
    return scheme > 1 && strncmp(text + scheme, "://", 3) == 0;
}

/* ---- Paths ---------------------------------------------------------------- */

cv_shown_path cv_show_path(const char *path)
{
    cv_shown_path shown = {""};
    size_t length = strlen(path);
    size_t room = sizeof shown.text - 1;
    if (has_scheme(path)) return cv_show_url(path);
    if (length <= room)
        (void)snprintf(shown.text, sizeof shown.text, "%s", path);
    else
        (void)snprintf(shown.text, sizeof shown.text, "...%s", path + length - (room - 3));
    return shown;
}

cv_status cv_strip_slashes(const char *path, char **out, cv_error *err)
{
    size_t length = strlen(path);
    *out = cv_strdup(path);
    if (!*out) return cv_fail_memory(err, length + 1, "a path");
    cv_os_use_slashes(*out);
    while (length > 1 && (*out)[length - 1] == '/') length--;
    (*out)[length] = '\0';
    return CV_OK;
}

cv_status cv_fail_open(cv_error *err, int sys_errno, const char *path)
{
    cv_shown_path shown = cv_show_path(path);
    bool is_missing = sys_errno == ENOENT || sys_errno == ENOTDIR;
    if (is_missing && has_scheme(path))
        return cv_fail(err, CATERVA_EUNSUPPORTED, -1,
                       "%s: supported URLs begin with http://, https:// or s3://",
                       shown.text);
    if (is_missing)
        return cv_fail(err, CATERVA_ENOTFOUND, -1, "%s does not exist", shown.text);
    return cv_fail_sys(err, sys_errno, "cannot open %s", shown.text);
}

cv_status cv_fail_lock(cv_error *err, int sys_errno, const char *path)
{
    cv_shown_path shown = cv_show_path(path);
    if (sys_errno == EWOULDBLOCK || sys_errno == EAGAIN)
        return cv_fail(err, CATERVA_EBUSY, -1, "%s is open for writing elsewhere",
                       shown.text);
    return cv_fail_sys(err, sys_errno, "cannot lock %s", shown.text);
}

cv_status cv_refuse_url(const char *path, cv_error *err)
{
    if (!has_scheme(path)) return CV_OK;
    return cv_fail(err, CATERVA_EREADONLY, -1, "%s: a URL can only be read",
                   cv_show_path(path).text);
}

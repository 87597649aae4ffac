/* Room: remote. Parses server replies: dates, status line and header fields, and XML documents of
 * S3; and judges whether a reply is what was requested (RFC 9110). Replies are hostile input: pure
 * functions, with fuzz targets. Independent of connections, retries and redirects. */
#include "remote/http.h"

#include "base/os_file.h"

#include <string.h>

/* ---- Dates ------------------------------------------------------------------ */

typedef struct parts {
    int year, month, day, hour, minute, second;
} parts;

/* Date formats of RFC 9110 section 5.6.7. '*' matches letters, '#' the name of a month, and D Y h m
 * s digits of a number, the first of which may be a blank. Other characters match themselves. */
static const char *const forms[] = {
    "*, DD # YYYY hh:mm:ss GMT", /* the current format; the others are obsolete */
    "*, DD-#-YY hh:mm:ss GMT",
    "* # DD hh:mm:ss YYYY",
};

static bool is_letter(char c) { return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z'); }

static int month_of(const char *name)
{
    static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    for (int i = 0; i < 12; i++)
        if (memcmp(months + 3 * i, name, 3) == 0) return i + 1;
    return 0;
}

static int *number_of(parts *p, char letter)
{
    switch (letter) {
    case 'D': return &p->day;
    case 'Y': return &p->year;
    case 'h': return &p->hour;
    case 'm': return &p->minute;
    case 's': return &p->second;
    default: return NULL;
    }
}

static bool take_digit(char c, bool is_first, int *number)
{
    if (c == ' ' && is_first) return true;
    if (c < '0' || c > '9') return false;
    *number = 10 * *number + (c - '0');
    return true;
}

static bool match(const char *form, const char *at, const char *end, parts *out)
{
    *out = (parts){0};
    for (const char *f = form; *f; f++) {
        int *number = number_of(out, *f);
        bool is_first = f == form || f[-1] != *f;
        if (*f == '*') {
            while (at < end && is_letter(*at)) at++;
        } else if (*f == '#') {
            if (end - at < 3 || (out->month = month_of(at)) == 0) return false;
            at += 3;
        } else if (at == end || !(number ? take_digit(*at, is_first, number) : *at == *f)) {
            return false;
        } else {
            at++;
        }
    }
    return at == end;
}

/* Returns days since 1970 in the Gregorian calendar, with years that begin in March. */
static int64_t days_of(const parts *p)
{
    int64_t year = p->month > 2 ? p->year : p->year - 1;
    int64_t month = (p->month + 9) % 12;
    return 365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + p->day -
           1 - 719468;
}

/* Parses a date, in 1970 or later, as seconds since 1970; false if it is invalid. */
static bool parse_date(const char *text, size_t size, int64_t *out)
{
    parts p = {0};
    size_t i = 0, n = sizeof forms / sizeof forms[0];
    while (i < n && !match(forms[i], text, text + size, &p)) i++;
    if (i == n) return false;
    if (p.year < 100) p.year += p.year < 70 ? 2000 : 1900; /* years of two digits */
    bool is_good = p.year >= 1970 && p.day >= 1 && p.day <= 31 && p.hour < 24 &&
                   p.minute < 60 && p.second <= 60;
    if (!is_good) return false;
    *out = ((days_of(&p) * 24 + p.hour) * 60 + p.minute) * 60 + p.second;
    return true;
}

/* ---- Text ------------------------------------------------------------------- */

typedef struct text {
    const char *at, *end;
} text;

static bool begins(text t, const char *word)
{
    for (; *word; word++, t.at++)
        if (t.at == t.end || cv_lower(*t.at) != *word) return false;
    return true;
}

static bool equals(text t, const char *word)
{
    return (size_t)(t.end - t.at) == strlen(word) && begins(t, word);
}

static text strip(text t)
{
    while (t.at < t.end && (*t.at == ' ' || *t.at == '\t')) t.at++;
    while (t.end > t.at && (unsigned char)t.end[-1] <= ' ') t.end--;
    return t;
}

/* Takes a number. False: it has no digit, or exceeds 63 bits. */
static bool take_number(text *t, uint64_t *out)
{
    const char *begin = t->at;
    *out = 0;
    for (; t->at < t->end && *t->at >= '0' && *t->at <= '9'; t->at++) {
        if (*out > (uint64_t)INT64_MAX / 10 - 1) return false;
        *out = 10 * *out + (uint64_t)(*t->at - '0');
    }
    return t->at > begin;
}

static bool take_char(text *t, char c)
{
    if (t->at == t->end || *t->at != c) return false;
    t->at++;
    return true;
}

static bool is_number(text t, uint64_t *out) { return take_number(&t, out) && t.at == t.end; }

/* ---- Fields ----------------------------------------------------------------- */

static void take_length(text value, cv_reply *out)
{
    uint64_t length;
    bool good = is_number(value, &length) && (!out->has_length || out->length == length);
    if (!good) out->is_malformed = true;
    out->has_length = good;
    out->length = good ? length : 0;
}

/* Takes "bytes 0-9/100". A star may replace the total or, with status 416, the range. */
static void take_range(text value, cv_reply *out)
{
    uint64_t first, last, total = UINT64_MAX;
    bool is_known = begins(value, "bytes ") && !out->has_range;
    value.at += is_known ? 6 : 0;
    value = strip(value);
    if (is_known && take_char(&value, '*')) {
        if (take_char(&value, '/') && is_number(value, &total)) out->total = total;
        return;
    }
    bool good = is_known && take_number(&value, &first) && take_char(&value, '-') &&
                take_number(&value, &last) && take_char(&value, '/') && first <= last;
    good = good && (equals(value, "*") || (is_number(value, &total) && last < total));
    out->has_range = good;
    if (!good) {
        out->is_malformed = true;
        return;
    }
    out->first = first;
    out->last = last;
    out->total = total;
}

/* Copies the text; writes "" if it does not fit or is not printable ASCII. */
static void take_text(text value, char *out, size_t room)
{
    size_t size = (size_t)(value.end - value.at);
    for (const char *c = value.at; c < value.end; c++)
        if ((unsigned char)*c < 0x20 || (unsigned char)*c >= 0x7f) size = room;
    if (size >= room) size = 0;
    memcpy(out, value.at, size);
    out[size] = '\0';
}

static bool is_quoted(const char *etag)
{
    if (strncmp(etag, "W/", 2) == 0) etag += 2;
    size_t size = strlen(etag);
    return size >= 2 && etag[0] == '"' && strchr(etag + 1, '"') == etag + size - 1;
}

static void take_etag(text value, cv_reply *out)
{
    char before[CV_ETAG_SIZE];
    memcpy(before, out->etag, sizeof before);
    take_text(value, out->etag, sizeof out->etag);
    if (!is_quoted(out->etag)) out->etag[0] = '\0';
    if (*before && strcmp(before, out->etag) != 0) out->is_malformed = true;
}

/* Takes "multipart/byteranges; boundary=x"; the boundary may be in quotes. */
static void take_type(text value, cv_reply *out)
{
    static const char key[] = "boundary=";
    char before[CV_BOUNDARY_SIZE];
    memcpy(before, out->boundary, sizeof before);
    out->boundary[0] = '\0';
    out->is_multipart = begins(value, "multipart/");
    bool has_parts = begins(value, "multipart/byteranges");
    while (has_parts && value.at < value.end) {
        if (*value.at++ != ';') continue;
        text word = strip(value);
        if (!begins(word, key)) continue;
        word.at += sizeof key - 1;
        bool is_quoted = take_char(&word, '"');
        const char *end = word.at;
        while (end < word.end && !strchr(is_quoted ? "\"" : ";, \t", *end)) end++;
        word.end = end;
        take_text(word, out->boundary, sizeof out->boundary);
        break;
    }
    if (*before && strcmp(before, out->boundary) != 0) out->is_malformed = true;
}

/* Returns how many ranges of one request "nginx/1.22.1" or "Apache/2.4.57 (Debian)" accepts; 0: not
 * known. Known servers support multi-range requests unless configured otherwise. Apache accepts 200
 * ranges; lighttpd ignores ranges after the tenth. */
static int ranges_of_product(text product)
{
    static const struct {
        const char *name;
        int most;
    } known[] = {{"nginx", 200},
                 {"openresty", 200},
                 {"apache", 200},
                 {"caddy", 200},
                 {"lighttpd", 10}};
    const char *end = product.at;
    while (end < product.end && !strchr("/ \t", *end)) end++;
    product.end = end;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (equals(product, known[i].name)) return known[i].most;
    return 0;
}

static void take_server(text value, cv_reply *out)
{
    if (out->most_ranges > 0) out->is_relayed = true; /* two Server fields */
    out->most_ranges = ranges_of_product(value);
    if (out->most_ranges == 0) out->is_relayed = true;
}

/* Whether caches or object stores set this field. If so, another server may have made the reply. */
static bool is_of_relay(text name)
{
    static const char *const whole[] = {"via",       "age",         "x-cache",
                                        "x-varnish", "x-served-by", "cf-ray"};
    static const char *const beginnings[] = {"x-amz-", "x-goog-", "x-ms-"};
    for (size_t i = 0; i < sizeof whole / sizeof whole[0]; i++)
        if (equals(name, whole[i])) return true;
    for (size_t i = 0; i < sizeof beginnings / sizeof beginnings[0]; i++)
        if (begins(name, beginnings[i])) return true;
    return false;
}

/* Takes Retry-After: a number of seconds, or a date. */
static void take_retry(text value, cv_reply *out)
{
    uint64_t seconds = 0;
    out->retry_at = 0;
    if (!is_number(value, &seconds))
        (void)parse_date(value.at, (size_t)(value.end - value.at), &out->retry_at);
    out->retry_after = seconds < UINT32_MAX ? (uint32_t)seconds : UINT32_MAX;
}

static void take_field(text name, text value, cv_reply *out)
{
    if (is_of_relay(name)) out->is_relayed = true;
    if (equals(name, "content-length"))
        take_length(value, out);
    else if (equals(name, "content-range"))
        take_range(value, out);
    else if (equals(name, "content-encoding"))
        out->is_encoded = out->is_encoded || !equals(value, "identity");
    else if (equals(name, "content-type"))
        take_type(value, out);
    else if (equals(name, "etag"))
        take_etag(value, out);
    else if (equals(name, "server"))
        take_server(value, out);
    else if (equals(name, "last-modified"))
        take_text(value, out->modified, sizeof out->modified);
    else if (equals(name, CV_WRITE_ID_FIELD))
        take_text(value, out->write_id, sizeof out->write_id);
    else if (equals(name, "retry-after"))
        take_retry(value, out);
    else if (equals(name, "date"))
        (void)parse_date(value.at, (size_t)(value.end - value.at), &out->date);
}

static text take_line(text *rest)
{
    text line = {rest->at, rest->at};
    size_t left = (size_t)(rest->end - rest->at);
    const char *end = left > 0 ? memchr(rest->at, '\n', left) : NULL;
    line.end = end ? end : rest->end;
    rest->at = end ? end + 1 : rest->end;
    return strip(line);
}

/* Takes a line like "HTTP/1.1 206 Partial Content". */
static bool take_status(text line, int *out)
{
    uint64_t status;
    if (!begins(line, "http/")) return false;
    while (line.at < line.end && *line.at != ' ') line.at++;
    line = strip(line);
    const char *digits = line.at;
    if (!take_number(&line, &status) || line.at - digits != 3 || status < 100) return false;
    if (line.at < line.end && *line.at != ' ') return false;
    *out = (int)status;
    return true;
}

cv_status cv_reply_parse(const char *bytes, size_t size, cv_reply *out, cv_error *err)
{
    text rest = {bytes, bytes + size};
    *out = (cv_reply){.total = UINT64_MAX};
    if (!take_status(take_line(&rest), &out->status))
        return cv_fail(err, CATERVA_EIO, -1, "the server's answer is not HTTP");
    while (rest.at < rest.end) {
        text line = take_line(&rest), name = line;
        size_t left = (size_t)(line.end - line.at);
        const char *colon = left > 0 ? memchr(line.at, ':', left) : NULL;
        if (!colon) continue;
        name.end = colon;
        line.at = colon + 1;
        take_field(name, strip(line), out);
    }
    if (out->is_relayed) out->most_ranges = 0;
    return CV_OK;
}

uint32_t cv_reply_wait(const cv_reply *r, int64_t now)
{
    if (r->retry_at == 0) return r->retry_after;
    int64_t seconds = r->retry_at - (r->date ? r->date : now);
    if (seconds < 0) return 0;
    return seconds < UINT32_MAX ? (uint32_t)seconds : UINT32_MAX;
}

/* ---- Judging ---------------------------------------------------------------- */

/* Maximum size of an object that is accepted whole from a server that ignores ranges. */
enum { MOST_WHOLE = 1 << 20 };

bool cv_etag_is_strong(const char *etag) { return etag[0] == '"'; }

static cv_verdict failed(cv_error *err, cv_status code, const char *name, const char *what)
{
    (void)cv_fail(err, code, -1, "%s: %s", name, what);
    return CV_REPLY_FAILED;
}

static cv_verdict changed(cv_error *err, const char *name)
{
    return failed(err, CATERVA_EIO, name, "it changed on the server since it was opened");
}

bool cv_reply_is_busy(int status)
{
    if (status == 408 || status == 429) return true;
    return status >= 500 && status != 501 && status != 505 && status != 507;
}

/* Reports a failed read, not CATERVA_ENOTFOUND, because the object existed when it was opened. */
static cv_verdict gone(const cv_reply *r, const char *name, cv_error *err)
{
    bool is_forbidden = r->status == 403;
    (void)cv_fail(err, CATERVA_EIO, -1, "%s: %s (status %d)", name,
                  is_forbidden ? "the server now forbids reading it"
                               : "it is no longer on the server",
                  r->status);
    if (err) err->sys_errno = is_forbidden ? EACCES : 0;
    return CV_REPLY_FAILED;
}

static cv_verdict forbidden(const char *name, cv_error *err)
{
    (void)failed(err, CATERVA_ENOTFOUND, name, "forbidden or absent (status 403)");
    if (err) err->sys_errno = EACCES;
    return CV_REPLY_FAILED;
}

static cv_verdict judge_status(const cv_reply *r, const cv_version *known, const char *name,
                               cv_error *err)
{
    int status = r->status;
    bool is_known = known->size != UINT64_MAX;
    if (status >= 500 || status < 200 || cv_reply_is_busy(status)) {
        (void)cv_fail(err, CATERVA_EIO, -1, "%s: the server answers with status %d", name,
                      status);
        return cv_reply_is_busy(status) ? CV_REPLY_RETRY : CV_REPLY_FAILED;
    }
    switch (status) {
    case 301:
    case 302:
    case 303:
    case 307:
    case 308:
        (void)cv_fail(err, CATERVA_EIO, -1, "%s: the server redirects with status %d", name,
                      status);
        return CV_REPLY_REDIRECT;
    case 401:
        (void)failed(err, CATERVA_EIO, name, "the server requires credentials (status 401)");
        if (err) err->sys_errno = EACCES;
        return CV_REPLY_FAILED;
    case 403: return is_known ? gone(r, name, err) : forbidden(name, err);
    case 404:
    case 410:
        if (is_known) return gone(r, name, err);
        return failed(err, CATERVA_ENOTFOUND, name, "it does not exist on the server");
    case 412: return changed(err, name);
    default:
        (void)cv_fail(err, CATERVA_EIO, -1, "%s: the server answers with status %d", name,
                      status);
        return CV_REPLY_FAILED;
    }
}

/* Whether the reply is of another version. Compares sizes, then ETags or, without an ETag, dates.
 * If the known version has neither, store.c compares seals later. */
static bool is_other(const cv_reply *r, uint64_t total, const cv_version *known)
{
    if (known->size == UINT64_MAX) return false;
    if (total != known->size) return true;
    if (*known->etag) return strcmp(r->etag, known->etag) != 0;
    return *known->modified && strcmp(r->modified, known->modified) != 0;
}

static bool resolve(const cv_range_request *request, uint64_t total, cv_content_range *out)
{
    uint64_t first = request->first, end = request->end < total ? request->end : total;
    if (request->is_suffix) {
        first = total - end;
        end = total;
    }
    if (first >= end) return false;
    *out = (cv_content_range){first, end - first, total};
    return true;
}

static cv_verdict judge_range(const cv_reply *r, const cv_range_request *request,
                              const char *name, cv_content_range *content, cv_error *err)
{
    uint64_t size = r->last - r->first + 1;
    if (!r->has_range)
        return failed(err, CATERVA_EIO, name,
                      "the server sends a partial body without Content-Range");
    if (r->total == UINT64_MAX)
        return failed(err, CATERVA_EIO, name, "the server does not state its size");
    if (is_other(r, r->total, request->version)) return changed(err, name);
    if (!resolve(request, r->total, content) || r->first != content->first ||
        size != content->size) {
        (void)cv_fail(
            err, CATERVA_EIO, -1,
            "%s: the server sends bytes %llu to %llu of %llu, which were not requested", name,
            (unsigned long long)r->first, (unsigned long long)r->last,
            (unsigned long long)r->total);
        return CV_REPLY_FAILED;
    }
    if (!r->has_length || r->length == size) return CV_REPLY_ACCEPT;
    (void)cv_fail(err, CATERVA_EIO, -1,
                  "%s: the server announces %llu bytes for a range of %llu", name,
                  (unsigned long long)r->length, (unsigned long long)size);
    return CV_REPLY_FAILED;
}

static cv_verdict judge_whole(const cv_reply *r, const cv_range_request *request,
                              const char *name, cv_content_range *content, cv_error *err)
{
    cv_content_range wanted;
    if (r->has_length && is_other(r, r->length, request->version)) return changed(err, name);
    if (r->has_length && r->length == 0)
        return failed(err, CATERVA_ECORRUPT, name, "it is empty");
    bool fits = r->has_length && resolve(request, r->length, &wanted) &&
                (r->length <= MOST_WHOLE || r->length / 2 <= wanted.size);
    if (!fits) {
        bool is_known = request->version->size != UINT64_MAX;
        (void)failed(err, is_known ? CATERVA_EIO : CATERVA_EUNSUPPORTED, name,
                     "the server does not support range requests");
        return CV_REPLY_NO_RANGES;
    }
    *content = (cv_content_range){0, r->length, r->length};
    return CV_REPLY_ACCEPT;
}

/* Judges status 416, which means damage only if the object ends before the requested bytes. */
static cv_verdict judge_416(const cv_reply *r, const cv_range_request *request,
                            const char *name, cv_error *err)
{
    uint64_t first = request->is_suffix ? 0 : request->first;
    if (request->version->size != UINT64_MAX) return changed(err, name);
    if (r->total > first)
        (void)failed(
            err, CATERVA_EIO, name,
            "it is empty, or the server does not support range requests (status 416)");
    else if (r->total == 0)
        (void)failed(err, CATERVA_ECORRUPT, name, "it is empty");
    else
        (void)cv_fail(err, CATERVA_ECORRUPT, -1, "%s: it ends at byte %llu, before byte %llu",
                      name, (unsigned long long)r->total, (unsigned long long)first);
    return CV_REPLY_NO_RANGES;
}

cv_verdict cv_reply_judge(const cv_reply *r, const cv_range_request *request,
                          const char *name, cv_content_range *content, cv_error *err)
{
    if (r->status == 416) return judge_416(r, request, name, err);
    if (r->status != 206 && r->status != 200)
        return judge_status(r, request->version, name, err);
    if (r->is_encoded)
        return failed(err, CATERVA_EIO, name,
                      "the server sends it compressed (Content-Encoding), which was not "
                      "requested");
    if (r->is_malformed || r->is_multipart)
        return failed(err, CATERVA_EIO, name,
                      r->is_malformed ? "the server's answer contradicts itself"
                                      : "the server sends several ranges instead of one");
    if (r->status == 206 || r->has_range) return judge_range(r, request, name, content, err);
    return judge_whole(r, request, name, content, err);
}

cv_verdict cv_reply_judge_multirange(const cv_reply *r, const cv_version *known,
                                     const char *name, cv_error *err)
{
    bool is_parts = r->status == 206 && r->is_multipart && *r->boundary && !r->has_range;
    bool is_redirect = r->status >= 300 && r->status < 400;
    if (r->status == 412 || is_redirect || cv_reply_is_busy(r->status))
        return judge_status(r, known, name, err);
    if (is_parts && !r->is_malformed && !r->is_encoded)
        return is_other(r, known->size, known) ? changed(err, name) : CV_REPLY_ACCEPT;
    (void)cv_fail(err, CATERVA_EIO, -1,
                  "%s: the server does not support multi-range requests (status %d)", name,
                  r->status);
    return CV_REPLY_NO_MULTIRANGE;
}

void cv_reply_version(const cv_reply *r, const cv_content_range *content, cv_version *out)
{
    out->size = content->total;
    memcpy(out->etag, r->etag, sizeof out->etag);
    memcpy(out->modified, r->modified, sizeof out->modified);
    memcpy(out->write_id, r->write_id, sizeof out->write_id);
}

/* ---- XML -------------------------------------------------------------------- */

static const char *find_char(cv_xml t, char c)
{
    return t.at < t.end ? memchr(t.at, c, (size_t)(t.end - t.at)) : NULL;
}

static const char *match_name(cv_xml t, const char *name)
{
    size_t size = strlen(name);
    if ((size_t)(t.end - t.at) <= size + 1 || memcmp(t.at + 1, name, size) != 0) return NULL;
    const char *behind = t.at + 1 + size;
    return *behind == '>' || *behind == ' ' || *behind == '\t' || *behind == '\n' ? behind
                                                                                  : NULL;
}

static const char *find_end(cv_xml t, const char *name)
{
    size_t size = strlen(name);
    while ((t.at = find_char(t, '<'))) {
        if ((size_t)(t.end - t.at) < size + 3) return NULL;
        if (t.at[1] == '/' && memcmp(t.at + 2, name, size) == 0 && t.at[2 + size] == '>')
            return t.at;
        t.at++;
    }
    return NULL;
}

bool cv_xml_next(cv_xml *rest, const char *name, cv_xml *out)
{
    while ((rest->at = find_char(*rest, '<'))) {
        const char *behind = match_name(*rest, name);
        rest->at++;
        if (!behind) continue;
        rest->at = find_char((cv_xml){behind, rest->end}, '>');
        if (!rest->at) break;
        rest->at++;
        const char *end = find_end(*rest, name);
        if (!end) break;
        *out = (cv_xml){rest->at, end};
        rest->at = end;
        return true;
    }
    rest->at = rest->end;
    return false;
}

static const struct {
    const char *text;
    char c;
} references[] = {{"&amp;", '&'},   {"&lt;", '<'},  {"&gt;", '>'},  {"&quot;", '"'},
                  {"&apos;", '\''}, {"&#34;", '"'}, {"&#39;", '\''}};

/* Takes a character or a reference to one; returns 0 for an unknown reference. */
static char take_xml_char(cv_xml *t)
{
    if (*t->at != '&') return *t->at++;
    for (size_t i = 0; i < sizeof references / sizeof references[0]; i++) {
        size_t size = strlen(references[i].text);
        if ((size_t)(t->end - t->at) < size || memcmp(t->at, references[i].text, size) != 0)
            continue;
        t->at += size;
        return references[i].c;
    }
    return '\0';
}

bool cv_xml_text(cv_xml document, const char *name, char *out, size_t room)
{
    cv_xml inside;
    size_t size = 0;
    *out = '\0';
    if (!cv_xml_next(&document, name, &inside)) return false;
    while (inside.at < inside.end) {
        char c = take_xml_char(&inside);
        if ((unsigned char)c < 0x20 || (unsigned char)c >= 0x7f || size + 1 >= room) {
            *out = '\0';
            return false;
        }
        out[size++] = c;
    }
    out[size] = '\0';
    return true;
}

void cv_xml_refusal(const void *answer, size_t size, char out[CV_XML_REFUSAL_SIZE])
{
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    cv_xml document = {answer, answer ? (const char *)answer + size : answer};
    out[0] = ',';
    out[1] = ' ';
    bool has_name = answer && cv_xml_text(document, "Code", out + 2, CV_XML_REFUSAL_SIZE - 2);
    if (!has_name || out[2] == '\0' || out[2 + strspn(out + 2, letters)] != '\0') *out = '\0';
}

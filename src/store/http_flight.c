/* Room: store. See http_flight.h. When an attempt is made, and whether another one is, is for
 * http_wire.c. */
#include "store/http_flight.h"

#ifdef CATERVA_HAS_CURL

#include <stdio.h>
#include <string.h>

enum { BUFFER_SIZE = 128 * 1024 };

/* How long a server may take to say that it wants a body, where it is asked. */
enum { CONTINUE_MS = 500 };

/* Slower than so many bytes in a second is as bad as nothing. */
enum { STALLED = 256, LONGEST = 100000000 };

/* ---- libcurl's calls -------------------------------------------------------- */

static size_t take_header(char *line, size_t one, size_t size, void *context)
{
    cv_flight *f = context;
    (void)one;
    return f->wire && f->wire->header(f->wire, line, size) ? size : size + 1;
}

static size_t take_body(char *bytes, size_t one, size_t size, void *context)
{
    cv_flight *f = context;
    (void)one;
    cv_wire_next next =
        f->wire ? f->wire->body(f->wire, (const uint8_t *)bytes, size) : CV_WIRE_ENDS;
    f->is_paused = next == CV_WIRE_PAUSES;
    if (f->is_paused) return CURL_WRITEFUNC_PAUSE;
    return next == CV_WIRE_GOES_ON ? size : size + 1; /* which it takes for a failure */
}

static size_t give_body(char *to, size_t one, size_t most, void *context)
{
    cv_flight *f = context;
    uint64_t left = f->body_size - f->body_pos;
    size_t size = left < one * most ? (size_t)left : one * most;
    if (size == 0) return 0;
    if (!f->wire || !f->wire->give(f->wire, f->body_pos, (uint8_t *)to, size))
        return CURL_READFUNC_ABORT;
    f->body_pos += size;
    return size;
}

/* A connection that was kept may turn out to be closed when bytes are on their way. */
static int seek_body(void *context, curl_off_t pos, int origin)
{
    cv_flight *f = context;
    if (origin != SEEK_SET || pos < 0 || (uint64_t)pos > f->body_size)
        return CURL_SEEKFUNC_FAIL;
    f->body_pos = (uint64_t)pos;
    return CURL_SEEKFUNC_OK;
}

/* ---- The beginning ------------------------------------------------------------ */

static bool add_fields(cv_flight *f, const cv_curl *curl, const cv_buffer *fields)
{
    for (size_t at = 0; at < fields->size;) {
        const char *field = (const char *)fields->data + at;
        struct curl_slist *longer = curl->slist_append(f->fields, field);
        if (!longer) return false;
        f->fields = longer;
        at += strlen(field) + 1;
    }
    return true;
}

/* Texts are copied. */
static bool set_text(const cv_flight *f, const cv_curl *curl, CURLoption option,
                     const char *text)
{
    return curl->easy_setopt(f->easy, option, text) != CURLE_OUT_OF_MEMORY;
}

static bool set_body(const cv_flight *f, const cv_curl *curl, const cv_wire_setup *s)
{
    CURLcode (*set)(CURL *, CURLoption, ...) = curl->easy_setopt;
    if (!s->method) return true;
    if (s->has_body) {
        set(f->easy, CURLOPT_UPLOAD, 1L);
        set(f->easy, CURLOPT_UPLOAD_BUFFERSIZE, (long)BUFFER_SIZE);
        set(f->easy, CURLOPT_INFILESIZE_LARGE, (curl_off_t)s->body_size);
        set(f->easy, CURLOPT_READFUNCTION, give_body);
        set(f->easy, CURLOPT_READDATA, f);
        set(f->easy, CURLOPT_SEEKFUNCTION, seek_body);
        set(f->easy, CURLOPT_SEEKDATA, f);
        set(f->easy, CURLOPT_EXPECT_100_TIMEOUT_MS, (long)CONTINUE_MS);
    }
    return set_text(f, curl, CURLOPT_CUSTOMREQUEST, s->method);
}

/* A file is said in place of all that the system trusts, of which libcurl may know a folder,
 * too. One that was built without folders says so and has none. */
static bool set_trust(const cv_flight *f, const cv_curl *curl, const char *ca_file)
{
    CURLcode (*set)(CURL *, CURLoption, ...) = curl->easy_setopt;
    set(f->easy, CURLOPT_SSL_VERIFYPEER, 1L);
    set(f->easy, CURLOPT_SSL_VERIFYHOST, 2L);
    if (!ca_file) return true;
    set(f->easy, CURLOPT_CAPATH, NULL);
    set(f->easy, CURLOPT_PROXY_CAPATH, NULL);
    return set_text(f, curl, CURLOPT_CAINFO, ca_file) &&
           set_text(f, curl, CURLOPT_PROXY_CAINFO, ca_file);
}

/* Redirects are followed by who judges replies, and by nobody else. */
static bool set_options(const cv_flight *f, const cv_curl *curl, const cv_wire_setup *s)
{
    CURLcode (*set)(CURL *, CURLoption, ...) = curl->easy_setopt;
    long stall = (s->stall_ms + 999) / 1000;
    set(f->easy, CURLOPT_PATH_AS_IS, 1L);
    set(f->easy, CURLOPT_PROTOCOLS, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
    set(f->easy, CURLOPT_FOLLOWLOCATION, 0L);
    set(f->easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_2TLS);
    set(f->easy, CURLOPT_HTTPHEADER, f->fields);
    set(f->easy, CURLOPT_NOSIGNAL, 1L);
    set(f->easy, CURLOPT_BUFFERSIZE, (long)BUFFER_SIZE);
    set(f->easy, CURLOPT_HTTP09_ALLOWED, 0L);
    set(f->easy, CURLOPT_TCP_KEEPALIVE, 1L);
    set(f->easy, CURLOPT_CONNECTTIMEOUT_MS, (long)s->connect_ms);
    set(f->easy, CURLOPT_LOW_SPEED_LIMIT, s->is_slow ? 1L : (long)STALLED);
    set(f->easy, CURLOPT_LOW_SPEED_TIME, s->is_slow && stall < LONGEST ? 10 * stall : stall);
    set(f->easy, CURLOPT_HEADERFUNCTION, take_header);
    set(f->easy, CURLOPT_HEADERDATA, f);
    set(f->easy, CURLOPT_WRITEFUNCTION, take_body);
    set(f->easy, CURLOPT_WRITEDATA, f);
    set(f->easy, CURLOPT_PRIVATE, f);
    set(f->easy, CURLOPT_ERRORBUFFER, f->reason);
    return set_text(f, curl, CURLOPT_URL, s->url) && set_trust(f, curl, s->ca_file) &&
           set_body(f, curl, s);
}

bool cv_flight_set(cv_flight *f, const cv_curl *curl, const cv_wire_setup *setup,
                   bool may_share)
{
    if (!add_fields(f, curl, &setup->fields)) return false;
    f->body_size = setup->body_size;
    if (!set_options(f, curl, setup)) return false;
    (void)curl->easy_setopt(f->easy, CURLOPT_PIPEWAIT, may_share ? 1L : 0L);
    return true;
}

/* ---- The end ------------------------------------------------------------------ */

static bool is_broken(CURLcode code)
{
    switch (code) {
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_CONNECT:
    case CURLE_PARTIAL_FILE:
    case CURLE_OPERATION_TIMEDOUT:
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_GOT_NOTHING:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
    case CURLE_HTTP2:
    case CURLE_HTTP2_STREAM: return true;
    default: return false;
    }
}

/* What begins an answer is none of HTTP: on a connection that was used before this is what was
 * left of an answer that had more bytes than it announced, and no word about the next one. */
static bool is_no_answer(CURLcode code)
{
    return code == CURLE_UNSUPPORTED_PROTOCOL || code == CURLE_WEIRD_SERVER_REPLY;
}

static bool was_used_before(const cv_flight *f, const cv_curl *curl)
{
    long n_connects = 1;
    curl->easy_getinfo(f->easy, CURLINFO_NUM_CONNECTS, &n_connects);
    return n_connects == 0;
}

static bool is_untrusted(CURLcode code)
{
    return code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_SSL_ISSUER_ERROR;
}

static uint64_t time_of(CURL *easy, const cv_curl *curl, CURLINFO info)
{
    curl_off_t us = 0;
    curl->easy_getinfo(easy, info, &us);
    return us > 0 ? (uint64_t)us * 1000 : 0;
}

/* Behind the first line of an answer this is libcurl's word for a field above 100 KiB, too. */
static bool is_long_field(const cv_flight *f, const cv_curl *curl, CURLcode code)
{
    long answer = 0; /* a status that has come */
    if (code == CURLE_OUT_OF_MEMORY)
        curl->easy_getinfo(f->easy, CURLINFO_RESPONSE_CODE, &answer);
    return answer > 0;
}

/* Details of certificates say no secrets, others may. */
static const char *reason_of(const cv_flight *f, const cv_curl *curl, CURLcode code)
{
    static const char known[] = "SSL certificate problem: ";
    const char *reason = f->reason;
    if (is_long_field(f, curl, code)) return "a field of the server's answer is too long";
    if (is_no_answer(code) && time_of(f->easy, curl, CURLINFO_PRETRANSFER_TIME_T) > 0)
        return "what the server answers is not HTTP";
    bool is_told = is_untrusted(code) || code == CURLE_SSL_CACERT_BADFILE;
    if (!is_told || !*reason) return curl->easy_strerror(code);
    return strncmp(reason, known, sizeof known - 1) == 0 ? reason + sizeof known - 1 : reason;
}

void cv_flight_end(const cv_flight *f, const cv_curl *curl, CURLcode code, cv_wire_end *end)
{
    char *redirect = NULL;
    curl->easy_getinfo(f->easy, CURLINFO_REDIRECT_URL, &redirect);
    uint64_t sent = time_of(f->easy, curl, CURLINFO_PRETRANSFER_TIME_T);
    uint64_t first = time_of(f->easy, curl, CURLINFO_STARTTRANSFER_TIME_T);
    bool is_left_over = is_no_answer(code) && was_used_before(f, curl);
    *end = (cv_wire_end){.is_whole = code == CURLE_OK,
                         .is_broken = is_broken(code) || is_left_over,
                         .was_connected = sent > 0,
                         .is_untrusted = is_untrusted(code),
                         .lacks_memory =
                             code == CURLE_OUT_OF_MEMORY && !is_long_field(f, curl, code),
                         .why = reason_of(f, curl, code),
                         .redirect = redirect,
                         .first_byte_ns = first > sent ? first - sent : 0,
                         .total_ns = time_of(f->easy, curl, CURLINFO_TOTAL_TIME_T)};
}

bool cv_flight_is_multiplexed(const cv_flight *f, const cv_curl *curl)
{
    long version = 0;
    curl->easy_getinfo(f->easy, CURLINFO_HTTP_VERSION, &version);
    return version >= CURL_HTTP_VERSION_2_0;
}

#endif

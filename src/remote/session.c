/* Room: remote. INTRO of remote/session */
#include "remote/session.h"

#include "base/heap.h"
#include "base/os.h"
#include "base/os_dir.h"
#include "base/os_process.h"
#include "remote/url.h"
#include "store/path.h"

#include <caterva_remote.h>
#include <stdio.h>
#include <string.h>

/* ---- Http several ----
 *
 * What a session knows of its server, and who waits to know it. What a request is,
 * and how it is told that a server does not send parts, is not known here. */

static void cv_several_init(cv_several *s, bool is_refused)
{
    cv_mutex_init(&s->lock);
    s->state = is_refused ? CV_SEVERAL_REFUSED : CV_SEVERAL_UNKNOWN;
    s->first = s->last = NULL;
    s->turn = 0;
    s->most = SIZE_MAX;
}

static void cv_several_destroy(cv_several *s) { cv_mutex_destroy(&s->lock); }

cv_several_state cv_several_ask(cv_several *s, cv_several_waiter *waiter)
{
    cv_mutex_lock(&s->lock);
    if (s->state == CV_SEVERAL_ASKED && cv_os_has_forked(s->asked)) {
        s->state = CV_SEVERAL_UNKNOWN;
        s->first = s->last = NULL;
    }
    cv_several_state state = s->state;
    if (state == CV_SEVERAL_UNKNOWN) {
        s->state = CV_SEVERAL_ASKED;
        s->asked = cv_os_now();
    }
    if (state == CV_SEVERAL_UNKNOWN || state == CV_SEVERAL_ASKED) {
        waiter->next = NULL;
        waiter->turn = s->turn;
        waiter->is_asking = state == CV_SEVERAL_UNKNOWN;
        if (s->first)
            s->last->next = waiter;
        else
            s->first = waiter;
        s->last = waiter;
    }
    cv_mutex_unlock(&s->lock);
    return state;
}

cv_several_state cv_several_look(cv_several *s)
{
    cv_mutex_lock(&s->lock);
    cv_several_state state = s->state;
    cv_mutex_unlock(&s->lock);
    return state;
}

static void turn_from(cv_several *s, cv_several_state from, cv_several_state to, size_t most)
{
    cv_mutex_lock(&s->lock);
    if (s->state == from) {
        s->state = to;
        if (most < s->most) s->most = most;
    }
    cv_mutex_unlock(&s->lock);
}

void cv_several_expect(cv_several *s, size_t most)
{
    turn_from(s, CV_SEVERAL_UNKNOWN, CV_SEVERAL_EXPECTED, most);
}

void cv_several_confirm(cv_several *s)
{
    turn_from(s, CV_SEVERAL_EXPECTED, CV_SEVERAL_KNOWN, SIZE_MAX);
}

size_t cv_several_most(cv_several *s)
{
    cv_mutex_lock(&s->lock);
    size_t most = s->most;
    cv_mutex_unlock(&s->lock);
    return most;
}

/* One after the other: who is still on the list may leave it while another goes. Those who
 * come to wait from now on have asked for themselves. */
void cv_several_learn(cv_several *s, cv_several_state state)
{
    cv_mutex_lock(&s->lock);
    const uint64_t turn = ++s->turn;
    s->state = state;
    while (s->first && s->first->turn < turn) {
        cv_several_waiter *waiter = s->first;
        s->first = waiter->next;
        cv_mutex_unlock(&s->lock);
        waiter->go(waiter);
        cv_mutex_lock(&s->lock);
    }
    cv_mutex_unlock(&s->lock);
}

bool cv_several_leave(cv_several *s, cv_several_waiter *waiter)
{
    cv_mutex_lock(&s->lock);
    cv_several_waiter **at = &s->first, *before = NULL;
    while (*at && *at != waiter) {
        before = *at;
        at = &before->next;
    }
    bool waits = *at != NULL;
    if (waits) *at = waiter->next;
    if (waits && s->last == waiter) s->last = before;
    cv_mutex_unlock(&s->lock);
    return waits;
}

/* ---- Http session ----
 *
 * Options of remote reading, checked once; and the cost of a request, learnt
 * while they are made. */

/* ---- Options ------------------------------------------------------------------ */

static cv_status check_between(const char *name, int value, int least, int most,
                               cv_error *err)
{
    if (value >= least && value <= most) return CV_OK;
    return cv_fail(err, CATERVA_EINVAL, -1, "remote option %s is %d: %d to %d", name, value,
                   least, most);
}

static cv_status check_endpoint(const char *endpoint, cv_error *err)
{
    cv_url url;
    if (!endpoint) return CV_OK;
    CV_TRY(cv_url_parse(endpoint, &url, err));
    if (url.scheme != CV_SCHEME_S3 && !url.query && url.path_size <= 1) return CV_OK;
    return cv_fail(err, CATERVA_EINVAL, -1,
                   "the endpoint is not \"https://HOST\" or \"http://HOST:PORT\"");
}

static cv_status check_options(const caterva_remote_options *o, cv_error *err)
{
    CV_TRY(check_between("connections", o->connections, 0, 256, err));
    CV_TRY(check_between("connect_timeout_ms", o->connect_timeout_ms, 0, INT32_MAX, err));
    CV_TRY(check_between("stall_timeout_ms", o->stall_timeout_ms, 0, INT32_MAX - 999, err));
    CV_TRY(check_between("retries", o->retries, -1, 20, err));
    CV_TRY(check_between("over_read_percent", o->over_read_percent, -1, 1000000, err));
    CV_TRY(
        check_between("credentials", (int)o->credentials, 0, CATERVA_CREDENTIALS_NONE, err));
    CV_TRY(check_between("path_style", o->path_style, -1, 1, err));
    CV_TRY(check_between("n_headers", o->n_headers, 0, 100, err));
    if (o->cache_bytes < 0)
        return cv_fail(err, CATERVA_EINVAL, -1, "a cache folder of %lld bytes",
                       (long long)o->cache_bytes);
    for (int i = 0; i < o->n_headers; i++)
        CV_TRY(cv_header_check(o->headers ? o->headers[i] : NULL, i, err));
    return CV_OK;
}

static void choose(int *option, int otherwise)
{
    if (*option == 0) *option = otherwise;
    if (*option < 0) *option = 0;
}

static bool copy_text(cv_session *s, const char **text)
{
    if (!*text) return true;
    char *copy = cv_strdup(*text);
    s->texts[s->n_texts++] = copy;
    *text = copy;
    return copy != NULL;
}

/* All texts become the session's; the list of headers is the end of the list of texts. */
static cv_status copy_texts(cv_session *s, cv_error *err)
{
    caterva_remote_options *o = &s->options;
    const char **each[] = {&o->access_key, &o->secret_key, &o->session_token, &o->profile,
                           &o->region,     &o->endpoint,   &o->cache_folder};
    size_t n = sizeof each / sizeof each[0] + (size_t)o->n_headers + 1; /* of find_trust */
    const char *const *headers = o->headers;
    bool good = true;
    s->texts = cv_calloc(n, sizeof *s->texts);
    if (!s->texts) return cv_fail_memory(err, n * sizeof *s->texts, "remote options");
    for (size_t i = 0; i < sizeof each / sizeof each[0]; i++)
        good = copy_text(s, each[i]) && good;
    int first = s->n_texts;
    for (int i = 0; i < o->n_headers; i++) {
        const char *header = headers[i];
        good = copy_text(s, &header) && good;
    }
    o->headers = (const char *const *)(s->texts + first);
    return good ? CV_OK : cv_fail_memory(err, n, "remote options");
}

/* What every program of these is told by, one after the other. */
static char *find_variable(bool is_s3)
{
    static const char *const names[] = {"AWS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE"};
    char *found = NULL;
    for (size_t i = is_s3 ? 0 : 1; !found && i < sizeof names / sizeof names[0]; i++)
        found = cv_os_variable(names[i]);
    return found;
}

/* The file is opened for each connection, maybe elsewhere; that it is there is said now. */
static cv_status find_trust(cv_session *s, cv_error *err)
{
    caterva_remote_options *o = &s->options;
    cv_file file;
    char *found = o->ca_file ? cv_strdup(o->ca_file) : find_variable(s->is_s3);
    if (!found && !o->ca_file) return CV_OK;
    char *path = found ? cv_os_absolute(found) : NULL;
    cv_free(found);
    if (!path) return cv_fail_memory(err, 1, "the path of certificates");
    s->texts[s->n_texts++] = path;
    o->ca_file = path;
    int code = cv_dir_open_file(cv_dir_here, path, CV_OPEN_READ, 0, &file);
    if (code != 0)
        return cv_fail_sys(err, code, "cannot read the certificates in %s",
                           cv_show_path(path).text);
    cv_file_close(&file);
    return CV_OK;
}

static cv_status fill(cv_session *s, cv_error *err)
{
    caterva_remote_options *o = &s->options;
    CV_TRY(check_options(o, err));
    CV_TRY(copy_texts(s, err));
    CV_TRY(find_trust(s, err));
    choose(&o->connections, 16);
    choose(&o->connect_timeout_ms, 10000);
    choose(&o->stall_timeout_ms, 30000);
    choose(&o->retries, 5);
    choose(&o->over_read_percent, 100);
    if (o->cache_bytes == 0) o->cache_bytes = 1 << 30;
    s->limit.most = o->connections;
    if (s->is_s3) CV_TRY(cv_credentials_find(o, &s->credentials, err));
    return check_endpoint(s->is_s3 ? s->credentials.endpoint : o->endpoint, err);
}

cv_status cv_session_new(const caterva_remote_options *options, bool is_s3, cv_session **out,
                         cv_error *err)
{
    static const caterva_remote_options defaults = CATERVA_REMOTE_INIT;
    cv_session *s = cv_calloc(1, sizeof *s);
    if (!s) return cv_fail_memory(err, sizeof *s, "a session");
    s->options = options ? *options : defaults;
    s->is_s3 = is_s3;
    atomic_init(&s->users, 1);
    cv_mutex_init(&s->lock);
    cv_several_init(&s->several, is_s3); /* what speaks S3 sends all of it, or refuses */
    cv_status status = fill(s, err);
    if (status == CV_OK)
        *out = s;
    else
        cv_session_release(s);
    return status;
}

void cv_session_retain(cv_session *s) { atomic_fetch_add(&s->users, 1); }

void cv_session_release(cv_session *s)
{
    if (!s || atomic_fetch_sub(&s->users, 1) > 1) return;
    for (int i = 0; i < s->n_texts; i++) {
        if (s->texts[i]) memset(s->texts[i], 0, strlen(s->texts[i]));
        cv_free(s->texts[i]);
    }
    cv_free(s->texts);
    cv_credentials_free(&s->credentials);
    cv_mutex_destroy(&s->lock);
    cv_several_destroy(&s->several);
    cv_free(s);
}

/* ---- Again ------------------------------------------------------------------------ */

enum { MOST_WAIT_S = 30 };

/* Twice as long after each failure, and by chance up to half as much more or less, so that
 * many who failed together do not come back together. */
int64_t cv_session_pause(cv_session *s, int *failures, uint32_t asked_s)
{
    enum { FIRST_MS = 50, MOST_MS = 5000 };
    if (*failures >= s->options.retries || asked_s > MOST_WAIT_S) return -1;
    ++*failures;
    atomic_fetch_add(&s->retried, 1);
    uint64_t ms = (uint64_t)FIRST_MS << (*failures < 10 ? *failures - 1 : 10);
    if (ms > MOST_MS) ms = MOST_MS;
    uint64_t chance = cv_os_clock_ns() * 0x9E3779B97F4A7C15 ^ (uint64_t)(uintptr_t)failures;
    chance ^= chance >> 29;
    ms = ms / 2 + chance * 0x9E3779B97F4A7C15 % (ms + 1);
    uint64_t asked = (uint64_t)asked_s * 1000;
    return (int64_t)((ms > asked ? ms : asked) * 1000000);
}

void cv_session_count_attempts(cv_error *err, int attempts, uint32_t asked_s)
{
    char times[32] = "", wait[96] = "", reason[sizeof err->message];
    if (attempts > 1) (void)snprintf(times, sizeof times, ", %d times", attempts);
    if (asked_s > MOST_WAIT_S)
        (void)snprintf(wait, sizeof wait,
                       "; the server asks to retry after %u s (at most %d s are waited)",
                       asked_s, MOST_WAIT_S);
    (void)snprintf(reason, sizeof reason, "%s", err->message);
    int room = (int)(sizeof err->message - strlen(times) - strlen(wait)) - 1;
    (void)snprintf(err->message, sizeof err->message, "%.*s%s%s", room, reason, times, wait);
}

/* ---- Costs ---------------------------------------------------------------------- */

/* New ones count for a quarter. */
static void mix(double *mean, double value)
{
    *mean += *mean > 0 ? (value - *mean) / 4 : value;
}

void cv_session_note_trip(cv_session *s, uint64_t ns)
{
    cv_mutex_lock(&s->lock);
    mix(&s->round_trip_ns, (double)ns);
    cv_mutex_unlock(&s->lock);
}

cv_session_mark cv_session_now(cv_session *s)
{
    return (cv_session_mark){cv_os_clock_ns(), atomic_load(&s->bytes)};
}

/* Of few bytes the time is that of the round trip; and who waits while others' bytes come
 * does not wait for one. */
void cv_session_note_speed(cv_session *s, const cv_session_mark *began,
                           const cv_session_mark *ended)
{
    enum { ENOUGH = 1 << 20 };
    cv_mutex_lock(&s->lock);
    bool is_along = s->measured.ns > began->ns;
    const cv_session_mark *from = is_along ? &s->measured : began;
    double bytes = (double)(ended->bytes - from->bytes);
    double moving = (double)(ended->ns - from->ns) - (is_along ? 0 : s->round_trip_ns);
    if (bytes >= ENOUGH) {
        mix(&s->bytes_per_ns, bytes / (moving > 1e5 ? moving : 1e5));
        s->measured = *ended;
    }
    cv_mutex_unlock(&s->lock);
}

/* Bytes that come in a round trip; as long as nobody knows how quick the way is, at so many in a
 * nanosecond. With the lock. */
static double bytes_in_a_trip(const cv_session *s, double guess)
{
    return s->round_trip_ns * (s->bytes_per_ns > 0 ? s->bytes_per_ns : guess);
}

/* Of a way that nobody knows: who fears for bytes takes it for slow, and who wants it full, for
 * quick: then what is too much waits, and nothing is lost. */
static const double slow_way = 0.1, quick_way = 0.4; /* 100 and 400 MB/s */

uint64_t cv_session_gap(cv_session *s)
{
    enum { LEAST = 4096, MOST = 8 << 20 };
    cv_mutex_lock(&s->lock);
    double gap = bytes_in_a_trip(s, slow_way) / s->options.connections;
    cv_mutex_unlock(&s->lock);
    return gap < LEAST ? LEAST : gap > MOST ? MOST : (uint64_t)gap;
}

/* The way is full when as much is under way as comes in a round trip, and by a reader that is
 * slower now and then four times that. */
size_t cv_session_wave(cv_session *s)
{
    enum { MOST = 64 << 20 };
    cv_mutex_lock(&s->lock);
    double bytes = 4 * bytes_in_a_trip(s, quick_way);
    cv_mutex_unlock(&s->lock);
    return bytes > MOST ? MOST : (size_t)bytes;
}

/* They take no longer than the trip does. Who allows more than is needed has bytes to spare, and
 * as many times that trip. */
uint64_t cv_session_spare(cv_session *s, uint64_t needed)
{
    double percent = s->options.over_read_percent, allowed = (double)needed * percent / 100;
    bool is_generous = percent > 100;
    cv_mutex_lock(&s->lock);
    double trip = bytes_in_a_trip(s, is_generous ? quick_way : slow_way);
    cv_mutex_unlock(&s->lock);
    if (is_generous) trip *= percent / 100;
    return (uint64_t)(trip < allowed ? trip : allowed);
}

/* Room: remote. Sessions: the checked options of remote reading, what is known of the server and
 * the network, delays of retries, and the cost of a request in bytes, which is measured while
 * requests are made. This file makes no requests itself. Thread: any. */
#include "remote/server.h"

#include "base/os.h"
#include "base/os_dir.h"
#include "base/os_process.h"

#include <stdio.h>
#include <string.h>

/* ---- Multi-range requests ----------------------------------------------------------------- */

cv_multirange_state cv_multirange_ask(cv_multirange *m, cv_multirange_waiter *waiter)
{
    cv_mutex_lock(&m->lock);
    if (m->state == CV_MULTIRANGE_ASKED && cv_os_has_forked(m->asked)) {
        m->state = CV_MULTIRANGE_UNKNOWN;
        m->first = m->last = NULL;
    }
    cv_multirange_state state = m->state;
    if (state == CV_MULTIRANGE_UNKNOWN) {
        m->state = CV_MULTIRANGE_ASKED;
        m->asked = cv_os_now();
    }
    if (state == CV_MULTIRANGE_UNKNOWN || state == CV_MULTIRANGE_ASKED) {
        waiter->next = NULL;
        waiter->turn = m->turn;
        waiter->is_asking = state == CV_MULTIRANGE_UNKNOWN;
        if (m->first)
            m->last->next = waiter;
        else
            m->first = waiter;
        m->last = waiter;
    }
    cv_mutex_unlock(&m->lock);
    return state;
}

cv_multirange_state cv_multirange_look(cv_multirange *m)
{
    cv_mutex_lock(&m->lock);
    cv_multirange_state state = m->state;
    cv_mutex_unlock(&m->lock);
    return state;
}

static void turn_from(cv_multirange *m, cv_multirange_state from, cv_multirange_state to,
                      size_t most)
{
    cv_mutex_lock(&m->lock);
    if (m->state == from) {
        m->state = to;
        if (most < m->most) m->most = most;
    }
    cv_mutex_unlock(&m->lock);
}

void cv_multirange_expect(cv_multirange *m, size_t most)
{
    turn_from(m, CV_MULTIRANGE_UNKNOWN, CV_MULTIRANGE_EXPECTED, most);
}

void cv_multirange_confirm(cv_multirange *m)
{
    turn_from(m, CV_MULTIRANGE_EXPECTED, CV_MULTIRANGE_KNOWN, SIZE_MAX);
}

size_t cv_multirange_most(cv_multirange *m)
{
    cv_mutex_lock(&m->lock);
    size_t most = m->most;
    cv_mutex_unlock(&m->lock);
    return most;
}

/* Calls the waiters one by one, without the lock, because others may leave the list meanwhile. A
 * waiter that joins from now on waits for the next result. */
void cv_multirange_learn(cv_multirange *m, cv_multirange_state state)
{
    cv_mutex_lock(&m->lock);
    const uint64_t turn = ++m->turn;
    m->state = state;
    while (m->first && m->first->turn < turn) {
        cv_multirange_waiter *waiter = m->first;
        m->first = waiter->next;
        cv_mutex_unlock(&m->lock);
        waiter->go(waiter);
        cv_mutex_lock(&m->lock);
    }
    cv_mutex_unlock(&m->lock);
}

bool cv_multirange_leave(cv_multirange *m, cv_multirange_waiter *waiter)
{
    cv_mutex_lock(&m->lock);
    cv_multirange_waiter **at = &m->first, *before = NULL;
    while (*at && *at != waiter) {
        before = *at;
        at = &before->next;
    }
    bool waits = *at != NULL;
    if (waits) *at = waiter->next;
    if (waits && m->last == waiter) m->last = before;
    cv_mutex_unlock(&m->lock);
    return waits;
}

/* ---- Options ------------------------------------------------------------------------------ */

static cv_status check_between(const char *name, int value, int least, int most,
                               cv_error *err)
{
    if (value >= least && value <= most) return CV_OK;
    return cv_fail(err, CATERVA_EINVAL, -1, "remote option %s is %d, outside of %d to %d",
                   name, value, least, most);
}

static cv_status check_endpoint(const char *endpoint, cv_error *err)
{
    cv_url url;
    if (!endpoint) return CV_OK;
    CV_TRY(cv_url_parse(endpoint, &url, err));
    if (url.scheme != CV_SCHEME_S3 && !url.query && url.path_size <= 1) return CV_OK;
    return cv_fail(err, CATERVA_EINVAL, -1,
                   "the endpoint must be \"https://HOST\" or \"http://HOST:PORT\"");
}

static cv_status check_options(const caterva_remote_options *o, cv_error *err)
{
    CV_TRY(check_between("connections", o->connections, 0, 256, err));
    CV_TRY(check_between("connect_timeout_ms", o->connect_timeout_ms, 0, INT32_MAX, err));
    CV_TRY(check_between("stall_timeout_ms", o->stall_timeout_ms, 0, INT32_MAX - 999, err));
    CV_TRY(check_between("retries", o->retries, CATERVA_NONE, 20, err));
    CV_TRY(
        check_between("over_read_percent", o->over_read_percent, CATERVA_NONE, 1000000, err));
    CV_TRY(
        check_between("credentials", (int)o->credentials, 0, CATERVA_CREDENTIALS_NONE, err));
    CV_TRY(check_between("addressing", (int)o->addressing, CATERVA_ADDRESSING_DEFAULT,
                         CATERVA_ADDRESSING_HOST, err));
    CV_TRY(check_between("n_headers", o->n_headers, 0, 100, err));
    if (o->cache_bytes < 0)
        return cv_fail(err, CATERVA_EINVAL, -1,
                       "remote option cache_bytes is %lld, which is negative",
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

static cv_status copy_texts(cv_session *s, cv_error *err)
{
    caterva_remote_options *o = &s->options;
    const char **each[] = {&o->access_key, &o->secret_key, &o->session_token, &o->profile,
                           &o->region,     &o->endpoint,   &o->cache_folder};
    size_t n = sizeof each / sizeof each[0] + (size_t)o->n_headers + 1; /* ca_file */
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

/* Finds a path of certificates in the variables of the AWS tools, curl and OpenSSL. */
static char *find_variable(bool is_s3)
{
    static const char *const names[] = {"AWS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE"};
    char *found = NULL;
    for (size_t i = is_s3 ? 0 : 1; !found && i < sizeof names / sizeof names[0]; i++)
        found = cv_os_variable(names[i]);
    return found;
}

/* Sets ca_file, which libcurl reads later. Opens the file now, to report a clear error. */
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

cv_status cv_session_begin(const char *url, const caterva_remote_options *options,
                           cv_session **out, cv_error *err)
{
    static const caterva_remote_options defaults = CATERVA_REMOTE_INIT;
    cv_session *s = cv_calloc(1, sizeof *s);
    if (!s) return cv_fail_memory(err, sizeof *s, "a session");
    s->options = options ? *options : defaults;
    s->is_s3 = cv_url_scheme(url) == CV_SCHEME_S3;
    atomic_init(&s->users, 1);
    cv_mutex_init(&s->lock);
    cv_mutex_init(&s->multirange.lock);
    if (s->is_s3) s->multirange.state = CV_MULTIRANGE_REFUSED; /* S3: single ranges only */
    s->multirange.most = SIZE_MAX;
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
    cv_mutex_destroy(&s->multirange.lock);
    cv_free(s);
}

/* ---- Retries ---------------------------------------------------------------------------- */

enum { MOST_WAIT_S = 30 };

/* Exponential backoff. Jitter separates the retries of requests that failed at the same time. */
int64_t cv_session_backoff(cv_session *s, int *failures, uint32_t asked_s)
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
                       "; the server asks to retry after %u s (the limit is %d s)", asked_s,
                       MOST_WAIT_S);
    (void)snprintf(reason, sizeof reason, "%s", err->message);
    int room = (int)(sizeof err->message - strlen(times) - strlen(wait)) - 1;
    (void)snprintf(err->message, sizeof err->message, "%.*s%s%s", room, reason, times, wait);
}

/* ---- Costs -------------------------------------------------------------------------------- */

/* Updates a moving average: a new value weighs one quarter. */
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

/* Ignores waves of less than 1 MiB, whose time is mostly the round trip. Subtracts one round trip
 * from the time, unless another wave was measured since this one began. In that case bytes arrived
 * during the round trip, and this measurement starts at the end of the other one. */
void cv_session_note_speed(cv_session *s, const cv_session_mark *began,
                           const cv_session_mark *ended)
{
    const double enough = 1 << 20;
    cv_mutex_lock(&s->lock);
    bool is_along = s->measured.ns > began->ns;
    const cv_session_mark *from = is_along ? &s->measured : began;
    double bytes = (double)(ended->bytes - from->bytes);
    double moving = (double)(ended->ns - from->ns) - (is_along ? 0 : s->round_trip_ns);
    if (bytes >= enough) {
        mix(&s->bytes_per_ns, bytes / (moving > 1e5 ? moving : 1e5));
        s->measured = *ended;
    }
    cv_mutex_unlock(&s->lock);
}

/* Bandwidth-delay product, at `guess` bytes per ns until measured. Requires the lock. */
static double bytes_in_a_trip(const cv_session *s, double guess)
{
    return s->round_trip_ns * (s->bytes_per_ns > 0 ? s->bytes_per_ns : guess);
}

/* Bytes per ns until measured: 100 MB/s when over-reading costs, 400 MB/s when sizing a wave. */
static const double slow_guess = 0.1, quick_guess = 0.4;

uint64_t cv_session_gap(cv_session *s)
{
    const double least = 4096, most = 8 << 20;
    cv_mutex_lock(&s->lock);
    double gap = bytes_in_a_trip(s, slow_guess) / s->options.connections;
    cv_mutex_unlock(&s->lock);
    return (uint64_t)(gap < least ? least : gap > most ? most : gap);
}

/* One bandwidth-delay product keeps the connections busy; four allow for a slow reader. */
size_t cv_session_wave(cv_session *s)
{
    const double most = 64 << 20;
    cv_mutex_lock(&s->lock);
    double bytes = 4 * bytes_in_a_trip(s, quick_guess);
    cv_mutex_unlock(&s->lock);
    return (size_t)(bytes > most ? most : bytes);
}

/* Allows the bytes that arrive in one round trip; if over_read_percent is above 100, a multiple of
 * them. The result never exceeds that percentage of `needed`. */
uint64_t cv_session_spare(cv_session *s, uint64_t needed)
{
    double percent = s->options.over_read_percent, allowed = (double)needed * percent / 100;
    bool is_generous = percent > 100;
    cv_mutex_lock(&s->lock);
    double trip = bytes_in_a_trip(s, is_generous ? quick_guess : slow_guess);
    cv_mutex_unlock(&s->lock);
    if (is_generous) trip *= percent / 100;
    return (uint64_t)(trip < allowed ? trip : allowed);
}

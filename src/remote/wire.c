/* Room: remote. The wire: a thread that carries all requests of the process through libcurl.
 * libcurl is loaded when the first URL is opened, so the library can be built and started without
 * it. The functions of a request's owner decide what its answer means.
 *
 *     submitted --> waiting (until due) --> limited (until others are done) --> flying
 *                      ^                                                          |
 *                      '----------- another attempt, if `end` asks ---------------'--> gone
 *
 * Two locks. `lock` guards the lists that other threads add requests to, and is held briefly. The
 * thread holds `turn` while it is inside libcurl, not while it sleeps or calls a function of the
 * program. A fork takes both, so that no lock of libcurl or of libraries below stays locked in the
 * child, where this thread does not exist. The child starts its own thread. */
#include "remote/server.h"

#include "base/os.h"
#include "base/os_process.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define CURL_DISABLE_TYPECHECK
#define CURL_DISABLE_DEPRECATION
#include <curl/curl.h>

/* ---- libcurl ---------------------------------------------------------------------------- */

/* Functions of libcurl. Their names lack the prefix "curl_"; their types are those of curl.h. */
static struct {
    CURLcode (*global_init)(long flags);
    curl_version_info_data *(*version_info)(CURLversion age);
    CURL *(*easy_init)(void);
    void (*easy_cleanup)(CURL *easy);
    void (*easy_reset)(CURL *easy);
    CURLcode (*easy_setopt)(CURL *easy, CURLoption option, ...);
    CURLcode (*easy_getinfo)(CURL *easy, CURLINFO info, ...);
    CURLcode (*easy_pause)(CURL *easy, int what);
    const char *(*easy_strerror)(CURLcode code);
    CURLM *(*multi_init)(void);
    CURLMcode (*multi_add_handle)(CURLM *multi, CURL *easy);
    CURLMcode (*multi_remove_handle)(CURLM *multi, CURL *easy);
    CURLMcode (*multi_perform)(CURLM *multi, int *running);
    CURLMsg *(*multi_info_read)(CURLM *multi, int *left);
    CURLMcode (*multi_poll)(CURLM *multi, struct curl_waitfd *extra, unsigned n, int ms,
                            int *ready);
    CURLMcode (*multi_wakeup)(CURLM *multi);
    struct curl_slist *(*slist_append)(struct curl_slist *list, const char *text);
    void (*slist_free_all)(struct curl_slist *list);
} curl;

#define ENTRY(name)                                                                          \
    {                                                                                        \
        "curl_" #name, (char *)&curl.name                                                    \
    }
static const struct {
    const char *name;
    char *to;
} functions[] = {
    ENTRY(global_init),   ENTRY(version_info),     ENTRY(easy_init),
    ENTRY(easy_cleanup),  ENTRY(easy_reset),       ENTRY(easy_setopt),
    ENTRY(easy_getinfo),  ENTRY(easy_strerror),    ENTRY(multi_init),
    ENTRY(multi_poll),    ENTRY(multi_add_handle), ENTRY(multi_remove_handle),
    ENTRY(multi_perform), ENTRY(multi_info_read),  ENTRY(multi_wakeup),
    ENTRY(slist_append),  ENTRY(slist_free_all),   ENTRY(easy_pause),
};

static struct {
    cv_once once;
    cv_status status;
    cv_error error;
} loaded = {.once = CV_ONCE_INIT};

static cv_status load(cv_error *err)
{
    enum { LEAST_VERSION = 0x074400 }; /* 7.68 introduced curl_multi_wakeup */
    /* libcurl's ABI has had the number 4 since 2006. */
    static const char *const names[] = {"libcurl.so.4",      "libcurl-gnutls.so.4",
                                        "libcurl.so",        "libcurl.4.dylib",
                                        "libcurl.dylib",     "libcurl-x64.dll",
                                        "libcurl-arm64.dll", "libcurl-4.dll",
                                        "libcurl.dll",       NULL};
    cv_library library;
    if (!cv_library_load(names, &library))
        return cv_fail(err, CATERVA_EUNSUPPORTED, -1,
                       "URLs need libcurl, which is not installed: %s (package libcurl4) "
                       "was not found",
                       names[0]);
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++)
        if (!cv_library_find(library, functions[i].name, functions[i].to))
            return cv_fail(err, CATERVA_EUNSUPPORTED, -1,
                           "URLs need libcurl 7.68 or newer: the installed one has no %s",
                           functions[i].name);
    const curl_version_info_data *version = curl.version_info(CURLVERSION_NOW);
    if (version->version_num < LEAST_VERSION)
        return cv_fail(err, CATERVA_EUNSUPPORTED, -1,
                       "URLs need libcurl 7.68 or newer, this is %s", version->version);
    if (curl.global_init(CURL_GLOBAL_ALL) == CURLE_OK) return CV_OK;
    return cv_fail(err, CATERVA_EIO, -1, "cannot initialize libcurl %s", version->version);
}

static void load_once(void) { loaded.status = load(&loaded.error); }

/* ---- Calls from libcurl ----------------------------------------------------------------- */

/* One attempt of a request inside libcurl. If the request is cancelled, the flight outlives it. */
typedef struct cv_flight {
    CURL *easy;
    struct curl_slist *fields;
    cv_wire *wire;                /* NULL: cancelled */
    uint64_t body_pos, body_size; /* of the sent body */
    bool is_paused, resumes;
    char reason[CURL_ERROR_SIZE]; /* details from libcurl */
} flight;

static size_t take_header(char *line, size_t one, size_t size, void *context)
{
    flight *f = context;
    (void)one;
    return f->wire && f->wire->header(f->wire, line, size) ? size : size + 1;
}

static size_t take_body(char *bytes, size_t one, size_t size, void *context)
{
    flight *f = context;
    (void)one;
    cv_wire_next next =
        f->wire ? f->wire->body(f->wire, (const uint8_t *)bytes, size) : CV_WIRE_ENDS;
    f->is_paused = next == CV_WIRE_PAUSES;
    if (f->is_paused) return CURL_WRITEFUNC_PAUSE;
    return next == CV_WIRE_GOES_ON ? size : size + 1; /* any other size signals a failure */
}

static size_t give_body(char *to, size_t one, size_t most, void *context)
{
    flight *f = context;
    uint64_t left = f->body_size - f->body_pos;
    size_t size = left < one * most ? (size_t)left : one * most;
    if (size == 0) return 0;
    if (!f->wire || !f->wire->give(f->wire, f->body_pos, (uint8_t *)to, size))
        return CURL_READFUNC_ABORT;
    f->body_pos += size;
    return size;
}

/* Rewinds the body. libcurl calls this if a reused connection turns out to be closed. */
static int seek_body(void *context, curl_off_t pos, int origin)
{
    flight *f = context;
    if (origin != SEEK_SET || pos < 0 || (uint64_t)pos > f->body_size)
        return CURL_SEEKFUNC_FAIL;
    f->body_pos = (uint64_t)pos;
    return CURL_SEEKFUNC_OK;
}

/* ---- Setting up an attempt ---------------------------------------------------------------- */

static bool add_fields(flight *f, const cv_buffer *fields)
{
    for (size_t at = 0; at < fields->size;) {
        const char *field = (const char *)fields->data + at;
        struct curl_slist *longer = curl.slist_append(f->fields, field);
        if (!longer) return false;
        f->fields = longer;
        at += strlen(field) + 1;
    }
    return true;
}

/* Sets an option to a number or a pointer, which cannot fail. */
#define SET(option, value) (void)curl.easy_setopt(f->easy, CURLOPT_##option, value)

static bool set_text(const flight *f, CURLoption option, const char *text)
{
    return curl.easy_setopt(f->easy, option, text) != CURLE_OUT_OF_MEMORY;
}

enum { BUFFER_SIZE = 128 * 1024 };

static bool set_body(const flight *f, const cv_wire_setup *s)
{
    enum { CONTINUE_MS = 500 }; /* wait for the server's 100 Continue */
    if (!s->method) return true;
    if (s->has_body) {
        SET(UPLOAD, 1L);
        SET(UPLOAD_BUFFERSIZE, (long)BUFFER_SIZE);
        SET(INFILESIZE_LARGE, (curl_off_t)s->body_size);
        SET(READFUNCTION, give_body);
        SET(READDATA, f);
        SET(SEEKFUNCTION, seek_body);
        SET(SEEKDATA, f);
        SET(EXPECT_100_TIMEOUT_MS, (long)CONTINUE_MS);
    }
    return set_text(f, CURLOPT_CUSTOMREQUEST, s->method);
}

/* Sets the trusted certificates. `ca_file` replaces all that the system trusts, including libcurl's
 * folder (CAPATH). A libcurl built without folders rejects these options, which does no harm. */
static bool set_trust(const flight *f, const char *ca_file)
{
    SET(SSL_VERIFYPEER, 1L);
    SET(SSL_VERIFYHOST, 2L);
    if (!ca_file) return true;
    SET(CAPATH, NULL);
    SET(PROXY_CAPATH, NULL);
    return set_text(f, CURLOPT_CAINFO, ca_file) && set_text(f, CURLOPT_PROXY_CAINFO, ca_file);
}

/* Sets all options of an easy handle that is new or reset. `may_share`: the request waits for a
 * connection being made instead of making another. False: memory is lacking. */
static bool set_options(flight *f, const cv_wire_setup *s, bool may_share)
{
    enum { STALLED = 256, LONGEST = 100000000 }; /* bytes a second; seconds */
    long stall = (s->stall_ms + 999) / 1000;
    if (!add_fields(f, &s->fields)) return false;
    f->body_size = s->body_size;
    SET(PATH_AS_IS, 1L);
    SET(PROTOCOLS, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
    SET(FOLLOWLOCATION, 0L); /* object.c decides */
    SET(HTTP_VERSION, (long)CURL_HTTP_VERSION_2TLS);
    SET(HTTPHEADER, f->fields);
    SET(NOSIGNAL, 1L);
    SET(BUFFERSIZE, (long)BUFFER_SIZE);
    SET(HTTP09_ALLOWED, 0L);
    SET(TCP_KEEPALIVE, 1L);
    SET(CONNECTTIMEOUT_MS, (long)s->connect_ms);
    SET(LOW_SPEED_LIMIT, s->is_slow ? 1L : (long)STALLED);
    SET(LOW_SPEED_TIME, s->is_slow && stall < LONGEST ? 10 * stall : stall);
    SET(HEADERFUNCTION, take_header);
    SET(HEADERDATA, f);
    SET(WRITEFUNCTION, take_body);
    SET(WRITEDATA, f);
    SET(PRIVATE, f);
    SET(ERRORBUFFER, f->reason);
    SET(PIPEWAIT, may_share ? 1L : 0L);
    return set_text(f, CURLOPT_URL, s->url) && set_trust(f, s->ca_file) && set_body(f, s);
}

/* ---- How an attempt ended ----------------------------------------------------------------- */

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

/* Whether the answer is not HTTP. On a reused connection its bytes may be left over from an
 * earlier, longer answer; then a retry may succeed. */
static bool is_no_answer(CURLcode code)
{
    return code == CURLE_UNSUPPORTED_PROTOCOL || code == CURLE_WEIRD_SERVER_REPLY;
}

static bool is_untrusted(CURLcode code)
{
    return code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_SSL_ISSUER_ERROR;
}

static long long_of(const flight *f, CURLINFO info, long otherwise)
{
    curl.easy_getinfo(f->easy, info, &otherwise);
    return otherwise;
}

static uint64_t time_of(const flight *f, CURLINFO info)
{
    curl_off_t us = 0;
    curl.easy_getinfo(f->easy, info, &us);
    return us > 0 ? (uint64_t)us * 1000 : 0;
}

/* Whether a header field exceeds 100 KiB, which libcurl reports as lack of memory. */
static bool is_long_field(const flight *f, CURLcode code)
{
    return code == CURLE_OUT_OF_MEMORY && long_of(f, CURLINFO_RESPONSE_CODE, 0) > 0;
}

/* Returns the reason. Omits details that may contain secrets: all except those on certificates. */
static const char *reason_of(const flight *f, CURLcode code)
{
    static const char known[] = "SSL certificate problem: ";
    const char *reason = f->reason;
    if (is_long_field(f, code)) return "a field of the server's answer is too long";
    if (is_no_answer(code) && time_of(f, CURLINFO_PRETRANSFER_TIME_T) > 0)
        return "the server's answer is not HTTP";
    bool is_shown = is_untrusted(code) || code == CURLE_SSL_CACERT_BADFILE;
    if (!is_shown || !*reason) return curl.easy_strerror(code);
    return strncmp(reason, known, sizeof known - 1) == 0 ? reason + sizeof known - 1 : reason;
}

/* Strings in *end belong to libcurl and the flight; they are valid until the handle is reused. */
static void describe_end(const flight *f, CURLcode code, cv_wire_end *end)
{
    char *redirect = NULL;
    curl.easy_getinfo(f->easy, CURLINFO_REDIRECT_URL, &redirect);
    uint64_t sent = time_of(f, CURLINFO_PRETRANSFER_TIME_T);
    uint64_t first = time_of(f, CURLINFO_STARTTRANSFER_TIME_T);
    bool is_left_over = is_no_answer(code) && long_of(f, CURLINFO_NUM_CONNECTS, 1) == 0;
    *end =
        (cv_wire_end){.is_whole = code == CURLE_OK,
                      .is_broken = is_broken(code) || is_left_over,
                      .was_connected = sent > 0,
                      .is_untrusted = is_untrusted(code),
                      .lacks_memory = code == CURLE_OUT_OF_MEMORY && !is_long_field(f, code),
                      .why = reason_of(f, code),
                      .redirect = redirect,
                      .first_byte_ns = first > sent ? first - sent : 0,
                      .total_ns = time_of(f, CURLINFO_TOTAL_TIME_T)};
}

/* ---- Requests in flight ------------------------------------------------------------------- */

enum { SPARE_EASIES = 16, IDLE_MS = 60000, MULTIPLEXED = 100 };

static struct {
    cv_once once;
    cv_mutex lock;
    cv_mutex turn;
    bool is_running;
    unsigned n_cancelled;   /* requests marked as cancelled, but not yet dropped */
    cv_wire *submitted;     /* newest first */
    atomic_bool resumes;    /* paused requests must be resumed */
    CURLM *multi, *parents; /* `parents`: the parent process's, after a fork */
    /* Accessed only by the thread: */
    cv_wire *waiting, *flying;
    CURL *spare[SPARE_EASIES];
    int n_spare;
} wires = {.once = CV_ONCE_INIT, .lock = CV_MUTEX_INIT, .turn = CV_MUTEX_INIT};

static void free_flight(flight *f)
{
    if (!f) return;
    curl.slist_free_all(f->fields);
    if (f->easy && wires.n_spare < SPARE_EASIES) {
        curl.easy_reset(f->easy);
        wires.spare[wires.n_spare++] = f->easy;
    } else if (f->easy) {
        curl.easy_cleanup(f->easy);
    }
    cv_free(f);
}

/* Begins an attempt. False: `prepare` failed, or there is no memory. */
static bool take_off(cv_wire *w)
{
    cv_wire_setup setup = {.connect_ms = 10000, .stall_ms = 30000};
    flight *f = cv_calloc(1, sizeof *f);
    bool good = f && w->prepare(w, &setup) == CV_OK;
    if (f) f->easy = wires.n_spare > 0 ? wires.spare[--wires.n_spare] : curl.easy_init();
    good = good && f->easy && set_options(f, &setup, atomic_load(&w->limit->is_multiplexed));
    if (good) {
        f->wire = w;
        good = curl.multi_add_handle(wires.multi, f->easy) == CURLM_OK;
    }
    cv_buffer_free(&setup.fields);
    w->lacks_memory = !good;
    if (!good) {
        free_flight(f);
        return false;
    }
    w->flight = f;
    w->next = wires.flying;
    wires.flying = w;
    return true;
}

static void remove_from(cv_wire **list, const cv_wire *w)
{
    while (*list && *list != w) list = &(*list)->next;
    if (*list) *list = w->next;
}

static bool has_room(const cv_wire_limit *l)
{
    return l->n < (atomic_load(&l->is_multiplexed) ? MULTIPLEXED : l->most);
}

static void go(cv_wire *w);

/* Ends the request: its owner may free it from here on. */
static void leave(cv_wire *w)
{
    cv_mutex_lock(&wires.lock);
    if (atomic_exchange(&w->is_cancelled, false)) wires.n_cancelled--;
    w->is_under_way = false;
    cv_mutex_unlock(&wires.lock);
    w->gone(w);
}

static void let_next_go(cv_wire_limit *l)
{
    while (l->first && has_room(l)) {
        cv_wire *w = l->first;
        l->first = w->next;
        go(w);
    }
}

static void go(cv_wire *w)
{
    cv_wire_limit *l = w->limit;
    if (!has_room(l)) {
        w->next = NULL;
        if (l->first)
            l->last->next = w;
        else
            l->first = w;
        l->last = w;
        return;
    }
    l->n++;
    if (take_off(w)) return;
    l->n--;
    leave(w);
}

static void land(flight *f, CURLcode code)
{
    cv_wire *w = f->wire;
    cv_wire_limit *l = w->limit;
    cv_wire_end end;
    describe_end(f, code, &end);
    remove_from(&wires.flying, w);
    l->n--;
    if (code == CURLE_OK)
        atomic_store(&l->is_multiplexed,
                     long_of(f, CURLINFO_HTTP_VERSION, 0) >= CURL_HTTP_VERSION_2_0);
    w->flight = NULL;
    int64_t again = w->end(w, &end);
    curl.multi_remove_handle(wires.multi, f->easy);
    free_flight(f);
    if (again >= 0) {
        w->due = cv_os_clock_ns() + (uint64_t)again;
        w->next = wires.waiting;
        wires.waiting = w;
        let_next_go(l);
    } else {
        let_next_go(l); /* before `leave`: the limit may be freed with the last request */
        leave(w);
    }
}

static void land_all(void)
{
    int left;
    CURLMsg *message;
    while ((message = curl.multi_info_read(wires.multi, &left))) {
        if (message->msg != CURLMSG_DONE) continue;
        char *f = NULL;
        CURLcode code = message->data.result; /* freed with the handle */
        curl.easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &f);
        land((flight *)(void *)f, code);
    }
}

static flight *find_resuming(void)
{
    cv_wire *w = wires.flying;
    while (w && !w->flight->resumes) w = w->next;
    return w ? w->flight : NULL;
}

/* Resumes paused requests: libcurl passes each its pending bytes immediately. If a request fails
 * meanwhile, multi_info_read does not report the failure, so the request is landed here. */
static void resume_paused(void)
{
    flight *f;
    if (!atomic_exchange(&wires.resumes, false)) return;
    for (cv_wire *w = wires.flying; w; w = w->next) w->flight->resumes = w->flight->is_paused;
    while ((f = find_resuming())) {
        f->resumes = f->is_paused = false;
        CURLcode code = curl.easy_pause(f->easy, CURLPAUSE_CONT);
        if (code != CURLE_OK) land(f, code);
    }
}

/* ---- Cancelling ---------------------------------------------------------------------------- */

/* Cancels a flying request. Calls `gone` before it removes the handle, which may wait for DNS. */
static void drop_flying(cv_wire *w)
{
    flight *f = w->flight;
    cv_wire_limit *l = w->limit;
    f->wire = NULL;
    w->flight = NULL;
    remove_from(&wires.flying, w);
    l->n--;
    let_next_go(l);
    leave(w);
    curl.multi_remove_handle(wires.multi, f->easy);
    free_flight(f);
}

static bool take_cancelled(cv_wire **list, cv_wire **out)
{
    cv_wire *w = *list;
    while (w && !atomic_load(&w->is_cancelled)) w = w->next;
    *out = w;
    return w != NULL;
}

static void drop_limited(void)
{
    for (cv_wire *w = wires.flying; w; w = w->next) {
        cv_wire_limit *l = w->limit;
        cv_wire *dropped, *before = NULL;
        while (take_cancelled(&l->first, &dropped)) {
            remove_from(&l->first, dropped);
            leave(dropped);
        }
        for (cv_wire *x = l->first; x; x = x->next) before = x;
        l->last = before;
    }
}

/* Drops cancelled requests. A request queued at a limit is found through a flying request of the
 * same limit, so queued requests are dropped first. */
static void drop_cancelled(void)
{
    cv_wire *w;
    cv_mutex_lock(&wires.lock);
    unsigned n = wires.n_cancelled;
    cv_mutex_unlock(&wires.lock);
    if (n == 0) return;
    drop_limited();
    while (take_cancelled(&wires.waiting, &w)) {
        remove_from(&wires.waiting, w);
        leave(w);
    }
    while (take_cancelled(&wires.flying, &w)) drop_flying(w);
}

/* ---- The thread ---------------------------------------------------------------------------- */

/* Begins submitted requests, oldest first. */
static void take_submitted(void)
{
    cv_mutex_lock(&wires.lock);
    cv_wire *list = wires.submitted;
    wires.submitted = NULL;
    cv_mutex_unlock(&wires.lock);
    cv_wire *ordered = NULL;
    while (list) {
        cv_wire *next = list->next;
        list->next = ordered;
        ordered = list;
        list = next;
    }
    while (ordered) {
        cv_wire *next = ordered->next;
        go(ordered);
        ordered = next;
    }
}

/* Begins the attempts that are due. Returns the milliseconds until the next attempt is due. */
static int take_due(void)
{
    uint64_t now = cv_os_clock_ns(), least = UINT64_MAX;
    cv_wire *list = wires.waiting;
    wires.waiting = NULL;
    while (list) {
        cv_wire *w = list;
        list = w->next;
        if (w->due <= now) {
            go(w);
            continue;
        }
        if (w->due - now < least) least = w->due - now;
        w->next = wires.waiting;
        wires.waiting = w;
    }
    return least / 1000000 < IDLE_MS ? (int)(least / 1000000) + 1 : IDLE_MS;
}

static void *run(void *context)
{
    CURLM *multi = wires.multi;
    (void)context;
    cv_thread_be_awaited(1);
    cv_thread_block_signals(); /* including SIGPIPE */
    for (;;) {
        int running;
        cv_mutex_lock(&wires.turn);
        take_submitted();
        drop_cancelled();
        resume_paused();
        curl.multi_perform(multi, &running);
        land_all();
        int ms = take_due(); /* after land_all, which may make attempts due */
        cv_mutex_unlock(&wires.turn);
        curl.multi_poll(multi, NULL, 0, ms, NULL);
    }
    return NULL;
}

static void before_fork(void)
{
    cv_mutex_lock(&wires.turn);
    cv_mutex_lock(&wires.lock);
}

static void after_fork(void)
{
    cv_mutex_unlock(&wires.lock);
    cv_mutex_unlock(&wires.turn);
}

/* Leaves the parent's connections alone: closing one would send bytes on it. */
static void after_fork_in_child(void)
{
    wires.is_running = false;
    wires.submitted = wires.waiting = wires.flying = NULL;
    wires.n_cancelled = 0;
    atomic_store(&wires.resumes, false);
    wires.parents = wires.multi;
    wires.multi = NULL;
    wires.n_spare = 0;
    after_fork();
}

static void begin_once(void)
{
    cv_thread_on_fork(CV_FORK_LOCKS, before_fork, after_fork, after_fork_in_child);
}

/* Starts the thread unless it runs. Requires wires.lock. */
static cv_status start(cv_error *err)
{
    if (wires.is_running) return CV_OK;
    if (!wires.multi) wires.multi = curl.multi_init();
    if (!wires.multi) return cv_fail_memory(err, 1, "connections");
    wires.is_running = cv_thread_start(run, NULL);
    if (wires.is_running) return CV_OK;
    return cv_fail(err, CATERVA_ENOMEM, -1, "cannot start a thread for connections");
}

cv_status cv_wire_submit(cv_wire *wire, cv_error *err)
{
    cv_once_run(&loaded.once, load_once);
    if (loaded.status != CV_OK && err) *err = loaded.error;
    CV_TRY(loaded.status);
    cv_once_run(&wires.once, begin_once);
    wire->flight = NULL;
    wire->lacks_memory = false;
    atomic_store(&wire->is_cancelled, false);
    cv_mutex_lock(&wires.lock);
    cv_status status = start(err);
    if (status == CV_OK) {
        wire->is_under_way = true;
        wire->next = wires.submitted;
        wires.submitted = wire;
        curl.multi_wakeup(wires.multi);
    }
    cv_mutex_unlock(&wires.lock);
    return status;
}

void cv_wire_cancel(cv_wire *wire)
{
    cv_mutex_lock(&wires.lock);
    if (wire->is_under_way && !atomic_exchange(&wire->is_cancelled, true)) {
        wires.n_cancelled++;
        curl.multi_wakeup(wires.multi);
    }
    cv_mutex_unlock(&wires.lock);
}

void cv_wire_give_turn(void) { cv_mutex_unlock(&wires.turn); }

/* If the function forked, the requests and connections belong to the parent, so in the child this
 * thread ends. */
void cv_wire_take_turn(void)
{
    cv_mutex_lock(&wires.turn);
    if (wires.is_running) return;
    cv_mutex_unlock(&wires.turn);
    cv_thread_end();
}

void cv_wire_resume(void)
{
    cv_mutex_lock(&wires.lock);
    atomic_store(&wires.resumes, true);
    if (wires.multi) curl.multi_wakeup(wires.multi);
    cv_mutex_unlock(&wires.lock);
}

cv_status cv_wire_fail_gone(const cv_wire *wire, cv_error *err)
{
    if (wire->lacks_memory) return cv_fail_memory(err, sizeof *wire, "a request");
    return cv_fail(err, CATERVA_ESTOPPED, -1, "the request was cancelled");
}

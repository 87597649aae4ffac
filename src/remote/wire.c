/* Room: remote. INTRO of remote/wire */
#include "remote/wire.h"

/* ---- Http curl ----
 *
 * Finding libcurl and its functions. They are looked up by name, so that what
 * they are is checked by the compiler against curl.h, and where they are by the system. */

#ifdef CATERVA_HAS_CURL

#include "base/os_process.h"
#include "base/thread.h"

#include <stddef.h>
#include <stdio.h>

/* Its interface has had this number since 2006. */
static const char *const names[] = {"libcurl.so.4",    "libcurl-gnutls.so.4", "libcurl.so",
                                    "libcurl.4.dylib", "libcurl.dylib",       NULL};

/* curl_multi_wakeup is of 7.68. */
enum { LEAST_VERSION = 0x074400 };

static struct {
    cv_once once;
    cv_curl curl;
    cv_status status;
    cv_error error;
} loaded = {.once = CV_ONCE_INIT};

#define ENTRY(name)                                                                          \
    {                                                                                        \
        "curl_" #name, offsetof(cv_curl, name)                                               \
    }
static const struct {
    const char *name;
    size_t at;
} functions[] = {
    ENTRY(global_init),   ENTRY(version_info),     ENTRY(easy_init),
    ENTRY(easy_cleanup),  ENTRY(easy_reset),       ENTRY(easy_setopt),
    ENTRY(easy_getinfo),  ENTRY(easy_strerror),    ENTRY(multi_init),
    ENTRY(multi_setopt),  ENTRY(multi_add_handle), ENTRY(multi_remove_handle),
    ENTRY(multi_perform), ENTRY(multi_info_read),  ENTRY(multi_poll),
    ENTRY(multi_wakeup),  ENTRY(slist_append),     ENTRY(slist_free_all),
    ENTRY(easy_pause),
};

static cv_status find_functions(cv_library library, cv_error *err)
{
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++)
        if (!cv_library_find(library, functions[i].name,
                             (char *)&loaded.curl + functions[i].at))
            return cv_fail(err, CATERVA_EUNSUPPORTED, -1,
                           "URLs need libcurl 7.68 or newer: the one that is here has no %s",
                           functions[i].name);
    return CV_OK;
}

static cv_status load(cv_error *err)
{
    cv_library library;
    if (!cv_library_load(names, &library))
        return cv_fail(err, CATERVA_EUNSUPPORTED, -1,
                       "URLs need libcurl, which is not installed: %s (package libcurl4) "
                       "was not found",
                       names[0]);
    CV_TRY(find_functions(library, err));
    const curl_version_info_data *version = loaded.curl.version_info(CURLVERSION_NOW);
    if (version->version_num < LEAST_VERSION)
        return cv_fail(err, CATERVA_EUNSUPPORTED, -1,
                       "URLs need libcurl 7.68 or newer, this is %s", version->version);
    if (loaded.curl.global_init(CURL_GLOBAL_ALL) == CURLE_OK) return CV_OK;
    return cv_fail(err, CATERVA_EIO, -1, "libcurl %s does not start", version->version);
}

static void load_once(void) { loaded.status = load(&loaded.error); }

cv_status cv_curl_load(const cv_curl **out, cv_error *err)
{
    cv_once_run(&loaded.once, load_once);
    *out = &loaded.curl;
    if (loaded.status != CV_OK && err) *err = loaded.error;
    return loaded.status;
}

#else

/* Who asks is told by http.c. */
typedef int cv_no_curl;

#endif

/* ---- Http flight ----
 *
 * See http_flight.h. When an attempt is made, and whether another one is, is for
 * http_wire.c. */

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

/* ---- Http wire ----
 *
 * The thread that talks to servers.
 *
 *     submitted --> waiting (until due) --> limited (until others are done) --> flying
 *                      ^                                                          |
 *                      '--------- another attempt, says `end` --------------------'--> gone
 *
 * Two locks: `lock` for the lists that other threads put requests on, taken for moments; and
 * `turn`, which the thread holds while it is inside libcurl and gives up while it sleeps or
 * calls a function of the program's: a fork takes both, so that no lock of libcurl, or of what
 * it stands on, is left locked in the child, where this thread is not. A child begins anew
 * with a thread of its own. */

#ifdef CATERVA_HAS_CURL

#include "base/heap.h"
#include "base/os.h"

enum { SPARE_EASIES = 16, IDLE_MS = 60000, MULTIPLEXED = 100 };

static struct {
    cv_once once;
    cv_mutex lock;
    cv_mutex turn;
    bool is_running;
    unsigned n_cancelled; /* requests marked and not yet dropped */
    cv_wire *submitted;   /* newest first */
    atomic_bool resumes;  /* those that paused */
    const cv_curl *curl;
    CURLM *multi, *parents; /* the one that a fork left behind */
    /* The thread's own. */
    cv_wire *waiting, *flying;
    CURL *spare[SPARE_EASIES];
    int n_spare;
} wires = {.once = CV_ONCE_INIT, .lock = CV_MUTEX_INIT, .turn = CV_MUTEX_INIT};

/* ---- An attempt --------------------------------------------------------------- */

static CURL *new_easy(void)
{
    if (wires.n_spare > 0) return wires.spare[--wires.n_spare];
    return wires.curl->easy_init();
}

static void free_flight(cv_flight *f)
{
    if (!f) return;
    wires.curl->slist_free_all(f->fields);
    if (f->easy && wires.n_spare < SPARE_EASIES) {
        wires.curl->easy_reset(f->easy);
        wires.spare[wires.n_spare++] = f->easy;
    } else if (f->easy) {
        wires.curl->easy_cleanup(f->easy);
    }
    cv_free(f);
}

/* False: it could not begin, for want of memory where `prepare` names no other reason. */
static bool take_off(cv_wire *w)
{
    cv_wire_setup setup = {.connect_ms = 10000, .stall_ms = 30000};
    cv_flight *f = cv_calloc(1, sizeof *f);
    bool good = f && w->prepare(w, &setup) == CV_OK;
    if (f) f->easy = new_easy();
    good = good && f->easy &&
           cv_flight_set(f, wires.curl, &setup, atomic_load(&w->limit->is_multiplexed));
    if (good) {
        f->wire = w;
        good = wires.curl->multi_add_handle(wires.multi, f->easy) == CURLM_OK;
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

/* ---- The limit ----------------------------------------------------------------- */

static bool has_room(const cv_wire_limit *l)
{
    return l->n < (atomic_load(&l->is_multiplexed) ? MULTIPLEXED : l->most);
}

static void go(cv_wire *w);

/* Its user may free it from here on. */
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

/* ---- Landing ------------------------------------------------------------------- */

static void land(cv_flight *f, CURLcode code)
{
    cv_wire *w = f->wire;
    cv_wire_limit *l = w->limit;
    cv_wire_end end;
    cv_flight_end(f, wires.curl, code, &end);
    remove_from(&wires.flying, w);
    l->n--;
    if (code == CURLE_OK)
        atomic_store(&l->is_multiplexed, cv_flight_is_multiplexed(f, wires.curl));
    w->flight = NULL;
    int64_t again = w->end(w, &end);
    wires.curl->multi_remove_handle(wires.multi, f->easy);
    free_flight(f);
    if (again >= 0) {
        w->due = cv_os_clock_ns() + (uint64_t)again;
        w->next = wires.waiting;
        wires.waiting = w;
        let_next_go(l);
    } else {
        let_next_go(l); /* the limit may go with the last request */
        leave(w);
    }
}

static void land_all(void)
{
    int left;
    CURLMsg *message;
    while ((message = wires.curl->multi_info_read(wires.multi, &left))) {
        if (message->msg != CURLMSG_DONE) continue;
        char *f = NULL;
        CURLcode code = message->data.result; /* the message goes with the handle */
        wires.curl->easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &f);
        land((cv_flight *)(void *)f, code);
    }
}

/* ---- Resuming -------------------------------------------------------------------- */

static cv_flight *find_resuming(void)
{
    cv_wire *w = wires.flying;
    while (w && !w->flight->resumes) w = w->next;
    return w ? w->flight : NULL;
}

/* Each gets what it left, now; one that fails has landed: libcurl tells nobody. */
static void resume_paused(void)
{
    cv_flight *f;
    if (!atomic_exchange(&wires.resumes, false)) return;
    for (cv_wire *w = wires.flying; w; w = w->next) w->flight->resumes = w->flight->is_paused;
    while ((f = find_resuming())) {
        f->resumes = f->is_paused = false;
        CURLcode code = wires.curl->easy_pause(f->easy, CURLPAUSE_CONT);
        if (code != CURLE_OK) land(f, code);
    }
}

/* ---- Cancelling ------------------------------------------------------------------ */

/* Its user is told first: libcurl may wait for the name of a host to be found. */
static void drop_flying(cv_wire *w)
{
    cv_flight *f = w->flight;
    cv_wire_limit *l = w->limit;
    f->wire = NULL;
    w->flight = NULL;
    remove_from(&wires.flying, w);
    l->n--;
    let_next_go(l);
    leave(w);
    wires.curl->multi_remove_handle(wires.multi, f->easy);
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

/* Limited ones go first: where some wait, others of their limit fly. */
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

/* ---- The thread -------------------------------------------------------------------- */

/* Newly submitted ones, oldest first, are due at once. */
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

/* Lets those go that are due; returns milliseconds until the next one is. */
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
    const cv_curl *curl = wires.curl;
    CURLM *multi = wires.multi;
    (void)context;
    cv_thread_be_awaited(1);
    cv_thread_block_signals(); /* among them the one for a connection that broke */
    for (;;) {
        int running;
        cv_mutex_lock(&wires.turn);
        take_submitted();
        drop_cancelled();
        resume_paused();
        curl->multi_perform(multi, &running);
        land_all();
        int ms = take_due(); /* those that landed a moment ago, too */
        cv_mutex_unlock(&wires.turn);
        curl->multi_poll(multi, NULL, 0, ms, NULL);
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

/* The parent's connections are left as they are: to close one is to speak on it. */
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

/* With the lock. */
static cv_status start(cv_error *err)
{
    if (wires.is_running) return CV_OK;
    if (!wires.multi) wires.multi = wires.curl->multi_init();
    if (!wires.multi) return cv_fail_memory(err, 1, "connections");
    wires.is_running = cv_thread_start(run, NULL);
    if (wires.is_running) return CV_OK;
    return cv_fail(err, CATERVA_ENOMEM, -1, "there is no thread for connections to be had");
}

cv_status cv_wire_submit(cv_wire *wire, cv_error *err)
{
    const cv_curl *curl;
    CV_TRY(cv_curl_load(&curl, err));
    cv_once_run(&wires.once, begin_once);
    wire->flight = NULL;
    wire->lacks_memory = false;
    atomic_store(&wire->is_cancelled, false);
    cv_mutex_lock(&wires.lock);
    if (!wires.curl) wires.curl = curl; /* its thread reads it without the lock */
    cv_status status = start(err);
    if (status == CV_OK) {
        wire->is_under_way = true;
        wire->next = wires.submitted;
        wires.submitted = wire;
        curl->multi_wakeup(wires.multi);
    }
    cv_mutex_unlock(&wires.lock);
    return status;
}

void cv_wire_cancel(cv_wire *wire)
{
    cv_mutex_lock(&wires.lock);
    if (wire->is_under_way && !atomic_exchange(&wire->is_cancelled, true)) {
        wires.n_cancelled++;
        wires.curl->multi_wakeup(wires.multi);
    }
    cv_mutex_unlock(&wires.lock);
}

void cv_wire_give_turn(void) { cv_mutex_unlock(&wires.turn); }

/* The function may have forked: in the child this thread is the parent's, and its requests
 * and connections are. */
void cv_wire_take_turn(void)
{
    cv_mutex_lock(&wires.turn);
    if (wires.is_running) return;
    cv_mutex_unlock(&wires.turn);
    cv_thread_end();
}

/* Whoever has paused is flying, and so there is a thread, or there is nobody. */
void cv_wire_resume(void)
{
    cv_mutex_lock(&wires.lock);
    atomic_store(&wires.resumes, true);
    if (wires.multi) wires.curl->multi_wakeup(wires.multi);
    cv_mutex_unlock(&wires.lock);
}

#else

cv_status cv_wire_submit(cv_wire *wire, cv_error *err)
{
    (void)wire;
    return cv_fail(err, CATERVA_EUNSUPPORTED, -1,
                   "this library was built without libcurl (-DCATERVA_REMOTE=ON): it reads "
                   "no URLs");
}

void cv_wire_cancel(cv_wire *wire) { (void)wire; }

void cv_wire_give_turn(void) {}

void cv_wire_take_turn(void) {}

void cv_wire_resume(void) {}

#endif

cv_status cv_wire_fail_gone(const cv_wire *wire, cv_error *err)
{
    if (wire->lacks_memory) return cv_fail_memory(err, sizeof *wire, "a request");
    return cv_fail(err, CATERVA_ESTOPPED, -1, "the request was given up");
}

/* Room: store. The thread that talks to servers.
 *
 *     submitted --> waiting (until due) --> limited (until others are done) --> flying
 *                      ^                                                          |
 *                      '--------- another attempt, says `end` --------------------'--> gone
 *
 * Two locks: `lock` for the lists that other threads put requests on, taken for moments; and
 * `turn`, which the thread holds while it is inside libcurl and gives up while it sleeps: a
 * fork takes both, so that no lock of libcurl, or of what it stands on, is left locked in
 * the child, where this thread is not. A child begins anew with a thread of its own. */
#include "store/http_wire.h"

#include "store/http_curl.h"

#ifdef CATERVA_HAS_CURL

#include "base/heap.h"
#include "base/os.h"
#include "base/thread.h"

#include <stdio.h>
#include <string.h>

enum { SPARE_EASIES = 16, IDLE_MS = 60000, BUFFER_SIZE = 128 * 1024, MULTIPLEXED = 100 };

/* How long a server may take to say that it wants a body, where it is asked. */
enum { CONTINUE_MS = 500 };

/* Slower than so many bytes in a second is as bad as nothing. */
enum { STALLED = 256 };

/* A request inside libcurl; outlives it when it is cancelled. */
typedef struct cv_flight {
    CURL *easy;
    struct curl_slist *fields;
    cv_wire *wire;                /* NULL: cancelled */
    uint64_t body_pos, body_size; /* of what is sent */
} cv_flight;

static struct {
    cv_once once;
    cv_mutex lock;
    cv_mutex turn;
    bool is_running;
    unsigned n_cancelled; /* requests marked and not yet dropped */
    cv_wire *submitted;   /* newest first */
    const cv_curl *curl;
    CURLM *multi, *parents; /* the one that a fork left behind */
    /* The thread's own. */
    cv_wire *waiting, *flying;
    CURL *spare[SPARE_EASIES];
    int n_spare;
} wires = {.once = CV_ONCE_INIT, .lock = CV_MUTEX_INIT, .turn = CV_MUTEX_INIT};

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
    if (f->wire && f->wire->body(f->wire, (const uint8_t *)bytes, size)) return size;
    return size + 1; /* which it takes for a failure */
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

static bool add_fields(cv_flight *f, const cv_buffer *fields)
{
    for (size_t at = 0; at < fields->size;) {
        const char *field = (const char *)fields->data + at;
        struct curl_slist *longer = wires.curl->slist_append(f->fields, field);
        if (!longer) return false;
        f->fields = longer;
        at += strlen(field) + 1;
    }
    return true;
}

static void set_body(const cv_flight *f, const cv_wire_setup *s)
{
    CURLcode (*set)(CURL *, CURLoption, ...) = wires.curl->easy_setopt;
    if (!s->method) return;
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
    set(f->easy, CURLOPT_CUSTOMREQUEST, s->method);
}

/* Redirects are followed by who judges replies, and by nobody else. */
static void set_options(const cv_flight *f, const cv_wire_setup *s)
{
    CURLcode (*set)(CURL *, CURLoption, ...) = wires.curl->easy_setopt;
    long stall = (s->stall_ms + 999) / 1000;
    set(f->easy, CURLOPT_URL, s->url);
    set(f->easy, CURLOPT_PATH_AS_IS, 1L);
    set(f->easy, CURLOPT_PROTOCOLS, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
    set(f->easy, CURLOPT_FOLLOWLOCATION, 0L);
    set(f->easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_2TLS);
    set(f->easy, CURLOPT_HTTPHEADER, f->fields);
    set(f->easy, CURLOPT_NOSIGNAL, 1L);
    set(f->easy, CURLOPT_BUFFERSIZE, (long)BUFFER_SIZE);
    set(f->easy, CURLOPT_HTTP09_ALLOWED, 0L);
    set(f->easy, CURLOPT_SSL_VERIFYPEER, 1L);
    set(f->easy, CURLOPT_SSL_VERIFYHOST, 2L);
    set(f->easy, CURLOPT_TCP_KEEPALIVE, 1L);
    set(f->easy, CURLOPT_CONNECTTIMEOUT_MS, (long)s->connect_ms);
    set(f->easy, CURLOPT_LOW_SPEED_LIMIT, (long)STALLED);
    set(f->easy, CURLOPT_LOW_SPEED_TIME, stall);
    set(f->easy, CURLOPT_HEADERFUNCTION, take_header);
    set(f->easy, CURLOPT_HEADERDATA, f);
    set(f->easy, CURLOPT_WRITEFUNCTION, take_body);
    set(f->easy, CURLOPT_WRITEDATA, f);
    set(f->easy, CURLOPT_PRIVATE, f);
    set_body(f, s);
}

/* False: it could not begin. */
static bool take_off(cv_wire *w)
{
    cv_wire_setup setup = {.connect_ms = 10000, .stall_ms = 30000};
    cv_flight *f = cv_calloc(1, sizeof *f);
    bool good = f && w->prepare(w, &setup) == CV_OK;
    if (f) f->easy = new_easy();
    good = good && f->easy && add_fields(f, &setup.fields);
    if (good) {
        f->wire = w;
        f->body_size = setup.body_size;
        set_options(f, &setup);
        good = wires.curl->multi_add_handle(wires.multi, f->easy) == CURLM_OK;
    }
    cv_buffer_free(&setup.fields);
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
    return l->n < (l->is_multiplexed ? MULTIPLEXED : l->most);
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

static uint64_t time_of(CURL *easy, CURLINFO info)
{
    curl_off_t us = 0;
    wires.curl->easy_getinfo(easy, info, &us);
    return us > 0 ? (uint64_t)us * 1000 : 0;
}

static void describe_end(CURL *easy, CURLcode code, cv_wire_end *end)
{
    char *redirect = NULL;
    wires.curl->easy_getinfo(easy, CURLINFO_REDIRECT_URL, &redirect);
    uint64_t sent = time_of(easy, CURLINFO_PRETRANSFER_TIME_T);
    uint64_t first = time_of(easy, CURLINFO_STARTTRANSFER_TIME_T);
    *end = (cv_wire_end){.is_whole = code == CURLE_OK,
                         .is_broken = is_broken(code),
                         .was_connected = sent > 0,
                         .why = wires.curl->easy_strerror(code),
                         .redirect = redirect,
                         .first_byte_ns = first > sent ? first - sent : 0,
                         .total_ns = time_of(easy, CURLINFO_TOTAL_TIME_T)};
}

static bool is_multiplexed(CURL *easy)
{
    long version = 0;
    wires.curl->easy_getinfo(easy, CURLINFO_HTTP_VERSION, &version);
    return version >= CURL_HTTP_VERSION_2_0;
}

static void land(cv_flight *f, CURLcode code)
{
    cv_wire *w = f->wire;
    cv_wire_limit *l = w->limit;
    cv_wire_end end;
    describe_end(f->easy, code, &end);
    remove_from(&wires.flying, w);
    l->n--;
    if (code == CURLE_OK) l->is_multiplexed = is_multiplexed(f->easy);
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
    cv_thread_block_signals(); /* among them the one for a connection that broke */
    for (;;) {
        int running;
        cv_mutex_lock(&wires.turn);
        take_submitted();
        drop_cancelled();
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

static void after_fork_in_parent(void)
{
    cv_mutex_unlock(&wires.lock);
    cv_mutex_unlock(&wires.turn);
}

/* The parent's connections are left as they are: to close one is to speak on it. */
static void after_fork_in_child(void)
{
    cv_mutex_init(&wires.lock);
    cv_mutex_init(&wires.turn);
    wires.is_running = false;
    wires.submitted = wires.waiting = wires.flying = NULL;
    wires.n_cancelled = 0;
    wires.parents = wires.multi;
    wires.multi = NULL;
    wires.n_spare = 0;
}

static void begin_once(void)
{
    cv_thread_on_fork(CV_FORK_LOCKS, before_fork, after_fork_in_parent, after_fork_in_child);
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

#else

cv_status cv_wire_submit(cv_wire *wire, cv_error *err)
{
    (void)wire;
    return cv_fail(err, CATERVA_EUNSUPPORTED, -1,
                   "this library was built without libcurl (-DCATERVA_REMOTE=ON): it reads "
                   "no URLs");
}

void cv_wire_cancel(cv_wire *wire) { (void)wire; }

#endif

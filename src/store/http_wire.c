/* Room: store. The thread that talks to servers.
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
#include "store/http_wire.h"

#include "store/http_flight.h"

#ifdef CATERVA_HAS_CURL

#include "base/heap.h"
#include "base/os.h"
#include "base/thread.h"

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

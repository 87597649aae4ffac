/* Room: store. A wave on its way. The wire's thread puts bytes where they belong and tells
 * which ranges are complete; the thread that asked hands those on, asks now and then whether
 * it is still wanted, and comes back when no request of it is left anywhere. */
#include "store/http_read.h"

#include "base/heap.h"
#include "base/os.h"
#include "store/http_fetch.h"
#include "store/http_join.h"

#include <string.h>

enum { LOOK_NS = 20000000 }; /* how often the watch is asked */

/* ---- Who waits ------------------------------------------------------------------------ */

/* Requests under way, and what came of them. */
typedef struct waiter {
    cv_mutex lock;
    cv_cond changed;
    size_t n_left; /* requests that are not gone */
    size_t *arrived;
    size_t n_arrived, n_told;
    size_t failed; /* a range */
    cv_status status;
    cv_error error;
} waiter;

static void waiter_init(waiter *w)
{
    *w = (waiter){.failed = SIZE_MAX};
    cv_mutex_init(&w->lock);
    cv_cond_init(&w->changed);
}

static void waiter_destroy(waiter *w)
{
    cv_cond_destroy(&w->changed);
    cv_mutex_destroy(&w->lock);
}

/* One request is gone. With the first failure the others are not worth waiting for. */
static void note_gone(waiter *w, const cv_fetch *f, size_t range)
{
    cv_mutex_lock(&w->lock);
    if (f->status != CV_OK && w->status == CV_OK) {
        w->status = f->status;
        w->error = f->error;
        w->failed = range;
    }
    w->n_left--;
    cv_cond_wake_all(&w->changed);
    cv_mutex_unlock(&w->lock);
}

/* ---- A wave ---------------------------------------------------------------------------- */

typedef struct request {
    cv_fetch fetch; /* first */
    struct wave *wave;
    uint64_t base;      /* where the object's byte 0 is among the segments */
    size_t first, last; /* segments */
    size_t at;          /* those before it are complete */
} request;

typedef struct wave {
    const cv_http_window *window;
    const cv_store_range *ranges;
    size_t n;
    cv_segment *segments;
    size_t n_segments, n_requests;
    size_t *left; /* bytes of each range; the wire's thread's */
    request *requests;
    uint64_t fetched; /* bytes asked for */
    waiter waiter;
} wave;

/* Segments of several objects lie so far apart that no two are ever joined. */
enum { OBJECT_BITS = 40 };

static cv_session *session_of(const wave *w)
{
    return (w->window->objects ? w->window->objects[0] : w->window->object)->session;
}

static uint64_t base_of(const wave *w, size_t range)
{
    return w->window->objects ? (uint64_t)range << OBJECT_BITS : 0;
}

static void complete(wave *w, size_t range)
{
    cv_mutex_lock(&w->waiter.lock);
    w->waiter.arrived[w->waiter.n_arrived++] = range;
    cv_cond_wake_all(&w->waiter.changed);
    cv_mutex_unlock(&w->waiter.lock);
}

/* Puts bytes [pos, end) into the segments that want some of them. */
static cv_status take(cv_fetch *fetch, uint64_t pos, const uint8_t *bytes, size_t size,
                      cv_error *err)
{
    request *r = (request *)fetch;
    wave *w = r->wave;
    (void)err;
    pos += r->base;
    uint64_t end = pos + size;
    while (r->at < r->last && w->segments[r->at].end <= pos) r->at++;
    for (size_t i = r->at; i < r->last && w->segments[i].pos < end; i++) {
        const cv_segment *s = &w->segments[i];
        uint64_t from = s->pos > pos ? s->pos : pos, to = s->end < end ? s->end : end;
        if (from >= to) continue;
        memcpy(s->dst + (from - s->pos), bytes + (from - pos), (size_t)(to - from));
        w->left[s->range] -= (size_t)(to - from);
        if (w->left[s->range] == 0) complete(w, s->range);
    }
    return CV_OK;
}

static void request_gone(cv_fetch *fetch)
{
    request *r = (request *)fetch;
    note_gone(&r->wave->waiter, fetch, r->wave->segments[r->first].range);
}

/* ---- Planning --------------------------------------------------------------------------- */

/* Large requests are cut so that every connection gets some, and a piece that is lost does
 * not cost much. */
static uint64_t most_bytes(const wave *w)
{
    enum { LEAST = 1 << 20 };
    uint64_t total = 0;
    for (size_t i = 0; i < w->n; i++) total += w->ranges[i].size;
    uint64_t each = total / (uint64_t)session_of(w)->limit.most;
    return each < LEAST ? LEAST : each > CV_JOIN_MOST ? CV_JOIN_MOST : each;
}

static size_t count_segments(const wave *w, uint64_t most)
{
    size_t n = 0;
    for (size_t i = 0; i < w->n; i++) n += (size_t)((w->ranges[i].size + most - 1) / most);
    return n;
}

static void cut(wave *w, uint64_t most)
{
    cv_segment *to = w->segments;
    cv_http_object *const *objects = w->window->objects;
    size_t first = 0; /* range of the object's */
    for (size_t i = 0; i < w->n; i++) {
        const cv_store_range *r = &w->ranges[i];
        if (objects && objects[i] != objects[first]) first = i;
        uint64_t pos = base_of(w, first) + w->window->offset + r->pos;
        w->left[i] = r->size;
        for (uint64_t done = 0; done < r->size; done += most) {
            uint64_t size = r->size - done < most ? r->size - done : most;
            *to++ = (cv_segment){.pos = pos + done,
                                 .end = pos + done + size,
                                 .dst = (uint8_t *)r->dst + done,
                                 .range = i};
        }
    }
}

static void make_request(wave *w, request *r, size_t first)
{
    uint64_t end = 0, begin = w->segments[first].pos;
    cv_session *s = session_of(w);
    size_t last = first;
    bool has_own = w->window->objects != NULL;
    do {
        if (w->segments[last].end > end) end = w->segments[last].end;
        last++;
    } while (last < w->n_segments && !w->segments[last].begins);
    *r = (request){.wave = w, .first = first, .last = last, .at = first};
    if (has_own) r->base = begin >> OBJECT_BITS << OBJECT_BITS;
    r->fetch.object = has_own ? w->window->objects[begin >> OBJECT_BITS] : w->window->object;
    r->fetch.ask = (cv_ask){.first = begin - r->base, .end = end - r->base};
    r->fetch.is_anew = w->window->is_anew;
    r->fetch.n_ranges = (int)(last - first);
    r->fetch.take = take;
    r->fetch.gone = request_gone;
    w->fetched += end - begin;
    if (last - first > 1) atomic_fetch_add(&s->joined, (int64_t)(last - first));
}

static cv_status plan(wave *w, cv_error *err)
{
    cv_session *s = session_of(w);
    const cv_join_rule rule = {.gap = cv_session_gap(s),
                               .over_percent = s->options.over_read_percent,
                               .most = most_bytes(w),
                               .connections = s->limit.most};
    w->n_segments = count_segments(w, rule.most);
    w->segments = cv_calloc(w->n_segments, sizeof *w->segments);
    w->left = cv_calloc(w->n, sizeof *w->left);
    w->waiter.arrived = cv_calloc(w->n, sizeof *w->waiter.arrived);
    if (!w->segments || !w->left || !w->waiter.arrived)
        return cv_fail_memory(err, w->n_segments * sizeof *w->segments, "a list of ranges");
    cut(w, rule.most);
    w->n_requests = cv_join(w->segments, w->n_segments, &rule);
    w->requests = cv_calloc(w->n_requests, sizeof *w->requests);
    if (!w->requests)
        return cv_fail_memory(err, w->n_requests * sizeof *w->requests, "requests");
    size_t at = 0;
    for (size_t i = 0; i < w->n_requests; at = w->requests[i++].last)
        make_request(w, &w->requests[i], at);
    return CV_OK;
}

/* ---- Waiting ---------------------------------------------------------------------------- */

static void cancel_all(const wave *w)
{
    for (size_t i = 0; i < w->n_requests; i++) cv_fetch_cancel(&w->requests[i].fetch);
}

/* With the lock; gives it up for as long as others work. */
static void hand_over(wave *w, const cv_arrivals *arrivals)
{
    waiter *a = &w->waiter;
    while (a->status == CV_OK && a->n_told < a->n_arrived) {
        cv_error error = {0};
        size_t range = a->arrived[a->n_told++];
        cv_mutex_unlock(&a->lock);
        cv_status status = arrivals->arrived(arrivals->context, range, &error);
        cv_mutex_lock(&a->lock);
        if (status == CV_OK || a->status != CV_OK) continue;
        a->status = status;
        a->error = error;
        a->failed = SIZE_MAX;
    }
}

static void ask_watch(waiter *a, cv_watch *watch)
{
    cv_error error = {0};
    if (!watch || a->status != CV_OK) return;
    cv_mutex_unlock(&a->lock);
    cv_status status = cv_watch_tick(watch, 0, &error);
    cv_mutex_lock(&a->lock);
    if (status == CV_OK || a->status != CV_OK) return;
    a->status = status;
    a->error = error;
}

/* With the lock. */
static void wait_for_change(waiter *a, cv_watch *watch)
{
    if (watch)
        cv_cond_wait_for(&a->changed, &a->lock, LOOK_NS);
    else
        cv_cond_wait(&a->changed, &a->lock);
}

static void wait_for_all(wave *w, const cv_arrivals *arrivals)
{
    waiter *a = &w->waiter;
    bool is_cancelled = false;
    cv_mutex_lock(&a->lock);
    for (;;) {
        hand_over(w, arrivals);
        if (a->n_left == 0) break;
        ask_watch(a, arrivals->watch);
        if (a->status != CV_OK && !is_cancelled) {
            is_cancelled = true;
            cv_mutex_unlock(&a->lock);
            cancel_all(w);
            cv_mutex_lock(&a->lock);
        }
        if (a->n_left > 0 && (a->status != CV_OK || a->n_told == a->n_arrived))
            wait_for_change(a, is_cancelled ? NULL : arrivals->watch);
    }
    cv_mutex_unlock(&a->lock);
}

/* What could not be begun counts as gone. */
static void begin_all(wave *w)
{
    waiter *a = &w->waiter;
    cv_error error = {0};
    a->n_left = w->n_requests;
    for (size_t i = 0; i < w->n_requests; i++) {
        cv_status status = cv_fetch_begin(&w->requests[i].fetch, &error);
        if (status == CV_OK) continue;
        cv_mutex_lock(&a->lock);
        a->n_left -= w->n_requests - i;
        a->status = status;
        a->error = error;
        w->n_requests = i;
        cv_mutex_unlock(&a->lock);
    }
}

static cv_status run(wave *w, const cv_arrivals *arrivals, cv_error *err)
{
    waiter *a = &w->waiter;
    cv_session *s = session_of(w);
    uint64_t began = cv_os_clock_ns();
    atomic_fetch_add(&s->round_trips, 1);
    begin_all(w);
    wait_for_all(w, arrivals);
    if (a->status == CV_OK)
        cv_session_note_speed(s, w->fetched, cv_os_clock_ns() - began);
    else if (a->failed < w->n && arrivals->failed)
        arrivals->failed(arrivals->context, a->failed);
    if (a->status != CV_OK && err) *err = a->error;
    return a->status;
}

cv_status cv_http_read(const cv_http_window *window, const cv_store_range *ranges, size_t n,
                       const cv_arrivals *arrivals, cv_error *err)
{
    wave w = {.window = window, .ranges = ranges, .n = n};
    if (n == 0) return CV_OK;
    waiter_init(&w.waiter);
    cv_status status = plan(&w, err);
    if (status == CV_OK) status = run(&w, arrivals, err);
    waiter_destroy(&w.waiter);
    cv_free(w.segments);
    cv_free(w.left);
    cv_free(w.requests);
    cv_free(w.waiter.arrived);
    return status;
}

/* ---- A piece --------------------------------------------------------------------------- */

typedef struct piece_request {
    cv_fetch fetch; /* first */
    cv_http_piece *out;
    waiter *waiter;    /* of one, or of many */
    cv_status *status; /* where that of one of many goes; else NULL */
} piece_request;

static cv_status piece_granted(cv_fetch *fetch, const cv_grant *grant, cv_error *err)
{
    cv_http_piece *out = ((piece_request *)fetch)->out;
    out->bytes = cv_malloc((size_t)grant->size);
    if (!out->bytes) return cv_fail_memory(err, (size_t)grant->size, "bytes of a URL");
    out->pos = grant->first;
    out->size = (size_t)grant->size;
    return CV_OK;
}

static cv_status piece_take(cv_fetch *fetch, uint64_t pos, const uint8_t *bytes, size_t size,
                            cv_error *err)
{
    cv_http_piece *out = ((piece_request *)fetch)->out;
    (void)err;
    memcpy(out->bytes + (pos - out->pos), bytes, size);
    return CV_OK;
}

static void piece_gone(cv_fetch *fetch)
{
    const piece_request *r = (piece_request *)fetch;
    waiter *a = r->waiter;
    if (!r->status) {
        note_gone(a, fetch, 0);
        return;
    }
    cv_mutex_lock(&a->lock); /* the others go on */
    *r->status = fetch->status;
    a->n_left--;
    cv_cond_wake_all(&a->changed);
    cv_mutex_unlock(&a->lock);
}

static void wait_for_pieces(waiter *a, piece_request *list, size_t n, cv_watch *watch)
{
    bool is_cancelled = false;
    cv_mutex_lock(&a->lock);
    while (a->n_left > 0) {
        wait_for_change(a, is_cancelled ? NULL : watch);
        ask_watch(a, watch);
        if (a->status == CV_OK || is_cancelled || a->n_left == 0) continue;
        is_cancelled = true;
        cv_mutex_unlock(&a->lock);
        for (size_t i = 0; i < n; i++) cv_fetch_cancel(&list[i].fetch);
        cv_mutex_lock(&a->lock);
    }
    cv_mutex_unlock(&a->lock);
}

static void order_piece(piece_request *r, cv_http_object *object, const cv_ask *ask,
                        bool is_anew)
{
    *r->out = (cv_http_piece){0};
    r->fetch.object = object;
    r->fetch.ask = *ask;
    r->fetch.is_anew = is_anew;
    r->fetch.n_ranges = 1;
    r->fetch.granted = piece_granted;
    r->fetch.take = piece_take;
    r->fetch.gone = piece_gone;
}

cv_status cv_http_read_piece(cv_http_object *object, const cv_ask *ask, bool is_anew,
                             cv_watch *watch, cv_http_piece *out, bool *has_no_ranges,
                             cv_error *err)
{
    waiter a;
    piece_request r = {.out = out, .waiter = &a};
    order_piece(&r, object, ask, is_anew);
    waiter_init(&a);
    a.n_left = 1;
    atomic_fetch_add(&object->session->round_trips, 1);
    cv_status status = cv_fetch_begin(&r.fetch, err);
    if (status == CV_OK) {
        wait_for_pieces(&a, &r, 1, watch);
        status = a.status;
        if (status != CV_OK && err) *err = a.error;
    }
    *has_no_ranges = r.fetch.has_no_ranges;
    waiter_destroy(&a);
    if (status != CV_OK) cv_free(out->bytes);
    if (status != CV_OK) *out = (cv_http_piece){0};
    return status;
}

/* ---- First pieces of many ---------------------------------------------------------------- */

/* What could not be begun has that for its status. */
static void begin_orders(cv_http_order *orders, piece_request *list, size_t n, waiter *a)
{
    for (size_t i = 0; i < n; i++) {
        const cv_ask ask = {.first = 0, .end = orders[i].size};
        list[i].out = &orders[i].piece;
        list[i].waiter = a;
        list[i].status = &orders[i].status;
        order_piece(&list[i], orders[i].object, &ask, orders[i].is_anew);
        cv_mutex_lock(&a->lock);
        a->n_left++;
        cv_mutex_unlock(&a->lock);
        cv_status status = cv_fetch_begin(&list[i].fetch, NULL);
        if (status == CV_OK) continue;
        cv_mutex_lock(&a->lock);
        orders[i].status = status;
        a->n_left--;
        cv_mutex_unlock(&a->lock);
    }
}

cv_status cv_http_read_orders(cv_http_order *orders, size_t n, cv_watch *watch, cv_error *err)
{
    waiter a;
    if (n == 0) return CV_OK;
    piece_request *list = cv_calloc(n, sizeof *list);
    if (!list) return cv_fail_memory(err, n * sizeof *list, "requests");
    waiter_init(&a);
    atomic_fetch_add(&orders[0].object->session->round_trips, 1);
    begin_orders(orders, list, n, &a);
    wait_for_pieces(&a, list, n, watch);
    cv_status status = a.status;
    if (status != CV_OK && err) *err = a.error;
    waiter_destroy(&a);
    cv_free(list);
    for (size_t i = 0; i < n; i++) {
        cv_http_order *o = &orders[i];
        if (status == CV_OK && o->status == CV_OK) continue;
        cv_free(o->piece.bytes);
        o->piece = (cv_http_piece){0};
    }
    return status;
}

/* Room: remote. INTRO of remote/wave */
#include "remote/wave.h"

#include "base/heap.h"

#include <stddef.h>
#include <string.h>

/* ---- Http wave ----
 *
 * How a wave becomes requests. That they are sent, and what comes of them, is not
 * known here. */

typedef struct cv_http_request {
    cv_fetch fetch; /* first */
    struct cv_http_wave *wave;
    uint64_t base;      /* where the object's byte 0 is among the segments */
    size_t first, last; /* segments */
    size_t at;          /* those before it are complete */
    size_t n;           /* requests, from this one on, that it is sent for */
    bool is_asking;     /* it finds out whether the server sends several parts */
} cv_http_request;

typedef struct cv_http_wave {
    cv_reading base;
    cv_gathered all; /* whom it is under way with */
    cv_http_window window;
    const cv_store_range *ranges;
    size_t n;
    cv_segment *segments;
    size_t n_segments, n_requests;
    size_t *left;     /* bytes of each range that are missing; the wire's thread's, as: */
    uint8_t **dst;    /* where those of a range go, or NULL: it has no room yet */
    bool borrows;     /* the memory of ranges, when their first bytes come */
    size_t n_filling; /* of those ranges: they have memory, and not all bytes */
    cv_flow flow;
    cv_http_request *requests;
    cv_http_span *spans; /* of each request */
    cv_several_waiter waiter;
    size_t n_made;  /* requests before what was not sent was joined again */
    bool is_narrow; /* only small gaps are read over: parts of an answer have larger ones */
    size_t n_begun, n_first; /* requests; and before it is known what the server sends */
    atomic_bool is_given_up;
    atomic_bool has_waited; /* some of it was sent when others had been answered */
    size_t together;        /* bytes of all that is under way with it */
    cv_session_mark began;
} cv_http_wave;

typedef cv_http_wave wave;
typedef cv_http_request request;

/* Bytes of a request of a wave that borrows: what has come is not asked for again when it
 * breaks, and each round trip that is saved is one in which nothing comes. */
enum { MOST_BORROWED = 32 << 20 };

/* Segments of several objects lie so far apart that no two are ever joined. */
enum { OBJECT_BITS = 40 };

static cv_session *cv_http_wave_session(const wave *w)
{
    return (w->window.objects ? w->window.objects[0] : w->window.object)->session;
}

static uint64_t base_of(const wave *w, size_t range)
{
    return w->window.objects ? (uint64_t)range << OBJECT_BITS : 0;
}

/* Of a request: what is not lost when it breaks, and waits for nobody's memory, may be long. */
static uint64_t limit_of(const wave *w) { return w->borrows ? MOST_BORROWED : CV_JOIN_MOST; }

/* Large requests are cut so that every connection gets some, and a piece that is lost does
 * not cost much. */
static uint64_t most_bytes(const wave *w)
{
    enum { LEAST = 1 << 20 };
    uint64_t total = 2 * (uint64_t)w->together; /* of which each wave is one, as a rule */
    for (size_t i = 0; i < w->n && w->together == 0; i++) total += w->ranges[i].size;
    uint64_t each = total / (uint64_t)cv_http_wave_session(w)->limit.most, most = limit_of(w);
    return each < LEAST ? LEAST : each > most ? most : each;
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
    cv_http_object *const *objects = w->window.objects;
    size_t first = 0; /* range of the object's */
    for (size_t i = 0; i < w->n; i++) {
        const cv_store_range *r = &w->ranges[i];
        if (objects && objects[i] != objects[first]) first = i;
        uint64_t pos = base_of(w, first) + w->window.offset + r->pos;
        w->left[i] = r->size;
        w->dst[i] = r->dst;
        for (uint64_t done = 0; done < r->size; done += most) {
            uint64_t size = r->size - done < most ? r->size - done : most;
            *to++ = (cv_segment){
                .pos = pos + done, .end = pos + done + size, .range = i, .at = (size_t)done};
        }
    }
}

static void make_request(wave *w, size_t number, size_t first)
{
    request *r = &w->requests[number];
    uint64_t end = 0, begin = w->segments[first].pos;
    size_t last = first;
    bool has_own = w->window.objects != NULL;
    do {
        if (w->segments[last].end > end) end = w->segments[last].end;
        last++;
    } while (last < w->n_segments && !w->segments[last].begins);
    r->wave = w; /* and not all of it: others may look at the fetch's wire */
    r->first = r->at = first;
    r->last = last;
    if (has_own) r->base = begin >> OBJECT_BITS << OBJECT_BITS;
    r->fetch.object = has_own ? w->window.objects[begin >> OBJECT_BITS] : w->window.object;
    r->fetch.is_anew = w->window.is_anew;
    w->spans[number] = (cv_http_span){begin - r->base, end - r->base, begin - r->base};
}

static cv_join_rule rule_of(const wave *w, bool is_narrow)
{
    enum { PART = 4096 }; /* what is between two parts of an answer is not worth much more */
    cv_session *s = cv_http_wave_session(w);
    return (cv_join_rule){.gap = is_narrow ? PART : cv_session_gap(s),
                          .over_percent = s->options.over_read_percent,
                          .most = most_bytes(w),
                          .limit = limit_of(w),
                          .connections = s->limit.most};
}

/* To a server that sends several parts, or may do so, small gaps are read over, and no large
 * ones. Where all requests go at once anyhow it is not found out whether it does. */
static size_t join(wave *w, const cv_join_rule *rule)
{
    cv_several_state state = cv_several_look(&cv_http_wave_session(w)->several);
    size_t n = 0;
    w->is_narrow = state == CV_SEVERAL_KNOWN;
    if (!w->is_narrow) n = cv_join(w->segments, w->n_segments, rule);
    if (n > (size_t)rule->connections) w->is_narrow = state != CV_SEVERAL_REFUSED;
    if (!w->is_narrow) return n;
    const cv_join_rule narrow = rule_of(w, true);
    return cv_join(w->segments, w->n_segments, &narrow);
}

static void make_requests(wave *w, size_t number, size_t end, size_t segment)
{
    for (; number < end; segment = w->requests[number++].last)
        make_request(w, number, segment);
}

/* Makes requests of the ranges. The wave has its window, ranges and how they get their memory;
 * what was made is freed by the next one, also on failure. */
static cv_status cv_http_wave_plan(wave *w, cv_error *err)
{
    const cv_join_rule rule = rule_of(w, false);
    w->n_segments = count_segments(w, rule.most);
    w->segments = cv_calloc(w->n_segments, sizeof *w->segments);
    w->left = cv_calloc(w->n, sizeof *w->left);
    w->dst = cv_calloc(w->n, sizeof *w->dst);
    if (!w->segments || !w->left || !w->dst)
        return cv_fail_memory(err, w->n_segments * sizeof *w->segments, "a list of ranges");
    cut(w, rule.most);
    w->n_requests = w->n_made = join(w, &rule);
    w->requests = cv_calloc(w->n_requests, sizeof *w->requests);
    w->spans = cv_calloc(w->n_requests, sizeof *w->spans);
    if (!w->requests || !w->spans)
        return cv_fail_memory(err, w->n_requests * sizeof *w->requests, "requests");
    make_requests(w, 0, w->n_requests, 0);
    return CV_OK;
}

static void cv_http_wave_free(wave *w)
{
    cv_free(w->segments);
    cv_free(w->left);
    cv_free(w->dst);
    cv_free(w->requests);
    cv_free(w->spans);
    cv_free(w);
}

/* ---- Once more -------------------------------------------------------------------------- */

static bool has_come(const wave *w, size_t first, size_t n)
{
    size_t i = first;
    while (i < first + n &&
           w->spans[i].next + w->requests[i].base == w->segments[w->requests[i].first].pos)
        i++;
    return i < first + n;
}

/* Of `n` requests from `first` on, of which nothing is under way: where nothing has come of them
 * either, they read over larger gaps, as a server needs that sends one part at a time. Returns
 * how many there are now, still from `first` on. */
static size_t cv_http_wave_join_again(wave *w, size_t first, size_t n)
{
    if (n < 2 || has_come(w, first, n)) return n;
    const cv_join_rule rule = rule_of(w, false);
    size_t segment = w->requests[first].first, end = w->requests[first + n - 1].last;
    size_t n_joined = cv_join(w->segments + segment, end - segment, &rule);
    if (n_joined >= n) return n;
    make_requests(w, first, first + n_joined, segment);
    return n_joined;
}

/* ---- Http read ----
 *
 * A wave on its way. The wire's thread puts bytes where they belong and tells
 * which ranges are complete; who waits for them, and for other waves, is gather.c. */


static cv_session *session_of(const wave *w) { return cv_http_wave_session(w); }

/* ---- Hearing ----------------------------------------------------------------------------- */

/* Room for the range, if there is some. Those that have all their bytes give theirs back sooner
 * or later; where only others have some, and nothing moves but this request, it gets some in
 * any case: what they miss may come behind what it brings. */
static cv_status find_room(wave *w, size_t range, cv_error *err)
{
    const cv_arrivals *a = &w->all.arrivals;
    bool moves_alone = w->flow.n_flying - w->flow.n_paused <= 1;
    size_t stuck = moves_alone ? w->n_filling : 0;
    if (atomic_load(&session_of(w)->limit.is_multiplexed)) /* since it began */
        stuck = SIZE_MAX;
    CV_TRY(a->lend(a->context, range, stuck, &w->dst[range], err));
    if (w->dst[range]) w->n_filling++;
    return CV_OK;
}

/* Bytes of ranges that have room, up to the first one that has none. */
static cv_status admit(cv_fetch *fetch, uint64_t pos, size_t size, size_t *admitted,
                       cv_error *err)
{
    const request *r = (request *)fetch + fetch->span;
    wave *w = r->wave;
    uint64_t end = (pos += r->base) + size;
    *admitted = size;
    for (size_t i = r->at; i < r->last && w->segments[i].pos < end; i++) {
        const cv_segment *s = &w->segments[i];
        if (s->end <= pos) continue;
        if (!w->dst[s->range]) CV_TRY(find_room(w, s->range, err));
        if (w->dst[s->range]) continue;
        *admitted = s->pos > pos ? (size_t)(s->pos - pos) : 0;
        break;
    }
    return CV_OK;
}

static void complete(wave *w, size_t range)
{
    if (w->borrows) w->n_filling--;
    cv_gathered_arrived(&w->all, range);
}

/* Bytes that were taken are what was asked for. */
static void count_arrived(wave *w, const cv_segment *s, uint64_t size)
{
    w->left[s->range] -= (size_t)size;
    if (w->left[s->range] == 0) complete(w, s->range);
}

/* Bytes [from, *to) of the segment are among [pos, end): false, none are. */
static bool overlap(const cv_segment *s, uint64_t pos, uint64_t end, uint64_t *from,
                    uint64_t *to)
{
    *from = s->pos > pos ? s->pos : pos;
    *to = s->end < end ? s->end : end;
    return *from < *to;
}

static void trust(cv_fetch *fetch, uint64_t pos, uint64_t size)
{
    const request *r = (request *)fetch + fetch->span;
    wave *w = r->wave;
    uint64_t from, to, end = (pos += r->base) + size;
    for (size_t i = r->first; i < r->last && w->segments[i].pos < end; i++)
        if (overlap(&w->segments[i], pos, end, &from, &to))
            count_arrived(w, &w->segments[i], to - from);
}

static void undo(cv_fetch *fetch)
{
    request *r = (request *)fetch + fetch->span;
    r->at = r->first;
}

/* Puts bytes [pos, end) into the segments that want some of them. Those of parts arrive later. */
static cv_status take(cv_fetch *fetch, uint64_t pos, const uint8_t *bytes, size_t size,
                      cv_error *err)
{
    request *r = (request *)fetch + fetch->span;
    wave *w = r->wave;
    (void)err;
    pos += r->base;
    uint64_t from, to, end = pos + size;
    while (r->at < r->last && w->segments[r->at].end <= pos) r->at++;
    for (size_t i = r->at; i < r->last && w->segments[i].pos < end; i++) {
        const cv_segment *s = &w->segments[i];
        if (!overlap(s, pos, end, &from, &to)) continue;
        memcpy(w->dst[s->range] + s->at + (from - s->pos), bytes + (from - pos),
               (size_t)(to - from));
        if (!fetch->spans) count_arrived(w, s, to - from);
    }
    return CV_OK;
}

/* ---- Sending ------------------------------------------------------------------------------ */

static void request_gone(cv_fetch *fetch);

static int count_ranges(const wave *w, size_t first, size_t n)
{
    return (int)(w->requests[first + n - 1].last - w->requests[first].first);
}

static void send_each(wave *w, size_t first, size_t end);

/* Nobody finds out: others may, and what waits of this wave goes as it is. */
static void not_asked(wave *w, request *r)
{
    cv_several *several = &session_of(w)->several;
    if (!r->is_asking) return;
    r->is_asking = false;
    bool waits = cv_several_leave(several, &w->waiter);
    cv_several_learn(several, CV_SEVERAL_UNKNOWN);
    if (waits) send_each(w, w->n_first, w->n_requests);
}

/* Sends `n` of them, from `first` on, as one. What could not be begun counts as gone; then the
 * wave may be gone, too, where nothing else of it is left. */
static void send_request(wave *w, size_t first, size_t n)
{
    request *r = &w->requests[first];
    const cv_http_span *spans = &w->spans[first];
    cv_error error = {0};
    r->n = n;
    r->fetch.ask = (cv_ask){.first = spans[0].next, .end = spans[n - 1].end};
    r->fetch.spans = n > 1 ? &w->spans[first] : NULL;
    r->fetch.n_spans = n;
    r->fetch.n_ranges = count_ranges(w, first, n);
    r->fetch.take = take;
    r->fetch.trust = trust;
    r->fetch.undo = undo;
    r->fetch.admit = admit;
    r->fetch.flow = w->borrows ? &w->flow : NULL;
    r->fetch.gone = request_gone;
    cv_status status = CATERVA_ESTOPPED;
    if (!atomic_load(&w->is_given_up)) status = cv_fetch_begin(&r->fetch, &error);
    if (status == CV_OK) {
        /* Who gave it up may have looked too early to cancel this. */
        if (atomic_load(&w->is_given_up)) cv_fetch_cancel(&r->fetch);
        return;
    }
    not_asked(w, r);
    cv_gathered_gone(&w->all, n, status, &error, SIZE_MAX);
}

static void send_each(wave *w, size_t first, size_t end)
{
    while (first < end) send_request(w, first++, 1);
}

/* Those that are of one object, from `first` on. */
static size_t count_of_object(const wave *w, size_t first, size_t end)
{
    size_t n = 1;
    const cv_http_object *object = w->requests[first].fetch.object;
    while (first + n < end && w->requests[first + n].fetch.object == object) n++;
    return n;
}

/* As many requests as there are connections, where that is not too many for each. */
static void send_together(wave *w, size_t first, size_t end)
{
    uint64_t cost = cv_spans_cost(&w->spans[first], end - first);
    uint64_t each = cost / (uint64_t)session_of(w)->limit.most + 1;
    size_t most = cv_several_most(&session_of(w)->several);
    while (first < end) {
        size_t n = count_of_object(w, first, end);
        if (n > most) n = most;
        n = cv_spans_share(&w->spans[first], n, each);
        first += n; /* the wave may go with the last one */
        send_request(w, first - n, n);
    }
}

/* The first request of several parts: few, so that not much is lost. */
static size_t count_asked(const wave *w, size_t first)
{
    enum { FEW = 4 };
    size_t n = count_of_object(w, first, w->n_requests);
    if (w->requests[first].fetch.object->identity.size == UINT64_MAX) return 1;
    return cv_spans_share(&w->spans[first], n < FEW ? n : FEW, UINT64_MAX);
}

/* One request asks for several parts, beside it go as many as there are connections, and the rest
 * waits for what comes of it. */
static void find_out(wave *w, size_t n_asked)
{
    size_t first = w->n_begun, end = w->n_first;
    w->requests[first].is_asking = true;
    send_request(w, first, n_asked);
    send_each(w, first + n_asked, end);
}

/* The server sends one part at a time. */
static void send_joined(wave *w, size_t first)
{
    size_t n = w->n_requests - first, n_joined = n;
    if (w->is_narrow) n_joined = cv_http_wave_join_again(w, first, n);
    w->is_narrow = false;
    w->n_requests = first + n_joined;
    if (n_joined < n) cv_gathered_gone(&w->all, n - n_joined, CV_OK, NULL, SIZE_MAX);
    send_each(w, first, first + n_joined);
}

/* Sends what was not sent, as the server would have it. */
static void send_rest(wave *w)
{
    cv_session *s = session_of(w);
    size_t first = w->n_begun, end = w->n_requests, most = (size_t)s->limit.most;
    size_t n_asked = first < end ? count_asked(w, first) : 0;
    cv_several_state state = CV_SEVERAL_REFUSED;
    w->n_first = end - first > n_asked + most - 1 ? first + n_asked + most - 1 : end;
    if (end - first > most && n_asked > 1) state = cv_several_ask(&s->several, &w->waiter);
    if (state == CV_SEVERAL_KNOWN || state == CV_SEVERAL_EXPECTED)
        send_together(w, first, end);
    else if (state == CV_SEVERAL_REFUSED)
        send_joined(w, first);
    else if (state == CV_SEVERAL_UNKNOWN)
        find_out(w, n_asked);
}

/* Some of it goes when others have been answered: who waits for it waits for both. Of waves that
 * go along with others only one is counted, the one that found out. */
static void count_round(wave *w, bool has_asked)
{
    if (w->all.arrivals.is_along && !has_asked) return;
    if (!atomic_exchange(&w->has_waited, true))
        atomic_fetch_add(&session_of(w)->round_trips, 1);
}

static void go_on(cv_several_waiter *waiter)
{
    wave *w = (wave *)(void *)((char *)waiter - offsetof(wave, waiter));
    if (waiter->is_asking) w->n_begun = w->n_first;
    if (w->n_begun == w->n_requests) return;
    count_round(w, waiter->is_asking);
    send_rest(w);
}

/* What several were asked for is asked for one by one, as far as it has not come. */
static void send_apart(wave *w, size_t first, size_t n)
{
    size_t n_left, n_joined = cv_http_wave_join_again(w, first, n);
    (void)cv_spans_left(&w->spans[first], n_joined, &n_left);
    if (n_left < n) cv_gathered_gone(&w->all, n - n_left, CV_OK, NULL, SIZE_MAX);
    for (size_t i = first, left = n_left; left > 0; i++) {
        if (w->spans[i].next == w->spans[i].end) continue;
        left--;
        send_request(w, i, 1);
    }
}

/* What a request for several, or for one, says about the server. A body that was cut once, and
 * the place of a redirection that is over, say nothing. */
static void learn(request *r)
{
    const cv_fetch *f = &r->fetch;
    bool is_asking = r->is_asking;
    cv_several *several = &f->object->session->several;
    cv_several_state state = CV_SEVERAL_UNKNOWN;
    if (f->is_split && (f->has_no_parts || f->failures > 0)) state = CV_SEVERAL_REFUSED;
    if (!f->is_split && f->status == CV_OK) state = CV_SEVERAL_KNOWN;
    r->is_asking = false;
    if (is_asking || (f->is_split && f->has_no_parts))
        cv_several_learn(several, state);
    else if (f->spans && state == CV_SEVERAL_KNOWN)
        cv_several_confirm(several);
}

static void request_gone(cv_fetch *fetch)
{
    request *r = (request *)fetch;
    wave *w = r->wave;
    size_t first = (size_t)(r - w->requests), n = r->n;
    bool has_asked = r->is_asking;
    learn(r);
    if (fetch->is_split) {
        if (fetch->has_no_parts) count_round(w, has_asked);
        send_apart(w, first, n);
        return;
    }
    if (fetch->n_ranges > 1)
        atomic_fetch_add(&fetch->object->session->joined, fetch->n_ranges);
    cv_gathered_gone(&w->all, n, fetch->status, &fetch->error, w->segments[r->first].range);
}

/* ---- From the beginning to the end -------------------------------------------------------- */

/* What waits is never sent. */
static void give_up(wave *w)
{
    cv_error error = {0};
    atomic_store(&w->is_given_up, true);
    if (cv_several_leave(&session_of(w)->several, &w->waiter)) {
        size_t n_sent = w->waiter.is_asking ? w->n_first : w->n_begun;
        cv_gathered_gone(&w->all, w->n_requests - n_sent, CATERVA_ESTOPPED, &error, SIZE_MAX);
    }
    for (size_t i = 0; i < w->n_made; i++) cv_fetch_cancel(&w->requests[i].fetch);
}

static void end_wave(cv_reading *reading, bool gives_up)
{
    wave *w = (wave *)reading; /* its first member */
    if (gives_up) give_up(w);
    cv_gathered_leave(&w->all);
    cv_session *s = session_of(w);
    const cv_session_mark now = cv_session_now(s);
    if (!gives_up) cv_session_note_speed(s, &w->began, &now);
    cv_http_wave_free(w);
}

cv_status cv_http_begin(const cv_http_window *window, const cv_store_range *ranges, size_t n,
                        const cv_arrivals *arrivals, cv_gathering *all, cv_reading **out,
                        cv_error *err)
{
    *out = NULL;
    if (n == 0) return CV_OK;
    wave *w = cv_calloc(1, sizeof *w);
    if (!w) return cv_fail_memory(err, sizeof *w, "requests");
    *w = (wave){.base = {end_wave},
                .window = *window,
                .ranges = ranges,
                .n = n,
                .borrows = arrivals->lend != NULL,
                .waiter = {.go = go_on},
                .together = arrivals->together};
    cv_status status = cv_http_wave_plan(w, err);
    if (status == CV_OK)
        status = cv_gathered_join(&w->all, all, arrivals, n, w->n_requests, err);
    if (status != CV_OK) {
        cv_http_wave_free(w);
        return status;
    }
    cv_session *s = session_of(w);
    if (!arrivals->is_along) atomic_fetch_add(&s->round_trips, 1);
    w->began = cv_session_now(s);
    send_rest(w);
    *out = &w->base;
    return CV_OK;
}

cv_status cv_http_read(const cv_http_window *window, const cv_store_range *ranges, size_t n,
                       const cv_arrivals *arrivals, cv_error *err)
{
    cv_gathering all;
    cv_reading *reading;
    cv_gathering_init(&all);
    cv_status status = cv_http_begin(window, ranges, n, arrivals, &all, &reading, err);
    if (status == CV_OK) status = cv_gathering_finish(&all, reading, arrivals->watch, err);
    cv_gathering_destroy(&all);
    return status;
}

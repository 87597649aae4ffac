/* Room: remote. Waves: ranges of objects that are read together. A wave cuts long ranges into
 * segments, joins neighbouring segments into requests (ranges.c) and, if the server supports
 * multi-range requests, sends several of those as one. The wire's thread copies the bytes to their
 * ranges and reports complete ranges; store/gather hands these to the reader. */
#include "remote/transfer.h"

#include <stddef.h>
#include <string.h>

typedef struct request {
    cv_fetch fetch; /* first */
    struct wave *wave;
    uint64_t base;      /* segment positions are those in the object plus `base` */
    size_t first, last; /* segments [first, last) */
    size_t at;          /* segments before this one are complete */
    size_t n;           /* number of requests, from this one on, that are sent as one */
    bool is_asking;     /* finds out whether the server supports multi-range requests */
} request;

typedef struct wave {
    cv_reading base;
    cv_gathered all; /* joins the waves in flight together */
    cv_wave_target target;
    const cv_store_range *ranges;
    size_t n;
    size_t together; /* total bytes of the waves that are in flight together */
    /* State of filling ranges; accessed only by the wire's thread. */
    size_t *left;     /* missing bytes of each range */
    uint8_t **dst;    /* destination of each range; NULL: no memory yet */
    bool borrows;     /* ranges get memory when their first bytes arrive */
    size_t n_filling; /* ranges that have memory, but not yet all bytes */
    cv_flow flow;
    /* The plan. */
    cv_segment *segments;
    size_t n_segments;
    request *requests;
    cv_byte_range *wanted; /* one for each request */
    size_t n_requests;
    size_t n_made;  /* maximum of n_requests, before requests were joined again */
    bool is_narrow; /* only small gaps are bridged, which suits multi-range requests */
    /* Sending. */
    size_t n_begun, n_first; /* requests sent; of these, sent before the multi-range result */
    cv_multirange_waiter waiter;
    atomic_bool is_given_up;
    atomic_bool has_waited; /* a request was sent after the answer to another one */
    cv_session_mark began;
} wave;

static cv_session *session_of(const wave *w)
{
    return (w->target.objects ? w->target.objects[0] : w->target.object)->session;
}

/* ---- Planning ---------------------------------------------------------------------------- */

/* Largest request if ranges borrow memory. It exceeds CV_JOIN_MOST, because received bytes are not
 * requested again if the request breaks, and because fewer requests need fewer round trips. */
enum { MOST_BORROWED = 32 << 20 };

/* Segments of different objects are so far apart that they are never joined. */
enum { OBJECT_BITS = 40 };

static uint64_t limit_of(const wave *w) { return w->borrows ? MOST_BORROWED : CV_JOIN_MOST; }

/* Returns the maximum size of a segment: large ranges are cut so that every connection gets a
 * share, and a lost request costs little. */
static uint64_t most_bytes(const wave *w)
{
    enum { LEAST = 1 << 20 };
    uint64_t total = 2 * (uint64_t)w->together; /* usually two waves are in flight */
    for (size_t i = 0; i < w->n && w->together == 0; i++) total += w->ranges[i].size;
    uint64_t each = total / (uint64_t)session_of(w)->limit.most, most = limit_of(w);
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
    cv_remote_object *const *objects = w->target.objects;
    size_t first = 0; /* first range of the same object */
    for (size_t i = 0; i < w->n; i++) {
        const cv_store_range *r = &w->ranges[i];
        if (objects && objects[i] != objects[first]) first = i;
        uint64_t base = w->target.objects ? (uint64_t)first << OBJECT_BITS : 0;
        uint64_t pos = base + w->target.offset + r->pos;
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
    bool has_own = w->target.objects != NULL;
    do {
        if (w->segments[last].end > end) end = w->segments[last].end;
        last++;
    } while (last < w->n_segments && !w->segments[last].begins);
    r->wave = w; /* the fetch is not cleared: other threads may access its wire */
    r->first = r->at = first;
    r->last = last;
    if (has_own) r->base = begin >> OBJECT_BITS << OBJECT_BITS;
    r->fetch.request.object =
        has_own ? w->target.objects[begin >> OBJECT_BITS] : w->target.object;
    r->fetch.request.is_anew = w->target.is_anew;
    w->wanted[number] = (cv_byte_range){begin - r->base, end - r->base, begin - r->base};
}

static cv_join_rule rule_of(const wave *w, bool is_narrow)
{
    enum { PART = 4096 }; /* a larger gap costs more than the overhead of a body part */
    cv_session *s = session_of(w);
    return (cv_join_rule){.gap = is_narrow ? PART : cv_session_gap(s),
                          .over_percent = s->options.over_read_percent,
                          .most = most_bytes(w),
                          .limit = limit_of(w),
                          .connections = s->limit.most};
}

/* Joins segments. Bridges only small gaps if the server supports multi-range requests, or if it may
 * support them and bridging larger gaps would still leave more requests than connections. */
static size_t join(wave *w, const cv_join_rule *rule)
{
    cv_multirange_state state = cv_multirange_look(&session_of(w)->multirange);
    size_t n = 0;
    w->is_narrow = state == CV_MULTIRANGE_KNOWN;
    if (!w->is_narrow) n = cv_join(w->segments, w->n_segments, rule);
    if (n > (size_t)rule->connections) w->is_narrow = state != CV_MULTIRANGE_REFUSED;
    if (!w->is_narrow) return n;
    const cv_join_rule narrow = rule_of(w, true);
    return cv_join(w->segments, w->n_segments, &narrow);
}

static void make_requests(wave *w, size_t number, size_t end, size_t segment)
{
    for (; number < end; segment = w->requests[number++].last)
        make_request(w, number, segment);
}

static cv_status plan(wave *w, cv_error *err)
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
    w->wanted = cv_calloc(w->n_requests, sizeof *w->wanted);
    if (!w->requests || !w->wanted)
        return cv_fail_memory(err, w->n_requests * sizeof *w->requests, "requests");
    make_requests(w, 0, w->n_requests, 0);
    return CV_OK;
}

static void free_wave(wave *w)
{
    cv_free(w->segments);
    cv_free(w->left);
    cv_free(w->dst);
    cv_free(w->requests);
    cv_free(w->wanted);
    cv_free(w);
}

static bool has_come(const wave *w, size_t first, size_t n)
{
    size_t i = first;
    while (i < first + n && w->wanted[i].received + w->requests[i].base ==
                                w->segments[w->requests[i].first].pos)
        i++;
    return i < first + n;
}

/* Joins again the `n` requests from `first` on, which are not in flight. Bridges the larger gaps
 * that suit single-range requests. Does nothing if bytes were received. Returns the new number. */
static size_t join_again(wave *w, size_t first, size_t n)
{
    if (n < 2 || has_come(w, first, n)) return n;
    const cv_join_rule rule = rule_of(w, false);
    size_t segment = w->requests[first].first, end = w->requests[first + n - 1].last;
    size_t n_joined = cv_join(w->segments + segment, end - segment, &rule);
    if (n_joined >= n) return n;
    make_requests(w, first, first + n_joined, segment);
    return n_joined;
}

/* ---- Receiving --------------------------------------------------------------------------- */

/* Borrows memory for the range. This must succeed if all other requests have paused and all memory
 * is held by incomplete ranges, because their missing bytes may follow in this request. */
static cv_status borrow(wave *w, size_t range, cv_error *err)
{
    const cv_arrivals *a = &w->all.arrivals;
    bool moves_alone = w->flow.n_flying - w->flow.n_paused <= 1;
    size_t stuck = moves_alone ? w->n_filling : 0;
    if (atomic_load(&session_of(w)->limit.is_multiplexed)) /* HTTP/2 by now: must not pause */
        stuck = SIZE_MAX;
    CV_TRY(a->lend(a->context, range, stuck, &w->dst[range], err));
    if (w->dst[range]) w->n_filling++;
    return CV_OK;
}

static cv_status admit(cv_fetch *fetch, uint64_t pos, size_t size, size_t *admitted,
                       cv_error *err)
{
    const request *r = (request *)fetch + fetch->ranges.current;
    wave *w = r->wave;
    uint64_t end = (pos += r->base) + size;
    *admitted = size;
    for (size_t i = r->at; i < r->last && w->segments[i].pos < end; i++) {
        const cv_segment *s = &w->segments[i];
        if (s->end <= pos) continue;
        if (!w->dst[s->range]) CV_TRY(borrow(w, s->range, err));
        if (w->dst[s->range]) continue;
        *admitted = s->pos > pos ? (size_t)(s->pos - pos) : 0;
        break;
    }
    return CV_OK;
}

static void count_arrived(wave *w, const cv_segment *s, uint64_t size)
{
    w->left[s->range] -= (size_t)size;
    if (w->left[s->range] > 0) return;
    if (w->borrows) w->n_filling--;
    cv_gathered_arrived(&w->all, s->range);
}

static bool overlap(const cv_segment *s, uint64_t pos, uint64_t end, uint64_t *from,
                    uint64_t *to)
{
    *from = s->pos > pos ? s->pos : pos;
    *to = s->end < end ? s->end : end;
    return *from < *to;
}

static void commit(cv_fetch *fetch, uint64_t pos, uint64_t size)
{
    const request *r = (request *)fetch + fetch->ranges.current;
    wave *w = r->wave;
    uint64_t from, to, end = (pos += r->base) + size;
    for (size_t i = r->first; i < r->last && w->segments[i].pos < end; i++)
        if (overlap(&w->segments[i], pos, end, &from, &to))
            count_arrived(w, &w->segments[i], to - from);
}

static void discard(cv_fetch *fetch)
{
    request *r = (request *)fetch + fetch->ranges.current;
    r->at = r->first;
}

/* Copies bytes to the segments that need them. Counts the bytes, unless `commit` counts them. */
static cv_status take(cv_fetch *fetch, uint64_t pos, const uint8_t *bytes, size_t size,
                      cv_error *err)
{
    request *r = (request *)fetch + fetch->ranges.current;
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
        if (!fetch->ranges.list) count_arrived(w, s, to - from);
    }
    return CV_OK;
}

/* ---- Sending ----------------------------------------------------------------------------- */

static void request_gone(cv_fetch *fetch);

static void send_each(wave *w, size_t first, size_t end);

/* Handles a request that could not begin. If it should have found out whether the server supports
 * multi-range requests, sends the requests that waited for the result, one by one. */
static void not_asked(wave *w, request *r)
{
    cv_multirange *multirange = &session_of(w)->multirange;
    if (!r->is_asking) return;
    r->is_asking = false;
    bool waits = cv_multirange_leave(multirange, &w->waiter);
    cv_multirange_learn(multirange, CV_MULTIRANGE_UNKNOWN);
    if (waits) send_each(w, w->n_first, w->n_requests);
}

static const cv_receiver receiver = {
    .admit = admit, .take = take, .commit = commit, .discard = discard, .gone = request_gone};

/* Sends `n` requests from `first` on as one. If the joint request cannot begin, all `n` count as
 * gone, and the wave may be freed if these were its last. */
static void send_request(wave *w, size_t first, size_t n)
{
    request *r = &w->requests[first];
    const cv_byte_range *wanted = &w->wanted[first];
    cv_error error = {0};
    r->n = n;
    r->fetch.request.range =
        (cv_range_request){.first = wanted[0].received, .end = wanted[n - 1].end};
    r->fetch.request.n_ranges = (int)(w->requests[first + n - 1].last - r->first);
    r->fetch.ranges.list = n > 1 ? &w->wanted[first] : NULL;
    r->fetch.ranges.n = n;
    r->fetch.delivery.receiver = &receiver;
    r->fetch.delivery.flow = w->borrows ? &w->flow : NULL;
    cv_status status = CATERVA_ESTOPPED;
    if (!atomic_load(&w->is_given_up)) status = cv_fetch_begin(&r->fetch, &error);
    if (status == CV_OK) {
        /* Cancels a fetch that give_up missed because it ran before cv_fetch_begin. */
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

static size_t count_of_object(const wave *w, size_t first, size_t end)
{
    size_t n = 1;
    const cv_remote_object *object = w->requests[first].fetch.request.object;
    while (first + n < end && w->requests[first + n].fetch.request.object == object) n++;
    return n;
}

static void send_together(wave *w, size_t first, size_t end)
{
    uint64_t cost = cv_ranges_cost(&w->wanted[first], end - first);
    uint64_t each = cost / (uint64_t)session_of(w)->limit.most + 1;
    size_t most = cv_multirange_most(&session_of(w)->multirange);
    while (first < end) {
        size_t n = count_of_object(w, first, end);
        if (n > most) n = most;
        n = cv_ranges_share(&w->wanted[first], n, each);
        first += n; /* the wave may be freed with the last request */
        send_request(w, first - n, n);
    }
}

/* Returns how many requests form the first multi-range request: few, in case it fails. */
static size_t count_asked(const wave *w, size_t first)
{
    enum { FEW = 4 };
    size_t n = count_of_object(w, first, w->n_requests);
    if (w->requests[first].fetch.request.object->version.size == UINT64_MAX) return 1;
    return cv_ranges_share(&w->wanted[first], n < FEW ? n : FEW, UINT64_MAX);
}

/* Sends the first multi-range request, and single-range ones that keep all connections busy. */
static void find_out(wave *w, size_t n_asked)
{
    size_t first = w->n_begun, end = w->n_first;
    w->requests[first].is_asking = true;
    send_request(w, first, n_asked);
    send_each(w, first + n_asked, end);
}

static void send_joined(wave *w, size_t first)
{
    size_t n = w->n_requests - first, n_joined = n;
    if (w->is_narrow) n_joined = join_again(w, first, n);
    w->is_narrow = false;
    w->n_requests = first + n_joined;
    if (n_joined < n) cv_gathered_gone(&w->all, n - n_joined, CV_OK, NULL, SIZE_MAX);
    send_each(w, first, first + n_joined);
}

static void send_rest(wave *w)
{
    cv_session *s = session_of(w);
    size_t first = w->n_begun, end = w->n_requests, most = (size_t)s->limit.most;
    size_t n_asked = first < end ? count_asked(w, first) : 0;
    cv_multirange_state state = CV_MULTIRANGE_REFUSED;
    w->n_first = end - first > n_asked + most - 1 ? first + n_asked + most - 1 : end;
    if (end - first > most && n_asked > 1)
        state = cv_multirange_ask(&s->multirange, &w->waiter);
    if (state == CV_MULTIRANGE_KNOWN || state == CV_MULTIRANGE_EXPECTED)
        send_together(w, first, end);
    else if (state == CV_MULTIRANGE_REFUSED)
        send_joined(w, first);
    else if (state == CV_MULTIRANGE_UNKNOWN)
        find_out(w, n_asked);
}

/* Counts a round trip for requests sent after the answers to others. If several waves are in flight
 * together, counts only for the wave that asked the server. */
static void count_round(wave *w, bool has_asked)
{
    if (w->all.arrivals.is_along && !has_asked) return;
    if (!atomic_exchange(&w->has_waited, true))
        atomic_fetch_add(&session_of(w)->round_trips, 1);
}

static void go_on(cv_multirange_waiter *waiter)
{
    wave *w = (wave *)(void *)((char *)waiter - offsetof(wave, waiter));
    if (waiter->is_asking) w->n_begun = w->n_first;
    if (w->n_begun == w->n_requests) return;
    count_round(w, waiter->is_asking);
    send_rest(w);
}

static void send_apart(wave *w, size_t first, size_t n)
{
    size_t n_incomplete, n_joined = join_again(w, first, n);
    (void)cv_ranges_incomplete(&w->wanted[first], n_joined, &n_incomplete);
    if (n_incomplete < n) cv_gathered_gone(&w->all, n - n_incomplete, CV_OK, NULL, SIZE_MAX);
    for (size_t i = first, left = n_incomplete; left > 0; i++) {
        if (w->wanted[i].received == w->wanted[i].end) continue;
        left--;
        send_request(w, i, 1);
    }
}

/* Learns from a finished request whether the server supports multi-range requests. Neither a body
 * that was cut off once nor an expired redirect is evidence. */
static void learn(request *r)
{
    const cv_fetch *f = &r->fetch;
    cv_multirange *multirange = &f->request.object->session->multirange;
    bool is_asking = r->is_asking, is_refused = f->outcome == CV_FETCH_REFUSED;
    cv_multirange_state state = CV_MULTIRANGE_UNKNOWN;
    if (is_refused || (f->outcome == CV_FETCH_SPLIT && f->retry.n_failures > 0))
        state = CV_MULTIRANGE_REFUSED;
    if (f->outcome == CV_FETCH_DONE && f->status == CV_OK) state = CV_MULTIRANGE_KNOWN;
    r->is_asking = false;
    if (is_asking || is_refused)
        cv_multirange_learn(multirange, state);
    else if (f->ranges.list && state == CV_MULTIRANGE_KNOWN)
        cv_multirange_confirm(multirange);
}

static void request_gone(cv_fetch *fetch)
{
    request *r = (request *)fetch;
    wave *w = r->wave;
    size_t first = (size_t)(r - w->requests), n = r->n;
    bool has_asked = r->is_asking, is_refused = fetch->outcome == CV_FETCH_REFUSED;
    learn(r);
    if (is_refused) count_round(w, has_asked);
    if (is_refused || fetch->outcome == CV_FETCH_SPLIT) {
        send_apart(w, first, n);
        return;
    }
    int n_ranges = fetch->request.n_ranges;
    if (n_ranges > 1) atomic_fetch_add(&session_of(w)->joined, n_ranges);
    cv_gathered_gone(&w->all, n, fetch->status, &fetch->error, w->segments[r->first].range);
}

/* ---- Beginning and end ------------------------------------------------------------------ */

static void give_up(wave *w)
{
    cv_error error = {0};
    atomic_store(&w->is_given_up, true);
    if (cv_multirange_leave(&session_of(w)->multirange, &w->waiter)) {
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
    free_wave(w);
}

cv_status cv_remote_wave_begin(const cv_wave_target *target, const cv_store_range *ranges,
                               size_t n, const cv_arrivals *arrivals, cv_gathering *all,
                               cv_reading **out, cv_error *err)
{
    *out = NULL;
    if (n == 0) return CV_OK;
    wave *w = cv_calloc(1, sizeof *w);
    if (!w) return cv_fail_memory(err, sizeof *w, "requests");
    *w = (wave){.base = {end_wave},
                .target = *target,
                .ranges = ranges,
                .n = n,
                .borrows = arrivals->lend != NULL,
                .waiter = {.go = go_on},
                .together = arrivals->together};
    cv_status status = plan(w, err);
    if (status == CV_OK)
        status = cv_gathered_join(&w->all, all, arrivals, n, w->n_requests, err);
    if (status != CV_OK) {
        free_wave(w);
        return status;
    }
    cv_session *s = session_of(w);
    if (!arrivals->is_along) atomic_fetch_add(&s->round_trips, 1);
    w->began = cv_session_now(s);
    send_rest(w);
    *out = &w->base;
    return CV_OK;
}

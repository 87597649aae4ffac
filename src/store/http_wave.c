/* Room: store. How a wave becomes requests. That they are sent, and what comes of them, is not
 * known here. */
#include "store/http_wave.h"

#include "base/heap.h"

typedef cv_http_wave wave;
typedef cv_http_request request;

/* Bytes of a request of a wave that borrows: what has come is not asked for again when it
 * breaks, and each round trip that is saved is one in which nothing comes. */
enum { MOST_BORROWED = 32 << 20 };

/* Segments of several objects lie so far apart that no two are ever joined. */
enum { OBJECT_BITS = 40 };

cv_session *cv_http_wave_session(const wave *w)
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

cv_status cv_http_wave_plan(wave *w, cv_error *err)
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

void cv_http_wave_free(wave *w)
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

size_t cv_http_wave_join_again(wave *w, size_t first, size_t n)
{
    if (n < 2 || has_come(w, first, n)) return n;
    const cv_join_rule rule = rule_of(w, false);
    size_t segment = w->requests[first].first, end = w->requests[first + n - 1].last;
    size_t n_joined = cv_join(w->segments + segment, end - segment, &rule);
    if (n_joined >= n) return n;
    make_requests(w, first, first + n_joined, segment);
    return n_joined;
}

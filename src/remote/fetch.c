/* Room: remote. INTRO of remote/fetch */
#include "remote/fetch.h"

#include "base/os.h"
#include "remote/reply.h"
#include "remote/wire.h"

#include <caterva_remote.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Http join ----
 *
 * Joining by cost. Gaps are bridged from the narrowest on, as long as what is
 * read over stays within its bound:
 *
 *      needed   [====]..[===]................[==]...[====]
 *      requests [===========]                [===========] */

static int by_place(const void *a, const void *b)
{
    const cv_segment *x = a, *y = b;
    if (x->pos != y->pos) return x->pos < y->pos ? -1 : 1;
    return (x->end > y->end) - (x->end < y->end);
}

/* Bytes between what the segments before `i` cover, up to `end`, and it. */
static uint64_t gap_before(const cv_segment *segments, size_t i, uint64_t end)
{
    return segments[i].pos > end ? segments[i].pos - end : 0;
}

/* Bytes that at least one segment needs, and those in gaps of at most `most`. */
static void measure(const cv_segment *segments, size_t n, uint64_t most, uint64_t *needed,
                    uint64_t *in_gaps)
{
    uint64_t end = segments[0].pos;
    *needed = *in_gaps = 0;
    for (size_t i = 0; i < n; i++) {
        uint64_t gap = gap_before(segments, i, end);
        uint64_t from = segments[i].pos > end ? segments[i].pos : end;
        if (gap <= most) *in_gaps += gap;
        if (segments[i].end <= from) continue;
        *needed += segments[i].end - from;
        end = segments[i].end;
    }
}

/* The widest gap that is bridged: as the rule has it, or narrower, so that not too much is
 * read over. Found by halving, which needs no list of gaps. *left: bytes that may be read
 * over yet, in gaps that are one byte wider: of blocks of one size all gaps are as wide. */
static uint64_t widest_gap(const cv_segment *segments, size_t n, const cv_join_rule *rule,
                           uint64_t *left)
{
    uint64_t low = 0, high = rule->gap, needed, in_gaps;
    measure(segments, n, high, &needed, &in_gaps);
    uint64_t may = (uint64_t)((double)needed * rule->over_percent / 100);
    *left = 0;
    if (in_gaps <= may) return high;
    while (high - low > 1) { /* gaps of `low` fit, those of `high` do not */
        uint64_t middle = low + (high - low) / 2;
        measure(segments, n, middle, &needed, &in_gaps);
        if (in_gaps <= may)
            low = middle;
        else
            high = middle;
    }
    measure(segments, n, low, &needed, &in_gaps);
    *left = may - in_gaps;
    return low;
}

static uint64_t longest_of(const cv_segment *segments, size_t n)
{
    uint64_t longest = 0;
    for (size_t i = 0; i < n; i++)
        if (segments[i].end - segments[i].pos > longest)
            longest = segments[i].end - segments[i].pos;
    return longest;
}

/* Bytes of a request with gaps of at most so many. A round of its own for a last one that did
 * not fit takes longer than its bytes do: as much more as a segment may leave free. */
static uint64_t most_joined(const cv_segment *segments, size_t n, uint64_t widest,
                            const cv_join_rule *rule)
{
    uint64_t needed, in_gaps;
    if (rule->connections < 1) return rule->most;
    measure(segments, n, widest, &needed, &in_gaps);
    uint64_t each = (needed + in_gaps) / (uint64_t)rule->connections;
    uint64_t longest = longest_of(segments, n);
    each += longest < each / 4 ? longest : each / 4;
    uint64_t limit = rule->limit > 0 ? rule->limit : CV_JOIN_MOST;
    if (each > limit) each = limit;
    return each > rule->most ? each : rule->most;
}

size_t cv_join(cv_segment *segments, size_t n, const cv_join_rule *rule)
{
    if (n == 0) return 0;
    qsort(segments, n, sizeof *segments, by_place);
    uint64_t left, first = 0, end = 0;
    uint64_t widest = widest_gap(segments, n, rule, &left);
    uint64_t most = most_joined(segments, n, widest, rule);
    size_t n_requests = 0;
    for (size_t i = 0; i < n; i++) {
        cv_segment *s = &segments[i];
        uint64_t reach = s->end > end ? s->end : end, gap = gap_before(segments, i, end);
        bool is_extra = gap == widest + 1 && gap <= left;
        s->begins = i == 0 || (gap > widest && !is_extra) || reach - first > most;
        if (!s->begins && is_extra) left -= gap;
        if (s->begins) {
            n_requests++;
            first = s->pos;
            end = s->end;
        }
        if (s->end > end) end = s->end;
    }
    return n_requests;
}

/* ---- Http spans ----
 *
 * Several ranges in one request. */

/* Of a part: its head, and that the server has to find it. */
enum { PART_COST = 4096 };

uint64_t cv_spans_cost(const cv_http_span *spans, size_t n)
{
    size_t n_left;
    uint64_t bytes = cv_spans_left(spans, n, &n_left);
    return bytes + (uint64_t)n_left * PART_COST;
}

size_t cv_spans_share(const cv_http_span *spans, size_t n, uint64_t cost)
{
    uint64_t sum = 0;
    size_t i = 0;
    for (; i < n && i < CV_SPANS_MOST; i++) {
        uint64_t with = sum + cv_spans_cost(&spans[i], 1);
        bool is_behind = i == 0 || spans[i].next >= spans[i - 1].end;
        if (!is_behind || (i > 0 && (sum >= cost || with > CV_JOIN_MOST))) break;
        sum = with;
    }
    return i;
}

uint64_t cv_spans_left(const cv_http_span *spans, size_t n, size_t *n_left)
{
    uint64_t bytes = 0;
    *n_left = 0;
    for (size_t i = 0; i < n; i++) {
        bytes += spans[i].end - spans[i].next;
        *n_left += spans[i].end > spans[i].next;
    }
    return bytes;
}

cv_status cv_spans_add_field(const cv_http_span *spans, size_t n, cv_buffer *fields,
                             cv_error *err)
{
    const char *before = "Range: bytes=";
    char text[64];
    for (size_t i = 0; i < n; i++) {
        if (spans[i].next == spans[i].end) continue;
        int size = snprintf(text, sizeof text, "%s%llu-%llu", before,
                            (unsigned long long)spans[i].next,
                            (unsigned long long)(spans[i].end - 1));
        CV_TRY(cv_buffer_append(fields, text, (size_t)size, err));
        before = ",";
    }
    return cv_buffer_append(fields, "", 1, err);
}

size_t cv_spans_take(cv_http_span *spans, size_t n, size_t from, uint64_t pos, uint64_t end,
                     uint64_t *first, uint64_t *last)
{
    for (size_t i = from; i < n; i++) {
        cv_http_span *s = &spans[i];
        if (s->next < pos || s->next >= end || s->next == s->end) continue;
        *first = s->next;
        *last = s->end < end ? s->end : end;
        s->next = *last;
        return i;
    }
    return n;
}

/* ---- Http fetch parts ----
 *
 * What an answer with several parts brings. How a request is tried again, and what
 * becomes of what it did not bring, is for http_fetch.c. */

/* The envelope of all that is asked for, which each part lies in. Nobody is heard out who sends
 * much more than that, and heads. */
static cv_status cv_fetch_prepare_parts(cv_fetch *f)
{
    size_t n_left;
    if (!f->parts) f->parts = cv_malloc(sizeof *f->parts);
    if (!f->parts) return f->status = cv_fail_memory(&f->error, sizeof *f->parts, "parts");
    f->asked = cv_spans_left(f->spans, f->n_spans, &n_left);
    f->most_received = 2 * f->asked + (uint64_t)(n_left + 2) * CV_PART_HEAD;
    f->now = (cv_ask){.first = f->ask.first, .end = f->ask.end, .identity = f->ask.identity};
    return CV_OK;
}

/* The answer is none to such a request: false. */
static bool cv_fetch_refuse_parts(cv_fetch *f)
{
    f->status = cv_fail(&f->error, CATERVA_EIO, -1,
                        "%s: the server sends parts that were not asked for, or are none",
                        f->object->name.text);
    f->verdict = CV_REPLY_NO_PARTS;
    return false;
}

/* Of several ranges: a server that knows no such requests is heard out only when it is brief. */
static bool cv_fetch_judge_parts(cv_fetch *f)
{
    f->verdict =
        cv_reply_judge_parts(&f->reply, f->ask.identity, f->object->name.text, &f->error);
    f->status = f->verdict == CV_REPLY_TAKE ? CV_OK : f->error.code;
    if (f->verdict == CV_REPLY_TAKE) cv_multipart_begin(f->parts, f->reply.boundary);
    return f->verdict != CV_REPLY_FAILED || f->reply.status >= 400;
}

/* ---- Bodies ------------------------------------------------------------------------- */

/* A part may hold more than one range, and what is between them: nothing else. */
static bool begin_part(cv_fetch *f)
{
    const cv_multipart *part = f->parts;
    if (part->total != f->ask.identity->size || part->pos < f->ask.first ||
        part->end > f->ask.end)
        return cv_fetch_refuse_parts(f);
    f->have_parts_come = true;
    return true;
}

/* Bytes of a part: those that are news go to the ranges that want them. */
static cv_status hand_on_part(cv_fetch *f, const uint8_t *bytes, size_t size, size_t *taken)
{
    uint64_t pos = f->parts->pos, first, last;
    *taken = size;
    for (size_t i = 0; i < f->n_spans && *taken == size; i++) {
        i = cv_spans_take(f->spans, f->n_spans, i, pos, pos + size, &first, &last);
        if (i == f->n_spans) break;
        f->span = i;
        size_t news = (size_t)(last - first), admitted = news;
        if (f->flow) CV_TRY(f->admit(f, first, news, &admitted, &f->error));
        f->spans[i].next = first + admitted;
        CV_TRY(f->take(f, first, bytes + (first - pos), admitted, &f->error));
        if (admitted < news) *taken = (size_t)(first + admitted - pos);
    }
    cv_multipart_take(f->parts, *taken);
    return CV_OK;
}

/* The part ended where it said, so that what it brought is what it said. */
static void trust_part(cv_fetch *f)
{
    for (size_t i = 0; i < f->n_spans; i++) {
        cv_http_span *s = &f->spans[i];
        if (s->sure == s->next) continue;
        f->span = i;
        f->trust(f, s->sure, s->next - s->sure);
        s->sure = s->next;
    }
}

/* What a part that did not end so has brought comes again. */
static void undo_part(cv_fetch *f)
{
    for (size_t i = 0; i < f->n_spans; i++) {
        cv_http_span *s = &f->spans[i];
        if (s->sure == s->next) continue;
        f->span = i;
        s->next = s->sure;
        f->undo(f);
    }
}

/* The body is over, `is_whole` or not: what does not count comes again. */
static void cv_fetch_end_parts(cv_fetch *f, bool is_whole)
{
    if (is_whole && cv_multipart_end(f->parts)) trust_part(f);
    undo_part(f);
}

static cv_wire_next refuse(cv_fetch *f)
{
    (void)cv_fetch_refuse_parts(f);
    return CV_WIRE_ENDS;
}

/* Where there is no room for some, the same bytes come again, of which so many are used. */
static cv_wire_next cv_fetch_take_parts(cv_fetch *f, const uint8_t *bytes, size_t size)
{
    size_t n, given;
    if (f->received > f->most_received) return refuse(f);
    if (f->n_used > size) { /* they come in smaller pieces */
        f->n_used -= size;
        return CV_WIRE_GOES_ON;
    }
    for (size_t at = f->n_used; at < size; at += n) {
        cv_part_event event = cv_multipart_next(f->parts, bytes + at, size - at, &n);
        if (event == CV_PART_BAD) return refuse(f);
        if (event == CV_PART_BEGINS && !begin_part(f)) return CV_WIRE_ENDS;
        if (event == CV_PART_ENDS) trust_part(f);
        if (event != CV_PART_BYTES) continue;
        given = n;
        cv_status status = hand_on_part(f, bytes + at, given, &n);
        if (status != CV_OK) {
            f->status = status;
            f->verdict = CV_REPLY_FAILED;
            return CV_WIRE_ENDS;
        }
        f->n_used = at + n;
        if (n < given) return CV_WIRE_PAUSES;
    }
    f->n_used = 0;
    return CV_WIRE_GOES_ON;
}

/* ---- Http fetch ----
 *
 * The life of a request. A byte is handed on when the answer that it came with
 * was found to be the one that was asked for, and only where it belongs. What may be tried
 * again: a server that is busy, a connection that broke; what may not: an answer that is
 * wrong. */

enum {
    MOST_HEAD = 64 * 1024,
    UNREAD_BODY = 64 * 1024,
    UNREAD_PARTS = 4096,
    MOST_REFUSAL = 1024 /* in which S3 says what it is called */
};

static cv_fetch *of(cv_wire *wire) { return (cv_fetch *)wire; } /* its first member */

/* ---- Asking ------------------------------------------------------------------------ */

static cv_status add_range(const cv_fetch *f, cv_buffer *fields, cv_error *err)
{
    char range[64];
    if (f->spans) return cv_spans_add_field(f->spans, f->n_spans, fields, err);
    if (f->now.is_suffix)
        (void)snprintf(range, sizeof range, "bytes=-%llu", (unsigned long long)f->now.end);
    else
        (void)snprintf(range, sizeof range, "bytes=%llu-%llu",
                       (unsigned long long)f->now.first,
                       (unsigned long long)(f->now.end - 1));
    return cv_http_add_field(fields, "Range", range, err);
}

static cv_status add_fields(cv_fetch *f, cv_buffer *fields, cv_error *err)
{
    const cv_http_asked asked = {.method = "GET", .url = f->where.url};
    const char *etag = f->object->identity.etag;
    CV_TRY(add_range(f, fields, err));
    if (f->object->identity.size != UINT64_MAX && cv_etag_is_strong(etag))
        CV_TRY(cv_http_add_field(fields, "If-Match", etag, err));
    if (f->is_anew) CV_TRY(cv_http_add_field(fields, "Cache-Control", "no-cache", err));
    return cv_http_object_fields(f->object, &asked, fields, err);
}

static cv_status fail(cv_fetch *f, cv_status status)
{
    f->status = status;
    return status;
}

static void take_off(cv_fetch *f)
{
    if (!f->flow) return;
    f->is_flying = true;
    f->flow->n_flying++;
}

static void pause(cv_fetch *f)
{
    f->is_paused = true;
    f->flow->n_paused++;
}

static void go_on(cv_fetch *f)
{
    if (!f->is_paused) return;
    f->is_paused = false;
    f->flow->n_paused--;
}

/* Where only those are left that have paused, one of them is to go on in any case. */
static void land(cv_fetch *f)
{
    go_on(f);
    if (!f->is_flying) return;
    f->is_flying = false;
    f->flow->n_flying--;
    if (f->flow->n_paused > 0) cv_wire_resume();
}

static cv_status prepare(cv_wire *wire, cv_wire_setup *setup)
{
    cv_fetch *f = of(wire);
    const caterva_remote_options *o = &f->object->session->options;
    f->now = f->ask;
    if (f->is_granted)
        f->now = (cv_ask){.first = f->next, .end = f->last_end, .identity = f->ask.identity};
    f->head.size = 0;
    f->is_judged = false;
    f->verdict = CV_REPLY_FAILED;
    f->received = f->body_pos = f->body_end = 0;
    f->n_used = 0;
    f->asked = f->now.is_suffix ? f->now.end : f->now.end - f->now.first;
    if (f->spans) CV_TRY(cv_fetch_prepare_parts(f));
    if (!f->where.url) f->where.url = cv_http_object_place(f->object, &f->where.is_elsewhere);
    if (!f->where.url) return fail(f, cv_fail_memory(&f->error, 1, "a URL"));
    f->attempts++;
    setup->url = f->where.url;
    setup->connect_ms = o->connect_timeout_ms;
    setup->stall_ms = o->stall_timeout_ms;
    setup->ca_file = o->ca_file;
    CV_TRY(fail(f, add_fields(f, &setup->fields, &f->error)));
    take_off(f);
    return CV_OK;
}

/* ---- Hearing ----------------------------------------------------------------------- */

static bool stop(cv_fetch *f, cv_status status)
{
    f->status = status;
    f->verdict = CV_REPLY_FAILED;
    return false;
}

static bool take_header(cv_wire *wire, const char *line, size_t size)
{
    cv_fetch *f = of(wire);
    if (f->is_judged) return true; /* behind the body */
    if (size >= 5 && memcmp(line, "HTTP/", 5) == 0) f->head.size = 0;
    if (f->head.size + size > MOST_HEAD)
        return stop(f, cv_fail(&f->error, CATERVA_EIO, -1,
                               "%s: the server's answer begins with more than %d bytes of "
                               "fields",
                               f->object->name.text, MOST_HEAD));
    cv_status status = cv_buffer_append(&f->head, line, size, &f->error);
    return status == CV_OK || stop(f, status);
}

/* The first answer that counts says which bytes are wanted. */
static cv_status note_grant(cv_fetch *f, const cv_grant *grant)
{
    if (f->is_granted) return CV_OK;
    uint64_t first = f->ask.first, end = f->ask.end;
    if (f->ask.is_suffix) {
        first = end < grant->total ? grant->total - end : 0;
        end = grant->total;
    }
    bool is_whole = grant->size == grant->total; /* then all of it is worth having */
    f->next = is_whole && f->granted ? 0 : first;
    f->last_end = is_whole && f->granted ? grant->total
                  : end < grant->total   ? end
                                         : grant->total;
    f->grant = (cv_grant){f->next, f->last_end - f->next, grant->total};
    if (f->granted) CV_TRY(f->granted(f, &f->grant, &f->error));
    if (f->object->identity.size == UINT64_MAX)
        cv_http_object_meet(f->object, &f->reply, grant);
    f->is_granted = true;
    return CV_OK;
}

/* The head of such an answer is not needed any more, and its body is in that place. */
static bool is_refused(const cv_fetch *f)
{
    return !f->spans && f->verdict != CV_REPLY_TAKE && f->reply.status >= 400;
}

/* False: the attempt is over. */
static bool judge(cv_fetch *f)
{
    cv_grant grant = {0};
    f->is_judged = true;
    cv_status status =
        cv_reply_parse((const char *)f->head.data, f->head.size, &f->reply, &f->error);
    if (status != CV_OK) return f->spans ? cv_fetch_refuse_parts(f) : stop(f, status);
    if (f->spans) return cv_fetch_judge_parts(f);
    f->verdict = cv_reply_judge(&f->reply, &f->now, f->object->name.text, &grant, &f->error);
    f->status = f->verdict == CV_REPLY_TAKE ? CV_OK : f->error.code;
    if (is_refused(f)) f->head.size = 0;
    if (f->verdict == CV_REPLY_RETRY || f->verdict == CV_REPLY_REDIRECT) return true;
    if (f->verdict != CV_REPLY_TAKE) return f->reply.status >= 400;
    f->body_pos = grant.first;
    f->body_end = grant.first + grant.size;
    status = note_grant(f, &grant);
    return status == CV_OK || stop(f, status);
}

/* Bytes [body_pos, body_pos + size) came; those from `next` on are news. *is_room: for all of
 * them; else they come again, and what was taken is no news then. */
static cv_status hand_on(cv_fetch *f, const uint8_t *bytes, size_t size, bool *is_room)
{
    uint64_t pos = f->body_pos, end = pos + size;
    *is_room = true;
    if (size > f->body_end - pos)
        return cv_fail(&f->error, CATERVA_EIO, -1,
                       "%s: the server sends more bytes than it announced", f->object->name.text);
    if (end > f->last_end) end = f->last_end;
    if (end > f->next && pos <= f->next) {
        uint64_t from = f->next;
        size_t news = (size_t)(end - from), admitted = news;
        if (f->flow) CV_TRY(f->admit(f, from, news, &admitted, &f->error));
        *is_room = admitted == news;
        f->next += admitted;
        CV_TRY(f->take(f, from, bytes + (from - pos), admitted, &f->error));
    }
    if (*is_room) f->body_pos = pos + size;
    return CV_OK;
}

static cv_wire_next take_range(cv_fetch *f, const uint8_t *bytes, size_t size)
{
    bool is_room;
    cv_status status = hand_on(f, bytes, size, &is_room);
    if (status != CV_OK) {
        (void)stop(f, status);
        return CV_WIRE_ENDS;
    }
    return is_room ? CV_WIRE_GOES_ON : CV_WIRE_PAUSES;
}

/* Without memory for it nobody learns what it says. */
static void keep_refusal(cv_fetch *f, const uint8_t *bytes, size_t size)
{
    size_t room = MOST_REFUSAL - f->head.size;
    (void)cv_buffer_append(&f->head, bytes, size < room ? size : room, NULL);
}

static cv_wire_next take_body(cv_wire *wire, const uint8_t *bytes, size_t size)
{
    cv_fetch *f = of(wire);
    go_on(f);
    if (!f->is_judged && !judge(f)) return CV_WIRE_ENDS;
    cv_wire_next next = CV_WIRE_GOES_ON;
    if (f->verdict == CV_REPLY_TAKE)
        next = f->spans ? cv_fetch_take_parts(f, bytes, size) : take_range(f, bytes, size);
    if (next == CV_WIRE_PAUSES) {
        pause(f);
        return next;
    }
    if (is_refused(f)) keep_refusal(f, bytes, size);
    f->received += size;
    atomic_fetch_add(&f->object->session->bytes, (int64_t)size);
    uint64_t most = f->verdict == CV_REPLY_NO_PARTS ? UNREAD_PARTS : UNREAD_BODY;
    if (f->verdict != CV_REPLY_TAKE && f->received > most) return CV_WIRE_ENDS;
    return next;
}

/* ---- What next --------------------------------------------------------------------- */

/* Seconds after which the server asks to be tried again. */
static uint32_t wait_asked(const cv_fetch *f)
{
    bool is_asked = f->is_judged && f->verdict == CV_REPLY_RETRY;
    return is_asked ? cv_reply_wait(&f->reply, (int64_t)(cv_os_time_ns() / 1000000000)) : 0;
}

static int64_t give_up(cv_fetch *f)
{
    cv_session_count_attempts(&f->error, f->attempts, wait_asked(f));
    return CV_WIRE_DONE;
}

static int64_t try_again(cv_fetch *f)
{
    int64_t pause = cv_session_pause(f->object->session, &f->failures, wait_asked(f));
    return pause >= 0 ? pause : give_up(f);
}

static int64_t follow(cv_fetch *f, const char *to)
{
    f->status = cv_whereabouts_follow(&f->where, f->object, to, &f->error);
    return f->status == CV_OK ? 0 : CV_WIRE_DONE;
}

static int64_t finish(const cv_fetch *f)
{
    cv_whereabouts_keep(&f->where, f->object);
    return CV_WIRE_DONE;
}

static int64_t broken(cv_fetch *f, const cv_wire_end *end)
{
    cv_session *s = f->object->session;
    f->status = cv_http_object_broken(f->object, f->where.url, end, &f->error);
    bool may_recover = end->was_connected || atomic_load(&s->has_connected);
    return end->is_broken && may_recover ? try_again(f) : give_up(f);
}

static int64_t split(cv_fetch *f)
{
    f->is_split = true;
    return CV_WIRE_DONE;
}

/* A server that cannot answer several may say so by failing: once it is tried again, as any
 * request is, and then what is left is asked for one by one. When no part ever came, nobody else
 * tries it. */
static int64_t try_parts_again(cv_fetch *f)
{
    size_t n_left;
    (void)cv_spans_left(f->spans, f->n_spans, &n_left);
    f->has_no_parts = f->failures > 0 && !f->have_parts_come;
    if (f->failures > 0 || n_left < 2) return split(f);
    int64_t pause = cv_session_pause(f->object->session, &f->failures, wait_asked(f));
    if (pause >= 0) return pause;
    return f->have_parts_come ? give_up(f) : split(f);
}

/* An answer was there, or was none: whether that is for a reason that holds for others, too. */
static bool is_refusal(const cv_fetch *f)
{
    if (!f->is_judged) return f->status == CATERVA_EIO; /* fields without an end */
    return f->verdict == CV_REPLY_NO_PARTS &&
           !(f->where.is_elsewhere && cv_whereabouts_are_over(f->reply.status));
}

/* One that leads nowhere is an answer to several ranges, and to one there may be another. */
static int64_t follow_parts(cv_fetch *f, const char *to)
{
    int64_t next = follow(f, to);
    if (f->status == CV_OK) return next;
    f->has_no_parts = true;
    return split(f);
}

static int64_t decide_parts(cv_fetch *f, const cv_wire_end *end)
{
    size_t n_left;
    bool is_taken = f->is_judged && f->verdict == CV_REPLY_TAKE;
    cv_fetch_end_parts(f, is_taken && end->is_whole);
    if (cv_spans_left(f->spans, f->n_spans, &n_left) == 0) {
        f->status = CV_OK;
        return finish(f);
    }
    if (is_taken && end->is_whole) (void)cv_fetch_refuse_parts(f);
    f->has_no_parts = is_refusal(f);
    if (f->has_no_parts || f->verdict == CV_REPLY_NO_PARTS) return split(f);
    if (f->is_judged && f->verdict == CV_REPLY_RETRY) return try_parts_again(f);
    if (f->is_judged && f->verdict == CV_REPLY_REDIRECT)
        return follow_parts(f, end->redirect);
    if (f->status != CV_OK) return CV_WIRE_DONE;
    f->status = cv_http_object_broken(f->object, f->where.url, end, &f->error);
    f->has_no_parts = !end->is_broken;
    return end->is_broken ? try_parts_again(f) : split(f);
}

/* "... (status 403)" becomes "... (status 403, AccessDenied)". */
static void name_refusal(cv_fetch *f)
{
    char name[CV_XML_REFUSAL_SIZE], *end = f->error.message + strlen(f->error.message);
    size_t room = (size_t)(f->error.message + sizeof f->error.message - end);
    cv_xml_refusal(f->head.data, f->head.size, name);
    if (!*name || end == f->error.message || room < sizeof name + 2) return;
    if (end[-1] == ')')
        (void)snprintf(end - 1, room + 1, "%s)", name);
    else
        (void)snprintf(end, room, " (%s)", name + strlen(", "));
}

static int64_t decide(cv_fetch *f, const cv_wire_end *end)
{
    if (!f->is_judged && f->head.size > 0 && end->is_whole && f->status == CV_OK)
        (void)judge(f);
    if (f->spans) return decide_parts(f, end);
    if (!f->is_judged) return f->status != CV_OK ? CV_WIRE_DONE : broken(f, end);
    if (is_refused(f)) name_refusal(f);
    switch (f->verdict) {
    case CV_REPLY_TAKE:
        if (f->next == f->last_end) return finish(f);
        if (end->is_whole)
            f->status = cv_fail(&f->error, CATERVA_EIO, -1,
                                "%s: the server sends fewer bytes than it announced",
                                f->object->name.text);
        return end->is_whole ? try_again(f) : broken(f, end);
    case CV_REPLY_RETRY: return try_again(f);
    case CV_REPLY_REDIRECT: return follow(f, end->redirect);
    case CV_REPLY_NO_RANGES: f->has_no_ranges = true; return CV_WIRE_DONE;
    default:
        return cv_whereabouts_forget(&f->where, f->object, f->reply.status) ? 0
                                                                            : CV_WIRE_DONE;
    }
}

static void tell(const cv_fetch *f, const cv_wire_end *end)
{
    const caterva_remote_options *o = &f->object->session->options;
    bool is_suffix = f->now.is_suffix;
    if (!o->on_request) return;
    const caterva_transfer transfer = {
        .method = "GET",
        .url = f->object->name.text,
        .first = is_suffix ? UINT64_MAX : f->now.first,
        .size = f->asked,
        .received = f->received,
        .nanoseconds = (int64_t)end->total_ns,
        .status = f->is_judged ? f->reply.status : 0,
        .attempt = f->attempts,
        .ranges = f->n_ranges,
        .error = f->status != CV_OK ? f->error.message : NULL,
    };
    cv_wire_give_turn();
    o->on_request(o->context, &transfer);
    cv_wire_take_turn();
}

static int64_t end_attempt(cv_wire *wire, const cv_wire_end *end)
{
    cv_fetch *f = of(wire);
    cv_session *s = f->object->session;
    land(f);
    atomic_fetch_add(&s->requests, 1);
    int64_t again = decide(f, end);
    if (end->was_connected) atomic_store(&s->has_connected, true);
    if (f->is_judged && end->first_byte_ns > 0) cv_session_note_trip(s, end->first_byte_ns);
    tell(f, end);
    if (again != CV_WIRE_DONE) f->status = CV_OK;
    return again;
}

static bool is_complete(const cv_fetch *f)
{
    size_t n_left;
    if (f->spans) return cv_spans_left(f->spans, f->n_spans, &n_left) == 0;
    return f->is_granted && f->next == f->last_end;
}

/* Nothing of what was tried is left: the next request is a first one. */
static void forget_parts(cv_fetch *f)
{
    f->spans = NULL;
    f->status = CV_OK;
    f->error = (cv_error){0};
    f->span = 0;
    f->have_parts_come = false;
}

static void gone(cv_wire *wire)
{
    cv_fetch *f = of(wire);
    land(f);
    if (f->is_split)
        forget_parts(f);
    else if (f->status == CV_OK && !is_complete(f))
        f->status = cv_wire_fail_gone(wire, &f->error);
    cv_buffer_free(&f->head);
    cv_free(f->where.url);
    cv_free(f->parts);
    f->where.url = NULL;
    f->parts = NULL;
    f->gone(f);
}

cv_status cv_fetch_begin(cv_fetch *f, cv_error *err)
{
    f->is_flying = f->is_paused = false;
    f->wire.prepare = prepare;
    f->wire.header = take_header;
    f->wire.body = take_body;
    f->wire.end = end_attempt;
    f->wire.gone = gone;
    f->wire.limit = &f->object->session->limit;
    f->ask.identity = &f->object->identity;
    f->is_split = f->has_no_parts = false;
    f->attempts = f->failures = f->where.redirects = 0;
    return cv_wire_submit(&f->wire, err);
}

void cv_fetch_cancel(cv_fetch *f) { cv_wire_cancel(&f->wire); }

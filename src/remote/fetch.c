/* Room: remote. One GET request for one or several ranges of an object. Retried after overload and
 * broken connections, but not after wrong replies. Delivers only bytes of accepted replies, each
 * byte to all ranges that contain it.
 *
 * A multi-range reply consists of body parts (multipart.c), which may cover several ranges and the
 * bytes between them. If the server does not support multi-range requests, the fetch ends and its
 * owner requests range by range. */
#include "remote/transfer.h"

#include "base/os.h"

#include <stdio.h>
#include <string.h>

enum {
    MOST_HEAD = 64 * 1024,
    MOST_UNREAD = 64 * 1024,  /* bytes of a body that is not accepted; more end the attempt */
    MOST_UNREAD_MULTI = 4096, /* the same, if multi-range requests are refused */
    MOST_REFUSAL = 1024       /* kept bytes of an S3 error document, for its <Code> */
};

static cv_fetch *fetch_of(cv_wire *wire) { return (cv_fetch *)wire; } /* its first member */

static bool is_multirange(const cv_fetch *f) { return f->ranges.list != NULL; }

static cv_session *session_of(const cv_fetch *f) { return f->request.object->session; }

static const char *name_of(const cv_fetch *f) { return f->request.object->name.text; }

static cv_status fail(cv_fetch *f, cv_status status)
{
    f->status = status;
    return status;
}

static size_t count_incomplete(const cv_fetch *f)
{
    size_t n;
    (void)cv_ranges_incomplete(f->ranges.list, f->ranges.n, &n);
    return n;
}

/* ---- Flow -------------------------------------------------------------------------------- */

static void set_flow(cv_fetch *f, cv_flow_state state)
{
    cv_flow *flow = f->delivery.flow;
    cv_flow_state before = f->delivery.state;
    if (!flow) return;
    flow->n_flying += (state != CV_FLOW_OUT) - (before != CV_FLOW_OUT);
    flow->n_paused += (state == CV_FLOW_PAUSED) - (before == CV_FLOW_PAUSED);
    f->delivery.state = state;
}

/* Takes the fetch out of its flow. If all other requests have paused, one of them must continue. */
static void leave_flow(cv_fetch *f)
{
    bool was_flying = f->delivery.state != CV_FLOW_OUT;
    set_flow(f, CV_FLOW_OUT);
    if (was_flying && f->delivery.flow && f->delivery.flow->n_paused > 0) cv_wire_resume();
}

/* Asks the receiver for how many of these bytes it has memory. */
static cv_status admit(cv_fetch *f, uint64_t pos, size_t size, size_t *admitted)
{
    *admitted = size;
    if (!f->delivery.flow) return CV_OK;
    return f->delivery.receiver->admit(f, pos, size, admitted, &f->error);
}

/* ---- Request ----------------------------------------------------------------------------- */

static cv_status add_range(const cv_fetch *f, cv_buffer *fields, cv_error *err)
{
    char range[64];
    const cv_range_request *r = &f->answer.request;
    if (is_multirange(f))
        return cv_ranges_add_field(f->ranges.list, f->ranges.n, fields, err);
    if (r->is_suffix)
        (void)snprintf(range, sizeof range, "bytes=-%llu", (unsigned long long)r->end);
    else
        (void)snprintf(range, sizeof range, "bytes=%llu-%llu", (unsigned long long)r->first,
                       (unsigned long long)(r->end - 1));
    return cv_add_field(fields, "Range", range, err);
}

static cv_status add_fields(const cv_fetch *f, cv_buffer *fields, cv_error *err)
{
    const cv_request_head head = {.method = "GET", .url = f->retry.route.url};
    const cv_version *version = f->request.range.version;
    CV_TRY(add_range(f, fields, err));
    if (version->size != UINT64_MAX && cv_etag_is_strong(version->etag))
        CV_TRY(cv_add_field(fields, "If-Match", version->etag, err));
    if (f->request.is_anew) CV_TRY(cv_add_field(fields, "Cache-Control", "no-cache", err));
    return cv_request_add_fields(f->request.object, &head, fields, err);
}

/* Begins an answer. The limit of a multi-range answer is twice the requested bytes plus one header
 * per part, so that a server that ignores the ranges cannot make us download the whole object. */
static cv_status begin_answer(cv_fetch *f)
{
    cv_fetch_answer *a = &f->answer;
    cv_buffer head = a->head;
    head.size = 0;
    *a = (cv_fetch_answer){.request = f->request.range, .head = head, .body = a->body};
    if (f->wanted.is_known) {
        a->request.is_suffix = false;
        a->request.first = f->wanted.next;
        a->request.end = f->wanted.end;
    }
    a->n_requested = a->request.end - (a->request.is_suffix ? 0 : a->request.first);
    if (!is_multirange(f)) return CV_OK;
    size_t n;
    if (!a->body) a->body = cv_malloc(sizeof *a->body);
    if (!a->body) return cv_fail_memory(&f->error, sizeof *a->body, "parts");
    a->n_requested = cv_ranges_incomplete(f->ranges.list, f->ranges.n, &n);
    a->most_received = 2 * a->n_requested + (uint64_t)(n + 2) * CV_PART_HEADER_SIZE;
    return CV_OK;
}

static cv_status prepare(cv_wire *wire, cv_wire_setup *setup)
{
    cv_fetch *f = fetch_of(wire);
    const caterva_remote_options *o = &session_of(f)->options;
    CV_TRY(fail(f, begin_answer(f)));
    if (!f->retry.route.url)
        CV_TRY(fail(f, cv_route_begin(&f->retry.route, f->request.object, &f->error)));
    f->retry.n_attempts++;
    setup->url = f->retry.route.url;
    setup->connect_ms = o->connect_timeout_ms;
    setup->stall_ms = o->stall_timeout_ms;
    setup->ca_file = o->ca_file;
    CV_TRY(fail(f, add_fields(f, &setup->fields, &f->error)));
    set_flow(f, CV_FLOW_FLYING);
    return CV_OK;
}

/* ---- Head of the reply ------------------------------------------------------------------- */

static bool is_judged(const cv_fetch *f) { return f->answer.verdict != CV_REPLY_PENDING; }

/* Ends the attempt and the fetch. */
static bool stop(cv_fetch *f, cv_status status)
{
    f->status = status;
    f->answer.verdict = CV_REPLY_FAILED;
    return false;
}

static bool take_header(cv_wire *wire, const char *line, size_t size)
{
    cv_fetch *f = fetch_of(wire);
    cv_buffer *head = &f->answer.head;
    if (is_judged(f)) return true; /* a trailer, after the body */
    if (size >= 5 && memcmp(line, "HTTP/", 5) == 0) head->size = 0;
    if (head->size + size > MOST_HEAD)
        fail(f, cv_fail(&f->error, CATERVA_EIO, -1,
                        "%s: the header of the server's answer exceeds %d bytes", name_of(f),
                        MOST_HEAD));
    else
        fail(f, cv_buffer_append(head, line, size, &f->error));
    return f->status == CV_OK;
}

/* Begins the delivery: the first accepted reply to a single-range request determines which bytes
 * will come. If the server sends the whole object, a receiver with `begin` receives all of it. */
static cv_status begin_delivery(cv_fetch *f, const cv_content_range *content)
{
    const cv_range_request *r = &f->request.range;
    const cv_receiver *receiver = f->delivery.receiver;
    if (f->wanted.is_known) return CV_OK;
    uint64_t total = content->total, first = r->first, end = r->end < total ? r->end : total;
    if (r->is_suffix) {
        first = total - end;
        end = total;
    }
    if (content->size == total && receiver->begin) {
        first = 0;
        end = total;
    }
    f->wanted.next = first;
    f->wanted.end = end;
    if (receiver->begin)
        CV_TRY(receiver->begin(f, &(cv_content_range){first, end - first, total}, &f->error));
    if (r->version->size == UINT64_MAX)
        cv_remote_object_meet(f->request.object, &f->reply, content);
    f->wanted.is_known = true;
    return CV_OK;
}

static bool refuse_multirange(cv_fetch *f)
{
    f->status =
        cv_fail(&f->error, CATERVA_EIO, -1,
                "%s: the server's multipart response does not match the requested ranges",
                name_of(f));
    f->answer.verdict = CV_REPLY_NO_MULTIRANGE;
    return false;
}

static bool judge_multirange(cv_fetch *f)
{
    cv_fetch_answer *a = &f->answer;
    a->verdict =
        cv_reply_judge_multirange(&f->reply, a->request.version, name_of(f), &f->error);
    f->status = a->verdict == CV_REPLY_ACCEPT ? CV_OK : f->error.code;
    if (a->verdict == CV_REPLY_ACCEPT) cv_multipart_begin(a->body, f->reply.boundary);
    return a->verdict != CV_REPLY_FAILED || f->reply.status >= 400;
}

/* Whether the body is an error document, which then replaces the stored head. */
static bool is_refused(const cv_fetch *f)
{
    return !is_multirange(f) && f->answer.verdict != CV_REPLY_ACCEPT &&
           f->reply.status >= 400;
}

static bool judge_single(cv_fetch *f)
{
    cv_fetch_answer *a = &f->answer;
    cv_content_range content = {0};
    a->verdict = cv_reply_judge(&f->reply, &a->request, name_of(f), &content, &f->error);
    f->status = a->verdict == CV_REPLY_ACCEPT ? CV_OK : f->error.code;
    if (is_refused(f)) a->head.size = 0;
    if (a->verdict == CV_REPLY_RETRY || a->verdict == CV_REPLY_REDIRECT) return true;
    if (a->verdict != CV_REPLY_ACCEPT) return f->reply.status >= 400;
    a->pos = content.first;
    a->end = content.first + content.size;
    cv_status status = begin_delivery(f, &content);
    return status == CV_OK || stop(f, status);
}

static bool judge(cv_fetch *f)
{
    const cv_buffer *head = &f->answer.head;
    cv_status status =
        cv_reply_parse((const char *)head->data, head->size, &f->reply, &f->error);
    if (status != CV_OK) return is_multirange(f) ? refuse_multirange(f) : stop(f, status);
    return is_multirange(f) ? judge_multirange(f) : judge_single(f);
}

/* ---- Body: one range --------------------------------------------------------------------- */

/* Delivers bytes of the body. They begin at answer.pos; bytes before wanted.next were delivered
 * earlier. *is_room: the receiver has memory for all bytes. If not, the wire presents all of them
 * again later, and wanted.next is behind the bytes delivered now. */
static cv_status deliver(cv_fetch *f, const uint8_t *bytes, size_t size, bool *is_room)
{
    cv_fetch_answer *a = &f->answer;
    uint64_t pos = a->pos, end = pos + size, from = f->wanted.next;
    *is_room = true;
    if (size > a->end - pos)
        return cv_fail(&f->error, CATERVA_EIO, -1,
                       "%s: the server sends more bytes than it announced", name_of(f));
    if (end > f->wanted.end) end = f->wanted.end;
    if (end > from && pos <= from) {
        size_t n = (size_t)(end - from), admitted;
        CV_TRY(admit(f, from, n, &admitted));
        *is_room = admitted == n;
        f->wanted.next += admitted;
        CV_TRY(
            f->delivery.receiver->take(f, from, bytes + (from - pos), admitted, &f->error));
    }
    if (*is_room) a->pos = pos + size;
    return CV_OK;
}

static cv_wire_next take_single(cv_fetch *f, const uint8_t *bytes, size_t size)
{
    bool is_room;
    cv_status status = deliver(f, bytes, size, &is_room);
    if (status == CV_OK) return is_room ? CV_WIRE_GOES_ON : CV_WIRE_PAUSES;
    (void)stop(f, status);
    return CV_WIRE_ENDS;
}

/* ---- Body: several ranges ---------------------------------------------------------------- */

static bool accept_part(cv_fetch *f)
{
    const cv_multipart *part = f->answer.body;
    const cv_range_request *r = &f->answer.request;
    if (part->total != r->version->size || part->pos < r->first || part->end > r->end)
        return refuse_multirange(f);
    f->ranges.has_any = true;
    return true;
}

/* Copies bytes of the current body part to every range that needs them; bytes between ranges are
 * dropped. *taken is less than `size` if the receiver has no memory for a range. */
static cv_status deliver_part(cv_fetch *f, const uint8_t *bytes, size_t size, size_t *taken)
{
    uint64_t pos = f->answer.body->pos, first, last;
    cv_fetch_ranges *r = &f->ranges;
    *taken = size;
    for (size_t i = 0; i < r->n && *taken == size; i++) {
        i = cv_ranges_take(r->list, r->n, i, pos, pos + size, &first, &last);
        if (i == r->n) break;
        r->current = i;
        size_t n = (size_t)(last - first), admitted;
        CV_TRY(admit(f, first, n, &admitted));
        r->list[i].received = first + admitted;
        CV_TRY(
            f->delivery.receiver->take(f, first, bytes + (first - pos), admitted, &f->error));
        if (admitted < n) *taken = (size_t)(first + admitted - pos);
    }
    cv_multipart_take(f->answer.body, *taken);
    return CV_OK;
}

/* Commits the bytes of a body part when it ends exactly where its header stated. Until then the
 * bytes may be wrong. */
static void commit_part(cv_fetch *f)
{
    for (size_t i = 0; i < f->ranges.n; i++) {
        cv_byte_range *r = &f->ranges.list[i];
        if (r->committed == r->received) continue;
        f->ranges.current = i;
        f->delivery.receiver->commit(f, r->committed, r->received - r->committed);
        r->committed = r->received;
    }
}

/* Discards the bytes of an incomplete body part: the next attempt requests them again. */
static void discard_part(cv_fetch *f)
{
    for (size_t i = 0; i < f->ranges.n; i++) {
        cv_byte_range *r = &f->ranges.list[i];
        if (r->committed == r->received) continue;
        f->ranges.current = i;
        r->received = r->committed;
        f->delivery.receiver->discard(f);
    }
}

/* Takes bytes of a multi-range body. After a pause the first `n_used` bytes are used already. */
static cv_wire_next take_multirange(cv_fetch *f, const uint8_t *bytes, size_t size)
{
    cv_fetch_answer *a = &f->answer;
    cv_status status = CV_OK;
    bool is_good = a->received <= a->most_received || refuse_multirange(f);
    if (is_good && a->n_used > size) { /* the wire presents smaller pieces this time */
        a->n_used -= size;
        return CV_WIRE_GOES_ON;
    }
    for (size_t at = a->n_used, n; is_good && at < size; at += n) {
        cv_part_event event = cv_multipart_next(a->body, bytes + at, size - at, &n);
        if (event == CV_PART_BAD) is_good = refuse_multirange(f);
        if (event == CV_PART_BEGINS) is_good = accept_part(f);
        if (event == CV_PART_ENDS) commit_part(f);
        if (event != CV_PART_BYTES) continue;
        size_t given = n;
        status = deliver_part(f, bytes + at, given, &n);
        if (status != CV_OK) is_good = stop(f, status);
        a->n_used = at + n;
        if (is_good && n < given) return CV_WIRE_PAUSES;
    }
    if (is_good) a->n_used = 0;
    return is_good ? CV_WIRE_GOES_ON : CV_WIRE_ENDS;
}

static cv_wire_next take_body(cv_wire *wire, const uint8_t *bytes, size_t size)
{
    cv_fetch *f = fetch_of(wire);
    cv_fetch_answer *a = &f->answer;
    cv_wire_next next = CV_WIRE_GOES_ON;
    set_flow(f, CV_FLOW_FLYING);
    if (!is_judged(f) && !judge(f)) return CV_WIRE_ENDS;
    if (a->verdict == CV_REPLY_ACCEPT)
        next =
            is_multirange(f) ? take_multirange(f, bytes, size) : take_single(f, bytes, size);
    if (next == CV_WIRE_PAUSES) {
        set_flow(f, CV_FLOW_PAUSED);
        return next;
    }
    if (is_refused(f)) { /* without memory, the <Code> is omitted */
        size_t room = MOST_REFUSAL - a->head.size;
        (void)cv_buffer_append(&a->head, bytes, size < room ? size : room, NULL);
    }
    a->received += size;
    atomic_fetch_add(&session_of(f)->bytes, (int64_t)size);
    uint64_t most = a->verdict == CV_REPLY_NO_MULTIRANGE ? MOST_UNREAD_MULTI : MOST_UNREAD;
    return a->verdict != CV_REPLY_ACCEPT && a->received > most ? CV_WIRE_ENDS : next;
}

/* ---- After an attempt: common ----------------------------------------------------------- */

static uint32_t wait_requested(const cv_fetch *f)
{
    if (f->answer.verdict != CV_REPLY_RETRY) return 0;
    return cv_reply_wait(&f->reply, (int64_t)(cv_os_time_ns() / 1000000000));
}

static int64_t back_off(cv_fetch *f)
{
    return cv_session_backoff(session_of(f), &f->retry.n_failures, wait_requested(f));
}

static int64_t give_up(cv_fetch *f)
{
    cv_session_count_attempts(&f->error, f->retry.n_attempts, wait_requested(f));
    return CV_WIRE_DONE;
}

static int64_t try_again(cv_fetch *f)
{
    int64_t pause = back_off(f);
    return pause >= 0 ? pause : give_up(f);
}

static int64_t redirect(cv_fetch *f, const char *to)
{
    fail(f, cv_route_follow(&f->retry.route, f->request.object, to, &f->error));
    return f->status == CV_OK ? 0 : CV_WIRE_DONE;
}

static int64_t finish(const cv_fetch *f)
{
    cv_route_keep(&f->retry.route, f->request.object);
    return CV_WIRE_DONE;
}

static void describe_broken(cv_fetch *f, const cv_wire_end *end)
{
    fail(f, cv_remote_object_broken(f->request.object, f->retry.route.url, end, &f->error));
}

/* ---- After an attempt: several ranges --------------------------------------------------- */

static int64_t split(cv_fetch *f, cv_fetch_outcome outcome)
{
    f->outcome = outcome;
    return CV_WIRE_DONE;
}

/* Retries once. After a second failure, the remaining ranges are requested one by one, because
 * single-range requests may succeed. If no body part ever arrived, the server counts as refusing
 * multi-range requests. */
static int64_t try_multirange_again(cv_fetch *f)
{
    bool has_failed = f->retry.n_failures > 0, has_any = f->ranges.has_any;
    cv_fetch_outcome outcome = has_failed && !has_any ? CV_FETCH_REFUSED : CV_FETCH_SPLIT;
    if (has_failed || count_incomplete(f) < 2) return split(f, outcome);
    int64_t pause = back_off(f);
    if (pause >= 0) return pause;
    return has_any ? give_up(f) : split(f, CV_FETCH_SPLIT);
}

/* Whether the result means that other multi-range requests would fail, too. */
static bool is_refusal(const cv_fetch *f)
{
    if (!is_judged(f)) return f->status == CATERVA_EIO; /* too many header fields */
    return f->answer.verdict == CV_REPLY_NO_MULTIRANGE &&
           !(f->retry.route.is_redirected && cv_route_is_dead(f->reply.status));
}

static int64_t decide_multirange(cv_fetch *f, const cv_wire_end *end)
{
    cv_verdict verdict = f->answer.verdict;
    bool is_complete = verdict == CV_REPLY_ACCEPT && end->is_whole;
    if (is_complete && cv_multipart_end(f->answer.body)) commit_part(f);
    discard_part(f);
    if (count_incomplete(f) == 0) {
        f->status = CV_OK;
        return finish(f);
    }
    if (is_complete) (void)refuse_multirange(f);
    if (is_refusal(f)) return split(f, CV_FETCH_REFUSED);
    if (f->answer.verdict == CV_REPLY_NO_MULTIRANGE) return split(f, CV_FETCH_SPLIT);
    if (verdict == CV_REPLY_RETRY) return try_multirange_again(f);
    if (verdict == CV_REPLY_REDIRECT) { /* a single-range request may succeed */
        int64_t next = redirect(f, end->redirect);
        return f->status == CV_OK ? next : split(f, CV_FETCH_REFUSED);
    }
    if (f->status != CV_OK) return CV_WIRE_DONE;
    describe_broken(f, end);
    return end->is_broken ? try_multirange_again(f) : split(f, CV_FETCH_REFUSED);
}

/* ---- After an attempt ------------------------------------------------------------------- */

/* Changes "... (status 403)" to "... (status 403, AccessDenied)". */
static void add_refusal_code(cv_fetch *f)
{
    char code[CV_XML_REFUSAL_SIZE], *end = f->error.message + strlen(f->error.message);
    size_t room = (size_t)(f->error.message + sizeof f->error.message - end);
    cv_xml_refusal(f->answer.head.data, f->answer.head.size, code);
    if (!*code || end == f->error.message || room < sizeof code + 2) return;
    if (end[-1] == ')')
        (void)snprintf(end - 1, room + 1, "%s)", code);
    else
        (void)snprintf(end, room, " (%s)", code + strlen(", "));
}

static int64_t decide_broken(cv_fetch *f, const cv_wire_end *end)
{
    describe_broken(f, end);
    bool may_recover = end->was_connected || atomic_load(&session_of(f)->has_connected);
    return end->is_broken && may_recover ? try_again(f) : give_up(f);
}

static int64_t decide(cv_fetch *f, const cv_wire_end *end)
{
    bool is_empty = !is_judged(f) && f->answer.head.size > 0; /* a reply without a body */
    if (is_empty && end->is_whole && f->status == CV_OK) (void)judge(f);
    if (is_multirange(f)) return decide_multirange(f, end);
    if (is_judged(f) && is_refused(f)) add_refusal_code(f);
    switch (f->answer.verdict) {
    case CV_REPLY_PENDING: return f->status != CV_OK ? CV_WIRE_DONE : decide_broken(f, end);
    case CV_REPLY_ACCEPT:
        if (f->wanted.next == f->wanted.end) return finish(f);
        if (!end->is_whole) return decide_broken(f, end);
        fail(f, cv_fail(&f->error, CATERVA_EIO, -1,
                        "%s: the server sends fewer bytes than it announced", name_of(f)));
        return try_again(f);
    case CV_REPLY_RETRY: return try_again(f);
    case CV_REPLY_REDIRECT: return redirect(f, end->redirect);
    case CV_REPLY_NO_RANGES: f->outcome = CV_FETCH_NO_RANGES; return CV_WIRE_DONE;
    default:
        return cv_route_restart(&f->retry.route, f->request.object, f->reply.status)
                   ? 0
                   : CV_WIRE_DONE;
    }
}

static void report(const cv_fetch *f, const cv_wire_end *end)
{
    const caterva_remote_options *o = &session_of(f)->options;
    const cv_fetch_answer *a = &f->answer;
    if (!o->on_request) return;
    const caterva_transfer transfer = {
        .method = "GET",
        .url = name_of(f),
        .first = a->request.is_suffix ? UINT64_MAX : a->request.first,
        .size = a->n_requested,
        .received = a->received,
        .nanoseconds = (int64_t)end->total_ns,
        .status = is_judged(f) ? f->reply.status : 0,
        .attempt = f->retry.n_attempts,
        .ranges = f->request.n_ranges,
        .error = f->status != CV_OK ? f->error.message : NULL,
    };
    cv_wire_give_turn();
    o->on_request(o->context, &transfer);
    cv_wire_take_turn();
}

static int64_t end_attempt(cv_wire *wire, const cv_wire_end *end)
{
    cv_fetch *f = fetch_of(wire);
    cv_session *s = session_of(f);
    leave_flow(f);
    atomic_fetch_add(&s->requests, 1);
    int64_t again = decide(f, end);
    if (end->was_connected) atomic_store(&s->has_connected, true);
    if (is_judged(f) && end->first_byte_ns > 0) cv_session_note_trip(s, end->first_byte_ns);
    report(f, end);
    if (again != CV_WIRE_DONE) f->status = CV_OK;
    return again;
}

/* ---- Beginning and end ------------------------------------------------------------------ */

static void gone(cv_wire *wire)
{
    cv_fetch *f = fetch_of(wire);
    bool is_split = f->outcome == CV_FETCH_SPLIT || f->outcome == CV_FETCH_REFUSED;
    bool is_complete = is_multirange(f)
                           ? count_incomplete(f) == 0
                           : f->wanted.is_known && f->wanted.next == f->wanted.end;
    leave_flow(f);
    if (is_split) { /* not a failure; the owner may use the fetch again */
        f->status = CV_OK;
        f->error = (cv_error){0};
    } else if (f->status == CV_OK && !is_complete) {
        f->status = cv_wire_fail_gone(wire, &f->error);
    }
    cv_buffer_free(&f->answer.head);
    cv_free(f->answer.body);
    cv_free(f->retry.route.url);
    f->answer = (cv_fetch_answer){0};
    f->retry.route.url = NULL;
    f->delivery.receiver->gone(f);
}

cv_status cv_fetch_begin(cv_fetch *f, cv_error *err)
{
    f->wire.prepare = prepare;
    f->wire.header = take_header;
    f->wire.body = take_body;
    f->wire.end = end_attempt;
    f->wire.gone = gone;
    f->wire.limit = &session_of(f)->limit;
    f->request.range.version = &f->request.object->version;
    f->ranges.current = 0;
    f->ranges.has_any = false;
    f->wanted.is_known = false;
    f->delivery.state = CV_FLOW_OUT;
    f->retry = (cv_fetch_retry){0};
    f->outcome = CV_FETCH_DONE;
    return cv_wire_submit(&f->wire, err);
}

void cv_fetch_cancel(cv_fetch *f) { cv_wire_cancel(&f->wire); }

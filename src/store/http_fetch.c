/* Room: store. The life of a request. A byte is handed on when the answer that it came with
 * was found to be the one that was asked for, and only where it belongs. What may be tried
 * again: a server that is busy, a connection that broke; what may not: an answer that is
 * wrong. */
#include "store/http_fetch.h"

#include "base/heap.h"

#include <stdio.h>
#include <string.h>

enum { MOST_HEAD = 64 * 1024, MOST_REDIRECTS = 5, UNREAD_BODY = 64 * 1024 };

static cv_fetch *of(cv_wire *wire) { return (cv_fetch *)wire; } /* its first member */

/* ---- Asking ------------------------------------------------------------------------ */

static cv_status add_range(const cv_fetch *f, cv_buffer *fields, cv_error *err)
{
    char range[64];
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
    const cv_http_asked asked = {.method = "GET", .url = f->url};
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
    if (!f->url) f->url = cv_http_object_place(f->object, &f->is_elsewhere);
    if (!f->url) return fail(f, cv_fail_memory(&f->error, 1, "a URL"));
    f->attempts++;
    setup->url = f->url;
    setup->connect_ms = o->connect_timeout_ms;
    setup->stall_ms = o->stall_timeout_ms;
    setup->ca_file = o->ca_file;
    return fail(f, add_fields(f, &setup->fields, &f->error));
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
                               f->object->shown, MOST_HEAD));
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
    if (f->object->identity.size == UINT64_MAX) /* what comes next is to be of that version */
        cv_reply_identity(&f->reply, grant, &f->object->identity);
    f->is_granted = true;
    return CV_OK;
}

/* False: the attempt is over. */
static bool judge(cv_fetch *f)
{
    cv_grant grant = {0};
    f->is_judged = true;
    cv_status status =
        cv_reply_parse((const char *)f->head.data, f->head.size, &f->reply, &f->error);
    if (status != CV_OK) return stop(f, status);
    f->verdict = cv_reply_judge(&f->reply, &f->now, f->object->shown, &grant, &f->error);
    f->status = f->verdict == CV_REPLY_TAKE ? CV_OK : f->error.code;
    if (f->verdict == CV_REPLY_RETRY || f->verdict == CV_REPLY_REDIRECT) return true;
    if (f->verdict != CV_REPLY_TAKE) return f->reply.status >= 400;
    f->body_pos = grant.first;
    f->body_end = grant.first + grant.size;
    status = note_grant(f, &grant);
    return status == CV_OK || stop(f, status);
}

/* Bytes [body_pos, body_pos + size) came; those from `next` on are news. */
static cv_status hand_on(cv_fetch *f, const uint8_t *bytes, size_t size)
{
    uint64_t pos = f->body_pos, end = pos + size;
    if (size > f->body_end - pos)
        return cv_fail(&f->error, CATERVA_EIO, -1,
                       "%s: the server sends more bytes than it announced", f->object->shown);
    f->body_pos = end;
    if (end > f->last_end) end = f->last_end;
    if (end <= f->next || pos > f->next) return CV_OK;
    uint64_t from = f->next;
    f->next = end;
    return f->take(f, from, bytes + (from - pos), (size_t)(end - from), &f->error);
}

static bool take_body(cv_wire *wire, const uint8_t *bytes, size_t size)
{
    cv_fetch *f = of(wire);
    if (!f->is_judged && !judge(f)) return false;
    f->received += size;
    atomic_fetch_add(&f->object->session->bytes, (int64_t)size);
    if (f->verdict != CV_REPLY_TAKE) return f->received <= UNREAD_BODY;
    cv_status status = hand_on(f, bytes, size);
    return status == CV_OK || stop(f, status);
}

/* ---- What next --------------------------------------------------------------------- */

static int64_t give_up(cv_fetch *f)
{
    cv_session_count_attempts(&f->error, f->attempts);
    return CV_WIRE_DONE;
}

static int64_t try_again(cv_fetch *f)
{
    uint32_t asked_s = f->verdict == CV_REPLY_RETRY ? f->reply.retry_after : 0;
    int64_t pause = cv_session_pause(f->object->session, &f->failures, asked_s);
    return pause >= 0 ? pause : give_up(f);
}

static int64_t follow(cv_fetch *f, const char *to)
{
    if (f->redirects++ >= MOST_REDIRECTS || !to) {
        f->status = cv_fail(&f->error, CATERVA_EIO, -1,
                            to ? "%s: the server redirects again and again"
                               : "%s: the server redirects, and does not say where",
                            f->object->shown);
        return CV_WIRE_DONE;
    }
    f->status = cv_http_object_check_move(f->object, f->url, to, &f->error);
    if (f->status != CV_OK) return CV_WIRE_DONE;
    char *copy = cv_strdup(to);
    if (!copy) {
        f->status = cv_fail_memory(&f->error, strlen(to), "a URL");
        return CV_WIRE_DONE;
    }
    cv_free(f->url);
    f->url = copy;
    f->is_elsewhere = true;
    return 0;
}

/* A place that was redirected to may have been for a while only: its origin knows a new one. */
static bool forget_place(cv_fetch *f)
{
    int status = f->reply.status;
    bool is_over = status == 401 || status == 403 || status == 404 || status == 410;
    if (!f->is_elsewhere || !is_over || f->redirects >= MOST_REDIRECTS) return false;
    if (strcmp(f->url, f->object->url) == 0 || f->redirects > 0) return false;
    f->redirects++;
    cv_http_object_moved(f->object, NULL);
    cv_free(f->url);
    f->url = NULL;
    return true;
}

static int64_t broken(cv_fetch *f, const cv_wire_end *end)
{
    cv_session *s = f->object->session;
    f->status = cv_http_object_broken(f->object, f->url, end, &f->error);
    bool may_recover = end->was_connected || atomic_load(&s->has_connected);
    return end->is_broken && may_recover ? try_again(f) : give_up(f);
}

static int64_t finish(cv_fetch *f)
{
    if (f->redirects > 0 && f->is_elsewhere) cv_http_object_moved(f->object, f->url);
    return CV_WIRE_DONE;
}

static int64_t decide(cv_fetch *f, const cv_wire_end *end)
{
    if (!f->is_judged && f->head.size > 0 && end->is_whole && f->status == CV_OK)
        (void)judge(f);
    if (!f->is_judged) return f->status != CV_OK ? CV_WIRE_DONE : broken(f, end);
    switch (f->verdict) {
    case CV_REPLY_TAKE:
        if (f->next == f->last_end) return finish(f);
        if (end->is_whole)
            f->status = cv_fail(&f->error, CATERVA_EIO, -1,
                                "%s: the server sends fewer bytes than it announced",
                                f->object->shown);
        return end->is_whole ? try_again(f) : broken(f, end);
    case CV_REPLY_RETRY: return try_again(f);
    case CV_REPLY_REDIRECT: return follow(f, end->redirect);
    case CV_REPLY_NO_RANGES: f->has_no_ranges = true; return CV_WIRE_DONE;
    default: return forget_place(f) ? 0 : CV_WIRE_DONE;
    }
}

static void tell(const cv_fetch *f, const cv_wire_end *end)
{
    const caterva_remote_options *o = &f->object->session->options;
    bool is_suffix = f->now.is_suffix;
    if (!o->on_request) return;
    const caterva_transfer transfer = {
        .method = "GET",
        .url = f->object->shown,
        .first = is_suffix ? UINT64_MAX : f->now.first,
        .size = is_suffix ? f->now.end : f->now.end - f->now.first,
        .received = f->received,
        .nanoseconds = (int64_t)end->total_ns,
        .status = f->is_judged ? f->reply.status : 0,
        .attempt = f->attempts,
        .ranges = f->n_ranges,
        .error = f->status != CV_OK ? f->error.message : NULL,
    };
    o->on_request(o->context, &transfer);
}

static int64_t end_attempt(cv_wire *wire, const cv_wire_end *end)
{
    cv_fetch *f = of(wire);
    cv_session *s = f->object->session;
    atomic_fetch_add(&s->requests, 1);
    int64_t again = decide(f, end);
    if (end->was_connected) atomic_store(&s->has_connected, true);
    if (f->is_judged && end->first_byte_ns > 0) cv_session_note_trip(s, end->first_byte_ns);
    tell(f, end);
    if (again != CV_WIRE_DONE) f->status = CV_OK;
    return again;
}

static void gone(cv_wire *wire)
{
    cv_fetch *f = of(wire);
    if (f->status == CV_OK && (!f->is_granted || f->next < f->last_end))
        f->status = cv_fail(&f->error, CATERVA_ESTOPPED, -1, "the request was given up");
    cv_buffer_free(&f->head);
    cv_free(f->url);
    f->url = NULL;
    f->gone(f);
}

cv_status cv_fetch_begin(cv_fetch *f, cv_error *err)
{
    f->wire.prepare = prepare;
    f->wire.header = take_header;
    f->wire.body = take_body;
    f->wire.end = end_attempt;
    f->wire.gone = gone;
    f->wire.limit = &f->object->session->limit;
    f->ask.identity = &f->object->identity;
    return cv_wire_submit(&f->wire, err);
}

void cv_fetch_cancel(cv_fetch *f) { cv_wire_cancel(&f->wire); }

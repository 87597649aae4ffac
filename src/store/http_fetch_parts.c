/* Room: store. What an answer with several parts brings. How a request is tried again, and what
 * becomes of what it did not bring, is for http_fetch.c. */
#include "store/http_fetch_parts.h"

#include "base/heap.h"

/* The envelope of all that is asked for, which each part lies in. Nobody is heard out who sends
 * much more than that, and heads. */
cv_status cv_fetch_prepare_parts(cv_fetch *f)
{
    size_t n_left;
    if (!f->parts) f->parts = cv_malloc(sizeof *f->parts);
    if (!f->parts) return f->status = cv_fail_memory(&f->error, sizeof *f->parts, "parts");
    f->asked = cv_spans_left(f->spans, f->n_spans, &n_left);
    f->most_received = 2 * f->asked + (uint64_t)(n_left + 2) * CV_PART_HEAD;
    f->now = (cv_ask){.first = f->ask.first, .end = f->ask.end, .identity = f->ask.identity};
    return CV_OK;
}

bool cv_fetch_refuse_parts(cv_fetch *f)
{
    f->status = cv_fail(&f->error, CATERVA_EIO, -1,
                        "%s: the server sends parts that were not asked for, or are none",
                        f->object->shown);
    f->verdict = CV_REPLY_NO_PARTS;
    return false;
}

/* Of several ranges: a server that knows no such requests is heard out only when it is brief. */
bool cv_fetch_judge_parts(cv_fetch *f)
{
    f->verdict =
        cv_reply_judge_parts(&f->reply, f->ask.identity, f->object->shown, &f->error);
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

void cv_fetch_end_parts(cv_fetch *f, bool is_whole)
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
cv_wire_next cv_fetch_take_parts(cv_fetch *f, const uint8_t *bytes, size_t size)
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

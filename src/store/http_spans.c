/* Room: store. Several ranges in one request. */
#include "store/http_spans.h"

#include "store/http_join.h"

#include <stdio.h>

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

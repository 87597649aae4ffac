/* Room: remote. Joins byte ranges into requests. First, neighbouring ranges are joined by cost:
 * gaps are bridged from the narrowest on, as long as the gap bytes stay within bounds.
 *
 *      needed   [====]..[===]................[==]...[====]
 *      requests [===========]                [===========]
 *
 * Then several joined ranges may form one multi-range request. Pure functions. */
#include "remote/http.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- Joining ---------------------------------------------------------------------------- */

static int by_place(const void *a, const void *b)
{
    const cv_segment *x = a, *y = b;
    if (x->pos != y->pos) return x->pos < y->pos ? -1 : 1;
    return (x->end > y->end) - (x->end < y->end);
}

static uint64_t gap_before(const cv_segment *segments, size_t i, uint64_t end)
{
    return segments[i].pos > end ? segments[i].pos - end : 0;
}

/* Sums up the needed bytes, and the bytes in gaps of at most `most` bytes. */
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

/* Returns the width of the widest gap that is bridged: rule->gap, or less if all gaps up to that
 * width exceed over_percent. Bisection needs no list of gaps. *left: bytes for some of the gaps one
 * byte wider. With blocks of one size, all gaps may have that one width. */
static uint64_t widest_gap(const cv_segment *segments, size_t n, const cv_join_rule *rule,
                           uint64_t *left)
{
    uint64_t low = 0, high = rule->gap, needed, in_gaps;
    measure(segments, n, high, &needed, &in_gaps);
    uint64_t may = (uint64_t)((double)needed * rule->over_percent / 100);
    *left = 0;
    if (in_gaps <= may) return high;
    while (high - low > 1) { /* gaps up to `low` fit, those up to `high` do not */
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

/* Returns the maximum size of a request. Raises the rule's maximum if a connection would otherwise
 * make a second request. Adds up to one segment, so that rounding causes no extra request. */
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

/* ---- Multi-range requests --------------------------------------------------------------- */

/* The overhead of a body part: its header, and a seek by the server. */
enum { PART_COST = 4096 };

uint64_t cv_ranges_incomplete(const cv_byte_range *ranges, size_t n, size_t *n_incomplete)
{
    uint64_t bytes = 0;
    *n_incomplete = 0;
    for (size_t i = 0; i < n; i++) {
        bytes += ranges[i].end - ranges[i].received;
        *n_incomplete += ranges[i].end > ranges[i].received;
    }
    return bytes;
}

uint64_t cv_ranges_cost(const cv_byte_range *ranges, size_t n)
{
    size_t n_incomplete;
    uint64_t bytes = cv_ranges_incomplete(ranges, n, &n_incomplete);
    return bytes + (uint64_t)n_incomplete * PART_COST;
}

size_t cv_ranges_share(const cv_byte_range *ranges, size_t n, uint64_t cost)
{
    uint64_t sum = 0;
    size_t i = 0;
    for (; i < n && i < CV_RANGES_MOST; i++) {
        uint64_t with = sum + cv_ranges_cost(&ranges[i], 1);
        bool is_ordered = i == 0 || ranges[i].received >= ranges[i - 1].end;
        if (!is_ordered || (i > 0 && (sum >= cost || with > CV_JOIN_MOST))) break;
        sum = with;
    }
    return i;
}

cv_status cv_ranges_add_field(const cv_byte_range *ranges, size_t n, cv_buffer *fields,
                              cv_error *err)
{
    const char *before = "Range: bytes=";
    char text[64];
    for (size_t i = 0; i < n; i++) {
        if (ranges[i].received == ranges[i].end) continue;
        int size = snprintf(text, sizeof text, "%s%llu-%llu", before,
                            (unsigned long long)ranges[i].received,
                            (unsigned long long)(ranges[i].end - 1));
        CV_TRY(cv_buffer_append(fields, text, (size_t)size, err));
        before = ",";
    }
    return cv_buffer_append(fields, "", 1, err);
}

size_t cv_ranges_take(cv_byte_range *ranges, size_t n, size_t from, uint64_t pos,
                      uint64_t end, uint64_t *first, uint64_t *last)
{
    for (size_t i = from; i < n; i++) {
        cv_byte_range *s = &ranges[i];
        if (s->received < pos || s->received >= end || s->received == s->end) continue;
        *first = s->received;
        *last = s->end < end ? s->end : end;
        s->received = *last;
        return i;
    }
    return n;
}

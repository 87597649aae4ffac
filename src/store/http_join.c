/* Room: store. Joining by cost. Gaps are bridged from the narrowest on, as long as what is
 * read over stays within its bound:
 *
 *      needed   [====]..[===]................[==]...[====]
 *      requests [===========]                [===========]
 */
#include "store/http_join.h"

#include <stdlib.h>

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

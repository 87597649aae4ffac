/* Room: frame. Bookkeeping of dead and free bytes; pure, no I/O. */
#include "frame/space.h"

#include "base/heap.h"

#include <stdlib.h>
#include <string.h>

/* ---- Extents ------------------------------------------------------------ */

/* Index of the first extent at or behind `pos`. */
static size_t find(const cv_extents *e, uint64_t pos)
{
    size_t low = 0, high = e->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (e->items[middle].pos < pos)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool make_room(cv_extents *e)
{
    if (e->n < e->max) return true;
    size_t max = e->max ? e->max * 2 : 16;
    cv_extent *items = cv_realloc(e->items, e->n * sizeof items[0], max * sizeof items[0]);
    if (!items) return false;
    e->items = items;
    e->max = max;
    return true;
}

static void erase(cv_extents *e, size_t i)
{
    memmove(&e->items[i], &e->items[i + 1], (e->n - i - 1) * sizeof e->items[0]);
    e->n--;
}

static uint64_t end_of(cv_extent extent) { return extent.pos + extent.size; }

void cv_extents_add(cv_extents *e, cv_extent extent, bool merge)
{
    size_t i = find(e, extent.pos);
    if (merge && i > 0 && end_of(e->items[i - 1]) == extent.pos) {
        extent.pos = e->items[i - 1].pos;
        extent.size += e->items[i - 1].size;
        erase(e, --i);
    }
    if (merge && i < e->n && end_of(extent) == e->items[i].pos) {
        extent.size += e->items[i].size;
        erase(e, i);
    }
    if (extent.size == 0) return;
    if (!make_room(e)) {
        e->forgot = true;
        return;
    }
    memmove(&e->items[i + 1], &e->items[i], (e->n - i) * sizeof e->items[0]);
    e->items[i] = extent;
    e->n++;
}

/* Takes out the extent that begins at `pos`; false when there is none. */
static bool remove_extent(cv_extents *e, uint64_t pos, cv_extent *out)
{
    size_t i = find(e, pos);
    if (i == e->n || e->items[i].pos != pos) return false;
    *out = e->items[i];
    erase(e, i);
    return true;
}

bool cv_extents_has(const cv_extents *e, uint64_t pos, uint64_t *size)
{
    size_t i = find(e, pos);
    if (i == e->n || e->items[i].pos != pos) return false;
    *size = e->items[i].size;
    return true;
}

bool cv_extents_take(cv_extents *e, uint64_t size, cv_extent *out)
{
    size_t best = e->n;
    for (size_t i = 0; i < e->n; i++) {
        if (e->items[i].size < size) continue;
        if (best == e->n || e->items[i].size < e->items[best].size) best = i;
        if (e->items[i].size == size) break;
    }
    if (best == e->n) return false;
    cv_extent *from = &e->items[best];
    bool all = from->size - size <= size / CV_SPACE_SLACK;
    *out = (cv_extent){from->pos, all ? from->size : size};
    from->pos += out->size;
    from->size -= out->size;
    if (all) erase(e, best);
    return true;
}

bool cv_extents_fit(const cv_extents *e, uint64_t size)
{
    for (size_t i = 0; i < e->n; i++)
        if (e->items[i].size >= size) return true;
    return false;
}

uint64_t cv_extents_below(const cv_extents *e, uint64_t end)
{
    uint64_t total = 0;
    for (size_t i = 0; i < e->n && e->items[i].pos < end; i++) {
        uint64_t left = end - e->items[i].pos;
        total += e->items[i].size < left ? e->items[i].size : left;
    }
    return total;
}

uint64_t cv_extents_total(const cv_extents *e) { return cv_extents_below(e, UINT64_MAX); }

void cv_extents_cut(cv_extents *holes, uint64_t pos, uint64_t size)
{
    uint64_t end = pos + size;
    size_t first = find(holes, pos);
    if (first > 0 && end_of(holes->items[first - 1]) > pos) first--;
    size_t last = find(holes, end); /* behind those that overlap */
    if (first == last) return;
    uint64_t before = holes->items[first].pos, behind = end_of(holes->items[last - 1]);
    memmove(&holes->items[first], &holes->items[last],
            (holes->n - last) * sizeof holes->items[0]);
    holes->n -= last - first;
    if (behind > end) cv_extents_add(holes, (cv_extent){end, behind - end}, false);
    if (before < pos) cv_extents_add(holes, (cv_extent){before, pos - before}, false);
}

static void clear(cv_extents *e) { e->n = 0; }

void cv_extents_move(cv_extents *to, cv_extents *from)
{
    for (size_t i = 0; i < from->n; i++) cv_extents_add(to, from->items[i], true);
    to->forgot = to->forgot || from->forgot;
    clear(from);
}

void cv_extents_destroy(cv_extents *e)
{
    cv_free(e->items);
    *e = (cv_extents){0};
}

/* ---- The life of a chunk's bytes ---------------------------------------- */

void cv_space_put(cv_space *space, uint64_t pos, uint64_t size)
{
    if (space->ours.n < CV_SPACE_OURS)
        cv_extents_add(&space->ours, (cv_extent){pos, size}, false);
    else
        space->forgot_ours = true;
}

void cv_space_died(cv_space *space, cv_extent chunk)
{
    cv_extents_add(&space->replaced, chunk, false);
    cv_extents_add(&space->dead, chunk, true);
}

bool cv_space_replaced(cv_space *space, uint64_t pos)
{
    cv_extent extent;
    if (!remove_extent(&space->ours, pos, &extent)) return false;
    cv_space_died(space, extent);
    return true;
}

bool cv_space_ours_end(const cv_space *space, uint64_t *end)
{
    const cv_extents *ours = &space->ours;
    *end = ours->n > 0 ? end_of(ours->items[ours->n - 1]) : 0;
    return !ours->forgot && !space->forgot_ours && !space->replaced.forgot;
}

bool cv_space_take(cv_space *space, uint64_t size, cv_extent *out)
{
    if (!cv_extents_take(&space->free, size, out)) return false;
    cv_extents_add(&space->taken, *out, true);
    return true;
}

static bool overlaps(const cv_extents *e, uint64_t pos, uint64_t size)
{
    size_t i = find(e, pos);
    if (i > 0 && end_of(e->items[i - 1]) > pos) return true;
    return i < e->n && e->items[i].pos < pos + size;
}

bool cv_space_is_clear(const cv_space *space, uint64_t pos, uint64_t size)
{
    if (space->dead.forgot || space->aging.forgot) return false;
    return !overlaps(&space->dead, pos, size) && !overlaps(&space->aging, pos, size);
}

void cv_space_occupy(cv_space *space, uint64_t pos, uint64_t size)
{
    cv_extents_cut(&space->free, pos, size);
}

void cv_space_settled(cv_space *space) { cv_extents_move(&space->free, &space->aging); }

void cv_space_committed(cv_space *space, bool header_is_durable)
{
    cv_space_settled(space);
    cv_extents_move(header_is_durable ? &space->free : &space->aging, &space->dead);
    clear(&space->taken);
    clear(&space->replaced);
}

/* What was put and taken since the commit is free again; what was replaced
 * lives on. Chunks at or behind `end` were new. */
void cv_space_rolled_back(cv_space *space, uint64_t end)
{
    size_t kept = 0;
    for (size_t i = 0; i < space->replaced.n; i++)
        cv_space_put(space, space->replaced.items[i].pos, space->replaced.items[i].size);
    clear(&space->replaced);
    for (size_t i = 0; i < space->ours.n; i++) {
        cv_extent extent = space->ours.items[i];
        size_t t = find(&space->taken, extent.pos + 1);
        bool taken = t > 0 && end_of(space->taken.items[t - 1]) > extent.pos;
        if (extent.pos < end && !taken) space->ours.items[kept++] = extent;
    }
    space->ours.n = kept;
    cv_extents_move(&space->free, &space->taken);
    clear(&space->dead);
}

void cv_space_destroy(cv_space *space)
{
    cv_extents_destroy(&space->ours);
    cv_extents_destroy(&space->dead);
    cv_extents_destroy(&space->aging);
    cv_extents_destroy(&space->free);
    cv_extents_destroy(&space->taken);
    cv_extents_destroy(&space->replaced);
}

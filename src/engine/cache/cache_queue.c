/* Room: engine/cache. The queues of the block cache. */
#include "engine/cache/cache_queue.h"

#include <string.h>

void cv_cache_queue_init(cv_cache_queue *q, atomic_int_least64_t *used_bytes)
{
    memset(q, 0, sizeof *q);
    q->used_bytes = used_bytes;
    cv_mutex_init(&q->lock);
    atomic_init(&q->source, 0);
    atomic_init(&q->n_asked, 0);
    atomic_init(&q->head_time, CV_CACHE_NOBODY);
}

static cv_cache_line *line_of(cv_cache_queue *q, const cv_cached *entry)
{
    return entry->is_used ? &q->used : &q->fresh;
}

/* Who has waited longer at a head leaves; but the fresh do not while they have less than
 * their share, half of the queue, and others are there. */
static bool used_leave(const cv_cache_queue *q)
{
    if (!q->used.head) return false;
    return q->fresh.bytes <= q->used.bytes || q->used.head->time < q->fresh.head->time;
}

cv_cached *cv_cache_queue_head(const cv_cache_queue *q)
{
    return used_leave(q) ? q->used.head : q->fresh.head;
}

static void tell_head(cv_cache_queue *q)
{
    const cv_cached *head = cv_cache_queue_head(q);
    uint64_t time = head ? head->time : CV_CACHE_NOBODY;
    if (time != atomic_load_explicit(&q->head_time, memory_order_relaxed))
        atomic_store_explicit(&q->head_time, time, memory_order_relaxed);
}

static void add_bytes(cv_cache_queue *q, cv_cache_line *line, int64_t bytes)
{
    line->bytes += bytes;
    if (line == &q->used)
        atomic_fetch_add_explicit(q->used_bytes, bytes, memory_order_relaxed);
}

static cv_cache_line *join(cv_cache_queue *q, cv_cached *entry, bool is_used, uint64_t time)
{
    entry->is_used = is_used;
    entry->time = time;
    cv_cache_line *line = line_of(q, entry);
    add_bytes(q, line, cv_cache_cost(entry->size));
    q->n_entries++;
    return line;
}

static void leave(cv_cache_queue *q, cv_cached *entry)
{
    cv_cache_line *line = line_of(q, entry);
    *(entry->before ? &entry->before->behind : &line->head) = entry->behind;
    *(entry->behind ? &entry->behind->before : &line->tail) = entry->before;
    add_bytes(q, line, -cv_cache_cost(entry->size));
    q->n_entries--;
}

void cv_cache_queue_add(cv_cache_queue *q, cv_cached *entry, bool is_used, uint64_t time)
{
    cv_cache_line *line = join(q, entry, is_used, time);
    entry->before = line->tail;
    entry->behind = NULL;
    *(line->tail ? &line->tail->behind : &line->head) = entry;
    line->tail = entry;
    tell_head(q);
}

void cv_cache_queue_move_first(cv_cache_queue *q, cv_cached *entry)
{
    leave(q, entry);
    cv_cache_line *line = join(q, entry, used_leave(q), 0);
    entry->before = NULL;
    entry->behind = line->head;
    *(line->head ? &line->head->before : &line->tail) = entry;
    line->head = entry;
    tell_head(q);
}

void cv_cache_queue_remove(cv_cache_queue *q, cv_cached *entry)
{
    leave(q, entry);
    tell_head(q);
}

void cv_cache_queue_step_back(cv_cache_queue *q, cv_cached *entry, uint64_t time)
{
    int uses = atomic_load_explicit(&entry->uses, memory_order_relaxed);
    if (uses > 0) atomic_store_explicit(&entry->uses, uses - 1, memory_order_relaxed);
    leave(q, entry);
    cv_cache_queue_add(q, entry, entry->is_used || uses > 0, time);
}

/* A queue of the block cache: who leaves next. Nothing here locks but by its caller.
 *
 *     fresh:  head <-> ... <-> tail     who came, until its turn
 *     used:   head <-> ... <-> tail     who had been of use when its turn came
 */
#ifndef CV_ENGINE_CACHE_QUEUE_H
#define CV_ENGINE_CACHE_QUEUE_H

#include "base/thread.h"
#include "engine/cache/cache_table.h"

enum { CV_CACHE_MOST_USES = 7 };

typedef struct cv_cache_line {
    cv_cached *head, *tail;
    int64_t bytes;
} cv_cache_line;

typedef struct cv_cache_queue {
    _Alignas(64) cv_mutex lock; /* of all up to `evicted` */
    cv_cache_line fresh, used;
    size_t n_entries;
    uint64_t inserted, prefetched, evicted;
    /* The queue that its threads take from, and how often they asked which. */
    atomic_size_t source;
    atomic_uint n_asked;
    /* When who leaves next joined its line; CV_CACHE_NOBODY. Read without the lock. */
    atomic_uint_least64_t head_time;
    atomic_int_least64_t *used_bytes; /* of all queues; changed here */
} cv_cache_queue;

#define CV_CACHE_NOBODY UINT64_MAX

void cv_cache_queue_init(cv_cache_queue *queue, atomic_int_least64_t *used_bytes);

static inline int64_t cv_cache_cost(size_t size)
{
    return (int64_t)(sizeof(cv_cached) + size);
}

/* To the end of a line, at that time. */
void cv_cache_queue_add(cv_cache_queue *queue, cv_cached *entry, bool is_used, uint64_t time);

/* To where it leaves next: it has waited for longest. */
void cv_cache_queue_move_first(cv_cache_queue *queue, cv_cached *entry);

void cv_cache_queue_remove(cv_cache_queue *queue, cv_cached *entry);

/* Who leaves next, or NULL. */
cv_cached *cv_cache_queue_head(const cv_cache_queue *queue);

/* The same one goes to the end instead, with one use less. */
void cv_cache_queue_step_back(cv_cache_queue *queue, cv_cached *entry, uint64_t time);

#endif

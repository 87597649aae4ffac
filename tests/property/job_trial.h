/* A trial of many writers: the array, its workers, and what each of them writes, also to the
 * naive oracle. */
#ifndef TEST_JOB_TRIAL_H
#define TEST_JOB_TRIAL_H

#include "caterva.h"

#include "support/check.h"
#include "support/oracle.h"
#include "support/pipelines.h"
#include "support/random.h"
#include "support/scratch.h"

#include <stdbool.h>
#include <string.h>

enum { MAX_WORKERS = 5, MAX_WRITES = 6, MAX_ITEMS = 4000 };

/* One write of a worker: a box, or the unowned items of it, one by one. */
typedef struct write_step {
    box where;
    bool by_points;
    int64_t *points;
    int64_t n_points;
    uint8_t *bytes;
    size_t size;
} write_step;

typedef struct worker {
    const struct trial *trial;
    int number;
    write_step writes[MAX_WRITES];
    int n_writes;
    bool dies;    /* before it is run again */
    bool doubles; /* its first part remains */
    void *token;
    size_t token_size;
} worker;

typedef struct trial {
    rng *random;
    int64_t number;
    geometry base, geometry; /* before the job, and with it */
    pipeline pipeline;
    bool in_directory, is_new, in_processes, overlaps;
    char path[SCRATCH_PATH];
    uint8_t fill[256];
    bool has_fill;
    caterva_array *array;
    oracle before, after; /* of the grown geometry */
    uint8_t *owners;      /* per item; 0: none */
    void *job;
    size_t job_size;
    worker workers[MAX_WORKERS];
    int n_workers;
} trial;

/* ---- What workers write ------------------------------------------------------------------ */

static inline int64_t place_of(const geometry *g, const int64_t *at)
{
    int64_t place = 0;
    for (int d = 0; d < g->ndim; d++) place = place * g->shape[d] + at[d];
    return place;
}

static inline void item_of_box(const box *b, int ndim, int64_t n, int64_t *at)
{
    for (int d = ndim - 1; d >= 0; d--) {
        int64_t length = b->stop[d] - b->start[d];
        at[d] = b->start[d] + n % length;
        n /= length;
    }
}

/* Takes unowned items of the box; `greedy`: all of it. */
static inline void list_points(trial *t, worker *w, write_step *s, bool greedy)
{
    const geometry *g = &t->geometry;
    int64_t n = box_items(&s->where, g->ndim), at[CATERVA_MAX_DIMS];
    s->points = check_alloc((size_t)(n * g->ndim + 1) * sizeof(int64_t));
    s->n_points = 0;
    for (int64_t i = 0; i < n; i++) {
        item_of_box(&s->where, g->ndim, i, at);
        uint8_t *owner = &t->owners[place_of(g, at)];
        if (*owner && *owner != w->number + 1 && !greedy) continue;
        *owner = (uint8_t)(w->number + 1);
        memcpy(s->points + s->n_points++ * g->ndim, at, (size_t)g->ndim * sizeof at[0]);
    }
    s->by_points = s->n_points < n || (g->ndim > 0 && n > 0 && rng_one_in(t->random, 6));
}

static inline void draw_write(trial *t, worker *w, bool greedy)
{
    write_step *s = &w->writes[w->n_writes++];
    size_t item_size = (size_t)t->geometry.item_size;
    s->where = random_box(t->random, &t->geometry);
    list_points(t, w, s, greedy);
    s->size = (size_t)s->n_points * item_size;
    s->bytes = check_alloc(s->size + 1);
    random_data(t->random, s->bytes, s->size, t->geometry.item_size);
    if (!s->by_points) {
        oracle_write(&t->after, &s->where, s->bytes);
        return;
    }
    for (int64_t i = 0; i < s->n_points; i++)
        memcpy(t->after.bytes +
                   (size_t)place_of(&t->geometry, s->points + i * t->geometry.ndim) *
                       item_size,
               s->bytes + (size_t)i * item_size, item_size);
}

/* In the order of workers, so that the oracle has the last one's items. */
static inline void draw_workers(trial *t)
{
    box all = whole_box(&t->geometry);
    t->owners = check_alloc((size_t)box_items(&all, t->geometry.ndim) + 1);
    memset(t->owners, 0, (size_t)box_items(&all, t->geometry.ndim) + 1);
    t->n_workers = rng_int(t->random, 1, MAX_WORKERS);
    for (int i = 0; i < t->n_workers; i++) {
        worker *w = &t->workers[i];
        *w = (worker){.trial = t, .number = i};
        w->dies = rng_one_in(t->random, 6);
        w->doubles = rng_one_in(t->random, 8);
        for (int n = rng_int(t->random, 0, MAX_WRITES); n > 0; n--)
            draw_write(t, w, t->overlaps);
    }
}

#endif

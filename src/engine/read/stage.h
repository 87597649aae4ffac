/* A stage: the stored bytes that an operation is going to need of a far store, read in waves
 * before it needs them, window after window.
 *
 *     units      0 1 2 3 4 5 | 6 7 8 9 10 11 | 12 ...     jobs of the operation, or chunks
 *     windows    [  staged  ]  [ being read ]
 *
 * Who works on a unit enters it: then the unit's window is there, its layouts and its bytes
 * in memory, where decoding and moving find them through the worker. The first who comes to a
 * window reads it, in two or three waves; others who need it wait meanwhile. What is not on
 * the stage, because there was no room or it is damaged, is read as ever by who needs it: so
 * a stage changes how often the store is asked, and nothing else.
 *
 * Memory: windows together take about CV_STAGE_BYTES, or what the caller says, and never more
 * than twice that; each thread has one, and one waits to be used again. A store whose reads
 * take no time has no stage: entering it is a comparison. */
#ifndef CV_ENGINE_STAGE_H
#define CV_ENGINE_STAGE_H

#include "engine/read/source.h"

/* What a unit needs. */
typedef struct cv_stage_list {
    cv_buffer needs;
    size_t n;
} cv_stage_list;

/* Blocks of a chunk by their numbers, or in place of them: */
enum {
    CV_STAGE_ALL = -1,   /* all bytes of the chunk */
    CV_STAGE_LAYOUT = -2 /* its layout alone */
};
cv_status cv_stage_list_add(cv_stage_list *list, int64_t chunk, int64_t block, cv_error *err);

/* Lists what unit `unit` needs: chunks in any order, more than once if need be. */
typedef cv_status (*cv_stage_list_fn)(void *context, int64_t unit, cv_worker *worker,
                                      cv_stage_list *list, cv_error *err);

typedef struct cv_stage_window cv_stage_window;

typedef struct cv_stage {
    const cv_source *source;
    cv_stage_list_fn list;
    void *context;
    cv_watch *watch;
    int64_t n_units, per_window;
    size_t most; /* bytes of a window */
    int n_windows;
    cv_stage_window *windows; /* NULL: the store is near */
    cv_mutex lock;
    cv_cond changed;
    uint64_t clock;
} cv_stage;

/* What an operation is going to need. */
typedef struct cv_stage_plan {
    int64_t n_units;
    int64_t bytes;  /* of all of them, decoded, about */
    int64_t memory; /* at most; 0: CV_STAGE_BYTES */
    int threads;
    cv_watch *watch; /* hears between waves; NULL: the source's */
    cv_stage_list_fn list;
    void *context;
} cv_stage_plan;

/* Reads nothing yet. It stays where it is; destroy it also after a failure. */
cv_status cv_stage_init(cv_stage *stage, const cv_source *source, const cv_stage_plan *plan,
                        cv_error *err);
void cv_stage_destroy(cv_stage *stage);

/* Whether it is worth listing anything. */
static inline bool cv_stage_is_used(const cv_stage *stage) { return stage && stage->windows; }

/* Between these two the worker finds what is there of the unit: on any of `threads` threads,
 * one unit at a time for each. CATERVA_ENOMEM, CATERVA_ESTOPPED. NULL is fine. */
cv_status cv_stage_open(cv_stage *stage, int64_t unit, cv_worker *worker, cv_error *err);
void cv_stage_close(cv_stage *stage, int64_t unit, cv_worker *worker);

static inline cv_status cv_stage_enter(cv_stage *stage, int64_t unit, cv_worker *worker,
                                       cv_error *err)
{
    return cv_stage_is_used(stage) ? cv_stage_open(stage, unit, worker, err) : CV_OK;
}
static inline void cv_stage_leave(cv_stage *stage, int64_t unit, cv_worker *worker)
{
    if (cv_stage_is_used(stage)) cv_stage_close(stage, unit, worker);
}

#endif

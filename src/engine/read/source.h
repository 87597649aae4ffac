/* The state that a read uses, and the stage, which reads stored bytes of a far store ahead. */
#ifndef CV_ENGINE_READ_SOURCE_H
#define CV_ENGINE_READ_SOURCE_H

#include "engine/pending/pending.h"
#include "frame/lookup.h"

#include <caterva_upkeep.h>

/* Receives reports of damage. */
typedef struct cv_damage_sink {
    void (*report)(void *context, const caterva_damage *damage); /* NULL: no reports */
    void *context;
} cv_damage_sink;

/* How reads skip damaged chunks. Reports come from any thread, one at a time. */
typedef struct cv_skip {
    const uint8_t *fill; /* one item; NULL: zeros */
    cv_damage_sink sink;
} cv_skip;

/* The state that a read uses: a committed state and, for a handle that writes, pending changes. */
typedef struct cv_source {
    cv_frame *frame;
    cv_snapshot *snapshot;
    cv_pending *pending; /* NULL if there are no pending changes */
    cv_workers *workers;
    int threads; /* maximum number, with the calling thread */
    /* The next three are for chunks that are moved into another array. */
    bool checks;         /* checksums of these chunks are verified before */
    bool gives;          /* this array is deleted afterwards: chunk files may be shared */
    bool is_durable;     /* chunk bytes are, or will be, on the medium: may be cloned */
    bool scan;           /* each block is read once: no block enters the cache */
    cv_watch *watch;     /* counts decoded bytes; or NULL */
    const cv_skip *skip; /* reads skip damaged chunks; NULL: damage is an error */
} cv_source;

/* Returns the source of a write: the state with all pending changes, each block read once. */
cv_source cv_source_of_pending(cv_pending *pending);

/* Finds a chunk, including pending changes. */
static inline cv_status cv_source_find(const cv_source *source, int64_t chunk,
                                       cv_chunk_ref *out, cv_error *err)
{
    if (source->pending) return cv_pending_where(source->pending, chunk, out, err);
    return cv_snapshot_find(source->snapshot, source->frame->store, chunk, out, err);
}

/* Returns in *out whether the committed state has a layout area that is not damaged. */
cv_status cv_source_has_layouts(const cv_source *source, bool *out, cv_error *err);

/* Estimates the end of a stored chunk and its table from the next chunk's position; 0 if
 * unknown. */
uint64_t cv_source_guess_end(const cv_source *source, const cv_chunk_ref *ref);

/* ---- Damage: failures that affect one chunk and leave the others readable ---- */

/* Returns whether a failed read means that the chunk is damaged: its data is corrupt, or its file
 * is missing from an existing directory. False if the system or server refused, the connection
 * broke, or the whole frame is missing. */
bool cv_is_damage(cv_status status);

/* Reports damage in a chunk; `chunk` is -1 for damage outside of chunks. */
void cv_damage_report(const cv_damage_sink *sink, const cv_grid *grid, int64_t chunk,
                      const cv_error *error);

/* ---- The stage ----
 *
 * Reads ahead, in waves, the stored bytes that an operation needs from a far store, one window
 * after the other.
 *
 *     units      0 1 2 3 4 5 | 6 7 8 9 10 11 | 12 ...     jobs of the operation, or chunks
 *     windows    [  staged  ]  [ being read ]
 *
 * A thread enters a unit. Then the unit's window is in memory, and decoding finds its layouts and
 * bytes through the worker. The first thread that needs a window reads it in two or three waves;
 * other threads wait. Damaged chunks, and chunks that do not fit, are read without the stage.
 *
 * All windows take about CV_STAGE_BYTES, or the memory of the plan, and at most twice that. There
 * is one window per thread and a spare one. A near store has no windows: entering does nothing. */

/* The bytes that the units of a window need. */
typedef struct cv_stage_list {
    cv_buffer needs;
    size_t n;
} cv_stage_list;

enum {
    CV_STAGE_ALL = -1,   /* all bytes of the chunk */
    CV_STAGE_LAYOUT = -2 /* only its layout */
};
/* `block`: a block number, or one of the numbers above. */
cv_status cv_stage_list_add(cv_stage_list *list, int64_t chunk, int64_t block, cv_error *err);

/* Lists the bytes that a unit needs. Chunks may come in any order, and repeatedly. */
typedef cv_status (*cv_stage_list_fn)(void *context, int64_t unit, cv_worker *worker,
                                      cv_stage_list *list, cv_error *err);

typedef struct cv_stage_window cv_stage_window;

typedef struct cv_stage {
    const cv_source *source;
    cv_stage_list_fn list;
    void *context;
    cv_watch *watch;
    int64_t n_units, per_window;
    size_t most; /* most stored bytes of a window */
    int n_windows;
    cv_stage_window *windows; /* NULL: the store is near */
    cv_mutex lock;
    cv_cond changed;
    uint64_t clock;
} cv_stage;

/* The bytes that an operation will need. */
typedef struct cv_stage_plan {
    int64_t n_units;
    int64_t bytes;  /* estimated decoded bytes of all units */
    int64_t memory; /* bytes of all windows; 0 means CV_STAGE_BYTES */
    int threads;
    cv_watch *watch; /* polled between waves; NULL: the source's */
    cv_stage_list_fn list;
    void *context;
} cv_stage_plan;

/* Initialises a stage without I/O. The stage must not move. Destroy it even after a failure. */
cv_status cv_stage_init(cv_stage *stage, const cv_source *source, const cv_stage_plan *plan,
                        cv_error *err);
void cv_stage_destroy(cv_stage *stage);

/* Between enter and leave, the worker finds the unit's staged bytes. A thread is in one unit at a
 * time. CATERVA_ENOMEM, CATERVA_ESTOPPED. Both do nothing if `stage` is NULL or has no windows. */
cv_status cv_stage_enter(cv_stage *stage, int64_t unit, cv_worker *worker, cv_error *err);
void cv_stage_leave(cv_stage *stage, int64_t unit, cv_worker *worker);

#endif

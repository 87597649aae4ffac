/* What a read stands on; and the stage, on which stored bytes of a far store wait to be read. */
#ifndef CV_ENGINE_READ_SOURCE_H
#define CV_ENGINE_READ_SOURCE_H

#include "engine/pending/pending.h"
#include "frame/lookup.h"

#include <caterva_upkeep.h>

/* Gets reports of damaged places. */
typedef struct cv_damage_sink {
    void (*tell)(void *context, const caterva_damage *damage); /* NULL: no reports */
    void *context;
} cv_damage_sink;

/* The fill and report of damaged chunks; calls never overlap, any thread. */
typedef struct cv_skip {
    const uint8_t *fill; /* one item; NULL: zeros */
    cv_damage_sink sink;
} cv_skip;

/* One committed state, and for the handle that writes, what it has pending. */
typedef struct cv_source {
    cv_frame *frame;
    cv_snapshot *snapshot;
    cv_pending *pending; /* NULL: none */
    cv_workers *workers;
    int threads; /* at most so many, the caller's included */
    bool checks; /* chunks that are moved are compared with their checksums before */
    bool gives; /* it goes with what its chunks are moved to: its chunk files may be shared */
    bool
        is_durable; /* what it holds is on the medium, or is to be: its bytes may be cloned */
    bool scan;      /* each block is read once: none of them is put into the cache */
    cv_watch *watch; /* gets the progress of decoding; or NULL */
    const cv_skip *skip; /* of reads that go on around damaged chunks; NULL: damage ends them */
} cv_source;

/* A write's source: the state with all pending changes, each read once. */
cv_source cv_source_of_pending(cv_pending *pending);

/* Where a chunk is, pending changes included. */
static inline cv_status cv_source_find(const cv_source *source, int64_t chunk,
                                       cv_chunk_ref *out, cv_error *err)
{
    if (source->pending) return cv_pending_where(source->pending, chunk, out, err);
    return cv_snapshot_find(source->snapshot, source->frame->store, chunk, out, err);
}

/* Whether the committed state has its layouts in one place. Damaged ones count as none. */
cv_status cv_source_has_layouts(const cv_source *source, bool *out, cv_error *err);

/* The likely end of a stored chunk and its table: the next chunk's begin; 0: unknown. */
uint64_t cv_source_guess_end(const cv_source *source, const cv_chunk_ref *ref);

/* ---- Damage: what may happen to one chunk and leaves the others readable ---- */

/* Whether a failed read of a chunk is damage: wrong bytes, or a file missing from an
 * existing directory. Not when the system or server refused, the connection broke, or the
 * whole frame is gone. */
bool cv_is_damage(cv_status status);

/* Reports damage in chunk `chunk` of the grid; -1: outside of chunks. */
void cv_damage_tell(const cv_damage_sink *sink, const cv_grid *grid, int64_t chunk,
                    const cv_error *error);

/* ---- The stage ----
 *
 * The stored bytes that an operation will need of a far store, read ahead in waves, window
 * after window.
 *
 *     units      0 1 2 3 4 5 | 6 7 8 9 10 11 | 12 ...     jobs of the operation, or chunks
 *     windows    [  staged  ]  [ being read ]
 *
 * A thread enters a unit; then the unit's window is in memory, and decoding finds its
 * layouts and bytes through the worker. The first thread to need a window reads it in two
 * or three waves, others wait. What is damaged or had no room is read as without a stage.
 *
 * Windows take about CV_STAGE_BYTES, or what the caller says, and never more than twice
 * that: one per thread and a spare one. A store without latency has no stage: entering is a
 * comparison. */

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

/* Between these the worker finds the unit's staged bytes, one unit at a time per thread.
 * CATERVA_ENOMEM, CATERVA_ESTOPPED. Without a stage (or NULL) nothing is there. */
cv_status cv_stage_enter(cv_stage *stage, int64_t unit, cv_worker *worker, cv_error *err);
void cv_stage_leave(cv_stage *stage, int64_t unit, cv_worker *worker);

#endif

/* The handle behind the public API, shared by this room's files. */
#ifndef CV_ARRAY_ARRAY_H
#define CV_ARRAY_ARRAY_H

#include "array/description.h"
#include "array/gate.h"
#include "array/held_jobs.h"
#include "array/part_marks.h"
#include "array/sized.h"
#include "array/writers.h"
#include "engine/plan/selection.h"
#include "engine/read/prefetch.h"
#include "engine/run/pool.h"
#include "remote/session.h"

struct caterva_array {
    cv_frame *frame;
    cv_workers workers;
    cv_cache *own_cache; /* NULL: workers.cache is the shared one, or none */
    cv_pending *pending; /* NULL on handles for reading */
    bool is_guarded;     /* has `pending` or `watch`: locking is more than nothing */
    int threads;
    cv_prefetch prefetch;
    cv_read_ahead ahead; /* its prefetches */
    cv_errands reads;    /* that nobody waits for: async.c */
    /* On handles for writing: readers share it, a write or commit has it alone.
     * Handles for reading never lock. */
    cv_rwlock lock;
    cv_gate gate;
    cv_snapshot *snapshot;       /* the committed state; replaced by a commit */
    uint8_t *fill;               /* the item that new cells hold; NULL: zeros */
    char *path;                  /* of the file or directory, absolute; NULL in memory */
    char *url;                   /* by which it is opened again; NULL: by its path */
    cv_writers *writers;         /* of the tree that it was opened to be changed through */
    size_t writers_place;        /* in their list, which keeps it */
    cv_session *session;         /* of the tree behind a URL whose leaf it is; or NULL */
    caterva_open_options opened; /* how */
    cv_watch *watch;             /* who hears of long calls; NULL: nobody */
    cv_item_type type;           /* of the items: what the dtype is, and what is stored */
    cv_descriptions descriptions;
    cv_part_of_job *part; /* of a handle that writes one; else NULL */
    cv_held_job *jobs;    /* that it has begun or merged */
    int compact_percent;  /* as in caterva_open_options */
};

/* Takes over the frame, also on failure. */
cv_status cv_array_new(cv_frame *frame, bool writable, int threads, caterva_array **out,
                       cv_error *err);

/* Releases everything; what is pending is dropped. */
void cv_array_free(caterva_array *array);

/* The state as this handle sees it: the committed one, or with what is pending
 * of shape, attributes and metalayers. */
const cv_snapshot *cv_array_state(const caterva_array *array);

/* Who hears of long calls through the handle; NULL: nobody. */
cv_status cv_array_set_watch(caterva_array *array, cv_progress_fn tell, void *context,
                             cv_error *err);

/* The lock, where the handle has one. Alone, also the background stands still. A watch
 * takes what is between lock and unlock for one call. */
void cv_array_lock_shared(caterva_array *array);
void cv_array_lock_alone(caterva_array *array);
void cv_array_unlock(caterva_array *array);

/* Unlocks after a call that may have been long: a watch hears the end of a good one. */
cv_status cv_array_finish(caterva_array *array, cv_status status);

/* What a read through this handle stands on. Called with the lock. */
cv_source cv_array_source(caterva_array *array);

/* CATERVA_EREADONLY unless the handle is open for writing. */
cv_status cv_array_check_writable(const caterva_array *array, cv_error *err);

/* The same for changes of items: nor where codec and filters, which others chose, give
 * back something else than what goes in. */
cv_status cv_array_check_encodes(const caterva_array *array, cv_error *err);

/* CATERVA_EINVAL for a NULL handle. */
cv_status cv_array_check(const caterva_array *array, cv_error *err);

#endif

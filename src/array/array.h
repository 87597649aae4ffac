/* The handle behind the public API, shared by this room's files. */
#ifndef CV_ARRAY_ARRAY_H
#define CV_ARRAY_ARRAY_H

#include "array/held_jobs.h"
#include "array/part_marks.h"
#include "array/writers.h"
#include "base/status.h"
#include "base/thread.h"
#include "engine/plan/selection.h"
#include "engine/read/prefetch.h"
#include "engine/run/pool.h"
#include "frame/snapshot.h"
#include "remote/remote.h"

/* Copies a struct of any known size over zeros. `what` names it in errors.
 * CATERVA_EINVAL for NULL, for sizes that cannot be, and for a tail that is set. */
cv_status cv_options_copy(void *out, size_t size, const void *options, const char *what,
                          cv_error *err);

/* The same checks of a struct that is to be filled, before any work is done. */
cv_status cv_output_check(const void *out, size_t size, const char *what, cv_error *err);

/* Fills it, as far as the caller's size goes, from one of ours of `size` bytes. */
void cv_output_fill(void *out, const void *full, size_t size);

/* ---- description ----
 * What an array is, as values that never change: each state that somebody asks for has
 * a description of its own, counted, and a change of the array makes the handle turn
 * to a new one. Whoever holds one needs no lock.
 *
 *     handle --> latest <-- references of callers */

/* The dtype of the items, fixed when an array is made. */
typedef struct cv_item_type {
    char *dtype;  /* fits the item size */
    char *stored; /* what the file says; NULL: nothing */
    bool disagrees;
} cv_item_type;

typedef struct cv_description {
    caterva_info info; /* first: its address is what callers hold */
    atomic_int references;
} cv_description;

/* What a description is made of. `state` is the array with what is pending, `committed`
 * without. */
typedef struct cv_described {
    const cv_snapshot *state;
    const cv_snapshot *committed;
    const cv_item_type *type;
    const uint8_t *fill; /* NULL: zeros */
    bool in_memory;
    const char *path; /* NULL: none */
    uint64_t offset;
    caterva_mode mode;
    caterva_durability durability;
} cv_described;

caterva_metalayer_kind cv_metalayer_kind(const cv_array_meta *meta);

/* A description with one reference; everything is copied. */
cv_status cv_description_create(const cv_described *from, cv_description **out,
                                cv_error *err);
void cv_description_release(const cv_description *description); /* NULL is fine */

/* Those that a handle keeps. */
typedef struct cv_descriptions {
    cv_mutex lock;
    cv_description *latest; /* NULL: of a state that nobody asked for yet */
} cv_descriptions;

/* The latest one with a reference added, or NULL. */
const cv_description *cv_descriptions_latest(cv_descriptions *all);

/* Makes `fresh` the latest one, unless another thread was first. */
void cv_descriptions_offer(cv_descriptions *all, cv_description *fresh);

/* The latest one is of the past: `fresh` takes its place, or, NULL, the one that is
 * offered next. */
void cv_descriptions_turn(cv_descriptions *all, cv_description *fresh);

/* Exchanges contents; nobody else may be using either. */
void cv_descriptions_swap(cv_descriptions *a, cv_descriptions *b);

/* ---- gate ----
 * Keeps commits out while somebody verifies the array, whose committed state must stay what
 * it is until then. */

/* One who verifies. */
typedef struct cv_passing {
    bool calls; /* a function of the caller's, on `thread` */
    cv_thread thread;
    struct cv_passing *next;
} cv_passing;

typedef struct cv_gate {
    cv_mutex lock;
    cv_cond changed;
    cv_passing *passing;
} cv_gate;

/* Waits until nobody verifies, and keeps all out who want to until the gate is open
 * again; before the array is locked. CATERVA_EBUSY in a function that verify calls. */
cv_status cv_gate_close(cv_gate *gate, cv_error *err);
void cv_gate_open(cv_gate *gate);

/* Passes, and is gone again: for who verifies. */
void cv_gate_enter(cv_gate *gate, cv_passing *self);
void cv_gate_leave(cv_gate *gate, const cv_passing *self);

/* A function of the caller's begins (`calls`) or ends, on this thread. */
void cv_gate_note_call(cv_gate *gate, cv_passing *self, bool calls);

/* ---- array ----
 * The handle behind the public API, shared by this room's files. */

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

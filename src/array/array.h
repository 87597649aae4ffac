/* The handle behind the public API, shared by this room's files. */
#ifndef CV_ARRAY_ARRAY_H
#define CV_ARRAY_ARRAY_H

#include "base/status.h"
#include "base/thread.h"
#include "engine/plan/plan.h"
#include "engine/plan/selection.h"
#include "engine/read/prefetch.h"
#include "engine/run/pool.h"
#include "frame/snapshot.h"

/* Copies a struct of any known size over zeros. CATERVA_EINVAL, with `what` as its name, for
 * NULL, impossible sizes and a nonzero tail. */
cv_status cv_options_copy(void *out, size_t size, const void *options, const char *what,
                          cv_error *err);

/* The same checks of a struct that is to be filled, before any work is done. */
cv_status cv_output_check(const void *out, size_t size, const char *what, cv_error *err);

/* Fills it, as far as the caller's size goes, from one of ours of `size` bytes. */
void cv_output_fill(void *out, const void *full, size_t size);

/* ---- Descriptions: immutable values. A change makes the handle use a new one; no locks - */

typedef struct cv_description {
    caterva_info info; /* first: its address is what callers hold */
    atomic_int references;
} cv_description;

/* The array as the handle sees it; release *out. Any thread; not with the lock. */
cv_status cv_array_describe(caterva_array *array, const cv_description **out, cv_error *err);
void cv_description_release(const cv_description *description); /* NULL is fine */

/* The handle has a new state. Call with the lock alone, or as its only thread. */
void cv_array_changed(caterva_array *array);

/* CATERVA_LAYOUT and so on of the committed state. */
caterva_layout cv_array_layout(const caterva_array *array);
caterva_metalayer_kind cv_array_metalayer(const caterva_array *array);

/* ---- Gate: keeps commits out while a thread verifies the array ------------------------- */

/* A thread that verifies. */
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

/* Waits until no thread verifies and keeps new ones out. Call before the lock. CATERVA_EBUSY
 * in a function that verify calls. */
cv_status cv_gate_close(cv_gate *gate, cv_error *err);
void cv_gate_open(cv_gate *gate);

/* Verifying begins and ends. */
void cv_gate_enter(cv_gate *gate, cv_passing *self);
void cv_gate_leave(cv_gate *gate, const cv_passing *self);

/* A function of the caller's begins (`calls`) or ends, on this thread. */
void cv_gate_note_call(cv_gate *gate, cv_passing *self, bool calls);

/* ---- Attachments: what wings keep with a handle, which owns them. Called with the lock - */

/* Items that are about to be written: one of the three. */
typedef struct cv_written {
    const cv_plan *box;
    const cv_selection *selection;
    const int64_t *chunk;
} cv_written;

typedef struct cv_attachment {
    const struct cv_attachment_kind *kind;
    struct cv_attachment *next;
} cv_attachment;

/* All but `free` may be NULL. */
typedef struct cv_attachment_kind {
    cv_status (*write)(cv_attachment *self, const cv_written *items, cv_error *err);
    /* Fails if `what` (a commit, a change of shape) is not done to such a handle. */
    cv_status (*refuse)(const cv_attachment *self, const char *what, cv_error *err);
    void (*roll_back)(cv_attachment *self);
    /* Opens anew, as complete options say, what a handle for reading was opened from. */
    cv_status (*reopen)(const cv_attachment *self, const caterva_array *array,
                        const caterva_open_options *options, caterva_array **out,
                        cv_error *err);
    /* When the handle is released, before anything else of it; without its lock. */
    void (*free)(cv_attachment *self);
} cv_attachment_kind;

void cv_array_attach(caterva_array *array, const cv_attachment_kind *kind,
                     cv_attachment *attachment);

/* The handle's attachment of that kind, or NULL. */
cv_attachment *cv_array_attached(const caterva_array *array, const cv_attachment_kind *kind);

/* Call the functions of all attachments: `write`, `refuse`. */
cv_status cv_array_note_write(caterva_array *array, const cv_written *items, cv_error *err);
cv_status cv_array_refuse(const caterva_array *array, const char *what, cv_error *err);

/* ---- The handle ---- */

/* The dtype of the items, fixed when an array is made. */
typedef struct cv_item_type {
    char *dtype;  /* fits the item size */
    char *stored; /* what the file says; NULL: nothing */
    bool disagrees;
} cv_item_type;

struct caterva_array {
    cv_frame *frame;
    cv_workers workers;
    cv_cache *own_cache; /* NULL: workers.cache is the shared one, or none */
    cv_pending *pending; /* NULL on handles for reading */
    bool is_guarded;     /* has `pending` or `watch`: locking is more than nothing */
    int threads;
    cv_prefetch prefetch;
    cv_read_ahead ahead; /* its prefetches */
    cv_tasks reads;      /* not waited for: async.c */
    /* On handles for writing: readers share it, a write or commit has it alone.
     * Handles for reading never lock. */
    cv_rwlock lock;
    cv_gate gate;
    cv_snapshot *snapshot;       /* the committed state; replaced by a commit */
    uint8_t *fill;               /* the item that new cells hold; NULL: zeros */
    char *path;                  /* of the file or directory, absolute; NULL in memory */
    char *url;                   /* by which it is opened again; NULL: by its path */
    caterva_open_options opened; /* how */
    cv_watch *watch;             /* counts long calls; or NULL */
    cv_item_type type;           /* of the items: what the dtype is, and what is stored */
    cv_mutex description_lock;   /* of: */
    cv_description *description; /* the latest; NULL: of a state that was not asked for yet */
    cv_attachment *attached;     /* of wings; most handles have none */
    int compact_percent;         /* as in caterva_open_options */
};

/* Takes over the frame, also on failure. */
cv_status cv_array_new(cv_frame *frame, bool writable, int threads, caterva_array **out,
                       cv_error *err);

/* Releases everything; what is pending is dropped. */
void cv_array_free(caterva_array *array);

/* The committed state, or the one with pending shape, attributes and metalayers. */
const cv_snapshot *cv_array_state(const caterva_array *array);

/* Watches long calls through the handle; NULL: none. */
cv_status cv_array_set_watch(caterva_array *array, cv_progress_fn tell, void *context,
                             cv_error *err);

/* The handle's lock, if it has one. Alone also stops background work. A watch counts what is
 * between lock and unlock as one call. */
void cv_array_lock_shared(caterva_array *array);
void cv_array_lock_alone(caterva_array *array);
void cv_array_unlock(caterva_array *array);

/* Unlocks after a call that may have been long, and reports the end of a good one. */
cv_status cv_array_finish(caterva_array *array, cv_status status);

/* What a read through this handle stands on. Called with the lock. */
cv_source cv_array_source(caterva_array *array);

/* Checks the handle, locks it shared and gives what a read stands on. End with
 * cv_array_finish. */
cv_status cv_array_begin_read(caterva_array *array, cv_source *out, cv_error *err);

/* CATERVA_EREADONLY unless the handle is open for writing. */
cv_status cv_array_check_writable(const caterva_array *array, cv_error *err);

/* The same for items: also if chosen codec and filters do not restore their input. */
cv_status cv_array_check_encodes(const caterva_array *array, cv_error *err);

/* CATERVA_EINVAL for a NULL handle. */
cv_status cv_array_check(const caterva_array *array, cv_error *err);

/* CATERVA_EINVAL unless it is 0 to 100. */
cv_status cv_array_check_compact(int percent, cv_error *err);

/* Replaces the array's file or directory by a compact copy, keeping writers out. The handle
 * can only be released then. With the lock alone. CATERVA_EBUSY for a directory that is open
 * for reading elsewhere. */
cv_status cv_array_compact(caterva_array *array, cv_error *err);

/* After a commit: reads see the frame's current state. Called with the lock. */
void cv_array_renew(caterva_array *array);

#endif

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

/* Copies a struct of any known size, and zeroes the rest. CATERVA_EINVAL, with `what` as its name,
 * for NULL, an impossible size, or unknown members that are not zero. */
cv_status cv_options_copy(void *out, size_t size, const void *options, const char *what,
                          cv_error *err);

/* The same for options that may be NULL: everything is unset. */
cv_status cv_options_read(void *out, size_t size, const void *options, const char *what,
                          cv_error *err);

/* The same checks for a struct that the library will fill, before any work is done. */
cv_status cv_output_check(const void *out, size_t size, const char *what, cv_error *err);

/* Fills it from the library's struct of `size` bytes, up to the caller's size. */
void cv_output_fill(void *out, const void *full, size_t size);

/* ---- Descriptions: immutable values. A change of the array makes a new one; no locks ------- */

typedef struct cv_description {
    caterva_info info; /* first member: callers hold its address */
    atomic_int references;
} cv_description;

/* Gets the current description of the array; release *out. Any thread; call without the lock. */
cv_status cv_array_describe(caterva_array *array, const cv_description **out, cv_error *err);
void cv_description_release(const cv_description *description); /* NULL is fine */

/* Makes a new description. Call with the lock alone, or from the only thread. */
void cv_array_changed(caterva_array *array);

/* ---- Gate: keeps commits out while threads verify the array ------------------------------- */

/* A thread that verifies. */
typedef struct cv_passing {
    bool calls; /* is in a function of the caller, on `thread` */
    cv_thread thread;
    struct cv_passing *next;
} cv_passing;

typedef struct cv_gate {
    cv_mutex lock;
    cv_cond changed;
    cv_passing *passing;
} cv_gate;

/* Waits until no thread verifies, and keeps new ones out. Call before taking the lock.
 * CATERVA_EBUSY in a function that verify calls. */
cv_status cv_gate_close(cv_gate *gate, cv_error *err);
void cv_gate_open(cv_gate *gate);

/* Begin and end verifying. */
void cv_gate_enter(cv_gate *gate, cv_passing *self);
void cv_gate_leave(cv_gate *gate, const cv_passing *self);

/* A function of the caller begins (`calls`) or ends on this thread. */
void cv_gate_note_call(cv_gate *gate, cv_passing *self, bool calls);

/* ---- Attachments of wings to a handle, which owns them. Called with the lock --------------- */

/* Items about to be written: one of these. */
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
    /* Fails if `what` (a commit, a change of shape) is not possible on such a handle. */
    cv_status (*refuse)(const cv_attachment *self, const char *what, cv_error *err);
    void (*roll_back)(cv_attachment *self);
    /* Opens again what a handle for reading was opened from, with complete options. */
    cv_status (*reopen)(const cv_attachment *self, const caterva_array *array,
                        const caterva_open_options *options, caterva_array **out,
                        cv_error *err);
    /* Called without the lock when the handle is released, before its other members, in the order
     * in which the attachments were added. */
    void (*free)(cv_attachment *self);
} cv_attachment_kind;

void cv_array_attach(caterva_array *array, const cv_attachment_kind *kind,
                     cv_attachment *attachment);

/* The handle's attachment of this kind, or NULL. */
cv_attachment *cv_array_attached(const caterva_array *array, const cv_attachment_kind *kind);

/* Call the `write` or `refuse` function of all attachments. */
cv_status cv_array_note_write(caterva_array *array, const cv_written *items, cv_error *err);
cv_status cv_array_refuse(const caterva_array *array, const char *what, cv_error *err);

/* ---- The handle ---- */

/* The dtype of the items, fixed when the array is created. */
typedef struct cv_item_type {
    char *dtype;  /* matches the item size */
    char *stored; /* as in the file; NULL: none */
    bool disagrees;
} cv_item_type;

struct caterva_array {
    cv_frame *frame;
    cv_workers workers;
    cv_cache *own_cache; /* NULL: workers.cache is the shared one, or NULL */
    cv_pending *pending; /* NULL on handles for reading */
    bool is_guarded;     /* has `pending` or `watch`: locking does something */
    int threads;
    cv_prefetch prefetch;
    cv_read_ahead ahead; /* its prefetches */
    cv_tasks reads;      /* background reads, see async.c */
    /* Only on handles for writing: shared by reads, held alone by a write or commit. */
    cv_rwlock lock;
    cv_gate gate;
    cv_snapshot *snapshot;       /* the committed state; replaced by a commit */
    caterva_layout layout;       /* never change in the life of an array, and so */
    caterva_metalayer_kind metalayer; /* need no lock */
    uint8_t *fill;               /* the item of new cells; NULL: zeros */
    char *path;                  /* absolute, of the file or directory; NULL in memory */
    char *url;                   /* for opening again; NULL: by `path` */
    caterva_open_options opened; /* the options */
    cv_watch *watch;             /* counts long calls; or NULL */
    cv_item_type type;           /* of the items: the dtype in use and the stored one */
    cv_mutex description_lock;   /* guards the next member */
    cv_description *description; /* the latest; NULL: not made yet */
    /* What wings keep; most handles have none. Added with the lock, read also without it. */
    _Atomic(cv_attachment *) attached;
    int compact_percent;         /* as in caterva_open_options */
};

/* Owns the frame, even on failure. */
cv_status cv_array_new(cv_frame *frame, bool writable, int threads, caterva_array **out,
                       cv_error *err);

/* Releases everything. Discards pending changes. */
void cv_array_free(caterva_array *array);

/* The committed state, or that with pending shape, attributes and metalayers. */
const cv_snapshot *cv_array_state(const caterva_array *array);

/* Sets the progress function for long calls through the handle, if it has one. */
cv_status cv_array_set_watch(caterva_array *array, const caterva_progress *progress,
                             cv_error *err);

/* Take and release the handle's lock, if it has one. "alone" also stops background work. A watch
 * counts everything between lock and unlock as one call. */
void cv_array_lock_shared(caterva_array *array);
void cv_array_lock_alone(caterva_array *array);
void cv_array_unlock(caterva_array *array);

/* Unlocks after a call that may have been long. If it succeeded, reports its end. */
cv_status cv_array_finish(caterva_array *array, cv_status status);

/* The source for a read through this handle. Call with the lock. */
cv_source cv_array_source(caterva_array *array);

/* Checks the handle, takes the shared lock, and gets the source for a read. End with
 * cv_array_finish. */
cv_status cv_array_begin_read(caterva_array *array, cv_source *out, cv_error *err);

/* CATERVA_EREADONLY unless the handle is open for writing. */
cv_status cv_array_check_writable(const caterva_array *array, cv_error *err);

/* The same for writing items: also fails if codec and filters do not restore their input. */
cv_status cv_array_check_encodes(const caterva_array *array, cv_error *err);

/* CATERVA_EINVAL for a NULL handle. */
cv_status cv_array_check(const caterva_array *array, cv_error *err);

/* CATERVA_EINVAL unless it is 0 to 100. */
cv_status cv_array_check_compact(int percent, cv_error *err);

/* Replaces the array's file or directory by a compact copy, and keeps writers out. Afterwards the
 * handle can only be released. Call with the lock alone. CATERVA_EBUSY for a directory that is open
 * for reading elsewhere. */
cv_status cv_array_compact(caterva_array *array, cv_error *err);

/* Called after a commit, with the lock: reads use the frame's current state. */
void cv_array_renew(caterva_array *array);

#endif

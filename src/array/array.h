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

/* Copies the caller's struct `options` to `out`, which has `size` bytes. A shorter struct, of an
 * older version, is extended by zeros. CATERVA_EINVAL if `options` is NULL, if its struct_size is
 * impossible, or if a byte beyond `size` is not zero. `what` names the struct in messages. */
cv_status cv_options_copy(void *out, size_t size, const void *options, const char *what,
                          cv_error *err);

/* Like cv_options_copy, but `options` may be NULL: then all members except struct_size are zero. */
cv_status cv_options_read(void *out, size_t size, const void *options, const char *what,
                          cv_error *err);

/* Makes the checks of cv_options_copy for a struct that the library will fill after its work. */
cv_status cv_output_check(const void *out, size_t size, const char *what, cv_error *err);

/* Fills the checked struct `out` from `full`, the library's struct of `size` bytes. Writes at most
 * out's struct_size bytes. */
void cv_output_fill(void *out, const void *full, size_t size);

/* ---- Descriptions: immutable. A change of the array replaces its description --------------- */

typedef struct cv_description {
    caterva_info info; /* first member: callers hold its address */
    atomic_int references;
} cv_description;

/* Gets the current description; the caller releases *out. Any thread, without the lock. */
cv_status cv_array_describe(caterva_array *array, const cv_description **out, cv_error *err);
void cv_description_release(const cv_description *description); /* NULL is fine */

/* Replaces the description. Call with the lock held alone, or if no other thread has the handle. */
void cv_array_changed(caterva_array *array);

/* ---- Gate: keeps commits out while threads verify the array ------------------------------- */

/* One thread that verifies the array. */
typedef struct cv_passing {
    bool calls; /* a callback of the program is running, on `thread` */
    cv_thread thread;
    struct cv_passing *next;
} cv_passing;

typedef struct cv_gate {
    cv_mutex lock;
    cv_cond changed;
    cv_passing *passing;
} cv_gate;

/* Waits until no thread verifies, and lets no thread begin to verify. Call before taking the
 * handle's lock. CATERVA_EBUSY if the caller is a callback of verify. */
cv_status cv_gate_close(cv_gate *gate, cv_error *err);
void cv_gate_open(cv_gate *gate);

/* Begin and end a verification. cv_gate_enter waits while the gate is closed. */
void cv_gate_enter(cv_gate *gate, cv_passing *self);
void cv_gate_leave(cv_gate *gate, const cv_passing *self);

/* Records that a callback of the program begins (`calls`) or has ended on the calling thread. */
void cv_gate_note_call(cv_gate *gate, cv_passing *self, bool calls);

/* ---- Attachments: what wings keep with a handle. Functions are called with its lock -------- */

/* The items that a write will change. One member is set. */
typedef struct cv_written {
    const cv_plan *box;
    const cv_selection *selection;
    const int64_t *chunk;
} cv_written;

typedef struct cv_attachment {
    const struct cv_attachment_kind *kind;
    struct cv_attachment *next;
} cv_attachment;

/* What a wing does with its attachments. Each function except `free` may be NULL. */
typedef struct cv_attachment_kind {
    cv_status (*write)(cv_attachment *self, const cv_written *items, cv_error *err);
    /* Fails if the attachment forbids `what` ("a commit", "a change of shape"). */
    cv_status (*refuse)(const cv_attachment *self, const char *what, cv_error *err);
    void (*roll_back)(cv_attachment *self);
    /* For caterva_refresh. Opens the source of a handle for reading again, with all options. */
    cv_status (*reopen)(const cv_attachment *self, const caterva_array *array,
                        const caterva_open_options *options, caterva_array **out,
                        cv_error *err);
    /* Called without the lock when the handle is released, before its other members are freed.
     * Attachments are freed in the order in which they were added. */
    void (*free)(cv_attachment *self);
} cv_attachment_kind;

void cv_array_attach(caterva_array *array, const cv_attachment_kind *kind,
                     cv_attachment *attachment);

/* The handle's attachment of this kind, or NULL. */
cv_attachment *cv_array_attached(const caterva_array *array, const cv_attachment_kind *kind);

/* cv_array_note_write calls `write` of all attachments; cv_array_refuse calls `refuse`. */
cv_status cv_array_note_write(caterva_array *array, const cv_written *items, cv_error *err);
cv_status cv_array_refuse(const caterva_array *array, const char *what, cv_error *err);

/* ---- The handle ---- */

/* The dtype of the items, fixed when the array is created. */
typedef struct cv_item_type {
    char *dtype;    /* the dtype in use, which matches the item size */
    char *stored;   /* the dtype in the file; NULL if it has none */
    bool disagrees; /* the stored dtype contradicts the item size */
} cv_item_type;

struct caterva_array {
    cv_frame *frame;
    cv_workers workers;
    cv_cache *own_cache; /* NULL if workers.cache is the shared cache or NULL */
    cv_pending *pending; /* NULL on handles for reading */
    bool is_guarded;     /* `pending` or `watch` is set; else locking does nothing */
    int threads;
    cv_prefetch prefetch;
    cv_read_ahead ahead; /* decides when reads prefetch */
    cv_tasks reads;      /* background reads, see async.c */
    /* Handles for writing use the lock: a read shares it, a write or a commit holds it alone. */
    cv_rwlock lock;
    cv_gate gate;
    cv_snapshot *snapshot;            /* the committed state; replaced by a commit */
    caterva_layout layout;            /* never changes: needs no lock */
    caterva_metalayer_kind metalayer; /* never changes: needs no lock */
    uint8_t *fill;                    /* the item that fills new space; NULL for zeros */
    char *path;                       /* absolute path of file or directory; or NULL */
    char *url;                        /* caterva_refresh opens it; or NULL: `path` */
    bool is_far_zarr;                 /* the frame of a Zarr array that was opened by URL */
    caterva_open_options opened;      /* complete options, for caterva_refresh */
    cv_watch *watch;                  /* reports the progress of long calls; or NULL */
    cv_item_type type;                /* the items' dtype */
    cv_mutex description_lock;        /* guards `description` */
    cv_description *description;      /* the latest one; NULL before it is made */
    /* A list, the latest attachment first. Changes only with the lock held; reads need no lock. */
    _Atomic(cv_attachment *) attached;
    int compact_percent; /* as in caterva_open_options */
};

/* Makes a handle for the frame. Owns the frame, even on failure. */
cv_status cv_array_new(cv_frame *frame, bool writable, int threads, caterva_array **out,
                       cv_error *err);

/* Releases everything. Discards pending changes. */
void cv_array_free(caterva_array *array);

/* Returns the state that calls on the handle use: the committed state, or the state that includes
 * pending changes of shape, attributes and metalayers. */
const cv_snapshot *cv_array_state(const caterva_array *array);

/* If `progress` has a function, long calls through the handle report to it. */
cv_status cv_array_set_watch(caterva_array *array, const caterva_progress *progress,
                             cv_error *err);

/* Take and release the handle's lock, which only handles for writing use. cv_array_lock_alone also
 * suspends prefetches and background reads. The watch counts the time between as one call. */
void cv_array_lock_shared(caterva_array *array);
void cv_array_lock_alone(caterva_array *array);
void cv_array_unlock(caterva_array *array);

/* Unlocks. If `status` is CV_OK, the watch reports completion. Returns `status`. */
cv_status cv_array_finish(caterva_array *array, cv_status status);

/* Returns the source for a read through this handle. Call with the lock held. */
cv_source cv_array_source(caterva_array *array);

/* CATERVA_EROLLBACK after a change that failed half-way: items that moved and items that did not
 * would be read together. Call with the lock held. */
cv_status cv_array_check_whole(const caterva_array *array, cv_error *err);

/* Checks the handle, takes the shared lock, checks that no change failed half-way, and gets the
 * source. After success, end with cv_array_finish. */
cv_status cv_array_begin_read(caterva_array *array, cv_source *out, cv_error *err);

/* CATERVA_EREADONLY unless the handle is open for writing. */
cv_status cv_array_check_writable(const caterva_array *array, cv_error *err);

/* Like cv_array_check_writable. Also fails if codec and filters would change items on writing. */
cv_status cv_array_check_encodes(const caterva_array *array, cv_error *err);

/* CATERVA_EINVAL for a NULL handle. */
cv_status cv_array_check(const caterva_array *array, cv_error *err);

/* CATERVA_EINVAL unless `percent` is 0 to 100. */
cv_status cv_array_check_compact(int percent, cv_error *err);

/* Replaces the array's file or directory by a compact copy. Other writers stay excluded. Afterwards
 * the handle can only be released. Call with the lock held alone. CATERVA_EBUSY for a directory
 * that is open for reading elsewhere. */
cv_status cv_array_compact(caterva_array *array, cv_error *err);

/* Makes reads use the frame's current state. Call after a commit, with the lock held alone. */
void cv_array_renew(caterva_array *array);

#endif

/* The store: (object, byte range) -> bytes, behind one small vtable. Does not know frames.
 *
 * Objects: CV_FRAME_OBJECT is the frame (the file, the memory, or a directory's
 * chunks.b2frame); objects >= 0 are a directory's chunk files (%08X.chunk).
 *
 * A store of a *_create function is unpublished: closing it leaves nothing behind. It has a
 * temporary name beside its target until publish. *_open gives a published one.
 *
 * With `overwrite` a new store replaces what is at its path and takes over permissions,
 * owner and group, access lists and extended attributes. CATERVA_EBUSY, by create and
 * publish, if that is open for writing, or is a directory open for reading.
 *
 * Threads: read, read_many, begin_wave, read_at_once, view, warm, read_anew and size may
 * run at once, and beside one writer of other bytes (committed bytes are never
 * overwritten). All others: one thread at a time, but `write` of disjoint ranges may run in
 * parallel, and `share` of different objects beside it. */
#ifndef CV_STORE_STORE_H
#define CV_STORE_STORE_H

#include "base/os_file.h"
#include "base/status.h"
#include "base/watch.h"

#include <stdatomic.h>

typedef int64_t cv_object;
#define CV_FRAME_OBJECT ((cv_object) - 1)

typedef struct cv_store cv_store;
typedef struct cv_gathering cv_gathering; /* store/reading.h */

/* The frame object's version as far as the storage tells: inode, time, size; ETag, date.
 * Compared by all numbers. */
typedef struct cv_stamp {
    uint64_t object, time, size;
} cv_stamp;

/* One of several ranges that are read together. */
typedef struct cv_store_range {
    cv_object object;
    uint64_t pos;
    size_t size;
    void *dst;
} cv_store_range;

/* Who waits for ranges. */
typedef struct cv_arrivals {
    /* Called once per arrived range, in any order, on the asking thread; a failure cancels
     * the rest. Must not wait or read: more ranges arrive meanwhile. */
    cv_status (*arrived)(void *context, size_t range, cv_error *err);
    /* Called with the range that failed, before the error is returned. Or NULL. */
    void (*failed)(void *context, size_t range);
    void *context;
    /* Or NULL: all ranges have their memory. Else those without `dst` borrow it when bytes of
     * theirs come, on any thread: *dst, or NULL when there is none until some was given back,
     * which `resume` says. It is to be found, or CATERVA_ENOMEM, when no more ranges than
     * `stuck` have memory: those miss bytes, and none come before this one has some; SIZE_MAX: in
     * any case. Of stores that borrow only. */
    cv_status (*lend)(void *context, size_t range, size_t stuck, uint8_t **dst,
                      cv_error *err);
    cv_watch *watch; /* told now and then by a store that waits long; or NULL */
    /* Bytes of all of one reader's parallel waves; whether another began since the last
     * wait. */
    size_t together;
    bool is_along;
} cv_arrivals;

/* A wave that has begun. */
typedef struct cv_reading cv_reading;
struct cv_reading {
    /* Comes back when nothing of it is under way any more, and frees it. */
    void (*end)(cv_reading *reading, bool gives_up);
};

typedef struct cv_store_ops {
    const char *name; /* "file", "memory", ...: sentences say "this %s", "a %s" */
    /* What changes when another writer changes or replaces the frame object. NULL: unknown,
     * zeros. */
    void (*stamp)(cv_store *store, cv_stamp *out);
    /* Bytes of an object. CATERVA_ENOTFOUND when it does not exist. */
    cv_status (*size)(cv_store *store, cv_object object, uint64_t *size, cv_error *err);
    /* Reads exactly `size` bytes; a shorter object is CATERVA_ECORRUPT with its end's
     * position. */
    cv_status (*read)(cv_store *store, cv_object object, uint64_t pos, void *dst, size_t size,
                      cv_error *err);
    /* A wave: n reads at once; after a failure it is undefined which were done. NULL: one
     * by one. */
    cv_status (*read_many)(cv_store *store, const cv_store_range *ranges, size_t n,
                           const cv_arrivals *arrivals, cv_error *err);
    /* The same in steps, for several waves: ranges at hand may arrive at once. Arguments
     * stay until the wave has ended, also after failures; NULL: it has ended. Op NULL: no
     * parallel waves. */
    cv_status (*begin_wave)(cv_store *store, const cv_store_range *ranges, size_t n,
                            const cv_arrivals *arrivals, cv_gathering *all, cv_reading **out,
                            cv_error *err);
    /* Whether waves borrow memory (cv_arrivals.lend) now; and: some was returned, by any
     * thread. NULL: never. */
    bool (*borrows)(cv_store *store);
    void (*resume)(cv_store *store);
    /* Wave size at which the round trip matters little and memory allows; 0 or NULL:
     * unknown. */
    size_t (*wave_bytes)(cv_store *store);
    /* Bytes worth reading beside `needed` ones to save a round trip. NULL: none. */
    uint64_t (*spare)(cv_store *store, uint64_t needed);
    /* Fetches at once what is unknown of chunk objects to be read, their sizes first.
     * Returns CATERVA_ENOMEM or CATERVA_ESTOPPED; later reads report the rest. NULL: takes
     * no time. */
    cv_status (*meet)(cv_store *store, const cv_object *objects, size_t n, cv_error *err);
    /* Reads the range if it is in memory, as far as that is cheap to tell. NULL: always
     * near. Not called if `is_far`. */
    cv_at_once (*read_at_once)(cv_store *store, const cv_store_range *range);
    /* Lends bytes, fixed until the store is closed; NULL: cannot. Op may be NULL. */
    const uint8_t *(*view)(cv_store *store, cv_object object, uint64_t pos, size_t size);
    /* Makes `view` lend bytes that are wanted together, if worth it. Op may be NULL. */
    cv_status (*bring)(cv_store *store, uint64_t pos, uint64_t size, cv_error *err);
    /* Warms bytes that `view` would lend now (base/os_file.h). Op may be NULL. */
    void (*warm)(cv_store *store, cv_object object, uint64_t pos, size_t size);
    /* Stops lending in-memory copies of a file: rereads. NULL: keeps none. */
    void (*read_anew)(cv_store *store);
    /* Bytes were wrong: fetches past all caches from now on; a reread may help
     * (store/reading.h). CATERVA_EIO: the version changed, unless the reader `begins` and
     * remembers nothing. NULL: bytes are what they are. */
    cv_status (*doubt)(cv_store *store, bool begins, cv_error *err);
    /* Whether the frame exists: only then is a missing chunk object damage. NULL: `doubt`
     * finds out. */
    cv_status (*check_frame)(cv_store *store, cv_error *err);
    /* After a doubt: the reread bytes are right, or not: CATERVA_EIO if the version
     * changed. With `doubt`. */
    cv_status (*settle)(cv_store *store, bool is_right, cv_error *err);
    /* Writes `size` bytes; creates or grows the object (gaps read as zeros). Chunk objects
     * are written once, from 0. */
    cv_status (*write)(cv_store *store, cv_object object, uint64_t pos, const void *src,
                       size_t size, cv_error *err);
    /* Links chunk object `there` of another store, `size` bytes, as `object` here: one
     * file, two names, never written again; removal from one keeps the other. False:
     * unchanged, copy instead. NULL: never. */
    bool (*share)(cv_store *store, cv_object object, cv_store *from, cv_object there,
                  uint64_t size);
    /* Clones bytes at `there` of another store's frame object to `pos`, without a copy;
     * multiples of CV_CLONE_UNIT. False: write them. NULL: never. `may_clone`: whether to
     * try. */
    bool (*clone)(cv_store *store, uint64_t pos, cv_store *from, uint64_t there,
                  uint64_t size);
    bool (*may_clone)(cv_store *store, cv_store *from);
    /* Hint: much will be written behind the frame object's end; may allocate it as zeros.
     * The caller truncates the excess. NULL: nothing. */
    void (*take_room)(cv_store *store, uint64_t pos, uint64_t size);
    /* Copies existing bytes within the frame object, not overlapping. Any thread. NULL:
     * read and write. */
    cv_status (*copy)(cv_store *store, uint64_t from, uint64_t to, size_t size,
                      cv_error *err);
    cv_status (*truncate)(cv_store *store, cv_object object, uint64_t size, cv_error *err);
    /* Makes the object's bytes durable. */
    cv_status (*sync)(cv_store *store, cv_object object, cv_error *err);
    /* Replaces the whole frame object by a temporary file, sync (if `durable`) and rename;
     * on failure the old one stays. A sync of CV_FRAME_OBJECT makes it permanent. Files:
     * CATERVA_EINVAL. CATERVA_ECORRUPT, unchanged: an object shared since the last one has
     * other bytes. */
    cv_status (*replace)(cv_store *store, const void *bytes, size_t size, bool durable,
                         cv_error *err);
    /* Removes a chunk object; one that does not exist is fine. */
    cv_status (*remove)(cv_store *store, cv_object object, cv_error *err);
    /* The chunk objects in any order; owned, cv_free. NULL: none. */
    cv_status (*list)(cv_store *store, cv_object **objects, size_t *n, cv_error *err);
    /* Moves an unpublished store to its target, syncing the directory if `durable`.
     * CATERVA_EEXIST: it exists, without `overwrite`; CATERVA_EBUSY: in use. If published:
     * nothing. */
    cv_status (*publish)(cv_store *store, bool durable, cv_error *err);
    /* Readers hold a shared lock; this adds which state they read: a number that identifies
     * states of one array; 0: nothing stored is needed any more. May be NULL. */
    void (*reads_state)(cv_store *store, uint64_t state);
    /* Whether another opening may read here (NULL: no); or a state other than `state`
     * (NULL: as has_readers). */
    bool (*has_readers)(cv_store *store);
    bool (*has_others)(cv_store *store, uint64_t state);
    /* Whether another opening seems to write, so that reads may be torn. NULL: never
     * torn. */
    bool (*has_writer)(cv_store *store);
    /* CATERVA_EIO if a published, writable store has lost its name. NULL: has no name. */
    cv_status (*check_name)(cv_store *store, cv_error *err);
    /* A new store of the same kind, to replace `old` by publish; `old` stays open for
     * writing and its lock excludes others. CATERVA_EBUSY then for a directory being read.
     * NULL: cannot. */
    cv_status (*create_over)(cv_store *old, cv_store **out, cv_error *err);
    /* Deletes the published, writable store: a regular file, or a directory of array files
     * only, renamed first so that it is never half deleted. CATERVA_EBUSY: a directory
     * being read. `watch` (or NULL) is called per chunk file: stopped before the first,
     * nothing is deleted; later, the rest is an array whose name the message has. Close the
     * store afterwards. NULL: cannot. */
    cv_status (*unlink)(cv_store *store, cv_watch *watch, cv_error *err);
    /* Closes and frees; unpublished: removes every trace. */
    void (*close)(cv_store *store);
} cv_store_ops;

/* Every store begins with this, set by whoever makes it. */
struct cv_store {
    const cv_store_ops *ops;
    bool has_chunk_objects; /* a directory: chunks are objects of their own */
    bool writable;
    bool in_memory;
    bool slow_writes;     /* the system copies what is written: large writes take long enough
                        * for a thread of their own */
    bool compacts_itself; /* dead space is worth a compact copy when a writer closes; needs
                           * create_over */
    bool published;
    bool is_far;    /* each read takes long, so what is known to be wanted is read in waves */
    bool is_pinned; /* what is read is of one version, or not read at all */
    bool
        is_vouched; /* set by who reads the frame: a seal at its end vouches for every byte */
    uint32_t
        join_gap; /* reading over so many bytes costs less than another range; 0: a page */
    uint32_t most_whole; /* chunks of at most so many bytes, together, are read whole where
                          * that takes fewer waves; 0: none are */
    cv_os_moment opened; /* cv_os_now() when it was made, unless in_memory: whose locks those
                          * of its files are, and that a child of fork does not write */
    cv_watch *watch;     /* told now and then while one read takes long; or NULL */
    atomic_uint n_near;  /* requests since one whose bytes were not in memory */
};

/* ---- Calls through the vtable ------------------------------------------- */

static inline cv_stamp cv_store_stamp(cv_store *s)
{
    cv_stamp stamp = {0};
    if (s->ops->stamp) s->ops->stamp(s, &stamp);
    return stamp;
}

static inline cv_status cv_store_size(cv_store *s, cv_object o, uint64_t *size, cv_error *e)
{
    return s->ops->size(s, o, size, e);
}
static inline cv_status cv_store_read(cv_store *s, cv_object o, uint64_t pos, void *dst,
                                      size_t size, cv_error *e)
{
    return s->ops->read(s, o, pos, dst, size, e);
}
static inline cv_at_once cv_store_read_at_once(cv_store *s, const cv_store_range *range)
{
    if (s->is_far) return CV_AT_ONCE_NO;
    return s->ops->read_at_once ? s->ops->read_at_once(s, range) : CV_AT_ONCE_UNKNOWN;
}
static inline int64_t cv_store_join_gap(const cv_store *s)
{
    return s->join_gap > 0 ? (int64_t)s->join_gap : 4096;
}
/* One after the other; the first n_read have been read. */
static inline cv_status cv_store_read_from(cv_store *s, const cv_store_range *ranges,
                                           size_t n, size_t n_read,
                                           const cv_arrivals *arrivals, cv_error *e)
{
    for (size_t i = 0; i < n; i++) {
        const cv_store_range *r = &ranges[i];
        cv_status status = CV_OK;
        if (i >= n_read) status = s->ops->read(s, r->object, r->pos, r->dst, r->size, e);
        if (status != CV_OK && arrivals->failed) arrivals->failed(arrivals->context, i);
        CV_TRY(status);
        CV_TRY(arrivals->arrived(arrivals->context, i, e));
    }
    return CV_OK;
}
static inline cv_status cv_store_read_each(cv_store *s, const cv_store_range *ranges,
                                           size_t n, const cv_arrivals *arrivals, cv_error *e)
{
    return cv_store_read_from(s, ranges, n, 0, arrivals, e);
}
/* For who knows that they are not near. */
static inline cv_status cv_store_read_wave(cv_store *s, const cv_store_range *ranges,
                                           size_t n, const cv_arrivals *arrivals, cv_error *e)
{
    if (s->ops->read_many) return s->ops->read_many(s, ranges, n, arrivals, e);
    return cv_store_read_each(s, ranges, n, arrivals, e);
}
static inline void cv_store_end_wave(cv_reading *reading, bool gives_up)
{
    if (reading) reading->end(reading, gives_up);
}
/* Is the first range near, the others mostly are: then a wave would cost, and gain nothing. */
static inline cv_status cv_store_read_many(cv_store *s, const cv_store_range *ranges,
                                           size_t n, const cv_arrivals *arrivals, cv_error *e)
{
    if (n < 2) return cv_store_read_each(s, ranges, n, arrivals, e);
    cv_at_once first = cv_store_read_at_once(s, &ranges[0]);
    if (first == CV_AT_ONCE_NO) {
        atomic_store_explicit(&s->n_near, 0, memory_order_relaxed);
        return cv_store_read_wave(s, ranges, n, arrivals, e);
    }
    return cv_store_read_from(s, ranges, n, first == CV_AT_ONCE_READ, arrivals, e);
}
static inline const uint8_t *cv_store_view(cv_store *s, cv_object o, uint64_t pos,
                                           size_t size)
{
    return s->ops->view ? s->ops->view(s, o, pos, size) : NULL;
}
static inline cv_status cv_store_bring(cv_store *s, uint64_t pos, uint64_t size, cv_error *e)
{
    return s->ops->bring ? s->ops->bring(s, pos, size, e) : CV_OK;
}
static inline void cv_store_read_anew(cv_store *s)
{
    if (s->ops->read_anew) s->ops->read_anew(s);
}
static inline cv_status cv_store_write(cv_store *s, cv_object o, uint64_t pos,
                                       const void *src, size_t size, cv_error *e)
{
    return s->ops->write(s, o, pos, src, size, e);
}
static inline cv_status cv_store_truncate(cv_store *s, cv_object o, uint64_t size,
                                          cv_error *e)
{
    return s->ops->truncate(s, o, size, e);
}
static inline cv_status cv_store_sync(cv_store *s, cv_object o, cv_error *e)
{
    return s->ops->sync(s, o, e);
}
static inline cv_status cv_store_replace(cv_store *s, const void *bytes, size_t size,
                                         bool durable, cv_error *e)
{
    return s->ops->replace(s, bytes, size, durable, e);
}
static inline cv_status cv_store_remove(cv_store *s, cv_object o, cv_error *e)
{
    return s->ops->remove(s, o, e);
}
static inline cv_status cv_store_list(cv_store *s, cv_object **objects, size_t *n,
                                      cv_error *e)
{
    *objects = NULL;
    *n = 0;
    return s->ops->list ? s->ops->list(s, objects, n, e) : CV_OK;
}
static inline cv_status cv_store_publish(cv_store *s, bool durable, cv_error *e)
{
    return s->ops->publish(s, durable, e);
}
static inline bool cv_store_has_readers(cv_store *s)
{
    return s->ops->has_readers && s->ops->has_readers(s);
}
static inline bool cv_store_may_have_writer(const cv_store *s)
{
    return s->ops->has_writer && !s->writable;
}
static inline bool cv_store_has_writer(cv_store *s)
{
    return cv_store_may_have_writer(s) && s->ops->has_writer(s);
}
static inline cv_status cv_store_check_name(cv_store *s, cv_error *e)
{
    return s->ops->check_name ? s->ops->check_name(s, e) : CV_OK;
}
static inline bool cv_store_has_others(cv_store *s, uint64_t state)
{
    return s->ops->has_others ? s->ops->has_others(s, state) : cv_store_has_readers(s);
}
static inline void cv_store_reads_state(cv_store *s, uint64_t state)
{
    if (s->ops->reads_state && !s->writable) s->ops->reads_state(s, state);
}
static inline void cv_store_close(cv_store *s)
{
    if (s) s->ops->close(s);
}

#endif

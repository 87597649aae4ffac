/* The store: reads and writes byte ranges of objects through one vtable. Does not know frames.
 *
 * Objects. CV_FRAME_OBJECT is the frame: the file, the memory, or chunks.b2frame of a directory.
 * Objects >= 0 are the chunk files of a directory (%08X.chunk).
 *
 * Publishing. A store from a *_create function is unpublished: it has a temporary name beside its
 * target, and closing it leaves nothing behind. publish renames it to the target. A store from an
 * *_open function is published from the start.
 *
 * With `overwrite`, a new store replaces the file or directory at its path and takes over its
 * permissions, owner, group, access control lists and extended attributes. Create and publish
 * return CATERVA_EBUSY if the old one is open for writing, or is a directory that is open for
 * reading.
 *
 * Threads. read, read_many, begin_wave, read_at_once, view, warm, read_anew and size may run
 * concurrently, and beside one writer of other bytes (committed bytes are never overwritten). The
 * other functions run on one thread at a time, with two exceptions: `write` of disjoint ranges
 * may run in parallel, and `share` of different objects may run beside it. */
#ifndef CV_STORE_STORE_H
#define CV_STORE_STORE_H

#include "base/os_file.h"
#include "base/status.h"
#include "base/watch.h"

#include <stdatomic.h>

typedef int64_t cv_object;
#define CV_FRAME_OBJECT ((cv_object)-1)

typedef struct cv_store cv_store;
typedef struct cv_gathering cv_gathering; /* store/reading.h */

/* Identifies the version of the frame object: inode, time and size of a file, or ETag and date of
 * a URL. Two versions are equal if all numbers are equal. */
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

/* Functions and data that the reader of several ranges provides. */
typedef struct cv_arrivals {
    /* Called once for each range that has arrived, in any order, on the reader's thread. A
     * failure cancels the rest. Must not wait or read: more ranges arrive meanwhile. */
    cv_status (*arrived)(void *context, size_t range, cv_error *err);
    /* Called with the range that failed, before the error is returned. May be NULL. */
    void (*failed)(void *context, size_t range);
    void *context;
    /* Lends memory to a range without `dst` when the range's first bytes arrive. Only stores with
     * `borrows` call it, on any thread. NULL: all ranges have a `dst`. At the limit, sets *dst to
     * NULL; then the range waits until memory was returned and `resume` was called. But if at most
     * `stuck` ranges hold memory (always, if SIZE_MAX), they wait for bytes behind this range: then
     * this range must get memory beyond the limit, or CATERVA_ENOMEM is returned. */
    cv_status (*lend)(void *context, size_t range, size_t stuck, uint8_t **dst,
                      cv_error *err);
    cv_watch *watch; /* checked regularly by a store that waits long; or NULL */
    size_t together; /* bytes of all parallel waves of the reader; 0 if unknown */
    bool is_along;   /* another wave began since the last wait, so round trips overlap */
} cv_arrivals;

/* A wave in progress. */
typedef struct cv_reading cv_reading;
struct cv_reading {
    /* Waits until all requests of the wave have ended, and frees the wave. If `gives_up`, cancels
     * the requests first. */
    void (*end)(cv_reading *reading, bool gives_up);
};

/* The functions of a kind of store. "NULL:" says what a missing function means. */
typedef struct cv_store_ops {
    const char *name; /* "file", "memory", ...: messages contain "this %s" and "a %s" */
    /* Sets *out to the current version, which changes when another writer changes or replaces the
     * frame object. NULL: the version is unknown; all numbers are 0. */
    void (*stamp)(cv_store *store, cv_stamp *out);
    /* Returns the size of an object. CATERVA_ENOTFOUND if the object does not exist. */
    cv_status (*size)(cv_store *store, cv_object object, uint64_t *size, cv_error *err);
    /* Reads exactly `size` bytes. If the object is shorter: CATERVA_ECORRUPT, with the position
     * of its end. */
    cv_status (*read)(cv_store *store, cv_object object, uint64_t pos, void *dst, size_t size,
                      cv_error *err);
    /* Reads n ranges concurrently: a wave. After a failure it is undefined which ranges were
     * read. NULL: ranges are read one by one. */
    cv_status (*read_many)(cv_store *store, const cv_store_range *ranges, size_t n,
                           const cv_arrivals *arrivals, cv_error *err);
    /* Begins a wave of n ranges and returns, so that several waves can be in progress. Ranges in
     * memory may arrive before it returns. The arguments must stay valid until the wave has ended,
     * even if begin_wave fails. If the wave has ended already, sets *out to NULL. NULL: no parallel
     * waves. */
    cv_status (*begin_wave)(cv_store *store, const cv_store_range *ranges, size_t n,
                            const cv_arrivals *arrivals, cv_gathering *all, cv_reading **out,
                            cv_error *err);
    /* borrows returns whether waves currently use cv_arrivals.lend. resume, on any thread, reports
     * that memory was returned. NULL: waves never use `lend`. */
    bool (*borrows)(cv_store *store);
    void (*resume)(cv_store *store);
    /* Returns the size of a wave that fits in memory and is so large that the round trip matters
     * little. 0, or NULL: unknown. */
    size_t (*wave_bytes)(cv_store *store);
    /* Returns how many bytes may be read beyond `needed` to save a round trip. NULL: 0. */
    uint64_t (*spare)(cv_store *store, uint64_t needed);
    /* Fetches together unknown properties, such as sizes, of chunk objects that will be read.
     * Returns only CV_OK, CATERVA_ENOMEM or CATERVA_ESTOPPED: later reads report other errors.
     * NULL: nothing to fetch. */
    cv_status (*meet)(cv_store *store, const cv_object *objects, size_t n, cv_error *err);
    /* Reads the range if the store can find out cheaply that the range is in memory. NULL: always
     * in memory. Not called if `is_far`. */
    cv_at_once (*read_at_once)(cv_store *store, const cv_store_range *range);
    /* Lends bytes, which stay unchanged until the store is closed, or returns NULL. May be NULL. */
    const uint8_t *(*view)(cv_store *store, cv_object object, uint64_t pos, size_t size);
    /* Fetches bytes that are used together, if that pays, so that `view` can lend them. May be
     * NULL. */
    cv_status (*bring)(cv_store *store, uint64_t pos, uint64_t size, cv_error *err);
    /* Prefetches into the CPU's cache (base/os_file.h) bytes that `view` would lend now. May be
     * NULL. */
    void (*warm)(cv_store *store, cv_object object, uint64_t pos, size_t size);
    /* Stops lending the in-memory copy of a file: reads go to the file. NULL: no copy. */
    void (*read_anew)(cv_store *store);
    /* Called after a parser refused bytes: from now on reads bypass all caches. CV_OK if a second
     * read may help (store/reading.h). CATERVA_EIO if the object has a new version and the reader
     * holds data of the old version (not `begins`). NULL: a second read would be no different. */
    cv_status (*doubt)(cv_store *store, bool begins, cv_error *err);
    /* Returns CV_OK if the frame exists: only then is a missing chunk object damage. NULL:
     * `doubt` reports a missing frame. */
    cv_status (*check_frame)(cv_store *store, cv_error *err);
    /* Called after `doubt` and the second read. `is_right` is whether the parser accepted the new
     * bytes. CATERVA_EIO if the version changed. NULL if and only if `doubt` is NULL. */
    cv_status (*settle)(cv_store *store, bool is_right, cv_error *err);
    /* Writes `size` bytes; creates or extends the object (gaps read as zeros). Chunk objects are
     * written once, from position 0. write, truncate, sync and publish are NULL in read-only
     * stores. */
    cv_status (*write)(cv_store *store, cv_object object, uint64_t pos, const void *src,
                       size_t size, cv_error *err);
    /* Hard-links chunk object `there` of another store with the same operations, `size` bytes, as
     * `object` of this store. The file is not written again; each name can be removed alone. If the
     * caller must copy, changes nothing and returns false. NULL: the caller always copies. */
    bool (*share)(cv_store *store, cv_object object, cv_store *from, cv_object there,
                  uint64_t size);
    /* clone makes the bytes at `pos` share storage with the bytes at `there` of another store's
     * frame object. Both stores have the same operations. Positions and size are multiples of
     * CV_CLONE_UNIT. Returns false if the caller must write the bytes. may_clone returns whether to
     * try. NULL: never. */
    bool (*clone)(cv_store *store, uint64_t pos, cv_store *from, uint64_t there,
                  uint64_t size);
    bool (*may_clone)(cv_store *store, cv_store *from);
    /* Hint: many bytes will be written behind the end of the frame object, so space may be
     * allocated (zeros). The caller truncates the excess. May be NULL. */
    void (*take_room)(cv_store *store, uint64_t pos, uint64_t size);
    /* Copies existing bytes within the frame object; the ranges must not overlap. Any thread.
     * NULL: the caller reads and writes. */
    cv_status (*copy)(cv_store *store, uint64_t from, uint64_t to, size_t size,
                      cv_error *err);
    cv_status (*truncate)(cv_store *store, cv_object object, uint64_t size, cv_error *err);
    /* Makes the object's bytes durable. */
    cv_status (*sync)(cv_store *store, cv_object object, cv_error *err);
    /* Replaces the whole frame object: writes a temporary file, syncs it if `durable`, renames it.
     * On failure the old frame stays. The rename is durable after `sync` of CV_FRAME_OBJECT.
     * CATERVA_ECORRUPT, with nothing changed, if an object that was shared since the last replace
     * has other bytes now. NULL in stores without chunk objects. */
    cv_status (*replace)(cv_store *store, const void *bytes, size_t size, bool durable,
                         cv_error *err);
    /* Removes a chunk object, if it exists. NULL: the store has no chunk objects. */
    cv_status (*remove)(cv_store *store, cv_object object, cv_error *err);
    /* Lists the chunk objects in any order; release with cv_free. NULL: no chunk objects. */
    cv_status (*list)(cv_store *store, cv_object **objects, size_t *n, cv_error *err);
    /* Renames an unpublished store to its target, and syncs the directory if `durable`.
     * CATERVA_EEXIST if the target exists, without `overwrite`; CATERVA_EBUSY if the target is in
     * use. Does nothing if already published. */
    cv_status (*publish)(cv_store *store, bool durable, cv_error *err);
    /* Records in the reader's shared lock which state it uses. `state` is a number that differs
     * between the states of an array, or 0 if the reader needs no stored bytes any more. May be
     * NULL. */
    void (*reads_state)(cv_store *store, uint64_t state);
    /* has_readers returns whether another opening may be reading. NULL: no. has_others returns
     * whether another opening may be reading a state other than `state`. NULL: as has_readers. */
    bool (*has_readers)(cv_store *store);
    bool (*has_others)(cv_store *store, uint64_t state);
    /* Whether another opening seems to be writing, so that a read may see a partial write. NULL:
     * reads are never partial. */
    bool (*has_writer)(cv_store *store);
    /* CATERVA_EIO if the name of a published store open for writing does not lead to the store any
     * more. NULL: the store has no name. */
    cv_status (*check_name)(cv_store *store, cv_error *err);
    /* Creates a store of the same kind that replaces `old` when published. `old` stays open for
     * writing, and its lock excludes other writers. CATERVA_EBUSY if `old` is a directory being
     * read. NULL: not possible. */
    cv_status (*create_over)(cv_store *old, cv_store **out, cv_error *err);
    /* Deletes a published store open for writing: a regular file, or a directory that contains
     * only the array's files. Renames a directory first, so that no half-deleted array has its
     * name. CATERVA_EBUSY if a directory is being read. `watch` (or NULL) is called for each
     * chunk file. If it stops before the first file, nothing is deleted. If it stops later, the
     * remaining files are still an array, whose name is in the message. Close the store
     * afterwards. NULL: not possible. */
    cv_status (*unlink)(cv_store *store, cv_watch *watch, cv_error *err);
    /* Closes and frees the store. If unpublished, removes everything it created. */
    void (*close)(cv_store *store);
} cv_store_ops;

/* The first member of every store. The function that creates the store sets it. */
struct cv_store {
    const cv_store_ops *ops;
    bool has_chunk_objects; /* a directory: each chunk is an object of its own */
    bool writable;
    bool in_memory;
    bool slow_writes;     /* large writes take so long that another thread pays */
    bool compacts_itself; /* a writer that closes may compact dead space; needs create_over */
    bool published;
    bool is_far;         /* each read takes long, so ranges are read ahead in waves */
    bool is_pinned;      /* all reads return bytes of one version, or fail */
    bool is_vouched;     /* set by the frame's reader: a seal at its end covers all bytes */
    uint32_t join_gap;   /* gaps of at most this many bytes are read over; 0: one page */
    uint32_t most_whole; /* chunks that have at most this many bytes together are read
                            whole if that takes fewer waves; 0: never */
    cv_os_moment opened; /* cv_os_now() when created (not if in_memory): identifies the
                            process that owns the locks. A child of fork must not write */
    cv_watch *watch;     /* checked regularly during a long read; or NULL */
    atomic_uint n_near;  /* requests since the last request that was not in memory */
};

/* ---- What all kinds of stores refuse ------------------------------------- */

/* Returns CATERVA_ECORRUPT, because [pos, pos + size) is not within the `end` bytes of `what`. */
cv_status cv_fail_past_end(cv_error *err, const char *what, uint64_t pos, size_t size,
                           uint64_t end);

/* Whether this process is a forked child whose parent opened the store. False for memory. */
bool cv_store_is_parents(const cv_store *store);

/* CATERVA_EREADONLY if the store is not open for writing, CATERVA_EBUSY if the parent opened it. */
cv_status cv_store_check_writable(const cv_store *store, cv_error *err);

cv_status cv_store_fail_far(const cv_store *store,
                            cv_error *err); /* used by cv_store_write */

/* For stores without chunk objects. CATERVA_ENOTFOUND if `object` is not the frame. */
cv_status cv_store_check_frame(const cv_store *store, cv_object object, cv_error *err);

/* Call the operation. If the store lacks it, cv_store_replace returns CATERVA_EINVAL, and
 * cv_store_remove does nothing. */
cv_status cv_store_replace(cv_store *store, const void *bytes, size_t size, bool durable,
                           cv_error *err);
cv_status cv_store_remove(cv_store *store, cv_object object, cv_error *err);

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
/* Reads the ranges one after the other. The first n_read ranges were read already. */
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
/* Reads a wave, without first checking whether the ranges are in memory. */
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
/* Reads the ranges. If the first range is in memory, the others mostly are, too: then a wave would
 * cost time and gain nothing. */
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
/* With addresses of 32 bits an array that would grow beyond 2 GiB fails: it could not be copied. */
static inline cv_status cv_store_write(cv_store *s, cv_object o, uint64_t pos,
                                       const void *src, size_t size, cv_error *e)
{
    if (sizeof(size_t) < sizeof(uint64_t) && pos + size > INT32_MAX)
        return cv_store_fail_far(s, e);
    return s->ops->write ? s->ops->write(s, o, pos, src, size, e)
                         : cv_store_check_writable(s, e);
}
static inline cv_status cv_store_truncate(cv_store *s, cv_object o, uint64_t size,
                                          cv_error *e)
{
    return s->ops->truncate ? s->ops->truncate(s, o, size, e) : cv_store_check_writable(s, e);
}
static inline cv_status cv_store_sync(cv_store *s, cv_object o, cv_error *e)
{
    return s->ops->sync ? s->ops->sync(s, o, e) : cv_store_check_writable(s, e);
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
    return s->ops->publish ? s->ops->publish(s, durable, e) : CV_OK;
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
